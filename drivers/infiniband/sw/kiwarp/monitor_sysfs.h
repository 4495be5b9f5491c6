/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Files for monitoring programs below a device's directory in sysfs. */
#ifndef KIW_MONITOR_SYSFS_H
#define KIW_MONITOR_SYSFS_H

struct attribute_group;
struct ib_device;

/* For &struct ib_device_ops.port_groups */
extern const struct attribute_group *kiw_monitor_port_groups[];

void kiw_monitor_add_identity(struct ib_device *ibdev);

#endif /* KIW_MONITOR_SYSFS_H */
