/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * What the compiler calls in each basic block of the drivers (cover.c).
 */
#ifndef KIW_KTEST_COVER_H
#define KIW_KTEST_COVER_H

void __sanitizer_cov_trace_pc(void);

#endif /* KIW_KTEST_COVER_H */
