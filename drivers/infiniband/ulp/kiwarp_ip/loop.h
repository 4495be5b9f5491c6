/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Recognises most packets that are TCP segments of the interface's own connections. */
#ifndef KIP_LOOP_H
#define KIP_LOOP_H

#include <linux/skbuff.h>
#include <linux/types.h>

#include "proto/wire.h"

struct net;

/**
 * struct kip_loop_end - the far end of a connection
 * @node: entry in the table; RCU
 * @net: network namespace of the connection; only compared
 * @lladdr: link-layer address, flags zeroed
 */
struct kip_loop_end {
	struct hlist_node node;
	const struct net *net;
	u8 lladdr[KIP_ADDR_LEN];
};

void kip_loop_add(struct kip_loop_end *end, const struct net *net, const u8 *lladdr);
void kip_loop_del(struct kip_loop_end *end);
bool kip_loop_is_own(const struct sk_buff *skb, const u8 *own, const struct net *net);

#endif /* KIP_LOOP_H */
