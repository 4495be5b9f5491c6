// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Verbs: memory regions.
 *
 * Owns: &struct kiw_mr and its pinned memory, from registration to deregistration. Except for
 * kiw_map_mr_sg(), all functions run in process context and may sleep. mem/mr.c explains how the
 * data path finds an MR, and why it may be freed here.
 */
#include "verbs.h"

#include <linux/slab.h>

#include "device.h"
#include "mem/dmabuf.h"
#include "mem/mr.h"
#include "mem/mr_fast.h"
#include "mem/umem.h"
#include "uapi.h"

static int mr_check_access(struct ib_device *ibdev, int access)
{
	int ret;

	/* E.g. remote write needs local write. The core checks this only for user space. */
	ret = ib_check_mr_access(ibdev, access);
	if (ret)
		return ret;
	return access & ~(KIW_ACCESS_GRANTED | KIW_ACCESS_IGNORED) ? -EOPNOTSUPP : 0;
}

static struct kiw_mr *mr_alloc(struct kiw_device *dev, struct ib_pd *ibpd, int access)
{
	struct kiw_mr *mr;
	int ret;

	ret = mr_check_access(&dev->ib, access);
	if (ret)
		return ERR_PTR(ret);
	if (!atomic_add_unless(&dev->num_mr, 1, KIW_MAX_MR))
		return ERR_PTR(-ENOMEM);
	mr = kzalloc(sizeof(*mr), GFP_KERNEL_ACCOUNT);
	if (!mr) {
		atomic_dec(&dev->num_mr);
		return ERR_PTR(-ENOMEM);
	}
	/* The core sets these, too, but only after the MR was published */
	mr->ib.device = &dev->ib;
	mr->ib.pd = ibpd;
	mr->access = (access & KIW_ACCESS_GRANTED) | KIW_ACCESS_LOCAL_READ;
	return mr;
}

static void mr_free(struct kiw_device *dev, struct kiw_mr *mr)
{
	kiw_umem_unpin(mr->umem);
	kiw_dmabuf_unmap(mr->dmabuf);
	kiw_fast_free(mr->fast);
	kfree(mr);
	atomic_dec(&dev->num_mr);
}

/* Publish a complete MR; free it if that fails, or if @ret says that an earlier step failed */
static struct ib_mr *mr_add(struct kiw_device *dev, struct kiw_mr *mr, int ret)
{
	if (!ret)
		ret = kiw_mr_publish(&dev->mrs, mr);
	if (ret) {
		mr_free(dev, mr);
		return ERR_PTR(ret);
	}
	kiw_count(&dev->stats, KIW_STAT_MR_CREATED);
	return &mr->ib;
}

/**
 * kiw_get_dma_mr() - register all of kernel memory
 * @ibpd: protection domain
 * @access: enum ib_access_flags
 *
 * Addresses in it are kernel virtual addresses: the device does not use DMA, so these are
 * what ib_dma_map_single() and the like return.
 *
 * Context: process, may sleep.
 * Return: the MR, to be released with kiw_dereg_mr(), or ERR_PTR(): -EINVAL or -EOPNOTSUPP
 * for bad rights, -ENOMEM also beyond %KIW_MAX_MR.
 */
struct ib_mr *kiw_get_dma_mr(struct ib_pd *ibpd, int access)
{
	struct kiw_device *dev = to_kiw_device(ibpd->device);
	struct kiw_mr *mr;

	/* For a device with a local DMA lkey, the core asks for remote rights without this one. */
	if (access & (IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_ATOMIC))
		access |= IB_ACCESS_LOCAL_WRITE;
	mr = mr_alloc(dev, ibpd, access);
	if (IS_ERR(mr))
		return ERR_CAST(mr);
	mr->length = U64_MAX;
	return mr_add(dev, mr, 0);
}

/* Is [@virt_addr, @virt_addr + @length) empty, or does it wrap? */
static bool mr_is_bad_range(u64 length, u64 virt_addr)
{
	return !length || virt_addr + (length - 1) < virt_addr;
}

/* Pin the memory of @mr */
static int mr_attach(struct kiw_mr *mr, u64 start, u64 length, u64 virt_addr, int access)
{
	struct kiw_umem *umem;

	if (mr_is_bad_range(length, virt_addr))
		return -EINVAL;
	umem = kiw_umem_pin(mr->ib.device, start, length, access);
	if (IS_ERR(umem))
		return PTR_ERR(umem);
	mr->umem = umem;
	mr->base = virt_addr;
	mr->length = length;
	return 0;
}

/**
 * kiw_reg_user_mr() - register memory of the current process
 * @ibpd: protection domain
 * @start: user address of the first byte
 * @length: length in bytes; not 0
 * @virt_addr: tagged offset of the first byte (iova); any value from which the region does not
 *	extend beyond 2^64
 * @access: enum ib_access_flags; unknown bits are refused, unless they are optional
 * @udata: the user's request, of any size; NULL when a kernel consumer registers for a process
 *
 * Context: process, may sleep.
 * Return: the MR, to be released with kiw_dereg_mr(), or ERR_PTR(): -EINVAL or -EOPNOTSUPP
 * for bad arguments, -ENOMEM also beyond %KIW_MAX_MR or RLIMIT_MEMLOCK, -EFAULT and others as for
 * kiw_umem_pin().
 */
