/* SPDX-License-Identifier: ((GPL-2.0 WITH Linux-syscall-note) OR BSD-3-Clause) */
/*
 * ABI between kiwarp and user space libraries, except for the link type
 * kiwarp-ext: the driver-specific part of the uverbs requests and responses,
 * and the mapped work and completion rings.
 *
 * The layout is version 1 of the ABI of rdma-core's "siw" provider (driver id
 * RDMA_DRIVER_SIW), so that a stock rdma-core can drive kiwarp. It is frozen.
 *
 * Rules, as seen by the kernel:
 *  - The number of slots of a ring is a power of two. A ring is zeroed when it
 *    is created and used strictly in order. Each side has its own 32-bit index,
 *    which starts at 0.
 *  - The producer sets the valid bit of a slot last (release). The consumer
 *    reads it first (acquire) and returns the slot by writing flags = 0.
 *  - A work request that user space wrote is copied once into private memory
 *    and then checked.
 */
#ifndef _UAPI_RDMA_KIWARP_ABI_H
#define _UAPI_RDMA_KIWARP_ABI_H

#include <linux/types.h>

#define KIWARP_ABI_VERSION	1

#define KIWARP_MAX_SGE		6	/* of one work request */
#define KIWARP_MAX_INLINE	80	/* bytes: the size of sge[1..5] */

/*
 * The provider takes this mmap key to mean "no ring", so it must not be assigned
 * to a ring, although it is a valid page offset.
 */
#define KIWARP_INVALID_KEY	0x90000

/* alloc_ucontext */
struct kiwarp_uresp_alloc_ctx {
	__u32 dev_id;
	__u32 pad;
};

/* create_cq: the mapping is num_cqe entries and one struct kiwarp_cq_ctrl */
struct kiwarp_uresp_create_cq {
	__u32 cq_id;
	__u32 num_cqe;
	__aligned_u64 cq_key;
};

/* create_qp; rq_key is unused when the QP has a shared receive queue */
struct kiwarp_uresp_create_qp {
	__u32 qp_id;
	__u32 num_sqe;
	__u32 num_rqe;
	__u32 pad;
	__aligned_u64 sq_key;
	__aligned_u64 rq_key;
};

/* create_srq */
struct kiwarp_uresp_create_srq {
	__u32 num_rqe;
	__u32 pad;
	__aligned_u64 srq_key;
};

/* reg_mr: kiwarp ignores stag_key, the consumer's part of the STag */
struct kiwarp_ureq_reg_mr {
	__u8 stag_key;
	__u8 reserved[3];
	__u32 pad;
};

struct kiwarp_uresp_reg_mr {
	__u32 stag;
	__u32 pad;
};

/*
 * Operations. Only WRITE, READ, SEND and SEND_INV may appear in a submission
 * ring; RECV appears in completions only. Other values below 12 belong to
 * operations of the ABI that user space cannot request; 12 and up must never
 * be written to a completion ring.
 */
enum kiwarp_op {
	KIWARP_OP_WRITE		= 0,
	KIWARP_OP_READ		= 1,
	KIWARP_OP_SEND		= 3,
	KIWARP_OP_SEND_INV	= 5,
	KIWARP_OP_RECV		= 8,
};

/* kiwarp_sqe.flags; a kiwarp_rqe and a kiwarp_cqe use VALID only */
enum kiwarp_wqe_flags {
	KIWARP_WQE_VALID	= 1 << 0,
	KIWARP_WQE_INLINE	= 1 << 1,
	KIWARP_WQE_SIGNALED	= 1 << 2,
	KIWARP_WQE_SOLICITED	= 1 << 3,
	KIWARP_WQE_READ_FENCE	= 1 << 4,
};

/* kiwarp_cqe.status; 10 and up must never be written */
enum kiwarp_cqe_status {
	KIWARP_CQE_SUCCESS	= 0,
	KIWARP_CQE_LOC_LEN	= 1,
	KIWARP_CQE_LOC_PROT	= 2,
	KIWARP_CQE_LOC_QP_OP	= 3,
	KIWARP_CQE_FLUSHED	= 4,
	KIWARP_CQE_BAD_RESP	= 5,
	KIWARP_CQE_LOC_ACCESS	= 6,
	KIWARP_CQE_REM_ACCESS	= 7,
	KIWARP_CQE_REM_INV_REQ	= 8,
	KIWARP_CQE_GENERAL	= 9,
};

/*
 * kiwarp_cq_ctrl.flags: which completion raises an event. User space stores
 * SOLICITED, or SOLICITED and NEXT, without a system call; the kernel clears the
 * request when it raises the event.
 */
enum kiwarp_notify {
	KIWARP_NOTIFY_NONE	= 0,
	KIWARP_NOTIFY_SOLICITED	= 1 << 0,
	KIWARP_NOTIFY_NEXT	= 1 << 1,
};

/* Scatter/gather element; same layout as struct ibv_sge */
struct kiwarp_sge {
	__aligned_u64 laddr;
	__u32 length;
	__u32 lkey;
};

/*
 * Submission ring. With INLINE the data is in sge[1..5] and its length in
 * sge[0].length. With SEND_INV rkey is the peer's STag to invalidate.
 */
struct kiwarp_sqe {
	__aligned_u64 id;
	__u16 flags;
	__u8 num_sge;
	__u8 opcode;
	__u32 rkey;
	__aligned_u64 raddr;
	struct kiwarp_sge sge[KIWARP_MAX_SGE];
};

/* Receive ring of a QP or SRQ; opcode and unused are ignored */
struct kiwarp_rqe {
	__aligned_u64 id;
	__u16 flags;
	__u8 num_sge;
	__u8 opcode;
	__u32 unused;
	struct kiwarp_sge sge[KIWARP_MAX_SGE];
};

/* Completion ring */
struct kiwarp_cqe {
	__aligned_u64 id;
	__u8 flags;
	__u8 opcode;
	__u16 status;
	__u32 bytes;
	union {
		__aligned_u64 imm_data;
		__u32 inval_stag;
	};
	__aligned_u64 qp_id;
};

/* Follows the last entry of a completion ring */
struct kiwarp_cq_ctrl {
	__u32 flags;
	__u32 pad;
};

#endif /* _UAPI_RDMA_KIWARP_ABI_H */
