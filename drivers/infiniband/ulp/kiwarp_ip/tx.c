// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The transmit path.
 *
 * ndo_start_xmit only puts packets into a queue, which a tasklet empties. The transmit queue's lock
 * is held there, and maybe that of the TCP socket whose segment this is. If the route to a peer
 * leads through the interface itself, that socket may be the one of the connection to the peer:
 * TCP's timers lock it and then wait for the transmit queue. A driver that locks the same socket to
 * post would wait for TCP meanwhile.
 *
 * Packets that may use a connection: the tasklet looks up the peer and usually puts the packet into
 * the peer's queue. Other packets go to the datagram service (udp.c) or are dropped. kip_tx_run()
 * takes packets from that queue and posts as many Sends as there are credits and free slots. Each
 * batch of completions may free some of both, so it runs again after each batch. A slow peer thus
 * fills its own queue. The queues are bounded, each and all together, and further packets are
 * dropped. A packet stays charged to its socket until its Send completes, which throttles local
 * senders.
 *
 * Locks: a peer's lock protects its queue, and is held to map, post and complete its Sends. It is
 * not taken with the transmit queue's lock held.
 */
#include "tx.h"

#include <linux/ip.h>
#include <linux/slab.h>
#include <net/ip.h>

#include "conn.h"
#include "dev.h"
#include "loop.h"
#include "peer.h"
#include "proto/addr.h"
#include "proto/msg.h"
#include "proto/peer_fsm.h"
#include "too_big.h"
#include "udp.h"

/* Octets after the header that kip_msg_way() needs */
#define WAY_OCTETS	41
/* Maximum number of packets per ib_post_send(), and of packets per completion */
#define CHAIN_MAX	16
#define SIGNAL_EVERY	8
/* Maximum number of packets for the tasklet, and of packets per run of it */
#define PENDING_MAX	1024
#define RUN_MAX		64
/* Failures in a row after which senders of long packets are told the datagram MTU */
#define TELL_AFTER	3

static void tx_drop(struct kip_dev *dev, struct sk_buff *skb, enum kip_stat why)
{
	kip_count(dev, why);
	DEV_STATS_INC(dev->netdev, tx_dropped);
	dev_kfree_skb_any(skb);
}

/* Length of the packet that follows the header */
static u32 tx_len(const struct sk_buff *skb)
{
	return skb->len - sizeof(struct kip_wire_hdr);
}

static void tx_tell_too_big(struct kip_dev *dev, struct sk_buff *skb, u32 mtu)
{
	skb_pull(skb, sizeof(struct kip_wire_hdr));
	kip_too_big(dev, skb, mtu);
}

/*
 * Whether a packet that is too long for a datagram may be fragmented here. Packets of packet
 * sockets have no route and may be malformed.
 */
static bool tx_may_fragment(const struct sk_buff *skb)
{
	const unsigned int at = sizeof(struct kip_wire_hdr);
	const struct iphdr *ip = (const struct iphdr *)(skb->data + at);

	if (kip_msg_type(skb->data) != ETH_P_IP || !skb_dst(skb) ||
	    skb_dst(skb)->ops->family != AF_INET || skb_headlen(skb) < at + sizeof(*ip))
		return false;
	if (ip->ihl * 4 < sizeof(*ip) || skb_headlen(skb) < at + ip->ihl * 4)
		return false;
	return skb->ignore_df || !(ip->frag_off & htons(IP_DF));
}

static int tx_fragment_done(struct net *net, struct sock *sk, struct sk_buff *skb)
{
	struct kip_dev *dev = netdev_priv(skb->dev);
	struct kip_wire_hdr *hdr;

	if (skb_cow_head(skb, sizeof(*hdr))) {
		tx_drop(dev, skb, KIP_STAT_TX_NO_MEMORY);
		return 0;
	}
	hdr = skb_push(skb, sizeof(*hdr));
	hdr->type = htons(ETH_P_IP);
	hdr->reserved = 0;
	kip_udp_send(dev, skb, NULL);
	return 0;
}

/*
 * Sends a packet to all nodes in fragments. Usually its sender could not be told to send shorter
 * ones: IPv4 has no ICMP errors about multicasts (RFC 1122 3.2.2), and a default route remembers no
 * MTU for them.
 */
static void tx_fragment(struct kip_dev *dev, struct sk_buff *skb, u32 mtu)
{
	kip_count(dev, KIP_STAT_TX_FRAGMENTED);
	skb_pull(skb, sizeof(struct kip_wire_hdr));
	skb_reset_network_header(skb);
	/* The queue discipline may have overwritten it: options go into each fragment */
	memset(IPCB(skb), 0, sizeof(*IPCB(skb)));
	IPCB(skb)->frag_max_size = mtu;
	/* Each fragment has counted itself; a failure here is usually a lack of memory for one */
	if (ip_do_fragment(dev_net(dev->netdev), NULL, skb, tx_fragment_done)) {
		kip_count(dev, KIP_STAT_TX_NO_MEMORY);
		DEV_STATS_INC(dev->netdev, tx_dropped);
	}
}

