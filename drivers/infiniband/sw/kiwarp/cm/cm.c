// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The provider side of iw_cm: connect, accept, reject.
 *
 * cm_ep.c has the endpoints, cm_mpa.c the MPA frames, cm_listen.c the listeners; this file owns
 * nothing. It runs in process context. Endpoints take steps with their lock held. Nothing here
 * waits for a peer. Documentation/connections.rst gives an overview.
 *
 * The QP. iw_cm takes a reference to the QP before connect and accept, and drops it if that fails,
 * on a failed CONNECT_REPLY, on CLOSE, or with the iw_cm_id. Destroying a QP waits for that
 * reference, so it first ends the endpoints that are connecting for the QP (kiw_cm_forget_qp()),
 * which also drops their own references. A QP that is not in IDLE when it is to take the stream
 * does not take it, and the connection fails. qp/caller.c decides which caller may use which QP.
 *
 * Accepting. iw_cm has no state for a connection that is accepted but whose ESTABLISHED
 * event is not yet processed. Until then it lets the consumer accept again or reject, and
 * hits a BUG_ON() when it processes the event. So when a process accepts, a successful accept
 * returns only after iw_cm has taken the event (cm_accept_waiting()). In a kernel thread it does
 * not wait: many kernel consumers accept in a work item of iw_cm, and only a later one processes
 * the event.
 */
#include "cm.h"

#include <linux/completion.h>
#include <linux/err.h>
#include <linux/sched/mm.h>
#include <rdma/iw_cm.h>

#include "cm_ep.h"
#include "device.h"
#include "qp/caller.h"
#include "qp/qp.h"
#include "qp/qp_table.h"
#include "sock/sock.h"

static int cm_open_stream(struct kiw_ep *ep)
{
	struct kiw_sock_local local = kiw_ep_local(ep);
	struct kiw_sock *ks;

	lockdep_assert_held(&ep->lock);
	ks = kiw_sock_connect(&ep->dev->socks, &local, &ep->startup->remote, &kiw_ep_sock_ops, ep);
	if (IS_ERR(ks))
		return PTR_ERR(ks);
	ep->ks = ks;
	return 0;
}

static int cm_start_connect(struct kiw_ep *ep)
{
	int ret;

	lockdep_assert_held(&ep->lock);
	if (!kiw_ep_is_at_home(ep))
		return kiw_ep_refuse_foreigner(ep);
	ret = cm_open_stream(ep);
	if (ret)
		return ret;
	kiw_ep_step(ep, KIW_CME_CONNECT, 0);
	kiw_ep_arm(ep, kiw_policy_get(&ep->dev->policy, KIW_POLICY_STARTUP_MS));
	kiw_ep_join_qp(ep);
	/* The QP is being destroyed, and kiw_cm_forget_qp() may have missed this startup */
	if (!kiw_qp_table_has(&ep->dev->qps, ep->qp))
		kiw_ep_step(ep, KIW_CME_DESTROY, -ECONNABORTED);
	return 0;
}

static int cm_connect_qp(struct iw_cm_id *id, struct iw_cm_conn_param *param)
{
	struct kiw_device *dev = to_kiw_device(id->device);
	struct kiw_ep *ep;
	int ret = -EINVAL;

	ep = kiw_ep_new(dev);
	if (!ep)
		return -ENOMEM;
	ep->qp = kiw_qp_table_find(&dev->qps, id, param->qpn);
	if (!ep->qp)
		goto err_put;
	/* Early check only: kiw_qp_connect() checks again. */
	if (kiw_qp_state(ep->qp) != KIW_QPS_IDLE)
		goto err_put_qp;
	ret = kiw_ep_build_request(ep, param);
	if (ret)
		goto err_put_qp;
	mutex_lock(&ep->lock);
	kiw_ep_bind_id(ep, id);
	ret = cm_start_connect(ep);
	if (ret)
		kiw_ep_unbind_id(ep);
	mutex_unlock(&ep->lock);
	if (ret)
		goto err_put_qp;
	kiw_ep_put(ep);
	return 0;

err_put_qp:
	kiw_qp_put(ep->qp);
err_put:
	kiw_ep_put(ep);
	return ret;
}

/**
 * kiw_cm_connect() - start a connection for iw_cm
 * @id: if this returns 0, gets exactly one CONNECT_REPLY, at the latest after the deadline
 * @param: depths, private data and the QP; not kept
 *
 * Context: process, may sleep, does not wait for the peer.
 * Return: 0: the event follows, perhaps before this returns; -errno: no event follows.
 */
int kiw_cm_connect(struct iw_cm_id *id, struct iw_cm_conn_param *param)
{
	/* Often called by rdma_cm's only worker, on which reconnecting to a disk depends */
	unsigned int noio = memalloc_noio_save();
	int ret = cm_connect_qp(id, param);

	memalloc_noio_restore(noio);
	return ret;
}

/*
 * Replaces the cm_id's handler while a process accepts: iw_cm has processed ESTABLISHED and is
 * about to pass it on to rdma_cm. Runs in iw_cm's work item. Until @is_taken is completed, the
 * accepting process stays in cm_accept_waiting() and keeps the endpoint alive.
 */
static int cm_established(struct iw_cm_id *id, struct iw_cm_event *event)
{
	struct kiw_ep *ep = kiw_ep_find(id);
	struct kiw_ep_accept *accept = ep->accept;

	id->cm_handler = accept->cm_handler;
	complete(&accept->is_taken);
	kiw_ep_put(ep);
	return id->cm_handler(id, event);
}

/*
 * Accept, and wait until iw_cm has taken ESTABLISHED. iw_cm runs one work item at a time for all
 * connections. Those queued ahead of ours do not wait for this process: it holds only locks of this
 * connection, for which no earlier event is queued.
 */
