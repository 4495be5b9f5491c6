/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Kernel version differences: rtnl_link_ops. The build defines KIW_HAS_. */
#ifndef KIP_COMPAT_RTNL_H
#define KIP_COMPAT_RTNL_H

#include <net/net_namespace.h>
#include <net/rtnetlink.h>

/*
 * rtnl_link_ops.newlink takes its arguments in a structure since 6.15. The macro defines
 * @name, which calls @function(net of the underlay, dev, tb, extack).
 */
#ifdef KIW_HAS_NEWLINK_PARAMS
#define KIP_COMPAT_NEWLINK(name, function) \
static int name(struct net_device *dev, struct rtnl_newlink_params *params, \
		struct netlink_ext_ack *extack) \
{ \
	return function(rtnl_newlink_link_net(params), dev, params->tb, extack); \
}
#else
#define KIP_COMPAT_NEWLINK(name, function) \
static int name(struct net *src_net, struct net_device *dev, struct nlattr *tb[], \
		struct nlattr *data[], struct netlink_ext_ack *extack) \
{ \
	return function(src_net, dev, tb, extack); \
}
#endif

#endif /* KIP_COMPAT_RTNL_H */
