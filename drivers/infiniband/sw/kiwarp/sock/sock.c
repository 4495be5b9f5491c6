// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Streams over kernel TCP sockets.
 *
 * Owns: struct socket and its callbacks. TCP calls back with the socket lock held (in softirq, or
 * in process context from the backlog or from a call to TCP) and the owner is notified through
 * &struct kiw_sock_ops. The exception is a listener's sk_data_ready, which TCP calls with only the
 * child locked; there, sk_callback_lock protects the owner and its callbacks.
 *
 * Lifetime: &struct kiw_sock holds its own reference on the struct sock, so the socket lock can
 * be taken at any time. Under the lock, @sock tells whether there is still a struct socket. Sockets
 * made for a process, and those that its listeners accept, hold a reference on the network
 * namespace, others do not: see section Stream of Documentation/lifetime.rst. sock_end.c ends
 * streams.
 */
#include "sock.h"

#include <linux/slab.h>
#include <net/inet_ecn.h>
#include <net/ipv6.h>
#include <net/tcp.h>

#include "compat/net.h"

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
 * Also called for a child that was not accepted yet, because it has inherited this callback and the
 * user data. Only a listener's user data may be dereferenced: see sock_install().
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

/* Creation */

/*
 * Install our callbacks and @ks as the socket's user data. A socket with user data cannot be put
 * into a sockmap, which would replace its callbacks and its protocol. A BPF program may try that as
 * soon as TCP has a connection, so the children of a listener inherit the user data. In a child it
 * is only a mark, and nothing dereferences it.
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
 * Allocate a stream without a socket. It is either freed with kfree() or gets its socket from
 * sock_wrap(), which cannot fail.
 */
static struct kiw_sock *sock_make(struct kiw_sock_pool *pool, bool is_listener,
				  const struct kiw_sock_ops *ops, void *owner)
{
	struct kiw_sock *ks;

	ks = kzalloc(sizeof(*ks), GFP_KERNEL_ACCOUNT);
	if (!ks)
		return NULL;
	ks->pool = pool;
	ks->ops = ops;
	ks->owner = owner;
	ks->is_listener = is_listener;
	kiw_sock_end_init(ks);
	return ks;
}

