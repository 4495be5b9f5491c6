// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Runs directed cases, each in a process group of its own, and prints a line for each.
 */
#include "cases.h"
#include "actors.h"
#include "world.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

/* A child that failed makes await() give up. */
static void child_ended(int signal, siginfo_t *info, void *context)
{
	(void)signal;
	(void)context;
	if (info->si_code == CLD_EXITED && info->si_status)
		atomic_store(&w->has_failed, true);
}

static bool run_directed(const struct directed *d)
{
	struct sigaction sa = { .sa_sigaction = child_ended, .sa_flags = SA_SIGINFO | SA_RESTART };
	double until = now() + 6 * patience();
	int status = 0;
	pid_t pid;

	if (d->spare & spared) {
		printf("ok %s # SKIP spared: the kernel's own fault\n", d->words);
		return true;
	}
	reach(0);
	w->has_failed = false;
	tell("attack: case %s", d->name);
	fflush(stdout);
	pid = fork();
	MUST(pid >= 0);
	if (!pid) {
		setpgid(0, 0);
		sigaction(SIGCHLD, &sa, NULL);
		d->run();
		fflush(stdout);
		_exit(0);
	}
	setpgid(pid, pid);
	while (!waitpid(pid, &status, WNOHANG) && now() < until)
		pause_ms(2);
	kill(-pid, SIGKILL);
	while (waitpid(-pid, NULL, 0) > 0)
		;
	if (now() >= until)
		status = 1;
	printf("%s %s\n", status ? "not ok" : "ok", d->words);
	return !status;
}

static const struct directed *case_named(const char *name)
{
	static const struct directed * const tables[] = { accept_cases, owner_cases, end_cases };
	const struct directed *d;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(tables); i++)
		for (d = tables[i]; d->name; d++)
			if (!strcmp(name, d->name))
				return d;
	fail("no case %s", name);
}

/**
 * run_cases() - run directed cases
 * @names: their names
 * @count: number of @names
 *
 * Context: the first process.
 * Return: 0, or 1: one has failed.
 */
int run_cases(char **names, int count)
{
	int wrong = 0, i;

	for (i = 0; i < count; i++)
		wrong += !run_directed(case_named(names[i]));
	return !!wrong;
}
