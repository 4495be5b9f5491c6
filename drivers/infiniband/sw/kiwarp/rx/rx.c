// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The receive engine.
 *
 * TCP calls back when enough data has arrived. The run looks at the head of the first FPDU in the
 * socket's receive queue. If part of the FPDU is missing, the run ends, and TCP calls again later.
 * A complete FPDU is verified in the queue (rx_fpdu.c) before any field but its length has an
 * effect (RFC 5044 6). Then the header is decoded and checked, the payload is copied to its
 * destination, and the message is delivered with its last segment. Each run consumes what it has
 * processed with a single call.
 *
 * For each segment that comes here and accesses a region, the STag is looked up and access rights
 * are checked. A Write without payload accesses none (RFC 5041 5.2). In a long message most
 * segments only continue where the previous one ended. Where possible these are placed by
 * rx_follow.c, which checks only what can have changed.
 *
 * Context: socket lock held, BHs off, unless a function says otherwise; &struct kiw_rx is protected
 * by the socket lock or, without a socket, by the QP's mutex.
 */
#include "rx.h"

#include "mem/mr_dyn.h"
#include "mem/sgl.h"
#include "proto/ddp.h"
#include "proto/term.h"
#include "qp/qp.h"
#include "rx_ext.h"
#include "rx_follow.h"
#include "rx_fpdu.h"
#include "rx_run.h"
#include "trace.h"
#include "tx/tx_fpdu.h"

/* The smallest FPDU: a tagged segment without payload */
#define RX_FPDU_MIN	(sizeof(struct kiw_wire_tagged) + KIW_FPDU_CRC_SIZE)

/**
 * enum rx_when - when to process the FPDU at the front
 * @RX_NOW: now, if there is one
 * @RX_SOON: in another run, because this run has used up its budget
 * @RX_LATER: when there is memory for its request; it has had no effect yet
 * @RX_WAIT: not before TCP has more, because it is not complete; after a fault: never
 */
enum rx_when {
	RX_NOW,
	RX_SOON,
	RX_LATER,
	RX_WAIT,
};

/* The error to report for a fault on the target of an RDMA Write: RFC 5041 7.2, RFC 5040 4.8 */
static const enum kiw_perr tagged_perr[KIW_MEM_COUNT] = {
	[KIW_MEM_OK]		= KIW_PERR_NONE,
	[KIW_MEM_STAG]		= KIW_PERR_DDP_STAG,
	[KIW_MEM_ASSOC]		= KIW_PERR_DDP_STAG_ASSOC,
	[KIW_MEM_ACCESS]	= KIW_PERR_RDMAP_ACCESS,
	[KIW_MEM_WRAP]		= KIW_PERR_DDP_TO_WRAP,
	[KIW_MEM_BOUNDS]	= KIW_PERR_DDP_BOUNDS,
	[KIW_MEM_ALIGN]		= KIW_PERR_RDMAP_ALIGN,
	[KIW_MEM_LOST]		= KIW_PERR_RDMAP_CATASTROPHIC,
};

/* Placement */

/* Start a message whose payload goes to the SGEs of a work request, one after the other. */
static void rx_begin_sgl(struct kiw_qp *qp, const struct kiw_sge *sge, u8 num_sge)
{
	qp->rx.sgl = (struct kiw_sgl) {
		.section = &qp->rx.section,
		.pd = qp->ib.pd,
		.dma_lkey = qp->ib.device->local_dma_lkey,
		.is_kernel = !qp->is_user,
		.num_sge = num_sge,
		.sge = sge,
	};
}

/* Place @len bytes of payload at @addr, which the caller has checked. Return: false: unreadable. */
static __always_inline bool rx_place(struct kiw_qp *qp, struct kiw_rx_cursor *cur,
				     const struct kiw_mr *mr, u64 addr, u32 len)
{
	const u8 *data;
	u32 here;

	for (; len; len -= here, addr += here) {
		data = kiw_rx_take(qp, cur, len, &here);
		if (!data)
			return false;
		kiw_sgl_write(mr, addr, data, here);
	}
	return true;
}

/* Place @left bytes in the memory of the work request that belongs to the message in progress */
static enum kiw_mem_fault rx_place_sgl(struct kiw_qp *qp, struct kiw_rx_cursor *cur, u32 left)
{
	struct kiw_sgl *sgl = &qp->rx.sgl;
	enum kiw_mem_fault fault;
	struct kiw_mr *mr;
	u64 addr;
	u32 len;

	for (; left; left -= len, sgl->off += len) {
		len = left;
		fault = kiw_sgl_at(sgl, &len, &addr, &mr);
		if (fault == KIW_MEM_OK && !rx_place(qp, cur, mr, addr, len))
			fault = KIW_MEM_LOST;
		kiw_mr_done(mr);
		if (fault != KIW_MEM_OK)
			return fault;
	}
	return KIW_MEM_OK;
}

