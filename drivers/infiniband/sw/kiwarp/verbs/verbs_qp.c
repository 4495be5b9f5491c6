// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * ib_device_ops of queue pairs: validate, translate, call the QP, unwind.
 *
 * Owns: the rings of a QP, from create to destroy, and the mapping from
 * the states of the verbs to those of proto/qp_fsm.h:
 *
 *	RESET, INIT, RTR	IDLE; a new QP is in INIT
 *	RTS			RTS; only the connection manager enters it
 *	SQD			CLOSING
 *	ERR			TERMINATE, ERROR
 *
 * Contexts: process, except for posting and for the reference counting of iw_cm, which happen in
 * any context. While a QP is created or destroyed, its consumer makes no other call for it, but
 * iw_cm may look it up and, on some kernels, a resource query may read it. Locks: none of ours.
 */
#include <linux/string.h>
#include <rdma/iw_cm.h>

#include "cm/cm.h"
#include "device.h"
#include "proto/ring.h"
#include "qp/qp.h"
#include "qp/qp_table.h"
#include "run/qp_post.h"
#include "run/qp_work.h"
#include "tx/tx.h"
#include "uapi.h"
#include "verbs.h"

#define DEFAULT_ACCESS	(IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_READ)

static_assert(KIW_MAX_WR_BYTES == KIW_MAX_MSG_BYTES);

static int qp_check_attr(const struct ib_device *ibdev, const struct ib_qp_init_attr *attr,
			 bool is_user)
{
	const u32 max_wr = KIW_MAX_QP_WR - kiw_uapi_spare_slots(ibdev, true);
	const u32 flags = is_user ? 0 : IB_QP_CREATE_NETIF_QP;
	const u32 max_send_sge = is_user ? KIW_MAX_SGE : KIW_MAX_SEND_SGE;
	const struct ib_qp_cap *cap = &attr->cap;

	if (attr->qp_type != IB_QPT_RC || (attr->create_flags & ~flags) || attr->rwq_ind_tbl)
		return -EOPNOTSUPP;
	if (!attr->send_cq || !attr->recv_cq)
		return -EINVAL;
	if (cap->max_send_wr > max_wr || cap->max_send_sge > max_send_sge ||
	    cap->max_inline_data > KIW_MAX_INLINE)
		return -EINVAL;
	/* With a shared receive queue the limits for receives mean nothing */
	if (!attr->srq && (cap->max_recv_wr > max_wr || cap->max_recv_sge > KIW_MAX_SGE))
		return -EINVAL;
	return 0;
}

/* The receive ring has at least one slot: a process cannot map a ring of length 0. */
static void qp_size_queues(struct kiw_qp *qp, const struct ib_qp_cap *cap)
{
	u32 spare = kiw_uapi_spare_slots(qp->ib.device, qp->is_user);

	spin_lock_init(&qp->sq.lock);
	spin_lock_init(&qp->rq.lock);
	qp->sq.size = kiw_ring_size(cap->max_send_wr + spare, KIW_MAX_QP_WR);
	if (!qp->srq)
		qp->rq.size = kiw_ring_size(cap->max_recv_wr + spare, KIW_MAX_QP_WR);
}

static void qp_set_up(struct kiw_qp *qp, struct kiw_device *dev, const struct ib_qp_init_attr *attr,
		      struct ib_udata *udata)
{
	qp->is_user = udata;
	/* A network interface carries anybody's packets; they must not exhaust the reserves */
	qp->is_memalloc = !udata && !(attr->create_flags & IB_QP_CREATE_NETIF_QP);
	qp->has_rfc7306 = !udata || dev->uapi->has_rfc7306;
	qp->sig_all = attr->sq_sig_type == IB_SIGNAL_ALL_WR;
	qp->access = DEFAULT_ACCESS;
	/* Receives can be posted at once, and users expect to see INIT */
	qp->idle_state = IB_QPS_INIT;
	qp->mrs = &dev->mrs;
	qp->stats = &dev->stats;
	qp->scq = to_kiw_cq(attr->send_cq);
	qp->rcq = to_kiw_cq(attr->recv_cq);
	qp->srq = attr->srq ? to_kiw_srq(attr->srq) : NULL;
	qp_size_queues(qp, &attr->cap);
}

