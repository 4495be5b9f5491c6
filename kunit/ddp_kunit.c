// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * DDP headers: octets as drawn in the RFCs, all control octets against a second
 * implementation of the rules, and every length in a buffer of exactly that length.
 */
#include "proto/ddp.c"

#include "util.h"

/* The longest head that kiw_ddp_decode() may look at */
#define HEAD_MAX	48

#define IETF	KIW_DDP_VERSION_IETF
#define RDMAC	KIW_DDP_VERSION_RDMAC
#define ALL	KIW_RDMAP_OPCODES_7306
#define OLD	KIW_RDMAP_OPCODES_5040

static const u32 queues[] = { 0, 1, 2, 3, 4, 0x80000000, 0xffffffff };

/* RFC 5041 4.2 figure 4, RFC 5040 appendix A: RDMA Write, last, 100 octets */
static const u8 write_head[] = {
	0x00, 0x72, 0xc1, 0x40, 0x12, 0x34, 0x56, 0x78,
	0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08,
};

/* RFC 5041 4.3 figure 5: Send with SE and Invalidate, not last, 256 octets */
static const u8 send_head[] = {
	0x01, 0x12, 0x01, 0x46, 0xca, 0xfe, 0xf0, 0x0d, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x00, 0x00, 0x07, 0x00, 0x01, 0x02, 0x03,
};

/* RFC 5040 4.8 and 5.4: Terminate with its control field only */
static const u8 terminate_head[] = {
	0x00, 0x16, 0x41, 0x47, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x00, 0x02, 0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x00,
};

/* RFC 5040 4.4: Read Request, the second on its queue */
static const u8 read_req_head[] = {
	0x00, 0x2e, 0x41, 0x41, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x00, 0x01, 0x00, 0x00, 0x00, 0x02, 0x00, 0x00, 0x00, 0x00,
};

static void rfc5041_4_2_tagged_header(struct kunit *test)
{
	struct kiw_wire_tagged hdr;
	struct kiw_ddp_seg seg;

	memset(&hdr, 0xa5, sizeof(hdr));
	kiw_ddp_encode_tagged(&hdr, IETF, KIW_RDMAP_WRITE, true, 100, 0x12345678,
			      0x0102030405060708);
	KUNIT_ASSERT_EQ(test, sizeof(hdr), sizeof(write_head));
	KUNIT_EXPECT_MEMEQ(test, &hdr, write_head, sizeof(hdr));

	KUNIT_ASSERT_EQ(test, kiw_ddp_decode(write_head, 114, IETF, ALL, &seg), KIW_PERR_NONE);
	KUNIT_EXPECT_TRUE(test, seg.tagged);
	KUNIT_EXPECT_TRUE(test, seg.last);
	KUNIT_EXPECT_EQ(test, seg.opcode, (u8)KIW_RDMAP_WRITE);
	KUNIT_EXPECT_EQ(test, seg.hdr_len, (u8)16);
	KUNIT_EXPECT_EQ(test, seg.payload_len, (u16)100);
	KUNIT_EXPECT_EQ(test, seg.stag, 0x12345678U);
	KUNIT_EXPECT_EQ(test, seg.to, 0x0102030405060708ULL);
}

