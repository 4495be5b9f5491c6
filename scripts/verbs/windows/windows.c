// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * windows CASE: memory windows of processes, on devices of the link type kiwarp-ext. One case:
 *
 *   limits   attributes, and what alloc_mw refuses
 *   matrix   all combinations of what has happened to a window, who uses it and how, with one
 *	      connection each
 *   rights   a window grants what it was bound with, inside of its range, and nothing else
 *   binds    bindings that are refused, each of which ends the connection
 *   inval    which STags can be invalidated, and by whom
 *   local    a window is no lkey
 *   edges    windows at both ends of regions, and of all offsets
 *   reconnected  QPs that are reset and connected again
 *   abandoned  a region whose registration fails has no windows (needs userfaultfd)
 *   busy     a region with a window can neither be deregistered nor re-registered
 *   anew     windows of a region that was re-registered
 *   many     1000 windows of one region, bound and left to the end of the process
 *   exit     a process that is killed leaves no right behind
 *   race SECONDS  bindings begin and end at random times while the peer writes: nothing is placed
 *	      after the completion that ends a binding
 *
 * Side b has the memory and the windows, and side a uses them.
 */
#include "windows.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define DEPTH		64
#define MOVED		(2 * PAGE - 40)	/* where it is after it was bound again */
#define PORT		7804

enum user { OWN_QP, OTHER_QP, OTHER_PD, USERS };

/* What has happened to a window before it is used */
enum past {
	FRESH, BOUND, ZERO_BASED, REBOUND, REBOUND_OLD, INVALIDATED, PEER_INVALIDATED, DEALLOCATED,
	DEREG_TRIED, REREG_TRIED, QP_GONE, QP_REPLACED, PASTS,
};

static const char * const use_names[USES] = { "Write", "Read", "atomic" };
static const char * const user_names[USERS] = { "own QP", "other QP", "other domain" };
static const char * const past_names[PASTS] = {
	"fresh", "bound", "zero-based", "bound again", "bound again, old STag", "invalidated",
	"invalidated by the peer", "deallocated", "deregistration tried", "re-registration tried",
	"QP destroyed", "QP replaced",
};

struct world w;

static void *shared(size_t size)
{
	void *mem = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	MUST(mem != MAP_FAILED);
	return mem;
}

