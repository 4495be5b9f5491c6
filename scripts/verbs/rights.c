// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * rights: no memory access exceeds what was granted. Tests all combinations of the rights of a
 * region, its protection domain and the rights of the QP, for each use of memory and in both
 * directions, with one connection each. A refused access must complete with the right status and
 * change no memory; a granted access must work.
 *
 * The program "windows" tests memory windows. Invalidation of other memory is tested with a kernel
 * consumer.
 */
#include "common.h"

#define SIZE		64
#define ROOM		(2 * PAGE)
#define AT		(PAGE - 20)	/* across a border of pages */
#define UNSAID		(-1)		/* of a QP: rights that nobody has set */

enum use { RDMA_WRITE, RDMA_READ, RECEIVE, READ_SINK, WRITE_SOURCE, SEND_SOURCE, USES };

static const char * const use_names[USES] = {
	"write", "read", "receive", "sink of a read", "source of a write", "source of a send",
};

/**
 * struct attempt - an access to try: one of all combinations
 * @use: use of the memory
 * @rights: access rights of the region
 * @other_pd: the region is in another protection domain than the QP
 * @qp_rights: access rights of the QP that receives the peer's requests, or UNSAID
 * @active: the end that posts
 */
struct attempt {
	enum use use;
	int rights;
	bool other_pd;
	int qp_rights;
	int active;
};

/**
 * struct world - state of the program
 * @sides: both hosts
 * @other: second protection domain of each host
 * @room: memory of each host whose rights are tested
 * @partner: memory of each host at the other end of the transfer
 * @good: region of @partner, with all rights
 */
static struct world {
	struct side sides[2];
	struct ibv_pd *other[2];
	__u8 *room[2];
	__u8 *partner[2];
	struct ibv_mr *good[2];
} w;

/* Whose memory it is: that of the end that posts, or of its peer */
static int owner(const struct attempt *a)
{
	return a->use <= RECEIVE ? !a->active : a->active;
}

static bool is_granted(const struct attempt *a)
{
	int need = a->use == RDMA_WRITE ? IBV_ACCESS_REMOTE_WRITE :
		   a->use == RDMA_READ ? IBV_ACCESS_REMOTE_READ :
		   a->use == RECEIVE || a->use == READ_SINK ? IBV_ACCESS_LOCAL_WRITE : 0;

	if (a->other_pd || (a->rights & need) != need)
		return false;
	if (a->use > RDMA_READ || a->qp_rights == UNSAID)
		return true;
	return a->qp_rights & need;
}

static void describe(const struct attempt *a, const char *what, int value)
{
	fail("%s, rights %#x, %s, QP %#x, from %d: %s %d", use_names[a->use], a->rights,
	     a->other_pd ? "other domain" : "own domain", a->qp_rights, a->active, what, value);
}

static __u8 octet(int who, int at)
{
	return who ? at * 3 + 1 : at * 5 + 2;
}

static void fill(void)
{
	int who, i;

	for (who = 0; who < 2; who++) {
		for (i = 0; i < ROOM; i++) {
			w.room[who][i] = octet(who, i);
			w.partner[who][i] = 0x80 ^ octet(who, i);
		}
	}
}

/* Was @from copied to @to and nothing else changed? NULL: nothing may have changed */
static bool is_as_expected(const __u8 *from, const __u8 *to)
{
	int who, i;

	for (who = 0; who < 2; who++) {
		for (i = 0; i < ROOM; i++) {
			bool is_sink = i >= AT && i < AT + SIZE;

			if (w.room[who][i] != (is_sink && to == w.room[who] ? from[i] :
					       octet(who, i)))
				return false;
			if (w.partner[who][i] != (is_sink && to == w.partner[who] ? from[i] :
						  (__u8)(0x80 ^ octet(who, i))))
				return false;
		}
	}
	return true;
}

