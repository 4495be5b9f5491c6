// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Directed cases: something ends while its connection is being made.
 */
#include "cases.h"
#include "actors.h"
#include "client.h"
#include "good.h"
#include "qps.h"
#include "tcp.h"
#include "ucm.h"
#include "world.h"

#include <poll.h>
#include <unistd.h>

/* While a connection is being made for its number, a connected QP is destroyed. */
static void destroy_promptly(struct client *c, const char *what)
{
	double begin = now(), took;

	MUST(!ibv_destroy_qp(c->qp));
	took = now() - begin;
	tell("%s: destroyed in %.3f s", what, took);
	if (took > startup_ms / 2000.)
		fail("destroying the QP took %.3f s", took);
}

static void connect_connected(int unused)
{
	struct rdma_ucm_conn_param param;
	struct client c;
	__u32 id;
	int fd, ret;

	(void)unused;
	become(1, USER);
	client_open(&c, 1);
	client_connect(&c, 0, GOOD_PORT);
	param = conn_param(c.qp->qp_num);
	fd = cm_open();
	id = routed_id(fd, addrs[0], PEER_PORT);
	ret = cm_connect(fd, id, &param);
	tell("connect once more, QP %u: %d", c.qp->qp_num, ret);
	client_round(&c, 3);
	pause_ms(50);
	destroy_promptly(&c, "own");
	MUST(!cm_destroy(fd, id));
}

static void connect_mute(int unused)
{
	struct rdma_ucm_conn_param param = conn_param(w->value[0]);
	int fd;
	__u32 id;

	(void)unused;
	become(1, USER);
	fd = cm_open();
	id = routed_id(fd, addrs[0], PEER_PORT);
	tell("connect, QP %u: %d", w->value[0], cm_connect(fd, id, &param));
	reach(2);
	await(20);
}

static void victim_destroys(int unused)
{
	struct client c;

	(void)unused;
	become(1, USER + 1);
	client_open(&c, 1);
	client_connect(&c, 0, GOOD_PORT);
	w->value[0] = c.qp->qp_num;
	reach(1);
	await(2);
	pause_ms(50);
	destroy_promptly(&c, "foreign");
	reach(20);
}

static void case_mute(void)
{
	int fd = tcp_listener(0, PEER_PORT);
	pid_t victim, pid;

	start_server(0);
	must_end_well(actor(connect_connected, 0));
	victim = actor(victim_destroys, 0);
	await(1);
	pid = actor(connect_mute, 0);
	must_end_well(victim);
	must_end_well(pid);
	close(fd);
}

/* An identifier that connects to a silent peer is rejected, then destroyed. */
static void reject_connecting(int unused)
{
	struct rdma_ucm_conn_param param;
	struct ibv_qp *qp;
	struct verbs v;
	__u32 id;
	int fd;

	(void)unused;
	become(1, USER);
	v = verbs_open(1);
	qp = must_have_qp(&v);
	param = conn_param(qp->qp_num);
	fd = cm_open();
	id = routed_id(fd, addrs[0], PEER_PORT);
	MUST(!cm_connect(fd, id, &param));
	tell("reject while it connects: %d", cm_reject(fd, id, 0));
	tell("accept while it connects: %d", cm_accept(fd, id, 5, &param));
	MUST(!cm_destroy(fd, id));
	MUST(!ibv_destroy_qp(qp));
}

static void case_reject_connecting(void)
{
	int fd = tcp_listener(0, PEER_PORT);

	must_end_well(actor(reject_connecting, 0));
	close(fd);
}

/*
 * A request that was not read is destroyed before its listener. If rdma_ucm keeps its event,
 * destroying the listener uses freed memory as that request and destroys it again.
 */
#define NEXT_IDS	16

static __u32 unread_request(int fd)
{
	struct pollfd pfd = { .fd = fd, .events = POLLIN };
	__u32 listener;

	MUST(fd >= 0 && !cm_create(fd, &listener, 1) &&
	     !cm_bind(fd, listener, addrs[1], ATTACK_PORT) &&
	     !cm_listen(fd, listener, 16));
	reach(1);
	MUST(poll(&pfd, 1, patience() * 1000) == 1);
	return listener;
}

/* @fd: the listener's file by now */
static void end_listener(int fd, __u32 listener)
{
	int other = cm_open(), i;
	__u32 ids[NEXT_IDS];

	for (i = 0; i < NEXT_IDS; i++)
		MUST(!cm_create(other, &ids[i], 1));
	MUST(!cm_destroy(fd, listener));
	for (i = 0; i < NEXT_IDS; i++)
		if (cm_destroy(other, ids[i]))
			fail("identifier %u ended with a listener that it has nothing to do with",
			     ids[i]);
	close(other);
	close(fd);
}

static void destroy_unread(int unused)
{
	__u32 listener, id;
	int fd;

	(void)unused;
	become(1, USER);
	fd = cm_open();
	listener = unread_request(fd);
	for (id = 0; id < 64; id++)
		if (id != listener && !cm_destroy(fd, id))
			tell("destroyed %u, listener %u", id, listener);
	end_listener(fd, listener);
}

/* Moves the listener, with the event, to another file, but not the request. */
static void migrate_unread(int unused)
{
	__u32 listener;
	int fd, other;

	(void)unused;
	become(1, USER);
	fd = cm_open();
	other = cm_open();
	listener = unread_request(fd);
	MUST(!cm_migrate(fd, other, listener));
	close(fd);
	end_listener(other, listener);
}

static void run_unread(void (*what)(int))
{
	pid_t pid = actor(what, 0);
	int fd;

	await(1);
	fd = silent_caller();
	must_end_well(pid);
	close(fd);
}

static void case_destroy_unread(void)
{
	run_unread(destroy_unread);
}

static void case_migrate_unread(void)
{
	run_unread(migrate_unread);
}

const struct directed end_cases[] = {
	{ "mute", case_mute, 0,
	  "a QP is destroyed at once, whatever connection is being made for its number" },
	{ "reject-connecting", case_reject_connecting, SPARE_CONNECTING,
	  "a connection is rejected and accepted by the end that connects" },
	{ "destroy-unread", case_destroy_unread, SPARE_UNREAD,
	  "a request is destroyed before it is read" },
	{ "migrate-unread", case_migrate_unread, SPARE_UNREAD,
	  "a request ends before it is read, and its listener has moved to another file" },
	{ NULL, NULL, 0, NULL },
};
