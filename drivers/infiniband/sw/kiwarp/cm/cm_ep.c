// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Endpoints: their lifetime, their events, and the upcalls to iw_cm.
 *
 * Owns: &struct kiw_ep. A table in proto/cm_fsm.c defines what an event does to an endpoint, and
 * its comment explains why iw_cm is told of everything exactly once. kiw_ep_step() executes the
 * table, and no other code makes upcalls to iw_cm.
 *
 * cm_mpa.c reads and sends MPA frames, and cm_listen.c accepts streams. They report what they find
 * as events to kiw_ep_step().
 *
 * Contexts. Sockets and QPs call back in softirq or in process context. These callbacks record in
 * &struct kiw_ep.facts what could not be observed later, and queue the endpoint's work item. The
 * work item runs in process context under the endpoint's mutex. It checks the present state and
 * @facts, and does not count notifications, so an event cannot be lost. What arrived after the
 * deadline has passed can still be handled before it. The work item does not wait for a peer.
 * iw_cm's handler is called under the mutex; it only queues, and never calls back.
 *
 * Lifetime. An endpoint holds a reference to itself from leaving IDLE to entering CLOSED.
 * Work items, the deadline, children, the lists of cm_listen.c and the QP hold their own
 * references. Sockets and QPs call back only while the endpoint owns the stream, which ends before
 * the endpoint drops the reference to itself, or while the QP holds a reference. So the last
 * reference is dropped in process context.
 */
#include "cm_ep.h"

#include <linux/list.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <linux/xarray.h>
#include <rdma/iw_cm.h>

#include "compat/timer.h"
#include "device.h"
#include "qp/qp.h"
#include "run/qp_work.h"
#include "sock/sock.h"
#include "trace.h"

/* How long the orderly close of a stream may take that was rejected or led to no agreement */
#define EP_LINGER_MS	5000

/* All endpoints by number; entries hold no reference, see ep_free() */
static DEFINE_XARRAY_ALLOC1(eps);
static u32 next_ep_id;

static void ep_work(struct work_struct *work);
static void ep_deadline(struct timer_list *timer);

/* Making and finding */

/**
 * kiw_ep_new() - create an endpoint
 * @dev: the device; outlives the endpoint
 *
 * Context: process, may sleep.
 * Return: an endpoint in IDLE with one reference, which the caller owns; NULL: no memory.
 */
struct kiw_ep *kiw_ep_new(struct kiw_device *dev)
{
	struct kiw_ep *ep;

	ep = kzalloc(sizeof(*ep), GFP_KERNEL_ACCOUNT);
	if (!ep)
		return NULL;
	ep->startup = kzalloc(sizeof(*ep->startup), GFP_KERNEL_ACCOUNT);
	if (!ep->startup)
		goto err_free;
	kref_init(&ep->ref);
	mutex_init(&ep->lock);
	spin_lock_init(&ep->children_lock);
	INIT_LIST_HEAD(&ep->children);
	INIT_LIST_HEAD(&ep->half_link);
	INIT_LIST_HEAD(&ep->startup_link);
	ep->startup->tos = -1;
	INIT_WORK(&ep->work, ep_work);
	timer_setup(&ep->deadline, ep_deadline, 0);
	ep->dev = dev;
	ep->state = KIW_CMS_IDLE;
	kiw_ep_init_mpa(ep);
	if (xa_alloc_cyclic(&eps, &ep->id, ep, xa_limit_32b, &next_ep_id, GFP_KERNEL) < 0)
		goto err_free_startup;
	kiw_count(&dev->stats, KIW_STAT_EP_CREATED);
	return ep;

err_free_startup:
	kfree(ep->startup);
err_free:
	kfree(ep);
	return NULL;
}

static void ep_free_startup(struct kiw_ep *ep)
{
	if (ep->startup)
		kfree(ep->startup->own_pdata);
	kfree(ep->startup);
	ep->startup = NULL;
}

