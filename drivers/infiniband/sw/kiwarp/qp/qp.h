/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Queue pairs: the object, its state, its faults.
 *
 * Owns: &struct kiw_qp. Once it is set up, only qp_set_state() writes its state, as the table in
 * proto/qp_fsm.c says. kiw_qp_handle_event() accepts events in any context. Actions that may sleep
 * (shutting the stream down, flushing, reporting) are left to the QP's work item or a reset, which
 * execute them in order (run/qp_work.c). See Documentation/lifetime.rst.
 */
#ifndef KIW_QP_H
#define KIW_QP_H

#include <linux/bitfield.h>
#include <linux/completion.h>
#include <linux/interrupt.h>
#include <linux/kref.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <rdma/ib_verbs.h>

#include "caller.h"
#include "mem/mr.h"
#include "policy.h"
#include "proto/large.h"
#include "proto/qp_fsm.h"
#include "queue/cq.h"
#include "queue/srq.h"
#include "queue/wr.h"
#include "run/doorbell.h"
#include "rx/rx.h"
#include "sock/sock.h"
#include "stats.h"
#include "tx/tx.h"

struct kiw_qp;

/**
 * struct kiw_conn_ops - what a QP reports to its connection
 * @spoken: the first valid FPDU has arrived, so the peer is in full operation; called at most
 *	once; socket lock held, BHs off, any context; must defer
 * @closed: the QP is done with the stream, in ERROR and flushed; called exactly once after a
 *	successful kiw_qp_connect(); process context, with the QP's mutex held
 */
struct kiw_conn_ops {
	void (*spoken)(void *conn);
	void (*closed)(void *conn);
};

/**
 * struct kiw_conn_params - what MPA startup agreed on
 * @ks: the stream; the QP takes its own reference
 * @initiator: this end sent the Request
 * @crc: CRC in force, both directions
 * @tx_markers: insert markers: the peer asked for them, or the revision is 0
 * @rx_markers: check and strip markers: this end asked for them, or the revision is 0
 * @version: DDP and RDMAP version on the wire: 1, or 0 in permissive RDMAC mode
 * @opcodes: opcodes of RDMAP in use, %KIW_RDMAP_OPCODES_5040 or _7306
 * @ird: inbound RDMA Reads the peer may have outstanding
 * @ord: RDMA Reads this end may have outstanding
 * @rtr: kind of RTR to send first, one of %KIW_RTR_WRITE, _READ and _SEND, 0: none (initiator)
 * @expect_rtr: the peer's first FPDU may be an empty Send as RTR, which the consumer does not
 *	see (responder)
 * @fpdus: the policy about large FPDUs
 * @zero_copy: the policy about lending pages to TCP
 * @ops: the connection's callbacks
 * @conn: passed to @ops
 */
struct kiw_conn_params {
	struct kiw_sock *ks;
	bool initiator;
	bool crc;
	bool tx_markers;
	bool rx_markers;
	u8 version;
	u8 opcodes;
	u16 ird;
	u16 ord;
	u8 rtr;
	bool expect_rtr;
	enum kiw_fpdus fpdus;
	enum kiw_zero_copy zero_copy;
	const struct kiw_conn_ops *ops;
	void *conn;
};

