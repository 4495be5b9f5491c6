/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Differences between kernels, for every source file: the top Kbuild force-includes
 * this header. The driver is written for the newest kernel it supports. This header and
 * the others in this directory supply what other kernels lack (verbs.h: ib_core, net.h and ubuf.h:
 * TCP, dmabuf.h, hrtimer.h, timer.h, workqueue.h, include/: missing headers). No other file of the
 * driver depends on the kernel's version.
 *
 * The build defines KIW_HAS_ macros: see probe.c. Kbuild in this directory refuses kernels on which
 * the driver is known not to work and, by default, newer ones than it knows.
 */
#ifndef KIW_COMPAT_H
#define KIW_COMPAT_H

#include <linux/version.h>

/*
 * The target kernel is this release or a later one. Only for what no probe can find: a change of
 * behaviour
 */
#define KIW_KERNEL_SINCE(a, b, c) (KERNEL_VERSION(a, b, c) <= LINUX_VERSION_CODE)

/* Since 6.10 __assign_str() does not take the source any more */
#ifdef KIW_HAS_ASSIGN_STR_DST
#define kiw_compat_assign_str(dst, src) \
	do { \
		(void)(src); \
		__assign_str(dst); \
	} while (0)
#else
#define kiw_compat_assign_str(dst, src) __assign_str(dst, src)
#endif

#endif /* KIW_COMPAT_H */
