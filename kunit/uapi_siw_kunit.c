// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The table of siw's user ABI, to the byte: what it reads from the rings of a process, which may
 * hold anything, and what it writes to them and into responses. Offsets and values are those of
 * the stock provider and are written out here, not taken from the header.
 */
#include "verbs/uapi_siw.c"

#include "rings.h"

#define SLOTS		2
#define SQE_BYTES	120
#define RQE_BYTES	112
#define CQE_BYTES	32

static struct kiw_sq *make_sq(struct kunit *test, struct ring *ring)
{
	struct kiw_sq *sq = kunit_kzalloc(test, sizeof(*sq), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, sq);
	make_ring(test, ring, 0, SQE_BYTES, kiw_uapi_siw.sq_bytes(SLOTS));
	spin_lock_init(&sq->lock);
	sq->ops = kiw_uapi_siw.sq;
	sq->ring = ring->mem;
	sq->size = SLOTS;
	sq->max_sge = kiw_uapi_siw.max_sge;
	sq->max_inline = kiw_uapi_siw.max_inline;
	return sq;
}

static void put_send(const struct ring *ring, u32 slot, u16 flags, u8 num_sge, u8 opcode)
{
	set64(at(ring, slot, 0), WR_ID + slot);
	set16(at(ring, slot, 8), flags);
	*at(ring, slot, 10) = num_sge;
	*at(ring, slot, 11) = opcode;
	set32(at(ring, slot, 12), RKEY);
	set64(at(ring, slot, 16), RADDR);
}

static void send_is_fetched(struct kunit *test)
{
	struct kiw_swqe wqe;
	struct ring ring;
	struct kiw_sq *sq = make_sq(test, &ring);

	KUNIT_EXPECT_EQ(test, fetch_send(sq, &wqe), 0);
	KUNIT_EXPECT_FALSE(test, sq->ops->has(sq, 1));
	put_send(&ring, 0, 0x1d, 6, 0);
	set_sges(at(&ring, 0, 24), 6, 1000);
	KUNIT_EXPECT_TRUE(test, sq->ops->has(sq, 1));
	KUNIT_EXPECT_FALSE(test, sq->ops->has(sq, 2));
	put_send(&ring, 1, 0x01, 0, 3);
	KUNIT_EXPECT_TRUE(test, sq->ops->has(sq, 2));

	KUNIT_ASSERT_EQ(test, fetch_send(sq, &wqe), 1);
	KUNIT_EXPECT_EQ(test, wqe.wr_id, WR_ID);
	KUNIT_EXPECT_EQ(test, wqe.raddr, RADDR);
	KUNIT_EXPECT_EQ(test, wqe.rkey, (u32)RKEY);
	KUNIT_EXPECT_EQ(test, (int)wqe.op, (int)KIW_WR_WRITE);
	KUNIT_EXPECT_EQ(test, (int)wqe.flags,
			(int)(KIW_WRF_SIGNALED | KIW_WRF_SOLICITED | KIW_WRF_FENCE));
	KUNIT_EXPECT_EQ(test, (int)wqe.num_sge, 6);
	KUNIT_EXPECT_EQ(test, wqe.length, 6000u);
	expect_sges(test, wqe.sge, 6, 1000);
	KUNIT_EXPECT_EQ(test, (int)get16(at(&ring, 0, 8)), 0);

	KUNIT_ASSERT_EQ(test, fetch_send(sq, &wqe), 1);
	KUNIT_EXPECT_EQ(test, wqe.wr_id, WR_ID + 1);
	KUNIT_EXPECT_EQ(test, (int)wqe.op, (int)KIW_WR_SEND);
	KUNIT_EXPECT_EQ(test, wqe.length, 0u);
	KUNIT_EXPECT_EQ(test, fetch_send(sq, &wqe), 0);
	KUNIT_EXPECT_EQ(test, sq->get, 2u);
}

