// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The peer state machine of kiwarp_ip: a second copy of the table, invariants of every entry,
 * and a model of two ends whose Requests cross, which tries every order of events.
 */
#include "proto/peer_fsm.c"

#include <linux/jhash.h>
#include <linux/vmalloc.h>

#include "util.h"

static bool has_connection(unsigned int state)
{
	return state == KIP_PS_RESOLVING || state == KIP_PS_REQ_SENT ||
	       state == KIP_PS_ACCEPTING || state == KIP_PS_UP;
}

/* Columns are events in the order of the enum: . same state, - not legal, else the next state */
static const char * const transitions[KIP_PS_COUNT] = {
	/*			  wish..timeout */
	[KIP_PS_NONE]		= "R--AA------",
	[KIP_PS_RESOLVING]	= ".Q-AA---B-B",
	[KIP_PS_REQ_SENT]	= ".-UA.-YBB-B",
	[KIP_PS_YIELDED]	= ".--AA-----B",
	[KIP_PS_ACCEPTING]	= ".-UAA.--B-B",
	[KIP_PS_UP]		= ".--AA.--BN-",
	[KIP_PS_BACKOFF]	= ".--AA-----N",
};

static const char letters[KIP_PS_COUNT] = {
	[KIP_PS_NONE] = 'N', [KIP_PS_RESOLVING] = 'R', [KIP_PS_REQ_SENT] = 'Q',
	[KIP_PS_YIELDED] = 'Y', [KIP_PS_ACCEPTING] = 'A', [KIP_PS_UP] = 'U', [KIP_PS_BACKOFF] = 'B',
};

static void every_cell_is_as_designed(struct kunit *test)
{
	unsigned int s, e;

	for (s = 0; s < KIP_PS_COUNT; s++) {
		for (e = 0; e < KIP_PE_COUNT; e++) {
			const struct kip_peer_step step = kip_peer_fsm(s, e);
			const char c = transitions[s][e];

			KUNIT_EXPECT_EQ_MSG(test, step.legal, c != '-', "%u %u", s, e);
			if (c == '-' || c == '.')
				KUNIT_EXPECT_TRUE_MSG(test, step.next == s || letters[s] == c,
						      "%u %u", s, e);
			else
				KUNIT_EXPECT_EQ_MSG(test, letters[step.next], c, "%u %u", s, e);
		}
	}
}

/* One connection per peer: a transition that leaves it ends it, and no other ends one */
static void no_connection_is_lost_or_ended_twice(struct kunit *test)
{
	unsigned int s, e;

	for (s = 0; s < KIP_PS_COUNT; s++) {
		for (e = 0; e < KIP_PE_COUNT; e++) {
			const struct kip_peer_step step = kip_peer_fsm(s, e);
			const bool makes = step.actions & (KIP_PA_RESOLVE | KIP_PA_ACCEPT);
			const bool drops = step.actions & KIP_PA_DROP;

			if (!step.legal) {
				KUNIT_EXPECT_EQ(test, step.actions, 0);
				continue;
			}
			KUNIT_EXPECT_EQ_MSG(test, has_connection(step.next),
					    makes || (has_connection(s) && !drops), "%u %u", s, e);
			KUNIT_EXPECT_FALSE_MSG(test, drops && !has_connection(s), "%u %u", s, e);
			KUNIT_EXPECT_FALSE_MSG(test, makes && has_connection(s) && !drops,
					       "%u %u", s, e);
			KUNIT_EXPECT_EQ(test, step.next == KIP_PS_UP && s != KIP_PS_UP,
					!!(step.actions & KIP_PA_PUBLISH));
			/* Packets that wait are not left behind */
			if (kip_peer_state_waits(s) && !kip_peer_state_waits(step.next))
				KUNIT_EXPECT_TRUE(test, step.actions &
						  (KIP_PA_PUBLISH | KIP_PA_FLUSH));
		}
	}
}

