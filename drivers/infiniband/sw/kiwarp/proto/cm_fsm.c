// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The states of an endpoint: MPA startup (RFC 5044 7.1, RFC 6581 9.2) and the upcalls to
 * iw_cm.
 *
 *	initiator: IDLE CONNECT > CONNECTING REQUEST_SENT > WAIT_REPLY AGREED > OPEN
 *		   or back, once: WAIT_REPLY RETRY > CONNECTING
 *	responder: IDLE INCOMING > WAIT_REQUEST REQUEST > REQUEST_GIVEN
 *		   ACCEPT > OPEN, or ACCEPT_P2P > WAIT_FIRST SPOKEN > OPEN;
 *		   ACCEPT and ACCEPT_P2P tell iw_cm ESTABLISHED
 *	listener:  IDLE LISTEN > LISTENING
 *
 * and from every state but IDLE to CLOSED:
 *
 *	event \ state	LISTENING CONNECTING WAIT_REPLY WAIT_REQUEST REQUEST_GIVEN WAIT_FIRST OPEN
 *	REFUSED		-	  -	     t		-	     -		   -	      -
 *	DISAGREED	-	  -	     t		-	     -		   -	      -
 *	BAD_FRAME	-	  -	     f		d	     -		   -	      -
 *	LOST		-	  f	     f		d	     d		   -	      -
 *	FAILED		-	  f	     f		r	     r		   -	      -
 *	DEADLINE	.	  f	     f		d	     d		   a	      .
 *	DESTROY		d	  f	     f		d	     d		   a	      a
 *	REJECT		-	  -	     -		-	     r		   -	      -
 *	UNDELIVERED	-	  -	     -		-	     r		   -	      u
 *	UNSENT		-	  -	     -		-	     q		   -	      -
 *	QP_CLOSED	-	  -	     -		-	     -		   c	      c
 *
 *	-  must not happen: nothing changes	.  legal, nothing to do
 *	a  ABORT_QP, and stay: QP_CLOSED follows
 *	c  UPCALL_CLOSE
 *	d  DROP
 *	f  UPCALL_REPLY_FAIL, DROP
 *	q  ABORT_QP: accept fails, and then iw_cm must not get an event
 *	r  SEND_REJECT, LINGER: a reset must not overtake the Reply
 *	t  UPCALL_REPLY_FAIL, LINGER: a reset must not overtake a Terminate of ours either
 *	u  UPCALL_REPLY_FAIL, ABORT_QP
 *
 * Every step to CLOSED also has RELEASE.
 *
 * Why iw_cm is told everything exactly once: iw_cm waits for a CONNECT_REPLY only after CONNECT,
 * which enters CONNECTING. Each way from CONNECTING and WAIT_REPLY to OPEN or CLOSED has one
 * CONNECT_REPLY; if iw_cm has no memory for a positive one, u replaces it. ACCEPT and ACCEPT_P2P
 * have one ESTABLISHED each, and no other event has one. CLOSE is only on the way from WAIT_FIRST
 * and OPEN, which come after ESTABLISHED or a positive CONNECT_REPLY. No event leaves CLOSED, and
 * events that may arrive late are legal there.
 *
 * Why ESTABLISHED does not wait for the peer's first FPDU: until iw_cm has taken ESTABLISHED,
 * it lets the consumer accept again or reject, and then hits a BUG_ON() when it processes the
 * event. Nothing is sent too early: what the consumer posts waits in the QP until the peer's first
 * FPDU has arrived (RFC 5044 7.1.2).
 */
#include "cm_fsm.h"

#define ROW_FAIL	(KIW_CMA_UPCALL_REPLY_FAIL | KIW_CMA_DROP | KIW_CMA_RELEASE)
#define ROW_DIFFER	(KIW_CMA_UPCALL_REPLY_FAIL | KIW_CMA_LINGER | KIW_CMA_RELEASE)
#define ROW_DROP	(KIW_CMA_DROP | KIW_CMA_RELEASE)
#define ROW_REFUSE	(KIW_CMA_SEND_REJECT | KIW_CMA_LINGER | KIW_CMA_RELEASE)
#define ROW_ABORT	KIW_CMA_ABORT_QP
#define ROW_QUIET	(KIW_CMA_ABORT_QP | KIW_CMA_RELEASE)
#define ROW_UNTELL	(KIW_CMA_UPCALL_REPLY_FAIL | KIW_CMA_ABORT_QP | KIW_CMA_RELEASE)
#define ROW_CLOSE	(KIW_CMA_UPCALL_CLOSE | KIW_CMA_RELEASE)
#define ROW_REQUEST	KIW_CMA_UPCALL_REQUEST
#define ROW_REPLY	(KIW_CMA_UPCALL_REPLY_OK | KIW_CMA_END_STARTUP)
#define ROW_OPEN	(KIW_CMA_UPCALL_ESTABLISHED | KIW_CMA_END_STARTUP)
#define ROW_FENCED	KIW_CMA_UPCALL_ESTABLISHED
#define ROW_SPOKEN	KIW_CMA_END_STARTUP