/**
 * struct kiw_qp - a queue pair
 * @ib: the core's part
 * @ref: reference count; destroy waits until the last reference is dropped
 * @unreferenced: completed when the last reference is dropped
 * @owner: the creator, which may use the QP through rdma_cm
 * @memcg: memory cgroup of the process that created the QP; charged for the slots of the queues in
 *	@tx that are allocated later; referenced; NULL for a kernel consumer
 * @mrs: the device's STag table
 * @stats: the device's counters
 * @wq: the device's workqueue
 * @engine_wq: the device's workqueue for @engine_work
 * @scq: CQ for sends
 * @rcq: CQ for receives
 * @srq: shared receive queue, or NULL
 * @sq: send queue
 * @rq: receive queue, unless @srq
 * @user_sq: user ABI: mmap entry of the send ring
 * @user_rq: user ABI: mmap entry of the receive ring
 * @is_user: the QP of a process, which maps the rings
 * @is_memalloc: if it connects, its stream may use the kernel's memory reserves
 * @has_rfc7306: its queues have room for immediate data and atomics
 * @sig_all: every send WR is signaled
 * @idle_state: RESET, INIT or RTR; all three are %KIW_QPS_IDLE and differ only for the consumer
 * @access: enum ib_access_flags of the QP, which limit what the peer may access
 * @lock: protects @state and @todo; irq-safe; may be taken under the socket lock
 * @state: &enum kiw_qp_state
 * @todo: %KIW_QPA_ and %KIW_QP_TODO_ bits for @work to execute
 * @work: executes @todo, flushes, reports; process context; never runs concurrently with itself
 * @engine_work: runs both engines after softirqs gave way, on their CPU
 * @takeover: lets @work run the engines if @engine_work does not begin
 * @again: queues @work again after a delay, because memory was short or to look for receives
 *	posted in ERROR
 * @close_timer: limits how long an orderly close may take
 * @bh: runs both engines when the caller cannot run them itself
 * @doorbell: coalesces the doorbells of a process
 * @mutex: serialises connecting, starting, resetting and @work; protects changes of @ks, @conn,
 *	@sweep_ms, @has_left_srq and @is_ending; taken before the socket lock
 * @ks: the stream; set by kiw_qp_connect(), cleared when that fails and when the QP is reset to
 *	IDLE or destroyed; the engines use it under the socket lock
 * @conn: the parameters that MPA startup negotiated; set before @ks, then only read
 * @sweep_ms: delay until the next look for receives posted in ERROR, in milliseconds
 * @has_left_srq: IB_EVENT_QP_LAST_WQE_REACHED was raised
 * @is_ending: the QP is being destroyed, so @work starts nothing new
 * @startups: endpoints that are connecting for this QP
 * @term: the Terminate that ended the stream, for `rdma res show` and failed completions:
 *	%KIW_QP_TERM_ bits; a single word, so a reader without a lock sees either all of it or
 *	nothing
 * @fault_event: &enum ib_event_type that reports to the consumer why a fault ended the stream; a
 *	single byte, which @work reads without the socket lock
 * @gave_way: @engine_work or @work runs the engines next; until then TCP's callbacks and @bh leave
 *	them alone
 * @burst_start: start of the current burst, in which softirqs run the engines without a pause, in
 *	jiffies
 * @burst_last: last time softirqs were to run the engines, in jiffies
 * @tx: transmit engine
 * @rx: receive engine
 */
struct kiw_qp {
	/* The core's part, and references: no lock */
	struct ib_qp ib;
	struct kref ref;
	struct completion unreferenced;

	/* Set when the QP is created, then only read; each queue has its own lock */
	struct kiw_owner owner;
	struct mem_cgroup *memcg;
	struct kiw_mr_table *mrs;
	struct kiw_stats *stats;
	struct workqueue_struct *wq;
	struct workqueue_struct *engine_wq;
	struct kiw_cq *scq;
	struct kiw_cq *rcq;
	struct kiw_srq *srq;
	struct kiw_sq sq;
	struct kiw_rq rq;
	struct rdma_user_mmap_entry *user_sq;
	struct rdma_user_mmap_entry *user_rq;
	bool is_user;
	bool is_memalloc;
	bool has_rfc7306;
	bool sig_all;

	/* Set by the consumer when it modifies the QP: no lock */
	u8 idle_state;
	int access;

	/* The state, and pending actions: @lock */
	spinlock_t lock;
	enum kiw_qp_state state;
	unsigned long todo;

