// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * ib_device_ops of shared receive queues: validate, allocate a ring, unwind.
 *
 * Owns: the ring of a queue, from create to destroy. Process context, except for posting
 * and querying, which run in any context. The core does not destroy a queue that a QP still
 * uses.
 */
#include "device.h"
#include "proto/ring.h"
#include "queue/srq.h"
#include "uapi.h"
#include "verbs.h"

/* Receives that fit into the ring */
static u32 srq_max_wr(const struct kiw_srq *srq)
{
	return srq->rq.size - kiw_uapi_spare_slots(srq->ib.device, srq->user);
}

static int srq_create_kernel(struct kiw_srq *srq, u32 size, u8 max_sge, struct kiw_stats *stats)
{
	void *ring;

	ring = kiw_rq_kernel_ring(size);
	if (!ring)
		return -ENOMEM;
	kiw_srq_init(srq, &kiw_rq_kernel_ops, ring, size, max_sge, stats);
	return 0;
}

static int srq_create_user(struct kiw_srq *srq, u32 size, struct kiw_device *dev,
			   struct ib_udata *udata)
{
	void *ring;
	int ret;

	ret = kiw_uapi_make_srq(srq, size, udata, &ring);
	if (ret)
		return ret;
	kiw_srq_init(srq, dev->uapi->rq, ring, size, dev->uapi->max_sge, &dev->stats);
	return 0;
}

/**
 * kiw_create_srq() - ib_device_ops.create_srq
 * @ibsrq: the queue
 * @attr: what the consumer wants; set to what it gets. The limit is ignored: modify sets it
 * @udata: the user's request, or NULL for a kernel consumer
 *
 * Context: process; may sleep.
 * Return: 0; -EINVAL: outside the limits of the device, or a bad request; -EOPNOTSUPP:
 * a type other than basic; -ENOMEM: no memory, or too many queues; -EFAULT.
 */
int kiw_create_srq(struct ib_srq *ibsrq, struct ib_srq_init_attr *attr, struct ib_udata *udata)
{
	struct kiw_device *dev = to_kiw_device(ibsrq->device);
	struct kiw_srq *srq = to_kiw_srq(ibsrq);
	u32 spare = kiw_uapi_spare_slots(ibsrq->device, udata);
	u32 size;
	int ret;

	if (attr->srq_type != IB_SRQT_BASIC)
		return -EOPNOTSUPP;
	if (!attr->attr.max_wr || attr->attr.max_sge > KIW_MAX_SGE ||
	    attr->attr.max_wr > KIW_MAX_SRQ_WR - kiw_uapi_spare_slots(ibsrq->device, true))
		return -EINVAL;
	size = kiw_ring_size(attr->attr.max_wr + spare, KIW_MAX_SRQ_WR);
	if (!atomic_add_unless(&dev->num_srq, 1, KIW_MAX_SRQ))
		return -ENOMEM;
	ret = udata ? srq_create_user(srq, size, dev, udata)
		    : srq_create_kernel(srq, size, attr->attr.max_sge, &dev->stats);
	if (ret)
		goto err_count;
	attr->attr.max_wr = size - spare;
	attr->attr.max_sge = srq->rq.max_sge;
	kiw_count(&dev->stats, KIW_STAT_SRQ_CREATED);
	return 0;

err_count:
	atomic_dec(&dev->num_srq);
	return ret;
}

/**
 * kiw_modify_srq() - ib_device_ops.modify_srq
 * @ibsrq: the queue
 * @attr: the new limit, in receives
 * @mask: which fields of @attr to set; only IB_SRQ_LIMIT is supported
 * @udata: not used
 *
 * Context: process.
 * Return: 0; -EINVAL: a limit the queue cannot have; -EOPNOTSUPP: anything else.
 */
int kiw_modify_srq(struct ib_srq *ibsrq, struct ib_srq_attr *attr, enum ib_srq_attr_mask mask,
		   struct ib_udata *udata)
{
	struct kiw_srq *srq = to_kiw_srq(ibsrq);

	if (mask & ~IB_SRQ_LIMIT)
		return -EOPNOTSUPP;
	if (!(mask & IB_SRQ_LIMIT))
		return 0;
	if (attr->srq_limit > srq_max_wr(srq))
		return -EINVAL;
	return kiw_srq_set_limit(srq, attr->srq_limit);
}

/**
 * kiw_query_srq() - ib_device_ops.query_srq
 * @ibsrq: the queue
 * @attr: set to the present attributes; the limit is 0 after its event was raised
 *
 * Context: any.
 * Return: 0.
 */
int kiw_query_srq(struct ib_srq *ibsrq, struct ib_srq_attr *attr)
{
	struct kiw_srq *srq = to_kiw_srq(ibsrq);

	attr->max_wr = srq_max_wr(srq);
	attr->max_sge = srq->rq.max_sge;
	attr->srq_limit = READ_ONCE(srq->limit);
	return 0;
}

/**
 * kiw_destroy_srq() - ib_device_ops.destroy_srq
 * @ibsrq: the queue; no QP uses it
 * @udata: not used
 *
 * Context: process; may sleep.
 * Return: 0.
 */
int kiw_destroy_srq(struct ib_srq *ibsrq, struct ib_udata *udata)
{
	struct kiw_device *dev = to_kiw_device(ibsrq->device);
	struct kiw_srq *srq = to_kiw_srq(ibsrq);

	kiw_srq_uninit(srq);
	kiw_ring_free(srq->user, srq->rq.ring);
	atomic_dec(&dev->num_srq);
	kiw_count(&dev->stats, KIW_STAT_SRQ_DESTROYED);
	return 0;
}

/**
 * kiw_post_srq_recv() - ib_device_ops.post_srq_recv
 * @ibsrq: a kernel consumer's queue; user space posts to its mapped ring
 * @wr: list of receives
 * @bad_wr: on failure: the first receive that was not posted; those before it were
 *
 * Context: any.
 * Return: 0; -ENOMEM: the queue is full; -EINVAL: a bad receive; -EOPNOTSUPP: user space
 * posts to its ring.
 */
int kiw_post_srq_recv(struct ib_srq *ibsrq, const struct ib_recv_wr *wr,
		      const struct ib_recv_wr **bad_wr)
{
	struct kiw_srq *srq = to_kiw_srq(ibsrq);
	int ret = 0;

	if (srq->user)
		ret = -EOPNOTSUPP;
	while (wr && !ret) {
		ret = kiw_rq_post(&srq->rq, wr);
		if (!ret)
			wr = wr->next;
	}
	if (ret)
		*bad_wr = wr;
	return ret;
}
