// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * sweep STEP [SECONDS] | sweep product SECONDS | sweep long SECONDS [PORT]: RDMA Writes, Reads and
 * Sends of every size from 0 to 4100 bytes and at every page offset of source and sink, with 1 to 6
 * SGEs, inline or not, in both directions. After each operation the memory around the sink is
 * compared, too: nothing but the sink may have changed. The source of a Write or a Send is
 * overwritten as soon as the work request has completed.
 *
 * STEP: only every STEPth size and offset. SECONDS: continue with random ones for this time.
 * KIW_SEED is the seed. product: every size at every offset of the source and at every offset of
 * the sink, as many sizes as possible in SECONDS. long: random sizes up to 64 KiB for this time,
 * half of them of 32 KiB and more, the least that is lent with zero_copy=on; PORT (7801) lets
 * several programs run at a time.
 *
 * Operations are posted in batches, each operation with its own source and sink. The last one of
 * a batch is an empty Read: when it completes, all Writes before it are placed.
 */
#include "common.h"

#define SIZE_MAX_	4100
#define LONG_MIN	(8 * PAGE)
#define LONG_MAX	(16 * PAGE)
/* A source or sink: offset, data, gaps, and room */
#define LANE		(4 * PAGE)
#define LANE_LONG	(LONG_MAX + LANE)
#define LANES		8
#define GAP		24

enum kind { WRITE, READ, SEND, KINDS };

static const char * const kind_names[KINDS] = { "write", "read", "send" };

/**
 * struct op - one operation
 * @kind: kind of operation
 * @size: length in bytes
 * @from: page offset of the source
 * @to: page offset of the sink
 * @is_inline: the data is in the work request
 * @local: SGEs of the work request
 * @local_count: number of @local
 * @remote: SEND: SGEs of the receive, otherwise the first is the peer's memory
 * @remote_count: number of @remote
 */
struct op {
	enum kind kind;
	__u32 size;
	__u32 from;
	__u32 to;
	bool is_inline;
	struct ibv_sge local[MAX_SGE];
	int local_count;
	struct ibv_sge remote[MAX_SGE];
	int remote_count;
};

/**
 * struct world - state of the program
 * @sides: both hosts
 * @queues: queues of each host
 * @ends: ends of the connection
 * @room: memory of each host
 * @mr: region of @room
 * @lane: size of a source or sink
 * @active: index of the end that posts the batch
 * @ops: the batch
 * @count: number of @ops
 * @done: number of operations so far
 */
static struct world {
	struct side sides[2];
	struct queues queues[2];
	struct end ends[2];
	__u8 *room[2];
	struct ibv_mr *mr[2];
	size_t lane;
	int active;
	struct op ops[LANES];
	int count;
	__u64 done;
} w;

/* The pattern: octets at any distance by which data is likely to be misplaced differ */
static __u8 octet(__u64 number, __u32 at)
{
	return (number * 31 + at) * 0x9e3779b1 >> 22;
}

static __u8 fill(__u64 number)
{
	return 0xa5 ^ number * 0x3b;
}

/* Cuts @size octets into pieces with gaps in between, from @offset of @lane of an end on. */
static int cut(struct ibv_sge *sge, int who, int lane, __u32 offset, __u32 size, bool has_gaps)
{
	__u8 *at = w.room[who] + lane * w.lane + offset;
	int count = has_gaps ? 1 + pick(MAX_SGE) : 1;
	__u32 piece;
	int i;

	for (i = 0; i < count; i++) {
		piece = i == count - 1 ? size : pick(size + 1);
		sge[i] = (struct ibv_sge) { (unsigned long)at, piece, w.mr[who]->lkey };
		at += piece + pick(GAP);
		size -= piece;
	}
	return count;
}

static void fill_source(const struct ibv_sge *sge, int count, __u64 number)
{
	__u32 at = 0;
	__u32 i;

	for (; count--; sge++)
		for (i = 0; i < sge->length; i++)
			((__u8 *)(unsigned long)sge->addr)[i] = octet(number, at++);
}

