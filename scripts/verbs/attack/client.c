// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * A client of the good server, which verifies what it gets.
 */
#include "client.h"
#include "ucm.h"
#include "world.h"

#include <sys/mman.h>
#include <unistd.h>

/**
 * client_open() - create a client with an unconnected QP
 * @c: the client
 * @side: its host
 *
 * Context: any process.
 */
void client_open(struct client *c, int side)
{
	c->v = verbs_open(side);
	c->fd = cm_open();
	MUST(c->fd >= 0);
	c->room = pages(2 * GOOD_SIZE);
	c->mr = reg(c->v.pd, c->room, 2 * GOOD_SIZE, ALL_RIGHTS);
	c->qp = must_have_qp(&c->v);
}

/**
 * client_connect() - connect a client
 * @c: the client
 * @to: host of the server
 * @port: port of the server
 *
 * The machine may be too busy to meet a deadline, which is no failure: it tries again.
 *
 * Context: the process of the client.
 */
void client_connect(struct client *c, int to, __u16 port)
{
	struct rdma_ucm_conn_param param = conn_param(c->qp->qp_num);
	double until = now() + patience();
	struct rdma_ucm_event_resp event;

	for (;;) {
		c->id = routed_id(c->fd, addrs[to], port);
		c->began = now();
		MUST(!cm_connect(c->fd, c->id, &param));
		MUST(!next_event(c->fd, &event, patience()));
		if (event.event == RDMA_CM_EVENT_ESTABLISHED)
			break;
		if (event.event != RDMA_CM_EVENT_UNREACHABLE || now() > until)
			fail("no connection: event %u, %d", event.event, (int)event.status);
		MUST(!cm_destroy(c->fd, c->id));
	}
	memcpy(&c->offer, event.param.conn.private_data, sizeof(c->offer));
}

/**
 * client_post() - post a work request of one message
 * @c: the client
 * @opcode: Send, Write or Read
 * @at: offset of its data in the client's memory
 *
 * Context: the process of the client.
 */
void client_post(struct client *c, enum ibv_wr_opcode opcode, size_t at)
{
	struct ibv_sge sge = { (unsigned long)c->room + at, GOOD_SIZE, c->mr->lkey };
	struct ibv_send_wr wr = {
		.wr_id = opcode, .opcode = opcode, .send_flags = IBV_SEND_SIGNALED,
		.sg_list = &sge, .num_sge = 1, .wr.rdma = { c->offer.addr, c->offer.rkey },
	}, *bad;

	MUST(!ibv_post_send(c->qp, &wr, &bad));
}

/**
 * client_wait() - wait for completions
 * @c: the client
 * @count: their number
 *
 * Context: the process of the client.
 * Return: the first status that is not success, or success.
 */
enum ibv_wc_status client_wait(struct client *c, int count)
{
	struct ibv_wc wc;

	while (count--) {
		complete(c->v.cq, &wc);
		if (wc.status != IBV_WC_SUCCESS)
			return wc.status;
	}
	return IBV_WC_SUCCESS;
}

static void client_verify(struct client *c, const char *what)
{
	if (memcmp(c->room, c->room + GOOD_SIZE, GOOD_SIZE))
		fail("other octets: %s", what);
	memset(c->room + GOOD_SIZE, 0xee, GOOD_SIZE);
}

/**
 * client_try_round() - exchange data with the server, if the connection lasts
 * @c: the client
 * @round: seed of the data
 *
 * A message and its echo; then a Write, and a Read of the same place.
 *
 * Context: the process of the client.
 * Return: the status of what failed before there was an echo, or success.
 */
enum ibv_wc_status client_try_round(struct client *c, __u32 round)
{
	struct ibv_sge sge = { (unsigned long)c->room + GOOD_SIZE, GOOD_SIZE, c->mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = 99, .sg_list = &sge, .num_sge = 1 }, *bad;
	struct rng rng = rng_of(round, 0);
	enum ibv_wc_status status;
	int i;

	for (i = 0; i < GOOD_SIZE; i++)
		c->room[i] = choose(&rng, 256);
	MUST(!ibv_post_recv(c->qp, &wr, &bad));
	client_post(c, IBV_WR_SEND, 0);
	status = client_wait(c, 2);
	if (status)
		return status;
	client_verify(c, "echo");
	client_post(c, IBV_WR_RDMA_WRITE, 0);
	client_post(c, IBV_WR_RDMA_READ, GOOD_SIZE);
	MUST(!client_wait(c, 2));
	client_verify(c, "what was written and read");
	return IBV_WC_SUCCESS;
}

/**
 * client_round() - exchange data with the server
 * @c: the client
 * @round: seed of the data
 *
 * Context: the process of the client.
 */
void client_round(struct client *c, __u32 round)
{
	enum ibv_wc_status status = client_try_round(c, round);

	if (status)
		fail("status %d in round %u on QP %u", status, round, c->qp->qp_num);
}

/**
 * client_close() - close a client and its connection
 * @c: the client
 *
 * Context: the process of the client.
 */
void client_close(struct client *c)
{
	MUST(!ibv_destroy_qp(c->qp));
	MUST(!cm_destroy(c->fd, c->id));
	MUST(!ibv_dereg_mr(c->mr) && !ibv_destroy_cq(c->v.cq) && !ibv_dealloc_pd(c->v.pd));
	ibv_close_device(c->v.ctx);
	close(c->fd);
	munmap(c->room, 2 * GOOD_SIZE);
}
