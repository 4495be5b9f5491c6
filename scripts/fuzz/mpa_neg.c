// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * MPA startup: parses any octets as a Request or a Reply, checks that an accepted frame parses
 * the same after it is built again, and that two ends with any settings agree on the result of
 * their negotiation.
 */
#include "fuzz.h"

#include "proto/mpa_neg.h"

#define DEPTH_MAX	0x3ffe
#define NO_DEPTH	KIW_MPA_V2_NOT_NEGOTIATED

static u16 depth(u8 octet)
{
	return octet < 0xf0 ? octet : DEPTH_MAX - (octet & 1);
}

/* Builds the settings of an end from 8 octets of parameters */
static struct kiw_mpa_local an_end(const u8 *p)
{
	static const u8 order[3] = { KIW_RTR_WRITE, KIW_RTR_READ, KIW_RTR_SEND };
	struct kiw_mpa_local end = {
		.rev = 1 + (p[0] & 1), .crc = p[0] & 2, .markers = p[0] & 4, .p2p = p[0] & 8,
		.rdmac = p[0] & 16, .rtr = p[1] & 7, .max_ird = depth(p[2]),
		.max_ord = depth(p[3]), .ird = depth(p[4]), .ord = depth(p[5]),
	};
	int used = 0;
	int i;

	for (i = 0; i < 3; i++)
		if (end.rtr & order[(i + p[6]) % 3])
			end.rtr_order[used++] = order[(i + p[6]) % 3];
	return end;
}

static bool is_same(const struct kiw_mpa_frame *a, const struct kiw_mpa_frame *b)
{
	return a->rev == b->rev && a->markers == b->markers && a->crc == b->crc &&
	       a->reject == b->reject && a->enhanced == b->enhanced && a->p2p == b->p2p &&
	       a->rtr == b->rtr && a->ird == b->ird && a->ord == b->ord;
}

/* Writes @frame and reads it as @local would; the private data is @pd. */
static void through_the_wire(const struct kiw_mpa_frame *frame, bool reply,
			     const struct kiw_mpa_local *local, const u8 *pd, u16 pd_len,
			     struct kiw_mpa_frame *got)
{
	u8 *buf = malloc(KIW_MPA_FRAME_MAX);
	size_t len, need;

	len = kiw_mpa_build(buf, frame, reply, pd, pd_len);
	FUZZ_CHECK(len && len <= KIW_MPA_FRAME_MAX);
	FUZZ_CHECK(kiw_mpa_parse(buf, len, reply, local, got, &need) == KIW_MPA_OK);
	FUZZ_CHECK(need == len && got->pd_len == pd_len);
	FUZZ_CHECK(!pd_len || !memcmp(buf + got->pd_offset, pd, pd_len));
	free(buf);
}

/*
 * Parses octet by octet: a verdict is final, and the parser never waits for too much. (Only the
 * reason of a refusal may change: a prefix of the other role's key may turn out to be no key.)
 */
static void piecemeal(const struct fuzz_input *in, bool reply, const struct kiw_mpa_local *local,
		      enum kiw_mpa_verdict wanted, size_t end)
{
	struct kiw_mpa_frame frame;
	enum kiw_mpa_verdict v;
	size_t len, need;
	u8 *buf;

	for (len = 0; len < in->size && len < 24; len++) {
		buf = fuzz_block(in, len);
		v = kiw_mpa_parse(buf, len, reply, local, &frame, &need);
		free(buf);
		if (v == KIW_MPA_MORE)
			FUZZ_CHECK(need > len && need <= KIW_MPA_FRAME_MAX);
		else if (v == KIW_MPA_OK)
			FUZZ_CHECK(wanted == KIW_MPA_OK && end <= len);
		else
			FUZZ_CHECK(wanted != KIW_MPA_OK && wanted != KIW_MPA_MORE);
	}
}

static bool parse(const struct fuzz_input *in, bool reply, const struct kiw_mpa_local *local,
		  struct kiw_mpa_frame *frame)
{
	u8 *buf = fuzz_block(in, in->size);
	struct kiw_mpa_frame again;
	enum kiw_mpa_verdict v;
	size_t need;

	v = kiw_mpa_parse(buf, in->size, reply, local, frame, &need);
	FUZZ_CHECK(v <= KIW_MPA_BAD_LENGTH);
	if (v == KIW_MPA_MORE)
		FUZZ_CHECK(need > in->size && need <= KIW_MPA_FRAME_MAX);
	piecemeal(in, reply, local, v, need);
	if (v == KIW_MPA_OK) {
		FUZZ_CHECK(need <= in->size && frame->pd_offset + frame->pd_len == (int)need);
		FUZZ_CHECK(frame->pd_len <= KIW_MPA_PD_MAX);
		through_the_wire(frame, reply, local, buf + frame->pd_offset, frame->pd_len,
				 &again);
		FUZZ_CHECK(is_same(frame, &again));
	}
	free(buf);
	return v == KIW_MPA_OK;
}

