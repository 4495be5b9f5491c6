// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Random operations on QPs.
 */
#include "ops.h"
#include "qps.h"

#include <errno.h>

static void qp_create_op(struct thread *t)
{
	struct place *p = &t->f->places[choose(&t->rng, QPS)];
	struct note *note;

	if (p->qp || !t->f->ctx || pthread_rwlock_trywrlock(&p->lock))
		return;
	if (!p->qp) {
		note = note_begin(t, OP_QP_CREATE, p - t->f->places, 0);
		p->qp = qp_create(t->f->pd, t->f->cq);
		note_end(note, p->qp ? 0 : -errno);
		if (p->qp) {
			note->arg = p->qp->qp_num;
			p->known = know(t, p->qp->qp_num);
		}
	}
	pthread_rwlock_unlock(&p->lock);
}

static void qp_destroy_op(struct thread *t)
{
	struct place *p = &t->f->places[choose(&t->rng, QPS)];
	struct note *note;
	int ret;

	if (!p->qp || pthread_rwlock_trywrlock(&p->lock))
		return;
	if (p->qp) {
		note = note_begin(t, OP_QP_DESTROY, p - t->f->places, p->qp->qp_num);
		ret = ibv_destroy_qp(p->qp);
		note_end(note, -ret);
		if (!ret) {
			if (w->known[p->known].qpn == note->arg)
				w->known[p->known].is_alive = false;
			p->qp = NULL;
		}
	}
	pthread_rwlock_unlock(&p->lock);
}

static int qp_modify(struct thread *t, struct ibv_qp *qp)
{
	static const enum ibv_qp_state states[] = {
		IBV_QPS_RESET, IBV_QPS_RESET, IBV_QPS_RESET, IBV_QPS_RESET,
		IBV_QPS_INIT, IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS,
		IBV_QPS_SQD, IBV_QPS_SQE, IBV_QPS_ERR,
	};
	struct ibv_qp_attr attr = {
		.qp_state = states[choose(&t->rng, ARRAY_SIZE(states))],
		.qp_access_flags = choose(&t->rng, 16),
	};

	return -ibv_modify_qp(qp, &attr, IBV_QP_STATE | (chance(t, 2) ? IBV_QP_ACCESS_FLAGS : 0));
}

static int qp_post(struct thread *t, struct ibv_qp *qp)
{
	__u8 octets[8] = "attack!";
	struct ibv_sge sge = { (unsigned long)octets, sizeof(octets), 0 };
	struct ibv_send_wr wr = {
		.opcode = IBV_WR_SEND, .send_flags = IBV_SEND_INLINE | IBV_SEND_SIGNALED,
		.sg_list = &sge, .num_sge = 1,
	}, *bad;
	struct ibv_recv_wr recv = { .num_sge = 0 }, *bad_recv;
	struct ibv_wc wc[8];

	ibv_poll_cq(t->f->cq, 8, wc);
	return chance(t, 2) ? -ibv_post_send(qp, &wr, &bad) : -ibv_post_recv(qp, &recv, &bad_recv);
}

static void qp_use_op(struct thread *t)
{
	struct place *p = &t->f->places[choose(&t->rng, QPS)];
	struct note *note;

	if (!p->qp || pthread_rwlock_tryrdlock(&p->lock))
		return;
	if (p->qp) {
		note = note_begin(t, chance(t, 4) ? OP_QP_MODIFY : OP_QP_POST, p - t->f->places,
				  p->qp->qp_num);
		note_end(note, note->op == OP_QP_MODIFY ? qp_modify(t, p->qp) : qp_post(t, p->qp));
	}
	pthread_rwlock_unlock(&p->lock);
}

/**
 * qp_op() - create, destroy, modify or use a QP
 * @t: the thread; nothing is done in a forked child
 *
 * Context: a thread of a family.
 */
void qp_op(struct thread *t)
{
	if (t->is_forked)
		return;
	switch (choose(&t->rng, 8)) {
	case 0:
	case 1:
	case 2:
		qp_create_op(t);
		break;
	case 3:
		if (chance(t, 2))
			qp_destroy_op(t);
		break;
	default:
		qp_use_op(t);
	}
}
