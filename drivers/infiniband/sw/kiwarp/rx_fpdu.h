/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * One received FPDU at a time: is it whole, does it hold, and its octets without the
 * markers among them.
 *
 * Owns: nothing. Context: socket lock held, BHs off.
 */
#ifndef KIW_RX_FPDU_H
#define KIW_RX_FPDU_H

#include "proto/ddp.h"
#include "proto/mpa.h"
#include "qp.h"
#include "sock.h"

/* FPDUs and octets of payload in one run; then others get their turn */
#define KIW_RX_RUN_FPDUS	64
#define KIW_RX_RUN_OCTETS	(256 * 1024)

/* The beginning of an FPDU, and a marker, which can be among it */
#define KIW_RX_HEAD_SIZE	(KIW_FPDU_HDR_MAX + KIW_MARKER_SIZE)

/**
 * struct kiw_rx_fpdu - the FPDU at the front
 * @cur: where it starts; as it is used, the next octet to be used
 * @extent: how long it is
 * @seg: its header, decoded and checked; before the first, as if that one were @last
 * @head_len: octets in @head, at most %KIW_FPDU_HDR_MAX
 * @head: its beginning without markers: a copy, so that what was checked is what is used
 * @num: FPDUs that were found good so far
 * @octets: payload octets in these
 *
 * One for a whole run, so that nothing has to be made for each FPDU.
 */
struct kiw_rx_fpdu {
	struct kiw_rx_cursor cur;
	struct kiw_fpdu extent;
	struct kiw_ddp_seg seg;
	u32 head_len;
	u8 head[KIW_RX_HEAD_SIZE];
	u32 num;
	u32 octets;
};

enum kiw_mpa_rx kiw_rx_frame(struct kiw_qp *qp, struct kiw_rx_fpdu *in);
bool kiw_rx_crc_holds(struct kiw_qp *qp, const struct kiw_rx_fpdu *in);
bool kiw_rx_scattered_agree(struct kiw_qp *qp, const struct kiw_rx_fpdu *in);
void kiw_rx_skip_marked(struct kiw_qp *qp, struct kiw_rx_cursor *cur, u32 len);
u32 kiw_rx_frame_alike(struct kiw_qp *qp, struct kiw_rx_fpdu *in);

/* rx_follow.c */
void kiw_rx_follow(struct kiw_qp *qp, struct kiw_rx_fpdu *in);

/* Nothing is placed before a QP is connected, nor after its end. */
static inline bool kiw_rx_may_place(const struct kiw_qp *qp)
{
	return kiw_qp_state_places(kiw_qp_state(qp));
}

/* May the run go on? */
static inline bool kiw_rx_has_budget(const struct kiw_rx_fpdu *in)
{
	return in->num < KIW_RX_RUN_FPDUS && in->octets <= KIW_RX_RUN_OCTETS;
}

/* Where @cur is in the peer's half of the stream; 2^32 is a multiple of the interval. */
static inline u32 kiw_rx_offset(const struct kiw_qp *qp, const struct kiw_rx_cursor *cur)
{
	return cur->seq - qp->rx.first_seq;
}

/**
 * kiw_rx_markers_agree() - do the markers of an FPDU point to where it starts?
 * @qp: the QP
 * @in: the FPDU; it is there as a whole
 *
 * RFC 5044 8, code 3: every marker points to where the lengths say that this FPDU starts.
 *
 * Context: socket lock held, BHs off.
 * Return: whether all do.
 */
static inline bool kiw_rx_markers_agree(struct kiw_qp *qp, const struct kiw_rx_fpdu *in)
{
	kiw_sock_assert_held(qp->ks);
	if (in->cur.here < in->extent.total)
		return kiw_rx_scattered_agree(qp, in);
	return kiw_mpa_markers_agree(in->cur.data, in->extent.total,
				     kiw_rx_offset(qp, &in->cur));
}

/**
 * kiw_rx_verify() - may a word of an FPDU be believed?
 * @qp: the QP
 * @in: the FPDU; it is there as a whole
 *
 * RFC 5044 4.4, 6 and 8: the CRC, and if it holds the markers.
 *
 * Context: socket lock held, BHs off.
 * Return: %KIW_PERR_NONE, %KIW_PERR_MPA_CRC or %KIW_PERR_MPA_FRAMING.
 */
