// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * MPA negotiation for every combination of flags, revisions and policies, and for corner cases
 * of the depths. The tests check the requirements of RFC 6581 9.1 and 9.2 as properties of the
 * result, rather than compute it again. (proto/mpa_neg.c is included by mpa_neg_kunit.c.)
 */
#include "proto/mpa_neg.h"

#include "util.h"

#define ALL_RTR		(KIW_RTR_SEND | KIW_RTR_WRITE | KIW_RTR_READ)
#define LEFT_ALONE	0x3fff

#define MAX_IRD		16
#define MAX_ORD		24

/* 0 and 1, both maxima and their neighbours, the largest number, and "not negotiated" */
static const u16 corners[] = {
	0, 1, MAX_IRD - 1, MAX_IRD, MAX_IRD + 1, MAX_ORD, MAX_ORD + 1, 0x3ffe, LEFT_ALONE,
};

#define CORNERS		ARRAY_SIZE(corners)

static struct kiw_mpa_local default_local(void)
{
	return (struct kiw_mpa_local){
		.rev = 2, .crc = true, .p2p = true, .rtr = ALL_RTR,
		.rtr_order = { KIW_RTR_WRITE, KIW_RTR_READ, KIW_RTR_SEND },
		.ird = 4, .ord = 4, .max_ird = MAX_IRD, .max_ord = MAX_ORD,
	};
}

static struct kiw_mpa_frame enhanced(u16 ird, u16 ord, u8 rtr)
{
	return (struct kiw_mpa_frame){
		.rev = 2, .crc = true, .enhanced = true, .p2p = true, .rtr = rtr,
		.ird = ird, .ord = ord,
	};
}

static bool has(u8 rtr, u8 kind)
{
	return rtr & kind;
}

/* RFC 6581 9.1: "responder ORD <= initiator IRD", 0x3fff leaves it "unchanged" */
static void expect_ord(struct kunit *test, const struct kiw_mpa_local *local, u16 peer_ird,
		       u16 told, u16 ord)
{
	const u16 ours = local->ord < local->max_ord ? local->ord : local->max_ord;

	if (peer_ird == LEFT_ALONE) {
		KUNIT_ASSERT_EQ(test, told, LEFT_ALONE);
		KUNIT_ASSERT_EQ(test, ord, ours);
		return;
	}
	KUNIT_ASSERT_EQ(test, told, ord);
	KUNIT_ASSERT_LE(test, ord, peer_ird);
	KUNIT_ASSERT_LE(test, ord, ours);
	KUNIT_ASSERT_TRUE(test, ord == peer_ird || ord == ours);
}

/* RFC 6581 9.1: "initiator ORD <= responder IRD", within the limits of the device */
static void expect_ird(struct kunit *test, const struct kiw_mpa_local *local, u16 peer_ord,
		       u16 told, u16 ird, bool for_rtr)
{
	const u16 ours = local->ird < local->max_ird ? local->ird : local->max_ird;

	if (peer_ord == LEFT_ALONE) {
		KUNIT_ASSERT_EQ(test, told, LEFT_ALONE);
		KUNIT_ASSERT_EQ(test, ird, ours);
		return;
	}
	KUNIT_ASSERT_EQ(test, told, ird);
	KUNIT_ASSERT_GE(test, ird, ours);
	KUNIT_ASSERT_LE(test, ird, local->max_ird);
	KUNIT_ASSERT_TRUE(test, ird >= peer_ord || ird == local->max_ird);
	KUNIT_ASSERT_TRUE(test, ird == ours || ird <= peer_ord || (for_rtr && ird == 1));
}

/* Whether a zero-length RDMA Read can be served, if necessary by raising the IRD */
static bool read_is_possible(const struct kiw_mpa_local *local, const struct kiw_mpa_frame *req)
{
	if (!local->max_ird)
		return false;
	return local->ird || req->ord != LEFT_ALONE;
}

