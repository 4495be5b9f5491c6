// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Work requests of kernel consumers: what is refused when it is posted, and what of the others the
 * engine gets.
 */
#include "queue/wr.c"

#include "util.h"

#define WR_SLOTS	4

static struct kiw_sq *wr_open_sq(struct kunit *test, u8 max_sge)
{
	struct kiw_sq *sq = kunit_kzalloc(test, sizeof(*sq), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, sq);
	spin_lock_init(&sq->lock);
	sq->ops = &kiw_sq_kernel_ops;
	sq->size = WR_SLOTS;
	sq->max_sge = max_sge;
	sq->max_inline = KIW_MAX_INLINE;
	sq->is_extended = true;
	/* Positions wrap in the middle of the ring. */
	sq->put = U32_MAX - 1;
	sq->get = sq->put;
	sq->done = sq->put;
	sq->ring = kiw_sq_kernel_ring(WR_SLOTS, max_sge);
	KUNIT_ASSERT_NOT_NULL(test, sq->ring);
	return sq;
}

static void wr_fill(struct ib_sge *sge, int num, u64 seed)
{
	int i;

	for (i = 0; i < num; i++)
		sge[i] = (struct ib_sge) { seed + 0x1000 * i, 8 + i, 0x100 + i };
}

static void wr_expect_sges(struct kunit *test, const struct kiw_swqe *wqe, int num, u64 seed)
{
	const struct kiw_sge *sge = kiw_swqe_sges(wqe);
	int i;

	KUNIT_ASSERT_EQ(test, (int)wqe->num_sge, num);
	for (i = 0; i < num; i++) {
		KUNIT_EXPECT_EQ(test, sge[i].addr, seed + 0x1000 * i);
		KUNIT_EXPECT_EQ(test, sge[i].length, 8U + i);
		KUNIT_EXPECT_EQ(test, sge[i].lkey, 0x100U + i);
	}
}

/* Up to a full queue of Writes with few and many SGEs: each keeps its own. */
static void each_write_keeps_its_sges(struct kunit *test)
{
	struct kiw_sq *sq = wr_open_sq(test, KIW_MAX_SEND_SGE);
	struct ib_sge sge[KIW_MAX_SEND_SGE];
	struct ib_rdma_wr wr = { .wr = { .opcode = IB_WR_RDMA_WRITE, .sg_list = sge } };
	u64 posted = 0, fetched = 0;
	struct kiw_swqe wqe;
	int num;

	while (fetched < 200) {
		while (posted < fetched + WR_SLOTS) {
			num = posted * 7 % (KIW_MAX_SEND_SGE + 1);
			wr_fill(sge, num, posted << 32);
			wr.wr.num_sge = num;
			wr.wr.wr_id = posted++;
			KUNIT_ASSERT_EQ(test, kiw_sq_post(sq, &wr.wr), 0);
		}
		KUNIT_EXPECT_EQ(test, kiw_sq_post(sq, &wr.wr), -ENOMEM);
		KUNIT_ASSERT_EQ(test, kiw_sq_fetch(sq, &wqe), 1);
		KUNIT_EXPECT_EQ(test, wqe.wr_id, fetched);
		/* The slot is free when its work request is done, not when it is fetched. */
		KUNIT_EXPECT_EQ(test, kiw_sq_post(sq, &wr.wr), -ENOMEM);
		num = fetched * 7 % (KIW_MAX_SEND_SGE + 1);
		wr_expect_sges(test, &wqe, num, fetched << 32);
		kiw_sq_done(sq);
		fetched++;
	}
	kvfree(sq->ring);
}

/* Refused as @want; the queue does not change. */
static void wr_refuse(struct kunit *test, struct kiw_sq *sq, const struct ib_send_wr *wr, int want)
{
	u32 put = sq->put;

	KUNIT_EXPECT_EQ(test, kiw_sq_post(sq, wr), want);
	KUNIT_EXPECT_EQ(test, sq->put, put);
	KUNIT_EXPECT_FALSE(test, kiw_sq_has(sq, 1));
}

