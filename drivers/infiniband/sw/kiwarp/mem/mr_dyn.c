// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * STags that work requests make valid and invalid.
 *
 * Owns: the count of an STag's users, and the order in which STags become valid and invalid. The
 * transmit engine executes the work requests, in the order of the send queue. The receive engine
 * invalidates on behalf of the peer, and the sink of a Read with invalidation. mr_fast.c and
 * mr_window.c say which memory an STag stands for.
 *
 * Once an invalidation has completed, nothing touches the memory by the STag. Code that is about to
 * copy to or from the memory is a user: it first increments the user count, then checks whether the
 * STag is valid (kiw_mr_use()). An invalidation first clears the STag, then waits until the count
 * is zero. Both have a full barrier in between, so either the user sees that the STag is invalid,
 * or the invalidation sees the user. A user runs with BHs off and does not sleep. After the STag
 * has become invalid, it copies at most one received segment or one batch to send. So the wait is
 * short. What an STag stands for changes only while it is invalid and nothing touches memory by it.
 * A user that increments the count during such a change finds the STag invalid, and decrements the
 * count without touching memory.
 *
 * Two QPs may change one STag at the same time: both belong to its protection domain. A spinlock
 * serialises them. Its holder waits for users, and users wait for nothing, so this cannot deadlock.
 */
#include "mr_dyn.h"

#include "trace.h"

/**
 * kiw_dyn_init() - initialise the part
 * @dyn: zeroed
 * @is_private: only the stream that makes the STag valid may use it
 *
 * Context: any.
 */
void kiw_dyn_init(struct kiw_dyn *dyn, bool is_private)
{
	spin_lock_init(&dyn->lock);
	dyn->is_private = is_private;
}

/**
 * kiw_dyn_let_go() - unbind a window from its region, if it is bound to one
 * @dyn: of a window, or of a fast region, which is never bound; nobody uses its memory any more
 *
 * Context: any; @dyn->lock held, or nobody else can find the window.
 */
void kiw_dyn_let_go(struct kiw_dyn *dyn)
{
	if (!dyn->region)
		return;
	/* Pairs with kiw_mr_close(): all accesses to the memory come before it is freed. */
	atomic_dec_return_release(&dyn->region->windows);
	dyn->region = NULL;
}

/**
 * kiw_dyn_find() - find the region or window that a work request makes valid or invalid
 * @section: the current section of the data path
 * @pd: protection domain of the QP
 * @stag: its key byte is ignored
 * @fault: set if NULL is returned: %KIW_MEM_STAG: no such index; %KIW_MEM_ASSOC: it belongs to
 *	another PD; %KIW_MEM_ACCESS: a region that only deregistration makes invalid
 *
 * Context: within @section, BHs off.
 * Return: the fast region or window, valid or not, or NULL.
 */
struct kiw_mr *kiw_dyn_find(const struct kiw_mr_section *section, const struct ib_pd *pd, u32 stag,
			    enum kiw_mem_fault *fault)
{
	struct kiw_mr *mr = kiw_mr_at(section->table, stag);

	*fault = KIW_MEM_STAG;
	if (!mr)
		return NULL;
	if (mr->ib.pd != pd)
		*fault = KIW_MEM_ASSOC;
	else if (!mr->dyn)
		*fault = KIW_MEM_ACCESS;
	else
		return mr;
	return NULL;
}

static void dyn_trace(const struct kiw_mr *mr, u32 stag, const char *what)
{
	trace_kiw_mr(dev_name(&mr->ib.device->dev), stag, what, mr->base + mr->start,
		     mr->length - mr->start, mr->access & KIW_ACCESS_GRANTED);
}

/**
 * kiw_dyn_grant() - make an STag valid
 * @mr: invalid; the memory that it stands for has been set
 * @stream: the stream of the work request
 * @stag: the index of @mr, with the key that the consumer has chosen
 * @access: enum ib_access_flags granted; fast region: and %KIW_ACCESS_LOCAL_READ
 * @what: for the trace
 *
 * Context: within a section of the table, BHs off; @mr->dyn->lock held.
 */
