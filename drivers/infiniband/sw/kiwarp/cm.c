// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The provider side of iw_cm: connect, accept, reject, listen.
 *
 * cm_ep.c owns the endpoints, cm_mpa.c the MPA frames; this file owns nothing. It runs in
 * process context and works on an endpoint with the endpoint's lock held. Nothing here
 * waits for a peer. Documentation/connections.rst gives an overview.
 *
 * Unanswered Requests. iw_cm creates the cm_id of an incoming connection only when it
 * processes the CONNECT_REQUEST event. If it cannot, or if the listener is being destroyed,
 * it drops the event and nobody ever answers the Request. The event therefore carries the
 * endpoint's number and not a pointer. The deadline closes an endpoint that is not answered,
 * and a later answer does not find it.
 *
 * The QP. iw_cm takes a reference to the QP before connect and accept, and drops it on a
 * failed CONNECT_REPLY or on CLOSE. Destroying a QP waits for that reference, so it first
 * ends any startup for the QP (kiw_cm_forget_qp()). The endpoint's own reference is dropped
 * no later. A QP that moves to ERROR during the startup does not take the stream, and the
 * connection fails. caller.c decides which caller may name which QP.
 *
 * Accepting. iw_cm has no state for a connection that is accepted but whose ESTABLISHED
 * event is not yet processed. In between it lets the consumer accept again or reject, and
 * the event that follows stops the kernel. So when a process accepts, accept returns only
 * after iw_cm has taken the event (cm_accept_waiting()). For a kernel consumer it returns at
 * once: many accept in iw_cm's own work item, which processes the event later.
 *
 * Wildcards. For a wildcard address, rdma_cm listens once on each device. Such a socket is
 * bound to the device's netdev, so that the sockets of several devices do not collide.
 * Connections from this host to the netdev's own addresses still reach it: they pass through
 * lo, but TCP treats them as received by the interface that has the address. On a device in
 * another network namespace than the listener's no socket is created.
 */
#include "cm.h"

#include <linux/completion.h>
#include <linux/err.h>
#include <linux/sched/mm.h>
#include <net/ipv6.h>
#include <rdma/iw_cm.h>

#include "caller.h"
#include "cm_ep.h"
#include "device.h"
#include "qp.h"
#include "qp_table.h"
#include "sock.h"

/* How long a listener waits after it ran out of memory */
#define CM_RETRY_MS	100
/* Streams accepted in one run of a listener's work item */
#define CM_ACCEPT_BUDGET 64

/* Listening */

/* Return: false if the listener is stopped. */
static bool join_listener(struct kiw_ep *ep, struct kiw_ep *listener)
{
	struct kiw_device *dev = ep->dev;
	bool is_welcome;

	spin_lock(&listener->half_lock);
	is_welcome = !listener->is_stopped;
	if (is_welcome) {
		kiw_ep_get(listener);
		ep->listener = listener;
		kiw_ep_get(ep);
		list_add_tail(&ep->link, &listener->children);
		WRITE_ONCE(listener->num_children, listener->num_children + 1);
		spin_lock(&dev->half_open_lock);
		list_add_tail(&ep->half_link, &dev->half_open);
		WRITE_ONCE(dev->num_half_open, dev->num_half_open + 1);
		spin_unlock(&dev->half_open_lock);
	}
	spin_unlock(&listener->half_lock);
	return is_welcome;
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

/* The oldest half-open connection of all listeners, referenced, or NULL. */
static struct kiw_ep *first_half_open(struct kiw_device *dev)
{
	struct kiw_ep *ep;

	spin_lock(&dev->half_open_lock);
	ep = list_first_entry_or_null(&dev->half_open, struct kiw_ep, half_link);
	if (ep)
		kiw_ep_get(ep);
	spin_unlock(&dev->half_open_lock);
	return ep;
}

static unsigned int max_children(const struct kiw_ep *listener)
{
	return listener->backlog +
	       kiw_policy_get(&listener->dev->policy, KIW_POLICY_MAX_HALF_OPEN);
}

/* Close a half-open connection, unless its Request has arrived in the meantime. */
static void evict(struct kiw_ep *ep)
{
	mutex_lock_nested(&ep->lock, SINGLE_DEPTH_NESTING);
	kiw_ep_progress(ep);
	if (ep->state == KIW_CMS_WAIT_REQUEST) {
		kiw_count(&ep->dev->stats, KIW_STAT_CONN_LIMITED);
		kiw_ep_step(ep, KIW_CME_DESTROY, 0);
	}
	mutex_unlock(&ep->lock);
	kiw_ep_put(ep);
}

/*
 * Silent peers must not keep others out, so evict the oldest half-open connections. The loops
 * end: after evict() a connection is no longer a child, whichever way it went.
 */
static void make_room(struct kiw_ep *listener)
{
	struct kiw_device *dev = listener->dev;
	unsigned int max;
	struct kiw_ep *ep;

	lockdep_assert_held(&listener->lock);
	while (READ_ONCE(listener->num_children) >= max_children(listener)) {
		ep = first_child(listener);
		if (!ep)
			break;
		evict(ep);
	}
	max = kiw_policy_get(&dev->policy, KIW_POLICY_MAX_HALF_OPEN_TOTAL);
	while (READ_ONCE(dev->num_half_open) >= max) {
		ep = first_half_open(dev);
		if (!ep)
			break;
		evict(ep);
	}
}

/* To rdma_cm, an IPv4 connection to a dual-stack listener has IPv4 addresses. */
static void unmap_address(struct sockaddr_storage *addr)
{
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)addr;
	struct sockaddr_in in = { .sin_family = AF_INET };

	if (addr->ss_family != AF_INET6 || !ipv6_addr_v4mapped(&in6->sin6_addr))
		return;
	in.sin_port = in6->sin6_port;
	in.sin_addr.s_addr = in6->sin6_addr.s6_addr32[3];
	memset(addr, 0, sizeof(*addr));
	memcpy(addr, &in, sizeof(in));
}

