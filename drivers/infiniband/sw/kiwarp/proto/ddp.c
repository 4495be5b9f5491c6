// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * DDP segments: RFC 5041 4 with the control octet of RFC 5040 4.1.
 *
 * Only this file and ddp.h, and term.c for the segment at fault, read or write the fields of these
 * headers. They are checked here as far as the header alone allows. The receive engine checks
 * STags, buffers and order.
 */
#include "ddp.h"
#include "rdmap.h"

#include <linux/bitfield.h>
#include <linux/string.h>
#include <linux/unaligned.h>
#include <asm/byteorder.h>

/* RFC 5041 4.1, RFC 5040 4.1: the two control octets of a complete header */
static enum kiw_perr ddp_check_control(u8 ddp, u8 rdmap, u8 version, u8 opcodes)
{
	bool tagged = ddp & KIW_DDP_TAGGED;

	if (FIELD_GET(KIW_DDP_VERSION_MASK, ddp) != version)
		return tagged ? KIW_PERR_DDP_TAGGED_VERSION : KIW_PERR_DDP_UNTAGGED_VERSION;
	if (FIELD_GET(KIW_RDMAP_VERSION_MASK, rdmap) != version)
		return KIW_PERR_RDMAP_VERSION;
	if (!kiw_rdmap_opcode_fits(FIELD_GET(KIW_RDMAP_OPCODE_MASK, rdmap), tagged, opcodes))
		return KIW_PERR_RDMAP_OPCODE;
	return KIW_PERR_NONE;
}

/*
 * RFC 5041 7.1: a queue that does not exist is a fault of DDP. A queue that exists but
 * does not belong to this opcode is one of RDMAP (RFC 5040 4.1 figure 4). Queue 3 exists
 * only with the opcodes of RFC 7306.
 */
static enum kiw_perr ddp_check_queue(const struct kiw_ddp_seg *seg, u8 opcodes)
{
	u32 count = opcodes > KIW_RDMAP_ATOMIC_RESP ? KIW_QN_COUNT : KIW_QN_ATOMIC_RESP;

	if (seg->qn == kiw_rdmap_rows[seg->opcode].qn)
		return KIW_PERR_NONE;
	return seg->qn < count ? KIW_PERR_RDMAP_OPCODE : KIW_PERR_DDP_QN;
}

static void ddp_read_tagged(const u8 *head, struct kiw_ddp_seg *seg)
{
	seg->stag = get_unaligned_be32(head + offsetof(struct kiw_wire_tagged, stag));
	seg->to = get_unaligned_be64(head + offsetof(struct kiw_wire_tagged, to));
}

static void ddp_read_untagged(const u8 *head, struct kiw_ddp_seg *seg)
{
	seg->qn = get_unaligned_be32(head + offsetof(struct kiw_wire_untagged, qn));
	seg->msn = get_unaligned_be32(head + offsetof(struct kiw_wire_untagged, msn));
	seg->mo = get_unaligned_be32(head + offsetof(struct kiw_wire_untagged, mo));
	if (kiw_rdmap_is_invalidate(seg->opcode))
		seg->inv_stag = get_unaligned_be32(head + offsetof(struct kiw_wire_untagged,
								   inv_stag));
}

/**
 * kiw_ddp_decode() - decode and check the header of a received segment
 * @head: the FPDU from its ULPDU_Length field, any alignment; the smaller of
 *	%KIW_FPDU_HDR_MAX and 2 + @ulpdu_len octets can be read
 * @ulpdu_len: ULPDU_Length, octets
 * @version: of DDP and RDMAP on this connection, %KIW_DDP_VERSION_IETF or _RDMAC
 * @opcodes: of RDMAP on this connection, %KIW_RDMAP_OPCODES_5040 or _7306
 * @seg: set to the decoded header; valid only if there is no fault
 *
 * RFC 5041 4 and 7.1, RFC 5040 4.1 and 7.2, RFC 7306 8.2. Checks in this order, and returns the
 * first fault: complete header, DDP version, RDMAP version, opcode known and valid for this
 * buffer model, queue, and the checks of kiw_rdmap_check_size(). Reserved bits are ignored.
 *
 * Context: any.
 * Return: %KIW_PERR_NONE, or the fault.
 */
enum kiw_perr kiw_ddp_decode(const u8 *head, u16 ulpdu_len, u8 version, u8 opcodes,
			     struct kiw_ddp_seg *seg)
{
	u8 ddp, rdmap, ddp_hdr;
	enum kiw_perr perr;

