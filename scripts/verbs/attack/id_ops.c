// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Random operations on identifiers and channels of rdma_cm.
 */
#include "ops.h"

#include <errno.h>
#include <unistd.h>

/* Destinations: other families, the good server, plain TCP peers of all kinds, no listener */
static __u16 any_port(struct thread *t)
{
	switch (choose(&t->rng, 4)) {
	case 0:
		return PEER_PORT + choose(&t->rng, 8);
	case 1:
		return GOOD_PORT;
	default:
		return ATTACK_PORT + choose(&t->rng, ATTACK_PORTS);
	}
}

static int do_bind(struct thread *t, struct slot *s, int fd)
{
	int side = chance(t, 8) ? !t->f->side : t->f->side;
	const char *addr = chance(t, 4) ? "0.0.0.0" : addrs[side];
	int ret;

	ret = cm_bind(fd, s->id, addr, ATTACK_PORT + choose(&t->rng, ATTACK_PORTS));
	if (!ret && s->role == LISTENS)
		s->progress = HAS_ADDR;
	return ret;
}

static int do_listen(struct thread *t, struct slot *s, int fd)
{
	int ret = cm_listen(fd, s->id, choose(&t->rng, 40));

	if (s->role == LISTENS && s->progress != UP)
		s->progress = ret ? DOWN : UP;
	return ret;
}

/* The identifier resolves from now on, until the event */
static int do_resolve(struct thread *t, struct slot *s, int fd, enum op op)
{
	const char *addr = addrs[chance(t, 6) ? t->f->side : !t->f->side];
	enum progress before = s->progress;
	int ret;

	if (s->role == ASKS)
		s->progress = UNDER_WAY;
	ret = op == OP_RESOLVE_ADDR ? cm_resolve_addr(fd, s->id, addr, any_port(t), 500) :
				      cm_resolve_route(fd, s->id, 500);
	if (ret && s->role == ASKS)
		s->progress = before == UP || before == UNDER_WAY ? before : DOWN;
	return ret;
}

static int do_connect(struct thread *t, struct slot *s, int fd, struct note *note)
{
	struct rdma_ucm_conn_param param = any_param(t);
	int ret;

	note->arg = param.qp_num;
	ret = cm_connect(fd, s->id, &param);
	if (!ret) {
		s->progress = UNDER_WAY;
		judge(t, param.qp_num, "connect");
	}
	return ret;
}

static int do_accept(struct thread *t, struct slot *s, int fd, struct note *note)
{
	struct rdma_ucm_conn_param param = any_param(t);
	int ret;

	note->arg = param.qp_num;
	ret = cm_accept(fd, s->id, chance(t, 8) ? 0 : 9, &param);
	if (ret && s->role == ASKED)
		s->progress = DOWN;
	if (!ret && param.valid) {
		s->progress = UNDER_WAY;
		judge(t, param.qp_num, "accept");
	}
	return ret;
}

/*
 * Is this a sequence of calls that crashes the kernel, and is therefore left out? Identifiers that
 * will listen may be accepted and rejected, so they must not connect, which is possible after bind,
 * too.
 */
static bool is_spared(const struct slot *s, enum op op)
{
	switch (op) {
	case OP_ACCEPT:
	case OP_REJECT:
		return spared & SPARE_CONNECTING && s->role == ASKS;
	case OP_CONNECT:
		return spared & SPARE_CONNECTING && s->role == LISTENS;
	case OP_MIGRATE:
		return spared & SPARE_UNREAD && s->role == LISTENS;
	default:
		return false;
	}
}

static int call(struct thread *t, struct slot *s, int fd, enum op op, struct note *note)
{
	switch (op) {
	case OP_BIND:
		return do_bind(t, s, fd);
	case OP_LISTEN:
		return do_listen(t, s, fd);
	case OP_RESOLVE_ADDR:
	case OP_RESOLVE_ROUTE:
		return do_resolve(t, s, fd, op);
	case OP_CONNECT:
		return do_connect(t, s, fd, note);
	case OP_ACCEPT:
		return do_accept(t, s, fd, note);
	case OP_REJECT:
		return cm_reject(fd, s->id, chance(t, 2) ? 0 : choose(&t->rng, 256));
	case OP_DISCONNECT:
		return cm_disconnect(fd, s->id);
	case OP_DESTROY:
		return cm_destroy(fd, s->id);
	case OP_QUERY:
		return cm_query(fd, s->id, choose(&t->rng, 4));
	case OP_QP_ATTR:
		return cm_qp_attr(fd, s->id, choose(&t->rng, 8));
	case OP_OPTION:
		return cm_option(fd, s->id, choose(&t->rng, 5), choose(&t->rng, 256),
				 chance(t, 2) ? 1 : 4);
	default:
		return cm_notify(fd, s->id, choose(&t->rng, 20));
	}
}

