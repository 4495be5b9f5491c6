// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Streams over kernel TCP sockets.
 *
 * Owns: struct socket and its callbacks. TCP calls back with the socket lock held
 * (in softirq, or in process context from the backlog); the owner hears of it
 * through &struct kiw_sock_ops. Exception: a listener's sk_data_ready, which TCP
 * calls with only the child locked; that one is covered by sk_callback_lock.
 *
 * Lifetime: &struct kiw_sock holds its own reference on the struct sock, so the
 * lock can be taken at any time; whether there is still a socket behind it is
 * known under the lock. A stream ends in one of two ways. kiw_sock_linger() sends
 * FIN behind what TCP has queued, discards what arrives, and releases when TCP is
 * through, or resets when time is up: a Terminate is not destroyed by our own
 * reset. kiw_sock_drop() with reset releases at once. Sockets of processes hold
 * their network namespace, others do not: Documentation/lifetime.rst, Stream.
 */
#include "sock.h"

#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <net/ipv6.h>
#include <net/tcp.h>

#include "compat/net.h"
#include "trace.h"

/* How long a closed stream may wait for its peer when nobody says otherwise */
#define SOCK_LINGER_MS	5000

static void sock_linger_readable(void *owner);
static void sock_linger_changed(void *owner);

static const struct kiw_sock_ops sock_linger_ops = {
	.readable = sock_linger_readable,
	.changed = sock_linger_changed,
};

/* TCP's callbacks; socket lock held, except for listeners */

static void sock_data_ready(struct sock *sk)
{
	struct kiw_sock *ks;

	local_bh_disable();
	rcu_read_lock();
	ks = rcu_dereference_sk_user_data(sk);
	if (ks && !ks->in_want && ks->ops && ks->ops->readable)
		ks->ops->readable(ks->owner);
	rcu_read_unlock();
	local_bh_enable();
}

static void sock_write_space(struct sock *sk)
{
	struct kiw_sock *ks;

	if (!sk_stream_is_writeable(sk) || !sk->sk_socket)
		return;
	local_bh_disable();
	rcu_read_lock();
	ks = rcu_dereference_sk_user_data(sk);
	clear_bit(SOCK_NOSPACE, &sk->sk_socket->flags);
	if (ks && !ks->in_send && ks->ops && ks->ops->writable)
		ks->ops->writable(ks->owner);
	rcu_read_unlock();
	local_bh_enable();
}

static void sock_state_change(struct sock *sk)
{
	struct kiw_sock *ks;

	local_bh_disable();
	rcu_read_lock();
	ks = rcu_dereference_sk_user_data(sk);
	if (ks && ks->ops && ks->ops->changed)
		ks->ops->changed(ks->owner);
	rcu_read_unlock();
	local_bh_enable();
}

/*
 * A child that is not accepted yet has inherited this callback and the user data. Only a
 * listener may follow the pointer: see sock_install().
 */
static void sock_listen_ready(struct sock *sk)
{
	struct kiw_sock *ks;

	if (READ_ONCE(sk->sk_state) != TCP_LISTEN)
		return;
	read_lock_bh(&sk->sk_callback_lock);
	rcu_read_lock();
	ks = rcu_dereference_sk_user_data(sk);
	if (ks && ks->ops)
		ks->ops->changed(ks->owner);
	rcu_read_unlock();
	read_unlock_bh(&sk->sk_callback_lock);
}

/* Making and releasing */

static void sock_free(struct kref *ref)
{
	struct kiw_sock *ks = container_of(ref, struct kiw_sock, ref);

	sock_put(ks->sk);
	kfree(ks);
}

/* Forget the callbacks: nothing below can reach the owner any more. */
static struct socket *sock_detach(struct kiw_sock *ks)
{
	struct socket *sock;

	lock_sock(ks->sk);
	write_lock_bh(&ks->sk->sk_callback_lock);
	rcu_assign_sk_user_data(ks->sk, NULL);
	ks->ops = NULL;
	ks->owner = NULL;
	sock = ks->sock;
	WRITE_ONCE(ks->sock, NULL);
	write_unlock_bh(&ks->sk->sk_callback_lock);
	release_sock(ks->sk);
	return sock;
}