/* @room: of side b, or NULL */
static void open_world(__u8 *room, __u16 port)
{
	side_open(&w.sides[0], "a", "10.77.0.1", port);
	side_open(&w.sides[1], "b", "10.77.0.2", port);
	w.other = w.sides[1];
	w.other.pd = ibv_alloc_pd(w.sides[1].listener->verbs);
	MUST(w.other.pd);
	w.room[0] = pages(ROOM);
	w.room[1] = room ? room : pages(ROOM);
	w.mr[0] = reg(w.sides[0].pd, w.room[0], ROOM, IBV_ACCESS_LOCAL_WRITE);
	/* No remote right: those of a window do not come from its region. */
	w.mr[1] = reg(w.sides[1].pd, w.room[1], ROOM, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
}

/**
 * link_to() - connect side a
 * @link: set to the connection
 * @to: side b, with one of its protection domains
 *
 * Context: user space.
 */
void link_to(struct link *link, const struct side *to)
{
	const struct side *sides[2] = { &w.sides[0], to };
	int i;

	for (i = 0; i < 2; i++)
		link->queues[i] = queues_of(sides[i], DEPTH);
	MUST(conn_open(link->ends, sides[0], sides[1], link->queues));
}

/**
 * unlink_all() - end a connection, and destroy its queues
 * @link: from link_to(), or all 0
 *
 * Context: user space.
 */
void unlink_all(struct link *link)
{
	int i;

	if (!link->queues[0].scq)
		return;
	for (i = 0; i < 2; i++)
		end_close(&link->ends[i]);
	for (i = 0; i < 2; i++)
		queues_close(&link->queues[i]);
	memset(link, 0, sizeof(*link));
}

static struct ibv_qp *qp_of(const struct link *link, int who)
{
	return link->ends[who].id->qp;
}

/* Completion of work request @id of an end */
static enum ibv_wc_status status_of(const struct link *link, int who, __u64 id)
{
	struct ibv_wc wc;

	complete(link->queues[who].scq, &wc);
	if (wc.wr_id != id)
		fail("completion of %llu instead of %llu", (unsigned long long)wc.wr_id,
		     (unsigned long long)id);
	return wc.status;
}

/**
 * run() - post a work request and wait for its completion
 * @link: connection
 * @who: end that posts it
 * @wr: work request; its number and the flag that asks for a completion are set
 *
 * Context: user space.
 * Return: status of the completion.
 */
enum ibv_wc_status run(const struct link *link, int who, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;

	wr->wr_id = 7;
	wr->send_flags |= IBV_SEND_SIGNALED;
	MUST(!ibv_post_send(qp_of(link, who), wr, &bad));
	return status_of(link, who, 7);
}

/* Binding and invalidating */

static __u32 next_key(__u32 rkey)
{
	return (rkey & ~0xffu) | ((rkey + 1) & 0xff);
}

static struct ibv_mw_bind_info place(long at, __u64 length, int access)
{
	return (struct ibv_mw_bind_info) {
		.mr = w.mr[1], .addr = (unsigned long)w.room[1] + at, .length = length,
		.mw_access_flags = access,
	};
}

static enum ibv_wc_status bind_to(const struct link *link, struct window *window, __u32 rkey,
				  struct ibv_mw_bind_info info)
{
	struct ibv_send_wr wr = {
		.opcode = IBV_WR_BIND_MW,
		.bind_mw = { .mw = window->mw, .rkey = rkey, .bind_info = info },
	};
	enum ibv_wc_status status = run(link, 1, &wr);

	if (status != IBV_WC_SUCCESS)
		return status;
	window->rkey = rkey;
	window->base = info.mw_access_flags & IBV_ACCESS_ZERO_BASED ? 0 : info.addr;
	window->at = info.addr - (unsigned long)w.room[1];
	return status;
}

/**
 * bind_next() - bind a window with the next key
 * @link: connection of the QP that binds it
 * @window: the window; gets its STag, and its place if the offsets of the region are addresses
 * @info: memory and rights
 *
 * Context: user space.
 * Return: status of the completion.
 */
enum ibv_wc_status bind_next(const struct link *link, struct window *window,
			     struct ibv_mw_bind_info info)
{
	return bind_to(link, window, next_key(window->rkey), info);
}

/**
 * bind_at() - bind a window to memory of side b
 * @link: connection of the QP that binds it
 * @window: the window
 * @at: where in the memory it begins
 * @access: rights
 *
 * Context: user space.
 */
void bind_at(const struct link *link, struct window *window, __u32 at, int access)
{
	MUST(!bind_next(link, window, place(at, BYTES, access)));
}

/**
 * window_of() - allocate a window
 * @side: side b, with one of its protection domains
 * @type: its type
 *
 * Context: user space.
 * Return: the window, with the place that bind_at() would give it at AT.
 */
struct window window_of(const struct side *side, enum ibv_mw_type type)
{
	struct window window = { .mw = ibv_alloc_mw(side->pd, type) };

	MUST(window.mw && window.mw->rkey);
	window.rkey = window.mw->rkey;
	window.base = (unsigned long)w.room[1] + AT;
	window.at = AT;
	return window;
}

/**
 * local_inv() - let side b invalidate an STag
 * @link: connection
 * @rkey: the STag
 *
 * Context: user space.
 * Return: status of the completion.
 */
enum ibv_wc_status local_inv(const struct link *link, __u32 rkey)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_LOCAL_INV, .invalidate_rkey = rkey };

	return run(link, 1, &wr);
}

/**
 * peer_inv() - let side a invalidate an STag of side b by a Send
 * @link: connection
 * @rkey: the STag
 *
 * Context: user space.
 * Return: status of the receive.
 */
enum ibv_wc_status peer_inv(const struct link *link, __u32 rkey)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND_WITH_INV, .invalidate_rkey = rkey };
	struct ibv_recv_wr recv = { .wr_id = 8 }, *bad;
	struct ibv_wc wc;

	MUST(!ibv_post_recv(qp_of(link, 1), &recv, &bad));
	run(link, 0, &wr);
	complete(link->queues[1].rcq, &wc);
	MUST(wc.wr_id == 8);
	if (wc.status == IBV_WC_SUCCESS)
		MUST(wc.wc_flags & IBV_WC_WITH_INV && wc.invalidated_rkey == rkey);
	return wc.status;
}

static void invalidate(const struct link *link, struct window *window, enum ibv_mw_type type)
{
	if (type == IBV_MW_TYPE_2)
		MUST(!local_inv(link, window->rkey));
	else
		MUST(!bind_to(link, window, next_key(window->rkey), place(AT, 0, 0)));
	window->at = AT;
	window->base = (unsigned long)w.room[1] + AT;
}

static int rereg_access(struct ibv_mr *mr)
{
	return rereg(mr, IBV_REREG_MR_CHANGE_ACCESS, 0, 0, IBV_ACCESS_LOCAL_WRITE);
}

