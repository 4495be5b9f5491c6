// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Cases: immediate data and atomic operations arrive as they were posted, once and in order; an
 * operation that is not permitted changes nothing and ends the connection.
 *
 * Contexts: process. No locks: the word that several add to is an atomic64_t.
 */
#include <linux/atomic.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/workqueue.h>

#include "ktest.h"

#define ALL_RIGHTS	(IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_READ | \
			 IB_ACCESS_REMOTE_ATOMIC)

/* Offsets in the memory of an end: the word to operate on, where original values go, a source */
#define WORD		(2 * PAGE_SIZE + 64)
#define RESULT		(8 * PAGE_SIZE)
#define SOURCE		(16 * PAGE_SIZE)
#define SINK		(128 * PAGE_SIZE + 9)

#define IMM		0x01020304
#define CANARY		0xc5
#define ADDERS		4000

/**
 * struct op - an atomic operation
 * @code: IB_WR_ATOMIC_FETCH_AND_ADD or another
 * @compare_add: what to add, or to compare with
 * @swap: the new value
 * @compare_add_mask: masked operations: ends of fields, or bits to compare
 * @swap_mask: masked operations: bits of the new value
 */
struct op {
	enum ib_wr_opcode code;
	u64 compare_add;
	u64 swap;
	u64 compare_add_mask;
	u64 swap_mask;
};

static u64 *word_of(struct ktest_end *end)
{
	return (u64 *)(end->mem + WORD);
}

static u64 result_of(const struct ktest_end *end, u32 i)
{
	return ((const u64 *)(end->mem + RESULT))[i];
}

static void expose_both(struct ktest_pair *p, int access)
{
	ktest_expose(&p->end[0], access);
	ktest_expose(&p->end[1], access);
}

/* Posts an operation on @to of the peer; the original value becomes result @i of @end. */
static void post_op(struct ktest_end *end, struct ktest_wr *w, const struct op *op, u64 to, u32 i)
{
	struct ib_sge sge = ktest_sge(end, RESULT + i * sizeof(u64), sizeof(u64));
	struct ib_atomic_wr wr = {
		.wr = { .opcode = op->code, .sg_list = &sge, .num_sge = 1 },
		.remote_addr = to,
		.compare_add = op->compare_add,
		.swap = op->swap,
		.compare_add_mask = op->compare_add_mask,
		.swap_mask = op->swap_mask,
		.rkey = ktest_peer(end)->mr->rkey,
	};

	ktest_post(end, w, &wr.wr);
}

static u64 remote_word(struct ktest_end *end)
{
	return ktest_peer(end)->mr->iova + WORD;
}

/* One operation on a word with @before in it; expects @after there, and nothing else to change */
static void one_op(struct ktest_end *end, const struct op *op, u64 before, u64 after,
		   enum ib_wc_opcode opcode)
{
	struct ktest_end *peer = ktest_peer(end);
	struct ktest_wr *w = &end->sends[0];
	struct ktest_pair *p = end->pair;

	memset(end->mem + RESULT - 8, CANARY, 24);
	memset(peer->mem + WORD - 8, CANARY, 24);
	*word_of(peer) = before;
	post_op(end, w, op, remote_word(end), 0);
	ktest_wait(w, IB_WC_SUCCESS);
	if (READ_ONCE(p->has_failed))
		return;
	ktest_expect_eq(p, w->wc.opcode, opcode);
	ktest_expect_eq(p, w->wc.byte_len, 8);
	ktest_expect_eq(p, result_of(end, 0), before);
	ktest_expect_eq(p, *word_of(peer), after);
	ktest_expect(p, !memchr_inv(end->mem + RESULT - 8, CANARY, 8));
	ktest_expect(p, !memchr_inv(end->mem + RESULT + 8, CANARY, 8));
	ktest_expect(p, !memchr_inv(peer->mem + WORD - 8, CANARY, 8));
	ktest_expect(p, !memchr_inv(peer->mem + WORD + 8, CANARY, 8));
}

