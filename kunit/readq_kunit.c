// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Queues of outstanding work requests, across the wrap of their counters and of stream offsets:
 * which work requests TCP has accepted, also after data built for the newest is discarded.
 */
#include "queue/readq.c"

#include "util.h"

#define RING_SIZE	16
#define ENTRIES		5
#define EACH_BYTES	28

/* Entry n ends (n + 1) * EACH_BYTES after @from; none is completed. */
static void fill_pend(struct kunit *test, struct kiw_pend_ring *ring, u32 from)
{
	struct kiw_swqe wqe = { .op = KIW_WR_SEND };
	struct kiw_pend *pend;
	u32 i;

	KUNIT_ASSERT_EQ(test, kiw_pend_init(ring, RING_SIZE), 0);
	KUNIT_ASSERT_TRUE(test, kiw_pend_is_full(ring) && kiw_pend_ready(ring));
	KUNIT_ASSERT_FALSE(test, kiw_pend_is_full(ring));
	ring->put = U32_MAX - 1;
	ring->taken = ring->put;
	ring->get = ring->put;
	for (i = 0; i < ENTRIES; i++) {
		wqe.wr_id = i;
		kiw_pend_add(ring, &wqe, true);
		pend = kiw_pend_at(ring, ring->put - 1);
		pend->end = from + (i + 1) * EACH_BYTES;
		pend->is_built = true;
	}
}

static u32 count_sent(struct kiw_pend_ring *ring, u32 end)
{
	u32 pos, count = 0;

	for (pos = ring->get; pos != ring->put; pos++)
		count += kiw_pend_is_sent(kiw_pend_at(ring, pos), end);
	return count;
}

static void pend_is_sent_by_its_last_octet(struct kunit *test)
{
	u32 from = 0U - 2 * EACH_BYTES;
	struct kiw_pend_ring ring;
	u32 at;

	fill_pend(test, &ring, from);
	for (at = 0; at <= ENTRIES * EACH_BYTES; at++)
		KUNIT_EXPECT_EQ(test, count_sent(&ring, from + at), at / EACH_BYTES);
	kiw_pend_uninit(&ring);
}

static void pend_is_not_sent_before_it_is_built(struct kunit *test)
{
	struct kiw_pend_ring ring;
	struct kiw_pend *last;

	fill_pend(test, &ring, 0);
	last = kiw_pend_at(&ring, ring.put - 1);
	last->is_built = false;
	KUNIT_EXPECT_EQ(test, count_sent(&ring, 2 * ENTRIES * EACH_BYTES), ENTRIES - 1U);
	last->is_done = true;
	KUNIT_EXPECT_EQ(test, count_sent(&ring, 2 * ENTRIES * EACH_BYTES), ENTRIES + 0U);
	kiw_pend_uninit(&ring);
}

/* After a cut other data follows there: entries behind the cut never count as sent. */
static void pend_cut_is_never_sent(struct kunit *test)
{
	u32 from = 0U - 3 * EACH_BYTES;
	struct kiw_pend_ring ring;
	u32 at, stays;

	for (at = 0; at <= ENTRIES * EACH_BYTES; at++) {
		stays = at / EACH_BYTES;
		fill_pend(test, &ring, from);
		kiw_pend_cut(&ring, from + at);
		KUNIT_EXPECT_EQ(test, count_sent(&ring, from + at), stays);
		KUNIT_EXPECT_EQ(test, count_sent(&ring, from + at + EACH_BYTES), stays);
		KUNIT_EXPECT_EQ(test, count_sent(&ring, from + 2 * ENTRIES * EACH_BYTES), stays);
		kiw_pend_uninit(&ring);
	}
}

/* A cut leaves a Read that already has an error, and entries that TCP accepted earlier */
static void pend_cut_leaves_what_is_settled(struct kunit *test)
{
	struct kiw_pend_ring ring;

	fill_pend(test, &ring, 0);
	kiw_pend_at(&ring, ring.put - 1)->is_done = true;
	ring.taken += 2;
	kiw_pend_cut(&ring, 2 * EACH_BYTES);
	KUNIT_EXPECT_TRUE(test, kiw_pend_at(&ring, ring.get)->is_built);
	KUNIT_EXPECT_TRUE(test, kiw_pend_at(&ring, ring.get + 1)->is_built);
	KUNIT_EXPECT_FALSE(test, kiw_pend_at(&ring, ring.get + 2)->is_built);
	KUNIT_EXPECT_FALSE(test, kiw_pend_at(&ring, ring.get + 3)->is_built);
	KUNIT_EXPECT_TRUE(test, kiw_pend_at(&ring, ring.get + 4)->is_built);
	kiw_pend_uninit(&ring);
}

