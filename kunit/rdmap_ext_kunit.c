// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * RDMAP extensions: whole segments as drawn in RFC 7306 appendix A, octet by octet, and Atomic
 * Operations against the RFC's pseudocode, which works bit by bit.
 */
#include "proto/rdmap_ext.c"

#include "proto/rdmap.h"
#include "util.h"

#define IETF	KIW_DDP_VERSION_IETF
#define ALL	KIW_RDMAP_OPCODES_7306
#define ROUNDS	20000

/* RFC 7306 A.1, with ULPDU_Length: CmpSwap, the third message on queue 1 */
static const u8 atomic_request[] = {
	0x00, 0x46, 0x41, 0x4a, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x01,
	0x00, 0x00, 0x00, 0x03, 0x00, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x02, 0xa1, 0xa2, 0xa3, 0xa4, 0xb1, 0xb2, 0xb3, 0xb4,
	0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08,
	0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18,
	0x21, 0x22, 0x23, 0x24, 0x25, 0x26, 0x27, 0x28,
	0x31, 0x32, 0x33, 0x34, 0x35, 0x36, 0x37, 0x38,
	0x41, 0x42, 0x43, 0x44, 0x45, 0x46, 0x47, 0x48,
};

/* RFC 7306 A.2, with ULPDU_Length: the second message on queue 3 */
static const u8 atomic_response[] = {
	0x00, 0x1e, 0x41, 0x4b, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x03,
	0x00, 0x00, 0x00, 0x02, 0x00, 0x00, 0x00, 0x00,
	0xa1, 0xa2, 0xa3, 0xa4, 0x51, 0x52, 0x53, 0x54, 0x55, 0x56, 0x57, 0x58,
};

/* RFC 7306 A.3, with ULPDU_Length: the seventh message on queue 0 */
static const u8 immediate[] = {
	0x00, 0x1a, 0x41, 0x48, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x07, 0x00, 0x00, 0x00, 0x00,
	0xca, 0xfe, 0xf0, 0x0d, 0x00, 0x00, 0x00, 0x00,
};

/* RFC 7306 A.3: the same with SE */
static const u8 immediate_se[] = {
	0x00, 0x1a, 0x41, 0x49, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x07, 0x00, 0x00, 0x00, 0x00,
	0xca, 0xfe, 0xf0, 0x0d, 0x00, 0x00, 0x00, 0x00,
};

static const struct kiw_atomic_req request = {
	.aopcode = KIW_ATOMIC_CMP_SWAP, .id = 0xa1a2a3a4, .stag = 0xb1b2b3b4,
	.to = 0x0102030405060708, .data = 0x1112131415161718, .mask = 0x2122232425262728,
	.compare = 0x3132333435363738, .compare_mask = 0x4142434445464748,
};

/* The header of @fpdu is what encoding gives, and decodes to what was encoded */
static void expect_header(struct kunit *test, const u8 *fpdu, size_t size, u8 opcode, u32 msn)
{
	u16 payload_len = size - sizeof(struct kiw_wire_untagged);
	struct kiw_wire_untagged hdr;
	struct kiw_ddp_seg seg;

	kiw_ddp_encode_untagged(&hdr, IETF, opcode, true, payload_len, 0, msn, 0);
	KUNIT_EXPECT_MEMEQ(test, &hdr, fpdu, sizeof(hdr));
	KUNIT_ASSERT_EQ(test, kiw_ddp_decode(fpdu, size - 2, IETF, ALL, &seg), KIW_PERR_NONE);
	KUNIT_EXPECT_EQ(test, seg.opcode, opcode);
	KUNIT_EXPECT_FALSE(test, seg.tagged);
	KUNIT_EXPECT_TRUE(test, seg.last);
	KUNIT_EXPECT_EQ(test, seg.hdr_len + seg.payload_len, size);
	KUNIT_EXPECT_EQ(test, seg.msn, msn);
	KUNIT_EXPECT_EQ(test, kiw_ddp_decode(fpdu, size - 2, IETF, KIW_RDMAP_OPCODES_5040, &seg),
			KIW_PERR_RDMAP_OPCODE);
}

