// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* The QP state machine under any sequence of events: one-time actions happen only once. */
#include "fuzz.h"

#include "proto/qp_fsm.h"

/**
 * struct life - what a QP has done since its start or the last CLEAN
 * @started: it was in RTS
 * @flushed: FLUSH was done
 * @reported: REPORT was done
 * @fatal: EVENT_FATAL was done
 */
struct life {
	bool started;
	bool flushed;
	bool reported;
	bool fatal;
};

static void once(bool *done, u16 actions, u16 action)
{
	if (!(actions & action))
		return;
	FUZZ_CHECK(!*done);
	*done = true;
}

static void follow(struct life *life, enum kiw_qp_state state, struct kiw_qp_step step)
{
	if (step.actions & KIW_QPA_CLEAN) {
		FUZZ_CHECK(step.next == KIW_QPS_IDLE && step.actions == KIW_QPA_CLEAN);
		FUZZ_CHECK(!life->started || life->reported);
		memset(life, 0, sizeof(*life));
		return;
	}
	life->started |= step.next == KIW_QPS_RTS;
	once(&life->flushed, step.actions, KIW_QPA_FLUSH);
	once(&life->reported, step.actions, KIW_QPA_REPORT);
	once(&life->fatal, step.actions, KIW_QPA_EVENT_FATAL);
	FUZZ_CHECK(life->started ||
		   !(step.actions & ~(KIW_QPA_FLUSH | KIW_QPA_EVENT_FATAL)));
	FUZZ_CHECK(!life->started || !life->flushed || life->reported);
	FUZZ_CHECK(!life->flushed || !kiw_qp_state_sends(step.next));
	FUZZ_CHECK((step.next == KIW_QPS_ERROR) == life->flushed);
	if (step.next != state)
		FUZZ_CHECK(step.legal);
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
	enum kiw_qp_state state = KIW_QPS_IDLE;
	struct life life = { 0 };
	struct kiw_qp_step step;
	size_t i;
	u8 event;

	for (i = 0; i < size; i++) {
		event = data[i] % (KIW_QPE_COUNT + 1);
		step = kiw_qp_fsm(state, event);
		FUZZ_CHECK(step.next < KIW_QPS_COUNT);
		FUZZ_CHECK(event < KIW_QPE_COUNT || !step.legal);
		FUZZ_CHECK(step.legal || (step.next == state && !step.actions));
		FUZZ_CHECK(!kiw_qp_fsm(KIW_QPS_COUNT + data[i], event).legal);
		FUZZ_CHECK(*kiw_qp_state_name(state) && *kiw_qp_event_name(data[i]));
		follow(&life, state, step);
		state = step.next;
	}
	return 0;
}
