// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The user ABI of the stock `siw` provider: its formats, as a &struct kiw_uapi_ops. It translates
 * between rings that a process maps and may write to at any time, and the internal formats of
 * queue/wr.h and queue/cq.h. include/uapi/rdma/kiwarp-abi.h has the layout, Documentation/uapi.rst
 * the rules. uapi.c has the memory of the rings, and copies requests and responses.
 *
 * Owns: nothing but the table.
 *
 * A ring is hostile. The driver's positions in it are only in kernel memory, and only the driver
 * changes them. A slot's flags say which side owns the slot. A work request that the flags give to
 * the kernel is copied to private memory, reading each word once, and checked there, including the
 * flags; from then on only the copy is used. So a process that writes to its rings at the wrong
 * time spoils only its own work requests and completions.
 *
 * Contexts: fetching, completing and looking for receives anywhere, under the lock of the queue;
 * looking for sends anywhere, without it; the rest in process context.
 */
#include "uapi_siw.h"

#include <linux/overflow.h>
#include <linux/string.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/kiwarp-abi.h>

#include "proto/ring.h"
#include "qp/qp.h"

/*
 * Page offset of the first ring of a context. The provider takes one key, 0x90000, for an error,
 * so no ring may start there, regardless of the page size.
 */
#define FIRST_PGOFF	0x100

static_assert(((u64)FIRST_PGOFF << PAGE_SHIFT) > KIWARP_INVALID_KEY);
static_assert(KIW_MAX_SGE == KIWARP_MAX_SGE);
static_assert(KIW_MAX_INLINE == KIWARP_MAX_INLINE);
static_assert(offsetof(struct kiwarp_sqe, sge[1]) + KIW_MAX_INLINE == sizeof(struct kiwarp_sqe));

/* uapi.c has room for each request and response. */
static_assert(sizeof(struct kiwarp_uresp_alloc_ctx) <= KIW_UAPI_BYTES);
static_assert(sizeof(struct kiwarp_uresp_create_cq) <= KIW_UAPI_BYTES);
static_assert(sizeof(struct kiwarp_uresp_create_srq) <= KIW_UAPI_BYTES);
static_assert(sizeof(struct kiwarp_uresp_create_qp) <= KIW_UAPI_BYTES);
static_assert(sizeof(struct kiwarp_ureq_reg_mr) <= KIW_UAPI_BYTES);
static_assert(sizeof(struct kiwarp_uresp_reg_mr) <= KIW_UAPI_BYTES);

/*
 * Copy out of a mapped ring. READ_ONCE() makes the compiler read each word exactly once. It could
 * repeat a plain memcpy(), or use the source instead of the copy after the check.
 */
static void siw_copy_once(void *to, const void *from, size_t bytes)
{
	const u64 *src = from;
	u64 *dst = to;
	size_t i;

	for (i = 0; i < bytes / sizeof(u64); i++)
		dst[i] = READ_ONCE(src[i]);
}

/* Return: total bytes, or -EINVAL */
static int siw_translate_sges(struct kiw_sge *to, const struct kiwarp_sge *from, unsigned int num)
{
	unsigned int i;
	u64 total = 0;

	for (i = 0; i < num; i++) {
		to[i].addr = from[i].laddr;
		to[i].length = from[i].length;
		to[i].lkey = from[i].lkey;
		total += from[i].length;
	}
	if (total > KIW_MAX_WR_BYTES)
		return -EINVAL;
	return total;
}

#define SQE_FLAGS	(KIWARP_WQE_VALID | KIWARP_WQE_INLINE | KIWARP_WQE_SIGNALED | \
			 KIWARP_WQE_SOLICITED | KIWARP_WQE_READ_FENCE)

static u16 siw_translate_flags(u16 flags)
{
	u16 to = 0;

	if (flags & KIWARP_WQE_SIGNALED)
		to |= KIW_WRF_SIGNALED;
	if (flags & KIWARP_WQE_SOLICITED)
		to |= KIW_WRF_SOLICITED;
	if (flags & KIWARP_WQE_READ_FENCE)
		to |= KIW_WRF_FENCE;
	if (flags & KIWARP_WQE_INLINE)
		to |= KIW_WRF_INLINE;
	return to;
}

/* An unknown operation is treated as a Send, so that it can be completed with an error. */
static int siw_translate_op(u8 opcode, u8 *op)
{
	switch (opcode) {
	case KIWARP_OP_WRITE:
		*op = KIW_WR_WRITE;
		return 0;
	case KIWARP_OP_READ:
		*op = KIW_WR_READ;
		return 0;
	case KIWARP_OP_SEND:
		*op = KIW_WR_SEND;
		return 0;
	case KIWARP_OP_SEND_INV:
		*op = KIW_WR_SEND_INV;
		return 0;
	default:
		*op = KIW_WR_SEND;
		return -EINVAL;
	}
}

