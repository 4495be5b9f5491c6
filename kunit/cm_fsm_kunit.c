// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The endpoint state machine: a second copy of the table of next states, invariants of every entry,
 * and every path through it together with a model of iw_cm and of a consumer that may make most
 * calls in any state.
 */
#include "proto/cm_fsm.c"

#include "util.h"

static bool is_startup(int state)
{
	return state == KIW_CMS_CONNECTING || state == KIW_CMS_WAIT_REPLY ||
	       state == KIW_CMS_WAIT_REQUEST || state == KIW_CMS_REQUEST_GIVEN ||
	       state == KIW_CMS_WAIT_FIRST;
}

static void names_differ(struct kunit *test)
{
	int i, j;

	for (i = 0; i < KIW_CMS_COUNT; i++) {
		KUNIT_EXPECT_STRNEQ(test, kiw_cm_state_name(i), "?");
		for (j = 0; j < i; j++)
			KUNIT_EXPECT_STRNEQ(test, kiw_cm_state_name(i), kiw_cm_state_name(j));
	}
	for (i = 0; i < KIW_CME_COUNT; i++) {
		KUNIT_EXPECT_STRNEQ(test, kiw_cm_event_name(i), "?");
		for (j = 0; j < i; j++)
			KUNIT_EXPECT_STRNEQ(test, kiw_cm_event_name(i), kiw_cm_event_name(j));
	}
	KUNIT_EXPECT_STREQ(test, kiw_cm_state_name(KIW_CMS_COUNT), "?");
	KUNIT_EXPECT_STREQ(test, kiw_cm_event_name(KIW_CME_COUNT), "?");
}

/* The table of cm_fsm.c: next state, '-' for illegal; events in the order of the enum */
static const char * const next_states[KIW_CMS_COUNT] = {
	[KIW_CMS_IDLE]		= "LNQ---------------I--",
	[KIW_CMS_LISTENING]	= "-----------------LC--",
	[KIW_CMS_CONNECTING]	= "---W-----------CCCC--",
	[KIW_CMS_WAIT_REPLY]	= "----ONCC------CCCCC--",
	[KIW_CMS_WAIT_REQUEST]	= "--------G-----CCCCC--",
	[KIW_CMS_REQUEST_GIVEN]	= "---------OFCCC-CCCC--",
	[KIW_CMS_WAIT_FIRST]	= "-----------------FFOC",
	[KIW_CMS_OPEN]		= "-------------C---OOOC",
	[KIW_CMS_CLOSED]	= "-----------------CCCC",
};

static const char state_letters[KIW_CMS_COUNT] = {
	[KIW_CMS_IDLE] = 'I', [KIW_CMS_LISTENING] = 'L', [KIW_CMS_CONNECTING] = 'N',
	[KIW_CMS_WAIT_REPLY] = 'W', [KIW_CMS_WAIT_REQUEST] = 'Q', [KIW_CMS_REQUEST_GIVEN] = 'G',
	[KIW_CMS_WAIT_FIRST] = 'F', [KIW_CMS_OPEN] = 'O', [KIW_CMS_CLOSED] = 'C',
};

static void every_pair_goes_where_it_should(struct kunit *test)
{
	struct kiw_cm_step step;
	int state, event;
	char want;

	for (state = 0; state < KIW_CMS_COUNT; state++) {
		KUNIT_ASSERT_EQ(test, strlen(next_states[state]), (size_t)KIW_CME_COUNT);
		for (event = 0; event < KIW_CME_COUNT; event++) {
			step = kiw_cm_fsm(state, event);
			want = next_states[state][event];
			KUNIT_ASSERT_LT(test, step.next, (u8)KIW_CMS_COUNT);
			KUNIT_EXPECT_EQ_MSG(test, step.legal, want != '-', "%s, %s",
					    kiw_cm_state_name(state), kiw_cm_event_name(event));
			if (step.legal)
				KUNIT_EXPECT_EQ_MSG(test, state_letters[step.next], want, "%s, %s",
						    kiw_cm_state_name(state),
						    kiw_cm_event_name(event));
		}
	}
	KUNIT_EXPECT_FALSE(test, kiw_cm_fsm(KIW_CMS_COUNT, KIW_CME_LOST).legal);
	KUNIT_EXPECT_FALSE(test, kiw_cm_fsm(KIW_CMS_OPEN, KIW_CME_COUNT).legal);
}

