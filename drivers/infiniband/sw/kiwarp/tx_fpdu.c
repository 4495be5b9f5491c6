// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Building FPDUs, RFC 5044 4. Payload is copied into the batch, and the copy checksummed,
 * see txbuf.c; what it comes from is told by a fill function. Where the peer
 * asked for markers, an FPDU is written in pieces between them.
 *
 * Context: socket lock held, BHs off.
 */
#include "tx_fpdu.h"

#include "proto/crc.h"
#include "proto/ddp.h"
#include "proto/mpa.h"
#include "qp.h"

static const u8 zeroes[KIW_FPDU_ALIGN];

/**
 * struct tx_marked - writing an FPDU with its markers
 * @buf: the batch
 * @start: offset of the FPDU in the stream, with the marker before it if there is one
 * @offset: of the next octet
 */
struct tx_marked {
	struct kiw_txbuf *buf;
	u32 start;
	u32 offset;
};

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
	struct kiw_mr *mr = kiw_mr_use(&src->qp->tx.section, src->stag);

	src->fault = mr ? kiw_mr_check(mr, src->qp->ib.pd, IB_ACCESS_REMOTE_READ, src->to, len) :
			  KIW_MEM_STAG;
	if (src->fault == KIW_MEM_OK)
		kiw_mr_copy_from(mr, src->to, dst, len);
	kiw_mr_done(mr);
	src->to += len;
	return src->fault == KIW_MEM_OK;
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
	sgl->section = &qp->tx.section;
	sgl->pd = qp->ib.pd;
	sgl->dma_lkey = qp->ib.device->local_dma_lkey;
	sgl->is_kernel = !qp->is_user;
	sgl->num_sge = num_sge;
	sgl->sge = sge;
}

/* Everything before the CRC, in a stream without markers. */
static bool tx_put_plain(struct kiw_txbuf *buf, const struct kiw_tx_fpdu *fpdu, u32 hdr_len,
			 u32 pad)
{
	if (!kiw_txbuf_put(buf, &fpdu->tagged, hdr_len))
		return false;
	if (fpdu->len && !kiw_txbuf_fill(buf, fpdu->len, fpdu->fill, fpdu->arg))
		return false;
	return kiw_txbuf_put(buf, zeroes, pad);
}

/* A marker if it belongs here: RFC 5044 4.3. */
static bool tx_put_marker(struct tx_marked *out)
{
	struct kiw_wire_marker marker;

	if (kiw_mpa_to_marker(out->offset))
		return true;
	kiw_mpa_marker_encode(&marker, out->offset, out->start);
	out->offset += sizeof(marker);
	return kiw_txbuf_put(out->buf, &marker, sizeof(marker));
}

static bool tx_fill_marked(struct tx_marked *out, u32 len, kiw_fill_fn fill, void *arg)
{
	u32 here;

	while (len) {
		if (!tx_put_marker(out))
			return false;
		here = min(len, kiw_mpa_to_marker(out->offset));
		if (!kiw_txbuf_fill(out->buf, here, fill, arg))
			return false;
		out->offset += here;
		len -= here;
	}
	return true;
}

/* Everything before the CRC, with markers: one between PAD and CRC is of this FPDU. */
static bool tx_put_marked(struct kiw_qp *qp, const struct kiw_tx_fpdu *fpdu, u32 hdr_len,
			  u32 pad)
{
	struct kiw_tx_source hdr = { .data = (const u8 *)&fpdu->tagged };
	struct kiw_tx_source tail = { .data = zeroes };
	struct tx_marked out = {
		.buf = &qp->tx.buf,
		.start = qp->tx.offset,
		.offset = qp->tx.offset,
	};

	return tx_fill_marked(&out, hdr_len, kiw_tx_fill_bytes, &hdr) &&
	       tx_fill_marked(&out, fpdu->len, fpdu->fill, fpdu->arg) &&
	       tx_fill_marked(&out, pad, kiw_tx_fill_bytes, &tail) &&
	       tx_put_marker(&out);
}

