// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The network interface: net_device operations, and reactions to changes of the underlay.
 *
 * The datagram service (udp.c), the NAPI instances (pollers) and the work item of control.c run
 * only between open and stop, while the underlay has an address. Stop proceeds in this order: the
 * stack sends no more packets; the tasklet of tx.c ends; connections are given up; the datagram
 * service is closed; the pollers are disabled; pending ICMP errors are discarded. All of this runs
 * under the RTNL, and no step waits for a peer, except as control.c says.
 */
#include "dev.h"

#include <linux/if_arp.h>
#include <linux/inetdevice.h>
#include <linux/module.h>
#include <linux/net.h>
#include <linux/rtnetlink.h>
#include <linux/user_namespace.h>
#include <net/addrconf.h>
#include <net/netdev_lock.h>

#include "compat/workqueue.h"
#include "control.h"
#include "ethtool.h"
#include "proto/addr.h"
#include "proto/msg.h"
#include "rx.h"
#include "too_big.h"
#include "tx.h"

/* Polling interval while duplicate address detection runs: no notifier tells of its success */
#define LOOK_AGAIN	(HZ / 4)

/* Delay until starting an interface, which has failed, is tried again */
#define BEGIN_AGAIN	(2 * HZ)

/* All interfaces; RTNL */
static LIST_HEAD(all_devs);

/* Operations of the net device */

/* The interface has a carrier when it is running, has an address, and the underlay has a carrier */
static void dev_update_carrier(struct kip_dev *dev)
{
	if (dev->local.sa.sa_family == AF_UNSPEC || !dev->is_running)
		netif_carrier_off(dev->netdev);
	else
		netif_stacked_transfer_operstate(dev->lower, dev->netdev);
}

static int dev_try_begin(struct kip_dev *dev)
{
	int ret;

	ret = kip_udp_open(dev);
	if (ret)
		return ret;
	kip_rx_open(dev);
	kip_control_start(dev);
	/* Also sends what was queued since dev_end(), if this is a restart */
	netif_tx_wake_all_queues(dev->netdev);
	dev_update_carrier(dev);
	return 0;
}

/* Does nothing without an address; kip_dev_new_address() calls this when there is one */
static int dev_begin(struct kip_dev *dev)
{
	int ret;

	if (dev->local.sa.sa_family == AF_UNSPEC)
		return 0;
	kip_udp_check_families(dev);
	ret = dev_try_begin(dev);
	/* Containers may try again and again, but must not flood the log */
	if (ret && net_ratelimit())
		netdev_info(dev->netdev, "cannot open the datagram service on %s, port %u: %pe\n",
			    dev->lower->name, dev->settings.port, ERR_PTR(ret));
	return ret;
}

static void dev_end(struct kip_dev *dev)
{
	if (!dev->is_running)
		return;
	netif_tx_disable(dev->netdev);
	/* Wait for senders */
	synchronize_net();
	kip_tx_end(dev);
	/* A connection that fails sends its waiting packets as datagrams, so end these first */
	kip_control_stop(dev);
	kip_udp_close(dev);
	kip_rx_close(dev);
	kip_too_big_end(dev);
	dev_update_carrier(dev);
}

static void dev_look_work(struct work_struct *work);
static DECLARE_DELAYED_WORK(look, dev_look_work);

/* An interface that is up was started with this result; dev_look_work() repeats what has failed */
static int dev_started(struct kip_dev *dev, int ret)
{
	if (!ret) {
		call_netdevice_notifiers(NETDEV_NOTIFY_PEERS, dev->netdev);
		return 0;
	}
	dev->begin_at = jiffies + BEGIN_AGAIN;
	queue_delayed_work(system_percpu_wq, &look, BEGIN_AGAIN);
	return ret;
}

static int dev_start(struct kip_dev *dev)
{
	return netif_running(dev->netdev) ? dev_started(dev, dev_begin(dev)) : 0;
}

