// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Adapter for the user ABI of the stock `siw` provider. It translates between rings that a
 * process maps and may write to at any time, and the internal formats of queue/wr.h and queue/cq.h.
 * include/uapi/rdma/kiwarp-abi.h has the layout, Documentation/uapi.rst the rules.
 *
 * Owns: the mapped memory. The object that a ring belongs to holds one reference on its mmap
 * entry and drops it in its destroy operation. No system call takes that reference away, so the
 * kernel may use the ring until then. Pages that are still mapped live as long as their mapping;
 * the driver no longer knows of them.
 *
 * A ring is hostile. The positions in it are only in kernel memory, and only the driver changes
 * them. A slot's flags say which side owns the slot, and are trusted for nothing else. The slot
 * is copied to private memory, reading each word once, and checked there; only the copy is used.
 * So the worst that a process can do is to post nonsense to itself.
 *
 * Contexts: fetching and completing anywhere, under the lock of the queue; allocation and mapping
 * in process context.
 */
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/vmalloc.h>
#include <rdma/kiwarp-abi.h>
#include <rdma/uverbs_ioctl.h>

#include "uapi_siw.h"
#include "compat/verbs.h"
#include "proto/ring.h"

/*
 * Page offset of the first ring of a context. The provider takes one key, 0x90000, for an error,
 * so no ring may start there, regardless of the page size.
 */
#define FIRST_PGOFF	0x100

static_assert(((u64)FIRST_PGOFF << PAGE_SHIFT) > KIWARP_INVALID_KEY);
static_assert(KIW_MAX_SGE == KIWARP_MAX_SGE);
static_assert(KIW_MAX_INLINE == KIWARP_MAX_INLINE);
static_assert(offsetof(struct kiwarp_sqe, sge[1]) + KIW_MAX_INLINE == sizeof(struct kiwarp_sqe));

/**
 * struct kiw_user_ring - memory that a process may map
 * @entry: the mmap entry: page offset, references
 * @mem: a page, or vmalloc memory for larger rings
 */
struct kiw_user_ring {
	struct rdma_user_mmap_entry entry;
	void *mem;
};

/**
 * kiw_udata_check() - check the driver-specific part of a user request
 * @udata: the request
 * @resp_bytes: size of the response in bytes
 * @stats: the device's counters
 *
 * Call this before ib_copy_to_udata(); room beyond @resp_bytes is not written. Without room for
 * the whole response, the keys in it would be lost. None of these requests has a driver-specific
 * part yet. One that is all zeroes is accepted, so a newer provider that asks for nothing new
 * still works.
 *
 * Context: process; may sleep.
 * Return: 0 or -EINVAL.
 */
int kiw_udata_check(struct ib_udata *udata, size_t resp_bytes, struct kiw_stats *stats)
{
	if (udata->outlen >= resp_bytes &&
	    (!udata->inlen || ib_is_udata_cleared(udata, 0, udata->inlen)))
		return 0;
	kiw_count(stats, KIW_STAT_UDATA_INVALID);
	return -EINVAL;
}

/**
 * kiw_udata_context() - get the user context of a request
 * @udata: the request, or NULL for a kernel consumer
 *
 * Context: process.
 * Return: the user context, or NULL for a kernel consumer.
 */
struct ib_ucontext *kiw_udata_context(struct ib_udata *udata)
{
	return udata ? rdma_udata_to_uverbs_attr_bundle(udata)->context : NULL;
}

/*
 * Most rings of a QP fit into a page, which needs no kernel mapping. For the others,
 * vmalloc_user() is not used because the memory must be charged to the process's cgroup.
 */
static void *siw_alloc_pages(size_t bytes)
{
	if (bytes <= PAGE_SIZE)
		return (void *)get_zeroed_page(GFP_KERNEL_ACCOUNT);
	return __vmalloc(PAGE_ALIGN(bytes), GFP_KERNEL_ACCOUNT | __GFP_ZERO);
}

static void siw_free_pages(void *mem)
{
	if (is_vmalloc_addr(mem))
		vfree(mem);
	else
		free_page((unsigned long)mem);
}

static struct page *siw_page_of(void *mem)
{
	return is_vmalloc_addr(mem) ? vmalloc_to_page(mem) : virt_to_page(mem);
}

/**
 * kiw_user_ring_alloc() - allocate a ring that a process can map
 * @uctx: the process's context
 * @bytes: size of the ring
 * @ring: set to the ring's kernel address; zeroed memory
 * @key: set to the offset that the process passes to mmap()
 *
 * The caller owns the entry and frees it with kiw_user_ring_free().
 *
 * Context: process; may sleep.
 * Return: the entry, or NULL: no memory.
 */
struct rdma_user_mmap_entry *kiw_user_ring_alloc(struct ib_ucontext *uctx, size_t bytes,
						 void **ring, u64 *key)
{
	struct kiw_user_ring *ur;
	int ret;

	ur = kzalloc(sizeof(*ur), GFP_KERNEL_ACCOUNT);
	if (!ur)
		return NULL;
	ur->mem = siw_alloc_pages(bytes);
	if (!ur->mem)
		goto err_free;
	ret = rdma_user_mmap_entry_insert_range(uctx, &ur->entry, bytes, FIRST_PGOFF, U32_MAX);
	if (ret)
		goto err_free_pages;
	*ring = ur->mem;
	*key = rdma_user_mmap_get_offset(&ur->entry);
	return &ur->entry;

err_free_pages:
	siw_free_pages(ur->mem);
err_free:
	kfree(ur);
	return NULL;
}

