// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Queue pairs.
 *
 * The engines run under the socket lock, wherever they are called for: in TCP's
 * callbacks, in the poster's context, in the QP's tasklet, or, when a process owns the
 * socket at that moment, in the QP's work. Everything that ends a QP goes through
 * kiw_qp_event(): it writes the state, which stops the engines at once, and leaves the
 * rest to the work, which does it in order and never twice at a time:
 *
 *   SHUTDOWN  start the clock of an orderly close and let the engines finish
 *   FLUSH     with the socket lock held, so that no engine runs: give all work back
 *   DROP      end the stream, with a reset if an FPDU was cut in the middle
 *   REPORT    tell the connection: its closed() is the last that it hears
 *
 * Lifetime: the consumer's reference ends with kiw_qp_uninit(), which aborts the QP, lets
 * the work finish, and waits for the references of iw_cm and of the endpoint. Those are
 * given up because of the report, so the wait ends. What may still point to the QP after
 * that: the socket (its owner was changed under its lock when the stream was ended), the
 * tasklet and the delayed works (killed below), the work (flushed last, nothing can
 * queue it any more).
 */
#include "qp.h"

#include <linux/slab.h>

#include "proto/term.h"
#include "trace.h"

/* An orderly close may take this long before the stream is reset */
#define QP_CLOSE_MS	5000

/* How often receives that a process posts in ERROR are looked for */
#define QP_SWEEP_MS	100

/* What a step leaves to the work; the rest is done by whoever raises the event */
#define QP_WORK_ACTIONS	(KIW_QPA_FLUSH | KIW_QPA_SHUTDOWN | KIW_QPA_DROP | KIW_QPA_REPORT | \
			 KIW_QPA_EVENT_FATAL)

/* Beside the %KIW_QPA_ bits: run the engines in process context */
#define QP_TODO_RUN	BIT(16)

static const char *qp_dev_name(const struct kiw_qp *qp)
{
	return dev_name(&qp->ib.device->dev);
}

/* Events and state */

static void qp_queue_todo(struct kiw_qp *qp, unsigned long todo)
{
	unsigned long flags;

	spin_lock_irqsave(&qp->lock, flags);
	qp->todo |= todo;
	spin_unlock_irqrestore(&qp->lock, flags);
	queue_work(qp->wq, &qp->work);
}

static unsigned long qp_take_todo(struct kiw_qp *qp)
{
	unsigned long flags, todo;

	spin_lock_irqsave(&qp->lock, flags);
	todo = qp->todo;
	qp->todo = 0;
	spin_unlock_irqrestore(&qp->lock, flags);
	return todo;
}

/* The only writer of the state. */
static void qp_set_state(struct kiw_qp *qp, enum kiw_qp_state state)
{
	lockdep_assert_held(&qp->lock);
	smp_store_release(&qp->state, state);
}

/**
 * kiw_qp_event() - something happens to a QP
 * @qp: the QP
 * @event: what
 *
 * Writes the state as proto/qp_fsm.c says and starts what follows from it.
 *
 * Context: any.
 * Return: 0, or -EINVAL when this must not happen in the QP's state.
 */
int kiw_qp_event(struct kiw_qp *qp, enum kiw_qp_event event)
{
	struct kiw_qp_step step;
	enum kiw_qp_state old;
	unsigned long flags;

	spin_lock_irqsave(&qp->lock, flags);
	old = qp->state;
	step = kiw_qp_fsm(old, event);
	if (step.legal)
		qp_set_state(qp, step.next);
	qp->todo |= step.actions & QP_WORK_ACTIONS;
	spin_unlock_irqrestore(&qp->lock, flags);

	if (!step.legal)
		return -EINVAL;
	if (step.next != old)
		trace_kiw_qp_state(qp_dev_name(qp), qp->ib.qp_num, kiw_qp_state_name(old),
				   kiw_qp_event_name(event), kiw_qp_state_name(step.next));
	if (step.actions & QP_WORK_ACTIONS)
		queue_work(qp->wq, &qp->work);
	return 0;
}

/**
 * kiw_qp_event_sync() - something happens to a QP, and its consequences are waited for
 * @qp: the QP
 * @event: what
 *
 * Context: process, may sleep; not from the connection's callbacks.
 * Return: as kiw_qp_event().
 */