static void send_has_inline_data(struct kunit *test)
{
	struct kiw_swqe wqe;
	struct ring ring;
	struct kiw_sq *sq = make_sq(test, &ring);
	unsigned int i;

	put_send(&ring, 0, 0x03, 1, 3);
	set32(at(&ring, 0, 24 + 8), 80);
	for (i = 0; i < 80; i++)
		*at(&ring, 0, 40 + i) = i + 1;
	KUNIT_ASSERT_EQ(test, fetch_send(sq, &wqe), 1);
	KUNIT_EXPECT_EQ(test, wqe.length, 80u);
	KUNIT_EXPECT_EQ(test, (int)wqe.num_sge, 0);
	KUNIT_EXPECT_EQ(test, (int)wqe.flags, (int)KIW_WRF_INLINE);
	for (i = 0; i < 80; i++)
		KUNIT_EXPECT_EQ(test, (unsigned int)wqe.inline_data[i], i + 1);
}

/* Any other opcode is malformed. */
static void send_opcodes(struct kunit *test)
{
	static const struct {
		u8 opcode;
		enum kiw_wr_op op;
	} known[] = {
		{ 0, KIW_WR_WRITE }, { 1, KIW_WR_READ }, { 3, KIW_WR_SEND }, { 5, KIW_WR_SEND_INV },
	};
	struct kiw_swqe wqe;
	struct ring ring;
	struct kiw_sq *sq = make_sq(test, &ring);
	unsigned int opcode, i = 0;
	bool is_known;

	for (opcode = 0; opcode <= U8_MAX; opcode++) {
		is_known = i < ARRAY_SIZE(known) && known[i].opcode == opcode;
		put_send(&ring, opcode % SLOTS, 0x01, 0, opcode);
		KUNIT_EXPECT_EQ(test, fetch_send(sq, &wqe), is_known ? 1 : -EINVAL);
		KUNIT_EXPECT_EQ(test, (int)wqe.op, (int)(is_known ? known[i].op : KIW_WR_SEND));
		KUNIT_EXPECT_EQ(test, wqe.wr_id, WR_ID + opcode % SLOTS);
		i += is_known;
	}
	KUNIT_EXPECT_EQ(test, sq->get, (u32)U8_MAX + 1);
}

struct malformed {
	u16 flags;
	u8 num_sge;
	u8 opcode;
	u32 length;
};

/* A malformed entry is taken like any other; only its wr_id is used. */
static void send_is_malformed(struct kunit *test)
{
	static const struct malformed cases[] = {
		{ 0x01, 7, 3, 1 },		/* too many SGEs */
		{ 0x01, 255, 0, 1 },
		{ 0x01, 2, 0, 0x40000000 },	/* too long */
		{ 0x01, 6, 0, U32_MAX },
		{ 0x03, 1, 3, 81 },		/* too much inline */
		{ 0x03, 1, 0, U32_MAX },
		{ 0x03, 1, 1, 8 },		/* an inline Read */
		{ 0x21, 1, 3, 1 },		/* flags that nobody sets */
		{ 0x8001, 1, 3, 1 },
	};
	struct kiw_swqe wqe;
	struct ring ring;
	struct kiw_sq *sq = make_sq(test, &ring);
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		u32 slot = i % SLOTS;

		put_send(&ring, slot, cases[i].flags, cases[i].num_sge, cases[i].opcode);
		set_sges(at(&ring, slot, 24), 6, cases[i].length);
		KUNIT_EXPECT_EQ(test, fetch_send(sq, &wqe), -EINVAL);
		KUNIT_EXPECT_EQ(test, wqe.wr_id, WR_ID + slot);
		KUNIT_EXPECT_EQ(test, wqe.length, 0u);
		KUNIT_EXPECT_EQ(test, (int)get16(at(&ring, slot, 8)), 0);
		KUNIT_EXPECT_EQ(test, sq->get, i + 1);
	}
	/* The longest that is not */
	put_send(&ring, i % SLOTS, 0x01, 1, 0);
	set_sges(at(&ring, i % SLOTS, 24), 1, S32_MAX);
	KUNIT_EXPECT_EQ(test, fetch_send(sq, &wqe), 1);
	KUNIT_EXPECT_EQ(test, wqe.length, (u32)S32_MAX);
}