static int cm_accept_waiting(struct kiw_ep *ep, struct iw_cm_id *id, struct iw_cm_conn_param *param)
{
	struct kiw_ep_accept accept = { .cm_handler = id->cm_handler };
	int ret;

	lockdep_assert_held(&ep->lock);
	init_completion(&accept.is_taken);
	ep->accept = &accept;
	id->cm_handler = cm_established;
	ret = kiw_ep_accept(ep, id, param);
	if (ret) {
		id->cm_handler = accept.cm_handler;
	} else {
		mutex_unlock(&ep->lock);
		wait_for_completion(&accept.is_taken);
		mutex_lock(&ep->lock);
	}
	ep->accept = NULL;
	return ret;
}

static int cm_accept_request(struct kiw_ep *ep, struct iw_cm_id *id, struct iw_cm_conn_param *param)
{
	lockdep_assert_held(&ep->lock);
	kiw_ep_progress(ep);
	if (ep->state != KIW_CMS_REQUEST_GIVEN)
		return -ECONNABORTED;
	if (!kiw_caller_is_process())
		return kiw_ep_accept(ep, id, param);
	return cm_accept_waiting(ep, id, param);
}

static int cm_accept_qp(struct iw_cm_id *id, struct iw_cm_conn_param *param)
{
	struct kiw_ep *ep = kiw_ep_find(id);
	int ret;

	if (!ep)
		return -ECONNABORTED;
	mutex_lock(&ep->lock);
	ret = cm_accept_request(ep, id, param);
	mutex_unlock(&ep->lock);
	kiw_ep_put(ep);
	return ret;
}

/**
 * kiw_cm_accept() - accept a connection request for iw_cm
 * @id: if this returns 0, gets ESTABLISHED at once and CLOSE later, exactly once each
 * @param: depths, private data and the QP; not kept
 *
 * Context: process, may sleep, does not wait for the peer. If the caller is a process and the
 * request is accepted, waits until iw_cm has taken ESTABLISHED.
 * Return: 0: the events follow, the first perhaps before this returns; -errno: this call causes no
 * event. -ECONNABORTED: the request has ended, e.g. because the peer has gone or the deadline has
 * passed, or it was accepted before; -EINVAL: no such QP for this caller, the QP is not idle, or
 * too much private data; -EPROTO: the consumer's depths allow no RTR; -ENOMEM; or why TCP could not
 * send the Reply. In all cases but an earlier accept the request is gone.
 */
int kiw_cm_accept(struct iw_cm_id *id, struct iw_cm_conn_param *param)
{
	/* As in kiw_cm_connect(): a host can be both client and server */
	unsigned int noio = memalloc_noio_save();
	int ret = cm_accept_qp(id, param);

	memalloc_noio_restore(noio);
	return ret;
}

/**
 * kiw_cm_reject() - reject a connection request for iw_cm
 * @id: the request
 * @pdata: private data for the peer; not kept
 * @pd_len: length of @pdata in bytes
 *
 * Context: process, may sleep, does not wait for the peer.
 * Return: 0, also if the request has already ended in another way: there is no connection.
 * -EINVAL: the request has been accepted. This happens only if a kernel consumer has accepted it,
 * and iw_cm has not taken ESTABLISHED yet.
 */
int kiw_cm_reject(struct iw_cm_id *id, const void *pdata, u8 pd_len)
{
	struct kiw_ep *ep = kiw_ep_find(id);
	int ret = 0;

	if (!ep)
		return 0;
	mutex_lock(&ep->lock);
	if (ep->state == KIW_CMS_REQUEST_GIVEN) {
		ep->startup->pdata = pdata;
		ep->startup->pdata_len = pd_len;
		kiw_ep_step(ep, KIW_CME_REJECT, 0);
	} else if (ep->state != KIW_CMS_CLOSED) {
		ret = -EINVAL;
	}
	mutex_unlock(&ep->lock);
	kiw_ep_put(ep);
	return ret;
}

/**
 * kiw_cm_forget_qp() - end all startups for a QP that is being destroyed
 * @dev: the device
 * @qp: the QP; hidden from lookups
 *
 * iw_cm is told that connecting failed, and drops its reference to the QP. A QP can have several
 * startups, even beside an existing connection. A startup that begins concurrently is either found
 * here or sees that the QP is hidden (kiw_qp_table_has()).
 *
 * Context: process, may sleep, does not wait for the peer.
 */
void kiw_cm_forget_qp(struct kiw_device *dev, struct kiw_qp *qp)
{
	struct kiw_ep *ep;

	while ((ep = kiw_ep_first_startup(dev, qp))) {
		mutex_lock(&ep->lock);
		/* The startup may have ended while we waited for the lock. */
		if (ep->startup)
			kiw_ep_step(ep, KIW_CME_DESTROY, -ECONNABORTED);
		mutex_unlock(&ep->lock);
		kiw_ep_put(ep);
	}
}

/**
 * kiw_cm_drain() - end the remaining endpoints of a device
 * @dev: the device; not registered any more, or not at all, so that nothing new begins
 *
 * These are the endpoints of requests that iw_cm dropped, and of work items that are about to
 * finish.
 *
 * Context: process, may sleep. When it returns, no endpoint of @dev refers to a QP that was freed,
 * and none holds a stream.
 */
void kiw_cm_drain(struct kiw_device *dev)
{
	unsigned long id = 0;
	struct kiw_ep *ep;

	while ((ep = kiw_ep_next(dev, &id))) {
		mutex_lock(&ep->lock);
		kiw_ep_step(ep, KIW_CME_DESTROY, -ENODEV);
		mutex_unlock(&ep->lock);
		kiw_ep_put(ep);
	}
	flush_workqueue(dev->wq);
}
