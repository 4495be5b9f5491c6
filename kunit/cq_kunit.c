// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Completion queues in the kernel format, across the wrap of their positions: order, completions of
 * a QP that goes, other sizes, overruns, arming, what a consumer sees of a completion, and what its
 * worker defers.
 */
#include <linux/types.h>

/* The module has no trace events */
#define KIW_TRACE_H

static inline void trace_kiw_cq_overrun(const char *dev, u32 id)
{
}

#include "queue/cq.c"

#include "util.h"

#define CQ_SIZE		8
/* Positions wrap in the middle of the ring. */
#define CQ_FIRST	(U32_MAX - CQ_SIZE / 2 + 1)

/**
 * struct cq_world - a queue and what it needs
 * @cq: the queue
 * @device: its device
 * @stats: counters of the device
 * @qps: some QPs, which only have to have different addresses
 * @overruns: number of calls of the driver's callback
 * @errors: number of error events
 */
struct cq_world {
	struct kiw_cq cq;
	struct ib_device *device;
	struct kiw_stats stats;
	struct ib_qp *qps[2];
	int overruns;
	int errors;
};

static void cq_count_overrun(struct kiw_cq *cq)
{
	container_of(cq, struct cq_world, cq)->overruns++;
}

static void cq_count_error(struct ib_event *event, void *context)
{
	struct cq_world *world = context;

	if (event->event == IB_EVENT_CQ_ERR && event->element.cq == &world->cq.ib)
		world->errors++;
}

static struct cq_world *cq_open(struct kunit *test)
{
	struct cq_world *world = kunit_kzalloc(test, sizeof(*world), GFP_KERNEL);
	void *ring = kiw_cq_kernel_ring(CQ_SIZE);
	int i;

	KUNIT_ASSERT_NOT_NULL(test, world);
	KUNIT_ASSERT_NOT_NULL(test, ring);
	KUNIT_ASSERT_EQ(test, kiw_stats_init(&world->stats), 0);
	world->device = kunit_kzalloc(test, sizeof(*world->device), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, world->device);
	for (i = 0; i < ARRAY_SIZE(world->qps); i++) {
		world->qps[i] = kunit_kzalloc(test, sizeof(*world->qps[i]), GFP_KERNEL);
		KUNIT_ASSERT_NOT_NULL(test, world->qps[i]);
	}
	world->cq.ib.device = world->device;
	world->cq.ib.event_handler = cq_count_error;
	world->cq.ib.cq_context = world;
	kiw_cq_init(&world->cq, &kiw_cq_kernel_ops, ring, CQ_SIZE, &world->stats, cq_count_overrun);
	world->cq.put = CQ_FIRST;
	world->cq.get = CQ_FIRST;
	return world;
}

static void cq_close(struct cq_world *world)
{
	kiw_cq_uninit(&world->cq);
	kvfree(world->cq.ring);
	kiw_stats_uninit(&world->stats);
}

static bool cq_post(struct cq_world *world, u64 wr_id, int qp)
{
	const struct kiw_wc wc = {
		.wr_id = wr_id,
		.qp = world->qps[qp],
		.op = KIW_WR_SEND,
		.status = KIW_WCS_SUCCESS,
	};

	return kiw_cq_post(&world->cq, &wc);
}

/* The oldest completion is @wr_id. */
static void cq_expect(struct kunit *test, struct cq_world *world, u64 wr_id)
{
	struct ib_wc wc;

	KUNIT_ASSERT_EQ(test, kiw_poll_cq(&world->cq.ib, 1, &wc), 1);
	KUNIT_EXPECT_EQ(test, wc.wr_id, wr_id);
}

static void cq_expect_empty(struct kunit *test, struct cq_world *world)
{
	struct ib_wc wc;

	KUNIT_EXPECT_EQ(test, kiw_poll_cq(&world->cq.ib, 1, &wc), 0);
}

