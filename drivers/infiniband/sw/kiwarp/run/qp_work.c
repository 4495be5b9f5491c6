// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Queue pairs: their work item and tasklet, connecting, resetting, lifetime.
 *
 * This file is above the engines and runs them. They run under the socket lock: in TCP's
 * callbacks, for a poster (qp_post.c), in the QP's tasklet and in kiw_qp_start(). If softirqs give
 * way, they run in the engine work item; if that does not begin, a process owns the socket at that
 * moment or memory was short, in the QP's work item or a reset. The work item also executes the
 * actions of the state machine, in the order of their bits (proto/qp_fsm.h), and never runs
 * concurrently with itself:
 *
 *   CLEAN        forget the stream, drop posted work requests
 *   SHUTDOWN     start the timer of an orderly close and let the engines finish
 *   FINISH       the QP was aborted in TERMINATE, or TCP has had no room for too long: give it the
 *                rest of the batch and the Terminate, unless it has them
 *   FLUSH        with the socket lock held if there is a socket, so that no engine runs: complete
 *                work as flushed
 *   EVENT_FATAL  raise the consumer's asynchronous event
 *   DROP         with REPORT: reset the stream instead of closing it in order, if a batch is
 *                unfinished, or a message that no Terminate has ended
 *   REPORT       release the stream and call the connection's last callback, closed()
 *
 * qp_act() executes the actions with the QP's mutex held, for the work item or for
 * kiw_qp_reset(). A QP enters RTS and leaves ERROR only with the mutex held. So a holder that
 * finds IDLE or ERROR may execute pending actions, and no further REPORT becomes pending until the
 * holder drops the mutex.
 *
 * Lifetime: kiw_qp_uninit() ends the consumer's reference. It aborts the QP, lets the work item
 * finish, and waits until iw_cm and the endpoints have dropped their references, which they do when
 * the connection ends. By then the socket no longer points to the QP: its owner was changed under
 * the socket lock when the stream was ended. The tasklet, the timers and the work items may
 * still use the QP. qp_quiesce() stops them in an order in which none can restart one that was
 * stopped before it.
 */
#include "qp_work.h"

#include <linux/memcontrol.h>
#include <linux/sched.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>

#include "qp/qp.h"
#include "tx/tx_loan.h"

/* Time limit for an orderly close; then the QP is aborted, and an unfinished stream is reset */
#define QP_CLOSE_MS	5000

/* Interval at which a process's rings are checked in ERROR; doubles up to the maximum */
#define QP_SWEEP_MIN_MS	50
#define QP_SWEEP_MAX_MS	1000

/* Entries of each queue that are flushed with BHs off, beside those that were taken out of it */
#define QP_FLUSH_BURST	256

/* Running the engines */

static void qp_run(struct kiw_qp *qp)
{
	kiw_rx_run(qp);
	kiw_tx_run(qp);
}

static void qp_run_softirq(void *arg)
{
	struct kiw_qp *qp = arg;

	if (!kiw_qp_gives_way(qp))
		qp_run(qp);
}

static void qp_run_process(void *arg)
{
	struct kiw_qp *qp = arg;

	qp->gave_way = false;
	qp->burst_start = jiffies;
	qp_run(qp);
}

static void qp_finish(void *arg)
{
	kiw_tx_finish(arg);
}

/*
 * Runs the engines, or one of them, in process context. Waits while the socket is owned, but does
 * not own it while the engines run: when TCP sends for an owner, it also processes the backlog, and
 * the engines would nest.
 */
static void qp_run_sleeping(struct kiw_qp *qp, void (*run)(void *arg))
{
	bool done = !qp->ks;

	while (!done) {
		local_bh_disable();
		done = kiw_sock_run_bh(qp->ks, run, qp);
		local_bh_enable();
		if (done || !kiw_sock_lock(qp->ks))
			return;
		kiw_sock_unlock(qp->ks);
	}
}

static void qp_bh(struct tasklet_struct *bh)
{
	struct kiw_qp *qp = from_tasklet(qp, bh, bh);
	struct kiw_sock *ks = READ_ONCE(qp->ks);

	if (ks && !kiw_sock_run_bh(ks, qp_run_softirq, qp))
		kiw_qp_todo(qp, KIW_QP_TODO_RUN);
}