static void bad_sges_are_refused(struct kunit *test)
{
	static const enum ib_wr_opcode opcodes[] = {
		IB_WR_SEND, IB_WR_SEND_WITH_INV, IB_WR_RDMA_WRITE, IB_WR_RDMA_READ,
		IB_WR_RDMA_READ_WITH_INV, IB_WR_RDMA_WRITE_WITH_IMM,
	};
	struct kiw_sq *sq = wr_open_sq(test, KIW_MAX_SEND_SGE);
	struct ib_sge sge[KIW_MAX_SEND_SGE + 1];
	struct ib_rdma_wr rdma = { .wr = { .sg_list = sge } };
	struct ib_send_wr *wr = &rdma.wr;
	int i;

	for (i = 0; i < ARRAY_SIZE(opcodes); i++) {
		wr->opcode = opcodes[i];
		wr_fill(sge, ARRAY_SIZE(sge), 0);
		wr->num_sge = -1;
		wr_refuse(test, sq, wr, -EINVAL);
		wr->num_sge = KIW_MAX_SEND_SGE + 1;
		wr_refuse(test, sq, wr, -EINVAL);
		sge[0].length = KIW_MAX_WR_BYTES + 1U;
		wr->num_sge = 1;
		wr_refuse(test, sq, wr, -EINVAL);
		sge[0].length = KIW_MAX_WR_BYTES;
		wr->num_sge = 2;
		wr_refuse(test, sq, wr, -EINVAL);
	}
	wr_fill(sge, ARRAY_SIZE(sge), 0);
	wr->opcode = IB_WR_RDMA_READ;
	wr->num_sge = KIW_MAX_SGE + 1;
	wr_refuse(test, sq, wr, -EINVAL);
	wr->opcode = IB_WR_RDMA_READ_WITH_INV;
	wr->num_sge = 2;
	wr_refuse(test, sq, wr, -EINVAL);
	wr->num_sge = 0;
	wr_refuse(test, sq, wr, -EINVAL);
	kvfree(sq->ring);
}

static void the_longest_is_accepted(struct kunit *test)
{
	struct kiw_sq *sq = wr_open_sq(test, 2);
	struct ib_sge sge[2] = { { .length = KIW_MAX_WR_BYTES - 1 }, { .length = 1 } };
	struct ib_send_wr wr = { .opcode = IB_WR_SEND, .sg_list = sge, .num_sge = 2 };
	struct kiw_swqe wqe;

	KUNIT_ASSERT_EQ(test, kiw_sq_post(sq, &wr), 0);
	KUNIT_ASSERT_EQ(test, kiw_sq_fetch(sq, &wqe), 1);
	KUNIT_EXPECT_EQ(test, wqe.length, (u32)KIW_MAX_WR_BYTES);
	kvfree(sq->ring);
}

static void local_operations_have_no_data(struct kunit *test)
{
	struct kiw_sq *sq = wr_open_sq(test, KIW_MAX_SGE);
	struct ib_sge sge = { .length = 8 };
	struct ib_send_wr wr = { .opcode = IB_WR_LOCAL_INV, .sg_list = &sge, .num_sge = 1 };

	wr_refuse(test, sq, &wr, -EINVAL);
	wr.num_sge = 0;
	wr.send_flags = IB_SEND_INLINE;
	wr_refuse(test, sq, &wr, -EINVAL);
	wr.send_flags = 0;
	KUNIT_EXPECT_EQ(test, kiw_sq_post(sq, &wr), 0);
	kvfree(sq->ring);
}

