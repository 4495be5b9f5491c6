// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The driver's parts of responses in both user ABIs: their lengths, and where they say that rings
 * are.
 */
#include "abuse.h"

#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/kiwarp-abi.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <rdma/rdma_user_rxe.h>

static struct ring siw_ring(enum kind kind, const void *part, bool is_sq)
{
	const struct kiwarp_uresp_create_srq *srq = part;
	const struct kiwarp_uresp_create_cq *cq = part;
	const struct kiwarp_uresp_create_qp *qp = part;

	if (kind == CQ)
		return (struct ring) { cq->cq_key, cq->num_cqe * sizeof(struct kiwarp_cqe) +
						   sizeof(struct kiwarp_cq_ctrl) };
	if (kind == SRQ)
		return (struct ring) { srq->srq_key, srq->num_rqe * sizeof(struct kiwarp_rqe) };
	if (is_sq)
		return (struct ring) { qp->sq_key, qp->num_sqe * sizeof(struct kiwarp_sqe) };
	return (struct ring) { qp->rq_key, qp->num_rqe * sizeof(struct kiwarp_rqe) };
}

const struct abi siw_abi = {
	.driver_id = RDMA_DRIVER_SIW,
	.bytes = {
		[CONTEXT] = sizeof(struct kiwarp_uresp_alloc_ctx),
		[MR] = sizeof(struct kiwarp_uresp_reg_mr),
		[CQ] = sizeof(struct kiwarp_uresp_create_cq),
		[SRQ] = sizeof(struct kiwarp_uresp_create_srq),
		[QP] = sizeof(struct kiwarp_uresp_create_qp),
	},
	.ring = siw_ring,
};

static struct ring rxe_ring(enum kind kind, const void *part, bool is_sq)
{
	const struct rxe_create_qp_resp *qp = part;
	const struct mminfo *info = part;

	if (kind == QP)
		info = is_sq ? &qp->sq_mi : &qp->rq_mi;
	return (struct ring) { info->offset, info->size };
}

const struct abi rxe_abi = {
	.driver_id = RDMA_DRIVER_RXE,
	.bytes = {
		[CQ] = sizeof(struct rxe_create_cq_resp),
		[SRQ] = sizeof(struct rxe_create_srq_resp),
		[QP] = sizeof(struct rxe_create_qp_resp),
	},
	.ring = rxe_ring,
};