void kiw_dyn_grant(struct kiw_mr *mr, u64 stream, u32 stag, int access, const char *what)
{
	lockdep_assert_held(&mr->dyn->lock);
	mr->access = access;
	mr->dyn->last = stag;
	mr->dyn->stream = stream;
	/* Pairs with mr_enter(): a user that sees the STag also sees what it stands for. */
	smp_store_release(&mr->stag, stag);
	dyn_trace(mr, stag, what);
}

/**
 * kiw_dyn_revoke() - make an STag invalid, if it is valid, and wait for its users
 * @mr: the fast region or window; it no longer keeps a region busy
 *
 * Context: within a section of the table, BHs off; @mr->dyn->lock held; not while using @mr.
 */
void kiw_dyn_revoke(struct kiw_mr *mr)
{
	lockdep_assert_held(&mr->dyn->lock);
	WRITE_ONCE(mr->stag, 0);
	/* Pairs with the barrier in mr_enter(). */
	smp_mb();
	while (atomic_read_acquire(&mr->dyn->users))
		cpu_relax();
	kiw_dyn_let_go(mr->dyn);
}

/*
 * Has the STag that the consumer invalidates been invalidated already? That is no error: the peer
 * may have done so, and the consumer may post its own invalidation before it learns of that. For a
 * peer it is an error, RFC 5040 7.2.
 */
static bool dyn_is_revoked(const struct kiw_mr *mr, u32 stag, int rights)
{
	return !rights && !mr->stag && stag && mr->dyn->last == stag;
}

/*
 * A peer may invalidate an STag only if a work request of the peer's stream has made it valid.
 * Other streams of the protection domain may have given the STag to their peers, which would lose
 * it, too: RFC 5040 8.1.1 (7).
 */
static enum kiw_mem_fault dyn_invalidate(const struct kiw_mr_section *section, struct kiw_mr *mr,
					 u32 stag, int rights)
{
	if (dyn_is_revoked(mr, stag, rights))
		return KIW_MEM_OK;
	if (!stag || mr->stag != stag)
		return KIW_MEM_STAG;
	if (rights && mr->dyn->stream != section->stream)
		return KIW_MEM_ASSOC;
	if (rights && !(mr->access & rights))
		return KIW_MEM_ACCESS;
	kiw_dyn_revoke(mr);
	dyn_trace(mr, stag, rights ? "invalidated by the peer" : "invalidated");
	return KIW_MEM_OK;
}

/**
 * kiw_mr_invalidate() - end a fast registration, or the binding of a window of type 2
 * @section: the current section of the data path; for the peer: of the stream it is connected with
 * @pd: protection domain of the QP
 * @stag: all 32 bits must match
 * @rights: for the peer: enum ib_access_flags, of which the STag must grant one; for the consumer:
 *	0. The consumer may invalidate what any QP of the protection domain has made valid, and the
 *	STag that was made valid last if it has been invalidated already
 *
 * A window of type 1 becomes invalid only when it is bound anew or to nothing, or deallocated.
 * After success, nothing accesses the memory by @stag any more.
 *
 * Context: within @section, BHs off; not while using what @stag stands for.
 * Return: %KIW_MEM_OK; %KIW_MEM_STAG: no such STag, or not valid; %KIW_MEM_ASSOC: it belongs to
 * another PD, or, for the peer, to another stream; %KIW_MEM_ACCESS: neither a fast region nor a
 * window of type 2, or without those rights.
 */
enum kiw_mem_fault kiw_mr_invalidate(const struct kiw_mr_section *section, const struct ib_pd *pd,
				     u32 stag, int rights)
{
	enum kiw_mem_fault fault;
	struct kiw_mr *mr;

	mr = kiw_dyn_find(section, pd, stag, &fault);
	if (!mr)
		return fault;
	if (!mr->fast && !mr->dyn->is_private)
		return KIW_MEM_ACCESS;
	spin_lock(&mr->dyn->lock);
	fault = dyn_invalidate(section, mr, stag, rights);
	spin_unlock(&mr->dyn->lock);
	return fault;
}
