/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Peers: nodes that may be connected, with at most one connection each. */
#ifndef KIP_PEER_H
#define KIP_PEER_H

#include <linux/list.h>
#include <linux/rcupdate.h>
#include <linux/skbuff.h>
#include <linux/spinlock.h>
#include <linux/types.h>

#include "proto/wire.h"

struct kip_conn;
struct kip_dev;

/* Limits of a peer's queue of packets that wait to be sent */
#define KIP_QUEUE_MAX		256
#define KIP_QUEUE_BYTES		(4U << 20)

/**
 * struct kip_peer - a node that packets are sent to, or that has sent a Request
 * @node: entry in the interface's table; RCU
 * @rcu: frees the peer after a grace period
 * @lladdr: its link-layer address, flags zeroed
 * @wish_entry: entry in the interface's list of wishes; the interface's lock
 * @lock: protects the next six fields, and the sending side of @conn
 * @state: one of enum kip_peer_state; the work item changes it, with @lock held
 * @is_dead: removed from the table
 * @conn: its connection; the work item writes it, or stop when that is idle, with @lock held
 * @mtu: length in bytes of the longest packet that its connection takes
 * @queue: packets waiting for a connection, for credit or for a free slot
 * @queue_bytes: bytes in @queue
 * @used_at: when there last was a packet for it that may use a connection, or when it was created,
 *	in jiffies
 * @deadline: when the state times out, in jiffies; work item only
 * @has_deadline: the state has a timeout; work item only
 * @tries: times that it entered BACKOFF since its last connection came up; the work item writes it
 * @is_known: @instance and @serial are known; work item only
 * @instance: from the last of its Requests that got its resources, or of its Replies that was used
 * @serial: from the same message
 */
struct kip_peer {
	struct hlist_node node;
	struct rcu_head rcu;
	u8 lladdr[KIP_ADDR_LEN];
	struct list_head wish_entry;

	spinlock_t lock;
	u8 state;
	bool is_dead;
	struct kip_conn *conn;
	u32 mtu;
	struct sk_buff_head queue;
	unsigned int queue_bytes;

	unsigned long used_at;
	unsigned long deadline;
	bool has_deadline;
	unsigned int tries;
	bool is_known;
	u32 instance;
	u32 serial;
};

struct kip_peer *kip_peer_find(struct kip_dev *dev, const u8 *lladdr);
struct kip_peer *kip_peer_get(struct kip_dev *dev, const u8 *lladdr);
void kip_peer_wish(struct kip_dev *dev, struct kip_peer *peer);
void kip_peer_detach(struct kip_dev *dev, struct kip_peer *peer);
void kip_peer_free(struct kip_dev *dev, struct kip_peer *peer);
unsigned int kip_peer_count(struct kip_dev *dev, const u8 *lladdr);
void kip_peer_purge(struct kip_dev *dev, struct kip_peer *peer);

#endif /* KIP_PEER_H */