static void completions_keep_their_order(struct kunit *test)
{
	struct cq_world *world = cq_open(test);
	u64 posted = 0, polled = 0;
	struct ib_wc wc[3];
	int n, i;

	while (polled < 10 * CQ_SIZE) {
		while (posted < polled + CQ_SIZE)
			KUNIT_ASSERT_TRUE(test, cq_post(world, posted++, 0));
		n = kiw_poll_cq(&world->cq.ib, ARRAY_SIZE(wc), wc);
		KUNIT_ASSERT_EQ(test, n, (int)ARRAY_SIZE(wc));
		for (i = 0; i < n; i++)
			KUNIT_EXPECT_EQ(test, wc[i].wr_id, polled++);
	}
	cq_close(world);
}

/* All ways in which up to CQ_SIZE completions belong to two QPs, of which one goes */
static void completions_of_a_qp_are_dropped(struct kunit *test)
{
	struct cq_world *world = cq_open(test);
	u32 count, of_second, i;

	for (count = 0; count <= CQ_SIZE; count++) {
		for (of_second = 0; of_second < 1U << count; of_second++) {
			world->cq.put = CQ_FIRST + count;
			world->cq.get = world->cq.put;
			for (i = 0; i < count; i++)
				KUNIT_ASSERT_TRUE(test, cq_post(world, i, of_second >> i & 1));
			kiw_cq_forget_qp(&world->cq, world->qps[1]);
			for (i = 0; i < count; i++)
				if (!(of_second >> i & 1))
					cq_expect(test, world, i);
			cq_expect_empty(test, world);
		}
	}
	cq_close(world);
}

/* The room of those that were dropped can be used. */
static void dropping_makes_room(struct kunit *test)
{
	struct cq_world *world = cq_open(test);
	u64 i;

	for (i = 0; i < CQ_SIZE; i++)
		KUNIT_ASSERT_TRUE(test, cq_post(world, i, i % 2));
	kiw_cq_forget_qp(&world->cq, world->qps[0]);
	for (; i < CQ_SIZE + CQ_SIZE / 2; i++)
		KUNIT_EXPECT_TRUE(test, cq_post(world, i, 0));
	for (i = 1; i < CQ_SIZE; i += 2)
		cq_expect(test, world, i);
	for (i = CQ_SIZE; i < CQ_SIZE + CQ_SIZE / 2; i++)
		cq_expect(test, world, i);
	cq_expect_empty(test, world);
	cq_close(world);
}

/* A ring of a process has another format, and does not point to QPs. */
static void rings_of_processes_are_left_alone(struct kunit *test)
{
	static const struct kiw_cq_ops user_ops;
	struct cq_world *world = cq_open(test);
	struct ib_wc wc;
	u64 i;

	for (i = 0; i < CQ_SIZE; i++)
		KUNIT_ASSERT_TRUE(test, cq_post(world, i, i % 2));
	world->cq.ops = &user_ops;
	kiw_cq_forget_qp(&world->cq, world->qps[1]);
	KUNIT_EXPECT_EQ(test, kiw_poll_cq(&world->cq.ib, 1, &wc), -EOPNOTSUPP);
	KUNIT_EXPECT_EQ(test, kiw_req_notify_cq(&world->cq.ib, IB_CQ_NEXT_COMP), -EOPNOTSUPP);
	world->cq.ops = &kiw_cq_kernel_ops;
	for (i = 0; i < CQ_SIZE; i++)
		cq_expect(test, world, i);
	cq_expect_empty(test, world);
	cq_close(world);
}

