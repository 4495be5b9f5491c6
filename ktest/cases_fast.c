// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Cases: fast registration. The peer can access registered memory up to its last byte, in
 * exactly the given pages. It can neither read nor write memory that is not, or no longer,
 * registered.
 *
 * End 1 owns the memory, end 0 accesses it. Contexts: process. No locks.
 */
#include <linux/scatterlist.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <rdma/rw.h>

#include "ktest.h"

#define MOST_PAGES	(KTEST_MEM / PAGE_SIZE)
/* Offset and length of a region of a bit more than two pages, inside the memory */
#define REGION		(100 * PAGE_SIZE + 100)
#define REGION_LEN	(2 * PAGE_SIZE + 200)
#define TRY_LEN		64

static struct scatterlist sgl[MOST_PAGES];

/* Lists @num pages of @end in sgl, last page first; the first entry starts at offset @skip */
static void list_pages(struct ktest_end *end, u32 num, u32 skip)
{
	u32 i;

	sg_init_table(sgl, num);
	for (i = 0; i < num; i++)
		sg_set_buf(&sgl[i], end->mem + (num - 1 - i) * PAGE_SIZE + (i ? 0 : skip),
			   PAGE_SIZE - (i ? 0 : skip));
	ktest_expect_eq(end->pair, ib_dma_map_sg(end->id->device, sgl, num, DMA_BIDIRECTIONAL),
			num);
}

static void invalidate(struct ktest_end *end, u32 rkey, enum ib_wc_status status)
{
	struct ib_send_wr wr = { .opcode = IB_WR_LOCAL_INV, .ex.invalidate_rkey = rkey };

	ktest_post(end, &end->sends[1], &wr);
	ktest_wait(&end->sends[1], status);
}

/* Posts at end 0. A Write has arrived when a Read after it completes */
static void post_rdma(struct ktest_pair *p, struct ktest_wr *w, enum ib_wr_opcode op, u32 local,
		      u32 len, u64 raddr, u32 rkey)
{
	struct ib_sge sge = ktest_sge(&p->end[0], local, len);
	struct ib_rdma_wr rdma = {
		.wr = { .opcode = op, .sg_list = &sge, .num_sge = 1 },
		.remote_addr = raddr,
		.rkey = rkey,
	};

	ktest_post(&p->end[0], w, &rdma.wr);
}

/* Writes all of a region, reads it back, and checks each page of it */
static void write_and_read(struct ktest_pair *p, struct ib_mr *mr, u32 num, u32 skip, u8 seed)
{
	struct ktest_end *a = &p->end[0], *b = &p->end[1];
	u32 len = num * PAGE_SIZE - skip;
	u32 back = num <= MOST_PAGES / 2 ? KTEST_MEM / 2 : 0;
	u32 i;

	for (i = 0; i < len; i++)
		a->mem[i] = i * 13 + (i >> 8) + seed;
	memset(b->mem, ~seed, skip);
	memset(b->mem + (num - 1) * PAGE_SIZE, 0, skip);
	post_rdma(p, &a->sends[2], IB_WR_RDMA_WRITE, 0, len, mr->iova, mr->rkey);
	post_rdma(p, &a->sends[3], IB_WR_RDMA_READ, back, len, mr->iova, mr->rkey);
	ktest_wait(&a->sends[2], IB_WC_SUCCESS);
	ktest_wait(&a->sends[3], IB_WC_SUCCESS);
	ktest_expect(p, !memcmp(a->mem, a->mem + back, len));
	for (i = 0; i < num; i++)
		ktest_expect(p, !memcmp(sg_virt(&sgl[i]), a->mem + i * PAGE_SIZE - (i ? skip : 0),
					sgl[i].length));
	if (num > 1)
		ktest_expect(p, !memchr_inv(b->mem + (num - 1) * PAGE_SIZE, 0, skip));
}

