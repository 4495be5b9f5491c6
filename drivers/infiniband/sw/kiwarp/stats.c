// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Counters of a device.
 *
 * Owns: the per-CPU arrays. Counting is a this_cpu_add(), in any context and without a lock.
 * Reading adds up the arrays and may miss concurrent increments. verbs/verbs_dev.c exports the
 * counters to user space, and monitor_sysfs.c sums of some of them.
 */
#include "stats.h"

#include <linux/build_bug.h>
#include <linux/cpumask.h>
#include <linux/errno.h>

/* kiw_count_failed() converts from one list to the other. */
#define STATS_SAME_PLACE(status) \
	static_assert(KIW_STAT_WC_##status - KIW_STAT_WC_LOC_LEN == \
		      KIW_WCS_##status - KIW_WCS_LOC_LEN)

STATS_SAME_PLACE(LOC_PROT);
STATS_SAME_PLACE(LOC_QP_OP);
STATS_SAME_PLACE(FLUSHED);
STATS_SAME_PLACE(BAD_RESP);
STATS_SAME_PLACE(REM_ACCESS);
STATS_SAME_PLACE(REM_INV_REQ);
STATS_SAME_PLACE(REM_OP);
STATS_SAME_PLACE(MEM_OP);
STATS_SAME_PLACE(GENERAL);
static_assert(KIW_WCS_COUNT - KIW_WCS_GENERAL == 1);

/* Counter for the kind of a fault, whichever layer detects it; 0: none, see kiw_count_fault() */
static const enum kiw_stat fault_stats[KIW_PERR_COUNT] = {
	[KIW_PERR_RDMAP_STAG]		= KIW_STAT_RX_STAG,
	[KIW_PERR_DDP_STAG]		= KIW_STAT_RX_STAG,
	[KIW_PERR_RDMAP_STAG_ASSOC]	= KIW_STAT_RX_STAG_ASSOC,
	[KIW_PERR_DDP_STAG_ASSOC]	= KIW_STAT_RX_STAG_ASSOC,
	[KIW_PERR_RDMAP_BOUNDS]		= KIW_STAT_RX_BOUNDS,
	[KIW_PERR_DDP_BOUNDS]		= KIW_STAT_RX_BOUNDS,
	[KIW_PERR_RDMAP_TO_WRAP]	= KIW_STAT_RX_TO_WRAP,
	[KIW_PERR_DDP_TO_WRAP]		= KIW_STAT_RX_TO_WRAP,
	[KIW_PERR_RDMAP_ACCESS]		= KIW_STAT_RX_ACCESS,
	[KIW_PERR_RDMAP_INVALIDATE]	= KIW_STAT_RX_INVALIDATE,
	[KIW_PERR_RDMAP_VERSION]	= KIW_STAT_RX_VERSION,
	[KIW_PERR_DDP_TAGGED_VERSION]	= KIW_STAT_RX_VERSION,
	[KIW_PERR_DDP_UNTAGGED_VERSION]	= KIW_STAT_RX_VERSION,
	[KIW_PERR_RDMAP_OPCODE]		= KIW_STAT_RX_OPCODE,
	[KIW_PERR_RDMAP_STREAM]		= KIW_STAT_RX_RESPONSE,
	[KIW_PERR_RDMAP_OP_UNSPEC]	= KIW_STAT_RX_MALFORMED,
	[KIW_PERR_RDMAP_ALIGN]		= KIW_STAT_RX_ALIGN,
	[KIW_PERR_DDP_QN]		= KIW_STAT_RX_QN,
	[KIW_PERR_DDP_MSN]		= KIW_STAT_RX_MSN,
	[KIW_PERR_DDP_MO]		= KIW_STAT_RX_MO,
	[KIW_PERR_DDP_TOO_LONG]		= KIW_STAT_RX_TOO_LONG,
	[KIW_PERR_DDP_NO_BUFFER]	= KIW_STAT_RX_NO_BUFFER,
};

static const enum kiw_stat layer_stats[] = {
	[KIW_LAYER_RDMAP]	= KIW_STAT_RX_RDMAP_ERRORS,
	[KIW_LAYER_DDP]		= KIW_STAT_RX_DDP_ERRORS,
	[KIW_LAYER_LLP]		= KIW_STAT_RX_MPA_ERRORS,
};

/**
 * kiw_stats_init() - allocate a device's counters, all zero
 * @stats: the counters
 *
 * Context: process, may sleep.
 * Return: 0 or -ENOMEM. Undone by kiw_stats_uninit().
 */
int kiw_stats_init(struct kiw_stats *stats)
{
	stats->pcpu = __alloc_percpu(KIW_STAT_COUNT * sizeof(u64), __alignof__(u64));
	return stats->pcpu ? 0 : -ENOMEM;
}

/**
 * kiw_stats_uninit() - free a device's counters
 * @stats: no longer in use; may be zeroed and never initialized
 *
 * Context: process.
 */
void kiw_stats_uninit(struct kiw_stats *stats)
{
	free_percpu(stats->pcpu);
	stats->pcpu = NULL;
}

/**
 * kiw_stats_read() - read a counter
 * @stats: the device's counters
 * @stat: the counter
 *
 * Context: any.
 * Return: the sum over all possible CPUs.
 */
u64 kiw_stats_read(const struct kiw_stats *stats, enum kiw_stat stat)
{
	u64 sum = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		sum += READ_ONCE(per_cpu_ptr(stats->pcpu, cpu)[stat]);
	return sum;
}

/**
 * kiw_count_fault() - count a fault, if it is the peer's
 * @stats: the device's counters
 * @perr: the fault, in a segment of the peer
 *
 * Counts CRC errors in their own counter, and any other fault by its layer and, if its kind has a
 * counter, by its kind. A local catastrophic error is not the peer's, whatever the segment is.
 *
 * Context: any.
 */
void kiw_count_fault(struct kiw_stats *stats, enum kiw_perr perr)
{
	switch (perr) {
	case KIW_PERR_RDMAP_CATASTROPHIC:
	case KIW_PERR_DDP_CATASTROPHIC:
	case KIW_PERR_MPA_LOCAL:
		return;
	case KIW_PERR_MPA_CRC:
		kiw_count(stats, KIW_STAT_RX_CRC_ERRORS);
		return;
	default:
		break;
	}
	kiw_count(stats, layer_stats[kiw_perr_info(perr)->layer]);
	if (fault_stats[perr])
		kiw_count(stats, fault_stats[perr]);
}
