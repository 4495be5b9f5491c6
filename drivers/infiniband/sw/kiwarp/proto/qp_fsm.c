// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The life of a QP (RFC 5040 5.4, 6.2 and 7.1; the RDMA verbs' QP states).
 *
 *	event \ state	IDLE	RTS		CLOSING		TERMINATE	ERROR
 *	CONNECT		RTS a	-		-		-		-
 *	CLOSE		-	CLOSING b	.		.		.
 *	ABORT		ERROR f	ERROR d		ERROR d		ERROR e		.
 *	RESET		IDLE r	-		-		-		IDLE r
 *	FAULT		-	TERMINATE t	TERMINATE t	.		.
 *	PEER_TERMINATE	-	ERROR p		ERROR p		.		.
 *	PEER_FIN	-	CLOSING b	.		.		.
 *	LLP_LOST	-	ERROR d		ERROR d		ERROR e		.
 *	FATAL		ERROR h	ERROR i		ERROR i		.		.
 *	DRAINED		-	-		ERROR c		ERROR g		.
 *
 *	-  must not happen: nothing changes		.  legal, nothing to do
 *	a  START
 *	b  SHUTDOWN: what is queued goes out, then FIN
 *	c  STOP_RX, FLUSH, REPORT
 *	d  STOP_RX, FLUSH, DROP, REPORT
 *	e  FLUSH, DROP, REPORT: reception has been stopped
 *	f  FLUSH: there is no stream
 *	g  FLUSH, REPORT
 *	h  FLUSH, EVENT_FATAL: there is no stream
 *	i  STOP_RX, FLUSH, DROP, REPORT, EVENT_FATAL
 *	p  STOP_RX, FLUSH, SHUTDOWN, REPORT, EVENT_FATAL
 *	r  CLEAN
 *	t  TERMINATE, STOP_RX, SHUTDOWN, EVENT_FATAL
 *
 * Every way from RTS to ERROR has one FLUSH and one REPORT, on the step that
 * enters ERROR, at most one EVENT_FATAL, and STOP_RX no later than FLUSH: nothing
 * is placed into work that has been given back.
 *
 * The first fault is the one that is told (RFC 5040 7.1 rule 4), so a second in
 * TERMINATE is nothing, and a Terminate is not answered. CLOSE on a QP without a
 * connection is refused: SQD is reached from RTS only. A QP is reset from where
 * it does nothing; a consumer that wants it sooner aborts first. In ERROR the
 * stream may still be on its way down, hence its events are legal there. FATAL comes
 * after a FAULT, if that can be sent, and is for the QPs where it cannot.
 */
#include "qp_fsm.h"

/* The letters above */
#define ACT_A	KIW_QPA_START
#define ACT_B	KIW_QPA_SHUTDOWN
#define ACT_C	(KIW_QPA_STOP_RX | KIW_QPA_FLUSH | KIW_QPA_REPORT)
#define ACT_D	(KIW_QPA_STOP_RX | KIW_QPA_FLUSH | KIW_QPA_DROP | KIW_QPA_REPORT)
#define ACT_E	(KIW_QPA_FLUSH | KIW_QPA_DROP | KIW_QPA_REPORT)
#define ACT_F	KIW_QPA_FLUSH
#define ACT_G	(KIW_QPA_FLUSH | KIW_QPA_REPORT)
#define ACT_H	(KIW_QPA_FLUSH | KIW_QPA_EVENT_FATAL)
#define ACT_I	(ACT_D | KIW_QPA_EVENT_FATAL)
#define ACT_P	(KIW_QPA_STOP_RX | KIW_QPA_FLUSH | KIW_QPA_SHUTDOWN | KIW_QPA_REPORT | \
		 KIW_QPA_EVENT_FATAL)
#define ACT_R	KIW_QPA_CLEAN
#define ACT_T	(KIW_QPA_TERMINATE | KIW_QPA_STOP_RX | KIW_QPA_SHUTDOWN | KIW_QPA_EVENT_FATAL)

#define GO(state, acts)	{ .legal = true, .next = KIW_QPS_##state, .actions = (acts) }
#define STAY(state)	GO(state, 0)