static void use_once(struct ktest_pair *p, struct ib_mr *mr, u32 num, u32 skip, u8 key)
{
	struct ktest_end *b = &p->end[1];

	if (READ_ONCE(p->has_failed))
		return;
	ib_update_fast_reg_key(mr, key);
	list_pages(b, num, skip);
	ktest_expect_eq(p, ib_map_mr_sg(mr, sgl, num, NULL, PAGE_SIZE), num);
	ktest_register(b, mr, &b->reg, IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_READ |
		       IB_ACCESS_REMOTE_WRITE);
	ktest_wait(&b->reg, IB_WC_SUCCESS);
	write_and_read(p, mr, num, skip, key);
	invalidate(b, mr->rkey, IB_WC_SUCCESS);
}

/* All keys, and various page lists */
static void keys(struct ktest_pair *p)
{
	struct ib_mr *mr;
	int key;

	mr = ib_alloc_mr(p->end[1].pd, IB_MR_TYPE_MEM_REG, MOST_PAGES);
	if (IS_ERR(mr)) {
		ktest_fail(p, __func__, __LINE__, "ib_alloc_mr", PTR_ERR(mr));
		return;
	}
	p->end[1].mr = mr;
	for (key = 0; key < 256; key++)
		use_once(p, mr, 1 + key % 9, key * 61 % PAGE_SIZE, key);
	for (key = 16; key <= 256; key *= 2)
		use_once(p, mr, key, 5, key);
}

enum how { VALID, OLD_KEY, INVALIDATED, NEVER, DEREGISTERED, OTHER_PD };

/**
 * struct attempt - one access by end 0 that must be refused
 * @op: Write or Read
 * @access: enum ib_access_flags of the region
 * @offset: offset of the first byte from the start of the region
 * @how: state of the region
 */
struct attempt {
	enum ib_wr_opcode op;
	int access;
	s64 offset;
	enum how how;
};

#define ALL_RIGHTS	(IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_WRITE)

static const struct attempt attempts[] = {
	{ IB_WR_RDMA_WRITE, ALL_RIGHTS, -1, VALID },
	{ IB_WR_RDMA_READ, ALL_RIGHTS, -1, VALID },
	{ IB_WR_RDMA_WRITE, ALL_RIGHTS, REGION_LEN - TRY_LEN + 1, VALID },
	{ IB_WR_RDMA_READ, ALL_RIGHTS, REGION_LEN - TRY_LEN + 1, VALID },
	{ IB_WR_RDMA_WRITE, IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_READ, 0, VALID },
	{ IB_WR_RDMA_READ, IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE, 0, VALID },
	{ IB_WR_RDMA_WRITE, IB_ACCESS_LOCAL_WRITE, 0, VALID },
	{ IB_WR_RDMA_WRITE, ALL_RIGHTS, 0, OLD_KEY },
	{ IB_WR_RDMA_READ, ALL_RIGHTS, 0, OLD_KEY },
	{ IB_WR_RDMA_WRITE, ALL_RIGHTS, 0, INVALIDATED },
	{ IB_WR_RDMA_READ, ALL_RIGHTS, 0, INVALIDATED },
	{ IB_WR_RDMA_WRITE, ALL_RIGHTS, 0, NEVER },
	{ IB_WR_RDMA_READ, ALL_RIGHTS, 0, DEREGISTERED },
	{ IB_WR_RDMA_WRITE, ALL_RIGHTS, 0, OTHER_PD },
	{ IB_WR_RDMA_READ, ALL_RIGHTS, 0, OTHER_PD },
};