static inline enum kiw_perr kiw_rx_verify(struct kiw_qp *qp, const struct kiw_rx_fpdu *in)
{
	kiw_sock_assert_held(qp->ks);
	if (qp->conn.crc && !kiw_rx_crc_holds(qp, in))
		return KIW_PERR_MPA_CRC;
	if (qp->conn.rx_markers && !kiw_rx_markers_agree(qp, in))
		return KIW_PERR_MPA_FRAMING;
	return KIW_PERR_NONE;
}

/**
 * kiw_rx_goes_on() - is it the next segment of the message, just as long as the one before?
 * @qp: the QP
 * @in: @in->cur is at an FPDU boundary; the rest is still of the FPDU before
 *
 * Most are, and then neither framing nor decoding can find what they did not find in that one,
 * see kiw_ddp_goes_on(). Whether what is to be believed holds is still for kiw_rx_verify().
 *
 * Context: socket lock held, BHs off.
 * Return: true: it is there as a whole, and @in is of it; false: kiw_rx_frame() knows.
 */
static inline bool kiw_rx_goes_on(struct kiw_qp *qp, struct kiw_rx_fpdu *in)
{
	u32 plain = in->cur.here;

	kiw_sock_assert_held(qp->ks);
	if (in->seg.last)
		return false;
	if (qp->conn.rx_markers)
		plain = min(plain, kiw_rx_frame_alike(qp, in));
	if (plain < sizeof(struct kiw_wire_untagged) || in->cur.avail < in->extent.total)
		return false;
	return kiw_ddp_goes_on(in->cur.data, in->head, &in->seg);
}

/**
 * kiw_rx_skip() - go past octets of an FPDU
 * @qp: the QP
 * @cur: inside of an FPDU or at its start; advanced
 * @len: octets, markers not counted
 *
 * Context: socket lock held, BHs off.
 */
static inline void kiw_rx_skip(struct kiw_qp *qp, struct kiw_rx_cursor *cur, u32 len)
{
	kiw_sock_assert_held(qp->ks);
	if (qp->conn.rx_markers && len > kiw_mpa_to_marker(kiw_rx_offset(qp, cur)))
		kiw_rx_skip_marked(qp, cur, len);
	else
		kiw_sock_rx_skip(qp->ks, cur, len);
}

/**
 * kiw_rx_pass_marker() - go past the marker that may stand here
 * @qp: the QP
 * @cur: inside of an FPDU; advanced if it is at a marker
 *
 * Context: socket lock held, BHs off.
 * Return: octets from there to the next marker, at least 1.
 */
static inline u32 kiw_rx_pass_marker(struct kiw_qp *qp, struct kiw_rx_cursor *cur)
{
	u32 gap = kiw_mpa_to_marker(kiw_rx_offset(qp, cur));

	kiw_sock_assert_held(qp->ks);
	if (gap)
		return gap;
	kiw_sock_rx_skip(qp->ks, cur, KIW_MARKER_SIZE);
	return KIW_MARKER_INTERVAL - KIW_MARKER_SIZE;
}

/**
 * kiw_rx_take() - the next octets of an FPDU, where they lie
 * @qp: the QP
 * @cur: inside of an FPDU; advanced by what is returned, and by a marker before it
 * @len: octets wanted, markers not counted, at least 1
 * @num: set to how many of them lie in one place, at least 1
 *
 * Context: socket lock held, BHs off.
 * Return: As kiw_sock_rx_take().
 */
static inline const u8 *kiw_rx_take(struct kiw_qp *qp, struct kiw_rx_cursor *cur, u32 len,
				    u32 *num)
{
	kiw_sock_assert_held(qp->ks);
	if (qp->conn.rx_markers)
		len = min(len, kiw_rx_pass_marker(qp, cur));
	return kiw_sock_rx_take(qp->ks, cur, len, num);
}

#endif /* KIW_RX_FPDU_H */
