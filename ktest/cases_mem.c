// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Cases: fast-registration memory. Extent of a registration, who may invalidate it, ordering of
 * work requests that register and invalidate, and handling of invalid work requests.
 *
 * End 1 owns the memory, end 0 is the peer that uses it. Contexts: process. No locks.
 */
#include <linux/random.h>
#include <linux/scatterlist.h>
#include <linux/string.h>

#include "ktest.h"

#define PAGES	4
#define RIGHTS	(IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_READ)

static struct ib_mr *region(struct ktest_end *end)
{
	struct ib_mr *mr = ib_alloc_mr(end->pd, IB_MR_TYPE_MEM_REG, PAGES);

	if (!IS_ERR(mr))
		return mr;
	ktest_fail(end->pair, __func__, __LINE__, "ib_alloc_mr", PTR_ERR(mr));
	return NULL;
}

/* Maps @num pieces of memory to @mr */
static void map(struct ktest_end *end, struct ib_mr *mr, struct scatterlist *sg, int num,
		u32 page_size)
{
	ktest_expect_eq(end->pair, ib_dma_map_sg(end->qp->device, sg, num, DMA_BIDIRECTIONAL),
			num);
	ktest_expect_eq(end->pair, ib_map_mr_sg(mr, sg, num, NULL, page_size), num);
}

/* Maps [@offset, @offset + @len) of the owner's memory to @mr */
static void map_one(struct ktest_end *end, struct ib_mr *mr, u32 offset, u32 len)
{
	struct scatterlist sg;

	sg_init_one(&sg, end->mem + offset, len);
	map(end, mr, &sg, 1, PAGE_SIZE);
}

static void register_done(struct ktest_end *end, struct ib_mr *mr, int access,
			  enum ib_wc_status status)
{
	struct ktest_wr *w = ktest_spare(end);

	ktest_register(end, mr, w, access);
	ktest_wait(w, status);
	if (status == IB_WC_SUCCESS)
		ktest_expect_eq(end->pair, w->wc.opcode, IB_WC_REG_MR);
}

static void post_inv(struct ktest_end *end, struct ktest_wr *w, u32 stag)
{
	struct ib_send_wr wr = { .opcode = IB_WR_LOCAL_INV, .ex.invalidate_rkey = stag };

	ktest_post(end, w, &wr);
}

static void invalidate(struct ktest_end *end, u32 stag, enum ib_wc_status status)
{
	struct ktest_wr *w = ktest_spare(end);

	post_inv(end, w, stag);
	ktest_wait(w, status);
	if (status == IB_WC_SUCCESS)
		ktest_expect_eq(end->pair, w->wc.opcode, IB_WC_LOCAL_INV);
}

static void post_rdma(struct ktest_end *end, struct ktest_wr *w, enum ib_wr_opcode op,
		      struct ib_sge sge, u32 rkey, u64 raddr)
{
	struct ib_rdma_wr wr = {
		.wr = { .opcode = op, .sg_list = &sge, .num_sge = 1 },
		.remote_addr = raddr,
		.rkey = rkey,
	};

	ktest_post(end, w, &wr.wr);
}

static void rdma(struct ktest_end *end, enum ib_wr_opcode op, u32 offset, u32 len, u32 rkey,
		 u64 raddr, enum ib_wc_status status)
{
	struct ktest_wr *w = ktest_spare(end);

	post_rdma(end, w, op, ktest_sge(end, offset, len), rkey, raddr);
	ktest_wait(w, status);
}

/* A Read is executed after the Writes before it, so it returns what they wrote */
static void write_and_read(struct ktest_end *end, u32 len, u32 rkey, u64 raddr)
{
	get_random_bytes(end->mem, len);
	memset(end->mem + KTEST_MEM / 2, 0, len);
	rdma(end, IB_WR_RDMA_WRITE, 0, len, rkey, raddr, IB_WC_SUCCESS);
	rdma(end, IB_WR_RDMA_READ, KTEST_MEM / 2, len, rkey, raddr, IB_WC_SUCCESS);
	ktest_expect(end->pair, !memcmp(end->mem, end->mem + KTEST_MEM / 2, len));
}

