// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * RDMAP tables for all opcodes, the Read Request header to the octet, and the
 * order of messages on a queue across the wrap of the sequence number.
 */
#include "proto/rdmap.c"

#include "util.h"

/* RFC 5040 figure 4 and RFC 7306 figure 2, one character per opcode; there are no others */
static bool in(const char *set, unsigned int opcode)
{
	return opcode < 12 && set[opcode] == '1';
}

static void rfc5040_figure_4(struct kunit *test)
{
	unsigned int opcode;

	for (opcode = 0; opcode < 256; opcode++) {
		KUNIT_EXPECT_EQ(test, kiw_rdmap_opcode_fits(opcode, true, 8),
				in("101000000000", opcode));
		KUNIT_EXPECT_EQ(test, kiw_rdmap_opcode_fits(opcode, false, 8),
				in("010111110000", opcode));
		KUNIT_EXPECT_EQ(test, kiw_rdmap_opcode_fits(opcode, true, 12),
				in("101000000000", opcode));
		KUNIT_EXPECT_EQ(test, kiw_rdmap_opcode_fits(opcode, false, 12),
				in("010111111111", opcode));
		KUNIT_EXPECT_EQ(test, kiw_rdmap_is_solicited(opcode), in("000001100100", opcode));
		KUNIT_EXPECT_EQ(test, kiw_rdmap_is_invalidate(opcode), in("000010100000", opcode));
	}
}

static void rfc5040_figure_4_queues(struct kunit *test)
{
	static const u32 want[] = { 4, 1, 4, 0, 0, 0, 0, 2, 0, 0, 1, 3 };
	unsigned int opcode;

	for (opcode = 0; opcode < 256; opcode++)
		KUNIT_EXPECT_EQ(test, kiw_rdmap_queue(opcode), opcode < 12 ? want[opcode] : 4U);
}

/* RFC 5040 4.4 figure 6 */
static void rfc5040_4_4_read_request(struct kunit *test)
{
	static const u8 golden[] = {
		0x11, 0x12, 0x13, 0x14,
		0x21, 0x22, 0x23, 0x24, 0x25, 0x26, 0x27, 0x28,
		0x31, 0x32, 0x33, 0x34,
		0x41, 0x42, 0x43, 0x44,
		0x51, 0x52, 0x53, 0x54, 0x55, 0x56, 0x57, 0x58,
	};
	static const struct kiw_read_req req = {
		.sink_stag = 0x11121314, .sink_to = 0x2122232425262728, .size = 0x31323334,
		.src_stag = 0x41424344, .src_to = 0x5152535455565758,
	};
	u8 buf[sizeof(golden) + 8];
	struct kiw_wire_read_req wire;
	struct kiw_read_req back;
	int shift;

	memset(&wire, 0xa5, sizeof(wire));
	kiw_read_req_encode(&wire, &req);
	KUNIT_ASSERT_EQ(test, sizeof(wire), sizeof(golden));
	KUNIT_EXPECT_MEMEQ(test, &wire, golden, sizeof(golden));
	for (shift = 0; shift < 8; shift++) {
		memset(&back, 0, sizeof(back));
		memcpy(buf + shift, golden, sizeof(golden));
		kiw_read_req_decode(buf + shift, &back);
		KUNIT_EXPECT_EQ(test, back.sink_stag, req.sink_stag);
		KUNIT_EXPECT_EQ(test, back.sink_to, req.sink_to);
		KUNIT_EXPECT_EQ(test, back.size, req.size);
		KUNIT_EXPECT_EQ(test, back.src_stag, req.src_stag);
		KUNIT_EXPECT_EQ(test, back.src_to, req.src_to);
	}
}

static void read_request_extremes(struct kunit *test)
{
	static const struct kiw_read_req req = {
		.sink_stag = ~0U, .sink_to = ~0ULL, .size = ~0U, .src_stag = ~0U, .src_to = ~0ULL,
	};
	struct kiw_wire_read_req wire;
	struct kiw_read_req back = {};

	kiw_read_req_encode(&wire, &req);
	kiw_read_req_decode((u8 *)&wire, &back);
	KUNIT_EXPECT_EQ(test, back.sink_to, ~0ULL);
	KUNIT_EXPECT_EQ(test, back.src_to, ~0ULL);
	KUNIT_EXPECT_EQ(test, back.size, ~0U);
}

/* RFC 5040 5.2.1 and 5.4, RFC 7306 5.2 and 6.3, for all payload lengths */
static enum kiw_perr size_oracle(const struct kiw_ddp_seg *seg)
{
	static const u8 sizes[] = { 0, 28, 0, 0, 0, 0, 0, 4, 8, 8, 52, 12 };

	if (!sizes[seg->opcode])
		return KIW_PERR_NONE;
	if (seg->mo != 0)
		return KIW_PERR_DDP_MO;
	if (seg->opcode != 7 && seg->opcode != 11 && seg->payload_len > sizes[seg->opcode])
		return KIW_PERR_DDP_TOO_LONG;
	if (!seg->last || seg->payload_len < sizes[seg->opcode])
		return KIW_PERR_RDMAP_OP_UNSPEC;
	return KIW_PERR_NONE;
}

