/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * iWARP on the wire: MPA (RFC 5044, RFC 6581), DDP (RFC 5041) and RDMAP (RFC
 * 5040, RFC 7306), as offsets, sizes and masks.
 *
 * Owns: the numbers of these formats, except for the codes of a Terminate (perr.h). Pure: usable in
 * any context. Control octets are built and read with the masks below and never through C
 * bitfields, because the compiler chooses their order.
 */
#ifndef KIW_PROTO_WIRE_H
#define KIW_PROTO_WIRE_H

#include <linux/bits.h>
#include <linux/build_bug.h>
#include <linux/stddef.h>
#include <linux/types.h>

/* RFC 5044 7.1.1: MPA Request and Reply frame */
#define KIW_MPA_KEY_LEN		16
#define KIW_MPA_KEY_REQ		"MPA ID Req Frame"
#define KIW_MPA_KEY_REP		"MPA ID Rep Frame"

struct kiw_wire_mpa_frame {
	u8 key[KIW_MPA_KEY_LEN];
	u8 flags;
	u8 rev;
	__be16 pd_length;
};

static_assert(sizeof(struct kiw_wire_mpa_frame) == 20);
static_assert(offsetof(struct kiw_wire_mpa_frame, pd_length) == 18);

#define KIW_MPA_FLAG_M		0x80	/* RFC 5044: markers wanted on receipt */
#define KIW_MPA_FLAG_C		0x40	/* RFC 5044: CRC wanted */
#define KIW_MPA_FLAG_R		0x20	/* RFC 5044: connection rejected */
#define KIW_MPA_FLAG_S		0x10	/* RFC 6581 6: enhanced, IRD/ORD follow */

#define KIW_MPA_REV_RDMAC	0
#define KIW_MPA_REV_1		1
#define KIW_MPA_REV_2		2

#define KIW_MPA_PD_MAX		512	/* RFC 5044 7.1.1: PD_Length */
#define KIW_MPA_FRAME_MAX	(sizeof(struct kiw_wire_mpa_frame) + KIW_MPA_PD_MAX)

/* RFC 6581 9: enhanced RDMA connection establishment data */
struct kiw_wire_mpa_v2 {
	__be16 ird;
	__be16 ord;
};

static_assert(sizeof(struct kiw_wire_mpa_v2) == 4);

#define KIW_MPA_V2_A		0x8000	/* in ird: peer-to-peer */
#define KIW_MPA_V2_B		0x4000	/* in ird: RTR by zero-length Send */
#define KIW_MPA_V2_C		0x8000	/* in ord: RTR by zero-length RDMA Write */
#define KIW_MPA_V2_D		0x4000	/* in ord: RTR by zero-length RDMA Read */
#define KIW_MPA_V2_DEPTH_MASK	0x3fff
#define KIW_MPA_V2_NOT_NEGOTIATED 0x3fff

/* RFC 5044 4: FPDU = ULPDU_Length, ULPDU, PAD, CRC */
#define KIW_FPDU_LEN_SIZE	2
#define KIW_FPDU_CRC_SIZE	4
#define KIW_FPDU_ALIGN		4
#define KIW_MULPDU_MIN		128
#define KIW_MULPDU_MAX		64768

/* Not of an RFC: the TO of an empty RDMA Write that announces this driver, see proto/large.h */
#define KIW_ANNOUNCE_TO		0x6b69776172700001ULL	/* "kiwarp", 1 */

/* RFC 5044 4.2 and 4.3: a marker; one at every KIW_MARKER_INTERVAL octets of the stream */
struct kiw_wire_marker {
	__be16 reserved;
	__be16 fpduptr;
};

static_assert(sizeof(struct kiw_wire_marker) == 4);

#define KIW_MARKER_SIZE		sizeof(struct kiw_wire_marker)
#define KIW_MARKER_INTERVAL	512
/* FPDU octets between one marker and the next */
#define KIW_MARKER_SPACE	(KIW_MARKER_INTERVAL - KIW_MARKER_SIZE)
#define KIW_FPDUPTR_MASK	0xfffc	/* receivers take the two other bits for zero */

/* The version of DDP and RDMAP alike: RFC 5041 4.1, RFC 5040 4.1, RFC 5044 appendix C */
#define KIW_DDP_VERSION_RDMAC	0
#define KIW_DDP_VERSION_IETF	1

/* RFC 5041 4.1: first octet of a DDP header */
#define KIW_DDP_TAGGED		0x80
#define KIW_DDP_LAST		0x40
#define KIW_DDP_VERSION_MASK	0x03

/* RFC 5040 4.1: the octet that DDP reserves for RDMAP */
#define KIW_RDMAP_VERSION_MASK	0xc0
#define KIW_RDMAP_OPCODE_MASK	0x0f

