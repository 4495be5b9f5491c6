/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Differences between kernels, for every source file: the Kbuild at the top
 * force-includes this one. The driver is written for the newest kernel it supports;
 * what is missing before is made up for here and in the other headers of this folder
 * (verbs.h: ib_core, net.h: TCP, include/: headers that do not exist), and nowhere
 * else are kernel versions compared.
 *
 * Stable kernels take in interfaces of later ones, so a version below is always the
 * first point release of its line that has the interface.
 */
#ifndef KIW_COMPAT_H
#define KIW_COMPAT_H

#include <linux/version.h>

/* The kernel built for is this release or a later one */
#define KIW_KERNEL_SINCE(a, b, c) (KERNEL_VERSION(a, b, c) <= LINUX_VERSION_CODE)

#if !KIW_KERNEL_SINCE(6, 1, 0) || KIW_KERNEL_SINCE(8, 0, 0)
#error "kiwarp needs Linux 6.1 or newer, and does not know Linux 8"
#endif

/*
 * Kernels that this driver does not run on, with or without an error of the compiler.
 *
 * HIGHMEM: the core has no virtual DMA there (INFINIBAND_VIRT_DMA), and nothing but addresses of
 * the kernel is of use to a device without DMA.
 *
 * Caches that alias: processes map the rings, and use them at the same time as the kernel, by
 * other addresses. No flush makes that right. Until 6.9 there was no common name for these.
 *
 * PREEMPT_RT: with softirqs off a task can be preempted by another on its CPU. But the CPU's
 * pages of txbuf.c have to be its own then, and who waits in mr_fast.c spins.
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

/* Since 6.10 __string() remembers the source, and __assign_str() no longer takes it */
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
