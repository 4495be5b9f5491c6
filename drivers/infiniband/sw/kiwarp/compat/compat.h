/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Differences between kernels, for every source file: the top Kbuild force-includes
 * this header. The driver is written for the newest kernel it supports. This header and
 * the others in this directory supply what older kernels lack (verbs.h: ib_core, net.h:
 * TCP, dmabuf.h, hrtimer.h, timer.h, include/: missing headers). No other file compares
 * kernel versions.
 *
 * Stable kernels backport interfaces, so a version below is always the first point
 * release of its line that has the interface.
 */
#ifndef KIW_COMPAT_H
#define KIW_COMPAT_H

#include <linux/version.h>

/* The target kernel is this release or a later one */
#define KIW_KERNEL_SINCE(a, b, c) (KERNEL_VERSION(a, b, c) <= LINUX_VERSION_CODE)

#if !KIW_KERNEL_SINCE(6, 1, 0) || KIW_KERNEL_SINCE(8, 0, 0)
#error "kiwarp needs Linux 6.1 or newer, and does not know Linux 8"
#endif

/*
 * Kernels on which this driver does not work, even if it would compile.
 *
 * HIGHMEM: the core has no virtual DMA there (INFINIBAND_VIRT_DMA), and a device without DMA
 * can use only kernel virtual addresses.
 *
 * Aliasing caches: processes map the rings and use them at the same time as the kernel, at other
 * addresses. No flush makes that work. Before 6.9 these architectures had no common config
 * symbol.
 *
 * PREEMPT_RT: a task that has softirqs off can be preempted by another task on its CPU. But with
 * softirqs off, tx/txbuf.c relies on exclusive use of the CPU's pages, and mem/mr_fast.c spins
 * while it waits.
 */
#ifdef CONFIG_HIGHMEM
#error "kiwarp needs a kernel without HIGHMEM"
#endif

#if defined(CONFIG_ARCH_HAS_CPU_CACHE_ALIASING) || defined(CONFIG_ARC) || \
	defined(CONFIG_ARM) || defined(CONFIG_CSKY) || defined(CONFIG_M68K) || \
	defined(CONFIG_MIPS) || defined(CONFIG_NIOS2) || defined(CONFIG_PARISC) || \
	defined(CONFIG_SPARC) || defined(CONFIG_SUPERH) || defined(CONFIG_XTENSA)
#error "kiwarp needs an architecture whose caches do not alias"
#endif

#ifdef CONFIG_PREEMPT_RT
#error "kiwarp does not run on PREEMPT_RT"
#endif

/* Since 6.10 __string() remembers the source, and __assign_str() does not take it any more */
#if KIW_KERNEL_SINCE(6, 10, 0)
#define kiw_compat_assign_str(dst, src) \
	do { \
		(void)(src); \
		__assign_str(dst); \
	} while (0)
#else
#define kiw_compat_assign_str(dst, src) __assign_str(dst, src)
#endif

#endif /* KIW_COMPAT_H */
