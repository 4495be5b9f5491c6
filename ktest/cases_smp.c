// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Cases: one CPU waits for another inside the driver, or is stopped in the middle of something
 * while another changes it. To that end, one CPU stands still with softirqs or interrupts off until
 * the other has come to the point in question. Alone it would stand still in vain, so 300-kernel.sh
 * skips these cases on one CPU. They depend on kiwarp's structures, and do nothing on another
 * driver.
 *
 * Owns: smp_mid, for the duration of a case. Contexts: process; threads that are bound to a CPU; an
 * interrupt. Locks: kiw_sq.lock, and inside it kiw_qp.lock; kiw_rq.lock.
 */
#include <linux/bitfield.h>
#include <linux/cpumask.h>
#include <linux/delay.h>
#include <linux/jiffies.h>
#include <linux/ktime.h>
#include <linux/mm.h>
#include <linux/random.h>
#include <linux/smp.h>
#include <linux/string.h>
#include <net/tcp.h>

#include "device.h"
#include "inside.h"
#include "mem/mr_dyn.h"

#define SMP_RIGHTS	(IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_READ)
/* Longest time without softirqs or interrupts, in milliseconds; it is far shorter in a good run */
#define SMP_STOP_MS	2000
/* For so long, in milliseconds, a thing does not happen that must not happen */
#define SMP_NOT_YET_MS	20
/* A CPU that does not handle an interrupt for so long, in milliseconds, has interrupts off */
#define SMP_SILENT_MS	200
/* Interrupts that may be handled too early, and the time, in microseconds, between them */
#define SMP_TRIES	100
#define SMP_RETRY_US	20

/* The CPU that stands still: 0; the other one: 1 */
static unsigned int smp_cpu(int which)
{
	unsigned int cpu = cpumask_first(cpu_online_mask);

	return which ? cpumask_next(cpu, cpu_online_mask) : cpu;
}

/* May a case look inside, and wait for another CPU? One that runs on one CPU has failed. */
static bool smp_is_possible(struct ktest_pair *p)
{
	if (!inside_is_kiwarp(p->end[1].id->device))
		return false;
	ktest_expect(p, num_online_cpus() > 1);
	return !p->has_failed;
}

/*
 * Waits for a condition without sleeping. Return: whether it has come true. The CPU of a guest may
 * stand still: from one look to the next no more than a millisecond counts.
 */
static bool smp_spin(bool (*is_so)(void *arg), void *arg, unsigned int ms)
{
	s64 left = (s64)ms * NSEC_PER_MSEC;
	ktime_t now, last = ktime_get();

	while (!is_so(arg)) {
		if (left <= 0)
			return false;
		cpu_relax();
		now = ktime_get();
		left -= min_t(s64, ktime_to_ns(ktime_sub(now, last)), NSEC_PER_MSEC);
		last = now;
	}
	return true;
}

static bool smp_is_set(void *flag)
{
	/* Pairs with the release in the interrupt of smp_is_silent(), which may be sent again. */
	return smp_load_acquire((bool *)flag);
}

/*
 * Interrupts CPU @which by @ask, which sets @has_answered. Return: it did not answer, because it
 * waits for a lock with interrupts off. spin_is_contended() would not tell: on a hypervisor without
 * paravirtual spinlocks, those who wait leave no trace in the lock.
 */
static bool smp_is_silent(int which, call_single_data_t *ask, bool *has_answered)
{
	int i;

	for (i = 0; i < SMP_TRIES; i++) {
		WRITE_ONCE(*has_answered, false);
		smp_call_function_single_async(smp_cpu(which), ask);
		if (!smp_spin(smp_is_set, has_answered, SMP_SILENT_MS))
			return true;
		udelay(SMP_RETRY_US);
	}
	return false;
}

