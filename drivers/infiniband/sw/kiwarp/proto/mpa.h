/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * MPA framing in full operation, RFC 5044 section 4: the length of an FPDU, MULPDU, and
 * whether a complete FPDU has arrived; the position and the contents of markers.
 *
 * An offset is a position in one direction of the stream: octets since the start of
 * full operation, including markers, modulo 2^32. Only the functions that handle
 * markers need it.
 */
#ifndef KIW_PROTO_MPA_H
#define KIW_PROTO_MPA_H

#include <asm/byteorder.h>

#include "perr.h"
#include "wire.h"

/**
 * struct kiw_fpdu - the extent of one FPDU in the stream, octets
 * @ulpdu_len: ULPDU_Length
 * @pad: octets of PAD (0..3)
 * @total: ULPDU_Length field, ULPDU, PAD and CRC together, including the markers between
 *	them and before the first
 */
struct kiw_fpdu {
	u16 ulpdu_len;
	u8 pad;
	u32 total;
};

/**
 * enum kiw_mpa_rx - contents of the receive queue at an FPDU boundary
 * @KIW_MPA_RX_MORE: an incomplete FPDU; wait for &struct kiw_fpdu.total octets
 * @KIW_MPA_RX_READY: a complete FPDU
 * @KIW_MPA_RX_BAD: a length that no DDP segment can have
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
 * kiw_mpa_to_marker() - number of octets before the next marker
 * @offset: position in the stream, not inside a marker
 *
 * RFC 5044 4.3: there is a marker at every 512th octet, including the very first one.
 *
 * Context: Any.
 * Return: 0: a marker belongs here; otherwise the octets before the next one, at most 508.
 */
static inline u32 kiw_mpa_to_marker(u32 offset)
{
	return -offset % KIW_MARKER_INTERVAL;
}

/**
 * kiw_mpa_fpduptr() - compute the FPDUPTR of a marker
 * @offset: position of the marker
 * @start: position of the marker's FPDU, or of the marker directly before that FPDU, if any
 *
 * RFC 5044 4.3: counted from ULPDU_Length, which a marker may precede.
 *
 * Context: Any.
 * Return: Octets from ULPDU_Length to the marker.
 */
static inline u16 kiw_mpa_fpduptr(u32 offset, u32 start)
{
	/* Not in the branch, so that compilers compute it once for all markers of an FPDU */
	u32 length_at = start + (kiw_mpa_to_marker(start) ? 0 : KIW_MARKER_SIZE);

	return offset == start ? 0 : offset - length_at;
}

/**
 * kiw_mpa_marker_encode() - write a marker
 * @marker: written completely
 * @offset: position of the marker
 * @start: position of the marker's FPDU, or of the marker directly before that FPDU, if any
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
 * kiw_mpa_marker_agrees() - does a received marker point to the start of its FPDU?
 * @marker: as received
 * @offset: position of the marker
 * @start: position of the marker's FPDU, or of the marker directly before that FPDU, if any
 *
 * If not, that is error code 3 of RFC 5044 8. The two least significant bits of FPDUPTR count as
 * zero, and the reserved field is ignored (RFC 5044 4.2).
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
