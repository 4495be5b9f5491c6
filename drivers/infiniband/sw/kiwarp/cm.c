// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The provider side of iw_cm: endpoints, their events, what the consumer is told.
 *
 * Owns: &struct kiw_ep. proto/cm_fsm.c says what an event does to an endpoint, and
 * shows that iw_cm hears of everything exactly once; kiw_ep_step() here does what
 * the table says, and nothing else tells iw_cm anything.
 *
 * Contexts. Sockets and QPs call back in softirq or from works: these callbacks
 * note what cannot be seen afterwards in @facts, and queue the endpoint's work. The
 * work, in process context under the endpoint's mutex, looks at how things are and
 * not at what was announced, so that events can neither be lost nor overtake each
 * other. Nothing waits for a peer or for another work. iw_cm's handler is called
 * under the mutex; it only queues, and never calls back.
 *
 * Lifetime. From leaving IDLE to entering CLOSED an endpoint holds a reference on
 * itself; works, the deadline, children and the QP hold their own. Callbacks from
 * softirq come while the stream or the QP has the endpoint for its owner, which ends
 * before the reference of its own does: the last reference goes in process context.
 *
 * iw_cm and a Request. iw_cm makes the connection's cm_id from the event when it gets
 * to it, and when it cannot, or its listener is being destroyed, it drops the event
 * and nobody ever answers. So the event carries the endpoint's number and not a
 * pointer: an endpoint that is not answered is closed by its deadline, and a later
 * answer finds nothing.
 *
 * The QP. iw_cm takes a reference on it before connect and accept, and drops it on a
 * failed CONNECT_REPLY or CLOSE. Destroying a QP while its connection is starting up
 * therefore waits, at the most until the deadline. The endpoint's own reference lasts
 * no longer. A QP that is moved to ERROR meanwhile does not take the stream, and the
 * connection fails.
 *
 * Depths. rdma_cm hands event.ird to the consumer as initiator_depth, that is: what
 * the consumer may have outstanding, our ORD; and event.ord as responder_resources,
 * our IRD. In connect and accept the names are the other way around. See
 * kiw_mpa_peer_limits() for what a peer that says nothing of depths is given.
 *
 * Wildcards. rdma_cm listens once a device for a wildcard address: such a socket is
 * bound to the netdev, so that devices do not collide. Connections of this host to
 * the netdev's own addresses still reach it: they pass through lo, but TCP takes them
 * for received by the interface that has the address.
 */
#include "cm.h"

#include <linux/err.h>
#include <linux/slab.h>
#include <linux/xarray.h>
#include <net/ipv6.h>
#include <rdma/iw_cm.h>

#include "cm_ep.h"
#include "device.h"
#include "qp.h"
#include "sock.h"
#include "trace.h"
#include "verbs.h"

/* How long a rejected stream may take to close in order */
#define EP_LINGER_MS	5000
/* When a listener that ran out of memory tries again */
#define EP_RETRY_MS	100
/* Streams accepted in one run of a listener's work */
#define EP_ACCEPT_BUDGET 64

/* All endpoints by number; entries hold no reference, see ep_free() */
static DEFINE_XARRAY_ALLOC1(eps);
static u32 next_ep_id;

static void ep_work(struct work_struct *work);
static void ep_deadline(struct work_struct *work);

/* Making and finding */

/* Return: an endpoint in IDLE with one reference, the caller's; NULL: no memory. */
static struct kiw_ep *ep_new(struct kiw_device *dev)
{
	struct kiw_ep *ep;

