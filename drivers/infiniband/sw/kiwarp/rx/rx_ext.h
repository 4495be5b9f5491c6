/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Receiving Atomic Requests and Responses, RFC 7306. */
#ifndef KIW_RX_EXT_H
#define KIW_RX_EXT_H

#include "proto/ddp.h"
#include "proto/rdmap_ext.h"
#include "queue/readq.h"

struct kiw_qp;

/* Socket lock held, BHs off, within the MR table section of the run */
enum kiw_perr kiw_rx_atomic_request(struct kiw_qp *qp, const struct kiw_ddp_seg *seg,
				    const u8 *ddp, const u8 *wire);
enum kiw_perr kiw_rx_match_atomic(struct kiw_qp *qp, const struct kiw_read *read,
				  const struct kiw_ddp_seg *seg,
				  const struct kiw_atomic_resp *resp);

#endif /* KIW_RX_EXT_H */
