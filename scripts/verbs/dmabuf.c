// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * dmabuf CASE: regions of dma-bufs on devices of the link type kiwarp-ext. One case:
 *
 *   atomic   both operations, at all borders of pages, and what is refused
 *   sum      a peer and a thread of the owner, through its own mapping, add to one word
 *   windows  no window can be bound to such a region
 *
 * Side b has the memory, and side a uses it.
 */
#include "common.h"

#include <errno.h>
#include <pthread.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <unistd.h>

#define DEPTH		16
#define ROOM		(4 * PAGE)
#define BEGIN		(PAGE + 64)	/* where the region begins in the buffer */
#define LENGTH		(2 * PAGE)
#define IOVA		(0x123456789000 + 64)
#define ADDITIONS	2000
#define RIGHTS \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE | \
	 IBV_ACCESS_REMOTE_ATOMIC)
/* In vendor_err: this end has sent the Terminate, or the other end has */
#define TERM_OWN	0x01000000
#define TERM_BOUNDS	0x02000101
#define TERM_ACCESS	0x02000102
#define TERM_ALIGN	0x02000207

/**
 * struct world - state of the program
 * @sides: both hosts
 * @queues: queues of each host
 * @ends: ends of the connection
 * @fd: dma-buf of side b
 * @room: its memory
 * @mr: region of it
 * @sink: where the original values go, of side a
 * @sink_mr: region of @sink
 */
static struct world {
	struct side sides[2];
	struct queues queues[2];
	struct end ends[2];
	int fd;
	__u8 *room;
	struct ibv_mr mr;
	__u64 *sink;
	struct ibv_mr *sink_mr;
} w;

static int reg_part(struct ibv_mr *mr, int access)
{
	return reg_dmabuf(mr, w.sides[1].pd, RDMA_DRIVER_RXE, w.fd, BEGIN, LENGTH, IOVA, access);
}

static void begin(void)
{
	int i;

	for (i = 0; i < 2; i++) {
		w.queues[i] = queues_of(&w.sides[i], DEPTH);
		w.queues[i].send_ops = IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD;
	}
	MUST(conn_open(w.ends, &w.sides[0], &w.sides[1], w.queues));
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
	side_open(&w.sides[0], "a", "10.77.0.1", 7805);
	side_open(&w.sides[1], "b", "10.77.0.2", 7805);
	w.sink = pages(PAGE);
	w.sink_mr = reg(w.sides[0].pd, w.sink, PAGE, IBV_ACCESS_LOCAL_WRITE);
	w.fd = dmabuf_of(ROOM, &w.room);
}

static void post(int who, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;

	wr->send_flags |= IBV_SEND_SIGNALED;
	MUST(!ibv_post_send(w.ends[who].id->qp, wr, &bad));
}

/* The next completion, which names the Terminate if it has failed */
static void done(int who, enum ibv_wc_status status, __u32 term)
{
	struct ibv_wc wc;

	complete(w.queues[who].scq, &wc);
	if (wc.status != status || wc.vendor_err != term)
		fail("%s, vendor_err %#x; wanted %s, %#x", ibv_wc_status_str(wc.status),
		     wc.vendor_err, ibv_wc_status_str(status), term);
}

static void post_atomic(enum ibv_wr_opcode opcode, __u64 at, __u64 compare_add, __u64 swap)
{
	struct ibv_sge sge = { (unsigned long)w.sink, 8, w.sink_mr->lkey };
	struct ibv_send_wr wr = {
		.opcode = opcode, .sg_list = &sge, .num_sge = 1,
		.wr.atomic = { IOVA + at, compare_add, swap, w.mr.rkey },
	};

	post(0, &wr);
}

/* Atomic operations */

static __u64 *word(__u64 at)
{
	return (__u64 *)(w.room + BEGIN + at);
}

static void fill(void)
{
	int i;

	for (i = 0; i < ROOM; i++)
		w.room[i] = i * 7 + 1;
}

static bool is_untouched(void)
{
	int i;

	for (i = 0; i < ROOM; i++)
		if (w.room[i] != (__u8)(i * 7 + 1))
			return false;
	return true;
}

static void operate(__u64 at, enum ibv_wr_opcode opcode)
{
	bool adds = opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
	__u64 old = *word(at);

	post_atomic(opcode, at, adds ? 5 : old, old * 3);
	done(0, IBV_WC_SUCCESS, 0);
	if (*w.sink != old || *word(at) != (adds ? old + 5 : old * 3))
		fail("opcode %d at %#llx: was %#llx, became %#llx", opcode, (unsigned long long)at,
		     (unsigned long long)*w.sink, (unsigned long long)*word(at));
	/* The rest must be as it was. */
	*word(at) = old;
	MUST(is_untouched());
}

/* ibv_post_send() of the provider refuses an unaligned target itself. */
static void build_add(__u64 at)
{
	struct ibv_qp_ex *qp = ibv_qp_to_qp_ex(w.ends[0].id->qp);

	ibv_wr_start(qp);
	qp->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_atomic_fetch_add(qp, w.mr.rkey, IOVA + at, 1);
	ibv_wr_set_sge(qp, w.sink_mr->lkey, (unsigned long)w.sink, 8);
	MUST(!ibv_wr_complete(qp));
}