static void inline_data_is_copied(struct kunit *test)
{
	struct kiw_sq *sq = wr_open_sq(test, 1);
	u8 data[KIW_MAX_INLINE + 1];
	struct ib_sge sge[KIW_MAX_INLINE];
	struct ib_send_wr wr = {
		.opcode = IB_WR_SEND, .send_flags = IB_SEND_INLINE, .sg_list = sge,
	};
	struct kiw_swqe wqe;
	int num, i;

	for (i = 0; i < ARRAY_SIZE(data); i++)
		data[i] = i + 1;
	for (num = 0; num <= KIW_MAX_INLINE; num++) {
		/* More SGEs than the queue has; the last one has the rest. */
		for (i = 0; i < num; i++)
			sge[i] = (struct ib_sge) {
				(uintptr_t)&data[i], i < num - 1 ? 1 : KIW_MAX_INLINE - i, ~0,
			};
		wr.num_sge = num;
		KUNIT_ASSERT_EQ(test, kiw_sq_post(sq, &wr), 0);
		KUNIT_ASSERT_EQ(test, kiw_sq_fetch(sq, &wqe), 1);
		KUNIT_EXPECT_EQ(test, wqe.length, num ? KIW_MAX_INLINE + 0U : 0U);
		KUNIT_EXPECT_EQ(test, wqe.num_sge, 0);
		KUNIT_EXPECT_MEMEQ(test, wqe.inline_data, data, wqe.length);
		kiw_sq_done(sq);
		if (num) {
			sge[num - 1].length++;
			wr_refuse(test, sq, &wr, -EINVAL);
		}
	}
	wr.num_sge = -1;
	wr_refuse(test, sq, &wr, -EINVAL);
	kvfree(sq->ring);
}

static void inline_data_is_for_messages_without_an_answer(struct kunit *test)
{
	struct kiw_sq *sq = wr_open_sq(test, KIW_MAX_SGE);
	u64 value = 5;
	struct ib_sge sge = { (uintptr_t)&value, sizeof(value), 0 };
	struct ib_atomic_wr atomic = {
		.wr = { .opcode = IB_WR_ATOMIC_FETCH_AND_ADD, .send_flags = IB_SEND_INLINE,
			.sg_list = &sge, .num_sge = 1 },
	};
	struct ib_rdma_wr rdma = { .wr = atomic.wr };

	wr_refuse(test, sq, &atomic.wr, -EINVAL);
	rdma.wr.opcode = IB_WR_RDMA_READ;
	wr_refuse(test, sq, &rdma.wr, -EINVAL);
	kvfree(sq->ring);
}

static void flags_and_opcodes_are_checked(struct kunit *test)
{
	struct kiw_sq *sq = wr_open_sq(test, KIW_MAX_SGE);
	struct ib_sge sge = { .length = 8 };
	struct ib_atomic_wr atomic = { .wr = { .sg_list = &sge, .num_sge = 1 } };
	struct ib_send_wr *wr = &atomic.wr;

	wr->opcode = IB_WR_SEND;
	wr->send_flags = IB_SEND_IP_CSUM;
	wr_refuse(test, sq, wr, -EINVAL);
	wr->send_flags = 0;
	wr->opcode = IB_WR_SEND_WITH_IMM;
	wr_refuse(test, sq, wr, -EOPNOTSUPP);
	wr->opcode = IB_WR_BIND_MW;
	wr_refuse(test, sq, wr, -EOPNOTSUPP);
	wr->opcode = IB_WR_ATOMIC_CMP_AND_SWP;
	sge.length = 4;
	wr_refuse(test, sq, wr, -EINVAL);
	sge.length = 8;
	wr->num_sge = 2;
	wr_refuse(test, sq, wr, -EINVAL);
	wr->num_sge = 1;
	sq->is_extended = false;
	wr_refuse(test, sq, wr, -EOPNOTSUPP);
	sq->is_extended = true;
	KUNIT_EXPECT_EQ(test, kiw_sq_post(sq, wr), 0);
	kvfree(sq->ring);
}