static struct kiw_rq *make_rq(struct kunit *test, struct ring *ring)
{
	struct kiw_rq *rq = kunit_kzalloc(test, sizeof(*rq), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, rq);
	make_ring(test, ring, 0, RQE_BYTES, kiw_uapi_siw.rq_bytes(SLOTS));
	spin_lock_init(&rq->lock);
	rq->ops = kiw_uapi_siw.rq;
	rq->ring = ring->mem;
	rq->size = SLOTS;
	rq->max_sge = kiw_uapi_siw.max_sge;
	return rq;
}

static void put_recv(const struct ring *ring, u32 slot, u16 flags, u8 num_sge, u32 length)
{
	set64(at(ring, slot, 0), WR_ID + slot);
	set16(at(ring, slot, 8), flags);
	*at(ring, slot, 10) = num_sge;
	/* Not read */
	*at(ring, slot, 11) = 0xff;
	set32(at(ring, slot, 12), U32_MAX);
	set_sges(at(ring, slot, 16), 6, length);
}

static void recv_is_fetched(struct kunit *test)
{
	struct kiw_rwqe wqe;
	struct ring ring;
	struct kiw_rq *rq = make_rq(test, &ring);

	KUNIT_EXPECT_EQ(test, fetch_recv(rq, &wqe), 0);
	KUNIT_EXPECT_TRUE(test, has_recv(rq, 0));
	KUNIT_EXPECT_FALSE(test, has_recv(rq, 1));
	put_recv(&ring, 0, 0x01, 6, 100);
	put_recv(&ring, 1, 0x01, 0, 100);
	KUNIT_EXPECT_TRUE(test, has_recv(rq, 2));
	KUNIT_EXPECT_FALSE(test, has_recv(rq, 3));

	KUNIT_ASSERT_EQ(test, fetch_recv(rq, &wqe), 1);
	KUNIT_EXPECT_EQ(test, wqe.wr_id, WR_ID);
	KUNIT_EXPECT_EQ(test, (int)wqe.num_sge, 6);
	KUNIT_EXPECT_EQ(test, wqe.length, 600u);
	expect_sges(test, wqe.sge, 6, 100);
	KUNIT_EXPECT_EQ(test, (int)get16(at(&ring, 0, 8)), 0);
	KUNIT_ASSERT_EQ(test, fetch_recv(rq, &wqe), 1);
	KUNIT_EXPECT_EQ(test, wqe.wr_id, WR_ID + 1);
	KUNIT_EXPECT_EQ(test, wqe.length, 0u);
	KUNIT_EXPECT_EQ(test, fetch_recv(rq, &wqe), 0);
	KUNIT_EXPECT_EQ(test, rq->get, 2u);
}

static void recv_is_malformed(struct kunit *test)
{
	static const struct malformed cases[] = {
		{ 0x01, 7, 0, 1 }, { 0x01, 255, 0, 1 }, { 0x01, 2, 0, 0x40000000 },
		{ 0x01, 6, 0, U32_MAX }, { 0x03, 1, 0, 1 }, { 0xffff, 1, 0, 1 },
	};
	struct kiw_rwqe wqe;
	struct ring ring;
	struct kiw_rq *rq = make_rq(test, &ring);
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		u32 slot = i % SLOTS;

		put_recv(&ring, slot, cases[i].flags, cases[i].num_sge, cases[i].length);
		KUNIT_EXPECT_EQ(test, fetch_recv(rq, &wqe), -EINVAL);
		KUNIT_EXPECT_EQ(test, wqe.wr_id, WR_ID + slot);
		KUNIT_EXPECT_EQ(test, wqe.length, 0u);
		KUNIT_EXPECT_EQ(test, (int)wqe.num_sge, 0);
		KUNIT_EXPECT_EQ(test, rq->get, i + 1);
	}
}