static void rotation(struct ktest_pair *p)
{
	struct ktest_end *own = &p->end[1], *peer = &p->end[0];
	struct ib_mr *mr = region(own);
	u32 old;
	int i;

	if (!mr)
		return;
	for (i = 0; i < 300; i++) {
		map_one(own, mr, 100, 5000);
		old = mr->rkey;
		ib_update_fast_reg_key(mr, old + 1);
		register_done(own, mr, RIGHTS, IB_WC_SUCCESS);
		write_and_read(peer, 5000, mr->rkey, mr->iova);
		ktest_expect(p, !memcmp(peer->mem, own->mem + 100, 5000));
		if (i < 299)
			invalidate(own, mr->rkey, IB_WC_SUCCESS);
	}
	rdma(peer, IB_WR_RDMA_READ, 0, 10, old, mr->iova, IB_WC_REM_ACCESS_ERR);
	ib_dereg_mr(mr);
}

static void bounds(struct ktest_pair *p)
{
	struct ktest_end *own = &p->end[1], *peer = &p->end[0];
	struct ib_mr *mr = region(own);

	if (!mr)
		return;
	map_one(own, mr, 100, 5000);
	register_done(own, mr, RIGHTS, IB_WC_SUCCESS);
	write_and_read(peer, 1, mr->rkey, mr->iova + 4999);
	rdma(peer, IB_WR_RDMA_READ, 0, 2, mr->rkey, mr->iova + 4999, IB_WC_REM_ACCESS_ERR);
	ib_dereg_mr(mr);
}

static void zero_based(struct ktest_pair *p)
{
	struct ktest_end *own = &p->end[1], *peer = &p->end[0];
	struct ib_mr *mr = region(own);
	struct scatterlist sg;

	if (!mr)
		return;
	sg_init_one(&sg, own->mem + 300, 6000);
	ktest_expect_eq(p, ib_dma_map_sg(own->qp->device, &sg, 1, DMA_BIDIRECTIONAL), 1);
	ktest_expect_eq(p, ib_map_mr_sg_zbva(mr, &sg, 1, NULL, PAGE_SIZE), 1);
	register_done(own, mr, RIGHTS, IB_WC_SUCCESS);
	write_and_read(peer, 6000, mr->rkey, 0);
	ktest_expect(p, !memcmp(peer->mem, own->mem + 300, 6000));
	ktest_expect(p, !own->mem[299] && !own->mem[6300]);
	ib_dereg_mr(mr);
}

/* A bit of everything. End 0 sends first: by default the responder, end 1, may not. */
static void once(struct ktest_pair *p)
{
	struct ktest_end *own = &p->end[1], *peer = &p->end[0];
	struct ktest_wr *recv = ktest_spare(own), *send = ktest_spare(peer);
	struct ib_sge sge = ktest_sge(peer, 0, 8);
	struct ib_send_wr wr = { .opcode = IB_WR_SEND, .sg_list = &sge, .num_sge = 1 };

	ktest_post_recv(own, recv, KTEST_MEM / 2, 8);
	ktest_post(peer, send, &wr);
	ktest_wait(send, IB_WC_SUCCESS);
	ktest_wait(recv, IB_WC_SUCCESS);
	zero_based(p);
}