/*
 * If a consumer asks for rdma_rw contexts, the core builds its RDMA Writes, each with up to as many
 * SGEs as the QP has. But the consumer may ask for the number of SGEs that its Sends need. So give
 * the QP the maximum: fewer Writes are less work.
 */
static u8 qp_kernel_sges(const struct ib_qp_cap *cap)
{
	return cap->max_rdma_ctxs ? KIW_MAX_SEND_SGE : cap->max_send_sge;
}

static int qp_make_kernel_rings(struct kiw_qp *qp, const struct ib_qp_cap *cap)
{
	struct kiw_sq *sq = &qp->sq;
	struct kiw_rq *rq = &qp->rq;

	sq->ops = &kiw_sq_kernel_ops;
	sq->max_sge = qp_kernel_sges(cap);
	sq->max_inline = cap->max_inline_data;
	sq->ring = kiw_sq_kernel_ring(sq->size, sq->max_sge);
	if (!sq->ring)
		return -ENOMEM;
	if (qp->srq)
		return 0;
	rq->ops = &kiw_rq_kernel_ops;
	rq->max_sge = cap->max_recv_sge;
	rq->ring = kiw_rq_kernel_ring(rq->size);
	return rq->ring ? 0 : -ENOMEM;
}

static void qp_free_rings(struct kiw_qp *qp)
{
	kiw_tx_destroy(qp);
	kiw_ring_free(qp->user_rq, qp->rq.ring);
	kiw_ring_free(qp->user_sq, qp->sq.ring);
}

/* For a process, this also delivers the response. */
static int qp_make_rings(struct kiw_qp *qp, const struct ib_qp_cap *cap, struct ib_udata *udata)
{
	int ret;

	ret = kiw_tx_create(qp);
	if (ret)
		return ret;
	ret = udata ? kiw_uapi_make_qp(qp, udata) : qp_make_kernel_rings(qp, cap);
	if (ret)
		qp_free_rings(qp);
	return ret;
}

static void qp_get_caps(const struct kiw_qp *qp, struct ib_qp_cap *cap)
{
	u32 spare = kiw_uapi_spare_slots(qp->ib.device, qp->is_user);

	cap->max_send_wr = qp->sq.size - spare;
	cap->max_send_sge = qp->sq.max_sge;
	cap->max_inline_data = qp->sq.max_inline;
	cap->max_recv_wr = qp->srq ? 0 : qp->rq.size - spare;
	cap->max_recv_sge = qp->rq.max_sge;
}

/**
 * kiw_create_qp() - ib_device_ops.create_qp
 * @ibqp: the QP
 * @attr: what the consumer wants; set to what it gets
 * @udata: the user's request, or NULL for a kernel consumer
 *
 * Context: process; may sleep.
 * Return: 0; -EINVAL: outside the limits of the device, or a bad request; -EOPNOTSUPP:
 * a type other than RC, an indirection table, or a create flag other than IB_QP_CREATE_NETIF_QP,
 * which only kernel consumers have; -ENOMEM: no memory, or too many QPs; -EBUSY: no number is free;
 * -EFAULT.
 */
