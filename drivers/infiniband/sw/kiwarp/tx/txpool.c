// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The pages of batches: a few chunks per CPU, in which FPDUs are written one after another.
 *
 * A fragment of a batch has a reference to its chunk, and so has TCP until the peer has
 * acknowledged the data. When only the pool still holds a chunk, it is used again. That is cheaper
 * than new pages, which some kernels fill with zeroes, and the chunk may still be in the CPU cache.
 * For the same reason, the first chunk that is free is taken: with little in flight, a few chunks
 * are enough.
 *
 * The pool grows with what is in flight, and shrinks again: once a second, while it has more than
 * %TXPOOL_KEPT chunks, the timer gives up those beyond that number that were not chosen since it
 * last ran. TCP has its own references to their pages. The timer runs on the CPU of its pool. It
 * moves only if that CPU goes offline, and then it does nothing: the CPU may come back at any time.
 * In that case the chunks stay until it needs another chunk, or until the module is removed.
 *
 * Context: BHs off unless noted otherwise, which gives exclusive access to the CPU's chunks.
 */
#include "txpool.h"

#include <linux/bits.h>
#include <linux/jiffies.h>

#include "compat/timer.h"

/* Chunks that a CPU keeps: for 10 Gbit/s and a round trip of 200 us */
#define TXPOOL_KEPT	8

DEFINE_PER_CPU(struct kiw_txpool, kiw_txpool);

/*
 * Can the chunk be written to from its beginning again, because only the pool holds it? Pages from
 * the memory reserves are not reused but given back, as are chunks that are too small.
 */
static bool txpool_is_free(const struct page_frag *chunk)
{
	return chunk->page && chunk->size == KIW_TXPOOL_CHUNK_SIZE &&
	       page_ref_count(chunk->page) == 1 && !page_is_pfmemalloc(chunk->page);
}

static void txpool_drop(struct page_frag *chunk)
{
	if (chunk->page)
		put_page(chunk->page);
	chunk->page = NULL;
}

/* Allocate one page, from the memory reserves if need be. */
static bool txpool_refill_reserve(struct page_frag *chunk)
{
	chunk->page = alloc_page(GFP_ATOMIC | __GFP_MEMALLOC | __GFP_NOWARN);
	chunk->offset = 0;
	chunk->size = PAGE_SIZE;
	return chunk->page;
}

static struct page_frag *txpool_choose(struct kiw_txpool *pool, unsigned int i)
{
	pool->cur = i;
	pool->used |= BIT_ULL(i);
	return &pool->chunk[i];
}

/*
 * The chunk to give new pages: the first without pages, or the next in turn. TCP has references to
 * the old pages of the latter.
 */
static unsigned int txpool_victim(const struct kiw_txpool *pool)
{
	unsigned int i;

	for (i = 0; i < KIW_TXPOOL_CHUNKS; i++) {
		if (!pool->chunk[i].page)
			return i;
	}
	return (pool->cur + 1) % KIW_TXPOOL_CHUNKS;
}

/* See to it that a pool that has grown shrinks again, also if its CPU was offline. */
static void txpool_arm(struct kiw_txpool *pool)
{
	if (pool->is_grown && !timer_pending(&pool->trim))
		mod_timer(&pool->trim, jiffies + HZ);
}

/**
 * kiw_txpool_next() - switch to another chunk
 * @want: as in kiw_txpool_find()
 * @may_reserve: as in kiw_txpool_find()
 *
 * Context: BHs off.
 * Return: as kiw_txpool_find().
 */
struct page_frag *kiw_txpool_next(u32 want, bool may_reserve)
{
	struct kiw_txpool *pool = this_cpu_ptr(&kiw_txpool);
	struct page_frag *chunk = &pool->chunk[pool->cur];
	unsigned int i;

	/* Do not keep pages from the memory reserves, nor chunks that will not be used again. */
	if (chunk->page && (chunk->size < KIW_TXPOOL_CHUNK_SIZE ||
			    page_is_pfmemalloc(chunk->page)))
		txpool_drop(chunk);
	txpool_arm(pool);
	for (i = 0; i < KIW_TXPOOL_CHUNKS; i++) {
		if (!txpool_is_free(&pool->chunk[i]))
			continue;
		pool->chunk[i].offset = 0;
		return txpool_choose(pool, i);
	}
	chunk = txpool_choose(pool, txpool_victim(pool));
	txpool_drop(chunk);
	if (pool->cur >= TXPOOL_KEPT)
		pool->is_grown = true;
	txpool_arm(pool);
	if (skb_page_frag_refill(want, chunk, GFP_ATOMIC | __GFP_NOWARN))
		return chunk;
	return may_reserve && txpool_refill_reserve(chunk) ? chunk : NULL;
}

/* Softirq. Give up the chunks that are not needed any more. */
static void txpool_trim(struct timer_list *timer)
{
	struct kiw_txpool *pool = container_of(timer, struct kiw_txpool, trim);
	unsigned int i;

	if (pool != this_cpu_ptr(&kiw_txpool))
		return;
	pool->is_grown = false;
	for (i = TXPOOL_KEPT; i < KIW_TXPOOL_CHUNKS; i++) {
		if (!(pool->used & BIT_ULL(i)))
			txpool_drop(&pool->chunk[i]);
		if (pool->chunk[i].page)
			pool->is_grown = true;
	}
	pool->used = 0;
	txpool_arm(pool);
}

/**
 * kiw_txpool_module_init() - prepare the pools
 *
 * Context: process; no batch is being built yet.
 */
void kiw_txpool_module_init(void)
{
	int cpu;

	for_each_possible_cpu(cpu)
		timer_setup(&per_cpu_ptr(&kiw_txpool, cpu)->trim, txpool_trim, TIMER_PINNED);
}

/**
 * kiw_txpool_module_exit() - free the chunks
 *
 * Context: process, may sleep; no batch is being built any more.
 */
void kiw_txpool_module_exit(void)
{
	struct kiw_txpool *pool;
	int cpu, i;

	for_each_possible_cpu(cpu) {
		pool = per_cpu_ptr(&kiw_txpool, cpu);
		kiw_compat_timer_delete_sync(&pool->trim);
		for (i = 0; i < KIW_TXPOOL_CHUNKS; i++)
			txpool_drop(&pool->chunk[i]);
		pool->is_grown = false;
	}
}