	/* These execute the actions and run the engines: set up once, no lock */
	struct work_struct work;
	struct work_struct engine_work;
	struct delayed_work takeover;
	struct delayed_work again;
	struct delayed_work close_timer;
	struct tasklet_struct bh;
	struct kiw_doorbell doorbell;

	/* The connection, from being made to being dropped: @mutex */
	struct mutex mutex;
	struct kiw_sock *ks;
	struct kiw_conn_params conn;
	unsigned int sweep_ms;
	bool has_left_srq;
	bool is_ending;

	/* Connections being made: the device's @startups_lock */
	struct list_head startups;

	/* Both engines: the socket lock or, without a socket, @mutex */
	u32 term;
	u8 fault_event;
	bool gave_way;
	unsigned long burst_start;
	unsigned long burst_last;

	/* The transmit engine: likewise */
	struct kiw_tx tx;

	/* The receive engine: likewise */
	struct kiw_rx rx;
};

static inline struct kiw_qp *to_kiw_qp(struct ib_qp *ibqp)
{
	return container_of(ibqp, struct kiw_qp, ib);
}

/* Does the connection have the messages of RFC 7306? */
static inline bool kiw_qp_is_extended(const struct kiw_qp *qp)
{
	return qp->conn.opcodes == KIW_RDMAP_OPCODES_7306;
}

static inline enum kiw_qp_state kiw_qp_state(const struct kiw_qp *qp)
{
	/* Pairs with the release in qp_set_state(): a reader that sees RTS also sees the stream. */
	return smp_load_acquire(&qp->state);
}

/* Layout of &struct kiw_qp.term; 0: no Terminate. Consumers see it (Documentation/uapi.rst). */
#define KIW_QP_TERM_SENT	BIT(24)
#define KIW_QP_TERM_RECEIVED	BIT(25)
#define KIW_QP_TERM_LAYER	GENMASK(23, 16)
#define KIW_QP_TERM_ETYPE	GENMASK(15, 8)
#define KIW_QP_TERM_CODE	GENMASK(7, 0)

static inline void kiw_qp_note_term(struct kiw_qp *qp, u32 direction, u8 layer, u8 etype, u8 code)
{
	WRITE_ONCE(qp->term, direction | FIELD_PREP(KIW_QP_TERM_LAYER, layer) |
			     FIELD_PREP(KIW_QP_TERM_ETYPE, etype) |
			     FIELD_PREP(KIW_QP_TERM_CODE, code));
}

/* In addition to the %KIW_QPA_ bits: run the engines in process context */
#define KIW_QP_TODO_RUN	BIT(16)
/* Likewise: a CQ of the QP was overrun */
#define KIW_QP_TODO_FATAL	BIT(17)
/* Likewise: @again of the QP has expired */
#define KIW_QP_TODO_AGAIN	BIT(18)

/* Any context */
void kiw_qp_get(struct kiw_qp *qp);
void kiw_qp_put(struct kiw_qp *qp);
void kiw_qp_todo(struct kiw_qp *qp, unsigned long todo);
int kiw_qp_handle_event(struct kiw_qp *qp, enum kiw_qp_event event);

/*
 * Socket lock held, BHs off; kiw_qp_run_soon() and kiw_qp_retry_later(): any context;
 * kiw_qp_post_completion() and kiw_qp_fault() also without a socket
 */
bool kiw_qp_gives_way(struct kiw_qp *qp);
void kiw_qp_run_soon(struct kiw_qp *qp);
void kiw_qp_retry_later(struct kiw_qp *qp);
void kiw_qp_fault(struct kiw_qp *qp, enum kiw_perr perr, const u8 *head, size_t head_len);
int kiw_qp_fetch_recv(struct kiw_qp *qp, struct kiw_rwqe *wqe);
void kiw_qp_post_completion(struct kiw_qp *qp, struct kiw_cq *cq, struct kiw_wc *wc);

#endif /* KIW_QP_H */
