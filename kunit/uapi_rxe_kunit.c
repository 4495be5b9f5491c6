// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The table of rxe's user ABI, to the byte: what it reads from the rings of a process, which may
 * hold anything, and what it writes to them and into responses. Offsets and values are those of
 * the stock provider and are written out here, not taken from the kernel's header.
 */
#include "verbs/uapi_rxe.c"

#include "rings.h"

#define SLOTS		4
#define HEAD		384
#define INDEX_MASK	4
#define PRODUCER	128
#define CONSUMER	256

/* Fields of a send, of a receive and of a completion */
enum {
	SEND_OPCODE = 12, SEND_FLAGS = 16, SEND_EX = 20, SEND_RADDR = 24, SEND_RKEY = 32,
	SEND_ATOMIC_ADD = 32, SEND_ATOMIC_SWAP = 40, SEND_ATOMIC_RKEY = 48,
	BIND_ADDR = 24, BIND_LENGTH = 32, BIND_LKEY = 40, BIND_OLD = 44, BIND_NEW = 48,
	BIND_ACCESS = 52,
	SEND_LENGTH = 184, SEND_NUM_SGE = 196, SEND_DATA = 208, SEND_BYTES = 512,
	RECV_LENGTH = 16, RECV_NUM_SGE = 28, RECV_DATA = 40, RECV_BYTES = 256,
	CQE_STATUS = 8, CQE_OPCODE = 12, CQE_VENDOR = 16, CQE_LENGTH = 20, CQE_EX = 24, CQE_QP = 28,
	CQE_FLAGS = 36, CQE_PORT = 46, CQE_SIZE = 64,
};

/* Opcodes of libibverbs */
enum {
	WR_WRITE, WR_WRITE_IMM, WR_SEND, WR_SEND_IMM, WR_READ, WR_CMP_SWAP, WR_FETCH_ADD,
	WR_LOCAL_INV, WR_BIND_MW, WR_SEND_INV,
};

static struct kiw_sq *make_sq(struct kunit *test, struct ring *ring)
{
	struct kiw_sq *sq = kunit_kzalloc(test, sizeof(*sq), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, sq);
	make_ring(test, ring, HEAD, SEND_BYTES, kiw_uapi_rxe.sq_bytes(SLOTS));
	spin_lock_init(&sq->lock);
	sq->ops = kiw_uapi_rxe.sq;
	sq->ring = ring->mem;
	sq->size = SLOTS;
	sq->max_sge = kiw_uapi_rxe.max_sge;
	sq->max_inline = kiw_uapi_rxe.max_inline;
	sq->is_extended = true;
	return sq;
}

static void put_send(const struct ring *ring, u32 slot, u32 opcode, u32 flags, u32 num_sge)
{
	/* Other fields of the slot have arbitrary values */
	memset(at(ring, slot, 0), 0xa5, SEND_BYTES);
	set64(at(ring, slot, 0), WR_ID + slot);
	set32(at(ring, slot, SEND_OPCODE), opcode);
	set32(at(ring, slot, SEND_FLAGS), flags);
	set64(at(ring, slot, SEND_RADDR), RADDR);
	set32(at(ring, slot, SEND_RKEY), RKEY);
	set32(at(ring, slot, SEND_LENGTH), 0);
	set32(at(ring, slot, SEND_NUM_SGE), num_sge);
	set32(ring->mem + PRODUCER, (slot + 1) % SLOTS);
}

static void send_is_fetched(struct kunit *test)
{
	struct kiw_swqe wqe;
	struct ring ring;
	struct kiw_sq *sq = make_sq(test, &ring);

	KUNIT_EXPECT_EQ(test, fetch_send(sq, &wqe), 0);
	KUNIT_EXPECT_FALSE(test, sq->ops->has(sq, 1));
	put_send(&ring, 0, WR_WRITE, 7, 6);
	set_sges(at(&ring, 0, SEND_DATA), 6, 1000);
	KUNIT_EXPECT_TRUE(test, sq->ops->has(sq, 1));
	KUNIT_EXPECT_FALSE(test, sq->ops->has(sq, 2));
	put_send(&ring, 1, WR_SEND, 0, 0);
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

	KUNIT_ASSERT_EQ(test, fetch_send(sq, &wqe), 1);
	KUNIT_EXPECT_EQ(test, wqe.wr_id, WR_ID + 1);
	KUNIT_EXPECT_EQ(test, (int)wqe.op, (int)KIW_WR_SEND);
	KUNIT_EXPECT_EQ(test, wqe.length, 0u);
	KUNIT_EXPECT_EQ(test, fetch_send(sq, &wqe), 0);
}

/* A slot is returned when its entry is done, not when it is fetched. */
static void send_returns_its_slot(struct kunit *test)
{
	struct kiw_swqe wqe;
	struct ring ring;
	struct kiw_sq *sq = make_sq(test, &ring);
	u32 n, i;

	for (n = 0; n < 5 * SLOTS; n += SLOTS - 1) {
		for (i = 0; i < SLOTS - 1; i++)
			put_send(&ring, (n + i) % SLOTS, i ? WR_SEND : U32_MAX, 0, 0);
		for (i = 0; i < SLOTS - 1; i++)
			KUNIT_EXPECT_EQ(test, fetch_send(sq, &wqe), i ? 1 : -EINVAL);
		KUNIT_EXPECT_EQ(test, fetch_send(sq, &wqe), 0);
		KUNIT_EXPECT_EQ(test, get32(ring.mem + CONSUMER), n % SLOTS);
		for (i = 1; i < SLOTS; i++) {
			kiw_sq_done(sq);
			KUNIT_EXPECT_EQ(test, get32(ring.mem + CONSUMER), (n + i) % SLOTS);
		}
	}
}

/* With the flag; and without it and without SGEs, as some of the provider's calls post it */
static void send_has_inline_data(struct kunit *test)
{
	static const u32 ways[][2] = { { 8, 1 }, { 8, 0 }, { 0, 0 } };
	struct kiw_swqe wqe;
	struct ring ring;
	struct kiw_sq *sq = make_sq(test, &ring);
	unsigned int i, way;

	for (way = 0; way < ARRAY_SIZE(ways); way++) {
		put_send(&ring, way, WR_SEND, ways[way][0], ways[way][1]);
		set32(at(&ring, way, SEND_LENGTH), 80);
		for (i = 0; i < 80; i++)
			*at(&ring, way, SEND_DATA + i) = i + 1;
		KUNIT_ASSERT_EQ(test, fetch_send(sq, &wqe), 1);
		KUNIT_EXPECT_EQ(test, wqe.length, 80u);
		KUNIT_EXPECT_EQ(test, (int)wqe.num_sge, 0);
		KUNIT_EXPECT_EQ(test, (int)wqe.flags, (int)KIW_WRF_INLINE);
		for (i = 0; i < 80; i++)
			KUNIT_EXPECT_EQ(test, (unsigned int)wqe.inline_data[i], i + 1);
	}
}

