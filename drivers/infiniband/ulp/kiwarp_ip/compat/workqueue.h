/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Kernel version differences: workqueues. The build defines KIW_HAS_. */
#ifndef KIP_COMPAT_WORKQUEUE_H
#define KIP_COMPAT_WORKQUEUE_H

#include <linux/workqueue.h>

/* The new name of system_wq */
#ifndef KIW_HAS_SYSTEM_PERCPU_WQ
#define system_percpu_wq system_wq
#endif

#endif /* KIP_COMPAT_WORKQUEUE_H */
