// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * MPA framing in full operation: how large FPDUs are, and where a received one ends.
 *
 * Owns the arithmetic of RFC 5044 4.1 and 4.5 and the check of ULPDU_Length. Pure:
 * called from any context, keeps nothing between calls, and reads no octet of the
 * stream but the two of the length. Knows no markers yet: an FPDU's extent is set
 * in set_extent() and nowhere else, which is where those inside it will count.
 */
#include "mpa.h"

#include <linux/minmax.h>
#include <linux/unaligned.h>

/* RFC 5041 4: no segment is shorter than the tagged header */
#define ULPDU_MIN	KIW_DDP_TAGGED_HDR

#define FPDU_OVERHEAD	(KIW_FPDU_LEN_SIZE + KIW_FPDU_CRC_SIZE)

/**
 * kiw_mpa_pad - size of the PAD of an FPDU
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
 * kiw_mpa_fpdu_size - size of an FPDU in a stream without markers
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
 * kiw_mpa_mulpdu - largest ULPDU to send in a stream without markers
 * @emss: effective maximum segment size of the TCP connection, octets
 *
 * RFC 5044 4.5: EMSS - (6 + EMSS mod 4), so that a full FPDU fills one TCP segment;
 * never under 128 however small the segments are, and never over 64768 (section 3).
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

static void set_extent(struct kiw_fpdu *fpdu, u16 ulpdu_len)
{
	fpdu->ulpdu_len = ulpdu_len;
	fpdu->pad = kiw_mpa_pad(ulpdu_len);
	fpdu->total = kiw_mpa_fpdu_size(ulpdu_len);
}

/**
 * kiw_mpa_frame_rx - has a whole FPDU arrived?
 * @head: the octets at an FPDU boundary; the first min(@avail, 2) are read
 * @avail: octets of the stream from @head on, those not in @head included
 * @fpdu: set to the extent of the FPDU; while @avail is under 2 octets, to that of
 *	the smallest there can be
 *
 * RFC 5044 4.1 and 6. A ULPDU that cannot hold a DDP header (RFC 5041 4) or is over
 * the 64768 octets of RFC 5044 3 is refused before anyone waits for its octets.
 * The receiver is to treat it as a framing fault.
 *
 * Context: Any.
 * Return: %KIW_MPA_RX_MORE when fewer than @fpdu->total octets are there,
 * %KIW_MPA_RX_READY when at least that many are, %KIW_MPA_RX_BAD for a length that
 * no DDP segment has.
 */
enum kiw_mpa_rx kiw_mpa_frame_rx(const u8 *head, u32 avail, struct kiw_fpdu *fpdu)
{
	if (avail < KIW_FPDU_LEN_SIZE) {
		set_extent(fpdu, ULPDU_MIN);
		return KIW_MPA_RX_MORE;
	}
	set_extent(fpdu, get_unaligned_be16(head));
	if (fpdu->ulpdu_len < ULPDU_MIN || fpdu->ulpdu_len > KIW_MULPDU_MAX)
		return KIW_MPA_RX_BAD;
	return avail < fpdu->total ? KIW_MPA_RX_MORE : KIW_MPA_RX_READY;
}
