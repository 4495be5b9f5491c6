// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The life of an endpoint: every cell of the table against what must hold for all of
 * them, and every path through it against a model of iw_cm that, like the original,
 * has a state in which each event is allowed and one in which somebody waits.
 */
#include "../drivers/infiniband/sw/kiwarp/proto/cm_fsm.c"

#include "util.h"

static bool is_startup(int state)
{
	return state == KIW_CMS_CONNECTING || state == KIW_CMS_WAIT_REPLY ||
	       state == KIW_CMS_WAIT_REQUEST || state == KIW_CMS_REQUEST_GIVEN ||
	       state == KIW_CMS_WAIT_FIRST;
}

static void every_state_and_event_has_a_name(struct kunit *test)
{
	int i;

	for (i = 0; i < KIW_CMS_COUNT; i++) {
		KUNIT_ASSERT_NOT_NULL(test, state_names[i]);
		KUNIT_EXPECT_STREQ(test, kiw_cm_state_name(i), state_names[i]);
	}
	for (i = 0; i < KIW_CME_COUNT; i++) {
		KUNIT_ASSERT_NOT_NULL(test, event_names[i]);
		KUNIT_EXPECT_STREQ(test, kiw_cm_event_name(i), event_names[i]);
	}
	KUNIT_EXPECT_STREQ(test, kiw_cm_state_name(KIW_CMS_COUNT), "?");
	KUNIT_EXPECT_STREQ(test, kiw_cm_event_name(KIW_CME_COUNT), "?");
	KUNIT_EXPECT_FALSE(test, kiw_cm_fsm(KIW_CMS_COUNT, KIW_CME_LOST).legal);
	KUNIT_EXPECT_FALSE(test, kiw_cm_fsm(KIW_CMS_OPEN, KIW_CME_COUNT).legal);
}

static void expect_sound_cell(struct kunit *test, int state, int event)
{
	const struct kiw_cm_step step = kiw_cm_fsm(state, event);
	const bool enters_closed = state != KIW_CMS_CLOSED && step.next == KIW_CMS_CLOSED;
	const bool has_stream_end = step.actions & (KIW_CMA_DROP | KIW_CMA_LINGER);
	const char *s = state_names[state];
	const char *e = event_names[event];

	KUNIT_EXPECT_LT_MSG(test, step.next, KIW_CMS_COUNT, "%s %s", s, e);
	if (!step.legal) {
		KUNIT_EXPECT_EQ_MSG(test, step.next, state, "%s %s", s, e);
		KUNIT_EXPECT_EQ_MSG(test, step.actions, 0, "%s %s", s, e);
	}
	KUNIT_EXPECT_EQ_MSG(test, enters_closed, !!(step.actions & KIW_CMA_RELEASE),
			    "%s %s: released on entering CLOSED and only then", s, e);
	KUNIT_EXPECT_EQ_MSG(test, is_startup(state) && step.next == KIW_CMS_OPEN,
			    !!(step.actions & KIW_CMA_END_STARTUP), "%s %s", s, e);
	KUNIT_EXPECT_FALSE_MSG(test, has_stream_end && (step.actions & KIW_CMA_ABORT_QP),
			       "%s %s: the stream is the QP's or ours", s, e);
	KUNIT_EXPECT_FALSE_MSG(test, (step.actions & KIW_CMA_SEND_REJECT) &&
			       !(step.actions & KIW_CMA_LINGER),
			       "%s %s: a reset would overtake the rejection", s, e);
	KUNIT_EXPECT_FALSE_MSG(test, has_stream_end &&
			       (state == KIW_CMS_WAIT_FIRST || state == KIW_CMS_OPEN),
			       "%s %s: the QP has the stream", s, e);
	if (enters_closed && event != KIW_CME_QP_CLOSED)
		KUNIT_EXPECT_TRUE_MSG(test, has_stream_end || (step.actions & KIW_CMA_ABORT_QP),
				      "%s %s: somebody ends the stream", s, e);
}

static void all_cells_are_sound(struct kunit *test)
{
	int state;
	int event;

	for (state = 0; state < KIW_CMS_COUNT; state++)
		for (event = 0; event < KIW_CME_COUNT; event++)
			expect_sound_cell(test, state, event);
}