/* The length that counts is that of the SGEs; the provider's may be wrong. */
static void send_length_is_ignored(struct kunit *test)
{
	struct kiw_swqe wqe;
	struct ring ring;
	struct kiw_sq *sq = make_sq(test, &ring);

	put_send(&ring, 0, WR_WRITE, 0, 2);
	set_sges(at(&ring, 0, SEND_DATA), 2, 100);
	set32(at(&ring, 0, SEND_LENGTH), U32_MAX);
	KUNIT_ASSERT_EQ(test, fetch_send(sq, &wqe), 1);
	KUNIT_EXPECT_EQ(test, wqe.length, 200u);
}

/* Any other opcode is malformed, and so are those of RFC 7306 on a connection without it. */
static void send_opcodes(struct kunit *test)
{
	static const struct {
		u32 opcode;
		enum kiw_wr_op op;
		bool is_extended;
	} known[] = {
		{ WR_WRITE, KIW_WR_WRITE }, { WR_WRITE_IMM, KIW_WR_WRITE_IMM, true },
		{ WR_SEND, KIW_WR_SEND }, { WR_READ, KIW_WR_READ },
		{ WR_CMP_SWAP, KIW_WR_CMP_SWAP, true }, { WR_FETCH_ADD, KIW_WR_FETCH_ADD, true },
		{ WR_LOCAL_INV, KIW_WR_LOCAL_INV }, { WR_BIND_MW, KIW_WR_BIND_MW },
		{ WR_SEND_INV, KIW_WR_SEND_INV }, { U32_MAX },
	};
	struct kiw_swqe wqe;
	struct ring ring;
	struct kiw_sq *sq = make_sq(test, &ring);
	unsigned int n, opcode, i;
	bool is_known;

	/* Those of which the last octet is one that is known, too, and the greatest ones */
	for (n = 0; n < 800; n++) {
		opcode = n / 2 < 384 ? n / 2 : U32_MAX - (n / 2 - 384);
		sq->is_extended = n % 2;
		for (i = 0; known[i].opcode < opcode;)
			i++;
		is_known = known[i].opcode == opcode && opcode != U32_MAX &&
			   (sq->is_extended || !known[i].is_extended);
		put_send(&ring, n % SLOTS, opcode, 2, 1);
		set_sges(at(&ring, n % SLOTS, SEND_DATA), 1, 8);
		KUNIT_EXPECT_EQ(test, fetch_send(sq, &wqe), is_known ? 1 : -EINVAL);
		KUNIT_EXPECT_EQ(test, (int)wqe.op, (int)(is_known ? known[i].op : KIW_WR_SEND));
		KUNIT_EXPECT_EQ(test, wqe.wr_id, WR_ID + n % SLOTS);
	}
}

static void send_is_extended(struct kunit *test)
{
	const __be32 imm = cpu_to_be32(0x51525354);
	struct kiw_swqe wqe;
	struct ring ring;
	struct kiw_sq *sq = make_sq(test, &ring);
	unsigned int i;

	put_send(&ring, 0, WR_WRITE_IMM, 0, 0);
	memcpy(at(&ring, 0, SEND_EX), &imm, sizeof(imm));
	KUNIT_ASSERT_EQ(test, fetch_send(sq, &wqe), 1);
	KUNIT_EXPECT_EQ(test, be32_to_cpu(wqe.imm), 0x51525354u);
	KUNIT_EXPECT_EQ(test, wqe.rkey, (u32)RKEY);

	put_send(&ring, 1, WR_SEND_INV, 0, 0);
	set32(at(&ring, 1, SEND_EX), RKEY + 1);
	KUNIT_ASSERT_EQ(test, fetch_send(sq, &wqe), 1);
	KUNIT_EXPECT_EQ(test, wqe.rkey, (u32)RKEY + 1);

	for (i = 2; i < 4; i++) {
		put_send(&ring, i, i == 2 ? WR_FETCH_ADD : WR_CMP_SWAP, 0, 1);
		set64(at(&ring, i, SEND_ATOMIC_ADD), KEY);
		set64(at(&ring, i, SEND_ATOMIC_SWAP), KEY + 1);
		set32(at(&ring, i, SEND_ATOMIC_RKEY), RKEY);
		set_sges(at(&ring, i, SEND_DATA), 1, 8);
		KUNIT_ASSERT_EQ(test, fetch_send(sq, &wqe), 1);
		KUNIT_EXPECT_EQ(test, wqe.raddr, RADDR);
		KUNIT_EXPECT_EQ(test, wqe.rkey, (u32)RKEY);
		KUNIT_EXPECT_EQ(test, wqe.length, 8u);
		expect_sges(test, &wqe.atomic_sink, 1, 8);
		KUNIT_EXPECT_EQ(test, wqe.atomic.data, i == 2 ? KEY : KEY + 1);
		KUNIT_EXPECT_EQ(test, wqe.atomic.mask, i == 2 ? 0 : U64_MAX);
		KUNIT_EXPECT_EQ(test, wqe.atomic.compare, i == 2 ? 0 : KEY);
		KUNIT_EXPECT_EQ(test, wqe.atomic.compare_mask, U64_MAX);
	}
}