/* Is a peer told that this end refuses? Its Request cannot be delivered, or is rejected */
static bool is_refusal(int state, int event)
{
	if (state == KIW_CMS_WAIT_REQUEST)
		return event == KIW_CME_FAILED;
	return state == KIW_CMS_REQUEST_GIVEN &&
	       (event == KIW_CME_REJECT || event == KIW_CME_UNDELIVERED || event == KIW_CME_FAILED);
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
	KUNIT_EXPECT_EQ_MSG(test, is_refusal(state, event), !!(step.actions & KIW_CMA_SEND_REJECT),
			    "%s %s", s, e);
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

/* No matter what the peer does, the deadline ends every startup. */
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

/* Late events of the QP, the deadline and the device are legal after startup. */
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

/*
 * A model of iw_cm (drivers/infiniband/core/iwcm.c) and of its consumer.
 *
 * Events that the endpoint raises are queued and processed later, one at a time. The consumer
 * may make any call in any state, unless the rules of a run exclude it. Calls that would block
 * while a connect or an accept is in progress are made when they no longer block. A state in
 * which iw_cm would crash the kernel is recorded in @bugs.
 */
enum iw_state {
	IW_NONE,	/* no cm_id for this connection */
	IW_IDLE,
	IW_CONN_SENT,
	IW_CONN_RECV,
	IW_ESTABLISHED,
	IW_CLOSING,
	IW_DESTROYED,
	IW_COUNT,
};

enum iw_event {
	IW_EV_NONE,
	IW_EV_REQUEST,
	IW_EV_REPLY_OK,
	IW_EV_REPLY_FAIL,
	IW_EV_ESTABLISHED,
	IW_EV_CLOSE,
	IW_EV_COUNT,
};

#define IW_QUEUE	3

/* Errors found in a run */
#define BUG_REPLY	BIT(0)	/* CONNECT_REPLY in another state than CONN_SENT */
#define BUG_ESTABLISHED	BIT(1)	/* ESTABLISHED in another state than CONN_RECV */
#define BUG_CLOSE	BIT(2)	/* CLOSE before the connection was established */
#define BUG_CALL	BIT(3)	/* disconnect or destroy in CONN_SENT */
#define BUG_STUCK	BIT(4)	/* the endpoint is closed, and a call still waits */
#define BUG_LOST	BIT(5)	/* the endpoint is closed, and iw_cm has a connection */
#define BUG_QUEUE	BIT(6)	/* more events than iw_cm has room for */
#define BUG_REJECT	BIT(7)	/* the driver is asked to reject what it has accepted */

/**
 * struct rules - behaviour of the consumer and of iw_cm in a run
 * @waits: accept returns only when iw_cm has processed ESTABLISHED, as for a process
 * @answers_twice: the consumer may accept or reject in any state, not just once per Request
 * @answers_own: the consumer may accept or reject a connection that it is connecting itself
 * @is_mended: accept and reject in the wrong state do not wake up waiters for connect
 */
struct rules {
	bool waits;
	bool answers_twice;
	bool answers_own;
	bool is_mended;
};

/**
 * struct node - combined state of endpoint, iw_cm and consumer
 * @ep: &enum kiw_cm_state
 * @iw: &enum iw_state
 * @queue: &enum iw_event, oldest first
 * @is_waited_for: disconnect and destroy wait (IWCM_F_CONNECT_WAIT)
 * @drops: events are dropped (IWCM_F_DROP_EVENTS)
 * @in_accept: a process waits in accept for ESTABLISHED to be processed
 * @has_answered: the consumer has accepted or rejected
 */
struct node {
	u8 ep;
	u8 iw;
	u8 queue[IW_QUEUE];
	bool is_waited_for;
	bool drops;
	bool in_accept;
	bool has_answered;
};

#define NODES	(KIW_CMS_COUNT * IW_COUNT * IW_EV_COUNT * IW_EV_COUNT * IW_EV_COUNT * 16)

struct model {
	struct kunit *test;
	const struct rules *rules;
	unsigned long *seen;
	struct node *todo;
	size_t num_todo;
	u32 bugs;
	bool reached[KIW_CMS_COUNT];
	bool established[KIW_CMS_COUNT];
};

static size_t node_number(const struct node *n)
{
	size_t number = n->ep;
	int i;

	number = number * IW_COUNT + n->iw;
	for (i = 0; i < IW_QUEUE; i++)
		number = number * IW_EV_COUNT + n->queue[i];
	return number * 16 + (n->is_waited_for | n->drops << 1 | n->in_accept << 2 |
			      n->has_answered << 3);
}

/* Adds a state to explore, unless it was added before */
static void model_add(struct model *m, const struct node *n)
{
	if (__test_and_set_bit(node_number(n), m->seen))
		return;
	m->todo[m->num_todo++] = *n;
	m->reached[n->ep] = true;
	if (n->iw == IW_ESTABLISHED)
		m->established[n->ep] = true;
}

static void node_raise(struct model *m, struct node *n, enum iw_event event)
{
	int i;

	for (i = 0; i < IW_QUEUE; i++) {
		if (n->queue[i] != IW_EV_NONE)
			continue;
		n->queue[i] = event;
		return;
	}
	m->bugs |= BUG_QUEUE;
}

static const struct {
	u16 action;
	enum iw_event event;
} upcalls[] = {
	/* In the order in which the endpoint does them */
	{ KIW_CMA_UPCALL_REQUEST,	IW_EV_REQUEST },
	{ KIW_CMA_UPCALL_REPLY_OK,	IW_EV_REPLY_OK },
	{ KIW_CMA_UPCALL_REPLY_FAIL,	IW_EV_REPLY_FAIL },
	{ KIW_CMA_UPCALL_ESTABLISHED,	IW_EV_ESTABLISHED },
	{ KIW_CMA_UPCALL_CLOSE,		IW_EV_CLOSE },
};

static void node_tell(struct model *m, struct node *n, u16 actions)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(upcalls); i++)
		if (actions & upcalls[i].action)
			node_raise(m, n, upcalls[i].event);
}

