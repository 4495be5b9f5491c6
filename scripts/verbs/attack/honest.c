// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * A pair of processes that must be unaffected by all others.
 */
#include "honest.h"
#include "actors.h"
#include "client.h"
#include "good.h"
#include "world.h"

#include <signal.h>

/* Blocks SIGTERM, so that it does not interrupt a wait for an event */
static void hold_end(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	MUST(!sigprocmask(SIG_BLOCK, &set, NULL));
}

static bool is_to_end(void)
{
	sigset_t set;

	MUST(!sigpending(&set));
	return sigismember(&set, SIGTERM);
}

static void serve_honestly(int side)
{
	good_serve(side, HONEST_PORT, HONEST_USER);
}

/*
 * Makes a connection for one round. The server ends it if the first message does not arrive before
 * the deadline of the startup, which happens only if the machine is too busy.
 * Return: false: it was too late
 */
static bool connect_briefly(__u32 round)
{
	enum ibv_wc_status status;
	struct client c;
	double took;

	client_open(&c, 0);
	client_connect(&c, 1, HONEST_PORT);
	status = client_try_round(&c, round);
	took = now() - c.began;
	if (status && (status != IBV_WC_WR_FLUSH_ERR || took < startup_ms / 1000.))
		fail("status %d on QP %u after %.3f s", status, c.qp->qp_num, took);
	client_close(&c);
	return !status;
}

/**
 * be_honest() - keep one connection open, and make short ones, one after the other
 *
 * Context: the first process. Ends on SIGTERM.
 * Return: 0.
 */
int be_honest(void)
{
	double until = now() + patience();
	__u32 round = 0, briefs = 0, late = 0;
	struct client c;

	hold_end();
	actor(serve_honestly, 1);
	while (!w->value[15]) {
		MUST(now() < until);
		pause_ms(2);
	}
	become(0, HONEST_USER);
	client_open(&c, 0);
	client_connect(&c, 1, HONEST_PORT);
	printf("ready\n");
	fflush(stdout);
	while (!is_to_end()) {
		client_round(&c, round++);
		if (round % 16)
			continue;
		if (connect_briefly(round))
			briefs++;
		else
			late++;
	}
	client_round(&c, round++);
	client_close(&c);
	if (late > briefs)
		fail("%u short connections were too late, %u in time", late, briefs);
	w->is_over = true;
	printf("%u rounds, %u short connections, %u too late\n", round, briefs, late);
	return 0;
}
