// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Posting work requests of kernel consumers, and fetching from queues of any format.
 *
 * Owns: the kernel format of send and receive rings, which are arrays of the internal format. A
 * work request is translated and checked when it is posted. So all entries of a kernel ring are
 * well-formed, and the poster of a malformed work request gets the error. What depends on memory is
 * checked when the work request is executed.
 *
 * An entry has room for KIW_MAX_SGE SGEs. If a send ring allows more, an array after the entries
 * holds the SGEs of work requests that have more: one row for each slot. The engine reads them
 * there. A slot is not posted to again before its work request is done, and neither is its row.
 *
 * Contexts: any; consumers may post from hard interrupts, too. Locks: the queue's lock, which is
 * innermost. Only the allocation of rings sleeps.
 */
#include <linux/overflow.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "wr.h"
#include "mem/mr.h"
#include "proto/ring.h"
#include "proto/stag.h"

#define WR_SEND_FLAGS	(IB_SEND_FENCE | IB_SEND_SIGNALED | IB_SEND_SOLICITED | IB_SEND_INLINE)

static int wr_translate_reg(struct kiw_swqe *wqe, const struct ib_reg_wr *reg)
{
	const u32 index = ~(u32)0 << KIW_STAG_KEY_BITS;

	if (!reg->mr || (reg->mr->lkey ^ reg->key) & index)
		return -EINVAL;
	/* As for other kinds of registration: remote write requires local write. */
	if (ib_check_mr_access(reg->mr->device, reg->access) ||
	    reg->access & ~(KIW_ACCESS_GRANTED | KIW_ACCESS_IGNORED))
		return -EINVAL;
	wqe->op = KIW_WR_REG_MR;
	wqe->rkey = reg->key;
	wqe->access = reg->access & KIW_ACCESS_GRANTED;
	return 0;
}

static int wr_translate_rdma(struct kiw_swqe *wqe, enum kiw_wr_op op, const struct ib_rdma_wr *rdma)
{
	wqe->op = op;
	wqe->raddr = rdma->remote_addr;
	wqe->rkey = rdma->rkey;
	return 0;
}

/* The operands for the wire. RFC 7306 5.2.1 says what the last two are if they are not used. */
static void wr_translate_args(struct kiw_swqe *wqe, const struct ib_atomic_wr *wr)
{
	struct kiw_atomic_args *args = &wqe->atomic;
	bool is_masked = wqe->op == KIW_WR_MASKED_FETCH_ADD || wqe->op == KIW_WR_MASKED_CMP_SWAP;

	if (wqe->op == KIW_WR_FETCH_ADD || wqe->op == KIW_WR_MASKED_FETCH_ADD) {
		args->data = wr->compare_add;
		args->mask = is_masked ? wr->compare_add_mask : 0;
		args->compare = 0;
		args->compare_mask = ~0ULL;
		return;
	}
	args->data = wr->swap;
	args->mask = is_masked ? wr->swap_mask : ~0ULL;
	args->compare = wr->compare_add;
	args->compare_mask = is_masked ? wr->compare_add_mask : ~0ULL;
}

static int wr_translate_atomic(struct kiw_swqe *wqe, enum kiw_wr_op op,
			       const struct ib_atomic_wr *wr)
{
	if (wr->wr.num_sge != 1 || wr->wr.sg_list[0].length != sizeof(u64))
		return -EINVAL;
	wqe->op = op;
	wqe->raddr = wr->remote_addr;
	wqe->rkey = wr->rkey;
	wr_translate_args(wqe, wr);
	return 0;
}

/* Operations that need messages of RFC 7306. It has none for a Send with immediate. */
static int wr_translate_ext(struct kiw_swqe *wqe, const struct ib_send_wr *wr)
{
	switch (wr->opcode) {
	case IB_WR_RDMA_WRITE_WITH_IMM:
		wqe->imm = wr->ex.imm_data;
		return wr_translate_rdma(wqe, KIW_WR_WRITE_IMM, rdma_wr(wr));
	case IB_WR_ATOMIC_FETCH_AND_ADD:
		return wr_translate_atomic(wqe, KIW_WR_FETCH_ADD, atomic_wr(wr));
	case IB_WR_ATOMIC_CMP_AND_SWP:
		return wr_translate_atomic(wqe, KIW_WR_CMP_SWAP, atomic_wr(wr));
	case IB_WR_MASKED_ATOMIC_FETCH_AND_ADD:
		return wr_translate_atomic(wqe, KIW_WR_MASKED_FETCH_ADD, atomic_wr(wr));
	case IB_WR_MASKED_ATOMIC_CMP_AND_SWP:
		return wr_translate_atomic(wqe, KIW_WR_MASKED_CMP_SWAP, atomic_wr(wr));
	default:
		return -EOPNOTSUPP;
	}
}