	memset(seg, 0, sizeof(*seg));
	if (ulpdu_len < KIW_DDP_TAGGED_HDR)
		return KIW_PERR_MPA_FRAMING;
	ddp = head[offsetof(struct kiw_wire_tagged, ddp)];
	rdmap = head[offsetof(struct kiw_wire_tagged, rdmap)];
	seg->tagged = ddp & KIW_DDP_TAGGED;
	ddp_hdr = seg->tagged ? KIW_DDP_TAGGED_HDR : KIW_DDP_UNTAGGED_HDR;
	if (ulpdu_len < ddp_hdr)
		return KIW_PERR_MPA_FRAMING;
	perr = ddp_check_control(ddp, rdmap, version, opcodes);
	if (perr)
		return perr;

	seg->last = ddp & KIW_DDP_LAST;
	seg->opcode = FIELD_GET(KIW_RDMAP_OPCODE_MASK, rdmap);
	seg->hdr_len = KIW_FPDU_LEN_SIZE + ddp_hdr;
	seg->payload_len = ulpdu_len - ddp_hdr;
	if (seg->tagged) {
		ddp_read_tagged(head, seg);
		return KIW_PERR_NONE;
	}
	ddp_read_untagged(head, seg);
	perr = ddp_check_queue(seg, opcodes);
	return perr ? perr : kiw_rdmap_check_size(seg);
}

/* RFC 5041 4.1: T, L and the version, reserved bits zero */
static u8 ddp_control(u8 version, bool tagged, bool last)
{
	return (tagged ? KIW_DDP_TAGGED : 0) | (last ? KIW_DDP_LAST : 0) |
	       FIELD_PREP(KIW_DDP_VERSION_MASK, version);
}

/* RFC 5040 4.1: version and opcode, reserved bits zero */
static u8 ddp_rdmap_control(u8 version, u8 opcode)
{
	return FIELD_PREP(KIW_RDMAP_VERSION_MASK, version) |
	       (opcode & KIW_RDMAP_OPCODE_MASK);
}

/**
 * kiw_ddp_encode_tagged() - write ULPDU_Length and header of a tagged segment
 * @hdr: written completely
 * @version: of DDP and RDMAP on this connection, %KIW_DDP_VERSION_IETF or _RDMAC
 * @opcode: %KIW_RDMAP_WRITE or %KIW_RDMAP_READ_RESP
 * @last: the last segment of its message
 * @payload_len: octets of payload, at most %KIW_MULPDU_MAX less the header
 * @stag: data sink STag
 * @to: tagged offset of the first payload octet in the data sink
 *
 * RFC 5041 4.2.
 *
 * Context: any.
 */
void kiw_ddp_encode_tagged(struct kiw_wire_tagged *hdr, u8 version, u8 opcode, bool last,
			   u16 payload_len, u32 stag, u64 to)
{
	*hdr = (struct kiw_wire_tagged) {
		.ulpdu_len = cpu_to_be16(KIW_DDP_TAGGED_HDR + payload_len),
		.ddp = ddp_control(version, true, last),
		.rdmap = ddp_rdmap_control(version, opcode),
		.stag = cpu_to_be32(stag),
		.to = cpu_to_be64(to),
	};
}

/**
 * kiw_ddp_encode_untagged() - write ULPDU_Length and header of an untagged segment
 * @hdr: written completely; @opcode determines the queue number
 * @version: of DDP and RDMAP on this connection, %KIW_DDP_VERSION_IETF or _RDMAC
 * @opcode: an untagged &enum kiw_rdmap_opcode
 * @last: the last segment of its message
 * @payload_len: octets of payload, at most %KIW_MULPDU_MAX less the header
 * @inv_stag: STag the peer is to invalidate; sent as 0 when @opcode does not
 *	invalidate
 * @msn: message sequence number on the queue, the first is 1
 * @mo: octets of the message before this segment
 *
 * RFC 5041 4.3, RFC 5040 4.1 figure 4.
 *
 * Context: any.
 */
void kiw_ddp_encode_untagged(struct kiw_wire_untagged *hdr, u8 version, u8 opcode, bool last,
			     u16 payload_len, u32 inv_stag, u32 msn, u32 mo)
{
	*hdr = (struct kiw_wire_untagged) {
		.ulpdu_len = cpu_to_be16(KIW_DDP_UNTAGGED_HDR + payload_len),
		.ddp = ddp_control(version, false, last),
		.rdmap = ddp_rdmap_control(version, opcode),
		.inv_stag = cpu_to_be32(kiw_rdmap_is_invalidate(opcode) ? inv_stag : 0),
		.qn = cpu_to_be32(kiw_rdmap_queue(opcode)),
		.msn = cpu_to_be32(msn),
		.mo = cpu_to_be32(mo),
	};
}
