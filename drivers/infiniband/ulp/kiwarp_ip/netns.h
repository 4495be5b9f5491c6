/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Detection of network namespaces that only our cm_ids keep alive */
#ifndef KIP_NETNS_H
#define KIP_NETNS_H

#include <linux/types.h>

struct net;

void kip_netns_hold(struct net *net);
void kip_netns_drop(struct net *net);
bool kip_netns_is_left(const struct net *net);
int kip_netns_module_init(void);
void kip_netns_module_exit(void);

#endif /* KIP_NETNS_H */
