// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Terminates: any payload is parsed safely, and what we build is parsed back the same. */
#include "fuzz.h"

#include "proto/ddp.h"
#include "proto/mpa.h"
#include "proto/term.h"
#include "proto/term_first.h"

static void check_ddp(const struct kiw_term *term, const u8 *payload, size_t len)
{
	if (!term->has_ddp) {
		FUZZ_CHECK(!term->is_read && !term->ddp_len);
		return;
	}
	FUZZ_CHECK(payload[2] & KIW_TERM_HDRCT_D);
	FUZZ_CHECK(term->ddp_len == 14 || term->ddp_len == 18);
	FUZZ_CHECK(6u + term->ddp_len <= len);
	FUZZ_CHECK(!memcmp(term->ddp, payload + 6, term->ddp_len));
	FUZZ_CHECK(!term->is_read || term->is_untagged);
	FUZZ_CHECK(term->is_untagged == (term->ddp_len == 18));
}

static void decode(const struct fuzz_input *in)
{
	u8 *payload = fuzz_block(in, in->size);
	struct kiw_term term;

	FUZZ_CHECK(kiw_term_decode(payload, in->size, &term) == (in->size >= 4));
	if (in->size >= 4) {
		FUZZ_CHECK(term.perr > KIW_PERR_NONE && term.perr < KIW_PERR_COUNT);
		check_ddp(&term, payload, in->size);
	}
	free(payload);
}

/* Takes the octets as the head of a faulty FPDU, with any value in its length field */
static void encode(const struct fuzz_input *in)
{
	enum kiw_perr perr = 1 + in->param[0] % (KIW_PERR_COUNT - 1);
	const struct kiw_perr_info *info = kiw_perr_info(perr);
	u8 *head = fuzz_block(in, in->size);
	u8 *buf = malloc(KIW_TERM_MAX);
	struct kiw_term term;
	size_t len;

	len = kiw_term_encode(buf, perr, head, in->size);
	FUZZ_CHECK(len >= 4 && len <= KIW_TERM_MAX);
	FUZZ_CHECK(len - 4 <= in->size && (len == 4 || !memcmp(buf + 4, head, len - 4)));
	FUZZ_CHECK(kiw_term_decode(buf, len, &term));
	FUZZ_CHECK(term.layer == info->layer && term.etype == info->etype);
	FUZZ_CHECK(term.code == info->code);
	/* Not a separate error on the wire */
	FUZZ_CHECK(term.perr == (perr == KIW_PERR_RDMAP_ALIGN ? KIW_PERR_RDMAP_STREAM : perr));
	FUZZ_CHECK(term.has_ddp == (len > 4));
	check_ddp(&term, buf, len);
	free(buf);
	free(head);
}

/* A Terminate that is the whole stream is an FPDU that our own receiver accepts. */
static void first(const struct fuzz_input *in)
{
	const struct kiw_mpa_outcome agreed = {
		.crc = in->param[1] & 1,
		.tx_markers = in->param[1] & 2,
		.version = in->param[1] & 4 ? KIW_DDP_VERSION_RDMAC : KIW_DDP_VERSION_IETF,
	};
	enum kiw_perr perr = KIW_PERR_MPA_CRC + in->param[2] % (KIW_PERR_COUNT - KIW_PERR_MPA_CRC);
	u8 *buf = malloc(KIW_TERM_FIRST_MAX);
	struct kiw_ddp_seg seg;
	struct kiw_fpdu fpdu;
	struct kiw_term term;
	size_t len;

	len = kiw_term_first(buf, perr, &agreed);
	FUZZ_CHECK(len <= KIW_TERM_FIRST_MAX);
	if (agreed.tx_markers)
		len = kiw_mpa_strip(buf, 0, len);
	FUZZ_CHECK(kiw_mpa_frame_rx(buf, len, &fpdu) == KIW_MPA_RX_READY && fpdu.total == len);
	FUZZ_CHECK(kiw_ddp_decode(buf, fpdu.ulpdu_len, agreed.version, KIW_RDMAP_OPCODES_5040,
				  &seg) == KIW_PERR_NONE);
	FUZZ_CHECK(seg.opcode == KIW_RDMAP_TERMINATE && seg.msn == 1);
	FUZZ_CHECK(kiw_term_decode(buf + seg.hdr_len, seg.payload_len, &term));
	FUZZ_CHECK(term.perr == perr);
	free(buf);
}

/**
 * fuzz_one() - run one input of libFuzzer
 * @data: the payload of a Terminate, or the faulty FPDU to report
 * @size: number of octets
 *
 * Context: user space.
 * Return: 0.
 */
int fuzz_one(const u8 *data, size_t size)
{
	struct fuzz_input in = fuzz_input(data, size);

	decode(&in);
	encode(&in);
	first(&in);
	return 0;
}
