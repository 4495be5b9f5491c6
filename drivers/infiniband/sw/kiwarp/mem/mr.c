// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The STag table, and the right to access memory by STag.
 *
 * Owns: table indices and STags. The code that publishes an MR frees it after kiw_mr_retract().
 *
 * Why this is safe without a reference count. The data path looks up an STag and copies inside
 * one section, that is, a read-side critical section of the table's SRCU.
 * kiw_mr_retract() removes the MR from the table, so a section that begins later does not find it.
 * Then it waits until every section that was running has ended. When it returns, the data path does
 * not use the MR, and cannot find it any more.
 *
 * Locks: the xarray's own, taken in process context only. xa_load() needs only RCU, which it takes
 * itself; SRCU protects the MR that it returns.
 */
#include "mr.h"

#include <linux/random.h>

#include "mr_dyn.h"
#include "trace.h"

#define TABLE_LIMIT	XA_LIMIT(0, KIW_STAG_INDEX_MASK)

static unsigned long mr_table_index(const struct kiw_mr_table *table, u32 stag)
{
	return kiw_stag_unscramble(&table->key, kiw_stag_index(stag));
}

/**
 * kiw_mr_table_init() - initialize the table of a device
 * @table: the table
 *
 * Context: process, may sleep.
 * Return: 0 or -ENOMEM. Undone by kiw_mr_table_uninit().
 */
int kiw_mr_table_init(struct kiw_mr_table *table)
{
	int ret;

	ret = init_srcu_struct(&table->srcu);
	if (ret)
		return ret;
	xa_init_flags(&table->mrs, XA_FLAGS_ALLOC | XA_FLAGS_ACCOUNT);
	table->next = 0;
	atomic64_set(&table->streams, 0);
	get_random_bytes(&table->key, sizeof(table->key));
	/* Never hand out the index whose STag could be 0, the device's local DMA lkey */
	ret = xa_reserve(&table->mrs, mr_table_index(table, 0), GFP_KERNEL);
	/* On failure, xa_reserve() may leave nodes behind that it has allocated. */
	if (ret)
		kiw_mr_table_uninit(table);
	return ret;
}

/**
 * kiw_mr_table_uninit() - free the table of a device
 * @table: initialized by kiw_mr_table_init(); all MRs have been retracted
 *
 * Context: process, may sleep.
 */
void kiw_mr_table_uninit(struct kiw_mr_table *table)
{
	xa_destroy(&table->mrs);
	cleanup_srcu_struct(&table->srcu);
}

static void mr_trace(const struct kiw_mr *mr, const char *what)
{
	trace_kiw_mr(dev_name(&mr->ib.device->dev), mr->ib.lkey, what, mr->base + mr->start,
		     mr->length - mr->start, mr->access & KIW_ACCESS_GRANTED);
}

/**
 * kiw_mr_publish() - assign an STag to an MR and add it to the table
 * @table: the device's table
 * @mr: complete, including @mr->ib.device and @mr->ib.pd, which the core has not set yet. Sets
 *	@mr->ib.lkey and @mr->ib.rkey. The data path may use @mr as soon as it is in the table
 *
 * The key byte is random, so that a stale STag rarely matches the next MR at its index. Indices
 * are scrambled: RFC 5042 6.1.1 asks for STags that are difficult to predict.
 *
 * Context: process, may sleep.
 * Return: 0, -ENOMEM, or -EBUSY when all indices are in use.
 */
int kiw_mr_publish(struct kiw_mr_table *table, struct kiw_mr *mr)
{
	u32 index;
	u32 stag;
	int ret;

	/* Reserve the index only: a lookup must not see an MR whose STag is not set */
	ret = xa_alloc_cyclic(&table->mrs, &index, NULL, TABLE_LIMIT, &table->next, GFP_KERNEL);
	if (ret < 0)
		return ret;
	stag = kiw_stag_make(kiw_stag_scramble(&table->key, index), get_random_u8());
	mr->ib.lkey = stag;
	mr->ib.rkey = stag;
	/* A work request makes a fast region or window valid. */
	mr->stag = mr->dyn ? 0 : stag;
	/* This allocates nothing and cannot fail: the reserved index has its place. */
	ret = xa_err(xa_store(&table->mrs, index, mr, GFP_KERNEL));
	if (ret)
		xa_erase(&table->mrs, index);
	else
		mr_trace(mr, mr->dyn ? "allocated" : "registered");
	return ret;
}

/**
 * kiw_mr_retract() - invalidate an MR's STag, and remove the MR from the table
 * @table: the device's table
 * @mr: published in @table
 *
 * When it returns, the data path accesses neither @mr nor memory by it.
 *
 * Context: process, may sleep. Not inside a section of the table.
 */
void kiw_mr_retract(struct kiw_mr_table *table, struct kiw_mr *mr)
{
	/* Sections that have found @mr already should stop using it early. */
	WRITE_ONCE(mr->stag, 0);
	xa_erase(&table->mrs, mr_table_index(table, mr->ib.lkey));
	/*
	 * No section sleeps: one lasts as long as building a batch, or a run of received
	 * FPDUs. A normal grace period would gain nothing, and a process that exits may
	 * have thousands of MRs to deregister.
	 */
	synchronize_srcu_expedited(&table->srcu);
	mr_trace(mr, "deregistered");
}