/*
 * Find the region that a segment targets, and check whether the peer may access it. The caller
 * passes *@mr to kiw_mr_done(), even after a fault. Inline: runs per segment.
 */
static inline enum kiw_mem_fault rx_find_target(struct kiw_qp *qp, u32 stag, int access, u64 to,
						u64 len, struct kiw_mr **mr)
{
	enum kiw_mem_fault fault;

	*mr = kiw_mr_use(&qp->rx.section, stag);
	if (!*mr)
		return KIW_MEM_STAG;
	fault = kiw_mr_check(*mr, qp->ib.pd, access, to, len);
	if (fault == KIW_MEM_OK && !(READ_ONCE(qp->access) & access))
		return KIW_MEM_ACCESS;
	return fault;
}

static enum kiw_mem_fault rx_place_tagged(struct kiw_qp *qp, struct kiw_rx_cursor *cur,
					  const struct kiw_ddp_seg *seg)
{
	enum kiw_mem_fault fault;
	struct kiw_mr *mr;

	fault = rx_find_target(qp, seg->stag, IB_ACCESS_REMOTE_WRITE, seg->to, seg->payload_len,
			       &mr);
	if (fault == KIW_MEM_OK && !rx_place(qp, cur, mr, seg->to, seg->payload_len))
		fault = KIW_MEM_LOST;
	kiw_mr_done(mr);
	return fault;
}

/* Completions */

static void rx_complete_recv(struct kiw_qp *qp, const struct kiw_ddp_seg *seg,
			     enum kiw_wcs status, u32 byte_len)
{
	struct kiw_wc wc = {
		.wr_id = qp->rx.recv.wr_id,
		.qp = &qp->ib,
		.byte_len = byte_len,
		.status = status,
		.op = KIW_WR_RECV,
		.solicited = seg && kiw_rdmap_is_solicited(seg->opcode),
		.with_inv = seg && kiw_rdmap_is_invalidate(seg->opcode),
		.inv_stag = seg ? seg->inv_stag : 0,
	};

	qp->rx.has_recv = false;
	qp->rx.written = 0;
	kiw_qp_post_completion(qp, qp->rcq, &wc);
}

/*
 * Complete the receive that Immediate Data has consumed. As in InfiniBand (RFC 7306 6), the
 * completion has the length of the RDMA Write before it.
 */
static void rx_complete_immediate(struct kiw_qp *qp, const struct kiw_ddp_seg *seg, __be32 imm)
{
	struct kiw_wc wc = {
		.wr_id = qp->rx.recv.wr_id,
		.qp = &qp->ib,
		.byte_len = qp->rx.written,
		.imm = imm,
		.status = KIW_WCS_SUCCESS,
		.op = KIW_WR_RECV_IMM,
		.with_imm = true,
		.solicited = kiw_rdmap_is_solicited(seg->opcode),
	};

	qp->rx.has_recv = false;
	qp->rx.written = 0;
	kiw_qp_post_completion(qp, qp->rcq, &wc);
}

/* Return: %KIW_MEM_OK, or why @stag was not invalidated */
static enum kiw_mem_fault rx_invalidate_stag(struct kiw_qp *qp, u32 stag, int rights)
{
	enum kiw_mem_fault fault;

	fault = kiw_mr_invalidate(&qp->rx.section, qp->ib.pd, stag, rights);
	if (fault == KIW_MEM_OK)
		kiw_count(qp->stats, KIW_STAT_FAST_INVALIDATED);
	return fault;
}

/* End a Read or an Atomic Operation; kiw_tx_complete() posts the completion. */
static void rx_end_read(struct kiw_qp *qp, const struct kiw_read *read, enum kiw_wcs status)
{
	struct kiw_pend *pend;

	if (!read->is_rtr) {
		pend = kiw_pend_at(&qp->tx.pend, read->pend);
		pend->status = status;
		pend->is_done = true;
	}
	kiw_orq_done(&qp->tx.orq);
}

static void rx_complete_read(struct kiw_qp *qp, const struct kiw_read *read)
{
	rx_end_read(qp, read, KIW_WCS_SUCCESS);
	kiw_tx_complete(qp);
}

/* Fail a receive because of @perr, which ends the stream: see rx_fault(). Return: @perr */
static enum kiw_perr rx_fail_recv(struct kiw_qp *qp, enum kiw_wcs status, enum kiw_perr perr)
{
	qp->rx.recv_status = status;
	return perr;
}

/* The same for a Read or an Atomic Operation */
static enum kiw_perr rx_fail_read(struct kiw_qp *qp, const struct kiw_read *read,
				  enum kiw_wcs status, enum kiw_perr perr)
{
	rx_end_read(qp, read, status);
	return perr;
}

