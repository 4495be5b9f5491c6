// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Transfers messages of many small sizes, and some larger ones, at every offset around the end of a
 * page, at both ends. Checks that the data arrives unchanged, and that the memory around it keeps
 * its contents.
 */
#include "flow.h"

#define SLOT		(4 * PAGE)
#define AROUND		40	/* octets before the end of a page, and a few after it */
#define FILL		0xe5

static const __u32 sizes[] = {
	1, 2, 3, 4, 5, 7, 8, 9, 12, 15, 16, 17, 24, 31, 32, 33, 48, 63, 64, 65, 100, 1000,
	1447, 1448, 1449, PAGE - 1, PAGE, PAGE + 1, 2 * PAGE - 1,
};

/**
 * struct work - transfers
 * @set: one connection
 * @op: of the work requests
 * @checked: number of transfers
 * @bad: how many of them were wrong
 */
struct work {
	struct set set;
	enum ibv_wr_opcode op;
	__u32 checked;
	__u32 bad;
};

static void transfer(struct work *w, __u32 size, size_t at, size_t to)
{
	struct ibv_sge sge[2] = {
		{ (uintptr_t)w->set.data[0] + at, size, w->set.mr[0]->lkey },
		{ (uintptr_t)w->set.data[1] + to, size, w->set.mr[1]->lkey },
	};
	struct ibv_recv_wr *bad_recv, recv = { .sg_list = &sge[1], .num_sge = 1 };
	struct ibv_send_wr *bad, wr = {
		.sg_list = &sge[0], .num_sge = 1, .opcode = w->op,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma.remote_addr = sge[1].addr, .wr.rdma.rkey = w->set.mr[1]->rkey,
	};
	struct ibv_wc wc;

	if (w->op == IBV_WR_SEND)
		MUST(!ibv_post_recv(w->set.flows->ends[1].id->qp, &recv, &bad_recv));
	MUST(!ibv_post_send(w->set.flows->ends[0].id->qp, &wr, &bad));
	complete(w->set.cq[0], &wc);
	if (wc.status)
		fail("completion with status %d", wc.status);
	if (w->op == IBV_WR_SEND)
		complete(w->set.cq[1], &wc);
	else if (w->op == IBV_WR_RDMA_WRITE)
		set_flush(&w->set);
}

/* Do the @size octets at @at have the pattern, and is the rest of the slot unchanged? */
static bool is_right(const unsigned char *slot, size_t at, const unsigned char *wanted, __u32 size)
{
	if (memcmp(slot + at, wanted, size))
		return false;
	for (size_t i = 0; i < SLOT; i++)
		if ((i < at || i >= at + size) && slot[i] != FILL)
			return false;
	return true;
}

static void one(struct work *w, __u32 size, size_t from, size_t to)
{
	int source = w->op == IBV_WR_RDMA_READ;
	unsigned char *sink = w->set.data[!source];

	for (__u32 i = 0; i < SLOT; i++)
		w->set.data[source][i] = pick(256);
	memset(sink, FILL, SLOT);
	if (source)
		transfer(w, size, to, from);
	else
		transfer(w, size, from, to);
	w->checked++;
	w->bad += !is_right(sink, to, w->set.data[source] + from, size);
}

/**
 * verify() - check that data arrives as it was sent
 * @o: what is to be measured
 *
 * Context: user space.
 */
void verify(const struct options *o)
{
	static const enum ibv_wr_opcode ops[] = {
		IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ, IBV_WR_SEND,
	};
	struct work w = { 0 };
	struct options sized = *o;

	sized.size = SLOT;
	set_open(&w.set, &sized);
	for (size_t op = 0; op < ARRAY_SIZE(ops); op++) {
		w.op = ops[op];
		for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
			for (int at = -AROUND; at < 4; at++) {
				one(&w, sizes[i], PAGE + at, PAGE);
				one(&w, sizes[i], PAGE, PAGE + at);
				one(&w, sizes[i], PAGE + at, PAGE - at);
			}
		}
	}
	printf("\"checked\": %u, \"bad\": %u, ", w.checked, w.bad);
	set_close(&w.set);
}
