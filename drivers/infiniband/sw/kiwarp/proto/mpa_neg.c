// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * MPA startup: reads and writes Request and Reply frames, and computes what both ends
 * agree on by exchanging them.
 *
 * Owns the frames and the negotiation of RFC 5044 7.1 and RFC 6581 6 and 9. Pure: called from
 * any context, keeps no state between calls. Every octet of a frame is written, so nothing of
 * an earlier frame in the buffer is sent.
 *
 * CRC: the C of either end is enough (RFC 5044 7.1.1), so an end that wants CRCs needs no
 * way to insist. Markers: the M of each end is about what that end receives, and the other
 * end must comply.
 *
 * Revision 0 is that of the RDMA Consortium. It has no negotiation: markers and CRCs are
 * always used, and DDP and RDMAP have version 0 (RFC 5044 appendix C).
 */
#include "mpa_neg.h"

#include <linux/minmax.h>
#include <linux/string.h>
#include <asm/byteorder.h>

/* The largest depth; the next value means "not negotiated" */
#define DEPTH_MAX	(KIW_MPA_V2_NOT_NEGOTIATED - 1)

#define REV_OFFSET	offsetof(struct kiw_wire_mpa_frame, rev)

static const u8 key_request[] = KIW_MPA_KEY_REQ;
static const u8 key_reply[] = KIW_MPA_KEY_REP;

/* Compare the first @len octets of a key, or all of it if @len is larger */
static enum kiw_mpa_verdict neg_check_key(const u8 *buf, size_t len, bool reply)
{
	const u8 *other = reply ? key_request : key_reply;
	const u8 *own = reply ? key_reply : key_request;

	len = min_t(size_t, len, KIW_MPA_KEY_LEN);
	if (!memcmp(buf, own, len))
		return len < KIW_MPA_KEY_LEN ? KIW_MPA_MORE : KIW_MPA_OK;
	return memcmp(buf, other, len) ? KIW_MPA_BAD_KEY : KIW_MPA_WRONG_ROLE;
}

/*
 * Does this end read frames of that revision? A Request above our revision is malformed, as it is
 * to an implementation that does not know the revision (RFC 6581 10). A Request of revision 0 is
 * always read, because it gets an answer.
 */
static bool neg_is_spoken(u8 rev, bool reply, const struct kiw_mpa_local *local)
{
	if (rev == KIW_MPA_REV_RDMAC)
		return !reply || local->rdmac;
	return rev <= (reply ? KIW_MPA_REV_2 : local->rev);
}

static void neg_decode_flags(const struct kiw_wire_mpa_frame *hdr, bool reply,
			     struct kiw_mpa_frame *frame)
{
	frame->rev = hdr->rev;
	frame->markers = hdr->flags & KIW_MPA_FLAG_M;
	frame->crc = hdr->flags & KIW_MPA_FLAG_C;
	frame->reject = reply && (hdr->flags & KIW_MPA_FLAG_R);
	frame->enhanced = frame->rev >= KIW_MPA_REV_2 && (hdr->flags & KIW_MPA_FLAG_S);
}

static void neg_decode_enhanced(const u8 *buf, struct kiw_mpa_frame *frame)
{
	struct kiw_wire_mpa_v2 v2;
	u16 ird;
	u16 ord;

	memcpy(&v2, buf, sizeof(v2));
	ird = be16_to_cpu(v2.ird);
	ord = be16_to_cpu(v2.ord);
	frame->ird = ird & KIW_MPA_V2_DEPTH_MASK;
	frame->ord = ord & KIW_MPA_V2_DEPTH_MASK;
	frame->p2p = ird & KIW_MPA_V2_A;
	if (!frame->p2p)
		return;
	if (ird & KIW_MPA_V2_B)
		frame->rtr |= KIW_RTR_SEND;
	if (ord & KIW_MPA_V2_C)
		frame->rtr |= KIW_RTR_WRITE;
	if (ord & KIW_MPA_V2_D)
		frame->rtr |= KIW_RTR_READ;
}

