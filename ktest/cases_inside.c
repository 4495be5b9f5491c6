// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Cases: races and limits inside the driver. To make two things happen at the same time, these
 * cases hold locks or disable tasklets of kiwarp until every participant waits for them, or set
 * fields of its objects to what they rarely are. They therefore depend on kiwarp's structures, and
 * do nothing on another driver. cases_smp.c has those that need two CPUs.
 *
 * Contexts: process; additional threads. Locks: kiw_qp.mutex and the socket lock of a stream,
 * in that order.
 */
#include <linux/mm.h>
#include <linux/scatterlist.h>
#include <linux/string.h>
#include <linux/tcp.h>
#include <net/sock.h>
#include <rdma/iw_cm.h>

#include "cm/cm_ep.h"
#include "queue/cq.h"
#include "device.h"
#include "inside.h"
#include "qp/qp.h"

/* A CQ is freed while its tasklet is scheduled */

static bool inside_sleeps(void *arg)
{
	struct inside_thread *t = arg;

	return completion_done(&t->done) ||
	       READ_ONCE(t->task->__state) & TASK_UNINTERRUPTIBLE;
}

static int inside_free_cq(void *arg)
{
	ib_free_cq(arg);
	return 0;
}

static void inside_no_completion(struct ib_cq *cq, struct ib_wc *wc)
{
}

/* Posts one completion to @cq, which is armed, through a QP that is destroyed again. */
static int inside_flush_one(struct ktest_end *end, struct ib_cq *cq)
{
	static struct ib_cqe cqe = { .done = inside_no_completion };
	struct ib_qp_init_attr attr = {
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_recv_sge = 1 },
		.qp_type = IB_QPT_RC,
		.send_cq = cq,
		.recv_cq = cq,
	};
	struct ib_sge sge = ktest_sge(end, 0, 64);
	struct ib_recv_wr wr = { .wr_cqe = &cqe, .sg_list = &sge, .num_sge = 1 };
	struct ib_qp *qp = ib_create_qp(end->pd, &attr);
	int ret;

	if (IS_ERR(qp))
		return PTR_ERR(qp);
	ret = ib_post_recv(qp, &wr, NULL);
	ib_destroy_qp(qp);
	return ret;
}

/* What stands in for the work item that polls: it begins, and ends when it is told to */
static struct {
	struct completion begun;
	struct completion go;
} inside_poll;

static void inside_poll_work(struct work_struct *work)
{
	complete(&inside_poll.begun);
	wait_for_completion(&inside_poll.go);
}

static bool inside_polls_or_freed(void *arg)
{
	struct inside_thread *t = arg;

	return completion_done(&inside_poll.begun) || completion_done(&t->done);
}

/*
 * The tasklet that announces a completion runs after ib_free_cq() has cancelled the work item
 * that polls, and queues it again. The CQ must not be freed before that work item has ended.
 */
static void cq_free_late(struct ktest_pair *p)
{
	struct ktest_end *end = &p->end[0];
	struct inside_thread freeing;
	struct tasklet_struct *notify;
	struct ib_cq *cq;

	if (!inside_is_kiwarp(end->id->device))
		return;
	cq = ib_alloc_cq(end->id->device, NULL, 4, 0, IB_POLL_WORKQUEUE);
	if (IS_ERR(cq)) {
		ktest_fail(p, __func__, __LINE__, "ib_alloc_cq", PTR_ERR(cq));
		return;
	}
	init_completion(&inside_poll.begun);
	init_completion(&inside_poll.go);
	cq->work.func = inside_poll_work;
	notify = &to_kiw_cq(cq)->notify;
	tasklet_disable(notify);
	ktest_expect_eq(p, inside_flush_one(end, cq), 0);
	ktest_expect(p, test_bit(TASKLET_STATE_SCHED, &notify->state));
	inside_start(p, &freeing, INSIDE_ANY_CPU, inside_free_cq, cq);
	inside_wait(p, inside_sleeps, &freeing);
	tasklet_enable(notify);
	/*
	 * The tasklet has woken that thread before it queues the work item. On another CPU the
	 * thread may cancel the work item before it begins.
	 */
	if (inside_wait(p, inside_polls_or_freed, &freeing) &&
	    completion_done(&inside_poll.begun) && inside_wait(p, inside_sleeps, &freeing))
		ktest_expect(p, !completion_done(&freeing.done));
	complete(&inside_poll.go);
	inside_join(&freeing);
}

/* Peers address memory of kernel consumers by its offset in a page, and learn no kernel address. */
static void fast_offset(struct ktest_pair *p)
{
	struct ktest_end *end = &p->end[1];
	struct scatterlist sg;
	struct ib_mr *mr;

	if (!inside_is_kiwarp(end->id->device))
		return;
	mr = ib_alloc_mr(end->pd, IB_MR_TYPE_MEM_REG, 1);
	if (IS_ERR(mr)) {
		ktest_fail(p, __func__, __LINE__, "ib_alloc_mr", PTR_ERR(mr));
		return;
	}
	sg_init_one(&sg, end->mem + PAGE_SIZE + 72, 64);
	ktest_expect_eq(p, ib_dma_map_sg(end->id->device, &sg, 1, DMA_BIDIRECTIONAL), 1);
	ktest_expect_eq(p, ib_map_mr_sg(mr, &sg, 1, NULL, PAGE_SIZE), 1);
	ktest_expect_eq(p, mr->iova, 72);
	ktest_expect_eq(p, mr->length, 64);
	ib_dma_unmap_sg(end->id->device, &sg, 1, DMA_BIDIRECTIONAL);
	ib_dereg_mr(mr);
}