static void smp_invalidate(struct ktest_end *end, struct ktest_wr *w, u32 rkey)
{
	struct ib_send_wr wr = { .opcode = IB_WR_LOCAL_INV, .ex.invalidate_rkey = rkey };

	ktest_post(end, w, &wr);
}

/* A region is invalidated while it is in use */

/**
 * struct smp_use - a region in use
 * @pair: the pair; end 1 has the region
 * @mr: the region
 * @done: work request that completes once the region has been invalidated
 * @is_used: completed when the region is in use
 * @taking: the thread that lets it be invalidated
 */
struct smp_use {
	struct ktest_pair *pair;
	struct kiw_mr *mr;
	struct ktest_wr *done;
	struct completion is_used;
	struct inside_thread taking;
};

static bool use_is_revoked(void *arg)
{
	struct smp_use *u = arg;

	return !READ_ONCE(u->mr->stag);
}

static bool use_is_over(void *arg)
{
	struct smp_use *u = arg;

	return atomic_read(&u->done->count);
}

/* Uses the region as the driver does, but for longer */
static int use_hold(void *arg)
{
	struct smp_use *u = arg;
	struct ktest_pair *p = u->pair;

	local_bh_disable();
	atomic_inc(&u->mr->dyn->users);
	complete(&u->is_used);
	ktest_expect(p, smp_spin(use_is_revoked, u, SMP_STOP_MS));
	ktest_expect(p, !smp_spin(use_is_over, u, SMP_NOT_YET_MS));
	atomic_dec_return_release(&u->mr->dyn->users);
	local_bh_enable();
	return 0;
}

static int use_take(void *arg)
{
	struct smp_use *u = arg;
	struct ktest_end *own = &u->pair->end[1];

	wait_for_completion(&u->is_used);
	smp_invalidate(own, u->done, own->mr->rkey);
	return 0;
}

/* The peer's Send does it. Its segment is received on the CPU that sends it. */
static int use_take_by_peer(void *arg)
{
	struct smp_use *u = arg;
	struct ktest_end *peer = &u->pair->end[0];
	struct ib_send_wr wr = {
		.opcode = IB_WR_SEND_WITH_INV,
		.ex.invalidate_rkey = u->pair->end[1].mr->rkey,
	};

	wait_for_completion(&u->is_used);
	ktest_post(peer, &peer->sends[0], &wr);
	return 0;
}

/* The invalidation makes the STag invalid at once, and completes when nobody uses the memory. */
static void use_invalidated(struct ktest_pair *p, struct ktest_wr *done, int (*take)(void *arg))
{
	struct smp_use u = { .pair = p, .done = done };
	struct ktest_end *own = &p->end[1];
	struct inside_thread holding;

	if (!smp_is_possible(p))
		return;
	ktest_expose(own, SMP_RIGHTS);
	if (p->has_failed)
		return;
	u.mr = to_kiw_mr(own->mr);
	init_completion(&u.is_used);
	inside_start(p, &u.taking, smp_cpu(1), take, &u);
	inside_start(p, &holding, smp_cpu(0), use_hold, &u);
	inside_join(&holding);
	/* If there was no user, the thread still waits for one. */
	complete(&u.is_used);
	inside_join(&u.taking);
	ktest_wait(done, IB_WC_SUCCESS);
	ktest_expect_eq(p, atomic_read(&u.mr->dyn->users), 0);
	ktest_register(own, own->mr, &own->reg, SMP_RIGHTS);
	ktest_wait(&own->reg, IB_WC_SUCCESS);
}

static void inv_used(struct ktest_pair *p)
{
	use_invalidated(p, &p->end[1].sends[0], use_take);
}

static void inv_used_peer(struct ktest_pair *p)
{
	struct ktest_end *own = &p->end[1];

	ktest_post_recv(own, &own->recvs[0], 0, 1);
	use_invalidated(p, &own->recvs[0], use_take_by_peer);
	if (p->has_failed)
		return;
	ktest_expect(p, own->recvs[0].wc.wc_flags & IB_WC_WITH_INVALIDATE);
	ktest_expect_eq(p, own->recvs[0].wc.ex.invalidate_rkey, own->mr->rkey);
}