/* One region from pages in reverse order, the first from its middle; pages of 4 and 8 KiB */
static void pieces(struct ktest_pair *p)
{
	struct ktest_end *own = &p->end[1], *peer = &p->end[0];
	struct ib_mr *mr = region(own);
	struct scatterlist sg[3];
	u32 size, first;

	if (!mr)
		return;
	for (size = PAGE_SIZE; size <= 2 * PAGE_SIZE; size *= 2) {
		first = size / 2 + 7;
		memset(own->mem, 0, KTEST_MEM);
		sg_init_table(sg, 3);
		sg_set_buf(&sg[0], own->mem + 4 * size + first, size - first);
		sg_set_buf(&sg[1], own->mem + 2 * size, size);
		sg_set_buf(&sg[2], own->mem, 17);
		map(own, mr, sg, 3, size);
		ktest_expect_eq(p, mr->length, size - first + size + 17);
		register_done(own, mr, RIGHTS, IB_WC_SUCCESS);
		write_and_read(peer, mr->length, mr->rkey, mr->iova);
		ktest_expect(p, !memcmp(peer->mem, own->mem + 4 * size + first, size - first));
		ktest_expect(p, !memcmp(peer->mem + size - first, own->mem + 2 * size, size));
		ktest_expect(p, !memcmp(peer->mem + 2 * size - first, own->mem, 17));
		ktest_expect(p, !memchr_inv(own->mem + 17, 0, 2 * size - 17));
		ktest_expect(p, !memchr_inv(own->mem + 3 * size, 0, size + first));
		invalidate(own, mr->rkey, IB_WC_SUCCESS);
	}
	ib_dereg_mr(mr);
}

/* Mapping ends where the region has no page left, and what was mapped can be used. */
static void map_full(struct ktest_pair *p)
{
	struct ktest_end *own = &p->end[1], *peer = &p->end[0];
	struct ib_mr *mr = region(own);
	struct scatterlist sg[PAGES + 1];
	unsigned int next = 0;
	int i;

	if (!mr)
		return;
	sg_init_table(sg, PAGES + 1);
	for (i = 0; i <= PAGES; i++)
		sg_set_buf(&sg[i], own->mem + 2 * i * PAGE_SIZE, PAGE_SIZE);
	ktest_expect_eq(p, ib_dma_map_sg(own->qp->device, sg, PAGES + 1, DMA_BIDIRECTIONAL),
			PAGES + 1);
	ktest_expect_eq(p, ib_map_mr_sg(mr, sg, PAGES + 1, &next, PAGE_SIZE), PAGES);
	ktest_expect_eq(p, next, 0);
	ktest_expect_eq(p, mr->length, PAGES * PAGE_SIZE);
	register_done(own, mr, RIGHTS, IB_WC_SUCCESS);
	write_and_read(peer, PAGES * PAGE_SIZE, mr->rkey, mr->iova);
	for (i = 0; i < PAGES; i++) {
		ktest_expect(p, !memcmp(peer->mem + i * PAGE_SIZE, sg_virt(&sg[i]), PAGE_SIZE));
		ktest_expect(p, !memchr_inv(sg_virt(&sg[i]) + PAGE_SIZE, 0, PAGE_SIZE));
	}
	ktest_expect(p, !memchr_inv(sg_virt(&sg[PAGES]), 0, PAGE_SIZE));
	ib_dereg_mr(mr);
}

/* Not even the first entry fits: this is an error. */
static void map_larger(struct ktest_pair *p)
{
	struct ktest_end *own = &p->end[1];
	struct scatterlist sg;
	struct ib_mr *mr;

	mr = ib_alloc_mr(own->pd, IB_MR_TYPE_MEM_REG, 1);
	if (IS_ERR(mr)) {
		ktest_fail(p, __func__, __LINE__, "ib_alloc_mr", PTR_ERR(mr));
		return;
	}
	sg_init_one(&sg, own->mem, 2 * PAGE_SIZE);
	ktest_expect_eq(p, ib_dma_map_sg(own->qp->device, &sg, 1, DMA_BIDIRECTIONAL), 1);
	ktest_expect_eq(p, ib_map_mr_sg(mr, &sg, 1, NULL, PAGE_SIZE), -ENOMEM);
	map_one(own, mr, 0, PAGE_SIZE);
	register_done(own, mr, RIGHTS, IB_WC_SUCCESS);
	ib_dereg_mr(mr);
}

