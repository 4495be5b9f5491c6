// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The RDMA resources of a connection: protection domain, completion queue, queue pair, and the
 * memory of its receives. They are created, and the receives are posted, before the Request or the
 * Reply is sent.
 *
 * They are freed without draining: the driver no longer uses the memory when rdma_destroy_qp()
 * returns, and completions that were not polled disappear with the completion queue. TCP below a
 * driver that sends without copying, like siw, may still send pages of packets. It has its own
 * references to them.
 */
#include <linux/errno.h>
#include <linux/slab.h>

#include "conn.h"
#include "dev.h"
#include "rx.h"
#include "tx.h"

static void qp_event(struct ib_event *event, void *context)
{
	struct kip_conn *conn = context;

	switch (event->event) {
	case IB_EVENT_QP_FATAL:
	case IB_EVENT_QP_REQ_ERR:
	case IB_EVENT_QP_ACCESS_ERR:
	case IB_EVENT_CQ_ERR:
		kip_conn_note(conn, KIP_CE_FAULT);
		break;
	default:
		break;
	}
}

static int qp_make_cq(struct kip_dev *dev, struct kip_conn *conn)
{
	struct ib_cq_init_attr attr = {
		/* Room for everything that can be posted, and some more */
		.cqe = KIP_TX_RING + KIP_TX_CONTROL + conn->nr_rx + 8,
		.comp_vector = dev->next_poller % conn->id->device->num_comp_vectors,
	};
	struct ib_cq *cq;

	cq = ib_create_cq(conn->id->device, kip_rx_ready, qp_event, conn, &attr);
	if (IS_ERR(cq))
		return PTR_ERR(cq);
	conn->cq = cq;
	conn->poller = &dev->pollers[dev->next_poller++ % dev->nr_pollers];
	return ib_req_notify_cq(cq, IB_CQ_NEXT_COMP);
}

/*
 * The packets of an interface must not use the kernel's memory reserves, which kiwarp lets streams
 * use that other kernel consumers initiate. The flag says so. Most drivers do not know it.
 */
static int qp_make(struct kip_conn *conn)
{
	struct ib_qp_init_attr attr = {
		.event_handler = qp_event,
		.qp_context = conn,
		.send_cq = conn->cq,
		.recv_cq = conn->cq,
		.cap = {
			.max_send_wr = KIP_TX_RING + KIP_TX_CONTROL,
			.max_recv_wr = conn->nr_rx,
			.max_send_sge = conn->max_sge,
			.max_recv_sge = conn->plan.nr + 1,
		},
		.sq_sig_type = IB_SIGNAL_REQ_WR,
		.qp_type = IB_QPT_RC,
		.create_flags = IB_QP_CREATE_NETIF_QP,
	};
	int ret;

	ret = rdma_create_qp(conn->id, conn->pd, &attr);
	if (ret != -EOPNOTSUPP && ret != -EINVAL)
		return ret;
	attr.create_flags = 0;
	return rdma_create_qp(conn->id, conn->pd, &attr);
}

/*
 * Bytes of the receives of all interfaces whose underlay is outside of the initial user namespace,
 * and whose rx_mem was not above the default when the connection was made. Root of another user
 * namespace can create any number of interfaces there, so the limit is common to all of them. The
 * namespace of the underlay decides: its administrator creates the interface and sets rx_mem. An
 * interface that was moved to a container keeps the limit that its creator has set. Only the host's
 * administrator can set rx_mem above the default, which exempts later connections.
 */
static atomic64_t foreign_bytes;

static int qp_take_foreign(struct kip_dev *dev, struct kip_conn *conn, u64 bytes)
{
	if (!dev->is_foreign || READ_ONCE(dev->settings.rx_mem) > KIP_RX_MEM)
		return 0;
	if (atomic64_add_return(bytes, &foreign_bytes) > KIP_RX_MEM) {
		atomic64_sub(bytes, &foreign_bytes);
		return -ENOBUFS;
	}
	conn->foreign_bytes = bytes;
	return 0;
}

static int qp_take_memory(struct kip_dev *dev, struct kip_conn *conn)
{
	const struct ib_device_attr *attrs = &conn->id->device->attrs;
	u64 bytes;

	conn->rx_mtu = clamp_t(u32, dev->netdev->mtu + sizeof(struct kip_wire_hdr),
			       KIP_RX_MTU_MIN, KIP_RX_MTU_MAX);
	if (!kip_rxplan_make(&conn->plan, conn->rx_mtu, attrs->max_recv_sge))
		return -EOPNOTSUPP;
	conn->nr_rx = dev->settings.rx_depth + KIP_CONTROL_RECEIVES;
	conn->max_sge = min_t(unsigned int, attrs->max_send_sge, KIP_TX_SGE);
	bytes = (u64)conn->nr_rx * kip_rxplan_bytes(&conn->plan);
	if (dev->nr_conns >= dev->settings.max_conns ||
	    dev->rx_mem + bytes > dev->settings.rx_mem)
		return -ENOBUFS;
	/* Peers may replace connections faster than these are freed */
	if ((u64)atomic64_read(&dev->reaping->bytes) > dev->settings.rx_mem)
		return -ENOBUFS;
	if (qp_take_foreign(dev, conn, bytes))
		return -ENOBUFS;
	conn->rx_bytes = bytes;
	dev->rx_mem += bytes;
	dev->nr_conns++;
	return 0;
}

/**
 * kip_conn_qp_make() - create the resources of a connection and post its receives
 * @dev: the interface
 * @conn: the connection; its cm_id is bound to a device
 *
 * After a failure kip_conn_qp_free() frees what was created.
 *
 * Context: process, may sleep; the interface's work item.
 * Return: 0 or -errno; -ENOBUFS when a limit of connections or memory is reached, -EOPNOTSUPP
 * when the device has too few SGEs.
 */
int kip_conn_qp_make(struct kip_dev *dev, struct kip_conn *conn)
{
	struct ib_pd *pd;
	int ret;

	ret = qp_take_memory(dev, conn);
	if (ret)
		return ret;
	kip_credit_init(&conn->credit, dev->settings.rx_depth, 0);
	pd = ib_alloc_pd(conn->id->device, 0);
	if (IS_ERR(pd))
		return PTR_ERR(pd);
	conn->pd = pd;
	ret = qp_make_cq(dev, conn);
	if (!ret)
		ret = qp_make(conn);
	if (!ret)
		ret = kip_tx_make(conn);
	return ret ? ret : kip_rx_make(conn);
}

/**
 * kip_conn_qp_free() - free what kip_conn_qp_make() created, completely or in part
 * @conn: the connection; it is given up, and no sender or poller uses it any more
 *
 * For an established connection, rdma_disconnect() first asks for an orderly end. A connection that
 * is starting up is ended by destroying its QP, which makes the driver give up. rdma_disconnect()
 * would wait until the startup has succeeded or failed: with a silent peer, until the driver's
 * deadline.
 *
 * Context: process, may sleep.
 */
void kip_conn_qp_free(struct kip_conn *conn)
{
	if (conn->id->qp) {
		if (READ_ONCE(conn->is_established))
			rdma_disconnect(conn->id);
		rdma_destroy_qp(conn->id);
	}
	if (conn->cq)
		ib_destroy_cq(conn->cq);
	kip_tx_free(conn);
	kip_rx_free(conn);
	if (conn->pd)
		ib_dealloc_pd(conn->pd);
	atomic64_sub(conn->foreign_bytes, &foreign_bytes);
}
