// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * MPA framing in full operation: the size of FPDUs, the end of a received one, and the
 * position of markers.
 *
 * Owns the arithmetic of RFC 5044 4.1, 4.3 and 4.5 and the check of ULPDU_Length. Pure:
 * called from any context, keeps no state between calls.
 *
 * The lengths of FPDUs, of markers and of the data between two markers are multiples of four
 * octets, so no marker splits a ULPDU_Length or a CRC. A marker belongs to the FPDU whose
 * octets follow it: a marker between two FPDUs is at the start of the second one, and a
 * marker before the CRC is inside the FPDU (RFC 5044 4.4). Offsets may wrap, because 512
 * divides 2^32.
 */
#include "mpa.h"

#include <linux/minmax.h>
#include <linux/string.h>
#include <linux/unaligned.h>
#include <asm/byteorder.h>

/* RFC 5041 4: no segment is shorter than the tagged header */
#define ULPDU_MIN	KIW_DDP_TAGGED_HDR

#define FPDU_OVERHEAD	(KIW_FPDU_LEN_SIZE + KIW_FPDU_CRC_SIZE)

/**
 * kiw_mpa_pad() - compute the size of the PAD of an FPDU
 * @ulpdu_len: ULPDU_Length, octets
 *
 * RFC 5044 4.1: ULPDU_Length field, ULPDU and PAD are a multiple of four octets.
 *
 * Context: Any.
 * Return: Octets of PAD, 0 to 3.
 */
u8 kiw_mpa_pad(u32 ulpdu_len)
{
	return -(ulpdu_len + KIW_FPDU_LEN_SIZE) % KIW_FPDU_ALIGN;
}

/**
 * kiw_mpa_fpdu_size() - compute the size of an FPDU in a stream without markers
 * @ulpdu_len: ULPDU_Length, octets, at most 65535
 *
 * RFC 5044 4.1.
 *
 * Context: Any.
 * Return: Octets of ULPDU_Length field, ULPDU, PAD and CRC together.
 */
u32 kiw_mpa_fpdu_size(u32 ulpdu_len)
{
	return ulpdu_len + kiw_mpa_pad(ulpdu_len) + FPDU_OVERHEAD;
}

/**
 * kiw_mpa_mulpdu() - compute MULPDU for a stream without markers
 * @emss: effective maximum segment size of the TCP connection, octets
 *
 * RFC 5044 4.5: EMSS - (6 + EMSS mod 4), so that a full FPDU fits into one TCP segment;
 * at least 128, however small the segments are, and at most 64768 (section 3).
 *
 * Context: Any.
 * Return: MULPDU in octets, 128 to 64768.
 */
u32 kiw_mpa_mulpdu(u32 emss)
{
	u32 overhead = FPDU_OVERHEAD + emss % KIW_FPDU_ALIGN;

	if (emss < KIW_MULPDU_MIN + overhead)
		return KIW_MULPDU_MIN;
	return min_t(u32, emss - overhead, KIW_MULPDU_MAX);
}

/**
 * kiw_mpa_marked_size() - compute the space that FPDU octets take in a stream with markers
 * @offset: position of the first octet, or of the marker before it
 * @octets: number of FPDU octets, less than 2^31
 *
 * A marker that would follow the last octet is not counted.
 *
 * Context: Any.
 * Return: Octets of the stream.
 */
u32 kiw_mpa_marked_size(u32 offset, u32 octets)
{
	u32 gap = kiw_mpa_to_marker(offset);

	if (octets <= gap)
		return octets;
	return octets + KIW_MARKER_SIZE * (1 + (octets - gap - 1) / KIW_MARKER_SPACE);
}

/* FPDU octets among the first @octets of a piece of the stream that begins with a marker */
static u32 mpa_space_before(u32 octets)
{
	u32 rest = octets % KIW_MARKER_INTERVAL;

	return octets / KIW_MARKER_INTERVAL * KIW_MARKER_SPACE +
	       (rest > KIW_MARKER_SIZE ? rest - KIW_MARKER_SIZE : 0);
}

/**
 * kiw_mpa_unmarked_size() - count the FPDU octets in a piece of a stream with markers
 * @offset: start of the piece
 * @octets: length of the piece, less than 2^31; it may end inside a marker
 *
 * Context: Any.
 * Return: Octets that do not belong to a marker.
 */
u32 kiw_mpa_unmarked_size(u32 offset, u32 octets)
{
	u32 phase = offset % KIW_MARKER_INTERVAL;

	return mpa_space_before(phase + octets) - mpa_space_before(phase);
}

