// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Terminate messages: exact octets, every fault against RFC 5040 figure 10, and
 * every truncation on both sides.
 */
#include "proto/term.c"

#include "util.h"

/* RFC 5040 4.8: length of the longest payload */
#define TERM_MAX	52

/* RDMA Write of 100 octets at STag 0x12345678 */
static const u8 write_fpdu[16] = {
	0x00, 0x72, 0xc1, 0x40, 0x12, 0x34, 0x56, 0x78, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06,
	0x07, 0x08,
};

/* Send with Invalidate of 256 octets, MSN 7; the payload begins like a Read Request would */
static const u8 send_fpdu[48] = {
	0x01, 0x12, 0x41, 0x44, 0xca, 0xfe, 0xf0, 0x0d, [15] = 0x07,
	[20 ... 47] = 0xee,
};

/* Read Request, MSN 2 */
static const u8 read_fpdu[48] = {
	0x00, 0x2e, 0x41, 0x41, [11] = 0x01, [15] = 0x02,
	[20] = 0xa0, 0xa1, 0xa2, 0xa3, [32] = 0xff, [36] = 0xb0, 0xb1, 0xb2, 0xb3,
};

/* RFC 7306 A.1: Atomic Request, MSN 3; the payload begins like a Read Request would */
static const u8 atomic_fpdu[48] = {
	0x00, 0x46, 0x41, 0x4a, [11] = 0x01, [15] = 0x03, [20 ... 47] = 0xee,
};

static void expect_payload(struct kunit *test, enum kiw_perr perr, const u8 *head,
			   size_t head_len, u32 control, size_t copied)
{
	u8 buf[TERM_MAX + 8], want[TERM_MAX + 8];

	memset(buf, 0xa5, sizeof(buf));
	memset(want, 0xa5, sizeof(want));
	put_unaligned_be32(control, want);
	if (copied)
		memcpy(want + 4, head, copied);
	KUNIT_EXPECT_EQ(test, kiw_term_encode(buf, perr, head, head_len), 4 + copied);
	KUNIT_EXPECT_MEMEQ(test, buf, want, sizeof(buf));
}

static void rfc5040_4_8_ddp_fault(struct kunit *test)
{
	expect_payload(test, KIW_PERR_DDP_NO_BUFFER, send_fpdu, 48, 0x1202c000, 20);
	expect_payload(test, KIW_PERR_DDP_QN, read_fpdu, 48, 0x1201c000, 20);
	expect_payload(test, KIW_PERR_DDP_BOUNDS, write_fpdu, 16, 0x1101c000, 16);
	expect_payload(test, KIW_PERR_DDP_TAGGED_VERSION, write_fpdu, 16, 0x1104c000, 16);
}

static void rfc5040_4_8_rdmap_protection_fault(struct kunit *test)
{
	expect_payload(test, KIW_PERR_RDMAP_ACCESS, read_fpdu, 48, 0x0102e000, 48);
	expect_payload(test, KIW_PERR_RDMAP_ACCESS, write_fpdu, 16, 0x0102c000, 16);
	expect_payload(test, KIW_PERR_RDMAP_INVALIDATE, send_fpdu, 48, 0x0109c000, 20);
}

/* RFC 7306 8.1 (2): the Terminate has the DDP header of an Atomic Request, and not its other one */
static void rfc7306_8_1_atomic_request(struct kunit *test)
{
	u8 head[sizeof(struct kiw_wire_untagged)];
	size_t len;

	expect_payload(test, KIW_PERR_RDMAP_ACCESS, atomic_fpdu, 48, 0x0102c000, 20);
	expect_payload(test, KIW_PERR_RDMAP_ALIGN, atomic_fpdu, 48, 0x0207c000, 20);
	/* When the operation is executed, only the DDP header is still known */
	len = kiw_term_atomic_head(head, atomic_fpdu + 2);
	KUNIT_EXPECT_EQ(test, len, sizeof(head));
	KUNIT_EXPECT_MEMEQ(test, head, atomic_fpdu, sizeof(head));
	expect_payload(test, KIW_PERR_RDMAP_STAG, head, len, 0x0100c000, 20);
}

