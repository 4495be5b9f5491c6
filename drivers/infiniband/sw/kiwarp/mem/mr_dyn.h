/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * STags that work requests make valid and invalid: those of fast-registration regions and of
 * memory windows. Such STags become invalid in contexts that cannot sleep, so each counts its
 * users.
 */
#ifndef KIW_MR_DYN_H
#define KIW_MR_DYN_H

#include <linux/spinlock.h>

#include "mr.h"

/**
 * struct kiw_dyn - state of an STag that can become invalid without sleeping
 * @lock: serialises work requests that change the STag, and the peers' invalidations; taken with
 *	BHs off; innermost
 * @users: number of users that have entered and are not yet done
 * @last: the STag that was made valid last, valid or not; 0: there was none
 * @is_private: only @stream may use the STag, not all of the protection domain: a window of type 2
 * @stream: the stream whose work request has made the STag valid
 * @region: the region that a window is bound to; NULL for an unbound window and a fast region
 */
struct kiw_dyn {
	spinlock_t lock;
	atomic_t users;
	u32 last;
	bool is_private;
	u64 stream;
	struct kiw_mr *region;
};

/* Any context */
void kiw_dyn_init(struct kiw_dyn *dyn, bool is_private);
void kiw_dyn_let_go(struct kiw_dyn *dyn);

/* Within a section of the MR table, BHs off */
struct kiw_mr *kiw_dyn_find(const struct kiw_mr_section *section, const struct ib_pd *pd, u32 stag,
			    enum kiw_mem_fault *fault);
void kiw_dyn_grant(struct kiw_mr *mr, u64 stream, u32 stag, int access, const char *what);
void kiw_dyn_revoke(struct kiw_mr *mr);
enum kiw_mem_fault kiw_mr_invalidate(const struct kiw_mr_section *section, const struct ib_pd *pd,
				     u32 stag, int rights);

#endif /* KIW_MR_DYN_H */
