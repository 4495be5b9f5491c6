// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Atomic operations on registered memory of any kind.
 *
 * Owns: nothing. An operation uses an atomic instruction of the CPU on the kernel's mapping of the
 * memory. So it excludes everything else that accesses the memory with atomic instructions, through
 * any mapping, such as other streams, and threads of the owner. RFC 7306 5.3 requires this only for
 * the streams of one RNIC. For a CPU without such instructions the kernel emulates them with locks,
 * which exclude streams and devices of this driver, but not processes. These locks are chosen by
 * the kernel address. So they may exclude nothing between two mappings of the same memory, such as
 * that of a dma-buf and that of the process's pages.
 *
 * Runs in any context, inside a section of the MR table, without locks of this driver.
 */
#include "mr_atomic.h"

#include <linux/atomic.h>
#include <linux/highmem.h>

#include "dmabuf.h"
#include "mr_fast.h"
#include "proto/rdmap_ext.h"
#include "umem.h"

static_assert(sizeof(atomic64_t) == KIW_ATOMIC_BYTES);

/* The kernel address of memory that always has one, or 0 */
static uintptr_t atomic_address(const struct kiw_mr *mr, u64 addr)
{
	if (mr->umem)
		return 0;
	if (mr->fast)
		return (uintptr_t)kiw_fast_address(mr->fast, addr - mr->base);
	if (mr->dmabuf)
		return (uintptr_t)mr->dmabuf->addr + (addr - mr->base);
	return addr;
}

/* Offset of @addr from the start of the first page of pinned memory */
static u64 atomic_umem_pos(const struct kiw_mr *mr, u64 addr)
{
	return mr->umem->first_offset + (addr - mr->base);
}

/**
 * kiw_mr_atomic_check() - may an atomic operation be executed on this memory?
 * @mr: from kiw_mr_use()
 * @pd: protection domain of the QP
 * @addr: tagged offset of the target
 *
 * Checks what kiw_mr_check() checks for %IB_ACCESS_REMOTE_ATOMIC, and the alignment (RFC 7306 8.2),
 * which is that of the memory and not of the tagged offset.
 *
 * Context: any, inside a section of the table.
 * Return: %KIW_MEM_OK, or the first fault found.
 */
enum kiw_mem_fault kiw_mr_atomic_check(const struct kiw_mr *mr, const struct ib_pd *pd, u64 addr)
{
	enum kiw_mem_fault fault;
	u64 pos;

	fault = kiw_mr_check(mr, pd, IB_ACCESS_REMOTE_ATOMIC, addr, KIW_ATOMIC_BYTES);
	if (fault != KIW_MEM_OK)
		return fault;
	pos = mr->umem ? atomic_umem_pos(mr, addr) : atomic_address(mr, addr);
	return pos % KIW_ATOMIC_BYTES ? KIW_MEM_ALIGN : KIW_MEM_OK;
}

static u64 atomic_execute(atomic64_t *target, const struct kiw_atomic_req *req)
{
	s64 old = atomic64_read(target);

	while (!atomic64_try_cmpxchg(target, &old, kiw_atomic_result(req, old)))
		;
	return old;
}

/**
 * kiw_mr_atomic() - execute an atomic operation
 * @mr: from kiw_mr_use()
 * @req: the operation; its target was checked by kiw_mr_atomic_check() in the same section
 *
 * Context: any, inside a section of the table.
 * Return: the value that was in memory.
 */
u64 kiw_mr_atomic(const struct kiw_mr *mr, const struct kiw_atomic_req *req)
{
	struct page *page;
	void *mapped;
	u64 old, pos;

	if (!mr->umem)
		return atomic_execute((atomic64_t *)atomic_address(mr, req->to), req);
	/* Eight aligned bytes are in one page. */
	pos = atomic_umem_pos(mr, req->to);
	page = mr->umem->pages[pos >> PAGE_SHIFT];
	mapped = kmap_local_page(page);
	old = atomic_execute(mapped + offset_in_page(pos), req);
	flush_dcache_page(page);
	kunmap_local(mapped);
	return old;
}
