// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The provider side of iw_cm: listeners, and the connections that no consumer has answered.
 *
 * Owns: the list of a listener's children, and the device's list of half-open connections. A child
 * joins both when its connection has been accepted from TCP. It leaves the first when its Request
 * has been delivered and the second when the consumer has answered, or both when it ends (cm_ep.c).
 *
 * cm_ep.c calls kiw_ep_try_accept() from a listener's work item. This file reports what it finds to
 * the children as events (kiw_ep_step()).
 *
 * Unanswered Requests. iw_cm creates the cm_id of an incoming connection only when it
 * processes the CONNECT_REQUEST event. If it cannot, or if the listener is being destroyed,
 * it may drop the event, and then nobody answers the Request. The event therefore carries the
 * endpoint's number and not a pointer. The deadline closes an endpoint that is not answered,
 * and a later answer finds it closed or gone.
 *
 * Wildcards. For a wildcard address, rdma_cm listens once on each device. Such a socket is bound to
 * the device's netdev, so that those of several devices do not collide.
 * Connections from this host to the netdev's own addresses still reach it: they pass through
 * lo, but TCP treats them as received by the interface that has the address. No socket is created
 * on a device whose network namespace is not that of the listener.
 *
 * Context: process; endpoints take steps with their lock held. Nothing here waits for a peer.
 */
#include "cm.h"

#include <linux/err.h>
#include <net/ipv6.h>
#include <rdma/iw_cm.h>

#include "cm_ep.h"
#include "device.h"
#include "sock/sock.h"

/* How long a listener waits after it could not accept, e.g. for lack of memory */
#define LISTEN_RETRY_MS	100
/* Maximum number of streams accepted in one run of a listener's work item */
#define LISTEN_BUDGET 64

static unsigned int listen_max_half_open(const struct kiw_device *dev)
{
	return kiw_policy_get(&dev->policy, KIW_POLICY_MAX_HALF_OPEN_TOTAL);
}

/* Add a child to the device's list. Return: false: the device is at its limit. */
static bool listen_join_half_open(struct kiw_ep *ep, struct kiw_ep *listener)
{
	struct kiw_device *dev = ep->dev;
	bool has_room;

	spin_lock(&dev->half_open_lock);
	has_room = dev->num_half_open < listen_max_half_open(dev);
	if (has_room) {
		kiw_ep_get(ep);
		kiw_ep_get(listener);
		ep->half_listener = listener;
		list_add_tail(&ep->half_link, &dev->half_open);
		dev->num_half_open++;
		if (!listener->num_half_open++)
			dev->num_half_listeners++;
	}
	spin_unlock(&dev->half_open_lock);
	return has_room;
}

/* Add a child to both lists. Return: 0; -ESHUTDOWN: the listener is stopped; -EAGAIN: no room. */
static int listen_join(struct kiw_ep *ep, struct kiw_ep *listener)
{
	int ret = -ESHUTDOWN;

	spin_lock(&listener->children_lock);
	if (!listener->is_stopped)
		ret = listen_join_half_open(ep, listener) ? 0 : -EAGAIN;
	if (!ret) {
		kiw_ep_get(listener);
		ep->listener = listener;
		kiw_ep_get(ep);
		list_add_tail(&ep->link, &listener->children);
		WRITE_ONCE(listener->num_children, listener->num_children + 1);
	}
	spin_unlock(&listener->children_lock);
	return ret;
}

/* The first child, referenced, or NULL. */
static struct kiw_ep *listen_first_child(struct kiw_ep *listener)
{
	struct kiw_ep *ep;

	spin_lock(&listener->children_lock);
	ep = list_first_entry_or_null(&listener->children, struct kiw_ep, link);
	if (ep)
		kiw_ep_get(ep);
	spin_unlock(&listener->children_lock);
	return ep;
}

/* Does @ep's listener have at least the average of the listeners with half-open connections? */
static bool listen_has_many(const struct kiw_ep *ep)
{
	const struct kiw_device *dev = ep->dev;

	lockdep_assert_held(&dev->half_open_lock);
	return (u64)ep->half_listener->num_half_open * dev->num_half_listeners >=
	       dev->num_half_open;
}

/*
 * The connection to evict, referenced: the first in the list whose listener has at least its share.
 * So the peers of one listener cannot evict those of another that has less than that. NULL: there
 * is room by now.
 */
static struct kiw_ep *listen_next_victim(struct kiw_device *dev)
{
	struct kiw_ep *ep, *victim = NULL;