/* The peer is refused an operation at @at of a region with @access. */
static void refused(int access, __u64 at, enum ibv_wc_status status, __u32 term)
{
	MUST(!reg_part(&w.mr, access));
	begin();
	build_add(at);
	done(0, status, term);
	MUST(is_untouched());
	end_all();
	MUST(!dereg_dmabuf(&w.mr));
}

static void atomics(void)
{
	static const __u64 places[] = {
		0, 8, PAGE - 64 - 8, PAGE - 64, PAGE, 2 * PAGE - 64 - 8, 2 * PAGE - 64, LENGTH - 8,
	};
	size_t i;

	fill();
	MUST(!reg_part(&w.mr, RIGHTS));
	begin();
	for (i = 0; i < ARRAY_SIZE(places); i++) {
		operate(places[i], IBV_WR_ATOMIC_FETCH_AND_ADD);
		operate(places[i], IBV_WR_ATOMIC_CMP_AND_SWP);
	}
	end_all();
	MUST(!dereg_dmabuf(&w.mr));
	for (i = 1; i < 8; i++)
		refused(RIGHTS, i, IBV_WC_REM_OP_ERR, TERM_ALIGN);
	refused(RIGHTS, LENGTH, IBV_WC_REM_ACCESS_ERR, TERM_BOUNDS);
	refused(RIGHTS, LENGTH - 4, IBV_WC_REM_ACCESS_ERR, TERM_BOUNDS);
	refused(RIGHTS, -8ULL, IBV_WC_REM_ACCESS_ERR, TERM_BOUNDS);
	refused(RIGHTS & ~IBV_ACCESS_REMOTE_ATOMIC, 0, IBV_WC_REM_ACCESS_ERR, TERM_ACCESS);
	/* Nobody could write what the operation makes of the word. */
	MUST(reg_part(&w.mr, IBV_ACCESS_REMOTE_ATOMIC) == EINVAL);
}

/* One word, to which both add */

static struct {
	bool over;
	__u64 added;
} local;

static void *add_locally(void *unused)
{
	(void)unused;
	while (!__atomic_load_n(&local.over, __ATOMIC_RELAXED)) {
		__atomic_fetch_add(word(PAGE), 1, __ATOMIC_SEQ_CST);
		local.added++;
	}
	return NULL;
}

static void sum(void)
{
	pthread_t thread;
	int i;

	MUST(!reg_part(&w.mr, RIGHTS));
	begin();
	MUST(!pthread_create(&thread, NULL, add_locally, NULL));
	for (i = 0; i < DEPTH / 2; i++)
		post_atomic(IBV_WR_ATOMIC_FETCH_AND_ADD, PAGE, 1, 0);
	for (; i < ADDITIONS; i++) {
		done(0, IBV_WC_SUCCESS, 0);
		post_atomic(IBV_WR_ATOMIC_FETCH_AND_ADD, PAGE, 1, 0);
	}
	for (i = 0; i < DEPTH / 2; i++)
		done(0, IBV_WC_SUCCESS, 0);
	__atomic_store_n(&local.over, true, __ATOMIC_RELAXED);
	MUST(!pthread_join(thread, NULL));
	printf("%d FetchAdds, %llu local additions\n", ADDITIONS, (unsigned long long)local.added);
	if (*word(PAGE) != ADDITIONS + local.added)
		fail("the word is %llu", (unsigned long long)*word(PAGE));
	end_all();
	MUST(!dereg_dmabuf(&w.mr));
}

/* Windows */

/* The owner tries to bind a window to the region. */
static void refuse_window(enum ibv_mw_type type, int access)
{
	struct ibv_mw *mw = ibv_alloc_mw(w.sides[1].pd, type);
	struct ibv_send_wr wr = {
		.opcode = IBV_WR_BIND_MW,
		.bind_mw = {
			.mw = mw,
			.bind_info = { .mr = &w.mr, .addr = IOVA, .length = PAGE,
				       .mw_access_flags = access },
		},
	};

	MUST(mw);
	wr.bind_mw.rkey = mw->rkey ^ 1;
	begin();
	post(1, &wr);
	done(1, IBV_WC_MW_BIND_ERR, TERM_OWN);
	end_all();
	MUST(!ibv_dealloc_mw(mw));
}

static void windows(void)
{
	enum ibv_mw_type type;

	MUST(reg_part(&w.mr, RIGHTS | IBV_ACCESS_MW_BIND) == EINVAL);
	MUST(!reg_part(&w.mr, RIGHTS));
	MUST(rereg(&w.mr, IBV_REREG_MR_CHANGE_ACCESS, 0, 0, RIGHTS | IBV_ACCESS_MW_BIND) == EINVAL);
	for (type = IBV_MW_TYPE_1; type <= IBV_MW_TYPE_2; type++) {
		refuse_window(type, IBV_ACCESS_REMOTE_READ);
		refuse_window(type, IBV_ACCESS_REMOTE_ATOMIC);
	}
	/* No window keeps the region busy. */
	MUST(!dereg_dmabuf(&w.mr));
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
		{ "atomic", atomics }, { "sum", sum }, { "windows", windows },
	};

	MUST(argc == 2);
	open_world();
	run_case(cases, ARRAY_SIZE(cases), argv[1]);
	return 0;
}
