// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Using a window, and what the memory of both sides is after that.
 */
#include "windows.h"

static __u8 octet(int who, __u32 at)
{
	return who ? at * 3 + 1 : at * 5 + 2;
}

static void fill(void)
{
	__u32 i;

	for (i = 0; i < ROOM; i++) {
		w.room[0][i] = octet(0, i);
		w.room[1][i] = octet(1, i);
	}
}

/* Was @len octets of the other side placed at @at of @who, and nothing else changed? */
static bool is_placed(int who, __u32 at, __u32 len, __u32 from)
{
	__u32 i;

	for (i = 0; i < ROOM; i++)
		if (w.room[who][i] != (i >= at && i < at + len ? octet(!who, from + i - at) :
								 octet(who, i)))
			return false;
	return true;
}

static bool is_untouched(void)
{
	return is_placed(0, 0, 0, 0) && is_placed(1, 0, 0, 0);
}

/* Was 1 added to the word at @at, and the former value returned? */
static bool is_added(__u32 at)
{
	__u64 before, after, returned;
	__u8 octets[8];
	bool good;
	int i;

	for (i = 0; i < 8; i++)
		octets[i] = octet(1, at + i);
	memcpy(&before, octets, 8);
	memcpy(&after, w.room[1] + at, 8);
	memcpy(&returned, w.room[0], 8);
	/* The rest must be as it was. */
	memcpy(w.room[1] + at, &before, 8);
	good = is_placed(1, 0, 0, 0) && after == before + 1 && returned == before;
	return good;
}

/*
 * Use @window at @off bytes from its begin, and see what the peer says: a Write completes before
 * that, so a Read of nothing follows.
 */
static enum ibv_wc_status access_at(const struct link *link, const struct window *window,
				    enum use use, int off)
{
	struct ibv_sge sge = { (unsigned long)w.room[0], SIZE, w.mr[0]->lkey };
	struct ibv_send_wr wr = {
		.opcode = use == RDMA_WRITE ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ,
		.sg_list = &sge, .num_sge = 1,
		.wr.rdma = { .remote_addr = window->base + off, .rkey = window->rkey },
	};
	struct ibv_send_wr last = { .opcode = IBV_WR_RDMA_READ };
	enum ibv_wc_status status;

	if (use == ATOMIC) {
		sge.length = 8;
		wr.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
		wr.wr.atomic.remote_addr = window->base + off;
		wr.wr.atomic.compare_add = 1;
		wr.wr.atomic.rkey = window->rkey;
	}
	status = run(link, 0, &wr);
	return status || use != RDMA_WRITE ? status : run(link, 0, &last);
}

/**
 * wrong() - use a window, and judge what the peer says and what has changed
 * @link: connection
 * @window: window of side b
 * @use: how side a uses it
 * @off: bytes from its begin
 * @is_granted: it grants that
 *
 * Context: user space.
 * Return: what is wrong; "": nothing.
 */
const char *wrong(const struct link *link, const struct window *window, enum use use, int off,
		  bool is_granted)
{
	enum ibv_wc_status status;
	__u32 at = window->at + off;
	bool good;

	fill();
	status = access_at(link, window, use, off);
	if (!is_granted) {
		if (!is_untouched())
			return "memory has changed";
		/* A Write has completed, so its successor is flushed, or told. */
		if (status == IBV_WC_REM_ACCESS_ERR || status == IBV_WC_WR_FLUSH_ERR)
			return "";
		return ibv_wc_status_str(status);
	}
	if (status)
		return ibv_wc_status_str(status);
	good = use == RDMA_WRITE ? is_placed(1, at, SIZE, 0) :
	       use == RDMA_READ ? is_placed(0, 0, SIZE, at) : is_added(at);
	return good ? "" : "memory is not as it should be";
}
