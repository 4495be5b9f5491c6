// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * failing PART: tests calls under failing memory allocation. Each operation is repeated: first
 * its first allocation in the kernel fails, then its second, and so on, until a try has no
 * failing allocation. A call that fails must return ENOMEM, leave nothing behind, and succeed
 * when it is repeated. This also holds for calls that destroy objects.
 *
 * PART: "verbs" for objects of verbs that a process creates; "connect" for connections of
 * processes; "accept" for accepting one; "link" for devices; "ip" for interfaces of kiwarp_ip;
 * "kernel [CASE]" for a case of the kernel consumer (see ktest/); "work [CASE]": an allocation in
 * a work item fails during such a case; "traffic": some of all atomic allocations fail all the
 * time. KIW_STEP=N: only the first allocation and every Nth, beginning at one that KIW_SEED
 * selects; "work": steps of N * 8 bytes.
 *
 * Needs a kernel with fault injection by task (fail-nth), and the settings made by
 * 260-failing.sh.
 */
#include "failing.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>
#define FAILSLAB	"/sys/kernel/debug/failslab/"
/* Both ends have had all that the Request for a Read needs */
#define FIRST_OCTETS	8192
/* The work items of a case do not allocate so much */
#define WORK_OCTETS	262144
#define KTEST_RUN	"/sys/kernel/debug/kiwarp_ktest/run"
#define KTEST_LOG	"/sys/kernel/debug/kiwarp_ktest/log"

struct world w;

/**
 * inject() - make an allocation of this thread fail
 * @nth: it is the @nth from now on; 0: none
 *
 * Context: user space.
 */
void inject(int nth)
{
	char text[16];

	snprintf(text, sizeof(text), "%d", nth);
	MUST(pwrite(w.fail_nth, text, strlen(text), 0) == (ssize_t)strlen(text));
}

/**
 * pause_failing() - stop the failures
 *
 * Context: user space.
 * Return: after how many more allocations one would have failed.
 */
int pause_failing(void)
{
	char text[16] = "";

	MUST(pread(w.fail_nth, text, sizeof(text) - 1, 0) > 0);
	inject(0);
	return atoi(text);
}

/**
 * has_failed() - stop the failures
 *
 * Context: user space.
 * Return: true: the allocation that inject() selected has failed.
 */
bool has_failed(void)
{
	return !pause_failing();
}

static int step(void)
{
	const char *text = getenv("KIW_STEP");

	return text ? atoi(text) : 1;
}

/* The first allocations are those of the operation itself: each fails, whatever the step. */
#define EARLY	32

/* The allocation to fail after the @nth has failed, in steps of @by */
static int after(int by, int nth)
{
	const char *seed_text = getenv("KIW_SEED");
	unsigned long seed = seed_text ? strtoul(seed_text, NULL, 0) : 0;

	if (nth < EARLY)
		return nth + 1;
	return nth > EARLY ? nth + by : EARLY + 1 + (int)(seed % by);
}

static bool is_no_memory(const struct op *op, int err)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(op->others); i++)
		if (err == op->others[i])
			return true;
	return err == ENOMEM;
}

static int walk_make(const struct op *op)
{
	int nth, err;
	bool hit;

	for (nth = 1; nth < NTH_MAX; nth = after(op->has_few ? 1 : step(), nth)) {
		errno = 0;
		inject(nth);
		err = op->make();
		hit = has_failed();
		if (err && (!hit || !is_no_memory(op, err)))
			fail("%s, allocation %d%s: %s", op->name, nth, hit ? "" : " did not fail",
			     strerror(err));
		if (!err && op->unmake())
			fail("%s, allocation %d: cannot be undone", op->name, nth);
		if (!hit)
			return nth - 1;
	}
	fail("%s: no end of allocations", op->name);
}

static int walk_unmake(const struct op *op)
{
	int nth, err;
	bool hit;

	for (nth = 1; nth < NTH_MAX; nth = after(op->has_few ? 1 : step(), nth)) {
		err = op->make();
		if (err)
			fail("%s: %s", op->name, strerror(err));
		inject(nth);
		err = op->unmake();
		hit = has_failed();
		if (err && (!hit || err != ENOMEM))
			fail("end of %s, allocation %d: %s", op->name, nth, strerror(err));
		if (err && op->unmake())
			fail("end of %s, allocation %d: not the second time", op->name, nth);
		if (!hit)
			return nth - 1;
	}
	fail("end of %s: no end of allocations", op->name);
}

/**
 * walk() - let each allocation of an operation fail once, and each of its reverse
 * @op: the operation
 *
 * Context: user space.
 */