/* Process context, see the head of this file. */
static void ep_free(struct kref *ref)
{
	struct kiw_ep *ep = container_of(ref, struct kiw_ep, ref);

	/* A lookup that still finds it does not get a reference. */
	xa_erase(&eps, ep->id);
	kiw_count(&ep->dev->stats, KIW_STAT_EP_DESTROYED);
	ep_free_startup(ep);
	kfree(ep);
}

/**
 * kiw_ep_get() - take a reference
 * @ep: endpoint
 *
 * Context: any.
 */
void kiw_ep_get(struct kiw_ep *ep)
{
	kref_get(&ep->ref);
}

/**
 * kiw_ep_put() - drop a reference
 * @ep: endpoint
 *
 * Context: any; process if it can be the last.
 */
void kiw_ep_put(struct kiw_ep *ep)
{
	kref_put(&ep->ref, ep_free);
}

/**
 * kiw_ep_find() - look up the endpoint of a cm_id
 * @id: incoming connection, or listener
 *
 * Context: process.
 * Return: the endpoint with a reference for the caller, or NULL if it is gone.
 */
struct kiw_ep *kiw_ep_find(const struct iw_cm_id *id)
{
	struct kiw_ep *ep;

	xa_lock(&eps);
	ep = xa_load(&eps, (unsigned long)id->provider_data);
	if (ep && (ep->dev != to_kiw_device(id->device) || !kref_get_unless_zero(&ep->ref)))
		ep = NULL;
	xa_unlock(&eps);
	return ep;
}

/**
 * kiw_ep_next() - walk over a device's endpoints
 * @dev: the device
 * @id: number to start from; advanced for the next call
 *
 * Context: process.
 * Return: an endpoint with a reference for the caller, or NULL at the end.
 */
struct kiw_ep *kiw_ep_next(struct kiw_device *dev, unsigned long *id)
{
	struct kiw_ep *ep;
	bool is_found;

	/* Other devices may have any number of endpoints in between, so do not keep the lock. */
	do {
		xa_lock(&eps);
		ep = xa_find(&eps, id, ULONG_MAX, XA_PRESENT);
		is_found = ep && ep->dev == dev && kref_get_unless_zero(&ep->ref);
		xa_unlock(&eps);
		++*id;
	} while (ep && !is_found);
	return ep;
}

/* Callbacks */

/**
 * kiw_ep_kick() - queue the work item that checks an endpoint's state
 * @ep: endpoint; the caller makes sure that it does not go away
 *
 * Context: any. If the work item is queued already, the reference taken here is dropped again; it
 * is not the last, because the caller keeps @ep.
 */
void kiw_ep_kick(struct kiw_ep *ep)
{
	kiw_ep_get(ep);
	if (!queue_work(ep->dev->wq, &ep->work))
		kiw_ep_put(ep);
}

/**
 * kiw_ep_arm() - arm the deadline, unless it is armed
 * @ep: endpoint; the caller has a reference
 * @timeout_ms: from now
 *
 * Context: process; @ep's lock held.
 */
void kiw_ep_arm(struct kiw_ep *ep, unsigned int timeout_ms)
{
	lockdep_assert_held(&ep->lock);
	if (timer_pending(&ep->deadline))
		return;
	kiw_ep_get(ep);
	mod_timer(&ep->deadline, jiffies + msecs_to_jiffies(timeout_ms));
}

/* Stop the deadline. When this returns, its handler is not running. */
static void ep_disarm(struct kiw_ep *ep)
{
	if (kiw_compat_timer_delete_sync(&ep->deadline))
		kiw_ep_put(ep);
}

static void ep_sock_event(void *owner)
{
	kiw_ep_kick(owner);
}

const struct kiw_sock_ops kiw_ep_sock_ops = {
	.readable = ep_sock_event,
	.changed = ep_sock_event,
};

static void ep_conn_spoken(void *conn)
{
	struct kiw_ep *ep = conn;

	set_bit(KIW_EPF_SPOKEN, &ep->facts);
	kiw_ep_kick(ep);
}

static void ep_conn_closed(void *conn)
{
	struct kiw_ep *ep = conn;

	set_bit(KIW_EPF_QP_CLOSED, &ep->facts);
	kiw_ep_kick(ep);
	/* The QP's reference, taken when it took the stream */
	kiw_ep_put(ep);
}

