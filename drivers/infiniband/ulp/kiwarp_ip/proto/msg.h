/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Messages on connections, and datagrams: classification, building and parsing. */
#ifndef KIP_PROTO_MSG_H
#define KIP_PROTO_MSG_H

#include <linux/types.h>

#include "wire.h"

/**
 * enum kip_op - control messages
 * @KIP_OP_GRANT: its value is the last data message that the receiver may send
 * @KIP_OP_PROBE: asks for an ANSWER
 * @KIP_OP_ANSWER: a GRANT in response to a PROBE
 */
enum kip_op {
	KIP_OP_GRANT = 1,
	KIP_OP_PROBE = 2,
	KIP_OP_ANSWER = 3,
};

/**
 * enum kip_msg - kinds of messages received on a connection
 * @KIP_MSG_DATA: an IPv4 or IPv6 packet
 * @KIP_MSG_CONTROL: a control message
 * @KIP_MSG_SHORT: too short for a control message, or nothing follows the header
 * @KIP_MSG_BAD_TYPE: neither a control message nor a type that RFC 4755 4 lists
 */
enum kip_msg {
	KIP_MSG_DATA,
	KIP_MSG_CONTROL,
	KIP_MSG_SHORT,
	KIP_MSG_BAD_TYPE,
};

/**
 * enum kip_way - how a packet has to be sent
 * @KIP_WAY_ANY: on a connection or as a datagram (RFC 4755 7)
 * @KIP_WAY_DATAGRAM: ARP, RARP or neighbour discovery, as a datagram only
 * @KIP_WAY_NONE: not at all: this link does not carry its type
 */
enum kip_way {
	KIP_WAY_ANY,
	KIP_WAY_DATAGRAM,
	KIP_WAY_NONE,
};

/**
 * enum kip_dgram - result of parsing a datagram
 * @KIP_DGRAM_OK: it carries a packet
 * @KIP_DGRAM_SHORT: nothing follows the header, or the header is incomplete
 * @KIP_DGRAM_BAD_VERSION: unknown version
 * @KIP_DGRAM_BAD_PKEY: the P_Key is not the local one (RFC 4391 9.1)
 * @KIP_DGRAM_BAD_QKEY: wrong Q_Key (RFC 4391 9.1.2)
 * @KIP_DGRAM_BAD_TYPE: a type that RFC 4391 6 does not list
 */
enum kip_dgram {
	KIP_DGRAM_OK,
	KIP_DGRAM_SHORT,
	KIP_DGRAM_BAD_VERSION,
	KIP_DGRAM_BAD_PKEY,
	KIP_DGRAM_BAD_QKEY,
	KIP_DGRAM_BAD_TYPE,
};

enum kip_msg kip_msg_classify(const void *data, unsigned int len);
u16 kip_msg_type(const void *data);
void kip_control_build(struct kip_wire_control *wire, enum kip_op op, u32 value);
bool kip_control_parse(const void *data, unsigned int len, u8 *op, u32 *value);
enum kip_way kip_msg_way(u16 type, const void *packet, unsigned int len);
void kip_dgram_build(struct kip_wire_dgram *wire, u16 type, u16 pkey, u32 qkey, bool to_group);
enum kip_dgram kip_dgram_parse(const void *data, unsigned int len, u16 pkey, u32 qkey,
			       u16 *type, bool *to_group);

#endif /* KIP_PROTO_MSG_H */