/* Fail a Read or Atomic Operation whose sink is bad. The peer gets a generic error. */
static enum kiw_perr rx_sink_fault(struct kiw_qp *qp, struct kiw_read *read, enum kiw_wcs status,
				   const char *what)
{
	const struct kiw_pend *pend = kiw_pend_at(&qp->tx.pend, read->pend);

	kiw_count(qp->stats, KIW_STAT_WR_INVALID);
	trace_kiw_wr_invalid(dev_name(&qp->ib.device->dev), qp->ib.qp_num, pend->wr_id, pend->op,
			     what);
	return rx_fail_read(qp, read, status, KIW_PERR_RDMAP_CATASTROPHIC);
}

/* Complete a Read whose Response was placed. First invalidate the sink if that was asked for. */
static enum kiw_perr rx_read_done(struct kiw_qp *qp, struct kiw_read *read)
{
	if (read->with_inv && rx_invalidate_stag(qp, read->sge[0].lkey, 0) != KIW_MEM_OK)
		return rx_sink_fault(qp, read, KIW_WCS_MEM_OP, "invalidation of the sink");
	rx_complete_read(qp, read);
	kiw_count(qp->stats, KIW_STAT_RX_READ_RESPONSES);
	return KIW_PERR_NONE;
}

/* Fail a receive that is bad. Its completion says why; the peer gets a generic error. */
static enum kiw_perr rx_own_fault(struct kiw_qp *qp, enum kiw_wcs status, const char *what)
{
	kiw_count(qp->stats, KIW_STAT_WR_INVALID);
	trace_kiw_wr_invalid(dev_name(&qp->ib.device->dev), qp->ib.qp_num, qp->rx.recv.wr_id,
			     KIW_WR_RECV, what);
	return rx_fail_recv(qp, status, KIW_PERR_RDMAP_CATASTROPHIC);
}

/* Messages, one segment at a time */

/* Take a receive for the message that begins. Inline: runs per message. */
static inline enum kiw_perr rx_take_recv(struct kiw_qp *qp)
{
	int ret = kiw_qp_fetch_recv(qp, &qp->rx.recv);

	if (!ret)
		return KIW_PERR_DDP_NO_BUFFER;
	qp->rx.has_recv = true;
	rx_begin_sgl(qp, qp->rx.recv.sge, qp->rx.recv.num_sge);
	if (ret > 0)
		return KIW_PERR_NONE;
	return rx_own_fault(qp, KIW_WCS_LOC_QP_OP, "malformed receive");
}

/*
 * The peer may only invalidate an STag that a work request of this stream made valid. If the STag
 * cannot be invalidated, that is error 0/1/09, whatever the reason: RFC 5040 5.3 and 8.1.1 (7). The
 * STag is invalidated before the Send is delivered.
 */
static enum kiw_perr rx_invalidate(struct kiw_qp *qp, const struct kiw_ddp_seg *seg)
{
	const int remote = IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_WRITE |
			   IB_ACCESS_REMOTE_ATOMIC;

	if (!kiw_rdmap_is_invalidate(seg->opcode))
		return KIW_PERR_NONE;
	if (rx_invalidate_stag(qp, seg->inv_stag, remote) == KIW_MEM_OK) {
		kiw_count(qp->stats, KIW_STAT_RX_INVALIDATES);
		return KIW_PERR_NONE;
	}
	return rx_fail_recv(qp, KIW_WCS_GENERAL, KIW_PERR_RDMAP_INVALIDATE);
}

/*
 * Is the segment a zero-length Send that serves as RTR (RFC 6581 9.2)? The consumer does not see
 * it: here it takes no receive and completes nothing. It is an RTR only if this kind was
 * negotiated, it is the peer's first FPDU, and it asks for nothing else. With an STag to invalidate
 * or with a solicited event, it is treated as an ordinary message of the peer's consumer, and is
 * checked and delivered (RFC 5040 5.3, 7.2).
 */
static bool rx_is_rtr_send(const struct kiw_qp *qp, const struct kiw_ddp_seg *seg)
{
	return qp->conn.expect_rtr && !qp->rx.has_spoken && !seg->payload_len && seg->last &&
	       seg->opcode == KIW_RDMAP_SEND;
}