static void neg_encode_enhanced(const struct kiw_mpa_frame *frame, u8 *buf)
{
	u16 ird = frame->ird & KIW_MPA_V2_DEPTH_MASK;
	u16 ord = frame->ord & KIW_MPA_V2_DEPTH_MASK;
	u8 rtr = frame->p2p ? frame->rtr : 0;
	struct kiw_wire_mpa_v2 v2;

	if (frame->p2p)
		ird |= KIW_MPA_V2_A;
	if (rtr & KIW_RTR_SEND)
		ird |= KIW_MPA_V2_B;
	if (rtr & KIW_RTR_WRITE)
		ord |= KIW_MPA_V2_C;
	if (rtr & KIW_RTR_READ)
		ord |= KIW_MPA_V2_D;
	v2.ird = cpu_to_be16(ird);
	v2.ord = cpu_to_be16(ord);
	memcpy(buf, &v2, sizeof(v2));
}

/**
 * kiw_mpa_parse() - read a Request or Reply from the start of a stream
 * @buf: the first octets of the stream, of any alignment
 * @len: octets in @buf; more than the frame is not an error
 * @reply: a Reply is expected, else a Request
 * @local: this end; only the revisions it speaks are used
 * @frame: the decoded frame; valid only with %KIW_MPA_OK
 * @need: with %KIW_MPA_OK the length of the frame, which is what the caller consumes; with
 *	%KIW_MPA_MORE as much of that as is known so far
 *
 * RFC 5044 7.1.1, RFC 6581 6 and 9. Key and revision are checked as soon as their octets have
 * arrived, PD_Length as soon as the fixed part of the frame has. Some bits are ignored: R in a
 * Request; S in a frame of revision 0 or 1; B, C and D without A; and reserved bits.
 *
 * Context: Any.
 * Return: %KIW_MPA_MORE: a beginning that may become a frame; %KIW_MPA_OK: a complete frame;
 * otherwise the reason to close the connection without an answer.
 */
enum kiw_mpa_verdict kiw_mpa_parse(const u8 *buf, size_t len, bool reply,
				   const struct kiw_mpa_local *local,
				   struct kiw_mpa_frame *frame, size_t *need)
{
	struct kiw_wire_mpa_frame hdr;
	enum kiw_mpa_verdict verdict;
	size_t enhanced_len;
	u16 pd_length;

	memset(frame, 0, sizeof(*frame));
	*need = sizeof(hdr);
	verdict = neg_check_key(buf, len, reply);
	if (verdict != KIW_MPA_OK)
		return verdict;
	if (len > REV_OFFSET && !neg_is_spoken(buf[REV_OFFSET], reply, local))
		return KIW_MPA_BAD_REV;
	if (len < sizeof(hdr))
		return KIW_MPA_MORE;
	memcpy(&hdr, buf, sizeof(hdr));
	neg_decode_flags(&hdr, reply, frame);
	enhanced_len = frame->enhanced ? sizeof(struct kiw_wire_mpa_v2) : 0;
	pd_length = be16_to_cpu(hdr.pd_length);
	if (pd_length > KIW_MPA_PD_MAX || pd_length < enhanced_len)
		return KIW_MPA_BAD_LENGTH;
	*need = sizeof(hdr) + pd_length;
	if (len < *need)
		return KIW_MPA_MORE;
	if (frame->enhanced)
		neg_decode_enhanced(buf + sizeof(hdr), frame);
	frame->pd_offset = sizeof(hdr) + enhanced_len;
	frame->pd_len = pd_length - enhanced_len;
	return KIW_MPA_OK;
}

