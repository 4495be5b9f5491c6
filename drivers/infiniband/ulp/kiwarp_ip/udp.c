// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The datagram service: broadcast, multicast, address resolution, and unicast packets for
 * nodes without a connection.
 *
 * There are up to two sockets. The unicast socket is bound to the local address; it sends all
 * datagrams and receives those that are sent to it. The multicast socket is bound to the group's
 * address and receives what is sent to the group; it exists only if a group is joined. Work items
 * send and receive, so the socket locks do not nest in those of the sockets above the interface.
 *
 * Joining and leaving a group may require the RTNL. So open and stop do this, because they hold it.
 */
#include "udp.h"

#include <linux/atomic.h>
#include <linux/errno.h>
#include <linux/igmp.h>
#include <linux/net.h>
#include <linux/rtnetlink.h>
#include <linux/slab.h>
#include <linux/sockptr.h>
#include <net/addrconf.h>
#include <net/ipv6.h>
#include <net/sock.h>

#include "compat/net.h"
#include "dev.h"
#include "packet.h"
#include "peer.h"
#include "proto/addr.h"
#include "proto/msg.h"
#include "proto/peer_fsm.h"

#define QUEUE_MAX	256
/* Maximum number of datagrams received per run of the work item */
#define RX_BURST	64
/* Maximum number of packets sent per run of the work item, each to one node or to all */
#define TX_BURST	16
#define BUFFER		(sizeof(struct kip_wire_dgram) + KIP_DGRAM_MTU_MAX + 1)
/* Headroom that a packet needs to become a datagram */
#define TX_HEADROOM	(sizeof(struct kip_wire_dgram) - sizeof(struct kip_wire_hdr))

/**
 * struct udp_cb - control block of a packet in the queue
 * @dst: destination; AF_UNSPEC: all nodes
 */
struct udp_cb {
	union kip_sockaddr dst;
};

static struct udp_cb *udp_cb(struct sk_buff *skb)
{
	BUILD_BUG_ON(sizeof(struct udp_cb) > sizeof(skb->cb));
	return (struct udp_cb *)skb->cb;
}

/* Listed nodes */

/*
 * Listed nodes of all interfaces whose underlay is outside of the initial user namespace. Root of
 * another user namespace can create any number of interfaces there, and no memory cgroup is charged
 * for what datagrams add, so the limit is common to all of them.
 */
static atomic_t foreign_listed;

/* Takes room for another node; false: there is none */
static bool udp_listed_take_room(struct kip_dev *dev)
{
	struct kip_udp *udp = &dev->udp;

	lockdep_assert_held(&udp->lock);
	if (udp->nr_listed >= KIP_LISTED_MAX)
		return false;
	if (dev->is_foreign && atomic_inc_return(&foreign_listed) > KIP_FOREIGN_LISTED_MAX) {
		atomic_dec(&foreign_listed);
		return false;
	}
	udp->nr_listed++;
	return true;
}

/* Removes a node from the list, unless it is NULL */
static void udp_listed_drop(struct kip_dev *dev, struct kip_listed *listed)
{
	if (!listed)
		return;
	list_del(&listed->entry);
	dev->udp.nr_listed--;
	if (dev->is_foreign)
		atomic_dec(&foreign_listed);
	kfree(listed);
}

static struct kip_listed *udp_listed_find(struct kip_udp *udp, const union kip_sockaddr *addr)
{
	struct kip_listed *listed;

	lockdep_assert_held(&udp->lock);
	list_for_each_entry(listed, &udp->listed, entry) {
		if (kip_sockaddr_same_ip(&listed->addr, addr))
			return listed;
	}
	return NULL;
}

static bool udp_listed_is_connected(struct kip_dev *dev, const struct kip_listed *listed)
{
	const struct kip_peer *peer;
	u8 lladdr[KIP_ADDR_LEN];
	bool is_up;

	kip_sockaddr_lladdr(lladdr, &listed->addr.sa, 0);
	rcu_read_lock();
	peer = kip_peer_find(dev, lladdr);
	is_up = peer && READ_ONCE(peer->state) == KIP_PS_UP;
	rcu_read_unlock();
	return is_up;
}

/*
 * A datagram's source may be forged, so a learned node must be heard from, or be connected.
 * Return: whether this one was forgotten.
 */
