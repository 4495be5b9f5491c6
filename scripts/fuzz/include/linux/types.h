/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* User space replacement for the kernel header of this name, as far as proto/ needs it. */
#ifndef KIW_FUZZ_LINUX_TYPES_H
#define KIW_FUZZ_LINUX_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int32_t s32;
typedef uint16_t __be16;
typedef uint32_t __be32;
typedef uint64_t __be64;
typedef uint32_t __le32;

#define __packed	__attribute__((packed))

#endif /* KIW_FUZZ_LINUX_TYPES_H */
