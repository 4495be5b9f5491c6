// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Cases: a fast-registration region grants no more access than requested, and only those who
 * are permitted to can invalidate it.
 *
 * There are two pairs. The second pair exists throughout a case: its QPs register memory and
 * check afterwards that it is still registered. The first pair attempts the accesses. A refusal
 * ends its connection, and the pair is opened again, in the same protection domains or in
 * others.
 *
 * Owns: second, for the duration of a case. Contexts: process. No locks.
 */
#include <linux/err.h>
#include <linux/mm.h>
#include <linux/mman.h>
#include <linux/scatterlist.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "ktest.h"

#define AT		(3 * PAGE_SIZE - 20)
#define LEN		64
#define MOST_RIGHTS	(IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_READ)
#define UNSAID		(-1)	/* rights of the QP are not set */

enum use { BY_WRITE, BY_READ, BY_INV, USES };
enum owner { OWN_QP, OTHER_QP, OTHER_PD };

/**
 * struct attempt - an access to try: one of all combinations
 * @use: operation of the peer
 * @owner: which QP registered the region
 * @rights: access rights of the region
 * @qp_rights: access rights of the QP that receives the peer's requests, or %UNSAID
 * @side: index of the end that owns the memory
 */
struct attempt {
	enum use use;
	enum owner owner;
	int rights;
	int qp_rights;
	int side;
};

static struct ktest_pair *second;

static bool is_granted(const struct attempt *a)
{
	int need = a->use == BY_WRITE ? IB_ACCESS_REMOTE_WRITE : IB_ACCESS_REMOTE_READ;

	if (a->owner == OTHER_PD)
		return false;
	/* Other QPs that can access the region must not lose it: RFC 5040 8.1.1 (7). */
	if (a->use == BY_INV)
		return a->owner == OWN_QP &&
		       a->rights & (IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_READ);
	if (a->qp_rights != UNSAID && !(a->qp_rights & need))
		return false;
	return a->rights & need;
}

/* Has either pair failed, or is there no second one? Marks the first one as failed, too */
static bool has_failed(struct ktest_pair *p)
{
	if (!second || READ_ONCE(second->has_failed))
		WRITE_ONCE(p->has_failed, true);
	return READ_ONCE(p->has_failed);
}

static int open_second(struct ktest_pair *p)
{
	int ret;

	second = ktest_pair_another(p);
	if (!second)
		return -ENOMEM;
	second->pd_flags = IB_PD_UNSAFE_GLOBAL_RKEY;
	ret = ktest_pair_open(second);
	ktest_expect_eq(p, ret, 0);
	return ret;
}

static void close_second(struct ktest_pair *p)
{
	if (second)
		ktest_pair_close(second);
	has_failed(p);
	/* The caller has reopened the first pair in separate protection domains. */
	kvfree(second);
	second = NULL;
}

/* Reopens the first pair, in the protection domains of the second pair or in its own */
static void reopen(struct ktest_pair *p, bool is_shared)
{
	ktest_pair_close(p);
	memset(p->end, 0, sizeof(p->end));
	p->with = is_shared ? second : NULL;
	if (!has_failed(p))
		ktest_expect_eq(p, ktest_pair_open(p), 0);
}

/* Registers %LEN bytes of @end's memory at %AT with @rights; returns the region or NULL */
static struct ib_mr *expose(struct ktest_end *end, int rights)
{
	struct scatterlist sg;
	struct ktest_wr *w;
	struct ib_mr *mr;

	mr = ib_alloc_mr(end->pd, IB_MR_TYPE_MEM_REG, 4);
	if (IS_ERR(mr)) {
		ktest_fail(end->pair, __func__, __LINE__, "ib_alloc_mr", PTR_ERR(mr));
		return NULL;
	}
	memset(end->mem, 0xbb, 8 * PAGE_SIZE);
	sg_init_one(&sg, end->mem + AT, LEN);
	ktest_expect_eq(end->pair, ib_dma_map_sg(end->qp->device, &sg, 1, DMA_BIDIRECTIONAL), 1);
	ktest_expect_eq(end->pair, ib_map_mr_sg(mr, &sg, 1, NULL, PAGE_SIZE), 1);
	w = ktest_spare(end);
	ktest_register(end, mr, w, rights);
	ktest_wait(w, IB_WC_SUCCESS);
	return mr;
}

