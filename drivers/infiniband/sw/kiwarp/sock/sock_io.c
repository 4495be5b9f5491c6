// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Stream I/O: sends and receives in process context while MPA starts up, and sends for the transmit
 * engine, under the socket lock, afterwards. sock.c explains what a stream is; sock_rx.c reads for
 * the receive engine.
 */
#include "sock.h"

#include <net/tcp.h>

#include "compat/net.h"

/* While MPA starts up: process context, without waiting */

/**
 * kiw_sock_names() - get the addresses of both ends
 * @ks: the stream or listener
 * @local: set to the local address
 * @remote: set to the peer's address, unless NULL
 *
 * Context: process, may sleep.
 * Return: 0, or -ENOTCONN if the stream is gone.
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
	iov_iter_kvec(&msg.msg_iter, ITER_DEST, &vec, 1, len);
	/* Not kernel_recvmsg(), which asks security modules whether this worker may read it */
	ret = ks->sock->ops->recvmsg(ks->sock, &msg, len, MSG_DONTWAIT | flags);
	return ret == -EAGAIN ? 0 : ret;
}

/**
 * kiw_sock_peek() - copy the first bytes that have arrived without consuming them
 * @ks: the stream; the caller owns it, so that it cannot be released meanwhile
 * @buf: destination
 * @len: size of @buf in bytes
 *
 * Context: process, may sleep, does not wait.
 * Return: bytes copied to @buf, 0: none have arrived (kiw_sock_status() tells whether any can),
 * or -errno.
 */
int kiw_sock_peek(struct kiw_sock *ks, void *buf, size_t len)
{
	return sock_recv(ks, buf, len, MSG_PEEK);
}

/**
 * kiw_sock_discard() - consume bytes
 * @ks: the stream; the caller owns it
 * @len: bytes, at most what has arrived
 *
 * Context: process, may sleep, does not wait.
 * Return: 0, or -EIO if they could not all be consumed.
 */
int kiw_sock_discard(struct kiw_sock *ks, size_t len)
{
	return sock_recv(ks, NULL, len, MSG_TRUNC) == len ? 0 : -EIO;
}

/*
 * Free the chunk, of 32 KiB in most cases, into which TCP copied the data and which the socket
 * would keep for the next copy. There is rarely a next copy: from now on, pages are sent, which
 * TCP copies only if the device cannot gather. Queued data has its own references to the chunk.
 */
static void sock_drop_copy_chunk(struct sock *sk)
{
	if (!sk->sk_frag.page)
		return;
	put_page(sk->sk_frag.page);
	sk->sk_frag.page = NULL;
	sk->sk_frag.offset = 0;
}

/**
 * kiw_sock_send_all() - send a few bytes; an error unless TCP takes all of them
 * @ks: the stream
 * @buf: data to send
 * @len: bytes; few enough for the empty send queue of a new stream
 *
 * Context: process, may sleep, does not wait.
 * Return: 0, or -errno: the stream must not be used any more; -ENOMEM: TCP found no memory.
 */
int kiw_sock_send_all(struct kiw_sock *ks, const void *buf, size_t len)
{
	struct msghdr msg = { .msg_flags = MSG_DONTWAIT | MSG_NOSIGNAL };
	struct kvec vec = { .iov_base = (void *)buf, .iov_len = len };
	int ret;

	/* Do not use struct socket: once the QP owns the stream, its work item may release it. */
	if (!kiw_sock_lock(ks))
		return -ENOTCONN;
	iov_iter_kvec(&msg.msg_iter, ITER_SOURCE, &vec, 1, len);
	ret = tcp_sendmsg_locked(ks->sk, &msg, len);
	sock_drop_copy_chunk(ks->sk);
	kiw_sock_unlock(ks);
	/* There is room, so TCP lacks memory. */
	if (ret == -EAGAIN)
		return -ENOMEM;
	if (ret < 0)
		return ret;
	return ret == len ? 0 : -EIO;
}

/**
 * kiw_sock_error() - get the reason why a stream is dead
 * @ks: the stream
 *
 * Context: any. Consumes the error.
 * Return: 0 or -errno, as connect() would return it.
 */