static void rfc5041_4_3_untagged_header(struct kunit *test)
{
	struct kiw_wire_untagged hdr;
	struct kiw_ddp_seg seg;

	memset(&hdr, 0xa5, sizeof(hdr));
	kiw_ddp_encode_untagged(&hdr, IETF, KIW_RDMAP_SEND_SE_INV, false, 256, 0xcafef00d, 7,
				0x010203);
	KUNIT_ASSERT_EQ(test, sizeof(hdr), sizeof(send_head));
	KUNIT_EXPECT_MEMEQ(test, &hdr, send_head, sizeof(hdr));

	KUNIT_ASSERT_EQ(test, kiw_ddp_decode(send_head, 0x112, IETF, ALL, &seg), KIW_PERR_NONE);
	KUNIT_EXPECT_FALSE(test, seg.tagged);
	KUNIT_EXPECT_FALSE(test, seg.last);
	KUNIT_EXPECT_EQ(test, seg.opcode, (u8)KIW_RDMAP_SEND_SE_INV);
	KUNIT_EXPECT_EQ(test, seg.hdr_len, (u8)20);
	KUNIT_EXPECT_EQ(test, seg.payload_len, (u16)256);
	KUNIT_EXPECT_EQ(test, seg.inv_stag, 0xcafef00dU);
	KUNIT_EXPECT_EQ(test, seg.qn, 0U);
	KUNIT_EXPECT_EQ(test, seg.msn, 7U);
	KUNIT_EXPECT_EQ(test, seg.mo, 0x010203U);
}

static void rfc5040_4_8_terminate_header(struct kunit *test)
{
	struct kiw_wire_untagged hdr;

	kiw_ddp_encode_untagged(&hdr, IETF, KIW_RDMAP_TERMINATE, true, 4, 0, 1, 0);
	KUNIT_EXPECT_MEMEQ(test, &hdr, terminate_head, sizeof(hdr));
}

static void rfc5040_4_4_read_request_header(struct kunit *test)
{
	struct kiw_wire_untagged hdr;

	kiw_ddp_encode_untagged(&hdr, IETF, KIW_RDMAP_READ_REQ, true, 28, 0, 2, 0);
	KUNIT_EXPECT_MEMEQ(test, &hdr, read_req_head, sizeof(hdr));
}

/* RFC 5040 4.1: zero on transmit, ignored on receipt, unless the opcode invalidates */
static void rfc5040_4_1_invalidate_stag(struct kunit *test)
{
	struct kiw_wire_untagged hdr;
	struct kiw_ddp_seg seg;
	bool carries;
	u8 opcode;

	for (opcode = KIW_RDMAP_SEND; opcode <= KIW_RDMAP_SEND_SE_INV; opcode++) {
		carries = opcode == 4 || opcode == 6;
		kiw_ddp_encode_untagged(&hdr, IETF, opcode, true, 0, 0x11223344, 1, 0);
		KUNIT_EXPECT_EQ(test, be32_to_cpu(hdr.inv_stag), carries ? 0x11223344U : 0U);
		hdr.inv_stag = cpu_to_be32(0x55667788);
		KUNIT_ASSERT_EQ(test, kiw_ddp_decode((u8 *)&hdr, 18, IETF, ALL, &seg),
				KIW_PERR_NONE);
		KUNIT_EXPECT_EQ(test, seg.inv_stag, carries ? 0x55667788U : 0U);
	}
}

/* RFC 5044 appendix C: version 0 in both control octets, everything else unchanged */
static void rfc5044_c_rdmac_version(struct kunit *test)
{
	struct kiw_wire_untagged untagged;
	struct kiw_wire_tagged tagged;
	struct kiw_ddp_seg seg;

	kiw_ddp_encode_tagged(&tagged, RDMAC, KIW_RDMAP_READ_RESP, true, 100, 1, 2);
	KUNIT_EXPECT_EQ(test, tagged.ddp, 0xc0);
	KUNIT_EXPECT_EQ(test, tagged.rdmap, 0x02);
	KUNIT_EXPECT_EQ(test, kiw_ddp_decode((u8 *)&tagged, 114, RDMAC, OLD, &seg), KIW_PERR_NONE);
	KUNIT_EXPECT_EQ(test, kiw_ddp_decode((u8 *)&tagged, 114, IETF, ALL, &seg),
			KIW_PERR_DDP_TAGGED_VERSION);
	KUNIT_EXPECT_EQ(test, kiw_ddp_decode(write_head, 114, RDMAC, OLD, &seg),
			KIW_PERR_DDP_TAGGED_VERSION);

	kiw_ddp_encode_untagged(&untagged, RDMAC, KIW_RDMAP_SEND_SE, false, 256, 0, 7, 9);
	KUNIT_EXPECT_EQ(test, untagged.ddp, 0x00);
	KUNIT_EXPECT_EQ(test, untagged.rdmap, 0x05);
	KUNIT_EXPECT_EQ(test, kiw_ddp_decode((u8 *)&untagged, 0x112, RDMAC, OLD, &seg),
			KIW_PERR_NONE);
	KUNIT_EXPECT_EQ(test, kiw_ddp_decode((u8 *)&untagged, 0x112, IETF, ALL, &seg),
			KIW_PERR_DDP_UNTAGGED_VERSION);
	untagged.rdmap |= 0x40;
	KUNIT_EXPECT_EQ(test, kiw_ddp_decode((u8 *)&untagged, 0x112, RDMAC, OLD, &seg),
			KIW_PERR_RDMAP_VERSION);
}

