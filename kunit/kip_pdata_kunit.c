// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Private data of kiwarp_ip: RFC 4755 5.1 and 6, and the extension. */
#include "proto/pdata.c"

#include "util.h"

static const u8 golden[28] = {
	/* RFC 4755 6: reserved, QPN 64755, Receive MTU 65524 */
	0, 0x00, 0xfc, 0xf3, 0x00, 0x00, 0xff, 0xf4,
	'K', 'I', 'P', '1', 1, 0, 0xff, 0xff, 0, 32, 0, 4,
	0x12, 0x34, 0x56, 0x78, 0, 0, 0, 9,
};

static const struct kip_pdata plain = {
	.qpn = 64755, .mtu = 65524, .pkey = 0xffff, .data_receives = 32,
	.control_receives = 4, .instance = 0x12345678, .serial = 9,
};

static void golden_octets(struct kunit *test)
{
	struct kip_wire_pdata wire;
	struct kip_pdata pdata;

	kip_pdata_build(&wire, &plain);
	KUNIT_EXPECT_MEMEQ(test, &wire, golden, sizeof(golden));
	KUNIT_ASSERT_TRUE(test, kip_pdata_parse(&pdata, golden, sizeof(golden)));
	KUNIT_EXPECT_EQ(test, pdata.qpn, plain.qpn);
	KUNIT_EXPECT_EQ(test, pdata.mtu, plain.mtu);
	KUNIT_EXPECT_EQ(test, pdata.pkey, plain.pkey);
	KUNIT_EXPECT_EQ(test, pdata.data_receives, plain.data_receives);
	KUNIT_EXPECT_EQ(test, pdata.control_receives, plain.control_receives);
	KUNIT_EXPECT_EQ(test, pdata.instance, plain.instance);
	KUNIT_EXPECT_EQ(test, pdata.serial, plain.serial);
	KUNIT_EXPECT_EQ(test, kip_pdata_check(&pdata, 0xffff), KIP_REASON_NONE);
}

static void no_shorter_and_any_longer(struct kunit *test)
{
	u8 data[255] = { 0 };
	struct kip_pdata pdata;
	unsigned int len;

	memcpy(data, golden, sizeof(golden));
	memset(data + sizeof(golden), 0xa5, sizeof(data) - sizeof(golden));
	for (len = 0; len <= sizeof(data); len++)
		KUNIT_EXPECT_EQ(test, kip_pdata_parse(&pdata, data, len), len >= sizeof(golden));
}

static void the_reserved_octet_is_ignored(struct kunit *test)
{
	struct kip_pdata pdata;
	u8 data[28];

	memcpy(data, golden, sizeof(data));
	data[0] = 0xff;
	KUNIT_ASSERT_TRUE(test, kip_pdata_parse(&pdata, data, sizeof(data)));
	KUNIT_EXPECT_EQ(test, pdata.qpn, 64755U);
}

static void each_octet_of_the_mark_counts(struct kunit *test)
{
	struct kip_pdata pdata;
	u8 data[28];
	unsigned int i;

	for (i = 8; i <= 12; i++) {
		memcpy(data, golden, sizeof(data));
		data[i] ^= 0x20;
		KUNIT_EXPECT_FALSE(test, kip_pdata_parse(&pdata, data, sizeof(data)));
		KUNIT_EXPECT_EQ(test, pdata.qpn, 0U);
	}
}

static enum kip_reason check_with(const struct kip_pdata *pdata)
{
	return kip_pdata_check(pdata, 0xffff);
}

static void what_cannot_work_has_its_reason(struct kunit *test)
{
	struct kip_pdata p = plain;

	p.qpn = 0;
	KUNIT_EXPECT_EQ(test, check_with(&p), KIP_REASON_FORMAT);
	p.qpn = 0x10000;
	KUNIT_EXPECT_EQ(test, check_with(&p), KIP_REASON_FORMAT);
	p.qpn = 0xffff;
	KUNIT_EXPECT_EQ(test, check_with(&p), KIP_REASON_NONE);
	p.data_receives = 0;
	KUNIT_EXPECT_EQ(test, check_with(&p), KIP_REASON_FORMAT);
	p.data_receives = 1;
	p.control_receives = 3;
	KUNIT_EXPECT_EQ(test, check_with(&p), KIP_REASON_FORMAT);
	p.control_receives = 4;
	p.pkey = 0x8001;
	KUNIT_EXPECT_EQ(test, check_with(&p), KIP_REASON_PKEY);
	p.pkey = 0xffff;
	p.mtu = 1283;
	KUNIT_EXPECT_EQ(test, check_with(&p), KIP_REASON_MTU);
	p.mtu = 1284;
	KUNIT_EXPECT_EQ(test, check_with(&p), KIP_REASON_NONE);
	p.mtu = U32_MAX;
	KUNIT_EXPECT_EQ(test, check_with(&p), KIP_REASON_NONE);
}

static void both_ends_use_the_smaller_mtu(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, kip_pdata_mtu(65524, 16388), 16384U);
	KUNIT_EXPECT_EQ(test, kip_pdata_mtu(16388, 65524), 16384U);
	KUNIT_EXPECT_EQ(test, kip_pdata_mtu(1284, U32_MAX), 1280U);
}

static void a_request_is_newer_across_the_wrap(struct kunit *test)
{
	struct kip_pdata p = plain;
	u32 known;

	for (known = U32_MAX - 4; known != 5; known++) {
		p.serial = known;
		KUNIT_EXPECT_FALSE(test, kip_pdata_is_newer(&p, plain.instance, known));
		KUNIT_EXPECT_TRUE(test, kip_pdata_is_newer(&p, plain.instance + 1, known));
		p.serial = known + 1;
		KUNIT_EXPECT_TRUE(test, kip_pdata_is_newer(&p, plain.instance, known));
		p.serial = known - 1;
		KUNIT_EXPECT_FALSE(test, kip_pdata_is_newer(&p, plain.instance, known));
	}
}

static void every_reason_has_a_name(struct kunit *test)
{
	unsigned int i, j;

	for (i = 0; i < KIP_REASON_COUNT; i++) {
		KUNIT_ASSERT_NOT_NULL(test, kip_reason_name(i));
		for (j = 0; j < i; j++)
			KUNIT_EXPECT_STRNEQ(test, kip_reason_name(i), kip_reason_name(j));
	}
	KUNIT_EXPECT_STREQ(test, kip_reason_name(KIP_REASON_COUNT), "unknown");
	KUNIT_EXPECT_STREQ(test, kip_reason_name(255), "unknown");
}

static struct kunit_case cases[] = {
	KUNIT_CASE(golden_octets),
	KUNIT_CASE(no_shorter_and_any_longer),
	KUNIT_CASE(the_reserved_octet_is_ignored),
	KUNIT_CASE(each_octet_of_the_mark_counts),
	KUNIT_CASE(what_cannot_work_has_its_reason),
	KUNIT_CASE(both_ends_use_the_smaller_mtu),
	KUNIT_CASE(a_request_is_newer_across_the_wrap),
	KUNIT_CASE(every_reason_has_a_name),
	{ }
};

static struct kunit_suite suite = {
	.name = "kiwarp_ip_pdata",
	.test_cases = cases,
};

kunit_test_suite(suite);