/* A QP is reset while a connection is established and ends */

static int inside_modify(struct kiw_qp *qp, enum ib_qp_state state)
{
	struct ib_qp_attr attr = { .qp_state = state };

	return ib_modify_qp(&qp->ib, &attr, IB_QP_STATE);
}

static int inside_reset(void *arg)
{
	return inside_modify(arg, IB_QPS_RESET);
}

static int inside_abort(void *arg)
{
	return inside_modify(arg, IB_QPS_ERR);
}

#ifdef KIW_HAS_MUTEX_WAIT_LIST
static unsigned int inside_count_waiters(struct mutex *mutex)
{
	struct list_head *waiter;
	unsigned int n = 0;

	list_for_each(waiter, &mutex->wait_list)
		n++;
	return n;
}
#else
/* The waiters are in a ring. Their structure is private, but begins with its entry in the ring. */
static unsigned int inside_count_waiters(struct mutex *mutex)
{
	struct list_head *first = (struct list_head *)mutex->first_waiter;
	struct list_head *waiter;
	unsigned int n = first ? 1 : 0;

	if (first)
		list_for_each(waiter, first)
			n++;
	return n;
}
#endif

static bool inside_all_wait(void *arg)
{
	struct inside_accept *a = arg;
	struct mutex *mutex = &a->qp->mutex;
	unsigned int n;

	raw_spin_lock(&mutex->wait_lock);
	n = inside_count_waiters(mutex);
	raw_spin_unlock(&mutex->wait_lock);
	return n >= a->waiters;
}

static bool inside_is_connected(void *arg)
{
	struct inside_accept *a = arg;

	return kiw_qp_state(a->qp) != KIW_QPS_IDLE;
}

static bool inside_is_aborted(void *arg)
{
	struct inside_accept *a = arg;

	return kiw_qp_state(a->qp) == KIW_QPS_ERROR;
}

/*
 * Two threads wait for the QP's mutex: first the accept, then a reset that has found the QP
 * idle. The accept connects the QP and is stopped there by the socket lock while a third thread
 * aborts. So the reset finds the QP in ERROR, with a connection whose end was not reported yet.
 */
static void inside_race(struct ktest_pair *p, struct inside_accept *a)
{
	struct inside_thread resetting, aborting;

	mutex_lock(&a->qp->mutex);
	complete(&a->go);
	a->waiters = 1;
	inside_wait(p, inside_all_wait, a);
	inside_start(p, &resetting, INSIDE_ANY_CPU, inside_reset, a->qp);
	a->waiters = 2;
	inside_wait(p, inside_all_wait, a);
	lock_sock(a->sk);
	mutex_unlock(&a->qp->mutex);
	inside_wait(p, inside_is_connected, a);
	inside_start(p, &aborting, INSIDE_ANY_CPU, inside_abort, a->qp);
	inside_wait(p, inside_is_aborted, a);
	release_sock(a->sk);
	ktest_expect_eq(p, inside_join(&resetting), 0);
	ktest_expect_eq(p, inside_join(&aborting), 0);
}

static void inside_reset_report(struct ktest_pair *p, struct inside_accept *a,
				struct inside_thread *opening)
{
	inside_race(p, a);
	ktest_expect(p, !a->qp->ks);
	/* If the accept finds its stream gone, rdma_cm moves the QP to ERROR. */
	ktest_expect(p, kiw_qp_state(a->qp) == KIW_QPS_IDLE ||
		     kiw_qp_state(a->qp) == KIW_QPS_ERROR);
	/* It may have succeeded or failed, depending on how far it got. */
	inside_join(opening);
}

static void reset_report(struct ktest_pair *p)
{
	inside_accepting(p, INSIDE_ANY_CPU, inside_reset_report);
}

/* An accept fails late, when its QP already has the next connection */

static void inside_next_spoken(void *conn)
{
}

/* Also tells the original connection, which would not be told of its end otherwise. */
static void inside_next_closed(void *conn)
{
	struct inside_accept *a = conn;

	WRITE_ONCE(a->is_closed, true);
	a->params.ops->closed(a->params.conn);
}

static const struct kiw_conn_ops inside_next_ops = {
	.spoken = inside_next_spoken,
	.closed = inside_next_closed,
};

/*
 * The accept has connected its QP and, holding the QP's mutex, is stopped by the socket lock
 * where it hands over the stream. The test then changes the QP as if it had been reset and
 * connected again, and shuts down the sending side of the stream. So the accept cannot send its
 * Reply and aborts a connection that is no longer its own.
 *
 * rdma_cm moves the QP of a cm_id to ERROR when an accept fails, so the test hides the QP from
 * the cm_id; rdma_accept() gets it by number.
 */
static void inside_late_abort(struct ktest_pair *p, struct inside_accept *a,
			      struct inside_thread *opening)
{
	struct rdma_cm_id *id = a->pair->end[1].id;

	id->qp = NULL;
	lock_sock(a->sk);
	complete(&a->go);
	if (inside_wait(p, inside_is_connected, a)) {
		a->params = a->qp->conn;
		a->qp->conn.ops = &inside_next_ops;
		a->qp->conn.conn = a;
		a->sk->sk_shutdown |= SEND_SHUTDOWN;
	}
	release_sock(a->sk);
	ktest_expect_eq(p, inside_join(opening), -EPIPE);
	flush_work(&a->qp->work);
	ktest_expect_eq(p, kiw_qp_state(a->qp), KIW_QPS_RTS);
	ktest_expect(p, !READ_ONCE(a->is_closed));
	id->qp = &a->qp->ib;
	if (!a->params.ops)
		return;
	mutex_lock(&a->qp->mutex);
	a->qp->conn = a->params;
	mutex_unlock(&a->qp->mutex);
}

