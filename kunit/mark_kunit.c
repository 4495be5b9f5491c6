// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * MPA markers, compared with a slow reference that implements one sentence of RFC 5044 4.3:
 * before each octet of an FPDU it checks whether a marker is due. The FPDUs are also written
 * piece by piece as the sender does, which must give the same octets, and then parsed as the
 * receiver does. (proto/mpa.c is included by mpa_kunit.c.)
 */
#include "proto/mpa.h"

#include "util.h"

#include <linux/math.h>
#include <linux/minmax.h>
#include <linux/sizes.h>

#include "proto/crc.h"
#include "vectors/fpdu.h"

#define PHASES		512

/* Base of phases at which the 32-bit stream offset soon wraps */
#define NEAR_WRAP	0xfffffe00

/* Size of the largest FPDU, and an upper bound of its number of markers */
#define FPDU_MAX	(64776 + 4 * 130)

/**
 * struct stream - part of one direction of a stream
 * @buf: its octets
 * @origin: stream offset of the first octet
 * @len: number of octets
 * @first: start of the FPDU that is being written, including its marker
 * @length_at: offset of its ULPDU_Length, valid if @has_length
 * @has_length: the ULPDU_Length was written
 */
struct stream {
	u8 *buf;
	u32 origin;
	u32 len;
	u32 first;
	u32 length_at;
	bool has_length;
};

/* The reference */

static void slow_marker(struct stream *s)
{
	u32 at = s->origin + s->len;
	u32 distance = s->has_length ? at - s->length_at : 0;

	if (at % 512)
		return;
	s->buf[s->len++] = 0;
	s->buf[s->len++] = 0;
	s->buf[s->len++] = distance >> 8;
	s->buf[s->len++] = distance;
}

static void slow_octet(struct stream *s, u8 octet)
{
	slow_marker(s);
	if (!s->has_length) {
		s->length_at = s->origin + s->len;
		s->has_length = true;
	}
	s->buf[s->len++] = octet;
}

static void slow_fpdu(struct stream *s, const u8 *ulpdu, u32 ulpdu_len)
{
	u32 octets = 2 + ulpdu_len;
	__le32 crc;
	u32 i;

	s->first = s->len;
	s->has_length = false;
	slow_octet(s, ulpdu_len >> 8);
	slow_octet(s, ulpdu_len);
	for (i = 0; i < ulpdu_len; i++)
		slow_octet(s, ulpdu[i]);
	for (; octets % 4; octets++)
		slow_octet(s, 0);
	slow_marker(s);
	crc = kiw_crc_final(kiw_crc_update(kiw_crc_init(), s->buf + s->first, s->len - s->first));
	for (i = 0; i < 4; i++)
		slow_octet(s, ((const u8 *)&crc)[i]);
}

/* The sender's way */

static void fast_marker(struct stream *s)
{
	struct kiw_wire_marker marker;
	u32 at = s->origin + s->len;

	if (kiw_mpa_to_marker(at))
		return;
	kiw_mpa_marker_encode(&marker, at, s->origin + s->first);
	memcpy(s->buf + s->len, &marker, sizeof(marker));
	s->len += sizeof(marker);
}

static void fast_octets(struct stream *s, const u8 *data, u32 len)
{
	u32 here;

	while (len) {
		fast_marker(s);
		here = min(len, kiw_mpa_to_marker(s->origin + s->len));
		memcpy(s->buf + s->len, data, here);
		s->len += here;
		data += here;
		len -= here;
	}
}

static void fast_fpdu(struct stream *s, const u8 *ulpdu, u32 ulpdu_len)
{
	const u8 head[] = { ulpdu_len >> 8, ulpdu_len };
	const u8 pad[3] = {};
	__le32 crc;

	s->first = s->len;
	fast_octets(s, head, 2);
	fast_octets(s, ulpdu, ulpdu_len);
	fast_octets(s, pad, kiw_mpa_pad(ulpdu_len));
	fast_marker(s);
	crc = kiw_crc_final(kiw_crc_update(kiw_crc_init(), s->buf + s->first, s->len - s->first));
	memcpy(s->buf + s->len, &crc, sizeof(crc));
	s->len += sizeof(crc);
}