/* Checks that memory is still registered: a Send of the second pair from it succeeds */
static void check_valid(int side, u32 lkey, u64 addr, u8 what)
{
	struct ktest_end *end = &second->end[side], *peer = &second->end[!side];
	struct ktest_wr *recv = ktest_spare(peer), *w = ktest_spare(end);
	struct ib_sge sge = { .addr = addr, .length = LEN, .lkey = lkey };
	struct ib_send_wr wr = { .opcode = IB_WR_SEND, .sg_list = &sge, .num_sge = 1 };

	memset(peer->mem + 64 * PAGE_SIZE, 0, LEN);
	ktest_post_recv(peer, recv, 64 * PAGE_SIZE, LEN);
	ktest_post(end, w, &wr);
	ktest_wait(w, IB_WC_SUCCESS);
	ktest_wait(recv, IB_WC_SUCCESS);
	ktest_expect(second, !memchr_inv(peer->mem + 64 * PAGE_SIZE, what, LEN));
}

/* Checks that a region is invalid: it can be registered again */
static void check_invalid(int side, struct ib_mr *mr)
{
	struct ktest_wr *w = ktest_spare(&second->end[side]);

	ktest_register(&second->end[side], mr, w, IB_ACCESS_LOCAL_WRITE);
	ktest_wait(w, IB_WC_SUCCESS);
}

static void post_use(struct ktest_end *end, struct ktest_wr *w, enum use use, u32 rkey, u64 addr)
{
	static const enum ib_wr_opcode opcodes[USES] = {
		IB_WR_RDMA_WRITE, IB_WR_RDMA_READ, IB_WR_SEND_WITH_INV,
	};
	struct ib_sge sge = ktest_sge(end, 32 * PAGE_SIZE, LEN);
	struct ib_rdma_wr wr = {
		.wr = { .opcode = opcodes[use], .sg_list = &sge, .num_sge = 1 },
		.remote_addr = addr,
		.rkey = rkey,
	};

	if (use == BY_INV)
		wr.wr.ex.invalidate_rkey = rkey;
	memset(end->mem + 32 * PAGE_SIZE, 0xaa, LEN);
	ktest_post(end, w, &wr.wr);
}

/* The connection continues, or it ends and both ends get the errors that report why */
static void check_end(const struct attempt *a, struct ktest_end *own, struct ktest_end *peer,
		      struct ktest_wr *w)
{
	struct ktest_wr *recv = &own->recvs[0];

	if (is_granted(a)) {
		ktest_wait(w, IB_WC_SUCCESS);
		ktest_wait(recv, IB_WC_SUCCESS);
		return;
	}
	ktest_wait_any(w);
	if (a->use == BY_READ)
		ktest_wait(w, IB_WC_REM_ACCESS_ERR);
	ktest_wait(recv, a->use == BY_INV ? IB_WC_GENERAL_ERR : IB_WC_WR_FLUSH_ERR);
	ktest_wait_qp_event(own, a->use == BY_INV ? IB_EVENT_QP_REQ_ERR : IB_EVENT_QP_ACCESS_ERR);
	ktest_wait_cm_event(peer, RDMA_CM_EVENT_DISCONNECTED);
	ktest_wait_cm_event(own, RDMA_CM_EVENT_DISCONNECTED);
}

static void check_memory(const struct attempt *a, const struct ktest_end *owner,
			 const struct ktest_end *peer)
{
	struct ktest_pair *p = peer->pair;
	u8 want = 0xbb;

	if (is_granted(a) && a->use == BY_WRITE)
		want = 0xaa;
	ktest_expect(p, !memchr_inv(owner->mem, 0xbb, AT));
	ktest_expect(p, !memchr_inv(owner->mem + AT, want, LEN));
	ktest_expect(p, !memchr_inv(owner->mem + AT + LEN, 0xbb, 8 * PAGE_SIZE - AT - LEN));
	want = is_granted(a) && a->use == BY_READ ? 0xbb : 0xaa;
	ktest_expect(p, !memchr_inv(peer->mem + 32 * PAGE_SIZE, want, LEN));
}

