// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The transmit engine.
 *
 * A run repeats two steps until there is nothing to send, TCP has no room, memory is short, the
 * budget is used up, or the stream or the QP has ended: build a batch of FPDUs, and hand it to TCP,
 * usually in one call. tx_done.c completes work requests.
 *
 * Messages are not interleaved: they are sent in the order in which they were submitted, and the
 * segments of each in increasing order (RFC 5041 5.3). Between messages the send queue and the
 * peer's RDMA Reads and Atomic Operations take turns.
 *
 * Context: socket lock held, BHs off, unless a function says otherwise; &struct kiw_tx is protected
 * by the socket lock or, without a socket, by the QP's mutex.
 */
#include "tx.h"

#include <linux/random.h>

#include "mem/mr_fast.h"
#include "mem/mr_window.h"
#include "mem/sgl.h"
#include "proto/ddp.h"
#include "proto/mpa.h"
#include "proto/mpa_neg.h"
#include "proto/ring.h"
#include "proto/term.h"
#include "qp/qp.h"
#include "trace.h"
#include "tx_ext.h"
#include "tx_fpdu.h"
#include "tx_loan.h"

/* Batches per run; limits how long one QP holds the CPU */
#define TX_RUN_BATCHES	8

/* Work requests per batch that send nothing; likewise */
#define TX_BATCH_LOCAL	64

/*
 * Maximum size of a large FPDU with a CRC, in bytes. This driver goes over it twice at either end,
 * for the copy and for the CRC. The second time it should still be in the first-level cache.
 */
#define TX_LARGE_CRC	8192

/* Minimum length of a message whose pages are lent, in bytes */
#define TX_LEND_MIN	32768

/* STag for an RTR or an announcement: an RNIC might refuse 0 even if nothing is accessed */
#define TX_RTR_STAG	1

/* Append the Terminate: one segment on queue 2, and nothing after it, RFC 5040 4.8 and 5.4. */
static void tx_add_terminate(struct kiw_qp *qp)
{
	struct kiw_tx *tx = &qp->tx;

	if (!kiw_tx_add_untagged(qp, KIW_RDMAP_TERMINATE, tx->term, tx->term_len))
		return;
	tx->term_len = 0;
	tx->has_terminated = true;
	kiw_count(qp->stats, KIW_STAT_TX_TERMINATES);
}

/* Append an RDMA Write without payload, whose STag and TO the peer must not check: RFC 5041 5.2. */
static bool tx_add_empty_write(struct kiw_qp *qp, u64 to)
{
	struct kiw_tx_fpdu fpdu = { .is_tagged = true };
	struct kiw_tx_source none;

	if (!kiw_tx_begin_fpdu(qp, &fpdu, 0, KIW_TX_ROOM_SHORT))
		return false;
	kiw_ddp_encode_tagged(&fpdu.tagged, qp->conn.version, KIW_RDMAP_WRITE, true, 0,
			      TX_RTR_STAG, to);
	kiw_tx_source_bytes(&none, NULL, 0);
	return kiw_tx_end_fpdu(qp, &fpdu, &none);
}

/* The Read takes its place in the ORQ like any other, but completes no work request. */
static bool tx_add_rtr_read(struct kiw_qp *qp)
{
	const struct kiw_read_req req = { .sink_stag = TX_RTR_STAG, .src_stag = TX_RTR_STAG };
	struct kiw_wire_read_req wire;
	struct kiw_read *read;

	kiw_read_req_encode(&wire, &req);
	if (!kiw_orq_ready(&qp->tx.orq) ||
	    !kiw_tx_add_untagged(qp, KIW_RDMAP_READ_REQ, &wire, sizeof(wire)))
		return false;
	read = kiw_orq_add(&qp->tx.orq, NULL, 0);
	read->is_rtr = true;
	return true;
}

/* Append the RTR, RFC 6581 9.2: a zero-length Send, Write or Read: "ready to receive". */
static bool tx_add_rtr(struct kiw_qp *qp)
{
	enum kiw_stat stat = KIW_STAT_TX_WRITES;
	bool done;

	switch (qp->tx.rtr) {
	case KIW_RTR_WRITE:
		done = tx_add_empty_write(qp, kiw_large_rtr_to(qp->conn.fpdus));
		break;
	case KIW_RTR_READ:
		done = tx_add_rtr_read(qp);
		stat = KIW_STAT_TX_READ_REQUESTS;
		break;
	default:
		done = kiw_tx_add_untagged(qp, KIW_RDMAP_SEND, NULL, 0);
		stat = KIW_STAT_TX_SENDS;
		break;
	}
	if (!done)
		return false;
	kiw_count(qp->stats, stat);
	qp->tx.rtr = 0;
	return true;
}

