// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Credit-based flow control.
 *
 * A Send that finds no posted receive may end an iWARP connection (RFC 5041 7.1), so no end may
 * send more than its peer has receives for.
 *
 * Each end keeps D receives for data and KIP_CONTROL_RECEIVES for control messages. Data
 * messages are numbered, and an end sends message n only after the peer has granted n. Control
 * messages need no grant. An end posts a receive again before it sends anything because of the
 * message, so to the peer the receives that are not posted are those of messages that have not
 * been processed yet.
 *
 * Four receives are enough for control messages: suppose the last GRANT that end B has
 * processed is r + D, so B sends no data beyond r + D. End A then receives at most r + D data
 * messages and grants at most r + 2D. It sends a GRANT only when the limit has grown by at
 * least half of D, rounded up. Hence at most two GRANTs are outstanding at B. In addition there
 * can be one PROBE, because A sends the next PROBE only after the ANSWER to the last, and one
 * ANSWER, because B sends its next PROBE only after it has processed that ANSWER.
 *
 * The scheme does not deadlock: a GRANT waits for no message of the peer. When A has received
 * everything that was sent, less than half of D is left ungranted, so B has credit.
 *
 * The caller serialises all calls for one end.
 */
#include "credit.h"

#include "msg.h"

/**
 * kip_credit_init() - initialise one end before the first message
 * @credit: state to initialise
 * @depth: receives for data that this end posts, at least 1
 * @peer_depth: receives for data of the peer, from its private data; 0 if not known yet
 *
 * Context: any.
 */
void kip_credit_init(struct kip_credit *credit, u16 depth, u16 peer_depth)
{
	*credit = (struct kip_credit) {
		.limit = peer_depth,
		.peer_depth = peer_depth,
		.granted = depth,
		.depth = depth,
	};
}

/**
 * kip_credit_open() - take the initial credit from the peer's private data
 * @credit: this end; it has sent nothing yet, but may have received messages
 * @peer_depth: receives that the peer keeps for data
 *
 * Context: any; calls are serialised.
 */
void kip_credit_open(struct kip_credit *credit, u16 peer_depth)
{
	credit->limit = credit->sent + peer_depth;
	credit->peer_depth = peer_depth;
}

/**
 * kip_credit_receive() - account for a data message whose receive has been posted again
 * @credit: this end
 *
 * Context: any; calls are serialised.
 * Return: false when the peer had no credit for it; the connection must end.
 */
bool kip_credit_receive(struct kip_credit *credit)
{
	if (credit->received == credit->granted)
		return false;
	credit->received++;
	return true;
}

static bool credit_take_limit(struct kip_credit *credit, u32 limit)
{
	/* The peer cannot have received more than was sent, and must not take back credit. */
	if (limit - credit->sent > credit->peer_depth)
		return false;
	if (limit - credit->sent < credit->limit - credit->sent)
		return false;
	credit->limit = limit;
	return true;
}

/**
 * kip_credit_control() - process a control message
 * @credit: this end
 * @op: its operation, any value
 * @value: its value
 *
 * Context: any; calls are serialised.
 * Return: false when the message violates the protocol: an unknown operation, a limit that is
 * impossible or takes back credit, an ANSWER without a PROBE, or a PROBE before the ANSWER to
 * the last one was sent. @credit is unchanged then.
 */
bool kip_credit_control(struct kip_credit *credit, u8 op, u32 value)
{
	switch (op) {
	case KIP_OP_GRANT:
		return credit_take_limit(credit, value);
	case KIP_OP_ANSWER:
		if (!credit->is_probing || !credit_take_limit(credit, value))
			return false;
		credit->is_probing = false;
		return true;
	case KIP_OP_PROBE:
		if (credit->has_answer)
			return false;
		credit->has_answer = true;
		return true;
	default:
		return false;
	}
}

/**
 * kip_credit_ask() - request a PROBE, unless one is outstanding
 * @credit: this end
 *
 * Context: any; calls are serialised.
 */
void kip_credit_ask(struct kip_credit *credit)
{
	if (!credit->is_probing)
		credit->has_probe = true;
}

static bool credit_owes_grant(const struct kip_credit *credit)
{
	const u32 grown = credit->received + credit->depth - credit->granted;

	return grown >= (credit->depth + 1) / 2;
}

/**
 * kip_credit_next() - choose the control message to send now
 * @credit: this end; the message counts as sent from here on
 * @value: set to the value of the message
 *
 * Context: any; calls are serialised.
 * Return: one of enum kip_op, or 0 when there is nothing to send.
 */
u8 kip_credit_next(struct kip_credit *credit, u32 *value)
{
	*value = credit->received + credit->depth;
	if (credit->has_answer) {
		credit->has_answer = false;
		credit->granted = *value;
		return KIP_OP_ANSWER;
	}
	if (credit_owes_grant(credit)) {
		credit->granted = *value;
		return KIP_OP_GRANT;
	}
	if (credit->has_probe) {
		*value = 0;
		credit->has_probe = false;
		credit->is_probing = true;
		return KIP_OP_PROBE;
	}
	return 0;
}
