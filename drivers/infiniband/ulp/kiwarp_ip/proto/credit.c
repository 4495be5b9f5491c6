// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Credits: no Send may meet an empty receive queue, as that ends an iWARP connection
 * (RFC 5041 7.1).
 *
 * Each end keeps D receives for data and KIP_CONTROL_RECEIVES for control messages. Data
 * messages are numbered; an end sends number n only when the peer has granted n. Control
 * messages need no grant. A receive is posted again before its message is used, so the
 * number of receives that are not posted is that of the messages the end has not looked at.
 *
 * Why four receives are enough for control messages. Let the last GRANT that end B has
 * looked at be r + D, so that B sends no data beyond it. End A has then at most r + D data
 * messages to receive, grants at most r + 2D, and grants only when the limit has grown by
 * half of D, rounded up: two GRANTs are the most that B has not looked at. Beside them are
 * one PROBE, as the next is sent only after the ANSWER to the last, and one ANSWER, as B
 * sends its next PROBE only when it has looked at it.
 *
 * Why nothing gets stuck: a GRANT waits for nothing that the peer does. When A has received
 * all that was sent, what it has not granted is less than half of D, so B has credit.
 *
 * The caller serialises the calls of one end.
 */
#include "credit.h"

#include "msg.h"

/**
 * kip_credit_init() - before the first message
 * @credit: to write
 * @depth: receives for data that this end has posted, 1 at least
 * @peer_depth: those of the peer, from its private data; 0 while these have not come
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
 * kip_credit_open() - the peer's private data have come
 * @credit: this end; nothing was sent yet, but something may have been received
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
 * kip_credit_receive() - a data message has come, and its receive is posted again
 * @credit: this end
 *
 * Context: any; calls are serialised.
 * Return: false when it was not allowed: the connection must end.
 */
bool kip_credit_receive(struct kip_credit *credit)
{
	if (credit->received == credit->granted)
		return false;
	credit->received++;
	return true;
}

static bool take_limit(struct kip_credit *credit, u32 limit)
{
	/* The peer cannot have received more than was sent, nor take credit back. */
	if (limit - credit->sent > credit->peer_depth)
		return false;
	if (limit - credit->sent < credit->limit - credit->sent)
		return false;
	credit->limit = limit;
	return true;
}

/**
 * kip_credit_control() - a control message has come
 * @credit: this end
 * @op: what it is
 * @value: its value
 *
 * Context: any; calls are serialised.
 * Return: false when an end that keeps the rules does not send it: a limit that is
 * impossible or takes credit back, an ANSWER to nothing, or a PROBE before the ANSWER to
 * the last has been sent. Nothing has changed then.
 */
bool kip_credit_control(struct kip_credit *credit, u8 op, u32 value)
{
	switch (op) {
	case KIP_OP_GRANT:
		return take_limit(credit, value);
	case KIP_OP_ANSWER:
		if (!credit->is_probing || !take_limit(credit, value))
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
 * kip_credit_ask() - send a PROBE, unless one is on its way
 * @credit: this end
 *
 * Context: any; calls are serialised.
 */
void kip_credit_ask(struct kip_credit *credit)
{
	if (!credit->is_probing)
		credit->has_probe = true;
}

static bool owes_grant(const struct kip_credit *credit)
{
	const u32 grown = credit->received + credit->depth - credit->granted;

	return grown >= (credit->depth + 1) / 2;
}

/**
 * kip_credit_next() - which control message is to be sent now
 * @credit: this end; from here on the message counts as sent
 * @value: its value
 *
 * Context: any; calls are serialised.
 * Return: one of enum kip_op, or 0 when none is.
 */
u8 kip_credit_next(struct kip_credit *credit, u32 *value)
{
	*value = credit->received + credit->depth;
	if (credit->has_answer) {
		credit->has_answer = false;
		credit->granted = *value;
		return KIP_OP_ANSWER;
	}
	if (owes_grant(credit)) {
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