/* Append the announcement of a responder: proto/large.h. */
static bool tx_add_announcement(struct kiw_qp *qp)
{
	struct kiw_tx *tx = &qp->tx;

	if (!tx_add_empty_write(qp, KIW_ANNOUNCE_TO))
		return false;
	tx->owes_announcement = false;
	tx->announces = false;
	kiw_count(qp->stats, KIW_STAT_TX_WRITES);
	return true;
}

/*
 * End the stream because the consumer's own memory or work request is bad. The completion of the
 * work request says why; the peer gets a generic error.
 */
static void tx_fail_current(struct kiw_qp *qp, enum kiw_wcs status)
{
	struct kiw_tx *tx = &qp->tx;
	struct kiw_pend *pend = kiw_pend_at(&tx->pend, tx->pend.put - 1);

	kiw_count(qp->stats, KIW_STAT_WR_INVALID);
	trace_kiw_wr_invalid(dev_name(&qp->ib.device->dev), qp->ib.qp_num, pend->wr_id, pend->op,
			     status == KIW_WCS_LOC_PROT ? "local memory" : "operation");
	pend->status = status;
	pend->is_done = true;
	tx->kind = KIW_TX_NONE;
	tx->has_wqe = false;
	/* The fault first, so that the completion names the Terminate. */
	kiw_qp_fault(qp, KIW_PERR_RDMAP_CATASTROPHIC, NULL, 0);
	kiw_tx_complete(qp);
}

/* Messages */

/* The last FPDU of the current work request is in the batch. */
static void tx_wr_built(struct kiw_qp *qp)
{
	struct kiw_tx *tx = &qp->tx;
	struct kiw_pend *pend = kiw_pend_at(&tx->pend, tx->pend.put - 1);

	pend->end = tx->offset;
	pend->loan = tx->lent;
	pend->is_built = true;
	tx->kind = KIW_TX_NONE;
	tx->has_wqe = false;
}

/* The position in the current message's payload. It is set up again for each batch. */
static __always_inline struct kiw_tx_source *tx_source(struct kiw_qp *qp)
{
	const struct kiw_swqe *wqe = &qp->tx.wqe;
	const struct kiw_read_req *req;
	struct kiw_tx *tx = &qp->tx;

	if (tx->has_source)
		return &tx->source;
	tx->has_source = true;
	if (tx->kind == KIW_TX_RESPONSE) {
		req = &kiw_inq_oldest(&tx->inq)->req;
		kiw_tx_source_region(&tx->source, qp, req->src_stag, req->src_to + tx->sent,
				     req->size - tx->sent);
	} else if (wqe->flags & KIW_WRF_INLINE) {
		kiw_tx_source_bytes(&tx->source, wqe->inline_data + tx->sent,
				    wqe->length - tx->sent);
	} else {
		kiw_tx_source_sgl(&tx->source, qp, kiw_swqe_sges(wqe), wqe->num_sge, tx->sent);
	}
	return &tx->source;
}

/* Write segments of the message from @sent on. Return: false: unreadable payload. */
static bool tx_add_segments(struct kiw_qp *qp, struct kiw_tx_fpdu *fpdu)
{
	struct kiw_tx_source *src = tx_source(qp);
	bool all = fpdu->is_lent ? kiw_tx_end_lent(qp, fpdu) : kiw_tx_end_fpdu(qp, fpdu, src);

	kiw_tx_source_pause(src);
	qp->tx.sent += fpdu->done;
	kiw_count_add(qp->stats, KIW_STAT_TX_BYTES, fpdu->done);
	return all;
}

/* Is the last segment of a message of @length bytes in the batch? */
static bool tx_is_message_built(struct kiw_qp *qp, u32 length, enum kiw_stat stat)
{
	if (qp->tx.sent < length)
		return false;
	qp->tx.kind = KIW_TX_NONE;
	kiw_count(qp->stats, stat);
	return true;
}

static u8 tx_send_opcode(const struct kiw_swqe *wqe)
{
	bool solicited = wqe->flags & KIW_WRF_SOLICITED;

	if (wqe->op == KIW_WR_SEND_INV)
		return solicited ? KIW_RDMAP_SEND_SE_INV : KIW_RDMAP_SEND_INV;
	return solicited ? KIW_RDMAP_SEND_SE : KIW_RDMAP_SEND;
}

