// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Recognises most packets that are TCP segments of the interface's own connections.
 *
 * If the route to a peer leads through the interface itself, the TCP segments of the connection to
 * that peer arrive here. TCP usually sends them with its socket locked, and a software driver may
 * lock the same socket to post, so such a segment must not be posted. It is recognised by its
 * source address and ports, or by those of the socket that sent it, as a tunnel may have wrapped
 * the segment. One of the ports must be that of the interface, so segments to a peer that listens
 * on another port are not recognised. A segment from another socket, such as TCP's control socket,
 * or from none is not recognised inside a tunnel, in a later fragment, or behind IPv6 extension
 * headers.
 */
#include "loop.h"

#include <linux/ip.h>
#include <linux/ipv6.h>
#include <net/inet_sock.h>
#include <net/ip.h>

#include "proto/addr.h"
#include "proto/msg.h"
#include "sockaddr.h"

/**
 * struct loop_flow - where a TCP segment comes from
 * @from: source address
 * @sport: source port
 * @dport: destination port
 */
struct loop_flow {
	union kip_sockaddr from;
	__be16 sport;
	__be16 dport;
};

static bool loop_flow_of_sock(struct loop_flow *flow, const struct sock *sk)
{
	if (!sk || !sk_fullsock(sk) || sk->sk_protocol != IPPROTO_TCP)
		return false;
	flow->from.sa.sa_family = sk->sk_family;
	if (sk->sk_family == AF_INET)
		flow->from.v4.sin_addr.s_addr = sk->sk_rcv_saddr;
#if IS_ENABLED(CONFIG_IPV6)
	else if (sk->sk_family == AF_INET6)
		flow->from.v6.sin6_addr = sk->sk_v6_rcv_saddr;
#endif
	flow->sport = htons(sk->sk_num);
	flow->dport = sk->sk_dport;
	return true;
}

static bool loop_flow_of_ports(struct loop_flow *flow, const struct sk_buff *skb, int at)
{
	__be16 room[2];
	const __be16 *ports = skb_header_pointer(skb, at, sizeof(room), room);

	if (!ports)
		return false;
	flow->sport = ports[0];
	flow->dport = ports[1];
	return true;
}

/* Get the flow of the packet that follows the wire header. */
static bool loop_flow_of_packet(struct loop_flow *flow, const struct sk_buff *skb)
{
	const int at = sizeof(struct kip_wire_hdr);
	const struct ipv6hdr *v6;
	const struct iphdr *v4;
	struct ipv6hdr room6;
	struct iphdr room4;

	switch (kip_msg_type(skb->data)) {
	case ETH_P_IP:
		v4 = skb_header_pointer(skb, at, sizeof(room4), &room4);
		if (!v4 || v4->protocol != IPPROTO_TCP || v4->frag_off & htons(IP_OFFSET))
			return false;
		flow->from.v4.sin_family = AF_INET;
		flow->from.v4.sin_addr.s_addr = v4->saddr;
		return loop_flow_of_ports(flow, skb, at + v4->ihl * 4);
	case ETH_P_IPV6:
		v6 = skb_header_pointer(skb, at, sizeof(room6), &room6);
		if (!v6 || v6->nexthdr != IPPROTO_TCP)
			return false;
		flow->from.v6.sin6_family = AF_INET6;
		flow->from.v6.sin6_addr = v6->saddr;
		return loop_flow_of_ports(flow, skb, at + sizeof(room6));
	default:
		return false;
	}
}

static bool loop_flow_is_own(const struct loop_flow *flow, const u8 *own)
{
	const u16 port = kip_addr_qpn(own);
	union kip_sockaddr local;

	if (ntohs(flow->sport) != port && ntohs(flow->dport) != port)
		return false;
	kip_sockaddr_of(&local, own);
	return kip_sockaddr_same_ip(&flow->from, &local);
}

/**
 * kip_loop_is_own() - tell whether a packet is a segment of one of the interface's connections
 * @skb: packet, beginning with the wire header
 * @own: link-layer address of the interface
 *
 * Context: any.
 * Return: whether it is recognised as a TCP segment from the interface's address below, from or to
 * its port.
 */
bool kip_loop_is_own(const struct sk_buff *skb, const u8 *own)
{
	struct loop_flow flow = { };

	if (loop_flow_of_sock(&flow, skb->sk) && loop_flow_is_own(&flow, own))
		return true;
	flow = (struct loop_flow) { };
	return loop_flow_of_packet(&flow, skb) && loop_flow_is_own(&flow, own);
}