/**
 * kiw_mpa_build() - write a Request or Reply
 * @buf: destination, %KIW_MPA_FRAME_MAX octets, of any alignment
 * @frame: contents; its @pd_offset and @pd_len are ignored
 * @reply: write a Reply, else a Request, whose R is 0 regardless of @frame
 * @pdata: the ULP's private data, or NULL if @pd_len is 0
 * @pd_len: its length: at most 512 octets, 508 in an enhanced frame
 *
 * RFC 5044 7.1.1, RFC 6581 6 and 9. Reserved bits are 0, and without A so are B, C and D.
 *
 * Context: Any.
 * Return: Length of the frame in octets, or 0 if the private data is too long.
 */
size_t kiw_mpa_build(u8 *buf, const struct kiw_mpa_frame *frame, bool reply,
		     const void *pdata, u16 pd_len)
{
	size_t enhanced_len = frame->enhanced ? sizeof(struct kiw_wire_mpa_v2) : 0;
	struct kiw_wire_mpa_frame hdr = { .rev = frame->rev };

	if (pd_len > KIW_MPA_PD_MAX - enhanced_len)
		return 0;
	memcpy(hdr.key, reply ? key_reply : key_request, sizeof(hdr.key));
	if (frame->markers)
		hdr.flags |= KIW_MPA_FLAG_M;
	if (frame->crc)
		hdr.flags |= KIW_MPA_FLAG_C;
	if (reply && frame->reject)
		hdr.flags |= KIW_MPA_FLAG_R;
	if (frame->enhanced)
		hdr.flags |= KIW_MPA_FLAG_S;
	hdr.pd_length = cpu_to_be16(enhanced_len + pd_len);
	memcpy(buf, &hdr, sizeof(hdr));
	if (frame->enhanced)
		neg_encode_enhanced(frame, buf + sizeof(hdr));
	if (pd_len)
		memcpy(buf + sizeof(hdr) + enhanced_len, pdata, pd_len);
	return sizeof(hdr) + enhanced_len + pd_len;
}

/* Our own depth: what the ULP wants, limited by the device and by 14 bits */
static u16 neg_own_depth(u16 wanted, u16 max)
{
	return min_t(u16, wanted, min_t(u16, max, DEPTH_MAX));
}

/**
 * kiw_mpa_request() - fill in our Request
 * @local: what this end wants
 * @req: the Request to fill in
 *
 * RFC 6581 9.1, 9.2 and 10. Revision 2 is always enhanced, in order to negotiate IRD and ORD.
 * An ORD of 0 does not keep us from offering an RTR by RDMA Read, unless the device can send none:
 * 9.1 lets the responder raise its IRD for it, and kiw_mpa_conclude() checks whether it did.
 *
 * Context: Any.
 */
void kiw_mpa_request(const struct kiw_mpa_local *local, struct kiw_mpa_frame *req)
{
	u8 rtr = local->rtr;

	memset(req, 0, sizeof(*req));
	req->rev = local->rev;
	req->crc = local->crc;
	req->markers = local->markers;
	if (local->rev < KIW_MPA_REV_2)
		return;
	req->enhanced = true;
	req->ird = neg_own_depth(local->ird, local->max_ird);
	req->ord = neg_own_depth(local->ord, local->max_ord);
	if (!local->max_ord)
		rtr &= ~KIW_RTR_READ;
	req->p2p = local->p2p && rtr;
	if (req->p2p)
		req->rtr = rtr;
}

/* Limit a depth of the peer to what our device can do; use the device's if the peer has none */
static u16 neg_peer_limit(const struct kiw_mpa_frame *req, u16 depth, u16 max)
{
	if (!req->enhanced || depth == KIW_MPA_V2_NOT_NEGOTIATED)
		return neg_own_depth(DEPTH_MAX, max);
	return neg_own_depth(depth, max);
}

