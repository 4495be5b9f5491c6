// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Memory windows of processes.
 *
 * Owns: &struct kiw_window, from allocation to deallocation, and the rules of binding.
 *
 * A bound window keeps its region busy: the region counts its windows, and cannot be deregistered
 * while there are any (kiw_mr_close()). So the memory of a window that is in use exists. A window
 * drops its region when the window is invalid and has no users any more. Deallocation takes the
 * window out of the table first and waits for all sections, so the window cannot be bound again.
 *
 * The STag of a window cannot be used as an lkey: a window has no local rights, not even
 * %KIW_ACCESS_LOCAL_READ.
 */
#include "mr_window.h"

#include <linux/slab.h>

#include "queue/wr.h"
#include "trace.h"

/* The rights that a window may have; the region need not have any of them */
#define WINDOW_RIGHTS \
	(IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_ATOMIC)

/**
 * kiw_window_alloc() - allocate a window, which is not bound
 * @table: the device's table
 * @pd: protection domain
 * @is_type_2: only the stream that binds the window may use it, and work requests and the peer may
 *	invalidate it; otherwise every QP of the protection domain may use it
 *
 * Context: process, may sleep.
 * Return: the window, with its index in @mr.ib.rkey, or ERR_PTR(): -ENOMEM or -EBUSY, as
 * kiw_mr_publish().
 */
struct kiw_window *kiw_window_alloc(struct kiw_mr_table *table, struct ib_pd *pd, bool is_type_2)
{
	struct kiw_window *window;
	int ret;

	window = kzalloc(sizeof(*window), GFP_KERNEL_ACCOUNT);
	if (!window)
		return ERR_PTR(-ENOMEM);
	window->mr.ib.device = pd->device;
	window->mr.ib.pd = pd;
	window->mr.dyn = &window->dyn;
	kiw_dyn_init(&window->dyn, is_type_2);
	ret = kiw_mr_publish(table, &window->mr);
	if (ret) {
		kfree(window);
		return ERR_PTR(ret);
	}
	return window;
}

/**
 * kiw_window_free() - free a window, bound or not
 * @table: the device's table
 * @window: from kiw_window_alloc()
 *
 * When it returns, nothing accesses memory by the window's STag.
 *
 * Context: process, may sleep.
 */
void kiw_window_free(struct kiw_mr_table *table, struct kiw_window *window)
{
	kiw_mr_retract(table, &window->mr);
	kiw_dyn_let_go(&window->dyn);
	kfree(window);
}

/* LOCAL_WRITE is accepted, as for a region, but has no meaning for a window. */
#define WINDOW_FLAGS		(WINDOW_RIGHTS | IB_ACCESS_LOCAL_WRITE)

/* Which rights a region has to have for a window that grants @access */
static int window_needs(int access)
{
	if (access & (IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_ATOMIC))
		return IB_ACCESS_MW_BIND | IB_ACCESS_LOCAL_WRITE;
	return IB_ACCESS_MW_BIND;
}

/*
 * Until a region is on the list of its file, the core may abort its creation, because it cannot
 * deliver the response. It deregisters the region then, and warns if a window prevents that. Before
 * a region is freed, kiw_mr_retract() waits for sections, and the core frees @uobject later.
 *
 * A region that was re-registered has the @uobject of the former one, which the core frees at once.
 */
static bool window_region_can_fail(const struct kiw_mr *region)
{
	const struct ib_uobject *uobject;

	if (region->is_settled)
		return false;
	uobject = READ_ONCE(region->ib.uobject);
	return !uobject || list_empty(&uobject->list);
}

/* The region to bind to. NULL: it may not be bound, and @fault says why. */
static struct kiw_mr *window_region(const struct kiw_mr_section *section, const struct ib_pd *pd,
				    const struct kiw_bind *bind, enum kiw_mem_fault *fault)
{
	struct kiw_mr *region = kiw_mr_at(section->table, bind->lkey);

	*fault = KIW_MEM_STAG;
	if (!region || !bind->lkey || READ_ONCE(region->stag) != bind->lkey)
		return NULL;
	*fault = kiw_mr_check(region, pd, window_needs(bind->access), bind->addr, bind->length);
	if (*fault != KIW_MEM_OK)
		return NULL;
	/*
	 * Only memory of processes, and no window of a window. kiw_mr_check() has refused both
	 * already: a window does not have %IB_ACCESS_MW_BIND, and a fast region or a DMA region is
	 * in a protection domain of the kernel.
	 */
	if (WARN_ON_ONCE(region->dyn || !(region->umem || region->dmabuf))) {
		*fault = KIW_MEM_ACCESS;
		return NULL;
	}
	if (window_region_can_fail(region)) {
		*fault = KIW_MEM_STAG;
		return NULL;
	}
	return region;
}

