// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * ext CASE: what a process can do on a device of the link type kiwarp-ext, and not on others:
 * immediate data and atomic operations, the extended interfaces of QPs and CQs, queues that hold
 * what they say. One case:
 *
 *   limits     attributes; a queue of N takes N entries, and the next post fails
 *   immediate  Writes with immediate data, of all sizes; Sends with immediate data fail
 *   atomic     both operations, by both ends, and what is refused
 *   policy     what becomes of both where the policy rfc7306 of either end is n
 *   sum        two peers and a local thread add to one word, for a second or KIW_SOAK seconds
 *   builder    the same through struct ibv_qp_ex
 *   poller     completions through struct ibv_cq_ex
 *   events     a queue that is armed for any, or for solicited completions
 *   resize     a completion queue that is resized with completions in it
 *   resize-srq a shared receive queue that is resized while messages take receives from it
 */
#include "common.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/rdma_user_rxe.h>

#define ROOM		(16 * PAGE)
#define DEPTH		16
#define IMM		0x51525354
#define WORD		512		/* where the word of atomic operations is */
#define SWAPPED		0x123456789abcdef0
#define SINK		256		/* where the value goes that was there */
#define TERM_SENT	0x01000000	/* in vendor_err: this end has sent the Terminate */
#define TERM_RECEIVED	0x02000000	/* the other end has */
#define TERM_OWN	TERM_SENT	/* RDMAP local catastrophic error: 0, 0, 0 */
#define TERM_STAG	(TERM_RECEIVED | 0x000100)	/* RDMAP invalid STag: 0, 1, 0 */
#define TERM_BOUNDS	(TERM_RECEIVED | 0x000101)	/* RDMAP base or bounds: 0, 1, 1 */
#define TERM_OPCODE	(TERM_RECEIVED | 0x000206)	/* RDMAP unexpected opcode: 0, 2, 6 */
#define CQ_EX_FLAGS	(IBV_WC_EX_WITH_BYTE_LEN | IBV_WC_EX_WITH_IMM | IBV_WC_EX_WITH_QP_NUM)

/**
 * struct world - state of the program
 * @sides: both hosts
 * @queues: queues of each host
 * @ends: ends of the connection
 * @room: memory of each host
 * @mr: its region, with all rights
 */
static struct world {
	struct side sides[2];
	struct queues queues[2];
	struct end ends[2];
	__u8 *room[2];
	struct ibv_mr *mr[2];
} w;

static void make_queues(void)
{
	int i;

	for (i = 0; i < 2; i++)
		w.queues[i] = queues_of(&w.sides[i], DEPTH);
}

static void connect_both(void)
{
	MUST(conn_open(w.ends, &w.sides[0], &w.sides[1], w.queues));
}

static void begin(void)
{
	make_queues();
	connect_both();
}

static void end_all(void)
{
	int i;

	for (i = 0; i < 2; i++)
		end_close(&w.ends[i]);
	for (i = 0; i < 2; i++)
		queues_close(&w.queues[i]);
}

static void open_world(void)
{
	int i;

	side_open(&w.sides[0], "a", "10.77.0.1", 7803);
	side_open(&w.sides[1], "b", "10.77.0.2", 7803);
	for (i = 0; i < 2; i++) {
		w.room[i] = pages(ROOM);
		w.mr[i] = reg(w.sides[i].pd, w.room[i], ROOM,
			      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ |
			      IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC);
		MUST(w.mr[i]);
	}
}

static struct ibv_sge piece(int who, __u32 at, __u32 length)
{
	return (struct ibv_sge) { (unsigned long)w.room[who] + at, length, w.mr[who]->lkey };
}

static int try_post(int who, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;

	wr->send_flags |= IBV_SEND_SIGNALED;
	return ibv_post_send(w.ends[who].id->qp, wr, &bad);
}

static void post(int who, struct ibv_send_wr *wr)
{
	MUST(!try_post(who, wr));
}

static void post_recv(int who, __u64 id)
{
	struct ibv_recv_wr wr = { .wr_id = id }, *bad;

	MUST(!ibv_post_recv(w.ends[who].id->qp, &wr, &bad));
}

static void wants(const struct ibv_wc *wc, __u64 id, enum ibv_wc_status status,
		  enum ibv_wc_opcode opcode)
{
	if (wc->wr_id != id || wc->status != status ||
	    (!status && wc->opcode != opcode))
		fail("completion of %llu with %s, opcode %d; wanted %llu, %s, %d",
		     (unsigned long long)wc->wr_id, ibv_wc_status_str(wc->status), wc->opcode,
		     (unsigned long long)id, ibv_wc_status_str(status), opcode);
}

static void sent(int who, __u64 id, enum ibv_wc_status status, enum ibv_wc_opcode opcode)
{
	struct ibv_wc wc;

	complete(w.queues[who].scq, &wc);
	wants(&wc, id, status, opcode);
	MUST(status || !wc.vendor_err);
}

