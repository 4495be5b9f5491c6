// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The user ABI of the stock `rxe` provider: its formats, as a &struct kiw_uapi_ops. Its work
 * requests have room for immediate data and atomic operations, which siw's have not.
 * rdma/rdma_user_rxe.h of the kernel has the layout, rdma/ib_user_verbs.h that of completions, and
 * Documentation/uapi.rst the rules. uapi.c has the memory of the rings, and copies requests and
 * responses.
 *
 * Owns: nothing but the table.
 *
 * A ring begins with a header: the size and number of its slots, for the process, and one index for
 * each side, which is the number of a slot. Equal indices mean an empty ring, so one slot always
 * stays empty.
 *
 * A ring is hostile. The kernel keeps its own index in its own memory, and only publishes it. The
 * index of the process is masked, so any value is the number of a slot. Each field of a slot that
 * is used is read once, and what was read is checked and used. The kernel writes to no slot but
 * those of completions, and those of a new ring, to which it copies entries unchecked. So a process
 * that writes to its rings at the wrong time spoils only its own work requests and completions.
 *
 * Contexts: fetching, writing completions and looking for receives anywhere, under the lock of the
 * queue; looking for sends and returning their slots anywhere, without it; the rest in process
 * context.
 */
#include "uapi_rxe.h"

#include <linux/log2.h>
#include <linux/minmax.h>
#include <linux/overflow.h>
#include <linux/string.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/rdma_user_rxe.h>

#include "proto/ring.h"
#include "qp/qp.h"

#define ABI_VERSION	2

/* Page offset of the first ring of a context. 0 means that there is no ring. */
#define FIRST_PGOFF	1

/* Sizes of slots; the provider wants powers of two */
#define SQE_BYTES	512
#define RQE_BYTES	256
#define CQE_BYTES	64

static_assert(sizeof(struct rxe_send_wqe) + KIW_MAX_SGE * sizeof(struct rxe_sge) <= SQE_BYTES);
static_assert(sizeof(struct rxe_send_wqe) + KIW_MAX_INLINE <= SQE_BYTES);
static_assert(sizeof(struct rxe_recv_wqe) + KIW_MAX_SGE * sizeof(struct rxe_sge) <= RQE_BYTES);
static_assert(sizeof(struct ib_uverbs_wc) <= CQE_BYTES);
static_assert(KIW_MAX_INLINE % sizeof(u64) == 0);

/* uapi.c has room for each request and response. */
static_assert(sizeof(struct rxe_create_cq_resp) <= KIW_UAPI_BYTES);
static_assert(sizeof(struct rxe_create_srq_resp) <= KIW_UAPI_BYTES);
static_assert(sizeof(struct rxe_create_qp_resp) <= KIW_UAPI_BYTES);
static_assert(sizeof(struct rxe_modify_srq_cmd) <= KIW_UAPI_BYTES);
static_assert(sizeof(struct mminfo) <= KIW_UAPI_BYTES);

/* Slot @pos of a ring with @size slots of @bytes */
static void *rxe_slot(void *ring, u32 pos, u32 size, size_t bytes)
{
	struct rxe_queue_buf *buf = ring;

	return buf->data + kiw_ring_slot(pos, size) * bytes;
}

/* Entries between the kernel's index @get and that of the process */
static u32 rxe_posted(const void *ring, u32 get, u32 size)
{
	const struct rxe_queue_buf *buf = ring;

	/* Acquire: a reader that sees the index also sees the entries. */
	return kiw_ring_slot(smp_load_acquire(&buf->producer_index) - get, size);
}

/* Return the slots before @end to the process */
static void rxe_taken(void *ring, u32 end, u32 size)
{
	struct rxe_queue_buf *buf = ring;

	/* Release: they have been read before the process may write them again. */
	smp_store_release(&buf->consumer_index, kiw_ring_slot(end, size));
}

