// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Loans of pages to TCP.
 *
 * The stack holds references to a loan in the buffers that refer to its pages, and calls back when
 * each is freed: in any context, with or without the socket lock, and after the socket was
 * released. The last callback only marks the loan as over and schedules the QP's tasklet; the
 * engine finds it there, under the socket lock.
 *
 * A loan has no reference to its QP: the QP does not end, and none of its work requests is flushed,
 * before all its loans are over (run/qp_work.c).
 */
#include "tx_loan.h"

#include <linux/rcupdate.h>
#include <linux/slab.h>
#include <linux/wait.h>

#include "compat/ubuf.h"
#include "qp/qp.h"

/* Bytes that are copied before lending is tried again */
#define LOAN_PAUSE	(64 << 20)

/* The last loan of some QP is over. */
static DECLARE_WAIT_QUEUE_HEAD(loan_over);

/* The region is deregistered. The work requests that use it are in error, so the QP ends. */
static void loan_revoke(struct kiw_lease *lease)
{
	struct kiw_loan *loan = container_of(lease, struct kiw_loan, lease);

	kiw_qp_handle_event(loan->qp, KIW_QPE_ABORT);
}

static void loan_end(struct kiw_loan *loan)
{
	struct kiw_qp *qp = loan->qp;
	unsigned long flags;

	if (loan->umem)
		kiw_umem_return(&loan->lease);
	spin_lock_irqsave(&qp->lock, flags);
	/* Pairs with kiw_loan_collect(), which may free the loan as soon as it sees this. */
	smp_store_release(&loan->is_over, true);
	qp->num_loans--;
	kiw_qp_run_soon(qp);
	spin_unlock_irqrestore(&qp->lock, flags);
	/* Not in the QP, which a waiter may have freed by now */
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
 * @umem: memory of the region whose pages will be lent, or NULL for a DMA region
 *
 * Context: socket lock held, BHs off, within the engine's MR table section.
 * Return: the lender of the batch, with one reference for it; NULL: no memory.
 */
struct ubuf_info *kiw_loan_make(struct kiw_qp *qp, struct kiw_umem *umem)
{
	struct kiw_loan *loan;
	unsigned long flags;

	kiw_sock_assert_held(qp->ks);
	loan = kzalloc(sizeof(*loan), GFP_ATOMIC | __GFP_NOWARN);
	if (!loan)
		return NULL;
	kiw_compat_ubuf_set(&loan->ubuf, &loan_ops);
	refcount_set(&loan->ubuf.refcnt, 1);
	loan->ubuf.flags = SKBFL_ZEROCOPY_FRAG | SKBFL_DONT_ORPHAN;
	loan->qp = qp;
	loan->umem = umem;
	loan->seq = kiw_sock_sent(qp->ks);
	loan->lease.revoke = loan_revoke;
	spin_lock_irqsave(&qp->lock, flags);
	qp->num_loans++;
	spin_unlock_irqrestore(&qp->lock, flags);
	if (umem)
		kiw_umem_lend(umem, &loan->lease);
	list_add_tail(&loan->link, &qp->tx.loans);
	qp->tx.lent++;
	return &loan->ubuf;
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
	kiw_count(qp->stats, KIW_STAT_TX_LENT_COPIED);
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

	kiw_sock_assert_held(qp->ks);
	while ((loan = list_first_entry_or_null(&qp->tx.loans, struct kiw_loan, link))) {
		/* Pairs with loan_end(). */
		if (!smp_load_acquire(&loan->is_over))
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

/* Under the lock: whoever ended the last loan has finished with @qp. */
static bool loan_is_none(struct kiw_qp *qp)
{
	unsigned long flags;
	bool is_none;

	spin_lock_irqsave(&qp->lock, flags);
	is_none = !qp->num_loans;
	spin_unlock_irqrestore(&qp->lock, flags);
	return is_none;
}

/**
 * kiw_loan_await_all() - wait until no page is lent any more
 * @qp: the QP, in ERROR; its batch was dropped, and its stream was reset or is dead
 *
 * TCP has freed its buffers by now. Those that are on their way out of this host remain, and are
 * waited for; the peer has no influence on that.
 *
 * Context: process, may sleep.
 */
void kiw_loan_await_all(struct kiw_qp *qp)
{
	struct kiw_loan *loan, *next;

	wait_event(loan_over, loan_is_none(qp));
	list_for_each_entry_safe(loan, next, &qp->tx.loans, link)
		loan_forget(qp, loan);
}

/**
 * kiw_loan_module_exit() - let the last callback return
 *
 * All loans are over, but the callback of the last one may still be executing its last
 * instructions, in a task that was preempted.
 *
 * Context: process, may sleep.
 */
void kiw_loan_module_exit(void)
{
	synchronize_rcu();
	synchronize_rcu_tasks();
}