static void tx_wr_header(struct kiw_qp *qp, u32 left, struct kiw_tx_fpdu *fpdu)
{
	const struct kiw_swqe *wqe = &qp->tx.wqe;
	u32 inv_stag = wqe->op == KIW_WR_SEND_INV ? wqe->rkey : 0;

	if (fpdu->is_tagged) {
		kiw_ddp_encode_tagged(&fpdu->tagged, qp->conn.version, KIW_RDMAP_WRITE,
				      fpdu->len == left, fpdu->len, wqe->rkey,
				      wqe->raddr + qp->tx.sent);
		return;
	}
	kiw_ddp_encode_untagged(&fpdu->untagged, qp->conn.version, tx_send_opcode(wqe),
				fpdu->len == left, fpdu->len, inv_stag,
				qp->tx.msn[KIW_QN_SEND], qp->tx.sent);
}

/* Begin the next FPDUs of a Send or Write, or one whose payload is lent. */
static bool tx_begin_fpdu(struct kiw_qp *qp, struct kiw_tx_fpdu *fpdu, u32 left,
			  const struct kiw_tx_room *room)
{
	if (qp->tx.lends)
		return kiw_tx_begin_lent(qp, fpdu, tx_source(qp), left, room);
	return kiw_tx_begin_fpdu(qp, fpdu, left, room);
}

/* Add segments of a Send or Write. Immediate Data may follow the latter. */
static bool tx_add_wr(struct kiw_qp *qp, const struct kiw_tx_room *room)
{
	struct kiw_tx *tx = &qp->tx;
	u32 left = tx->wqe.length - tx->sent;
	struct kiw_tx_fpdu fpdu;

	fpdu.is_tagged = tx->wqe.op >= KIW_WR_WRITE;
	if (!tx_begin_fpdu(qp, &fpdu, left, room))
		return false;
	tx_wr_header(qp, left, &fpdu);
	if (!tx_add_segments(qp, &fpdu)) {
		tx_fail_current(qp, KIW_WCS_LOC_PROT);
		return false;
	}
	if (!tx_is_message_built(qp, tx->wqe.length,
				 fpdu.is_tagged ? KIW_STAT_TX_WRITES : KIW_STAT_TX_SENDS))
		return true;
	if (tx->wqe.op == KIW_WR_WRITE_IMM) {
		tx->kind = KIW_TX_IMMEDIATE;
		return true;
	}
	tx_wr_built(qp);
	if (fpdu.is_tagged)
		return true;
	if (tx->wqe.op == KIW_WR_SEND_INV)
		kiw_count(qp->stats, KIW_STAT_TX_SENDS_INV);
	tx->msn[KIW_QN_SEND]++;
	return true;
}

/* End the stream because the memory that the peer reads has become invalid. */
static void tx_response_fault(struct kiw_qp *qp, const struct kiw_peer_read *read,
			      enum kiw_mem_fault fault)
{
	u8 head[KIW_FPDU_HDR_MAX];
	size_t len;

	len = kiw_term_read_head(head, read->ddp, &read->req, qp->tx.sent);
	qp->tx.kind = KIW_TX_NONE;
	kiw_qp_fault(qp, kiw_mr_source_perr(fault), head, len);
}

/* Add segments of the Response to the peer's oldest RDMA Read, RFC 5040 4.5. */
static bool tx_add_response(struct kiw_qp *qp, const struct kiw_tx_room *room)
{
	const struct kiw_peer_read *read = kiw_inq_oldest(&qp->tx.inq);
	const struct kiw_read_req *req = &read->req;
	u32 left = req->size - qp->tx.sent;
	struct kiw_tx_fpdu fpdu;

	fpdu.is_tagged = true;
	if (!kiw_tx_begin_fpdu(qp, &fpdu, left, room))
		return false;
	kiw_ddp_encode_tagged(&fpdu.tagged, qp->conn.version, KIW_RDMAP_READ_RESP,
			      fpdu.len == left, fpdu.len, req->sink_stag,
			      req->sink_to + qp->tx.sent);
	if (!tx_add_segments(qp, &fpdu)) {
		tx_response_fault(qp, read, qp->tx.source.fault);
		return false;
	}
	if (tx_is_message_built(qp, req->size, KIW_STAT_TX_READ_RESPONSES))
		kiw_inq_done(&qp->tx.inq);
	return true;
}

/*
 * Append a Read Request, RFC 5040 4.4. The sink is a private STag, which is valid only for this
 * Response. It is not put into the MR table, so it gives the peer no access to anything else.
 * Offset 0 tells the peer nothing about our addresses.
 */
static bool tx_add_read_request(struct kiw_qp *qp)
{
	const struct kiw_swqe *wqe = &qp->tx.wqe;
	struct kiw_read_req req = {
		.sink_stag = get_random_u32() | 1,
		.size = wqe->length,
		.src_stag = wqe->rkey,
		.src_to = wqe->raddr,
	};
	struct kiw_wire_read_req wire;
	struct kiw_read *read;

	kiw_read_req_encode(&wire, &req);
	if (!kiw_tx_add_untagged(qp, KIW_RDMAP_READ_REQ, &wire, sizeof(wire)))
		return false;
	read = kiw_orq_add(&qp->tx.orq, wqe->sge, wqe->num_sge);
	read->with_inv = wqe->op == KIW_WR_READ_INV;
	read->stag = req.sink_stag;
	read->length = wqe->length;
	read->pend = qp->tx.pend.put - 1;
	tx_wr_built(qp);
	kiw_count(qp->stats, KIW_STAT_TX_READ_REQUESTS);
	return true;
}