const struct kiw_conn_ops kiw_ep_conn_ops = {
	.spoken = ep_conn_spoken,
	.closed = ep_conn_closed,
};

/* Upcalls to iw_cm */

/*
 * Set the depths of an event: event.ird from our ORD, because rdma_cm passes it to the consumer as
 * initiator_depth, which is what the consumer may have outstanding; and event.ord from our IRD,
 * because that becomes responder_resources. In connect and accept the names are the other way
 * around.
 */
static void ep_set_depths(struct iw_cm_event *event, u16 ird, u16 ord)
{
	event->ird = min_t(u16, ord, U8_MAX);
	event->ord = min_t(u16, ird, U8_MAX);
}

static int ep_upcall(struct kiw_ep *ep, struct iw_cm_id *id, struct iw_cm_event *event)
{
	/* Events after the startup need no addresses. */
	if (ep->startup) {
		event->local_addr = ep->startup->local;
		event->remote_addr = ep->startup->remote;
	}
	return id->event_handler(id, event);
}

/*
 * Report ESTABLISHED or CLOSE. This cannot fail, because these events carry no private data, and
 * iw_cm has reserved memory for them.
 */
static void ep_upcall_plain(struct kiw_ep *ep, enum iw_cm_event_type type)
{
	struct iw_cm_event event = { .event = type };

	if (type == IW_CM_EVENT_ESTABLISHED)
		ep_set_depths(&event, ep->agreed.ird, ep->agreed.ord);
	WARN_ON_ONCE(ep_upcall(ep, ep->cm_id, &event));
}

static int ep_upcall_reply(struct kiw_ep *ep, int status, const void *pdata, u8 pdata_len)
{
	struct iw_cm_event event = {
		.event = IW_CM_EVENT_CONNECT_REPLY,
		.status = status,
		.private_data = (void *)pdata,
		.private_data_len = pdata_len,
	};

	/*
	 * After an enhanced rejection, the depths that the peer would need, as far as the device
	 * can; after any other failure, 0, unless iw_cm could not take an accepting Reply
	 */
	ep_set_depths(&event, ep->agreed.ird, ep->agreed.ord);
	return ep_upcall(ep, ep->cm_id, &event);
}

/*
 * Report that connecting failed. iw_cm waits for this event, so if it has no memory for the private
 * data, deliver the event without them. If this follows an accepting Reply that could not be
 * delivered, the startup has ended already, and there is no private data.
 */
static void ep_upcall_reply_fail(struct kiw_ep *ep, int status)
{
	const struct kiw_ep_startup *startup = ep->startup;

	if (startup && startup->pdata_len &&
	    !ep_upcall_reply(ep, status, startup->pdata, startup->pdata_len))
		return;
	WARN_ON_ONCE(ep_upcall_reply(ep, status, NULL, 0));
}

static void ep_leave_half_open(struct kiw_ep *ep)
{
	struct kiw_device *dev = ep->dev;

	lockdep_assert_held(&dev->half_open_lock);
	list_del_init(&ep->half_link);
	dev->num_half_open--;
	if (!--ep->half_listener->num_half_open)
		dev->num_half_listeners--;
}

/*
 * Update the device's list of half-open connections after a step. A connection is half-open until
 * the consumer has answered its Request, or it has ended. When the Request is delivered, it moves
 * to the end of the list, behind all whose peers are silent at that time.
 */
static void ep_update_half_open(struct kiw_ep *ep)
{
	struct kiw_device *dev = ep->dev;

	lockdep_assert_held(&ep->lock);
	if (list_empty(&ep->half_link) || ep->state == KIW_CMS_WAIT_REQUEST)
		return;
	spin_lock(&dev->half_open_lock);
	if (ep->state == KIW_CMS_REQUEST_GIVEN) {
		list_move_tail(&ep->half_link, &dev->half_open);
		spin_unlock(&dev->half_open_lock);
		return;
	}
	ep_leave_half_open(ep);
	spin_unlock(&dev->half_open_lock);
	kiw_ep_put(ep->half_listener);
	ep->half_listener = NULL;
	kiw_ep_put(ep);
}