static enum kiw_perr rx_send(struct kiw_qp *qp, struct kiw_rx_cursor *cur,
			     const struct kiw_ddp_seg *seg)
{
	struct kiw_untagged_rx *queue = &qp->rx.queue[KIW_QN_SEND];
	struct kiw_rwqe *recv = &qp->rx.recv;
	enum kiw_mem_fault fault;
	enum kiw_perr perr;
	u32 len;

	perr = kiw_untagged_check(queue, seg);
	if (perr == KIW_PERR_NONE && rx_is_rtr_send(qp, seg))
		goto out_count;
	if (perr == KIW_PERR_NONE && !qp->rx.has_recv)
		perr = rx_take_recv(qp);
	if (perr != KIW_PERR_NONE)
		return perr;
	if (seg->payload_len > recv->length - queue->mo)
		return rx_fail_recv(qp, KIW_WCS_LOC_LEN, KIW_PERR_DDP_TOO_LONG);
	fault = rx_place_sgl(qp, cur, seg->payload_len);
	if (fault == KIW_MEM_LOST)
		return KIW_PERR_RDMAP_CATASTROPHIC;
	if (fault != KIW_MEM_OK)
		return rx_own_fault(qp, KIW_WCS_LOC_PROT, "receive buffer");
	len = queue->mo + seg->payload_len;
	if (seg->last) {
		perr = rx_invalidate(qp, seg);
		if (perr != KIW_PERR_NONE)
			return perr;
		rx_complete_recv(qp, seg, KIW_WCS_SUCCESS, len);
	}
out_count:
	if (seg->last)
		kiw_count(qp->stats, KIW_STAT_RX_SENDS);
	kiw_untagged_advance(queue, seg);
	return KIW_PERR_NONE;
}

static enum kiw_perr rx_write(struct kiw_qp *qp, struct kiw_rx_cursor *cur,
			      const struct kiw_ddp_seg *seg)
{
	enum kiw_mem_fault fault = KIW_MEM_OK;

	/* RFC 5041 5.2: if nothing is placed, nothing is checked */
	if (seg->payload_len)
		fault = rx_place_tagged(qp, cur, seg);
	if (fault != KIW_MEM_OK)
		return tagged_perr[fault];
	if (!qp->rx.in_message)
		qp->rx.written = 0;
	qp->rx.written += seg->payload_len;
	if (seg->last)
		kiw_count(qp->stats, KIW_STAT_RX_WRITES);
	return KIW_PERR_NONE;
}

static enum kiw_perr rx_read_request(struct kiw_qp *qp, struct kiw_rx_run *run)
{
	const struct kiw_ddp_seg *seg = &run->fpdu.seg;
	enum kiw_mem_fault fault = KIW_MEM_OK;
	struct kiw_read_req req;
	enum kiw_perr perr;
	struct kiw_mr *mr;

	/* Not a fault, although an error is returned: see rx_put_off(). */
	run->is_short = !qp->tx.inq.slots && !kiw_inq_ready(&qp->tx.inq);
	if (run->is_short)
		return KIW_PERR_DDP_NO_BUFFER;
	/* What could not be read of the header is zeros, e.g. a size of 0 */
	if (kiw_sock_is_unreadable(qp->ks))
		return KIW_PERR_RDMAP_CATASTROPHIC;
	perr = kiw_untagged_check(&qp->rx.queue[KIW_QN_READ_REQ], seg);
	if (perr != KIW_PERR_NONE)
		return perr;
	kiw_read_req_decode(run->fpdu.head + seg->hdr_len, &req);
	if (req.size) {
		fault = rx_find_target(qp, req.src_stag, IB_ACCESS_REMOTE_READ, req.src_to,
				       req.size, &mr);
		kiw_mr_done(mr);
	}
	if (fault != KIW_MEM_OK)
		return kiw_mr_source_perr(fault);
	if (!kiw_inq_add(&qp->tx.inq, &req, run->fpdu.head + KIW_FPDU_LEN_SIZE))
		return KIW_PERR_DDP_NO_BUFFER;
	kiw_untagged_advance(&qp->rx.queue[KIW_QN_READ_REQ], seg);
	kiw_count(qp->stats, KIW_STAT_RX_READ_REQUESTS);
	kiw_qp_run_soon(qp);
	return KIW_PERR_NONE;
}

/* Check a segment of a Response against the oldest request, which it answers: RFC 5040 5.5. */
static enum kiw_perr rx_match_response(const struct kiw_read *read, const struct kiw_ddp_seg *seg)
{
	if (!read || read->is_atomic)
		return KIW_PERR_RDMAP_OPCODE;
	/* RFC 5041 5.2: if nothing is placed, the STag and the TO have no meaning. */
	if (seg->payload_len && read->length && seg->stag != read->stag)
		return KIW_PERR_DDP_STAG;
	if (seg->payload_len > read->length - read->received ||
	    (seg->payload_len && seg->to != read->received))
		return KIW_PERR_DDP_BOUNDS;
	if (seg->last && read->received + seg->payload_len != read->length)
		return KIW_PERR_RDMAP_STREAM;
	return KIW_PERR_NONE;
}

