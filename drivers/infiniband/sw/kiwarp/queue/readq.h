/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Three queues that order a QP's work: work requests that were started and have not completed,
 * outstanding RDMA Reads of this end (ORQ), and inbound RDMA Reads, to which this end responds. The
 * Atomic Operations of RFC 7306 take their places among the Reads (RFC 7306 5.2).
 *
 * Owns: the rings of these queues. A ring is allocated when it is first needed: call
 * kiw_pend_ready() and its siblings before adding an entry. A pend ring of more than a page is
 * allocated with the QP. A stream that may use the kernel's memory reserves gets its rings when it
 * is set up. The queues are used under the socket lock, or the QP's mutex if there is no socket.
 */
#ifndef KIW_READQ_H
#define KIW_READQ_H

#include "proto/rdmap.h"
#include "proto/rdmap_ext.h"
#include "proto/ring.h"
#include "wr.h"

struct mem_cgroup;

/**
 * struct kiw_pend - a send work request that was started and has not completed
 * @wr_id: the consumer's cookie
 * @length: bytes to transfer
 * @end: where it ends in the stream, as &struct kiw_tx.offset counts, if @is_built
 * @loan: counter of the last loan of its pages, as &struct kiw_tx.lent counts, if @is_lent
 * @op: &enum kiw_wr_op
 * @status: &enum kiw_wcs, if @is_done
 * @is_signaled: the consumer wants a completion for success as well
 * @is_built: its last FPDU was built
 * @is_done: it only waits for older ones to complete
 * @is_lent: pages were lent to TCP: it is not done before they are returned
 */
struct kiw_pend {
	u64 wr_id;
	u32 length;
	u32 end;
	u32 loan;
	u8 op;
	u8 status;
	bool is_signaled;
	bool is_built;
	bool is_done;
	bool is_lent;
};

/**
 * struct kiw_pend_ring - ring of &struct kiw_pend, in order of posting
 * @slots: ring with @size slots, or NULL
 * @size: @max, a power of two, or 0 if there are no slots yet
 * @max: maximum number of work requests started and not completed
 * @put: free-running: next slot to fill
 * @taken: free-running: all entries before this one are done, or TCP has taken them completely and
 *	returned what it was lent of them
 * @get: free-running: oldest entry not completed
 * @memcg: memory cgroup charged for slots that are allocated later, or NULL; referenced by the QP
 */
struct kiw_pend_ring {
	struct kiw_pend *slots;
	u32 size;
	u32 max;
	u32 put;
	u32 taken;
	u32 get;
	struct mem_cgroup *memcg;
};

/**
 * struct kiw_read - an outstanding RDMA Read or Atomic Operation of ours
 * @stag: Read: private sink STag, only valid for this Response, 0 if it is an RTR; Atomic
 *	Operation: its Request Identifier
 * @length: Read: bytes requested
 * @received: bytes placed
 * @pend: counter of its entry in the pend ring, unless @is_rtr
 * @sge: sink of the Read; part of &struct kiw_orq.sges
 * @sge_end: the SGE after its last one, as &struct kiw_orq.sge_put counts
 * @is_atomic: an Atomic Operation
 * @is_rtr: sent as an RTR, RFC 6581 9.2; it completes no work request
 * @with_inv: the STag of the only entry of @sge is invalidated when all has arrived
 * @num_sge: number of SGEs
 */
struct kiw_read {
	u32 stag;
	u32 length;
	u32 received;
	u32 pend;
	struct kiw_sge *sge;
	u32 sge_end;
	bool is_atomic;
	bool is_rtr;
	bool with_inv;
	u8 num_sge;
};

/**
 * struct kiw_orq - outstanding RDMA Reads, oldest first
 *
 * If Reads have one SGE, room for %KIW_MAX_SGE of them in each slot would be wasted. Instead
 * the Reads share a ring of SGEs, in which those of a Read are contiguous. The ring is long
 * enough that Reads wait for room in it only if some have more than one SGE.
 *
 * @slots: ring with @size slots, or NULL if not allocated yet
 * @sges: ring with @num_sges SGEs, in memory after the slots
 * @size: a power of two, at least @depth
 * @depth: maximum number of outstanding Reads: exactly the connection's ORD
 * @put: free-running: next slot to fill
 * @get: free-running: oldest outstanding Read
 * @num_sges: a power of two
 * @sge_put: free-running: SGEs from this one on are not in use
 * @sge_get: free-running: SGEs before this one are not in use
 * @memcg: as in &struct kiw_pend_ring
 */
struct kiw_orq {
	struct kiw_read *slots;
	struct kiw_sge *sges;
	u32 size;
	u32 depth;
	u32 put;
	u32 get;
	u32 num_sges;
	u32 sge_put;
	u32 sge_get;
	struct mem_cgroup *memcg;
};

/**
 * struct kiw_peer_read - an RDMA Read or Atomic Operation of the peer
 * @ddp: DDP header of the request as received; a Terminate quotes it to identify the request
 * @is_atomic: an Atomic Operation
 * @is_executed: Atomic Operation: it was executed, and only its Response has to be built
 * @req: Read: what is to be read
 * @atomic: Atomic Operation: what is to be done; like @value, only in slots of an extended queue
 * @value: Atomic Operation: what was in memory, if @is_executed
 */
struct kiw_peer_read {
	u8 ddp[KIW_DDP_UNTAGGED_HDR];
	bool is_atomic;
	bool is_executed;
	union {
		struct kiw_read_req req;
		struct {
			struct kiw_atomic_req atomic;
			u64 value;
		};
	};
};

