// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * How send work requests end: TCP has taken them, the peer refuses them, they are flushed, or tx.c
 * or rx.c has marked them as done.
 *
 * A work request counts as sent when TCP has its last byte. The payload of a Send or Write was
 * copied, so at that moment its buffers belong to the consumer again. If pages were lent instead,
 * TCP must also have returned them. An RDMA Read or an Atomic Operation is done when its Response
 * has been placed. Completions are posted in the order of posting, regardless of the order in which
 * work requests end (RFC 5040 5.5).
 *
 * Context: socket lock held, BHs off; kiw_tx_flush() also runs without a socket.
 */
#include "tx.h"

#include "qp/qp.h"

/*
 * Were pages of the work request lent that have not been returned? Whatever its status, its owner
 * may write to them when it completes. If it was not built completely, the last loan is its own.
 */
static bool tx_is_lent(const struct kiw_qp *qp, const struct kiw_pend *pend)
{
	u32 last;

	if (!pend->is_lent)
		return false;
	last = pend->is_built ? pend->loan : qp->tx.lent;
	return (s32)(qp->tx.returned - last) < 0;
}

/* Every work request that was fetched ends here, unless a reset drops it. */
static void tx_post_completion(struct kiw_qp *qp, const struct kiw_pend *pend)
{
	struct kiw_wc wc = {
		.wr_id = pend->wr_id,
		.qp = &qp->ib,
		.byte_len = pend->length,
		.status = pend->status,
		.op = pend->op,
	};

	kiw_sq_done(&qp->sq);
	if (pend->is_signaled || pend->status != KIW_WCS_SUCCESS)
		kiw_qp_post_completion(qp, qp->scq, &wc);
}

/**
 * kiw_tx_complete() - post the completions that are next in order
 * @qp: the QP
 *
 * Context: socket lock held if there is a socket, BHs off.
 */
void kiw_tx_complete(struct kiw_qp *qp)
{
	struct kiw_pend_ring *ring = &qp->tx.pend;
	struct kiw_pend *pend;

	kiw_sock_assert_held_bh(qp->ks);
	while (!kiw_pend_is_empty(ring)) {
		pend = kiw_pend_at(ring, ring->get);
		if (!pend->is_done || tx_is_lent(qp, pend))
			break;
		tx_post_completion(qp, pend);
		/* Work requests that never reached TCP complete as well. */
		if (ring->taken == ring->get)
			ring->taken++;
		ring->get++;
	}
}

/**
 * kiw_tx_taken() - account for what TCP has taken
 * @qp: the QP
 *
 * A work request counts as sent when TCP has its last byte and has returned its pages.
 *
 * Context: socket lock held, BHs off.
 */
void kiw_tx_taken(struct kiw_qp *qp)
{
	struct kiw_pend_ring *ring = &qp->tx.pend;
	u32 end = qp->tx.offset - qp->tx.buf.len;
	struct kiw_pend *pend;

	kiw_sock_assert_held_bh(qp->ks);
	for (; ring->taken != ring->put; ring->taken++) {
		pend = kiw_pend_at(ring, ring->taken);
		if (!kiw_pend_is_sent(pend, end) || tx_is_lent(qp, pend))
			break;
		if (!kiw_wr_has_response(pend->op))
			pend->is_done = true;
	}
	kiw_tx_complete(qp);
}

/*
 * Does @pend have a message sequence number of queue @qn? A Read or Send that was sent as an RTR
 * has no entry, but it comes before all others.
 */
static bool tx_is_of_queue(const struct kiw_pend *pend, u32 qn)
{
	if (qn == KIW_QN_READ_REQ)
		return kiw_wr_has_response(pend->op);
	return qn == KIW_QN_SEND && (pend->op == KIW_WR_SEND || pend->op == KIW_WR_SEND_INV ||
				     pend->op == KIW_WR_WRITE_IMM);
}

/* Is the current message a Send, of which FPDUs have been built, but not the last one? */
static bool tx_is_in_send(const struct kiw_tx *tx)
{
	return tx->kind == KIW_TX_WR && tx->wqe.op <= KIW_WR_SEND_INV && tx->sent;
}

/*
 * The work request that is message @msn of a queue, has been built at least in part, and has not
 * completed. If a Send is in progress, the engine's number is its own, else that of the next one.
 */
static struct kiw_pend *tx_find_msn(struct kiw_qp *qp, u32 qn, u32 msn)
{
	struct kiw_pend_ring *ring = &qp->tx.pend;
	struct kiw_pend *pend;
	u32 pos, at;

