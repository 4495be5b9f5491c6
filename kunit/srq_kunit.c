// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Shared receive queues in the kernel format, across the wrap of their positions: the limit and its
 * event, and other sizes.
 */
#include <linux/types.h>

/* The module has no trace events */
#define KIW_TRACE_H

static inline void trace_kiw_srq_limit(const char *dev, u32 id)
{
}

#include "queue/srq.c"

#include "util.h"

#define SRQ_SIZE	8
/* Positions wrap in the middle of the ring. */
#define SRQ_FIRST	(U32_MAX - SRQ_SIZE / 2 + 1)

/**
 * struct srq_world - a queue and what it needs
 * @srq: the queue
 * @device: its device
 * @events: number of limit events
 */
struct srq_world {
	struct kiw_srq srq;
	struct ib_device *device;
	int events;
};

static void srq_count_event(struct ib_event *event, void *context)
{
	struct srq_world *world = context;

	if (event->event == IB_EVENT_SRQ_LIMIT_REACHED && event->element.srq == &world->srq.ib)
		world->events++;
}

static struct srq_world *srq_open(struct kunit *test)
{
	struct srq_world *world = kunit_kzalloc(test, sizeof(*world), GFP_KERNEL);
	void *ring = kiw_rq_kernel_ring(SRQ_SIZE);

	KUNIT_ASSERT_NOT_NULL(test, world);
	KUNIT_ASSERT_NOT_NULL(test, ring);
	world->device = kunit_kzalloc(test, sizeof(*world->device), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, world->device);
	world->srq.ib.device = world->device;
	world->srq.ib.event_handler = srq_count_event;
	world->srq.ib.srq_context = world;
	kiw_srq_init(&world->srq, &kiw_rq_kernel_ops, ring, SRQ_SIZE, 1, NULL);
	world->srq.rq.put = SRQ_FIRST;
	world->srq.rq.get = SRQ_FIRST;
	return world;
}

static void srq_close(struct srq_world *world)
{
	kiw_srq_uninit(&world->srq);
	kvfree(world->srq.rq.ring);
}

static void srq_post(struct kunit *test, struct srq_world *world, u64 first, u32 count)
{
	struct ib_recv_wr wr = { .wr_id = first };

	for (; count; count--, wr.wr_id++)
		KUNIT_EXPECT_EQ(test, kiw_rq_post(&world->srq.rq, &wr), 0);
}

static void srq_fetch(struct kunit *test, struct srq_world *world, u64 wr_id)
{
	struct kiw_rwqe wqe;

	KUNIT_ASSERT_EQ(test, kiw_srq_fetch(&world->srq, &wqe), 1);
	KUNIT_EXPECT_EQ(test, wqe.wr_id, wr_id);
}

static int srq_events(struct srq_world *world)
{
	flush_work(&world->srq.event_work);
	return world->events;
}

/* One event, by the message that leaves fewer receives than the limit; then it is disarmed. */
static void the_limit_raises_one_event(struct kunit *test)
{
	u32 limit, left;

	for (limit = 1; limit <= SRQ_SIZE; limit++) {
		struct srq_world *world = srq_open(test);

		srq_post(test, world, 0, SRQ_SIZE);
		KUNIT_EXPECT_EQ(test, kiw_srq_set_limit(&world->srq, limit), 0);
		KUNIT_EXPECT_EQ(test, srq_events(world), 0);
		for (left = SRQ_SIZE; left--;) {
			srq_fetch(test, world, SRQ_SIZE - 1 - left);
			KUNIT_EXPECT_EQ(test, srq_events(world), left < limit);
			KUNIT_EXPECT_EQ(test, world->srq.limit, left < limit ? 0 : limit);
		}
		srq_close(world);
	}
}