static bool udp_listed_lapse(struct kip_dev *dev, struct kip_listed *listed)
{
	const unsigned long time = (unsigned long)READ_ONCE(dev->settings.learn_s) * HZ;

	lockdep_assert_held(&dev->udp.lock);
	if (!listed->is_learned || time_before(jiffies, listed->heard_at + time))
		return false;
	if (time && udp_listed_is_connected(dev, listed)) {
		listed->heard_at = jiffies;
		return false;
	}
	udp_listed_drop(dev, listed);
	return true;
}

static void udp_listed_expire(struct kip_dev *dev)
{
	struct kip_listed *listed, *next;

	lockdep_assert_held(&dev->udp.lock);
	list_for_each_entry_safe(listed, next, &dev->udp.listed, entry)
		udp_listed_lapse(dev, listed);
}

/**
 * kip_udp_expire() - forget learned nodes that were not heard from for too long
 * @dev: the interface
 *
 * A node to which there is a connection is kept, unless learning is off.
 *
 * Context: any with interrupts enabled.
 */
void kip_udp_expire(struct kip_dev *dev)
{
	spin_lock_bh(&dev->udp.lock);
	udp_listed_expire(dev);
	spin_unlock_bh(&dev->udp.lock);
}

/* Removes the learned node with the oldest heard_at, if there is a learned one */
static void udp_listed_drop_learned(struct kip_dev *dev)
{
	struct kip_listed *listed, *oldest = NULL;
	struct kip_udp *udp = &dev->udp;

	lockdep_assert_held(&udp->lock);
	list_for_each_entry(listed, &udp->listed, entry) {
		if (listed->is_learned &&
		    (!oldest || time_before(listed->heard_at, oldest->heard_at)))
			oldest = listed;
	}
	udp_listed_drop(dev, oldest);
}

static void udp_listed_forget_learned(struct kip_dev *dev)
{
	struct kip_udp *udp = &dev->udp;
	struct kip_listed *listed, *next;

	lockdep_assert_held(&udp->lock);
	list_for_each_entry_safe(listed, next, &udp->listed, entry) {
		if (listed->is_learned)
			udp_listed_drop(dev, listed);
	}
}

/* Takes room for another node, for one of the administrator's if need be that of a learned one */
static bool udp_listed_make_room(struct kip_dev *dev, bool is_learned)
{
	if (udp_listed_take_room(dev))
		return true;
	if (is_learned)
		return false;
	udp_listed_drop_learned(dev);
	return udp_listed_take_room(dev);
}

/**
 * kip_udp_list() - add a node to the list
 * @dev: the interface
 * @addr: where it listens
 * @is_learned: added because of a datagram; an entry made by the administrator never expires
 *
 * From now on the node gets copies of broadcast and multicast packets, if its address is of the
 * family of the local one. When the list is full, the administrator's entry takes the place of a
 * learned one, if there is one.
 *
 * Context: any with interrupts enabled.
 * Return: 0, -EEXIST when it is already listed (0 if the administrator lists a learned one),
 * -EBUSY when it would be learned although a group is joined, -ENOSPC when there are too many, here
 * or of all interfaces of other user namespaces, or -ENOMEM.
 */
int kip_udp_list(struct kip_dev *dev, const union kip_sockaddr *addr, bool is_learned)
{
	struct kip_listed *listed = kzalloc(sizeof(*listed), GFP_ATOMIC);
	struct kip_udp *udp = &dev->udp;
	struct kip_listed *known;
	int ret = 0;

	if (!listed)
		return -ENOMEM;
	listed->addr = *addr;
	listed->is_learned = is_learned;
	listed->heard_at = jiffies;
	spin_lock_bh(&udp->lock);
	udp_listed_expire(dev);
	known = udp_listed_find(udp, addr);
	if (known) {
		ret = -EEXIST;
		if (known->is_learned && !is_learned) {
			known->addr = *addr;
			known->is_learned = false;
			ret = 0;
		}
	} else if (is_learned && udp->has_group) {
		ret = -EBUSY;
	} else if (udp_listed_make_room(dev, is_learned)) {
		listed->number = ++udp->last_number;
		list_add_tail(&listed->entry, &udp->listed);
		listed = NULL;
	} else {
		ret = -ENOSPC;
	}
	spin_unlock_bh(&udp->lock);
	kfree(listed);
	return ret;
}

/**
 * kip_udp_unlist() - remove a node from the list
 * @dev: the interface
 * @addr: its address
 *
 * Context: any with interrupts enabled.
 * Return: 0, or -ENOENT when it is not listed.
 */