static void late_abort(struct ktest_pair *p)
{
	inside_accepting(p, INSIDE_ANY_CPU, inside_late_abort);
}

/* The tasklet of a QP runs late */

static bool inside_has_no_sock(void *arg)
{
	struct kiw_qp *qp = arg;

	return !READ_ONCE(qp->ks->sock);
}

/*
 * The tasklet runs when the stream has ended and its socket is gone, and leaves it to the work item
 * to run the engines. That finds no socket, either.
 */
static void run_late(struct ktest_pair *p)
{
	struct ktest_end *end = &p->end[0];
	struct kiw_qp *qp;

	if (!inside_is_kiwarp(end->id->device))
		return;
	qp = to_kiw_qp(end->qp);
	ktest_expect_eq(p, inside_modify(qp, IB_QPS_ERR), 0);
	if (!inside_wait(p, inside_has_no_sock, qp))
		return;
	tasklet_schedule(&qp->bh);
	tasklet_kill(&qp->bh);
	flush_work(&qp->work);
	ktest_expect_eq(p, kiw_qp_state(qp), KIW_QPS_ERROR);
	ktest_expect_eq(p, READ_ONCE(qp->todo), 0);
}

/* A process owns the socket */

static void inside_post_owned(struct ktest_end *end, struct ktest_wr *w, bool irqs_off)
{
	struct ib_send_wr wr = { .opcode = IB_WR_SEND };
	struct kiw_qp *qp = to_kiw_qp(end->qp);
	struct sock *sk = qp->ks->sock->sk;
	unsigned long flags;

	lock_sock(sk);
	if (irqs_off)
		local_irq_save(flags);
	ktest_post(end, w, &wr);
	if (irqs_off)
		local_irq_restore(flags);
	tasklet_kill(&qp->bh);
	release_sock(sk);
}

/*
 * Neither a poster nor, if interrupts are off while it posts, the tasklet can run the engine then.
 * The work item does when the socket is free. Nothing else would.
 */
static void socket_owned(struct ktest_pair *p)
{
	struct ktest_end *end = &p->end[0];
	struct ktest_end *peer = &p->end[1];
	int i;

	if (!inside_is_kiwarp(end->id->device))
		return;
	for (i = 0; i < 2; i++) {
		ktest_post_recv(peer, &peer->recvs[i], 0, 64);
		inside_post_owned(end, &end->sends[i], i);
		ktest_wait(&end->sends[i], IB_WC_SUCCESS);
		ktest_wait(&peer->recvs[i], IB_WC_SUCCESS);
	}
}

/* A completion handler posts */

/* A receive whose handler, at the same end, posts the first send */
static struct inside_later {
	struct ib_cqe cqe;
	struct ktest_end *end;
	bool is_deferred;
	struct completion done;
} inside_later;

static void inside_post_later(struct ib_cq *cq, struct ib_wc *wc)
{
	struct inside_later *later = container_of(wc->wr_cqe, struct inside_later, cqe);
	struct ib_send_wr wr = { .opcode = IB_WR_SEND };

	ktest_post(later->end, &later->end->sends[0], &wr);
	later->is_deferred = READ_ONCE(to_kiw_cq(cq)->deferred);
	complete(&later->done);
}

static bool inside_has_posted(void *arg)
{
	struct inside_later *later = arg;

	return completion_done(&later->done);
}

/* What the handler has posted waits until ib_core's worker has called the handlers of all. */
static void posts_later(struct ktest_pair *p)
{
	struct inside_later *later = &inside_later;
	struct ktest_end *end = &p->end[1];
	struct ib_sge sge = ktest_sge(end, 0, 64);
	struct ib_recv_wr recv = { .wr_cqe = &later->cqe, .sg_list = &sge, .num_sge = 1 };
	struct ib_send_wr send = { .opcode = IB_WR_SEND };

	if (!inside_is_kiwarp(end->id->device))
		return;
	*later = (struct inside_later) { .cqe.done = inside_post_later, .end = end };
	init_completion(&later->done);
	ktest_expect_eq(p, ib_post_recv(end->qp, &recv, NULL), 0);
	ktest_post_recv(&p->end[0], &p->end[0].recvs[0], 0, 64);
	ktest_post(&p->end[0], &p->end[0].sends[0], &send);
	if (!inside_wait(p, inside_has_posted, later))
		return;
	ktest_wait(&end->sends[0], IB_WC_SUCCESS);
	ktest_wait(&p->end[0].recvs[0], IB_WC_SUCCESS);
	ktest_expect(p, later->is_deferred);
}

/* There is no memory for what a peer requests */

/* The end that is asked: its QP, and the socket of its stream, which the case holds */
struct inside_asked {
	struct kiw_qp *qp;
	struct sock *sk;
};

static bool inside_has_data(void *arg)
{
	struct inside_asked *a = arg;

	return !skb_queue_empty_lockless(&a->sk->sk_receive_queue) ||
	       kiw_qp_state(a->qp) != KIW_QPS_RTS;
}

static void inside_set_inq_size(struct inside_asked *a, u32 size)
{
	lock_sock(a->sk);
	a->qp->tx.inq.size = size;
	release_sock(a->sk);
}

/*
 * The first Read of the peer needs a queue. Until there is memory for it, the request stays where
 * it is. No memory is as large as what is asked for here.
 */