static void try_one(struct ktest_pair *p, const struct attempt *a)
{
	struct ktest_end *own = &p->end[a->side], *peer = &p->end[!a->side];
	struct ktest_end *owner = a->owner == OWN_QP ? own : &second->end[a->side];
	struct ib_send_wr last = { .opcode = IB_WR_SEND };
	struct ib_qp_attr attr = { .qp_access_flags = a->qp_rights };
	struct ktest_wr *w = &peer->sends[0];
	struct ib_mr *mr;

	mr = expose(owner, a->rights);
	if (!mr)
		return;
	if (a->qp_rights != UNSAID)
		ktest_expect_eq(p, ib_modify_qp(own->qp, &attr, IB_QP_ACCESS_FLAGS), 0);
	ktest_post_recv(own, &own->recvs[0], 16 * PAGE_SIZE, LEN);
	post_use(peer, w, a->use, mr->rkey, mr->iova);
	if (a->use != BY_INV)
		ktest_post(peer, &peer->sends[1], &last);
	check_end(a, own, peer, w);
	if (!has_failed(p))
		check_memory(a, owner, peer);
	if (is_granted(a) && a->use == BY_INV)
		check_invalid(a->side, mr);
	else if (!has_failed(p))
		check_valid(a->side, mr->lkey, mr->iova, is_granted(a) && !a->use ? 0xaa : 0xbb);
	if (has_failed(p))
		ktest_fail(p, __func__, a->use, "use, owner/rights/QP", a->owner << 16 |
			   a->rights << 8 | (a->qp_rights & 0xff));
	ib_dereg_mr(mr);
	if (!is_granted(a))
		reopen(p, p->with);
}

static void try_rights(struct ktest_pair *p, struct attempt *a)
{
	static const int qp_rights[] = {
		UNSAID, 0, IB_ACCESS_REMOTE_READ, IB_ACCESS_REMOTE_WRITE,
		IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_WRITE,
	};
	static const int rights[] = {
		IB_ACCESS_LOCAL_WRITE, IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_READ,
		IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE, MOST_RIGHTS,
	};
	int i, r;

	for (r = 0; r < ARRAY_SIZE(rights); r++) {
		for (i = 0; i < ARRAY_SIZE(qp_rights) && !has_failed(p); i++) {
			/* An access that the region refuses is tried with one value only. */
			a->rights = rights[r];
			a->qp_rights = UNSAID;
			if (i && !is_granted(a))
				break;
			a->qp_rights = qp_rights[i];
			try_one(p, a);
		}
	}
}

/* All combinations of use, rights, protection domain and QP, from either end */
static void rights(struct ktest_pair *p)
{
	struct attempt a;

	if (!open_second(p)) {
		for (a.owner = OWN_QP; a.owner <= OTHER_PD; a.owner++) {
			reopen(p, a.owner != OTHER_PD);
			for (a.side = 0; a.side < 2; a.side++)
				for (a.use = 0; a.use < USES && !has_failed(p); a.use++)
					try_rights(p, &a);
		}
	}
	reopen(p, false);
	close_second(p);
}

/* STags that must not be invalidated */
enum target {
	WRONG_KEY, WRONG_INDEX, ZERO, DMA, USER, FOREIGN, LOCAL_ONLY, NEVER, TWICE, TARGETS,
};

/**
 * struct region - an STag and the memory it refers to
 * @stag: the STag
 * @addr: address of the memory, if there is any
 * @is_valid: memory is registered
 * @mr: the region to free, or NULL
 * @user: address of the memory in the current process, or 0
 */
struct region {
	u32 stag;
	u64 addr;
	bool is_valid;
	struct ib_mr *mr;
	unsigned long user;
};

static void local_inv(struct ktest_end *end, u32 stag, enum ib_wc_status status)
{
	struct ib_send_wr wr = { .opcode = IB_WR_LOCAL_INV, .ex.invalidate_rkey = stag };
	struct ktest_wr *w = ktest_spare(end);

	ktest_post(end, w, &wr);
	ktest_wait(w, status);
}

/* Registers memory of the current process in the second pair's protection domain */
static void make_user(struct ktest_end *end, struct region *r)
{
	unsigned long addr = vm_mmap(NULL, 0, PAGE_SIZE, PROT_READ | PROT_WRITE,
				     MAP_PRIVATE | MAP_ANONYMOUS, 0);
	struct ib_mr *mr;

	ktest_expect(end->pair, !IS_ERR_VALUE(addr));
	if (IS_ERR_VALUE(addr))
		return;
	r->user = addr;
	ktest_expect_eq(end->pair, clear_user((void __user *)addr, PAGE_SIZE), 0);
	mr = ib_reg_user_mr(end->pd, addr, PAGE_SIZE, addr, MOST_RIGHTS);
	if (IS_ERR(mr)) {
		ktest_fail(end->pair, __func__, __LINE__, "ib_reg_user_mr", PTR_ERR(mr));
		return;
	}
	r->mr = mr;
	r->stag = mr->rkey;
	r->addr = addr;
	r->is_valid = true;
}

