// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The numbers of queue pairs, and lookups by number.
 *
 * Owns: the table. A caller that keeps the QP takes its reference in the same RCU read-side
 * critical section in which it found the QP. kiw_qp_table_hide() hides a QP from lookups and waits
 * for these sections to end. From then on, every caller that still uses the QP holds a reference,
 * and destroying the QP waits for these references. caller.c decides which caller may find which
 * QP.
 *
 * Locks: the xarray's own, taken in process context only; lookups are under RCU.
 */
#include "qp_table.h"

#include <linux/rcupdate.h>

#include "caller.h"
#include "qp.h"

/* QP numbers have 24 bits in the verbs; 0 is not a valid number */
#define QP_TABLE_LIMIT	XA_LIMIT(1, 0xffffff)

/**
 * kiw_qp_table_init() - initialise the table of a device
 * @table: the table
 *
 * Context: process.
 */
void kiw_qp_table_init(struct kiw_qp_table *table)
{
	xa_init_flags(&table->qps, XA_FLAGS_ALLOC | XA_FLAGS_ACCOUNT);
	table->next = 0;
}

/**
 * kiw_qp_table_uninit() - free the table of a device
 * @table: no QP has a number any more
 *
 * Context: process.
 */
void kiw_qp_table_uninit(struct kiw_qp_table *table)
{
	xa_destroy(&table->qps);
}

/**
 * kiw_qp_table_reserve() - give a new QP its number
 * @table: the device's table
 * @qp: gets its number; no lookup finds it before kiw_qp_table_publish(): nobody may connect a QP
 *	whose creation could still fail
 *
 * Context: process, may sleep. Undone by kiw_qp_table_release().
 * Return: 0; -EBUSY: no number is free; -ENOMEM.
 */
int kiw_qp_table_reserve(struct kiw_qp_table *table, struct kiw_qp *qp)
{
	u32 qpn;
	int ret;

	ret = xa_alloc_cyclic(&table->qps, &qpn, NULL, QP_TABLE_LIMIT, &table->next, GFP_KERNEL);
	if (ret < 0)
		return ret;
	qp->ib.qp_num = qpn;
	return 0;
}

/**
 * kiw_qp_table_publish() - let lookups find a QP
 * @table: the device's table
 * @qp: complete, with a number
 *
 * The slot is reserved, so storing needs no memory and cannot fail.
 *
 * Context: process.
 */
void kiw_qp_table_publish(struct kiw_qp_table *table, struct kiw_qp *qp)
{
	xa_store(&table->qps, qp->ib.qp_num, qp, GFP_KERNEL);
}

/**
 * kiw_qp_table_hide() - hide a QP from lookups
 * @table: the device's table
 * @qp: published
 *
 * When it returns, every caller that found the QP and still uses it has a reference. The number
 * stays reserved. The grace period is expedited, because a server may have thousands of QPs to
 * destroy.
 *
 * Context: process, may sleep.
 */
void kiw_qp_table_hide(struct kiw_qp_table *table, struct kiw_qp *qp)
{
	void *old;

	/* Overwriting an existing entry needs no memory. */
	old = xa_store(&table->qps, qp->ib.qp_num, NULL, GFP_KERNEL);
	WARN_ON_ONCE(old != qp);
	synchronize_rcu_expedited();
}

/**
 * kiw_qp_table_release() - free the number of a QP
 * @table: the device's table
 * @qp: a QP that was never published, or that kiw_qp_table_hide() has hidden
 *
 * Context: process.
 */
void kiw_qp_table_release(struct kiw_qp_table *table, struct kiw_qp *qp)
{
	xa_erase(&table->qps, qp->ib.qp_num);
}

/* Count a refusal if @is_allowed is false. Return: @is_allowed. */
static bool qp_table_allows(struct kiw_qp *qp, bool is_allowed)
{
	if (!is_allowed)
		kiw_count(qp->stats, KIW_STAT_CONN_DENIED);
	return is_allowed;
}

/**
 * kiw_qp_table_find_rcu() - find a QP by its number, without a reference
 * @table: the device's table
 * @qpn: the number, chosen by the caller, which may be a process
 *
 * Context: process context of the caller, in an RCU read-side critical section.
 * Return: the QP, which exists until the section ends; or NULL: there is no complete QP of that
 * number, or the caller may not use it.
 */
struct kiw_qp *kiw_qp_table_find_rcu(struct kiw_qp_table *table, u32 qpn)
{
	struct kiw_qp *qp = xa_load(&table->qps, qpn);

	if (qp && !qp_table_allows(qp, kiw_caller_may_find(&qp->owner)))
		return NULL;
	return qp;
}

/**
 * kiw_qp_table_find() - find the QP for a connection and take a reference to it
 * @table: the device's table
 * @id: the connection
 * @qpn: the number, chosen by the caller, which may be a process
 *
 * Context: process context of the caller; does not sleep.
 * Return: the QP with a reference for the caller, or NULL: there is none, or the caller may not
 * use it.
 */
struct kiw_qp *kiw_qp_table_find(struct kiw_qp_table *table, const struct iw_cm_id *id, u32 qpn)
{
	struct kiw_qp *qp;

	/* kiw_qp_table_hide() waits for this section. */
	rcu_read_lock();
	qp = kiw_qp_table_find_rcu(table, qpn);
	if (qp && !qp_table_allows(qp, kiw_caller_may_connect(id, qp)))
		qp = NULL;
	if (qp)
		kiw_qp_get(qp);
	rcu_read_unlock();
	return qp;
}

/**
 * kiw_qp_table_has() - can lookups still find a QP?
 * @table: the device's table
 * @qp: the QP; the caller has a reference
 *
 * Context: any.
 * Return: false: kiw_qp_table_hide() has begun.
 */
bool kiw_qp_table_has(struct kiw_qp_table *table, const struct kiw_qp *qp)
{
	return xa_load(&table->qps, qp->ib.qp_num) == qp;
}

/**
 * kiw_qp_table_fail() - end the QPs that complete to a queue
 * @table: the device's table
 * @cq: the queue; was overrun
 *
 * Each QP ends in its own work item or a reset, unless it has ended already. QPs that are being
 * created or destroyed are not found and are skipped.
 *
 * Context: any.
 */
void kiw_qp_table_fail(struct kiw_qp_table *table, const struct kiw_cq *cq)
{
	struct kiw_qp *qp;
	unsigned long qpn;

	/* kiw_destroy_qp() waits for this section before it waits for the work item. */
	rcu_read_lock();
	xa_for_each(&table->qps, qpn, qp) {
		if (qp->scq == cq || qp->rcq == cq)
			kiw_qp_todo(qp, KIW_QP_TODO_FATAL);
	}
	rcu_read_unlock();
}