static void read_put_off(struct ktest_pair *p)
{
	struct ktest_end *end = &p->end[0];
	struct ib_sge sge = ktest_sge(end, 0, PAGE_SIZE);
	struct ib_rdma_wr wr = {
		.wr = { .opcode = IB_WR_RDMA_READ, .sg_list = &sge, .num_sge = 1 },
	};
	struct inside_asked asked;
	u32 size;

	if (!inside_is_kiwarp(end->id->device))
		return;
	asked.qp = to_kiw_qp(p->end[1].qp);
	asked.sk = asked.qp->ks->sock->sk;
	sock_hold(asked.sk);
	ktest_expose(&p->end[1], IB_ACCESS_REMOTE_READ);
	ktest_expect(p, !asked.qp->tx.inq.slots);
	memset(p->end[1].mem, 0x5a, PAGE_SIZE);
	wr.remote_addr = p->end[1].mr->iova;
	wr.rkey = p->end[1].mr->rkey;
	size = asked.qp->tx.inq.size;
	inside_set_inq_size(&asked, 1 << 24);
	ktest_post(end, &end->sends[0], &wr.wr);
	inside_wait(p, inside_has_data, &asked);
	/* Whatever processes what has arrived has run. */
	lock_sock(asked.sk);
	release_sock(asked.sk);
	tasklet_kill(&asked.qp->bh);
	flush_work(&asked.qp->work);
	ktest_expect_eq(p, atomic_read(&end->sends[0].count), 0);
	ktest_expect_eq(p, kiw_qp_state(asked.qp), KIW_QPS_RTS);
	inside_set_inq_size(&asked, size);
	sock_put(asked.sk);
	ktest_wait(&end->sends[0], IB_WC_SUCCESS);
	ktest_expect(p, !memchr_inv(end->mem, 0x5a, PAGE_SIZE));
}

/* There is no room for what is to be sent */

/* Put as many fragments into the batch as it can have. They are empty. */
static void inside_fill_batch(struct sock *sk, struct kiw_txbuf *buf)
{
	lock_sock(sk);
	while (buf->num < KIW_TXBUF_BVECS) {
		get_page(ZERO_PAGE(0));
		buf->bv[buf->num++] = (struct bio_vec){ .bv_page = ZERO_PAGE(0) };
	}
	release_sock(sk);
}

/* Take them out again, unless the driver has dropped them because the QP has ended */
static void inside_empty_batch(struct sock *sk, struct kiw_txbuf *buf)
{
	lock_sock(sk);
	while (buf->num && buf->bv[buf->num - 1].bv_page == ZERO_PAGE(0))
		put_page(buf->bv[--buf->num].bv_page);
	release_sock(sk);
}

/* Immediate Data stays what is to be sent next until there is room. */
static void imm_put_off(struct ktest_pair *p)
{
	struct ktest_end *end = &p->end[0], *peer = &p->end[1];
	struct ib_rdma_wr wr = {
		.wr = { .opcode = IB_WR_RDMA_WRITE_WITH_IMM, .ex.imm_data = cpu_to_be32(7) },
	};
	struct kiw_qp *qp;
	struct sock *sk;

	if (!inside_is_kiwarp(end->id->device))
		return;
	qp = to_kiw_qp(end->qp);
	sk = qp->ks->sock->sk;
	sock_hold(sk);
	ktest_post_recv(peer, &peer->recvs[0], 0, 64);
	inside_fill_batch(sk, &qp->tx.buf);
	ktest_post(end, &end->sends[0], &wr.wr);
	tasklet_kill(&qp->bh);
	flush_work(&qp->work);
	ktest_expect_eq(p, READ_ONCE(qp->tx.kind), KIW_TX_IMMEDIATE);
	inside_empty_batch(sk, &qp->tx.buf);
	sock_put(sk);
	ktest_wait(&end->sends[0], IB_WC_SUCCESS);
	ktest_wait(&peer->recvs[0], IB_WC_SUCCESS);
}

/* The octets that TCP has got */

/* The difference of TCP's count and the engine's, which is constant */
static u32 inside_offset(struct kiw_qp *qp, struct sock *sk)
{
	u32 offset;

	lock_sock(sk);
	offset = qp->tx.offset - qp->tx.buf.len - tcp_sk(sk)->write_seq;
	release_sock(sk);
	return offset;
}

/*
 * The engine counts each octet of the stream, also those of pages that are lent. The end that
 * connects lends none, because memory reclaim may depend on its stream.
 */
static void offset_counts(struct ktest_pair *p)
{
	struct ktest_end *end = &p->end[1], *peer = &p->end[0];
	struct ib_sge sge = ktest_sge(end, 0, 65537);
	struct ib_rdma_wr wr = {
		.wr = { .opcode = IB_WR_RDMA_WRITE, .sg_list = &sge, .num_sge = 1 },
	};
	struct sock *sk;
	u32 before;

	if (!inside_is_kiwarp(end->id->device))
		return;
	sk = to_kiw_qp(end->qp)->ks->sock->sk;
	sock_hold(sk);
	ktest_expose(peer, IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE);
	if (!READ_ONCE(p->has_failed)) {
		before = inside_offset(to_kiw_qp(end->qp), sk);
		wr.remote_addr = peer->mr->iova;
		wr.rkey = peer->mr->rkey;
		ktest_post(end, &end->sends[0], &wr.wr);
		ktest_wait(&end->sends[0], IB_WC_SUCCESS);
		ktest_expect_eq(p, inside_offset(to_kiw_qp(end->qp), sk), before);
	}
	sock_put(sk);
}

