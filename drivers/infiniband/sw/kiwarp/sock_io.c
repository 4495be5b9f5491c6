// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Bytes in and out of a stream: by call in process context while MPA starts up; then out,
 * by the transmit engine under the socket lock. See sock.c for what a stream is, and
 * sock_rx.c for how the receive engine reads.
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
 * kiw_sock_peek() - look at the first bytes that have arrived
 * @ks: the stream; its owner calls, so that it cannot be released meanwhile
 * @buf: filled from its start
 * @len: bytes of @buf
 *
 * Context: process, may sleep, does not wait.
 * Return: bytes in @buf, 0: none there (kiw_sock_status() tells whether any can
 * come), or -errno.
 */
int kiw_sock_peek(struct kiw_sock *ks, void *buf, size_t len)
{
	return sock_recv(ks, buf, len, MSG_PEEK);
}

/**
 * kiw_sock_discard() - consume bytes
 * @ks: the stream; its owner calls
 * @len: bytes; that many have arrived
 *
 * Context: process, may sleep, does not wait.
 * Return: 0, or -EIO when they were not there.
 */
int kiw_sock_discard(struct kiw_sock *ks, size_t len)
{
	return sock_recv(ks, NULL, len, MSG_TRUNC) == len ? 0 : -EIO;
}

/*
 * What TCP copies goes to a chunk that the socket keeps for the next copy, of 32 KiB in most
 * cases. There is none: from now on pages are sent. What is queued has references of its own.
 */
static void drop_copy_chunk(struct sock *sk)
{
	if (!sk->sk_frag.page)
		return;
	put_page(sk->sk_frag.page);
	sk->sk_frag.page = NULL;
	sk->sk_frag.offset = 0;
}

/**
 * kiw_sock_send_all() - send a few bytes, all or fail
 * @ks: the stream
 * @buf: what to send
 * @len: bytes; little enough for the empty send queue of a new stream
 *
 * Context: process, may sleep, does not wait.
 * Return: 0, or -errno: the stream is of no use any more; -ENOMEM: TCP found no memory.
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
	drop_copy_chunk(ks->sk);
	kiw_sock_unlock(ks);
	/* There is room, so what TCP would wait for is memory. */
	if (ret == -EAGAIN)
		return -ENOMEM;
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
 * Return: bytes.
 */
u32 kiw_sock_emss(struct kiw_sock *ks)
{
	kiw_sock_assert_held(ks);
	return tcp_sk(ks->sk)->mss_cache;
}

/**
 * kiw_sock_burst() - full segments that TCP passes on in one buffer
 * @ks: the stream
 *
 * What is sent beyond them is one more buffer, which takes its own way through the layers,
 * however little is in it.
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
 * kiw_sock_has_room() - is it worth to prepare something to send
 * @ks: the stream
 *
 * Context: socket lock held, BHs off.
 * Return: false: no; the owner's writable() will be called when it is.
 */
bool kiw_sock_has_room(struct kiw_sock *ks)
{
	kiw_sock_assert_held(ks);
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
	kiw_sock_assert_held(ks);
	return tcp_rtx_and_write_queues_empty(ks->sk);
}

/**
 * kiw_sock_send_pages() - give page fragments to TCP
 * @ks: the stream
 * @bv: fragments of pages that nobody writes to until TCP gives them back; it takes references
 * @num: how many
 * @len: bytes in all
 *
 * When TCP has all of it, what follows starts a new segment (RFC 5044 5.1: FPDU alignment).
 * That is so also where it need not be told, because the last segment is full: where the
 * window cuts a segment short, all that is in one buffer with it is out of step behind it,
 * and so would be what TCP puts into that buffer later.
 *
 * Fragments that somebody may write to are copied wherever the stack computes a checksum or
 * cuts segments itself. MSG_NO_SHARED_FRAGS says that nobody does.
 *
 * Context: socket lock held, BHs off. Never sleeps.
 * Return: bytes taken, at least one; -EAGAIN: none, writable() will be called unless
 * kiw_sock_is_quiet(); another -errno: the stream is broken.
 */
int kiw_sock_send_pages(struct kiw_sock *ks, struct bio_vec *bv, unsigned int num, size_t len)
{
	int ret;

	kiw_sock_assert_held(ks);
	/*
	 * When TCP has no memory and nothing queued, it says at once that there is room, to wake
	 * up a poller. For the owner that would be a call to try again without the delay.
	 */
	ks->in_send = true;
	ret = kiw_compat_send_bvec(ks->sk, bv, num, len,
				   MSG_DONTWAIT | MSG_NOSIGNAL | MSG_EOR | MSG_NO_SHARED_FRAGS);
	ks->in_send = false;
	return ret;
}
