// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * ethtool -S, -i, and the state of the link. The core calls these functions in process context with
 * the RTNL held.
 */
#include "ethtool.h"

#include <linux/ethtool.h>
#include <linux/netdevice.h>
#include <linux/string.h>

#include "dev.h"

static void ethtool_get_drvinfo(struct net_device *netdev, struct ethtool_drvinfo *info)
{
	struct kip_dev *dev = netdev_priv(netdev);

	strscpy(info->driver, "kiwarp_ip", sizeof(info->driver));
	strscpy(info->version, KIWARP_VERSION, sizeof(info->version));
	strscpy(info->bus_info, dev->lower->name, sizeof(info->bus_info));
}

static int ethtool_get_sset_count(struct net_device *netdev, int sset)
{
	return sset == ETH_SS_STATS ? KIP_STAT_COUNT : -EOPNOTSUPP;
}

static void ethtool_get_strings(struct net_device *netdev, u32 sset, u8 *data)
{
	unsigned int i;

	if (sset != ETH_SS_STATS)
		return;
	for (i = 0; i < KIP_STAT_COUNT; i++)
		strscpy(data + i * ETH_GSTRING_LEN, kip_stat_name(i), ETH_GSTRING_LEN);
}

static void ethtool_get_stats(struct net_device *netdev, struct ethtool_stats *stats, u64 *data)
{
	struct kip_dev *dev = netdev_priv(netdev);
	unsigned int i;

	for (i = 0; i < KIP_STAT_COUNT; i++)
		data[i] = kip_stat_sum(dev->stats, i);
}

const struct ethtool_ops kip_ethtool_ops = {
	.get_drvinfo = ethtool_get_drvinfo,
	.get_link = ethtool_op_get_link,
	.get_sset_count = ethtool_get_sset_count,
	.get_strings = ethtool_get_strings,
	.get_ethtool_stats = ethtool_get_stats,
};