static bool may_connect(const struct kiw_mpa_local *local, const struct kiw_mpa_frame *req)
{
	if (req->rev > local->rev || (!req->rev && !local->rdmac))
		return false;
	if (!req->enhanced || !req->p2p)
		return true;
	if (has(req->rtr, KIW_RTR_SEND) && has(local->rtr, KIW_RTR_SEND))
		return true;
	if (has(req->rtr, KIW_RTR_WRITE) && has(local->rtr, KIW_RTR_WRITE))
		return true;
	return has(req->rtr, KIW_RTR_READ) && has(local->rtr, KIW_RTR_READ) &&
	       read_is_possible(local, req);
}

/* RFC 6581 9.2: "SHOULD set the corresponding Control Flag if [it] can support that option" */
static void expect_rtr(struct kunit *test, const struct kiw_mpa_local *local,
		       const struct kiw_mpa_frame *req, u8 rtr)
{
	KUNIT_ASSERT_NE(test, rtr, 0);
	KUNIT_ASSERT_EQ(test, has(rtr, KIW_RTR_SEND),
			has(req->rtr, KIW_RTR_SEND) && has(local->rtr, KIW_RTR_SEND));
	KUNIT_ASSERT_EQ(test, has(rtr, KIW_RTR_WRITE),
			has(req->rtr, KIW_RTR_WRITE) && has(local->rtr, KIW_RTR_WRITE));
	KUNIT_ASSERT_EQ(test, has(rtr, KIW_RTR_READ),
			has(req->rtr, KIW_RTR_READ) && has(local->rtr, KIW_RTR_READ) &&
			read_is_possible(local, req));
}

/*
 * RFC 5044 7.1.1: CRCs if either end sets C; each end sets M for the direction it receives.
 * Appendix C figure 14: with revision 0 everything is on and the version is 0, otherwise 1.
 */
static void expect_framing(struct kunit *test, const struct kiw_mpa_frame *ours,
			   const struct kiw_mpa_frame *peers, const struct kiw_mpa_outcome *out)
{
	if (!out->rev) {
		KUNIT_ASSERT_TRUE(test, out->crc && out->tx_markers && out->rx_markers);
		KUNIT_ASSERT_EQ(test, out->version, 0);
		return;
	}
	KUNIT_ASSERT_EQ(test, out->crc, !(!ours->crc && !peers->crc));
	KUNIT_ASSERT_EQ(test, out->tx_markers, peers->markers);
	KUNIT_ASSERT_EQ(test, out->rx_markers, ours->markers);
	KUNIT_ASSERT_EQ(test, out->version, 1);
}

static void expect_answer(struct kunit *test, const struct kiw_mpa_local *local,
			  const struct kiw_mpa_frame *req)
{
	struct kiw_mpa_outcome out;
	struct kiw_mpa_frame reply;
	bool connects;

	connects = kiw_mpa_answer(local, req, &reply, &out);
	KUNIT_ASSERT_EQ_MSG(test, connects, may_connect(local, req), "rev %u flags %d%d%d rtr %u",
			    req->rev, req->markers, req->enhanced, req->p2p, req->rtr);
	if (!connects)
		return;
	KUNIT_ASSERT_EQ(test, reply.rev, req->rev);
	KUNIT_ASSERT_EQ(test, out.rev, req->rev);
	KUNIT_ASSERT_FALSE(test, reply.reject);
	KUNIT_ASSERT_EQ(test, reply.markers, local->markers || !req->rev);
	KUNIT_ASSERT_EQ(test, reply.crc, req->crc || local->crc || !req->rev);
	expect_framing(test, &reply, req, &out);
	KUNIT_ASSERT_EQ(test, reply.enhanced, req->enhanced);
	KUNIT_ASSERT_EQ(test, reply.p2p, req->enhanced && req->p2p);
	KUNIT_ASSERT_EQ(test, out.p2p, reply.p2p);
	KUNIT_ASSERT_EQ(test, out.rtr, reply.rtr);
	if (reply.p2p)
		expect_rtr(test, local, req, reply.rtr);
	else
		KUNIT_ASSERT_EQ(test, reply.rtr, 0);
	if (!req->enhanced)
		return;
	expect_ord(test, local, req->ird, reply.ord, out.ord);
	expect_ird(test, local, req->ord, reply.ird, out.ird, has(reply.rtr, KIW_RTR_READ));
	if (has(reply.rtr, KIW_RTR_READ))
		KUNIT_ASSERT_GE(test, out.ird, 1);
}