static void atomics(struct ktest_pair *p)
{
	const struct op add = { .code = IB_WR_ATOMIC_FETCH_AND_ADD, .compare_add = 5 };
	const struct op swap = {
		.code = IB_WR_ATOMIC_CMP_AND_SWP, .compare_add = 0x1122334455667788,
		.swap = 0x99aabbccddeeff00,
	};
	const struct op fields = {
		.code = IB_WR_MASKED_ATOMIC_FETCH_AND_ADD, .compare_add = 0x0000000100000001,
		.compare_add_mask = 0x8000000080000000,
	};
	const struct op bits = {
		.code = IB_WR_MASKED_ATOMIC_CMP_AND_SWP, .compare_add = 0xff12, .swap = 0xeeee,
		.compare_add_mask = 0x00ff, .swap_mask = 0x0ff0,
	};
	int i;

	expose_both(p, ALL_RIGHTS);
	for (i = 0; i < 2; i++) {
		struct ktest_end *end = &p->end[i];

		one_op(end, &add, 37, 42, IB_WC_FETCH_ADD);
		one_op(end, &add, ~0ULL, 4, IB_WC_FETCH_ADD);
		one_op(end, &swap, 0x1122334455667788, 0x99aabbccddeeff00, IB_WC_COMP_SWAP);
		one_op(end, &swap, 0x1122334455667789, 0x1122334455667789, IB_WC_COMP_SWAP);
		one_op(end, &fields, 0x00000007ffffffff, 0x0000000800000000,
		       IB_WC_MASKED_FETCH_ADD);
		one_op(end, &bits, 0x7712, 0x7ee2, IB_WC_MASKED_COMP_SWAP);
		one_op(end, &bits, 0x7713, 0x7713, IB_WC_MASKED_COMP_SWAP);
	}
}

static void post_read(struct ktest_end *end, struct ktest_wr *w, u32 i, int flags)
{
	struct ib_sge sge = ktest_sge(end, RESULT + i * sizeof(u64), sizeof(u64));
	struct ib_rdma_wr wr = {
		.wr = { .opcode = IB_WR_RDMA_READ, .sg_list = &sge, .num_sge = 1,
			.send_flags = flags },
		.remote_addr = remote_word(end),
		.rkey = ktest_peer(end)->mr->rkey,
	};

	ktest_post(end, w, &wr.wr);
}

/* More Reads and operations than the peer allows at once: each sees what the ones before it did */
static void atomics_in_order(struct ktest_pair *p)
{
	const struct op add = { .code = IB_WR_ATOMIC_FETCH_AND_ADD, .compare_add = 1 };
	struct ktest_end *end = &p->end[0];
	u32 i;

	expose_both(p, ALL_RIGHTS);
	*word_of(&p->end[1]) = 0;
	for (i = 0; i < KTEST_DEPTH; i++) {
		if (i % 3 == 1)
			post_read(end, &end->sends[i], i, i % 2 ? IB_SEND_FENCE : 0);
		else
			post_op(end, &end->sends[i], &add, remote_word(end), i);
	}
	for (i = 0; i < KTEST_DEPTH; i++)
		ktest_wait(&end->sends[i], IB_WC_SUCCESS);
	for (i = 0; i < KTEST_DEPTH && !READ_ONCE(p->has_failed); i++)
		ktest_expect_eq(p, result_of(end, i), i - i / 3 - (i % 3 == 2));
	ktest_expect_eq(p, *word_of(&p->end[1]), KTEST_DEPTH - KTEST_DEPTH / 3 - 1);
}

/* The peer and a local thread add to one word at the same time. */
static void atomics_add_up(struct ktest_pair *p)
{
	const struct op add = { .code = IB_WR_ATOMIC_FETCH_AND_ADD, .compare_add = 1ULL << 32 };
	struct ktest_end *end = &p->end[1];
	atomic64_t *word = (atomic64_t *)word_of(&p->end[0]);
	u64 local = 0;
	u32 i;

	expose_both(p, ALL_RIGHTS);
	atomic64_set(word, 0);
	for (i = 0; i < ADDERS && !READ_ONCE(p->has_failed); i++) {
		if (i >= KTEST_DEPTH)
			ktest_wait(&end->sends[i % KTEST_DEPTH], IB_WC_SUCCESS);
		post_op(end, &end->sends[i % KTEST_DEPTH], &add, remote_word(end),
			i % KTEST_DEPTH);
		for (; local < i * 100; local++)
			atomic64_inc(word);
		cond_resched();
	}
	for (i = ADDERS; i < ADDERS + KTEST_DEPTH; i++)
		ktest_wait(&end->sends[i % KTEST_DEPTH], IB_WC_SUCCESS);
	if (!READ_ONCE(p->has_failed))
		ktest_expect_eq(p, atomic64_read(word), ((u64)ADDERS << 32) + local);
}