/* An entry that sends nothing has no data; stale values in the data fields are ignored. */
static void send_is_local(struct kunit *test)
{
	struct kiw_swqe wqe;
	struct ring ring;
	struct kiw_sq *sq = make_sq(test, &ring);

	put_send(&ring, 0, WR_BIND_MW, 3, U32_MAX);
	set64(at(&ring, 0, BIND_ADDR), RADDR);
	set64(at(&ring, 0, BIND_LENGTH), KEY);
	set32(at(&ring, 0, BIND_LKEY), RKEY);
	set32(at(&ring, 0, BIND_OLD), RKEY + 1);
	set32(at(&ring, 0, BIND_NEW), RKEY + 2);
	set32(at(&ring, 0, BIND_ACCESS), 0xf1234567);
	KUNIT_ASSERT_EQ(test, fetch_send(sq, &wqe), 1);
	KUNIT_EXPECT_EQ(test, (int)wqe.op, (int)KIW_WR_BIND_MW);
	KUNIT_EXPECT_EQ(test, (int)wqe.flags, (int)(KIW_WRF_SIGNALED | KIW_WRF_FENCE));
	KUNIT_EXPECT_EQ(test, wqe.length, 0u);
	KUNIT_EXPECT_EQ(test, (int)wqe.num_sge, 0);
	KUNIT_EXPECT_EQ(test, wqe.rkey, (u32)RKEY + 2);
	KUNIT_EXPECT_EQ(test, wqe.bind.addr, RADDR);
	KUNIT_EXPECT_EQ(test, wqe.bind.length, KEY);
	KUNIT_EXPECT_EQ(test, wqe.bind.lkey, (u32)RKEY);
	KUNIT_EXPECT_EQ(test, wqe.bind.rkey, (u32)RKEY + 1);
	KUNIT_EXPECT_EQ(test, (u32)wqe.bind.access, 0xf1234567u);

	put_send(&ring, 1, WR_LOCAL_INV, 8, U32_MAX);
	set32(at(&ring, 1, SEND_EX), RKEY + 3);
	set32(at(&ring, 1, SEND_LENGTH), U32_MAX);
	KUNIT_ASSERT_EQ(test, fetch_send(sq, &wqe), 1);
	KUNIT_EXPECT_EQ(test, (int)wqe.op, (int)KIW_WR_LOCAL_INV);
	KUNIT_EXPECT_EQ(test, wqe.rkey, (u32)RKEY + 3);
	KUNIT_EXPECT_EQ(test, wqe.length, 0u);
	KUNIT_EXPECT_EQ(test, (int)wqe.num_sge, 0);

	put_send(&ring, 2, WR_BIND_MW, 16, 0);
	KUNIT_EXPECT_EQ(test, fetch_send(sq, &wqe), -EINVAL);
}

/* A malformed entry is taken like any other; only its wr_id is used. */
static void send_is_malformed(struct kunit *test)
{
	static const struct {
		u32 opcode;
		u32 flags;
		u32 num_sge;
		u32 sge_length;
		u32 length;
	} cases[] = {
		{ WR_SEND, 0, 7, 1 },			/* too many SGEs */
		{ WR_WRITE, 0, 256, 1 },
		{ WR_WRITE, 0, U32_MAX, 1 },
		{ WR_WRITE, 0, 2, 0x40000000 },		/* too long */
		{ WR_WRITE, 0, 6, U32_MAX },
		{ WR_SEND, 8, 1, 1, 81 },		/* too much inline */
		{ WR_SEND, 8, 1, 1, U32_MAX },
		{ WR_SEND, 0, 0, 1, 81 },
		{ WR_READ, 8, 1, 1, 8 },		/* inline, but there is a response */
		{ WR_READ, 0, 0, 1, 8 },
		{ WR_FETCH_ADD, 8, 1, 8, 8 },
		{ WR_FETCH_ADD, 0, 0, 8 },		/* no room for the value */
		{ WR_FETCH_ADD, 0, 2, 4 },
		{ WR_CMP_SWAP, 0, 1, 7 },
		{ WR_CMP_SWAP, 0, 1, 16 },
		{ WR_SEND, 16, 1, 1 },			/* flags that nobody sets */
		{ WR_SEND, BIT(31), 1, 1 },
	};
	struct kiw_swqe wqe;
	struct ring ring;
	struct kiw_sq *sq = make_sq(test, &ring);
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		u32 slot = i % SLOTS;

		put_send(&ring, slot, cases[i].opcode, cases[i].flags, cases[i].num_sge);
		set32(at(&ring, slot, SEND_LENGTH), cases[i].length);
		set_sges(at(&ring, slot, SEND_DATA), 6, cases[i].sge_length);
		KUNIT_EXPECT_EQ(test, fetch_send(sq, &wqe), -EINVAL);
		KUNIT_EXPECT_EQ(test, wqe.wr_id, WR_ID + slot);
		KUNIT_EXPECT_EQ(test, wqe.length, 0u);
		KUNIT_EXPECT_EQ(test, sq->get, i + 1);
	}
	/* The longest that is not */
	put_send(&ring, i % SLOTS, WR_WRITE, 0, 1);
	set_sges(at(&ring, i % SLOTS, SEND_DATA), 1, S32_MAX);
	KUNIT_EXPECT_EQ(test, fetch_send(sq, &wqe), 1);
	KUNIT_EXPECT_EQ(test, wqe.length, (u32)S32_MAX);
}

/*
 * Any index of a process is taken for the number of a slot, and at most as many entries are found
 * as a full ring has. Values that it writes to the kernel's index and to the head of the ring are
 * ignored.
 */
static void indices_are_hostile(struct kunit *test)
{
	struct kiw_swqe wqe;
	struct ring ring;
	struct kiw_sq *sq = make_sq(test, &ring);
	u32 state = 1, index, n, i;

	for (n = 0; n < 2000; n++) {
		index = kiw_test_next(&state);
		set32(ring.mem, kiw_test_next(&state));
		set32(ring.mem + INDEX_MASK, kiw_test_next(&state));
		set32(ring.mem + CONSUMER, kiw_test_next(&state));
		set32(ring.mem + PRODUCER, index);
		for (i = 0; fetch_send(sq, &wqe); i++) {
			KUNIT_ASSERT_LT(test, i, (u32)SLOTS - 1);
			kiw_sq_done(sq);
		}
		KUNIT_EXPECT_EQ(test, sq->get % SLOTS, index % SLOTS);
		if (i)
			KUNIT_EXPECT_EQ(test, get32(ring.mem + CONSUMER), index % SLOTS);
	}
}

static struct kiw_rq *make_rq(struct kunit *test, struct ring *ring)
{
	struct kiw_rq *rq = kunit_kzalloc(test, sizeof(*rq), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, rq);
	make_ring(test, ring, HEAD, RECV_BYTES, kiw_uapi_rxe.rq_bytes(SLOTS));
	spin_lock_init(&rq->lock);
	rq->ops = kiw_uapi_rxe.rq;
	rq->ring = ring->mem;
	rq->size = SLOTS;
	rq->max_sge = kiw_uapi_rxe.max_sge;
	return rq;
}

static void put_recv(const struct ring *ring, u32 slot, u32 num_sge, u32 length)
{
	memset(at(ring, slot, 0), 0xa5, RECV_BYTES);
	set64(at(ring, slot, 0), WR_ID + slot);
	/* Not read */
	set32(at(ring, slot, RECV_LENGTH), U32_MAX);
	set32(at(ring, slot, RECV_NUM_SGE), num_sge);
	set_sges(at(ring, slot, RECV_DATA), 6, length);
	set32(ring->mem + PRODUCER, (slot + 1) % SLOTS);
}