/*
 * Builds the flags of both ends from 16 bits. The peer's: revision, M, C, S and A, RTR; ours:
 * C, RTR, revision, M, revision 0
 */
static void flags_of_bits(u32 bits, struct kiw_mpa_local *local, struct kiw_mpa_frame *req)
{
	req->rev = (bits & 3) % 3;
	req->markers = bits & 4;
	req->crc = bits & 8;
	req->enhanced = req->rev == 2 && (bits & 16);
	req->p2p = req->enhanced && (bits & 32);
	req->rtr = req->p2p ? (bits >> 6) & ALL_RTR : 0;
	local->crc = bits & 0x200;
	local->rtr = (bits >> 10) & ALL_RTR;
	local->rev = 1 + ((bits >> 13) & 1);
	local->markers = bits & 0x4000;
	local->rdmac = bits & 0x8000;
}

#define FLAG_SETS	0x10000

static void every_set_of_flags_is_answered(struct kunit *test)
{
	struct kiw_mpa_local local = default_local();
	struct kiw_mpa_frame req = enhanced(3, 3, 0);
	u32 depths;
	u32 bits;

	for (bits = 0; bits < FLAG_SETS; bits++) {
		flags_of_bits(bits, &local, &req);
		for (depths = 0; depths < 16; depths++) {
			local.ird = depths & 1 ? 4 : 0;
			local.max_ird = depths & 2 ? MAX_IRD : 0;
			req.ord = depths & 4 ? 3 : 0;
			if (depths & 8)
				req.ord = LEFT_ALONE;
			expect_answer(test, &local, &req);
		}
	}
}

static void every_depth_is_answered(struct kunit *test)
{
	static const u8 rtrs[] = { 0, KIW_RTR_READ, ALL_RTR };
	struct kiw_mpa_local local = default_local();
	struct kiw_mpa_frame req;
	u32 i;

	for (i = 0; i < CORNERS * CORNERS * CORNERS * CORNERS * ARRAY_SIZE(rtrs); i++) {
		local.ird = corners[i % CORNERS];
		local.ord = corners[i / CORNERS % CORNERS];
		req = enhanced(corners[i / (CORNERS * CORNERS) % CORNERS],
			       corners[i / (CORNERS * CORNERS * CORNERS) % CORNERS],
			       rtrs[i / (CORNERS * CORNERS * CORNERS * CORNERS)]);
		req.p2p = req.rtr;
		expect_answer(test, &local, &req);
	}
}

