// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Batches of FPDUs in the driver's own pages.
 *
 * The pages come from the CPU's pool (txpool.c), so an idle QP holds none. Each fragment of a batch
 * has its own reference. TCP takes further references when it is given the batch, or copies it if
 * the device cannot gather. Ours are dropped when TCP has taken the whole batch, or when the batch
 * or its end is dropped; until then every byte of it can be read.
 *
 * Context: BHs off unless noted otherwise.
 */
#include "txbuf.h"

#include <linux/mm.h>
#include <linux/string.h>

#include "sock/sock.h"
#include "txpool.h"

/* Will the next write be contiguous with the last fragment? */
static bool txbuf_is_contiguous(const struct kiw_txbuf *buf, const struct page_frag *chunk)
{
	const struct bio_vec *last;

	if (!buf->num)
		return false;
	last = &buf->bv[buf->num - 1];
	return last->bv_page == chunk->page && last->bv_offset + last->bv_len == chunk->offset;
}

/**
 * kiw_txbuf_reserve() - find contiguous room behind the batch
 * @buf: the batch, which does not change
 * @want: bytes wanted; if more than a page, a multiple of %KIW_FPDU_ALIGN
 * @room: set to the bytes available: often more than @want, and fewer only if @want is more than
 *	a page
 *
 * Context: BHs off; the room is the caller's until BHs are enabled, or until the next call.
 * Return: the room, or NULL: no memory, or too many fragments.
 */
u8 *kiw_txbuf_reserve(const struct kiw_txbuf *buf, u32 want, u32 *room)
{
	struct page_frag *chunk;

	chunk = kiw_txpool_find(min_t(u32, want, KIW_TXPOOL_CHUNK_SIZE), buf->may_reserve);
	if (!chunk || (buf->num == KIW_TXBUF_BVECS && !txbuf_is_contiguous(buf, chunk)))
		return NULL;
	*room = chunk->size - chunk->offset;
	return page_address(chunk->page) + chunk->offset;
}

/**
 * kiw_txbuf_commit() - append the data in the reserved room to the batch
 * @buf: the batch
 * @len: how much of the room reserved last is used, in bytes
 *
 * Context: BHs off since the room was reserved.
 */
void kiw_txbuf_commit(struct kiw_txbuf *buf, u32 len)
{
	struct page_frag *chunk = kiw_txpool_current();

	if (!txbuf_is_contiguous(buf, chunk)) {
		bvec_set_page(&buf->bv[buf->num++], chunk->page, 0, chunk->offset);
		get_page(chunk->page);
	}
	buf->bv[buf->num - 1].bv_len += len;
	buf->len += len;
	chunk->offset += len;
}

/* Are @page, from @off on, and the last fragment contiguous parts of one compound page? */
static bool txbuf_continues(const struct bio_vec *last, const struct page *page, u32 off)
{
	u64 end = ((u64)page_to_pfn(last->bv_page) << PAGE_SHIFT) + last->bv_offset + last->bv_len;

	return compound_head(last->bv_page) == compound_head(page) &&
	       end == ((u64)page_to_pfn(page) << PAGE_SHIFT) + off;
}

/**
 * kiw_txbuf_append() - append a part of a page that is lent
 * @buf: the batch; has a lender, and fewer than %KIW_TXBUF_LENT_BVECS fragments
 * @page: the page
 * @off: where the part begins in @page, in bytes
 * @len: length of the part in bytes; it ends in @page
 *
 * Context: BHs off.
 */
void kiw_txbuf_append(struct kiw_txbuf *buf, struct page *page, u32 off, u32 len)
{
	if (buf->num && txbuf_continues(&buf->bv[buf->num - 1], page, off)) {
		buf->bv[buf->num - 1].bv_len += len;
	} else {
		bvec_set_page(&buf->bv[buf->num++], page, len, off);
		get_page(page);
	}
	buf->len += len;
}

/* Account for @len bytes that TCP has taken. */
static void txbuf_advance(struct kiw_txbuf *buf, u32 len)
{
	struct bio_vec *bv;
	u32 here;

	buf->len -= len;
	buf->taken += len;
	while (len) {
		bv = &buf->bv[buf->first];
		here = min(len, bv->bv_len);
		bv->bv_offset += here;
		bv->bv_len -= here;
		buf->begun += here;
		len -= here;
		if (bv->bv_len)
			continue;
		bv->bv_offset -= buf->begun;
		bv->bv_len = buf->begun;
		buf->begun = 0;
		buf->first++;
	}
	if (!buf->len)
		kiw_txbuf_drop(buf);
}

/**
 * kiw_txbuf_send() - hand the batch to TCP
 * @buf: the batch
 * @ks: the stream
 * @how: as in kiw_sock_send_pages()
 *
 * Context: socket lock held, BHs off.
 * Return: 0: TCP has taken all of it; -EAGAIN: it has no room or memory for the rest; another
 * -errno: the stream is broken.
 */
int kiw_txbuf_send(struct kiw_txbuf *buf, struct kiw_sock *ks, unsigned int how)
{
	int ret;

	kiw_sock_assert_held_bh(ks);
	while (buf->len) {
		ret = kiw_sock_send_pages(ks, &buf->bv[buf->first], buf->num - buf->first,
					  buf->len, buf->ubuf, how);
		if (ret < 0)
			return ret;
		txbuf_advance(buf, ret);
	}
	return 0;
}

/**
 * kiw_txbuf_peek() - copy bytes out of the batch
 * @buf: the batch
 * @at: offset from the beginning of the batch, in bytes; TCP may have them already
 * @dst: destination
 * @len: bytes; they are in the batch
 *
 * Context: BHs off.
 */
void kiw_txbuf_peek(const struct kiw_txbuf *buf, u32 at, void *dst, u32 len)
{
	u32 begun, size, here;
	unsigned int i;

	for (i = 0; i < buf->num && len; i++) {
		begun = i == buf->first ? buf->begun : 0;
		size = buf->bv[i].bv_len + begun;
		if (at >= size) {
			at -= size;
			continue;
		}
		here = min(len, size - at);
		memcpy(dst, page_address(buf->bv[i].bv_page) + buf->bv[i].bv_offset - begun + at,
		       here);
		dst += here;
		len -= here;
		at = 0;
	}
}

/**
 * kiw_txbuf_cut() - remove the end of the batch
 * @buf: the batch
 * @end: bytes of the batch that remain, including those that TCP has taken
 *
 * Context: BHs off.
 */
void kiw_txbuf_cut(struct kiw_txbuf *buf, u32 end)
{
	u32 excess = buf->taken + buf->len - end;
	struct bio_vec *last;
	u32 here;

	buf->len -= excess;
	while (excess) {
		last = &buf->bv[buf->num - 1];
		here = min(excess, last->bv_len);
		last->bv_len -= here;
		excess -= here;
		if (!last->bv_len) {
			put_page(last->bv_page);
			buf->num--;
		}
	}
	if (!buf->len)
		kiw_txbuf_drop(buf);
}

/**
 * kiw_txbuf_drop() - drop the batch
 * @buf: the batch, empty afterwards
 *
 * Context: any.
 */
void kiw_txbuf_drop(struct kiw_txbuf *buf)
{
	while (buf->num)
		put_page(buf->bv[--buf->num].bv_page);
	net_zcopy_put(buf->ubuf);
	buf->ubuf = NULL;
	buf->first = 0;
	buf->begun = 0;
	buf->taken = 0;
	buf->len = 0;
}
