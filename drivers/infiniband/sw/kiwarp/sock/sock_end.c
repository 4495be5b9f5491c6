// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The end of streams and listeners: references, lingering, release.
 *
 * Owns: the release of a stream's struct socket, which happens exactly once, in process context;
 * the list of lingering streams.
 *
 * A stream ends in one of two ways. kiw_sock_linger() closes it in order: FIN follows the data that
 * TCP has queued, incoming data is discarded, and the socket is released when TCP has closed both
 * halves, on timeout, if too many streams linger, or if the device is removed. A reset could make
 * the peer's TCP drop a Terminate before the peer has read it. kiw_sock_drop() with @reset releases
 * the socket at once. When a socket is released, TCP resets the stream if there is anything to
 * reset.
 *
 * Contexts: process, except for references and for the callbacks of a lingering stream.
 */
#include "sock.h"

#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <net/tcp.h>

#include "trace.h"

/* Default time that a closed stream may wait for its peer */
#define SOCK_LINGER_MS	5000
/* Limit of SO_RCVBUF for a lingering stream whose number is not limited, in bytes */
#define SOCK_LINGER_RCVBUF	(32 << 10)

/* References */

static void sock_free(struct kref *ref)
{
	struct kiw_sock *ks = container_of(ref, struct kiw_sock, ref);

	sock_put(ks->sk);
	kfree(ks);
}

/**
 * kiw_sock_get() - take a reference
 * @ks: the stream
 *
 * Context: any.
 * Return: @ks.
 */
struct kiw_sock *kiw_sock_get(struct kiw_sock *ks)
{
	kref_get(&ks->ref);
	return ks;
}

/**
 * kiw_sock_put() - drop a reference
 * @ks: the stream; an owner that has not ended it must do so first
 *
 * Context: any.
 */
void kiw_sock_put(struct kiw_sock *ks)
{
	kref_put(&ks->ref, sock_free);
}

/* Release */

/*
 * Remove the owner, which TCP's callbacks cannot reach any more. The user data stay until TCP has
 * closed the socket: they keep it out of a sockmap (see sock_install()).
 * Return: the struct socket, for the caller to release.
 */
static struct socket *sock_detach(struct kiw_sock *ks)
{
	struct socket *sock;

	lock_sock(ks->sk);
	write_lock_bh(&ks->sk->sk_callback_lock);
	ks->ops = NULL;
	ks->owner = NULL;
	sock = ks->sock;
	WRITE_ONCE(ks->sock, NULL);
	write_unlock_bh(&ks->sk->sk_callback_lock);
	release_sock(ks->sk);
	return sock;
}

/* Detach a stream that TCP has closed: when this returns, no callback uses it any more. */
static void sock_clear_user_data(struct sock *sk)
{
	lock_sock(sk);
	write_lock_bh(&sk->sk_callback_lock);
	rcu_assign_sk_user_data(sk, NULL);
	write_unlock_bh(&sk->sk_callback_lock);
	release_sock(sk);
}

/* Remove a stream from the list of lingering streams, if it is there. */
static void sock_uncount_lingering(struct kiw_sock *ks)
{
	struct kiw_sock_pool *pool = ks->pool;

	lockdep_assert_held(&pool->lock);
	if (list_empty(&ks->linger_link))
		return;
	list_del_init(&ks->linger_link);
	pool->num_lingering--;
}

/*
 * Runs in calls of consumers, too. Memory reclaim may wait for a call that rejects a connection or
 * destroys a QP, and the reset may allocate memory. So this allocates without I/O.
 */
