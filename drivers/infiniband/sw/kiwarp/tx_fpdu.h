/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * One FPDU at a time behind the batch: header, payload from wherever it is, PAD, CRC.
 * And back: what TCP has not begun can be taken out of the batch again.
 *
 * Owns: nothing. Context: socket lock held, BHs off.
 */
#ifndef KIW_TX_FPDU_H
#define KIW_TX_FPDU_H

#include "proto/wire.h"
#include "sgl.h"
#include "txbuf.h"

struct kiw_qp;

/**
 * struct kiw_tx_fpdu - an FPDU to be built
 * @tagged: DDP header, when @is_tagged
 * @untagged: DDP header otherwise
 * @is_tagged: which one
 * @len: octets of payload
 * @fill: writes the payload
 * @arg: handed to it
 */
struct kiw_tx_fpdu {
	union {
		struct kiw_wire_tagged tagged;
		struct kiw_wire_untagged untagged;
	};
	bool is_tagged;
	u32 len;
	kiw_fill_fn fill;
	void *arg;
};

/**
 * struct kiw_tx_source - where payload comes from
 * @qp: whose
 * @sgl: a work request's local memory
 * @stag: an RDMA Read Response's memory
 * @to: likewise; advances
 * @data: inline data, or a header; advances
 * @fault: why it could not be read
 */
struct kiw_tx_source {
	struct kiw_qp *qp;
	struct kiw_sgl sgl;
	u32 stag;
	u64 to;
	const u8 *data;
	enum kiw_mem_fault fault;
};

bool kiw_tx_fill_bytes(void *arg, void *dst, u32 len);
bool kiw_tx_fill_sgl(void *arg, void *dst, u32 len);
bool kiw_tx_fill_region(void *arg, void *dst, u32 len);
void kiw_tx_sgl(struct kiw_qp *qp, const struct kiw_sge *sge, u8 num_sge, struct kiw_sgl *sgl);
bool kiw_tx_add_fpdu(struct kiw_qp *qp, struct kiw_tx_fpdu *fpdu);
bool kiw_tx_add_untagged(struct kiw_qp *qp, u8 opcode, const void *data, u32 len);
void kiw_tx_discard(struct kiw_qp *qp);

#endif /* KIW_TX_FPDU_H */