/**
 * kiw_mpa_strip() - remove the markers from a piece of the stream
 * @buf: the piece; what is left moves to the front
 * @offset: start of the piece in the stream, not inside a marker
 * @octets: length of the piece; it may end inside a marker
 *
 * Context: Any.
 * Return: Octets left, the same as kiw_mpa_unmarked_size() returns.
 */
u32 kiw_mpa_strip(u8 *buf, u32 offset, u32 octets)
{
	u32 from = 0;
	u32 to = 0;
	u32 here;

	while (from < octets) {
		here = min(kiw_mpa_to_marker(offset + from), octets - from);
		memmove(buf + to, buf + from, here);
		to += here;
		from += here + (here ? 0 : KIW_MARKER_SIZE);
	}
	return to;
}

/**
 * kiw_mpa_markers_agree() - do all markers of a received FPDU point to its start?
 * @fpdu: its octets, including the marker before it if there is one
 * @octets: number of octets in @fpdu
 * @start: position of @fpdu in the stream
 *
 * Calls kiw_mpa_marker_agrees() for each marker, until one does not agree.
 *
 * Context: Any.
 * Return: false: a marker and ULPDU_Length do not agree.
 */
bool kiw_mpa_markers_agree(const u8 *fpdu, u32 octets, u32 start)
{
	struct kiw_wire_marker marker;
	u32 at;

	for (at = kiw_mpa_to_marker(start); at < octets; at += KIW_MARKER_INTERVAL) {
		memcpy(&marker, fpdu + at, sizeof(marker));
		if (!kiw_mpa_marker_agrees(&marker, start + at, start))
			return false;
	}
	return true;
}

static void mpa_set_extent(struct kiw_fpdu *fpdu, u16 ulpdu_len)
{
	u32 pad = kiw_mpa_pad(ulpdu_len);

	fpdu->ulpdu_len = ulpdu_len;
	fpdu->pad = pad;
	fpdu->total = ulpdu_len + pad + FPDU_OVERHEAD;
}

/* Extent of the FPDU at @head, without markers; @avail octets from @head on have arrived. */
static bool mpa_read_extent(const u8 *head, u32 avail, struct kiw_fpdu *fpdu)
{
	if (avail < KIW_FPDU_LEN_SIZE) {
		mpa_set_extent(fpdu, ULPDU_MIN);
		return true;
	}
	mpa_set_extent(fpdu, get_unaligned_be16(head));
	return fpdu->ulpdu_len >= ULPDU_MIN && fpdu->ulpdu_len <= KIW_MULPDU_MAX;
}

/**
 * kiw_mpa_frame_rx() - has a complete FPDU arrived?
 * @head: the octets at an FPDU boundary; the first two are read, unless @avail is less than that
 * @avail: octets of the stream from @head on, including those that are not in @head
 * @fpdu: set to the extent of the FPDU; while @avail is less than 2 octets, to that of
 *	the smallest possible FPDU
 *
 * RFC 5044 4.1 and 6. A ULPDU that is shorter than a tagged DDP header (RFC 5041 4) or longer
 * than the 64768 octets of RFC 5044 3 is refused without waiting for its octets. The receiver must
 * treat it as a framing fault.
 *
 * Context: Any.
 * Return: %KIW_MPA_RX_MORE: fewer than @fpdu->total octets have arrived;
 * %KIW_MPA_RX_READY: at least that many have; %KIW_MPA_RX_BAD: a length that no DDP
 * segment has.
 */
enum kiw_mpa_rx kiw_mpa_frame_rx(const u8 *head, u32 avail, struct kiw_fpdu *fpdu)
{
	if (!mpa_read_extent(head, avail, fpdu))
		return KIW_MPA_RX_BAD;
	return avail < fpdu->total ? KIW_MPA_RX_MORE : KIW_MPA_RX_READY;
}

/**
 * kiw_mpa_frame_rx_marked() - has a complete FPDU arrived, with its markers?
 * @head: the octets from an FPDU boundary on, without markers
 * @avail: octets of the stream from that boundary on, including markers, less than 2^31
 * @offset: position of the boundary
 * @fpdu: as for kiw_mpa_frame_rx(); @total includes the markers
 *
 * Context: Any.
 * Return: As kiw_mpa_frame_rx().
 */
enum kiw_mpa_rx kiw_mpa_frame_rx_marked(const u8 *head, u32 avail, u32 offset,
					struct kiw_fpdu *fpdu)
{
	bool is_good = mpa_read_extent(head, kiw_mpa_unmarked_size(offset, avail), fpdu);

	fpdu->total = kiw_mpa_marked_size(offset, fpdu->total);
	if (!is_good)
		return KIW_MPA_RX_BAD;
	return avail < fpdu->total ? KIW_MPA_RX_MORE : KIW_MPA_RX_READY;
}