/* Remove a connection from its listener: the consumer has been told of it, or it ends. */
static void ep_leave_listener(struct kiw_ep *ep)
{
	struct kiw_ep *listener = ep->listener;

	if (!listener)
		return;
	spin_lock(&listener->children_lock);
	list_del(&ep->link);
	WRITE_ONCE(listener->num_children, listener->num_children - 1);
	spin_unlock(&listener->children_lock);
	ep->listener = NULL;
	kiw_ep_put(listener);
	kiw_ep_put(ep);
}

/* Deliver a Request. Holds @children_lock, so that no upcall runs once the listener is stopped. */
static int ep_upcall_request(struct kiw_ep *ep)
{
	struct kiw_ep *listener = ep->listener;
	struct iw_cm_event event = {
		.event = IW_CM_EVENT_CONNECT_REQUEST,
		.provider_data = kiw_ep_handle(ep),
		.private_data = (void *)ep->startup->pdata,
		.private_data_len = ep->startup->pdata_len,
	};
	int ret = -ECONNABORTED;
	u16 ird, ord;

	kiw_mpa_peer_limits(&ep->startup->req, &ep->startup->want, &ird, &ord);
	ep_set_depths(&event, ird, ord);
	spin_lock(&listener->children_lock);
	if (!listener->is_stopped)
		ret = ep_upcall(ep, listener->cm_id, &event);
	spin_unlock(&listener->children_lock);
	ep_leave_listener(ep);
	ep->startup->pdata = NULL;
	ep->startup->pdata_len = 0;
	return ret;
}

/*
 * Make the upcalls of a step.
 * Return: 0, or -errno if a Request or an accepting Reply could not be delivered to iw_cm.
 */
static int ep_tell(struct kiw_ep *ep, u16 actions, int status)
{
	int ret = 0;

	if (actions & KIW_CMA_UPCALL_REQUEST)
		ret = ep_upcall_request(ep);
	if (actions & KIW_CMA_UPCALL_REPLY_OK)
		ret = ep_upcall_reply(ep, 0, ep->startup->pdata, ep->startup->pdata_len);
	if (actions & KIW_CMA_UPCALL_REPLY_FAIL)
		ep_upcall_reply_fail(ep, status);
	if (actions & KIW_CMA_UPCALL_ESTABLISHED)
		ep_upcall_plain(ep, IW_CM_EVENT_ESTABLISHED);
	if (actions & KIW_CMA_UPCALL_CLOSE)
		ep_upcall_plain(ep, IW_CM_EVENT_CLOSE);
	return ret;
}

/* Taking steps */

/**
 * kiw_ep_join_qp() - add an endpoint to its QP's list of startups
 * @ep: endpoint in CONNECTING
 *
 * kiw_cm_forget_qp() ends the startups in the list when the QP is destroyed. The endpoint stays in
 * the list until its startup has succeeded or failed.
 *
 * Context: process; @ep's lock held.
 */
void kiw_ep_join_qp(struct kiw_ep *ep)
{
	lockdep_assert_held(&ep->lock);
	spin_lock(&ep->dev->startups_lock);
	list_add_tail(&ep->startup_link, &ep->qp->startups);
	spin_unlock(&ep->dev->startups_lock);
}

/* Leave the QP's list of startups. @ep's lock, under which it joins, protects the check. */
static void ep_leave_qp(struct kiw_ep *ep)
{
	lockdep_assert_held(&ep->lock);
	if (list_empty(&ep->startup_link))
		return;
	spin_lock(&ep->dev->startups_lock);
	list_del_init(&ep->startup_link);
	spin_unlock(&ep->dev->startups_lock);
}

/**
 * kiw_ep_first_startup() - find an endpoint that is connecting for a QP
 * @dev: the device
 * @qp: the QP
 *
 * Context: process.
 * Return: an endpoint with a reference for the caller, or NULL if there is none.
 */
struct kiw_ep *kiw_ep_first_startup(struct kiw_device *dev, struct kiw_qp *qp)
{
	struct kiw_ep *ep;

