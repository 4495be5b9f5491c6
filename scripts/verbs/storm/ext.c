// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * What the storm does in addition on devices of the type kiwarp-ext: atomic operations, memory
 * windows, and queues that are resized.
 *
 * Each end has a word at the other one that nobody else changes. So the program knows what an
 * atomic operation finds there, and after the end of a connection, which values are possible. Each
 * host has another word, to which everybody adds 1. No value may be found there twice.
 */
#include "storm.h"

#include <errno.h>

#define WORDS		(CONNS_MAX + 1)
#define SHARED		CONNS_MAX	/* the word of everybody */
#define COUNT_MAX	16777216	/* of additions to it */
#define RIGHTS		(IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE)

/**
 * struct words - the words of a host
 * @at: the words
 * @mr: their region
 * @seen: a bit for each value that was found in the word of everybody
 * @count: number of these bits that are set
 * @maybe: number of additions to that word that were flushed
 */
struct words {
	__u64 *at;
	struct ibv_mr *mr;
	__u8 *seen;
	__u64 count;
	__u64 maybe;
};

bool is_extended;
static struct words words[2];
static unsigned long atomics, binds, resized;

/**
 * ext_open() - find out what the devices can do, and prepare for that
 *
 * Context: user space.
 */
void ext_open(void)
{
	struct ibv_device_attr attr;
	int i;

	MUST(!ibv_query_device(hosts[0].side.listener->verbs, &attr));
	is_extended = attr.max_mw;
	for (i = 0; is_extended && i < 2; i++) {
		words[i].at = pages(WORDS * sizeof(__u64));
		words[i].mr = reg(hosts[i].side.pd, words[i].at, WORDS * sizeof(__u64),
				  IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_ATOMIC);
		words[i].seen = calloc(1, COUNT_MAX / 8);
		MUST(words[i].mr && words[i].seen);
	}
}

/**
 * ext_begin() - prepare for a connection
 * @conn: the connection
 *
 * Context: user space.
 */
void ext_begin(int conn)
{
	struct window *window;
	int i;

	for (i = 0; is_extended && i < 2; i++) {
		window = &conns[conn].halves[i].window;
		window->mw = ibv_alloc_mw(hosts[i].side.pd,
					  pick(2) ? IBV_MW_TYPE_1 : IBV_MW_TYPE_2);
		MUST(window->mw);
		window->stag = window->mw->rkey;
		window->slot = NOBODY;
		words[i].at[conn] = 0;
	}
}

/**
 * ext_destroyed() - an end of a connection has been destroyed
 * @conn: the connection
 * @who: the end
 *
 * Context: user space.
 */
void ext_destroyed(int conn, int who)
{
	struct window *window = &conns[conn].halves[who].window;

	if (window->mw)
		MUST(!ibv_dealloc_mw(window->mw));
	window->mw = NULL;
	window->state = UNBOUND;
}

/* Operations are executed in order, so the value is one that the word had after one of them. */
static void verify_word(const struct word *word, __u64 value)
{
	int i;

	if (value == word->done)
		return;
	for (i = 0; i < word->count; i++)
		if (value == word->maybe[i])
			return;
	fail("a word is %#llx; it was %#llx, and %d operations were flushed",
	     (unsigned long long)value, (unsigned long long)word->done, word->count);
}

/**
 * ext_end() - both ends of a connection have been destroyed
 * @conn: the connection
 *
 * Context: user space.
 */
void ext_end(int conn)
{
	int i;

	for (i = 0; is_extended && i < 2; i++)
		verify_word(&conns[conn].halves[i].word, words[!i].at[conn]);
}

/**
 * ext_is_done() - whether each kind of what only the other link type has was used
 *
 * Context: user space.
 * Return: true if so, and always with a device that does not have it.
 */
bool ext_is_done(void)
{
	return !is_extended || (atomics && binds && resized);
}

/**
 * ext_close() - all connections have ended
 *
 * Context: user space.
 */
void ext_close(void)
{
	__u64 value;
	int i;

	for (i = 0; is_extended && i < 2; i++) {
		value = words[i].at[SHARED];
		if (value < words[i].count || value > words[i].count + words[i].maybe)
			fail("the sum is %llu after %llu additions and %llu that were flushed",
			     (unsigned long long)value, (unsigned long long)words[i].count,
			     (unsigned long long)words[i].maybe);
		MUST(!ibv_dereg_mr(words[i].mr));
	}
	if (is_extended)
		printf("%lu atomic operations, %lu bindings, %lu resized queues\n", atomics, binds,
		       resized);
	MUST(ext_is_done());
}

/* Atomic operations */

/* Another value than any that was in the word */
static __u64 any_value(void)
{
	static __u64 last;

	return ++last << 32 | pick(1 << 30);
}

static void do_add(struct op *op, struct word *word)
{
	op->operand = any_value();
	op->before = word->posted;
	op->after = op->before + op->operand;
	word->posted = op->after;
}