/* No effect on a stream that is not on the list. */
static void sock_uncount_lingering(struct kiw_sock *ks)
{
	struct kiw_sock_pool *pool = ks->pool;

	lockdep_assert_held(&pool->lock);
	if (list_empty(&ks->linger_link))
		return;
	list_del_init(&ks->linger_link);
	pool->num_lingering--;
}

static void sock_release_now(struct kiw_sock *ks)
{
	struct kiw_sock_pool *pool = ks->pool;
	struct socket *sock;

	if (test_and_set_bit(KIW_SOCKF_RELEASED, &ks->flags))
		return;
	sock = sock_detach(ks);
	trace_kiw_sock_close(ntohs(inet_sk(ks->sk)->inet_sport),
			     ntohs(inet_sk(ks->sk)->inet_dport),
			     ks->is_listener || ks->sk->sk_state == TCP_CLOSE ? "closed" : "reset",
			     ks->sk->sk_err);
	/* No effect on a stream that ended in order; a reset for any other. */
	if (!ks->is_listener)
		sock_no_linger(sock->sk);
	sock_release(sock);
	/* Not before: what waits in the backlog may only be there with the flag. */
	if (kiw_sock_is_memalloc(ks))
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
	/* Reclaim may wait for this work queue, and the reset may need memory. */
	unsigned int noio = memalloc_noio_save();

	sock_release_now(ks);
	memalloc_noio_restore(noio);
	kiw_sock_put(ks);
}

/* Ask for the release from a context that must not sleep, without waiting any longer. */
static void sock_release_later(struct kiw_sock *ks)
{
	kiw_sock_get(ks);
	if (mod_delayed_work(ks->pool->wq, &ks->end_work, 0))
		kiw_sock_put(ks);
}

/*
 * A socket whose user data is set cannot be put into a sockmap, which would exchange its
 * callbacks and its protocol. A BPF program may try that as soon as TCP has a connection, so
 * a listener's children inherit the user data, as a mark that nobody follows.
 */
static void sock_install(struct kiw_sock *ks)
{
	struct sock *sk = ks->sk;

	lock_sock(sk);
	sk->sk_allocation = GFP_ATOMIC;
	kiw_compat_sk_no_task_frag(sk);
	sock_set_flag(sk, SOCK_URGINLINE);
	write_lock_bh(&sk->sk_callback_lock);
	rcu_assign_sk_user_data(sk, ks);
	if (ks->is_listener) {
		sk->sk_data_ready = sock_listen_ready;
	} else {
		sk->sk_data_ready = sock_data_ready;
		sk->sk_write_space = sock_write_space;
		sk->sk_state_change = sock_state_change;
	}
	write_unlock_bh(&sk->sk_callback_lock);
	release_sock(sk);
}

/*
 * A stream that has no socket yet. It is freed with kfree(), or gets its socket from
 * sock_wrap(), which cannot fail: TCP is asked for a socket only when there is memory for
 * what holds it.
 */
static struct kiw_sock *sock_make(struct kiw_sock_pool *pool, bool is_listener,
				  const struct kiw_sock_ops *ops, void *owner)
{
	struct kiw_sock *ks;

	ks = kzalloc(sizeof(*ks), GFP_KERNEL);
	if (!ks)
		return NULL;
	ks->pool = pool;
	ks->ops = ops;
	ks->owner = owner;
	ks->is_listener = is_listener;
	INIT_LIST_HEAD(&ks->linger_link);
	INIT_DELAYED_WORK(&ks->end_work, sock_end_work);
	return ks;
}

/* From here on @sock belongs to @ks. */
static void sock_wrap(struct kiw_sock *ks, struct socket *sock)
{
	struct kiw_sock_pool *pool = ks->pool;

	/* One reference is the caller's, one the socket's until it is released. */
	kref_init(&ks->ref);
	kref_get(&ks->ref);
	ks->sk = sock->sk;
	sock_hold(ks->sk);
	ks->sock = sock;
	spin_lock_bh(&pool->lock);
	list_add_tail(&ks->link, &pool->socks);
	spin_unlock_bh(&pool->lock);
	kiw_count(pool->stats, KIW_STAT_SOCK_CREATED);
	sock_install(ks);
}

static int sock_addr_len(const struct sockaddr_storage *addr)
{
	return addr->ss_family == AF_INET6 ? sizeof(struct sockaddr_in6) :
					     sizeof(struct sockaddr_in);
}