/* By hand from RFC 6581 9.1: depths requested, depths accepted with, depths told and used */
static void known_depths(struct kunit *test)
{
	static const struct {
		u16 req_ird, req_ord, ird, ord;
		u16 told_ird, told_ord, used_ird, used_ord;
	} rows[] = {
		{ 8, 8, 8, 8,			8, 8, 8, 8 },
		{ 2, 8, 4, 4,			8, 2, 8, 2 },
		{ 8, 2, 4, 4,			4, 4, 4, 4 },
		{ 0, 0, 4, 4,			4, 0, 4, 0 },
		{ 0, 0, 0, 0,			1, 0, 1, 0 },
		{ 128, 128, 4, 200,		MAX_IRD, MAX_ORD, MAX_IRD, MAX_ORD },
		{ LEFT_ALONE, 8, 4, 4,		8, LEFT_ALONE, 8, 4 },
		{ 2, LEFT_ALONE, 4, 4,		LEFT_ALONE, 2, 4, 2 },
		{ LEFT_ALONE, LEFT_ALONE, 0, 0,	LEFT_ALONE, LEFT_ALONE, 0, 0 },
		{ 0x3ffe, 0x3ffe, 1, 1,		MAX_IRD, 1, MAX_IRD, 1 },
	};
	struct kiw_mpa_local local = default_local();
	struct kiw_mpa_outcome out;
	struct kiw_mpa_frame reply;
	struct kiw_mpa_frame req;
	int i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		req = enhanced(rows[i].req_ird, rows[i].req_ord, ALL_RTR);
		local.ird = rows[i].ird;
		local.ord = rows[i].ord;
		KUNIT_EXPECT_TRUE(test, kiw_mpa_answer(&local, &req, &reply, &out));
		KUNIT_EXPECT_EQ_MSG(test, reply.ird, rows[i].told_ird, "row %d", i);
		KUNIT_EXPECT_EQ_MSG(test, reply.ord, rows[i].told_ord, "row %d", i);
		KUNIT_EXPECT_EQ_MSG(test, out.ird, rows[i].used_ird, "row %d", i);
		KUNIT_EXPECT_EQ_MSG(test, out.ord, rows[i].used_ord, "row %d", i);
	}
}

static void ulp_learns_the_peers_limits(struct kunit *test)
{
	struct kiw_mpa_local local = default_local();
	struct kiw_mpa_frame plain = { .rev = 1 };
	struct kiw_mpa_frame req;
	u16 expected;
	u16 ird;
	u16 ord;
	u32 i;

	kiw_mpa_peer_limits(&plain, &local, &ird, &ord);
	KUNIT_EXPECT_EQ(test, ird, MAX_IRD);
	KUNIT_EXPECT_EQ(test, ord, MAX_ORD);
	for (i = 0; i < CORNERS; i++) {
		req = enhanced(corners[i], 7, ALL_RTR);
		kiw_mpa_peer_limits(&req, &local, &ird, &ord);
		expected = corners[i] > MAX_ORD ? MAX_ORD : corners[i];
		KUNIT_EXPECT_EQ(test, ird, 7);
		KUNIT_EXPECT_EQ(test, ord, expected);

		req = enhanced(9, corners[i], ALL_RTR);
		kiw_mpa_peer_limits(&req, &local, &ird, &ord);
		expected = corners[i] > MAX_IRD ? MAX_IRD : corners[i];
		KUNIT_EXPECT_EQ(test, ird, expected);
		KUNIT_EXPECT_EQ(test, ord, 9);
	}
}

static void every_refusal_is_of_the_requests_kind(struct kunit *test)
{
	struct kiw_mpa_local local = default_local();
	struct kiw_mpa_frame req = enhanced(1, 1, 0);
	struct kiw_mpa_frame reply;
	u32 bits;
	u8 rev;

	for (bits = 0; bits < FLAG_SETS; bits++) {
		flags_of_bits(bits, &local, &req);
		kiw_mpa_refuse(&local, &req, &reply);
		KUNIT_ASSERT_TRUE(test, reply.reject);
		/* RFC 5044 C.2.1: if revision 0 is not spoken, the Reply is of revision 1 */
		rev = req.rev < local.rev ? req.rev : local.rev;
		if (!rev && !local.rdmac)
			rev = 1;
		KUNIT_ASSERT_EQ(test, reply.rev, rev);
		KUNIT_ASSERT_EQ(test, reply.markers, local.markers || !rev);
		KUNIT_ASSERT_EQ(test, reply.crc, req.crc || local.crc || !rev);
		KUNIT_ASSERT_EQ(test, reply.enhanced, req.enhanced && local.rev == 2);
		KUNIT_ASSERT_EQ(test, reply.p2p, reply.enhanced && req.p2p);
		KUNIT_ASSERT_EQ(test, reply.rtr, reply.p2p ? local.rtr : 0);
		/* RFC 6581 9.1: "specify the required ORD", however little the peer has */
		KUNIT_ASSERT_EQ(test, reply.ird, reply.enhanced ? 4 : 0);
		KUNIT_ASSERT_EQ(test, reply.ord, reply.enhanced ? 4 : 0);
	}
	local = default_local();
	local.ird = 99;
	local.ord = 99;
	req = enhanced(LEFT_ALONE, 1, ALL_RTR);
	kiw_mpa_refuse(&local, &req, &reply);
	KUNIT_EXPECT_EQ(test, reply.ird, MAX_IRD);
	KUNIT_EXPECT_EQ(test, reply.ord, LEFT_ALONE);
	req = enhanced(1, LEFT_ALONE, ALL_RTR);
	kiw_mpa_refuse(&local, &req, &reply);
	KUNIT_EXPECT_EQ(test, reply.ird, LEFT_ALONE);
	KUNIT_EXPECT_EQ(test, reply.ord, MAX_ORD);
}

