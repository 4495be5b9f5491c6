// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The 4-octet encapsulation header of RFC 4391 6, the packets and control messages that
 * follow it, and the datagram header in front of it.
 *
 * The functions keep no state and may be called in any context.
 */
#include "msg.h"

#include <asm/byteorder.h>
#include <linux/string.h>
#include <linux/unaligned.h>

/* IPv6: length of the fixed header, offset of its next header field, ICMPv6, ND message types */
#define IPV6_LEN		40
#define IPV6_NEXT_HEADER	6
#define IPV6_ICMP		58
#define ND_FIRST		133
#define ND_LAST			137

/**
 * kip_msg_type() - extract the type from an encapsulation header
 * @data: the header, any alignment
 *
 * Context: any.
 * Return: the EtherType.
 */
u16 kip_msg_type(const void *data)
{
	return get_unaligned_be16(data);
}

/**
 * kip_msg_classify() - classify a message received on a connection
 * @data: the message's first octets: sizeof(struct kip_wire_control), or @len if that is less; any
 *	alignment
 * @len: octets of the message
 *
 * Context: any.
 * Return: the kind of message.
 */
enum kip_msg kip_msg_classify(const void *data, unsigned int len)
{
	if (len <= sizeof(struct kip_wire_hdr))
		return KIP_MSG_SHORT;
	switch (kip_msg_type(data)) {
	case KIP_TYPE_IPV4:
	case KIP_TYPE_IPV6:
		return KIP_MSG_DATA;
	case KIP_TYPE_CONTROL:
		return len < sizeof(struct kip_wire_control) ? KIP_MSG_SHORT : KIP_MSG_CONTROL;
	default:
		return KIP_MSG_BAD_TYPE;
	}
}

/**
 * kip_control_build() - build a control message
 * @wire: message to write
 * @op: its operation
 * @value: the limit, or 0 for a PROBE
 *
 * Context: any.
 */
void kip_control_build(struct kip_wire_control *wire, enum kip_op op, u32 value)
{
	*wire = (struct kip_wire_control) {
		.hdr.type = cpu_to_be16(KIP_TYPE_CONTROL),
		.op = op,
		.value = cpu_to_be32(value),
	};
}

/**
 * kip_control_parse() - parse a control message
 * @data: a message that kip_msg_classify() found to be %KIP_MSG_CONTROL; any alignment
 * @len: octets of the message
 * @op: set to its operation
 * @value: set to its value
 *
 * Context: any.
 * Return: whether the operation is known.
 */
bool kip_control_parse(const void *data, unsigned int len, u8 *op, u32 *value)
{
	struct kip_wire_control wire;

	if (len < sizeof(wire))
		return false;
	memcpy(&wire, data, sizeof(wire));
	*op = wire.op;
	*value = be32_to_cpu(wire.value);
	return wire.op >= KIP_OP_GRANT && wire.op <= KIP_OP_ANSWER;
}

static bool msg_is_neighbour_discovery(const u8 *packet, unsigned int len)
{
	return len > IPV6_LEN && packet[IPV6_NEXT_HEADER] == IPV6_ICMP &&
	       packet[IPV6_LEN] >= ND_FIRST && packet[IPV6_LEN] <= ND_LAST;
}

/**
 * kip_msg_way() - decide how a packet has to be sent
 * @type: EtherType
 * @packet: the first octets of the packet
 * @len: number of octets at @packet; 41 are enough
 *
 * RFC 4755 7: responses of address resolution use datagrams; so do other messages of ARP, RARP
 * and neighbour discovery here. Those with IPv6 extension headers are not recognized.
 *
 * Context: any.
 * Return: connection, datagram, or neither.
 */
enum kip_way kip_msg_way(u16 type, const void *packet, unsigned int len)
{
	switch (type) {
	case KIP_TYPE_IPV4:
		return KIP_WAY_ANY;
	case KIP_TYPE_IPV6:
		return msg_is_neighbour_discovery(packet, len) ? KIP_WAY_DATAGRAM : KIP_WAY_ANY;
	case KIP_TYPE_ARP:
	case KIP_TYPE_RARP:
		return KIP_WAY_DATAGRAM;
	default:
		return KIP_WAY_NONE;
	}
}

/**
 * kip_dgram_build() - build the header of a datagram
 * @wire: header to write
 * @type: EtherType of the packet
 * @pkey: partition
 * @qkey: Q_Key of the link
 * @to_group: the datagram is for every node
 *
 * Context: any.
 */
void kip_dgram_build(struct kip_wire_dgram *wire, u16 type, u16 pkey, u32 qkey, bool to_group)
{
	*wire = (struct kip_wire_dgram) {
		.version_flags = KIP_DGRAM_VERSION << 4 | (to_group ? KIP_DGRAM_GROUP : 0),
		.pkey = cpu_to_be16(pkey),
		.qkey = cpu_to_be32(qkey),
		.hdr.type = cpu_to_be16(type),
	};
}

/**
 * kip_dgram_parse() - parse a datagram
 * @data: UDP payload, any alignment
 * @len: octets of the payload
 * @pkey: the local partition
 * @qkey: Q_Key of the link
 * @type: set to the EtherType of the packet, if %KIP_DGRAM_OK is returned
 * @to_group: set to whether the datagram is for every node, likewise
 *
 * Context: any.
 * Return: %KIP_DGRAM_OK, or the reason to drop it.
 */
enum kip_dgram kip_dgram_parse(const void *data, unsigned int len, u16 pkey, u32 qkey,
			       u16 *type, bool *to_group)
{
	struct kip_wire_dgram wire;

	if (len <= sizeof(wire))
		return KIP_DGRAM_SHORT;
	memcpy(&wire, data, sizeof(wire));
	if (wire.version_flags >> 4 != KIP_DGRAM_VERSION)
		return KIP_DGRAM_BAD_VERSION;
	if (be16_to_cpu(wire.pkey) != pkey)
		return KIP_DGRAM_BAD_PKEY;
	if (be32_to_cpu(wire.qkey) != qkey)
		return KIP_DGRAM_BAD_QKEY;
	*type = be16_to_cpu(wire.hdr.type);
	*to_group = wire.version_flags & KIP_DGRAM_GROUP;
	if (kip_msg_way(*type, NULL, 0) == KIP_WAY_NONE)
		return KIP_DGRAM_BAD_TYPE;
	return KIP_DGRAM_OK;
}
