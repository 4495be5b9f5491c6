/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * The CRC32c of RFC 5044 4.4, computed with the kernel's crc32c(). Between calls the
 * value is the raw register; kiw_crc_final() returns the four octets as sent.
 */
#ifndef KIW_PROTO_CRC_H
#define KIW_PROTO_CRC_H

#include <linux/crc32c.h>
#include <linux/types.h>
#include <asm/byteorder.h>

static inline u32 kiw_crc_init(void)
{
	return ~0U;
}

static inline u32 kiw_crc_update(u32 crc, const void *data, u32 len)
{
	return crc32c(crc, data, len);
}

/* The inverted register is sent least significant octet first, as in RFC 5044 figures 5 and 6. */
static inline __le32 kiw_crc_final(u32 crc)
{
	return cpu_to_le32(~crc);
}

/*
 * Value of the register after any octets followed by their own CRC, as sent. It is constant:
 * the remainder that the final inversion of CRC32c leaves.
 */
#define KIW_CRC_RESIDUE		0xb798b438

static inline bool kiw_crc_holds(u32 crc)
{
	return crc == KIW_CRC_RESIDUE;
}

#endif /* KIW_PROTO_CRC_H */