static void an_empty_queue_raises_the_event(struct kunit *test)
{
	struct srq_world *world = srq_open(test);
	struct kiw_rwqe wqe;

	KUNIT_EXPECT_EQ(test, kiw_srq_fetch(&world->srq, &wqe), 0);
	KUNIT_EXPECT_EQ(test, srq_events(world), 0);
	KUNIT_EXPECT_EQ(test, kiw_srq_set_limit(&world->srq, 1), 0);
	KUNIT_EXPECT_EQ(test, srq_events(world), 0);
	KUNIT_EXPECT_EQ(test, kiw_srq_fetch(&world->srq, &wqe), 0);
	KUNIT_EXPECT_EQ(test, srq_events(world), 1);
	srq_close(world);
}

static void the_limit_has_limits(struct kunit *test)
{
	struct srq_world *world = srq_open(test);

	KUNIT_EXPECT_EQ(test, kiw_srq_set_limit(&world->srq, 3), 0);
	KUNIT_EXPECT_EQ(test, kiw_srq_set_limit(&world->srq, SRQ_SIZE + 1), -EINVAL);
	KUNIT_EXPECT_EQ(test, world->srq.limit, 3U);
	KUNIT_EXPECT_EQ(test, kiw_srq_set_limit(&world->srq, 0), 0);
	srq_post(test, world, 0, 1);
	srq_fetch(test, world, 0);
	KUNIT_EXPECT_EQ(test, srq_events(world), 0);
	srq_close(world);
}

static void the_limit_needs_no_handler(struct kunit *test)
{
	struct srq_world *world = srq_open(test);

	world->srq.ib.event_handler = NULL;
	srq_post(test, world, 0, 1);
	KUNIT_EXPECT_EQ(test, kiw_srq_set_limit(&world->srq, 1), 0);
	srq_fetch(test, world, 0);
	KUNIT_EXPECT_EQ(test, srq_events(world), 0);
	KUNIT_EXPECT_EQ(test, world->srq.limit, 0U);
	srq_close(world);
}

static void resizing_keeps_receives(struct kunit *test)
{
	static const u32 sizes[] = { SRQ_SIZE / 2, SRQ_SIZE, 4 * SRQ_SIZE };
	u32 count, i, j;

	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		for (count = 0; count <= SRQ_SIZE; count++) {
			struct srq_world *world = srq_open(test);
			bool fits = count <= sizes[i];

			srq_post(test, world, 0, count);
			KUNIT_EXPECT_EQ(test, kiw_srq_set_limit(&world->srq, 2), 0);
			KUNIT_EXPECT_EQ(test, kiw_srq_resize(&world->srq, sizes[i]),
					fits ? 0 : -EBUSY);
			KUNIT_EXPECT_EQ(test, world->srq.rq.size, fits ? sizes[i] : SRQ_SIZE);
			KUNIT_EXPECT_EQ(test, world->srq.limit, 2U);
			srq_post(test, world, count, world->srq.rq.size - count);
			for (j = 0; j < world->srq.rq.size; j++)
				srq_fetch(test, world, j);
			KUNIT_EXPECT_EQ(test, srq_events(world), 1);
			srq_close(world);
		}
	}
}

static void a_full_queue_takes_no_more(struct kunit *test)
{
	struct srq_world *world = srq_open(test);
	struct ib_recv_wr wr = { .wr_id = 99 };

	srq_post(test, world, 0, SRQ_SIZE);
	KUNIT_EXPECT_EQ(test, kiw_rq_post(&world->srq.rq, &wr), -ENOMEM);
	srq_fetch(test, world, 0);
	KUNIT_EXPECT_EQ(test, kiw_rq_post(&world->srq.rq, &wr), 0);
	srq_close(world);
}

static struct kunit_case srq_cases[] = {
	KUNIT_CASE(the_limit_raises_one_event),
	KUNIT_CASE(an_empty_queue_raises_the_event),
	KUNIT_CASE(the_limit_has_limits),
	KUNIT_CASE(the_limit_needs_no_handler),
	KUNIT_CASE(resizing_keeps_receives),
	KUNIT_CASE(a_full_queue_takes_no_more),
	{}
};

static struct kunit_suite srq_suite = {
	.name = "kiwarp_srq",
	.test_cases = srq_cases,
};

kunit_test_suite(srq_suite);
