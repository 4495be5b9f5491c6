/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * A cursor over the SGEs of a work request, or memory that the peer reads.
 *
 * Owns: the walk over scatter/gather entries, and their checks. What was found and checked in one
 * section of the MR table is not used in the next one, because a registration may have ended in
 * between.
 */
#ifndef KIW_SGL_H
#define KIW_SGL_H

#include <linux/minmax.h>

#include "copy.h"
#include "mr.h"
#include "mr_copy.h"
#include "queue/wr.h"

/**
 * struct kiw_sgl - scatter/gather entries and a position in them
 * @section: section of the data path in which lkeys are looked up
 * @pd: protection domain of the QP
 * @dma_lkey: kernel consumers: the lkey for kernel addresses
 * @is_kernel: @dma_lkey may be used
 * @num_sge: number of entries in @sge
 * @cur: entry of the current position
 * @off: offset of the current position in that entry, in bytes
 * @sge: the entries
 */
struct kiw_sgl {
	struct kiw_mr_section *section;
	const struct ib_pd *pd;
	u32 dma_lkey;
	bool is_kernel;
	u8 num_sge;
	u8 cur;
	u32 off;
	const struct kiw_sge *sge;
};

/* Within @section, BHs off */
enum kiw_mem_fault kiw_sgl_check(const struct kiw_sgl *sgl, int access);
enum kiw_mem_fault kiw_sgl_put(struct kiw_sgl *sgl, const void *data, u32 len);

/* Any context, also outside of a section */
void kiw_sgl_seek(struct kiw_sgl *sgl, u32 offset);

/* Is it the lkey with which kernel consumers refer to any kernel address? That has no MR. */
static inline bool kiw_sgl_is_dma_lkey(const struct kiw_sgl *sgl, u32 lkey)
{
	return sgl->is_kernel && lkey == sgl->dma_lkey;
}

/**
 * kiw_sgl_find() - find and check a part of an entry
 * @sgl: the entries
 * @sge: one of them
 * @access: enum ib_access_flags needed, or %KIW_ACCESS_LOCAL_READ
 * @offset: bytes into the entry
 * @len: length in bytes
 * @mr: set to the region, to be passed to kiw_mr_done(), also when there is a fault; or to
 *	NULL: a kernel address, or a fault without a region
 *
 * Context: BHs off, inside a section of the MR table.
 * Return: %KIW_MEM_OK, or why it may not be accessed.
 */
static inline enum kiw_mem_fault kiw_sgl_find(const struct kiw_sgl *sgl,
					      const struct kiw_sge *sge, int access,
					      u32 offset, u32 len, struct kiw_mr **mr)
{
	*mr = NULL;
	if (sge->addr + offset < sge->addr)
		return KIW_MEM_WRAP;
	if (kiw_sgl_is_dma_lkey(sgl, sge->lkey))
		return KIW_MEM_OK;
	*mr = kiw_mr_use(sgl->section, sge->lkey);
	if (!*mr)
		return KIW_MEM_STAG;
	return kiw_mr_check(*mr, sgl->pd, access, sge->addr + offset, len);
}

/**
 * kiw_sgl_settle() - advance to the entry that contains the next byte
 * @sgl: entries and position
 *
 * Context: any.
 * Return: false: there is none.
 */
static inline bool kiw_sgl_settle(struct kiw_sgl *sgl)
{
	while (sgl->cur < sgl->num_sge && sgl->off == sgl->sge[sgl->cur].length) {
		sgl->cur++;
		sgl->off = 0;
	}
	return sgl->cur < sgl->num_sge;
}

/**
 * kiw_sgl_at() - find the memory at the position, to write to it
 * @sgl: entries and position; the position stays the same
 * @len: bytes wanted, at least 1; set to how many of them the entry has
 * @addr: set to their address in the region
 * @mr: set as by kiw_sgl_find()
 *
 * Context: BHs off, inside a section of the MR table.
 * Return: %KIW_MEM_OK, or why the memory may not be accessed; %KIW_MEM_BOUNDS beyond the last
 * entry.
 */
static inline enum kiw_mem_fault kiw_sgl_at(struct kiw_sgl *sgl, u32 *len, u64 *addr,
					    struct kiw_mr **mr)
{
	const struct kiw_sge *sge;

	*mr = NULL;
	if (!kiw_sgl_settle(sgl))
		return KIW_MEM_BOUNDS;
	sge = &sgl->sge[sgl->cur];
	*len = min(*len, sge->length - sgl->off);
	*addr = sge->addr + sgl->off;
	return kiw_sgl_find(sgl, sge, IB_ACCESS_LOCAL_WRITE, sgl->off, *len, mr);
}

/**
 * kiw_sgl_write() - write to the memory that kiw_sgl_at() has found
 * @mr: the region, or NULL: @addr is a kernel address
 * @addr: address in the region
 * @src: data to write
 * @len: length in bytes
 *
 * Context: any, inside the same section of the MR table.
 */
static inline void kiw_sgl_write(const struct kiw_mr *mr, u64 addr, const void *src, u32 len)
{
	if (mr)
		kiw_mr_copy_to(mr, addr, src, len);
	else
		kiw_copy((void *)(uintptr_t)addr, src, len);
}

#endif /* KIW_SGL_H */
