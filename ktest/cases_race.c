// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Cases: memory, queues and devices are taken away under load.
 *
 * Contexts: process. No locks.
 */
#include <linux/delay.h>
#include <linux/jiffies.h>
#include <linux/random.h>
#include <linux/scatterlist.h>
#include <linux/string.h>

#include "ktest.h"

#define RIGHTS		(IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_READ)
/* Size of a region; offsets of the owner's first and next region, and of the peer's sink */
#define PAGES		4
#define SIZE		(PAGES * PAGE_SIZE)
#define FIRST		0
#define NEXT		(16 * PAGE_SIZE)
#define SINK		(64 * PAGE_SIZE)
/* Memory contents: the owner's old and later secret data, the peer's data, its empty sink */
#define OLD		0x33
#define WRITTEN		0x55
#define SECRET		0x77
#define UNTOUCHED	0x11
#define BURST		12
#define ROUNDS		25
#define WINDOW		32

enum taking { INVALIDATE, INVALIDATE_AND_REGISTER, DEREGISTER, TAKINGS };

static void map(struct ktest_end *end, struct ib_mr *mr, u32 offset)
{
	struct scatterlist sg;

	sg_init_one(&sg, end->mem + offset, SIZE);
	ktest_expect_eq(end->pair, ib_dma_map_sg(end->qp->device, &sg, 1, DMA_BIDIRECTIONAL), 1);
	ktest_expect_eq(end->pair, ib_map_mr_sg(mr, &sg, 1, NULL, PAGE_SIZE), 1);
}

static void post_rdma(struct ktest_end *end, struct ktest_wr *w, enum ib_wr_opcode op, u32 rkey,
		      u64 raddr)
{
	struct ib_sge sge = ktest_sge(end, op == IB_WR_RDMA_READ ? SINK : FIRST, SIZE);
	struct ib_rdma_wr wr = {
		.wr = { .opcode = op, .sg_list = &sge, .num_sge = 1 },
		.remote_addr = raddr,
		.rkey = rkey,
	};

	ktest_post(end, w, &wr.wr);
}

/*
 * Moves the region to other memory and gives it another key. If an access of the peer has ended
 * the connection meanwhile, the region is left without memory.
 */
static void move(struct ktest_end *end, struct ib_mr *mr)
{
	struct ib_send_wr inv_wr = { .opcode = IB_WR_LOCAL_INV, .ex.invalidate_rkey = mr->rkey };
	struct ib_reg_wr reg_wr = { .wr = { .opcode = IB_WR_REG_MR }, .mr = mr, .access = RIGHTS };
	struct ktest_wr *inv = ktest_spare(end), *reg = ktest_spare(end);

	map(end, mr, NEXT);
	ib_update_fast_reg_key(mr, mr->rkey + 1);
	reg_wr.key = mr->rkey;
	ktest_wr_init(end, reg);
	reg_wr.wr.wr_cqe = &reg->cqe;
	inv_wr.next = &reg_wr.wr;
	ktest_post(end, inv, &inv_wr);
	ktest_wait(inv, IB_WC_SUCCESS);
	ktest_wait_any(reg);
}

/* Takes the memory back from the peer; returns the region, or NULL if it was freed */
static struct ib_mr *take(struct ktest_end *end, struct ib_mr *mr, enum taking how)
{
	struct ib_send_wr wr = { .opcode = IB_WR_LOCAL_INV, .ex.invalidate_rkey = mr->rkey };
	struct ktest_wr *w;

	if (how == DEREGISTER) {
		ib_dereg_mr(mr);
		return NULL;
	}
	if (how == INVALIDATE_AND_REGISTER) {
		move(end, mr);
		return mr;
	}
	w = ktest_spare(end);
	ktest_post(end, w, &wr);
	ktest_wait(w, IB_WC_SUCCESS);
	return mr;
}

/* The peer may have read data from before the memory was taken back, and nothing else */
static void check_sink(struct ktest_end *peer)
{
	u32 i;
	u8 c;

	for (i = 0; i < SIZE; i++) {
		c = peer->mem[SINK + i];
		if (c != OLD && c != WRITTEN && c != UNTOUCHED) {
			ktest_fail(peer->pair, __func__, __LINE__, "byte of the sink", c);
			return;
		}
	}
}