/* Read @num SGEs once each. Return: total bytes, or -EINVAL */
static int rxe_read_sges(struct kiw_sge *to, const struct rxe_sge *from, unsigned int num)
{
	unsigned int i;
	u64 total = 0;

	for (i = 0; i < num; i++) {
		to[i].addr = READ_ONCE(from[i].addr);
		to[i].length = READ_ONCE(from[i].length);
		to[i].lkey = READ_ONCE(from[i].lkey);
		total += to[i].length;
	}
	if (total > KIW_MAX_WR_BYTES)
		return -EINVAL;
	return total;
}

static void rxe_read_rdma(struct kiw_swqe *wqe, enum kiw_wr_op op, const struct rxe_send_wr *wr)
{
	wqe->op = op;
	wqe->raddr = READ_ONCE(wr->wr.rdma.remote_addr);
	wqe->rkey = READ_ONCE(wr->wr.rdma.rkey);
}

static void rxe_read_atomic(struct kiw_swqe *wqe, enum kiw_wr_op op, const struct rxe_send_wr *wr)
{
	u64 compare_add = READ_ONCE(wr->wr.atomic.compare_add);
	bool is_add = op == KIW_WR_FETCH_ADD;

	wqe->op = op;
	wqe->raddr = READ_ONCE(wr->wr.atomic.remote_addr);
	wqe->rkey = READ_ONCE(wr->wr.atomic.rkey);
	/* RFC 7306 5.2.1 says what the last two are if they are not used. */
	wqe->atomic.data = is_add ? compare_add : READ_ONCE(wr->wr.atomic.swap);
	wqe->atomic.mask = is_add ? 0 : ~0ULL;
	wqe->atomic.compare = is_add ? 0 : compare_add;
	wqe->atomic.compare_mask = ~0ULL;
}

/*
 * The STag to make valid is @rkey. The provider's bind of a window of type 2 passes a former one as
 * @mw_rkey, with any key.
 */
static void rxe_read_bind(struct kiw_swqe *wqe, const struct rxe_send_wr *wr)
{
	wqe->op = KIW_WR_BIND_MW;
	wqe->rkey = READ_ONCE(wr->wr.mw.rkey);
	wqe->bind.addr = READ_ONCE(wr->wr.mw.addr);
	wqe->bind.length = READ_ONCE(wr->wr.mw.length);
	wqe->bind.lkey = READ_ONCE(wr->wr.mw.mr_lkey);
	wqe->bind.rkey = READ_ONCE(wr->wr.mw.mw_rkey);
	wqe->bind.access = READ_ONCE(wr->wr.mw.access);
}

/* Operations that need messages of RFC 7306. It has none for a Send with immediate. */
static int rxe_read_ext(struct kiw_swqe *wqe, const struct rxe_send_wr *wr, u32 opcode)
{
	switch (opcode) {
	case IB_UVERBS_WR_RDMA_WRITE_WITH_IMM:
		rxe_read_rdma(wqe, KIW_WR_WRITE_IMM, wr);
		wqe->imm = READ_ONCE(wr->ex.imm_data);
		return 0;
	case IB_UVERBS_WR_ATOMIC_CMP_AND_SWP:
		rxe_read_atomic(wqe, KIW_WR_CMP_SWAP, wr);
		return 0;
	case IB_UVERBS_WR_ATOMIC_FETCH_AND_ADD:
		rxe_read_atomic(wqe, KIW_WR_FETCH_ADD, wr);
		return 0;
	default:
		return -EINVAL;
	}
}