static int dev_ndo_open(struct net_device *netdev)
{
	return dev_begin(netdev_priv(netdev));
}

static int dev_ndo_stop(struct net_device *netdev)
{
	dev_end(netdev_priv(netdev));
	return 0;
}

/**
 * kip_dev_pause() - stop what runs, to change a setting that it uses
 * @dev: the interface; kip_dev_new_address() starts it again
 *
 * Context: process, may sleep; RTNL held.
 */
void kip_dev_pause(struct kip_dev *dev)
{
	ASSERT_RTNL();
	dev_end(dev);
}

/**
 * kip_dev_restart() - apply settings that take effect at open
 * @dev: the interface
 *
 * If the interface is up, and starts again, announces its address to its neighbours.
 *
 * Context: process, may sleep; RTNL held.
 * Return: 0 or -errno; after an error the interface is up without a carrier, and starting it is
 * tried again later.
 */
int kip_dev_restart(struct kip_dev *dev)
{
	ASSERT_RTNL();
	dev_end(dev);
	return dev_start(dev);
}

static int dev_ndo_change_mtu(struct net_device *netdev, int mtu)
{
	struct kip_dev *dev = netdev_priv(netdev);
	const int old = netdev->mtu;

	WRITE_ONCE(netdev->mtu, mtu);
	/* Existing receives may be too short */
	if (mtu > old)
		kip_control_renew(dev);
	return 0;
}

static int dev_ndo_get_iflink(const struct net_device *netdev)
{
	const struct kip_dev *dev = netdev_priv(netdev);

	return READ_ONCE(dev->lower->ifindex);
}

static int dev_ndo_init(struct net_device *netdev)
{
	struct kip_dev *dev = netdev_priv(netdev);

	dev->stats = alloc_percpu(struct kip_stats);
	if (!dev->stats)
		return -ENOMEM;
	dev->is_posting = alloc_percpu(bool);
	if (!dev->is_posting)
		goto err_stats;
	if (kip_control_alloc(dev))
		goto err_posting;
	netdev->tstats = netdev_alloc_pcpu_stats(struct pcpu_sw_netstats);
	if (!netdev->tstats)
		goto err_control;
	netdev_hold(dev->lower, &dev->lower_tracker, GFP_KERNEL);
	netdev_lockdep_set_classes(netdev);
	return 0;

err_control:
	kip_control_free(dev);
err_posting:
	free_percpu(dev->is_posting);
err_stats:
	free_percpu(dev->stats);
	return -ENOMEM;
}

static void dev_destructor(struct net_device *netdev)
{
	struct kip_dev *dev = netdev_priv(netdev);

	kip_udp_uninit(dev);
	netdev_put(dev->lower, &dev->lower_tracker);
	free_percpu(netdev->tstats);
	kip_control_free(dev);
	free_percpu(dev->is_posting);
	free_percpu(dev->stats);
}

static const struct net_device_ops netdev_ops = {
	.ndo_init = dev_ndo_init,
	.ndo_open = dev_ndo_open,
	.ndo_stop = dev_ndo_stop,
	.ndo_start_xmit = kip_tx_xmit,
	.ndo_change_mtu = dev_ndo_change_mtu,
	.ndo_get_stats64 = dev_get_tstats64,
	.ndo_get_iflink = dev_ndo_get_iflink,
};

/* The destination precedes the header, as in IPoIB */
static int dev_header_create(struct sk_buff *skb, struct net_device *netdev, unsigned short type,
			     const void *daddr, const void *saddr, unsigned int len)
{
	struct kip_wire_hdr *hdr = skb_push(skb, sizeof(*hdr));
	u8 *to = skb_push(skb, KIP_ADDR_LEN);

	hdr->type = htons(type);
	hdr->reserved = 0;
	if (daddr)
		memcpy(to, daddr, KIP_ADDR_LEN);
	else
		memset(to, 0, KIP_ADDR_LEN);
	return daddr ? KIP_HARD_LEN : -(int)KIP_HARD_LEN;
}

