// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Cases: the end of a connection. Every work request completes exactly once, no matter how the
 * connection ends; a drained queue is empty; the expected events are raised.
 *
 * Contexts: process. No locks.
 */
#include <linux/string.h>

#include "ktest.h"

#define LOAD_SIZE	(PAGE_SIZE + 11)
/* Receives that no message of the load uses */
#define UNUSED		8
/* Two more are posted by ib_drain_rq() and by the handler of the QP's events. */
#define LOAD		(KTEST_DEPTH - UNUSED - 2)

/* Fills both queues of both ends without waiting for completions */
static void load(struct ktest_pair *p)
{
	ktest_post_both(p, LOAD, 128 * PAGE_SIZE, 0, LOAD_SIZE);
}

/* Likewise, and the queues of receives do not become empty before the connection ends */
static void load_more(struct ktest_pair *p)
{
	int i, e;

	load(p);
	for (i = LOAD; i < LOAD + UNUSED; i++)
		for (e = 0; e < 2; e++)
			ktest_post_recv(&p->end[e], &p->end[e].recvs[i], 0, LOAD_SIZE);
}

/* Checks that the first @count of @w completed once, successful ones first, then flushed ones */
static void check_drained(struct ktest_pair *p, struct ktest_wr *w, int count, const char *what)
{
	bool is_flushed = false;
	int i;

	for (i = 0; i < count && !p->has_failed; i++) {
		if (atomic_read(&w[i].count) != 1)
			ktest_fail(p, what, i, "completed once", atomic_read(&w[i].count));
		else if (w[i].wc.status == IB_WC_WR_FLUSH_ERR)
			is_flushed = true;
		else if (is_flushed || w[i].wc.status != IB_WC_SUCCESS)
			ktest_fail(p, what, i, "success or flushed", w[i].wc.status);
	}
}

static void check_sends(struct ktest_end *end, const char *what)
{
	check_drained(end->pair, end->sends, LOAD, what);
}

/* Those of load_more(): the last ones are flushed. */
static void check_recvs(struct ktest_end *end, const char *what)
{
	struct ktest_pair *p = end->pair;
	int i;

	check_drained(p, end->recvs, LOAD + UNUSED, what);
	for (i = LOAD; i < LOAD + UNUSED && !p->has_failed; i++)
		ktest_expect_eq(p, end->recvs[i].wc.status, IB_WC_WR_FLUSH_ERR);
}

static void drain(struct ktest_pair *p)
{
	load_more(p);
	ib_drain_qp(p->end[0].qp);
	check_sends(&p->end[0], "sends of a");
	check_recvs(&p->end[0], "receives of a");
	ib_drain_qp(p->end[1].qp);
	check_sends(&p->end[1], "sends of b");
	check_recvs(&p->end[1], "receives of b");
}

static void drain_halves(struct ktest_pair *p)
{
	load_more(p);
	ib_drain_sq(p->end[0].qp);
	check_sends(&p->end[0], "sends of a");
	ib_drain_rq(p->end[1].qp);
	check_recvs(&p->end[1], "receives of b");
	ib_drain_rq(p->end[0].qp);
	check_recvs(&p->end[0], "receives of a");
	ib_drain_sq(p->end[1].qp);
	check_sends(&p->end[1], "sends of b");
}

/* Disconnects when everything has completed: every completion is successful */
static void disconnect(struct ktest_pair *p)
{
	int i, e;

	load(p);
	for (i = 0; i < LOAD; i++) {
		for (e = 0; e < 2; e++) {
			ktest_wait(&p->end[e].recvs[i], IB_WC_SUCCESS);
			ktest_wait(&p->end[e].sends[i], IB_WC_SUCCESS);
		}
	}
	ktest_expect_eq(p, rdma_disconnect(p->end[0].id), 0);
	ktest_wait_cm_event(&p->end[0], RDMA_CM_EVENT_DISCONNECTED);
	ktest_wait_cm_event(&p->end[1], RDMA_CM_EVENT_DISCONNECTED);
	drain(p);
}

/* Destroys one end's QP under load: the other end's work requests are flushed */
static void destroy_loaded(struct ktest_pair *p)
{
	load_more(p);
	rdma_destroy_qp(p->end[0].id);
	p->end[0].qp = NULL;
	ktest_wait_cm_event(&p->end[1], RDMA_CM_EVENT_DISCONNECTED);
	ib_drain_qp(p->end[1].qp);
	check_sends(&p->end[1], "sends of b");
	check_recvs(&p->end[1], "receives of b");
}

