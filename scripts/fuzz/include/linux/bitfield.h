/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* What proto/ takes from the kernel's header of this name, in user space. */
#ifndef KIW_FUZZ_LINUX_BITFIELD_H
#define KIW_FUZZ_LINUX_BITFIELD_H

#define FIELD_GET(mask, value)	(((value) & (mask)) >> __builtin_ctz(mask))
#define FIELD_PREP(mask, value)	(((value) << __builtin_ctz(mask)) & (mask))

#endif /* KIW_FUZZ_LINUX_BITFIELD_H */
