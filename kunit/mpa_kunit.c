// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Sizes of FPDUs, and finding their ends in a stream that is cut at any place. */
#include "proto/mpa.c"

#include "util.h"
#include "vectors/fpdu.h"

#define SMALLEST_ULPDU	14
#define LARGEST_ULPDU	64768

/* A second reading of RFC 5044 4.1: the smallest multiple of four that holds everything */
static u32 expected_size(u32 ulpdu_len)
{
	u32 size = 0;

	while (size < 2 + ulpdu_len)
		size += 4;
	return size + 4;
}

static void size_is_the_next_multiple_of_four(struct kunit *test)
{
	u32 size = 8;
	u32 len;

	for (len = 0; len <= U16_MAX; len++) {
		while (size < 2 + len + 4)
			size += 4;
		KUNIT_ASSERT_EQ_MSG(test, kiw_mpa_fpdu_size(len), size, "ULPDU %u", len);
		KUNIT_ASSERT_EQ_MSG(test, kiw_mpa_pad(len), size - 6 - len, "ULPDU %u", len);
	}
}

static void size_of_known_fpdus(struct kunit *test)
{
	/* RFC 5044 figures 4, 5 and 6, without their markers */
	KUNIT_EXPECT_EQ(test, kiw_mpa_pad(16), 2);
	KUNIT_EXPECT_EQ(test, kiw_mpa_fpdu_size(16), 24);
	KUNIT_EXPECT_EQ(test, kiw_mpa_pad(KIW_TEST_FIG_ULPDU), 0);
	KUNIT_EXPECT_EQ(test, kiw_mpa_fpdu_size(KIW_TEST_FIG_ULPDU), KIW_TEST_FIG_SIZE - 4);
	KUNIT_EXPECT_EQ(test, kiw_mpa_fpdu_size(SMALLEST_ULPDU), 20);
	KUNIT_EXPECT_EQ(test, kiw_mpa_fpdu_size(LARGEST_ULPDU), 64776);
}

static void mulpdu_is_the_formula_within_its_bounds(struct kunit *test)
{
	s32 formula;
	s32 emss;

	for (emss = 0; emss <= 70000; emss++) {
		formula = emss - (6 + emss % 4);
		if (formula < 128)
			formula = 128;
		if (formula > LARGEST_ULPDU)
			formula = LARGEST_ULPDU;
		KUNIT_ASSERT_EQ_MSG(test, kiw_mpa_mulpdu(emss), formula, "EMSS %d", emss);
	}
	KUNIT_EXPECT_EQ(test, kiw_mpa_mulpdu(1460), 1454);
	KUNIT_EXPECT_EQ(test, kiw_mpa_mulpdu(1448), 1442);
	KUNIT_EXPECT_EQ(test, kiw_mpa_mulpdu(U32_MAX), LARGEST_ULPDU);
}

/* An FPDU of MULPDU fits into a segment, and one octet more would not */
static void full_fpdu_fills_one_segment(struct kunit *test)
{
	u32 mulpdu;
	u32 emss;

	for (emss = 136; emss <= 70000; emss++) {
		mulpdu = kiw_mpa_mulpdu(emss);
		KUNIT_ASSERT_LE_MSG(test, kiw_mpa_fpdu_size(mulpdu), emss, "EMSS %u", emss);
		if (mulpdu == LARGEST_ULPDU)
			continue;
		KUNIT_ASSERT_GT_MSG(test, kiw_mpa_fpdu_size(mulpdu + 1), emss, "EMSS %u", emss);
		if (emss % 4 == 0)
			KUNIT_ASSERT_EQ_MSG(test, kiw_mpa_fpdu_size(mulpdu), emss, "EMSS %u", emss);
	}
}

static void figures_frame(struct kunit *test)
{
	const u32 size = KIW_TEST_FIG_SIZE - 4;
	struct kiw_fpdu fpdu;

	KUNIT_EXPECT_EQ(test, kiw_mpa_frame_rx(kiw_test_fig5 + 4, size, &fpdu), KIW_MPA_RX_READY);
	KUNIT_EXPECT_EQ(test, fpdu.ulpdu_len, KIW_TEST_FIG_ULPDU);
	KUNIT_EXPECT_EQ(test, fpdu.pad, 0);
	KUNIT_EXPECT_EQ(test, fpdu.total, size);
	KUNIT_EXPECT_EQ(test, kiw_mpa_frame_rx(kiw_test_fig6, size - 1, &fpdu), KIW_MPA_RX_MORE);
	KUNIT_EXPECT_EQ(test, fpdu.total, size);
}

/* Every length that a peer can send, followed by too little, enough or too much data */
static void every_length_is_judged(struct kunit *test)
{
	enum kiw_mpa_rx rx;
	struct kiw_fpdu fpdu;
	bool is_bad;
	u8 head[2];
	u32 len;

	for (len = 0; len <= U16_MAX; len++) {
		head[0] = len >> 8;
		head[1] = len;
		is_bad = len < SMALLEST_ULPDU || len > LARGEST_ULPDU;
		rx = kiw_mpa_frame_rx(head, 2, &fpdu);
		KUNIT_ASSERT_EQ_MSG(test, rx, is_bad ? KIW_MPA_RX_BAD : KIW_MPA_RX_MORE,
				    "length %u", len);
		rx = kiw_mpa_frame_rx(head, U32_MAX, &fpdu);
		KUNIT_ASSERT_EQ_MSG(test, rx, is_bad ? KIW_MPA_RX_BAD : KIW_MPA_RX_READY,
				    "length %u", len);
		KUNIT_ASSERT_EQ_MSG(test, fpdu.ulpdu_len, len, "length %u", len);
		KUNIT_ASSERT_EQ_MSG(test, fpdu.total, 2 + len + fpdu.pad + 4, "length %u", len);
		if (is_bad)
			continue;
		rx = kiw_mpa_frame_rx(head, fpdu.total - 1, &fpdu);
		KUNIT_ASSERT_EQ_MSG(test, rx, KIW_MPA_RX_MORE, "length %u", len);
		rx = kiw_mpa_frame_rx(head, fpdu.total, &fpdu);
		KUNIT_ASSERT_EQ_MSG(test, rx, KIW_MPA_RX_READY, "length %u", len);
	}
}