static void qp_run_engine_work(void *arg)
{
	struct kiw_qp *qp = arg;

	cancel_delayed_work(&qp->takeover);
	qp_run_process(qp);
}

/* Without the mutex, which nobody should have to wait for because tasks keep the CPU from us */
static void qp_engine_work(struct work_struct *work)
{
	struct kiw_qp *qp = container_of(work, struct kiw_qp, engine_work);
	struct kiw_sock *ks;

	/* As in qp_kick_stream() */
	rcu_read_lock_bh();
	ks = READ_ONCE(qp->ks);
	if (ks && !kiw_sock_run_bh(ks, qp_run_engine_work, qp))
		kiw_qp_todo(qp, KIW_QP_TODO_RUN);
	rcu_read_unlock_bh();
}

/* Other tasks have kept the CPU from the engine work item. */
static void qp_takeover(struct work_struct *work)
{
	struct kiw_qp *qp = container_of(to_delayed_work(work), struct kiw_qp, takeover);

	kiw_qp_todo(qp, KIW_QP_TODO_RUN);
}

/* The work item */

/*
 * Take what is to be done, and the state that it belongs to. If the QP enters ERROR after that,
 * FLUSH and REPORT come together in the next round: a FLUSH ahead of the REPORT would hide from it
 * what was cut off.
 */
static unsigned long qp_take_todo(struct kiw_qp *qp, enum kiw_qp_state *state)
{
	unsigned long flags, todo;

	spin_lock_irqsave(&qp->lock, flags);
	todo = qp->todo;
	qp->todo = 0;
	*state = kiw_qp_state(qp);
	spin_unlock_irqrestore(&qp->lock, flags);
	return todo;
}

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

/*
 * A CQ of this QP was overrun. Without a stream or a socket, the event alone ends the QP. The same
 * holds for a responder to which the peer has not sent a valid FPDU: it sends none for a reason of
 * its own before that (RFC 5044 7.1.2).
 */
static void qp_fatal(struct kiw_qp *qp)
{
	if (qp->ks && kiw_sock_lock(qp->ks)) {
		local_bh_disable();
		if (!qp->tx.awaits_first_fpdu)
			kiw_qp_fault(qp, KIW_PERR_RDMAP_CATASTROPHIC, NULL, 0);
		local_bh_enable();
		kiw_sock_unlock(qp->ks);
	}
	kiw_qp_handle_event(qp, KIW_QPE_FATAL);
}

/*
 * Flush a limited number of entries, because a process may refill its rings. Softirqs and other
 * tasks can run between the bursts. The engines do not: the socket is owned, or there is none.
 * Return: true: there may be more.
 */
static bool qp_flush_queues(struct kiw_qp *qp)
{
	const u32 entries = max(qp->sq.size, qp->rq.size);
	bool more = true;
	u32 done;

	for (done = 0; more && done <= entries; done += QP_FLUSH_BURST) {
		local_bh_disable();
		more = kiw_tx_flush(qp, QP_FLUSH_BURST);
		more |= kiw_rx_flush(qp, QP_FLUSH_BURST);
		local_bh_enable();
		cond_resched();
	}
	return more;
}

/*
 * Get back what TCP was lent: the owner of a work request that is flushed may write to its memory,
 * and TCP must not send that. TCP can be made to give it back only by a reset.
 * Return: true: the stream was reset.
 */
static bool qp_end_loans(struct kiw_qp *qp)
{
	bool locked = qp->ks && kiw_sock_lock(qp->ks);
	bool has_loans;

	local_bh_disable();
	if (locked && kiw_loan_collect(qp))
		kiw_tx_taken(qp);
	has_loans = !list_empty(&qp->tx.loans);
	local_bh_enable();
	if (locked)
		kiw_sock_unlock(qp->ks);
	if (!has_loans)
		return false;
	kiw_sock_drop(qp->ks, true);
	local_bh_disable();
	kiw_txbuf_drop(&qp->tx.buf);
	local_bh_enable();
	kiw_loan_end_all(qp);
	return true;
}

