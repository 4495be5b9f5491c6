// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Directed cases: a connection is made for a QP of another process.
 */
#include "cases.h"
#include "actors.h"
#include "client.h"
#include "good.h"
#include "qps.h"
#include "tcp.h"
#include "ucm.h"
#include "world.h"

#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* A victim whose QP is not connected yet: its receive must get a message of its own peer only */
static void victim_idle(int side)
{
	struct client c;
	struct ibv_sge sge;
	struct ibv_recv_wr wr = { .wr_id = 99, .sg_list = &sge, .num_sge = 1 }, *bad;
	struct ibv_wc wc;

	become(side, USER + 1);
	client_open(&c, side);
	sge = (struct ibv_sge) { (unsigned long)c.room + GOOD_SIZE, GOOD_SIZE, c.mr->lkey };
	MUST(!ibv_post_recv(c.qp, &wr, &bad));
	w->value[0] = c.qp->qp_num;
	reach(10);
	await(20);
	if (state_of(c.qp) > IBV_QPS_RTR)
		fail("the QP is in state %d", state_of(c.qp));
	MUST(!ibv_poll_cq(c.v.cq, 1, &wc));
	client_connect(&c, !side, GOOD_PORT);
	client_post(&c, IBV_WR_SEND, 0);
	MUST(!client_wait(&c, 2));
	client_round(&c, 2);
	client_close(&c);
}

/* A user tries to connect with a number that is not its own. */
static void try_connect(__u32 qpn)
{
	struct rdma_ucm_conn_param param = conn_param(qpn);
	struct rdma_ucm_event_resp event;
	int fd = cm_open(), ret;
	__u32 id;

	id = routed_id(fd, addrs[!here], GOOD_PORT);
	ret = cm_connect(fd, id, &param);
	tell("connect, QP %u: %d", qpn, ret);
	if (!ret) {
		next_event(fd, &event, 2);
		fail("connected with QP %u of somebody else: event %u, %d", qpn, event.event,
		     (int)event.status);
	}
	MUST(!cm_destroy(fd, id));
	close(fd);
}

static void try_accept(__u32 qpn)
{
	struct rdma_ucm_conn_param param = conn_param(qpn);
	int fd = cm_open(), ret;
	__u32 listener, id;

	id = take_request(fd, &listener);
	ret = cm_accept(fd, id, 5, &param);
	tell("accept, QP %u: %d", qpn, ret);
	if (!ret)
		fail("accepted with QP %u of somebody else", qpn);
	MUST(!cm_destroy(fd, id) && !cm_destroy(fd, listener));
	close(fd);
}

enum thief { USER_OF_NONE, ROOT_OF_CONTAINER };

static void thief_of(int thief)
{
	struct verbs v;

	become(1, USER);
	if (thief == ROOT_OF_CONTAINER)
		become_root_of_container(USER, 0);
	/* The thief has opened the device, but has another file than the victim */
	v = verbs_open(1);
	must_have_qp(&v);
	try_connect(w->value[0]);
	try_accept(w->value[0]);
}

static void run_theft(void (*victim_is)(int), enum thief thief)
{
	pid_t victim, pid;
	int fd;

	start_server(0);
	victim = actor(victim_is, 1);
	await(10);
	reach(0);
	pid = actor(thief_of, thief);
	await(1);
	fd = silent_caller();
	must_end_well(pid);
	reach(20);
	must_end_well(victim);
	close(fd);
}

static void case_foreign_idle(void)
{
	run_theft(victim_idle, USER_OF_NONE);
}

static void case_foreign_connected(void)
{
	run_theft(victim_connected, USER_OF_NONE);
}

static void case_container_root(void)
{
	run_theft(victim_idle, ROOT_OF_CONTAINER);
}

static void steal_known(int side)
{
	unsigned int i;

	become(side, USER);
	for (i = 0; i < w->known_count; i++) {
		if (w->known[i].side != side)
			continue;
		try_connect(w->known[i].qpn);
		reach(0);
		try_accept(w->known[i].qpn);
		reach(2);
		await(3);
	}
	reach(30);
}

static void run_steal_known(void)
{
	int stage = 0, fd = -1;
	pid_t pid;

	start_server(!here);
	reach(0);
	pid = actor(steal_known, here);
	while (stage < 30) {
		stage = atomic_load(&w->stage);
		if (stage == 1 && fd < 0)
			fd = silent_caller();
		if (stage == 2) {
			close(fd);
			fd = -1;
			reach(3);
		}
		pause_ms(2);
		if (stage < 30 && waitpid(pid, NULL, WNOHANG))
			MUST(atomic_load(&w->stage) == 30);
	}
}

/* Tries the QPs that --qp has named */
static void case_kernel(void)
{
	MUST(w->known_count);
	for (here = 0; here < 2; here++)
		run_steal_known();
}

/* A connection for a QP of another process: which process makes it, and with what right */
enum lender { FORKED, PASSED, BY_RIGHT, NO_RIGHT };