int kiw_sock_error(struct kiw_sock *ks)
{
	return sock_error(ks->sk);
}

/* For the engines: socket lock held */

/**
 * kiw_sock_emss() - get the EMSS of RFC 5044: payload of a full segment without SACK blocks
 * @ks: the stream
 *
 * Context: socket lock held.
 * Return: bytes.
 */
u32 kiw_sock_emss(struct kiw_sock *ks)
{
	kiw_sock_assert_held(ks);
	return tcp_sk(ks->sk)->mss_cache;
}

/**
 * kiw_sock_burst() - maximum number of full segments that TCP passes on in one buffer
 * @ks: the stream
 *
 * Data beyond that takes another buffer, which goes down the stack separately, however small it
 * is.
 *
 * Context: socket lock held.
 * Return: segments of kiw_sock_emss() bytes, at least one.
 */
u32 kiw_sock_burst(struct kiw_sock *ks)
{
	kiw_sock_assert_held(ks);
	return clamp(ks->sk->sk_gso_max_size / kiw_sock_emss(ks), 1U,
		     max_t(u32, ks->sk->sk_gso_max_segs, 1));
}

/**
 * kiw_sock_has_room() - is there room in TCP's send queue?
 * @ks: the stream
 *
 * Context: socket lock held, BHs off.
 * Return: false: no; the owner's writable() will be called when there is.
 */
bool kiw_sock_has_room(struct kiw_sock *ks)
{
	kiw_sock_assert_held_bh(ks);
	if (sk_stream_memory_free(ks->sk))
		return true;
	set_bit(SOCK_NOSPACE, &ks->sock->flags);
	return false;
}

/**
 * kiw_sock_is_quiet() - does TCP have nothing queued and nothing in flight?
 * @ks: the stream
 *
 * Context: socket lock held.
 * Return: true: both are empty.
 */
bool kiw_sock_is_quiet(struct kiw_sock *ks)
{
	kiw_sock_assert_held(ks);
	return tcp_rtx_and_write_queues_empty(ks->sk);
}

/* Lend pages that may be modified: the stack copies where it must not rely on their contents. */
static int sock_send_lent(struct kiw_sock *ks, struct bio_vec *bv, unsigned int num, size_t len,
			  struct ubuf_info *ubuf, int flags)
{
	struct msghdr msg = {
		.msg_flags = flags | MSG_ZEROCOPY,
		.msg_ubuf = ubuf,
	};

	iov_iter_bvec(&msg.msg_iter, ITER_SOURCE, bv, num, len);
	return tcp_sendmsg_locked(ks->sk, &msg, len);
}

static int sock_send_bvec(struct kiw_sock *ks, struct bio_vec *bv, unsigned int num, size_t len,
			  struct ubuf_info *ubuf, unsigned int how)
{
	int flags = MSG_DONTWAIT | MSG_NOSIGNAL;

	if (!(how & KIW_SEND_JOINS))
		flags |= MSG_EOR;
	if (ubuf)
		return sock_send_lent(ks, bv, num, len, ubuf, flags);
	return kiw_compat_send_bvec(ks->sk, bv, num, len, flags | MSG_NO_SHARED_FRAGS);
}

/* TCP takes all of it, even if its send queue is full, unless memory is short or it fails. */
static int sock_send_last(struct kiw_sock *ks, struct bio_vec *bv, unsigned int num, size_t len,
			  struct ubuf_info *ubuf, unsigned int how)
{
	struct tcp_sock *tp = tcp_sk(ks->sk);
	int sndbuf = READ_ONCE(ks->sk->sk_sndbuf);
	u32 lowat = READ_ONCE(tp->notsent_lowat);
	int ret;

	WRITE_ONCE(ks->sk->sk_sndbuf, INT_MAX / 2);
	WRITE_ONCE(tp->notsent_lowat, UINT_MAX);
	ret = sock_send_bvec(ks, bv, num, len, ubuf, how);
	WRITE_ONCE(tp->notsent_lowat, lowat);
	WRITE_ONCE(ks->sk->sk_sndbuf, sndbuf);
	return ret;
}

