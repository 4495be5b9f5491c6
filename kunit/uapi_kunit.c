// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The layout shared with user space, to the byte: stock rdma-core was built with
 * it, so it must not change.
 */
#include <rdma/kiwarp-abi.h>

#include "util.h"

#define EXPECT_SIZE(test, type, octets) \
	KUNIT_EXPECT_EQ(test, sizeof(struct type), (size_t)(octets))

/* Pins the offset of every member, including padding, which also pins the sizes */
#define EXPECT_OFFSET(test, type, field, offset) \
	KUNIT_EXPECT_EQ(test, offsetof(struct type, field), (size_t)(offset))

static void limits(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, KIWARP_ABI_VERSION, 1);
	KUNIT_EXPECT_EQ(test, KIWARP_MAX_SGE, 6);
	KUNIT_EXPECT_EQ(test, KIWARP_MAX_INLINE, 80);
	KUNIT_EXPECT_EQ(test, KIWARP_INVALID_KEY, 0x90000);
}

static void responses(struct kunit *test)
{
	EXPECT_SIZE(test, kiwarp_uresp_alloc_ctx, 8);
	EXPECT_OFFSET(test, kiwarp_uresp_alloc_ctx, dev_id, 0);
	EXPECT_OFFSET(test, kiwarp_uresp_alloc_ctx, pad, 4);

	EXPECT_SIZE(test, kiwarp_uresp_create_cq, 16);
	EXPECT_OFFSET(test, kiwarp_uresp_create_cq, cq_id, 0);
	EXPECT_OFFSET(test, kiwarp_uresp_create_cq, num_cqe, 4);
	EXPECT_OFFSET(test, kiwarp_uresp_create_cq, cq_key, 8);

	EXPECT_SIZE(test, kiwarp_uresp_create_qp, 32);
	EXPECT_OFFSET(test, kiwarp_uresp_create_qp, qp_id, 0);
	EXPECT_OFFSET(test, kiwarp_uresp_create_qp, num_sqe, 4);
	EXPECT_OFFSET(test, kiwarp_uresp_create_qp, num_rqe, 8);
	EXPECT_OFFSET(test, kiwarp_uresp_create_qp, pad, 12);
	EXPECT_OFFSET(test, kiwarp_uresp_create_qp, sq_key, 16);
	EXPECT_OFFSET(test, kiwarp_uresp_create_qp, rq_key, 24);

	EXPECT_SIZE(test, kiwarp_uresp_create_srq, 16);
	EXPECT_OFFSET(test, kiwarp_uresp_create_srq, num_rqe, 0);
	EXPECT_OFFSET(test, kiwarp_uresp_create_srq, pad, 4);
	EXPECT_OFFSET(test, kiwarp_uresp_create_srq, srq_key, 8);

	EXPECT_SIZE(test, kiwarp_uresp_reg_mr, 8);
	EXPECT_OFFSET(test, kiwarp_uresp_reg_mr, stag, 0);
	EXPECT_OFFSET(test, kiwarp_uresp_reg_mr, pad, 4);
}

static void requests(struct kunit *test)
{
	EXPECT_SIZE(test, kiwarp_ureq_reg_mr, 8);
	EXPECT_OFFSET(test, kiwarp_ureq_reg_mr, stag_key, 0);
	EXPECT_OFFSET(test, kiwarp_ureq_reg_mr, reserved, 1);
	EXPECT_OFFSET(test, kiwarp_ureq_reg_mr, pad, 4);
}

static void sge(struct kunit *test)
{
	EXPECT_SIZE(test, kiwarp_sge, 16);
	EXPECT_OFFSET(test, kiwarp_sge, laddr, 0);
	EXPECT_OFFSET(test, kiwarp_sge, length, 8);
	EXPECT_OFFSET(test, kiwarp_sge, lkey, 12);
}

static void sqe(struct kunit *test)
{
	EXPECT_SIZE(test, kiwarp_sqe, 120);
	EXPECT_OFFSET(test, kiwarp_sqe, id, 0);
	EXPECT_OFFSET(test, kiwarp_sqe, flags, 8);
	EXPECT_OFFSET(test, kiwarp_sqe, num_sge, 10);
	EXPECT_OFFSET(test, kiwarp_sqe, opcode, 11);
	EXPECT_OFFSET(test, kiwarp_sqe, rkey, 12);
	EXPECT_OFFSET(test, kiwarp_sqe, raddr, 16);
	EXPECT_OFFSET(test, kiwarp_sqe, sge, 24);
	EXPECT_OFFSET(test, kiwarp_sqe, sge[1], 40);
	KUNIT_EXPECT_EQ(test, sizeof(struct kiwarp_sqe) - offsetof(struct kiwarp_sqe, sge[1]),
			(size_t)KIWARP_MAX_INLINE);
}

