/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * What the parts of the program share that makes allocations fail.
 */
#ifndef KIW_FAILING_H
#define KIW_FAILING_H

#include "../common.h"

#include <errno.h>

#define PORT		7804
#define SIZE		(64 * PAGE)
/* No operation has so many allocations */
#define NTH_MAX		4000
#define ALL		(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE)

/**
 * struct op - an operation and its reverse
 * @name: name for messages
 * @make: does the operation; returns 0 or errno
 * @unmake: undoes it; returns 0, or errno if nothing has changed
 * @others: errnos that are accepted besides ENOMEM
 * @has_few: it has so few allocations that each of them fails, whatever the step
 */
struct op {
	const char *name;
	int (*make)(void);
	int (*unmake)(void);
	int others[3];
	bool has_few;
};

#define OP(what, how)	.name = what, .make = make_##how, .unmake = unmake_##how

/**
 * struct world - state of the program
 * @sides: both hosts
 * @fail_nth: this thread's fail-nth file, which selects the allocation that fails
 * @mem: %SIZE bytes of memory, touched
 * @dmabuf: a DMA buffer of the same size
 * @ctx: device context; operations create this and everything that follows
 * @pd: protection domain of @ctx
 * @channel: completion channel of @ctx
 * @cq: completion queue with @channel
 * @srq: shared receive queue in @pd
 * @qp: queue pair with @cq
 * @mr: region of @mem
 * @dmabuf_mr: region of @dmabuf
 * @mw: memory window of type 2 in @pd
 * @chan: event channel of @id and of the active end of @ends
 * @id: a listener
 * @ends: ends of a connection
 * @queues: queues of both of them
 */
struct world {
	struct side sides[2];
	int fail_nth;
	__u8 *mem;
	int dmabuf;
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_srq *srq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	struct ibv_mr dmabuf_mr;
	struct ibv_mw *mw;
	struct rdma_event_channel *chan;
	struct rdma_cm_id *id;
	struct end ends[2];
	struct queues queues[2];
};

extern struct world w;

/* The errno of a call that returns a pointer */
static inline int err_of(const void *p)
{
	return p ? 0 : errno ? : -1;
}

/* The errno of a call that returns an errno or -1 */
static inline int err_or(int ret)
{
	return ret == -1 ? errno : ret;
}

void inject(int nth);
int pause_failing(void);
bool has_failed(void);
void walk(const struct op *op);

/* Parts */
void verbs(void);
void connections(void);
void accepts(void);
void links(void);
void ip_links(void);

#endif /* KIW_FAILING_H */