/* A Response that has come to octet 0x102 of 0x304: the rest of the request is quoted */
static void rfc5040_4_8_read_answered_in_part(struct kunit *test)
{
	static const u8 want[48] = {
		0x00, 0x2e, 0x41, 0x41, [11] = 0x01, [15] = 0x02,
		[20] = 0xa0, 0xa1, 0xa2, 0xa3, [28] = 0x00, 0x01, 0x01, 0x01,
		[34] = 0x02, 0x02, 0xb0, 0xb1, 0xb2, 0xb3, [44] = 0x00, 0x00, 0x02, 0x01,
	};
	const struct kiw_read_req req = {
		.sink_stag = 0xa0a1a2a3, .sink_to = 0xffff, .size = 0x304,
		.src_stag = 0xb0b1b2b3, .src_to = 0xff,
	};
	u8 head[48 + 8], guard[8];

	memset(head, 0xa5, sizeof(head));
	memset(guard, 0xa5, sizeof(guard));
	KUNIT_EXPECT_EQ(test, kiw_term_read_head(head, read_fpdu + 2, &req, 0x102), 48);
	KUNIT_EXPECT_MEMEQ(test, head, want, 48);
	KUNIT_EXPECT_MEMEQ(test, head + 48, guard, 8);
	expect_payload(test, KIW_PERR_RDMAP_BOUNDS, head, 48, 0x0101e000, 48);
}

static void opcode_of_the_segment(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, kiw_term_opcode(NULL, 0), 0);
	KUNIT_EXPECT_EQ(test, kiw_term_opcode(send_fpdu, 3), 0);
	KUNIT_EXPECT_EQ(test, kiw_term_opcode(send_fpdu, 4), KIW_RDMAP_SEND_INV);
	KUNIT_EXPECT_EQ(test, kiw_term_opcode(write_fpdu, 16), KIW_RDMAP_WRITE);
	KUNIT_EXPECT_EQ(test, kiw_term_opcode(read_fpdu, 48), KIW_RDMAP_READ_REQ);
}

static void rfc5040_4_8_rdmap_operation_fault(struct kunit *test)
{
	expect_payload(test, KIW_PERR_RDMAP_OPCODE, read_fpdu, 48, 0x0206c000, 20);
	expect_payload(test, KIW_PERR_RDMAP_VERSION, send_fpdu, 48, 0x0205c000, 20);
}

static void rfc5040_4_8_no_headers(struct kunit *test)
{
	expect_payload(test, KIW_PERR_MPA_CRC, read_fpdu, 48, 0x20020000, 0);
	expect_payload(test, KIW_PERR_MPA_RTR, NULL, 0, 0x20070000, 0);
	expect_payload(test, KIW_PERR_RDMAP_CATASTROPHIC, send_fpdu, 48, 0x00000000, 0);
	expect_payload(test, KIW_PERR_DDP_CATASTROPHIC, send_fpdu, 48, 0x10000000, 0);
	expect_payload(test, KIW_PERR_RDMAP_ACCESS, NULL, 0, 0x01020000, 0);
}

/* RFC 5040 figure 10: 0 no header, 1 the DDP header, 2 the Read Request header, too */
static int headers_of(enum kiw_perr perr)
{
	if (perr >= KIW_PERR_RDMAP_STAG && perr <= KIW_PERR_RDMAP_PROT_UNSPEC)
		return 2;
	if (perr >= KIW_PERR_RDMAP_VERSION && perr <= KIW_PERR_RDMAP_ALIGN)
		return 1;
	return perr >= KIW_PERR_DDP_STAG && perr <= KIW_PERR_DDP_UNTAGGED_VERSION;
}

/* The part of @head that is sent when @head_len octets of it are available */
static size_t copied_of(enum kiw_perr perr, const u8 *head, size_t head_len, u32 *hdrct)
{
	const size_t ddp = 2 + (head == write_fpdu ? 14 : 18);

	*hdrct = 0;
	if (!headers_of(perr) || head_len < ddp)
		return 0;
	*hdrct = 0xc0;
	if (headers_of(perr) < 2 || head != read_fpdu || head_len < 48)
		return ddp;
	*hdrct = 0xe0;
	return 48;
}

static void every_fault_with_every_length(struct kunit *test, const u8 *head, size_t max)
{
	const struct kiw_perr_info *info;
	u32 perr, control, hdrct;
	size_t len, copied;
	u8 *own;

	for (len = 0; len <= max; len++) {
		own = kunit_kzalloc(test, len + !len, GFP_KERNEL);
		KUNIT_ASSERT_NOT_NULL(test, own);
		memcpy(own, head, len);
		for (perr = 1; perr < KIW_PERR_COUNT; perr++) {
			info = kiw_perr_info(perr);
			copied = copied_of(perr, head, len, &hdrct);
			control = info->layer << 28 | info->etype << 24 | info->code << 16 |
				  hdrct << 8;
			expect_payload(test, perr, own, len, control, copied);
		}
		kunit_kfree(test, own);
	}
}

static void rfc5040_figure_10_tagged(struct kunit *test)
{
	every_fault_with_every_length(test, write_fpdu, sizeof(write_fpdu));
}

static void rfc5040_figure_10_untagged(struct kunit *test)
{
	every_fault_with_every_length(test, send_fpdu, sizeof(send_fpdu));
}

