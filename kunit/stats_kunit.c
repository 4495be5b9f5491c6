// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * What is counted for each kind of fault.
 */
#include "stats.c"

#include "util.h"

static const enum kiw_stat layer_counters[] = {
	KIW_STAT_RX_RDMAP_ERRORS,
	KIW_STAT_RX_DDP_ERRORS,
	KIW_STAT_RX_MPA_ERRORS,
	KIW_STAT_RX_CRC_ERRORS,
};

/* Sum of all counters after a single fault; @layers gets the share of those of layers */
static u64 count_one(struct kunit *test, enum kiw_perr perr, u64 *layers)
{
	struct kiw_stats stats;
	unsigned int i;
	u64 sum = 0;

	KUNIT_ASSERT_EQ(test, kiw_stats_init(&stats), 0);
	kiw_count_fault(&stats, perr);
	for (i = 0; i < KIW_STAT_COUNT; i++)
		sum += kiw_stats_read(&stats, i);
	*layers = 0;
	for (i = 0; i < ARRAY_SIZE(layer_counters); i++)
		*layers += kiw_stats_read(&stats, layer_counters[i]);
	kiw_stats_uninit(&stats);
	return sum;
}

/* It is not the peer's, even if it concerns a segment of the peer. */
static void local_faults_are_not_counted(struct kunit *test)
{
	u64 layers;

	KUNIT_EXPECT_EQ(test, count_one(test, KIW_PERR_RDMAP_CATASTROPHIC, &layers), 0ULL);
	KUNIT_EXPECT_EQ(test, count_one(test, KIW_PERR_DDP_CATASTROPHIC, &layers), 0ULL);
	KUNIT_EXPECT_EQ(test, count_one(test, KIW_PERR_MPA_LOCAL, &layers), 0ULL);
}

static void faults_of_the_peer_are_counted(struct kunit *test)
{
	u64 layers, sum;
	unsigned int i;

	for (i = KIW_PERR_NONE + 1; i < KIW_PERR_COUNT; i++) {
		if (i == KIW_PERR_RDMAP_CATASTROPHIC || i == KIW_PERR_DDP_CATASTROPHIC ||
		    i == KIW_PERR_MPA_LOCAL)
			continue;
		sum = count_one(test, i, &layers);
		KUNIT_EXPECT_EQ(test, layers, 1ULL);
		KUNIT_EXPECT_EQ(test, sum, fault_stats[i] ? 2ULL : 1ULL);
	}
}

static struct kunit_case stats_cases[] = {
	KUNIT_CASE(local_faults_are_not_counted),
	KUNIT_CASE(faults_of_the_peer_are_counted),
	{}
};

static struct kunit_suite stats_suite = {
	.name = "kiwarp_stats",
	.test_cases = stats_cases,
};

kunit_test_suite(stats_suite);
