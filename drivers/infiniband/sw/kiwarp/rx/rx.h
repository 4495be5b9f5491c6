/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * The receive engine of a QP. Complete FPDUs are verified in the socket's receive queue, then
 * placed, then delivered.
 *
 * Owns: &struct kiw_rx. Runs under the socket lock with BHs off. No part of an FPDU but its length
 * has any effect before the FPDU has been verified.
 */
#ifndef KIW_RX_H
#define KIW_RX_H

#include "mem/mr.h"
#include "mem/sgl.h"
#include "proto/mpa.h"
#include "proto/rdmap.h"
#include "queue/wr.h"

struct kiw_qp;
struct kiw_sock_ops;

/**
 * struct kiw_rx - receive engine
 * @queue: position in each untagged queue
 * @recv: receive work request of the Send or Immediate Data in progress, if @has_recv
 * @sgl: sink of the Send, Read Response or Atomic Response in progress, and the position in it
 * @written: bytes placed by the last Write, if no receive has completed since
 * @first_seq: TCP sequence number of the first byte of full operation, if @has_first_seq
 * @has_recv: @recv is valid
 * @in_message: the last segment of a message has not arrived yet
 * @opcode: opcode of the message in progress, if @in_message
 * @recv_status: &enum kiw_wcs of @recv, if a fault fails it: see rx_fault()
 * @is_running: kiw_qp_start() has started the engine, and it was not stopped since
 * @has_first_seq: the engine has run
 * @has_spoken: a valid FPDU has arrived
 * @has_ended: nothing more will arrive
 * @section: MR table section during a run
 */
struct kiw_rx {
	struct kiw_untagged_rx queue[KIW_QN_COUNT];
	struct kiw_rwqe recv;
	struct kiw_sgl sgl;
	u32 written;
	u32 first_seq;
	bool has_recv;
	bool in_message;
	u8 opcode;
	u8 recv_status;
	bool is_running;
	bool has_first_seq;
	bool has_spoken;
	bool has_ended;
	struct kiw_mr_section section;
};

extern const struct kiw_sock_ops kiw_qp_sock_ops;

/* Socket lock held, BHs off; kiw_rx_flush() also without a socket */
void kiw_rx_run(struct kiw_qp *qp);
bool kiw_rx_flush(struct kiw_qp *qp, u32 left);

/* Before the stream is handed over, process context */
void kiw_rx_init(struct kiw_qp *qp);

#endif /* KIW_RX_H */
