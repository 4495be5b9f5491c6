/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Shared by all suites: KUnit macros that Linux 6.1 lacks, and a pseudo-random
 * number generator that gives the same sequence in every run.
 */
#ifndef KIW_KUNIT_UTIL_H
#define KIW_KUNIT_UTIL_H

#include <kunit/test.h>
#include <linux/string.h>
#include <linux/types.h>

/* Since Linux 6.3 */
#ifndef KUNIT_EXPECT_MEMEQ
#define KUNIT_EXPECT_MEMEQ(test, left, right, size) \
	KUNIT_EXPECT_EQ(test, memcmp(left, right, size), 0)
#endif
#ifndef KUNIT_ASSERT_MEMEQ
#define KUNIT_ASSERT_MEMEQ(test, left, right, size) \
	KUNIT_ASSERT_EQ(test, memcmp(left, right, size), 0)
#endif

/*
 * Returns the next number of a fixed pseudo-random sequence; *@state may start at
 * any value. A Weyl sequence with a multiply-xorshift finaliser.
 */
static inline u32 kiw_test_next(u32 *state)
{
	u32 x;

	*state += 0x9e3779b9;
	x = *state;
	x = (x ^ (x >> 16)) * 0x21f0aaad;
	x = (x ^ (x >> 15)) * 0x735a2d97;
	return x ^ (x >> 15);
}

#endif /* KIW_KUNIT_UTIL_H */
