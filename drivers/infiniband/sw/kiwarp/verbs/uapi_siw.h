/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Adapter for the user ABI of the stock `siw` provider: rings that a process maps, and their
 * translation to the internal formats of queue/wr.h and queue/cq.h.
 *
 * Owns: the mapped memory (&struct kiw_user_ring). A mapping may outlive its object; the pages
 * are freed with the last mapping.
 *
 * Everything in a mapped ring is hostile. Documentation/uapi.rst has the rules.
 */
#ifndef KIW_UAPI_SIW_H
#define KIW_UAPI_SIW_H

#include <rdma/ib_verbs.h>

#include "queue/cq.h"
#include "queue/wr.h"

extern const struct kiw_sq_ops kiw_sq_user_ops;
extern const struct kiw_rq_ops kiw_rq_user_ops;
extern const struct kiw_cq_ops kiw_cq_user_ops;

/* Process context */
int kiw_udata_check(struct ib_udata *udata, size_t resp_bytes, struct kiw_stats *stats);
struct ib_ucontext *kiw_udata_context(struct ib_udata *udata);
struct rdma_user_mmap_entry *kiw_user_ring_alloc(struct ib_ucontext *uctx, size_t bytes,
						 void **ring, u64 *key);
void kiw_user_ring_free(struct rdma_user_mmap_entry *entry);
void kiw_ring_free(struct rdma_user_mmap_entry *entry, void *ring);
size_t kiw_user_sq_bytes(u32 size);
size_t kiw_user_rq_bytes(u32 size);
size_t kiw_user_cq_bytes(u32 size);
int kiw_mmap(struct ib_ucontext *uctx, struct vm_area_struct *vma);
void kiw_mmap_free(struct rdma_user_mmap_entry *entry);

#endif /* KIW_UAPI_SIW_H */
