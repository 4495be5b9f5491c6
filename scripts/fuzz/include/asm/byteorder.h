/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* User space replacement for the kernel header of this name, as far as proto/ needs it. */
#ifndef KIW_FUZZ_ASM_BYTEORDER_H
#define KIW_FUZZ_ASM_BYTEORDER_H

#include <endian.h>

#define cpu_to_be16	htobe16
#define cpu_to_be32	htobe32
#define cpu_to_be64	htobe64
#define cpu_to_le32	htole32
#define be16_to_cpu	be16toh
#define be32_to_cpu	be32toh
#define be64_to_cpu	be64toh

#endif /* KIW_FUZZ_ASM_BYTEORDER_H */
