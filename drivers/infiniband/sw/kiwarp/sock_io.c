// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Octets in and out of a stream: by call in process context while MPA starts up, then by
 * the engines under the socket lock, from and to where TCP has them. See sock.c for
 * what a stream is.
 */
#include "sock.h"

#include <net/tcp.h>

#include "compat/net.h"

/* While MPA starts up: process context, never waiting */

/**
 * kiw_sock_names() - both ends' addresses
 * @ks: the stream or listener
 * @local: filled
 * @remote: filled, unless NULL
 *
 * Context: process, may sleep.
 * Return: 0, or -ENOTCONN when the stream is gone.
 */
int kiw_sock_names(struct kiw_sock *ks, struct sockaddr_storage *local,
		   struct sockaddr_storage *remote)
{
	struct socket *sock = READ_ONCE(ks->sock);
	int ret;

	if (!sock)
		return -ENOTCONN;
	ret = kernel_getsockname(sock, (struct sockaddr *)local);
	if (ret < 0)
		return -ENOTCONN;
	if (!remote)
		return 0;
	ret = kernel_getpeername(sock, (struct sockaddr *)remote);
	return ret < 0 ? -ENOTCONN : 0;
}

static int sock_recv(struct kiw_sock *ks, void *buf, size_t len, int flags)
{
	struct msghdr msg = {};
	struct kvec vec = { .iov_base = buf, .iov_len = len };
	int ret;

	if (!ks->sock)
		return -ENOTCONN;
	ret = kernel_recvmsg(ks->sock, &msg, &vec, 1, len, MSG_DONTWAIT | flags);
	return ret == -EAGAIN ? 0 : ret;
}

/**
 * kiw_sock_peek() - look at the first octets that have arrived
 * @ks: the stream; its owner calls, so that it cannot be released meanwhile
 * @buf: filled from its start
 * @len: octets of @buf
 *
 * Context: process, may sleep, does not wait.
 * Return: octets in @buf, 0: none there (kiw_sock_status() tells whether any can
 * come), or -errno.
 */
int kiw_sock_peek(struct kiw_sock *ks, void *buf, size_t len)
{
	return sock_recv(ks, buf, len, MSG_PEEK);
}

/**
 * kiw_sock_discard() - consume octets
 * @ks: the stream; its owner calls
 * @len: octets; that many have arrived
 *
 * Context: process, may sleep, does not wait.
 * Return: 0, or -EIO when they were not there.
 */
int kiw_sock_discard(struct kiw_sock *ks, size_t len)
{
	return sock_recv(ks, NULL, len, MSG_TRUNC) == len ? 0 : -EIO;
}

/**
 * kiw_sock_send_all() - send a few octets, all or fail
 * @ks: the stream
 * @buf: what to send
 * @len: octets; little enough for the empty send queue of a new stream
 *
 * Context: process, may sleep, does not wait.
 * Return: 0, or -errno: the stream is of no use any more.
 */
int kiw_sock_send_all(struct kiw_sock *ks, const void *buf, size_t len)
{
	struct msghdr msg = { .msg_flags = MSG_DONTWAIT | MSG_NOSIGNAL };
	struct kvec vec = { .iov_base = (void *)buf, .iov_len = len };
	int ret;

	/* Not by struct socket: once the QP owns the stream, its work may release that. */
	if (!kiw_sock_lock(ks))
		return -ENOTCONN;
	iov_iter_kvec(&msg.msg_iter, ITER_SOURCE, &vec, 1, len);
	ret = tcp_sendmsg_locked(ks->sk, &msg, len);
	kiw_sock_unlock(ks);
	if (ret < 0)
		return ret;
	return ret == len ? 0 : -EIO;
}

/**
 * kiw_sock_error() - why a stream is dead
 * @ks: the stream
 *
 * Context: process, may sleep. Consumes the error.
 * Return: 0 or -errno, as connect() would have it.
 */
int kiw_sock_error(struct kiw_sock *ks)
{
	return sock_error(ks->sk);
}

/* For the engines: socket lock held, BHs off */

