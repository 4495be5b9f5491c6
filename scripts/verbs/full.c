// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * full CASE: on a device of the link type kiwarp-ext, a send queue of N entries takes N work
 * requests, and the next one when the oldest of them has completed; that they were sent makes no
 * difference. So completion queues of N entries are never overrun. One case:
 *
 *   signaled   N work requests, of which none completes; and one for each that completes
 *   unsignaled all are complete when the last of them is
 *   flushed    N work requests that are flushed, and further ones in the error state
 *   closed     N work requests that an orderly close waits for
 *   reset      those that a reset drops return their entries
 *
 * Nothing completes while the answer to a Read is outstanding. The host that answers sends nothing
 * for as long as netem drops all of its packets.
 */
#include "common.h"

#define DEPTH		31	/* a power of two minus 1: the queues have not one entry more */
#define ROUNDS		20000
#define HOLD		"tc -n b qdisc add dev eth0 root netem loss 100%"
#define LET_GO		"tc -n b qdisc del dev eth0 root"

/**
 * struct world - state of the program
 * @sides: both hosts
 * @queues: queues of each host
 * @ends: ends of the connection; the first one posts
 * @room: memory of each host
 * @mr: its region
 * @next: number of the next work request
 * @oldest: number of the oldest one that has not completed
 */
static struct world {
	struct side sides[2];
	struct queues queues[2];
	struct end ends[2];
	__u8 *room[2];
	struct ibv_mr *mr[2];
	__u64 next;
	__u64 oldest;
} w;

static void open_world(void)
{
	int i;

	side_open(&w.sides[0], "a", "10.77.0.1", 7803);
	side_open(&w.sides[1], "b", "10.77.0.2", 7803);
	for (i = 0; i < 2; i++) {
		w.room[i] = pages(PAGE);
		w.mr[i] = reg(w.sides[i].pd, w.room[i], PAGE,
			      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ |
			      IBV_ACCESS_REMOTE_WRITE);
		MUST(w.mr[i]);
	}
}

static struct ibv_qp *qp(void)
{
	return w.ends[0].id->qp;
}

/* Each completion queue has the size of the send queue, too. */
static void make_queues(void)
{
	int i;

	for (i = 0; i < 2; i++) {
		struct ibv_context *ctx = w.sides[i].listener->verbs;

		w.queues[i] = (struct queues) {
			.scq = ibv_create_cq(ctx, DEPTH, NULL, NULL, 0),
			.rcq = ibv_create_cq(ctx, DEPTH, NULL, NULL, 0),
			.send_depth = DEPTH, .recv_depth = DEPTH,
			.send_ops = IBV_QP_EX_WITH_RDMA_WRITE,
		};
		MUST(w.queues[i].scq && w.queues[i].scq->cqe == DEPTH && w.queues[i].rcq);
	}
}

static void begin(void)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	make_queues();
	MUST(conn_open(w.ends, &w.sides[0], &w.sides[1], w.queues));
	MUST(!ibv_query_qp(qp(), &attr, IBV_QP_CAP, &init) && attr.cap.max_send_wr == DEPTH);
}

static void end_all(void)
{
	int i;

	for (i = 0; i < 2; i++)
		end_close(&w.ends[i]);
	for (i = 0; i < 2; i++)
		queues_close(&w.queues[i]);
}

static bool try_post(enum ibv_wr_opcode opcode, int flags)
{
	struct ibv_sge sge = { (unsigned long)w.room[0], 8, w.mr[0]->lkey };
	struct ibv_send_wr wr = {
		.wr_id = w.next, .opcode = opcode, .sg_list = &sge, .num_sge = 1,
		.send_flags = flags, .wr.rdma = { (unsigned long)w.room[1], w.mr[1]->rkey },
	}, *bad;

	if (ibv_post_send(qp(), &wr, &bad))
		return false;
	w.next++;
	return true;
}

static bool try_build(void)
{
	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(qp());

	MUST(ex);
	ibv_wr_start(ex);
	ex->wr_id = w.next;
	ex->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_rdma_write(ex, w.mr[1]->rkey, (unsigned long)w.room[1]);
	ibv_wr_set_sge(ex, w.mr[0]->lkey, (unsigned long)w.room[0], 8);
	if (ibv_wr_complete(ex))
		return false;
	w.next++;
	return true;
}

/* Posts until no more is taken. Of unsignaled ones, only the last is signaled after all. */
static void fill(int flags)
{
	__u64 first = w.next;

	MUST(try_post(IBV_WR_RDMA_READ, flags));
	while (w.next - first < DEPTH - 1 && try_post(IBV_WR_RDMA_WRITE, flags))
		;
	while (try_post(IBV_WR_RDMA_WRITE, IBV_SEND_SIGNALED) || try_build())
		MUST(w.next - first < 1000);
	if (w.next - first != DEPTH)
		fail("a queue of %d entries takes %llu", DEPTH,
		     (unsigned long long)(w.next - first));
}

