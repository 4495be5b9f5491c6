/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* User space replacement for the kernel header of this name, as far as proto/ needs it. */
#ifndef KIW_FUZZ_LINUX_UNALIGNED_H
#define KIW_FUZZ_LINUX_UNALIGNED_H

#include <linux/types.h>

static inline u16 get_unaligned_be16(const void *p)
{
	const u8 *b = p;

	return b[0] << 8 | b[1];
}

static inline u32 get_unaligned_be32(const void *p)
{
	const u8 *b = p;

	return (u32)get_unaligned_be16(b) << 16 | get_unaligned_be16(b + 2);
}

static inline u64 get_unaligned_be64(const void *p)
{
	const u8 *b = p;

	return (u64)get_unaligned_be32(b) << 32 | get_unaligned_be32(b + 4);
}

static inline void put_unaligned_be16(u16 value, void *p)
{
	u8 *b = p;

	b[0] = value >> 8;
	b[1] = value;
}

static inline void put_unaligned_be32(u32 value, void *p)
{
	u8 *b = p;
	int i;

	for (i = 0; i < 4; i++)
		b[i] = value >> (24 - 8 * i);
}

static inline void put_unaligned_be64(u64 value, void *p)
{
	put_unaligned_be32(value >> 32, p);
	put_unaligned_be32(value, (u8 *)p + 4);
}

#endif /* KIW_FUZZ_LINUX_UNALIGNED_H */
