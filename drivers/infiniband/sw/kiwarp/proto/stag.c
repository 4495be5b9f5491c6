// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * A keyed permutation of 24-bit indices: a balanced Feistel network with four
 * rounds over halves of 12 bits. It makes STags hard to predict, and a wrong guess costs
 * a peer its connection. It is not a cipher for secrets.
 */
#include "stag.h"

#include <linux/bits.h>

#define HALF_BITS	12
#define HALF_MASK	GENMASK(HALF_BITS - 1, 0)
#define ROUNDS		4

/* Every bit of @half and @k reaches every bit of the result. */
static u32 stag_mix(u32 half, u32 k)
{
	u32 x = (half + 1) * 0x9e3779b1 ^ k;

	x = (x ^ x >> 15) * 0x85ebca77;
	x = (x ^ x >> 13) * 0xc2b2ae3d;
	return (x ^ x >> 16) & HALF_MASK;
}

/**
 * kiw_stag_scramble() - convert a table index to a wire index
 * @key: the device's secret
 * @index: table index, 0..2^24-1; higher bits are ignored
 *
 * The inverse of kiw_stag_unscramble() for the same @key. RFC 5042 6.1.1 asks for STags that
 * are difficult to predict.
 *
 * Context: any.
 * Return: wire index, 0..2^24-1, a different one for every @index.
 */
u32 kiw_stag_scramble(const struct kiw_stag_key *key, u32 index)
{
	u32 right = index & HALF_MASK;
	u32 left = index >> HALF_BITS & HALF_MASK;
	u32 next;
	int i;

	for (i = 0; i < ROUNDS; i++) {
		next = left ^ stag_mix(right, key->k[i]);
		left = right;
		right = next;
	}
	return left << HALF_BITS | right;
}

/**
 * kiw_stag_unscramble() - convert a wire index to a table index
 * @key: the device's secret
 * @index: wire index, 0..2^24-1; higher bits are ignored
 *
 * The inverse of kiw_stag_scramble() for the same @key. The result may be beyond
 * the table: a peer can send any index.
 *
 * Context: any.
 * Return: table index, 0..2^24-1, a different one for every @index.
 */
u32 kiw_stag_unscramble(const struct kiw_stag_key *key, u32 index)
{
	u32 right = index & HALF_MASK;
	u32 left = index >> HALF_BITS & HALF_MASK;
	u32 prev;
	int i;

	for (i = ROUNDS - 1; i >= 0; i--) {
		prev = right ^ stag_mix(left, key->k[i]);
		right = left;
		left = prev;
	}
	return left << HALF_BITS | right;
}
