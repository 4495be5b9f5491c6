// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Request and Reply frames: parsed at every length and with every significant octet
 * wrong, and built to the octet. mpa_answer_kunit.c tests the negotiation itself.
 */
#include "proto/mpa_neg.c"

#include "util.h"

#define HDR		20
#define FLAGS		16
#define REV		17
#define PD_HIGH		18
#define PD_LOW		19
#define ROLE		9	/* the octet in which the keys differ */

/* Revisions 1 and 2, the default */
static const struct kiw_mpa_local both = { .rev = 2 };

/* A value that no decoded frame has, to detect fields that were not set */
#define UNSET		0x5a5a

/* RFC 5044 7.1.1: revision 1, C, private data "kiw" */
static const u8 plain_request[] = {
	0x4d, 0x50, 0x41, 0x20, 0x49, 0x44, 0x20, 0x52,
	0x65, 0x71, 0x20, 0x46, 0x72, 0x61, 0x6d, 0x65,
	0x40, 0x01, 0x00, 0x03, 'k', 'i', 'w',
};

/* RFC 6581 6 and 9: revision 2, C, R, S; A, IRD 0x1234; C, D, ORD 0x0567; "no" */
static const u8 enhanced_reply[] = {
	0x4d, 0x50, 0x41, 0x20, 0x49, 0x44, 0x20, 0x52,
	0x65, 0x70, 0x20, 0x46, 0x72, 0x61, 0x6d, 0x65,
	0x70, 0x02, 0x00, 0x06, 0x92, 0x34, 0xc5, 0x67, 'n', 'o',
};

static const struct kiw_mpa_frame enhanced_reply_frame = {
	.rev = 2, .crc = true, .reject = true, .enhanced = true, .p2p = true,
	.rtr = KIW_RTR_WRITE | KIW_RTR_READ, .ird = 0x1234, .ord = 0x0567,
};

/* Parses a copy at the end of its allocation, so that KASAN detects overruns */
static enum kiw_mpa_verdict parse(struct kunit *test, const u8 *buf, size_t len, bool reply,
				  struct kiw_mpa_frame *frame, size_t *need)
{
	u8 *copy = kmalloc(len, GFP_KERNEL);
	enum kiw_mpa_verdict verdict;

	KUNIT_ASSERT_NOT_NULL(test, copy);
	memcpy(copy, buf, len);
	memset(frame, 0xff, sizeof(*frame));
	*need = UNSET;
	verdict = kiw_mpa_parse(copy, len, reply, &both, frame, need);
	kfree(copy);
	return verdict;
}

static void expect_same(struct kunit *test, const struct kiw_mpa_frame *frame,
			const struct kiw_mpa_frame *expected)
{
	KUNIT_EXPECT_EQ(test, frame->rev, expected->rev);
	KUNIT_EXPECT_EQ(test, frame->markers, expected->markers);
	KUNIT_EXPECT_EQ(test, frame->crc, expected->crc);
	KUNIT_EXPECT_EQ(test, frame->reject, expected->reject);
	KUNIT_EXPECT_EQ(test, frame->enhanced, expected->enhanced);
	KUNIT_EXPECT_EQ(test, frame->p2p, expected->p2p);
	KUNIT_EXPECT_EQ(test, frame->rtr, expected->rtr);
	KUNIT_EXPECT_EQ(test, frame->ird, expected->ird);
	KUNIT_EXPECT_EQ(test, frame->ord, expected->ord);
}

static void known_frames_are_read(struct kunit *test)
{
	static const struct kiw_mpa_frame plain = { .rev = 1, .crc = true };
	struct kiw_mpa_frame frame;
	size_t need;

	KUNIT_EXPECT_EQ(test, parse(test, plain_request, sizeof(plain_request), false, &frame,
				    &need), KIW_MPA_OK);
	expect_same(test, &frame, &plain);
	KUNIT_EXPECT_EQ(test, need, sizeof(plain_request));
	KUNIT_EXPECT_EQ(test, frame.pd_offset, 20);
	KUNIT_EXPECT_EQ(test, frame.pd_len, 3);

	KUNIT_EXPECT_EQ(test, parse(test, enhanced_reply, sizeof(enhanced_reply), true, &frame,
				    &need), KIW_MPA_OK);
	expect_same(test, &frame, &enhanced_reply_frame);
	KUNIT_EXPECT_EQ(test, need, sizeof(enhanced_reply));
	KUNIT_EXPECT_EQ(test, frame.pd_offset, 24);
	KUNIT_EXPECT_EQ(test, frame.pd_len, 2);
}