/* Return: true if a batch remains unfinished, or a message that no Terminate has ended. */
static bool qp_flush(struct kiw_qp *qp)
{
	bool was_reset = qp_end_loans(qp);
	bool locked = qp->ks && kiw_sock_lock(qp->ks);
	bool was_cut = was_reset || qp->tx.buf.len ||
		       (qp->tx.kind != KIW_TX_NONE && !qp->tx.has_terminated);
	bool more = qp_flush_queues(qp);

	if (locked)
		kiw_sock_unlock(qp->ks);
	if (qp->is_ending)
		return was_cut;
	/* A process can refill its rings forever: flush them at intervals, not in a loop. */
	if (more && !qp->is_user)
		kiw_qp_todo(qp, KIW_QPA_FLUSH);
	else if (qp->is_user)
		mod_delayed_work(qp->wq, &qp->again, msecs_to_jiffies(qp->sweep_ms));
	return was_cut;
}

/*
 * The QP is in ERROR and flushed: end the stream and report that exactly once. @qp->ks is not NULL
 * here: each REPORT belongs to a stream, which is not forgotten before its REPORT is done.
 */
static void qp_report(struct kiw_qp *qp, bool reset)
{
	bool is_dead = kiw_sock_status(qp->ks) == KIW_SOCK_DEAD;

	/*
	 * If the timer expired late, it would end the next connection. Its handler does not take
	 * the mutex, so this cannot deadlock, and it only waits if the handler is running.
	 */
	cancel_delayed_work_sync(&qp->close_timer);
	kiw_sock_drop(qp->ks, reset || is_dead);
	qp->conn.ops->closed(qp->conn.conn);
}

/* Raise the event that a consumer waits for when it drains a QP with a shared receive queue. */
static void qp_last_wqe(struct kiw_qp *qp)
{
	if (!qp->srq || qp->has_left_srq)
		return;
	qp->has_left_srq = true;
	qp_async_event(qp, IB_EVENT_QP_LAST_WQE_REACHED);
}

/* What to do when @again has expired. In ERROR: look for receives, at growing intervals. */
static unsigned long qp_again_todo(struct kiw_qp *qp, enum kiw_qp_state state)
{
	if (state != KIW_QPS_ERROR)
		return KIW_QP_TODO_RUN;
	qp->sweep_ms = min(2 * qp->sweep_ms, QP_SWEEP_MAX_MS);
	return KIW_QPA_FLUSH;
}

/* From now on the engines do nothing when they are called, and call no callbacks. */
static void qp_stop_engines(struct kiw_qp *qp)
{
	bool locked;

	lockdep_assert_held(&qp->mutex);
	if (!qp->ks)
		return;
	/* Without a socket nothing runs the engines. */
	locked = kiw_sock_lock(qp->ks);
	qp->rx.is_running = false;
	qp->tx.is_running = false;
	if (locked)
		kiw_sock_unlock(qp->ks);
}

static void qp_forget_stream(struct kiw_qp *qp)
{
	struct kiw_sock *ks = qp->ks;

	lockdep_assert_held(&qp->mutex);
	if (!ks)
		return;
	qp_stop_engines(qp);
	WRITE_ONCE(qp->ks, NULL);
	/* Wait for qp_kick_stream(), qp_bh() and qp_engine_work(), which may have read it. */
	synchronize_rcu_expedited();
	kiw_tx_uninit(qp);
	kiw_sock_put(ks);
}

/*
 * For a reset, drop work requests that were posted but not started, without completions. A process
 * may continue to post, so the loops are bounded.
 */
static void qp_drop_posted(struct kiw_qp *qp)
{
	struct kiw_swqe swqe;
	struct kiw_rwqe rwqe;
	u32 n;

	for (n = 0; n < qp->sq.size && kiw_sq_fetch(&qp->sq, &swqe); n++)
		kiw_sq_done(&qp->sq);
	for (n = 0; n < qp->rq.size && kiw_rq_fetch(&qp->rq, &rwqe); n++)
		;
}

/*
 * Return to the initial state. Without a stream, these fields are only used with the mutex held,
 * except that a resource query reads @term.
 */
static void qp_clean(struct kiw_qp *qp)
{
	qp_forget_stream(qp);
	qp_drop_posted(qp);
	qp->has_left_srq = false;
	WRITE_ONCE(qp->term, 0);
	qp->fault_event = IB_EVENT_QP_FATAL;
	qp->sweep_ms = QP_SWEEP_MIN_MS;
}

