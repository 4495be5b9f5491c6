// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Posting work requests to a QP, and running the transmit engine for the poster.
 *
 * Context: any, with arbitrary consumer locks held, so nothing here sleeps or calls a consumer.
 */
#include "qp_post.h"

#include "qp/qp.h"

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
	/* Protects against a concurrent reset: see qp_forget_stream(). */
	rcu_read_lock_bh();
	ks = READ_ONCE(qp->ks);
	/* The CPU of a softirq says nothing about where the consumer runs. */
	if (ks && in_task())
		kiw_sock_steer(ks);
	if (ks && !kiw_sock_run_bh(ks, qp_run_tx, qp))
		kiw_qp_todo(qp, KIW_QP_TODO_RUN);
	rcu_read_unlock_bh();
}

/**
 * kiw_qp_kick() - process new entries in the send queue
 * @qp: the QP
 *
 * Sends in the caller's context if possible. A tasklet calls completion handlers, so a consumer
 * that posts with BHs off is not called on this CPU before it has them on again.
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

static void qp_kick_deferred(void *arg)
{
	struct kiw_qp *qp = arg;

	kiw_qp_kick(qp);
	kiw_qp_put(qp);
}

/*
 * If a completion handler of a worker of ib_core posts, process the new entries when the worker has
 * called the handlers of all completions that it has polled: others may post, too. Return: false:
 * this is not such a handler.
 */
static bool qp_kick_later(struct kiw_qp *qp)
{
	struct kiw_cq *cq = kiw_cq_may_defer(qp->rcq) ? qp->rcq : qp->scq;
	int ret;

	if (!kiw_cq_may_defer(cq))
		return false;
	kiw_qp_get(qp);
	ret = kiw_cq_defer(cq, qp_kick_deferred, qp);
	if (ret <= 0)
		kiw_qp_put(qp);
	return ret >= 0;
}

/**
 * kiw_qp_post_send() - post send work requests of a kernel consumer
 * @qp: the QP
 * @wr: list of work requests
 * @bad_wr: on failure, set to the first work request that was not posted
 *
 * Once the last work request is posted, it may complete on another CPU, and the consumer may
 * destroy the QP and its CQs. That waits until the read-side critical section ends here.
 *
 * Context: any.
 * Return: 0, or -errno: -EINVAL: malformed, or no connection yet; -ENOMEM: queue full;
 * -EOPNOTSUPP: the device does not offer this operation, or not on this connection.
 */
int kiw_qp_post_send(struct kiw_qp *qp, const struct ib_send_wr *wr,
		     const struct ib_send_wr **bad_wr)
{
	int ret = kiw_qp_state(qp) == KIW_QPS_IDLE ? -EINVAL : 0;
	const struct ib_send_wr *first = wr, *next;

	rcu_read_lock();
	while (wr && !ret) {
		/* Once it is posted, it may complete on another CPU, and its owner may free it. */
		next = wr->next;
		ret = kiw_sq_post(&qp->sq, wr);
		if (!ret)
			wr = next;
	}
	if (ret)
		*bad_wr = wr;
	if (wr != first && !qp_kick_later(qp))
		kiw_qp_kick(qp);
	rcu_read_unlock();
	return ret;
}

/**
 * kiw_qp_post_recv() - post receives of a kernel consumer
 * @qp: the QP
 * @wr: list of work requests
 * @bad_wr: on failure, set to the first work request that was not posted
 *
 * A read-side critical section protects the QP, as in kiw_qp_post_send().
 *
 * Context: any.
 * Return: 0, or -errno: -EINVAL: malformed, or the QP has a shared receive queue; -ENOMEM: queue
 * full.
 */
int kiw_qp_post_recv(struct kiw_qp *qp, const struct ib_recv_wr *wr,
		     const struct ib_recv_wr **bad_wr)
{
	int ret = qp->srq ? -EINVAL : 0;
	const struct ib_recv_wr *next;

	rcu_read_lock();
	while (wr && !ret) {
		/* As in kiw_qp_post_send() */
		next = wr->next;
		ret = kiw_rq_post(&qp->rq, wr);
		if (!ret)
			wr = next;
	}
	if (ret)
		*bad_wr = wr;
	if (kiw_qp_state(qp) == KIW_QPS_ERROR)
		kiw_qp_todo(qp, KIW_QPA_FLUSH);
	rcu_read_unlock();
	return ret;
}