static void known_frames_are_written(struct kunit *test)
{
	static const struct kiw_mpa_frame plain = { .rev = 1, .crc = true };
	u8 buf[KIW_MPA_FRAME_MAX];

	KUNIT_ASSERT_EQ(test, kiw_mpa_build(buf, &plain, false, "kiw", 3), sizeof(plain_request));
	KUNIT_EXPECT_MEMEQ(test, buf, plain_request, sizeof(plain_request));
	KUNIT_ASSERT_EQ(test, kiw_mpa_build(buf, &enhanced_reply_frame, true, "no", 2),
			sizeof(enhanced_reply));
	KUNIT_EXPECT_MEMEQ(test, buf, enhanced_reply, sizeof(enhanced_reply));
}

static void every_truncation_waits(struct kunit *test)
{
	struct kiw_mpa_frame frame;
	size_t need;
	size_t len;

	for (len = 0; len < sizeof(plain_request); len++) {
		KUNIT_EXPECT_EQ_MSG(test, parse(test, plain_request, len, false, &frame, &need),
				    KIW_MPA_MORE, "length %zu", len);
		KUNIT_EXPECT_EQ(test, need, len < HDR ? HDR : sizeof(plain_request));
	}
	for (len = 0; len < sizeof(enhanced_reply); len++) {
		KUNIT_EXPECT_EQ_MSG(test, parse(test, enhanced_reply, len, true, &frame, &need),
				    KIW_MPA_MORE, "length %zu", len);
		KUNIT_EXPECT_EQ(test, need, len < HDR ? HDR : sizeof(enhanced_reply));
	}
}

/* RFC 5044 allows more data from the peer in the same TCP segment */
static void octets_after_the_frame_are_not_its_own(struct kunit *test)
{
	u8 buf[sizeof(enhanced_reply) + 40];
	struct kiw_mpa_frame frame;
	size_t need;
	size_t len;

	memset(buf, 0xff, sizeof(buf));
	memcpy(buf, enhanced_reply, sizeof(enhanced_reply));
	for (len = sizeof(enhanced_reply); len <= sizeof(buf); len++) {
		KUNIT_EXPECT_EQ(test, parse(test, buf, len, true, &frame, &need), KIW_MPA_OK);
		KUNIT_EXPECT_EQ(test, need, sizeof(enhanced_reply));
		KUNIT_EXPECT_EQ(test, frame.pd_len, 2);
		expect_same(test, &frame, &enhanced_reply_frame);
	}
}

/* One octet of the key is wrong: accepted until that octet arrives, refused from then on */
static void expect_bad_key(struct kunit *test, bool reply, size_t octet, u8 flip)
{
	enum kiw_mpa_verdict bad = KIW_MPA_BAD_KEY;
	const bool is_other = octet == ROLE && flip == ('q' ^ 'p');
	enum kiw_mpa_verdict verdict;
	struct kiw_mpa_frame frame;
	u8 buf[HDR] = {};
	size_t need;
	size_t len;

	memcpy(buf, reply ? enhanced_reply : plain_request, HDR);
	buf[octet] ^= flip;
	if (is_other)
		bad = KIW_MPA_WRONG_ROLE;
	for (len = 0; len <= HDR; len++) {
		verdict = kiw_mpa_parse(buf, len, reply, &both, &frame, &need);
		KUNIT_ASSERT_EQ_MSG(test, verdict, len <= octet ? KIW_MPA_MORE : bad,
				    "octet %zu ^ %#x, length %zu", octet, flip, len);
	}
}

static void every_wrong_octet_in_the_key_is_seen_at_once(struct kunit *test)
{
	size_t octet;
	u32 flip;

	for (octet = 0; octet < KIW_MPA_KEY_LEN; octet++)
		for (flip = 1; flip <= U8_MAX; flip++) {
			expect_bad_key(test, false, octet, flip);
			expect_bad_key(test, true, octet, flip);
		}
}

