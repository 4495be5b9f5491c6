/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Where the payload of a message comes from: a work request's memory, what the peer
 * reads, or octets of the kernel.
 *
 * Owns: the position in it, for as long as the message has FPDUs in a batch.
 */
#ifndef KIW_TX_SOURCE_H
#define KIW_TX_SOURCE_H

#include "sgl.h"

struct kiw_qp;

/**
 * struct kiw_tx_source - payload, and a position in it
 * @sgl: entries, and the position behind the current piece
 * @region: the entry that an RDMA Read Response comes from
 * @access: enum ib_access_flags needed to read
 * @mr: the region the current piece is in, or NULL: it is the kernel's own
 * @addr: its next octet: tagged offset, or address
 * @left: octets of the piece; 0: the next entry is looked up
 * @fault: why there is no more
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

/* Within the engine's section of the MR table, for as long as it lasts */
void kiw_tx_source_sgl(struct kiw_tx_source *src, struct kiw_qp *qp, const struct kiw_sge *sge,
		       u8 num_sge, u32 offset);
void kiw_tx_source_region(struct kiw_tx_source *src, struct kiw_qp *qp, u32 stag, u64 to,
			  u32 len);
void kiw_tx_source_bytes(struct kiw_tx_source *src, const void *data, u32 len);
bool kiw_tx_source_read_on(struct kiw_tx_source *src, void *dst, u32 len);

/**
 * kiw_tx_source_read() - copy the next octets
 * @src: whose
 * @dst: where to
 * @len: octets
 *
 * Most lie in the current piece and do not end it.
 *
 * Context: as kiw_tx_source_sgl(), which set @src up.
 * Return: false: they may not be read, @src->fault says why.
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

#endif /* KIW_TX_SOURCE_H */
