// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Connection management: one work item per interface makes, accepts and ends connections. Stop ends
 * those that are left.
 *
 * As a single work item makes the decisions, it needs no lock for them, and can call rdma_cm
 * without holding a lock of this module. It never takes the RTNL and does not wait for a peer, so
 * stop can wait for it under the RTNL. (siw waits for the peer's TCP in rdma_connect(), iw_cm for
 * the port mapper if that is used, and rdma_cm for drivers of some RNICs that take the RTNL.)
 *
 * It reacts to events of connections (conn_event.c), to wishes of senders for a connection (tx.c),
 * and to the passage of time. proto/peer_fsm.c defines the state machine of a peer;
 * control_handle_event() executes it, and writes the state of a peer after its creation.
 */
#include "control.h"

#include <linux/jiffies.h>
#include <linux/random.h>

#include "conn.h"
#include "dev.h"
#include "netns.h"
#include "peer.h"
#include "proto/addr.h"
#include "proto/pdata.h"
#include "proto/peer_fsm.h"
#include "tx.h"

#define TICK			(HZ / 4)
/* Shortest delay after a failure: the previous listener may still occupy the port */
#define RELISTEN_MIN		(HZ / 32)
#define RELISTEN_MAX		HZ
/* The same when only our cm_ids have kept the namespace: they take time to end */
#define RELISTEN_LEFT		(5 * HZ)
/*
 * A peer that is silent after data is probed, then given up; TCP below needs more time than
 * RFC 4755 7.1 advises
 */
#define PROBE_AFTER		(2 * HZ)
#define SILENT_AFTER		(5 * HZ)
#define STALLED_AFTER		(5 * HZ)
/* Time for rdma_cm to tell why a connection does not work any more */
#define BROKEN_AFTER		HZ
#define FORGET_AFTER		(60 * HZ)
#define BACKOFF_MAX_S		30

static void control_handle_event(struct kip_dev *dev, struct kip_peer *peer,
				 enum kip_peer_event event, struct kip_conn *request);

/* Private data */

static void control_pdata(struct kip_dev *dev, const struct kip_conn *conn,
			  struct kip_wire_pdata *wire, enum kip_reason reason)
{
	const struct kip_pdata pdata = {
		.qpn = dev->settings.port,
		.mtu = conn->rx_mtu ? conn->rx_mtu :
				      dev->netdev->mtu + sizeof(struct kip_wire_hdr),
		.reason = reason,
		.pkey = dev->settings.pkey,
		.data_receives = dev->settings.rx_depth,
		.control_receives = KIP_CONTROL_RECEIVES,
		.instance = dev->instance,
		.serial = dev->serial,
	};

	kip_pdata_build(wire, &pdata);
}

static void control_count_reason(struct kip_dev *dev, enum kip_reason reason)
{
	switch (reason) {
	case KIP_REASON_PKEY:
		kip_count(dev, KIP_STAT_BAD_PKEY);
		break;
	case KIP_REASON_MTU:
		kip_count(dev, KIP_STAT_BAD_MTU);
		break;
	case KIP_REASON_FULL:
		kip_count(dev, KIP_STAT_CONN_NO_ROOM);
		break;
	case KIP_REASON_FORMAT:
		kip_count(dev, KIP_STAT_BAD_PDATA);
		break;
	default:
		break;
	}
}

static void control_reject(struct kip_dev *dev, struct kip_conn *conn, enum kip_reason reason)
{
	struct kip_wire_pdata wire;

	control_count_reason(dev, reason);
	kip_count(dev, KIP_STAT_CONN_REJECTED);
	control_pdata(dev, conn, &wire, reason);
	kip_conn_reject(conn, &wire);
	kip_conn_give_up(dev, conn);
}

/* Actions of the state table */

static void control_resolve(struct kip_dev *dev, struct kip_peer *peer)
{
	struct kip_conn *conn = kip_conn_resolve(dev, peer->lladdr);

	if (IS_ERR(conn)) {
		kip_count(dev, KIP_STAT_CONN_FAILED);
		control_handle_event(dev, peer, KIP_PE_FAULT, NULL);
		return;
	}
	conn->peer = peer;
	spin_lock_bh(&peer->lock);
	peer->conn = conn;
	spin_unlock_bh(&peer->lock);
}

