/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Hosts, connections and work requests of the storm; storm.c has the rules.
 */
#ifndef KIW_STORM_H
#define KIW_STORM_H

#include "../common.h"

#define CQS		6
#define CQ_SLOTS	8192
#define SRQS		3
#define SRQ_SLOTS	256
#define DEPTH		16
#define AHEAD		12	/* work requests outstanding, of an end */
#define UNSIGNALED_MAX	4
#define CONNS_MAX	400
#define SLOT		16384
#define SLOTS		4096
#define OPS		16384
#define NOBODY		(-1)

enum kind {
	SEND, WRITE, READ, RECV,
	/* Only on devices of the type kiwarp-ext */
	SEND_INV, WRITE_IMM, FETCH_ADD, CMP_SWAP, BIND, INVALIDATE,
};

/**
 * struct op - a work request
 * @generation: number of times this entry was used
 * @kind: kind of work request
 * @is_busy: posted and not complete
 * @is_signaled: it is expected to complete even if it succeeds
 * @conn: its connection, or NOBODY in a shared receive queue
 * @end: its end of the connection, or the host of a shared receive
 * @srq: the shared receive queue
 * @slot: its memory, or NOBODY
 * @size: length in bytes
 * @seed: seed of its data
 * @remote: READ: slot of the peer, or NOBODY
 * @imm: WRITE_IMM: the immediate data, in the byte order of the CPU
 * @stag: SEND_INV: what the peer invalidates; INVALIDATE: likewise, this end
 * @is_shared: FETCH_ADD: the word is that of all connections
 * @operand: FETCH_ADD, CMP_SWAP: what to add or compare with
 * @swap: CMP_SWAP: the new value
 * @before: FETCH_ADD, CMP_SWAP, unless @is_shared: value before it
 * @after: likewise, after it
 */
struct op {
	__u32 generation;
	enum kind kind;
	bool is_busy;
	bool is_signaled;
	int conn;
	int end;
	int srq;
	int slot;
	__u32 size;
	__u32 seed;
	int remote;
	__u32 imm;
	__u32 stag;
	bool is_shared;
	__u64 operand;
	__u64 swap;
	__u64 before;
	__u64 after;
};

/* Work requests in the order of posting */
struct fifo {
	int ops[2 * DEPTH];
	unsigned int put;
	unsigned int get;
};

/**
 * enum window_state - who does what with a window
 * @UNBOUND: it is not bound
 * @BINDING: its end is binding it
 * @BOUND: the peer may use it
 * @IN_USE: the peer has posted a Write or Read to it
 * @SPENT: that is over
 * @ENDING: its end or the peer is invalidating it
 */
enum window_state { UNBOUND, BINDING, BOUND, IN_USE, SPENT, ENDING };

/**
 * struct window - a memory window of an end
 * @mw: the window, or NULL
 * @stag: its STag
 * @state: what happens to it
 * @slot: the memory to which it is bound, until the peer has used that; or NOBODY
 * @base: tagged offset of the first byte
 */
struct window {
	struct ibv_mw *mw;
	__u32 stag;
	enum window_state state;
	int slot;
	__u64 base;
};

/**
 * struct word - a word of the peer, which only this end changes
 * @posted: its value after all operations that were posted
 * @done: after those that have completed
 * @maybe: after each one that was flushed, which may have been executed or not
 * @count: number of @maybe
 */
struct word {
	__u64 posted;
	__u64 done;
	__u64 maybe[2 * DEPTH];
	int count;
};

/**
 * struct half - one end of a connection, as this program sees it
 * @sent: send queue
 * @posted: receive queue, if it has its own
 * @srq: index of the shared receive queue, or NOBODY
 * @unsignaled: number of unsignaled work requests in a row at the end of @sent
 * @number: number of the next message to send
 * @expected: number of the next message to receive
 * @window: its window
 * @word: its word at the other end
 */
struct half {
	struct fifo sent;
	struct fifo posted;
	int srq;
	int unsignaled;
	__u32 number;
	__u32 expected;
	struct window window;
	struct word word;
};

/**
 * struct conn - a connection
 * @ends: its ends
 * @halves: the program's view of its ends
 * @serial: serial number
 * @is_doomed: errors are expected
 */
struct conn {
	struct end ends[2];
	struct half halves[2];
	__u32 serial;
	bool is_doomed;
};

/**
 * struct host - what the connections of one side share
 * @side: the side
 * @cqs: completion queues
 * @srqs: shared receive queues
 * @waiting: number of receives in each of @srqs
 * @promised: number of messages in flight to each of @srqs
 * @room: memory
 * @mr: region of @room
 * @owner: connection of each slot; NOBODY: free; CONNS_MAX: used by a shared receive
 */
struct host {
	struct side side;
	struct ibv_cq *cqs[CQS];
	struct ibv_srq *srqs[SRQS];
	int waiting[SRQS];
	int promised[SRQS];
	__u8 *room;
	struct ibv_mr *mr;
	int owner[SLOTS];
};

extern struct host hosts[2];
extern struct conn conns[CONNS_MAX];

static inline bool is_atomic(const struct op *op)
{
	return op->kind == FETCH_ADD || op->kind == CMP_SWAP;
}

/* memory.c */
__u8 *memory(int who, int slot);
void fill(int who, int slot, __u32 size, __u32 seed);
void verify(int who, int slot, __u32 from, __u32 size, __u32 seed, const char *what);
int slot_get(int who, int owner);
void slot_put(int who, int slot);
struct op *op_get(enum kind kind, int conn, int end);
struct op *op_of(__u64 id);
__u64 id_of(const struct op *op);
void op_put(struct op *op);
unsigned int length(const struct fifo *fifo);
void push(struct fifo *fifo, const struct op *op);
struct op *pop(struct fifo *fifo);
bool is_flushed(const struct fifo *fifo);

/* post.c */
struct op *new_op(enum kind kind, int conn, int who, __u32 size);
int post_flags(struct op *op);
void post(struct op *op, __u64 remote, __u32 rkey);

/* ext.c */
extern bool is_extended;

void ext_open(void);
void ext_begin(int conn);
void ext_destroyed(int conn, int who);
void ext_end(int conn);
bool ext_is_done(void);
void ext_close(void);
void ext_act(int conn, int who);
void ext_resize(void);
int window_target(int conn, int who, __u64 *remote, __u32 *rkey);
__u32 window_revoke(struct half *half, bool is_last_use);
void window_used(struct half *half, int slot);
void window_revoked(int conn, int who, __u32 stag);
__u32 wrong_stag(int conn, int who);
void ext_sent(const struct op *op);
void ext_failed(const struct op *op);

#endif /* KIW_STORM_H */