static int siw_translate_inline(struct kiw_swqe *wqe, const struct kiwarp_sqe *sqe, u8 max)
{
	u32 length = sqe->sge[0].length;

	wqe->num_sge = 0;
	if (length > max || wqe->op == KIW_WR_READ)
		return -EINVAL;
	memcpy(wqe->inline_data, &sqe->sge[1], length);
	return length;
}

/* @sqe is the private copy */
static int siw_translate_sqe(const struct kiw_sq *sq, struct kiw_swqe *wqe,
			     const struct kiwarp_sqe *sqe)
{
	int ret;

	wqe->wr_id = sqe->id;
	wqe->raddr = sqe->raddr;
	wqe->rkey = sqe->rkey;
	wqe->flags = siw_translate_flags(sqe->flags);
	wqe->num_sge = 0;
	wqe->length = 0;
	ret = siw_translate_op(sqe->opcode, &wqe->op);
	if (ret)
		return ret;
	if (sqe->flags & ~SQE_FLAGS)
		return -EINVAL;
	if (wqe->flags & KIW_WRF_INLINE) {
		ret = siw_translate_inline(wqe, sqe, sq->max_inline);
	} else {
		if (sqe->num_sge > min_t(u8, sq->max_sge, KIW_MAX_SGE))
			return -EINVAL;
		wqe->num_sge = sqe->num_sge;
		ret = siw_translate_sges(wqe->sge, sqe->sge, sqe->num_sge);
	}
	if (ret < 0)
		return ret;
	wqe->length = ret;
	return 1;
}

/* The slot @ahead slots after the next one to fetch */
static struct kiwarp_sqe *siw_sq_slot(const struct kiw_sq *sq, u32 ahead)
{
	struct kiwarp_sqe *ring = sq->ring;

	return &ring[kiw_ring_slot(READ_ONCE(sq->get) + ahead, sq->size)];
}

/*
 * The provider need not ring the doorbell for a new entry while the previous entry is valid: the
 * kernel has yet to look at the queue anyway. So a full barrier is needed between releasing a slot
 * and looking at the next one. Without it, the provider could still see the old entry while the
 * kernel does not see the new one yet.
 */
static int siw_sq_fetch(struct kiw_sq *sq, struct kiw_swqe *wqe)
{
	struct kiwarp_sqe *slot = siw_sq_slot(sq, 0);
	struct kiwarp_sqe sqe;

	lockdep_assert_held(&sq->lock);
	/* Acquire: a reader that sees the flag also sees the entry. */
	if (!(smp_load_acquire(&slot->flags) & KIWARP_WQE_VALID))
		return 0;
	siw_copy_once(&sqe, slot, sizeof(sqe));
	WRITE_ONCE(sq->get, sq->get + 1);
	/* Release: the slot has been read before the process may write it again. */
	smp_store_release(&slot->flags, 0);
	/* Pairs with the provider's sequentially consistent store and load of flags. */
	smp_mb();
	return siw_translate_sqe(sq, wqe, &sqe);
}

/*
 * Are there @n entries? They are posted in order: if the last of them is there, all are. In a ring
 * of one slot an entry counts as two.
 */
static bool siw_sq_has(const struct kiw_sq *sq, u32 n)
{
	/* Acquire: as in siw_sq_fetch() */
	return smp_load_acquire(&siw_sq_slot(sq, n - 1)->flags) & KIWARP_WQE_VALID;
}

static const struct kiw_sq_ops siw_sq_ops = {
	.fetch = siw_sq_fetch,
	.has = siw_sq_has,
};

static struct kiwarp_rqe *siw_rq_slot(const struct kiw_rq *rq, u32 pos)
{
	struct kiwarp_rqe *ring = rq->ring;

	return &ring[kiw_ring_slot(pos, rq->size)];
}

/* @rqe is the private copy */
static int siw_translate_rqe(const struct kiw_rq *rq, struct kiw_rwqe *wqe,
			     const struct kiwarp_rqe *rqe)
{
	int ret;

	wqe->wr_id = rqe->id;
	wqe->num_sge = 0;
	wqe->length = 0;
	if (rqe->flags != KIWARP_WQE_VALID ||
	    rqe->num_sge > min_t(u8, rq->max_sge, KIW_MAX_SGE))
		return -EINVAL;
	ret = siw_translate_sges(wqe->sge, rqe->sge, rqe->num_sge);
	if (ret < 0)
		return ret;
	wqe->num_sge = rqe->num_sge;
	wqe->length = ret;
	return 1;
}