/* Posts LOCAL_INV, REG_MR with the next key, and a SEND in one call */
static void register_again(struct ktest_end *end, struct ib_mr *mr)
{
	struct ib_sge sge = ktest_sge(end, 0, 8);
	struct ib_send_wr send_wr = { .opcode = IB_WR_SEND, .sg_list = &sge, .num_sge = 1 };
	struct ib_send_wr inv_wr = {
		.opcode = IB_WR_LOCAL_INV,
		.ex.invalidate_rkey = mr->rkey,
	};
	struct ib_reg_wr reg_wr = {
		.wr = { .opcode = IB_WR_REG_MR },
		.mr = mr,
		.access = RIGHTS,
	};
	struct ktest_wr *inv = ktest_spare(end), *reg = ktest_spare(end), *send = ktest_spare(end);

	ib_update_fast_reg_key(mr, mr->rkey + 1);
	reg_wr.key = mr->rkey;
	ktest_wr_init(end, reg);
	ktest_wr_init(end, send);
	reg_wr.wr.wr_cqe = &reg->cqe;
	send_wr.wr_cqe = &send->cqe;
	inv_wr.next = &reg_wr.wr;
	reg_wr.wr.next = &send_wr;
	ktest_post(end, inv, &inv_wr);
	ktest_wait(inv, IB_WC_SUCCESS);
	ktest_wait(reg, IB_WC_SUCCESS);
	ktest_wait(send, IB_WC_SUCCESS);
}

/* Registers again and again, while the peer uses each registration */
static void chain(struct ktest_pair *p)
{
	struct ktest_end *own = &p->end[1], *peer = &p->end[0];
	struct ib_mr *mr = region(own);
	struct ktest_wr *recv = &peer->recvs[0];
	int i;

	if (!mr)
		return;
	map_one(own, mr, 100, 5000);
	register_done(own, mr, RIGHTS, IB_WC_SUCCESS);
	for (i = 0; i < 50; i++) {
		/* Mapping a region that is valid does not change its current registration. */
		map_one(own, mr, 200 + i, 5000 + i);
		ktest_post_recv(peer, recv, KTEST_MEM / 4, 100);
		register_again(own, mr);
		ktest_wait(recv, IB_WC_SUCCESS);
		write_and_read(peer, 5000 + i, mr->rkey, mr->iova);
		ktest_expect(p, !memcmp(peer->mem, own->mem + 200 + i, 5000 + i));
	}
	ib_dereg_mr(mr);
}

/* An RDMA Read that invalidates its sink */
static void read_inv(struct ktest_pair *p)
{
	struct ktest_end *own = &p->end[1], *peer = &p->end[0];
	struct ib_mr *mr = region(peer);
	struct ktest_wr *w = &peer->sends[0];
	struct ib_sge sge;
	int i;

	if (!mr)
		return;
	ktest_expose(own, RIGHTS);
	get_random_bytes(own->mem, 3 * PAGE_SIZE);
	for (i = 0; i < 20; i++) {
		memset(peer->mem, 0, KTEST_MEM);
		map_one(peer, mr, 50, 3 * PAGE_SIZE - i);
		register_done(peer, mr, IB_ACCESS_LOCAL_WRITE, IB_WC_SUCCESS);
		sge.addr = mr->iova;
		sge.length = mr->length;
		sge.lkey = mr->lkey;
		post_rdma(peer, w, IB_WR_RDMA_READ_WITH_INV, sge, own->mr->rkey, own->mr->iova);
		ktest_wait(w, IB_WC_SUCCESS);
		ktest_expect_eq(p, w->wc.opcode, IB_WC_RDMA_READ);
		ktest_expect(p, !memcmp(peer->mem + 50, own->mem, 3 * PAGE_SIZE - i));
	}
	/* The sink is no longer valid */
	post_rdma(peer, w, IB_WR_RDMA_READ, sge, own->mr->rkey, own->mr->iova);
	ktest_wait(w, IB_WC_LOC_PROT_ERR);
	ib_dereg_mr(mr);
}