/* In every state a Request is either accepted or rejected, once */
static void every_request_has_one_answer(struct kunit *test)
{
	unsigned int s, e;

	for (s = 0; s < KIP_PS_COUNT; s++) {
		for (e = KIP_PE_REQ_SMALLER; e <= KIP_PE_REQ_STALE; e++) {
			const struct kip_peer_step step = kip_peer_fsm(s, e);
			const u16 answers = step.actions & (KIP_PA_ACCEPT | KIP_PA_REJECT_CROSSED |
							    KIP_PA_REJECT_BUSY);

			if (step.legal)
				KUNIT_EXPECT_EQ_MSG(test, hweight16(answers), 1U, "%u %u", s, e);
			else
				KUNIT_EXPECT_EQ(test, e, (unsigned int)KIP_PE_REQ_STALE);
		}
	}
	/* RFC 4755 3.3, literally */
	KUNIT_EXPECT_EQ(test, kip_peer_fsm(KIP_PS_REQ_SENT, KIP_PE_REQ_SMALLER).actions,
			KIP_PA_DROP | KIP_PA_ACCEPT);
	KUNIT_EXPECT_EQ(test, kip_peer_fsm(KIP_PS_REQ_SENT, KIP_PE_REQ_GREATER).actions,
			KIP_PA_REJECT_CROSSED);
}

static void what_is_out_of_range_is_not_legal(struct kunit *test)
{
	unsigned int e, state = KIP_PS_COUNT;

	/* Or the compiler looks up what lies behind the table. */
	OPTIMIZER_HIDE_VAR(state);
	for (e = 0; e < KIP_PE_COUNT; e++)
		KUNIT_EXPECT_FALSE(test, kip_peer_fsm(state, e).legal);
	KUNIT_EXPECT_FALSE(test, kip_peer_fsm(0, KIP_PE_COUNT).legal);
	KUNIT_EXPECT_FALSE(test, kip_peer_fsm(255, 255).legal);
	KUNIT_EXPECT_STREQ(test, kip_peer_state_name(KIP_PS_COUNT), "?");
	KUNIT_EXPECT_STREQ(test, kip_peer_state_name(KIP_PS_UP), "up");
}

/*
 * Two ends; end 0 has the smaller address. Each end has at most one connection that it made,
 * identified by its maker and a count of tries. Messages on one connection stay in order, but
 * there is no order between two connections. An end that drops its connection before it is
 * established closes it; the other end sees this, or notices it when it accepts.
 */
enum stream {
	ST_NONE,	/* not there */
	ST_REQUEST,	/* the Request travels */
	ST_ACCEPTED,	/* the Reply travels */
	ST_CROSSED,	/* a reject travels, reason crossed */
	ST_BUSY,	/* a reject travels, another reason */
	ST_OPEN,	/* both ends know it is established */
	ST_CLOSED,	/* its maker has closed it, and the responder does not know yet */
	ST_ENDED,	/* the responder has closed it, and its maker does not know yet */
};

struct world {
	u8 state[2];	/* of each end */
	u8 stream[2];	/* made by each end */
	u8 own[2];	/* whose stream is this end's connection */
	u8 tries[2];	/* Requests it has sent */
};

#define NOBODY	2
#define TRIES	2

/* The end drops its connection */
static void drop(struct world *w, unsigned int e)
{
	const unsigned int maker = w->own[e];

	if (maker == e)
		w->stream[e] = w->stream[e] == ST_REQUEST || w->stream[e] == ST_ACCEPTED ||
			       w->stream[e] == ST_OPEN ? ST_CLOSED : ST_NONE;
	else if (maker == !e)
		w->stream[!e] = w->stream[!e] == ST_CLOSED ? ST_NONE : ST_ENDED;
	w->own[e] = NOBODY;
}

static void happens(struct kunit *test, struct world *w, unsigned int e, enum kip_peer_event event)
{
	const struct kip_peer_step step = kip_peer_fsm(w->state[e], event);

	KUNIT_ASSERT_TRUE_MSG(test, step.legal, "end %u in %s, event %u", e,
			      kip_peer_state_name(w->state[e]), event);
	w->state[e] = step.next;
	if (step.actions & KIP_PA_REJECT_CROSSED)
		w->stream[!e] = ST_CROSSED;
	if (step.actions & KIP_PA_REJECT_BUSY)
		w->stream[!e] = ST_BUSY;
	if (step.actions & KIP_PA_DROP)
		drop(w, e);
	if (step.actions & KIP_PA_RESOLVE)
		w->own[e] = e;
	if (step.actions & KIP_PA_REQUEST) {
		w->stream[e] = ST_REQUEST;
		w->tries[e]++;
	}
	if (step.actions & KIP_PA_ACCEPT) {
		w->stream[!e] = ST_ACCEPTED;
		w->own[e] = !e;
	}
}

/* A Request of end !e arrives at end e */
static void request_comes(struct kunit *test, struct world *w, unsigned int e)
{
	happens(test, w, e, e == 0 ? KIP_PE_REQ_SMALLER : KIP_PE_REQ_GREATER);
}

