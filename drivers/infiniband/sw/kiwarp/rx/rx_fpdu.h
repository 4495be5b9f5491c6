/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Received FPDUs, one at a time: checks whether an FPDU is complete and valid, and gives access to
 * its bytes without the markers.
 *
 * Owns: &struct kiw_rx_fpdu. Context: socket lock held, BHs off.
 */
#ifndef KIW_RX_FPDU_H
#define KIW_RX_FPDU_H

#include <linux/minmax.h>
#include <linux/unaligned.h>

#include "proto/ddp.h"
#include "proto/mpa.h"
#include "qp/qp.h"
#include "sock/sock.h"

/* The beginning of an FPDU, and a marker, which may be inside it */
#define KIW_RX_HEAD_SIZE	(KIW_FPDU_HDR_MAX + KIW_MARKER_SIZE)

/**
 * struct kiw_rx_fpdu - description of an FPDU
 * @extent: length of the FPDU
 * @seg: header of the FPDU, decoded and checked; before the first FPDU of a run, its @last is true
 * @head_len: bytes in @head, at most %KIW_FPDU_HDR_MAX
 * @head: beginning of the FPDU without markers, after kiw_rx_continues() only its header; a copy,
 *	so that the bytes that were checked are the bytes that are used
 *
 * The position of the FPDU is that of the run. A run has one instance for all of its FPDUs, because
 * kiw_rx_continues() compares each with the previous one.
 */
struct kiw_rx_fpdu {
	struct kiw_fpdu extent;
	struct kiw_ddp_seg seg;
	u32 head_len;
	u8 head[KIW_RX_HEAD_SIZE];
};

enum kiw_mpa_rx kiw_rx_frame(struct kiw_qp *qp, const struct kiw_rx_cursor *cur,
			     struct kiw_rx_fpdu *fpdu);
bool kiw_rx_crc_holds(struct kiw_qp *qp, const struct kiw_rx_cursor *cur, u32 total);
bool kiw_rx_scattered_agree(struct kiw_qp *qp, const struct kiw_rx_cursor *cur, u32 total);
void kiw_rx_skip_marked(struct kiw_qp *qp, struct kiw_rx_cursor *cur, u32 len);

/* Offset of @cur in the peer's half of the stream; 2^32 is a multiple of the marker interval. */
static inline u32 kiw_rx_offset(const struct kiw_qp *qp, const struct kiw_rx_cursor *cur)
{
	return cur->seq - qp->rx.first_seq;
}

/**
 * kiw_rx_markers_agree() - do the markers of an FPDU point to its start?
 * @qp: the QP
 * @cur: start of the FPDU
 * @total: length of the FPDU in bytes, including the markers; all of it has arrived
 *
 * Every marker must point to where this FPDU starts according to the lengths; otherwise that is
 * error code 3 of RFC 5044 8.
 *
 * Context: socket lock held, BHs off.
 * Return: true: all markers do.
 */
static inline bool kiw_rx_markers_agree(struct kiw_qp *qp, const struct kiw_rx_cursor *cur,
					u32 total)
{
	kiw_sock_assert_held_bh(qp->ks);
	if (cur->here < total)
		return kiw_rx_scattered_agree(qp, cur, total);
	return kiw_mpa_markers_agree(cur->data, total, kiw_rx_offset(qp, cur));
}

/**
 * kiw_rx_verify() - verify an FPDU before any field but its length has an effect
 * @qp: the QP
 * @cur: start of the FPDU
 * @total: length of the FPDU in bytes, including the markers; all of it has arrived
 *
 * RFC 5044 4.4, 6 and 8: checks the CRC and, if that is correct, the markers.
 *
 * Context: socket lock held, BHs off.
 * Return: %KIW_PERR_NONE, %KIW_PERR_MPA_CRC or %KIW_PERR_MPA_FRAMING.
 */
static inline enum kiw_perr kiw_rx_verify(struct kiw_qp *qp, const struct kiw_rx_cursor *cur,
					  u32 total)
{
	kiw_sock_assert_held_bh(qp->ks);
	if (qp->conn.crc && !kiw_rx_crc_holds(qp, cur, total))
		return KIW_PERR_MPA_CRC;
	if (qp->conn.rx_markers && !kiw_rx_markers_agree(qp, cur, total))
		return KIW_PERR_MPA_FRAMING;
	return KIW_PERR_NONE;
}

