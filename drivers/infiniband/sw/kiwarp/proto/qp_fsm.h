/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * The states of a queue pair as a table: RFC 5040 6 and the states of the RDMA verbs,
 * reduced to those that a software RNIC distinguishes.
 */
#ifndef KIW_PROTO_QP_FSM_H
#define KIW_PROTO_QP_FSM_H

#include <linux/bits.h>
#include <linux/types.h>

/**
 * enum kiw_qp_state - state of a QP
 * @KIW_QPS_IDLE: created, or reset; no connection
 * @KIW_QPS_RTS: full operation
 * @KIW_QPS_CLOSING: orderly close of our half: what can be sent is sent, then FIN
 * @KIW_QPS_TERMINATE: sends the FPDUs that are in the batch, then a Terminate; nothing is placed
 * @KIW_QPS_ERROR: TCP is given nothing, except by %KIW_QPA_FINISH, and nothing is placed; the QP's
 *	work requests are flushed
 * @KIW_QPS_COUNT: number of the above
 */
enum kiw_qp_state {
	KIW_QPS_IDLE,
	KIW_QPS_RTS,
	KIW_QPS_CLOSING,
	KIW_QPS_TERMINATE,
	KIW_QPS_ERROR,
	KIW_QPS_COUNT,
};

/**
 * enum kiw_qp_event - what happens to a QP
 * @KIW_QPE_CONNECT: the connection manager hands over an established stream
 * @KIW_QPE_CLOSE: the consumer closes in order (modify to SQD)
 * @KIW_QPE_ABORT: the consumer aborts (modify to ERR) or resets the QP, the QP is destroyed, the
 *	connection manager aborts the connection, or an orderly close takes too long
 * @KIW_QPE_RESET: the consumer resets the QP to its initial state
 * @KIW_QPE_FAULT: a fault to report to the peer with a Terminate
 * @KIW_QPE_PEER_TERMINATE: the peer sent a Terminate
 * @KIW_QPE_PEER_FIN: the peer closed its half at a message boundary, or anywhere while what arrives
 *	is discarded
 * @KIW_QPE_LLP_LOST: the stream is gone: reset, timeout, or FIN inside a message; or an orderly
 *	close takes too long
 * @KIW_QPE_FATAL: a CQ of the QP was overrun; FAULT came before, if the peer can be told
 * @KIW_QPE_DRAINED: TCP has everything that can be sent, and our half can be closed
 * @KIW_QPE_COUNT: number of the above
 */
enum kiw_qp_event {
	KIW_QPE_CONNECT,
	KIW_QPE_CLOSE,
	KIW_QPE_ABORT,
	KIW_QPE_RESET,
	KIW_QPE_FAULT,
	KIW_QPE_PEER_TERMINATE,
	KIW_QPE_PEER_FIN,
	KIW_QPE_LLP_LOST,
	KIW_QPE_FATAL,
	KIW_QPE_DRAINED,
	KIW_QPE_COUNT,
};

/*
 * Actions of a step, in the order in which the QP's work item executes them. What depends on
 * the state alone is not an action: see kiw_qp_state_places() and kiw_qp_state_sends().
 */
#define KIW_QPA_CLEAN		BIT(0)	/* forget the stream, drop what was posted */
#define KIW_QPA_SHUTDOWN	BIT(1)	/* close our half when TCP has it all, in bounded time */
#define KIW_QPA_FINISH		BIT(2)	/* give TCP the Terminate, even if it has no room */
#define KIW_QPA_FLUSH		BIT(3)	/* complete what the QP has, as flushed */
#define KIW_QPA_EVENT_FATAL	BIT(4)	/* raise the asynchronous event of the fault */
#define KIW_QPA_DROP		BIT(5)	/* with REPORT: reset an unfinished stream */
#define KIW_QPA_REPORT		BIT(6)	/* release the stream, tell the connection: closed */

/**
 * struct kiw_qp_step - one cell of the table
 * @legal: this event may happen in this state
 * @next: state afterwards
 * @actions: %KIW_QPA_ bits
 */
struct kiw_qp_step {
	bool legal;
	u8 next;
	u16 actions;
};

struct kiw_qp_step kiw_qp_fsm(enum kiw_qp_state state, enum kiw_qp_event event);

/**
 * kiw_qp_state_places() - may received data be placed in this state?
 * @state: state of the QP
 *
 * Nothing is placed after a fault (RFC 5041 7.1) or a Terminate of the peer, nor before the
 * connection is handed over.
 *
 * Context: any.
 * Return: true if it may.
 */
static inline bool kiw_qp_state_places(enum kiw_qp_state state)
{
	return state == KIW_QPS_RTS || state == KIW_QPS_CLOSING;
}

/**
 * kiw_qp_state_sends() - may anything be sent in this state?
 * @state: state of the QP
 *
 * In %KIW_QPS_TERMINATE that is only the FPDUs in the batch, followed by the Terminate.
 *
 * Context: any.
 * Return: true if it may.
 */
static inline bool kiw_qp_state_sends(enum kiw_qp_state state)
{
	return kiw_qp_state_places(state) || state == KIW_QPS_TERMINATE;
}

const char *kiw_qp_state_name(enum kiw_qp_state state);
const char *kiw_qp_event_name(enum kiw_qp_event event);

#endif /* KIW_PROTO_QP_FSM_H */
