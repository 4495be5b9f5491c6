// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Reads received data in place, in TCP's receive queue, and consumes it when the receive engine
 * says so.
 *
 * Owns: nothing; the caller owns its &struct kiw_rx_cursor. A position is a buffer of the receive
 * queue and a place in it: the linear part or a fragment, of the buffer itself or of a buffer in
 * its frag_list. A position remembers its place and only moves forward, so most buffers are not
 * searched from their start again for each FPDU in them. A copy of a position moves independently
 * of it. The address is cached: moving within one place needs no lookup.
 *
 * Buffers in a frag_list may have a frag_list themselves: IP fragments that consist of fragments,
 * as tunnels produce them. This is rare, so these are searched from the start each time.
 * Fragments may be unreadable for the CPU, e.g. with devmem TCP; streams with such fragments
 * fail.
 *
 * Context: socket lock held, BHs off.
 */
#include "sock.h"

#include <net/tcp.h>

/* Maximum depth of frag_lists: nested tunnels whose fragments were reassembled by this host */
#define SOCK_RX_NESTED	8

/* Allowed for what a segment in the receive queue takes in addition to its data, in bytes */
#define SOCK_RX_SEGMENT	1024

static void sock_rx_begin(struct kiw_rx_cursor *cur, struct sk_buff *skb)
{
	cur->skb = skb;
	cur->part = skb;
	cur->from = 0;
	cur->frag = -1;
	cur->here = 0;
}

/**
 * kiw_sock_rx_start() - get a position at the start of what has arrived
 * @ks: the stream
 * @cur: set to the oldest byte that was not consumed
 *
 * Context: socket lock held, BHs off. @cur is valid until the lock is released or bytes are
 * consumed.
 */
void kiw_sock_rx_start(struct kiw_sock *ks, struct kiw_rx_cursor *cur)
{
	struct sock *sk = ks->sk;
	int avail = tcp_inq(sk);
	u32 off;

	kiw_sock_assert_held_bh(ks);
	cur->seq = tcp_sk(sk)->copied_seq;
	cur->avail = max(avail, 0);
	sock_rx_begin(cur, cur->avail ? tcp_recv_skb(sk, cur->seq, &off) : NULL);
	if (!cur->skb)
		cur->avail = 0;
}

/* Move to the buffer that holds the byte at @cur->seq. Return: the offset in that buffer. */
static u32 sock_rx_settle(struct kiw_sock *ks, struct kiw_rx_cursor *cur)
{
	struct sk_buff_head *queue = &ks->sk->sk_receive_queue;
	u32 off;

	/* Buffers may overlap: a retransmission can begin before its predecessor ends. */
	while (cur->skb) {
		off = cur->seq - TCP_SKB_CB(cur->skb)->seq;
		if (off < cur->skb->len)
			return off;
		sock_rx_begin(cur, skb_queue_is_last(queue, cur->skb) ?
				   NULL : skb_queue_next(queue, cur->skb));
	}
	return 0;
}

/*
 * Move to the next place in the buffer. Return: false: that was the last place, or a buffer in
 * the frag_list has a frag_list itself.
 */
static bool sock_rx_next_place(struct kiw_rx_cursor *cur)
{
	const struct skb_shared_info *shinfo = skb_shinfo(cur->part);

	if (++cur->frag < shinfo->nr_frags)
		return true;
	if (cur->part == cur->skb)
		cur->part = shinfo->frag_list;
	else
		cur->part = shinfo->frag_list ? NULL : cur->part->next;
	cur->frag = -1;
	return cur->part;
}

static const u8 *sock_rx_frag(const skb_frag_t *frag, u32 off, u32 *len)
{
	const u8 *data = skb_frag_address_safe(frag);

	*len = skb_frag_size(frag) - off;
	return data ? data + off : NULL;
}