#define GO(state, acts)	{ .legal = true, .next = KIW_CMS_##state, .actions = (acts) }
#define STAY(state)	GO(state, 0)

/* Missing entries are illegal */
static const struct kiw_cm_step fsm_table[KIW_CMS_COUNT][KIW_CME_COUNT] = {
	[KIW_CMS_IDLE] = {
		[KIW_CME_LISTEN]	= GO(LISTENING, 0),
		[KIW_CME_CONNECT]	= GO(CONNECTING, 0),
		[KIW_CME_INCOMING]	= GO(WAIT_REQUEST, 0),
		[KIW_CME_DESTROY]	= STAY(IDLE),
	},
	[KIW_CMS_LISTENING] = {
		[KIW_CME_DEADLINE]	= STAY(LISTENING),
		[KIW_CME_DESTROY]	= GO(CLOSED, ROW_DROP),
	},
	[KIW_CMS_CONNECTING] = {
		[KIW_CME_REQUEST_SENT]	= GO(WAIT_REPLY, 0),
		[KIW_CME_LOST]		= GO(CLOSED, ROW_FAIL),
		[KIW_CME_FAILED]	= GO(CLOSED, ROW_FAIL),
		[KIW_CME_DEADLINE]	= GO(CLOSED, ROW_FAIL),
		[KIW_CME_DESTROY]	= GO(CLOSED, ROW_FAIL),
	},
	[KIW_CMS_WAIT_REPLY] = {
		[KIW_CME_AGREED]	= GO(OPEN, ROW_REPLY),
		[KIW_CME_RETRY]		= GO(CONNECTING, 0),
		[KIW_CME_DISAGREED]	= GO(CLOSED, ROW_DIFFER),
		[KIW_CME_REFUSED]	= GO(CLOSED, ROW_DIFFER),
		[KIW_CME_BAD_FRAME]	= GO(CLOSED, ROW_FAIL),
		[KIW_CME_LOST]		= GO(CLOSED, ROW_FAIL),
		[KIW_CME_FAILED]	= GO(CLOSED, ROW_FAIL),
		[KIW_CME_DEADLINE]	= GO(CLOSED, ROW_FAIL),
		[KIW_CME_DESTROY]	= GO(CLOSED, ROW_FAIL),
	},
	[KIW_CMS_WAIT_REQUEST] = {
		[KIW_CME_REQUEST]	= GO(REQUEST_GIVEN, ROW_REQUEST),
		[KIW_CME_BAD_FRAME]	= GO(CLOSED, ROW_DROP),
		[KIW_CME_LOST]		= GO(CLOSED, ROW_DROP),
		[KIW_CME_FAILED]	= GO(CLOSED, ROW_REFUSE),
		[KIW_CME_DEADLINE]	= GO(CLOSED, ROW_DROP),
		[KIW_CME_DESTROY]	= GO(CLOSED, ROW_DROP),
	},
	[KIW_CMS_REQUEST_GIVEN] = {
		[KIW_CME_ACCEPT]	= GO(OPEN, ROW_OPEN),
		[KIW_CME_ACCEPT_P2P]	= GO(WAIT_FIRST, ROW_FENCED),
		[KIW_CME_REJECT]	= GO(CLOSED, ROW_REFUSE),
		[KIW_CME_UNSENT]	= GO(CLOSED, ROW_QUIET),
		[KIW_CME_UNDELIVERED]	= GO(CLOSED, ROW_REFUSE),
		[KIW_CME_LOST]		= GO(CLOSED, ROW_DROP),
		[KIW_CME_FAILED]	= GO(CLOSED, ROW_REFUSE),
		[KIW_CME_DEADLINE]	= GO(CLOSED, ROW_DROP),
		[KIW_CME_DESTROY]	= GO(CLOSED, ROW_DROP),
	},
	[KIW_CMS_WAIT_FIRST] = {
		[KIW_CME_DEADLINE]	= GO(WAIT_FIRST, ROW_ABORT),
		[KIW_CME_DESTROY]	= GO(WAIT_FIRST, ROW_ABORT),
		[KIW_CME_SPOKEN]	= GO(OPEN, ROW_SPOKEN),
		[KIW_CME_QP_CLOSED]	= GO(CLOSED, ROW_CLOSE),
	},
	[KIW_CMS_OPEN] = {
		[KIW_CME_UNDELIVERED]	= GO(CLOSED, ROW_UNTELL),
		[KIW_CME_DEADLINE]	= STAY(OPEN),
		[KIW_CME_DESTROY]	= GO(OPEN, ROW_ABORT),
		[KIW_CME_SPOKEN]	= STAY(OPEN),
		[KIW_CME_QP_CLOSED]	= GO(CLOSED, ROW_CLOSE),
	},
	[KIW_CMS_CLOSED] = {
		[KIW_CME_DEADLINE]	= STAY(CLOSED),
		[KIW_CME_DESTROY]	= STAY(CLOSED),
		[KIW_CME_SPOKEN]	= STAY(CLOSED),
		[KIW_CME_QP_CLOSED]	= STAY(CLOSED),
	},
};

