/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * The states of an endpoint as a table: MPA startup (RFC 5044 7.1, RFC 6581) on one
 * side, the events that iw_cm allows on the other.
 */
#ifndef KIW_PROTO_CM_FSM_H
#define KIW_PROTO_CM_FSM_H

#include <linux/bits.h>
#include <linux/types.h>

/**
 * enum kiw_cm_state - state of an endpoint
 * @KIW_CMS_IDLE: created
 * @KIW_CMS_LISTENING: listener: accepts streams, if it has a socket
 * @KIW_CMS_CONNECTING: initiator: SYN sent
 * @KIW_CMS_WAIT_REPLY: initiator: Request sent
 * @KIW_CMS_WAIT_REQUEST: responder: no complete Request has been read
 * @KIW_CMS_REQUEST_GIVEN: responder: iw_cm has been told, and the consumer has not answered
 * @KIW_CMS_WAIT_FIRST: responder, peer-to-peer: accepted, iw_cm has been told, and the first valid
 *	FPDU has not been reported
 * @KIW_CMS_OPEN: the QP has taken the stream, and iw_cm has been told
 * @KIW_CMS_CLOSED: nothing more happens
 * @KIW_CMS_COUNT: number of the above
 */
enum kiw_cm_state {
	KIW_CMS_IDLE,
	KIW_CMS_LISTENING,
	KIW_CMS_CONNECTING,
	KIW_CMS_WAIT_REPLY,
	KIW_CMS_WAIT_REQUEST,
	KIW_CMS_REQUEST_GIVEN,
	KIW_CMS_WAIT_FIRST,
	KIW_CMS_OPEN,
	KIW_CMS_CLOSED,
	KIW_CMS_COUNT,
};

/**
 * enum kiw_cm_event - what happens to an endpoint
 * @KIW_CME_LISTEN: the consumer listens
 * @KIW_CME_CONNECT: the consumer connects, SYN has been sent
 * @KIW_CME_INCOMING: a listener has accepted the stream
 * @KIW_CME_REQUEST_SENT: TCP is connected and has our Request
 * @KIW_CME_AGREED: the peer's Reply accepts, and the QP runs on the stream
 * @KIW_CME_RETRY: the peer seems not to understand the enhanced Request; a new stream is being
 *	connected
 * @KIW_CME_DISAGREED: the peer's Reply accepts, but leads to no agreement here, or to one that
 *	cannot be kept; TCP has a Terminate that says so, if it could be sent
 * @KIW_CME_REFUSED: the peer's Reply rejects
 * @KIW_CME_REQUEST: a Request arrived that can be accepted
 * @KIW_CME_ACCEPT: the consumer accepted, TCP has our Reply, the QP runs
 * @KIW_CME_ACCEPT_P2P: the same, and the peer's first FPDU must arrive before the deadline
 * @KIW_CME_REJECT: the consumer rejected
 * @KIW_CME_UNSENT: the QP has the stream, but our Reply could not be sent
 * @KIW_CME_UNDELIVERED: iw_cm did not take the event of the previous step, UPCALL_REQUEST or
 *	UPCALL_REPLY_OK: it had no memory, or the listener was stopped
 * @KIW_CME_BAD_FRAME: what the peer sent is not the MPA frame that is due, or is malformed
 * @KIW_CME_LOST: the stream could not be connected, or ended
 * @KIW_CME_FAILED: this end failed to do something before the QP had the stream, or no accept could
 *	answer the Request
 * @KIW_CME_DEADLINE: the time for the whole startup is over; listener: time to accept again
 * @KIW_CME_DESTROY: the listener, the device or the QP goes away, or the endpoint is evicted
 * @KIW_CME_SPOKEN: the first valid FPDU has arrived
 * @KIW_CME_QP_CLOSED: the QP is done with the stream
 * @KIW_CME_COUNT: number of the above
 */
enum kiw_cm_event {
	KIW_CME_LISTEN,
	KIW_CME_CONNECT,
	KIW_CME_INCOMING,
	KIW_CME_REQUEST_SENT,
	KIW_CME_AGREED,
	KIW_CME_RETRY,
	KIW_CME_DISAGREED,
	KIW_CME_REFUSED,
	KIW_CME_REQUEST,
	KIW_CME_ACCEPT,
	KIW_CME_ACCEPT_P2P,
	KIW_CME_REJECT,
	KIW_CME_UNSENT,
	KIW_CME_UNDELIVERED,
	KIW_CME_BAD_FRAME,
	KIW_CME_LOST,
	KIW_CME_FAILED,
	KIW_CME_DEADLINE,
	KIW_CME_DESTROY,
	KIW_CME_SPOKEN,
	KIW_CME_QP_CLOSED,
	KIW_CME_COUNT,
};

/* What the endpoint does on a transition, in this order */
#define KIW_CMA_SEND_REJECT		BIT(0)	/* send a Reply with R */
#define KIW_CMA_UPCALL_REQUEST		BIT(1)	/* CONNECT_REQUEST */
#define KIW_CMA_UPCALL_REPLY_OK		BIT(2)	/* CONNECT_REPLY, status 0 */
#define KIW_CMA_UPCALL_REPLY_FAIL	BIT(3)	/* CONNECT_REPLY, another status */
#define KIW_CMA_UPCALL_ESTABLISHED	BIT(4)	/* ESTABLISHED */
#define KIW_CMA_UPCALL_CLOSE		BIT(5)	/* CLOSE */
#define KIW_CMA_ABORT_QP		BIT(6)	/* the QP ends the stream and says so */
#define KIW_CMA_LINGER			BIT(7)	/* close the stream in order */
#define KIW_CMA_DROP			BIT(8)	/* give up the stream, or end the listener */
#define KIW_CMA_END_STARTUP		BIT(9)	/* disarm the deadline, free the startup's data */
#define KIW_CMA_RELEASE			BIT(10)	/* drop its own references */

/**
 * struct kiw_cm_step - one cell of the table
 * @legal: this event may happen in this state
 * @next: state afterwards
 * @actions: %KIW_CMA_ bits
 */
struct kiw_cm_step {
	bool legal;
	u8 next;
	u16 actions;
};

struct kiw_cm_step kiw_cm_fsm(enum kiw_cm_state state, enum kiw_cm_event event);
const char *kiw_cm_state_name(enum kiw_cm_state state);
const char *kiw_cm_event_name(enum kiw_cm_event event);

#endif /* KIW_PROTO_CM_FSM_H */