/* A region is invalidated in the middle of a Write that arrives */

#define MID_LEN		(128 * PAGE_SIZE)
/* What the owner has in its memory once it has taken it back */
#define MID_SECRET	0x77
/* Of the segments of a run: so many are placed, and so many wait, when the run is stopped */
#define MID_PLACED	3
#define MID_WAITING	6
/* More than so many segments are close to what a run may place (KIW_RX_RUN_FPDUS) */
#define MID_MOST	48
/* Longest time between two attempts to stop a run, in microseconds */
#define MID_GAP_US	50

/**
 * enum mid_state - an attempt to stop a run
 * @MID_ASKED: the interrupt is to come
 * @MID_MISSED: it came elsewhere
 * @MID_STOPPED: it came in the middle of a run, which waits
 * @MID_GONE_ON: the region was invalidated, and the run goes on
 * @MID_STUCK: the region was not invalidated in time
 */
enum mid_state {
	MID_ASKED,
	MID_MISSED,
	MID_STOPPED,
	MID_GONE_ON,
	MID_STUCK,
};

/**
 * struct smp_mid - a Write, and an invalidation by the QP of another connection
 * @pair: end 0 Writes to the memory of end 1
 * @other: another pair in the same protection domains
 * @qp: that receives the Write
 * @mr: target of the Write
 * @mem: its memory
 * @segment: the largest payload of a segment, or a bit more
 * @byte: the content of the Write in progress, and the complement of the one before it
 * @csd: the interrupt
 * @state: &enum mid_state
 * @stopped_at: bytes that had been placed when the STag became invalid
 * @is_over: no more Writes
 */
struct smp_mid {
	struct ktest_pair *pair;
	struct ktest_pair *other;
	struct kiw_qp *qp;
	struct kiw_mr *mr;
	u8 *mem;
	u32 segment;
	u8 byte;
	call_single_data_t csd;
	atomic_t state;
	u32 stopped_at;
	bool is_over;
};

/* Not on the stack: if a case fails, the interrupt may come after its end. */
static struct smp_mid smp_mid;

static bool mid_is_revoked(void *arg)
{
	struct smp_mid *m = arg;

	return !READ_ONCE(m->mr->stag);
}

static bool mid_is_answered(void *arg)
{
	struct smp_mid *m = arg;

	return atomic_read_acquire(&m->state) != MID_ASKED;
}

/* Bytes of the Write in progress that have been placed, of which there are at least @from */
static u32 mid_placed(const struct smp_mid *m, u32 from)
{
	const u8 *end = memchr_inv(m->mem + from, m->byte, MID_LEN - from);

	return end ? end - m->mem : MID_LEN;
}

/*
 * Has the interrupt stopped rx_place_following() between two segments, or in one? That function
 * counts what it has placed only at its end, so there is more in the memory than was counted. The
 * region is in use until then. There must be segments left to place, in the socket and in the
 * budget of the run.
 */
static bool mid_is_in_run(const struct smp_mid *m)
{
	const struct tcp_sock *tp = tcp_sk(m->qp->ks->sk);
	u32 counted = m->qp->rx.written;
	u32 placed, queued;

	if (!atomic_read(&m->mr->dyn->users) || counted + MID_PLACED * m->segment > MID_LEN ||
	    m->mem[counted + MID_PLACED * m->segment - 1] != m->byte)
		return false;
	placed = mid_placed(m, counted) - counted;
	queued = tp->rcv_nxt - tp->copied_seq;
	return placed < MID_MOST * m->segment && queued > placed + MID_WAITING * m->segment;
}

