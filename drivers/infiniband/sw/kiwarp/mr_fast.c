// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Fast registration: RDMA verbs' way of making memory known by work requests.
 *
 * Owns: &struct kiw_fast, that is the page lists of a region and the count of those who
 * use it. The consumer maps memory (kiw_fast_map()) whenever it likes: that touches the
 * list for the next registration only. The transmit engine executes the work requests
 * that register and invalidate, in the order of the send queue; the receive engine
 * invalidates for the peer.
 *
 * Why nothing touches memory whose invalidation has completed. A user first counts
 * itself in, then looks whether the STag is valid (kiw_mr_use()); an invalidation first
 * takes the STag away, then waits until nobody is counted. Both have a full barrier in
 * between, so either the user sees the STag gone, or the invalidation sees the user. A
 * user has BHs off and copies one segment at most, so the wait is short, and it does not
 * sleep. A new registration needs an invalid region, hence one without users: those who
 * count themselves in meanwhile go away without having looked at more than the STag.
 *
 * Two QPs may execute such work requests upon one region at once, because a peer may name
 * any region of the protection domain: they take turns, by a spinlock. Who holds it waits
 * for users, and users wait for nobody.
 */
#include "mr_fast.h"

#include <linux/log2.h>
#include <linux/minmax.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "trace.h"

/**
 * kiw_fast_alloc() - what a fast-registration region needs
 * @max_pages: most pages of a registration, 1..%KIW_FAST_MAX_PAGES
 *
 * Context: process, may sleep.
 * Return: to be given to kiw_fast_free(), or NULL.
 */
struct kiw_fast *kiw_fast_alloc(u32 max_pages)
{
	struct kiw_fast *fast;

	fast = kzalloc(sizeof(*fast), GFP_KERNEL);
	if (!fast)
		return NULL;
	fast->mapped = kvcalloc(2 * max_pages, sizeof(*fast->mapped), GFP_KERNEL);
	if (!fast->mapped) {
		kfree(fast);
		return NULL;
	}
	spin_lock_init(&fast->lock);
	fast->pages = fast->mapped + max_pages;
	fast->max_pages = max_pages;
	return fast;
}

/**
 * kiw_fast_free() - undo kiw_fast_alloc()
 * @fast: nobody uses it any more; NULL is fine
 *
 * Context: process, may sleep.
 */
void kiw_fast_free(struct kiw_fast *fast)
{
	if (!fast)
		return;
	kvfree(fast->mapped);
	kfree(fast);
}

static int set_page(struct ib_mr *ibmr, u64 addr)
{
	struct kiw_fast *fast = to_kiw_mr(ibmr)->fast;

	if (fast->num_mapped == fast->max_pages)
		return -ENOMEM;
	fast->mapped[fast->num_mapped++] = addr;
	return 0;
}

/**
 * kiw_fast_map() - name the memory of the next registration
 * @mr: of this kind; its @ib.page_size is set
 * @sg: mapped for the device, which means kernel addresses
 * @num: entries
 * @offset: octets to skip in the first; set to where the first entry that found no room
 *	goes on; may be NULL
 *
 * @mr->ib.iova is set to what peers are to name the first octet by: its offset in its page,
 * so that they are not told kernel addresses. The consumer may change it until it posts
 * the registration.
 *
 * Context: any; serialised by the consumer per region.
 * Return: entries that found room, or -EINVAL for a page size we do not do.
 */
int kiw_fast_map(struct kiw_mr *mr, struct scatterlist *sg, int num, unsigned int *offset)
{
	int ret;

	if (!is_power_of_2(mr->ib.page_size) || mr->ib.page_size < SECTOR_SIZE)
		return -EINVAL;
	mr->fast->num_mapped = 0;
	ret = ib_sg_to_pages(&mr->ib, sg, num, offset, set_page);
	mr->ib.iova &= mr->ib.page_size - 1;
	mr->fast->mapped_offset = mr->ib.iova;
	return ret;
}

/* Take what the consumer has mapped; false: it does not cover what it is to cover */
static bool take_mapping(struct kiw_mr *mr)
{
	struct kiw_fast *fast = mr->fast;
	u64 room = (u64)fast->num_mapped * mr->ib.page_size;

	if (!fast->num_mapped || mr->ib.length > room - fast->mapped_offset ||
	    mr->ib.iova + mr->ib.length < mr->ib.iova)
		return false;
	memcpy(fast->pages, fast->mapped, fast->num_mapped * sizeof(*fast->pages));
	fast->page_size = mr->ib.page_size;
	fast->first_offset = fast->mapped_offset;
	mr->base = mr->ib.iova;
	mr->length = mr->ib.length;
	return true;
}

/* The region at the index of @stag, valid or not */
static struct kiw_mr *find(struct kiw_mr_table *table, const struct ib_pd *pd, u32 stag,
			   enum kiw_mem_fault *fault)
{
	struct kiw_mr *mr = kiw_mr_at(table, stag);

	*fault = KIW_MEM_STAG;
	if (!mr)
		return NULL;
	if (mr->ib.pd != pd)
		*fault = KIW_MEM_ASSOC;
	else if (!mr->fast)
		*fault = KIW_MEM_ACCESS;
	else
		return mr;
	return NULL;
}

static void trace_fast(const struct kiw_mr *mr, u32 stag, const char *what)
{
	trace_kiw_mr(dev_name(&mr->ib.device->dev), stag, what, mr->base, mr->length, mr->access);
}

static void grant(struct kiw_mr *mr, u32 qpn, u32 stag, int access)
{
	mr->access = access;
	mr->fast->last = stag;
	mr->fast->qpn = qpn;
	/* Pairs with kiw_mr_use(): who sees the STag sees what it names. */
	smp_store_release(&mr->stag, stag);
	trace_fast(mr, stag, "registered by a work request");
}

