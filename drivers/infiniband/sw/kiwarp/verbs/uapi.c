// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * What all user ABIs share: the memory of rings, their mapping, and the driver's part of requests
 * and responses. The formats are in tables (&struct kiw_uapi_ops), and the device has one of them.
 *
 * Owns: the mapped memory. The object that a ring belongs to holds one reference on its mmap
 * entry and drops it in its destroy operation, when another ring has replaced it, or when its
 * creation fails. So the kernel may use the ring until then. Pages that are still mapped live at
 * least as long as their mapping; the driver no longer knows of them.
 *
 * A call that creates a queue or a QP checks the request, allocates the rings and delivers the
 * response, in this order, before anybody else can use the object. So it is easy to undo when the
 * response cannot be delivered.
 *
 * Contexts: process, unless a function says otherwise. Locks: that of a completion queue or a
 * shared receive queue, while its ring is replaced.
 */
#include "uapi.h"

#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/vmalloc.h>
#include <rdma/uverbs_ioctl.h>

#include "compat/verbs.h"
#include "device.h"
#include "qp/qp.h"
#include "queue/srq.h"

/**
 * struct uapi_ring - memory that a process may map
 * @entry: the mmap entry: page offset, references
 * @mem: a page, or vmalloc memory for larger rings
 */
struct uapi_ring {
	struct rdma_user_mmap_entry entry;
	void *mem;
};

/*
 * Allocate zeroed memory for a ring. A short ring fits into a page, which needs no vmalloc mapping.
 * The others do not use vmalloc_user(), because the memory must be charged to the process's cgroup.
 */
static void *uapi_alloc_pages(size_t bytes)
{
	if (bytes <= PAGE_SIZE)
		return (void *)get_zeroed_page(GFP_KERNEL_ACCOUNT);
	return __vmalloc(PAGE_ALIGN(bytes), GFP_KERNEL_ACCOUNT | __GFP_ZERO);
}

static void uapi_free_pages(void *mem)
{
	if (is_vmalloc_addr(mem))
		vfree(mem);
	else
		free_page((unsigned long)mem);
}

static struct page *uapi_page_of(void *mem)
{
	return is_vmalloc_addr(mem) ? vmalloc_to_page(mem) : virt_to_page(mem);
}

/* Sets @mem to an empty ring of @bytes with @slots. Return: the entry, or NULL: no memory. */
static struct rdma_user_mmap_entry *uapi_ring_alloc(const struct kiw_uapi_ops *uapi,
						    struct ib_udata *udata, u32 slots, size_t bytes,
						    void **mem)
{
	struct uapi_ring *ring;
	int ret;

	ring = kzalloc(sizeof(*ring), GFP_KERNEL_ACCOUNT);
	if (!ring)
		return NULL;
	ring->mem = uapi_alloc_pages(bytes);
	if (!ring->mem)
		goto err_free;
	if (uapi->ring_init)
		uapi->ring_init(ring->mem, slots, bytes);
	ret = rdma_user_mmap_entry_insert_range(kiw_udata_context(udata), &ring->entry, bytes,
						uapi->first_pgoff, U32_MAX);
	if (ret)
		goto err_free_pages;
	*mem = ring->mem;
	return &ring->entry;

err_free_pages:
	uapi_free_pages(ring->mem);
err_free:
	kfree(ring);
	return NULL;
}

/* The offset that the process passes to mmap(), or 0 without a ring */
static u64 uapi_ring_key(const struct rdma_user_mmap_entry *entry)
{
	return entry ? rdma_user_mmap_get_offset(entry) : 0;
}

/**
 * kiw_ring_free() - free a ring of a process or a kernel consumer
 * @entry: the entry of a ring that a process may map, or NULL
 * @ring: its address; from kvmalloc() if there is no @entry; may be NULL
 *
 * The ring cannot be mapped any more. Existing mappings remain until they are unmapped.
 *
 * Context: process; may sleep.
 */