static int rxe_read_op(const struct kiw_sq *sq, struct kiw_swqe *wqe, const struct rxe_send_wr *wr)
{
	u32 opcode = READ_ONCE(wr->opcode);

	switch (opcode) {
	case IB_UVERBS_WR_SEND:
		return 0;
	case IB_UVERBS_WR_SEND_WITH_INV:
		wqe->op = KIW_WR_SEND_INV;
		wqe->rkey = READ_ONCE(wr->ex.invalidate_rkey);
		return 0;
	case IB_UVERBS_WR_RDMA_WRITE:
		rxe_read_rdma(wqe, KIW_WR_WRITE, wr);
		return 0;
	case IB_UVERBS_WR_RDMA_READ:
		rxe_read_rdma(wqe, KIW_WR_READ, wr);
		return 0;
	case IB_UVERBS_WR_LOCAL_INV:
		wqe->op = KIW_WR_LOCAL_INV;
		wqe->rkey = READ_ONCE(wr->ex.invalidate_rkey);
		return 0;
	case IB_UVERBS_WR_BIND_MW:
		rxe_read_bind(wqe, wr);
		return 0;
	default:
		return sq->is_extended ? rxe_read_ext(wqe, wr, opcode) : -EINVAL;
	}
}

static int rxe_read_inline(struct kiw_swqe *wqe, const struct rxe_dma_info *dma, u32 length, u8 max)
{
	const u64 *from = (const u64 *)dma->inline_data;
	u64 *to = (u64 *)wqe->inline_data;
	u32 i;

	if (length > min_t(u8, max, KIW_MAX_INLINE) || kiw_wr_has_response(wqe->op))
		return -EINVAL;
	wqe->flags |= KIW_WRF_INLINE;
	for (i = 0; i < DIV_ROUND_UP(length, sizeof(u64)); i++)
		to[i] = READ_ONCE(from[i]);
	return length;
}

/*
 * Read inline data or SGEs. The provider's ibv_wr_set_inline_data() and _list() do not set the
 * flag, so data without SGEs counts as inline, too. The length of a message with SGEs is the sum of
 * their lengths: in some versions ibv_wr_set_sge_list() stores a wrong total.
 */
static int rxe_read_data(const struct kiw_sq *sq, struct kiw_swqe *wqe,
			 const struct rxe_dma_info *dma)
{
	u32 length = READ_ONCE(dma->length);
	u32 num_sge = READ_ONCE(dma->num_sge);

	if (wqe->flags & KIW_WRF_INLINE || (length && !num_sge))
		return rxe_read_inline(wqe, dma, length, sq->max_inline);
	if (num_sge > min_t(u8, sq->max_sge, KIW_MAX_SGE))
		return -EINVAL;
	wqe->num_sge = num_sge;
	return rxe_read_sges(wqe->sge, dma->sge, num_sge);
}

/* Does an atomic operation lack the one SGE of 8 bytes for the original value? */
static bool rxe_has_bad_sink(const struct kiw_swqe *wqe, int length)
{
	if (wqe->op != KIW_WR_FETCH_ADD && wqe->op != KIW_WR_CMP_SWAP)
		return false;
	return wqe->num_sge != 1 || length != sizeof(u64);
}

/* Entries have the flags of the verbs, as work requests do. */
#define SQE_FLAGS	(KIW_WRF_FENCE | KIW_WRF_SIGNALED | KIW_WRF_SOLICITED | KIW_WRF_INLINE)

/* An unknown operation is treated as a Send, so that it can be completed with an error. */
static int rxe_read_sqe(const struct kiw_sq *sq, struct kiw_swqe *wqe,
			const struct rxe_send_wqe *from)
{
	u32 flags = READ_ONCE(from->wr.send_flags);
	int ret;

	wqe->wr_id = READ_ONCE(from->wr.wr_id);
	wqe->op = KIW_WR_SEND;
	wqe->flags = flags & SQE_FLAGS;
	wqe->raddr = 0;
	wqe->rkey = 0;
	wqe->num_sge = 0;
	wqe->length = 0;
	ret = rxe_read_op(sq, wqe, &from->wr);
	if (ret)
		return ret;
	if (flags & ~SQE_FLAGS)
		return -EINVAL;
	/* Do not read lengths and SGEs: they may be stale, and @wqe has @bind in their place. */
	if (kiw_wr_is_local(wqe->op))
		return 1;
	ret = rxe_read_data(sq, wqe, &from->dma);
	if (ret < 0 || rxe_has_bad_sink(wqe, ret))
		return -EINVAL;
	wqe->length = ret;
	return 1;
}