static void check_memory(const struct attempt *a)
{
	__u8 *own = w.room[owner(a)], *partner = w.partner[!owner(a)];
	bool is_sink = a->use == RDMA_WRITE || a->use == RECEIVE || a->use == READ_SINK;

	if (!is_granted(a))
		own = NULL;
	if (!is_as_expected(is_sink || !own ? partner : own, !own ? NULL : is_sink ? own : partner))
		describe(a, "the memory is not as it should be", 0);
}

/* The work request of the attempt, and a Read of nothing, which waits for the end of a Write */
static void post(const struct attempt *a, const struct end *ends, const struct ibv_mr *mr)
{
	static const enum ibv_wr_opcode opcodes[USES] = {
		[RDMA_WRITE] = IBV_WR_RDMA_WRITE, [RDMA_READ] = IBV_WR_RDMA_READ,
		[RECEIVE] = IBV_WR_SEND, [READ_SINK] = IBV_WR_RDMA_READ,
		[WRITE_SOURCE] = IBV_WR_RDMA_WRITE, [SEND_SOURCE] = IBV_WR_SEND,
	};
	bool is_remote = owner(a) != a->active;
	struct ibv_sge own = { (unsigned long)w.room[owner(a)] + AT, SIZE, mr->lkey };
	struct ibv_sge partner = {
		(unsigned long)w.partner[!owner(a)] + AT, SIZE, w.good[!owner(a)]->lkey,
	};
	struct ibv_recv_wr recv = { .sg_list = a->use == RECEIVE ? &own : &partner, .num_sge = 1 };
	struct ibv_send_wr last = {
		.wr_id = 2, .opcode = IBV_WR_RDMA_READ, .send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { (unsigned long)w.partner[!a->active], w.good[!a->active]->rkey },
	};
	struct ibv_send_wr wr = {
		.wr_id = 1, .opcode = opcodes[a->use], .send_flags = IBV_SEND_SIGNALED,
		.sg_list = is_remote ? &partner : &own, .num_sge = 1, .next = &last,
		.wr.rdma = {
			is_remote ? own.addr : partner.addr,
			is_remote ? mr->rkey : w.good[!owner(a)]->rkey,
		},
	};
	struct ibv_send_wr *bad_send;
	struct ibv_recv_wr *bad_recv;

	if (wr.opcode == IBV_WR_SEND)
		MUST(!ibv_post_recv(ends[!a->active].id->qp, &recv, &bad_recv));
	MUST(!ibv_post_send(ends[a->active].id->qp, &wr, &bad_send));
}

static bool is_local_fault(enum ibv_wc_status status)
{
	return status == IBV_WC_LOC_PROT_ERR || status == IBV_WC_LOC_ACCESS_ERR;
}

/*
 * A Write or Send completes when TCP has it, so the following work request reports that the peer
 * refused it. A Read itself reports that.
 */
static void check_refusal(const struct attempt *a, struct queues *queues)
{
	struct ibv_wc first, second, recv;

	complete(queues[a->active].scq, &first);
	complete(queues[a->active].scq, &second);
	if (first.wr_id != 1 || second.wr_id != 2)
		describe(a, "completion of", first.wr_id);
	if (second.status == IBV_WC_SUCCESS)
		describe(a, "the connection lives, status", first.status);
	if (owner(a) == a->active && !is_local_fault(first.status))
		describe(a, "status", first.status);
	if (a->use == RDMA_READ && first.status != IBV_WC_REM_ACCESS_ERR)
		describe(a, "status", first.status);
	if (a->use == RDMA_WRITE && first.status != IBV_WC_SUCCESS &&
	    first.status != IBV_WC_REM_ACCESS_ERR)
		describe(a, "status", first.status);
	if (a->use != RECEIVE)
		return;
	complete(queues[!a->active].rcq, &recv);
	if (!is_local_fault(recv.status))
		describe(a, "status of the receive", recv.status);
}