/* Every marker of the last FPDU is valid, and flipping any bit that counts makes it invalid */
static u32 wrong_markers(struct stream *s)
{
	const u8 *fpdu = s->buf + s->first;
	u32 start = s->origin + s->first;
	struct kiw_wire_marker *marker;
	u32 len = s->len - s->first;
	u32 bad = 0;
	u32 at;
	int bit;

	bad += !kiw_mpa_markers_agree(fpdu, len, start);
	for (at = s->first + kiw_mpa_to_marker(start); at < s->len; at += 512) {
		marker = (struct kiw_wire_marker *)(s->buf + at);
		bad += !kiw_mpa_marker_agrees(marker, s->origin + at, start);
		for (bit = 2; bit < 16; bit++) {
			marker->fpduptr ^= cpu_to_be16(1 << bit);
			bad += kiw_mpa_marker_agrees(marker, s->origin + at, start);
			bad += kiw_mpa_markers_agree(fpdu, len, start);
			marker->fpduptr ^= cpu_to_be16(1 << bit);
		}
	}
	return bad;
}

/* Parses the last FPDU as the receiver does: extent, markers, and octets without markers */
static void expect_received(struct kunit *test, struct stream *s, u8 *scratch, const u8 *ulpdu,
			    u32 ulpdu_len)
{
	u32 start = s->origin + s->first;
	u32 total = s->len - s->first;
	struct kiw_fpdu fpdu;
	u32 len;

	KUNIT_ASSERT_EQ(test, kiw_mpa_marked_size(start, kiw_mpa_fpdu_size(ulpdu_len)), total);
	KUNIT_ASSERT_EQ(test, wrong_markers(s), 0U);
	memcpy(scratch, s->buf + s->first, total);
	len = kiw_mpa_strip(scratch, start, total);
	KUNIT_ASSERT_EQ(test, len, kiw_mpa_fpdu_size(ulpdu_len));
	KUNIT_ASSERT_MEMEQ(test, scratch + 2, ulpdu, ulpdu_len);
	KUNIT_ASSERT_MEMEQ(test, scratch + len - 4, s->buf + s->len - 4, 4);
	KUNIT_ASSERT_EQ(test, kiw_mpa_frame_rx_marked(scratch, total - 1, start, &fpdu),
			KIW_MPA_RX_MORE);
	KUNIT_ASSERT_EQ(test, kiw_mpa_frame_rx_marked(scratch, total, start, &fpdu),
			KIW_MPA_RX_READY);
	KUNIT_ASSERT_EQ(test, fpdu.ulpdu_len, ulpdu_len);
	KUNIT_ASSERT_EQ(test, fpdu.total, total);
}

/* Room for two streams and a copy of an FPDU */
static u8 *new_buffer(struct kunit *test, u32 size)
{
	u8 *buf = kunit_kzalloc(test, size, GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, buf);
	return buf;
}

static u8 *random_octets(struct kunit *test, u32 len)
{
	u8 *buf = new_buffer(test, len);
	u32 random = 1;
	u32 i;

	for (i = 0; i < len; i++)
		buf[i] = kiw_test_next(&random);
	return buf;
}

/* Cases */

