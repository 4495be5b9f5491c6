/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* User space replacement for the kernel header of this name, as far as proto/ needs it. */
#ifndef KIW_FUZZ_LINUX_CRC32C_H
#define KIW_FUZZ_LINUX_CRC32C_H

#include <linux/types.h>

/* RFC 3385: the reflected polynomial, bit by bit; speed does not matter here */
static inline u32 crc32c(u32 crc, const void *data, unsigned int len)
{
	const u8 *octet = data;
	int bit;

	while (len--) {
		crc ^= *octet++;
		for (bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78 : 0);
	}
	return crc;
}

#endif /* KIW_FUZZ_LINUX_CRC32C_H */