int kiw_create_qp(struct ib_qp *ibqp, struct ib_qp_init_attr *attr, struct ib_udata *udata)
{
	struct kiw_device *dev = to_kiw_device(ibqp->device);
	struct kiw_qp *qp = to_kiw_qp(ibqp);
	int ret;

	ret = qp_check_attr(ibqp->device, attr, udata);
	if (ret)
		return ret;
	if (!atomic_add_unless(&dev->num_qp, 1, KIW_MAX_QP))
		return -ENOMEM;
	ret = kiw_qp_table_reserve(&dev->qps, qp);
	if (ret)
		goto err_count;
	qp_set_up(qp, dev, attr, udata);
	kiw_owner_init(&qp->owner, kiw_udata_context(udata));
	ret = qp_make_rings(qp, &attr->cap, udata);
	if (ret)
		goto err_number;
	/*
	 * Nothing below may fail: kiw_qp_uninit() may raise an event, and the core does not expect
	 * events of a QP whose creation has failed.
	 */
	kiw_qp_init(qp, dev->wq, dev->engine_wq);
	qp_get_caps(qp, &attr->cap);
	kiw_qp_table_publish(&dev->qps, qp);
	return 0;

err_number:
	kiw_owner_uninit(&qp->owner);
	kiw_qp_table_release(&dev->qps, qp);
err_count:
	atomic_dec(&dev->num_qp);
	return ret;
}

/**
 * kiw_destroy_qp() - ib_device_ops.destroy_qp
 * @ibqp: the QP
 * @udata: not used
 *
 * Aborts the connection if there is one. The phases, and why each may begin:
 * 1. Hide the QP from lookups. iw_cm looks up a QP and takes its reference within one spinlock
 *    section, which is an RCU read-side critical section, too. So after kiw_qp_table_hide() every
 *    caller that still uses the QP has a reference. The number stays allocated until the end: iw_cm
 *    looks it up before the driver does, and both must find the same QP or none.
 * 2. Fail the startups that this end has initiated for the QP, and do what a completion handler,
 *    which may be the caller, has deferred. kiw_qp_uninit() then ends its connection and waits for
 *    the last reference, so afterwards none of our code uses its rings or posts a completion for
 *    it.
 * 3. So its completions can be removed from the queues for good, and the rings freed.
 *
 * Context: process; may sleep.
 * Return: 0.
 */
int kiw_destroy_qp(struct ib_qp *ibqp, struct ib_udata *udata)
{
	struct kiw_device *dev = to_kiw_device(ibqp->device);
	struct kiw_qp *qp = to_kiw_qp(ibqp);

	kiw_qp_table_hide(&dev->qps, qp);
	kiw_cm_forget_qp(dev, qp);
	kiw_cq_run_deferred(qp->scq);
	kiw_cq_run_deferred(qp->rcq);
	kiw_qp_uninit(qp);
	kiw_cq_forget_qp(qp->scq, ibqp);
	kiw_cq_forget_qp(qp->rcq, ibqp);
	qp_free_rings(qp);
	kiw_owner_uninit(&qp->owner);
	kiw_qp_table_release(&dev->qps, qp);
	atomic_dec(&dev->num_qp);
	return 0;
}

static enum ib_qp_state qp_ib_state(const struct kiw_qp *qp)
{
	switch (kiw_qp_state(qp)) {
	case KIW_QPS_IDLE:
		return qp->idle_state;
	case KIW_QPS_RTS:
		return IB_QPS_RTS;
	case KIW_QPS_CLOSING:
		return IB_QPS_SQD;
	default:
		return IB_QPS_ERR;
	}
}

/* The stock library and rdma_cm take a QP to INIT, or on to RTR, before they let iw_cm connect. */
static int qp_modify_idle(struct kiw_qp *qp, enum ib_qp_state state)
{
	if (kiw_qp_state(qp) != KIW_QPS_IDLE)
		return -EINVAL;
	if (state == IB_QPS_RTR && qp->idle_state == IB_QPS_RESET)
		return -EINVAL;
	qp->idle_state = state;
	return 0;
}

