/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * The numbers of a device's queue pairs, and lookups by number.
 *
 * Owns: &struct kiw_qp_table.
 */
#ifndef KIW_QP_TABLE_H
#define KIW_QP_TABLE_H

#include <linux/types.h>
#include <linux/xarray.h>

struct iw_cm_id;
struct kiw_cq;
struct kiw_qp;

/**
 * struct kiw_qp_table - all queue pairs of a device
 * @qps: QP number to &struct kiw_qp; entries hold no reference; read under RCU
 * @next: where the search for a free number continues
 */
struct kiw_qp_table {
	struct xarray qps;
	u32 next;
};

/* Process context, may sleep */
void kiw_qp_table_init(struct kiw_qp_table *table);
void kiw_qp_table_uninit(struct kiw_qp_table *table);
int kiw_qp_table_reserve(struct kiw_qp_table *table, struct kiw_qp *qp);
void kiw_qp_table_publish(struct kiw_qp_table *table, struct kiw_qp *qp);
void kiw_qp_table_hide(struct kiw_qp_table *table, struct kiw_qp *qp);
void kiw_qp_table_release(struct kiw_qp_table *table, struct kiw_qp *qp);

/* Process context of the caller, do not sleep */
struct kiw_qp *kiw_qp_table_find_rcu(struct kiw_qp_table *table, u32 qpn);
struct kiw_qp *kiw_qp_table_find(struct kiw_qp_table *table, const struct iw_cm_id *id, u32 qpn);

/* Any context */
bool kiw_qp_table_has(struct kiw_qp_table *table, const struct kiw_qp *qp);
void kiw_qp_table_fail(struct kiw_qp_table *table, const struct kiw_cq *cq);

#endif /* KIW_QP_TABLE_H */