static void round_trip_tagged(struct kunit *test)
{
	u32 stag, random = 1;
	struct kiw_wire_tagged hdr;
	struct kiw_ddp_seg seg;
	u16 len;
	u64 to;
	int i;

	for (i = 0; i < 1000; i++) {
		stag = kiw_test_next(&random);
		to = (u64)kiw_test_next(&random) << 32 | kiw_test_next(&random);
		len = kiw_test_next(&random) % (KIW_MULPDU_MAX - 14 + 1);
		kiw_ddp_encode_tagged(&hdr, IETF, i & 2, i & 1, len, stag, to);
		KUNIT_ASSERT_EQ(test, be16_to_cpu(hdr.ulpdu_len), len + 14);
		KUNIT_ASSERT_EQ(test, kiw_ddp_decode((u8 *)&hdr, len + 14, IETF, ALL, &seg),
				KIW_PERR_NONE);
		KUNIT_EXPECT_EQ(test, seg.opcode, i & 2);
		KUNIT_EXPECT_EQ(test, seg.last, i & 1);
		KUNIT_EXPECT_EQ(test, seg.payload_len, len);
		KUNIT_EXPECT_EQ(test, seg.stag, stag);
		KUNIT_EXPECT_EQ(test, seg.to, to);
	}
}

static void round_trip_untagged(struct kunit *test)
{
	struct kiw_wire_untagged hdr;
	u32 msn, mo, random = 2;
	struct kiw_ddp_seg seg;
	u16 len;
	int i;

	for (i = 0; i < 1000; i++) {
		msn = kiw_test_next(&random);
		mo = kiw_test_next(&random);
		len = kiw_test_next(&random) % (KIW_MULPDU_MAX - 18 + 1);
		kiw_ddp_encode_untagged(&hdr, IETF, KIW_RDMAP_SEND_INV, i & 1, len, ~msn, msn, mo);
		KUNIT_ASSERT_EQ(test, be16_to_cpu(hdr.ulpdu_len), len + 18);
		KUNIT_ASSERT_EQ(test, kiw_ddp_decode((u8 *)&hdr, len + 18, IETF, ALL, &seg),
				KIW_PERR_NONE);
		KUNIT_EXPECT_EQ(test, seg.last, i & 1);
		KUNIT_EXPECT_EQ(test, seg.payload_len, len);
		KUNIT_EXPECT_EQ(test, seg.inv_stag, ~msn);
		KUNIT_EXPECT_EQ(test, seg.msn, msn);
		KUNIT_EXPECT_EQ(test, seg.mo, mo);
	}
}

/*
 * A second implementation of RFC 5041 4, RFC 5040 4.1 and RFC 7306 4.1, with bit
 * arithmetic and one character per opcode (t: tagged, else the queue number), for a
 * segment with offset 0 and 28 octets of payload after the longer header.
 */
