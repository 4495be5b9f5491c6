// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * rdma link add NAME type kiwarp|kiwarp-ext netdev DEV
 *
 * Owns: the link types, which select the user ABI of their devices. With the parameter siw_type
 * there is another type, "siw", for programs that name that driver, unless that driver was loaded
 * before. The core loads this module when one of the first two types is requested, looks the netdev
 * up in the caller's namespace, requires CAP_NET_ADMIN, and handles `rdma link delete` by itself.
 * Process context.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include "netlink.h"

#include <linux/ctype.h>
#include <linux/errno.h>
#include <linux/kobject.h>
#include <linux/module.h>
#include <linux/printk.h>
#include <linux/string.h>
#include <rdma/ib_verbs.h>
#include <rdma/rdma_netlink.h>

#include "device.h"
#include "verbs/uapi_rxe.h"
#include "verbs/uapi_siw.h"

/*
 * Can the name be a directory in sysfs and a word in a command? Of the names refused here, the core
 * itself refuses only those with '%' and the empty one, and silently turns '/' into '!'.
 */
static bool netlink_is_good_name(const char *name)
{
	const char *c;

	if (!strcmp(name, ".") || !strcmp(name, ".."))
		return false;
	for (c = name; *c; c++) {
		if (!isascii(*c) || !isgraph(*c) || strchr("/%!:", *c))
			return false;
	}
	return c != name;
}

static int netlink_add(const char *name, struct net_device *ndev, const struct kiw_uapi_ops *uapi)
{
	if (!netlink_is_good_name(name)) {
		pr_info("bad device name '%*pE': no spaces, control characters, or any of / %% ! :\n",
			(int)strnlen(name, IB_DEVICE_NAME_MAX), name);
		return -EINVAL;
	}
	return kiw_device_add(name, ndev, uapi);
}

static int netlink_newlink(const char *name, struct net_device *ndev)
{
	return netlink_add(name, ndev, &kiw_uapi_siw);
}

static int netlink_newlink_ext(const char *name, struct net_device *ndev)
{
	return netlink_add(name, ndev, &kiw_uapi_rxe);
}

static struct rdma_link_ops link_ops = {
	.type = "kiwarp",
	.newlink = netlink_newlink,
};

static struct rdma_link_ops ext_link_ops = {
	.type = "kiwarp-ext",
	.newlink = netlink_newlink_ext,
};

static bool siw_type;
module_param(siw_type, bool, 0444);
MODULE_PARM_DESC(siw_type, "also serve the link type siw, unless siw is loaded (default: N)");

static struct rdma_link_ops siw_link_ops = {
	/* It may not get onto the core's list, from which it is removed in any case */
	.list = LIST_HEAD_INIT(siw_link_ops.list),
	.type = "siw",
	.newlink = netlink_newlink,
};

/*
 * The core warns when a type is registered twice, and ignores the second registration. If siw is
 * loaded later, this happens to siw; modprobe's configuration can prevent that.
 */
static bool netlink_siw_is_loaded(void)
{
	struct kobject *siw = NULL;

#ifdef MODULE
	siw = kset_find_obj(THIS_MODULE->mkobj.kobj.kset, "siw");
#endif
	kobject_put(siw);
	return siw;
}

static void netlink_register_siw(void)
{
	if (!siw_type)
		return;
	if (netlink_siw_is_loaded()) {
		pr_warn("siw_type: siw is loaded, and keeps its link type\n");
		siw_type = false;
		return;
	}
	rdma_link_register(&siw_link_ops);
}

/**
 * kiw_netlink_init() - start to accept `rdma link add`
 *
 * Context: process, may sleep. Undone by kiw_netlink_uninit().
 */
void kiw_netlink_init(void)
{
	rdma_link_register(&link_ops);
	rdma_link_register(&ext_link_ops);
	netlink_register_siw();
}

/**
 * kiw_netlink_uninit() - stop accepting `rdma link add`
 *
 * When it returns, no link is being added.
 *
 * Context: process, may sleep.
 */
void kiw_netlink_uninit(void)
{
	if (siw_type)
		rdma_link_unregister(&siw_link_ops);
	rdma_link_unregister(&ext_link_ops);
	rdma_link_unregister(&link_ops);
}
