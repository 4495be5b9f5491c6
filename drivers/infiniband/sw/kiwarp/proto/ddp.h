/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * DDP segments (RFC 5041) with their RDMAP control octet (RFC 5040 4.1): decode
 * and check what came, encode what goes.
 */
#ifndef KIW_PROTO_DDP_H
#define KIW_PROTO_DDP_H

#include <asm/byteorder.h>

#include "perr.h"
#include "wire.h"

/**
 * struct kiw_ddp_seg - one received DDP segment, decoded
 * @tagged: T bit
 * @last: L bit
 * @opcode: &enum kiw_rdmap_opcode, consistent with @tagged and @qn
 * @hdr_len: octets of ULPDU_Length field and DDP header: the payload starts there
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

enum kiw_perr kiw_ddp_decode(const u8 *head, u16 ulpdu_len, u8 version, struct kiw_ddp_seg *seg);
void kiw_ddp_encode_tagged(struct kiw_wire_tagged *hdr, u8 version, u8 opcode, bool last,
			   u16 payload_len, u32 stag, u64 to);
void kiw_ddp_encode_untagged(struct kiw_wire_untagged *hdr, u8 version, u8 opcode, bool last,
			     u16 payload_len, u32 inv_stag, u32 msn, u32 mo);

/* The header of the segment behind one with @payload_len octets, else like it: RFC 5041 5.1 */
static inline void kiw_ddp_next_tagged(struct kiw_wire_tagged *hdr, u16 payload_len)
{
	hdr->to = cpu_to_be64(be64_to_cpu(hdr->to) + payload_len);
}

static inline void kiw_ddp_next_untagged(struct kiw_wire_untagged *hdr, u16 payload_len)
{
	hdr->mo = cpu_to_be32(be32_to_cpu(hdr->mo) + payload_len);
}

#endif /* KIW_PROTO_DDP_H */
