/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* The nodes that packets go to: RFC 4755 2.3, connections are kept per node. */
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

/* Packets that wait for a connection or for credit */
#define KIP_QUEUE_MAX		256
#define KIP_QUEUE_BYTES		(4U << 20)

/**
 * struct kip_peer - a node
 * @node: in the interface's table; RCU
 * @rcu: for its end
 * @lladdr: its address, flags zeroed
 * @wish_entry: in the interface's list; its lock
 * @lock: protects the next six, and the sending side of @conn
 * @state: one of enum kip_peer_state; written by the work, with @lock held
 * @is_dead: not in the table any more
 * @conn: its connection; the work writes it, with @lock held
 * @mtu: octets of the longest packet that its connection takes
 * @queue: packets that wait
 * @queue_bytes: octets of these
 * @used_at: when a packet was last sent to it, in jiffies
 * @deadline: when the time of the state is over, in jiffies; the work's
 * @has_deadline: whether it ever is; the work's
 * @tries: connections in a row that failed; the work's
 * @is_known: it has told @instance and @serial; the work's
 * @instance: of its last Request or Reply
 * @serial: likewise
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
void kip_peer_remove(struct kip_dev *dev, struct kip_peer *peer);
unsigned int kip_peer_count(struct kip_dev *dev, const u8 *lladdr);
void kip_peer_purge(struct kip_dev *dev, struct kip_peer *peer);

#endif /* KIP_PEER_H */