/* There is no doorbell for receives, so this needs no full barrier. */
static int siw_rq_fetch(struct kiw_rq *rq, struct kiw_rwqe *wqe)
{
	struct kiwarp_rqe *slot = siw_rq_slot(rq, rq->get);
	struct kiwarp_rqe rqe;

	lockdep_assert_held(&rq->lock);
	/* Acquire: a reader that sees the flag also sees the entry. */
	if (!(smp_load_acquire(&slot->flags) & KIWARP_WQE_VALID))
		return 0;
	siw_copy_once(&rqe, slot, sizeof(rqe));
	/* A resource query reads it without the lock. */
	WRITE_ONCE(rq->get, rq->get + 1);
	/* Release: the slot has been read before the process may write it again. */
	smp_store_release(&slot->flags, 0);
	return siw_translate_rqe(rq, wqe, &rqe);
}

/* Are there @n entries? They are posted in order: if the last of them is there, all are. */
static bool siw_rq_has(struct kiw_rq *rq, u32 n)
{
	const struct kiwarp_rqe *slot = siw_rq_slot(rq, rq->get + n - 1);

	lockdep_assert_held(&rq->lock);
	if (!n)
		return true;
	/* Acquire: as in siw_rq_fetch() */
	return n <= rq->size && smp_load_acquire(&slot->flags) & KIWARP_WQE_VALID;
}

static const struct kiw_rq_ops siw_rq_ops = {
	.fetch = siw_rq_fetch,
	.has = siw_rq_has,
};

/* The provider uses both as array indices: only values in these tables may be written. */
static const u8 status_table[KIW_WCS_COUNT] = {
	[KIW_WCS_SUCCESS]	= KIWARP_CQE_SUCCESS,
	[KIW_WCS_LOC_LEN]	= KIWARP_CQE_LOC_LEN,
	[KIW_WCS_LOC_PROT]	= KIWARP_CQE_LOC_PROT,
	[KIW_WCS_LOC_QP_OP]	= KIWARP_CQE_LOC_QP_OP,
	[KIW_WCS_FLUSHED]	= KIWARP_CQE_FLUSHED,
	[KIW_WCS_BAD_RESP]	= KIWARP_CQE_BAD_RESP,
	[KIW_WCS_REM_ACCESS]	= KIWARP_CQE_REM_ACCESS,
	[KIW_WCS_REM_INV_REQ]	= KIWARP_CQE_REM_INV_REQ,
	[KIW_WCS_REM_OP]	= KIWARP_CQE_GENERAL,
	[KIW_WCS_MEM_OP]	= KIWARP_CQE_GENERAL,
	[KIW_WCS_GENERAL]	= KIWARP_CQE_GENERAL,
};

static const u8 opcode_table[] = {
	[KIW_WR_SEND]		= KIWARP_OP_SEND,
	[KIW_WR_SEND_INV]	= KIWARP_OP_SEND_INV,
	[KIW_WR_WRITE]		= KIWARP_OP_WRITE,
	[KIW_WR_READ]		= KIWARP_OP_READ,
	[KIW_WR_RECV]		= KIWARP_OP_RECV,
};

static bool siw_cq_put(struct kiw_cq *cq, const struct kiw_wc *wc)
{
	struct kiwarp_cqe *ring = cq->ring;
	struct kiwarp_cqe *slot = &ring[kiw_ring_slot(cq->put, cq->size)];

	lockdep_assert_held(&cq->lock);
	/* Acquire: the consumer has read the slot before it is written again. */
	if (smp_load_acquire(&slot->flags))
		return false;
	slot->id = wc->wr_id;
	slot->opcode = opcode_table[wc->op];
	slot->status = status_table[wc->status];
	slot->bytes = wc->byte_len;
	slot->imm_data = 0;
	if (wc->with_inv)
		slot->inval_stag = wc->inv_stag;
	slot->qp_id = wc->qp->qp_num;
	/* Release: a reader that sees the flag also sees the completion. */
	smp_store_release(&slot->flags, KIWARP_WQE_VALID);
	cq->put++;
	return true;
}

/*
 * Is the queue armed for this completion? If so, disarm it. The consumer arms, then polls once
 * more. The driver writes the completion, then checks whether the queue is armed. With a full
 * barrier in between on both sides, at least one side sees what the other has done.
 */
static bool siw_cq_take_arm(struct kiw_cq *cq, bool solicited)
{
	struct kiwarp_cqe *ring = cq->ring;
	struct kiwarp_cq_ctrl *ctrl = (struct kiwarp_cq_ctrl *)&ring[cq->size];
	u32 wanted = KIWARP_NOTIFY_NEXT;

	lockdep_assert_held(&cq->lock);
	if (solicited)
		wanted |= KIWARP_NOTIFY_SOLICITED;
	/* Pairs with the provider's sequentially consistent store of ctrl->flags */
	smp_mb();
	if (!(READ_ONCE(ctrl->flags) & wanted))
		return false;
	/* The consumer may have armed for another event since. One event too many is harmless. */
	return xchg(&ctrl->flags, KIWARP_NOTIFY_NONE) != KIWARP_NOTIFY_NONE;
}

