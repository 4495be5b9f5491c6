/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * The transmit engine of a QP. It turns work requests, and the Responses to the peer's RDMA Reads
 * and Atomic Operations, into FPDUs, collects FPDUs in batches, and hands each batch to TCP,
 * usually in one call.
 *
 * Owns: &struct kiw_tx. Runs under the socket lock with BHs off, in softirq, in the poster's
 * context or, through run/qp_work.c, in process context; never sleeps. Payload is copied into the
 * engine's own pages, and the CRC is computed over the copy. So the CRC matches the bytes that are
 * sent, even if the owner of the payload modifies it meanwhile. Without a CRC, large messages may
 * be sent from the owner's pages (tx_loan.h).
 */
#ifndef KIW_TX_H
#define KIW_TX_H

#include <linux/bvec.h>

#include "mem/mr.h"
#include "proto/rdmap.h"
#include "proto/term.h"
#include "queue/readq.h"
#include "queue/wr.h"
#include "tx_source.h"
#include "txbuf.h"

struct kiw_qp;

/**
 * enum kiw_tx_kind - type of the current message
 * @KIW_TX_NONE: there is no current message
 * @KIW_TX_WR: the work request in &struct kiw_tx.wqe
 * @KIW_TX_RESPONSE: the Response to the oldest inbound RDMA Read
 * @KIW_TX_ATOMIC: the Response to the oldest inbound request, an Atomic Operation
 * @KIW_TX_IMMEDIATE: the Immediate Data of that work request, whose Write has been built or is
 *	empty, and then not sent
 */
enum kiw_tx_kind {
	KIW_TX_NONE,
	KIW_TX_WR,
	KIW_TX_RESPONSE,
	KIW_TX_ATOMIC,
	KIW_TX_IMMEDIATE,
};

/**
 * struct kiw_tx - transmit engine
 * @buf: the batch: FPDUs, until TCP has taken all of them
 * @kind: type of the current message
 * @sent: bytes of the current message's payload that are in @buf or with TCP
 * @offset: bytes of FPDUs that are in @buf or with TCP, including markers, modulo 2^32; decreases
 *	when FPDUs are discarded
 * @source: position in the current message's payload, if @has_source
 * @wqe: the work request that was fetched last, if @has_wqe
 * @pend: work requests that were started and have not completed, in order
 * @loans: list of &struct kiw_loan that were not accounted for yet, oldest first
 * @lent: free-running: loans that were made
 * @returned: free-running: loans that were accounted for
 * @lend_pause: bytes to copy before pages are lent again
 * @orq: outstanding RDMA Reads and Atomic Operations of this end
 * @inq: RDMA Reads and Atomic Operations of the peer
 * @msn: sequence number of the current or next message of each untagged queue
 * @rtr: kind of RTR that is still to be sent, 0: none
 * @has_wqe: @wqe is current, or waits: see tx_wqe_waits()
 * @has_source: @source has been set up for the current message and the batch being built
 * @is_running: kiw_qp_start() has started the engine, and it was not stopped since
 * @has_terminated: the Terminate was built; it is in @buf or with TCP
 * @awaits_first_fpdu: responder: no valid FPDU of the peer has arrived (RFC 5044 7.1.2), so nothing
 *	but a Terminate is sent
 * @is_large: FPDUs may be larger than segments
 * @lends: pages of the current message are lent to TCP, not copied
 * @owes_announcement: no message has been sent yet, and the announcement goes before the first one
 * @announces: likewise, and it is sent even if there is no message to send
 * @prefer_response: Responses have priority over work requests for the next message
 * @term_len: bytes in @term to send as the next FPDU, 0: none
 * @term: Terminate payload
 * @section: MR table section while a batch is being built
 */
struct kiw_tx {
	struct kiw_txbuf buf;
	enum kiw_tx_kind kind;
	u32 sent;
	u32 offset;
	struct kiw_tx_source source;
	struct kiw_swqe wqe;
	struct kiw_pend_ring pend;
	struct list_head loans;
	u32 lent;
	u32 returned;
	u32 lend_pause;
	struct kiw_orq orq;
	struct kiw_inq inq;
	u32 msn[KIW_QN_COUNT];
	u8 rtr;
	bool has_wqe;
	bool has_source;
	bool is_running;
	bool has_terminated;
	bool awaits_first_fpdu;
	bool is_large;
	bool lends;
	bool owes_announcement;
	bool announces;
	bool prefer_response;
	u8 term_len;
	u8 term[KIW_TERM_MAX];
	struct kiw_mr_section section;
};

/* Before the stream is handed over, and after it has gone; process context, may sleep */
int kiw_tx_create(struct kiw_qp *qp);
void kiw_tx_destroy(struct kiw_qp *qp);
int kiw_tx_init(struct kiw_qp *qp);
void kiw_tx_uninit(struct kiw_qp *qp);

/* Socket lock held, BHs off; kiw_tx_complete() and kiw_tx_flush() also without a socket */
void kiw_tx_run(struct kiw_qp *qp);
void kiw_tx_finish(struct kiw_qp *qp);
void kiw_tx_taken(struct kiw_qp *qp);
void kiw_tx_complete(struct kiw_qp *qp);
void kiw_tx_refused(struct kiw_qp *qp, const struct kiw_term *term, enum kiw_wcs status);
bool kiw_tx_flush(struct kiw_qp *qp, u32 left);

#endif /* KIW_TX_H */