	spin_lock(&dev->half_open_lock);
	if (dev->num_half_open < listen_max_half_open(dev))
		goto out;
	list_for_each_entry(ep, &dev->half_open, half_link) {
		if (!listen_has_many(ep))
			continue;
		kiw_ep_get(ep);
		victim = ep;
		break;
	}
out:
	spin_unlock(&dev->half_open_lock);
	return victim;
}

static unsigned int listen_max_children(const struct kiw_ep *listener)
{
	return listener->backlog +
	       kiw_policy_get(&listener->dev->policy, KIW_POLICY_MAX_HALF_OPEN);
}

/* Close a connection if its Request has still not arrived. */
static void listen_evict_silent(struct kiw_ep *ep)
{
	lockdep_assert_held(&ep->lock);
	kiw_ep_progress(ep);
	if (ep->state != KIW_CMS_WAIT_REQUEST)
		return;
	kiw_count(&ep->dev->stats, KIW_STAT_CONN_LIMITED);
	kiw_ep_step(ep, KIW_CME_DESTROY, 0);
}

/* Close a connection if its Request has not arrived, or was delivered before and not answered. */
static void listen_evict_half_open(struct kiw_ep *ep)
{
	lockdep_assert_held(&ep->lock);
	if (ep->state != KIW_CMS_REQUEST_GIVEN) {
		listen_evict_silent(ep);
		return;
	}
	kiw_count(&ep->dev->stats, KIW_STAT_CONN_LIMITED);
	kiw_ep_step(ep, KIW_CME_DESTROY, 0);
}

static void listen_evict(struct kiw_ep *ep, void (*evict)(struct kiw_ep *ep))
{
	mutex_lock_nested(&ep->lock, SINGLE_DEPTH_NESTING);
	evict(ep);
	mutex_unlock(&ep->lock);
	kiw_ep_put(ep);
}

/*
 * Evict children until the listener is below its limit, so that silent peers cannot keep others
 * out. The loop ends: after listen_evict_silent() the connection is no longer a child, because it
 * was closed or its Request was delivered.
 */
static void listen_make_room(struct kiw_ep *listener)
{
	struct kiw_ep *ep;

	lockdep_assert_held(&listener->lock);
	while (READ_ONCE(listener->num_children) >= listen_max_children(listener)) {
		ep = listen_first_child(listener);
		if (!ep)
			break;
		listen_evict(ep, listen_evict_silent);
	}
}

/*
 * Evict a connection of a device that is at its limit, so that a consumer that does not answer
 * cannot keep others out either. One whose Request was delivered just now stays, but moves to the
 * end of the device's list.
 */
static void listen_make_room_on(struct kiw_device *dev)
{
	struct kiw_ep *ep = listen_next_victim(dev);

	if (ep)
		listen_evict(ep, listen_evict_half_open);
}

/* Convert an IPv4-mapped address to IPv4, which rdma_cm expects also from a dual-stack listener. */
static void listen_unmap_address(struct sockaddr_storage *addr)
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

/*
 * Make room for a child, and add it to both lists. Nobody else knows it yet, so its lock can be
 * dropped to take those of others.
 * Return: false: the listener is stopped.
 */
static bool listen_admit(struct kiw_ep *ep, struct kiw_ep *listener)
{
	int ret;

	lockdep_assert_held(&ep->lock);
	mutex_unlock(&ep->lock);
	listen_make_room(listener);
	mutex_lock_nested(&ep->lock, SINGLE_DEPTH_NESTING);
	while ((ret = listen_join(ep, listener)) == -EAGAIN) {
		mutex_unlock(&ep->lock);
		listen_make_room_on(listener->dev);
		mutex_lock_nested(&ep->lock, SINGLE_DEPTH_NESTING);
	}
	return !ret;
}

