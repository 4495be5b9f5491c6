// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Windows at both ends of regions whose offsets begin at 0, end at 2^64 or surround 2^63, and
 * windows whose QP is connected again.
 */
#include "windows.h"

static const char * const use_names[USES] = { "Write", "Read", "atomic" };

/**
 * struct edge - a window of a region
 * @mr: the region, of all memory of side b
 * @iova: tagged offset of its first byte
 * @type: type of the window
 * @is_zero_based: its offsets begin at 0
 * @at: where in the memory it begins
 * @length: its length
 */
struct edge {
	struct ibv_mr *mr;
	__u64 iova;
	enum ibv_mw_type type;
	bool is_zero_based;
	__u32 at;
	__u32 length;
};

static void try_edge(const struct edge *edge, enum use use, int off, bool is_granted)
{
	struct window window = window_of(&w.sides[1], edge->type);
	struct link link = {};
	const char *problem;

	link_to(&link, &w.sides[1]);
	MUST(!bind_next(&link, &window, (struct ibv_mw_bind_info) {
		.mr = edge->mr, .addr = edge->iova + edge->at, .length = edge->length,
		.mw_access_flags = REMOTE | (edge->is_zero_based ? IBV_ACCESS_ZERO_BASED : 0),
	}));
	window.base = edge->is_zero_based ? 0 : edge->iova + edge->at;
	window.at = edge->at;
	problem = wrong(&link, &window, use, off, is_granted);
	if (*problem)
		fail("type %d%s, %s at %d of %u octets from %#llx: %s", edge->type,
		     edge->is_zero_based ? ", zero-based" : "", use_names[use], off, edge->length,
		     (unsigned long long)(edge->iova + edge->at), problem);
	unlink_all(&link);
	MUST(!ibv_dealloc_mw(window.mw));
}

static void try_both_ends(const struct edge *edge)
{
	enum use use;
	int last;

	for (use = 0; use < USES; use++) {
		last = edge->length - (use == ATOMIC ? 8 : SIZE);
		try_edge(edge, use, 0, true);
		try_edge(edge, use, -8, false);
		try_edge(edge, use, last, true);
		try_edge(edge, use, last + 8, false);
		try_edge(edge, use, edge->length, false);
	}
}

/**
 * edges() - windows at both ends of regions, and of all offsets
 *
 * Context: user space.
 */
void edges(void)
{
	static const __u64 iovas[] = { 0, (1ULL << 63) - 2 * PAGE, -(__u64)ROOM };
	struct edge edge;
	size_t i;
	int zero;

	for (i = 0; i < ARRAY_SIZE(iovas); i++) {
		edge.iova = iovas[i];
		edge.mr = ibv_reg_mr_iova(w.sides[1].pd, w.room[1], ROOM, edge.iova,
					  IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
		MUST(edge.mr);
		for (edge.type = IBV_MW_TYPE_1; edge.type <= IBV_MW_TYPE_2; edge.type++) {
			for (zero = 0; zero < (int)edge.type; zero++) {
				edge.is_zero_based = zero;
				edge.at = 0;
				edge.length = ROOM;
				try_both_ends(&edge);
				edge.at = ROOM - BYTES;
				edge.length = BYTES;
				try_both_ends(&edge);
			}
		}
		MUST(!ibv_dereg_mr(edge.mr));
	}
}

static void connect_again(struct link *link)
{
	struct ibv_wc wc;
	int i;

	MUST(conn_again(link->ends, &w.sides[0], &w.sides[1]));
	for (i = 0; i < 2; i++)
		while (ibv_poll_cq(link->queues[i].scq, 1, &wc) > 0 ||
		       ibv_poll_cq(link->queues[i].rcq, 1, &wc) > 0)
			;
}

static void must_grant(const struct link *link, const struct window *window, enum use use,
		       enum ibv_mw_type type, bool is_granted)
{
	const char *problem = wrong(link, window, use, use == ATOMIC ? 8 - AT % 8 : 0, is_granted);

	if (*problem)
		fail("type %d, %s, %s: %s", type, use_names[use],
		     is_granted ? "granted" : "not granted", problem);
}

static void try_reconnected(enum ibv_mw_type type, enum use use)
{
	struct window window = window_of(&w.sides[1], type);
	struct link link = {};

	link_to(&link, &w.sides[1]);
	bind_at(&link, &window, AT, REMOTE);
	connect_again(&link);
	must_grant(&link, &window, use, type, type == IBV_MW_TYPE_1);
	if (type == IBV_MW_TYPE_2) {
		connect_again(&link);
		MUST(peer_inv(&link, window.rkey) == IBV_WC_GENERAL_ERR);
		connect_again(&link);
		MUST(!local_inv(&link, window.rkey));
		bind_at(&link, &window, AT, REMOTE);
		must_grant(&link, &window, use, type, true);
	}
	unlink_all(&link);
	MUST(!ibv_dealloc_mw(window.mw));
}

/**
 * reconnected() - a window of type 2 ends with its stream, though the QP is the same
 *
 * Context: user space.
 */
void reconnected(void)
{
	enum ibv_mw_type type;
	enum use use;

	for (type = IBV_MW_TYPE_1; type <= IBV_MW_TYPE_2; type++)
		for (use = 0; use < USES; use++)
			try_reconnected(type, use);
}