static void rqe(struct kunit *test)
{
	EXPECT_SIZE(test, kiwarp_rqe, 112);
	EXPECT_OFFSET(test, kiwarp_rqe, id, 0);
	EXPECT_OFFSET(test, kiwarp_rqe, flags, 8);
	EXPECT_OFFSET(test, kiwarp_rqe, num_sge, 10);
	EXPECT_OFFSET(test, kiwarp_rqe, opcode, 11);
	EXPECT_OFFSET(test, kiwarp_rqe, unused, 12);
	EXPECT_OFFSET(test, kiwarp_rqe, sge, 16);
}

static void cqe(struct kunit *test)
{
	EXPECT_SIZE(test, kiwarp_cqe, 32);
	EXPECT_OFFSET(test, kiwarp_cqe, id, 0);
	EXPECT_OFFSET(test, kiwarp_cqe, flags, 8);
	EXPECT_OFFSET(test, kiwarp_cqe, opcode, 9);
	EXPECT_OFFSET(test, kiwarp_cqe, status, 10);
	EXPECT_OFFSET(test, kiwarp_cqe, bytes, 12);
	EXPECT_OFFSET(test, kiwarp_cqe, imm_data, 16);
	EXPECT_OFFSET(test, kiwarp_cqe, inval_stag, 16);
	KUNIT_EXPECT_EQ(test, sizeof_field(struct kiwarp_cqe, inval_stag), (size_t)4);
	EXPECT_OFFSET(test, kiwarp_cqe, qp_id, 24);
	EXPECT_SIZE(test, kiwarp_cq_ctrl, 8);
	EXPECT_OFFSET(test, kiwarp_cq_ctrl, flags, 0);
	EXPECT_OFFSET(test, kiwarp_cq_ctrl, pad, 4);
}

static void opcodes(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, (int)KIWARP_OP_WRITE, 0);
	KUNIT_EXPECT_EQ(test, (int)KIWARP_OP_READ, 1);
	KUNIT_EXPECT_EQ(test, (int)KIWARP_OP_SEND, 3);
	KUNIT_EXPECT_EQ(test, (int)KIWARP_OP_SEND_INV, 5);
	KUNIT_EXPECT_EQ(test, (int)KIWARP_OP_RECV, 8);
}

static void flags(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, (int)KIWARP_WQE_VALID, 1);
	KUNIT_EXPECT_EQ(test, (int)KIWARP_WQE_INLINE, 2);
	KUNIT_EXPECT_EQ(test, (int)KIWARP_WQE_SIGNALED, 4);
	KUNIT_EXPECT_EQ(test, (int)KIWARP_WQE_SOLICITED, 8);
	KUNIT_EXPECT_EQ(test, (int)KIWARP_WQE_READ_FENCE, 16);
	KUNIT_EXPECT_EQ(test, (int)KIWARP_NOTIFY_NONE, 0);
	KUNIT_EXPECT_EQ(test, (int)KIWARP_NOTIFY_SOLICITED, 1);
	KUNIT_EXPECT_EQ(test, (int)KIWARP_NOTIFY_NEXT, 2);
}

static void statuses(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, (int)KIWARP_CQE_SUCCESS, 0);
	KUNIT_EXPECT_EQ(test, (int)KIWARP_CQE_LOC_LEN, 1);
	KUNIT_EXPECT_EQ(test, (int)KIWARP_CQE_LOC_PROT, 2);
	KUNIT_EXPECT_EQ(test, (int)KIWARP_CQE_LOC_QP_OP, 3);
	KUNIT_EXPECT_EQ(test, (int)KIWARP_CQE_FLUSHED, 4);
	KUNIT_EXPECT_EQ(test, (int)KIWARP_CQE_BAD_RESP, 5);
	KUNIT_EXPECT_EQ(test, (int)KIWARP_CQE_LOC_ACCESS, 6);
	KUNIT_EXPECT_EQ(test, (int)KIWARP_CQE_REM_ACCESS, 7);
	KUNIT_EXPECT_EQ(test, (int)KIWARP_CQE_REM_INV_REQ, 8);
	KUNIT_EXPECT_EQ(test, (int)KIWARP_CQE_GENERAL, 9);
}

static struct kunit_case uapi_cases[] = {
	KUNIT_CASE(limits),
	KUNIT_CASE(responses),
	KUNIT_CASE(requests),
	KUNIT_CASE(sge),
	KUNIT_CASE(sqe),
	KUNIT_CASE(rqe),
	KUNIT_CASE(cqe),
	KUNIT_CASE(opcodes),
	KUNIT_CASE(flags),
	KUNIT_CASE(statuses),
	{}
};

static struct kunit_suite uapi_suite = {
	.name = "kiwarp_uapi",
	.test_cases = uapi_cases,
};

kunit_test_suite(uapi_suite);