/* The endpoint takes a step; if iw_cm can refuse it, both outcomes are followed. */
static void node_step(struct model *m, struct node n, enum kiw_cm_event event)
{
	const u16 refusable = KIW_CMA_UPCALL_REQUEST | KIW_CMA_UPCALL_REPLY_OK;
	struct kiw_cm_step step = kiw_cm_fsm(n.ep, event);
	struct node refused = n;

	KUNIT_ASSERT_TRUE_MSG(m->test, step.legal, "%s %s", state_names[n.ep],
			      event_names[event]);
	n.ep = step.next;
	node_tell(m, &n, step.actions);
	model_add(m, &n);
	if (!(step.actions & refusable))
		return;
	step = kiw_cm_fsm(step.next, KIW_CME_UNDELIVERED);
	KUNIT_ASSERT_TRUE(m->test, step.legal);
	refused.ep = step.next;
	node_tell(m, &refused, step.actions);
	model_add(m, &refused);
}

/* Whether the event is a call of the consumer or iw_cm; others come from stream, QP or timer */
static bool is_call(enum kiw_cm_event event)
{
	switch (event) {
	case KIW_CME_LISTEN:
	case KIW_CME_CONNECT:
	case KIW_CME_ACCEPT:
	case KIW_CME_ACCEPT_P2P:
	case KIW_CME_REJECT:
	case KIW_CME_UNSENT:
	case KIW_CME_UNDELIVERED:
		return true;
	default:
		return false;
	}
}

static void explore_events(struct model *m, const struct node *n)
{
	int event;

	for (event = 0; event < KIW_CME_COUNT; event++)
		if (!is_call(event) && kiw_cm_fsm(n->ep, event).legal)
			node_step(m, *n, event);
}

static void iw_process(struct model *m, struct node *n, enum iw_event event)
{
	switch (event) {
	case IW_EV_REQUEST:
		n->iw = IW_CONN_RECV;
		break;
	case IW_EV_REPLY_OK:
	case IW_EV_REPLY_FAIL:
		if (n->iw != IW_CONN_SENT)
			m->bugs |= BUG_REPLY;
		n->is_waited_for = false;
		n->iw = event == IW_EV_REPLY_OK ? IW_ESTABLISHED : IW_IDLE;
		break;
	case IW_EV_ESTABLISHED:
		if (n->iw != IW_CONN_RECV)
			m->bugs |= BUG_ESTABLISHED;
		n->is_waited_for = false;
		n->in_accept = false;
		n->iw = IW_ESTABLISHED;
		break;
	case IW_EV_CLOSE:
		if (n->iw != IW_ESTABLISHED && n->iw != IW_CLOSING && n->iw != IW_DESTROYED)
			m->bugs |= BUG_CLOSE;
		n->iw = n->iw == IW_DESTROYED ? IW_DESTROYED : IW_IDLE;
		break;
	default:
		break;
	}
}

static void explore_queue(struct model *m, struct node n)
{
	const enum iw_event event = n.queue[0];

	if (event == IW_EV_NONE)
		return;
	memmove(n.queue, n.queue + 1, IW_QUEUE - 1);
	n.queue[IW_QUEUE - 1] = IW_EV_NONE;
	/* A Request whose listener is being destroyed is dropped, and nobody answers it. */
	if (event == IW_EV_REQUEST)
		model_add(m, &n);
	if (!n.drops)
		iw_process(m, &n, event);
	model_add(m, &n);
}