static void control_request(struct kip_dev *dev, struct kip_peer *peer)
{
	struct kip_conn *conn = peer->conn;
	struct kip_wire_pdata wire;
	int ret;

	ret = kip_conn_qp_make(dev, conn);
	if (!ret) {
		dev->serial++;
		control_pdata(dev, conn, &wire, KIP_REASON_NONE);
		ret = kip_conn_connect(conn, &wire);
	}
	if (!ret) {
		kip_count(dev, KIP_STAT_CONN_REQUESTED);
		return;
	}
	kip_count(dev, ret == -ENOBUFS ? KIP_STAT_CONN_NO_ROOM : KIP_STAT_CONN_FAILED);
	control_handle_event(dev, peer, KIP_PE_FAULT, NULL);
}

static void control_accept(struct kip_dev *dev, struct kip_peer *peer, struct kip_conn *conn)
{
	struct kip_wire_pdata wire;
	struct kip_pdata pdata;
	int ret;

	conn->peer = peer;
	ret = kip_conn_qp_make(dev, conn);
	if (ret) {
		control_reject(dev, conn, KIP_REASON_FULL);
		control_handle_event(dev, peer, KIP_PE_FAULT, NULL);
		return;
	}
	/* The first message may arrive before the ESTABLISHED event and needs the peer */
	spin_lock_bh(&peer->lock);
	peer->conn = conn;
	spin_unlock_bh(&peer->lock);
	kip_pdata_parse(&pdata, conn->pdata, conn->pdata_len);
	peer->is_known = true;
	peer->instance = pdata.instance;
	peer->serial = pdata.serial;
	control_pdata(dev, conn, &wire, KIP_REASON_NONE);
	kip_loop_add(&conn->far, dev->net, peer->lladdr);
	ret = kip_conn_accept(conn, &wire);
	if (ret) {
		kip_count(dev, KIP_STAT_CONN_FAILED);
		control_handle_event(dev, peer, KIP_PE_FAULT, NULL);
		return;
	}
	kip_count(dev, KIP_STAT_CONN_ACCEPTED);
}

static bool control_is_probing(const struct kip_conn *conn)
{
	return conn->credit.is_probing || conn->credit.has_probe;
}

/* The timeout of the PROBE starts here, even if it cannot be posted yet */
static void control_probe(struct kip_conn *conn)
{
	if (control_is_probing(conn))
		return;
	kip_credit_ask(&conn->credit);
	conn->probed_at = jiffies;
}

/* Together with the state UP, because senders look at the state first */
static void control_publish(struct kip_dev *dev, struct kip_peer *peer)
{
	struct kip_conn *conn = peer->conn;
	struct kip_pdata pdata;

	lockdep_assert_held(&peer->lock);
	kip_pdata_parse(&pdata, conn->pdata, conn->pdata_len);
	peer->is_known = true;
	peer->instance = pdata.instance;
	peer->serial = pdata.serial;
	kip_count(dev, KIP_STAT_CONN_ESTABLISHED);
	peer->tries = 0;
	kip_credit_open(&conn->credit, pdata.data_receives);
	peer->mtu = kip_pdata_mtu(conn->rx_mtu, pdata.mtu);
	conn->heard_at = jiffies;
	conn->sent_at = jiffies;
	conn->data_at = jiffies;
	conn->seen_at = jiffies;
	conn->is_up = true;
	/* The responder may not send before it has received something */
	if (conn->role == KIP_INITIATOR)
		control_probe(conn);
	kip_tx_run(dev, peer);
}

static bool control_is_idle(const struct kip_dev *dev, const struct kip_conn *conn)
{
	return dev->settings.idle_s &&
	       time_after(jiffies, conn->data_at + dev->settings.idle_s * HZ);
}

static unsigned long control_deadline(const struct kip_peer *peer)
{
	unsigned int s;

	switch (peer->state) {
	case KIP_PS_RESOLVING:
		return 5 * HZ;
	case KIP_PS_REQ_SENT:
	case KIP_PS_ACCEPTING:
		return 15 * HZ;
	case KIP_PS_YIELDED:
		return 2 * HZ;
	case KIP_PS_BACKOFF:
		s = min(1U << min(peer->tries - 1, 5U), BACKOFF_MAX_S);
		/* Random, so that two ends that fail together rarely retry together */
		return s * HZ / 2 + get_random_u32() % (s * HZ / 2 + 1);
	default:
		return 0;
	}
}