/**
 * kiw_sock_send_pages() - hand page fragments to TCP
 * @ks: the stream
 * @bv: page fragments; without @ubuf, nothing modifies them until TCP has released them; TCP takes
 *	references, or copies if the device cannot gather
 * @num: number of fragments
 * @len: total bytes
 * @ubuf: NULL, or what is told when TCP has released the fragments, which may be modified
 * @how: %KIW_SEND_JOINS, %KIW_SEND_LAST, or 0
 *
 * Without %KIW_SEND_JOINS, when TCP has taken all of it, the next data starts a new segment (RFC
 * 5044 5.1: FPDU alignment). MSG_EOR is set even if the last segment is full. If the send window
 * cuts a segment short, everything behind it in the same buffer is misaligned, and so would be what
 * TCP adds to that buffer later. With %KIW_SEND_JOINS, TCP may hold back a segment that is not full
 * while the device still has an earlier one (tcp_autocorking), so that small messages share one.
 *
 * When the stack computes a checksum in software, it first copies fragments that may be modified.
 * MSG_NO_SHARED_FRAGS says that nothing modifies these; not so with @ubuf.
 *
 * Context: socket lock held, BHs off. Never sleeps.
 * Return: bytes taken, at least one; -EAGAIN: none, writable() will be called unless
 * kiw_sock_is_quiet(); another -errno: the stream is broken.
 */
int kiw_sock_send_pages(struct kiw_sock *ks, struct bio_vec *bv, unsigned int num, size_t len,
			struct ubuf_info *ubuf, unsigned int how)
{
	int ret;

	kiw_sock_assert_held_bh(ks);
	/*
	 * If TCP has no memory and nothing queued, it calls sk_write_space at once, to wake up a
	 * poller. @in_send suppresses writable() then: otherwise the owner would try again without
	 * the delay.
	 */
	ks->in_send = true;
	if (how & KIW_SEND_LAST)
		ret = sock_send_last(ks, bv, num, len, ubuf, how);
	else
		ret = sock_send_bvec(ks, bv, num, len, ubuf, how);
	ks->in_send = false;
	return ret;
}

/**
 * kiw_sock_can_lend() - is it worth while to lend pages to TCP that others may modify?
 * @ks: the stream
 *
 * It is not if the route leads back to this host, which copies such pages on the way to the
 * receiver, or if the device lacks scatter-gather or checksums: then they are copied at once.
 * It must not be done if TCP probes the path MTU: the probes refer to pages of other buffers, and
 * nothing tells when they are released.
 *
 * Context: socket lock held.
 * Return: true: it is.
 */
bool kiw_sock_can_lend(struct kiw_sock *ks)
{
	const struct sock *sk = ks->sk;
	const struct dst_entry *dst;
	bool is_local;

	kiw_sock_assert_held(ks);
	rcu_read_lock();
	dst = __sk_dst_get(ks->sk);
	is_local = !dst || dst->dev->flags & IFF_LOOPBACK;
	rcu_read_unlock();
	return !is_local && sk->sk_route_caps & NETIF_F_SG &&
	       sk->sk_route_caps & NETIF_F_CSUM_MASK &&
	       !inet_csk(sk)->icsk_mtup.enabled &&
	       !READ_ONCE(sock_net(sk)->ipv4.sysctl_tcp_mtu_probing);
}

/**
 * kiw_sock_sent() - get the end of what TCP has taken
 * @ks: the stream
 *
 * Context: socket lock held.
 * Return: TCP sequence number, for kiw_sock_is_acked().
 */
u32 kiw_sock_sent(struct kiw_sock *ks)
{
	kiw_sock_assert_held(ks);
	return tcp_sk(ks->sk)->write_seq;
}

/**
 * kiw_sock_is_acked() - has the peer acknowledged what TCP had taken?
 * @ks: the stream
 * @seq: from kiw_sock_sent(), less than 2^31 bytes ago
 *
 * Context: socket lock held.
 * Return: true: it has.
 */
bool kiw_sock_is_acked(struct kiw_sock *ks, u32 seq)
{
	kiw_sock_assert_held(ks);
	return !before(tcp_sk(ks->sk)->snd_una, seq);
}
