// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Cases: data arrives as it was sent, no matter which context posts it, and an invalid work
 * request does not affect others.
 *
 * Owns: post_timer, post_irq. Contexts: process; posts also with interrupts disabled, in a hard
 * interrupt, in softirq and in a completion handler. No locks.
 */
#include <linux/irq_work.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/timer.h>

#include "ktest.h"

#define LOCAL		(3 * PAGE_SIZE - 5)
#define REMOTE		(128 * PAGE_SIZE + 9)
/* Bytes between two pieces of memory, and around all pieces, that must not change */
#define GAP		3
#define CANARY		0xc5
/* Maximum number of SGEs that any device has */
#define MANY		32
/* Long enough to be lent, in MANY pieces of less than a page */
#define SOURCE		(MANY * 2048)

enum poster { BY_PROCESS, BY_IRQS_OFF, BY_IRQ, BY_TIMER, BY_HANDLER, BY_COUNT };

/**
 * struct xfer - one transfer
 * @op: IB_WR_SEND, IB_WR_RDMA_WRITE or IB_WR_RDMA_READ
 * @flags: IB_SEND_INLINE or 0
 * @size: length in bytes
 * @num_sge: number of SGEs of the work request; divides @size
 * @by: context in which it is posted
 */
struct xfer {
	enum ib_wr_opcode op;
	int flags;
	u32 size;
	u32 num_sge;
	enum poster by;
};

static struct {
	struct timer_list timer;
	struct ib_qp *qp;
	const struct ib_send_wr *wr;
	struct completion done;
	int ret;
} post_timer;

static struct {
	struct irq_work work;
	struct ktest_end *end;
	const struct ib_send_wr *wr;
	struct ktest_wr *recv;
	u32 recv_len;
	int ret;
} post_irq;

static void timer_posts(struct timer_list *unused)
{
	post_timer.ret = ib_post_send(post_timer.qp, post_timer.wr, NULL);
	complete(&post_timer.done);
}

static int post_by_timer(struct ib_qp *qp, const struct ib_send_wr *wr)
{
	post_timer.qp = qp;
	post_timer.wr = wr;
	init_completion(&post_timer.done);
	timer_setup(&post_timer.timer, timer_posts, 0);
	mod_timer(&post_timer.timer, jiffies + 1);
	wait_for_completion(&post_timer.done);
	timer_delete_sync(&post_timer.timer);
	return post_timer.ret;
}

/* After a failure nothing waits. Flushes work requests whose memory is about to be gone. */
static void settle(struct ktest_end *end)
{
	if (READ_ONCE(end->pair->has_failed))
		ib_drain_qp(end->qp);
}

/* Posts in the completion handler of an empty Send, for which the peer has a receive */
static int post_by_handler(struct ktest_end *end, const struct ib_send_wr *wr)
{
	struct ib_send_wr kick = { .opcode = IB_WR_SEND };
	struct ktest_wr *w = &end->sends[KTEST_DEPTH - 1];

	ktest_wr_init(end, w);
	kick.wr_cqe = &w->cqe;
	w->next = wr;
	if (ib_post_send(end->qp, &kick, NULL))
		return -EIO;
	ktest_wait(w, IB_WC_SUCCESS);
	settle(end);
	w->next = NULL;
	return 0;
}

static void irq_posts(struct irq_work *unused)
{
	ktest_post_recv(ktest_peer(post_irq.end), post_irq.recv, REMOTE, post_irq.recv_len);
	post_irq.ret = ib_post_send(post_irq.end->qp, post_irq.wr, NULL);
}

/* Posts in a hard interrupt, at the peer a receive */
static int post_by_irq(struct ktest_end *end, const struct ib_send_wr *wr, u32 recv_len)
{
	post_irq.end = end;
	post_irq.wr = wr;
	post_irq.recv = &ktest_peer(end)->recvs[0];
	post_irq.recv_len = recv_len;
	post_irq.work = IRQ_WORK_INIT(irq_posts);
	irq_work_queue(&post_irq.work);
	irq_work_sync(&post_irq.work);
	return post_irq.ret;
}

