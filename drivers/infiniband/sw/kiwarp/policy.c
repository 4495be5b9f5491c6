// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Settings for how devices make connections, and the module parameters that are their
 * defaults.
 *
 * Owns: the range and the format of each setting, for module parameters and a device's
 * files alike; and the defaults, which `modprobe` and /sys/module/kiwarp/parameters set. A
 * device takes a copy when it is added, so a later change of a default affects only later
 * devices. An invalid value is refused when it is written, with a message that says what
 * is accepted.
 *
 * Setters run in process context. Writers of one value may race, and one of them wins.
 * Readers take no lock, because each value is one word.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include "policy.h"

#include <linux/kernel.h>
#include <linux/kstrtox.h>
#include <linux/moduleparam.h>
#include <linux/printk.h>
#include <linux/string.h>
#include <linux/sysfs.h>

#include "proto/large.h"
#include "proto/mpa_neg.h"

/* Format of a setting */
enum kind {
	KIND_NUMBER,
	KIND_FLAG,
	KIND_RTR,
	KIND_FPDU,
	KIND_ZERO_COPY,
};

struct setting {
	enum kind kind;
	unsigned int min;
	unsigned int max;
};

#define NUMBER(low, high)	.kind = KIND_NUMBER, .min = (low), .max = (high)
#define FLAG()			.kind = KIND_FLAG

static const struct setting settings[KIW_POLICY_COUNT] = {
	[KIW_POLICY_MPA_REV]		= { NUMBER(1, 2) },
	[KIW_POLICY_CRC]		= { FLAG() },
	[KIW_POLICY_MARKERS]		= { FLAG() },
	[KIW_POLICY_P2P]		= { FLAG() },
	[KIW_POLICY_RTR]		= { .kind = KIND_RTR },
	[KIW_POLICY_RDMAC]		= { FLAG() },
	[KIW_POLICY_STARTUP_MS]		= { NUMBER(100, 60000) },
	[KIW_POLICY_MAX_HALF_OPEN]	= { NUMBER(1, 65535) },
	[KIW_POLICY_MAX_HALF_OPEN_TOTAL] = { NUMBER(1, 65535) },
	[KIW_POLICY_MAX_LINGERING]	= { NUMBER(1, 65535) },
	[KIW_POLICY_RFC7306]		= { FLAG() },
	[KIW_POLICY_FPDU]		= { .kind = KIND_FPDU },
	[KIW_POLICY_ZERO_COPY]		= { .kind = KIND_ZERO_COPY },
	[KIW_POLICY_PORT_MAPPER]	= { FLAG() },
};

#define RTR_ORDER(a, b, c) \
	((a) | (b) << KIW_POLICY_RTR_BITS | (c) << (2 * KIW_POLICY_RTR_BITS))

/*
 * RDMA Write comes first: it uses no resources of the responder. Send comes last: with some
 * responders it consumes a receive of the consumer.
 */
static struct kiw_policy defaults = {
	.value = {
		[KIW_POLICY_MPA_REV]		= 2,
		[KIW_POLICY_CRC]		= true,
		[KIW_POLICY_P2P]		= true,
		[KIW_POLICY_RTR]		= RTR_ORDER(KIW_RTR_WRITE, KIW_RTR_READ,
							    KIW_RTR_SEND),
		[KIW_POLICY_STARTUP_MS]		= 10000,
		[KIW_POLICY_MAX_HALF_OPEN]	= 256,
		[KIW_POLICY_MAX_HALF_OPEN_TOTAL] = 4096,
		[KIW_POLICY_MAX_LINGERING]	= 1024,
		[KIW_POLICY_RFC7306]		= true,
		[KIW_POLICY_FPDU]		= KIW_FPDUS_AUTO,
		[KIW_POLICY_ZERO_COPY]		= KIW_ZERO_COPY_OFF,
	},
};

static const struct {
	const char *name;
	u8 kind;
} rtr_kinds[KIW_RTR_KINDS] = {
	{ "write", KIW_RTR_WRITE },
	{ "read", KIW_RTR_READ },
	{ "send", KIW_RTR_SEND },
};

static const char * const fpdu_names[] = {
	[KIW_FPDUS_SEGMENT]	= "segment",
	[KIW_FPDUS_LARGE]	= "large",
	[KIW_FPDUS_AUTO]	= "auto",
};

static const char * const zero_copy_names[] = {
	[KIW_ZERO_COPY_OFF]	= "off",
	[KIW_ZERO_COPY_ON]	= "on",
	[KIW_ZERO_COPY_AUTO]	= "auto",
};

/* Reading and writing values */

static u8 policy_rtr_by_name(const char *name, size_t len)
{
	int i;

	for (i = 0; i < KIW_RTR_KINDS; i++)
		if (strlen(rtr_kinds[i].name) == len && !memcmp(rtr_kinds[i].name, name, len))
			return rtr_kinds[i].kind;
	return 0;
}