int kip_udp_unlist(struct kip_dev *dev, const union kip_sockaddr *addr)
{
	struct kip_udp *udp = &dev->udp;
	struct kip_listed *listed;
	bool is_known;

	spin_lock_bh(&udp->lock);
	listed = udp_listed_find(udp, addr);
	is_known = listed;
	udp_listed_drop(dev, listed);
	spin_unlock_bh(&udp->lock);
	return is_known ? 0 : -ENOENT;
}

/**
 * kip_udp_new_port() - use the interface's new port for listed nodes
 * @dev: the interface; its port has changed, and its sockets are closed
 *
 * A node that the administrator lists gets the port of the interface. A learned one has the port
 * from which it was heard, which will hardly remain, so it is forgotten until it is heard again.
 *
 * Context: process; RTNL held.
 */
void kip_udp_new_port(struct kip_dev *dev)
{
	struct kip_udp *udp = &dev->udp;
	struct kip_listed *listed;

	spin_lock_bh(&udp->lock);
	udp_listed_forget_learned(dev);
	/* In both address families the port directly follows the family */
	list_for_each_entry(listed, &udp->listed, entry)
		listed->addr.v4.sin_port = htons(dev->settings.port);
	spin_unlock_bh(&udp->lock);
}

/**
 * kip_udp_is_listed() - check whether a node that was heard from is listed
 * @dev: the interface
 * @addr: its address
 *
 * Restarts the time after which the node is forgotten if it was learned, and uses the port from
 * which it was heard last. If its time has passed, it is forgotten.
 *
 * Context: any with interrupts enabled.
 * Return: whether it is listed.
 */
bool kip_udp_is_listed(struct kip_dev *dev, const union kip_sockaddr *addr)
{
	struct kip_udp *udp = &dev->udp;
	struct kip_listed *listed;

	spin_lock_bh(&udp->lock);
	listed = udp_listed_find(udp, addr);
	if (listed && udp_listed_lapse(dev, listed))
		listed = NULL;
	if (listed) {
		listed->heard_at = jiffies;
		if (listed->is_learned)
			listed->addr = *addr;
	}
	spin_unlock_bh(&udp->lock);
	return listed;
}

/* Sending */

static bool udp_transmit(struct kip_dev *dev, struct sk_buff *skb, const union kip_sockaddr *dst)
{
	union kip_sockaddr to = *dst;
	struct msghdr msg = {
		.msg_name = &to,
		.msg_namelen = kip_sockaddr_len(&to),
		.msg_flags = MSG_DONTWAIT,
	};
	struct kvec kvec = { .iov_base = skb->data, .iov_len = skb->len };

	if (kernel_sendmsg(dev->udp.unicast.sock, &msg, &kvec, 1, skb->len) < 0) {
		kip_count(dev, KIP_STAT_TX_UDP_ERRORS);
		return false;
	}
	kip_count(dev, KIP_STAT_TX_DATAGRAMS);
	return true;
}

static u64 udp_last_number(struct kip_udp *udp)
{
	u64 number;

	spin_lock_bh(&udp->lock);
	number = udp->last_number;
	spin_unlock_bh(&udp->lock);
	return number;
}

/*
 * Copies the addresses of the next nodes, @max at most, with numbers after @from up to @last, and
 * advances @from. Nodes may come and go between two calls. Returns how many it has copied.
 */
static unsigned int udp_listed_after(struct kip_udp *udp, union kip_sockaddr *addrs,
				     unsigned int max, u64 *from, u64 last)
{
	struct kip_listed *listed;
	unsigned int nr = 0;

	spin_lock_bh(&udp->lock);
	list_for_each_entry(listed, &udp->listed, entry) {
		if (listed->number <= *from)
			continue;
		if (listed->number > last)
			break;
		*from = listed->number;
		addrs[nr++] = listed->addr;
		if (nr == max)
			break;
	}
	spin_unlock_bh(&udp->lock);
	return nr;
}