static void closed_is_the_end(struct kunit *test)
{
	struct kiw_cm_step step;
	int event;

	for (event = 0; event < KIW_CME_COUNT; event++) {
		step = kiw_cm_fsm(KIW_CMS_CLOSED, event);
		KUNIT_EXPECT_EQ(test, step.next, KIW_CMS_CLOSED);
		KUNIT_EXPECT_EQ(test, step.actions, 0);
	}
}

/* Whatever a peer does or leaves undone, no startup outlives its deadline. */
static void deadline_ends_every_startup(struct kunit *test)
{
	struct kiw_cm_step step;
	int state;

	for (state = 0; state < KIW_CMS_COUNT; state++) {
		if (!is_startup(state))
			continue;
		step = kiw_cm_fsm(state, KIW_CME_DEADLINE);
		KUNIT_EXPECT_TRUE(test, step.legal);
		KUNIT_EXPECT_TRUE_MSG(test, step.next == KIW_CMS_CLOSED ||
				      (step.actions & KIW_CMA_ABORT_QP), "%s",
				      state_names[state]);
	}
}

/* What can be late is legal afterwards: the QP, the deadline, the device. */
static void late_events_are_legal(struct kunit *test)
{
	static const int late[] = {
		KIW_CME_DEADLINE, KIW_CME_DESTROY, KIW_CME_SPOKEN, KIW_CME_QP_CLOSED,
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(late); i++) {
		KUNIT_EXPECT_TRUE(test, kiw_cm_fsm(KIW_CMS_OPEN, late[i]).legal);
		KUNIT_EXPECT_TRUE(test, kiw_cm_fsm(KIW_CMS_CLOSED, late[i]).legal);
	}
}

/* States of iw_cm's connection, as far as its provider can tell */
enum iw_state {
	IW_NONE,	/* no cm_id for this connection */
	IW_CONN_SENT,	/* connect returned 0; somebody waits for CONNECT_REPLY */
	IW_CONN_RECV,	/* told of a Request, has not answered */
	IW_ACCEPTED,	/* accept returned 0; somebody waits for ESTABLISHED */
	IW_ESTABLISHED,
	IW_DONE,	/* must hear nothing more */
	IW_COUNT,
};

struct walk {
	struct kunit *test;
	bool been[KIW_CMS_COUNT][IW_COUNT];
	bool reached[KIW_CMS_COUNT];
};

/* One upcall: the only state in which iw_cm does not BUG(), and the next */
static int iw_hear(struct walk *w, int iw, u16 action)
{
	int wanted = IW_COUNT;
	int next = IW_COUNT;

	switch (action) {
	case KIW_CMA_UPCALL_REQUEST:
		wanted = IW_NONE;
		next = IW_CONN_RECV;
		break;
	case KIW_CMA_UPCALL_REPLY_OK:
		wanted = IW_CONN_SENT;
		next = IW_ESTABLISHED;
		break;
	case KIW_CMA_UPCALL_REPLY_FAIL:
		wanted = IW_CONN_SENT;
		next = IW_DONE;
		break;
	case KIW_CMA_UPCALL_ESTABLISHED:
		wanted = IW_ACCEPTED;
		next = IW_ESTABLISHED;
		break;
	case KIW_CMA_UPCALL_CLOSE:
		wanted = IW_ESTABLISHED;
		next = IW_DONE;
		break;
	}
	KUNIT_ASSERT_EQ_MSG(w->test, iw, wanted, "upcall 0x%x", action);
	return next;
}

/* What the consumer's downcall that the event stands for does to iw_cm */
static int iw_call(int iw, int event)
{
	switch (event) {
	case KIW_CME_CONNECT:
		return IW_CONN_SENT;
	case KIW_CME_ACCEPT:
	case KIW_CME_ACCEPT_P2P:
		return IW_ACCEPTED;
	case KIW_CME_REJECT:
	case KIW_CME_UNSENT:
		return IW_DONE;
	default:
		return iw;
	}
}

/*
 * Can the event happen here as far as iw_cm goes? Its downcalls answer a Request, and
 * it refuses only what it was told in the step before; walk() sees to that.
 */
