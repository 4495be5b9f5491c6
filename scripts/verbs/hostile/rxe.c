// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The rings of rxe's user ABI: an index of each side in the head of the ring. Depths are powers of
 * two, and one slot stays empty, so rings have twice as many slots.
 */
#include "hostile.h"

#include <rdma/rdma_user_rxe.h>

#define SQE_BYTES	512
#define RQE_BYTES	256
#define CQE_BYTES	64

/* The entry that put_entry() writes */
static struct rxe_send_wqe entry;
static struct rxe_sge sges[MAX_SGE + 1];

static void put_entry(void *ring)
{
	struct rxe_queue_buf *buf = ring;

	memcpy(buf->data, &entry, sizeof(entry));
	memcpy(buf->data + sizeof(entry), sges, sizeof(sges));
	__atomic_store_n(&buf->producer_index, 1, __ATOMIC_RELEASE);
}

/* What is not set is not read: it is as an earlier entry may have left it. */
static void plain(__u32 opcode)
{
	__u32 lkey, rkey;
	__u64 addr = open_room(&lkey, &rkey);

	memset(&entry, 0xa5, sizeof(entry));
	entry.wr.wr_id = ID;
	entry.wr.opcode = opcode;
	entry.wr.send_flags = IBV_SEND_SIGNALED;
	entry.wr.wr.rdma.remote_addr = addr;
	entry.wr.wr.rdma.rkey = rkey;
	entry.dma.length = 16;
	entry.dma.num_sge = 1;
	sges[0] = (struct rxe_sge) { addr, 16, lkey };
}

static void refuse_opcodes(void)
{
	static const __u32 opcodes[] = {
		3, 10, 11, 12, 13, 14, 15, 16, 127, 128, 255, 256, 258, 1u << 31, ~0u,
	};
	char name[32];
	size_t i;

	for (i = 0; i < ARRAY_SIZE(opcodes); i++) {
		plain(opcodes[i]);
		snprintf(name, sizeof(name), "opcode %u", opcodes[i]);
		refuse(put_entry, name);
	}
}

static void refuse_flags(void)
{
	char name[32];
	int i;

	for (i = 4; i < 32; i += 3) {
		plain(IBV_WR_SEND);
		entry.wr.send_flags |= 1u << i;
		snprintf(name, sizeof(name), "flag %d", i);
		refuse(put_entry, name);
	}
}

static void refuse_inline(__u32 opcode, __u32 flags, __u32 num_sge, __u32 length, const char *what)
{
	plain(opcode);
	entry.wr.send_flags |= flags;
	entry.dma.num_sge = num_sge;
	entry.dma.length = length;
	refuse(put_entry, what);
}

/* A binding of a window of end 0 to the open memory, which would succeed */
static void plain_bind(int number)
{
	__u32 lkey, rkey;
	__u64 addr = open_room(&lkey, &rkey);

	plain(IBV_WR_BIND_MW);
	entry.wr.wr.mw.addr = addr;
	entry.wr.wr.mw.length = PAGE;
	entry.wr.wr.mw.mr_lkey = lkey;
	entry.wr.wr.mw.mw_rkey = window_stag(number, false);
	entry.wr.wr.mw.rkey = window_stag(number, false) ^ 1;
	entry.wr.wr.mw.access = IBV_ACCESS_REMOTE_WRITE;
}

static void refuse_bind(const char *what)
{
	refuse_as(put_entry, what, IBV_WC_MW_BIND_ERR);
}

static void refuse_binds(int number)
{
	plain_bind(number);
	entry.wr.wr.mw.mw_rkey = window_stag(number, true);
	refuse_bind("a window of another index");
	entry.wr.wr.mw.rkey = window_stag(number, true);
	refuse_bind("a window of another domain");
	plain_bind(number);
	entry.wr.wr.mw.mr_lkey = region_stag(OTHER_PD);
	refuse_bind("a region of another domain");
	entry.wr.wr.mw.mr_lkey = region_stag(READ_ONLY);
	refuse_bind("a region that cannot be written");
	entry.wr.wr.mw.mr_lkey = window_stag(number, false);
	refuse_bind("a window as the region");
	entry.wr.wr.mw.mr_lkey = 0;
	refuse_bind("region 0");
	plain_bind(number);
	entry.wr.wr.mw.rkey = region_stag(OPEN);
	entry.wr.wr.mw.mw_rkey = region_stag(OPEN);
	refuse_bind("a region as the window");
	plain_bind(number);
	entry.wr.wr.mw.access = ~0u;
	refuse_bind("all access flags");
	plain_bind(number);
	entry.wr.wr.mw.addr = ~0ULL;
	refuse_bind("the end of all memory");
	plain_bind(number);
	entry.wr.wr.mw.length = ~0ULL;
	refuse_bind("a length that wraps");
	plain(IBV_WR_LOCAL_INV);
	entry.wr.ex.invalidate_rkey = region_stag(OPEN);
	refuse_bind("invalidating a region");
	entry.wr.ex.invalidate_rkey = window_stag(number, true);
	refuse_bind("invalidating a window of another domain");
}

