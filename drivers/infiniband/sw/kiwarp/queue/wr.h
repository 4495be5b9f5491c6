/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Work requests in the driver's own format, and the queues that hold them.
 *
 * Owns: the internal format of a work request, which both engines use. The rings of a queue come
 * in several formats, the kernel's (wr.c) and that of a user ABI (verbs/uapi.h), behind
 * &struct kiw_sq_ops and &struct kiw_rq_ops. A ring that user space maps is hostile: its adapter
 * copies what it needs of an entry, checks the copy, and passes only the copy on. What a window is
 * bound to is checked when the work request is executed.
 */
#ifndef KIW_WR_H
#define KIW_WR_H

#include <linux/minmax.h>
#include <linux/spinlock.h>
#include <rdma/ib_verbs.h>

#include "proto/perr.h"

/* SGEs of a work request: as many as the rings of siw's ABI hold; those of rxe's hold more */
#define KIW_MAX_SGE	6
/* SGEs of a Send or Write of a kernel consumer: 128 KiB if each is a page of 4 KiB */
#define KIW_MAX_SEND_SGE 32
#define KIW_MAX_INLINE	80
#define KIW_MAX_WR_BYTES	0x7fffffff

/**
 * enum kiw_wr_op - what a work request does
 * @KIW_WR_SEND: Send; with a solicited event if %KIW_WRF_SOLICITED is set
 * @KIW_WR_SEND_INV: Send with Invalidate of &struct kiw_swqe.rkey
 * @KIW_WR_WRITE: RDMA Write
 * @KIW_WR_WRITE_IMM: RDMA Write, then Immediate Data; without a Write if its length is 0
 * @KIW_WR_READ: RDMA Read
 * @KIW_WR_READ_INV: RDMA Read that invalidates the STag of its sink
 * @KIW_WR_FETCH_ADD: Atomic Operation FetchAdd
 * @KIW_WR_CMP_SWAP: Atomic Operation CmpSwap
 * @KIW_WR_MASKED_FETCH_ADD: FetchAdd of several fields
 * @KIW_WR_MASKED_CMP_SWAP: CmpSwap of some of the bits
 * @KIW_WR_REG_MR: make a fast-registration region valid; nothing is sent
 * @KIW_WR_LOCAL_INV: make such a region, or a window of type 2, invalid; nothing is sent
 * @KIW_WR_BIND_MW: make a window valid, or one of type 1 invalid; nothing is sent
 * @KIW_WR_RECV: receive; only in completions and traces
 * @KIW_WR_RECV_IMM: receive that Immediate Data took; only in completions
 *
 * Documentation/uapi.rst lists the operations of each user ABI. Kernel consumers cannot post
 * %KIW_WR_BIND_MW. The order of the values matters: operations up to %KIW_WR_WRITE are a single
 * message of payload; %KIW_WR_WRITE_IMM begins with such a message unless its length is 0; those
 * with a response are contiguous, and so are those that send nothing.
 */
enum kiw_wr_op {
	KIW_WR_SEND,
	KIW_WR_SEND_INV,
	KIW_WR_WRITE,
	KIW_WR_WRITE_IMM,
	KIW_WR_READ,
	KIW_WR_READ_INV,
	KIW_WR_FETCH_ADD,
	KIW_WR_CMP_SWAP,
	KIW_WR_MASKED_FETCH_ADD,
	KIW_WR_MASKED_CMP_SWAP,
	KIW_WR_REG_MR,
	KIW_WR_LOCAL_INV,
	KIW_WR_BIND_MW,
	KIW_WR_RECV,
	KIW_WR_RECV_IMM,
};

/* The flags of the verbs, so that those of a kernel consumer need no translation */
#define KIW_WRF_SIGNALED	IB_SEND_SIGNALED
#define KIW_WRF_SOLICITED	IB_SEND_SOLICITED
#define KIW_WRF_FENCE		IB_SEND_FENCE
#define KIW_WRF_INLINE		IB_SEND_INLINE

/**
 * struct kiw_sge - one piece of local memory
 * @addr: tagged offset in the region of @lkey, or a kernel address
 * @length: bytes
 * @lkey: STag, or the device's local DMA lkey (kernel consumers)
 */
struct kiw_sge {
	u64 addr;
	u32 length;
	u32 lkey;
};

/**
 * struct kiw_atomic_args - operands of an Atomic Operation, in the byte order of the CPU
 * @data: FetchAdd: what to add; CmpSwap: the new value
 * @mask: as that of &struct kiw_atomic_req
 * @compare: CmpSwap: what to compare with
 * @compare_mask: CmpSwap: bits to compare
 */
struct kiw_atomic_args {
	u64 data;
	u64 mask;
	u64 compare;
	u64 compare_mask;
};

