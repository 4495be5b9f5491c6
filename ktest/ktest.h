/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * kiwarp_ktest: a kernel consumer that controls both ends of a connection.
 *
 * A test case is a function that gets a connected pair and checks results with ktest_expect().
 * After the first failed check these helpers neither post nor wait any more, so a case need not
 * check for errors in order to terminate.
 */
#ifndef KIW_KTEST_H
#define KIW_KTEST_H

#include <linux/completion.h>
#include <linux/types.h>
#include <linux/wait.h>
#include <net/net_namespace.h>
#include <rdma/ib_verbs.h>
#include <rdma/rdma_cm.h>

/* Bytes of an end's memory, which is physically contiguous */
#define KTEST_MEM	(256 * PAGE_SIZE)
/* Maximum number of work requests of each kind per end */
#define KTEST_DEPTH	128
/* Work requests per end for ktest_spare() */
#define KTEST_SPARE	64
/* Maximum time to wait for anything, in seconds; far longer than any successful wait */
#define KTEST_PATIENCE	60

/**
 * struct ktest_wr - a work request and its result
 * @cqe: its completion handler
 * @end: the end it is posted to
 * @done: signaled when it completes
 * @wc: its work completion
 * @count: number of times it completed
 * @next: work request that its completion handler posts, or NULL
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
 * @pair: the pair it belongs to
 * @id: its cm_id, or NULL
 * @pd: protection domain
 * @cq: completion queue of sends and receives
 * @srq: shared receive queue, or NULL
 * @qp: queue pair, or NULL
 * @mem: memory, %KTEST_MEM bytes
 * @dma: address of @mem for work requests
 * @mr: region through which the peer can access all of @mem, after ktest_expose()
 * @reg: work request that registered @mr
 * @sends: work requests for the case's sends
 * @recvs: work requests for the case's receives
 * @spare: work requests for ktest_spare()
 * @next_spare: next index into @spare
 * @in_event: receive that the handler of the QP's events posts, unless there is @srq
 * @wait: woken up when @cm_events, @qp_events or @cq_errors changes
 * @cm_events: bit mask of enum rdma_cm_event_type, events seen
 * @qp_events: bit mask of enum ib_event_type, events seen
 * @cq_errors: number of error events of @cq
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
	struct ktest_wr in_event;
	wait_queue_head_t wait;
	unsigned long cm_events;
	unsigned long qp_events;
	atomic_t cq_errors;
};

/**
 * struct ktest_opts - options of a case's pair
 * @poll: context in which the CQs are polled
 * @cqe: entries of the CQ of end 0; 0: enough
 * @sends: entries of the send queue of end 0, a power of two; 0: enough
 * @with_srq: receives are posted to shared receive queues
 * @with_rw: the core's rdma_rw posts work requests, too, not all of them signaled
 * @before_connect: called for end 0 just before it connects, or NULL
 * @before_accept: called for end 1 just before it accepts the connection, or NULL
 */
struct ktest_opts {
	enum ib_poll_context poll;
	u32 cqe;
	u32 sends;
	bool with_srq;
	bool with_rw;
	void (*before_connect)(struct ktest_end *end);
	void (*before_accept)(struct ktest_end *end);
};

/**
 * struct ktest_pair - two connected ends
 * @net: network namespace of each end
 * @opts: options of the case
 * @with: pair whose protection domains are used, or NULL
 * @pd_flags: enum ib_pd_flags of its own protection domains
 * @listener: listening cm_id of end 1, while the pair is being connected
 * @end: the ends; 0 connects, 1 accepts
 * @has_failed: a check has failed
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
 * struct ktest_case - an entry in a table of test cases
 * @name: letters, digits and dashes
 * @run: the test
 * @opts: options of its pair
 */
struct ktest_case {
	const char *name;
	void (*run)(struct ktest_pair *p);
	struct ktest_opts opts;
};

/* Each table ends with an entry without a name */
extern const struct ktest_case ktest_cases_data[];
extern const struct ktest_case ktest_cases_end[];
extern const struct ktest_case ktest_cases_ext[];
extern const struct ktest_case ktest_cases_fast[];
extern const struct ktest_case ktest_cases_inside[];
extern const struct ktest_case ktest_cases_mem[];
extern const struct ktest_case ktest_cases_race[];
extern const struct ktest_case ktest_cases_rights[];
/* Cases that need outside help, before, while or after they run; not listed in "cases" */
extern const struct ktest_case ktest_cases_lost[];
extern const struct ktest_case ktest_cases_more[];
extern const struct ktest_case ktest_cases_nomem[];
extern const struct ktest_case ktest_cases_policy[];
extern const struct ktest_case ktest_cases_smp[];

/* Duration in seconds of cases that can run for any time; 0: the default duration */
extern unsigned int ktest_soak;

void ktest_fail(struct ktest_pair *p, const char *func, int line, const char *what, s64 is);

#define ktest_expect(p, cond) \
	do { \
		if (!(cond)) \
			ktest_fail(p, __func__, __LINE__, #cond, 0); \
	} while (0)

/* Like ktest_expect() for equality; also logs the actual value */
#define ktest_expect_eq(p, is, want) \
	do { \
		s64 is_ = (is); \
		if (is_ != (want)) \
			ktest_fail(p, __func__, __LINE__, #is " == " #want, is_); \
	} while (0)

/* pair.c */
int ktest_end_make(struct ktest_end *end);
void ktest_end_free(struct ktest_end *end);
struct ktest_pair *ktest_pair_another(struct ktest_pair *p);
int ktest_pair_open(struct ktest_pair *p);
void ktest_pair_close(struct ktest_pair *p);
int ktest_pair_reopen(struct ktest_pair *p);
void ktest_wait_qp_event(struct ktest_end *end, enum ib_event_type event);
void ktest_wait_cm_event(struct ktest_end *end, enum rdma_cm_event_type event);

/* hold.c */
extern const struct file_operations ktest_hold_fops;
void ktest_hold_exit(void);

/* single.c */
extern const struct file_operations ktest_single_fops;

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
