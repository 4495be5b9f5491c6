/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * How a device makes connections: a table of settings, each stored as a number. Module parameters
 * are the defaults. A device takes a copy when it is added, and policy_sysfs.c lets an
 * administrator change that copy. A connection takes a copy of the settings that it negotiates
 * with. The others are read from the device when they are needed.
 *
 * Documentation/policy.rst explains each setting.
 */
#ifndef KIW_POLICY_H
#define KIW_POLICY_H

#include <linux/compiler.h>
#include <linux/types.h>

/**
 * enum kiw_zero_copy - may pages of consumers be lent to TCP?
 * @KIW_ZERO_COPY_OFF: no, payload is always copied
 * @KIW_ZERO_COPY_ON: yes
 * @KIW_ZERO_COPY_AUTO: yes, except for a while after the stack had to copy them
 */
enum kiw_zero_copy {
	KIW_ZERO_COPY_OFF,
	KIW_ZERO_COPY_ON,
	KIW_ZERO_COPY_AUTO,
};

/**
 * enum kiw_policy_item - a setting
 * @KIW_POLICY_MPA_REV: highest MPA revision to speak, 1 or 2
 * @KIW_POLICY_CRC: ask for CRC
 * @KIW_POLICY_MARKERS: ask for markers
 * @KIW_POLICY_P2P: initiator asks for peer-to-peer mode (revision 2)
 * @KIW_POLICY_RTR: %KIW_RTR_ kinds in order of preference, %KIW_POLICY_RTR_BITS each, the
 *	preferred one in the lowest bits, 0 after the last
 * @KIW_POLICY_RDMAC: also speak revision 0
 * @KIW_POLICY_STARTUP_MS: deadline for the whole startup of a connection, milliseconds
 * @KIW_POLICY_MAX_HALF_OPEN: silent connections per listener beyond its backlog
 * @KIW_POLICY_MAX_HALF_OPEN_TOTAL: incoming connections per device that no consumer has answered
 * @KIW_POLICY_MAX_LINGERING: streams per device that led to no connection and wait for the peer to
 *	close
 * @KIW_POLICY_RFC7306: use the messages of RFC 7306
 * @KIW_POLICY_FPDU: how large FPDUs are, &enum kiw_fpdus
 * @KIW_POLICY_ZERO_COPY: whether to lend pages to TCP, &enum kiw_zero_copy
 * @KIW_POLICY_PORT_MAPPER: have the iWARP port mapper choose TCP ports
 * @KIW_POLICY_COUNT: number of the above
 */
enum kiw_policy_item {
	KIW_POLICY_MPA_REV,
	KIW_POLICY_CRC,
	KIW_POLICY_MARKERS,
	KIW_POLICY_P2P,
	KIW_POLICY_RTR,
	KIW_POLICY_RDMAC,
	KIW_POLICY_STARTUP_MS,
	KIW_POLICY_MAX_HALF_OPEN,
	KIW_POLICY_MAX_HALF_OPEN_TOTAL,
	KIW_POLICY_MAX_LINGERING,
	KIW_POLICY_RFC7306,
	KIW_POLICY_FPDU,
	KIW_POLICY_ZERO_COPY,
	KIW_POLICY_PORT_MAPPER,
	KIW_POLICY_COUNT,
};

#define KIW_POLICY_RTR_BITS	8

/**
 * struct kiw_policy - one value for each setting
 * @value: indexed by &enum kiw_policy_item; each is read and written whole, without a lock
 */
struct kiw_policy {
	unsigned int value[KIW_POLICY_COUNT];
};

static inline unsigned int kiw_policy_get(const struct kiw_policy *policy,
					  enum kiw_policy_item item)
{
	return READ_ONCE(policy->value[item]);
}

void kiw_policy_defaults(struct kiw_policy *policy);
int kiw_policy_set(struct kiw_policy *policy, enum kiw_policy_item item, const char *text);
int kiw_policy_show(const struct kiw_policy *policy, enum kiw_policy_item item, char *buf);
const char *kiw_policy_range(enum kiw_policy_item item, char *buf, size_t size);

#endif /* KIW_POLICY_H */