static const struct header_ops header_ops = {
	.create = dev_header_create,
};

/* Addresses */

static u8 dev_flags(const struct kip_dev *dev)
{
	return dev->settings.is_connected ? KIP_ADDR_RC : 0;
}

static void dev_pick_address(struct kip_dev *dev, union kip_sockaddr *addr)
{
	const union kip_sockaddr before = dev->local;

	kip_sockaddr_of_netdev(addr, dev->lower, dev->settings.port, &before);
}

/* Sets the interface's addresses from the underlay's address and the settings */
static void dev_write_address(struct kip_dev *dev)
{
	struct net_device *netdev = dev->netdev;
	u8 lladdr[KIP_ADDR_LEN];
	u8 broadcast[KIP_ADDR_LEN];

	kip_sockaddr_lladdr(lladdr, &dev->local.sa, dev_flags(dev));
	kip_addr_broadcast(broadcast, dev->settings.pkey);
	memcpy(netdev->broadcast, broadcast, KIP_ADDR_LEN);
	__dev_addr_set(netdev, lladdr, KIP_ADDR_LEN);
}

/**
 * kip_dev_new_address() - update the link-layer address
 * @dev: the interface; its settings or its underlay have changed
 *
 * Stops what runs. If the interface is up and there is an address, starts it again and, if that
 * succeeds, announces the address to its neighbours.
 *
 * Context: process, may sleep; RTNL held.
 * Return: 0 or -errno; after an error the interface is up without a carrier, and starting it is
 * tried again later.
 */
int kip_dev_new_address(struct kip_dev *dev)
{
	u8 before[KIP_ADDR_LEN];

	ASSERT_RTNL();
	memcpy(before, dev->netdev->dev_addr, KIP_ADDR_LEN);
	dev_end(dev);
	dev_pick_address(dev, &dev->local);
	dev_write_address(dev);
	if (memcmp(before, dev->netdev->dev_addr, KIP_ADDR_LEN))
		call_netdevice_notifiers(NETDEV_CHANGEADDR, dev->netdev);
	return dev_start(dev);
}

static void dev_look_soon(void)
{
	mod_delayed_work(system_percpu_wq, &look, 0);
}

/* Creation and removal */

static void dev_init_settings(struct kip_settings *settings)
{
	*settings = (struct kip_settings) {
		.port = KIP_PORT,
		.pkey = KIP_PKEY,
		.qkey = KIP_QKEY,
		.dgram_mtu = KIP_DGRAM_MTU,
		.rx_depth = KIP_RX_DEPTH,
		.max_conns = KIP_MAX_CONNS,
		.idle_s = KIP_IDLE_S,
		.rx_mem = KIP_RX_MEM,
		.is_connected = true,
		.learn_s = KIP_LEARN_S,
	};
}

/**
 * kip_dev_setup() - rtnl_link_ops.setup
 * @netdev: zeroed, except for the fields that the core has set
 *
 * Context: process; RTNL held.
 */
