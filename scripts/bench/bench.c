// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * bench OP [NAME=VALUE]...: makes one measurement and prints the result as one line of JSON. Owns
 * the clock (the TSC, because asking the kernel for the time is expensive in User Mode Linux) and
 * the connection to the host (the terminal named by KIW_STAMPS), which tells how much CPU time the
 * guest has had.
 */
#include "bench.h"

#include <fcntl.h>
#include <termios.h>
#include <unistd.h>
#include <sys/resource.h>
#include <x86intrin.h>

#define CALIBRATE	0.02	/* seconds */
#define MANY_FILES	65536

static double ticks_per_second;
static int host = -1;

/**
 * ticks_now() - read the TSC
 *
 * Context: user space.
 * Return: ticks; seconds_of() converts a difference.
 */
__u64 ticks_now(void)
{
	return __rdtsc();
}

/**
 * seconds_of() - convert ticks to seconds
 * @ticks: a difference
 *
 * Context: user space.
 * Return: seconds.
 */
double seconds_of(__u64 ticks)
{
	return ticks / ticks_per_second;
}

static void host_open(const char *path)
{
	struct termios tty;

	host = open(path, O_RDWR | O_CLOEXEC | O_NOCTTY);
	MUST(host >= 0 && !tcgetattr(host, &tty));
	cfmakeraw(&tty);
	MUST(!tcsetattr(host, TCSANOW, &tty));
}

/**
 * clock_start() - measure the frequency of the TSC, and connect to the host if it listens
 *
 * Context: user space.
 */
void clock_start(void)
{
	const char *path = getenv("KIW_STAMPS");
	double start = now();
	__u64 ticks = ticks_now();
	double end;

	do
		end = now();
	while (end < start + CALIBRATE);
	ticks_per_second = (ticks_now() - ticks) / (end - start);
	if (path)
		host_open(path);
}

/* The host's answer, as a string */
static void ask_host(char *line, size_t size)
{
	size_t len = 0;

	MUST(write(host, "?\n", 2) == 2);
	do {
		ssize_t n = read(host, line + len, size - 1 - len);

		MUST(n > 0);
		len += n;
	} while (line[len - 1] != '\n' && len < size - 1);
	line[len] = 0;
}

/**
 * cpus_take() - ask the host how long each CPU of this guest has run
 * @numbers: set to two numbers per CPU: microseconds for which it ran, and for which it was ready
 *	while something else ran
 * @count: size of @numbers
 *
 * Context: user space, in a guest with a host that answers so.
 * Return: how many numbers there are; 0 when no host listens.
 */
__u32 cpus_take(double *numbers, __u32 count)
{
	char line[512], *at = line, *end;
	__u32 n;

	if (host < 0)
		return 0;
	ask_host(line, sizeof(line));
	for (n = 0; n < count; n++, at = end) {
		numbers[n] = strtod(at, &end);
		if (end == at)
			break;
	}
	return n;
}

/**
 * stamp_take() - record the time, and how much of the host's CPU time the guest has had
 * @stamp: set to these values
 *
 * Context: user space.
 */
void stamp_take(struct stamp *stamp)
{
	char line[128];

	/* For count/plugin.c: a nopl with an address that spells KIW1 */
	asm volatile(".byte 0x0f, 0x1f, 0x84, 0x00, 'K', 'I', 'W', '1'" : : : "memory");
	*stamp = (struct stamp) { .ticks = ticks_now() };
	if (host < 0)
		return;
	ask_host(line, sizeof(line));
	MUST(sscanf(line, "%lf %lf %lf %lf", &stamp->run_us, &stamp->user_us, &stamp->sys_us,
		    &stamp->delay_us) == 4);
}

/**
 * stamp_print() - print the difference between two stamps as a part of the JSON line
 * @from: the first
 * @to: the second
 * @ops: operations done between them
 * @bytes: octets of payload moved by them
 *
 * The CPU time that asking the host takes is a constant, which the difference does not contain.
 *
 * Context: user space.
 */
void stamp_print(const struct stamp *from, const struct stamp *to, __u64 ops, __u64 bytes)
{
	printf("\"ops\": %llu, \"bytes\": %llu, \"wall_us\": %.1f, ", ops, bytes,
	       seconds_of(to->ticks - from->ticks) * 1e6);
	printf("\"run_us\": %.1f, \"user_us\": %.1f, \"sys_us\": %.1f, \"delay_us\": %.1f, ",
	       to->run_us - from->run_us, to->user_us - from->user_us,
	       to->sys_us - from->sys_us, to->delay_us - from->delay_us);
}

