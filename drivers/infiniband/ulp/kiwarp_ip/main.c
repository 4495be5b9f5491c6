// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * kiwarp_ip: IP over connected mode (after RFC 4755) on iWARP devices.
 *
 * Module init and exit: sets up what interfaces depend on. Interfaces are created by
 * `ip link add` (netlink.c) and deleted at the latest when the module is removed. A connection may
 * outlive its interface in the reap workqueue, which is therefore drained after the interfaces are
 * gone.
 */
#include <linux/module.h>
#include <linux/workqueue.h>
#include <net/rtnetlink.h>

#include "dev.h"
#include "netlink.h"
#include "netns.h"

/* For work items that may sleep but do not wait for a peer, except as control.c says */
struct workqueue_struct *kip_wq;
/* Frees connections, which may take a while; separate, so other work items do not wait for it */
struct workqueue_struct *kip_reap_wq;

static int __init kip_init(void)
{
	int ret;

	kip_wq = alloc_workqueue("kiwarp_ip", WQ_UNBOUND | WQ_MEM_RECLAIM, 0);
	if (!kip_wq)
		return -ENOMEM;
	ret = -ENOMEM;
	kip_reap_wq = alloc_workqueue("kiwarp_ip_reap", WQ_UNBOUND | WQ_MEM_RECLAIM, 0);
	if (!kip_reap_wq)
		goto err_wq;
	ret = kip_netns_module_init();
	if (ret)
		goto err_reap_wq;
	ret = kip_dev_module_init();
	if (ret)
		goto err_netns;
	ret = kip_netlink_init();
	if (ret)
		goto err_dev;
	return 0;

err_dev:
	kip_dev_module_exit();
err_netns:
	kip_netns_module_exit();
err_reap_wq:
	destroy_workqueue(kip_reap_wq);
err_wq:
	destroy_workqueue(kip_wq);
	return ret;
}

static void __exit kip_exit(void)
{
	kip_netlink_uninit();
	kip_dev_module_exit();
	destroy_workqueue(kip_wq);
	destroy_workqueue(kip_reap_wq);
	/* No rcu_barrier(): kfree_rcu(), which frees peers and connections, needs no code here */
	kip_netns_module_exit();
}

module_init(kip_init);
module_exit(kip_exit);

MODULE_DESCRIPTION("IP over connected mode (RFC 4755) on iWARP");
MODULE_AUTHOR("The kiwarp authors");
MODULE_LICENSE("Dual BSD/GPL");
MODULE_VERSION(KIWARP_VERSION);
MODULE_ALIAS_RTNL_LINK("kiwarp_ip");
