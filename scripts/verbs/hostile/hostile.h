/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Formats of rings, for the program that misuses them.
 */
#ifndef KIW_HOSTILE_H
#define KIW_HOSTILE_H

#include "../common.h"

#define SQ_DEPTH	64
#define RQ_DEPTH	256
#define SRQ_DEPTH	512
#define CQ_DEPTH	4096
#define ROOM		(16 * PAGE)
#define WINDOWS		8
#define ID		0x1d1d1d1d1d1d1d1dULL
/* Octets of the message for a receive */
#define PAYLOAD		16

enum ring_kind { SQ, RQ, SRQ, CQ, NO_RING };

/**
 * struct ring - a mapped ring
 * @kind: kind of ring
 * @who: the end whose ring it is
 * @at: its address
 * @bytes: length of the mapping
 * @next: where the kernel takes the next entry, if the ring does not tell
 */
struct ring {
	enum ring_kind kind;
	int who;
	__u8 *at;
	size_t bytes;
	__u32 next;
};

/* Memory that the rings may refer to, by the access that is allowed */
enum room { OPEN, READ_ONLY, OTHER_PD, UNKNOWN, ROOMS };

/**
 * struct format - the format of all rings of a device
 * @bytes: length of each kind of ring
 * @arms_by_call: REQ_NOTIFY_CQ is allowed
 * @has_windows: memory windows can be bound
 * @refuse_all: calls refuse() and refuse_recvs() for all that is malformed
 * @spoil: writes something likely to a ring, in the second thread
 * @resize: replaces the ring of one of these queues, by a call of its own that the library does not
 *	know of; NULL if the ABI cannot
 * @post: posts a receive and an operation as a program would, but survives what the second thread
 *	writes
 */
struct format {
	size_t bytes[NO_RING];
	bool arms_by_call;
	bool has_windows;
	void (*refuse_all)(void);
	void (*spoil)(struct ring *ring);
	void (*resize)(const struct queues *queues);
	void (*post)(struct ibv_qp *qp, struct ibv_sge sge, __u32 rkey);
};

/**
 * struct wrong_recv - what is wrong with the receive that a format writes
 * @num_sge: number of SGEs
 * @length: length of each, in bytes
 * @lkey: bits of the STag to flip
 * @after: bytes by which it begins after the start of the region
 */
struct wrong_recv {
	__u32 num_sge;
	__u32 length;
	__u32 lkey;
	__u64 after;
};

/* Numbers of SGEs that refuse_recvs() tries */
#define BAD_COUNTS 3

extern struct wrong_recv wrong_recv;
extern const struct format siw_format;
extern const struct format rxe_format;

struct ring *ring_of_end(enum ring_kind kind, const struct ibv_qp *qp);
void refuse(void (*put)(void *ring), const char *what);
void refuse_recvs(void (*put)(void *ring), const __u32 counts[BAD_COUNTS]);
void refuse_as(void (*put)(void *ring), const char *what, enum ibv_wc_status status);
__u32 window_stag(int number, bool is_foreign);
__u32 region_stag(enum room room);
__u64 open_room(__u32 *lkey, __u32 *rkey);
__u64 receiver_room(__u32 *lkey);
int command(struct ibv_context *ctx, void *cmd, __u32 number, size_t bytes, size_t answer_bytes);
void another_ring(struct ibv_context *ctx, enum ring_kind kind, __u64 offset);

/* In the second thread */
__u32 any(__u32 count);
__u32 any_slot(__u32 next, __u32 count);
__u64 bad_number(void);
struct ibv_sge likely_sge(void);
__u64 likely_target(__u32 *rkey);
__u32 likely_window(bool is_own);

#endif /* KIW_HOSTILE_H */