/* An RDMA Read whose sink is no region that can be invalidated: its data arrive, and it fails */
static void read_inv_all(struct ktest_pair *p)
{
	struct ktest_end *own = &p->end[1], *peer = &p->end[0];
	struct ktest_wr *w = &peer->sends[0];

	ktest_expose(own, RIGHTS);
	get_random_bytes(own->mem, PAGE_SIZE);
	post_rdma(peer, w, IB_WR_RDMA_READ_WITH_INV, ktest_sge(peer, 50, PAGE_SIZE), own->mr->rkey,
		  own->mr->iova);
	ktest_wait(w, IB_WC_MW_BIND_ERR);
	ktest_expect(p, !memcmp(peer->mem + 50, own->mem, PAGE_SIZE));
	ktest_wait_qp_event(peer, IB_EVENT_QP_FATAL);
	ktest_wait_qp_event(own, IB_EVENT_QP_FATAL);
}

static void send_inv(struct ktest_end *end, struct ktest_wr *w, u32 stag)
{
	struct ib_sge sge = ktest_sge(end, 0, 8);
	struct ib_send_wr wr = { .opcode = IB_WR_SEND_WITH_INV, .sg_list = &sge, .num_sge = 1,
				 .ex.invalidate_rkey = stag };

	ktest_post(end, w, &wr);
}

/* The peer invalidates a region; the owner may do so again, as it may not know yet */
static void peer_invalidates(struct ktest_pair *p)
{
	struct ktest_end *own = &p->end[1], *peer = &p->end[0];
	struct ib_mr *mr = region(own);
	struct ktest_wr *send = &peer->sends[0], *recv = &own->recvs[0];
	int i;

	if (!mr)
		return;
	for (i = 0; i < 50; i++) {
		map_one(own, mr, 100, 5000);
		ib_update_fast_reg_key(mr, mr->rkey + 1);
		register_done(own, mr, i & 1 ? IB_ACCESS_REMOTE_READ : RIGHTS, IB_WC_SUCCESS);
		ktest_post_recv(own, recv, KTEST_MEM / 2, 100);
		send_inv(peer, send, mr->rkey);
		ktest_wait(send, IB_WC_SUCCESS);
		ktest_wait(recv, IB_WC_SUCCESS);
		ktest_expect_eq(p, !!(recv->wc.wc_flags & IB_WC_WITH_INVALIDATE), 1);
		ktest_expect_eq(p, recv->wc.ex.invalidate_rkey, mr->rkey);
		if (i & 2)
			invalidate(own, mr->rkey, IB_WC_SUCCESS);
	}
	/* Invalidating with a key that the region never had is an error */
	invalidate(own, mr->rkey + 1, IB_WC_MW_BIND_ERR);
	ib_dereg_mr(mr);
}

static void peer_may_not(struct ktest_pair *p, int access, u32 wrong)
{
	struct ktest_end *own = &p->end[1], *peer = &p->end[0];
	struct ib_mr *mr = region(own);
	struct ktest_wr *next = &peer->recvs[0], *recv = &own->recvs[0];
	struct ktest_wr *send = &peer->sends[0];

	if (!mr)
		return;
	map_one(own, mr, 100, 5000);
	register_done(own, mr, access, IB_WC_SUCCESS);
	ktest_post_recv(own, recv, KTEST_MEM / 2, 100);
	ktest_post_recv(peer, next, KTEST_MEM / 2, 100);
	send_inv(peer, send, mr->rkey ^ wrong);
	ktest_wait(recv, IB_WC_GENERAL_ERR);
	ktest_wait(next, IB_WC_WR_FLUSH_ERR);
	ktest_wait_any(send);
	ib_dereg_mr(mr);
}

static void peer_local_only(struct ktest_pair *p)
{
	peer_may_not(p, IB_ACCESS_LOCAL_WRITE, 0);
}

static void peer_wrong_key(struct ktest_pair *p)
{
	peer_may_not(p, RIGHTS, 1);
}

static void peer_wrong_index(struct ktest_pair *p)
{
	peer_may_not(p, RIGHTS, 0x100);
}

static void twice(struct ktest_pair *p)
{
	struct ktest_end *own = &p->end[1];
	struct ib_mr *mr = region(own);

	if (!mr)
		return;
	map_one(own, mr, 0, 5000);
	register_done(own, mr, RIGHTS, IB_WC_SUCCESS);
	register_done(own, mr, RIGHTS, IB_WC_MW_BIND_ERR);
	ib_dereg_mr(mr);
}

