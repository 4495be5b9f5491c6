/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * The traffic program of `make bench`: one measurement per run, with both ends of every
 * connection in one thread, so that one core does all there is to do for an operation.
 */
#ifndef KIW_BENCH_H
#define KIW_BENCH_H

#include "../verbs/common.h"

#define KIB		1024
#define MIB		(1024 * KIB)

/* Messages rotate over this much memory at each end, or over one message if that is larger. */
#define REGION		(4 * MIB)

/**
 * struct options - what is to be measured
 * @op: name of the measurement
 * @size: octets of a message
 * @depth: messages on the way at most, per connection
 * @batch: work requests per post, the last of them signaled
 * @conns: connections
 * @seconds: how long to measure
 * @ops: operations per connection; 0 when @seconds decide
 * @count: of connections to make one after another; 0 when time decides
 * @flows: of them how many at once, each with a process and a CPU of its own; 0 for one
 *	without such
 * @rounds: how often each number of flows is looked at
 * @flow: which of @flows this is: each has ports of its own
 * @from: network namespace of the active end
 * @to: of the passive end; may be the same
 * @net: the first three bytes of the hosts' IPv4 addresses, as text
 */
struct options {
	const char *op;
	__u32 size;
	__u32 depth;
	__u32 batch;
	__u32 conns;
	double seconds;
	__u32 ops;
	__u32 count;
	__u32 flows;
	__u32 rounds;
	__u32 flow;
	const char *from;
	const char *to;
	const char *net;
};

/**
 * struct stamp - a moment, as the guest and the host see it
 * @ticks: of the TSC
 * @run_us: host CPU time the guest has had
 * @user_us: spent in its own code, and @sys_us in the host's kernel: coarse, by ticks
 * @sys_us: see @user_us
 * @delay_us: how long it was ready to run while others ran
 */
struct stamp {
	__u64 ticks;
	double run_us;
	double user_us;
	double sys_us;
	double delay_us;
};

/**
 * struct task - what a flow can do
 * @op: name of the measurement
 * @start: makes what it needs
 * @slice: works for so many seconds; returns how many operations, and the ticks they took
 */
struct task {
	const char *op;
	void *(*start)(const struct options *options);
	__u64 (*slice)(void *context, double seconds, __u64 *ticks);
};

void clock_start(void);
double seconds_of(__u64 ticks);
__u64 ticks_now(void);
void stamp_take(struct stamp *stamp);
__u32 cpus_take(double *numbers, __u32 count);
void stamp_print(const struct stamp *from, const struct stamp *to, __u64 ops, __u64 bytes);
void print_latency(__u64 *ticks, __u32 count);
const char *address_of(const struct options *options, const char *ns);

void bulk(const struct options *options);
void *bulk_start(const struct options *options);
__u64 bulk_slice(void *context, double seconds, __u64 *ticks);
void pingpong(const struct options *options);
void connect_rate(const struct options *options);
void verify(const struct options *options);

void tcp_stream(const struct options *options);
void tcp_pingpong(const struct options *options);
void tcp_connect_rate(const struct options *options);
void crc_rate(const struct options *options);
void *tcp_start(const struct options *options);
__u64 tcp_slice(void *context, double seconds, __u64 *ticks);
void *crc_start(const struct options *options);
__u64 crc_slice(void *context, double seconds, __u64 *ticks);

void parallel(const struct options *options);
void arm_alarm(const struct options *options);

#endif /* KIW_BENCH_H */
