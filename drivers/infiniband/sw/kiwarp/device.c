// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * A device, from `rdma link add` to the last reference.
 *
 * Owns: &struct kiw_device and the list of them.
 *
 * Beside siw. Both modules have driver id RDMA_DRIVER_SIW, and siw takes every device that
 * ib_core finds by a netdev and that id for its own. Therefore a netdev is never given to
 * ib_core with ib_device_set_netdev(); it asks for it with ops.get_netdev instead, which
 * is all that rdma_cm, the GID cache and `rdma link` use; and our netdev notifier looks in
 * our own list. For the same reason devices are taken down one by one at module exit, not
 * with ib_unregister_driver(), which would take siw's along. Others may do that to ours
 * (rmmod siw does); so nothing here assumes that it is who takes a device down.
 *
 * The end of a device. ib_core serialises all who unregister it, and calls
 * kiw_device_dealloc() in the one who wins, when no operation runs any more and all
 * objects are gone. The list holds a reference to the memory of each device, even of dead
 * ones: who finds one there may always call ib_unregister_device(), which returns when
 * the winner is through, kiw_device_dealloc() included. This is how module exit knows
 * that no code of ours is running, and the only way in which a device leaves the list.
 *
 * Locks: devices_lock protects the list and in each device @ndev against NULL,
 * @is_leaving and @is_active. It nests inside the RTNL, is never held over a call of
 * ib_core that may sleep for long, and the RTNL is never taken under it.
 *
 * The RTNL is held while a device is put in the list, so that the notifier does not miss
 * the end of its netdev: what it is told before shows in the netdev, what comes later
 * finds the device.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include "device.h"

#include <linux/etherdevice.h>
#include <linux/if_arp.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/random.h>
#include <linux/rtnetlink.h>
#include <linux/unaligned.h>
#include <linux/workqueue.h>
#include <net/net_namespace.h>
#include <rdma/ib_user_verbs.h>

#include "verbs.h"

static DEFINE_MUTEX(devices_lock);	/* protects devices, see above */
static LIST_HEAD(devices);

/* --- which netdevs can be served --------------------------------------------- */

/* It carries IP and has no hardware address worth the name */
static bool is_addressless(const struct net_device *ndev)
{
	switch (ndev->type) {
	case ARPHRD_LOOPBACK:
	case ARPHRD_NONE:
	case ARPHRD_PPP:
	case ARPHRD_RAWIP:
	case ARPHRD_TUNNEL:
	case ARPHRD_TUNNEL6:
	case ARPHRD_SIT:
	case ARPHRD_IPGRE:
	case ARPHRD_IP6GRE:
		return true;
	default:
		return ndev->type == ARPHRD_ETHER && is_zero_ether_addr(ndev->dev_addr);
	}
}

/*
 * Traffic of a port belongs to its bond, team, bridge or switch: it has no IP address for
 * rdma_cm to match, so a device on it would never be found, or found in its master's
 * place. A port of a VRF keeps its addresses.
 */
static bool is_port_of_another(const struct net_device *ndev)
{
	return netif_is_lag_port(ndev) || netif_is_bridge_port(ndev) || netif_is_ovs_port(ndev);
}

static int check_netdev(const struct net_device *ndev)
{
	if (ndev->type != ARPHRD_ETHER && !is_addressless(ndev)) {
		netdev_info(ndev, "kiwarp does not run on interfaces of this type (%u)\n",
			    ndev->type);
		return -EOPNOTSUPP;
	}
	if (is_addressless(ndev) && !kiw_compat_cm_matches_netdev()) {
		netdev_info(ndev,
			    "rdma_cm of this kernel finds devices by their hardware address, and this has none: kiwarp needs Linux 6.12 here\n");
		return -EOPNOTSUPP;
	}
	if (is_port_of_another(ndev)) {
		netdev_info(ndev, "is a port of another interface: add the link on that one\n");
		return -EOPNOTSUPP;
	}
	return 0;
}

/* --- identity ------------------------------------------------------------------ */

/*
 * rdma_cm of Linux 6.1 looks for GID 0 to be the hardware address, zero padded. Later ones
 * only want it not to be zero.
 */
static void make_gid(const struct net_device *ndev, union ib_gid *gid)
{
	memset(gid, 0, sizeof(*gid));
	if (is_addressless(ndev))
		eth_random_addr(gid->raw);
	else
		ether_addr_copy(gid->raw, ndev->dev_addr);
}

/*
 * An EUI-64 of local meaning: the hardware address around the interface index, because
 * VLANs and others have their parent's address.
 */
static __be64 make_guid(const struct kiw_device *dev)
{
	const u8 *mac = dev->raw_gid.raw;
	u8 guid[8];

	memcpy(guid, mac, 3);
	guid[0] |= 0x02;
	put_unaligned_be16(dev->ndev->ifindex, &guid[3]);
	memcpy(&guid[5], &mac[3], 3);
	return cpu_to_be64(get_unaligned_be64(guid));
}

