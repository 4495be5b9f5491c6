// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Completion queues: posting, polling, arming, notifying.
 *
 * Owns: the kernel format of completion rings, which is an array of &struct kiw_wc, and the
 * translation of &struct kiw_wc to &struct ib_wc. The ring's memory belongs to the caller of
 * kiw_cq_init(). kiw_cq_resize() and kiw_uapi_resize_cq() may replace the ring, so when the queue
 * is destroyed the caller frees the ring that @ring points to by then.
 *
 * Contexts: completions are posted and polled in any context. Only the queue's tasklet and,
 * for an overrun, its work item call the consumer's handlers: they take no lock of ours around the
 * call, and do not run while the consumer has BHs off on that CPU, nor after kiw_cq_uninit() has
 * returned. Whoever polls or arms the queue also calls what was deferred until then.
 *
 * Locks: that of the queue, which is innermost.
 *
 * A queue that was overrun is dead: it has lost a completion, so the consumer cannot know which
 * work requests have completed. Completions already in the ring can still be polled.
 */
#include <linux/slab.h>
#include <linux/string.h>

#include "cq.h"
#include "proto/ring.h"
#include "trace.h"

static const enum ib_wc_status status_table[KIW_WCS_COUNT] = {
	[KIW_WCS_SUCCESS]	= IB_WC_SUCCESS,
	[KIW_WCS_LOC_LEN]	= IB_WC_LOC_LEN_ERR,
	[KIW_WCS_LOC_PROT]	= IB_WC_LOC_PROT_ERR,
	[KIW_WCS_LOC_QP_OP]	= IB_WC_LOC_QP_OP_ERR,
	[KIW_WCS_FLUSHED]	= IB_WC_WR_FLUSH_ERR,
	[KIW_WCS_BAD_RESP]	= IB_WC_BAD_RESP_ERR,
	[KIW_WCS_REM_ACCESS]	= IB_WC_REM_ACCESS_ERR,
	[KIW_WCS_REM_INV_REQ]	= IB_WC_REM_INV_REQ_ERR,
	[KIW_WCS_REM_OP]	= IB_WC_REM_OP_ERR,
	[KIW_WCS_MEM_OP]	= IB_WC_MW_BIND_ERR,
	[KIW_WCS_GENERAL]	= IB_WC_GENERAL_ERR,
};

static const enum ib_wc_opcode opcode_table[] = {
	[KIW_WR_SEND]		= IB_WC_SEND,
	[KIW_WR_SEND_INV]	= IB_WC_SEND,
	[KIW_WR_WRITE]		= IB_WC_RDMA_WRITE,
	[KIW_WR_WRITE_IMM]	= IB_WC_RDMA_WRITE,
	[KIW_WR_READ]		= IB_WC_RDMA_READ,
	[KIW_WR_READ_INV]	= IB_WC_RDMA_READ,
	[KIW_WR_FETCH_ADD]	= IB_WC_FETCH_ADD,
	[KIW_WR_CMP_SWAP]	= IB_WC_COMP_SWAP,
	[KIW_WR_MASKED_FETCH_ADD] = IB_WC_MASKED_FETCH_ADD,
	[KIW_WR_MASKED_CMP_SWAP] = IB_WC_MASKED_COMP_SWAP,
	[KIW_WR_REG_MR]		= IB_WC_REG_MR,
	[KIW_WR_LOCAL_INV]	= IB_WC_LOCAL_INV,
	[KIW_WR_BIND_MW]	= IB_WC_BIND_MW,
	[KIW_WR_RECV]		= IB_WC_RECV,
	[KIW_WR_RECV_IMM]	= IB_WC_RECV_RDMA_WITH_IMM,
};

static void cq_overrun_work(struct work_struct *work)
{
	struct kiw_cq *cq = container_of(work, struct kiw_cq, overrun_work);
	struct ib_event event = {
		.device = cq->ib.device,
		.element.cq = &cq->ib,
		.event = IB_EVENT_CQ_ERR,
	};

	if (cq->ib.event_handler)
		cq->ib.event_handler(&event, cq->ib.cq_context);
	cq->overrun(cq);
}

/**
 * kiw_cq_run_deferred() - call what was deferred, if anything
 * @cq: the queue
 *
 * Context: any; takes @cq->lock.
 */
void kiw_cq_run_deferred(struct kiw_cq *cq)
{
	void (*run)(void *arg);
	unsigned long flags;
	void *arg;

	if (!READ_ONCE(cq->deferred))
		return;
	spin_lock_irqsave(&cq->lock, flags);
	run = cq->deferred;
	arg = cq->deferred_arg;
	WRITE_ONCE(cq->deferred, NULL);
	spin_unlock_irqrestore(&cq->lock, flags);
	if (run)
		run(arg);
}

