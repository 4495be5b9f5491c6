// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Size of a ring. The rest of the ring arithmetic is inline in ring.h.
 */
#include "ring.h"

/**
 * kiw_ring_size() - number of slots for a number of entries
 * @entries: entries asked for; 0 counts as 1
 * @max: maximum number of slots of a ring
 *
 * The size is a power of two, because the counters wrap at 2^32 and the slot is their
 * remainder.
 *
 * Context: any.
 * Return: the smallest power of two that is at least @entries, or 0 if it exceeds @max.
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
