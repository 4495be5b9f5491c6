// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The table of peers.
 *
 * Senders look up peers under RCU. A packet that may use a connection to a node, or an acceptable
 * Request from it, creates its peer if there is room. The interface's work item removes a peer in
 * the state NONE for which there has been no such packet for a while. Stop removes all. A sender
 * that finds a peer which is being removed either sees is_dead, or what it puts into the peer's
 * queue is dropped with that queue.
 */
#include "peer.h"

#include <linux/atomic.h>
#include <linux/jhash.h>
#include <linux/slab.h>

#include "dev.h"
#include "proto/addr.h"
#include "proto/peer_fsm.h"

/*
 * Peers of all interfaces whose underlay is outside of the initial user namespace. Root of another
 * user namespace can create any number of interfaces there, and no memory cgroup is charged for
 * peers and their attempts to connect, so the limit is common to all of them.
 */
static atomic_t foreign_peers;

/* Takes room for another peer; false: there is none */
static bool peer_take_room(struct kip_dev *dev)
{
	if (READ_ONCE(dev->nr_peers) >= KIP_MAX_PEERS)
		return false;
	if (!dev->is_foreign || atomic_inc_return(&foreign_peers) <= KIP_MAX_PEERS)
		return true;
	atomic_dec(&foreign_peers);
	return false;
}

static void peer_give_room(struct kip_dev *dev)
{
	if (dev->is_foreign)
		atomic_dec(&foreign_peers);
}

static u32 peer_hash(const u8 *lladdr)
{
	return jhash(lladdr + 1, KIP_ADDR_LEN - 1, 0);
}

/**
 * kip_peer_find() - look up a peer
 * @dev: the interface
 * @lladdr: its address; flags are ignored
 *
 * Context: any; in an RCU read-side critical section. Unless the interface's work item calls, which
 * removes peers, the section lasts as long as the peer is used.
 * Return: the peer, or NULL.
 */
struct kip_peer *kip_peer_find(struct kip_dev *dev, const u8 *lladdr)
{
	struct kip_peer *peer;

	hash_for_each_possible_rcu(dev->peers, peer, node, peer_hash(lladdr)) {
		if (kip_addr_same(peer->lladdr, lladdr))
			return peer;
	}
	return NULL;
}

/**
 * kip_peer_get() - look up a peer, or create it
 * @dev: the interface
 * @lladdr: its address, which is valid; flags are ignored
 *
 * Context: any with interrupts enabled, in an RCU read-side critical section.
 * Return: the peer, or NULL when there is no memory or there are too many peers.
 */
struct kip_peer *kip_peer_get(struct kip_dev *dev, const u8 *lladdr)
{
	struct kip_peer *peer = kip_peer_find(dev, lladdr), *other;

	if (peer || !peer_take_room(dev))
		return peer;
	peer = kzalloc(sizeof(*peer), GFP_ATOMIC | __GFP_NOWARN);
	if (!peer) {
		peer_give_room(dev);
		return NULL;
	}
	kip_addr_key(peer->lladdr, lladdr);
	INIT_LIST_HEAD(&peer->wish_entry);
	spin_lock_init(&peer->lock);
	skb_queue_head_init(&peer->queue);
	peer->state = KIP_PS_NONE;
	peer->used_at = jiffies;
	spin_lock_bh(&dev->lock);
	other = kip_peer_find(dev, lladdr);
	if (!other) {
		hash_add_rcu(dev->peers, &peer->node, peer_hash(lladdr));
		dev->nr_peers++;
	}
	spin_unlock_bh(&dev->lock);
	if (other) {
		kfree(peer);
		peer_give_room(dev);
		return other;
	}
	return peer;
}

/**
 * kip_peer_wish() - ask the interface's work item to connect to a peer
 * @dev: the interface
 * @peer: the peer
 *
 * Context: any with interrupts enabled; the peer's lock may be held.
 */
void kip_peer_wish(struct kip_dev *dev, struct kip_peer *peer)
{
	spin_lock_bh(&dev->lock);
	if (list_empty(&peer->wish_entry))
		list_add_tail(&peer->wish_entry, &dev->wishes);
	spin_unlock_bh(&dev->lock);
	mod_delayed_work(kip_wq, &dev->work, 0);
}

/**
 * kip_peer_count() - count the peers with the same IP address
 * @dev: the interface
 * @lladdr: link-layer address with this IP address, and any QPN
 *
 * Context: process; the interface's work item.
 * Return: their number.
 */
unsigned int kip_peer_count(struct kip_dev *dev, const u8 *lladdr)
{
	struct kip_peer *peer;
	unsigned int bucket;
	unsigned int nr = 0;

	rcu_read_lock();
	hash_for_each_rcu(dev->peers, bucket, peer, node)
		nr += kip_addr_same_gid(peer->lladdr, lladdr);
	rcu_read_unlock();
	return nr;
}

/**
 * kip_peer_purge() - drop and count all packets in a peer's queue
 * @dev: the interface
 * @peer: the peer; its lock is held
 *
 * Context: any with interrupts enabled.
 */
void kip_peer_purge(struct kip_dev *dev, struct kip_peer *peer)
{
	struct sk_buff *skb;

	lockdep_assert_held(&peer->lock);
	while ((skb = __skb_dequeue(&peer->queue))) {
		kip_count(dev, KIP_STAT_TX_NO_CONNECTION);
		DEV_STATS_INC(dev->netdev, tx_dropped);
		dev_kfree_skb_any(skb);
	}
	atomic_sub(peer->queue_bytes, &dev->queues_bytes);
	peer->queue_bytes = 0;
}

/**
 * kip_peer_detach() - make sure that nobody uses a peer any more
 * @dev: the interface
 * @peer: the peer; it has no connection; its lock is held
 *
 * Drops its packets. The caller then drops the lock and calls kip_peer_free().
 *
 * Context: process with bottom halves disabled; the interface's work item, or stop when that is
 * idle.
 */
void kip_peer_detach(struct kip_dev *dev, struct kip_peer *peer)
{
	lockdep_assert_held(&peer->lock);
	/* Before is_dead: a sender that sees is_dead must not find this peer again */
	spin_lock(&dev->lock);
	hash_del_rcu(&peer->node);
	dev->nr_peers--;
	spin_unlock(&dev->lock);
	peer->is_dead = true;
	kip_peer_purge(dev, peer);
}

/**
 * kip_peer_free() - free a peer after a grace period
 * @dev: the interface
 * @peer: detached
 *
 * Context: process; as kip_peer_detach().
 */
void kip_peer_free(struct kip_dev *dev, struct kip_peer *peer)
{
	/* Nothing calls kip_peer_wish() for a dead peer any more */
	spin_lock_bh(&dev->lock);
	list_del_init(&peer->wish_entry);
	spin_unlock_bh(&dev->lock);
	peer_give_room(dev);
	kfree_rcu(peer, rcu);
}