static void last_wqe(struct ktest_pair *p)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_ERR };
	struct ib_send_wr wr = { .opcode = IB_WR_SEND };
	int i;

	for (i = 0; i < 4; i++)
		ktest_post_recv(&p->end[1], &p->end[1].recvs[i], 0, 64);
	ktest_post(&p->end[0], &p->end[0].sends[0], &wr);
	ktest_wait(&p->end[1].recvs[0], IB_WC_SUCCESS);
	ktest_expect_eq(p, ib_modify_qp(p->end[1].qp, &attr, IB_QP_STATE), 0);
	ktest_wait_qp_event(&p->end[1], IB_EVENT_QP_LAST_WQE_REACHED);
	/* Receives in the shared receive queue stay there. */
	for (i = 1; i < 4; i++)
		ktest_expect_eq(p, atomic_read(&p->end[1].recvs[i].count), 0);
}

static int resize_srq_to(struct ktest_end *end, u32 max_wr)
{
	struct ib_srq_attr attr = { .max_wr = max_wr };

	return ib_modify_srq(end->srq, &attr, IB_SRQ_MAX_WR);
}

/* Resizes the shared receive queues under load: each message takes one receive */
static void resize_srq_loaded(struct ktest_pair *p)
{
	struct ib_srq_attr attr = {};
	int i, e;

	load(p);
	for (i = 0; i < 64; i++)
		for (e = 0; e < 2; e++)
			ktest_expect_eq(p, resize_srq_to(&p->end[e], i % 2 ? 1024 : 4096), 0);
	for (i = 0; i < LOAD; i++) {
		for (e = 0; e < 2; e++) {
			ktest_wait(&p->end[e].recvs[i], IB_WC_SUCCESS);
			ktest_wait(&p->end[e].sends[i], IB_WC_SUCCESS);
		}
	}
	ktest_expect_eq(p, ib_query_srq(p->end[0].srq, &attr), 0);
	ktest_expect_eq(p, attr.max_wr, 1024);
}

/* Resizing keeps the receives in the queue, and fails if there is no room for them */
static void resize_srq_filled(struct ktest_pair *p)
{
	struct ib_send_wr wr = { .opcode = IB_WR_SEND };
	struct ktest_end *end = &p->end[1];
	int i;

	for (i = 0; i < 9; i++)
		ktest_post_recv(end, &end->recvs[i], 0, 64);
	ktest_expect_eq(p, resize_srq_to(end, 8), -EBUSY);
	ktest_expect_eq(p, resize_srq_to(end, 0), -EINVAL);
	ktest_expect_eq(p, resize_srq_to(end, 16), 0);
	for (i = 9; i < 16; i++)
		ktest_post_recv(end, &end->recvs[i], 0, 64);
	for (i = 0; i < 16; i++) {
		ktest_post(&p->end[0], &p->end[0].sends[i], &wr);
		ktest_wait(&end->recvs[i], IB_WC_SUCCESS);
		ktest_expect_eq(p, resize_srq_to(end, i % 2 ? 64 : 16), 0);
	}
}

/* Overflows a small CQ that is not polled */
static void overflow(struct ktest_pair *p)
{
	struct ktest_end *end = &p->end[0];
	struct ib_send_wr wr = { .opcode = IB_WR_SEND };
	u32 i, n = end->cq->cqe + 2;

	for (i = 0; i < n; i++)
		ktest_post_recv(&p->end[1], &p->end[1].recvs[i], 0, 1);
	for (i = 0; i < n; i++)
		ktest_post(end, &end->sends[i], &wr);
	if (!p->has_failed)
		ktest_expect(p, wait_event_timeout(end->wait, atomic_read(&end->cq_errors),
						   KTEST_PATIENCE * HZ));
	ktest_wait_cm_event(&p->end[1], RDMA_CM_EVENT_DISCONNECTED);
	ktest_expect_eq(p, atomic_read(&end->cq_errors), 1);
	/* Destroy the QP here: it cannot be drained, because its CQ has overflowed. */
	rdma_destroy_qp(end->id);
	end->qp = NULL;
}

