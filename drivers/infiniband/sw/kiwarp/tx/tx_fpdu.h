/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Appends FPDUs to the batch: header, payload from any source, PAD, CRC. Also removes those FPDUs
 * from the batch that TCP has not begun to take.
 *
 * Owns: nothing. Context: socket lock held, BHs off.
 */
#ifndef KIW_TX_FPDU_H
#define KIW_TX_FPDU_H

#include "proto/wire.h"
#include "tx_source.h"
#include "txbuf.h"

struct kiw_qp;

/**
 * struct kiw_tx_room - room left in the batch
 * @octets: bytes of the stream that the next FPDU may take, including markers; a multiple of
 *	%KIW_FPDU_ALIGN and enough for a ULPDU of %KIW_MULPDU_MIN
 * @all: bytes that all FPDUs together may take; 0: write only one
 */
struct kiw_tx_room {
	u32 octets;
	u32 all;
};

/* For a single short FPDU, regardless of the room in the current segment */
#define KIW_TX_ROOM_SHORT	(&(const struct kiw_tx_room) { .octets = PAGE_SIZE })

/**
 * struct kiw_tx_fpdu - one FPDU to be built, or several of one message
 * @tagged: DDP header, if @is_tagged
 * @untagged: DDP header otherwise
 * @is_tagged: selects the header
 * @is_lent: the payload is in the batch already, at least in part in lent pages
 * @count: maximum number of FPDUs; more than one only if the message continues after them
 * @size: bytes of the stream that each FPDU may take, if there may be more than one
 * @len: payload of the next FPDU, in bytes
 * @done: payload written to the batch, in bytes
 * @at: where to write the next FPDU
 */
struct kiw_tx_fpdu {
	union {
		struct kiw_wire_tagged tagged;
		struct kiw_wire_untagged untagged;
	};
	bool is_tagged;
	bool is_lent;
	u32 count;
	u32 size;
	u32 len;
	u32 done;
	u8 *at;
};

bool kiw_tx_begin_fpdu(struct kiw_qp *qp, struct kiw_tx_fpdu *fpdu, u32 left,
		       const struct kiw_tx_room *room);
bool kiw_tx_end_fpdu(struct kiw_qp *qp, struct kiw_tx_fpdu *fpdu, struct kiw_tx_source *src);
bool kiw_tx_begin_lent(struct kiw_qp *qp, struct kiw_tx_fpdu *fpdu, struct kiw_tx_source *src,
		       u32 left, const struct kiw_tx_room *room);
bool kiw_tx_end_lent(struct kiw_qp *qp, struct kiw_tx_fpdu *fpdu);
bool kiw_tx_add_untagged(struct kiw_qp *qp, u8 opcode, const void *data, u32 len);
void kiw_tx_discard(struct kiw_qp *qp);

#endif /* KIW_TX_FPDU_H */
