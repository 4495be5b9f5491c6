/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Kernel version differences: network namespaces, socket addresses, IPv6. The build defines
 * KIW_HAS_.
 */
#ifndef KIP_COMPAT_NET_H
#define KIP_COMPAT_NET_H

#include <linux/refcount.h>
#include <linux/socket.h>
#include <net/addrconf.h>
#include <net/ipv6.h>
#include <net/ipv6_stubs.h>
#include <net/net_namespace.h>

#ifndef KIW_HAS_SOCKADDR_UNSIZED
/* Since 6.19 this is the type of an address whose size is passed along with it */
#define sockaddr_unsized sockaddr
#endif

/* Where IPv6 can be a module, its functions are reached through a table. 7.2 has no such table. */
#ifdef KIW_COMPAT_NO_IPV6_STUB
#define kip_compat_mc_join(sk, ifindex, addr) ipv6_sock_mc_join(sk, ifindex, addr)
#define kip_compat_mc_drop(sk, ifindex, addr) ipv6_sock_mc_drop(sk, ifindex, addr)
#else
#define kip_compat_mc_join(sk, ifindex, addr) ipv6_stub->ipv6_sock_mc_join(sk, ifindex, addr)
#define kip_compat_mc_drop(sk, ifindex, addr) ipv6_stub->ipv6_sock_mc_drop(sk, ifindex, addr)
#endif

/* Number of references to a network namespace; the field was renamed in 6.18 */
static inline unsigned int kip_compat_net_refs(const struct net *net)
{
#ifdef KIW_HAS_NS_REF
	return refcount_read(&net->ns.__ns_ref);
#else
	return refcount_read(&net->ns.count);
#endif
}

#endif /* KIP_COMPAT_NET_H */