static enum kiw_perr rx_read_response(struct kiw_qp *qp, struct kiw_rx_cursor *cur,
				      const struct kiw_ddp_seg *seg)
{
	struct kiw_read *read = kiw_orq_oldest(&qp->tx.orq);
	enum kiw_perr perr = rx_match_response(read, seg);
	enum kiw_mem_fault fault;

	if (perr != KIW_PERR_NONE)
		return read ? rx_fail_read(qp, read, KIW_WCS_BAD_RESP, perr) : perr;
	if (!qp->rx.in_message)
		rx_begin_sgl(qp, read->sge, read->num_sge);
	fault = rx_place_sgl(qp, cur, seg->payload_len);
	if (fault == KIW_MEM_LOST)
		return KIW_PERR_RDMAP_CATASTROPHIC;
	if (fault != KIW_MEM_OK)
		return rx_sink_fault(qp, read, KIW_WCS_LOC_PROT, "read buffer");
	read->received += seg->payload_len;
	if (!seg->last)
		return KIW_PERR_NONE;
	/* A fence, or a request that found the ORQ full, may now proceed. */
	kiw_qp_run_soon(qp);
	return rx_read_done(qp, read);
}

/* Copy @len bytes of payload at @cur to @buf; false: they cannot be read. */
static bool rx_copy(struct kiw_qp *qp, struct kiw_rx_cursor *cur, u8 *buf, u32 len)
{
	const u8 *data;
	u32 here;

	for (; len; len -= here, buf += here) {
		data = kiw_rx_take(qp, cur, len, &here);
		if (!data)
			return false;
		memcpy(buf, data, here);
	}
	return true;
}

/*
 * RFC 7306 6: Immediate Data takes a receive, like a Send. Here its first 4 octets go to the
 * completion, and none to the memory of the receive.
 */
static enum kiw_perr rx_immediate(struct kiw_qp *qp, struct kiw_rx_cursor *cur,
				  const struct kiw_ddp_seg *seg)
{
	struct kiw_untagged_rx *queue = &qp->rx.queue[KIW_QN_SEND];
	u8 data[KIW_IMMEDIATE_SIZE];
	enum kiw_perr perr;

	perr = kiw_untagged_check(queue, seg);
	if (perr == KIW_PERR_NONE)
		perr = rx_take_recv(qp);
	if (perr != KIW_PERR_NONE)
		return perr;
	if (!rx_copy(qp, cur, data, sizeof(data)))
		return KIW_PERR_RDMAP_CATASTROPHIC;
	rx_complete_immediate(qp, seg, kiw_immediate_decode(data));
	kiw_count(qp->stats, KIW_STAT_RX_IMMEDIATES);
	kiw_untagged_advance(queue, seg);
	return KIW_PERR_NONE;
}

/* Besides the DDP header, @run->fpdu.head has no room for the header of the request. */
static enum kiw_perr rx_atomic_request(struct kiw_qp *qp, struct kiw_rx_run *run)
{
	u8 wire[sizeof(struct kiw_wire_atomic_req)];

	/* As in rx_read_request() */
	run->is_short = !qp->tx.inq.slots && !kiw_inq_ready(&qp->tx.inq);
	if (run->is_short)
		return KIW_PERR_DDP_NO_BUFFER;
	if (!rx_copy(qp, &run->cur, wire, sizeof(wire)) || kiw_sock_is_unreadable(qp->ks))
		return KIW_PERR_RDMAP_CATASTROPHIC;
	return kiw_rx_atomic_request(qp, &run->fpdu.seg, run->fpdu.head + KIW_FPDU_LEN_SIZE, wire);
}

/* RFC 7306 5.2.2. The original value goes to the consumer in the byte order of the CPU. */
static enum kiw_perr rx_atomic_response(struct kiw_qp *qp, struct kiw_rx_cursor *cur,
					const struct kiw_ddp_seg *seg)
{
	struct kiw_read *read = kiw_orq_oldest(&qp->tx.orq);
	u8 wire[sizeof(struct kiw_wire_atomic_resp)];
	struct kiw_atomic_resp resp;
	enum kiw_perr perr;

	if (!rx_copy(qp, cur, wire, sizeof(wire)))
		return KIW_PERR_RDMAP_CATASTROPHIC;
	kiw_atomic_resp_decode(wire, &resp);
	perr = kiw_rx_match_atomic(qp, read, seg, &resp);
	if (perr != KIW_PERR_NONE)
		return read ? rx_fail_read(qp, read, KIW_WCS_BAD_RESP, perr) : perr;
	rx_begin_sgl(qp, read->sge, read->num_sge);
	if (kiw_sgl_put(&qp->rx.sgl, &resp.value, sizeof(resp.value)) != KIW_MEM_OK)
		return rx_sink_fault(qp, read, KIW_WCS_LOC_PROT, "buffer for the original value");
	/* As in rx_read_response() */
	kiw_qp_run_soon(qp);
	rx_complete_read(qp, read);
	kiw_count(qp->stats, KIW_STAT_RX_ATOMIC_RESPONSES);
	return KIW_PERR_NONE;
}

