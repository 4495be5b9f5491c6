/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Differences between kernels in the interface of dma-buf. */
#ifndef KIW_COMPAT_DMABUF_H
#define KIW_COMPAT_DMABUF_H

#include <linux/dma-buf.h>
#include <linux/iosys-map.h>
#include <linux/module.h>

/* The name of a namespace of symbols is a string since 6.13 */
#if KIW_KERNEL_SINCE(6, 13, 0)
#define KIW_COMPAT_IMPORT_DMA_BUF() MODULE_IMPORT_NS("DMA_BUF")
#else
#define KIW_COMPAT_IMPORT_DMA_BUF() MODULE_IMPORT_NS(DMA_BUF)
#endif

/* Those that take the buffer's own lock have a name of their own since 6.2 */
#if KIW_KERNEL_SINCE(6, 2, 0)
#define kiw_compat_dma_buf_vmap(buf, map) dma_buf_vmap_unlocked(buf, map)
#define kiw_compat_dma_buf_vunmap(buf, map) dma_buf_vunmap_unlocked(buf, map)
#else
#define kiw_compat_dma_buf_vmap(buf, map) dma_buf_vmap(buf, map)
#define kiw_compat_dma_buf_vunmap(buf, map) dma_buf_vunmap(buf, map)
#endif

#endif /* KIW_COMPAT_DMABUF_H */