/* Returns false if UDP has accepted none of the datagrams */
static bool udp_transmit_to_all(struct kip_dev *dev, struct sk_buff *skb)
{
	struct kip_udp *udp = &dev->udp;
	unsigned int i, nr, nr_to = 0, nr_sent = 0;
	const u64 last = udp_last_number(udp);
	union kip_sockaddr addrs[8];
	u64 from = 0;

	kip_udp_expire(dev);
	if (udp->multicast.sock) {
		nr_sent += udp_transmit(dev, skb, &udp->joined);
		nr_to++;
	}
	do {
		nr = udp_listed_after(udp, addrs, ARRAY_SIZE(addrs), &from, last);
		for (i = 0; i < nr; i++) {
			if (addrs[i].sa.sa_family != dev->local.sa.sa_family)
				continue;
			nr_sent += udp_transmit(dev, skb, &addrs[i]);
			nr_to++;
		}
		cond_resched();
	} while (nr == ARRAY_SIZE(addrs));
	if (!nr_to)
		kip_count(dev, KIP_STAT_TX_NO_GROUP);
	return nr_sent || !nr_to;
}

static void udp_tx_work(struct work_struct *work)
{
	struct kip_dev *dev = container_of(work, struct kip_dev, udp.work);
	unsigned int left = TX_BURST;
	struct sk_buff *skb;

	while (left-- && (skb = skb_dequeue(&dev->udp.queue))) {
		const union kip_sockaddr dst = udp_cb(skb)->dst;
		const u32 len = skb->len - sizeof(struct kip_wire_dgram);
		bool is_sent = false;

		if (skb_linearize(skb))
			kip_count(dev, KIP_STAT_TX_NO_MEMORY);
		else if (dst.sa.sa_family == AF_UNSPEC)
			is_sent = udp_transmit_to_all(dev, skb);
		else
			is_sent = udp_transmit(dev, skb, &dst);
		if (is_sent) {
			local_bh_disable();
			dev_sw_netstats_tx_add(dev->netdev, 1, len);
			local_bh_enable();
		} else {
			DEV_STATS_INC(dev->netdev, tx_dropped);
		}
		consume_skb(skb);
		cond_resched();
	}
	/* A sender that fills the queue must not occupy the workqueue that all interfaces share */
	if (!skb_queue_empty(&dev->udp.queue))
		queue_work(kip_wq, &dev->udp.work);
}

static void udp_drop(struct kip_dev *dev, struct sk_buff *skb, enum kip_stat why)
{
	kip_count(dev, why);
	DEV_STATS_INC(dev->netdev, tx_dropped);
	kfree_skb(skb);
}

/**
 * kip_udp_send() - send a packet as a datagram
 * @dev: the interface
 * @skb: starts at its 4-octet header and is short enough; consumed
 * @lladdr: a valid address; NULL: all nodes
 *
 * Context: any with interrupts enabled.
 */
void kip_udp_send(struct kip_dev *dev, struct sk_buff *skb, const u8 *lladdr)
{
	const u16 type = kip_msg_type(skb->data);

	if (skb_queue_len_lockless(&dev->udp.queue) >= QUEUE_MAX) {
		udp_drop(dev, skb, KIP_STAT_TX_QUEUE_FULL);
		return;
	}
	if (skb_cow_head(skb, TX_HEADROOM)) {
		udp_drop(dev, skb, KIP_STAT_TX_NO_MEMORY);
		return;
	}
	skb_push(skb, TX_HEADROOM);
	kip_dgram_build((struct kip_wire_dgram *)skb->data, type, dev->settings.pkey,
			dev->settings.qkey, !lladdr);
	skb_dst_drop(skb);
	nf_reset_ct(skb);
	if (lladdr)
		kip_sockaddr_of(&udp_cb(skb)->dst, lladdr);
	else
		memset(udp_cb(skb), 0, sizeof(struct udp_cb));
	skb_queue_tail(&dev->udp.queue, skb);
	queue_work(kip_wq, &dev->udp.work);
}

/* Receiving */

static bool udp_sender_is_good(struct kip_dev *dev, const union kip_sockaddr *from)
{
	struct kip_udp *udp = &dev->udp;
	u8 lladdr[KIP_ADDR_LEN];
	bool is_listed;

	if (kip_sockaddr_same_ip(from, &dev->local)) {
		kip_count(dev, KIP_STAT_RX_UDP_OWN);
		return false;
	}
	is_listed = kip_udp_is_listed(dev, from);
	if (!kip_sockaddr_lladdr(lladdr, &from->sa, 0) ||
	    (READ_ONCE(dev->settings.has_listed_only) && !is_listed)) {
		kip_count(dev, KIP_STAT_RX_UDP_SENDER);
		return false;
	}
	/* With a group, its nodes receive the datagrams for all nodes anyway */
	if (!is_listed && dev->settings.learn_s && !READ_ONCE(udp->has_group) &&
	    !kip_udp_list(dev, from, true))
		kip_count(dev, KIP_STAT_PEERS_LEARNED);
	return true;
}

