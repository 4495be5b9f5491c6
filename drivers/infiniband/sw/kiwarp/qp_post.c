// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Posting work requests to a QP, fetching them, and completing them.
 *
 * Contexts: posting: any, with arbitrary consumer locks held, so nothing here waits or calls a
 * consumer. Fetching and completing: in the engines, under the socket lock.
 */
#include "qp.h"

static void qp_run_tx(void *arg)
{
	kiw_tx_run(arg);
}

static void qp_kick_stream(struct kiw_qp *qp)
{
	struct kiw_sock *ks;

	/* Consumers may post with interrupts off, where BHs must not be enabled again. */
	if (in_hardirq() || irqs_disabled()) {
		kiw_qp_run_soon(qp);
		return;
	}
	/* Protects against a concurrent reset: see kiw_qp_reset(). */
	rcu_read_lock_bh();
	ks = READ_ONCE(qp->ks);
	if (ks && !kiw_sock_run_bh(ks, qp_run_tx, qp))
		kiw_qp_todo(qp, KIW_QP_TODO_RUN);
	rcu_read_unlock_bh();
}

/**
 * kiw_qp_kick() - process new entries in the send queue
 * @qp: the QP
 *
 * Sends in the caller's context if possible. A tasklet calls completion handlers, so they never
 * run inside the consumer's own call.
 *
 * Context: any; no lock of this driver held.
 */
void kiw_qp_kick(struct kiw_qp *qp)
{
	switch (kiw_qp_state(qp)) {
	case KIW_QPS_IDLE:
		break;
	case KIW_QPS_ERROR:
		kiw_qp_todo(qp, KIW_QPA_FLUSH);
		break;
	default:
		qp_kick_stream(qp);
	}
}

/**
 * kiw_qp_post_send() - post send work requests of a kernel consumer
 * @qp: the QP
 * @wr: list of work requests
 * @bad_wr: on failure, set to the first work request that was not posted
 *
 * Context: any.
 * Return: 0, or -errno: -EINVAL: malformed, or no connection yet; -ENOMEM: queue full;
 * -EOPNOTSUPP: the device does not offer this operation.
 */
int kiw_qp_post_send(struct kiw_qp *qp, const struct ib_send_wr *wr,
		     const struct ib_send_wr **bad_wr)
{
	int ret = kiw_qp_state(qp) == KIW_QPS_IDLE ? -EINVAL : 0;
	const struct ib_send_wr *first = wr;

	while (wr && !ret) {
		ret = kiw_sq_post(&qp->sq, wr);
		if (!ret)
			wr = wr->next;
	}
	if (ret)
		*bad_wr = wr;
	if (wr != first)
		kiw_qp_kick(qp);
	return ret;
}

/**
 * kiw_qp_post_recv() - post receives of a kernel consumer
 * @qp: the QP, without a shared receive queue
 * @wr: list of work requests
 * @bad_wr: on failure, set to the first work request that was not posted
 *
 * Context: any.
 * Return: 0, or -errno: -EINVAL: malformed; -ENOMEM: queue full.
 */
int kiw_qp_post_recv(struct kiw_qp *qp, const struct ib_recv_wr *wr,
		     const struct ib_recv_wr **bad_wr)
{
	int ret = qp->srq ? -EINVAL : 0;

	while (wr && !ret) {
		ret = kiw_rq_post(&qp->rq, wr);
		if (!ret)
			wr = wr->next;
	}
	if (ret)
		*bad_wr = wr;
	if (kiw_qp_state(qp) == KIW_QPS_ERROR)
		kiw_qp_todo(qp, KIW_QPA_FLUSH);
	return ret;
}

/**
 * kiw_qp_fetch_recv() - take the next receive from the QP's own queue or the shared one
 * @qp: the QP
 * @wqe: filled
 *
 * Context: socket lock held, BHs off.
 * Return: 1: @wqe is filled; 0: the queue is empty; -EINVAL: the receive was malformed.
 */
int kiw_qp_fetch_recv(struct kiw_qp *qp, struct kiw_rwqe *wqe)
{
	kiw_sock_assert_held(qp->ks);
	if (qp->srq)
		return kiw_srq_fetch(qp->srq, wqe);
	return kiw_rq_fetch(&qp->rq, wqe);
}

/**
 * kiw_qp_post_completion() - post a completion to a CQ
 * @qp: the QP
 * @cq: its send or receive CQ
 * @wc: the completion
 *
 * If the CQ is full, the completion is lost and the consumer can no longer know the state of the
 * QP. So the QP ends with a Terminate, and so will the other QPs of @cq.
 *
 * Context: socket lock held if there is a stream, BHs off.
 */
void kiw_qp_post_completion(struct kiw_qp *qp, struct kiw_cq *cq, const struct kiw_wc *wc)
{
	kiw_sock_assert_held(qp->ks);
	if (kiw_cq_post(cq, wc))
		return;
	kiw_qp_fault(qp, KIW_PERR_RDMAP_CATASTROPHIC, NULL, 0);
	kiw_qp_event(qp, KIW_QPE_FATAL);
}