/* Each Read keeps its own SGEs until it is done, no matter how many the others have. */
static void reads_keep_their_sges(struct kunit *test)
{
	u32 depth, i, put = 0, get = 0, seed = 5040;
	struct kiw_sge sge[KIW_MAX_SGE];
	struct kiw_read *read;
	struct kiw_orq orq;

	for (depth = 1; depth <= 33; depth++) {
		KUNIT_ASSERT_EQ(test, kiw_orq_init(&orq, depth, false), 0);
		KUNIT_ASSERT_TRUE(test, kiw_orq_ready(&orq));
		orq.put = U32_MAX - 1;
		orq.get = orq.put;
		orq.sge_put = U32_MAX - 3;
		orq.sge_get = orq.sge_put;
		for (put = get = 0; get < 400;) {
			seed = seed * 1103515245 + 12345;
			if (!kiw_orq_is_full(&orq) && (seed >> 16 & 3 || put == get)) {
				for (i = 0; i < KIW_MAX_SGE; i++)
					sge[i].addr = put * KIW_MAX_SGE + i;
				kiw_orq_add(&orq, sge, (seed >> 20) % (KIW_MAX_SGE + 1));
				put++;
				continue;
			}
			read = kiw_orq_oldest(&orq);
			for (i = 0; i < read->num_sge; i++)
				KUNIT_ASSERT_EQ(test, read->sge[i].addr, get * KIW_MAX_SGE + i);
			kiw_orq_done(&orq);
			get++;
		}
		kiw_orq_uninit(&orq);
	}
}

/* No matter where in the ring of SGEs they start */
static void reads_of_one_sge_are_as_many_as_negotiated(struct kunit *test)
{
	struct kiw_sge sge[KIW_MAX_SGE] = {};
	struct kiw_orq orq;
	u32 depth, i, n;

	for (depth = 1; depth <= 33; depth++) {
		KUNIT_ASSERT_EQ(test, kiw_orq_init(&orq, depth, false), 0);
		KUNIT_ASSERT_TRUE(test, kiw_orq_ready(&orq));
		kiw_orq_add(&orq, sge, 1);
		for (n = 1; n < 200; n++) {
			while (orq.put - orq.get < depth) {
				KUNIT_ASSERT_FALSE(test, kiw_orq_is_full(&orq));
				kiw_orq_add(&orq, sge, 1);
			}
			KUNIT_EXPECT_TRUE(test, kiw_orq_is_full(&orq));
			for (i = 0; i <= n % depth && i + 1 < depth; i++)
				kiw_orq_done(&orq);
		}
		kiw_orq_uninit(&orq);
	}
}

/* Reads and Atomic Operations in one queue keep their order and what they carry. */
static void atomics_are_among_the_reads(struct kunit *test)
{
	u8 ddp[KIW_DDP_UNTAGGED_HDR] = {};
	struct kiw_atomic_req atomic = {};
	struct kiw_read_req req = {};
	struct kiw_peer_read *read;
	struct kiw_inq inq;
	u32 depth, i;

	for (depth = 1; depth <= 33; depth++) {
		KUNIT_ASSERT_EQ(test, kiw_inq_init(&inq, depth, true, false), 0);
		inq.put = U32_MAX - 1;
		inq.get = inq.put;
		KUNIT_ASSERT_TRUE(test, kiw_inq_ready(&inq));
		for (i = 0; i < depth; i++) {
			req.size = i;
			atomic.compare_mask = i;
			atomic.id = ~i;
			ddp[17] = i;
			KUNIT_EXPECT_TRUE(test, i % 2 ? kiw_inq_add(&inq, &req, ddp) :
							kiw_inq_add_atomic(&inq, &atomic, ddp));
		}
		KUNIT_EXPECT_FALSE(test, kiw_inq_add_atomic(&inq, &atomic, ddp));
		KUNIT_EXPECT_FALSE(test, kiw_inq_add(&inq, &req, ddp));
		for (i = 0; i < depth; i++) {
			KUNIT_ASSERT_FALSE(test, kiw_inq_is_empty(&inq));
			read = kiw_inq_oldest(&inq);
			KUNIT_EXPECT_EQ(test, read->is_atomic, !(i % 2));
			KUNIT_EXPECT_EQ(test, read->ddp[17], i);
			if (read->is_atomic) {
				KUNIT_EXPECT_FALSE(test, read->is_executed);
				KUNIT_EXPECT_EQ(test, read->atomic.compare_mask, (u64)i);
				KUNIT_EXPECT_EQ(test, read->atomic.id, ~i);
				/* For the next user of the slot */
				read->is_executed = true;
				read->value = ~0ULL;
			} else {
				KUNIT_EXPECT_EQ(test, read->req.size, i);
			}
			kiw_inq_done(&inq);
		}
		KUNIT_EXPECT_TRUE(test, kiw_inq_is_empty(&inq));
		kiw_inq_uninit(&inq);
	}
}

