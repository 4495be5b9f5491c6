// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Connections towards rdma_cm.
 *
 * Owns: the lifetime of &struct kip_conn. The interface's work item allocates a connection, or
 * rdma_cm's handler does for a Request. One that gets no cm_id, or whose Request cannot be noted,
 * is freed at once. Any other belongs to the interface until kip_conn_give_up(). After that it
 * belongs to its own work item, which frees everything and may take as long as rdma_cm and the
 * driver need. That work item therefore uses nothing of the interface, which may be gone. Its
 * workqueue is common to all interfaces and runs a limited number of work items at a time, so none
 * should wait for a peer: see kip_conn_qp_free().
 *
 * rdma_cm calls the handler with a mutex held. The handler only takes spinlocks. It notes events,
 * starts to resolve a route, and has a Request rejected that cannot be noted; the interface's work
 * item does the rest.
 */
#include "conn.h"

#include <linux/errno.h>
#include <linux/slab.h>
#include <rdma/ib_cm.h>

#include "dev.h"
#include "netns.h"

#define RESOLVE_MS	2000
#define BACKLOG		64
/* Requests that may wait for the interface's work item */
#define MAX_REQUESTS	256

static void conn_take_pdata(struct kip_conn *conn, const struct rdma_cm_event *event)
{
	conn->pdata_len = 0;
	if (!event->param.conn.private_data)
		return;
	conn->pdata_len = min_t(unsigned int, event->param.conn.private_data_len,
				sizeof(conn->pdata));
	memcpy(conn->pdata, event->param.conn.private_data, conn->pdata_len);
}

/**
 * kip_reaping_alloc() - count memory of connections that are given up
 *
 * Context: process, may sleep.
 * Return: the counter, with one reference, or NULL if there is no memory.
 */
struct kip_reaping *kip_reaping_alloc(void)
{
	struct kip_reaping *reaping = kzalloc(sizeof(*reaping), GFP_KERNEL);

	if (reaping)
		refcount_set(&reaping->refs, 1);
	return reaping;
}

/**
 * kip_reaping_put() - drop a reference
 * @reaping: the counter
 *
 * Context: any.
 */
void kip_reaping_put(struct kip_reaping *reaping)
{
	if (refcount_dec_and_test(&reaping->refs))
		kfree(reaping);
}

/* Frees a connection after kip_conn_give_up() */
static void conn_reap(struct work_struct *work)
{
	struct kip_conn *conn = container_of(work, struct kip_conn, reap);

	/* Wait for users that found it through its peer or a poller */
	synchronize_net();
	kip_conn_qp_free(conn);
	atomic64_sub(conn->rx_bytes, &conn->reaping->bytes);
	kip_reaping_put(conn->reaping);
	kip_netns_drop(conn->net);
	rdma_destroy_id(conn->id);
	kip_loop_del(&conn->far);
	kfree_rcu(conn, rcu);
}

static struct kip_conn *conn_alloc(struct kip_dev *dev, enum kip_role role)
{
	struct kip_conn *conn = kzalloc(sizeof(*conn), GFP_KERNEL);

	if (!conn)
		return NULL;
	conn->role = role;
	conn->dev = dev;
	spin_lock_init(&conn->lock);
	INIT_LIST_HEAD(&conn->entry);
	INIT_LIST_HEAD(&conn->event_entry);
	INIT_LIST_HEAD(&conn->poll_entry);
	INIT_WORK(&conn->reap, conn_reap);
	return conn;
}

/**
 * kip_conn_give_up() - detach a connection from the interface and free it later
 * @dev: the interface
 * @conn: the connection, or the listener, with its identifier; no peer uses it any more
 *
 * Context: process; the interface's work item, or stop when that is idle.
 */