static int pass[2];

static void send_file(int fd)
{
	char room[CMSG_SPACE(sizeof(fd))] = "", octet = 0;
	struct iovec iov = { &octet, 1 };
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = room,
		.msg_controllen = sizeof(room),
	};
	struct cmsghdr *cmsg = CMSG_FIRSTHDR(&msg);

	cmsg->cmsg_level = SOL_SOCKET;
	cmsg->cmsg_type = SCM_RIGHTS;
	cmsg->cmsg_len = CMSG_LEN(sizeof(fd));
	memcpy(CMSG_DATA(cmsg), &fd, sizeof(fd));
	MUST(sendmsg(pass[0], &msg, 0) == 1);
}

static void receive_file(void)
{
	char room[CMSG_SPACE(sizeof(int))], octet;
	struct iovec iov = { &octet, 1 };
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = room,
		.msg_controllen = sizeof(room),
	};

	MUST(recvmsg(pass[1], &msg, 0) == 1 && CMSG_FIRSTHDR(&msg));
}

static void make_connection(int lender)
{
	struct rdma_ucm_conn_param param;
	struct rdma_ucm_event_resp event;
	struct offer offer;
	int fd, ret;
	__u32 id;

	if (lender == PASSED)
		receive_file();
	await(1);
	fd = cm_open();
	id = routed_id(fd, addrs[0], GOOD_PORT);
	param = conn_param(w->value[0]);
	ret = cm_connect(fd, id, &param);
	tell("connect for another process, %d: %d", lender, ret);
	if (lender == NO_RIGHT) {
		MUST(ret);
		return;
	}
	MUST(!ret);
	expect(fd, RDMA_CM_EVENT_ESTABLISHED, &event);
	memcpy(&offer, event.param.conn.private_data, sizeof(offer));
	w->value[1] = offer.addr;
	w->value[2] = offer.addr >> 32;
	w->value[3] = offer.rkey;
	reach(2);
	await(20);
	MUST(!cm_destroy(fd, id));
}

static void borrow(int lender)
{
	static const uid_t uids[] = {
		[FORKED] = USER, [PASSED] = USER + 1, [BY_RIGHT] = 0, [NO_RIGHT] = USER,
	};

	if (lender != FORKED)
		become(1, uids[lender]);
	make_connection(lender);
}

static void lend(int lender)
{
	pid_t child = 0;
	struct client c;

	become(1, USER);
	client_open(&c, 1);
	w->value[0] = c.qp->qp_num;
	if (lender == FORKED)
		child = actor(borrow, FORKED);
	if (lender == PASSED)
		send_file(c.v.ctx->cmd_fd);
	reach(1);
	await(2);
	c.offer = (struct offer) { w->value[1] | (__u64)w->value[2] << 32, w->value[3] };
	client_round(&c, 4);
	reach(20);
	if (child)
		must_end_well(child);
	MUST(!ibv_destroy_qp(c.qp));
}

static void run_lending(enum lender lender)
{
	pid_t pid, other = 0;

	start_server(0);
	MUST(!socketpair(AF_UNIX, SOCK_STREAM, 0, pass));
	if (lender != FORKED)
		other = actor(borrow, lender);
	pid = actor(lend, lender);
	must_end_well(pid);
	if (other)
		must_end_well(other);
}

static void case_fork_child(void)
{
	run_lending(FORKED);
}

static void case_passed_file(void)
{
	run_lending(PASSED);
}

static void case_root_by_number(void)
{
	run_lending(BY_RIGHT);
}

/* A process of the same user, which does not have the file */
static void keep_idle(int unused)
{
	struct client c;

	(void)unused;
	become(1, USER);
	client_open(&c, 1);
	w->value[0] = c.qp->qp_num;
	reach(1);
	await(20);
	MUST(state_of(c.qp) <= IBV_QPS_RTR);
}

static void case_same_user(void)
{
	pid_t pid;

	start_server(0);
	pid = actor(keep_idle, 0);
	must_end_well(actor(borrow, NO_RIGHT));
	reach(20);
	must_end_well(pid);
}

const struct directed owner_cases[] = {
	{ "foreign-idle", case_foreign_idle, 0,
	  "an idle QP of another user is refused, and not touched" },
	{ "foreign-connected", case_foreign_connected, 0,
	  "a connected QP of another user is refused, and not touched" },
	{ "same-user", case_same_user, 0,
	  "a QP of the same user is refused to who has not got its file" },
	{ "container-root", case_container_root, 0,
	  "a QP of the host is refused to root of a container" },
	{ "kernel", case_kernel, 0, "QPs of the kernel, and of an honest pair, are refused" },
	{ "fork-child", case_fork_child, 0, "a forked child connects its parent's QP" },
	{ "passed-file", case_passed_file, 0, "a daemon that was passed the file connects the QP" },
	{ "root-by-number", case_root_by_number, 0, "root connects a QP by its number" },
	{ NULL, NULL, 0, NULL },
};
