// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Detection of network namespaces that only our cm_ids keep alive.
 *
 * An interface must not keep its network namespace alive: when the last process and the last
 * name of a namespace are gone, the namespace must be destroyed together with the interface.
 * But every cm_id holds a reference to the namespace it was created in. This file counts our
 * cm_ids per namespace. When a namespace has no references other than theirs, the interface
 * gives up its connections (control.c); that releases the namespace.
 *
 * No process is in such a namespace. Netlink can still look it up by its nsid, but only for the
 * time of a request; such a reference delays the end. We cannot end the cm_ids of other modules;
 * they keep the namespace alive as they would without us.
 */
#include "netns.h"

#include <linux/atomic.h>
#include <net/net_namespace.h>
#include <net/netns/generic.h>

#include "compat/net.h"

/**
 * struct kip_netns - what this module keeps per network namespace
 * @held: number of its cm_ids that were ever created there
 * @dropped: number of those that were destroyed
 */
struct kip_netns {
	atomic_t held;
	atomic_t dropped;
};

static unsigned int netns_id;

/**
 * kip_netns_hold() - count a cm_id that keeps a namespace alive
 * @net: the namespace
 *
 * Context: any.
 */
void kip_netns_hold(struct net *net)
{
	struct kip_netns *netns = net_generic(net, netns_id);

	/* The reference of the cm_id comes first; pairs with kip_netns_is_left() */
	smp_mb__before_atomic();
	atomic_inc(&netns->held);
}

/**
 * kip_netns_drop() - stop counting a cm_id that is about to drop its namespace
 * @net: the namespace; the cm_id still holds its reference
 *
 * Context: any.
 */
void kip_netns_drop(struct net *net)
{
	struct kip_netns *netns = net_generic(net, netns_id);

	/* Dropping the reference later is a release; pairs with kip_netns_is_left() */
	atomic_inc(&netns->dropped);
}

/**
 * kip_netns_is_left() - check whether only our cm_ids keep a namespace alive
 * @net: the namespace
 *
 * Cm_ids come and go meanwhile. If none has gone, there were at least @held - @dropped of them when
 * the references were read, each with a reference.
 *
 * Context: any.
 * Return: whether nothing else does; false for the initial namespace, or if that is not certain.
 */
bool kip_netns_is_left(const struct net *net)
{
	const struct kip_netns *netns = net_generic(net, netns_id);
	unsigned int dropped, held, refs;

	if (net_eq(net, &init_net))
		return false;
	dropped = atomic_read(&netns->dropped);
	/* In this order; pairs with kip_netns_hold() and kip_netns_drop() */
	smp_rmb();
	held = atomic_read(&netns->held);
	/* Likewise */
	smp_rmb();
	refs = kip_compat_net_refs(net);
	/* Likewise */
	smp_rmb();
	return refs <= held - dropped && dropped == (unsigned int)atomic_read(&netns->dropped);
}

static struct pernet_operations netns_ops = {
	.id = &netns_id,
	.size = sizeof(struct kip_netns),
};

/**
 * kip_netns_module_init() - register the per-namespace counters
 *
 * Context: process, may sleep.
 * Return: 0 or -errno.
 */
int kip_netns_module_init(void)
{
	return register_pernet_subsys(&netns_ops);
}

/**
 * kip_netns_module_exit() - unregister the per-namespace counters
 *
 * Context: process, may sleep; no cm_id is left.
 */
void kip_netns_module_exit(void)
{
	unregister_pernet_subsys(&netns_ops);
}
