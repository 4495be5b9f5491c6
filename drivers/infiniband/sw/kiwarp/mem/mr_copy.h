/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Access to registered memory: pinned pages, dma-buf, fast registration, DMA regions. */
#ifndef KIW_MR_COPY_H
#define KIW_MR_COPY_H

#include "mr.h"
#include "umem.h"

/* Within a section of the MR table */
void kiw_mr_copy_to_slow(const struct kiw_mr *mr, u64 addr, const void *src, u32 len);
void kiw_mr_copy_from(const struct kiw_mr *mr, u64 addr, void *dst, u32 len);
void *kiw_mr_map_slow(const struct kiw_mr *mr, u64 addr, u32 *len);
struct page *kiw_mr_page(const struct kiw_mr *mr, u64 addr, u32 *in_page);

/**
 * kiw_mr_copy_to() - write to an MR's memory
 * @mr: from kiw_mr_use()
 * @addr: tagged offset; with @len, checked by kiw_mr_check() in the same section
 * @src: data to write
 * @len: length in bytes
 *
 * Context: any, inside a section of the table.
 */
static inline void kiw_mr_copy_to(const struct kiw_mr *mr, u64 addr, const void *src, u32 len)
{
	if (mr->umem)
		kiw_umem_copy_to(mr->umem, addr - mr->base, src, len);
	else
		kiw_mr_copy_to_slow(mr, addr, src, len);
}

/**
 * kiw_mr_map() - make a part of an MR's memory accessible
 * @mr: from kiw_mr_use()
 * @addr: tagged offset; with *@len, checked by kiw_mr_check() in the same section
 * @len: in: length in bytes; out: how much of that is accessible, at least 1
 *
 * For those who copy in pieces that have nothing to do with pages.
 *
 * Context: any, inside a section of the table. The caller must not sleep before kiw_mr_unmap().
 * Return: the address.
 */
static inline void *kiw_mr_map(const struct kiw_mr *mr, u64 addr, u32 *len)
{
	if (mr->umem)
		return kiw_umem_map(mr->umem, addr - mr->base, len);
	return kiw_mr_map_slow(mr, addr, len);
}

/**
 * kiw_mr_unmap() - end the access that kiw_mr_map() has begun
 * @mr: as for kiw_mr_map()
 * @addr: likewise
 * @data: from kiw_mr_map()
 * @is_written: the caller has written to it
 *
 * Context: any, inside the same section of the table.
 */
static inline void kiw_mr_unmap(const struct kiw_mr *mr, u64 addr, void *data, bool is_written)
{
	if (mr->umem)
		kiw_umem_unmap(mr->umem, addr - mr->base, data, is_written);
}

#endif /* KIW_MR_COPY_H */
