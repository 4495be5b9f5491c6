// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * When to look into a send queue whose process rings.
 *
 * A process rings for an entry when the one before it was taken. To take each at once is
 * best for who waits for its end, and dear for who keeps many on the way: a system call, a
 * call of TCP and a segment each. Who has not even taken what has completed does not wait
 * yet. Its entry is left where it is for a moment: for further ones the provider does not
 * ring while it is there, and they are sent together.
 *
 * The moment is at most as long as the process took since it rang last: to wait for others
 * costs no more than one more doorbell does. The first entry is never late, for nothing has
 * completed then. Who leaves completions where they are and waits for something else would lose
 * by that, so when nothing was gathered, it is not tried again for a while. Whatever else makes
 * the engine run takes the entries as well.
 *
 * Contexts: doorbells in process context, the timer in softirq. No locks.
 */
#include "doorbell.h"

#include "compat/hrtimer.h"
#include "qp.h"

/* Who rings less often than that waits for each; a long message takes some time, too */
#define DOORBELL_STREAM_NS	NSEC_PER_MSEC

/* The longest moment: time for a few system calls, whatever the machine */
#define DOORBELL_WAIT_NS	(50 * NSEC_PER_USEC)

/* Doorbells answered at once when nothing was gathered */
#define DOORBELL_PROMPT		16

static struct kiw_qp *doorbell_qp(struct kiw_doorbell *db)
{
	return container_of(db, struct kiw_qp, doorbell);
}

static enum hrtimer_restart doorbell_late(struct hrtimer *timer)
{
	struct kiw_doorbell *db = container_of(timer, struct kiw_doorbell, timer);
	struct kiw_qp *qp = doorbell_qp(db);

	if (!qp->sq.ops->has(&qp->sq, 2))
		WRITE_ONCE(db->prompt, DOORBELL_PROMPT);
	kiw_qp_kick(qp);
	return HRTIMER_NORESTART;
}

/**
 * kiw_doorbell_init() - of a new QP
 * @db: the QP's
 *
 * Context: process.
 */
void kiw_doorbell_init(struct kiw_doorbell *db)
{
	kiw_compat_hrtimer_setup(&db->timer, doorbell_late, CLOCK_MONOTONIC,
				 HRTIMER_MODE_REL_SOFT);
	db->last = 0;
	db->prompt = 0;
}

/**
 * kiw_doorbell_stop() - nothing is looked into any more, unless somebody rings
 * @db: the QP's
 *
 * Context: process, may sleep.
 */
void kiw_doorbell_stop(struct kiw_doorbell *db)
{
	hrtimer_cancel(&db->timer);
}

/* Nanoseconds since the process rang last */
static u64 doorbell_since(struct kiw_doorbell *db)
{
	u64 now = ktime_get_ns();
	u64 last = READ_ONCE(db->last);

	WRITE_ONCE(db->last, now);
	return now - last;
}

/* One entry is there, others are likely to follow, and nobody waits for it yet. */
static bool doorbell_may_wait(struct kiw_doorbell *db)
{
	struct kiw_qp *qp = doorbell_qp(db);
	u8 prompt = READ_ONCE(db->prompt);

	if (kiw_qp_state(qp) != KIW_QPS_RTS || !qp->scq->ops->is_unread(qp->scq) ||
	    qp->sq.ops->has(&qp->sq, 2))
		return false;
	if (prompt)
		WRITE_ONCE(db->prompt, prompt - 1);
	return !prompt;
}

/**
 * kiw_doorbell_ring() - a process has posted to its send queue
 * @db: the QP's
 *
 * Context: process; no lock of this driver held.
 */
void kiw_doorbell_ring(struct kiw_doorbell *db)
{
	struct kiw_qp *qp = doorbell_qp(db);
	u64 since = doorbell_since(db);

	if (since > DOORBELL_STREAM_NS || !doorbell_may_wait(db)) {
		kiw_qp_kick(qp);
		return;
	}
	kiw_count(qp->stats, KIW_STAT_DOORBELLS_LATE);
	hrtimer_start(&db->timer, ns_to_ktime(min_t(u64, since, DOORBELL_WAIT_NS)),
		      HRTIMER_MODE_REL_SOFT);
}
