/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Fast path for the segments in the middle of a message.
 *
 * Owns: nothing. Context: socket lock held, BHs off.
 */
#ifndef KIW_RX_FOLLOW_H
#define KIW_RX_FOLLOW_H

struct kiw_qp;
struct kiw_rx_run;

void kiw_rx_follow(struct kiw_qp *qp, struct kiw_rx_run *run);

#endif /* KIW_RX_FOLLOW_H */
