/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* What proto/ takes from the kernel's header of this name, in user space. */
#ifndef KIW_FUZZ_LINUX_BITS_H
#define KIW_FUZZ_LINUX_BITS_H

#define BIT(nr)		(1UL << (nr))
#define GENMASK(h, l)	((~0UL << (l)) & (~0UL >> (63 - (h))))

#endif /* KIW_FUZZ_LINUX_BITS_H */
