// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Counters of an interface: their names and their sums over all CPUs. */
#include "stats.h"

#include <linux/cpumask.h>

#define KIP_STATS_NAME(id, name)	name,

static const char * const names[KIP_STAT_COUNT] = {
	KIP_STATS_LIST(KIP_STATS_NAME)
};

/**
 * kip_stat_sum() - sum a counter over all CPUs
 * @stats: counters of an interface
 * @stat: the counter
 *
 * Context: any.
 * Return: the sum.
 */
u64 kip_stat_sum(struct kip_stats __percpu *stats, enum kip_stat stat)
{
	u64 sum = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		sum += READ_ONCE(per_cpu_ptr(stats, cpu)->value[stat]);
	return sum;
}

/**
 * kip_stat_name() - name of a counter
 * @stat: the counter
 *
 * Context: any.
 * Return: its name.
 */
const char *kip_stat_name(enum kip_stat stat)
{
	return names[stat];
}
