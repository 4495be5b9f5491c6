// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * ip link add link ETH name NAME type kiwarp_ip
 *
 * Owns: the link type, for which the core loads this module. The type has no options, because
 * iproute2 passes none for a type it does not know; settings are in sysfs instead.
 */
#include "netlink.h"

#include <linux/if_arp.h>
#include <linux/netdevice.h>
#include <net/rtnetlink.h>

#include "compat/rtnl.h"
#include "dev.h"
#include "sysfs.h"

static void netlink_setup(struct net_device *netdev)
{
	kip_dev_setup(netdev);
	kip_sysfs_setup(netdev);
}

static int netlink_validate(struct nlattr *tb[], struct nlattr *data[],
			    struct netlink_ext_ack *extack)
{
	if (tb[IFLA_ADDRESS]) {
		NL_SET_ERR_MSG(extack, "The address follows from that of the underlying interface");
		return -EOPNOTSUPP;
	}
	return 0;
}

static int netlink_newlink(struct net *net, struct net_device *netdev, struct nlattr *tb[],
			   struct netlink_ext_ack *extack)
{
	struct net_device *lower;

	if (!tb[IFLA_LINK]) {
		NL_SET_ERR_MSG(extack, "An underlying interface is needed: link NAME");
		return -EINVAL;
	}
	lower = __dev_get_by_index(net, nla_get_u32(tb[IFLA_LINK]));
	if (!lower) {
		NL_SET_ERR_MSG(extack, "There is no such underlying interface");
		return -ENODEV;
	}
	if (lower->type == ARPHRD_INFINIBAND || kip_dev_is_ours(lower)) {
		NL_SET_ERR_MSG(extack,
			       "The underlying interface must not be of InfiniBand's kind");
		return -EOPNOTSUPP;
	}
	return kip_dev_add(net, netdev, lower, extack);
}

KIP_COMPAT_NEWLINK(netlink_compat_newlink, netlink_newlink)

static struct net *netlink_get_link_net(const struct net_device *netdev)
{
	const struct kip_dev *dev = netdev_priv(netdev);

	return READ_ONCE(dev->net);
}

static struct rtnl_link_ops link_ops = {
	.kind = "kiwarp_ip",
	.priv_size = sizeof(struct kip_dev),
	.setup = netlink_setup,
	.validate = netlink_validate,
	.newlink = netlink_compat_newlink,
	.dellink = kip_dev_del,
	.get_link_net = netlink_get_link_net,
};

/**
 * kip_netlink_init() - register the link type
 *
 * Context: process, may sleep.
 * Return: 0 or -errno.
 */
int kip_netlink_init(void)
{
	return rtnl_link_register(&link_ops);
}

/**
 * kip_netlink_uninit() - unregister the link type, which deletes all interfaces
 *
 * Context: process, may sleep.
 */
void kip_netlink_uninit(void)
{
	rtnl_link_unregister(&link_ops);
}