	if (qn >= KIW_QN_COUNT)
		return NULL;
	at = qp->tx.msn[qn];
	if (qn == KIW_QN_SEND && at == msn && tx_is_in_send(&qp->tx))
		return kiw_pend_at(ring, ring->put - 1);
	for (pos = ring->put; pos != ring->get; pos--) {
		pend = kiw_pend_at(ring, pos - 1);
		if (!pend->is_built || !tx_is_of_queue(pend, qn))
			continue;
		if (--at == msn)
			return pend;
	}
	return NULL;
}

/* The oldest unfinished work request, or the oldest unfinished Read. */
static struct kiw_pend *tx_find_oldest(struct kiw_qp *qp, bool is_read)
{
	struct kiw_pend_ring *ring = &qp->tx.pend;
	struct kiw_pend *pend;
	u32 pos;

	for (pos = ring->get; pos != ring->put; pos++) {
		pend = kiw_pend_at(ring, pos);
		if (!pend->is_done && (!is_read || kiw_wr_is_read(pend->op)))
			return pend;
	}
	return NULL;
}

/**
 * kiw_tx_refused() - assign the status of the peer's Terminate to a work request
 * @qp: the QP
 * @term: the peer's Terminate
 * @status: status of its completion, which is posted by the flush
 *
 * If the Terminate quotes a header with an MSN, the work request is the one with that MSN, of which
 * at least one FPDU was built. If there is none, or it has completed, and the Terminate quotes a
 * Read Request, the work request is the oldest unfinished Read. If that does not apply, or there is
 * no such Read, it is the oldest unfinished one of any kind. If there is none either, nothing
 * happens.
 *
 * Context: socket lock held, BHs off.
 */
void kiw_tx_refused(struct kiw_qp *qp, const struct kiw_term *term, enum kiw_wcs status)
{
	struct kiw_pend *pend = NULL;

	kiw_sock_assert_held_bh(qp->ks);
	if (term->is_untagged)
		pend = tx_find_msn(qp, term->qn, term->msn);
	if (!pend && term->is_read)
		pend = tx_find_oldest(qp, true);
	if (!pend)
		pend = tx_find_oldest(qp, false);
	if (!pend)
		return;
	pend->status = status;
	pend->is_done = true;
}

static void tx_flush_pend(struct kiw_qp *qp)
{
	struct kiw_pend_ring *ring = &qp->tx.pend;
	struct kiw_pend *pend;
	u32 pos;

	for (pos = ring->get; pos != ring->put; pos++) {
		pend = kiw_pend_at(ring, pos);
		if (pend->is_done)
			continue;
		pend->status = KIW_WCS_FLUSHED;
		pend->is_done = true;
	}
	kiw_tx_complete(qp);
	ring->taken = ring->put;
}

/**
 * kiw_tx_flush() - complete send work requests as flushed
 * @qp: the QP, in ERROR
 * @left: maximum number of send queue entries to complete, beside those that the engine has taken
 *	out of the queue already; not 0
 *
 * Older work requests come first, so a consumer that drains its QP sees the completion of its
 * drain request last.
 *
 * Context: process; socket lock held if there is a socket, BHs off; only called by the QP's work
 * item or kiw_qp_reset().
 * Return: true: there may be more; call again.
 */
bool kiw_tx_flush(struct kiw_qp *qp, u32 left)
{
	struct kiw_tx *tx = &qp->tx;
	struct kiw_pend pend = { .status = KIW_WCS_FLUSHED };

	kiw_sock_assert_held_bh(qp->ks);
	kiw_txbuf_drop(&tx->buf);
	tx_flush_pend(qp);
	if (tx->has_wqe && tx->kind != KIW_TX_WR && tx->kind != KIW_TX_IMMEDIATE) {
		pend.wr_id = tx->wqe.wr_id;
		pend.op = tx->wqe.op;
		tx_post_completion(qp, &pend);
	}
	tx->has_wqe = false;
	tx->kind = KIW_TX_NONE;
	tx->term_len = 0;
	tx->orq.get = tx->orq.put;
	tx->inq.get = tx->inq.put;
	while (kiw_sq_fetch(&qp->sq, &tx->wqe)) {
		pend.wr_id = tx->wqe.wr_id;
		pend.op = tx->wqe.op;
		tx_post_completion(qp, &pend);
		if (!--left)
			return true;
	}
	return false;
}