/**
 * kiw_user_ring_free() - free a ring that a process can map
 * @entry: as returned by kiw_user_ring_alloc(), or NULL
 *
 * The ring cannot be mapped any more. Existing mappings remain until they are unmapped.
 *
 * Context: process; may sleep.
 */
void kiw_user_ring_free(struct rdma_user_mmap_entry *entry)
{
	rdma_user_mmap_entry_remove(entry);
}

/**
 * kiw_ring_free() - free a ring of either format
 * @entry: the entry of a ring made by kiw_user_ring_alloc(), or NULL
 * @ring: its address; from kvmalloc() if there is no @entry; may be NULL
 *
 * Context: process; may sleep.
 */
void kiw_ring_free(struct rdma_user_mmap_entry *entry, void *ring)
{
	if (entry)
		kiw_user_ring_free(entry);
	else
		kvfree(ring);
}

/**
 * kiw_user_sq_bytes() - size of a send ring
 * @size: slots
 *
 * Context: any.
 * Return: bytes, the length of its mapping.
 */
size_t kiw_user_sq_bytes(u32 size)
{
	return array_size(size, sizeof(struct kiwarp_sqe));
}

/**
 * kiw_user_rq_bytes() - size of a receive ring
 * @size: slots
 *
 * Context: any.
 * Return: bytes, the length of its mapping.
 */
size_t kiw_user_rq_bytes(u32 size)
{
	return array_size(size, sizeof(struct kiwarp_rqe));
}

/**
 * kiw_user_cq_bytes() - size of a completion ring, including the arming word after it
 * @size: slots
 *
 * Context: any.
 * Return: bytes, the length of its mapping.
 */
size_t kiw_user_cq_bytes(u32 size)
{
	return size_add(array_size(size, sizeof(struct kiwarp_cqe)),
			sizeof(struct kiwarp_cq_ctrl));
}

/* rdma_user_mmap_entry_get() has checked that @vma is as long as the ring. */
static int siw_map_pages(struct vm_area_struct *vma, void *mem)
{
	unsigned long addr;
	int ret = 0;

	kiw_compat_vma_flags(vma, VM_DONTEXPAND | VM_DONTDUMP);
	for (addr = vma->vm_start; !ret && addr < vma->vm_end; addr += PAGE_SIZE, mem += PAGE_SIZE)
		ret = vm_insert_page(vma, addr, siw_page_of(mem));
	return ret;
}

/**
 * kiw_mmap() - map a ring: ib_device_ops.mmap
 * @uctx: the process's context
 * @vma: the mapping; shared, of the ring's length in pages, with the ring's key as its offset
 *
 * Context: process; may sleep; the mmap lock is held.
 * Return: 0, -EINVAL: no such ring, or the mapping is not shared or not of the whole ring; or the
 * -errno of the mapping itself.
 */
int kiw_mmap(struct ib_ucontext *uctx, struct vm_area_struct *vma)
{
	struct rdma_user_mmap_entry *entry;
	struct kiw_user_ring *ur;
	int ret;

	entry = rdma_user_mmap_entry_get(uctx, vma);
	if (!entry)
		return -EINVAL;
	ur = container_of(entry, struct kiw_user_ring, entry);
	ret = siw_map_pages(vma, ur->mem);
	rdma_user_mmap_entry_put(entry);
	return ret;
}

/**
 * kiw_mmap_free() - the last reference on a ring was dropped: ib_device_ops.mmap_free
 * @entry: the ring's entry
 *
 * Each mapping holds its own references on the pages.
 *
 * Context: process; may sleep.
 */
void kiw_mmap_free(struct rdma_user_mmap_entry *entry)
{
	struct kiw_user_ring *ur = container_of(entry, struct kiw_user_ring, entry);

	siw_free_pages(ur->mem);
	kfree(ur);
}

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
 * The provider rings the doorbell for a new entry only if the previous entry is no longer valid.
 * While the previous entry is valid, the kernel is about to look at the queue anyway. So a full
 * barrier is needed between releasing a slot and looking at the next one. Without it, the provider
 * could still see the old entry while the kernel does not see the new one yet.
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

/* Entries are posted in order: if the last of @n is there, all are. */
static bool siw_sq_has(const struct kiw_sq *sq, u32 n)
{
	/* Acquire: as in siw_sq_fetch() */
	return smp_load_acquire(&siw_sq_slot(sq, n - 1)->flags) & KIWARP_WQE_VALID;
}

const struct kiw_sq_ops kiw_sq_user_ops = {
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

/* Entries are posted in order: if the last of @n is there, all are. */
static bool siw_rq_has(struct kiw_rq *rq, u32 n)
{
	const struct kiwarp_rqe *slot = siw_rq_slot(rq, rq->get + n - 1);

	lockdep_assert_held(&rq->lock);
	if (!n)
		return true;
	/* Acquire: as in siw_rq_fetch() */
	return n <= rq->size && smp_load_acquire(&slot->flags) & KIWARP_WQE_VALID;
}

const struct kiw_rq_ops kiw_rq_user_ops = {
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
 * The consumer arms, then polls once more. The driver writes the completion, then checks whether
 * the CQ is armed. With a full barrier in between on both sides, at least one side sees what the
 * other has done.
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

static bool siw_cq_is_unread(const struct kiw_cq *cq)
{
	const struct kiwarp_cqe *ring = cq->ring;

	return READ_ONCE(ring[kiw_ring_slot(READ_ONCE(cq->put) - 1, cq->size)].flags);
}

const struct kiw_cq_ops kiw_cq_user_ops = {
	.put = siw_cq_put,
	.take_arm = siw_cq_take_arm,
	.is_unread = siw_cq_is_unread,
};