static void request_says_what_is_wanted(struct kunit *test)
{
	struct kiw_mpa_local local = default_local();
	struct kiw_mpa_frame req;
	u32 i;

	for (i = 0; i < 256; i++) {
		local.rev = 1 + (i & 1);
		local.crc = i & 2;
		local.p2p = i & 4;
		local.rtr = (i >> 3) & ALL_RTR;
		local.markers = i & 64;
		local.rdmac = i & 128;
		kiw_mpa_request(&local, &req);
		KUNIT_EXPECT_EQ(test, req.rev, local.rev);
		KUNIT_EXPECT_EQ(test, req.crc, local.crc);
		KUNIT_EXPECT_EQ(test, req.markers, local.markers);
		KUNIT_EXPECT_FALSE(test, req.reject);
		KUNIT_EXPECT_EQ(test, req.enhanced, local.rev == 2);
		KUNIT_EXPECT_EQ(test, req.p2p, local.rev == 2 && local.p2p && local.rtr);
		KUNIT_EXPECT_EQ(test, req.rtr, req.p2p ? local.rtr : 0);
	}
	local = default_local();
	for (i = 0; i < CORNERS; i++) {
		local.ird = corners[i];
		local.ord = corners[CORNERS - 1 - i];
		kiw_mpa_request(&local, &req);
		KUNIT_EXPECT_EQ(test, req.ird, local.ird > MAX_IRD ? MAX_IRD : local.ird);
		KUNIT_EXPECT_EQ(test, req.ord, local.ord > MAX_ORD ? MAX_ORD : local.ord);
		KUNIT_EXPECT_EQ(test, req.rtr, ALL_RTR);
	}
	local.ird = U16_MAX;
	local.max_ird = U16_MAX;
	local.max_ord = 0;
	kiw_mpa_request(&local, &req);
	KUNIT_EXPECT_EQ(test, req.ird, 0x3ffe);
	KUNIT_EXPECT_EQ(test, req.ord, 0);
	KUNIT_EXPECT_EQ(test, req.rtr, KIW_RTR_SEND | KIW_RTR_WRITE);
}

/* The expected kind of RTR: the first in our order that the responder offered and can take */
static u8 expected_rtr(const struct kiw_mpa_local *local, const struct kiw_mpa_frame *req,
		       const struct kiw_mpa_frame *reply)
{
	const u8 *order = local->rtr_order;
	int i;

	for (i = 0; i < 3 && order[i]; i++) {
		if (!has(req->rtr, order[i]) || !has(reply->rtr, order[i]))
			continue;
		if (order[i] == KIW_RTR_READ && !reply->ird)
			continue;
		if (order[i] == KIW_RTR_READ && !req->ord && reply->ird == LEFT_ALONE)
			continue;
		return order[i];
	}
	return 0;
}