/* A Read of memory that is not there: both ends' completions name the Terminate. */
static void names_terminate(struct ktest_pair *p)
{
	struct ktest_end *end = p->end;
	struct ib_sge sge = ktest_sge(&end[0], 0, 8);
	struct ib_rdma_wr wr = {
		.wr = { .opcode = IB_WR_RDMA_READ, .sg_list = &sge, .num_sge = 1 },
		.rkey = 0x123456,
	};

	ktest_post_recv(&end[0], &end[0].recvs[0], 0, 64);
	ktest_post_recv(&end[1], &end[1].recvs[0], 0, 64);
	ktest_post(&end[0], &end[0].sends[0], &wr.wr);
	ktest_wait(&end[0].sends[0], IB_WC_REM_ACCESS_ERR);
	ktest_wait(&end[0].recvs[0], IB_WC_WR_FLUSH_ERR);
	ktest_wait(&end[1].recvs[0], IB_WC_WR_FLUSH_ERR);
	/* RDMAP invalid STag: layer 0, type 1, code 0; and who has sent it */
	ktest_expect_eq(p, end[0].sends[0].wc.vendor_err, 0x2000100);
	ktest_expect_eq(p, end[0].recvs[0].wc.vendor_err, 0x2000100);
	ktest_expect_eq(p, end[1].recvs[0].wc.vendor_err, 0x1000100);
}

/* A QP is destroyed whose completions, among those of others, are in its CQs */

#define FORGET_QPS	3
#define FORGET_ROUNDS	6
#define FORGET_WRS	15

/**
 * struct forget - QPs that share two CQs
 * @cqs: the CQs
 * @qps: the QPs; the sends of one complete to the CQ to which the receives of the next do
 * @left: for each CQ, the work requests whose completions must be in it, in their order
 * @count: for each CQ, number of @left
 */
struct forget {
	struct ib_cq *cqs[2];
	struct ib_qp *qps[FORGET_QPS];
	struct ib_cqe *left[2][2 * FORGET_WRS];
	u32 count[2];
};

static void forget_open(struct ktest_end *end, struct forget *f, u32 i)
{
	struct ib_qp_attr error = { .qp_state = IB_QPS_ERR };
	struct ib_qp_init_attr attr = {
		.cap = { .max_send_wr = 1, .max_recv_wr = 1 },
		.qp_type = IB_QPT_RC,
		.send_cq = f->cqs[i % 2],
		.recv_cq = f->cqs[!(i % 2)],
	};

	f->qps[i] = ib_create_qp(end->pd, &attr);
	ktest_expect(end->pair, !IS_ERR(f->qps[i]));
	if (!IS_ERR(f->qps[i]))
		ktest_expect_eq(end->pair, ib_modify_qp(f->qps[i], &error, IB_QP_STATE), 0);
}

/* A send and a receive of a QP in ERROR, whose completions are in the CQs when this returns */
static void forget_flush(struct ktest_end *end, struct forget *f, u32 i, u32 wr)
{
	struct ib_qp_attr error = { .qp_state = IB_QPS_ERR };
	struct ib_send_wr send = { .opcode = IB_WR_SEND };
	struct ib_recv_wr recv = {};

	ktest_wr_init(end, &end->sends[wr]);
	ktest_wr_init(end, &end->recvs[wr]);
	send.wr_cqe = &end->sends[wr].cqe;
	send.send_flags = IB_SEND_SIGNALED;
	recv.wr_cqe = &end->recvs[wr].cqe;
	ktest_expect_eq(end->pair, ib_post_send(f->qps[i], &send, NULL), 0);
	ktest_expect_eq(end->pair, ib_post_recv(f->qps[i], &recv, NULL), 0);
	ktest_expect_eq(end->pair, ib_modify_qp(f->qps[i], &error, IB_QP_STATE), 0);
}

static void forget_expect(struct forget *f, u32 cq, struct ktest_wr *w)
{
	f->left[cq][f->count[cq]++] = &w->cqe;
}

static void forget_poll(struct ktest_pair *p, struct forget *f, u32 cq)
{
	struct ib_wc wc;
	u32 n;

	for (n = 0; n < f->count[cq]; n++) {
		ktest_expect_eq(p, ib_poll_cq(f->cqs[cq], 1, &wc), 1);
		if (READ_ONCE(p->has_failed))
			return;
		ktest_expect(p, wc.wr_cqe == f->left[cq][n]);
		ktest_expect_eq(p, wc.status, IB_WC_WR_FLUSH_ERR);
	}
	ktest_expect_eq(p, ib_poll_cq(f->cqs[cq], 1, &wc), 0);
}

/* In each round another QP is destroyed; the CQs have more slots than are used in a round. */
static void forget_round(struct ktest_end *end, struct forget *f, u32 round)
{
	u32 gone = round % FORGET_QPS;
	u32 i, wr;

	memset(f->count, 0, sizeof(f->count));
	for (wr = 0; wr < FORGET_WRS && !READ_ONCE(end->pair->has_failed); wr++) {
		i = wr * (1 + round) * 5 / 4 % FORGET_QPS;
		forget_flush(end, f, i, wr);
		if (i == gone)
			continue;
		forget_expect(f, i % 2, &end->sends[wr]);
		forget_expect(f, !(i % 2), &end->recvs[wr]);
	}
	ib_destroy_qp(f->qps[gone]);
	for (i = 0; i < 2; i++)
		forget_poll(end->pair, f, i);
	forget_open(end, f, gone);
}