/* The interrupt */
static void mid_stop(void *arg)
{
	struct smp_mid *m = arg;
	enum mid_state state = MID_GONE_ON;

	/* The code that it interrupts may be writing what it reads. */
	if (!data_race(mid_is_in_run(m))) {
		atomic_set_release(&m->state, MID_MISSED);
		return;
	}
	atomic_set_release(&m->state, MID_STOPPED);
	if (!smp_spin(mid_is_revoked, m, SMP_STOP_MS))
		state = MID_STUCK;
	/* As above */
	m->stopped_at = data_race(mid_placed(m, 0));
	atomic_set_release(&m->state, state);
}

/* Writes, one after the other, until one fails. A Read that completes after a Write has seen it. */
static int mid_write(void *arg)
{
	struct smp_mid *m = arg;
	struct ktest_end *a = &m->pair->end[0], *b = &m->pair->end[1];
	struct ktest_wr *write = &a->sends[0], *read = &a->sends[1];
	struct ib_sge sge = ktest_sge(a, 0, MID_LEN), back = ktest_sge(a, MID_LEN, 1);
	struct ib_rdma_wr wr = {
		.wr = { .sg_list = &sge, .num_sge = 1 },
		.remote_addr = b->mr->iova,
		.rkey = b->mr->rkey,
	};

	do {
		m->byte = ~m->byte;
		memset(a->mem, m->byte, MID_LEN);
		wr.wr.opcode = IB_WR_RDMA_WRITE;
		wr.wr.sg_list = &sge;
		ktest_post(a, write, &wr.wr);
		wr.wr.opcode = IB_WR_RDMA_READ;
		wr.wr.sg_list = &back;
		ktest_post(a, read, &wr.wr);
		ktest_wait_any(read);
	} while (!READ_ONCE(m->is_over) && !READ_ONCE(m->pair->has_failed) &&
		 read->wc.status == IB_WC_SUCCESS);
	return 0;
}

/* Stops a run on the other CPU, if there is one now. Then it also posts the invalidation. */
static bool mid_try(struct smp_mid *m)
{
	struct ktest_pair *p = m->pair;
	struct ktest_end *own = &m->other->end[1];
	int state;

	/*
	 * Nothing else may run here while the other CPU waits, least of all a timer of TCP: it
	 * would wait for the lock of the socket in which data arrives.
	 */
	local_bh_disable();
	atomic_set(&m->state, MID_ASKED);
	ktest_expect_eq(p, smp_call_function_single_async(smp_cpu(0), &m->csd), 0);
	ktest_expect(p, p->has_failed || smp_spin(mid_is_answered, m, 2 * SMP_STOP_MS));
	state = atomic_read_acquire(&m->state);
	if (state != MID_MISSED)
		smp_invalidate(own, &own->sends[0], p->end[1].mr->rkey);
	local_bh_enable();
	return state != MID_MISSED;
}

/* The owner invalidates its memory, and reuses it. Return: the Write was stopped in a run. */
static int mid_take(void *arg)
{
	struct smp_mid *m = arg;
	struct ktest_pair *p = m->pair;
	unsigned long end = jiffies + KTEST_PATIENCE / 2 * HZ;
	u32 placed;

	while (!mid_try(m)) {
		if (READ_ONCE(p->has_failed) || time_after(jiffies, end))
			return false;
		udelay(get_random_u32_below(MID_GAP_US));
		cond_resched();
	}
	ktest_wait(&m->other->end[1].sends[0], IB_WC_SUCCESS);
	ktest_expect_eq(p, atomic_read_acquire(&m->state), MID_GONE_ON);
	placed = mid_placed(m, 0);
	/* It has waited for what was in progress, and that was at most one segment. */
	if (placed - m->stopped_at > m->segment)
		ktest_fail(p, __func__, __LINE__, "placed later", placed - m->stopped_at);
	m->byte = ~m->byte;
	ktest_expect_eq(p, mid_placed(m, placed), MID_LEN);
	memset(m->mem, MID_SECRET, MID_LEN);
	return true;
}