void kiw_ring_free(struct rdma_user_mmap_entry *entry, void *ring)
{
	if (entry)
		rdma_user_mmap_entry_remove(entry);
	else
		kvfree(ring);
}

/* rdma_user_mmap_entry_get() has checked that @vma is as long as the ring. */
static int uapi_map_pages(struct vm_area_struct *vma, void *mem)
{
	unsigned long addr;
	int ret = 0;

	kiw_compat_vma_flags(vma, VM_DONTEXPAND | VM_DONTDUMP);
	for (addr = vma->vm_start; !ret && addr < vma->vm_end; addr += PAGE_SIZE, mem += PAGE_SIZE)
		ret = vm_insert_page(vma, addr, uapi_page_of(mem));
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
	struct uapi_ring *ring;
	int ret;

	entry = rdma_user_mmap_entry_get(uctx, vma);
	if (!entry)
		return -EINVAL;
	ring = container_of(entry, struct uapi_ring, entry);
	ret = uapi_map_pages(vma, ring->mem);
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
	struct uapi_ring *ring = container_of(entry, struct uapi_ring, entry);

	uapi_free_pages(ring->mem);
	kfree(ring);
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

/**
 * kiw_uapi_spare_slots() - how many slots of a ring stay empty
 * @ibdev: the device
 * @is_user: it is the ring of a process
 *
 * Context: any.
 * Return: number of slots.
 */
u32 kiw_uapi_spare_slots(const struct ib_device *ibdev, bool is_user)
{
	const struct kiw_device *dev = container_of(ibdev, struct kiw_device, ib);

	return is_user ? dev->uapi->spare_slots : 0;
}

/*
 * Check a request for which the ABI has no driver-specific part, and the room for the response. A
 * part that is all zeroes is accepted, so a newer provider that asks for nothing new still works.
 * There must be room for the whole response, because the process needs it. Room beyond the response
 * is not written.
 */
static int uapi_check(struct kiw_device *dev, struct ib_udata *udata, size_t resp_bytes)
{
	if (udata->outlen >= resp_bytes &&
	    (!udata->inlen || ib_is_udata_cleared(udata, 0, udata->inlen)))
		return 0;
	kiw_count(&dev->stats, KIW_STAT_UDATA_INVALID);
	return -EINVAL;
}

/**
 * kiw_uapi_check_none() - check a call for which the driver defines no request and no response
 * @dev: the device
 * @udata: the request, or NULL: there is none
 *
 * Context: process; may sleep.
 * Return: 0, or -EINVAL: the request is not all zeroes, or cannot be read.
 */
int kiw_uapi_check_none(struct kiw_device *dev, struct ib_udata *udata)
{
	return udata ? uapi_check(dev, udata, 0) : 0;
}

/**
 * kiw_uapi_open() - answer a process that opens the device
 * @uctx: the user context
 * @udata: the request
 *
 * Context: process; may sleep.
 * Return: 0; -EINVAL or -EFAULT: bad @udata.
 */
int kiw_uapi_open(struct ib_ucontext *uctx, struct ib_udata *udata)
{
	struct kiw_device *dev = to_kiw_device(uctx->device);
	const struct kiw_uapi_ops *uapi = dev->uapi;
	u64 resp[KIW_UAPI_WORDS] = {};
	int ret;

	ret = uapi_check(dev, udata, uapi->context_resp_bytes);
	if (ret)
		return ret;
	if (!uapi->context_resp_bytes)
		return 0;
	uapi->context_resp(resp, uctx->device->index);
	return ib_copy_to_udata(udata, resp, uapi->context_resp_bytes);
}

/**
 * kiw_uapi_make_cq() - allocate the ring of a process's completion queue, and tell the process
 * @cq: the queue, not initialised yet; sets its @user
 * @slots: slots of the ring, a power of two
 * @udata: the request
 * @ring: set to the ring, which is empty
 *
 * The caller owns the ring and frees it with kiw_ring_free(). On error there is none.
 *
 * Context: process; may sleep.
 * Return: 0; -EINVAL or -EFAULT: bad @udata; -ENOMEM.
 */
int kiw_uapi_make_cq(struct kiw_cq *cq, u32 slots, struct ib_udata *udata, void **ring)
{
	struct kiw_device *dev = to_kiw_device(cq->ib.device);
	const struct kiw_uapi_ops *uapi = dev->uapi;
	u64 resp[KIW_UAPI_WORDS] = {};
	int ret;

	ret = uapi_check(dev, udata, uapi->cq_resp_bytes);
	if (ret)
		return ret;
	cq->user = uapi_ring_alloc(uapi, udata, slots, uapi->cq_bytes(slots), ring);
	if (!cq->user)
		return -ENOMEM;
	uapi->cq_resp(resp, slots, uapi_ring_key(cq->user));
	ret = ib_copy_to_udata(udata, resp, uapi->cq_resp_bytes);
	if (ret) {
		kiw_ring_free(cq->user, *ring);
		cq->user = NULL;
	}
	return ret;
}

/*
 * Let @cq use the ring of @move, whose mmap entry is *@entry. On success, *@entry becomes the entry
 * of the old ring. On error, nothing has changed. Either way the caller frees *@entry.
 */
static int uapi_move(struct kiw_cq *cq, struct kiw_cq_move *move,
		     struct rdma_user_mmap_entry **entry)
{
	unsigned long flags;
	int ret;

	do {
		cond_resched();
		spin_lock_irqsave(&cq->lock, flags);
		ret = cq->ops->move(cq, move);
		if (!ret) {
			swap(cq->user, *entry);
			cq->ib.cqe = move->size - kiw_uapi_spare_slots(cq->ib.device, true);
		}
		spin_unlock_irqrestore(&cq->lock, flags);
	} while (ret == -EAGAIN);
	return ret;
}

/**
 * kiw_uapi_resize_cq() - replace the ring of a process's completion queue, and tell the process
 * @cq: the queue; may be posted to and armed meanwhile; not destroyed
 * @slots: slots of the new ring, a power of two
 * @udata: the request
 *
 * The process is told first, so that nothing has changed if that fails. It maps the new ring and
 * unmaps the old one when the call has returned.
 *
 * Context: process; may sleep; takes @cq->lock, for a few completions at a time.
 * Return: 0; -EOPNOTSUPP: the ABI cannot; -EINVAL or -EFAULT: bad @udata; -ENOMEM; -EBUSY: more
 * completions wait than would fit. On error nothing has changed.
 */
int kiw_uapi_resize_cq(struct kiw_cq *cq, u32 slots, struct ib_udata *udata)
{
	struct kiw_device *dev = to_kiw_device(cq->ib.device);
	const struct kiw_uapi_ops *uapi = dev->uapi;
	struct kiw_cq_move move = { .size = slots };
	struct rdma_user_mmap_entry *entry;
	u64 resp[KIW_UAPI_WORDS] = {};
	int ret;

	if (!cq->ops->move)
		return -EOPNOTSUPP;
	ret = uapi_check(dev, udata, uapi->cq_resp_bytes);
	if (ret)
		return ret;
	entry = uapi_ring_alloc(uapi, udata, slots, uapi->cq_bytes(slots), &move.ring);
	if (!entry)
		return -ENOMEM;
	uapi->cq_resp(resp, slots, uapi_ring_key(entry));
	ret = ib_copy_to_udata(udata, resp, uapi->cq_resp_bytes);
	if (!ret)
		ret = uapi_move(cq, &move, &entry);
	kiw_ring_free(entry, NULL);
	return ret;
}

/**
 * kiw_uapi_make_srq() - allocate the ring of a process's shared receive queue, and tell the process
 * @srq: the queue, not initialised yet; sets its @user
 * @slots: slots of the ring, a power of two
 * @udata: the request
 * @ring: set to the ring, which is empty
 *
 * The caller owns the ring and frees it with kiw_ring_free(). On error there is none.
 *
 * Context: process; may sleep.
 * Return: 0; -EINVAL or -EFAULT: bad @udata; -ENOMEM.
 */
int kiw_uapi_make_srq(struct kiw_srq *srq, u32 slots, struct ib_udata *udata, void **ring)
{
	struct kiw_device *dev = to_kiw_device(srq->ib.device);
	const struct kiw_uapi_ops *uapi = dev->uapi;
	u64 resp[KIW_UAPI_WORDS] = {};
	int ret;

	ret = uapi_check(dev, udata, uapi->srq_resp_bytes);
	if (ret)
		return ret;
	srq->user = uapi_ring_alloc(uapi, udata, slots, uapi->rq_bytes(slots), ring);
	if (!srq->user)
		return -ENOMEM;
	uapi->srq_resp(resp, slots, uapi_ring_key(srq->user));
	ret = ib_copy_to_udata(udata, resp, uapi->srq_resp_bytes);
	if (ret) {
		kiw_ring_free(srq->user, *ring);
		srq->user = NULL;
	}
	return ret;
}

/* Sets @dest to where the process wants to be told of the new ring */
static int uapi_resize_srq_dest(struct kiw_device *dev, struct ib_udata *udata, void __user **dest)
{
	size_t bytes = dev->uapi->srq_resize_req_bytes;
	u64 req[KIW_UAPI_WORDS] = {};
	int ret;

	if (udata->inlen < bytes ||
	    (udata->inlen > bytes && !ib_is_udata_cleared(udata, bytes, udata->inlen - bytes))) {
		kiw_count(&dev->stats, KIW_STAT_UDATA_INVALID);
		return -EINVAL;
	}
	ret = ib_copy_from_udata(req, udata, bytes);
	if (ret)
		return ret;
	*dest = u64_to_user_ptr(dev->uapi->srq_resize_dest(req));
	return 0;
}

/**
 * kiw_uapi_resize_srq() - replace the ring of a process's shared receive queue, and tell it
 * @srq: the queue; may be posted to and fetched from meanwhile; not destroyed
 * @slots: slots of the new ring, a power of two
 * @udata: the request
 *
 * The process is told first, so that nothing has changed if that fails. It maps the new ring and
 * unmaps the old one when the call has returned. Receives that it posts meanwhile may be lost.
 *
 * Context: process; may sleep; takes @srq->rq.lock, for a few receives at a time.
 * Return: 0; -EOPNOTSUPP: the ABI cannot; -EINVAL or -EFAULT: bad @udata; -ENOMEM; -EBUSY: there
 * are, or seem to be, more receives than would fit. On error nothing has changed.
 */
int kiw_uapi_resize_srq(struct kiw_srq *srq, u32 slots, struct ib_udata *udata)
{
	struct kiw_device *dev = to_kiw_device(srq->ib.device);
	const struct kiw_uapi_ops *uapi = dev->uapi;
	struct kiw_rq_move move = { .size = slots };
	struct rdma_user_mmap_entry *entry;
	u64 resp[KIW_UAPI_WORDS] = {};
	void __user *dest;
	int ret;

	if (!srq->rq.ops->move)
		return -EOPNOTSUPP;
	ret = uapi_resize_srq_dest(dev, udata, &dest);
	if (ret)
		return ret;
	entry = uapi_ring_alloc(uapi, udata, slots, uapi->rq_bytes(slots), &move.ring);
	if (!entry)
		return -ENOMEM;
	uapi->srq_resize_resp(resp, slots, uapi_ring_key(entry));
	ret = -EFAULT;
	if (!copy_to_user(dest, resp, uapi->srq_resize_resp_bytes))
		ret = kiw_srq_move(srq, &move, &entry);
	kiw_ring_free(entry, NULL);
	return ret;
}

static int uapi_make_sq(const struct kiw_uapi_ops *uapi, struct kiw_qp *qp, struct ib_udata *udata)
{
	struct kiw_sq *sq = &qp->sq;

	sq->ops = uapi->sq;
	sq->max_sge = uapi->max_sge;
	sq->max_inline = uapi->max_inline;
	qp->user_sq = uapi_ring_alloc(uapi, udata, sq->size, uapi->sq_bytes(sq->size), &sq->ring);
	return qp->user_sq ? 0 : -ENOMEM;
}

static int uapi_make_rq(const struct kiw_uapi_ops *uapi, struct kiw_qp *qp, struct ib_udata *udata)
{
	struct kiw_rq *rq = &qp->rq;

	if (qp->srq)
		return 0;
	rq->ops = uapi->rq;
	rq->max_sge = uapi->max_sge;
	qp->user_rq = uapi_ring_alloc(uapi, udata, rq->size, uapi->rq_bytes(rq->size), &rq->ring);
	return qp->user_rq ? 0 : -ENOMEM;
}

/**
 * kiw_uapi_make_qp() - allocate the rings of a process's QP, and tell the process
 * @qp: the QP, with its number, @srq and the sizes of its queues; kiw_qp_init() comes later. Sets
 *	format, ring and limits of the queues, @user_sq and @user_rq
 * @udata: the request
 *
 * The caller owns the rings and frees them with kiw_ring_free(), also on error.
 *
 * Context: process; may sleep.
 * Return: 0; -EINVAL or -EFAULT: bad @udata; -ENOMEM.
 */
int kiw_uapi_make_qp(struct kiw_qp *qp, struct ib_udata *udata)
{
	struct kiw_device *dev = to_kiw_device(qp->ib.device);
	const struct kiw_uapi_ops *uapi = dev->uapi;
	u64 resp[KIW_UAPI_WORDS] = {};
	int ret;

	ret = uapi_check(dev, udata, uapi->qp_resp_bytes);
	if (ret)
		return ret;
	ret = uapi_make_sq(uapi, qp, udata);
	if (ret)
		return ret;
	ret = uapi_make_rq(uapi, qp, udata);
	if (ret)
		return ret;
	uapi->qp_resp(resp, qp, uapi_ring_key(qp->user_sq), uapi_ring_key(qp->user_rq));
	return ib_copy_to_udata(udata, resp, uapi->qp_resp_bytes);
}

/* A request may be shorter than the ABI's, missing bytes being zeroes, or longer by zeroes. */
static int uapi_check_mr(const struct kiw_uapi_ops *uapi, struct ib_udata *udata)
{
	size_t bytes = uapi->mr_req_bytes;
	u64 req[KIW_UAPI_WORDS] = {};
	int ret;

	if (udata->inlen > bytes && !ib_is_udata_cleared(udata, bytes, udata->inlen - bytes))
		return -EINVAL;
	if (!bytes)
		return 0;
	ret = ib_copy_from_udata(req, udata, min(bytes, udata->inlen));
	if (ret)
		return ret;
	return uapi->mr_req_is_good(req) ? 0 : -EINVAL;
}

/**
 * kiw_uapi_check_mr() - check the driver's part of a request to register memory
 * @dev: the device
 * @udata: the request, of any size
 *
 * Context: process; may sleep.
 * Return: 0; -EINVAL or -EFAULT: bad @udata.
 */
int kiw_uapi_check_mr(struct kiw_device *dev, struct ib_udata *udata)
{
	int ret = uapi_check_mr(dev->uapi, udata);

	if (ret)
		kiw_count(&dev->stats, KIW_STAT_UDATA_INVALID);
	return ret;
}

/**
 * kiw_uapi_tell_mr() - tell a process the STag of the memory that it has registered
 * @dev: the device
 * @udata: the request; as much of the response as there is room for is written
 * @stag: the STag
 *
 * Context: process; may sleep.
 * Return: 0 or -EFAULT.
 */
int kiw_uapi_tell_mr(struct kiw_device *dev, struct ib_udata *udata, u32 stag)
{
	size_t bytes = dev->uapi->mr_resp_bytes;
	u64 resp[KIW_UAPI_WORDS] = {};

	if (!bytes)
		return 0;
	dev->uapi->mr_resp(resp, stag);
	return ib_copy_to_udata(udata, resp, min(bytes, udata->outlen));
}
