/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * The formats that kiwarp_ip puts on the wire, and their limits.
 *
 * RFC 4391 and RFC 4755 define the link-layer address, the 4-octet header and the first
 * 8 octets of the private data. The rest exists mainly because iWARP has neither datagrams nor RNR:
 * the datagram header, the extension of the private data, and control messages.
 */
#ifndef KIP_PROTO_WIRE_H
#define KIP_PROTO_WIRE_H

#include <linux/build_bug.h>
#include <linux/types.h>

/* RFC 4391 9.1.1 and RFC 4755 3.1: flags and reserved bits, QPN, GID */
#define KIP_ADDR_LEN		20
#define KIP_ADDR_RC		0x80	/* first octet: reachable by reliable connections */
#define KIP_ADDR_UC		0x40	/* first octet: by unreliable ones, never on iWARP */
#define KIP_QPN_MASK		0x00ffffff
#define KIP_QPN_MULTICAST	0x00ffffff

/**
 * struct kip_wire_addr - link-layer address
 * @qpn: flags 8, QPN 24
 * @gid: an IPv6 address; an IPv4 address is mapped (::ffff:a.b.c.d)
 */
struct kip_wire_addr {
	__be32 qpn;
	u8 gid[16];
};

static_assert(sizeof(struct kip_wire_addr) == KIP_ADDR_LEN);

/* RFC 4391 6: in front of every packet */
#define KIP_TYPE_IPV4		0x0800
#define KIP_TYPE_ARP		0x0806
#define KIP_TYPE_RARP		0x8035
#define KIP_TYPE_IPV6		0x86dd
#define KIP_TYPE_CONTROL	0x88b5	/* IEEE 802, local experimental */

/**
 * struct kip_wire_hdr - encapsulation header
 * @type: EtherType
 * @reserved: 0 when sent, ignored when received
 */
struct kip_wire_hdr {
	__be16 type;
	__be16 reserved;
};

static_assert(sizeof(struct kip_wire_hdr) == 4);

/* Limits of the Receive MTU, header included */
#define KIP_RX_MTU_MIN		(1280 + 4)
#define KIP_RX_MTU_MAX		(65520 + 4)

/**
 * struct kip_wire_control - control message on a connection
 * @hdr: of type %KIP_TYPE_CONTROL
 * @op: one of enum kip_op
 * @reserved: 0 when sent, ignored when received
 * @value: the limit of a GRANT or an ANSWER
 */
struct kip_wire_control {
	struct kip_wire_hdr hdr;
	u8 op;
	u8 reserved[3];
	__be32 value;
};

static_assert(sizeof(struct kip_wire_control) == 12);

/* The datagram service: contents of the UDP payload */
#define KIP_DGRAM_VERSION	0
#define KIP_DGRAM_GROUP		0x01	/* flag: sent to all nodes */
#define KIP_DGRAM_MTU		2044	/* RFC 4391 7 */
#define KIP_DGRAM_MTU_MIN	1280
#define KIP_DGRAM_MTU_MAX	9000

/**
 * struct kip_wire_dgram - header of a datagram
 * @version_flags: version 4, flags 4
 * @reserved: 0 when sent, ignored when received
 * @pkey: partition, %KIP_PKEY_FULL set
 * @qkey: %KIP_QKEY_CONTROLLED set
 * @hdr: RFC 4391 6
 */
struct kip_wire_dgram {
	u8 version_flags;
	u8 reserved;
	__be16 pkey;
	__be32 qkey;
	struct kip_wire_hdr hdr;
};

static_assert(sizeof(struct kip_wire_dgram) == 12);

#define KIP_PKEY_FULL		0x8000		/* RFC 4391 4.1: full membership */
#define KIP_QKEY_CONTROLLED	0x80000000	/* RFC 4391 4.1: controlled */

/* Private data: RFC 4755 6, then the extension */
#define KIP_PDATA_MAGIC		0x4b495031	/* "KIP1" */
#define KIP_PDATA_VERSION	1
#define KIP_PDATA_RFC_LEN	8

/**
 * struct kip_wire_pdata - private data of Request, Reply and reject
 * @qpn: reserved 8, QPN of the sender 24
 * @mtu: Receive MTU: octets of the longest message the sender can take
 * @magic: %KIP_PDATA_MAGIC
 * @version: %KIP_PDATA_VERSION
 * @reason: of a reject, one of enum kip_reason; otherwise 0
 * @pkey: partition
 * @data_receives: receives that the sender keeps for data messages
 * @control_receives: receives that the sender keeps for control messages
 * @instance: a number that the sender chose when its interface came up, or when it last ended all
 *	connections
 * @serial: grows with each Request of the sender since then; a Request has its own number
 */
struct kip_wire_pdata {
	__be32 qpn;
	__be32 mtu;
	__be32 magic;
	u8 version;
	u8 reason;
	__be16 pkey;
	__be16 data_receives;
	__be16 control_receives;
	__be32 instance;
	__be32 serial;
};

static_assert(sizeof(struct kip_wire_pdata) == 28);

#endif /* KIP_PROTO_WIRE_H */
