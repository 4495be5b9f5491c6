/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Devices and QPs, by libibverbs.
 */
#ifndef KIW_ATTACK_QPS_H
#define KIW_ATTACK_QPS_H

#include "../common.h"

/**
 * struct verbs - a process's objects on a device
 * @ctx: the device
 * @pd: protection domain
 * @cq: completion queue of all QPs
 */
struct verbs {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
};

struct ibv_context *open_device(const char *name);
struct verbs verbs_open(int side);
struct ibv_qp *qp_create(struct ibv_pd *pd, struct ibv_cq *cq);
struct ibv_qp *must_have_qp(const struct verbs *v);
int state_of(struct ibv_qp *qp);

#endif /* KIW_ATTACK_QPS_H */
