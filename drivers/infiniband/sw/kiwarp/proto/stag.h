/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Steering tags: a 24-bit index and an 8-bit key (RDMA verbs; to RFC
 * 5040 the STag is an opaque 32-bit value). The index on the wire is a keyed
 * permutation of the table index, so the table stays dense, but it is hard for a peer to
 * predict the next STag from one that it knows (RFC 5042 6.1.1).
 *
 * STag 0 is reserved. It needs wire index 0, to which exactly one table index maps:
 * the allocator of table indices must never hand out kiw_stag_unscramble(key, 0).
 * Reserving key 0 would not do, because the consumer chooses the key of a fast region or window.
 */
#ifndef KIW_PROTO_STAG_H
#define KIW_PROTO_STAG_H

#include <linux/types.h>

#define KIW_STAG_INDEX_BITS	24
#define KIW_STAG_INDEX_MASK	0xffffff
#define KIW_STAG_KEY_BITS	8

/**
 * struct kiw_stag_key - secret key of a device's permutation
 * @k: random, one word per round
 */
struct kiw_stag_key {
	u32 k[4];
};

/* The STag of wire index @index with @key */
static inline u32 kiw_stag_make(u32 index, u8 key)
{
	return (index & KIW_STAG_INDEX_MASK) << KIW_STAG_KEY_BITS | key;
}

/* The wire index in @stag */
static inline u32 kiw_stag_index(u32 stag)
{
	return stag >> KIW_STAG_KEY_BITS;
}

/* The key in @stag */
static inline u8 kiw_stag_key8(u32 stag)
{
	return stag & 0xff;
}

u32 kiw_stag_scramble(const struct kiw_stag_key *key, u32 index);
u32 kiw_stag_unscramble(const struct kiw_stag_key *key, u32 index);

#endif /* KIW_PROTO_STAG_H */
