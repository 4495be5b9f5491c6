// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The QP state machine: a second copy of the whole table, and invariants of every
 * path through it, checked by visiting every reachable combination of state and
 * history.
 */
#include "proto/qp_fsm.c"

#include "util.h"

/*
 * What has happened since the QP was last IDLE; the count of an action saturates
 * at 2, so that the set of combinations is finite.
 */
struct history {
	u8 state;
	u8 reports;
	u8 flushes;
	u8 fatals;
	bool started;
	bool closing;
};

#define HISTORIES	(KIW_QPS_COUNT * 3 * 3 * 3 * 2 * 2)

static unsigned int history_id(const struct history *h)
{
	unsigned int id = h->state;

	id = id * 3 + h->reports;
	id = id * 3 + h->flushes;
	id = id * 3 + h->fatals;
	return id * 4 + h->started * 2 + h->closing;
}

static u8 count_up(u8 count, bool again)
{
	return min(count + again, 2);
}

static struct history history_after(struct history h, const struct kiw_qp_step *step)
{
	if (step->actions & KIW_QPA_CLEAN)
		return (struct history) { .state = step->next };
	h.started |= step->next == KIW_QPS_RTS;
	h.state = step->next;
	h.reports = count_up(h.reports, step->actions & KIW_QPA_REPORT);
	h.flushes = count_up(h.flushes, step->actions & KIW_QPA_FLUSH);
	h.fatals = count_up(h.fatals, step->actions & KIW_QPA_EVENT_FATAL);
	h.closing |= !!(step->actions & (KIW_QPA_SHUTDOWN | KIW_QPA_REPORT));
	return h;
}

/* Invariants of every reachable combination */
static void expect_sound(struct kunit *test, const struct history *h)
{
	const bool over = h->state == KIW_QPS_ERROR;
	const char *name = kiw_qp_state_name(h->state);

	KUNIT_EXPECT_EQ_MSG(test, h->flushes, over, "flushes in %s", name);
	KUNIT_EXPECT_EQ_MSG(test, h->reports, over && h->started, "reports in %s", name);
	KUNIT_EXPECT_LE_MSG(test, h->fatals, 1, "fatal events in %s", name);
	KUNIT_EXPECT_EQ_MSG(test, h->started, h->state != KIW_QPS_IDLE && !(over && !h->started),
			    "start in %s", name);
	KUNIT_EXPECT_FALSE_MSG(test, h->flushes && kiw_qp_state_places(h->state),
			       "placed in %s", name);
	KUNIT_EXPECT_FALSE_MSG(test, h->flushes && kiw_qp_state_sends(h->state), "sent in %s",
			       name);
	KUNIT_EXPECT_EQ_MSG(test, h->closing, h->started && h->state != KIW_QPS_RTS,
			    "closing in %s", name);
}

/* Breadth-first search over all combinations that a sequence of events can reach */
static void every_path_keeps_the_promises(struct kunit *test)
{
	unsigned int todo = 0, found = 0, event;
	struct history *queue, next;
	struct kiw_qp_step step;
	bool *seen;

	queue = kunit_kzalloc(test, HISTORIES * sizeof(*queue), GFP_KERNEL);
	seen = kunit_kzalloc(test, HISTORIES, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, queue);
	KUNIT_ASSERT_NOT_NULL(test, seen);
	seen[history_id(&queue[found++])] = true;
	for (; todo < found; todo++) {
		expect_sound(test, &queue[todo]);
		for (event = 0; event < KIW_QPE_COUNT; event++) {
			step = kiw_qp_fsm(queue[todo].state, event);
			next = history_after(queue[todo], &step);
			if (!seen[history_id(&next)])
				queue[found++] = next;
			seen[history_id(&next)] = true;
		}
	}
	KUNIT_EXPECT_GE(test, found, (unsigned int)KIW_QPS_COUNT);
}

/* The table of qp_fsm.c: next state, '-' for illegal; events in the order of the enum */
static const char * const next_states[KIW_QPS_COUNT] = {
	[KIW_QPS_IDLE]		= "R-EI----E-",
	[KIW_QPS_RTS]		= "-CE-TECEE-",
	[KIW_QPS_CLOSING]	= "-CE-TECEEE",
	[KIW_QPS_TERMINATE]	= "-TE-TTTETE",
	[KIW_QPS_ERROR]		= "-EEIEEEEEE",
};

static const char state_letters[KIW_QPS_COUNT] = {
	[KIW_QPS_IDLE] = 'I', [KIW_QPS_RTS] = 'R', [KIW_QPS_CLOSING] = 'C',
	[KIW_QPS_TERMINATE] = 'T', [KIW_QPS_ERROR] = 'E',
};

