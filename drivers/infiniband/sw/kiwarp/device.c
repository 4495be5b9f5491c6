// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * A device, from `rdma link add` to the last reference.
 *
 * Owns: &struct kiw_device and the list of all devices.
 *
 * Coexistence with siw and rxe. Each user ABI has the driver id of one of them. siw and rxe take
 * every device for their own that ib_core finds by a netdev and their driver id; rxe searches for
 * one whenever a UDP packet arrives at its port. Therefore we never pass a netdev to ib_core with
 * ib_device_set_netdev(). Instead ib_core asks for it with ops.get_netdev, which suffices for
 * rdma_cm, the GID cache and `rdma link`, and our netdev notifier searches our own list. For the
 * same reason module exit takes devices down one by one: ib_unregister_driver() would take the
 * devices of siw and rxe down, too. rmmod of siw or rdma_rxe does that to our devices, so no code
 * here assumes that only this module takes a device down.
 *
 * The end of a device. ib_core serialises concurrent callers of ib_unregister_device(). It
 * calls device_dealloc() in the first of them, after all operations have ended and all
 * objects are gone. The list holds a reference to the memory of each device, even of dead
 * ones. So it is always safe to call ib_unregister_device() on a device found there; the call
 * returns after the first caller has finished, device_dealloc() included. This is how
 * module exit knows that a device has ended, and the only way in which a device leaves the list.
 *
 * Locks: devices_lock protects the list and, in each device, @is_leaving, @is_active and the
 * clearing of @ndev. It nests inside the RTNL and is never held across a call of ib_core that
 * may sleep for long. The RTNL is never taken under it.
 *
 * The RTNL is held while a device is added to the list, so that the notifier does not miss
 * the end of its netdev: earlier notifications have already changed the state of the netdev,
 * and later ones find the device.
 */
#include "device.h"

#include <linux/etherdevice.h>
#include <linux/if_arp.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/random.h>
#include <linux/rtnetlink.h>
#include <linux/unaligned.h>
#include <net/net_namespace.h>
#include <rdma/iw_cm.h>

#include "cm/cm.h"
#include "compat/workqueue.h"
#include "monitor_sysfs.h"
#include "verbs/uapi.h"
#include "verbs/verbs.h"

static DEFINE_MUTEX(devices_lock);	/* protects devices, see above */
static LIST_HEAD(devices);
/* Unregisters devices whose netdev goes away; drained at module exit */
static struct workqueue_struct *leave_wq;

/* Does the netdev carry IP without having a usable hardware address? */
static bool device_is_addressless(const struct net_device *ndev)
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
 * Is the netdev a port of a bond, team, bridge or switch, to which its traffic belongs? Such a port
 * normally has no IP address that rdma_cm could match, so a device on it would not be found, or be
 * found instead of its master's. A port of a VRF keeps its addresses.
 */
static bool device_is_port_of_another(const struct net_device *ndev)
{
	return netif_is_lag_port(ndev) || netif_is_bridge_port(ndev) || netif_is_ovs_port(ndev);
}

static int device_check_netdev(const struct net_device *ndev)
{
	if (ndev->type != ARPHRD_ETHER && !device_is_addressless(ndev)) {
		netdev_info(ndev, "kiwarp does not run on interfaces of this type (%u)\n",
			    ndev->type);
		return -EOPNOTSUPP;
	}
	if (device_is_addressless(ndev) && !kiw_compat_cm_matches_netdev()) {
		netdev_info(ndev,
			    "has no hardware address, by which rdma_cm may find devices before Linux 6.12: kiwarp needs Linux 6.12 here\n");
		return -EOPNOTSUPP;
	}
	if (device_is_port_of_another(ndev)) {
		netdev_info(ndev, "is a port of another interface: add the link on that one\n");
		return -EOPNOTSUPP;
	}
	return 0;
}

/*
 * Make GID 0: the hardware address, zero padded, or a random one if there is none. rdma_cm of Linux
 * 6.1 expects the hardware address. In 6.12 it is enough that the GID is not zero.
 */
static void device_make_gid(const struct net_device *ndev, union ib_gid *gid)
{
	memset(gid, 0, sizeof(*gid));
	if (device_is_addressless(ndev))
		eth_random_addr(gid->raw);
	else
		ether_addr_copy(gid->raw, ndev->dev_addr);
}

