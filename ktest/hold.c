// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Holds up the registration of a device, and with it that of all others, which wait for ib_core's
 * lock meanwhile: something can happen to a device that is about to be registered.
 *
 * Writing the name of a device to /sys/kernel/debug/kiwarp_ktest/hold arms this: when that device
 * is registered, the task that does so waits; with "rtnl" behind the name, it holds the RTNL
 * meanwhile. Writing an empty line lets it go on, and disarms. Reading tells whether a task waits:
 * 1 or 0.
 *
 * Contexts: process. Lock: hold_lock serialises writers; the callback of ib_core does not take it.
 */
#include <linux/completion.h>
#include <linux/fs.h>
#include <linux/mutex.h>
#include <linux/rtnetlink.h>
#include <linux/string.h>
#include <linux/uaccess.h>

#include "ktest.h"

static DEFINE_MUTEX(hold_lock);
static char hold_name[IB_DEVICE_NAME_MAX];
static bool hold_has_rtnl;
static bool hold_is_armed;
static bool hold_is_waiting;
static struct completion hold_go;

/* Context: process, with ib_core's lock of all devices. ib_core ignores the error. */
static int hold_add(struct ib_device *ibdev)
{
	/* A device that was there before */
	if (!READ_ONCE(hold_is_armed))
		return -EOPNOTSUPP;
	if (strcmp(dev_name(&ibdev->dev), hold_name))
		return -EOPNOTSUPP;
	if (hold_has_rtnl)
		rtnl_lock();
	WRITE_ONCE(hold_is_waiting, true);
	wait_for_completion(&hold_go);
	WRITE_ONCE(hold_is_waiting, false);
	if (hold_has_rtnl)
		rtnl_unlock();
	return -EOPNOTSUPP;
}

static struct ib_client hold_client = {
	.name = "kiwarp_hold",
	.add = hold_add,
};

static int hold_arm(const char *name, const char *lock)
{
	int ret;

	lockdep_assert_held(&hold_lock);
	if (hold_is_armed)
		return -EBUSY;
	strscpy(hold_name, name, sizeof(hold_name));
	hold_has_rtnl = !strcmp(lock, "rtnl");
	init_completion(&hold_go);
	ret = ib_register_client(&hold_client);
	WRITE_ONCE(hold_is_armed, !ret);
	return ret;
}

static void hold_disarm(void)
{
	lockdep_assert_held(&hold_lock);
	if (!hold_is_armed)
		return;
	complete_all(&hold_go);
	ib_unregister_client(&hold_client);
	WRITE_ONCE(hold_is_armed, false);
}

static ssize_t hold_write(struct file *file, const char __user *buf, size_t len, loff_t *pos)
{
	char line[32], name[32], lock[32] = "";
	bool is_named;
	int ret = 0;

	if (len >= sizeof(line))
		return -EINVAL;
	if (copy_from_user(line, buf, len))
		return -EFAULT;
	line[len] = 0;
	/* An empty line has an empty word. */
	is_named = sscanf(line, "%31s %31s", name, lock) > 0 && *name;
	mutex_lock(&hold_lock);
	if (is_named)
		ret = hold_arm(name, lock);
	else
		hold_disarm();
	mutex_unlock(&hold_lock);
	return ret ? ret : len;
}

static ssize_t hold_read(struct file *file, char __user *buf, size_t len, loff_t *pos)
{
	return simple_read_from_buffer(buf, len, pos, READ_ONCE(hold_is_waiting) ? "1\n" : "0\n",
				       2);
}

const struct file_operations ktest_hold_fops = {
	.owner = THIS_MODULE,
	.read = hold_read,
	.write = hold_write,
};

/**
 * ktest_hold_exit() - let go of what is held up, at the end of the module
 *
 * Context: process, may sleep.
 */
void ktest_hold_exit(void)
{
	mutex_lock(&hold_lock);
	hold_disarm();
	mutex_unlock(&hold_lock);
}
