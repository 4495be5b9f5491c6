// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Reading what has arrived where TCP has it, without taking it out of the queue before all
 * of it was used.
 *
 * Owns: nothing; a &struct kiw_rx_cursor is its caller's. A position is a buffer of the
 * receive queue and a place in it: its linear part or one of its fragments, or those of
 * the buffers that GRO has hung behind it. It only moves forward, and a copy of it goes on
 * from where it was made, so bytes far back in a large buffer cost no more than others.
 * The address is cached: within one place, moving a position only changes a count.
 *
 * Buffers that hang behind another may have buffers behind them again: fragments of IP packets
 * that were fragments themselves, as tunnels make them. These are rare, and looked through
 * from the start each time. Fragments may be unreadable for the CPU, with devmem TCP for one:
 * nothing can be done with those.
 *
 * Context: socket lock held, BHs off.
 */
#include "sock.h"

#include <net/tcp.h>

/* Tunnels in tunnels whose fragments were fragmented, each of which this host has put together */
#define SOCK_RX_NESTED	8

static void sock_rx_begin(struct kiw_rx_cursor *cur, struct sk_buff *skb)
{
	cur->skb = skb;
	cur->part = skb;
	cur->from = 0;
	cur->frag = -1;
	cur->here = 0;
}

/**
 * kiw_sock_rx_start() - look at what has arrived
 * @ks: the stream
 * @cur: set to the oldest byte not consumed
 *
 * Context: socket lock held, BHs off. @cur is valid until the lock is released or
 * bytes are consumed.
 */
void kiw_sock_rx_start(struct kiw_sock *ks, struct kiw_rx_cursor *cur)
{
	struct sock *sk = ks->sk;
	int avail = tcp_inq(sk);
	u32 off;

	kiw_sock_assert_held(ks);
	cur->seq = tcp_sk(sk)->copied_seq;
	cur->avail = max(avail, 0);
	sock_rx_begin(cur, cur->avail ? tcp_recv_skb(sk, cur->seq, &off) : NULL);
	if (!cur->skb)
		cur->avail = 0;
}

/* Move to the buffer that holds the byte at @cur->seq, and say where in it. */
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
 * The next of the places in which the bytes of a buffer are; false: that was the last, or the
 * buffers behind it have buffers behind them.
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

/* Where the byte at @off in a buffer is, whose buffers have buffers, and how many are there */
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
 * Bytes of the next fragments that lie right behind @end, where the place of @cur ends: it
 * is one place with them. TCP puts what is in many pages into a fragment for each, also
 * where they are one block of memory, as those that a sender on this host has filled.
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

/* Where the byte at @off in the buffer is, and how many are there; NULL: nowhere */
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

/* There is no going on with this stream. */
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
 * kiw_sock_rx_find() - find the byte that a position is at
 * @ks: the stream
 * @cur: the position, @cur->avail not 0; @cur->here and @cur->data are set
 *
 * Context: socket lock held, BHs off.
 * Return: false: the CPU cannot read it, nor what follows; kiw_sock_is_unreadable() says so
 * from then on.
 */
bool kiw_sock_rx_find(struct kiw_sock *ks, struct kiw_rx_cursor *cur)
{
	u32 off = sock_rx_settle(ks, cur);

	kiw_sock_assert_held(ks);
	cur->here = 0;
	cur->data = cur->skb ? sock_rx_place(cur, off, &cur->here) : NULL;
	return likely(cur->data) || sock_rx_lost(ks, cur);
}

/**
 * kiw_sock_rx_peek() - copy bytes out of the receive queue
 * @ks: the stream
 * @cur: where from; stays
 * @buf: filled; with zeroes where kiw_sock_rx_find() fails
 * @len: bytes, at most @cur->avail
 *
 * Context: socket lock held, BHs off.
 */
void kiw_sock_rx_peek(struct kiw_sock *ks, const struct kiw_rx_cursor *cur, u8 *buf, u32 len)
{
	struct kiw_rx_cursor at = *cur;
	const u8 *data;
	u32 here;

	kiw_sock_assert_held(ks);
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
 * kiw_sock_rx_room() - see to it that the rest of an FPDU can come
 * @ks: the stream
 * @cur: at the first byte that is to stay in the queue
 * @len: bytes from there that must have arrived to be of use
 *
 * TCP gives a buffer back when all of it is consumed. One that the network has put together
 * from many segments may be nearly all of what TCP grants a stream, and while an byte of it
 * waits for the rest of its FPDU there would be no window for that rest, and nothing would
 * ever move again. So TCP is granted that buffer on top, within the limits of tcp_rmem; to be
 * called before what is in front of @cur is consumed, as that tells the peer the window.
 *
 * Context: socket lock held, BHs off.
 */
void kiw_sock_rx_room(struct kiw_sock *ks, const struct kiw_rx_cursor *cur, u32 len)
{
	struct sock *sk = ks->sk;
	int limit = READ_ONCE(sock_net(sk)->ipv4.sysctl_tcp_rmem[2]);
	int room;

	kiw_sock_assert_held(ks);
	if (!cur->avail || !cur->skb || cur->seq == TCP_SKB_CB(cur->skb)->seq)
		return;
	/* A buffer is larger than what is in it; TCP takes it for twice as large at first. */
	room = cur->skb->truesize + 4 * (len + inet_csk(sk)->icsk_ack.rcv_mss);
	room = min(room, limit);
	if (room > sk->sk_rcvbuf)
		WRITE_ONCE(sk->sk_rcvbuf, room);
}

/**
 * kiw_sock_rx_consume() - take bytes out of the receive queue
 * @ks: the stream
 * @len: bytes, at most what has arrived; ends every cursor
 *
 * Context: socket lock held, BHs off.
 */
void kiw_sock_rx_consume(struct kiw_sock *ks, u32 len)
{
	kiw_sock_assert_held(ks);
	tcp_read_done(ks->sk, len);
}

/**
 * kiw_sock_rx_want() - say how much must have arrived to be worth a call
 * @ks: the stream
 * @len: bytes from the oldest not consumed
 *
 * TCP makes the window large enough for them, and still calls when it cannot wait.
 *
 * Context: socket lock held, BHs off.
 */
void kiw_sock_rx_want(struct kiw_sock *ks, u32 len)
{
	kiw_sock_assert_held(ks);
	if (!ks->sock || ks->sk->sk_rcvlowat == len)
		return;
	ks->in_want = true;
	ks->sock->ops->set_rcvlowat(ks->sk, len);
	ks->in_want = false;
}
