// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Addresses of the underlay. A link-layer address corresponds to a socket address: its GID is
 * the IP address, and its QPN is the port.
 */
#include "sockaddr.h"

#include <linux/inet.h>
#include <linux/inetdevice.h>
#include <linux/netdevice.h>
#include <linux/rtnetlink.h>
#include <linux/string.h>
#include <net/addrconf.h>
#include <net/if_inet6.h>
#include <net/ipv6.h>

#include "proto/addr.h"

/**
 * kip_sockaddr_of() - convert a link-layer address to a socket address
 * @addr: socket address to write
 * @lladdr: address for which kip_addr_is_valid() is true
 *
 * Context: any.
 */
void kip_sockaddr_of(union kip_sockaddr *addr, const u8 *lladdr)
{
	memset(addr, 0, sizeof(*addr));
	if (kip_addr_is_ipv4(lladdr)) {
		addr->v4.sin_family = AF_INET;
		addr->v4.sin_addr.s_addr = kip_addr_ipv4(lladdr);
		addr->v4.sin_port = htons(kip_addr_qpn(lladdr));
	} else {
		addr->v6.sin6_family = AF_INET6;
		memcpy(&addr->v6.sin6_addr, lladdr + 4, sizeof(addr->v6.sin6_addr));
		addr->v6.sin6_port = htons(kip_addr_qpn(lladdr));
	}
}

/**
 * kip_sockaddr_lladdr() - convert a socket address to a link-layer address
 * @lladdr: %KIP_ADDR_LEN octets to write
 * @addr: socket address
 * @flags: flags of RFC 4755 3.1
 *
 * Context: any.
 * Return: whether the result is a valid address.
 */
bool kip_sockaddr_lladdr(u8 *lladdr, const struct sockaddr *addr, u8 flags)
{
	const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)addr;
	const struct sockaddr_in *v4 = (const struct sockaddr_in *)addr;
	u8 gid[16];

	switch (addr->sa_family) {
	case AF_INET:
		kip_addr_gid_of_ipv4(gid, v4->sin_addr.s_addr);
		kip_addr_make(lladdr, ntohs(v4->sin_port), gid, flags);
		break;
	case AF_INET6:
		kip_addr_make(lladdr, ntohs(v6->sin6_port), v6->sin6_addr.s6_addr, flags);
		break;
	default:
		memset(lladdr, 0, KIP_ADDR_LEN);
		return false;
	}
	return kip_addr_is_valid(lladdr);
}

/**
 * kip_sockaddr_len() - length of an address, for socket calls
 * @addr: address
 *
 * Context: any.
 * Return: bytes.
 */
int kip_sockaddr_len(const union kip_sockaddr *addr)
{
	return addr->sa.sa_family == AF_INET ? sizeof(addr->v4) : sizeof(addr->v6);
}

/**
 * kip_sockaddr_same_ip() - compare two IP addresses
 * @a: address
 * @b: another
 *
 * Context: any.
 * Return: whether family and address are equal, or neither is an IP address; ports are ignored.
 */
bool kip_sockaddr_same_ip(const union kip_sockaddr *a, const union kip_sockaddr *b)
{
	if (a->sa.sa_family != b->sa.sa_family)
		return false;
	if (a->sa.sa_family == AF_INET)
		return a->v4.sin_addr.s_addr == b->v4.sin_addr.s_addr;
	return a->sa.sa_family != AF_INET6 ||
	       ipv6_addr_equal(&a->v6.sin6_addr, &b->v6.sin6_addr);
}

/**
 * kip_sockaddr_is_multicast() - test for a multicast address
 * @addr: address
 *
 * Context: any.
 * Return: whether it is.
 */
bool kip_sockaddr_is_multicast(const union kip_sockaddr *addr)
{
	if (addr->sa.sa_family == AF_INET)
		return ipv4_is_multicast(addr->v4.sin_addr.s_addr);
	return addr->sa.sa_family == AF_INET6 && ipv6_addr_is_multicast(&addr->v6.sin6_addr);
}

/**
 * kip_sockaddr_parse() - parse an IP address
 * @addr: socket address to write
 * @text: one address, optionally followed by a newline; not an IPv4-mapped IPv6 one
 * @port: port to set
 *
 * Context: any.
 * Return: 0 or -EINVAL.
 */
int kip_sockaddr_parse(union kip_sockaddr *addr, const char *text, u16 port)
{
	const char *end;

	memset(addr, 0, sizeof(*addr));
	if (in4_pton(text, -1, (u8 *)&addr->v4.sin_addr.s_addr, '\n', &end) && strlen(end) <= 1) {
		addr->v4.sin_family = AF_INET;
		addr->v4.sin_port = htons(port);
		return 0;
	}
	memset(addr, 0, sizeof(*addr));
	if (in6_pton(text, -1, addr->v6.sin6_addr.s6_addr, '\n', &end) && strlen(end) <= 1 &&
	    !ipv6_addr_v4mapped(&addr->v6.sin6_addr)) {
		addr->v6.sin6_family = AF_INET6;
		addr->v6.sin6_port = htons(port);
		return 0;
	}
	memset(addr, 0, sizeof(*addr));
	return -EINVAL;
}

static void sockaddr_set_ipv4(union kip_sockaddr *addr, __be32 ip, u16 port)
{
	addr->v4 = (struct sockaddr_in) {
		.sin_family = AF_INET,
		.sin_addr.s_addr = ip,
		.sin_port = htons(port),
	};
}