static void take_stream(struct kiw_ep *listener, struct kiw_sock *ks)
{
	struct kiw_ep *ep;

	make_room(listener);
	ep = kiw_ep_new(listener->dev);
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
		kiw_ep_step(ep, KIW_CME_DESTROY, 0);
	} else if (kiw_sock_names(ks, &ep->startup->local, &ep->startup->remote)) {
		kiw_ep_step(ep, KIW_CME_LOST, 0);
	} else {
		unmap_address(&ep->startup->local);
		unmap_address(&ep->startup->remote);
		kiw_ep_arm(ep, kiw_policy_get(&ep->dev->policy, KIW_POLICY_STARTUP_MS));
		kiw_sock_set_owner(ks, &kiw_ep_sock_ops, ep);
		/* A new owner is not notified of what arrived before. */
		kiw_ep_kick(ep);
	}
	mutex_unlock(&ep->lock);
	kiw_ep_put(ep);
}

/**
 * kiw_ep_try_accept() - accept the streams that TCP has for a listener
 * @listener: endpoint in LISTENING
 *
 * TCP drops a stream that ended before it was accepted, and the queue moves on. For lack of
 * memory a stream may stay in the queue. There is no second notification for it, so the
 * deadline is armed to try again.
 *
 * Context: process, may sleep; @listener's lock held.
 */
void kiw_ep_try_accept(struct kiw_ep *listener)
{
	unsigned int budget = CM_ACCEPT_BUDGET;
	struct kiw_sock *ks;

	lockdep_assert_held(&listener->lock);
	while (budget--) {
		ks = kiw_sock_accept(listener->ks, NULL, NULL);
		if (!IS_ERR(ks)) {
			take_stream(listener, ks);
			continue;
		}
		if (PTR_ERR(ks) == -EAGAIN)
			return;
		if (PTR_ERR(ks) != -ECONNABORTED) {
			kiw_ep_arm(listener, CM_RETRY_MS);
			return;
		}
	}
	kiw_ep_kick(listener);
}

/*
 * Once @is_stopped is set, the listener's cm_id gets no further event. A child that is
 * delivering its Request right now has finished, and left the list, by the time its lock
 * is acquired here.
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

/* Downcalls */

static bool cm_is_wildcard(const struct sockaddr_storage *addr)
{
	if (addr->ss_family == AF_INET6)
		return ipv6_addr_any(&((const struct sockaddr_in6 *)addr)->sin6_addr);
	return ((const struct sockaddr_in *)addr)->sin_addr.s_addr == htonl(INADDR_ANY);
}

static int bind_ifindex(const struct kiw_device *dev, const struct sockaddr_storage *addr)
{
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)addr;
	bool is_ambiguous = cm_is_wildcard(addr);

	if (addr->ss_family == AF_INET6 && ipv6_addr_type(&in6->sin6_addr) & IPV6_ADDR_LINKLOCAL)
		is_ambiguous = true;
	return is_ambiguous ? dev->ndev->ifindex : 0;
}

/*
 * Whether an endpoint belongs to the network namespace of the device's netdev. rdma_cm does not
 * always ensure it: for a wildcard address it listens on the devices of all namespaces, and in
 * Linux 6.1 it finds a device by its hardware address, which an interface in any namespace may
 * have.
 */
static bool cm_is_at_home(const struct kiw_ep *ep)
{
	const struct net *net = kiw_caller_net(ep->cm_id);

	return net && net_eq(net, ep->dev->socks.net);
}

