// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The module parameters: how devices make connections.
 *
 * Owns: the defaults, which `modprobe` and /sys/module/kiwarp/parameters set. A value out
 * of range is refused there and then, with a message that names the range. A device
 * takes a copy when it is added, so later changes are for later devices.
 *
 * Setters run in process context under the module loader's parameter lock; readers take
 * no lock, each value being read once.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include "policy.h"

#include <linux/compiler.h>
#include <linux/kernel.h>
#include <linux/kstrtox.h>
#include <linux/moduleparam.h>
#include <linux/printk.h>
#include <linux/string.h>
#include <linux/sysfs.h>

/* A number and the range that is accepted for it */
struct number {
	unsigned int value;
	unsigned int min;
	unsigned int max;
};

static struct number mpa_rev = { .value = 2, .min = 1, .max = 2 };
static struct number startup_ms = { .value = 10000, .min = 100, .max = 60000 };
static struct number max_half_open = { .value = 256, .min = 1, .max = 65535 };
static bool crc = true;
static bool p2p = true;

/* What was written through sysfs ends in a newline */
static int line_length(const char *val)
{
	return strcspn(val, "\n");
}

static int number_set(const char *val, const struct kernel_param *kp)
{
	struct number *number = kp->arg;
	unsigned int n;

	if (kstrtouint(val, 0, &n) || n < number->min || n > number->max) {
		pr_err("%s must be a number from %u to %u, not '%.*s'\n", kp->name,
		       number->min, number->max, line_length(val), val);
		return -EINVAL;
	}
	WRITE_ONCE(number->value, n);
	return 0;
}

static int number_get(char *buffer, const struct kernel_param *kp)
{
	const struct number *number = kp->arg;

	return sysfs_emit(buffer, "%u\n", number->value);
}

static const struct kernel_param_ops number_ops = {
	.set = number_set,
	.get = number_get,
};

static int flag_set(const char *val, const struct kernel_param *kp)
{
	bool on;

	/* The name alone means yes */
	if (kstrtobool(val ? val : "y", &on)) {
		pr_err("%s must be y or n, not '%.*s'\n", kp->name, line_length(val), val);
		return -EINVAL;
	}
	WRITE_ONCE(*(bool *)kp->arg, on);
	return 0;
}

static const struct kernel_param_ops flag_ops = {
	.flags = KERNEL_PARAM_OPS_FL_NOARG,
	.set = flag_set,
	.get = param_get_bool,
};

module_param_cb(mpa_rev, &number_ops, &mpa_rev, 0644);
MODULE_PARM_DESC(mpa_rev, "highest MPA revision to speak, 1 or 2 (default 2)");

module_param_cb(crc, &flag_ops, &crc, 0644);
MODULE_PARM_DESC(crc, "ask peers for CRCs; without, there are none unless the peer asks (default y)");

module_param_cb(p2p, &flag_ops, &p2p, 0644);
MODULE_PARM_DESC(p2p, "ask peers for peer-to-peer mode, with MPA revision 2 (default y)");

module_param_cb(startup_ms, &number_ops, &startup_ms, 0644);
MODULE_PARM_DESC(startup_ms,
		 "deadline of a connection's startup, milliseconds, 100 to 60000 (default 10000)");

module_param_cb(max_half_open, &number_ops, &max_half_open, 0644);
MODULE_PARM_DESC(max_half_open,
		 "connections in startup per listener beyond its backlog, 1 to 65535 (default 256)");

/**
 * kiw_policy_defaults - what the module parameters say now
 * @policy: to be filled
 *
 * Context: any.
 */
void kiw_policy_defaults(struct kiw_policy *policy)
{
	policy->mpa_rev = READ_ONCE(mpa_rev.value);
	policy->crc = READ_ONCE(crc);
	policy->p2p = READ_ONCE(p2p);
	policy->startup_ms = READ_ONCE(startup_ms.value);
	policy->max_half_open = READ_ONCE(max_half_open.value);
}
