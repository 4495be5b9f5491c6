/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * A kernel consumer with both ends of a connection in its hands.
 *
 * A case is a function that gets a connected pair and notes what is not as it should be
 * by ktest_expect(). From the first such note on nothing is posted or waited for any more,
 * so a case need not look at results to come to its end.
 */
#ifndef KIW_KTEST_H
#define KIW_KTEST_H

#include <linux/completion.h>
#include <linux/types.h>
#include <linux/wait.h>
#include <net/net_namespace.h>
#include <rdma/ib_verbs.h>
#include <rdma/rdma_cm.h>

/* Octets of an end's memory, in one piece; pages of it */
#define KTEST_MEM	(256 * PAGE_SIZE)
/* Most work requests of each kind on an end */
#define KTEST_DEPTH	128
/* Work requests of an end that are waited for where they are posted */
#define KTEST_SPARE	64
/* Longest wait for anything, seconds; nothing that works comes near it */
#define KTEST_PATIENCE	60

/**
 * struct ktest_wr - a work request, and what became of it
 * @cqe: calls back to here
 * @end: it was posted at
 * @done: completes with it
 * @wc: its completion
 * @count: completions it had
 * @next: posted by the completion handler of this one, or NULL
 */
struct ktest_wr {
	struct ib_cqe cqe;
	struct ktest_end *end;
	struct completion done;
	struct ib_wc wc;
	atomic_t count;
	const struct ib_send_wr *next;
};

/**
 * struct ktest_end - one end of the connection
 * @pair: of which it is an end
 * @id: of rdma_cm, or NULL
 * @pd: protection domain
 * @cq: of sends and receives
 * @srq: or NULL
 * @qp: or NULL
 * @mem: %KTEST_MEM octets
 * @dma: their address for work requests
 * @mr: names all of @mem for the peer once ktest_expose() was called
 * @reg: of the registration of @mr
 * @sends: for the case's work requests
 * @recvs: for its receives
 * @spare: for ktest_spare()
 * @next_spare: of @spare
 * @wait: for @cm_events, @qp_events, @cq_errors
 * @cm_events: bits of enum rdma_cm_event_type seen
 * @qp_events: bits of enum ib_event_type seen
 * @cq_errors: error events of @cq
 */
struct ktest_end {
	struct ktest_pair *pair;
	struct rdma_cm_id *id;
	struct ib_pd *pd;
	struct ib_cq *cq;
	struct ib_srq *srq;
	struct ib_qp *qp;
	u8 *mem;
	u64 dma;
	struct ib_mr *mr;
	struct ktest_wr reg;
	struct ktest_wr sends[KTEST_DEPTH];
	struct ktest_wr recvs[KTEST_DEPTH];
	struct ktest_wr spare[KTEST_SPARE];
	u32 next_spare;
	wait_queue_head_t wait;
	unsigned long cm_events;
	unsigned long qp_events;
	atomic_t cq_errors;
};

/**
 * struct ktest_opts - how a case wants its pair
 * @poll: who polls the CQs
 * @cqe: entries of the CQ of end 0; 0: enough
 * @with_srq: receives are posted to shared queues
 * @with_rw: work requests of the core's own are among ours: those do not all complete
 * @before_accept: called at end 1 when all but the acceptance is done, or NULL
 */
struct ktest_opts {
	enum ib_poll_context poll;
	u32 cqe;
	bool with_srq;
	bool with_rw;
	void (*before_accept)(struct ktest_end *end);
};

/**
 * struct ktest_pair - two ends that are connected
 * @net: where they are
 * @opts: of the case
 * @with: its protection domains are those of that pair; or NULL
 * @pd_flags: enum ib_pd_flags of its own
 * @listener: of end 1, while it is being connected
 * @end: 0 connects, 1 accepts
 * @has_failed: something was not as expected
 */
struct ktest_pair {
	struct net *net[2];
	const struct ktest_opts *opts;
	const struct ktest_pair *with;
	unsigned int pd_flags;
	struct rdma_cm_id *listener;
	struct ktest_end end[2];
	bool has_failed;
};

/**
 * struct ktest_case - an entry of the table of cases
 * @name: of letters, digits and dashes
 * @run: what it does
 * @opts: with what
 */
struct ktest_case {
	const char *name;
	void (*run)(struct ktest_pair *p);
	struct ktest_opts opts;
};

/* All tables end with an entry without a name */
extern const struct ktest_case ktest_cases_data[];
extern const struct ktest_case ktest_cases_end[];
extern const struct ktest_case ktest_cases_fast[];
extern const struct ktest_case ktest_cases_inside[];
extern const struct ktest_case ktest_cases_mem[];
extern const struct ktest_case ktest_cases_race[];
extern const struct ktest_case ktest_cases_rights[];
/* Cases that need somebody to do something meanwhile, and are not in the list of all */
extern const struct ktest_case ktest_cases_more[];

/* Seconds that cases may take which can take any time; 0: what is usual */
extern unsigned int ktest_soak;

void ktest_fail(struct ktest_pair *p, const char *func, int line, const char *what, s64 is);

#define ktest_expect(p, cond) \
	do { \
		if (!(cond)) \
			ktest_fail(p, __func__, __LINE__, #cond, 0); \
	} while (0)

/* Like ktest_expect(), and tells what it is instead */
#define ktest_expect_eq(p, is, want) \
	do { \
		s64 is_ = (is); \
		if (is_ != (want)) \
			ktest_fail(p, __func__, __LINE__, #is " == " #want, is_); \
	} while (0)

/* pair.c */
int ktest_pair_open(struct ktest_pair *p);
void ktest_pair_close(struct ktest_pair *p);
int ktest_pair_reopen(struct ktest_pair *p);
void ktest_wait_qp_event(struct ktest_end *end, enum ib_event_type event);
void ktest_wait_cm_event(struct ktest_end *end, enum rdma_cm_event_type event);

/* wr.c */
void ktest_wr_init(struct ktest_end *end, struct ktest_wr *w);
struct ktest_wr *ktest_spare(struct ktest_end *end);
void ktest_post(struct ktest_end *end, struct ktest_wr *w, struct ib_send_wr *wr);
void ktest_post_recv(struct ktest_end *end, struct ktest_wr *w, u32 offset, u32 len);
void ktest_post_both(struct ktest_pair *p, u32 count, u32 source, u32 sink, u32 len);
void ktest_wait_any(struct ktest_wr *w);
void ktest_wait(struct ktest_wr *w, enum ib_wc_status status);
void ktest_register(struct ktest_end *end, struct ib_mr *mr, struct ktest_wr *w, int access);
void ktest_expose(struct ktest_end *end, int access);

static inline struct ktest_end *ktest_peer(struct ktest_end *end)
{
	return end == &end->pair->end[0] ? &end->pair->end[1] : &end->pair->end[0];
}

static inline struct ib_sge ktest_sge(const struct ktest_end *end, u32 offset, u32 len)
{
	struct ib_sge sge = {
		.addr = end->dma + offset,
		.length = len,
		.lkey = end->pd->local_dma_lkey,
	};

	return sge;
}

#endif /* KIW_KTEST_H */
