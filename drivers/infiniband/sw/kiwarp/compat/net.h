/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Differences between kernels in the interface of TCP; for sock.c only. */
#ifndef KIW_COMPAT_NET_H
#define KIW_COMPAT_NET_H

#include <linux/bvec.h>
#include <linux/socket.h>
#include <linux/uio.h>
#include <net/sock.h>
#include <net/tcp.h>

/*
 * The page fragment of the current task belongs to process context; a socket written
 * to in softirq must use its own. Kernels without the switch decide by
 * sk_allocation, for which GFP_ATOMIC is enough.
 */
static inline void kiw_compat_sk_no_task_frag(struct sock *sk)
{
#if KIW_KERNEL_SINCE(6, 1, 191)
	sk->sk_use_task_frag = false;
#endif
}

#if KIW_KERNEL_SINCE(6, 5, 0)

/**
 * kiw_compat_send_bvec - lend pages to TCP
 * @sk: connected; the socket lock is held
 * @bv: pieces of pages that sendpage_ok() likes
 * @nr: entries of @bv
 * @len: octets in @bv
 * @flags: MSG_DONTWAIT and more
 *
 * TCP takes its own references on the pages; what they hold must not change until it
 * was acknowledged. Never sleeps with MSG_DONTWAIT.
 *
 * Context: any but hard interrupts; the socket lock held.
 * Return: octets taken, 1..@len, or -errno, -EAGAIN when there is no room.
 */
static inline int kiw_compat_send_bvec(struct sock *sk, struct bio_vec *bv, unsigned int nr,
				       size_t len, int flags)
{
	struct msghdr msg = { .msg_flags = flags | MSG_SPLICE_PAGES };

	iov_iter_bvec(&msg.msg_iter, ITER_SOURCE, bv, nr, len);
	return tcp_sendmsg_locked(sk, &msg, len);
}

#else

/* The device cannot gather: TCP copies, as it would with MSG_SPLICE_PAGES */
static inline int kiw_compat_copy_bvec(struct sock *sk, struct bio_vec *bv, unsigned int nr,
				       size_t len, int flags)
{
	struct msghdr msg = { .msg_flags = flags };

	iov_iter_bvec(&msg.msg_iter, ITER_SOURCE, bv, nr, len);
	return tcp_sendmsg_locked(sk, &msg, len);
}

/*
 * As above, with the page interface. It knows no MSG_EOR. What is still in the write
 * queue afterwards could be appended to, so its end is marked; what is not, was sent.
 */
static inline int kiw_compat_send_bvec(struct sock *sk, struct bio_vec *bv, unsigned int nr,
				       size_t len, int flags)
{
	struct sk_buff *tail;
	unsigned int i;
	int taken = 0;
	int more;
	int ret;

	if (!(sk->sk_route_caps & NETIF_F_SG))
		return kiw_compat_copy_bvec(sk, bv, nr, len, flags);
	tcp_rate_check_app_limited(sk);
	for (i = 0; i < nr; i++) {
		more = i + 1 < nr ? MSG_MORE | MSG_SENDPAGE_NOTLAST : 0;
		ret = do_tcp_sendpages(sk, bv[i].bv_page, bv[i].bv_offset, bv[i].bv_len,
				       (flags & ~MSG_EOR) | more);
		if (ret < 0)
			return taken ? taken : ret;
		taken += ret;
		if (ret < bv[i].bv_len)
			return taken;
	}
	tail = tcp_write_queue_tail(sk);
	if (tail && flags & MSG_EOR)
		TCP_SKB_CB(tail)->eor = 1;
	return taken;
}

#endif

#endif /* KIW_COMPAT_NET_H */