/* Sets up the region; returns the STag to use, and in @raddr the start of the region */
static u32 expose_region(struct ktest_end *b, const struct attempt *try, u64 *raddr)
{
	struct ib_mr *mr;
	u32 rkey;

	mr = ib_alloc_mr(b->pd, IB_MR_TYPE_MEM_REG, 4);
	if (IS_ERR(mr)) {
		ktest_fail(b->pair, __func__, __LINE__, "ib_alloc_mr", PTR_ERR(mr));
		return 0;
	}
	b->mr = mr;
	rkey = mr->rkey;
	sg_init_one(sgl, b->mem + REGION, REGION_LEN);
	ktest_expect_eq(b->pair, ib_dma_map_sg(b->id->device, sgl, 1, DMA_BIDIRECTIONAL), 1);
	ktest_expect_eq(b->pair, ib_map_mr_sg(mr, sgl, 1, NULL, PAGE_SIZE), 1);
	*raddr = mr->iova;
	if (try->how == NEVER)
		return rkey;
	if (try->how == OLD_KEY)
		ib_update_fast_reg_key(mr, rkey + 1);
	ktest_register(b, mr, &b->reg, try->access);
	ktest_wait(&b->reg, IB_WC_SUCCESS);
	if (try->how == INVALIDATED)
		invalidate(b, rkey, IB_WC_SUCCESS);
	if (try->how == DEREGISTERED) {
		ib_dereg_mr(mr);
		b->mr = NULL;
	}
	return rkey;
}

static void attempt(struct ktest_pair *p, const struct attempt *try)
{
	struct ktest_end *a = &p->end[0], *b = &p->end[1];
	struct ib_pd *other = NULL;
	u64 raddr = 0;
	u32 rkey;

	memset(a->mem, 0xaa, PAGE_SIZE);
	memset(b->mem, 0xbb, KTEST_MEM);
	ktest_post_recv(b, &b->recvs[0], 0, 1);
	rkey = expose_region(b, try, &raddr);
	if (try->how == OTHER_PD) {
		other = ib_alloc_pd(b->id->device, IB_PD_UNSAFE_GLOBAL_RKEY);
		if (IS_ERR(other)) {
			ktest_fail(p, __func__, __LINE__, "ib_alloc_pd", PTR_ERR(other));
			return;
		}
		rkey = other->unsafe_global_rkey;
		raddr = b->dma + REGION;
	}
	post_rdma(p, &a->sends[0], try->op, 0, TRY_LEN, raddr + try->offset, rkey);
	ktest_wait(&a->sends[0], try->op == IB_WR_RDMA_READ ? IB_WC_REM_ACCESS_ERR :
							      IB_WC_SUCCESS);
	ktest_wait_cm_event(a, RDMA_CM_EVENT_DISCONNECTED);
	ktest_wait_cm_event(b, RDMA_CM_EVENT_DISCONNECTED);
	ktest_wait(&b->recvs[0], IB_WC_WR_FLUSH_ERR);
	ktest_expect(p, !memchr_inv(a->mem, 0xaa, PAGE_SIZE));
	ktest_expect(p, !memchr_inv(b->mem, 0xbb, KTEST_MEM));
	if (other)
		ib_dealloc_pd(other);
}

/* Each attempt ends its connection, so each needs a new one */
static void refused(struct ktest_pair *p)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(attempts) && !p->has_failed; i++) {
		if (i && ktest_pair_reopen(p))
			break;
		attempt(p, &attempts[i]);
		if (p->has_failed)
			ktest_fail(p, __func__, __LINE__, "attempt", i);
	}
}

