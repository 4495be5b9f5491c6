/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * The error taxonomy: every fault for which there is a Terminate has one name and one row
 * here. The row gives the Terminate codes on the wire and the status of the work request.
 * kiw_count_fault() chooses the counters. Frames of a startup that are malformed have no row:
 * see &enum kiw_mpa_verdict.
 */
#ifndef KIW_PROTO_PERR_H
#define KIW_PROTO_PERR_H

#include <linux/types.h>

/**
 * enum kiw_wcs - completion status, in the driver's own terms
 * @KIW_WCS_SUCCESS: done
 * @KIW_WCS_LOC_LEN: a message longer than the receive that took it
 * @KIW_WCS_LOC_PROT: an invalid local STag or range, or a missing right
 * @KIW_WCS_LOC_QP_OP: an invalid work request
 * @KIW_WCS_FLUSHED: never begun, or outcome unknown, because the QP is in ERROR
 * @KIW_WCS_BAD_RESP: the peer's response does not match the request
 * @KIW_WCS_REM_ACCESS: the peer refused access: STag, range or rights
 * @KIW_WCS_REM_INV_REQ: the peer found the request invalid
 * @KIW_WCS_REM_OP: the peer could not execute the request
 * @KIW_WCS_MEM_OP: a registration, a binding or an invalidation that failed
 * @KIW_WCS_GENERAL: anything else
 * @KIW_WCS_COUNT: number of the above
 *
 * queue/cq.c maps it to enum ib_wc_status, verbs/uapi_siw.c and verbs/uapi_rxe.c to the codes of
 * their rings.
 */
enum kiw_wcs {
	KIW_WCS_SUCCESS,
	KIW_WCS_LOC_LEN,
	KIW_WCS_LOC_PROT,
	KIW_WCS_LOC_QP_OP,
	KIW_WCS_FLUSHED,
	KIW_WCS_BAD_RESP,
	KIW_WCS_REM_ACCESS,
	KIW_WCS_REM_INV_REQ,
	KIW_WCS_REM_OP,
	KIW_WCS_MEM_OP,
	KIW_WCS_GENERAL,
	KIW_WCS_COUNT,
};

/* Terminate layers and error types: RFC 5040 4.8 */
#define KIW_LAYER_RDMAP		0
#define KIW_LAYER_DDP		1
#define KIW_LAYER_LLP		2
#define KIW_ETYPE_CATASTROPHIC	0	/* of RDMAP and of DDP */
#define KIW_ETYPE_PROTECTION	1	/* of RDMAP */

/*
 * X(name, layer, etype, code, status of the requester's failing WR, text)
 * The *requester* sees this status on its work request when the peer answers with
 * this Terminate. RDMAP_ALIGN is on the wire what RDMAP_STREAM is (RFC 7306 8.2): a
 * received one is decoded as RDMAP_STREAM.
 */