static int wr_translate_op(const struct kiw_sq *sq, struct kiw_swqe *wqe,
			   const struct ib_send_wr *wr)
{
	switch (wr->opcode) {
	case IB_WR_SEND:
		wqe->op = KIW_WR_SEND;
		return 0;
	case IB_WR_SEND_WITH_INV:
		wqe->op = KIW_WR_SEND_INV;
		wqe->rkey = wr->ex.invalidate_rkey;
		return 0;
	case IB_WR_RDMA_WRITE:
		return wr_translate_rdma(wqe, KIW_WR_WRITE, rdma_wr(wr));
	case IB_WR_RDMA_READ:
		/* The limit that device_attr.max_sge_rd reports */
		return wr->num_sge <= KIW_MAX_SGE ?
			       wr_translate_rdma(wqe, KIW_WR_READ, rdma_wr(wr)) : -EINVAL;
	case IB_WR_RDMA_READ_WITH_INV:
		/* Only one STag can be invalidated. */
		return wr->num_sge == 1 ? wr_translate_rdma(wqe, KIW_WR_READ_INV, rdma_wr(wr)) :
					  -EINVAL;
	case IB_WR_REG_MR:
		return wr_translate_reg(wqe, reg_wr(wr));
	case IB_WR_LOCAL_INV:
		wqe->op = KIW_WR_LOCAL_INV;
		wqe->rkey = wr->ex.invalidate_rkey;
		return 0;
	default:
		return sq->is_extended ? wr_translate_ext(wqe, wr) : -EOPNOTSUPP;
	}
}

/* Return: total bytes of @list, or -EINVAL */
static int wr_translate_sges(struct kiw_sge *sge, const struct ib_sge *list, int num, u8 max)
{
	u64 total = 0;
	int i;

	if (num < 0 || num > max)
		return -EINVAL;
	for (i = 0; i < num; i++) {
		sge[i].addr = list[i].addr;
		sge[i].length = list[i].length;
		sge[i].lkey = list[i].lkey;
		total += list[i].length;
	}
	if (total > KIW_MAX_WR_BYTES)
		return -EINVAL;
	return total;
}

/*
 * Inline data belongs to the consumer again when the post returns, so it is copied now. Its SGEs
 * hold kernel addresses, whatever their lkey, and there may be more than max_sge of them. They are
 * not passed on to the engine.
 */
static int wr_translate_inline(struct kiw_swqe *wqe, const struct ib_send_wr *wr, u8 max)
{
	u32 total = 0;
	int i;

	if (wr->num_sge < 0 || kiw_wr_has_response(wqe->op))
		return -EINVAL;
	for (i = 0; i < wr->num_sge; i++) {
		const struct ib_sge *sge = &wr->sg_list[i];

		if (sge->length > max - total)
			return -EINVAL;
		memcpy(wqe->inline_data + total, (void *)(uintptr_t)sge->addr, sge->length);
		total += sge->length;
	}
	return total;
}

/* Row @slot of the array after the entries */
static struct kiw_sge *wr_many_sges(const struct kiw_sq *sq, u32 slot)
{
	const struct kiw_swqe *ring = sq->ring;

	return (struct kiw_sge *)&ring[sq->size] + (size_t)slot * sq->max_sge;
}

/* Where @num SGEs of the next entry go. @num is unchecked; wr_translate_sges() checks it first. */
static struct kiw_sge *wr_room_for_sges(const struct kiw_sq *sq, struct kiw_swqe *wqe, int num)
{
	if (num <= KIW_MAX_SGE)
		return wqe->sge;
	wqe->many_sges = wr_many_sges(sq, kiw_ring_slot(sq->put, sq->size));
	return wqe->many_sges;
}