/* A QP ends before its engines have started */

/* A CQ is overrun, and the QP is aborted: the peer gets FIN and no Terminate. */
static void term_unstarted(struct ktest_pair *p)
{
	struct ktest_end *end = &p->end[0], *peer = &p->end[1];
	struct kiw_cq *cq;
	struct kiw_qp *qp;
	struct sock *sk;

	if (!inside_is_kiwarp(end->id->device))
		return;
	qp = to_kiw_qp(end->qp);
	cq = to_kiw_cq(end->cq);
	sk = qp->ks->sock->sk;
	lock_sock(sk);
	qp->rx.is_running = false;
	qp->tx.is_running = false;
	release_sock(sk);
	cq->overrun(cq);
	flush_work(&qp->work);
	ktest_expect_eq(p, kiw_qp_state(qp), KIW_QPS_TERMINATE);
	ktest_expect_eq(p, inside_modify(qp, IB_QPS_ERR), 0);
	ktest_wait_cm_event(peer, RDMA_CM_EVENT_DISCONNECTED);
	ktest_expect_eq(p, READ_ONCE(to_kiw_qp(peer->qp)->term), 0);
}

/* A Terminate was sent */

static u32 inside_end_of_stream(struct kiw_qp *qp, struct sock *sk)
{
	u32 offset;

	lock_sock(sk);
	offset = qp->tx.offset;
	release_sock(sk);
	return offset;
}

/* Nothing follows it, also if the QP is not in TERMINATE. Here it is still in RTS. */
static void term_last(struct ktest_pair *p)
{
	struct ktest_end *end = &p->end[0];
	struct ib_send_wr wr = { .opcode = IB_WR_SEND };
	struct kiw_qp *qp;
	struct sock *sk;
	u32 before;

	if (!inside_is_kiwarp(end->id->device))
		return;
	qp = to_kiw_qp(end->qp);
	sk = qp->ks->sock->sk;
	sock_hold(sk);
	lock_sock(sk);
	qp->tx.has_terminated = true;
	release_sock(sk);
	before = inside_end_of_stream(qp, sk);
	ktest_post(end, &end->sends[0], &wr);
	tasklet_kill(&qp->bh);
	flush_work(&qp->work);
	ktest_expect_eq(p, inside_end_of_stream(qp, sk), before);
	sock_put(sk);
	ktest_expect_eq(p, inside_modify(qp, IB_QPS_ERR), 0);
	ktest_wait(&end->sends[0], IB_WC_WR_FLUSH_ERR);
}

/* A send queue whose work requests are fetched when, and as what, a case wants */

static struct inside_sq {
	struct kiw_sq_ops ops;
	const struct kiw_sq_ops *real;
	u32 fetches;	/* That many succeed */
	bool is_bad;	/* What is fetched is malformed */
} inside_sq;

static int inside_sq_fetch(struct kiw_sq *sq, struct kiw_swqe *wqe)
{
	int ret = 0;

	if (inside_sq.fetches)
		ret = inside_sq.real->fetch(sq, wqe);
	if (ret <= 0)
		return ret;
	inside_sq.fetches--;
	return inside_sq.is_bad ? -EINVAL : ret;
}

static void inside_set_sq_ops(struct kiw_sq *sq, const struct kiw_sq_ops *ops)
{
	spin_lock_irq(&sq->lock);
	sq->ops = ops;
	spin_unlock_irq(&sq->lock);
}

static void inside_hold_sq(struct kiw_sq *sq, u32 fetches, bool is_bad)
{
	inside_sq.real = sq->ops;
	inside_sq.ops = *sq->ops;
	inside_sq.ops.fetch = inside_sq_fetch;
	inside_sq.fetches = fetches;
	inside_sq.is_bad = is_bad;
	inside_set_sq_ops(sq, &inside_sq.ops);
}

static void inside_fetch(struct kiw_sq *sq, u32 fetches)
{
	unsigned long flags;

	spin_lock_irqsave(&sq->lock, flags);
	inside_sq.fetches = fetches;
	spin_unlock_irqrestore(&sq->lock, flags);
}

/* A Read arrives, and it is the turn of a work request, which is malformed: no Response begins. */
static void bad_before_response(struct ktest_pair *p)
{
	struct ktest_end *end = &p->end[0], *peer = &p->end[1];
	struct ib_send_wr wr = { .opcode = IB_WR_SEND };
	struct ib_sge sge = ktest_sge(peer, 0, 64);
	struct ib_rdma_wr read = {
		.wr = { .opcode = IB_WR_RDMA_READ, .sg_list = &sge, .num_sge = 1 },
	};
	struct kiw_qp *qp;
	struct sock *sk;

	if (!inside_is_kiwarp(end->id->device))
		return;
	qp = to_kiw_qp(end->qp);
	sk = qp->ks->sock->sk;
	ktest_expose(end, IB_ACCESS_REMOTE_READ);
	ktest_post_recv(peer, &peer->recvs[0], 0, 64);
	ktest_post(end, &end->sends[0], &wr);
	ktest_wait(&end->sends[0], IB_WC_SUCCESS);
	ktest_wait(&peer->recvs[0], IB_WC_SUCCESS);
	if (READ_ONCE(p->has_failed))
		return;
	inside_hold_sq(&qp->sq, 0, true);
	ktest_post(end, &end->sends[1], &wr);
	tasklet_kill(&qp->bh);
	flush_work(&qp->work);
	lock_sock(sk);
	qp->tx.prefer_response = false;
	inside_fetch(&qp->sq, 1);
	release_sock(sk);
	read.remote_addr = end->mr->iova;
	read.rkey = end->mr->rkey;
	ktest_post(peer, &peer->sends[0], &read.wr);
	ktest_wait(&end->sends[1], IB_WC_LOC_QP_OP_ERR);
	ktest_wait(&peer->sends[0], IB_WC_REM_OP_ERR);
	inside_set_sq_ops(&qp->sq, inside_sq.real);
}