static void sock_clear_port(struct sockaddr_storage *addr)
{
	if (addr->ss_family == AF_INET6)
		((struct sockaddr_in6 *)addr)->sin6_port = 0;
	else
		((struct sockaddr_in *)addr)->sin_port = 0;
}

/*
 * What waits for the peer, such as an RDMA Read, waits without a limit. TCP asks now and then
 * whether the peer is still there, as the host's tcp_keepalive_* say; one that was switched off
 * would not be noticed otherwise when nothing is left to be sent to it.
 */
static void sock_set_options(struct sock *sk)
{
	tcp_sock_set_nodelay(sk);
	sock_set_keepalive(sk);
}

static void sock_set_tos(struct socket *sock, int tos)
{
	if (tos < 0)
		return;
	if (sock->sk->sk_family == AF_INET)
		ip_sock_set_tos(sock->sk, tos);
	else
		inet6_sk(sock->sk)->tclass = tos;
}

/*
 * The port mapper reserves a port with a socket that it binds and does nothing else with. TCP
 * has one way past such a socket, meant for streams that are moved here from another host.
 */
static void sock_set_reuse(struct sock *sk, bool is_reserved)
{
	sock_set_reuseaddr(sk);
	if (is_reserved)
		sk->sk_reuse = SK_FORCE_REUSE;
}

static int sock_new(struct kiw_sock_pool *pool, const struct kiw_sock_local *local,
		    struct socket **sock)
{
	int family = local->addr->ss_family;
	int ret;

	if (family != AF_INET && family != AF_INET6)
		return -EAFNOSUPPORT;
	ret = __sock_create(pool->net, family, SOCK_STREAM, IPPROTO_TCP, sock, !local->is_process);
	if (ret)
		return ret;
	kiw_sock_class_set((*sock)->sk);
	sock_set_reuse((*sock)->sk, local->is_reserved);
	sock_set_options((*sock)->sk);
	if (family == AF_INET6)
		ip6_sock_set_v6only((*sock)->sk);
	sock_set_tos(*sock, local->tos);
	if (local->ifindex)
		ret = sock_bindtoindex((*sock)->sk, local->ifindex, true);
	if (ret)
		sock_release(*sock);
	return ret;
}

/*
 * The local port was chosen by rdma_cm, from its own space; when TCP is using it
 * already, the stream takes another one rather than fail. That has to be one that nobody
 * has: among those that may be reused TCP could choose the port of a stream of ours to the same
 * peer, and only the connect would find out.
 */
static int sock_bind_local(struct socket *sock, const struct sockaddr_storage *local)
{
	struct sockaddr_storage addr = *local;
	int ret;

	ret = kernel_bind(sock, (struct sockaddr *)&addr, sock_addr_len(&addr));
	if (ret != -EADDRINUSE)
		return ret;
	sock->sk->sk_reuse = SK_NO_REUSE;
	sock_clear_port(&addr);
	return kernel_bind(sock, (struct sockaddr *)&addr, sock_addr_len(&addr));
}

/**
 * kiw_sock_pool_init() - prepare the set of a device's streams
 * @pool: to initialise
 * @net: namespace their sockets are made in; not referenced
 * @wq: for releases
 * @stats: the device's counters
 *
 * Context: process.
 */
void kiw_sock_pool_init(struct kiw_sock_pool *pool, struct net *net, struct workqueue_struct *wq,
			struct kiw_stats *stats)
{
	spin_lock_init(&pool->lock);
	INIT_LIST_HEAD(&pool->socks);
	INIT_LIST_HEAD(&pool->lingering);
	pool->num_lingering = 0;
	pool->net = net;
	pool->wq = wq;
	pool->stats = stats;
}

/* The first stream that nobody has begun to release, referenced. */
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
 * kiw_sock_pool_uninit() - reset what still lingers
 * @pool: to empty; its owners are gone
 *
 * Context: process, may sleep; returns when every socket has been released.
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
	flush_workqueue(pool->wq);
	WARN_ON(!list_empty(&pool->socks));
}

/**
 * kiw_sock_connect() - start to connect a stream
 * @pool: where it belongs
 * @local: our end; its port is the one to try first
 * @remote: whom to call
 * @ops: owner's callbacks; changed() tells the outcome
 * @owner: handed to them
 *
 * Context: process, may sleep, does not wait for the peer.
 * Return: the stream with one reference of the caller's, or an ERR_PTR().
 */
