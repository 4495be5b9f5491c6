/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* State machine of a peer and its one connection: RFC 4755 3.2 to 3.4. */
#ifndef KIP_PROTO_PEER_FSM_H
#define KIP_PROTO_PEER_FSM_H

#include <linux/bits.h>
#include <linux/types.h>

/**
 * enum kip_peer_state - state of a peer
 * @KIP_PS_NONE: no connection
 * @KIP_PS_RESOLVING: the route to it is being resolved
 * @KIP_PS_REQ_SENT: a Request was sent
 * @KIP_PS_YIELDED: it rejected our Request in favour of its own, which has not arrived yet
 * @KIP_PS_ACCEPTING: its Request was accepted, but the connection is not yet established
 * @KIP_PS_UP: packets use the connection
 * @KIP_PS_BACKOFF: this end attempts no connection for a while
 * @KIP_PS_COUNT: number of the above
 */
enum kip_peer_state {
	KIP_PS_NONE,
	KIP_PS_RESOLVING,
	KIP_PS_REQ_SENT,
	KIP_PS_YIELDED,
	KIP_PS_ACCEPTING,
	KIP_PS_UP,
	KIP_PS_BACKOFF,
	KIP_PS_COUNT,
};

/**
 * enum kip_peer_event - event of a peer
 * @KIP_PE_WISH: there is a packet for it
 * @KIP_PE_ROUTED: the route to it is resolved
 * @KIP_PE_ESTABLISHED: the connection is established
 * @KIP_PE_REQ_SMALLER: its Request arrived, and the local address is the smaller one
 * @KIP_PE_REQ_GREATER: its Request arrived, and the local address is the greater one
 * @KIP_PE_REQ_STALE: its Request arrived, but is not newer than the connection
 * @KIP_PE_CROSSED: it rejected our Request in favour of its own
 * @KIP_PE_REJECTED: it rejected our Request for another reason, or refused or reset the stream
 * @KIP_PE_FAULT: the connection could not be made, or has ended
 * @KIP_PE_IDLE: the connection has been unused for the idle time
 * @KIP_PE_TIMEOUT: the time limit of the state has passed
 * @KIP_PE_COUNT: number of the above
 */
enum kip_peer_event {
	KIP_PE_WISH,
	KIP_PE_ROUTED,
	KIP_PE_ESTABLISHED,
	KIP_PE_REQ_SMALLER,
	KIP_PE_REQ_GREATER,
	KIP_PE_REQ_STALE,
	KIP_PE_CROSSED,
	KIP_PE_REJECTED,
	KIP_PE_FAULT,
	KIP_PE_IDLE,
	KIP_PE_TIMEOUT,
	KIP_PE_COUNT,
};

/*
 * Actions of a transition, executed in this order, except KIP_PA_LATER, which comes first.
 * KIP_PA_LATER, KIP_PA_DROP and KIP_PA_PUBLISH are executed together with the change of the state.
 */
#define KIP_PA_REJECT_CROSSED	BIT(0)	/* reject the Request: reason crossed */
#define KIP_PA_REJECT_BUSY	BIT(1)	/* reject the Request: reason busy */
#define KIP_PA_DROP		BIT(2)	/* end the peer's connection */
#define KIP_PA_RESOLVE		BIT(3)	/* make a connection and resolve the route */
#define KIP_PA_REQUEST		BIT(4)	/* send a Request */
#define KIP_PA_ACCEPT		BIT(5)	/* accept the Request as the peer's connection */
#define KIP_PA_PUBLISH		BIT(6)	/* let packets use the connection */
#define KIP_PA_FLUSH		BIT(7)	/* send waiting packets as datagrams */
#define KIP_PA_LATER		BIT(8)	/* count a failure, which may lengthen the backoff */

/**
 * struct kip_peer_step - one entry of the transition table
 * @legal: this event may happen in this state
 * @next: state after the transition
 * @actions: %KIP_PA_ bits
 */
struct kip_peer_step {
	bool legal;
	u8 next;
	u16 actions;
};

struct kip_peer_step kip_peer_fsm(enum kip_peer_state state, enum kip_peer_event event);
bool kip_peer_state_waits(enum kip_peer_state state);
const char *kip_peer_state_name(enum kip_peer_state state);

#endif /* KIP_PROTO_PEER_FSM_H */