static void resizing_keeps_completions(struct kunit *test)
{
	static const u32 sizes[] = { CQ_SIZE / 2, CQ_SIZE, 4 * CQ_SIZE };
	u32 count, i, j;

	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		for (count = 0; count <= CQ_SIZE; count++) {
			struct cq_world *world = cq_open(test);
			bool fits = count <= sizes[i];

			for (j = 0; j < count; j++)
				KUNIT_ASSERT_TRUE(test, cq_post(world, j, 0));
			KUNIT_EXPECT_EQ(test, kiw_cq_resize(&world->cq, sizes[i]),
					fits ? 0 : -EBUSY);
			KUNIT_EXPECT_EQ(test, world->cq.size, fits ? sizes[i] : CQ_SIZE);
			for (; j < world->cq.size; j++)
				KUNIT_EXPECT_TRUE(test, cq_post(world, j, 0));
			for (j = 0; j < world->cq.size; j++)
				cq_expect(test, world, j);
			cq_expect_empty(test, world);
			cq_close(world);
		}
	}
}

/* It is reported once; what is in the queue can be polled, and nothing more is taken. */
static void an_overrun_is_the_end(struct kunit *test)
{
	struct cq_world *world = cq_open(test);
	u64 i;

	for (i = 0; i < CQ_SIZE; i++)
		KUNIT_ASSERT_TRUE(test, cq_post(world, i, 0));
	KUNIT_EXPECT_FALSE(test, cq_post(world, i, 0));
	for (i = 0; i < CQ_SIZE; i++)
		cq_expect(test, world, i);
	KUNIT_EXPECT_FALSE(test, cq_post(world, i, 0));
	cq_expect_empty(test, world);
	flush_work(&world->cq.overrun_work);
	KUNIT_EXPECT_EQ(test, world->errors, 1);
	KUNIT_EXPECT_EQ(test, world->overruns, 1);
	KUNIT_EXPECT_EQ(test, kiw_stats_read(&world->stats, KIW_STAT_CQ_OVERRUNS), 1ULL);
	cq_close(world);
}

/* The core's own queues may have no handler for events. */
static void an_overrun_needs_no_handler(struct kunit *test)
{
	struct cq_world *world = cq_open(test);
	u64 i;

	world->cq.ib.event_handler = NULL;
	for (i = 0; i <= CQ_SIZE; i++)
		KUNIT_EXPECT_EQ(test, cq_post(world, i, 0), i < CQ_SIZE);
	flush_work(&world->cq.overrun_work);
	KUNIT_EXPECT_EQ(test, world->overruns, 1);
	cq_close(world);
}

static int cq_calls;

static void cq_count_call(struct ib_cq *cq, void *context)
{
	cq_calls++;
}

/* Posts a completion; returns how often the consumer's handler was called for it. */
static int cq_calls_for(struct cq_world *world, enum kiw_wcs status, bool is_solicited)
{
	const struct kiw_wc wc = { .status = status, .solicited = is_solicited };
	struct ib_wc polled;

	cq_calls = 0;
	kiw_cq_post(&world->cq, &wc);
	tasklet_kill(&world->cq.notify);
	kiw_poll_cq(&world->cq.ib, 1, &polled);
	return cq_calls;
}

static void arming_is_for_one_completion(struct kunit *test)
{
	struct cq_world *world = cq_open(test);
	struct ib_cq *ibcq = &world->cq.ib;

	ibcq->comp_handler = cq_count_call;
	KUNIT_EXPECT_EQ(test, cq_calls_for(world, KIW_WCS_SUCCESS, true), 0);
	KUNIT_EXPECT_EQ(test, kiw_req_notify_cq(ibcq, IB_CQ_SOLICITED), 0);
	KUNIT_EXPECT_EQ(test, cq_calls_for(world, KIW_WCS_SUCCESS, false), 0);
	KUNIT_EXPECT_EQ(test, cq_calls_for(world, KIW_WCS_SUCCESS, true), 1);
	KUNIT_EXPECT_EQ(test, cq_calls_for(world, KIW_WCS_SUCCESS, true), 0);
	KUNIT_EXPECT_EQ(test, kiw_req_notify_cq(ibcq, IB_CQ_SOLICITED), 0);
	KUNIT_EXPECT_EQ(test, cq_calls_for(world, KIW_WCS_FLUSHED, false), 1);
	KUNIT_EXPECT_EQ(test, kiw_req_notify_cq(ibcq, IB_CQ_NEXT_COMP), 0);
	KUNIT_EXPECT_EQ(test, kiw_req_notify_cq(ibcq, IB_CQ_SOLICITED), 0);
	KUNIT_EXPECT_EQ(test, cq_calls_for(world, KIW_WCS_SUCCESS, false), 1);
	KUNIT_EXPECT_EQ(test, cq_calls_for(world, KIW_WCS_SUCCESS, true), 0);
	ibcq->comp_handler = NULL;
	KUNIT_EXPECT_EQ(test, kiw_req_notify_cq(ibcq, IB_CQ_NEXT_COMP), 0);
	KUNIT_EXPECT_EQ(test, cq_calls_for(world, KIW_WCS_SUCCESS, false), 0);
	cq_close(world);
}

