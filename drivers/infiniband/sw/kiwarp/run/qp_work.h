/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Queue pairs: connecting, resetting, lifetime. */
#ifndef KIW_QP_WORK_H
#define KIW_QP_WORK_H

#include "proto/qp_fsm.h"

struct kiw_conn_params;
struct kiw_qp;
struct workqueue_struct;

/* Process context, may sleep */
void kiw_qp_init(struct kiw_qp *qp, struct workqueue_struct *wq,
		 struct workqueue_struct *engine_wq);
void kiw_qp_uninit(struct kiw_qp *qp);
void kiw_qp_reset(struct kiw_qp *qp);
int kiw_qp_connect(struct kiw_qp *qp, const struct kiw_conn_params *params);
void kiw_qp_start(struct kiw_qp *qp, const void *conn);
void kiw_qp_abort_conn(struct kiw_qp *qp, const void *conn);
int kiw_qp_handle_event_sync(struct kiw_qp *qp, enum kiw_qp_event event);

#endif /* KIW_QP_WORK_H */
