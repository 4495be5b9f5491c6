/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Kernel version differences: sysfs. The build defines KIW_HAS_. */
#ifndef KIP_COMPAT_SYSFS_H
#define KIP_COMPAT_SYSFS_H

#include <linux/sysfs.h>

/* Binary attributes are const in callbacks and groups since 6.16 */
#ifdef KIW_HAS_BIN_ATTR_CONST
#define KIP_COMPAT_BIN_CONST	const
#else
#define KIP_COMPAT_BIN_CONST
#endif

#endif /* KIP_COMPAT_SYSFS_H */