/* Posts @wr, and at the peer a receive of @recv_len bytes */
static int post_by(struct ktest_end *end, const struct ib_send_wr *wr, enum poster by, u32 recv_len)
{
	struct ktest_end *peer = ktest_peer(end);
	unsigned long flags;
	int ret;

	if (READ_ONCE(end->pair->has_failed))
		return 0;
	if (by == BY_IRQ)
		return post_by_irq(end, wr, recv_len);
	/* The empty Send that a completion handler needs takes the first receive. */
	if (by == BY_HANDLER)
		ktest_post_recv(peer, &peer->recvs[1], 0, 1);
	ktest_post_recv(peer, &peer->recvs[0], REMOTE, recv_len);
	switch (by) {
	case BY_IRQS_OFF:
		local_irq_save(flags);
		ret = ib_post_send(end->qp, wr, NULL);
		local_irq_restore(flags);
		return ret;
	case BY_TIMER:
		return post_by_timer(end->qp, wr);
	case BY_HANDLER:
		return post_by_handler(end, wr);
	default:
		return ib_post_send(end->qp, wr, NULL);
	}
}

static void fill(u8 *mem, u32 len, u32 seed)
{
	u32 i;

	for (i = 0; i < len; i++)
		mem[i] = (i + seed) * 37 + ((i + seed) >> 8);
}

static u32 piece_of(const struct xfer *x)
{
	return x->num_sge ? x->size / x->num_sge : 0;
}

/* Fills the source with a pattern, and the sink and its surroundings with the canary */
static void prepare(struct ktest_end *end, const struct xfer *x)
{
	u32 room = x->size + 8 * GAP;
	u8 *local = end->mem + LOCAL - GAP;
	u8 *remote = ktest_peer(end)->mem + REMOTE - GAP;

	memset(local, CANARY, room);
	memset(remote, CANARY, room);
	if (x->op == IB_WR_RDMA_READ)
		fill(remote, room, x->size);
	else
		fill(local, room, x->size);
}

static void check(struct ktest_end *end, const struct xfer *x)
{
	const u8 *remote = ktest_peer(end)->mem + REMOTE;
	const u8 *local = end->mem + LOCAL;
	const u8 *sink = x->op == IB_WR_RDMA_READ ? local : remote;
	u32 i, piece = piece_of(x);

	for (i = 0; i < x->num_sge; i++) {
		ktest_expect(end->pair, !memcmp(local, remote, piece));
		local += piece + GAP;
		remote += piece;
		if (x->op == IB_WR_RDMA_READ)
			ktest_expect(end->pair, !memchr_inv(local - GAP, CANARY, GAP));
	}
	ktest_expect(end->pair, !memchr_inv(sink - GAP, CANARY, GAP));
	ktest_expect(end->pair, !memchr_inv(x->op == IB_WR_RDMA_READ ? local : remote,
					    CANARY, GAP));
}

