// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Settings: /sys/class/net/NAME/mode, where users of IPoIB expect it, and the files in
 * /sys/class/net/NAME/kiwarp_ip/. When a value is refused, the kernel log usually tells why, except
 * where errno does: a peer that is already listed, or not, no memory, no permission, an interface
 * that is being removed. Messages to others than the host's administrator are ratelimited.
 *
 * Writing a setting other than the mode needs CAP_NET_ADMIN over the underlay's network namespace:
 * the interface itself may have been moved to a container.
 *
 * Contexts: process. Writes need the RTNL, but only try to take it: the task that removes the
 * interface holds the RTNL while it waits for users of the files.
 */
#include "sysfs.h"

#include <linux/capability.h>
#include <linux/device.h>
#include <linux/if_arp.h>
#include <linux/inet.h>
#include <linux/kstrtox.h>
#include <linux/minmax.h>
#include <linux/netdevice.h>
#include <linux/rtnetlink.h>
#include <linux/sched/signal.h>
#include <linux/string.h>
#include <linux/sysfs.h>
#include <net/net_namespace.h>

#include "compat/sysfs.h"
#include "control.h"
#include "dev.h"
#include "proto/wire.h"

/* Room for a line of "peers": an IPv6 address, " learned", newline */
#define PEERS_LINE	(INET6_ADDRSTRLEN + 10)

typedef int (*store_fn)(struct kip_dev *dev, const char *text);

static struct kip_dev *sysfs_to_dev(struct device *device)
{
	return netdev_priv(to_net_dev(device));
}

static ssize_t sysfs_store(struct device *device, const char *text, size_t count, store_fn fn,
			   struct net *net)
{
	struct kip_dev *dev = sysfs_to_dev(device);
	int ret;

	if (!ns_capable(net->user_ns, CAP_NET_ADMIN))
		return -EPERM;
	if (!rtnl_trylock())
		return restart_syscall();
	ret = dev->netdev->reg_state == NETREG_REGISTERED ? fn(dev, text) : -ENODEV;
	rtnl_unlock();
	return ret ? ret : count;
}

static int sysfs_refuse(struct kip_dev *dev, int ret, const char *why)
{
	/* Containers may write the mode, too, but must not flood the log */
	if (capable(CAP_NET_ADMIN) || net_ratelimit())
		netdev_info(dev->netdev, "%s\n", why);
	return ret;
}

/* Parses a number and checks its limits */
static int sysfs_parse(struct kip_dev *dev, const char *text, u64 min, u64 max, u64 *value)
{
	char why[80];
	int ret;

	ret = kstrtou64(text, 0, value);
	if (!ret && *value >= min && *value <= max)
		return 0;
	snprintf(why, sizeof(why), "must be a number from %llu to %llu", min, max);
	return sysfs_refuse(dev, ret ? ret : -ERANGE, why);
}

/*
 * A setting with which the interface cannot start again is refused, and the old one restored. If it
 * could not start before either, the new one may be right, and starting is tried again later.
 */

static int sysfs_set_mode(struct kip_dev *dev, bool is_connected)
{
	kip_dev_pause(dev);
	dev->settings.is_connected = is_connected;
	return kip_dev_new_address(dev);
}

static int sysfs_store_mode(struct kip_dev *dev, const char *text)
{
	const bool was_running = dev->is_running;
	bool is_connected;
	int ret;

	if (sysfs_streq(text, "connected"))
		is_connected = true;
	else if (sysfs_streq(text, "datagram"))
		is_connected = false;
	else
		return sysfs_refuse(dev, -EINVAL, "mode is connected or datagram");
	if (is_connected == dev->settings.is_connected)
		return 0;
	ret = sysfs_set_mode(dev, is_connected);
	if (!ret || !was_running)
		return 0;
	sysfs_set_mode(dev, !is_connected);
	return ret;
}

static int sysfs_set_port(struct kip_dev *dev, u16 port)
{
	kip_dev_pause(dev);
	dev->settings.port = port;
	if (dev->udp.group.sa.sa_family != AF_UNSPEC)
		dev->udp.group.v4.sin_port = htons(port);
	kip_udp_new_port(dev);
	return kip_dev_new_address(dev);
}

