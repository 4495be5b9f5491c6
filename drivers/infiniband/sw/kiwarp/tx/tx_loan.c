// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Loans of pages to TCP.
 *
 * The stack holds references to a loan in the buffers that refer to its pages, and calls back when
 * each is freed: in any context, with or without the socket lock, and after the socket was
 * released. The last callback only marks the loan as over and schedules the QP's tasklet; the
 * engine finds it there, under the socket lock.
 *
 * A loan has no reference to its QP. Before a QP ends, and before any of its work requests is
 * flushed, it resets the stream and waits until its loans are over (run/qp_work.c). Then it
 * disowns those that something in this host holds for longer than %LOAN_RETURN_MS. Nobody but the
 * last callback knows them any more.
 */
#include "tx_loan.h"

#include <linux/jiffies.h>
#include <linux/rcupdate.h>
#include <linux/slab.h>
#include <linux/wait.h>

#include "compat/ubuf.h"
#include "qp/qp.h"

/* Bytes that are copied before lending is tried again */
#define LOAN_PAUSE	(64 << 20)

/*
 * How long the end of a QP waits, after the reset of its stream, and how long it does so after the
 * device has waited in vain: a process may have thousands of QPs, which end one by one.
 */
#define LOAN_RETURN_MS	5000
#define LOAN_AGAIN_MS	100
#define LOAN_VAIN_MS	60000

/* How often the end of the module logs what it waits for */
#define LOAN_LOG_MS	10000

/* The last reference to some loan was put. */
static DECLARE_WAIT_QUEUE_HEAD(loan_over);

/* Loans that no QP knows any more */
static atomic_t loans_disowned = ATOMIC_INIT(0);

/* The region is deregistered. The work requests that use it are in error, so the QP ends. */
static bool loan_revoke(struct kiw_lease *lease)
{
	struct kiw_loan *loan = container_of(lease, struct kiw_loan, lease);
	unsigned long flags;
	bool has_qp;

	spin_lock_irqsave(&loan->lock, flags);
	has_qp = loan->qp;
	if (has_qp)
		kiw_qp_handle_event(loan->qp, KIW_QPE_ABORT);
	spin_unlock_irqrestore(&loan->lock, flags);
	return has_qp;
}

/* Nothing refers to the pages any more. */
static void loan_end(struct kiw_loan *loan)
{
	unsigned long flags;
	bool is_disowned;

	if (loan->umem)
		kiw_umem_return(&loan->lease);
	spin_lock_irqsave(&loan->lock, flags);
	is_disowned = !loan->qp;
	loan->is_over = true;
	if (loan->qp)
		kiw_qp_run_soon(loan->qp);
	spin_unlock_irqrestore(&loan->lock, flags);
	/* From here on, the QP may be gone, and @loan as well unless it is disowned. */
	if (is_disowned) {
		kfree(loan);
		atomic_dec(&loans_disowned);
	}
	/* Hardly ever is there somebody to wake. */
	if (wq_has_sleeper(&loan_over))
		wake_up_all(&loan_over);
}

/* A buffer lets go of the pages; without @success, because they were copied. */
static void loan_complete(struct sk_buff *skb, struct ubuf_info *ubuf, bool success)
{
	struct kiw_loan *loan = to_kiw_loan(ubuf);

	if (!success)
		WRITE_ONCE(loan->was_copied, true);
	if (refcount_dec_and_test(&ubuf->refcnt))
		loan_end(loan);
}

KIW_COMPAT_UBUF_OPS(loan_ops, loan_complete);

/**
 * kiw_loan_make() - begin a loan
 * @qp: the QP
 * @umem: memory of the region whose pages will be lent, or NULL for kernel memory
 *
 * Context: socket lock held, BHs off, within the engine's MR table section.
 * Return: the lender of the batch, with one reference for it; NULL: no memory.
 */
struct ubuf_info *kiw_loan_make(struct kiw_qp *qp, struct kiw_umem *umem)
{
	struct kiw_loan *loan;

	kiw_sock_assert_held_bh(qp->ks);
	loan = kzalloc(sizeof(*loan), GFP_ATOMIC | __GFP_NOWARN);
	if (!loan)
		return NULL;
	kiw_compat_ubuf_set(&loan->ubuf, &loan_ops);
	refcount_set(&loan->ubuf.refcnt, 1);
	loan->ubuf.flags = SKBFL_ZEROCOPY_FRAG | SKBFL_DONT_ORPHAN;
	spin_lock_init(&loan->lock);
	loan->qp = qp;
	loan->umem = umem;
	loan->seq = kiw_sock_sent(qp->ks);
	loan->lease.revoke = loan_revoke;
	if (umem)
		kiw_umem_lend(umem, &loan->lease);
	list_add_tail(&loan->link, &qp->tx.loans);
	qp->tx.lent++;
	return &loan->ubuf;
}

