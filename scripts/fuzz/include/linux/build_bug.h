/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* What proto/ takes from the kernel's header of this name, in user space. */
#ifndef KIW_FUZZ_LINUX_BUILD_BUG_H
#define KIW_FUZZ_LINUX_BUILD_BUG_H

/* static_assert(), without a message as from C23 on */
#include <assert.h>

#endif /* KIW_FUZZ_LINUX_BUILD_BUG_H */