static void recv_is_fetched(struct kunit *test)
{
	struct kiw_rwqe wqe;
	struct ring ring;
	struct kiw_rq *rq = make_rq(test, &ring);

	KUNIT_EXPECT_EQ(test, fetch_recv(rq, &wqe), 0);
	KUNIT_EXPECT_TRUE(test, has_recv(rq, 0));
	KUNIT_EXPECT_FALSE(test, has_recv(rq, 1));
	put_recv(&ring, 0, 6, 100);
	put_recv(&ring, 1, 0, 100);
	KUNIT_EXPECT_TRUE(test, has_recv(rq, 2));
	KUNIT_EXPECT_FALSE(test, has_recv(rq, 3));
	KUNIT_EXPECT_FALSE(test, has_recv(rq, SLOTS));

	KUNIT_ASSERT_EQ(test, fetch_recv(rq, &wqe), 1);
	KUNIT_EXPECT_EQ(test, wqe.wr_id, WR_ID);
	KUNIT_EXPECT_EQ(test, (int)wqe.num_sge, 6);
	KUNIT_EXPECT_EQ(test, wqe.length, 600u);
	expect_sges(test, wqe.sge, 6, 100);
	KUNIT_EXPECT_EQ(test, get32(ring.mem + CONSUMER), 1u);
	KUNIT_ASSERT_EQ(test, fetch_recv(rq, &wqe), 1);
	KUNIT_EXPECT_EQ(test, wqe.wr_id, WR_ID + 1);
	KUNIT_EXPECT_EQ(test, wqe.length, 0u);
	KUNIT_EXPECT_EQ(test, fetch_recv(rq, &wqe), 0);
	KUNIT_EXPECT_EQ(test, rq->get, 2u);
}

static void recv_is_malformed(struct kunit *test)
{
	static const u32 cases[][2] = {
		{ 7, 1 }, { 256, 1 }, { U32_MAX, 1 }, { 2, 0x40000000 }, { 6, U32_MAX },
	};
	struct kiw_rwqe wqe;
	struct ring ring;
	struct kiw_rq *rq = make_rq(test, &ring);
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		put_recv(&ring, i % SLOTS, cases[i][0], cases[i][1]);
		KUNIT_EXPECT_EQ(test, fetch_recv(rq, &wqe), -EINVAL);
		KUNIT_EXPECT_EQ(test, wqe.wr_id, WR_ID + i % SLOTS);
		KUNIT_EXPECT_EQ(test, wqe.length, 0u);
		KUNIT_EXPECT_EQ(test, (int)wqe.num_sge, 0);
		KUNIT_EXPECT_EQ(test, rq->get, i + 1);
	}
}

/* Entries of a large ring */
#define MANY	1024

static int move_step(struct kiw_rq *rq, struct kiw_rq_move *move)
{
	int ret;

	spin_lock_irq(&rq->lock);
	ret = rq->ops->move(rq, move);
	spin_unlock_irq(&rq->lock);
	return ret;
}

/* A ring of @size for @rq to move to */
static struct kiw_rq_move a_move(struct kunit *test, struct ring *ring, u32 size)
{
	make_ring(test, ring, HEAD, RECV_BYTES, kiw_uapi_rxe.rq_bytes(size));
	return (struct kiw_rq_move){ .ring = ring->mem, .size = size };
}

/* Post receives whose wr_id is their position, up to @end */
static void post_numbers(struct kiw_rq *rq, u32 from, u32 end)
{
	struct ring ring = { .mem = rq->ring, .head_bytes = HEAD, .slot_bytes = RECV_BYTES };

	for (; from != end; from++) {
		memset(at(&ring, from % rq->size, 0), 0, RECV_BYTES);
		set64(at(&ring, from % rq->size, 0), from);
	}
	set32(ring.mem + PRODUCER, end % rq->size);
}

static void fetch_numbers(struct kunit *test, struct kiw_rq *rq, u32 num)
{
	struct kiw_rwqe wqe;

	for (; num; num--) {
		KUNIT_ASSERT_EQ(test, fetch_recv(rq, &wqe), 1);
		KUNIT_EXPECT_EQ(test, wqe.wr_id, (u64)rq->get - 1);
	}
}

/* Posted receives move to the new ring, in order, unless there is one too many. */
static void receives_move(struct kunit *test)
{
	static const u32 sizes[] = { 8, 4, 16, 2, 64, 64, 4 };
	struct ring ring, to;
	struct kiw_rq *rq = make_rq(test, &ring);
	struct kiw_rq_move move;
	u32 i, fits, end = 0;

	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		post_numbers(rq, end, rq->get + rq->size - 1);
		end = rq->get + rq->size - 1;
		move = a_move(test, &to, sizes[i]);
		fits = min(rq->size, sizes[i]) - 1;
		if (sizes[i] < rq->size) {
			fetch_numbers(test, rq, end - rq->get - fits - 1);
			KUNIT_EXPECT_EQ(test, move_step(rq, &move), -EBUSY);
			KUNIT_EXPECT_PTR_EQ(test, move.ring, (void *)to.mem);
			fetch_numbers(test, rq, 1);
			move = (struct kiw_rq_move){ .ring = to.mem, .size = sizes[i] };
		}
		ring.mem = rq->ring;
		KUNIT_ASSERT_EQ(test, move_step(rq, &move), 0);
		KUNIT_EXPECT_PTR_EQ(test, rq->ring, (void *)to.mem);
		KUNIT_EXPECT_PTR_EQ(test, move.ring, (void *)ring.mem);
		KUNIT_EXPECT_EQ(test, rq->size, sizes[i]);
		KUNIT_EXPECT_EQ(test, get32(to.mem + CONSUMER), rq->get % sizes[i]);
		KUNIT_EXPECT_EQ(test, get32(to.mem + PRODUCER), end % sizes[i]);
		KUNIT_EXPECT_TRUE(test, has_recv(rq, fits));
		KUNIT_EXPECT_FALSE(test, has_recv(rq, fits + 1));
		fetch_numbers(test, rq, fits / 2);
	}
}

