/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * The life of a queue pair as a table: RFC 5040 5.1 and the RDMA verbs' states,
 * reduced to what a software RNIC tells apart.
 */
#ifndef KIW_PROTO_QP_FSM_H
#define KIW_PROTO_QP_FSM_H

#include <linux/bits.h>
#include <linux/types.h>

/**
 * enum kiw_qp_state - where a QP is
 * @KIW_QPS_IDLE: made, or reset; no connection
 * @KIW_QPS_RTS: full operation
 * @KIW_QPS_CLOSING: our half is being closed in order: queued work goes out, then FIN
 * @KIW_QPS_TERMINATE: a Terminate is going out; nothing else is sent or placed
 * @KIW_QPS_ERROR: nothing moves; all work is flushed
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
 * @KIW_QPE_ABORT: the consumer aborts (modify to ERR), or the QP is destroyed
 * @KIW_QPE_RESET: the consumer takes the QP back to its beginning
 * @KIW_QPE_FAULT: a fault to tell the peer about with a Terminate
 * @KIW_QPE_PEER_TERMINATE: the peer sent a Terminate
 * @KIW_QPE_PEER_FIN: the peer closed its half at a message boundary
 * @KIW_QPE_LLP_LOST: the stream is gone: reset, timeout, or FIN inside a message
 * @KIW_QPE_FATAL: a completion was lost: what can be told to the peer has been
 * @KIW_QPE_DRAINED: all that was to be sent is with TCP, and our half is closed
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

/* What the engine does on a transition, in this order */
#define KIW_QPA_START		BIT(0)	/* start both engines */
#define KIW_QPA_TERMINATE	BIT(1)	/* queue the Terminate as the next FPDU */
#define KIW_QPA_STOP_RX		BIT(2)	/* place nothing more */
#define KIW_QPA_FLUSH		BIT(3)	/* complete all work as flushed */
#define KIW_QPA_SHUTDOWN	BIT(4)	/* close our half when TCP has it all */
#define KIW_QPA_DROP		BIT(5)	/* reset the stream */
#define KIW_QPA_REPORT		BIT(6)	/* tell the connection manager: closed */
#define KIW_QPA_EVENT_FATAL	BIT(7)	/* async event: QP fatal */
#define KIW_QPA_CLEAN		BIT(8)	/* empty the rings, forget the stream */

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
const char *kiw_qp_state_name(enum kiw_qp_state state);
const char *kiw_qp_event_name(enum kiw_qp_event event);

#endif /* KIW_PROTO_QP_FSM_H */
