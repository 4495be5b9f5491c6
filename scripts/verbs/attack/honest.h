/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * A pair of processes that must be unaffected by all others.
 */
#ifndef KIW_ATTACK_HONEST_H
#define KIW_ATTACK_HONEST_H

int be_honest(void);

#endif /* KIW_ATTACK_HONEST_H */