/* A completion that has failed names the Terminate, and who has sent it. */
static void ended(struct ibv_cq *cq, __u64 id, enum ibv_wc_status status, __u32 term)
{
	struct ibv_wc wc;

	complete(cq, &wc);
	wants(&wc, id, status, 0);
	if (wc.vendor_err != term)
		fail("%llu: vendor_err %#x, wanted %#x", (unsigned long long)id, wc.vendor_err,
		     term);
}

/* The event of the QP of @who */
static void raised(int who, enum ibv_event_type type)
{
	struct ibv_context *ctx = w.sides[who].listener->verbs;
	struct pollfd fd = { .fd = ctx->async_fd, .events = POLLIN };
	struct ibv_async_event event;

	MUST(poll(&fd, 1, patience() * 1000) == 1 && !ibv_get_async_event(ctx, &event));
	if (event.event_type != type || event.element.qp != w.ends[who].id->qp)
		fail("event: %s, wanted %s", ibv_event_type_str(event.event_type),
		     ibv_event_type_str(type));
	ibv_ack_async_event(&event);
}

/*
 * What @who cannot ask for, or the other end cannot do, ends the connection with @term. The other
 * end has @event.
 */
static void refused(int who, struct ibv_send_wr *wr, enum ibv_wc_status status, __u32 term,
		    enum ibv_event_type event)
{
	begin();
	post_recv(who, 97);
	post_recv(!who, 98);
	wr->wr_id = 99;
	post(who, wr);
	ended(w.queues[who].scq, 99, status, term);
	ended(w.queues[who].rcq, 97, IBV_WC_WR_FLUSH_ERR, term);
	term ^= TERM_SENT | TERM_RECEIVED;
	ended(w.queues[!who].rcq, 98, IBV_WC_WR_FLUSH_ERR, term);
	raised(who, IBV_EVENT_QP_FATAL);
	raised(!who, event);
	end_all();
}

/* Attributes and depths */

static void attributes(void)
{
	struct ibv_device_attr attr;

	MUST(!ibv_query_device(w.sides[0].listener->verbs, &attr));
	MUST(attr.atomic_cap == IBV_ATOMIC_GLOB);
	MUST(attr.max_qp_wr == 32767 && attr.max_cqe == 1048575 && attr.max_srq_wr == 32767);
	MUST(w.sides[0].listener->verbs->device->transport_type == IBV_TRANSPORT_IWARP);
}

/* Entries of a QP that is not connected stay in its ring. */
static void depth_is(__u32 depth)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = depth, .max_recv_wr = depth, .max_send_sge = 1,
			 .max_recv_sge = 1 },
	};
	struct ibv_qp_attr init = { .qp_state = IBV_QPS_INIT, .port_num = 1 };
	struct ibv_send_wr send = { .opcode = IBV_WR_SEND }, *bad_send;
	struct ibv_recv_wr recv = { .wr_id = 1 }, *bad_recv;
	struct ibv_qp *qp;
	__u32 i;

	attr.send_cq = ibv_create_cq(w.sides[0].pd->context, depth + 1, NULL, NULL, 0);
	MUST(attr.send_cq && attr.send_cq->cqe >= (int)depth + 1);
	attr.recv_cq = attr.send_cq;
	qp = ibv_create_qp(w.sides[0].pd, &attr);
	MUST(qp && attr.cap.max_send_wr >= depth && attr.cap.max_recv_wr >= depth);
	MUST(!ibv_modify_qp(qp, &init, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
			    IBV_QP_ACCESS_FLAGS));
	for (i = 0; i < attr.cap.max_send_wr; i++)
		MUST(!ibv_post_send(qp, &send, &bad_send));
	MUST(ibv_post_send(qp, &send, &bad_send) && bad_send == &send);
	for (i = 0; i < attr.cap.max_recv_wr; i++)
		MUST(!ibv_post_recv(qp, &recv, &bad_recv));
	MUST(ibv_post_recv(qp, &recv, &bad_recv) && bad_recv == &recv);
	MUST(!ibv_destroy_qp(qp) && !ibv_destroy_cq(attr.send_cq));
}

static void shared_depth_is(__u32 depth)
{
	struct ibv_srq_init_attr init = { .attr = { .max_wr = depth, .max_sge = 1 } };
	struct ibv_srq *srq = ibv_create_srq(w.sides[0].pd, &init);
	struct ibv_recv_wr recv = { .wr_id = 1 }, *bad;
	struct ibv_srq_attr attr;
	__u32 i;

	MUST(srq && !ibv_query_srq(srq, &attr) && attr.max_wr >= depth);
	for (i = 0; i < attr.max_wr; i++)
		MUST(!ibv_post_srq_recv(srq, &recv, &bad));
	MUST(ibv_post_srq_recv(srq, &recv, &bad) && bad == &recv);
	attr.srq_limit = attr.max_wr + 1;
	MUST(ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT));
	attr.srq_limit = attr.max_wr;
	MUST(!ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT));
	MUST(!ibv_query_srq(srq, &attr) && attr.srq_limit == attr.max_wr);
	MUST(!ibv_destroy_srq(srq));
}

