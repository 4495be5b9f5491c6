/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* The policy of a device as files below its directory in sysfs. */
#ifndef KIW_POLICY_SYSFS_H
#define KIW_POLICY_SYSFS_H

struct attribute_group;

/* For &struct ib_device_ops.device_group */
extern const struct attribute_group kiw_policy_group;

#endif /* KIW_POLICY_SYSFS_H */
