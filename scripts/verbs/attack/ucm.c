// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Calls to rdma_ucm, without librdmacm.
 */
#include "ucm.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#define CM_PATH		"/dev/infiniband/rdma_cm"

/**
 * cm_call() - give a command to rdma_ucm
 * @fd: file of rdma_cm
 * @cmd: the command
 * @in: its arguments
 * @len: length of @in in bytes, at most 640
 * @out: length of the response in bytes
 *
 * Context: any process.
 * Return: 0 or -errno.
 */
int cm_call(int fd, __u32 cmd, const void *in, __u16 len, __u16 out)
{
	struct {
		struct rdma_ucm_cmd_hdr hdr;
		__u8 body[640];
	} msg = { .hdr = { cmd, len, out } };

	memcpy(msg.body, in, len);
	return write(fd, &msg, sizeof(msg.hdr) + len) < 0 ? -errno : 0;
}

/**
 * cm_open() - open a file of rdma_cm
 *
 * Context: any process.
 * Return: its descriptor, or -1 and errno.
 */
int cm_open(void)
{
	return open(CM_PATH, O_RDWR | O_NONBLOCK | O_CLOEXEC);
}

/**
 * set_address() - fill in an IPv4 address
 * @to: a struct sockaddr_in, which need not be aligned
 * @addr: the address in dotted notation
 * @port: the port
 *
 * Context: any process.
 */
void set_address(void *to, const char *addr, __u16 port)
{
	struct sockaddr_in sin = { .sin_family = AF_INET, .sin_port = htons(port) };

	MUST(inet_pton(AF_INET, addr, &sin.sin_addr) == 1);
	memcpy(to, &sin, sizeof(sin));
}

/**
 * next_event() - wait for an event, and read it
 * @fd: file of rdma_cm
 * @event: where to put it
 * @seconds: how long to wait
 *
 * Context: any process.
 * Return: 0, -ETIMEDOUT, or what reading it returned.
 */
int next_event(int fd, struct rdma_ucm_event_resp *event, double seconds)
{
	struct pollfd pfd = { .fd = fd, .events = POLLIN };

	if (poll(&pfd, 1, seconds * 1000) != 1)
		return -ETIMEDOUT;
	return cm_event(fd, event);
}

/**
 * expect() - wait for an event of a given type
 * @fd: file of rdma_cm
 * @type: the type; any other is a failure
 * @event: where to put it
 *
 * Context: any process.
 * Return: the status of the event.
 */
int expect(int fd, __u32 type, struct rdma_ucm_event_resp *event)
{
	int ret = next_event(fd, event, patience());

	if (ret || event->event != type)
		fail("event %u (%d) instead of %u", event->event, ret, type);
	return event->status;
}

/**
 * routed_id() - create an identifier that is ready to connect
 * @fd: file of rdma_cm
 * @addr: address of the peer
 * @port: its port
 *
 * Context: any process.
 * Return: the identifier, with address and route resolved.
 */
__u32 routed_id(int fd, const char *addr, __u16 port)
{
	double until = now() + patience();
	struct rdma_ucm_event_resp event;
	__u32 id;

	MUST(!cm_create(fd, &id, 77));
	do {
		MUST(!cm_resolve_addr(fd, id, addr, port, 1000));
		MUST(!next_event(fd, &event, patience()));
	} while (event.event == RDMA_CM_EVENT_ADDR_ERROR && now() < until);
	MUST(event.event == RDMA_CM_EVENT_ADDR_RESOLVED);
	MUST(!cm_resolve_route(fd, id, 1000));
	expect(fd, RDMA_CM_EVENT_ROUTE_RESOLVED, &event);
	return id;
}