static struct kiw_cq *make_cq(struct kunit *test, struct ring *ring)
{
	struct kiw_cq *cq = kunit_kzalloc(test, sizeof(*cq), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, cq);
	make_ring(test, ring, 0, CQE_BYTES, kiw_uapi_siw.cq_bytes(SLOTS));
	spin_lock_init(&cq->lock);
	cq->ops = kiw_uapi_siw.cq;
	cq->ring = ring->mem;
	cq->size = SLOTS;
	return cq;
}

static void completion_is_written(struct kunit *test)
{
	struct ib_qp *qp = kunit_kzalloc(test, sizeof(*qp), GFP_KERNEL);
	struct ring ring;
	struct kiw_cq *cq = make_cq(test, &ring);
	struct kiw_wc wc = {
		.wr_id = WR_ID, .qp = qp, .byte_len = 0x41424344, .op = KIW_WR_RECV,
		.with_inv = true, .inv_stag = RKEY,
	};

	KUNIT_ASSERT_NOT_NULL(test, qp);
	qp->qp_num = 0xabcdef;
	KUNIT_EXPECT_TRUE(test, put_completion(cq, &wc));
	KUNIT_EXPECT_TRUE(test, cq->ops->is_unread(cq));
	KUNIT_EXPECT_EQ(test, get64(at(&ring, 0, 0)), WR_ID);
	KUNIT_EXPECT_EQ(test, (int)*at(&ring, 0, 8), 1);
	KUNIT_EXPECT_EQ(test, (int)*at(&ring, 0, 9), 8);
	KUNIT_EXPECT_EQ(test, (int)get16(at(&ring, 0, 10)), 0);
	KUNIT_EXPECT_EQ(test, get32(at(&ring, 0, 12)), 0x41424344u);
	KUNIT_EXPECT_EQ(test, get32(at(&ring, 0, 16)), (u32)RKEY);
	KUNIT_EXPECT_EQ(test, get32(at(&ring, 0, 20)), 0u);
	KUNIT_EXPECT_EQ(test, get64(at(&ring, 0, 24)), 0xabcdefull);

	/* A slot is free when the process has cleared its flags, and not before. */
	KUNIT_EXPECT_TRUE(test, put_completion(cq, &wc));
	KUNIT_EXPECT_FALSE(test, put_completion(cq, &wc));
	*at(&ring, 0, 8) = 0;
	set64(at(&ring, 0, 16), U64_MAX);
	wc.with_inv = false;
	KUNIT_EXPECT_TRUE(test, put_completion(cq, &wc));
	KUNIT_EXPECT_EQ(test, get64(at(&ring, 0, 16)), 0ull);
	*at(&ring, 0, 8) = 0;
	KUNIT_EXPECT_FALSE(test, cq->ops->is_unread(cq));
	*at(&ring, 1, 8) = 0xfe;
	KUNIT_EXPECT_FALSE(test, put_completion(cq, &wc));
	KUNIT_EXPECT_EQ(test, cq->put, 3u);
}

/* The provider uses both as indices of tables with 10 and 12 entries. */
static void completion_values(struct kunit *test)
{
	static const u8 statuses[KIW_WCS_COUNT] = { 0, 1, 2, 3, 4, 5, 7, 8, 9, 9, 9 };
	static const struct {
		enum kiw_wr_op op;
		u8 opcode;
	} ops[] = {
		{ KIW_WR_SEND, 3 }, { KIW_WR_SEND_INV, 5 }, { KIW_WR_WRITE, 0 },
		{ KIW_WR_READ, 1 }, { KIW_WR_RECV, 8 },
	};
	struct ib_qp *qp = kunit_kzalloc(test, sizeof(*qp), GFP_KERNEL);
	struct ring ring;
	struct kiw_cq *cq = make_cq(test, &ring);
	struct kiw_wc wc = { .qp = qp };
	unsigned int i;

	KUNIT_ASSERT_NOT_NULL(test, qp);
	for (i = 0; i < KIW_WCS_COUNT; i++) {
		wc.status = i;
		KUNIT_EXPECT_TRUE(test, put_completion(cq, &wc));
		KUNIT_EXPECT_EQ(test, (int)get16(at(&ring, i % SLOTS, 10)), (int)statuses[i]);
		*at(&ring, i % SLOTS, 8) = 0;
	}
	cq->put = 0;
	for (i = 0; i < ARRAY_SIZE(ops); i++) {
		wc.op = ops[i].op;
		KUNIT_EXPECT_TRUE(test, put_completion(cq, &wc));
		KUNIT_EXPECT_EQ(test, (int)*at(&ring, i % SLOTS, 9), (int)ops[i].opcode);
		*at(&ring, i % SLOTS, 8) = 0;
	}
}

