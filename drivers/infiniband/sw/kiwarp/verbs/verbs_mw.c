// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Verbs: memory windows. Only processes have them, on devices whose user ABI can bind them.
 *
 * Owns: &struct kiw_mw, which uverbs allocates and frees. mem/mr_window.c binds them.
 */
#include "verbs.h"

#include "device.h"
#include "mem/mr_window.h"
#include "uapi.h"

/**
 * kiw_alloc_mw() - ib_device_ops.alloc_mw
 * @ibmw: the window; its device, protection domain and type have been set; gets its STag
 * @udata: has no driver-specific part
 *
 * The window is not bound. uverbs has checked its type.
 *
 * Context: process, may sleep.
 * Return: 0; -ENOMEM, also beyond %KIW_MAX_MW; -EBUSY: no STag is free; -EINVAL: bad @udata.
 */
int kiw_alloc_mw(struct ib_mw *ibmw, struct ib_udata *udata)
{
	struct kiw_device *dev = to_kiw_device(ibmw->device);
	struct kiw_window *window;
	int ret;

	ret = kiw_uapi_check_none(dev, udata);
	if (ret)
		return ret;
	if (!atomic_add_unless(&dev->num_mw, 1, KIW_MAX_MW))
		return -ENOMEM;
	window = kiw_window_alloc(&dev->mrs, ibmw->pd, ibmw->type == IB_MW_TYPE_2);
	if (IS_ERR(window)) {
		atomic_dec(&dev->num_mw);
		return PTR_ERR(window);
	}
	to_kiw_mw(ibmw)->window = window;
	ibmw->rkey = window->mr.ib.rkey;
	kiw_count(&dev->stats, KIW_STAT_MR_CREATED);
	return 0;
}

/**
 * kiw_dealloc_mw() - ib_device_ops.dealloc_mw
 * @ibmw: the window, bound or not
 *
 * When it returns, no message in progress accesses memory by the window.
 *
 * Context: process, may sleep.
 * Return: 0.
 */
int kiw_dealloc_mw(struct ib_mw *ibmw)
{
	struct kiw_device *dev = to_kiw_device(ibmw->device);

	kiw_window_free(&dev->mrs, to_kiw_mw(ibmw)->window);
	atomic_dec(&dev->num_mw);
	kiw_count(&dev->stats, KIW_STAT_MR_DESTROYED);
	return 0;
}

/* In addition to kiw_device_ops. uverbs offers windows if a device has these. */
const struct ib_device_ops kiw_mw_ops = {
	.alloc_mw = kiw_alloc_mw,
	.dealloc_mw = kiw_dealloc_mw,

	INIT_RDMA_OBJ_SIZE(ib_mw, kiw_mw, ib),
};