static const char * const state_names[KIW_CMS_COUNT] = {
	[KIW_CMS_IDLE]		= "IDLE",
	[KIW_CMS_LISTENING]	= "LISTENING",
	[KIW_CMS_CONNECTING]	= "CONNECTING",
	[KIW_CMS_WAIT_REPLY]	= "WAIT_REPLY",
	[KIW_CMS_WAIT_REQUEST]	= "WAIT_REQUEST",
	[KIW_CMS_REQUEST_GIVEN]	= "REQUEST_GIVEN",
	[KIW_CMS_WAIT_FIRST]	= "WAIT_FIRST",
	[KIW_CMS_OPEN]		= "OPEN",
	[KIW_CMS_CLOSED]	= "CLOSED",
};

static const char * const event_names[KIW_CME_COUNT] = {
	[KIW_CME_LISTEN]	= "LISTEN",
	[KIW_CME_CONNECT]	= "CONNECT",
	[KIW_CME_INCOMING]	= "INCOMING",
	[KIW_CME_REQUEST_SENT]	= "REQUEST_SENT",
	[KIW_CME_AGREED]	= "AGREED",
	[KIW_CME_RETRY]		= "RETRY",
	[KIW_CME_DISAGREED]	= "DISAGREED",
	[KIW_CME_REFUSED]	= "REFUSED",
	[KIW_CME_REQUEST]	= "REQUEST",
	[KIW_CME_ACCEPT]	= "ACCEPT",
	[KIW_CME_ACCEPT_P2P]	= "ACCEPT_P2P",
	[KIW_CME_REJECT]	= "REJECT",
	[KIW_CME_UNSENT]	= "UNSENT",
	[KIW_CME_UNDELIVERED]	= "UNDELIVERED",
	[KIW_CME_BAD_FRAME]	= "BAD_FRAME",
	[KIW_CME_LOST]		= "LOST",
	[KIW_CME_FAILED]	= "FAILED",
	[KIW_CME_DEADLINE]	= "DEADLINE",
	[KIW_CME_DESTROY]	= "DESTROY",
	[KIW_CME_SPOKEN]	= "SPOKEN",
	[KIW_CME_QP_CLOSED]	= "QP_CLOSED",
};

/**
 * kiw_cm_fsm() - look up what an event does to an endpoint
 * @state: state of the endpoint
 * @event: what happens
 *
 * RFC 5044 7.1.2, RFC 6581 9.2. The caller writes the state and executes the actions.
 *
 * Context: any.
 * Return: the step; if it is illegal, @next is @state and there are no actions.
 */
struct kiw_cm_step kiw_cm_fsm(enum kiw_cm_state state, enum kiw_cm_event event)
{
	struct kiw_cm_step step = { .next = state };

	if ((unsigned int)state >= KIW_CMS_COUNT || (unsigned int)event >= KIW_CME_COUNT)
		return step;
	if (fsm_table[state][event].legal)
		step = fsm_table[state][event];
	return step;
}

/**
 * kiw_cm_state_name() - name of a state, as text
 * @state: any value
 *
 * Context: any.
 * Return: its name, "?" if it has none.
 */
const char *kiw_cm_state_name(enum kiw_cm_state state)
{
	return (unsigned int)state < KIW_CMS_COUNT ? state_names[state] : "?";
}

/**
 * kiw_cm_event_name() - name of an event, as text
 * @event: any value
 *
 * Context: any.
 * Return: its name, "?" if it has none.
 */
const char *kiw_cm_event_name(enum kiw_cm_event event)
{
	return (unsigned int)event < KIW_CME_COUNT ? event_names[event] : "?";
}
