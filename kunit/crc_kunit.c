// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The CRC32c of FPDUs: published vectors, comparison with a bit-by-bit reference, and
 * independence of how the data is split into pieces.
 */
#include "proto/crc.h"

#include "util.h"
#include "vectors/fpdu.h"

#define CRC_OFFSET	(KIW_TEST_FIG_SIZE - sizeof(__le32))

/* RFC 3720 B.4: the iSCSI Read (10) command */
static const u8 iscsi_read[48] = {
	0x01, 0xc0, [16] = 0x14, [22] = 0x04, [27] = 0x14, [31] = 0x18, 0x28, [40] = 0x02,
};

static __le32 crc_of(const void *data, u32 len)
{
	return kiw_crc_final(kiw_crc_update(kiw_crc_init(), data, len));
}

/* The polynomial of RFC 3720 12.1 by shift and xor, register reflected */
static u32 reference_crc(const u8 *data, size_t len)
{
	u32 crc = ~0U;
	int bit;

	while (len--) {
		crc ^= *data++;
		for (bit = 0; bit < 8; bit++)
			crc = (crc >> 1) ^ (crc & 1 ? 0x82f63b78 : 0);
	}
	return ~crc;
}

static void expect_wire(struct kunit *test, const u8 *data, u32 len, u32 octets)
{
	const __be32 expected = cpu_to_be32(octets);
	const __le32 crc = crc_of(data, len);

	KUNIT_EXPECT_MEMEQ(test, &crc, &expected, sizeof(crc));
}

static void rfc3720_vectors(struct kunit *test)
{
	u8 data[32];
	int i;

	memset(data, 0, sizeof(data));
	expect_wire(test, data, sizeof(data), 0xaa36918a);
	memset(data, 0xff, sizeof(data));
	expect_wire(test, data, sizeof(data), 0x43aba862);
	for (i = 0; i < 32; i++)
		data[i] = i;
	expect_wire(test, data, sizeof(data), 0x4e79dd46);
	for (i = 0; i < 32; i++)
		data[i] = 31 - i;
	expect_wire(test, data, sizeof(data), 0x5cdb3f11);
	expect_wire(test, iscsi_read, sizeof(iscsi_read), 0x563a96d9);
}

static void rfc5044_figure_5(struct kunit *test)
{
	const __le32 crc = crc_of(kiw_test_fig5, CRC_OFFSET);

	expect_wire(test, kiw_test_fig5, CRC_OFFSET, 0x52239983);
	KUNIT_EXPECT_MEMEQ(test, &crc, kiw_test_fig5 + CRC_OFFSET, sizeof(crc));
}

static void rfc5044_figure_6(struct kunit *test)
{
	const __le32 crc = crc_of(kiw_test_fig6, CRC_OFFSET);

	expect_wire(test, kiw_test_fig6, CRC_OFFSET, 0x84925898);
	KUNIT_EXPECT_MEMEQ(test, &crc, kiw_test_fig6 + CRC_OFFSET, sizeof(crc));
}

/* RFC 5044 4.4: the CRC covers markers, both before the length and inside the ULPDU */
static void marker_is_covered(struct kunit *test)
{
	__le32 crc;

	crc = crc_of(kiw_test_fig5 + 4, CRC_OFFSET - 4);
	KUNIT_EXPECT_NE(test, memcmp(&crc, kiw_test_fig5 + CRC_OFFSET, sizeof(crc)), 0);
	crc = kiw_crc_final(kiw_crc_update(crc32c(~0U, kiw_test_fig6, KIW_TEST_FIG6_MARKER),
					   kiw_test_fig6 + KIW_TEST_FIG6_MARKER + 4,
					   CRC_OFFSET - KIW_TEST_FIG6_MARKER - 4));
	KUNIT_EXPECT_NE(test, memcmp(&crc, kiw_test_fig6 + CRC_OFFSET, sizeof(crc)), 0);
}

static bool holds(const u8 *fpdu)
{
	return kiw_crc_holds(kiw_crc_update(kiw_crc_init(), fpdu, KIW_TEST_FIG_SIZE));
}

static void figures_hold(struct kunit *test)
{
	KUNIT_EXPECT_TRUE(test, holds(kiw_test_fig5));
	KUNIT_EXPECT_TRUE(test, holds(kiw_test_fig6));
}

static void every_single_bit_error_is_seen(struct kunit *test)
{
	u8 fpdu[KIW_TEST_FIG_SIZE];
	__le32 crc;
	int bit;

	for (bit = 0; bit < KIW_TEST_FIG_SIZE * 8; bit++) {
		memcpy(fpdu, kiw_test_fig6, sizeof(fpdu));
		fpdu[bit / 8] ^= 1 << (bit % 8);
		crc = crc_of(fpdu, CRC_OFFSET);
		KUNIT_ASSERT_NE_MSG(test, memcmp(&crc, fpdu + CRC_OFFSET, sizeof(crc)), 0,
				    "bit %d", bit);
		KUNIT_ASSERT_FALSE_MSG(test, holds(fpdu), "bit %d", bit);
	}
}

static void agrees_with_reference(struct kunit *test)
{
	const u32 room = 1024 + 8;
	u8 *data = kunit_kzalloc(test, room, GFP_KERNEL);
	u32 seed = 5044;
	u32 align;
	u32 len;
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, data);
	for (i = 0; i < room; i++)
		data[i] = kiw_test_next(&seed);
	for (len = 0; len <= 1024; len++) {
		align = len % 8;
		KUNIT_ASSERT_EQ_MSG(test, le32_to_cpu(crc_of(data + align, len)),
				    reference_crc(data + align, len), "len %u", len);
	}
}

static void pieces_do_not_matter(struct kunit *test)
{
	const u32 whole = kiw_crc_update(kiw_crc_init(), kiw_test_fig6, CRC_OFFSET);
	u32 crc;
	u32 cut;

	for (cut = 0; cut <= CRC_OFFSET; cut++) {
		crc = kiw_crc_update(kiw_crc_init(), kiw_test_fig6, cut);
		crc = kiw_crc_update(crc, kiw_test_fig6 + cut, CRC_OFFSET - cut);
		KUNIT_EXPECT_EQ_MSG(test, crc, whole, "cut at %u", cut);
	}
	crc = kiw_crc_init();
	for (cut = 0; cut < CRC_OFFSET; cut++)
		crc = kiw_crc_update(crc, kiw_test_fig6 + cut, 1);
	KUNIT_EXPECT_EQ(test, crc, whole);
}

static struct kunit_case crc_cases[] = {
	KUNIT_CASE(rfc3720_vectors),
	KUNIT_CASE(rfc5044_figure_5),
	KUNIT_CASE(rfc5044_figure_6),
	KUNIT_CASE(marker_is_covered),
	KUNIT_CASE(figures_hold),
	KUNIT_CASE(every_single_bit_error_is_seen),
	KUNIT_CASE(agrees_with_reference),
	KUNIT_CASE(pieces_do_not_matter),
	{}
};

static struct kunit_suite crc_suite = {
	.name = "kiwarp_crc",
	.test_cases = crc_cases,
};

kunit_test_suite(crc_suite);
