// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Driver-specific attributes for `rdma resource show -dd`, beyond what the core itself reports.
 *
 * Owns: nothing. Process context; values are snapshots. The core does not free the object itself
 * during the call, but on some kernels a consumer may be destroying it at the same time. So the
 * functions here access nothing that destroying it frees, except a QP's stream and queues, with the
 * QP's mutex held, and the iw_cm_id of an endpoint, with the endpoint's lock held. Rings are never
 * read.
 */
#include <net/ipv6.h>
#include <rdma/iw_cm.h>
#include <rdma/rdma_cm.h>
#include <rdma/rdma_netlink.h>
#include <rdma/restrack.h>

#include "cm/cm_ep.h"
#include "device.h"
#include "proto/mpa.h"
#include "qp/qp.h"
#include "uapi.h"
#include "verbs.h"

/* Snapshot of a QP's stream; see res_qp_stream() */
struct res_stream {
	bool is_there;
	u32 emss;
	u32 sends;
	u32 reads;
	u32 peer_reads;
	bool in_message;
	bool is_large;
};

/* The driver's attributes of an object, which are being added to a message */
struct res_table {
	struct sk_buff *msg;
	struct nlattr *nest;
	bool is_full;		/* something had no room; nothing else is added */
};

static struct res_table res_table_start(struct sk_buff *msg)
{
	struct res_table table = { .msg = msg };

	table.nest = nla_nest_start(msg, RDMA_NLDEV_ATTR_DRIVER);
	table.is_full = !table.nest;
	return table;
}

static int res_table_end(struct res_table *table)
{
	if (table->is_full) {
		nla_nest_cancel(table->msg, table->nest);
		return -EMSGSIZE;
	}
	nla_nest_end(table->msg, table->nest);
	return 0;
}

static void res_put_u32(struct res_table *table, const char *name, u32 value)
{
	if (!table->is_full)
		table->is_full = rdma_nl_put_driver_u32(table->msg, name, value);
}

static void res_put_hex(struct res_table *table, const char *name, u32 value)
{
	if (!table->is_full)
		table->is_full = rdma_nl_put_driver_u32_hex(table->msg, name, value);
}

static void res_put_string(struct res_table *table, const char *name, const char *value)
{
	if (!table->is_full)
		table->is_full = rdma_nl_put_driver_string(table->msg, name, value);
}

static void res_put_terminate(struct res_table *table, const struct kiw_qp *qp)
{
	u32 term = READ_ONCE(qp->term);

	if (!term)
		return;
	res_put_string(table, "terminate", term & KIW_QP_TERM_SENT ? "sent" : "received");
	res_put_u32(table, "terminate_layer", FIELD_GET(KIW_QP_TERM_LAYER, term));
	res_put_u32(table, "terminate_etype", FIELD_GET(KIW_QP_TERM_ETYPE, term));
	res_put_hex(table, "terminate_code", FIELD_GET(KIW_QP_TERM_CODE, term));
}

/*
 * Take a snapshot of a QP's stream and of what was negotiated for it. The mutex keeps the stream
 * and the engines' queues alive; no engine runs while the socket lock is held.
 */
static void res_qp_stream(struct kiw_qp *qp, struct res_stream *stream,
			  struct kiw_conn_params *conn)
{
	const struct kiw_tx *tx = &qp->tx;

	mutex_lock(&qp->mutex);
	*conn = qp->conn;
	if (qp->ks && kiw_sock_lock(qp->ks)) {
		stream->is_there = true;
		stream->emss = kiw_sock_emss(qp->ks);
		stream->sends = tx->pend.put - tx->pend.get;
		stream->reads = tx->orq.put - tx->orq.get;
		stream->peer_reads = tx->inq.put - tx->inq.get;
		stream->in_message = qp->rx.in_message;
		stream->is_large = tx->is_large;
		kiw_sock_unlock(qp->ks);
	}
	mutex_unlock(&qp->mutex);
}

static void res_put_conn(struct res_table *table, const struct kiw_conn_params *conn)
{
	res_put_string(table, "role", conn->initiator ? "initiator" : "responder");
	res_put_u32(table, "ddp_version", conn->version);
	res_put_u32(table, "crc", conn->crc);
	res_put_u32(table, "tx_markers", conn->tx_markers);
	res_put_u32(table, "rx_markers", conn->rx_markers);
	res_put_u32(table, "ird", conn->ird);
	res_put_u32(table, "ord", conn->ord);
}

