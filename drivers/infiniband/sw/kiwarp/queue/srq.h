/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Shared receive queues: a receive queue with a limit that raises an event. */
#ifndef KIW_SRQ_H
#define KIW_SRQ_H

#include "stats.h"
#include "wr.h"

/**
 * struct kiw_srq - a shared receive queue
 * @ib: the core's part
 * @rq: the queue itself
 * @limit: when a message leaves fewer receives than this, IB_EVENT_SRQ_LIMIT_REACHED is disarmed
 *	and raised; 0: disarmed; written under @rq.lock
 * @event_work: raises the event in process context, outside every lock
 * @stats: the device's counters
 * @user: user ABI: the ring's mmap entry; NULL for kernel consumers; replaced under @rq.lock
 */
struct kiw_srq {
	struct ib_srq ib;
	struct kiw_rq rq;
	u32 limit;
	struct work_struct event_work;
	struct kiw_stats *stats;
	struct rdma_user_mmap_entry *user;
};

static inline struct kiw_srq *to_kiw_srq(struct ib_srq *ibsrq)
{
	return container_of(ibsrq, struct kiw_srq, ib);
}

/* Does its ring belong to a process? */
static inline bool kiw_srq_is_user(const struct kiw_srq *srq)
{
	return srq->rq.ops != &kiw_rq_kernel_ops;
}

void kiw_srq_init(struct kiw_srq *srq, const struct kiw_rq_ops *ops, void *ring, u32 size,
		  u8 max_sge, struct kiw_stats *stats);
void kiw_srq_uninit(struct kiw_srq *srq);
int kiw_srq_fetch(struct kiw_srq *srq, struct kiw_rwqe *wqe);
int kiw_srq_set_limit(struct kiw_srq *srq, u32 limit);
int kiw_srq_move(struct kiw_srq *srq, struct kiw_rq_move *move,
		 struct rdma_user_mmap_entry **entry);
int kiw_srq_resize(struct kiw_srq *srq, u32 size);

#endif /* KIW_SRQ_H */
