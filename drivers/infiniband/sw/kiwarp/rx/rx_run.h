/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * One run of the receive engine: what a single call of kiw_rx_run() processes.
 *
 * Owned by rx.c; rx_follow.c advances it. Context: socket lock held, BHs off.
 */
#ifndef KIW_RX_RUN_H
#define KIW_RX_RUN_H

#include "qp/qp.h"
#include "rx_fpdu.h"
#include "sock/sock.h"

/* FPDUs and bytes of payload per run; limits how long one QP holds the CPU */
#define KIW_RX_RUN_FPDUS	64
#define KIW_RX_RUN_OCTETS	(256 * 1024)

/**
 * struct kiw_rx_run - progress of a run
 * @cur: position in the socket's receive queue: the next FPDU or, while an FPDU is processed, the
 *	next byte of it
 * @fpdu: the FPDU being received; between two FPDUs, the previous one
 * @num: valid FPDUs so far
 * @octets: bytes of payload in these FPDUs
 * @want: bytes from @cur on that must arrive before there is something to process
 * @is_short: there is no memory for the request in the FPDU at @cur, which has had no effect
 *
 * Lives on the stack of kiw_rx_run(): @cur is valid only until the socket lock is released or bytes
 * are consumed.
 */
struct kiw_rx_run {
	struct kiw_rx_cursor cur;
	struct kiw_rx_fpdu fpdu;
	u32 num;
	u32 octets;
	u32 want;
	bool is_short;
};

/* May received data be placed? Not before a QP is connected, nor after it has ended. */
static inline bool kiw_rx_may_place(const struct kiw_qp *qp)
{
	return kiw_qp_state_places(kiw_qp_state(qp));
}

/* May the run continue? */
static inline bool kiw_rx_has_budget(const struct kiw_rx_run *run)
{
	return run->num < KIW_RX_RUN_FPDUS && run->octets <= KIW_RX_RUN_OCTETS;
}

#endif /* KIW_RX_RUN_H */
