// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * attack: unprivileged processes make rdma_cm calls in random order.
 *
 *	attack [OPTIONS] case NAME...		directed cases, one line for each
 *	attack [OPTIONS] random SECONDS		random calls
 *	attack [OPTIONS] vanish SECONDS		the same while the caller deletes the devices
 *	attack honest				a pair that must be unaffected, until SIGTERM
 *
 *	--seed N	seed of all random choices
 *	--spare WHAT	leave out an order that crashes the kernel whatever the driver does:
 *			connecting: accept or reject an identifier that connects (iw_cm)
 *			unread: destroy the identifier of a request that was not read (rdma_ucm)
 *			fork: kill a process while it forks (UML)
 *			attributes: ask for the attributes of a QP while another thread
 *				binds the identifier (rdma_ucm)
 *	--qp SIDE:QPN	a QP of another process (0: host a, 1: host b); may be repeated
 *	--startup MS	the devices' startup_ms
 *
 * All calls use the ABI of /dev/infiniband/rdma_cm directly, because librdmacm prevents many
 * orders. QPs are created with libibverbs. The program runs as root in a guest with the network
 * namespaces "a" and "b"; the processes it starts enter one of them and drop privileges.
 *
 * random: there are families of processes, each with a user of its own, some in namespaces of
 * their own. A family has threads and sometimes forked children, which share identifiers,
 * channels and QPs through memory that all processes share. Peers that are silent, slow, hostile
 * or absent are threads of two more processes that use plain TCP sockets. Families are killed at
 * random. The program itself detects a call that used a QP of another family, and a process that
 * does not end. The caller checks the kernel log and looks for objects left behind.
 *
 * Each thread has its own random numbers, derived from the seed and its index, and records its
 * last operations, which are printed when something is wrong. The interleaving of threads is
 * not reproducible.
 *
 * Its files, from the bottom up:
 *	world			shared memory, random numbers, users and namespaces
 *	ucm, qps, tcp		calls: rdma_ucm's ABI, libibverbs, TCP with frames of MPA
 *	client			a client that verifies what it gets
 *	actors			processes of directed cases
 *	good			the good server
 *	cases, cases_*		directed cases
 *	thread, id_ops, qp_ops	a thread of a family, and its operations
 *	family, peers, random	families, TCP peers, and their supervisor
 *	honest			the honest pair
 */
#include "cases.h"
#include "honest.h"
#include "random.h"
#include "world.h"

static void know_option(const char *text)
{
	struct known *k = &w->known[w->known_count++];

	*k = (struct known) { .family = -1, .is_alive = true };
	if (sscanf(text, "%d:%u", &k->side, &k->qpn) != 2)
		fail("not SIDE:QPN: %s", text);
}

static void spare_option(const char *text)
{
	if (!strcmp(text, "connecting"))
		spared |= SPARE_CONNECTING;
	else if (!strcmp(text, "unread"))
		spared |= SPARE_UNREAD;
	else if (!strcmp(text, "fork"))
		spared |= SPARE_FORK;
	else if (!strcmp(text, "attributes"))
		spared |= SPARE_ATTRIBUTES;
	else
		fail("not to be spared: %s", text);
}

static char **options(char **arg)
{
	for (; *arg && !strncmp(*arg, "--", 2); arg += 2) {
		if (!arg[1])
			fail("%s what?", *arg);
		if (!strcmp(*arg, "--seed"))
			base_seed = strtoull(arg[1], NULL, 0);
		else if (!strcmp(*arg, "--spare"))
			spare_option(arg[1]);
		else if (!strcmp(*arg, "--qp"))
			know_option(arg[1]);
		else if (!strcmp(*arg, "--startup"))
			startup_ms = atoi(arg[1]);
		else
			fail("no option %s", *arg);
	}
	return arg;
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
	char **arg;
	int i;

	world_open();
	arg = options(argv + 1);
	i = argv + argc - arg;
	if (i > 1 && !strcmp(arg[0], "case"))
		return run_cases(arg + 1, i - 1);
	devices_vanish = i == 2 && !strcmp(arg[0], "vanish");
	if (i == 2 && (devices_vanish || !strcmp(arg[0], "random")))
		return run_random(atof(arg[1]));
	if (i == 1 && !strcmp(arg[0], "honest"))
		return be_honest();
	fail("attack [OPTIONS] case NAME... | random SECONDS | vanish SECONDS | honest");
}
