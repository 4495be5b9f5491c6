// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Flow control of kiwarp_ip: the rules of one end, and a model of two ends with a stream in
 * each direction, of which every reachable state is visited.
 *
 * A state consists of both ends and all messages that are in flight or unread; a slow receiver
 * is one that leaves messages unread. Numbers are relative to what the receiver has received,
 * so the number of states is finite.
 */
#include "proto/credit.c"

#include <linux/jhash.h>
#include <linux/vmalloc.h>

#include "util.h"

/* Room for messages on one stream: one more than there may ever be */
#define MOST	12

enum kind { DATA, GRANT, PROBE, ANSWER };

/**
 * struct end - state of one end, packed into as few bytes as possible
 * @sent: relative to what the peer has received
 * @limit: relative to what the peer has received
 * @granted: relative to what this end has received
 * @flags: the three booleans
 * @nr: number of messages from this end that the peer has not processed
 * @msg: these messages: kind, and the value plus 16, relative to what this end has received
 */
struct end {
	s8 sent;
	s8 limit;
	s8 granted;
	u8 flags;
	u8 nr;
	u8 msg[MOST - 1];
};

struct state {
	struct end end[2];
};

struct model {
	struct kip_credit end[2];
	unsigned int nr[2];
	enum kind kind[2][MOST];
	u32 value[2][MOST];
};

static struct state pack(const struct model *m)
{
	struct state s = { 0 };
	unsigned int e, i;

	for (e = 0; e < 2; e++) {
		const struct kip_credit *c = &m->end[e];

		s.end[e].sent = c->sent - m->end[!e].received;
		s.end[e].limit = c->limit - m->end[!e].received;
		s.end[e].granted = c->granted - c->received;
		s.end[e].flags = c->is_probing | c->has_probe << 1 | c->has_answer << 2;
		s.end[e].nr = m->nr[e];
		for (i = 0; i < m->nr[e]; i++) {
			s.end[e].msg[i] = m->kind[e][i] << 6;
			if (m->kind[e][i] == GRANT || m->kind[e][i] == ANSWER)
				s.end[e].msg[i] |= m->value[e][i] - c->received + 16;
		}
	}
	return s;
}

static struct model unpack(const struct state *s, const u16 *depth)
{
	struct model m = { 0 };
	unsigned int e, i;

	for (e = 0; e < 2; e++) {
		struct kip_credit *c = &m.end[e];

		kip_credit_init(c, depth[e], depth[!e]);
		c->sent = s->end[e].sent;
		c->limit = s->end[e].limit;
		c->granted = s->end[e].granted;
		c->is_probing = s->end[e].flags & 1;
		c->has_probe = s->end[e].flags & 2;
		c->has_answer = s->end[e].flags & 4;
		m.nr[e] = s->end[e].nr;
		for (i = 0; i < m.nr[e]; i++) {
			m.kind[e][i] = s->end[e].msg[i] >> 6;
			m.value[e][i] = (s->end[e].msg[i] & 63) - 16;
		}
	}
	return m;
}

/* Returns false if the message overruns the receive queue, which may be empty */
static bool put(struct model *m, unsigned int e, enum kind kind, u32 value)
{
	const unsigned int data_depth = m->end[!e].depth;
	unsigned int i, data = 0;

	if (m->nr[e] == data_depth + KIP_CONTROL_RECEIVES)
		return false;
	m->kind[e][m->nr[e]] = kind;
	m->value[e][m->nr[e]++] = value;
	for (i = 0; i < m->nr[e]; i++)
		data += m->kind[e][i] == DATA;
	return data <= data_depth && m->nr[e] - data <= KIP_CONTROL_RECEIVES;
}

enum move { SEND, LOOK, CONTROL, ASK, MOVES };

static const u8 ops[] = {
	[GRANT] = KIP_OP_GRANT, [PROBE] = KIP_OP_PROBE, [ANSWER] = KIP_OP_ANSWER,
};

static bool look(struct model *m, unsigned int e)
{
	const enum kind kind = m->kind[!e][0];
	const u32 value = m->value[!e][0];

	m->nr[!e]--;
	memmove(m->kind[!e], m->kind[!e] + 1, m->nr[!e] * sizeof(m->kind[0][0]));
	memmove(m->value[!e], m->value[!e] + 1, m->nr[!e] * sizeof(m->value[0][0]));
	if (kind == DATA)
		return kip_credit_receive(&m->end[e]);
	return kip_credit_control(&m->end[e], ops[kind], value);
}

static bool control(struct model *m, unsigned int e, bool *did)
{
	u32 value;
	u8 op = kip_credit_next(&m->end[e], &value);

	*did = op;
	if (!op)
		return true;
	return put(m, e, op == KIP_OP_GRANT ? GRANT : op == KIP_OP_PROBE ? PROBE : ANSWER, value);
}

