// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * kiwarp_exporter: makes dma-bufs that fail in ways in which those of udmabuf cannot.
 *
 * ioctl() of /dev/kiwarp_exporter makes a buffer of a size in bytes, the argument, and returns its
 * file descriptor. The command is _IO(0xf7, KIND), with a KIND of &enum exporter_kind. Byte N of
 * a buffer is N modulo 251. The module's parameter "held" has two numbers, which are 0 if importers
 * have balanced their calls: CPU accesses that were begun and not ended, and mappings.
 *
 * Contexts: process.
 */
#include <linux/atomic.h>
#include <linux/err.h>
#include <linux/fcntl.h>
#include <linux/fs.h>
#include <linux/ioctl.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "compat/dmabuf.h"

KIW_COMPAT_IMPORT_DMA_BUF();

#define EXPORTER_MAGIC		0xf7
#define EXPORTER_MAX_BYTES	SZ_1M
#define EXPORTER_MODULUS	251

/**
 * enum exporter_kind - what is special about a buffer
 * @EXPORTER_PLAIN: nothing
 * @EXPORTER_READ_ONLY: its file is not open for writing
 * @EXPORTER_NO_VMAP: the exporter cannot map it for the CPU
 * @EXPORTER_IO_MEMORY: it is mapped as I/O memory
 * @EXPORTER_BUSY: the CPU's access fails with -EBUSY
 * @EXPORTER_NO_MEMORY: mapping it fails with -ENOMEM
 * @EXPORTER_KINDS: number of kinds
 */
enum exporter_kind {
	EXPORTER_PLAIN,
	EXPORTER_READ_ONLY,
	EXPORTER_NO_VMAP,
	EXPORTER_IO_MEMORY,
	EXPORTER_BUSY,
	EXPORTER_NO_MEMORY,
	EXPORTER_KINDS,
};

/**
 * struct exporter_buf - the memory of a buffer
 * @kind: what is special about it
 * @mem: its bytes
 */
struct exporter_buf {
	enum exporter_kind kind;
	u8 *mem;
};

static atomic_t exporter_accesses = ATOMIC_INIT(0);
static atomic_t exporter_mappings = ATOMIC_INIT(0);

/* No device can have it: importers that attach get an error. */
static struct sg_table *exporter_map(struct dma_buf_attachment *attach,
				     enum dma_data_direction dir)
{
	return ERR_PTR(-EOPNOTSUPP);
}

static void exporter_unmap(struct dma_buf_attachment *attach, struct sg_table *table,
			   enum dma_data_direction dir)
{
}

static void exporter_release(struct dma_buf *buf)
{
	struct exporter_buf *own = buf->priv;

	vfree(own->mem);
	kfree(own);
}

static int exporter_begin(struct dma_buf *buf, enum dma_data_direction dir)
{
	struct exporter_buf *own = buf->priv;

	if (own->kind == EXPORTER_BUSY)
		return -EBUSY;
	atomic_inc(&exporter_accesses);
	return 0;
}

static int exporter_end(struct dma_buf *buf, enum dma_data_direction dir)
{
	atomic_dec(&exporter_accesses);
	return 0;
}

static int exporter_vmap(struct dma_buf *buf, struct iosys_map *map)
{
	struct exporter_buf *own = buf->priv;

	if (own->kind == EXPORTER_NO_MEMORY)
		return -ENOMEM;
	iosys_map_set_vaddr(map, own->mem);
	map->is_iomem = own->kind == EXPORTER_IO_MEMORY;
	atomic_inc(&exporter_mappings);
	return 0;
}

static void exporter_vunmap(struct dma_buf *buf, struct iosys_map *map)
{
	atomic_dec(&exporter_mappings);
}

static const struct dma_buf_ops exporter_ops = {
	.map_dma_buf = exporter_map,
	.unmap_dma_buf = exporter_unmap,
	.release = exporter_release,
	.begin_cpu_access = exporter_begin,
	.end_cpu_access = exporter_end,
	.vmap = exporter_vmap,
	.vunmap = exporter_vunmap,
};

static const struct dma_buf_ops exporter_ops_no_vmap = {
	.map_dma_buf = exporter_map,
	.unmap_dma_buf = exporter_unmap,
	.release = exporter_release,
	.begin_cpu_access = exporter_begin,
	.end_cpu_access = exporter_end,
};

static struct exporter_buf *exporter_alloc(enum exporter_kind kind, size_t size)
{
	struct exporter_buf *own = kzalloc(sizeof(*own), GFP_KERNEL);
	size_t i;

	if (!own)
		return NULL;
	own->kind = kind;
	own->mem = vzalloc(size);
	if (!own->mem) {
		kfree(own);
		return NULL;
	}
	for (i = 0; i < size; i++)
		own->mem[i] = i % EXPORTER_MODULUS;
	return own;
}

/* Returns a file descriptor, or an errno */
static int exporter_make(enum exporter_kind kind, size_t size)
{
	DEFINE_DMA_BUF_EXPORT_INFO(info);
	struct exporter_buf *own;
	struct dma_buf *buf;
	int fd;

	own = exporter_alloc(kind, size);
	if (!own)
		return -ENOMEM;
	info.ops = kind == EXPORTER_NO_VMAP ? &exporter_ops_no_vmap : &exporter_ops;
	info.size = size;
	info.flags = kind == EXPORTER_READ_ONLY ? O_RDONLY : O_RDWR;
	info.priv = own;
	buf = dma_buf_export(&info);
	if (IS_ERR(buf)) {
		vfree(own->mem);
		kfree(own);
		return PTR_ERR(buf);
	}
	fd = dma_buf_fd(buf, O_CLOEXEC);
	if (fd < 0)
		dma_buf_put(buf);
	return fd;
}

static long exporter_ioctl(struct file *file, unsigned int cmd, unsigned long size)
{
	if (_IOC_TYPE(cmd) != EXPORTER_MAGIC || _IOC_NR(cmd) >= EXPORTER_KINDS)
		return -ENOTTY;
	if (!size || size > EXPORTER_MAX_BYTES)
		return -EINVAL;
	return exporter_make(_IOC_NR(cmd), size);
}

static const struct file_operations exporter_fops = {
	.owner = THIS_MODULE,
	.unlocked_ioctl = exporter_ioctl,
};

static struct miscdevice exporter_dev = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "kiwarp_exporter",
	.fops = &exporter_fops,
};

static int held_get(char *buffer, const struct kernel_param *kp)
{
	return sysfs_emit(buffer, "%d %d\n", atomic_read(&exporter_accesses),
			  atomic_read(&exporter_mappings));
}

static const struct kernel_param_ops held_ops = {
	.get = held_get,
};

module_param_cb(held, &held_ops, NULL, 0444);
MODULE_PARM_DESC(held, "accesses that have not ended, mappings");

module_misc_device(exporter_dev);

MODULE_DESCRIPTION("dma-bufs for the tests of kiwarp");
MODULE_LICENSE("Dual BSD/GPL");