/**
 * kiw_mpa_peer_limits() - compute the peer's depths as they are reported to the ULP
 * @req: the Request, or a Reply that rejects
 * @local: this end; only its maxima are used
 * @ird: set to the inbound read depth that serves all Reads the peer wants outstanding, as far as
 *	the device can
 * @ord: set to the outbound read depth that the peer can serve, likewise
 *
 * RFC 6581 9.1: the responder passes the peer's IRD and ORD to the ULP. For this end the peer's ORD
 * is an IRD, and the reverse. A depth of 0x3fff or an unenhanced Request leaves the depth to the
 * ULPs and does not forbid RDMA Reads: then the ULP is told what the device can do.
 *
 * Context: Any.
 */
void kiw_mpa_peer_limits(const struct kiw_mpa_frame *req, const struct kiw_mpa_local *local,
			 u16 *ird, u16 *ord)
{
	*ird = neg_peer_limit(req, req->ord, local->max_ird);
	*ord = neg_peer_limit(req, req->ird, local->max_ord);
}

/* RFC 6581 9.1, the responder's part; on entry @out has our own depths */
static void neg_answer_depths(const struct kiw_mpa_local *local, const struct kiw_mpa_frame *req,
			      struct kiw_mpa_frame *reply, struct kiw_mpa_outcome *out)
{
	if (req->ord == KIW_MPA_V2_NOT_NEGOTIATED) {
		reply->ird = KIW_MPA_V2_NOT_NEGOTIATED;
	} else {
		out->ird = max(out->ird, neg_own_depth(req->ord, local->max_ird));
		reply->ird = out->ird;
	}
	if (req->ird == KIW_MPA_V2_NOT_NEGOTIATED) {
		reply->ord = KIW_MPA_V2_NOT_NEGOTIATED;
	} else {
		out->ord = min(out->ord, req->ird);
		reply->ord = out->ord;
	}
}

/*
 * RFC 6581 9.2, the responder's part: offer every kind of RTR that both ends support and that
 * can be used. Serving an RTR by RDMA Read needs an IRD of at least 1. If depths are negotiated,
 * 9.1 lets us raise it to 1.
 */
static bool neg_answer_p2p(const struct kiw_mpa_local *local, const struct kiw_mpa_frame *req,
			   struct kiw_mpa_frame *reply, struct kiw_mpa_outcome *out)
{
	u8 rtr = req->rtr & local->rtr;

	if ((rtr & KIW_RTR_READ) && !out->ird) {
		if (req->ord != KIW_MPA_V2_NOT_NEGOTIATED && local->max_ird) {
			out->ird = 1;
			reply->ird = 1;
		} else {
			rtr &= ~KIW_RTR_READ;
		}
	}
	reply->p2p = true;
	reply->rtr = rtr;
	out->p2p = true;
	out->rtr = rtr;
	return rtr;
}

/* The part common to all outcomes: RFC 5044 7.1.1, and appendix C for revision 0 */
static void neg_agree_on_framing(u8 rev, const struct kiw_mpa_frame *ours, bool peer_crc,
				 bool peer_markers, struct kiw_mpa_outcome *out)
{
	bool is_rdmac = rev == KIW_MPA_REV_RDMAC;

	out->rev = rev;
	out->version = is_rdmac ? KIW_DDP_VERSION_RDMAC : KIW_DDP_VERSION_IETF;
	out->crc = is_rdmac || ours->crc || peer_crc;
	out->tx_markers = is_rdmac || peer_markers;
	out->rx_markers = is_rdmac || ours->markers;
}

/**
 * kiw_mpa_answer() - fill in a Reply that accepts, and compute the outcome
 * @local: this end, with the depths to accept with
 * @req: the Request
 * @reply: the Reply to fill in
 * @out: what is agreed on, provided the initiator comes to the same conclusion
 *
 * RFC 5044 7.1.1, RFC 6581 9 and 10: an unenhanced Request gets an unenhanced Reply of the same
 * revision, and CRC is used if either end wants it. Our ORD is lowered to the initiator's IRD.
 * Our IRD is raised to the initiator's ORD as far as the device can, and the initiator lowers
 * its ORD to that. 0x3fff does not change a depth, and is answered with 0x3fff.
 *
 * Context: Any.
 * Return: false if there can be no connection: no kind of RTR that both ends support can be used,
 * or @local does not speak the revision. @reply and @out are invalid then, and kiw_mpa_refuse()
 * fills in the Reply to send.
 */