static bool udp_is_good(struct kip_dev *dev, const u8 *data, unsigned int len, bool *to_group)
{
	static const enum kip_stat why[] = {
		[KIP_DGRAM_SHORT]	= KIP_STAT_RX_UDP_SHORT,
		[KIP_DGRAM_BAD_VERSION]	= KIP_STAT_RX_UDP_VERSION,
		[KIP_DGRAM_BAD_PKEY]	= KIP_STAT_RX_UDP_PKEY,
		[KIP_DGRAM_BAD_QKEY]	= KIP_STAT_RX_UDP_QKEY,
		[KIP_DGRAM_BAD_TYPE]	= KIP_STAT_RX_UDP_TYPE,
	};
	enum kip_dgram kind;
	u16 type;

	if (len == BUFFER) {
		kip_count(dev, KIP_STAT_RX_UDP_TOO_LONG);
		return false;
	}
	kind = kip_dgram_parse(data, len, dev->settings.pkey, dev->settings.qkey, &type, to_group);
	if (kind != KIP_DGRAM_OK) {
		kip_count(dev, why[kind]);
		return false;
	}
	return true;
}

static void udp_deliver(struct kip_dev *dev, const u8 *data, unsigned int len, bool to_group)
{
	struct sk_buff *skb;

	data += TX_HEADROOM;
	len -= TX_HEADROOM;
	skb = alloc_skb(KIP_PACKET_HEADROOM + len, GFP_KERNEL);
	if (!skb) {
		kip_count(dev, KIP_STAT_RX_NO_MEMORY);
		return;
	}
	skb_reserve(skb, KIP_PACKET_HEADROOM);
	skb_put_data(skb, data, len);
	/* PACKET_MULTICAST keeps the stack from forwarding unicasts that all nodes got */
	skb->pkt_type = to_group ? PACKET_MULTICAST : PACKET_HOST;
	kip_count(dev, KIP_STAT_RX_DATAGRAMS);
	local_bh_disable();
	kip_packet_prepare(dev, skb);
	netif_rx(skb);
	local_bh_enable();
}

static bool udp_receive_one(struct kip_port *port)
{
	struct kip_dev *dev = port->dev;
	union kip_sockaddr from = { };
	struct msghdr msg = { .msg_name = &from };
	struct kvec kvec = { .iov_base = port->buffer, .iov_len = BUFFER };
	bool to_group;
	int len;

	len = kernel_recvmsg(port->sock, &msg, &kvec, 1, BUFFER, MSG_DONTWAIT);
	if (len == -EAGAIN)
		return false;
	/* Any other error says nothing about the datagrams that follow */
	if (len >= 0 && udp_is_good(dev, port->buffer, len, &to_group) &&
	    udp_sender_is_good(dev, &from))
		udp_deliver(dev, port->buffer, len, to_group);
	return true;
}

static void udp_rx_work(struct work_struct *work)
{
	struct kip_port *port = container_of(work, struct kip_port, work);
	unsigned int i;

	for (i = 0; i < RX_BURST; i++) {
		if (!udp_receive_one(port))
			return;
	}
	queue_work(kip_wq, &port->work);
}

static void udp_data_ready(struct sock *sk)
{
	struct kip_port *port;

	read_lock_bh(&sk->sk_callback_lock);
	port = sk->sk_user_data;
	if (port)
		queue_work(kip_wq, &port->work);
	read_unlock_bh(&sk->sk_callback_lock);
}

/* Sockets */

static int udp_set(struct socket *sock, int level, int name, int value)
{
	return sock->ops->setsockopt(sock, level, name, KERNEL_SOCKPTR(&value), sizeof(value));
}

/* Multicasts leave through the underlay and are not looped back */
static int udp_set_multicast(struct kip_dev *dev, struct socket *sock)
{
	struct ip_mreqn mreq = { .imr_ifindex = dev->lower->ifindex };
	int ret;

	if (dev->local.sa.sa_family == AF_INET) {
		ret = udp_set(sock, SOL_IP, IP_MULTICAST_LOOP, 0);
		if (ret)
			return ret;
		return sock->ops->setsockopt(sock, SOL_IP, IP_MULTICAST_IF,
					     KERNEL_SOCKPTR(&mreq), sizeof(mreq));
	}
	ret = udp_set(sock, SOL_IPV6, IPV6_MULTICAST_LOOP, 0);
	return ret ? ret : udp_set(sock, SOL_IPV6, IPV6_MULTICAST_IF, dev->lower->ifindex);
}

