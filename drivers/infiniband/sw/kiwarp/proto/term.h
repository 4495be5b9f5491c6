/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* The Terminate message, RFC 5040 4.8: encode from a fault, decode to a fault. */
#ifndef KIW_PROTO_TERM_H
#define KIW_PROTO_TERM_H

#include "perr.h"
#include "wire.h"

/**
 * struct kiw_term - a received Terminate, decoded
 * @layer: the layer that reports the fault: %KIW_LAYER_RDMAP, %KIW_LAYER_DDP, %KIW_LAYER_LLP, or an
 *	unknown one
 * @etype: error type
 * @code: error code
 * @perr: the fault that @layer, @etype and @code stand for, or the generic fault of the
 *	layer, or of RDMAP if the layer is unknown
 * @has_ddp: the Terminate carries the DDP header of the segment at fault
 * @is_read: that segment was our RDMA Read Request
 * @is_untagged: @qn and @msn are valid
 * @qn: the segment's queue
 * @msn: the message's number in that queue
 * @ddp: with @has_ddp: its DDP header; large enough for an untagged one
 * @ddp_len: octets of @ddp
 */
struct kiw_term {
	u8 layer;
	u8 etype;
	u8 code;
	enum kiw_perr perr;
	bool has_ddp;
	bool is_read;
	bool is_untagged;
	u32 qn;
	u32 msn;
	u8 ddp[KIW_DDP_UNTAGGED_HDR];
	u8 ddp_len;
};

struct kiw_read_req;

size_t kiw_term_read_head(u8 *head, const u8 *ddp, const struct kiw_read_req *req, u32 sent);
size_t kiw_term_atomic_head(u8 *head, const u8 *ddp);
u8 kiw_term_opcode(const u8 *fpdu_head, size_t head_len);
size_t kiw_term_encode(u8 *buf, enum kiw_perr perr, const u8 *fpdu_head, size_t head_len);
bool kiw_term_decode(const u8 *payload, size_t len, struct kiw_term *term);

#endif /* KIW_PROTO_TERM_H */
