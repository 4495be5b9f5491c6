// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * rdma link add NAME type kiwarp netdev DEV
 *
 * Owns: the link type, which also selects the user ABI of its devices. The core loads this module
 * when the type is requested, looks the netdev up in the caller's namespace, requires
 * CAP_NET_ADMIN, and handles `rdma link delete` by itself. Process context.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include "netlink.h"

#include <linux/ctype.h>
#include <linux/errno.h>
#include <linux/printk.h>
#include <linux/string.h>
#include <rdma/ib_verbs.h>
#include <rdma/rdma_netlink.h>

#include "device.h"
#include "verbs/uapi_siw.h"

/*
 * Can the name be a directory in sysfs and a word in a command? The core itself refuses only '%'
 * and the empty name, and silently turns '/' into '!'.
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

static int netlink_newlink(const char *name, struct net_device *ndev)
{
	if (!netlink_is_good_name(name)) {
		pr_info("bad device name '%*pE': no spaces, control characters, or any of / %% ! :\n",
			(int)strnlen(name, IB_DEVICE_NAME_MAX), name);
		return -EINVAL;
	}
	return kiw_device_add(name, ndev, &kiw_uapi_siw);
}

static struct rdma_link_ops link_ops = {
	.type = "kiwarp",
	.newlink = netlink_newlink,
};

/**
 * kiw_netlink_init() - start to accept `rdma link add`
 *
 * Context: process, may sleep. Undone by kiw_netlink_uninit().
 */
void kiw_netlink_init(void)
{
	rdma_link_register(&link_ops);
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
	rdma_link_unregister(&link_ops);
}
