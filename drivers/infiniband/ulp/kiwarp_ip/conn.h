/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* A connection, or the listener: its cm_id, its QP, and what is on its way through that. */
#ifndef KIP_CONN_H
#define KIP_CONN_H

#include <linux/bits.h>
#include <linux/list.h>
#include <linux/skbuff.h>
#include <linux/spinlock.h>
#include <linux/types.h>
#include <linux/workqueue.h>
#include <rdma/ib_verbs.h>
#include <rdma/rdma_cm.h>

#include "proto/credit.h"
#include "proto/rxplan.h"
#include "proto/wire.h"

struct kip_dev;
struct kip_peer;
struct kip_poller;
struct kip_conn;
struct net;

#define KIP_TX_RING		64
/* Control messages on their way: more than the peer can have unread are never needed */
#define KIP_TX_CONTROL		(KIP_CONTROL_RECEIVES + 1)
#define KIP_TX_SGE		(MAX_SKB_FRAGS + 1)
#define KIP_PDATA_ROOM		64

/**
 * enum kip_role - what a cm_id is for
 * @KIP_LISTENER: accepts Requests
 * @KIP_INITIATOR: a connection that was made here
 * @KIP_RESPONDER: one that was made by the peer
 */
enum kip_role {
	KIP_LISTENER,
	KIP_INITIATOR,
	KIP_RESPONDER,
};

/* What has happened to a connection */
#define KIP_CE_REQUEST		BIT(0)	/* a Request has come: it is new */
#define KIP_CE_ROUTED		BIT(1)	/* the way is known */
#define KIP_CE_ESTABLISHED	BIT(2)
#define KIP_CE_REJECTED		BIT(3)	/* private data may say why */
#define KIP_CE_FAULT		BIT(4)	/* it failed or ended */
#define KIP_CE_IDLE		BIT(5)	/* it is to end, and may be made again */

/**
 * struct kip_rx_slot - a posted receive
 * @cqe: leads back here
 * @conn: whose it is
 * @skb: its linear part is the first piece
 * @page: the other pieces
 * @dma: of all
 */
struct kip_rx_slot {
	struct ib_cqe cqe;
	struct kip_conn *conn;
	struct sk_buff *skb;
	struct page *page[KIP_RX_PIECES];
	u64 dma[1 + KIP_RX_PIECES];
};

/**
 * struct kip_tx_slot - a packet that is being sent
 * @cqe: leads back here
 * @conn: whose it is
 * @skb: the packet
 * @wr: its Send
 * @nr_sge: pieces
 * @sge: these
 */
struct kip_tx_slot {
	struct ib_cqe cqe;
	struct kip_conn *conn;
	struct sk_buff *skb;
	struct ib_send_wr wr;
	unsigned int nr_sge;
	struct ib_sge sge[KIP_TX_SGE];
};

/**
 * struct kip_tx_control - a control message that is being sent
 * @cqe: leads back here
 * @conn: whose it is
 * @dma: of @wire
 * @is_busy: posted and not completed
 * @wire: its octets
 */
struct kip_tx_control {
	struct ib_cqe cqe;
	struct kip_conn *conn;
	u64 dma;
	bool is_busy;
	struct kip_wire_control wire;
};

/**
 * struct kip_conn - a connection
 * @id: the cm_id
 * @net: network namespace that it keeps
 * @role: what it is for
 * @lock: protects @dev and that the poller has this connection; any context
 * @dev: the interface; NULL once the connection is given up
 * @entry: in the interface's list
 * @event_entry: in the interface's list of events
 * @events: %KIP_CE_ bits
 * @reap: frees everything
 * @pdata: private data of the peer's last message, written by rdma_cm's handler before the
 *	event that it belongs to is noted
 * @pdata_len: octets of it
 * @peer: whose it is; NULL until that is known
 * @poller: of its completions
 * @poll_entry: in the poller's list
 * @pd: protection domain, its own
 * @cq: completion queue, its own
 * @rx_bytes: memory that its receives are accounted for
 * @foreign_bytes: likewise, over all interfaces of other user namespaces than the first
 * @rx_mtu: its Receive MTU
 * @plan: pieces of a receive
 * @rx: the receives
 * @nr_rx: how many
 * @max_sge: SGEs of a Send
 * @tx: ring of packets
 * @tx_head: where the next one goes; @peer's lock
 * @tx_tail: the oldest one; @peer's lock
 * @control: control messages; @peer's lock
 * @credit: @peer's lock
 * @is_up: packets may be sent; @peer's lock
 * @has_heard: something has come; @peer's lock
 * @is_blocked: packets wait for credit since @blocked_at; @peer's lock
 * @blocked_at: in jiffies
 * @heard_at: when something came last, in jiffies
 * @sent_at: when data was sent last, in jiffies
 * @probed_at: when a PROBE was asked for last, in jiffies
 * @data_at: when data went either way last, in jiffies
 */
struct kip_conn {
	struct rdma_cm_id *id;
	struct net *net;
	enum kip_role role;
	spinlock_t lock;
	struct kip_dev *dev;
	struct list_head entry;
	struct list_head event_entry;
	unsigned int events;
	struct work_struct reap;
	u8 pdata[KIP_PDATA_ROOM];
	unsigned int pdata_len;
	struct kip_peer *peer;

	struct kip_poller *poller;
	struct list_head poll_entry;
	struct ib_pd *pd;
	struct ib_cq *cq;

	u64 rx_bytes;
	u64 foreign_bytes;
	u32 rx_mtu;
	struct kip_rxplan plan;
	struct kip_rx_slot *rx;
	unsigned int nr_rx;

	unsigned int max_sge;
	struct kip_tx_slot *tx;
	u32 tx_head;
	u32 tx_tail;
	struct kip_tx_control control[KIP_TX_CONTROL];

	struct kip_credit credit;
	bool is_up;
	bool has_heard;
	bool is_blocked;
	unsigned long blocked_at;
	unsigned long heard_at;
	unsigned long sent_at;
	unsigned long probed_at;
	unsigned long data_at;
};

struct kip_conn *kip_conn_listen(struct kip_dev *dev);
struct kip_conn *kip_conn_resolve(struct kip_dev *dev, const u8 *lladdr);
int kip_conn_connect(struct kip_conn *conn, const struct kip_wire_pdata *pdata);
int kip_conn_accept(struct kip_conn *conn, const struct kip_wire_pdata *pdata);
void kip_conn_reject(struct kip_conn *conn, const struct kip_wire_pdata *pdata);
void kip_conn_note(struct kip_conn *conn, unsigned int events);
void kip_conn_give_up(struct kip_dev *dev, struct kip_conn *conn);

int kip_conn_qp_make(struct kip_dev *dev, struct kip_conn *conn);
void kip_conn_qp_free(struct kip_conn *conn);

#endif /* KIP_CONN_H */