static int sysfs_store_port(struct kip_dev *dev, const char *text)
{
	const bool was_running = dev->is_running;
	const u16 before = dev->settings.port;
	u64 value;
	int ret = sysfs_parse(dev, text, 1, 65535, &value);

	if (ret)
		return ret;
	ret = sysfs_set_port(dev, value);
	if (!ret || !was_running)
		return 0;
	sysfs_set_port(dev, before);
	return ret;
}

static int sysfs_set_pkey(struct kip_dev *dev, u16 pkey)
{
	kip_dev_pause(dev);
	dev->settings.pkey = pkey;
	return kip_dev_new_address(dev);
}

static int sysfs_store_pkey(struct kip_dev *dev, const char *text)
{
	const bool was_running = dev->is_running;
	const u16 before = dev->settings.pkey;
	u64 value;
	int ret = sysfs_parse(dev, text, 1, 0xffff, &value);

	if (ret)
		return ret;
	if (!(value & ~KIP_PKEY_FULL))
		return sysfs_refuse(dev, -EINVAL, "P_Keys 0 and 0x8000 are not valid");
	/* RFC 4391 4.1: full membership */
	ret = sysfs_set_pkey(dev, value | KIP_PKEY_FULL);
	if (!ret || !was_running)
		return 0;
	sysfs_set_pkey(dev, before);
	return ret;
}

static int sysfs_store_qkey(struct kip_dev *dev, const char *text)
{
	u64 value;
	int ret = sysfs_parse(dev, text, 0, U32_MAX, &value);

	if (!ret)
		WRITE_ONCE(dev->settings.qkey, value | KIP_QKEY_CONTROLLED);
	return ret;
}

static int sysfs_store_datagram_mtu(struct kip_dev *dev, const char *text)
{
	u64 value;
	int ret = sysfs_parse(dev, text, KIP_DGRAM_MTU_MIN, KIP_DGRAM_MTU_MAX, &value);

	if (!ret)
		WRITE_ONCE(dev->settings.dgram_mtu, value);
	return ret;
}

static int sysfs_store_rx_depth(struct kip_dev *dev, const char *text)
{
	u64 value;
	int ret = sysfs_parse(dev, text, 1, KIP_RX_DEPTH_MAX, &value);

	if (ret)
		return ret;
	kip_control_set_depth(dev, value);
	return 0;
}

static int sysfs_store_max_conns(struct kip_dev *dev, const char *text)
{
	u64 value;
	int ret = sysfs_parse(dev, text, 0, KIP_MAX_PEERS, &value);

	if (!ret)
		WRITE_ONCE(dev->settings.max_conns, value);
	return ret;
}

static int sysfs_store_rx_mem(struct kip_dev *dev, const char *text)
{
	u64 value;
	int ret = sysfs_parse(dev, text, 0, 1ULL << 40, &value);

	if (ret)
		return ret;
	/* The memory is not charged to a memory cgroup */
	if (value > KIP_RX_MEM && !capable(CAP_NET_ADMIN))
		return sysfs_refuse(dev, -EPERM,
				    "more than the default is for the host's administrator");
	WRITE_ONCE(dev->settings.rx_mem, value);
	return 0;
}

static int sysfs_store_idle_s(struct kip_dev *dev, const char *text)
{
	u64 value;
	int ret = sysfs_parse(dev, text, 0, 86400, &value);

	if (!ret)
		WRITE_ONCE(dev->settings.idle_s, value);
	return ret;
}

static int sysfs_store_learn(struct kip_dev *dev, const char *text)
{
	u64 value;
	int ret = sysfs_parse(dev, text, 0, 86400, &value);

	if (!ret)
		WRITE_ONCE(dev->settings.learn_s, value);
	return ret;
}

static int sysfs_store_listed_only(struct kip_dev *dev, const char *text)
{
	bool value;

	if (kstrtobool(text, &value))
		return sysfs_refuse(dev, -EINVAL, "must be 0 or 1");
	WRITE_ONCE(dev->settings.has_listed_only, value);
	return 0;
}