/**
 * struct kiw_bind - what to bind a window to; not checked
 * @addr: tagged offset in the region of the first byte
 * @length: bytes
 * @lkey: STag of the region
 * @rkey: a former STag of the window
 * @access: enum ib_access_flags granted, and %IB_ZERO_BASED
 */
struct kiw_bind {
	u64 addr;
	u64 length;
	u32 lkey;
	u32 rkey;
	int access;
};

/**
 * struct kiw_swqe - a send queue entry
 * @wr_id: the consumer's cookie
 * @raddr: Write, Read, Atomic Operation: remote tagged offset
 * @rkey: Write, Read, Atomic Operation: remote STag; Send with Invalidate, local invalidate: STag
 *	to invalidate; registration and binding: the STag with its new key
 * @length: total bytes of @sge, or of @inline_data; at most 2^31 - 1
 * @op: &enum kiw_wr_op
 * @num_sge: 0..%KIW_MAX_SGE; Send or Write of a kernel consumer: 0..%KIW_MAX_SEND_SGE
 * @flags: %KIW_WRF_ bits
 * @imm: Write with immediate: the immediate data
 * @sge: local memory unless %KIW_WRF_INLINE; see kiw_swqe_sges()
 * @many_sges: the same if @num_sge exceeds %KIW_MAX_SGE; part of the ring, and valid until
 *	kiw_sq_done() is called for the entry
 * @atomic_sink: Atomic Operation: the only entry of @sge, where the original value goes; 8 bytes
 * @atomic: Atomic Operation: its operands
 * @access: registration: enum ib_access_flags granted
 * @bind: binding: the memory
 * @inline_data: payload, if %KIW_WRF_INLINE is set
 */
struct kiw_swqe {
	u64 wr_id;
	u64 raddr;
	u32 rkey;
	u32 length;
	u8 op;
	u8 num_sge;
	u16 flags;
	__be32 imm;
	union {
		struct kiw_sge sge[KIW_MAX_SGE];
		struct kiw_sge *many_sges;
		struct {
			struct kiw_sge atomic_sink;
			struct kiw_atomic_args atomic;
		};
		int access;
		struct kiw_bind bind;
		u8 inline_data[KIW_MAX_INLINE];
	};
};

/**
 * struct kiw_rwqe - a receive queue entry
 * @wr_id: the consumer's cookie
 * @length: total bytes of @sge
 * @num_sge: 0..%KIW_MAX_SGE
 * @sge: memory to receive into
 */
struct kiw_rwqe {
	u64 wr_id;
	u32 length;
	u8 num_sge;
	struct kiw_sge sge[KIW_MAX_SGE];
};

/* The SGEs of a work request, few or many */
static inline const struct kiw_sge *kiw_swqe_sges(const struct kiw_swqe *wqe)
{
	return wqe->num_sge <= KIW_MAX_SGE ? wqe->sge : wqe->many_sges;
}

/* Is it an RDMA Read, with or without invalidation? */
static inline bool kiw_wr_is_read(u8 op)
{
	return op == KIW_WR_READ || op == KIW_WR_READ_INV;
}

/* Is it an RDMA Read or an Atomic Operation, which the peer answers? */
static inline bool kiw_wr_has_response(u8 op)
{
	return op >= KIW_WR_READ && op <= KIW_WR_MASKED_CMP_SWAP;
}

/* Does it complete without sending anything? */
static inline bool kiw_wr_is_local(u8 op)
{
	return op >= KIW_WR_REG_MR && op <= KIW_WR_BIND_MW;
}

struct kiw_sq;
struct kiw_rq;

/**
 * struct kiw_rq_move - receives on their way to another ring of the queue
 * @ring: the new ring, empty; after the move: the old one
 * @size: slots of the new ring, a power of two
 * @next: position of the first receive that is not in the new ring
 * @end: position behind the last receive that moves
 * @is_begun: @next and @end are valid
 */
struct kiw_rq_move {
	void *ring;
	u32 size;
	u32 next;
	u32 end;
	bool is_begun;
};

/**
 * struct kiw_sq_ops - a format of send queue rings
 * @fetch: take the oldest entry; called with &struct kiw_sq.lock held. 1: @wqe is valid; 0: the
 *	queue is empty; -EINVAL: a malformed entry was taken, @wqe->wr_id and @wqe->op are for its
 *	completion
 * @has: are there at least @n entries; @n is 1 or 2; any context. May take one entry in a ring of
 *	one slot for two
 * @done: tell the poster that the slots before &struct kiw_sq.done are free; serialised by the
 *	caller; NULL: @fetch returns slots, or the poster reads &struct kiw_sq.done
 */
