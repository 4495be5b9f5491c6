// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Helpers to post work requests and wait for their completions.
 *
 * Owns: &struct ktest_wr. Contexts: completion handlers run in the context in which the case's
 * CQ is polled; everything else runs in process context unless stated otherwise. No locks.
 */
#include <linux/jiffies.h>
#include <linux/scatterlist.h>

#include "ktest.h"

static void on_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct ktest_wr *w = container_of(wc->wr_cqe, struct ktest_wr, cqe);

	w->wc = *wc;
	atomic_inc(&w->count);
	if (w->next)
		ktest_expect_eq(w->end->pair, ib_post_send(w->end->qp, w->next, NULL), 0);
	complete_all(&w->done);
}

/**
 * ktest_wr_init() - prepare for posting a work request
 * @end: the end it will be posted to
 * @w: structure to initialise; the work request uses its cqe
 *
 * Context: any.
 */
void ktest_wr_init(struct ktest_end *end, struct ktest_wr *w)
{
	memset(w, 0, sizeof(*w));
	w->end = end;
	w->cqe.done = on_done;
	init_completion(&w->done);
}

/**
 * ktest_spare() - get a work request that is used for a short time only
 * @end: the end it will be posted to
 *
 * A case that has failed does not wait for completions, so no work request may be on the stack.
 *
 * Context: any.
 * Return: a work request, which is reused after %KTEST_SPARE calls.
 */
struct ktest_wr *ktest_spare(struct ktest_end *end)
{
	return &end->spare[end->next_spare++ % KTEST_SPARE];
}

/**
 * ktest_post() - post a signaled work request and expect it to be accepted
 * @end: the end to post to
 * @w: initialised by this function
 * @wr: the work request; this function sets its wr_cqe and makes it signaled
 *
 * Context: any.
 */
void ktest_post(struct ktest_end *end, struct ktest_wr *w, struct ib_send_wr *wr)
{
	ktest_wr_init(end, w);
	wr->wr_cqe = &w->cqe;
	wr->send_flags |= IB_SEND_SIGNALED;
	if (!READ_ONCE(end->pair->has_failed))
		ktest_expect_eq(end->pair, ib_post_send(end->qp, wr, NULL), 0);
}

/**
 * ktest_post_recv() - post a receive and expect it to be accepted
 * @end: the end to post to; its shared receive queue is used if it has one
 * @w: initialised by this function
 * @offset: offset into the memory of @end
 * @len: length in bytes
 *
 * Context: any.
 */
void ktest_post_recv(struct ktest_end *end, struct ktest_wr *w, u32 offset, u32 len)
{
	struct ib_sge sge = ktest_sge(end, offset, len);
	struct ib_recv_wr wr = { .sg_list = &sge, .num_sge = 1 };
	int ret;

	ktest_wr_init(end, w);
	wr.wr_cqe = &w->cqe;
	if (READ_ONCE(end->pair->has_failed))
		return;
	ret = end->srq ? ib_post_srq_recv(end->srq, &wr, NULL) : ib_post_recv(end->qp, &wr, NULL);
	ktest_expect_eq(end->pair, ret, 0);
}

/**
 * ktest_post_both() - post Sends from each end to the other, and receives for them
 * @p: the pair
 * @count: number of Sends per end, at most %KTEST_DEPTH
 * @source: offset of the data to send in each end's memory
 * @sink: offset of the received data in each end's memory
 * @len: length of each message in bytes
 *
 * Uses sends and recvs of both ends, and does not wait for completions.
 *
 * Context: any.
 */
void ktest_post_both(struct ktest_pair *p, u32 count, u32 source, u32 sink, u32 len)
{
	struct ib_send_wr wr = { .opcode = IB_WR_SEND, .num_sge = 1 };
	struct ib_sge sge;
	u32 i, e;

	for (i = 0; i < count; i++)
		for (e = 0; e < 2; e++)
			ktest_post_recv(&p->end[e], &p->end[e].recvs[i], sink, len);
	for (i = 0; i < count; i++) {
		for (e = 0; e < 2; e++) {
			sge = ktest_sge(&p->end[e], source, len);
			wr.sg_list = &sge;
			ktest_post(&p->end[e], &p->end[e].sends[i], &wr);
		}
	}
}

/* With IB_POLL_DIRECT nothing else polls, so this polls the CQs of both ends */
static bool wait_direct(struct ktest_wr *w)
{
	unsigned long end = jiffies + KTEST_PATIENCE * HZ;
	int i;

	while (!completion_done(&w->done)) {
		for (i = 0; i < 2; i++)
			ib_process_cq_direct(w->end->pair->end[i].cq, -1);
		if (time_after(jiffies, end))
			return false;
		cond_resched();
	}
	return true;
}

/**
 * ktest_wait_any() - wait for a completion with any status
 * @w: the work request
 *
 * Context: process, may sleep.
 */
void ktest_wait_any(struct ktest_wr *w)
{
	struct ktest_pair *p = w->end->pair;
	bool is_done;

	if (READ_ONCE(p->has_failed))
		return;
	if (p->opts->poll == IB_POLL_DIRECT)
		is_done = wait_direct(w);
	else
		is_done = wait_for_completion_timeout(&w->done, KTEST_PATIENCE * HZ);
	if (!is_done)
		ktest_fail(p, __func__, __LINE__, "completion", 0);
}

/**
 * ktest_wait() - wait for a completion and check its status
 * @w: the work request
 * @status: expected status
 *
 * Context: process, may sleep.
 */
void ktest_wait(struct ktest_wr *w, enum ib_wc_status status)
{
	struct ktest_pair *p = w->end->pair;

	ktest_wait_any(w);
	if (!READ_ONCE(p->has_failed) && w->wc.status != status)
		ktest_fail(p, __func__, __LINE__, ib_wc_status_msg(status), w->wc.status);
}

/**
 * ktest_register() - post a work request that registers a mapped region
 * @end: the end to post to
 * @mr: the region, from ib_alloc_mr(); registered with its current key
 * @w: initialised by this function
 * @access: enum ib_access_flags
 *
 * Context: any.
 */
void ktest_register(struct ktest_end *end, struct ib_mr *mr, struct ktest_wr *w, int access)
{
	struct ib_reg_wr reg = {
		.wr = { .opcode = IB_WR_REG_MR },
		.mr = mr,
		.key = mr->rkey,
		.access = access,
	};

	ktest_post(end, w, &reg.wr);
}

/**
 * ktest_expose() - let the peer access all memory of an end through @end->mr
 * @end: the end
 * @access: enum ib_access_flags
 *
 * Context: process, may sleep.
 */
void ktest_expose(struct ktest_end *end, int access)
{
	struct scatterlist sg;
	struct ib_mr *mr;

	mr = ib_alloc_mr(end->pd, IB_MR_TYPE_MEM_REG, KTEST_MEM / PAGE_SIZE);
	if (IS_ERR(mr)) {
		ktest_fail(end->pair, __func__, __LINE__, "ib_alloc_mr", PTR_ERR(mr));
		return;
	}
	end->mr = mr;
	sg_init_one(&sg, end->mem, KTEST_MEM);
	ktest_expect_eq(end->pair, ib_dma_map_sg(end->qp->device, &sg, 1, DMA_BIDIRECTIONAL), 1);
	ktest_expect_eq(end->pair, ib_map_mr_sg(mr, &sg, 1, NULL, PAGE_SIZE), 1);
	ktest_register(end, mr, &end->reg, access);
	ktest_wait(&end->reg, IB_WC_SUCCESS);
}
