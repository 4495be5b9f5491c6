/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Fast-registration memory regions of kernel consumers. The consumer maps their memory in
 * any context; work requests make them valid.
 */
#ifndef KIW_MR_FAST_H
#define KIW_MR_FAST_H

#include "mr_dyn.h"

/* Maximum number of pages of one region: 2 MiB with pages of 4 KiB */
#define KIW_FAST_MAX_PAGES	512

/**
 * struct kiw_fast - the part of a region that fast registration needs
 * @dyn: the part that makes it valid and invalid
 * @page_size: of the current registration, in bytes, a power of two
 * @first_offset: offset of the current registration in its first page, in bytes
 * @max_pages: capacity of @mapped and of @pages
 * @num_mapped: pages in @mapped
 * @mapped_offset: offset of the first byte in the first page of @mapped
 * @mapped: kernel addresses for the next registration; the consumer may change them until it posts
 *	that registration
 * @pages: kernel addresses of the current registration
 */
struct kiw_fast {
	struct kiw_dyn dyn;
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
enum kiw_mem_fault kiw_fast_register(const struct kiw_mr_section *section, const struct ib_pd *pd,
				     u32 stag, int access);
void *kiw_fast_piece(const struct kiw_fast *fast, u64 offset, u32 *len);

#endif /* KIW_MR_FAST_H */
