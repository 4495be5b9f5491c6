// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * A thread of a family: its record, and how it finds identifiers, channels and QP numbers.
 */
#include "thread.h"

#include <stdarg.h>

/**
 * note_begin() - record that an operation begins
 * @t: the thread
 * @what: the operation
 * @id: the identifier, or the index of the QP
 * @arg: see struct note
 *
 * Context: a thread of a family.
 * Return: the record, for note_end().
 */
struct note *note_begin(struct thread *t, enum op what, __u32 id, __u32 arg)
{
	struct note *note = &t->n->notes[t->n->count++ % LOG];

	*note = (struct note) { now(), what, id, arg, RUNNING };
	w->tried[what]++;
	return note;
}

/**
 * note_end() - record that an operation has ended
 * @note: its record
 * @ret: 0 or -errno
 *
 * Context: a thread of a family.
 */
void note_end(struct note *note, int ret)
{
	note->ret = ret;
	if (!ret)
		w->done[note->op]++;
}

/**
 * chance() - choose one of several possibilities
 * @t: the thread
 * @of: their number
 *
 * Context: a thread of a family.
 * Return: true once in @of calls.
 */
bool chance(struct thread *t, __u32 of)
{
	return !choose(&t->rng, of);
}

static void wrong(struct thread *t, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void wrong(struct thread *t, const char *format, ...)
{
	int nobody = 0;
	va_list args;

	if (!atomic_compare_exchange_strong(&w->wrong, &nobody, t->f->number + 1))
		return;
	va_start(args, format);
	vsnprintf(w->words, sizeof(w->words), format, args);
	va_end(args);
}

/* Channels and slots: found, and kept from ending meanwhile */

/**
 * hold_channel() - keep a channel from being closed
 * @t: the thread
 * @number: index of the channel
 *
 * Context: a thread of a family.
 * Return: the channel, or NULL: it is being closed.
 */
struct channel *hold_channel(struct thread *t, unsigned int number)
{
	struct channel *chan = &t->f->channels[number];

	return pthread_rwlock_tryrdlock(&chan->lock) ? NULL : chan;
}

/**
 * drop_channel() - undo hold_channel()
 * @chan: the channel
 *
 * Context: a thread of a family.
 */
void drop_channel(struct channel *chan)
{
	pthread_rwlock_unlock(&chan->lock);
}

/**
 * hold_slot() - find an identifier and keep it from being destroyed
 * @t: the thread
 * @chan: where to put its channel, which is held, too
 *
 * Context: a thread of a family.
 * Return: its slot, or NULL: none was found.
 */
struct slot *hold_slot(struct thread *t, struct channel **chan)
{
	struct slot *s = &t->f->slots[choose(&t->rng, SLOTS)];
	int i;

	for (i = 0; i < SLOTS && !s->is_used; i++)
		s = s + 1 == t->f->slots + SLOTS ? t->f->slots : s + 1;
	if (!s->is_used || pthread_rwlock_tryrdlock(&s->lock))
		return NULL;
	*chan = s->is_used ? hold_channel(t, s->chan) : NULL;
	if (*chan && (*chan)->generation == s->generation)
		return s;
	/* Its channel was closed, which has destroyed the identifier */
	if (*chan) {
		s->is_used = false;
		drop_channel(*chan);
	}
	pthread_rwlock_unlock(&s->lock);
	return NULL;
}

/**
 * drop_slot() - undo hold_slot()
 * @s: the slot
 * @chan: its channel
 *
 * Context: a thread of a family.
 */
void drop_slot(struct slot *s, struct channel *chan)
{
	drop_channel(chan);
	pthread_rwlock_unlock(&s->lock);
}

/**
 * add_slot() - add an identifier to the family, or destroy it if there is no room
 * @t: the thread
 * @id: the identifier
 * @chan: index of its channel, which is held
 * @role: its role
 *
 * Context: a thread of a family.
 */
void add_slot(struct thread *t, __u32 id, unsigned int chan, enum role role)
{
	struct channel *c = &t->f->channels[chan];
	struct slot *s;
	int i;

	for (i = 0; i < SLOTS; i++) {
		s = &t->f->slots[i];
		if (s->is_used || pthread_rwlock_trywrlock(&s->lock))
			continue;
		if (!s->is_used) {
			s->id = id;
			s->chan = chan;
			s->generation = c->generation;
			s->role = role;
			s->progress = FRESH;
			s->is_used = true;
			pthread_rwlock_unlock(&s->lock);
			return;
		}
		pthread_rwlock_unlock(&s->lock);
	}
	note_end(note_begin(t, OP_DESTROY, id, 0), cm_destroy(c->fd, id));
}

/* Numbers of QPs */

/**
 * know() - add a QP to the known ones
 * @t: thread of the family that has created it
 * @qpn: its number
 *
 * Context: a thread of a family.
 * Return: its entry in world.known.
 */
int know(struct thread *t, __u32 qpn)
{
	int i = w->known_count++ % KNOWN;

	w->known[i] = (struct known) { qpn, t->f->side, t->f->number, true };
	return i;
}

static bool is_known(const struct thread *t, const struct known *k, bool is_own, bool is_alive)
{
	return k->qpn && k->side == t->f->side && (k->family == t->f->number) == is_own &&
	       k->is_alive == is_alive;
}

static __u32 known_qpn(struct thread *t, bool is_own, bool is_alive)
{
	unsigned int count = w->known_count < KNOWN ? w->known_count : KNOWN;
	unsigned int at = count ? choose(&t->rng, count) : 0, i;

	for (i = 0; i < count; i++)
		if (is_known(t, &w->known[(at + i) % count], is_own, is_alive))
			return w->known[(at + i) % count].qpn;
	return choose(&t->rng, 100);
}

/**
 * any_qpn() - choose a QP number: mostly an own one, or a foreign, destroyed or absurd one
 * @t: the thread
 *
 * Context: a thread of a family.
 * Return: the number.
 */
__u32 any_qpn(struct thread *t)
{
	static const __u32 absurd[] = { 0, 1, 0xffffff, 1 << 24, (1 << 24) + 1, 0xffffffff };

	switch (choose(&t->rng, 16)) {
	case 0:
		return known_qpn(t, true, false);
	case 1:
	case 2:
		return known_qpn(t, false, true);
	case 3:
		return absurd[choose(&t->rng, ARRAY_SIZE(absurd))];
	case 4:
		return choose(&t->rng, w->known_count + 40);
	default:
		return known_qpn(t, true, true);
	}
}

/**
 * judge() - check that a QP number which a call has accepted is the family's own
 * @t: the thread
 * @qpn: the number, of which rdma_ucm uses 24 bits
 * @what: name of the call
 *
 * Context: a thread of a family.
 */
void judge(struct thread *t, __u32 qpn, const char *what)
{
	const struct known *k;
	unsigned int i;

	for (i = 0; !devices_vanish && i < KNOWN && i < w->known_count; i++) {
		k = &w->known[i];
		if (k->qpn != (qpn & 0xffffff) || k->side != t->f->side)
			continue;
		if (k->family != t->f->number)
			wrong(t, "family %d: %s took QP %u, which is of family %d", t->f->number,
			      what, qpn, k->family);
		return;
	}
}

/**
 * any_param() - choose parameters of a connection
 * @t: the thread
 *
 * Context: a thread of a family.
 * Return: the parameters.
 */
struct rdma_ucm_conn_param any_param(struct thread *t)
{
	static const __u8 lens[] = { 0, 0, 0, 1, 64, 200, 251, 252, 255 };
	static const __u8 depths[] = { 0, 1, 4, 16, 127, 128, 255 };
	struct rdma_ucm_conn_param param = conn_param(any_qpn(t));

	param.private_data_len = lens[choose(&t->rng, ARRAY_SIZE(lens))];
	param.responder_resources = depths[choose(&t->rng, ARRAY_SIZE(depths))];
	param.initiator_depth = depths[choose(&t->rng, ARRAY_SIZE(depths))];
	param.valid = !chance(t, 30);
	return param;
}
