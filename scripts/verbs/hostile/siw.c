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
	*(struct kiwarp_sqe *)ring = entry;
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

static void refuse_all(void)
{
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

static void likely_sqe(struct kiwarp_sqe *to)
{
	static const __u8 opcodes[] = { 0, 1, 3, 0, 1, 3, 5, 2, 4, 6, 7, 8, 9, 255 };
	struct kiwarp_sqe sqe = {
		.id = any(1 << 20), .flags = any(any(4) ? 32 : 65536),
		.num_sge = any(any(8) ? 7 : 256), .opcode = opcodes[any(any(4) ? 7 : 14)],
	};

	sqe.raddr = likely_target(&sqe.rkey);
	likely_sges(sqe.sge);
	*to = sqe;
}

static void likely_rqe(struct kiwarp_rqe *to)
{
	struct kiwarp_rqe rqe = {
		.id = any(1 << 20), .flags = any(8) ? KIWARP_WQE_VALID : any(65536),
		.num_sge = any(any(8) ? 7 : 256),
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

static void spoil(struct ring *ring)
{
	if (ring->kind == SQ)
		likely_sqe((struct kiwarp_sqe *)ring->at + any(SQ_DEPTH));
	else if (ring->kind == RQ)
		likely_rqe((struct kiwarp_rqe *)ring->at + any(RQ_DEPTH));
	else if (ring->kind == SRQ)
		likely_rqe((struct kiwarp_rqe *)ring->at + any(SRQ_DEPTH));
	else
		spoil_cq(ring);
}

/* Posts at the position that the provider has recorded */
static void post(struct ibv_qp *qp, struct ibv_sge sge, __u32 rkey)
{
	struct ibv_recv_wr recv = { .sg_list = &sge, .num_sge = 1 }, *bad_recv;
	struct ibv_send_wr send = {
		.opcode = pick(2) ? IBV_WR_SEND : IBV_WR_RDMA_READ, .sg_list = &sge, .num_sge = 1,
		.wr.rdma = { sge.addr, rkey },
	}, *bad_send;

	if (qp->srq)
		ibv_post_srq_recv(qp->srq, &recv, &bad_recv);
	else
		ibv_post_recv(qp, &recv, &bad_recv);
	ibv_post_send(qp, &send, &bad_send);
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