/*
 * A locally administered EUI-64: the address in GID 0 with 16 bits of the interface index in the
 * middle, because VLANs and others have their parent's hardware address.
 */
static __be64 device_make_guid(const struct kiw_device *dev)
{
	const u8 *mac = dev->raw_gid.raw;
	u8 guid[8];

	memcpy(guid, mac, 3);
	guid[0] |= 0x02;
	put_unaligned_be16(dev->ndev->ifindex, &guid[3]);
	memcpy(&guid[5], &mac[3], 3);
	return cpu_to_be64(get_unaligned_be64(guid));
}

/* Unregister a device whose netdev is going away; owns a reference taken by device_leave(). */
static void device_leave_work(struct work_struct *work)
{
	struct kiw_device *dev = container_of(work, struct kiw_device, leave_work);

	ib_unregister_device(&dev->ib);
	put_device(&dev->ib.dev);
}

/*
 * Why there are two: see Documentation/overview.rst, Contexts; reclaim: Memory. Engine work items
 * may run long, so others of their CPU do not wait for them. The name of a workqueue has up to 31
 * characters in Linux 6.12, which warns about longer ones; 6.1 cuts it after 23.
 */
static int device_init_wqs(struct kiw_device *dev, const char *name)
{
	dev->wq = alloc_workqueue("kiwarp-%.24s", WQ_UNBOUND | WQ_MEM_RECLAIM, 0, name);
	if (!dev->wq)
		return -ENOMEM;
	dev->engine_wq = alloc_workqueue("kiwarp-run-%.20s",
					 WQ_PERCPU | WQ_CPU_INTENSIVE | WQ_MEM_RECLAIM, 0, name);
	if (dev->engine_wq)
		return 0;
	destroy_workqueue(dev->wq);
	return -ENOMEM;
}

static int device_init(struct kiw_device *dev, const char *name)
{
	int ret;

	ret = kiw_stats_init(&dev->stats);
	if (ret)
		return ret;
	ret = kiw_mr_table_init(&dev->mrs);
	if (ret)
		goto err_stats;
	ret = device_init_wqs(dev, name);
	if (ret)
		goto err_mrs;
	kiw_qp_table_init(&dev->qps);
	spin_lock_init(&dev->half_open_lock);
	INIT_LIST_HEAD(&dev->half_open);
	spin_lock_init(&dev->startups_lock);
	INIT_LIST_HEAD(&dev->link);
	INIT_WORK(&dev->leave_work, device_leave_work);
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
	kiw_qp_table_uninit(&dev->qps);
	destroy_workqueue(dev->engine_wq);
	destroy_workqueue(dev->wq);
	kiw_mr_table_uninit(&dev->mrs);
	kiw_stats_uninit(&dev->stats);
}

/* The warnings of these two functions tell of a bug of this driver. */
static void device_check_balance(struct kiw_device *dev, const char *what, enum kiw_stat made,
				 enum kiw_stat gone)
{
	u64 num = kiw_stats_read(&dev->stats, made) - kiw_stats_read(&dev->stats, gone);

	if (num)
		ibdev_warn(&dev->ib, "leaked %llu %s\n", num, what);
}

static void device_check_balances(struct kiw_device *dev)
{
	device_check_balance(dev, "queue pairs", KIW_STAT_QP_CREATED, KIW_STAT_QP_DESTROYED);
	device_check_balance(dev, "completion queues", KIW_STAT_CQ_CREATED, KIW_STAT_CQ_DESTROYED);
	device_check_balance(dev, "receive queues", KIW_STAT_SRQ_CREATED, KIW_STAT_SRQ_DESTROYED);
	device_check_balance(dev, "regions or windows", KIW_STAT_MR_CREATED, KIW_STAT_MR_DESTROYED);
	device_check_balance(dev, "endpoints", KIW_STAT_EP_CREATED, KIW_STAT_EP_DESTROYED);
	device_check_balance(dev, "sockets", KIW_STAT_SOCK_CREATED, KIW_STAT_SOCK_DESTROYED);
	if (atomic_read(&dev->num_pd))
		ibdev_warn(&dev->ib, "leaked %d protection domains\n", atomic_read(&dev->num_pd));
}

/*
 * Release everything. No operation runs on the device any more, and all its objects are gone. Its
 * memory stays at least until the list drops its reference. Called by the task that unregisters the
 * device, which is not always ours, or that has failed to register it.
 */