static void control_enter_state(struct kip_peer *peer, u8 state, bool has_begun)
{
	unsigned long time;

	lockdep_assert_held(&peer->lock);
	peer->state = state;
	if (!has_begun)
		return;
	time = control_deadline(peer);
	peer->has_deadline = time;
	peer->deadline = jiffies + time;
}

static void control_handle_event(struct kip_dev *dev, struct kip_peer *peer,
				 enum kip_peer_event event, struct kip_conn *request)
{
	const struct kip_peer_step step = kip_peer_fsm(peer->state, event);
	struct kip_conn *old = NULL;

	if (!step.legal)
		return;
	spin_lock_bh(&peer->lock);
	/* A packet that was sent meanwhile must not be lost with the connection */
	if (event == KIP_PE_IDLE && !control_is_idle(dev, peer->conn)) {
		spin_unlock_bh(&peer->lock);
		return;
	}
	if (step.actions & KIP_PA_LATER)
		peer->tries++;
	if (step.actions & KIP_PA_DROP) {
		old = peer->conn;
		peer->conn = NULL;
	}
	control_enter_state(peer, step.next, step.next != peer->state || step.actions);
	if (step.actions & KIP_PA_PUBLISH)
		control_publish(dev, peer);
	spin_unlock_bh(&peer->lock);

	if (step.actions & KIP_PA_REJECT_CROSSED)
		control_reject(dev, request, KIP_REASON_CROSSED);
	if (step.actions & KIP_PA_REJECT_BUSY)
		control_reject(dev, request, KIP_REASON_BUSY);
	if (old)
		kip_conn_give_up(dev, old);
	if (step.actions & KIP_PA_RESOLVE)
		control_resolve(dev, peer);
	if (step.actions & KIP_PA_REQUEST)
		control_request(dev, peer);
	if (step.actions & KIP_PA_ACCEPT)
		control_accept(dev, peer, request);
	if (event == KIP_PE_IDLE)
		kip_count(dev, KIP_STAT_CONN_IDLE);
	if (step.actions & KIP_PA_FLUSH)
		kip_tx_datagrams(dev, peer);
}

/* Events of connections */

static enum kip_reason control_check_request(struct kip_dev *dev, struct kip_conn *conn,
					     struct kip_pdata *pdata, u8 *lladdr)
{
	union kip_sockaddr from = { };
	enum kip_reason reason;

	if (!kip_pdata_parse(pdata, conn->pdata, conn->pdata_len))
		return KIP_REASON_FORMAT;
	reason = kip_pdata_check(pdata, dev->settings.pkey);
	if (reason)
		return reason;
	/* RFC 4755 3.3: the peer's address is the QPN in the Request and its source address */
	memcpy(&from, &conn->id->route.addr.dst_addr, sizeof(from));
	from.v4.sin_port = htons(pdata->qpn);
	if (!kip_sockaddr_lladdr(lladdr, &from.sa, 0) ||
	    kip_addr_same(lladdr, dev->netdev->dev_addr))
		return KIP_REASON_FORMAT;
	if (READ_ONCE(dev->settings.has_listed_only) && !kip_udp_is_listed(dev, &from)) {
		kip_count(dev, KIP_STAT_CONN_UNLISTED);
		return KIP_REASON_BUSY;
	}
	if (!dev->settings.is_connected)
		return KIP_REASON_BUSY;
	return KIP_REASON_NONE;
}

static enum kip_peer_event control_request_event(struct kip_dev *dev, const struct kip_peer *peer,
						 const struct kip_pdata *pdata)
{
	const bool is_smaller = kip_addr_compare(dev->netdev->dev_addr, peer->lladdr) < 0;

	switch (peer->state) {
	case KIP_PS_UP:
	case KIP_PS_ACCEPTING:
		if (peer->is_known &&
		    !kip_pdata_is_newer(pdata, peer->instance, peer->serial)) {
			kip_count(dev, KIP_STAT_CONN_STALE);
			return KIP_PE_REQ_STALE;
		}
		kip_count(dev, KIP_STAT_CONN_REPLACED);
		break;
	case KIP_PS_REQ_SENT:
		kip_count(dev, is_smaller ? KIP_STAT_CONN_CROSSED_LOST :
					    KIP_STAT_CONN_CROSSED_WON);
		break;
	default:
		break;
	}
	return is_smaller ? KIP_PE_REQ_SMALLER : KIP_PE_REQ_GREATER;
}

