// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Peers of the families by plain TCP: silent, slow, hostile or absent.
 */
#include "random.h"
#include "tcp.h"

#include <sys/socket.h>
#include <unistd.h>

struct peer {
	pthread_t thread;
	int side;
	int kind;
	int fd;
	struct rng rng;
};

enum peer_kind {
	PEER_MUTE, PEER_HOLDS, PEER_SLOW, PEER_GARBAGE, PEER_RESETS, PEER_ANSWERS, PEER_REJECTS,
	PEER_KINDS, PEER_CALLS = PEER_KINDS
};

#define PEER_CALLERS	6

static void garbage(struct peer *p, int fd)
{
	__u8 octets[64];
	unsigned int i;

	for (i = 0; i < sizeof(octets); i++)
		octets[i] = choose(&p->rng, 256);
	send(fd, octets, 1 + choose(&p->rng, sizeof(octets)), MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void slowly(int fd, const __u8 *octets, int len)
{
	int i;

	for (i = 0; i < len; i++) {
		if (send(fd, octets + i, 1, MSG_NOSIGNAL | MSG_DONTWAIT) != 1)
			break;
		pause_ms(2);
	}
}

static void any_end(struct peer *p, int fd)
{
	pause_ms(choose(&p->rng, 3) ? choose(&p->rng, 20) : choose(&p->rng, 300));
	tcp_close(fd, choose(&p->rng, 2));
}

/* A peer that has accepted a connection */
static void answer(struct peer *p, int fd)
{
	__u8 octets[600], frame[MPA_FRAME];
	__u8 flags = p->kind == PEER_REJECTS ? MPA_REJECT : 0;
	__u16 rtr[] = { 0, MPA_C, MPA_D, MPA_C | MPA_D };

	mpa_frame(frame, "MPA ID Rep Frame", flags, choose(&p->rng, 4) ? MPA_A | 4 : 4,
		  rtr[choose(&p->rng, 4)] | 4);
	if (p->kind != PEER_RESETS || choose(&p->rng, 2))
		tcp_read(fd, octets, MPA_FRAME, 100);
	switch (p->kind) {
	case PEER_SLOW:
		slowly(fd, frame, sizeof(frame));
		break;
	case PEER_GARBAGE:
		garbage(p, fd);
		break;
	case PEER_RESETS:
		send(fd, frame, choose(&p->rng, sizeof(frame)), MSG_NOSIGNAL | MSG_DONTWAIT);
		tcp_close(fd, true);
		return;
	case PEER_ANSWERS:
	case PEER_REJECTS:
		send(fd, frame, sizeof(frame), MSG_NOSIGNAL | MSG_DONTWAIT);
		if (choose(&p->rng, 2))
			garbage(p, fd);
		break;
	default:
		break;
	}
	any_end(p, fd);
}

/* A peer that connects to the attackers' listeners */
static void say_hello(struct peer *p, int fd)
{
	__u8 frame[MPA_FRAME], reply[64];

	mpa_request(frame);
	switch (choose(&p->rng, 8)) {
	case 0:
		break;
	case 1:
		send(fd, frame, choose(&p->rng, sizeof(frame)), MSG_NOSIGNAL);
		break;
	case 2:
		slowly(fd, frame, sizeof(frame));
		break;
	case 3:
		garbage(p, fd);
		break;
	case 4:
		/* Peer-to-peer mode without any RTR */
		mpa_frame(frame, "MPA ID Req Frame", 0, MPA_A | 1, 1);
		send(fd, frame, sizeof(frame), MSG_NOSIGNAL);
		break;
	case 5:
		frame[18] = choose(&p->rng, 4);
		frame[19] = choose(&p->rng, 256);
		send(fd, frame, sizeof(frame), MSG_NOSIGNAL);
		garbage(p, fd);
		break;
	default:
		send(fd, frame, sizeof(frame), MSG_NOSIGNAL);
		tcp_read(fd, reply, MPA_FRAME, choose(&p->rng, 200));
		if (!choose(&p->rng, 3))
			garbage(p, fd);
	}
}

static void *peer_main(void *arg)
{
	struct peer *p = arg;
	int fd;

	while (!w->is_over) {
		if (p->kind == PEER_CALLS) {
			fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
			if (tcp_connect(fd, addrs[!p->side],
					ATTACK_PORT + choose(&p->rng, ATTACK_PORTS)))
				say_hello(p, fd);
			any_end(p, fd);
			continue;
		}
		if (p->kind == PEER_MUTE)
			pause_ms(500);
		fd = accept(p->fd, NULL, NULL);
		if (fd >= 0)
			answer(p, fd);
	}
	return NULL;
}

/**
 * peers_main() - be the peers on a host
 * @side: the host
 *
 * There are fewer peers that connect on a slow machine, so that the families get CPU time, too.
 *
 * Context: a process of its own, see actor(). Does not return.
 */
void peers_main(int side)
{
	struct peer peers[PEER_KINDS + PEER_CALLERS];
	unsigned int i, count = PEER_KINDS + PEER_CALLERS / slowness();

	for (i = 0; i < count; i++) {
		peers[i] = (struct peer) {
			.side = side, .kind = i < PEER_KINDS ? i : PEER_CALLS,
			.rng = rng_of(1000 + side * 100 + i, 0),
			.fd = i < PEER_KINDS ? tcp_listener(side, PEER_PORT + i) : -1,
		};
	}
	become(side, PEER_USER);
	for (i = 0; i < count; i++)
		MUST(!pthread_create(&peers[i].thread, NULL, peer_main, &peers[i]));
	for (;;)
		pause();
}
