// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Objects of a process.
 */
#include "failing.h"

#include <unistd.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/rdma_user_rxe.h>

static int make_ctx(void)
{
	w.ctx = ibv_open_device(w.sides[0].listener->verbs->device);
	return err_of(w.ctx);
}

static int unmake_ctx(void)
{
	return err_or(ibv_close_device(w.ctx));
}

static int make_pd(void)
{
	w.pd = ibv_alloc_pd(w.ctx);
	return err_of(w.pd);
}

static int unmake_pd(void)
{
	return err_or(ibv_dealloc_pd(w.pd));
}

static int make_channel(void)
{
	w.channel = ibv_create_comp_channel(w.ctx);
	return err_of(w.channel);
}

static int unmake_channel(void)
{
	return err_or(ibv_destroy_comp_channel(w.channel));
}

static int make_cq(void)
{
	w.cq = ibv_create_cq(w.ctx, 1000, NULL, w.channel, 0);
	return err_of(w.cq);
}

static int unmake_cq(void)
{
	return err_or(ibv_destroy_cq(w.cq));
}

static int make_srq(void)
{
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = 500, .max_sge = 1 } };

	w.srq = ibv_create_srq(w.pd, &attr);
	return err_of(w.srq);
}

static int unmake_srq(void)
{
	return err_or(ibv_destroy_srq(w.srq));
}

static int make_qp(void)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = w.cq, .recv_cq = w.cq, .qp_type = IBV_QPT_RC,
		.cap = { 500, 500, MAX_SGE, MAX_SGE, MAX_INLINE },
	};

	w.qp = ibv_create_qp(w.pd, &attr);
	return err_of(w.qp);
}

static int unmake_qp(void)
{
	return err_or(ibv_destroy_qp(w.qp));
}

static int make_error(void)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };

	return err_or(ibv_modify_qp(w.qp, &attr, IBV_QP_STATE));
}

static int unmake_error(void)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RESET };

	return err_or(ibv_modify_qp(w.qp, &attr, IBV_QP_STATE));
}

static int make_mr(void)
{
	w.mr = ibv_reg_mr(w.pd, w.mem, SIZE, ALL);
	return err_of(w.mr);
}

static int unmake_mr(void)
{
	return err_or(ibv_dereg_mr(w.mr));
}

static int make_rereg(void)
{
	return rereg(w.mr, IBV_REREG_MR_CHANGE_TRANSLATION, (unsigned long)w.mem + PAGE + 1,
		     SIZE / 2, ALL);
}

static int unmake_rereg(void)
{
	return rereg(w.mr, IBV_REREG_MR_CHANGE_TRANSLATION, (unsigned long)w.mem, SIZE, ALL);
}

static bool is_ext(void)
{
	const char *type = getenv("KIW_LINK_TYPE");

	return type && !strcmp(type, "kiwarp-ext");
}

static int make_dmabuf_mr(void)
{
	return reg_dmabuf(&w.dmabuf_mr, w.pd, is_ext() ? RDMA_DRIVER_RXE : RDMA_DRIVER_SIW,
			  w.dmabuf, 0, SIZE, 0, ALL);
}

static int unmake_dmabuf_mr(void)
{
	return dereg_dmabuf(&w.dmabuf_mr);
}

/*
 * Other sizes of queues. The calls are made without the provider, which maps the new ring, and
 * would use a mapping that has failed.
 */

/* The command of ib_user_verbs.h to resize a completion queue, and the answer of kiwarp-ext */
static int resize_cq_to(__u32 cqe)
{
	struct {
		struct ib_uverbs_resize_cq_resp core;
		struct mminfo ring;
	} answer;
	struct {
		struct ib_uverbs_cmd_hdr hdr;
		struct ib_uverbs_resize_cq core;
	} call = {
		{ IB_USER_VERBS_CMD_RESIZE_CQ, sizeof(call) / 4, sizeof(answer) / 4 },
		{ .response = (unsigned long)&answer, .cq_handle = w.cq->handle, .cqe = cqe },
	};

	if (write(w.ctx->cmd_fd, &call, sizeof(call)) != sizeof(call))
		return errno;
	MUST(answer.core.cqe >= cqe && answer.ring.size >= cqe * sizeof(struct ib_uverbs_wc));
	return 0;
}

static __u32 srq_size(void)
{
	const int left = pause_failing();
	struct ibv_srq_attr attr;

	MUST(!ibv_query_srq(w.srq, &attr));
	inject(left);
	return attr.max_wr;
}

static int resize_srq_to(__u32 max_wr)
{
	const __u32 before = srq_size();
	struct mminfo ring = {};
	struct {
		struct ib_uverbs_cmd_hdr hdr;
		struct ib_uverbs_modify_srq core;
		__u64 where;
	} call = {
		{ IB_USER_VERBS_CMD_MODIFY_SRQ, sizeof(call) / 4, 0 },
		{ .srq_handle = w.srq->handle, .attr_mask = IBV_SRQ_MAX_WR, .max_wr = max_wr },
		(unsigned long)&ring,
	};
	int err = 0;

	if (write(w.ctx->cmd_fd, &call, sizeof(call)) != sizeof(call))
		err = errno;
	MUST(err ? srq_size() == before : srq_size() >= max_wr && ring.size > max_wr);
	return err;
}

static int make_cq_larger(void)
{
	return resize_cq_to(5000);
}

static int unmake_cq_larger(void)
{
	return resize_cq_to(1000);
}

static int make_srq_larger(void)
{
	return resize_srq_to(3000);
}

static int unmake_srq_larger(void)
{
	return resize_srq_to(500);
}

static int make_mw(void)
{
	w.mw = ibv_alloc_mw(w.pd, IBV_MW_TYPE_2);
	return err_of(w.mw);
}

static int unmake_mw(void)
{
	return err_or(ibv_dealloc_mw(w.mw));
}

/**
 * verbs() - all objects of a process; each operation needs the objects of those before it
 *
 * Context: user space.
 */
void verbs(void)
{
	static const struct op ops[] = {
		/* libibverbs tries another way to open the device, and tells how that failed */
		{ OP("user context", ctx), .others = { ENOENT } },
		{ OP("protection domain", pd) },
		{ OP("completion channel", channel) },
		{ OP("completion queue", cq) },
		{ OP("shared receive queue", srq) },
		{ OP("queue pair", qp) },
		{ OP("queue pair to ERROR", error) },
		{ OP("region", mr) },
		{ OP("region anew", rereg) },
		/* udmabuf says EINVAL if it cannot map its pages */
		{ OP("region of a dma-buf", dmabuf_mr), .others = { EINVAL } },
		/* On kiwarp-ext only */
		{ OP("larger completion queue", cq_larger) },
		{ OP("larger shared receive queue", srq_larger) },
		{ OP("memory window", mw), .has_few = true },
	};
	const size_t count = ARRAY_SIZE(ops) - (is_ext() ? 0 : 3);
	size_t i;

	w.dmabuf = dmabuf_of(SIZE, NULL);
	for (i = 0; i < count; i++) {
		walk(&ops[i]);
		MUST(!ops[i].make());
	}
	while (i--)
		MUST(!ops[i].unmake());
}