static void device_dealloc(struct ib_device *ibdev)
{
	struct kiw_device *dev = to_kiw_device(ibdev);
	struct net_device *ndev = dev->ndev;

	kiw_cm_drain(dev);
	kiw_sock_pool_uninit(&dev->socks);
	/* Work items may hold the last references, or release sockets */
	flush_workqueue(dev->wq);
	device_check_balances(dev);
	device_uninit(dev);

	mutex_lock(&devices_lock);
	dev->ndev = NULL;
	mutex_unlock(&devices_lock);
	netdev_put(ndev, &dev->ndev_tracker);
}

/* In addition to kiw_device_ops, which are the verbs */
static const struct ib_device_ops device_end_ops = {
	.dealloc_driver = device_dealloc,
};

/* Find the device on @ndev, unless it has been taken down */
static struct kiw_device *device_find(const struct net_device *ndev)
{
	struct kiw_device *dev;

	lockdep_assert_held(&devices_lock);
	list_for_each_entry(dev, &devices, link) {
		if (dev->ndev == ndev)
			return dev;
	}
	return NULL;
}

/*
 * Take a device out of the list: a dead one; or, with @net, a live one whose sockets are in
 * that namespace; or, with @all, any. The caller takes over the list's reference and must
 * call device_finish().
 */
static struct kiw_device *device_take(const struct net *net, bool all)
{
	struct kiw_device *dev;
	bool is_wanted;

	mutex_lock(&devices_lock);
	list_for_each_entry(dev, &devices, link) {
		is_wanted = net ? dev->ndev && net_eq(dev->socks.net, net) : !dev->ndev;
		if (all || is_wanted) {
			list_del(&dev->link);
			mutex_unlock(&devices_lock);
			return dev;
		}
	}
	mutex_unlock(&devices_lock);
	return NULL;
}

/* Unregister @dev, or wait for the task that is doing so, and drop the list's reference */
static void device_finish(struct kiw_device *dev)
{
	ib_unregister_device(&dev->ib);
	put_device(&dev->ib.dev);
}

static void device_finish_dead(void)
{
	struct kiw_device *dev;

	while ((dev = device_take(NULL, false)))
		device_finish(dev);
}

/**
 * kiw_device_tell_port_mapper() - make the policy on port mapping known to iw_cm
 * @dev: the device, whose netdev is known
 *
 * iw_cm reads the flag when a consumer begins to listen or connect, and so does
 * kiw_device_uses_port_mapper(); the flag may change at any time. iw_cm and the port mapper know
 * only the initial network namespace. Devices in other namespaces are excluded, because addresses
 * of one namespace would be mistaken for those of another.
 *
 * Context: process; the callers for a registered device serialise themselves.
 */
void kiw_device_tell_port_mapper(struct kiw_device *dev)
{
	bool is_mapped = kiw_policy_get(&dev->policy, KIW_POLICY_PORT_MAPPER) &&
			 net_eq(dev->socks.net, &init_net);

	WRITE_ONCE(dev->ib.iw_driver_flags, is_mapped ? 0 : IW_F_NO_PORT_MAP);
}

/* Tie @dev to @ndev, and add it to the list that the notifier searches */
static int device_link_netdev(struct kiw_device *dev, struct net_device *ndev)
{
	lockdep_assert_held(&devices_lock);
	ASSERT_RTNL();
	if (ndev->reg_state != NETREG_REGISTERED)
		return -ENODEV;
	if (device_find(ndev)) {
		netdev_info(ndev, "has a kiwarp device already\n");
		return -EEXIST;
	}
	netdev_hold(ndev, &dev->ndev_tracker, GFP_KERNEL);
	dev->ndev = ndev;
	dev->link_gen = 1;
	dev->speed = IB_SPEED_SDR;
	dev->width = IB_WIDTH_1X;
	dev->is_active = kiw_device_is_active(dev);
	device_make_gid(ndev, &dev->raw_gid);
	dev->ib.node_guid = device_make_guid(dev);
	strscpy(dev->ib.iw_ifname, ndev->name, sizeof(dev->ib.iw_ifname));
	kiw_sock_pool_init(&dev->socks, dev_net(ndev), dev->wq, &dev->stats);
	kiw_device_tell_port_mapper(dev);
	get_device(&dev->ib.dev);
	list_add_tail(&dev->link, &devices);
	return 0;
}

