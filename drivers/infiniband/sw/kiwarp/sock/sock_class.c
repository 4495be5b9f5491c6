// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Lockdep classes of the driver's sockets.
 *
 * An interface above an RDMA device may post packets of other TCP sockets with the lock of such a
 * socket held, and posting takes the lock of one of ours inside it. Lockdep tells locks apart by
 * class, and all TCP sockets of a kind share a class. So ours get their own classes. Without
 * lockdep there is nothing to do.
 *
 * A child that was not accepted yet has the class of kernel sockets or of process sockets,
 * depending on how its listener was made. It sends no data, and nothing posts to it.
 */
#include "sock.h"

#ifdef CONFIG_DEBUG_LOCK_ALLOC

#include <linux/lockdep.h>
#include <linux/module.h>
#include <net/sock.h>

/**
 * struct sock_class - lockdep classes for the sockets of an address family
 * @key: of the socket lock
 * @slock_key: of the spinlock inside it
 * @name: of @key
 * @slock_name: of @slock_key
 */
struct sock_class {
	struct lock_class_key key;
	struct lock_class_key slock_key;
	const char *name;
	const char *slock_name;
};

static struct sock_class sock_class_v4 = {
	.name = "sk_lock-AF_INET-KIWARP",
	.slock_name = "slock-AF_INET-KIWARP",
};

static struct sock_class sock_class_v6 = {
	.name = "sk_lock-AF_INET6-KIWARP",
	.slock_name = "slock-AF_INET6-KIWARP",
};

/* The keys are in the module. With PROVE_LOCKING the socket can hold a reference on it. */
static void sock_class_hold_module(struct sock *sk)
{
#if IS_ENABLED(CONFIG_PROVE_LOCKING) && IS_ENABLED(CONFIG_MODULES)
	if (!sk->sk_owner)
		sk_owner_set(sk, THIS_MODULE);
#endif
}

/**
 * kiw_sock_class_set() - assign the driver's lockdep classes to a socket
 * @sk: a TCP socket, just made or accepted; its lock is not held
 *
 * The locks of an accepted socket are in use: segments may arrive at this moment. So they are not
 * initialised again, but change their class while they are held.
 *
 * Context: process, may sleep.
 */
void kiw_sock_class_set(struct sock *sk)
{
	struct sock_class *class = sk->sk_family == AF_INET6 ? &sock_class_v6 : &sock_class_v4;

	lock_sock(sk);
	sock_class_hold_module(sk);
	spin_lock_bh(&sk->sk_lock.slock);
	lock_set_class(&sk->sk_lock.slock.dep_map, class->slock_name, &class->slock_key, 0,
		       _RET_IP_);
	spin_unlock_bh(&sk->sk_lock.slock);
	lock_set_class(&sk->sk_lock.dep_map, class->name, &class->key, 0, _RET_IP_);
	release_sock(sk);
}

#endif /* CONFIG_DEBUG_LOCK_ALLOC */