static void forget(struct ktest_pair *p)
{
	struct ktest_end *end = &p->end[0];
	struct forget f = { .cqs[0] = end->cq };
	struct ib_cq *cq;
	u32 i;

	cq = ib_alloc_cq(end->id->device, end, 32, 0, IB_POLL_DIRECT);
	if (IS_ERR(cq)) {
		ktest_fail(p, __func__, __LINE__, "ib_alloc_cq", PTR_ERR(cq));
		return;
	}
	f.cqs[1] = cq;
	for (i = 0; i < FORGET_QPS; i++)
		forget_open(end, &f, i);
	for (i = 0; i < FORGET_ROUNDS && !READ_ONCE(p->has_failed); i++)
		forget_round(end, &f, i);
	for (i = 0; i < FORGET_QPS; i++)
		if (!IS_ERR(f.qps[i]))
			ib_destroy_qp(f.qps[i]);
	ib_free_cq(cq);
}

/* Since 7.2 consumers in the kernel cannot resize a CQ */
#ifdef KIW_HAS_RESIZE_CQ
/* Resizes the CQs under load: no completion is lost */
static void resize_loaded(struct ktest_pair *p)
{
	int i, e;

	load(p);
	for (i = 0; i < 64; i++)
		for (e = 0; e < 2; e++)
			ktest_expect_eq(p, ib_resize_cq(p->end[e].cq, i % 2 ? 1024 : 4096), 0);
	for (i = 0; i < LOAD; i++) {
		for (e = 0; e < 2; e++) {
			ktest_wait(&p->end[e].recvs[i], IB_WC_SUCCESS);
			ktest_wait(&p->end[e].sends[i], IB_WC_SUCCESS);
		}
	}
	ktest_expect_eq(p, p->end[0].cq->cqe, 1024);
	drain(p);
}

/* Resizing keeps completions that wait in the CQ, and fails if there is no room for them */
static void resize_full(struct ktest_pair *p)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_ERR };
	struct ktest_end *end = &p->end[0];
	int i;

	for (i = 0; i < 4; i++)
		ktest_post_recv(end, &end->recvs[i], 0, 64);
	ktest_expect_eq(p, ib_modify_qp(end->qp, &attr, IB_QP_STATE), 0);
	ktest_expect_eq(p, ib_resize_cq(end->cq, 0), -EINVAL);
	ktest_expect_eq(p, ib_resize_cq(end->cq, 2), -EBUSY);
	ktest_expect_eq(p, ib_resize_cq(end->cq, 4), 0);
	ktest_expect_eq(p, end->cq->cqe, 4);
	for (i = 0; i < 4; i++)
		ktest_wait(&end->recvs[i], IB_WC_WR_FLUSH_ERR);
}
#endif

const struct ktest_case ktest_cases_end[] = {
	{ "drain-softirq", drain, { .poll = IB_POLL_SOFTIRQ } },
	{ "drain-workqueue", drain, { .poll = IB_POLL_WORKQUEUE } },
	{ "drain-direct", drain, { .poll = IB_POLL_DIRECT } },
	{ "drain-halves", drain_halves, { .poll = IB_POLL_SOFTIRQ } },
	{ "disconnect", disconnect, { .poll = IB_POLL_SOFTIRQ } },
	{ "destroy-loaded", destroy_loaded, { .poll = IB_POLL_SOFTIRQ } },
	{ "last-wqe", last_wqe, { .poll = IB_POLL_SOFTIRQ, .with_srq = true } },
#ifdef KIW_HAS_RESIZE_CQ
	{ "cq-resize-loaded", resize_loaded, { .poll = IB_POLL_SOFTIRQ } },
	{ "cq-resize-full", resize_full, { .poll = IB_POLL_DIRECT } },
#endif
	{ "srq-resize-loaded", resize_srq_loaded, { .poll = IB_POLL_SOFTIRQ, .with_srq = true } },
	{ "srq-resize-filled", resize_srq_filled, { .poll = IB_POLL_SOFTIRQ, .with_srq = true } },
	{ "cq-forget", forget, { .poll = IB_POLL_DIRECT, .cqe = 32 } },
	{ "cq-overflow", overflow, { .poll = IB_POLL_DIRECT, .cqe = 4 } },
	{ "names-terminate", names_terminate, { .poll = IB_POLL_SOFTIRQ } },
	{}
};
