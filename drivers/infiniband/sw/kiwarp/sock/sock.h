/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Streams over kernel TCP sockets. Apart from wrappers for kernel versions, the files of this
 * folder are the only ones that know TCP.
 *
 * Owns: struct socket, its callbacks, its end. A stream has at most one owner at a time: the
 * endpoint while MPA starts up, then the QP. The owner is notified of events through &struct
 * kiw_sock_ops and holds references. The socket itself is released in process context, exactly
 * once, when the stream is dropped or no longer lingers.
 *
 * "Socket lock" below means that a process owns the socket (kiw_sock_lock()), or, with BHs off, the
 * socket's spinlock while no process owns it (kiw_sock_run_bh()). A callback of TCP may have
 * either.
 */
#ifndef KIW_SOCK_H
#define KIW_SOCK_H

#include <linux/bits.h>
#include <linux/bvec.h>
#include <linux/kref.h>
#include <linux/list.h>
#include <linux/minmax.h>
#include <linux/net.h>
#include <linux/skbuff.h>
#include <linux/socket.h>
#include <linux/workqueue.h>
#include <net/sock.h>

#include "stats.h"

/**
 * struct kiw_sock_pool - all streams of a device
 * @lock: protects @socks, @lingering, @num_lingering
 * @socks: list of all streams and listeners, through &struct kiw_sock.link
 * @lingering: list of lingering streams whose number is limited, through
 *	&struct kiw_sock.linger_link, oldest first
 * @num_lingering: length of @lingering
 * @net: network namespace of the netdev; not refcounted, because the device and its streams end
 *	before the namespace does
 * @wq: workqueue on which lingering streams are released when they end
 * @stats: the device's counters
 */
struct kiw_sock_pool {
	spinlock_t lock;
	struct list_head socks;
	struct list_head lingering;
	unsigned int num_lingering;
	struct net *net;
	struct workqueue_struct *wq;
	struct kiw_stats *stats;
};

/**
 * struct kiw_sock_ops - callbacks to the owner of a stream
 * @readable: data or the peer's FIN has arrived; socket lock held, BHs off. May read through a
 *	&struct kiw_rx_cursor
 * @writable: the send queue has room again; socket lock held, BHs off; must defer
 * @changed: the state changed (connected, peer closed, error, new connection on a listener);
 *	socket lock held or not, BHs off; must defer
 *
 * When kiw_sock_set_owner() returns, no callback of the former owner is running. Earlier events
 * are not reported again: a new owner must look at the stream itself.
 */
struct kiw_sock_ops {
	void (*readable)(void *owner);
	void (*writable)(void *owner);
	void (*changed)(void *owner);
};

/**
 * struct kiw_sock_local - local end of a new stream or listener
 * @addr: address and port
 * @ifindex: bind to this interface, 0: do not bind
 * @tos: type of service or traffic class, negative: the default
 * @is_reserved: the port mapper holds the port for us; bind to it although it is in use
 * @is_memalloc: memory reclaim may depend on the stream: it may use the kernel's memory reserves
 * @is_process: the socket is made for the calling process, and security modules see its creation.
 *	Such a socket holds a reference on the network namespace, like a process's own
 */
struct kiw_sock_local {
	const struct sockaddr_storage *addr;
	int ifindex;
	int tos;
	bool is_reserved;
	bool is_memalloc;
	bool is_process;
};

#define KIW_SOCKF_LINGERING	0	/* waiting only for the end of the stream */
#define KIW_SOCKF_RELEASED	1	/* the socket is being released, or was */

/**
 * struct kiw_sock - a stream, or a listener
 * @ref: reference count
 * @pool: the pool that the stream belongs to
 * @link: in &struct kiw_sock_pool.socks
 * @linger_link: in &struct kiw_sock_pool.lingering, or empty
 * @sk: the TCP socket; referenced, so that it can be locked at any time
 * @sock: the kernel socket; NULL once released; written under the socket lock
 * @ops: the owner's callbacks; streams: protected by the socket lock; listeners: by the socket's
 *	callback lock
 * @owner: passed to @ops; protected likewise
 * @is_listener: a listener, not a stream
 * @in_want: kiw_sock_rx_want() is running, and TCP may call back from inside it; socket lock
 * @in_send: kiw_sock_send_pages() is running, which makes writable() unnecessary: its return value
 *	tells the owner everything; socket lock
 * @is_unreadable: TCP has data that the CPU cannot read; socket lock
 * @flags: %KIW_SOCKF_ bits
 * @end_work: releases a lingering stream when its time is over or TCP has closed it
 */