static enum kiw_perr expected_fault(const struct kiw_mpa_local *local,
				    const struct kiw_mpa_frame *req,
				    const struct kiw_mpa_frame *reply)
{
	if (req->enhanced != reply->enhanced)
		return KIW_PERR_MPA_LOCAL;
	if (!req->enhanced)
		return KIW_PERR_NONE;
	if (reply->ord != LEFT_ALONE && reply->ord > local->max_ird)
		return KIW_PERR_MPA_IRD;
	if (req->p2p != reply->p2p)
		return KIW_PERR_MPA_RTR;
	if (req->p2p && !expected_rtr(local, req, reply))
		return KIW_PERR_MPA_RTR;
	return KIW_PERR_NONE;
}

static void expect_conclusion(struct kunit *test, const struct kiw_mpa_local *local,
			      const struct kiw_mpa_frame *reply)
{
	struct kiw_mpa_outcome out;
	struct kiw_mpa_frame req;
	enum kiw_perr perr;

	kiw_mpa_request(local, &req);
	perr = kiw_mpa_conclude(local, &req, reply, &out);
	KUNIT_ASSERT_EQ(test, perr, expected_fault(local, &req, reply));
	KUNIT_ASSERT_EQ(test, out.rev, req.rev < reply->rev ? req.rev : reply->rev);
	expect_framing(test, &req, reply, &out);
	KUNIT_ASSERT_EQ(test, kiw_mpa_wants_plain(&req, reply), req.enhanced && !reply->rev);
	if (perr != KIW_PERR_NONE)
		return;
	KUNIT_ASSERT_EQ(test, out.p2p, req.p2p);
	KUNIT_ASSERT_EQ(test, out.rtr, req.p2p ? expected_rtr(local, &req, reply) : 0);
	if (!req.enhanced)
		return;
	KUNIT_ASSERT_EQ(test, out.ird, reply->ord == LEFT_ALONE || reply->ord < req.ird ?
			req.ird : reply->ord);
	KUNIT_ASSERT_LE(test, out.ird, local->max_ird);
	if (out.rtr == KIW_RTR_READ && !req.ord)
		KUNIT_ASSERT_EQ(test, out.ord, 1);
	else
		KUNIT_ASSERT_EQ(test, out.ord, reply->ird < req.ord ? reply->ird : req.ord);
	KUNIT_ASSERT_LE(test, out.ord, reply->ird);
	KUNIT_ASSERT_LE(test, out.ord, local->max_ord);
}

/* All orders of the three kinds and of subsets */
static const u8 orders[][KIW_RTR_KINDS] = {
	{ KIW_RTR_WRITE, KIW_RTR_READ, KIW_RTR_SEND },
	{ KIW_RTR_WRITE, KIW_RTR_SEND, KIW_RTR_READ },
	{ KIW_RTR_READ, KIW_RTR_WRITE, KIW_RTR_SEND },
	{ KIW_RTR_READ, KIW_RTR_SEND, KIW_RTR_WRITE },
	{ KIW_RTR_SEND, KIW_RTR_WRITE, KIW_RTR_READ },
	{ KIW_RTR_SEND, KIW_RTR_READ, KIW_RTR_WRITE },
	{ KIW_RTR_WRITE, KIW_RTR_READ }, { KIW_RTR_READ, KIW_RTR_WRITE },
	{ KIW_RTR_WRITE, KIW_RTR_SEND }, { KIW_RTR_SEND, KIW_RTR_WRITE },
	{ KIW_RTR_READ, KIW_RTR_SEND }, { KIW_RTR_SEND, KIW_RTR_READ },
	{ KIW_RTR_WRITE }, { KIW_RTR_READ }, { KIW_RTR_SEND }, { },
};

static void set_order(struct kiw_mpa_local *local, u32 order)
{
	memcpy(local->rtr_order, orders[order % ARRAY_SIZE(orders)], KIW_RTR_KINDS);
	local->rtr = local->rtr_order[0] | local->rtr_order[1] | local->rtr_order[2];
}

