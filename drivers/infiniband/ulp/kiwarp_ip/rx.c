// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Completions and received packets.
 *
 * Each connection has its own completion queue, large enough for everything it can have posted,
 * so it never overruns. A few NAPI instances, the pollers, share the connections. The queue's
 * completion handler puts the connection on its poller's list. The poller takes it off and polls.
 * It puts the connection back if there may be more completions, and otherwise arms the queue. At
 * any time a connection that has completions and is not given up is on the list, being polled, or
 * armed, or its handler is about to be called.
 *
 * A receive is posted again before its packet is delivered, so that posted receives back the peer's
 * credit. The packet keeps its memory, and the receive gets new memory. If there is none, the
 * packet is dropped and its memory is posted again.
 */
#include "rx.h"

#include <linux/netdevice.h>
#include <linux/slab.h>

#include "conn.h"
#include "dev.h"
#include "packet.h"
#include "peer.h"
#include "proto/msg.h"
#include "tx.h"

/* Memory of a receive */

/* Number of pieces of the plan that a message of @len bytes occupies */
static unsigned int rx_pieces(const struct kip_conn *conn, u32 len)
{
	unsigned int i;

	len -= min_t(u32, len, KIP_RX_HEAD);
	for (i = 0; i < conn->plan.nr && len; i++)
		len -= min(len, conn->plan.size[i]);
	return i;
}

static void rx_unmap(struct kip_conn *conn, struct kip_rx_slot *slot, unsigned int pieces)
{
	struct ib_device *device = conn->id->device;
	unsigned int i;

	if (slot->skb)
		ib_dma_unmap_single(device, slot->dma[0], KIP_RX_HEAD, DMA_FROM_DEVICE);
	for (i = 0; i < pieces; i++) {
		if (slot->page[i])
			ib_dma_unmap_page(device, slot->dma[i + 1], conn->plan.size[i],
					  DMA_FROM_DEVICE);
	}
}

static void rx_free_slot(struct kip_conn *conn, struct kip_rx_slot *slot, unsigned int pieces)
{
	unsigned int i;

	rx_unmap(conn, slot, pieces);
	kfree_skb(slot->skb);
	slot->skb = NULL;
	for (i = 0; i < pieces; i++) {
		if (slot->page[i])
			__free_pages(slot->page[i], get_order(conn->plan.size[i]));
		slot->page[i] = NULL;
	}
}

static bool rx_fill_head(struct kip_conn *conn, struct kip_rx_slot *slot, gfp_t gfp)
{
	struct ib_device *device = conn->id->device;
	struct sk_buff *skb = alloc_skb(KIP_PACKET_HEADROOM + KIP_RX_HEAD, gfp);
	u64 dma;

	if (!skb)
		return false;
	skb_reserve(skb, KIP_PACKET_HEADROOM);
	dma = ib_dma_map_single(device, skb->data, KIP_RX_HEAD, DMA_FROM_DEVICE);
	if (ib_dma_mapping_error(device, dma)) {
		kfree_skb(skb);
		return false;
	}
	slot->skb = skb;
	slot->dma[0] = dma;
	return true;
}

static bool rx_fill_piece(struct kip_conn *conn, struct kip_rx_slot *slot, unsigned int i,
			  gfp_t gfp)
{
	const unsigned int order = get_order(conn->plan.size[i]);
	struct ib_device *device = conn->id->device;
	struct page *page = alloc_pages(gfp | __GFP_COMP, order);
	u64 dma;

	if (!page)
		return false;
	dma = ib_dma_map_page(device, page, 0, conn->plan.size[i], DMA_FROM_DEVICE);
	if (ib_dma_mapping_error(device, dma)) {
		__free_pages(page, order);
		return false;
	}
	slot->page[i] = page;
	slot->dma[i + 1] = dma;
	return true;
}

/* Allocates and maps the head and the first @pieces pieces; all or nothing */
static bool rx_fill(struct kip_conn *conn, struct kip_rx_slot *slot, unsigned int pieces, gfp_t gfp)
{
	unsigned int i;

	if (!rx_fill_head(conn, slot, gfp | __GFP_NOWARN))
		return false;
	for (i = 0; i < pieces; i++) {
		if (!rx_fill_piece(conn, slot, i, gfp | __GFP_NOWARN)) {
			rx_free_slot(conn, slot, i);
			return false;
		}
	}
	return true;
}

