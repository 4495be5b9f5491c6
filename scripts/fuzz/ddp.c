// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* DDP headers: the parser accepts exactly the octets that encode the parsed values. */
#include "fuzz.h"

#include "proto/ddp.h"
#include "proto/rdmap.h"

/* RFC 5041 4.1, RFC 5040 4.1: the bits that have a meaning */
#define DDP_BITS	(KIW_DDP_TAGGED | KIW_DDP_LAST | KIW_DDP_VERSION_MASK)
#define RDMAP_BITS	(KIW_RDMAP_VERSION_MASK | KIW_RDMAP_OPCODE_MASK)

static void written_again(u8 *head, u8 version, const struct kiw_ddp_seg *seg)
{
	struct kiw_wire_untagged untagged;
	struct kiw_wire_tagged tagged;

	head[2] &= DDP_BITS;
	head[3] &= RDMAP_BITS;
	if (seg->tagged) {
		kiw_ddp_encode_tagged(&tagged, version, seg->opcode, seg->last, seg->payload_len,
				      seg->stag, seg->to);
		FUZZ_CHECK(!memcmp(&tagged, head, sizeof(tagged)));
		return;
	}
	if (!kiw_rdmap_is_invalidate(seg->opcode))
		memset(head + 4, 0, 4);
	kiw_ddp_encode_untagged(&untagged, version, seg->opcode, seg->last, seg->payload_len,
				seg->inv_stag, seg->msn, seg->mo);
	FUZZ_CHECK(!memcmp(&untagged, head, sizeof(untagged)));
}

static void check_meaning(const struct kiw_ddp_seg *seg, u16 ulpdu_len, u8 opcodes)
{
	FUZZ_CHECK(seg->hdr_len == (seg->tagged ? 16 : 20));
	FUZZ_CHECK(seg->hdr_len + seg->payload_len == 2 + ulpdu_len);
	FUZZ_CHECK(kiw_rdmap_opcode_fits(seg->opcode, seg->tagged, opcodes));
	if (seg->tagged)
		return;
	FUZZ_CHECK(seg->qn < (opcodes == KIW_RDMAP_OPCODES_5040 ? 3 : 4));
	FUZZ_CHECK(seg->qn == kiw_rdmap_queue(seg->opcode));
	if (seg->opcode >= KIW_RDMAP_SEND && seg->opcode < KIW_RDMAP_TERMINATE)
		return;
	FUZZ_CHECK(seg->last && !seg->mo);
	FUZZ_CHECK(seg->qn != KIW_QN_READ_REQ ||
		   seg->payload_len == (seg->opcode == KIW_RDMAP_READ_REQ ? 28 : 52));
	FUZZ_CHECK(seg->qn != KIW_QN_SEND || seg->payload_len == 8);
	FUZZ_CHECK(seg->payload_len >= (seg->qn == KIW_QN_ATOMIC_RESP ? 12 : 4));
}

/* A segment accepted as the continuation of a good one is good and has the expected values. */
static void followed(const u8 *good, const struct kiw_ddp_seg *seg, u8 version, u8 opcodes,
		     u8 where, u8 wrong)
{
	u8 head[sizeof(struct kiw_wire_untagged)], next[sizeof(head)];
	struct kiw_ddp_seg said = *seg;
	struct kiw_ddp_seg is;

	memcpy(head, good, sizeof(head));
	memcpy(next, good, sizeof(next));
	if (seg->tagged)
		put_unaligned_be64(seg->to + seg->payload_len, next + 8);
	else
		put_unaligned_be32(seg->mo + seg->payload_len, next + 16);
	next[where % sizeof(next)] ^= wrong;
	if (!kiw_ddp_continues(next, head, &said)) {
		FUZZ_CHECK(seg->last || wrong);
		return;
	}
	FUZZ_CHECK(!memcmp(head, next, seg->hdr_len));
	FUZZ_CHECK(kiw_ddp_decode(next, get_unaligned_be16(next), version, opcodes, &is) ==
		   KIW_PERR_NONE);
	FUZZ_CHECK(!memcmp(&is, &said, sizeof(is)));
}

/**
 * fuzz_one() - run one input of libFuzzer
 * @data: an FPDU, starting at its length field
 * @size: number of octets
 *
 * Context: user space.
 * Return: 0.
 */
int fuzz_one(const u8 *data, size_t size)
{
	struct fuzz_input in = fuzz_input(data, size);
	u8 version = in.param[0] & 1;
	u8 opcodes = in.param[0] & 2 ? KIW_RDMAP_OPCODES_7306 : KIW_RDMAP_OPCODES_5040;
	struct kiw_ddp_seg seg;
	enum kiw_perr perr;
	u16 ulpdu_len;
	size_t room;
	u8 *head;

	if (in.size < 2)
		return 0;
	ulpdu_len = get_unaligned_be16(in.data);
	room = 2 + ulpdu_len < (int)KIW_FPDU_HDR_MAX ? 2 + ulpdu_len : KIW_FPDU_HDR_MAX;
	head = fuzz_block(&in, room);
	perr = kiw_ddp_decode(head, ulpdu_len, version, opcodes, &seg);
	FUZZ_CHECK((unsigned int)perr < KIW_PERR_COUNT);
	if (perr == KIW_PERR_NONE) {
		check_meaning(&seg, ulpdu_len, opcodes);
		if (room >= sizeof(struct kiw_wire_untagged))
			followed(head, &seg, version, opcodes, in.param[1], in.param[2]);
		written_again(head, version, &seg);
	}
	free(head);
	return 0;
}
