// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Files for monitoring programs: /sys/class/infiniband/DEVICE/ports/1/counters/NAME, board_id and
 * hca_type; and counters for which the core's message has no room: ports/1/zero_copy/NAME.
 *
 * Programs such as node_exporter expect these files of RDMA devices, and may give up on all devices
 * of the host when one of them lacks the directory. ib_core creates it only for drivers that
 * process MADs, of which iWARP has none, so this driver creates it. The names and units are those
 * of InfiniBand's attributes PortCounters and PortCountersExtended, with an FPDU counted as a
 * packet. InfiniBand counters that have no meaning here have no file.
 *
 * Owns nothing: the values are sums of the counters in stats.c. ib_core creates and removes the
 * files with the device, so none of their handlers runs when the device goes away. Process
 * context.
 */
#include "monitor_sysfs.h"

#include <linux/build_bug.h>
#include <linux/container_of.h>
#include <linux/device.h>
#include <linux/kernel.h>
#include <linux/stringify.h>
#include <linux/sysfs.h>
#include <rdma/ib_sysfs.h>
#include <rdma/ib_verbs.h>

#include "device.h"
#include "stats.h"

#define MAX_SUMMANDS	4

/**
 * struct monitor_counter - a file
 * @attr: sysfs's part
 * @shift: the sum is shifted right by this many bits
 * @count: number of entries in @stats
 * @stats: the counters to add up
 */
struct monitor_counter {
	struct ib_port_attribute attr;
	unsigned int shift;
	unsigned int count;
	enum kiw_stat stats[MAX_SUMMANDS];
};

static ssize_t monitor_show(struct ib_device *ibdev, u32 port, struct ib_port_attribute *attr,
			    char *buf)
{
	const struct monitor_counter *counter = container_of(attr, struct monitor_counter, attr);
	const struct kiw_stats *stats = &to_kiw_device(ibdev)->stats;
	unsigned int i;
	u64 sum = 0;

	for (i = 0; i < counter->count; i++)
		sum += kiw_stats_read(stats, counter->stats[i]);
	return sysfs_emit(buf, "%llu\n", sum >> counter->shift);
}

/* Define the file @_name: the sum of the statistics that follow, in units of 2^@_shift. */
#define MONITOR_COUNTER(_name, _shift, ...) \
	static struct monitor_counter _name = { \
		.attr = { \
			.attr = { .name = __stringify(_name), .mode = 0444 }, \
			.show = monitor_show, \
		}, \
		.shift = _shift, \
		.count = ARRAY_SIZE(((enum kiw_stat[]){ __VA_ARGS__ })), \
		.stats = { __VA_ARGS__ }, \
	}

/* Data is counted in units of 4 bytes. */
MONITOR_COUNTER(port_xmit_data, 2, KIW_STAT_TX_BYTES);
MONITOR_COUNTER(port_rcv_data, 2, KIW_STAT_RX_BYTES);
MONITOR_COUNTER(port_xmit_packets, 0, KIW_STAT_TX_FPDUS);
MONITOR_COUNTER(port_rcv_packets, 0, KIW_STAT_RX_FPDUS);
MONITOR_COUNTER(unicast_xmit_packets, 0, KIW_STAT_TX_FPDUS);
MONITOR_COUNTER(unicast_rcv_packets, 0, KIW_STAT_RX_FPDUS);
MONITOR_COUNTER(port_xmit_discards, 0, KIW_STAT_TX_DISCARDED);
MONITOR_COUNTER(port_rcv_errors, 0, KIW_STAT_RX_CRC_ERRORS, KIW_STAT_RX_MPA_ERRORS,
		KIW_STAT_RX_DDP_ERRORS, KIW_STAT_RX_RDMAP_ERRORS);

static struct attribute *counter_attrs[] = {
	&port_xmit_data.attr.attr,
	&port_rcv_data.attr.attr,
	&port_xmit_packets.attr.attr,
	&port_rcv_packets.attr.attr,
	&unicast_xmit_packets.attr.attr,
	&unicast_rcv_packets.attr.attr,
	&port_xmit_discards.attr.attr,
	&port_rcv_errors.attr.attr,
	NULL
};

static const struct attribute_group counters_group = {
	.name = "counters",
	.attrs = counter_attrs,
};

/* Zero copy */

MONITOR_COUNTER(lent_bytes, 0, KIW_STAT_LENT_BYTES);
MONITOR_COUNTER(lent_copied, 0, KIW_STAT_LENT_COPIED);
MONITOR_COUNTER(lent_kept, 0, KIW_STAT_LENT_KEPT);

static struct attribute *lent_attrs[] = {
	&lent_bytes.attr.attr,
	&lent_copied.attr.attr,
	&lent_kept.attr.attr,
	NULL
};

static const struct attribute_group lent_group = {
	.name = "zero_copy",
	.attrs = lent_attrs,
};

const struct attribute_group *kiw_monitor_port_groups[] = {
	&counters_group,
	&lent_group,
	NULL
};

/* The same text for both: there is no board. */
static ssize_t monitor_identity_show(struct device *device, struct device_attribute *attr,
				     char *buf)
{
	return sysfs_emit(buf, "kiwarp\n");
}

static struct device_attribute board_id_attr = __ATTR(board_id, 0444, monitor_identity_show, NULL);
static struct device_attribute hca_type_attr = __ATTR(hca_type, 0444, monitor_identity_show, NULL);

static struct attribute *identity_attrs[] = {
	&board_id_attr.attr,
	&hca_type_attr.attr,
	NULL
};

static const struct attribute_group identity_group = {
	.attrs = identity_attrs,
};

/**
 * kiw_monitor_add_identity() - add the files board_id and hca_type to a device
 * @ibdev: allocated, not yet registered
 *
 * &ib_device_ops.device_group is a single pointer, and the policy files use it. So put this group
 * directly into the core's array. It has four slots: the core's own group, .device_group, a group
 * for device-wide counters, which this driver does not have, and the terminator.
 *
 * Context: process.
 */
void kiw_monitor_add_identity(struct ib_device *ibdev)
{
	BUILD_BUG_ON(ARRAY_SIZE(ibdev->groups) < 4);
	ibdev->groups[2] = &identity_group;
}
