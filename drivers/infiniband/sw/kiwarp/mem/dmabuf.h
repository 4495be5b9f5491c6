/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Memory of a dma-buf, mapped for the CPU. */
#ifndef KIW_DMABUF_H
#define KIW_DMABUF_H

#include <linux/dma-direction.h>
#include <linux/iosys-map.h>
#include <linux/types.h>

struct dma_buf;
struct mm_struct;

/**
 * struct kiw_dmabuf - a part of a mapped dma-buf
 * @buf: the buffer, with a reference
 * @map: kernel mapping of the whole buffer
 * @addr: kernel address of the first byte of the part
 * @dir: direction of the CPU access announced to the exporter
 * @mm: of the process that registered it, for its count of pinned pages; referenced
 */
struct kiw_dmabuf {
	struct dma_buf *buf;
	struct iosys_map map;
	u8 *addr;
	enum dma_data_direction dir;
	struct mm_struct *mm;
};

/* Process context, may sleep */
struct kiw_dmabuf *kiw_dmabuf_map(int fd, u64 offset, u64 length, bool is_written);
void kiw_dmabuf_unmap(struct kiw_dmabuf *part);

#endif /* KIW_DMABUF_H */