/* An empty Send follows a Write or Read in the same chain: when it arrives, all data is there */
static void transfer(struct ktest_end *end, const struct xfer *x)
{
	struct ktest_end *peer = ktest_peer(end);
	struct ktest_wr *recv = &peer->recvs[0];
	struct ib_send_wr last = { .opcode = IB_WR_SEND };
	struct ib_rdma_wr first = { .wr = { .opcode = x->op, .send_flags = x->flags } };
	struct ib_sge sge[6];
	u32 i;

	if (READ_ONCE(end->pair->has_failed))
		return;
	prepare(end, x);
	for (i = 0; i < x->num_sge; i++)
		sge[i] = ktest_sge(end, LOCAL + i * (piece_of(x) + GAP), piece_of(x));
	ktest_wr_init(end, &end->sends[0]);
	ktest_wr_init(end, &end->sends[1]);
	first.wr.wr_cqe = &end->sends[0].cqe;
	last.wr_cqe = &end->sends[1].cqe;
	first.wr.sg_list = sge;
	first.wr.num_sge = x->num_sge;
	if (x->op != IB_WR_SEND) {
		first.remote_addr = peer->mr->iova + REMOTE;
		first.rkey = peer->mr->rkey;
		first.wr.next = &last;
	}
	ktest_expect_eq(end->pair, post_by(end, &first.wr, x->by, x->size + 1), 0);
	ktest_wait(&end->sends[0], IB_WC_SUCCESS);
	if (first.wr.next)
		ktest_wait(&end->sends[1], IB_WC_SUCCESS);
	ktest_wait(recv, IB_WC_SUCCESS);
	if (READ_ONCE(end->pair->has_failed))
		return;
	ktest_expect_eq(end->pair, recv->wc.byte_len, x->op == IB_WR_SEND ? x->size : 0);
	check(end, x);
}

static void expose_both(struct ktest_pair *p)
{
	const int access = IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_WRITE;

	ktest_expose(&p->end[0], access);
	ktest_expose(&p->end[1], access);
}

static void all_posters(struct ktest_pair *p, struct xfer x)
{
	int i;

	for (i = 0; i < 2; i++)
		for (x.by = 0; x.by < BY_COUNT; x.by++)
			transfer(&p->end[i], &x);
}

static void data(struct ktest_pair *p)
{
	static const enum ib_wr_opcode ops[] = {
		IB_WR_SEND, IB_WR_RDMA_WRITE, IB_WR_RDMA_READ,
	};
	static const u32 sizes[] = { 0, 1, 7, 1500, 4097, 20000, 65536 };
	struct xfer x = {};
	int op, size;

	expose_both(p);
	for (op = 0; op < ARRAY_SIZE(ops); op++) {
		x.op = ops[op];
		x.num_sge = 0;
		x.size = 0;
		all_posters(p, x);
		for (size = 0; size < ARRAY_SIZE(sizes); size++) {
			x.num_sge = 1 + (op + size) % 6;
			x.size = sizes[size] * x.num_sge;
			all_posters(p, x);
		}
	}
}

/* Write number @i of a chain: number of SGEs, bytes of each */
static u32 many_sges(const struct ktest_end *end, u32 i)
{
	return 1 + i * 11 % end->qp->max_write_sge;
}

/* One of them is so large that its pages are lent, where pages are. */
static u32 many_bytes(u32 i)
{
	if (i == 2)
		return 1500;
	return i % 5 ? 1 + i : 613;
}

/* Posts @count Writes of pieces that go to consecutive memory of the peer, and an empty Send. */
static void many_post(struct ktest_end *end, u32 count)
{
	struct ktest_end *peer = ktest_peer(end);
	u32 i, j, local = LOCAL, remote = REMOTE;
	struct ib_send_wr last = { .opcode = IB_WR_SEND };
	struct ib_sge sge[MANY];

	for (i = 0; i < count; i++) {
		struct ib_rdma_wr wr = { .wr = { .opcode = IB_WR_RDMA_WRITE, .sg_list = sge } };

		wr.wr.num_sge = many_sges(end, i);
		wr.remote_addr = peer->mr->iova + remote;
		wr.rkey = peer->mr->rkey;
		for (j = 0; j < wr.wr.num_sge; j++, local += many_bytes(i) + GAP)
			sge[j] = ktest_sge(end, local, many_bytes(i));
		remote += wr.wr.num_sge * many_bytes(i);
		ktest_post(end, &end->sends[i], &wr.wr);
	}
	ktest_post(end, &end->sends[count], &last);
}