/**
 * struct adder - what adds to a word through one stream
 * @work: runs it
 * @end: its end of the stream
 * @add: the operation
 * @shift: position of its part of the word; no other adder changes that part
 */
struct adder {
	struct work_struct work;
	struct ktest_end *end;
	struct op add;
	unsigned int shift;
};

/* The original value of its add @i: all earlier ones of the same stream, and none twice */
static void check_add(struct adder *a, u32 i)
{
	struct ktest_end *end = a->end;

	ktest_wait(&end->sends[i % KTEST_DEPTH], IB_WC_SUCCESS);
	if (!READ_ONCE(end->pair->has_failed))
		ktest_expect_eq(end->pair, (u32)(result_of(end, i % KTEST_DEPTH) >> a->shift), i);
}

static void add_many(struct work_struct *work)
{
	struct adder *a = container_of(work, struct adder, work);
	struct ktest_end *end = a->end;
	u32 i;

	for (i = 0; i < ADDERS && !READ_ONCE(end->pair->has_failed); i++) {
		if (i >= KTEST_DEPTH)
			check_add(a, i - KTEST_DEPTH);
		post_op(end, &end->sends[i % KTEST_DEPTH], &a->add, remote_word(end),
			i % KTEST_DEPTH);
		cond_resched();
	}
	for (i = ADDERS - KTEST_DEPTH; i < ADDERS; i++)
		check_add(a, i);
}

static void add_from_both(struct ktest_pair *p, struct ktest_pair *second)
{
	struct adder adders[] = {
		{ .end = &p->end[0], .shift = 0 },
		{ .end = &second->end[0], .shift = 32 },
	};
	int i;

	/* The second stream uses the region of the first. */
	second->end[1].mr = p->end[1].mr;
	*word_of(&p->end[1]) = 0;
	for (i = 0; i < ARRAY_SIZE(adders); i++) {
		adders[i].add = (struct op) {
			.code = IB_WR_ATOMIC_FETCH_AND_ADD,
			.compare_add = 1ULL << adders[i].shift,
		};
		INIT_WORK_ONSTACK(&adders[i].work, add_many);
		queue_work(system_unbound_wq, &adders[i].work);
	}
	for (i = 0; i < ARRAY_SIZE(adders); i++) {
		flush_work(&adders[i].work);
		destroy_work_on_stack(&adders[i].work);
	}
	second->end[1].mr = NULL;
	ktest_expect(p, !READ_ONCE(second->has_failed));
	if (!READ_ONCE(p->has_failed))
		ktest_expect_eq(p, *word_of(&p->end[1]), ((u64)ADDERS << 32) + ADDERS);
}

/* Two streams add to one word at the same time: RFC 7306 5.3. */
static void atomics_two_streams(struct ktest_pair *p)
{
	struct ktest_pair *second = ktest_pair_another(p);

	if (!second)
		return;
	expose_both(p, ALL_RIGHTS);
	second->with = p;
	ktest_expect_eq(p, ktest_pair_open(second), 0);
	if (!READ_ONCE(p->has_failed))
		add_from_both(p, second);
	ktest_pair_close(second);
	kvfree(second);
}

/* An operation that is refused with @status; both ends learn why, and the memory is unchanged. */
static void refused_op(struct ktest_pair *p, u64 offset, u32 wrong_key, enum ib_wc_status status,
		       enum ib_event_type event)
{
	const struct op add = { .code = IB_WR_ATOMIC_FETCH_AND_ADD, .compare_add = 1 };
	struct ktest_end *end = &p->end[0], *peer = &p->end[1];
	struct ktest_wr *w = &end->sends[0];