static void udp_watch_port(struct kip_port *port, bool is_watched)
{
	struct sock *sk = port->sock->sk;

	write_lock_bh(&sk->sk_callback_lock);
	if (is_watched) {
		port->saved_ready = sk->sk_data_ready;
		sk->sk_data_ready = udp_data_ready;
		sk->sk_user_data = port;
	} else if (sk->sk_user_data) {
		sk->sk_data_ready = port->saved_ready;
		sk->sk_user_data = NULL;
	}
	write_unlock_bh(&sk->sk_callback_lock);
}

/*
 * Datagrams to a node whose link-layer address is not known wait in the underlay's queue for it,
 * which may be as long as a usual send buffer. Some such nodes must not stop datagrams to all
 * others. No memory cgroup is charged for them, and a container can make any number of interfaces.
 */
static void udp_set_sndbuf(const struct kip_dev *dev, struct sock *sk)
{
	lock_sock(sk);
	WRITE_ONCE(sk->sk_sndbuf, dev->is_foreign ? KIP_FOREIGN_SNDBUF : KIP_QUEUES_BYTES);
	sk->sk_userlocks |= SOCK_SNDBUF_LOCK;
	release_sock(sk);
}

static int udp_open_port(struct kip_port *port, const union kip_sockaddr *addr)
{
	struct kip_dev *dev = port->dev;
	union kip_sockaddr at = *addr;
	int ret;

	port->buffer = kmalloc(BUFFER, GFP_KERNEL);
	if (!port->buffer)
		return -ENOMEM;
	ret = sock_create_kern(dev->net, at.sa.sa_family, SOCK_DGRAM, IPPROTO_UDP, &port->sock);
	if (ret)
		return ret;
	udp_set_sndbuf(dev, port->sock->sk);
	/* Allow fragmentation: the MTU of RFC 4391 7 may be larger than that of the path */
	if (at.sa.sa_family == AF_INET)
		ret = udp_set(port->sock, SOL_IP, IP_MTU_DISCOVER, IP_PMTUDISC_DONT);
	if (!ret)
		ret = udp_set_multicast(dev, port->sock);
	/* Use the underlay only: no other interface, and in particular not this one */
	if (!ret)
		ret = sock_bindtoindex(port->sock->sk, dev->lower->ifindex, true);
	if (ret)
		return ret;
	/* Datagrams arrive from the bind on */
	udp_watch_port(port, true);
	return kernel_bind(port->sock, (struct sockaddr_unsized *)&at, kip_sockaddr_len(&at));
}

static void udp_close_port(struct kip_port *port)
{
	if (port->sock) {
		udp_watch_port(port, false);
		cancel_work_sync(&port->work);
		sock_release(port->sock);
	}
	port->sock = NULL;
	kfree(port->buffer);
	port->buffer = NULL;
}

static int udp_change_group(struct kip_dev *dev, bool is_joined)
{
	const union kip_sockaddr *group = &dev->udp.joined;
	struct sock *sk = dev->udp.multicast.sock->sk;
	struct ip_mreqn mreq = {
		.imr_multiaddr = group->v4.sin_addr,
		.imr_ifindex = dev->lower->ifindex,
	};
	int ret = -EAFNOSUPPORT;

	ASSERT_RTNL();
	lock_sock(sk);
	if (group->sa.sa_family == AF_INET) {
		ret = is_joined ? ip_mc_join_group(sk, &mreq) : ip_mc_leave_group(sk, &mreq);
	} else if (IS_ENABLED(CONFIG_IPV6)) {
		const struct in6_addr *addr = &group->v6.sin6_addr;
		const int index = dev->lower->ifindex;

		ret = is_joined ? kip_compat_mc_join(sk, index, addr) :
				  kip_compat_mc_drop(sk, index, addr);
	}
	release_sock(sk);
	return ret;
}

static unsigned int udp_count_foreign(struct kip_dev *dev)
{
	struct kip_udp *udp = &dev->udp;
	struct kip_listed *listed;
	unsigned int nr = 0;

	lockdep_assert_held(&udp->lock);
	list_for_each_entry(listed, &udp->listed, entry)
		nr += listed->addr.sa.sa_family != dev->local.sa.sa_family;
	return nr;
}