/* RFC 5040 4.8: the peer ends the stream and says why. A valid Terminate is not answered. */
static enum kiw_perr rx_terminate(struct kiw_qp *qp, struct kiw_rx_cursor *cur,
				  const struct kiw_ddp_seg *seg)
{
	const struct kiw_perr_info *info;
	u8 payload[KIW_TERM_MAX] = {};
	struct kiw_term term;
	enum kiw_perr perr;
	u32 len;

	perr = kiw_untagged_check(&qp->rx.queue[KIW_QN_TERMINATE], seg);
	len = min_t(u32, seg->payload_len, sizeof(payload));
	if (!rx_copy(qp, cur, payload, len))
		return KIW_PERR_RDMAP_CATASTROPHIC;
	if (perr != KIW_PERR_NONE || !kiw_term_decode(payload, len, &term))
		return perr == KIW_PERR_NONE ? KIW_PERR_RDMAP_STREAM : perr;
	kiw_qp_note_term(qp, KIW_QP_TERM_RECEIVED, term.layer, term.etype, term.code);
	info = kiw_perr_info(term.perr);
	kiw_count(qp->stats, KIW_STAT_RX_TERMINATES);
	trace_kiw_perr_rx(dev_name(&qp->ib.device->dev), qp->ib.qp_num, info->text, term.layer,
			  term.etype, term.code, seg->opcode);
	kiw_tx_refused(qp, &term, info->wcs);
	kiw_qp_handle_event(qp, KIW_QPE_PEER_TERMINATE);
	return KIW_PERR_NONE;
}

/*
 * Check that no message of another kind begins inside one. A source sends one message after the
 * other (RFC 5041 5.3), so the end of a message means that all earlier ones have arrived. Only a
 * Terminate may cut a message short.
 */
static enum kiw_perr rx_check_order(const struct kiw_qp *qp, const struct kiw_ddp_seg *seg)
{
	if (qp->rx.in_message && seg->opcode != qp->rx.opcode &&
	    seg->opcode != KIW_RDMAP_TERMINATE)
		return KIW_PERR_RDMAP_OPCODE;
	return KIW_PERR_NONE;
}

/* The messages of RFC 7306. Not inline: they are rare, and would slow down the others. */
static noinline enum kiw_perr rx_dispatch_ext(struct kiw_qp *qp, struct kiw_rx_run *run)
{
	const struct kiw_ddp_seg *seg = &run->fpdu.seg;

	switch (seg->opcode) {
	case KIW_RDMAP_ATOMIC_REQ:
		return rx_atomic_request(qp, run);
	case KIW_RDMAP_ATOMIC_RESP:
		return rx_atomic_response(qp, &run->cur, seg);
	default:
		return rx_immediate(qp, &run->cur, seg);
	}
}

static enum kiw_perr rx_dispatch(struct kiw_qp *qp, struct kiw_rx_run *run)
{
	const struct kiw_ddp_seg *seg = &run->fpdu.seg;

	switch (seg->opcode) {
	case KIW_RDMAP_WRITE:
		return rx_write(qp, &run->cur, seg);
	case KIW_RDMAP_READ_REQ:
		return rx_read_request(qp, run);
	case KIW_RDMAP_READ_RESP:
		return rx_read_response(qp, &run->cur, seg);
	case KIW_RDMAP_TERMINATE:
		return rx_terminate(qp, &run->cur, seg);
	case KIW_RDMAP_IMMEDIATE:
	case KIW_RDMAP_IMMEDIATE_SE:
	case KIW_RDMAP_ATOMIC_REQ:
	case KIW_RDMAP_ATOMIC_RESP:
		return rx_dispatch_ext(qp, run);
	default:
		return rx_send(qp, &run->cur, seg);
	}
}

/* FPDUs */

/* The first valid FPDU: the peer is in full operation, RFC 5044 7.1.2. */
static void rx_spoken(struct kiw_qp *qp, const struct kiw_ddp_seg *seg)
{
	bool is_announced = kiw_large_is_announced(seg);

	qp->tx.is_large = kiw_large_is_used(qp->conn.fpdus, is_announced);
	qp->tx.owes_announcement = kiw_large_owes(qp->conn.fpdus, qp->conn.initiator, is_announced);
	qp->rx.has_spoken = true;
	qp->conn.ops->spoken(qp->conn.conn);
	if (!qp->tx.awaits_first_fpdu)
		return;
	qp->tx.awaits_first_fpdu = false;
	kiw_qp_run_soon(qp);
}

/*
 * Send the announcement now, even if there is no message for it to precede. Called when the peer is
 * sending a message of several segments: with large FPDUs it would usually need fewer.
 */
static void rx_announce(struct kiw_qp *qp)
{
	if (qp->tx.announces)
		return;
	qp->tx.announces = true;
	kiw_qp_run_soon(qp);
}

/*
 * Process a complete FPDU; leaves @run->cur somewhere inside it. If @continues, kiw_rx_continues()
 * has decoded the header, and @in_message and @opcode do not change.
 */