/* Returns whether no rule was violated; @did is set to whether the move was possible */
static bool make(struct model *m, unsigned int e, enum move move, bool *did)
{
	*did = true;
	switch (move) {
	case SEND:
		*did = kip_credit_left(&m->end[e]);
		if (!*did)
			return true;
		kip_credit_send(&m->end[e]);
		return put(m, e, DATA, 0);
	case LOOK:
		*did = m->nr[!e];
		return !*did || look(m, e);
	case CONTROL:
		return control(m, e, did);
	default:
		kip_credit_ask(&m->end[e]);
		return true;
	}
}

/* When no more data is sent, everything is processed eventually, and both ends have credit */
static bool settles(struct model m)
{
	bool did = true, one;
	unsigned int e, rounds;

	for (rounds = 0; did && rounds < 100; rounds++) {
		did = false;
		for (e = 0; e < 2; e++) {
			if (!make(&m, e, LOOK, &one))
				return false;
			did |= one;
			if (!make(&m, e, CONTROL, &one))
				return false;
			did |= one;
		}
	}
	return !did && kip_credit_left(&m.end[0]) && kip_credit_left(&m.end[1]) &&
	       !m.end[0].is_probing && !m.end[1].is_probing;
}

#define SLOTS	BIT(20)

struct search {
	struct state *states;
	u32 *table;
	u32 nr;
};

/* Adds a state that was not seen yet; false when there is no room */
static bool note(struct search *s, const struct state *state)
{
	u32 slot = jhash(state, sizeof(*state), 0);

	for (;; slot++) {
		u32 *at = &s->table[slot % SLOTS];

		if (!*at) {
			if (s->nr == SLOTS / 2)
				return false;
			s->states[s->nr++] = *state;
			*at = s->nr;
			return true;
		}
		if (!memcmp(&s->states[*at - 1], state, sizeof(*state)))
			return true;
	}
}

static void visit_all(struct kunit *test, struct search *s, u16 a, u16 b)
{
	const u16 depth[2] = { a, b };
	struct model m = { 0 };
	struct state state;
	unsigned int i, k;
	bool did;

	memset(s->table, 0, SLOTS * sizeof(*s->table));
	s->nr = 0;
	kip_credit_init(&m.end[0], a, b);
	kip_credit_init(&m.end[1], b, a);
	state = pack(&m);
	note(s, &state);
	for (i = 0; i < s->nr; i++) {
		m = unpack(&s->states[i], depth);
		KUNIT_ASSERT_TRUE_MSG(test, settles(m), "stuck, depth %u, %u", a, b);
		for (k = 0; k < 2 * MOVES; k++) {
			m = unpack(&s->states[i], depth);
			KUNIT_ASSERT_TRUE_MSG(test, make(&m, k % 2, k / 2, &did),
					      "move %u, depth %u, %u", k, a, b);
			state = pack(&m);
			KUNIT_ASSERT_TRUE(test, !did || note(s, &state));
		}
	}
	kunit_info(test, "depth %u and %u: %u states", a, b, s->nr);
	KUNIT_EXPECT_GT(test, s->nr, 100U);
}

/* In every interleaving no Send lacks a receive, and there is no deadlock */
static void two_ends_never_overrun_and_never_stop(struct kunit *test)
{
	static const u16 depths[][2] = { { 1, 1 }, { 1, 2 }, { 2, 2 }, { 3, 1 }, { 4, 1 } };
	struct search s;
	unsigned int i;

	s.states = vmalloc(SLOTS / 2 * sizeof(*s.states));
	s.table = vmalloc(SLOTS * sizeof(*s.table));
	if (s.states && s.table) {
		for (i = 0; i < ARRAY_SIZE(depths); i++)
			visit_all(test, &s, depths[i][0], depths[i][1]);
	} else {
		KUNIT_FAIL(test, "no memory");
	}
	vfree(s.table);
	vfree(s.states);
}

