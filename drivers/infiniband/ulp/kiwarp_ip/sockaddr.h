/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Addresses of the underlay, as socket addresses and as link-layer addresses. */
#ifndef KIP_SOCKADDR_H
#define KIP_SOCKADDR_H

#include <linux/in.h>
#include <linux/in6.h>
#include <linux/socket.h>
#include <linux/types.h>

struct net_device;

/**
 * union kip_sockaddr - IPv4 or IPv6 address and port
 * @sa: family; AF_UNSPEC when there is no address
 * @v4: for AF_INET
 * @v6: for AF_INET6
 */
union kip_sockaddr {
	struct sockaddr sa;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

void kip_sockaddr_of(union kip_sockaddr *addr, const u8 *lladdr);
bool kip_sockaddr_lladdr(u8 *lladdr, const struct sockaddr *addr, u8 flags);
int kip_sockaddr_len(const union kip_sockaddr *addr);
bool kip_sockaddr_same_ip(const union kip_sockaddr *a, const union kip_sockaddr *b);
bool kip_sockaddr_is_multicast(const union kip_sockaddr *addr);
int kip_sockaddr_parse(union kip_sockaddr *addr, const char *text, u16 port);
bool kip_sockaddr_of_netdev(union kip_sockaddr *addr, struct net_device *netdev, u16 port,
			    const union kip_sockaddr *before);
bool kip_sockaddr_is_pending(struct net_device *netdev, u16 port);

#endif /* KIP_SOCKADDR_H */
