// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Three queues of a QP: the work requests that were started and have not completed (pend ring), its
 * outstanding Reads (ORQ), and the peer's Reads (inbound Reads).
 *
 * Context: set up in process context; used under the socket lock, or the QP's mutex if there is no
 * socket, which protects everything here.
 */
#include "readq.h"

#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "proto/ring.h"

/*
 * Rings are allocated when they are needed, to save memory on idle connections. The exceptions are
 * a pend ring of more than a page, see kiw_pend_init(), and a stream on which memory reclaim may
 * depend: its first request must not wait for memory.
 */
static int readq_init(size_t bytes, bool is_memalloc, void **slots)
{
	*slots = is_memalloc ? kvzalloc(bytes, GFP_KERNEL | __GFP_MEMALLOC) : NULL;
	return is_memalloc && !*slots ? -ENOMEM : 0;
}

/*
 * Allocate a ring, charged to @memcg unless that is NULL: softirq has no memory cgroup, and a
 * kworker has the system's. readq_init() does not charge, because it allocates only for QPs of
 * kernel consumers.
 */
static void *readq_slots(struct mem_cgroup *memcg, size_t bytes)
{
	struct mem_cgroup *before = set_active_memcg(memcg);
	void *slots = kzalloc(bytes, GFP_ATOMIC | __GFP_ACCOUNT | __GFP_NOWARN);

	set_active_memcg(before);
	return slots;
}

/**
 * kiw_pend_init() - make a pend ring
 * @ring: to initialise
 * @max: maximum number of work requests started and not completed, a power of two
 *
 * A ring of more than a page is allocated now, because atomic allocations are limited.
 *
 * Context: process, may sleep; the memory cgroup of the current task is charged.
 * Return: 0 or -ENOMEM.
 */
int kiw_pend_init(struct kiw_pend_ring *ring, u32 max)
{
	size_t bytes = array_size(max, sizeof(*ring->slots));

	*ring = (struct kiw_pend_ring) { .max = max };
	if (bytes <= PAGE_SIZE)
		return 0;
	ring->slots = kvzalloc(bytes, GFP_KERNEL_ACCOUNT);
	if (!ring->slots)
		return -ENOMEM;
	ring->size = max;
	return 0;
}

/**
 * kiw_pend_reset() - make a pend ring empty, for a new stream
 * @ring: the ring; not in use
 * @memcg: memory cgroup charged for slots that are allocated later, or NULL
 * @is_memalloc: allocate the slots now, from the kernel's memory reserves if need be
 *
 * Context: process, may sleep.
 * Return: 0 or -ENOMEM.
 */
int kiw_pend_reset(struct kiw_pend_ring *ring, struct mem_cgroup *memcg, bool is_memalloc)
{
	struct kiw_pend *slots = ring->slots;
	int ret = 0;

	if (!slots)
		ret = readq_init(array_size(ring->max, sizeof(*slots)), is_memalloc,
				 (void **)&slots);
	*ring = (struct kiw_pend_ring) {
		.slots = slots,
		.size = slots ? ring->max : 0,
		.max = ring->max,
		.memcg = memcg,
	};
	return ret;
}

/**
 * kiw_pend_uninit() - free a pend ring
 * @ring: the ring; may be all zeroes
 *
 * Context: process.
 */
void kiw_pend_uninit(struct kiw_pend_ring *ring)
{
	kvfree(ring->slots);
	ring->slots = NULL;
}

static size_t readq_orq_bytes(const struct kiw_orq *orq)
{
	return orq->size * sizeof(*orq->slots) + orq->num_sges * sizeof(*orq->sges);
}

static void readq_orq_set_slots(struct kiw_orq *orq, void *slots)
{
	orq->slots = slots;
	orq->sges = slots + orq->size * sizeof(*orq->slots);
}

/**
 * kiw_orq_init() - make an empty ORQ
 * @orq: to initialise
 * @depth: the connection's ORD; may be 0
 * @is_memalloc: allocate the slots now, from the kernel's memory reserves if need be
 *
 * Context: process, may sleep.
 * Return: 0 or -ENOMEM.
 */
int kiw_orq_init(struct kiw_orq *orq, u32 depth, bool is_memalloc)
{
	void *slots;
	int ret;

	memset(orq, 0, sizeof(*orq));
	orq->depth = depth;
	orq->size = kiw_ring_size(depth, U16_MAX);
	/* Room for @size - 1 Reads with one SGE, a gap at the end of the ring, and the next Read */
	orq->num_sges = kiw_ring_size(orq->size + 2 * (KIW_MAX_SGE - 1), U32_MAX);
	ret = readq_init(readq_orq_bytes(orq), is_memalloc, &slots);
	readq_orq_set_slots(orq, slots);
	return ret;
}