static int sysfs_store_group(struct kip_dev *dev, const char *text)
{
	const union kip_sockaddr before = dev->udp.group;
	union kip_sockaddr group = { };
	int ret;

	if (!sysfs_streq(text, "none")) {
		if (kip_sockaddr_parse(&group, text, dev->settings.port) ||
		    !kip_sockaddr_is_multicast(&group))
			return sysfs_refuse(dev, -EINVAL, "group is a multicast address, or none");
		if (dev->local.sa.sa_family != AF_UNSPEC &&
		    group.sa.sa_family != dev->local.sa.sa_family)
			return sysfs_refuse(dev, -EAFNOSUPPORT,
					    "group is of another address family than the underlying interface's address");
	}
	dev->udp.group = group;
	ret = kip_dev_restart(dev);
	if (!ret)
		return 0;
	sysfs_refuse(dev, ret, "the group cannot be joined");
	dev->udp.group = before;
	kip_dev_restart(dev);
	return ret;
}

static int sysfs_store_peers(struct kip_dev *dev, const char *text)
{
	const bool is_gone = *text == '-';
	union kip_sockaddr addr;
	u8 lladdr[KIP_ADDR_LEN];
	int ret;

	if ((*text != '+' && !is_gone) ||
	    kip_sockaddr_parse(&addr, text + 1, dev->settings.port) ||
	    !kip_sockaddr_lladdr(lladdr, &addr.sa, 0))
		return sysfs_refuse(dev, -EINVAL,
				    "peers takes +ADDRESS or -ADDRESS, a unicast one");
	if (!is_gone && dev->local.sa.sa_family != AF_UNSPEC &&
	    addr.sa.sa_family != dev->local.sa.sa_family)
		return sysfs_refuse(dev, -EAFNOSUPPORT,
				    "the peer is of another address family than the underlying interface's address");
	ret = is_gone ? kip_udp_unlist(dev, &addr) : kip_udp_list(dev, &addr, false);
	if (ret == -ENOSPC)
		return sysfs_refuse(dev, ret, "there are too many peers");
	return ret;
}

static ssize_t group_show(struct device *device, struct device_attribute *attr, char *buf)
{
	const union kip_sockaddr *group = &sysfs_to_dev(device)->udp.group;

	if (group->sa.sa_family == AF_INET)
		return sysfs_emit(buf, "%pI4\n", &group->v4.sin_addr);
	if (group->sa.sa_family == AF_INET6)
		return sysfs_emit(buf, "%pI6c\n", &group->v6.sin6_addr);
	return sysfs_emit(buf, "none\n");
}

static int sysfs_peers_line(char *line, const struct kip_listed *listed)
{
	const char *how = listed->is_learned ? " learned" : "";

	if (listed->addr.sa.sa_family == AF_INET)
		return scnprintf(line, PEERS_LINE, "%pI4%s\n", &listed->addr.v4.sin_addr, how);
	return scnprintf(line, PEERS_LINE, "%pI6c%s\n", &listed->addr.v6.sin6_addr, how);
}

/*
 * A binary attribute is read in pieces, so its length is not limited to a page. If the list changes
 * between two reads, the reader may see an entry twice, or miss one, or get parts of two entries.
 */
static ssize_t peers_read(struct file *file, struct kobject *kobj,
			  KIP_COMPAT_BIN_CONST struct bin_attribute *attr, char *buf, loff_t from,
			  size_t count)
{
	struct kip_dev *dev = sysfs_to_dev(kobj_to_dev(kobj));
	struct kip_udp *udp = &dev->udp;
	struct kip_listed *listed;
	char line[PEERS_LINE];
	size_t done = 0;
	loff_t at = 0;

	if (!from)
		kip_udp_expire(dev);
	spin_lock_bh(&udp->lock);
	list_for_each_entry(listed, &udp->listed, entry) {
		const int len = sysfs_peers_line(line, listed);
		const int skip = clamp_t(loff_t, from - at, 0, len);
		const size_t part = min_t(size_t, len - skip, count - done);

		memcpy(buf + done, line + skip, part);
		done += part;
		at += len;
		if (done == count)
			break;
	}
	spin_unlock_bh(&udp->lock);
	return done;
}