struct ib_mr *kiw_reg_user_mr(struct ib_pd *ibpd, u64 start, u64 length, u64 virt_addr,
			      int access, struct ib_udata *udata)
{
	struct kiw_device *dev = to_kiw_device(ibpd->device);
	struct kiw_mr *mr;
	int ret;

	ret = udata ? kiw_uapi_check_mr(dev, udata) : 0;
	if (ret)
		return ERR_PTR(ret);
	mr = mr_alloc(dev, ibpd, access);
	if (IS_ERR(mr))
		return ERR_CAST(mr);
	ret = mr_attach(mr, start, length, virt_addr, access);
	if (ret)
		goto err_free;
	ret = kiw_mr_publish(&dev->mrs, mr);
	if (ret)
		goto err_free;
	ret = udata ? kiw_uapi_tell_mr(dev, udata, mr->ib.lkey) : 0;
	if (ret)
		goto err_retract;
	kiw_count(&dev->stats, KIW_STAT_MR_CREATED);
	return &mr->ib;

err_retract:
	kiw_mr_retract(&dev->mrs, mr);
err_free:
	mr_free(dev, mr);
	return ERR_PTR(ret);
}

/*
 * Does anything write to memory with these rights? The right to bind windows does not: a window can
 * only be written to if its region can.
 */
static bool mr_is_writable(int access)
{
	return ib_access_writable(access & ~IB_ACCESS_MW_BIND);
}

/* Can a region that is re-registered use the pages of @old? */
static bool mr_pages_fit(const struct kiw_mr *old, int flags, int access)
{
	if (flags & IB_MR_REREG_TRANS)
		return false;
	return old->umem->ib->writable || !mr_is_writable(access);
}

/* Take what does not change from @old. Pin the pages again unless those of @old can be used. */
static int mr_reattach(struct kiw_mr *mr, const struct kiw_mr *old, int flags, u64 start,
		       u64 length, u64 virt_addr)
{
	if (mr_pages_fit(old, flags, mr->access)) {
		mr->umem = kiw_umem_share(old->umem);
		mr->base = old->base;
		mr->length = old->length;
		return 0;
	}
	if (flags & IB_MR_REREG_TRANS)
		return mr_attach(mr, start, length, virt_addr, mr->access);
	/* The address is valid only in the address space of the process that registered it. */
	if (old->umem->ib->owning_mm != current->mm)
		return -EINVAL;
	return mr_attach(mr, old->umem->ib->address, old->length, old->base, mr->access);
}

/**
 * kiw_rereg_user_mr() - re-register a region
 * @ibmr: a region of a process
 * @flags: which of the following change: IB_MR_REREG_TRANS, IB_MR_REREG_PD,
 *	IB_MR_REREG_ACCESS
 * @start: user address of the first byte
 * @length: length in bytes; not 0
 * @virt_addr: tagged offset of the first byte (iova)
 * @access: enum ib_access_flags
 * @ibpd: protection domain, also if it does not change
 * @udata: has no driver-specific part
 *
 * Creates a new region with a new STag. After success the core deregisters @ibmr, which waits
 * for the users of the old region (kiw_dereg_mr()). Until then nobody can bind a window to it any
 * more. The core keeps the new region even if it cannot deliver the response. On failure @ibmr is
 * unchanged.
 *
 * Context: process, may sleep; uverbs makes no other call for @ibmr meanwhile.
 * Return: the MR, to be released with kiw_dereg_mr(), or ERR_PTR(): as kiw_reg_user_mr(), and
 * -EINVAL if @ibmr is memory of a dma-buf, or another process tries to make it writable; -EBUSY if
 * a window is bound to it.
 */
struct ib_mr *kiw_rereg_user_mr(struct ib_mr *ibmr, int flags, u64 start, u64 length,
				u64 virt_addr, int access, struct ib_pd *ibpd,
				struct ib_udata *udata)
{
	struct kiw_device *dev = to_kiw_device(ibmr->device);
	struct kiw_mr *mr, *old = to_kiw_mr(ibmr);
	struct ib_mr *new;
	int ret;

	if (!old->umem)
		return ERR_PTR(-EINVAL);
	ret = kiw_uapi_check_none(dev, udata);
	if (ret)
		return ERR_PTR(ret);
	mr = mr_alloc(dev, ibpd, flags & IB_MR_REREG_ACCESS ?
					access : old->access & KIW_ACCESS_GRANTED);
	if (IS_ERR(mr))
		return ERR_CAST(mr);
	mr->is_settled = true;
	ret = mr_reattach(mr, old, flags, start, length, virt_addr);
	mr->ib.iova = mr->base;
	mr->ib.length = mr->length;
	if (!ret && !kiw_mr_close(old))
		ret = -EBUSY;
	new = mr_add(dev, mr, ret);
	if (IS_ERR(new) && !ret)
		kiw_mr_reopen(old);
	return new;
}