/* Return: -EADDRNOTAVAIL, as bind() does for an address of another namespace. */
static int cm_refuse_foreigner(struct kiw_ep *ep)
{
	kiw_count(&ep->dev->stats, KIW_STAT_CONN_OTHER_NETNS);
	return -EADDRNOTAVAIL;
}

static __be16 port_of(const struct sockaddr_storage *addr)
{
	return addr->ss_family == AF_INET6 ? ((const struct sockaddr_in6 *)addr)->sin6_port :
					     ((const struct sockaddr_in *)addr)->sin_port;
}

/*
 * Tie the endpoint to iw_cm's object: copy the addresses and the type of service, and take a
 * reference. TCP uses the mapped addresses. They are the consumer's own unless the port mapper
 * has chosen others. If it was asked but left the port as it is, the port is not reserved for
 * us: another socket may hold it, and binding to it must fail then.
 */
static void bind_cm_id(struct kiw_ep *ep, struct iw_cm_id *id)
{
	struct kiw_ep_startup *startup = ep->startup;

	lockdep_assert_held(&ep->lock);
	startup->local = id->m_local_addr;
	startup->remote = id->m_remote_addr;
	startup->is_mapped = id->mapped &&
			     port_of(&id->m_local_addr) != port_of(&id->local_addr);
	startup->tos = id->tos_set ? id->tos : -1;
	ep->cm_id = id;
	id->add_ref(id);
}

static void unbind_cm_id(struct kiw_ep *ep)
{
	lockdep_assert_held(&ep->lock);
	ep->cm_id->rem_ref(ep->cm_id);
	ep->cm_id = NULL;
}

static struct kiw_sock_local local_end(const struct kiw_ep *ep)
{
	return (struct kiw_sock_local) {
		.addr = &ep->startup->local,
		.ifindex = bind_ifindex(ep->dev, &ep->startup->local),
		.tos = ep->startup->tos,
		.is_reserved = ep->startup->is_mapped,
		.is_memalloc = ep->qp && !ep->qp->is_user,
		.is_process = kiw_caller_is_process(),
	};
}

/**
 * kiw_ep_open_stream() - start to connect a stream to the peer
 * @ep: endpoint without a stream; it owns the stream afterwards
 *
 * Context: process, may sleep, does not wait for the peer; @ep's lock held.
 * Return: 0 or -errno, as for bind() and connect().
 */
int kiw_ep_open_stream(struct kiw_ep *ep)
{
	struct kiw_sock_local local = local_end(ep);
	struct kiw_sock *ks;

	lockdep_assert_held(&ep->lock);
	ks = kiw_sock_connect(&ep->dev->socks, &local, &ep->startup->remote, &kiw_ep_sock_ops, ep);
	if (IS_ERR(ks))
		return PTR_ERR(ks);
	ep->ks = ks;
	return 0;
}

