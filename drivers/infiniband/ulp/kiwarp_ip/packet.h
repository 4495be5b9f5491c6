/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Received packets, from connections and from the datagram service. */
#ifndef KIP_PACKET_H
#define KIP_PACKET_H

#include <linux/align.h>
#include <linux/skbuff.h>

#include "proto/wire.h"

struct kip_dev;

/* Headroom of a received packet: room for the address, chosen so that the IP header is aligned */
#define KIP_PACKET_HEADROOM	ALIGN(NET_SKB_PAD + KIP_ADDR_LEN, 16)

void kip_packet_prepare(struct kip_dev *dev, struct sk_buff *skb);

#endif /* KIP_PACKET_H */
