// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * mark PORT: for each datagram to this UDP port, executes the instruction at which the plugin
 * (../count/plugin.c) writes down its counts, and sends the datagram back.
 */
#include <arpa/inet.h>
#include <stdlib.h>
#include <sys/socket.h>

/**
 * main() - mark the ends of windows when told to
 * @argc: number of arguments
 * @argv: PORT
 *
 * The mark is a nopl whose address spells KIW1.
 *
 * Context: user space, in a guest.
 * Return: 1: there is no socket. It ends only with the guest.
 */
int main(int argc, char **argv)
{
	struct sockaddr_in own = { .sin_family = AF_INET }, peer;
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	if (argc != 2)
		return 1;
	own.sin_port = htons(atoi(argv[1]));
	if (fd < 0 || bind(fd, (struct sockaddr *)&own, sizeof(own)))
		return 1;
	for (;;) {
		socklen_t size = sizeof(peer);
		char byte;

		if (recvfrom(fd, &byte, 1, 0, (struct sockaddr *)&peer, &size) < 0)
			return 1;
		__asm__ volatile(".byte 0x0f, 0x1f, 0x84, 0x00, 'K', 'I', 'W', '1'");
		if (sendto(fd, &byte, 1, 0, (struct sockaddr *)&peer, size) < 0)
			return 1;
	}
}
