// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * A Terminate as the first and last FPDU of a stream.
 *
 * RFC 6581 8 and 9: an initiator that cannot use the connection that a Reply accepts says so in an
 * FPDU, with the CRC and the markers that the frames agreed on. At that time no QP has the stream,
 * and handing the stream to one is not worthwhile: there is only one FPDU, and most of its octets
 * are constant. Pure: called from any context.
 */
#include "term_first.h"

#include <linux/string.h>

#include "crc.h"
#include "ddp.h"
#include "term.h"

/**
 * kiw_term_first() - build a Terminate as the first FPDU
 * @buf: destination, %KIW_TERM_FIRST_MAX octets, of any alignment
 * @perr: the fault, one of the LLP; no header of the peer is included
 * @agreed: CRC, markers and version in force
 *
 * RFC 5040 4.8, RFC 5044 4, RFC 6581 8. The first marker is 0 and precedes the FPDU, whose
 * CRC covers it (RFC 5044 7.1.2 rule 7, 4.4).
 *
 * Context: any.
 * Return: number of octets written.
 */
size_t kiw_term_first(u8 *buf, enum kiw_perr perr, const struct kiw_mpa_outcome *agreed)
{
	struct kiw_wire_untagged hdr;
	u8 term[KIW_TERM_MAX];
	size_t len, term_len;
	__le32 crc = 0;

	len = agreed->tx_markers ? KIW_MARKER_SIZE : 0;
	memset(buf, 0, len);
	term_len = kiw_term_encode(term, perr, NULL, 0);
	kiw_ddp_encode_untagged(&hdr, agreed->version, KIW_RDMAP_TERMINATE, true, term_len, 0, 1,
				0);
	memcpy(buf + len, &hdr, sizeof(hdr));
	len += sizeof(hdr);
	memcpy(buf + len, term, term_len);
	len += term_len;
	if (agreed->crc)
		crc = kiw_crc_final(kiw_crc_update(kiw_crc_init(), buf, len));
	memcpy(buf + len, &crc, sizeof(crc));
	return len + sizeof(crc);
}
