// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The pool of chunks for batches: chunks that TCP still holds are not written to, free ones are
 * used again, pages from the memory reserves are only for those who may use them, and what a burst
 * has needed is given back. The timer's function is called directly. BHs are off in each case, so
 * that its thread owns the pool of its CPU.
 */
#include "tx/txpool.c"

#include "util.h"

#define ALL	KIW_TXPOOL_CHUNK_SIZE

static int txpool_begin(struct kunit *test)
{
	kiw_txpool_module_init();
	return 0;
}

static void txpool_end(struct kunit *test)
{
	kiw_txpool_module_exit();
}

/* As a batch and TCP do: use up the chunk, and keep a reference to its page. */
static struct page *take(struct kunit *test)
{
	struct page_frag *chunk = kiw_txpool_find(ALL, false);

	KUNIT_EXPECT_NOT_NULL(test, chunk);
	if (!chunk)
		return NULL;
	KUNIT_EXPECT_EQ(test, (u32)chunk->offset, 0U);
	chunk->offset += ALL;
	get_page(chunk->page);
	return chunk->page;
}

static void put_all(struct page **pages, unsigned int num)
{
	while (num--)
		put_page(pages[num]);
}

/* Number of chunks that have pages */
static unsigned int held(void)
{
	struct kiw_txpool *pool = this_cpu_ptr(&kiw_txpool);
	unsigned int i, num = 0;

	for (i = 0; i < KIW_TXPOOL_CHUNKS; i++)
		num += !!pool->chunk[i].page;
	return num;
}

static void txpool_reuses(struct kunit *test)
{
	struct page_frag *chunk;
	struct page *page;

	local_bh_disable();
	page = take(test);
	put_page(page);
	KUNIT_EXPECT_PTR_EQ(test, take(test), page);
	put_page(page);
	/* The rest of a chunk is used before another. */
	chunk = kiw_txpool_find(100, false);
	KUNIT_EXPECT_PTR_EQ(test, chunk->page, page);
	chunk->offset += 100;
	KUNIT_EXPECT_PTR_EQ(test, kiw_txpool_find(ALL - 100, false), chunk);
	KUNIT_EXPECT_EQ(test, (u32)chunk->offset, 100U);
	KUNIT_EXPECT_EQ(test, held(), 1U);
	/* It has not that much room. Only the pool holds it, so it begins again. */
	KUNIT_EXPECT_PTR_EQ(test, kiw_txpool_find(ALL - 99, false), chunk);
	KUNIT_EXPECT_EQ(test, (u32)chunk->offset, 0U);
	local_bh_enable();
}

static void txpool_in_flight(struct kunit *test)
{
	struct page *pages[KIW_TXPOOL_CHUNKS + 1];
	unsigned int i, j;

	local_bh_disable();
	for (i = 0; i < ARRAY_SIZE(pages); i++) {
		pages[i] = take(test);
		for (j = 0; j < i; j++)
			KUNIT_EXPECT_PTR_NE(test, pages[j], pages[i]);
	}
	KUNIT_EXPECT_EQ(test, held(), (unsigned int)KIW_TXPOOL_CHUNKS);
	/* The pool has given up the next in turn, which is the oldest one, and no other. */
	for (i = 0; i < ARRAY_SIZE(pages); i++)
		KUNIT_EXPECT_EQ(test, page_ref_count(pages[i]), i ? 2 : 1);
	put_all(pages, ARRAY_SIZE(pages));
	local_bh_enable();
}

