/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* A connection or the listener: its cm_id, its QP, and the work requests in flight. */
#ifndef KIP_CONN_H
#define KIP_CONN_H

#include <linux/atomic.h>
#include <linux/bits.h>
#include <linux/list.h>
#include <linux/rcupdate.h>
#include <linux/refcount.h>
#include <linux/skbuff.h>
#include <linux/spinlock.h>
#include <linux/types.h>
#include <linux/workqueue.h>
#include <rdma/ib_verbs.h>
#include <rdma/rdma_cm.h>

#include "loop.h"
#include "proto/credit.h"
#include "proto/rxplan.h"
#include "proto/wire.h"

struct kip_dev;
struct kip_peer;
struct kip_poller;
struct kip_conn;
struct net;

/* Maximum number of completions taken from a connection at a time */
#define KIP_RX_BATCH		16
#define KIP_TX_RING		64
/*
 * Control messages in flight: one more than the peer can have unread. When all are in use, the next
 * one waits for a completion.
 */
#define KIP_TX_CONTROL		(KIP_CONTROL_RECEIVES + 1)
#define KIP_TX_SGE		(MAX_SKB_FRAGS + 1)
#define KIP_PDATA_ROOM		64

/**
 * enum kip_role - role of a cm_id
 * @KIP_LISTENER: listens for Requests
 * @KIP_INITIATOR: a connection for which this end sends the Request
 * @KIP_RESPONDER: a connection for which the peer sends the Request
 */
enum kip_role {
	KIP_LISTENER,
	KIP_INITIATOR,
	KIP_RESPONDER,
};

/* Events of a connection */
#define KIP_CE_REQUEST		BIT(0)	/* a Request arrived: it is new */
#define KIP_CE_ROUTED		BIT(1)	/* the route is resolved */
#define KIP_CE_ESTABLISHED	BIT(2)
#define KIP_CE_REJECTED		BIT(3)	/* the private data may tell why */
#define KIP_CE_FAULT		BIT(4)	/* the connection failed */
#define KIP_CE_ENDED		BIT(5)	/* by the peer, or with its stream or its device */
#define KIP_CE_COUNTED		BIT(6)	/* it is over, for a reason that has been counted */
#define KIP_CE_OVER		(KIP_CE_FAULT | KIP_CE_ENDED | KIP_CE_COUNTED)

/**
 * struct kip_rx_slot - a posted receive
 * @cqe: identifies the slot in a completion
 * @conn: the connection it belongs to
 * @skb: its linear part is the first piece
 * @page: the other pieces
 * @dma: DMA addresses of all pieces
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
 * @cqe: identifies the slot in a completion
 * @skb: the packet
 * @wr: its Send
 * @nr_sge: number of mapped pieces
 * @sge: the pieces
 */
struct kip_tx_slot {
	struct ib_cqe cqe;
	struct sk_buff *skb;
	struct ib_send_wr wr;
	unsigned int nr_sge;
	struct ib_sge sge[KIP_TX_SGE];
};

/**
 * struct kip_tx_control - a control message that is being sent
 * @cqe: identifies the message in a completion
 * @conn: the connection it belongs to; NULL until @wire is mapped
 * @dma: DMA address of @wire
 * @is_busy: posted, and its Send has not succeeded yet
 * @wire: the message
 */
struct kip_tx_control {
	struct ib_cqe cqe;
	struct kip_conn *conn;
	u64 dma;
	bool is_busy;
	struct kip_wire_control wire;
};