static int rx_post(struct kip_conn *conn, struct kip_rx_slot *slot)
{
	struct ib_sge sge[1 + KIP_RX_PIECES];
	struct ib_recv_wr wr = {
		.wr_cqe = &slot->cqe,
		.sg_list = sge,
		.num_sge = conn->plan.nr + 1,
	};
	unsigned int i;

	for (i = 0; i <= conn->plan.nr; i++) {
		sge[i] = (struct ib_sge) {
			.addr = slot->dma[i],
			.length = i ? conn->plan.size[i - 1] : KIP_RX_HEAD,
			.lkey = conn->pd->local_dma_lkey,
		};
	}
	return ib_post_recv(conn->id->qp, &wr, NULL);
}

/**
 * kip_rx_make() - allocate and post all receives of a connection
 * @conn: the connection; its plan is made, and it has its queue pair
 *
 * Context: process, may sleep.
 * Return: 0 or -errno; after an error kip_rx_free() frees what was allocated.
 */
int kip_rx_make(struct kip_conn *conn)
{
	unsigned int i;
	int ret;

	conn->rx = kvcalloc(conn->nr_rx, sizeof(*conn->rx), GFP_KERNEL);
	if (!conn->rx)
		return -ENOMEM;
	for (i = 0; i < conn->nr_rx; i++) {
		conn->rx[i].conn = conn;
		if (!rx_fill(conn, &conn->rx[i], conn->plan.nr, GFP_KERNEL))
			return -ENOMEM;
		ret = rx_post(conn, &conn->rx[i]);
		if (ret)
			return ret;
	}
	return 0;
}

/**
 * kip_rx_free() - free the receives of a connection
 * @conn: the connection; it has no queue pair any more
 *
 * Context: process, may sleep.
 */
void kip_rx_free(struct kip_conn *conn)
{
	unsigned int i;

	for (i = 0; conn->rx && i < conn->nr_rx; i++)
		rx_free_slot(conn, &conn->rx[i], conn->plan.nr);
	kvfree(conn->rx);
}

/* Messages */

/* Turns a message of @len bytes into a packet; the slot gets new pieces. NULL: no memory */
static struct sk_buff *rx_take(struct kip_conn *conn, struct kip_rx_slot *slot, u32 len)
{
	const unsigned int pieces = rx_pieces(conn, len);
	const u32 head = min_t(u32, len, KIP_RX_HEAD);
	struct kip_rx_slot fresh = { };
	struct sk_buff *skb = slot->skb;
	u32 rest = len - head, part;
	unsigned int i;

	if (!rx_fill(conn, &fresh, pieces, GFP_ATOMIC))
		return NULL;
	rx_unmap(conn, slot, pieces);
	skb_put(skb, head);
	for (i = 0; i < pieces; i++, rest -= part) {
		part = min(rest, conn->plan.size[i]);
		skb_add_rx_frag(skb, i, slot->page[i], 0, part, conn->plan.size[i]);
		slot->page[i] = fresh.page[i];
		slot->dma[i + 1] = fresh.dma[i + 1];
	}
	slot->skb = fresh.skb;
	slot->dma[0] = fresh.dma[0];
	return skb;
}

/* The peer has broken a rule */
static void rx_fault(struct kip_dev *dev, struct kip_conn *conn, enum kip_stat why)
{
	kip_count(dev, why);
	conn->is_up = false;
	kip_conn_note(conn, KIP_CE_COUNTED);
}

static void rx_control(struct kip_dev *dev, struct kip_conn *conn, const void *data, u32 len)
{
	u32 value;
	u8 op;

	kip_count(dev, KIP_STAT_RX_CONTROL);
	if (!kip_control_parse(data, len, &op, &value) ||
	    !kip_credit_control(&conn->credit, op, value))
		rx_fault(dev, conn, KIP_STAT_RX_BAD_CONTROL);
}

