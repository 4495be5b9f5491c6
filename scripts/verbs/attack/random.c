// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The supervisor of all families: kills and restarts them, and reports what went wrong.
 */
#include "random.h"
#include "actors.h"
#include "good.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* Minimum number of calls that "random" has to try */
#define RANDOM_CALLS	1000

static void print_notes(const struct notes *n)
{
	unsigned int i, first = n->count > LOG ? n->count - LOG : 0;

	printf("thread %d, %u operations\n", n->tid, n->count);
	for (i = first; i < n->count; i++) {
		const struct note *note = &n->notes[i % LOG];

		printf("  %.6f %s %u %u: ", note->at, op_names[note->op % OPS], note->id,
		       note->arg);
		if (note->ret == RUNNING)
			printf("has not returned\n");
		else
			printf("%s\n", note->ret ? strerror(-note->ret) : "done");
	}
}

static void print_family(const struct family *f)
{
	int i;

	printf("family %d, process %d\n", f->number, f->pid);
	for (i = 0; i <= THREADS; i++)
		print_notes(&f->notes[i]);
}

static void print_stack(int pid)
{
	char path[64], line[200];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/stack", pid);
	file = fopen(path, "r");
	while (file && fgets(line, sizeof(line), file))
		printf("  %s", line);
	if (file)
		fclose(file);
}

static void print_stacks(const struct family *f)
{
	int i;

	for (i = 0; i <= THREADS; i++) {
		printf("stack of %d\n", f->notes[i].tid);
		print_stack(f->notes[i].tid);
	}
}

/* Return: whether all of the process group have ended */
static bool have_ended(pid_t group)
{
	double until = now() + patience() + startup_ms / 1000.;
	int status;
	pid_t pid;

	for (;;) {
		pid = waitpid(-group, &status, WNOHANG);
		if (pid < 0)
			return true;
		if (pid && WIFSIGNALED(status) && WTERMSIG(status) != SIGKILL)
			fail("process %d ended with signal %d", pid, WTERMSIG(status));
		if (!pid && now() > until)
			return false;
		if (!pid)
			pause_ms(2);
	}
}

static bool family_kill(struct family *f)
{
	double until = now() + patience();

	f->is_killing = true;
	/* One that has ended by itself may stay counted, too. */
	while (spared & SPARE_FORK && f->forking > 0 && now() < until)
		pause_ms(1);
	kill(-f->pid, SIGKILL);
	w->kills++;
	if (have_ended(f->pid))
		return true;
	printf("family %d does not end\n", f->number);
	print_family(f);
	print_stacks(f);
	return false;
}

static void print_counts(void)
{
	int i;

	printf("%lu families killed\n", w->kills);
	for (i = 0; i < OPS; i++)
		printf("%s %lu of %lu, ", op_names[i], w->done[i], w->tried[i]);
	printf("\nevents:");
	for (i = 0; i < 16; i++)
		printf(" %lu", w->events[i]);
	printf("\n");
}

static unsigned long calls_tried(void)
{
	unsigned long sum = 0;
	int i;

	for (i = 0; i < OPS; i++)
		sum += w->tried[i];
	return sum;
}

static bool family_has_begun(const struct family *f)
{
	int i;

	for (i = 0; i <= THREADS; i++) {
		if (f->notes[i].count)
			return true;
	}
	return false;
}

/**
 * run_random() - make random calls
 * @seconds: for how long; longer on a slow machine, until enough calls were tried
 *
 * Context: the first process.
 * Return: 0, or 1: something was wrong.
 */
int run_random(double seconds)
{
	struct rng rng = rng_of(9999, 0);
	double until = now() + seconds, give_up = until + 6 * patience();
	pid_t others[4];
	int bad = 0, i;
	__u32 round = 0;

	MUST(!prctl(PR_SET_CHILD_SUBREAPER, 1));
	tell("attack: seed %llu, spared %#x, %.0f s", (unsigned long long)base_seed, spared,
	     seconds);
	for (i = 0; i < 2; i++) {
		others[i] = actor(peers_main, i);
		if (!devices_vanish)
			start_server(i);
	}
	for (i = 0; i < FAMILIES; i++)
		family_start(&w->families[i], i, round);
	while ((now() < until || (calls_tried() < RANDOM_CALLS && now() < give_up)) &&
	       !w->wrong && !bad) {
		pause_ms(100 + choose(&rng, 300));
		i = choose(&rng, FAMILIES);
		/* Otherwise, families would be killed on a slow machine before they do anything */
		if (!family_has_begun(&w->families[i]) && choose(&rng, 16))
			continue;
		bad = !family_kill(&w->families[i]);
		if (!bad)
			family_start(&w->families[i], i, ++round);
	}
	w->is_over = true;
	pause_ms(200);
	for (i = 0; i < FAMILIES; i++)
		bad |= !family_kill(&w->families[i]);
	for (i = 0; i < 2; i++)
		kill(others[i], SIGKILL);
	print_counts();
	if (!w->wrong && !bad && calls_tried() < RANDOM_CALLS) {
		printf("only %lu calls were tried\n", calls_tried());
		bad = 1;
	}
	if (w->wrong) {
		printf("%s\n", w->words);
		print_family(&w->families[w->wrong - 1]);
	}
	return bad || w->wrong;
}
