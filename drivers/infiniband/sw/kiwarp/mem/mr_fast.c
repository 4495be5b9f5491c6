// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Fast registration: work requests that make memory valid for RDMA.
 *
 * Owns: &struct kiw_fast, that is, the page lists of a region and the count of its users.
 * The consumer may map memory (kiw_fast_map()) at any time: that changes only the list for
 * the next registration. The transmit engine executes the work requests that register and
 * invalidate, in the order of the send queue. The receive engine invalidates on behalf of
 * the peer.
 *
 * Why nothing touches memory whose invalidation has completed. A user first increments the user
 * count, then checks whether the STag is valid (kiw_mr_use()). An invalidation first clears the
 * STag, then waits until the count is zero. Both have a full barrier in between, so either the user
 * sees that the STag is invalid, or the invalidation sees the user. A user has BHs off. After the
 * STag has become invalid it copies at most one received segment or one batch to send, so the wait
 * is short, and it does not sleep. A region can be registered only while its STag is invalid, and
 * then nothing accesses its memory: a user that increments the count in the meantime sees that the
 * STag is invalid and leaves.
 *
 * Two QPs may register or invalidate one region at the same time, because a peer may specify any
 * region of the protection domain in a Send with Invalidate. A spinlock serialises them. Its holder
 * waits for users, and users wait for nothing, so this cannot deadlock.
 */
#include "mr_fast.h"

#include <linux/log2.h>
#include <linux/minmax.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "trace.h"

/**
 * kiw_fast_alloc() - allocate the fast-registration part of a region
 * @max_pages: maximum number of pages of a registration, 1..%KIW_FAST_MAX_PAGES
 *
 * Context: process, may sleep.
 * Return: the part, to be freed with kiw_fast_free(), or NULL.
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

static int fast_set_page(struct ib_mr *ibmr, u64 addr)
{
	struct kiw_fast *fast = to_kiw_mr(ibmr)->fast;

	if (fast->num_mapped == fast->max_pages)
		return -ENOMEM;
	fast->mapped[fast->num_mapped++] = addr;
	return 0;
}

/**
 * kiw_fast_map() - set the memory of the next registration
 * @mr: a fast region; its @ib.page_size has been set
 * @sg: mapped for the device, which means kernel addresses
 * @num: number of entries in @sg
 * @offset: in: bytes to skip in the first entry; out: where to continue in the first entry that did
 *	not fit; may be NULL
 *
 * Sets @mr->ib.iova to the tagged offset that the first byte will have for peers: its offset in its
 * page, so that peers do not learn kernel addresses. The consumer may change it until it posts the
 * registration.
 *
 * Context: any; serialised by the consumer per region.
 * Return: number of entries that fit, or -EINVAL for an unsupported page size, no entries, or
 * an offset behind the first entry.
 */
int kiw_fast_map(struct kiw_mr *mr, struct scatterlist *sg, int num, unsigned int *offset)
{
	int ret;

	if (!is_power_of_2(mr->ib.page_size) || mr->ib.page_size < SECTOR_SIZE)
		return -EINVAL;
	mr->fast->num_mapped = 0;
	ret = ib_sg_to_pages(&mr->ib, sg, num, offset, fast_set_page);
	mr->ib.iova &= mr->ib.page_size - 1;
	mr->fast->mapped_offset = mr->ib.iova;
	return ret;
}

