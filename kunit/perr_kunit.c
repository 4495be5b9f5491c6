// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The error taxonomy, compared with a second copy of the tables in the RFCs.
 */
#include "proto/perr.c"

#include "util.h"

struct golden {
	enum kiw_perr perr;
	u8 layer;
	u8 etype;
	u8 code;
};

/* RFC 5040 figure 9 */
static const struct golden rfc5040[] = {
	{ KIW_PERR_RDMAP_CATASTROPHIC, 0, 0, 0x00 },
	{ KIW_PERR_RDMAP_STAG, 0, 1, 0x00 },
	{ KIW_PERR_RDMAP_BOUNDS, 0, 1, 0x01 },
	{ KIW_PERR_RDMAP_ACCESS, 0, 1, 0x02 },
	{ KIW_PERR_RDMAP_STAG_ASSOC, 0, 1, 0x03 },
	{ KIW_PERR_RDMAP_TO_WRAP, 0, 1, 0x04 },
	{ KIW_PERR_RDMAP_INVALIDATE, 0, 1, 0x09 },
	{ KIW_PERR_RDMAP_PROT_UNSPEC, 0, 1, 0xff },
	{ KIW_PERR_RDMAP_VERSION, 0, 2, 0x05 },
	{ KIW_PERR_RDMAP_OPCODE, 0, 2, 0x06 },
	{ KIW_PERR_RDMAP_STREAM, 0, 2, 0x07 },
	{ KIW_PERR_RDMAP_GLOBAL, 0, 2, 0x08 },
	{ KIW_PERR_RDMAP_OP_INVALIDATE, 0, 2, 0x09 },
	{ KIW_PERR_RDMAP_OP_UNSPEC, 0, 2, 0xff },
};

/* RFC 5041 7.2 */
static const struct golden rfc5041[] = {
	{ KIW_PERR_DDP_CATASTROPHIC, 1, 0, 0x00 },
	{ KIW_PERR_DDP_STAG, 1, 1, 0x00 },
	{ KIW_PERR_DDP_BOUNDS, 1, 1, 0x01 },
	{ KIW_PERR_DDP_STAG_ASSOC, 1, 1, 0x02 },
	{ KIW_PERR_DDP_TO_WRAP, 1, 1, 0x03 },
	{ KIW_PERR_DDP_TAGGED_VERSION, 1, 1, 0x04 },
	{ KIW_PERR_DDP_QN, 1, 2, 0x01 },
	{ KIW_PERR_DDP_NO_BUFFER, 1, 2, 0x02 },
	{ KIW_PERR_DDP_MSN, 1, 2, 0x03 },
	{ KIW_PERR_DDP_MO, 1, 2, 0x04 },
	{ KIW_PERR_DDP_TOO_LONG, 1, 2, 0x05 },
	{ KIW_PERR_DDP_UNTAGGED_VERSION, 1, 2, 0x06 },
};

/* RFC 5044 8 and RFC 6581 8; 01 and 04 of RFC 5044 are never on the wire */
static const struct golden rfc5044_rfc6581[] = {
	{ KIW_PERR_MPA_CRC, 2, 0, 0x02 },
	{ KIW_PERR_MPA_FRAMING, 2, 0, 0x03 },
	{ KIW_PERR_MPA_LOCAL, 2, 0, 0x05 },
	{ KIW_PERR_MPA_IRD, 2, 0, 0x06 },
	{ KIW_PERR_MPA_RTR, 2, 0, 0x07 },
};

/* RFC 7306 8.2; at the other end it cannot be told from RDMAP_STREAM */
static const struct golden rfc7306 = { KIW_PERR_RDMAP_ALIGN, 0, 2, 0x07 };

static void expect_golden(struct kunit *test, const struct golden *row, size_t rows)
{
	const struct kiw_perr_info *info;

	for (; rows--; row++) {
		info = kiw_perr_info(row->perr);
		KUNIT_EXPECT_EQ(test, info->layer, row->layer);
		KUNIT_EXPECT_EQ(test, info->etype, row->etype);
		KUNIT_EXPECT_EQ(test, info->code, row->code);
		KUNIT_EXPECT_EQ(test, kiw_perr_from_wire(row->layer, row->etype, row->code),
				row->perr);
	}
}

static void rfc5040_figure_9(struct kunit *test)
{
	expect_golden(test, rfc5040, ARRAY_SIZE(rfc5040));
}

static void rfc5041_section_7_2(struct kunit *test)
{
	expect_golden(test, rfc5041, ARRAY_SIZE(rfc5041));
}

static void rfc5044_rfc6581_section_8(struct kunit *test)
{
	expect_golden(test, rfc5044_rfc6581, ARRAY_SIZE(rfc5044_rfc6581));
}

static void rfc7306_section_8_2(struct kunit *test)
{
	const struct kiw_perr_info *info = kiw_perr_info(rfc7306.perr);

	KUNIT_EXPECT_EQ(test, info->layer, rfc7306.layer);
	KUNIT_EXPECT_EQ(test, info->etype, rfc7306.etype);
	KUNIT_EXPECT_EQ(test, info->code, rfc7306.code);
}

static void golden_rows_are_all(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, ARRAY_SIZE(rfc5040) + ARRAY_SIZE(rfc5041) +
			ARRAY_SIZE(rfc5044_rfc6581) + 1, (size_t)KIW_PERR_COUNT - 1);
}

