// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The endpoint state machine under any sequence of events: iw_cm must be told of everything
 * once and in an order it expects. Events that result from the previous step are not random:
 * UNDELIVERED occurs only after an upcall.
 */
#include "fuzz.h"

#include "proto/cm_fsm.h"

#define UPCALL_REPLY	(KIW_CMA_UPCALL_REPLY_OK | KIW_CMA_UPCALL_REPLY_FAIL)

/**
 * struct heard - what iw_cm was told of one endpoint
 * @connect: the consumer connects, so it waits for a reply
 * @accept: the consumer accepted, so it waits for ESTABLISHED
 * @request: CONNECT_REQUEST
 * @reply: CONNECT_REPLY
 * @established: ESTABLISHED
 * @closed: CLOSE
 * @ended: END_STARTUP
 * @released: RELEASE
 */
struct heard {
	bool connect;
	bool accept;
	bool request;
	bool reply;
	bool established;
	bool closed;
	bool ended;
	bool released;
};

static void once(bool *done, u16 actions, u16 action)
{
	if (!(actions & action))
		return;
	FUZZ_CHECK(!*done);
	*done = true;
}

static void follow(struct heard *h, struct kiw_cm_step step, enum kiw_cm_event event)
{
	FUZZ_CHECK(!h->released || !step.actions);
	FUZZ_CHECK(!(step.actions & KIW_CMA_DROP) || !(step.actions & KIW_CMA_LINGER));
	if (!step.legal)
		return;
	h->connect |= event == KIW_CME_CONNECT;
	h->accept |= event == KIW_CME_ACCEPT || event == KIW_CME_ACCEPT_P2P;
	/* iw_cm had no room for the upcall, so the endpoint may report the same again */
	if (event == KIW_CME_UNDELIVERED) {
		h->reply = false;
		h->request = false;
	}
	once(&h->request, step.actions, KIW_CMA_UPCALL_REQUEST);
	once(&h->reply, step.actions, UPCALL_REPLY);
	once(&h->established, step.actions, KIW_CMA_UPCALL_ESTABLISHED);
	once(&h->closed, step.actions, KIW_CMA_UPCALL_CLOSE);
	once(&h->ended, step.actions, KIW_CMA_END_STARTUP);
	once(&h->released, step.actions, KIW_CMA_RELEASE);
	FUZZ_CHECK(!h->reply || h->connect);
	FUZZ_CHECK(!h->established || h->accept);
	FUZZ_CHECK(!h->closed || h->established || h->reply);
	FUZZ_CHECK((step.next == KIW_CMS_CLOSED) == h->released);
	FUZZ_CHECK(!h->released || !h->connect || h->reply);
	FUZZ_CHECK(!h->released || !h->accept || (h->established && h->closed));
}

/* Whether @event may occur now: UNDELIVERED only after a step that made an upcall */
static bool may_come(u8 event, u16 before)
{
	return event != KIW_CME_UNDELIVERED ||
	       (before & (KIW_CMA_UPCALL_REQUEST | KIW_CMA_UPCALL_REPLY_OK));
}

/**
 * fuzz_one() - run one input of libFuzzer
 * @data: events
 * @size: number of events
 *
 * Context: user space.
 * Return: 0.
 */
int fuzz_one(const u8 *data, size_t size)
{
	enum kiw_cm_state state = KIW_CMS_IDLE;
	struct kiw_cm_step step = { 0 };
	struct heard heard = { 0 };
	size_t i;
	u8 event;

	for (i = 0; i < size; i++) {
		event = data[i] % (KIW_CME_COUNT + 1);
		if (!may_come(event, step.actions))
			continue;
		step = kiw_cm_fsm(state, event);
		FUZZ_CHECK(step.next < KIW_CMS_COUNT);
		FUZZ_CHECK(event < KIW_CME_COUNT || !step.legal);
		FUZZ_CHECK(step.legal || (step.next == state && !step.actions));
		FUZZ_CHECK(!kiw_cm_fsm(KIW_CMS_COUNT + data[i], event).legal);
		FUZZ_CHECK(*kiw_cm_state_name(state) && *kiw_cm_event_name(data[i]));
		FUZZ_CHECK(state != KIW_CMS_CLOSED || step.next == KIW_CMS_CLOSED);
		follow(&heard, step, event);
		state = step.next;
	}
	return 0;
}