	if (READ_ONCE(p->has_failed))
		return;
	memset(peer->mem, CANARY, KTEST_MEM);
	memset(end->mem + RESULT, CANARY, 8);
	peer->mr->rkey ^= wrong_key;
	post_op(end, w, &add, peer->mr->iova + offset, 0);
	peer->mr->rkey ^= wrong_key;
	ktest_wait(w, status);
	ktest_wait_qp_event(peer, event);
	ktest_wait_cm_event(end, RDMA_CM_EVENT_DISCONNECTED);
	ktest_wait_cm_event(peer, RDMA_CM_EVENT_DISCONNECTED);
	ktest_expect(p, !memchr_inv(peer->mem, CANARY, KTEST_MEM));
	ktest_expect(p, !memchr_inv(end->mem + RESULT, CANARY, 8));
	if (READ_ONCE(p->has_failed))
		ktest_fail(p, __func__, offset, "offset, status", status);
}

static bool again(struct ktest_pair *p, int access, int qp_access)
{
	struct ib_qp_attr attr = { .qp_access_flags = qp_access };

	if (READ_ONCE(p->has_failed) || ktest_pair_reopen(p))
		return false;
	ktest_expose(&p->end[1], access);
	ktest_expect_eq(p, ib_modify_qp(p->end[1].qp, &attr, IB_QP_ACCESS_FLAGS), 0);
	return !READ_ONCE(p->has_failed);
}

static void atomics_refused(struct ktest_pair *p)
{
	const int both = IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_WRITE;
	const int no_atomic = IB_ACCESS_LOCAL_WRITE | both;
	u32 i;

	for (i = 1; i < 8; i++)
		if (again(p, ALL_RIGHTS, both))
			refused_op(p, WORD + i, 0, IB_WC_REM_OP_ERR, IB_EVENT_QP_FATAL);
	if (again(p, no_atomic, both | IB_ACCESS_REMOTE_ATOMIC))
		refused_op(p, WORD, 0, IB_WC_REM_ACCESS_ERR, IB_EVENT_QP_ACCESS_ERR);
	if (again(p, ALL_RIGHTS, IB_ACCESS_REMOTE_READ))
		refused_op(p, WORD, 0, IB_WC_REM_ACCESS_ERR, IB_EVENT_QP_ACCESS_ERR);
	if (again(p, ALL_RIGHTS, IB_ACCESS_REMOTE_WRITE))
		refused_op(p, WORD, 0, IB_WC_REM_ACCESS_ERR, IB_EVENT_QP_ACCESS_ERR);
	if (again(p, ALL_RIGHTS, both))
		refused_op(p, KTEST_MEM - 7, 0, IB_WC_REM_ACCESS_ERR, IB_EVENT_QP_ACCESS_ERR);
	if (again(p, ALL_RIGHTS, both))
		refused_op(p, -8ULL, 0, IB_WC_REM_ACCESS_ERR, IB_EVENT_QP_ACCESS_ERR);
	if (again(p, ALL_RIGHTS, both))
		refused_op(p, WORD, 1, IB_WC_REM_ACCESS_ERR, IB_EVENT_QP_ACCESS_ERR);
	/* Only the right for atomics is enough for them. */
	if (again(p, IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_ATOMIC, IB_ACCESS_REMOTE_ATOMIC)) {
		const struct op add = { .code = IB_WR_ATOMIC_FETCH_AND_ADD, .compare_add = 1 };

		one_op(&p->end[0], &add, 1, 2, IB_WC_FETCH_ADD);
	}
}

static void post_imm(struct ktest_end *end, struct ktest_wr *w, u32 len, u32 imm, int flags)
{
	struct ib_sge sge = ktest_sge(end, SOURCE, len);
	struct ib_rdma_wr wr = {
		.wr = { .opcode = IB_WR_RDMA_WRITE_WITH_IMM, .sg_list = &sge, .num_sge = !!len,
			.send_flags = flags, .ex.imm_data = cpu_to_be32(imm) },
		.remote_addr = ktest_peer(end)->mr->iova + SINK,
		.rkey = ktest_peer(end)->mr->rkey,
	};

	ktest_post(end, w, &wr.wr);
}

static void check_imm(struct ktest_end *end, const struct ktest_wr *recv, u32 imm, u32 len)
{
	struct ktest_pair *p = end->pair;

	if (READ_ONCE(p->has_failed))
		return;
	ktest_expect_eq(p, recv->wc.opcode, IB_WC_RECV_RDMA_WITH_IMM);
	ktest_expect_eq(p, recv->wc.wc_flags, IB_WC_WITH_IMM);
	ktest_expect_eq(p, be32_to_cpu(recv->wc.ex.imm_data), imm);
	ktest_expect_eq(p, recv->wc.byte_len, len);
	ktest_expect_eq(p, atomic_read(&recv->count), 1);
}