/**
 * struct kip_conn - a connection, or the listener
 * @id: the cm_id
 * @net: network namespace that @id keeps alive
 * @role: role of @id
 * @lock: protects @dev and insertion into the poller's list; any context
 * @dev: the interface; NULL once the connection is given up
 * @entry: entry in the interface's list of connections
 * @event_entry: entry in the interface's list of events
 * @events: pending %KIP_CE_ bits
 * @far: the far end, unless it is a Request that has not been accepted
 * @rcu: frees the structure after a grace period
 * @reap: work item that frees everything
 * @pdata: private data of the peer's last message; the rdma_cm event handler writes it before it
 *	records the event to which it belongs
 * @pdata_len: bytes of private data
 * @peer: the peer; NULL as long as it has none
 * @poller: the poller of its completions
 * @poll_entry: entry in the poller's list
 * @pd: its own protection domain
 * @cq: its own completion queue
 * @wc: completions that its poller has taken from @cq; only the poller uses it
 * @rx_bytes: memory accounted to the interface for its receives
 * @reaping: counts @rx_bytes from kip_conn_give_up() until they are freed
 * @foreign_bytes: the part of these bytes that conn_qp.c has accounted to its common limit
 * @rx_mtu: its Receive MTU
 * @plan: how a receive is split into pieces
 * @rx: the receives
 * @nr_rx: number of receives
 * @max_sge: maximum number of SGEs of a Send
 * @tx: ring of packets
 * @tx_head: index of the next free slot; @peer's lock
 * @tx_tail: index of the oldest packet; @peer's lock
 * @control: control messages; @peer's lock
 * @credit: flow control; @peer's lock
 * @is_established: rdma_cm has said so
 * @is_up: packets may be sent, by a responder once @has_heard; @peer's lock
 * @is_broken: work requests have failed since @broken_at; @peer's lock
 * @broken_at: when that began, in jiffies
 * @has_heard: something has been received; @peer's lock
 * @is_blocked: packets have been waiting for credit since @blocked_at; @peer's lock
 * @blocked_at: when that began, or credit last came, in jiffies
 * @seen_tail: @tx_tail when the interface's work item last found that it had moved, or that no
 *	packet was in flight; @peer's lock
 * @seen_at: when that was, or when the connection came up, in jiffies
 * @heard_at: when something was last received, or the connection came up, in jiffies
 * @sent_at: when data was last sent, or the connection came up, in jiffies
 * @probed_at: when a PROBE was last requested, in jiffies
 * @data_at: when data was last sent or received, or the connection came up, in jiffies
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
	struct kip_loop_end far;
	struct rcu_head rcu;
	struct work_struct reap;
	u8 pdata[KIP_PDATA_ROOM];
	unsigned int pdata_len;
	struct kip_peer *peer;

	struct kip_poller *poller;
	struct list_head poll_entry;
	struct ib_pd *pd;
	struct ib_cq *cq;
	struct ib_wc wc[KIP_RX_BATCH];

	u64 rx_bytes;
	struct kip_reaping *reaping;
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
	bool is_established;
	bool is_up;
	bool is_broken;
	unsigned long broken_at;
	bool has_heard;
	bool is_blocked;
	unsigned long blocked_at;
	u32 seen_tail;
	unsigned long seen_at;
	unsigned long heard_at;
	unsigned long sent_at;
	unsigned long probed_at;
	unsigned long data_at;
};

/**
 * struct kip_reaping - memory of connections that were given up; outlives the interface
 * @refs: the interface, and each such connection
 * @bytes: of their receives that are not freed yet
 */
struct kip_reaping {
	refcount_t refs;
	atomic64_t bytes;
};

struct kip_reaping *kip_reaping_alloc(void);
void kip_reaping_put(struct kip_reaping *reaping);

struct kip_conn *kip_conn_listen(struct kip_dev *dev);
struct kip_conn *kip_conn_resolve(struct kip_dev *dev, const u8 *lladdr);
int kip_conn_connect(struct kip_conn *conn, const struct kip_wire_pdata *pdata);
int kip_conn_accept(struct kip_conn *conn, const struct kip_wire_pdata *pdata);
void kip_conn_reject(struct kip_conn *conn, const struct kip_wire_pdata *pdata);
void kip_conn_give_up(struct kip_dev *dev, struct kip_conn *conn);

void kip_conn_note(struct kip_conn *conn, unsigned int events);
void kip_conn_break(struct kip_conn *conn);

int kip_conn_qp_make(struct kip_dev *dev, struct kip_conn *conn);
void kip_conn_qp_free(struct kip_conn *conn);

#endif /* KIP_CONN_H */