static void every_pair_goes_where_it_should(struct kunit *test)
{
	unsigned int state, event;
	struct kiw_qp_step step;
	char want;

	for (state = 0; state < KIW_QPS_COUNT; state++) {
		for (event = 0; event < KIW_QPE_COUNT; event++) {
			step = kiw_qp_fsm(state, event);
			want = next_states[state][event];
			KUNIT_ASSERT_LT(test, step.next, (u8)KIW_QPS_COUNT);
			KUNIT_EXPECT_EQ_MSG(test, step.legal, want != '-', "%s, %s",
					    kiw_qp_state_name(state), kiw_qp_event_name(event));
			if (step.legal)
				KUNIT_EXPECT_EQ_MSG(test, state_letters[step.next], want, "%s, %s",
						    kiw_qp_state_name(state),
						    kiw_qp_event_name(event));
		}
	}
}

static void illegal_pairs_change_nothing(struct kunit *test)
{
	unsigned int state, event;
	struct kiw_qp_step step;

	for (state = 0; state < KIW_QPS_COUNT; state++) {
		for (event = 0; event < KIW_QPE_COUNT; event++) {
			step = kiw_qp_fsm(state, event);
			if (step.legal)
				continue;
			KUNIT_EXPECT_EQ(test, (unsigned int)step.next, state);
			KUNIT_EXPECT_EQ(test, step.actions, (u16)0);
		}
	}
}

static bool is_told(enum kiw_qp_event event)
{
	return event == KIW_QPE_FAULT || event == KIW_QPE_PEER_TERMINATE || event == KIW_QPE_FATAL;
}

/*
 * FLUSH leads to ERROR only, CLEAN to IDLE; a stream is reset only where it is reported; an abort
 * does not take the Terminate with it. The consumer hears of a fault and of a Terminate (RFC 5040
 * 7.1). What has to be sent first has a time limit.
 */
static void actions_belong_to_their_state(struct kunit *test)
{
	unsigned int state, event;
	struct kiw_qp_step step;
	bool moves;

	for (state = 0; state < KIW_QPS_COUNT; state++) {
		for (event = 0; event < KIW_QPE_COUNT; event++) {
			step = kiw_qp_fsm(state, event);
			moves = step.next != state;
			KUNIT_EXPECT_EQ(test, !!(step.actions & KIW_QPA_FLUSH),
					moves && step.next == KIW_QPS_ERROR);
			KUNIT_EXPECT_EQ(test, !!(step.actions & KIW_QPA_CLEAN),
					step.legal && event == KIW_QPE_RESET);
			KUNIT_EXPECT_EQ(test, !!(step.actions & KIW_QPA_FINISH),
					state == KIW_QPS_TERMINATE && event == KIW_QPE_ABORT);
			KUNIT_EXPECT_EQ(test, !!(step.actions & KIW_QPA_EVENT_FATAL),
					moves && is_told(event));
			KUNIT_EXPECT_EQ(test, !!(step.actions & KIW_QPA_SHUTDOWN),
					moves && (step.next == KIW_QPS_CLOSING ||
						  step.next == KIW_QPS_TERMINATE));
			if (step.actions & KIW_QPA_DROP)
				KUNIT_EXPECT_TRUE(test, step.actions & KIW_QPA_REPORT);
			if (!moves && event != KIW_QPE_RESET)
				KUNIT_EXPECT_EQ(test, step.actions, (u16)0);
		}
	}
}

/* The stream is reset when an end aborts it or TCP failed, otherwise it is closed in order */
static void only_abort_fatal_and_loss_reset_the_stream(struct kunit *test)
{
	unsigned int state, event;
	bool had_stream, resets;
	struct kiw_qp_step step;

	for (state = 0; state < KIW_QPS_COUNT; state++) {
		had_stream = state != KIW_QPS_IDLE && state != KIW_QPS_ERROR;
		for (event = 0; event < KIW_QPE_COUNT; event++) {
			step = kiw_qp_fsm(state, event);
			resets = event == KIW_QPE_ABORT || event == KIW_QPE_LLP_LOST ||
				 (event == KIW_QPE_FATAL && state != KIW_QPS_TERMINATE);
			KUNIT_EXPECT_EQ(test, !!(step.actions & KIW_QPA_DROP),
					had_stream && resets);
			KUNIT_EXPECT_NE(test, step.actions & (KIW_QPA_DROP | KIW_QPA_SHUTDOWN),
					KIW_QPA_DROP | KIW_QPA_SHUTDOWN);
		}
	}
}

/* ABORT and the loss of the stream end every connection at once */
static void abort_and_loss_end_every_connection(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, kiw_qp_fsm(KIW_QPS_IDLE, KIW_QPE_ABORT).next, KIW_QPS_ERROR);
	KUNIT_EXPECT_EQ(test, kiw_qp_fsm(KIW_QPS_RTS, KIW_QPE_LLP_LOST).next, KIW_QPS_ERROR);
	KUNIT_EXPECT_EQ(test, kiw_qp_fsm(KIW_QPS_CLOSING, KIW_QPE_LLP_LOST).next, KIW_QPS_ERROR);
	KUNIT_EXPECT_EQ(test, kiw_qp_fsm(KIW_QPS_TERMINATE, KIW_QPE_LLP_LOST).next,
			KIW_QPS_ERROR);
	KUNIT_EXPECT_EQ(test, kiw_qp_fsm(KIW_QPS_TERMINATE, KIW_QPE_ABORT).next, KIW_QPS_ERROR);
	KUNIT_EXPECT_EQ(test, kiw_qp_fsm(KIW_QPS_ERROR, KIW_QPE_RESET).next, KIW_QPS_IDLE);
}

