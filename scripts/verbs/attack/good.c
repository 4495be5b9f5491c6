// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * A good server: it takes every connection and sends back what it receives.
 */
#include "good.h"
#include "actors.h"
#include "client.h"
#include "ucm.h"
#include "world.h"

#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#define GOOD_CONNS	24
#define GOOD_RECVS	4
/* Memory of a connection: for receives, for sends, and for the peer to write to and read */
#define GOOD_ROOM	((2 * GOOD_RECVS + 1) * GOOD_SIZE)

struct good_conn {
	struct ibv_qp *qp;
	__u32 id;
};

static struct {
	struct verbs v;
	int fd;
	__u32 listener;
	__u8 *room;
	struct ibv_mr *mr;
	struct good_conn conns[GOOD_CONNS];
} good;

static __u8 *good_room(int conn, int piece)
{
	return good.room + (size_t)conn * GOOD_ROOM + piece * GOOD_SIZE;
}

static void good_receive(int conn, int i)
{
	struct ibv_sge sge = { (unsigned long)good_room(conn, i), GOOD_SIZE, good.mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = conn << 8 | i, .sg_list = &sge, .num_sge = 1 }, *bad;

	MUST(!ibv_post_recv(good.conns[conn].qp, &wr, &bad));
}

static void good_end(int conn)
{
	struct good_conn *c = &good.conns[conn];

	ibv_destroy_qp(c->qp);
	cm_destroy(good.fd, c->id);
	c->qp = NULL;
}

static void good_answer(const struct rdma_ucm_event_resp *event)
{
	struct rdma_ucm_conn_param param;
	struct offer offer;
	int conn, i;

	for (conn = 0; conn < GOOD_CONNS && good.conns[conn].qp; conn++)
		;
	if (conn == GOOD_CONNS) {
		cm_destroy(good.fd, event->id);
		return;
	}
	good.conns[conn] = (struct good_conn) { must_have_qp(&good.v), event->id };
	for (i = 0; i < GOOD_RECVS; i++)
		good_receive(conn, i);
	offer = (struct offer) { (unsigned long)good_room(conn, 2 * GOOD_RECVS), good.mr->rkey };
	param = conn_param(good.conns[conn].qp->qp_num);
	memcpy(param.private_data, &offer, sizeof(offer));
	param.private_data_len = sizeof(offer);
	if (cm_accept(good.fd, event->id, conn + 1, &param))
		good_end(conn);
}

static void good_event(void)
{
	struct rdma_ucm_event_resp event;

	if (cm_event(good.fd, &event))
		return;
	if (event.event == RDMA_CM_EVENT_CONNECT_REQUEST)
		good_answer(&event);
	else if (event.event != RDMA_CM_EVENT_ESTABLISHED && event.uid && event.uid <= GOOD_CONNS &&
		 good.conns[event.uid - 1].qp && good.conns[event.uid - 1].id == event.id)
		good_end(event.uid - 1);
}

static void good_echo(const struct ibv_wc *wc)
{
	int conn = wc->wr_id >> 8, i = wc->wr_id & 0xff;
	struct ibv_sge sge = {
		(unsigned long)good_room(conn, GOOD_RECVS + i), wc->byte_len, good.mr->lkey,
	};
	struct ibv_send_wr wr = {
		.wr_id = ~0ULL, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED,
		.sg_list = &sge, .num_sge = 1,
	}, *bad;

	if (!good.conns[conn].qp || good.conns[conn].qp->qp_num != wc->qp_num)
		return;
	memcpy(good_room(conn, GOOD_RECVS + i), good_room(conn, i), wc->byte_len);
	good_receive(conn, i);
	ibv_post_send(good.conns[conn].qp, &wr, &bad);
}

/**
 * good_serve() - be a good server until the program ends
 * @side: its host
 * @port: its port
 * @uid: its user
 *
 * Context: a process of its own. Does not return.
 */
void good_serve(int side, __u16 port, uid_t uid)
{
	struct ibv_wc wc;

	become(side, uid);
	MUST(!prctl(PR_SET_PDEATHSIG, SIGKILL));
	good.v = verbs_open(side);
	good.fd = cm_open();
	good.room = pages(GOOD_CONNS * GOOD_ROOM);
	good.mr = reg(good.v.pd, good.room, GOOD_CONNS * GOOD_ROOM, ALL_RIGHTS);
	MUST(!cm_create(good.fd, &good.listener, 1000) &&
	     !cm_bind(good.fd, good.listener, addrs[side], port) &&
	     !cm_listen(good.fd, good.listener, 64));
	w->value[14 + side] = port;
	while (!w->is_over) {
		good_event();
		if (!ibv_poll_cq(good.v.cq, 1, &wc))
			pause_ms(1);
		else if (wc.status == IBV_WC_SUCCESS && wc.wr_id != ~0ULL)
			good_echo(&wc);
	}
	_exit(0);
}

static void serve_on(int side)
{
	good_serve(side, GOOD_PORT, PEER_USER);
}

/**
 * start_server() - start a good server, and wait until it listens
 * @side: its host
 *
 * Context: a process with one thread.
 */
void start_server(int side)
{
	double until = now() + patience();

	w->value[14 + side] = 0;
	actor(serve_on, side);
	while (!w->value[14 + side]) {
		MUST(now() < until);
		pause_ms(2);
	}
}
