// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Packets on their way out.
 *
 * ndo_start_xmit finds the peer and puts the packet into the peer's queue. From there
 * kip_tx_run() posts as many Sends as there are credits and free slots. It runs again
 * when either grows: after each batch of completions. So a slow peer fills its own queue
 * and stops nobody else. The queue is bounded; what is beyond is dropped. A packet belongs
 * to its socket until its Send has completed, which is what holds a local sender back.
 *
 * Everything below kip_tx_xmit() runs with the peer's lock held.
 */
#include "tx.h"

#include <linux/slab.h>

#include "conn.h"
#include "dev.h"
#include "peer.h"
#include "proto/addr.h"
#include "proto/msg.h"
#include "proto/peer_fsm.h"
#include "too_big.h"
#include "udp.h"

/* Octets that kip_msg_way() wants to see, behind the header */
#define WAY_OCTETS	41
/* Packets in one call of the driver, and how many of them have one completion */
#define CHAIN_MAX	16
#define SIGNAL_EVERY	8
/* Failures after which senders of long packets are told, whose routes remember it */
#define TELL_AFTER	3

static void tx_drop(struct kip_dev *dev, struct sk_buff *skb, enum kip_stat why)
{
	kip_count(dev, why);
	DEV_STATS_INC(dev->netdev, tx_dropped);
	dev_kfree_skb_any(skb);
}

/* The IP packet's length; the header is in front of it */
static u32 tx_len(const struct sk_buff *skb)
{
	return skb->len - sizeof(struct kip_wire_hdr);
}

static void tx_tell_too_big(struct kip_dev *dev, struct sk_buff *skb, u32 mtu)
{
	skb_pull(skb, sizeof(struct kip_wire_hdr));
	kip_too_big(dev, skb, mtu);
}

static void tx_datagram(struct kip_dev *dev, struct sk_buff *skb, const u8 *lladdr)
{
	if (tx_len(skb) > dev->settings.dgram_mtu)
		tx_tell_too_big(dev, skb, dev->settings.dgram_mtu);
	else
		kip_udp_send(dev, skb, lladdr);
}

/* --- mapping and posting ---------------------------------------------------------- */

static void tx_unmap(struct kip_conn *conn, struct kip_tx_slot *slot)
{
	struct ib_device *device = conn->id->device;
	unsigned int i = 0;

	if (slot->nr_sge && skb_headlen(slot->skb)) {
		ib_dma_unmap_single(device, slot->sge[0].addr, slot->sge[0].length, DMA_TO_DEVICE);
		i = 1;
	}
	for (; i < slot->nr_sge; i++)
		ib_dma_unmap_page(device, slot->sge[i].addr, slot->sge[i].length, DMA_TO_DEVICE);
	slot->nr_sge = 0;
}

static bool tx_add_sge(struct kip_conn *conn, struct kip_tx_slot *slot, u64 addr, u32 len)
{
	if (ib_dma_mapping_error(conn->id->device, addr))
		return false;
	slot->sge[slot->nr_sge++] = (struct ib_sge) {
		.addr = addr,
		.length = len,
		.lkey = conn->pd->local_dma_lkey,
	};
	return true;
}

static bool tx_map(struct kip_conn *conn, struct kip_tx_slot *slot)
{
	struct ib_device *device = conn->id->device;
	struct sk_buff *skb = slot->skb;
	unsigned int i;
	u64 addr;

	slot->nr_sge = 0;
	if (skb_headlen(skb)) {
		addr = ib_dma_map_single(device, skb->data, skb_headlen(skb), DMA_TO_DEVICE);
		if (!tx_add_sge(conn, slot, addr, skb_headlen(skb)))
			return false;
	}
	for (i = 0; i < skb_shinfo(skb)->nr_frags; i++) {
		const skb_frag_t *frag = &skb_shinfo(skb)->frags[i];

		addr = ib_dma_map_page(device, skb_frag_page(frag), skb_frag_off(frag),
				       skb_frag_size(frag), DMA_TO_DEVICE);
		if (!tx_add_sge(conn, slot, addr, skb_frag_size(frag))) {
			tx_unmap(conn, slot);
			return false;
		}
	}
	return true;
}