static void mid_check_term(struct ktest_end *end, u32 direction)
{
	/* DDP, tagged buffer error, invalid STag: RFC 5041 8.2 */
	u32 term = direction | FIELD_PREP(KIW_QP_TERM_LAYER, 1) | FIELD_PREP(KIW_QP_TERM_ETYPE, 1);

	ktest_wait_cm_event(end, RDMA_CM_EVENT_DISCONNECTED);
	ktest_expect_eq(end->pair, READ_ONCE(to_kiw_qp(end->qp)->term), term);
}

static void mid_invalidated(struct ktest_pair *p, struct ktest_pair *other)
{
	struct inside_thread writing, taking;
	struct ktest_end *own = &p->end[1];
	struct smp_mid *m = &smp_mid;

	memset(m, 0, sizeof(*m));
	m->pair = p;
	m->other = other;
	m->qp = to_kiw_qp(own->qp);
	m->mr = to_kiw_mr(own->mr);
	m->mem = own->mem;
	m->segment = to_kiw_device(own->id->device)->ndev->mtu;
	INIT_CSD(&m->csd, mid_stop, m);
	inside_start(p, &writing, smp_cpu(0), mid_write, m);
	inside_start(p, &taking, smp_cpu(1), mid_take, m);
	ktest_expect_eq(p, inside_join(&taking), true);
	WRITE_ONCE(m->is_over, true);
	inside_join(&writing);
	ktest_wait_qp_event(own, IB_EVENT_QP_ACCESS_ERR);
	mid_check_term(own, KIW_QP_TERM_SENT);
	mid_check_term(&p->end[0], KIW_QP_TERM_RECEIVED);
	ktest_expect(p, !memchr_inv(m->mem, MID_SECRET, MID_LEN));
}

/*
 * A Write of many segments arrives on one CPU, where an interrupt stops it in the middle of a run.
 * Then a QP on the other CPU invalidates the region, and the run goes on. It places no further
 * segment, and the stream ends. The QP that receives could not do this: it executes its work
 * requests between two runs.
 */
static void inv_mid_run(struct ktest_pair *p)
{
	struct ktest_pair *other;

	if (!smp_is_possible(p))
		return;
	other = ktest_pair_another(p);
	if (!other)
		return;
	other->with = p;
	ktest_expect_eq(p, ktest_pair_open(other), 0);
	ktest_expose(&p->end[1], SMP_RIGHTS);
	if (!p->has_failed)
		mid_invalidated(p, other);
	ktest_expect(p, !other->has_failed);
	ktest_pair_close(other);
	kvfree(other);
}

/* A QP ends while it is being connected */

static bool ended_was_idle(void *arg)
{
	struct inside_accept *a = arg;

	/* The accept copies its parameters once it has found the QP idle. */
	return data_race(a->qp->conn.conn);
}

/*
 * Lets the accept go on until it waits for the lock of the send queue, and aborts the QP then. The
 * handler of the timer that limits an orderly close does nothing else. Nothing takes these two
 * locks in the other order.
 */
static int ended_abort(void *arg)
{
	struct inside_accept *a = arg;
	struct delayed_work *timer = &a->qp->close_timer;
	unsigned long flags;
	bool was_idle;

	spin_lock_irqsave(&a->qp->sq.lock, flags);
	complete(&a->go);
	was_idle = smp_spin(ended_was_idle, a, SMP_STOP_MS);
	if (was_idle)
		timer->work.func(&timer->work);
	spin_unlock_irqrestore(&a->qp->sq.lock, flags);
	return was_idle;
}

static bool ended_is_closed(void *arg)
{
	struct inside_accept *a = arg;

	return READ_ONCE(a->sk->sk_state) == TCP_CLOSE;
}

static void ended_race(struct ktest_pair *p, struct inside_accept *a,
		       struct inside_thread *opening)
{
	struct inside_thread aborting;

