/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* A peer and its one connection as a table: RFC 4755 3.2 to 3.4. */
#ifndef KIP_PROTO_PEER_FSM_H
#define KIP_PROTO_PEER_FSM_H

#include <linux/bits.h>
#include <linux/types.h>

/**
 * enum kip_peer_state - where a peer is
 * @KIP_PS_NONE: no connection
 * @KIP_PS_RESOLVING: the way to it is looked up
 * @KIP_PS_REQ_SENT: a Request is out
 * @KIP_PS_YIELDED: it rejected ours in favour of its own, which has not come yet
 * @KIP_PS_ACCEPTING: its Request was accepted, and the connection is not yet established
 * @KIP_PS_UP: packets go by the connection
 * @KIP_PS_BACKOFF: no connection is tried for a while
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
 * enum kip_peer_event - what happens to a peer
 * @KIP_PE_WISH: there is a packet for it
 * @KIP_PE_ROUTED: the way to it is known
 * @KIP_PE_ESTABLISHED: the connection is established
 * @KIP_PE_REQ_SMALLER: its Request came, and the local address is the smaller one
 * @KIP_PE_REQ_GREATER: its Request came, and the local address is the greater one
 * @KIP_PE_REQ_STALE: its Request came, and is older than the connection
 * @KIP_PE_CROSSED: it rejected our Request in favour of its own
 * @KIP_PE_REJECTED: it rejected our Request for another reason
 * @KIP_PE_FAULT: the connection could not be made, or ended
 * @KIP_PE_IDLE: the connection has not been used for long
 * @KIP_PE_TIMEOUT: the time of the state is over
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

/* What is done on a transition, in this order */
#define KIP_PA_REJECT_CROSSED	BIT(0)	/* reject the Request: reason crossed */
#define KIP_PA_REJECT_BUSY	BIT(1)	/* reject the Request: reason busy */
#define KIP_PA_DROP		BIT(2)	/* end the peer's connection */
#define KIP_PA_RESOLVE		BIT(3)	/* make a connection and look up the way */
#define KIP_PA_REQUEST		BIT(4)	/* send the Request */
#define KIP_PA_ACCEPT		BIT(5)	/* the Request's connection becomes the peer's */
#define KIP_PA_PUBLISH		BIT(6)	/* packets use the connection from now on */
#define KIP_PA_FLUSH		BIT(7)	/* waiting packets leave as datagrams */
#define KIP_PA_LATER		BIT(8)	/* the next try is later than the last one was */

/**
 * struct kip_peer_step - one cell of the table
 * @legal: this event may happen in this state
 * @next: state afterwards
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