/* What cannot be gathered by the device is copied together */
static bool tx_is_mappable(struct kip_dev *dev, struct kip_conn *conn, struct sk_buff *skb)
{
	if (!skb_has_frag_list(skb) && skb_shinfo(skb)->nr_frags + 1 <= conn->max_sge)
		return true;
	kip_count(dev, KIP_STAT_TX_LINEARIZED);
	return !skb_linearize(skb);
}

/* What was not posted goes with the connection */
static bool tx_post(struct kip_conn *conn, const struct ib_send_wr *wr)
{
	if (!ib_post_send(conn->id->qp, wr, NULL))
		return true;
	kip_conn_note(conn, KIP_CE_FAULT);
	conn->is_up = false;
	return false;
}

/* Takes the next slot for a packet, which is dropped if that is not possible */
static struct kip_tx_slot *tx_fill_slot(struct kip_dev *dev, struct kip_conn *conn,
					struct sk_buff *skb)
{
	struct kip_tx_slot *slot = &conn->tx[conn->tx_head % KIP_TX_RING];

	if (!tx_is_mappable(dev, conn, skb)) {
		tx_drop(dev, skb, KIP_STAT_TX_NO_MEMORY);
		return NULL;
	}
	slot->skb = skb;
	if (!tx_map(conn, slot)) {
		slot->skb = NULL;
		tx_drop(dev, skb, KIP_STAT_TX_NO_MEMORY);
		return NULL;
	}
	slot->wr = (struct ib_send_wr) {
		.wr_cqe = &slot->cqe,
		.sg_list = slot->sge,
		.num_sge = slot->nr_sge,
		.opcode = IB_WR_SEND,
	};
	skb_dst_drop(skb);
	nf_reset_ct(skb);
	conn->tx_head++;
	kip_credit_send(&conn->credit);
	kip_count(dev, KIP_STAT_TX_MESSAGES);
	dev_sw_netstats_tx_add(dev->netdev, 1, tx_len(skb));
	return slot;
}

static bool tx_has_room(const struct kip_conn *conn)
{
	return kip_credit_left(&conn->credit) && conn->tx_head - conn->tx_tail < KIP_TX_RING;
}

static void tx_run_control(struct kip_dev *dev, struct kip_conn *conn)
{
	struct ib_device *device = conn->id->device;
	struct kip_tx_control *control;
	struct ib_send_wr wr;
	struct ib_sge sge;
	u32 value;
	u8 op;

	for (control = conn->control; control < conn->control + KIP_TX_CONTROL; control++) {
		if (control->is_busy)
			continue;
		op = kip_credit_next(&conn->credit, &value);
		if (!op)
			return;
		ib_dma_sync_single_for_cpu(device, control->dma, sizeof(control->wire),
					   DMA_TO_DEVICE);
		kip_control_build(&control->wire, op, value);
		ib_dma_sync_single_for_device(device, control->dma, sizeof(control->wire),
					      DMA_TO_DEVICE);
		sge = (struct ib_sge) {
			.addr = control->dma,
			.length = sizeof(control->wire),
			.lkey = conn->pd->local_dma_lkey,
		};
		wr = (struct ib_send_wr) {
			.wr_cqe = &control->cqe,
			.sg_list = &sge,
			.num_sge = 1,
			.opcode = IB_WR_SEND,
			.send_flags = IB_SEND_SIGNALED,
		};
		if (!tx_post(conn, &wr))
			return;
		control->is_busy = true;
		kip_count(dev, KIP_STAT_TX_CONTROL);
	}
}

static struct sk_buff *tx_dequeue(struct kip_dev *dev, struct kip_peer *peer)
{
	struct sk_buff *skb = __skb_dequeue(&peer->queue);

	peer->queue_bytes -= skb->len;
	atomic_sub(skb->len, &dev->queues_bytes);
	return skb;
}