/* The matrix */

/**
 * struct cell - one of all combinations
 * @type: type of the window
 * @past: what has happened to it
 * @user: which connection uses it
 * @use: how
 */
struct cell {
	enum ibv_mw_type type;
	enum past past;
	enum user user;
	enum use use;
};

static bool is_granted(const struct cell *c)
{
	switch (c->past) {
	case BOUND:
	case ZERO_BASED:
	case REBOUND:
	case DEREG_TRIED:
	case REREG_TRIED:
		break;
	case QP_GONE:
	case QP_REPLACED:
		/* The right of all of the domain does not depend on the QP. */
		if (c->type == IBV_MW_TYPE_2)
			return false;
		break;
	default:
		return false;
	}
	return c->user == OWN_QP || (c->user == OTHER_QP && c->type == IBV_MW_TYPE_1);
}

/* What a window of this type cannot go through, or this user cannot follow */
static bool is_impossible(const struct cell *c)
{
	if (c->past == ZERO_BASED || c->past == PEER_INVALIDATED)
		return c->type == IBV_MW_TYPE_1;
	return (c->past == QP_GONE && c->user == OWN_QP) ||
	       (c->past == QP_REPLACED && c->user != OWN_QP);
}

static void go_through(const struct cell *c, struct link *own, struct window *window)
{
	__u32 old;

	if (c->past == FRESH)
		return;
	bind_at(own, window, AT, REMOTE | (c->past == ZERO_BASED ? IBV_ACCESS_ZERO_BASED : 0));
	switch (c->past) {
	case REBOUND:
	case REBOUND_OLD:
		old = window->rkey;
		if (c->type == IBV_MW_TYPE_2)
			invalidate(own, window, c->type);
		bind_at(own, window, MOVED, REMOTE);
		if (c->past == REBOUND_OLD)
			window->rkey = old;
		break;
	case INVALIDATED:
		invalidate(own, window, c->type);
		break;
	case PEER_INVALIDATED:
		MUST(!peer_inv(own, window->rkey));
		break;
	case DEALLOCATED:
		MUST(!ibv_dealloc_mw(window->mw));
		window->mw = NULL;
		break;
	case DEREG_TRIED:
		MUST(ibv_dereg_mr(w.mr[1]) == EBUSY);
		break;
	case REREG_TRIED:
		MUST(rereg_access(w.mr[1]) == EBUSY);
		break;
	case QP_GONE:
		unlink_all(own);
		break;
	case QP_REPLACED:
		unlink_all(own);
		link_to(own, &w.sides[1]);
		break;
	default:
		break;
	}
}

static void try_cell(const struct cell *c)
{
	struct window window = window_of(&w.sides[1], c->type);
	struct link own = {}, user = {}, *link = &own;
	const char *problem;

	link_to(&own, &w.sides[1]);
	go_through(c, &own, &window);
	if (c->user != OWN_QP) {
		link_to(&user, c->user == OTHER_PD ? &w.other : &w.sides[1]);
		link = &user;
	}
	problem = wrong(link, &window, c->use, c->use == ATOMIC ? 8 - window.at % 8 : 3,
			is_granted(c));
	if (*problem)
		fail("type %d, %s, %s, %s: %s", c->type, past_names[c->past], user_names[c->user],
		     use_names[c->use], problem);
	unlink_all(&user);
	unlink_all(&own);
	if (window.mw)
		MUST(!ibv_dealloc_mw(window.mw));
}

static void matrix(void)
{
	struct cell c;
	int granted = 0, count = 0;

	for (c.type = IBV_MW_TYPE_1; c.type <= IBV_MW_TYPE_2; c.type++) {
		for (c.past = 0; c.past < PASTS; c.past++) {
			for (c.user = 0; c.user < USERS; c.user++) {
				for (c.use = 0; c.use < USES; c.use++) {
					if (is_impossible(&c))
						continue;
					try_cell(&c);
					granted += is_granted(&c);
					count++;
				}
			}
		}
	}
	printf("%d cells, %d of them granted\n", count, granted);
}

/* Other cases */