/* A CQ that aborts the QP when it gets its next completion, as another CPU may at that moment */

static struct inside_cq {
	struct kiw_cq_ops ops;
	const struct kiw_cq_ops *real;
	struct kiw_qp *qp;
	bool has_aborted;
} inside_cq;

static bool inside_cq_put(struct kiw_cq *cq, const struct kiw_wc *wc)
{
	struct kiw_qp *qp = inside_cq.qp;

	cq->ops = inside_cq.real;
	/* The lock of the QP cannot be taken here. Nothing else happens to the QP at this time. */
	WRITE_ONCE(qp->state, KIW_QPS_ERROR);
	qp->todo |= KIW_QPA_FLUSH | KIW_QPA_DROP | KIW_QPA_REPORT;
	queue_work(qp->wq, &qp->work);
	inside_cq.has_aborted = true;
	inside_fetch(&qp->sq, 1);
	return cq->ops->put(cq, wc);
}

static void inside_abort_at_completion(struct kiw_cq *cq, struct kiw_qp *qp)
{
	spin_lock_irq(&cq->lock);
	inside_cq.real = cq->ops;
	inside_cq.ops = *cq->ops;
	inside_cq.ops.put = inside_cq_put;
	inside_cq.qp = qp;
	inside_cq.has_aborted = false;
	cq->ops = &inside_cq.ops;
	spin_unlock_irq(&cq->lock);
}

/* TCP has got the first Send when the QP is aborted. The second is not begun, and TCP sends FIN. */
static void abort_after_push(struct ktest_pair *p)
{
	struct ktest_end *end = &p->end[0], *peer = &p->end[1];
	struct ib_send_wr wr = { .opcode = IB_WR_SEND };
	struct kiw_qp *qp;

	if (!inside_is_kiwarp(end->id->device))
		return;
	qp = to_kiw_qp(end->qp);
	ktest_post_recv(peer, &peer->recvs[0], 0, 64);
	inside_hold_sq(&qp->sq, 0, false);
	ktest_post(end, &end->sends[0], &wr);
	ktest_post(end, &end->sends[1], &wr);
	tasklet_kill(&qp->bh);
	flush_work(&qp->work);
	inside_abort_at_completion(to_kiw_cq(end->cq), qp);
	inside_fetch(&qp->sq, 1);
	tasklet_schedule(&qp->bh);
	ktest_wait(&end->sends[0], IB_WC_SUCCESS);
	ktest_wait(&end->sends[1], IB_WC_WR_FLUSH_ERR);
	ktest_wait(&peer->recvs[0], IB_WC_SUCCESS);
	flush_work(&qp->work);
	ktest_expect(p, inside_cq.has_aborted);
	ktest_expect(p, test_bit(KIW_SOCKF_LINGERING, &qp->ks->flags));
	inside_set_sq_ops(&qp->sq, inside_sq.real);
}

/* A stream ends in order */

static bool inside_is_last(void *arg)
{
	struct sock *sk = arg;

	return refcount_read(&sk->sk_refcnt) == 1;
}

/* Nothing of the driver holds the sockets afterwards. */
static void stream_freed(struct ktest_pair *p)
{
	struct sock *sk[2];
	int i;

	if (!inside_is_kiwarp(p->end[0].id->device))
		return;
	for (i = 0; i < 2; i++) {
		sk[i] = to_kiw_qp(p->end[i].qp)->ks->sock->sk;
		sock_hold(sk[i]);
	}
	rdma_disconnect(p->end[0].id);
	for (i = 0; i < 2; i++)
		ktest_wait_cm_event(&p->end[i], RDMA_CM_EVENT_DISCONNECTED);
	for (i = 0; i < 2; i++) {
		rdma_destroy_qp(p->end[i].id);
		p->end[i].qp = NULL;
	}
	for (i = 0; i < 2; i++) {
		inside_wait(p, inside_is_last, sk[i]);
		/* Pairs with the release of the stream's reference. */
		smp_rmb();
		/* Nothing leads from it to what was freed. */
		ktest_expect(p, !READ_ONCE(sk[i]->sk_user_data));
		sock_put(sk[i]);
	}
}

/* Softirqs have left the engines to the engine work item */

static void inside_run_engine_work(struct kiw_qp *qp)
{
	queue_work(qp->engine_wq, &qp->engine_work);
	flush_work(&qp->engine_work);
}

/*
 * The engine work item cancels the takeover, which is far off here. If a process owns the socket,
 * it does not, and leaves the engines to the work item, which waits for the socket.
 */
static void engine_work(struct ktest_pair *p)
{
	struct ktest_end *end = &p->end[0];
	struct kiw_qp *qp;
	struct sock *sk;

	if (!inside_is_kiwarp(end->id->device))
		return;
	qp = to_kiw_qp(end->qp);
	sk = qp->ks->sock->sk;
	flush_work(&qp->work);
	lock_sock(sk);
	qp->gave_way = true;
	mod_delayed_work(qp->wq, &qp->takeover, 600 * HZ);
	inside_run_engine_work(qp);
	ktest_expect(p, work_busy(&qp->work));
	ktest_expect(p, delayed_work_pending(&qp->takeover));
	release_sock(sk);
	flush_work(&qp->work);
	ktest_expect(p, !READ_ONCE(qp->gave_way));
	inside_run_engine_work(qp);
	ktest_expect(p, !delayed_work_pending(&qp->takeover));
}