struct kiw_sock *kiw_sock_connect(struct kiw_sock_pool *pool, const struct kiw_sock_local *local,
				  const struct sockaddr_storage *remote,
				  const struct kiw_sock_ops *ops, void *owner)
{
	struct sockaddr_storage addr = *remote;
	struct socket *sock;
	struct kiw_sock *ks;
	int ret;

	ks = sock_make(pool, false, ops, owner);
	if (!ks)
		return ERR_PTR(-ENOMEM);
	ret = sock_new(pool, local, &sock);
	if (ret)
		goto err_free;
	ret = sock_bind_local(sock, local->addr);
	if (ret)
		goto err_release;
	sock_wrap(ks, sock);
	if (local->is_memalloc)
		sk_set_memalloc(ks->sk);
	ret = kernel_connect(sock, (struct sockaddr *)&addr, sock_addr_len(&addr), O_NONBLOCK);
	if (ret && ret != -EINPROGRESS) {
		kiw_sock_drop(ks, true);
		kiw_sock_put(ks);
		return ERR_PTR(ret);
	}
	return ks;

err_release:
	sock_release(sock);
err_free:
	kfree(ks);
	return ERR_PTR(ret);
}

/* Disconnect, and give the port back, which TCP keeps because it was chosen by bind(). */
static int sock_disconnect(struct socket *sock)
{
	struct sockaddr addr = { .sa_family = AF_UNSPEC };
	struct sock *sk = sock->sk;
	int ret;

	ret = kernel_connect(sock, &addr, sizeof(addr), 0);
	lock_sock(sk);
	if (!ret && inet_csk(sk)->icsk_bind_hash)
		inet_put_port(sk);
	release_sock(sk);
	/* TCP notes that the stream was cut. */
	sock_error(sk);
	return ret;
}

/**
 * kiw_sock_reconnect() - end a stream with a reset and connect it anew
 * @ks: a stream of kiw_sock_connect(); its owner calls and stays the owner
 * @local: our end; its port is ignored, as the peer's TCP may still know the former stream
 * @remote: whom to call
 *
 * The socket is the same, with its owner's security label, cgroup and memory accounting, which
 * a work item could not give to another one.
 *
 * Context: process, may sleep, does not wait for the peer.
 * Return: 0: changed() tells the outcome; or -errno: the stream must be dropped.
 */
int kiw_sock_reconnect(struct kiw_sock *ks, const struct sockaddr_storage *local,
		       const struct sockaddr_storage *remote)
{
	struct sockaddr_storage addr = *local;
	int ret;

	if (!ks->sock)
		return -ENOTCONN;
	ret = sock_disconnect(ks->sock);
	if (ret)
		return ret;
	sock_clear_port(&addr);
	ret = kernel_bind(ks->sock, (struct sockaddr *)&addr, sock_addr_len(&addr));
	if (ret)
		return ret;
	addr = *remote;
	ret = kernel_connect(ks->sock, (struct sockaddr *)&addr, sock_addr_len(&addr), O_NONBLOCK);
	return ret == -EINPROGRESS ? 0 : ret;
}

/**
 * kiw_sock_listen() - listen for streams
 * @pool: where it belongs
 * @local: our end
 * @backlog: established streams TCP keeps until they are accepted
 * @v6only: if @local is of IPv6 and the wildcard, take no IPv4
 * @ops: owner's callbacks; changed() tells that there is something to accept
 * @owner: handed to them
 *
 * Context: process, may sleep.
 * Return: the listener with one reference of the caller's, or an ERR_PTR().
 */
struct kiw_sock *kiw_sock_listen(struct kiw_sock_pool *pool, const struct kiw_sock_local *local,
				 int backlog, bool v6only, const struct kiw_sock_ops *ops,
				 void *owner)
{
	struct sockaddr_storage addr = *local->addr;
	struct socket *sock;
	struct kiw_sock *ks;
	int ret;

	ks = sock_make(pool, true, ops, owner);
	if (!ks)
		return ERR_PTR(-ENOMEM);
	ret = sock_new(pool, local, &sock);
	if (ret)
		goto err_free;
	if (!v6only && addr.ss_family == AF_INET6)
		sock->sk->sk_ipv6only = false;
	ret = kernel_bind(sock, (struct sockaddr *)&addr, sock_addr_len(&addr));
	if (ret)
		goto err_release;
	sock_wrap(ks, sock);
	ret = kernel_listen(sock, backlog);
	if (ret) {
		kiw_sock_drop(ks, true);
		kiw_sock_put(ks);
		return ERR_PTR(ret);
	}
	return ks;

err_release:
	sock_release(sock);
err_free:
	kfree(ks);
	return ERR_PTR(ret);
}