static enum kiw_perr oracle(u8 version, u8 opcodes, u8 ddp, u8 rdmap, u32 qn)
{
	static const char usage[] = "t1t00002--------", usages[] = "t1t000020013----";
	const char use = opcodes == 8 ? usage[rdmap % 16] : usages[rdmap % 16];

	if (ddp % 4 != version)
		return ddp >= 128 ? KIW_PERR_DDP_TAGGED_VERSION : KIW_PERR_DDP_UNTAGGED_VERSION;
	if (rdmap / 64 != version)
		return KIW_PERR_RDMAP_VERSION;
	if (use == '-' || (use == 't') != ddp / 128)
		return KIW_PERR_RDMAP_OPCODE;
	if (use == 't')
		return KIW_PERR_NONE;
	if (qn > (opcodes == 8 ? 2 : 3))
		return KIW_PERR_DDP_QN;
	if (qn != (u32)(use - '0'))
		return KIW_PERR_RDMAP_OPCODE;
	/* 8 octets of Immediate Data, 52 of an Atomic Request */
	if (rdmap % 16 == 8 || rdmap % 16 == 9)
		return KIW_PERR_DDP_TOO_LONG;
	if (rdmap % 16 == 10)
		return KIW_PERR_RDMAP_OP_UNSPEC;
	if (use != '0' && !(ddp & 64))
		return KIW_PERR_RDMAP_OP_UNSPEC;
	return KIW_PERR_NONE;
}

static u32 sweep_controls(u8 version, u8 opcodes, u32 qn)
{
	struct kiw_ddp_seg seg;
	u8 head[HEAD_MAX] = {};
	enum kiw_perr want;
	unsigned int i;
	u32 bad = 0;

	put_unaligned_be16(46, head);
	put_unaligned_be32(qn, head + 8);
	for (i = 0; i < 1 << 16; i++) {
		put_unaligned_be16(i, head + 2);
		want = oracle(version, opcodes, i >> 8, i, qn);
		if (kiw_ddp_decode(head, 46, version, opcodes, &seg) != want)
			bad++;
		else if (!want && (seg.opcode != i % 16 || seg.tagged != i >> 15 ||
				   seg.last != (i >> 14 & 1) || seg.hdr_len != 20 - 4 * (i >> 15)))
			bad++;
	}
	return bad;
}

static void every_control_and_queue(struct kunit *test)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(queues); i++) {
		KUNIT_EXPECT_EQ(test, sweep_controls(IETF, ALL, queues[i]), 0U);
		KUNIT_EXPECT_EQ(test, sweep_controls(IETF, OLD, queues[i]), 0U);
		KUNIT_EXPECT_EQ(test, sweep_controls(RDMAC, OLD, queues[i]), 0U);
	}
}

/* The expected verdict on a segment of @ulpdu_len octets with valid control octets */
static enum kiw_perr length_oracle(u8 opcode, u32 ulpdu_len)
{
	static const u8 sizes[] = { 14, 46, 14, 18, 18, 18, 18, 22, 26, 26, 70, 30 };
	const bool tagged = opcode == 0 || opcode == 2;

	if (ulpdu_len < (tagged ? 14 : 18))
		return KIW_PERR_MPA_FRAMING;
	if (ulpdu_len < sizes[opcode])
		return KIW_PERR_RDMAP_OP_UNSPEC;
	if (ulpdu_len > sizes[opcode] && (opcode == 1 || (opcode >= 8 && opcode <= 10)))
		return KIW_PERR_DDP_TOO_LONG;
	return KIW_PERR_NONE;
}