/* Words separated by blanks or commas: at least one, none twice */
static int policy_rtr_parse(const char *text, unsigned int *value)
{
	static const char separators[] = ", \t\n";
	unsigned int order = 0, seen = 0, shift = 0;
	size_t len;
	u8 kind;

	for (text += strspn(text, separators); *text; text += strspn(text, separators)) {
		len = strcspn(text, separators);
		kind = policy_rtr_by_name(text, len);
		if (!kind || seen & kind)
			return -EINVAL;
		seen |= kind;
		order |= (unsigned int)kind << shift;
		shift += KIW_POLICY_RTR_BITS;
		text += len;
	}
	*value = order;
	return seen ? 0 : -EINVAL;
}

static int policy_rtr_show(unsigned int order, char *buf)
{
	int i, len = 0;
	u8 kind;

	for (; order; order >>= KIW_POLICY_RTR_BITS) {
		kind = order;
		for (i = 0; i < KIW_RTR_KINDS; i++)
			if (kind == rtr_kinds[i].kind)
				len += sysfs_emit_at(buf, len, "%s%s", len ? " " : "",
						     rtr_kinds[i].name);
	}
	return len + sysfs_emit_at(buf, len, "\n");
}

/* One of @names; it may end in a newline */
static int policy_name_parse(const char * const *names, size_t count, const char *text,
			     unsigned int *value)
{
	int which = __sysfs_match_string(names, count, text);

	if (which < 0)
		return -EINVAL;
	*value = which;
	return 0;
}

static int policy_number_parse(const struct setting *setting, const char *text, unsigned int *value)
{
	if (kstrtouint(text, 0, value))
		return -EINVAL;
	return *value < setting->min || *value > setting->max ? -EINVAL : 0;
}

static int policy_flag_parse(const char *text, unsigned int *value)
{
	/* kstrtobool() would look at the first letters only. */
	static const char * const words[] = {
		"n", "y", "N", "Y", "0", "1", "off", "on", "no", "yes", "false", "true",
	};
	int i = __sysfs_match_string(words, ARRAY_SIZE(words), text);

	if (i < 0)
		return -EINVAL;
	*value = i % 2;
	return 0;
}

/**
 * kiw_policy_set() - change a setting
 * @policy: the settings
 * @item: the one to change
 * @text: its new value as text; may end in a newline
 *
 * Context: process.
 * Return: 0, or -EINVAL: kiw_policy_range() tells what is accepted, in its usual form.
 * kstrtobool() and kstrtouint() also take others, such as "on" and 0x2.
 */
int kiw_policy_set(struct kiw_policy *policy, enum kiw_policy_item item, const char *text)
{
	unsigned int value;
	int ret;

	switch (settings[item].kind) {
	case KIND_FLAG:
		ret = policy_flag_parse(text, &value);
		break;
	case KIND_RTR:
		ret = policy_rtr_parse(text, &value);
		break;
	case KIND_FPDU:
		ret = policy_name_parse(fpdu_names, ARRAY_SIZE(fpdu_names), text, &value);
		break;
	case KIND_ZERO_COPY:
		ret = policy_name_parse(zero_copy_names, ARRAY_SIZE(zero_copy_names), text,
					&value);
		break;
	default:
		ret = policy_number_parse(&settings[item], text, &value);
		break;
	}
	if (!ret)
		WRITE_ONCE(policy->value[item], value);
	return ret;
}

/**
 * kiw_policy_show() - format a setting as text
 * @policy: the settings
 * @item: the one to format
 * @buf: destination, a page
 *
 * Context: process.
 * Return: number of bytes written, including the newline.
 */
int kiw_policy_show(const struct kiw_policy *policy, enum kiw_policy_item item, char *buf)
{
	unsigned int value = kiw_policy_get(policy, item);

	switch (settings[item].kind) {
	case KIND_FLAG:
		return sysfs_emit(buf, "%c\n", value ? 'Y' : 'N');
	case KIND_RTR:
		return policy_rtr_show(value, buf);
	case KIND_FPDU:
		return sysfs_emit(buf, "%s\n", fpdu_names[value]);
	case KIND_ZERO_COPY:
		return sysfs_emit(buf, "%s\n", zero_copy_names[value]);
	default:
		return sysfs_emit(buf, "%u\n", value);
	}
}

/**
 * kiw_policy_range() - describe the valid values of a setting
 * @item: the setting
 * @buf: scratch buffer
 * @size: size of @buf in bytes; 64 are enough
 *
 * Context: any.
 * Return: text that completes the message "... must be"; either in @buf or a string constant.
 */
const char *kiw_policy_range(enum kiw_policy_item item, char *buf, size_t size)
{
	switch (settings[item].kind) {
	case KIND_FLAG:
		return "y or n";
	case KIND_RTR:
		return "one or more of write, read and send, in order of preference";
	case KIND_FPDU:
		return "segment, large or auto";
	case KIND_ZERO_COPY:
		return "off, on or auto";
	default:
		snprintf(buf, size, "a number from %u to %u", settings[item].min,
			 settings[item].max);
		return buf;
	}
}