/**
 * kiw_sock_accept() - take the next stream from a listener
 * @listener: to take it from
 * @ops: owner's callbacks
 * @owner: handed to them
 *
 * What arrived before is not announced: the owner looks once by itself.
 *
 * Context: process, may sleep, does not wait.
 * Return: the stream with one reference of the caller's, or an ERR_PTR(): -EAGAIN:
 * nothing to accept; -ENOMEM: the stream waits in TCP's queue, and nothing announces it
 * again; anything else: that one is lost, there may be more.
 */
struct kiw_sock *kiw_sock_accept(struct kiw_sock *listener, const struct kiw_sock_ops *ops,
				 void *owner)
{
	struct socket *sock;
	struct kiw_sock *ks;
	int ret;

	ks = sock_make(listener->pool, false, ops, owner);
	if (!ks)
		return ERR_PTR(-ENOMEM);
	ret = kernel_accept(listener->sock, &sock, O_NONBLOCK);
	if (ret) {
		kfree(ks);
		return ERR_PTR(ret);
	}
	kiw_sock_class_set(sock->sk);
	sock_set_options(sock->sk);
	sock_wrap(ks, sock);
	return ks;
}

/**
 * kiw_sock_charge_caller() - let the calling process pay for a stream's memory
 * @ks: a stream that was accepted, and is charged to nobody
 *
 * As TCP does when a process calls accept(). What TCP has queued already is charged as well.
 *
 * Context: process, may sleep; @ks's owner calls.
 * Return: 0, or -ENOMEM: the memory cgroup is at its limit.
 */
int kiw_sock_charge_caller(struct kiw_sock *ks)
{
	int ret = 0;

	if (!kiw_sock_lock(ks))
		return 0;
	ret = kiw_compat_sk_charge_caller(ks->sk);
	kiw_sock_unlock(ks);
	return ret;
}

/* Owning */

/**
 * kiw_sock_set_owner() - hand a stream over
 * @ks: the stream or listener
 * @ops: the new owner's callbacks, or NULL for silence
 * @owner: handed to them
 *
 * Context: process, may sleep. When it returns, no call to the former owner runs.
 */
void kiw_sock_set_owner(struct kiw_sock *ks, const struct kiw_sock_ops *ops, void *owner)
{
	lock_sock(ks->sk);
	write_lock_bh(&ks->sk->sk_callback_lock);
	if (ks->sock && !test_bit(KIW_SOCKF_LINGERING, &ks->flags)) {
		ks->ops = ops;
		ks->owner = owner;
	}
	write_unlock_bh(&ks->sk->sk_callback_lock);
	release_sock(ks->sk);
}

/**
 * kiw_sock_lock() - take the socket lock in process context
 * @ks: the stream
 *
 * Context: process, may sleep.
 * Return: whether there is still a socket; if not, nothing is locked.
 */
bool kiw_sock_lock(struct kiw_sock *ks)
{
	lock_sock(ks->sk);
	if (ks->sock)
		return true;
	release_sock(ks->sk);
	return false;
}

/**
 * kiw_sock_unlock() - release the socket lock in process context
 * @ks: the stream
 *
 * Context: process, may sleep: works off what arrived meanwhile.
 */
void kiw_sock_unlock(struct kiw_sock *ks)
{
	release_sock(ks->sk);
}

/* Ending */

static void sock_linger_readable(void *owner)
{
	struct kiw_sock *ks = owner;
	int avail = tcp_inq(ks->sk);

	if (avail > 0)
		tcp_read_done(ks->sk, avail);
	sock_linger_changed(ks);
}

static void sock_linger_changed(void *owner)
{
	struct kiw_sock *ks = owner;

	if (ks->sk->sk_state == TCP_CLOSE)
		sock_release_later(ks);
}

/* Count @ks, unless it has been released meanwhile. */
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

