// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The rings of siw's user ABI: a slot belongs to the side that its flags say.
 */
#include "hostile.h"

#include <rdma/kiwarp-abi.h>

/* The entry that put_entry() writes */
static struct kiwarp_sqe entry;

static void put_entry(void *ring)
{
	struct kiwarp_sqe *sqe = ring, invalid = entry;

	invalid.flags = 0;
	*sqe = invalid;
	__atomic_store_n(&sqe->flags, entry.flags, __ATOMIC_RELEASE);
}

static void plain(void)
{
	__u32 lkey, rkey;
	__u64 addr = open_room(&lkey, &rkey);

	entry = (struct kiwarp_sqe) {
		.id = ID, .flags = KIWARP_WQE_VALID | KIWARP_WQE_SIGNALED, .num_sge = 1,
		.opcode = KIWARP_OP_WRITE, .rkey = rkey, .raddr = addr,
		.sge[0] = { addr, 16, lkey },
	};
}

static void put_receive(void *ring)
{
	struct kiwarp_rqe rqe = { .id = ID, .num_sge = wrong_recv.num_sge };
	__u32 lkey;
	__u64 addr = receiver_room(&lkey) + wrong_recv.after;
	int i;

	for (i = 0; i < MAX_SGE; i++)
		rqe.sge[i] = (struct kiwarp_sge) {
			addr, wrong_recv.length, lkey ^ wrong_recv.lkey,
		};
	memcpy(ring, &rqe, sizeof(rqe));
	__atomic_store_n(&((struct kiwarp_rqe *)ring)->flags, KIWARP_WQE_VALID, __ATOMIC_RELEASE);
}

static void refuse_all(void)
{
	static const __u32 counts[BAD_COUNTS] = { MAX_SGE + 1, 128, 255 };
	static const __u8 opcodes[] = { 2, 4, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 127, 128, 255 };
	char name[32];
	size_t i;

	for (i = 0; i < ARRAY_SIZE(opcodes); i++) {
		plain();
		entry.opcode = opcodes[i];
		snprintf(name, sizeof(name), "opcode %u", opcodes[i]);
		refuse(put_entry, name);
	}
	for (i = 5; i < 16; i++) {
		plain();
		entry.flags |= 1 << i;
		snprintf(name, sizeof(name), "flag %zu", i);
		refuse(put_entry, name);
	}
	plain();
	entry.num_sge = MAX_SGE + 1;
	refuse(put_entry, "7 SGEs");
	entry.num_sge = 255;
	refuse(put_entry, "255 SGEs");
	plain();
	entry.num_sge = 2;
	entry.sge[0].length = 0xffffffff;
	entry.sge[1] = entry.sge[0];
	refuse(put_entry, "lengths that wrap");
	plain();
	entry.flags |= KIWARP_WQE_INLINE;
	entry.sge[0].length = MAX_INLINE + 1;
	refuse(put_entry, "81 octets inline");
	entry.sge[0].length = 4;
	entry.opcode = KIWARP_OP_READ;
	refuse(put_entry, "an inline Read");
	refuse_recvs(put_receive, counts);
}

static void likely_sges(struct kiwarp_sge *sge)
{
	struct ibv_sge from;
	int i;

	for (i = 0; i < MAX_SGE; i++) {
		from = likely_sge();
		sge[i] = (struct kiwarp_sge) { from.addr, from.length, from.lkey };
	}
}

static __u16 likely_flags(void)
{
	__u16 flags = any(any(8) ? 32 : 65536);

	if (any(4))
		flags |= KIWARP_WQE_VALID;
	return any(4) ? flags & ~KIWARP_WQE_INLINE : flags;
}

static __u8 likely_count(void)
{
	return any(2) ? 1 : any(any(8) ? 7 : 256);
}

