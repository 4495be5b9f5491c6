/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* User space replacement for the kernel header of this name, as far as proto/ needs it. */
#ifndef KIW_FUZZ_LINUX_BITFIELD_H
#define KIW_FUZZ_LINUX_BITFIELD_H

#define FIELD_GET(mask, value)	(((value) & (mask)) >> __builtin_ctz(mask))
#define FIELD_PREP(mask, value)	(((value) << __builtin_ctz(mask)) & (mask))

#endif /* KIW_FUZZ_LINUX_BITFIELD_H */