/* Copies only the readable part of @head, to the end of a separate allocation */
static void expect_length(struct kunit *test, const u8 *head, u32 ulpdu_len)
{
	const u8 opcode = head[3] % 16;
	const size_t avail = min_t(size_t, 2 + ulpdu_len, HEAD_MAX);
	struct kiw_ddp_seg seg;
	u8 *copy;

	copy = kunit_kzalloc(test, avail, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, copy);
	memcpy(copy, head, avail);
	put_unaligned_be16(ulpdu_len, copy);
	KUNIT_EXPECT_EQ_MSG(test, kiw_ddp_decode(copy, ulpdu_len, IETF, ALL, &seg),
			    length_oracle(opcode, ulpdu_len), "opcode %u length %u",
			    opcode, ulpdu_len);
	if (!length_oracle(opcode, ulpdu_len))
		KUNIT_EXPECT_EQ(test, seg.hdr_len + seg.payload_len, 2 + ulpdu_len);
	kunit_kfree(test, copy);
}

/* Every truncation, and lengths that could wrap around */
static void every_length_in_its_own_buffer(struct kunit *test)
{
	static const u32 large[] = { 127, 128, 1500, 32767, 32768, 64768, 65517, 65534, 65535 };
	static const u8 qn[] = { 0, 1, 0, 0, 0, 0, 0, 2, 0, 0, 1, 3 };
	u8 head[HEAD_MAX] = {};
	u32 opcode, len;

	for (opcode = 0; opcode < 12; opcode++) {
		head[2] = opcode == 0 || opcode == 2 ? 0xc1 : 0x41;
		head[3] = 0x40 | opcode;
		head[11] = qn[opcode];
		for (len = 0; len < 80; len++)
			expect_length(test, head, len);
		for (len = 0; len < ARRAY_SIZE(large); len++)
			expect_length(test, head, large[len]);
	}
}

/* RFC 5041 4.1, RFC 5040 4.1: reserved bits and an unused RsvdULP are not checked */
static void reserved_bits_are_ignored(struct kunit *test)
{
	u8 head[sizeof(send_head)];
	struct kiw_ddp_seg seg;
	unsigned int i;

	memcpy(head, send_head, sizeof(head));
	for (i = 0; i < 16 * 4; i++) {
		head[2] = send_head[2] | (i & 15) << 2;
		head[3] = send_head[3] | i >> 4 << 4;
		KUNIT_EXPECT_EQ(test, kiw_ddp_decode(head, 0x112, IETF, ALL, &seg), KIW_PERR_NONE);
		KUNIT_EXPECT_EQ(test, seg.opcode, (u8)KIW_RDMAP_SEND_SE_INV);
	}
}

static void any_alignment(struct kunit *test)
{
	struct kiw_ddp_seg seg, want;
	u8 buf[sizeof(send_head) + 8];
	int shift;

	kiw_ddp_decode(send_head, 0x112, IETF, ALL, &want);
	for (shift = 0; shift < 8; shift++) {
		memcpy(buf + shift, send_head, sizeof(send_head));
		KUNIT_EXPECT_EQ(test, kiw_ddp_decode(buf + shift, 0x112, IETF, ALL, &seg),
				KIW_PERR_NONE);
		KUNIT_EXPECT_MEMEQ(test, &seg, &want, sizeof(seg));
	}
}

