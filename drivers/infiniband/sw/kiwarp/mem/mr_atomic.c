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

#include <linux/align.h>
#include <linux/atomic.h>

#include "mr_copy.h"
#include "proto/rdmap_ext.h"

static_assert(sizeof(atomic64_t) == KIW_ATOMIC_BYTES);

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
	u32 len = KIW_ATOMIC_BYTES;
	enum kiw_mem_fault fault;
	void *target;

	fault = kiw_mr_check(mr, pd, IB_ACCESS_REMOTE_ATOMIC, addr, KIW_ATOMIC_BYTES);
	if (fault != KIW_MEM_OK)
		return fault;
	target = kiw_mr_map(mr, addr, &len);
	kiw_mr_unmap(mr, addr, target, false);
	return IS_ALIGNED((uintptr_t)target, KIW_ATOMIC_BYTES) ? KIW_MEM_OK : KIW_MEM_ALIGN;
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
	/* Eight aligned bytes are in one page. */
	u32 len = KIW_ATOMIC_BYTES;
	void *target = kiw_mr_map(mr, req->to, &len);
	u64 old = atomic_execute(target, req);

	kiw_mr_unmap(mr, req->to, target, true);
	return old;
}