/* Transfers data with the core's rdma_rw helpers, in one direction */
static void rw_once(struct ktest_pair *p, enum dma_data_direction dir)
{
	struct ktest_end *a = &p->end[0], *b = &p->end[1];
	struct ktest_end *from = dir == DMA_TO_DEVICE ? a : b;
	struct rdma_rw_ctx ctx;
	const u32 num = 40;
	int ret;
	u32 i;

	for (i = 0; i < num * PAGE_SIZE; i++)
		from->mem[i] = i * 31 + (i >> 9) + dir;
	memset(ktest_peer(from)->mem, 0, KTEST_MEM);
	sg_init_table(sgl, num);
	for (i = 0; i < num; i++)
		sg_set_buf(&sgl[i], a->mem + (num - 1 - i) * PAGE_SIZE, PAGE_SIZE);
	ret = rdma_rw_ctx_init(&ctx, a->qp, 1, sgl, num, 0, b->mr->iova, b->mr->rkey, dir);
	ktest_expect(p, ret > 0);
	if (ret <= 0)
		return;
	ktest_wr_init(a, &a->sends[0]);
	ktest_expect_eq(p, rdma_rw_ctx_post(&ctx, a->qp, 1, &a->sends[0].cqe, NULL), 0);
	ktest_wait(&a->sends[0], IB_WC_SUCCESS);
	rdma_rw_ctx_destroy(&ctx, a->qp, 1, sgl, num, dir);
}

static void rw(struct ktest_pair *p)
{
	struct ktest_end *a = &p->end[0], *b = &p->end[1];
	struct ib_send_wr wr = { .opcode = IB_WR_SEND };
	int dir, i;

	ktest_expose(b, ALL_RIGHTS);
	for (dir = DMA_TO_DEVICE; dir <= DMA_FROM_DEVICE && !p->has_failed; dir++) {
		rw_once(p, dir);
		/* When this Send arrives after a Write, all data has arrived */
		ktest_post_recv(b, &b->recvs[0], KTEST_MEM - 1, 1);
		ktest_post(a, &a->sends[1], &wr);
		ktest_wait(&b->recvs[0], IB_WC_SUCCESS);
		for (i = 0; i < 40; i++)
			ktest_expect(p, !memcmp(a->mem + (39 - i) * PAGE_SIZE,
						b->mem + i * PAGE_SIZE, PAGE_SIZE));
		ktest_wait(&a->sends[1], IB_WC_SUCCESS);
	}
}

/*
 * Posts many work requests that send nothing, and a Send behind them, in one call. The driver
 * executes only so many of them at a time, and has to go on by itself.
 */
static void local_many(struct ktest_pair *p)
{
	struct ktest_end *a = &p->end[0], *b = &p->end[1];
	struct ib_send_wr *wrs;
	u32 i;

	ktest_expose(a, IB_ACCESS_LOCAL_WRITE);
	wrs = kcalloc(KTEST_DEPTH, sizeof(*wrs), GFP_KERNEL);
	ktest_expect(p, wrs);
	if (p->has_failed)
		goto out;
	/* Invalidating an STag that has been invalidated already is not an error. */
	for (i = 0; i < KTEST_DEPTH; i++) {
		ktest_wr_init(a, &a->sends[i]);
		wrs[i] = (struct ib_send_wr) {
			.next = i + 1 < KTEST_DEPTH ? &wrs[i + 1] : NULL,
			.wr_cqe = &a->sends[i].cqe,
			.opcode = i + 1 < KTEST_DEPTH ? IB_WR_LOCAL_INV : IB_WR_SEND,
			.send_flags = IB_SEND_SIGNALED,
			.ex.invalidate_rkey = a->mr->rkey,
		};
	}
	ktest_post_recv(b, &b->recvs[0], 0, 1);
	ktest_expect_eq(p, ib_post_send(a->qp, wrs, NULL), 0);
	for (i = 0; i < KTEST_DEPTH; i++)
		ktest_wait(&a->sends[i], IB_WC_SUCCESS);
	ktest_wait(&b->recvs[0], IB_WC_SUCCESS);
out:
	kfree(wrs);
}

const struct ktest_case ktest_cases_fast[] = {
	{ "fast-keys", keys, { .poll = IB_POLL_SOFTIRQ } },
	{ "fast-refused", refused, { .poll = IB_POLL_SOFTIRQ } },
	{ "local-many", local_many, { .poll = IB_POLL_SOFTIRQ } },
	{ "rw-api", rw, { .poll = IB_POLL_SOFTIRQ, .with_rw = true } },
	{}
};
