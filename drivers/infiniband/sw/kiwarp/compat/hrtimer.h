/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Differences between kernels in the interface of high-resolution timers. */
#ifndef KIW_COMPAT_HRTIMER_H
#define KIW_COMPAT_HRTIMER_H

#include <linux/hrtimer.h>

/* hrtimer_setup() exists since 6.13, and hrtimer_init() was removed in 6.15. */
static inline void kiw_compat_hrtimer_setup(struct hrtimer *timer,
					    enum hrtimer_restart (*function)(struct hrtimer *),
					    clockid_t clock, enum hrtimer_mode mode)
{
#ifdef KIW_HAS_HRTIMER_SETUP
	hrtimer_setup(timer, function, clock, mode);
#else
	hrtimer_init(timer, clock, mode);
	timer->function = function;
#endif
}

#endif /* KIW_COMPAT_HRTIMER_H */
