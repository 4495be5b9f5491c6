/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* The messages of RFC 7306: Immediate Data, Atomic Requests and Responses. */
#ifndef KIW_TX_EXT_H
#define KIW_TX_EXT_H

#include <linux/types.h>

struct kiw_qp;

/* Socket lock held, BHs off, within the engine's MR table section */
bool kiw_tx_add_immediate(struct kiw_qp *qp);
bool kiw_tx_add_atomic_request(struct kiw_qp *qp);
bool kiw_tx_add_atomic_response(struct kiw_qp *qp);

#endif /* KIW_TX_EXT_H */