static int mr_attach_dmabuf(struct kiw_mr *mr, u64 offset, u64 length, u64 virt_addr, int fd)
{
	struct kiw_dmabuf *part;

	if (mr_is_bad_range(length, virt_addr))
		return -EINVAL;
	part = kiw_dmabuf_map(fd, offset, length, mr_is_writable(mr->access));
	if (IS_ERR(part))
		return PTR_ERR(part);
	mr->dmabuf = part;
	mr->base = virt_addr;
	mr->length = length;
	/* The core does not set these. */
	mr->ib.iova = virt_addr;
	mr->ib.length = length;
	return 0;
}

/**
 * kiw_reg_user_mr_dmabuf() - register a part of a dma-buf
 * @ibpd: protection domain
 * @offset: bytes from the start of the buffer
 * @length: length in bytes; not 0
 * @virt_addr: tagged offset of the first byte (iova)
 * @fd: file descriptor of the buffer
 * @access: enum ib_access_flags
 * @arg: has no driver-specific part
 *
 * The buffer stays pinned in place as long as the region exists, even after @fd is closed.
 *
 * Context: process, may sleep.
 * Return: the MR, to be released with kiw_dereg_mr(), or ERR_PTR(): as kiw_dmabuf_map(); -EINVAL
 * or -EOPNOTSUPP for bad arguments, -ENOMEM also beyond %KIW_MAX_MR.
 */
struct ib_mr *kiw_reg_user_mr_dmabuf(struct ib_pd *ibpd, u64 offset, u64 length, u64 virt_addr,
				     int fd, int access, kiw_compat_dmabuf_arg *arg)
{
	struct kiw_device *dev = to_kiw_device(ibpd->device);
	struct kiw_mr *mr;
	int ret;

	ret = kiw_uapi_check_none(dev, kiw_compat_dmabuf_udata(arg));
	if (ret)
		return ERR_PTR(ret);
	mr = mr_alloc(dev, ibpd, access);
	if (IS_ERR(mr))
		return ERR_CAST(mr);
	return mr_add(dev, mr, mr_attach_dmabuf(mr, offset, length, virt_addr, fd));
}

/**
 * kiw_alloc_mr() - allocate a region for fast registration
 * @ibpd: protection domain
 * @type: IB_MR_TYPE_MEM_REG
 * @max_num_sg: maximum number of pages of a registration, 1..%KIW_FAST_MAX_PAGES
 *
 * The region is invalid until a work request makes it valid.
 *
 * Context: process, may sleep.
 * Return: the MR, to be released with kiw_dereg_mr(), or ERR_PTR(): -EOPNOTSUPP for another
 * type, -EINVAL for a bad number, -ENOMEM also beyond %KIW_MAX_MR.
 */
struct ib_mr *kiw_alloc_mr(struct ib_pd *ibpd, enum ib_mr_type type, u32 max_num_sg)
{
	struct kiw_device *dev = to_kiw_device(ibpd->device);
	struct kiw_mr *mr;

	if (type != IB_MR_TYPE_MEM_REG)
		return ERR_PTR(-EOPNOTSUPP);
	if (!max_num_sg || max_num_sg > KIW_FAST_MAX_PAGES)
		return ERR_PTR(-EINVAL);
	mr = mr_alloc(dev, ibpd, 0);
	if (IS_ERR(mr))
		return ERR_CAST(mr);
	mr->fast = kiw_fast_alloc(max_num_sg);
	if (!mr->fast)
		return mr_add(dev, mr, -ENOMEM);
	mr->dyn = &mr->fast->dyn;
	return mr_add(dev, mr, 0);
}

/**
 * kiw_map_mr_sg() - set the memory of the next registration of a region
 * @ibmr: from kiw_alloc_mr()
 * @sg: mapped for the device
 * @num: number of entries in @sg
 * @offset: in: bytes to skip in the first entry; out: where the rest begins; may be NULL
 *
 * Context: any.
 * Return: number of entries mapped to their ends; -EINVAL: it is no region for fast
 * registration, or its page size is not supported; or an error of the core.
 */
int kiw_map_mr_sg(struct ib_mr *ibmr, struct scatterlist *sg, int num, unsigned int *offset)
{
	struct kiw_mr *mr = to_kiw_mr(ibmr);

	return mr->fast ? kiw_fast_map(mr, sg, num, offset) : -EINVAL;
}

/**
 * kiw_dereg_mr() - deregister memory
 * @ibmr: of any kind; freed here on success
 * @udata: not used
 *
 * After success, no message in progress accesses memory by the region any more.
 *
 * Context: process, may sleep.
 * Return: 0, or -EBUSY if a window is bound to it.
 */
int kiw_dereg_mr(struct ib_mr *ibmr, struct ib_udata *udata)
{
	struct kiw_device *dev = to_kiw_device(ibmr->device);
	struct kiw_mr *mr = to_kiw_mr(ibmr);

	if (!kiw_mr_close(mr))
		return -EBUSY;
	kiw_mr_retract(&dev->mrs, mr);
	mr_free(dev, mr);
	kiw_count(&dev->stats, KIW_STAT_MR_DESTROYED);
	return 0;
}