/**
 * kiw_rx_frame_alike() - frame an FPDU if it is as long as the previous one, with markers
 * @qp: the QP
 * @cur: start of the FPDU
 * @fpdu: the previous FPDU; if this one is as long, its extent is updated to that of this one
 *
 * FPDUs that fill segments may have different numbers of markers and so different lengths. The
 * length is compared first, because that is cheaper than computing the extent.
 *
 * Context: socket lock held, BHs off.
 * Return: number of contiguous bytes before its first marker; 0: it is not as long, begins with a
 * marker, or the field with its length is not contiguous.
 */
static inline u32 kiw_rx_frame_alike(struct kiw_qp *qp, const struct kiw_rx_cursor *cur,
				     struct kiw_rx_fpdu *fpdu)
{
	u32 offset = kiw_rx_offset(qp, cur);
	u32 plain = min(kiw_mpa_to_marker(offset), cur->here);
	u32 len = fpdu->extent.ulpdu_len;

	kiw_sock_assert_held_bh(qp->ks);
	if (plain < KIW_FPDU_LEN_SIZE || get_unaligned_be16(cur->data) != len)
		return 0;
	fpdu->extent.total = kiw_mpa_marked_size(offset, kiw_mpa_fpdu_size(len));
	return plain;
}

/**
 * kiw_rx_continues() - is this the next segment of the message, of the same length?
 * @qp: the QP
 * @cur: start of the FPDU
 * @fpdu: the previous FPDU; if this one continues it, updated to this one
 *
 * In a long message most segments are. Framing and decoding them would give the same results as for
 * the previous segment, except for the offset (see kiw_ddp_continues()) and the number of markers.
 * kiw_rx_verify() must still verify the FPDU.
 *
 * Context: socket lock held, BHs off.
 * Return: true: the FPDU has arrived completely, and @fpdu describes it; false: call
 * kiw_rx_frame().
 */
static inline bool kiw_rx_continues(struct kiw_qp *qp, const struct kiw_rx_cursor *cur,
				    struct kiw_rx_fpdu *fpdu)
{
	u32 plain = cur->here;

	kiw_sock_assert_held_bh(qp->ks);
	if (fpdu->seg.last)
		return false;
	if (qp->conn.rx_markers)
		plain = kiw_rx_frame_alike(qp, cur, fpdu);
	if (plain < sizeof(struct kiw_wire_untagged) || cur->avail < fpdu->extent.total)
		return false;
	return kiw_ddp_continues(cur->data, fpdu->head, &fpdu->seg);
}

/**
 * kiw_rx_skip() - skip bytes of an FPDU
 * @qp: the QP
 * @cur: inside an FPDU or at its start; advanced
 * @len: bytes, not counting markers
 *
 * Context: socket lock held, BHs off.
 */
static inline void kiw_rx_skip(struct kiw_qp *qp, struct kiw_rx_cursor *cur, u32 len)
{
	kiw_sock_assert_held_bh(qp->ks);
	if (qp->conn.rx_markers && len > kiw_mpa_to_marker(kiw_rx_offset(qp, cur)))
		kiw_rx_skip_marked(qp, cur, len);
	else
		kiw_sock_rx_skip(qp->ks, cur, len);
}

/**
 * kiw_rx_pass_marker() - skip a marker at the current position, if there is one
 * @qp: the QP
 * @cur: inside an FPDU; advanced if it is at a marker
 *
 * Context: socket lock held, BHs off.
 * Return: bytes from there to the next marker, at least 1.
 */
static inline u32 kiw_rx_pass_marker(struct kiw_qp *qp, struct kiw_rx_cursor *cur)
{
	u32 gap = kiw_mpa_to_marker(kiw_rx_offset(qp, cur));

	kiw_sock_assert_held_bh(qp->ks);
	if (gap)
		return gap;
	kiw_sock_rx_skip(qp->ks, cur, KIW_MARKER_SIZE);
	return KIW_MARKER_SPACE;
}

/**
 * kiw_rx_take() - access the next bytes of an FPDU in place
 * @qp: the QP
 * @cur: inside an FPDU; advanced by @num bytes, and by a marker before them
 * @len: bytes wanted, not counting markers, at least 1
 * @num: set to the number of these bytes that are contiguous, at least 1
 *
 * Context: socket lock held, BHs off.
 * Return: As kiw_sock_rx_take().
 */
static inline const u8 *kiw_rx_take(struct kiw_qp *qp, struct kiw_rx_cursor *cur, u32 len,
				    u32 *num)
{
	kiw_sock_assert_held_bh(qp->ks);
	if (qp->conn.rx_markers)
		len = min(len, kiw_rx_pass_marker(qp, cur));
	return kiw_sock_rx_take(qp->ks, cur, len, num);
}

#endif /* KIW_RX_FPDU_H */