static void check_success(const struct attempt *a, struct queues *queues)
{
	struct ibv_wc wc;
	int i;

	for (i = 1; i <= 2; i++) {
		complete(queues[a->active].scq, &wc);
		if (wc.wr_id != (__u64)i || wc.status != IBV_WC_SUCCESS)
			describe(a, "status", wc.status);
	}
	if (a->use != RECEIVE && a->use != SEND_SOURCE)
		return;
	complete(queues[!a->active].rcq, &wc);
	if (wc.status != IBV_WC_SUCCESS || wc.byte_len != SIZE)
		describe(a, "status of the receive", wc.status);
}

static void connect_for(const struct attempt *a, struct end *ends, struct queues *queues)
{
	struct ibv_qp_attr attr = { .qp_access_flags = a->qp_rights };
	int i;

	for (i = 0; i < 2; i++)
		queues[i] = queues_of(&w.sides[i], 8);
	MUST(conn_open(ends, &w.sides[0], &w.sides[1], queues));
	if (a->qp_rights != UNSAID)
		MUST(!ibv_modify_qp(ends[!a->active].id->qp, &attr, IBV_QP_ACCESS_FLAGS));
}

static void try_one(const struct attempt *a)
{
	struct ibv_pd *pd = a->other_pd ? w.other[owner(a)] : w.sides[owner(a)].pd;
	struct queues queues[2];
	struct end ends[2];
	struct ibv_mr *mr;
	int i;

	fill();
	connect_for(a, ends, queues);
	mr = reg(pd, w.room[owner(a)], ROOM, a->rights);
	post(a, ends, mr);
	if (is_granted(a))
		check_success(a, queues);
	else
		check_refusal(a, queues);
	check_memory(a);
	for (i = 0; i < 2; i++)
		end_close(&ends[i]);
	for (i = 0; i < 2; i++)
		queues_close(&queues[i]);
	MUST(!ibv_dereg_mr(mr));
}

/* Tries a use with all rights of the QP, or with one value only if they do not matter for it */
static int try_use(enum use use, int rights, int active)
{
	static const int qp_rights[] = {
		UNSAID, 0, IBV_ACCESS_REMOTE_READ, IBV_ACCESS_REMOTE_WRITE,
		IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE,
	};
	struct attempt a = { .use = use, .rights = rights, .active = active };
	size_t count = use <= RDMA_READ ? ARRAY_SIZE(qp_rights) : 1;
	size_t i;

	for (i = 0; i < 2 * count; i++) {
		a.qp_rights = qp_rights[i / 2];
		a.other_pd = i % 2;
		try_one(&a);
	}
	return i;
}

/**
 * main() - see the head of the file
 *
 * Context: user space.
 * Return: 0, or 1 when something was wrong.
 */
int main(void)
{
	/* Remote write implies local write, or the verbs refuse it */
	static const int rights[] = {
		0, IBV_ACCESS_LOCAL_WRITE, IBV_ACCESS_REMOTE_READ,
		IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ,
		IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE,
		IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE,
	};
	int active, use, count = 0;
	size_t i;

	side_open(&w.sides[0], "a", "10.77.0.1", 7803);
	side_open(&w.sides[1], "b", "10.77.0.2", 7803);
	for (i = 0; i < 2; i++) {
		w.other[i] = ibv_alloc_pd(w.sides[i].listener->verbs);
		w.room[i] = pages(ROOM);
		w.partner[i] = pages(ROOM);
		w.good[i] = reg(w.sides[i].pd, w.partner[i], ROOM, rights[5]);
	}
	MUST(!ibv_reg_mr(w.sides[0].pd, w.room[0], ROOM, IBV_ACCESS_REMOTE_WRITE));
	for (active = 0; active < 2; active++)
		for (use = 0; use < USES; use++)
			for (i = 0; i < ARRAY_SIZE(rights); i++)
				count += try_use(use, rights[i], active);
	printf("%d combinations\n", count);
	return 0;
}