/**
 * kiw_mr_new_stream() - number a stream
 * @table: the device's table
 *
 * The STags of windows of type 2 are limited to a stream (RFC 5040 8.1.1 (2)). Numbers of QPs are
 * used again, and so is a QP for another stream; these 64-bit numbers are not.
 *
 * Context: any.
 * Return: the number, not 0.
 */
u64 kiw_mr_new_stream(struct kiw_mr_table *table)
{
	return atomic64_inc_return(&table->streams);
}

/**
 * kiw_mr_close() - begin to deregister or re-register a region: no window can be bound to it
 * @mr: the region, closed already or not
 *
 * Context: any.
 * Return: true: no window is bound to it; false: there is one, and nothing has changed.
 */
bool kiw_mr_close(struct kiw_mr *mr)
{
	/* Pairs with the release in kiw_dyn_let_go(). */
	return atomic_cmpxchg(&mr->windows, 0, KIW_MR_CLOSED) <= 0;
}

/**
 * kiw_mr_reopen() - undo kiw_mr_close()
 * @mr: the region
 *
 * Context: any.
 */
void kiw_mr_reopen(struct kiw_mr *mr)
{
	atomic_set(&mr->windows, 0);
}

/**
 * kiw_mr_at() - get the MR at the index of an STag
 * @table: the device's table
 * @stag: its key byte is ignored
 *
 * Context: any but NMI, inside a section of @table.
 * Return: the MR, valid or not, which exists until the section ends; or NULL.
 */
struct kiw_mr *kiw_mr_at(struct kiw_mr_table *table, u32 stag)
{
	RCU_LOCKDEP_WARN(!srcu_read_lock_held(&table->srcu), "outside of an MR section");
	return xa_load(&table->mrs, mr_table_index(table, stag));
}

/*
 * Replaces the MR of an STag that is limited to another stream. It has no protection domain, so
 * kiw_mr_check() refuses it with the error for such STags.
 */
static struct kiw_mr mr_of_other_stream;

/*
 * Enter a fast region or window. Return: @mr; %NULL if @stag is not valid; if only another stream
 * may use @stag, a region that kiw_mr_check() refuses.
 */
static struct kiw_mr *mr_enter(const struct kiw_mr_section *section, struct kiw_mr *mr, u32 stag)
{
	struct kiw_dyn *dyn = mr->dyn;

	atomic_inc(&dyn->users);
	/* Pairs with the barrier in kiw_dyn_revoke(). */
	smp_mb__after_atomic();
	/* Pairs with the release in kiw_dyn_grant(). */
	if (!stag || smp_load_acquire(&mr->stag) != stag) {
		kiw_mr_done(mr);
		return NULL;
	}
	if (!dyn->is_private || dyn->stream == section->stream)
		return mr;
	kiw_mr_done(mr);
	return &mr_of_other_stream;
}

/**
 * kiw_mr_look_up() - slow path of kiw_mr_use(), for any region
 * @section: the current section of the data path
 * @stag: all 32 bits must match
 *
 * If the STag of the region used last has changed, its index may belong to another region by
 * now, so look in the table.
 *
 * Context: BHs off, inside @section.
 * Return: as kiw_mr_use().
 */
struct kiw_mr *kiw_mr_look_up(struct kiw_mr_section *section, u32 stag)
{
	struct kiw_mr *mr = section->last;

	if (!mr || READ_ONCE(mr->stag) != stag) {
		mr = kiw_mr_at(section->table, stag);
		if (!mr)
			return NULL;
		section->last = mr;
	}
	if (mr->dyn)
		return mr_enter(section, mr, stag);
	return stag && READ_ONCE(mr->stag) == stag ? mr : NULL;
}

/**
 * kiw_mr_done_dyn() - kiw_mr_done() for a fast region or window
 * @mr: from kiw_mr_use()
 *
 * Context: BHs off, in the section of kiw_mr_use().
 */
void kiw_mr_done_dyn(struct kiw_mr *mr)
{
	atomic_dec_return_release(&mr->dyn->users);
}

static const enum kiw_perr mr_source_perrs[KIW_MEM_COUNT] = {
	[KIW_MEM_OK]		= KIW_PERR_NONE,
	[KIW_MEM_STAG]		= KIW_PERR_RDMAP_STAG,
	[KIW_MEM_ASSOC]		= KIW_PERR_RDMAP_STAG_ASSOC,
	[KIW_MEM_ACCESS]	= KIW_PERR_RDMAP_ACCESS,
	[KIW_MEM_WRAP]		= KIW_PERR_RDMAP_TO_WRAP,
	[KIW_MEM_BOUNDS]	= KIW_PERR_RDMAP_BOUNDS,
	[KIW_MEM_ALIGN]		= KIW_PERR_RDMAP_ALIGN,
	[KIW_MEM_LOST]		= KIW_PERR_RDMAP_CATASTROPHIC,
};

/**
 * kiw_mr_source_perr() - error to report for memory that the peer may not read or operate on
 * @fault: the reason
 *
 * RFC 5040 7.2; RFC 7306 8.2 for the alignment.
 *
 * Context: any.
 * Return: the error for the Terminate.
 */
enum kiw_perr kiw_mr_source_perr(enum kiw_mem_fault fault)
{
	return mr_source_perrs[fault];
}