static void cq_deferred_work(struct work_struct *work)
{
	kiw_cq_run_deferred(container_of(work, struct kiw_cq, deferred_work));
}

static void cq_notify(struct tasklet_struct *tasklet)
{
	struct kiw_cq *cq = from_tasklet(cq, tasklet, notify);

	if (cq->ib.comp_handler)
		cq->ib.comp_handler(&cq->ib, cq->ib.cq_context);
}

/**
 * kiw_cq_kernel_ring() - allocate a completion ring in the kernel format
 * @size: slots
 *
 * Context: process; may sleep.
 * Return: the ring, zeroed, to be freed with kvfree(), or NULL.
 */
void *kiw_cq_kernel_ring(u32 size)
{
	return kvcalloc(size, sizeof(struct kiw_wc), GFP_KERNEL);
}

/**
 * kiw_cq_init() - initialize a completion queue
 * @cq: the queue
 * @ops: format of @ring
 * @ring: empty; stays the caller's, valid until kiw_cq_uninit() has returned or another ring has
 *	replaced it
 * @size: slots of @ring, a power of two
 * @stats: the device's counters
 * @overrun: called at most once, when the queue was overrun, after the consumer's handler, in
 *	process context
 *
 * Context: process.
 */
void kiw_cq_init(struct kiw_cq *cq, const struct kiw_cq_ops *ops, void *ring, u32 size,
		 struct kiw_stats *stats, void (*overrun)(struct kiw_cq *cq))
{
	spin_lock_init(&cq->lock);
	cq->ops = ops;
	cq->ring = ring;
	cq->size = size;
	cq->put = 0;
	cq->get = 0;
	cq->armed = 0;
	cq->has_overrun = false;
	cq->stats = stats;
	cq->overrun = overrun;
	tasklet_setup(&cq->notify, cq_notify);
	INIT_WORK(&cq->overrun_work, cq_overrun_work);
	cq->poller = NULL;
	cq->deferred = NULL;
	INIT_WORK(&cq->deferred_work, cq_deferred_work);
}

/**
 * kiw_cq_uninit() - tear down a completion queue
 * @cq: the queue; no QP uses it any more, so nothing is posted to it
 *
 * Afterwards neither of the consumer's handlers is running or will be called. The caller
 * frees the ring.
 *
 * The core itself may be the consumer and poll from its own work item (ib_alloc_cq()).
 * ib_free_cq() cancels that work item before it calls us. If our tasklet was still scheduled at
 * that time, it may have queued the work item again. The core frees the queue next, so cancel the
 * work item here, too.
 *
 * Context: process; may sleep.
 */
void kiw_cq_uninit(struct kiw_cq *cq)
{
	tasklet_kill(&cq->notify);
	if (cq->ib.comp_wq)
		cancel_work_sync(&cq->ib.work);
	cancel_work_sync(&cq->overrun_work);
	/* What was deferred holds a QP, and all QPs are gone. */
	WARN_ON_ONCE(cq->deferred);
	cancel_work_sync(&cq->deferred_work);
}

static void cq_tell_overrun(struct kiw_cq *cq)
{
	kiw_count(cq->stats, KIW_STAT_CQ_OVERRUNS);
	trace_kiw_cq_overrun(dev_name(&cq->ib.device->dev), cq->ib.res.id);
	schedule_work(&cq->overrun_work);
}

/**
 * kiw_cq_post() - append a completion
 * @cq: the queue
 * @wc: the completion; copied
 *
 * Notifies the consumer if @wc was appended and the queue is armed for such a completion. The first
 * overrun schedules a work item, which raises IB_EVENT_CQ_ERR, if the consumer has a handler for
 * events, and then calls @cq->overrun. Later overruns do neither.
 *
 * Context: any; takes @cq->lock.
 * Return: false when the queue is, or has just been, overrun: @wc is lost, and its QP must
 * not continue.
 */
bool kiw_cq_post(struct kiw_cq *cq, const struct kiw_wc *wc)
{
	bool is_solicited = wc->solicited || wc->status != KIW_WCS_SUCCESS;
	bool was_overrun, is_posted, is_due;
	unsigned long flags;

	if (wc->status != KIW_WCS_SUCCESS)
		kiw_count_failed(cq->stats, wc->status);
	spin_lock_irqsave(&cq->lock, flags);
	was_overrun = cq->has_overrun;
	is_posted = !was_overrun && cq->ops->put(cq, wc);
	cq->has_overrun = !is_posted;
	is_due = is_posted && cq->ops->take_arm(cq, is_solicited);
	spin_unlock_irqrestore(&cq->lock, flags);

	if (is_due)
		tasklet_schedule(&cq->notify);
	if (!is_posted && !was_overrun)
		cq_tell_overrun(cq);
	return is_posted;
}

