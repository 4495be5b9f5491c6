// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Checks and queues received Atomic Requests, and matches Atomic Responses with requests (RFC
 * 7306). rx.c extracts their headers from the FPDU, and stores the value of a Response.
 *
 * Owns: nothing. Context: socket lock held, BHs off, within the MR table section of the run.
 */
#include "rx_ext.h"

#include "mem/mr_atomic.h"
#include "qp/qp.h"

/*
 * Do the rights that the consumer gave the QP allow atomic operations? For iWARP, rdma_cm sets
 * remote read and write as the rights of a QP, and has no way to grant remote atomic. So a QP that
 * allows the first two allows atomics as well; the region still has to grant the right.
 */
static bool ext_qp_allows(const struct kiw_qp *qp)
{
	const int both = IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_WRITE;
	int access = READ_ONCE(qp->access);

	return access & IB_ACCESS_REMOTE_ATOMIC || (access & both) == both;
}

/* May the peer operate on this? The memory is checked once more when the operation is executed. */
static enum kiw_mem_fault ext_check_target(struct kiw_qp *qp, const struct kiw_atomic_req *req)
{
	struct kiw_mr *mr = kiw_mr_use(&qp->rx.section, req->stag);
	enum kiw_mem_fault fault;

	if (!mr)
		return KIW_MEM_STAG;
	fault = kiw_mr_atomic_check(mr, qp->ib.pd, req->to);
	kiw_mr_done(mr);
	if (fault == KIW_MEM_OK || fault == KIW_MEM_ALIGN)
		return ext_qp_allows(qp) ? fault : KIW_MEM_ACCESS;
	return fault;
}

/**
 * kiw_rx_atomic_request() - queue an Atomic Operation of the peer
 * @qp: the QP; its queue of inbound Reads is ready
 * @seg: the segment
 * @ddp: its DDP header as received
 * @wire: its payload, the Atomic Request header
 *
 * RFC 7306 5.2.1 and 8.2. The transmit engine executes it when all earlier responses have been
 * generated (5.4 rule 8).
 *
 * Context: socket lock held, BHs off, within @qp->rx.section.
 * Return: %KIW_PERR_NONE, or the fault.
 */
enum kiw_perr kiw_rx_atomic_request(struct kiw_qp *qp, const struct kiw_ddp_seg *seg,
				    const u8 *ddp, const u8 *wire)
{
	struct kiw_untagged_rx *queue = &qp->rx.queue[KIW_QN_READ_REQ];
	struct kiw_atomic_req req;
	enum kiw_mem_fault fault;
	enum kiw_perr perr;

	kiw_sock_assert_held_bh(qp->ks);
	perr = kiw_untagged_check(queue, seg);
	if (perr != KIW_PERR_NONE)
		return perr;
	kiw_atomic_req_decode(wire, &req);
	/* RFC 7306 5.2.1 (4) has no code for this. The operation is part of the opcode. */
	if (!kiw_atomic_is_known(req.aopcode))
		return KIW_PERR_RDMAP_OPCODE;
	fault = ext_check_target(qp, &req);
	if (fault != KIW_MEM_OK)
		return kiw_mr_source_perr(fault);
	if (!kiw_inq_add_atomic(&qp->tx.inq, &req, ddp))
		return KIW_PERR_DDP_NO_BUFFER;
	kiw_untagged_advance(queue, seg);
	kiw_count(qp->stats, KIW_STAT_RX_ATOMIC_REQUESTS);
	kiw_qp_run_soon(qp);
	return KIW_PERR_NONE;
}

/**
 * kiw_rx_match_atomic() - does an Atomic Response answer the oldest request?
 * @qp: the QP
 * @read: the oldest outstanding Read or Atomic Operation of this end, or NULL
 * @seg: the segment
 * @resp: the Response
 *
 * RFC 7306 5.2.2: Responses come in the order of the requests, so the MSN names the oldest one.
 *
 * Context: socket lock held, BHs off.
 * Return: %KIW_PERR_NONE, and the queue has advanced; or the fault.
 */
enum kiw_perr kiw_rx_match_atomic(struct kiw_qp *qp, const struct kiw_read *read,
				  const struct kiw_ddp_seg *seg, const struct kiw_atomic_resp *resp)
{
	struct kiw_untagged_rx *queue = &qp->rx.queue[KIW_QN_ATOMIC_RESP];
	enum kiw_perr perr;

	kiw_sock_assert_held_bh(qp->ks);
	perr = kiw_untagged_check(queue, seg);
	if (perr != KIW_PERR_NONE)
		return perr;
	if (!read || !read->is_atomic)
		return KIW_PERR_RDMAP_OPCODE;
	if (resp->id != read->stag)
		return KIW_PERR_RDMAP_STREAM;
	kiw_untagged_advance(queue, seg);
	return KIW_PERR_NONE;
}
