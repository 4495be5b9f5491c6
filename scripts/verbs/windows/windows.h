/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * A connection, a window of one end, and its use by the other.
 */
#ifndef KIW_WINDOWS_H
#define KIW_WINDOWS_H

#include "../common.h"

#define ROOM		(4 * PAGE)
#define AT		(PAGE - 24)	/* where a window begins: it crosses a border of pages */
#define BYTES		64
#define SIZE		32		/* what a Write or Read moves */
#define REMOTE \
	(IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)

enum use { RDMA_WRITE, RDMA_READ, ATOMIC, USES };

/**
 * struct link - a connection between both sides
 * @queues: queues of both ends
 * @ends: both ends
 */
struct link {
	struct queues queues[2];
	struct end ends[2];
};

/**
 * struct window - a window of side b
 * @mw: the window, or NULL if it was deallocated
 * @rkey: its STag
 * @base: tagged offset of the first byte
 * @at: where in the memory that is
 */
struct window {
	struct ibv_mw *mw;
	__u32 rkey;
	__u64 base;
	__u32 at;
};

/**
 * struct world - state of the program
 * @sides: both hosts
 * @other: side b with another protection domain
 * @room: memory of each host
 * @mr: its region
 */
struct world {
	struct side sides[2];
	struct side other;
	__u8 *room[2];
	struct ibv_mr *mr[2];
};

extern struct world w;

void link_to(struct link *link, const struct side *to);
void unlink_all(struct link *link);
struct window window_of(const struct side *side, enum ibv_mw_type type);
enum ibv_wc_status bind_next(const struct link *link, struct window *window,
			     struct ibv_mw_bind_info info);
void bind_at(const struct link *link, struct window *window, __u32 at, int access);
enum ibv_wc_status local_inv(const struct link *link, __u32 rkey);
enum ibv_wc_status peer_inv(const struct link *link, __u32 rkey);
void abandoned(void);
void edges(void);
void reconnected(void);
enum ibv_wc_status run(const struct link *link, int who, struct ibv_send_wr *wr);
const char *wrong(const struct link *link, const struct window *window, enum use use, int off,
		  bool is_granted);

#endif /* KIW_WINDOWS_H */