void kip_dev_setup(struct net_device *netdev)
{
	struct kip_dev *dev = netdev_priv(netdev);

	netdev->netdev_ops = &netdev_ops;
	netdev->header_ops = &header_ops;
	netdev->ethtool_ops = &kip_ethtool_ops;
	netdev->needs_free_netdev = true;
	netdev->priv_destructor = dev_destructor;
	netdev->type = ARPHRD_INFINIBAND;
	netdev->hard_header_len = KIP_HARD_LEN;
	netdev->addr_len = KIP_ADDR_LEN;
	netdev->mtu = KIP_RX_MTU_MAX - sizeof(struct kip_wire_hdr);
	netdev->min_mtu = KIP_RX_MTU_MIN - sizeof(struct kip_wire_hdr);
	netdev->max_mtu = KIP_RX_MTU_MAX - sizeof(struct kip_wire_hdr);
	netdev->tx_queue_len = 1000;
	netdev->flags = IFF_BROADCAST | IFF_MULTICAST;
	netdev->watchdog_timeo = 10 * HZ;
	/* No TX checksum offload: a peer that follows the RFC expects complete checksums */
	netdev->features = NETIF_F_SG | NETIF_F_HIGHDMA;
	/* Means nothing here, but what an upper device lacks is disabled at the underlay */
	netdev->features |= NETIF_F_LRO;
	/* RX checksums are not trusted by default: the peer may have forwarded a damaged packet */
	netdev->hw_features = NETIF_F_SG | NETIF_F_RXCSUM | NETIF_F_LRO;
	/* The route learns the MTU of a peer through the packet's dst */
	netif_keep_dst(netdev);

	dev->netdev = netdev;
	dev_init_settings(&dev->settings);
	kip_udp_init(dev);
	kip_control_init(dev);
	kip_tx_init(dev);
	kip_too_big_init(dev);
}

/**
 * kip_dev_add() - make an interface
 * @net: network namespace of the underlay
 * @netdev: kip_dev_setup() is done
 * @lower: the underlay
 * @extack: gets the reason of an error
 *
 * Context: process, may sleep; RTNL held.
 * Return: 0 or -errno; -EMLINK if too many interfaces are stacked.
 */
int kip_dev_add(struct net *net, struct net_device *netdev, struct net_device *lower,
		struct netlink_ext_ack *extack)
{
	struct kip_dev *dev = netdev_priv(netdev);
	int ret;

	dev->net = net;
	dev->is_foreign = net->user_ns != &init_user_ns;
	dev->lower = lower;
	dev_pick_address(dev, &dev->local);
	dev_write_address(dev);
	netif_carrier_off(netdev);
	/* Stopped until dev_begin(): netpoll does not check the carrier */
	netif_tx_stop_all_queues(netdev);
	ret = register_netdevice(netdev);
	if (ret)
		return ret;
	/* Also limits how deep interfaces are stacked, and thus how deep their removal nests */
	ret = netdev_upper_dev_link(lower, netdev, extack);
	if (ret) {
		unregister_netdevice(netdev);
		return ret;
	}
	list_add(&dev->entry, &all_devs);
	dev_look_soon();
	return 0;
}

/**
 * kip_dev_del() - rtnl_link_ops.dellink
 * @netdev: the interface
 * @head: for unregister_netdevice_queue()
 *
 * Context: process; RTNL held.
 */
void kip_dev_del(struct net_device *netdev, struct list_head *head)
{
	struct kip_dev *dev = netdev_priv(netdev);

	list_del(&dev->entry);
	dev_end(dev);
	netdev_upper_dev_unlink(dev->lower, netdev);
	unregister_netdevice_queue(netdev, head);
}

/**
 * kip_dev_is_ours() - check whether an interface belongs to this module
 * @netdev: any interface
 *
 * Context: any.
 * Return: whether it does.
 */
bool kip_dev_is_ours(const struct net_device *netdev)
{
	return netdev->netdev_ops == &netdev_ops;
}

/* Changes of the underlay */

static void dev_lower_is_going(struct net_device *lower)
{
	struct kip_dev *dev, *next;
	LIST_HEAD(going);

	list_for_each_entry_safe(dev, next, &all_devs, entry) {
		if (dev->lower == lower)
			kip_dev_del(dev->netdev, &going);
	}
	unregister_netdevice_many(&going);
}

/* The address of the underlay may have changed */
static void dev_look_at_address(struct kip_dev *dev)
{
	union kip_sockaddr now;

	dev_pick_address(dev, &now);
	if (!kip_sockaddr_same_ip(&now, &dev->local))
		kip_dev_new_address(dev);
}

static bool dev_could_not_begin(const struct kip_dev *dev)
{
	return netif_running(dev->netdev) && !dev->is_running &&
	       dev->local.sa.sa_family != AF_UNSPEC;
}

