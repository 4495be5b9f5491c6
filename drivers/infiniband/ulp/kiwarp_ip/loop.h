/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Recognises most packets that are TCP segments of the interface's own connections. */
#ifndef KIP_LOOP_H
#define KIP_LOOP_H

#include <linux/skbuff.h>
#include <linux/types.h>

bool kip_loop_is_own(const struct sk_buff *skb, const u8 *own);

#endif /* KIP_LOOP_H */
