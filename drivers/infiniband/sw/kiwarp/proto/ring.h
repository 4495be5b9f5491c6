/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Index arithmetic of the work and completion rings: free-running 32-bit
 * counters over a power-of-two number of slots.
 */
#ifndef KIW_PROTO_RING_H
#define KIW_PROTO_RING_H

#include <linux/types.h>

/* Slot of counter @pos in a ring of @size (a power of two) slots */
static inline u32 kiw_ring_slot(u32 pos, u32 size)
{
	return pos & (size - 1);
}

/* Number of entries between @get and @put; correct across the wrap at 2^32 */
static inline u32 kiw_ring_used(u32 put, u32 get)
{
	return put - get;
}

static inline bool kiw_ring_full(u32 put, u32 get, u32 size)
{
	return kiw_ring_used(put, get) >= size;
}

static inline bool kiw_ring_empty(u32 put, u32 get)
{
	return put == get;
}

u32 kiw_ring_size(u32 entries, u32 max);

#endif /* KIW_PROTO_RING_H */
