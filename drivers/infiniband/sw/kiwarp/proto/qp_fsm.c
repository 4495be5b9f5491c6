// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The states of a QP (RFC 5040 5.4, 6.2 and 7.1; the QP states of the RDMA verbs).
 *
 *	event \ state	IDLE		RTS		CLOSING		TERMINATE	ERROR
 *	CONNECT		RTS		-		-		-		-
 *	CLOSE		-		CLOSING shut	.		.		.
 *	ABORT		ERROR flush	ERROR cut	ERROR cut	ERROR fin	.
 *	RESET		IDLE clean	-		-		-		IDLE clean
 *	FAULT		-		TERMINATE term	TERMINATE term	.		.
 *	PEER_TERMINATE	-		ERROR end*	ERROR end*	.		.
 *	PEER_FIN	-		CLOSING shut	.		.		.
 *	LLP_LOST	-		ERROR cut	ERROR cut	ERROR cut	.
 *	FATAL		ERROR flush*	ERROR cut*	ERROR cut*	.		.
 *	DRAINED		-		-		ERROR end	ERROR end	.
 *
 *	-  must not happen: nothing changes		.  legal, nothing to do
 *	shut   SHUTDOWN: send what can be sent, then FIN
 *	term   SHUTDOWN, EVENT_FATAL: send the Terminate, then FIN
 *	flush  FLUSH: there is no stream
 *	end    FLUSH, REPORT		cut  FLUSH, DROP, REPORT
 *	fin    FINISH, then as cut	clean  CLEAN
 *	*      and EVENT_FATAL
 *
 * Every way from RTS to ERROR has one FLUSH and one REPORT, on the step that enters ERROR,
 * and at most one EVENT_FATAL. Nothing is placed in TERMINATE and ERROR, hence nothing into
 * the buffers of flushed work requests.
 *
 * Only the first fault is reported to the peer (RFC 5040 7.1 rule 4): a second one in
 * TERMINATE is ignored, and a valid Terminate is not answered. An ABORT comes from the consumer,
 * or after the time limit of SHUTDOWN. In TERMINATE, FINISH makes TCP take the Terminate then,
 * unless memory is short or the stream has broken. CLOSE in IDLE is refused: in the verbs, SQD
 * (our CLOSING) is reached from RTS only. A QP can be reset only in IDLE or ERROR; to reset it in
 * another state, abort it first. In ERROR the stream may not have ended yet, so its events are
 * legal there. If there is a stream on which a Terminate can be sent, FAULT is raised before FATAL,
 * and in TERMINATE FATAL changes nothing. Otherwise FATAL ends the QP.
 */
#include "qp_fsm.h"

/* As in the table above */
#define SHUT		KIW_QPA_SHUTDOWN
#define TERM		(KIW_QPA_SHUTDOWN | KIW_QPA_EVENT_FATAL)
#define FLUSH		KIW_QPA_FLUSH
#define END		(KIW_QPA_FLUSH | KIW_QPA_REPORT)
#define CUT		(KIW_QPA_FLUSH | KIW_QPA_DROP | KIW_QPA_REPORT)
#define FIN		(KIW_QPA_FINISH | CUT)
#define CLEAN		KIW_QPA_CLEAN
#define EVENT		KIW_QPA_EVENT_FATAL

#define GO(state, acts)	{ .legal = true, .next = KIW_QPS_##state, .actions = (acts) }
#define STAY(state)	GO(state, 0)

/* Missing entries are illegal */
static const struct kiw_qp_step fsm_table[KIW_QPS_COUNT][KIW_QPE_COUNT] = {
	[KIW_QPS_IDLE] = {
		[KIW_QPE_CONNECT]		= GO(RTS, 0),
		[KIW_QPE_ABORT]			= GO(ERROR, FLUSH),
		[KIW_QPE_RESET]			= GO(IDLE, CLEAN),
		[KIW_QPE_FATAL]			= GO(ERROR, FLUSH | EVENT),
	},
	[KIW_QPS_RTS] = {
		[KIW_QPE_CLOSE]			= GO(CLOSING, SHUT),
		[KIW_QPE_ABORT]			= GO(ERROR, CUT),
		[KIW_QPE_FAULT]			= GO(TERMINATE, TERM),
		[KIW_QPE_PEER_TERMINATE]	= GO(ERROR, END | EVENT),
		[KIW_QPE_PEER_FIN]		= GO(CLOSING, SHUT),
		[KIW_QPE_LLP_LOST]		= GO(ERROR, CUT),
		[KIW_QPE_FATAL]			= GO(ERROR, CUT | EVENT),
	},
	[KIW_QPS_CLOSING] = {
		[KIW_QPE_CLOSE]			= STAY(CLOSING),
		[KIW_QPE_ABORT]			= GO(ERROR, CUT),
		[KIW_QPE_FAULT]			= GO(TERMINATE, TERM),
		[KIW_QPE_PEER_TERMINATE]	= GO(ERROR, END | EVENT),
		[KIW_QPE_PEER_FIN]		= STAY(CLOSING),
		[KIW_QPE_LLP_LOST]		= GO(ERROR, CUT),
		[KIW_QPE_FATAL]			= GO(ERROR, CUT | EVENT),
		[KIW_QPE_DRAINED]		= GO(ERROR, END),
	},
	[KIW_QPS_TERMINATE] = {
		[KIW_QPE_CLOSE]			= STAY(TERMINATE),
		[KIW_QPE_ABORT]			= GO(ERROR, FIN),
		[KIW_QPE_FAULT]			= STAY(TERMINATE),
		[KIW_QPE_PEER_TERMINATE]	= STAY(TERMINATE),
		[KIW_QPE_PEER_FIN]		= STAY(TERMINATE),
		[KIW_QPE_LLP_LOST]		= GO(ERROR, CUT),
		[KIW_QPE_FATAL]			= STAY(TERMINATE),
		[KIW_QPE_DRAINED]		= GO(ERROR, END),
	},
	[KIW_QPS_ERROR] = {
		[KIW_QPE_CLOSE]			= STAY(ERROR),
		[KIW_QPE_ABORT]			= STAY(ERROR),
		[KIW_QPE_RESET]			= GO(IDLE, CLEAN),
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
 * kiw_qp_fsm() - look up what an event does to a QP
 * @state: state of the QP
 * @event: what happens
 *
 * RFC 5040 5.4, 6.2 and 7.1. The caller writes the state. The QP's work item, or a reset,
 * executes the actions.
 *
 * Context: any.
 * Return: the step; if it is illegal, @next is @state and there are no actions.
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
 * kiw_qp_state_name() - name of a state, as text
 * @state: any value
 *
 * Context: any.
 * Return: its name, "?" if it has none.
 */
const char *kiw_qp_state_name(enum kiw_qp_state state)
{
	return (unsigned int)state < KIW_QPS_COUNT ? state_names[state] : "?";
}

/**
 * kiw_qp_event_name() - name of an event, as text
 * @event: any value
 *
 * Context: any.
 * Return: its name, "?" if it has none.
 */
const char *kiw_qp_event_name(enum kiw_qp_event event)
{
	return (unsigned int)event < KIW_QPE_COUNT ? event_names[event] : "?";
}