/* One of three finds another value than it compares with. */
static void do_swap(struct op *op, struct word *word)
{
	op->operand = pick(3) ? word->posted : ~word->posted;
	op->swap = any_value();
	op->before = word->posted;
	op->after = op->operand == op->before ? op->swap : op->before;
	word->posted = op->after;
}

static void do_atomic(int conn, int who)
{
	struct op *op = new_op(pick(2) ? FETCH_ADD : CMP_SWAP, conn, who, 8);
	struct word *word = &conns[conn].halves[who].word;

	op->is_shared = op->kind == FETCH_ADD && pick(2);
	if (op->is_shared)
		op->operand = 1;
	else if (op->kind == FETCH_ADD)
		do_add(op, word);
	else
		do_swap(op, word);
	memset(memory(who, op->slot), 0xcc, op->size);
	post(op, (unsigned long)&words[!who].at[op->is_shared ? SHARED : conn],
	     words[!who].mr->rkey);
	atomics++;
}

static void see(struct words *w, __u64 value)
{
	if (value >= COUNT_MAX || w->seen[value / 8] >> value % 8 & 1)
		fail("%llu was found more than once", (unsigned long long)value);
	w->seen[value / 8] |= 1 << value % 8;
	w->count++;
}

static void atomic_done(const struct op *op)
{
	__u64 value = *(__u64 *)memory(op->end, op->slot);

	if (op->is_shared) {
		see(&words[!op->end], value);
		return;
	}
	if (value != op->before)
		fail("an operation found %#llx, not %#llx", (unsigned long long)value,
		     (unsigned long long)op->before);
	conns[op->conn].halves[op->end].word.done = op->after;
}

static void atomic_failed(const struct op *op)
{
	struct word *word = &conns[op->conn].halves[op->end].word;

	if (op->is_shared) {
		words[!op->end].maybe++;
		return;
	}
	MUST(word->count < (int)ARRAY_SIZE(word->maybe));
	word->maybe[word->count++] = op->after;
}

/* The process itself adds to the words of everybody, too. */
static void add_locally(int who)
{
	see(&words[who], __atomic_fetch_add(&words[who].at[SHARED], 1, __ATOMIC_SEQ_CST));
}

/* Memory windows */

static struct ibv_mw_bind_info bind_info(const struct window *window, int who, bool is_zero_based)
{
	return (struct ibv_mw_bind_info) {
		.mr = hosts[who].mr, .addr = (unsigned long)memory(who, window->slot),
		.length = SLOT,
		.mw_access_flags = RIGHTS | (is_zero_based ? IBV_ACCESS_ZERO_BASED : 0),
	};
}

static void bind_type_1(struct op *op, struct window *window, struct ibv_qp *qp)
{
	struct ibv_mw_bind bind = {
		.wr_id = id_of(op), .send_flags = post_flags(op),
		.bind_info = bind_info(window, op->end, false),
	};

	MUST(!ibv_bind_mw(qp, window->mw, &bind));
	window->stag = window->mw->rkey;
	window->base = bind.bind_info.addr;
}

static void bind_type_2(struct op *op, struct window *window, struct ibv_qp *qp)
{
	bool is_zero_based = pick(2);
	struct ibv_send_wr wr = {
		.wr_id = id_of(op), .opcode = IBV_WR_BIND_MW, .send_flags = post_flags(op),
		.bind_mw = {
			.mw = window->mw, .rkey = ibv_inc_rkey(window->stag),
			.bind_info = bind_info(window, op->end, is_zero_based),
		},
	}, *bad;

	MUST(!ibv_post_send(qp, &wr, &bad));
	window->stag = wr.bind_mw.rkey;
	window->base = is_zero_based ? 0 : wr.bind_mw.bind_info.addr;
}

static void do_bind(int conn, int who)
{
	struct window *window = &conns[conn].halves[who].window;
	struct op *op = op_get(BIND, conn, who);

	window->slot = slot_get(who, conn);
	window->state = BINDING;
	if (window->mw->type == IBV_MW_TYPE_1)
		bind_type_1(op, window, conns[conn].ends[who].id->qp);
	else
		bind_type_2(op, window, conns[conn].ends[who].id->qp);
	binds++;
}

static void do_invalidate(int conn, int who)
{
	struct window *window = &conns[conn].halves[who].window;
	struct op *op = op_get(INVALIDATE, conn, who);

	op->stag = window->stag;
	window->state = ENDING;
	post(op, 0, 0);
}

/* The end of a window goes on with it. Without a use, it may also end the binding. */
static void next_state(int conn, int who)
{
	struct window *window = &conns[conn].halves[who].window;
	bool is_type_1 = window->mw->type == IBV_MW_TYPE_1;

	if (window->state == UNBOUND || (window->state == SPENT && is_type_1))
		do_bind(conn, who);
	else if (!is_type_1 && (window->state == SPENT || (window->state == BOUND && !pick(8))))
		do_invalidate(conn, who);
}

