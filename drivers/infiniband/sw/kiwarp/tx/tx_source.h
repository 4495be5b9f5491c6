/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Sources of a message's payload: the memory of a work request, memory that the peer reads, or
 * kernel memory.
 *
 * Owns: the position in the payload while a batch is being built. It is set up again for each
 * batch.
 */
#ifndef KIW_TX_SOURCE_H
#define KIW_TX_SOURCE_H

#include "mem/mr_copy.h"
#include "mem/sgl.h"

struct kiw_qp;

/**
 * struct kiw_tx_source - payload, and a position in it
 * @sgl: SGEs, and the position after the current piece
 * @region: the SGE for an RDMA Read Response
 * @access: enum ib_access_flags needed to read, or %KIW_ACCESS_LOCAL_READ
 * @mr: the region of the current piece, or NULL for kernel memory
 * @addr: the next byte of the piece: tagged offset, or kernel address
 * @left: bytes left in the piece; 0: look up the next one
 * @fault: why no more can be read
 */
struct kiw_tx_source {
	struct kiw_sgl sgl;
	struct kiw_sge region;
	int access;
	struct kiw_mr *mr;
	u64 addr;
	u32 left;
	enum kiw_mem_fault fault;
};

/* Within the engine's MR table section, and for as long as that lasts */
void kiw_tx_source_sgl(struct kiw_tx_source *src, struct kiw_qp *qp, const struct kiw_sge *sge,
		       u8 num_sge, u32 offset);
void kiw_tx_source_region(struct kiw_tx_source *src, struct kiw_qp *qp, u32 stag, u64 to,
			  u32 len);
void kiw_tx_source_bytes(struct kiw_tx_source *src, const void *data, u32 len);
bool kiw_tx_source_read_on(struct kiw_tx_source *src, void *dst, u32 len);
bool kiw_tx_source_look(struct kiw_tx_source *src);
void kiw_tx_source_skip(struct kiw_tx_source *src, u32 len);
void *kiw_tx_source_map(struct kiw_tx_source *src, u32 *len);
void kiw_tx_source_unmap(struct kiw_tx_source *src, void *data, u32 len);
void kiw_tx_source_pause_dyn(struct kiw_tx_source *src);

/**
 * kiw_tx_source_read() - copy the next bytes
 * @src: the source
 * @dst: destination
 * @len: bytes
 *
 * Inline for the case that all of them are in the current piece of a region, and more follow there.
 *
 * Context: as for the function that set up @src.
 * Return: false: they are not readable, @src->fault says why.
 */
static inline bool kiw_tx_source_read(struct kiw_tx_source *src, void *dst, u32 len)
{
	if (len >= src->left || !src->mr)
		return kiw_tx_source_read_on(src, dst, len);
	kiw_mr_copy_from(src->mr, src->addr, dst, len);
	src->addr += len;
	src->left -= len;
	return true;
}

/**
 * kiw_tx_source_pause() - end the use of a fast-registration region or window, so that it can be
 *	invalidated
 * @src: the source; kiw_tx_source_read() and kiw_tx_source_map() look the region up again
 *
 * Must be called before a work request is executed, or the batch ends.
 *
 * Context: as for the function that set up @src.
 */
static inline void kiw_tx_source_pause(struct kiw_tx_source *src)
{
	if (src->left && src->mr && src->mr->dyn)
		kiw_tx_source_pause_dyn(src);
}

#endif /* KIW_TX_SOURCE_H */
