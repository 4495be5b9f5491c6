// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The Terminate message, RFC 5040 4.8:
 *
 *	octet 0		layer << 4 | error type
 *	octet 1		error code
 *	octet 2		M, D, R in the top bits
 *	octet 3		0
 *	2 octets	ULPDU_Length of the segment at fault (with M or D)
 *	14 or 18	its DDP header (D)
 *	28		its RDMA Read Request header (R)
 */
#include "term.h"

#include <linux/bitfield.h>
#include <linux/string.h>
#include <linux/unaligned.h>

#include "rdmap.h"

#define CONTROL_LEN		sizeof(struct kiw_wire_term)
#define READ_REQ_LEN		sizeof(struct kiw_wire_read_req)

/* Offset of a field in the DDP header, which begins after ULPDU_Length */
#define UNTAGGED_AT(field)	(offsetof(struct kiw_wire_untagged, field) - KIW_FPDU_LEN_SIZE)

/* Length of the DDP header that begins with @control, RFC 5041 4.2 and 4.3 */
static u8 term_ddp_hdr_len(u8 control)
{
	return control & KIW_DDP_TAGGED ? KIW_DDP_TAGGED_HDR : KIW_DDP_UNTAGGED_HDR;
}

static bool term_is_read_req(const u8 *ddp)
{
	return !(ddp[0] & KIW_DDP_TAGGED) &&
	       FIELD_GET(KIW_RDMAP_OPCODE_MASK, ddp[1]) == KIW_RDMAP_READ_REQ;
}

/*
 * RFC 5040 figure 10, as far as it depends on the fault: M and D for faults of RDMAP and DDP, R for
 * protection errors of RDMAP. Local catastrophic errors have no headers; DDP's are never sent.
 */
static u8 term_headers_wanted(const struct kiw_perr_info *info)
{
	if (info->layer == KIW_LAYER_LLP || info->etype == KIW_ETYPE_CATASTROPHIC)
		return 0;
	if (info->layer == KIW_LAYER_RDMAP && info->etype == KIW_ETYPE_PROTECTION)
		return KIW_TERM_HDRCT_M | KIW_TERM_HDRCT_D | KIW_TERM_HDRCT_R;
	return KIW_TERM_HDRCT_M | KIW_TERM_HDRCT_D;
}

/* The headers in @wanted that are complete in @head and within the ULPDU; M only with D */
static u8 term_headers_present(u8 wanted, const u8 *head, size_t head_len)
{
	size_t avail, hdr;

	if (!wanted || head_len <= KIW_FPDU_LEN_SIZE)
		return 0;
	avail = head_len - KIW_FPDU_LEN_SIZE;
	if (avail > get_unaligned_be16(head))
		avail = get_unaligned_be16(head);
	head += KIW_FPDU_LEN_SIZE;
	hdr = term_ddp_hdr_len(head[0]);
	if (avail < hdr)
		return 0;
	if (!term_is_read_req(head) || avail < hdr + READ_REQ_LEN)
		wanted &= ~KIW_TERM_HDRCT_R;
	return wanted;
}

/**
 * kiw_term_encode() - write the payload of a Terminate message
 * @buf: room for %KIW_TERM_MAX octets
 * @perr: the fault
 * @fpdu_head: the FPDU at fault from its ULPDU_Length field, any alignment; not
 *	read if @head_len is 0
 * @head_len: octets available in @fpdu_head, 0 if the fault is not in a segment
 *
 * RFC 5040 4.8 with figure 10: the fault determines which headers are included; an
 * incomplete one is left out. For a Read Request that has been answered in part, the
 * caller passes a head with an updated request.
 *
 * Context: any.
 * Return: octets of payload.
 */
size_t kiw_term_encode(u8 *buf, enum kiw_perr perr, const u8 *fpdu_head, size_t head_len)
{
	const struct kiw_perr_info *info = kiw_perr_info(perr);
	u8 hdrct = term_headers_present(term_headers_wanted(info), fpdu_head, head_len);
	size_t copy = 0;

	buf[0] = info->layer << KIW_TERM_LAYER_SHIFT | info->etype;
	buf[1] = info->code;
	buf[2] = hdrct;
	buf[3] = 0;
	if (hdrct & KIW_TERM_HDRCT_D)
		copy = KIW_FPDU_LEN_SIZE + term_ddp_hdr_len(fpdu_head[KIW_FPDU_LEN_SIZE]);
	if (hdrct & KIW_TERM_HDRCT_R)
		copy += READ_REQ_LEN;
	if (copy)
		memcpy(buf + CONTROL_LEN, fpdu_head, copy);
	return CONTROL_LEN + copy;
}