static void rfc5044_figures_5_and_6(struct kunit *test)
{
	u8 *first = new_buffer(test, 482);
	struct stream slow = { .buf = new_buffer(test, 1024) };
	struct stream fast = { .buf = new_buffer(test, 1024) };

	slow_fpdu(&slow, kiw_test_fig5 + 6, KIW_TEST_FIG_ULPDU);
	fast_fpdu(&fast, kiw_test_fig5 + 6, KIW_TEST_FIG_ULPDU);
	KUNIT_ASSERT_EQ(test, slow.len, KIW_TEST_FIG_SIZE);
	KUNIT_ASSERT_EQ(test, fast.len, KIW_TEST_FIG_SIZE);
	KUNIT_EXPECT_MEMEQ(test, slow.buf, kiw_test_fig5, KIW_TEST_FIG_SIZE);
	KUNIT_EXPECT_MEMEQ(test, fast.buf, kiw_test_fig5, KIW_TEST_FIG_SIZE);

	/* "where the first FPDU [...] had a length of 492 octets" */
	slow.len = 0;
	fast.len = 0;
	slow_fpdu(&slow, first, 482);
	fast_fpdu(&fast, first, 482);
	KUNIT_ASSERT_EQ(test, slow.len, 492);
	KUNIT_ASSERT_EQ(test, fast.len, 492);
	memcpy(first, kiw_test_fig6 + 2, 18);
	memcpy(first + 18, kiw_test_fig6 + 24, 24);
	slow_fpdu(&slow, first, KIW_TEST_FIG_ULPDU);
	fast_fpdu(&fast, first, KIW_TEST_FIG_ULPDU);
	KUNIT_EXPECT_MEMEQ(test, slow.buf + 492, kiw_test_fig6, KIW_TEST_FIG_SIZE);
	KUNIT_EXPECT_MEMEQ(test, fast.buf + 492, kiw_test_fig6, KIW_TEST_FIG_SIZE);
	KUNIT_EXPECT_EQ(test, fast.len, 492 + KIW_TEST_FIG_SIZE);
}

/* RFC 5044 figure 4: a marker after ten octets of the ULPDU */
static void rfc5044_figure_4(struct kunit *test)
{
	u8 *ulpdu = random_octets(test, 16);
	struct stream fast = { .buf = new_buffer(test, 64), .origin = 1024 - 12 };

	fast_fpdu(&fast, ulpdu, 16);
	KUNIT_EXPECT_EQ(test, fast.len, 28);
	KUNIT_EXPECT_MEMEQ(test, fast.buf, "\x00\x10", 2);
	KUNIT_EXPECT_MEMEQ(test, fast.buf + 2, ulpdu, 10);
	KUNIT_EXPECT_MEMEQ(test, fast.buf + 12, "\x00\x00\x00\x0c", 4);
	KUNIT_EXPECT_MEMEQ(test, fast.buf + 16, ulpdu + 10, 6);
	KUNIT_EXPECT_MEMEQ(test, fast.buf + 22, "\x00\x00", 2);
}

static u32 wrong_sizes(u32 offset)
{
	u32 bad = 0;
	u32 octets;
	u32 size;

	for (octets = 0, size = 0; octets < 1700; octets++, size++) {
		bad += kiw_mpa_marked_size(offset, octets) != size;
		if ((offset + size) % 512 == 0)
			size += 4;
	}
	for (octets = 0, size = 0; octets < 1700; octets++) {
		bad += kiw_mpa_unmarked_size(offset, octets) != size;
		size += (offset + octets) % 512 > 3;
	}
	return bad;
}

static void sizes_at_every_phase(struct kunit *test)
{
	u32 phase;

	for (phase = 0; phase < PHASES; phase++) {
		KUNIT_EXPECT_EQ_MSG(test, wrong_sizes(NEAR_WRAP + phase), 0U, "phase %u", phase);
		KUNIT_EXPECT_EQ(test, kiw_mpa_to_marker(phase), phase ? 512 - phase : 0);
		KUNIT_EXPECT_EQ(test, kiw_mpa_to_marker(NEAR_WRAP + phase),
				kiw_mpa_to_marker(phase));
		/* Nothing starts inside a marker. */
		if (phase == 0 || phase > 3)
			KUNIT_EXPECT_EQ_MSG(test, wrong_sizes(phase), 0U, "phase %u", phase);
	}
}

/* Small sizes, before the tail */
#define SWEPT		(1100 - 14)

static u32 size_to_try(u32 index)
{
	static const u32 tail[] = { 1442, 1454, 4096, 8954, 9000, 64767, 64768, 0 };

	return index < SWEPT ? 14 + index : tail[index - SWEPT];
}