static void many_check(struct ktest_end *end, u32 count)
{
	const u8 *local = end->mem + LOCAL, *remote = ktest_peer(end)->mem + REMOTE;
	u32 i, j;

	for (i = 0; i < count; i++) {
		for (j = 0; j < many_sges(end, i); j++) {
			ktest_expect(end->pair, !memcmp(local, remote, many_bytes(i)));
			local += many_bytes(i) + GAP;
			remote += many_bytes(i);
		}
	}
	ktest_expect(end->pair, *remote == CANARY);
}

/*
 * Many Writes wait in the queue at once, with different numbers of SGEs, few and many, at both ends
 * in turn. The rounds begin at different slots of the queue.
 */
static void many(struct ktest_pair *p)
{
	struct ktest_end *end, *peer;
	const u32 count = 50;
	u32 i, round;

	expose_both(p);
	for (round = 0; round < 12 && !READ_ONCE(p->has_failed); round++) {
		end = &p->end[round % 2];
		peer = ktest_peer(end);
		fill(end->mem, KTEST_MEM, round);
		memset(peer->mem, CANARY, KTEST_MEM);
		ktest_post_recv(peer, &peer->recvs[0], 0, 1);
		many_post(end, count);
		for (i = 0; i <= count; i++)
			ktest_wait(&end->sends[i], IB_WC_SUCCESS);
		ktest_wait(&peer->recvs[0], IB_WC_SUCCESS);
		many_check(end, count);
	}
}

/* Posts a Write of %SOURCE bytes and an empty Send, and waits until the latter has arrived. */
static void source_write(struct ktest_end *end, struct ib_sge *sge, int num_sge)
{
	struct ktest_end *peer = ktest_peer(end);
	struct ib_rdma_wr wr = {
		.wr = { .opcode = IB_WR_RDMA_WRITE, .sg_list = sge, .num_sge = num_sge },
		.remote_addr = peer->mr->iova + REMOTE,
		.rkey = peer->mr->rkey,
	};
	struct ib_send_wr last = { .opcode = IB_WR_SEND };

	ktest_post_recv(peer, &peer->recvs[0], 0, 1);
	ktest_post(end, &end->sends[0], &wr.wr);
	ktest_post(end, &end->sends[1], &last);
	ktest_wait(&end->sends[0], IB_WC_SUCCESS);
	ktest_wait(&end->sends[1], IB_WC_SUCCESS);
	ktest_wait(&peer->recvs[0], IB_WC_SUCCESS);
}

/* A message from objects of the slab allocator, whose pages nobody may refer to */
static void source_slab(struct ktest_end *end, u32 num)
{
	struct ib_device *dev = end->id->device;
	const u8 *remote = ktest_peer(end)->mem + REMOTE;
	struct ib_sge sge[MANY];
	u8 *objects[MANY];
	u32 i, len = SOURCE / MANY;

	for (i = 0; i < num; i++) {
		objects[i] = kmalloc(len, GFP_KERNEL | __GFP_NOFAIL);
		fill(objects[i], len, i);
		sge[i] = (struct ib_sge) {
			.addr = ib_dma_map_single(dev, objects[i], len, DMA_TO_DEVICE),
			.length = len,
			.lkey = end->pd->local_dma_lkey,
		};
	}
	source_write(end, sge, num);
	settle(end);
	for (i = 0; i < num; i++) {
		ib_dma_unmap_single(dev, sge[i].addr, len, DMA_TO_DEVICE);
		ktest_expect(end->pair, !memcmp(remote + i * len, objects[i], len));
		kfree(objects[i]);
	}
}

/* Memory that cannot be lent, where pages are: that of a fast region, and of the slab allocator */
static void sources(struct ktest_pair *p)
{
	struct ktest_end *end = &p->end[1];
	struct ib_sge region;

	expose_both(p);
	fill(end->mem, KTEST_MEM, 5);
	region = ktest_sge(end, LOCAL, SOURCE);
	region.addr = end->mr->iova + LOCAL;
	region.lkey = end->mr->lkey;
	source_write(end, &region, 1);
	ktest_expect(p, !memcmp(p->end[0].mem + REMOTE, end->mem + LOCAL, SOURCE));
	source_slab(end, min_t(u32, MANY, end->qp->max_write_sge));
}