static bool can_happen(int iw, int event)
{
	switch (event) {
	case KIW_CME_ACCEPT:
	case KIW_CME_ACCEPT_P2P:
	case KIW_CME_REJECT:
	case KIW_CME_UNSENT:
		return iw == IW_CONN_RECV;
	case KIW_CME_UNDELIVERED:
		return false;
	default:
		return true;
	}
}

static int hear_all(struct walk *w, int iw, u16 actions)
{
	int bit;

	for (bit = 0; bit < 16; bit++)
		if (actions & KIW_CMA_UPCALLS & BIT(bit))
			iw = iw_hear(w, iw, BIT(bit));
	return iw;
}

/* When the endpoint lets go, nobody must be left waiting for it. */
static void check_end(struct walk *w, int iw)
{
	KUNIT_EXPECT_NE(w->test, iw, IW_CONN_SENT);
	KUNIT_EXPECT_NE(w->test, iw, IW_ACCEPTED);
	KUNIT_EXPECT_NE(w->test, iw, IW_ESTABLISHED);
}

static void walk(struct walk *w, int state, int iw)
{
	const u16 refusable = KIW_CMA_UPCALL_REQUEST | KIW_CMA_UPCALL_REPLY_OK;
	struct kiw_cm_step step;
	int told;
	int event;

	if (w->been[state][iw])
		return;
	w->been[state][iw] = true;
	w->reached[state] = true;
	if (state == KIW_CMS_CLOSED)
		check_end(w, iw);
	for (event = 0; event < KIW_CME_COUNT; event++) {
		step = kiw_cm_fsm(state, event);
		if (!step.legal || !can_happen(iw, event))
			continue;
		told = iw_call(iw, event);
		walk(w, step.next, hear_all(w, told, step.actions));
		if (!(step.actions & refusable))
			continue;
		/* The same with iw_cm out of room: as if it had not been told */
		step = kiw_cm_fsm(step.next, KIW_CME_UNDELIVERED);
		KUNIT_ASSERT_TRUE(w->test, step.legal);
		walk(w, step.next, hear_all(w, told, step.actions));
	}
}

static void iw_cm_hears_of_everything_once(struct kunit *test)
{
	struct walk *w = kunit_kzalloc(test, sizeof(*w), GFP_KERNEL);
	int state;

	KUNIT_ASSERT_NOT_NULL(test, w);
	w->test = test;
	walk(w, KIW_CMS_IDLE, IW_NONE);
	for (state = 0; state < KIW_CMS_COUNT; state++)
		KUNIT_EXPECT_TRUE_MSG(test, w->reached[state], "%s", state_names[state]);
	/* The consumer is told of a connection when it is open, and at no other time. */
	for (state = 0; state < KIW_CMS_COUNT; state++)
		KUNIT_EXPECT_EQ_MSG(test, w->been[state][IW_ESTABLISHED], state == KIW_CMS_OPEN,
				    "%s", state_names[state]);
}

struct path {
	const char *name;
	u8 events[8];
	u16 actions;
	u8 end;
};

