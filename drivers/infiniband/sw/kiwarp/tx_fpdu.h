/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * FPDUs behind the batch: header, payload from wherever it is, PAD, CRC.
 * And back: what TCP has not begun can be taken out of the batch again.
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
 * struct kiw_tx_room - what the batch may still take
 * @octets: of the stream, that the next FPDU may take, markers counted; a multiple of
 *	%KIW_FPDU_ALIGN and enough for a ULPDU of %KIW_MULPDU_MIN
 * @all: octets that all may take, if the next fills the segment; 0: one is enough
 */
struct kiw_tx_room {
	u32 octets;
	u32 all;
};

/* For what is one short FPDU, whatever the segment that it begins in has left */
#define KIW_TX_ROOM_SHORT	(&(const struct kiw_tx_room) { .octets = PAGE_SIZE })

/**
 * struct kiw_tx_fpdu - an FPDU to be built, or several of one message
 * @tagged: DDP header, when @is_tagged
 * @untagged: DDP header otherwise
 * @is_tagged: which one
 * @count: FPDUs at most; more than one only of a message that goes on behind them
 * @size: octets of the stream that each takes, if there may be more than one
 * @len: octets of payload of the next
 * @done: octets of payload in the batch
 * @at: where the next is written
 */
struct kiw_tx_fpdu {
	union {
		struct kiw_wire_tagged tagged;
		struct kiw_wire_untagged untagged;
	};
	bool is_tagged;
	u32 count;
	u32 size;
	u32 len;
	u32 done;
	u8 *at;
};

bool kiw_tx_begin_fpdu(struct kiw_qp *qp, struct kiw_tx_fpdu *fpdu, u32 left,
		       const struct kiw_tx_room *room);
bool kiw_tx_end_fpdu(struct kiw_qp *qp, struct kiw_tx_fpdu *fpdu, struct kiw_tx_source *src);
bool kiw_tx_add_untagged(struct kiw_qp *qp, u8 opcode, const void *data, u32 len);
void kiw_tx_discard(struct kiw_qp *qp);

#endif /* KIW_TX_FPDU_H */
