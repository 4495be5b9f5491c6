// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * How many slots a ring has. The rest of ring arithmetic is inline in ring.h.
 */
#include "ring.h"

/**
 * kiw_ring_size() - slots of a ring for so many entries
 * @entries: entries asked for; 0 is taken for 1
 * @max: most slots a ring may have
 *
 * A power of two, because the counters run through 2^32 and the slot is their
 * remainder.
 *
 * Context: any.
 * Return: the smallest power of two that is at least @entries, or 0 when that is
 * above @max.
 */
u32 kiw_ring_size(u32 entries, u32 max)
{
	u32 size = 1;

	if (!max)
		return 0;
	while (size < entries) {
		if (size > max / 2)
			return 0;
		size *= 2;
	}
	return size;
}
