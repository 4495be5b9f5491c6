// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Makes connections and posts work requests to them. Owns all of their resources. One thread.
 */
#include "flow.h"

#include <unistd.h>

#define PORT		5042		/* of the first flow */
#define FLUSH		(~0ULL)		/* the request that comes after all others */
#define MAX_FLUSHES	64
#define MAX_TRIES	10
#define LONG_CQ		32768
#define GUARD		PAGE

/* The sum of the numbers that follow a name in a file of /proc */
static double sum_of(const char *path, const char *name)
{
	FILE *file = fopen(path, "r");
	char line[256], *at;
	double sum = 0;

	MUST(file);
	while (fgets(line, sizeof(line), file)) {
		at = line + strspn(line, " ");
		if (!strncmp(at, name, strlen(name)))
			sum += strtod(at + strlen(name), NULL);
	}
	fclose(file);
	return sum;
}

/* In KiB. MemFree does not include the free pages that each CPU caches, which can be megabytes */
static double memory_used(void)
{
	return -(sum_of("/proc/meminfo", "MemFree:") +
		 sum_of("/proc/zoneinfo", "count:") * PAGE / 1024);
}

/**
 * set_sides() - open the device of each host
 * @set: the connections to be made
 * @o: what is to be measured
 *
 * Context: user space.
 */
void set_sides(struct set *set, const struct options *o)
{
	set->passive = &set->sides[1];
	side_open(&set->sides[1], o->to, address_of(o, o->to), PORT + o->flow);
	if (strcmp(o->from, o->to))
		side_open(&set->sides[0], o->from, address_of(o, o->from), PORT + o->flow);
	else
		set->sides[0] = set->sides[1];
}

/**
 * set_memory() - register the memory of messages at both ends
 * @set: after set_sides()
 * @o: what is to be measured
 *
 * Context: user space.
 */
void set_memory(struct set *set, const struct options *o)
{
	int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;

	set->size = o->size;
	set->region = o->region;
	for (int i = 0; i < 2; i++) {
		set->data[i] = pages(set->region + GUARD);
		memset(set->data[i], i + 1, set->region);
		set->mr[i] = reg(set->sides[i].pd, set->data[i], set->region + GUARD, access);
	}
}

static void make_cqs(struct set *set, __u32 entries)
{
	for (int i = 0; i < 2; i++) {
		struct ibv_context *ctx = set->sides[i].listener->verbs;

		set->chan[i] = ibv_create_comp_channel(ctx);
		MUST(set->chan[i]);
		set->cq[i] = ibv_create_cq(ctx, entries, NULL, set->chan[i], 0);
		MUST(set->cq[i]);
	}
}

/* Makes one connection; returns how often that failed before */
static __u32 open_one(struct set *set, struct end *ends, const struct queues *queues)
{
	__u32 failed;

	for (failed = 0; failed < MAX_TRIES; failed++) {
		if (conn_open(ends, &set->sides[0], set->passive, queues))
			return failed;
		end_close(&ends[0]);
		end_close(&ends[1]);
	}
	fail("no connection in %d tries (%m)", MAX_TRIES);
}

static void connect_all(struct set *set)
{
	__u32 failed = 0;
	struct queues queues[2];
	double before, seconds;
	__u64 begin;

	for (int i = 0; i < 2; i++)
		queues[i] = (struct queues) {
			.scq = set->cq[i], .rcq = set->cq[i], .sge = 1,
			.send_depth = i && !set->is_both ? 1 : set->depth,
			.recv_depth = i || set->is_both ? set->depth : 1,
		};
	before = memory_used();
	begin = ticks_now();
	for (__u32 i = 0; i < set->conns; i++) {
		set->flows[i].index = i;
		failed += open_one(set, set->flows[i].ends, queues);
	}
	seconds = seconds_of(ticks_now() - begin);
	printf("\"conns\": %u, \"failed\": %u, \"kib_per_conn\": %.2f, \"connect_us\": %.1f, ",
	       set->conns, failed, (memory_used() - before) / set->conns,
	       seconds * 1e6 / set->conns);
}

/*
 * To libsiw, a mapping offset of 0x90000 means that there is no queue. With many connections, the
 * completion queue is mapped first, so make it large enough to include this offset.
 */
static __u32 cq_entries(const struct options *o)
{
	__u32 entries = o->conns * (o->depth / o->batch) + 1;

	if (o->conns == 1)
		return entries + o->depth;
	return entries > LONG_CQ ? entries : LONG_CQ;
}

/**
 * set_open() - set up hosts, memory and connections
 * @set: zeroed
 * @o: what is to be measured
 *
 * Prints how much memory and time the connections took.
 *
 * Context: user space.
 */
void set_open(struct set *set, const struct options *o)
{
	set->depth = o->depth;
	set->conns = o->conns;
	set->is_both |= o->conns > 1;
	set->flows = calloc(o->conns, sizeof(*set->flows));
	MUST(set->flows);
	set_sides(set, o);
	set_memory(set, o);
	make_cqs(set, cq_entries(o));
	connect_all(set);
}

/**
 * set_open_both() - as set_open(), but both ends can send and receive
 * @set: zeroed
 * @o: what is to be measured
 *
 * Context: user space.
 */
void set_open_both(struct set *set, const struct options *o)
{
	set->is_both = true;
	set_open(set, o);
}

/**
 * set_close() - undo set_open(), as far as that matters
 * @set: the connections; no work requests are outstanding
 *
 * Context: user space.
 */