/* A few at a time. Some are fetched meanwhile, and a second move goes on from the first's ring. */
static void receives_move_in_steps(struct kunit *test)
{
	struct ring from, to, other;
	struct kiw_rq *rq = make_rq(test, &from);
	struct kiw_rq_move move, second;
	u32 steps = 0;
	int ret;

	move = a_move(test, &from, MANY);
	rq->ring = from.mem;
	rq->size = MANY;
	post_numbers(rq, 0, MANY - 1);
	fetch_numbers(test, rq, 7);
	move = a_move(test, &to, 2 * MANY);
	second = a_move(test, &other, MANY);
	KUNIT_EXPECT_EQ(test, move_step(rq, &second), -EAGAIN);
	while ((ret = move_step(rq, &move)) == -EAGAIN && steps++ < MANY) {
		KUNIT_EXPECT_PTR_EQ(test, rq->ring, (void *)from.mem);
		fetch_numbers(test, rq, 10);
	}
	KUNIT_ASSERT_EQ(test, ret, 0);
	KUNIT_EXPECT_GT(test, steps, 4u);
	KUNIT_EXPECT_PTR_EQ(test, rq->ring, (void *)to.mem);
	fetch_numbers(test, rq, 1);
	while ((ret = move_step(rq, &second)) == -EAGAIN)
		fetch_numbers(test, rq, 1);
	KUNIT_ASSERT_EQ(test, ret, 0);
	KUNIT_EXPECT_PTR_EQ(test, second.ring, (void *)to.mem);
	fetch_numbers(test, rq, MANY - 1 - rq->get);
	KUNIT_EXPECT_FALSE(test, has_recv(rq, 1));
}

/* Whatever the process writes meanwhile, the move ends, and stays in both rings. */
static void receives_move_from_a_hostile_ring(struct kunit *test)
{
	struct ring from, to;
	struct kiw_rq *rq = make_rq(test, &from);
	u32 state = 7, round, steps, size, n;
	struct kiw_rq_move move;
	struct kiw_rwqe wqe;
	int ret;

	move = a_move(test, &from, MANY);
	rq->ring = from.mem;
	rq->size = MANY;
	for (round = 0; round < 100; round++) {
		size = SLOTS << kiw_test_next(&state) % 9;
		move = a_move(test, &to, size);
		for (steps = 0; (ret = move_step(rq, &move)) == -EAGAIN; steps++) {
			KUNIT_ASSERT_LE(test, steps, size);
			set32(from.mem + PRODUCER, kiw_test_next(&state));
			set32(from.mem + CONSUMER, kiw_test_next(&state));
			for (n = kiw_test_next(&state) % 99; n; n--)
				fetch_recv(rq, &wqe);
		}
		KUNIT_ASSERT_TRUE(test, !ret || ret == -EBUSY);
		if (!ret)
			from = to;
		KUNIT_ASSERT_PTR_EQ(test, rq->ring, (void *)from.mem);
		set32(from.mem + PRODUCER, kiw_test_next(&state));
	}
}

static struct kiw_cq *make_cq(struct kunit *test, struct ring *ring)
{
	struct kiw_cq *cq = kunit_kzalloc(test, sizeof(*cq), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, cq);
	make_ring(test, ring, HEAD, CQE_SIZE, kiw_uapi_rxe.cq_bytes(SLOTS));
	spin_lock_init(&cq->lock);
	cq->ops = kiw_uapi_rxe.cq;
	cq->ring = ring->mem;
	cq->size = SLOTS;
	return cq;
}

static struct kiw_wc a_completion(struct kunit *test)
{
	struct ib_qp *qp = kunit_kzalloc(test, sizeof(*qp), GFP_KERNEL);
	struct kiw_wc wc = { .wr_id = WR_ID, .qp = qp, .byte_len = 0x41424344, .op = KIW_WR_RECV };

	KUNIT_ASSERT_NOT_NULL(test, qp);
	qp->qp_num = 0xabcdef;
	return wc;
}

static void completion_is_written(struct kunit *test)
{
	struct kiw_wc wc = a_completion(test);
	struct ring ring;
	struct kiw_cq *cq = make_cq(test, &ring);

	KUNIT_EXPECT_FALSE(test, cq->ops->is_unread(cq));
	memset(at(&ring, 0, 0), 0xa5, CQE_SIZE);
	wc.with_inv = true;
	wc.inv_stag = RKEY;
	KUNIT_EXPECT_TRUE(test, put_completion(cq, &wc));
	KUNIT_EXPECT_TRUE(test, cq->ops->is_unread(cq));
	KUNIT_EXPECT_EQ(test, get32(ring.mem + PRODUCER), 1u);
	KUNIT_EXPECT_EQ(test, get64(at(&ring, 0, 0)), WR_ID);
	KUNIT_EXPECT_EQ(test, get32(at(&ring, 0, CQE_STATUS)), 0u);
	KUNIT_EXPECT_EQ(test, get32(at(&ring, 0, CQE_OPCODE)), 128u);
	KUNIT_EXPECT_EQ(test, get32(at(&ring, 0, CQE_VENDOR)), 0u);
	KUNIT_EXPECT_EQ(test, get32(at(&ring, 0, CQE_LENGTH)), 0x41424344u);
	KUNIT_EXPECT_EQ(test, get32(at(&ring, 0, CQE_EX)), (u32)RKEY);
	KUNIT_EXPECT_EQ(test, get32(at(&ring, 0, CQE_QP)), 0xabcdefu);
	KUNIT_EXPECT_EQ(test, get32(at(&ring, 0, CQE_FLAGS)), 8u);
	KUNIT_EXPECT_EQ(test, (int)*at(&ring, 0, CQE_PORT), 1);

	wc.with_inv = false;
	wc.with_imm = true;
	wc.imm = cpu_to_be32(0x51525354);
	wc.op = KIW_WR_RECV_IMM;
	KUNIT_EXPECT_TRUE(test, put_completion(cq, &wc));
	KUNIT_EXPECT_EQ(test, get32(at(&ring, 1, CQE_OPCODE)), 129u);
	KUNIT_EXPECT_EQ(test, get32(at(&ring, 1, CQE_FLAGS)), 2u);
	KUNIT_EXPECT_MEMEQ(test, at(&ring, 1, CQE_EX), "\x51\x52\x53\x54", 4);

	/* The queue is full when one slot is left, and free again when the process says so. */
	wc.with_imm = false;
	KUNIT_EXPECT_TRUE(test, put_completion(cq, &wc));
	KUNIT_EXPECT_EQ(test, get32(at(&ring, 2, CQE_FLAGS)), 0u);
	KUNIT_EXPECT_FALSE(test, put_completion(cq, &wc));
	set32(ring.mem + CONSUMER, 1);
	KUNIT_EXPECT_TRUE(test, put_completion(cq, &wc));
	KUNIT_EXPECT_FALSE(test, put_completion(cq, &wc));
	KUNIT_EXPECT_EQ(test, get32(ring.mem + PRODUCER), 0u);
	set32(ring.mem + CONSUMER, 0);
	KUNIT_EXPECT_FALSE(test, cq->ops->is_unread(cq));
}

