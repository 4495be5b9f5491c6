/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Differences between kernels in the interface of ib_core. */
#ifndef KIW_COMPAT_VERBS_H
#define KIW_COMPAT_VERBS_H

#include <linux/mm.h>
#include <rdma/ib_verbs.h>
#include <rdma/uverbs_ioctl.h>

/*
 * ib_device_ops.create_cq: up to 6.10 the request of a user consumer was passed as udata.
 * Kernel consumers pass NULL in either form.
 */
#if KIW_KERNEL_SINCE(6, 11, 0)
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
#if KIW_KERNEL_SINCE(6, 12, 0)
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

/* ib_device_ops.fill_res_srq_entry exists since 6.12 */
static inline void kiw_compat_fill_res_srq(struct ib_device *ibdev,
					   int (*fill)(struct sk_buff *msg, struct ib_srq *ibsrq))
{
#if KIW_KERNEL_SINCE(6, 12, 0)
	ibdev->ops.fill_res_srq_entry = fill;
#endif
}

/* Set flags of a mapping that is being created; since 6.3 they must not be written directly */
static inline void kiw_compat_vma_flags(struct vm_area_struct *vma, unsigned long flags)
{
#if KIW_KERNEL_SINCE(6, 3, 0)
	vm_flags_set(vma, flags);
#else
	vma->vm_flags |= flags;
#endif
}

/* udev renames a device unless a user chose its name, which kernels before 6.11 cannot say */
static inline void kiw_compat_name_by_user(struct ib_device *ibdev)
{
#if KIW_KERNEL_SINCE(6, 11, 0)
	ib_mark_name_assigned_by_user(ibdev);
#endif
}

/*
 * How rdma_cm finds the device for an address. Before 6.12 it uses the hardware address,
 * which must be GID 0, so a netdev without one cannot be served. Since 6.12 it uses the
 * netdev itself.
 */
static inline bool kiw_compat_cm_matches_netdev(void)
{
	return KIW_KERNEL_SINCE(6, 12, 0);
}

#endif /* KIW_COMPAT_VERBS_H */
