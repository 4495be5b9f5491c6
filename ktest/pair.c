// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Setting up and tearing down a pair of connected ends.
 *
 * Owns: the resources in &struct ktest_end. Contexts: process, except for the event handlers,
 * which only record the event and wake up waiters. No locks: events are bits set atomically.
 */
#include <linux/in.h>
#include <linux/inet.h>
#include <linux/jiffies.h>
#include <linux/mm.h>
#include <linux/string.h>

#include "ktest.h"

#define KTEST_PORT	7999
#define A4		0x0a4d0001
#define B4		0x0a4d0002
#define RESOLVE_MS	(KTEST_PATIENCE * 1000)

/* cm_events that mean the connection cannot be established */
#define CM_FAILURES	(BIT(RDMA_CM_EVENT_ADDR_ERROR) | BIT(RDMA_CM_EVENT_ROUTE_ERROR) | \
			 BIT(RDMA_CM_EVENT_CONNECT_ERROR) | BIT(RDMA_CM_EVENT_UNREACHABLE) | \
			 BIT(RDMA_CM_EVENT_REJECTED))

static int on_cm_event(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	struct ktest_end *end = id->context;

	if (event->event == RDMA_CM_EVENT_CONNECT_REQUEST) {
		if (end->id)
			return -EBUSY;
		end->id = id;
	}
	set_bit(event->event, &end->cm_events);
	wake_up_all(&end->pair->end[0].wait);
	wake_up_all(&end->pair->end[1].wait);
	return 0;
}

/* A handler may post. */
static void on_qp_event(struct ib_event *event, void *context)
{
	struct ktest_end *end = context;

	if (!end->srq && !test_bit(event->event, &end->qp_events))
		ktest_post_recv(end, &end->in_event, 0, 1);
	set_bit(event->event, &end->qp_events);
	wake_up_all(&end->wait);
}

static void on_cq_event(struct ib_event *event, void *context)
{
	struct ktest_end *end = context;

	atomic_inc(&end->cq_errors);
	wake_up_all(&end->wait);
}

static int wait_cm(struct ktest_end *end, enum rdma_cm_event_type event)
{
	wait_event_timeout(end->wait, READ_ONCE(end->cm_events) & (BIT(event) | CM_FAILURES),
			   KTEST_PATIENCE * HZ);
	return test_bit(event, &end->cm_events) ? 0 : -ETIMEDOUT;
}

/* Like wait_cm(), for a pair that is being connected: also stops waiting if the other end fails */
static int wait_both(struct ktest_pair *p, int i, enum rdma_cm_event_type event)
{
	unsigned long *events = &p->end[i].cm_events, *others = &p->end[!i].cm_events;

	wait_event_timeout(p->end[i].wait,
			   READ_ONCE(*events) & (BIT(event) | CM_FAILURES) ||
			   READ_ONCE(*others) & CM_FAILURES, KTEST_PATIENCE * HZ);
	return test_bit(event, events) ? 0 : -ETIMEDOUT;
}

/**
 * ktest_wait_cm_event() - wait for an event of rdma_cm
 * @end: the end
 * @event: the event; it may already have occurred
 *
 * Context: process, may sleep.
 */
void ktest_wait_cm_event(struct ktest_end *end, enum rdma_cm_event_type event)
{
	if (!end->pair->has_failed && wait_cm(end, event))
		ktest_fail(end->pair, __func__, __LINE__, rdma_event_msg(event), end->cm_events);
}

/**
 * ktest_wait_qp_event() - wait for an asynchronous event of the QP
 * @end: the end
 * @event: the event, which ends the connection; it may already have occurred
 *
 * Also waits for the receive that the handler has posted, unless there is a shared receive queue.
 *
 * Context: process, may sleep.
 */
void ktest_wait_qp_event(struct ktest_end *end, enum ib_event_type event)
{
	if (!end->pair->has_failed &&
	    !wait_event_timeout(end->wait, test_bit(event, &end->qp_events),
				KTEST_PATIENCE * HZ))
		ktest_fail(end->pair, __func__, __LINE__, ib_event_msg(event), end->qp_events);
	if (!end->pair->has_failed && !end->srq)
		ktest_wait(&end->in_event, IB_WC_WR_FLUSH_ERR);
}

static struct sockaddr_in address(u32 host, u16 port)
{
	struct sockaddr_in sin = {
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(host),
		.sin_port = htons(port),
	};

	return sin;
}

