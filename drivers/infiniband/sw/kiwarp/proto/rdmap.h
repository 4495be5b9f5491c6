/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * RDMAP (RFC 5040): which DDP model and queue each opcode uses, the RDMA Read
 * Request, and the order of messages on the untagged queues.
 */
#ifndef KIW_PROTO_RDMAP_H
#define KIW_PROTO_RDMAP_H

#include "ddp.h"

/**
 * struct kiw_read_req - RDMA Read Request, RFC 5040 4.4
 * @sink_stag: where the peer wants the data
 * @sink_to: likewise
 * @size: octets to read
 * @src_stag: what to read
 * @src_to: likewise
 */
struct kiw_read_req {
	u32 sink_stag;
	u64 sink_to;
	u32 size;
	u32 src_stag;
	u64 src_to;
};

/**
 * struct kiw_untagged_rx - the message being received on one untagged queue
 * @msn: sequence number of the message that is current or next
 * @mo: octets of it received so far
 */
struct kiw_untagged_rx {
	u32 msn;
	u32 mo;
};

bool kiw_rdmap_opcode_fits(u8 opcode, bool tagged);
u32 kiw_rdmap_queue(u8 opcode);
bool kiw_rdmap_is_solicited(u8 opcode);
bool kiw_rdmap_is_invalidate(u8 opcode);
enum kiw_perr kiw_rdmap_check_size(const struct kiw_ddp_seg *seg);
void kiw_read_req_encode(struct kiw_wire_read_req *wire, const struct kiw_read_req *req);
void kiw_read_req_decode(const u8 *wire, struct kiw_read_req *req);
enum kiw_perr kiw_untagged_check(const struct kiw_untagged_rx *q, const struct kiw_ddp_seg *seg);
void kiw_untagged_advance(struct kiw_untagged_rx *q, const struct kiw_ddp_seg *seg);

#endif /* KIW_PROTO_RDMAP_H */
