/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * DDP segments (RFC 5041) with their RDMAP control octet (RFC 5040 4.1): decode and
 * check received headers, encode those to send.
 */
#ifndef KIW_PROTO_DDP_H
#define KIW_PROTO_DDP_H

#include <linux/unaligned.h>
#include <asm/byteorder.h>

#include "perr.h"
#include "wire.h"

/**
 * struct kiw_ddp_seg - one received DDP segment, decoded
 * @tagged: T bit
 * @last: L bit
 * @opcode: &enum kiw_rdmap_opcode, consistent with @tagged and @qn
 * @hdr_len: octets of ULPDU_Length field and DDP header, after which the payload starts
 * @payload_len: octets of payload
 * @stag: tagged: data sink STag
 * @to: tagged: offset of the first payload octet
 * @inv_stag: Send with Invalidate: STag to invalidate
 * @qn: untagged: queue number
 * @msn: untagged: message sequence number
 * @mo: untagged: message offset
 */
struct kiw_ddp_seg {
	bool tagged;
	bool last;
	u8 opcode;
	u8 hdr_len;
	u16 payload_len;
	u32 stag;
	u64 to;
	u32 inv_stag;
	u32 qn;
	u32 msn;
	u32 mo;
};

enum kiw_perr kiw_ddp_decode(const u8 *head, u16 ulpdu_len, u8 version, u8 opcodes,
			     struct kiw_ddp_seg *seg);
void kiw_ddp_encode_tagged(struct kiw_wire_tagged *hdr, u8 version, u8 opcode, bool last,
			   u16 payload_len, u32 stag, u64 to);
void kiw_ddp_encode_untagged(struct kiw_wire_untagged *hdr, u8 version, u8 opcode, bool last,
			     u16 payload_len, u32 inv_stag, u32 msn, u32 mo);

/*
 * RFC 5041 5.2: turn the header of a segment with @before octets of payload into that of the
 * next one, which has @payload_len octets and is otherwise the same
 */
static inline void kiw_ddp_next_tagged(struct kiw_wire_tagged *hdr, u16 before, u16 payload_len)
{
	hdr->ulpdu_len = cpu_to_be16(KIW_DDP_TAGGED_HDR + payload_len);
	hdr->to = cpu_to_be64(be64_to_cpu(hdr->to) + before);
}

static inline void kiw_ddp_next_untagged(struct kiw_wire_untagged *hdr, u16 before,
					 u16 payload_len)
{
	hdr->ulpdu_len = cpu_to_be16(KIW_DDP_UNTAGGED_HDR + payload_len);
	hdr->mo = cpu_to_be32(be32_to_cpu(hdr->mo) + before);
}

/**
 * kiw_ddp_continues() - is this the next segment of a message, of the same length?
 * @next: the FPDU from its ULPDU_Length field, any alignment; its first 20 octets can be read
 * @head: the header of the previous FPDU, in the same form; updated to this FPDU if so
 * @seg: the previous FPDU, decoded without a fault; updated likewise
 *
 * Segments of a message that have the same length and are not the last differ only in the TO or the
 * MO, which grows by the length of the payload (RFC 5041 5.2 and 5.3). kiw_ddp_decode() found
 * no fault in the previous header. If this header has the same first eight octets (ULPDU_Length,
 * both control octets, STag) and, if untagged, the same queue and MSN, it has no fault either, and
 * decodes to the same values except for the TO or the MO, which cannot cause a fault. After the
 * last segment of a message another message begins, so nothing continues it.
 *
 * Context: any.
 * Return: true if so. false: no, or not known; @head and @seg are unchanged, and kiw_ddp_decode()
 * has to decide.
 */
static inline bool kiw_ddp_continues(const u8 *next, u8 *head, struct kiw_ddp_seg *seg)
{
	const size_t to = offsetof(struct kiw_wire_tagged, to);
	const size_t qn = offsetof(struct kiw_wire_untagged, qn);
	const size_t mo = offsetof(struct kiw_wire_untagged, mo);

	static_assert(offsetof(struct kiw_wire_tagged, to) == sizeof(u64));
	static_assert(offsetof(struct kiw_wire_untagged, qn) == sizeof(u64));
	static_assert(offsetof(struct kiw_wire_untagged, mo) == 2 * sizeof(u64));
	if (seg->last || get_unaligned_be64(next) != get_unaligned_be64(head))
		return false;
	if (seg->tagged) {
		if (get_unaligned_be64(next + to) != seg->to + seg->payload_len)
			return false;
		seg->to += seg->payload_len;
		put_unaligned_be64(seg->to, head + to);
		return true;
	}
	if (get_unaligned_be64(next + qn) != get_unaligned_be64(head + qn) ||
	    get_unaligned_be32(next + mo) != seg->mo + seg->payload_len)
		return false;
	seg->mo += seg->payload_len;
	put_unaligned_be32(seg->mo, head + mo);
	return true;
}

#endif /* KIW_PROTO_DDP_H */