/* Sends a packet as a datagram to one node, or to all of them if @lladdr is NULL */
static void tx_datagram(struct kip_dev *dev, struct sk_buff *skb, const u8 *lladdr)
{
	const u32 mtu = READ_ONCE(dev->settings.dgram_mtu);

	if (tx_len(skb) <= mtu)
		kip_udp_send(dev, skb, lladdr);
	else if (!lladdr && tx_may_fragment(skb))
		tx_fragment(dev, skb, mtu);
	else
		tx_tell_too_big(dev, skb, mtu);
}

/* Mapping and posting */

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

/* Linearizes a packet with a list of fragments or too many for the device; false: no memory */
static bool tx_make_mappable(struct kip_dev *dev, struct kip_conn *conn, struct sk_buff *skb)
{
	if (!skb_has_frag_list(skb) && skb_shinfo(skb)->nr_frags + 1 <= conn->max_sge)
		return true;
	kip_count(dev, KIP_STAT_TX_LINEARIZED);
	return !skb_linearize(skb);
}

/* Posts Sends. After a failure the slots that were not posted are freed with the connection. */
static bool tx_post(struct kip_conn *conn, const struct ib_send_wr *wr)
{
	if (!ib_post_send(conn->id->qp, wr, NULL))
		return true;
	kip_conn_break(conn);
	return false;
}

/* Maps a packet into the next slot; drops the packet if that fails */
static struct kip_tx_slot *tx_fill_slot(struct kip_dev *dev, struct kip_conn *conn,
					struct sk_buff *skb)
{
	struct kip_tx_slot *slot = &conn->tx[conn->tx_head % KIP_TX_RING];

	if (!tx_make_mappable(dev, conn, skb)) {
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

static bool tx_may_send(const struct kip_conn *conn)
{
	/* RFC 5044 7.1.2: the responder must not send before it has received something */
	return conn && conn->is_up && (conn->role == KIP_INITIATOR || conn->has_heard);
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
 * Posts a chain of packets. Every SIGNAL_EVERYth Send and the last one are signaled; their
 * completions also complete the Sends before them.
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

/**
 * kip_tx_run() - post everything that can be sent to a peer now
 * @dev: the interface
 * @peer: the peer; its lock is held
 *
 * Pending control messages for which there are slots go first.
 *
 * Context: softirq, or process with bottom halves disabled.
 */
void kip_tx_run(struct kip_dev *dev, struct kip_peer *peer)
{
	struct kip_conn *conn = peer->conn;
	const u32 sent = conn->credit.sent;

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
	} else if (!conn->is_blocked || conn->credit.sent != sent) {
		/* New credit was used up: the wait for more begins now */
		conn->is_blocked = true;
		conn->blocked_at = jiffies;
		kip_count(dev, KIP_STAT_TX_NO_CREDIT);
	}
}

/**
 * kip_tx_done() - complete a control message, or a packet and all packets before it
 * @conn: the connection; its peer's lock is held
 * @wc: the completion, a successful one
 * @sent: the packets are added here; the caller frees them
 *
 * Context: softirq, or process with bottom halves disabled.
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
 * kip_tx_datagrams() - send the waiting packets of a peer as datagrams
 * @dev: the interface
 * @peer: the peer; its lock is not held
 *
 * Called when the peer could not be connected, or its connection has failed. Short packets leave as
 * datagrams. Senders of longer packets are told only after TELL_AFTER failures in a row: their
 * routes would remember the small MTU for minutes.
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
			tx_drop(dev, skb, KIP_STAT_TX_NO_CONNECTION);
		else
			tx_datagram(dev, skb, peer->lladdr);
	}
	local_bh_enable();
}

/* The tasklet */

/* A packet for this peer does not wait, whatever waits for others */
static bool tx_is_free(const struct kip_peer *peer)
{
	return skb_queue_empty(&peer->queue) && tx_may_send(peer->conn) && tx_has_room(peer->conn);
}

static void tx_enqueue(struct kip_dev *dev, struct kip_peer *peer, struct sk_buff *skb)
{
	if (skb_queue_len(&peer->queue) >= KIP_QUEUE_MAX ||
	    peer->queue_bytes + skb->len > KIP_QUEUE_BYTES ||
	    (atomic_read(&dev->queues_bytes) + skb->len > KIP_QUEUES_BYTES && !tx_is_free(peer))) {
		tx_drop(dev, skb, KIP_STAT_TX_QUEUE_FULL);
		return;
	}
	peer->queue_bytes += skb->len;
	atomic_add(skb->len, &dev->queues_bytes);
	__skb_queue_tail(&peer->queue, skb);
}

/* Returns false when the packet is left to tx_datagram() */
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
		tx_drop(dev, skb, KIP_STAT_TX_NO_CONNECTION);
		return true;
	}
	return false;
}