/* Execute all that is pending; the actions of the state machine in the order of their bits. */
static void qp_act(struct kiw_qp *qp)
{
	enum kiw_qp_state state;
	unsigned long todo = qp_take_todo(qp, &state);
	bool is_over = state == KIW_QPS_ERROR;
	bool was_cut = false;

	lockdep_assert_held(&qp->mutex);
	if (todo & KIW_QPA_CLEAN)
		qp_clean(qp);
	if (todo & KIW_QP_TODO_AGAIN)
		todo |= qp_again_todo(qp, state);
	if (todo & KIW_QP_TODO_FATAL)
		qp_fatal(qp);
	if (todo & KIW_QPA_SHUTDOWN && kiw_qp_state(qp) != KIW_QPS_ERROR)
		mod_delayed_work(qp->wq, &qp->close_timer, msecs_to_jiffies(QP_CLOSE_MS));
	if (todo & (KIW_QPA_SHUTDOWN | KIW_QP_TODO_RUN))
		qp_run_sleeping(qp, qp_run_process);
	if (todo & KIW_QPA_FINISH)
		qp_run_sleeping(qp, qp_finish);
	/* The QP may have been reset since FLUSH was queued; then there is nothing to flush. */
	if (todo & KIW_QPA_FLUSH && is_over)
		was_cut = qp_flush(qp);
	if (todo & KIW_QPA_EVENT_FATAL)
		qp_async_event(qp, qp->fault_event);
	if (todo & KIW_QPA_FLUSH && is_over)
		qp_last_wqe(qp);
	if (todo & KIW_QPA_REPORT)
		qp_report(qp, was_cut && todo & KIW_QPA_DROP);
}

static void qp_work(struct work_struct *work)
{
	struct kiw_qp *qp = container_of(work, struct kiw_qp, work);
	/* Memory reclaim may wait for this QP, and releasing its stream may allocate memory. */
	unsigned int noio = memalloc_noio_save();

	mutex_lock(&qp->mutex);
	qp_act(qp);
	mutex_unlock(&qp->mutex);
	memalloc_noio_restore(noio);
}

static void qp_close_timer(struct work_struct *work)
{
	struct kiw_qp *qp = container_of(to_delayed_work(work), struct kiw_qp, close_timer);

	kiw_qp_handle_event(qp, KIW_QPE_ABORT);
}

/*
 * Tell the work item that the delay is over. Either the engines lacked memory or, in ERROR, a
 * process may have posted receives. The stock providers ring no doorbell for receives, so without
 * this they might never complete.
 */
static void qp_again(struct work_struct *work)
{
	struct kiw_qp *qp = container_of(to_delayed_work(work), struct kiw_qp, again);

	kiw_qp_todo(qp, KIW_QP_TODO_AGAIN);
}

/**
 * kiw_qp_handle_event_sync() - report an event to a QP's state machine and wait for its actions
 * @qp: the QP
 * @event: the event
 *
 * Context: process, may sleep; not from the connection's callbacks or the consumer's event handler.
 * Return: as kiw_qp_handle_event().
 */
int kiw_qp_handle_event_sync(struct kiw_qp *qp, enum kiw_qp_event event)
{
	int ret = kiw_qp_handle_event(qp, event);

	flush_work(&qp->work);
	return ret;
}

/* Connecting */

/* A poster looks at this under the same lock, once it has seen that there is a connection. */
static void qp_set_extended(struct kiw_qp *qp)
{
	spin_lock_irq(&qp->sq.lock);
	qp->sq.is_extended = kiw_qp_is_extended(qp);
	spin_unlock_irq(&qp->sq.lock);
}

/* The engines use STags for the new stream; those limited to the previous one are refused. */
static void qp_number_stream(struct kiw_qp *qp)
{
	u64 stream = kiw_mr_new_stream(qp->mrs);

	qp->tx.section.stream = stream;
	qp->rx.section.stream = stream;
}

/**
 * kiw_qp_connect() - take over an established stream from MPA startup
 * @qp: the QP, in IDLE
 * @params: the negotiated parameters; copied
 *
 * The QP becomes the owner of the stream and takes its own reference. Its engines are stopped
 * until kiw_qp_start(). After success, params->ops->closed() will be called exactly once.
 *
 * Context: process, may sleep; takes @qp->mutex. Several connections may try to get one QP: while
 * one of them has it, the others fail.
 * Return: 0; -EINVAL: the QP is not idle; -ENOMEM.
 */