/**
 * kiw_cq_forget_qp() - drop the completions of a QP that is about to be freed
 * @cq: the queue
 * @qp: the QP; it posts no more completions
 *
 * A completion points to its QP, so a kernel consumer must not poll one after the QP is
 * gone. The other completions keep their order. In user rings a completion has the number of
 * the QP instead.
 *
 * Context: any; takes @cq->lock.
 */
void kiw_cq_forget_qp(struct kiw_cq *cq, struct ib_qp *qp)
{
	struct kiw_wc *ring;
	unsigned long flags;
	u32 from, to;

	if (cq->ops != &kiw_cq_kernel_ops)
		return;
	spin_lock_irqsave(&cq->lock, flags);
	ring = cq->ring;
	to = cq->get;
	for (from = cq->get; from != cq->put; from++) {
		const struct kiw_wc *wc = &ring[kiw_ring_slot(from, cq->size)];

		if (wc->qp == qp)
			continue;
		if (from != to)
			ring[kiw_ring_slot(to, cq->size)] = *wc;
		to++;
	}
	cq->put = to;
	spin_unlock_irqrestore(&cq->lock, flags);
}

/*
 * Move all completions to @ring, unless it is too small.
 * Return: the ring that is not used now: the old one, or @ring.
 */
static struct kiw_wc *cq_move_locked(struct kiw_cq *cq, struct kiw_wc *ring, u32 size)
{
	struct kiw_wc *old = cq->ring;
	u32 i;

	lockdep_assert_held(&cq->lock);
	if (kiw_ring_used(cq->put, cq->get) > size)
		return ring;
	for (i = cq->get; i != cq->put; i++)
		ring[kiw_ring_slot(i, size)] = old[kiw_ring_slot(i, cq->size)];
	cq->ring = ring;
	cq->size = size;
	cq->ib.cqe = size;
	return old;
}

/**
 * kiw_cq_resize() - change the number of slots of a queue in the kernel format
 * @cq: the queue; may be posted to, polled and armed meanwhile
 * @size: slots, a power of two
 *
 * The completions in the queue stay, in order, and so does its arming. A queue that was
 * overrun stays dead. A new ring replaces the old one, which is freed.
 *
 * Context: process; may sleep; takes @cq->lock. The more completions wait to be polled, the longer
 * interrupts are off.
 * Return: 0; -ENOMEM; -EBUSY: more completions wait than @size. On error nothing has changed.
 */
int kiw_cq_resize(struct kiw_cq *cq, u32 size)
{
	struct kiw_wc *ring = kiw_cq_kernel_ring(size);
	struct kiw_wc *unused;
	unsigned long flags;

	if (!ring)
		return -ENOMEM;
	spin_lock_irqsave(&cq->lock, flags);
	unused = cq_move_locked(cq, ring, size);
	spin_unlock_irqrestore(&cq->lock, flags);
	kvfree(unused);
	return unused == ring ? -EBUSY : 0;
}

static void cq_translate(struct ib_wc *to, const struct kiw_wc *from)
{
	memset(to, 0, sizeof(*to));
	to->wr_id = from->wr_id;
	to->qp = from->qp;
	to->status = status_table[from->status];
	to->opcode = opcode_table[from->op];
	to->byte_len = from->byte_len;
	to->port_num = 1;
	if (from->status != KIW_WCS_SUCCESS) {
		to->vendor_err = from->term;
	} else if (from->with_inv) {
		to->wc_flags = IB_WC_WITH_INVALIDATE;
		to->ex.invalidate_rkey = from->inv_stag;
	} else if (from->with_imm) {
		to->wc_flags = IB_WC_WITH_IMM;
		to->ex.imm_data = from->imm;
	}
}

/*
 * Is the queue polled by a bound worker of ib_core (%IB_POLL_WORKQUEUE), which runs now? It calls
 * the handlers of up to 16 completions, and then polls again, arms the queue, or queues its work
 * item again.
 */
static bool cq_is_polled_by_worker(const struct kiw_cq *cq)
{
	return cq->ib.comp_wq && cq->ib.poll_ctx == IB_POLL_WORKQUEUE && in_task() &&
	       current->flags & PF_WQ_WORKER;
}

/**
 * kiw_cq_defer() - defer something until the consumer has handled what it has polled
 * @cq: a queue of a kernel consumer
 * @run: function to call; it may poll @cq
 * @arg: its argument, which must stay valid until the call
 *
 * Completion handlers of a kernel consumer often post a work request each. So what sending takes
 * can be done once for all of them. If the handler sleeps, or the worker does not return to the
 * queue, a work item calls @run. That work item is in the workqueue of the worker, which starts it
 * when the worker sleeps or has ended. So a handler must not wait for what it has posted without
 * sleeping.
 *
 * Context: any; takes @cq->lock.
 * Return: 1: @run will be called with @arg exactly once, by whoever polls or arms @cq next, in the
 * context of that, or by that work item; 0: an earlier call of this function has seen to that;
 * -EBUSY: not deferred, because this is not such a worker, or something else is deferred already.
 */