/* A node can pose as many peers as there are ports; leave room for other nodes */
static struct kip_peer *control_request_peer(struct kip_dev *dev, const u8 *lladdr)
{
	struct kip_peer *peer;

	rcu_read_lock();
	peer = kip_peer_find(dev, lladdr);
	if (!peer && kip_peer_count(dev, lladdr) < KIP_MAX_PEERS_PER_GID)
		peer = kip_peer_get(dev, lladdr);
	rcu_read_unlock();
	/* This work item, or stop when that is idle, removes peers: the peer stays without RCU */
	return peer;
}

static void control_on_request(struct kip_dev *dev, struct kip_conn *conn)
{
	struct kip_pdata pdata;
	enum kip_reason reason;
	struct kip_peer *peer;
	u8 lladdr[KIP_ADDR_LEN];

	reason = control_check_request(dev, conn, &pdata, lladdr);
	if (reason) {
		control_reject(dev, conn, reason);
		return;
	}
	peer = control_request_peer(dev, lladdr);
	if (!peer)
		control_reject(dev, conn, KIP_REASON_FULL);
	else
		control_handle_event(dev, peer, control_request_event(dev, peer, &pdata), conn);
}

static void control_on_established(struct kip_dev *dev, struct kip_conn *conn)
{
	struct kip_peer *peer = conn->peer;
	enum kip_reason reason = KIP_REASON_FORMAT;
	struct kip_pdata pdata;

	if (kip_pdata_parse(&pdata, conn->pdata, conn->pdata_len))
		reason = kip_pdata_check(&pdata, dev->settings.pkey);
	if (!reason && pdata.qpn != kip_addr_qpn(peer->lladdr)) {
		kip_count(dev, KIP_STAT_BAD_QPN);
		reason = KIP_REASON_BUSY;
	}
	control_count_reason(dev, reason);
	control_handle_event(dev, peer, reason ? KIP_PE_FAULT : KIP_PE_ESTABLISHED, NULL);
}

static void control_on_rejected(struct kip_dev *dev, struct kip_conn *conn)
{
	struct kip_pdata pdata;

	kip_count(dev, KIP_STAT_CONN_REFUSED);
	kip_pdata_parse(&pdata, conn->pdata, conn->pdata_len);
	control_handle_event(dev, conn->peer, pdata.reason == KIP_REASON_CROSSED ?
					      KIP_PE_CROSSED : KIP_PE_REJECTED, NULL);
}

/* The end of a connection or an attempt; one that has been counted is not counted again */
static void control_on_over(struct kip_dev *dev, struct kip_peer *peer, unsigned int events)
{
	if (!(events & KIP_CE_COUNTED))
		kip_count(dev, events & KIP_CE_FAULT || peer->state != KIP_PS_UP ?
			       KIP_STAT_CONN_FAILED : KIP_STAT_CONN_ENDED);
	control_handle_event(dev, peer, KIP_PE_FAULT, NULL);
}

static void control_on_events(struct kip_dev *dev, struct kip_conn *conn, unsigned int events)
{
	struct kip_peer *peer = conn->peer;

	if (conn->role == KIP_LISTENER) {
		if (events & KIP_CE_OVER) {
			dev->listener = NULL;
			kip_conn_give_up(dev, conn);
		}
		return;
	}
	if (events & KIP_CE_REQUEST) {
		atomic_dec(&dev->nr_requests);
		list_add(&conn->entry, &dev->conns);
		/* The sender may have disconnected meanwhile */
		if (events & KIP_CE_OVER)
			kip_conn_give_up(dev, conn);
		else
			control_on_request(dev, conn);
		return;
	}
	/* In the order in which events occur; each may end the connection */
	if (events & KIP_CE_ROUTED && peer->conn == conn)
		control_handle_event(dev, peer, KIP_PE_ROUTED, NULL);
	if (events & KIP_CE_ESTABLISHED && peer->conn == conn)
		control_on_established(dev, conn);
	if (events & KIP_CE_REJECTED && peer->conn == conn)
		control_on_rejected(dev, conn);
	if (events & KIP_CE_OVER && peer->conn == conn)
		control_on_over(dev, peer, events);
}

