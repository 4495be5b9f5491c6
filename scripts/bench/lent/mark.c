// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * mark COUNT MS FILE...: COUNT times, MS apart, prints "WINDOW" and the number in each FILE, and
 * executes the instruction at which the plugin (../count/plugin.c) writes down its counts.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define FILES_MAX	8

static long number(int fd)
{
	char text[32] = "";

	if (pread(fd, text, sizeof(text) - 1, 0) <= 0)
		exit(1);
	return atol(text);
}

/**
 * main() - mark the ends of windows
 * @argc: number of arguments
 * @argv: COUNT MS FILE...
 *
 * The mark is a nopl whose address spells KIW1. The numbers are printed behind it, so that printing
 * counts for the next window, of which it is a small part.
 *
 * Context: user space, in a guest.
 * Return: 0, or 1: a file cannot be read.
 */
int main(int argc, char **argv)
{
	int fds[FILES_MAX], files = argc - 3;
	long values[FILES_MAX], count, ms;
	struct timespec pause;

	if (files < 1 || files > FILES_MAX)
		return 1;
	count = atol(argv[1]);
	ms = atol(argv[2]);
	pause = (struct timespec){ ms / 1000, ms % 1000 * 1000000 };
	for (int i = 0; i < files; i++)
		fds[i] = open(argv[i + 3], O_RDONLY);
	while (count--) {
		for (int i = 0; i < files; i++)
			values[i] = number(fds[i]);
		__asm__ volatile(".byte 0x0f, 0x1f, 0x84, 0x00, 'K', 'I', 'W', '1'");
		printf("WINDOW");
		for (int i = 0; i < files; i++)
			printf(" %ld", values[i]);
		putchar('\n');
		fflush(stdout);
		nanosleep(&pause, NULL);
	}
	return 0;
}
