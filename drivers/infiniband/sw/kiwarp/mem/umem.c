// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * User memory pinned by ib_umem, with an array of its pages.
 *
 * Owns: &struct kiw_umem and the &struct ib_umem in it. ib_umem keeps the pages as runs in a
 * scatterlist. The data path needs direct access to the n-th page, hence the array.
 *
 * Pinning and unpinning happen in process context and may sleep. The copy functions run in
 * any context and take no lock: the caller ensures that the memory stays pinned (see mr.c).
 */
#include "umem.h"

#include <linux/highmem.h>
#include <linux/mm.h>
#include <linux/scatterlist.h>
#include <linux/slab.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include "compat/verbs.h"

/* How long a deregistration waits for lent pages before it revokes them, and then once more */
#define UMEM_RETURN_MS	200
#define UMEM_REVOKED_MS	6000

/* Lent pages of some memory were returned. */
static DECLARE_WAIT_QUEUE_HEAD(umem_returned);

static void umem_release_orphans(struct work_struct *work);

/* Memory that is not used any more, but was still lent when its last region was deregistered */
static LIST_HEAD(umem_orphans);
static DEFINE_SPINLOCK(umem_orphans_lock);
static DECLARE_WORK(umem_orphans_work, umem_release_orphans);

static void umem_list_pages(struct kiw_umem *umem)
{
	struct sg_page_iter iter;
	size_t i = 0;

	for_each_sgtable_page(&umem->ib->sgt_append.sgt, &iter, 0) {
		if (WARN_ON_ONCE(i >= umem->num_pages))
			break;
		umem->pages[i++] = sg_page_iter_page(&iter);
	}
}

/**
 * kiw_umem_pin() - pin memory of the current process
 * @ibdev: the device it is for
 * @start: user address of the first byte
 * @length: length in bytes, 1..%KIW_UMEM_MAX_BYTES
 * @access: enum ib_access_flags; with a right to write, or to bind windows, the pages are pinned
 *	writable
 *
 * The pages count against the process's RLIMIT_MEMLOCK.
 *
 * Context: process, may sleep.
 * Return: the memory, to be released with kiw_umem_unpin(), or ERR_PTR(): -EINVAL: bad
 * range; -ENOMEM: too much memory; -EFAULT and others as for ib_umem_get_va().
 */
struct kiw_umem *kiw_umem_pin(struct ib_device *ibdev, u64 start, u64 length, int access)
{
	struct kiw_umem *umem;
	struct ib_umem *ib;
	size_t num;

	if (!length || length > KIW_UMEM_MAX_BYTES || start > ULONG_MAX - length)
		return ERR_PTR(-EINVAL);
	ib = ib_umem_get_va(ibdev, start, length, access);
	if (IS_ERR(ib))
		return ERR_CAST(ib);
	num = ib_umem_num_pages(ib);
	umem = kvzalloc(struct_size(umem, pages, num), GFP_KERNEL_ACCOUNT | __GFP_NOWARN);
	if (!umem) {
		ib_umem_release(ib);
		return ERR_PTR(-ENOMEM);
	}
	umem->ib = ib;
	refcount_set(&umem->users, 1);
	spin_lock_init(&umem->lock);
	INIT_LIST_HEAD(&umem->leases);
	umem->first_offset = ib_umem_offset(ib);
	umem->num_pages = num;
	umem_list_pages(umem);
	return umem;
}

/**
 * kiw_umem_share() - take a reference to pinned pages for another region
 * @umem: from kiw_umem_pin()
 *
 * Context: any.
 * Return: @umem, to be released with kiw_umem_unpin() once more.
 */
struct kiw_umem *kiw_umem_share(struct kiw_umem *umem)
{
	refcount_inc(&umem->users);
	return umem;
}

/**
 * kiw_umem_lend() - note that pages are lent
 * @umem: the memory
 * @lease: to add; its @revoke has been set
 *
 * Context: any, inside the section of the MR table in which the region was found.
 */
void kiw_umem_lend(struct kiw_umem *umem, struct kiw_lease *lease)
{
	unsigned long flags;

	lease->umem = umem;
	spin_lock_irqsave(&umem->lock, flags);
	list_add_tail(&lease->link, &umem->leases);
	spin_unlock_irqrestore(&umem->lock, flags);
}

