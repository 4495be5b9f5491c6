// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Posts RDMA Writes one at a time and checks that they arrive.
 *
 *   doorbell stream N	many in flight, completions are reaped after all are posted: each of
 *			N rounds completes, and all data arrives
 *   doorbell alone N	each Write is posted when the one before has completed
 *   doorbell lazy N	completions are not reaped; each Write is posted when the data of the
 *			one before has arrived
 *
 * The caller checks the driver's counters.
 */
#include "common.h"

#define DEPTH	16
#define LAZY	4096	/* completions that may stay where they are */

/**
 * struct writer - a connection used for Writes
 * @sides: the hosts
 * @queues: queues of each end
 * @ends: the ends of the connection
 * @from: source, one number per slot
 * @to: sink
 * @mr: regions of both
 */
struct writer {
	struct side sides[2];
	struct queues queues[2];
	struct end ends[2];
	__u32 *from;
	__u32 *to;
	struct ibv_mr *mr[2];
};

static void writer_open(struct writer *w)
{
	side_open(&w->sides[0], "a", "10.77.0.1", 7807);
	side_open(&w->sides[1], "b", "10.77.0.2", 7807);
	for (int i = 0; i < 2; i++)
		w->queues[i] = queues_of(&w->sides[i], i ? DEPTH : LAZY);
	MUST(conn_open(w->ends, &w->sides[0], &w->sides[1], w->queues));
	w->from = pages(PAGE);
	w->to = pages(PAGE);
	w->mr[0] = reg(w->sides[0].pd, w->from, PAGE, IBV_ACCESS_LOCAL_WRITE);
	w->mr[1] = reg(w->sides[1].pd, w->to, PAGE,
		       IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
}

/* The number @value to place @slot */
static void post(struct writer *w, __u32 slot, __u32 value)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)&w->from[slot], .length = sizeof(value),
		.lkey = w->mr[0]->lkey,
	};
	struct ibv_send_wr *bad, wr = {
		.wr_id = value, .sg_list = &sge, .num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED,
		.wr.rdma.remote_addr = (uintptr_t)&w->to[slot], .wr.rdma.rkey = w->mr[1]->rkey,
	};

	w->from[slot] = value;
	MUST(!ibv_post_send(w->ends[0].id->qp, &wr, &bad));
}

/* The Write of @value has completed, as the next one. */
static void take(struct writer *w, __u32 value)
{
	struct ibv_wc wc;

	complete(w->queues[0].scq, &wc);
	MUST(wc.status == IBV_WC_SUCCESS && wc.wr_id == value);
}

/* Waits for data that TCP has taken. Does not sleep, so that the next Write is posted at once. */
static void arrives(const struct writer *w, __u32 slot, __u32 value)
{
	double end = now() + patience();

	while (__atomic_load_n(&w->to[slot], __ATOMIC_ACQUIRE) != value)
		MUST(now() < end);
}

static void stream(struct writer *w, __u32 rounds)
{
	for (__u32 value = 1; value <= rounds * DEPTH; value += DEPTH) {
		for (__u32 i = 0; i < DEPTH; i++)
			post(w, i, value + i);
		for (__u32 i = 0; i < DEPTH; i++)
			take(w, value + i);
		for (__u32 i = 0; i < DEPTH; i++)
			arrives(w, i, value + i);
	}
}

static void alone(struct writer *w, __u32 rounds)
{
	for (__u32 value = 1; value <= rounds; value++) {
		post(w, 0, value);
		take(w, value);
	}
}

static void lazy(struct writer *w, __u32 rounds)
{
	MUST(rounds <= LAZY);
	for (__u32 value = 1; value <= rounds; value++) {
		post(w, 0, value);
		arrives(w, 0, value);
	}
	for (__u32 value = 1; value <= rounds; value++)
		take(w, value);
}

static const struct {
	const char *name;
	void (*run)(struct writer *w, __u32 rounds);
} ways[] = {
	{ "stream", stream },
	{ "alone", alone },
	{ "lazy", lazy },
};

/**
 * main() - see the head of the file
 * @argc: 3
 * @argv: the way and the number of rounds
 *
 * Context: user space.
 * Return: 0, or 1 when something was wrong.
 */
int main(int argc, char **argv)
{
	struct writer w = {};

	MUST(argc == 3);
	writer_open(&w);
	for (unsigned int i = 0; i < ARRAY_SIZE(ways); i++) {
		if (strcmp(ways[i].name, argv[1]))
			continue;
		ways[i].run(&w, strtoul(argv[2], NULL, 0));
		end_close(&w.ends[0]);
		end_close(&w.ends[1]);
		return 0;
	}
	fail("no way called %s", argv[1]);
}