struct kiw_sq_ops {
	int (*fetch)(struct kiw_sq *sq, struct kiw_swqe *wqe);
	bool (*has)(const struct kiw_sq *sq, u32 n);
	void (*done)(struct kiw_sq *sq);
};

/**
 * struct kiw_rq_ops - a format of receive queue rings, shared ones included
 * @fetch: as in &struct kiw_sq_ops, with &struct kiw_rq.lock held
 * @has: are there at least @n entries; with &struct kiw_rq.lock held
 * @move: copy some of the entries to a new ring; with &struct kiw_rq.lock held. 0: those were the
 *	last, and the queue uses the new ring now; -EAGAIN: there are more; -EBUSY: there are too
 *	many, and the queue has not changed. NULL: the ring is not replaced
 */
struct kiw_rq_ops {
	int (*fetch)(struct kiw_rq *rq, struct kiw_rwqe *wqe);
	bool (*has)(struct kiw_rq *rq, u32 n);
	int (*move)(struct kiw_rq *rq, struct kiw_rq_move *move);
};

/**
 * struct kiw_sq - a send queue
 * @lock: protects changes of @put, @get, @is_extended and, unless a process has mapped it, the
 *	ring; irq-safe because consumers may post from anywhere; innermost
 * @ops: format
 * @ring: entries
 * @size: slots, a power of two
 * @put: free-running: next slot to post to (kernel format only)
 * @get: free-running: next slot to fetch
 * @done: free-running: next slot to return, not after @get: as many entries as were fetched and are
 *	done; changes are protected by the socket lock or, if there is no socket, the QP's mutex
 * @max_sge: maximum number of SGEs of a work request
 * @max_inline: maximum size of inline data, in bytes
 * @is_extended: the connection has the messages of RFC 7306; set with each connection
 */
struct kiw_sq {
	spinlock_t lock;
	const struct kiw_sq_ops *ops;
	void *ring;
	u32 size;
	u32 put;
	u32 get;
	u32 done;
	u8 max_sge;
	u8 max_inline;
	bool is_extended;
};

/**
 * struct kiw_rq - a receive queue, of a QP or shared
 * @lock: protects changes of @put, @get, @ring, @size and, unless a process has mapped it, the
 *	ring's entries; irq-safe; innermost
 * @ops: format
 * @ring: entries; that of a shared queue may be replaced, and @size with it
 * @size: slots, a power of two
 * @put: free-running: next slot to post to (kernel format only)
 * @get: free-running: next slot to fetch
 * @max_sge: maximum number of SGEs of a work request
 */
struct kiw_rq {
	spinlock_t lock;
	const struct kiw_rq_ops *ops;
	void *ring;
	u32 size;
	u32 put;
	u32 get;
	u8 max_sge;
};

/* End a move: exchange the rings; called with &struct kiw_rq.lock held. */
static inline void kiw_rq_exchange(struct kiw_rq *rq, struct kiw_rq_move *move)
{
	lockdep_assert_held(&rq->lock);
	swap(rq->ring, move->ring);
	/* A query reads it without the lock. */
	WRITE_ONCE(rq->size, move->size);
}

/* Are there at least @n entries to fetch; see &struct kiw_sq_ops.has */
static inline bool kiw_sq_has(const struct kiw_sq *sq, u32 n)
{
	return sq->ops->has(sq, n);
}

/**
 * kiw_sq_done() - let the poster use the slot of an entry again
 * @sq: send queue of any format
 *
 * Called once for each entry that was fetched, in that order, when it is done and before its
 * completion is posted: whoever sees the completion can post again.
 *
 * Context: serialised by the socket lock or, if there is no socket, the QP's mutex.
 */
static inline void kiw_sq_done(struct kiw_sq *sq)
{
	/* Pairs with the acquire in kiw_sq_post(). */
	smp_store_release(&sq->done, sq->done + 1);
	if (sq->ops->done)
		sq->ops->done(sq);
}

extern const struct kiw_sq_ops kiw_sq_kernel_ops;
extern const struct kiw_rq_ops kiw_rq_kernel_ops;

/* Memory for a ring in the kernel format; free with kvfree() */
void *kiw_sq_kernel_ring(u32 size, u8 max_sge);
void *kiw_rq_kernel_ring(u32 size);

/* Any context */
int kiw_sq_post(struct kiw_sq *sq, const struct ib_send_wr *wr);
int kiw_rq_post(struct kiw_rq *rq, const struct ib_recv_wr *wr);
int kiw_sq_fetch(struct kiw_sq *sq, struct kiw_swqe *wqe);
int kiw_rq_fetch(struct kiw_rq *rq, struct kiw_rwqe *wqe);

#endif /* KIW_WR_H */