void set_close(struct set *set)
{
	__u64 begin = ticks_now();

	for (__u32 i = 0; i < set->conns; i++) {
		end_close(&set->flows[i].ends[0]);
		end_close(&set->flows[i].ends[1]);
	}
	printf("\"close_us\": %.1f, ", seconds_of(ticks_now() - begin) * 1e6 / set->conns);
	free(set->flows);
}

/**
 * set_arm() - arm the completion queue of an end
 * @set: the connections
 * @end: the end
 *
 * Context: user space.
 */
void set_arm(struct set *set, int end)
{
	MUST(!ibv_req_notify_cq(set->cq[end], 0));
}

/**
 * set_sleep() - sleep until a completion event arrives
 * @set: the connections, after set_arm() and polling once more
 * @end: the end
 *
 * Context: user space.
 */
void set_sleep(struct set *set, int end)
{
	struct ibv_cq *cq;
	void *context;

	MUST(!ibv_get_cq_event(set->chan[end], &cq, &context));
	ibv_ack_cq_events(cq, 1);
}

static void await(struct set *set)
{
	struct ibv_wc wc;

	complete(set->cq[0], &wc);
	if (wc.status)
		fail("the last Read ended with status %d", wc.status);
}

/**
 * set_flush() - wait until everything that was written has been placed
 * @set: the connections; no work requests are outstanding
 *
 * Posts a Read, because it is answered after the Writes before it have been placed.
 *
 * Context: user space.
 */
void set_flush(struct set *set)
{
	__u32 pending = 0;

	for (__u32 i = 0; i < set->conns; i++) {
		struct ibv_sge sge = {
			.addr = (uintptr_t)set->data[0] + set->region, .length = 8,
			.lkey = set->mr[0]->lkey,
		};
		struct ibv_send_wr *bad, wr = {
			.wr_id = FLUSH, .sg_list = &sge, .num_sge = 1,
			.opcode = IBV_WR_RDMA_READ, .send_flags = IBV_SEND_SIGNALED,
			.wr.rdma.remote_addr = (uintptr_t)set->data[1] + set->region,
			.wr.rdma.rkey = set->mr[1]->rkey,
		};

		MUST(!ibv_post_send(set->flows[i].ends[0].id->qp, &wr, &bad));
		if (++pending == MAX_FLUSHES)
			for (; pending; pending--)
				await(set);
	}
	for (; pending; pending--)
		await(set);
}

static size_t next_slot(struct set *set)
{
	size_t at = set->next;

	set->next += set->size;
	if (set->next + set->size > set->region)
		set->next = 0;
	return at;
}

/* The slot @at octets into the memory of an end */
static struct ibv_sge slot_at(const struct set *set, int end, size_t at)
{
	return (struct ibv_sge) {
		.addr = (uintptr_t)set->data[end] + at, .length = set->size,
		.lkey = set->mr[end]->lkey,
	};
}

/**
 * flow_post() - post messages
 * @set: the connections
 * @f: the connection to post to
 * @opcode: of the work requests
 * @batch: number of messages, up to MAX_BATCH; the last one is signaled
 *
 * With one connection, a Send is received into the slot at the same place.
 *
 * Context: user space.
 */
void flow_post(struct set *set, struct flow *f, enum ibv_wr_opcode opcode, __u32 batch)
{
	static struct ibv_send_wr wr[MAX_BATCH];
	static struct ibv_sge sge[MAX_BATCH];
	struct ibv_send_wr *bad;

	MUST(batch <= MAX_BATCH);
	for (__u32 i = 0; i < batch; i++) {
		size_t at = next_slot(set);

		sge[i] = slot_at(set, 0, at);
		wr[i].wr_id = f->index;
		wr[i].next = i + 1 < batch ? &wr[i + 1] : NULL;
		wr[i].sg_list = &sge[i];
		wr[i].num_sge = 1;
		wr[i].opcode = opcode;
		wr[i].send_flags = i + 1 < batch ? 0 : IBV_SEND_SIGNALED;
		wr[i].wr.rdma.remote_addr = (uintptr_t)set->data[1] + at;
		wr[i].wr.rdma.rkey = set->mr[1]->rkey;
	}
	MUST(!ibv_post_send(f->ends[0].id->qp, wr, &bad));
	f->posted += batch;
}

static void post_receives(struct set *set, struct flow *f, __u32 count)
{
	static struct ibv_recv_wr wr[MAX_BATCH];
	static struct ibv_sge sge[MAX_BATCH];
	struct ibv_recv_wr *bad;

	for (__u32 i = 0; i < count; i++) {
		size_t at = f->slot++ % (set->region / set->size) * set->size;

		sge[i] = slot_at(set, 1, at);
		wr[i].wr_id = f->index;
		wr[i].next = i + 1 < count ? &wr[i + 1] : NULL;
		wr[i].sg_list = &sge[i];
		wr[i].num_sge = 1;
	}
	MUST(!ibv_post_recv(f->ends[1].id->qp, wr, &bad));
	f->offered += count;
}

/**
 * flow_offer() - post receives after one has completed, or for the first time
 * @set: the connections
 * @f: the connection to post to
 *
 * Receives are posted again a quarter of the queue at a time.
 *
 * Context: user space.
 */
void flow_offer(struct set *set, struct flow *f)
{
	__u32 chunk = set->depth > 4 ? set->depth / 4 : 1;

	if (!f->offered) {
		for (__u32 i = 0; i + chunk <= set->depth; i += chunk)
			post_receives(set, f, chunk);
		return;
	}
	if (++f->taken == chunk) {
		f->taken = 0;
		post_receives(set, f, chunk);
	}
}