static void limits(void)
{
	__u32 depth;

	attributes();
	for (depth = 0; depth < 70; depth = depth < 17 ? depth + 1 : 3 * depth)
		depth_is(depth);
	for (depth = 1; depth < 70; depth = depth < 9 ? depth + 1 : 3 * depth)
		shared_depth_is(depth);
}

/* Immediate data */

static struct ibv_send_wr write_imm(int who, __u32 size, struct ibv_sge *sge)
{
	*sge = piece(who, PAGE, size);
	return (struct ibv_send_wr) {
		.wr_id = size, .opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
		.imm_data = htobe32(IMM + size), .sg_list = sge, .num_sge = !!size,
		.send_flags = size == 40 ? IBV_SEND_INLINE : 0,
		.wr.rdma = { (unsigned long)w.room[!who] + 2 * PAGE, w.mr[!who]->rkey },
	};
}

static void immediate(void)
{
	static const __u32 sizes[] = { 0, 1, 8, 40, 1444, 5000, 40000, 0 };
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct ibv_wc wc;
	size_t i, at;

	begin();
	for (at = 0; at < ROOM; at++)
		w.room[0][at] = at * 31 >> 3;
	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		memset(w.room[1], 0, ROOM);
		post_recv(1, 1000 + i);
		wr = write_imm(0, sizes[i], &sge);
		post(0, &wr);
		sent(0, sizes[i], IBV_WC_SUCCESS, IBV_WC_RDMA_WRITE);
		complete(w.queues[1].rcq, &wc);
		wants(&wc, 1000 + i, IBV_WC_SUCCESS, IBV_WC_RECV_RDMA_WITH_IMM);
		MUST(wc.wc_flags == IBV_WC_WITH_IMM && wc.imm_data == htobe32(IMM + sizes[i]));
		MUST(wc.byte_len == sizes[i] && wc.qp_num == w.ends[1].id->qp->qp_num);
		MUST(!memcmp(w.room[1] + 2 * PAGE, w.room[0] + PAGE, sizes[i]));
	}
	end_all();

	wr = write_imm(0, 8, &sge);
	wr.opcode = IBV_WR_SEND_WITH_IMM;
	refused(0, &wr, IBV_WC_LOC_QP_OP_ERR, TERM_OWN, IBV_EVENT_QP_FATAL);
}

/* Atomic operations */

static __u64 *word(int who, __u32 at)
{
	return (__u64 *)(w.room[who] + at);
}

static struct ibv_send_wr atomic(int who, enum ibv_wr_opcode opcode, __u64 compare_add, __u64 swap,
				 struct ibv_sge *sge)
{
	*sge = piece(who, SINK, 8);
	return (struct ibv_send_wr) {
		.wr_id = opcode, .opcode = opcode, .sg_list = sge, .num_sge = 1,
		.wr.atomic = { (unsigned long)w.room[!who] + WORD, compare_add, swap,
			       w.mr[!who]->rkey },
	};
}

static void operate(int who, enum ibv_wr_opcode opcode, __u64 compare_add, __u64 swap, __u64 wanted)
{
	__u64 old = *word(!who, WORD);
	struct ibv_send_wr wr;
	struct ibv_sge sge;

	*word(who, SINK) = ~old;
	wr = atomic(who, opcode, compare_add, swap, &sge);
	post(who, &wr);
	sent(who, opcode, IBV_WC_SUCCESS,
	     opcode == IBV_WR_ATOMIC_FETCH_AND_ADD ? IBV_WC_FETCH_ADD : IBV_WC_COMP_SWAP);
	if (*word(who, SINK) != old || *word(!who, WORD) != wanted)
		fail("opcode %d: was %#llx, became %#llx, wanted %#llx", opcode,
		     (unsigned long long)*word(who, SINK), (unsigned long long)*word(!who, WORD),
		     (unsigned long long)wanted);
}

static void atomics(void)
{
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	int who;

	begin();
	/* The end that connected sends first (MPA). */
	for (who = 0; who < 2; who++) {
		*word(!who, WORD) = 40;
		operate(who, IBV_WR_ATOMIC_FETCH_AND_ADD, 2, 99, 42);
		operate(who, IBV_WR_ATOMIC_FETCH_AND_ADD, -43ULL, 99, -1ULL);
		operate(who, IBV_WR_ATOMIC_CMP_AND_SWP, -1ULL, SWAPPED, SWAPPED);
		operate(who, IBV_WR_ATOMIC_CMP_AND_SWP, 5, 6, SWAPPED);
	}
	end_all();

	wr = atomic(0, IBV_WR_ATOMIC_FETCH_AND_ADD, 1, 0, &sge);
	wr.wr.atomic.rkey ^= 0x100;
	refused(0, &wr, IBV_WC_REM_ACCESS_ERR, TERM_STAG, IBV_EVENT_QP_ACCESS_ERR);
	wr = atomic(0, IBV_WR_ATOMIC_FETCH_AND_ADD, 1, 0, &sge);
	wr.wr.atomic.remote_addr += ROOM;
	refused(0, &wr, IBV_WC_REM_ACCESS_ERR, TERM_BOUNDS, IBV_EVENT_QP_ACCESS_ERR);
	wr = atomic(0, IBV_WR_ATOMIC_CMP_AND_SWP, 1, 0, &sge);
	sge.length = 16;
	refused(0, &wr, IBV_WC_LOC_QP_OP_ERR, TERM_OWN, IBV_EVENT_QP_FATAL);
	wr = atomic(0, IBV_WR_ATOMIC_CMP_AND_SWP, 1, 0, &sge);
	sge.lkey ^= 0x100;
	refused(0, &wr, IBV_WC_LOC_PROT_ERR, TERM_OWN, IBV_EVENT_QP_FATAL);
	MUST(*word(1, WORD) == SWAPPED);
}