static void res_put_stream(struct res_table *table, const struct res_stream *stream)
{
	res_put_u32(table, "emss", stream->emss);
	res_put_u32(table, "mulpdu", kiw_mpa_mulpdu(stream->emss));
	res_put_u32(table, "large_fpdus", stream->is_large);
	res_put_u32(table, "sends_begun", stream->sends);
	res_put_u32(table, "reads_out", stream->reads);
	res_put_u32(table, "reads_in", stream->peer_reads);
	res_put_u32(table, "rx_in_message", stream->in_message);
}

/**
 * kiw_fill_res_qp_entry() - ib_device_ops.fill_res_qp_entry
 * @msg: the answer being built
 * @ibqp: the QP
 *
 * Shows the driver's state of the QP, the Terminate that ended it, and, while it has a stream,
 * what was negotiated and what is in flight.
 *
 * Context: process, may sleep; takes the QP's mutex and the socket lock. The core does not free the
 * QP during the call.
 * Return: 0, or -EMSGSIZE: no room.
 */
int kiw_fill_res_qp_entry(struct sk_buff *msg, struct ib_qp *ibqp)
{
	struct kiw_qp *qp = to_kiw_qp(ibqp);
	u32 spare = kiw_uapi_spare_slots(ibqp->device, qp->is_user);
	struct res_stream stream = {};
	struct kiw_conn_params conn;
	struct res_table table;

	res_qp_stream(qp, &stream, &conn);
	table = res_table_start(msg);
	res_put_string(&table, "kiwarp_state", kiw_qp_state_name(kiw_qp_state(qp)));
	res_put_terminate(&table, qp);
	res_put_u32(&table, "sq_size", qp->sq.size - spare);
	res_put_u32(&table, "rq_size", qp->srq ? 0 : qp->rq.size - spare);
	if (stream.is_there) {
		res_put_conn(&table, &conn);
		res_put_stream(&table, &stream);
	}
	return res_table_end(&table);
}

/**
 * kiw_fill_res_cq_entry() - ib_device_ops.fill_res_cq_entry
 * @msg: the answer being built
 * @ibcq: the queue
 *
 * The read position in a ring that a process has mapped belongs to that process, and is not shown.
 *
 * Context: process; takes the queue's lock. The core does not free the queue during the call.
 * Return: 0, or -EMSGSIZE: no room.
 */
int kiw_fill_res_cq_entry(struct sk_buff *msg, struct ib_cq *ibcq)
{
	struct kiw_cq *cq = to_kiw_cq(ibcq);
	bool is_kernel = cq->ops == &kiw_cq_kernel_ops;
	u32 size, put, get, armed, has_overrun;
	struct res_table table;
	unsigned long flags;

	spin_lock_irqsave(&cq->lock, flags);
	size = cq->ib.cqe;
	put = cq->put;
	get = cq->get;
	armed = cq->armed;
	has_overrun = cq->has_overrun;
	spin_unlock_irqrestore(&cq->lock, flags);

	table = res_table_start(msg);
	res_put_u32(&table, "size", size);
	res_put_u32(&table, "posted", put);
	res_put_u32(&table, "overrun", has_overrun);
	if (is_kernel) {
		res_put_u32(&table, "fill", put - get);
		res_put_u32(&table, "armed", armed);
	}
	return res_table_end(&table);
}

static const char *res_mr_kind(const struct kiw_mr *mr)
{
	if (mr->umem)
		return "user";
	if (mr->dmabuf)
		return "dmabuf";
	return mr->fast ? "fast" : "dma";
}

/**
 * kiw_fill_res_mr_entry() - ib_device_ops.fill_res_mr_entry
 * @msg: the answer being built
 * @ibmr: the region
 *
 * Shows neither the STag nor the address: the core shows keys to those that may see them.
 *
 * Context: process. The core does not deregister the region before this returns.
 * Return: 0, or -EMSGSIZE: no room.
 */
int kiw_fill_res_mr_entry(struct sk_buff *msg, struct ib_mr *ibmr)
{
	const struct kiw_mr *mr = to_kiw_mr(ibmr);
	struct res_table table = res_table_start(msg);

	res_put_string(&table, "kind", res_mr_kind(mr));
	res_put_u32(&table, "valid", READ_ONCE(mr->stag) || !mr->dyn);
	res_put_hex(&table, "access", READ_ONCE(mr->access) & KIW_ACCESS_GRANTED);
	return res_table_end(&table);
}

/**
 * kiw_fill_res_srq_entry() - ib_device_ops.fill_res_srq_entry
 * @msg: the answer being built
 * @ibsrq: the queue
 *
 * Context: process. The core does not free the queue during the call.
 * Return: 0, or -EMSGSIZE: no room.
 */