#define KIW_PERR_LIST(X) \
	X(RDMAP_CATASTROPHIC,	0, 0, 0x00, REM_OP,	"RDMAP local catastrophic error") \
	X(RDMAP_STAG,		0, 1, 0x00, REM_ACCESS,	"RDMAP invalid STag") \
	X(RDMAP_BOUNDS,		0, 1, 0x01, REM_ACCESS,	"RDMAP base or bounds violation") \
	X(RDMAP_ACCESS,		0, 1, 0x02, REM_ACCESS,	"RDMAP access rights violation") \
	X(RDMAP_STAG_ASSOC,	0, 1, 0x03, REM_ACCESS,	"RDMAP STag not associated with stream") \
	X(RDMAP_TO_WRAP,	0, 1, 0x04, REM_ACCESS,	"RDMAP tagged offset wrap") \
	X(RDMAP_INVALIDATE,	0, 1, 0x09, REM_INV_REQ, "RDMAP STag not invalidated") \
	X(RDMAP_PROT_UNSPEC,	0, 1, 0xff, REM_ACCESS,	"RDMAP unspecified protection error") \
	X(RDMAP_VERSION,	0, 2, 0x05, REM_INV_REQ, "RDMAP invalid version") \
	X(RDMAP_OPCODE,		0, 2, 0x06, REM_INV_REQ, "RDMAP unexpected opcode") \
	X(RDMAP_STREAM,		0, 2, 0x07, REM_OP,	"RDMAP catastrophic error on the stream") \
	X(RDMAP_GLOBAL,		0, 2, 0x08, REM_OP,	"RDMAP global catastrophic error") \
	X(RDMAP_OP_INVALIDATE,	0, 2, 0x09, REM_INV_REQ, "RDMAP invalidation failed") \
	X(RDMAP_OP_UNSPEC,	0, 2, 0xff, REM_OP,	"RDMAP unspecified operation error") \
	X(RDMAP_ALIGN,		0, 2, 0x07, REM_OP,	"RDMAP atomic on unaligned memory") \
	X(DDP_CATASTROPHIC,	1, 0, 0x00, REM_OP,	"DDP local catastrophic error") \
	X(DDP_STAG,		1, 1, 0x00, REM_ACCESS,	"DDP invalid STag") \
	X(DDP_BOUNDS,		1, 1, 0x01, REM_ACCESS,	"DDP base or bounds violation") \
	X(DDP_STAG_ASSOC,	1, 1, 0x02, REM_ACCESS,	"DDP STag not associated with stream") \
	X(DDP_TO_WRAP,		1, 1, 0x03, REM_ACCESS,	"DDP tagged offset wrap") \
	X(DDP_TAGGED_VERSION,	1, 1, 0x04, REM_INV_REQ, "DDP invalid version, tagged") \
	X(DDP_QN,		1, 2, 0x01, REM_INV_REQ, "DDP invalid queue number") \
	X(DDP_NO_BUFFER,	1, 2, 0x02, REM_OP,	"DDP no buffer available") \
	X(DDP_MSN,		1, 2, 0x03, REM_INV_REQ, "DDP MSN out of range") \
	X(DDP_MO,		1, 2, 0x04, REM_INV_REQ, "DDP invalid message offset") \
	X(DDP_TOO_LONG,		1, 2, 0x05, REM_INV_REQ, "DDP message too long for its buffer") \
	X(DDP_UNTAGGED_VERSION,	1, 2, 0x06, REM_INV_REQ, "DDP invalid version, untagged") \
	X(MPA_CRC,		2, 0, 0x02, GENERAL,	"MPA CRC error") \
	X(MPA_FRAMING,		2, 0, 0x03, GENERAL,	"MPA marker and ULPDU length disagree") \
	X(MPA_LOCAL,		2, 0, 0x05, GENERAL,	"MPA local catastrophic error") \
	X(MPA_IRD,		2, 0, 0x06, GENERAL,	"MPA insufficient IRD resources") \
	X(MPA_RTR,		2, 0, 0x07, GENERAL,	"MPA no matching RTR option")

/**
 * enum kiw_perr - a protocol fault
 * @KIW_PERR_NONE: none
 * @KIW_PERR_LIST: one for each row of the list
 *
 * A separate type, which is never negated and never mixed with errno.
 */
enum kiw_perr {
	KIW_PERR_NONE,
#define KIW_PERR_ENUM(name, layer, etype, code, wcs, text) KIW_PERR_##name,
	KIW_PERR_LIST(KIW_PERR_ENUM)
#undef KIW_PERR_ENUM
	KIW_PERR_COUNT,
};

/**
 * struct kiw_perr_info - properties of a fault
 * @layer: Terminate layer, RFC 5040 4.8
 * @etype: Terminate error type
 * @code: Terminate error code
 * @wcs: status of the requester's failing work request
 * @text: description for traces
 */
struct kiw_perr_info {
	u8 layer;
	u8 etype;
	u8 code;
	enum kiw_wcs wcs;
	const char *text;
};

const struct kiw_perr_info *kiw_perr_info(enum kiw_perr perr);
enum kiw_perr kiw_perr_from_wire(u8 layer, u8 etype, u8 code);

#endif /* KIW_PROTO_PERR_H */