static struct kip_conn *control_take_event(struct kip_dev *dev, unsigned int *events)
{
	struct kip_conn *conn;

	lockdep_assert_held(&dev->event_lock);
	conn = list_first_entry_or_null(&dev->events, struct kip_conn, event_entry);
	if (conn) {
		list_del_init(&conn->event_entry);
		*events = conn->events;
		conn->events = 0;
	}
	return conn;
}

/* The first connection that has events, and these; NULL: there is none */
static struct kip_conn *control_next_event(struct kip_dev *dev, unsigned int *events)
{
	struct kip_conn *conn;

	spin_lock_irq(&dev->event_lock);
	conn = control_take_event(dev, events);
	spin_unlock_irq(&dev->event_lock);
	return conn;
}

static unsigned int control_count_noted(struct kip_dev *dev)
{
	struct list_head *entry;
	unsigned int nr = 0;

	spin_lock_irq(&dev->event_lock);
	list_for_each(entry, &dev->events)
		nr++;
	spin_unlock_irq(&dev->event_lock);
	return nr;
}

/*
 * Handles the connections that have events now. Later ones queue the work item again: Requests may
 * arrive as fast as they are handled, but wishes, timeouts and stop must not wait for that to end.
 */
static void control_events(struct kip_dev *dev)
{
	unsigned int left = control_count_noted(dev);
	struct kip_conn *conn;
	unsigned int events;

	while (left-- && READ_ONCE(dev->is_running)) {
		conn = control_next_event(dev, &events);
		if (!conn)
			return;
		control_on_events(dev, conn, events);
		cond_resched();
	}
}

/* Senders' wishes, timeouts, the work item */

static void control_wishes(struct kip_dev *dev)
{
	struct kip_peer *peer;

	for (;;) {
		spin_lock_bh(&dev->lock);
		peer = list_first_entry_or_null(&dev->wishes, struct kip_peer, wish_entry);
		if (peer)
			list_del_init(&peer->wish_entry);
		spin_unlock_bh(&dev->lock);
		if (!peer)
			return;
		control_handle_event(dev, peer, KIP_PE_WISH, NULL);
	}
}

/*
 * Whether packets have waited too long for credit, or for TCP to take them. As long as local ones
 * wait, they count against the send buffers of their sockets, which may be unable to send to other
 * peers for that reason. While a PROBE is unanswered, TCP may take longer: control_is_silent()
 * decides.
 */
static bool control_is_stalled(struct kip_conn *conn)
{
	const unsigned long now = jiffies;

	if (conn->tx_tail != conn->seen_tail || conn->tx_tail == conn->tx_head) {
		conn->seen_tail = conn->tx_tail;
		conn->seen_at = now;
	}
	if (conn->is_blocked && time_after(now, conn->blocked_at + STALLED_AFTER))
		return true;
	return !control_is_probing(conn) && time_after(now, conn->seen_at + STALLED_AFTER);
}

/*
 * Whether the peer does not answer. A PROBE may have to wait until earlier control messages have
 * completed. The responder must not send one before it has heard from the initiator, whose first
 * message is a PROBE.
 */
static bool control_is_silent(const struct kip_conn *conn)
{
	const unsigned long now = jiffies;

	if (conn->role == KIP_RESPONDER && !conn->has_heard)
		return time_after(now, conn->heard_at + PROBE_AFTER + SILENT_AFTER);
	return control_is_probing(conn) && time_after(now, conn->probed_at + SILENT_AFTER);
}

/* Checks the timeouts of the connection of a peer in the state UP */
static enum kip_peer_event control_watch_conn(struct kip_dev *dev, struct kip_conn *conn)
{
	const unsigned long now = jiffies;

