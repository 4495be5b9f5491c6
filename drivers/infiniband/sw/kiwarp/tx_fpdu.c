// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Building FPDUs, RFC 5044 4. Payload is copied and checksummed in one pass into the
 * batch, see txbuf.c; what it comes from is told by a fill function.
 *
 * Context: socket lock held, BHs off.
 */
#include "tx_fpdu.h"

#include "proto/crc.h"
#include "proto/ddp.h"
#include "proto/mpa.h"
#include "qp.h"

/**
 * kiw_tx_fill_bytes() - payload from kernel memory
 * @arg: &struct kiw_tx_source with @data
 * @dst: where to
 * @len: octets
 *
 * Context: socket lock held, BHs off, within a section of the MR table.
 * Return: true.
 */
bool kiw_tx_fill_bytes(void *arg, void *dst, u32 len)
{
	struct kiw_tx_source *src = arg;

	memcpy(dst, src->data, len);
	src->data += len;
	return true;
}

/**
 * kiw_tx_fill_sgl() - payload from a work request's memory
 * @arg: &struct kiw_tx_source with @sgl
 * @dst: where to
 * @len: octets
 *
 * Context: socket lock held, BHs off, within a section of the MR table.
 * Return: false: it may not be read, @fault says why.
 */
bool kiw_tx_fill_sgl(void *arg, void *dst, u32 len)
{
	struct kiw_tx_source *src = arg;

	src->fault = kiw_sgl_copy_from(&src->sgl, dst, len);
	return src->fault == KIW_MEM_OK;
}

/**
 * kiw_tx_fill_region() - payload that the peer reads
 * @arg: &struct kiw_tx_source with @stag and @to
 * @dst: where to
 * @len: octets
 *
 * Looked up for every piece: the region may go between two FPDUs.
 *
 * Context: socket lock held, BHs off, within a section of the MR table.
 * Return: false: it may not be read, @fault says why.
 */
bool kiw_tx_fill_region(void *arg, void *dst, u32 len)
{
	struct kiw_tx_source *src = arg;
	struct kiw_mr *mr = kiw_mr_find(src->qp->mrs, src->stag);

	src->fault = mr ? kiw_mr_check(mr, src->qp->ib.pd, IB_ACCESS_REMOTE_READ, src->to, len) :
			  KIW_MEM_STAG;
	if (src->fault != KIW_MEM_OK)
		return false;
	kiw_mr_copy_from(mr, src->to, dst, len);
	src->to += len;
	return true;
}

/**
 * kiw_tx_sgl() - a cursor over a work request's memory
 * @qp: the QP
 * @sge: the entries; must outlive @sgl
 * @num_sge: how many
 * @sgl: set to their beginning
 *
 * Context: any.
 */
void kiw_tx_sgl(struct kiw_qp *qp, const struct kiw_sge *sge, u8 num_sge, struct kiw_sgl *sgl)
{
	memset(sgl, 0, sizeof(*sgl));
	sgl->mrs = qp->mrs;
	sgl->pd = qp->ib.pd;
	sgl->dma_lkey = qp->ib.device->local_dma_lkey;
	sgl->is_kernel = !qp->is_user;
	sgl->num_sge = num_sge;
	sgl->sge = sge;
}

/* RFC 5044 4: header, payload, PAD and CRC behind the batch. */
static bool tx_put_fpdu(struct kiw_qp *qp, struct kiw_tx_fpdu *fpdu)
{
	static const u8 zeroes[KIW_FPDU_ALIGN];
	struct kiw_txbuf *buf = &qp->tx.buf;
	u32 crc = kiw_crc_init();
	u32 hdr_len = fpdu->is_tagged ? sizeof(fpdu->tagged) : sizeof(fpdu->untagged);
	u32 *crcp = qp->conn.crc ? &crc : NULL;
	__le32 trailer = 0;
	u8 pad;

	pad = kiw_mpa_pad(hdr_len - KIW_FPDU_LEN_SIZE + fpdu->len);
	if (!kiw_txbuf_put(buf, &fpdu->tagged, hdr_len, crcp))
		return false;
	if (fpdu->len && !kiw_txbuf_fill(buf, fpdu->len, fpdu->fill, fpdu->arg, crcp))
		return false;
	if (!kiw_txbuf_put(buf, zeroes, pad, crcp))
		return false;
	if (crcp)
		trailer = kiw_crc_final(crc);
	if (!kiw_txbuf_put(buf, &trailer, sizeof(trailer), NULL))
		return false;
	kiw_count(qp->stats, KIW_STAT_TX_FPDUS);
	return true;
}

/**
 * kiw_tx_add_fpdu() - append an FPDU to the batch
 * @qp: the QP
 * @fpdu: what to build
 *
 * All or nothing; payload is read within one section of the MR table.
 *
 * Context: socket lock held, BHs off.
 * Return: false: no room, or the payload may not be read.
 */
bool kiw_tx_add_fpdu(struct kiw_qp *qp, struct kiw_tx_fpdu *fpdu)
{
	struct kiw_txbuf_mark mark;
	int section;
	bool done;

	kiw_txbuf_mark(&qp->tx.buf, &mark);
	section = kiw_mr_enter(qp->mrs);
	done = tx_put_fpdu(qp, fpdu);
	kiw_mr_leave(qp->mrs, section);
	if (!done)
		kiw_txbuf_rollback(&qp->tx.buf, &mark);
	return done;
}

/**
 * kiw_tx_add_untagged() - append a message of one untagged segment to the batch
 * @qp: the QP
 * @opcode: &enum kiw_rdmap_opcode
 * @data: its payload
 * @len: octets
 *
 * Context: socket lock held, BHs off.
 * Return: false: no room.
 */
bool kiw_tx_add_untagged(struct kiw_qp *qp, u8 opcode, const void *data, u32 len)
{
	struct kiw_tx_source src = { .qp = qp, .data = data };
	struct kiw_tx_fpdu fpdu = { .len = len, .fill = kiw_tx_fill_bytes, .arg = &src };
	u32 *msn = &qp->tx.msn[kiw_rdmap_queue(opcode)];

	kiw_ddp_encode_untagged(&fpdu.untagged, opcode, true, len, 0, *msn, 0);
	if (!kiw_tx_add_fpdu(qp, &fpdu))
		return false;
	kiw_count_add(qp->stats, KIW_STAT_TX_BYTES, len);
	(*msn)++;
	return true;
}