static void listen_take_stream(struct kiw_ep *listener, struct kiw_sock *ks)
{
	struct kiw_ep *ep;

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
	if (!listen_admit(ep, listener)) {
		kiw_ep_step(ep, KIW_CME_DESTROY, 0);
	} else if (kiw_sock_names(ks, &ep->startup->local, &ep->startup->remote)) {
		kiw_ep_step(ep, KIW_CME_LOST, 0);
	} else {
		listen_unmap_address(&ep->startup->local);
		listen_unmap_address(&ep->startup->remote);
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
 * A stream that was reset before it is accepted is accepted like any other, and its endpoint gets
 * LOST. If a stream cannot be accepted, e.g. for lack of memory, it stays in TCP's queue and is not
 * announced again, so the deadline is armed to try later. If there is no memory for its endpoint,
 * the stream is reset.
 *
 * Context: process, may sleep; @listener's lock held.
 */
void kiw_ep_try_accept(struct kiw_ep *listener)
{
	unsigned int budget = LISTEN_BUDGET;
	struct kiw_sock *ks;

	lockdep_assert_held(&listener->lock);
	/* The policy may have changed. */
	kiw_sock_set_backlog(listener->ks, listen_max_children(listener));
	while (budget--) {
		ks = kiw_sock_accept(listener->ks, NULL, NULL);
		if (!IS_ERR(ks)) {
			listen_take_stream(listener, ks);
			continue;
		}
		if (PTR_ERR(ks) == -EAGAIN)
			return;
		if (PTR_ERR(ks) != -ECONNABORTED) {
			kiw_ep_arm(listener, LISTEN_RETRY_MS);
			return;
		}
	}
	kiw_ep_kick(listener);
}

/*
 * Stop a listener and close its children. Once @is_stopped is set, the listener's cm_id gets no
 * further event. A child that is delivering its Request at this moment has finished, and left the
 * list, by the time its lock is acquired here.
 */
static void listen_stop(struct kiw_ep *listener)
{
	struct kiw_ep *ep;

	spin_lock(&listener->children_lock);
	listener->is_stopped = true;
	spin_unlock(&listener->children_lock);

	mutex_lock(&listener->lock);
	kiw_ep_step(listener, KIW_CME_DESTROY, 0);
	mutex_unlock(&listener->lock);

	while ((ep = listen_first_child(listener))) {
		mutex_lock(&ep->lock);
		kiw_ep_step(ep, KIW_CME_DESTROY, 0);
		mutex_unlock(&ep->lock);
		kiw_ep_put(ep);
	}
}

/*
 * Listen on a device in another network namespace than the listener's. For a wildcard address this
 * succeeds, but without a socket: rdma_cm listens on this device, too, and fails if one of its
 * devices fails, and there is nothing to listen for on this one. Any other address is refused.
 */
static int listen_elsewhere(struct kiw_ep *ep)
{
	if (!kiw_ep_is_wildcard(ep))
		return kiw_ep_refuse_foreigner(ep);
	kiw_ep_step(ep, KIW_CME_LISTEN, 0);
	return 0;
}

/*
 * The listening socket could not be created. While the device is being registered, a wildcard
 * listener succeeds nevertheless, without a socket. rdma_cm then listens for each existing wildcard
 * listener, and does not use the device at all if one of them fails. So a process could prevent the
 * use of a new device by occupying the TCP port of its own listener.
 */
static int listen_without(struct kiw_ep *ep, int err)
{
	const struct sockaddr_storage *local = &ep->startup->local;

	if (READ_ONCE(ep->dev->adder) != current || !kiw_ep_is_wildcard(ep))
		return err;
	ibdev_warn_ratelimited(&ep->dev->ib, "cannot listen at %pISpc: %pe\n", local, ERR_PTR(err));
	kiw_count(&ep->dev->stats, KIW_STAT_CONN_FAILED);
	kiw_ep_step(ep, KIW_CME_LISTEN, 0);
	return 0;
}

static int listen_start(struct kiw_ep *ep, int backlog, bool v6only)
{
	struct kiw_sock_local local = kiw_ep_local(ep);
	struct kiw_sock *ks;

	lockdep_assert_held(&ep->lock);
	if (!kiw_ep_is_at_home(ep))
		return listen_elsewhere(ep);
	/*
	 * Make TCP's accept queue as large as the largest burst we allow. A connection that does
	 * not fit waits for a retransmission at best.
	 */
	ep->backlog = backlog;
	ks = kiw_sock_listen(&ep->dev->socks, &local, listen_max_children(ep), v6only,
			     &kiw_ep_sock_ops, ep);
	if (IS_ERR(ks))
		return listen_without(ep, PTR_ERR(ks));
	ep->ks = ks;
	kiw_ep_step(ep, KIW_CME_LISTEN, 0);
	return 0;
}

/**
 * kiw_cm_create_listen() - start listening for iw_cm
 * @id: gets CONNECT_REQUEST events until kiw_cm_destroy_listen()
 * @backlog: connections the consumer allows for
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
	kiw_ep_bind_id(ep, id);
	ret = listen_start(ep, backlog, id->afonly);
	if (ret)
		kiw_ep_unbind_id(ep);
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
 * Connections whose Request has not been delivered are reset, or rejected if it was about to be.
 *
 * Context: process, may sleep.
 * Return: 0.
 */
int kiw_cm_destroy_listen(struct iw_cm_id *id)
{
	struct kiw_ep *ep = kiw_ep_find(id);

	if (WARN_ON_ONCE(!ep))
		return 0;
	listen_stop(ep);
	kiw_ep_put(ep);
	return 0;
}
