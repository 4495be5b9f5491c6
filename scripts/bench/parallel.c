// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Measures how much more several flows do at once than one of them alone. Each flow is a process
 * that is pinned to a CPU of its own and has both ends of its connection.
 *
 * Slices of time alternate between the first flow alone and all flows together, so that other
 * activity of the host affects both alike. The time for which a CPU waited for the host is not
 * counted. A flow without a slice sleeps. The processes share nothing but the devices; pipes tell
 * them when to work, and return the results.
 */
#include "bench.h"

#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#define MAX_FLOWS	16

static const struct task tasks[] = {
	{ "write", bulk_start, bulk_slice },
	{ "read", bulk_start, bulk_slice },
	{ "send", bulk_start, bulk_slice },
	{ "tcp", tcp_start, tcp_slice },
	{ "crc", crc_start, crc_slice },
};

/**
 * struct result - result of a slice
 * @ops: number of operations
 * @ticks: how long they took
 */
struct result {
	__u64 ops;
	__u64 ticks;
};

/**
 * struct worker - a flow, as the parent sees it
 * @go: pipe that tells it to work for a slice
 * @result: pipe with its results
 */
struct worker {
	int go;
	int result;
};

static const struct task *task_of(const char *op)
{
	for (size_t i = 0; i < ARRAY_SIZE(tasks); i++)
		if (!strcmp(tasks[i].op, op))
			return &tasks[i];
	fail("%s has no flows", op);
}

static void keep_on(unsigned int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	MUST(!sched_setaffinity(0, sizeof(set), &set));
}

/* The child: works for each slice. The first result is that of a warm-up and reports readiness. */
static void work(const struct options *o, __u32 number, int go, int out)
{
	const struct task *task = task_of(o->op);
	struct options mine = *o;
	struct result result;
	void *context;
	char byte;

	MUST(!prctl(PR_SET_PDEATHSIG, SIGKILL));
	arm_alarm(o);
	MUST(freopen("/dev/null", "w", stdout));
	keep_on(number);
	mine.flow = number;
	context = task->start(&mine);
	do {
		result.ops = task->slice(context, o->seconds, &result.ticks);
		MUST(write(out, &result, sizeof(result)) == sizeof(result));
	} while (read(go, &byte, 1) == 1);
	_exit(0);
}

static void hire(struct worker *worker, const struct options *o, __u32 number)
{
	int go[2], result[2];

	MUST(!pipe(go) && !pipe(result));
	fflush(stdout);
	switch (fork()) {
	case -1:
		fail("no process (%m)");
	case 0:
		close(go[1]);
		work(o, number, go[0], result[1]);
	}
	close(go[0]);
	close(result[1]);
	*worker = (struct worker) { .go = go[1], .result = result[0] };
}

static struct result result_of(const struct worker *worker)
{
	struct result result;

	if (read(worker->result, &result, sizeof(result)) != sizeof(result))
		fail("a flow has ended");
	return result;
}

/**
 * struct sum - sum over all slices with the same number of flows
 * @rate: operations per second
 * @run_us: microseconds for which the CPUs ran
 */
struct sum {
	double rate;
	double run_us;
};

/* Measures the operations per second of @count flows at once */
static void slice(const struct worker *workers, __u32 count, struct sum *sum)
{
	struct result results[MAX_FLOWS];
	double before[2 * MAX_FLOWS] = { 0 }, after[2 * MAX_FLOWS] = { 0 };

	cpus_take(before, 2 * MAX_FLOWS);
	for (__u32 i = 0; i < count; i++)
		MUST(write(workers[i].go, "", 1) == 1);
	for (__u32 i = 0; i < count; i++)
		results[i] = result_of(&workers[i]);
	cpus_take(after, 2 * MAX_FLOWS);
	for (__u32 i = 0; i < count; i++) {
		double delay = (after[2 * i + 1] - before[2 * i + 1]) / 1e6;

		sum->rate += results[i].ops / (seconds_of(results[i].ticks) - delay);
	}
	for (__u32 i = 0; i < MAX_FLOWS; i++)
		sum->run_us += after[2 * i] - before[2 * i];
}

/**
 * parallel() - measure several flows at once
 * @o: what is to be measured
 *
 * Context: user space.
 */
void parallel(const struct options *o)
{
	struct sum alone = { 0 }, together = { 0 };
	struct worker workers[MAX_FLOWS];

	MUST(o->flows <= MAX_FLOWS && o->rounds);
	for (__u32 i = 0; i < o->flows; i++) {
		hire(&workers[i], o, i);
		result_of(&workers[i]);
	}
	for (__u32 i = 0; i < o->rounds; i++) {
		slice(workers, 1, &alone);
		slice(workers, o->flows, &together);
	}
	printf("\"flows\": %u, \"size\": %u, \"slices\": %u, ", o->flows, o->size, o->rounds);
	printf("\"alone_ops_per_s\": %.1f, \"alone_run_us\": %.1f, ", alone.rate / o->rounds,
	       alone.run_us / o->rounds);
	printf("\"ops_per_s\": %.1f, \"run_us\": %.1f, ", together.rate / o->rounds,
	       together.run_us / o->rounds);
}