	inside_start(p, &aborting, smp_cpu(0), ended_abort, a);
	ktest_expect_eq(p, inside_join(&aborting), true);
	/* If there was no such thread */
	complete(&a->go);
	ktest_expect_eq(p, inside_join(opening), -EINVAL);
	ktest_expect(p, !a->qp->ks);
	ktest_expect_eq(p, kiw_qp_state(a->qp), KIW_QPS_ERROR);
	ktest_wait_cm_event(&a->pair->end[0], RDMA_CM_EVENT_REJECTED);
	ktest_expect(p, !a->pair->has_failed);
	inside_wait(p, ended_is_closed, a);
}

/*
 * The accept has found its QP idle, and finds it in ERROR when it is to take the stream. It gives
 * the stream back, which is then closed, and the peer is told. inside_accepting() then destroys the
 * QP.
 */
static void accept_ended(struct ktest_pair *p)
{
	if (smp_is_possible(p))
		inside_accepting(p, smp_cpu(1), ended_race);
}

/* A work request is used again as soon as it has completed */

/**
 * struct smp_reuse - two Sends in a list, the first of which completes while the list is posted
 * @pair: the pair; end 0 sends
 * @qp: its QP
 * @first: first of the list
 * @second: second of the list
 * @wrong: what @first is linked to once it has completed
 * @put: number of work requests in the queue before
 * @go: completed when the list is to be posted
 * @stop: the interrupt of the CPU that posts it
 * @is_posting: that CPU is about to post it
 * @is_early: it has handled the interrupt before @first was in the queue
 * @has_stopped: it is in the interrupt
 * @is_reused: @first has completed, and is linked to @wrong
 */
struct smp_reuse {
	struct ktest_pair *pair;
	struct kiw_qp *qp;
	struct ib_send_wr first;
	struct ib_send_wr second;
	struct ib_send_wr wrong;
	u32 put;
	struct completion go;
	call_single_data_t stop;
	bool is_posting;
	bool is_early;
	bool has_stopped;
	bool is_reused;
};

static bool reuse_is_posting(void *arg)
{
	struct smp_reuse *r = arg;

	return READ_ONCE(r->is_posting);
}

static bool reuse_has_stopped(void *arg)
{
	struct smp_reuse *r = arg;

	return READ_ONCE(r->has_stopped);
}

static bool reuse_is_done(void *arg)
{
	struct smp_reuse *r = arg;

	return atomic_read(&r->pair->end[0].sends[0].count);
}

static bool reuse_is_reused(void *arg)
{
	struct smp_reuse *r = arg;

	/* Pairs with the release in reuse_complete(): the link is the new one. */
	return smp_load_acquire(&r->is_reused);
}

/* Interrupt. If the first Send is in the queue, the driver has just released its lock. */
static void reuse_stop(void *arg)
{
	struct smp_reuse *r = arg;

	if (READ_ONCE(r->qp->sq.put) == r->put) {
		/* Pairs with smp_is_set(). */
		smp_store_release(&r->is_early, true);
		return;
	}
	WRITE_ONCE(r->has_stopped, true);
	smp_spin(reuse_is_reused, r, SMP_STOP_MS);
}

static int reuse_post(void *arg)
{
	struct smp_reuse *r = arg;
	int ret;

	wait_for_completion(&r->go);
	preempt_disable();
	WRITE_ONCE(r->is_posting, true);
	ret = ib_post_send(r->pair->end[0].qp, &r->first, NULL);
	preempt_enable();
	return ret;
}

/* Interrupts the other CPU when it waits for the queue's lock. Return: whether it does */
static bool reuse_interrupt(struct smp_reuse *r)
{
	return smp_spin(reuse_is_posting, r, SMP_STOP_MS) &&
	       smp_is_silent(0, &r->stop, &r->is_early);
}

