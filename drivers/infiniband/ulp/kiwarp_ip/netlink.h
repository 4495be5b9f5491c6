/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* ip link add ... type kiwarp_ip */
#ifndef KIP_NETLINK_H
#define KIP_NETLINK_H

int kip_netlink_init(void);
void kip_netlink_uninit(void);

#endif /* KIP_NETLINK_H */