/* The arming word is the 4 bytes after the last entry; 1: solicited, 2: next. */
static void completion_is_armed(struct kunit *test)
{
	struct ring ring;
	struct kiw_cq *cq = make_cq(test, &ring);
	u32 flags, solicited;
	bool is_due, is_taken;

	for (flags = 0; flags < 8; flags++) {
		for (solicited = 0; solicited < 2; solicited++) {
			is_due = flags & 2 || (flags & 1 && solicited);
			set32(at(&ring, SLOTS, 0), flags);
			spin_lock_irq(&cq->lock);
			is_taken = cq->ops->take_arm(cq, solicited);
			spin_unlock_irq(&cq->lock);
			KUNIT_EXPECT_EQ(test, (int)is_taken, (int)is_due);
			KUNIT_EXPECT_EQ(test, get32(at(&ring, SLOTS, 0)), is_due ? 0 : flags);
		}
	}
}

static void sizes(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, kiw_uapi_siw.sq_bytes(1), (size_t)SQE_BYTES);
	KUNIT_EXPECT_EQ(test, kiw_uapi_siw.sq_bytes(32768), (size_t)32768 * SQE_BYTES);
	KUNIT_EXPECT_EQ(test, kiw_uapi_siw.rq_bytes(1), (size_t)RQE_BYTES);
	KUNIT_EXPECT_EQ(test, kiw_uapi_siw.rq_bytes(32768), (size_t)32768 * RQE_BYTES);
	KUNIT_EXPECT_EQ(test, kiw_uapi_siw.cq_bytes(1), (size_t)CQE_BYTES + 8);
	KUNIT_EXPECT_EQ(test, kiw_uapi_siw.cq_bytes(1 << 20), ((size_t)CQE_BYTES << 20) + 8);
	KUNIT_EXPECT_EQ(test, (int)kiw_uapi_siw.max_sge, 6);
	KUNIT_EXPECT_EQ(test, (int)kiw_uapi_siw.max_inline, 80);
	KUNIT_EXPECT_EQ(test, kiw_uapi_siw.first_pgoff, 0x100u);
}

static void identity(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, (int)kiw_uapi_siw.device_ops->driver_id, (int)RDMA_DRIVER_SIW);
	KUNIT_EXPECT_EQ(test, kiw_uapi_siw.device_ops->uverbs_abi_ver, 1u);
	KUNIT_EXPECT_EQ(test, kiw_uapi_siw.cmd_mask, BIT_ULL(IB_USER_VERBS_CMD_POST_SEND));
}

