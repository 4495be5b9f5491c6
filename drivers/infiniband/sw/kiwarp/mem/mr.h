/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Registered memory: the STag table, and access to memory by STag.
 *
 * Owns: the table, the STags, and the guarantee that nothing touches memory by an STag after its
 * registration has ended. The data path looks an STag up and copies inside one read-side critical
 * section of the table's SRCU, from kiw_mr_enter() to kiw_mr_leave(), below called a section.
 * Retracting an MR removes it from the table and waits until the sections that may have found it
 * have ended. So looking up an STag takes no reference to its MR. Only STags that work requests
 * make valid and invalid count their users (mr_dyn.h).
 */
#ifndef KIW_MR_H
#define KIW_MR_H

#include <linux/srcu.h>
#include <linux/xarray.h>
#include <rdma/ib_verbs.h>

#include "proto/perr.h"
#include "proto/stag.h"

/* Rights that some operation here requires */
#define KIW_ACCESS_GRANTED \
	(IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_READ | \
	 IB_ACCESS_REMOTE_ATOMIC | IB_ACCESS_MW_BIND)

/*
 * The right to read memory as the source of a message. It is not a right of the verbs: every region
 * has it, and no window.
 */
#define KIW_ACCESS_LOCAL_READ	BIT(30)

/* Hints, which a device may ignore. They have no effect here. */
#define KIW_ACCESS_IGNORED \
	(IB_ACCESS_HUGETLB | IB_ACCESS_OPTIONAL)

struct kiw_dmabuf;
struct kiw_dyn;
struct kiw_fast;
struct kiw_umem;

/**
 * enum kiw_mem_fault - why memory may not be accessed
 * @KIW_MEM_OK: it may be accessed
 * @KIW_MEM_STAG: no such STag, or not valid
 * @KIW_MEM_ASSOC: it belongs to another protection domain, or to another stream
 * @KIW_MEM_ACCESS: the right is missing, or this kind of memory does not allow it
 * @KIW_MEM_WRAP: offset plus length exceed 2^64
 * @KIW_MEM_BOUNDS: outside of the region or window, or beyond the last SGE
 * @KIW_MEM_ALIGN: an atomic operation's target is not aligned to 8 bytes in memory
 * @KIW_MEM_LOST: nothing is wrong with the memory, but TCP's data cannot be read
 * @KIW_MEM_COUNT: number of the above
 *
 * For registering and binding, see what kiw_fast_register() and kiw_window_bind() return.
 */
enum kiw_mem_fault {
	KIW_MEM_OK,
	KIW_MEM_STAG,
	KIW_MEM_ASSOC,
	KIW_MEM_ACCESS,
	KIW_MEM_WRAP,
	KIW_MEM_BOUNDS,
	KIW_MEM_ALIGN,
	KIW_MEM_LOST,
	KIW_MEM_COUNT,
};

/**
 * struct kiw_mr - a memory region, or the part of a window that the data path uses
 * @ib: in a region, the core's part; @ib.lkey and @ib.rkey are the STag, except for the key byte of
 *	a fast region or window, which its consumer chooses when it makes it valid
 * @stag: the STag while it is valid, else 0
 * @is_settled: in a region, the core does not abort its creation any more, and @ib.uobject may be
 *	stale: it was made by re-registering another one
 * @base: tagged offset of the first byte of the memory (iova); modulo 2^64 in a window
 * @start: offset in the memory of the first byte that may be accessed: 0, except in a window
 * @length: offset in the memory of the end of the part that may be accessed; in a region, its
 *	length
 * @access: enum ib_access_flags granted; in a region, also %KIW_ACCESS_LOCAL_READ
 * @windows: number of windows that are bound to the region; %KIW_MR_CLOSED: it is being
 *	deregistered or re-registered
 * @umem: pinned user pages, or NULL
 * @dmabuf: memory of a dma-buf, or NULL
 * @fast: a fast-registration region of a kernel consumer, or NULL
 * @dyn: in a fast region or window: the part that work requests make valid and invalid; or NULL
 *
 * A region with none of @umem, @dmabuf and @fast is a DMA region: kernel addresses, the whole
 * address space. A window has @umem or @dmabuf of its region while it is valid.
 */
struct kiw_mr {
	struct ib_mr ib;
	u32 stag;
	bool is_settled;
	u64 base;
	u64 start;
	u64 length;
	int access;
	atomic_t windows;
	struct kiw_umem *umem;
	struct kiw_dmabuf *dmabuf;
	struct kiw_fast *fast;
	struct kiw_dyn *dyn;
};

/* No window can be bound, see kiw_mr_close() */
#define KIW_MR_CLOSED	(-1)

/**
 * struct kiw_mr_table - all memory regions and windows of a device
 * @mrs: table index (not STag) to &struct kiw_mr
 * @next: where the search for a free index continues
 * @key: scrambles indices into STags, so that these are difficult to predict
 * @srcu: protects MRs in the sections of the data path
 * @streams: number of streams so far
 */
struct kiw_mr_table {
	struct xarray mrs;
	u32 next;
	struct kiw_stag_key key;
	struct srcu_struct srcu;
	atomic64_t streams;
};