static void expect_request(struct kunit *test, const struct kiw_atomic_req *is)
{
	KUNIT_EXPECT_EQ(test, is->aopcode, request.aopcode);
	KUNIT_EXPECT_EQ(test, is->id, request.id);
	KUNIT_EXPECT_EQ(test, is->stag, request.stag);
	KUNIT_EXPECT_EQ(test, is->to, request.to);
	KUNIT_EXPECT_EQ(test, is->data, request.data);
	KUNIT_EXPECT_EQ(test, is->mask, request.mask);
	KUNIT_EXPECT_EQ(test, is->compare, request.compare);
	KUNIT_EXPECT_EQ(test, is->compare_mask, request.compare_mask);
}

static void rfc7306_a_1_atomic_request(struct kunit *test)
{
	const u8 *golden = atomic_request + sizeof(struct kiw_wire_untagged);
	u8 buf[sizeof(struct kiw_wire_atomic_req) + 8];
	struct kiw_wire_atomic_req wire;
	struct kiw_atomic_req back;
	int shift;

	expect_header(test, atomic_request, sizeof(atomic_request), KIW_RDMAP_ATOMIC_REQ, 3);
	memset(&wire, 0xa5, sizeof(wire));
	kiw_atomic_req_encode(&wire, &request);
	KUNIT_EXPECT_MEMEQ(test, &wire, golden, sizeof(wire));
	for (shift = 0; shift < 8; shift++) {
		memset(&back, 0, sizeof(back));
		memcpy(buf + shift, golden, sizeof(wire));
		/* Reserved: ignored on receive */
		buf[shift] = 0xff;
		buf[shift + 3] |= 0xf0;
		kiw_atomic_req_decode(buf + shift, &back);
		expect_request(test, &back);
	}
}

static void rfc7306_a_2_atomic_response(struct kunit *test)
{
	static const struct kiw_atomic_resp resp = {
		.id = 0xa1a2a3a4, .value = 0x5152535455565758,
	};
	const u8 *golden = atomic_response + sizeof(struct kiw_wire_untagged);
	u8 buf[sizeof(struct kiw_wire_atomic_resp) + 8];
	struct kiw_wire_atomic_resp wire;
	struct kiw_atomic_resp back;
	int shift;

	expect_header(test, atomic_response, sizeof(atomic_response), KIW_RDMAP_ATOMIC_RESP, 2);
	memset(&wire, 0xa5, sizeof(wire));
	kiw_atomic_resp_encode(&wire, &resp);
	KUNIT_EXPECT_MEMEQ(test, &wire, golden, sizeof(wire));
	for (shift = 0; shift < 8; shift++) {
		memcpy(buf + shift, golden, sizeof(wire));
		kiw_atomic_resp_decode(buf + shift, &back);
		KUNIT_EXPECT_EQ(test, back.id, resp.id);
		KUNIT_EXPECT_EQ(test, back.value, resp.value);
	}
}

static void rfc7306_a_3_immediate(struct kunit *test)
{
	const u8 *golden = immediate + sizeof(struct kiw_wire_untagged);
	const __be32 imm = cpu_to_be32(0xcafef00d);
	u8 wire[KIW_IMMEDIATE_SIZE], all[KIW_IMMEDIATE_SIZE];

	expect_header(test, immediate, sizeof(immediate), KIW_RDMAP_IMMEDIATE, 7);
	expect_header(test, immediate_se, sizeof(immediate_se), KIW_RDMAP_IMMEDIATE_SE, 7);
	memset(wire, 0xa5, sizeof(wire));
	kiw_immediate_encode(wire, imm);
	KUNIT_EXPECT_MEMEQ(test, wire, golden, sizeof(wire));
	/* A ULP that is not the verbs may use all 8 octets */
	memcpy(all, golden, sizeof(all));
	all[7] = 0xff;
	KUNIT_EXPECT_TRUE(test, kiw_immediate_decode(all) == imm);
}

/* RFC 7306 5.1.1 and 5.1.2, the pseudocode as it stands there */
static u64 pseudocode(const struct kiw_atomic_req *req, u64 old)
{
	u64 location = 1, result = 0, carry = 0, sum;
	int bit;

	if (req->aopcode == KIW_ATOMIC_CMP_SWAP) {
		if (!((req->compare ^ old) & req->compare_mask))
			return (old & ~req->mask) | (req->data & req->mask);
		return old;
	}
	for (bit = 0; bit <= 63; bit++) {
		if (bit)
			location <<= 1;
		sum = carry + ((old & location) >> bit) + ((req->data & location) >> bit);
		carry = (sum & 2) >> 1;
		sum &= 1;
		if (sum)
			result |= location;
		carry = carry && !(req->mask & location);
	}
	return result;
}

