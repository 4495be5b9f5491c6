/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * The traffic program of `make bench`: one measurement per run. Both ends of every connection are
 * in one thread, so that one core does all the work of an operation.
 */
#ifndef KIW_BENCH_H
#define KIW_BENCH_H

#include "../verbs/common.h"

#define KIB		1024
#define MIB		(1024 * KIB)

/* Messages rotate over this much memory at each end unless span= gives another number of KiB. */
#define REGION		(4 * MIB)

/**
 * struct options - what is to be measured
 * @op: name of the measurement
 * @size: octets of a message
 * @region: octets over which messages rotate at each end; at least a message
 * @depth: maximum number of messages in flight per connection
 * @batch: work requests per post, the last of them signaled
 * @conns: number of connections
 * @seconds: how long to measure
 * @ops: operations per connection; 0: @seconds decides
 * @count: number of connections to make one after the other; 0: @seconds decides
 * @flows: number of flows at once, each with a process and a CPU of its own; 0: a single one in
 *	this process
 * @rounds: how often each number of flows is measured
 * @flow: index of this flow; each has its own ports
 * @from: network namespace of the active end
 * @to: of the passive end; may be the same
 * @net: the first three bytes of the hosts' IPv4 addresses, as text
 */
struct options {
	const char *op;
	__u32 size;
	size_t region;
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
 * @user_us: part of it in user mode; coarse, because it is counted in ticks
 * @sys_us: part of it in the host's kernel; likewise
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
 * struct task - a measurement that several flows can make at once
 * @op: name of the measurement
 * @start: allocates what it needs
 * @slice: works for a number of seconds; returns the number of operations, and the ticks they took
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
