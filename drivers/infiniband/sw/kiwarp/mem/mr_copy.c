// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copying to and from registered memory of any kind, and access to it in place.
 *
 * Owns: nothing. umem.c, mr_fast.c and dmabuf.c have the kinds of memory other than DMA regions.
 *
 * Runs in any context, inside a section of the MR table, without locks.
 */
#include "mr_copy.h"

#include <linux/mm.h>
#include <linux/net.h>

#include "copy.h"
#include "dmabuf.h"
#include "mr_fast.h"

/* In a DMA region, a tagged offset is a kernel virtual address (ib_uses_virt_dma()). */
static void *mr_kernel_address(u64 addr)
{
	return (void *)(uintptr_t)addr;
}

/**
 * kiw_mr_copy_to_slow() - kiw_mr_copy_to() for everything but pinned user pages
 * @mr: from kiw_mr_use()
 * @addr: tagged offset; with @len, checked by kiw_mr_check() in the same section
 * @src: data to write
 * @len: length in bytes
 *
 * Context: any, inside a section of the table.
 */
void kiw_mr_copy_to_slow(const struct kiw_mr *mr, u64 addr, const void *src, u32 len)
{
	void *dst;
	u32 here;

	for (; len; len -= here, addr += here, src += here) {
		here = len;
		dst = kiw_mr_map_slow(mr, addr, &here);
		kiw_copy(dst, src, here);
	}
}

/**
 * kiw_mr_copy_from() - read from an MR's memory
 * @mr: from kiw_mr_use()
 * @addr: tagged offset; with @len, checked by kiw_mr_check() in the same section
 * @dst: destination
 * @len: length in bytes
 *
 * Context: any, inside a section of the table.
 */
void kiw_mr_copy_from(const struct kiw_mr *mr, u64 addr, void *dst, u32 len)
{
	void *src;
	u32 here;

	if (mr->umem) {
		kiw_umem_copy_from(mr->umem, addr - mr->base, dst, len);
		return;
	}
	for (; len; len -= here, addr += here, dst += here) {
		here = len;
		src = kiw_mr_map_slow(mr, addr, &here);
		kiw_copy(dst, src, here);
	}
}

/**
 * kiw_mr_map_slow() - kiw_mr_map() for everything but pinned user pages
 * @mr: from kiw_mr_use()
 * @addr: tagged offset; with *@len, checked by kiw_mr_check() in the same section
 * @len: in: length in bytes; out: how much of that is accessible
 *
 * Context: any, inside a section of the table.
 * Return: the address.
 */
void *kiw_mr_map_slow(const struct kiw_mr *mr, u64 addr, u32 *len)
{
	if (mr->fast)
		return kiw_fast_piece(mr->fast, addr - mr->base, len);
	if (mr->dmabuf)
		return mr->dmabuf->addr + (addr - mr->base);
	return mr_kernel_address(addr);
}

/**
 * kiw_mr_page() - get a page that may be lent for transmission
 * @mr: from kiw_mr_use(), or NULL for kernel memory
 * @addr: tagged offset, checked by kiw_mr_check() in the same section; or kernel address
 * @in_page: set to the offset of the byte in the page
 *
 * Memory of a fast region or a dma-buf is never lent: it may be invalidated, or unmapped, without
 * regard to those who use its pages. Memory of a kernel consumer may have no pages that can be
 * referenced, such as that of the slab allocator.
 *
 * Context: any, inside a section of the table.
 * Return: the page, or NULL: the memory must be copied.
 */
struct page *kiw_mr_page(const struct kiw_mr *mr, u64 addr, u32 *in_page)
{
	void *data = mr_kernel_address(addr);
	struct page *page;

	if (mr && mr->umem)
		return kiw_umem_page(mr->umem, addr - mr->base, in_page);
	if ((mr && !kiw_mr_is_dma(mr)) || !virt_addr_valid(data))
		return NULL;
	page = virt_to_page(data);
	*in_page = offset_in_page(data);
	return sendpage_ok(page) ? page : NULL;
}