static void limits(void)
{
	struct ibv_context *ctx = w.sides[1].listener->verbs;
	struct ibv_device_attr attr;
	struct ibv_mw *first, *second;

	MUST(!ibv_query_device(ctx, &attr));
	MUST(attr.max_mw == 1 << 20);
	MUST(attr.device_cap_flags & IBV_DEVICE_MEM_WINDOW);
	MUST(attr.device_cap_flags & IBV_DEVICE_MEM_WINDOW_TYPE_2B);
	MUST(!(attr.device_cap_flags & IBV_DEVICE_MEM_WINDOW_TYPE_2A));
	MUST(!ibv_alloc_mw(w.sides[1].pd, 0) && !ibv_alloc_mw(w.sides[1].pd, 3));
	first = ibv_alloc_mw(w.sides[1].pd, IBV_MW_TYPE_1);
	second = ibv_alloc_mw(w.sides[1].pd, IBV_MW_TYPE_2);
	MUST(first && second && first->rkey && second->rkey);
	MUST(first->rkey >> 8 != second->rkey >> 8);
	/* The domain is busy. */
	MUST(ibv_dealloc_pd(w.sides[1].pd));
	MUST(!ibv_dealloc_mw(second) && !ibv_dealloc_mw(first));
}

/* One use of a window with @access, @off bytes from its begin */
static void try_right(enum ibv_mw_type type, int access, enum use use, int off, bool is_granted)
{
	struct window window = window_of(&w.sides[1], type);
	struct link link = {};
	const char *problem;

	link_to(&link, &w.sides[1]);
	bind_at(&link, &window, AT, access);
	problem = wrong(&link, &window, use, off, is_granted);
	if (*problem)
		fail("type %d, access %#x, %s at %d: %s", type, access, use_names[use], off,
		     problem);
	unlink_all(&link);
	MUST(!ibv_dealloc_mw(window.mw));
}

static void rights(void)
{
	static const int needs[USES] = {
		IBV_ACCESS_REMOTE_WRITE, IBV_ACCESS_REMOTE_READ, IBV_ACCESS_REMOTE_ATOMIC,
	};
	/* The region's memory goes on before and behind the window. */
	static const int beyond[] = { -8, BYTES - 7, BYTES - SIZE + 1, BYTES, BYTES + 8 };
	enum ibv_mw_type type;
	enum use use;
	size_t i;
	int access, zero;

	for (type = IBV_MW_TYPE_1; type <= IBV_MW_TYPE_2; type++) {
		for (use = 0; use < USES; use++) {
			for (access = 0; access < 16; access++)
				try_right(type, access, use, 0, access & needs[use]);
			for (zero = 0; zero < (int)type; zero++) {
				access = REMOTE | (zero ? IBV_ACCESS_ZERO_BASED : 0);
				for (i = 0; i < ARRAY_SIZE(beyond); i++)
					if (use != ATOMIC || beyond[i] % 8 == 0)
						try_right(type, access, use, beyond[i], false);
				/* The last octets of it */
				try_right(type, access, use, use == ATOMIC ? BYTES - 8 :
							     BYTES - SIZE, true);
			}
		}
	}
}

/* @info and @rkey are refused, and the window is as before. */
static void refuse(const char *what, enum ibv_mw_type type, __u32 flip, bool is_bound,
		   struct ibv_mw_bind_info info)
{
	struct window window = window_of(&w.sides[1], type);
	enum ibv_wc_status status;
	struct link link = {};
	const char *problem;

	link_to(&link, &w.sides[1]);
	if (is_bound)
		bind_at(&link, &window, AT, REMOTE);
	status = bind_to(&link, &window, next_key(window.rkey) ^ flip, info);
	if (status != IBV_WC_MW_BIND_ERR)
		fail("%s: %s", what, ibv_wc_status_str(status));
	unlink_all(&link);
	if (type == IBV_MW_TYPE_1) {
		link_to(&link, &w.sides[1]);
		problem = wrong(&link, &window, RDMA_WRITE, 0, is_bound);
		if (*problem)
			fail("%s, then: %s", what, problem);
		unlink_all(&link);
	}
	MUST(!ibv_dealloc_mw(window.mw));
}

static struct ibv_mw_bind_info place_in(struct ibv_mr *mr, int access)
{
	struct ibv_mw_bind_info info = place(AT, BYTES, access);

	info.mr = mr;
	return info;
}

