/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* ICMP errors to senders of packets that are too long. */
#ifndef KIP_TOO_BIG_H
#define KIP_TOO_BIG_H

#include <linux/skbuff.h>
#include <linux/types.h>

struct kip_dev;

void kip_too_big(struct kip_dev *dev, struct sk_buff *skb, u32 mtu);
void kip_too_big_init(struct kip_dev *dev);
void kip_too_big_end(struct kip_dev *dev);

#endif /* KIP_TOO_BIG_H */