int kiw_qp_event_sync(struct kiw_qp *qp, enum kiw_qp_event event)
{
	int ret = kiw_qp_event(qp, event);

	flush_work(&qp->work);
	return ret;
}

/**
 * kiw_qp_fault() - the stream cannot go on: tell the peer
 * @qp: the QP
 * @perr: why
 * @head: the offending FPDU from its ULPDU_Length on, or NULL
 * @head_len: octets of @head
 *
 * The Terminate goes out as the next FPDU (RFC 5040 4.8); nothing is placed after this.
 *
 * Context: socket lock held, BHs off.
 */
void kiw_qp_fault(struct kiw_qp *qp, enum kiw_perr perr, const u8 *head, size_t head_len)
{
	static const enum kiw_stat layer_stat[] = {
		[KIW_LAYER_RDMAP]	= KIW_STAT_RX_RDMAP_ERRORS,
		[KIW_LAYER_DDP]		= KIW_STAT_RX_DDP_ERRORS,
		[KIW_LAYER_LLP]		= KIW_STAT_RX_MPA_ERRORS,
	};
	const struct kiw_perr_info *info = kiw_perr_info(perr);
	u8 opcode = head_len > 3 ? head[3] & KIW_RDMAP_OPCODE_MASK : 0;

	if (kiw_qp_state(qp) != KIW_QPS_RTS && kiw_qp_state(qp) != KIW_QPS_CLOSING)
		return;
	if (head)
		kiw_count(qp->stats, perr == KIW_PERR_MPA_CRC ? KIW_STAT_RX_CRC_ERRORS :
								layer_stat[info->layer]);
	trace_kiw_perr_tx(qp_dev_name(qp), qp->ib.qp_num, info->text, info->layer, info->etype,
			  info->code, opcode);
	qp->term_layer = info->layer;
	qp->term_etype = info->etype;
	qp->term_code = info->code;
	qp->has_term = true;
	qp->tx.term_len = kiw_term_encode(qp->tx.term, perr, head, head_len);
	kiw_qp_event(qp, KIW_QPE_FAULT);
	kiw_qp_run_soon(qp);
}

/* Running the engines */

static void qp_run(struct kiw_qp *qp)
{
	kiw_rx_run(qp);
	kiw_tx_run(qp);
}

/* Process context: also works when the socket has an owner, by waiting for it. */
static void qp_run_sleeping(struct kiw_qp *qp)
{
	if (!qp->ks || !kiw_sock_lock(qp->ks))
		return;
	local_bh_disable();
	qp_run(qp);
	local_bh_enable();
	kiw_sock_unlock(qp->ks);
}

static void qp_bh(struct tasklet_struct *bh)
{
	struct kiw_qp *qp = from_tasklet(qp, bh, bh);

	if (!kiw_sock_try_lock_bh(qp->ks)) {
		qp_queue_todo(qp, QP_TODO_RUN);
		return;
	}
	qp_run(qp);
	kiw_sock_unlock_bh(qp->ks);
}

/**
 * kiw_qp_run_soon() - run the engines when the caller is done
 * @qp: the QP, with a stream
 *
 * Context: any; typically under the socket lock, in one of the engines.
 */
void kiw_qp_run_soon(struct kiw_qp *qp)
{
	tasklet_schedule(&qp->bh);
}

/**
 * kiw_qp_retry_later() - run the engines again after memory was short
 * @qp: the QP, with a stream
 *
 * Context: any.
 */
void kiw_qp_retry_later(struct kiw_qp *qp)
{
	qp_queue_todo(qp, QP_TODO_RUN);
}

static void qp_kick_stream(struct kiw_qp *qp)
{
	/* A consumer may hold its locks with interrupts off: BHs cannot run behind them. */
	if (in_hardirq() || irqs_disabled()) {
		kiw_qp_run_soon(qp);
		return;
	}
	local_bh_disable();
	if (kiw_sock_try_lock_bh(qp->ks)) {
		kiw_tx_run(qp);
		kiw_sock_unlock_bh(qp->ks);
	} else {
		qp_queue_todo(qp, QP_TODO_RUN);
	}
	local_bh_enable();
}

