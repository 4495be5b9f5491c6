// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Case: queues, QPs and regions of a kernel consumer are made and resized when there is no memory
 * for them. First the first allocation of a call fails, then its second, and so on, until none has
 * failed. A call that fails returns -ENOMEM, leaves nothing behind, and succeeds when it is
 * repeated.
 *
 * Needs a kernel with fault injection by task, and the settings of 260-failing.sh. What counts as
 * left behind is read from kiwarp's device, too.
 *
 * Owns: nomem, for the duration of the case. Contexts: process. No locks.
 */
#include <linux/sched.h>

#include "device.h"
#include "ktest.h"

/* All queues fit into a page: kvmalloc() has no other way to get the memory for these. */
#define FEW		4
#define MORE		16
/* No call here has so many allocations */
#define NTH_MAX		1000

static struct {
	struct ktest_end *end;
	struct ib_cq *cq;
	struct ib_srq *srq;
	struct ib_qp *qp;
	struct ib_mr *mr;
} nomem;

/**
 * struct nomem_op - a call and what undoes it; neither the one nor the other changes anything if
 *	it fails
 * @name: for the log
 * @make: the call. Return: 0 or -errno
 * @unmake: undoes it
 */
struct nomem_op {
	const char *name;
	int (*make)(void);
	int (*unmake)(void);
};

#ifdef CONFIG_FAULT_INJECTION
static void nomem_begin(unsigned int nth)
{
	WRITE_ONCE(current->fail_nth, nth);
}

/* Has the allocation failed? Stops the failures. */
static bool nomem_end(void)
{
	bool has_failed = !READ_ONCE(current->fail_nth);

	WRITE_ONCE(current->fail_nth, 0);
	return has_failed;
}
#else
static void nomem_begin(unsigned int nth)
{
}

static bool nomem_end(void)
{
	return false;
}
#endif

static int make_cq(void)
{
	struct ib_cq *cq = ib_alloc_cq(nomem.end->id->device, NULL, FEW, 0, IB_POLL_DIRECT);

	if (IS_ERR(cq))
		return PTR_ERR(cq);
	nomem.cq = cq;
	return 0;
}

static int unmake_cq(void)
{
	ib_free_cq(nomem.cq);
	return 0;
}

static int make_srq(void)
{
	struct ib_srq_init_attr attr = {
		.attr = { .max_wr = FEW, .max_sge = 1 },
		.srq_type = IB_SRQT_BASIC,
	};
	struct ib_srq *srq = ib_create_srq(nomem.end->pd, &attr);

	if (IS_ERR(srq))
		return PTR_ERR(srq);
	nomem.srq = srq;
	return 0;
}

static int unmake_srq(void)
{
	ib_destroy_srq(nomem.srq);
	return 0;
}

static int make_qp(void)
{
	struct ib_qp_init_attr attr = {
		.cap = { .max_send_wr = FEW, .max_recv_wr = FEW, .max_send_sge = 1,
			 .max_recv_sge = 1 },
		.qp_type = IB_QPT_RC,
		.send_cq = nomem.cq,
		.recv_cq = nomem.cq,
	};
	struct ib_qp *qp = ib_create_qp(nomem.end->pd, &attr);

	if (IS_ERR(qp))
		return PTR_ERR(qp);
	nomem.qp = qp;
	return 0;
}

static int unmake_qp(void)
{
	return ib_destroy_qp(nomem.qp);
}

static int make_mr(void)
{
	struct ib_mr *mr = ib_alloc_mr(nomem.end->pd, IB_MR_TYPE_MEM_REG, FEW);

	if (IS_ERR(mr))
		return PTR_ERR(mr);
	nomem.mr = mr;
	return 0;
}

static int unmake_mr(void)
{
	return ib_dereg_mr(nomem.mr);
}

static int resize_srq_to(u32 max_wr)
{
	struct ib_srq_attr attr = { .max_wr = max_wr };
	int ret = ib_modify_srq(nomem.srq, &attr, IB_SRQ_MAX_WR);

	if (ret && (ib_query_srq(nomem.srq, &attr) || attr.max_wr == max_wr))
		return -EIO;
	return ret;
}

static int make_srq_larger(void)
{
	return resize_srq_to(MORE);
}

static int unmake_srq_larger(void)
{
	return resize_srq_to(FEW);
}

/* Since 7.2 consumers in the kernel cannot resize a CQ */
#ifdef KIW_HAS_RESIZE_CQ
static int resize_cq_to(int cqe)
{
	int ret = ib_resize_cq(nomem.cq, cqe);

	return ret && nomem.cq->cqe == cqe ? -EIO : ret;
}

static int make_cq_larger(void)
{
	return resize_cq_to(MORE);
}

static int unmake_cq_larger(void)
{
	return resize_cq_to(FEW);
}
#endif

#define OP(text, what)	{ text, make_##what, unmake_##what }

/* Each needs the objects of those before it */
static const struct nomem_op ops[] = {
	OP("completion queue", cq),
	OP("shared receive queue", srq),
	OP("queue pair", qp),
	OP("fast region", mr),
	OP("larger shared receive queue", srq_larger),
#ifdef KIW_HAS_RESIZE_CQ
	OP("larger completion queue", cq_larger),
#endif
};

/* Objects of the device that count against its limits */
static int nomem_objects(struct ktest_pair *p)
{
	struct kiw_device *dev = to_kiw_device(p->end[0].id->device);

	return atomic_read(&dev->num_cq) + atomic_read(&dev->num_srq) +
	       atomic_read(&dev->num_qp) + atomic_read(&dev->num_mr);
}

/* Lets each allocation of @op fail once. */
static void nomem_walk(struct ktest_pair *p, const struct nomem_op *op)
{
	int before = nomem_objects(p), failed = 0;
	unsigned int nth = 0;
	bool hit = true;
	int ret;

	while (hit && ++nth < NTH_MAX && !READ_ONCE(p->has_failed)) {
		nomem_begin(nth);
		ret = op->make();
		hit = nomem_end();
		failed += !!ret;
		if (ret && (!hit || ret != -ENOMEM))
			ktest_fail(p, op->name, nth, "no memory", ret);
		if (!ret)
			ktest_expect_eq(p, op->unmake(), 0);
		if (nomem_objects(p) != before)
			ktest_fail(p, op->name, nth, "as many objects", nomem_objects(p));
	}
	if (!failed || hit)
		ktest_fail(p, op->name, nth, "failures", failed);
}

static void nomem_case(struct ktest_pair *p)
{
	int i, ret = 0;

	nomem.end = &p->end[0];
	for (i = 0; i < ARRAY_SIZE(ops) && !READ_ONCE(p->has_failed); i++) {
		nomem_walk(p, &ops[i]);
		ret = ops[i].make();
		ktest_expect_eq(p, ret, 0);
		if (ret)
			break;
	}
	while (i-- > 0)
		ktest_expect_eq(p, ops[i].unmake(), 0);
}

const struct ktest_case ktest_cases_nomem[] = {
	{ "no-memory", nomem_case, { .poll = IB_POLL_SOFTIRQ } },
	{}
};
