// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Link-layer addresses of kiwarp_ip: RFC 4391 4 and 9.1.1, RFC 4755 3.1 and 3.3. */
#include "proto/addr.c"

#include "util.h"

#define ADDR(flags, q1, q2, a, b, c, d) { \
	flags, 0, q1, q2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, a, b, c, d }

static void an_address_is_flags_qpn_and_gid(struct kunit *test)
{
	static const u8 expected[] = ADDR(0x80, 0xfc, 0xf3, 192, 0, 2, 7);
	u8 lladdr[KIP_ADDR_LEN], gid[16];

	kip_addr_gid_of_ipv4(gid, cpu_to_be32(0xc0000207));
	kip_addr_make(lladdr, 0xff00fcf3, gid, KIP_ADDR_RC);
	KUNIT_EXPECT_MEMEQ(test, lladdr, expected, KIP_ADDR_LEN);
	KUNIT_EXPECT_EQ(test, kip_addr_qpn(lladdr), 64755U);
	KUNIT_EXPECT_TRUE(test, kip_addr_is_ipv4(lladdr));
	KUNIT_EXPECT_EQ(test, be32_to_cpu(kip_addr_ipv4(lladdr)), 0xc0000207U);
	KUNIT_EXPECT_TRUE(test, kip_addr_has_rc(lladdr));
	KUNIT_EXPECT_FALSE(test, kip_addr_is_multicast(lladdr));
}

/* RFC 4755 3.1: other flag bits are ignored; 3.3: comparisons ignore all flags */
static void no_flag_tells_two_addresses_apart(struct kunit *test)
{
	u8 a[] = ADDR(0, 0xfc, 0xf3, 10, 0, 0, 1), b[KIP_ADDR_LEN], key[KIP_ADDR_LEN];
	unsigned int flags;

	for (flags = 0; flags < 256; flags++) {
		memcpy(b, a, sizeof(b));
		b[0] = flags;
		KUNIT_EXPECT_TRUE(test, kip_addr_same(a, b));
		KUNIT_EXPECT_EQ(test, kip_addr_has_rc(b), flags >= 0x80);
		KUNIT_EXPECT_TRUE(test, kip_addr_is_valid(b));
		kip_addr_key(key, b);
		KUNIT_EXPECT_MEMEQ(test, key, a, KIP_ADDR_LEN);
	}
}

static void the_most_significant_octet_decides(struct kunit *test)
{
	u8 a[KIP_ADDR_LEN], b[KIP_ADDR_LEN];
	unsigned int i, j;

	for (i = 1; i < KIP_ADDR_LEN; i++) {
		memset(a, 0x7f, sizeof(a));
		memset(b, 0x7f, sizeof(b));
		b[i] = 0x80;
		for (j = i + 1; j < KIP_ADDR_LEN; j++)
			b[j] = 0;
		KUNIT_EXPECT_LT(test, kip_addr_compare(a, b), 0);
		KUNIT_EXPECT_GT(test, kip_addr_compare(b, a), 0);
		KUNIT_EXPECT_FALSE(test, kip_addr_same(a, b));
	}
	KUNIT_EXPECT_EQ(test, kip_addr_compare(a, a), 0);
}

static void a_gid_is_same_whatever_the_qpn(struct kunit *test)
{
	u8 a[KIP_ADDR_LEN], b[KIP_ADDR_LEN];
	unsigned int i;

	for (i = 0; i < KIP_ADDR_LEN; i++) {
		memset(a, 0x7f, sizeof(a));
		memset(b, 0x7f, sizeof(b));
		b[i] = 0x80;
		KUNIT_EXPECT_EQ(test, kip_addr_same_gid(a, b), i < 4);
	}
}

struct validity {
	u8 lladdr[KIP_ADDR_LEN];
	bool is_valid;
};

static void only_addresses_that_can_be_reached_are_valid(struct kunit *test)
{
	static const struct validity cases[] = {
		{ ADDR(0x80, 0xfc, 0xf3, 10, 0, 0, 1), true },
		{ ADDR(0x80, 0, 1, 223, 255, 255, 255), true },
		{ ADDR(0x80, 0, 0, 10, 0, 0, 1), false },
		{ ADDR(0x80, 0xfc, 0xf3, 0, 0, 0, 1), false },
		{ ADDR(0x80, 0xfc, 0xf3, 127, 0, 0, 1), false },
		{ ADDR(0x80, 0xfc, 0xf3, 224, 0, 0, 1), false },
		{ ADDR(0x80, 0xfc, 0xf3, 255, 255, 255, 255), false },
		{ { 0x80, 1, 0xfc, 0xf3, [14] = 0xff, 0xff, 10, 0, 0, 1 }, false },
		{ { 0x80, 0, 0xfc, 0xf3, 0x20, 0x01, 0x0d, 0xb8, [19] = 1 }, true },
		{ { 0x80, 0, 0xfc, 0xf3, 0x3f, 0xff, [19] = 1 }, true },
		{ { 0x80, 0, 0xfc, 0xf3, 0x40, 0, [19] = 1 }, false },
		{ { 0x80, 0, 0xfc, 0xf3, 0xfd, 0x77, [19] = 1 }, true },
		{ { 0x80, 0, 0xfc, 0xf3, 0xfe, 0x80, [19] = 1 }, false },
		{ { 0x80, 0, 0xfc, 0xf3, 0xff, 0x12, [19] = 1 }, false },
		{ { 0x80, 0, 0xfc, 0xf3, [19] = 1 }, false },
		{ { 0 }, false },
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(cases); i++)
		KUNIT_EXPECT_EQ_MSG(test, kip_addr_is_valid(cases[i].lladdr),
				    cases[i].is_valid, "case %u", i);
}

/* RFC 4391 4, figure 2: 80 zero bits, except for the P_Key, and 32 one bits */
static void the_broadcast_address_is_that_of_the_partition(struct kunit *test)
{
	static const u8 expected[KIP_ADDR_LEN] = {
		0x00, 0xff, 0xff, 0xff, 0xff, 0x12, 0x40, 0x1b, 0x81, 0x23,
		[16] = 0xff, 0xff, 0xff, 0xff,
	};
	u8 lladdr[KIP_ADDR_LEN];

	kip_addr_broadcast(lladdr, 0x0123);
	KUNIT_EXPECT_MEMEQ(test, lladdr, expected, KIP_ADDR_LEN);
	KUNIT_EXPECT_TRUE(test, kip_addr_is_multicast(lladdr));
	KUNIT_EXPECT_FALSE(test, kip_addr_is_valid(lladdr));
}

static struct kunit_case cases[] = {
	KUNIT_CASE(an_address_is_flags_qpn_and_gid),
	KUNIT_CASE(no_flag_tells_two_addresses_apart),
	KUNIT_CASE(the_most_significant_octet_decides),
	KUNIT_CASE(a_gid_is_same_whatever_the_qpn),
	KUNIT_CASE(only_addresses_that_can_be_reached_are_valid),
	KUNIT_CASE(the_broadcast_address_is_that_of_the_partition),
	{ }
};

static struct kunit_suite suite = {
	.name = "kiwarp_ip_addr",
	.test_cases = cases,
};

kunit_test_suite(suite);