void kip_conn_give_up(struct kip_dev *dev, struct kip_conn *conn)
{
	unsigned long flags;

	spin_lock_irqsave(&conn->lock, flags);
	conn->dev = NULL;
	if (conn->poller) {
		spin_lock(&conn->poller->lock);
		list_del_init(&conn->poll_entry);
		spin_unlock(&conn->poller->lock);
	}
	spin_lock(&dev->event_lock);
	list_del_init(&conn->event_entry);
	spin_unlock(&dev->event_lock);
	spin_unlock_irqrestore(&conn->lock, flags);

	list_del(&conn->entry);
	if (conn->rx_bytes) {
		dev->rx_mem -= conn->rx_bytes;
		dev->nr_conns--;
	}
	conn->reaping = dev->reaping;
	refcount_inc(&conn->reaping->refs);
	atomic64_add(conn->rx_bytes, &conn->reaping->bytes);
	queue_work(kip_reap_wq, &conn->reap);
}

static int conn_handler(struct rdma_cm_id *id, struct rdma_cm_event *event);

/* Handle a Request. The core rejects it if the return value is not 0. */
static int conn_request(struct kip_conn *listener, struct rdma_cm_id *id,
			struct rdma_cm_event *event)
{
	struct kip_conn *conn = conn_alloc(NULL, KIP_RESPONDER);
	unsigned long flags;
	struct kip_dev *dev;
	int ret = conn ? -EBUSY : -ENOMEM;

	if (conn)
		conn_take_pdata(conn, event);
	spin_lock_irqsave(&listener->lock, flags);
	dev = listener->dev;
	if (dev && !conn) {
		kip_count(dev, KIP_STAT_CONN_NO_ROOM);
	} else if (dev && atomic_inc_return(&dev->nr_requests) <= MAX_REQUESTS) {
		conn->dev = dev;
		conn->id = id;
		conn->net = dev->net;
		kip_netns_hold(dev->net);
		id->context = conn;
		spin_lock(&dev->event_lock);
		conn->events = KIP_CE_REQUEST;
		list_add_tail(&conn->event_entry, &dev->events);
		spin_unlock(&dev->event_lock);
		mod_delayed_work(kip_wq, &dev->work, 0);
		ret = 0;
	} else if (dev) {
		atomic_dec(&dev->nr_requests);
		kip_count(dev, KIP_STAT_CONN_NO_ROOM);
	}
	spin_unlock_irqrestore(&listener->lock, flags);
	if (ret)
		kfree(conn);
	return ret;
}

static int conn_handler(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	struct kip_conn *conn = id->context;

	switch (event->event) {
	case RDMA_CM_EVENT_CONNECT_REQUEST:
		return conn_request(conn, id, event);
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		if (rdma_resolve_route(id, RESOLVE_MS))
			kip_conn_note(conn, KIP_CE_FAULT);
		break;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		kip_conn_note(conn, KIP_CE_ROUTED);
		break;
	case RDMA_CM_EVENT_ESTABLISHED:
		WRITE_ONCE(conn->is_established, true);
		if (conn->role == KIP_INITIATOR)
			conn_take_pdata(conn, event);
		kip_conn_note(conn, KIP_CE_ESTABLISHED);
		break;
	case RDMA_CM_EVENT_REJECTED:
		conn->pdata_len = 0;
		if (event->status == -ECONNREFUSED)
			conn_take_pdata(conn, event);
		kip_conn_note(conn, KIP_CE_REJECTED);
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		kip_conn_note(conn, KIP_CE_ENDED);
		break;
	case RDMA_CM_EVENT_TIMEWAIT_EXIT:
		break;
	default:
		kip_conn_note(conn, KIP_CE_FAULT);
	}
	return 0;
}

static struct kip_conn *conn_with_id(struct kip_dev *dev, enum kip_role role)
{
	struct kip_conn *conn = conn_alloc(dev, role);
	struct rdma_cm_id *id;
	struct net *net;

	if (!conn)
		return ERR_PTR(-ENOMEM);
	list_add(&conn->entry, &dev->conns);
	/* The namespace may be about to end. rdma_create_id() takes a reference in any case. */
	net = maybe_get_net(dev->net);
	if (net) {
		id = rdma_create_id(net, conn_handler, conn, RDMA_PS_TCP, IB_QPT_RC);
		put_net(net);
	} else {
		id = ERR_PTR(-ENODEV);
	}
	if (IS_ERR(id)) {
		list_del(&conn->entry);
		kfree(conn);
		return ERR_CAST(id);
	}
	conn->id = id;
	conn->net = dev->net;
	kip_netns_hold(dev->net);
	return conn;
}

