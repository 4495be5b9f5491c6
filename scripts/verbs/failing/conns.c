// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Connections of processes.
 */
#include "failing.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
/*
 * A connection attempt. Its number is sent as private data, because an earlier attempt may have
 * failed after its request was sent.
 */
static __u32 attempt;

/* The allocation of rdma_accept() that fails, 0: none; and whether it did in the last attempt */
static int accept_nth;
static bool accept_hit;

static int make_end(struct end *end, int side)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = w.queues[side].scq, .recv_cq = w.queues[side].rcq, .qp_type = IBV_QPT_RC,
		.cap = { 16, 16, 1, 1, 0 },
	};

	errno = 0;
	return err_or(rdma_create_qp(end->id, w.sides[side].pd, &attr));
}

/* Closes what exists of an end; on failure returns an errno, and has to be called again */
static int unmake_end(struct end *end)
{
	int err = 0;

	if (end->id && end->id->qp) {
		err = err_or(ibv_destroy_qp(end->id->qp));
		if (!err)
			end->id->qp = NULL;
	}
	if (!err && end->id) {
		err = err_or(rdma_destroy_id(end->id));
		if (!err)
			end->id = NULL;
	}
	return err;
}

static int answer(struct rdma_cm_event *event)
{
	struct rdma_conn_param param = { .responder_resources = 4, .initiator_depth = 4 };
	struct rdma_cm_id *id = event->id;
	bool is_stale = !event->param.conn.private_data ||
			memcmp(event->param.conn.private_data, &attempt, sizeof(attempt));
	int err;

	rdma_ack_cm_event(event);
	if (is_stale) {
		rdma_destroy_id(id);
		return 0;
	}
	w.ends[1].id = id;
	err = make_end(&w.ends[1], 1);
	if (err)
		return err;
	if (accept_nth)
		inject(accept_nth);
	err = err_or(rdma_accept(id, &param));
	if (accept_nth)
		accept_hit = has_failed();
	return err;
}

static bool is_failure(enum rdma_cm_event_type type)
{
	return type > RDMA_CM_EVENT_ESTABLISHED || type == RDMA_CM_EVENT_ADDR_ERROR ||
	       type == RDMA_CM_EVENT_ROUTE_ERROR || type == RDMA_CM_EVENT_CONNECT_ERROR ||
	       type == RDMA_CM_EVENT_UNREACHABLE || type == RDMA_CM_EVENT_REJECTED;
}

/* Handles an event of either end; records in *@seen that an end of @w.ends has received it */
static int on_event(struct rdma_cm_event *event, unsigned int *seen)
{
	enum rdma_cm_event_type type = event->event;
	int who = event->id == w.ends[1].id;
	bool is_ours = event->id == w.ends[who].id;
	int err = 0;

	if (type == RDMA_CM_EVENT_CONNECT_REQUEST)
		return answer(event);
	rdma_ack_cm_event(event);
	if (!is_ours)
		return 0;
	if (is_failure(type))
		err = ENOMEM;
	*seen |= 1 << (2 * type + who);
	return err;
}

/* Waits until all ends of the mask @who have received an event of @type */
static int await(enum rdma_cm_event_type type, unsigned int who, unsigned int *seen)
{
	struct pollfd pfds[2] = {
		{ .fd = w.chan->fd, .events = POLLIN },
		{ .fd = w.sides[1].chan->fd, .events = POLLIN },
	};
	struct rdma_cm_event *event;
	int i, err;

	while ((*seen >> 2 * type & who) != who) {
		if (poll(pfds, 2, patience() * 1000) <= 0)
			fail("no event, attempt %u: seen %#x", attempt, *seen);
		for (i = 0; i < 2; i++) {
			if (!pfds[i].revents)
				continue;
			err = err_or(rdma_get_cm_event(i ? w.sides[1].chan : w.chan, &event));
			/* librdmacm drops a request that it has no memory for, and reads on */
			if (err == EAGAIN)
				continue;
			err = err ? err : on_event(event, seen);
			if (err)
				return err;
		}
	}
	return 0;
}

