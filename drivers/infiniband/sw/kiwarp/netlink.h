/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* The link types of `rdma link add`: "kiwarp", "kiwarp-ext" and, on request, "siw". */
#ifndef KIW_NETLINK_H
#define KIW_NETLINK_H

void kiw_netlink_init(void);
void kiw_netlink_uninit(void);

#endif /* KIW_NETLINK_H */