static void dev_look_work(struct work_struct *work)
{
	bool is_pending = false, is_failing = false;
	struct kip_dev *dev;

	rtnl_lock();
	list_for_each_entry(dev, &all_devs, entry) {
		dev_look_at_address(dev);
		if (dev_could_not_begin(dev) && time_after_eq(jiffies, dev->begin_at))
			dev_started(dev, dev_try_begin(dev));
		is_failing |= dev_could_not_begin(dev);
		is_pending |= dev->local.sa.sa_family == AF_UNSPEC &&
			      kip_sockaddr_is_pending(dev->lower, dev->settings.port);
	}
	rtnl_unlock();
	if (is_pending)
		mod_delayed_work(system_percpu_wq, &look, LOOK_AGAIN);
	else if (is_failing)
		queue_delayed_work(system_percpu_wq, &look, BEGIN_AGAIN);
}

static int dev_on_netdev(struct notifier_block *nb, unsigned long event, void *ptr)
{
	struct net_device *netdev = netdev_notifier_info_to_dev(ptr);
	struct kip_dev *dev;

	switch (event) {
	case NETDEV_UNREGISTER:
		dev_lower_is_going(netdev);
		break;
	case NETDEV_UP:
	case NETDEV_DOWN:
	case NETDEV_CHANGE:
		list_for_each_entry(dev, &all_devs, entry) {
			if (dev->lower != netdev)
				continue;
			dev_update_carrier(dev);
			/* IPv6 addresses become usable when the link comes up */
			dev_look_soon();
		}
		break;
	default:
		break;
	}
	return NOTIFY_DONE;
}

/* An address was added to the underlay, or is already removed from its list */
static int dev_on_inetaddr(struct notifier_block *nb, unsigned long event, void *ptr)
{
	const struct in_ifaddr *ifa = ptr;
	struct kip_dev *dev;

	if (event != NETDEV_UP && event != NETDEV_DOWN)
		return NOTIFY_DONE;
	list_for_each_entry(dev, &all_devs, entry) {
		if (dev->lower == ifa->ifa_dev->dev)
			dev_look_at_address(dev);
	}
	return NOTIFY_DONE;
}

/* Called in atomic context, and a new address may not be usable yet: look at it later */
static int dev_on_inet6addr(struct notifier_block *nb, unsigned long event, void *ptr)
{
	dev_look_soon();
	return NOTIFY_DONE;
}

static struct notifier_block netdev_nb = { .notifier_call = dev_on_netdev };
static struct notifier_block inetaddr_nb = { .notifier_call = dev_on_inetaddr };
static struct notifier_block inet6addr_nb = { .notifier_call = dev_on_inet6addr };

/**
 * kip_dev_module_init() - register the notifiers that watch underlays
 *
 * Context: process, may sleep.
 * Return: 0 or -errno.
 */
int kip_dev_module_init(void)
{
	int ret;

	ret = register_netdevice_notifier(&netdev_nb);
	if (ret)
		return ret;
	ret = register_inetaddr_notifier(&inetaddr_nb);
	if (ret)
		goto err_netdev;
	ret = register_inet6addr_notifier(&inet6addr_nb);
	if (ret)
		goto err_inetaddr;
	return 0;

err_inetaddr:
	unregister_inetaddr_notifier(&inetaddr_nb);
err_netdev:
	unregister_netdevice_notifier(&netdev_nb);
	return ret;
}

/**
 * kip_dev_module_exit() - unregister the notifiers
 *
 * Context: process, may sleep; no interface is left.
 */
void kip_dev_module_exit(void)
{
	unregister_inet6addr_notifier(&inet6addr_nb);
	unregister_inetaddr_notifier(&inetaddr_nb);
	unregister_netdevice_notifier(&netdev_nb);
	cancel_delayed_work_sync(&look);
}
