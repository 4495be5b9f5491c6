/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Completion queues.
 *
 * Owns: &struct kiw_cq, but not the memory of its ring (cq.c). The ring has the kernel
 * format (polled by kiw_poll_cq()) or that of a user ABI (polled in user space), behind
 * &struct kiw_cq_ops. The engines post completions in softirq or with BHs off. A tasklet
 * calls the consumer's handler, so it holds no lock of an engine, and does not run while
 * the consumer has BHs off on that CPU. A work item reports an overrun.
 */
#ifndef KIW_CQ_H
#define KIW_CQ_H

#include <linux/interrupt.h>
#include <linux/sched.h>
#include <linux/workqueue.h>
#include <rdma/ib_verbs.h>

#include "proto/perr.h"
#include "stats.h"
#include "wr.h"

/**
 * struct kiw_wc - a work completion, in the driver's own form
 * @wr_id: the consumer's cookie
 * @qp: the QP of the work request
 * @byte_len: receives: number of bytes placed, of Immediate Data by the RDMA Write before it; 0 if
 *	it has failed. Other work requests: the length; 0 if malformed or flushed before it began
 * @inv_stag: with @with_inv: the STag the peer invalidated
 * @imm: with @with_imm: the immediate data
 * @term: if it has failed: the Terminate that ended the stream, if any, as in &struct kiw_qp.term
 * @status: &enum kiw_wcs
 * @op: &enum kiw_wr_op
 * @with_inv: a Send with Invalidate arrived
 * @with_imm: Immediate Data arrived
 * @solicited: the peer asked for the consumer's attention
 */
struct kiw_wc {
	u64 wr_id;
	struct ib_qp *qp;
	u32 byte_len;
	union {
		u32 inv_stag;
		__be32 imm;
		u32 term;
	};
	u8 status;
	u8 op;
	bool with_inv;
	bool with_imm;
	bool solicited;
};

struct kiw_cq;

/**
 * struct kiw_cq_move - completions on their way to another ring of the queue
 * @ring: the new ring
 * @size: its slots, a power of two
 * @first: position of the first completion that the consumer had not taken
 * @next: position of the first one that is not in @ring
 * @is_begun: @first and @next are valid
 */
struct kiw_cq_move {
	void *ring;
	u32 size;
	u32 first;
	u32 next;
	bool is_begun;
};

/**
 * struct kiw_cq_ops - a format of completion rings
 * @put: append @wc; &struct kiw_cq.lock held. false: full, nothing written
 * @arm: arm for one event, with enum ib_cq_notify_flags; &struct kiw_cq.lock held. true: there are
 *	completions that the consumer has not taken. NULL: the consumer arms the queue in its ring
 * @take_arm: whether the queue is armed for a completion that is @solicited (or failed);
 *	if so, disarms it; &struct kiw_cq.lock held, after @put
 * @is_unread: whether the consumer has not yet taken the completion written last; a hint,
 *	any context; user ABI only. Called without &struct kiw_cq.lock: a format with @move takes it
 * @move: user ABI only: copy some of the completions that the consumer has not taken to a new
 *	ring; &struct kiw_cq.lock held. 0: that was the last, and the queue uses the new ring now;
 *	-EAGAIN: there are more; -EBUSY: there are too many, and the queue has not changed.
 *	NULL: such a ring is not replaced
 */
struct kiw_cq_ops {
	bool (*put)(struct kiw_cq *cq, const struct kiw_wc *wc);
	bool (*arm)(struct kiw_cq *cq, u32 flags);
	bool (*take_arm)(struct kiw_cq *cq, bool solicited);
	bool (*is_unread)(struct kiw_cq *cq);
	int (*move)(struct kiw_cq *cq, struct kiw_cq_move *move);
};

