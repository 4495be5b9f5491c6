// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * resize CASE: queues of kiwarp-ext whose rings are replaced by several threads at the same time,
 * by system calls, so without the lock that the library holds. One case:
 *
 *   cq     completions that nobody takes are written meanwhile: none is lost, in order
 *   srq    messages take receives meanwhile: none is lost, in order
 *   limit  the event of a limit is raised as often as messages go below it
 *   armed  an armed queue stays armed
 */
#include "common.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/rdma_user_rxe.h>

#define DEPTH		64
#define THREADS		3
#define CQE_BYTES	64
#define RQE_BYTES	256

/**
 * struct world - state of the program
 * @sides: both hosts
 * @queues: queues of each host
 * @ends: ends of the connection
 * @over: ends the threads
 * @least: slots that a ring has at least
 * @calls: number of rings that were replaced
 */
static struct world {
	struct side sides[2];
	struct queues queues[2];
	struct end ends[2];
	bool over;
	__u32 least;
	unsigned long calls;
} w;

static int resize_cq(const struct ibv_cq *cq, __u32 cqe, struct mminfo *ring)
{
	struct {
		struct ib_uverbs_cmd_hdr hdr;
		struct ib_uverbs_resize_cq core;
	} cmd = {
		.hdr = { IB_USER_VERBS_CMD_RESIZE_CQ, sizeof(cmd) / 4, 0 },
		.core = { .cq_handle = cq->handle, .cqe = cqe },
	};
	struct {
		struct ib_uverbs_resize_cq_resp core;
		struct mminfo ring;
	} answer = {};

	cmd.hdr.out_words = sizeof(answer) / 4;
	cmd.core.response = (unsigned long)&answer;
	if (write(cq->context->cmd_fd, &cmd, sizeof(cmd)) < 0)
		return errno;
	*ring = answer.ring;
	return 0;
}

static int resize_srq(const struct ibv_srq *srq, __u32 max_wr, struct mminfo *ring)
{
	struct {
		struct ib_uverbs_cmd_hdr hdr;
		struct ib_uverbs_modify_srq core;
		__u64 where;
	} cmd = {
		.hdr = { IB_USER_VERBS_CMD_MODIFY_SRQ, sizeof(cmd) / 4, 0 },
		.core = {
			.srq_handle = srq->handle, .attr_mask = IBV_SRQ_MAX_WR, .max_wr = max_wr,
		},
		.where = (unsigned long)ring,
	};

	return write(srq->context->cmd_fd, &cmd, sizeof(cmd)) < 0 ? errno : 0;
}

static __u32 any_size(unsigned int *state)
{
	return w.least + rand_r(state) % (4 * w.least);
}