static bool is_alone(enum op op)
{
	return op == OP_DESTROY || op == OP_MIGRATE ||
	       (op == OP_QP_ATTR && spared & SPARE_ATTRIBUTES);
}

static void migrate(struct thread *t, struct slot *s, struct channel *chan)
{
	unsigned int number = choose(&t->rng, CHANNELS);
	struct channel *to;
	int ret;

	if (number == s->chan)
		return;
	to = hold_channel(t, number);
	if (!to)
		return;
	ret = cm_migrate(chan->fd, to->fd, s->id);
	note_end(note_begin(t, OP_MIGRATE, s->id, number), ret);
	if (!ret) {
		s->chan = number;
		s->generation = to->generation;
	}
	drop_channel(to);
}

/* The next call of a well-behaved program */
static enum op sensible(struct thread *t, const struct slot *s)
{
	static const enum op asks[] = {
		[FRESH] = OP_RESOLVE_ADDR, [HAS_ADDR] = OP_RESOLVE_ROUTE, [HAS_ROUTE] = OP_CONNECT,
		[UNDER_WAY] = OP_QUERY, [UP] = OP_QUERY, [DOWN] = OP_DESTROY,
	};
	static const enum op listens[] = {
		[FRESH] = OP_BIND, [HAS_ADDR] = OP_LISTEN, [HAS_ROUTE] = OP_QUERY,
		[UNDER_WAY] = OP_QUERY, [UP] = OP_QUERY, [DOWN] = OP_DESTROY,
	};
	static const enum op asked[] = {
		[FRESH] = OP_ACCEPT, [HAS_ADDR] = OP_ACCEPT, [HAS_ROUTE] = OP_ACCEPT,
		[UNDER_WAY] = OP_QP_ATTR, [UP] = OP_QUERY, [DOWN] = OP_DESTROY,
	};

	if (s->progress == UP && s->role != LISTENS && chance(t, 4))
		return OP_DISCONNECT;
	return (s->role == ASKS ? asks : s->role == LISTENS ? listens : asked)[s->progress];
}

static enum op any_slot_op(struct thread *t)
{
	static const enum op some[] = {
		OP_BIND, OP_LISTEN, OP_RESOLVE_ADDR, OP_RESOLVE_ROUTE, OP_CONNECT, OP_ACCEPT,
		OP_ACCEPT, OP_REJECT, OP_REJECT, OP_DISCONNECT, OP_DESTROY, OP_MIGRATE, OP_MIGRATE,
		OP_QUERY, OP_QP_ATTR, OP_OPTION, OP_NOTIFY,
	};

	return some[choose(&t->rng, ARRAY_SIZE(some))];
}

/* Takes the slot's lock for writing. Return: false: the slot is not held at all any more */
static bool hold_alone(struct slot *s, struct channel *chan)
{
	pthread_rwlock_unlock(&s->lock);
	if (pthread_rwlock_trywrlock(&s->lock)) {
		drop_channel(chan);
		return false;
	}
	if (s->is_used && s->generation == chan->generation)
		return true;
	drop_slot(s, chan);
	return false;
}

/**
 * slot_op() - make a call for an identifier of the family
 * @t: the thread
 *
 * Mostly it is the next call of a well-behaved program.
 *
 * Context: a thread of a family.
 */
void slot_op(struct thread *t)
{
	struct channel *chan;
	struct note *note;
	struct slot *s;
	enum op op;
	int ret;

	s = hold_slot(t, &chan);
	if (!s)
		return;
	op = chance(t, 4) ? any_slot_op(t) : sensible(t, s);
	if (is_alone(op) && !hold_alone(s, chan))
		return;
	if (!is_spared(s, op)) {
		if (op == OP_MIGRATE) {
			migrate(t, s, chan);
		} else {
			note = note_begin(t, op, s->id, s->role);
			ret = call(t, s, chan->fd, op, note);
			note_end(note, ret);
			if (op == OP_DESTROY && !ret)
				s->is_used = false;
		}
	}
	drop_slot(s, chan);
}

/**
 * create_op() - create an identifier
 * @t: the thread
 *
 * Context: a thread of a family.
 */