static void umem_release(struct kiw_umem *umem)
{
	ib_umem_release(umem->ib);
	kvfree(umem);
}

static struct kiw_umem *umem_next_orphan(void)
{
	struct kiw_umem *umem;

	spin_lock_irq(&umem_orphans_lock);
	umem = list_first_entry_or_null(&umem_orphans, struct kiw_umem, orphan_link);
	if (umem)
		list_del(&umem->orphan_link);
	spin_unlock_irq(&umem_orphans_lock);
	return umem;
}

static void umem_release_orphans(struct work_struct *work)
{
	struct ib_device *ibdev;
	struct kiw_umem *umem;

	while ((umem = umem_next_orphan())) {
		ibdev = umem->ib->ibdev;
		umem_release(umem);
		put_device(&ibdev->dev);
	}
}

/* Nobody else uses it any more, but unpinning may sleep. */
static void umem_release_later(struct kiw_umem *umem)
{
	unsigned long flags;

	spin_lock_irqsave(&umem_orphans_lock, flags);
	list_add_tail(&umem->orphan_link, &umem_orphans);
	spin_unlock_irqrestore(&umem_orphans_lock, flags);
	schedule_work(&umem_orphans_work);
}

/**
 * kiw_umem_return() - note that lent pages are not used any more
 * @lease: from kiw_umem_lend()
 *
 * Context: any. The memory may be unpinned before this returns.
 */
void kiw_umem_return(struct kiw_lease *lease)
{
	struct kiw_umem *umem = lease->umem;
	unsigned long flags;
	bool was_last;

	spin_lock_irqsave(&umem->lock, flags);
	list_del(&lease->link);
	was_last = umem->is_orphan && list_empty(&umem->leases);
	spin_unlock_irqrestore(&umem->lock, flags);
	if (was_last)
		umem_release_later(umem);
	/* Not in @umem, which may have been freed by now. Hardly ever is there somebody to wake. */
	if (wq_has_sleeper(&umem_returned))
		wake_up_all(&umem_returned);
}

/* Under the lock: whoever returned the last lease has finished with @umem. */
static bool umem_is_returned(struct kiw_umem *umem)
{
	unsigned long flags;
	bool is_empty;

	spin_lock_irqsave(&umem->lock, flags);
	is_empty = list_empty(&umem->leases);
	spin_unlock_irqrestore(&umem->lock, flags);
	return is_empty;
}

/* Return: false: none of the borrowers can do anything. */
static bool umem_revoke(struct kiw_umem *umem)
{
	struct kiw_lease *lease;
	unsigned long flags;
	bool some = false;

	spin_lock_irqsave(&umem->lock, flags);
	list_for_each_entry(lease, &umem->leases, link)
		some |= lease->revoke(lease);
	spin_unlock_irqrestore(&umem->lock, flags);
	return some;
}

/*
 * Something in this host still refers to the pages, after the connections were reset: leave the
 * memory to whoever returns the last of them. Until then it stays pinned and counted.
 * Return: false: nothing is lent any more.
 */
static bool umem_orphan(struct kiw_umem *umem)
{
	unsigned long flags;
	bool is_lent;

	spin_lock_irqsave(&umem->lock, flags);
	is_lent = !list_empty(&umem->leases);
	umem->is_orphan = is_lent;
	/* The work item needs the device to unpin. */
	if (is_lent)
		get_device(&umem->ib->ibdev->dev);
	spin_unlock_irqrestore(&umem->lock, flags);
	return is_lent;
}

/* Give the borrowers some time, then revoke what is lent. Return: true: nothing is lent. */
static bool umem_recall(struct kiw_umem *umem)
{
	if (wait_event_timeout(umem_returned, umem_is_returned(umem),
			       msecs_to_jiffies(UMEM_RETURN_MS)))
		return true;
	return umem_revoke(umem) &&
	       wait_event_timeout(umem_returned, umem_is_returned(umem),
				  msecs_to_jiffies(UMEM_REVOKED_MS));
}