bool kiw_mpa_answer(const struct kiw_mpa_local *local, const struct kiw_mpa_frame *req,
		    struct kiw_mpa_frame *reply, struct kiw_mpa_outcome *out)
{
	memset(reply, 0, sizeof(*reply));
	memset(out, 0, sizeof(*out));
	if (req->rev > local->rev || (req->rev == KIW_MPA_REV_RDMAC && !local->rdmac))
		return false;
	reply->rev = req->rev;
	reply->markers = local->markers || req->rev == KIW_MPA_REV_RDMAC;
	reply->crc = local->crc;
	neg_agree_on_framing(req->rev, reply, req->crc, req->markers, out);
	reply->crc = out->crc;
	out->ird = neg_own_depth(local->ird, local->max_ird);
	out->ord = neg_own_depth(local->ord, local->max_ord);
	if (!req->enhanced)
		return true;
	reply->enhanced = true;
	neg_answer_depths(local, req, reply, out);
	return !req->p2p || neg_answer_p2p(local, req, reply, out);
}

/**
 * kiw_mpa_refuse() - fill in a Reply that rejects
 * @local: this end, with its own depths
 * @req: the Request
 * @reply: the Reply to fill in, with R set
 *
 * RFC 5044 7.1.2, RFC 6581 9.1 and 10. An enhanced Request gets an enhanced rejection: it has
 * this end's own depths, regardless of the initiator's, but 0x3fff in answer to 0x3fff, and, if A
 * is set, all kinds of RTR that this end supports. A Request of a revision that @local does not
 * speak is answered in one that it does (RFC 5044 C.2.1).
 *
 * Context: Any.
 */
void kiw_mpa_refuse(const struct kiw_mpa_local *local, const struct kiw_mpa_frame *req,
		    struct kiw_mpa_frame *reply)
{
	memset(reply, 0, sizeof(*reply));
	reply->rev = min(req->rev, local->rev);
	if (reply->rev == KIW_MPA_REV_RDMAC && !local->rdmac)
		reply->rev = KIW_MPA_REV_1;
	reply->markers = local->markers || reply->rev == KIW_MPA_REV_RDMAC;
	reply->crc = req->crc || local->crc || reply->rev == KIW_MPA_REV_RDMAC;
	reply->reject = true;
	reply->enhanced = req->enhanced && reply->rev >= KIW_MPA_REV_2;
	if (!reply->enhanced)
		return;
	reply->ird = req->ord == KIW_MPA_V2_NOT_NEGOTIATED ? req->ord :
		     neg_own_depth(local->ird, local->max_ird);
	reply->ord = req->ird == KIW_MPA_V2_NOT_NEGOTIATED ? req->ird :
		     neg_own_depth(local->ord, local->max_ord);
	reply->p2p = req->p2p;
	if (reply->p2p)
		reply->rtr = local->rtr;
}

/* RFC 6581 9.1, the initiator's part; on entry @out has our own depths */
static enum kiw_perr neg_conclude_depths(const struct kiw_mpa_local *local,
					 const struct kiw_mpa_frame *reply,
					 struct kiw_mpa_outcome *out)
{
	if (reply->ird != KIW_MPA_V2_NOT_NEGOTIATED)
		out->ord = min(out->ord, reply->ird);
	if (reply->ord == KIW_MPA_V2_NOT_NEGOTIATED)
		return KIW_PERR_NONE;
	if (reply->ord > local->max_ird)
		return KIW_PERR_MPA_IRD;
	out->ird = max(out->ird, reply->ord);
	return KIW_PERR_NONE;
}

