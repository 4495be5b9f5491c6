// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The error taxonomy as a table: RFC 5040 figure 9, RFC 5041 7.2, RFC 5044 8 without its
 * codes 1 and 4, and RFC 6581 8 in one place.
 */
#include "perr.h"

#define ETYPE_LLP_HARDWARE	3	/* RNICs use it: RFC 5041 7.2 reserves it for the LLP */

static const struct kiw_perr_info perr_table[KIW_PERR_COUNT] = {
	[KIW_PERR_NONE] = { .wcs = KIW_WCS_SUCCESS, .text = "no error" },
#define ROW(name, l, t, c, status, words) \
	[KIW_PERR_##name] = { \
		.layer = (l), .etype = (t), .code = (c), \
		.wcs = KIW_WCS_##status, .text = (words), \
	},
	KIW_PERR_LIST(ROW)
#undef ROW
};

/**
 * kiw_perr_info() - get the properties of a fault
 * @perr: the fault; an unknown value counts as %KIW_PERR_RDMAP_CATASTROPHIC
 *
 * RFC 5040 4.8 figure 9 for the numbers.
 *
 * Context: any.
 * Return: its row, never NULL, constant.
 */
const struct kiw_perr_info *kiw_perr_info(enum kiw_perr perr)
{
	if ((unsigned int)perr >= KIW_PERR_COUNT)
		perr = KIW_PERR_RDMAP_CATASTROPHIC;
	return &perr_table[perr];
}

/* The generic fault of a layer, for codes that are not in the table; RDMAP's for unknown layers */
static enum kiw_perr perr_unspecific(u8 layer, u8 etype)
{
	switch (layer) {
	case KIW_LAYER_RDMAP:
		if (etype == KIW_ETYPE_CATASTROPHIC)
			return KIW_PERR_RDMAP_CATASTROPHIC;
		if (etype == KIW_ETYPE_PROTECTION)
			return KIW_PERR_RDMAP_PROT_UNSPEC;
		return KIW_PERR_RDMAP_OP_UNSPEC;
	case KIW_LAYER_DDP:
		return KIW_PERR_DDP_CATASTROPHIC;
	case KIW_LAYER_LLP:
		return KIW_PERR_MPA_LOCAL;
	default:
		return KIW_PERR_RDMAP_OP_UNSPEC;
	}
}

/**
 * kiw_perr_from_wire() - get the fault that a received Terminate reports
 * @layer: Terminate layer
 * @etype: error type
 * @code: error code; meaningless for a local catastrophic error of RDMAP
 *
 * RFC 5040 4.8 figure 9. For MPA errors, error type 3 is accepted as well as the 0 of RFC 6581 8:
 * RNICs send it, as RFC 5041 7.2 reserves it for the LLP within the errors of DDP.
 *
 * Context: any.
 * Return: the fault; for a code that is not in the table, the generic fault of the layer, or of
 * RDMAP if the layer is unknown; never %KIW_PERR_NONE.
 */
enum kiw_perr kiw_perr_from_wire(u8 layer, u8 etype, u8 code)
{
	unsigned int i;

	if (layer == KIW_LAYER_LLP && etype == ETYPE_LLP_HARDWARE)
		etype = 0;
	for (i = KIW_PERR_NONE + 1; i < KIW_PERR_COUNT; i++) {
		const struct kiw_perr_info *row = &perr_table[i];

		if (row->layer == layer && row->etype == etype && row->code == code)
			return i;
	}
	return perr_unspecific(layer, etype);
}