/* A QP is destroyed while a startup for it begins */

/* The number by which rdma_cm knows the QP of the attempt below */
static u32 inside_number;

/* No lookup finds a QP under the number 0. rdma_cm passes the number that it has noted before. */
static void inside_hide(struct ktest_end *end)
{
	inside_number = end->qp->qp_num;
	end->qp->qp_num = 0;
}

static const struct ktest_opts inside_hide_opts = {
	.poll = IB_POLL_SOFTIRQ,
	.before_connect = inside_hide,
};

/*
 * kiw_destroy_qp() hides a QP, and ends the startups that it finds. A startup that has found the QP
 * before, and joins it afterwards, is not among them: it has to end by itself. For this startup the
 * QP is there when it is looked up by rdma_cm's number, and hidden when it is looked up by its own.
 */
static void connect_destroyed(struct ktest_pair *p)
{
	struct ktest_pair *late;
	struct ktest_end *end;

	if (!inside_is_kiwarp(p->end[0].id->device))
		return;
	late = ktest_pair_another(p);
	if (!late)
		return;
	late->opts = &inside_hide_opts;
	end = &late->end[0];
	ktest_expect_eq(p, ktest_pair_open(late), -ETIMEDOUT);
	ktest_expect_eq(p, end->cm_events & ~(BIT(RDMA_CM_EVENT_ADDR_RESOLVED) |
					      BIT(RDMA_CM_EVENT_ROUTE_RESOLVED)),
			BIT(RDMA_CM_EVENT_CONNECT_ERROR));
	ktest_expect_eq(p, late->end[1].cm_events, 0);
	if (end->qp) {
		ktest_expect(p, list_empty(&to_kiw_qp(end->qp)->startups));
		end->qp->qp_num = inside_number;
	}
	ktest_pair_close(late);
	kvfree(late);
}

/* A request is rejected after it was accepted */

#define INSIDE_SENDS	8

/*
 * iw_cm rejects what it does not know to be established yet, such as a request that a kernel
 * consumer has just accepted. rdma_reject() at that moment would crash iw_cm as soon as it hears of
 * the connection (kernel-faults.rst), so this calls the driver as iw_cm does. The driver refuses,
 * as it refuses to accept the request again, and the connection goes on.
 */
static void reject_accepted(struct ktest_pair *p)
{
	struct iw_cm_conn_param again = { .ord = 1, .ird = 1 };
	struct iw_cm_id *id;
	struct kiw_ep *ep;
	int i, e;

	if (!inside_is_kiwarp(p->end[1].id->device))
		return;
	ep = to_kiw_qp(p->end[1].qp)->conn.conn;
	id = ep->cm_id;
	again.qpn = p->end[1].qp->qp_num;
	ktest_expect_eq(p, id->device->ops.iw_reject(id, "no", 2), -EINVAL);
	ktest_expect_eq(p, id->device->ops.iw_accept(id, &again), -ECONNABORTED);
	ktest_post_both(p, INSIDE_SENDS, 128 * PAGE_SIZE, 0, PAGE_SIZE);
	for (i = 0; i < INSIDE_SENDS; i++) {
		for (e = 0; e < 2; e++) {
			ktest_wait(&p->end[e].recvs[i], IB_WC_SUCCESS);
			ktest_wait(&p->end[e].sends[i], IB_WC_SUCCESS);
		}
	}
}

/* A device has as many objects as it can have */

/**
 * struct inside_kind - a kind of objects whose number is limited
 * @name: for the log
 * @count: offset of their number in &struct kiw_device
 * @limit: the most of them
 * @make: makes one. Return: the object or ERR_PTR()
 * @unmake: undoes it
 */
struct inside_kind {
	const char *name;
	size_t count;
	int limit;
	void *(*make)(struct ktest_end *end);
	void (*unmake)(void *object);
};

static void *many_make_qp(struct ktest_end *end)
{
	struct ib_qp_init_attr attr = {
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_recv_sge = 1 },
		.qp_type = IB_QPT_RC,
		.send_cq = end->cq,
		.recv_cq = end->cq,
	};

	return ib_create_qp(end->pd, &attr);
}

static void many_unmake_qp(void *qp)
{
	ib_destroy_qp(qp);
}

static void *many_make_cq(struct ktest_end *end)
{
	return ib_alloc_cq(end->id->device, NULL, 4, 0, IB_POLL_DIRECT);
}

static void many_unmake_cq(void *cq)
{
	ib_free_cq(cq);
}

static void *many_make_srq(struct ktest_end *end)
{
	struct ib_srq_init_attr attr = {
		.attr = { .max_wr = 1, .max_sge = 1 },
		.srq_type = IB_SRQT_BASIC,
	};

	return ib_create_srq(end->pd, &attr);
}

static void many_unmake_srq(void *srq)
{
	ib_destroy_srq(srq);
}

static void *many_make_mr(struct ktest_end *end)
{
	return ib_alloc_mr(end->pd, IB_MR_TYPE_MEM_REG, 1);
}

static void many_unmake_mr(void *mr)
{
	ib_dereg_mr(mr);
}