/* Choosing the next message */

/* If a work request waits only because the pend ring has no slots yet, allocate them. */
static bool tx_make_pend(struct kiw_qp *qp)
{
	struct kiw_pend_ring *ring = &qp->tx.pend;

	if (ring->slots || !kiw_sq_has(&qp->sq, 1))
		return false;
	if (kiw_pend_ready(ring))
		return true;
	kiw_qp_retry_later(qp);
	return false;
}

/* Make sure that tx->wqe holds a work request, which has been checked. Return: false: not now. */
static bool tx_have_wqe(struct kiw_qp *qp)
{
	struct kiw_tx *tx = &qp->tx;
	int ret;

	if (tx->has_wqe)
		return true;
	if (kiw_pend_is_full(&tx->pend) && !tx_make_pend(qp))
		return false;
	ret = kiw_sq_fetch(&qp->sq, &tx->wqe);
	if (!ret)
		return false;
	if (ret < 0) {
		kiw_pend_add(&tx->pend, &tx->wqe, true);
		tx_fail_current(qp, KIW_WCS_LOC_QP_OP);
		return false;
	}
	tx->has_wqe = true;
	return true;
}

/*
 * Must the work request wait? For all outstanding Reads and Atomic Operations (fence), for room in
 * the ORQ, or for memory for the ORQ's slots. Inlined, as each work request passes here.
 */
static __always_inline bool tx_wqe_waits(struct kiw_qp *qp)
{
	struct kiw_tx *tx = &qp->tx;

	if (tx->wqe.flags & KIW_WRF_FENCE && !kiw_orq_is_empty(&tx->orq))
		return true;
	if (!kiw_wr_has_response(tx->wqe.op) || !tx->orq.depth)
		return false;
	if (tx->orq.slots || kiw_orq_ready(&tx->orq))
		return kiw_orq_is_full(&tx->orq);
	kiw_qp_retry_later(qp);
	return true;
}

static bool tx_memory_ok(struct kiw_qp *qp)
{
	const struct kiw_swqe *wqe = &qp->tx.wqe;
	int access = kiw_wr_has_response(wqe->op) ? IB_ACCESS_LOCAL_WRITE :
							KIW_ACCESS_LOCAL_READ;
	struct kiw_sgl sgl;

	if (wqe->flags & KIW_WRF_INLINE)
		return true;
	sgl = (struct kiw_sgl) {
		.section = &qp->tx.section,
		.pd = qp->ib.pd,
		.dma_lkey = qp->ib.device->local_dma_lkey,
		.is_kernel = !qp->is_user,
		.num_sge = wqe->num_sge,
		.sge = kiw_swqe_sges(wqe),
	};
	return kiw_sgl_check(&sgl, access) == KIW_MEM_OK;
}

/*
 * Execute a work request that sends nothing. It takes effect now, so later ones see the result; it
 * completes after the work requests before it.
 */
static bool tx_local(struct kiw_qp *qp)
{
	struct kiw_tx *tx = &qp->tx;
	const struct kiw_swqe *wqe = &tx->wqe;
	enum kiw_mem_fault fault;
	enum kiw_stat stat;

	if (wqe->op == KIW_WR_REG_MR) {
		stat = KIW_STAT_FAST_REGISTERED;
		fault = kiw_fast_register(&tx->section, qp->ib.pd, wqe->rkey, wqe->access);
	} else if (wqe->op == KIW_WR_BIND_MW) {
		stat = KIW_STAT_FAST_REGISTERED;
		fault = kiw_window_bind(&tx->section, qp->ib.pd, wqe->rkey, &wqe->bind);
	} else {
		stat = KIW_STAT_FAST_INVALIDATED;
		fault = kiw_mr_invalidate(&tx->section, qp->ib.pd, wqe->rkey, 0);
	}
	if (fault != KIW_MEM_OK) {
		tx_fail_current(qp, KIW_WCS_MEM_OP);
		return false;
	}
	kiw_count(qp->stats, stat);
	kiw_pend_at(&tx->pend, tx->pend.put - 1)->is_done = true;
	tx->has_wqe = false;
	kiw_tx_complete(qp);
	return true;
}

