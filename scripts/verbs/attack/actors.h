/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * The processes of directed cases, and the stages at which they wait for each other.
 */
#ifndef KIW_ATTACK_ACTORS_H
#define KIW_ATTACK_ACTORS_H

#include <linux/types.h>
#include <sys/types.h>

void reach(int stage);
void await(int stage);
pid_t actor(void (*what)(int), int arg);
void must_end_well(pid_t pid);
int silent_caller(void);
__u32 take_request(int fd, __u32 *listener);
void victim_connected(int side);

#endif /* KIW_ATTACK_ACTORS_H */