static void unmapped(struct ktest_pair *p)
{
	struct ktest_end *own = &p->end[1];
	struct ib_mr *mr = region(own);

	if (!mr)
		return;
	register_done(own, mr, RIGHTS, IB_WC_MW_BIND_ERR);
	ib_dereg_mr(mr);
}

static void other_pd(struct ktest_pair *p)
{
	struct ktest_end *own = &p->end[1];
	struct ib_pd *pd = ib_alloc_pd(own->qp->device, 0);
	struct ib_mr *mr;

	if (IS_ERR(pd)) {
		ktest_fail(p, __func__, __LINE__, "ib_alloc_pd", PTR_ERR(pd));
		return;
	}
	mr = ib_alloc_mr(pd, IB_MR_TYPE_MEM_REG, PAGES);
	if (!IS_ERR(mr)) {
		map_one(own, mr, 0, 5000);
		register_done(own, mr, RIGHTS, IB_WC_MW_BIND_ERR);
		ib_dereg_mr(mr);
	} else {
		ktest_fail(p, __func__, __LINE__, "ib_alloc_mr", PTR_ERR(mr));
	}
	ib_dealloc_pd(pd);
}

/* Objects that the device does not have */
static void refuse_objects(struct ktest_pair *p, struct ktest_end *own)
{
	struct ib_device *ibdev = own->pd->device;
	struct ib_srq_init_attr srq = { .attr.max_wr = 4, .attr.max_sge = 1,
					.srq_type = IB_SRQT_XRC, .ext.cq = own->cq };
	struct ib_qp_init_attr qp = { .qp_type = IB_QPT_UC, .send_cq = own->cq,
				      .recv_cq = own->cq, .cap.max_send_wr = 4,
				      .cap.max_send_sge = 1, .sq_sig_type = IB_SIGNAL_REQ_WR };

	ktest_expect_eq(p, PTR_ERR_OR_ZERO(ib_alloc_mr(own->pd, IB_MR_TYPE_SG_GAPS, 4)),
			-EOPNOTSUPP);
	ktest_expect_eq(p, PTR_ERR_OR_ZERO(ib_create_srq(own->pd, &srq)), -EOPNOTSUPP);
	srq.srq_type = IB_SRQT_BASIC;
	srq.attr.max_wr = 0;
	ktest_expect_eq(p, PTR_ERR_OR_ZERO(ib_create_srq(own->pd, &srq)), -EINVAL);
	ktest_expect_eq(p, PTR_ERR_OR_ZERO(ib_create_qp(own->pd, &qp)), -EOPNOTSUPP);
	qp.qp_type = IB_QPT_RC;
	qp.create_flags = IB_QP_CREATE_CROSS_CHANNEL;
	ktest_expect_eq(p, PTR_ERR_OR_ZERO(ib_create_qp(own->pd, &qp)), -EOPNOTSUPP);
	ktest_expect_eq(p, PTR_ERR_OR_ZERO(ib_alloc_cq(ibdev, NULL, 4, ibdev->num_comp_vectors,
						       IB_POLL_DIRECT)), -EINVAL);
}