/**
 * kiw_policy_defaults() - get the present values of the module parameters
 * @policy: set to these values
 *
 * Context: any.
 */
void kiw_policy_defaults(struct kiw_policy *policy)
{
	int i;

	for (i = 0; i < KIW_POLICY_COUNT; i++)
		policy->value[i] = kiw_policy_get(&defaults, i);
}

/* Module parameters; the argument points to the item's default */

static enum kiw_policy_item policy_param_item(const struct kernel_param *kp)
{
	return (unsigned int *)kp->arg - defaults.value;
}

static int policy_param_set(const char *val, const struct kernel_param *kp)
{
	enum kiw_policy_item item = policy_param_item(kp);
	char range[64];

	/* A flag without a value means yes */
	if (!val)
		val = "y";
	if (!kiw_policy_set(&defaults, item, val))
		return 0;
	/* A value written through sysfs may end in a newline */
	pr_err("%s must be %s, not '%.*s'\n", kp->name,
	       kiw_policy_range(item, range, sizeof(range)), (int)strcspn(val, "\n"), val);
	return -EINVAL;
}

static int policy_param_get(char *buffer, const struct kernel_param *kp)
{
	return kiw_policy_show(&defaults, policy_param_item(kp), buffer);
}

static const struct kernel_param_ops number_ops = {
	.set = policy_param_set,
	.get = policy_param_get,
};

static const struct kernel_param_ops flag_ops = {
	.flags = KERNEL_PARAM_OPS_FL_NOARG,
	.set = policy_param_set,
	.get = policy_param_get,
};

#define ARG(item)	(&defaults.value[KIW_POLICY_##item])

module_param_cb(mpa_rev, &number_ops, ARG(MPA_REV), 0644);
MODULE_PARM_DESC(mpa_rev, "highest MPA revision to speak, 1 or 2 (default 2)");

module_param_cb(crc, &flag_ops, ARG(CRC), 0644);
MODULE_PARM_DESC(crc, "have CRCs; without, there are none unless the peer wants them (default y)");

module_param_cb(markers, &flag_ops, ARG(MARKERS), 0644);
MODULE_PARM_DESC(markers, "ask peers for markers in what they send (default n)");

module_param_cb(p2p, &flag_ops, ARG(P2P), 0644);
MODULE_PARM_DESC(p2p, "ask peers for peer-to-peer mode, with MPA revision 2 (default y)");

module_param_cb(rtr, &number_ops, ARG(RTR), 0644);
MODULE_PARM_DESC(rtr,
		 "ready-to-receive messages of peer-to-peer mode, in order of preference (default write,read,send)");

module_param_cb(rdmac, &flag_ops, ARG(RDMAC), 0644);
MODULE_PARM_DESC(rdmac,
		 "also connect to peers of the RDMA Consortium's MPA revision 0 (default n)");

module_param_cb(startup_ms, &number_ops, ARG(STARTUP_MS), 0644);
MODULE_PARM_DESC(startup_ms,
		 "deadline of a connection's startup, milliseconds, 100 to 60000 (default 10000)");

module_param_cb(max_half_open, &number_ops, ARG(MAX_HALF_OPEN), 0644);
MODULE_PARM_DESC(max_half_open,
		 "silent connections per listener beyond its backlog, 1 to 65535 (default 256)");

module_param_cb(max_half_open_total, &number_ops, ARG(MAX_HALF_OPEN_TOTAL), 0644);
MODULE_PARM_DESC(max_half_open_total,
		 "connections to a device that no listener has answered, 1 to 65535 (default 4096)");

module_param_cb(max_lingering, &number_ops, ARG(MAX_LINGERING), 0644);
MODULE_PARM_DESC(max_lingering,
		 "failed startups of a device that wait for the peer to close, 1 to 65535 (default 1024)");

module_param_cb(rfc7306, &flag_ops, ARG(RFC7306), 0644);
MODULE_PARM_DESC(rfc7306, "have immediate data and atomic operations (default y)");

module_param_cb(fpdu, &number_ops, ARG(FPDU), 0644);
MODULE_PARM_DESC(fpdu,
		 "FPDUs: segment, large, or auto (default), which is large to peers that announce themselves");

module_param_cb(zero_copy, &number_ops, ARG(ZERO_COPY), 0644);
MODULE_PARM_DESC(zero_copy,
		 "send large messages without CRC from the consumer's pages: off (default), on, or auto, which stops where the host copies them anyway");

module_param_cb(port_mapper, &flag_ops, ARG(PORT_MAPPER), 0644);
MODULE_PARM_DESC(port_mapper,
		 "have the iWARP port mapper, iwpmd, choose TCP ports, where it runs (default n)");