static int qp_modify_state(struct kiw_qp *qp, enum ib_qp_state state)
{
	switch (state) {
	case IB_QPS_RESET:
		kiw_qp_reset(qp);
		qp->idle_state = IB_QPS_RESET;
		WRITE_ONCE(qp->access, DEFAULT_ACCESS);
		return 0;
	case IB_QPS_INIT:
	case IB_QPS_RTR:
		return qp_modify_idle(qp, state);
	case IB_QPS_RTS:
		return kiw_qp_state(qp) == KIW_QPS_RTS ? 0 : -EINVAL;
	case IB_QPS_SQD:
		return kiw_qp_handle_event(qp, KIW_QPE_CLOSE);
	case IB_QPS_ERR:
		return kiw_qp_handle_event_sync(qp, KIW_QPE_ABORT);
	default:
		return -EINVAL;
	}
}

/**
 * kiw_modify_qp() - ib_device_ops.modify_qp
 * @ibqp: the QP
 * @attr: new values
 * @mask: which fields of @attr to set; may be 0
 * @udata: not used
 *
 * SQD requests an orderly close (iw_cm's disconnect) and does not wait for it. ERR aborts. When it
 * returns, the work requests that were posted to the QP before it ended have been flushed, so that
 * the work request that a drain posts next completes last. Those in a shared receive queue stay
 * there. Only the connection manager takes a QP to RTS. Therefore the attributes of InfiniBand
 * connections (addresses, packet numbers, timers, path, and read depths, which MPA negotiates here)
 * are accepted but not used.
 *
 * Rights: rdma_cm, as long as it has no iw_cm_id, takes a QP to INIT without any rights. The
 * stock library grants none later either, not even if the consumer has registered memory for
 * the peer. So no rights in IDLE means "not specified" and changes nothing: a new QP has rights
 * with which only those of the memory regions count. Any other value is used as it is.
 *
 * Context: process; may sleep.
 * Return: 0; -EINVAL: not possible from this state, or the current state in @attr is not that
 * of the QP; -EOPNOTSUPP: an unknown attribute, new queue sizes, or the event of a drained send
 * queue. On error nothing has changed.
 */
int kiw_modify_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask, struct ib_udata *udata)
{
	struct kiw_qp *qp = to_kiw_qp(ibqp);
	int ret;

	/* Queues cannot be resized. A drained send queue raises no event: it cannot be resumed. */
	if (mask & (~IB_QP_ATTR_STANDARD_BITS | IB_QP_CAP | IB_QP_EN_SQD_ASYNC_NOTIFY))
		return -EOPNOTSUPP;
	if (mask & IB_QP_CUR_STATE && attr->cur_qp_state != qp_ib_state(qp))
		return -EINVAL;
	if (mask & IB_QP_STATE) {
		ret = qp_modify_state(qp, attr->qp_state);
		if (ret)
			return ret;
	}
	if (mask & IB_QP_ACCESS_FLAGS &&
	    (attr->qp_access_flags || kiw_qp_state(qp) != KIW_QPS_IDLE))
		WRITE_ONCE(qp->access, attr->qp_access_flags);
	return 0;
}

/**
 * kiw_query_qp() - ib_device_ops.query_qp
 * @ibqp: the QP
 * @attr: set to those of the present attributes that the driver has, the others to 0
 * @mask: not used
 * @init_attr: set likewise to the attributes of creation; sizes are the actual ones
 *
 * Context: process.
 * Return: 0.
 */
int kiw_query_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
		 struct ib_qp_init_attr *init_attr)
{
	struct kiw_device *dev = to_kiw_device(ibqp->device);
	struct kiw_qp *qp = to_kiw_qp(ibqp);

	memset(attr, 0, sizeof(*attr));
	attr->qp_state = qp_ib_state(qp);
	attr->cur_qp_state = attr->qp_state;
	attr->path_mtu = ib_mtu_int_to_enum(READ_ONCE(dev->ndev->mtu));
	attr->qp_access_flags = READ_ONCE(qp->access);
	if (attr->qp_state > IB_QPS_RTR) {
		attr->max_rd_atomic = qp->conn.ord;
		attr->max_dest_rd_atomic = qp->conn.ird;
	}
	attr->port_num = 1;
	qp_get_caps(qp, &attr->cap);

