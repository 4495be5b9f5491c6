// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Many messages of one size, over one or many connections. Measures throughput, cost, memory per
 * connection and fairness between connections, and checks that the data is correct.
 *
 * Each end has one completion queue for all connections; the thread sleeps while both are empty.
 */
#include "flow.h"

#include <unistd.h>

#define MAX_POLL	32
#define FAIR_SECONDS	0.002	/* per connection: many times what each posts at once */

/**
 * struct bench - a measurement in progress
 * @o: what is to be measured
 * @set: the connections
 * @opcode: of the work requests
 * @target: operations to do per connection, 0 when time decides
 * @done: operations that have completed, of all connections
 * @arrived: receives that have completed, of all connections
 */
struct bench {
	const struct options *o;
	struct set set;
	enum ibv_wr_opcode opcode;
	__u64 target;
	__u64 done;
	__u64 arrived;
};

static enum ibv_wr_opcode opcode_of(const char *op)
{
	if (!strcmp(op, "read"))
		return IBV_WR_RDMA_READ;
	return strcmp(op, "send") ? IBV_WR_RDMA_WRITE : IBV_WR_SEND;
}

static bool may_post(const struct bench *b, const struct flow *f)
{
	if (b->target && f->posted >= b->target)
		return false;
	if (f->posted - f->done + b->o->batch > b->o->depth)
		return false;
	return b->opcode != IBV_WR_SEND || f->posted + b->o->batch <= f->offered;
}

static void fill(struct bench *b, struct flow *f)
{
	while (may_post(b, f))
		flow_post(&b->set, f, b->opcode, b->o->batch);
}

static void take(struct bench *b, int end, const struct ibv_wc *wc)
{
	struct flow *f = &b->set.flows[wc->wr_id];

	if (wc->status)
		fail("completion with status %d (%s)", wc->status, ibv_wc_status_str(wc->status));
	if (end) {
		b->arrived++;
		f->arrived++;
		flow_offer(&b->set, f);
	} else {
		b->done += b->o->batch;
		f->done += b->o->batch;
	}
	fill(b, f);
}

static unsigned int harvest(struct bench *b)
{
	struct ibv_wc wc[MAX_POLL];
	unsigned int sum = 0;

	for (int end = 0; end < 2; end++) {
		int n;

		if (end && b->opcode != IBV_WR_SEND)
			break;
		n = ibv_poll_cq(b->set.cq[end], MAX_POLL, wc);
		MUST(n >= 0);
		for (int i = 0; i < n; i++)
			take(b, end, &wc[i]);
		sum += n;
	}
	return sum;
}

static bool is_over(const struct bench *b, __u64 begin, double seconds)
{
	if (!b->target)
		return seconds_of(ticks_now() - begin) >= seconds;
	return b->done >= b->target * b->o->conns &&
	       (b->opcode != IBV_WR_SEND || b->arrived >= b->target * b->o->conns);
}

/* The end for whose completions to wait: those that allow the sender to continue */
static int awaited(const struct bench *b)
{
	__u64 posted = 0;

	if (b->opcode != IBV_WR_SEND)
		return 0;
	for (__u32 i = 0; i < b->o->conns; i++)
		posted += b->set.flows[i].posted;
	return b->arrived < posted;
}

/* Runs until @target operations per connection are done, or for @seconds */
static void drive(struct bench *b, double seconds)
{
	__u64 begin = ticks_now();
	int end;

	for (__u32 i = 0; i < b->o->conns; i++)
		fill(b, &b->set.flows[i]);
	while (!is_over(b, begin, seconds)) {
		if (harvest(b))
			continue;
		end = awaited(b);
		set_arm(&b->set, end);
		if (!harvest(b))
			set_sleep(&b->set, end);
	}
}

/* Waits until everything in flight has arrived */
static void drain(struct bench *b)
{
	__u64 posted = 0;

	for (__u32 i = 0; i < b->o->conns; i++)
		posted += b->set.flows[i].posted;
	b->target = 1;
	while (b->done < posted || (b->opcode == IBV_WR_SEND && b->arrived < posted)) {
		if (!harvest(b))
			rest();
	}
}

static void restart(struct bench *b)
{
	for (__u32 i = 0; i < b->o->conns; i++) {
		struct flow *f = &b->set.flows[i];

		f->offered -= f->posted;
		f->posted = 0;
		f->done = 0;
		f->arrived = 0;
	}
	b->done = 0;
	b->arrived = 0;
}

