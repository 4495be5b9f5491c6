/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Posting work requests to a QP, and processing what was posted. */
#ifndef KIW_QP_POST_H
#define KIW_QP_POST_H

#include <rdma/ib_verbs.h>

struct kiw_qp;

/* Any context */
void kiw_qp_kick(struct kiw_qp *qp);
int kiw_qp_post_send(struct kiw_qp *qp, const struct ib_send_wr *wr,
		     const struct ib_send_wr **bad_wr);
int kiw_qp_post_recv(struct kiw_qp *qp, const struct ib_recv_wr *wr,
		     const struct ib_recv_wr **bad_wr);

#endif /* KIW_QP_POST_H */
