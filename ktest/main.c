// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * kiwarp_ktest: runs a test case when its name is written to debugfs.
 *
 * Owns: /sys/kernel/debug/kiwarp_ktest. "cases" lists the names. "run" takes "A B NAME", where
 * A and B are file descriptors of the writer that refer to two network namespaces; the write
 * fails if the case fails, and "log" then tells why. "single" is one end alone, see single.c;
 * "hold" holds up the registration of devices, see hold.c.
 *
 * Contexts: process; run_lock allows one case at a time. Handlers of a case also write the log
 * in softirq, so log_lock protects it.
 */
#include <linux/debugfs.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/string.h>
#include <linux/uaccess.h>

#include "ktest.h"

static const struct ktest_case *const listed[] = {
	ktest_cases_data, ktest_cases_end, ktest_cases_ext, ktest_cases_fast, ktest_cases_inside,
	ktest_cases_mem, ktest_cases_race, ktest_cases_rights,
};

/* Those that are not in the file "cases": see ktest.h */
static const struct ktest_case *const unlisted[] = {
	ktest_cases_lost, ktest_cases_more, ktest_cases_nomem, ktest_cases_policy,
	ktest_cases_smp,
};

unsigned int ktest_soak;
module_param_named(soak, ktest_soak, uint, 0444);
MODULE_PARM_DESC(soak, "seconds for cases that can take any time");

/* Serialises cases */
static DEFINE_MUTEX(run_lock);
/* Protects log_text and log_len */
static DEFINE_SPINLOCK(log_lock);
static char log_text[2048];
static size_t log_len;
static struct dentry *dir;

static void log_clear(void)
{
	unsigned long flags;

	spin_lock_irqsave(&log_lock, flags);
	log_len = 0;
	spin_unlock_irqrestore(&log_lock, flags);
}

/**
 * ktest_fail() - log a failed check and mark the pair as failed
 * @p: the pair
 * @func: function of the check
 * @line: line number of the check
 * @what: the condition that should have been true
 * @is: the actual value, or another number that helps to understand the failure
 *
 * Context: any.
 */
void ktest_fail(struct ktest_pair *p, const char *func, int line, const char *what, s64 is)
{
	unsigned long flags;

	spin_lock_irqsave(&log_lock, flags);
	WRITE_ONCE(p->has_failed, true);
	log_len += scnprintf(log_text + log_len, sizeof(log_text) - log_len,
			     "%s:%d: %s (%lld)\n", func, line, what, is);
	spin_unlock_irqrestore(&log_lock, flags);
}

static const struct ktest_case *find_in(const struct ktest_case *const *tables, int n,
					const char *name)
{
	const struct ktest_case *c;
	int i;

	for (i = 0; i < n; i++)
		for (c = tables[i]; c->name; c++)
			if (!strcmp(c->name, name))
				return c;
	return NULL;
}

static const struct ktest_case *find_case(const char *name)
{
	const struct ktest_case *c = find_in(listed, ARRAY_SIZE(listed), name);

	return c ? c : find_in(unlisted, ARRAY_SIZE(unlisted), name);
}

static int run_pair(const struct ktest_case *c, struct ktest_pair *p)
{
	int ret;

	p->opts = &c->opts;
	ret = ktest_pair_open(p);
	if (ret)
		ktest_fail(p, __func__, __LINE__, "open", ret);
	else
		c->run(p);
	ktest_pair_close(p);
	return READ_ONCE(p->has_failed) ? -EIO : 0;
}

static int run_case(const struct ktest_case *c, const int fds[2])
{
	struct ktest_pair *p;
	int ret = -ENOMEM;

	p = kvzalloc(sizeof(*p), GFP_KERNEL);
	if (!p)
		return ret;
	p->net[0] = get_net_ns_by_fd(fds[0]);
	p->net[1] = get_net_ns_by_fd(fds[1]);
	if (IS_ERR(p->net[0]) || IS_ERR(p->net[1]))
		ret = -EBADF;
	else
		ret = run_pair(c, p);
	if (!IS_ERR(p->net[0]))
		put_net(p->net[0]);
	if (!IS_ERR(p->net[1]))
		put_net(p->net[1]);
	kvfree(p);
	return ret;
}

static ssize_t run_write(struct file *file, const char __user *buf, size_t len, loff_t *pos)
{
	const struct ktest_case *c;
	char line[64], name[32];
	int fds[2];
	int ret;

	if (len >= sizeof(line))
		return -EINVAL;
	if (copy_from_user(line, buf, len))
		return -EFAULT;
	line[len] = 0;
	if (sscanf(line, "%d %d %31s", &fds[0], &fds[1], name) != 3)
		return -EINVAL;
	c = find_case(name);
	if (!c)
		return -ENOENT;
	mutex_lock(&run_lock);
	log_clear();
	ret = run_case(c, fds);
	mutex_unlock(&run_lock);
	return ret ? ret : len;
}

static const struct file_operations run_fops = {
	.owner = THIS_MODULE,
	.write = run_write,
};

static int log_show(struct seq_file *seq, void *unused)
{
	mutex_lock(&run_lock);
	seq_write(seq, log_text, log_len);
	mutex_unlock(&run_lock);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(log);

static int cases_show(struct seq_file *seq, void *unused)
{
	const struct ktest_case *c;
	int i;

	for (i = 0; i < ARRAY_SIZE(listed); i++)
		for (c = listed[i]; c->name; c++)
			seq_printf(seq, "%s\n", c->name);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(cases);

static int __init ktest_init(void)
{
	dir = debugfs_create_dir("kiwarp_ktest", NULL);
	debugfs_create_file("run", 0200, dir, NULL, &run_fops);
	debugfs_create_file("log", 0400, dir, NULL, &log_fops);
	debugfs_create_file("cases", 0400, dir, NULL, &cases_fops);
	debugfs_create_file("single", 0600, dir, NULL, &ktest_single_fops);
	debugfs_create_file("hold", 0600, dir, NULL, &ktest_hold_fops);
	return 0;
}

static void __exit ktest_exit(void)
{
	debugfs_remove(dir);
	ktest_hold_exit();
}

module_init(ktest_init);
module_exit(ktest_exit);

MODULE_DESCRIPTION("RDMA kernel consumer for tests");
MODULE_LICENSE("Dual BSD/GPL");