/* Cells that are not written are illegal */
static const struct kiw_qp_step fsm_table[KIW_QPS_COUNT][KIW_QPE_COUNT] = {
	[KIW_QPS_IDLE] = {
		[KIW_QPE_CONNECT]		= GO(RTS, ACT_A),
		[KIW_QPE_ABORT]			= GO(ERROR, ACT_F),
		[KIW_QPE_RESET]			= GO(IDLE, ACT_R),
		[KIW_QPE_FATAL]			= GO(ERROR, ACT_H),
	},
	[KIW_QPS_RTS] = {
		[KIW_QPE_CLOSE]			= GO(CLOSING, ACT_B),
		[KIW_QPE_ABORT]			= GO(ERROR, ACT_D),
		[KIW_QPE_FAULT]			= GO(TERMINATE, ACT_T),
		[KIW_QPE_PEER_TERMINATE]	= GO(ERROR, ACT_P),
		[KIW_QPE_PEER_FIN]		= GO(CLOSING, ACT_B),
		[KIW_QPE_LLP_LOST]		= GO(ERROR, ACT_D),
		[KIW_QPE_FATAL]			= GO(ERROR, ACT_I),
	},
	[KIW_QPS_CLOSING] = {
		[KIW_QPE_CLOSE]			= STAY(CLOSING),
		[KIW_QPE_ABORT]			= GO(ERROR, ACT_D),
		[KIW_QPE_FAULT]			= GO(TERMINATE, ACT_T),
		[KIW_QPE_PEER_TERMINATE]	= GO(ERROR, ACT_P),
		[KIW_QPE_PEER_FIN]		= STAY(CLOSING),
		[KIW_QPE_LLP_LOST]		= GO(ERROR, ACT_D),
		[KIW_QPE_FATAL]			= GO(ERROR, ACT_I),
		[KIW_QPE_DRAINED]		= GO(ERROR, ACT_C),
	},
	[KIW_QPS_TERMINATE] = {
		[KIW_QPE_CLOSE]			= STAY(TERMINATE),
		[KIW_QPE_ABORT]			= GO(ERROR, ACT_E),
		[KIW_QPE_FAULT]			= STAY(TERMINATE),
		[KIW_QPE_PEER_TERMINATE]	= STAY(TERMINATE),
		[KIW_QPE_PEER_FIN]		= STAY(TERMINATE),
		[KIW_QPE_LLP_LOST]		= GO(ERROR, ACT_E),
		[KIW_QPE_FATAL]			= STAY(TERMINATE),
		[KIW_QPE_DRAINED]		= GO(ERROR, ACT_G),
	},
	[KIW_QPS_ERROR] = {
		[KIW_QPE_CLOSE]			= STAY(ERROR),
		[KIW_QPE_ABORT]			= STAY(ERROR),
		[KIW_QPE_RESET]			= GO(IDLE, ACT_R),
		[KIW_QPE_FAULT]			= STAY(ERROR),
		[KIW_QPE_PEER_TERMINATE]	= STAY(ERROR),
		[KIW_QPE_PEER_FIN]		= STAY(ERROR),
		[KIW_QPE_LLP_LOST]		= STAY(ERROR),
		[KIW_QPE_FATAL]			= STAY(ERROR),
		[KIW_QPE_DRAINED]		= STAY(ERROR),
	},
};

static const char * const state_names[KIW_QPS_COUNT] = {
	[KIW_QPS_IDLE]		= "IDLE",
	[KIW_QPS_RTS]		= "RTS",
	[KIW_QPS_CLOSING]	= "CLOSING",
	[KIW_QPS_TERMINATE]	= "TERMINATE",
	[KIW_QPS_ERROR]		= "ERROR",
};

static const char * const event_names[KIW_QPE_COUNT] = {
	[KIW_QPE_CONNECT]		= "CONNECT",
	[KIW_QPE_CLOSE]			= "CLOSE",
	[KIW_QPE_ABORT]			= "ABORT",
	[KIW_QPE_RESET]			= "RESET",
	[KIW_QPE_FAULT]			= "FAULT",
	[KIW_QPE_PEER_TERMINATE]	= "PEER_TERMINATE",
	[KIW_QPE_PEER_FIN]		= "PEER_FIN",
	[KIW_QPE_LLP_LOST]		= "LLP_LOST",
	[KIW_QPE_FATAL]			= "FATAL",
	[KIW_QPE_DRAINED]		= "DRAINED",
};

/**
 * kiw_qp_fsm - what an event does to a QP
 * @state: where the QP is
 * @event: what happens
 *
 * RFC 5040 5.4, 6.2 and 7.1. The caller writes the state and does the actions.
 *
 * Context: any.
 * Return: the step; when it is not legal, @next is @state and there is nothing
 * to do.
 */
struct kiw_qp_step kiw_qp_fsm(enum kiw_qp_state state, enum kiw_qp_event event)
{
	struct kiw_qp_step step = { .next = state };

	if ((unsigned int)state >= KIW_QPS_COUNT || (unsigned int)event >= KIW_QPE_COUNT)
		return step;
	if (fsm_table[state][event].legal)
		step = fsm_table[state][event];
	return step;
}

/**
 * kiw_qp_state_name - a state for people
 * @state: any value
 *
 * Context: any.
 * Return: its name, "?" when it has none.
 */
const char *kiw_qp_state_name(enum kiw_qp_state state)
{
	return (unsigned int)state < KIW_QPS_COUNT ? state_names[state] : "?";
}

/**
 * kiw_qp_event_name - an event for people
 * @event: any value
 *
 * Context: any.
 * Return: its name, "?" when it has none.
 */
const char *kiw_qp_event_name(enum kiw_qp_event event)
{
	return (unsigned int)event < KIW_QPE_COUNT ? event_names[event] : "?";
}
