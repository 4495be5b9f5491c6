// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Batches of FPDUs in pages of our own.
 *
 * Pages come from one page fragment allocator per CPU, so an idle QP holds none.
 * Each fragment of a batch has a reference of its own; TCP takes further ones when
 * it is given the batch, and ours go when it has all of it. Until then every octet of
 * the batch can be looked at.
 *
 * Context: BHs off throughout, which makes the per-CPU fragment ours.
 */
#include "txbuf.h"

#include <linux/mm.h>
#include <linux/percpu.h>
#include <linux/string.h>
#include <net/sock.h>

#include "proto/crc.h"
#include "sock.h"

static DEFINE_PER_CPU(struct page_frag, txbuf_frag);

/* Room for up to @want octets behind the batch; NULL: no memory or too many pieces. */
static void *txbuf_room(struct kiw_txbuf *buf, u32 want, u32 *len)
{
	struct page_frag *frag = this_cpu_ptr(&txbuf_frag);
	struct bio_vec *last = buf->num ? &buf->bv[buf->num - 1] : NULL;

	if (!skb_page_frag_refill(1, frag, GFP_ATOMIC | __GFP_NOWARN))
		return NULL;
	*len = min(want, frag->size - frag->offset);
	if (!last || last->bv_page != frag->page ||
	    last->bv_offset + last->bv_len != frag->offset) {
		if (buf->num == KIW_TXBUF_BVECS)
			return NULL;
		last = &buf->bv[buf->num++];
		bvec_set_page(last, frag->page, 0, frag->offset);
		get_page(frag->page);
	}
	last->bv_len += *len;
	buf->len += *len;
	frag->offset += *len;
	return page_address(frag->page) + frag->offset - *len;
}

/**
 * kiw_txbuf_put() - append octets
 * @buf: the batch
 * @data: what to append
 * @len: octets
 *
 * Context: BHs off.
 * Return: false when there is no room; the batch may hold a part of @data then, and
 * the caller goes back to a mark.
 */
bool kiw_txbuf_put(struct kiw_txbuf *buf, const void *data, u32 len)
{
	void *dst;
	u32 here;

	while (len) {
		dst = txbuf_room(buf, len, &here);
		if (!dst)
			return false;
		memcpy(dst, data, here);
		data += here;
		len -= here;
	}
	return true;
}

/**
 * kiw_txbuf_fill() - append octets that a function writes
 * @buf: the batch
 * @len: octets
 * @fill: writes them, piece by piece, in order
 * @arg: handed to it
 *
 * Context: BHs off.
 * Return: false when there is no room or @fill said so; the caller goes back to a mark.
 */
bool kiw_txbuf_fill(struct kiw_txbuf *buf, u32 len, kiw_fill_fn fill, void *arg)
{
	void *dst;
	u32 here;

	while (len) {
		dst = txbuf_room(buf, len, &here);
		if (!dst || !fill(arg, dst, here))
			return false;
		len -= here;
	}
	return true;
}

/**
 * kiw_txbuf_mark() - remember the end of the batch
 * @buf: the batch
 * @mark: filled
 *
 * Context: BHs off.
 */
void kiw_txbuf_mark(const struct kiw_txbuf *buf, struct kiw_txbuf_mark *mark)
{
	mark->num = buf->num;
	mark->bv_len = buf->num ? buf->bv[buf->num - 1].bv_len : 0;
	mark->len = buf->len;
}

/**
 * kiw_txbuf_crc() - the CRC of what was appended since a mark was set
 * @buf: the batch; nothing of it was sent since then
 * @mark: from where
 *
 * In one pass, because most FPDUs lie in one piece.
 *
 * Context: BHs off.
 * Return: the register, to be given to kiw_crc_final().
 */
u32 kiw_txbuf_crc(const struct kiw_txbuf *buf, const struct kiw_txbuf_mark *mark)
{
	u32 skip = mark->bv_len, crc = kiw_crc_init();
	unsigned int i = mark->num ? mark->num - 1 : 0;
	const struct bio_vec *bv;

	for (; i < buf->num; i++) {
		bv = &buf->bv[i];
		crc = kiw_crc_update(crc, page_address(bv->bv_page) + bv->bv_offset + skip,
				     bv->bv_len - skip);
		skip = 0;
	}
	return crc;
}

/**
 * kiw_txbuf_rollback() - cut the batch off at a mark
 * @buf: the batch; nothing of it was sent since the mark was set
 * @mark: where
 *
 * Context: BHs off.
 */
void kiw_txbuf_rollback(struct kiw_txbuf *buf, const struct kiw_txbuf_mark *mark)
{
	while (buf->num > mark->num)
		put_page(buf->bv[--buf->num].bv_page);
	if (buf->num)
		buf->bv[buf->num - 1].bv_len = mark->bv_len;
	buf->len = mark->len;
}

/* TCP has taken @len octets. */
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
 * @end_of_record: what follows starts a new segment
 *
 * Context: socket lock held, BHs off.
 * Return: 0: TCP has all of it; -EAGAIN: a part is left for when there is room;
 * another -errno: the stream is broken.
 */
int kiw_txbuf_send(struct kiw_txbuf *buf, struct kiw_sock *ks, bool end_of_record)
{
	int ret;

	while (buf->len) {
		ret = kiw_sock_send_pages(ks, &buf->bv[buf->first], buf->num - buf->first,
					  buf->len, end_of_record);
		if (ret < 0)
			return ret;
		txbuf_advance(buf, ret);
	}
	return 0;
}

/**
 * kiw_txbuf_peek() - copy octets out of the batch
 * @buf: the batch
 * @at: where from, octets behind the beginning of the batch; TCP may have them already
 * @dst: filled
 * @len: octets, in the batch
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
 * kiw_txbuf_cut() - forget the end of the batch
 * @buf: the batch
 * @end: octets of the batch that stay, those that TCP has taken among them
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
 * kiw_txbuf_drop() - forget the batch
 * @buf: the batch, empty afterwards
 *
 * Context: any.
 */
void kiw_txbuf_drop(struct kiw_txbuf *buf)
{
	while (buf->num)
		put_page(buf->bv[--buf->num].bv_page);
	buf->first = 0;
	buf->begun = 0;
	buf->taken = 0;
	buf->len = 0;
}

/**
 * kiw_txbuf_module_exit() - give back the pages of the allocators
 *
 * Context: process; no batch is being built any more.
 */
void kiw_txbuf_module_exit(void)
{
	struct page_frag *frag;
	int cpu;

	for_each_possible_cpu(cpu) {
		frag = per_cpu_ptr(&txbuf_frag, cpu);
		if (frag->page)
			put_page(frag->page);
		frag->page = NULL;
	}
}