/* FPDUs start at every possible place, so a marker falls on each of their boundaries */
static void every_fpdu_at_every_phase(struct kunit *test)
{
	u8 *ulpdu = random_octets(test, 64768);
	u8 *scratch = new_buffer(test, FPDU_MAX);
	struct stream slow = { .buf = new_buffer(test, FPDU_MAX) };
	struct stream fast = { .buf = new_buffer(test, FPDU_MAX) };
	u32 phase, len;
	u32 i;

	for (phase = 0; phase < PHASES; phase += 4) {
		slow.origin = NEAR_WRAP + phase;
		fast.origin = slow.origin;
		/* Every fifth of the small sizes, others at the next phase; all large ones */
		for (i = phase / 4 % 5; (len = size_to_try(i));
		     i = i < SWEPT ? min(i + 5, SWEPT) : i + 1) {
			slow.len = 0;
			fast.len = 0;
			slow_fpdu(&slow, ulpdu, len);
			fast_fpdu(&fast, ulpdu, len);
			KUNIT_ASSERT_EQ_MSG(test, slow.len, fast.len, "%u at %u", len, phase);
			KUNIT_ASSERT_MEMEQ(test, slow.buf, fast.buf, slow.len);
			expect_received(test, &slow, scratch, ulpdu, len);
		}
	}
}

/* Consecutive FPDUs; offsets wrap around in between */
static void random_streams(struct kunit *test)
{
	u8 *ulpdu = random_octets(test, 64768);
	u8 *scratch = new_buffer(test, FPDU_MAX);
	struct stream slow = { .buf = new_buffer(test, SZ_1M) };
	struct stream fast = { .buf = new_buffer(test, SZ_1M) };
	u32 random = 5044;
	u32 round, len;

	for (round = 0; round < 20; round++) {
		slow.len = 0;
		fast.len = 0;
		slow.origin = round ? -((kiw_test_next(&random) % SZ_512K) & ~3) : 0;
		fast.origin = slow.origin;
		while (slow.len < SZ_1M - FPDU_MAX) {
			len = kiw_test_next(&random) % (kiw_test_next(&random) % 16 ? 2000 : 64768);
			len = max(len, 14U);
			slow_fpdu(&slow, ulpdu, len);
			fast_fpdu(&fast, ulpdu, len);
			KUNIT_ASSERT_EQ(test, slow.len, fast.len);
			expect_received(test, &fast, scratch, ulpdu, len);
		}
		KUNIT_ASSERT_MEMEQ(test, slow.buf, fast.buf, slow.len);
	}
}

/* An FPDU arrives octet by octet: checks how much is waited for, and the resulting head */
static void expect_arrival(struct kunit *test, struct stream *s)
{
	u8 head[KIW_FPDU_HDR_MAX + KIW_MARKER_SIZE];
	struct kiw_fpdu fpdu;
	enum kiw_mpa_rx rx;
	u32 len, avail;

	for (avail = 0; avail <= s->len; avail++) {
		len = min_t(u32, avail, sizeof(head));
		memset(head, 0xff, sizeof(head));
		memcpy(head, s->buf, len);
		len = kiw_mpa_strip(head, s->origin, len);
		rx = kiw_mpa_frame_rx_marked(head, avail, s->origin, &fpdu);
		KUNIT_ASSERT_EQ(test, rx, avail < s->len ? KIW_MPA_RX_MORE : KIW_MPA_RX_READY);
		if (len < 2)
			KUNIT_ASSERT_EQ(test, fpdu.total, kiw_mpa_marked_size(s->origin, 20));
		else
			KUNIT_ASSERT_EQ(test, fpdu.total, s->len);
	}
}

static void cut_at_every_octet(struct kunit *test)
{
	u8 *ulpdu = random_octets(test, 600);
	struct stream slow = { .buf = new_buffer(test, 1024) };
	u32 phase;

	for (phase = 0; phase < PHASES; phase += 4) {
		slow.origin = NEAR_WRAP + phase;
		slow.len = 0;
		slow_fpdu(&slow, ulpdu, 14 + phase);
		expect_arrival(test, &slow);
	}
}

static void bad_lengths_are_refused(struct kunit *test)
{
	static const u16 bad[] = { 0, 1, 13, 64769, 65535 };
	struct kiw_fpdu fpdu;
	u8 head[2];
	int i;

	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		head[0] = bad[i] >> 8;
		head[1] = bad[i];
		KUNIT_EXPECT_EQ(test, kiw_mpa_frame_rx_marked(head, 6, 0, &fpdu), KIW_MPA_RX_BAD);
		KUNIT_EXPECT_EQ(test, kiw_mpa_frame_rx_marked(head, 2, 4, &fpdu), KIW_MPA_RX_BAD);
		KUNIT_EXPECT_EQ(test, kiw_mpa_frame_rx_marked(head, 5, 0, &fpdu), KIW_MPA_RX_MORE);
	}
}

