/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Credit-based flow control: the state of one end of a connection. */
#ifndef KIP_PROTO_CREDIT_H
#define KIP_PROTO_CREDIT_H

#include <linux/types.h>

/* Receives that each end keeps for control messages, in addition to those for data */
#define KIP_CONTROL_RECEIVES	4

/**
 * struct kip_credit - flow control state of one end
 * @sent: data messages sent, modulo 2^32
 * @limit: the last data message that the peer allows this end to send
 * @peer_depth: receives that the peer keeps for data
 * @received: data messages received whose receives have been posted again
 * @granted: the last data message that the peer is allowed to send
 * @depth: receives this end keeps for data, at least 1
 * @is_probing: a PROBE was sent and its ANSWER has not arrived
 * @has_probe: a PROBE is to be sent
 * @has_answer: an ANSWER is to be sent
 */
struct kip_credit {
	u32 sent;
	u32 limit;
	u32 peer_depth;
	u32 received;
	u32 granted;
	u32 depth;
	bool is_probing;
	bool has_probe;
	bool has_answer;
};

void kip_credit_init(struct kip_credit *credit, u16 depth, u16 peer_depth);
void kip_credit_open(struct kip_credit *credit, u16 peer_depth);
bool kip_credit_receive(struct kip_credit *credit);
bool kip_credit_control(struct kip_credit *credit, u8 op, u32 value);
void kip_credit_ask(struct kip_credit *credit);
u8 kip_credit_next(struct kip_credit *credit, u32 *value);

/* Number of data messages that may be sent now */
static inline u32 kip_credit_left(const struct kip_credit *credit)
{
	return credit->limit - credit->sent;
}

/* Accounts for one data message that is sent */
static inline void kip_credit_send(struct kip_credit *credit)
{
	credit->sent++;
}

#endif /* KIP_PROTO_CREDIT_H */