static enum kiw_perr rx_fpdu(struct kiw_qp *qp, struct kiw_rx_run *run, bool continues)
{
	struct kiw_ddp_seg *seg = &run->fpdu.seg;
	enum kiw_perr perr;

	perr = kiw_rx_verify(qp, &run->cur, run->fpdu.extent.total);
	if (perr == KIW_PERR_NONE && !continues)
		perr = kiw_ddp_decode(run->fpdu.head, run->fpdu.extent.ulpdu_len, qp->conn.version,
				      qp->conn.opcodes, seg);
	if (perr != KIW_PERR_NONE)
		return perr;
	run->num++;
	run->octets += seg->payload_len;
	if (!continues)
		perr = rx_check_order(qp, seg);
	if (perr != KIW_PERR_NONE)
		return perr;
	kiw_rx_skip(qp, &run->cur, seg->hdr_len);
	perr = rx_dispatch(qp, run);
	if (perr != KIW_PERR_NONE || continues)
		return perr;
	qp->rx.in_message = !seg->last;
	qp->rx.opcode = seg->opcode;
	if (!qp->rx.has_spoken)
		rx_spoken(qp, seg);
	if (unlikely(qp->tx.owes_announcement) && !seg->last)
		rx_announce(qp);
	return KIW_PERR_NONE;
}

/*
 * There is no memory for the request in the FPDU at the front, and the FPDU has had no effect. It
 * stays in the queue, before the @rest bytes that follow, and the next run processes it from the
 * start.
 */
static void rx_put_off(struct kiw_rx_run *run, u32 rest)
{
	run->num--;
	run->octets -= run->fpdu.seg.payload_len;
	run->cur.avail = rest + run->fpdu.extent.total;
}

/*
 * End the stream. The QP leaves the states in which it places data, so the rest of the socket's
 * receive queue is never processed. The work request that the fault fails completes after the
 * fault was raised: its completion names the Terminate, which tells the fault even if the
 * completion overruns its CQ (RFC 5040 7.1 rule 4).
 */
static void rx_fault(struct kiw_qp *qp, const struct kiw_rx_fpdu *fpdu, enum kiw_perr perr)
{
	u32 len;

	if (kiw_sock_is_unreadable(qp->ks))
		perr = KIW_PERR_RDMAP_CATASTROPHIC;
	/* Do not blame the peer's segment for a fault of this end. */
	len = perr == KIW_PERR_RDMAP_CATASTROPHIC ? 0 : fpdu->head_len;
	kiw_tx_discard(qp);
	kiw_qp_fault(qp, perr, len ? fpdu->head : NULL, len);
	if (qp->rx.recv_status != KIW_WCS_SUCCESS)
		rx_complete_recv(qp, NULL, qp->rx.recv_status, 0);
	kiw_tx_complete(qp);
}

/* Process the FPDU at the front. Return: when to process the next one, or this one. */
static enum rx_when rx_next(struct kiw_qp *qp, struct kiw_rx_run *run)
{
	struct kiw_rx_cursor *cur = &run->cur;
	bool continues = kiw_rx_continues(qp, cur, &run->fpdu);
	enum kiw_mpa_rx what = continues ? KIW_MPA_RX_READY : kiw_rx_frame(qp, cur, &run->fpdu);
	u32 left = cur->avail - run->fpdu.extent.total;
	enum kiw_perr perr;

	if (what == KIW_MPA_RX_MORE) {
		run->want = run->fpdu.extent.total;
		return RX_WAIT;
	}
	perr = what == KIW_MPA_RX_READY ? rx_fpdu(qp, run, continues) : KIW_PERR_MPA_FRAMING;
	if (perr != KIW_PERR_NONE && run->is_short) {
		rx_put_off(run, left);
		return RX_LATER;
	}
	if (perr != KIW_PERR_NONE) {
		rx_fault(qp, &run->fpdu, perr);
		return RX_WAIT;
	}
	kiw_sock_rx_skip(qp->ks, cur, cur->avail - left);
	if (!run->fpdu.seg.last)
		kiw_rx_follow(qp, run);
	return RX_NOW;
}

/*
 * All but the last @left bytes were processed or discarded. Check if the stream has ended. Once
 * data is discarded, it no longer matters whether the peer's FIN is inside a message. That must
 * not keep a Terminate from being sent.
 */
static void rx_check_end(struct kiw_qp *qp, u32 left)
{
	struct kiw_rx *rx = &qp->rx;
	bool inside = kiw_rx_may_place(qp) && (left || rx->in_message);

	switch (kiw_sock_status(qp->ks)) {
	case KIW_SOCK_PEER_CLOSED:
		if (rx->has_ended)
			return;
		rx->has_ended = true;
		kiw_qp_handle_event(qp, inside ? KIW_QPE_LLP_LOST : KIW_QPE_PEER_FIN);
		kiw_qp_run_soon(qp);
		return;
	case KIW_SOCK_DEAD:
		rx->has_ended = true;
		kiw_qp_handle_event(qp, KIW_QPE_LLP_LOST);
		return;
	default:
		return;
	}
}