/* The oldest of more than @max, counted no more, referenced; or NULL. */
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
		/* Its reference keeps the memory of the socket. */
		if (cancel_delayed_work(&ks->end_work))
			kiw_sock_put(ks);
		sock_release_now(ks);
		kiw_sock_put(ks);
	}
}

/**
 * kiw_sock_linger() - end a stream in order
 * @ks: the stream; its owner is told nothing more
 * @timeout_ms: after that it is reset
 * @max: how many streams of the device may linger under a limit, this one included; beyond
 *	that the oldest of them is reset. 0: this one has no limit and does not count
 *
 * Sends FIN behind what TCP has queued (RFC 5044 7.2), discards what still comes,
 * and releases the socket when both halves are closed.
 *
 * Context: process, may sleep, does not wait for the peer.
 */
void kiw_sock_linger(struct kiw_sock *ks, unsigned int timeout_ms, unsigned int max)
{
	if (!ks->sock || test_and_set_bit(KIW_SOCKF_LINGERING, &ks->flags))
		return;
	/* Before the owner lets go: afterwards the socket may be released at any time. */
	kernel_sock_shutdown(ks->sock, SHUT_WR);

	kiw_sock_get(ks);
	if (!queue_delayed_work(ks->pool->wq, &ks->end_work, msecs_to_jiffies(timeout_ms)))
		kiw_sock_put(ks);

	lock_sock(ks->sk);
	local_bh_disable();
	if (ks->sock) {
		ks->ops = &sock_linger_ops;
		ks->owner = ks;
		WRITE_ONCE(ks->sk->sk_rcvlowat, 1);
		/* What has arrived already is not announced again. */
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
 * @ks: it; its owner is told nothing more
 * @reset: at once, with a reset; else in order as kiw_sock_linger() does, without a limit
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

/* Any context */

/**
 * kiw_sock_status() - what TCP says of a stream
 * @ks: the stream
 *
 * Context: any. A snapshot, unless the socket lock is held.
 * Return: &enum kiw_sock_status.
 */
enum kiw_sock_status kiw_sock_status(struct kiw_sock *ks)
{
	const struct sock *sk = ks->sk;

	if (!READ_ONCE(ks->sock) || READ_ONCE(sk->sk_err))
		return KIW_SOCK_DEAD;
	switch (READ_ONCE(sk->sk_state)) {
	case TCP_SYN_SENT:
	case TCP_SYN_RECV:
		return KIW_SOCK_CONNECTING;
	case TCP_ESTABLISHED:
	case TCP_FIN_WAIT1:
	case TCP_FIN_WAIT2:
		return KIW_SOCK_OPEN;
	case TCP_CLOSE:
		/* Both FINs, in whatever order, or something worse */
		return sock_flag(sk, SOCK_DONE) ? KIW_SOCK_PEER_CLOSED : KIW_SOCK_DEAD;
	default:
		return KIW_SOCK_PEER_CLOSED;
	}
}

/**
 * kiw_sock_is_memalloc() - may a stream use the kernel's reserves of memory
 * @ks: the stream
 *
 * Context: any. Constant from kiw_sock_connect() until the socket is released.
 * Return: as &struct kiw_sock_local said; false for what was accepted.
 */
bool kiw_sock_is_memalloc(const struct kiw_sock *ks)
{
	return sock_flag(ks->sk, SOCK_MEMALLOC);
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
 * kiw_sock_put() - give a reference back
 * @ks: the stream; an owner that has not ended it must do so first
 *
 * Context: any.
 */
void kiw_sock_put(struct kiw_sock *ks)
{
	kref_put(&ks->ref, sock_free);
}

/**
 * kiw_sock_run_bh() - do something under the socket lock without sleeping
 * @ks: the stream
 * @fn: called with the lock held
 * @arg: handed to it
 *
 * Context: BHs off.
 * Return: whether it was done. If not, the socket was released or a process owns it:
 * whoever owns it runs the callbacks when it lets go, but the caller's own business must
 * be deferred.
 */
bool kiw_sock_run_bh(struct kiw_sock *ks, void (*fn)(void *arg), void *arg)
{
	bool can_run;

	bh_lock_sock(ks->sk);
	can_run = !sock_owned_by_user(ks->sk) && ks->sock;
	if (can_run)
		fn(arg);
	bh_unlock_sock(ks->sk);
	return can_run;
}
