// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Ring sizes and index arithmetic, with counters that wrap at 2^32.
 */
#include "proto/ring.c"

#include "util.h"

#define SIZE_MAX_TESTED	64

/* Tries all powers of two, in 64 bits */
static u32 size_oracle(u32 entries, u32 max)
{
	u64 size;

	for (size = 1; size <= max; size *= 2) {
		if (size >= entries)
			return size;
	}
	return 0;
}

static void size_of_small_rings(struct kunit *test)
{
	u32 entries, max, bad = 0;

	for (entries = 0; entries < 1100; entries++) {
		for (max = 0; max < 1100; max++)
			bad += kiw_ring_size(entries, max) != size_oracle(entries, max);
	}
	KUNIT_EXPECT_EQ(test, bad, 0U);
}

static void size_near_the_powers(struct kunit *test)
{
	u32 entries, max, bad = 0;
	int i, j, di, dj;

	for (i = 0; i < 32; i++) {
		for (j = 0; j < 32; j++) {
			for (di = -2; di <= 2; di++) {
				for (dj = -2; dj <= 2; dj++) {
					entries = (1U << i) + di;
					max = (1U << j) + dj;
					bad += kiw_ring_size(entries, max) !=
					       size_oracle(entries, max);
				}
			}
		}
	}
	KUNIT_EXPECT_EQ(test, bad, 0U);
}

static void size_extremes(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, kiw_ring_size(0, 1), 1U);
	KUNIT_EXPECT_EQ(test, kiw_ring_size(0, 0), 0U);
	KUNIT_EXPECT_EQ(test, kiw_ring_size(1, 0), 0U);
	KUNIT_EXPECT_EQ(test, kiw_ring_size(5, 7), 0U);
	KUNIT_EXPECT_EQ(test, kiw_ring_size(5, 8), 8U);
	KUNIT_EXPECT_EQ(test, kiw_ring_size(0x80000000, 0xffffffff), 0x80000000U);
	KUNIT_EXPECT_EQ(test, kiw_ring_size(0x80000001, 0xffffffff), 0U);
	KUNIT_EXPECT_EQ(test, kiw_ring_size(0xffffffff, 0xffffffff), 0U);
}

/*
 * Fills and empties in random steps across the wrap of both counters; entries
 * must come out in the order they went in.
 */
static void run_fifo(struct kunit *test, u32 size)
{
	u32 slots[SIZE_MAX_TESTED], random = size, step, i;
	u32 put = 0U - 20 * size, get = put;

	for (step = 0; step < 200; step++) {
		for (i = kiw_test_next(&random) % (size + 2); i; i--) {
			if (kiw_ring_full(put, get, size))
				break;
			slots[kiw_ring_slot(put, size)] = put;
			put++;
		}
		KUNIT_ASSERT_LE(test, kiw_ring_used(put, get), size);
		KUNIT_ASSERT_EQ(test, kiw_ring_full(put, get, size),
				kiw_ring_used(put, get) == size);
		for (i = kiw_test_next(&random) % (size + 2); i; i--) {
			if (kiw_ring_empty(put, get))
				break;
			KUNIT_ASSERT_EQ(test, slots[kiw_ring_slot(get, size)], get);
			get++;
		}
		KUNIT_ASSERT_EQ(test, kiw_ring_empty(put, get), !kiw_ring_used(put, get));
	}
	KUNIT_EXPECT_LT(test, get, 0x80000000U);
}

static void fifo_through_the_wrap(struct kunit *test)
{
	u32 size;

	for (size = 1; size <= SIZE_MAX_TESTED; size *= 2)
		run_fifo(test, size);
}

static void slots_go_round_at_2_to_32(struct kunit *test)
{
	u32 size;

	for (size = 1; size; size *= 2) {
		KUNIT_EXPECT_EQ(test, kiw_ring_slot(0xffffffff, size), size - 1);
		KUNIT_EXPECT_EQ(test, kiw_ring_slot(0, size), 0U);
		KUNIT_EXPECT_EQ(test, kiw_ring_used(size / 2, 0U - size / 2), size / 2 * 2);
		KUNIT_EXPECT_TRUE(test, kiw_ring_full(5, 5 - size, size));
		KUNIT_EXPECT_FALSE(test, kiw_ring_full(5, 6 - size, size));
	}
}

static struct kunit_case ring_cases[] = {
	KUNIT_CASE(size_of_small_rings),
	KUNIT_CASE(size_near_the_powers),
	KUNIT_CASE(size_extremes),
	KUNIT_CASE(fifo_through_the_wrap),
	KUNIT_CASE(slots_go_round_at_2_to_32),
	{}
};

static struct kunit_suite ring_suite = {
	.name = "kiwarp_ring",
	.test_cases = ring_cases,
};

kunit_test_suite(ring_suite);
