// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The shared memory, the random numbers, users and namespaces.
 */
#include "world.h"

#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

const char * const op_names[OPS] = {
	"create", "bind", "listen", "resolve addr", "resolve route", "connect", "accept",
	"reject", "disconnect", "destroy", "migrate", "event", "query", "qp attr",
	"option", "notify", "strange", "close", "fork", "qp create", "qp modify",
	"qp post", "qp destroy",
};

struct world *w;
const char * const addrs[2] = { "10.77.0.1", "10.77.0.2" };
const char * const devices[2] = { "kiwa", "kiwb" };
int net[2];
__u64 base_seed = 5040;
unsigned int spared;
unsigned int startup_ms = 10000;
bool devices_vanish;
int here = 1;

static int kmsg = -1;

/**
 * world_open() - set up what all processes share
 *
 * Context: the first process, before it starts others.
 */
void world_open(void)
{
	w = mmap(NULL, sizeof(*w), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	MUST(w != MAP_FAILED);
	kmsg = open("/dev/kmsg", O_WRONLY | O_CLOEXEC);
	net[0] = open("/run/netns/a", O_RDONLY | O_CLOEXEC);
	net[1] = open("/run/netns/b", O_RDONLY | O_CLOEXEC);
	MUST(net[0] >= 0 && net[1] >= 0);
}

/**
 * tell() - print a line, also to the kernel log
 * @format: the line, as for printf()
 *
 * What is in the kernel log remains when the kernel crashes.
 *
 * Context: any process.
 */
void tell(const char *format, ...)
{
	char line[200];
	va_list args;
	int len;

	va_start(args, format);
	len = vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	fprintf(stderr, "%s\n", line);
	if (kmsg >= 0 && write(kmsg, line, len) < 0)
		fprintf(stderr, "no kernel log: %m\n");
}

/**
 * choose() - choose a random number
 * @rng: the caller's random numbers
 * @count: number of values to choose from, not 0
 *
 * Context: the thread that owns @rng.
 * Return: 0 to @count - 1.
 */
__u32 choose(struct rng *rng, __u32 count)
{
	__u64 x;

	rng->state += 0x9e3779b97f4a7c15;
	x = rng->state;
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
	x = (x ^ x >> 27) * 0x94d049bb133111eb;
	return (__u32)((x ^ x >> 31) >> 32) % count;
}

/**
 * rng_of() - random numbers of a thread
 * @who: index of the thread in the program
 * @round: number of its family before it was killed and started again
 *
 * Context: any.
 * Return: a sequence that depends on the seed, @who and @round.
 */
struct rng rng_of(__u32 who, __u32 round)
{
	struct rng rng = { base_seed * 0x100000001b3 + who * 0x10001ULL + ((__u64)round << 40) };

	choose(&rng, 2);
	return rng;
}

/**
 * pause_ms() - sleep
 * @ms: milliseconds
 *
 * Context: any thread.
 */
void pause_ms(unsigned int ms)
{
	usleep(ms * 1000);
}

/**
 * become() - enter a host, and become one of its users
 * @side: the host
 * @uid: the user; 0 to stay root
 *
 * Context: a new process, with one thread.
 */
void become(int side, uid_t uid)
{
	MUST(!setns(net[side], CLONE_NEWNET));
	if (!uid)
		return;
	MUST(!setgroups(0, NULL) && !setresgid(uid, uid, uid) && !setresuid(uid, uid, uid));
	/* Otherwise /proc/self would belong to root */
	MUST(!prctl(PR_SET_DUMPABLE, 1));
}

/**
 * become_root_of_container() - become root of a new user namespace
 * @uid: the user outside
 * @flags: more namespaces, as for unshare()
 *
 * Context: a new process, with one thread, after become().
 */
void become_root_of_container(uid_t uid, int flags)
{
	char map[40];

	MUST(!unshare(CLONE_NEWUSER | flags));
	snprintf(map, sizeof(map), "0 %u 1", uid);
	set_file("/proc/self/uid_map", map);
	set_file("/proc/self/setgroups", "deny");
	set_file("/proc/self/gid_map", map);
	MUST(!setresgid(0, 0, 0) && !setresuid(0, 0, 0));
}
