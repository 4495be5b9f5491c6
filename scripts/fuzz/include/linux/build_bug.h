/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* User space replacement for the kernel header of this name, as far as proto/ needs it. */
#ifndef KIW_FUZZ_LINUX_BUILD_BUG_H
#define KIW_FUZZ_LINUX_BUILD_BUG_H

/* static_assert(), without a message as from C23 on */
#include <assert.h>

#endif /* KIW_FUZZ_LINUX_BUILD_BUG_H */
