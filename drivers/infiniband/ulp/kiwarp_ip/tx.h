/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* The transmit path. */
#ifndef KIP_TX_H
#define KIP_TX_H

#include <linux/netdevice.h>
#include <linux/skbuff.h>
#include <rdma/ib_verbs.h>

struct kip_conn;
struct kip_dev;
struct kip_peer;

int kip_tx_make(struct kip_conn *conn);
void kip_tx_free(struct kip_conn *conn);
void kip_tx_init(struct kip_dev *dev);
void kip_tx_end(struct kip_dev *dev);
netdev_tx_t kip_tx_xmit(struct sk_buff *skb, struct net_device *netdev);
void kip_tx_run(struct kip_dev *dev, struct kip_peer *peer);
void kip_tx_done(struct kip_conn *conn, const struct ib_wc *wc, struct sk_buff_head *sent);
void kip_tx_datagrams(struct kip_dev *dev, struct kip_peer *peer);

#endif /* KIP_TX_H */