/**
 * kiw_orq_uninit() - free an ORQ
 * @orq: the queue; may be all zeroes
 *
 * Context: process.
 */
void kiw_orq_uninit(struct kiw_orq *orq)
{
	kvfree(orq->slots);
	orq->slots = NULL;
}

/**
 * kiw_inq_init() - make an empty queue of inbound Reads
 * @inq: to initialise
 * @depth: the connection's IRD; may be 0
 * @is_extended: the peer may send Atomic Requests, too
 * @is_memalloc: allocate the slots now, from the kernel's memory reserves if need be
 *
 * Context: process, may sleep.
 * Return: 0 or -ENOMEM.
 */
int kiw_inq_init(struct kiw_inq *inq, u32 depth, bool is_extended, bool is_memalloc)
{
	void *slots;
	int ret;

	memset(inq, 0, sizeof(*inq));
	inq->depth = depth;
	inq->size = kiw_ring_size(depth, U16_MAX);
	inq->slot_bytes = is_extended ? sizeof(struct kiw_peer_read) :
					offsetofend(struct kiw_peer_read, req);
	ret = readq_init(array_size(inq->size, inq->slot_bytes), is_memalloc, &slots);
	inq->slots = slots;
	return ret;
}

/**
 * kiw_inq_uninit() - free the queue of inbound Reads
 * @inq: the queue; may be all zeroes
 *
 * Context: process.
 */
void kiw_inq_uninit(struct kiw_inq *inq)
{
	kvfree(inq->slots);
	inq->slots = NULL;
}

/**
 * kiw_pend_ready() - make sure that a pend ring has slots
 * @ring: the ring; one without slots counts as full
 *
 * Context: serialised by the caller.
 * Return: false: no memory at this moment.
 */
bool kiw_pend_ready(struct kiw_pend_ring *ring)
{
	if (!ring->slots)
		ring->slots = readq_slots(ring->memcg,
					  array_size(ring->max, sizeof(*ring->slots)));
	ring->size = ring->slots ? ring->max : 0;
	return ring->slots;
}

/**
 * kiw_orq_ready() - make sure that an ORQ has slots
 * @orq: the queue
 *
 * Context: serialised by the caller.
 * Return: false: no memory at this moment.
 */
bool kiw_orq_ready(struct kiw_orq *orq)
{
	if (!orq->slots)
		readq_orq_set_slots(orq, readq_slots(orq->memcg, readq_orq_bytes(orq)));
	return orq->slots;
}

/**
 * kiw_inq_ready() - make sure that a queue of inbound Reads has slots
 * @inq: the queue
 *
 * Context: serialised by the caller.
 * Return: false: no memory at this moment.
 */
bool kiw_inq_ready(struct kiw_inq *inq)
{
	if (!inq->slots)
		inq->slots = readq_slots(inq->memcg, array_size(inq->size, inq->slot_bytes));
	return inq->slots;
}

/**
 * kiw_pend_add() - add a work request that starts
 * @ring: the ring, not full
 * @wqe: the work request
 * @is_signaled: report success as well
 *
 * Afterwards @ring->put - 1 is the counter of the work request, for kiw_pend_at().
 *
 * Context: serialised by the caller.
 */
void kiw_pend_add(struct kiw_pend_ring *ring, const struct kiw_swqe *wqe, bool is_signaled)
{
	struct kiw_pend *pend = kiw_pend_at(ring, ring->put);

	pend->wr_id = wqe->wr_id;
	pend->length = wqe->length;
	pend->op = wqe->op;
	pend->status = KIW_WCS_SUCCESS;
	pend->is_signaled = is_signaled;
	pend->is_built = false;
	pend->is_done = false;
	pend->is_lent = false;
	ring->put++;
}

/**
 * kiw_pend_cut() - account for FPDUs that were discarded from the end of the stream
 * @ring: the ring
 * @end: end of what remains of the stream, as &struct kiw_tx.offset counts
 *
 * Other data will take the place of these FPDUs. So a work request that has lost FPDUs no longer
 * counts as built, and will not count as sent.
 *
 * Context: serialised by the caller.
 */
void kiw_pend_cut(struct kiw_pend_ring *ring, u32 end)
{
	struct kiw_pend *pend;
	u32 pos;

	for (pos = ring->taken; pos != ring->put; pos++) {
		pend = kiw_pend_at(ring, pos);
		if (!kiw_pend_is_sent(pend, end))
			pend->is_built = false;
	}
}