static void arming_tells_of_missed_completions(struct kunit *test)
{
	const enum ib_cq_notify_flags asks = IB_CQ_NEXT_COMP | IB_CQ_REPORT_MISSED_EVENTS;
	struct cq_world *world = cq_open(test);

	KUNIT_EXPECT_EQ(test, kiw_req_notify_cq(&world->cq.ib, asks), 0);
	KUNIT_ASSERT_TRUE(test, cq_post(world, 1, 0));
	KUNIT_EXPECT_EQ(test, kiw_req_notify_cq(&world->cq.ib, IB_CQ_NEXT_COMP), 0);
	KUNIT_EXPECT_EQ(test, kiw_req_notify_cq(&world->cq.ib, asks), 1);
	cq_expect(test, world, 1);
	KUNIT_EXPECT_EQ(test, kiw_req_notify_cq(&world->cq.ib, asks), 0);
	cq_close(world);
}

static struct ib_wc cq_translated(struct kunit *test, struct cq_world *world, struct kiw_wc wc)
{
	struct ib_wc to;

	memset(&to, 0xa5, sizeof(to));
	KUNIT_EXPECT_TRUE(test, kiw_cq_post(&world->cq, &wc));
	KUNIT_EXPECT_EQ(test, kiw_poll_cq(&world->cq.ib, 1, &to), 1);
	return to;
}

static void consumers_see_all_of_a_completion(struct kunit *test)
{
	struct cq_world *world = cq_open(test);
	struct kiw_wc wc = {
		.wr_id = 0x0102030405060708,
		.qp = world->qps[1],
		.byte_len = 77,
		.op = KIW_WR_RECV,
		.with_inv = true,
		.inv_stag = 0x1234,
	};
	struct ib_wc to;

	to = cq_translated(test, world, wc);
	KUNIT_EXPECT_EQ(test, to.wr_id, wc.wr_id);
	KUNIT_EXPECT_PTR_EQ(test, to.qp, wc.qp);
	KUNIT_EXPECT_EQ(test, to.byte_len, 77U);
	KUNIT_EXPECT_EQ(test, to.port_num, 1U);
	KUNIT_EXPECT_EQ(test, (int)to.status, (int)IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, (int)to.opcode, (int)IB_WC_RECV);
	KUNIT_EXPECT_EQ(test, to.wc_flags, (int)IB_WC_WITH_INVALIDATE);
	KUNIT_EXPECT_EQ(test, to.ex.invalidate_rkey, 0x1234U);

	wc.with_inv = false;
	wc.with_imm = true;
	wc.op = KIW_WR_RECV_IMM;
	wc.imm = cpu_to_be32(0x51525354);
	to = cq_translated(test, world, wc);
	KUNIT_EXPECT_EQ(test, (int)to.opcode, (int)IB_WC_RECV_RDMA_WITH_IMM);
	KUNIT_EXPECT_EQ(test, to.wc_flags, (int)IB_WC_WITH_IMM);
	KUNIT_EXPECT_EQ(test, be32_to_cpu(to.ex.imm_data), 0x51525354U);

	wc.status = KIW_WCS_LOC_LEN;
	wc.term = 0x1000205;
	to = cq_translated(test, world, wc);
	KUNIT_EXPECT_EQ(test, (int)to.status, (int)IB_WC_LOC_LEN_ERR);
	KUNIT_EXPECT_EQ(test, to.wc_flags, 0);
	KUNIT_EXPECT_EQ(test, to.vendor_err, 0x1000205U);
	cq_close(world);
}