static void rows_are_filled(struct kunit *test)
{
	const struct kiw_perr_info *info;
	unsigned int i;

	for (i = 0; i < KIW_PERR_COUNT; i++) {
		info = kiw_perr_info(i);
		KUNIT_ASSERT_NOT_NULL(test, info);
		KUNIT_ASSERT_NOT_NULL(test, info->text);
		KUNIT_EXPECT_GT(test, strlen(info->text), (size_t)0);
		KUNIT_EXPECT_LT(test, (int)info->wcs, (int)KIW_WCS_COUNT);
		KUNIT_EXPECT_EQ(test, info->wcs == KIW_WCS_SUCCESS, i == KIW_PERR_NONE);
	}
}

static void texts_differ(struct kunit *test)
{
	unsigned int i, j;

	for (i = 0; i < KIW_PERR_COUNT; i++) {
		for (j = 0; j < i; j++)
			KUNIT_EXPECT_STRNEQ(test, kiw_perr_info(i)->text, kiw_perr_info(j)->text);
	}
}

static void wrong_value_has_a_row(struct kunit *test)
{
	const struct kiw_perr_info *fallback = kiw_perr_info(KIW_PERR_RDMAP_CATASTROPHIC);

	KUNIT_EXPECT_PTR_EQ(test, kiw_perr_info(KIW_PERR_COUNT), fallback);
	KUNIT_EXPECT_PTR_EQ(test, kiw_perr_info((enum kiw_perr)-1), fallback);
	KUNIT_EXPECT_PTR_EQ(test, kiw_perr_info((enum kiw_perr)0x7fffffff), fallback);
}

static void hardware_mpa_etype_3(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, kiw_perr_from_wire(2, 3, 0x02), KIW_PERR_MPA_CRC);
	KUNIT_EXPECT_EQ(test, kiw_perr_from_wire(2, 3, 0x07), KIW_PERR_MPA_RTR);
	KUNIT_EXPECT_EQ(test, kiw_perr_from_wire(2, 3, 0x01), KIW_PERR_MPA_LOCAL);
	KUNIT_EXPECT_EQ(test, kiw_perr_from_wire(1, 3, 0x02), KIW_PERR_DDP_CATASTROPHIC);
}

static void unknown_is_unspecific(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, kiw_perr_from_wire(0, 0, 0x77), KIW_PERR_RDMAP_CATASTROPHIC);
	KUNIT_EXPECT_EQ(test, kiw_perr_from_wire(0, 1, 0x05), KIW_PERR_RDMAP_PROT_UNSPEC);
	KUNIT_EXPECT_EQ(test, kiw_perr_from_wire(0, 2, 0x00), KIW_PERR_RDMAP_OP_UNSPEC);
	KUNIT_EXPECT_EQ(test, kiw_perr_from_wire(0, 15, 0xff), KIW_PERR_RDMAP_OP_UNSPEC);
	KUNIT_EXPECT_EQ(test, kiw_perr_from_wire(1, 2, 0x00), KIW_PERR_DDP_CATASTROPHIC);
	KUNIT_EXPECT_EQ(test, kiw_perr_from_wire(1, 0, 0x01), KIW_PERR_DDP_CATASTROPHIC);
	KUNIT_EXPECT_EQ(test, kiw_perr_from_wire(2, 0, 0x04), KIW_PERR_MPA_LOCAL);
	KUNIT_EXPECT_EQ(test, kiw_perr_from_wire(2, 1, 0x02), KIW_PERR_MPA_LOCAL);
	KUNIT_EXPECT_EQ(test, kiw_perr_from_wire(3, 0, 0x00), KIW_PERR_RDMAP_OP_UNSPEC);
	KUNIT_EXPECT_EQ(test, kiw_perr_from_wire(0xff, 0xff, 0xff), KIW_PERR_RDMAP_OP_UNSPEC);
}

/* All 2^16 values on the wire: always an error, of the layer that reported it; unknown: RDMAP */
static void every_wire_value_is_a_fault(struct kunit *test)
{
	unsigned int wire, bad = 0;
	enum kiw_perr perr;
	u8 layer;

	for (wire = 0; wire < 1 << 16; wire++) {
		layer = wire >> 12;
		perr = kiw_perr_from_wire(layer, wire >> 8 & 0xf, wire);
		if (perr == KIW_PERR_NONE || perr >= KIW_PERR_COUNT)
			bad++;
		else if (kiw_perr_info(perr)->layer != (layer > 2 ? 0 : layer))
			bad++;
	}
	KUNIT_EXPECT_EQ(test, bad, 0U);
}

static struct kunit_case perr_cases[] = {
	KUNIT_CASE(rfc5040_figure_9),
	KUNIT_CASE(rfc5041_section_7_2),
	KUNIT_CASE(rfc5044_rfc6581_section_8),
	KUNIT_CASE(rfc7306_section_8_2),
	KUNIT_CASE(golden_rows_are_all),
	KUNIT_CASE(rows_are_filled),
	KUNIT_CASE(texts_differ),
	KUNIT_CASE(wrong_value_has_a_row),
	KUNIT_CASE(hardware_mpa_etype_3),
	KUNIT_CASE(unknown_is_unspecific),
	KUNIT_CASE(every_wire_value_is_a_fault),
	{}
};

static struct kunit_suite perr_suite = {
	.name = "kiwarp_perr",
	.test_cases = perr_cases,
};

kunit_test_suite(perr_suite);