	if (conn->is_broken) {
		if (!time_after(now, conn->broken_at + BROKEN_AFTER))
			return KIP_PE_COUNT;
		kip_count(dev, KIP_STAT_CONN_FAILED);
		return KIP_PE_FAULT;
	}
	if (control_is_stalled(conn)) {
		kip_count(dev, KIP_STAT_CONN_STALLED);
		return KIP_PE_FAULT;
	}
	if (control_is_silent(conn)) {
		kip_count(dev, KIP_STAT_CONN_SILENT);
		return KIP_PE_FAULT;
	}
	if (time_after(conn->sent_at, conn->heard_at) &&
	    time_after(now, conn->heard_at + PROBE_AFTER))
		control_probe(conn);
	return control_is_idle(dev, conn) ? KIP_PE_IDLE : KIP_PE_COUNT;
}

static void control_tick_peer(struct kip_dev *dev, struct kip_peer *peer)
{
	enum kip_peer_event event = KIP_PE_COUNT;
	bool is_idle;

	if (peer->has_deadline && time_after_eq(jiffies, peer->deadline)) {
		peer->has_deadline = false;
		/* In YIELDED, the attempt was counted when the peer rejected it. */
		if (peer->state != KIP_PS_BACKOFF && peer->state != KIP_PS_YIELDED)
			kip_count(dev, KIP_STAT_CONN_FAILED);
		control_handle_event(dev, peer, KIP_PE_TIMEOUT, NULL);
	}
	spin_lock_bh(&peer->lock);
	if (peer->state == KIP_PS_UP) {
		event = control_watch_conn(dev, peer->conn);
		kip_tx_run(dev, peer);
	}
	if (peer->state == KIP_PS_NONE && !skb_queue_empty(&peer->queue))
		event = KIP_PE_WISH;
	is_idle = peer->state == KIP_PS_NONE && skb_queue_empty(&peer->queue) &&
		  time_after(jiffies, peer->used_at + FORGET_AFTER);
	/* At once: a packet that is sent now gets another peer */
	if (is_idle)
		kip_peer_detach(dev, peer);
	spin_unlock_bh(&peer->lock);
	if (is_idle)
		kip_peer_free(dev, peer);
	else
		control_handle_event(dev, peer, event, NULL);
}

static void control_tick(struct kip_dev *dev)
{
	struct hlist_node *next;
	struct kip_peer *peer;
	unsigned int bucket;

	hash_for_each_safe(dev->peers, bucket, next, peer, node)
		control_tick_peer(dev, peer);
}

/* Tries to listen, which fails while no RDMA device has our address */
static void control_listen(struct kip_dev *dev)
{
	struct kip_conn *listener;

	if (dev->listener || !dev->settings.is_connected ||
	    time_before(jiffies, dev->relisten_at))
		return;
	listener = kip_conn_listen(dev);
	if (IS_ERR(listener)) {
		dev->relisten_at = jiffies + dev->relisten_wait;
		dev->relisten_wait = min_t(unsigned long, dev->relisten_wait * 2, RELISTEN_MAX);
	} else {
		dev->listener = listener;
		dev->relisten_wait = RELISTEN_MIN;
	}
}

/* Delay in jiffies until the work item runs again by itself */
static unsigned long control_delay(const struct kip_dev *dev)
{
	unsigned long delay = READ_ONCE(dev->nr_peers) ? TICK : RELISTEN_MAX;

	if (dev->listener || !dev->settings.is_connected)
		return delay;
	return min(delay, dev->relisten_wait);
}

/*
 * Senders may still be running. So no connection is given up before all peers have been detached
 * from theirs, after which senders cannot find it any more. Pollers still can, and use its peer. So
 * peers are removed last, and RCU keeps them alive.
 */
static void control_give_up_all(struct kip_dev *dev)
{
	struct kip_conn *conn, *next;
	struct hlist_node *after;
	struct kip_peer *peer;
	unsigned int bucket;
	unsigned int events;

	rcu_read_lock();
	hash_for_each_rcu(dev->peers, bucket, peer, node) {
		spin_lock_bh(&peer->lock);
		peer->conn = NULL;
		spin_unlock_bh(&peer->lock);
	}
	rcu_read_unlock();
	dev->listener = NULL;
	list_for_each_entry_safe(conn, next, &dev->conns, entry)
		kip_conn_give_up(dev, conn);
	/* Requests not looked at yet; there will be no more, as the listener is gone */
	while ((conn = control_next_event(dev, &events))) {
		if (events & KIP_CE_REQUEST)
			atomic_dec(&dev->nr_requests);
		kip_conn_give_up(dev, conn);
	}
	hash_for_each_safe(dev->peers, bucket, after, peer, node) {
		spin_lock_bh(&peer->lock);
		kip_peer_detach(dev, peer);
		spin_unlock_bh(&peer->lock);
		kip_peer_free(dev, peer);
	}
}