/* The policy rfc7306, of connections that begin after this */
static void policy_is(int who, bool allows)
{
	char path[128];
	FILE *f;

	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/policy/rfc7306",
		 ibv_get_device_name(w.sides[who].listener->verbs->device));
	f = fopen(path, "w");
	MUST(f && fputc(allows ? 'y' : 'n', f) != EOF && !fclose(f));
}

/* An end without RFC 7306 posts each of its messages. */
static void off_here(int who)
{
	struct ibv_send_wr wr;
	struct ibv_sge sge;

	wr = write_imm(who, 8, &sge);
	refused(who, &wr, IBV_WC_LOC_QP_OP_ERR, TERM_OWN, IBV_EVENT_QP_FATAL);
	wr = write_imm(who, 0, &sge);
	refused(who, &wr, IBV_WC_LOC_QP_OP_ERR, TERM_OWN, IBV_EVENT_QP_FATAL);
	wr = atomic(who, IBV_WR_ATOMIC_FETCH_AND_ADD, 1, 0, &sge);
	refused(who, &wr, IBV_WC_LOC_QP_OP_ERR, TERM_OWN, IBV_EVENT_QP_FATAL);
	wr = atomic(who, IBV_WR_ATOMIC_CMP_AND_SWP, 0, 1, &sge);
	refused(who, &wr, IBV_WC_LOC_QP_OP_ERR, TERM_OWN, IBV_EVENT_QP_FATAL);
}

/*
 * A Write with immediate to an end without RFC 7306 has completed before that end refuses the
 * immediate. A Read behind it is told, and takes no data.
 */
static void off_there_immediate(int who)
{
	struct ibv_sge sge, sink = piece(who, SINK, 8);
	struct ibv_send_wr read = {
		.wr_id = 99, .opcode = IBV_WR_RDMA_READ, .sg_list = &sink, .num_sge = 1,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { (unsigned long)w.room[!who] + WORD, w.mr[!who]->rkey },
	};
	struct ibv_send_wr wr = write_imm(who, 8, &sge);

	wr.next = &read;
	memset(w.room[who] + PAGE, 0x77, 8);
	*word(who, SINK) = 1;
	begin();
	post_recv(!who, 98);
	post(who, &wr);
	sent(who, 8, IBV_WC_SUCCESS, IBV_WC_RDMA_WRITE);
	ended(w.queues[who].scq, 99, IBV_WC_REM_INV_REQ_ERR, TERM_OPCODE);
	ended(w.queues[!who].rcq, 98, IBV_WC_WR_FLUSH_ERR, TERM_OPCODE ^ TERM_RECEIVED ^ TERM_SENT);
	raised(who, IBV_EVENT_QP_FATAL);
	raised(!who, IBV_EVENT_QP_REQ_ERR);
	MUST(!memcmp(w.room[!who] + 2 * PAGE, w.room[who] + PAGE, 8) && *word(who, SINK) == 1);
	end_all();
}

/* An end without RFC 7306 receives each of its messages. */
static void off_there(int who)
{
	struct ibv_send_wr wr;
	struct ibv_sge sge;

	wr = atomic(who, IBV_WR_ATOMIC_FETCH_AND_ADD, 1, 0, &sge);
	refused(who, &wr, IBV_WC_REM_INV_REQ_ERR, TERM_OPCODE, IBV_EVENT_QP_REQ_ERR);
	wr = atomic(who, IBV_WR_ATOMIC_CMP_AND_SWP, 0, 1, &sge);
	refused(who, &wr, IBV_WC_REM_INV_REQ_ERR, TERM_OPCODE, IBV_EVENT_QP_REQ_ERR);
	off_there_immediate(who);
}

/* What the messages of RFC 7306 and the rest of verbs are to both ends of a connection */
static void works(void)
{
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct ibv_wc wc;

	operate(0, IBV_WR_ATOMIC_FETCH_AND_ADD, 1, 0, 1);
	operate(1, IBV_WR_ATOMIC_CMP_AND_SWP, 0, 1, 1);
	post_recv(1, 5);
	wr = write_imm(0, 8, &sge);
	post(0, &wr);
	sent(0, 8, IBV_WC_SUCCESS, IBV_WC_RDMA_WRITE);
	complete(w.queues[1].rcq, &wc);
	wants(&wc, 5, IBV_WC_SUCCESS, IBV_WC_RECV_RDMA_WITH_IMM);
	*word(0, WORD) = 0;
	*word(1, WORD) = 0;
}