/* The last step of tx_begin_wr() for a work request that is not a single message of payload. */
static bool tx_begin_other_wr(struct kiw_qp *qp)
{
	struct kiw_tx *tx = &qp->tx;

	if (kiw_wr_has_response(tx->wqe.op) && !tx->orq.depth) {
		tx_fail_current(qp, KIW_WCS_LOC_QP_OP);
		return false;
	}
	if (tx->wqe.op == KIW_WR_WRITE_IMM && !tx->wqe.length)
		tx->kind = KIW_TX_IMMEDIATE;
	return true;
}

/*
 * Lend the pages of the work request that begins? Its completion then waits for the peer's
 * acknowledgment, so only if it is large enough to be worth that. Without large FPDUs there would
 * be so many page fragments that lending costs more than copying. A stream that memory reclaim may
 * depend on must not wait for more than TCP does.
 */
static bool tx_wants_to_lend(struct kiw_qp *qp)
{
	struct kiw_tx *tx = &qp->tx;

	if (qp->conn.zero_copy == KIW_ZERO_COPY_OFF || tx->wqe.op > KIW_WR_WRITE_IMM ||
	    !tx->is_large || qp->conn.crc || qp->conn.tx_markers ||
	    kiw_sock_is_memalloc(qp->ks) || !kiw_sock_can_lend(qp->ks))
		return false;
	if (!tx->lend_pause)
		return true;
	tx->lend_pause -= min(tx->lend_pause, tx->wqe.length);
	return false;
}

/* Start the work request; from here on it is in the pend ring. */
static bool tx_begin_wr(struct kiw_qp *qp)
{
	struct kiw_tx *tx = &qp->tx;

	kiw_pend_add(&tx->pend, &tx->wqe, qp->sig_all || tx->wqe.flags & KIW_WRF_SIGNALED);
	if (kiw_wr_is_local(tx->wqe.op))
		return tx_local(qp);
	tx->kind = KIW_TX_WR;
	tx->sent = 0;
	tx->lends = tx->wqe.length >= TX_LEND_MIN && tx_wants_to_lend(qp);
	if (tx->lends)
		kiw_pend_at(&tx->pend, tx->pend.put - 1)->is_lent = true;
	if (!tx_memory_ok(qp)) {
		tx_fail_current(qp, KIW_WCS_LOC_PROT);
		return false;
	}
	return tx->wqe.op <= KIW_WR_WRITE || tx_begin_other_wr(qp);
}

static bool tx_begin(struct kiw_qp *qp)
{
	struct kiw_tx *tx = &qp->tx;
	const bool has_response = !kiw_inq_is_empty(&tx->inq);
	bool has_wr = false;

	tx->has_source = false;
	if (!has_response || !tx->prefer_response)
		has_wr = tx_have_wqe(qp) && !tx_wqe_waits(qp);
	if (has_wr) {
		tx->prefer_response = true;
		return tx_begin_wr(qp);
	}
	/* No Response begins after a malformed work request, which has ended the stream. */
	if (!has_response || tx->term_len)
		return false;
	tx->prefer_response = false;
	tx->kind = kiw_inq_oldest(&tx->inq)->is_atomic ? KIW_TX_ATOMIC : KIW_TX_RESPONSE;
	tx->sent = 0;
	return true;
}

/* A work request that the peer answers: an RDMA Read or an Atomic Operation. */
static bool tx_add_request(struct kiw_qp *qp)
{
	if (kiw_wr_is_read(qp->tx.wqe.op))
		return tx_add_read_request(qp);
	if (!kiw_tx_add_atomic_request(qp))
		return false;
	tx_wr_built(qp);
	return true;
}

/* The current message is a Response, or Immediate Data. */
static bool tx_add_other(struct kiw_qp *qp, const struct kiw_tx_room *room)
{
	struct kiw_tx *tx = &qp->tx;

	if (tx->kind == KIW_TX_RESPONSE)
		return tx_add_response(qp, room);
	if (tx->kind == KIW_TX_IMMEDIATE) {
		if (!kiw_tx_add_immediate(qp))
			return false;
		tx_wr_built(qp);
		return true;
	}
	if (!kiw_tx_add_atomic_response(qp))
		return false;
	tx->kind = KIW_TX_NONE;
	return true;
}

/*
 * Add the next FPDUs to the batch, or execute a work request that sends nothing. Return: false: the
 * batch ends here.
 */
