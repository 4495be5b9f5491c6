// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Helpers for cases that depend on kiwarp's structures.
 *
 * Owns: inside_accept, for the duration of a case. Contexts: process; additional threads. Locks:
 * the lock of a device's list of streams.
 */
#include "inside.h"

#include <linux/delay.h>
#include <linux/jiffies.h>
#include <linux/kthread.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/string.h>
#include <net/sock.h>

#include "device.h"

static struct inside_accept inside_accept;

/**
 * inside_is_kiwarp() - is this a device of kiwarp?
 * @ibdev: the device
 *
 * Context: any.
 * Return: true: it is; false: a case must not look inside.
 */
bool inside_is_kiwarp(const struct ib_device *ibdev)
{
	return !strcmp(module_name(ibdev->ops.owner), "kiwarp");
}

static int inside_main(void *arg)
{
	struct inside_thread *t = arg;

	t->ret = t->run(t->arg);
	complete(&t->done);
	return 0;
}

/**
 * inside_start() - start a thread
 * @p: the pair, marked as failed if there is no thread
 * @t: to be passed to inside_join(), in any case
 * @cpu: where it runs, or %INSIDE_ANY_CPU
 * @run: its function
 * @arg: argument of @run
 *
 * Context: process, may sleep.
 */
void inside_start(struct ktest_pair *p, struct inside_thread *t, int cpu, int (*run)(void *arg),
		  void *arg)
{
	t->run = run;
	t->arg = arg;
	init_completion(&t->done);
	t->task = kthread_create(inside_main, t, "kiwarp_ktest");
	if (IS_ERR(t->task)) {
		ktest_fail(p, __func__, __LINE__, "kthread_create", PTR_ERR(t->task));
		t->ret = PTR_ERR(t->task);
		complete(&t->done);
		return;
	}
	if (cpu != INSIDE_ANY_CPU)
		kthread_bind(t->task, cpu);
	get_task_struct(t->task);
	wake_up_process(t->task);
}

/**
 * inside_join() - wait until a thread has ended
 * @t: from inside_start()
 *
 * Context: process, may sleep.
 * Return: what its function returned, or why there is no thread.
 */
int inside_join(struct inside_thread *t)
{
	wait_for_completion(&t->done);
	if (!IS_ERR(t->task))
		put_task_struct(t->task);
	return t->ret;
}

/**
 * inside_wait() - wait for a condition, and fail if it does not come true
 * @p: the pair
 * @is_so: the condition
 * @arg: argument of @is_so
 *
 * Context: process, may sleep.
 * Return: whether it has come true.
 */
bool inside_wait(struct ktest_pair *p, bool (*is_so)(void *arg), void *arg)
{
	unsigned long end = jiffies + KTEST_PATIENCE * HZ;
	bool so = is_so(arg);

	/* Checked once per round: a thread that sleeps may be woken for a moment at any time. */
	while (!so && time_before(jiffies, end)) {
		usleep_range(50, 200);
		so = is_so(arg);
	}
	ktest_expect(p, so);
	return so;
}

static void inside_hold_accept(struct ktest_end *end)
{
	complete(&inside_accept.is_ready);
	wait_for_completion(&inside_accept.go);
}

static int inside_open(void *arg)
{
	return ktest_pair_open(arg);
}

/* Returns the socket of the most recent stream, with a reference, or NULL */
static struct sock *inside_last_sock(struct kiw_device *dev)
{
	struct kiw_sock *ks;
	struct sock *sk = NULL;

	spin_lock_bh(&dev->socks.lock);
	list_for_each_entry(ks, &dev->socks.socks, link)
		if (!ks->is_listener)
			sk = ks->sk;
	if (sk)
		sock_hold(sk);
	spin_unlock_bh(&dev->socks.lock);
	return sk;
}

static const struct ktest_opts inside_opts = {
	.poll = IB_POLL_SOFTIRQ,
	.before_accept = inside_hold_accept,
};

/**
 * inside_accepting() - open a second pair, and stop when only its accept is left to be done
 * @p: the pair of the case
 * @cpu: where the second pair is opened, or %INSIDE_ANY_CPU
 * @race: called then; completes inside_accept.go and joins the thread that opens the pair
 *
 * Afterwards the second pair is closed. Does nothing on another driver.
 *
 * Context: process, may sleep.
 */
void inside_accepting(struct ktest_pair *p, int cpu,
		      void (*race)(struct ktest_pair *p, struct inside_accept *a,
				   struct inside_thread *opening))
{
	struct inside_accept *a = &inside_accept;
	struct inside_thread opening;

	if (!inside_is_kiwarp(p->end[1].id->device))
		return;
	memset(a, 0, sizeof(*a));
	init_completion(&a->is_ready);
	init_completion(&a->go);
	a->pair = ktest_pair_another(p);
	if (!a->pair)
		return;
	a->pair->opts = &inside_opts;
	inside_start(p, &opening, cpu, inside_open, a->pair);
	ktest_expect(p, wait_for_completion_timeout(&a->is_ready, KTEST_PATIENCE * HZ));
	a->sk = p->has_failed ? NULL : inside_last_sock(to_kiw_device(p->end[1].id->device));
	if (a->sk) {
		a->qp = to_kiw_qp(a->pair->end[1].qp);
		race(p, a, &opening);
		sock_put(a->sk);
	} else {
		ktest_fail(p, __func__, __LINE__, "a stream", 0);
		complete(&a->go);
		inside_join(&opening);
	}
	/* This does not return if the connection was not told of its end. */
	ktest_pair_close(a->pair);
	kvfree(a->pair);
}
