// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Counters of a device.
 *
 * Owns: the per-CPU arrays. Counting is one instruction on the CPU's own array, in any
 * context and without a lock; reading sums them up and may miss what is counted
 * meanwhile. How they get to user space is in verbs_dev.c.
 */
#include "stats.h"

#include <linux/cpumask.h>
#include <linux/errno.h>

/**
 * kiw_stats_init - make a device's counters, all zero
 * @stats: to be made
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
 * kiw_stats_uninit - free a device's counters
 * @stats: nobody counts any more; never made, but zeroed, is fine
 *
 * Context: process.
 */
void kiw_stats_uninit(struct kiw_stats *stats)
{
	free_percpu(stats->pcpu);
	stats->pcpu = NULL;
}

/**
 * kiw_stats_read - value of a counter
 * @stats: the device's counters
 * @stat: which
 *
 * Context: any.
 * Return: the sum over all CPUs that ever were.
 */
u64 kiw_stats_read(const struct kiw_stats *stats, enum kiw_stat stat)
{
	u64 sum = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		sum += READ_ONCE(per_cpu_ptr(stats->pcpu, cpu)[stat]);
	return sum;
}