static const struct path paths[] = {
	{
		.name = "initiator, both live happily",
		.events = { KIW_CME_CONNECT, KIW_CME_REQUEST_SENT, KIW_CME_AGREED,
			    KIW_CME_SPOKEN, KIW_CME_QP_CLOSED },
		.actions = KIW_CMA_UPCALL_REPLY_OK | KIW_CMA_UPCALL_CLOSE | KIW_CMA_END_STARTUP |
			   KIW_CMA_RELEASE,
		.end = KIW_CMS_CLOSED,
	},
	{
		.name = "initiator, rejected",
		.events = { KIW_CME_CONNECT, KIW_CME_REQUEST_SENT, KIW_CME_REFUSED },
		.actions = KIW_CMA_UPCALL_REPLY_FAIL | KIW_CMA_LINGER | KIW_CMA_RELEASE,
		.end = KIW_CMS_CLOSED,
	},
	{
		.name = "initiator, revision 1 after revision 2, then a Reply of no use",
		.events = { KIW_CME_CONNECT, KIW_CME_REQUEST_SENT, KIW_CME_RETRY,
			    KIW_CME_REQUEST_SENT, KIW_CME_DISAGREED },
		.actions = KIW_CMA_UPCALL_REPLY_FAIL | KIW_CMA_LINGER | KIW_CMA_RELEASE,
		.end = KIW_CMS_CLOSED,
	},
	{
		.name = "responder, peer-to-peer, reset after our Reply",
		.events = { KIW_CME_INCOMING, KIW_CME_REQUEST, KIW_CME_ACCEPT_P2P,
			    KIW_CME_QP_CLOSED },
		.actions = KIW_CMA_UPCALL_REQUEST | KIW_CMA_UPCALL_ESTABLISHED |
			   KIW_CMA_UPCALL_CLOSE | KIW_CMA_RELEASE,
		.end = KIW_CMS_CLOSED,
	},
	{
		.name = "responder, peer-to-peer, RTR never sent",
		.events = { KIW_CME_INCOMING, KIW_CME_REQUEST, KIW_CME_ACCEPT_P2P,
			    KIW_CME_DEADLINE, KIW_CME_QP_CLOSED },
		.actions = KIW_CMA_UPCALL_REQUEST | KIW_CMA_ABORT_QP |
			   KIW_CMA_UPCALL_ESTABLISHED | KIW_CMA_UPCALL_CLOSE | KIW_CMA_RELEASE,
		.end = KIW_CMS_CLOSED,
	},
	{
		.name = "responder, not peer-to-peer",
		.events = { KIW_CME_INCOMING, KIW_CME_REQUEST, KIW_CME_ACCEPT },
		.actions = KIW_CMA_UPCALL_REQUEST | KIW_CMA_UPCALL_ESTABLISHED |
			   KIW_CMA_END_STARTUP,
		.end = KIW_CMS_OPEN,
	},
	{
		.name = "responder, peer sends no MPA",
		.events = { KIW_CME_INCOMING, KIW_CME_BAD_FRAME },
		.actions = KIW_CMA_DROP | KIW_CMA_RELEASE,
		.end = KIW_CMS_CLOSED,
	},
	{
		.name = "responder, accept fails after the QP took the stream",
		.events = { KIW_CME_INCOMING, KIW_CME_REQUEST, KIW_CME_UNSENT,
			    KIW_CME_QP_CLOSED },
		.actions = KIW_CMA_UPCALL_REQUEST | KIW_CMA_ABORT_QP | KIW_CMA_RELEASE,
		.end = KIW_CMS_CLOSED,
	},
};

static void paths_do_what_they_say(struct kunit *test)
{
	struct kiw_cm_step step;
	const struct path *p;
	u16 actions;
	int state;
	int i;

	for (p = paths; p < paths + ARRAY_SIZE(paths); p++) {
		state = KIW_CMS_IDLE;
		actions = 0;
		/* LISTEN is 0 and in none of them */
		for (i = 0; i < ARRAY_SIZE(p->events) && p->events[i]; i++) {
			step = kiw_cm_fsm(state, p->events[i]);
			KUNIT_ASSERT_TRUE_MSG(test, step.legal, "%s, event %d", p->name, i);
			state = step.next;
			actions |= step.actions;
		}
		KUNIT_EXPECT_EQ_MSG(test, state, p->end, "%s", p->name);
		KUNIT_EXPECT_EQ_MSG(test, actions, p->actions, "%s", p->name);
	}
}

static struct kunit_case cm_fsm_cases[] = {
	KUNIT_CASE(every_state_and_event_has_a_name),
	KUNIT_CASE(all_cells_are_sound),
	KUNIT_CASE(closed_is_the_end),
	KUNIT_CASE(deadline_ends_every_startup),
	KUNIT_CASE(late_events_are_legal),
	KUNIT_CASE(iw_cm_hears_of_everything_once),
	KUNIT_CASE(paths_do_what_they_say),
	{}
};

static struct kunit_suite cm_fsm_suite = {
	.name = "kiwarp_cm_fsm",
	.test_cases = cm_fsm_cases,
};

kunit_test_suite(cm_fsm_suite);
