/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Coalesces the doorbells of user send queues. */
#ifndef KIW_DOORBELL_H
#define KIW_DOORBELL_H

#include <linux/hrtimer.h>
#include <linux/types.h>

/**
 * struct kiw_doorbell - doorbell of a QP whose rings a process has mapped
 * @timer: runs the transmit engine after a delay
 * @last: time of the previous doorbell, ktime_get_ns()
 * @prompt: number of doorbells that could be delayed, but are still to be answered at once
 *
 * Threads may ring concurrently: a stale @last or @prompt does no harm.
 */
struct kiw_doorbell {
	struct hrtimer timer;
	u64 last;
	u8 prompt;
};

/* Process context */
void kiw_doorbell_init(struct kiw_doorbell *db);
void kiw_doorbell_stop(struct kiw_doorbell *db);
void kiw_doorbell_ring(struct kiw_doorbell *db);

#endif /* KIW_DOORBELL_H */