static void policy(void)
{
	int who;

	for (who = 0; who < 2; who++) {
		policy_is(who, false);
		policy_is(!who, true);
		attributes();
		off_here(who);
		off_there(!who);
		/* Nothing was executed. */
		MUST(!*word(0, WORD) && !*word(1, WORD));
	}
	/* A connection keeps the policy with which it began. */
	policy_is(0, true);
	policy_is(1, true);
	begin();
	policy_is(0, false);
	policy_is(1, false);
	works();
	end_all();
	off_here(0);
	policy_is(0, true);
	policy_is(1, true);
	begin();
	works();
	end_all();
}

/* One word, to which everybody adds */

/**
 * struct adder - a connection that adds to the word
 * @queues: queues of each host
 * @ends: its ends
 * @sink: where the original values go
 * @waiting: operations that have not completed
 * @added: operations that have added 1
 * @seen: CmpSwap: the value that the word had last
 */
struct adder {
	struct queues queues[2];
	struct end ends[2];
	__u32 sink;
	int waiting;
	__u64 added;
	__u64 seen;
};

static struct {
	bool over;
	__u64 added;
} local;

/* In bursts, so that a CmpSwap has a chance */
static void *add_locally(void *unused)
{
	(void)unused;
	while (!__atomic_load_n(&local.over, __ATOMIC_RELAXED)) {
		__atomic_fetch_add(word(1, WORD), 1, __ATOMIC_SEQ_CST);
		if (!(++local.added % 10000))
			usleep(5000);
	}
	return NULL;
}

static void adder_open(struct adder *adder, __u32 sink)
{
	int i;

	for (i = 0; i < 2; i++)
		adder->queues[i] = queues_of(&w.sides[i], DEPTH);
	MUST(conn_open(adder->ends, &w.sides[0], &w.sides[1], adder->queues));
	adder->sink = sink;
}

static void adder_close(struct adder *adder)
{
	int i;

	for (i = 0; i < 2; i++)
		end_close(&adder->ends[i]);
	for (i = 0; i < 2; i++)
		queues_close(&adder->queues[i]);
}

static void adder_post(struct adder *adder, enum ibv_wr_opcode opcode, __u64 compare_add)
{
	struct ibv_send_wr wr, *bad;
	struct ibv_sge sge;

	wr = atomic(0, opcode, compare_add, compare_add + 1, &sge);
	sge.addr = (unsigned long)w.room[0] + adder->sink;
	wr.send_flags = IBV_SEND_SIGNALED;
	MUST(!ibv_post_send(adder->ends[0].id->qp, &wr, &bad));
	adder->waiting++;
}

static bool adder_poll(struct adder *adder)
{
	struct ibv_wc wc;

	if (!ibv_poll_cq(adder->queues[0].scq, 1, &wc))
		return false;
	MUST(wc.status == IBV_WC_SUCCESS);
	adder->waiting--;
	return true;
}

/* Many at a time, in bursts, too */
static void fetch_and_add(struct adder *adder, bool is_over)
{
	bool pauses = is_over || (__u64)(now() * 100) % 2;

	while (!pauses && adder->waiting < DEPTH)
		adder_post(adder, IBV_WR_ATOMIC_FETCH_AND_ADD, 1);
	while (adder_poll(adder))
		adder->added++;
}

/* One at a time, which succeeds if nobody else has added meanwhile */
static void compare_and_swap(struct adder *adder, bool is_over)
{
	__u64 old;

	if (!is_over && !adder->waiting)
		adder_post(adder, IBV_WR_ATOMIC_CMP_AND_SWP, adder->seen);
	if (!adder_poll(adder))
		return;
	old = *word(0, adder->sink);
	adder->added += old == adder->seen;
	adder->seen = old == adder->seen ? old + 1 : old;
}

static void sum(void)
{
	const char *soak = getenv("KIW_SOAK");
	struct adder adds = {}, swaps = {};
	double until, deadline;
	bool is_over = false;
	pthread_t thread;
	__u64 total;

	adder_open(&adds, SINK);
	adder_open(&swaps, SINK + 8);
	until = now() + (soak ? atof(soak) : 1);
	deadline = until + patience();
	MUST(!pthread_create(&thread, NULL, add_locally, NULL));
	while (!is_over || adds.waiting || swaps.waiting) {
		MUST(now() < deadline);
		is_over = now() > until && adds.added && swaps.added;
		fetch_and_add(&adds, is_over);
		compare_and_swap(&swaps, is_over);
		rest();
	}
	__atomic_store_n(&local.over, true, __ATOMIC_RELAXED);
	MUST(!pthread_join(thread, NULL));
	total = adds.added + swaps.added + local.added;
	printf("%llu FetchAdds, %llu CmpSwaps, %llu local additions\n",
	       (unsigned long long)adds.added, (unsigned long long)swaps.added,
	       (unsigned long long)local.added);
	if (*word(1, WORD) != total)
		fail("the word is %llu, not %llu", (unsigned long long)*word(1, WORD),
		     (unsigned long long)total);
	adder_close(&adds);
	adder_close(&swaps);
}