/* Whatever index the process writes, a completion goes to a slot, in order, or is refused. */
static void completions_to_a_hostile_ring(struct kunit *test)
{
	struct kiw_wc wc = a_completion(test);
	struct ring ring;
	struct kiw_cq *cq = make_cq(test, &ring);
	u32 state = 7, put = 0, n;

	for (n = 0; n < 2000; n++) {
		set32(ring.mem, kiw_test_next(&state));
		set32(ring.mem + INDEX_MASK, kiw_test_next(&state));
		set32(ring.mem + PRODUCER, kiw_test_next(&state));
		set32(ring.mem + CONSUMER, kiw_test_next(&state));
		wc.wr_id = n;
		if (!put_completion(cq, &wc))
			continue;
		KUNIT_EXPECT_EQ(test, get64(at(&ring, put % SLOTS, 0)), (u64)n);
		put++;
		KUNIT_EXPECT_EQ(test, cq->put, put);
		KUNIT_EXPECT_EQ(test, get32(ring.mem + PRODUCER), put % SLOTS);
	}
	KUNIT_EXPECT_GT(test, put, 1000u);
	KUNIT_EXPECT_LT(test, put, 2000u);
}

static int step(struct kiw_cq *cq, struct kiw_cq_move *move)
{
	int ret;

	spin_lock_irq(&cq->lock);
	ret = cq->ops->move(cq, move);
	spin_unlock_irq(&cq->lock);
	return ret;
}

static int move(struct kiw_cq *cq, u8 *mem, u32 size)
{
	struct kiw_cq_move m = { .ring = mem, .size = size };

	return step(cq, &m);
}

static int move_all(struct kiw_cq *cq, u8 *mem, u32 size)
{
	struct kiw_cq_move m = { .ring = mem, .size = size };
	int ret;

	while ((ret = step(cq, &m)) == -EAGAIN)
		;
	return ret;
}

/* Unread completions move to the new ring, in order, unless there is one too many. */
static void completions_move(struct kunit *test)
{
	static const u32 sizes[] = { 8, 4, 16, 2, 64, 64, 4 };
	struct kiw_wc wc = a_completion(test);
	struct ring ring, to;
	struct kiw_cq *cq = make_cq(test, &ring);
	u32 taken, i, n;

	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		make_ring(test, &to, HEAD, CQE_SIZE, kiw_uapi_rxe.cq_bytes(sizes[i]));
		for (wc.wr_id = cq->put; put_completion(cq, &wc); wc.wr_id++)
			;
		taken = cq->put - min(cq->size, sizes[i]) + 1;
		if (sizes[i] < cq->size) {
			set32(ring.mem + CONSUMER, (taken - 1) % cq->size);
			KUNIT_EXPECT_EQ(test, move(cq, to.mem, sizes[i]), -EBUSY);
			KUNIT_EXPECT_PTR_EQ(test, cq->ring, (void *)ring.mem);
		}
		set32(ring.mem + CONSUMER, taken % cq->size);
		KUNIT_ASSERT_EQ(test, move(cq, to.mem, sizes[i]), 0);
		KUNIT_EXPECT_PTR_EQ(test, cq->ring, (void *)to.mem);
		KUNIT_EXPECT_EQ(test, cq->size, sizes[i]);
		KUNIT_EXPECT_EQ(test, get32(to.mem + CONSUMER), taken % sizes[i]);
		KUNIT_EXPECT_EQ(test, get32(to.mem + PRODUCER), cq->put % sizes[i]);
		for (n = taken; n != cq->put; n++)
			KUNIT_EXPECT_EQ(test, get64(at(&to, n % sizes[i], 0)), (u64)n);
		ring = to;
	}
}

static void put_numbers(struct kunit *test, struct kiw_cq *cq, u32 num)
{
	struct kiw_wc wc = a_completion(test);

	for (; num; num--) {
		wc.wr_id = cq->put;
		KUNIT_ASSERT_TRUE(test, put_completion(cq, &wc));
	}
}

static void expect_numbers(struct kunit *test, struct kiw_cq *cq, u32 first)
{
	struct ring ring = { .mem = cq->ring, .head_bytes = HEAD, .slot_bytes = CQE_SIZE };
	u32 n;

	KUNIT_EXPECT_EQ(test, get32(ring.mem + CONSUMER), first % cq->size);
	KUNIT_EXPECT_EQ(test, get32(ring.mem + PRODUCER), cq->put % cq->size);
	for (n = first; n != cq->put; n++)
		KUNIT_EXPECT_EQ(test, get64(at(&ring, n % cq->size, 0)), (u64)n);
}

/*
 * A few completions at a time. Those that are put meanwhile move, too, and so does what a second
 * move finds in the ring of the first.
 */
static void completions_move_in_steps(struct kunit *test)
{
	struct ring from, to, other;
	struct kiw_cq *cq = make_cq(test, &from);
	struct kiw_cq_move m, second;
	u32 steps = 0;
	int ret;

	make_ring(test, &from, HEAD, CQE_SIZE, kiw_uapi_rxe.cq_bytes(MANY));
	make_ring(test, &to, HEAD, CQE_SIZE, kiw_uapi_rxe.cq_bytes(2 * MANY));
	make_ring(test, &other, HEAD, CQE_SIZE, kiw_uapi_rxe.cq_bytes(MANY));
	cq->ring = from.mem;
	cq->size = MANY;
	put_numbers(test, cq, MANY / 2);
	set32(from.mem + CONSUMER, 7);

	m = (struct kiw_cq_move){ .ring = to.mem, .size = 2 * MANY };
	second = (struct kiw_cq_move){ .ring = other.mem, .size = MANY };
	KUNIT_EXPECT_EQ(test, step(cq, &second), -EAGAIN);
	while ((ret = step(cq, &m)) == -EAGAIN && steps++ < MANY) {
		KUNIT_EXPECT_PTR_EQ(test, cq->ring, (void *)from.mem);
		KUNIT_EXPECT_EQ(test, cq->size, (u32)MANY);
		put_numbers(test, cq, 10);
	}
	KUNIT_ASSERT_EQ(test, ret, 0);
	KUNIT_EXPECT_GT(test, steps, 4u);
	KUNIT_EXPECT_PTR_EQ(test, cq->ring, (void *)to.mem);
	KUNIT_EXPECT_EQ(test, cq->put, MANY / 2 + 10 * steps);
	expect_numbers(test, cq, 7);

	put_numbers(test, cq, 1);
	while ((ret = step(cq, &second)) == -EAGAIN)
		;
	KUNIT_ASSERT_EQ(test, ret, 0);
	KUNIT_EXPECT_PTR_EQ(test, cq->ring, (void *)other.mem);
	expect_numbers(test, cq, 7);

	/* One too many is put when some have been copied. */
	put_numbers(test, cq, 7 + MANY - 1 - cq->put);
	make_ring(test, &to, HEAD, CQE_SIZE, kiw_uapi_rxe.cq_bytes(2 * MANY));
	m = (struct kiw_cq_move){ .ring = from.mem, .size = MANY };
	KUNIT_EXPECT_EQ(test, step(cq, &m), -EAGAIN);
	KUNIT_ASSERT_EQ(test, move_all(cq, to.mem, 2 * MANY), 0);
	put_numbers(test, cq, 1);
	KUNIT_EXPECT_EQ(test, step(cq, &m), -EBUSY);
	KUNIT_EXPECT_PTR_EQ(test, cq->ring, (void *)to.mem);
	expect_numbers(test, cq, 7);
}

