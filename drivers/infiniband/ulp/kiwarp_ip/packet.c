// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Received packets, from connections and from the datagram service. */
#include "packet.h"

#include <linux/netdevice.h>

#include "dev.h"
#include "proto/msg.h"

/**
 * kip_packet_prepare() - prepare a received packet for the stack
 * @dev: the interface
 * @skb: starts at its 4-octet header, with %KIP_PACKET_HEADROOM before it
 *
 * Context: softirq, or process with bottom halves disabled.
 */
void kip_packet_prepare(struct kip_dev *dev, struct sk_buff *skb)
{
	const u16 type = kip_msg_type(skb->data);

	memset(skb_push(skb, KIP_ADDR_LEN), 0, KIP_ADDR_LEN);
	skb_reset_mac_header(skb);
	skb_pull(skb, KIP_HARD_LEN);
	skb->protocol = htons(type);
	skb->dev = dev->netdev;
	dev_sw_netstats_rx_add(dev->netdev, skb->len);
}
