// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Sends one small message at a time back and forth: with Sends, sleeping until a completion reports
 * the arrival, or with Writes, polling memory.
 */
#include "flow.h"

#include <sched.h>

#define MAX_TRIPS	100000
#define WARM_TRIPS	50

/**
 * struct game - messages that go back and forth
 * @set: one connection
 * @op: IBV_WR_SEND or IBV_WR_RDMA_WRITE
 * @posted: messages posted by each end
 * @done: how many of these have completed
 */
struct game {
	struct set set;
	enum ibv_wr_opcode op;
	__u32 posted[2];
	__u32 done[2];
};

static void offer(struct game *g, int end)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)g->set.data[end], .length = g->set.size,
		.lkey = g->set.mr[end]->lkey,
	};
	struct ibv_recv_wr *bad, wr = { .wr_id = 1, .sg_list = &sge, .num_sge = 1 };

	MUST(!ibv_post_recv(g->set.flows->ends[end].id->qp, &wr, &bad));
}

/* Takes the completions of an end; returns whether a message has arrived */
static bool poll_end(struct game *g, int end)
{
	bool has_arrived = false;
	struct ibv_wc wc;
	int n;

	for (;;) {
		n = ibv_poll_cq(g->set.cq[end], 1, &wc);
		MUST(n >= 0);
		if (!n)
			return has_arrived;
		if (wc.status)
			fail("completion with status %d", wc.status);
		if (wc.wr_id)
			has_arrived = true;
		else
			g->done[end]++;
	}
}

static void serve(struct game *g, int end, unsigned char mark)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)g->set.data[end] + PAGE, .length = g->set.size,
		.lkey = g->set.mr[end]->lkey,
	};
	struct ibv_send_wr *bad, wr = {
		.sg_list = &sge, .num_sge = 1, .opcode = g->op, .send_flags = IBV_SEND_SIGNALED,
		.wr.rdma.remote_addr = (uintptr_t)g->set.data[!end],
		.wr.rdma.rkey = g->set.mr[!end]->rkey,
	};

	while (g->posted[end] - g->done[end] >= g->set.depth) {
		poll_end(g, end);
		rest();
	}
	memset(g->set.data[end] + PAGE, mark, g->set.size);
	MUST(!ibv_post_send(g->set.flows->ends[end].id->qp, &wr, &bad));
	g->posted[end]++;
}

static void await_send(struct game *g, int end)
{
	while (!poll_end(g, end)) {
		set_arm(&g->set, end);
		if (poll_end(g, end))
			break;
		set_sleep(&g->set, end);
	}
	offer(g, end);
}

static void await_write(struct game *g, int end, unsigned char mark)
{
	unsigned char *last = g->set.data[end] + g->set.size - 1;

	while (__atomic_load_n(last, __ATOMIC_ACQUIRE) != mark)
		sched_yield();
}

static __u64 trip(struct game *g, __u32 number)
{
	__u64 start = ticks_now();

	for (int end = 0; end < 2; end++) {
		serve(g, end, number + 1);
		if (g->op == IBV_WR_SEND)
			await_send(g, !end);
		else
			await_write(g, !end, number + 1);
	}
	return ticks_now() - start;
}

/**
 * pingpong() - measure the latency of small messages
 * @o: what is to be measured
 *
 * Context: user space.
 */
void pingpong(const struct options *o)
{
	struct game g = { .op = strcmp(o->op, "send-lat") ? IBV_WR_RDMA_WRITE : IBV_WR_SEND };
	__u64 *trips = pages(MAX_TRIPS * sizeof(*trips));
	struct stamp from, to;
	__u64 begin;
	__u32 n;

	MUST(o->size <= PAGE);
	set_open_both(&g.set, o);
	for (int i = 0; g.op == IBV_WR_SEND && i < 4; i++)
		offer(&g, i % 2);
	for (n = 0; n < WARM_TRIPS; n++)
		trip(&g, n);
	stamp_take(&from);
	begin = ticks_now();
	for (n = 0; n < MAX_TRIPS && seconds_of(ticks_now() - begin) < o->seconds; n++)
		trips[n] = trip(&g, WARM_TRIPS + n);
	stamp_take(&to);
	stamp_print(&from, &to, 2ULL * n, 2ULL * n * o->size);
	print_latency(trips, n);
	printf("\"checked\": %u, \"bad\": %u, ", 1,
	       memcmp(g.set.data[0], g.set.data[1], o->size) ? 1 : 0);
	set_close(&g.set);
}
