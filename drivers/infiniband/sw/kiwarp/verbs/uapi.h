/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * User ABIs: the table that a user ABI consists of, and what all of them share: the memory of
 * rings, their mapping, and the driver's part of requests and responses.
 *
 * Owns: &struct kiw_uapi_ops. A table has the formats and the limits of one ABI. It neither
 * allocates nor copies to or from the process; the one exception is the content of rings. A device
 * has one table; its link type selects it (netlink.c).
 * Other code does not depend on which table a device has.
 */
#ifndef KIW_UAPI_H
#define KIW_UAPI_H

#include <rdma/ib_verbs.h>

#include "queue/cq.h"
#include "queue/wr.h"

struct kiw_device;
struct kiw_qp;
struct kiw_srq;

/* Room for the driver's part of a request or response; every table checks that its own fit */
#define KIW_UAPI_WORDS		4
#define KIW_UAPI_BYTES		(KIW_UAPI_WORDS * sizeof(u64))

/**
 * struct kiw_uapi_ops - a user ABI
 * @device_ops: only the driver id and the version of the ABI, by which rdma-core finds a provider
 * @cmd_mask: commands by write() that the provider needs and ib_core does not allow by default:
 *	bits of enum ib_uverbs_write_cmds
 * @sq: format of send rings
 * @rq: format of receive rings, also of shared ones
 * @cq: format of completion rings, with their arming
 * @first_pgoff: page offset of the first ring of a context, for mmap()
 * @max_sge: SGEs of a work request of every QP and shared receive queue, at most %KIW_MAX_SGE
 * @max_inline: bytes of inline data of every QP, at most %KIW_MAX_INLINE
 * @spare_slots: slots of each ring that stay empty, so that full and empty rings differ; 0 or 1
 * @has_rfc7306: @sq, @rq and @cq have room for immediate data and atomics
 * @has_windows: @sq can bind memory windows, and @cq can report that
 * @context_resp_bytes: size of the response of alloc_ucontext, 0 if there is none
 * @cq_resp_bytes: size of the response of create_cq, and of resize_cq
 * @srq_resp_bytes: size of the response of create_srq
 * @qp_resp_bytes: size of the response of create_qp
 * @srq_resize_req_bytes: size of the request of modify_srq if there is a new size; @rq has a move
 * @srq_resize_resp_bytes: size of what is written to the address in that request
 * @mr_req_bytes: size of the request of reg_mr, 0 if there is none
 * @mr_resp_bytes: size of the response of reg_mr, 0 if there is none
 * @sq_bytes: size of a send ring with @slots
 * @rq_bytes: size of a receive ring with @slots
 * @cq_bytes: size of a completion ring with @slots
 * @ring_init: write what a zeroed ring of @bytes with @slots begins with; NULL: nothing
 * @context_resp: write the response of alloc_ucontext; @index is that of the device; NULL if there
 *	is none
 * @cq_resp: write the response of create_cq or resize_cq; @key is the ring's offset for mmap()
 * @srq_resp: write the response of create_srq; likewise
 * @qp_resp: write the response of create_qp; the queues of @qp have been set up; @rq_key is 0 if
 *	it has a shared receive queue
 * @srq_resize_dest: the address in the process at which it wants to be told of the new ring; @req
 *	is a private copy of the request of modify_srq; NULL if @rq has no move
 * @srq_resize_resp: write what goes there; @key as for @srq_resp
 * @mr_req_is_good: is the request of reg_mr valid; @req is a private copy, zeroed beyond what the
 *	process passed; NULL if there is no request
 * @mr_resp: write the response of reg_mr; NULL if there is none
 *
 * The functions outside of @sq, @rq and @cq are called in process context. @resp is zeroed and has
 * room for %KIW_UAPI_BYTES. Sizes are in bytes. @sq, @rq and @cq are called in any context that
 * their definitions name, and everything in their rings is hostile (Documentation/uapi.rst).
 */
struct kiw_uapi_ops {
	const struct ib_device_ops *device_ops;
	u64 cmd_mask;
	const struct kiw_sq_ops *sq;
	const struct kiw_rq_ops *rq;
	const struct kiw_cq_ops *cq;
	u32 first_pgoff;
	u8 spare_slots;
	u8 max_sge;
	u8 max_inline;
	bool has_rfc7306;
	bool has_windows;
	u8 context_resp_bytes;
	u8 cq_resp_bytes;
	u8 srq_resp_bytes;
	u8 qp_resp_bytes;
	u8 srq_resize_req_bytes;
	u8 srq_resize_resp_bytes;
	u8 mr_req_bytes;
	u8 mr_resp_bytes;
	size_t (*sq_bytes)(u32 slots);
	size_t (*rq_bytes)(u32 slots);
	size_t (*cq_bytes)(u32 slots);
	void (*ring_init)(void *ring, u32 slots, size_t bytes);
	void (*context_resp)(void *resp, u32 index);
	void (*cq_resp)(void *resp, u32 slots, u64 key);
	void (*srq_resp)(void *resp, u32 slots, u64 key);
	void (*qp_resp)(void *resp, const struct kiw_qp *qp, u64 sq_key, u64 rq_key);
	u64 (*srq_resize_dest)(const void *req);
	void (*srq_resize_resp)(void *resp, u32 slots, u64 key);
	bool (*mr_req_is_good)(const void *req);
	void (*mr_resp)(void *resp, u32 stag);
};

/* Any context */
u32 kiw_uapi_spare_slots(const struct ib_device *ibdev, bool is_user);

/* Process context */
int kiw_uapi_check_none(struct kiw_device *dev, struct ib_udata *udata);
int kiw_uapi_open(struct ib_ucontext *uctx, struct ib_udata *udata);
int kiw_uapi_make_cq(struct kiw_cq *cq, u32 slots, struct ib_udata *udata, void **ring);
int kiw_uapi_resize_cq(struct kiw_cq *cq, u32 slots, struct ib_udata *udata);
int kiw_uapi_make_srq(struct kiw_srq *srq, u32 slots, struct ib_udata *udata, void **ring);
int kiw_uapi_resize_srq(struct kiw_srq *srq, u32 slots, struct ib_udata *udata);
int kiw_uapi_make_qp(struct kiw_qp *qp, struct ib_udata *udata);
int kiw_uapi_check_mr(struct kiw_device *dev, struct ib_udata *udata);
int kiw_uapi_tell_mr(struct kiw_device *dev, struct ib_udata *udata, u32 stag);
struct ib_ucontext *kiw_udata_context(struct ib_udata *udata);
void kiw_ring_free(struct rdma_user_mmap_entry *entry, void *ring);
int kiw_mmap(struct ib_ucontext *uctx, struct vm_area_struct *vma);
void kiw_mmap_free(struct rdma_user_mmap_entry *entry);

#endif /* KIW_UAPI_H */