/* The provider rings the doorbell for each post, so this needs no full barrier. */
static int rxe_sq_fetch(struct kiw_sq *sq, struct kiw_swqe *wqe)
{
	int ret;

	lockdep_assert_held(&sq->lock);
	if (!rxe_posted(sq->ring, sq->get, sq->size))
		return 0;
	ret = rxe_read_sqe(sq, wqe, rxe_slot(sq->ring, sq->get, sq->size, SQE_BYTES));
	WRITE_ONCE(sq->get, sq->get + 1);
	return ret;
}

/*
 * The provider finds a queue full if its slots are not returned. So it lets a process have at most
 * as many work requests that are not done as the queue holds, no matter how many were fetched.
 */
static void rxe_sq_done(struct kiw_sq *sq)
{
	rxe_taken(sq->ring, sq->done, sq->size);
}

static bool rxe_sq_has(const struct kiw_sq *sq, u32 n)
{
	return rxe_posted(sq->ring, READ_ONCE(sq->get), sq->size) >= n;
}

static const struct kiw_sq_ops rxe_sq_ops = {
	.fetch = rxe_sq_fetch,
	.has = rxe_sq_has,
	.done = rxe_sq_done,
};

static int rxe_read_rqe(const struct kiw_rq *rq, struct kiw_rwqe *wqe,
			const struct rxe_recv_wqe *from)
{
	u32 num_sge = READ_ONCE(from->dma.num_sge);
	int ret;

	wqe->wr_id = READ_ONCE(from->wr_id);
	wqe->num_sge = 0;
	wqe->length = 0;
	if (num_sge > min_t(u8, rq->max_sge, KIW_MAX_SGE))
		return -EINVAL;
	ret = rxe_read_sges(wqe->sge, from->dma.sge, num_sge);
	if (ret < 0)
		return ret;
	wqe->num_sge = num_sge;
	wqe->length = ret;
	return 1;
}

static int rxe_rq_fetch(struct kiw_rq *rq, struct kiw_rwqe *wqe)
{
	int ret;

	lockdep_assert_held(&rq->lock);
	if (!rxe_posted(rq->ring, rq->get, rq->size))
		return 0;
	ret = rxe_read_rqe(rq, wqe, rxe_slot(rq->ring, rq->get, rq->size, RQE_BYTES));
	/* A resource query reads it without the lock. */
	WRITE_ONCE(rq->get, rq->get + 1);
	rxe_taken(rq->ring, rq->get, rq->size);
	return ret;
}

static bool rxe_rq_has(struct kiw_rq *rq, u32 n)
{
	lockdep_assert_held(&rq->lock);
	return rxe_posted(rq->ring, rq->get, rq->size) >= n;
}

/* Entries of a queue that are copied with interrupts off; at most 16 KiB */
#define MOVE_BATCH	64

/*
 * Copy a batch of receives to the new ring, and let the queue use that ring after the last one.
 *
 * A receive has the same position in both rings. So the kernel may fetch meanwhile, and two moves
 * may overlap, as for completions below.
 *
 * The provider holds its lock during the call, so it posts nothing. If a process posts receives
 * during the call all the same, they may be lost. It cannot prolong the move, because its index is
 * read once, at the beginning. If more receives have been fetched than were posted at that time,
 * the difference is taken for too many, too.
 */