/* While the length field is incomplete, it is not read, and the smallest FPDU is expected */
static void half_a_length_is_not_read(struct kunit *test)
{
	u8 *head = kunit_kzalloc(test, 1, GFP_KERNEL);
	struct kiw_fpdu fpdu;

	KUNIT_ASSERT_NOT_NULL(test, head);
	*head = 0xff;
	KUNIT_EXPECT_EQ(test, kiw_mpa_frame_rx(head, 1, &fpdu), KIW_MPA_RX_MORE);
	KUNIT_EXPECT_EQ(test, fpdu.total, 20);
	KUNIT_EXPECT_EQ(test, kiw_mpa_frame_rx(NULL, 0, &fpdu), KIW_MPA_RX_MORE);
	KUNIT_EXPECT_EQ(test, fpdu.total, 20);
}

/* The ULPDU lengths of the test stream: 14 to 300, then the extremes, then 0 for the end */
static u32 stream_ulpdu(u32 index)
{
	static const u32 tail[] = { LARGEST_ULPDU, SMALLEST_ULPDU, LARGEST_ULPDU - 1, 15, 0 };
	const u32 swept = 300 - SMALLEST_ULPDU + 1;

	return index < swept ? SMALLEST_ULPDU + index : tail[index - swept];
}

/* Writes the stream to @stream, or only measures it. Payload looks like bad lengths. */
static u32 write_stream(u8 *stream)
{
	u32 size = 0;
	u32 len;
	u32 i;

	for (i = 0; (len = stream_ulpdu(i)); i++) {
		if (stream) {
			memset(stream + size, 0xff, expected_size(len));
			stream[size] = len >> 8;
			stream[size + 1] = len;
		}
		size += expected_size(len);
	}
	return size;
}

/*
 * Delivers the stream @step octets at a time to a receiver that consumes each FPDU as soon
 * as it is complete, and expects the FPDUs to end at the right octets.
 */
static void expect_boundaries(struct kunit *test, const u8 *stream, u32 size, u32 step)
{
	u32 total = expected_size(stream_ulpdu(0));
	struct kiw_fpdu fpdu = {};
	enum kiw_mpa_rx rx;
	u32 arrived = 0;
	u32 taken = 0;
	u32 index = 0;

	while (arrived < size) {
		arrived = min(arrived + step, size);
		while ((rx = kiw_mpa_frame_rx(stream + taken, arrived - taken, &fpdu)) ==
		       KIW_MPA_RX_READY) {
			KUNIT_ASSERT_EQ(test, fpdu.ulpdu_len, stream_ulpdu(index));
			KUNIT_ASSERT_EQ(test, fpdu.total, total);
			taken += total;
			index++;
			total = expected_size(stream_ulpdu(index));
		}
		KUNIT_ASSERT_EQ_MSG(test, rx, KIW_MPA_RX_MORE, "octet %u, step %u", arrived, step);
		KUNIT_ASSERT_LT_MSG(test, arrived - taken, total, "octet %u", arrived);
		if (arrived - taken >= 2)
			KUNIT_ASSERT_EQ_MSG(test, fpdu.total, total, "octet %u", arrived);
	}
	KUNIT_EXPECT_EQ(test, taken, size);
	KUNIT_EXPECT_EQ(test, stream_ulpdu(index), 0);
}

static void cuts_do_not_move_boundaries(struct kunit *test)
{
	static const u32 long_steps[] = { 97, 255, 512, 1448, 1460, 4096, 64776, 65536 };
	const u32 size = write_stream(NULL);
	u8 *stream = kunit_kzalloc(test, size, GFP_KERNEL);
	u32 step;
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, stream);
	write_stream(stream);
	for (step = 1; step <= 64; step++)
		expect_boundaries(test, stream, size, step);
	for (i = 0; i < ARRAY_SIZE(long_steps); i++)
		expect_boundaries(test, stream, size, long_steps[i]);
	expect_boundaries(test, stream, size, size);
}

static struct kunit_case mpa_cases[] = {
	KUNIT_CASE(size_is_the_next_multiple_of_four),
	KUNIT_CASE(size_of_known_fpdus),
	KUNIT_CASE(mulpdu_is_the_formula_within_its_bounds),
	KUNIT_CASE(full_fpdu_fills_one_segment),
	KUNIT_CASE(figures_frame),
	KUNIT_CASE(every_length_is_judged),
	KUNIT_CASE(half_a_length_is_not_read),
	KUNIT_CASE(cuts_do_not_move_boundaries),
	{}
};

static struct kunit_suite mpa_suite = {
	.name = "kiwarp_mpa",
	.test_cases = mpa_cases,
};

kunit_test_suite(mpa_suite);