/* RFC 5044 4: header, payload, PAD and CRC behind the batch. */
static bool tx_put_fpdu(struct kiw_qp *qp, const struct kiw_tx_fpdu *fpdu,
			const struct kiw_txbuf_mark *mark)
{
	u32 hdr_len = fpdu->is_tagged ? sizeof(fpdu->tagged) : sizeof(fpdu->untagged);
	u32 pad = kiw_mpa_pad(hdr_len - KIW_FPDU_LEN_SIZE + fpdu->len);
	__le32 trailer = 0;
	bool done;

	if (qp->conn.tx_markers)
		done = tx_put_marked(qp, fpdu, hdr_len, pad);
	else
		done = tx_put_plain(&qp->tx.buf, fpdu, hdr_len, pad);
	if (!done)
		return false;
	if (qp->conn.crc)
		trailer = kiw_crc_final(kiw_txbuf_crc(&qp->tx.buf, mark));
	if (!kiw_txbuf_put(&qp->tx.buf, &trailer, sizeof(trailer)))
		return false;
	kiw_count(qp->stats, KIW_STAT_TX_FPDUS);
	return true;
}

/**
 * kiw_tx_add_fpdu() - append an FPDU to the batch
 * @qp: the QP
 * @fpdu: what to build
 *
 * All or nothing.
 *
 * Context: socket lock held, BHs off, within the engine's section of the MR table.
 * Return: false: no room, or the payload may not be read.
 */
bool kiw_tx_add_fpdu(struct kiw_qp *qp, struct kiw_tx_fpdu *fpdu)
{
	struct kiw_txbuf_mark mark;
	bool done;

	kiw_txbuf_mark(&qp->tx.buf, &mark);
	done = tx_put_fpdu(qp, fpdu, &mark);
	if (done)
		qp->tx.offset += qp->tx.buf.len - mark.len;
	else
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
 * Context: socket lock held, BHs off, within the engine's section of the MR table.
 * Return: false: no room.
 */
bool kiw_tx_add_untagged(struct kiw_qp *qp, u8 opcode, const void *data, u32 len)
{
	struct kiw_tx_source src = { .qp = qp, .data = data };
	struct kiw_tx_fpdu fpdu = { .len = len, .fill = kiw_tx_fill_bytes, .arg = &src };
	u32 *msn = &qp->tx.msn[kiw_rdmap_queue(opcode)];

	kiw_ddp_encode_untagged(&fpdu.untagged, qp->conn.version, opcode, true, len, 0, *msn, 0);
	if (!kiw_tx_add_fpdu(qp, &fpdu))
		return false;
	kiw_count_add(qp->stats, KIW_STAT_TX_BYTES, len);
	(*msn)++;
	return true;
}

/* Octets of the FPDU that begins @at octets behind the beginning of the batch. */
static u32 tx_fpdu_size(const struct kiw_qp *qp, u32 at)
{
	const struct kiw_txbuf *buf = &qp->tx.buf;
	u32 left = buf->taken + buf->len - at;
	u8 head[KIW_MARKER_SIZE + KIW_FPDU_LEN_SIZE];
	u32 offset = qp->tx.offset - left;
	struct kiw_fpdu fpdu;

	kiw_txbuf_peek(buf, at, head, sizeof(head));
	if (qp->conn.tx_markers) {
		kiw_mpa_strip(head, offset, sizeof(head));
		kiw_mpa_frame_rx_marked(head, left, offset, &fpdu);
	} else {
		kiw_mpa_frame_rx(head, left, &fpdu);
	}
	return fpdu.total;
}

/**
 * kiw_tx_discard() - forget the FPDUs that TCP has not begun
 * @qp: the QP; no work request, no Response is begun or continued after this
 *
 * What comes next, a Terminate, is then the next FPDU behind the current one (RFC 5040 7.1
 * rules 2 and 3). Where it is, and its markers, follow from what stays. Work requests of
 * which something was discarded wait for the flush.
 *
 * Context: socket lock held, BHs off; not while a batch is being built.
 */
void kiw_tx_discard(struct kiw_qp *qp)
{
	struct kiw_txbuf *buf = &qp->tx.buf;
	u32 total = buf->taken + buf->len;
	u32 count = 0;
	u32 at, end;

	for (end = 0; end < buf->taken; end += tx_fpdu_size(qp, end))
		;
	for (at = end; at < total; at += tx_fpdu_size(qp, at))
		count++;
	if (!count)
		return;
	kiw_count_add(qp->stats, KIW_STAT_TX_DISCARDED, count);
	kiw_txbuf_cut(buf, end);
	qp->tx.offset -= total - end;
	kiw_pend_cut(&qp->tx.pend, qp->tx.offset);
	/* The Terminate begins a segment of its own: RFC 5044 5.1. */
	qp->tx.is_aligned = false;
}