/* Whatever the process writes meanwhile, the move ends, and stays in both rings. */
static void completions_move_from_a_hostile_ring(struct kunit *test)
{
	struct kiw_wc wc = a_completion(test);
	struct ring from, to;
	struct kiw_cq *cq = make_cq(test, &from);
	u32 state = 7, round, steps, size;
	int ret;

	make_ring(test, &from, HEAD, CQE_SIZE, kiw_uapi_rxe.cq_bytes(MANY));
	cq->ring = from.mem;
	cq->size = MANY;
	for (round = 0; round < 100; round++) {
		struct kiw_cq_move m = {};

		size = SLOTS << kiw_test_next(&state) % 9;
		make_ring(test, &to, HEAD, CQE_SIZE, kiw_uapi_rxe.cq_bytes(size));
		m.ring = to.mem;
		m.size = size;
		for (steps = 0; (ret = step(cq, &m)) == -EAGAIN; steps++) {
			KUNIT_ASSERT_LE(test, steps, size);
			set32(from.mem + CONSUMER, kiw_test_next(&state));
			set32(from.mem + PRODUCER, kiw_test_next(&state));
			put_completion(cq, &wc);
		}
		KUNIT_ASSERT_TRUE(test, !ret || ret == -EBUSY);
		if (!ret)
			from = to;
		KUNIT_ASSERT_PTR_EQ(test, cq->ring, (void *)from.mem);
		set32(from.mem + CONSUMER, kiw_test_next(&state));
	}
}

static void completion_values(struct kunit *test)
{
	static const u32 statuses[KIW_WCS_COUNT] = { 0, 1, 4, 2, 5, 7, 10, 9, 11, 6, 21 };
	static const struct {
		enum kiw_wr_op op;
		u32 opcode;
	} ops[] = {
		{ KIW_WR_SEND, 0 }, { KIW_WR_SEND_INV, 0 }, { KIW_WR_WRITE, 1 },
		{ KIW_WR_WRITE_IMM, 1 }, { KIW_WR_READ, 2 }, { KIW_WR_CMP_SWAP, 3 },
		{ KIW_WR_FETCH_ADD, 4 }, { KIW_WR_BIND_MW, 5 }, { KIW_WR_LOCAL_INV, 6 },
		{ KIW_WR_RECV, 128 }, { KIW_WR_RECV_IMM, 129 },
	};
	struct kiw_wc wc = a_completion(test);
	struct ring ring;
	struct kiw_cq *cq = make_cq(test, &ring);
	unsigned int i;

	for (i = 0; i < KIW_WCS_COUNT; i++) {
		wc.status = i;
		wc.term = 0x61626300 + i;
		set32(ring.mem + CONSUMER, cq->put);
		KUNIT_EXPECT_TRUE(test, put_completion(cq, &wc));
		KUNIT_EXPECT_EQ(test, get32(at(&ring, i % SLOTS, CQE_STATUS)), statuses[i]);
		/* Only what has failed has the Terminate, and nothing else has it elsewhere. */
		KUNIT_EXPECT_EQ(test, get32(at(&ring, i % SLOTS, CQE_VENDOR)),
				i ? 0x61626300 + i : 0u);
		KUNIT_EXPECT_EQ(test, get32(at(&ring, i % SLOTS, CQE_EX)), 0u);
	}
	wc.status = KIW_WCS_SUCCESS;
	cq->put = 0;
	for (i = 0; i < ARRAY_SIZE(ops); i++) {
		wc.op = ops[i].op;
		set32(ring.mem + CONSUMER, cq->put);
		KUNIT_EXPECT_TRUE(test, put_completion(cq, &wc));
		KUNIT_EXPECT_EQ(test, get32(at(&ring, i % SLOTS, CQE_OPCODE)), ops[i].opcode);
	}
}

/* Armed by a call: 1: solicited, 2: next. One that is armed for the next stays so. */
static void completion_is_armed(struct kunit *test)
{
	struct kiw_wc wc = a_completion(test);
	struct ring ring;
	struct kiw_cq *cq = make_cq(test, &ring);
	u32 flags, solicited;

	spin_lock_irq(&cq->lock);
	for (flags = 0; flags < 4; flags++) {
		for (solicited = 0; solicited < 2; solicited++) {
			bool is_due = flags & 2 || (flags & 1 && solicited);

			cq->armed = 0;
			KUNIT_EXPECT_FALSE(test, cq->ops->arm(cq, flags & 2));
			KUNIT_EXPECT_FALSE(test, cq->ops->arm(cq, flags & 1));
			KUNIT_EXPECT_EQ(test, (int)cq->ops->take_arm(cq, solicited), (int)is_due);
			KUNIT_EXPECT_FALSE(test, is_due && cq->ops->take_arm(cq, true));
		}
	}
	spin_unlock_irq(&cq->lock);
	KUNIT_EXPECT_TRUE(test, put_completion(cq, &wc));
	spin_lock_irq(&cq->lock);
	KUNIT_EXPECT_TRUE(test, cq->ops->arm(cq, 2));
	spin_unlock_irq(&cq->lock);
}

