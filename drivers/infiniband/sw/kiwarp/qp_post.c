// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Work into a QP and completions out of it.
 *
 * Context: posting: any, with whatever locks the consumer holds; so nothing here waits,
 * and no consumer is called. Fetching and completing: in the engines, under the socket
 * lock.
 */
#include "qp.h"

static void qp_run_tx(void *arg)
{
	kiw_tx_run(arg);
}

static void qp_kick_stream(struct kiw_qp *qp)
{
	struct kiw_sock *ks;

	/* A consumer may hold its locks with interrupts off: BHs cannot run behind them. */
	if (in_hardirq() || irqs_disabled()) {
		kiw_qp_run_soon(qp);
		return;
	}
	/* Against a reset by another thread: see kiw_qp_reset(). */
	rcu_read_lock_bh();
	ks = READ_ONCE(qp->ks);
	if (ks && !kiw_sock_run_bh(ks, qp_run_tx, qp))
		kiw_qp_todo(qp, KIW_QP_TODO_RUN);
	rcu_read_unlock_bh();
}

/**
 * kiw_qp_kick() - there is something in the send queue
 * @qp: the QP
 *
 * Sends in the caller's context if that may be. Completions are announced from a
 * tasklet, hence never inside the consumer's own call.
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
 * kiw_qp_post_send() - kernel consumers post send work
 * @qp: the QP
 * @wr: a list of work requests
 * @bad_wr: set to the first that was not taken, on failure
 *
 * Context: any.
 * Return: 0, or -errno: -EINVAL: malformed, or no connection yet; -ENOMEM: queue full;
 * -EOPNOTSUPP: not an operation of this device.
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
 * kiw_qp_post_recv() - kernel consumers post receives
 * @qp: the QP, without a shared receive queue
 * @wr: a list of work requests
 * @bad_wr: set to the first that was not taken, on failure
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
 * kiw_qp_fetch_recv() - take the next receive, from the QP's own queue or the shared one
 * @qp: the QP
 * @wqe: filled
 *
 * Context: socket lock held, BHs off.
 * Return: 1: @wqe is filled; 0: there is none; -EINVAL: it was malformed.
 */
int kiw_qp_fetch_recv(struct kiw_qp *qp, struct kiw_rwqe *wqe)
{
	kiw_sock_assert_held(qp->ks);
	if (qp->srq)
		return kiw_srq_fetch(qp->srq, wqe);
	return kiw_rq_fetch(&qp->rq, wqe);
}

/**
 * kiw_qp_post_completion() - tell the consumer about a work request
 * @qp: the QP
 * @cq: its send or receive CQ
 * @wc: what to tell
 *
 * A completion that finds no place is lost, and with it what the consumer could know of
 * the QP: it ends with a Terminate, and so will the others of @cq.
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