/* Prepares source and sink of one operation. */
static void prepare(struct op *op, int lane)
{
	int source = op->kind == READ ? !w.active : w.active;
	__u64 number = w.done + lane;

	op->local_count = cut(op->local, w.active, lane, op->kind == READ ? op->to : op->from,
			      op->size, true);
	op->remote_count = cut(op->remote, !w.active, lane, op->kind == READ ? op->from : op->to,
			       op->size, op->kind == SEND);
	memset(w.room[!source] + lane * w.lane, fill(number), w.lane);
	if (source == w.active)
		fill_source(op->local, op->local_count, number);
	else
		fill_source(op->remote, op->remote_count, number);
	if (op->kind == SEND)
		op->remote[op->remote_count - 1].length += pick(9);
}

static void verify(const struct op *op, int lane)
{
	const struct ibv_sge *sge = op->kind == READ ? op->local : op->remote;
	int who = op->kind == READ ? w.active : !w.active;
	const __u8 *got = w.room[who] + lane * w.lane;
	__u64 number = w.done + lane;
	static __u8 want[LANE_LONG];
	__u32 at = 0;
	__u32 i;

	memset(want, fill(number), w.lane);
	for (; at < op->size; sge++)
		for (i = 0; i < sge->length && at < op->size; i++)
			want[sge->addr - (unsigned long)got + i] = octet(number, at++);
	if (!memcmp(got, want, w.lane))
		return;
	for (i = 0; got[i] == want[i]; i++)
		;
	fail("%s of %u octets, %u to %u, %d and %d SGEs%s: octet %u of the sink is %02x, not %02x",
	     kind_names[op->kind], op->size, op->from, op->to, op->local_count, op->remote_count,
	     op->is_inline ? ", inline" : "", i, got[i], want[i]);
}

static void post_receives(void)
{
	struct ibv_recv_wr wr, *bad;
	int i;

	for (i = 0; i < w.count; i++) {
		if (w.ops[i].kind != SEND)
			continue;
		wr = (struct ibv_recv_wr) {
			.wr_id = i, .sg_list = w.ops[i].remote, .num_sge = w.ops[i].remote_count,
		};
		MUST(!ibv_post_recv(w.ends[!w.active].id->qp, &wr, &bad));
	}
}

static void post_batch(void)
{
	static const enum ibv_wr_opcode opcodes[KINDS] = {
		IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ, IBV_WR_SEND,
	};
	struct ibv_send_wr wrs[LANES + 1], *bad;
	int i;

	memset(wrs, 0, sizeof(wrs));
	for (i = 0; i < w.count; i++) {
		struct op *op = &w.ops[i];

		wrs[i].wr_id = i;
		wrs[i].next = &wrs[i + 1];
		wrs[i].opcode = opcodes[op->kind];
		wrs[i].sg_list = op->local;
		wrs[i].num_sge = op->local_count;
		wrs[i].send_flags = IBV_SEND_SIGNALED | (op->is_inline ? IBV_SEND_INLINE : 0);
		wrs[i].wr.rdma.remote_addr = op->remote[0].addr;
		wrs[i].wr.rdma.rkey = w.mr[!w.active]->rkey;
	}
	wrs[i].wr_id = i;
	wrs[i].opcode = IBV_WR_RDMA_READ;
	wrs[i].send_flags = IBV_SEND_SIGNALED;
	wrs[i].wr.rdma.remote_addr = (unsigned long)w.room[!w.active];
	wrs[i].wr.rdma.rkey = w.mr[!w.active]->rkey;
	MUST(!ibv_post_send(w.ends[w.active].id->qp, wrs, &bad));
	/* Inline data was copied when it was posted, so the memory may be changed now */
	for (i = 0; i < w.count; i++)
		if (w.ops[i].is_inline)
			fill_source(w.ops[i].local, w.ops[i].local_count, w.done + i + 1);
}

/* The work request has completed, so its memory belongs to the owner again. */
static void overwrite_source(const struct op *op)
{
	int i;

	for (i = 0; op->kind != READ && i < op->local_count; i++)
		memset((void *)(unsigned long)op->local[i].addr, 0xee, op->local[i].length);
}