/* As above: the sum of the lengths is not read. */
static void put_receive(void *ring)
{
	struct rxe_queue_buf *buf = ring;
	struct rxe_recv_wqe *wqe = (void *)buf->data;
	__u32 lkey;
	__u64 addr = receiver_room(&lkey) + wrong_recv.after;
	int i;

	memset(wqe, 0xa5, sizeof(*wqe));
	wqe->wr_id = ID;
	wqe->dma.num_sge = wrong_recv.num_sge;
	for (i = 0; i < MAX_SGE; i++)
		((struct rxe_sge *)(wqe + 1))[i] = (struct rxe_sge) {
			addr, wrong_recv.length, lkey ^ wrong_recv.lkey,
		};
	__atomic_store_n(&buf->producer_index, 1, __ATOMIC_RELEASE);
}

static void refuse_all(void)
{
	static const __u32 counts[BAD_COUNTS] = { MAX_SGE + 1, 256, ~0u };

	refuse_opcodes();
	refuse_flags();
	refuse_binds(1);
	refuse_binds(2);
	plain(IBV_WR_RDMA_WRITE);
	entry.dma.num_sge = MAX_SGE + 1;
	refuse(put_entry, "7 SGEs");
	entry.dma.num_sge = ~0u;
	refuse(put_entry, "2^32 - 1 SGEs");
	plain(IBV_WR_RDMA_WRITE);
	entry.dma.num_sge = 2;
	sges[0].length = 0xffffffff;
	sges[1] = sges[0];
	refuse(put_entry, "lengths that wrap");
	refuse_inline(IBV_WR_SEND, IBV_SEND_INLINE, 1, MAX_INLINE + 1, "81 octets inline");
	refuse_inline(IBV_WR_SEND, IBV_SEND_INLINE, 1, ~0u, "2^32 - 1 octets inline");
	refuse_inline(IBV_WR_SEND, 0, 0, MAX_INLINE + 1, "81 octets without an SGE");
	refuse_inline(IBV_WR_RDMA_READ, IBV_SEND_INLINE, 1, 4, "an inline Read");
	refuse_inline(IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_SEND_INLINE, 1, 8, "an inline FetchAdd");
	plain(IBV_WR_ATOMIC_CMP_AND_SWP);
	refuse(put_entry, "an atomic operation of 16 octets");
	refuse_recvs(put_receive, counts);
}

static __u32 likely_sges(struct rxe_sge *to)
{
	__u32 count = any(2) ? 1 : any(8) ? any(7) : bad_number();
	struct ibv_sge from;
	int i;

	for (i = 0; i < MAX_SGE; i++) {
		from = likely_sge();
		to[i] = (struct rxe_sge) { from.addr, any(8) ? from.length : 8, from.lkey };
	}
	return count;
}

static void likely_bind(struct rxe_send_wqe *wqe)
{
	const struct ibv_sge place = likely_sge();
	__u32 window = likely_window(true);

	wqe->wr.wr.mw.addr = place.addr;
	wqe->wr.wr.mw.length = any(8) ? place.length : bad_number();
	wqe->wr.wr.mw.mr_lkey = any(16) ? place.lkey : likely_window(true);
	wqe->wr.wr.mw.mw_rkey = any(16) ? window : bad_number();
	wqe->wr.wr.mw.rkey = any(16) ? window ^ any(4) : bad_number();
	wqe->wr.wr.mw.access = any(8) ? any(8) << 1 : bad_number();
}

static __u32 likely_invalid(bool is_own)
{
	return any(16) ? likely_window(is_own) : bad_number();
}