static void sock_release_now(struct kiw_sock *ks)
{
	struct kiw_sock_pool *pool = ks->pool;
	struct socket *sock;
	unsigned int noio;

	if (test_and_set_bit(KIW_SOCKF_RELEASED, &ks->flags))
		return;
	noio = memalloc_noio_save();
	sock = sock_detach(ks);
	trace_kiw_sock_close(ntohs(inet_sk(ks->sk)->inet_sport),
			     ntohs(inet_sk(ks->sk)->inet_dport),
			     ks->is_listener || ks->sk->sk_state == TCP_CLOSE ? "closed" : "reset",
			     ks->sk->sk_err);
	/* Makes TCP reset the stream when it closes it, if there is anything to reset. */
	if (!ks->is_listener)
		sock_no_linger(sock->sk);
	sock_release(sock);
	sock_clear_user_data(ks->sk);
	memalloc_noio_restore(noio);
	/* Not earlier: packets from the memory reserves in the backlog need the flag. */
	if (sock_flag(ks->sk, SOCK_MEMALLOC))
		sk_clear_memalloc(ks->sk);
	spin_lock_bh(&pool->lock);
	list_del(&ks->link);
	sock_uncount_lingering(ks);
	spin_unlock_bh(&pool->lock);
	kiw_count(pool->stats, KIW_STAT_SOCK_DESTROYED);
	kref_put(&ks->ref, sock_free);
}

static void sock_end_work(struct work_struct *work)
{
	struct kiw_sock *ks = container_of(to_delayed_work(work), struct kiw_sock, end_work);

	sock_release_now(ks);
	kiw_sock_put(ks);
}

/* Schedule the release now, from a context that must not sleep. */
static void sock_release_later(struct kiw_sock *ks)
{
	kiw_sock_get(ks);
	if (mod_delayed_work(ks->pool->wq, &ks->end_work, 0))
		kiw_sock_put(ks);
}

/**
 * kiw_sock_end_init() - prepare a new stream for its end
 * @ks: allocated, without a socket
 *
 * Context: process.
 */
void kiw_sock_end_init(struct kiw_sock *ks)
{
	INIT_LIST_HEAD(&ks->linger_link);
	INIT_DELAYED_WORK(&ks->end_work, sock_end_work);
}

/* The first stream whose release has not begun, referenced. */
static struct kiw_sock *sock_pool_next(struct kiw_sock_pool *pool)
{
	struct kiw_sock *ks, *found = NULL;

	spin_lock_bh(&pool->lock);
	list_for_each_entry(ks, &pool->socks, link) {
		if (test_bit(KIW_SOCKF_RELEASED, &ks->flags))
			continue;
		found = kiw_sock_get(ks);
		break;
	}
	spin_unlock_bh(&pool->lock);
	return found;
}

/**
 * kiw_sock_pool_uninit() - release all streams that still linger
 * @pool: to empty; all owners are gone
 *
 * Context: process, may sleep. The caller flushes the pool's workqueue afterwards: its work items
 * may still be releasing sockets.
 */
void kiw_sock_pool_uninit(struct kiw_sock_pool *pool)
{
	struct kiw_sock *ks;

	while ((ks = sock_pool_next(pool))) {
		if (cancel_delayed_work_sync(&ks->end_work))
			kiw_sock_put(ks);
		sock_release_now(ks);
		kiw_sock_put(ks);
	}
}

/* Lingering */

static void sock_linger_changed(void *owner)
{
	struct kiw_sock *ks = owner;

	if (ks->sk->sk_state == TCP_CLOSE)
		sock_release_later(ks);
}

static void sock_linger_readable(void *owner)
{
	struct kiw_sock *ks = owner;
	int avail = tcp_inq(ks->sk);

	if (avail > 0)
		tcp_read_done(ks->sk, avail);
	sock_linger_changed(ks);
}

static const struct kiw_sock_ops sock_linger_ops = {
	.readable = sock_linger_readable,
	.changed = sock_linger_changed,
};

/* Data that arrives in order is discarded at once. This limits what can arrive out of order. */
static void sock_shrink_rcvbuf(struct sock *sk, int size)
{
	/* TCP takes twice the size. */
	if (READ_ONCE(sk->sk_rcvbuf) > 2 * size)
		sock_set_rcvbuf(sk, size);
}

