// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Directed cases: a request is accepted, and then accepted again or rejected.
 */
#include "cases.h"
#include "actors.h"
#include "client.h"
#include "good.h"
#include "qps.h"
#include "tcp.h"
#include "ucm.h"
#include "world.h"

#include <unistd.h>

/* Progress of the connection at the time of the second call */
enum when { AT_ONCE, ESTABLISHED };

/* Waits until the startup deadline has passed and taken effect */
static void outlive_startup(void)
{
	pause_ms(startup_ms + 300);
}

static __u32 accept_first(int fd, __u32 id, struct ibv_qp *qp, enum when when)
{
	struct rdma_ucm_conn_param param = conn_param(qp->qp_num);
	struct rdma_ucm_event_resp event;

	MUST(!cm_accept(fd, id, 5, &param));
	/* A driver may report it only after the peer's first message, which is no fault */
	if (when == ESTABLISHED && next_event(fd, &event, 2))
		tell("no ESTABLISHED yet");
	return id;
}

static void reject_accepted(int when)
{
	int fd, ret;
	__u32 listener, id;
	struct ibv_qp *qp;
	struct verbs v;

	become(1, USER);
	v = verbs_open(1);
	qp = must_have_qp(&v);
	fd = cm_open();
	id = take_request(fd, &listener);
	accept_first(fd, id, qp, when);
	ret = cm_reject(fd, id, 0);
	tell("reject: %d", ret);
	outlive_startup();
	MUST(!cm_destroy(fd, id));
	MUST(!ibv_destroy_qp(qp));
}

static void run_reject_accepted(enum when when)
{
	__u8 reply[MPA_FRAME];
	pid_t pid = actor(reject_accepted, when);
	int fd;

	await(1);
	fd = silent_caller();
	tcp_read(fd, reply, sizeof(reply), 2000);
	must_end_well(pid);
	close(fd);
}

static void case_accept_then_reject(void)
{
	run_reject_accepted(AT_ONCE);
}

static void case_established_then_reject(void)
{
	run_reject_accepted(ESTABLISHED);
}

/* Owner of the QP whose number is passed to the second accept */
enum whose { OWN, FOREIGN, DEAD, ABSURD, WHOSE };

struct again {
	enum when when;
	enum whose whose;
};

static struct again again;

static __u32 second_number(const struct verbs *v, struct ibv_qp **second)
{
	__u32 qpn;

	*second = NULL;
	switch (again.whose) {
	case OWN:
		*second = must_have_qp(v);
		return (*second)->qp_num;
	case FOREIGN:
		return w->value[0];
	case DEAD:
		*second = must_have_qp(v);
		qpn = (*second)->qp_num;
		MUST(!ibv_destroy_qp(*second));
		*second = NULL;
		return qpn;
	default:
		return 0xffffffff;
	}
}

static void accept_again(int unused)
{
	struct rdma_ucm_conn_param param;
	struct ibv_qp *qp, *second;
	__u32 listener, id;
	struct verbs v;
	int fd, ret;

	(void)unused;
	become(1, USER);
	v = verbs_open(1);
	qp = must_have_qp(&v);
	param = conn_param(second_number(&v, &second));
	fd = cm_open();
	id = take_request(fd, &listener);
	accept_first(fd, id, qp, again.when);
	ret = cm_accept(fd, id, 6, &param);
	tell("second accept, %d, QP %u: %d", again.whose, param.qp_num, ret);
	/* Once within the deadline, once behind it */
	if (again.when == AT_ONCE)
		outlive_startup();
	MUST(!cm_destroy(fd, id));
	MUST(!ibv_destroy_qp(qp));
	if (second)
		MUST(!ibv_destroy_qp(second));
}

static void run_accept_again(void)
{
	pid_t victim = 0, pid;
	int fd;

	if (again.whose == FOREIGN) {
		start_server(0);
		victim = actor(victim_connected, 1);
		await(10);
		reach(0);
	}
	pid = actor(accept_again, 0);
	await(1);
	fd = silent_caller();
	must_end_well(pid);
	close(fd);
	reach(20);
	if (victim)
		must_end_well(victim);
}

static void case_accept_again(void)
{
	for (again.whose = OWN; again.whose < WHOSE; again.whose++) {
		again.when = AT_ONCE;
		run_accept_again();
		reach(0);
	}
}

static void case_accept_established_again(void)
{
	for (again.whose = OWN; again.whose < WHOSE; again.whose++) {
		again.when = ESTABLISHED;
		run_accept_again();
		reach(0);
	}
}

const struct directed accept_cases[] = {
	{ "established-then-reject", case_established_then_reject, 0,
	  "a connection is accepted, established, and then rejected" },
	{ "accept-established-again", case_accept_established_again, 0,
	  "a connection is accepted, established, and accepted again with QPs of all kinds" },
	{ "accept-then-reject", case_accept_then_reject, 0,
	  "a connection is accepted, and rejected at once" },
	{ "accept-again", case_accept_again, 0,
	  "a connection is accepted, and at once with an own, foreign, dead, absurd QP" },
	{ NULL, NULL, 0, NULL },
};
