// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * A family: processes and threads that make random calls with the same objects.
 */
#include "random.h"
#include "ops.h"
#include "qps.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FORKED_STEPS	20

static void step(struct thread *t);

static void fork_op(struct thread *t)
{
	struct note *note;
	pid_t pid;
	int i;

	t->f->forking++;
	if (spared & SPARE_FORK && t->f->is_killing) {
		t->f->forking--;
		return;
	}
	note = note_begin(t, OP_FORK, 0, 0);
	pid = fork();
	if (pid) {
		t->f->forking--;
		note_end(note, pid < 0 ? -errno : 0);
		return;
	}
	t->n = &t->f->notes[THREADS];
	t->n->tid = syscall(SYS_gettid);
	t->is_forked = true;
	for (i = 0; i < FORKED_STEPS; i++)
		step(t);
	if (chance(t, 2))
		kill(getpid(), SIGKILL);
	_exit(0);
}

static void step(struct thread *t)
{
	switch (choose(&t->rng, 16)) {
	case 0:
	case 1:
		create_op(t);
		break;
	case 2:
	case 3:
	case 4:
		event_op(t);
		break;
	case 5:
		if (chance(t, 4))
			strange_op(t);
		break;
	case 6:
		if (chance(t, 40))
			close_op(t);
		break;
	case 7:
		if (chance(t, 30) && !t->is_forked)
			fork_op(t);
		break;
	case 8:
	case 9:
	case 10:
		qp_op(t);
		break;
	default:
		slot_op(t);
	}
	if (chance(t, 64))
		pause_ms(1);
}

static void *thread_main(void *arg)
{
	struct thread *t = arg;

	t->n->tid = syscall(SYS_gettid);
	while (!w->is_over)
		step(t);
	return NULL;
}

static void init_lock(pthread_rwlock_t *lock)
{
	pthread_rwlockattr_t attr;

	pthread_rwlockattr_init(&attr);
	pthread_rwlockattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	pthread_rwlock_init(lock, &attr);
}

static void family_init(struct family *f, int number)
{
	int i;

	memset(f, 0, sizeof(*f));
	f->number = number;
	f->side = number % 2;
	for (i = 0; i < SLOTS; i++)
		init_lock(&f->slots[i].lock);
	for (i = 0; i < CHANNELS; i++)
		init_lock(&f->channels[i].lock);
	for (i = 0; i < QPS; i++)
		init_lock(&f->places[i].lock);
}

/*
 * Users of the families: 0 and 3 have the same user, 1 another one; 2 is root of a user namespace,
 * 4 root of a user namespace and a network namespace.
 */
static void family_become(const struct family *f)
{
	uid_t uid = USER + (f->number == 3 ? 0 : f->number);

	become(f->side, uid);
	if (f->number == 2)
		become_root_of_container(uid, 0);
	if (f->number == 4)
		become_root_of_container(uid, CLONE_NEWNET);
}

static void family_main(struct family *f, __u32 round)
{
	struct thread threads[THREADS];
	pthread_t ids[THREADS];
	int i;

	signal(SIGCHLD, SIG_IGN);
	family_become(f);
	for (i = 0; i < CHANNELS; i++) {
		f->channels[i].fd = cm_open();
		MUST(f->channels[i].fd >= 0);
	}
	f->ctx = open_device(devices[f->side]);
	if (f->ctx) {
		f->pd = ibv_alloc_pd(f->ctx);
		f->cq = f->pd ? ibv_create_cq(f->ctx, 2048, NULL, NULL, 0) : NULL;
		MUST(devices_vanish || f->cq);
		if (!f->cq)
			f->ctx = NULL;
	}
	for (i = 0; i < THREADS; i++) {
		threads[i] = (struct thread) {
			.f = f, .n = &f->notes[i], .rng = rng_of(f->number * 16 + i, round),
		};
		MUST(!pthread_create(&ids[i], NULL, thread_main, &threads[i]));
	}
	for (i = 0; i < THREADS; i++)
		pthread_join(ids[i], NULL);
	_exit(0);
}

/**
 * family_start() - start a family
 * @f: the family, which has no processes
 * @number: its index
 * @round: number of families started before
 *
 * Context: the supervisor.
 */
void family_start(struct family *f, int number, __u32 round)
{
	unsigned int i;
	pid_t pid;

	for (i = 0; i < KNOWN; i++) {
		if (w->known[i].qpn && w->known[i].family == number) {
			w->known[i].family = -2;
			w->known[i].is_alive = false;
		}
	}
	family_init(f, number);
	pid = fork();
	MUST(pid >= 0);
	if (!pid) {
		setpgid(0, 0);
		family_main(f, round);
	}
	setpgid(pid, pid);
	f->pid = pid;
}