static struct kiw_device *device_make(const char *name, struct net_device *ndev,
				      const struct kiw_uapi_ops *uapi)
{
	struct kiw_device *dev;
	int ret;

	dev = ib_alloc_device(kiw_device, ib);
	if (!dev)
		return ERR_PTR(-ENOMEM);
	ret = device_init(dev, name);
	if (ret)
		goto err_dealloc;
	dev->ib.node_type = RDMA_NODE_RNIC;
	dev->ib.phys_port_cnt = 1;
	dev->ib.num_comp_vectors = num_online_cpus();
	dev->ib.local_dma_lkey = 0;
	dev->uapi = uapi;
	dev->ib.uverbs_cmd_mask |= uapi->cmd_mask;
	strscpy(dev->ib.node_desc, "kiwarp " KIWARP_VERSION, sizeof(dev->ib.node_desc));
	kiw_compat_name_by_user(&dev->ib);

	rtnl_lock();
	mutex_lock(&devices_lock);
	ret = device_link_netdev(dev, ndev);
	mutex_unlock(&devices_lock);
	rtnl_unlock();
	if (ret)
		goto err_uninit;
	ib_set_device_ops(&dev->ib, &kiw_device_ops);
	ib_set_device_ops(&dev->ib, uapi->device_ops);
	if (uapi->has_windows)
		ib_set_device_ops(&dev->ib, &kiw_mw_ops);
	/* From here on ib_dealloc_device() calls device_dealloc(). */
	ib_set_device_ops(&dev->ib, &device_end_ops);
	kiw_monitor_add_identity(&dev->ib);
	kiw_compat_fill_res_srq(&dev->ib, kiw_fill_res_srq_entry);
	kiw_compat_resize_cq(&dev->ib, kiw_resize_cq);
	return dev;

err_uninit:
	device_uninit(dev);
err_dealloc:
	ib_dealloc_device(&dev->ib);
	return ERR_PTR(ret);
}

/*
 * The netdev of @dev is going away: unregister @dev from a context that may wait.
 * ib_unregister_device_queued() does not suffice. It warns about devices that are not registered,
 * such as one that the core is moving to another namespace.
 */
static void device_leave(struct kiw_device *dev)
{
	lockdep_assert_held(&devices_lock);
	/* If @dev is not registered yet, nothing happens now, and kiw_device_add() checks this */
	dev->is_leaving = true;
	get_device(&dev->ib.dev);
	if (!queue_work(leave_wq, &dev->leave_work))
		put_device(&dev->ib.dev);
}

/**
 * kiw_device_add() - create a device on a netdev
 * @name: name of the device; valid (see netlink.c)
 * @ndev: the netdev; the caller holds a reference, and another one is taken here
 * @uapi: the user ABI
 *
 * The device lives until it is unregistered: by `rdma link delete`, or because its netdev,
 * the network namespace of the netdev, the module, or the other driver with its driver id goes
 * away.
 *
 * Context: process, may sleep; takes the RTNL.
 * Return: 0; -EOPNOTSUPP: the interface cannot be served; -EEXIST: it already has a device,
 * or the name is taken; -ENODEV: the interface is going away; -ENOMEM; or an error of
 * ib_register_device().
 */
int kiw_device_add(const char *name, struct net_device *ndev, const struct kiw_uapi_ops *uapi)
{
	struct kiw_device *dev;
	int ret;

	device_finish_dead();
	ret = device_check_netdev(ndev);
	if (ret)
		return ret;
	dev = device_make(name, ndev, uapi);
	if (IS_ERR(dev))
		return PTR_ERR(dev);

	/* Once registered it can be unregistered at any time; keep its memory */
	get_device(&dev->ib.dev);
	WRITE_ONCE(dev->adder, current);
	ret = ib_register_device(&dev->ib, name, NULL);
	WRITE_ONCE(dev->adder, NULL);
	if (ret) {
		/* For a name in use the core returns -ENFILE, "too many open files" to users */
		if (ret == -ENFILE) {
			netdev_info(ndev, "there is an RDMA device %s already\n", name);
			ret = -EEXIST;
		}
		ib_dealloc_device(&dev->ib);
		goto out;
	}
	ibdev_info(&dev->ib, "kiwarp %s on %s\n", KIWARP_VERSION, ndev->name);
	mutex_lock(&devices_lock);
	if (dev->is_leaving)
		device_leave(dev);
	mutex_unlock(&devices_lock);
out:
	put_device(&dev->ib.dev);
	return ret;
}