/**
 * struct kiw_cq - a completion queue
 * @ib: the core's part
 * @lock: protects changes of @ring, @size, @put, @get, @armed, @has_overrun, @user, @poller,
 *	@deferred, @deferred_arg; irq-safe; innermost
 * @ops: format of the ring
 * @ring: entries
 * @size: slots, a power of two
 * @put: free-running index of the next slot to write
 * @get: free-running index of the next slot to poll (kernel format only)
 * @armed: enum ib_cq_notify_flags that the consumer armed with, if it arms by a call
 * @has_overrun: a completion was lost; nothing more is appended
 * @notify: calls the consumer's completion handler
 * @overrun_work: calls the consumer's error handler, then @overrun
 * @overrun: further handling of an overrun; called at most once; process context
 * @poller: the worker of ib_core that handles the completions it has polled, or NULL; only to be
 *	compared with: the task may have ended
 * @deferred: what that worker is to call when it has handled them, or NULL
 * @deferred_arg: its argument
 * @deferred_work: calls it if the worker does not, or sleeps
 * @stats: the device's counters
 * @user: user ABI: the ring's mmap entry; NULL for kernel consumers
 */
struct kiw_cq {
	struct ib_cq ib;
	spinlock_t lock;
	const struct kiw_cq_ops *ops;
	void *ring;
	u32 size;
	u32 put;
	u32 get;
	u32 armed;
	bool has_overrun;
	struct tasklet_struct notify;
	struct work_struct overrun_work;
	void (*overrun)(struct kiw_cq *cq);
	struct task_struct *poller;
	void (*deferred)(void *arg);
	void *deferred_arg;
	struct work_struct deferred_work;
	struct kiw_stats *stats;
	struct rdma_user_mmap_entry *user;
};

static inline struct kiw_cq *to_kiw_cq(struct ib_cq *ibcq)
{
	return container_of(ibcq, struct kiw_cq, ib);
}

/*
 * Arm a queue for more, if its consumer arms it by a call; called with &struct kiw_cq.lock held, as
 * is kiw_cq_take_armed().
 */
static inline void kiw_cq_set_armed(struct kiw_cq *cq, u32 flags)
{
	cq->armed |= flags & IB_CQ_SOLICITED_MASK;
}

/* &struct kiw_cq_ops.take_arm of such a queue */
static inline bool kiw_cq_take_armed(struct kiw_cq *cq, bool solicited)
{
	u32 wanted = solicited ? IB_CQ_SOLICITED | IB_CQ_NEXT_COMP : IB_CQ_NEXT_COMP;

	lockdep_assert_held(&cq->lock);
	if (!(cq->armed & wanted))
		return false;
	cq->armed = 0;
	return true;
}

/**
 * kiw_cq_may_defer() - is this a worker that handles the completions it has polled?
 * @cq: the queue
 *
 * Context: any.
 * Return: true: kiw_cq_defer() may defer something.
 */
static inline bool kiw_cq_may_defer(const struct kiw_cq *cq)
{
	return READ_ONCE(cq->poller) == current && in_task();
}

extern const struct kiw_cq_ops kiw_cq_kernel_ops;

/* Process context */
void *kiw_cq_kernel_ring(u32 size);
void kiw_cq_init(struct kiw_cq *cq, const struct kiw_cq_ops *ops, void *ring, u32 size,
		 struct kiw_stats *stats, void (*overrun)(struct kiw_cq *cq));
void kiw_cq_uninit(struct kiw_cq *cq);
int kiw_cq_resize(struct kiw_cq *cq, u32 size);

/* Any context */
bool kiw_cq_post(struct kiw_cq *cq, const struct kiw_wc *wc);
void kiw_cq_forget_qp(struct kiw_cq *cq, struct ib_qp *qp);
void kiw_cq_run_deferred(struct kiw_cq *cq);
int kiw_cq_defer(struct kiw_cq *cq, void (*run)(void *arg), void *arg);
int kiw_poll_cq(struct ib_cq *ibcq, int num_entries, struct ib_wc *wc);
int kiw_req_notify_cq(struct ib_cq *ibcq, enum ib_cq_notify_flags flags);

#endif /* KIW_CQ_H */