	ep = kzalloc(sizeof(*ep), GFP_KERNEL);
	if (!ep)
		return NULL;
	ep->buf = kzalloc(KIW_MPA_FRAME_MAX, GFP_KERNEL);
	if (!ep->buf)
		goto err_free;
	kref_init(&ep->ref);
	mutex_init(&ep->lock);
	spin_lock_init(&ep->half_lock);
	INIT_LIST_HEAD(&ep->link);
	INIT_LIST_HEAD(&ep->children);
	INIT_WORK(&ep->work, ep_work);
	INIT_DELAYED_WORK(&ep->deadline, ep_deadline);
	ep->dev = dev;
	ep->state = KIW_CMS_IDLE;
	kiw_ep_init_mpa(ep);
	if (xa_alloc_cyclic(&eps, &ep->id, ep, xa_limit_32b, &next_ep_id, GFP_KERNEL) < 0)
		goto err_free_buf;
	kiw_count(&dev->stats, KIW_STAT_EP_CREATED);
	return ep;

err_free_buf:
	kfree(ep->buf);
err_free:
	kfree(ep);
	return NULL;
}

/* Process context, see the head of this file. */
static void ep_free(struct kref *ref)
{
	struct kiw_ep *ep = container_of(ref, struct kiw_ep, ref);

	/* Whoever finds it from here to the erasure does not get a reference. */
	xa_erase(&eps, ep->id);
	kiw_count(&ep->dev->stats, KIW_STAT_EP_DESTROYED);
	kfree(ep->buf);
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
 * kiw_ep_put() - give a reference back
 * @ep: endpoint
 *
 * Context: any; process if it can be the last.
 */
void kiw_ep_put(struct kiw_ep *ep)
{
	kref_put(&ep->ref, ep_free);
}

/* The endpoint iw_cm names, referenced, or NULL if it is gone. */
static struct kiw_ep *ep_find(struct iw_cm_id *id)
{
	struct kiw_ep *ep;

	xa_lock(&eps);
	ep = xa_load(&eps, (unsigned long)id->provider_data);
	if (ep && (ep->dev != to_kiw_device(id->device) || !kref_get_unless_zero(&ep->ref)))
		ep = NULL;
	xa_unlock(&eps);
	return ep;
}

/* The device's first endpoint from number *@id on, referenced, or NULL. */
static struct kiw_ep *ep_next(struct kiw_device *dev, unsigned long *id)
{
	struct kiw_ep *ep;

	xa_lock(&eps);
	do {
		ep = xa_find(&eps, id, ULONG_MAX, XA_PRESENT);
		++*id;
	} while (ep && (ep->dev != dev || !kref_get_unless_zero(&ep->ref)));
	xa_unlock(&eps);
	return ep;
}

/* Being called */

/* Any context. If the work is queued already, its reference is not the last either. */
static void ep_kick(struct kiw_ep *ep)
{
	kiw_ep_get(ep);
	if (!queue_work(ep->dev->wq, &ep->work))
		kiw_ep_put(ep);
}

static void ep_arm(struct kiw_ep *ep, unsigned int timeout_ms)
{
	kiw_ep_get(ep);
	if (!queue_delayed_work(ep->dev->wq, &ep->deadline, msecs_to_jiffies(timeout_ms)))
		kiw_ep_put(ep);
}

static void ep_disarm(struct kiw_ep *ep)
{
	if (cancel_delayed_work(&ep->deadline))
		kiw_ep_put(ep);
}

static void sock_event(void *owner)
{
	ep_kick(owner);
}

static const struct kiw_sock_ops ep_sock_ops = {
	.readable = sock_event,
	.changed = sock_event,
};

static void conn_spoken(void *conn)
{
	struct kiw_ep *ep = conn;

	set_bit(KIW_EPF_SPOKEN, &ep->facts);
	ep_kick(ep);
}

static void conn_closed(void *conn)
{
	struct kiw_ep *ep = conn;

	set_bit(KIW_EPF_QP_CLOSED, &ep->facts);
	ep_kick(ep);
	/* The QP's, taken when it took the stream */
	kiw_ep_put(ep);
}

const struct kiw_conn_ops kiw_ep_conn_ops = {
	.spoken = conn_spoken,
	.closed = conn_closed,
};

/* Telling iw_cm */

static int upcall(struct kiw_ep *ep, struct iw_cm_id *id, struct iw_cm_event *event)
{
	event->local_addr = ep->local;
	event->remote_addr = ep->remote;
	return id->event_handler(id, event);
}

/*
 * ESTABLISHED and CLOSE carry no private data, and iw_cm has set room aside for them:
 * they cannot fail.
 */
static void upcall_plain(struct kiw_ep *ep, enum iw_cm_event_type type)
{
	struct iw_cm_event event = { .event = type };

	if (type == IW_CM_EVENT_ESTABLISHED) {
		event.ird = ep->agreed.ord;
		event.ord = ep->agreed.ird;
	}
	WARN_ON_ONCE(upcall(ep, ep->cm_id, &event));
}

static int upcall_reply(struct kiw_ep *ep, int status)
{
	struct iw_cm_event event = {
		.event = IW_CM_EVENT_CONNECT_REPLY,
		.status = status,
		.private_data = (void *)ep->pdata,
		.private_data_len = ep->pdata_len,
	};

	if (!status) {
		event.ird = ep->agreed.ord;
		event.ord = ep->agreed.ird;
	}
	return upcall(ep, ep->cm_id, &event);
}

/* iw_cm waits for this one: rather without private data than not at all. */
static void upcall_reply_fail(struct kiw_ep *ep, int status)
{
	if (!upcall_reply(ep, status))
		return;
	ep->pdata_len = 0;
	WARN_ON_ONCE(upcall_reply(ep, status));
}

/* Not a listener's child any more: the consumer has it, or it ends. */
static void leave_listener(struct kiw_ep *ep)
{
	struct kiw_ep *listener = ep->listener;

	if (!listener)
		return;
	spin_lock(&listener->half_lock);
	if (!list_empty(&ep->link)) {
		list_del_init(&ep->link);
		listener->num_children--;
		kiw_ep_put(ep);
	}
	spin_unlock(&listener->half_lock);
	ep->listener = NULL;
	kiw_ep_put(listener);
}

/* Under @half_lock: no upcall runs once the listener is stopped. */
static int upcall_request(struct kiw_ep *ep)
{
	struct kiw_ep *listener = ep->listener;
	struct iw_cm_event event = {
		.event = IW_CM_EVENT_CONNECT_REQUEST,
		.provider_data = (void *)(unsigned long)ep->id,
		.private_data = (void *)ep->pdata,
		.private_data_len = ep->pdata_len,
	};
	int ret = -ECONNABORTED;
	u16 ird, ord;

	kiw_mpa_peer_limits(&ep->req, &ep->want, &ird, &ord);
	event.ird = ord;
	event.ord = ird;
	spin_lock(&listener->half_lock);
	if (!listener->is_stopped)
		ret = upcall(ep, listener->cm_id, &event);
	spin_unlock(&listener->half_lock);
	leave_listener(ep);
	ep->pdata = NULL;
	ep->pdata_len = 0;
	return ret;
}

/* Return: 0, or -errno when a Request or a good Reply was not taken. */
static int tell(struct kiw_ep *ep, u16 actions, int status)
{
	int ret = 0;

	if (actions & KIW_CMA_UPCALL_REQUEST)
		ret = upcall_request(ep);
	if (actions & KIW_CMA_UPCALL_REPLY_OK)
		ret = upcall_reply(ep, 0);
	if (actions & KIW_CMA_UPCALL_REPLY_FAIL)
		upcall_reply_fail(ep, status);
	if (actions & KIW_CMA_UPCALL_ESTABLISHED)
		upcall_plain(ep, IW_CM_EVENT_ESTABLISHED);
	if (actions & KIW_CMA_UPCALL_CLOSE)
		upcall_plain(ep, IW_CM_EVENT_CLOSE);
	return ret;
}

/* Taking steps */

static void end_startup(struct kiw_ep *ep)
{
	ep_disarm(ep);
	kfree(ep->buf);
	ep->buf = NULL;
	ep->pdata = NULL;
	ep->pdata_len = 0;
}

/* The caller holds a reference of its own, so none of these is the last. */
static void release(struct kiw_ep *ep)
{
	end_startup(ep);
	leave_listener(ep);
	if (ep->qp)
		kiw_qp_put(ep->qp);
	ep->qp = NULL;
	if (ep->cm_id)
		ep->cm_id->rem_ref(ep->cm_id);
	ep->cm_id = NULL;
	kiw_ep_put(ep);
}

static void end_stream(struct kiw_ep *ep, bool in_order)
{
	/* None when the QP has it, or when it was never made */
	if (!ep->ks)
		return;
	if (in_order)
		kiw_sock_linger(ep->ks, EP_LINGER_MS);
	else
		kiw_sock_drop(ep->ks, true);
	kiw_sock_put(ep->ks);
	ep->ks = NULL;
}

/* Counters that an event moves when it leads somewhere; 0 (unused here): none */
static const u8 event_stats[KIW_CME_COUNT] = {
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

static void count_step(struct kiw_ep *ep, enum kiw_cm_event event, enum kiw_cm_state next)
{
	struct kiw_stats *stats = &ep->dev->stats;

	if (event == KIW_CME_CONNECT)
		kiw_count(stats, KIW_STAT_CONN_INITIATED);
	if (next == KIW_CMS_OPEN && ep->state != next)
		kiw_count(stats, KIW_STAT_CONN_ESTABLISHED);
	if (event_stats[event])
		kiw_count(stats, event_stats[event]);
}

static void act(struct kiw_ep *ep, u16 actions, int status)
{
	int ret;

	if (actions & KIW_CMA_SEND_REJECT)
		kiw_ep_send_reject(ep);
	ret = tell(ep, actions, status);
	if (actions & KIW_CMA_ABORT_QP)
		kiw_qp_event(ep->qp, KIW_QPE_ABORT);
	if (actions & (KIW_CMA_LINGER | KIW_CMA_DROP))
		end_stream(ep, actions & KIW_CMA_LINGER);
	if (actions & KIW_CMA_END_STARTUP)
		end_startup(ep);
	if (actions & KIW_CMA_RELEASE)
		release(ep);
	if (ret)
		kiw_ep_step(ep, KIW_CME_UNDELIVERED, ret);
}

/**
 * kiw_ep_step() - let an event happen
 * @ep: endpoint; the caller holds a reference
 * @event: what happened
 * @status: why, for the consumer: 0 or -errno
 *
 * The only place that writes the state. Calls itself once at the most, for what iw_cm
 * had no room for.
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
	count_step(ep, event, step.next);
	/* Its own reference, until release() */
	if (ep->state == KIW_CMS_IDLE)
		kiw_ep_get(ep);
	ep->state = step.next;
	act(ep, step.actions, status);
}

/* Listening */

/* Return: false if the listener is stopped or has too many children. */
static bool join_listener(struct kiw_ep *ep, struct kiw_ep *listener)
{
	bool is_welcome;

	spin_lock(&listener->half_lock);
	is_welcome = !listener->is_stopped && listener->num_children < listener->max_children;
	if (is_welcome) {
		kiw_ep_get(listener);
		ep->listener = listener;
		kiw_ep_get(ep);
		list_add_tail(&ep->link, &listener->children);
		listener->num_children++;
	}
	spin_unlock(&listener->half_lock);
	return is_welcome;
}

static void take_stream(struct kiw_ep *listener, struct kiw_sock *ks)
{
	struct kiw_ep *ep;

	ep = ep_new(listener->dev);
	if (!ep) {
		kiw_count(&listener->dev->stats, KIW_STAT_CONN_FAILED);
		kiw_sock_drop(ks, true);
		kiw_sock_put(ks);
		return;
	}
	mutex_lock_nested(&ep->lock, SINGLE_DEPTH_NESTING);
	ep->ks = ks;
	kiw_ep_step(ep, KIW_CME_INCOMING, 0);
	if (!join_listener(ep, listener)) {
		kiw_count(&ep->dev->stats, KIW_STAT_CONN_LIMITED);
		kiw_ep_step(ep, KIW_CME_DESTROY, 0);
	} else if (kiw_sock_names(ks, &ep->local, &ep->remote)) {
		kiw_ep_step(ep, KIW_CME_LOST, 0);
	} else {
		ep_arm(ep, ep->dev->policy.startup_ms);
		kiw_sock_set_owner(ks, &ep_sock_ops, ep);
		/* What came before is not announced to a new owner. */
		ep_kick(ep);
	}
	mutex_unlock(&ep->lock);
	kiw_ep_put(ep);
}

/*
 * Take what TCP has for us. A stream that cannot be had is dropped, so that the queue
 * moves on; but lack of resources may leave it in the queue, where nothing announces it
 * again, hence another try.
 */
static void accept_streams(struct kiw_ep *listener)
{
	unsigned int budget = EP_ACCEPT_BUDGET;
	struct kiw_sock *ks;

	while (budget--) {
		ks = kiw_sock_accept(listener->ks, NULL, NULL);
		if (!IS_ERR(ks)) {
			take_stream(listener, ks);
			continue;
		}
		if (PTR_ERR(ks) == -EAGAIN)
			return;
		if (PTR_ERR(ks) != -ECONNABORTED) {
			ep_arm(listener, EP_RETRY_MS);
			return;
		}
	}
	ep_kick(listener);
}

/* The first child, referenced, or NULL. */
static struct kiw_ep *first_child(struct kiw_ep *listener)
{
	struct kiw_ep *ep;

	spin_lock(&listener->half_lock);
	ep = list_first_entry_or_null(&listener->children, struct kiw_ep, link);
	if (ep)
		kiw_ep_get(ep);
	spin_unlock(&listener->half_lock);
	return ep;
}

/*
 * From here on the listener's cm_id is not called. A child that is telling the consumer
 * at this moment has done so when its lock is had, and is no child any more.
 */
static void stop_listener(struct kiw_ep *listener)
{
	struct kiw_ep *ep;

	spin_lock(&listener->half_lock);
	listener->is_stopped = true;
	spin_unlock(&listener->half_lock);

	mutex_lock(&listener->lock);
	kiw_ep_step(listener, KIW_CME_DESTROY, 0);
	mutex_unlock(&listener->lock);

	while ((ep = first_child(listener))) {
		mutex_lock(&ep->lock);
		kiw_ep_step(ep, KIW_CME_DESTROY, 0);
		mutex_unlock(&ep->lock);
		kiw_ep_put(ep);
	}
}

/* Works */

/* Take the steps that follow from how things are. */
static void progress(struct kiw_ep *ep)
{
	switch (ep->state) {
	case KIW_CMS_LISTENING:
		accept_streams(ep);
		break;
	case KIW_CMS_CONNECTING:
		kiw_ep_try_connected(ep);
		break;
	case KIW_CMS_WAIT_REPLY:
		kiw_ep_try_reply(ep);
		break;
	case KIW_CMS_WAIT_REQUEST:
		kiw_ep_try_request(ep);
		break;
	case KIW_CMS_REQUEST_GIVEN:
		kiw_ep_check_stream(ep);
		break;
	case KIW_CMS_WAIT_FIRST:
	case KIW_CMS_OPEN:
		/* In the order in which they came about, if both did */
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

	mutex_lock(&ep->lock);
	progress(ep);
	mutex_unlock(&ep->lock);
	kiw_ep_put(ep);
}

static void ep_deadline(struct work_struct *work)
{
	struct kiw_ep *ep = container_of(to_delayed_work(work), struct kiw_ep, deadline);

	mutex_lock(&ep->lock);
	/* What has come in time counts, even if its work has not run yet. */
	progress(ep);
	kiw_ep_step(ep, KIW_CME_DEADLINE, -ETIMEDOUT);
	mutex_unlock(&ep->lock);
	kiw_ep_put(ep);
}

/* Downcalls */

static int bind_ifindex(const struct kiw_device *dev, const struct sockaddr_storage *addr)
{
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)addr;
	const struct sockaddr_in *in = (const struct sockaddr_in *)addr;
	bool is_ambiguous;

	if (addr->ss_family == AF_INET6)
		is_ambiguous = ipv6_addr_any(&in6->sin6_addr) ||
			       ipv6_addr_type(&in6->sin6_addr) & IPV6_ADDR_LINKLOCAL;
	else
		is_ambiguous = in->sin_addr.s_addr == htonl(INADDR_ANY);
	return is_ambiguous ? dev->ndev->ifindex : 0;
}

/* Give the endpoint iw_cm's object: addresses and a reference. */
static void bind_cm_id(struct kiw_ep *ep, struct iw_cm_id *id)
{
	ep->local = id->m_local_addr;
	ep->remote = id->m_remote_addr;
	ep->cm_id = id;
	id->add_ref(id);
}

static void unbind_cm_id(struct kiw_ep *ep)
{
	ep->cm_id->rem_ref(ep->cm_id);
	ep->cm_id = NULL;
}

static int start_connect(struct kiw_ep *ep, int tos)
{
	struct kiw_device *dev = ep->dev;
	struct kiw_sock *ks;

	lockdep_assert_held(&ep->lock);
	if (ep->local.ss_family != ep->remote.ss_family)
		return -EAFNOSUPPORT;
	ks = kiw_sock_connect(&dev->socks, bind_ifindex(dev, &ep->local), &ep->local,
			      &ep->remote, tos, &ep_sock_ops, ep);
	if (IS_ERR(ks))
		return PTR_ERR(ks);
	ep->ks = ks;
	kiw_ep_step(ep, KIW_CME_CONNECT, 0);
	ep_arm(ep, dev->policy.startup_ms);
	return 0;
}

/**
 * kiw_cm_connect() - iw_cm: connect
 * @id: whom to tell: CONNECT_REPLY, once, whatever happens, within the deadline
 * @param: depths, private data and the QP; not kept
 *
 * Context: process, may sleep, does not wait for the peer.
 * Return: 0: the event follows; -errno: there is none.
 */
int kiw_cm_connect(struct iw_cm_id *id, struct iw_cm_conn_param *param)
{
	struct kiw_device *dev = to_kiw_device(id->device);
	struct ib_qp *ibqp;
	struct kiw_ep *ep;
	int ret;

	/* iw_cm holds a reference on this QP until it has heard how the connection ended. */
	ibqp = kiw_iw_get_qp(id->device, param->qpn);
	if (!ibqp)
		return -EINVAL;
	ep = ep_new(dev);
	if (!ep)
		return -ENOMEM;
	ret = kiw_ep_build_request(ep, param);
	if (ret)
		goto err_put;
	bind_cm_id(ep, id);
	ep->qp = to_kiw_qp(ibqp);
	kiw_qp_get(ep->qp);
	mutex_lock(&ep->lock);
	ret = start_connect(ep, id->tos_set ? id->tos : -1);
	mutex_unlock(&ep->lock);
	if (ret)
		goto err_unbind;
	kiw_ep_put(ep);
	return 0;

err_unbind:
	kiw_qp_put(ep->qp);
	unbind_cm_id(ep);
err_put:
	kiw_ep_put(ep);
	return ret;
}

/**
 * kiw_cm_accept() - iw_cm: accept a connection request
 * @id: whom to tell: ESTABLISHED, once, whatever happens, within the deadline; then CLOSE
 * @param: depths, private data and the QP; not kept
 *
 * Context: process, may sleep, does not wait for the peer.
 * Return: 0: the events follow, perhaps before this returns; -errno: there are none and
 * the request is no more. -ECONNABORTED: the peer has gone or the deadline has passed.
 */
int kiw_cm_accept(struct iw_cm_id *id, struct iw_cm_conn_param *param)
{
	struct kiw_ep *ep = ep_find(id);
	int ret = -ECONNABORTED;

	if (!ep)
		return ret;
	mutex_lock(&ep->lock);
	progress(ep);
	if (ep->state == KIW_CMS_REQUEST_GIVEN)
		ret = kiw_ep_accept(ep, id, param);
	mutex_unlock(&ep->lock);
	kiw_ep_put(ep);
	return ret;
}

/**
 * kiw_cm_reject() - iw_cm: reject a connection request
 * @id: which
 * @pdata: private data for the peer; not kept
 * @pd_len: its length, octets
 *
 * Context: process, may sleep, does not wait for the peer.
 * Return: 0; also when the request has ended otherwise: there is no connection.
 */
int kiw_cm_reject(struct iw_cm_id *id, const void *pdata, u8 pd_len)
{
	struct kiw_ep *ep = ep_find(id);

	if (!ep)
		return 0;
	mutex_lock(&ep->lock);
	if (ep->state == KIW_CMS_REQUEST_GIVEN) {
		ep->pdata = pdata;
		ep->pdata_len = pd_len;
		kiw_ep_step(ep, KIW_CME_REJECT, 0);
	}
	mutex_unlock(&ep->lock);
	kiw_ep_put(ep);
	return 0;
}

static int start_listen(struct kiw_ep *ep, int backlog)
{
	struct kiw_device *dev = ep->dev;
	struct kiw_sock *ks;

	lockdep_assert_held(&ep->lock);
	ks = kiw_sock_listen(&dev->socks, bind_ifindex(dev, &ep->local), &ep->local, backlog,
			     &ep_sock_ops, ep);
	if (IS_ERR(ks))
		return PTR_ERR(ks);
	ep->ks = ks;
	ep->max_children = backlog + dev->policy.max_half_open;
	kiw_ep_step(ep, KIW_CME_LISTEN, 0);
	return 0;
}

/**
 * kiw_cm_create_listen() - iw_cm: listen
 * @id: whom to tell of requests, until kiw_cm_destroy_listen()
 * @backlog: connections the consumer allows for, greater than 0
 *
 * Context: process, may sleep.
 * Return: 0 or -errno, as bind() and listen() would have it.
 */
int kiw_cm_create_listen(struct iw_cm_id *id, int backlog)
{
	struct kiw_ep *ep;
	int ret;

	ep = ep_new(to_kiw_device(id->device));
	if (!ep)
		return -ENOMEM;
	bind_cm_id(ep, id);
	mutex_lock(&ep->lock);
	ret = start_listen(ep, backlog);
	mutex_unlock(&ep->lock);
	if (ret)
		unbind_cm_id(ep);
	else
		id->provider_data = (void *)(unsigned long)ep->id;
	kiw_ep_put(ep);
	return ret;
}

/**
 * kiw_cm_destroy_listen() - iw_cm: stop listening
 * @id: the listener; it is told nothing more
 *
 * Connections whose Request has not been delivered are reset.
 *
 * Context: process, may sleep.
 * Return: 0.
 */
int kiw_cm_destroy_listen(struct iw_cm_id *id)
{
	struct kiw_ep *ep = ep_find(id);

	if (WARN_ON_ONCE(!ep))
		return 0;
	stop_listener(ep);
	kiw_ep_put(ep);
	return 0;
}

/**
 * kiw_cm_drain() - end what is left of a device's endpoints
 * @dev: the device; unregistered, so that nothing new begins
 *
 * Left are requests that iw_cm dropped, and works that are about to finish.
 *
 * Context: process, may sleep. When it returns, no endpoint of @dev is left whose QP is
 * gone, and none holds a stream.
 */
void kiw_cm_drain(struct kiw_device *dev)
{
	unsigned long id = 0;
	struct kiw_ep *ep;

	while ((ep = ep_next(dev, &id))) {
		mutex_lock(&ep->lock);
		kiw_ep_step(ep, KIW_CME_DESTROY, -ENODEV);
		mutex_unlock(&ep->lock);
		kiw_ep_put(ep);
	}
	flush_workqueue(dev->wq);
}
