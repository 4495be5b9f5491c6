/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* What proto/ takes from the kernel's header of this name, in user space. */
#ifndef KIW_FUZZ_LINUX_BUILD_BUG_H
#define KIW_FUZZ_LINUX_BUILD_BUG_H

/* Unlike C's, the kernel's wants no message */
#define static_assert(expr)	_Static_assert(expr, #expr)

#endif /* KIW_FUZZ_LINUX_BUILD_BUG_H */
