// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Ring arithmetic, compared with a model that counts in 64 bits, from any counter start. */
#include "fuzz.h"

#include "proto/ring.h"

#define SLOTS_MAX	1024

static void sizes(u32 entries, u32 max)
{
	u32 size = kiw_ring_size(entries, max);

	if (!size) {
		FUZZ_CHECK(!max || entries > max / 2);
		return;
	}
	FUZZ_CHECK(size <= max && size >= entries && !(size & (size - 1)));
	FUZZ_CHECK(size == 1 || size / 2 < entries);
}

/* Fills and empties slots as the input tells; each slot must hold the number put into it. */
static void use(const struct fuzz_input *in, u32 size)
{
	u32 put = fuzz_u32(in, 0);
	u64 slots[SLOTS_MAX];
	u64 made = 0, used = 0;
	u32 get = put;
	size_t i;

	for (i = 0; i < in->size; i++) {
		FUZZ_CHECK(kiw_ring_used(put, get) == made - used);
		FUZZ_CHECK(kiw_ring_empty(put, get) == (made == used));
		FUZZ_CHECK(kiw_ring_full(put, get, size) == (made - used == size));
		FUZZ_CHECK(kiw_ring_slot(put, size) < size);
		if (in->data[i] & 1) {
			if (!kiw_ring_full(put, get, size))
				slots[kiw_ring_slot(put++, size)] = made++;
		} else if (!kiw_ring_empty(put, get)) {
			FUZZ_CHECK(slots[kiw_ring_slot(get++, size)] == used++);
		}
	}
}

/**
 * fuzz_one() - run one input of libFuzzer
 * @data: operations on a ring
 * @size: number of octets
 *
 * Context: user space.
 * Return: 0.
 */
int fuzz_one(const u8 *data, size_t size)
{
	struct fuzz_input in = fuzz_input(data, size);
	u32 slots = kiw_ring_size(fuzz_u32(&in, 4) % (SLOTS_MAX + 1), SLOTS_MAX);

	FUZZ_CHECK(slots && slots <= SLOTS_MAX);
	sizes(fuzz_u32(&in, 8), fuzz_u32(&in, 12));
	use(&in, slots);
	return 0;
}