void walk(const struct op *op)
{
	char before[1024], after[1024];
	int make, unmake;

	count_objects(before, sizeof(before));
	make = walk_make(op);
	unmake = walk_unmake(op);
	count_objects(after, sizeof(after));
	if (strcmp(before, after))
		fail("%s: there was\n%sand is\n%s", op->name, before, after);
	printf("%s: %d allocations, its end: %d\n", op->name, make, unmake);
}

static const char *ktest_case = "once";

static int run_ktest(void)
{
	char text[128];
	int fd = open(KTEST_RUN, O_WRONLY);
	int err = 0;

	if (fd < 0)
		return errno;
	snprintf(text, sizeof(text), "%d %d %s", w.sides[0].ns, w.sides[1].ns, ktest_case);
	if (write(fd, text, strlen(text)) < 0)
		err = errno;
	close(fd);
	return err;
}

/* Checks that the case has failed for lack of memory, in any wording */
static void check_log(int nth, bool hit)
{
	static const struct op op = { .others = { ENFILE, EADDRINUSE, ENOBUFS } };
	FILE *f = fopen(KTEST_LOG, "r");
	const char *found = NULL;
	char line[256] = "";

	MUST(f);
	if (fgets(line, sizeof(line), f))
		found = strrchr(line, '(');
	if (!hit || !found || !is_no_memory(&op, -atoi(found + 1)))
		fail("%s, allocation %d%s: %s", ktest_case, nth, hit ? "" : " did not fail", line);
	fclose(f);
}

static void kernel(void)
{
	int nth, err;
	bool hit;

	for (nth = 1; nth < NTH_MAX; nth = after(step(), nth)) {
		inject(nth);
		err = run_ktest();
		hit = has_failed();
		if (err == EIO)
			check_log(nth, hit);
		else if (err && (!hit || err != ENOMEM))
			fail("%s, allocation %d: %s", ktest_case, nth, strerror(err));
		if (!hit)
			break;
	}
	printf("%s: %d allocations\n", ktest_case, nth - 1);
}

/* Sets whether allocations of workers may fail: all workers, as any may run the work items. */
static void workers_may_fail(const char *value)
{
	char path[300], comm[16];
	struct dirent *entry;
	DIR *dir = opendir("/proc");
	FILE *f;

	MUST(dir);
	while ((entry = readdir(dir))) {
		snprintf(path, sizeof(path), "/proc/%s/comm", entry->d_name);
		f = atoi(entry->d_name) ? fopen(path, "r") : NULL;
		if (!f)
			continue;
		if (fgets(comm, sizeof(comm), f) && !strncmp(comm, "kworker", 7)) {
			snprintf(path, sizeof(path), "/proc/%s/make-it-fail", entry->d_name);
			set_file_if_there(path, value);
		}
		fclose(f);
	}
	closedir(dir);
}

/* Has the selected allocation failed? */
static bool worker_has_failed(void)
{
	FILE *f = fopen(FAILSLAB "times", "r");
	int left;

	MUST(f && fscanf(f, "%d", &left) == 1);
	fclose(f);
	return !left;
}

/* Runs a case; the allocation with which workers exceed @octets bytes in total fails */
static int run_failing_work(int octets, bool *hit)
{
	char text[16];
	int err;

	snprintf(text, sizeof(text), "%d", octets);
	workers_may_fail("1");
	set_file(FAILSLAB "space", text);
	set_file(FAILSLAB "times", "1");
	set_file(FAILSLAB "probability", "100");
	err = run_ktest();
	set_file(FAILSLAB "probability", "0");
	*hit = worker_has_failed();
	return err;
}

/*
 * No system call fails, so nobody is told that memory is short. A case may fail in any way, but it
 * must end, and it must pass when there is memory again.
 */
static void work_items(void)
{
	int octets, err, runs = 0, bad = 0;
	bool hit = true;

	set_file(FAILSLAB "task-filter", "Y");
	for (octets = 0; hit && octets < WORK_OCTETS; octets += 8 * step()) {
		err = run_failing_work(octets, &hit);
		if (err && (!hit || err != EIO))
			fail("%s, memory short after %d octets%s: %s", ktest_case, octets,
			     hit ? "" : ", and it was not", strerror(err));
		runs += hit;
		bad += !!err;
	}
	workers_may_fail("0");
	set_file(FAILSLAB "task-filter", "N");
	set_file(FAILSLAB "times", "-1");
	if (!runs || hit)
		fail("%s: %s", ktest_case, runs ? "no end of allocations" : "no allocation");
	err = run_ktest();
	if (err)
		fail("%s, with memory again: %s", ktest_case, strerror(err));
	printf("%s: memory was short in work items of %d runs, %d failed\n", ktest_case, runs, bad);
}