/**
 * struct kiw_inq - inbound RDMA Reads: those of the peer, oldest first
 * @slots: ring with @size slots, or NULL if not allocated yet
 * @slot_bytes: size of a slot; slots without room for an Atomic Operation are shorter
 * @size: a power of two, at least @depth
 * @depth: maximum number of Reads the peer may have outstanding: exactly the connection's IRD
 * @put: free-running: next slot to fill
 * @get: free-running: oldest request
 * @memcg: as in &struct kiw_pend_ring
 */
struct kiw_inq {
	void *slots;
	u32 slot_bytes;
	u32 size;
	u32 depth;
	u32 put;
	u32 get;
	struct mem_cgroup *memcg;
};

/* Process context */
int kiw_pend_init(struct kiw_pend_ring *ring, u32 max);
int kiw_pend_reset(struct kiw_pend_ring *ring, struct mem_cgroup *memcg, bool is_memalloc);
void kiw_pend_uninit(struct kiw_pend_ring *ring);
int kiw_orq_init(struct kiw_orq *orq, u32 depth, bool is_memalloc);
void kiw_orq_uninit(struct kiw_orq *orq);
int kiw_inq_init(struct kiw_inq *inq, u32 depth, bool is_extended, bool is_memalloc);
void kiw_inq_uninit(struct kiw_inq *inq);

/* Serialised by the caller; see the head of readq.c */
bool kiw_pend_ready(struct kiw_pend_ring *ring);
bool kiw_orq_ready(struct kiw_orq *orq);
bool kiw_inq_ready(struct kiw_inq *inq);
void kiw_pend_add(struct kiw_pend_ring *ring, const struct kiw_swqe *wqe, bool is_signaled);
void kiw_pend_cut(struct kiw_pend_ring *ring, u32 end);
struct kiw_read *kiw_orq_add(struct kiw_orq *orq, const struct kiw_sge *sge, u8 num_sge);
void kiw_orq_done(struct kiw_orq *orq);
bool kiw_orq_is_full(const struct kiw_orq *orq);
bool kiw_inq_add(struct kiw_inq *inq, const struct kiw_read_req *req, const u8 *ddp);
bool kiw_inq_add_atomic(struct kiw_inq *inq, const struct kiw_atomic_req *req, const u8 *ddp);
void kiw_inq_done(struct kiw_inq *inq);

/**
 * kiw_pend_is_full() - is a pend ring full?
 * @ring: the ring
 *
 * Context: serialised by the caller.
 * Return: true: no work request may start before another one completes, or the ring has no slots.
 */
static inline bool kiw_pend_is_full(const struct kiw_pend_ring *ring)
{
	return kiw_ring_full(ring->put, ring->get, ring->size);
}

/**
 * kiw_pend_is_empty() - is a pend ring empty?
 * @ring: the ring
 *
 * Context: serialised by the caller.
 * Return: true: every work request that was started has completed.
 */
static inline bool kiw_pend_is_empty(const struct kiw_pend_ring *ring)
{
	return kiw_ring_empty(ring->put, ring->get);
}

/**
 * kiw_pend_at() - get a work request by its counter
 * @ring: the ring
 * @pos: free-running counter
 *
 * Context: serialised by the caller.
 * Return: the entry.
 */
static inline struct kiw_pend *kiw_pend_at(struct kiw_pend_ring *ring, u32 pos)
{
	return &ring->slots[kiw_ring_slot(pos, ring->size)];
}

/**
 * kiw_pend_is_sent() - has TCP taken all of a work request?
 * @pend: the work request; if it is built and not done, its end is less than 2^31 bytes from @end
 * @end: how much of the stream TCP has taken, as &struct kiw_tx.offset counts
 *
 * Context: serialised by the caller.
 * Return: true: it has, or the work request is done.
 */
static inline bool kiw_pend_is_sent(const struct kiw_pend *pend, u32 end)
{
	return pend->is_done || (pend->is_built && (s32)(end - pend->end) >= 0);
}

/**
 * kiw_orq_is_empty() - is an ORQ empty?
 * @orq: the queue
 *
 * Context: serialised by the caller.
 * Return: true: no Read is outstanding.
 */
static inline bool kiw_orq_is_empty(const struct kiw_orq *orq)
{
	return kiw_ring_empty(orq->put, orq->get);
}

/**
 * kiw_orq_oldest() - get the Read that the next Response answers, RFC 5040 5.5
 * @orq: the queue
 *
 * Context: serialised by the caller.
 * Return: its entry, or NULL.
 */
static inline struct kiw_read *kiw_orq_oldest(struct kiw_orq *orq)
{
	if (kiw_orq_is_empty(orq))
		return NULL;
	return &orq->slots[kiw_ring_slot(orq->get, orq->size)];
}

/* The slot of the request with counter @pos */
static inline struct kiw_peer_read *kiw_inq_at(const struct kiw_inq *inq, u32 pos)
{
	return inq->slots + kiw_ring_slot(pos, inq->size) * inq->slot_bytes;
}

/* Have all requests been answered? Context: serialised by the caller. */
static inline bool kiw_inq_is_empty(const struct kiw_inq *inq)
{
	return kiw_ring_empty(inq->put, inq->get);
}

/**
 * kiw_inq_oldest() - get the request to answer next
 * @inq: the queue, not empty
 *
 * Context: serialised by the caller.
 * Return: its entry.
 */
static inline struct kiw_peer_read *kiw_inq_oldest(const struct kiw_inq *inq)
{
	return kiw_inq_at(inq, inq->get);
}

#endif /* KIW_READQ_H */