static void registrations_are_checked(struct kunit *test)
{
	struct ib_device *device = kunit_kzalloc(test, sizeof(*device), GFP_KERNEL);
	struct kiw_sq *sq = wr_open_sq(test, KIW_MAX_SGE);
	struct ib_mr mr = { .device = device, .lkey = 0x1234500 };
	struct ib_reg_wr reg = {
		.wr = { .opcode = IB_WR_REG_MR }, .key = 0x12345ff, .access = IB_ACCESS_LOCAL_WRITE,
	};
	struct kiw_swqe wqe;

	KUNIT_ASSERT_NOT_NULL(test, device);
	wr_refuse(test, sq, &reg.wr, -EINVAL);
	reg.mr = &mr;
	reg.key ^= 0x100;
	wr_refuse(test, sq, &reg.wr, -EINVAL);
	reg.key ^= 0x100;
	reg.access = IB_ACCESS_REMOTE_WRITE;
	wr_refuse(test, sq, &reg.wr, -EINVAL);
	reg.access = IB_ZERO_BASED;
	wr_refuse(test, sq, &reg.wr, -EINVAL);
	reg.access = IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE;
	KUNIT_ASSERT_EQ(test, kiw_sq_post(sq, &reg.wr), 0);
	KUNIT_ASSERT_EQ(test, kiw_sq_fetch(sq, &wqe), 1);
	KUNIT_EXPECT_EQ(test, (int)wqe.op, (int)KIW_WR_REG_MR);
	KUNIT_EXPECT_EQ(test, wqe.rkey, 0x12345ffU);
	KUNIT_EXPECT_EQ(test, wqe.access, reg.access);
	kvfree(sq->ring);
}

static void bad_receives_are_refused(struct kunit *test)
{
	struct kiw_rq *rq = kunit_kzalloc(test, sizeof(*rq), GFP_KERNEL);
	struct ib_sge sge[KIW_MAX_SGE + 1];
	struct ib_recv_wr wr = { .wr_id = 7, .sg_list = sge, .num_sge = -1 };
	struct kiw_rwqe wqe;

	KUNIT_ASSERT_NOT_NULL(test, rq);
	spin_lock_init(&rq->lock);
	rq->ops = &kiw_rq_kernel_ops;
	rq->size = 1;
	rq->max_sge = KIW_MAX_SGE;
	rq->ring = kiw_rq_kernel_ring(1);
	KUNIT_ASSERT_NOT_NULL(test, rq->ring);
	wr_fill(sge, ARRAY_SIZE(sge), 0);
	KUNIT_EXPECT_EQ(test, kiw_rq_post(rq, &wr), -EINVAL);
	wr.num_sge = KIW_MAX_SGE + 1;
	KUNIT_EXPECT_EQ(test, kiw_rq_post(rq, &wr), -EINVAL);
	sge[0].length = KIW_MAX_WR_BYTES;
	wr.num_sge = 2;
	KUNIT_EXPECT_EQ(test, kiw_rq_post(rq, &wr), -EINVAL);
	KUNIT_EXPECT_EQ(test, kiw_rq_fetch(rq, &wqe), 0);
	wr.num_sge = 1;
	KUNIT_EXPECT_EQ(test, kiw_rq_post(rq, &wr), 0);
	KUNIT_EXPECT_EQ(test, kiw_rq_post(rq, &wr), -ENOMEM);
	KUNIT_ASSERT_EQ(test, kiw_rq_fetch(rq, &wqe), 1);
	KUNIT_EXPECT_EQ(test, wqe.wr_id, 7ULL);
	KUNIT_EXPECT_EQ(test, wqe.length, (u32)KIW_MAX_WR_BYTES);
	KUNIT_EXPECT_EQ(test, (int)wqe.num_sge, 1);
	kvfree(rq->ring);
}

static struct kunit_case wr_cases[] = {
	KUNIT_CASE(each_write_keeps_its_sges),
	KUNIT_CASE(bad_sges_are_refused),
	KUNIT_CASE(the_longest_is_accepted),
	KUNIT_CASE(local_operations_have_no_data),
	KUNIT_CASE(inline_data_is_copied),
	KUNIT_CASE(inline_data_is_for_messages_without_an_answer),
	KUNIT_CASE(flags_and_opcodes_are_checked),
	KUNIT_CASE(registrations_are_checked),
	KUNIT_CASE(bad_receives_are_refused),
	{}
};

static struct kunit_suite wr_suite = {
	.name = "kiwarp_wr",
	.test_cases = wr_cases,
};

kunit_test_suite(wr_suite);