static bool tx_add_next(struct kiw_qp *qp, const struct kiw_tx_room *room)
{
	struct kiw_tx *tx = &qp->tx;

	if (tx->term_len) {
		tx_add_terminate(qp);
		return false;
	}
	if (tx->rtr)
		return tx_add_rtr(qp);
	if (tx->awaits_first_fpdu)
		return false;
	if (tx->announces)
		return tx_add_announcement(qp);
	if (tx->kind == KIW_TX_NONE && !tx_begin(qp))
		return false;
	if (tx->kind == KIW_TX_NONE)
		return true;
	if (tx->owes_announcement)
		return tx_add_announcement(qp);
	if (tx->kind != KIW_TX_WR)
		return tx_add_other(qp, room);
	if (tx->wqe.op > KIW_WR_WRITE_IMM)
		return tx_add_request(qp);
	return tx_add_wr(qp, room);
}

/*
 * May a batch have several segments? TCP usually cuts it at multiples of the EMSS. These are the
 * ends of FPDUs only if full FPDUs are as long: not if the EMSS is no multiple of four, or more
 * than the largest FPDU.
 */
static bool tx_may_span(struct kiw_qp *qp, u32 full)
{
	return qp->tx.is_large || full >= kiw_sock_emss(qp->ks);
}

/*
 * How large a batch should become, in bytes: about what TCP puts into one buffer, but at most
 * %KIW_TXBUF_TARGET. A single segment if it may not have several: TCP starts a new one after each
 * batch.
 */
static u32 tx_batch_size(struct kiw_qp *qp, u32 full)
{
	u32 most = tx_may_span(qp, full) ? max(KIW_TXBUF_TARGET / full, 1U) : 1;

	return min(kiw_sock_burst(qp->ks), most) * full;
}

/*
 * Does the rest of the current message fit into one segment, apart from markers, and is nothing
 * else queued? Adding it to the batch saves a call of TCP, if the batch may have several segments.
 */
static bool tx_is_rest(struct kiw_qp *qp, u32 full)
{
	struct kiw_tx *tx = &qp->tx;
	u32 left, count = tx->inq.put - tx->inq.get;

	switch (tx->kind) {
	case KIW_TX_WR:
		left = tx->wqe.length - tx->sent;
		break;
	case KIW_TX_RESPONSE:
		left = kiw_inq_oldest(&tx->inq)->req.size - tx->sent;
		count--;
		break;
	case KIW_TX_IMMEDIATE:
		left = KIW_IMMEDIATE_SIZE;
		break;
	default:
		return false;
	}
	return left < full && kiw_mpa_fpdu_size(left + KIW_DDP_UNTAGGED_HDR) <= full && !count &&
	       !kiw_sq_has(&qp->sq, 1) && tx_may_span(qp, full);
}

/*
 * The room for the next FPDU in a batch of @size bytes. It has the rest of a @segment, of which
 * @in_segment bytes are used. If FPDUs are large, segments do not matter, and it has the rest of
 * the batch, with a CRC at most %TX_LARGE_CRC.
 */
static struct kiw_tx_room tx_room(const struct kiw_qp *qp, u32 size, u32 segment, u32 in_segment)
{
	u32 left = size - min(size, qp->tx.buf.len);
	struct kiw_tx_room room = { .all = left };

	if (!qp->tx.is_large) {
		room.octets = segment - in_segment;
		if (in_segment)
			room.all = 0;
	} else {
		/* Without @left: see tx_is_rest() */
		room.octets = left ?: segment;
		if (qp->conn.crc)
			room.octets = min_t(u32, room.octets, TX_LARGE_CRC);
	}
	return room;
}

/*
 * Fill a batch. Full FPDUs fill segments exactly, so a batch that starts on a segment boundary
 * usually stays aligned (RFC 5044 5.1). If they are shorter, a batch is a single segment. If
 * a message starts inside a segment, its first FPDU takes at most the rest of that segment. If too
 * little is left for an FPDU, the batch ends, and TCP starts a new segment after it. The same
 * happens if a segment would end with a marker, as that does not belong to the FPDU before it.
 * Two kinds of FPDUs take no account of segments: those for segments that are too small for the
 * smallest MULPDU (RFC 5044 4.5), and large ones, which heed the end of the batch instead.
 */
static void tx_build(struct kiw_qp *qp)
{
	u32 least = kiw_mpa_fpdu_size(KIW_MULPDU_MIN);
	u32 segment = kiw_mpa_fpdu_size(kiw_mpa_mulpdu(kiw_sock_emss(qp->ks)));
	unsigned int local = TX_BATCH_LOCAL;
	struct kiw_tx *tx = &qp->tx;
	struct kiw_tx_room room;
	u32 before, full, size, in_full = 0;

	/* A batch ends with the Terminate, so one look is enough. */
	if (tx->has_terminated)
		return;
	if (qp->conn.tx_markers)
		least += KIW_MARKER_SIZE;
	segment = max(segment, least);
	size = tx_batch_size(qp, segment);
	full = tx->is_large ? size : segment;

	/* At most one batch per stream is in pages from the reserves until the peer has it all. */
	tx->buf.may_reserve = kiw_sock_is_memalloc(qp->ks) && kiw_sock_is_quiet(qp->ks);
	tx->has_source = false;
	kiw_mr_enter(qp->mrs, &tx->section);
	while (tx->buf.len < size || tx_is_rest(qp, segment)) {
		before = tx->buf.len;
		room = tx_room(qp, size, segment, in_full);
		if (!tx_add_next(qp, &room))
			break;
		if (tx->buf.len == before && !--local) {
			kiw_qp_run_soon(qp);
			break;
		}
		in_full += tx->buf.len - before;
		if (in_full >= full)
			in_full %= full;
		if (full - in_full < least)
			break;
	}
	kiw_mr_leave(&tx->section);
}

