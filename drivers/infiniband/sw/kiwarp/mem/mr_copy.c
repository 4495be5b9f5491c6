// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copying to and from registered memory of any kind.
 *
 * Owns: nothing. umem.c, mr_fast.c and dmabuf.c have the kinds of memory other than DMA regions.
 *
 * Runs in any context, inside a section of the MR table, without locks.
 */
#include "mr_copy.h"

#include <linux/string.h>

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
	if (mr->fast)
		kiw_fast_copy_to(mr->fast, addr - mr->base, src, len);
	else if (mr->dmabuf)
		memcpy(mr->dmabuf->addr + (addr - mr->base), src, len);
	else
		memcpy(mr_kernel_address(addr), src, len);
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
	if (mr->umem)
		kiw_umem_copy_from(mr->umem, addr - mr->base, dst, len);
	else if (mr->fast)
		kiw_fast_copy_from(mr->fast, addr - mr->base, dst, len);
	else if (mr->dmabuf)
		memcpy(dst, mr->dmabuf->addr + (addr - mr->base), len);
	else
		memcpy(dst, mr_kernel_address(addr), len);
}
