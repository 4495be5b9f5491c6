// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Coalesces the doorbells of user send queues.
 *
 * With siw's ABI, a process rings for a post if the entry before it has been taken. Taking each
 * entry at once is best for a process that waits for its completion. With many entries in flight it
 * is expensive: each costs a system call, a call into TCP and a segment. A process that has not
 * reaped the completions it already has is assumed not to wait yet. So its entry stays in the queue
 * for a short time. The provider does not ring for further entries while it is there, and they are
 * sent together. With rxe's ABI, the provider rings for every post. There the next doorbell ends
 * the delay, and the entries of both posts are sent together.
 *
 * That time is at most the time since the previous doorbell, and at most %DOORBELL_WAIT_NS. The
 * first entry of a QP is not delayed, because there is no previous doorbell.
 * A process that leaves completions in place and waits for something else would lose by the delay.
 * So if the delay gathered nothing, the next %DOORBELL_PROMPT doorbells that could be delayed are
 * not. Anything else that runs the engine may take the entries earlier.
 *
 * Contexts: doorbells in process context, the timer in softirq. No locks here; looking for
 * completions that were not reaped may take that of the CQ.
 */
#include "doorbell.h"

#include "compat/hrtimer.h"
#include "qp/qp.h"
#include "qp_post.h"

/*
 * Maximum time between two doorbells of a process that has several entries in flight, long enough
 * for a long message. A process that rings less often is taken to wait for each entry.
 */
#define DOORBELL_STREAM_NS	NSEC_PER_MSEC

/* Maximum delay: time for a few system calls */
#define DOORBELL_WAIT_NS	(50 * NSEC_PER_USEC)

/* Doorbells that could be delayed, but are not, after a delay that gathered nothing */
#define DOORBELL_PROMPT		16

static struct kiw_qp *doorbell_qp(struct kiw_doorbell *db)
{
	return container_of(db, struct kiw_qp, doorbell);
}

static enum hrtimer_restart doorbell_late(struct hrtimer *timer)
{
	struct kiw_doorbell *db = container_of(timer, struct kiw_doorbell, timer);
	struct kiw_qp *qp = doorbell_qp(db);

	if (!kiw_sq_has(&qp->sq, 2))
		WRITE_ONCE(db->prompt, DOORBELL_PROMPT);
	kiw_qp_kick(qp);
	return HRTIMER_NORESTART;
}

/**
 * kiw_doorbell_init() - initialise the doorbell of a new QP
 * @db: the QP's doorbell
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
 * kiw_doorbell_stop() - cancel a delayed doorbell
 * @db: the QP's doorbell
 *
 * The next doorbell may arm the timer again.
 *
 * Context: process, may sleep.
 */
void kiw_doorbell_stop(struct kiw_doorbell *db)
{
	hrtimer_cancel(&db->timer);
}

/* Nanoseconds since the previous doorbell */
static u64 doorbell_since(struct kiw_doorbell *db)
{
	u64 now = ktime_get_ns();
	u64 last = READ_ONCE(db->last);

	WRITE_ONCE(db->last, now);
	return now - last;
}

/*
 * May the entry wait? Yes, if the QP is in RTS, the entry is the only one, the process has not
 * reaped all completions, and no doorbells are still to be answered at once.
 */
static bool doorbell_may_wait(struct kiw_doorbell *db)
{
	struct kiw_qp *qp = doorbell_qp(db);
	u8 prompt = READ_ONCE(db->prompt);

	if (kiw_qp_state(qp) != KIW_QPS_RTS || !qp->scq->ops->is_unread(qp->scq) ||
	    kiw_sq_has(&qp->sq, 2))
		return false;
	if (prompt)
		WRITE_ONCE(db->prompt, prompt - 1);
	return !prompt;
}

/**
 * kiw_doorbell_ring() - process the doorbell of a process that has posted to its send queue
 * @db: the QP's doorbell
 *
 * Context: process; no lock of this driver held.
 */
void kiw_doorbell_ring(struct kiw_doorbell *db)
{
	struct kiw_qp *qp = doorbell_qp(db);
	u64 since = doorbell_since(db);

	if (since > DOORBELL_STREAM_NS || !doorbell_may_wait(db)) {
		/* Otherwise it would find that the delay had gathered nothing. */
		hrtimer_try_to_cancel(&db->timer);
		kiw_qp_kick(qp);
		return;
	}
	kiw_count(qp->stats, KIW_STAT_DOORBELLS_LATE);
	hrtimer_start(&db->timer, ns_to_ktime(min_t(u64, since, DOORBELL_WAIT_NS)),
		      HRTIMER_MODE_REL_SOFT);
}
