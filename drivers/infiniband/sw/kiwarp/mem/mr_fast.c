// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Fast registration: work requests that make memory of kernel consumers valid for RDMA.
 *
 * Owns: &struct kiw_fast, that is, the page lists of a region. The consumer may map memory
 * (kiw_fast_map()) while the region is registered: that changes only what the next registration
 * will take. It must not do so between posting a registration and its execution: no lock protects
 * that. The transmit engine executes the work requests that register. mr_dyn.c makes a registration
 * valid and invalid, and explains why nothing touches its memory before and afterwards.
 */
#include "mr_fast.h"

#include <linux/log2.h>
#include <linux/minmax.h>
#include <linux/slab.h>
#include <linux/string.h>

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
	kiw_dyn_init(&fast->dyn, false);
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
 * @offset: in: bytes to skip in the first entry; out: where to continue in the first entry that was
 *	not mapped to its end; may be NULL
 *
 * Sets @mr->ib.iova to the tagged offset that the first byte will have for peers: its offset in its
 * page, so that peers do not learn kernel addresses. The consumer may change it until it posts the
 * registration.
 *
 * Context: any; serialised by the consumer per region.
 * Return: number of entries mapped to their ends; -EINVAL for an unsupported page size; or an error
 * of ib_sg_to_pages().
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

/* Use the memory that the consumer has mapped; false: it is too short, or offsets would wrap */
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

/**
 * kiw_fast_register() - execute a work request that registers memory
 * @section: the current section of the data path, of the stream of the work request
 * @pd: protection domain of the QP
 * @stag: index of the region, with its new key
 * @access: enum ib_access_flags granted
 *
 * Context: within @section, BHs off.
 * Return: %KIW_MEM_OK; %KIW_MEM_STAG: no such region, or it is already valid;
 * %KIW_MEM_ASSOC: it belongs to another PD; %KIW_MEM_ACCESS: not a fast region;
 * %KIW_MEM_BOUNDS: no memory is mapped, or less than the region's length, or the region extends to
 * 2^64 or beyond.
 */
enum kiw_mem_fault kiw_fast_register(const struct kiw_mr_section *section, const struct ib_pd *pd,
				     u32 stag, int access)
{
	enum kiw_mem_fault fault;
	struct kiw_mr *mr;

	mr = kiw_dyn_find(section, pd, stag, &fault);
	if (!mr)
		return fault;
	if (!mr->fast)
		return KIW_MEM_ACCESS;
	fault = KIW_MEM_OK;
	spin_lock(&mr->dyn->lock);
	if (mr->stag)
		fault = KIW_MEM_STAG;
	else if (!fast_take_mapping(mr))
		fault = KIW_MEM_BOUNDS;
	else
		kiw_dyn_grant(mr, section->stream, stag, access | KIW_ACCESS_LOCAL_READ,
			      "registered by a work request");
	spin_unlock(&mr->dyn->lock);
	return fault;
}

/**
 * kiw_fast_piece() - get the kernel address of a part of a region
 * @fast: of a region in use, see kiw_mr_use()
 * @offset: bytes from the start of the region; with *@len, checked by the caller
 * @len: in: length in bytes; out: how much of that is contiguous there
 *
 * Context: any.
 * Return: the address.
 */
void *kiw_fast_piece(const struct kiw_fast *fast, u64 offset, u32 *len)
{
	u64 pos = fast->first_offset + offset;
	u32 in_page = pos & (fast->page_size - 1);

	*len = min(*len, fast->page_size - in_page);
	return (void *)(uintptr_t)(fast->pages[pos >> ilog2(fast->page_size)] + in_page);
}