struct kiw_sock {
	struct kref ref;
	struct kiw_sock_pool *pool;
	struct list_head link;
	struct list_head linger_link;
	struct sock *sk;
	struct socket *sock;
	const struct kiw_sock_ops *ops;
	void *owner;
	bool is_listener;
	bool in_want;
	bool in_send;
	bool is_unreadable;
	unsigned long flags;
	struct delayed_work end_work;
};

/**
 * enum kiw_sock_status - state of a stream according to TCP
 * @KIW_SOCK_CONNECTING: SYN sent, not connected yet
 * @KIW_SOCK_OPEN: connected, and the peer's FIN has not arrived
 * @KIW_SOCK_PEER_CLOSED: the peer's FIN has arrived
 * @KIW_SOCK_DEAD: failed or released
 */
enum kiw_sock_status {
	KIW_SOCK_CONNECTING,
	KIW_SOCK_OPEN,
	KIW_SOCK_PEER_CLOSED,
	KIW_SOCK_DEAD,
};

/* Process context, may sleep; functions that fail to make a stream return an ERR_PTR() */
void kiw_sock_pool_init(struct kiw_sock_pool *pool, struct net *net, struct workqueue_struct *wq,
			struct kiw_stats *stats);
struct kiw_sock *kiw_sock_connect(struct kiw_sock_pool *pool, const struct kiw_sock_local *local,
				  const struct sockaddr_storage *remote,
				  const struct kiw_sock_ops *ops, void *owner);
int kiw_sock_reconnect(struct kiw_sock *ks, const struct sockaddr_storage *local,
		       const struct sockaddr_storage *remote);
struct kiw_sock *kiw_sock_listen(struct kiw_sock_pool *pool, const struct kiw_sock_local *local,
				 int backlog, bool v6only, const struct kiw_sock_ops *ops,
				 void *owner);
void kiw_sock_set_backlog(struct kiw_sock *listener, int backlog);
struct kiw_sock *kiw_sock_accept(struct kiw_sock *listener, const struct kiw_sock_ops *ops,
				 void *owner);
int kiw_sock_charge_caller(struct kiw_sock *ks);
int kiw_sock_names(struct kiw_sock *ks, struct sockaddr_storage *local,
		   struct sockaddr_storage *remote);
int kiw_sock_peek(struct kiw_sock *ks, void *buf, size_t len);
int kiw_sock_discard(struct kiw_sock *ks, size_t len);
int kiw_sock_send_all(struct kiw_sock *ks, const void *buf, size_t len);
int kiw_sock_error(struct kiw_sock *ks);
void kiw_sock_set_owner(struct kiw_sock *ks, const struct kiw_sock_ops *ops, void *owner);
bool kiw_sock_lock(struct kiw_sock *ks);
void kiw_sock_unlock(struct kiw_sock *ks);

/* sock_end.c; process context, may sleep */
void kiw_sock_end_init(struct kiw_sock *ks);
void kiw_sock_linger(struct kiw_sock *ks, unsigned int timeout_ms, unsigned int max);
void kiw_sock_drop(struct kiw_sock *ks, bool reset);
void kiw_sock_pool_uninit(struct kiw_sock_pool *pool);

/* sock_end.c; any context */
struct kiw_sock *kiw_sock_get(struct kiw_sock *ks);
void kiw_sock_put(struct kiw_sock *ks);

/* sock_class.c; process context, may sleep */
#ifdef CONFIG_DEBUG_LOCK_ALLOC
void kiw_sock_class_set(struct sock *sk);
#else
static inline void kiw_sock_class_set(struct sock *sk)
{
}
#endif

/* Any context */
enum kiw_sock_status kiw_sock_status(struct kiw_sock *ks);
bool kiw_sock_is_memalloc(const struct kiw_sock *ks);
void kiw_sock_steer(const struct kiw_sock *ks);

/* BHs off */
bool kiw_sock_run_bh(struct kiw_sock *ks, void (*fn)(void *arg), void *arg);

/**
 * kiw_sock_assert_held() - assert that the caller holds the socket lock
 * @ks: the stream, or NULL: a QP without a stream is protected by its mutex
 *
 * Once the socket was released, the lock is not needed. Does nothing without lockdep.
 *
 * Context: any.
 */
static inline void kiw_sock_assert_held(const struct kiw_sock *ks)
{
	if (IS_ENABLED(CONFIG_LOCKDEP) && ks && READ_ONCE(ks->sock))
		sock_owned_by_me(ks->sk);
}

/**
 * kiw_sock_assert_held_bh() - assert that the caller holds the socket lock and has BHs off
 * @ks: as for kiw_sock_assert_held()
 *
 * Context: any.
 */
static inline void kiw_sock_assert_held_bh(const struct kiw_sock *ks)
{
	kiw_sock_assert_held(ks);
	lockdep_assert_in_softirq();
}