/* One Write with immediate; its receive has memory, which stays as it was. */
static void one_imm(struct ktest_end *end, u32 len, int flags)
{
	struct ktest_end *peer = ktest_peer(end);
	struct ktest_wr *recv = &peer->recvs[0], *w = &end->sends[0];
	struct ktest_pair *p = end->pair;
	u32 i;

	for (i = 0; i < len; i++)
		end->mem[SOURCE + i] = (i + len) * 37 + (i >> 8);
	memset(peer->mem + SINK - 1, CANARY, len + 2);
	memset(peer->mem, CANARY, 64);
	ktest_post_recv(peer, recv, 0, 64);
	post_imm(end, w, len, IMM + len, flags);
	ktest_wait(w, IB_WC_SUCCESS);
	ktest_wait(recv, IB_WC_SUCCESS);
	if (READ_ONCE(p->has_failed))
		return;
	ktest_expect_eq(p, w->wc.opcode, IB_WC_RDMA_WRITE);
	check_imm(peer, recv, IMM + len, len);
	ktest_expect(p, !memcmp(peer->mem + SINK, end->mem + SOURCE, len));
	ktest_expect(p, peer->mem[SINK - 1] == CANARY && peer->mem[SINK + len] == CANARY);
	ktest_expect(p, !memchr_inv(peer->mem, CANARY, 64));
}

static void immediates(struct ktest_pair *p)
{
	static const u32 sizes[] = { 0, 1, 8, 1500, 4097, 65536, 200001 };
	int i, size;

	expose_both(p, ALL_RIGHTS);
	for (i = 0; i < 2; i++) {
		for (size = 0; size < ARRAY_SIZE(sizes); size++)
			one_imm(&p->end[i], sizes[size], size % 2 ? IB_SEND_SOLICITED : 0);
		one_imm(&p->end[i], 0, IB_SEND_INLINE);
	}
}

/* Sends, Writes and immediates in one chain: each receive has what belongs to its message. */
static void immediates_in_order(struct ktest_pair *p)
{
	struct ktest_end *end = &p->end[1], *peer = &p->end[0];
	struct ib_sge sge = ktest_sge(end, SOURCE, 100);
	struct ib_send_wr send = { .opcode = IB_WR_SEND, .sg_list = &sge, .num_sge = 1 };
	struct ib_rdma_wr plain = {
		.wr = { .opcode = IB_WR_RDMA_WRITE, .sg_list = &sge, .num_sge = 1 },
	};
	u32 i;

	expose_both(p, ALL_RIGHTS);
	if (READ_ONCE(p->has_failed))
		return;
	plain.remote_addr = peer->mr->iova + SINK;
	plain.rkey = peer->mr->rkey;
	for (i = 0; i < KTEST_DEPTH; i++)
		ktest_post_recv(peer, &peer->recvs[i], 0, 128);
	/* A plain Write before the third of each three: then an immediate without a Write */
	for (i = 0; i < KTEST_DEPTH / 2; i++) {
		if (i % 3 == 0)
			ktest_post(end, &end->sends[i], &send);
		else if (i % 3 == 1)
			post_imm(end, &end->sends[i], i * 1000, i, 0);
		else
			post_imm(end, &end->sends[i], 0, i, 0);
		if (i % 3 == 1)
			ktest_post(end, &end->sends[KTEST_DEPTH / 2 + i], &plain.wr);
	}
	for (i = 0; i < KTEST_DEPTH / 2; i++) {
		ktest_wait(&end->sends[i], IB_WC_SUCCESS);
		ktest_wait(&peer->recvs[i], IB_WC_SUCCESS);
		if (i % 3)
			check_imm(peer, &peer->recvs[i], i, i % 3 == 1 ? i * 1000 : 100);
		else if (!READ_ONCE(p->has_failed))
			ktest_expect_eq(p, peer->recvs[i].wc.opcode, IB_WC_RECV);
	}
}

static int try_post(struct ktest_end *end, struct ib_send_wr *wr)
{
	struct ktest_wr *w = ktest_spare(end);

	ktest_wr_init(end, w);
	wr->wr_cqe = &w->cqe;
	return ib_post_send(end->qp, wr, NULL);
}

