/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Kernels before 6.12 have only <asm/unaligned.h>. The kernel's own directories
 * come first on the include path, so newer ones never see this file.
 */
#ifndef KIW_COMPAT_LINUX_UNALIGNED_H
#define KIW_COMPAT_LINUX_UNALIGNED_H

#include <asm/unaligned.h>

#endif /* KIW_COMPAT_LINUX_UNALIGNED_H */