static void *resize_on(void *arg)
{
	unsigned int state = (unsigned long)arg;
	struct mminfo ring;
	int ret;

	while (!__atomic_load_n(&w.over, __ATOMIC_RELAXED)) {
		if (w.queues[1].srq)
			ret = resize_srq(w.queues[1].srq, any_size(&state), &ring);
		else
			ret = resize_cq(w.queues[1].rcq, any_size(&state), &ring);
		if (ret)
			fail("a ring with room enough was refused: %s", strerror(ret));
		__atomic_add_fetch(&w.calls, 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

static pthread_t threads[THREADS];

static void start(__u32 least)
{
	long i;

	w.least = least;
	w.over = false;
	for (i = 0; i < THREADS; i++)
		MUST(!pthread_create(&threads[i], NULL, resize_on, (void *)(i + pick(1000))));
}

static void stop(void)
{
	int i;

	__atomic_store_n(&w.over, true, __ATOMIC_RELAXED);
	for (i = 0; i < THREADS; i++)
		MUST(!pthread_join(threads[i], NULL));
}

static struct rxe_queue_buf *map(const struct mminfo *ring)
{
	struct rxe_queue_buf *buf;

	buf = mmap(NULL, ring->size, PROT_READ | PROT_WRITE, MAP_SHARED,
		   w.sides[1].listener->verbs->cmd_fd, ring->offset);
	MUST(buf != MAP_FAILED);
	return buf;
}

static void end_all(void)
{
	int i;

	for (i = 0; i < 2; i++)
		end_close(&w.ends[i]);
	for (i = 0; i < 2; i++)
		queues_close(&w.queues[i]);
}

static void begin(struct ibv_srq *srq, struct ibv_comp_channel *channel, __u32 cqe)
{
	int i;

	for (i = 0; i < 2; i++)
		w.queues[i] = queues_of(&w.sides[i], DEPTH);
	w.queues[1].srq = srq;
	MUST(!ibv_destroy_cq(w.queues[1].rcq));
	w.queues[1].rcq = ibv_create_cq(w.sides[1].listener->verbs, cqe, NULL, channel, 0);
	MUST(w.queues[1].rcq);
	MUST(conn_open(w.ends, &w.sides[0], &w.sides[1], w.queues));
}

static void post_recv(__u64 id)
{
	struct ibv_recv_wr wr = { .wr_id = id }, *bad;

	if (w.queues[1].srq)
		MUST(!ibv_post_srq_recv(w.queues[1].srq, &wr, &bad));
	else
		MUST(!ibv_post_recv(w.ends[1].id->qp, &wr, &bad));
}

static void message(void)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED }, *bad;
	struct ibv_wc wc;

	MUST(!ibv_post_send(w.ends[0].id->qp, &wr, &bad));
	complete(w.queues[0].scq, &wc);
	MUST(!wc.status);
}

/* Waits until all messages have arrived */
static void arrived(void)
{
	struct ibv_send_wr wr = {
		.opcode = IBV_WR_RDMA_READ, .send_flags = IBV_SEND_SIGNALED,
	}, *bad;
	struct ibv_wc wc;

	MUST(!ibv_post_send(w.ends[0].id->qp, &wr, &bad));
	complete(w.queues[0].scq, &wc);
	MUST(!wc.status);
}

static void round_of_cq(__u32 count)
{
	struct rxe_queue_buf *buf;
	struct ib_uverbs_wc *wc;
	struct mminfo ring;
	__u32 i, slot;

	begin(NULL, NULL, count);
	start(count);
	for (i = 0; i < count; i++) {
		post_recv(i);
		message();
		if (i % 16 == 15)
			arrived();
	}
	arrived();
	stop();
	MUST(!resize_cq(w.queues[1].rcq, count, &ring));
	buf = map(&ring);
	if (((buf->producer_index - buf->consumer_index) & buf->index_mask) != count)
		fail("%u to %u of %#x: not %u", buf->consumer_index, buf->producer_index,
		     buf->index_mask, count);
	for (i = 0; i < count; i++) {
		slot = (buf->consumer_index + i) & buf->index_mask;
		wc = (void *)(buf->data + slot * CQE_BYTES);
		if (wc->wr_id != i || wc->status)
			fail("completion %u is that of %llu, status %u", i,
			     (unsigned long long)wc->wr_id, wc->status);
	}
	MUST(!munmap(buf, ring.size));
	end_all();
}

static void round_of_srq(__u32 count)
{
	struct ibv_srq_init_attr init = { .attr = { .max_wr = count, .max_sge = 1 } };
	struct ibv_srq *srq = ibv_create_srq(w.sides[1].pd, &init);
	struct rxe_queue_buf *buf;
	struct rxe_recv_wqe *recv;
	struct mminfo ring;
	struct ibv_wc wc;
	__u32 i, left, slot;

	MUST(srq);
	begin(srq, NULL, 2 * count);
	for (i = 0; i < count; i++)
		post_recv(i);
	start(count);
	left = count / 4;
	for (i = 0; i < count - left; i++) {
		message();
		complete(w.queues[1].rcq, &wc);
		if (wc.wr_id != i || wc.status)
			fail("message %u took receive %llu: %s", i, (unsigned long long)wc.wr_id,
			     ibv_wc_status_str(wc.status));
	}
	stop();
	MUST(!resize_srq(srq, count, &ring));
	buf = map(&ring);
	MUST(((buf->producer_index - buf->consumer_index) & buf->index_mask) == left);
	for (i = 0; i < left; i++) {
		slot = (buf->consumer_index + i) & buf->index_mask;
		recv = (void *)(buf->data + slot * RQE_BYTES);
		MUST(recv->wr_id == count - left + i);
	}
	/* They can be taken, and no more. */
	for (i = 0; i < left; i++) {
		message();
		complete(w.queues[1].rcq, &wc);
		MUST(wc.wr_id == count - left + i && !wc.status);
	}
	MUST(buf->producer_index == buf->consumer_index);
	MUST(!munmap(buf, ring.size));
	end_all();
}

static void cq(void)
{
	static const __u32 counts[] = { 7, 31, 63, 200, 1000, 63, 500 };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(counts); i++)
		round_of_cq(counts[i]);
	printf("%lu calls\n", w.calls);
}

static void srq(void)
{
	static const __u32 counts[] = { 7, 31, 63, 200, 1000, 63, 500 };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(counts); i++)
		round_of_srq(counts[i]);
	printf("%lu calls\n", w.calls);
}