/* A malformed work request fails when it is posted. */
static void ext_bad_wr(struct ktest_pair *p)
{
	struct ktest_end *end = &p->end[0];
	struct ib_sge sge[2] = { ktest_sge(end, 0, 8), ktest_sge(end, 8, 8) };
	struct ib_atomic_wr wr = {
		.wr = { .opcode = IB_WR_ATOMIC_FETCH_AND_ADD, .sg_list = sge },
	};
	const struct op add = { .code = IB_WR_ATOMIC_FETCH_AND_ADD, .compare_add = 1 };

	ktest_expect_eq(p, try_post(end, &wr.wr), -EINVAL);
	wr.wr.num_sge = 2;
	ktest_expect_eq(p, try_post(end, &wr.wr), -EINVAL);
	wr.wr.num_sge = 1;
	wr.wr.send_flags = IB_SEND_INLINE;
	ktest_expect_eq(p, try_post(end, &wr.wr), -EINVAL);
	wr.wr.send_flags = 0;
	sge[0].length = 7;
	ktest_expect_eq(p, try_post(end, &wr.wr), -EINVAL);
	wr.wr.opcode = IB_WR_SEND_WITH_IMM;
	ktest_expect_eq(p, try_post(end, &wr.wr), -EOPNOTSUPP);
	/* The connection is as good as before. */
	expose_both(p, ALL_RIGHTS);
	one_op(end, &add, 1, 2, IB_WC_FETCH_ADD);
}

/* The policies of both devices are off. */
static void ext_off(struct ktest_pair *p)
{
	struct ktest_end *end = &p->end[0];
	struct ib_sge sge = ktest_sge(end, 0, 8);
	struct ib_atomic_wr wr = { .wr = { .sg_list = &sge, .num_sge = 1 } };
	static const enum ib_wr_opcode codes[] = {
		IB_WR_RDMA_WRITE_WITH_IMM, IB_WR_ATOMIC_FETCH_AND_ADD, IB_WR_ATOMIC_CMP_AND_SWP,
		IB_WR_MASKED_ATOMIC_FETCH_AND_ADD, IB_WR_MASKED_ATOMIC_CMP_AND_SWP,
	};
	int i;

	for (i = 0; i < ARRAY_SIZE(codes); i++) {
		wr.wr.opcode = codes[i];
		ktest_expect_eq(p, try_post(end, &wr.wr), -EOPNOTSUPP);
	}
	ktest_post_both(p, 1, SOURCE, 0, 8);
	ktest_wait(&end->recvs[0], IB_WC_SUCCESS);
	ktest_wait(&p->end[1].recvs[0], IB_WC_SUCCESS);
}

/* The policy of the peer is off: an atomic fails, and an immediate ends the connection. */
static void ext_unknown(struct ktest_pair *p)
{
	expose_both(p, ALL_RIGHTS);
	refused_op(p, WORD, 0, IB_WC_REM_INV_REQ_ERR, IB_EVENT_QP_REQ_ERR);
	if (READ_ONCE(p->has_failed) || ktest_pair_reopen(p))
		return;
	expose_both(p, ALL_RIGHTS);
	ktest_post_recv(&p->end[1], &p->end[1].recvs[0], 0, 64);
	post_imm(&p->end[0], &p->end[0].sends[0], 8, IMM, 0);
	ktest_wait_any(&p->end[0].sends[0]);
	ktest_wait(&p->end[1].recvs[0], IB_WC_WR_FLUSH_ERR);
	ktest_wait_qp_event(&p->end[1], IB_EVENT_QP_REQ_ERR);
	ktest_wait_cm_event(&p->end[0], RDMA_CM_EVENT_DISCONNECTED);
	ktest_wait_cm_event(&p->end[1], RDMA_CM_EVENT_DISCONNECTED);
}

/* siw sends no RTR. If it connects, nothing is sent to it before this message. */
static void siw_speaks(struct ktest_end *end)
{
	struct ktest_end *siw = ktest_peer(end);
	struct ib_sge sge = ktest_sge(siw, SOURCE, 8);
	struct ib_send_wr wr = { .opcode = IB_WR_SEND, .sg_list = &sge, .num_sge = 1 };

	ktest_post_recv(end, &end->recvs[0], 0, 8);
	ktest_post(siw, &siw->sends[0], &wr);
	ktest_wait(&end->recvs[0], IB_WC_SUCCESS);
}