static int make_listener(struct ktest_pair *p)
{
	struct sockaddr_in sin = address(B4, KTEST_PORT);
	struct rdma_cm_id *id;
	int ret;

	id = rdma_create_id(p->net[1], on_cm_event, &p->end[1], RDMA_PS_TCP, IB_QPT_RC);
	if (IS_ERR(id))
		return PTR_ERR(id);
	p->listener = id;
	ret = rdma_bind_addr(id, (struct sockaddr *)&sin);
	return ret ? ret : rdma_listen(id, 1);
}

static int resolve(struct ktest_pair *p)
{
	struct sockaddr_in src = address(A4, 0), dst = address(B4, KTEST_PORT);
	struct ktest_end *end = &p->end[0];
	struct rdma_cm_id *id;
	int ret;

	id = rdma_create_id(p->net[0], on_cm_event, end, RDMA_PS_TCP, IB_QPT_RC);
	if (IS_ERR(id))
		return PTR_ERR(id);
	end->id = id;
	ret = rdma_resolve_addr(id, (struct sockaddr *)&src, (struct sockaddr *)&dst,
				RESOLVE_MS);
	if (!ret)
		ret = wait_cm(end, RDMA_CM_EVENT_ADDR_RESOLVED);
	if (!ret)
		ret = rdma_resolve_route(id, RESOLVE_MS);
	return ret ? ret : wait_cm(end, RDMA_CM_EVENT_ROUTE_RESOLVED);
}

static int make_srq(struct ktest_end *end)
{
	struct ib_srq_init_attr attr = {
		.attr = { .max_wr = KTEST_DEPTH, .max_sge = 1 },
		.srq_type = IB_SRQT_BASIC,
	};
	struct ib_srq *srq = ib_create_srq(end->pd, &attr);

	if (IS_ERR(srq))
		return PTR_ERR(srq);
	end->srq = srq;
	return 0;
}

static int make_cq(struct ktest_end *end)
{
	const struct ktest_opts *opts = end->pair->opts;
	int cqe = 4 * KTEST_DEPTH;
	struct ib_cq *cq;

	if (opts->cqe && end == &end->pair->end[0])
		cqe = opts->cqe;
	cq = ib_alloc_cq(end->id->device, end, cqe, 0, opts->poll);
	if (IS_ERR(cq))
		return PTR_ERR(cq);
	end->cq = cq;
	/* The core's own handler would only log the event. */
	cq->event_handler = on_cq_event;
	return 0;
}

static int make_qp(struct ktest_end *end)
{
	struct ib_qp_init_attr attr = {
		.event_handler = on_qp_event,
		.qp_context = end,
		.cap = {
			.max_send_wr = KTEST_DEPTH,
			.max_recv_wr = KTEST_DEPTH,
			.max_send_sge = 6,
			.max_recv_sge = 6,
			.max_inline_data = 64,
			.max_rdma_ctxs = 1,
		},
		.qp_type = IB_QPT_RC,
	};
	int ret;

	attr.send_cq = end->cq;
	attr.recv_cq = end->cq;
	attr.srq = end->srq;
	/* For rdma_rw the core would ask for more entries. */
	if (end->pair->opts->sends && end == &end->pair->end[0]) {
		attr.cap.max_send_wr = end->pair->opts->sends;
		attr.cap.max_rdma_ctxs = 0;
	}
	attr.sq_sig_type = end->pair->opts->with_rw ? IB_SIGNAL_REQ_WR : IB_SIGNAL_ALL_WR;
	ret = rdma_create_qp(end->id, end->pd, &attr);
	if (!ret)
		end->qp = end->id->qp;
	return ret;
}

static int make_pd(struct ktest_end *end)
{
	const struct ktest_pair *with = end->pair->with;
	struct ib_pd *pd;

	if (with)
		pd = with->end[end - end->pair->end].pd;
	else
		pd = ib_alloc_pd(end->id->device, end->pair->pd_flags);
	if (IS_ERR(pd))
		return PTR_ERR(pd);
	end->pd = pd;
	return 0;
}

/**
 * ktest_end_make() - make memory, queues and a QP for an end
 * @end: its cm_id is bound to a device
 *
 * Context: process, may sleep.
 * Return: 0 or -errno; the caller must call ktest_end_free() in either case.
 */
int ktest_end_make(struct ktest_end *end)
{
	int ret;

	end->mem = alloc_pages_exact(KTEST_MEM, GFP_KERNEL | __GFP_ZERO);
	if (!end->mem)
		return -ENOMEM;
	end->dma = ib_dma_map_single(end->id->device, end->mem, KTEST_MEM, DMA_BIDIRECTIONAL);
	ret = make_pd(end);
	if (!ret)
		ret = make_cq(end);
	if (!ret && end->pair->opts->with_srq)
		ret = make_srq(end);
	return ret ? ret : make_qp(end);
}