/* Each set of flags is tried with every 7th pair of depths, and another 7th for the next set */
#define STRIDE	7

/* Every possible Reply, including those that no responder should send */
static void every_reply_is_concluded(struct kunit *test)
{
	static const u16 own[] = { 0, 1, 4, MAX_IRD, LEFT_ALONE };
	struct kiw_mpa_local local = default_local();
	struct kiw_mpa_frame reply;
	u32 depths;
	u32 bits;

	for (bits = 0; bits < FLAG_SETS; bits++) {
		flags_of_bits(bits, &local, &reply);
		for (depths = bits % STRIDE; depths < CORNERS * CORNERS; depths += STRIDE) {
			reply.ird = corners[depths % CORNERS];
			reply.ord = corners[depths / CORNERS];
			set_order(&local, depths + bits / STRIDE);
			local.p2p = local.rtr;
			local.ird = own[(depths + bits) % ARRAY_SIZE(own)];
			local.ord = own[(depths + bits / 3) % ARRAY_SIZE(own)];
			expect_conclusion(test, &local, &reply);
		}
	}
}

/* Converts a frame to the wire format and back */
static void carry(struct kunit *test, const struct kiw_mpa_local *local,
		  struct kiw_mpa_frame *frame, bool reply)
{
	struct kiw_mpa_frame arrived;
	u8 buf[64];
	size_t need;
	size_t len;

	len = kiw_mpa_build(buf, frame, reply, NULL, 0);
	KUNIT_ASSERT_EQ(test, kiw_mpa_parse(buf, len, reply, local, &arrived, &need), KIW_MPA_OK);
	*frame = arrived;
}

static void expect_agreement(struct kunit *test, const struct kiw_mpa_local *here,
			     const struct kiw_mpa_local *there)
{
	struct kiw_mpa_outcome responder;
	struct kiw_mpa_outcome initiator;
	struct kiw_mpa_frame reply;
	struct kiw_mpa_frame sent;
	struct kiw_mpa_frame req;
	u8 buf[64];
	size_t need;
	size_t len;

	kiw_mpa_request(here, &sent);
	req = sent;
	/* A responder that knows no more closes, RFC 6581 10 */
	if (sent.rev > there->rev) {
		len = kiw_mpa_build(buf, &sent, false, NULL, 0);
		KUNIT_ASSERT_EQ(test, kiw_mpa_parse(buf, len, false, there, &req, &need),
				KIW_MPA_BAD_REV);
		return;
	}
	carry(test, there, &req, false);
	if (!kiw_mpa_answer(there, &req, &reply, &responder)) {
		KUNIT_ASSERT_FALSE(test, may_connect(there, &req));
		kiw_mpa_refuse(there, &req, &reply);
		carry(test, here, &reply, true);
		KUNIT_ASSERT_TRUE(test, reply.reject);
		return;
	}
	carry(test, here, &reply, true);
	KUNIT_ASSERT_EQ(test, kiw_mpa_conclude(here, &sent, &reply, &initiator), KIW_PERR_NONE);
	KUNIT_ASSERT_EQ(test, initiator.rev, responder.rev);
	KUNIT_ASSERT_EQ(test, initiator.crc, responder.crc);
	KUNIT_ASSERT_EQ(test, initiator.tx_markers, responder.rx_markers);
	KUNIT_ASSERT_EQ(test, initiator.rx_markers, responder.tx_markers);
	KUNIT_ASSERT_EQ(test, initiator.version, responder.version);
	KUNIT_ASSERT_EQ(test, initiator.p2p, responder.p2p);
	KUNIT_ASSERT_EQ(test, initiator.rtr & ~responder.rtr, 0);
	KUNIT_ASSERT_EQ(test, initiator.rtr & (initiator.rtr - 1), 0);
	KUNIT_ASSERT_EQ(test, !initiator.rtr, !initiator.p2p);
	if (initiator.rev < 2)
		return;
	KUNIT_ASSERT_LE(test, initiator.ord, responder.ird);
	KUNIT_ASSERT_LE(test, responder.ord, initiator.ird);
	if (initiator.rtr == KIW_RTR_READ)
		KUNIT_ASSERT_GE(test, initiator.ord, 1);
}

