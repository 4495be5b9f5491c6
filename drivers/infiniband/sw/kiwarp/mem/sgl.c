// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * A cursor over the SGEs of a work request, or memory that the peer reads.
 *
 * The entries and the position belong to the caller.
 */
#include "sgl.h"

/**
 * kiw_sgl_check() - may all of this memory be accessed?
 * @sgl: entries; the position does not matter
 * @access: IB_ACCESS_LOCAL_WRITE to receive into it, or %KIW_ACCESS_LOCAL_READ
 *
 * Entries of length 0 refer to no memory and are not checked. A region may become invalid right
 * after its check.
 *
 * Context: BHs off, inside a section of the MR table.
 * Return: %KIW_MEM_OK, or what is wrong with the first bad entry.
 */
enum kiw_mem_fault kiw_sgl_check(const struct kiw_sgl *sgl, int access)
{
	enum kiw_mem_fault fault;
	struct kiw_mr *mr;
	int i;

	for (i = 0; i < sgl->num_sge; i++) {
		if (!sgl->sge[i].length)
			continue;
		fault = kiw_sgl_find(sgl, &sgl->sge[i], access, 0, sgl->sge[i].length, &mr);
		kiw_mr_done(mr);
		if (fault != KIW_MEM_OK)
			return fault;
	}
	return KIW_MEM_OK;
}

/**
 * kiw_sgl_put() - write to the memory at the position, and advance
 * @sgl: entries and position
 * @data: data to write
 * @len: length in bytes
 *
 * Context: BHs off, inside a section of the MR table.
 * Return: %KIW_MEM_OK, or why it may not be written; what precedes the fault has been written.
 */
enum kiw_mem_fault kiw_sgl_put(struct kiw_sgl *sgl, const void *data, u32 len)
{
	enum kiw_mem_fault fault;
	struct kiw_mr *mr;
	u64 addr;
	u32 n;

	for (; len; len -= n, data += n, sgl->off += n) {
		n = len;
		fault = kiw_sgl_at(sgl, &n, &addr, &mr);
		if (fault == KIW_MEM_OK)
			kiw_sgl_write(mr, addr, data, n);
		kiw_mr_done(mr);
		if (fault != KIW_MEM_OK)
			return fault;
	}
	return KIW_MEM_OK;
}

/**
 * kiw_sgl_seek() - set the position
 * @sgl: entries
 * @offset: bytes from the start of the first entry; beyond the last entry: the end
 *
 * Context: any.
 */
void kiw_sgl_seek(struct kiw_sgl *sgl, u32 offset)
{
	sgl->cur = 0;
	while (sgl->cur < sgl->num_sge && offset >= sgl->sge[sgl->cur].length)
		offset -= sgl->sge[sgl->cur++].length;
	sgl->off = sgl->cur < sgl->num_sge ? offset : 0;
}
