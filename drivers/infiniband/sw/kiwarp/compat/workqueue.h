/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Differences between kernels in the interface of workqueues. */
#ifndef KIW_COMPAT_WORKQUEUE_H
#define KIW_COMPAT_WORKQUEUE_H

#include <linux/workqueue.h>

/* Before, every workqueue was per CPU unless it was unbound */
#ifndef KIW_HAS_WQ_PERCPU
#define WQ_PERCPU 0
#endif

#endif /* KIW_COMPAT_WORKQUEUE_H */