static void rfc5040_figure_10_read_request(struct kunit *test)
{
	every_fault_with_every_length(test, read_fpdu, sizeof(read_fpdu));
}

/* Octets after the ULPDU (pad, CRC, the next FPDU) are not part of a header */
static void header_ends_with_the_ulpdu(struct kunit *test)
{
	u8 head[48];

	memcpy(head, read_fpdu, sizeof(head));
	put_unaligned_be16(45, head);
	expect_payload(test, KIW_PERR_RDMAP_ACCESS, head, 48, 0x0102c000, 20);
	put_unaligned_be16(17, head);
	expect_payload(test, KIW_PERR_RDMAP_ACCESS, head, 48, 0x01020000, 0);
	put_unaligned_be16(0, head);
	expect_payload(test, KIW_PERR_RDMAP_ACCESS, head, 48, 0x01020000, 0);
	put_unaligned_be16(0xffff, head);
	expect_payload(test, KIW_PERR_RDMAP_ACCESS, head, 48, 0x0102e000, 48);
}

static void every_fault_round_trip(struct kunit *test)
{
	struct kiw_term term;
	u8 buf[TERM_MAX];
	size_t len;
	u32 perr;

	for (perr = 1; perr < KIW_PERR_COUNT; perr++) {
		len = kiw_term_encode(buf, perr, read_fpdu, sizeof(read_fpdu));
		memset(&term, 0xa5, sizeof(term));
		KUNIT_ASSERT_TRUE(test, kiw_term_decode(buf, len, &term));
		/* Not a separate error on the wire */
		KUNIT_EXPECT_EQ(test, (u32)term.perr, perr == KIW_PERR_RDMAP_ALIGN ?
				(u32)KIW_PERR_RDMAP_STREAM : perr);
		KUNIT_EXPECT_EQ(test, term.layer, kiw_perr_info(perr)->layer);
		KUNIT_EXPECT_EQ(test, term.etype, kiw_perr_info(perr)->etype);
		KUNIT_EXPECT_EQ(test, term.code, kiw_perr_info(perr)->code);
		KUNIT_EXPECT_EQ(test, term.has_ddp, headers_of(perr) > 0);
		KUNIT_EXPECT_EQ(test, term.is_read, headers_of(perr) > 0);
		if (term.has_ddp)
			KUNIT_EXPECT_MEMEQ(test, term.ddp, read_fpdu + 2, 18);
	}
}

/* Expects the queue number and MSN of @fpdu. */
static void expect_message(struct kunit *test, const struct kiw_term *term, const u8 *fpdu)
{
	KUNIT_EXPECT_TRUE(test, term->is_untagged);
	KUNIT_EXPECT_EQ(test, term->qn, get_unaligned_be32(fpdu + 8));
	KUNIT_EXPECT_EQ(test, term->msn, get_unaligned_be32(fpdu + 12));
}

static void decode_tells_whose_header(struct kunit *test)
{
	struct kiw_term term;
	u8 buf[TERM_MAX];
	size_t len;

	len = kiw_term_encode(buf, KIW_PERR_DDP_STAG, write_fpdu, sizeof(write_fpdu));
	KUNIT_ASSERT_TRUE(test, kiw_term_decode(buf, len, &term));
	KUNIT_EXPECT_TRUE(test, term.has_ddp);
	KUNIT_EXPECT_FALSE(test, term.is_read);
	KUNIT_EXPECT_EQ(test, term.ddp_len, (u8)14);
	KUNIT_EXPECT_FALSE(test, term.is_untagged);
	KUNIT_EXPECT_MEMEQ(test, term.ddp, write_fpdu + 2, 14);

	len = kiw_term_encode(buf, KIW_PERR_DDP_NO_BUFFER, send_fpdu, sizeof(send_fpdu));
	KUNIT_ASSERT_TRUE(test, kiw_term_decode(buf, len, &term));
	KUNIT_EXPECT_TRUE(test, term.has_ddp);
	KUNIT_EXPECT_FALSE(test, term.is_read);
	KUNIT_EXPECT_EQ(test, term.ddp_len, (u8)18);
	KUNIT_EXPECT_MEMEQ(test, term.ddp, send_fpdu + 2, 18);
	expect_message(test, &term, send_fpdu);

	len = kiw_term_encode(buf, KIW_PERR_RDMAP_STAG, read_fpdu, sizeof(read_fpdu));
	KUNIT_ASSERT_TRUE(test, kiw_term_decode(buf, len, &term));
	KUNIT_EXPECT_TRUE(test, term.is_read);
	expect_message(test, &term, read_fpdu);
}

