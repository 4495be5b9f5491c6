/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Messages on connections and datagrams: what they are and how they go out. */
#ifndef KIP_PROTO_MSG_H
#define KIP_PROTO_MSG_H

#include <linux/types.h>

#include "wire.h"

/**
 * enum kip_op - control messages
 * @KIP_OP_GRANT: its value is the last data message that may be sent
 * @KIP_OP_PROBE: asks for an ANSWER
 * @KIP_OP_ANSWER: a GRANT that answers a PROBE
 */
enum kip_op {
	KIP_OP_GRANT = 1,
	KIP_OP_PROBE = 2,
	KIP_OP_ANSWER = 3,
};

/**
 * enum kip_msg - what came on a connection
 * @KIP_MSG_DATA: a packet of IPv4 or IPv6
 * @KIP_MSG_CONTROL: a control message
 * @KIP_MSG_SHORT: less than there must be
 * @KIP_MSG_TYPE: a type that is not for connections (RFC 4755 4)
 */
enum kip_msg {
	KIP_MSG_DATA,
	KIP_MSG_CONTROL,
	KIP_MSG_SHORT,
	KIP_MSG_TYPE,
};

/**
 * enum kip_way - how a packet has to travel
 * @KIP_WAY_ANY: by a connection or a datagram (RFC 4755 7)
 * @KIP_WAY_DATAGRAM: address resolution: by a datagram
 * @KIP_WAY_NONE: of a type that this link does not carry
 */
enum kip_way {
	KIP_WAY_ANY,
	KIP_WAY_DATAGRAM,
	KIP_WAY_NONE,
};

/**
 * enum kip_dgram - what came by the datagram service
 * @KIP_DGRAM_OK: a packet
 * @KIP_DGRAM_SHORT: less than a header and a packet
 * @KIP_DGRAM_BAD_VERSION: another version
 * @KIP_DGRAM_BAD_PKEY: another partition (RFC 4391 4.1)
 * @KIP_DGRAM_BAD_QKEY: another Q_Key (RFC 4391 9.1.2)
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

enum kip_msg kip_msg_of(const void *data, unsigned int len);
u16 kip_msg_type(const void *data);
void kip_control_build(struct kip_wire_control *wire, enum kip_op op, u32 value);
bool kip_control_parse(const void *data, unsigned int len, u8 *op, u32 *value);
enum kip_way kip_msg_way(u16 type, const void *packet, unsigned int len);
void kip_dgram_build(struct kip_wire_dgram *wire, u16 type, u16 pkey, u32 qkey, bool to_group);
enum kip_dgram kip_dgram_parse(const void *data, unsigned int len, u16 pkey, u32 qkey,
			       u16 *type, bool *to_group);

#endif /* KIP_PROTO_MSG_H */