static bool siw_cq_is_unread(struct kiw_cq *cq)
{
	const struct kiwarp_cqe *ring = cq->ring;

	return READ_ONCE(ring[kiw_ring_slot(READ_ONCE(cq->put) - 1, cq->size)].flags);
}

static const struct kiw_cq_ops siw_cq_ops = {
	.put = siw_cq_put,
	.take_arm = siw_cq_take_arm,
	.is_unread = siw_cq_is_unread,
};

static size_t siw_sq_bytes(u32 slots)
{
	return array_size(slots, sizeof(struct kiwarp_sqe));
}

static size_t siw_rq_bytes(u32 slots)
{
	return array_size(slots, sizeof(struct kiwarp_rqe));
}

/* The arming word follows the last entry. */
static size_t siw_cq_bytes(u32 slots)
{
	return size_add(array_size(slots, sizeof(struct kiwarp_cqe)),
			sizeof(struct kiwarp_cq_ctrl));
}

static void siw_context_resp(void *resp, u32 index)
{
	struct kiwarp_uresp_alloc_ctx *to = resp;

	to->dev_id = index;
}

/* The provider only prints cq_id. */
static void siw_cq_resp(void *resp, u32 slots, u64 key)
{
	struct kiwarp_uresp_create_cq *to = resp;

	to->num_cqe = slots;
	to->cq_key = key;
}

static void siw_srq_resp(void *resp, u32 slots, u64 key)
{
	struct kiwarp_uresp_create_srq *to = resp;

	to->num_rqe = slots;
	to->srq_key = key;
}

static void siw_qp_resp(void *resp, const struct kiw_qp *qp, u64 sq_key, u64 rq_key)
{
	struct kiwarp_uresp_create_qp *to = resp;

	to->qp_id = qp->ib.qp_num;
	to->num_sqe = qp->sq.size;
	to->num_rqe = qp->rq.size;
	to->sq_key = sq_key;
	to->rq_key = rq_key;
}

/*
 * Is the request valid? Only what must be zero is checked: the driver chooses the key byte itself
 * (see kiw_mr_publish()) and ignores the one asked for.
 */
static bool siw_mr_req_is_good(const void *req)
{
	const struct kiwarp_ureq_reg_mr *from = req;

	return !memchr_inv(from->reserved, 0, sizeof(from->reserved)) && !from->pad;
}

static void siw_mr_resp(void *resp, u32 stag)
{
	struct kiwarp_uresp_reg_mr *to = resp;

	to->stag = stag;
}

/*
 * The driver id is that of siw: it denotes the user ABI, by which a stock rdma-core finds its
 * provider. device.c describes how both modules coexist.
 */
static const struct ib_device_ops siw_device_ops = {
	.driver_id = RDMA_DRIVER_SIW,
	.uverbs_abi_ver = KIWARP_ABI_VERSION,
};

/*
 * When a work request is posted, the provider does not check the limits that were asked for. So
 * every queue has those of the format.
 */
const struct kiw_uapi_ops kiw_uapi_siw = {
	.device_ops = &siw_device_ops,
	/* The doorbell */
	.cmd_mask = BIT_ULL(IB_USER_VERBS_CMD_POST_SEND),
	.sq = &siw_sq_ops,
	.rq = &siw_rq_ops,
	.cq = &siw_cq_ops,
	.first_pgoff = FIRST_PGOFF,
	.max_sge = KIWARP_MAX_SGE,
	.max_inline = KIWARP_MAX_INLINE,
	.context_resp_bytes = sizeof(struct kiwarp_uresp_alloc_ctx),
	.cq_resp_bytes = sizeof(struct kiwarp_uresp_create_cq),
	.srq_resp_bytes = sizeof(struct kiwarp_uresp_create_srq),
	.qp_resp_bytes = sizeof(struct kiwarp_uresp_create_qp),
	.mr_req_bytes = sizeof(struct kiwarp_ureq_reg_mr),
	.mr_resp_bytes = sizeof(struct kiwarp_uresp_reg_mr),
	.sq_bytes = siw_sq_bytes,
	.rq_bytes = siw_rq_bytes,
	.cq_bytes = siw_cq_bytes,
	.context_resp = siw_context_resp,
	.cq_resp = siw_cq_resp,
	.srq_resp = siw_srq_resp,
	.qp_resp = siw_qp_resp,
	.mr_req_is_good = siw_mr_req_is_good,
	.mr_resp = siw_mr_resp,
};