/* Makes a percentage of all atomic allocations fail; "0": none any more */
static void fail_often(const char *percent)
{
	set_file(FAILSLAB "probability", percent);
	set_file("/sys/kernel/debug/fail_page_alloc/probability", percent);
}

static void transfer(const struct end *end, struct ibv_cq *cq, const struct ibv_mr *from,
		     const struct ibv_mr *to, enum ibv_wr_opcode opcode)
{
	struct ibv_sge sge = { (unsigned long)from->addr, SIZE, from->lkey };
	struct ibv_send_wr *bad, wr = {
		.opcode = opcode, .send_flags = IBV_SEND_SIGNALED, .sg_list = &sge, .num_sge = 1,
		.wr.rdma = { (unsigned long)to->addr, to->rkey },
	};
	struct ibv_wc wc;

	MUST(!ibv_post_send(end->id->qp, &wr, &bad));
	complete(cq, &wc);
	if (wc.status != IBV_WC_SUCCESS)
		fail("without memory: status %d", wc.status);
}

/*
 * The first Read of a connection allocates rings at both ends. Whichever of these allocations
 * fails, selected by the number of bytes allocated before, it is retried later.
 */
static void first_reads(const struct ibv_mr *from, const struct ibv_mr *to)
{
	char text[12];
	int octets;

	for (octets = 0; octets <= FIRST_OCTETS; octets += 256) {
		MUST(conn_open(w.ends, &w.sides[0], &w.sides[1], w.queues));
		memset(to->addr, 0, SIZE);
		snprintf(text, sizeof(text), "%d", octets);
		set_file(FAILSLAB "space", text);
		set_file(FAILSLAB "times", "1");
		set_file(FAILSLAB "probability", "100");
		transfer(&w.ends[0], w.queues[0].scq, to, from, IBV_WR_RDMA_READ);
		set_file(FAILSLAB "probability", "0");
		if (memcmp(from->addr, to->addr, SIZE))
			fail("no memory after %d octets: data is wrong", octets);
		end_close(&w.ends[0]);
		end_close(&w.ends[1]);
	}
	set_file(FAILSLAB "times", "-1");
}

/* An open connection keeps working, and all data is correct: TCP retries what it could not send */
static void traffic(void)
{
	struct ibv_mr *mr[2], *back;
	__u8 *sink = pages(SIZE);
	int i, k;

	for (i = 0; i < 2; i++)
		w.queues[i] = queues_of(&w.sides[i], 16);
	mr[0] = reg(w.sides[0].pd, w.mem, SIZE, ALL);
	mr[1] = reg(w.sides[1].pd, sink, SIZE, ALL);
	back = reg(w.sides[0].pd, pages(SIZE), SIZE, ALL);
	memset(sink, 1, SIZE);
	first_reads(mr[1], back);
	MUST(conn_open(w.ends, &w.sides[0], &w.sides[1], w.queues));
	for (k = 0; k < 8; k++) {
		for (i = 0; i < SIZE; i++)
			w.mem[i] = pick(256);
		fail_often("5");
		transfer(&w.ends[0], w.queues[0].scq, mr[0], mr[1], IBV_WR_RDMA_WRITE);
		transfer(&w.ends[0], w.queues[0].scq, back, mr[1], IBV_WR_RDMA_READ);
		fail_often("0");
		if (memcmp(w.mem, sink, SIZE) || memcmp(w.mem, back->addr, SIZE))
			fail("round %d: data is wrong", k);
	}
	printf("%d rounds\n", k);
}

/**
 * main() - see the head of the file
 * @argc: number of arguments
 * @argv: arguments
 *
 * Context: user space.
 * Return: 0, or 1 when something was wrong.
 */
int main(int argc, char **argv)
{
	static const struct case_of cases[] = {
		{ "verbs", verbs }, { "connect", connections }, { "accept", accepts },
		{ "link", links }, { "ip", ip_links }, { "kernel", kernel },
		{ "work", work_items }, { "traffic", traffic },
	};

	MUST(argc > 1);
	setlinebuf(stdout);
	w.fail_nth = open("/proc/thread-self/fail-nth", O_RDWR);
	MUST(w.fail_nth >= 0);
	w.mem = pages(SIZE);
	memset(w.mem, 1, SIZE);
	side_open(&w.sides[0], "a", "10.77.0.1", PORT);
	side_open(&w.sides[1], "b", "10.77.0.2", PORT);
	if (argc > 2)
		ktest_case = argv[2];
	run_case(cases, ARRAY_SIZE(cases), argv[1]);
	return 0;
}