static int rxe_rq_move(struct kiw_rq *rq, struct kiw_rq_move *move)
{
	struct rxe_queue_buf *buf = move->ring;
	u32 end;

	lockdep_assert_held(&rq->lock);
	if (!move->is_begun) {
		move->next = rq->get;
		move->end = rq->get + rxe_posted(rq->ring, rq->get, rq->size);
		move->is_begun = true;
	}
	if (move->end - rq->get > move->size - 1)
		return -EBUSY;
	end = move->next + min_t(u32, move->end - move->next, MOVE_BATCH);
	for (; move->next != end; move->next++)
		memcpy(rxe_slot(move->ring, move->next, move->size, RQE_BYTES),
		       rxe_slot(rq->ring, move->next, rq->size, RQE_BYTES), RQE_BYTES);
	if (end != move->end)
		return -EAGAIN;
	buf->consumer_index = kiw_ring_slot(rq->get, move->size);
	buf->producer_index = kiw_ring_slot(end, move->size);
	kiw_rq_exchange(rq, move);
	return 0;
}

static const struct kiw_rq_ops rxe_rq_ops = {
	.fetch = rxe_rq_fetch,
	.has = rxe_rq_has,
	.move = rxe_rq_move,
};

static const u8 status_table[KIW_WCS_COUNT] = {
	[KIW_WCS_SUCCESS]	= IB_WC_SUCCESS,
	[KIW_WCS_LOC_LEN]	= IB_WC_LOC_LEN_ERR,
	[KIW_WCS_LOC_PROT]	= IB_WC_LOC_PROT_ERR,
	[KIW_WCS_LOC_QP_OP]	= IB_WC_LOC_QP_OP_ERR,
	[KIW_WCS_FLUSHED]	= IB_WC_WR_FLUSH_ERR,
	[KIW_WCS_BAD_RESP]	= IB_WC_BAD_RESP_ERR,
	[KIW_WCS_REM_ACCESS]	= IB_WC_REM_ACCESS_ERR,
	[KIW_WCS_REM_INV_REQ]	= IB_WC_REM_INV_REQ_ERR,
	[KIW_WCS_REM_OP]	= IB_WC_REM_OP_ERR,
	[KIW_WCS_MEM_OP]	= IB_WC_MW_BIND_ERR,
	[KIW_WCS_GENERAL]	= IB_WC_GENERAL_ERR,
};

/* Opcodes of receives; ib_user_verbs.h has only those of sends */
#define WC_RECV			128
#define WC_RECV_RDMA_WITH_IMM	129

static const u8 opcode_table[] = {
	[KIW_WR_SEND]		= IB_UVERBS_WC_SEND,
	[KIW_WR_SEND_INV]	= IB_UVERBS_WC_SEND,
	[KIW_WR_WRITE]		= IB_UVERBS_WC_RDMA_WRITE,
	[KIW_WR_WRITE_IMM]	= IB_UVERBS_WC_RDMA_WRITE,
	[KIW_WR_READ]		= IB_UVERBS_WC_RDMA_READ,
	[KIW_WR_FETCH_ADD]	= IB_UVERBS_WC_FETCH_ADD,
	[KIW_WR_CMP_SWAP]	= IB_UVERBS_WC_COMP_SWAP,
	[KIW_WR_LOCAL_INV]	= IB_UVERBS_WC_LOCAL_INV,
	[KIW_WR_BIND_MW]	= IB_UVERBS_WC_BIND_MW,
	[KIW_WR_RECV]		= WC_RECV,
	[KIW_WR_RECV_IMM]	= WC_RECV_RDMA_WITH_IMM,
};

/* Flags of completions: those of libibverbs; the kernel has another value for the second */
#define WC_WITH_IMM	BIT(1)
#define WC_WITH_INV	BIT(3)

static void rxe_write_cqe(struct ib_uverbs_wc *to, const struct kiw_wc *wc)
{
	struct ib_uverbs_wc cqe = {
		.wr_id = wc->wr_id,
		.status = status_table[wc->status],
		.opcode = opcode_table[wc->op],
		.byte_len = wc->byte_len,
		.qp_num = wc->qp->qp_num,
		.port_num = 1,
	};

	if (wc->status != KIW_WCS_SUCCESS) {
		cqe.vendor_err = wc->term;
	} else if (wc->with_inv) {
		cqe.wc_flags = WC_WITH_INV;
		cqe.ex.invalidate_rkey = wc->inv_stag;
	} else if (wc->with_imm) {
		cqe.wc_flags = WC_WITH_IMM;
		cqe.ex.imm_data = wc->imm;
	}
	*to = cqe;
}