/**
 * window_target() - use the peer's window for a Write or Read, if it is bound, or else its region
 * @conn: the connection
 * @who: the end that posts
 * @remote: set to the tagged offset
 * @rkey: set to the STag
 *
 * Context: user space.
 * Return: the slot of the peer.
 */
int window_target(int conn, int who, __u64 *remote, __u32 *rkey)
{
	struct window *window = &conns[conn].halves[!who].window;
	int slot;

	if (window->state == BOUND && pick(4)) {
		window->state = IN_USE;
		*remote = window->base;
		*rkey = window->stag;
		return window->slot;
	}
	slot = slot_get(!who, conn);
	*remote = (unsigned long)memory(!who, slot);
	*rkey = hosts[!who].mr->rkey;
	return slot;
}

/**
 * window_used() - a Write or Read has used a slot, and perhaps a window for that
 * @half: the end that has the slot and the window
 * @slot: the slot
 *
 * Context: user space.
 */
void window_used(struct half *half, int slot)
{
	struct window *window = &half->window;

	if (!window->mw || window->slot != slot)
		return;
	window->slot = NOBODY;
	if (window->state == IN_USE)
		window->state = SPENT;
}

/**
 * window_revoke() - let a Send invalidate the peer's window
 * @half: the end that has the window
 * @is_last_use: the Write that used the window was posted before the Send, and nothing else uses it
 *
 * Context: user space.
 * Return: the STag, or 0: not now.
 */
__u32 window_revoke(struct half *half, bool is_last_use)
{
	struct window *window = &half->window;

	if (!window->mw || window->mw->type == IBV_MW_TYPE_1 || pick(2))
		return 0;
	if (window->state != BOUND && window->state != SPENT && !is_last_use)
		return 0;
	window->state = ENDING;
	return window->stag;
}

/**
 * window_revoked() - a window has been invalidated
 * @conn: the connection
 * @who: the end that has the window
 * @stag: its STag
 *
 * If nobody has used it, its slot is free only now.
 *
 * Context: user space.
 */
void window_revoked(int conn, int who, __u32 stag)
{
	struct window *window = &conns[conn].halves[who].window;

	if (window->state != ENDING || window->stag != stag)
		fail("%#x was invalidated; state %d, %#x", stag, window->state, window->stag);
	window->state = UNBOUND;
	if (window->slot != NOBODY)
		slot_put(who, window->slot);
	window->slot = NOBODY;
}

/**
 * wrong_stag() - find an STag that an end must not use
 * @conn: the connection
 * @who: the end
 *
 * Context: user space.
 * Return: that of a window of the peer which is not bound, or none.
 */
__u32 wrong_stag(int conn, int who)
{
	const struct window *window = &conns[conn].halves[!who].window;

	if (window->mw && window->state == UNBOUND && pick(4))
		return window->stag;
	return hosts[!who].mr->rkey ^ 0x5a00;
}

/* Everything */

/**
 * ext_sent() - a work request has completed with success
 * @op: the work request
 *
 * Context: user space.
 */
void ext_sent(const struct op *op)
{
	struct window *window = &conns[op->conn].halves[op->end].window;

	if (is_atomic(op)) {
		atomic_done(op);
	} else if (op->kind == BIND) {
		MUST(window->state == BINDING);
		window->state = BOUND;
	} else if (op->kind == INVALIDATE) {
		window_revoked(op->conn, op->end, op->stag);
	} else if (op->kind == READ) {
		window_used(&conns[op->conn].halves[!op->end], op->remote);
	}
}

/**
 * ext_failed() - a work request was flushed, or its queue pair destroyed
 * @op: the work request
 *
 * Context: user space.
 */
void ext_failed(const struct op *op)
{
	if (is_atomic(op))
		atomic_failed(op);
}

/**
 * ext_act() - post an atomic operation, or do something with a window
 * @conn: the connection
 * @who: the end
 *
 * Context: user space.
 */
void ext_act(int conn, int who)
{
	if (pick(2))
		next_state(conn, who);
	else
		do_atomic(conn, who);
	if (!pick(16))
		add_locally(who);
}

/**
 * ext_resize() - resize any queue
 *
 * Context: user space.
 */
void ext_resize(void)
{
	struct ibv_srq_attr attr = { .max_wr = SRQ_SLOTS << pick(3) };
	struct host *host = &hosts[pick(2)];
	int ret;

	if (pick(2)) {
		ret = ibv_resize_cq(host->cqs[pick(CQS)], CQ_SLOTS / 2 << pick(3));
		/* A queue with that many completions stays as it is. */
		MUST(!ret || ret == EBUSY);
	} else {
		MUST(!ibv_modify_srq(host->srqs[pick(SRQS)], &attr, IBV_SRQ_MAX_WR));
	}
	resized++;
}