static void make_region(struct ktest_end *end, enum target target, struct region *r)
{
	memset(r, 0, sizeof(*r));
	if (target == USER) {
		make_user(end, r);
		return;
	}
	r->mr = expose(end, target == LOCAL_ONLY ? IB_ACCESS_LOCAL_WRITE : MOST_RIGHTS);
	if (!r->mr)
		return;
	r->is_valid = true;
	r->stag = r->mr->rkey;
	r->addr = r->mr->iova;
	if (target == NEVER || target == TWICE) {
		local_inv(end, r->stag, IB_WC_SUCCESS);
		r->is_valid = false;
	}
	if (target == NEVER)
		r->stag ^= 1;
	if (target == DMA) {
		r->stag = end->pd->unsafe_global_rkey;
		r->addr = end->dma + AT;
	}
}

static void free_region(struct region *r)
{
	if (r->mr)
		ib_dereg_mr(r->mr);
	if (r->user)
		vm_munmap(r->user, PAGE_SIZE);
}

static u32 named(enum target target, const struct region *r)
{
	return target == ZERO ? 0 :
	       target == WRONG_KEY ? r->stag ^ 1 :
	       target == WRONG_INDEX ? r->stag ^ 0x100 : r->stag;
}

/* Tries to invalidate a target from the peer, or from the local QP if @is_local */
static void try_target(struct ktest_pair *p, enum target target, int side, bool is_local)
{
	struct ktest_end *own = &p->end[side], *peer = &p->end[!side];
	struct region r;

	make_region(&second->end[side], target, &r);
	if (!has_failed(p) && is_local) {
		local_inv(own, named(target, &r), IB_WC_MW_BIND_ERR);
	} else if (!has_failed(p)) {
		ktest_post_recv(own, &own->recvs[0], 16 * PAGE_SIZE, LEN);
		ktest_post_recv(own, &own->recvs[1], 16 * PAGE_SIZE, LEN);
		post_use(peer, &peer->sends[0], BY_INV, named(target, &r), 0);
		ktest_wait(&own->recvs[0], IB_WC_GENERAL_ERR);
		ktest_wait(&own->recvs[1], IB_WC_WR_FLUSH_ERR);
		ktest_wait_any(&peer->sends[0]);
		ktest_wait_qp_event(own, IB_EVENT_QP_REQ_ERR);
	}
	ktest_wait_cm_event(peer, RDMA_CM_EVENT_DISCONNECTED);
	if (!has_failed(p) && r.is_valid)
		check_valid(side, target == DMA || r.user ? r.stag : r.mr->lkey, r.addr,
			    r.user ? 0 : 0xbb);
	if (has_failed(p))
		ktest_fail(p, __func__, target, "target, side, local", side << 8 | is_local);
	free_region(&r);
}

static void try_targets(struct ktest_pair *p, bool is_local)
{
	int target, side;

	if (!open_second(p)) {
		for (target = 0; target < TARGETS; target++) {
			/* Local invalidation of these is permitted. */
			if (is_local && (target == LOCAL_ONLY || target == TWICE))
				continue;
			for (side = 0; side < 2 && !has_failed(p); side++) {
				reopen(p, target != FOREIGN);
				try_target(p, target, side, is_local);
			}
		}
	}
	reopen(p, false);
	close_second(p);
}

static void peer_inv_refused(struct ktest_pair *p)
{
	try_targets(p, false);
}

static void local_inv_refused(struct ktest_pair *p)
{
	try_targets(p, true);
}

const struct ktest_case ktest_cases_rights[] = {
	{ "rights", rights, { .poll = IB_POLL_SOFTIRQ } },
	{ "peer-inv-refused", peer_inv_refused, { .poll = IB_POLL_SOFTIRQ } },
	{ "local-inv-refused", local_inv_refused, { .poll = IB_POLL_SOFTIRQ } },
	{}
};
