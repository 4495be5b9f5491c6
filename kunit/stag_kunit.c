// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * STags: the permutation is one-to-one for all indices and several keys, and it
 * hides the order of the table.
 */
#include "proto/stag.c"

#include "util.h"

#define INDICES		0x1000000U

static struct kiw_stag_key random_key(u32 *random)
{
	struct kiw_stag_key key;
	int i;

	for (i = 0; i < ARRAY_SIZE(key.k); i++)
		key.k[i] = kiw_test_next(random);
	return key;
}

/*
 * Counts the indices, of every @step-th, that the inverse does not restore. If all
 * are restored from values below 2^24, no two were mapped to the same value.
 */
static u32 count_lost(const struct kiw_stag_key *key, u32 step)
{
	u32 index, wire, lost = 0;

	for (index = 0; index < INDICES; index += step) {
		wire = kiw_stag_scramble(key, index);
		lost += wire >= INDICES || kiw_stag_unscramble(key, wire) != index;
	}
	return lost;
}

static void all_indices_all_zero_key(struct kunit *test)
{
	static const struct kiw_stag_key zero;

	KUNIT_EXPECT_EQ(test, count_lost(&zero, 1), 0U);
}

static void all_indices_random_key(struct kunit *test)
{
	u32 random = 3;
	struct kiw_stag_key key = random_key(&random);

	KUNIT_EXPECT_EQ(test, count_lost(&key, 1), 0U);
}

static void some_indices_many_keys(struct kunit *test)
{
	struct kiw_stag_key key;
	u32 random = 4;
	int i;

	for (i = 0; i < 100; i++) {
		key = random_key(&random);
		KUNIT_EXPECT_EQ(test, count_lost(&key, 1009), 0U);
	}
}

static void inverse_both_ways(struct kunit *test)
{
	struct kiw_stag_key key;
	u32 random = 5, index;
	int i;

	for (i = 0; i < 1000; i++) {
		key = random_key(&random);
		index = kiw_test_next(&random) % INDICES;
		KUNIT_EXPECT_EQ(test, kiw_stag_scramble(&key, kiw_stag_unscramble(&key, index)),
				index);
	}
}

static void high_bits_are_ignored(struct kunit *test)
{
	u32 random = 6;
	struct kiw_stag_key key = random_key(&random);

	KUNIT_EXPECT_EQ(test, kiw_stag_scramble(&key, 0xff000005), kiw_stag_scramble(&key, 5));
	KUNIT_EXPECT_EQ(test, kiw_stag_unscramble(&key, 0xff000005),
			kiw_stag_unscramble(&key, 5));
}

static void parts_of_a_stag(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, kiw_stag_make(0xabcdef, 0x12), 0xabcdef12U);
	KUNIT_EXPECT_EQ(test, kiw_stag_make(0xffabcdef, 0x12), 0xabcdef12U);
	KUNIT_EXPECT_EQ(test, kiw_stag_index(0xabcdef12), 0xabcdefU);
	KUNIT_EXPECT_EQ(test, kiw_stag_key8(0xabcdef12), (u8)0x12);
	KUNIT_EXPECT_EQ(test, kiw_stag_make(0, 0), 0U);
	KUNIT_EXPECT_EQ(test, kiw_stag_make(0xffffff, 0xff), 0xffffffffU);
}

/* STag 0 is reserved: the table index that maps to it is not used */
static void stag_0_has_one_table_index(struct kunit *test)
{
	u32 random = 7, reserved, index, zero = 0;
	struct kiw_stag_key key = random_key(&random);

	reserved = kiw_stag_unscramble(&key, 0);
	for (index = 0; index < INDICES; index++) {
		if (!kiw_stag_index(kiw_stag_make(kiw_stag_scramble(&key, index), 0)))
			zero += index == reserved ? 1 : 1000;
	}
	KUNIT_EXPECT_EQ(test, zero, 1U);
}

static u32 bits_changed(u32 a, u32 b)
{
	u32 diff = a ^ b, bits = 0;

	for (; diff; diff &= diff - 1)
		bits++;
	return bits;
}

/* One bit of the index or the key changes about half of the 24 bits */
static void avalanche(struct kunit *test)
{
	u32 by_index[24] = {}, by_key[4] = {}, random = 8, index, wire, i, j;
	struct kiw_stag_key key, other;

	for (i = 0; i < 1000; i++) {
		key = random_key(&random);
		index = kiw_test_next(&random) % INDICES;
		wire = kiw_stag_scramble(&key, index);
		for (j = 0; j < 24; j++)
			by_index[j] += bits_changed(wire, kiw_stag_scramble(&key, index ^ 1 << j));
		for (j = 0; j < 4; j++) {
			other = key;
			other.k[j] ^= 1U << i % 32;
			by_key[j] += bits_changed(wire, kiw_stag_scramble(&other, index));
		}
	}
	for (j = 0; j < 24; j++) {
		KUNIT_EXPECT_GT(test, by_index[j], 9000U);
		KUNIT_EXPECT_LT(test, by_index[j], 15000U);
	}
	/* The last round changes one half only */
	for (j = 0; j < 4; j++)
		KUNIT_EXPECT_GT(test, by_key[j], 4000U);
}

/* Adjacent table entries do not have adjacent STags */
static void next_stag_is_not_the_next(struct kunit *test)
{
	u32 random = 9, index, last, wire, near = 0;
	struct kiw_stag_key key = random_key(&random);

	last = kiw_stag_scramble(&key, 0);
	for (index = 1; index < 4096; index++) {
		wire = kiw_stag_scramble(&key, index);
		near += (wire - last + 64) % INDICES <= 128;
		last = wire;
	}
	KUNIT_EXPECT_LE(test, near, 2U);
}

static struct kunit_case stag_cases[] = {
	KUNIT_CASE(all_indices_all_zero_key),
	KUNIT_CASE(all_indices_random_key),
	KUNIT_CASE(some_indices_many_keys),
	KUNIT_CASE(inverse_both_ways),
	KUNIT_CASE(high_bits_are_ignored),
	KUNIT_CASE(parts_of_a_stag),
	KUNIT_CASE(stag_0_has_one_table_index),
	KUNIT_CASE(avalanche),
	KUNIT_CASE(next_stag_is_not_the_next),
	{}
};

static struct kunit_suite stag_suite = {
	.name = "kiwarp_stag",
	.test_cases = stag_cases,
};

kunit_test_suite(stag_suite);