/* RFC 5044 4.2: two bits of FPDUPTR are taken as zero. The reserved field is ignored. */
static void reserved_bits_of_a_marker_are_ignored(struct kunit *test)
{
	struct kiw_wire_marker marker;
	int bit;

	kiw_mpa_marker_encode(&marker, 1024, 900);
	KUNIT_EXPECT_EQ(test, be16_to_cpu(marker.fpduptr), 124);
	KUNIT_EXPECT_EQ(test, be16_to_cpu(marker.reserved), 0);
	marker.fpduptr |= cpu_to_be16(3);
	KUNIT_EXPECT_TRUE(test, kiw_mpa_marker_agrees(&marker, 1024, 900));
	KUNIT_EXPECT_FALSE(test, kiw_mpa_marker_agrees(&marker, 1024, 896));
	KUNIT_EXPECT_FALSE(test, kiw_mpa_marker_agrees(&marker, 1024, 1024));

	for (bit = 0; bit < 16; bit++) {
		marker.reserved = cpu_to_be16(1 << bit);
		KUNIT_EXPECT_TRUE(test, kiw_mpa_marker_agrees(&marker, 1024, 900));
	}

	kiw_mpa_marker_encode(&marker, 1024, 512);
	KUNIT_EXPECT_EQ(test, be16_to_cpu(marker.fpduptr), 508);
}

/* RFC 5044 4.5: how much fits into a segment; the formula gives the worst case */
static void expect_segment(struct kunit *test, u32 emss)
{
	const u32 formula = emss - (6 + 4 * DIV_ROUND_UP(emss, 512) + emss % 4);
	const u32 full = emss & ~3;
	u32 least = U32_MAX;
	u32 phase, ulpdu;
	u32 wrong = 0;
	u32 size;

	for (phase = 0; phase < PHASES; phase += 4) {
		ulpdu = kiw_mpa_unmarked_size(phase, full) - 6;
		least = min(least, ulpdu);
		size = kiw_mpa_marked_size(phase, kiw_mpa_fpdu_size(ulpdu));
		/* A marker in the last place would be the next FPDU's. */
		wrong += size != ((phase + full) % 512 == 4 ? full - 4 : full);
		size = kiw_mpa_marked_size(phase, kiw_mpa_fpdu_size(ulpdu + 1));
		wrong += size <= full;
	}
	KUNIT_EXPECT_EQ_MSG(test, wrong, 0U, "EMSS %u", emss);
	/* The formula counts one marker too many if less than a marker lies beyond the last 512. */
	if (emss % 512 > 0 && emss % 512 < 4)
		KUNIT_EXPECT_EQ_MSG(test, least, formula + 4, "EMSS %u", emss);
	else
		KUNIT_EXPECT_EQ_MSG(test, least, formula, "EMSS %u", emss);
}

static void fpdus_fill_segments(struct kunit *test)
{
	u32 emss;

	for (emss = 140; emss < 3100; emss++)
		expect_segment(test, emss);
	for (emss = 8900; emss < 9004; emss++)
		expect_segment(test, emss);
}

static struct kunit_case mark_cases[] = {
	KUNIT_CASE(rfc5044_figures_5_and_6),
	KUNIT_CASE(rfc5044_figure_4),
	KUNIT_CASE(sizes_at_every_phase),
	KUNIT_CASE(every_fpdu_at_every_phase),
	KUNIT_CASE(random_streams),
	KUNIT_CASE(cut_at_every_octet),
	KUNIT_CASE(bad_lengths_are_refused),
	KUNIT_CASE(reserved_bits_of_a_marker_are_ignored),
	KUNIT_CASE(fpdus_fill_segments),
	{}
};

static struct kunit_suite mark_suite = {
	.name = "kiwarp_mark",
	.test_cases = mark_cases,
};

kunit_test_suite(mark_suite);