/* Under the lock: the last callback has finished with the loan and its QP. */
static bool loan_is_over(struct kiw_loan *loan)
{
	unsigned long flags;
	bool is_over;

	spin_lock_irqsave(&loan->lock, flags);
	is_over = loan->is_over;
	spin_unlock_irqrestore(&loan->lock, flags);
	return is_over;
}

static void loan_forget(struct kiw_qp *qp, struct kiw_loan *loan)
{
	list_del(&loan->link);
	qp->tx.returned++;
	kfree(loan);
}

/* Lending costs more than it saves if the stack has to copy: do without for a while. */
static void loan_was_copied(struct kiw_qp *qp)
{
	kiw_count(qp->stats, KIW_STAT_LENT_COPIED);
	if (qp->conn.zero_copy == KIW_ZERO_COPY_AUTO)
		qp->tx.lend_pause = LOAN_PAUSE;
}

/**
 * kiw_loan_collect() - account for loans that are over, in order
 * @qp: the QP
 *
 * A loan also ends when TCP discards what it has queued because the stream is dead. Only what the
 * peer has acknowledged was sent.
 *
 * Context: socket lock held, BHs off; there is a stream.
 * Return: true: there were some, and work requests may have completed.
 */
bool kiw_loan_collect(struct kiw_qp *qp)
{
	u32 before = qp->tx.returned;
	struct kiw_loan *loan;

	kiw_sock_assert_held_bh(qp->ks);
	while ((loan = list_first_entry_or_null(&qp->tx.loans, struct kiw_loan, link))) {
		if (!loan_is_over(loan))
			break;
		if (!kiw_sock_is_acked(qp->ks, loan->seq)) {
			if (kiw_qp_state(qp) != KIW_QPS_ERROR)
				kiw_qp_retry_later(qp);
			break;
		}
		if (loan->was_copied)
			loan_was_copied(qp);
		loan_forget(qp, loan);
	}
	return qp->tx.returned != before;
}

static bool loan_all_over(struct kiw_qp *qp)
{
	struct kiw_loan *loan;

	list_for_each_entry(loan, &qp->tx.loans, link) {
		if (!loan_is_over(loan))
			return false;
	}
	return true;
}

/* Forget a loan, which may not be over yet: then its last callback frees it. */
static void loan_give_up(struct kiw_qp *qp, struct kiw_loan *loan)
{
	unsigned long flags;
	bool is_over;

	spin_lock_irqsave(&loan->lock, flags);
	is_over = loan->is_over;
	if (!is_over) {
		list_del(&loan->link);
		loan->qp = NULL;
		atomic_inc(&loans_disowned);
	}
	spin_unlock_irqrestore(&loan->lock, flags);
	if (is_over) {
		loan_forget(qp, loan);
		return;
	}
	qp->tx.returned++;
	kiw_count(qp->stats, KIW_STAT_LENT_KEPT);
	WRITE_ONCE(qp->stats->kept_at, jiffies);
}

static unsigned int loan_patience_ms(const struct kiw_qp *qp)
{
	unsigned long until = READ_ONCE(qp->stats->kept_at) + msecs_to_jiffies(LOAN_VAIN_MS);

	if (kiw_stats_read(qp->stats, KIW_STAT_LENT_KEPT) && time_before(jiffies, until))
		return LOAN_AGAIN_MS;
	return LOAN_RETURN_MS;
}

/**
 * kiw_loan_end_all() - wait until no page is lent any more, or for too long
 * @qp: the QP, in ERROR; its batch was dropped, and its stream was reset or is dead
 *
 * TCP has freed its buffers by now. Those that are on their way out of this host remain, and are
 * waited for. The peer has no influence on that.
 *
 * Context: process, may sleep; @qp->mutex held.
 */
void kiw_loan_end_all(struct kiw_qp *qp)
{
	struct kiw_loan *loan, *next;

	lockdep_assert_held(&qp->mutex);
	wait_event_timeout(loan_over, loan_all_over(qp),
			   msecs_to_jiffies(loan_patience_ms(qp)));
	list_for_each_entry_safe(loan, next, &qp->tx.loans, link)
		loan_give_up(qp, loan);
}

/**
 * kiw_loan_module_exit() - wait for the last callback
 *
 * No QP is left, but something in this host may still hold buffers that refer to lent pages, and
 * the callback that they will call is in this module. So this wait has no limit. The last callback
 * may still be executing its last instructions when it has been counted, in a task that was
 * preempted.
 *
 * Context: process, may sleep.
 */
void kiw_loan_module_exit(void)
{
	while (!wait_event_timeout(loan_over, !atomic_read(&loans_disowned),
				   msecs_to_jiffies(LOAN_LOG_MS)))
		pr_warn("kiwarp: waiting until this host has freed packets\n");
	synchronize_rcu();
	synchronize_rcu_tasks();
}