/**
 * kiw_fast_register() - execute a work request that registers memory
 * @table: of the device
 * @qp: whose work request it is
 * @stag: index of the region, and the key it is to have from now on
 * @access: enum ib_access_flags granted
 *
 * Context: within a section of @table, BHs off.
 * Return: %KIW_MEM_OK; %KIW_MEM_STAG: no such region, or it is valid; %KIW_MEM_ASSOC:
 * another PD's; %KIW_MEM_ACCESS: not of this kind; %KIW_MEM_BOUNDS: what was mapped for
 * it is less than its length.
 */
enum kiw_mem_fault kiw_fast_register(struct kiw_mr_table *table, const struct ib_qp *qp,
				     u32 stag, int access)
{
	enum kiw_mem_fault fault;
	struct kiw_mr *mr;

	mr = find(table, qp->pd, stag, &fault);
	if (!mr)
		return fault;
	fault = KIW_MEM_OK;
	spin_lock(&mr->fast->lock);
	if (mr->stag)
		fault = KIW_MEM_STAG;
	else if (!take_mapping(mr))
		fault = KIW_MEM_BOUNDS;
	else
		grant(mr, qp->qp_num, stag, access);
	spin_unlock(&mr->fast->lock);
	return fault;
}

/*
 * The consumer may have decided to invalidate before it hears that the peer has done so.
 * There is nothing left to do then, and nothing wrong. A peer may not be late, RFC 5040 7.2.
 */
static bool is_revoked(const struct kiw_mr *mr, u32 stag, int rights)
{
	return !rights && !mr->stag && stag && mr->fast->last == stag;
}

/*
 * Other QPs of the protection domain can share an STag. What one of their peers could end,
 * it could end for the others: RFC 5040 8.1.1 (7). So a registration is of its stream there.
 */
static enum kiw_mem_fault revoke(struct kiw_mr *mr, u32 qpn, u32 stag, int rights)
{
	if (is_revoked(mr, stag, rights))
		return KIW_MEM_OK;
	if (!stag || mr->stag != stag)
		return KIW_MEM_STAG;
	if (rights && mr->fast->qpn != qpn)
		return KIW_MEM_ASSOC;
	if (rights && !(mr->access & rights))
		return KIW_MEM_ACCESS;
	WRITE_ONCE(mr->stag, 0);
	/* Pairs with kiw_mr_use(). */
	smp_mb();
	while (atomic_read_acquire(&mr->fast->users))
		cpu_relax();
	trace_fast(mr, stag, rights ? "invalidated by the peer" : "invalidated");
	return KIW_MEM_OK;
}

/**
 * kiw_fast_invalidate() - end a registration
 * @table: of the device
 * @qp: whose work request it is, or whose peer asks for it
 * @stag: all 32 bits must match
 * @rights: enum ib_access_flags of which the registration must grant one, for the peer; 0
 *	for the consumer, whom it does not matter that the peer was faster, nor which QP of
 *	the protection domain has registered it
 *
 * When it returns nothing touches the memory any more.
 *
 * Context: within a section of @table, BHs off; not while using the region.
 * Return: %KIW_MEM_OK; %KIW_MEM_STAG: no such STag, or not valid; %KIW_MEM_ASSOC:
 * another PD's, or for the peer another QP's; %KIW_MEM_ACCESS: not of this kind, or
 * without those rights.
 */
enum kiw_mem_fault kiw_fast_invalidate(struct kiw_mr_table *table, const struct ib_qp *qp,
				       u32 stag, int rights)
{
	enum kiw_mem_fault fault;
	struct kiw_mr *mr;

	mr = find(table, qp->pd, stag, &fault);
	if (!mr)
		return fault;
	spin_lock(&mr->fast->lock);
	fault = revoke(mr, qp->qp_num, stag, rights);
	spin_unlock(&mr->fast->lock);
	return fault;
}

/* The kernel address of @pos, and in *@len how much of it lies in one piece */
static void *piece(const struct kiw_fast *fast, u64 pos, u32 *len)
{
	u32 in_page = pos & (fast->page_size - 1);

	*len = min(*len, fast->page_size - in_page);
	return (void *)(uintptr_t)(fast->pages[pos >> ilog2(fast->page_size)] + in_page);
}

/**
 * kiw_fast_copy_to() - write to a region's memory
 * @fast: of a region in use, see kiw_mr_use()
 * @offset: octets from the start of the region; with @len, checked by the caller
 * @src: what
 * @len: octets
 *
 * Context: any.
 */
void kiw_fast_copy_to(const struct kiw_fast *fast, u64 offset, const void *src, u32 len)
{
	u64 pos = fast->first_offset + offset;
	void *dst;
	u32 n;

	for (; len; len -= n, pos += n, src += n) {
		n = len;
		dst = piece(fast, pos, &n);
		memcpy(dst, src, n);
	}
}

/**
 * kiw_fast_copy_from() - read from a region's memory
 * @fast: of a region in use, see kiw_mr_use()
 * @offset: octets from the start of the region; with @len, checked by the caller
 * @dst: where to
 * @len: octets
 *
 * Context: any.
 */
void kiw_fast_copy_from(const struct kiw_fast *fast, u64 offset, void *dst, u32 len)
{
	u64 pos = fast->first_offset + offset;
	void *src;
	u32 n;

	for (; len; len -= n, pos += n, dst += n) {
		n = len;
		src = piece(fast, pos, &n);
		memcpy(dst, src, n);
	}
}
