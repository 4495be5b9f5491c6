/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * A thread of a family: its record, and how it finds identifiers, channels and QP numbers.
 */
#ifndef KIW_ATTACK_THREAD_H
#define KIW_ATTACK_THREAD_H

#include "ucm.h"
#include "world.h"

/**
 * struct thread - a thread of a family
 * @f: its family
 * @n: record of its operations
 * @rng: its random numbers
 * @is_forked: it runs in a forked child, which uses QPs by number only
 */
struct thread {
	struct family *f;
	struct notes *n;
	struct rng rng;
	bool is_forked;
};

struct note *note_begin(struct thread *t, enum op what, __u32 id, __u32 arg);
void note_end(struct note *note, int ret);
bool chance(struct thread *t, __u32 of);
struct channel *hold_channel(struct thread *t, unsigned int number);
void drop_channel(struct channel *chan);
struct slot *hold_slot(struct thread *t, struct channel **chan);
void drop_slot(struct slot *s, struct channel *chan);
void add_slot(struct thread *t, __u32 id, unsigned int chan, enum role role);
int know(struct thread *t, __u32 qpn);
__u32 any_qpn(struct thread *t);
void judge(struct thread *t, __u32 qpn, const char *what);
struct rdma_ucm_conn_param any_param(struct thread *t);

#endif /* KIW_ATTACK_THREAD_H */