int kiw_qp_connect(struct kiw_qp *qp, const struct kiw_conn_params *params)
{
	int ret = -EINVAL;

	mutex_lock(&qp->mutex);
	if (kiw_qp_state(qp) != KIW_QPS_IDLE || qp->ks)
		goto out;
	qp->conn = *params;
	qp_set_extended(qp);
	ret = kiw_tx_init(qp);
	if (ret)
		goto out;
	kiw_rx_init(qp);
	qp_number_stream(qp);
	qp->gave_way = false;
	/*
	 * Pairs with the reads of @ks in qp_bh() and qp_kick_stream(): code that sees the new
	 * stream, such as a tasklet left over from the previous one, also sees its engines
	 * stopped.
	 */
	smp_store_release(&qp->ks, kiw_sock_get(params->ks));
	ret = kiw_qp_handle_event(qp, KIW_QPE_CONNECT);
	if (ret)
		qp_forget_stream(qp);
	else
		kiw_sock_set_owner(qp->ks, &kiw_qp_sock_ops, qp);
out:
	mutex_unlock(&qp->mutex);
	return ret;
}

/* Is @conn the QP's current connection? After a reset the QP has none, or another one. */
static bool qp_is_of(const struct kiw_qp *qp, const void *conn)
{
	lockdep_assert_held(&qp->mutex);
	return qp->ks && qp->conn.conn == conn;
}

static void qp_start(struct kiw_qp *qp)
{
	if (kiw_qp_state(qp) == KIW_QPS_IDLE)
		return;
	/* Only qp_report() releases the socket of a stream that a QP has: the QP has ended. */
	if (!kiw_sock_lock(qp->ks))
		return;
	qp->rx.is_running = true;
	qp->tx.is_running = true;
	kiw_sock_unlock(qp->ks);
	qp_run_sleeping(qp, qp_run_process);
}

/**
 * kiw_qp_start() - start full operation
 * @qp: the QP, after kiw_qp_connect()
 * @conn: the connection that was passed to kiw_qp_connect()
 *
 * Starts both engines and processes the data that has arrived already, which TCP does not
 * announce again. If the QP was aborted in the meantime, that data is discarded, and nothing is
 * sent. Does nothing if the QP was reset.
 *
 * Context: process, may sleep.
 */
void kiw_qp_start(struct kiw_qp *qp, const void *conn)
{
	mutex_lock(&qp->mutex);
	if (qp_is_of(qp, conn))
		qp_start(qp);
	mutex_unlock(&qp->mutex);
}

/**
 * kiw_qp_abort_conn() - abort a connection
 * @qp: the QP, after kiw_qp_connect()
 * @conn: the connection that was passed to kiw_qp_connect()
 *
 * The connection's closed() follows, unless it was called before. Does nothing if the QP was reset
 * in the meantime: then closed() has already been called, and the QP's present stream, if any,
 * belongs to another connection.
 *
 * Context: process, may sleep; does not wait for the connection to end.
 */
void kiw_qp_abort_conn(struct kiw_qp *qp, const void *conn)
{
	mutex_lock(&qp->mutex);
	if (qp_is_of(qp, conn))
		kiw_qp_handle_event(qp, KIW_QPE_ABORT);
	mutex_unlock(&qp->mutex);
}

/* Lifetime */

/**
 * kiw_qp_init() - initialise the rest of a QP
 * @qp: zeroed; @is_user, @sig_all, @mrs, @stats, the CQs and the queues have been set
 * @wq: the device's workqueue
 * @engine_wq: the device's workqueue for the engines, per CPU
 *
 * Context: process; for a user QP, the process that creates it.
 */
void kiw_qp_init(struct kiw_qp *qp, struct workqueue_struct *wq,
		 struct workqueue_struct *engine_wq)
{
	kref_init(&qp->ref);
	init_completion(&qp->unreferenced);
	mutex_init(&qp->mutex);
	spin_lock_init(&qp->lock);
	INIT_LIST_HEAD(&qp->startups);
	qp->state = KIW_QPS_IDLE;
	qp->fault_event = IB_EVENT_QP_FATAL;
	qp->sweep_ms = QP_SWEEP_MIN_MS;
	qp->wq = wq;
	qp->engine_wq = engine_wq;
	if (qp->is_user)
		qp->memcg = get_mem_cgroup_from_mm(current->mm);
	INIT_WORK(&qp->work, qp_work);
	INIT_WORK(&qp->engine_work, qp_engine_work);
	INIT_DELAYED_WORK(&qp->takeover, qp_takeover);
	INIT_DELAYED_WORK(&qp->again, qp_again);
	INIT_DELAYED_WORK(&qp->close_timer, qp_close_timer);
	tasklet_setup(&qp->bh, qp_bh);
	kiw_doorbell_init(&qp->doorbell);
	kiw_count(qp->stats, KIW_STAT_QP_CREATED);
}

