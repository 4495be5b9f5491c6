/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Settings: /sys/class/net/NAME/mode and .../kiwarp_ip/ */
#ifndef KIP_SYSFS_H
#define KIP_SYSFS_H

struct net_device;

void kip_sysfs_setup(struct net_device *netdev);

#endif /* KIP_SYSFS_H */