void create_op(struct thread *t)
{
	enum role role = chance(t, 4) ? LISTENS : ASKS;
	unsigned int number = choose(&t->rng, CHANNELS);
	struct channel *chan;
	struct note *note;
	int count = 0, i, ret;
	__u32 id;

	/* Leave some slots for requests */
	for (i = 0; i < SLOTS; i++)
		count += t->f->slots[i].is_used;
	chan = count < SLOTS * 2 / 3 ? hold_channel(t, number) : NULL;
	if (!chan)
		return;
	note = note_begin(t, OP_CREATE, 0, role);
	ret = cm_create(chan->fd, &id, chance(t, 10) ? 0 : 8);
	note->id = id;
	note_end(note, ret);
	if (!ret)
		add_slot(t, id, number, role);
	drop_channel(chan);
}

static void event_is(struct thread *t, unsigned int number, const struct rdma_ucm_event_resp *event)
{
	static const enum progress progress[] = {
		[RDMA_CM_EVENT_ADDR_RESOLVED] = HAS_ADDR,
		[RDMA_CM_EVENT_ROUTE_RESOLVED] = HAS_ROUTE,
		[RDMA_CM_EVENT_ESTABLISHED] = UP,
	};
	int i;

	if (event->event == RDMA_CM_EVENT_CONNECT_REQUEST) {
		add_slot(t, event->id, number, ASKED);
		return;
	}
	for (i = 0; i < SLOTS; i++) {
		struct slot *s = &t->f->slots[i];

		if (!s->is_used || s->id != event->id)
			continue;
		if (event->event < ARRAY_SIZE(progress) && progress[event->event])
			s->progress = progress[event->event];
		else
			s->progress = event->event == RDMA_CM_EVENT_ADDR_ERROR ? FRESH : DOWN;
	}
}

/**
 * event_op() - read an event
 * @t: the thread
 *
 * Context: a thread of a family.
 */
void event_op(struct thread *t)
{
	unsigned int number = choose(&t->rng, CHANNELS);
	struct channel *chan = hold_channel(t, number);
	struct rdma_ucm_event_resp event;
	int ret;

	if (!chan)
		return;
	ret = cm_event(chan->fd, &event);
	if (ret != -EAGAIN)
		note_end(note_begin(t, OP_EVENT, event.id, event.event), ret);
	if (!ret) {
		w->events[event.event % ARRAY_SIZE(w->events)]++;
		event_is(t, number, &event);
	}
	drop_channel(chan);
}

/**
 * strange_op() - make a call for an identifier of another family, or a guessed one
 * @t: the thread
 *
 * Context: a thread of a family.
 */
void strange_op(struct thread *t)
{
	struct channel *chan = hold_channel(t, choose(&t->rng, CHANNELS));
	struct rdma_ucm_conn_param param = any_param(t);
	bool is_unknown = spared & (SPARE_CONNECTING | SPARE_UNREAD) || chance(t, 3);
	__u32 id = is_unknown ? (1u << 24) + choose(&t->rng, 1u << 30) : choose(&t->rng, 100);
	struct note *note;
	int ret;

	if (!chan)
		return;
	note = note_begin(t, OP_STRANGE, id, 0);
	note->arg = choose(&t->rng, 7);
	switch (note->arg) {
	case 0:
		ret = cm_destroy(chan->fd, id);
		break;
	case 1:
		ret = cm_accept(chan->fd, id, 1, &param);
		break;
	case 2:
		ret = cm_reject(chan->fd, id, 0);
		break;
	case 3:
		ret = cm_connect(chan->fd, id, &param);
		break;
	case 4:
		ret = cm_disconnect(chan->fd, id);
		break;
	case 5:
		ret = cm_call(chan->fd, choose(&t->rng, 40), &param, choose(&t->rng, 300),
			      choose(&t->rng, 300));
		break;
	default:
		ret = cm_migrate(choose(&t->rng, 30), chan->fd, id);
	}
	note_end(note, ret);
	drop_channel(chan);
}

/**
 * close_op() - close a channel with all that is pending in it, and open it again
 * @t: the thread
 *
 * Context: a thread of a family.
 */
void close_op(struct thread *t)
{
	struct channel *chan = &t->f->channels[choose(&t->rng, CHANNELS)];
	struct note *note;

	if (t->is_forked || pthread_rwlock_trywrlock(&chan->lock))
		return;
	note = note_begin(t, OP_CLOSE, chan - t->f->channels, 0);
	close(chan->fd);
	chan->generation++;
	chan->fd = cm_open();
	note_end(note, chan->fd < 0 ? -errno : 0);
	pthread_rwlock_unlock(&chan->lock);
}
