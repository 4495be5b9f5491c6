// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * ib_device_ops of shared receive queues: validate, allocate or replace a ring, unwind.
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
	return READ_ONCE(srq->rq.size) - kiw_uapi_spare_slots(srq->ib.device, kiw_srq_is_user(srq));
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

/* Sets @slots to the size of a ring that has room for @max_wr receives and for @limit of them */
static int srq_check_resize(const struct kiw_srq *srq, u32 max_wr, u32 limit, u32 *slots)
{
	u32 spare = kiw_uapi_spare_slots(srq->ib.device, kiw_srq_is_user(srq));

	if (!max_wr || max_wr > KIW_MAX_SRQ_WR - kiw_uapi_spare_slots(srq->ib.device, true))
		return -EINVAL;
	*slots = kiw_ring_size(max_wr + spare, KIW_MAX_SRQ_WR);
	return limit > *slots - spare ? -EINVAL : 0;
}

static int srq_resize(struct kiw_srq *srq, u32 max_wr, u32 limit, struct ib_udata *udata)
{
	u32 slots;
	int ret;

	ret = srq_check_resize(srq, max_wr, limit, &slots);
	if (ret)
		return ret;
	return udata ? kiw_uapi_resize_srq(srq, slots, udata) : kiw_srq_resize(srq, slots);
}

/**
 * kiw_modify_srq() - ib_device_ops.modify_srq
 * @ibsrq: the queue; may be in use
 * @attr: the new limit, and the number of receives that there should be room for
 * @mask: which fields of @attr to set
 * @udata: the user's request, or NULL for a kernel consumer
 *
 * If a limit is set at the same time as the queue is made smaller by another call, the limit may
 * exceed what the queue holds. Then the next message that needs a receive raises the event. Or the
 * limit is refused, perhaps after the size has changed.
 *
 * Context: process; may sleep.
 * Return: 0; -EINVAL: a limit or a size that the queue cannot have, the limit exceeds the size, or
 * a bad request; -EOPNOTSUPP: an unknown attribute, or the user ABI cannot resize; -EBUSY: there
 * are, or seem to be, more receives in the queue than would fit; -ENOMEM; -EFAULT. On error nothing
 * has changed, except as above.
 */
int kiw_modify_srq(struct ib_srq *ibsrq, struct ib_srq_attr *attr, enum ib_srq_attr_mask mask,
		   struct ib_udata *udata)
{
	struct kiw_srq *srq = to_kiw_srq(ibsrq);
	u32 limit = mask & IB_SRQ_LIMIT ? attr->srq_limit : READ_ONCE(srq->limit);
	int ret;

	if (mask & ~(IB_SRQ_LIMIT | IB_SRQ_MAX_WR))
		return -EOPNOTSUPP;
	if (mask & IB_SRQ_MAX_WR) {
		ret = srq_resize(srq, attr->max_wr, limit, udata);
		if (ret)
			return ret;
	} else if (mask & IB_SRQ_LIMIT && limit > srq_max_wr(srq)) {
		return -EINVAL;
	}
	return mask & IB_SRQ_LIMIT ? kiw_srq_set_limit(srq, limit) : 0;
}

/**
 * kiw_query_srq() - ib_device_ops.query_srq
 * @ibsrq: the queue
 * @attr: set to the present attributes; the limit is 0 while its event is disarmed
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
	const struct ib_recv_wr *next;
	int ret = 0;

	if (kiw_srq_is_user(srq))
		ret = -EOPNOTSUPP;
	while (wr && !ret) {
		/* As in kiw_qp_post_send() */
		next = wr->next;
		ret = kiw_rq_post(&srq->rq, wr);
		if (!ret)
			wr = next;
	}
	if (ret)
		*bad_wr = wr;
	return ret;
}
