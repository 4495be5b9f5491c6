/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Memory windows. A window gives access to a part of a region by a separate STag, with separate
 * rights. It is an entry of the STag table, like a region. Work requests bind it.
 */
#ifndef KIW_MR_WINDOW_H
#define KIW_MR_WINDOW_H

#include "mr_dyn.h"

struct kiw_bind;

/**
 * struct kiw_window - a memory window
 * @mr: its entry in the STag table; while it is valid, it has the memory of the region
 * @dyn: the part that makes it valid and invalid
 */
struct kiw_window {
	struct kiw_mr mr;
	struct kiw_dyn dyn;
};

/* Process context, may sleep */
struct kiw_window *kiw_window_alloc(struct kiw_mr_table *table, struct ib_pd *pd, bool is_type_2);
void kiw_window_free(struct kiw_mr_table *table, struct kiw_window *window);

/* Within a section of the MR table, BHs off */
enum kiw_mem_fault kiw_window_bind(const struct kiw_mr_section *section, const struct ib_pd *pd,
				   u32 stag, const struct kiw_bind *bind);

#endif /* KIW_MR_WINDOW_H */