static void wrong_role_is_told_from_noise(struct kunit *test)
{
	struct kiw_mpa_frame frame;
	size_t need;
	size_t len;

	for (len = ROLE + 1; len <= sizeof(plain_request); len++)
		KUNIT_EXPECT_EQ(test, parse(test, plain_request, len, true, &frame, &need),
				KIW_MPA_WRONG_ROLE);
	for (len = ROLE + 1; len <= sizeof(enhanced_reply); len++)
		KUNIT_EXPECT_EQ(test, parse(test, enhanced_reply, len, false, &frame, &need),
				KIW_MPA_WRONG_ROLE);
}

/* RFC 5044 7.1.1 and C.2.1, RFC 6581 10 */
static bool is_read(u32 rev, bool reply, const struct kiw_mpa_local *local)
{
	if (!rev)
		return !reply || local->rdmac;
	if (reply)
		return rev == 1 || rev == 2;
	return rev == 1 || (rev == 2 && local->rev == 2);
}

static void expect_revision(struct kunit *test, u32 rev, bool reply,
			    const struct kiw_mpa_local *local)
{
	enum kiw_mpa_verdict verdict;
	struct kiw_mpa_frame frame;
	u8 buf[HDR] = {};
	size_t need;
	size_t len;

	memcpy(buf, reply ? enhanced_reply : plain_request, HDR);
	buf[FLAGS] = 0;
	buf[REV] = rev;
	buf[PD_LOW] = 0;
	for (len = 0; len <= HDR; len++) {
		verdict = kiw_mpa_parse(buf, len, reply, local, &frame, &need);
		if (len > REV && !is_read(rev, reply, local))
			KUNIT_ASSERT_EQ_MSG(test, verdict, KIW_MPA_BAD_REV, "%u", rev);
		else if (len < HDR)
			KUNIT_ASSERT_EQ_MSG(test, verdict, KIW_MPA_MORE, "%u", rev);
		else
			KUNIT_ASSERT_TRUE(test, verdict == KIW_MPA_OK && frame.rev == rev);
	}
}

static void only_revisions_that_are_spoken_are_read(struct kunit *test)
{
	struct kiw_mpa_local local = {};
	u32 rev;
	u32 i;

	for (i = 0; i < 4; i++) {
		local.rev = 1 + (i & 1);
		local.rdmac = i & 2;
		for (rev = 0; rev <= U8_MAX; rev++) {
			expect_revision(test, rev, false, &local);
			expect_revision(test, rev, true, &local);
		}
	}
}

/* All PD_Lengths, as judged from the fixed part alone */
static void expect_lengths(struct kunit *test, bool reply, u8 flags, u8 rev, u32 smallest)
{
	enum kiw_mpa_verdict verdict;
	struct kiw_mpa_frame frame;
	enum kiw_mpa_verdict good;
	u8 buf[HDR];
	size_t need;
	u32 pd;

	memcpy(buf, reply ? enhanced_reply : plain_request, HDR);
	buf[FLAGS] = flags;
	buf[REV] = rev;
	for (pd = 0; pd <= U16_MAX; pd++) {
		buf[PD_HIGH] = pd >> 8;
		buf[PD_LOW] = pd;
		good = pd ? KIW_MPA_MORE : KIW_MPA_OK;
		verdict = kiw_mpa_parse(buf, HDR, reply, &both, &frame, &need);
		if (pd < smallest || pd > 512) {
			KUNIT_ASSERT_EQ_MSG(test, verdict, KIW_MPA_BAD_LENGTH, "%u", pd);
		} else {
			KUNIT_ASSERT_EQ_MSG(test, verdict, good, "%u", pd);
			KUNIT_ASSERT_EQ_MSG(test, need, HDR + pd, "%u", pd);
		}
	}
}

static void every_pd_length_is_judged(struct kunit *test)
{
	expect_lengths(test, false, 0x00, 1, 0);
	expect_lengths(test, false, 0x00, 2, 0);
	expect_lengths(test, false, 0x10, 1, 0);
	expect_lengths(test, false, 0x10, 2, 4);
	expect_lengths(test, true, 0x00, 1, 0);
	expect_lengths(test, true, 0x00, 2, 0);
	expect_lengths(test, true, 0x10, 1, 0);
	expect_lengths(test, true, 0x10, 2, 4);
}