/*
 * Posts a chain of packets. Its last Send is signalled, and so is every SIGNAL_EVERYth: their
 * completions stand for those before them.
 */
static void tx_post_chain(struct kip_dev *dev, struct kip_peer *peer)
{
	struct kip_conn *conn = peer->conn;
	struct kip_tx_slot *slot, *first = NULL, *last = NULL;
	struct sk_buff *skb;
	unsigned int nr = 0;

	while (nr < CHAIN_MAX && !skb_queue_empty(&peer->queue) && tx_has_room(conn)) {
		skb = tx_dequeue(dev, peer);
		if (tx_len(skb) > peer->mtu) {
			tx_tell_too_big(dev, skb, peer->mtu);
			continue;
		}
		slot = tx_fill_slot(dev, conn, skb);
		if (!slot)
			continue;
		if (++nr % SIGNAL_EVERY == 0)
			slot->wr.send_flags = IB_SEND_SIGNALED;
		if (last)
			last->wr.next = &slot->wr;
		else
			first = slot;
		last = slot;
	}
	if (!first)
		return;
	last->wr.send_flags = IB_SEND_SIGNALED;
	conn->sent_at = jiffies;
	conn->data_at = jiffies;
	tx_post(conn, &first->wr);
}

static bool tx_may_send(const struct kip_conn *conn)
{
	/* RFC 5044 7.1.2: the responder does not send before it has received */
	return conn && conn->is_up && (conn->role == KIP_INITIATOR || conn->has_heard);
}

/**
 * kip_tx_run() - send what can be sent now
 * @dev: the interface
 * @peer: its lock is held
 *
 * Control messages that are owed go first.
 *
 * Context: softirq, or process with bottom halves disabled.
 */
void kip_tx_run(struct kip_dev *dev, struct kip_peer *peer)
{
	struct kip_conn *conn = peer->conn;

	lockdep_assert_held(&peer->lock);
	if (!tx_may_send(conn))
		return;
	this_cpu_write(*dev->is_posting, true);
	tx_run_control(dev, conn);
	while (conn->is_up && !skb_queue_empty(&peer->queue) && tx_has_room(conn))
		tx_post_chain(dev, peer);
	this_cpu_write(*dev->is_posting, false);
	if (skb_queue_empty(&peer->queue) || kip_credit_left(&conn->credit)) {
		conn->is_blocked = false;
	} else if (!conn->is_blocked) {
		conn->is_blocked = true;
		conn->blocked_at = jiffies;
		kip_count(dev, KIP_STAT_TX_NO_CREDIT);
	}
}

/**
 * kip_tx_done() - a Send has completed, and all before it
 * @conn: the connection; its peer's lock is held
 * @wc: its completion, a good one
 * @sent: gets the packets, for the caller to free
 *
 * Context: softirq.
 */
void kip_tx_done(struct kip_conn *conn, const struct ib_wc *wc, struct sk_buff_head *sent)
{
	struct kip_tx_control *control;
	struct kip_tx_slot *last, *slot;

	control = container_of(wc->wr_cqe, struct kip_tx_control, cqe);
	if (control >= conn->control && control < conn->control + KIP_TX_CONTROL) {
		control->is_busy = false;
		return;
	}
	last = container_of(wc->wr_cqe, struct kip_tx_slot, cqe);
	do {
		slot = &conn->tx[conn->tx_tail % KIP_TX_RING];
		tx_unmap(conn, slot);
		__skb_queue_tail(sent, slot->skb);
		slot->skb = NULL;
		conn->tx_tail++;
	} while (slot != last);
}

/**
 * kip_tx_datagrams() - there will be no connection now for what waits for one
 * @dev: the interface
 * @peer: whose lock is not held
 *
 * Short packets leave as datagrams. Senders of longer ones are told only when it has been so
 * for a while: their routes would remember the small MTU for minutes.
 *
 * Context: process.
 */
