/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* The receive path: completions, NAPI, and received packets. */
#ifndef KIP_RX_H
#define KIP_RX_H

struct ib_cq;
struct kip_conn;
struct kip_dev;

int kip_rx_make(struct kip_conn *conn);
void kip_rx_free(struct kip_conn *conn);
void kip_rx_ready(struct ib_cq *cq, void *context);
void kip_rx_open(struct kip_dev *dev);
void kip_rx_close(struct kip_dev *dev);

#endif /* KIP_RX_H */
