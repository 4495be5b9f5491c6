// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Posting to send queues.
 */
#include "storm.h"

static const enum ibv_wr_opcode opcodes[] = {
	[SEND] = IBV_WR_SEND, [WRITE] = IBV_WR_RDMA_WRITE, [READ] = IBV_WR_RDMA_READ,
	[SEND_INV] = IBV_WR_SEND_WITH_INV, [WRITE_IMM] = IBV_WR_RDMA_WRITE_WITH_IMM,
	[FETCH_ADD] = IBV_WR_ATOMIC_FETCH_AND_ADD, [CMP_SWAP] = IBV_WR_ATOMIC_CMP_AND_SWP,
	[INVALIDATE] = IBV_WR_LOCAL_INV,
};

/**
 * new_op() - begin a work request that has memory
 * @kind: its kind
 * @conn: its connection
 * @who: its end
 * @size: length in bytes
 *
 * Context: user space.
 * Return: the work request.
 */
struct op *new_op(enum kind kind, int conn, int who, __u32 size)
{
	struct op *op = op_get(kind, conn, who);

	op->slot = slot_get(who, conn);
	op->size = size;
	op->seed = pick(1 << 30);
	return op;
}

static int cut(struct ibv_sge *sge, const struct op *op)
{
	int count = is_atomic(op) ? 1 : 1 + pick(MAX_SGE);
	__u32 at = 0, piece;
	int i;

	for (i = 0; i < count; i++) {
		piece = i == count - 1 ? op->size - at : pick(op->size - at + 1);
		sge[i] = (struct ibv_sge) {
			(unsigned long)memory(op->end, op->slot) + at, piece,
			hosts[op->end].mr->lkey,
		};
		at += piece;
	}
	return count;
}

/**
 * post_flags() - choose the flags of a work request that is posted next
 * @op: the work request
 *
 * Context: user space.
 * Return: enum ibv_send_flags, without inline.
 */
int post_flags(struct op *op)
{
	struct half *h = &conns[op->conn].halves[op->end];
	int flags = 0;

	op->is_signaled = h->unsignaled >= UNSIGNALED_MAX || pick(3);
	h->unsignaled = op->is_signaled ? 0 : h->unsignaled + 1;
	if (op->is_signaled)
		flags |= IBV_SEND_SIGNALED;
	if (!pick(4))
		flags |= IBV_SEND_FENCE;
	if (!pick(4))
		flags |= IBV_SEND_SOLICITED;
	push(&h->sent, op);
	return flags;
}

static bool may_be_inline(const struct op *op)
{
	return op->slot != NOBODY && op->kind != READ && !is_atomic(op) && op->size <= MAX_INLINE;
}

/**
 * post() - post a work request
 * @op: the work request; not a binding
 * @remote: tagged offset at the peer, if it has one
 * @rkey: STag of the peer, likewise
 *
 * Context: user space.
 */
void post(struct op *op, __u64 remote, __u32 rkey)
{
	struct ibv_sge sge[MAX_SGE];
	struct ibv_send_wr wr = {
		.wr_id = id_of(op), .opcode = opcodes[op->kind], .sg_list = sge,
		.num_sge = op->slot == NOBODY ? 0 : cut(sge, op), .send_flags = post_flags(op),
	}, *bad;

	if (may_be_inline(op) && pick(2))
		wr.send_flags |= IBV_SEND_INLINE;
	if (op->kind == SEND_INV || op->kind == INVALIDATE)
		wr.invalidate_rkey = op->stag;
	if (op->kind == WRITE_IMM)
		wr.imm_data = htobe32(op->imm);
	if (is_atomic(op)) {
		wr.wr.atomic.remote_addr = remote;
		wr.wr.atomic.rkey = rkey;
		wr.wr.atomic.compare_add = op->operand;
		wr.wr.atomic.swap = op->swap;
	} else {
		wr.wr.rdma.remote_addr = remote;
		wr.wr.rdma.rkey = rkey;
	}
	MUST(!ibv_post_send(conns[op->conn].ends[op->end].id->qp, &wr, &bad));
}