/* RFC 5040 5.4, 6.2.1: effect of a Terminate, sent or received */
static void rfc5040_6_2_1_terminate_actions(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, (u32)kiw_qp_fsm(KIW_QPS_RTS, KIW_QPE_FAULT).actions,
			(u32)(KIW_QPA_SHUTDOWN | KIW_QPA_EVENT_FATAL));
	KUNIT_EXPECT_FALSE(test, kiw_qp_state_places(KIW_QPS_TERMINATE));
	KUNIT_EXPECT_TRUE(test, kiw_qp_state_sends(KIW_QPS_TERMINATE));
	KUNIT_EXPECT_EQ(test, (u32)kiw_qp_fsm(KIW_QPS_TERMINATE, KIW_QPE_DRAINED).actions,
			(u32)(KIW_QPA_FLUSH | KIW_QPA_REPORT));
	KUNIT_EXPECT_EQ(test, (u32)kiw_qp_fsm(KIW_QPS_RTS, KIW_QPE_PEER_TERMINATE).actions,
			(u32)(KIW_QPA_FLUSH | KIW_QPA_REPORT | KIW_QPA_EVENT_FATAL));
}

static void values_outside_are_illegal(struct kunit *test)
{
	static const unsigned int wild[] = { 10, 11, 255, 0x7fffffff, 0xffffffff };
	struct kiw_qp_step step;
	int i;

	for (i = 0; i < ARRAY_SIZE(wild); i++) {
		step = kiw_qp_fsm((enum kiw_qp_state)wild[i], KIW_QPE_ABORT);
		KUNIT_EXPECT_FALSE(test, step.legal);
		KUNIT_EXPECT_EQ(test, step.actions, (u16)0);
		step = kiw_qp_fsm(KIW_QPS_RTS, (enum kiw_qp_event)wild[i]);
		KUNIT_EXPECT_FALSE(test, step.legal);
		KUNIT_EXPECT_EQ(test, step.next, (u8)KIW_QPS_RTS);
		KUNIT_EXPECT_STREQ(test, kiw_qp_state_name((enum kiw_qp_state)wild[i]), "?");
		KUNIT_EXPECT_STREQ(test, kiw_qp_event_name((enum kiw_qp_event)wild[i]), "?");
	}
	/* The first values outside */
	KUNIT_EXPECT_FALSE(test, kiw_qp_fsm(KIW_QPS_COUNT, KIW_QPE_ABORT).legal);
	KUNIT_EXPECT_FALSE(test, kiw_qp_fsm(KIW_QPS_RTS, KIW_QPE_COUNT).legal);
	KUNIT_EXPECT_STREQ(test, kiw_qp_state_name(KIW_QPS_COUNT), "?");
	KUNIT_EXPECT_STREQ(test, kiw_qp_event_name(KIW_QPE_COUNT), "?");
}

static void names_differ(struct kunit *test)
{
	unsigned int i, j;

	for (i = 0; i < KIW_QPS_COUNT; i++) {
		KUNIT_EXPECT_STRNEQ(test, kiw_qp_state_name(i), "?");
		for (j = 0; j < i; j++)
			KUNIT_EXPECT_STRNEQ(test, kiw_qp_state_name(i), kiw_qp_state_name(j));
	}
	for (i = 0; i < KIW_QPE_COUNT; i++) {
		KUNIT_EXPECT_STRNEQ(test, kiw_qp_event_name(i), "?");
		for (j = 0; j < i; j++)
			KUNIT_EXPECT_STRNEQ(test, kiw_qp_event_name(i), kiw_qp_event_name(j));
	}
}

static struct kunit_case qp_fsm_cases[] = {
	KUNIT_CASE(every_path_keeps_the_promises),
	KUNIT_CASE(every_pair_goes_where_it_should),
	KUNIT_CASE(illegal_pairs_change_nothing),
	KUNIT_CASE(actions_belong_to_their_state),
	KUNIT_CASE(only_abort_fatal_and_loss_reset_the_stream),
	KUNIT_CASE(abort_and_loss_end_every_connection),
	KUNIT_CASE(rfc5040_6_2_1_terminate_actions),
	KUNIT_CASE(values_outside_are_illegal),
	KUNIT_CASE(names_differ),
	{}
};

static struct kunit_suite qp_fsm_suite = {
	.name = "kiwarp_qp_fsm",
	.test_cases = qp_fsm_cases,
};

kunit_test_suite(qp_fsm_suite);