/*
 * The peer of @end is siw, which does not know RFC 7306. It answers with 0/2/06, but has layer and
 * error type the wrong way round in the Terminate: 2/0/06, an unspecific fault of the LLP.
 */
static void siw_refuses(struct ktest_pair *p, struct ktest_end *end)
{
	const struct op add = { .code = IB_WR_ATOMIC_FETCH_AND_ADD, .compare_add = 1 };
	struct ktest_end *siw = ktest_peer(end);

	siw_speaks(end);
	expose_both(p, ALL_RIGHTS & ~IB_ACCESS_REMOTE_ATOMIC);
	memset(siw->mem, CANARY, KTEST_MEM);
	post_op(end, &end->sends[0], &add, remote_word(end), 0);
	ktest_wait(&end->sends[0], IB_WC_GENERAL_ERR);
	ktest_wait_qp_event(end, IB_EVENT_QP_FATAL);
	ktest_wait_cm_event(end, RDMA_CM_EVENT_DISCONNECTED);
	ktest_wait_cm_event(siw, RDMA_CM_EVENT_DISCONNECTED);
	ktest_expect(p, !memchr_inv(siw->mem, CANARY, KTEST_MEM));
}

/* A Write with immediate has completed when siw refuses it. The end of the connection tells. */
static void siw_ends(struct ktest_pair *p, struct ktest_end *end)
{
	struct ktest_end *siw = ktest_peer(end);

	siw_speaks(end);
	expose_both(p, ALL_RIGHTS & ~IB_ACCESS_REMOTE_ATOMIC);
	ktest_post_recv(siw, &siw->recvs[0], 0, 64);
	post_imm(end, &end->sends[0], 8, IMM, 0);
	ktest_wait(&end->sends[0], IB_WC_SUCCESS);
	ktest_wait(&siw->recvs[0], IB_WC_WR_FLUSH_ERR);
	ktest_wait_qp_event(end, IB_EVENT_QP_FATAL);
	ktest_wait_cm_event(end, RDMA_CM_EVENT_DISCONNECTED);
	ktest_wait_cm_event(siw, RDMA_CM_EVENT_DISCONNECTED);
}

static void with_siw(struct ktest_pair *p, int own)
{
	siw_refuses(p, &p->end[own]);
	if (READ_ONCE(p->has_failed) || ktest_pair_reopen(p))
		return;
	siw_ends(p, &p->end[own]);
}

static void ext_to_siw(struct ktest_pair *p)
{
	with_siw(p, 0);
}

static void ext_from_siw(struct ktest_pair *p)
{
	with_siw(p, 1);
}

const struct ktest_case ktest_cases_ext[] = {
	{ "atomics", atomics, { .poll = IB_POLL_SOFTIRQ } },
	{ "atomics-in-order", atomics_in_order, { .poll = IB_POLL_WORKQUEUE } },
	{ "atomics-add-up", atomics_add_up, { .poll = IB_POLL_SOFTIRQ } },
	{ "atomics-two-streams", atomics_two_streams, { .poll = IB_POLL_SOFTIRQ } },
	{ "atomics-refused", atomics_refused, { .poll = IB_POLL_SOFTIRQ } },
	{ "immediates", immediates, { .poll = IB_POLL_SOFTIRQ } },
	{ "immediates-direct", immediates, { .poll = IB_POLL_DIRECT } },
	{ "immediates-srq", immediates, { .poll = IB_POLL_SOFTIRQ, .with_srq = true } },
	{ "immediates-in-order", immediates_in_order, { .poll = IB_POLL_SOFTIRQ } },
	{ "ext-bad-wr", ext_bad_wr, { .poll = IB_POLL_SOFTIRQ } },
	{}
};

const struct ktest_case ktest_cases_policy[] = {
	{ "ext-off", ext_off, { .poll = IB_POLL_SOFTIRQ } },
	{ "ext-unknown", ext_unknown, { .poll = IB_POLL_SOFTIRQ } },
	{ "ext-to-siw", ext_to_siw, { .poll = IB_POLL_SOFTIRQ } },
	{ "ext-from-siw", ext_from_siw, { .poll = IB_POLL_SOFTIRQ } },
	{}
};
