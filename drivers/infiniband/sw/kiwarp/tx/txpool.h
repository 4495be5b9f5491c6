/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* The pages of batches: a few chunks per CPU, in which FPDUs are written one after another. */
#ifndef KIW_TXPOOL_H
#define KIW_TXPOOL_H

#include <linux/mm.h>
#include <linux/percpu.h>
#include <linux/timer.h>
#include <linux/types.h>
#include <net/sock.h>

/*
 * Chunks of a CPU, enough for the send buffer of one fast stream. If more is in flight, chunks are
 * allocated and freed all the time.
 */
#define KIW_TXPOOL_CHUNKS	64
#define KIW_TXPOOL_CHUNK_SIZE	(PAGE_SIZE << SKB_FRAG_PAGE_ORDER)

/**
 * struct kiw_txpool - chunks of a CPU
 * @chunk: their pages, if any, and how much of each is used
 * @cur: index of the chunk in use
 * @used: bit i: chunk i was chosen since @trim last expired
 * @is_grown: there may be more chunks than a CPU keeps
 * @trim: runs while @is_grown, and frees the chunks that are not needed any more
 */
struct kiw_txpool {
	struct page_frag chunk[KIW_TXPOOL_CHUNKS];
	unsigned int cur;
	u64 used;
	bool is_grown;
	struct timer_list trim;
};

DECLARE_PER_CPU(struct kiw_txpool, kiw_txpool);

/* BHs off */
struct page_frag *kiw_txpool_next(u32 want, bool may_reserve);

/* Process context */
void kiw_txpool_module_init(void);
void kiw_txpool_module_exit(void);

/**
 * kiw_txpool_current() - get the chunk in use
 *
 * Context: BHs off.
 * Return: the chunk; it may have no pages.
 */
static inline struct page_frag *kiw_txpool_current(void)
{
	struct kiw_txpool *pool = this_cpu_ptr(&kiw_txpool);

	return &pool->chunk[pool->cur];
}

/**
 * kiw_txpool_find() - get a chunk with room, which then is the chunk in use
 * @want: bytes, at most %KIW_TXPOOL_CHUNK_SIZE
 * @may_reserve: pages from the memory reserves may be used
 *
 * Context: BHs off.
 * Return: the chunk, with room for @want bytes, or with fewer if larger pages are not available and
 * @want is more than a page; NULL: no memory.
 */
static inline struct page_frag *kiw_txpool_find(u32 want, bool may_reserve)
{
	struct page_frag *chunk = kiw_txpool_current();

	if (chunk->page && chunk->offset + want <= chunk->size &&
	    (may_reserve || !page_is_pfmemalloc(chunk->page)))
		return chunk;
	return kiw_txpool_next(want, may_reserve);
}

#endif /* KIW_TXPOOL_H */