/* Give a stream its socket, which belongs to it from then on. */
static void sock_wrap(struct kiw_sock *ks, struct socket *sock)
{
	struct kiw_sock_pool *pool = ks->pool;

	/* One reference for the caller, one for the socket until it is released */
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
 * Switch off the Nagle algorithm, and enable keepalive. With keepalive, TCP checks the peer from
 * time to time, as set by the tcp_keepalive_* sysctls. Without it, a peer that was switched off
 * would go unnoticed if there is nothing left to send: an operation that waits for the peer, such
 * as an RDMA Read, has no timeout.
 */
static void sock_set_options(struct sock *sk)
{
	tcp_sock_set_nodelay(sk);
	sock_set_keepalive(sk);
}

/* The two bits of ECN are TCP's. ip_sock_set_tos() leaves them alone, too. */
static void sock_set_tos(struct socket *sock, int tos)
{
	u8 tclass;

	if (tos < 0)
		return;
	/* A listener at :: may take IPv4, too, and its children inherit the TOS of IPv4. */
	ip_sock_set_tos(sock->sk, tos);
	if (sock->sk->sk_family != AF_INET6)
		return;
	tclass = inet6_sk(sock->sk)->tclass & INET_ECN_MASK;
	inet6_sk(sock->sk)->tclass = tclass | (tos & ~INET_ECN_MASK);
}

/*
 * Allow the reuse of a local port. The port mapper reserves a port by binding a socket to it.
 * SK_FORCE_REUSE lets a second socket be bound to such a port. TCP itself has it for streams that
 * are restored from a checkpoint (TCP_REPAIR).
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
 * Bind to the address of @local, and to a port that is unused there. If ports could be reused, TCP
 * might choose the port of another stream of ours to the same peer; the bind would succeed, and the
 * connect fail.
 */
static int sock_bind_elsewhere(struct socket *sock, const struct sockaddr_storage *local)
{
	struct sockaddr_storage addr = *local;

	sock->sk->sk_reuse = SK_NO_REUSE;
	sock_clear_port(&addr);
	return kernel_bind(sock, (struct sockaddr_unsized *)&addr, sock_addr_len(&addr));
}

/*
 * Bind to @local, or to another port if another socket has that one and does not share it: rdma_cm
 * has its own port space, which TCP does not know.
 */
static int sock_bind_local(struct socket *sock, const struct sockaddr_storage *local)
{
	struct sockaddr_storage addr = *local;
	int ret;

	ret = kernel_bind(sock, (struct sockaddr_unsized *)&addr, sock_addr_len(&addr));
	return ret == -EADDRINUSE ? sock_bind_elsewhere(sock, local) : ret;
}

static int sock_start_connect(struct socket *sock, const struct sockaddr_storage *remote)
{
	struct sockaddr_storage addr = *remote;
	int ret;

	ret = kernel_connect(sock, (struct sockaddr_unsized *)&addr, sock_addr_len(&addr),
			     O_NONBLOCK);
	return ret == -EINPROGRESS ? 0 : ret;
}

/* Disconnect, and release the port, which TCP keeps if bind() was given one. */
static int sock_disconnect(struct socket *sock)
{
	struct sockaddr addr = { .sa_family = AF_UNSPEC };
	struct sock *sk = sock->sk;
	int ret;

	ret = kernel_connect(sock, (struct sockaddr_unsized *)&addr, sizeof(addr), 0);
	lock_sock(sk);
	if (!ret && inet_csk(sk)->icsk_bind_hash)
		sk->sk_prot->put_port(sk);
	release_sock(sk);
	/* Clear the error that TCP has set because the stream was reset. */
	sock_error(sk);
	return ret;
}

/*
 * Connect from the port that @sock is bound to, or from another one if there is a stream from that
 * port to the same remote address and port already. A consumer may make several connections from
 * one port of rdma_cm to one destination (rdma_set_reuseaddr()), as RTRS does. TCP cannot.
 */
static int sock_connect_local(struct socket *sock, const struct kiw_sock_local *local,
			      const struct sockaddr_storage *remote)
{
	int ret;

	ret = sock_start_connect(sock, remote);
	/* The port mapper has told the peer the port that it reserved. */
	if (ret != -EADDRNOTAVAIL || local->is_reserved)
		return ret;
	ret = sock_disconnect(sock);
	if (!ret)
		ret = sock_bind_elsewhere(sock, local->addr);
	return ret ? ret : sock_start_connect(sock, remote);
}

/**
 * kiw_sock_pool_init() - initialise the set of a device's streams
 * @pool: to initialise
 * @net: network namespace of the sockets; not referenced
 * @wq: workqueue for releases
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

/**
 * kiw_sock_connect() - start to connect a stream
 * @pool: the pool that it will belong to
 * @local: local end; its port is tried first
 * @remote: remote address and port
 * @ops: the owner's callbacks; changed() reports the outcome
 * @owner: passed to @ops
 *
 * Context: process, may sleep, does not wait for the peer.
 * Return: the stream with one reference for the caller, or an ERR_PTR().
 */
struct kiw_sock *kiw_sock_connect(struct kiw_sock_pool *pool, const struct kiw_sock_local *local,
				  const struct sockaddr_storage *remote,
				  const struct kiw_sock_ops *ops, void *owner)
{
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
	ret = sock_connect_local(sock, local, remote);
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
 * kiw_sock_reconnect() - reset a stream and connect it again
 * @ks: a stream of kiw_sock_connect(); its owner calls and remains the owner
 * @local: local end; its port is ignored, as the peer's TCP may still know the former stream
 * @remote: remote address and port
 *
 * The socket remains the same, with its security label, cgroup and memory accounting, which a work
 * item could not give to a new socket.
 *
 * Context: process, may sleep, does not wait for the peer.
 * Return: 0: changed() reports the outcome; or -errno: the stream must be dropped.
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
	ret = kernel_bind(ks->sock, (struct sockaddr_unsized *)&addr, sock_addr_len(&addr));
	if (ret)
		return ret;
	return sock_start_connect(ks->sock, remote);
}

/**
 * kiw_sock_listen() - listen for streams
 * @pool: the pool that the listener will belong to
 * @local: local end
 * @backlog: limit on the streams that wait to be accepted, as for kernel_listen()
 * @v6only: if @local is the IPv6 wildcard, accept no IPv4
 * @ops: the owner's callbacks; changed() reports a stream to accept
 * @owner: passed to @ops
 *
 * Context: process, may sleep.
 * Return: the listener with one reference for the caller, or an ERR_PTR().
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
	ret = kernel_bind(sock, (struct sockaddr_unsized *)&addr, sock_addr_len(&addr));
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
 * kiw_sock_set_backlog() - change the length of a listener's queue
 * @listener: the listener
 * @backlog: as for kiw_sock_listen(); if more streams wait already, they stay
 *
 * Context: any.
 */
void kiw_sock_set_backlog(struct kiw_sock *listener, int backlog)
{
	WRITE_ONCE(listener->sk->sk_max_ack_backlog, backlog);
}

/*
 * Make a user the owner of an accepted stream, which would belong to root otherwise, because a work
 * item accepts it. TCP looks up routes for the owner (ip rule uidrange), and ss shows it.
 */
static void sock_set_uid(struct socket *sock, kuid_t uid)
{
	SOCK_INODE(sock)->i_uid = uid;
	WRITE_ONCE(sock->sk->sk_uid, uid);
}

/**
 * kiw_sock_accept() - accept the next stream from a listener
 * @listener: the listener
 * @ops: the owner's callbacks
 * @owner: passed to @ops
 *
 * The stream belongs to the user of the listener. Data may have arrived before the callbacks were
 * installed. It is not announced, so the owner must check for data once.
 *
 * Context: process, may sleep, does not wait.
 * Return: the stream with one reference for the caller, or an ERR_PTR(): -EAGAIN: nothing to
 * accept; -ENOMEM: streams stay in TCP's queue, and are not announced again; another -errno: no
 * stream was accepted.
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
	sock_set_uid(sock, READ_ONCE(listener->sk->sk_uid));
	sock_wrap(ks, sock);
	return ks;
}

/**
 * kiw_sock_charge_caller() - charge a stream's memory to the calling process
 * @ks: a stream that was accepted, and is not charged to any cgroup
 *
 * TCP does the same when a process calls accept(). Data that TCP has queued already is charged as
 * well.
 *
 * Context: process, may sleep; called by the owner of @ks.
 * Return: 0, also if the socket is gone; or -ENOMEM: the memory cgroup or TCP is at its limit.
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

/* Ownership */

/**
 * kiw_sock_set_owner() - change the owner of a stream
 * @ks: the stream or listener
 * @ops: the new owner's callbacks, or NULL for none
 * @owner: passed to @ops
 *
 * Context: process, may sleep. When it returns, no callback of the former owner is running.
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
 * Context: process, may sleep: processes the backlog.
 */
void kiw_sock_unlock(struct kiw_sock *ks)
{
	release_sock(ks->sk);
}

/* Any context */

/**
 * kiw_sock_status() - state of a stream according to TCP
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
		/* Both ends have sent FIN, in any order, or the stream failed */
		return sock_flag(sk, SOCK_DONE) ? KIW_SOCK_PEER_CLOSED : KIW_SOCK_DEAD;
	default:
		return KIW_SOCK_PEER_CLOSED;
	}
}

/**
 * kiw_sock_is_memalloc() - may a stream use the kernel's memory reserves?
 * @ks: the stream
 *
 * Context: any. Constant from kiw_sock_connect() until the socket is released.
 * Return: as set in &struct kiw_sock_local; false for accepted streams.
 */
bool kiw_sock_is_memalloc(const struct kiw_sock *ks)
{
	return sock_flag(ks->sk, SOCK_MEMALLOC);
}

/**
 * kiw_sock_steer() - ask for the stream's segments on this CPU
 * @ks: the stream
 *
 * A hint for Receive Flow Steering, as recvmsg() gives it for other sockets; does nothing unless
 * the administrator has turned that on.
 *
 * Context: any.
 */
void kiw_sock_steer(const struct kiw_sock *ks)
{
	sock_rps_record_flow(ks->sk);
}

/**
 * kiw_sock_run_bh() - call a function under the socket lock without sleeping
 * @ks: the stream
 * @fn: called with the lock held
 * @arg: passed to @fn
 *
 * Context: BHs off.
 * Return: true: @fn was called. false: the socket was released, or a process holds the socket lock.
 * That process processes TCP's backlog when it drops the lock, but the caller must defer its own
 * work.
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