	memset(init_attr, 0, sizeof(*init_attr));
	init_attr->event_handler = ibqp->event_handler;
	init_attr->qp_context = ibqp->qp_context;
	init_attr->send_cq = ibqp->send_cq;
	init_attr->recv_cq = ibqp->recv_cq;
	init_attr->srq = ibqp->srq;
	init_attr->cap = attr->cap;
	init_attr->sq_sig_type = qp->sig_all ? IB_SIGNAL_ALL_WR : IB_SIGNAL_REQ_WR;
	init_attr->qp_type = ibqp->qp_type;
	init_attr->port_num = 1;
	return 0;
}

/**
 * kiw_post_send() - ib_device_ops.post_send
 * @ibqp: the QP
 * @wr: list of work requests, or NULL: a user consumer's doorbell
 * @bad_wr: on failure: the first work request that was not posted; not set by a doorbell
 *
 * A doorbell never fails: the provider has advanced its ring already, and returns our result
 * as that of the post.
 *
 * Context: any; the doorbell in process context.
 * Return: 0; -EOPNOTSUPP: the QP of a process, which posts to its ring itself; otherwise the error
 * of kiw_qp_post_send().
 */
int kiw_post_send(struct ib_qp *ibqp, const struct ib_send_wr *wr,
		  const struct ib_send_wr **bad_wr)
{
	struct kiw_qp *qp = to_kiw_qp(ibqp);

	if (!qp->is_user)
		return kiw_qp_post_send(qp, wr, bad_wr);
	if (!wr) {
		kiw_doorbell_ring(&qp->doorbell);
		return 0;
	}
	*bad_wr = wr;
	return -EOPNOTSUPP;
}

/**
 * kiw_post_recv() - ib_device_ops.post_recv
 * @ibqp: the QP
 * @wr: list of receives
 * @bad_wr: on failure: the first receive that was not posted
 *
 * Context: any.
 * Return: 0; -EOPNOTSUPP: the QP of a process, which posts to its ring itself; otherwise the error
 * of kiw_qp_post_recv().
 */
int kiw_post_recv(struct ib_qp *ibqp, const struct ib_recv_wr *wr,
		  const struct ib_recv_wr **bad_wr)
{
	struct kiw_qp *qp = to_kiw_qp(ibqp);

	if (!qp->is_user)
		return kiw_qp_post_recv(qp, wr, bad_wr);
	*bad_wr = wr;
	return -EOPNOTSUPP;
}

/**
 * kiw_iw_get_qp() - find a QP by its number: ib_device_ops.iw_get_qp
 * @ibdev: the device
 * @qpn: the number, chosen by the caller, which may be a process
 *
 * Takes no reference: iw_cm calls kiw_iw_add_ref() before it drops the spinlock it
 * holds. kiw_destroy_qp() waits for that.
 *
 * Context: process context of the caller, in an RCU read-side critical section, such as that of a
 * spinlock.
 * Return: the QP, or NULL: there is no complete QP of that number, or the caller may not use it.
 */
struct ib_qp *kiw_iw_get_qp(struct ib_device *ibdev, int qpn)
{
	struct kiw_qp *qp = kiw_qp_table_find_rcu(&to_kiw_device(ibdev)->qps, qpn);

	return qp ? &qp->ib : NULL;
}

/**
 * kiw_iw_add_ref() - take a reference: ib_device_ops.iw_add_ref
 * @ibqp: the QP, from kiw_iw_get_qp() in the same RCU read-side critical section
 *
 * Context: any.
 */
void kiw_iw_add_ref(struct ib_qp *ibqp)
{
	kiw_qp_get(to_kiw_qp(ibqp));
}

/**
 * kiw_iw_rem_ref() - drop a reference: ib_device_ops.iw_rem_ref
 * @ibqp: the QP; may be gone afterwards
 *
 * Context: any.
 */
void kiw_iw_rem_ref(struct ib_qp *ibqp)
{
	kiw_qp_put(to_kiw_qp(ibqp));
}
