/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Random calls: families of processes, their peers and their supervisor.
 */
#ifndef KIW_ATTACK_RANDOM_H
#define KIW_ATTACK_RANDOM_H

#include "world.h"

void family_start(struct family *f, int number, __u32 round);
void peers_main(int side);
int run_random(double seconds);

#endif /* KIW_ATTACK_RANDOM_H */
