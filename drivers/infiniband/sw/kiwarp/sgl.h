/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * A cursor over the local memory of a work request.
 *
 * Owns: the walk over scatter/gather entries, their checks on every use. An
 * entry is looked up and checked each time octets move through it, because its
 * registration may have gone since the work request was posted.
 */
#ifndef KIW_SGL_H
#define KIW_SGL_H

#include "mr.h"
#include "wr.h"

/**
 * struct kiw_sgl - scatter/gather entries and a position in them
 * @section: of the data path, in which lkeys are looked up
 * @pd: protection domain of the QP
 * @dma_lkey: kernel consumers: the lkey that names kernel memory directly
 * @is_kernel: @dma_lkey may be used
 * @num_sge: entries
 * @cur: entry the position is in
 * @off: octets into that entry
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

/* Within @section, any context */
enum kiw_mem_fault kiw_sgl_check(const struct kiw_sgl *sgl, int access);
enum kiw_mem_fault kiw_sgl_copy_to(struct kiw_sgl *sgl, const void *src, u32 len);
enum kiw_mem_fault kiw_sgl_find(const struct kiw_sgl *sgl, const struct kiw_sge *sge, int access,
				u32 offset, u32 len, struct kiw_mr **mr);

/* Pure */
bool kiw_sgl_settle(struct kiw_sgl *sgl);
void kiw_sgl_seek(struct kiw_sgl *sgl, u32 offset);

#endif /* KIW_SGL_H */