enum { WISHES, ROUTED, ARRIVES, RESPONDER_UP, WORLD_MOVES };

/* One move of an end, or of a message to it; false if that move is not possible */
static bool move(struct kunit *test, struct world *w, unsigned int e, unsigned int what)
{
	switch (what) {
	case WISHES:
		if (w->state[e] != KIP_PS_NONE || w->tries[e] == TRIES ||
		    w->stream[e] != ST_NONE)
			return false;
		happens(test, w, e, KIP_PE_WISH);
		return true;
	case ROUTED:
		if (w->state[e] != KIP_PS_RESOLVING || w->stream[e] != ST_NONE)
			return false;
		happens(test, w, e, KIP_PE_ROUTED);
		return true;
	case ARRIVES:
		/* A message on the stream that e has made, or on that of !e, arrives */
		switch (w->stream[e]) {
		case ST_ACCEPTED:
			if (w->own[e] != e || w->state[e] != KIP_PS_REQ_SENT)
				return false;
			w->stream[e] = ST_OPEN;
			happens(test, w, e, KIP_PE_ESTABLISHED);
			return true;
		case ST_CROSSED:
		case ST_BUSY: {
			const bool crossed = w->stream[e] == ST_CROSSED;

			w->stream[e] = ST_NONE;
			if (w->own[e] == e && w->state[e] == KIP_PS_REQ_SENT)
				happens(test, w, e, crossed ? KIP_PE_CROSSED : KIP_PE_REJECTED);
			return true;
		}
		case ST_ENDED:
			w->stream[e] = ST_NONE;
			if (w->own[e] == e)
				happens(test, w, e, KIP_PE_FAULT);
			return true;
		default:
			break;
		}
		if (w->stream[!e] == ST_REQUEST) {
			request_comes(test, w, e);
			return true;
		}
		if (w->stream[!e] == ST_CLOSED) {
			w->stream[!e] = ST_NONE;
			if (w->own[e] == !e)
				happens(test, w, e, KIP_PE_FAULT);
			return true;
		}
		return false;
	default:
		if (w->own[e] != !e || w->state[e] != KIP_PS_ACCEPTING || w->stream[!e] != ST_OPEN)
			return false;
		happens(test, w, e, KIP_PE_ESTABLISHED);
		return true;
	}
}

#define WORLDS	4096

/* Both ends may want to send at any time; finally there is one connection, used by both */
static void crossing_requests_leave_one_connection(struct kunit *test)
{
	struct world *seen, w;
	unsigned int nr = 0, i, j, k, ends = 0;

	seen = kunit_kcalloc(test, WORLDS, sizeof(*seen), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, seen);
	seen[nr++] = (struct world) { .own = { NOBODY, NOBODY } };
	for (i = 0; i < nr; i++) {
		bool moved = false;

		for (k = 0; k < 2 * WORLD_MOVES; k++) {
			w = seen[i];
			if (!move(test, &w, k % 2, k / 2))
				continue;
			moved = true;
			for (j = 0; j < nr && memcmp(&seen[j], &w, sizeof(w)); j++)
				;
			if (j < nr)
				continue;
			KUNIT_ASSERT_LT(test, nr, (unsigned int)WORLDS);
			seen[nr++] = w;
		}
		if (moved)
			continue;
		ends++;
		w = seen[i];
		KUNIT_EXPECT_EQ(test, w.state[0], KIP_PS_UP);
		KUNIT_EXPECT_EQ(test, w.state[1], KIP_PS_UP);
		KUNIT_EXPECT_EQ(test, w.own[0], w.own[1]);
		KUNIT_EXPECT_EQ(test, (w.stream[0] == ST_OPEN) + (w.stream[1] == ST_OPEN), 1);
	}
	kunit_info(test, "%u worlds, %u ends", nr, ends);
	KUNIT_EXPECT_GE(test, ends, 2U);
}

static struct kunit_case cases[] = {
	KUNIT_CASE(every_cell_is_as_designed),
	KUNIT_CASE(no_connection_is_lost_or_ended_twice),
	KUNIT_CASE(every_request_has_one_answer),
	KUNIT_CASE(what_is_out_of_range_is_not_legal),
	KUNIT_CASE(crossing_requests_leave_one_connection),
	{ }
};

static struct kunit_suite suite = {
	.name = "kiwarp_ip_peer_fsm",
	.test_cases = cases,
};

kunit_test_suite(suite);
