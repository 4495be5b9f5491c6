// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * RDMAP's use of DDP as a table (RFC 5040 4.1 figure 4, 4.2 figure 5, RFC 7306 4.1
 * figure 2, 4.2 figure 3), the RDMA Read Request header, and the order of messages
 * on an untagged queue.
 */
#include "rdmap.h"

#include <linux/unaligned.h>
#include <asm/byteorder.h>

const struct kiw_rdmap_row kiw_rdmap_rows[KIW_RDMAP_ROWS] = {
	[KIW_RDMAP_WRITE]	= { .tagged = true },
	[KIW_RDMAP_READ_REQ]	= { .qn = KIW_QN_READ_REQ,
				    .hdr_len = sizeof(struct kiw_wire_read_req) },
	[KIW_RDMAP_READ_RESP]	= { .tagged = true },
	[KIW_RDMAP_SEND]	= { .qn = KIW_QN_SEND, .send = true },
	[KIW_RDMAP_SEND_INV]	= { .qn = KIW_QN_SEND, .send = true, .invalidate = true },
	[KIW_RDMAP_SEND_SE]	= { .qn = KIW_QN_SEND, .send = true, .solicited = true },
	[KIW_RDMAP_SEND_SE_INV]	= { .qn = KIW_QN_SEND, .send = true, .solicited = true,
				    .invalidate = true },
	[KIW_RDMAP_TERMINATE]	= { .qn = KIW_QN_TERMINATE,
				    .hdr_len = sizeof(struct kiw_wire_term), .more = true },
	[KIW_RDMAP_IMMEDIATE]	= { .qn = KIW_QN_SEND, .hdr_len = KIW_IMMEDIATE_SIZE },
	[KIW_RDMAP_IMMEDIATE_SE] = { .qn = KIW_QN_SEND, .solicited = true,
				    .hdr_len = KIW_IMMEDIATE_SIZE },
	[KIW_RDMAP_ATOMIC_REQ]	= { .qn = KIW_QN_READ_REQ,
				    .hdr_len = sizeof(struct kiw_wire_atomic_req) },
	[KIW_RDMAP_ATOMIC_RESP]	= { .qn = KIW_QN_ATOMIC_RESP,
				    .hdr_len = sizeof(struct kiw_wire_atomic_resp), .more = true },
};

/**
 * kiw_rdmap_check_size() - check the extent of a segment against its opcode
 * @seg: decoded, with an opcode that fits it
 *
 * RFC 5040 4.2: Read Request and Terminate consist of a header, and the shortest MULPDU
 * of RFC 5044 can hold it, so they arrive as one segment: offset 0, last. The buffer of
 * a Read Request is as long as its header; a longer segment is a "message too long" of RFC
 * 5041 7.2. A Terminate may be longer than those we know: the rest is ignored. For a truncated
 * header the RFCs define no code. The messages of RFC 7306 are headers, too, and an Immediate Data
 * has exactly 8 octets (6.3). An Atomic Response may be longer, because the RFC contradicts itself
 * (see &struct kiw_wire_atomic_resp).
 *
 * Context: any.
 * Return: %KIW_PERR_NONE, %KIW_PERR_DDP_MO, %KIW_PERR_DDP_TOO_LONG or
 * %KIW_PERR_RDMAP_OP_UNSPEC.
 */
enum kiw_perr kiw_rdmap_check_size(const struct kiw_ddp_seg *seg)
{
	const struct kiw_rdmap_row *row = &kiw_rdmap_rows[seg->opcode & (KIW_RDMAP_ROWS - 1)];

	if (!row->hdr_len)
		return KIW_PERR_NONE;
	if (seg->mo)
		return KIW_PERR_DDP_MO;
	if (seg->payload_len > row->hdr_len && !row->more)
		return KIW_PERR_DDP_TOO_LONG;
	if (seg->payload_len < row->hdr_len || !seg->last)
		return KIW_PERR_RDMAP_OP_UNSPEC;
	return KIW_PERR_NONE;
}

/**
 * kiw_read_req_encode() - write an RDMA Read Request header
 * @wire: written completely
 * @req: what to ask for
 *
 * RFC 5040 4.4.
 *
 * Context: any.
 */
void kiw_read_req_encode(struct kiw_wire_read_req *wire, const struct kiw_read_req *req)
{
	*wire = (struct kiw_wire_read_req) {
		.sink_stag = cpu_to_be32(req->sink_stag),
		.sink_to = cpu_to_be64(req->sink_to),
		.size = cpu_to_be32(req->size),
		.src_stag = cpu_to_be32(req->src_stag),
		.src_to = cpu_to_be64(req->src_to),
	};
}

/**
 * kiw_read_req_decode() - read an RDMA Read Request header
 * @wire: 28 octets, any alignment
 * @req: set to the decoded header
 *
 * RFC 5040 4.4. Any value is possible; nothing is checked here.
 *
 * Context: any.
 */
void kiw_read_req_decode(const u8 *wire, struct kiw_read_req *req)
{
	req->sink_stag = get_unaligned_be32(wire + offsetof(struct kiw_wire_read_req, sink_stag));
	req->sink_to = get_unaligned_be64(wire + offsetof(struct kiw_wire_read_req, sink_to));
	req->size = get_unaligned_be32(wire + offsetof(struct kiw_wire_read_req, size));
	req->src_stag = get_unaligned_be32(wire + offsetof(struct kiw_wire_read_req, src_stag));
	req->src_to = get_unaligned_be64(wire + offsetof(struct kiw_wire_read_req, src_to));
}

/**
 * kiw_untagged_check() - is a segment the next one of its queue?
 * @q: the queue
 * @seg: an untagged segment for it
 *
 * RFC 5041 4.3, 5.3 and 7.1. TCP keeps order, and a source should send the segments of a message
 * in order. So only the segment that continues the current message or begins the next is accepted.
 *
 * Context: any; caller serialises @q.
 * Return: %KIW_PERR_NONE; %KIW_PERR_DDP_MSN; %KIW_PERR_DDP_MO; or
 * %KIW_PERR_DDP_TOO_LONG if the message exceeds 2^32 - 1 octets.
 */
enum kiw_perr kiw_untagged_check(const struct kiw_untagged_rx *q, const struct kiw_ddp_seg *seg)
{
	if (seg->msn != q->msn)
		return KIW_PERR_DDP_MSN;
	if (seg->mo != q->mo)
		return KIW_PERR_DDP_MO;
	if (seg->mo + seg->payload_len < seg->mo)
		return KIW_PERR_DDP_TOO_LONG;
	return KIW_PERR_NONE;
}

/**
 * kiw_untagged_advance() - account for a segment that was placed
 * @q: the queue
 * @seg: a segment that has passed kiw_untagged_check()
 *
 * RFC 5041 4.3: the MSN wraps from 0xffffffff to 0.
 *
 * Context: any; caller serialises @q.
 */
void kiw_untagged_advance(struct kiw_untagged_rx *q, const struct kiw_ddp_seg *seg)
{
	if (seg->last) {
		q->msn++;
		q->mo = 0;
	} else {
		q->mo += seg->payload_len;
	}
}