static void header_messages_are_one_segment(struct kunit *test)
{
	static const u32 offsets[] = { 0, 1, 28, 0x80000000, 0xffffffff };
	struct kiw_ddp_seg seg = {};
	u32 i, len, bad = 0;

	for (i = 0; i < 12 * 2 * ARRAY_SIZE(offsets); i++) {
		seg.opcode = i % 12;
		seg.last = i / 12 % 2;
		seg.mo = offsets[i / 24];
		for (len = 0; len <= 0xffff; len++) {
			seg.payload_len = len;
			bad += kiw_rdmap_check_size(&seg) != size_oracle(&seg);
		}
	}
	KUNIT_EXPECT_EQ(test, bad, 0U);
}

static void rfc5041_4_3_msn_is_exact(struct kunit *test)
{
	static const u32 msns[] = { 0, 1, 2, 0x7fffffff, 0x80000000, 0xfffffffe, 0xffffffff };
	struct kiw_untagged_rx q = {};
	struct kiw_ddp_seg seg = {};
	int i, j;

	for (i = 0; i < ARRAY_SIZE(msns); i++) {
		for (j = 0; j < ARRAY_SIZE(msns); j++) {
			q.msn = msns[i];
			seg.msn = msns[j];
			KUNIT_EXPECT_EQ(test, kiw_untagged_check(&q, &seg),
					i == j ? KIW_PERR_NONE : KIW_PERR_DDP_MSN);
		}
	}
}

static void rfc5041_7_1_mo_is_in_sequence(struct kunit *test)
{
	struct kiw_untagged_rx q = { .msn = 5, .mo = 1000 };
	struct kiw_ddp_seg seg = { .msn = 5, .payload_len = 10 };

	seg.mo = 999;
	KUNIT_EXPECT_EQ(test, kiw_untagged_check(&q, &seg), KIW_PERR_DDP_MO);
	seg.mo = 1001;
	KUNIT_EXPECT_EQ(test, kiw_untagged_check(&q, &seg), KIW_PERR_DDP_MO);
	seg.mo = 0;
	KUNIT_EXPECT_EQ(test, kiw_untagged_check(&q, &seg), KIW_PERR_DDP_MO);
	seg.msn = 6;
	KUNIT_EXPECT_EQ(test, kiw_untagged_check(&q, &seg), KIW_PERR_DDP_MSN);
	seg.msn = 5;
	seg.mo = 1000;
	KUNIT_EXPECT_EQ(test, kiw_untagged_check(&q, &seg), KIW_PERR_NONE);
}

/* RFC 5041 7.1: the sum of offset and length */
static void message_of_4g_is_refused(struct kunit *test)
{
	struct kiw_untagged_rx q = { .msn = 1 };
	struct kiw_ddp_seg seg = { .msn = 1 };

	q.mo = 0xffff0000;
	seg.mo = q.mo;
	seg.payload_len = 0xffff;
	KUNIT_EXPECT_EQ(test, kiw_untagged_check(&q, &seg), KIW_PERR_NONE);
	q.mo++;
	seg.mo++;
	KUNIT_EXPECT_EQ(test, kiw_untagged_check(&q, &seg), KIW_PERR_DDP_TOO_LONG);
	q.mo = 0xffffffff;
	seg.mo = q.mo;
	seg.payload_len = 1;
	KUNIT_EXPECT_EQ(test, kiw_untagged_check(&q, &seg), KIW_PERR_DDP_TOO_LONG);
	seg.payload_len = 0;
	KUNIT_EXPECT_EQ(test, kiw_untagged_check(&q, &seg), KIW_PERR_NONE);
}

/* Messages of three segments, one of them empty, across the wrap of the MSN */
static void rfc5041_4_3_msn_wraps_to_0(struct kunit *test)
{
	static const u16 lens[] = { 1000, 0, 65535 };
	struct kiw_untagged_rx q = { .msn = 0xfffffffd };
	struct kiw_ddp_seg seg = {};
	u32 msn, mo;
	int i;

	for (msn = 0xfffffffd; msn != 4; msn++) {
		for (i = 0, mo = 0; i < ARRAY_SIZE(lens); i++, mo += lens[i - 1]) {
			seg.msn = msn;
			seg.mo = mo;
			seg.payload_len = lens[i];
			seg.last = i == ARRAY_SIZE(lens) - 1;
			KUNIT_ASSERT_EQ(test, q.mo, mo);
			KUNIT_ASSERT_EQ(test, kiw_untagged_check(&q, &seg), KIW_PERR_NONE);
			kiw_untagged_advance(&q, &seg);
		}
		KUNIT_ASSERT_EQ(test, q.msn, msn + 1);
		KUNIT_ASSERT_EQ(test, q.mo, 0U);
		KUNIT_ASSERT_EQ(test, kiw_untagged_check(&q, &seg), KIW_PERR_DDP_MSN);
	}
}

static struct kunit_case rdmap_cases[] = {
	KUNIT_CASE(rfc5040_figure_4),
	KUNIT_CASE(rfc5040_figure_4_queues),
	KUNIT_CASE(rfc5040_4_4_read_request),
	KUNIT_CASE(read_request_extremes),
	KUNIT_CASE(header_messages_are_one_segment),
	KUNIT_CASE(rfc5041_4_3_msn_is_exact),
	KUNIT_CASE(rfc5041_7_1_mo_is_in_sequence),
	KUNIT_CASE(message_of_4g_is_refused),
	KUNIT_CASE(rfc5041_4_3_msn_wraps_to_0),
	{}
};

static struct kunit_suite rdmap_suite = {
	.name = "kiwarp_rdmap",
	.test_cases = rdmap_cases,
};

kunit_test_suite(rdmap_suite);