/**
 * kip_conn_listen() - listen for Requests
 * @dev: the interface; listens on its local address
 *
 * RFC 4755 3.5: the Service-ID follows from the QPN; here both are the port.
 *
 * Context: process, may sleep; the interface's work item.
 * Return: the listener or an ERR_PTR(); -ENODEV while no RDMA device has the address.
 */
struct kip_conn *kip_conn_listen(struct kip_dev *dev)
{
	struct kip_conn *conn = conn_with_id(dev, KIP_LISTENER);
	union kip_sockaddr local = dev->local;
	int ret;

	if (IS_ERR(conn))
		return conn;
	ret = rdma_bind_addr(conn->id, &local.sa);
	if (!ret)
		ret = rdma_listen(conn->id, BACKLOG);
	if (!ret)
		return conn;
	kip_conn_give_up(dev, conn);
	return ERR_PTR(ret);
}

/**
 * kip_conn_resolve() - allocate a connection and start to resolve its route
 * @dev: the interface
 * @lladdr: link-layer address of the peer
 *
 * The source is bound to the local address, because the peer derives our link-layer address
 * from it.
 *
 * Context: process, may sleep; the interface's work item.
 * Return: the connection, or an ERR_PTR(). %KIP_CE_ROUTED or one of %KIP_CE_OVER will be noted for
 * the connection, unless it is given up before.
 */
struct kip_conn *kip_conn_resolve(struct kip_dev *dev, const u8 *lladdr)
{
	struct kip_conn *conn = conn_with_id(dev, KIP_INITIATOR);
	union kip_sockaddr src = dev->local, dst;
	int ret;

	if (IS_ERR(conn))
		return conn;
	kip_loop_add(&conn->far, dev->net, lladdr);
	kip_sockaddr_of(&dst, lladdr);
	/* In both address families the port directly follows the family */
	src.v4.sin_port = 0;
	ret = rdma_resolve_addr(conn->id, &src.sa, &dst.sa, RESOLVE_MS);
	if (!ret)
		return conn;
	kip_conn_give_up(dev, conn);
	return ERR_PTR(ret);
}

static void conn_params(struct rdma_conn_param *param, const struct kip_wire_pdata *pdata)
{
	*param = (struct rdma_conn_param) {
		.private_data = pdata,
		.private_data_len = sizeof(*pdata),
		/* We post no Reads, but a peer may use one as its first message (RFC 6581 9) */
		.responder_resources = 1,
		.initiator_depth = 1,
	};
}

/**
 * kip_conn_connect() - send a Request
 * @conn: the connection; its route is resolved, and it has its QP
 * @pdata: private data of the Request
 *
 * Context: process, may sleep; the interface's work item.
 * Return: 0 or -errno.
 */
int kip_conn_connect(struct kip_conn *conn, const struct kip_wire_pdata *pdata)
{
	struct rdma_conn_param param;

	conn_params(&param, pdata);
	return rdma_connect(conn->id, &param);
}

/**
 * kip_conn_accept() - accept a Request: send the Reply
 * @conn: connection of the Request; it has its QP
 * @pdata: private data of the Reply
 *
 * Context: process, may sleep; the interface's work item.
 * Return: 0 or -errno.
 */
int kip_conn_accept(struct kip_conn *conn, const struct kip_wire_pdata *pdata)
{
	struct rdma_conn_param param;
	int ret;

	conn_params(&param, pdata);
	rdma_lock_handler(conn->id);
	ret = rdma_accept(conn->id, &param);
	rdma_unlock_handler(conn->id);
	return ret;
}

/**
 * kip_conn_reject() - reject a Request
 * @conn: connection of the Request; the caller gives it up afterwards
 * @pdata: private data of the reject, which must contain the QPN (RFC 4755 3.2)
 *
 * Context: process, may sleep; the interface's work item.
 */
void kip_conn_reject(struct kip_conn *conn, const struct kip_wire_pdata *pdata)
{
	rdma_reject(conn->id, pdata, sizeof(*pdata), IB_CM_REJ_CONSUMER_DEFINED);
}