/* A QP gets as many SGEs as it asks for, and the most if the core builds Writes for it. */
static void many_granted(struct ktest_pair *p)
{
	struct ktest_end *end = &p->end[0];
	const struct ib_device_attr *attrs = &end->id->device->attrs;
	struct ib_qp_init_attr attr = {
		.cap = { .max_send_wr = 4, .max_recv_wr = 1, .max_recv_sge = 1 },
		.qp_type = IB_QPT_RC,
		.send_cq = end->cq,
		.recv_cq = end->cq,
	};
	struct ib_qp *qp;
	u32 most = attrs->max_send_sge;
	u32 asked;

	for (asked = 0; asked <= most + 1; asked++) {
		attr.cap.max_send_sge = asked;
		qp = ib_create_qp(end->pd, &attr);
		ktest_expect(p, IS_ERR(qp) == (asked > most));
		if (IS_ERR(qp))
			continue;
		ktest_expect(p, attr.cap.max_send_sge >= asked && attr.cap.max_send_sge <= most);
		ib_destroy_qp(qp);
	}
	ktest_expect_eq(p, end->qp->max_write_sge, most);
	ktest_expect(p, attrs->max_recv_sge <= 6 && attrs->max_sge_rd <= 6);
}

static void inline_data(struct ktest_pair *p)
{
	struct xfer x = { .flags = IB_SEND_INLINE };

	expose_both(p);
	for (x.num_sge = 0; x.num_sge <= 6; x.num_sge++) {
		x.size = x.num_sge * (x.num_sge < 4 ? 16 : 10);
		x.op = IB_WR_SEND;
		all_posters(p, x);
		x.op = IB_WR_RDMA_WRITE;
		all_posters(p, x);
	}
}

/* Posts a chain of four Sends; @bad, the third, must be refused with @want */
static void bad_in_chain(struct ktest_pair *p, const struct ib_send_wr *bad, int want)
{
	struct ktest_end *end = &p->end[0], *peer = &p->end[1];
	struct ib_sge sge = ktest_sge(end, 0, 64);
	struct ib_send_wr wr[4], again = {};
	const struct ib_send_wr *refused = NULL;
	int i;

	fill(end->mem, 64, 1);
	memset(peer->mem, 0, PAGE_SIZE);
	for (i = 0; i < 4; i++) {
		ktest_post_recv(peer, &peer->recvs[i], i * 64, 64);
		ktest_wr_init(end, &end->sends[i]);
		wr[i] = i == 2 ? *bad : (struct ib_send_wr){
			.opcode = IB_WR_SEND, .sg_list = &sge, .num_sge = 1,
		};
		wr[i].wr_cqe = &end->sends[i].cqe;
		wr[i].next = i < 3 ? &wr[i + 1] : NULL;
	}
	if (READ_ONCE(p->has_failed))
		return;
	ktest_expect_eq(p, ib_post_send(end->qp, wr, &refused), want);
	ktest_expect(p, refused == &wr[2]);
	/* The following Sends use the receives that the refused ones did not use. */
	for (i = 0; i < 2; i++) {
		again.opcode = IB_WR_SEND;
		ktest_post(end, &end->sends[4 + i], &again);
		ktest_wait(&peer->recvs[2 + i], IB_WC_SUCCESS);
		ktest_wait(&end->sends[4 + i], IB_WC_SUCCESS);
		ktest_expect_eq(p, peer->recvs[2 + i].wc.byte_len, 0);
		ktest_expect_eq(p, peer->recvs[i].wc.byte_len, 64);
		ktest_expect(p, !memcmp(peer->mem + i * 64, end->mem, 64));
		ktest_expect_eq(p, atomic_read(&end->sends[i].count), 1);
		ktest_expect_eq(p, atomic_read(&end->sends[2 + i].count), 0);
	}
	ktest_expect(p, !memchr_inv(peer->mem + 128, 0, PAGE_SIZE - 128));
}