/**
 * struct kiw_mr_section - a section of the data path; an MR found in it exists until it ends
 * @table: the device's table
 * @srcu: index returned by srcu_read_lock()
 * @last: MR that was found last, or NULL; exists until the section ends, valid or not
 * @stream: number of the stream that the data path works for; stays between sections
 */
struct kiw_mr_section {
	struct kiw_mr_table *table;
	int srcu;
	struct kiw_mr *last;
	u64 stream;
};

static inline struct kiw_mr *to_kiw_mr(struct ib_mr *ibmr)
{
	return container_of(ibmr, struct kiw_mr, ib);
}

/* Process context, may sleep */
int kiw_mr_table_init(struct kiw_mr_table *table);
void kiw_mr_table_uninit(struct kiw_mr_table *table);
int kiw_mr_publish(struct kiw_mr_table *table, struct kiw_mr *mr);
void kiw_mr_retract(struct kiw_mr_table *table, struct kiw_mr *mr);

/* Any context */
u64 kiw_mr_new_stream(struct kiw_mr_table *table);
bool kiw_mr_close(struct kiw_mr *mr);
void kiw_mr_reopen(struct kiw_mr *mr);

/* Any context but NMI; sections may be nested, and are never held across a sleep */
static inline void kiw_mr_enter(struct kiw_mr_table *table, struct kiw_mr_section *section)
{
	section->table = table;
	section->last = NULL;
	section->srcu = srcu_read_lock(&table->srcu);
}

static inline void kiw_mr_leave(struct kiw_mr_section *section)
{
	srcu_read_unlock(&section->table->srcu, section->srcu);
}

/* Any context */
enum kiw_perr kiw_mr_source_perr(enum kiw_mem_fault fault);

/* Within a section */
struct kiw_mr *kiw_mr_at(struct kiw_mr_table *table, u32 stag);
struct kiw_mr *kiw_mr_look_up(struct kiw_mr_section *section, u32 stag);
void kiw_mr_done_dyn(struct kiw_mr *mr);

/**
 * kiw_mr_use() - look up an STag to access its region
 * @section: the current section of the data path
 * @stag: all 32 bits must match
 *
 * Segments that follow each other mostly go to the same region, so the region used last is tried
 * first. Only fast regions and windows count their users. All other regions exist until the section
 * ends.
 *
 * Context: BHs off, inside @section.
 * Return: the MR, which may be accessed until kiw_mr_done() if kiw_mr_check() allows it; if only
 * another stream may use @stag, an MR that kiw_mr_check() refuses; or NULL.
 */
static inline struct kiw_mr *kiw_mr_use(struct kiw_mr_section *section, u32 stag)
{
	struct kiw_mr *mr = section->last;

	if (mr && stag && !mr->dyn && READ_ONCE(mr->stag) == stag)
		return mr;
	return kiw_mr_look_up(section, stag);
}

/**
 * kiw_mr_done() - end an access begun by kiw_mr_use()
 * @mr: from kiw_mr_use(); NULL is fine
 *
 * Context: BHs off, in the section of kiw_mr_use().
 */
static inline void kiw_mr_done(struct kiw_mr *mr)
{
	if (mr && mr->dyn)
		kiw_mr_done_dyn(mr);
}

/* Does [@addr, @addr + @len) extend beyond 2^64? Ending there is fine. */
static inline bool kiw_mr_wraps(u64 addr, u64 len)
{
	return len && addr + (len - 1) < addr;
}

/* Is it a DMA region, that is, the kernel's whole address space? */
static inline bool kiw_mr_is_dma(const struct kiw_mr *mr)
{
	return !mr->umem && !mr->dmabuf && !mr->fast;
}

/*
 * Is the range inside? Below @mr->base, the offset wraps to the end or beyond it, because no region
 * reaches beyond 2^64. The base of a zero-based window may wrap, too, and the offset is right
 * again.
 */
static inline bool kiw_mr_in_bounds(const struct kiw_mr *mr, u64 addr, u64 len)
{
	u64 offset = addr - mr->base;

	return offset >= mr->start && offset <= mr->length && len <= mr->length - offset;
}

/**
 * kiw_mr_check() - may this memory be accessed?
 * @mr: found in the current section
 * @pd: protection domain of the QP that accesses it
 * @access: enum ib_access_flags, all of which are needed; %KIW_ACCESS_LOCAL_READ for local reading
 * @addr: tagged offset of the first byte
 * @len: length in bytes
 *
 * RFC 5041 7.1 and RFC 5040 7.2. A range that wraps is not reported as out of bounds.
 *
 * Context: any, inside a section of the table.
 * Return: %KIW_MEM_OK, or the first fault found.
 */
static inline enum kiw_mem_fault kiw_mr_check(const struct kiw_mr *mr, const struct ib_pd *pd,
					      int access, u64 addr, u64 len)
{
	if (mr->ib.pd != pd)
		return KIW_MEM_ASSOC;
	if ((mr->access & access) != access)
		return KIW_MEM_ACCESS;
	if (kiw_mr_wraps(addr, len))
		return KIW_MEM_WRAP;
	if (!kiw_mr_is_dma(mr) && !kiw_mr_in_bounds(mr, addr, len))
		return KIW_MEM_BOUNDS;
	return KIW_MEM_OK;
}

#endif /* KIW_MR_H */
