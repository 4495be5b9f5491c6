/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* The work item that makes, accepts and ends connections. */
#ifndef KIP_CONTROL_H
#define KIP_CONTROL_H

#include <linux/types.h>

struct kip_dev;

void kip_control_init(struct kip_dev *dev);
int kip_control_alloc(struct kip_dev *dev);
void kip_control_free(struct kip_dev *dev);
void kip_control_start(struct kip_dev *dev);
void kip_control_stop(struct kip_dev *dev);
void kip_control_renew(struct kip_dev *dev);
void kip_control_set_depth(struct kip_dev *dev, u16 depth);

#endif /* KIP_CONTROL_H */