static void expect_flags(struct kunit *test, bool reply, u8 flags, u8 rev)
{
	struct kiw_mpa_frame frame;
	u8 buf[HDR + 4] = {};
	size_t need;

	memcpy(buf, reply ? enhanced_reply : plain_request, HDR);
	buf[FLAGS] = flags;
	buf[REV] = rev;
	buf[PD_LOW] = 4;
	KUNIT_ASSERT_EQ(test, parse(test, buf, sizeof(buf), reply, &frame, &need), KIW_MPA_OK);
	KUNIT_ASSERT_EQ_MSG(test, frame.markers, flags / 128, "flags %#x", flags);
	KUNIT_ASSERT_EQ_MSG(test, frame.crc, flags / 64 % 2, "flags %#x", flags);
	KUNIT_ASSERT_EQ_MSG(test, frame.reject, reply * (flags / 32 % 2), "flags %#x", flags);
	KUNIT_ASSERT_EQ_MSG(test, frame.enhanced, (rev / 2) * (flags / 16 % 2), "flags %#x", flags);
	KUNIT_ASSERT_EQ_MSG(test, frame.pd_len, frame.enhanced ? 0 : 4, "flags %#x", flags);
	KUNIT_ASSERT_EQ_MSG(test, frame.pd_offset + frame.pd_len, need, "flags %#x", flags);
}

static void every_flags_octet_is_read(struct kunit *test)
{
	u32 flags;

	for (flags = 0; flags <= U8_MAX; flags++) {
		expect_flags(test, false, flags, 0);
		expect_flags(test, false, flags, 1);
		expect_flags(test, false, flags, 2);
		expect_flags(test, true, flags, 1);
		expect_flags(test, true, flags, 2);
	}
}

/* RFC 6581 9 and 9.2, over all values of one of the two words */
static void expect_enhanced(struct kunit *test, u16 ird, u16 ord)
{
	const bool a = ird >= 0x8000;
	u8 buf[sizeof(enhanced_reply)];
	struct kiw_mpa_frame frame;
	size_t need;

	memcpy(buf, enhanced_reply, sizeof(buf));
	buf[HDR] = ird >> 8;
	buf[HDR + 1] = ird;
	buf[HDR + 2] = ord >> 8;
	buf[HDR + 3] = ord;
	KUNIT_ASSERT_EQ(test, kiw_mpa_parse(buf, sizeof(buf), true, &both, &frame, &need),
			KIW_MPA_OK);
	KUNIT_ASSERT_EQ(test, frame.ird, ird % 0x4000);
	KUNIT_ASSERT_EQ(test, frame.ord, ord % 0x4000);
	KUNIT_ASSERT_EQ(test, frame.p2p, a);
	KUNIT_ASSERT_EQ(test, !!(frame.rtr & KIW_RTR_SEND), a && ird / 0x4000 % 2);
	KUNIT_ASSERT_EQ(test, !!(frame.rtr & KIW_RTR_WRITE), a && ord / 0x8000);
	KUNIT_ASSERT_EQ(test, !!(frame.rtr & KIW_RTR_READ), a && ord / 0x4000 % 2);
}

static void every_enhanced_word_is_read(struct kunit *test)
{
	u32 word;

	for (word = 0; word <= U16_MAX; word++) {
		expect_enhanced(test, word, 0);
		expect_enhanced(test, word, 0xffff);
		expect_enhanced(test, 0, word);
		expect_enhanced(test, 0xffff, word);
	}
}

/* Builds a frame from 14 bits: revision, five flags, three RTR kinds, and a few depths */
static void frame_of_bits(u32 bits, bool reply, struct kiw_mpa_frame *frame)
{
	static const u16 depths[] = { 0, 1, 0x3ffe, 0x3fff };

	memset(frame, 0, sizeof(*frame));
	frame->rev = 1 + (bits & 1);
	frame->enhanced = frame->rev == 2 && (bits & 2);
	frame->markers = bits & 4;
	frame->crc = bits & 8;
	frame->reject = reply && (bits & 16);
	if (!frame->enhanced)
		return;
	frame->p2p = bits & 32;
	if (frame->p2p)
		frame->rtr = (bits >> 6) & 7;
	frame->ird = depths[(bits >> 9) & 3];
	frame->ord = depths[(bits >> 11) & 3];
}