static void likely_send(__u8 *slot)
{
	struct rxe_send_wqe *wqe = (void *)slot;
	__u32 rkey;

	wqe->wr.wr_id = any(1 << 20);
	wqe->wr.opcode = any(8) ? any(10) : bad_number();
	wqe->wr.send_flags = any(8) ? any(any(4) ? 8 : 16) : bad_number();
	wqe->wr.wr.atomic.remote_addr = likely_target(&rkey);
	if (any(2)) {
		wqe->wr.wr.rdma.rkey = rkey;
	} else {
		wqe->wr.wr.atomic.remote_addr &= ~7ULL;
		wqe->wr.wr.atomic.rkey = rkey;
	}
	if (wqe->wr.opcode == IBV_WR_BIND_MW)
		likely_bind(wqe);
	else if (wqe->wr.opcode >= IBV_WR_LOCAL_INV)
		wqe->wr.ex.invalidate_rkey = likely_invalid(wqe->wr.opcode == IBV_WR_LOCAL_INV);
	wqe->dma.length = any(8) ? any(100) : bad_number();
	wqe->dma.num_sge = likely_sges((struct rxe_sge *)(wqe + 1));
}

static void likely_recv(__u8 *slot)
{
	struct rxe_recv_wqe *wqe = (void *)slot;

	wqe->wr_id = any(1 << 20);
	wqe->dma.num_sge = likely_sges((struct rxe_sge *)(wqe + 1));
}

/* The index of the process: some entries further, or anything */
static void advance(__u32 *index, __u32 slots)
{
	__u32 to = any(8) ? (*index + any(4)) % slots : (__u32)bad_number();

	__atomic_store_n(index, to, __ATOMIC_RELEASE);
}

/* What the kernel writes, for the process to read: it must not believe that itself */
static void spoil_head(struct rxe_queue_buf *buf, enum ring_kind kind)
{
	__u32 *const words[] = {
		&buf->log2_elem_size, &buf->index_mask,
		kind == CQ ? &buf->producer_index : &buf->consumer_index,
	};

	__atomic_store_n(words[any(ARRAY_SIZE(words))], (__u32)bad_number(), __ATOMIC_RELAXED);
}

static __u32 slot_of(const struct rxe_queue_buf *buf, __u32 slots)
{
	return any_slot(buf->producer_index, slots);
}

static void spoil(struct ring *ring)
{
	struct rxe_queue_buf *buf = (void *)ring->at;

	if (!any(64)) {
		spoil_head(buf, ring->kind);
	} else if (ring->kind == SQ) {
		likely_send(buf->data + slot_of(buf, 2 * SQ_DEPTH) * SQE_BYTES);
		advance(&buf->producer_index, 2 * SQ_DEPTH);
	} else if (ring->kind == RQ) {
		likely_recv(buf->data + slot_of(buf, 2 * RQ_DEPTH) * RQE_BYTES);
		advance(&buf->producer_index, 2 * RQ_DEPTH);
	} else if (ring->kind == SRQ) {
		likely_recv(buf->data + slot_of(buf, 2 * SRQ_DEPTH) * RQE_BYTES);
		advance(&buf->producer_index, 2 * SRQ_DEPTH);
	} else {
		/* Acts as a process that mostly takes its completions, but sometimes leaves them */
		buf->consumer_index = any(64) ? buf->producer_index : bad_number();
	}
}

/* The provider would trust the head of the ring */
static __u8 *next_slot(struct rxe_queue_buf *buf, __u32 slots, size_t bytes)
{
	return buf->data + buf->producer_index % slots * bytes;
}

static void done_slot(struct rxe_queue_buf *buf, __u32 slots)
{
	__atomic_store_n(&buf->producer_index, (buf->producer_index + 1) % slots, __ATOMIC_RELEASE);
}

static void post_recv(struct ibv_qp *qp, struct ibv_sge sge)
{
	struct rxe_queue_buf *buf = (void *)ring_of_end(qp->srq ? SRQ : RQ, qp)->at;
	__u32 slots = 2 * (qp->srq ? SRQ_DEPTH : RQ_DEPTH);
	struct rxe_recv_wqe *wqe = (void *)next_slot(buf, slots, RQE_BYTES);

	wqe->wr_id = ID;
	wqe->dma.num_sge = 1;
	*(struct rxe_sge *)(wqe + 1) = (struct rxe_sge) { sge.addr, sge.length, sge.lkey };
	done_slot(buf, slots);
}

