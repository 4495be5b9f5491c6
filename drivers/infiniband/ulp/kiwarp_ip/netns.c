// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Network namespaces that nobody uses but us.
 *
 * An interface must not keep its namespace: when the last process and the last name of it
 * have gone, the namespace goes, and the interface with it. But each cm_id of rdma_cm
 * keeps the namespace that it was made in. So they are counted here; when a namespace has
 * no more references than cm_ids of ours, these are given up, and all else follows.
 *
 * Nobody can find such a namespace, so its references do not become more again. Those of
 * other modules' cm_ids are not ours to end, and keep it as they would without us.
 */
#include "netns.h"

#include <linux/atomic.h>
#include <net/net_namespace.h>
#include <net/netns/generic.h>

#include "compat/net.h"

/**
 * struct kip_netns - of each network namespace
 * @ids: cm_ids of this module in it
 */
struct kip_netns {
	atomic_t ids;
};

static unsigned int netns_id;

/**
 * kip_netns_hold() - a cm_id keeps a namespace from now on
 * @net: the namespace
 *
 * Context: any.
 */
void kip_netns_hold(struct net *net)
{
	struct kip_netns *netns = net_generic(net, netns_id);

	atomic_inc(&netns->ids);
}

/**
 * kip_netns_drop() - a cm_id is about to let go of a namespace
 * @net: the namespace, which the cm_id still keeps
 *
 * Context: any.
 */
void kip_netns_drop(struct net *net)
{
	struct kip_netns *netns = net_generic(net, netns_id);

	atomic_dec(&netns->ids);
}

/**
 * kip_netns_is_left() - do only cm_ids of this module keep a namespace
 * @net: the namespace
 *
 * Context: any.
 * Return: whether it is so.
 */
bool kip_netns_is_left(const struct net *net)
{
	const struct kip_netns *netns = net_generic(net, netns_id);

	if (net_eq(net, &init_net))
		return false;
	return kip_compat_net_refs(net) <= (unsigned int)atomic_read(&netns->ids);
}

static struct pernet_operations netns_ops = {
	.id = &netns_id,
	.size = sizeof(struct kip_netns),
};

/**
 * kip_netns_module_init() - begin to count
 *
 * Context: process, may sleep.
 * Return: 0 or -errno.
 */
int kip_netns_module_init(void)
{
	return register_pernet_subsys(&netns_ops);
}

/**
 * kip_netns_module_exit() - count no more
 *
 * Context: process, may sleep; no cm_id is left.
 */
void kip_netns_module_exit(void)
{
	unregister_pernet_subsys(&netns_ops);
}
