// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * RDMA Read Requests and the headers of RFC 7306, parsed and built again, Atomic Operations, and
 * the order of messages on an untagged queue.
 */
#include "fuzz.h"

#include "proto/rdmap.h"
#include "proto/rdmap_ext.h"

#define SEGMENT		11	/* octets of input for one segment */

static void read_request(const struct fuzz_input *in)
{
	u8 *wire = fuzz_block(in, sizeof(struct kiw_wire_read_req));
	struct kiw_wire_read_req again;
	struct kiw_read_req req;

	kiw_read_req_decode(wire, &req);
	kiw_read_req_encode(&again, &req);
	FUZZ_CHECK(!memcmp(&again, wire, sizeof(again)));
	free(wire);
}

/* Check a result: FetchAdd against a sum computed bit by bit, CmpSwap by the bits that changed. */
static void atomic_result(const struct kiw_atomic_req *req, u64 old)
{
	u64 is = kiw_atomic_result(req, old), sum = 0, carry = 0;
	int bit;

	if (req->aopcode == KIW_ATOMIC_CMP_SWAP) {
		FUZZ_CHECK(is == old || !((is ^ req->data) & req->mask));
		FUZZ_CHECK(!((is ^ old) & ~req->mask));
		return;
	}
	for (bit = 0; bit < 64; bit++) {
		carry += (old >> bit & 1) + (req->data >> bit & 1);
		sum |= (carry & 1) << bit;
		carry = req->mask >> bit & 1 ? 0 : carry >> 1;
	}
	FUZZ_CHECK(is == sum);
}

static void extensions(const struct fuzz_input *in)
{
	u8 *wire = fuzz_block(in, sizeof(struct kiw_wire_atomic_req));
	struct kiw_wire_atomic_resp response;
	struct kiw_wire_atomic_req again;
	struct kiw_atomic_resp resp;
	struct kiw_atomic_req req;
	u8 imm[KIW_IMMEDIATE_SIZE];

	kiw_atomic_req_decode(wire, &req);
	kiw_atomic_req_encode(&again, &req);
	FUZZ_CHECK(!memcmp((u8 *)&again + 4, wire + 4, sizeof(again) - 4));
	FUZZ_CHECK(again.aopcode == (wire[3] & 0xf) && !again.reserved[0]);
	kiw_atomic_resp_decode(wire, &resp);
	kiw_atomic_resp_encode(&response, &resp);
	FUZZ_CHECK(!memcmp(&response, wire, sizeof(response)));
	kiw_immediate_encode(imm, kiw_immediate_decode(wire));
	FUZZ_CHECK(!memcmp(imm, wire, 4) && !imm[4] && !imm[7]);
	if (kiw_atomic_is_known(req.aopcode))
		atomic_result(&req, resp.value);
	free(wire);
}

static void opcodes(u8 opcode, u8 count)
{
	bool tagged = kiw_rdmap_opcode_fits(opcode, true, count);
	bool untagged = kiw_rdmap_opcode_fits(opcode, false, count);

	FUZZ_CHECK(!tagged || !untagged);
	FUZZ_CHECK((tagged || untagged) == (opcode < count));
	FUZZ_CHECK(!untagged || kiw_rdmap_queue(opcode) < KIW_QN_COUNT);
	FUZZ_CHECK(!tagged || kiw_rdmap_queue(opcode) == KIW_QN_COUNT);
	if (kiw_rdmap_is_solicited(opcode) || kiw_rdmap_is_invalidate(opcode))
		FUZZ_CHECK(kiw_rdmap_queue(opcode) == KIW_QN_SEND);
}

/*
 * Compares the queue with a model that counts in 64 bits: a segment is accepted exactly if it
 * continues the message, and no message becomes longer than 2^32 - 1 octets.
 */
static void order(const struct fuzz_input *in)
{
	struct kiw_untagged_rx q = { .msn = fuzz_u32(in, 0), .mo = fuzz_u32(in, 4) };
	u64 mo = q.mo;
	u32 msn = q.msn;
	size_t at;

	for (at = 0; at + SEGMENT <= in->size; at += SEGMENT) {
		const u8 *p = in->data + at;
		struct kiw_ddp_seg seg = {
			.msn = p[0] & 1 ? q.msn : get_unaligned_be32(p + 1),
			.mo = p[0] & 2 ? q.mo : get_unaligned_be32(p + 5),
			.last = p[0] & 4,
			.payload_len = get_unaligned_be16(p + 9),
		};
		bool fits = seg.msn == msn && seg.mo == mo && mo + seg.payload_len <= 0xffffffff;

		FUZZ_CHECK((kiw_untagged_check(&q, &seg) == KIW_PERR_NONE) == fits);
		if (!fits)
			continue;
		kiw_untagged_advance(&q, &seg);
		msn += seg.last;
		mo = seg.last ? 0 : mo + seg.payload_len;
		FUZZ_CHECK(q.msn == msn && q.mo == mo);
	}
}

/**
 * fuzz_one() - run one input of libFuzzer
 * @data: a Read Request or another header, and segments on a queue
 * @size: number of octets
 *
 * Context: user space.
 * Return: 0.
 */
int fuzz_one(const u8 *data, size_t size)
{
	struct fuzz_input in = fuzz_input(data, size);

	read_request(&in);
	extensions(&in);
	opcodes(in.param[8], KIW_RDMAP_OPCODES_5040);
	opcodes(in.param[8], KIW_RDMAP_OPCODES_7306);
	order(&in);
	return 0;
}