/* The oldest work request completes, with one of two statuses. */
static void completes_with(enum ibv_wc_status status, enum ibv_wc_status other)
{
	struct ibv_wc wc;

	complete(w.queues[0].scq, &wc);
	if (wc.wr_id != w.oldest || (wc.status != status && wc.status != other))
		fail("completion of %llu with %s; wanted %llu, %s", (unsigned long long)wc.wr_id,
		     ibv_wc_status_str(wc.status), (unsigned long long)w.oldest,
		     ibv_wc_status_str(status));
	w.oldest++;
}

static void completes(enum ibv_wc_status status)
{
	completes_with(status, status);
}

static void all_complete(enum ibv_wc_status status)
{
	while (w.oldest != w.next)
		completes(status);
}

/* The Read is flushed, and so are the Writes, unless TCP has taken them. */
static void all_are_flushed(void)
{
	completes(IBV_WC_WR_FLUSH_ERR);
	while (w.oldest != w.next)
		completes_with(IBV_WC_WR_FLUSH_ERR, IBV_WC_SUCCESS);
}

static bool is_empty(void)
{
	struct ibv_wc wc;

	return !ibv_poll_cq(w.queues[0].scq, 1, &wc);
}

static void signaled(void)
{
	int i;

	begin();
	MUST(!system(HOLD));
	fill(IBV_SEND_SIGNALED);
	MUST(is_empty());
	MUST(!system(LET_GO));
	/* The entry is free when the completion is there. */
	for (i = 0; i < ROUNDS; i++) {
		completes(IBV_WC_SUCCESS);
		MUST(i % 2 ? try_build() :
			     try_post(i % 6 ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ,
				      IBV_SEND_SIGNALED));
	}
	all_complete(IBV_WC_SUCCESS);
	end_all();
}

static void unsignaled(void)
{
	int i;

	begin();
	for (i = 0; i < 5; i++) {
		MUST(!system(HOLD));
		fill(0);
		MUST(is_empty());
		MUST(!system(LET_GO));
		w.oldest = w.next - 1;
		all_complete(IBV_WC_SUCCESS);
	}
	MUST(is_empty());
	end_all();
}

static void modify(enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = { .qp_state = state };

	MUST(!ibv_modify_qp(qp(), &attr, IBV_QP_STATE));
}

/* What is posted after the end is flushed, and its entries are free again. */
static void is_over(void)
{
	int i;

	for (i = 0; i < 3 * DEPTH; i++) {
		MUST(i % 2 ? try_build() : try_post(IBV_WR_RDMA_WRITE, 0));
		completes(IBV_WC_WR_FLUSH_ERR);
	}
	MUST(is_empty());
}

static void flush(int flags)
{
	begin();
	MUST(!system(HOLD));
	fill(IBV_SEND_SIGNALED | flags);
	modify(IBV_QPS_ERR);
	all_are_flushed();
	is_over();
	MUST(!system(LET_GO));
	end_all();
}

/* Those behind a fence have not been begun. */
static void flushed(void)
{
	flush(0);
	flush(IBV_SEND_FENCE);
}

static void closed(void)
{
	begin();
	MUST(!system(HOLD));
	fill(IBV_SEND_SIGNALED);
	MUST(!rdma_disconnect(w.ends[0].id));
	MUST(!try_post(IBV_WR_RDMA_WRITE, 0) && is_empty());
	MUST(!system(LET_GO));
	all_complete(IBV_WC_SUCCESS);
	MUST(end_event(&w.ends[0], patience()) == RDMA_CM_EVENT_DISCONNECTED);
	is_over();
	end_all();
}

/* Work requests that are posted without a connection wait in the queue. */
static void reset(void)
{
	int i;

	begin();
	MUST(!system(HOLD));
	fill(IBV_SEND_SIGNALED);
	modify(IBV_QPS_RESET);
	all_are_flushed();
	MUST(!system(LET_GO));
	for (i = 0; i < 5; i++) {
		fill(IBV_SEND_SIGNALED);
		modify(IBV_QPS_RESET);
		w.oldest = w.next;
		MUST(is_empty());
	}
	end_all();
}

/**
 * main() - see the head of the file
 * @argc: number of arguments
 * @argv: arguments
 *
 * Context: user space.
 * Return: 0, or 1 when something was wrong.
 */
int main(int argc, char **argv)
{
	static const struct case_of cases[] = {
		{ "signaled", signaled }, { "unsignaled", unsignaled }, { "flushed", flushed },
		{ "closed", closed }, { "reset", reset },
	};

	MUST(argc == 2);
	open_world();
	run_case(cases, ARRAY_SIZE(cases), argv[1]);
	return 0;
}
