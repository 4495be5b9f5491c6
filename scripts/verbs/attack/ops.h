/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Random operations of a thread of a family.
 */
#ifndef KIW_ATTACK_OPS_H
#define KIW_ATTACK_OPS_H

#include "thread.h"

void slot_op(struct thread *t);
void create_op(struct thread *t);
void event_op(struct thread *t);
void strange_op(struct thread *t);
void close_op(struct thread *t);
void qp_op(struct thread *t);

#endif /* KIW_ATTACK_OPS_H */