static int wr_translate_send(const struct kiw_sq *sq, struct kiw_swqe *wqe,
			     const struct ib_send_wr *wr)
{
	int ret;

	if (wr->send_flags & ~WR_SEND_FLAGS)
		return -EINVAL;
	ret = wr_translate_op(sq, wqe, wr);
	if (ret)
		return ret;
	wqe->wr_id = wr->wr_id;
	wqe->flags = wr->send_flags;
	if (kiw_wr_is_local(wqe->op)) {
		wqe->num_sge = 0;
		wqe->length = 0;
		return wr->num_sge || wqe->flags & KIW_WRF_INLINE ? -EINVAL : 0;
	}
	if (wqe->flags & KIW_WRF_INLINE) {
		wqe->num_sge = 0;
		ret = wr_translate_inline(wqe, wr, sq->max_inline);
	} else {
		wqe->num_sge = wr->num_sge;
		ret = wr_translate_sges(wr_room_for_sges(sq, wqe, wr->num_sge), wr->sg_list,
					wr->num_sge, sq->max_sge);
	}
	if (ret < 0)
		return ret;
	wqe->length = ret;
	return 0;
}

/**
 * kiw_sq_kernel_ring() - allocate a send ring in the kernel format
 * @size: slots
 * @max_sge: maximum number of SGEs of a work request
 *
 * Context: process; may sleep.
 * Return: the ring, zeroed, to be freed with kvfree(), or NULL.
 */
void *kiw_sq_kernel_ring(u32 size, u8 max_sge)
{
	size_t bytes = array_size(size, sizeof(struct kiw_swqe));

	if (max_sge > KIW_MAX_SGE)
		bytes = size_add(bytes, array3_size(size, max_sge, sizeof(struct kiw_sge)));
	return kvzalloc(bytes, GFP_KERNEL);
}

/**
 * kiw_rq_kernel_ring() - allocate a receive ring in the kernel format
 * @size: slots
 *
 * Context: process; may sleep.
 * Return: the ring, zeroed, to be freed with kvfree(), or NULL.
 */
void *kiw_rq_kernel_ring(u32 size)
{
	return kvcalloc(size, sizeof(struct kiw_rwqe), GFP_KERNEL);
}

/**
 * kiw_sq_post() - append a work request of a kernel consumer
 * @sq: send queue in the kernel format
 * @wr: the work request; its @next is ignored
 *
 * The work request is translated in the free slot after the last entry, so a bad one does not
 * change the queue. The queue is full if as many work requests as it has slots are not done, no
 * matter how many of them were fetched. So a completion queue of that size has room for the
 * completions of all of them.
 *
 * Context: any; takes @sq->lock.
 * Return: 0; -ENOMEM: the queue is full; -EOPNOTSUPP: the operation is not offered, or not on this
 * connection; -EINVAL: flags, SGEs or length out of bounds, or a malformed registration.
 */
int kiw_sq_post(struct kiw_sq *sq, const struct ib_send_wr *wr)
{
	struct kiw_swqe *ring = sq->ring;
	unsigned long flags;
	int ret = -ENOMEM;

	spin_lock_irqsave(&sq->lock, flags);
	/* Pairs with the release in kiw_sq_done(): the engine no longer reads the slot's row. */
	if (!kiw_ring_full(sq->put, smp_load_acquire(&sq->done), sq->size))
		ret = wr_translate_send(sq, &ring[kiw_ring_slot(sq->put, sq->size)], wr);
	/* wr_sq_has() reads it without the lock. */
	if (!ret)
		WRITE_ONCE(sq->put, sq->put + 1);
	spin_unlock_irqrestore(&sq->lock, flags);
	return ret;
}

static int wr_translate_recv(const struct kiw_rq *rq, struct kiw_rwqe *wqe,
			     const struct ib_recv_wr *wr)
{
	int ret;

	ret = wr_translate_sges(wqe->sge, wr->sg_list, wr->num_sge, rq->max_sge);
	if (ret < 0)
		return ret;
	wqe->wr_id = wr->wr_id;
	wqe->num_sge = wr->num_sge;
	wqe->length = ret;
	return 0;
}

/**
 * kiw_rq_post() - append a receive of a kernel consumer
 * @rq: receive queue in the kernel format, of a QP or shared
 * @wr: the work request; its @next is ignored
 *
 * Context: any; takes @rq->lock.
 * Return: 0; -ENOMEM: the ring is full; -EINVAL: SGEs or length out of bounds.
 */