/* Count @ks as lingering, unless it has been released in the meantime. */
static void sock_count_lingering(struct kiw_sock *ks)
{
	struct kiw_sock_pool *pool = ks->pool;

	spin_lock_bh(&pool->lock);
	if (!test_bit(KIW_SOCKF_RELEASED, &ks->flags)) {
		list_add_tail(&ks->linger_link, &pool->lingering);
		pool->num_lingering++;
	}
	spin_unlock_bh(&pool->lock);
}

/* If more than @max streams linger: the oldest, no longer counted, referenced; otherwise NULL. */
static struct kiw_sock *sock_excess_lingering(struct kiw_sock_pool *pool, unsigned int max)
{
	struct kiw_sock *ks = NULL;

	spin_lock_bh(&pool->lock);
	if (pool->num_lingering > max) {
		ks = list_first_entry(&pool->lingering, struct kiw_sock, linger_link);
		sock_uncount_lingering(ks);
		kiw_sock_get(ks);
	}
	spin_unlock_bh(&pool->lock);
	return ks;
}

static void sock_limit_lingering(struct kiw_sock_pool *pool, unsigned int max)
{
	struct kiw_sock *ks;

	while ((ks = sock_excess_lingering(pool, max))) {
		kiw_count(pool->stats, KIW_STAT_LINGER_LIMITED);
		/* Otherwise the pending work item's reference would keep the socket's memory. */
		if (cancel_delayed_work(&ks->end_work))
			kiw_sock_put(ks);
		sock_release_now(ks);
		kiw_sock_put(ks);
	}
}

/**
 * kiw_sock_linger() - close a stream in order
 * @ks: the stream; its owner gets no further callbacks
 * @timeout_ms: timeout, after which the socket is released in any case
 * @max: limit on the number of the device's lingering streams that count, including this one; if
 *	there are more, the oldest are released. 0: this stream is not limited and does not count
 *
 * Sends FIN after the data that TCP has queued, discards incoming data, and releases the socket
 * when both halves are closed. A limited stream gets the smallest receive buffer, because its peer
 * should have nothing more to send. Other streams get a small one, with a window in which the peer
 * can send the data that it has queued, so that its FIN follows soon.
 *
 * Context: process, may sleep, does not wait for the peer.
 */
void kiw_sock_linger(struct kiw_sock *ks, unsigned int timeout_ms, unsigned int max)
{
	if (!ks->sock || test_and_set_bit(KIW_SOCKF_LINGERING, &ks->flags))
		return;
	/* While @ks still has its owner: afterwards the socket may be released at any time. */
	kernel_sock_shutdown(ks->sock, SHUT_WR);
	sock_shrink_rcvbuf(ks->sk, max ? 0 : SOCK_LINGER_RCVBUF);

	kiw_sock_get(ks);
	if (!queue_delayed_work(ks->pool->wq, &ks->end_work, msecs_to_jiffies(timeout_ms)))
		kiw_sock_put(ks);

	lock_sock(ks->sk);
	local_bh_disable();
	if (ks->sock) {
		ks->ops = &sock_linger_ops;
		ks->owner = ks;
		WRITE_ONCE(ks->sk->sk_rcvlowat, 1);
		/* Data that has arrived already is not announced again. */
		sock_linger_readable(ks);
	}
	local_bh_enable();
	release_sock(ks->sk);

	if (!max)
		return;
	sock_count_lingering(ks);
	sock_limit_lingering(ks->pool, max);
}

/**
 * kiw_sock_drop() - end a stream or a listener
 * @ks: the stream or listener; its owner gets no further callbacks
 * @reset: release the socket at once, as always for a listener; otherwise end the stream in order
 *	as kiw_sock_linger() does, without a limit
 *
 * Context: process, may sleep.
 */
void kiw_sock_drop(struct kiw_sock *ks, bool reset)
{
	if (reset || ks->is_listener)
		sock_release_now(ks);
	else
		kiw_sock_linger(ks, SOCK_LINGER_MS, 0);
}