/**
 * kip_udp_check_families() - log a group or peers that are not used
 * @dev: the interface, which is about to start; its local address is set
 *
 * The group and the peers may have been set when the underlay had an address of another family, or
 * none. They stay, because that address may come back. The owner of a container can restart its
 * interface at will, but must not flood the log.
 *
 * Context: process; RTNL held.
 */
void kip_udp_check_families(struct kip_dev *dev)
{
	const int group = dev->udp.group.sa.sa_family;
	unsigned int foreign;

	spin_lock_bh(&dev->udp.lock);
	foreign = udp_count_foreign(dev);
	spin_unlock_bh(&dev->udp.lock);
	if (group != AF_UNSPEC && group != dev->local.sa.sa_family && net_ratelimit())
		netdev_info(dev->netdev,
			    "the group is of another address family than the address of %s: not joined\n",
			    dev->lower->name);
	if (foreign && net_ratelimit())
		netdev_info(dev->netdev,
			    "%u peers are of another address family than the address of %s: not reached\n",
			    foreign, dev->lower->name);
}

static int udp_open_group(struct kip_dev *dev)
{
	struct kip_udp *udp = &dev->udp;
	int ret;

	ret = udp_open_port(&udp->multicast, &udp->joined);
	if (!ret)
		ret = udp_change_group(dev, true);
	if (ret) {
		udp_close_port(&udp->multicast);
		return ret;
	}
	/* Datagrams arrive already. The sender of one that is being checked must not be learned. */
	spin_lock_bh(&udp->lock);
	WRITE_ONCE(udp->has_group, true);
	udp_listed_forget_learned(dev);
	spin_unlock_bh(&udp->lock);
	return 0;
}

/**
 * kip_udp_open() - start the datagram service
 * @dev: the interface; its local address is set, and that of the group if there is one
 *
 * A group of another address family than the local address is not joined. When the group is joined,
 * learned nodes are forgotten, because the group's nodes get what is sent to all anyway.
 *
 * Context: process, may sleep; RTNL held.
 * Return: 0 or -errno; after an error nothing is open.
 */
int kip_udp_open(struct kip_dev *dev)
{
	struct kip_udp *udp = &dev->udp;
	int ret;

	ret = udp_open_port(&udp->unicast, &dev->local);
	if (!ret && udp->group.sa.sa_family == dev->local.sa.sa_family) {
		/* The setting may have changed by the time the group is left */
		udp->joined = udp->group;
		ret = udp_open_group(dev);
	}
	if (ret)
		udp_close_port(&udp->unicast);
	return ret;
}

/**
 * kip_udp_close() - stop the datagram service
 * @dev: the interface; nothing is sent any more
 *
 * Context: process, may sleep; RTNL held.
 */
void kip_udp_close(struct kip_dev *dev)
{
	struct kip_udp *udp = &dev->udp;

	cancel_work_sync(&udp->work);
	skb_queue_purge(&udp->queue);
	if (udp->multicast.sock)
		udp_change_group(dev, false);
	udp_close_port(&udp->multicast);
	udp_close_port(&udp->unicast);
	spin_lock_bh(&udp->lock);
	WRITE_ONCE(udp->has_group, false);
	spin_unlock_bh(&udp->lock);
}

/**
 * kip_udp_init() - initialise the datagram service
 * @dev: the interface, which has not been up yet
 *
 * Context: process.
 */
void kip_udp_init(struct kip_dev *dev)
{
	struct kip_udp *udp = &dev->udp;

	udp->unicast.dev = dev;
	udp->multicast.dev = dev;
	INIT_WORK(&udp->unicast.work, udp_rx_work);
	INIT_WORK(&udp->multicast.work, udp_rx_work);
	spin_lock_init(&udp->lock);
	INIT_LIST_HEAD(&udp->listed);
	skb_queue_head_init(&udp->queue);
	INIT_WORK(&udp->work, udp_tx_work);
}

/**
 * kip_udp_uninit() - forget all listed nodes
 * @dev: the interface, which is being freed
 *
 * Context: process.
 */
void kip_udp_uninit(struct kip_dev *dev)
{
	struct kip_listed *listed, *next;

	list_for_each_entry_safe(listed, next, &dev->udp.listed, entry)
		udp_listed_drop(dev, listed);
}