/* SGEs skipped at the end of the ring, if the rest is too short for @count contiguous ones */
static u32 readq_orq_gap(const struct kiw_orq *orq, u32 count)
{
	u32 rest = orq->num_sges - kiw_ring_slot(orq->sge_put, orq->num_sges);

	return rest < count ? rest : 0;
}

static bool readq_orq_has_sges(const struct kiw_orq *orq, u32 count)
{
	u32 used = orq->sge_put - orq->sge_get;

	return kiw_orq_is_empty(orq) || used + readq_orq_gap(orq, count) + count <= orq->num_sges;
}

/**
 * kiw_orq_is_full() - is an ORQ full?
 * @orq: the queue
 *
 * It is full if as many Reads are outstanding as ORD allows, or if their SGEs leave too little room
 * for %KIW_MAX_SGE more.
 *
 * Context: serialised by the caller.
 * Return: true: it is full; always if ORD is 0.
 */
bool kiw_orq_is_full(const struct kiw_orq *orq)
{
	return kiw_ring_full(orq->put, orq->get, orq->depth) ||
	       !readq_orq_has_sges(orq, KIW_MAX_SGE);
}

/**
 * kiw_orq_add() - add a Read that is sent
 * @orq: the queue, ready and not full
 * @sge: sink of the Read; copied
 * @num_sge: number of SGEs, at most %KIW_MAX_SGE
 *
 * Context: serialised by the caller.
 * Return: the new entry, zero except for what describes its SGEs, for the caller to fill.
 */
struct kiw_read *kiw_orq_add(struct kiw_orq *orq, const struct kiw_sge *sge, u8 num_sge)
{
	struct kiw_read *read;
	u32 at;

	if (kiw_orq_is_empty(orq))
		orq->sge_get = orq->sge_put;
	at = orq->sge_put + readq_orq_gap(orq, num_sge);
	read = &orq->slots[kiw_ring_slot(orq->put++, orq->size)];
	memset(read, 0, sizeof(*read));
	read->sge = &orq->sges[kiw_ring_slot(at, orq->num_sges)];
	memcpy(read->sge, sge, num_sge * sizeof(*sge));
	read->num_sge = num_sge;
	read->sge_end = at + num_sge;
	orq->sge_put = read->sge_end;
	return read;
}

/**
 * kiw_orq_done() - remove the oldest Read, which has been answered or has failed
 * @orq: the queue, not empty
 *
 * Context: serialised by the caller.
 */
void kiw_orq_done(struct kiw_orq *orq)
{
	orq->sge_get = kiw_orq_oldest(orq)->sge_end;
	orq->get++;
}

/**
 * kiw_inq_add() - add a Read of the peer
 * @inq: the queue, ready
 * @req: the request
 * @ddp: its DDP header, %KIW_DDP_UNTAGGED_HDR octets
 *
 * Context: serialised by the caller.
 * Return: false: the peer has more Reads outstanding than IRD allows.
 */
bool kiw_inq_add(struct kiw_inq *inq, const struct kiw_read_req *req, const u8 *ddp)
{
	struct kiw_peer_read *read;

	if (kiw_ring_full(inq->put, inq->get, inq->depth))
		return false;
	read = kiw_inq_at(inq, inq->put++);
	read->req = *req;
	read->is_atomic = false;
	memcpy(read->ddp, ddp, sizeof(read->ddp));
	return true;
}

/**
 * kiw_inq_add_atomic() - add an Atomic Operation of the peer
 * @inq: the queue, ready and extended
 * @req: the request
 * @ddp: its DDP header, %KIW_DDP_UNTAGGED_HDR octets
 *
 * Context: serialised by the caller.
 * Return: false: the peer has more requests outstanding than IRD allows.
 */
bool kiw_inq_add_atomic(struct kiw_inq *inq, const struct kiw_atomic_req *req, const u8 *ddp)
{
	struct kiw_peer_read *read;

	if (kiw_ring_full(inq->put, inq->get, inq->depth))
		return false;
	read = kiw_inq_at(inq, inq->put++);
	read->atomic = *req;
	read->is_atomic = true;
	read->is_executed = false;
	memcpy(read->ddp, ddp, sizeof(read->ddp));
	return true;
}

/**
 * kiw_inq_done() - remove the oldest request, whose Response has been built
 * @inq: the queue, not empty
 *
 * Context: serialised by the caller.
 */
void kiw_inq_done(struct kiw_inq *inq)
{
	inq->get++;
}
