/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Atomic operations on registered memory of any kind, RFC 7306 5. */
#ifndef KIW_MR_ATOMIC_H
#define KIW_MR_ATOMIC_H

#include "mr.h"

struct kiw_atomic_req;

/* Bytes that an atomic operation reads and writes */
#define KIW_ATOMIC_BYTES	sizeof(u64)

/* Within a section of the MR table */
enum kiw_mem_fault kiw_mr_atomic_check(const struct kiw_mr *mr, const struct ib_pd *pd, u64 addr);
u64 kiw_mr_atomic(const struct kiw_mr *mr, const struct kiw_atomic_req *req);

#endif /* KIW_MR_ATOMIC_H */
