// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * ib_device_ops of completion queues: validate, allocate a ring, unwind.
 *
 * Owns: the ring of a queue, from create to destroy. Process context throughout. The
 * core serialises create and destroy of a queue, and does not destroy a queue that a QP
 * still uses.
 */
#include "device.h"
#include "proto/ring.h"
#include "qp/qp_table.h"
#include "queue/cq.h"
#include "uapi.h"
#include "verbs.h"

static int cq_check_attr(const struct ib_device *ibdev, const struct ib_cq_init_attr *attr)
{
	/*
	 * Neither timestamps nor ignored overruns are supported: we detect every overrun,
	 * and a consumer that lost a completion would wait for ever.
	 */
	if (attr->flags)
		return -EOPNOTSUPP;
	if (!attr->cqe || attr->cqe > KIW_MAX_CQE - kiw_uapi_spare_slots(ibdev, true))
		return -EINVAL;
	if (attr->comp_vector >= ibdev->num_comp_vectors)
		return -EINVAL;
	return 0;
}

/* After an overrun, end the QPs that complete to the queue: see kiw_qp_table_fail(). */
static void cq_overrun(struct kiw_cq *cq)
{
	kiw_qp_table_fail(&to_kiw_device(cq->ib.device)->qps, cq);
}

static int cq_create_kernel(struct kiw_cq *cq, u32 size, struct kiw_stats *stats)
{
	void *ring;

	ring = kiw_cq_kernel_ring(size);
	if (!ring)
		return -ENOMEM;
	kiw_cq_init(cq, &kiw_cq_kernel_ops, ring, size, stats, cq_overrun);
	return 0;
}

static int cq_create_user(struct kiw_cq *cq, u32 size, struct kiw_device *dev,
			  struct ib_udata *udata)
{
	void *ring;
	int ret;

	ret = kiw_uapi_make_cq(cq, size, udata, &ring);
	if (ret)
		return ret;
	kiw_cq_init(cq, dev->uapi->cq, ring, size, &dev->stats, cq_overrun);
	return 0;
}

/**
 * kiw_create_cq() - ib_device_ops.create_cq
 * @ibcq: the queue; sets @ibcq->cqe to the actual number of entries
 * @attr: what the consumer wants; no flags are supported
 * @arg: the user's request, in the form of this kernel; NULL for a kernel consumer
 *
 * Context: process; may sleep.
 * Return: 0; -EINVAL: outside the limits of the device, or a bad request; -EOPNOTSUPP:
 * a flag is set; -ENOMEM: no memory, or too many queues; -EFAULT.
 */
int kiw_create_cq(struct ib_cq *ibcq, const struct ib_cq_init_attr *attr,
		  kiw_compat_create_cq_arg *arg)
{
	struct kiw_device *dev = to_kiw_device(ibcq->device);
	struct ib_udata *udata = kiw_compat_cq_udata(arg);
	struct kiw_cq *cq = to_kiw_cq(ibcq);
	u32 spare = kiw_uapi_spare_slots(ibcq->device, udata);
	u32 size;
	int ret;

	ret = cq_check_attr(ibcq->device, attr);
	if (ret)
		return ret;
	if (!atomic_add_unless(&dev->num_cq, 1, KIW_MAX_CQ))
		return -ENOMEM;
	size = kiw_ring_size(attr->cqe + spare, KIW_MAX_CQE);
	ret = udata ? cq_create_user(cq, size, dev, udata)
		    : cq_create_kernel(cq, size, &dev->stats);
	if (ret)
		goto err_count;
	ibcq->cqe = size - spare;
	kiw_count(&dev->stats, KIW_STAT_CQ_CREATED);
	return 0;

err_count:
	atomic_dec(&dev->num_cq);
	return ret;
}

/**
 * kiw_resize_cq() - ib_device_ops.resize_cq, since Linux 7.2 resize_user_cq
 * @ibcq: the queue; sets @ibcq->cqe to the actual number of entries
 * @cqe: entries wanted
 * @udata: the user's request, or NULL for a kernel consumer
 *
 * With siw's ABI, the ring of a process cannot be resized: the stock provider keeps the address and
 * the size that the ring had at creation.
 *
 * Context: process; may sleep. The queue may be in use.
 * Return: 0; -EOPNOTSUPP: the user ABI cannot; -EINVAL: outside the limits of the device, or a bad
 * request; -EBUSY: more completions wait to be polled than would fit; -ENOMEM; -EFAULT.
 */
int kiw_resize_cq(struct ib_cq *ibcq, kiw_compat_cqe cqe, struct ib_udata *udata)
{
	u32 spare = kiw_uapi_spare_slots(ibcq->device, udata);
	struct kiw_cq *cq = to_kiw_cq(ibcq);

	if (cqe < 1 || cqe > KIW_MAX_CQE - kiw_uapi_spare_slots(ibcq->device, true))
		return -EINVAL;
	if (cq->ops != &kiw_cq_kernel_ops)
		return kiw_uapi_resize_cq(cq, kiw_ring_size(cqe + spare, KIW_MAX_CQE), udata);
	return kiw_cq_resize(cq, kiw_ring_size(cqe, KIW_MAX_CQE));
}

/**
 * kiw_destroy_cq() - ib_device_ops.destroy_cq
 * @ibcq: the queue; no QP uses it
 * @udata: not used
 *
 * Context: process; may sleep.
 * Return: 0.
 */
int kiw_destroy_cq(struct ib_cq *ibcq, struct ib_udata *udata)
{
	struct kiw_device *dev = to_kiw_device(ibcq->device);
	struct kiw_cq *cq = to_kiw_cq(ibcq);

	kiw_cq_uninit(cq);
	kiw_ring_free(cq->user, cq->ring);
	atomic_dec(&dev->num_cq);
	kiw_count(&dev->stats, KIW_STAT_CQ_DESTROYED);
	return 0;
}