static int start_connect(struct kiw_ep *ep)
{
	int ret;

	lockdep_assert_held(&ep->lock);
	if (!cm_is_at_home(ep))
		return cm_refuse_foreigner(ep);
	if (ep->startup->local.ss_family != ep->startup->remote.ss_family)
		return -EAFNOSUPPORT;
	ret = kiw_ep_open_stream(ep);
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

static int connect_qp(struct iw_cm_id *id, struct iw_cm_conn_param *param)
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
	/* Early check only: if the QP leaves IDLE later, it does not take the stream. */
	if (kiw_qp_state(ep->qp) != KIW_QPS_IDLE)
		goto err_put_qp;
	ret = kiw_ep_build_request(ep, param);
	if (ret)
		goto err_put_qp;
	mutex_lock(&ep->lock);
	bind_cm_id(ep, id);
	ret = start_connect(ep);
	if (ret)
		unbind_cm_id(ep);
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
 * @id: gets exactly one CONNECT_REPLY, within the deadline, whatever happens
 * @param: depths, private data and the QP; not kept
 *
 * Context: process, may sleep, does not wait for the peer.
 * Return: 0: the event follows; -errno: no event follows.
 */
int kiw_cm_connect(struct iw_cm_id *id, struct iw_cm_conn_param *param)
{
	/* rdma_cm calls from its only worker, on which reconnecting to a disk depends */
	unsigned int noio = memalloc_noio_save();
	int ret = connect_qp(id, param);

	memalloc_noio_restore(noio);
	return ret;
}

/*
 * Replaces the cm_id's handler while a process accepts: iw_cm has processed ESTABLISHED and is
 * about to pass it on to rdma_cm. Runs in iw_cm's work item. The accepting process waits in
 * cm_accept_waiting() and keeps the endpoint alive.
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
 * connections. Those queued ahead of ours do not wait for this process: it holds only rdma_cm's
 * lock of this connection, for which no earlier event is queued.
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

static int accept_qp(struct iw_cm_id *id, struct iw_cm_conn_param *param)
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
 * @id: gets ESTABLISHED at once and CLOSE later, exactly once each, whatever happens
 * @param: depths, private data and the QP; not kept
 *
 * Context: process, may sleep, does not wait for the peer. When a process calls, waits until
 * iw_cm has taken ESTABLISHED.
 * Return: 0: the events follow, the first perhaps before this returns; -errno: no event
 * follows and the request is gone. -ECONNABORTED: the peer has gone or the deadline has passed;
 * -EINVAL: no such QP for this caller, or the QP is not idle.
 */
int kiw_cm_accept(struct iw_cm_id *id, struct iw_cm_conn_param *param)
{
	/* As in kiw_cm_connect(): a host can be both client and server */
	unsigned int noio = memalloc_noio_save();
	int ret = accept_qp(id, param);

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
 * -EINVAL: the request has been accepted. This happens only if a kernel consumer accepts and
 * then rejects before iw_cm has taken ESTABLISHED; none does.
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

/*
 * For a wildcard address rdma_cm listens on all devices, and fails if one of them fails. A device
 * in another namespace has nothing to listen for, so this succeeds without a socket.
 */
static int cm_listen_elsewhere(struct kiw_ep *ep)
{
	if (!cm_is_wildcard(&ep->startup->local))
		return cm_refuse_foreigner(ep);
	kiw_ep_step(ep, KIW_CME_LISTEN, 0);
	return 0;
}

static int start_listen(struct kiw_ep *ep, int backlog, bool v6only)
{
	struct kiw_sock_local local = local_end(ep);
	struct kiw_sock *ks;

	lockdep_assert_held(&ep->lock);
	if (!cm_is_at_home(ep))
		return cm_listen_elsewhere(ep);
	/*
	 * Make TCP's accept queue as large as the largest burst we allow. A connection that
	 * does not fit loses its SYN, and a second until the SYN is sent again.
	 */
	ep->backlog = backlog;
	ks = kiw_sock_listen(&ep->dev->socks, &local, max_children(ep), v6only,
			     &kiw_ep_sock_ops, ep);
	if (IS_ERR(ks))
		return PTR_ERR(ks);
	ep->ks = ks;
	kiw_ep_step(ep, KIW_CME_LISTEN, 0);
	return 0;
}

/**
 * kiw_cm_create_listen() - start listening for iw_cm
 * @id: gets a CONNECT_REQUEST for each request until kiw_cm_destroy_listen()
 * @backlog: connections the consumer allows for, greater than 0
 *
 * Context: process, may sleep.
 * Return: 0 or -errno, as for bind() and listen(); -EADDRNOTAVAIL also for an address of
 * another network namespace.
 */
int kiw_cm_create_listen(struct iw_cm_id *id, int backlog)
{
	struct kiw_ep *ep;
	int ret;

	ep = kiw_ep_new(to_kiw_device(id->device));
	if (!ep)
		return -ENOMEM;
	mutex_lock(&ep->lock);
	bind_cm_id(ep, id);
	ret = start_listen(ep, backlog, id->afonly);
	if (ret)
		unbind_cm_id(ep);
	else
		id->provider_data = kiw_ep_handle(ep);
	mutex_unlock(&ep->lock);
	kiw_ep_put(ep);
	return ret;
}

/**
 * kiw_cm_destroy_listen() - stop listening for iw_cm
 * @id: the listener; it gets no further events
 *
 * Connections whose Request has not been delivered are reset.
 *
 * Context: process, may sleep.
 * Return: 0.
 */
int kiw_cm_destroy_listen(struct iw_cm_id *id)
{
	struct kiw_ep *ep = kiw_ep_find(id);

	if (WARN_ON_ONCE(!ep))
		return 0;
	stop_listener(ep);
	kiw_ep_put(ep);
	return 0;
}

/**
 * kiw_cm_forget_qp() - end all startups for a QP that is being destroyed
 * @dev: the device
 * @qp: the QP; no longer found by its number
 *
 * iw_cm is told that connecting failed, and drops its reference to the QP. A QP can have
 * several startups, even beside an existing connection: the first to finish gets the QP. A
 * startup that begins concurrently is either found here or finds that the QP is gone.
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
 * @dev: the device; unregistered, so that nothing new begins
 *
 * What remains are requests that iw_cm dropped, and work items that are about to finish.
 *
 * Context: process, may sleep. When it returns, no endpoint of @dev is left whose QP is
 * gone, and none holds a stream.
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
