/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* The FPDUs of RFC 5044 figures 5 and 6 as on the wire, with markers and CRCs. */
#ifndef KIW_KUNIT_VECTORS_FPDU_H
#define KIW_KUNIT_VECTORS_FPDU_H

#include <linux/types.h>

/* Both have 42 octets of ULPDU, no PAD, and one marker */
#define KIW_TEST_FIG_ULPDU	42
#define KIW_TEST_FIG_SIZE	52

/* Figure 5: the first FPDU of a stream, after the marker that every stream starts with */
#define KIW_TEST_FIG5_MARKER	0

static const u8 kiw_test_fig5[KIW_TEST_FIG_SIZE] = {
	0x00, 0x00, 0x00, 0x00,				/* marker: FPDUPTR 0 */
	0x00, 0x2a, 0x41, 0x43, 0x00, 0x00, 0x00, 0x00, /* length, Send with Last */
	0x00, 0x00, 0x00, 0x00,				/* queue 0 */
	0x00, 0x00, 0x00, 0x01,				/* MSN 1 */
	0x00, 0x00, 0x00, 0x00,				/* MO 0 */
	[48] = 0x52, 0x23, 0x99, 0x83,			/* CRC, after 24 octets of data */
};

/* Figure 6: the second FPDU of a stream, at octet 0x1ec; its marker is at 0x200 */
#define KIW_TEST_FIG6_MARKER	20

static const u8 kiw_test_fig6[KIW_TEST_FIG_SIZE] = {
	0x00, 0x2a, 0x41, 0x43, 0x00, 0x00, 0x00, 0x00, /* length, Send with Last */
	0x00, 0x00, 0x00, 0x00,				/* queue 0 */
	0x00, 0x00, 0x00, 0x02,				/* MSN 2 */
	0x00, 0x00, 0x00, 0x00,				/* MO 0 */
	0x00, 0x00, 0x00, 0x14,				/* marker: FPDUPTR 20 */
	[48] = 0x84, 0x92, 0x58, 0x98,			/* CRC, after 24 octets of data */
};

#endif /* KIW_KUNIT_VECTORS_FPDU_H */
