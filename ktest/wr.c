// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Posting and waiting.
 *
 * Owns: &struct ktest_wr. Contexts: completions come in whatever the case's CQ is polled
 * in, all else is process context unless said otherwise. No locks.
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
 * ktest_wr_init() - make ready for a work request
 * @end: where it is going to be posted
 * @w: whose @cqe it gets
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
 * ktest_spare() - a work request that need not outlive its wait
 * @end: where it is going to be posted
 *
 * A case that has failed does not wait, so none may be on a stack.
 *
 * Context: any.
 * Return: one that comes round again after %KTEST_SPARE others.
 */
struct ktest_wr *ktest_spare(struct ktest_end *end)
{
	return &end->spare[end->next_spare++ % KTEST_SPARE];
}

/**
 * ktest_post() - post a work request that has to be taken
 * @end: there
 * @w: initialised here
 * @wr: its @wr_cqe is set here, and that it is signaled
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
 * ktest_post_recv() - post a receive that has to be taken
 * @end: there, to the shared queue if it has one
 * @w: initialised here
 * @offset: into @end's memory
 * @len: octets
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
 * ktest_post_both() - post Sends of each end to the other, and receives for them
 * @p: the ends
 * @count: of each, at most %KTEST_DEPTH
 * @source: offset of what is sent into each end's memory
 * @sink: offset of what is received
 * @len: octets of each
 *
 * Context: any. Nobody waits: they are @sends and @recvs of both ends.
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

/* Where nobody else polls, both queues are polled here: the peer's work is part of ours */
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
 * ktest_wait_any() - wait for a completion, whatever it says
 * @w: of that
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
 * ktest_wait() - wait for a completion
 * @w: of that
 * @status: it has to have
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
 * ktest_register() - post the registration of memory that was mapped for a region
 * @end: there
 * @mr: with its current key; from ib_alloc_mr()
 * @w: initialised here
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
 * ktest_expose() - let the peer name all memory of an end by @end->mr
 * @end: whose
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