/* struct ibv_qp_ex */

static void builder(void)
{
	const __u64 there = (unsigned long)w.room[1];
	struct ibv_qp_ex *qp;
	struct ibv_wc wc;
	int i;

	make_queues();
	w.queues[0].send_ops = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM |
			       IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD |
			       IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP;
	connect_both();
	qp = ibv_qp_to_qp_ex(w.ends[0].id->qp);
	MUST(qp);
	*word(1, WORD) = 7;
	memset(w.room[0] + PAGE, 0x77, 100);
	post_recv(1, 1);
	ibv_wr_start(qp);
	qp->wr_flags = IBV_SEND_SIGNALED;
	qp->wr_id = 1;
	ibv_wr_rdma_write(qp, w.mr[1]->rkey, there + PAGE);
	ibv_wr_set_sge(qp, w.mr[0]->lkey, (unsigned long)w.room[0] + PAGE, 100);
	qp->wr_id = 2;
	ibv_wr_rdma_write(qp, w.mr[1]->rkey, there + 2 * PAGE);
	ibv_wr_set_inline_data(qp, "inline data", 12);
	qp->wr_id = 3;
	ibv_wr_atomic_fetch_add(qp, w.mr[1]->rkey, there + WORD, 3);
	ibv_wr_set_sge(qp, w.mr[0]->lkey, (unsigned long)w.room[0] + SINK, 8);
	qp->wr_id = 4;
	qp->wr_flags |= IBV_SEND_FENCE;
	ibv_wr_atomic_cmp_swp(qp, w.mr[1]->rkey, there + WORD, 10, 11);
	ibv_wr_set_sge(qp, w.mr[0]->lkey, (unsigned long)w.room[0] + SINK + 8, 8);
	qp->wr_id = 5;
	ibv_wr_rdma_write_imm(qp, w.mr[1]->rkey, there + 3 * PAGE, htobe32(IMM));
	ibv_wr_set_inline_data(qp, "", 0);
	MUST(!ibv_wr_complete(qp));
	for (i = 1; i <= 5; i++) {
		complete(w.queues[0].scq, &wc);
		if (wc.wr_id != (__u64)i || wc.status)
			fail("%d: completion of %d with %s", i, (int)wc.wr_id,
			     ibv_wc_status_str(wc.status));
	}
	complete(w.queues[1].rcq, &wc);
	wants(&wc, 1, IBV_WC_SUCCESS, IBV_WC_RECV_RDMA_WITH_IMM);
	MUST(wc.imm_data == htobe32(IMM));
	MUST(!memcmp(w.room[1] + PAGE, w.room[0] + PAGE, 100));
	MUST(!strcmp((char *)w.room[1] + 2 * PAGE, "inline data"));
	MUST(*word(0, SINK) == 7 && *word(0, SINK + 8) == 10 && *word(1, WORD) == 11);
	end_all();
}

/* struct ibv_cq_ex */

static void poller(void)
{
	struct ibv_cq_init_attr_ex attr = { .cqe = 2 * DEPTH, .wc_flags = CQ_EX_FLAGS };
	struct ibv_poll_cq_attr poll_attr = {};
	struct ibv_cq_ex *cq;
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	double until;

	cq = ibv_create_cq_ex(w.sides[1].listener->verbs, &attr);
	MUST(cq);
	make_queues();
	MUST(!ibv_destroy_cq(w.queues[1].rcq));
	w.queues[1].rcq = ibv_cq_ex_to_cq(cq);
	connect_both();
	post_recv(1, 17);
	wr = write_imm(0, 1000, &sge);
	post(0, &wr);
	for (until = now() + patience(); ibv_start_poll(cq, &poll_attr) == ENOENT;)
		MUST(now() < until);
	MUST(cq->wr_id == 17 && cq->status == IBV_WC_SUCCESS);
	MUST(ibv_wc_read_opcode(cq) == IBV_WC_RECV_RDMA_WITH_IMM);
	MUST(ibv_wc_read_byte_len(cq) == 1000);
	MUST(ibv_wc_read_imm_data(cq) == htobe32(IMM + 1000));
	MUST(ibv_wc_read_wc_flags(cq) == IBV_WC_WITH_IMM);
	MUST(ibv_wc_read_qp_num(cq) == w.ends[1].id->qp->qp_num);
	ibv_end_poll(cq);
	end_all();
}

/* Events */

static struct ibv_comp_channel *channel;

static bool has_event(double seconds)
{
	struct pollfd fd = { .fd = channel->fd, .events = POLLIN };
	struct ibv_cq *cq;
	void *context;

	if (poll(&fd, 1, seconds * 1000) <= 0)
		return false;
	MUST(!ibv_get_cq_event(channel, &cq, &context));
	ibv_ack_cq_events(cq, 1);
	return true;
}

