// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Reads payload in the order in which it is sent, from pieces of memory of any kind.
 *
 * A piece is the rest of an SGE, or kernel memory. The region of an SGE is looked up in the MR
 * table, and then read in as many steps as needed. Regions of pinned memory stay until the table
 * section ends, so one lookup is enough for a batch. A fast-registration region or window can
 * become invalid by a work request in the middle of a batch, and the invalidation waits for its
 * users (kiw_mr_use()). So kiw_tx_source_pause() ends the use after each group of segments, and the
 * next group looks the region up again.
 *
 * Context: socket lock held, BHs off, within the engine's MR table section.
 */
#include "tx_source.h"

#include <linux/minmax.h>

#include "mem/copy.h"
#include "qp/qp.h"

static void source_init(struct kiw_tx_source *src, struct kiw_qp *qp, int access)
{
	src->sgl = (struct kiw_sgl) {
		.section = &qp->tx.section,
		.pd = qp->ib.pd,
		.dma_lkey = qp->ib.device->local_dma_lkey,
		.is_kernel = !qp->is_user,
	};
	src->access = access;
	src->mr = NULL;
	src->left = 0;
	src->fault = KIW_MEM_OK;
}

/**
 * kiw_tx_source_sgl() - set up the payload of a work request as the source
 * @src: to initialise
 * @qp: the QP of the work request
 * @sge: its SGEs; must outlive @src
 * @num_sge: number of SGEs
 * @offset: bytes of the message that were sent already
 *
 * Context: socket lock held, BHs off, within the engine's MR table section.
 */
void kiw_tx_source_sgl(struct kiw_tx_source *src, struct kiw_qp *qp, const struct kiw_sge *sge,
		       u8 num_sge, u32 offset)
{
	kiw_sock_assert_held_bh(qp->ks);
	source_init(src, qp, KIW_ACCESS_LOCAL_READ);
	src->sgl.sge = sge;
	src->sgl.num_sge = num_sge;
	kiw_sgl_seek(&src->sgl, offset);
}

/**
 * kiw_tx_source_region() - set up memory that the peer reads as the source, RFC 5040 4.5
 * @src: to initialise; must not move afterwards
 * @qp: the QP
 * @stag: STag of the Data Source
 * @to: tagged offset in the Data Source
 * @len: bytes
 *
 * Context: socket lock held, BHs off, within the engine's MR table section.
 */
void kiw_tx_source_region(struct kiw_tx_source *src, struct kiw_qp *qp, u32 stag, u64 to, u32 len)
{
	kiw_sock_assert_held_bh(qp->ks);
	source_init(src, qp, IB_ACCESS_REMOTE_READ);
	src->region = (struct kiw_sge) { .addr = to, .length = len, .lkey = stag };
	src->sgl.sge = &src->region;
	src->sgl.num_sge = 1;
	/* The peer must not use the local DMA lkey. */
	src->sgl.is_kernel = false;
}

/**
 * kiw_tx_source_bytes() - set up kernel memory as the source
 * @src: to initialise
 * @data: must outlive @src
 * @len: bytes
 *
 * Context: any.
 */
void kiw_tx_source_bytes(struct kiw_tx_source *src, const void *data, u32 len)
{
	src->sgl = (struct kiw_sgl) {};
	src->mr = NULL;
	src->addr = (uintptr_t)data;
	src->left = len;
	src->fault = KIW_MEM_OK;
}

/* Look up the next piece. */
static __always_inline enum kiw_mem_fault source_look(struct kiw_tx_source *src)
{
	struct kiw_sgl *sgl = &src->sgl;
	enum kiw_mem_fault fault;
	const struct kiw_sge *sge;
	u32 rest;

	if (!kiw_sgl_settle(sgl))
		return KIW_MEM_BOUNDS;
	sge = &sgl->sge[sgl->cur];
	rest = sge->length - sgl->off;
	fault = kiw_sgl_find(sgl, sge, src->access, sgl->off, rest, &src->mr);
	if (fault != KIW_MEM_OK) {
		kiw_mr_done(src->mr);
		return fault;
	}
	src->addr = sge->addr + sgl->off;
	src->left = rest;
	sgl->off += rest;
	return KIW_MEM_OK;
}

/* Is there a current piece, and not its end? Looks up the next one if necessary. */
static inline bool source_ready(struct kiw_tx_source *src)
{
	if (!src->left)
		src->fault = source_look(src);
	return src->fault == KIW_MEM_OK;
}

/* Advance by @len bytes of the current piece. */
static inline void source_advance(struct kiw_tx_source *src, u32 len)
{
	src->addr += len;
	src->left -= len;
	if (!src->left)
		kiw_mr_done(src->mr);
}

/**
 * kiw_tx_source_look() - make sure that there is a current piece, and not its end
 * @src: the source; has more bytes
 *
 * Context: as for the function that set up @src.
 * Return: false: the next piece is not readable, @src->fault says why.
 */
bool kiw_tx_source_look(struct kiw_tx_source *src)
{
	return source_ready(src);
}

/**
 * kiw_tx_source_skip() - advance within the current piece
 * @src: the source
 * @len: bytes, at most @src->left
 *
 * Context: as for the function that set up @src.
 */
void kiw_tx_source_skip(struct kiw_tx_source *src, u32 len)
{
	source_advance(src, len);
}

/**
 * kiw_tx_source_map() - make the next bytes accessible
 * @src: the source
 * @len: in: bytes; out: how many of them are accessible, at least 1
 *
 * Context: as for the function that set up @src. The caller must not sleep before
 * kiw_tx_source_unmap().
 * Return: the address, or NULL: the next byte is not readable, @src->fault says why.
 */
void *kiw_tx_source_map(struct kiw_tx_source *src, u32 *len)
{
	if (!source_ready(src))
		return NULL;
	*len = min(*len, src->left);
	return src->mr ? kiw_mr_map(src->mr, src->addr, len) : (void *)(uintptr_t)src->addr;
}

/**
 * kiw_tx_source_unmap() - end the access that kiw_tx_source_map() has begun, and advance
 * @src: the source
 * @data: from kiw_tx_source_map()
 * @len: all bytes that were accessible
 *
 * Context: as for the function that set up @src.
 */
void kiw_tx_source_unmap(struct kiw_tx_source *src, void *data, u32 len)
{
	if (src->mr)
		kiw_mr_unmap(src->mr, src->addr, data, false);
	source_advance(src, len);
}

/**
 * kiw_tx_source_read_on() - copy the next bytes, which may span several pieces
 * @src: the source
 * @dst: destination
 * @len: bytes
 *
 * Context: as for the function that set up @src.
 * Return: false: they are not readable, @src->fault says why.
 */
bool kiw_tx_source_read_on(struct kiw_tx_source *src, void *dst, u32 len)
{
	u32 n;

	for (; len; len -= n, dst += n) {
		if (!source_ready(src))
			return false;
		n = min(len, src->left);
		if (src->mr)
			kiw_mr_copy_from(src->mr, src->addr, dst, n);
		else
			kiw_copy(dst, (void *)(uintptr_t)src->addr, n);
		source_advance(src, n);
	}
	return true;
}

/**
 * kiw_tx_source_pause_dyn() - kiw_tx_source_pause() for a fast-registration region or window
 * @src: the source, inside a piece of it
 *
 * Context: as for the function that set up @src.
 */
void kiw_tx_source_pause_dyn(struct kiw_tx_source *src)
{
	kiw_mr_done(src->mr);
	src->sgl.off -= src->left;
	src->left = 0;
}