/*
 * The other CPU waits for the queue's lock with interrupts off. So it gets the interrupt when it
 * has queued the first Send and releases the lock.
 */
static int reuse_complete(void *arg)
{
	struct smp_reuse *r = arg;
	struct ktest_pair *p = r->pair;
	struct ktest_end *own = &p->end[0];
	struct ib_send_wr wr = { .opcode = IB_WR_SEND };
	unsigned long flags;
	bool is_waiting;

	spin_lock_irqsave(&r->qp->sq.lock, flags);
	complete(&r->go);
	is_waiting = reuse_interrupt(r);
	spin_unlock_irqrestore(&r->qp->sq.lock, flags);
	ktest_expect(p, is_waiting && smp_spin(reuse_has_stopped, r, SMP_STOP_MS));
	/* This sends both */
	ktest_post(own, &own->sends[2], &wr);
	ktest_expect(p, smp_spin(reuse_is_done, r, SMP_STOP_MS));
	r->first.next = &r->wrong;
	/* Pairs with the acquire in reuse_is_reused(). */
	smp_store_release(&r->is_reused, true);
	return 0;
}

static void reuse_init(struct smp_reuse *r, struct ib_send_wr *wr, u32 i, struct ib_send_wr *next)
{
	struct ktest_end *own = &r->pair->end[0];

	ktest_wr_init(own, &own->sends[i]);
	*wr = (struct ib_send_wr) {
		.wr_cqe = &own->sends[i].cqe,
		.opcode = IB_WR_SEND,
		.send_flags = IB_SEND_SIGNALED,
		.next = next,
	};
}

static void wr_reused(struct ktest_pair *p)
{
	struct smp_reuse r = { .pair = p };
	struct ib_send_wr wr = { .opcode = IB_WR_SEND };
	struct inside_thread posting, completing;
	struct ktest_end *own = &p->end[0];
	int i;

	if (!smp_is_possible(p))
		return;
	for (i = 0; i < 5; i++)
		ktest_post_recv(&p->end[1], &p->end[1].recvs[i], 0, 0);
	r.qp = to_kiw_qp(own->qp);
	r.put = r.qp->sq.put;
	init_completion(&r.go);
	INIT_CSD(&r.stop, reuse_stop, &r);
	reuse_init(&r, &r.wrong, 3, NULL);
	reuse_init(&r, &r.second, 1, NULL);
	reuse_init(&r, &r.first, 0, &r.second);
	inside_start(p, &posting, smp_cpu(0), reuse_post, &r);
	inside_start(p, &completing, smp_cpu(1), reuse_complete, &r);
	inside_join(&completing);
	/* If there was no such thread */
	complete(&r.go);
	ktest_expect_eq(p, inside_join(&posting), 0);
	ktest_post(own, &own->sends[4], &wr);
	ktest_wait(&own->sends[4], IB_WC_SUCCESS);
	ktest_expect_eq(p, atomic_read(&own->sends[1].count), 1);
	ktest_expect_eq(p, atomic_read(&own->sends[3].count), 0);
}

/* A shared receive queue gets another ring while a receive is posted to it */

/* Content of the entries of the former ring */
#define MOVE_POISON	0x5a

/**
 * struct smp_move - a receive that waits for the lock of its queue
 * @pair: the pair; end 1 has the queue
 * @rq: the queue
 * @move: the other ring
 * @ask: an interrupt of the other CPU
 * @is_locked: the lock is held
 * @is_posting: the other CPU is about to take it
 * @has_answered: the other CPU has handled @ask
 * @has_waited: the other CPU waits for the lock, with interrupts off: it did not handle @ask
 * @ret: of the move
 */
struct smp_move {
	struct ktest_pair *pair;
	struct kiw_rq *rq;
	struct kiw_rq_move move;
	call_single_data_t ask;
	bool is_locked;
	bool is_posting;
	bool has_answered;
	bool has_waited;
	int ret;
};

