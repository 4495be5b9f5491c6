// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Received FPDUs, RFC 5044 4 and 6. The CRC is computed over the queued buffers, including
 * markers. After that, and before anything is placed, each marker is checked against the start of
 * its FPDU. Payload is accessed in the pieces between markers. In a stream without markers, each of
 * the steps that deal with markers costs one branch.
 *
 * Context: socket lock held, BHs off.
 */
#include "rx_fpdu.h"

#include "proto/crc.h"
#include "qp/qp.h"

/*
 * Copy the head if it has its full length, is contiguous and contains no marker. The compiler
 * inlines a copy whose length it knows. @plain: number of bytes among which there is no marker.
 */
static bool rx_head_at_once(const struct kiw_rx_cursor *cur, struct kiw_rx_fpdu *fpdu, u32 plain)
{
	if (min3(plain, cur->avail, cur->here) < KIW_FPDU_HDR_MAX)
		return false;
	memcpy(fpdu->head, cur->data, KIW_FPDU_HDR_MAX);
	return true;
}

/* kiw_rx_frame(), in a stream with markers */
static enum kiw_mpa_rx rx_frame_marked(struct kiw_qp *qp, const struct kiw_rx_cursor *cur,
				       struct kiw_rx_fpdu *fpdu)
{
	u32 len = min_t(u32, cur->avail, KIW_RX_HEAD_SIZE);
	u32 offset = kiw_rx_offset(qp, cur);

	if (!rx_head_at_once(cur, fpdu, kiw_mpa_to_marker(offset))) {
		kiw_sock_rx_peek(qp->ks, cur, fpdu->head, len);
		len = kiw_mpa_strip(fpdu->head, offset, len);
	}
	fpdu->head_len = min_t(u32, len, KIW_FPDU_HDR_MAX);
	return kiw_mpa_frame_rx_marked(fpdu->head, cur->avail, offset, &fpdu->extent);
}

/**
 * kiw_rx_frame() - has an FPDU arrived completely?
 * @qp: the QP
 * @cur: start of the FPDU
 * @fpdu: sets its extent and its head
 *
 * Context: socket lock held, BHs off.
 * Return: As kiw_mpa_frame_rx().
 */
enum kiw_mpa_rx kiw_rx_frame(struct kiw_qp *qp, const struct kiw_rx_cursor *cur,
			     struct kiw_rx_fpdu *fpdu)
{
	kiw_sock_assert_held_bh(qp->ks);
	if (qp->conn.rx_markers)
		return rx_frame_marked(qp, cur, fpdu);
	fpdu->head_len = min_t(u32, cur->avail, KIW_FPDU_HDR_MAX);
	if (!rx_head_at_once(cur, fpdu, fpdu->head_len))
		kiw_sock_rx_peek(qp->ks, cur, fpdu->head, fpdu->head_len);
	return kiw_mpa_frame_rx(fpdu->head, cur->avail, &fpdu->extent);
}

/**
 * kiw_rx_crc_holds() - is the CRC of an FPDU correct?
 * @qp: the QP
 * @cur: start of the FPDU
 * @total: length of the FPDU in bytes, including the markers; all of it has arrived
 *
 * RFC 5044 4.4: the CRC covers everything before it. A single pass covers the data and the CRC.
 *
 * Context: socket lock held, BHs off.
 * Return: true: it is correct.
 */
bool kiw_rx_crc_holds(struct kiw_qp *qp, const struct kiw_rx_cursor *cur, u32 total)
{
	struct kiw_rx_cursor at = *cur;
	u32 crc = kiw_crc_init();
	const u8 *data;
	u32 here;

	kiw_sock_assert_held_bh(qp->ks);
	for (; total; total -= here) {
		data = kiw_sock_rx_take(qp->ks, &at, total, &here);
		if (!data)
			return false;
		crc = kiw_crc_update(crc, data, here);
	}
	return kiw_crc_holds(crc);
}

/**
 * kiw_rx_scattered_agree() - kiw_rx_markers_agree() for an FPDU that is not contiguous
 * @qp: the QP
 * @cur: start of the FPDU
 * @total: length of the FPDU in bytes, including the markers; all of it has arrived
 *
 * Context: socket lock held, BHs off.
 * Return: true: all markers point to its start.
 */
bool kiw_rx_scattered_agree(struct kiw_qp *qp, const struct kiw_rx_cursor *cur, u32 total)
{
	u32 start = kiw_rx_offset(qp, cur);
	u32 gap = kiw_mpa_to_marker(start);
	struct kiw_rx_cursor at = *cur;
	struct kiw_wire_marker marker;

	kiw_sock_assert_held_bh(qp->ks);
	for (; gap < total; gap = KIW_MARKER_INTERVAL) {
		kiw_sock_rx_skip(qp->ks, &at, gap);
		total -= gap;
		if (at.here >= sizeof(marker))
			memcpy(&marker, at.data, sizeof(marker));
		else
			kiw_sock_rx_peek(qp->ks, &at, (u8 *)&marker, sizeof(marker));
		if (!kiw_mpa_marker_agrees(&marker, kiw_rx_offset(qp, &at), start))
			return false;
	}
	return true;
}

/**
 * kiw_rx_skip_marked() - skip bytes of an FPDU, and the markers among them
 * @qp: the QP
 * @cur: inside an FPDU or at its start; advanced
 * @len: bytes, not counting markers
 *
 * Context: socket lock held, BHs off.
 */
void kiw_rx_skip_marked(struct kiw_qp *qp, struct kiw_rx_cursor *cur, u32 len)
{
	kiw_sock_assert_held_bh(qp->ks);
	kiw_sock_rx_skip(qp->ks, cur, kiw_mpa_marked_size(kiw_rx_offset(qp, cur), len));
}
