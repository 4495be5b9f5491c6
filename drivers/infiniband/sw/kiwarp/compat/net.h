/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Differences between kernels in the interface of TCP; for the sock files only. */
#ifndef KIW_COMPAT_NET_H
#define KIW_COMPAT_NET_H

#include <linux/bvec.h>
#include <linux/memcontrol.h>
#include <linux/socket.h>
#include <linux/uio.h>
#include <net/sock.h>
#include <net/tcp.h>
#ifndef KIW_HAS_RPS_IN_SOCK
#include <net/rps.h>
#endif

#ifndef KIW_HAS_SOCKADDR_UNSIZED
/* Since 6.19 this is the type of an address whose size is passed along with it */
#define sockaddr_unsized sockaddr
#endif

/*
 * The page fragment of the current task is for process context only, so a socket that is
 * written to in softirq must use its own. Kernels without this switch decide by
 * sk_allocation, and GFP_ATOMIC is enough there.
 */
static inline void kiw_compat_sk_no_task_frag(struct sock *sk)
{
#ifdef KIW_HAS_SK_USE_TASK_FRAG
	sk->sk_use_task_frag = false;
#endif
}

/**
 * kiw_compat_sk_charge_caller() - charge a socket to the current process's memory cgroup
 * @sk: accepted by a work item; the socket lock is held
 *
 * TCP charges a socket to the task that accepts it, here a kworker. No function moves the charge to
 * another task, and the function that charges is not exported. So set the cgroup, and schedule as
 * much memory as the socket has already. That charges the cgroup, and charges TCP a second time.
 * Then return the same amount with the cgroup cleared for a moment. That uncharges TCP only.
 *
 * Context: process, may sleep.
 * Return: 0, or -ENOMEM: the cgroup or TCP is at its limit.
 */
static inline int kiw_compat_sk_charge_caller(struct sock *sk)
{
#ifdef CONFIG_MEMCG
	struct mem_cgroup *memcg;
	int size, ret;

	if (!mem_cgroup_sockets_enabled || sk->sk_memcg)
		return 0;
	rcu_read_lock();
	memcg = mem_cgroup_from_task(current);
	/* mem_cgroup_is_root() is not available to modules. The root cgroup is not charged. */
	if (memcg && (!memcg->css.parent || !css_tryget(&memcg->css)))
		memcg = NULL;
	rcu_read_unlock();
	if (!memcg)
		return 0;
	sk->sk_memcg = memcg;
	size = sk->sk_forward_alloc + atomic_read(&sk->sk_rmem_alloc) + sk->sk_wmem_queued;
	if (size <= 0)
		return 0;
	size = sk_mem_pages(size) << PAGE_SHIFT;
	ret = __sk_mem_schedule(sk, size, SK_MEM_RECV);
	sk->sk_memcg = NULL;
	if (!ret) {
		css_put(&memcg->css);
		return -ENOMEM;
	}
	__sk_mem_reclaim(sk, size);
	sk->sk_memcg = memcg;
#endif
	return 0;
}

#ifndef KIW_HAS_TCP_SENDPAGES

/**
 * kiw_compat_send_bvec() - lend pages to TCP
 * @sk: connected; the socket lock is held
 * @bv: fragments of pages for which sendpage_ok() is true
 * @nr: number of entries in @bv
 * @len: number of bytes in @bv
 * @flags: MSG_ flags such as MSG_DONTWAIT; MSG_SPLICE_PAGES is added
 *
 * TCP takes its own references to the pages, or copies if the device cannot gather. Their contents
 * must not change until the peer has acknowledged them. Never sleeps with MSG_DONTWAIT.
 *
 * Context: process or softirq, interrupts enabled; the socket lock held.
 * Return: number of bytes taken, 1..@len, or -errno, -EAGAIN when there is no room.
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
 * As above, with the page interface, which does not support MSG_EOR. If data is still in the
 * write queue afterwards, TCP could append to it, so mark its end. Data that is no longer
 * there has been sent.
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