/* RFC 5040 4.1 figure 4, RFC 7306 4.1 figure 2 */
enum kiw_rdmap_opcode {
	KIW_RDMAP_WRITE		= 0x0,
	KIW_RDMAP_READ_REQ	= 0x1,
	KIW_RDMAP_READ_RESP	= 0x2,
	KIW_RDMAP_SEND		= 0x3,
	KIW_RDMAP_SEND_INV	= 0x4,
	KIW_RDMAP_SEND_SE	= 0x5,
	KIW_RDMAP_SEND_SE_INV	= 0x6,
	KIW_RDMAP_TERMINATE	= 0x7,
	KIW_RDMAP_IMMEDIATE	= 0x8,
	KIW_RDMAP_IMMEDIATE_SE	= 0x9,
	KIW_RDMAP_ATOMIC_REQ	= 0xa,
	KIW_RDMAP_ATOMIC_RESP	= 0xb,
};

/* How many opcodes there are on a connection: those of RFC 5040, or those of RFC 7306, too */
#define KIW_RDMAP_OPCODES_5040	0x8
#define KIW_RDMAP_OPCODES_7306	0xc

/* RFC 5040 4.1 figure 4, RFC 7306 10.2: DDP queue numbers that RDMAP uses */
#define KIW_QN_SEND		0
#define KIW_QN_READ_REQ		1	/* Atomic Requests, too */
#define KIW_QN_TERMINATE	2
#define KIW_QN_ATOMIC_RESP	3
#define KIW_QN_COUNT		4

/* RFC 5041 4.2, with the ULPDU_Length that precedes it in an FPDU */
struct kiw_wire_tagged {
	__be16 ulpdu_len;
	u8 ddp;
	u8 rdmap;
	__be32 stag;
	__be64 to;
};

static_assert(sizeof(struct kiw_wire_tagged) == 16);

/* RFC 5041 4.3, with the ULPDU_Length that precedes it in an FPDU */
struct kiw_wire_untagged {
	__be16 ulpdu_len;
	u8 ddp;
	u8 rdmap;
	__be32 inv_stag;	/* reserved for the ULP: RFC 5040 4.1 */
	__be32 qn;
	__be32 msn;
	__be32 mo;
};

static_assert(sizeof(struct kiw_wire_untagged) == 20);

#define KIW_DDP_TAGGED_HDR	(sizeof(struct kiw_wire_tagged) - KIW_FPDU_LEN_SIZE)
#define KIW_DDP_UNTAGGED_HDR	(sizeof(struct kiw_wire_untagged) - KIW_FPDU_LEN_SIZE)

/* RFC 5040 4.4: RDMA Read Request header, the payload of that message */
struct kiw_wire_read_req {
	__be32 sink_stag;
	__be64 sink_to;
	__be32 size;
	__be32 src_stag;
	__be64 src_to;
} __packed;

static_assert(sizeof(struct kiw_wire_read_req) == 28);

/* RFC 7306 6.2: Immediate Data, the payload of that message */
#define KIW_IMMEDIATE_SIZE	8

/* RFC 7306 5.2.1 figure 4: Atomic Operation Request header, the payload of that message */
struct kiw_wire_atomic_req {
	u8 reserved[3];
	u8 aopcode;
	__be32 id;
	__be32 stag;
	__be64 to;
	__be64 data;
	__be64 mask;
	__be64 compare;
	__be64 compare_mask;
} __packed;

static_assert(sizeof(struct kiw_wire_atomic_req) == 52);
static_assert(offsetof(struct kiw_wire_atomic_req, to) == 12);
static_assert(offsetof(struct kiw_wire_atomic_req, compare_mask) == 44);

#define KIW_ATOMIC_AOPCODE_MASK	0x0f

/* RFC 7306 5.2.1 figure 5 */
enum kiw_aopcode {
	KIW_ATOMIC_FETCH_ADD	= 0x0,
	KIW_ATOMIC_CMP_SWAP	= 0x2,
};

/*
 * RFC 7306 5.2.2 figure 6: Atomic Operation Response header, the payload of that message. Section
 * 4 says that it is 32 octets long; but figure 6 and appendix A.2 have no more than these.
 */
struct kiw_wire_atomic_resp {
	__be32 id;
	__be64 value;
} __packed;

static_assert(sizeof(struct kiw_wire_atomic_resp) == 12);

/* RFC 5040 4.8: Terminate control, then the optional copied headers */
struct kiw_wire_term {
	u8 layer_etype;
	u8 code;
	u8 hdrct;
	u8 reserved;
};

static_assert(sizeof(struct kiw_wire_term) == 4);

#define KIW_TERM_LAYER_SHIFT	4
#define KIW_TERM_ETYPE_MASK	0x0f
#define KIW_TERM_HDRCT_M	0x80	/* DDP Segment Length is there */
#define KIW_TERM_HDRCT_D	0x40	/* DDP header is there */
#define KIW_TERM_HDRCT_R	0x20	/* RDMA Read Request header is there */

/* The longest Terminate payload: control, length, untagged header, Read Request */
#define KIW_TERM_MAX		(sizeof(struct kiw_wire_term) + 2 + KIW_DDP_UNTAGGED_HDR + \
				 sizeof(struct kiw_wire_read_req))

/*
 * The longest head of an FPDU that is copied to interpret it or to quote it in a Terminate: length,
 * header, Read Request. The header of an Atomic Request is longer, and is read separately.
 */
#define KIW_FPDU_HDR_MAX	(sizeof(struct kiw_wire_untagged) + \
				 sizeof(struct kiw_wire_read_req))

#endif /* KIW_PROTO_WIRE_H */
