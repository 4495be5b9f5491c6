/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Shared by the programs that run in guests.
 *
 * A program plays both hosts: it runs as root in a guest with the network namespaces "a" and
 * "b" and enters each of them to create identifiers. One thread then controls both ends of each
 * connection, with all memory and all completions, so it can check results without a protocol
 * between the hosts.
 *
 * A program exits at the first failed check, with status 1 and a message.
 */
#ifndef KIW_VERBS_COMMON_H
#define KIW_VERBS_COMMON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <linux/types.h>
#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#define ARRAY_SIZE(array)	(sizeof(array) / sizeof((array)[0]))

#define PAGE		4096
#define MAX_SGE		6
#define MAX_INLINE	80

/* Fails, and tells the place, unless the condition is true. */
#define MUST(cond) do { \
	if (!(cond)) \
		fail("%s:%d: not so: %s (%m)", __FILE__, __LINE__, #cond); \
} while (0)

/**
 * struct side - one of the two hosts
 * @ns: file descriptor of its network namespace
 * @chan: event channel of @listener
 * @listener: identifier that listens for connection requests
 * @pd: protection domain of all its objects
 * @addr: its address
 * @port: port of @listener
 */
struct side {
	int ns;
	struct rdma_event_channel *chan;
	struct rdma_cm_id *listener;
	struct ibv_pd *pd;
	const char *addr;
	__u16 port;
};

/**
 * struct queues - queues of a QP
 * @scq: completion queue of sends
 * @rcq: completion queue of receives
 * @srq: shared receive queue, or NULL
 * @send_depth: slots of the send queue
 * @recv_depth: slots of the receive queue, if there is no @srq
 * @sge: maximum number of SGEs; 0 for MAX_SGE and MAX_INLINE bytes of inline data
 * @send_ops: operations to post through struct ibv_qp_ex, or 0
 */
struct queues {
	struct ibv_cq *scq;
	struct ibv_cq *rcq;
	struct ibv_srq *srq;
	__u32 send_depth;
	__u32 recv_depth;
	__u32 sge;
	__u64 send_ops;
};

/**
 * struct end - one end of a connection
 * @chan: its event channel
 * @id: its identifier, which has the QP
 */
struct end {
	struct rdma_event_channel *chan;
	struct rdma_cm_id *id;
};

/**
 * struct case_of - one of the cases of a program
 * @name: its name on the command line
 * @run: runs it; returns when all was right
 */
struct case_of {
	const char *name;
	void (*run)(void);
};

void fail(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
void run_case(const struct case_of *cases, size_t count, const char *name);
void seed(__u64 value);
__u32 pick(__u32 count);
double now(void);
int slowness(void);
double patience(void);
void *pages(size_t size);

void side_open(struct side *side, const char *ns, const char *addr, __u16 port);
struct ibv_mr *reg(struct ibv_pd *pd, void *addr, size_t size, int access);
struct queues queues_of(const struct side *side, __u32 depth);
void queues_close(struct queues *queues);
bool conn_open(struct end *ends, const struct side *from, const struct side *to,
	       const struct queues *queues);
bool conn_again(struct end *ends, const struct side *from, const struct side *to);
void end_close(struct end *end);
int end_event(const struct end *end, double seconds);
bool set_file_if_there(const char *path, const char *text);
void set_file(const char *path, const char *text);
void rest(void);
void complete(struct ibv_cq *cq, struct ibv_wc *wc);
bool poll_one(struct ibv_cq *cq, struct ibv_wc *wc, double seconds);
void count_objects(char *text, size_t size);
int rereg(struct ibv_mr *mr, int flags, __u64 addr, __u64 length, int access);
int dmabuf_of(size_t size, __u8 **mem);
int reg_dmabuf(struct ibv_mr *mr, struct ibv_pd *pd, __u16 driver, int fd, __u64 offset,
	       __u64 length, __u64 iova, int access);
int dereg_dmabuf(const struct ibv_mr *mr);

#endif /* KIW_VERBS_COMMON_H */
