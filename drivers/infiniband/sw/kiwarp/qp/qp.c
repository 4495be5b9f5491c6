// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Queue pairs: references, state, faults, and the functions that the engines call.
 *
 * Everything that ends a QP goes through kiw_qp_handle_event(). It writes the state, which the
 * engines check, and leaves the actions of that step to the QP's work item or a reset
 * (run/qp_work.c).
 *
 * This file is below the engines: they call it, and it never calls them. When they are to run
 * again it schedules the QP's tasklet, work items or delayed work, which run/qp_work.c has set up.
 *
 * Contexts: any, unless a function says otherwise.
 */
#include "qp.h"

#include "proto/term.h"
#include "trace.h"

/* Softirqs may run the engines for this long while a task waits for the CPU, in jiffies */
#define QP_BURST	4

/* Delay before the engines try again after memory was short */
#define QP_RETRY_MS	2

static void qp_note_sent(struct kiw_qp *qp, const struct kiw_perr_info *info)
{
	kiw_qp_note_term(qp, KIW_QP_TERM_SENT, info->layer, info->etype, info->code);
}

static const char *qp_dev_name(const struct kiw_qp *qp)
{
	return dev_name(&qp->ib.device->dev);
}

/* References */

static void qp_unreferenced(struct kref *ref)
{
	complete(&container_of(ref, struct kiw_qp, ref)->unreferenced);
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
 * kiw_qp_put() - drop a reference
 * @qp: the QP
 *
 * Context: any.
 */
void kiw_qp_put(struct kiw_qp *qp)
{
	kref_put(&qp->ref, qp_unreferenced);
}

/* Events and state */

/* Under the lock, so that code that sees the bits or the new state can flush the work item */
static void qp_queue(struct kiw_qp *qp, unsigned long todo)
{
	lockdep_assert_held(&qp->lock);
	qp->todo |= todo;
	queue_work(qp->wq, &qp->work);
}

/**
 * kiw_qp_todo() - queue something for the QP's work item
 * @qp: the QP
 * @todo: %KIW_QPA_ and %KIW_QP_TODO_ bits
 *
 * Context: any.
 */
void kiw_qp_todo(struct kiw_qp *qp, unsigned long todo)
{
	unsigned long flags;

	spin_lock_irqsave(&qp->lock, flags);
	qp_queue(qp, todo);
	spin_unlock_irqrestore(&qp->lock, flags);
}

/* The only writer of the state after kiw_qp_init() */
static void qp_set_state(struct kiw_qp *qp, enum kiw_qp_state state)
{
	lockdep_assert_held(&qp->lock);
	/* Pairs with kiw_qp_state(): a reader of the state also sees what was set up before it. */
	smp_store_release(&qp->state, state);
}

/**
 * kiw_qp_handle_event() - report an event to a QP's state machine
 * @qp: the QP
 * @event: the event
 *
 * Writes the new state as proto/qp_fsm.c says and queues the actions of that step.
 *
 * Context: any.
 * Return: 0, or -EINVAL if the event is not legal in the QP's state.
 */
int kiw_qp_handle_event(struct kiw_qp *qp, enum kiw_qp_event event)
{
	struct kiw_qp_step step;
	enum kiw_qp_state old;
	unsigned long flags;

	spin_lock_irqsave(&qp->lock, flags);
	old = qp->state;
	step = kiw_qp_fsm(old, event);
	if (step.legal)
		qp_set_state(qp, step.next);
	if (step.actions)
		qp_queue(qp, step.actions);
	/* Under the lock, so that steps are traced in order */
	if (step.next != old)
		trace_kiw_qp_state(qp_dev_name(qp), qp->ib.qp_num, kiw_qp_state_name(old),
				   kiw_qp_event_name(event), kiw_qp_state_name(step.next));
	spin_unlock_irqrestore(&qp->lock, flags);
	return step.legal ? 0 : -EINVAL;
}

/*
 * Choose the asynchronous event for a fault that this end found: one for an access violation of the
 * peer, one for an invalid request of the peer, and one for anything else. A fault in the Response
 * to one of our Reads or Atomic Operations is of the last kind, as that is not a request of the
 * peer.
 */
static enum ib_event_type qp_fault_event(enum kiw_wcs wcs, u8 opcode)
{
	if (opcode == KIW_RDMAP_READ_RESP || opcode == KIW_RDMAP_ATOMIC_RESP)
		return IB_EVENT_QP_FATAL;
	switch (wcs) {
	case KIW_WCS_REM_ACCESS:
		return IB_EVENT_QP_ACCESS_ERR;
	case KIW_WCS_REM_INV_REQ:
		return IB_EVENT_QP_REQ_ERR;
	default:
		return IB_EVENT_QP_FATAL;
	}
}

/**
 * kiw_qp_fault() - end the stream with a Terminate
 * @qp: the QP
 * @perr: the reason
 * @head: the offending FPDU, starting at its ULPDU_Length, or NULL
 * @head_len: bytes in @head
 *
 * The Terminate is sent after the FPDUs that have been built already (RFC 5040 7.1). To send only
 * those of them that TCP has begun to take, call kiw_tx_discard() first. Nothing is placed after
 * this. Does nothing in a state in which nothing is placed.
 *
 * Context: socket lock held if there is a socket, BHs off.
 */
void kiw_qp_fault(struct kiw_qp *qp, enum kiw_perr perr, const u8 *head, size_t head_len)
{
	const struct kiw_perr_info *info = kiw_perr_info(perr);
	u8 opcode = kiw_term_opcode(head, head_len);

	kiw_sock_assert_held_bh(qp->ks);
	if (!kiw_qp_state_places(kiw_qp_state(qp)))
		return;
	if (head)
		kiw_count_fault(qp->stats, perr);
	trace_kiw_perr_tx(qp_dev_name(qp), qp->ib.qp_num, info->text, info->layer, info->etype,
			  info->code, opcode);
	qp_note_sent(qp, info);
	qp->fault_event = qp_fault_event(info->wcs, opcode);
	qp->tx.term_len = kiw_term_encode(qp->tx.term, perr, head, head_len);
	kiw_qp_handle_event(qp, KIW_QPE_FAULT);
	kiw_qp_run_soon(qp);
}

/* When the engines run again */

/**
 * kiw_qp_gives_way() - should softirqs leave the engines to a work item?
 * @qp: the QP, with a stream
 *
 * A stream that never pauses can keep softirqs busy for longer than a tick. They could start
 * again on the next tick before any task has run, and starve the CPU's tasks, including ksoftirqd
 * and workqueue workers. So once a burst has lasted for %QP_BURST jiffies and a task waits for
 * the CPU, the engine work item runs the engines, on the same CPU, as one of its tasks. If it has
 * not begun after as long again, the QP's work item takes over, on any CPU. Until then TCP only
 * queues what arrives.
 *
 * Context: socket lock held, BHs off.
 * Return: true: the caller must not run the engines; a work item will.
 */
bool kiw_qp_gives_way(struct kiw_qp *qp)
{
	unsigned long now = jiffies;

	kiw_sock_assert_held_bh(qp->ks);
	if (qp->gave_way)
		return true;
	/* A pause ends the burst. A gap of a few ticks is not a pause. */
	if (now - qp->burst_last > QP_BURST)
		qp->burst_start = now;
	qp->burst_last = now;
	/* Engines that were stopped start nothing more, see qp_quiesce(). */
	if (now - qp->burst_start < QP_BURST || !need_resched() || !qp->rx.is_running)
		return false;
	qp->gave_way = true;
	kiw_count(qp->stats, KIW_STAT_RUN_YIELDS);
	queue_work(qp->engine_wq, &qp->engine_work);
	mod_delayed_work(qp->wq, &qp->takeover, QP_BURST);
	return true;
}

/**
 * kiw_qp_run_soon() - schedule the engines to run in the QP's tasklet
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
	mod_delayed_work(qp->wq, &qp->again, msecs_to_jiffies(QP_RETRY_MS));
}

/* Receives and completions of the engines */

/**
 * kiw_qp_fetch_recv() - take the next receive from the QP's own queue or the shared one
 * @qp: the QP
 * @wqe: set to a copy of the receive
 *
 * Context: socket lock held, BHs off.
 * Return: 1: @wqe is valid; 0: the queue is empty; -EINVAL: the receive was malformed.
 */
int kiw_qp_fetch_recv(struct kiw_qp *qp, struct kiw_rwqe *wqe)
{
	kiw_sock_assert_held_bh(qp->ks);
	if (qp->srq)
		return kiw_srq_fetch(qp->srq, wqe);
	return kiw_rq_fetch(&qp->rq, wqe);
}

/**
 * kiw_qp_post_completion() - post a completion to a CQ
 * @qp: the QP
 * @cq: its send or receive CQ
 * @wc: the completion; if it has failed, its @term is set
 *
 * If the CQ is full, or was overrun before, the completion is lost and the consumer can no longer
 * know the state of the QP. So the QP ends, with a Terminate if one can be sent, and so will the
 * other QPs of @cq that kiw_qp_table_fail() finds.
 *
 * Context: socket lock held if there is a socket, BHs off.
 */
void kiw_qp_post_completion(struct kiw_qp *qp, struct kiw_cq *cq, struct kiw_wc *wc)
{
	kiw_sock_assert_held_bh(qp->ks);
	if (unlikely(wc->status != KIW_WCS_SUCCESS))
		wc->term = qp->term;
	if (kiw_cq_post(cq, wc))
		return;
	kiw_qp_fault(qp, KIW_PERR_RDMAP_CATASTROPHIC, NULL, 0);
	kiw_qp_handle_event(qp, KIW_QPE_FATAL);
}