static void likely_sqe(struct kiwarp_sqe *to)
{
	static const __u8 opcodes[] = { 0, 1, 3, 0, 1, 3, 5, 2, 4, 6, 7, 8, 9, 255 };
	struct kiwarp_sqe sqe = {
		.id = any(1 << 20), .flags = likely_flags(),
		.num_sge = likely_count(), .opcode = opcodes[any(any(4) ? 7 : 14)],
	};

	sqe.raddr = likely_target(&sqe.rkey);
	likely_sges(sqe.sge);
	*to = sqe;
}

static void likely_rqe(struct kiwarp_rqe *to)
{
	struct kiwarp_rqe rqe = {
		.id = any(1 << 20), .flags = any(8) ? KIWARP_WQE_VALID : any(65536),
		.num_sge = likely_count(),
	};

	likely_sges(rqe.sge);
	*to = rqe;
}

/* Acts as a process that mostly takes its completions, but sometimes leaves them */
static void spoil_cq(struct ring *ring)
{
	struct kiwarp_cqe *cqe = (void *)ring->at;
	struct kiwarp_cq_ctrl *ctrl = (void *)&cqe[CQ_DEPTH];
	int i;

	ctrl->flags = any(8) ? any(4) : bad_number();
	for (i = 0; i < CQ_DEPTH; i++)
		cqe[i].flags = 0;
	if (!any(64))
		cqe[any(CQ_DEPTH)].flags = any(256);
}

static void spoil_sq(struct ring *ring)
{
	__u32 slot = any_slot(ring->next, SQ_DEPTH);
	struct kiwarp_sqe *sqe = (struct kiwarp_sqe *)ring->at + slot;

	likely_sqe(sqe);
	if (slot == ring->next % SQ_DEPTH && sqe->flags & KIWARP_WQE_VALID)
		ring->next++;
}

static void spoil_rq(struct ring *ring, __u32 slots)
{
	__u32 slot = any_slot(ring->next, slots);
	struct kiwarp_rqe *rqe = (struct kiwarp_rqe *)ring->at + slot;

	likely_rqe(rqe);
	if (slot == ring->next % slots && rqe->flags & KIWARP_WQE_VALID)
		ring->next++;
}

static void spoil(struct ring *ring)
{
	if (ring->kind == SQ)
		spoil_sq(ring);
	else if (ring->kind == RQ)
		spoil_rq(ring, RQ_DEPTH);
	else if (ring->kind == SRQ)
		spoil_rq(ring, SRQ_DEPTH);
	else
		spoil_cq(ring);
}

/* The provider would post at a position of its own. */
static void post(struct ibv_qp *qp, struct ibv_sge sge, __u32 rkey)
{
	struct ring *rq = ring_of_end(qp->srq ? SRQ : RQ, qp), *sq = ring_of_end(SQ, qp);
	const __u32 receives = qp->srq ? SRQ_DEPTH : RQ_DEPTH;
	const struct kiwarp_sge place = { sge.addr, sge.length, sge.lkey };

	((struct kiwarp_rqe *)rq->at)[rq->next++ % receives] = (struct kiwarp_rqe) {
		.id = ID, .flags = KIWARP_WQE_VALID, .num_sge = 1, .sge[0] = place,
	};
	((struct kiwarp_sqe *)sq->at)[sq->next++ % SQ_DEPTH] = (struct kiwarp_sqe) {
		.id = ID, .flags = KIWARP_WQE_VALID | KIWARP_WQE_SIGNALED, .num_sge = 1,
		.opcode = pick(2) ? KIWARP_OP_SEND : KIWARP_OP_READ, .rkey = rkey,
		.raddr = sge.addr, .sge[0] = place,
	};
}

const struct format siw_format = {
	.bytes = {
		[SQ] = SQ_DEPTH * sizeof(struct kiwarp_sqe),
		[RQ] = RQ_DEPTH * sizeof(struct kiwarp_rqe),
		[SRQ] = SRQ_DEPTH * sizeof(struct kiwarp_rqe),
		[CQ] = CQ_DEPTH * sizeof(struct kiwarp_cqe) + sizeof(struct kiwarp_cq_ctrl),
	},
	.refuse_all = refuse_all,
	.spoil = spoil,
	.post = post,
};