static void refuse_regions(enum ibv_mw_type type)
{
	struct ibv_mr *none = reg(w.sides[1].pd, w.room[1], ROOM, IBV_ACCESS_LOCAL_WRITE);
	struct ibv_mr *reads = reg(w.sides[1].pd, w.room[1], ROOM, IBV_ACCESS_MW_BIND);
	struct ibv_mr *other = reg(w.other.pd, w.room[1], ROOM,
				   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
	struct window window = window_of(&w.sides[1], type);
	struct ibv_mr false_mr = *w.mr[1];
	struct link link = {};

	refuse("no right to bind", type, 0, false, place_in(none, IBV_ACCESS_REMOTE_READ));
	refuse("a window to write", type, 0, false, place_in(reads, IBV_ACCESS_REMOTE_WRITE));
	refuse("one for atomics", type, 0, false, place_in(reads, IBV_ACCESS_REMOTE_ATOMIC));
	refuse("region of another domain", type, 0, false,
	       place_in(other, IBV_ACCESS_REMOTE_READ));
	link_to(&link, &w.sides[1]);
	MUST(!bind_to(&link, &window, next_key(window.rkey),
		      place_in(reads, IBV_ACCESS_REMOTE_READ)));
	false_mr.lkey = window.rkey;
	refuse("a window of a window", type, 0, false, place_in(&false_mr, 0));
	false_mr.lkey = w.mr[1]->lkey ^ 1;
	refuse("a wrong key", type, 0, false, place_in(&false_mr, 0));
	false_mr.lkey = 0;
	refuse("region 0", type, 0, false, place_in(&false_mr, 0));
	unlink_all(&link);
	MUST(!ibv_dealloc_mw(window.mw));
	MUST(!ibv_dereg_mr(none) && !ibv_dereg_mr(reads) && !ibv_dereg_mr(other));
}

static void binds(void)
{
	enum ibv_mw_type type;
	__u32 allowed;
	bool is_2;
	int i;

	for (type = IBV_MW_TYPE_1; type <= IBV_MW_TYPE_2; type++) {
		is_2 = type == IBV_MW_TYPE_2;
		allowed = IBV_ACCESS_LOCAL_WRITE | REMOTE | (is_2 ? IBV_ACCESS_ZERO_BASED : 0);
		refuse_regions(type);
		refuse("before the region", type, 0, !is_2, place(-1, BYTES, 0));
		refuse("behind the region", type, 0, !is_2, place(ROOM - BYTES + 1, BYTES, 0));
		refuse("too long", type, 0, !is_2, place(0, ROOM + 1, 0));
		refuse("around 2^64", type, 0, !is_2, place(AT, -AT, 0));
		refuse("another index", type, 0x100, !is_2, place(AT, BYTES, 0));
		for (i = 0; i < 32; i++)
			if (!(allowed & 1u << i))
				refuse("access", type, 0, !is_2, place(AT, BYTES, 1u << i));
	}
	refuse("bound already", IBV_MW_TYPE_2, 0, true, place(AT, BYTES, REMOTE));
	refuse("length 0", IBV_MW_TYPE_2, 0, false, place(AT, 0, REMOTE));
}

/* Who tries to invalidate what */
static void refuse_inv(const char *what, bool by_peer, bool on_other, __u32 rkey,
		       const struct link *owner)
{
	struct link link = {};
	enum ibv_wc_status status;

	if (on_other)
		link_to(&link, &w.sides[1]);
	status = by_peer ? peer_inv(on_other ? &link : owner, rkey) :
			   local_inv(on_other ? &link : owner, rkey);
	if (status != (by_peer ? IBV_WC_GENERAL_ERR : IBV_WC_MW_BIND_ERR))
		fail("%s: %s", what, ibv_wc_status_str(status));
	unlink_all(&link);
}

static void inval(void)
{
	struct ibv_mr *open = reg(w.sides[1].pd, w.room[1], ROOM, IBV_ACCESS_LOCAL_WRITE | REMOTE);
	struct window first = window_of(&w.sides[1], IBV_MW_TYPE_1);
	struct window second = window_of(&w.sides[1], IBV_MW_TYPE_2);
	struct window other = window_of(&w.other, IBV_MW_TYPE_2);
	struct link link = {}, next = {};
	const char *problem;

	link_to(&link, &w.sides[1]);
	bind_at(&link, &first, AT, REMOTE);
	bind_at(&link, &second, AT, REMOTE);
	refuse_inv("region, by the owner", false, true, open->rkey, NULL);
	refuse_inv("region, by the peer", true, true, open->rkey, NULL);
	refuse_inv("type 1, by the owner", false, true, first.rkey, NULL);
	refuse_inv("type 1, by the peer", true, true, first.rkey, NULL);
	refuse_inv("type 2 of another stream, by the peer", true, true, second.rkey, NULL);
	refuse_inv("another key, by the owner", false, true, next_key(second.rkey), NULL);
	refuse_inv("another domain, by the owner", false, true, other.rkey, NULL);
	refuse_inv("STag 0, by the owner", false, true, 0, NULL);
	/* All that had no effect. */
	problem = wrong(&link, &second, RDMA_WRITE, 0, true);
	if (*problem)
		fail("type 2: %s", problem);
	problem = wrong(&link, &first, RDMA_WRITE, 0, true);
	if (*problem)
		fail("type 1: %s", problem);
	/* What has been invalidated may be invalidated by the owner once more, and bound again. */
	MUST(!peer_inv(&link, second.rkey) && !local_inv(&link, second.rkey));
	bind_at(&link, &second, AT, REMOTE);
	/* Another QP of the owner may, too. */
	link_to(&next, &w.sides[1]);
	MUST(!local_inv(&next, second.rkey));
	bind_at(&next, &second, AT, REMOTE);
	refuse_inv("type 2 after it moved, by the former peer", true, false, second.rkey, &link);
	problem = wrong(&next, &second, RDMA_READ, 0, true);
	if (*problem)
		fail("type 2, moved: %s", problem);
	unlink_all(&next);
	unlink_all(&link);
	MUST(!ibv_dealloc_mw(first.mw) && !ibv_dealloc_mw(second.mw) && !ibv_dealloc_mw(other.mw));
	MUST(!ibv_dereg_mr(open));
}

/* A work request of side b that uses a window as its own memory */
static void refuse_lkey(const char *what, enum ibv_mw_type type, enum ibv_wr_opcode opcode)
{
	struct window window = window_of(&w.sides[1], type);
	struct ibv_recv_wr recv = { .wr_id = 8 }, *bad;
	struct link link = {};
	struct ibv_sge sge;
	struct ibv_send_wr wr = { .opcode = opcode, .sg_list = &sge, .num_sge = 1 };
	enum ibv_wc_status status;

	link_to(&link, &w.sides[1]);
	bind_at(&link, &window, AT, IBV_ACCESS_LOCAL_WRITE | REMOTE);
	sge = (struct ibv_sge) { window.base, 8, window.rkey };
	MUST(!ibv_post_recv(qp_of(&link, 0), &recv, &bad));
	status = run(&link, 1, &wr);
	if (status != IBV_WC_LOC_PROT_ERR)
		fail("%s, type %d: %s", what, type, ibv_wc_status_str(status));
	unlink_all(&link);
	MUST(!ibv_dealloc_mw(window.mw));
}

static void local(void)
{
	enum ibv_mw_type type;

	for (type = IBV_MW_TYPE_1; type <= IBV_MW_TYPE_2; type++) {
		refuse_lkey("Send", type, IBV_WR_SEND);
		refuse_lkey("Write", type, IBV_WR_RDMA_WRITE);
		refuse_lkey("Read", type, IBV_WR_RDMA_READ);
		refuse_lkey("FetchAdd", type, IBV_WR_ATOMIC_FETCH_AND_ADD);
	}
}

static void busy(void)
{
	struct ibv_mr *mr = reg(w.sides[1].pd, w.room[1], ROOM, IBV_ACCESS_MW_BIND);
	struct window windows[2] = {
		window_of(&w.sides[1], IBV_MW_TYPE_1), window_of(&w.sides[1], IBV_MW_TYPE_2),
	};
	struct link link = {};
	int i;

	link_to(&link, &w.sides[1]);
	for (i = 0; i < 2; i++)
		MUST(!bind_to(&link, &windows[i], next_key(windows[i].rkey), place_in(mr, 0)));
	MUST(ibv_dereg_mr(mr) == EBUSY && rereg_access(mr) == EBUSY);
	MUST(!ibv_dealloc_mw(windows[0].mw));
	MUST(ibv_dereg_mr(mr) == EBUSY && rereg_access(mr) == EBUSY);
	/* One of type 1 that is bound to another region leaves the first. */
	windows[0] = window_of(&w.sides[1], IBV_MW_TYPE_1);
	MUST(!bind_to(&link, &windows[0], next_key(windows[0].rkey), place_in(mr, 0)));
	MUST(!local_inv(&link, windows[1].rkey));
	MUST(ibv_dereg_mr(mr) == EBUSY);
	bind_at(&link, &windows[0], AT, REMOTE);
	MUST(!rereg_access(mr));
	MUST(!ibv_dereg_mr(mr));
	unlink_all(&link);
	for (i = 0; i < 2; i++)
		MUST(!ibv_dealloc_mw(windows[i].mw));
}

static void use_anew(struct ibv_mr *mr, const struct side *side, enum ibv_mw_type type)
{
	struct window window = window_of(side, type);
	struct link link = {};
	const char *problem;

	link_to(&link, side);
	MUST(!bind_next(&link, &window, place_in(mr, IBV_ACCESS_REMOTE_WRITE)));
	problem = wrong(&link, &window, RDMA_WRITE, 0, true);
	if (*problem)
		fail("type %d: %s", type, problem);
	MUST(ibv_dereg_mr(mr) == EBUSY);
	unlink_all(&link);
	MUST(!ibv_dealloc_mw(window.mw));
}

/* The core frees its part of the former region, whose object the new one has for the core. */
static void anew(void)
{
	const int rights = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND;
	static const int flags[] = {
		IBV_REREG_MR_CHANGE_ACCESS, IBV_REREG_MR_CHANGE_TRANSLATION,
		IBV_REREG_MR_CHANGE_PD,
	};
	struct ibv_mr *mr = reg(w.sides[1].pd, w.room[1], ROOM, rights);
	const struct side *side = &w.sides[1];
	size_t i;

	for (i = 0; i < ARRAY_SIZE(flags); i++) {
		if (flags[i] == IBV_REREG_MR_CHANGE_PD)
			side = &w.other;
		mr->pd = side->pd;
		MUST(!rereg(mr, flags[i], (unsigned long)w.room[1], ROOM, rights));
		use_anew(mr, side, IBV_MW_TYPE_1);
		use_anew(mr, side, IBV_MW_TYPE_2);
	}
	MUST(!ibv_dereg_mr(mr));
}

static void many(void)
{
	struct link link = {};
	struct window window;
	int i;

	link_to(&link, &w.sides[1]);
	for (i = 0; i < 1000; i++) {
		window = window_of(&w.sides[1], i % 2 ? IBV_MW_TYPE_2 : IBV_MW_TYPE_1);
		bind_at(&link, &window, i % (ROOM - BYTES), REMOTE);
	}
	MUST(ibv_dereg_mr(w.mr[1]) == EBUSY);
}

/**
 * struct told - what a process tells about its windows before it is killed
 * @windows: one of each type
 * @is_set: they are bound
 */
struct told {
	struct window windows[2];
	bool is_set;
};

static void live(struct told *told, __u8 *room)
{
	struct link link = {};
	int i;

	open_world(room, PORT + 1);
	link_to(&link, &w.sides[1]);
	for (i = 0; i < 2; i++) {
		told->windows[i] = window_of(&w.sides[1], i ? IBV_MW_TYPE_2 : IBV_MW_TYPE_1);
		bind_at(&link, &told->windows[i], AT, REMOTE);
	}
	__atomic_store_n(&told->is_set, true, __ATOMIC_RELEASE);
	for (;;)
		pause();
}

/* Called before the world is opened */
static void at_exit(void)
{
	struct told *told = shared(sizeof(*told));
	double until = now() + patience();
	__u8 *room = shared(ROOM);
	struct link link = {};
	const char *problem;
	pid_t child;
	enum use use;
	int i;

	child = fork();
	MUST(child >= 0);
	if (!child)
		live(told, room);
	while (!__atomic_load_n(&told->is_set, __ATOMIC_ACQUIRE) && now() < until)
		rest();
	MUST(told->is_set && !kill(child, SIGKILL) && waitpid(child, NULL, 0) == child);
	open_world(room, PORT);
	for (i = 0; i < 2; i++) {
		for (use = 0; use < USES; use++) {
			link_to(&link, &w.sides[1]);
			problem = wrong(&link, &told->windows[i], use,
					use == ATOMIC ? 8 - AT % 8 : 0, false);
			if (*problem)
				fail("type %d, %s: %s", i + 1, use_names[use], problem);
			unlink_all(&link);
		}
	}
}

/* Races */

/**
 * struct racer - state of the race
 * @link: the connection in use
 * @over: ends the thread
 * @rkey: STag that the peer uses, or 0
 * @writes: number of Writes
 */
static struct racer {
	struct link link;
	bool over;
	__u32 rkey;
	unsigned long writes;
} r;

/* Side a writes with the STag that it was told last, as fast as it can, until it is refused. */
static void *write_on(void *arg)
{
	struct ibv_sge sge = { (unsigned long)w.room[0], ROOM / 2, w.mr[0]->lkey };
	struct ibv_send_wr wr = {
		.opcode = IBV_WR_RDMA_WRITE, .sg_list = &sge, .num_sge = 1,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { .remote_addr = (unsigned long)w.room[1] + PAGE },
	};
	struct ibv_send_wr *bad;
	struct ibv_wc wc;

	(void)arg;
	while (!__atomic_load_n(&r.over, __ATOMIC_RELAXED)) {
		wr.wr.rdma.rkey = __atomic_load_n(&r.rkey, __ATOMIC_RELAXED);
		if (!wr.wr.rdma.rkey || ibv_post_send(qp_of(&r.link, 0), &wr, &bad)) {
			rest();
			continue;
		}
		r.writes++;
		complete(r.link.queues[0].scq, &wc);
		if (wc.status)
			return NULL;
	}
	return NULL;
}

/* Ends the binding in one of the ways that its type has, then deregisters the region. */
static void end_binding(int how, struct window *window, enum ibv_mw_type type,
			const struct link *link, struct ibv_mr **mr)
{
	struct ibv_mw_bind_info elsewhere = {
		.mr = w.mr[1], .addr = (unsigned long)w.room[1], .length = PAGE,
		.mw_access_flags = IBV_ACCESS_REMOTE_READ,
	};

	if (how == 0) {
		MUST(!ibv_dealloc_mw(window->mw));
		window->mw = NULL;
	} else if (type == IBV_MW_TYPE_2) {
		MUST(!local_inv(link, window->rkey));
	} else if (how == 1) {
		MUST(!bind_to(link, window, next_key(window->rkey), place(AT, 0, 0)));
	} else {
		MUST(!bind_to(link, window, next_key(window->rkey), elsewhere));
	}
	/* No window is bound to the region any more. */
	MUST(!ibv_dereg_mr(*mr));
	*mr = NULL;
}

static void quiet_for(double seconds)
{
	double until = now() + seconds;
	__u32 i;

	do {
		rest();
		for (i = 0; i < ROOM; i++)
			if (w.room[1][i] != 0x11)
				fail("octet %u was placed after the end", i);
	} while (now() < until);
}

/*
 * One binding, which the peer uses until the binding ends. A Write after that ends the peer's
 * connection, r.link. So a work request that ends the binding is posted to another QP.
 */
static void one_race(int how, enum ibv_mw_type type)
{
	struct ibv_mr *mr = reg(w.sides[1].pd, w.room[1], ROOM,
				IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
	struct window window = window_of(&w.sides[1], type);
	struct link link = {};
	double until;
	pthread_t thread;
	__u32 delay;

	link_to(&link, &w.sides[1]);
	link_to(&r.link, &w.sides[1]);
	r.over = false;
	MUST(!pthread_create(&thread, NULL, write_on, NULL));
	MUST(!bind_to(&r.link, &window, next_key(window.rkey), (struct ibv_mw_bind_info) {
		.mr = mr, .addr = (unsigned long)w.room[1], .length = ROOM,
		.mw_access_flags = IBV_ACCESS_REMOTE_WRITE,
	}));
	__atomic_store_n(&r.rkey, window.rkey, __ATOMIC_RELAXED);
	until = now() + patience();
	while (!__atomic_load_n(w.room[1] + PAGE, __ATOMIC_RELAXED) && now() < until)
		rest();
	MUST(__atomic_load_n(w.room[1] + PAGE, __ATOMIC_RELAXED));
	for (delay = pick(200); delay; delay--)
		rest();
	end_binding(how, &window, type, &link, &mr);
	memset(w.room[1], 0x11, ROOM);
	quiet_for(0.002);
	__atomic_store_n(&r.over, true, __ATOMIC_RELAXED);
	MUST(!pthread_join(thread, NULL));
	quiet_for(0);
	__atomic_store_n(&r.rkey, 0, __ATOMIC_RELAXED);
	unlink_all(&r.link);
	unlink_all(&link);
	if (window.mw)
		MUST(!ibv_dealloc_mw(window.mw));
}

static void race(double seconds)
{
	double until = now() + seconds;
	int count = 0;

	memset(w.room[0], 0x77, ROOM);
	while (now() < until || count < 12) {
		memset(w.room[1], 0, ROOM);
		one_race(count % 3, count % 2 ? IBV_MW_TYPE_2 : IBV_MW_TYPE_1);
		count++;
	}
	printf("%d bindings, %lu Writes\n", count, r.writes);
}

/**
 * main() - see the head of the file
 * @argc: number of arguments, with the name of the program
 * @argv: the case
 *
 * Context: user space.
 * Return: 0, or 1 when something was wrong.
 */
int main(int argc, char **argv)
{
	static const struct case_of cases[] = {
		{ "limits", limits }, { "matrix", matrix }, { "rights", rights },
		{ "binds", binds }, { "inval", inval }, { "local", local }, { "busy", busy },
		{ "anew", anew }, { "many", many }, { "edges", edges },
		{ "reconnected", reconnected }, { "abandoned", abandoned },
	};

	if (argc == 2 && !strcmp(argv[1], "exit")) {
		at_exit();
		return 0;
	}
	open_world(NULL, PORT);
	if (argc == 3 && !strcmp(argv[1], "race")) {
		race(atof(argv[2]));
		return 0;
	}
	MUST(argc == 2);
	run_case(cases, ARRAY_SIZE(cases), argv[1]);
	return 0;
}