/* The owner takes its memory back while Reads and Writes are in flight */
static void take_back_once(struct ktest_pair *p, enum taking how)
{
	struct ktest_end *own = &p->end[1], *peer = &p->end[0];
	struct ktest_wr *reg = ktest_spare(own);
	struct ib_mr *mr;
	u32 rkey;
	u64 addr;
	int i;

	mr = ib_alloc_mr(own->pd, IB_MR_TYPE_MEM_REG, PAGES);
	if (IS_ERR(mr)) {
		ktest_fail(p, __func__, __LINE__, "ib_alloc_mr", PTR_ERR(mr));
		return;
	}
	memset(own->mem, OLD, NEXT + SIZE);
	memset(peer->mem + FIRST, WRITTEN, SIZE);
	memset(peer->mem + SINK, UNTOUCHED, SIZE);
	map(own, mr, FIRST);
	ktest_register(own, mr, reg, RIGHTS);
	ktest_wait(reg, IB_WC_SUCCESS);
	rkey = mr->rkey;
	addr = mr->iova;
	for (i = 0; i < BURST; i++)
		post_rdma(peer, &peer->sends[i], get_random_u32_below(2) ? IB_WR_RDMA_READ :
			  IB_WR_RDMA_WRITE, rkey, addr);
	udelay(get_random_u32_below(300));
	mr = take(own, mr, how);
	memset(own->mem + FIRST, SECRET, SIZE);
	/* The earlier ones may fail or not; this one must fail. */
	post_rdma(peer, &peer->sends[BURST], IB_WR_RDMA_READ, rkey, addr);
	ktest_wait_any(&peer->sends[BURST]);
	ktest_expect(p, peer->sends[BURST].wc.status != IB_WC_SUCCESS);
	ktest_wait_qp_event(own, IB_EVENT_QP_ACCESS_ERR);
	ktest_expect(p, !memchr_inv(own->mem + FIRST, SECRET, SIZE));
	ktest_expect(p, !memchr_inv(own->mem + FIRST + SIZE, OLD, NEXT));
	check_sink(peer);
	if (mr)
		ib_dereg_mr(mr);
}

static void take_back(struct ktest_pair *p)
{
	unsigned long end = jiffies + ktest_soak * HZ;
	int i;

	for (i = 0; (i < ROUNDS || time_before(jiffies, end)) && !p->has_failed; i++) {
		if (i && ktest_pair_reopen(p))
			break;
		take_back_once(p, i % TAKINGS);
	}
}

static bool all_are_done(struct ktest_wr *w)
{
	int i;

	for (i = 0; i < WINDOW; i++)
		/* Its handler does not use it any more then. */
		if (!completion_done(&w[i].done))
			return false;
	return true;
}

static void check_once(struct ktest_pair *p, const struct ktest_wr *w)
{
	int i;

	for (i = 0; i < WINDOW; i++) {
		ktest_expect_eq(p, atomic_read(&w[i].count), 1);
		ktest_expect(p, w[i].wc.status == IB_WC_SUCCESS ||
			     w[i].wc.status == IB_WC_WR_FLUSH_ERR);
	}
}

/* Posts a window of Sends from each end to the other */
static void post_window(struct ktest_pair *p)
{
	ktest_post_both(p, WINDOW, FIRST, SINK, SIZE);
}

static bool is_removed(const struct ktest_pair *p)
{
	return (READ_ONCE(p->end[0].cm_events) | READ_ONCE(p->end[1].cm_events)) &
	       BIT(RDMA_CM_EVENT_DEVICE_REMOVAL);
}

/* Sends until the device of one end is removed; then everything completes exactly once */
static void removal(struct ktest_pair *p)
{
	unsigned long end = jiffies + KTEST_PATIENCE * HZ;
	int i, e;

	while (!is_removed(p) && !p->has_failed) {
		post_window(p);
		for (e = 0; e < 2; e++)
			while (!is_removed(p) && time_before(jiffies, end) &&
			       (!all_are_done(p->end[e].sends) || !all_are_done(p->end[e].recvs)))
				usleep_range(20, 100);
		ktest_expect(p, time_before(jiffies, end));
	}
	for (e = 0; e < 2 && !p->has_failed; e++)
		ib_drain_qp(p->end[e].qp);
	for (e = 0; e < 2 && !p->has_failed; e++) {
		check_once(p, p->end[e].sends);
		check_once(p, p->end[e].recvs);
	}
	for (i = e = 0; e < 2; e++)
		i += test_bit(RDMA_CM_EVENT_DEVICE_REMOVAL, &p->end[e].cm_events);
	ktest_expect_eq(p, i, 1);
}

/* Receives in a shared receive queue stay there; those that a QP took from it complete */
static void drain_srq(struct ktest_pair *p)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_ERR };
	int counts[2][WINDOW];
	int i, e;

	post_window(p);
	for (e = 0; e < 2 && !p->has_failed; e++) {
		ktest_expect_eq(p, ib_modify_qp(p->end[e].qp, &attr, IB_QP_STATE), 0);
		ktest_wait_qp_event(&p->end[e], IB_EVENT_QP_LAST_WQE_REACHED);
		ib_drain_qp(p->end[e].qp);
		for (i = 0; i < WINDOW; i++)
			counts[e][i] = atomic_read(&p->end[e].recvs[i].count);
		check_once(p, p->end[e].sends);
		/* If it were drained again, the core would wait for a second LAST_WQE event. */
		rdma_destroy_qp(p->end[e].id);
		p->end[e].qp = NULL;
	}
	for (e = 0; e < 2 && !p->has_failed; e++) {
		for (i = 0; i < WINDOW; i++) {
			ktest_expect(p, counts[e][i] <= 1);
			ktest_expect_eq(p, atomic_read(&p->end[e].recvs[i].count), counts[e][i]);
			ktest_expect(p, !i || counts[e][i] <= counts[e][i - 1]);
		}
	}
}

const struct ktest_case ktest_cases_race[] = {
	{ "take-back", take_back, { .poll = IB_POLL_SOFTIRQ } },
	{ "drain-srq", drain_srq, { .poll = IB_POLL_SOFTIRQ, .with_srq = true } },
	{}
};

const struct ktest_case ktest_cases_more[] = {
	{ "removal", removal, { .poll = IB_POLL_SOFTIRQ } },
	{}
};