static int compare_ticks(const void *a, const void *b)
{
	__u64 x = *(const __u64 *)a;
	__u64 y = *(const __u64 *)b;

	return x < y ? -1 : x > y;
}

/**
 * print_latency() - print the one-way latency of round trips as a part of the JSON line
 * @ticks: duration of each round trip; sorted afterwards
 * @count: number of round trips
 *
 * Context: user space.
 */
void print_latency(__u64 *ticks, __u32 count)
{
	qsort(ticks, count, sizeof(*ticks), compare_ticks);
	printf("\"p50_us\": %.3f, \"p99_us\": %.3f, \"min_us\": %.3f, ",
	       seconds_of(ticks[count / 2]) * 1e6 / 2,
	       seconds_of(ticks[count - 1 - count / 100]) * 1e6 / 2,
	       seconds_of(ticks[0]) * 1e6 / 2);
}

/**
 * address_of() - get the address of a host
 * @o: what is to be measured
 * @ns: the network namespace of the host
 *
 * Context: user space.
 * Return: the IPv4 address, until the next call for that host.
 */
const char *address_of(const struct options *o, const char *ns)
{
	static char addresses[2][32];
	bool is_b = !strcmp(ns, "b");

	snprintf(addresses[is_b], sizeof(addresses[is_b]), "%s.%d", o->net, is_b ? 2 : 1);
	return addresses[is_b];
}

static bool number(const char *arg, const char *name, __u32 *value)
{
	size_t len = strlen(name);

	if (strncmp(arg, name, len) || arg[len] != '=')
		return false;
	*value = strtoul(arg + len + 1, NULL, 0);
	return true;
}

static void option(struct options *o, const char *arg)
{
	__u32 ms, kib;

	if (number(arg, "size", &o->size) || number(arg, "depth", &o->depth) ||
	    number(arg, "batch", &o->batch) || number(arg, "conns", &o->conns) ||
	    number(arg, "count", &o->count) || number(arg, "ops", &o->ops) ||
	    number(arg, "flows", &o->flows) || number(arg, "rounds", &o->rounds))
		return;
	if (number(arg, "ms", &ms))
		o->seconds = ms / 1e3;
	else if (number(arg, "span", &kib))
		o->region = (size_t)kib * KIB;
	else if (!strncmp(arg, "from=", 5))
		o->from = arg + 5;
	else if (!strncmp(arg, "to=", 3))
		o->to = arg + 3;
	else if (!strncmp(arg, "net=", 4))
		o->net = arg + 4;
	else
		fail("what is %s?", arg);
}

static const struct {
	const char *op;
	void (*measure)(const struct options *options);
} measurements[] = {
	{ "write", bulk }, { "read", bulk }, { "send", bulk },
	{ "write-lat", pingpong }, { "send-lat", pingpong }, { "conn", connect_rate },
	{ "verify", verify },
	{ "tcp", tcp_stream }, { "tcp-crc", tcp_stream }, { "tcp-lat", tcp_pingpong },
	{ "tcp-conn", tcp_connect_rate }, { "crc", crc_rate },
};

/**
 * arm_alarm() - set an alarm that ends the program if it takes too long
 * @o: what is to be measured
 *
 * Context: user space; each process that measures needs it.
 */
void arm_alarm(const struct options *o)
{
	double seconds = o->seconds * (10 + o->rounds * o->flows * 4);

	alarm(patience() * 3 + seconds + o->conns / 10 + o->count / 50);
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
	struct rlimit files = { .rlim_cur = MANY_FILES, .rlim_max = MANY_FILES };
	struct options o = {
		.size = 64 * KIB, .region = REGION, .depth = 64, .batch = 1, .conns = 1,
		.seconds = 0.3, .rounds = 1, .from = "a", .to = "b", .net = "10.77.0",
	};
	size_t i;

	MUST(argc > 1);
	o.op = argv[1];
	for (int n = 2; n < argc; n++)
		option(&o, argv[n]);
	MUST(o.size && o.batch && o.conns && o.depth >= o.batch);
	if (o.region < o.size)
		o.region = o.size;
	setrlimit(RLIMIT_NOFILE, &files);
	arm_alarm(&o);
	clock_start();
	for (i = 0; i < ARRAY_SIZE(measurements); i++) {
		if (strcmp(measurements[i].op, o.op))
			continue;
		printf("{ ");
		if (o.flows)
			parallel(&o);
		else
			measurements[i].measure(&o);
		printf("\"op\": \"%s\" }\n", o.op);
		return 0;
	}
	fail("what is %s?", o.op);
}
