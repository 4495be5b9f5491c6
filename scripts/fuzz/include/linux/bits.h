/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* User space replacement for the kernel header of this name, as far as proto/ needs it. */
#ifndef KIW_FUZZ_LINUX_BITS_H
#define KIW_FUZZ_LINUX_BITS_H

#define BIT(nr)		(1UL << (nr))
#define GENMASK(h, l)	((~0UL << (l)) & (~0UL >> (63 - (h))))

#endif /* KIW_FUZZ_LINUX_BITS_H */