/**
 * kiw_qp_kick() - there is something in the send queue
 * @qp: the QP
 *
 * Sends in the caller's context if that may be. Completions are announced from a
 * tasklet, hence never inside the consumer's own call.
 *
 * Context: any; no lock of this driver held.
 */
void kiw_qp_kick(struct kiw_qp *qp)
{
	switch (kiw_qp_state(qp)) {
	case KIW_QPS_IDLE:
		break;
	case KIW_QPS_ERROR:
		qp_queue_todo(qp, KIW_QPA_FLUSH);
		break;
	default:
		qp_kick_stream(qp);
	}
}

/* Posting */

/**
 * kiw_qp_post_send() - kernel consumers post send work
 * @qp: the QP
 * @wr: a list of work requests
 * @bad_wr: set to the first that was not taken, on failure
 *
 * Context: any.
 * Return: 0, or -errno: -EINVAL: malformed, or no connection yet; -ENOMEM: queue full;
 * -EOPNOTSUPP: not an operation of this device.
 */
int kiw_qp_post_send(struct kiw_qp *qp, const struct ib_send_wr *wr,
		     const struct ib_send_wr **bad_wr)
{
	int ret = kiw_qp_state(qp) == KIW_QPS_IDLE ? -EINVAL : 0;
	const struct ib_send_wr *first = wr;

	while (wr && !ret) {
		ret = kiw_sq_post(&qp->sq, wr);
		if (!ret)
			wr = wr->next;
	}
	if (ret)
		*bad_wr = wr;
	if (wr != first)
		kiw_qp_kick(qp);
	return ret;
}

/**
 * kiw_qp_post_recv() - kernel consumers post receives
 * @qp: the QP, without a shared receive queue
 * @wr: a list of work requests
 * @bad_wr: set to the first that was not taken, on failure
 *
 * Context: any.
 * Return: 0, or -errno: -EINVAL: malformed; -ENOMEM: queue full.
 */
int kiw_qp_post_recv(struct kiw_qp *qp, const struct ib_recv_wr *wr,
		     const struct ib_recv_wr **bad_wr)
{
	int ret = qp->srq ? -EINVAL : 0;

	while (wr && !ret) {
		ret = kiw_rq_post(&qp->rq, wr);
		if (!ret)
			wr = wr->next;
	}
	if (ret)
		*bad_wr = wr;
	if (kiw_qp_state(qp) == KIW_QPS_ERROR)
		qp_queue_todo(qp, KIW_QPA_FLUSH);
	return ret;
}

/**
 * kiw_qp_fetch_recv() - take the next receive, from the QP's own queue or the shared one
 * @qp: the QP
 * @wqe: filled
 *
 * Context: socket lock held, BHs off.
 * Return: 1: @wqe is filled; 0: there is none; -EINVAL: it was malformed.
 */
int kiw_qp_fetch_recv(struct kiw_qp *qp, struct kiw_rwqe *wqe)
{
	if (qp->srq)
		return kiw_srq_fetch(qp->srq, wqe);
	return kiw_rq_fetch(&qp->rq, wqe);
}

/**
 * kiw_qp_post_completion() - tell the consumer about a work request
 * @qp: the QP
 * @cq: its send or receive CQ
 * @wc: what to tell
 *
 * A completion that finds no place is lost, and with it what the consumer could know of
 * the QP: it is aborted.
 *
 * Context: socket lock held if there is a stream, BHs off.
 */
void kiw_qp_post_completion(struct kiw_qp *qp, struct kiw_cq *cq, const struct kiw_wc *wc)
{
	if (!kiw_cq_post(cq, wc))
		kiw_qp_event(qp, KIW_QPE_ABORT);
}

/* The work */

static void qp_async_event(struct kiw_qp *qp, enum ib_event_type type)
{
	struct ib_event event = {
		.device = qp->ib.device,
		.element.qp = &qp->ib,
		.event = type,
	};

	if (qp->ib.event_handler)
		qp->ib.event_handler(&event, qp->ib.qp_context);
}