/**
 * kiw_sock_emss() - what RFC 5044 5.1 calls EMSS: payload of a full segment now
 * @ks: the stream
 *
 * Context: socket lock held.
 * Return: octets.
 */
u32 kiw_sock_emss(struct kiw_sock *ks)
{
	return tcp_sk(ks->sk)->mss_cache;
}

/**
 * kiw_sock_has_room() - is it worth to prepare something to send
 * @ks: the stream
 *
 * Context: socket lock held, BHs off.
 * Return: false: no; the owner's writable() will be called when it is.
 */
bool kiw_sock_has_room(struct kiw_sock *ks)
{
	if (sk_stream_memory_free(ks->sk))
		return true;
	set_bit(SOCK_NOSPACE, &ks->sock->flags);
	return false;
}

/**
 * kiw_sock_is_quiet() - has TCP nothing queued and nothing in flight
 * @ks: the stream
 *
 * Context: socket lock held.
 * Return: whether.
 */
bool kiw_sock_is_quiet(struct kiw_sock *ks)
{
	return tcp_rtx_and_write_queues_empty(ks->sk);
}

/**
 * kiw_sock_send_pages() - give page fragments to TCP
 * @ks: the stream
 * @bv: fragments of pages that nobody writes to any more; TCP takes references
 * @num: how many
 * @len: octets in all
 * @end_of_record: what follows starts a new segment (RFC 5044 5.1: FPDU alignment)
 *
 * Context: socket lock held, BHs off. Never sleeps.
 * Return: octets taken, at least one; -EAGAIN: none, writable() will be called unless
 * kiw_sock_is_quiet(); another -errno: the stream is broken.
 */
int kiw_sock_send_pages(struct kiw_sock *ks, struct bio_vec *bv, unsigned int num, size_t len,
			bool end_of_record)
{
	int flags = MSG_DONTWAIT | MSG_NOSIGNAL;

	if (end_of_record)
		flags |= MSG_EOR;
	return kiw_compat_send_bvec(ks->sk, bv, num, len, flags);
}

/**
 * kiw_sock_rx_start() - look at what has arrived
 * @ks: the stream
 * @cur: set to the oldest octet not consumed
 *
 * Context: socket lock held, BHs off. @cur is valid until the lock is released or
 * octets are consumed.
 */
void kiw_sock_rx_start(struct kiw_sock *ks, struct kiw_rx_cursor *cur)
{
	struct sock *sk = ks->sk;
	int avail = tcp_inq(sk);
	u32 off;

	cur->seq = tcp_sk(sk)->copied_seq;
	cur->avail = max(avail, 0);
	cur->skb = cur->avail ? tcp_recv_skb(sk, cur->seq, &off) : NULL;
	if (!cur->skb)
		cur->avail = 0;
}

static int sock_walk_skb(struct sk_buff *skb, u32 from, u32 to, kiw_rx_fn fn, void *arg)
{
	struct skb_seq_state st;
	unsigned int done = 0;
	const u8 *data;
	int ret = 0;
	u32 len;

	skb_prepare_seq_read(skb, from, to, &st);
	while (!ret && (len = skb_seq_read(done, &data, &st))) {
		/* A piece is told to the end of its fragment, not of the range. */
		len = min(len, to - from - done);
		ret = fn(arg, data, len);
		done += len;
	}
	if (ret)
		skb_abort_seq_read(&st);
	return ret;
}

/* Move to the buffer that holds the octet at @cur->seq, and say where in it. */
static u32 sock_rx_settle(struct kiw_sock *ks, struct kiw_rx_cursor *cur)
{
	struct sk_buff_head *queue = &ks->sk->sk_receive_queue;
	u32 off;

	/* Buffers may overlap: a retransmission can begin before its predecessor ends. */
	while (cur->skb) {
		off = cur->seq - TCP_SKB_CB(cur->skb)->seq;
		if (off < cur->skb->len)
			return off;
		cur->skb = skb_queue_is_last(queue, cur->skb) ? NULL :
							       skb_queue_next(queue, cur->skb);
	}
	return 0;
}