/**
 * struct deferral - a worker that polls a queue, and what it defers
 * @test: the case
 * @world: the queue
 * @work: the worker's
 * @body: what the worker does
 * @calls: calls of what was deferred
 * @called: completed by each
 */
struct deferral {
	struct kunit *test;
	struct cq_world *world;
	struct work_struct work;
	void (*body)(struct deferral *d);
	int calls;
	struct completion called;
};

static void cq_deferred_call(void *arg)
{
	struct deferral *d = arg;

	d->calls++;
	complete(&d->called);
}

static void cq_other_call(void *arg)
{
}

/* Not a case's assertion: the worker would end in it. */
static void cq_poll_one(struct deferral *d)
{
	struct ib_wc wc;

	KUNIT_EXPECT_TRUE(d->test, cq_post(d->world, 1, 0));
	KUNIT_EXPECT_EQ(d->test, kiw_poll_cq(&d->world->cq.ib, 1, &wc), 1);
}

static int cq_defer_one(struct deferral *d)
{
	return kiw_cq_defer(&d->world->cq, cq_deferred_call, d);
}

static void cq_deferral_main(struct work_struct *work)
{
	struct deferral *d = container_of(work, struct deferral, work);

	d->body(d);
}

/* ib_core's own work item was not initialised. */
static void cq_close_worker(struct cq_world *world)
{
	world->cq.ib.comp_wq = NULL;
	cq_close(world);
}

/* Runs @body in a worker of a queue that is polled in @context. */
static void cq_in_worker(struct kunit *test, enum ib_poll_context context,
			 void (*body)(struct deferral *d), int calls)
{
	struct deferral d = { .test = test, .world = cq_open(test), .body = body };

	init_completion(&d.called);
	d.world->cq.ib.poll_ctx = context;
	d.world->cq.ib.comp_wq = system_highpri_wq;
	INIT_WORK_ONSTACK(&d.work, cq_deferral_main);
	queue_work(system_highpri_wq, &d.work);
	flush_work(&d.work);
	destroy_work_on_stack(&d.work);
	flush_work(&d.world->cq.deferred_work);
	KUNIT_EXPECT_EQ(test, d.calls, calls);
	cq_close_worker(d.world);
}

static void cq_defers_until_poll(struct deferral *d)
{
	struct ib_wc wc;

	/* Nothing has been polled yet. */
	KUNIT_EXPECT_EQ(d->test, cq_defer_one(d), -EBUSY);
	cq_poll_one(d);
	KUNIT_EXPECT_EQ(d->test, cq_defer_one(d), 1);
	KUNIT_EXPECT_EQ(d->test, cq_defer_one(d), 0);
	KUNIT_EXPECT_EQ(d->test, kiw_cq_defer(&d->world->cq, cq_other_call, d), -EBUSY);
	KUNIT_EXPECT_EQ(d->test, kiw_cq_defer(&d->world->cq, cq_deferred_call, NULL), -EBUSY);
	KUNIT_EXPECT_EQ(d->test, d->calls, 0);
	KUNIT_EXPECT_EQ(d->test, kiw_poll_cq(&d->world->cq.ib, 1, &wc), 0);
	KUNIT_EXPECT_EQ(d->test, d->calls, 1);
	/* The queue was empty. */
	KUNIT_EXPECT_EQ(d->test, cq_defer_one(d), -EBUSY);
}

