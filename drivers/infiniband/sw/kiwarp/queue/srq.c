// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Shared receive queues: a receive queue, in the kernel or a user format, with a limit.
 *
 * Owns: the limit and its event, IB_EVENT_SRQ_LIMIT_REACHED. A limit other than 0 arms the event. A
 * message that leaves fewer receives than the limit in the queue disarms the event and schedules
 * the work item that raises it. It is a work item because the consumer's handler must not be called
 * under our locks. If the event is armed and triggered again before the work item runs, the
 * consumer gets a single event. The ring's memory belongs to the caller of kiw_srq_init().
 * kiw_srq_move() may replace the ring, so when the queue is destroyed, the caller frees the ring
 * that the queue has by then.
 *
 * Contexts: all QPs that share the queue fetch receives in softirq or with BHs off. Locks:
 * that of the receive queue, which protects the limit, too.
 */
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/workqueue.h>

#include "srq.h"
#include "trace.h"

static void srq_raise_limit_event(struct work_struct *work)
{
	struct kiw_srq *srq = container_of(work, struct kiw_srq, event_work);
	struct ib_event event = {
		.device = srq->ib.device,
		.element.srq = &srq->ib,
		.event = IB_EVENT_SRQ_LIMIT_REACHED,
	};

	if (srq->ib.event_handler)
		srq->ib.event_handler(&event, srq->ib.srq_context);
}

/**
 * kiw_srq_init() - initialize a shared receive queue
 * @srq: the queue; the core has set up its @ib already
 * @ops: format of @ring
 * @ring: empty; stays the caller's, valid until kiw_srq_uninit() has returned or another ring has
 *	replaced it
 * @size: slots of @ring, a power of two
 * @max_sge: maximum number of SGEs of a receive
 * @stats: the device's counters
 *
 * Context: process.
 */
void kiw_srq_init(struct kiw_srq *srq, const struct kiw_rq_ops *ops, void *ring, u32 size,
		  u8 max_sge, struct kiw_stats *stats)
{
	spin_lock_init(&srq->rq.lock);
	srq->rq.ops = ops;
	srq->rq.ring = ring;
	srq->rq.size = size;
	srq->rq.put = 0;
	srq->rq.get = 0;
	srq->rq.max_sge = max_sge;
	srq->limit = 0;
	srq->stats = stats;
	INIT_WORK(&srq->event_work, srq_raise_limit_event);
}

/**
 * kiw_srq_uninit() - tear down a shared receive queue
 * @srq: the queue; no QP uses it any more, so nothing is fetched from it
 *
 * Afterwards the consumer's handler is not running and will not be called. Receives that
 * are still queued never complete. The caller frees the ring.
 *
 * Context: process; may sleep.
 */
void kiw_srq_uninit(struct kiw_srq *srq)
{
	cancel_work_sync(&srq->event_work);
}

/**
 * kiw_srq_fetch() - take the oldest receive
 * @srq: the queue
 * @wqe: set to a copy of it
 *
 * If a limit is set and fewer receives than that are left afterwards, the limit is disarmed, and
 * the work item that raises IB_EVENT_SRQ_LIMIT_REACHED is scheduled.
 *
 * Context: any; takes @srq->rq.lock.
 * Return: 1: @wqe is valid; 0: the queue is empty; -EINVAL: an invalid receive was
 * taken, @wqe->wr_id identifies it.
 */
int kiw_srq_fetch(struct kiw_srq *srq, struct kiw_rwqe *wqe)
{
	struct kiw_rq *rq = &srq->rq;
	bool is_low = false;
	unsigned long flags;
	int ret;

	spin_lock_irqsave(&rq->lock, flags);
	ret = rq->ops->fetch(rq, wqe);
	if (srq->limit && !rq->ops->has(rq, srq->limit)) {
		WRITE_ONCE(srq->limit, 0);
		is_low = true;
	}
	spin_unlock_irqrestore(&rq->lock, flags);

	if (is_low) {
		trace_kiw_srq_limit(dev_name(&srq->ib.device->dev), srq->ib.res.id);
		schedule_work(&srq->event_work);
	}
	return ret;
}

/**
 * kiw_srq_set_limit() - arm or disarm the limit event
 * @srq: the queue
 * @limit: raise the event when a message leaves fewer receives than this in the queue; 0: disarm
 *
 * Setting the limit does not raise the event even if fewer receives are queued, because a consumer
 * may set it before it posts the first receive. Only a message that needs a receive raises it.
 *
 * Context: any; takes @srq->rq.lock.
 * Return: 0, or -EINVAL: more than the ring has slots; nothing has changed.
 */
int kiw_srq_set_limit(struct kiw_srq *srq, u32 limit)
{
	unsigned long flags;

	if (limit > READ_ONCE(srq->rq.size))
		return -EINVAL;
	spin_lock_irqsave(&srq->rq.lock, flags);
	WRITE_ONCE(srq->limit, limit);
	spin_unlock_irqrestore(&srq->rq.lock, flags);
	return 0;
}

/**
 * kiw_srq_move() - let a shared receive queue use another ring
 * @srq: the queue; may be posted to and fetched from meanwhile; not destroyed
 * @move: the new ring and its size; on success, its @ring becomes the old one
 * @entry: points to the mmap entry of the new ring, which is NULL for a kernel consumer; on
 *	success, to that of the old one
 *
 * The receives in the queue stay, in order, and so does the limit. Those that a process posts
 * meanwhile may be lost. Afterwards the caller frees the old ring on success, the new one on error.
 *
 * Context: process; may sleep; takes @srq->rq.lock, once or, if the format moves receives in
 * portions, several times.
 * Return: 0, or -EBUSY: there are, or seem to be, more receives than would fit, and nothing has
 * changed.
 */
int kiw_srq_move(struct kiw_srq *srq, struct kiw_rq_move *move, struct rdma_user_mmap_entry **entry)
{
	struct kiw_rq *rq = &srq->rq;
	unsigned long flags;
	int ret;

	do {
		cond_resched();
		spin_lock_irqsave(&rq->lock, flags);
		ret = rq->ops->move(rq, move);
		if (!ret)
			swap(srq->user, *entry);
		spin_unlock_irqrestore(&rq->lock, flags);
	} while (ret == -EAGAIN);
	return ret;
}

/**
 * kiw_srq_resize() - change the number of slots of a shared receive queue in the kernel format
 * @srq: the queue; may be posted to and fetched from meanwhile; not destroyed
 * @size: slots, a power of two
 *
 * Context: process; may sleep; takes @srq->rq.lock. The more receives are in the queue, the longer
 * interrupts are off.
 * Return: 0; -ENOMEM; -EBUSY: more than @size receives are in the queue. On error nothing has
 * changed.
 */
int kiw_srq_resize(struct kiw_srq *srq, u32 size)
{
	struct kiw_rq_move move = { .ring = kiw_rq_kernel_ring(size), .size = size };
	struct rdma_user_mmap_entry *entry = NULL;
	int ret;

	if (!move.ring)
		return -ENOMEM;
	ret = kiw_srq_move(srq, &move, &entry);
	kvfree(move.ring);
	return ret;
}