/* No matter what the peer sends, the result never exceeds the limits of the device. */
static void within_limits(const struct kiw_mpa_local *local, const struct kiw_mpa_outcome *out)
{
	FUZZ_CHECK(out->ird <= local->max_ird);
	FUZZ_CHECK(out->ord <= local->max_ord || (out->rtr == KIW_RTR_READ && out->ord == 1));
	FUZZ_CHECK(out->rev <= 2 && out->version <= 1);
	FUZZ_CHECK(out->rev || (out->crc && out->tx_markers && out->rx_markers));
	FUZZ_CHECK(out->p2p || !out->rtr);
	FUZZ_CHECK(!(out->rtr & ~local->rtr));
}

static void answer_any(const struct kiw_mpa_local *local, const struct kiw_mpa_frame *req)
{
	struct kiw_mpa_frame reply, got;
	struct kiw_mpa_outcome out;
	struct kiw_mpa_local all = { .rev = 2, .rdmac = true };
	u16 ird, ord;

	kiw_mpa_peer_limits(req, local, &ird, &ord);
	FUZZ_CHECK(ird <= local->max_ird && ord <= local->max_ord);
	if (kiw_mpa_answer(local, req, &reply, &out)) {
		within_limits(local, &out);
		through_the_wire(&reply, true, &all, NULL, 0, &got);
		FUZZ_CHECK(is_same(&reply, &got) && !got.reject && got.rev == req->rev);
	}
	kiw_mpa_refuse(local, req, &reply);
	through_the_wire(&reply, true, &all, NULL, 0, &got);
	FUZZ_CHECK(is_same(&reply, &got) && got.reject);
}

static void conclude_any(const struct kiw_mpa_local *local, const struct kiw_mpa_frame *reply)
{
	struct kiw_mpa_outcome out;
	struct kiw_mpa_frame req;
	enum kiw_perr perr;

	kiw_mpa_request(local, &req);
	perr = kiw_mpa_conclude(local, &req, reply, &out);
	FUZZ_CHECK(perr == KIW_PERR_NONE || perr >= KIW_PERR_MPA_LOCAL);
	if (perr == KIW_PERR_NONE)
		within_limits(local, &out);
}

/* Both ends come to the same result: RFC 5044 7.1, RFC 6581 9 */
static void both_agree(const struct kiw_mpa_outcome *a, const struct kiw_mpa_outcome *b)
{
	FUZZ_CHECK(a->rev == b->rev && a->version == b->version && a->crc == b->crc);
	FUZZ_CHECK(a->tx_markers == b->rx_markers && a->rx_markers == b->tx_markers);
	FUZZ_CHECK(a->p2p == b->p2p);
	if (a->p2p)
		FUZZ_CHECK(a->rtr && !(a->rtr & (a->rtr - 1)) && (a->rtr & b->rtr));
}

static void two_ends(const struct kiw_mpa_local *one, const struct kiw_mpa_local *other)
{
	struct kiw_mpa_frame said, req, answered, reply;
	struct kiw_mpa_outcome a, b;
	struct kiw_mpa_local reader = { .rev = 2, .rdmac = true };

	kiw_mpa_request(one, &said);
	through_the_wire(&said, false, &reader, NULL, 0, &req);
	FUZZ_CHECK(is_same(&said, &req));
	if (!kiw_mpa_answer(other, &req, &answered, &b))
		return;
	through_the_wire(&answered, true, &reader, NULL, 0, &reply);
	if (kiw_mpa_conclude(one, &said, &reply, &a) != KIW_PERR_NONE)
		return;
	both_agree(&a, &b);
	if (said.enhanced && said.ord != NO_DEPTH)
		FUZZ_CHECK(a.ord <= b.ird);
	if (said.enhanced && said.ird != NO_DEPTH)
		FUZZ_CHECK(b.ord <= a.ird);
}

/**
 * fuzz_one() - run one input of libFuzzer
 * @data: the start of a stream; the parameters are the settings of two ends
 * @size: number of octets
 *
 * Context: user space.
 * Return: 0.
 */
int fuzz_one(const u8 *data, size_t size)
{
	struct fuzz_input in = fuzz_input(data, size);
	struct kiw_mpa_local one = an_end(in.param);
	struct kiw_mpa_local other = an_end(in.param + 8);
	struct kiw_mpa_frame frame;

	if (parse(&in, false, &one, &frame))
		answer_any(&one, &frame);
	if (parse(&in, true, &one, &frame)) {
		conclude_any(&one, &frame);
		/* Once more with depths close to those of this end */
		frame.ird = depth(in.param[7]);
		frame.ord = depth(in.param[15]);
		conclude_any(&one, &frame);
	}
	two_ends(&one, &other);
	return 0;
}
