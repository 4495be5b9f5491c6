// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Memory of a dma-buf, mapped for the CPU.
 *
 * Owns: &struct kiw_dmabuf: the reference to the buffer, and its mapping. No device does DMA here,
 * so the buffer is mapped without an attachment: the CPU copies to and from it through a mapping
 * that the exporter makes. The exporter has to keep the memory in place while it is mapped.
 * dma_buf_begin_cpu_access() is called when the region is registered and dma_buf_end_cpu_access()
 * when it is deregistered, because a peer may access the memory at any time in between.
 *
 * The mapping pins the whole buffer, however small the registered part is, and keeps it pinned
 * after the process has closed it. So the whole buffer counts against RLIMIT_MEMLOCK, once for
 * each region.
 *
 * Mapping and unmapping happen in process context and may sleep. The data path copies
 * through @addr. Before kiw_dmabuf_unmap() is called, the caller ensures that nothing copies
 * through the mapping any more (see mr.c).
 */
#include "dmabuf.h"

#include <linux/err.h>
#include <linux/capability.h>
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "compat/dmabuf.h"

KIW_COMPAT_IMPORT_DMA_BUF();

/* Map the whole buffer for the CPU. */
static int dmabuf_map_all(struct kiw_dmabuf *part)
{
	int ret;

	if (!part->buf->ops->vmap)
		return -EOPNOTSUPP;
	ret = dma_buf_begin_cpu_access(part->buf, part->dir);
	if (ret)
		return ret;
	ret = kiw_compat_dma_buf_vmap(part->buf, &part->map);
	if (ret)
		goto err_end;
	/* I/O memory cannot be accessed with memcpy(). */
	ret = -EOPNOTSUPP;
	if (part->map.is_iomem)
		goto err_vunmap;
	return 0;

err_vunmap:
	kiw_compat_dma_buf_vunmap(part->buf, &part->map);
err_end:
	dma_buf_end_cpu_access(part->buf, part->dir);
	return ret;
}

static unsigned long dmabuf_pages(const struct kiw_dmabuf *part)
{
	return PFN_UP(part->buf->size);
}

/* Count the buffer as pinned by the process. */
static int dmabuf_charge(struct kiw_dmabuf *part)
{
	unsigned long limit = rlimit(RLIMIT_MEMLOCK) >> PAGE_SHIFT;
	struct mm_struct *mm = current->mm;
	unsigned long pinned;

	pinned = atomic64_add_return(dmabuf_pages(part), &mm->pinned_vm);
	if (pinned > limit && !capable(CAP_IPC_LOCK)) {
		atomic64_sub(dmabuf_pages(part), &mm->pinned_vm);
		return -ENOMEM;
	}
	mmgrab(mm);
	part->mm = mm;
	return 0;
}

static void dmabuf_uncharge(struct kiw_dmabuf *part)
{
	atomic64_sub(dmabuf_pages(part), &part->mm->pinned_vm);
	mmdrop(part->mm);
}

static int dmabuf_check_part(const struct dma_buf *buf, u64 offset, u64 length, bool is_written)
{
	if (!length || offset > buf->size || length > buf->size - offset)
		return -EINVAL;
	return is_written && !(buf->file->f_mode & FMODE_WRITE) ? -EACCES : 0;
}

/**
 * kiw_dmabuf_map() - map a part of a dma-buf
 * @fd: file descriptor in the current process
 * @offset: bytes from the start of the buffer
 * @length: length in bytes; not 0
 * @is_written: the region has a right to write
 *
 * Context: process, may sleep.
 * Return: the part, to be released with kiw_dmabuf_unmap(), or ERR_PTR(): -EBADF: not open;
 * -EINVAL: not a dma-buf, or not that long; -EACCES: not open for writing; -EOPNOTSUPP: the
 * exporter cannot map the buffer, or maps it as I/O memory; -ENOMEM: no memory, or the buffer
 * exceeds what RLIMIT_MEMLOCK leaves; or an error of the exporter.
 */
struct kiw_dmabuf *kiw_dmabuf_map(int fd, u64 offset, u64 length, bool is_written)
{
	struct kiw_dmabuf *part;
	int ret;

	part = kzalloc(sizeof(*part), GFP_KERNEL_ACCOUNT);
	if (!part)
		return ERR_PTR(-ENOMEM);
	part->dir = is_written ? DMA_BIDIRECTIONAL : DMA_FROM_DEVICE;
	part->buf = dma_buf_get(fd);
	if (IS_ERR(part->buf)) {
		ret = PTR_ERR(part->buf);
		goto err_free;
	}
	ret = dmabuf_check_part(part->buf, offset, length, is_written);
	if (!ret)
		ret = dmabuf_charge(part);
	if (ret)
		goto err_put;
	ret = dmabuf_map_all(part);
	if (ret)
		goto err_uncharge;
	part->addr = (u8 *)part->map.vaddr + offset;
	return part;

err_uncharge:
	dmabuf_uncharge(part);
err_put:
	dma_buf_put(part->buf);
err_free:
	kfree(part);
	return ERR_PTR(ret);
}

/**
 * kiw_dmabuf_unmap() - undo kiw_dmabuf_map()
 * @part: nothing copies to or from it any more; NULL is fine
 *
 * Context: process, may sleep.
 */
void kiw_dmabuf_unmap(struct kiw_dmabuf *part)
{
	if (!part)
		return;
	kiw_compat_dma_buf_vunmap(part->buf, &part->map);
	dma_buf_end_cpu_access(part->buf, part->dir);
	dmabuf_uncharge(part);
	dma_buf_put(part->buf);
	kfree(part);
}
