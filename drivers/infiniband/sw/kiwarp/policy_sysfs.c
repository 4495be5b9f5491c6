// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The policy of a device as files: /sys/class/infiniband/DEVICE/policy/SETTING.
 *
 * Owns nothing: the values belong to the device, their ranges to policy.c. ib_core creates and
 * removes the files with the device, so none of their handlers runs when the device goes away.
 * Process context.
 */
#include "policy_sysfs.h"

#include <linux/capability.h>
#include <linux/device.h>
#include <linux/lockdep.h>
#include <linux/mutex.h>
#include <linux/string.h>
#include <linux/sysfs.h>

#include "device.h"

/**
 * struct policy_attr - a file
 * @attr: the sysfs attribute
 * @item: the setting
 */
struct policy_attr {
	struct device_attribute attr;
	enum kiw_policy_item item;
};

/* Serialises stores, so that iw_cm is told the value that was set last. */
static DEFINE_MUTEX(store_lock);

static struct kiw_device *policy_device(struct device *device)
{
	return rdma_device_to_drv_device(device, struct kiw_device, ib);
}

static ssize_t policy_show(struct device *device, struct device_attribute *attr, char *buf)
{
	enum kiw_policy_item item = container_of(attr, struct policy_attr, attr)->item;

	return kiw_policy_show(&policy_device(device)->policy, item, buf);
}

static int policy_set(struct kiw_device *dev, enum kiw_policy_item item, const char *text)
{
	int ret;

	lockdep_assert_held(&store_lock);
	ret = kiw_policy_set(&dev->policy, item, text);
	kiw_device_tell_port_mapper(dev);
	return ret;
}

/*
 * Requires CAP_NET_ADMIN over the host. The file mode is not enough: root of a container that has
 * no user namespace of its own may be able to write to the files without that capability.
 */
static ssize_t policy_store(struct device *device, struct device_attribute *attr,
			    const char *buf, size_t count)
{
	enum kiw_policy_item item = container_of(attr, struct policy_attr, attr)->item;
	struct kiw_device *dev = policy_device(device);
	char range[64];
	int ret;

	if (!capable(CAP_NET_ADMIN))
		return -EPERM;
	mutex_lock(&store_lock);
	ret = policy_set(dev, item, buf);
	mutex_unlock(&store_lock);
	if (!ret)
		return count;
	/* Not ratelimited: the administrator gets a reason for each bad value. */
	ibdev_err(&dev->ib, "%s must be %s, not '%.*s'\n", attr->attr.name,
		  kiw_policy_range(item, range, sizeof(range)),
		  (int)min_t(size_t, strcspn(buf, "\n"), sizeof(range)), buf);
	return -EINVAL;
}

#define POLICY_ATTR(_name, _item) \
	{ .attr = __ATTR(_name, 0644, policy_show, policy_store), .item = (_item) }

static struct policy_attr mpa_rev_attr = POLICY_ATTR(mpa_rev, KIW_POLICY_MPA_REV);
static struct policy_attr crc_attr = POLICY_ATTR(crc, KIW_POLICY_CRC);
static struct policy_attr markers_attr = POLICY_ATTR(markers, KIW_POLICY_MARKERS);
static struct policy_attr p2p_attr = POLICY_ATTR(p2p, KIW_POLICY_P2P);
static struct policy_attr rtr_attr = POLICY_ATTR(rtr, KIW_POLICY_RTR);
static struct policy_attr rdmac_attr = POLICY_ATTR(rdmac, KIW_POLICY_RDMAC);
static struct policy_attr startup_ms_attr = POLICY_ATTR(startup_ms, KIW_POLICY_STARTUP_MS);
static struct policy_attr max_half_open_attr = POLICY_ATTR(max_half_open, KIW_POLICY_MAX_HALF_OPEN);
static struct policy_attr max_half_open_total_attr =
	POLICY_ATTR(max_half_open_total, KIW_POLICY_MAX_HALF_OPEN_TOTAL);
static struct policy_attr max_lingering_attr = POLICY_ATTR(max_lingering, KIW_POLICY_MAX_LINGERING);
static struct policy_attr rfc7306_attr = POLICY_ATTR(rfc7306, KIW_POLICY_RFC7306);
static struct policy_attr fpdu_attr = POLICY_ATTR(fpdu, KIW_POLICY_FPDU);
static struct policy_attr zero_copy_attr = POLICY_ATTR(zero_copy, KIW_POLICY_ZERO_COPY);
static struct policy_attr port_mapper_attr = POLICY_ATTR(port_mapper, KIW_POLICY_PORT_MAPPER);

static struct attribute *policy_attrs[] = {
	&mpa_rev_attr.attr.attr,
	&crc_attr.attr.attr,
	&markers_attr.attr.attr,
	&p2p_attr.attr.attr,
	&rtr_attr.attr.attr,
	&rdmac_attr.attr.attr,
	&startup_ms_attr.attr.attr,
	&max_half_open_attr.attr.attr,
	&max_half_open_total_attr.attr.attr,
	&max_lingering_attr.attr.attr,
	&rfc7306_attr.attr.attr,
	&fpdu_attr.attr.attr,
	&zero_copy_attr.attr.attr,
	&port_mapper_attr.attr.attr,
	NULL
};

const struct attribute_group kiw_policy_group = {
	.name = "policy",
	.attrs = policy_attrs,
};
