/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Steering tags: 24 bits of index and the consumer's 8 bit key (RDMA verbs; RFC
 * 5040 sees an opaque 32-bit value). The index on the wire is a keyed
 * permutation of the table's, so the table stays dense while a peer cannot tell
 * from one STag what the next will be (RFC 5042 6.1.1).
 *
 * STag 0 is reserved. It would need wire index 0, which belongs to one table
 * index only: whoever hands out table indices must never hand out
 * kiw_stag_unscramble(key, 0). To withhold key 0 would not do, because a
 * consumer chooses the key.
 */
#ifndef KIW_PROTO_STAG_H
#define KIW_PROTO_STAG_H

#include <linux/types.h>

#define KIW_STAG_INDEX_BITS	24
#define KIW_STAG_INDEX_MASK	0xffffff
#define KIW_STAG_KEY_BITS	8

/**
 * struct kiw_stag_key - secret of one device's permutation
 * @k: random, one word per round
 */
struct kiw_stag_key {
	u32 k[4];
};

/* The STag of wire index @index with the consumer's @key */
static inline u32 kiw_stag_make(u32 index, u8 key)
{
	return (index & KIW_STAG_INDEX_MASK) << KIW_STAG_KEY_BITS | key;
}

/* The wire index in @stag */
static inline u32 kiw_stag_index(u32 stag)
{
	return stag >> KIW_STAG_KEY_BITS;
}

/* The consumer's key in @stag */
static inline u8 kiw_stag_key8(u32 stag)
{
	return stag & 0xff;
}

u32 kiw_stag_scramble(const struct kiw_stag_key *key, u32 index);
u32 kiw_stag_unscramble(const struct kiw_stag_key *key, u32 index);

#endif /* KIW_PROTO_STAG_H */