static bool move_is_locked(void *arg)
{
	struct smp_move *m = arg;

	/* Pairs with the store in move_ring(). */
	return smp_load_acquire(&m->is_locked);
}

static bool move_is_posting(void *arg)
{
	struct smp_move *m = arg;

	return READ_ONCE(m->is_posting);
}

/* Interrupt */
static void move_answer(void *arg)
{
	struct smp_move *m = arg;

	/* Pairs with smp_is_set(). */
	smp_store_release(&m->has_answered, true);
}

static int move_post(void *arg)
{
	struct smp_move *m = arg;
	struct ktest_end *own = &m->pair->end[1];

	if (!smp_spin(move_is_locked, m, SMP_STOP_MS))
		return 0;
	preempt_disable();
	WRITE_ONCE(m->is_posting, true);
	ktest_post_recv(own, &own->recvs[0], 0, 1);
	preempt_enable();
	return 0;
}

/* Exchanges the rings as kiw_srq_move() does, once the other CPU waits. */
static int move_ring(void *arg)
{
	struct smp_move *m = arg;
	unsigned long flags;

	spin_lock_irqsave(&m->rq->lock, flags);
	/* Pairs with move_is_locked(). */
	smp_store_release(&m->is_locked, true);
	m->has_waited = smp_spin(move_is_posting, m, SMP_STOP_MS) &&
			smp_is_silent(1, &m->ask, &m->has_answered);
	m->ret = m->rq->ops->move(m->rq, &m->move);
	spin_unlock_irqrestore(&m->rq->lock, flags);
	ktest_expect(m->pair, smp_spin(smp_is_set, &m->has_answered, SMP_STOP_MS));
	return 0;
}

static void srq_moved(struct ktest_pair *p)
{
	struct ib_send_wr wr = { .opcode = IB_WR_SEND };
	struct ktest_end *own = &p->end[1];
	struct inside_thread posting, moving;
	struct smp_move m = { .pair = p, .has_answered = true };
	size_t old;

	if (!smp_is_possible(p))
		return;
	m.rq = &to_kiw_srq(own->srq)->rq;
	old = m.rq->size * sizeof(struct kiw_rwqe);
	m.move.size = 2 * m.rq->size;
	m.move.ring = kvcalloc(m.move.size, sizeof(struct kiw_rwqe), GFP_KERNEL);
	ktest_expect(p, m.move.ring);
	if (p->has_failed)
		return;
	memset(m.rq->ring, MOVE_POISON, old);
	INIT_CSD(&m.ask, move_answer, &m);
	inside_start(p, &posting, smp_cpu(1), move_post, &m);
	inside_start(p, &moving, smp_cpu(0), move_ring, &m);
	inside_join(&moving);
	inside_join(&posting);
	ktest_expect(p, m.has_waited);
	ktest_expect_eq(p, m.ret, 0);
	/* The receive is in the new ring. */
	ktest_expect(p, !memchr_inv(m.move.ring, MOVE_POISON, old));
	kvfree(m.move.ring);
	if (p->has_failed)
		return;
	ktest_post(&p->end[0], &p->end[0].sends[0], &wr);
	ktest_wait(&own->recvs[0], IB_WC_SUCCESS);
}

const struct ktest_case ktest_cases_smp[] = {
	{ "inv-used", inv_used, { .poll = IB_POLL_SOFTIRQ } },
	{ "inv-used-peer", inv_used_peer, { .poll = IB_POLL_SOFTIRQ } },
	{ "inv-mid-run", inv_mid_run, { .poll = IB_POLL_SOFTIRQ } },
	{ "accept-ended", accept_ended, { .poll = IB_POLL_SOFTIRQ } },
	{ "wr-reused", wr_reused, { .poll = IB_POLL_SOFTIRQ } },
	{ "srq-moved", srq_moved, { .poll = IB_POLL_SOFTIRQ, .with_srq = true } },
	{}
};