	spin_lock(&dev->startups_lock);
	/* An endpoint in the list holds a reference to itself. */
	ep = list_first_entry_or_null(&qp->startups, struct kiw_ep, startup_link);
	if (ep)
		kiw_ep_get(ep);
	spin_unlock(&dev->startups_lock);
	return ep;
}

static void ep_end_startup(struct kiw_ep *ep)
{
	ep_disarm(ep);
	ep_leave_qp(ep);
	ep_free_startup(ep);
}

/* The caller holds its own reference, so no put here drops the last one of @ep. */
static void ep_release(struct kiw_ep *ep)
{
	ep_end_startup(ep);
	ep_leave_listener(ep);
	if (ep->qp)
		kiw_qp_put(ep->qp);
	ep->qp = NULL;
	if (ep->cm_id)
		ep->cm_id->rem_ref(ep->cm_id);
	ep->cm_id = NULL;
	kiw_ep_put(ep);
}

static void ep_end_stream(struct kiw_ep *ep, bool in_order)
{
	/* The endpoint has no stream if the QP has taken it, or if it was never created. */
	if (!ep->ks)
		return;
	if (in_order)
		kiw_sock_linger(ep->ks, EP_LINGER_MS,
				kiw_policy_get(&ep->dev->policy, KIW_POLICY_MAX_LINGERING));
	else
		kiw_sock_drop(ep->ks, true);
	kiw_sock_put(ep->ks);
	ep->ks = NULL;
}

/* Counter that a step for an event increments; 0 (unused here): none */
static const u8 event_stats[KIW_CME_COUNT] = {
	[KIW_CME_RETRY]		= KIW_STAT_CONN_RETRIED,
	[KIW_CME_DISAGREED]	= KIW_STAT_CONN_DISAGREED,
	[KIW_CME_REFUSED]	= KIW_STAT_CONN_REFUSED,
	[KIW_CME_REQUEST]	= KIW_STAT_CONN_REQUESTED,
	[KIW_CME_REJECT]	= KIW_STAT_CONN_REJECTED,
	[KIW_CME_UNSENT]	= KIW_STAT_CONN_FAILED,
	[KIW_CME_UNDELIVERED]	= KIW_STAT_CONN_FAILED,
	[KIW_CME_BAD_FRAME]	= KIW_STAT_CONN_BAD_FRAME,
	[KIW_CME_LOST]		= KIW_STAT_CONN_FAILED,
	[KIW_CME_FAILED]	= KIW_STAT_CONN_FAILED,
	[KIW_CME_DEADLINE]	= KIW_STAT_CONN_TIMEOUT,
	[KIW_CME_QP_CLOSED]	= KIW_STAT_CONN_CLOSED,
};

static_assert(KIW_STAT_COUNT <= U8_MAX);
static_assert(KIW_STAT_CONN_INITIATED == 0);

static void ep_count_step(struct kiw_ep *ep, enum kiw_cm_event event, enum kiw_cm_state next)
{
	struct kiw_stats *stats = &ep->dev->stats;

	if (event == KIW_CME_CONNECT)
		kiw_count(stats, KIW_STAT_CONN_INITIATED);
	if (next == KIW_CMS_OPEN && ep->state != next)
		kiw_count(stats, KIW_STAT_CONN_ESTABLISHED);
	if (event_stats[event])
		kiw_count(stats, event_stats[event]);
}

static void ep_act(struct kiw_ep *ep, u16 actions, int status)
{
	int ret;

	if (actions & KIW_CMA_SEND_REJECT)
		kiw_ep_send_reject(ep);
	ret = ep_tell(ep, actions, status);
	if (actions & KIW_CMA_ABORT_QP)
		kiw_qp_abort_conn(ep->qp, ep);
	if (actions & (KIW_CMA_LINGER | KIW_CMA_DROP))
		ep_end_stream(ep, actions & KIW_CMA_LINGER);
	if (actions & KIW_CMA_END_STARTUP)
		ep_end_startup(ep);
	if (actions & KIW_CMA_RELEASE)
		ep_release(ep);
	if (ret)
		kiw_ep_step(ep, KIW_CME_UNDELIVERED, ret);
}

