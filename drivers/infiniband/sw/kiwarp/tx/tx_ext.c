// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The messages of RFC 7306: Immediate Data, Atomic Requests, and the execution of the peer's Atomic
 * Operations with their Responses. Each is one untagged segment. tx.c decides when they are due.
 *
 * Owns: nothing. Context: socket lock held, BHs off, within the engine's MR table section.
 */
#include "tx_ext.h"

#include "mem/mr_atomic.h"
#include "proto/rdmap_ext.h"
#include "proto/term.h"
#include "qp/qp.h"
#include "tx_fpdu.h"

/**
 * kiw_tx_add_immediate() - append the Immediate Data of the current work request to the batch
 * @qp: the QP
 *
 * RFC 7306 6.3.
 *
 * Context: socket lock held, BHs off, within the engine's MR table section.
 * Return: false: no memory, or the batch cannot take another fragment.
 */
bool kiw_tx_add_immediate(struct kiw_qp *qp)
{
	const struct kiw_swqe *wqe = &qp->tx.wqe;
	u8 data[KIW_IMMEDIATE_SIZE];
	u8 opcode = KIW_RDMAP_IMMEDIATE;

	kiw_sock_assert_held_bh(qp->ks);
	if (wqe->flags & KIW_WRF_SOLICITED)
		opcode = KIW_RDMAP_IMMEDIATE_SE;
	kiw_immediate_encode(data, wqe->imm);
	if (!kiw_tx_add_untagged(qp, opcode, data, sizeof(data)))
		return false;
	kiw_count(qp->stats, KIW_STAT_TX_IMMEDIATES);
	return true;
}

static u8 ext_aopcode(u8 op)
{
	return op == KIW_WR_FETCH_ADD || op == KIW_WR_MASKED_FETCH_ADD ? KIW_ATOMIC_FETCH_ADD :
									 KIW_ATOMIC_CMP_SWAP;
}

/**
 * kiw_tx_add_atomic_request() - append the current work request's Atomic Request to the batch
 * @qp: the QP; its queue of outstanding Reads is ready and not full
 *
 * RFC 7306 5.2.1. The Request Identifier is the number of the message in its queue, so no two that
 * are outstanding have the same.
 *
 * Context: socket lock held, BHs off, within the engine's MR table section.
 * Return: false: no memory, or the batch cannot take another fragment.
 */
bool kiw_tx_add_atomic_request(struct kiw_qp *qp)
{
	const struct kiw_swqe *wqe = &qp->tx.wqe;
	const struct kiw_atomic_req req = {
		.to = wqe->raddr,
		.data = wqe->atomic.data,
		.mask = wqe->atomic.mask,
		.compare = wqe->atomic.compare,
		.compare_mask = wqe->atomic.compare_mask,
		.id = qp->tx.msn[KIW_QN_READ_REQ],
		.stag = wqe->rkey,
		.aopcode = ext_aopcode(wqe->op),
	};
	struct kiw_wire_atomic_req wire;
	struct kiw_read *read;

	kiw_sock_assert_held_bh(qp->ks);
	kiw_atomic_req_encode(&wire, &req);
	if (!kiw_tx_add_untagged(qp, KIW_RDMAP_ATOMIC_REQ, &wire, sizeof(wire)))
		return false;
	read = kiw_orq_add(&qp->tx.orq, &wqe->atomic_sink, 1);
	read->is_atomic = true;
	read->stag = req.id;
	read->pend = qp->tx.pend.put - 1;
	kiw_count(qp->stats, KIW_STAT_TX_ATOMIC_REQUESTS);
	return true;
}

/* Execute an operation, unless it was executed before and only its Response could not be built. */
static enum kiw_mem_fault ext_execute(struct kiw_qp *qp, struct kiw_peer_read *read)
{
	enum kiw_mem_fault fault;
	struct kiw_mr *mr;

	if (read->is_executed)
		return KIW_MEM_OK;
	mr = kiw_mr_use(&qp->tx.section, read->atomic.stag);
	if (!mr)
		return KIW_MEM_STAG;
	fault = kiw_mr_atomic_check(mr, qp->ib.pd, read->atomic.to);
	if (fault == KIW_MEM_OK) {
		read->value = kiw_mr_atomic(mr, &read->atomic);
		read->is_executed = true;
	}
	kiw_mr_done(mr);
	return fault;
}

/* The memory has become invalid since the request arrived. */
static void ext_response_fault(struct kiw_qp *qp, const struct kiw_peer_read *read,
			       enum kiw_mem_fault fault)
{
	u8 head[sizeof(struct kiw_wire_untagged)];
	size_t len = kiw_term_atomic_head(head, read->ddp);

	qp->tx.kind = KIW_TX_NONE;
	kiw_qp_fault(qp, kiw_mr_source_perr(fault), head, len);
}

/**
 * kiw_tx_add_atomic_response() - execute the peer's oldest request, and append its Response
 * @qp: the QP; its oldest inbound request is an Atomic Operation
 *
 * RFC 7306 5.2.2. The responses to all earlier requests are in the batch or with TCP.
 *
 * Context: socket lock held, BHs off, within the engine's MR table section.
 * Return: false: there was a fault; or no memory for the Response, or no room in the batch: call
 * again later.
 */
bool kiw_tx_add_atomic_response(struct kiw_qp *qp)
{
	struct kiw_peer_read *read = kiw_inq_oldest(&qp->tx.inq);
	struct kiw_wire_atomic_resp wire;
	struct kiw_atomic_resp resp;
	enum kiw_mem_fault fault;

	kiw_sock_assert_held_bh(qp->ks);
	fault = ext_execute(qp, read);
	if (fault != KIW_MEM_OK) {
		ext_response_fault(qp, read, fault);
		return false;
	}
	resp = (struct kiw_atomic_resp) { .id = read->atomic.id, .value = read->value };
	kiw_atomic_resp_encode(&wire, &resp);
	if (!kiw_tx_add_untagged(qp, KIW_RDMAP_ATOMIC_RESP, &wire, sizeof(wire)))
		return false;
	kiw_inq_done(&qp->tx.inq);
	kiw_count(qp->stats, KIW_STAT_TX_ATOMIC_RESPONSES);
	return true;
}
