// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * kiwarp_cover.ko: which code of the drivers runs, for the guided fuzzer (scripts/fuzz/guide.py).
 *
 * With KIWARP_COVER=y the compiler calls __sanitizer_cov_trace_pc() at the start of each basic
 * block of the drivers. KCOV has the same function, but it records a task's own calls only, unless
 * the code says for whom it works. Most of a driver for TCP runs in softirqs and work items. So
 * this module counts for all contexts together.
 *
 * /sys/kernel/debug/kiwarp_cover/hits: a read returns a record for each block that has run since
 * the last write. A write of anything begins again.
 */
#include "cover.h"

#include <linux/atomic.h>
#include <linux/bits.h>
#include <linux/debugfs.h>
#include <linux/fs.h>
#include <linux/hash.h>
#include <linux/minmax.h>
#include <linux/module.h>
#include <linux/string.h>
#include <linux/uaccess.h>

/* All blocks of the drivers fit several times, so that a free slot is found soon */
#define COVER_BITS	17
#define COVER_SLOTS	BIT(COVER_BITS)

/**
 * struct cover_hit - a block that has run, as user space reads it
 * @pc: return address of the call in the block; 0: the slot is free
 * @count: how often
 */
struct cover_hit {
	u64 pc;
	u64 count;
};

static struct cover_hit cover_slots[COVER_SLOTS];
/* Slots that are taken, in that order */
static u32 cover_list[COVER_SLOTS];
static atomic_t cover_listed;

/*
 * A slot is taken until cover_reset(), which leaves all free. So the search ends at the slot of @pc
 * or at a free one: between two resets fewer blocks run than there are slots.
 */
static u32 cover_slot(u64 pc)
{
	u32 slot = hash_64(pc, COVER_BITS);
	u64 owner;

	while ((owner = READ_ONCE(cover_slots[slot].pc)) != pc) {
		if (!owner && !cmpxchg(&cover_slots[slot].pc, 0, pc))
			break;
		if (owner)
			slot = (slot + 1) % COVER_SLOTS;
	}
	return slot;
}

/**
 * __sanitizer_cov_trace_pc() - count that a basic block runs
 *
 * Calls on two CPUs at once can lose a count or list a block twice, which does not matter to the
 * fuzzer.
 *
 * Context: any.
 */
void __sanitizer_cov_trace_pc(void)
{
	u32 slot = cover_slot((unsigned long)__builtin_return_address(0));
	u32 at;

	if (cover_slots[slot].count++)
		return;
	at = atomic_inc_return(&cover_listed) - 1;
	if (at < COVER_SLOTS)
		cover_list[at] = slot;
}
EXPORT_SYMBOL(__sanitizer_cov_trace_pc);

/* All slots, since modules may be loaded at other addresses than before */
static void cover_reset(void)
{
	unsigned long flags;

	local_irq_save(flags);
	memset(cover_slots, 0, sizeof(cover_slots));
	atomic_set(&cover_listed, 0);
	local_irq_restore(flags);
}

static ssize_t cover_read(struct file *file, char __user *to, size_t size, loff_t *pos)
{
	u32 count = min_t(u32, atomic_read(&cover_listed), COVER_SLOTS);
	u32 first = *pos / sizeof(struct cover_hit);
	ssize_t done = 0;
	u32 i;

	for (i = first; i < count && size - done >= sizeof(struct cover_hit); i++) {
		if (copy_to_user(to + done, &cover_slots[cover_list[i]], sizeof(struct cover_hit)))
			return done ?: -EFAULT;
		done += sizeof(struct cover_hit);
		*pos += sizeof(struct cover_hit);
	}
	return done;
}

static ssize_t cover_write(struct file *file, const char __user *from, size_t size, loff_t *pos)
{
	cover_reset();
	return size;
}

static const struct file_operations cover_fops = {
	.owner = THIS_MODULE,
	.read = cover_read,
	.write = cover_write,
};

static struct dentry *cover_dir;

static int __init cover_init(void)
{
	cover_dir = debugfs_create_dir("kiwarp_cover", NULL);
	debugfs_create_file("hits", 0600, cover_dir, NULL, &cover_fops);
	return 0;
}

static void __exit cover_exit(void)
{
	debugfs_remove(cover_dir);
}

module_init(cover_init);
module_exit(cover_exit);

MODULE_DESCRIPTION("Coverage of the kiwarp drivers, for their fuzzer");
MODULE_LICENSE("Dual BSD/GPL");
