// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * kiwarp_alarm: triggers the kernel's bug detectors on purpose.
 *
 * Writing a name to /sys/module/kiwarp_alarm/parameters/sound commits that fault: "warning",
 * "out-of-bounds" (KASAN), "lock-order" (lockdep), "leak" (kmemleak), "race" (KCSAN), "shift"
 * (UBSAN), "underflow" (refcount_t), "sleep" (sleeping in atomic context), "list" (DEBUG_LIST). The
 * test 990-alarm.sh then expects a report. Otherwise a detector that is off, or whose reports the
 * tests do not recognise, would go unnoticed.
 *
 * Contexts: process; the lock of the module's parameters allows one fault at a time.
 */
#include <linux/delay.h>
#include <linux/kernel.h>
#include <linux/kthread.h>
#include <linux/list.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/refcount.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/string.h>

/* The racing threads check whether to stop after this many increments. */
#define ALARM_BATCH	1000
#define ALARM_RACE_MS	2000
#define ALARM_LEAKS	16

/* Incremented by two threads without a lock; never read otherwise. */
static unsigned long alarm_raced;
/* Taken in this order, and then in reverse order */
static DEFINE_MUTEX(alarm_first);
static DEFINE_MUTEX(alarm_second);
static DEFINE_SPINLOCK(alarm_lock);

static int alarm_warning(void)
{
	WARN(1, "kiwarp_alarm\n");
	return 0;
}

static int alarm_out_of_bounds(void)
{
	/* The compiler must not see the size. */
	size_t size = 16 + (jiffies & 1);
	u8 *p = kmalloc(size, GFP_KERNEL);

	if (!p)
		return -ENOMEM;
	READ_ONCE(p[size]);
	kfree(p);
	return 0;
}

static int alarm_lock_order(void)
{
	mutex_lock(&alarm_first);
	mutex_lock(&alarm_second);
	mutex_unlock(&alarm_second);
	mutex_unlock(&alarm_first);

	mutex_lock(&alarm_second);
	mutex_lock(&alarm_first);
	mutex_unlock(&alarm_first);
	mutex_unlock(&alarm_second);
	return 0;
}

/*
 * kmemleak does not report an object if memory that it scans happens to have its address, such as
 * the unused part of a stack. Of many objects, it reports some. They are cleared: a free object has
 * the address of the next one of its slab, so a reference to one would hide all that follow.
 */
static int alarm_leak(void)
{
	void *p;
	int i;

	for (i = 0; i < ALARM_LEAKS; i++) {
		p = kzalloc(100, GFP_KERNEL);
		if (!p)
			return -ENOMEM;
		/* Clear the last pointer to it, in registers and on the stack, too. */
		OPTIMIZER_HIDE_VAR(p);
		p = NULL;
		OPTIMIZER_HIDE_VAR(p);
	}
	return 0;
}

static int alarm_increment(void *unused)
{
	int i;

	while (!kthread_should_stop()) {
		for (i = 0; i < ALARM_BATCH; i++)
			alarm_raced++;
		cond_resched();
	}
	return 0;
}

static int alarm_race(void)
{
	struct task_struct *threads[2];
	int ret = 0;
	int i;

	for (i = 0; i < ARRAY_SIZE(threads); i++) {
		threads[i] = kthread_run(alarm_increment, NULL, "kiwarp_alarm/%d", i);
		if (IS_ERR(threads[i])) {
			ret = PTR_ERR(threads[i]);
			break;
		}
	}
	if (!ret)
		msleep(ALARM_RACE_MS);
	while (i--)
		kthread_stop(threads[i]);
	return ret;
}

static int alarm_shift(void)
{
	/* The compiler must not see either. */
	int value = 1, bits = 40;

	OPTIMIZER_HIDE_VAR(value);
	OPTIMIZER_HIDE_VAR(bits);
	value <<= bits;
	OPTIMIZER_HIDE_VAR(value);
	return 0;
}

static int alarm_underflow(void)
{
	refcount_t count = REFCOUNT_INIT(0);

	return refcount_dec_and_test(&count) ? -EIO : 0;
}

static int alarm_sleep(void)
{
	spin_lock(&alarm_lock);
	might_sleep();
	spin_unlock(&alarm_lock);
	return 0;
}

/* Adds to a list whose first entry does not point back to the head: DEBUG_LIST refuses that. */
static int alarm_list(void)
{
	LIST_HEAD(list);
	LIST_HEAD(other);
	LIST_HEAD(entry);

	list.next = &other;
	list_add(&entry, &list);
	return 0;
}

static const struct {
	const char *name;
	int (*sound)(void);
} alarm_table[] = {
	{ "warning", alarm_warning },
	{ "out-of-bounds", alarm_out_of_bounds },
	{ "lock-order", alarm_lock_order },
	{ "leak", alarm_leak },
	{ "race", alarm_race },
	{ "shift", alarm_shift },
	{ "underflow", alarm_underflow },
	{ "sleep", alarm_sleep },
	{ "list", alarm_list },
};

static int alarm_set(const char *val, const struct kernel_param *kp)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(alarm_table); i++)
		if (sysfs_streq(val, alarm_table[i].name))
			return alarm_table[i].sound();
	return -EINVAL;
}

static const struct kernel_param_ops alarm_ops = {
	.set = alarm_set,
};

module_param_cb(sound, &alarm_ops, NULL, 0200);
MODULE_PARM_DESC(sound, "the fault to commit");

MODULE_DESCRIPTION("Faults for the kernel's detectors");
MODULE_LICENSE("Dual BSD/GPL");