/* Two ends of this implementation agree, whatever their settings */
static void two_of_us_agree(struct kunit *test)
{
	static const u16 own[] = { 0, 1, 7, 100 };
	struct kiw_mpa_local there = default_local();
	struct kiw_mpa_local here = default_local();
	u32 depths;
	u32 bits;

	there.max_ird = 5;
	there.max_ord = 50;
	for (bits = 0; bits < 1 << 10; bits++) {
		here.rev = 1 + (bits & 1);
		here.crc = bits & 2;
		here.p2p = bits & 4;
		here.markers = bits & 8;
		there.markers = bits & 0x10;
		there.rev = 1 + ((bits >> 5) & 1);
		there.crc = bits & 0x40;
		there.rtr = (bits >> 7) & ALL_RTR;
		/* Each pair of depths with other orders for the next set of flags */
		for (depths = 0; depths < 256; depths++) {
			set_order(&here, depths + depths / 16 + bits);
			here.ird = own[depths & 3];
			here.ord = own[(depths >> 2) & 3];
			there.ird = own[(depths >> 4) & 3];
			there.ord = own[depths >> 6];
			expect_agreement(test, &here, &there);
		}
	}
}

/* RFC 5044 figure 16: the entries with an RDMAC end, and how it is refused */
static void revision_0_is_served_when_enabled(struct kunit *test)
{
	struct kiw_mpa_frame rdmac = { .markers = true, .crc = true };
	struct kiw_mpa_local local = default_local();
	struct kiw_mpa_outcome out;
	struct kiw_mpa_frame reply;
	struct kiw_mpa_frame req;
	u32 i;

	for (i = 0; i < 8; i++) {
		local.crc = i & 1;
		local.markers = i & 2;
		local.rdmac = i & 4;
		local.rev = 2;
		KUNIT_EXPECT_EQ(test, kiw_mpa_answer(&local, &rdmac, &reply, &out), local.rdmac);
		if (!local.rdmac) {
			kiw_mpa_refuse(&local, &rdmac, &reply);
			KUNIT_EXPECT_TRUE(test, reply.reject && reply.rev == 1);
			continue;
		}
		KUNIT_EXPECT_TRUE(test, !reply.rev && reply.markers && reply.crc);
		expect_framing(test, &reply, &rdmac, &out);

		local.rev = 1;
		kiw_mpa_request(&local, &req);
		KUNIT_EXPECT_EQ(test, req.rev, 1);
		KUNIT_EXPECT_EQ(test, kiw_mpa_conclude(&local, &req, &rdmac, &out),
				KIW_PERR_NONE);
		expect_framing(test, &req, &rdmac, &out);
		KUNIT_EXPECT_EQ(test, out.version, 0);
	}
}

static struct kunit_case mpa_answer_cases[] = {
	KUNIT_CASE(request_says_what_is_wanted),
	KUNIT_CASE(ulp_learns_the_peers_limits),
	KUNIT_CASE(known_depths),
	KUNIT_CASE(every_set_of_flags_is_answered),
	KUNIT_CASE(every_depth_is_answered),
	KUNIT_CASE(every_refusal_is_of_the_requests_kind),
	KUNIT_CASE(every_reply_is_concluded),
	KUNIT_CASE(two_of_us_agree),
	KUNIT_CASE(revision_0_is_served_when_enabled),
	{}
};

static struct kunit_suite mpa_answer_suite = {
	.name = "kiwarp_mpa_answer",
	.test_cases = mpa_answer_cases,
};

kunit_test_suite(mpa_answer_suite);
