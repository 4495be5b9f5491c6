// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The state machine of a peer and its one connection.
 *
 *	initiator: NONE WISH > RESOLVING ROUTED > REQ_SENT ESTABLISHED > UP
 *	responder: any REQ_... that is accepted > ACCEPTING ESTABLISHED > UP
 *
 * When Requests cross (RFC 4755 3.3), each end is usually in REQ_SENT when the other's Request
 * arrives. The end with the smaller address drops its own Request and accepts; the other end
 * rejects and stays in REQ_SENT. The reject and the Request it favours travel on different streams,
 * so the reject may arrive first: the peer is then YIELDED until that Request arrives or a time
 * limit has passed. A Request may also arrive after its sender has dropped it in favour of a
 * connection that is already accepted or established: REQ_STALE.
 *
 * When the actions of a transition are done, a peer has a connection in RESOLVING, REQ_SENT,
 * ACCEPTING and UP, and none in the other states. So every transition from one of these four states
 * includes DROP, unless the same connection continues. No other transition includes DROP.
 */
#include "peer_fsm.h"

#define GO(state, acts)	{ .legal = true, .next = KIP_PS_##state, .actions = (acts) }

#define FAILED		GO(BACKOFF, KIP_PA_DROP | KIP_PA_FLUSH | KIP_PA_LATER)
#define ACCEPTED	GO(ACCEPTING, KIP_PA_ACCEPT)
#define REPLACED	GO(ACCEPTING, KIP_PA_DROP | KIP_PA_ACCEPT)

static const struct kip_peer_step fsm_table[KIP_PS_COUNT][KIP_PE_COUNT] = {
	[KIP_PS_NONE] = {
		[KIP_PE_WISH]		= GO(RESOLVING, KIP_PA_RESOLVE),
		[KIP_PE_REQ_SMALLER]	= ACCEPTED,
		[KIP_PE_REQ_GREATER]	= ACCEPTED,
	},
	[KIP_PS_RESOLVING] = {
		[KIP_PE_WISH]		= GO(RESOLVING, 0),
		[KIP_PE_ROUTED]		= GO(REQ_SENT, KIP_PA_REQUEST),
		[KIP_PE_REQ_SMALLER]	= REPLACED,
		[KIP_PE_REQ_GREATER]	= REPLACED,
		[KIP_PE_FAULT]		= FAILED,
		[KIP_PE_TIMEOUT]	= FAILED,
	},
	[KIP_PS_REQ_SENT] = {
		[KIP_PE_WISH]		= GO(REQ_SENT, 0),
		[KIP_PE_ESTABLISHED]	= GO(UP, KIP_PA_PUBLISH),
		[KIP_PE_REQ_SMALLER]	= REPLACED,
		[KIP_PE_REQ_GREATER]	= GO(REQ_SENT, KIP_PA_REJECT_CROSSED),
		[KIP_PE_CROSSED]	= GO(YIELDED, KIP_PA_DROP),
		[KIP_PE_REJECTED]	= FAILED,
		[KIP_PE_FAULT]		= FAILED,
		[KIP_PE_TIMEOUT]	= FAILED,
	},
	[KIP_PS_YIELDED] = {
		[KIP_PE_WISH]		= GO(YIELDED, 0),
		[KIP_PE_REQ_SMALLER]	= ACCEPTED,
		[KIP_PE_REQ_GREATER]	= ACCEPTED,
		[KIP_PE_TIMEOUT]	= GO(BACKOFF, KIP_PA_FLUSH | KIP_PA_LATER),
	},
	[KIP_PS_ACCEPTING] = {
		[KIP_PE_WISH]		= GO(ACCEPTING, 0),
		[KIP_PE_ESTABLISHED]	= GO(UP, KIP_PA_PUBLISH),
		[KIP_PE_REQ_SMALLER]	= REPLACED,
		[KIP_PE_REQ_GREATER]	= REPLACED,
		[KIP_PE_REQ_STALE]	= GO(ACCEPTING, KIP_PA_REJECT_BUSY),
		[KIP_PE_FAULT]		= FAILED,
		[KIP_PE_TIMEOUT]	= FAILED,
	},
	[KIP_PS_UP] = {
		[KIP_PE_WISH]		= GO(UP, 0),
		[KIP_PE_REQ_SMALLER]	= REPLACED,
		[KIP_PE_REQ_GREATER]	= REPLACED,
		[KIP_PE_REQ_STALE]	= GO(UP, KIP_PA_REJECT_BUSY),
		[KIP_PE_FAULT]		= FAILED,
		[KIP_PE_IDLE]		= GO(NONE, KIP_PA_DROP),
	},
	[KIP_PS_BACKOFF] = {
		[KIP_PE_WISH]		= GO(BACKOFF, 0),
		[KIP_PE_REQ_SMALLER]	= ACCEPTED,
		[KIP_PE_REQ_GREATER]	= ACCEPTED,
		[KIP_PE_TIMEOUT]	= GO(NONE, 0),
	},
};

/**
 * kip_peer_fsm() - look up a transition
 * @state: current state of the peer
 * @event: the event
 *
 * RFC 4755 3.2 to 3.4. The caller writes the state and executes the actions.
 *
 * Context: any.
 * Return: the transition; if it is not legal, its next state is @state and it has no actions.
 */
struct kip_peer_step kip_peer_fsm(enum kip_peer_state state, enum kip_peer_event event)
{
	struct kip_peer_step step = { .next = state };

	if ((unsigned int)state >= KIP_PS_COUNT || (unsigned int)event >= KIP_PE_COUNT)
		return step;
	if (fsm_table[state][event].legal)
		step = fsm_table[state][event];
	return step;
}

/**
 * kip_peer_state_waits() - check whether packets wait for a connection in a state
 * @state: any value
 *
 * Context: any.
 * Return: whether they wait; otherwise there is a connection, or they are sent as datagrams if they
 * are short enough.
 */
bool kip_peer_state_waits(enum kip_peer_state state)
{
	switch (state) {
	case KIP_PS_NONE:
	case KIP_PS_RESOLVING:
	case KIP_PS_REQ_SENT:
	case KIP_PS_YIELDED:
	case KIP_PS_ACCEPTING:
		return true;
	default:
		return false;
	}
}

/**
 * kip_peer_state_name() - name of a state
 * @state: any value
 *
 * Context: any.
 * Return: its name, or "?" if it has none.
 */
const char *kip_peer_state_name(enum kip_peer_state state)
{
	static const char * const names[KIP_PS_COUNT] = {
		[KIP_PS_NONE]		= "none",
		[KIP_PS_RESOLVING]	= "resolving",
		[KIP_PS_REQ_SENT]	= "requested",
		[KIP_PS_YIELDED]	= "yielded",
		[KIP_PS_ACCEPTING]	= "accepting",
		[KIP_PS_UP]		= "up",
		[KIP_PS_BACKOFF]	= "backoff",
	};

	return (unsigned int)state < KIP_PS_COUNT ? names[state] : "?";
}
