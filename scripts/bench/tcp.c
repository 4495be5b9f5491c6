// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Measures TCP in the same guest, with both ends in one thread, for comparison: data without a CRC,
 * data over which each end computes a CRC32c as iWARP does, and the CRC alone.
 */
#include "bench.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include "crc32c/sse.h"

#define PORT		5141	/* of the first flow */
#define SOCKET_BUFFER	(4 * MIB)
#define MAX_TRIPS	100000

/**
 * struct pair - a TCP connection and its data
 * @listener: at the passive end
 * @fd: both ends
 * @data: memory of both ends
 * @size: octets of a message
 * @region: octets of the memory of each end
 * @has_crc: each end computes a CRC
 * @crc: CRC of both ends
 */
struct pair {
	int listener;
	int fd[2];
	unsigned char *data[2];
	size_t size;
	size_t region;
	bool has_crc;
	unsigned int crc[2];
};

static void enter(const char *ns)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/run/netns/%s", ns);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	MUST(fd >= 0 && !setns(fd, CLONE_NEWNET));
	close(fd);
}

static struct sockaddr_in address(const struct options *o)
{
	struct sockaddr_in sin = { .sin_family = AF_INET, .sin_port = htons(PORT + o->flow) };

	MUST(inet_pton(AF_INET, address_of(o, o->to), &sin.sin_addr) == 1);
	return sin;
}