/* Process what has arrived, as far as the budget allows. Return: when to process the rest. */
static enum rx_when rx_use(struct kiw_qp *qp, struct kiw_rx_run *run)
{
	enum rx_when when = RX_NOW;

	/* In this run there is no previous FPDU that the first one could continue. */
	run->fpdu.seg.last = true;
	kiw_mr_enter(qp->mrs, &qp->rx.section);
	while (when == RX_NOW && run->cur.avail && kiw_rx_may_place(qp))
		when = kiw_rx_has_budget(run) ? rx_next(qp, run) : RX_SOON;
	kiw_mr_leave(&qp->rx.section);
	kiw_count_add(qp->stats, KIW_STAT_RX_FPDUS, run->num);
	kiw_count_add(qp->stats, KIW_STAT_RX_BYTES, run->octets);
	return when;
}

/* Begin a run at the oldest byte that was not consumed. */
static void rx_begin_run(struct kiw_qp *qp, struct kiw_rx_run *run)
{
	kiw_sock_rx_start(qp->ks, &run->cur);
	run->num = 0;
	run->octets = 0;
	run->want = RX_FPDU_MIN;
	run->is_short = false;
	if (qp->rx.has_first_seq)
		return;
	qp->rx.first_seq = run->cur.seq;
	qp->rx.has_first_seq = true;
}

/**
 * kiw_rx_run() - process what has arrived
 * @qp: the QP
 *
 * Runs again without a further call if the budget is used up or memory is short, when TCP has more,
 * or when the stream ends.
 *
 * Context: socket lock held, BHs off. Never sleeps.
 */
void kiw_rx_run(struct kiw_qp *qp)
{
	struct kiw_rx_run run;
	enum rx_when when;
	u32 start;

	kiw_sock_assert_held_bh(qp->ks);
	if (!qp->rx.is_running)
		return;
	rx_begin_run(qp, &run);
	start = run.cur.avail;
	when = rx_use(qp, &run);
	if (when == RX_SOON || when == RX_LATER) {
		kiw_sock_rx_consume(qp->ks, start - run.cur.avail);
		if (when == RX_SOON)
			kiw_qp_run_soon(qp);
		else
			kiw_qp_retry_later(qp);
		return;
	}
	/* After a fault or the end of the QP, discard the rest. */
	if (!kiw_rx_may_place(qp))
		run.cur.avail = 0;
	kiw_sock_rx_room(qp->ks, &run.cur, run.want);
	if (start != run.cur.avail)
		kiw_sock_rx_consume(qp->ks, start - run.cur.avail);
	kiw_sock_rx_want(qp->ks, run.want);
	rx_check_end(qp, run.cur.avail);
}

/* TCP's callbacks, through sock/sock.c */

static void rx_readable(void *owner)
{
	if (!kiw_qp_gives_way(owner))
		kiw_rx_run(owner);
}

static void rx_run_soon(void *owner)
{
	kiw_qp_run_soon(owner);
}

const struct kiw_sock_ops kiw_qp_sock_ops = {
	.readable = rx_readable,
	.writable = rx_run_soon,
	.changed = rx_run_soon,
};

/**
 * kiw_rx_init() - prepare the engine for a stream
 * @qp: the QP
 *
 * Context: process; no stream yet.
 */
void kiw_rx_init(struct kiw_qp *qp)
{
	int i;

	memset(&qp->rx, 0, sizeof(qp->rx));
	for (i = 0; i < KIW_QN_COUNT; i++)
		qp->rx.queue[i].msn = 1;
}

/**
 * kiw_rx_flush() - complete receives of the QP as flushed
 * @qp: the QP, in ERROR
 * @left: maximum number of receive queue entries to complete, beside one that a message has taken
 *	already; not 0
 *
 * The receives in a shared receive queue stay there.
 *
 * Context: process; socket lock held if there is a socket, BHs off; only called by the QP's work
 * item or kiw_qp_reset().
 * Return: true: there may be more; call again.
 */
bool kiw_rx_flush(struct kiw_qp *qp, u32 left)
{
	kiw_sock_assert_held_bh(qp->ks);
	if (qp->rx.has_recv)
		rx_complete_recv(qp, NULL, KIW_WCS_FLUSHED, 0);
	if (qp->srq)
		return false;
	while (kiw_rq_fetch(&qp->rq, &qp->rx.recv)) {
		rx_complete_recv(qp, NULL, KIW_WCS_FLUSHED, 0);
		if (!--left)
			return true;
	}
	return false;
}