static void wait_batch(void)
{
	struct ibv_wc wc;
	int i;

	for (i = 0; i <= w.count; i++) {
		complete(w.queues[w.active].scq, &wc);
		if (wc.status != IBV_WC_SUCCESS || wc.wr_id != (__u64)i)
			fail("work request %d: completion of %llu, status %d", i,
			     (unsigned long long)wc.wr_id, wc.status);
		if (i < w.count)
			overwrite_source(&w.ops[i]);
	}
	for (i = 0; i < w.count; i++) {
		if (w.ops[i].kind != SEND)
			continue;
		complete(w.queues[!w.active].rcq, &wc);
		if (wc.status != IBV_WC_SUCCESS || wc.wr_id != (__u64)i ||
		    wc.byte_len != w.ops[i].size)
			fail("receive %d of %u octets: completion of %llu, status %d, %u octets", i,
			     w.ops[i].size, (unsigned long long)wc.wr_id, wc.status, wc.byte_len);
	}
}

static void run_batch(void)
{
	int i;

	w.active = pick(2);
	for (i = 0; i < w.count; i++)
		prepare(&w.ops[i], i);
	post_receives();
	post_batch();
	wait_batch();
	for (i = 0; i < w.count; i++)
		verify(&w.ops[i], i);
	w.done += w.count;
	w.count = 0;
}

static void add(enum kind kind, __u32 size, __u32 from, __u32 to)
{
	w.ops[w.count++] = (struct op) {
		.kind = kind, .size = size, .from = from, .to = to,
		.is_inline = kind != READ && size <= MAX_INLINE && pick(2),
	};
	if (w.count == LANES)
		run_batch();
}

static void each_kind(__u32 size, __u32 from, __u32 to)
{
	int kind;

	for (kind = 0; kind < KINDS; kind++)
		add(kind, size, from, to);
}

static void sweep(__u32 step)
{
	__u32 i;

	for (i = pick(step); i <= SIZE_MAX_; i += step)
		each_kind(i, pick(PAGE), pick(PAGE));
	for (i = pick(step); i < PAGE; i += step) {
		each_kind(pick(SIZE_MAX_ + 1), i, pick(PAGE));
		each_kind(pick(SIZE_MAX_ + 1), pick(PAGE), i);
	}
}

/*
 * Tests each size, going through the range in large strides, at every offset of the source,
 * while the offset of the sink cycles through all values.
 */
static void product(double seconds)
{
	const __u32 sizes = SIZE_MAX_ + 1, stride = 1009;	/* no common factor */
	double end = now() + seconds;
	__u32 n, from;

	for (n = 0; n < sizes && now() < end; n++) {
		__u32 size = n * stride % sizes;

		for (from = 0; from < PAGE; from++)
			each_kind(size, from, (from * 5 + size * 7) % PAGE);
	}
	printf("%u of %u sizes\n", n, sizes);
}

static __u32 pick_size(void)
{
	switch (pick(4)) {
	case 0:
		return pick(SIZE_MAX_ + 1);
	case 1:
		return pick(LONG_MIN);
	default:
		return LONG_MIN + pick(LONG_MAX - LONG_MIN + 1);
	}
}

static void run_long(double seconds)
{
	double end = now() + seconds;

	while (now() < end)
		each_kind(pick_size(), pick(PAGE), pick(PAGE));
}

static void rounds(__u32 step, double seconds)
{
	double end = now() + seconds;

	do {
		sweep(step);
	} while (now() < end);
}

static void open_world(__u16 port)
{
	const int all = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE;
	int i;

	side_open(&w.sides[0], "a", "10.77.0.1", port);
	side_open(&w.sides[1], "b", "10.77.0.2", port);
	for (i = 0; i < 2; i++) {
		w.queues[i] = queues_of(&w.sides[i], 4 * LANES);
		w.room[i] = pages(LANES * w.lane);
		w.mr[i] = reg(w.sides[i].pd, w.room[i], LANES * w.lane, all);
	}
	MUST(conn_open(w.ends, &w.sides[0], &w.sides[1], w.queues));
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
	const char *what = argc > 1 ? argv[1] : "1";
	double seconds = argc > 2 ? atof(argv[2]) : 0;
	bool is_long = !strcmp(what, "long");

	if (getenv("KIW_SEED"))
		seed(atoll(getenv("KIW_SEED")));
	w.lane = is_long ? LANE_LONG : LANE;
	open_world(argc > 3 ? atoi(argv[3]) : 7801);
	if (is_long)
		run_long(seconds);
	else if (!strcmp(what, "product"))
		product(seconds);
	else
		rounds(atoi(what), seconds);
	if (w.count)
		run_batch();
	printf("%llu operations\n", (unsigned long long)w.done);
	return 0;
}