static void sizes(struct kunit *test)
{
	struct ring ring;
	u32 slots;

	KUNIT_EXPECT_EQ(test, kiw_uapi_rxe.sq_bytes(1), (size_t)HEAD + SEND_BYTES);
	KUNIT_EXPECT_EQ(test, kiw_uapi_rxe.sq_bytes(32768), (size_t)HEAD + 32768 * SEND_BYTES);
	KUNIT_EXPECT_EQ(test, kiw_uapi_rxe.rq_bytes(1), (size_t)HEAD + RECV_BYTES);
	KUNIT_EXPECT_EQ(test, kiw_uapi_rxe.rq_bytes(32768), (size_t)HEAD + 32768 * RECV_BYTES);
	KUNIT_EXPECT_EQ(test, kiw_uapi_rxe.cq_bytes(1), (size_t)HEAD + CQE_SIZE);
	KUNIT_EXPECT_EQ(test, kiw_uapi_rxe.cq_bytes(1 << 20), ((size_t)CQE_SIZE << 20) + HEAD);
	KUNIT_EXPECT_EQ(test, (int)kiw_uapi_rxe.max_sge, 6);
	KUNIT_EXPECT_EQ(test, (int)kiw_uapi_rxe.max_inline, 80);
	KUNIT_EXPECT_EQ(test, (int)kiw_uapi_rxe.spare_slots, 1);

	for (slots = 1; slots <= 64; slots *= 2) {
		size_t bytes = kiw_uapi_rxe.sq_bytes(slots);

		make_ring(test, &ring, HEAD, SEND_BYTES, bytes);
		kiw_uapi_rxe.ring_init(ring.mem, slots, bytes);
		KUNIT_EXPECT_EQ(test, get32(ring.mem), 9u);
		KUNIT_EXPECT_EQ(test, get32(ring.mem + INDEX_MASK), slots - 1);
		KUNIT_EXPECT_EQ(test, get32(ring.mem + PRODUCER), 0u);
		KUNIT_EXPECT_EQ(test, get32(ring.mem + CONSUMER), 0u);
	}
	kiw_uapi_rxe.ring_init(ring.mem, 2, kiw_uapi_rxe.rq_bytes(2));
	KUNIT_EXPECT_EQ(test, get32(ring.mem), 8u);
	kiw_uapi_rxe.ring_init(ring.mem, 2, kiw_uapi_rxe.cq_bytes(2));
	KUNIT_EXPECT_EQ(test, get32(ring.mem), 6u);
}

static void identity(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, (int)kiw_uapi_rxe.device_ops->driver_id, 14);
	KUNIT_EXPECT_EQ(test, kiw_uapi_rxe.device_ops->uverbs_abi_ver, 2u);
	/* POST_SEND and REQ_NOTIFY_CQ */
	KUNIT_EXPECT_EQ(test, kiw_uapi_rxe.cmd_mask, BIT_ULL(28) | BIT_ULL(23));
	KUNIT_EXPECT_EQ(test, (int)kiw_uapi_rxe.context_resp_bytes, 0);
	KUNIT_EXPECT_EQ(test, (int)kiw_uapi_rxe.mr_req_bytes, 0);
	KUNIT_EXPECT_EQ(test, (int)kiw_uapi_rxe.mr_resp_bytes, 0);
}

static void expect_map(struct kunit *test, const u8 *info, u64 key, size_t bytes)
{
	KUNIT_EXPECT_EQ(test, get64(info), key);
	KUNIT_EXPECT_EQ(test, (size_t)get32(info + 8), bytes);
	KUNIT_EXPECT_EQ(test, get32(info + 12), 0u);
}

static void responses(struct kunit *test)
{
	const struct kiw_uapi_ops *uapi = &kiw_uapi_rxe;
	struct kiw_qp *qp = kunit_kzalloc(test, sizeof(*qp), GFP_KERNEL);
	u64 resp[KIW_UAPI_WORDS] = {};
	u8 *bytes = (u8 *)resp;
	const u64 key = KEY;

	KUNIT_ASSERT_NOT_NULL(test, qp);
	KUNIT_EXPECT_EQ(test, (int)uapi->cq_resp_bytes, 16);
	uapi->cq_resp(resp, 256, KEY);
	expect_map(test, bytes, KEY, uapi->cq_bytes(256));

	memset(resp, 0, sizeof(resp));
	KUNIT_EXPECT_EQ(test, (int)uapi->srq_resp_bytes, 24);
	uapi->srq_resp(resp, 128, KEY);
	expect_map(test, bytes, KEY, uapi->rq_bytes(128));
	KUNIT_EXPECT_EQ(test, get64(bytes + 16), 0ull);

	memset(resp, 0, sizeof(resp));
	KUNIT_EXPECT_EQ(test, (int)uapi->srq_resize_req_bytes, 8);
	KUNIT_EXPECT_EQ(test, (int)uapi->srq_resize_resp_bytes, 16);
	uapi->srq_resize_resp(resp, 512, KEY);
	expect_map(test, bytes, KEY, uapi->rq_bytes(512));
	KUNIT_EXPECT_EQ(test, uapi->srq_resize_dest(&key), KEY);

	memset(resp, 0, sizeof(resp));
	KUNIT_EXPECT_EQ(test, (int)uapi->qp_resp_bytes, 32);
	qp->sq.size = 64;
	qp->rq.size = 32;
	uapi->qp_resp(resp, qp, KEY, KEY + 1);
	expect_map(test, bytes, KEY + 1, uapi->rq_bytes(32));
	expect_map(test, bytes + 16, KEY, uapi->sq_bytes(64));

	/* With a shared receive queue */
	memset(resp, 0, sizeof(resp));
	uapi->qp_resp(resp, qp, KEY, 0);
	expect_map(test, bytes, 0, 0);
}

static struct kunit_case uapi_rxe_cases[] = {
	KUNIT_CASE(send_is_fetched),
	KUNIT_CASE(send_returns_its_slot),
	KUNIT_CASE(send_has_inline_data),
	KUNIT_CASE(send_length_is_ignored),
	KUNIT_CASE(send_opcodes),
	KUNIT_CASE(send_is_extended),
	KUNIT_CASE(send_is_local),
	KUNIT_CASE(send_is_malformed),
	KUNIT_CASE(indices_are_hostile),
	KUNIT_CASE(recv_is_fetched),
	KUNIT_CASE(recv_is_malformed),
	KUNIT_CASE(receives_move),
	KUNIT_CASE(receives_move_in_steps),
	KUNIT_CASE(receives_move_from_a_hostile_ring),
	KUNIT_CASE(completion_is_written),
	KUNIT_CASE(completions_to_a_hostile_ring),
	KUNIT_CASE(completions_move),
	KUNIT_CASE(completions_move_in_steps),
	KUNIT_CASE(completions_move_from_a_hostile_ring),
	KUNIT_CASE(completion_values),
	KUNIT_CASE(completion_is_armed),
	KUNIT_CASE(sizes),
	KUNIT_CASE(identity),
	KUNIT_CASE(responses),
	{}
};

static struct kunit_suite uapi_rxe_suite = {
	.name = "kiwarp_uapi_rxe",
	.test_cases = uapi_rxe_cases,
};

kunit_test_suite(uapi_rxe_suite);