#define INSIDE_KIND(kind, most) \
	{ #kind, offsetof(struct kiw_device, num_##kind), most, many_make_##kind, \
	  many_unmake_##kind }

static const struct inside_kind inside_kinds[] = {
	INSIDE_KIND(qp, KIW_MAX_QP),
	INSIDE_KIND(cq, KIW_MAX_CQ),
	INSIDE_KIND(srq, KIW_MAX_SRQ),
	INSIDE_KIND(mr, KIW_MAX_MR),
};

/* Makes an object, expects @want, and that there are @num of its kind now. Return: it, or NULL */
static void *many_make(struct ktest_pair *p, const struct inside_kind *kind, atomic_t *count,
		       int want, int num)
{
	void *object = kind->make(&p->end[0]);
	int ret = PTR_ERR_OR_ZERO(object);

	if (ret != want)
		ktest_fail(p, kind->name, __LINE__, "result of making one", ret);
	if (atomic_read(count) != num)
		ktest_fail(p, kind->name, __LINE__, "their number", atomic_read(count));
	return ret ? NULL : object;
}

static void many_unmake(struct ktest_pair *p, const struct inside_kind *kind, atomic_t *count,
			void *object, int num)
{
	if (object)
		kind->unmake(object);
	if (atomic_read(count) != num)
		ktest_fail(p, kind->name, __LINE__, "their number without it", atomic_read(count));
}

/*
 * The device pretends to have all but one of the objects that it can have. So there is room for one
 * more, and for another one only after the first was destroyed.
 */
static void many_of(struct ktest_pair *p, const struct inside_kind *kind)
{
	void *dev = to_kiw_device(p->end[0].id->device);
	atomic_t *count = dev + kind->count;
	int before = atomic_read(count);
	int pretended = kind->limit - 1 - before;
	void *last, *more;

	atomic_add(pretended, count);
	last = many_make(p, kind, count, 0, kind->limit);
	more = many_make(p, kind, count, -ENOMEM, kind->limit);
	if (more)
		kind->unmake(more);
	many_unmake(p, kind, count, last, kind->limit - 1);
	last = many_make(p, kind, count, 0, kind->limit);
	many_unmake(p, kind, count, last, kind->limit - 1);
	atomic_sub(pretended, count);
	last = many_make(p, kind, count, 0, before + 1);
	many_unmake(p, kind, count, last, before);
}

static void too_many(struct ktest_pair *p)
{
	int i;

	if (!inside_is_kiwarp(p->end[0].id->device))
		return;
	for (i = 0; i < ARRAY_SIZE(inside_kinds); i++)
		many_of(p, &inside_kinds[i]);
}

const struct ktest_case ktest_cases_inside[] = {
	{ "cq-free-late", cq_free_late, { .poll = IB_POLL_WORKQUEUE } },
	{ "fast-offset", fast_offset, { .poll = IB_POLL_SOFTIRQ } },
	{ "reset-report", reset_report, { .poll = IB_POLL_SOFTIRQ } },
	{ "run-late", run_late, { .poll = IB_POLL_SOFTIRQ } },
	{ "socket-owned", socket_owned, { .poll = IB_POLL_SOFTIRQ } },
	{ "posts-later", posts_later, { .poll = IB_POLL_WORKQUEUE } },
	{ "read-put-off", read_put_off, { .poll = IB_POLL_SOFTIRQ } },
	{ "imm-put-off", imm_put_off, { .poll = IB_POLL_SOFTIRQ } },
	{ "offset-counts", offset_counts, { .poll = IB_POLL_SOFTIRQ } },
	{ "term-unstarted", term_unstarted, { .poll = IB_POLL_SOFTIRQ } },
	{ "term-last", term_last, { .poll = IB_POLL_SOFTIRQ } },
	{ "bad-before-resp", bad_before_response, { .poll = IB_POLL_SOFTIRQ } },
	{ "abort-after-push", abort_after_push, { .poll = IB_POLL_SOFTIRQ } },
	{ "stream-freed", stream_freed, { .poll = IB_POLL_SOFTIRQ } },
	{ "engine-work", engine_work, { .poll = IB_POLL_SOFTIRQ } },
	{ "late-abort", late_abort, { .poll = IB_POLL_SOFTIRQ } },
	{ "connect-destroyed", connect_destroyed, { .poll = IB_POLL_SOFTIRQ } },
	{ "reject-accepted", reject_accepted, { .poll = IB_POLL_SOFTIRQ } },
	{ "too-many", too_many, { .poll = IB_POLL_SOFTIRQ } },
	{}
};

/* A device that ends with more objects made than destroyed */

#define INSIDE_LOST	1000003

/* For each kind, as if some had been lost. The test looks for the warnings when the device ends. */
static void unbalanced(struct ktest_pair *p)
{
	static const enum kiw_stat made[] = {
		KIW_STAT_QP_CREATED, KIW_STAT_CQ_CREATED, KIW_STAT_SRQ_CREATED,
		KIW_STAT_MR_CREATED, KIW_STAT_EP_CREATED, KIW_STAT_SOCK_CREATED,
	};
	struct kiw_device *dev = to_kiw_device(p->end[0].id->device);
	int i;

	if (!inside_is_kiwarp(&dev->ib))
		return;
	for (i = 0; i < ARRAY_SIZE(made); i++)
		kiw_count_add(&dev->stats, made[i], INSIDE_LOST);
	atomic_add(INSIDE_LOST, &dev->num_pd);
}

const struct ktest_case ktest_cases_lost[] = {
	{ "unbalanced", unbalanced, { .poll = IB_POLL_SOFTIRQ } },
	{}
};