/* Find the byte at @off in a buffer with nested frag_lists; set @len to how many are contiguous */
static const u8 *sock_rx_nested(const struct sk_buff *skb, u32 off, u32 *len, unsigned int depth)
{
	const struct skb_shared_info *shinfo = skb_shinfo(skb);
	const struct sk_buff *part;
	int i;

	if (off < skb_headlen(skb)) {
		*len = skb_headlen(skb) - off;
		return skb->data + off;
	}
	off -= skb_headlen(skb);
	for (i = 0; i < shinfo->nr_frags; i++) {
		if (off < skb_frag_size(&shinfo->frags[i]))
			return sock_rx_frag(&shinfo->frags[i], off, len);
		off -= skb_frag_size(&shinfo->frags[i]);
	}
	if (!depth)
		return NULL;
	for (part = shinfo->frag_list; part; part = part->next) {
		if (off < part->len)
			return sock_rx_nested(part, off, len, depth - 1);
		off -= part->len;
	}
	return NULL;
}

static u32 sock_rx_place_size(const struct kiw_rx_cursor *cur)
{
	if (cur->frag < 0)
		return skb_headlen(cur->part);
	return skb_frag_size(&skb_shinfo(cur->part)->frags[cur->frag]);
}

/*
 * Join fragments that directly follow @end, where the place of @cur ends, to that place. Contiguous
 * pages can be separate fragments, e.g. those that a sender on this host has lent to TCP.
 * Return: the number of bytes joined.
 */
static u32 sock_rx_join(struct kiw_rx_cursor *cur, const u8 *end)
{
	const struct skb_shared_info *shinfo = skb_shinfo(cur->part);
	u32 size = sock_rx_place_size(cur);
	const u8 *start = end;
	int next;

	for (next = cur->frag + 1; next < shinfo->nr_frags; next++) {
		if (skb_frag_address(&shinfo->frags[next]) != end)
			break;
		cur->frag = next;
		cur->from += size;
		size = skb_frag_size(&shinfo->frags[next]);
		end += size;
	}
	return end - start;
}

/* Find the byte at @off in the buffer; set @len to how many are contiguous. Return: NULL: none */
static const u8 *sock_rx_place(struct kiw_rx_cursor *cur, u32 off, u32 *len)
{
	const u8 *data;
	u32 size;

	while ((size = sock_rx_place_size(cur)) <= off - cur->from) {
		cur->from += size;
		if (!sock_rx_next_place(cur)) {
			sock_rx_begin(cur, cur->skb);
			return sock_rx_nested(cur->skb, off, len, SOCK_RX_NESTED);
		}
	}
	off -= cur->from;
	if (cur->frag < 0) {
		data = cur->part->data + off;
	} else {
		data = skb_frag_address_safe(&skb_shinfo(cur->part)->frags[cur->frag]);
		if (unlikely(!data))
			return NULL;
		data += off;
	}
	*len = size - off;
	*len += sock_rx_join(cur, data + *len);
	return data;
}

/* Mark the stream as unreadable from here on. Return: false. */
static bool sock_rx_lost(struct kiw_sock *ks, struct kiw_rx_cursor *cur)
{
	cur->skb = NULL;
	cur->here = 0;
	if (!ks->is_unreadable)
		kiw_count(ks->pool->stats, KIW_STAT_RX_UNREADABLE);
	ks->is_unreadable = true;
	return false;
}

/**
 * kiw_sock_rx_find() - look up the byte at a position
 * @ks: the stream
 * @cur: the position, @cur->avail not 0; sets @cur->here and @cur->data
 *
 * Context: socket lock held, BHs off.
 * Return: false: the CPU cannot read this byte; from then on kiw_sock_is_unreadable() returns true.
 */
bool kiw_sock_rx_find(struct kiw_sock *ks, struct kiw_rx_cursor *cur)
{
	u32 off = sock_rx_settle(ks, cur);

	kiw_sock_assert_held_bh(ks);
	cur->here = 0;
	cur->data = cur->skb ? sock_rx_place(cur, off, &cur->here) : NULL;
	return likely(cur->data) || sock_rx_lost(ks, cur);
}