/* Can a window of this type be bound like this at all? */
static enum kiw_mem_fault window_check(const struct kiw_mr *mr, const struct kiw_bind *bind)
{
	int allowed = WINDOW_FLAGS;

	if (mr->dyn->is_private)
		allowed |= IB_ZERO_BASED;
	if (bind->access & ~allowed)
		return KIW_MEM_ACCESS;
	if (!bind->length)
		return KIW_MEM_BOUNDS;
	return mr->dyn->is_private && mr->stag ? KIW_MEM_STAG : KIW_MEM_OK;
}

/*
 * Make @mr cover a part of @region, which counts the window already. @mr->start and @mr->length
 * count from the start of the region's memory. @mr->base is the tagged offset of that start; it
 * may wrap if the window is zero-based.
 */
static void window_cover(struct kiw_mr *mr, struct kiw_mr *region, const struct kiw_bind *bind)
{
	bool is_zero_based = bind->access & IB_ZERO_BASED;

	mr->umem = region->umem;
	mr->dmabuf = region->dmabuf;
	mr->start = bind->addr - region->base;
	mr->length = mr->start + bind->length;
	mr->base = is_zero_based ? -mr->start : region->base;
	mr->dyn->region = region;
}

/* Bind a window of type 1 to nothing. */
static void window_unbind(struct kiw_mr *mr)
{
	const u32 stag = mr->stag;

	kiw_dyn_revoke(mr);
	if (stag)
		trace_kiw_mr(dev_name(&mr->ib.device->dev), stag, "unbound", mr->base + mr->start,
			     mr->length - mr->start, mr->access & KIW_ACCESS_GRANTED);
}

static enum kiw_mem_fault window_bind(const struct kiw_mr_section *section, struct kiw_mr *mr,
				      u32 stag, const struct kiw_bind *bind)
{
	enum kiw_mem_fault fault;
	struct kiw_mr *region;

	if (!bind->length && !mr->dyn->is_private) {
		window_unbind(mr);
		return KIW_MEM_OK;
	}
	fault = window_check(mr, bind);
	if (fault != KIW_MEM_OK)
		return fault;
	region = window_region(section, mr->ib.pd, bind, &fault);
	if (!region)
		return fault;
	/* Negative: it is being deregistered or re-registered. */
	if (!atomic_inc_unless_negative(&region->windows))
		return KIW_MEM_STAG;
	kiw_dyn_revoke(mr);
	window_cover(mr, region, bind);
	kiw_dyn_grant(mr, section->stream, stag, bind->access & WINDOW_RIGHTS, "bound");
	return KIW_MEM_OK;
}

/**
 * kiw_window_bind() - execute a work request that binds a window
 * @section: the current section of the data path, of the stream of the work request
 * @pd: protection domain of the QP
 * @stag: index of the window, with its new key
 * @bind: what to bind it to
 *
 * A window of type 1 may be bound already. Length 0 makes it invalid. After success, nothing
 * accesses the memory of the former binding by the former STag; after a fault that binding remains.
 * A window of type 2 must be invalid.
 *
 * Context: within @section, BHs off.
 * Return: %KIW_MEM_OK; %KIW_MEM_STAG: no such window or region, @bind->rkey is of another window, a
 * window of type 2 is valid, or the region is being deregistered or re-registered; %KIW_MEM_ASSOC:
 * one of them belongs to another PD; %KIW_MEM_ACCESS: not a window, not the memory of a process, a
 * region without the rights that this binding needs, or flags that a window cannot have;
 * %KIW_MEM_WRAP, %KIW_MEM_BOUNDS: not inside of the region, or empty.
 */
enum kiw_mem_fault kiw_window_bind(const struct kiw_mr_section *section, const struct ib_pd *pd,
				   u32 stag, const struct kiw_bind *bind)
{
	enum kiw_mem_fault fault;
	struct kiw_mr *mr;

	mr = kiw_dyn_find(section, pd, stag, &fault);
	if (!mr)
		return fault;
	if (mr->fast)
		return KIW_MEM_ACCESS;
	if (kiw_stag_index(stag) != kiw_stag_index(bind->rkey))
		return KIW_MEM_STAG;
	spin_lock(&mr->dyn->lock);
	fault = window_bind(section, mr, stag, bind);
	spin_unlock(&mr->dyn->lock);
	return fault;
}
