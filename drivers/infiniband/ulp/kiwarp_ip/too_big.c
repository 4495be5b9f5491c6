// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Path MTU: each connection has its own MTU (RFC 4755 7.2), and datagrams have another one.
 * kip_too_big() tells it to senders of longer packets, if they can be told.
 *
 * The route of a local sender is usually updated at once. A work item sends the ICMP message,
 * because a peer's lock may be held when a packet turns out to be too long, and the message may
 * be for that peer.
 */
#include "too_big.h"

#include <linux/icmpv6.h>
#include <linux/netdevice.h>
#include <net/dst.h>
#include <net/icmp.h>
#include <net/ip.h>
#include <net/ipv6.h>

#include "dev.h"

/* With this many errors pending no more are added: a sender may get one for a later packet */
#define QUEUE_MAX	64
/* Maximum number of errors sent per run of the work item */
#define BURST		16

/* The MTU to report is kept in skb->cb while the packet is queued */
static u32 *too_big_mtu(struct sk_buff *skb)
{
	return (u32 *)skb->cb;
}

static void too_big_tell(struct sk_buff *skb)
{
	const u32 mtu = *too_big_mtu(skb);

	memset(skb->cb, 0, sizeof(skb->cb));
	if (skb->protocol == htons(ETH_P_IP))
		icmp_send(skb, ICMP_DEST_UNREACH, ICMP_FRAG_NEEDED, htonl(mtu));
#if IS_ENABLED(CONFIG_IPV6)
	else if (skb->protocol == htons(ETH_P_IPV6))
		icmpv6_send(skb, ICMPV6_PKT_TOOBIG, 0, mtu);
#endif
	kfree_skb(skb);
}

static void too_big_work(struct work_struct *work)
{
	struct kip_dev *dev = container_of(work, struct kip_dev, too_big_work);
	unsigned int left = BURST;
	struct sk_buff *skb;

	while (left-- && (skb = skb_dequeue(&dev->too_big))) {
		local_bh_disable();
		too_big_tell(skb);
		local_bh_enable();
		cond_resched();
	}
	/* A sender that fills the queue must not occupy the workqueue that all interfaces share */
	if (!skb_queue_empty(&dev->too_big))
		queue_work(kip_wq, &dev->too_big_work);
}

/**
 * kip_too_big() - drop a packet that is too long and tell its sender, if that is possible
 * @dev: the interface
 * @skb: starts after its 4-octet header; consumed
 * @mtu: length in bytes of the longest packet that could be sent
 *
 * Context: softirq, or process with bottom halves disabled.
 */
void kip_too_big(struct kip_dev *dev, struct sk_buff *skb, u32 mtu)
{
	kip_count(dev, KIP_STAT_TX_TOO_LONG);
	DEV_STATS_INC(dev->netdev, tx_dropped);
	if (!skb_dst(skb) || skb_queue_len_lockless(&dev->too_big) >= QUEUE_MAX) {
		kfree_skb(skb);
		return;
	}
	skb_reset_network_header(skb);
	skb_dst_update_pmtu_no_confirm(skb, mtu);
	skb_dst_force(skb);
	*too_big_mtu(skb) = mtu;
	skb_queue_tail(&dev->too_big, skb);
	queue_work(kip_wq, &dev->too_big_work);
}

/**
 * kip_too_big_init() - initialise the queue of pending errors
 * @dev: the interface
 *
 * Context: process.
 */
void kip_too_big_init(struct kip_dev *dev)
{
	skb_queue_head_init(&dev->too_big);
	INIT_WORK(&dev->too_big_work, too_big_work);
}

/**
 * kip_too_big_end() - discard all pending errors
 * @dev: the interface; no more packets are sent
 *
 * Context: process, may sleep.
 */
void kip_too_big_end(struct kip_dev *dev)
{
	cancel_work_sync(&dev->too_big_work);
	skb_queue_purge(&dev->too_big);
}
