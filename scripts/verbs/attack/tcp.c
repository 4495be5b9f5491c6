// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Peers of plain TCP, and the frames of MPA that they send.
 */
#include "tcp.h"
#include "ucm.h"
#include "world.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

/**
 * tcp_socket() - create a socket in the namespace of a host
 * @side: the host
 *
 * Context: root, with one thread. The caller stays in the namespace.
 * Return: its descriptor, or -1 and errno.
 */
int tcp_socket(int side)
{
	MUST(!setns(net[side], CLONE_NEWNET));
	return socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
}

/**
 * tcp_listener() - create a socket that listens
 * @side: the host
 * @port: the port
 *
 * Context: root, with one thread. The caller stays in the namespace.
 * Return: its descriptor.
 */
int tcp_listener(int side, __u16 port)
{
	int fd = tcp_socket(side), one = 1;
	struct sockaddr_in sin;

	set_address(&sin, addrs[side], port);
	MUST(fd >= 0 && !setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)));
	MUST(!bind(fd, (struct sockaddr *)&sin, sizeof(sin)) && !listen(fd, 100));
	return fd;
}

/**
 * tcp_connect() - connect a socket
 * @fd: the socket
 * @addr: address of the peer
 * @port: its port
 *
 * Context: any process.
 * Return: true: it is connected.
 */
bool tcp_connect(int fd, const char *addr, __u16 port)
{
	struct timeval second = { .tv_sec = 1 };
	struct sockaddr_in sin;
	int one = 1;

	set_address(&sin, addr, port);
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &second, sizeof(second));
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	return !connect(fd, (struct sockaddr *)&sin, sizeof(sin));
}

/**
 * tcp_close() - end a connection
 * @fd: the socket
 * @is_reset: by a RST
 *
 * Context: any process.
 */
void tcp_close(int fd, bool is_reset)
{
	struct linger linger = { .l_onoff = 1 };

	if (is_reset)
		setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
	close(fd);
}

/**
 * tcp_read() - receive what arrives in time
 * @fd: the socket
 * @buf: where to put it
 * @count: number of bytes that are enough
 * @ms: how long to wait for each piece
 *
 * Context: any process.
 * Return: the number of bytes received.
 */
int tcp_read(int fd, void *buf, int count, int ms)
{
	struct pollfd pfd = { .fd = fd, .events = POLLIN };
	int got = 0, n;

	while (got < count && poll(&pfd, 1, ms) == 1) {
		n = recv(fd, (char *)buf + got, count - got, MSG_DONTWAIT);
		if (n <= 0)
			break;
		got += n;
	}
	return got;
}

/**
 * mpa_frame() - write an enhanced frame (RFC 6581 section 9)
 * @buf: room for MPA_FRAME bytes
 * @key: key of a Request or a Reply
 * @flags: MPA_REJECT or 0
 * @ird: IRD with MPA_A and MPA_B
 * @ord: ORD with MPA_C and MPA_D
 *
 * Context: any process.
 */
void mpa_frame(__u8 *buf, const char *key, __u8 flags, __u16 ird, __u16 ord)
{
	memcpy(buf, key, 16);
	buf[16] = flags | MPA_ENHANCED | 0x40;
	buf[17] = 2;
	buf[18] = 0;
	buf[19] = 4;
	buf[20] = ird >> 8;
	buf[21] = ird;
	buf[22] = ord >> 8;
	buf[23] = ord;
}

/**
 * mpa_request() - write a Request that every responder takes
 * @buf: room for MPA_FRAME bytes
 *
 * Context: any process.
 */
void mpa_request(__u8 *buf)
{
	mpa_frame(buf, "MPA ID Req Frame", 0, MPA_A | MPA_B | 4, MPA_C | MPA_D | 4);
}