/* A message and its completion, which has come before @has_event() is asked */
static void message(int flags)
{
	struct ibv_send_wr wr = { .wr_id = 5, .opcode = IBV_WR_SEND, .send_flags = flags };
	struct ibv_wc wc;

	post_recv(1, 6);
	post(0, &wr);
	sent(0, 5, IBV_WC_SUCCESS, IBV_WC_SEND);
	complete(w.queues[1].rcq, &wc);
	wants(&wc, 6, IBV_WC_SUCCESS, IBV_WC_RECV);
}

static void events(void)
{
	struct ibv_context *ctx = w.sides[1].listener->verbs;

	channel = ibv_create_comp_channel(ctx);
	MUST(channel);
	make_queues();
	MUST(!ibv_destroy_cq(w.queues[1].rcq));
	w.queues[1].rcq = ibv_create_cq(ctx, 2 * DEPTH, NULL, channel, 0);
	MUST(w.queues[1].rcq);
	connect_both();

	message(0);
	message(IBV_SEND_SOLICITED);
	MUST(!ibv_req_notify_cq(w.queues[1].rcq, 1));
	message(0);
	message(0);
	/* Had one of the two raised an event, there would be another now. */
	message(IBV_SEND_SOLICITED);
	MUST(has_event(patience()));
	MUST(!ibv_req_notify_cq(w.queues[1].rcq, 0));
	message(0);
	MUST(has_event(patience()));
	message(IBV_SEND_SOLICITED);
	MUST(!has_event(0));
	end_all();
	MUST(!ibv_destroy_comp_channel(channel));
}

/* Resizing */

static int unread;
static __u64 next_sent, next_polled;

/* All messages so far have arrived when the answer to a Read after them has. */
static void arrived(void)
{
	struct ibv_sge sge = piece(0, SINK, 8);
	struct ibv_send_wr wr = {
		.wr_id = 9, .opcode = IBV_WR_RDMA_READ, .sg_list = &sge, .num_sge = 1,
		.wr.rdma = { (unsigned long)w.room[1] + WORD, w.mr[1]->rkey },
	};

	post(0, &wr);
	sent(0, 9, IBV_WC_SUCCESS, IBV_WC_RDMA_READ);
}

/*
 * A message; the order of its completion is verified when it is polled. It leaves the receive queue
 * when it arrives, which may be later than it is sent.
 */
static void number(void)
{
	struct ibv_send_wr wr = { .wr_id = next_sent, .opcode = IBV_WR_SEND };

	post_recv(1, next_sent);
	post(0, &wr);
	sent(0, next_sent++, IBV_WC_SUCCESS, IBV_WC_SEND);
	unread++;
	if (!(next_sent % DEPTH))
		arrived();
}

static void poll_number(void)
{
	struct ibv_wc wc;

	complete(w.queues[1].rcq, &wc);
	wants(&wc, next_polled++, IBV_WC_SUCCESS, IBV_WC_RECV);
	unread--;
}

/* Resize a queue with up to @most completions in it, @rounds times */
static void resize_often(struct ibv_cq *cq, int rounds, int most)
{
	int i, cqe;

	MUST(!ibv_resize_cq(cq, most + 1));
	for (i = 0; i < rounds; i++) {
		while (unread < most && pick(most / 4))
			number();
		cqe = cq->cqe;
		if (unread > 3 && !pick(4)) {
			arrived();
			MUST(ibv_resize_cq(cq, 2) && cq->cqe == cqe);
		} else {
			cqe = most + 1 + pick(7 * most);
			MUST(!ibv_resize_cq(cq, cqe) && cq->cqe >= cqe);
		}
		while (unread && pick(most / 4))
			poll_number();
	}
	while (unread)
		poll_number();
}

/* An address that cannot be written to, behind a page that can */
static __u8 *no_page(void)
{
	__u8 *p = pages(2 * PAGE);

	MUST(!mprotect(p + PAGE, PAGE, PROT_NONE));
	return p + PAGE;
}

/* A process that cannot be told of a new ring: the kernel continues to use the old one. */
static void resize_untold(struct ibv_cq *cq)
{
	const struct ib_uverbs_resize_cq_resp *core = (void *)no_page();
	struct {
		struct ib_uverbs_cmd_hdr hdr;
		struct ib_uverbs_resize_cq core;
	} call = {
		{ IB_USER_VERBS_CMD_RESIZE_CQ, sizeof(call) / 4,
		  (sizeof(*core) + sizeof(struct mminfo)) / 4 },
		{ .response = (unsigned long)(core - 1), .cq_handle = cq->handle, .cqe = 100 },
	};
	int i;

	for (i = 0; i < 3; i++)
		number();
	arrived();
	MUST(write(cq->context->cmd_fd, &call, sizeof(call)) < 0 && errno == EFAULT);
	number();
	while (unread)
		poll_number();
}