static void responses(struct kunit *test)
{
	const struct kiw_uapi_ops *uapi = &kiw_uapi_siw;
	struct kiw_qp *qp = kunit_kzalloc(test, sizeof(*qp), GFP_KERNEL);
	u64 resp[KIW_UAPI_WORDS] = {};
	u8 *bytes = (u8 *)resp;

	KUNIT_ASSERT_NOT_NULL(test, qp);
	KUNIT_EXPECT_EQ(test, (int)uapi->context_resp_bytes, 8);
	uapi->context_resp(resp, 7);
	KUNIT_EXPECT_EQ(test, get32(bytes), 7u);
	KUNIT_EXPECT_EQ(test, get32(bytes + 4), 0u);

	memset(resp, 0, sizeof(resp));
	KUNIT_EXPECT_EQ(test, (int)uapi->cq_resp_bytes, 16);
	uapi->cq_resp(resp, 256, KEY);
	KUNIT_EXPECT_EQ(test, get32(bytes), 0u);
	KUNIT_EXPECT_EQ(test, get32(bytes + 4), 256u);
	KUNIT_EXPECT_EQ(test, get64(bytes + 8), KEY);

	memset(resp, 0, sizeof(resp));
	KUNIT_EXPECT_EQ(test, (int)uapi->srq_resp_bytes, 16);
	uapi->srq_resp(resp, 128, KEY);
	KUNIT_EXPECT_EQ(test, get32(bytes), 128u);
	KUNIT_EXPECT_EQ(test, get32(bytes + 4), 0u);
	KUNIT_EXPECT_EQ(test, get64(bytes + 8), KEY);

	memset(resp, 0, sizeof(resp));
	KUNIT_EXPECT_EQ(test, (int)uapi->qp_resp_bytes, 32);
	qp->ib.qp_num = 0x123456;
	qp->sq.size = 64;
	qp->rq.size = 32;
	uapi->qp_resp(resp, qp, KEY, KEY + 1);
	KUNIT_EXPECT_EQ(test, get32(bytes), 0x123456u);
	KUNIT_EXPECT_EQ(test, get32(bytes + 4), 64u);
	KUNIT_EXPECT_EQ(test, get32(bytes + 8), 32u);
	KUNIT_EXPECT_EQ(test, get32(bytes + 12), 0u);
	KUNIT_EXPECT_EQ(test, get64(bytes + 16), KEY);
	KUNIT_EXPECT_EQ(test, get64(bytes + 24), KEY + 1);
}

static void registration(struct kunit *test)
{
	u64 words[KIW_UAPI_WORDS] = {};
	u8 *bytes = (u8 *)words;
	unsigned int i;

	KUNIT_EXPECT_EQ(test, (int)kiw_uapi_siw.mr_req_bytes, 8);
	KUNIT_EXPECT_TRUE(test, kiw_uapi_siw.mr_req_is_good(words));
	/* The consumer's key byte: any */
	bytes[0] = 0xff;
	KUNIT_EXPECT_TRUE(test, kiw_uapi_siw.mr_req_is_good(words));
	for (i = 1; i < 8; i++) {
		bytes[i] = 1;
		KUNIT_EXPECT_FALSE(test, kiw_uapi_siw.mr_req_is_good(words));
		bytes[i] = 0;
	}
	bytes[0] = 0;
	KUNIT_EXPECT_EQ(test, (int)kiw_uapi_siw.mr_resp_bytes, 8);
	kiw_uapi_siw.mr_resp(words, RKEY);
	KUNIT_EXPECT_EQ(test, get32(bytes), (u32)RKEY);
	KUNIT_EXPECT_EQ(test, get32(bytes + 4), 0u);
}

static struct kunit_case uapi_siw_cases[] = {
	KUNIT_CASE(send_is_fetched),
	KUNIT_CASE(send_has_inline_data),
	KUNIT_CASE(send_opcodes),
	KUNIT_CASE(send_is_malformed),
	KUNIT_CASE(recv_is_fetched),
	KUNIT_CASE(recv_is_malformed),
	KUNIT_CASE(completion_is_written),
	KUNIT_CASE(completion_values),
	KUNIT_CASE(completion_is_armed),
	KUNIT_CASE(sizes),
	KUNIT_CASE(identity),
	KUNIT_CASE(responses),
	KUNIT_CASE(registration),
	{}
};

static struct kunit_suite uapi_siw_suite = {
	.name = "kiwarp_uapi_siw",
	.test_cases = uapi_siw_cases,
};

kunit_test_suite(uapi_siw_suite);