/* Can we have one RDMA Read outstanding, if only because the responder raised its IRD for it? */
static bool neg_can_read(const struct kiw_mpa_frame *reply, const struct kiw_mpa_outcome *out)
{
	if (out->ord)
		return true;
	return reply->ird && reply->ird != KIW_MPA_V2_NOT_NEGOTIATED;
}

/* RFC 6581 9.2, the initiator's part: choose the kind we prefer among the common ones. */
static enum kiw_perr neg_conclude_p2p(const struct kiw_mpa_local *local,
				      const struct kiw_mpa_frame *req,
				      const struct kiw_mpa_frame *reply,
				      struct kiw_mpa_outcome *out)
{
	u8 rtr = req->rtr & reply->rtr;
	int i;

	if (reply->p2p != req->p2p)
		return KIW_PERR_MPA_RTR;
	if (!req->p2p)
		return KIW_PERR_NONE;
	if (!neg_can_read(reply, out))
		rtr &= ~KIW_RTR_READ;
	for (i = 0; i < KIW_RTR_KINDS && !out->rtr; i++)
		out->rtr = rtr & local->rtr_order[i];
	if (!out->rtr)
		return KIW_PERR_MPA_RTR;
	out->p2p = true;
	if (out->rtr == KIW_RTR_READ)
		out->ord = max_t(u16, out->ord, 1);
	return KIW_PERR_NONE;
}

/**
 * kiw_mpa_wants_plain() - does this responder need an unenhanced Request?
 * @req: the Request that was sent
 * @reply: the Reply that accepts
 *
 * RFC 5044 C.2.5 with RFC 6581 10: a responder of revision 0 has mistaken the depths of an
 * enhanced Request for private data and passed them to its ULP. Call this only for a revision
 * that this end speaks, that is, after kiw_mpa_parse().
 *
 * Context: Any.
 * Return: whether to try again with revision 1.
 */
bool kiw_mpa_wants_plain(const struct kiw_mpa_frame *req, const struct kiw_mpa_frame *reply)
{
	return req->enhanced && reply->rev == KIW_MPA_REV_RDMAC;
}

/**
 * kiw_mpa_conclude() - compute the outcome of a Reply that accepts, for the initiator
 * @local: this end, as passed to kiw_mpa_request()
 * @req: the Request that was sent
 * @reply: the Reply; R is not set
 * @out: what is agreed on; with a fault only revision, version, CRC and markers are valid, for
 *	sending the Terminate
 *
 * RFC 5044 7.1.1, RFC 6581 9 and 10. Our ORD is lowered to the responder's IRD. Our IRD is
 * raised to the responder's ORD if the device can. 0x3fff does not change a depth. For an RTR
 * by RDMA Read an ORD of 0 becomes 1, if the responder's IRD is neither 0 nor 0x3fff.
 *
 * Context: Any.
 * Return: %KIW_PERR_NONE, or why the connection must be terminated:
 * %KIW_PERR_MPA_IRD: the device cannot serve the responder's ORD,
 * %KIW_PERR_MPA_RTR: there is no common connection model, or no common RTR that can be used,
 * %KIW_PERR_MPA_LOCAL: only one of Request and Reply is enhanced.
 */
enum kiw_perr kiw_mpa_conclude(const struct kiw_mpa_local *local, const struct kiw_mpa_frame *req,
			       const struct kiw_mpa_frame *reply, struct kiw_mpa_outcome *out)
{
	enum kiw_perr perr;

	memset(out, 0, sizeof(*out));
	neg_agree_on_framing(min(req->rev, reply->rev), req, reply->crc, reply->markers, out);
	if (reply->enhanced != req->enhanced)
		return KIW_PERR_MPA_LOCAL;
	out->ird = neg_own_depth(local->ird, local->max_ird);
	out->ord = neg_own_depth(local->ord, local->max_ord);
	if (!req->enhanced)
		return KIW_PERR_NONE;
	perr = neg_conclude_depths(local, reply, out);
	if (perr != KIW_PERR_NONE)
		return perr;
	return neg_conclude_p2p(local, req, reply, out);
}