/* Take over what the consumer has mapped; false: it does not cover the region's length */
static bool fast_take_mapping(struct kiw_mr *mr)
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
static struct kiw_mr *fast_find(struct kiw_mr_table *table, const struct ib_pd *pd, u32 stag,
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

static void fast_trace(const struct kiw_mr *mr, u32 stag, const char *what)
{
	trace_kiw_mr(dev_name(&mr->ib.device->dev), stag, what, mr->base, mr->length, mr->access);
}

static void fast_grant(struct kiw_mr *mr, u32 qpn, u32 stag, int access)
{
	mr->access = access;
	mr->fast->last = stag;
	mr->fast->qpn = qpn;
	/* Pairs with kiw_mr_look_up(): a user that sees the STag also sees its registration. */
	smp_store_release(&mr->stag, stag);
	fast_trace(mr, stag, "registered by a work request");
}

/**
 * kiw_fast_register() - execute a work request that registers memory
 * @table: the device's table
 * @qp: the QP of the work request
 * @stag: index of the region, with its new key
 * @access: enum ib_access_flags granted
 *
 * Context: within a section of @table, BHs off.
 * Return: %KIW_MEM_OK; %KIW_MEM_STAG: no such region, or it is already valid;
 * %KIW_MEM_ASSOC: it belongs to another PD; %KIW_MEM_ACCESS: not a fast region;
 * %KIW_MEM_BOUNDS: the mapped memory is shorter than the region.
 */
enum kiw_mem_fault kiw_fast_register(struct kiw_mr_table *table, const struct ib_qp *qp,
				     u32 stag, int access)
{
	enum kiw_mem_fault fault;
	struct kiw_mr *mr;

	mr = fast_find(table, qp->pd, stag, &fault);
	if (!mr)
		return fault;
	fault = KIW_MEM_OK;
	spin_lock(&mr->fast->lock);
	if (mr->stag)
		fault = KIW_MEM_STAG;
	else if (!fast_take_mapping(mr))
		fault = KIW_MEM_BOUNDS;
	else
		fast_grant(mr, qp->qp_num, stag, access);
	spin_unlock(&mr->fast->lock);
	return fault;
}

/*
 * Has the STag that the consumer invalidates been invalidated already? That is no error: the peer
 * may have done so, and the consumer may post its own invalidation before it learns of that. For a
 * peer it is an error, RFC 5040 7.2.
 */
static bool fast_is_revoked(const struct kiw_mr *mr, u32 stag, int rights)
{
	return !rights && !mr->stag && stag && mr->fast->last == stag;
}

/*
 * Invalidate @stag and wait for its users. A peer may invalidate only what was registered by a work
 * request of the QP that it is connected to. Other QPs of the protection domain may have given the
 * STag to peers of theirs, which would lose it, too: RFC 5040 8.1.1 (7).
 */
static enum kiw_mem_fault fast_revoke(struct kiw_mr *mr, u32 qpn, u32 stag, int rights)
{
	if (fast_is_revoked(mr, stag, rights))
		return KIW_MEM_OK;
	if (!stag || mr->stag != stag)
		return KIW_MEM_STAG;
	if (rights && mr->fast->qpn != qpn)
		return KIW_MEM_ASSOC;
	if (rights && !(mr->access & rights))
		return KIW_MEM_ACCESS;
	WRITE_ONCE(mr->stag, 0);
	/* Pairs with the barrier in kiw_mr_look_up(). */
	smp_mb();
	while (atomic_read_acquire(&mr->fast->users))
		cpu_relax();
	fast_trace(mr, stag, rights ? "invalidated by the peer" : "invalidated");
	return KIW_MEM_OK;
}

/**
 * kiw_fast_invalidate() - end a registration
 * @table: the device's table
 * @qp: the QP of the work request; for the peer: the QP that it is connected to
 * @stag: all 32 bits must match
 * @rights: for the peer: enum ib_access_flags, of which the registration must grant one; for
 *	the consumer: 0. The consumer may invalidate what any QP of the protection domain has
 *	registered, and what the peer has just invalidated
 *
 * When it returns, nothing accesses the memory any more.
 *
 * Context: within a section of @table, BHs off; not while using the region.
 * Return: %KIW_MEM_OK; %KIW_MEM_STAG: no such STag, or not valid; %KIW_MEM_ASSOC: it
 * belongs to another PD, or, for the peer, to another QP; %KIW_MEM_ACCESS: not a fast
 * region, or without those rights.
 */
enum kiw_mem_fault kiw_fast_invalidate(struct kiw_mr_table *table, const struct ib_qp *qp,
				       u32 stag, int rights)
{
	enum kiw_mem_fault fault;
	struct kiw_mr *mr;

	mr = fast_find(table, qp->pd, stag, &fault);
	if (!mr)
		return fault;
	spin_lock(&mr->fast->lock);
	fault = fast_revoke(mr, qp->qp_num, stag, rights);
	spin_unlock(&mr->fast->lock);
	return fault;
}

/* The kernel address of @pos; limits *@len to what is contiguous there */
static void *fast_piece(const struct kiw_fast *fast, u64 pos, u32 *len)
{
	u32 in_page = pos & (fast->page_size - 1);

	*len = min(*len, fast->page_size - in_page);
	return (void *)(uintptr_t)(fast->pages[pos >> ilog2(fast->page_size)] + in_page);
}

/**
 * kiw_fast_address() - get the kernel address of a byte of a region
 * @fast: of a region in use, see kiw_mr_use()
 * @offset: bytes from the start of the region, checked by the caller
 *
 * Context: any.
 * Return: the address; only the bytes up to the end of its page follow it.
 */
void *kiw_fast_address(const struct kiw_fast *fast, u64 offset)
{
	u32 len = 1;

	return fast_piece(fast, fast->first_offset + offset, &len);
}

/**
 * kiw_fast_copy_to() - write to a region's memory
 * @fast: of a region in use, see kiw_mr_use()
 * @offset: bytes from the start of the region; with @len, checked by the caller
 * @src: data to write
 * @len: length in bytes
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
		dst = fast_piece(fast, pos, &n);
		memcpy(dst, src, n);
	}
}

/**
 * kiw_fast_copy_from() - read from a region's memory
 * @fast: of a region in use, see kiw_mr_use()
 * @offset: bytes from the start of the region; with @len, checked by the caller
 * @dst: destination
 * @len: length in bytes
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
		src = fast_piece(fast, pos, &n);
		memcpy(dst, src, n);
	}
}
