/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * The transmit engine of a QP: work requests and RDMA Read Responses become
 * FPDUs, FPDUs become batches, batches go to TCP in one call each.
 *
 * Owns: &struct kiw_tx. Runs under the socket lock with BHs off, in softirq, in
 * the poster's context or in the QP's work; never sleeps. Payload is copied and
 * checksummed in one pass into pages of our own, so what was checksummed is what
 * is sent, however often its owner rewrites it.
 */
#ifndef KIW_TX_H
#define KIW_TX_H

#include <linux/bvec.h>

#include "mr.h"
#include "proto/rdmap.h"
#include "proto/term.h"
#include "readq.h"
#include "tx_source.h"
#include "txbuf.h"
#include "wr.h"

struct kiw_qp;

/**
 * enum kiw_tx_kind - what the current message is
 * @KIW_TX_NONE: there is none
 * @KIW_TX_WR: the send queue's oldest work request, in &struct kiw_tx.wqe
 * @KIW_TX_RESPONSE: the oldest inbound RDMA Read
 */
enum kiw_tx_kind {
	KIW_TX_NONE,
	KIW_TX_WR,
	KIW_TX_RESPONSE,
};

/**
 * struct kiw_tx - transmit engine
 * @buf: the batch: FPDUs that TCP has not taken yet
 * @kind: current message
 * @sent: octets of its payload that are in @buf or with TCP
 * @offset: octets of FPDUs that are in @buf or with TCP, markers counted, modulo 2^32;
 *	goes back when FPDUs are discarded
 * @source: position in the current message's payload, while @has_source
 * @wqe: the work request that was fetched last, while @has_wqe
 * @pend: work requests begun and not completed, in order
 * @orq: our outstanding RDMA Reads
 * @irq: the peer's RDMA Reads
 * @msn: next message sequence number of each untagged queue
 * @rtr: kind of RTR to send before anything else, 0: none
 * @has_wqe: @wqe is current, or waits for a fence or for ORD
 * @has_source: the batch that is being built has FPDUs of the current message
 * @is_running: the stream is in full operation
 * @is_fenced: responder: nothing may be sent before the peer has spoken, RFC 5044 7.1.2
 * @prefer_response: whose turn it is between the two sources
 * @term_len: octets in @term to send as the next FPDU, 0: none
 * @term: Terminate payload
 * @section: of the MR table, while a batch is being built
 */
struct kiw_tx {
	struct kiw_txbuf buf;
	enum kiw_tx_kind kind;
	u32 sent;
	u32 offset;
	struct kiw_tx_source source;
	struct kiw_swqe wqe;
	struct kiw_pend_ring pend;
	struct kiw_orq orq;
	struct kiw_irq irq;
	u32 msn[KIW_QN_COUNT];
	u8 rtr;
	bool has_wqe;
	bool has_source;
	bool is_running;
	bool is_fenced;
	bool prefer_response;
	u8 term_len;
	u8 term[KIW_TERM_MAX];
	struct kiw_mr_section section;
};

/* Before the stream is handed over, and after it is gone; process context, may sleep */
int kiw_tx_init(struct kiw_qp *qp);
void kiw_tx_uninit(struct kiw_qp *qp);

/* Socket lock held, BHs off */
void kiw_tx_run(struct kiw_qp *qp);
void kiw_tx_taken(struct kiw_qp *qp);
void kiw_tx_complete(struct kiw_qp *qp);
void kiw_tx_refused(struct kiw_qp *qp, const struct kiw_term *term, enum kiw_wcs status);
bool kiw_tx_flush(struct kiw_qp *qp);

#endif /* KIW_TX_H */