/* Returns false when the packet is left to tx_datagram(); a dead peer takes no packets */
static bool tx_by_peer(struct kip_dev *dev, struct sk_buff *skb, const u8 *lladdr)
{
	struct kip_peer *peer;
	bool is_dead, done;

	/* If the peer is dead, the next lookup does not find it again. */
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

	/* A failure is harmless: kip_msg_way() gets the actual length */
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

/* What follows the link-layer destination has to begin with the wire header */
static void tx_packet(struct kip_dev *dev, struct sk_buff *skb)
{
	const struct kip_wire_hdr *hdr;
	u8 lladdr[KIP_ADDR_LEN];

	if (skb->len <= KIP_HARD_LEN || !pskb_may_pull(skb, KIP_HARD_LEN)) {
		tx_drop(dev, skb, KIP_STAT_TX_BAD_ADDRESS);
		return;
	}
	memcpy(lladdr, skb->data, KIP_ADDR_LEN);
	skb_pull(skb, KIP_ADDR_LEN);
	hdr = (const struct kip_wire_hdr *)skb->data;
	/* RFC 4391 6: 0 when sent. A packet socket may have written anything. */
	if (hdr->reserved)
		tx_drop(dev, skb, KIP_STAT_TX_BAD_TYPE);
	else if (kip_loop_is_own(skb, dev->netdev->dev_addr, dev->net))
		tx_drop(dev, skb, KIP_STAT_TX_LOOP);
	else
		tx_route(dev, skb, lladdr);
}

/*
 * Softirq. The queue may fill faster than it is emptied, so other softirqs get a turn. Returns only
 * when the queue is empty, or when it has scheduled itself again: see tx_add_pending().
 */
static void tx_run_pending(struct tasklet_struct *tasklet)
{
	struct kip_dev *dev = from_tasklet(dev, tasklet, tx_tasklet);
	struct sk_buff *skb;
	unsigned int nr;

	for (nr = 0; nr < RUN_MAX; nr++) {
		skb = skb_dequeue(&dev->tx_pending);
		if (!skb)
			return;
		tx_packet(dev, skb);
	}
	tasklet_schedule(&dev->tx_tasklet);
}

/*
 * The tasklet is scheduled for the first packet only. If it was while it runs on another CPU, this
 * CPU would try to run it again and again, and wake up ksoftirqd.
 */
static void tx_add_pending(struct kip_dev *dev, struct sk_buff *skb)
{
	unsigned long flags;
	bool was_empty;

	spin_lock_irqsave(&dev->tx_pending.lock, flags);
	was_empty = skb_queue_empty(&dev->tx_pending);
	__skb_queue_tail(&dev->tx_pending, skb);
	spin_unlock_irqrestore(&dev->tx_pending.lock, flags);
	if (was_empty)
		tasklet_schedule(&dev->tx_tasklet);
}

/**
 * kip_tx_xmit() - ndo_start_xmit
 * @skb: destination, header and packet
 * @netdev: the interface
 *
 * Takes no lock but that of the queue of the tasklet, see above.
 *
 * Context: softirq, or process with bottom halves disabled; the transmit queue's lock held. netpoll
 * calls it with interrupts disabled.
 * Return: NETDEV_TX_OK; the packet is always consumed.
 */
netdev_tx_t kip_tx_xmit(struct sk_buff *skb, struct net_device *netdev)
{
	struct kip_dev *dev = netdev_priv(netdev);

	/*
	 * If the route to the peer leads through this very interface, the segments of a Send arrive
	 * here while it is being posted. kip_loop_is_own() does not recognise all of them.
	 */
	if (this_cpu_read(*dev->is_posting)) {
		tx_drop(dev, skb, KIP_STAT_TX_LOOP);
		return NETDEV_TX_OK;
	}
	if (skb_queue_len_lockless(&dev->tx_pending) >= PENDING_MAX) {
		tx_drop(dev, skb, KIP_STAT_TX_QUEUE_FULL);
		return NETDEV_TX_OK;
	}
	skb_dst_force(skb);
	tx_add_pending(dev, skb);
	return NETDEV_TX_OK;
}

/**
 * kip_tx_init() - initialise the queue of the tasklet
 * @dev: the interface
 *
 * Context: process.
 */
void kip_tx_init(struct kip_dev *dev)
{
	skb_queue_head_init(&dev->tx_pending);
	tasklet_setup(&dev->tx_tasklet, tx_run_pending);
}

/**
 * kip_tx_end() - empty the queue of the tasklet
 * @dev: the interface; kip_tx_xmit() is not called any more, its peers are still there
 *
 * Context: process, may sleep.
 */
void kip_tx_end(struct kip_dev *dev)
{
	struct sk_buff *skb;

	tasklet_kill(&dev->tx_tasklet);
	local_bh_disable();
	while ((skb = skb_dequeue(&dev->tx_pending)))
		tx_packet(dev, skb);
	local_bh_enable();
}

/* The ring */

/**
 * kip_tx_make() - allocate the send ring and map the control messages
 * @conn: the connection; it has its protection domain
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
 * kip_tx_free() - free what kip_tx_make() made, and the packets in flight
 * @conn: the connection; it has no queue pair any more
 *
 * Context: process, may sleep.
 */
void kip_tx_free(struct kip_conn *conn)
{
	struct kip_tx_control *control;
	unsigned int i;

	for (control = conn->control; control < conn->control + KIP_TX_CONTROL; control++) {
		/* Set once @wire is mapped */
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
