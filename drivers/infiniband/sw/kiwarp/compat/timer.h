/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Differences between kernels in the interface of timers. */
#ifndef KIW_COMPAT_TIMER_H
#define KIW_COMPAT_TIMER_H

#include <linux/timer.h>

/* 6.15 removed del_timer_sync() */
#ifdef KIW_HAS_TIMER_DELETE_SYNC
#define kiw_compat_timer_delete_sync(timer) timer_delete_sync(timer)
#else
#define kiw_compat_timer_delete_sync(timer) del_timer_sync(timer)
#endif

#endif /* KIW_COMPAT_TIMER_H */
