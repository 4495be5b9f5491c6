/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* User space replacement for the kernel header of this name, as far as proto/ needs it. */
#ifndef KIW_FUZZ_LINUX_MINMAX_H
#define KIW_FUZZ_LINUX_MINMAX_H

#define min_t(type, a, b) ({ type _a = (a), _b = (b); _a < _b ? _a : _b; })
#define max_t(type, a, b) ({ type _a = (a), _b = (b); _a > _b ? _a : _b; })
#define min(a, b)	min_t(__typeof__(a), a, b)
#define max(a, b)	max_t(__typeof__(a), a, b)

#endif /* KIW_FUZZ_LINUX_MINMAX_H */