static void cq_defers_until_armed(struct deferral *d)
{
	cq_poll_one(d);
	KUNIT_EXPECT_EQ(d->test, cq_defer_one(d), 1);
	KUNIT_EXPECT_EQ(d->test, kiw_req_notify_cq(&d->world->cq.ib, IB_CQ_NEXT_COMP), 0);
	KUNIT_EXPECT_EQ(d->test, d->calls, 1);
	KUNIT_EXPECT_EQ(d->test, cq_defer_one(d), -EBUSY);
}

static void cq_defers_and_sleeps(struct deferral *d)
{
	cq_poll_one(d);
	KUNIT_EXPECT_EQ(d->test, cq_defer_one(d), 1);
	KUNIT_EXPECT_NE(d->test, wait_for_completion_timeout(&d->called, 10 * HZ), 0UL);
}

static void cq_defers_and_destroys(struct deferral *d)
{
	cq_poll_one(d);
	KUNIT_EXPECT_EQ(d->test, cq_defer_one(d), 1);
	kiw_cq_run_deferred(&d->world->cq);
	KUNIT_EXPECT_EQ(d->test, d->calls, 1);
	/* Still the same handler: it may post to another QP. */
	KUNIT_EXPECT_EQ(d->test, cq_defer_one(d), 1);
}

static void cq_defers_and_ends(struct deferral *d)
{
	cq_poll_one(d);
	KUNIT_EXPECT_EQ(d->test, cq_defer_one(d), 1);
}

static void cq_cannot_defer(struct deferral *d)
{
	cq_poll_one(d);
	KUNIT_EXPECT_EQ(d->test, cq_defer_one(d), -EBUSY);
}

static void workers_defer(struct kunit *test)
{
	cq_in_worker(test, IB_POLL_WORKQUEUE, cq_defers_until_poll, 1);
	cq_in_worker(test, IB_POLL_WORKQUEUE, cq_defers_until_armed, 1);
	cq_in_worker(test, IB_POLL_WORKQUEUE, cq_defers_and_sleeps, 1);
	cq_in_worker(test, IB_POLL_WORKQUEUE, cq_defers_and_destroys, 2);
	cq_in_worker(test, IB_POLL_WORKQUEUE, cq_defers_and_ends, 1);
}

static void others_do_not_defer(struct kunit *test)
{
	struct deferral d = { .test = test, .world = cq_open(test) };

	cq_in_worker(test, IB_POLL_UNBOUND_WORKQUEUE, cq_cannot_defer, 0);
	cq_in_worker(test, IB_POLL_SOFTIRQ, cq_cannot_defer, 0);
	cq_in_worker(test, IB_POLL_DIRECT, cq_cannot_defer, 0);
	/* Not a worker, although the queue is one that a worker may poll */
	d.world->cq.ib.poll_ctx = IB_POLL_WORKQUEUE;
	d.world->cq.ib.comp_wq = system_highpri_wq;
	cq_cannot_defer(&d);
	cq_close_worker(d.world);
}

static struct kunit_case cq_cases[] = {
	KUNIT_CASE(completions_keep_their_order),
	KUNIT_CASE(completions_of_a_qp_are_dropped),
	KUNIT_CASE(dropping_makes_room),
	KUNIT_CASE(rings_of_processes_are_left_alone),
	KUNIT_CASE(resizing_keeps_completions),
	KUNIT_CASE(an_overrun_is_the_end),
	KUNIT_CASE(an_overrun_needs_no_handler),
	KUNIT_CASE(arming_is_for_one_completion),
	KUNIT_CASE(arming_tells_of_missed_completions),
	KUNIT_CASE(consumers_see_all_of_a_completion),
	KUNIT_CASE(workers_defer),
	KUNIT_CASE(others_do_not_defer),
	{}
};

static struct kunit_suite cq_suite = {
	.name = "kiwarp_cq",
	.test_cases = cq_cases,
};

kunit_test_suite(cq_suite);