/* Several errors at once: tests the order of the checks */
static void first_fault_counts(struct kunit *test)
{
	u8 head[HEAD_MAX] = { 0x00, 0x10, 0x00, 0x0f };
	struct kiw_ddp_seg seg;

	put_unaligned_be32(3, head + 8);
	put_unaligned_be32(1, head + 16);
	KUNIT_EXPECT_EQ(test, kiw_ddp_decode(head, 17, IETF, ALL, &seg), KIW_PERR_MPA_FRAMING);
	KUNIT_EXPECT_EQ(test, kiw_ddp_decode(head, 18, IETF, ALL, &seg),
			KIW_PERR_DDP_UNTAGGED_VERSION);
	head[2] = 0x01;
	KUNIT_EXPECT_EQ(test, kiw_ddp_decode(head, 18, IETF, ALL, &seg), KIW_PERR_RDMAP_VERSION);
	head[3] = 0x4f;
	KUNIT_EXPECT_EQ(test, kiw_ddp_decode(head, 18, IETF, ALL, &seg), KIW_PERR_RDMAP_OPCODE);
	head[3] = 0x41;
	KUNIT_EXPECT_EQ(test, kiw_ddp_decode(head, 18, IETF, OLD, &seg), KIW_PERR_DDP_QN);
	KUNIT_EXPECT_EQ(test, kiw_ddp_decode(head, 18, IETF, ALL, &seg), KIW_PERR_RDMAP_OPCODE);
	put_unaligned_be32(0, head + 8);
	KUNIT_EXPECT_EQ(test, kiw_ddp_decode(head, 18, IETF, ALL, &seg), KIW_PERR_RDMAP_OPCODE);
	put_unaligned_be32(1, head + 8);
	KUNIT_EXPECT_EQ(test, kiw_ddp_decode(head, 18, IETF, ALL, &seg), KIW_PERR_DDP_MO);
	put_unaligned_be32(0, head + 16);
	KUNIT_EXPECT_EQ(test, kiw_ddp_decode(head, 47, IETF, ALL, &seg), KIW_PERR_DDP_TOO_LONG);
	KUNIT_EXPECT_EQ(test, kiw_ddp_decode(head, 46, IETF, ALL, &seg), KIW_PERR_RDMAP_OP_UNSPEC);
	head[2] = 0x41;
	KUNIT_EXPECT_EQ(test, kiw_ddp_decode(head, 46, IETF, ALL, &seg), KIW_PERR_NONE);
}

/* RFC 5041 5.3: the segment @head is continued by @next, and by no other segment. */
static void expect_continues(struct kunit *test, const u8 *head, const u8 *next, size_t len)
{
	u8 was[sizeof(send_head)], buf[sizeof(send_head)];
	struct kiw_ddp_seg seg, first, second;
	u16 ulpdu_len = get_unaligned_be16(head);
	size_t bit;

	KUNIT_ASSERT_EQ(test, kiw_ddp_decode(head, ulpdu_len, IETF, ALL, &first), KIW_PERR_NONE);
	KUNIT_ASSERT_EQ(test, kiw_ddp_decode(next, ulpdu_len, IETF, ALL, &second), KIW_PERR_NONE);
	for (bit = 0; bit < 8 * len; bit++) {
		memcpy(was, head, sizeof(was));
		memcpy(buf, next, sizeof(buf));
		buf[bit / 8] ^= BIT(bit % 8);
		seg = first;
		KUNIT_EXPECT_FALSE(test, kiw_ddp_continues(buf, was, &seg));
		KUNIT_EXPECT_MEMEQ(test, &seg, &first, sizeof(seg));
		KUNIT_EXPECT_MEMEQ(test, was, head, len);
	}
	seg = first;
	KUNIT_EXPECT_TRUE(test, kiw_ddp_continues(next, was, &seg));
	KUNIT_EXPECT_MEMEQ(test, &seg, &second, sizeof(seg));
	KUNIT_EXPECT_MEMEQ(test, was, next, len);
	/* A repeated segment does not continue itself. */
	KUNIT_EXPECT_FALSE(test, kiw_ddp_continues(next, was, &seg));
}

static void continues_tagged(struct kunit *test)
{
	u8 head[sizeof(send_head)] = {}, next[sizeof(send_head)] = {};
	static const u64 offsets[] = { 0, 0x0102030405060708, -100ULL, -99ULL };
	int i;

	for (i = 0; i < ARRAY_SIZE(offsets); i++) {
		kiw_ddp_encode_tagged((void *)head, IETF, KIW_RDMAP_WRITE, false, 100, 0x12345678,
				      offsets[i]);
		kiw_ddp_encode_tagged((void *)next, IETF, KIW_RDMAP_WRITE, false, 100, 0x12345678,
				      offsets[i] + 100);
		expect_continues(test, head, next, sizeof(struct kiw_wire_tagged));
	}
}

