/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* User memory pinned by ib_umem, with an array of its pages. */
#ifndef KIW_UMEM_H
#define KIW_UMEM_H

#include <linux/bits.h>
#include <linux/list.h>
#include <linux/refcount.h>
#include <linux/spinlock.h>
#include <rdma/ib_umem.h>

/* The page array is one allocation, which the kernel limits to 2 GiB */
#define KIW_UMEM_MAX_BYTES	BIT_ULL(39)

struct kiw_umem;

/**
 * struct kiw_lease - pages of pinned memory that are lent for transmission
 * @umem: the memory
 * @link: in &struct kiw_umem.leases
 * @revoke: make the borrower return the pages soon; false: it cannot; called with &struct
 *	kiw_umem.lock held, any context
 */
struct kiw_lease {
	struct kiw_umem *umem;
	struct list_head link;
	bool (*revoke)(struct kiw_lease *lease);
};

/**
 * struct kiw_umem - pinned user memory
 * @ib: the core's record of the pinned pages
 * @users: number of regions that use these pages
 * @lock: protects @leases and @is_orphan; irq-safe
 * @leases: list of &struct kiw_lease
 * @is_orphan: no region uses it any more; whoever returns the last lease has it released
 * @orphan_link: in the list of those that are to be released
 * @first_offset: offset of the region in its first page, in bytes
 * @num_pages: number of entries in @pages
 * @pages: the pages, in address order
 */
struct kiw_umem {
	struct ib_umem *ib;
	refcount_t users;
	spinlock_t lock;
	struct list_head leases;
	bool is_orphan;
	struct list_head orphan_link;
	u32 first_offset;
	size_t num_pages;
	struct page *pages[];
};

struct kiw_umem *kiw_umem_pin(struct ib_device *ibdev, u64 start, u64 length, int access);
struct kiw_umem *kiw_umem_share(struct kiw_umem *umem);
void kiw_umem_unpin(struct kiw_umem *umem);
void kiw_umem_module_exit(void);

/* Any context; the range was checked against the region */
void kiw_umem_copy_to(const struct kiw_umem *umem, u64 offset, const void *src, u32 len);
void kiw_umem_copy_from(const struct kiw_umem *umem, u64 offset, void *dst, u32 len);
void *kiw_umem_map(const struct kiw_umem *umem, u64 offset, u32 *len);
void kiw_umem_unmap(const struct kiw_umem *umem, u64 offset, void *data, bool is_written);
struct page *kiw_umem_page(const struct kiw_umem *umem, u64 offset, u32 *in_page);

/* Any context; a section of the MR table protects the memory when it is lent */
void kiw_umem_lend(struct kiw_umem *umem, struct kiw_lease *lease);
void kiw_umem_return(struct kiw_lease *lease);

#endif /* KIW_UMEM_H */