static u64 any(u32 *state)
{
	static const u64 edges[] = {
		0, 1, ~0ULL, 1ULL << 63, ~0ULL >> 1, 0x8080808080808080, 0x00000000ffffffff,
	};
	u32 pick = kiw_test_next(state) % (2 * ARRAY_SIZE(edges));

	if (pick < ARRAY_SIZE(edges))
		return edges[pick];
	return (u64)kiw_test_next(state) << 32 | kiw_test_next(state);
}

static void rfc7306_5_1_pseudocode(struct kunit *test)
{
	struct kiw_atomic_req req = {};
	u32 state = 7306, bad = 0;
	u64 old;
	int i;

	for (i = 0; i < ROUNDS; i++) {
		old = any(&state);
		req.aopcode = i % 2 ? KIW_ATOMIC_FETCH_ADD : KIW_ATOMIC_CMP_SWAP;
		req.data = any(&state);
		req.mask = any(&state);
		/* Equal often enough, in the bits that count */
		req.compare = i % 4 ? any(&state) : old;
		req.compare_mask = i % 8 == 2 ? 0 : any(&state);
		bad += kiw_atomic_result(&req, old) != pseudocode(&req, old);
	}
	KUNIT_EXPECT_EQ(test, bad, 0U);
}

static void rfc7306_5_1_examples(struct kunit *test)
{
	struct kiw_atomic_req add = { .aopcode = KIW_ATOMIC_FETCH_ADD, .data = 1 };
	struct kiw_atomic_req swap = { .aopcode = KIW_ATOMIC_CMP_SWAP, .data = 5, .compare = 3,
				       .mask = ~0ULL, .compare_mask = ~0ULL };

	KUNIT_EXPECT_EQ(test, kiw_atomic_result(&add, 41), 42ULL);
	KUNIT_EXPECT_EQ(test, kiw_atomic_result(&add, ~0ULL), 0ULL);
	/* Two fields of 32 bits: the carry of the lower one is dropped */
	add.mask = 0x8000000080000000;
	KUNIT_EXPECT_EQ(test, kiw_atomic_result(&add, 0xffffffff), 0ULL);
	/* A field for each bit: exclusive or */
	add.mask = ~0ULL;
	add.data = 0x5a5a;
	KUNIT_EXPECT_EQ(test, kiw_atomic_result(&add, 0xff00), 0xa55aULL);
	KUNIT_EXPECT_EQ(test, kiw_atomic_result(&swap, 3), 5ULL);
	KUNIT_EXPECT_EQ(test, kiw_atomic_result(&swap, 4), 4ULL);
	swap.compare_mask = 3;
	swap.mask = 0xf;
	KUNIT_EXPECT_EQ(test, kiw_atomic_result(&swap, 0x123), 0x125ULL);
	KUNIT_EXPECT_EQ(test, kiw_atomic_result(&swap, 0x122), 0x122ULL);
}

static void rfc7306_figure_5_codes(struct kunit *test)
{
	unsigned int code;

	for (code = 0; code < 256; code++)
		KUNIT_EXPECT_EQ(test, kiw_atomic_is_known(code), code == 0 || code == 2);
}

static struct kunit_case rdmap_ext_cases[] = {
	KUNIT_CASE(rfc7306_a_1_atomic_request),
	KUNIT_CASE(rfc7306_a_2_atomic_response),
	KUNIT_CASE(rfc7306_a_3_immediate),
	KUNIT_CASE(rfc7306_5_1_pseudocode),
	KUNIT_CASE(rfc7306_5_1_examples),
	KUNIT_CASE(rfc7306_figure_5_codes),
	{}
};

static struct kunit_suite rdmap_ext_suite = {
	.name = "kiwarp_rdmap_ext",
	.test_cases = rdmap_ext_cases,
};

kunit_test_suite(rdmap_ext_suite);