/* Estimates how many operations per connection take the requested time */
static __u64 estimate(struct bench *b)
{
	double warm = b->o->seconds / 4;
	__u64 begin, each;

	drive(b, warm);
	drain(b);
	restart(b);
	b->target = 0;
	begin = ticks_now();
	drive(b, warm);
	each = b->done / b->o->conns;
	drain(b);
	return each * (b->o->seconds / seconds_of(ticks_now() - begin));
}

/* Measures a known number of operations */
static void timed(struct bench *b, struct stamp *from, struct stamp *to)
{
	__u64 each = b->o->ops;

	if (each) {
		b->target = each;
		drive(b, 0);
	} else {
		each = estimate(b);
	}
	restart(b);
	each -= each % b->o->batch;
	b->target = each > b->o->depth ? each : b->o->depth;
	stamp_take(from);
	drive(b, 0);
	if (b->o->conns == 1)
		set_flush(&b->set);
	stamp_take(to);
}

/* Measures fairness: how many operations each connection does in the same time */
static void fairness(struct bench *b)
{
	__u64 min = ~0ULL, max = 0;

	restart(b);
	b->target = 0;
	drive(b, b->o->seconds + b->o->conns * FAIR_SECONDS);
	for (__u32 i = 0; i < b->o->conns; i++) {
		__u64 done = b->set.flows[i].done;

		min = done < min ? done : min;
		max = done > max ? done : max;
	}
	drain(b);
	printf("\"min_ops\": %llu, \"max_ops\": %llu, ", min, max);
}

/* Checks all of a region, which had other contents before */
static void check(struct bench *b)
{
	__u64 slots = b->set.region / b->o->size;
	size_t len = slots * b->o->size;
	unsigned char *from, *to;

	restart(b);
	from = b->set.data[b->opcode == IBV_WR_RDMA_READ];
	to = b->set.data[b->opcode != IBV_WR_RDMA_READ];
	for (size_t i = 0; i < len; i++) {
		from[i] = i * 31 + (i >> 8) * 7 + 1;
		to[i] = ~from[i];
	}
	b->target = (slots + b->o->conns - 1) / b->o->conns;
	b->target += b->o->batch - 1;
	b->target -= b->target % b->o->batch;
	drive(b, 0);
	set_flush(&b->set);
	printf("\"checked\": %llu, \"bad\": %u, ", slots, memcmp(from, to, len) ? 1 : 0);
}

static void start(struct bench *b)
{
	set_open(&b->set, b->o);
	if (b->opcode == IBV_WR_SEND)
		for (__u32 i = 0; i < b->o->conns; i++)
			flow_offer(&b->set, &b->set.flows[i]);
}

/**
 * bulk_start() - make connections for bulk_slice()
 * @o: what is to be measured
 *
 * Context: user space.
 * Return: the connections.
 */
void *bulk_start(const struct options *o)
{
	struct bench *b = calloc(1, sizeof(*b));

	MUST(b);
	b->o = o;
	b->opcode = opcode_of(o->op);
	start(b);
	return b;
}

/**
 * bulk_slice() - send messages of one size and kind for some time
 * @context: from bulk_start()
 * @seconds: how long
 * @ticks: set to how long it took
 *
 * Context: user space.
 * Return: number of messages that completed.
 */
__u64 bulk_slice(void *context, double seconds, __u64 *ticks)
{
	struct bench *b = context;
	__u64 begin = ticks_now();
	__u64 done;

	restart(b);
	b->target = 0;
	drive(b, seconds);
	*ticks = ticks_now() - begin;
	done = b->done;
	drain(b);
	return done;
}

/**
 * bulk() - measure messages of one size and kind
 * @o: what is to be measured
 *
 * Context: user space.
 */
void bulk(const struct options *o)
{
	struct bench b = { .o = o, .opcode = opcode_of(o->op) };
	struct stamp from, to;

	start(&b);
	timed(&b, &from, &to);
	stamp_print(&from, &to, b.target * o->conns, b.target * o->conns * o->size);
	if (o->conns > 1)
		fairness(&b);
	if (!o->ops)
		check(&b);
	set_close(&b.set);
}