/**
 * kiw_umem_unpin() - drop a reference to pinned memory, unpin it with the last one
 * @umem: from kiw_umem_pin() or kiw_umem_share(); the caller no longer copies to or from it;
 *	NULL is fine
 *
 * Nobody can borrow pages any more. If some are lent, gives the borrower a moment, as it may be
 * about to return them, and then revokes them. If that does not help within seconds, the memory
 * stays pinned until they are returned.
 *
 * Context: process, may sleep.
 */
void kiw_umem_unpin(struct kiw_umem *umem)
{
	if (!umem || !refcount_dec_and_test(&umem->users))
		return;
	if (!umem_recall(umem) && umem_orphan(umem))
		return;
	umem_release(umem);
}

/**
 * kiw_umem_module_exit() - let the last release end
 *
 * Context: process, may sleep; nothing is lent any more.
 */
void kiw_umem_module_exit(void)
{
	flush_work(&umem_orphans_work);
}

/* How many of @len bytes lie in the page of @pos */
static u32 umem_in_page(u64 pos, u32 len)
{
	return min_t(u32, len, PAGE_SIZE - offset_in_page(pos));
}

/**
 * kiw_umem_copy_to() - write to pinned memory
 * @umem: the memory, pinned for writing
 * @offset: bytes from the start of the region; with @len, checked by the caller
 * @src: data to write
 * @len: length in bytes
 *
 * Context: any.
 */
void kiw_umem_copy_to(const struct kiw_umem *umem, u64 offset, const void *src, u32 len)
{
	u64 pos = umem->first_offset + offset;
	struct page *const *page = &umem->pages[pos >> PAGE_SHIFT];
	u32 off = offset_in_page(pos);
	u32 n;

	for (; len; len -= n, src += n, off = 0) {
		n = min_t(u32, len, PAGE_SIZE - off);
		memcpy_to_page(*page++, off, src, n);
	}
}

/**
 * kiw_umem_copy_from() - read from pinned memory
 * @umem: the memory
 * @offset: bytes from the start of the region; with @len, checked by the caller
 * @dst: destination
 * @len: length in bytes
 *
 * The process may write to the memory at the same time, so the result may mix old and new data.
 *
 * Context: any.
 */
void kiw_umem_copy_from(const struct kiw_umem *umem, u64 offset, void *dst, u32 len)
{
	u64 pos = umem->first_offset + offset;
	u32 n;

	for (; len; len -= n, pos += n, dst += n) {
		n = umem_in_page(pos, len);
		memcpy_from_page(dst, umem->pages[pos >> PAGE_SHIFT], offset_in_page(pos), n);
	}
}

/**
 * kiw_umem_map() - map pinned memory, up to the end of a page
 * @umem: the memory
 * @offset: bytes from the start of the region; with *@len, checked by the caller
 * @len: in: length in bytes; out: how much of that is mapped
 *
 * The process may write to the memory at the same time.
 *
 * Context: any. The caller must not sleep before kiw_umem_unmap(). Of several mappings, the last
 * one is unmapped first.
 * Return: the address.
 */
void *kiw_umem_map(const struct kiw_umem *umem, u64 offset, u32 *len)
{
	u64 pos = umem->first_offset + offset;

	*len = umem_in_page(pos, *len);
	return kmap_local_page(umem->pages[pos >> PAGE_SHIFT]) + offset_in_page(pos);
}

/**
 * kiw_umem_unmap() - end a mapping
 * @umem: the memory
 * @offset: as for kiw_umem_map()
 * @data: from kiw_umem_map()
 * @is_written: the caller has written to it
 *
 * Context: any.
 */
void kiw_umem_unmap(const struct kiw_umem *umem, u64 offset, void *data, bool is_written)
{
	if (is_written)
		flush_dcache_page(umem->pages[(umem->first_offset + offset) >> PAGE_SHIFT]);
	kunmap_local(data);
}

/**
 * kiw_umem_page() - get the page of a byte
 * @umem: the memory
 * @offset: bytes from the start of the region; checked by the caller
 * @in_page: set to the offset of the byte in the page
 *
 * Context: any.
 * Return: the page.
 */
struct page *kiw_umem_page(const struct kiw_umem *umem, u64 offset, u32 *in_page)
{
	u64 pos = umem->first_offset + offset;

	*in_page = offset_in_page(pos);
	return umem->pages[pos >> PAGE_SHIFT];
}
