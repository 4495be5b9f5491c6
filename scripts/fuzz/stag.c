// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* STags: one-to-one permutation under every key; conversion from index and key8 and back. */
#include "fuzz.h"

#include "proto/stag.h"

/**
 * fuzz_one() - run one input of libFuzzer
 * @data: table indices, four octets each; the key is in the parameters
 * @size: number of octets
 *
 * Context: user space.
 * Return: 0.
 */
int fuzz_one(const u8 *data, size_t size)
{
	struct fuzz_input in = fuzz_input(data, size);
	struct kiw_stag_key key;
	u32 index, wire, stag;
	size_t at;

	memcpy(key.k, in.param, sizeof(key.k));
	for (at = 0; at + 4 <= in.size; at += 4) {
		index = get_unaligned_be32(in.data + at);
		wire = kiw_stag_scramble(&key, index);
		FUZZ_CHECK(wire <= KIW_STAG_INDEX_MASK);
		index &= KIW_STAG_INDEX_MASK;
		FUZZ_CHECK(kiw_stag_unscramble(&key, wire) == index);
		FUZZ_CHECK(kiw_stag_scramble(&key, kiw_stag_unscramble(&key, index)) == index);
		stag = kiw_stag_make(wire, in.data[at]);
		FUZZ_CHECK(kiw_stag_index(stag) == wire && kiw_stag_key8(stag) == in.data[at]);
		FUZZ_CHECK((wire == 0) == (index == kiw_stag_unscramble(&key, 0)));
	}
	return 0;
}
