/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * One received FPDU at a time: is it whole, does it hold, and its octets without the
 * markers among them.
 *
 * Owns: nothing. Context: socket lock held, BHs off.
 */
#ifndef KIW_RX_FPDU_H
#define KIW_RX_FPDU_H

#include "proto/mpa.h"
#include "sock.h"

struct kiw_qp;

/* The beginning of an FPDU, and a marker, which can be among it */
#define KIW_RX_HEAD_SIZE	(KIW_FPDU_HDR_MAX + KIW_MARKER_SIZE)

enum kiw_mpa_rx kiw_rx_frame(struct kiw_qp *qp, const struct kiw_rx_cursor *cur, u8 *head,
			     u32 *head_len, struct kiw_fpdu *fpdu);
enum kiw_perr kiw_rx_verify(struct kiw_qp *qp, const struct kiw_rx_cursor *cur,
			    const struct kiw_fpdu *fpdu);
void kiw_rx_skip(struct kiw_qp *qp, struct kiw_rx_cursor *cur, u32 len);
int kiw_rx_walk(struct kiw_qp *qp, struct kiw_rx_cursor *cur, u32 len, kiw_rx_fn fn, void *arg);

#endif /* KIW_RX_FPDU_H */