void kip_tx_datagrams(struct kip_dev *dev, struct kip_peer *peer)
{
	struct sk_buff_head queue;
	struct sk_buff *skb;

	__skb_queue_head_init(&queue);
	spin_lock_bh(&peer->lock);
	skb_queue_splice_init(&peer->queue, &queue);
	atomic_sub(peer->queue_bytes, &dev->queues_bytes);
	peer->queue_bytes = 0;
	spin_unlock_bh(&peer->lock);
	local_bh_disable();
	while ((skb = __skb_dequeue(&queue))) {
		if (tx_len(skb) > dev->settings.dgram_mtu && peer->tries < TELL_AFTER)
			tx_drop(dev, skb, KIP_STAT_TX_TOO_LONG);
		else
			tx_datagram(dev, skb, peer->lladdr);
	}
	local_bh_enable();
}

/* --- ndo_start_xmit ---------------------------------------------------------------- */

static void tx_enqueue(struct kip_dev *dev, struct kip_peer *peer, struct sk_buff *skb)
{
	if (skb_queue_len(&peer->queue) >= KIP_QUEUE_MAX ||
	    peer->queue_bytes + skb->len > KIP_QUEUE_BYTES ||
	    atomic_read(&dev->queues_bytes) + skb->len > KIP_QUEUES_BYTES) {
		tx_drop(dev, skb, KIP_STAT_TX_QUEUE_FULL);
		return;
	}
	skb_dst_force(skb);
	peer->queue_bytes += skb->len;
	atomic_add(skb->len, &dev->queues_bytes);
	__skb_queue_tail(&peer->queue, skb);
}

/* Returns false when the packet has to go by datagram */
static bool tx_by_connection(struct kip_dev *dev, struct kip_peer *peer, struct sk_buff *skb)
{
	lockdep_assert_held(&peer->lock);
	peer->used_at = jiffies;
	if (peer->state == KIP_PS_UP) {
		if (tx_len(skb) > peer->mtu) {
			tx_tell_too_big(dev, skb, peer->mtu);
			return true;
		}
		tx_enqueue(dev, peer, skb);
		kip_tx_run(dev, peer);
		return true;
	}
	if (kip_peer_state_waits(peer->state)) {
		tx_enqueue(dev, peer, skb);
		if (peer->state == KIP_PS_NONE)
			kip_peer_wish(dev, peer);
		return true;
	}
	if (tx_len(skb) > dev->settings.dgram_mtu && peer->tries < TELL_AFTER) {
		tx_drop(dev, skb, KIP_STAT_TX_TOO_LONG);
		return true;
	}
	return false;
}

/* Return: whether the peer's connection took the packet; a peer that is being removed takes none */
static bool tx_by_peer(struct kip_dev *dev, struct sk_buff *skb, const u8 *lladdr)
{
	struct kip_peer *peer;
	bool is_dead, done;

	/* The next look at the table finds or makes another peer. */
	while ((peer = kip_peer_get(dev, lladdr))) {
		spin_lock_bh(&peer->lock);
		is_dead = peer->is_dead;
		done = !is_dead && tx_by_connection(dev, peer, skb);
		spin_unlock_bh(&peer->lock);
		if (!is_dead)
			return done;
	}
	kip_count(dev, KIP_STAT_TX_NO_PEER);
	return false;
}

static void tx_unicast(struct kip_dev *dev, struct sk_buff *skb, const u8 *lladdr)
{
	bool done;

	rcu_read_lock();
	done = tx_by_peer(dev, skb, lladdr);
	rcu_read_unlock();
	if (!done)
		tx_datagram(dev, skb, lladdr);
}

