// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The 4-octet header of RFC 4391 6 and what follows it: packets, control messages, and
 * the header of datagrams in front of it.
 */
#include "msg.h"

#include <asm/byteorder.h>
#include <linux/string.h>
#include <linux/unaligned.h>

/* IPv6: octets of the fixed header, where the next header is, ICMPv6, and its ND messages */
#define IPV6_LEN		40
#define IPV6_NEXT_HEADER	6
#define IPV6_ICMP		58
#define ND_FIRST		133
#define ND_LAST			137

/**
 * kip_msg_type() - the type in a 4-octet header
 * @data: the header, of any alignment
 *
 * Context: any.
 * Return: EtherType.
 */
u16 kip_msg_type(const void *data)
{
	return get_unaligned_be16(data);
}

/**
 * kip_msg_of() - what a message on a connection is
 * @data: its first octets, of any alignment: all, or 12 at least
 * @len: octets of the message
 *
 * Context: any.
 * Return: that.
 */
enum kip_msg kip_msg_of(const void *data, unsigned int len)
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
		return KIP_MSG_TYPE;
	}
}

/**
 * kip_control_build() - the octets of a control message
 * @wire: to write
 * @op: what it is
 * @value: limit, or 0
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
 * kip_control_parse() - read a control message
 * @data: kip_msg_of() is %KIP_MSG_CONTROL; any alignment
 * @len: octets of it
 * @op: what it is
 * @value: its value
 *
 * Context: any.
 * Return: whether it is one that is known.
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

static bool is_neighbour_discovery(const u8 *packet, unsigned int len)
{
	return len > IPV6_LEN && packet[IPV6_NEXT_HEADER] == IPV6_ICMP &&
	       packet[IPV6_LEN] >= ND_FIRST && packet[IPV6_LEN] <= ND_LAST;
}

/**
 * kip_msg_way() - how a unicast packet has to travel
 * @type: EtherType
 * @packet: its first octets
 * @len: how many there are; 41 are enough
 *
 * RFC 4755 7: address resolution is by datagrams. Neighbour discovery never has extension
 * headers (RFC 4861 6.1, 7.1, 8.1 know none that a node may send).
 *
 * Context: any.
 * Return: that.
 */
enum kip_way kip_msg_way(u16 type, const void *packet, unsigned int len)
{
	switch (type) {
	case KIP_TYPE_IPV4:
		return KIP_WAY_ANY;
	case KIP_TYPE_IPV6:
		return is_neighbour_discovery(packet, len) ? KIP_WAY_DATAGRAM : KIP_WAY_ANY;
	case KIP_TYPE_ARP:
	case KIP_TYPE_RARP:
		return KIP_WAY_DATAGRAM;
	default:
		return KIP_WAY_NONE;
	}
}

/**
 * kip_dgram_build() - the header of a datagram
 * @wire: to write
 * @type: EtherType of the packet
 * @pkey: partition
 * @qkey: of the link
 * @to_group: whether every node is meant
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
 * kip_dgram_parse() - read a datagram
 * @data: UDP's payload, of any alignment
 * @len: octets of it
 * @pkey: the local partition
 * @qkey: the link's Q_Key
 * @type: EtherType of the packet
 * @to_group: whether every node was meant
 *
 * Context: any.
 * Return: %KIP_DGRAM_OK, or why it is dropped.
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