/* @how: %KIW_SEND_LAST or 0. Return: 0: the batch is empty; -errno as kiw_txbuf_send() */
static int tx_push(struct kiw_qp *qp, unsigned int how)
{
	struct kiw_tx *tx = &qp->tx;
	struct ubuf_info *ubuf = tx->buf.ubuf;
	int ret;

	if (!tx->buf.len)
		return 0;
	kiw_count(qp->stats, KIW_STAT_TX_BATCHES);
	/* TCP must not hold back a Terminate: a reset may follow. */
	if (tx->is_large && !(how & KIW_SEND_LAST))
		how |= KIW_SEND_JOINS;
	ret = kiw_txbuf_send(&tx->buf, qp->ks, how);
	/* The loan may be over by now, but only this engine frees it. */
	if (ubuf)
		to_kiw_loan(ubuf)->seq = kiw_sock_sent(qp->ks);
	kiw_tx_taken(qp);
	if (ret == -EAGAIN)
		kiw_count(qp->stats, KIW_STAT_TX_BLOCKED);
	return ret;
}

/* Does all that is posted wait for an answer, or is nothing posted? */
static bool tx_only_waits(struct kiw_qp *qp)
{
	struct kiw_tx *tx = &qp->tx;

	if (tx->has_wqe)
		return tx_wqe_waits(qp);
	return !kiw_sq_has(&qp->sq, 1) || (tx->pend.slots && kiw_pend_is_full(&tx->pend));
}

/*
 * Has everything been sent that an orderly close has to wait for? Nothing is answered after the
 * peer's FIN, so it does not wait for answers, nor for what waits for them.
 */
static bool tx_is_drained(struct kiw_qp *qp)
{
	struct kiw_tx *tx = &qp->tx;

	if (tx->buf.len || tx->term_len || !list_empty(&tx->loans))
		return false;
	if (kiw_qp_state(qp) == KIW_QPS_TERMINATE || tx->awaits_first_fpdu)
		return true;
	if (tx->rtr || tx->kind != KIW_TX_NONE || !kiw_inq_is_empty(&tx->inq))
		return false;
	if (kiw_orq_is_empty(&tx->orq))
		return !tx->has_wqe && !kiw_sq_has(&qp->sq, 1);
	return qp->rx.has_ended && !tx->announces && tx_only_waits(qp);
}

/* Return: true: the stream is being closed, and all is sent; the QP has been told. */
static bool tx_ends(struct kiw_qp *qp)
{
	if (kiw_qp_state(qp) == KIW_QPS_RTS || !tx_is_drained(qp))
		return false;
	kiw_qp_handle_event(qp, KIW_QPE_DRAINED);
	return true;
}

static bool tx_may_run(const struct kiw_qp *qp)
{
	return kiw_qp_state_sends(kiw_qp_state(qp)) && qp->tx.is_running;
}

/**
 * kiw_tx_run() - send what can be sent
 * @qp: the QP
 *
 * Runs again without a further call if the budget is used up, memory is short, or TCP has no
 * room.
 *
 * Context: socket lock held, BHs off. Never sleeps.
 */
void kiw_tx_run(struct kiw_qp *qp)
{
	unsigned int left = TX_RUN_BATCHES;
	int ret;

	kiw_sock_assert_held_bh(qp->ks);
	if (!list_empty(&qp->tx.loans) && tx_may_run(qp) && kiw_loan_collect(qp))
		kiw_tx_taken(qp);
	while (tx_may_run(qp)) {
		ret = tx_push(qp, 0);
		if (ret == -EAGAIN) {
			/* Nothing is in flight: TCP lacks memory and will not call back. */
			if (kiw_sock_is_quiet(qp->ks))
				kiw_qp_retry_later(qp);
			return;
		}
		if (ret) {
			kiw_qp_handle_event(qp, KIW_QPE_LLP_LOST);
			return;
		}
		if (!left--) {
			kiw_qp_run_soon(qp);
			return;
		}
		if (!kiw_sock_has_room(qp->ks)) {
			/* If TCP has all of it already, there is nothing to wait for. */
			if (!tx_ends(qp))
				kiw_count(qp->stats, KIW_STAT_TX_BLOCKED);
			return;
		}
		/* If the QP was aborted meanwhile, a batch would be begun only to be dropped. */
		if (!tx_may_run(qp))
			return;
		tx_build(qp);
		if (!qp->tx.buf.len)
			break;
	}
	if (!tx_may_run(qp) || tx_ends(qp))
		return;
	if (qp->tx.kind != KIW_TX_NONE || qp->tx.term_len || qp->tx.rtr || qp->tx.announces)
		kiw_qp_retry_later(qp);
}

