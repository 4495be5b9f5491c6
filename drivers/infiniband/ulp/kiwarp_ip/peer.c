// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The table of peers.
 *
 * Found under RCU, by whoever sends. Made by the first packet for a node, or by its
 * Request; removed by the interface's work when nothing was sent for long and there is no
 * connection. A sender that has found one which is removed meanwhile sees it by is_dead.
 */
#include "peer.h"

#include <linux/jhash.h>
#include <linux/slab.h>

#include "dev.h"
#include "proto/addr.h"
#include "proto/peer_fsm.h"

static u32 peer_hash(const u8 *lladdr)
{
	return jhash(lladdr + 1, KIP_ADDR_LEN - 1, 0);
}

/**
 * kip_peer_find() - look a peer up
 * @dev: the interface
 * @lladdr: its address; flags do not count
 *
 * Context: any, within a read-side critical section of RCU, as long as the peer is used.
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
 * kip_peer_get() - look a peer up, make it if there is none
 * @dev: the interface
 * @lladdr: its address, which is valid; flags do not count
 *
 * Context: any but hard interrupts, within a read-side critical section of RCU.
 * Return: the peer, or NULL when there is no memory or are too many.
 */
struct kip_peer *kip_peer_get(struct kip_dev *dev, const u8 *lladdr)
{
	struct kip_peer *peer = kip_peer_find(dev, lladdr), *other;

	if (peer || READ_ONCE(dev->nr_peers) >= KIP_MAX_PEERS)
		return peer;
	peer = kzalloc(sizeof(*peer), GFP_ATOMIC | __GFP_NOWARN);
	if (!peer)
		return NULL;
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
		return other;
	}
	return peer;
}

/**
 * kip_peer_wish() - there are packets for a peer, and no connection
 * @dev: the interface
 * @peer: the peer
 *
 * Context: any but hard interrupts; the peer's lock may be held.
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
 * kip_peer_count() - how many peers have one IP address
 * @dev: the interface
 * @lladdr: an address with that GID
 *
 * Context: process; the interface's work.
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
 * kip_peer_purge() - drop the packets that wait
 * @dev: the interface
 * @peer: its lock is held
 *
 * Context: any but hard interrupts.
 */
void kip_peer_purge(struct kip_dev *dev, struct kip_peer *peer)
{
	lockdep_assert_held(&peer->lock);
	__skb_queue_purge(&peer->queue);
	atomic_sub(peer->queue_bytes, &dev->queues_bytes);
	peer->queue_bytes = 0;
}

/**
 * kip_peer_remove() - forget a peer
 * @dev: the interface
 * @peer: it has no connection
 *
 * Context: process; the interface's work, or stop when it is idle.
 */
void kip_peer_remove(struct kip_dev *dev, struct kip_peer *peer)
{
	/* First, so that whoever finds it dead finds another one, or none, when he looks again */
	spin_lock_bh(&dev->lock);
	hash_del_rcu(&peer->node);
	dev->nr_peers--;
	spin_unlock_bh(&dev->lock);
	spin_lock_bh(&peer->lock);
	peer->is_dead = true;
	kip_peer_purge(dev, peer);
	spin_unlock_bh(&peer->lock);
	/* Nobody wishes anything for a dead one */
	spin_lock_bh(&dev->lock);
	list_del_init(&peer->wish_entry);
	spin_unlock_bh(&dev->lock);
	kfree_rcu(peer, rcu);
}