/* --- making and freeing ---------------------------------------------------------- */

static int device_init(struct kiw_device *dev, const char *name)
{
	int ret;

	ret = kiw_stats_init(&dev->stats);
	if (ret)
		return ret;
	ret = kiw_mr_table_init(&dev->mrs);
	if (ret)
		goto err_stats;
	/* Unbound: what is queued may take long; reclaim: NFS over RDMA writes pages back */
	dev->wq = alloc_workqueue("kiwarp-%s", WQ_UNBOUND | WQ_MEM_RECLAIM, 0, name);
	if (!dev->wq) {
		ret = -ENOMEM;
		goto err_mrs;
	}
	xa_init_flags(&dev->qps, XA_FLAGS_ALLOC);
	mutex_init(&dev->cm_lock);
	INIT_LIST_HEAD(&dev->listeners);
	INIT_LIST_HEAD(&dev->link);
	kiw_policy_defaults(&dev->policy);
	return 0;

err_mrs:
	kiw_mr_table_uninit(&dev->mrs);
err_stats:
	kiw_stats_uninit(&dev->stats);
	return ret;
}

static void device_uninit(struct kiw_device *dev)
{
	mutex_destroy(&dev->cm_lock);
	xa_destroy(&dev->qps);
	destroy_workqueue(dev->wq);
	kiw_mr_table_uninit(&dev->mrs);
	kiw_stats_uninit(&dev->stats);
}

static void check_balance(struct kiw_device *dev, const char *what, enum kiw_stat made,
			  enum kiw_stat gone)
{
	u64 num = kiw_stats_read(&dev->stats, made) - kiw_stats_read(&dev->stats, gone);

	if (num)
		ibdev_warn(&dev->ib, "leaked %llu %s\n", num, what);
}

static void check_balances(struct kiw_device *dev)
{
	check_balance(dev, "queue pairs", KIW_STAT_QP_CREATED, KIW_STAT_QP_DESTROYED);
	check_balance(dev, "completion queues", KIW_STAT_CQ_CREATED, KIW_STAT_CQ_DESTROYED);
	check_balance(dev, "receive queues", KIW_STAT_SRQ_CREATED, KIW_STAT_SRQ_DESTROYED);
	check_balance(dev, "memory regions", KIW_STAT_MR_CREATED, KIW_STAT_MR_DESTROYED);
	check_balance(dev, "endpoints", KIW_STAT_EP_CREATED, KIW_STAT_EP_DESTROYED);
	check_balance(dev, "sockets", KIW_STAT_SOCK_CREATED, KIW_STAT_SOCK_DESTROYED);
	if (atomic_read(&dev->num_pd))
		ibdev_warn(&dev->ib, "leaked %d protection domains\n", atomic_read(&dev->num_pd));
}

/**
 * kiw_device_dealloc - ib_device_ops.dealloc_driver: give everything back
 * @ibdev: no operation runs on it any more, all its objects are gone; its memory stays
 *	until the list lets go of it
 *
 * Context: process, may sleep; in whoever unregistered the device, not always us.
 */
void kiw_device_dealloc(struct ib_device *ibdev)
{
	struct kiw_device *dev = to_kiw_device(ibdev);
	struct net_device *ndev = dev->ndev;

	kiw_sock_pool_uninit(&dev->socks);
	/* Works may hold the last references */
	flush_workqueue(dev->wq);
	check_balances(dev);
	device_uninit(dev);

	mutex_lock(&devices_lock);
	dev->ndev = NULL;
	mutex_unlock(&devices_lock);
	netdev_put(ndev, &dev->ndev_tracker);
}

/* --- the list ------------------------------------------------------------------ */

/* The living device on @ndev */
static struct kiw_device *find_device(const struct net_device *ndev)
{
	struct kiw_device *dev;

	lockdep_assert_held(&devices_lock);
	list_for_each_entry(dev, &devices, link) {
		if (dev->ndev == ndev)
			return dev;
	}
	return NULL;
}

/* Take @dev down unless it is, and out of the list; returns when no code of ours runs for it */
static void remove_device(struct kiw_device *dev)
{
	ib_unregister_device(&dev->ib);
	mutex_lock(&devices_lock);
	list_del(&dev->link);
	mutex_unlock(&devices_lock);
	put_device(&dev->ib.dev);
}

/* Take a device out of the list that is dead, or any if @all */
static struct kiw_device *take_device(bool all)
{
	struct kiw_device *dev;

	lockdep_assert_held(&devices_lock);
	list_for_each_entry(dev, &devices, link) {
		if (all || !dev->ndev) {
			list_del_init(&dev->link);
			return dev;
		}
	}
	return NULL;
}