static void sockaddr_set_ipv6(union kip_sockaddr *addr, const struct in6_addr *ip, u16 port)
{
	addr->v6 = (struct sockaddr_in6) {
		.sin6_family = AF_INET6,
		.sin6_addr = *ip,
		.sin6_port = htons(port),
	};
}

/* Whether a node can have this address: peers ignore one that has another */
static bool sockaddr_is_usable(const union kip_sockaddr *addr)
{
	u8 lladdr[KIP_ADDR_LEN];

	return kip_sockaddr_lladdr(lladdr, &addr->sa, 0);
}

/* Finds the first usable global IPv4 address that is not secondary */
static bool sockaddr_find_ipv4(union kip_sockaddr *addr, struct net_device *netdev, u16 port)
{
	struct in_device *in_dev = __in_dev_get_rtnl(netdev);
	const struct in_ifaddr *ifa;

	if (!in_dev)
		return false;
	in_dev_for_each_ifa_rtnl(ifa, in_dev) {
		if (ifa->ifa_flags & IFA_F_SECONDARY || ifa->ifa_scope > RT_SCOPE_UNIVERSE)
			continue;
		sockaddr_set_ipv4(addr, ifa->ifa_local, port);
		if (sockaddr_is_usable(addr))
			return true;
	}
	return false;
}

/* Finds the first usable global IPv6 address with all of the flags @with and none of @without */
static bool sockaddr_find_ipv6(union kip_sockaddr *addr, struct net_device *netdev, u16 port,
			       u32 with, u32 without)
{
	struct inet6_dev *idev = __in6_dev_get(netdev);
	const struct inet6_ifaddr *ifa;
	bool found = false;

	if (!idev)
		return false;
	read_lock_bh(&idev->lock);
	list_for_each_entry(ifa, &idev->addr_list, if_list) {
		if (ifa->scope != RT_SCOPE_UNIVERSE || (ifa->flags & with) != with ||
		    ifa->flags & without)
			continue;
		sockaddr_set_ipv6(addr, &ifa->addr, port);
		found = sockaddr_is_usable(addr);
		if (found)
			break;
	}
	read_unlock_bh(&idev->lock);
	return found;
}

static bool sockaddr_has_ipv4(struct net_device *netdev, __be32 addr)
{
	struct in_device *in_dev = __in_dev_get_rtnl(netdev);
	const struct in_ifaddr *ifa;

	if (!in_dev)
		return false;
	in_dev_for_each_ifa_rtnl(ifa, in_dev) {
		if (ifa->ifa_local == addr)
			return true;
	}
	return false;
}

static bool sockaddr_has_ipv6(struct net_device *netdev, const struct in6_addr *addr)
{
	struct inet6_dev *idev = __in6_dev_get(netdev);
	const struct inet6_ifaddr *ifa;
	bool found = false;

	if (!idev)
		return false;
	read_lock_bh(&idev->lock);
	list_for_each_entry(ifa, &idev->addr_list, if_list)
		found |= ipv6_addr_equal(&ifa->addr, addr) && !(ifa->flags & IFA_F_TENTATIVE);
	read_unlock_bh(&idev->lock);
	return found;
}

static bool sockaddr_is_of_netdev(const union kip_sockaddr *addr, struct net_device *netdev)
{
	switch (addr->sa.sa_family) {
	case AF_INET:
		return sockaddr_has_ipv4(netdev, addr->v4.sin_addr.s_addr);
	case AF_INET6:
		return sockaddr_has_ipv6(netdev, &addr->v6.sin6_addr);
	default:
		return false;
	}
}

/**
 * kip_sockaddr_of_netdev() - choose an address of the underlay
 * @addr: socket address to write; AF_UNSPEC if there is none
 * @netdev: the underlay
 * @port: port to set
 * @before: the address in use, which is kept as long as the underlay has it and, if it is an IPv6
 *	address, it is not tentative
 *
 * Otherwise chooses the first global IPv4 address that is not secondary, or else the first global
 * IPv6 address that is neither tentative, deprecated nor temporary. Addresses for which
 * kip_addr_is_valid() is false are not chosen.
 * Link-local addresses mean nothing to peers, because a link-layer address has no room for a
 * scope.
 *
 * Context: process; RTNL held.
 * Return: whether there is an address.
 */
bool kip_sockaddr_of_netdev(union kip_sockaddr *addr, struct net_device *netdev, u16 port,
			    const union kip_sockaddr *before)
{
	ASSERT_RTNL();
	if (sockaddr_is_of_netdev(before, netdev)) {
		*addr = *before;
		addr->v4.sin_port = htons(port);
		return true;
	}
	if (sockaddr_find_ipv4(addr, netdev, port) ||
	    sockaddr_find_ipv6(addr, netdev, port, 0,
			       IFA_F_TENTATIVE | IFA_F_DEPRECATED | IFA_F_TEMPORARY))
		return true;
	memset(addr, 0, sizeof(*addr));
	return false;
}

/**
 * kip_sockaddr_is_pending() - check whether the underlay may soon have an address
 * @netdev: the underlay
 * @port: its port
 *
 * The caller has to poll, as no notifier tells of the success of duplicate address detection.
 *
 * Context: process; RTNL held.
 * Return: whether the underlay is up and has a valid global IPv6 address that is tentative and has
 * not failed that detection.
 */
bool kip_sockaddr_is_pending(struct net_device *netdev, u16 port)
{
	union kip_sockaddr addr;

	ASSERT_RTNL();
	return netif_oper_up(netdev) &&
	       sockaddr_find_ipv6(&addr, netdev, port, IFA_F_TENTATIVE, IFA_F_DADFAILED);
}
