/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * RDMAP (RFC 5040, RFC 7306): which DDP model and queue each opcode uses, the RDMA
 * Read Request, and the order of messages on the untagged queues.
 */
#ifndef KIW_PROTO_RDMAP_H
#define KIW_PROTO_RDMAP_H

#include "ddp.h"

/**
 * struct kiw_read_req - RDMA Read Request, RFC 5040 4.4
 * @sink_stag: where the requester wants the data: STag
 * @sink_to: likewise: tagged offset
 * @size: octets to read
 * @src_stag: what to read: STag
 * @src_to: likewise: tagged offset
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
 * @msn: sequence number of the current or next message
 * @mo: octets of it received so far
 */
struct kiw_untagged_rx {
	u32 msn;
	u32 mo;
};

#define KIW_RDMAP_ROWS	16	/* opcodes 12..15 have no message */

/**
 * struct kiw_rdmap_row - one opcode, RFC 5040 4.1 figure 4, RFC 7306 4.1 figure 2
 * @tagged: it is sent in tagged segments
 * @qn: its queue, if untagged
 * @send: it is one of the Sends
 * @solicited: it asks for an event
 * @invalidate: it carries an STag to invalidate
 * @more: data after RDMAP's own header is tolerated
 * @hdr_len: length of RDMAP's own header, which, except with @more, is the whole message; 0: the
 *	payload belongs to the consumer
 */
struct kiw_rdmap_row {
	bool tagged;
	u8 qn;
	bool send;
	bool solicited;
	bool invalidate;
	bool more;
	u8 hdr_len;
};

extern const struct kiw_rdmap_row kiw_rdmap_rows[KIW_RDMAP_ROWS];

enum kiw_perr kiw_rdmap_check_size(const struct kiw_ddp_seg *seg);
void kiw_read_req_encode(struct kiw_wire_read_req *wire, const struct kiw_read_req *req);
void kiw_read_req_decode(const u8 *wire, struct kiw_read_req *req);
enum kiw_perr kiw_untagged_check(const struct kiw_untagged_rx *q, const struct kiw_ddp_seg *seg);
void kiw_untagged_advance(struct kiw_untagged_rx *q, const struct kiw_ddp_seg *seg);

/**
 * kiw_rdmap_opcode_fits() - does an opcode exist and use this buffer model?
 * @opcode: any value
 * @tagged: the segment is tagged
 * @opcodes: how many there are: %KIW_RDMAP_OPCODES_5040 or _7306
 *
 * RFC 5040 4.1 figure 4, RFC 7306 4.1 figure 2.
 *
 * Context: any.
 * Return: true if messages with @opcode are sent in such segments.
 */
static inline bool kiw_rdmap_opcode_fits(u8 opcode, bool tagged, u8 opcodes)
{
	return opcode < opcodes && kiw_rdmap_rows[opcode].tagged == tagged;
}

/**
 * kiw_rdmap_queue() - get the untagged queue of an opcode
 * @opcode: any value
 *
 * RFC 5040 4.1 figure 4, RFC 7306 4.1 figure 2.
 *
 * Context: any.
 * Return: the DDP queue number, or %KIW_QN_COUNT if @opcode uses none.
 */
static inline u32 kiw_rdmap_queue(u8 opcode)
{
	return kiw_rdmap_opcode_fits(opcode, false, KIW_RDMAP_OPCODES_7306) ?
	       kiw_rdmap_rows[opcode].qn : KIW_QN_COUNT;
}

/**
 * kiw_rdmap_is_solicited() - does an opcode ask for an event at the peer?
 * @opcode: any value
 *
 * RFC 5040 5.3, RFC 7306 6.3.
 *
 * Context: any.
 * Return: true for Send with Solicited Event, with or without Invalidate, and for Immediate Data
 * with Solicited Event.
 */
static inline bool kiw_rdmap_is_solicited(u8 opcode)
{
	return opcode < KIW_RDMAP_ROWS && kiw_rdmap_rows[opcode].solicited;
}

/**
 * kiw_rdmap_is_invalidate() - does an opcode carry an STag to invalidate?
 * @opcode: any value
 *
 * RFC 5040 4.1 figure 4.
 *
 * Context: any.
 * Return: true for Send with Invalidate, with or without Solicited Event.
 */
static inline bool kiw_rdmap_is_invalidate(u8 opcode)
{
	return opcode < KIW_RDMAP_ROWS && kiw_rdmap_rows[opcode].invalidate;
}

#endif /* KIW_PROTO_RDMAP_H */
