// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * What is counted for each kind of fault.
 */
#include "stats.c"

#include "util.h"

/* A second copy: what counts a fault of the peer, by its layer and by its kind; 0: nothing */
static const struct {
	enum kiw_perr perr;
	enum kiw_stat layer;
	enum kiw_stat kind;
} counted[] = {
	{ KIW_PERR_RDMAP_STAG, KIW_STAT_RX_RDMAP_ERRORS, KIW_STAT_RX_STAG },
	{ KIW_PERR_RDMAP_BOUNDS, KIW_STAT_RX_RDMAP_ERRORS, KIW_STAT_RX_BOUNDS },
	{ KIW_PERR_RDMAP_ACCESS, KIW_STAT_RX_RDMAP_ERRORS, KIW_STAT_RX_ACCESS },
	{ KIW_PERR_RDMAP_STAG_ASSOC, KIW_STAT_RX_RDMAP_ERRORS, KIW_STAT_RX_STAG_ASSOC },
	{ KIW_PERR_RDMAP_TO_WRAP, KIW_STAT_RX_RDMAP_ERRORS, KIW_STAT_RX_TO_WRAP },
	{ KIW_PERR_RDMAP_INVALIDATE, KIW_STAT_RX_RDMAP_ERRORS, KIW_STAT_RX_INVALIDATE },
	{ KIW_PERR_RDMAP_PROT_UNSPEC, KIW_STAT_RX_RDMAP_ERRORS },
	{ KIW_PERR_RDMAP_VERSION, KIW_STAT_RX_RDMAP_ERRORS, KIW_STAT_RX_VERSION },
	{ KIW_PERR_RDMAP_OPCODE, KIW_STAT_RX_RDMAP_ERRORS, KIW_STAT_RX_OPCODE },
	{ KIW_PERR_RDMAP_STREAM, KIW_STAT_RX_RDMAP_ERRORS, KIW_STAT_RX_RESPONSE },
	{ KIW_PERR_RDMAP_GLOBAL, KIW_STAT_RX_RDMAP_ERRORS },
	{ KIW_PERR_RDMAP_OP_INVALIDATE, KIW_STAT_RX_RDMAP_ERRORS },
	{ KIW_PERR_RDMAP_OP_UNSPEC, KIW_STAT_RX_RDMAP_ERRORS, KIW_STAT_RX_MALFORMED },
	{ KIW_PERR_RDMAP_ALIGN, KIW_STAT_RX_RDMAP_ERRORS, KIW_STAT_RX_ALIGN },
	{ KIW_PERR_DDP_STAG, KIW_STAT_RX_DDP_ERRORS, KIW_STAT_RX_STAG },
	{ KIW_PERR_DDP_BOUNDS, KIW_STAT_RX_DDP_ERRORS, KIW_STAT_RX_BOUNDS },
	{ KIW_PERR_DDP_STAG_ASSOC, KIW_STAT_RX_DDP_ERRORS, KIW_STAT_RX_STAG_ASSOC },
	{ KIW_PERR_DDP_TO_WRAP, KIW_STAT_RX_DDP_ERRORS, KIW_STAT_RX_TO_WRAP },
	{ KIW_PERR_DDP_TAGGED_VERSION, KIW_STAT_RX_DDP_ERRORS, KIW_STAT_RX_VERSION },
	{ KIW_PERR_DDP_QN, KIW_STAT_RX_DDP_ERRORS, KIW_STAT_RX_QN },
	{ KIW_PERR_DDP_NO_BUFFER, KIW_STAT_RX_DDP_ERRORS, KIW_STAT_RX_NO_BUFFER },
	{ KIW_PERR_DDP_MSN, KIW_STAT_RX_DDP_ERRORS, KIW_STAT_RX_MSN },
	{ KIW_PERR_DDP_MO, KIW_STAT_RX_DDP_ERRORS, KIW_STAT_RX_MO },
	{ KIW_PERR_DDP_TOO_LONG, KIW_STAT_RX_DDP_ERRORS, KIW_STAT_RX_TOO_LONG },
	{ KIW_PERR_DDP_UNTAGGED_VERSION, KIW_STAT_RX_DDP_ERRORS, KIW_STAT_RX_VERSION },
	{ KIW_PERR_MPA_CRC, KIW_STAT_RX_CRC_ERRORS },
	{ KIW_PERR_MPA_FRAMING, KIW_STAT_RX_MPA_ERRORS },
	{ KIW_PERR_MPA_IRD, KIW_STAT_RX_MPA_ERRORS },
	{ KIW_PERR_MPA_RTR, KIW_STAT_RX_MPA_ERRORS },
};

/* Does a single fault count once in these two, and nowhere else? */
static void expect_counts(struct kunit *test, enum kiw_perr perr, enum kiw_stat layer,
			  enum kiw_stat kind)
{
	struct kiw_stats stats;
	unsigned int i;
	bool counts;

	KUNIT_ASSERT_EQ(test, kiw_stats_init(&stats), 0);
	kiw_count_fault(&stats, perr);
	for (i = 0; i < KIW_STAT_COUNT; i++) {
		counts = i && (i == layer || i == kind);
		KUNIT_EXPECT_EQ_MSG(test, kiw_stats_read(&stats, i), (u64)counts,
				    "fault %u, counter %u", perr, i);
	}
	kiw_stats_uninit(&stats);
}

/* It is not the peer's, even if it concerns a segment of the peer. */
static void local_faults_are_not_counted(struct kunit *test)
{
	expect_counts(test, KIW_PERR_RDMAP_CATASTROPHIC, 0, 0);
	expect_counts(test, KIW_PERR_DDP_CATASTROPHIC, 0, 0);
	expect_counts(test, KIW_PERR_MPA_LOCAL, 0, 0);
}

static void faults_of_the_peer_are_counted(struct kunit *test)
{
	unsigned int i;

	/* All but NONE and the three above */
	KUNIT_EXPECT_EQ(test, ARRAY_SIZE(counted), (size_t)KIW_PERR_COUNT - 4);
	for (i = 0; i < ARRAY_SIZE(counted); i++)
		expect_counts(test, counted[i].perr, counted[i].layer, counted[i].kind);
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
