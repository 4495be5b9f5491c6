// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * User contexts: one for each time a process opens the device.
 *
 * Owns: nothing. The driver adds no data to &struct ib_ucontext, and every object of a
 * context is destroyed before the context. Process context throughout.
 */
#include <linux/module.h>

#include "uapi.h"
#include "verbs.h"

/**
 * kiw_alloc_ucontext() - a process opens the device: ib_device_ops.alloc_ucontext
 * @uctx: the user context
 * @udata: the request
 *
 * Context: process; may sleep.
 * Return: 0; -EINVAL or -EFAULT: bad @udata; -ENODEV: the module is being unloaded.
 */
int kiw_alloc_ucontext(struct ib_ucontext *uctx, struct ib_udata *udata)
{
	int ret;

	/*
	 * Keep the module loaded while a process has the device open. uverbs takes no reference
	 * to the module of a driver that has disassociate_ucontext.
	 */
	if (!try_module_get(THIS_MODULE))
		return -ENODEV;
	ret = kiw_uapi_open(uctx, udata);
	if (ret)
		module_put(THIS_MODULE);
	return ret;
}

/**
 * kiw_dealloc_ucontext() - a process closes the device: ib_device_ops.dealloc_ucontext
 * @uctx: the user context
 *
 * The context's objects and their rings have been destroyed. From here on the module may be
 * unloaded: module exit waits in ib_unregister_device() for tasks that are still deallocating.
 *
 * Context: process; may sleep.
 */
void kiw_dealloc_ucontext(struct ib_ucontext *uctx)
{
	module_put(THIS_MODULE);
}

/**
 * kiw_disassociate_ucontext() - the device is removed while a process uses it
 * @uctx: the user context
 *
 * If ib_device_ops.disassociate_ucontext is set, the core removes the device without waiting
 * for the process. There is nothing to do here: the core destroys the objects itself, and a ring
 * that is still mapped is ordinary memory with its own references, not device registers.
 *
 * Context: process; may sleep.
 */
void kiw_disassociate_ucontext(struct ib_ucontext *uctx)
{
}
