// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The Terminate of an initiator that cannot use a Reply, checked to the octet: with and
 * without CRC, marker and version 0.
 */
#include "proto/term_first.c"

#include "util.h"

/* RFC 5041 4.3, RFC 5040 4.8: L, DV 1; RV 1, Terminate; queue 2, MSN 1; LLP, MPA, code 6 */
static const u8 plain[] = {
	0x00, 0x16, 0x41, 0x47, 0x00, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x02, 0x00, 0x00, 0x00, 0x01,
	0x00, 0x00, 0x00, 0x00, 0x20, 0x06, 0x00, 0x00,
};

/* Bitwise CRC32c, RFC 5044 4.4: shares no code with the kernel's */
static u32 slow_crc(const u8 *buf, size_t len)
{
	u32 crc = ~0U;
	int bit;

	while (len--) {
		crc ^= *buf++;
		for (bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78 : 0);
	}
	return ~crc;
}

static void expect_fpdu(struct kunit *test, const struct kiw_mpa_outcome *agreed)
{
	size_t marker = agreed->tx_markers ? 4 : 0;
	u8 expected[sizeof(plain)];
	u8 buf[KIW_TERM_FIRST_MAX];
	u8 *crc_field;
	u32 crc = 0;

	memcpy(expected, plain, sizeof(plain));
	if (!agreed->version) {
		expected[2] = 0x40;
		expected[3] = 0x07;
	}
	memset(buf, 0xa5, sizeof(buf));
	KUNIT_ASSERT_EQ(test, kiw_term_first(buf, KIW_PERR_MPA_IRD, agreed),
			marker + sizeof(plain) + 4);
	KUNIT_EXPECT_MEMEQ(test, buf, "\0\0\0\0", marker);
	KUNIT_EXPECT_MEMEQ(test, buf + marker, expected, sizeof(plain));
	if (agreed->crc)
		crc = slow_crc(buf, marker + sizeof(plain));
	crc_field = buf + marker + sizeof(plain);
	KUNIT_EXPECT_EQ(test, crc_field[0] | crc_field[1] << 8 | crc_field[2] << 16 |
			(u32)crc_field[3] << 24, crc);
}

static void every_agreement_is_kept(struct kunit *test)
{
	struct kiw_mpa_outcome agreed = {};
	u32 i;

	for (i = 0; i < 8; i++) {
		agreed.crc = i & 1;
		agreed.tx_markers = i & 2;
		agreed.version = i >> 2;
		expect_fpdu(test, &agreed);
	}
}

static void every_reason_has_its_code(struct kunit *test)
{
	static const struct {
		enum kiw_perr perr;
		u8 code;
	} rows[] = {
		{ KIW_PERR_MPA_LOCAL, 5 }, { KIW_PERR_MPA_IRD, 6 }, { KIW_PERR_MPA_RTR, 7 },
	};
	struct kiw_mpa_outcome agreed = { .version = 1 };
	u8 buf[KIW_TERM_FIRST_MAX];
	int i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		kiw_term_first(buf, rows[i].perr, &agreed);
		KUNIT_EXPECT_EQ(test, buf[20], 0x20);
		KUNIT_EXPECT_EQ(test, buf[21], rows[i].code);
	}
}

static struct kunit_case term_first_cases[] = {
	KUNIT_CASE(every_agreement_is_kept),
	KUNIT_CASE(every_reason_has_its_code),
	{}
};

static struct kunit_suite term_first_suite = {
	.name = "kiwarp_term_first",
	.test_cases = term_first_cases,
};

kunit_test_suite(term_first_suite);
