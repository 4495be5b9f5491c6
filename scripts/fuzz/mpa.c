// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* MPA framing: the ends of FPDUs with and without markers, and that both parsers agree. */
#include "fuzz.h"

#include "proto/mpa.h"

/* RFC 5044 3 and 4.1: 64768 octets of ULPDU, length, padding and CRC */
#define FPDU_MAX	64776
/* The same with a marker per 508 octets, and one before it */
#define MARKED_MAX	(FPDU_MAX + 4 * 129)

static void check_extent(const struct kiw_fpdu *fpdu, u32 max)
{
	FUZZ_CHECK(fpdu->pad < 4);
	FUZZ_CHECK(fpdu->total >= 20 && fpdu->total <= max);
	FUZZ_CHECK(fpdu->total % 4 == 0);
}

static enum kiw_mpa_rx unmarked(const struct fuzz_input *in)
{
	u8 *head = fuzz_block(in, in->size < 2 ? in->size : 2);
	struct kiw_fpdu fpdu;
	enum kiw_mpa_rx rx;

	rx = kiw_mpa_frame_rx(head, in->size, &fpdu);
	if (rx == KIW_MPA_RX_BAD) {
		FUZZ_CHECK(in->size >= 2);
		FUZZ_CHECK(fpdu.ulpdu_len < 14 || fpdu.ulpdu_len > 64768);
	} else {
		check_extent(&fpdu, FPDU_MAX);
		FUZZ_CHECK((rx == KIW_MPA_RX_READY) == (in->size >= fpdu.total));
	}
	free(head);
	return rx;
}

/* A stream gives the same verdict and extent with its markers and with the markers removed. */
static void marked(const struct fuzz_input *in)
{
	u32 offset = fuzz_u32(in, 0) & ~3;
	struct fuzz_input rest = *in;
	struct kiw_fpdu with, without;
	enum kiw_mpa_rx rx, plain;
	u8 *buf;

	buf = fuzz_block(in, in->size);
	rest.size = kiw_mpa_strip(buf, offset, in->size);
	rest.data = buf;
	FUZZ_CHECK(rest.size <= in->size);
	FUZZ_CHECK(rest.size == kiw_mpa_unmarked_size(offset, in->size));
	rx = kiw_mpa_frame_rx_marked(buf, in->size, offset, &with);
	plain = kiw_mpa_frame_rx(buf, rest.size, &without);
	FUZZ_CHECK(rx == plain && rx == unmarked(&rest));
	FUZZ_CHECK(with.ulpdu_len == without.ulpdu_len && with.pad == without.pad);
	FUZZ_CHECK(kiw_mpa_unmarked_size(offset, with.total) == without.total);
	if (rx != KIW_MPA_RX_BAD) {
		check_extent(&with, MARKED_MAX);
		FUZZ_CHECK((rx == KIW_MPA_RX_READY) == (in->size >= with.total));
	}
	free(buf);
}

/* Converts between sizes without and with markers, in both directions */
static void sizes(u32 offset, u32 octets)
{
	u32 size = kiw_mpa_marked_size(offset, octets);

	FUZZ_CHECK(size >= octets && size - octets <= 4 * (octets / 508 + 1));
	FUZZ_CHECK(kiw_mpa_unmarked_size(offset, size) == octets);
	FUZZ_CHECK(!octets || kiw_mpa_unmarked_size(offset, size - 1) == octets - 1);
	FUZZ_CHECK(kiw_mpa_to_marker(offset) < 512);
	FUZZ_CHECK((offset + kiw_mpa_to_marker(offset)) % 512 == 0);
}

/* Writes @in with markers inserted wherever one is due, and removes them again. */
static void there_and_back(const struct fuzz_input *in)
{
	u32 start = fuzz_u32(in, 0) & ~3;
	u32 size = kiw_mpa_marked_size(start, in->size);
	u8 *buf = malloc(size + !size);
	struct kiw_wire_marker marker;
	u32 at = 0;
	u32 i;

	for (i = 0; i < in->size; i++) {
		if (!kiw_mpa_to_marker(start + at)) {
			kiw_mpa_marker_encode(&marker, start + at, start);
			FUZZ_CHECK(kiw_mpa_marker_agrees(&marker, start + at, start));
			memcpy(buf + at, &marker, sizeof(marker));
			at += sizeof(marker);
		}
		buf[at++] = in->data[i];
	}
	FUZZ_CHECK(at == size);
	FUZZ_CHECK(kiw_mpa_strip(buf, start, size) == in->size);
	FUZZ_CHECK(!in->size || !memcmp(buf, in->data, in->size));
	free(buf);
}

static void mulpdu(u32 emss)
{
	u32 ulpdu = kiw_mpa_mulpdu(emss);

	FUZZ_CHECK(ulpdu >= 128 && ulpdu <= 64768);
	FUZZ_CHECK(ulpdu == 128 || kiw_mpa_fpdu_size(ulpdu) <= emss);
}

/**
 * fuzz_one() - run one input of libFuzzer
 * @data: a piece of a stream
 * @size: number of octets
 *
 * Context: user space.
 * Return: 0.
 */
int fuzz_one(const u8 *data, size_t size)
{
	struct fuzz_input in = fuzz_input(data, size);

	unmarked(&in);
	marked(&in);
	there_and_back(&in);
	sizes(fuzz_u32(&in, 0) & ~3, fuzz_u32(&in, 4) & 0x7fffff);
	mulpdu(fuzz_u32(&in, 8));
	return 0;
}
