/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * MPA framing in full operation, RFC 5044 section 4: how long an FPDU is, how
 * large it may be on this connection, and when a whole one has arrived; where
 * the markers are and what they say.
 *
 * An offset is a position in one direction of the stream: octets since the first of
 * full operation, markers counted, modulo 2^32. Only the functions that deal with
 * markers need it.
 */
#ifndef KIW_PROTO_MPA_H
#define KIW_PROTO_MPA_H

#include <asm/byteorder.h>

#include "perr.h"
#include "wire.h"

/**
 * struct kiw_fpdu - the extent of one FPDU in the stream, octets
 * @ulpdu_len: ULPDU_Length as received
 * @pad: octets of PAD (0..3)
 * @total: ULPDU_Length field, ULPDU, PAD and CRC together, and the markers before any
 *	of their octets
 */
struct kiw_fpdu {
	u16 ulpdu_len;
	u8 pad;
	u32 total;
};

/**
 * enum kiw_mpa_rx - what the receive queue holds at an FPDU boundary
 * @KIW_MPA_RX_MORE: not a whole FPDU; wait for &struct kiw_fpdu.total octets
 * @KIW_MPA_RX_READY: a whole FPDU
 * @KIW_MPA_RX_BAD: a length no DDP segment can have
 */
enum kiw_mpa_rx {
	KIW_MPA_RX_MORE,
	KIW_MPA_RX_READY,
	KIW_MPA_RX_BAD,
};

u8 kiw_mpa_pad(u32 ulpdu_len);
u32 kiw_mpa_fpdu_size(u32 ulpdu_len);
u32 kiw_mpa_mulpdu(u32 emss);
enum kiw_mpa_rx kiw_mpa_frame_rx(const u8 *head, u32 avail, struct kiw_fpdu *fpdu);

/* Markers */
u32 kiw_mpa_marked_size(u32 offset, u32 octets);
u32 kiw_mpa_unmarked_size(u32 offset, u32 octets);
u32 kiw_mpa_strip(u8 *buf, u32 offset, u32 octets);
bool kiw_mpa_markers_agree(const u8 *fpdu, u32 octets, u32 start);
enum kiw_mpa_rx kiw_mpa_frame_rx_marked(const u8 *head, u32 avail, u32 offset,
					struct kiw_fpdu *fpdu);

/**
 * kiw_mpa_to_marker() - octets before the next marker
 * @offset: position in the stream, not inside of a marker
 *
 * RFC 5044 4.3: markers stand at every 512th octet, the first of all octets included.
 *
 * Context: Any.
 * Return: 0: a marker belongs here; otherwise octets to the next, at most 511.
 */
static inline u32 kiw_mpa_to_marker(u32 offset)
{
	return -offset % KIW_MARKER_INTERVAL;
}

/**
 * kiw_mpa_fpduptr() - what a marker says
 * @offset: where it stands
 * @start: where the FPDU it belongs to starts, with the marker before it if there is one
 *
 * RFC 5044 4.3: counted from ULPDU_Length, in front of which a marker may stand.
 *
 * Context: Any.
 * Return: Octets from there to the marker.
 */
static inline u16 kiw_mpa_fpduptr(u32 offset, u32 start)
{
	if (offset == start)
		return 0;
	return offset - start - (kiw_mpa_to_marker(start) ? 0 : KIW_MARKER_SIZE);
}

/**
 * kiw_mpa_marker_encode() - write a marker
 * @marker: written whole
 * @offset: where it stands
 * @start: where the FPDU it belongs to starts, with the marker before it if there is one
 *
 * RFC 5044 4.2 and 4.3.
 *
 * Context: Any.
 */
static inline void kiw_mpa_marker_encode(struct kiw_wire_marker *marker, u32 offset,
					 u32 start)
{
	*marker = (struct kiw_wire_marker) {
		.fpduptr = cpu_to_be16(kiw_mpa_fpduptr(offset, start)),
	};
}

/**
 * kiw_mpa_marker_agrees() - does a received marker point to where its FPDU starts?
 * @marker: as received
 * @offset: where it stands
 * @start: where the FPDU it belongs to starts, with the marker before it if there is one
 *
 * RFC 5044 8, code 3. The two least significant bits of FPDUPTR count as zero, and the
 * reserved field is ignored (4.2).
 *
 * Context: Any.
 * Return: false: the marker and ULPDU_Length do not agree.
 */
static inline bool kiw_mpa_marker_agrees(const struct kiw_wire_marker *marker, u32 offset,
					 u32 start)
{
	return (be16_to_cpu(marker->fpduptr) & KIW_FPDUPTR_MASK) == kiw_mpa_fpduptr(offset, start);
}

#endif /* KIW_PROTO_MPA_H */