static void continues_untagged(struct kunit *test)
{
	static const u32 offsets[] = { 0, 0x010203, -256U, -255U };
	u8 head[sizeof(send_head)], next[sizeof(send_head)];
	int i;

	for (i = 0; i < ARRAY_SIZE(offsets); i++) {
		kiw_ddp_encode_untagged((void *)head, IETF, KIW_RDMAP_SEND_INV, false, 256,
					0xcafef00d, 7, offsets[i]);
		kiw_ddp_encode_untagged((void *)next, IETF, KIW_RDMAP_SEND_INV, false, 256,
					0xcafef00d, 7, offsets[i] + 256);
		expect_continues(test, head, next, sizeof(struct kiw_wire_untagged));
	}
}

/* The next header: as encoded from the start, also where the TO or the MO wraps */
static void next_of_another_length(struct kunit *test)
{
	struct kiw_wire_untagged u, want_u;
	struct kiw_wire_tagged t, want_t;

	kiw_ddp_encode_tagged(&t, IETF, KIW_RDMAP_WRITE, false, 100, 0x12345678, -100ULL);
	kiw_ddp_encode_tagged(&want_t, IETF, KIW_RDMAP_WRITE, false, 7, 0x12345678, 0);
	kiw_ddp_next_tagged(&t, 100, 7);
	KUNIT_EXPECT_MEMEQ(test, &t, &want_t, sizeof(t));
	kiw_ddp_encode_untagged(&u, IETF, KIW_RDMAP_SEND, false, 256, 0, 7, -255U);
	kiw_ddp_encode_untagged(&want_u, IETF, KIW_RDMAP_SEND, false, 8, 0, 7, 1);
	kiw_ddp_next_untagged(&u, 256, 8);
	KUNIT_EXPECT_MEMEQ(test, &u, &want_u, sizeof(u));
}

/* A segment with the L bit is not continued: the next one starts another message. */
static void nothing_continues_with_the_last(struct kunit *test)
{
	struct kiw_wire_tagged head, next;
	struct kiw_ddp_seg seg;

	kiw_ddp_encode_tagged(&head, IETF, KIW_RDMAP_WRITE, true, 100, 1, 0);
	kiw_ddp_encode_tagged(&next, IETF, KIW_RDMAP_WRITE, true, 100, 1, 100);
	KUNIT_ASSERT_EQ(test, kiw_ddp_decode((u8 *)&head, 114, IETF, ALL, &seg), KIW_PERR_NONE);
	KUNIT_EXPECT_FALSE(test, kiw_ddp_continues((u8 *)&next, (u8 *)&head, &seg));
}

static struct kunit_case ddp_cases[] = {
	KUNIT_CASE(rfc5041_4_2_tagged_header),
	KUNIT_CASE(rfc5041_4_3_untagged_header),
	KUNIT_CASE(rfc5040_4_8_terminate_header),
	KUNIT_CASE(rfc5040_4_4_read_request_header),
	KUNIT_CASE(rfc5040_4_1_invalidate_stag),
	KUNIT_CASE(rfc5044_c_rdmac_version),
	KUNIT_CASE(round_trip_tagged),
	KUNIT_CASE(round_trip_untagged),
	KUNIT_CASE(every_control_and_queue),
	KUNIT_CASE(every_length_in_its_own_buffer),
	KUNIT_CASE(reserved_bits_are_ignored),
	KUNIT_CASE(any_alignment),
	KUNIT_CASE(first_fault_counts),
	KUNIT_CASE(continues_tagged),
	KUNIT_CASE(continues_untagged),
	KUNIT_CASE(next_of_another_length),
	KUNIT_CASE(nothing_continues_with_the_last),
	{}
};

static struct kunit_suite ddp_suite = {
	.name = "kiwarp_ddp",
	.test_cases = ddp_cases,
};

kunit_test_suite(ddp_suite);
