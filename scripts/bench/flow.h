/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Connections between two hosts that share memory, completion queues and their
 * completion channel: what all measurements over RDMA need.
 */
#ifndef KIW_BENCH_FLOW_H
#define KIW_BENCH_FLOW_H

#include "bench.h"

#define MAX_BATCH	64

/**
 * struct flow - a connection
 * @ends: its two ends, the active one first
 * @index: its index in &struct set.flows
 * @posted: operations posted
 * @done: operations completed
 * @offered: operations of the other end for which receives were posted
 * @arrived: receives completed
 * @slot: of the next receive to be posted
 * @taken: receives completed since receives were last posted
 */
struct flow {
	struct end ends[2];
	__u32 index;
	__u64 posted;
	__u64 done;
	__u64 offered;
	__u64 arrived;
	__u64 slot;
	__u32 taken;
};

/**
 * struct set - all connections of a measurement, and what they share
 * @sides: the hosts; the second is the first when both ends are on one host
 * @passive: the host of the passive ends
 * @cq: completion queue of each end
 * @chan: completion channel of each end
 * @data: memory of each end
 * @mr: memory region of each end
 * @region: octets of the region that messages use
 * @size: octets of a message
 * @depth: slots of each queue
 * @is_both: both ends can send and receive
 * @conns: number of connections
 * @next: offset of the next message in the region
 * @flows: the connections
 */
struct set {
	struct side sides[2];
	struct side *passive;
	struct ibv_cq *cq[2];
	struct ibv_comp_channel *chan[2];
	unsigned char *data[2];
	struct ibv_mr *mr[2];
	size_t region;
	__u32 size;
	__u32 depth;
	bool is_both;
	__u32 conns;
	size_t next;
	struct flow *flows;
};

void set_sides(struct set *set, const struct options *o);
void set_memory(struct set *set, const struct options *o);
void set_open(struct set *set, const struct options *o);
void set_open_both(struct set *set, const struct options *o);
void set_close(struct set *set);
void set_arm(struct set *set, int end);
void set_sleep(struct set *set, int end);
void set_flush(struct set *set);
void flow_post(struct set *set, struct flow *flow, enum ibv_wr_opcode opcode, __u32 batch);
void flow_offer(struct set *set, struct flow *flow);

#endif /* KIW_BENCH_FLOW_H */
