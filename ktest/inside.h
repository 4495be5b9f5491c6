/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Helpers for cases that depend on kiwarp's structures: threads that run beside a case, and a
 * connection that is about to be accepted.
 */
#ifndef KIW_KTEST_INSIDE_H
#define KIW_KTEST_INSIDE_H

#include <linux/completion.h>
#include <linux/sched.h>

#include "ktest.h"
#include "qp/qp.h"

/* The scheduler chooses the CPU of a thread */
#define INSIDE_ANY_CPU	(-1)

/**
 * struct inside_thread - a thread that runs one function concurrently
 * @run: the function
 * @arg: its argument
 * @ret: its return value, valid when @done is completed
 * @done: completed when @run has returned
 * @task: the thread
 */
struct inside_thread {
	int (*run)(void *arg);
	void *arg;
	int ret;
	struct completion done;
	struct task_struct *task;
};

/**
 * struct inside_accept - a connection that is about to be accepted
 * @pair: the pair, which is being opened
 * @is_ready: completed when the QP exists
 * @go: completed to let the accept continue
 * @qp: the QP of the accepting end
 * @sk: socket of the stream
 * @waiters: number of threads to wait for at the QP's mutex
 * @params: original connection parameters of the QP
 * @is_closed: the QP has closed the connection that replaced the original one
 */
struct inside_accept {
	struct ktest_pair *pair;
	struct completion is_ready;
	struct completion go;
	struct kiw_qp *qp;
	struct sock *sk;
	unsigned int waiters;
	struct kiw_conn_params params;
	bool is_closed;
};

bool inside_is_kiwarp(const struct ib_device *ibdev);
void inside_start(struct ktest_pair *p, struct inside_thread *t, int cpu, int (*run)(void *arg),
		  void *arg);
int inside_join(struct inside_thread *t);
bool inside_wait(struct ktest_pair *p, bool (*is_so)(void *arg), void *arg);
void inside_accepting(struct ktest_pair *p, int cpu,
		      void (*race)(struct ktest_pair *p, struct inside_accept *a,
				   struct inside_thread *opening));

#endif /* KIW_KTEST_INSIDE_H */