/* The model's own check can fail: with one receive less there is an overrun */
static void the_fourth_control_receive_is_needed(struct kunit *test)
{
	struct kip_credit a, b;
	unsigned int i, unread = 0;
	u32 value;

	/* Both send all they may; A looks at everything of B's, B at nothing. */
	kip_credit_init(&a, 2, 2);
	kip_credit_init(&b, 2, 2);
	for (i = 0; i < 2; i++) {
		kip_credit_send(&b);
		KUNIT_EXPECT_TRUE(test, kip_credit_receive(&a));
		unread += kip_credit_next(&a, &value) == KIP_OP_GRANT;
	}
	kip_credit_ask(&b);
	KUNIT_EXPECT_EQ(test, kip_credit_next(&b, &value), (u8)KIP_OP_PROBE);
	KUNIT_EXPECT_TRUE(test, kip_credit_control(&a, KIP_OP_PROBE, 0));
	unread += kip_credit_next(&a, &value) == KIP_OP_ANSWER;
	kip_credit_ask(&a);
	unread += kip_credit_next(&a, &value) == KIP_OP_PROBE;
	KUNIT_EXPECT_EQ(test, unread, 4U);
	KUNIT_EXPECT_EQ(test, unread, (unsigned int)KIP_CONTROL_RECEIVES);
	KUNIT_EXPECT_EQ(test, kip_credit_next(&a, &value), (u8)0);
}

static void data_beyond_the_limit_is_noticed(struct kunit *test)
{
	struct kip_credit c;
	unsigned int i;

	kip_credit_init(&c, 32, 32);
	for (i = 0; i < 32; i++)
		KUNIT_EXPECT_TRUE(test, kip_credit_receive(&c));
	KUNIT_EXPECT_FALSE(test, kip_credit_receive(&c));
	KUNIT_EXPECT_EQ(test, c.received, 32U);
}

/* A limit may neither decrease nor exceed what the peer can have received */
static void only_possible_limits_are_taken(struct kunit *test)
{
	u32 start, limit;
	struct kip_credit c;

	for (start = U32_MAX - 40; start != 40; start++) {
		kip_credit_init(&c, 8, 8);
		c.sent = start;
		c.limit = start + 3;
		for (limit = start - 20; limit != start + 20; limit++) {
			struct kip_credit now = c;
			const s32 more = limit - start;
			const bool can = more >= 3 && more <= 8;

			KUNIT_ASSERT_EQ(test, kip_credit_control(&now, KIP_OP_GRANT, limit), can);
			KUNIT_ASSERT_EQ(test, now.limit, can ? limit : c.limit);
		}
	}
}

static void an_answer_needs_a_probe(struct kunit *test)
{
	struct kip_credit c;
	u32 value;

	kip_credit_init(&c, 8, 8);
	KUNIT_EXPECT_FALSE(test, kip_credit_control(&c, KIP_OP_ANSWER, 8));
	kip_credit_ask(&c);
	kip_credit_ask(&c);
	KUNIT_EXPECT_EQ(test, kip_credit_next(&c, &value), (u8)KIP_OP_PROBE);
	kip_credit_ask(&c);
	KUNIT_EXPECT_EQ(test, kip_credit_next(&c, &value), (u8)0);
	KUNIT_EXPECT_FALSE(test, kip_credit_control(&c, KIP_OP_ANSWER, 7));
	KUNIT_EXPECT_TRUE(test, c.is_probing);
	KUNIT_EXPECT_TRUE(test, kip_credit_control(&c, KIP_OP_ANSWER, 8));
	KUNIT_EXPECT_FALSE(test, kip_credit_control(&c, KIP_OP_ANSWER, 8));
	KUNIT_EXPECT_TRUE(test, kip_credit_control(&c, KIP_OP_PROBE, 0));
	KUNIT_EXPECT_FALSE(test, kip_credit_control(&c, KIP_OP_PROBE, 0));
	KUNIT_EXPECT_EQ(test, kip_credit_next(&c, &value), (u8)KIP_OP_ANSWER);
	KUNIT_EXPECT_FALSE(test, kip_credit_control(&c, 0, 8));
	KUNIT_EXPECT_FALSE(test, kip_credit_control(&c, 4, 8));
}

/* One GRANT per half of the depth keeps their number small */
static void grants_are_few(struct kunit *test)
{
	unsigned int i, grants = 0;
	struct kip_credit c;
	u32 value;

	kip_credit_init(&c, 32, 32);
	for (i = 0; i < 3200; i++) {
		KUNIT_ASSERT_TRUE(test, kip_credit_receive(&c));
		grants += kip_credit_next(&c, &value) == KIP_OP_GRANT;
	}
	KUNIT_EXPECT_EQ(test, grants, 200U);
}

static struct kunit_case cases[] = {
	KUNIT_CASE(two_ends_never_overrun_and_never_stop),
	KUNIT_CASE(the_fourth_control_receive_is_needed),
	KUNIT_CASE(data_beyond_the_limit_is_noticed),
	KUNIT_CASE(only_possible_limits_are_taken),
	KUNIT_CASE(an_answer_needs_a_probe),
	KUNIT_CASE(grants_are_few),
	{ }
};

static struct kunit_suite suite = {
	.name = "kiwarp_ip_credit",
	.test_cases = cases,
};

kunit_test_suite(suite);
