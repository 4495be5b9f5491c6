// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* The pieces of a receive of kiwarp_ip, for every Receive MTU and number of SGEs. */
#include "proto/rxplan.c"

#include "util.h"

static void a_large_receive_has_no_large_piece(struct kunit *test)
{
	static const u32 expected[] = { 4096, 4096, 8192, 16384, 32768 };
	struct kip_rxplan plan;

	KUNIT_ASSERT_TRUE(test, kip_rxplan_make(&plan, 65524, 6));
	KUNIT_ASSERT_EQ(test, plan.nr, 5U);
	KUNIT_EXPECT_MEMEQ(test, plan.size, expected, sizeof(expected));
	KUNIT_EXPECT_EQ(test, kip_rxplan_bytes(&plan), 65792U);
	/* As cards with 4 SGEs have it */
	KUNIT_ASSERT_TRUE(test, kip_rxplan_make(&plan, 65524, 4));
	KUNIT_ASSERT_EQ(test, plan.nr, 3U);
	KUNIT_EXPECT_EQ(test, plan.size[2], 32768U);
	KUNIT_EXPECT_EQ(test, plan.size[0], 16384U);
}

static void every_plan_holds_the_message(struct kunit *test)
{
	struct kip_rxplan plan;
	u32 mtu, sge, i;

	for (sge = 0; sge < 12; sge++) {
		for (mtu = 1; mtu <= 65524; mtu += mtu < 600 ? 1 : 61) {
			const bool can = kip_rxplan_make(&plan, mtu, sge);

			KUNIT_ASSERT_EQ(test, can, sge >= 2 || (sge && mtu <= KIP_RX_HEAD));
			if (!can)
				continue;
			KUNIT_ASSERT_LT(test, plan.nr, sge);
			KUNIT_ASSERT_LE(test, plan.nr, (u32)KIP_RX_PIECES);
			KUNIT_ASSERT_GE(test, kip_rxplan_bytes(&plan), mtu);
			/* The largest piece is needed */
			if (plan.nr)
				KUNIT_ASSERT_LT(test, kip_rxplan_bytes(&plan) -
						plan.size[plan.nr - 1], mtu);
			for (i = 1; i < plan.nr; i++)
				KUNIT_ASSERT_GE(test, plan.size[i], plan.size[i - 1]);
		}
	}
}

static void a_piece_can_be_filled(struct kunit *test)
{
	struct kip_rxplan plan;
	u32 size;

	for (size = KIP_RX_PIECE_MIN; size <= 32768; size <<= 1) {
		KUNIT_ASSERT_TRUE(test, kip_rxplan_make(&plan, KIP_RX_HEAD + size, 2));
		KUNIT_ASSERT_EQ(test, plan.nr, 1U);
		KUNIT_EXPECT_EQ(test, plan.size[0], size);
	}
}

static struct kunit_case cases[] = {
	KUNIT_CASE(a_large_receive_has_no_large_piece),
	KUNIT_CASE(every_plan_holds_the_message),
	KUNIT_CASE(a_piece_can_be_filled),
	{ }
};

static struct kunit_suite suite = {
	.name = "kiwarp_ip_rxplan",
	.test_cases = cases,
};

kunit_test_suite(suite);