/* Return: whether what was being sent was cut in the middle. */
static bool qp_flush(struct kiw_qp *qp)
{
	bool locked = qp->ks && kiw_sock_lock(qp->ks);
	bool was_cut = qp->tx.buf.len || qp->tx.kind != KIW_TX_NONE;
	bool more;

	local_bh_disable();
	more = kiw_tx_flush(qp);
	more |= kiw_rx_flush(qp);
	local_bh_enable();
	if (locked)
		kiw_sock_unlock(qp->ks);
	if (qp->is_ending)
		return was_cut;
	if (more)
		qp_queue_todo(qp, KIW_QPA_FLUSH);
	else if (qp->is_user)
		mod_delayed_work(qp->wq, &qp->sweep, msecs_to_jiffies(QP_SWEEP_MS));
	return was_cut;
}

/* The QP is in ERROR and flushed: let the stream end, say so, exactly once. */
static void qp_report(struct kiw_qp *qp, bool reset)
{
	bool is_dead = kiw_sock_status(qp->ks) == KIW_SOCK_DEAD;

	cancel_delayed_work(&qp->close_timer);
	kiw_sock_drop(qp->ks, reset || is_dead);
	qp->conn.ops->closed(qp->conn.conn);
}

/* A consumer that drains a shared receive queue waits for this. */
static void qp_last_wqe(struct kiw_qp *qp)
{
	if (!qp->srq || qp->has_left_srq)
		return;
	qp->has_left_srq = true;
	qp_async_event(qp, IB_EVENT_QP_LAST_WQE_REACHED);
}

static void qp_work(struct work_struct *work)
{
	struct kiw_qp *qp = container_of(work, struct kiw_qp, work);
	unsigned long todo = qp_take_todo(qp);
	bool was_cut = false;

	if (todo & KIW_QPA_SHUTDOWN && kiw_qp_state(qp) != KIW_QPS_ERROR)
		mod_delayed_work(qp->wq, &qp->close_timer, msecs_to_jiffies(QP_CLOSE_MS));
	if (todo & (KIW_QPA_SHUTDOWN | QP_TODO_RUN))
		qp_run_sleeping(qp);
	if (todo & KIW_QPA_FLUSH)
		was_cut = qp_flush(qp);
	if (todo & KIW_QPA_EVENT_FATAL)
		qp_async_event(qp, IB_EVENT_QP_FATAL);
	if (todo & KIW_QPA_FLUSH)
		qp_last_wqe(qp);
	if (todo & KIW_QPA_REPORT)
		qp_report(qp, was_cut && todo & KIW_QPA_DROP);
}

static void qp_close_timer(struct work_struct *work)
{
	struct kiw_qp *qp = container_of(to_delayed_work(work), struct kiw_qp, close_timer);

	kiw_qp_event(qp, KIW_QPE_LLP_LOST);
}

/*
 * The stock provider rings no doorbell for receives, so a process that posts one in
 * ERROR would wait for its completion for ever.
 */
static void qp_sweep(struct work_struct *work)
{
	struct kiw_qp *qp = container_of(to_delayed_work(work), struct kiw_qp, sweep);

	if (kiw_qp_state(qp) == KIW_QPS_ERROR)
		qp_queue_todo(qp, KIW_QPA_FLUSH);
}

/* Connecting */

static void qp_forget_stream(struct kiw_qp *qp)
{
	kiw_tx_uninit(qp);
	if (qp->ks)
		kiw_sock_put(qp->ks);
	qp->ks = NULL;
}

/**
 * kiw_qp_connect() - MPA startup hands an established stream over
 * @qp: the QP, in IDLE
 * @params: what was agreed on; copied
 *
 * The QP becomes the owner of the stream and takes a reference of its own; its engines
 * stand still until kiw_qp_start(). From success on, params->ops->closed() will be called
 * exactly once.
 *
 * Context: process, may sleep; serialised by the caller per QP.
 * Return: 0; -EINVAL: the QP is not idle; -ENOMEM.
 */
int kiw_qp_connect(struct kiw_qp *qp, const struct kiw_conn_params *params)
{
	int ret;

	if (kiw_qp_state(qp) != KIW_QPS_IDLE || qp->ks)
		return -EINVAL;
	qp->conn = *params;
	ret = kiw_tx_init(qp);
	if (ret)
		return ret;
	kiw_rx_init(qp);
	qp->ks = kiw_sock_get(params->ks);
	ret = kiw_qp_event(qp, KIW_QPE_CONNECT);
	if (ret) {
		qp_forget_stream(qp);
		return ret;
	}
	kiw_sock_set_owner(qp->ks, &kiw_qp_sock_ops, qp);
	return 0;
}