static int connect(struct ktest_pair *p)
{
	struct rdma_conn_param param = {
		.responder_resources = 8,
		.initiator_depth = 8,
	};
	int ret;

	ret = ktest_end_make(&p->end[0]);
	if (!ret && p->opts->before_connect)
		p->opts->before_connect(&p->end[0]);
	if (!ret)
		ret = rdma_connect(p->end[0].id, &param);
	if (!ret)
		ret = wait_both(p, 1, RDMA_CM_EVENT_CONNECT_REQUEST);
	if (!ret)
		ret = ktest_end_make(&p->end[1]);
	if (!ret) {
		/* For a cm_id that does not know its QP */
		param.qp_num = p->end[1].qp->qp_num;
		if (p->opts->before_accept)
			p->opts->before_accept(&p->end[1]);
		/* Outside an event handler the caller of rdma_accept() has to take this lock. */
		rdma_lock_handler(p->end[1].id);
		ret = rdma_accept(p->end[1].id, &param);
		rdma_unlock_handler(p->end[1].id);
	}
	if (!ret)
		ret = wait_both(p, 0, RDMA_CM_EVENT_ESTABLISHED);
	return ret ? ret : wait_both(p, 1, RDMA_CM_EVENT_ESTABLISHED);
}

/**
 * ktest_pair_another() - make another pair on the hosts of a pair
 * @p: the pair of a case; fails if there is no memory
 *
 * Context: process, may sleep.
 * Return: a pair with @p's options that is not open yet, to be freed with kvfree(); or NULL.
 */
struct ktest_pair *ktest_pair_another(struct ktest_pair *p)
{
	struct ktest_pair *another = kvzalloc(sizeof(*another), GFP_KERNEL);

	ktest_expect(p, another);
	if (!another)
		return NULL;
	memcpy(another->net, p->net, sizeof(p->net));
	another->opts = p->opts;
	return another;
}

/**
 * ktest_pair_open() - create two ends and connect them
 * @p: zeroed, except for @p->net, @p->opts, @p->with and @p->pd_flags
 *
 * Context: process, may sleep.
 * Return: 0 or -errno; the caller must call ktest_pair_close() in either case.
 */
int ktest_pair_open(struct ktest_pair *p)
{
	int ret, i;

	for (i = 0; i < 2; i++) {
		p->end[i].pair = p;
		init_waitqueue_head(&p->end[i].wait);
	}
	ret = make_listener(p);
	if (!ret)
		ret = resolve(p);
	if (!ret)
		ret = connect(p);
	/* Frees the port for another pair. */
	if (p->listener)
		rdma_destroy_id(p->listener);
	p->listener = NULL;
	return ret;
}

/**
 * ktest_end_free() - disconnect an end, and free what it has
 * @end: the end; may have nothing
 *
 * Context: process, may sleep.
 */
void ktest_end_free(struct ktest_end *end)
{
	if (!end->id)
		return;
	if (end->qp) {
		rdma_disconnect(end->id);
		ib_drain_qp(end->qp);
		rdma_destroy_qp(end->id);
	}
	if (end->mr)
		ib_dereg_mr(end->mr);
	if (end->srq)
		ib_destroy_srq(end->srq);
	if (end->cq)
		ib_free_cq(end->cq);
	if (end->pd && !end->pair->with)
		ib_dealloc_pd(end->pd);
	if (end->mem) {
		ib_dma_unmap_single(end->id->device, end->dma, KTEST_MEM, DMA_BIDIRECTIONAL);
		free_pages_exact(end->mem, KTEST_MEM);
	}
	rdma_destroy_id(end->id);
}

/**
 * ktest_pair_close() - tear down what ktest_pair_open() set up
 * @p: the pair; everything but the structure itself is freed
 *
 * Context: process, may sleep.
 */
void ktest_pair_close(struct ktest_pair *p)
{
	ktest_end_free(&p->end[0]);
	ktest_end_free(&p->end[1]);
}

/**
 * ktest_pair_reopen() - set up a new connection for the same case
 * @p: the pair; its old connection is torn down
 *
 * Context: process, may sleep.
 * Return: 0 or -errno; an error is logged as a failure.
 */
int ktest_pair_reopen(struct ktest_pair *p)
{
	int ret;

	ktest_pair_close(p);
	memset(p->end, 0, sizeof(p->end));
	ret = ktest_pair_open(p);
	if (ret)
		ktest_fail(p, __func__, __LINE__, "open", ret);
	return ret;
}