static void resize(void)
{
	struct ibv_cq *cq;

	begin();
	cq = w.queues[1].rcq;
	resize_untold(cq);
	resize_often(cq, 300, 14);
	/* More than the kernel copies in one go */
	resize_often(cq, 60, 300);
	MUST(ibv_resize_cq(cq, 0) && ibv_resize_cq(cq, 1 << 20));
	number();
	poll_number();
	end_all();
}

/* A shared receive queue with @posted receives, of which the first is number @next_polled */
static struct ibv_srq *srq;
static __u64 next_posted;

static int resize_srq_to(__u32 max_wr)
{
	struct ibv_srq_attr attr = { .max_wr = max_wr };

	return ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR);
}

static __u32 srq_size(void)
{
	struct ibv_srq_attr attr;

	MUST(!ibv_query_srq(srq, &attr));
	return attr.max_wr;
}

static void post_shared(void)
{
	struct ibv_recv_wr wr = { .wr_id = next_posted++ }, *bad;

	MUST(!ibv_post_srq_recv(srq, &wr, &bad));
}

/* Messages take receives all the time, as many as are outstanding. */
static void messages(int count)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND };
	int i;

	for (i = 0; i < count; i++)
		post(0, &wr);
}

static void messages_are_done(int count)
{
	struct ibv_wc wc;

	for (; count; count--) {
		sent(0, 0, IBV_WC_SUCCESS, IBV_WC_SEND);
		complete(w.queues[1].rcq, &wc);
		wants(&wc, next_polled++, IBV_WC_SUCCESS, IBV_WC_RECV);
	}
}

/* Resize the queue with up to @most receives in it, while up to @many messages take some. */
static void resize_srq_often(int rounds, __u32 most, __u32 many)
{
	__u32 waiting, size, count;

	for (; rounds; rounds--) {
		size = srq_size();
		while (next_posted - next_polled < most && next_posted - next_polled < size)
			post_shared();
		waiting = next_posted - next_polled;
		count = pick(waiting < many ? waiting : many) + 1;
		messages(count);
		size = waiting + pick(3 * most);
		MUST(!resize_srq_to(size) && srq_size() >= size);
		messages_are_done(count);
		waiting = next_posted - next_polled;
		if (waiting > 3) {
			size = srq_size();
			MUST(resize_srq_to(waiting / 4) == EBUSY && srq_size() == size);
		}
	}
}

static void limits_of_srq(void)
{
	struct ibv_srq_attr attr = { .max_wr = 40, .srq_limit = 20 };

	MUST(resize_srq_to(0) && resize_srq_to(32768));
	MUST(!ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT));
	MUST(!ibv_query_srq(srq, &attr) && attr.max_wr == 63 && attr.srq_limit == 20);
	MUST(resize_srq_to(10) == EINVAL && srq_size() == 63);
	attr.max_wr = 10;
	attr.srq_limit = 16;
	MUST(ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT) == EINVAL);
	MUST(!ibv_query_srq(srq, &attr) && attr.max_wr == 63 && attr.srq_limit == 20);
	attr.max_wr = 10;
	attr.srq_limit = 15;
	MUST(!ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT));
	MUST(!ibv_query_srq(srq, &attr) && attr.max_wr == 15 && attr.srq_limit == 15);
}

/* As for completion queues */
static void resize_srq_untold(void)
{
	struct {
		struct ib_uverbs_cmd_hdr hdr;
		struct ib_uverbs_modify_srq core;
		__u64 where;
	} call = {
		{ IB_USER_VERBS_CMD_MODIFY_SRQ, sizeof(call) / 4, 0 },
		{ .srq_handle = srq->handle, .attr_mask = IBV_SRQ_MAX_WR, .max_wr = 100 },
		(unsigned long)no_page(),
	};
	const __u32 size = srq_size();

	post_shared();
	MUST(write(srq->context->cmd_fd, &call, sizeof(call)) < 0 && errno == EFAULT);
	MUST(srq_size() == size);
	post_shared();
	messages(2);
	messages_are_done(2);
}

static void resize_srq(void)
{
	struct ibv_srq_init_attr init = { .attr = { .max_wr = 4, .max_sge = 1 } };
	struct ibv_device_attr device;

	MUST(!ibv_query_device(w.sides[1].listener->verbs, &device));
	MUST(device.device_cap_flags & IBV_DEVICE_SRQ_RESIZE);
	make_queues();
	srq = ibv_create_srq(w.sides[1].pd, &init);
	MUST(srq);
	w.queues[1].srq = srq;
	limits_of_srq();
	connect_both();
	resize_srq_untold();
	resize_srq_often(300, 14, DEPTH);
	/* More than the kernel copies in one go */
	resize_srq_often(100, 300, DEPTH);
	messages(1);
	messages_are_done(1);
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
		{ "limits", limits }, { "immediate", immediate }, { "atomic", atomics },
		{ "policy", policy }, { "sum", sum }, { "builder", builder }, { "poller", poller },
		{ "events", events }, { "resize", resize }, { "resize-srq", resize_srq },
	};

	MUST(argc == 2);
	open_world();
	run_case(cases, ARRAY_SIZE(cases), argv[1]);
	return 0;
}
