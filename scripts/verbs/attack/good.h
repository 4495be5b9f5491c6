/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * A good server: it takes every connection and sends back what it receives.
 */
#ifndef KIW_ATTACK_GOOD_H
#define KIW_ATTACK_GOOD_H

#include <linux/types.h>
#include <sys/types.h>

void good_serve(int side, __u16 port, uid_t uid);
void start_server(int side);

#endif /* KIW_ATTACK_GOOD_H */