int kiw_fill_res_srq_entry(struct sk_buff *msg, struct ib_srq *ibsrq)
{
	const struct kiw_srq *srq = to_kiw_srq(ibsrq);
	u32 spare = kiw_uapi_spare_slots(ibsrq->device, kiw_srq_is_user(srq));
	struct res_table table = res_table_start(msg);

	res_put_u32(&table, "size", READ_ONCE(srq->rq.size) - spare);
	res_put_u32(&table, "limit", READ_ONCE(srq->limit));
	res_put_u32(&table, "taken", READ_ONCE(srq->rq.get));
	return res_table_end(&table);
}

/* Are these the same? With @any, an unspecified IP address in @a matches any in @b. */
static bool res_is_addr(const struct sockaddr_storage *a, const struct sockaddr_storage *b,
			bool any)
{
	const struct sockaddr_in6 *a6 = (const struct sockaddr_in6 *)a;
	const struct sockaddr_in6 *b6 = (const struct sockaddr_in6 *)b;
	const struct sockaddr_in *a4 = (const struct sockaddr_in *)a;
	const struct sockaddr_in *b4 = (const struct sockaddr_in *)b;

	if (a->ss_family != b->ss_family)
		return false;
	switch (a->ss_family) {
	case AF_INET:
		return a4->sin_port == b4->sin_port &&
		       (a4->sin_addr.s_addr == b4->sin_addr.s_addr ||
			(any && !a4->sin_addr.s_addr));
	case AF_INET6:
		return a6->sin6_port == b6->sin6_port &&
		       (ipv6_addr_equal(&a6->sin6_addr, &b6->sin6_addr) ||
			(any && ipv6_addr_any(&a6->sin6_addr)));
	default:
		return true;
	}
}

/*
 * Does an endpoint belong to the rdma_cm_id with these addresses? Most pairs of addresses have one
 * endpoint. If a consumer makes several connections from one port to one destination
 * (rdma_set_reuseaddr()), the first endpoint is shown for all of them. The iw_cm_id of an
 * rdma_cm_id is private to rdma_cm.
 */
static bool res_ep_is_of(const struct kiw_ep *ep, const struct rdma_addr *addr)
{
	const struct sockaddr_in *dst = (const struct sockaddr_in *)&addr->dst_addr;

	lockdep_assert_held(&ep->lock);
	if (!ep->cm_id || ep->state == KIW_CMS_CLOSED ||
	    !res_is_addr(&ep->cm_id->local_addr, &addr->src_addr, true))
		return false;
	/*
	 * A listener's peer has port 0 in rdma_cm, and its address is not set in iw_cm. The port is
	 * at the same offset for IPv4 and IPv6.
	 */
	if (ep->state == KIW_CMS_LISTENING)
		return !dst->sin_port;
	return res_is_addr(&ep->cm_id->remote_addr, &addr->dst_addr, false);
}

static int res_ep_table(struct sk_buff *msg, struct kiw_ep *ep)
{
	struct res_table table = res_table_start(msg);

	lockdep_assert_held(&ep->lock);
	res_put_u32(&table, "ep", ep->id);
	res_put_string(&table, "ep_state", kiw_cm_state_name(ep->state));
	switch (ep->state) {
	case KIW_CMS_LISTENING:
		res_put_u32(&table, "half_open", READ_ONCE(ep->num_children));
		res_put_u32(&table, "backlog", ep->backlog);
		break;
	case KIW_CMS_WAIT_FIRST:
	case KIW_CMS_OPEN:
		res_put_u32(&table, "mpa_revision", ep->agreed.rev);
		res_put_u32(&table, "p2p", ep->agreed.p2p);
		break;
	default:
		break;
	}
	return res_table_end(&table);
}

/**
 * kiw_fill_res_cm_id_entry() - ib_device_ops.fill_res_cm_id_entry
 * @msg: the answer being built
 * @id: a connection or listener of this device
 *
 * Shows its endpoint, as res_ep_is_of() finds it: the number that identifies it in trace events,
 * its state, and details of some states. There is none before the consumer connects, accepts or
 * listens, nor after the end.
 *
 * Context: process, may sleep; takes the locks of the device's endpoints in turn. The core does not
 * free @id during the call.
 * Return: 0, or -EMSGSIZE: no room.
 */
int kiw_fill_res_cm_id_entry(struct sk_buff *msg, struct rdma_cm_id *id)
{
	struct kiw_device *dev = to_kiw_device(id->device);
	bool is_found = false;
	unsigned long at = 0;
	struct kiw_ep *ep;
	int ret = 0;

	while (!is_found && (ep = kiw_ep_next(dev, &at))) {
		mutex_lock(&ep->lock);
		is_found = res_ep_is_of(ep, &id->route.addr);
		if (is_found)
			ret = res_ep_table(msg, ep);
		mutex_unlock(&ep->lock);
		kiw_ep_put(ep);
	}
	return ret;
}
