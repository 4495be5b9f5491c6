// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Devices and QPs, by libibverbs.
 */
#include "qps.h"
#include "world.h"

/**
 * open_device() - open a device
 * @name: its name
 *
 * Context: any process.
 * Return: the device, or NULL: there is none of that name.
 */
struct ibv_context *open_device(const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *ctx = NULL;
	int i;

	MUST(list);
	for (i = 0; list[i]; i++)
		if (!strcmp(ibv_get_device_name(list[i]), name))
			ctx = ibv_open_device(list[i]);
	ibv_free_device_list(list);
	return ctx;
}

/**
 * verbs_open() - open a host's device and make what QPs need
 * @side: the host
 *
 * Context: any process.
 * Return: the objects.
 */
struct verbs verbs_open(int side)
{
	struct verbs v = { .ctx = open_device(devices[side]) };

	MUST(v.ctx);
	v.pd = ibv_alloc_pd(v.ctx);
	v.cq = ibv_create_cq(v.ctx, 4096, NULL, NULL, 0);
	MUST(v.pd && v.cq);
	return v;
}

/**
 * qp_create() - create a small QP
 * @pd: protection domain
 * @cq: completion queue of both directions
 *
 * Context: any process.
 * Return: the QP, or NULL and errno.
 */
struct ibv_qp *qp_create(struct ibv_pd *pd, struct ibv_cq *cq)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC,
		.cap = {
			.max_send_wr = 16, .max_recv_wr = 16, .max_send_sge = 1, .max_recv_sge = 1,
			.max_inline_data = 32,
		},
	};
	struct ibv_qp_attr init = { .qp_state = IBV_QPS_INIT };
	struct ibv_qp *qp = ibv_create_qp(pd, &attr);

	/* In RESET, the provider of kiwarp-ext takes no receives. */
	if (qp)
		ibv_modify_qp(qp, &init, IBV_QP_STATE);
	return qp;
}

/**
 * must_have_qp() - create a small QP that nothing may refuse
 * @v: its device
 *
 * Context: any process.
 * Return: the QP.
 */
struct ibv_qp *must_have_qp(const struct verbs *v)
{
	struct ibv_qp *qp = qp_create(v->pd, v->cq);

	MUST(qp);
	return qp;
}

/**
 * state_of() - state of a QP
 * @qp: the QP
 *
 * Context: the process that created it.
 * Return: enum ibv_qp_state.
 */
int state_of(struct ibv_qp *qp)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	MUST(!ibv_query_qp(qp, &attr, IBV_QP_STATE, &init));
	return attr.qp_state;
}