/**
 * kiw_sock_rx_peek() - copy bytes out of the socket's receive queue
 * @ks: the stream
 * @cur: position, not changed
 * @buf: destination; zeroed from where kiw_sock_rx_find() fails
 * @len: bytes, at most @cur->avail
 *
 * Context: socket lock held, BHs off.
 */
void kiw_sock_rx_peek(struct kiw_sock *ks, const struct kiw_rx_cursor *cur, u8 *buf, u32 len)
{
	struct kiw_rx_cursor at = *cur;
	const u8 *data;
	u32 here;

	kiw_sock_assert_held_bh(ks);
	for (; len; len -= here, buf += here) {
		data = kiw_sock_rx_take(ks, &at, len, &here);
		if (!data) {
			memset(buf, 0, len);
			return;
		}
		memcpy(buf, data, here);
	}
}

/**
 * kiw_sock_rx_room() - make sure that the rest of an FPDU can arrive
 * @ks: the stream
 * @cur: first byte that will remain in the queue
 * @len: bytes from there that must arrive before they can be processed
 *
 * Nothing of an FPDU that is to be processed is consumed before all of it has arrived. If it does
 * not fit into the receive buffer of the stream, there is no window for its rest, and the stream
 * hangs. Besides, TCP frees a buffer only when all of it has been consumed. A buffer that the
 * network stack has merged from many segments may take up nearly the whole receive buffer, even if
 * only one byte of it waits for the rest of its FPDU. So make the receive buffer large enough for
 * both, if need be beyond the limit of tcp_rmem: a receiver has to pass on each valid ULPDU (RFC
 * 5044 3). Call this before consuming what is in front of @cur, because consuming it announces the
 * window to the peer.
 *
 * Context: socket lock held, BHs off.
 */
void kiw_sock_rx_room(struct kiw_sock *ks, const struct kiw_rx_cursor *cur, u32 len)
{
	struct sock *sk = ks->sk;
	u32 mss = max_t(u32, inet_csk(sk)->icsk_ack.rcv_mss, 1);
	int room;

	kiw_sock_assert_held_bh(ks);
	if (!cur->avail || !cur->skb)
		return;
	/* A buffer takes more memory than its data; TCP initially assumes twice as much. */
	room = 4 * (len + mss) + (len / mss + 1) * SOCK_RX_SEGMENT;
	if (cur->seq != TCP_SKB_CB(cur->skb)->seq)
		room += cur->skb->truesize;
	if (room > sk->sk_rcvbuf)
		WRITE_ONCE(sk->sk_rcvbuf, room);
}

/**
 * kiw_sock_rx_consume() - consume bytes of the socket's receive queue
 * @ks: the stream
 * @len: bytes, at most what has arrived; invalidates all cursors
 *
 * Context: socket lock held, BHs off.
 */
void kiw_sock_rx_consume(struct kiw_sock *ks, u32 len)
{
	kiw_sock_assert_held_bh(ks);
	tcp_read_done(ks->sk, len);
}

/**
 * kiw_sock_rx_want() - set how much data must arrive before @readable is called
 * @ks: the stream
 * @len: bytes from the oldest that was not consumed
 *
 * TCP makes the receive buffer large enough for that, but not for more than half the maximum of
 * tcp_rmem. It calls @readable with less data if @len is more than that, memory is short, the
 * window is nearly closed, or the peer has closed its half.
 *
 * Context: socket lock held, BHs off.
 */
void kiw_sock_rx_want(struct kiw_sock *ks, u32 len)
{
	kiw_sock_assert_held_bh(ks);
	if (!ks->sock || ks->sk->sk_rcvlowat == len)
		return;
	ks->in_want = true;
	ks->sock->ops->set_rcvlowat(ks->sk, len);
	ks->in_want = false;
}