/* Invalid requests are refused at once and affect nothing else */
static void refused(struct ktest_pair *p)
{
	struct ktest_end *own = &p->end[1], *peer = &p->end[0];
	struct ib_mr *mr = region(own);
	struct ib_reg_wr wr = { .wr = { .opcode = IB_WR_REG_MR }, .mr = mr };
	struct ib_sge sge[2] = { ktest_sge(own, 0, 8), ktest_sge(own, 8, 8) };
	struct ib_rdma_wr rwr = { .wr = { .opcode = IB_WR_RDMA_READ_WITH_INV, .sg_list = sge,
					  .num_sge = 2 } };
	static const int bad[] = { IB_ACCESS_REMOTE_WRITE, IB_ACCESS_ON_DEMAND, IB_ZERO_BASED };
	const struct ib_send_wr *bad_wr;
	int i;

	if (!mr)
		return;
	refuse_objects(p, own);
	map_one(own, mr, 0, 5000);
	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		wr.key = mr->rkey;
		wr.access = bad[i];
		bad_wr = NULL;
		ktest_expect_eq(p, ib_post_send(own->qp, &wr.wr, &bad_wr), -EINVAL);
		ktest_expect(p, bad_wr == &wr.wr);
	}
	wr.access = RIGHTS;
	wr.key = mr->rkey ^ 0x100;
	ktest_expect_eq(p, ib_post_send(own->qp, &wr.wr, NULL), -EINVAL);
	ktest_expect_eq(p, ib_post_send(own->qp, &rwr.wr, NULL), -EINVAL);
	ktest_expect_eq(p, ib_map_mr_sg(mr, NULL, 0, NULL, PAGE_SIZE), -EINVAL);
	ktest_expect(p, IS_ERR(ib_alloc_mr(own->pd, IB_MR_TYPE_MEM_REG, 1 << 20)));
	map_one(own, mr, 0, 5000);
	register_done(own, mr, RIGHTS, IB_WC_SUCCESS);
	write_and_read(peer, 5000, mr->rkey, mr->iova);
	ib_dereg_mr(mr);
}

/* The owner invalidates the region and takes its memory back while Writes are in flight */
static void taken_back(struct ktest_pair *p)
{
	struct ktest_end *own = &p->end[1], *peer = &p->end[0];
	struct ib_mr *mr = region(own);
	/* Not on the stack: some may complete only when the QP is drained. */
	struct ktest_wr *late = peer->sends, *w = peer->sends + 1;
	int i;

	if (!mr)
		return;
	map_one(own, mr, 0, PAGES * PAGE_SIZE);
	register_done(own, mr, RIGHTS, IB_WC_SUCCESS);
	memset(peer->mem, 0x55, KTEST_MEM);
	for (i = 0; i < 6; i++)
		post_rdma(peer, &w[i], IB_WR_RDMA_WRITE,
			  ktest_sge(peer, 0, PAGES * PAGE_SIZE), mr->rkey, mr->iova);
	invalidate(own, mr->rkey, IB_WC_SUCCESS);
	memset(own->mem, 0x77, PAGES * PAGE_SIZE);
	/* The earlier ones may fail or not; this one must fail. */
	post_rdma(peer, late, IB_WR_RDMA_READ, ktest_sge(peer, 0, 8), mr->rkey, mr->iova);
	ktest_wait_any(late);
	ktest_expect(p, late->wc.status != IB_WC_SUCCESS);
	ktest_wait_qp_event(own, IB_EVENT_QP_ACCESS_ERR);
	ktest_expect(p, !memchr_inv(own->mem, 0x77, PAGES * PAGE_SIZE));
	ib_dereg_mr(mr);
}

#define SOFT { .poll = IB_POLL_SOFTIRQ }

const struct ktest_case ktest_cases_mem[] = {
	{ "rotation", rotation, SOFT },
	{ "bounds", bounds, SOFT },
	{ "zero-based", zero_based, SOFT },
	{ "once", once, SOFT },
	{ "pieces", pieces, SOFT },
	{ "map-full", map_full, SOFT },
	{ "map-larger", map_larger, SOFT },
	{ "chain", chain, SOFT },
	{ "read-inv", read_inv, SOFT },
	{ "read-inv-all", read_inv_all, SOFT },
	{ "peer-invalidates", peer_invalidates, SOFT },
	{ "peer-local-only", peer_local_only, SOFT },
	{ "peer-wrong-key", peer_wrong_key, SOFT },
	{ "peer-wrong-index", peer_wrong_index, SOFT },
	{ "twice", twice, SOFT },
	{ "unmapped", unmapped, SOFT },
	{ "other-pd", other_pd, SOFT },
	{ "refused", refused, SOFT },
	{ "taken-back", taken_back, SOFT },
	{ }
};