static void call_connect(struct model *m, struct node n)
{
	if (n.iw != IW_NONE || n.ep != KIW_CMS_IDLE)
		return;
	n.iw = IW_CONN_SENT;
	n.is_waited_for = true;
	node_step(m, n, KIW_CME_CONNECT);
}

/* The consumer answers in a state in which iw_cm refuses that; waiters may be woken up */
static void call_in_vain(struct model *m, struct node n)
{
	if (!m->rules->answers_own && n.iw == IW_CONN_SENT)
		return;
	if (!m->rules->is_mended)
		n.is_waited_for = false;
	model_add(m, &n);
}

static void node_accept(struct model *m, struct node n, enum kiw_cm_event event)
{
	n.is_waited_for = true;
	n.in_accept = m->rules->waits;
	node_step(m, n, event);
}

static void call_accept(struct model *m, struct node n)
{
	if (n.iw != IW_CONN_RECV) {
		call_in_vain(m, n);
		return;
	}
	n.has_answered = true;
	if (n.ep == KIW_CMS_REQUEST_GIVEN) {
		node_accept(m, n, KIW_CME_ACCEPT);
		node_accept(m, n, KIW_CME_ACCEPT_P2P);
		/* Accept fails because of the QP (none, not idle, not the caller's), or in TCP */
		n.iw = IW_IDLE;
		node_step(m, n, KIW_CME_FAILED);
		node_step(m, n, KIW_CME_UNSENT);
	} else {
		/* The driver says that there is no such Request. */
		n.iw = IW_IDLE;
		n.is_waited_for = false;
		model_add(m, &n);
	}
}

static void node_reject(struct model *m, struct node n)
{
	if (n.ep == KIW_CMS_REQUEST_GIVEN) {
		node_step(m, n, KIW_CME_REJECT);
		return;
	}
	if (n.ep != KIW_CMS_CLOSED)
		m->bugs |= BUG_REJECT;
	model_add(m, &n);
}

static void call_reject(struct model *m, struct node n)
{
	if (n.iw != IW_CONN_RECV) {
		call_in_vain(m, n);
		return;
	}
	n.has_answered = true;
	n.iw = IW_IDLE;
	n.is_waited_for = false;
	node_reject(m, n);
}

static void call_disconnect(struct model *m, struct node n)
{
	if (n.is_waited_for)
		return;
	if (n.iw == IW_CONN_SENT)
		m->bugs |= BUG_CALL;
	if (n.iw == IW_ESTABLISHED)
		n.iw = IW_CLOSING;
	model_add(m, &n);
}

static void call_destroy(struct model *m, struct node n)
{
	const enum iw_state was = n.iw;

	if (n.is_waited_for)
		return;
	if (was == IW_CONN_SENT)
		m->bugs |= BUG_CALL;
	n.drops = true;
	n.iw = IW_DESTROYED;
	if (was == IW_CONN_RECV)
		node_reject(m, n);
	else
		model_add(m, &n);
}

static void explore_calls(struct model *m, const struct node *n)
{
	/* rdma_cm lets nobody else in as long as a process is in accept. */
	if (n->in_accept || n->iw == IW_DESTROYED)
		return;
	call_connect(m, *n);
	if (n->iw == IW_NONE)
		return;
	if (m->rules->answers_twice || (!n->has_answered && n->iw == IW_CONN_RECV)) {
		call_accept(m, *n);
		call_reject(m, *n);
	}
	call_disconnect(m, *n);
	call_destroy(m, *n);
}

/* When the endpoint is closed and all events are processed, nothing may wait or be connected. */
static void check_end(struct model *m, const struct node *n)
{
	if (n->ep != KIW_CMS_CLOSED || n->queue[0] != IW_EV_NONE)
		return;
	if (n->is_waited_for || n->in_accept || n->iw == IW_CONN_SENT)
		m->bugs |= BUG_STUCK;
	if (n->iw == IW_ESTABLISHED || n->iw == IW_CLOSING)
		m->bugs |= BUG_LOST;
}