static struct sk_buff *rx_data(struct kip_dev *dev, struct kip_conn *conn,
			       struct kip_rx_slot *slot, u32 len, enum kip_msg kind)
{
	struct sk_buff *skb = NULL;

	conn->data_at = jiffies;
	if (kind == KIP_MSG_SHORT) {
		kip_count(dev, KIP_STAT_RX_SHORT);
	} else if (kind == KIP_MSG_BAD_TYPE) {
		kip_count(dev, KIP_STAT_RX_BAD_TYPE);
	} else if (len > conn->rx_mtu) {
		kip_count(dev, KIP_STAT_RX_TOO_LONG);
	} else {
		skb = rx_take(conn, slot, len);
		kip_count(dev, skb ? KIP_STAT_RX_MESSAGES : KIP_STAT_RX_NO_MEMORY);
	}
	if (!skb)
		DEV_STATS_INC(dev->netdev, rx_dropped);
	return skb;
}

/* Handles a completed receive: posts it again and returns its packet, if there is one */
static struct sk_buff *rx_message(struct kip_dev *dev, struct kip_conn *conn,
				  const struct ib_wc *wc)
{
	struct kip_rx_slot *slot = container_of(wc->wr_cqe, struct kip_rx_slot, cqe);
	struct ib_device *device = conn->id->device;
	struct sk_buff *skb = NULL;
	enum kip_msg kind;
	bool is_control;

	conn->has_heard = true;
	conn->heard_at = jiffies;
	ib_dma_sync_single_for_cpu(device, slot->dma[0], KIP_RX_HEAD, DMA_FROM_DEVICE);
	kind = kip_msg_classify(slot->skb->data, wc->byte_len);
	is_control = kind == KIP_MSG_CONTROL;
	if (is_control)
		rx_control(dev, conn, slot->skb->data, wc->byte_len);
	else
		skb = rx_data(dev, conn, slot, wc->byte_len, kind);
	ib_dma_sync_single_for_device(device, slot->dma[0], KIP_RX_HEAD, DMA_FROM_DEVICE);
	if (rx_post(conn, slot))
		kip_conn_break(conn);
	else if (!is_control && !kip_credit_receive(&conn->credit))
		rx_fault(dev, conn, KIP_STAT_RX_OVERRUN);
	return skb;
}

/* NAPI */

/* Puts a connection on its poller's list; returns false if it was given up */
static bool rx_make_ready(struct kip_conn *conn)
{
	struct kip_poller *poller;
	unsigned long flags;
	bool is_ours;

	spin_lock_irqsave(&conn->lock, flags);
	is_ours = conn->dev;
	if (is_ours) {
		poller = conn->poller;
		spin_lock(&poller->lock);
		if (list_empty(&conn->poll_entry))
			list_add_tail(&conn->poll_entry, &poller->ready);
		spin_unlock(&poller->lock);
		napi_schedule(&poller->napi);
	}
	spin_unlock_irqrestore(&conn->lock, flags);
	return is_ours;
}

/**
 * kip_rx_ready() - completion handler of a connection's queue
 * @cq: the completion queue
 * @context: the connection
 *
 * With interrupts on it disables bottom halves, so that NAPI can run when it enables them again.
 *
 * Context: any.
 */
void kip_rx_ready(struct ib_cq *cq, void *context)
{
	const bool is_process = !in_hardirq() && !irqs_disabled();

	if (is_process)
		local_bh_disable();
	rx_make_ready(context);
	if (is_process)
		local_bh_enable();
}

static struct kip_conn *rx_next_ready(struct kip_poller *poller)
{
	struct kip_conn *conn;
	unsigned long flags;

	spin_lock_irqsave(&poller->lock, flags);
	conn = list_first_entry_or_null(&poller->ready, struct kip_conn, poll_entry);
	if (conn)
		list_del_init(&conn->poll_entry);
	spin_unlock_irqrestore(&poller->lock, flags);
	return conn;
}

static void rx_one(struct kip_dev *dev, struct kip_conn *conn, const struct ib_wc *wc,
		   struct sk_buff_head *received, struct sk_buff_head *sent)
{
	struct sk_buff *skb;