static void tx_route(struct kip_dev *dev, struct sk_buff *skb, const u8 *lladdr)
{
	const unsigned int hdr = sizeof(struct kip_wire_hdr);
	enum kip_way way;

	/* What follows is looked at only if it is there; short packets are no ND */
	pskb_may_pull(skb, min(skb->len, hdr + WAY_OCTETS));
	way = kip_msg_way(kip_msg_type(skb->data), skb->data + hdr, skb_headlen(skb) - hdr);
	if (way == KIP_WAY_NONE)
		tx_drop(dev, skb, KIP_STAT_TX_BAD_TYPE);
	else if (kip_addr_is_multicast(lladdr))
		tx_datagram(dev, skb, NULL);
	else if (!kip_addr_is_valid(lladdr) || kip_addr_same(lladdr, dev->netdev->dev_addr))
		tx_drop(dev, skb, KIP_STAT_TX_BAD_ADDRESS);
	else if (way == KIP_WAY_DATAGRAM || !dev->settings.is_connected ||
		 !kip_addr_has_rc(lladdr))
		tx_datagram(dev, skb, lladdr);
	else
		tx_unicast(dev, skb, lladdr);
}

/**
 * kip_tx_xmit() - ndo_start_xmit
 * @skb: destination, header, packet
 * @netdev: the interface
 *
 * Context: softirq, or process with bottom halves disabled; the transmit queue's lock held.
 * Return: NETDEV_TX_OK; the packet is taken in any case.
 */
netdev_tx_t kip_tx_xmit(struct sk_buff *skb, struct net_device *netdev)
{
	struct kip_dev *dev = netdev_priv(netdev);
	const struct kip_wire_hdr *hdr;
	u8 lladdr[KIP_ADDR_LEN];

	/*
	 * What a post sends comes back here if the way to the peer leads through this very
	 * interface. The peer's lock is held then.
	 */
	if (this_cpu_read(*dev->is_posting)) {
		tx_drop(dev, skb, KIP_STAT_TX_LOOP);
		return NETDEV_TX_OK;
	}
	if (skb->len <= KIP_HARD_LEN || !pskb_may_pull(skb, KIP_HARD_LEN)) {
		tx_drop(dev, skb, KIP_STAT_TX_BAD_ADDRESS);
		return NETDEV_TX_OK;
	}
	memcpy(lladdr, skb->data, KIP_ADDR_LEN);
	skb_pull(skb, KIP_ADDR_LEN);
	hdr = (const struct kip_wire_hdr *)skb->data;
	/* RFC 4391 6: 0 when sent. A packet socket can write what it likes. */
	if (hdr->reserved)
		tx_drop(dev, skb, KIP_STAT_TX_BAD_TYPE);
	else
		tx_route(dev, skb, lladdr);
	return NETDEV_TX_OK;
}

/* --- the ring ---------------------------------------------------------------------- */

/**
 * kip_tx_make() - make what Sends need
 * @conn: the connection; has its protection domain
 *
 * Context: process, may sleep.
 * Return: 0 or -errno.
 */
int kip_tx_make(struct kip_conn *conn)
{
	struct ib_device *device = conn->id->device;
	struct kip_tx_control *control;

	conn->tx = kvcalloc(KIP_TX_RING, sizeof(*conn->tx), GFP_KERNEL);
	if (!conn->tx)
		return -ENOMEM;
	for (control = conn->control; control < conn->control + KIP_TX_CONTROL; control++) {
		u64 dma = ib_dma_map_single(device, &control->wire, sizeof(control->wire),
					    DMA_TO_DEVICE);

		if (ib_dma_mapping_error(device, dma))
			return -ENOMEM;
		control->dma = dma;
		control->conn = conn;
	}
	return 0;
}

/**
 * kip_tx_free() - free what kip_tx_make() has made, and what is on its way
 * @conn: the connection; its queue pair is gone
 *
 * Context: process, may sleep.
 */
void kip_tx_free(struct kip_conn *conn)
{
	struct kip_tx_control *control;
	unsigned int i;

	for (control = conn->control; control < conn->control + KIP_TX_CONTROL; control++) {
		if (control->conn)
			ib_dma_unmap_single(conn->id->device, control->dma,
					    sizeof(control->wire), DMA_TO_DEVICE);
	}
	for (i = 0; conn->tx && i < KIP_TX_RING; i++) {
		if (!conn->tx[i].skb)
			continue;
		tx_unmap(conn, &conn->tx[i]);
		kfree_skb(conn->tx[i].skb);
	}
	kvfree(conn->tx);
}
