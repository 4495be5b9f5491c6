// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * What `rdma resource show -dd` tells of an object beyond what the core knows.
 *
 * Owns: nothing. Process context; values are snapshots.
 */
#include <rdma/rdma_netlink.h>
#include <rdma/restrack.h>

#include "qp.h"
#include "verbs.h"

static int put_terminate(struct sk_buff *msg, const struct kiw_qp *qp)
{
	if (!READ_ONCE(qp->has_term))
		return 0;
	if (rdma_nl_put_driver_u32(msg, "terminate_layer", qp->term_layer) ||
	    rdma_nl_put_driver_u32(msg, "terminate_etype", qp->term_etype) ||
	    rdma_nl_put_driver_u32_hex(msg, "terminate_code", qp->term_code))
		return -EMSGSIZE;
	return 0;
}

/**
 * kiw_fill_res_qp_entry() - ib_device_ops.fill_res_qp_entry
 * @msg: the answer being built
 * @ibqp: the QP
 *
 * Its state in our terms, and the Terminate that ended it, sent or received.
 *
 * Context: process; the core keeps the QP.
 * Return: 0, or -EMSGSIZE: no room.
 */
int kiw_fill_res_qp_entry(struct sk_buff *msg, struct ib_qp *ibqp)
{
	const struct kiw_qp *qp = to_kiw_qp(ibqp);
	struct nlattr *table;

	table = nla_nest_start(msg, RDMA_NLDEV_ATTR_DRIVER);
	if (!table)
		return -EMSGSIZE;
	if (rdma_nl_put_driver_string(msg, "kiwarp_state",
				      kiw_qp_state_name(kiw_qp_state(qp))) ||
	    put_terminate(msg, qp)) {
		nla_nest_cancel(msg, table);
		return -EMSGSIZE;
	}
	nla_nest_end(msg, table);
	return 0;
}