/**
 * kiw_sock_rx_walk() - visit octets in the receive queue, in order
 * @ks: the stream
 * @cur: where from; advanced by what was visited
 * @len: octets, at most @cur->avail
 * @fn: called with each piece that lies in one place
 * @arg: handed to it
 *
 * Context: socket lock held, BHs off.
 * Return: 0, or what @fn returned to stop the walk; @cur is of no use then.
 */
int kiw_sock_rx_walk(struct kiw_sock *ks, struct kiw_rx_cursor *cur, u32 len, kiw_rx_fn fn,
		     void *arg)
{
	u32 here, off;
	int ret;

	while (len) {
		off = sock_rx_settle(ks, cur);
		if (WARN_ON_ONCE(!cur->skb))
			return -EIO;
		here = min(len, cur->skb->len - off);
		ret = sock_walk_skb(cur->skb, off, off + here, fn, arg);
		if (ret)
			return ret;
		cur->seq += here;
		cur->avail -= here;
		len -= here;
	}
	return 0;
}

/**
 * kiw_sock_rx_skip() - advance without looking
 * @ks: the stream
 * @cur: advanced
 * @len: octets, at most @cur->avail
 *
 * Context: socket lock held, BHs off.
 */
void kiw_sock_rx_skip(struct kiw_sock *ks, struct kiw_rx_cursor *cur, u32 len)
{
	cur->seq += len;
	cur->avail -= len;
	sock_rx_settle(ks, cur);
}

static int sock_copy(void *arg, const u8 *data, u32 len)
{
	u8 **to = arg;

	memcpy(*to, data, len);
	*to += len;
	return 0;
}

/**
 * kiw_sock_rx_peek() - copy octets out of the receive queue
 * @ks: the stream
 * @cur: where from; stays
 * @buf: filled
 * @len: octets, at most @cur->avail
 *
 * Context: socket lock held, BHs off.
 */
void kiw_sock_rx_peek(struct kiw_sock *ks, const struct kiw_rx_cursor *cur, u8 *buf, u32 len)
{
	struct kiw_rx_cursor at = *cur;

	kiw_sock_rx_walk(ks, &at, len, sock_copy, &buf);
}

/**
 * kiw_sock_rx_room() - see to it that the rest of an FPDU can come
 * @ks: the stream
 * @cur: at the first octet that is to stay in the queue
 * @len: octets from there that must have arrived to be of use
 *
 * TCP gives a buffer back when all of it is consumed. One that the network has put together
 * from many segments may be nearly all of what TCP grants a stream, and while an octet of it
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

	if (!cur->avail || !cur->skb || cur->seq == TCP_SKB_CB(cur->skb)->seq)
		return;
	/* A buffer is larger than what is in it; TCP takes it for twice as large at first. */
	room = cur->skb->truesize + 4 * (len + inet_csk(sk)->icsk_ack.rcv_mss);
	room = min(room, limit);
	if (room > sk->sk_rcvbuf)
		WRITE_ONCE(sk->sk_rcvbuf, room);
}

/**
 * kiw_sock_rx_consume() - take octets out of the receive queue
 * @ks: the stream
 * @len: octets, at most what has arrived; ends every cursor
 *
 * Context: socket lock held, BHs off.
 */
void kiw_sock_rx_consume(struct kiw_sock *ks, u32 len)
{
	tcp_read_done(ks->sk, len);
}

/**
 * kiw_sock_rx_want() - say how much must have arrived to be worth a call
 * @ks: the stream
 * @len: octets from the oldest not consumed
 *
 * TCP makes the window large enough for them, and still calls when it cannot wait.
 *
 * Context: socket lock held, BHs off.
 */
void kiw_sock_rx_want(struct kiw_sock *ks, u32 len)
{
	if (!ks->sock || ks->sk->sk_rcvlowat == len)
		return;
	ks->in_want = true;
	ks->sock->ops->set_rcvlowat(ks->sk, len);
	ks->in_want = false;
}
