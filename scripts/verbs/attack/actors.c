// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The processes of directed cases, and the stages at which they wait for each other.
 */
#include "actors.h"
#include "client.h"
#include "tcp.h"
#include "ucm.h"
#include "world.h"

#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/**
 * reach() - set the stage of the case
 * @stage: the stage
 *
 * Context: any process of a case.
 */
void reach(int stage)
{
	atomic_store(&w->stage, stage);
}

/**
 * await() - wait for a stage of the case, or a later one
 * @stage: the stage
 *
 * Context: any process of a case. Exits if another process has failed.
 */
void await(int stage)
{
	double until = now() + 2 * patience();

	while (atomic_load(&w->stage) < stage) {
		if (now() > until || w->has_failed)
			fail("stage %d is not reached", stage);
		pause_ms(2);
	}
}

/**
 * actor() - start a process
 * @what: what it does
 * @arg: argument of @what
 *
 * Context: a process with one thread.
 * Return: its PID.
 */
pid_t actor(void (*what)(int), int arg)
{
	pid_t pid = fork();

	MUST(pid >= 0);
	if (!pid) {
		what(arg);
		_exit(0);
	}
	return pid;
}

/**
 * must_end_well() - wait until a process ends with status 0
 * @pid: the process
 *
 * Context: its parent. Exits if it, or another process, has failed.
 */
void must_end_well(pid_t pid)
{
	double until = now() + 3 * patience();
	int status;

	while (!waitpid(pid, &status, WNOHANG)) {
		if (now() > until || w->has_failed)
			fail("process %d does not end", pid);
		pause_ms(2);
	}
	if (status)
		fail("a process ended with %#x", status);
}

/**
 * silent_caller() - connect to the tested listener, and send nothing after the Request
 *
 * Context: root, with one thread.
 * Return: the socket.
 */
int silent_caller(void)
{
	__u8 request[MPA_FRAME];
	int fd = tcp_socket(!here);

	MUST(tcp_connect(fd, addrs[here], ATTACK_PORT));
	mpa_request(request);
	MUST(send(fd, request, sizeof(request), 0) == sizeof(request));
	return fd;
}

/**
 * take_request() - listen, reach stage 1, and wait for a request
 * @fd: file of rdma_cm
 * @listener: where to put the identifier that listens
 *
 * Context: the tested process.
 * Return: the identifier of the request.
 */
__u32 take_request(int fd, __u32 *listener)
{
	struct rdma_ucm_event_resp event;

	MUST(fd >= 0 && !cm_create(fd, listener, 1) &&
	     !cm_bind(fd, *listener, addrs[here], ATTACK_PORT) &&
	     !cm_listen(fd, *listener, 16));
	reach(1);
	expect(fd, RDMA_CM_EVENT_CONNECT_REQUEST, &event);
	return event.id;
}

/**
 * victim_connected() - be a victim whose QP is connected and must stay connected
 * @side: its host
 *
 * Context: a process of its own, see actor().
 */
void victim_connected(int side)
{
	struct client c;

	become(side, USER + 1);
	client_open(&c, side);
	client_connect(&c, !side, GOOD_PORT);
	client_round(&c, 1);
	w->value[0] = c.qp->qp_num;
	reach(10);
	await(20);
	client_round(&c, 2);
	client_close(&c);
}