/* Returns the BUG_ bits of everything that can happen under @rules. */
static u32 explore(struct kunit *test, const struct rules *rules, struct model *m)
{
	const struct node start = { .ep = KIW_CMS_IDLE, .iw = IW_NONE };
	const struct node listener = { .ep = KIW_CMS_LISTENING, .iw = IW_NONE };
	struct node n;

	memset(m, 0, sizeof(*m));
	m->test = test;
	m->rules = rules;
	m->seen = kunit_kzalloc(test, BITS_TO_LONGS(NODES) * sizeof(long), GFP_KERNEL);
	m->todo = kunit_kmalloc_array(test, NODES / 64, sizeof(*m->todo), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, m->seen);
	KUNIT_ASSERT_NOT_NULL(test, m->todo);
	model_add(m, &start);
	model_add(m, &listener);
	while (m->num_todo) {
		KUNIT_ASSERT_LT(test, m->num_todo, (size_t)NODES / 64 - 64);
		n = m->todo[--m->num_todo];
		check_end(m, &n);
		explore_events(m, &n);
		explore_queue(m, n);
		explore_calls(m, &n);
	}
	return m->bugs;
}

/* A process may make any call. The fault of iw_cm described below is left out or mended. */
static void process_cannot_stop_iw_cm(struct kunit *test)
{
	static const struct rules rules = { .waits = true, .answers_twice = true };
	static const struct rules mended = {
		.waits = true, .answers_twice = true, .answers_own = true, .is_mended = true,
	};
	struct model *m = kunit_kzalloc(test, sizeof(*m), GFP_KERNEL);
	int state;

	KUNIT_ASSERT_NOT_NULL(test, m);
	KUNIT_EXPECT_EQ(test, explore(test, &mended, m), 0);
	KUNIT_EXPECT_EQ(test, explore(test, &rules, m), 0);
	for (state = 0; state < KIW_CMS_COUNT; state++)
		KUNIT_EXPECT_TRUE_MSG(test, m->reached[state], "%s", state_names[state]);
	KUNIT_EXPECT_TRUE(test, m->established[KIW_CMS_OPEN]);
	KUNIT_EXPECT_TRUE(test, m->established[KIW_CMS_WAIT_FIRST]);
}

static void kernel_consumer_hears_of_everything_once(struct kunit *test)
{
	static const struct rules rules = {};
	struct model *m = kunit_kzalloc(test, sizeof(*m), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, m);
	KUNIT_EXPECT_EQ(test, explore(test, &rules, m), 0);
}

/*
 * A fault of iw_cm that a driver cannot prevent: accepting or rejecting a connection that is
 * being connected fails, but wakes up disconnect and destroy in a state they do not expect.
 */
static void fault_of_iw_cm_is_the_only_one(struct kunit *test)
{
	static const struct rules rules = {
		.waits = true, .answers_twice = true, .answers_own = true,
	};
	struct model *m = kunit_kzalloc(test, sizeof(*m), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, m);
	KUNIT_EXPECT_EQ(test, explore(test, &rules, m) & BUG_CALL, BUG_CALL);
	KUNIT_EXPECT_FALSE(test, m->bugs & (BUG_ESTABLISHED | BUG_REJECT));
}

/* The model detects such errors: here an accept that does not wait, and then another answer. */
static void model_sees_an_early_return_from_accept(struct kunit *test)
{
	static const struct rules rules = { .answers_twice = true, .is_mended = true };
	struct model *m = kunit_kzalloc(test, sizeof(*m), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, m);
	KUNIT_EXPECT_EQ(test, explore(test, &rules, m) & BUG_ESTABLISHED, BUG_ESTABLISHED);
	KUNIT_EXPECT_TRUE(test, m->bugs & BUG_REJECT);
}

struct fsm_path {
	const char *name;
	u8 events[8];
	u16 actions;
	u8 end;
};

static const struct fsm_path paths[] = {
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
		.actions = KIW_CMA_UPCALL_REQUEST | KIW_CMA_UPCALL_ESTABLISHED |
			   KIW_CMA_ABORT_QP | KIW_CMA_UPCALL_CLOSE | KIW_CMA_RELEASE,
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
	const struct fsm_path *p;
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
	KUNIT_CASE(names_differ),
	KUNIT_CASE(every_pair_goes_where_it_should),
	KUNIT_CASE(all_cells_are_sound),
	KUNIT_CASE(closed_is_the_end),
	KUNIT_CASE(deadline_ends_every_startup),
	KUNIT_CASE(late_events_are_legal),
	KUNIT_CASE(process_cannot_stop_iw_cm),
	KUNIT_CASE(kernel_consumer_hears_of_everything_once),
	KUNIT_CASE(fault_of_iw_cm_is_the_only_one),
	KUNIT_CASE(model_sees_an_early_return_from_accept),
	KUNIT_CASE(paths_do_what_they_say),
	{}
};

static struct kunit_suite cm_fsm_suite = {
	.name = "kiwarp_cm_fsm",
	.test_cases = cm_fsm_cases,
};

kunit_test_suite(cm_fsm_suite);
