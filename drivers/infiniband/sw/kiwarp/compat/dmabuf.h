/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Differences between kernels in the dma-buf interface. */
#ifndef KIW_COMPAT_DMABUF_H
#define KIW_COMPAT_DMABUF_H

#include <linux/dma-buf.h>
#include <linux/dma-resv.h>
#include <linux/iosys-map.h>
#include <linux/module.h>

/* Since 6.13 the name of a symbol namespace is a string */
#ifdef KIW_HAS_NS_TOKENS
#define KIW_COMPAT_IMPORT_DMA_BUF() MODULE_IMPORT_NS(DMA_BUF)
#else
#define KIW_COMPAT_IMPORT_DMA_BUF() MODULE_IMPORT_NS("DMA_BUF")
#endif

/*
 * Since 6.2 the lock of a buffer's reservation object protects its mapping, and functions that take
 * the lock themselves have separate names.
 */
#ifdef KIW_HAS_DMA_BUF_UNLOCKED
#define kiw_compat_dma_buf_lock(buf) dma_resv_lock((buf)->resv, NULL)
#define kiw_compat_dma_buf_unlock(buf) dma_resv_unlock((buf)->resv)
#define kiw_compat_dma_buf_vunmap(buf, map) dma_buf_vunmap_unlocked(buf, map)
#else
#define kiw_compat_dma_buf_lock(buf) mutex_lock(&(buf)->lock)
#define kiw_compat_dma_buf_unlock(buf) mutex_unlock(&(buf)->lock)
#define kiw_compat_dma_buf_vunmap(buf, map) dma_buf_vunmap(buf, map)
#endif

/**
 * kiw_compat_dma_buf_vmap() - map a buffer for the CPU
 * @buf: the buffer; its exporter implements &dma_buf_ops.vmap
 * @map: set to the mapping; to be passed to kiw_compat_dma_buf_vunmap()
 *
 * In Linux 6.1 and 6.12, dma_buf_vmap() warns if the exporter fails to map the buffer. But the
 * exporter may just be out of memory, and a process can provoke that. So call ->vmap() directly for
 * the first mapping.
 *
 * Context: process, may sleep.
 * Return: 0, or the exporter's error.
 */
static inline int kiw_compat_dma_buf_vmap(struct dma_buf *buf, struct iosys_map *map)
{
	int ret = 0;

	kiw_compat_dma_buf_lock(buf);
	if (!buf->vmapping_counter) {
		iosys_map_clear(map);
		ret = buf->ops->vmap(buf, map);
		if (!ret)
			buf->vmap_ptr = *map;
	}
	if (!ret) {
		buf->vmapping_counter++;
		*map = buf->vmap_ptr;
	}
	kiw_compat_dma_buf_unlock(buf);
	return ret;
}

#endif /* KIW_COMPAT_DMABUF_H */
