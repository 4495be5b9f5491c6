/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Three queues that order a QP's work: work requests begun and not completed,
 * our outstanding RDMA Reads (ORQ), the peer's RDMA Reads to answer (IRQ).
 *
 * Owns: their rings. Many connections never read, or only in one direction, so a ring that
 * is no longer than a page is allocated when it is needed first: kiw_pend_ready() and the like
 * come before an entry is added. What is used is used under the socket lock. A stream that may
 * use the kernel's reserves of memory gets its rings at once.
 */
#ifndef KIW_READQ_H
#define KIW_READQ_H

#include "proto/rdmap.h"
#include "wr.h"

struct mem_cgroup;

/**
 * struct kiw_pend - a send work request begun and not completed
 * @wr_id: the consumer's cookie
 * @length: bytes it moved
 * @end: @is_built: where in the stream it ends, as &struct kiw_tx.offset counts
 * @op: &enum kiw_wr_op
 * @status: &enum kiw_wcs, once @is_done
 * @is_signaled: the consumer wants a completion of success too
 * @is_built: its last FPDU was made
 * @is_done: waits for older ones only
 */
struct kiw_pend {
	u64 wr_id;
	u32 length;
	u32 end;
	u8 op;
	u8 status;
	bool is_signaled;
	bool is_built;
	bool is_done;
};

/**
 * struct kiw_pend_ring - those, in order of posting
 * @slots: ring of @size, or NULL
 * @size: @max, a power of two, or 0: there are no slots yet
 * @max: most work requests begun and not completed
 * @put: free-running
 * @taken: free-running: entries before it are with TCP as a whole
 * @get: free-running: oldest not completed
 * @memcg: pays for slots that are allocated later, or NULL; referenced by the QP
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
 * struct kiw_read - an outstanding RDMA Read of ours
 * @stag: private sink STag, valid for this response alone
 * @length: bytes asked for
 * @received: bytes placed
 * @pend: its counter in the pend ring
 * @sge: where the bytes go; part of &struct kiw_orq.sges
 * @sge_end: where the next Read's begin, as &struct kiw_orq.sge_put counts
 * @is_rtr: it was sent to say that we are there, RFC 6581 9.2; nobody waits for it
 * @with_inv: the STag of the only entry of @sge is made invalid when all has come
 * @num_sge: entries of @sge
 */
struct kiw_read {
	u32 stag;
	u32 length;
	u32 received;
	u32 pend;
	struct kiw_sge *sge;
	u32 sge_end;
	bool is_rtr;
	bool with_inv;
	u8 num_sge;
};

/**
 * struct kiw_orq - outstanding RDMA Reads, oldest first
 *
 * Most Reads have one SGE, so room for %KIW_MAX_SGE in each slot would be for nothing: they
 * share a ring, in which those of a Read are next to each other. It is long enough that Reads
 * with one SGE never wait for it.
 *
 * @slots: ring of @size, or NULL: not allocated yet
 * @sges: ring of @num_sges, behind the slots
 * @size: a power of two, at least @depth
 * @depth: most that may be outstanding: the negotiated ORD, exactly
 * @put: free-running
 * @get: free-running
 * @num_sges: a power of two
 * @sge_put: free-running
 * @sge_get: free-running
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
 * struct kiw_peer_read - an RDMA Read of the peer
 * @req: what is to be read
 * @ddp: DDP header of the request, as it came; a Terminate says which request it means
 */
struct kiw_peer_read {
	struct kiw_read_req req;
	u8 ddp[KIW_DDP_UNTAGGED_HDR];
};

/**
 * struct kiw_irq - the peer's RDMA Reads, oldest first
 * @slots: ring of @size, or NULL: not allocated yet
 * @size: a power of two, at least @depth
 * @depth: most the peer may have outstanding: the negotiated IRD, exactly
 * @put: free-running
 * @get: free-running
 * @memcg: as in &struct kiw_pend_ring
 */
struct kiw_irq {
	struct kiw_peer_read *slots;
	u32 size;
	u32 depth;
	u32 put;
	u32 get;
	struct mem_cgroup *memcg;
};

/* Process context */
int kiw_pend_init(struct kiw_pend_ring *ring, u32 max, bool is_memalloc);
void kiw_pend_uninit(struct kiw_pend_ring *ring);
int kiw_orq_init(struct kiw_orq *orq, u32 depth, bool is_memalloc);
void kiw_orq_uninit(struct kiw_orq *orq);
int kiw_irq_init(struct kiw_irq *irq, u32 depth, bool is_memalloc);
void kiw_irq_uninit(struct kiw_irq *irq);

/* Socket lock held */
bool kiw_pend_ready(struct kiw_pend_ring *ring);
bool kiw_orq_ready(struct kiw_orq *orq);
bool kiw_irq_ready(struct kiw_irq *irq);
bool kiw_pend_is_full(const struct kiw_pend_ring *ring);
bool kiw_pend_is_empty(const struct kiw_pend_ring *ring);
void kiw_pend_add(struct kiw_pend_ring *ring, const struct kiw_swqe *wqe, bool is_signaled);
struct kiw_pend *kiw_pend_at(struct kiw_pend_ring *ring, u32 pos);
void kiw_pend_cut(struct kiw_pend_ring *ring, u32 end);
bool kiw_pend_is_sent(const struct kiw_pend *pend, u32 end);
struct kiw_read *kiw_orq_add(struct kiw_orq *orq, const struct kiw_sge *sge, u8 num_sge);
struct kiw_read *kiw_orq_oldest(struct kiw_orq *orq);
void kiw_orq_done(struct kiw_orq *orq);
bool kiw_orq_is_full(const struct kiw_orq *orq);
bool kiw_orq_is_empty(const struct kiw_orq *orq);
bool kiw_irq_add(struct kiw_irq *irq, const struct kiw_read_req *req, const u8 *ddp);
struct kiw_peer_read *kiw_irq_oldest(struct kiw_irq *irq);
void kiw_irq_done(struct kiw_irq *irq);

#endif /* KIW_READQ_H */