/**
 * kiw_tx_finish() - give TCP the rest of the batch and the Terminate
 * @qp: the QP, in ERROR after an abort in TERMINATE
 *
 * Otherwise the peer would not learn the reason if the consumer ends the QP before TCP has room, or
 * if TCP has none within the time of an orderly close. TCP takes them even if its send buffer is
 * full. That is at most one batch and the Terminate, for at most the time that a closed stream may
 * linger. If memory is short, the Terminate is lost.
 *
 * Context: socket lock held, BHs off. Never sleeps.
 */
void kiw_tx_finish(struct kiw_qp *qp)
{
	struct kiw_tx *tx = &qp->tx;

	kiw_sock_assert_held_bh(qp->ks);
	if (!tx->is_running || tx_push(qp, KIW_SEND_LAST))
		return;
	tx->buf.may_reserve = false;
	kiw_mr_enter(qp->mrs, &tx->section);
	if (tx->term_len)
		tx_add_terminate(qp);
	kiw_mr_leave(&tx->section);
	tx_push(qp, KIW_SEND_LAST);
}

static int tx_init_queues(struct kiw_qp *qp)
{
	bool is_memalloc = kiw_sock_is_memalloc(qp->conn.ks);
	struct kiw_tx *tx = &qp->tx;
	int ret;

	ret = kiw_pend_reset(&tx->pend, qp->memcg, is_memalloc);
	if (ret)
		return ret;
	ret = kiw_orq_init(&tx->orq, qp->conn.ord, is_memalloc);
	if (ret)
		return ret;
	ret = kiw_inq_init(&tx->inq, qp->conn.ird, kiw_qp_is_extended(qp), is_memalloc);
	if (ret)
		goto err_orq;
	tx->orq.memcg = qp->memcg;
	tx->inq.memcg = qp->memcg;
	return 0;

err_orq:
	kiw_orq_uninit(&tx->orq);
	return ret;
}

/**
 * kiw_tx_create() - allocate what the engine needs before there is a stream
 * @qp: the QP; the size of its SQ has been set
 *
 * Context: process, may sleep; for a user QP, the process that creates it, which is charged.
 * Return: 0 or -ENOMEM.
 */
int kiw_tx_create(struct kiw_qp *qp)
{
	INIT_LIST_HEAD(&qp->tx.loans);
	return kiw_pend_init(&qp->tx.pend, qp->sq.size);
}

/**
 * kiw_tx_destroy() - undo kiw_tx_create()
 * @qp: the QP, without a stream
 *
 * Context: process.
 */
void kiw_tx_destroy(struct kiw_qp *qp)
{
	kiw_pend_uninit(&qp->tx.pend);
}

/**
 * kiw_tx_init() - prepare the engine for a stream
 * @qp: the QP; its @conn has been set
 *
 * Context: process, may sleep; no stream yet.
 * Return: 0 or -ENOMEM.
 */
int kiw_tx_init(struct kiw_qp *qp)
{
	struct kiw_pend_ring pend = qp->tx.pend;
	struct kiw_tx *tx = &qp->tx;
	int i, ret;

	memset(tx, 0, sizeof(*tx));
	tx->pend = pend;
	INIT_LIST_HEAD(&tx->loans);
	ret = tx_init_queues(qp);
	if (ret)
		return ret;
	for (i = 0; i < KIW_QN_COUNT; i++)
		tx->msn[i] = 1;
	tx->rtr = qp->conn.rtr;
	tx->is_large = kiw_large_is_used(qp->conn.fpdus, false);
	tx->awaits_first_fpdu = !qp->conn.initiator;
	return 0;
}

/**
 * kiw_tx_uninit() - free what the engine needed for a stream
 * @qp: the QP
 *
 * Context: process; there is no stream any more, and no work request is in progress.
 */
void kiw_tx_uninit(struct kiw_qp *qp)
{
	kiw_txbuf_drop(&qp->tx.buf);
	kiw_inq_uninit(&qp->tx.inq);
	kiw_orq_uninit(&qp->tx.orq);
}