static void reads_are_as_many_as_negotiated(struct kunit *test)
{
	u8 ddp[KIW_DDP_UNTAGGED_HDR] = {};
	struct kiw_read_req req = {};
	struct kiw_inq inq;
	struct kiw_orq orq;
	u32 depth, i;

	for (depth = 0; depth <= 9; depth++) {
		KUNIT_ASSERT_EQ(test, kiw_inq_init(&inq, depth, false, false), 0);
		KUNIT_ASSERT_EQ(test, kiw_orq_init(&orq, depth, false), 0);
		KUNIT_ASSERT_TRUE(test, kiw_inq_ready(&inq) && kiw_orq_ready(&orq));
		for (i = 0; i < depth; i++) {
			KUNIT_EXPECT_FALSE(test, kiw_orq_is_full(&orq));
			kiw_orq_add(&orq, NULL, 0)->length = i;
			req.size = i;
			KUNIT_EXPECT_TRUE(test, kiw_inq_add(&inq, &req, ddp));
		}
		KUNIT_EXPECT_TRUE(test, kiw_orq_is_full(&orq));
		KUNIT_EXPECT_FALSE(test, kiw_inq_add(&inq, &req, ddp));
		for (i = 0; i < depth; i++) {
			KUNIT_EXPECT_EQ(test, kiw_orq_oldest(&orq)->length, i);
			kiw_orq_done(&orq);
			KUNIT_EXPECT_EQ(test, kiw_inq_oldest(&inq)->req.size, i);
			kiw_inq_done(&inq);
		}
		KUNIT_EXPECT_TRUE(test, kiw_orq_is_empty(&orq));
		KUNIT_EXPECT_TRUE(test, !kiw_orq_oldest(&orq) && kiw_inq_is_empty(&inq));
		kiw_orq_uninit(&orq);
		kiw_inq_uninit(&inq);
	}
}

/*
 * Whether a pend ring of more than a page is allocated with the QP, and all other rings when they
 * are needed, and can then be used. A work item that prepares a QP for a stream allocates nothing.
 */
static void rings_are_allocated_when_needed(struct kunit *test)
{
	struct kiw_pend_ring ring;
	struct kiw_pend *slots;
	struct kiw_inq inq;
	struct kiw_orq orq;
	u32 depth, size;

	for (depth = 1; depth <= 256; depth *= 2) {
		KUNIT_ASSERT_EQ(test, kiw_pend_init(&ring, depth), 0);
		size = depth * sizeof(*ring.slots);
		KUNIT_EXPECT_EQ(test, !ring.slots, size <= PAGE_SIZE);
		slots = ring.slots;
		KUNIT_ASSERT_EQ(test, kiw_pend_reset(&ring, NULL, false), 0);
		KUNIT_EXPECT_PTR_EQ(test, ring.slots, slots);
		KUNIT_EXPECT_EQ(test, kiw_pend_is_full(&ring), !ring.slots);
		KUNIT_ASSERT_TRUE(test, kiw_pend_ready(&ring) && kiw_pend_ready(&ring));
		memset(ring.slots, 0, size);
		KUNIT_EXPECT_FALSE(test, kiw_pend_is_full(&ring));
		kiw_pend_uninit(&ring);

		KUNIT_ASSERT_EQ(test, kiw_orq_init(&orq, depth, false), 0);
		KUNIT_EXPECT_NULL(test, orq.slots);
		KUNIT_EXPECT_NULL(test, orq.memcg);
		KUNIT_EXPECT_EQ(test, orq.put, 0U);
		KUNIT_ASSERT_TRUE(test, kiw_orq_ready(&orq) && kiw_orq_ready(&orq));
		memset(orq.slots, 0, depth * sizeof(*orq.slots));
		memset(orq.sges, 0, orq.num_sges * sizeof(*orq.sges));
		kiw_orq_uninit(&orq);

		KUNIT_ASSERT_EQ(test, kiw_inq_init(&inq, depth, false, false), 0);
		size = depth * inq.slot_bytes;
		KUNIT_EXPECT_NULL(test, inq.slots);
		KUNIT_ASSERT_TRUE(test, kiw_inq_ready(&inq) && kiw_inq_ready(&inq));
		memset(inq.slots, 0, size);
		kiw_inq_uninit(&inq);
	}
}