/**
 * kiw_term_read_head() - build the head of a Read Request that cannot be answered to its end
 * @head: room for %KIW_FPDU_HDR_MAX octets; for kiw_term_encode()
 * @ddp: the DDP header of the request as received, %KIW_DDP_UNTAGGED_HDR octets
 * @req: the request
 * @sent: octets of the Response that were sent
 *
 * RFC 5040 4.8: the Terminate carries the peer's request, advanced by what has been answered.
 *
 * Context: any.
 * Return: octets of @head.
 */
size_t kiw_term_read_head(u8 *head, const u8 *ddp, const struct kiw_read_req *req, u32 sent)
{
	struct kiw_read_req rest = *req;
	struct kiw_wire_read_req wire;

	rest.sink_to += sent;
	rest.src_to += sent;
	rest.size -= sent;
	kiw_read_req_encode(&wire, &rest);
	put_unaligned_be16(KIW_DDP_UNTAGGED_HDR + READ_REQ_LEN, head);
	memcpy(head + KIW_FPDU_LEN_SIZE, ddp, KIW_DDP_UNTAGGED_HDR);
	memcpy(head + sizeof(struct kiw_wire_untagged), &wire, READ_REQ_LEN);
	return KIW_FPDU_HDR_MAX;
}

/**
 * kiw_term_atomic_head() - build the head of an Atomic Request that cannot be executed
 * @head: room for an untagged header; for kiw_term_encode()
 * @ddp: the DDP header of the request as received, %KIW_DDP_UNTAGGED_HDR octets
 *
 * RFC 7306 8.1 (2): the Terminate carries the DDP header, but not the header of RDMAP.
 *
 * Context: any.
 * Return: octets of @head.
 */
size_t kiw_term_atomic_head(u8 *head, const u8 *ddp)
{
	put_unaligned_be16(KIW_DDP_UNTAGGED_HDR + sizeof(struct kiw_wire_atomic_req), head);
	memcpy(head + KIW_FPDU_LEN_SIZE, ddp, KIW_DDP_UNTAGGED_HDR);
	return sizeof(struct kiw_wire_untagged);
}

/**
 * kiw_term_opcode() - opcode of the segment at fault
 * @fpdu_head: the FPDU at fault from its ULPDU_Length field; not read if @head_len is 0
 * @head_len: octets available in @fpdu_head
 *
 * Context: any.
 * Return: &enum kiw_rdmap_opcode, unchecked; 0 if it is not available.
 */
u8 kiw_term_opcode(const u8 *fpdu_head, size_t head_len)
{
	const size_t at = offsetof(struct kiw_wire_untagged, rdmap);

	return head_len > at ? FIELD_GET(KIW_RDMAP_OPCODE_MASK, fpdu_head[at]) : 0;
}

static void term_decode_ddp(const u8 *ddp, size_t len, struct kiw_term *term)
{
	if (!len || len < term_ddp_hdr_len(ddp[0]))
		return;
	term->has_ddp = true;
	term->is_read = term_is_read_req(ddp);
	term->ddp_len = term_ddp_hdr_len(ddp[0]);
	memcpy(term->ddp, ddp, term->ddp_len);
	if (ddp[0] & KIW_DDP_TAGGED)
		return;
	term->is_untagged = true;
	term->qn = get_unaligned_be32(ddp + UNTAGGED_AT(qn));
	term->msn = get_unaligned_be32(ddp + UNTAGGED_AT(msn));
}

/**
 * kiw_term_decode() - read the payload of a received Terminate message
 * @payload: the payload
 * @len: length of @payload in octets
 * @term: set to what the message says
 *
 * RFC 5040 4.8. A header that is announced but incomplete counts as absent. Data after the
 * headers is ignored.
 *
 * Context: any.
 * Return: false if not even the Terminate Control is complete.
 */
bool kiw_term_decode(const u8 *payload, size_t len, struct kiw_term *term)
{
	memset(term, 0, sizeof(*term));
	if (len < CONTROL_LEN)
		return false;
	term->layer = payload[0] >> KIW_TERM_LAYER_SHIFT;
	term->etype = payload[0] & KIW_TERM_ETYPE_MASK;
	term->code = payload[1];
	term->perr = kiw_perr_from_wire(term->layer, term->etype, term->code);
	/* With D, the DDP header follows the length field, which is present even without M. */
	if (payload[2] & KIW_TERM_HDRCT_D && len > CONTROL_LEN + KIW_FPDU_LEN_SIZE)
		term_decode_ddp(payload + CONTROL_LEN + KIW_FPDU_LEN_SIZE,
				len - CONTROL_LEN - KIW_FPDU_LEN_SIZE, term);
	return true;
}