/*
 * Stop everything that was started for this QP, for good. The order matters:
 *
 * 1. Sources of new work. The doorbell's timer is the only one that still acts for the consumer.
 *    @is_ending keeps the work item from arming @again, and stopped engines do not arm it either.
 *    Only the socket's callbacks could still schedule the tasklet, and they have been removed.
 * 2. The timers. At most, they queue the work item.
 * 3. The tasklet. A callback of TCP may have scheduled it when the stream ended. It can still queue
 *    the work item, but nothing else.
 * 4. The engine work item. It is not waited for unless it runs: its CPU may be busy.
 * 5. The work item, which no longer starts anything.
 */
static void qp_quiesce(struct kiw_qp *qp)
{
	kiw_doorbell_stop(&qp->doorbell);
	mutex_lock(&qp->mutex);
	qp->is_ending = true;
	qp_stop_engines(qp);
	mutex_unlock(&qp->mutex);
	cancel_delayed_work_sync(&qp->close_timer);
	cancel_delayed_work_sync(&qp->again);
	cancel_delayed_work_sync(&qp->takeover);
	tasklet_kill(&qp->bh);
	cancel_work_sync(&qp->engine_work);
	flush_work(&qp->work);
}

/* Is nothing pending? Must be so after qp_quiesce(). */
static bool qp_is_quiet(const struct kiw_qp *qp)
{
	return !test_bit(TASKLET_STATE_SCHED, &qp->bh.state) && !work_pending(&qp->work) &&
	       !work_pending(&qp->engine_work) && !delayed_work_pending(&qp->takeover) &&
	       !delayed_work_pending(&qp->again) && !delayed_work_pending(&qp->close_timer);
}

/**
 * kiw_qp_reset() - return a QP to its initial state
 * @qp: the QP
 *
 * In the verbs every state leads to RESET. In the state machine only IDLE and ERROR do, so a QP
 * in any other state is aborted first. All pending actions, including the connection's REPORT,
 * are executed here and not left to the work item, which would no longer find the stream. No
 * connection can start in the meantime, because that also takes the mutex.
 *
 * Other threads may post, modify and connect concurrently, and a CQ of the QP may be overrun.
 * What they start finds either the old stream, in ERROR or with its engines stopped, or no stream.
 * A tasklet and timers left over from the old stream do no harm.
 *
 * Context: process, may sleep. May call the consumer's event handler.
 */
void kiw_qp_reset(struct kiw_qp *qp)
{
	/* As in qp_work() */
	unsigned int noio = memalloc_noio_save();

	mutex_lock(&qp->mutex);
	if (kiw_qp_state(qp) != KIW_QPS_IDLE)
		kiw_qp_handle_event(qp, KIW_QPE_ABORT);
	qp_act(qp);
	/* Legal: meanwhile only an abort or a fatal event can change the state, to ERROR. */
	WARN_ON_ONCE(kiw_qp_handle_event(qp, KIW_QPE_RESET));
	qp_act(qp);
	mutex_unlock(&qp->mutex);
	memalloc_noio_restore(noio);
}

/**
 * kiw_qp_uninit() - end a QP
 * @qp: the QP; no consumer uses it any more
 *
 * Aborts the QP, flushes its work, and waits until no references are left.
 *
 * Context: process, may sleep.
 */
void kiw_qp_uninit(struct kiw_qp *qp)
{
	kiw_qp_handle_event_sync(qp, KIW_QPE_ABORT);
	kiw_qp_put(qp);
	wait_for_completion(&qp->unreferenced);
	qp_quiesce(qp);
	mutex_lock(&qp->mutex);
	qp_forget_stream(qp);
	mutex_unlock(&qp->mutex);
	WARN_ON_ONCE(!qp_is_quiet(qp));
	mem_cgroup_put(qp->memcg);
	kiw_count(qp->stats, KIW_STAT_QP_DESTROYED);
}