int kiw_rq_post(struct kiw_rq *rq, const struct ib_recv_wr *wr)
{
	struct kiw_rwqe *ring;
	unsigned long flags;
	int ret = -ENOMEM;

	spin_lock_irqsave(&rq->lock, flags);
	ring = rq->ring;
	if (!kiw_ring_full(rq->put, rq->get, rq->size))
		ret = wr_translate_recv(rq, &ring[kiw_ring_slot(rq->put, rq->size)], wr);
	if (!ret)
		rq->put++;
	spin_unlock_irqrestore(&rq->lock, flags);
	return ret;
}

/**
 * kiw_sq_fetch() - take the oldest entry out of a send queue
 * @sq: send queue of any format
 * @wqe: set to a copy of the entry
 *
 * Context: any; takes @sq->lock.
 * Return: 1: @wqe is valid; 0: the queue is empty; -EINVAL: a malformed entry was
 * taken, @wqe->wr_id and @wqe->op are for its completion.
 */
int kiw_sq_fetch(struct kiw_sq *sq, struct kiw_swqe *wqe)
{
	unsigned long flags;
	int ret;

	spin_lock_irqsave(&sq->lock, flags);
	ret = sq->ops->fetch(sq, wqe);
	spin_unlock_irqrestore(&sq->lock, flags);
	return ret;
}

/**
 * kiw_rq_fetch() - take the oldest entry out of a receive queue
 * @rq: receive queue of any format, of a QP or shared
 * @wqe: set to a copy of the entry
 *
 * Context: any; takes @rq->lock.
 * Return: 1: @wqe is valid; 0: the queue is empty; -EINVAL: a malformed entry was
 * taken, @wqe->wr_id identifies it.
 */
int kiw_rq_fetch(struct kiw_rq *rq, struct kiw_rwqe *wqe)
{
	unsigned long flags;
	int ret;

	spin_lock_irqsave(&rq->lock, flags);
	ret = rq->ops->fetch(rq, wqe);
	spin_unlock_irqrestore(&rq->lock, flags);
	return ret;
}

static int wr_sq_fetch(struct kiw_sq *sq, struct kiw_swqe *wqe)
{
	const struct kiw_swqe *ring = sq->ring;

	lockdep_assert_held(&sq->lock);
	if (kiw_ring_empty(sq->put, sq->get))
		return 0;
	*wqe = ring[kiw_ring_slot(sq->get, sq->size)];
	WRITE_ONCE(sq->get, sq->get + 1);
	return 1;
}

static bool wr_sq_has(const struct kiw_sq *sq, u32 n)
{
	return kiw_ring_used(READ_ONCE(sq->put), READ_ONCE(sq->get)) >= n;
}

const struct kiw_sq_ops kiw_sq_kernel_ops = {
	.fetch = wr_sq_fetch,
	.has = wr_sq_has,
};

static int wr_rq_fetch(struct kiw_rq *rq, struct kiw_rwqe *wqe)
{
	const struct kiw_rwqe *ring = rq->ring;

	lockdep_assert_held(&rq->lock);
	if (kiw_ring_empty(rq->put, rq->get))
		return 0;
	*wqe = ring[kiw_ring_slot(rq->get, rq->size)];
	/* A resource query reads it without the lock. */
	WRITE_ONCE(rq->get, rq->get + 1);
	return 1;
}

static bool wr_rq_has(struct kiw_rq *rq, u32 n)
{
	lockdep_assert_held(&rq->lock);
	return kiw_ring_used(rq->put, rq->get) >= n;
}

/* Not in portions: a consumer could post between them */
static int wr_rq_move(struct kiw_rq *rq, struct kiw_rq_move *move)
{
	const struct kiw_rwqe *from = rq->ring;
	struct kiw_rwqe *to = move->ring;
	u32 pos;

	lockdep_assert_held(&rq->lock);
	if (kiw_ring_used(rq->put, rq->get) > move->size)
		return -EBUSY;
	for (pos = rq->get; pos != rq->put; pos++)
		to[kiw_ring_slot(pos, move->size)] = from[kiw_ring_slot(pos, rq->size)];
	kiw_rq_exchange(rq, move);
	return 0;
}

const struct kiw_rq_ops kiw_rq_kernel_ops = {
	.fetch = wr_rq_fetch,
	.has = wr_rq_has,
	.move = wr_rq_move,
};