static void what_is_written_is_read(struct kunit *test)
{
	struct kiw_mpa_frame frame;
	struct kiw_mpa_frame back;
	u8 buf[KIW_MPA_FRAME_MAX];
	size_t need;
	size_t len;
	u32 bits;

	for (bits = 0; bits < 1 << 14; bits++) {
		frame_of_bits(bits, bits >> 13, &frame);
		len = kiw_mpa_build(buf, &frame, bits >> 13, "ulp", 3);
		KUNIT_ASSERT_EQ(test, len, HDR + (frame.enhanced ? 4 : 0) + 3);
		KUNIT_ASSERT_EQ(test, buf[FLAGS] & 0x0f, 0);
		KUNIT_ASSERT_EQ(test, parse(test, buf, len, bits >> 13, &back, &need), KIW_MPA_OK);
		expect_same(test, &back, &frame);
		KUNIT_ASSERT_MEMEQ(test, buf + back.pd_offset, "ulp", 3);
		KUNIT_ASSERT_EQ(test, back.pd_len, 3);
	}
}

/* Writes nothing beyond the frame; a Request never has R, nor B, C or D without A */
static void nothing_else_is_written(struct kunit *test)
{
	struct kiw_mpa_frame frame = { .rev = 2, .enhanced = true, .reject = true };
	u8 buf[KIW_MPA_FRAME_MAX];
	size_t len;
	size_t i;

	frame.rtr = KIW_RTR_SEND | KIW_RTR_WRITE | KIW_RTR_READ;
	frame.ird = 0xffff;
	frame.ord = 0xffff;
	memset(buf, 0xa5, sizeof(buf));
	len = kiw_mpa_build(buf + 1, &frame, false, NULL, 0);
	KUNIT_ASSERT_EQ(test, len, HDR + 4);
	KUNIT_EXPECT_EQ(test, buf[1 + FLAGS], 0x10);
	KUNIT_EXPECT_MEMEQ(test, buf + 1 + HDR, "\x3f\xff\x3f\xff", 4);
	KUNIT_EXPECT_EQ(test, buf[0], 0xa5);
	for (i = 1 + len; i < sizeof(buf); i++)
		KUNIT_ASSERT_EQ(test, buf[i], 0xa5);
}

static void private_data_has_a_limit(struct kunit *test)
{
	struct kiw_mpa_frame frame = { .rev = 2 };
	struct kiw_mpa_frame back;
	u8 buf[KIW_MPA_FRAME_MAX];
	u8 pdata[512];
	size_t need;
	size_t len;
	u32 limit;
	u32 pd;

	memset(pdata, 0xc3, sizeof(pdata));
	for (pd = 0; pd <= 2 * U16_MAX + 1; pd++) {
		frame.enhanced = pd > U16_MAX;
		limit = frame.enhanced ? 508 : 512;
		len = kiw_mpa_build(buf, &frame, true, pdata, (u16)pd);
		if ((u16)pd > limit) {
			KUNIT_ASSERT_EQ_MSG(test, len, 0, "%u", (u16)pd);
			continue;
		}
		KUNIT_ASSERT_EQ(test, kiw_mpa_parse(buf, len, true, &both, &back, &need),
				KIW_MPA_OK);
		KUNIT_ASSERT_EQ(test, need, len);
		KUNIT_ASSERT_EQ(test, back.pd_len, (u16)pd);
		KUNIT_ASSERT_MEMEQ(test, buf + back.pd_offset, pdata, back.pd_len);
	}
}

static struct kunit_case mpa_neg_cases[] = {
	KUNIT_CASE(known_frames_are_read),
	KUNIT_CASE(known_frames_are_written),
	KUNIT_CASE(every_truncation_waits),
	KUNIT_CASE(octets_after_the_frame_are_not_its_own),
	KUNIT_CASE(every_wrong_octet_in_the_key_is_seen_at_once),
	KUNIT_CASE(wrong_role_is_told_from_noise),
	KUNIT_CASE(only_revisions_that_are_spoken_are_read),
	KUNIT_CASE(every_pd_length_is_judged),
	KUNIT_CASE(every_flags_octet_is_read),
	KUNIT_CASE(every_enhanced_word_is_read),
	KUNIT_CASE(what_is_written_is_read),
	KUNIT_CASE(nothing_else_is_written),
	KUNIT_CASE(private_data_has_a_limit),
	{}
};

static struct kunit_suite mpa_neg_suite = {
	.name = "kiwarp_mpa_neg",
	.test_cases = mpa_neg_cases,
};

kunit_test_suite(mpa_neg_suite);