/* Completions that the process has not taken */
static u32 rxe_unread(const struct kiw_cq *cq)
{
	const struct rxe_queue_buf *buf = cq->ring;

	/* Acquire: it has read those that it has taken before they are written again. */
	return kiw_ring_slot(cq->put - smp_load_acquire(&buf->consumer_index), cq->size);
}

static bool rxe_cq_put(struct kiw_cq *cq, const struct kiw_wc *wc)
{
	struct rxe_queue_buf *buf = cq->ring;

	lockdep_assert_held(&cq->lock);
	if (rxe_unread(cq) == cq->size - 1)
		return false;
	rxe_write_cqe(rxe_slot(buf, cq->put, cq->size, CQE_BYTES), wc);
	cq->put++;
	/* Release: a reader that sees the index also sees the completion. */
	smp_store_release(&buf->producer_index, kiw_ring_slot(cq->put, cq->size));
	return true;
}

/* A process arms by a system call, which takes the lock: completions come before or after it. */
static bool rxe_cq_arm(struct kiw_cq *cq, u32 flags)
{
	lockdep_assert_held(&cq->lock);
	kiw_cq_set_armed(cq, flags);
	return rxe_unread(cq);
}

/* The lock keeps the ring from being replaced meanwhile. */
static bool rxe_cq_is_unread(struct kiw_cq *cq)
{
	unsigned long flags;
	bool is_unread;

	spin_lock_irqsave(&cq->lock, flags);
	is_unread = rxe_unread(cq);
	spin_unlock_irqrestore(&cq->lock, flags);
	return is_unread;
}

/*
 * Copy a batch of completions to the new ring, and let the queue use that ring after the last one.
 *
 * A completion has the same position in both rings. So two moves may overlap: the one that ends
 * later copies the rest from the ring that the other has put in place.
 *
 * The provider holds its lock during the call, so it takes no completions. A process that takes
 * some all the same may lose completions or see some twice. It cannot prolong the move, because
 * @first does not change during the move, and only a limited number of completions fits behind it.
 */
static int rxe_cq_move(struct kiw_cq *cq, struct kiw_cq_move *move)
{
	struct rxe_queue_buf *buf = move->ring;
	u32 end;

	lockdep_assert_held(&cq->lock);
	if (!move->is_begun) {
		move->first = cq->put - rxe_unread(cq);
		move->next = move->first;
		move->is_begun = true;
	}
	if (cq->put - move->first > move->size - 1)
		return -EBUSY;
	end = move->next + min_t(u32, cq->put - move->next, MOVE_BATCH);
	for (; move->next != end; move->next++)
		memcpy(rxe_slot(move->ring, move->next, move->size, CQE_BYTES),
		       rxe_slot(cq->ring, move->next, cq->size, CQE_BYTES), CQE_BYTES);
	if (end != cq->put)
		return -EAGAIN;
	buf->consumer_index = kiw_ring_slot(move->first, move->size);
	buf->producer_index = kiw_ring_slot(end, move->size);
	cq->ring = move->ring;
	cq->size = move->size;
	return 0;
}

static const struct kiw_cq_ops rxe_cq_ops = {
	.put = rxe_cq_put,
	.arm = rxe_cq_arm,
	.take_arm = kiw_cq_take_armed,
	.is_unread = rxe_cq_is_unread,
	.move = rxe_cq_move,
};

static size_t rxe_ring_bytes(u32 slots, size_t slot_bytes)
{
	return size_add(sizeof(struct rxe_queue_buf), array_size(slots, slot_bytes));
}

static size_t rxe_sq_bytes(u32 slots)
{
	return rxe_ring_bytes(slots, SQE_BYTES);
}