	if (wc->status != IB_WC_SUCCESS) {
		if (wc->status != IB_WC_WR_FLUSH_ERR)
			kip_conn_note(conn, KIP_CE_FAULT);
		kip_conn_break(conn);
		return;
	}
	if (wc->opcode == IB_WC_RECV) {
		skb = rx_message(dev, conn, wc);
		if (skb)
			__skb_queue_tail(received, skb);
	} else if (wc->opcode & IB_WC_RECV) {
		/* Immediate Data (RFC 7306 6) has taken a receive */
		rx_fault(dev, conn, KIP_STAT_RX_IMMEDIATE);
	} else {
		kip_tx_done(conn, wc, sent);
	}
}

static void rx_deliver(struct kip_dev *dev, struct kip_poller *poller,
		       struct sk_buff_head *received)
{
	struct sk_buff *skb;

	while ((skb = __skb_dequeue(received))) {
		kip_packet_prepare(dev, skb);
		/* The administrator has chosen to trust the peer and the connection */
		if (dev->netdev->features & NETIF_F_RXCSUM)
			skb->ip_summed = CHECKSUM_UNNECESSARY;
		napi_gro_receive(&poller->napi, skb);
	}
}

/* Polls a connection for up to @room completions; returns their number */
static int rx_poll_conn(struct kip_poller *poller, struct kip_conn *conn, int room)
{
	struct kip_dev *dev = netdev_priv(poller->napi.dev);
	const int most = min(room, KIP_RX_BATCH);
	struct kip_peer *peer = conn->peer;
	struct sk_buff_head received, sent;
	struct sk_buff *skb;
	int nr, i;

	__skb_queue_head_init(&received);
	__skb_queue_head_init(&sent);
	nr = ib_poll_cq(conn->cq, most, conn->wc);
	spin_lock(&peer->lock);
	if (nr > 0 && peer->conn == conn) {
		/* Posting a receive may open TCP's window and so send a window update */
		this_cpu_write(*dev->is_posting, true);
		for (i = 0; i < nr; i++)
			rx_one(dev, conn, &conn->wc[i], &received, &sent);
		this_cpu_write(*dev->is_posting, false);
		kip_tx_run(dev, peer);
	}
	spin_unlock(&peer->lock);
	while ((skb = __skb_dequeue(&sent)))
		napi_consume_skb(skb, room);
	rx_deliver(dev, poller, &received);
	if (nr == most ||
	    ib_req_notify_cq(conn->cq, IB_CQ_NEXT_COMP | IB_CQ_REPORT_MISSED_EVENTS) > 0)
		rx_make_ready(conn);
	return max(nr, 0);
}

static int rx_poll(struct napi_struct *napi, int budget)
{
	struct kip_poller *poller = container_of(napi, struct kip_poller, napi);
	struct kip_conn *conn;
	int done = 0;

	while (done < budget && (conn = rx_next_ready(poller)))
		done += rx_poll_conn(poller, conn, budget - done);
	if (done < budget)
		napi_complete_done(napi, done);
	return done;
}

/**
 * kip_rx_open() - enable the pollers
 * @dev: the interface
 *
 * Context: process; RTNL held.
 */
void kip_rx_open(struct kip_dev *dev)
{
	unsigned int i;

	dev->nr_pollers = min_t(unsigned int, num_online_cpus(), KIP_POLLERS);
	for (i = 0; i < dev->nr_pollers; i++) {
		spin_lock_init(&dev->pollers[i].lock);
		INIT_LIST_HEAD(&dev->pollers[i].ready);
		netif_napi_add(dev->netdev, &dev->pollers[i].napi, rx_poll);
		napi_enable(&dev->pollers[i].napi);
	}
}

/**
 * kip_rx_close() - disable the pollers
 * @dev: the interface; it has no connections
 *
 * Context: process, may sleep; RTNL held.
 */
void kip_rx_close(struct kip_dev *dev)
{
	unsigned int i;

	for (i = 0; i < dev->nr_pollers; i++) {
		napi_disable(&dev->pollers[i].napi);
		netif_napi_del(&dev->pollers[i].napi);
	}
}