static void listen_at(struct pair *p, const struct options *o)
{
	struct sockaddr_in sin = address(o);
	int one = 1;

	enter(o->to);
	p->listener = socket(AF_INET, SOCK_STREAM, 0);
	MUST(p->listener >= 0);
	setsockopt(p->listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	MUST(!bind(p->listener, (struct sockaddr *)&sin, sizeof(sin)));
	MUST(!listen(p->listener, 64));
}

static void dial(struct pair *p, const struct options *o)
{
	struct sockaddr_in sin = address(o);
	int one = 1;

	p->fd[0] = socket(AF_INET, SOCK_STREAM, 0);
	MUST(p->fd[0] >= 0);
	MUST(!connect(p->fd[0], (struct sockaddr *)&sin, sizeof(sin)));
	p->fd[1] = accept(p->listener, NULL, NULL);
	MUST(p->fd[1] >= 0);
	for (int i = 0; i < 2; i++)
		setsockopt(p->fd[i], IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
}

static void hang_up(struct pair *p)
{
	close(p->fd[0]);
	close(p->fd[1]);
}

static void buffers(struct pair *p)
{
	int size = SOCKET_BUFFER;

	for (int i = 0; i < 2; i++) {
		setsockopt(p->fd[i], SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof(size));
		setsockopt(p->fd[i], SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size));
		MUST(!fcntl(p->fd[i], F_SETFL, O_NONBLOCK));
		p->data[i] = pages(p->region);
		memset(p->data[i], 'x', p->region);
	}
}

static void transmit(struct pair *p, const unsigned char *data, size_t len)
{
	if (p->has_crc)
		p->crc[0] = crc32c_sse(p->crc[0], data, len);
	while (len) {
		ssize_t n = send(p->fd[0], data, len, 0);

		MUST(n > 0 || errno == EAGAIN);
		if (n < 0)
			break;
		data += n;
		len -= n;
	}
	MUST(!len);
}

static void receive(struct pair *p, unsigned char *data, size_t len)
{
	unsigned char *begin = data;
	size_t size = len;

	while (len) {
		ssize_t n = recv(p->fd[1], data, len, 0);

		MUST(n > 0 || (n < 0 && errno == EAGAIN));
		if (n < 0) {
			sched_yield();
			continue;
		}
		data += n;
		len -= n;
	}
	if (p->has_crc)
		p->crc[1] = crc32c_sse(p->crc[1], begin, size);
}

static __u64 stream(struct pair *p, double seconds, __u64 count)
{
	__u64 end = ticks_now();
	__u64 n, at = 0;

	for (n = 0; count ? n < count : seconds_of(ticks_now() - end) < seconds; n++) {
		transmit(p, p->data[0] + at, p->size);
		receive(p, p->data[1] + at, p->size);
		at += p->size;
		if (at + p->size > p->region)
			at = 0;
	}
	return n;
}

static void stream_open(struct pair *p, const struct options *o)
{
	*p = (struct pair) {
		.size = o->size, .region = o->region, .has_crc = !strcmp(o->op, "tcp-crc"),
	};
	listen_at(p, o);
	enter(o->from);
	dial(p, o);
	buffers(p);
}

/**
 * tcp_start() - make a connection for tcp_slice()
 * @o: what is to be measured
 *
 * Context: user space.
 * Return: the connection.
 */
void *tcp_start(const struct options *o)
{
	struct pair *p = malloc(sizeof(*p));

	MUST(p);
	stream_open(p, o);
	return p;
}

/**
 * tcp_slice() - send messages of the same size, one at a time, for some time
 * @context: from tcp_start()
 * @seconds: how long
 * @ticks: set to how long it took
 *
 * Context: user space.
 * Return: number of messages.
 */
__u64 tcp_slice(void *context, double seconds, __u64 *ticks)
{
	__u64 begin = ticks_now();
	__u64 ops = stream(context, seconds, 0);

	*ticks = ticks_now() - begin;
	return ops;
}

/**
 * tcp_stream() - measure messages of the same size, sent one at a time
 * @o: what is to be measured
 *
 * Context: user space.
 */
void tcp_stream(const struct options *o)
{
	struct stamp from, to;
	struct pair p;
	__u64 ops;

	stream_open(&p, o);
	ops = stream(&p, o->seconds / 4, 0) * 4;
	for (size_t i = 0; i < p.region; i++)
		p.data[0][i] = i * 7 + (i >> 12);
	stamp_take(&from);
	stream(&p, 0, ops);
	stamp_take(&to);
	stamp_print(&from, &to, ops, ops * p.size);
	printf("\"checked\": %u, \"bad\": %d, ", 1,
	       (ops * p.size >= p.region &&
		memcmp(p.data[0], p.data[1], p.region / p.size * p.size)) ||
	       p.crc[0] != p.crc[1]);
	hang_up(&p);
}

/**
 * tcp_pingpong() - measure the latency of messages that go back and forth
 * @o: what is to be measured
 *
 * Context: user space.
 */
void tcp_pingpong(const struct options *o)
{
	__u64 *trips = pages(MAX_TRIPS * sizeof(*trips));
	__u64 begin;
	struct pair p = { 0 };
	struct stamp from, to;
	__u32 n;

	listen_at(&p, o);
	enter(o->from);
	dial(&p, o);
	for (int i = 0; i < 2; i++)
		p.data[i] = pages(o->size);
	stamp_take(&from);
	begin = ticks_now();
	for (n = 0; n < MAX_TRIPS && seconds_of(ticks_now() - begin) < o->seconds; n++) {
		__u64 start = ticks_now();

		for (int i = 0; i < 2; i++) {
			MUST(send(p.fd[i], p.data[i], o->size, 0) == (ssize_t)o->size);
			MUST(recv(p.fd[!i], p.data[!i], o->size, MSG_WAITALL) == (ssize_t)o->size);
		}
		trips[n] = ticks_now() - start;
	}
	stamp_take(&to);
	stamp_print(&from, &to, 2ULL * n, 2ULL * n * o->size);
	print_latency(trips, n);
	hang_up(&p);
}

/**
 * tcp_connect_rate() - measure connections per second, made one after the other
 * @o: what is to be measured
 *
 * Context: user space.
 */
void tcp_connect_rate(const struct options *o)
{
	struct pair p = { 0 };
	struct stamp from, to;
	__u64 begin;
	__u32 n;

	listen_at(&p, o);
	enter(o->from);
	stamp_take(&from);
	begin = ticks_now();
	for (n = 0; seconds_of(ticks_now() - begin) < o->seconds; n++) {
		dial(&p, o);
		hang_up(&p);
	}
	stamp_take(&to);
	stamp_print(&from, &to, n, 0);
}

/**
 * struct pass - CRCs over messages
 * @data: a region
 * @size: octets of a message
 * @region: octets of the region
 * @at: offset of the next message in the region
 * @crc: the CRC computed so far
 */
struct pass {
	unsigned char *data;
	size_t size;
	size_t region;
	size_t at;
	unsigned int crc;
};

static void crc_pass(struct pass *p)
{
	p->crc = crc32c_sse(p->crc, p->data + p->at, p->size);
	p->at += p->size;
	if (p->at + p->size > p->region)
		p->at = 0;
}

/**
 * crc_start() - allocate memory for crc_slice()
 * @o: what is to be measured
 *
 * Context: user space.
 * Return: the memory.
 */
void *crc_start(const struct options *o)
{
	struct pass *p = malloc(sizeof(*p));

	MUST(p);
	*p = (struct pass) { .data = pages(o->region), .size = o->size, .region = o->region };
	memset(p->data, 'x', o->region);
	return p;
}

/**
 * crc_slice() - compute CRCs, each over one message, for some time
 * @context: from crc_start()
 * @seconds: how long
 * @ticks: set to how long it took
 *
 * The messages are in the CPU cache as far as the region fits into it.
 *
 * Context: user space.
 * Return: number of CRCs.
 */
__u64 crc_slice(void *context, double seconds, __u64 *ticks)
{
	__u64 begin = ticks_now();
	__u64 n;

	for (n = 0; n % 64 || seconds_of(ticks_now() - begin) < seconds; n++)
		crc_pass(context);
	*ticks = ticks_now() - begin;
	return n;
}

/**
 * crc_rate() - measure the cost of a CRC over one message
 * @o: what is to be measured
 *
 * Context: user space.
 */
void crc_rate(const struct options *o)
{
	struct pass *p = crc_start(o);
	struct stamp from, to;
	__u64 n, ticks;

	stamp_take(&from);
	n = crc_slice(p, o->seconds, &ticks);
	stamp_take(&to);
	stamp_print(&from, &to, n, n * o->size);
	printf("\"crc\": %u, ", p->crc);
}
