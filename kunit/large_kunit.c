// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * When FPDUs may be larger than segments: the announcement to the octet, and every policy with
 * every peer.
 */
#include "proto/large.h"

#include "proto/rdmap.h"
#include "util.h"

/* Documentation/large-fpdus.rst: "kiwarp", 0, 1 */
static const u8 golden[] = {
	0x00, 0x0e, 0xc1, 0x40, 0x00, 0x00, 0x00, 0x01,
	0x6b, 0x69, 0x77, 0x61, 0x72, 0x70, 0x00, 0x01,
};

static void announcement_is_an_empty_write(struct kunit *test)
{
	struct kiw_wire_tagged hdr;
	u8 head[KIW_FPDU_HDR_MAX] = {};
	struct kiw_ddp_seg seg;

	kiw_ddp_encode_tagged(&hdr, KIW_DDP_VERSION_IETF, KIW_RDMAP_WRITE, true, 0, 1,
			      kiw_large_rtr_to(KIW_FPDUS_AUTO));
	KUNIT_EXPECT_MEMEQ(test, &hdr, golden, sizeof(golden));
	memcpy(head, golden, sizeof(golden));
	KUNIT_ASSERT_EQ(test, kiw_ddp_decode(head, 14, KIW_DDP_VERSION_IETF, KIW_RDMAP_OPCODES_5040,
					     &seg), KIW_PERR_NONE);
	KUNIT_EXPECT_TRUE(test, kiw_large_is_announced(&seg));
	/* The STag is that of any peer */
	seg.stag = 0;
	KUNIT_EXPECT_TRUE(test, kiw_large_is_announced(&seg));
}

/* One field after the other, and each bit of the TO, is not that of the announcement */
static void nothing_else_announces(struct kunit *test)
{
	const struct kiw_ddp_seg good = {
		.tagged = true, .last = true, .opcode = KIW_RDMAP_WRITE, .to = KIW_ANNOUNCE_TO,
	};
	struct kiw_ddp_seg seg;
	unsigned int i;

	KUNIT_EXPECT_TRUE(test, kiw_large_is_announced(&good));
	for (i = 0; i < 64; i++) {
		seg = good;
		seg.to ^= 1ULL << i;
		KUNIT_EXPECT_FALSE(test, kiw_large_is_announced(&seg));
	}
	for (i = 1; i < 256; i++) {
		seg = good;
		seg.opcode = i;
		KUNIT_EXPECT_FALSE(test, kiw_large_is_announced(&seg));
	}
	seg = good;
	seg.last = false;
	KUNIT_EXPECT_FALSE(test, kiw_large_is_announced(&seg));
	seg = good;
	seg.payload_len = 1;
	KUNIT_EXPECT_FALSE(test, kiw_large_is_announced(&seg));
}

static void every_policy_with_every_peer(struct kunit *test)
{
	static const struct {
		enum kiw_fpdus fpdus;
		bool is_announced;
		bool is_used;
		bool responder_owes;
	} rows[] = {
		{ KIW_FPDUS_SEGMENT, false, false, false },
		{ KIW_FPDUS_SEGMENT, true,  false, false },
		{ KIW_FPDUS_LARGE,   false, true,  false },
		{ KIW_FPDUS_LARGE,   true,  true,  true },
		{ KIW_FPDUS_AUTO,    false, false, false },
		{ KIW_FPDUS_AUTO,    true,  true,  true },
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		KUNIT_EXPECT_EQ(test, kiw_large_is_used(rows[i].fpdus, rows[i].is_announced),
				rows[i].is_used);
		KUNIT_EXPECT_EQ(test,
				kiw_large_owes(rows[i].fpdus, false, rows[i].is_announced),
				rows[i].responder_owes);
		KUNIT_EXPECT_FALSE(test,
				   kiw_large_owes(rows[i].fpdus, true, rows[i].is_announced));
	}
	KUNIT_EXPECT_EQ(test, kiw_large_rtr_to(KIW_FPDUS_SEGMENT), 0ULL);
	KUNIT_EXPECT_EQ(test, kiw_large_rtr_to(KIW_FPDUS_LARGE), KIW_ANNOUNCE_TO);
}

static struct kunit_case large_cases[] = {
	KUNIT_CASE(announcement_is_an_empty_write),
	KUNIT_CASE(nothing_else_announces),
	KUNIT_CASE(every_policy_with_every_peer),
	{}
};

static struct kunit_suite large_suite = {
	.name = "kiwarp_large",
	.test_cases = large_cases,
};

kunit_test_suite(large_suite);