/*
 * How to send pages. JOINS: TCP may put what is sent next into the same segment. LAST: TCP is to
 * take all of it even if its send queue is full; only for the end of a stream, because its length
 * is then the only limit on the memory.
 */
#define KIW_SEND_JOINS	BIT(0)
#define KIW_SEND_LAST	BIT(1)

/* sock_io.c; socket lock held; kiw_sock_send_pages() and kiw_sock_has_room(): BHs off */
u32 kiw_sock_emss(struct kiw_sock *ks);
u32 kiw_sock_burst(struct kiw_sock *ks);
int kiw_sock_send_pages(struct kiw_sock *ks, struct bio_vec *bv, unsigned int num, size_t len,
			struct ubuf_info *ubuf, unsigned int how);
bool kiw_sock_can_lend(struct kiw_sock *ks);
u32 kiw_sock_sent(struct kiw_sock *ks);
bool kiw_sock_is_acked(struct kiw_sock *ks, u32 seq);
bool kiw_sock_has_room(struct kiw_sock *ks);
bool kiw_sock_is_quiet(struct kiw_sock *ks);

/**
 * struct kiw_rx_cursor - a position in the socket's receive queue
 * @skb: current buffer; NULL: there is no more to read
 * @part: @skb, or the current buffer of its frag_list
 * @frag: current fragment of @part, -1: its linear part; the last one if @data and @here span
 *	several fragments
 * @from: bytes of @skb before @frag
 * @seq: TCP sequence number
 * @avail: bytes from here to the end of what has arrived
 * @here: bytes that are contiguous from @data on, possibly more than @avail; 0: call
 *	kiw_sock_rx_find()
 * @data: the byte at @seq, if @here is not 0
 */
struct kiw_rx_cursor {
	struct sk_buff *skb;
	struct sk_buff *part;
	int frag;
	u32 from;
	u32 seq;
	u32 avail;
	u32 here;
	const u8 *data;
};

/* sock_rx.c; socket lock held, BHs off */
void kiw_sock_rx_start(struct kiw_sock *ks, struct kiw_rx_cursor *cur);
bool kiw_sock_rx_find(struct kiw_sock *ks, struct kiw_rx_cursor *cur);
void kiw_sock_rx_peek(struct kiw_sock *ks, const struct kiw_rx_cursor *cur, u8 *buf, u32 len);
void kiw_sock_rx_room(struct kiw_sock *ks, const struct kiw_rx_cursor *cur, u32 len);
void kiw_sock_rx_consume(struct kiw_sock *ks, u32 len);
void kiw_sock_rx_want(struct kiw_sock *ks, u32 len);

/**
 * kiw_sock_rx_skip() - skip bytes
 * @ks: the stream
 * @cur: advanced
 * @len: bytes, at most @cur->avail
 *
 * Finds the fragment at the new position right away. Otherwise each copy that is made of @cur would
 * have to find it again.
 *
 * Context: socket lock held, BHs off.
 */
static inline void kiw_sock_rx_skip(struct kiw_sock *ks, struct kiw_rx_cursor *cur, u32 len)
{
	kiw_sock_assert_held_bh(ks);
	cur->seq += len;
	cur->avail -= len;
	if (len < cur->here) {
		cur->data += len;
		cur->here -= len;
		return;
	}
	cur->here = 0;
	if (cur->avail)
		kiw_sock_rx_find(ks, cur);
}

/**
 * kiw_sock_rx_take() - access the next bytes in place
 * @ks: the stream
 * @cur: position; advanced by @num bytes
 * @len: bytes wanted, 1 to @cur->avail
 * @num: set to the number of these bytes that are contiguous, at least 1
 *
 * Context: socket lock held, BHs off.
 * Return: pointer to the first byte; NULL: kiw_sock_rx_find() failed.
 */
static inline const u8 *kiw_sock_rx_take(struct kiw_sock *ks, struct kiw_rx_cursor *cur, u32 len,
					 u32 *num)
{
	const u8 *data;

	kiw_sock_assert_held_bh(ks);
	if (!cur->here && !kiw_sock_rx_find(ks, cur))
		return NULL;
	data = cur->data;
	*num = min(len, cur->here);
	cur->data += *num;
	cur->here -= *num;
	cur->seq += *num;
	cur->avail -= *num;
	return data;
}

/**
 * kiw_sock_is_unreadable() - has data arrived that the CPU cannot read?
 * @ks: the stream
 *
 * For example, it is in memory of a device (devmem TCP), or in frag_lists that are nested too
 * deeply.
 *
 * Context: socket lock held.
 * Return: true: it has, and the stream cannot be read any further.
 */
static inline bool kiw_sock_is_unreadable(const struct kiw_sock *ks)
{
	kiw_sock_assert_held(ks);
	return ks->is_unreadable;
}

#endif /* KIW_SOCK_H */