/**
 * kiw_qp_start() - full operation begins
 * @qp: the QP, after kiw_qp_connect()
 *
 * Starts both engines and uses what has arrived already, which TCP does not announce
 * again.
 *
 * Context: process, may sleep.
 */
void kiw_qp_start(struct kiw_qp *qp)
{
	if (!kiw_sock_lock(qp->ks)) {
		kiw_qp_event(qp, KIW_QPE_LLP_LOST);
		return;
	}
	qp->rx.is_running = true;
	qp->tx.is_running = true;
	local_bh_disable();
	qp_run(qp);
	local_bh_enable();
	kiw_sock_unlock(qp->ks);
}

/* Lifetime */

/**
 * kiw_qp_init() - set up what a QP needs beside its queues
 * @qp: zeroed; @is_user, @sig_all, @mrs, @stats, the CQs and the queues are filled in
 * @wq: work queue of the device
 *
 * Context: process.
 * Return: 0.
 */
int kiw_qp_init(struct kiw_qp *qp, struct workqueue_struct *wq)
{
	kref_init(&qp->ref);
	init_completion(&qp->gone);
	spin_lock_init(&qp->lock);
	qp->state = KIW_QPS_IDLE;
	qp->wq = wq;
	INIT_WORK(&qp->work, qp_work);
	INIT_DELAYED_WORK(&qp->sweep, qp_sweep);
	INIT_DELAYED_WORK(&qp->close_timer, qp_close_timer);
	tasklet_setup(&qp->bh, qp_bh);
	kiw_count(qp->stats, KIW_STAT_QP_CREATED);
	return 0;
}

static void qp_gone(struct kref *ref)
{
	complete(&container_of(ref, struct kiw_qp, ref)->gone);
}

/**
 * kiw_qp_get() - take a reference
 * @qp: the QP
 *
 * Context: any.
 */
void kiw_qp_get(struct kiw_qp *qp)
{
	kref_get(&qp->ref);
}

/**
 * kiw_qp_put() - give a reference back
 * @qp: the QP
 *
 * Context: any.
 */
void kiw_qp_put(struct kiw_qp *qp)
{
	kref_put(&qp->ref, qp_gone);
}

/* Nothing runs for this QP any more, nor will. */
static void qp_quiesce(struct kiw_qp *qp)
{
	if (qp->ks)
		tasklet_kill(&qp->bh);
	cancel_delayed_work_sync(&qp->close_timer);
	/* The work and the sweep start each other; with this flag they do not. */
	WRITE_ONCE(qp->is_ending, true);
	flush_work(&qp->work);
	cancel_delayed_work_sync(&qp->sweep);
	flush_work(&qp->work);
}

/**
 * kiw_qp_reset() - take a QP back to its beginning
 * @qp: the QP, in IDLE or ERROR
 *
 * Context: process, may sleep; serialised by ib_core with the other calls for the QP.
 * Return: 0, or -EINVAL in any other state.
 */
int kiw_qp_reset(struct kiw_qp *qp)
{
	int ret;

	if (kiw_qp_state(qp) != KIW_QPS_IDLE && kiw_qp_state(qp) != KIW_QPS_ERROR)
		return -EINVAL;
	qp_quiesce(qp);
	qp_forget_stream(qp);
	ret = kiw_qp_event(qp, KIW_QPE_RESET);
	qp->is_ending = false;
	qp->has_left_srq = false;
	qp->has_term = false;
	return ret;
}

/**
 * kiw_qp_uninit() - end a QP
 * @qp: the QP; no consumer uses it any more
 *
 * Aborts what goes on, gives all work back, waits until nobody refers to the QP.
 *
 * Context: process, may sleep.
 */
void kiw_qp_uninit(struct kiw_qp *qp)
{
	kiw_qp_event_sync(qp, KIW_QPE_ABORT);
	kiw_qp_put(qp);
	wait_for_completion(&qp->gone);
	qp_quiesce(qp);
	qp_forget_stream(qp);
	kiw_count(qp->stats, KIW_STAT_QP_DESTROYED);
}