static int connect_ends(void)
{
	struct rdma_conn_param param = {
		.responder_resources = 4, .initiator_depth = 4,
		.private_data = &attempt, .private_data_len = sizeof(attempt),
	};
	struct sockaddr_in sin = { .sin_family = AF_INET, .sin_port = htons(PORT) };
	unsigned int seen = 0;
	int err;

	MUST(inet_pton(AF_INET, w.sides[1].addr, &sin.sin_addr) == 1);
	err = err_or(rdma_create_id(w.chan, &w.ends[0].id, NULL, RDMA_PS_TCP));
	if (err) {
		w.ends[0].id = NULL;
		return err;
	}
	err = err_or(rdma_resolve_addr(w.ends[0].id, NULL, (void *)&sin, patience() * 1000));
	err = err ? err : await(RDMA_CM_EVENT_ADDR_RESOLVED, 1, &seen);
	err = err ? err : err_or(rdma_resolve_route(w.ends[0].id, patience() * 1000));
	err = err ? err : await(RDMA_CM_EVENT_ROUTE_RESOLVED, 1, &seen);
	err = err ? err : make_end(&w.ends[0], 0);
	err = err ? err : err_or(rdma_connect(w.ends[0].id, &param));
	return err ? err : await(RDMA_CM_EVENT_ESTABLISHED, 3, &seen);
}

static int unmake_connection(void)
{
	int err = unmake_end(&w.ends[0]);

	return err ? err : unmake_end(&w.ends[1]);
}

static int make_connection(void)
{
	int err;

	attempt++;
	err = connect_ends();
	if (err)
		MUST(!unmake_connection());
	return err;
}

static int make_listener(void)
{
	struct sockaddr_in sin = { .sin_family = AF_INET, .sin_port = htons(PORT + 1) };
	int err;

	MUST(inet_pton(AF_INET, w.sides[0].addr, &sin.sin_addr) == 1);
	if (rdma_create_id(w.chan, &w.id, NULL, RDMA_PS_TCP))
		return errno;
	err = err_or(rdma_bind_addr(w.id, (struct sockaddr *)&sin));
	err = err ? err : err_or(rdma_listen(w.id, 8));
	if (err)
		MUST(!rdma_destroy_id(w.id));
	return err;
}

static int unmake_listener(void)
{
	return err_or(rdma_destroy_id(w.id));
}

static void queues_open(void)
{
	int i;

	for (i = 0; i < 2; i++)
		w.queues[i] = queues_of(&w.sides[i], 16);
	MUST(!setns(w.sides[0].ns, CLONE_NEWNET));
	w.chan = rdma_create_event_channel();
	MUST(w.chan);
	MUST(!fcntl(w.chan->fd, F_SETFL, O_NONBLOCK));
	MUST(!fcntl(w.sides[1].chan->fd, F_SETFL, O_NONBLOCK));
}

/**
 * connections() - listeners and connections of processes
 *
 * Context: user space.
 */
void connections(void)
{
	static const struct op ops[] = {
		/* No memory for a socket; for its port; for its first segment */
		{ OP("listener", listener), .others = { ENFILE, EADDRINUSE } },
		{ OP("connection", connection), .others = { ENFILE, EADDRINUSE, ENOBUFS } },
	};
	int i;

	queues_open();
	for (i = 0; i < 2; i++)
		walk(&ops[i]);
	for (i = 0; i < 2; i++)
		queues_close(&w.queues[i]);
}

/**
 * accepts() - accept a connection again and again; each allocation of rdma_accept() fails once
 *
 * Context: user space.
 */
void accepts(void)
{
	int i, err, bad = 0;

	queues_open();
	accept_hit = true;
	for (i = 1; accept_hit && i < NTH_MAX; i++) {
		accept_nth = i;
		err = make_connection();
		if (err && (!accept_hit || err != ENOMEM))
			fail("accept, allocation %d: %s", i, strerror(err));
		if (!err)
			MUST(!unmake_connection());
		bad += !!err;
	}
	printf("accept: %d allocations, %d failed\n", i - 2, bad);
	for (i = 0; i < 2; i++)
		queues_close(&w.queues[i]);
}