/* Events of the limit that have been raised; there are no others. */
static int limit_events(double seconds)
{
	struct ibv_context *ctx = w.sides[1].listener->verbs;
	struct pollfd fd = { .fd = ctx->async_fd, .events = POLLIN };
	struct ibv_async_event event;
	int count = 0;

	while (poll(&fd, 1, seconds * 1000) == 1) {
		MUST(!ibv_get_async_event(ctx, &event));
		MUST(event.event_type == IBV_EVENT_SRQ_LIMIT_REACHED);
		ibv_ack_async_event(&event);
		count++;
		seconds = 0;
	}
	return count;
}

static __u32 limit_now(void)
{
	struct ibv_srq_attr attr;

	MUST(!ibv_query_srq(w.queues[1].srq, &attr));
	return attr.srq_limit;
}

static void limit(void)
{
	struct ibv_srq_init_attr init = { .attr = { .max_wr = 255, .max_sge = 1 } };
	struct ibv_srq *srq = ibv_create_srq(w.sides[1].pd, &init);
	struct ibv_srq_attr attr = {};
	__u32 posted = 0, round, count, i;
	struct ibv_wc wc;
	int raised = 0;

	MUST(srq);
	begin(srq, NULL, 512);
	for (round = 0; round < 150; round++) {
		for (; posted < 200; posted++)
			post_recv(0);
		attr.srq_limit = 1 + pick(255);
		attr.max_wr = 220 + pick(100);
		attr.max_wr = attr.max_wr > attr.srq_limit ? attr.max_wr : attr.srq_limit;
		MUST(!ibv_modify_srq(srq, &attr, pick(2) ? IBV_SRQ_LIMIT :
				     IBV_SRQ_LIMIT | IBV_SRQ_MAX_WR));
		MUST(limit_now() == attr.srq_limit);
		count = 1 + pick(150);
		for (i = 0; i < count; i++) {
			message();
			complete(w.queues[1].rcq, &wc);
			MUST(!wc.status);
			posted--;
			if (!pick(50)) {
				struct ibv_srq_attr size = { .max_wr = 255 + pick(200) };

				MUST(!ibv_modify_srq(srq, &size, IBV_SRQ_MAX_WR));
			}
			if (posted < attr.srq_limit && !raised) {
				MUST(limit_events(patience()) == 1 && !limit_now());
				raised = 1;
			} else if (!raised) {
				MUST(limit_now() == attr.srq_limit);
			}
		}
		MUST(!limit_events(0));
		attr.srq_limit = 0;
		MUST(!ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT) && !limit_now());
		raised = 0;
	}
	end_all();
}

static void armed(void)
{
	struct ibv_context *ctx = w.sides[1].listener->verbs;
	struct ibv_comp_channel *channel = ibv_create_comp_channel(ctx);
	struct pollfd fd = { .events = POLLIN };
	struct ibv_wc wc;
	struct ibv_cq *cq;
	void *context;
	int i;

	MUST(channel);
	fd.fd = channel->fd;
	begin(NULL, channel, 50);
	for (i = 0; i < 200; i++) {
		MUST(!ibv_req_notify_cq(w.queues[1].rcq, 0));
		/* That does not narrow it. */
		if (pick(2))
			MUST(!ibv_req_notify_cq(w.queues[1].rcq, 1));
		MUST(!ibv_resize_cq(w.queues[1].rcq, 10 + pick(200)));
		post_recv(i);
		message();
		MUST(poll(&fd, 1, patience() * 1000) == 1);
		MUST(!ibv_get_cq_event(channel, &cq, &context));
		ibv_ack_cq_events(cq, 1);
		complete(w.queues[1].rcq, &wc);
		MUST(wc.wr_id == (__u64)i && !wc.status);
		MUST(!ibv_resize_cq(w.queues[1].rcq, 10 + pick(200)));
		post_recv(i);
		message();
		complete(w.queues[1].rcq, &wc);
		MUST(!poll(&fd, 1, 0));
	}
	end_all();
	MUST(!ibv_destroy_comp_channel(channel));
}

/**
 * main() - see the head of the file
 * @argc: number of arguments
 * @argv: the case
 *
 * Context: user space.
 * Return: 0, or 1 when something was wrong.
 */
int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} cases[] = {
		{ "cq", cq }, { "srq", srq }, { "limit", limit }, { "armed", armed },
	};
	size_t i;

	MUST(argc == 2);
	side_open(&w.sides[0], "a", "10.77.0.1", 7808);
	side_open(&w.sides[1], "b", "10.77.0.2", 7808);
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		if (strcmp(argv[1], cases[i].name))
			continue;
		cases[i].run();
		return 0;
	}
	fprintf(stderr, "usage: resize CASE\n");
	return 1;
}
