/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* The datagram service: stands in for UD queue pairs and multicast, over UDP. */
#ifndef KIP_UDP_H
#define KIP_UDP_H

#include <linux/list.h>
#include <linux/skbuff.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>

#include "sockaddr.h"

struct kip_dev;
struct socket;

#define KIP_LISTED_MAX	1024
/* Of all interfaces whose underlay is outside of the initial user namespace */
#define KIP_FOREIGN_LISTED_MAX	4096

/**
 * struct kip_port - one socket of the datagram service
 * @dev: the interface
 * @sock: NULL when it is closed
 * @saved_ready: original sk_data_ready
 * @work: work item that receives datagrams
 * @buffer: room for one datagram
 */
struct kip_port {
	struct kip_dev *dev;
	struct socket *sock;
	void (*saved_ready)(struct sock *sk);
	struct work_struct work;
	u8 *buffer;
};

/**
 * struct kip_listed - a node to which broadcast and multicast packets are copied, if its address is
 *	of the family of the local one
 * @entry: entry in the list
 * @addr: where it listens
 * @number: greater than those of all nodes that were listed before it
 * @is_learned: added by a datagram, and not listed by the administrator
 * @heard_at: when the node was added, last looked up by kip_udp_is_listed(), or last found to be
 *	connected, in jiffies; used for learned nodes
 */
struct kip_listed {
	struct list_head entry;
	union kip_sockaddr addr;
	u64 number;
	bool is_learned;
	unsigned long heard_at;
};

/**
 * struct kip_udp - the datagram service of an interface
 * @unicast: socket bound to the local address; it sends all datagrams
 * @multicast: socket bound to the group's address
 * @group: address of the group, AF_UNSPEC when there is none; written under RTNL
 * @joined: the group that @multicast has joined
 * @has_group: a group is joined, so nodes are not learned; written under @lock
 * @lock: protects @listed, @nr_listed and @last_number
 * @listed: the listed nodes, in the order of their numbers
 * @nr_listed: number of these
 * @last_number: the greatest number that a node has got
 * @queue: packets to be sent
 * @work: work item that sends them
 */
struct kip_udp {
	struct kip_port unicast;
	struct kip_port multicast;
	union kip_sockaddr group;
	union kip_sockaddr joined;
	bool has_group;
	spinlock_t lock;
	struct list_head listed;
	unsigned int nr_listed;
	u64 last_number;
	struct sk_buff_head queue;
	struct work_struct work;
};

void kip_udp_init(struct kip_dev *dev);
void kip_udp_uninit(struct kip_dev *dev);
void kip_udp_check_families(struct kip_dev *dev);
int kip_udp_open(struct kip_dev *dev);
void kip_udp_close(struct kip_dev *dev);
void kip_udp_send(struct kip_dev *dev, struct sk_buff *skb, const u8 *lladdr);
int kip_udp_list(struct kip_dev *dev, const union kip_sockaddr *addr, bool is_learned);
int kip_udp_unlist(struct kip_dev *dev, const union kip_sockaddr *addr);
void kip_udp_expire(struct kip_dev *dev);
void kip_udp_new_port(struct kip_dev *dev);
bool kip_udp_is_listed(struct kip_dev *dev, const union kip_sockaddr *addr);

#endif /* KIP_UDP_H */
