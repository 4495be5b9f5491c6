// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Received FPDUs, RFC 5044 4 and 6. The CRC is taken over the queued buffers, markers
 * included; after that, and before anything is placed, each marker is held against the
 * start of its FPDU; payload is visited in pieces between them. Where we asked for no
 * markers, that costs one branch each.
 *
 * Context: socket lock held, BHs off.
 */
#include "rx_fpdu.h"

#include "proto/crc.h"
#include "qp.h"

/*
 * The head, when it is in one place and no marker in it: nearly always so, and a length that
 * is known is copied in a few steps. @plain: octets that are there without a marker.
 */
static bool rx_head_at_once(struct kiw_rx_fpdu *in, u32 plain)
{
	if (min3(plain, in->cur.avail, in->cur.here) < KIW_FPDU_HDR_MAX)
		return false;
	memcpy(in->head, in->cur.data, KIW_FPDU_HDR_MAX);
	return true;
}

/* kiw_rx_frame(), in a stream with markers */
static enum kiw_mpa_rx rx_frame_marked(struct kiw_qp *qp, struct kiw_rx_fpdu *in)
{
	u32 len = min_t(u32, in->cur.avail, KIW_RX_HEAD_SIZE);
	u32 offset = kiw_rx_offset(qp, &in->cur);

	if (!rx_head_at_once(in, kiw_mpa_to_marker(offset))) {
		kiw_sock_rx_peek(qp->ks, &in->cur, in->head, len);
		len = kiw_mpa_strip(in->head, offset, len);
	}
	in->head_len = min_t(u32, len, KIW_FPDU_HDR_MAX);
	return kiw_mpa_frame_rx_marked(in->head, in->cur.avail, offset, &in->extent);
}

/**
 * kiw_rx_frame() - is there a whole FPDU?
 * @qp: the QP
 * @in: @in->cur is at an FPDU boundary; extent and head are set
 *
 * Context: socket lock held, BHs off.
 * Return: As kiw_mpa_frame_rx().
 */
enum kiw_mpa_rx kiw_rx_frame(struct kiw_qp *qp, struct kiw_rx_fpdu *in)
{
	kiw_sock_assert_held(qp->ks);
	if (qp->conn.rx_markers)
		return rx_frame_marked(qp, in);
	in->head_len = min_t(u32, in->cur.avail, KIW_FPDU_HDR_MAX);
	if (!rx_head_at_once(in, in->head_len))
		kiw_sock_rx_peek(qp->ks, &in->cur, in->head, in->head_len);
	return kiw_mpa_frame_rx(in->head, in->cur.avail, &in->extent);
}

/**
 * kiw_rx_frame_alike() - how an FPDU lies in a stream with markers that is as long as another
 * @qp: the QP
 * @in: @in->cur is at its start; @in->extent is of the other, and becomes its own
 *
 * Context: socket lock held, BHs off.
 * Return: octets to its first marker.
 */
u32 kiw_rx_frame_alike(struct kiw_qp *qp, struct kiw_rx_fpdu *in)
{
	u32 offset = kiw_rx_offset(qp, &in->cur);
	u32 size = kiw_mpa_fpdu_size(in->extent.ulpdu_len);

	kiw_sock_assert_held(qp->ks);
	in->extent.total = kiw_mpa_marked_size(offset, size);
	return kiw_mpa_to_marker(offset);
}

/**
 * kiw_rx_crc_holds() - is the CRC of an FPDU right?
 * @qp: the QP
 * @in: the FPDU; it is there as a whole
 *
 * RFC 5044 4.4: the CRC covers everything before it. One pass, over both.
 *
 * Context: socket lock held, BHs off.
 * Return: whether.
 */
bool kiw_rx_crc_holds(struct kiw_qp *qp, const struct kiw_rx_fpdu *in)
{
	struct kiw_rx_cursor at = in->cur;
	u32 left = in->extent.total;
	u32 crc = kiw_crc_init();
	const u8 *data;
	u32 here;

	kiw_sock_assert_held(qp->ks);
	for (; left; left -= here) {
		data = kiw_sock_rx_take(qp->ks, &at, left, &here);
		if (!data)
			return false;
		crc = kiw_crc_update(crc, data, here);
	}
	return kiw_crc_holds(crc);
}

/**
 * kiw_rx_scattered_agree() - kiw_rx_markers_agree(), of an FPDU that lies in several places
 * @qp: the QP
 * @in: the FPDU; it is there as a whole
 *
 * Context: socket lock held, BHs off.
 * Return: whether all do.
 */
bool kiw_rx_scattered_agree(struct kiw_qp *qp, const struct kiw_rx_fpdu *in)
{
	u32 start = kiw_rx_offset(qp, &in->cur);
	u32 gap = kiw_mpa_to_marker(start);
	struct kiw_rx_cursor at = in->cur;
	struct kiw_wire_marker marker;
	u32 left;

	kiw_sock_assert_held(qp->ks);
	for (left = in->extent.total; gap < left; gap = KIW_MARKER_INTERVAL) {
		kiw_sock_rx_skip(qp->ks, &at, gap);
		left -= gap;
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
 * kiw_rx_skip_marked() - kiw_rx_skip() over a marker
 * @qp: the QP
 * @cur: inside of an FPDU or at its start; advanced
 * @len: octets, markers not counted
 *
 * Context: socket lock held, BHs off.
 */
void kiw_rx_skip_marked(struct kiw_qp *qp, struct kiw_rx_cursor *cur, u32 len)
{
	kiw_sock_assert_held(qp->ks);
	kiw_sock_rx_skip(qp->ks, cur, kiw_mpa_marked_size(kiw_rx_offset(qp, cur), len));
}
