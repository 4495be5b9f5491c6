/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Kernel version differences: network namespaces. The build defines KIW_KERNEL_SINCE. */
#ifndef KIP_COMPAT_NET_H
#define KIP_COMPAT_NET_H

#include <linux/refcount.h>
#include <net/net_namespace.h>

/* Number of references to a network namespace; the field was renamed in 6.18 */
static inline unsigned int kip_compat_net_refs(const struct net *net)
{
#if KIW_KERNEL_SINCE(6, 18, 0)
	return refcount_read(&net->ns.__ns_ref);
#else
	return refcount_read(&net->ns.count);
#endif
}

#endif /* KIP_COMPAT_NET_H */
