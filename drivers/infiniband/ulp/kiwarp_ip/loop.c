// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Recognises most packets that are TCP segments of the interface's own connections.
 *
 * If the route to a peer leads through the interface itself, the TCP segments of the connection to
 * that peer arrive here. To post such a segment would send it through the connection to which it
 * belongs, which makes further segments, and so on. It is recognised by its addresses and ports, or
 * by those of the socket that sent it, as a tunnel may have wrapped the segment. It comes from the
 * interface's address below, and either one of its ports is that of the interface, or it goes to a
 * node to which there is a connection, as that node may use another port. The port mapper may have
 * chosen both ports, and nobody here knows these. So of a socket of the kernel's own, which has no
 * file, every segment to the address of such a node counts. A segment from another socket, such as
 * TCP's control socket, or from none is not recognised inside a tunnel, in a later fragment, or
 * behind IPv6 extension headers, nor with ports of the port mapper.
 *
 * Owns: the table of these nodes, common to all interfaces. A connection is in it until it is
 * freed, because TCP also sends when the interface has given the connection up.
 */
#include "loop.h"

#include <linux/hashtable.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/jhash.h>
#include <linux/net.h>
#include <linux/rculist.h>
#include <linux/spinlock.h>
#include <net/inet_sock.h>
#include <net/ip.h>

#include "proto/addr.h"
#include "proto/msg.h"
#include "sockaddr.h"

/* Far ends of connections; read under RCU */
static DEFINE_HASHTABLE(loop_ends, 8);
static DEFINE_SPINLOCK(loop_lock);

/**
 * struct loop_flow - addresses and ports of a TCP segment
 * @from: source address
 * @to: destination address
 * @sport: source port
 * @dport: destination port
 */
struct loop_flow {
	union kip_sockaddr from;
	union kip_sockaddr to;
	__be16 sport;
	__be16 dport;
};

/* By the GID: the ports of a node may differ from that of its link-layer address */
static u32 loop_hash(const u8 *lladdr)
{
	return jhash(lladdr + KIP_ADDR_LEN - sizeof(struct in6_addr), sizeof(struct in6_addr), 0);
}

/**
 * kip_loop_add() - recognise segments to a node from now on
 * @end: zeroed
 * @net: network namespace of the connection
 * @lladdr: link-layer address of the node
 *
 * Context: process.
 */
void kip_loop_add(struct kip_loop_end *end, const struct net *net, const u8 *lladdr)
{
	end->net = net;
	kip_addr_key(end->lladdr, lladdr);
	spin_lock_bh(&loop_lock);
	hash_add_rcu(loop_ends, &end->node, loop_hash(end->lladdr));
	spin_unlock_bh(&loop_lock);
}

/**
 * kip_loop_del() - undo kip_loop_add()
 * @end: freed after a grace period at the earliest; if it was never added, nothing happens
 *
 * Context: process.
 */
void kip_loop_del(struct kip_loop_end *end)
{
	spin_lock_bh(&loop_lock);
	hash_del_rcu(&end->node);
	spin_unlock_bh(&loop_lock);
}

static bool loop_is_end(const struct net *net, const u8 *lladdr, bool any_port)
{
	const struct kip_loop_end *end;
	bool found = false;

	rcu_read_lock();
	hash_for_each_possible_rcu(loop_ends, end, node, loop_hash(lladdr)) {
		found = end->net == net && kip_addr_same_gid(end->lladdr, lladdr) &&
			(any_port || kip_addr_same(end->lladdr, lladdr));
		if (found)
			break;
	}
	rcu_read_unlock();
	return found;
}

/* A process's socket has a file. A struct socket is freed after a grace period. */
static bool loop_is_of_kernel(const struct sock *sk)
{
	const struct socket *sock;
	bool ret;

	rcu_read_lock();
	sock = READ_ONCE(sk->sk_socket);
	ret = sock && !READ_ONCE(sock->file);
	rcu_read_unlock();
	return ret;
}

static bool loop_flow_of_sock(struct loop_flow *flow, const struct sock *sk)
{
	if (!sk || !sk_fullsock(sk) || sk->sk_protocol != IPPROTO_TCP)
		return false;
	flow->from.sa.sa_family = sk->sk_family;
	flow->to.sa.sa_family = sk->sk_family;
	if (sk->sk_family == AF_INET) {
		flow->from.v4.sin_addr.s_addr = sk->sk_rcv_saddr;
		flow->to.v4.sin_addr.s_addr = sk->sk_daddr;
	}
#if IS_ENABLED(CONFIG_IPV6)
	if (sk->sk_family == AF_INET6) {
		flow->from.v6.sin6_addr = sk->sk_v6_rcv_saddr;
		flow->to.v6.sin6_addr = sk->sk_v6_daddr;
	}
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
		flow->to.v4.sin_family = AF_INET;
		flow->to.v4.sin_addr.s_addr = v4->daddr;
		return loop_flow_of_ports(flow, skb, at + v4->ihl * 4);
	case ETH_P_IPV6:
		v6 = skb_header_pointer(skb, at, sizeof(room6), &room6);
		if (!v6 || v6->nexthdr != IPPROTO_TCP)
			return false;
		flow->from.v6.sin6_family = AF_INET6;
		flow->from.v6.sin6_addr = v6->saddr;
		flow->to.v6.sin6_family = AF_INET6;
		flow->to.v6.sin6_addr = v6->daddr;
		return loop_flow_of_ports(flow, skb, at + sizeof(room6));
	default:
		return false;
	}
}

static bool loop_flow_is_own(struct loop_flow *flow, const u8 *own, const struct net *net,
			     bool any_port)
{
	const u16 port = kip_addr_qpn(own);
	union kip_sockaddr local;
	u8 lladdr[KIP_ADDR_LEN];

	kip_sockaddr_of(&local, own);
	if (!kip_sockaddr_same_ip(&flow->from, &local))
		return false;
	if (ntohs(flow->sport) == port || ntohs(flow->dport) == port)
		return true;
	/* In both address families the port directly follows the family */
	flow->to.v4.sin_port = flow->dport;
	return kip_sockaddr_lladdr(lladdr, &flow->to.sa, 0) &&
	       loop_is_end(net, lladdr, any_port);
}

/**
 * kip_loop_is_own() - tell whether a packet is a segment of one of the interface's connections
 * @skb: packet, beginning with the wire header
 * @own: link-layer address of the interface
 * @net: network namespace of the underlay
 *
 * Context: any with interrupts enabled.
 * Return: whether it is recognised as a TCP segment from the interface's address below, either from
 * or to its port, or to a node for which kip_loop_add() was called, on any port if the kernel's own
 * socket has sent it.
 */
bool kip_loop_is_own(const struct sk_buff *skb, const u8 *own, const struct net *net)
{
	struct loop_flow flow = { };

	if (loop_flow_of_sock(&flow, skb->sk) &&
	    loop_flow_is_own(&flow, own, net, loop_is_of_kernel(skb->sk)))
		return true;
	flow = (struct loop_flow) { };
	return loop_flow_of_packet(&flow, skb) && loop_flow_is_own(&flow, own, net, false);
}