/* A new stream begins with an empty pend ring, and with the slots that the QP has. */
static void pend_is_empty_for_a_new_stream(struct kunit *test)
{
	struct kiw_pend_ring ring;
	struct kiw_pend *slots;
	u32 depth;

	for (depth = 1; depth <= 256; depth *= 2) {
		KUNIT_ASSERT_EQ(test, kiw_pend_init(&ring, depth), 0);
		KUNIT_ASSERT_EQ(test, kiw_pend_reset(&ring, NULL, false), 0);
		KUNIT_ASSERT_TRUE(test, kiw_pend_ready(&ring));
		slots = ring.slots;
		ring.put = 5;
		ring.taken = 4;
		ring.get = 3;
		KUNIT_ASSERT_EQ(test, kiw_pend_reset(&ring, NULL, true), 0);
		KUNIT_EXPECT_PTR_EQ(test, ring.slots, slots);
		KUNIT_EXPECT_EQ(test, ring.size, depth);
		KUNIT_EXPECT_TRUE(test, !ring.put && !ring.taken && !ring.get);
		kiw_pend_uninit(&ring);
	}
}

/* Memory reclaim may depend on the stream: its first request must not allocate. */
static void rings_are_allocated_at_once(struct kunit *test)
{
	struct kiw_pend_ring ring;
	struct kiw_inq inq;
	struct kiw_orq orq;
	u32 depth;

	for (depth = 1; depth <= 256; depth *= 2) {
		KUNIT_ASSERT_EQ(test, kiw_pend_init(&ring, depth), 0);
		KUNIT_ASSERT_EQ(test, kiw_pend_reset(&ring, NULL, true), 0);
		KUNIT_EXPECT_TRUE(test, ring.slots && !kiw_pend_is_full(&ring));
		kiw_pend_uninit(&ring);

		KUNIT_ASSERT_EQ(test, kiw_orq_init(&orq, depth, true), 0);
		KUNIT_EXPECT_TRUE(test, orq.slots && orq.sges);
		kiw_orq_uninit(&orq);

		KUNIT_ASSERT_EQ(test, kiw_inq_init(&inq, depth, false, true), 0);
		KUNIT_EXPECT_NOT_NULL(test, inq.slots);
		kiw_inq_uninit(&inq);
	}
}

static struct kunit_case readq_cases[] = {
	KUNIT_CASE(rings_are_allocated_when_needed),
	KUNIT_CASE(rings_are_allocated_at_once),
	KUNIT_CASE(pend_is_empty_for_a_new_stream),
	KUNIT_CASE(pend_is_sent_by_its_last_octet),
	KUNIT_CASE(pend_is_not_sent_before_it_is_built),
	KUNIT_CASE(pend_cut_is_never_sent),
	KUNIT_CASE(pend_cut_leaves_what_is_settled),
	KUNIT_CASE(atomics_are_among_the_reads),
	KUNIT_CASE(reads_are_as_many_as_negotiated),
	KUNIT_CASE(reads_keep_their_sges),
	KUNIT_CASE(reads_of_one_sge_are_as_many_as_negotiated),
	{}
};

static struct kunit_suite readq_suite = {
	.name = "kiwarp_readq",
	.test_cases = readq_cases,
};

kunit_test_suite(readq_suite);