static void txpool_shrinks(struct kunit *test)
{
	struct page *pages[TXPOOL_KEPT + 4];
	struct kiw_txpool *pool;
	unsigned int i;

	local_bh_disable();
	pool = this_cpu_ptr(&kiw_txpool);
	for (i = 0; i < TXPOOL_KEPT; i++)
		pages[i] = take(test);
	KUNIT_EXPECT_FALSE(test, timer_pending(&pool->trim));
	for (; i < ARRAY_SIZE(pages); i++)
		pages[i] = take(test);
	KUNIT_EXPECT_TRUE(test, timer_pending(&pool->trim));
	/* All were chosen since the timer was armed. */
	txpool_trim(&pool->trim);
	KUNIT_EXPECT_EQ(test, held(), TXPOOL_KEPT + 4U);
	KUNIT_EXPECT_TRUE(test, pool->is_grown);
	/* The last one is chosen again. */
	put_page(pages[i - 1]);
	KUNIT_EXPECT_PTR_EQ(test, take(test), pages[i - 1]);
	txpool_trim(&pool->trim);
	KUNIT_EXPECT_EQ(test, held(), TXPOOL_KEPT + 1U);
	KUNIT_EXPECT_TRUE(test, pool->is_grown);
	txpool_trim(&pool->trim);
	KUNIT_EXPECT_EQ(test, held(), (unsigned int)TXPOOL_KEPT);
	KUNIT_EXPECT_FALSE(test, pool->is_grown);
	/* TCP still has all of them. */
	for (i = 0; i < ARRAY_SIZE(pages); i++)
		KUNIT_EXPECT_EQ(test, page_ref_count(pages[i]), i < TXPOOL_KEPT ? 2 : 1);
	put_all(pages, ARRAY_SIZE(pages));
	local_bh_enable();
}

/* If there are no large pages, there are chunks of one page, which are not used again. */
static void txpool_small(struct kunit *test)
{
	struct page_frag *chunk;
	struct page *page;

	local_bh_disable();
	chunk = kiw_txpool_find(100, false);
	page = chunk->page;
	get_page(page);
	chunk->size = PAGE_SIZE;
	chunk->offset = PAGE_SIZE - 50;
	chunk = kiw_txpool_find(100, false);
	KUNIT_EXPECT_PTR_NE(test, chunk->page, page);
	KUNIT_EXPECT_EQ(test, page_ref_count(page), 1);
	KUNIT_EXPECT_EQ(test, held(), 1U);
	put_page(page);
	local_bh_enable();
}

/* The timer of a CPU that is offline runs on another. */
static void txpool_of_another_cpu(struct kunit *test)
{
	struct kiw_txpool *pool = kunit_kzalloc(test, sizeof(*pool), GFP_KERNEL);
	struct page_frag *chunk;

	KUNIT_ASSERT_NOT_NULL(test, pool);
	timer_setup(&pool->trim, txpool_trim, 0);
	chunk = &pool->chunk[TXPOOL_KEPT];
	KUNIT_ASSERT_TRUE(test, skb_page_frag_refill(ALL, chunk, GFP_KERNEL));
	local_bh_disable();
	txpool_trim(&pool->trim);
	local_bh_enable();
	KUNIT_EXPECT_NOT_NULL(test, chunk->page);
	KUNIT_EXPECT_FALSE(test, timer_pending(&pool->trim));
	txpool_drop(chunk);
}

static void txpool_reserves(struct kunit *test)
{
	struct page_frag *chunk;
	struct page *page;

	local_bh_disable();
	chunk = kiw_txpool_find(100, false);
	set_page_pfmemalloc(chunk->page);
	page = chunk->page;
	get_page(page);
	/* Who may use the reserves uses the rest of it. */
	KUNIT_EXPECT_PTR_EQ(test, kiw_txpool_find(100, true), chunk);
	KUNIT_EXPECT_PTR_EQ(test, chunk->page, page);
	/* Others do not, and it is given back. */
	chunk = kiw_txpool_find(100, false);
	KUNIT_EXPECT_PTR_NE(test, chunk->page, page);
	KUNIT_EXPECT_EQ(test, page_ref_count(page), 1);
	put_page(page);
	local_bh_enable();
}

static struct kunit_case txpool_cases[] = {
	KUNIT_CASE(txpool_reuses),
	KUNIT_CASE(txpool_in_flight),
	KUNIT_CASE(txpool_shrinks),
	KUNIT_CASE(txpool_small),
	KUNIT_CASE(txpool_of_another_cpu),
	KUNIT_CASE(txpool_reserves),
	{}
};

static struct kunit_suite txpool_suite = {
	.name = "kiwarp_txpool",
	.init = txpool_begin,
	.exit = txpool_end,
	.test_cases = txpool_cases,
};

kunit_test_suite(txpool_suite);