int kiw_cq_defer(struct kiw_cq *cq, void (*run)(void *arg), void *arg)
{
	unsigned long flags;
	int ret = -EBUSY;

	if (!kiw_cq_may_defer(cq))
		return -EBUSY;
	spin_lock_irqsave(&cq->lock, flags);
	if (!cq->deferred) {
		cq->deferred_arg = arg;
		WRITE_ONCE(cq->deferred, run);
		queue_work(cq->ib.comp_wq, &cq->deferred_work);
		ret = 1;
	} else if (cq->deferred == run && cq->deferred_arg == arg) {
		ret = 0;
	}
	spin_unlock_irqrestore(&cq->lock, flags);
	return ret;
}

/**
 * kiw_poll_cq() - take completions, oldest first
 * @ibcq: a kernel consumer's queue; user space polls a mapped ring itself
 * @num_entries: capacity of @wc
 * @wc: set to the completions
 *
 * Calls what was deferred first, which may add completions.
 *
 * Context: any; takes the queue's lock.
 * Return: completions taken, 0..@num_entries, or -EOPNOTSUPP.
 */
int kiw_poll_cq(struct ib_cq *ibcq, int num_entries, struct ib_wc *wc)
{
	struct kiw_cq *cq = to_kiw_cq(ibcq);
	const struct kiw_wc *ring;
	unsigned long flags;
	int n = 0;

	if (cq->ops != &kiw_cq_kernel_ops)
		return -EOPNOTSUPP;
	kiw_cq_run_deferred(cq);
	spin_lock_irqsave(&cq->lock, flags);
	ring = cq->ring;
	while (n < num_entries && !kiw_ring_empty(cq->put, cq->get)) {
		cq_translate(&wc[n++], &ring[kiw_ring_slot(cq->get, cq->size)]);
		cq->get++;
	}
	WRITE_ONCE(cq->poller, n && cq_is_polled_by_worker(cq) ? current : NULL);
	spin_unlock_irqrestore(&cq->lock, flags);
	return n;
}

/**
 * kiw_req_notify_cq() - arm a queue for one call of its completion handler
 * @ibcq: the queue of a kernel consumer, or of a process whose ABI arms by a system call
 * @flags: IB_CQ_SOLICITED or IB_CQ_NEXT_COMP, optionally with IB_CQ_REPORT_MISSED_EVENTS
 *
 * A failed completion counts as a solicited one. A queue that is armed for the next
 * completion stays so when it is armed for a solicited one. Calls what was deferred first, which
 * may add completions.
 *
 * Context: any; takes the queue's lock.
 * Return: 1: armed, but completions are waiting that will not raise an event (only with
 * IB_CQ_REPORT_MISSED_EVENTS); 0: armed; or -EOPNOTSUPP.
 */
int kiw_req_notify_cq(struct ib_cq *ibcq, enum ib_cq_notify_flags flags)
{
	struct kiw_cq *cq = to_kiw_cq(ibcq);
	unsigned long irq_flags;
	bool has_missed;

	if (!cq->ops->arm)
		return -EOPNOTSUPP;
	kiw_cq_run_deferred(cq);
	spin_lock_irqsave(&cq->lock, irq_flags);
	WRITE_ONCE(cq->poller, NULL);
	has_missed = cq->ops->arm(cq, flags);
	spin_unlock_irqrestore(&cq->lock, irq_flags);
	return has_missed && flags & IB_CQ_REPORT_MISSED_EVENTS;
}

static bool cq_kernel_put(struct kiw_cq *cq, const struct kiw_wc *wc)
{
	struct kiw_wc *ring = cq->ring;

	lockdep_assert_held(&cq->lock);
	if (kiw_ring_full(cq->put, cq->get, cq->size))
		return false;
	ring[kiw_ring_slot(cq->put, cq->size)] = *wc;
	cq->put++;
	return true;
}

static bool cq_kernel_arm(struct kiw_cq *cq, u32 flags)
{
	lockdep_assert_held(&cq->lock);
	kiw_cq_set_armed(cq, flags);
	return !kiw_ring_empty(cq->put, cq->get);
}

const struct kiw_cq_ops kiw_cq_kernel_ops = {
	.put = cq_kernel_put,
	.arm = cq_kernel_arm,
	.take_arm = kiw_cq_take_armed,
};
