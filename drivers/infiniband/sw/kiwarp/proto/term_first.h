/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* A Terminate as the first and last FPDU of a stream, RFC 6581 8 and 9. */
#ifndef KIW_PROTO_TERM_FIRST_H
#define KIW_PROTO_TERM_FIRST_H

#include "mpa_neg.h"
#include "perr.h"
#include "wire.h"

/* Marker (RFC 5044 7.1.2 rule 7), header, Terminate control, CRC; there is no PAD */
#define KIW_TERM_FIRST_MAX	(KIW_MARKER_SIZE + sizeof(struct kiw_wire_untagged) + \
				 sizeof(struct kiw_wire_term) + KIW_FPDU_CRC_SIZE)

static_assert((sizeof(struct kiw_wire_untagged) + sizeof(struct kiw_wire_term)) %
	      KIW_FPDU_ALIGN == 0);

size_t kiw_term_first(u8 *buf, enum kiw_perr perr, const struct kiw_mpa_outcome *agreed);

#endif /* KIW_PROTO_TERM_FIRST_H */
