/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * The provider side of iw_cm: endpoints, MPA startup, upcalls.
 *
 * Owns: endpoints (&struct kiw_ep). proto/cm_fsm.c documents their states and the rules of iw_cm
 * that they obey.
 */
#ifndef KIW_CM_H
#define KIW_CM_H

#include <linux/types.h>

struct iw_cm_conn_param;
struct iw_cm_id;
struct kiw_device;
struct kiw_qp;

/* iw_cm callbacks: process context, may sleep */
int kiw_cm_connect(struct iw_cm_id *id, struct iw_cm_conn_param *param);
int kiw_cm_accept(struct iw_cm_id *id, struct iw_cm_conn_param *param);
int kiw_cm_reject(struct iw_cm_id *id, const void *pdata, u8 pd_len);
int kiw_cm_create_listen(struct iw_cm_id *id, int backlog);
int kiw_cm_destroy_listen(struct iw_cm_id *id);

/* Process context, may sleep; before kiw_qp_uninit() */
void kiw_cm_forget_qp(struct kiw_device *dev, struct kiw_qp *qp);

/* Process context, may sleep; when the device is not registered, before its streams are freed */
void kiw_cm_drain(struct kiw_device *dev);

#endif /* KIW_CM_H */