/* kernfs has terminated the text; like other settings, one write is one value */
static ssize_t peers_write(struct file *file, struct kobject *kobj,
			   KIP_COMPAT_BIN_CONST struct bin_attribute *attr, char *text, loff_t to,
			   size_t count)
{
	struct device *device = kobj_to_dev(kobj);

	return sysfs_store(device, text, count, sysfs_store_peers, sysfs_to_dev(device)->net);
}

static ssize_t mode_show(struct device *device, struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, sysfs_to_dev(device)->settings.is_connected ? "connected\n" :
								       "datagram\n");
}

static ssize_t mode_store(struct device *device, struct device_attribute *attr, const char *text,
			  size_t count)
{
	return sysfs_store(device, text, count, sysfs_store_mode, dev_net(to_net_dev(device)));
}

/* Defines the show function of a numeric setting */
#define SHOW(name, format, field) \
static ssize_t name##_show(struct device *device, struct device_attribute *attr, char *buf) \
{ \
	return sysfs_emit(buf, format "\n", sysfs_to_dev(device)->settings.field); \
}

#define STORE(name) \
static ssize_t name##_store(struct device *device, struct device_attribute *attr, \
			    const char *text, size_t count) \
{ \
	return sysfs_store(device, text, count, sysfs_store_##name, sysfs_to_dev(device)->net); \
} \
static DEVICE_ATTR_RW(name)

SHOW(port, "%u", port)
STORE(port);
SHOW(pkey, "0x%04x", pkey)
STORE(pkey);
SHOW(qkey, "0x%08x", qkey)
STORE(qkey);
SHOW(datagram_mtu, "%u", dgram_mtu)
STORE(datagram_mtu);
SHOW(rx_depth, "%u", rx_depth)
STORE(rx_depth);
SHOW(max_conns, "%u", max_conns)
STORE(max_conns);
SHOW(rx_mem, "%llu", rx_mem)
STORE(rx_mem);
SHOW(idle_s, "%u", idle_s)
STORE(idle_s);
SHOW(learn, "%u", learn_s)
STORE(learn);
SHOW(listed_only, "%u", has_listed_only)
STORE(listed_only);
STORE(group);
static BIN_ATTR_RW(peers, 0);
static DEVICE_ATTR_RW(mode);

static struct attribute *attrs[] = {
	&dev_attr_port.attr,
	&dev_attr_pkey.attr,
	&dev_attr_qkey.attr,
	&dev_attr_datagram_mtu.attr,
	&dev_attr_rx_depth.attr,
	&dev_attr_max_conns.attr,
	&dev_attr_rx_mem.attr,
	&dev_attr_idle_s.attr,
	&dev_attr_learn.attr,
	&dev_attr_listed_only.attr,
	&dev_attr_group.attr,
	NULL
};

static KIP_COMPAT_BIN_CONST struct bin_attribute *bin_attrs[] = {
	&bin_attr_peers,
	NULL
};

static const struct attribute_group group = {
	.name = "kiwarp_ip",
	.attrs = attrs,
	.bin_attrs = bin_attrs,
};

static struct attribute *mode_attrs[] = {
	&dev_attr_mode.attr,
	NULL
};
ATTRIBUTE_GROUPS(mode);

/* In the directory of the interface, as for IPoIB */
static const struct device_type devtype = {
	.name = "kiwarp_ip",
	.groups = mode_groups,
};

/**
 * kip_sysfs_setup() - add the directory of settings and the file "mode"
 * @netdev: the interface; registering it creates the files
 *
 * Context: process.
 */
void kip_sysfs_setup(struct net_device *netdev)
{
	netdev->sysfs_groups[0] = &group;
	SET_NETDEV_DEVTYPE(netdev, &devtype);
}