/**
 * kiw_ep_step() - apply an event to an endpoint
 * @ep: endpoint; the caller holds a reference
 * @event: what happened
 * @status: why, for the consumer: 0 or -errno
 *
 * Does what the table in proto/cm_fsm.c says. No other code changes the state. Calls itself at
 * most once, if an event could not be delivered to iw_cm.
 *
 * Context: process, may sleep; @ep's lock held.
 */
void kiw_ep_step(struct kiw_ep *ep, enum kiw_cm_event event, int status)
{
	struct kiw_cm_step step = kiw_cm_fsm(ep->state, event);

	lockdep_assert_held(&ep->lock);
	if (WARN_ON_ONCE(!step.legal) || (step.next == ep->state && !step.actions))
		return;
	trace_kiw_ep_state(dev_name(&ep->dev->ib.dev), ep->id, kiw_cm_state_name(ep->state),
			   kiw_cm_event_name(event), kiw_cm_state_name(step.next));
	ep_count_step(ep, event, step.next);
	/* The endpoint's reference to itself, until ep_release() */
	if (ep->state == KIW_CMS_IDLE)
		kiw_ep_get(ep);
	ep->state = step.next;
	ep_update_half_open(ep);
	ep_act(ep, step.actions, status);
}

/* Work items */

/**
 * kiw_ep_progress() - take the steps that follow from the present state
 * @ep: endpoint; the caller has a reference
 *
 * Context: process, may sleep; @ep's lock held.
 */
void kiw_ep_progress(struct kiw_ep *ep)
{
	lockdep_assert_held(&ep->lock);
	switch (ep->state) {
	case KIW_CMS_LISTENING:
		kiw_ep_try_accept(ep);
		break;
	case KIW_CMS_CONNECTING:
		kiw_ep_try_connected(ep);
		if (ep->state != KIW_CMS_WAIT_REPLY)
			break;
		fallthrough;
	case KIW_CMS_WAIT_REPLY:
		kiw_ep_try_reply(ep);
		break;
	case KIW_CMS_WAIT_REQUEST:
		kiw_ep_try_request(ep);
		if (ep->state != KIW_CMS_REQUEST_GIVEN)
			break;
		fallthrough;
	case KIW_CMS_REQUEST_GIVEN:
		kiw_ep_check_stream(ep);
		break;
	case KIW_CMS_WAIT_FIRST:
	case KIW_CMS_OPEN:
		/* If both are set, in the order in which they happened */
		if (test_and_clear_bit(KIW_EPF_SPOKEN, &ep->facts))
			kiw_ep_step(ep, KIW_CME_SPOKEN, 0);
		if (test_bit(KIW_EPF_QP_CLOSED, &ep->facts))
			kiw_ep_step(ep, KIW_CME_QP_CLOSED, 0);
		break;
	default:
		break;
	}
}

static void ep_work(struct work_struct *work)
{
	struct kiw_ep *ep = container_of(work, struct kiw_ep, work);
	/* Page writeback may wait for this connection */
	unsigned int noio = memalloc_noio_save();
	bool is_late;

	mutex_lock(&ep->lock);
	/* Data that arrived in time counts, even if the work item runs after the deadline. */
	is_late = test_and_clear_bit(KIW_EPF_DEADLINE, &ep->facts);
	kiw_ep_progress(ep);
	if (is_late)
		kiw_ep_step(ep, KIW_CME_DEADLINE, -ETIMEDOUT);
	mutex_unlock(&ep->lock);
	memalloc_noio_restore(noio);
	kiw_ep_put(ep);
}

/* Softirq. The work item takes over the timer's reference, or already holds one. */
static void ep_deadline(struct timer_list *timer)
{
	struct kiw_ep *ep = container_of(timer, struct kiw_ep, deadline);

	set_bit(KIW_EPF_DEADLINE, &ep->facts);
	if (!queue_work(ep->dev->wq, &ep->work))
		kiw_ep_put(ep);
}