/* RNICs send MPA errors with error type 3 */
static void hardware_mpa_etype_3(struct kunit *test)
{
	static const u8 rfc[] = { 0x20, 0x02, 0x00, 0x00 };
	static const u8 rnic[] = { 0x23, 0x02, 0x00, 0x00 };
	struct kiw_term term;

	KUNIT_EXPECT_TRUE(test, kiw_term_decode(rfc, sizeof(rfc), &term));
	KUNIT_EXPECT_EQ(test, term.perr, KIW_PERR_MPA_CRC);
	KUNIT_EXPECT_TRUE(test, kiw_term_decode(rnic, sizeof(rnic), &term));
	KUNIT_EXPECT_EQ(test, term.perr, KIW_PERR_MPA_CRC);
	KUNIT_EXPECT_EQ(test, term.etype, (u8)3);
}

/* RFC 5040 4.8: 13 reserved bits are ignored */
static void reserved_bits_are_ignored(struct kunit *test)
{
	u8 buf[TERM_MAX + 100] = {};
	struct kiw_term term, want;
	size_t len;

	len = kiw_term_encode(buf, KIW_PERR_RDMAP_BOUNDS, read_fpdu, sizeof(read_fpdu));
	KUNIT_ASSERT_TRUE(test, kiw_term_decode(buf, len, &want));
	buf[2] |= 0x1f;
	buf[3] = 0xff;
	KUNIT_EXPECT_TRUE(test, kiw_term_decode(buf, len, &term));
	KUNIT_EXPECT_MEMEQ(test, &term, &want, sizeof(term));
	KUNIT_EXPECT_TRUE(test, kiw_term_decode(buf, sizeof(buf), &term));
	KUNIT_EXPECT_MEMEQ(test, &term, &want, sizeof(term));
}

/* Decodes a Terminate cut to @len octets with all header control bits, in its own allocation */
static void expect_cut(struct kunit *test, const u8 *fpdu, size_t len)
{
	const size_t ddp_len = fpdu == write_fpdu ? 14 : 18;
	u8 payload[TERM_MAX] = { 0x12, 0x02 };
	struct kiw_term term;
	unsigned int hdrct;
	bool has;
	u8 *own;

	memcpy(payload + 4, fpdu, fpdu == write_fpdu ? 16 : 48);
	own = kunit_kzalloc(test, len + !len, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, own);
	for (hdrct = 0; hdrct < 256; hdrct++) {
		payload[2] = hdrct;
		memcpy(own, payload, len);
		memset(&term, 0xa5, sizeof(term));
		KUNIT_EXPECT_EQ(test, kiw_term_decode(own, len, &term), len >= 4);
		has = hdrct & 0x40 && len >= 6 + ddp_len;
		KUNIT_EXPECT_EQ(test, term.has_ddp, has);
		KUNIT_EXPECT_EQ(test, term.is_read, has && fpdu == read_fpdu);
		KUNIT_EXPECT_EQ(test, term.is_untagged, has && fpdu != write_fpdu);
		KUNIT_EXPECT_EQ(test, (size_t)term.ddp_len, has ? ddp_len : 0);
		if (has)
			KUNIT_EXPECT_MEMEQ(test, term.ddp, fpdu + 2, ddp_len);
	}
	kunit_kfree(test, own);
}

static void every_truncation_and_flag(struct kunit *test)
{
	size_t len;

	for (len = 0; len <= TERM_MAX; len++) {
		expect_cut(test, write_fpdu, len);
		expect_cut(test, send_fpdu, len);
		expect_cut(test, read_fpdu, len);
	}
}

static struct kunit_case term_cases[] = {
	KUNIT_CASE(rfc5040_4_8_ddp_fault),
	KUNIT_CASE(rfc5040_4_8_rdmap_protection_fault),
	KUNIT_CASE(rfc7306_8_1_atomic_request),
	KUNIT_CASE(rfc5040_4_8_read_answered_in_part),
	KUNIT_CASE(opcode_of_the_segment),
	KUNIT_CASE(rfc5040_4_8_rdmap_operation_fault),
	KUNIT_CASE(rfc5040_4_8_no_headers),
	KUNIT_CASE(rfc5040_figure_10_tagged),
	KUNIT_CASE(rfc5040_figure_10_untagged),
	KUNIT_CASE(rfc5040_figure_10_read_request),
	KUNIT_CASE(header_ends_with_the_ulpdu),
	KUNIT_CASE(every_fault_round_trip),
	KUNIT_CASE(decode_tells_whose_header),
	KUNIT_CASE(hardware_mpa_etype_3),
	KUNIT_CASE(reserved_bits_are_ignored),
	KUNIT_CASE(every_truncation_and_flag),
	{}
};

static struct kunit_suite term_suite = {
	.name = "kiwarp_term",
	.test_cases = term_cases,
};

kunit_test_suite(term_suite);