static void bad_wr(struct ktest_pair *p)
{
	const u32 most = p->end[0].qp->max_write_sge;
	struct ib_sge many[MANY + 1], large;
	struct ib_send_wr bad = { .opcode = IB_WR_SEND, .sg_list = many, .num_sge = most + 1 };
	int i;

	ktest_expect(p, most <= MANY);
	for (i = 0; i <= MANY; i++)
		many[i] = ktest_sge(&p->end[0], 0, 8);
	bad_in_chain(p, &bad, -EINVAL);
	/* Of these a Read has less. */
	bad.opcode = IB_WR_RDMA_READ;
	bad.num_sge = p->end[0].id->device->attrs.max_sge_rd + 1;
	bad_in_chain(p, &bad, -EINVAL);
	bad.opcode = IB_WR_SEND;
	bad.num_sge = -1;
	bad_in_chain(p, &bad, -EINVAL);
	large = ktest_sge(&p->end[0], 0, PAGE_SIZE);
	bad.sg_list = &large;
	bad.num_sge = 1;
	bad.send_flags = IB_SEND_INLINE;
	bad_in_chain(p, &bad, -EINVAL);
	bad.send_flags = IB_SEND_IP_CSUM;
	bad_in_chain(p, &bad, -EINVAL);
	bad.send_flags = 0;
	/* An atomic operation has 8 bytes. */
	bad.opcode = IB_WR_ATOMIC_CMP_AND_SWP;
	bad_in_chain(p, &bad, -EINVAL);
	bad.opcode = IB_WR_SEND_WITH_IMM;
	bad_in_chain(p, &bad, -EOPNOTSUPP);
}

/*
 * The peer answers a Read in a softirq, which cannot run meanwhile, and what is posted behind the
 * Read completes after it. The queue takes as many work requests as it has entries, although they
 * have been sent, and no more: a CQ of that size has room for all completions.
 */
static void full_queue(struct ktest_pair *p)
{
	struct ib_rdma_wr wr = { .rkey = 1 };
	struct ktest_end *end = &p->end[0];
	const u32 count = p->opts->sends;
	struct ktest_wr *excess;
	u32 i, round;

	for (round = 0; round < 3 && !READ_ONCE(p->has_failed); round++) {
		excess = ktest_spare(end);
		ktest_wr_init(end, excess);
		local_bh_disable();
		for (i = 0; i < count; i++) {
			wr.wr.opcode = i ? IB_WR_RDMA_WRITE : IB_WR_RDMA_READ;
			ktest_post(end, &end->sends[i], &wr.wr);
		}
		wr.wr.wr_cqe = &excess->cqe;
		ktest_expect_eq(p, ib_post_send(end->qp, &wr.wr, NULL), -ENOMEM);
		local_bh_enable();
		for (i = 0; i < count; i++)
			ktest_wait(&end->sends[i], IB_WC_SUCCESS);
	}
}

const struct ktest_case ktest_cases_data[] = {
	{ "data-softirq", data, { .poll = IB_POLL_SOFTIRQ } },
	{ "data-workqueue", data, { .poll = IB_POLL_WORKQUEUE } },
	{ "data-direct", data, { .poll = IB_POLL_DIRECT } },
	{ "many-sges", many, { .poll = IB_POLL_SOFTIRQ } },
	{ "other-sources", sources, { .poll = IB_POLL_SOFTIRQ } },
	{ "many-sges-granted", many_granted, { .poll = IB_POLL_SOFTIRQ } },
	{ "full-queue", full_queue, { .poll = IB_POLL_SOFTIRQ, .sends = 64 } },
	{ "inline", inline_data, { .poll = IB_POLL_SOFTIRQ } },
	{ "bad-wr", bad_wr, { .poll = IB_POLL_SOFTIRQ } },
	{}
};
