/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Fast-registration memory regions of kernel consumers: mapped in process context,
 * made valid and invalid by work requests.
 */
#ifndef KIW_MR_FAST_H
#define KIW_MR_FAST_H

#include <linux/spinlock.h>

#include "mr.h"

/* Most pages of one region; with pages of 4 KiB, 2 MiB */
#define KIW_FAST_MAX_PAGES	512

/**
 * struct kiw_fast - the part of a region that fast registration needs
 * @lock: serialises registering and invalidating; BHs are off already; innermost
 * @last: STag of the last registration, be it in force or not; 0: there was none
 * @qpn: QP whose work request that was
 * @users: who has found the region valid and has not yet done with it
 * @page_size: octets, a power of two, of the registration in force
 * @first_offset: of the registration in force, in its first page
 * @max_pages: room in @mapped and in @pages
 * @num_mapped: pages in @mapped
 * @mapped_offset: of the first octet, in the first of them
 * @mapped: kernel addresses for the next registration, the consumer's to change
 * @pages: kernel addresses of the registration in force
 */
struct kiw_fast {
	spinlock_t lock;
	u32 last;
	u32 qpn;
	atomic_t users;
	u32 page_size;
	u32 first_offset;
	u32 max_pages;
	u32 num_mapped;
	u32 mapped_offset;
	u64 *mapped;
	u64 *pages;
};

/* Process context, may sleep */
struct kiw_fast *kiw_fast_alloc(u32 max_pages);
void kiw_fast_free(struct kiw_fast *fast);

/* Any context */
int kiw_fast_map(struct kiw_mr *mr, struct scatterlist *sg, int num, unsigned int *offset);

/* Within a section of the MR table, BHs off */
enum kiw_mem_fault kiw_fast_register(struct kiw_mr_table *table, const struct ib_qp *qp,
				     u32 stag, int access);
enum kiw_mem_fault kiw_fast_invalidate(struct kiw_mr_table *table, const struct ib_qp *qp,
				       u32 stag, int rights);
void kiw_fast_copy_to(const struct kiw_fast *fast, u64 offset, const void *src, u32 len);
void kiw_fast_copy_from(const struct kiw_fast *fast, u64 offset, void *dst, u32 len);

#endif /* KIW_MR_FAST_H */