static size_t rxe_rq_bytes(u32 slots)
{
	return rxe_ring_bytes(slots, RQE_BYTES);
}

static size_t rxe_cq_bytes(u32 slots)
{
	return rxe_ring_bytes(slots, CQE_BYTES);
}

/* Write the constant part of a ring's header. The kernel never reads it. */
static void rxe_ring_init(void *ring, u32 slots, size_t bytes)
{
	struct rxe_queue_buf *buf = ring;

	buf->log2_elem_size = ilog2((bytes - sizeof(*buf)) / slots);
	buf->index_mask = slots - 1;
}

static void rxe_cq_resp(void *resp, u32 slots, u64 key)
{
	struct rxe_create_cq_resp *to = resp;

	to->mi.offset = key;
	to->mi.size = rxe_cq_bytes(slots);
}

static void rxe_srq_resize_resp(void *resp, u32 slots, u64 key)
{
	struct mminfo *to = resp;

	to->offset = key;
	to->size = rxe_rq_bytes(slots);
}

/* srq_num stays 0: it is only for XRC, which the driver does not have. */
static void rxe_srq_resp(void *resp, u32 slots, u64 key)
{
	struct rxe_create_srq_resp *to = resp;

	rxe_srq_resize_resp(&to->mi, slots, key);
}

static u64 rxe_srq_resize_dest(const void *req)
{
	const struct rxe_modify_srq_cmd *from = req;

	return from->mmap_info_addr;
}

static void rxe_qp_resp(void *resp, const struct kiw_qp *qp, u64 sq_key, u64 rq_key)
{
	struct rxe_create_qp_resp *to = resp;

	to->sq_mi.offset = sq_key;
	to->sq_mi.size = rxe_sq_bytes(qp->sq.size);
	if (!rq_key)
		return;
	to->rq_mi.offset = rq_key;
	to->rq_mi.size = rxe_rq_bytes(qp->rq.size);
}

/*
 * The driver id is that of rxe: it denotes the user ABI, by which a stock rdma-core finds its
 * provider. device.c describes how both modules coexist.
 */
static const struct ib_device_ops rxe_device_ops = {
	.driver_id = RDMA_DRIVER_RXE,
	.uverbs_abi_ver = ABI_VERSION,
};

/* Slots have room for more SGEs and inline data. */
const struct kiw_uapi_ops kiw_uapi_rxe = {
	.device_ops = &rxe_device_ops,
	/* The doorbell, and arming */
	.cmd_mask = BIT_ULL(IB_USER_VERBS_CMD_POST_SEND) |
		    BIT_ULL(IB_USER_VERBS_CMD_REQ_NOTIFY_CQ),
	.sq = &rxe_sq_ops,
	.rq = &rxe_rq_ops,
	.cq = &rxe_cq_ops,
	.first_pgoff = FIRST_PGOFF,
	.spare_slots = 1,
	.max_sge = KIW_MAX_SGE,
	.max_inline = KIW_MAX_INLINE,
	.has_rfc7306 = true,
	.has_windows = true,
	.cq_resp_bytes = sizeof(struct rxe_create_cq_resp),
	.srq_resp_bytes = sizeof(struct rxe_create_srq_resp),
	.qp_resp_bytes = sizeof(struct rxe_create_qp_resp),
	.srq_resize_req_bytes = sizeof(struct rxe_modify_srq_cmd),
	.srq_resize_resp_bytes = sizeof(struct mminfo),
	.sq_bytes = rxe_sq_bytes,
	.rq_bytes = rxe_rq_bytes,
	.cq_bytes = rxe_cq_bytes,
	.ring_init = rxe_ring_init,
	.cq_resp = rxe_cq_resp,
	.srq_resp = rxe_srq_resp,
	.qp_resp = rxe_qp_resp,
	.srq_resize_dest = rxe_srq_resize_dest,
	.srq_resize_resp = rxe_srq_resize_resp,
};
