/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* ethtool -S, -i, and the state of the link */
#ifndef KIP_ETHTOOL_H
#define KIP_ETHTOOL_H

#include <linux/ethtool.h>

extern const struct ethtool_ops kip_ethtool_ops;

#endif /* KIP_ETHTOOL_H */