static void device_dispatch(struct kiw_device *dev, enum ib_event_type type)
{
	struct ib_event event = {
		.device = &dev->ib,
		.element.port_num = 1,
		.event = type,
	};

	if (!ib_device_try_get(&dev->ib))
		return;
	ib_dispatch_event(&event);
	ib_device_put(&dev->ib);
}

static void device_follow_state(struct kiw_device *dev)
{
	bool is_active = kiw_device_is_active(dev);

	if (dev->is_active == is_active)
		return;
	dev->is_active = is_active;
	device_dispatch(dev, is_active ? IB_EVENT_PORT_ACTIVE : IB_EVENT_PORT_ERR);
}

static void device_follow_address(struct kiw_device *dev)
{
	union ib_gid gid;

	/* Without a hardware address the GID is random, and does not change */
	if (device_is_addressless(dev->ndev))
		return;
	device_make_gid(dev->ndev, &gid);
	if (!memcmp(&gid, &dev->raw_gid, sizeof(gid)))
		return;
	dev->raw_gid = gid;
	device_dispatch(dev, IB_EVENT_GID_CHANGE);
}

static void device_follow(struct kiw_device *dev, unsigned long event)
{
	lockdep_assert_held(&devices_lock);
	switch (event) {
	case NETDEV_UP:
	case NETDEV_CHANGE:
		WRITE_ONCE(dev->link_gen, dev->link_gen + 1);
		device_follow_state(dev);
		break;
	case NETDEV_DOWN:
		device_follow_state(dev);
		break;
	case NETDEV_CHANGEADDR:
		device_follow_address(dev);
		break;
	case NETDEV_CHANGENAME:
		strscpy(dev->ib.iw_ifname, dev->ndev->name, sizeof(dev->ib.iw_ifname));
		break;
	case NETDEV_UNREGISTER:
		/* Also sent when it changes namespaces; repeated until all references are gone */
		device_leave(dev);
		break;
	}
}

static int device_netdev_event(struct notifier_block *nb, unsigned long event, void *info)
{
	struct kiw_device *dev;

	mutex_lock(&devices_lock);
	dev = device_find(netdev_notifier_info_to_dev(info));
	if (dev)
		device_follow(dev, event);
	mutex_unlock(&devices_lock);
	return NOTIFY_DONE;
}

static struct notifier_block netdev_notifier = {
	.notifier_call = device_netdev_event,
};

/*
 * Take down the devices that still have sockets in a network namespace that is being destroyed.
 * The namespace's virtual netdevs, and the devices on them, are gone by now. A netdev that can
 * outlive the namespace has been moved out of it, and nothing has waited for its device to end.
 */
static void __net_exit device_namespace_exit(struct net *net)
{
	struct kiw_device *dev;

	while ((dev = device_take(net, false)))
		device_finish(dev);
}

static struct pernet_operations namespace_ops = {
	.exit = device_namespace_exit,
};

/**
 * kiw_device_module_init() - start to follow netdevs and namespaces
 *
 * Context: process, may sleep; takes the RTNL.
 * Return: 0 or -errno. Undone by kiw_device_module_exit().
 */
int kiw_device_module_init(void)
{
	int ret;

	leave_wq = alloc_workqueue("kiwarp-leave", WQ_UNBOUND, 0);
	if (!leave_wq)
		return -ENOMEM;
	ret = register_pernet_subsys(&namespace_ops);
	if (ret)
		goto err_wq;
	ret = register_netdevice_notifier(&netdev_notifier);
	if (ret)
		goto err_pernet;
	return 0;

err_pernet:
	unregister_pernet_subsys(&namespace_ops);
err_wq:
	destroy_workqueue(leave_wq);
	return ret;
}

/**
 * kiw_device_module_exit() - take all devices down and stop following
 *
 * No device may be added any more. Devices are taken down first, because unregistering the
 * notifier makes it report that every netdev is going away.
 *
 * Context: process, may sleep; takes the RTNL.
 */
void kiw_device_module_exit(void)
{
	struct kiw_device *dev;

	while ((dev = device_take(NULL, true)))
		device_finish(dev);
	/* Waits for a device_namespace_exit() that took a device before */
	unregister_pernet_subsys(&namespace_ops);
	unregister_netdevice_notifier(&netdev_notifier);
	/* Waits for work items of devices that were unregistered in other ways */
	destroy_workqueue(leave_wq);
}