static void post_send(struct ibv_qp *qp, struct ibv_sge sge, __u32 rkey)
{
	static const __u32 opcodes[] = {
		IBV_WR_SEND, IBV_WR_SEND, IBV_WR_RDMA_READ, IBV_WR_RDMA_WRITE,
		IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_ATOMIC_CMP_AND_SWP,
	};
	struct rxe_queue_buf *buf = (void *)ring_of_end(SQ, qp)->at;
	struct rxe_send_wqe *wqe = (void *)next_slot(buf, 2 * SQ_DEPTH, SQE_BYTES);
	__u32 opcode = opcodes[pick(ARRAY_SIZE(opcodes))];
	bool is_atomic = opcode == IBV_WR_ATOMIC_FETCH_AND_ADD ||
			 opcode == IBV_WR_ATOMIC_CMP_AND_SWP;

	if (is_atomic)
		sge.length = 8;
	memset(wqe, 0, sizeof(*wqe));
	wqe->wr.wr_id = ID;
	wqe->wr.opcode = opcode;
	wqe->wr.send_flags = IBV_SEND_SIGNALED | (pick(2) ? IBV_SEND_SOLICITED : 0);
	wqe->wr.wr.rdma.remote_addr = sge.addr;
	wqe->wr.wr.rdma.rkey = rkey;
	if (is_atomic)
		wqe->wr.wr.atomic.rkey = rkey;
	wqe->dma.length = sge.length;
	wqe->dma.num_sge = 1;
	*(struct rxe_sge *)(wqe + 1) = (struct rxe_sge) { sge.addr, sge.length, sge.lkey };
	done_slot(buf, 2 * SQ_DEPTH);
}

static void post(struct ibv_qp *qp, struct ibv_sge sge, __u32 rkey)
{
	post_recv(qp, sge);
	post_send(qp, sge, rkey);
}

/* Most often the ring has the size that it had; another size is not mapped. */
static __u32 likely_size(__u32 depth)
{
	return pick(3) ? 2 * depth - 1 : 1 + pick(4 * depth);
}

static void resize_cq(const struct ibv_cq *cq)
{
	struct {
		struct ib_uverbs_cmd_hdr hdr;
		struct ib_uverbs_resize_cq core;
	} cmd = { .core = { .cq_handle = cq->handle, .cqe = likely_size(CQ_DEPTH) } };
	struct {
		struct ib_uverbs_resize_cq_resp core;
		struct mminfo ring;
	} answer;

	cmd.core.response = (unsigned long)&answer;
	if (!command(cq->context, &cmd, IB_USER_VERBS_CMD_RESIZE_CQ, sizeof(cmd), sizeof(answer)) &&
	    answer.ring.size == rxe_format.bytes[CQ])
		another_ring(cq->context, CQ, answer.ring.offset);
}

static void resize_srq(const struct ibv_srq *srq)
{
	struct mminfo ring = {};
	struct {
		struct ib_uverbs_cmd_hdr hdr;
		struct ib_uverbs_modify_srq core;
		__u64 where;
	} cmd = {
		.core = {
			.srq_handle = srq->handle, .attr_mask = IBV_SRQ_MAX_WR,
			.max_wr = likely_size(SRQ_DEPTH),
		},
		.where = pick(8) ? (unsigned long)&ring : 0xffff888000000000 + pick(PAGE),
	};

	if (!command(srq->context, &cmd, IB_USER_VERBS_CMD_MODIFY_SRQ, sizeof(cmd), 0) &&
	    ring.size == rxe_format.bytes[SRQ])
		another_ring(srq->context, SRQ, ring.offset);
}

static void resize(const struct queues *queues)
{
	resize_cq(pick(2) ? queues->scq : queues->rcq);
	if (queues->srq)
		resize_srq(queues->srq);
}

const struct format rxe_format = {
	.bytes = {
		[SQ] = sizeof(struct rxe_queue_buf) + 2 * SQ_DEPTH * SQE_BYTES,
		[RQ] = sizeof(struct rxe_queue_buf) + 2 * RQ_DEPTH * RQE_BYTES,
		[SRQ] = sizeof(struct rxe_queue_buf) + 2 * SRQ_DEPTH * RQE_BYTES,
		[CQ] = sizeof(struct rxe_queue_buf) + 2 * CQ_DEPTH * CQE_BYTES,
	},
	.arms_by_call = true,
	.has_windows = true,
	.refuse_all = refuse_all,
	.spoil = spoil,
	.resize = resize,
	.post = post,
};