static void control_work(struct work_struct *work)
{
	struct kip_dev *dev = container_of(work, struct kip_dev, work.work);

	if (!READ_ONCE(dev->is_running))
		return;
	if (kip_netns_is_left(dev->net)) {
		/*
		 * When all have done so, the namespace is destroyed, and the interface with it. If
		 * somebody has got a reference to it meanwhile, the interface goes on.
		 */
		control_give_up_all(dev);
		dev->relisten_at = jiffies + RELISTEN_LEFT;
		dev->relisten_wait = RELISTEN_MAX;
		queue_delayed_work(kip_wq, &dev->work, RELISTEN_MAX);
		return;
	}
	control_listen(dev);
	control_events(dev);
	control_wishes(dev);
	control_tick(dev);
	queue_delayed_work(kip_wq, &dev->work, control_delay(dev));
}

/**
 * kip_control_init() - initialise connection management
 * @dev: the interface, which has not been up yet
 *
 * Context: process.
 */
void kip_control_init(struct kip_dev *dev)
{
	spin_lock_init(&dev->lock);
	spin_lock_init(&dev->event_lock);
	hash_init(dev->peers);
	INIT_LIST_HEAD(&dev->wishes);
	INIT_LIST_HEAD(&dev->events);
	INIT_LIST_HEAD(&dev->conns);
	INIT_DELAYED_WORK(&dev->work, control_work);
}

/**
 * kip_control_alloc() - allocate what connection management needs
 * @dev: the interface, which is being registered
 *
 * Context: process, may sleep.
 * Return: 0 or -ENOMEM.
 */
int kip_control_alloc(struct kip_dev *dev)
{
	dev->reaping = kip_reaping_alloc();
	return dev->reaping ? 0 : -ENOMEM;
}

/**
 * kip_control_free() - free it again
 * @dev: the interface, which is not registered any more
 *
 * Context: process.
 */
void kip_control_free(struct kip_dev *dev)
{
	kip_reaping_put(dev->reaping);
}

/**
 * kip_control_start() - start connection management
 * @dev: the interface; its pollers and its datagram service are open
 *
 * Context: process; RTNL held.
 */
void kip_control_start(struct kip_dev *dev)
{
	dev->instance = get_random_u32();
	dev->serial = 0;
	dev->relisten_at = jiffies;
	dev->relisten_wait = RELISTEN_MIN;
	atomic_set(&dev->nr_requests, 0);
	WRITE_ONCE(dev->is_running, true);
	mod_delayed_work(kip_wq, &dev->work, 0);
}

/**
 * kip_control_stop() - end all connections and forget all peers
 * @dev: the interface
 *
 * On return the connections are detached from the interface. Their slow teardown continues in the
 * background.
 *
 * Context: process, may sleep; RTNL held, which the work item does not take.
 */
void kip_control_stop(struct kip_dev *dev)
{
	WRITE_ONCE(dev->is_running, false);
	cancel_delayed_work_sync(&dev->work);
	control_give_up_all(dev);
	/* An event may have queued it again */
	cancel_delayed_work_sync(&dev->work);
}

/**
 * kip_control_renew() - end all connections, so that later packets make new ones
 * @dev: the interface
 *
 * Needed for settings that are fixed when a connection is made.
 *
 * Context: process, may sleep; RTNL held.
 */
void kip_control_renew(struct kip_dev *dev)
{
	if (!dev->is_running)
		return;
	kip_control_stop(dev);
	kip_control_start(dev);
}

/**
 * kip_control_set_depth() - change the number of receives of connections
 * @dev: the interface
 * @depth: receives for data
 *
 * Ends all connections first: the work item posts the receives of a connection and tells the peer
 * their number at different times.
 *
 * Context: process, may sleep; RTNL held.
 */
void kip_control_set_depth(struct kip_dev *dev, u16 depth)
{
	const bool is_running = dev->is_running;

	if (is_running)
		kip_control_stop(dev);
	dev->settings.rx_depth = depth;
	if (is_running)
		kip_control_start(dev);
}
