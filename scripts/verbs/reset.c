// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * reset SECONDS: some threads move two queue pairs to RESET or ERR, while others connect, accept
 * and disconnect them. In every order calls must return, the connection manager must be told of
 * the end of each connection, and it must be possible to connect the queue pairs afterwards.
 */
#include "common.h"

#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <arpa/inet.h>
#include <unistd.h>

#define THREADS		3
#define RESOLVE_MS	1000
#define EVENT_SECONDS	0.05

/**
 * struct world - state of the program
 * @sides: both hosts
 * @qps: the queue pair of each host
 * @stop: tells all threads to end
 * @connected: number of connections that were established at both ends
 * @modified: number of successful state changes
 */
static struct world {
	struct side sides[2];
	struct ibv_qp *qps[2];
	bool stop;
	unsigned int connected;
	unsigned int modified;
} w;

static void modify(struct ibv_qp *qp, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = { .qp_state = state };

	if (!ibv_modify_qp(qp, &attr, IBV_QP_STATE))
		__atomic_add_fetch(&w.modified, 1, __ATOMIC_RELAXED);
}

static void *disturb(void *arg)
{
	unsigned int seed = (unsigned long)arg;

	while (!__atomic_load_n(&w.stop, __ATOMIC_RELAXED)) {
		modify(w.qps[rand_r(&seed) % 2], rand_r(&seed) % 3 ? IBV_QPS_RESET : IBV_QPS_ERR);
		if (rand_r(&seed) % 4)
			usleep(rand_r(&seed) % 2000);
		else
			sched_yield();
	}
	return NULL;
}

static struct ibv_qp *make_qp(const struct side *side)
{
	struct queues queues = queues_of(side, 8);
	struct ibv_qp_init_attr attr = {
		.send_cq = queues.scq, .recv_cq = queues.rcq, .qp_type = IBV_QPT_RC,
		.cap = {
			.max_send_wr = 8, .max_recv_wr = 8, .max_send_sge = 1, .max_recv_sge = 1,
		},
	};
	struct ibv_qp *qp = ibv_create_qp(side->pd, &attr);

	MUST(qp);
	return qp;
}

/* Takes an event of @chan; returns its type, or -1. Sets *@id to its identifier, unless NULL */
static int next_event(struct rdma_event_channel *chan, double seconds, struct rdma_cm_id **id)
{
	struct pollfd pfd = { .fd = chan->fd, .events = POLLIN };
	struct rdma_cm_event *event;
	int type;

	if (poll(&pfd, 1, seconds * 1000) != 1)
		return -1;
	MUST(!rdma_get_cm_event(chan, &event));
	type = event->event;
	if (id)
		*id = event->id;
	rdma_ack_cm_event(event);
	return type;
}

static struct rdma_conn_param param_of(int who)
{
	struct rdma_conn_param param = {
		.responder_resources = 4, .initiator_depth = 4, .qp_num = w.qps[who]->qp_num,
	};

	return param;
}

static bool ask(struct end *end)
{
	struct sockaddr_in sin = { .sin_family = AF_INET, .sin_port = htons(w.sides[1].port) };
	struct rdma_conn_param param = param_of(0);

	MUST(inet_pton(AF_INET, w.sides[1].addr, &sin.sin_addr) == 1);
	MUST(!setns(w.sides[0].ns, CLONE_NEWNET));
	end->chan = rdma_create_event_channel();
	MUST(end->chan && !rdma_create_id(end->chan, &end->id, NULL, RDMA_PS_TCP));
	MUST(!rdma_resolve_addr(end->id, NULL, (struct sockaddr *)&sin, RESOLVE_MS));
	if (next_event(end->chan, patience(), NULL) != RDMA_CM_EVENT_ADDR_RESOLVED)
		return false;
	MUST(!rdma_resolve_route(end->id, RESOLVE_MS));
	if (next_event(end->chan, patience(), NULL) != RDMA_CM_EVENT_ROUTE_RESOLVED)
		return false;
	return !rdma_connect(end->id, &param);
}

/* Waits for a Request; NULL: none. Ignores the ends of other connections on the same channel */
static struct rdma_cm_id *request(void)
{
	double end = now() + 1;
	struct rdma_cm_id *id;

	while (now() < end)
		if (next_event(w.sides[1].chan, EVENT_SECONDS, &id) ==
		    RDMA_CM_EVENT_CONNECT_REQUEST)
			return id;
	return NULL;
}

/* Makes a connection, which ends in any way. */
static void connect_once(void)
{
	struct rdma_conn_param param = param_of(1);
	struct rdma_cm_id *id = NULL;
	struct end end = {};
	bool accepted = false;
	int type;

	if (ask(&end)) {
		id = request();
		accepted = id && !rdma_accept(id, &param);
		type = next_event(end.chan, accepted ? 1 : EVENT_SECONDS, NULL);
		if (accepted && type == RDMA_CM_EVENT_ESTABLISHED)
			w.connected++;
		if (w.connected % 2)
			rdma_disconnect(end.id);
	}
	MUST(!rdma_destroy_id(end.id));
	rdma_destroy_event_channel(end.chan);
	if (id)
		MUST(!rdma_destroy_id(id));
	while (next_event(w.sides[1].chan, 0, NULL) >= 0)
		;
}

/**
 * main() - see the head of the file
 * @argc: number of arguments
 * @argv: the arguments
 *
 * Context: user space.
 * Return: 0, or 1 when something was wrong.
 */
int main(int argc, char **argv)
{
	pthread_t threads[THREADS];
	unsigned int before;
	double end;
	long i;

	side_open(&w.sides[0], "a", "10.77.0.1", 7803);
	side_open(&w.sides[1], "b", "10.77.0.2", 7803);
	for (i = 0; i < 2; i++)
		w.qps[i] = make_qp(&w.sides[i]);
	for (i = 0; i < THREADS; i++)
		MUST(!pthread_create(&threads[i], NULL, disturb, (void *)(i + 1)));
	end = now() + (argc > 1 ? atof(argv[1]) : 2);
	while (now() < end || (!w.connected && now() < end + patience()))
		connect_once();
	__atomic_store_n(&w.stop, true, __ATOMIC_RELAXED);
	for (i = 0; i < THREADS; i++)
		MUST(!pthread_join(threads[i], NULL));
	printf("%u connections, %u changes\n", w.connected, w.modified);
	for (i = 0; i < 2; i++)
		modify(w.qps[i], IBV_QPS_RESET);
	before = w.connected;
	/* A Request from before, which was given up, may come first. */
	end = now() + patience();
	while (w.connected == before && now() < end)
		connect_once();
	if (w.connected == before)
		fail("they cannot be connected any more");
	for (i = 0; i < 2; i++)
		MUST(!ibv_destroy_qp(w.qps[i]));
	return 0;
}
