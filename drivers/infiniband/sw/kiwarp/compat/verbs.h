/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Differences between kernels in the interface of ib_core. */
#ifndef KIW_COMPAT_VERBS_H
#define KIW_COMPAT_VERBS_H

#include <linux/mm.h>
#include <rdma/ib_umem.h>
#include <rdma/ib_verbs.h>
#include <rdma/uverbs_ioctl.h>

/*
 * ib_device_ops.create_cq: up to 6.10 the request of a user consumer was passed as udata.
 * Kernel consumers pass NULL in either form.
 */
#ifdef KIW_HAS_CREATE_CQ_BUNDLE
#define kiw_compat_create_cq_arg struct uverbs_attr_bundle

static inline struct ib_udata *kiw_compat_cq_udata(kiw_compat_create_cq_arg *arg)
{
	return arg ? &arg->driver_udata : NULL;
}
#else
#define kiw_compat_create_cq_arg struct ib_udata

static inline struct ib_udata *kiw_compat_cq_udata(kiw_compat_create_cq_arg *arg)
{
	return arg;
}
#endif

/* The same for ib_device_ops.reg_user_mr_dmabuf, until 6.11 */
#if defined(KIW_HAS_DMABUF_BUNDLE) || defined(KIW_HAS_DMAH)
#define kiw_compat_dmabuf_arg struct uverbs_attr_bundle

static inline struct ib_udata *kiw_compat_dmabuf_udata(kiw_compat_dmabuf_arg *arg)
{
	return &arg->driver_udata;
}
#else
#define kiw_compat_dmabuf_arg struct ib_udata

static inline struct ib_udata *kiw_compat_dmabuf_udata(kiw_compat_dmabuf_arg *arg)
{
	return arg;
}
#endif

/*
 * Since 6.17 ib_device_ops.reg_user_mr and .reg_user_mr_dmabuf take a DMA handle, a hint for
 * devices on a bus, which a consumer can pass only if the device has allocated it. The macros
 * define @name, which calls @function without it.
 */
#ifdef KIW_HAS_DMAH
#define KIW_COMPAT_REG_USER_MR(name, function) \
static struct ib_mr *name(struct ib_pd *pd, u64 start, u64 length, u64 virt_addr, int access, \
			  struct ib_dmah *dmah, struct ib_udata *udata) \
{ \
	if (dmah) \
		return ERR_PTR(-EOPNOTSUPP); \
	return function(pd, start, length, virt_addr, access, udata); \
}

#define KIW_COMPAT_REG_DMABUF(name, function) \
static struct ib_mr *name(struct ib_pd *pd, u64 offset, u64 length, u64 virt_addr, int fd, \
			  int access, struct ib_dmah *dmah, struct uverbs_attr_bundle *attrs) \
{ \
	if (dmah) \
		return ERR_PTR(-EOPNOTSUPP); \
	return function(pd, offset, length, virt_addr, fd, access, attrs); \
}
#else
#define KIW_COMPAT_REG_USER_MR(name, function) \
static struct ib_mr *name(struct ib_pd *pd, u64 start, u64 length, u64 virt_addr, int access, \
			  struct ib_udata *udata) \
{ \
	return function(pd, start, length, virt_addr, access, udata); \
}

#define KIW_COMPAT_REG_DMABUF(name, function) \
static struct ib_mr *name(struct ib_pd *pd, u64 offset, u64 length, u64 virt_addr, int fd, \
			  int access, kiw_compat_dmabuf_arg *arg) \
{ \
	return function(pd, offset, length, virt_addr, fd, access, arg); \
}
#endif

/*
 * Set the operation that resizes a completion queue. Since 7.2 it is called for queues of processes
 * only, has another name, and the number of entries has another type.
 */
#ifdef KIW_HAS_RESIZE_CQ
#define kiw_compat_cqe int
#else
#define kiw_compat_cqe unsigned int
#endif

static inline void kiw_compat_resize_cq(struct ib_device *ibdev,
					int (*resize)(struct ib_cq *ibcq, kiw_compat_cqe cqe,
						      struct ib_udata *udata))
{
#ifdef KIW_HAS_RESIZE_CQ
	ibdev->ops.resize_cq = resize;
#else
	ibdev->ops.resize_user_cq = resize;
#endif
}

/* 7.2 renamed ib_umem_get() */
#ifndef KIW_HAS_UMEM_GET_VA
static inline struct ib_umem *ib_umem_get_va(struct ib_device *ibdev, unsigned long addr,
					     size_t size, int access)
{
	return ib_umem_get(ibdev, addr, size, access);
}
#endif

/* ib_device_ops.fill_res_srq_entry exists since 6.7 */
static inline void kiw_compat_fill_res_srq(struct ib_device *ibdev,
					   int (*fill)(struct sk_buff *msg, struct ib_srq *ibsrq))
{
#ifdef KIW_HAS_FILL_RES_SRQ
	ibdev->ops.fill_res_srq_entry = fill;
#endif
}

/* Set flags of a mapping that is being created; since 6.3 they must not be written directly */
static inline void kiw_compat_vma_flags(struct vm_area_struct *vma, unsigned long flags)
{
#ifdef KIW_HAS_VM_FLAGS_SET
	vm_flags_set(vma, flags);
#else
	vma->vm_flags |= flags;
#endif
}

/*
 * Mark the device's name as chosen by the user, so that udev does not rename the device. Kernels
 * before 6.11 have no such mark.
 */
static inline void kiw_compat_name_by_user(struct ib_device *ibdev)
{
#ifdef KIW_HAS_NAME_BY_USER
	ib_mark_name_assigned_by_user(ibdev);
#endif
}

/*
 * How rdma_cm finds the device for an address. In 6.1 it uses the hardware address, which must be
 * GID 0, so a netdev without one cannot be served. In 6.12 it uses the netdev itself. The releases
 * in between are not tested, and are treated like 6.1.
 */
static inline bool kiw_compat_cm_matches_netdev(void)
{
	return KIW_KERNEL_SINCE(6, 12, 0);
}

#endif /* KIW_COMPAT_VERBS_H */
