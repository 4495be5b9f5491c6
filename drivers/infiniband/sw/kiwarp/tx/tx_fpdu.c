// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Building FPDUs, RFC 5044 4. An FPDU is written into contiguous memory behind the batch: header,
 * payload, PAD, then the CRC, which is computed while the FPDU is in the CPU cache. In a stream
 * with markers, the FPDU is written in pieces between them.
 *
 * Context: socket lock held, BHs off.
 */
#include "tx_fpdu.h"

#include <linux/string.h>
#include <linux/unaligned.h>

#include "proto/crc.h"
#include "proto/ddp.h"
#include "proto/mpa.h"
#include "qp/qp.h"

/**
 * struct tx_marked - state while writing an FPDU with markers
 * @begin: start of the FPDU, including a marker before it
 * @start: offset of @begin in the stream
 * @dst: where to write the next byte
 * @gap: bytes to the next marker
 */
struct tx_marked {
	u8 *begin;
	u32 start;
	u8 *dst;
	u32 gap;
};

static u32 tx_header_size(const struct kiw_tx_fpdu *fpdu)
{
	return fpdu->is_tagged ? sizeof(fpdu->tagged) : sizeof(fpdu->untagged);
}

/* Maximum payload, in bytes, of an FPDU that takes @octets of the stream at @offset */
static u32 tx_payload(const struct kiw_qp *qp, u32 ddp_hdr_len, u32 offset, u32 octets)
{
	if (qp->conn.tx_markers)
		octets = kiw_mpa_unmarked_size(offset, octets);
	/* The longest ULPDU is padded; the PAD must not be counted as room for payload. */
	octets = min_t(u32, octets - KIW_FPDU_LEN_SIZE - KIW_FPDU_CRC_SIZE, KIW_MULPDU_MAX);
	return octets - ddp_hdr_len;
}

/*
 * The number of FPDUs to write at once: at most as many of @room->octets bytes as fit into @room
 * and into @space bytes, but without the message's last FPDU, and at least one. @left is the
 * payload that the message has left, in bytes. The other FPDUs may have one marker less than the
 * first, and more payload instead.
 */
static u32 tx_count(const struct kiw_tx_fpdu *fpdu, u32 left, const struct kiw_tx_room *room,
		    u32 space)
{
	u32 most = (left - 1) / (fpdu->len + KIW_MARKER_SIZE);

	return max(min3(room->all / room->octets, space / room->octets, most), 1U);
}

/**
 * kiw_tx_begin_fpdu() - reserve room for FPDUs, and choose their number and size
 * @qp: the QP
 * @fpdu: in: @is_tagged, which selects the header; out: @at, @count, @size, @len, and @done as 0
 * @left: payload that the message has left, in bytes
 * @room: the room that the FPDUs may take
 *
 * With markers, the payload depends on how many of them will be in the FPDU: RFC 5044 4.5 allows
 * MULPDU to be adjusted dynamically.
 *
 * Context: socket lock held, BHs off.
 * Return: false: no memory, or the batch cannot take another fragment.
 */
bool kiw_tx_begin_fpdu(struct kiw_qp *qp, struct kiw_tx_fpdu *fpdu, u32 left,
		       const struct kiw_tx_room *room)
{
	u32 ddp_hdr_len = tx_header_size(fpdu) - KIW_FPDU_LEN_SIZE;
	u32 want = kiw_mpa_fpdu_size(min_t(u32, left, KIW_MULPDU_MAX - ddp_hdr_len) + ddp_hdr_len);
	u32 space;

	kiw_sock_assert_held(qp->ks);
	if (qp->conn.tx_markers)
		want = kiw_mpa_marked_size(qp->tx.offset, want);
	want = min(want, room->octets);
	fpdu->at = kiw_txbuf_reserve(&qp->tx.buf, want, &space);
	if (!fpdu->at)
		return false;
	fpdu->len = min(left, tx_payload(qp, ddp_hdr_len, qp->tx.offset, min(want, space)));
	fpdu->size = room->octets;
	fpdu->count = fpdu->len < left ? tx_count(fpdu, left, room, space) : 1;
	fpdu->done = 0;
	return true;
}

/* The compiler inlines a copy whose length it knows. */
static u8 *tx_write_header(const struct kiw_tx_fpdu *fpdu, u8 *dst)
{
	if (fpdu->is_tagged) {
		memcpy(dst, &fpdu->tagged, sizeof(fpdu->tagged));
		return dst + sizeof(fpdu->tagged);
	}
	memcpy(dst, &fpdu->untagged, sizeof(fpdu->untagged));
	return dst + sizeof(fpdu->untagged);
}

/* Write everything before the CRC, without markers. Return: its end; NULL: unreadable payload. */
static u8 *tx_write_plain(const struct kiw_tx_fpdu *fpdu, struct kiw_tx_source *src)
{
	u8 *dst = tx_write_header(fpdu, fpdu->at);
	u32 size;

	if (!kiw_tx_source_read(src, dst, fpdu->len))
		return NULL;
	dst += fpdu->len;
	/* Zero the PAD. This also writes to the CRC field, which is filled in later. */
	put_unaligned(0, (u32 *)dst);
	size = dst - fpdu->at;
	return dst + -size % KIW_FPDU_ALIGN;
}

/* RFC 5044 4.3 */
static void tx_write_marker(struct tx_marked *out)
{
	struct kiw_wire_marker marker;

	kiw_mpa_marker_encode(&marker, out->start + (u32)(out->dst - out->begin), out->start);
	memcpy(out->dst, &marker, sizeof(marker));
	out->dst += sizeof(marker);
	out->gap = KIW_MARKER_INTERVAL - sizeof(marker);
}

/* Room before the next marker, at most @len bytes. Writes a marker first if it is due. */
static u32 tx_marked_room(struct tx_marked *out, u32 len)
{
	if (!out->gap)
		tx_write_marker(out);
	return min(len, out->gap);
}

static void tx_put_marked(struct tx_marked *out, const void *data, u32 len)
{
	u32 here;

	for (; len; len -= here, data += here) {
		here = tx_marked_room(out, len);
		memcpy(out->dst, data, here);
		out->dst += here;
		out->gap -= here;
	}
}

static bool tx_fill_marked(struct tx_marked *out, struct kiw_tx_source *src, u32 len)
{
	u32 here;

	for (; len; len -= here) {
		here = tx_marked_room(out, len);
		if (!kiw_tx_source_read(src, out->dst, here))
			return false;
		out->dst += here;
		out->gap -= here;
	}
	return true;
}

/* Write everything before the CRC, with markers. One between PAD and CRC belongs to this FPDU. */
static u8 *tx_write_marked(const struct kiw_tx_fpdu *fpdu, struct kiw_tx_source *src, u32 offset)
{
	static const u8 zeroes[KIW_FPDU_ALIGN];
	u32 hdr_len = tx_header_size(fpdu);
	struct tx_marked out = {
		.begin = fpdu->at,
		.start = offset,
		.dst = fpdu->at,
		.gap = kiw_mpa_to_marker(offset),
	};

	if (out.gap < hdr_len) {
		tx_put_marked(&out, &fpdu->tagged, hdr_len);
	} else {
		out.dst = tx_write_header(fpdu, out.dst);
		out.gap -= hdr_len;
	}
	if (!tx_fill_marked(&out, src, fpdu->len))
		return NULL;
	tx_put_marked(&out, zeroes, kiw_mpa_pad(hdr_len - KIW_FPDU_LEN_SIZE + fpdu->len));
	if (!out.gap)
		tx_write_marker(&out);
	return out.dst;
}

/* Prepare the header and the payload length of the next of several FPDUs */
static void tx_next(const struct kiw_qp *qp, struct kiw_tx_fpdu *fpdu)
{
	u32 before = fpdu->len;

	if (qp->conn.tx_markers)
		fpdu->len = tx_payload(qp, tx_header_size(fpdu) - KIW_FPDU_LEN_SIZE,
				       qp->tx.offset, fpdu->size);
	if (fpdu->is_tagged)
		kiw_ddp_next_tagged(&fpdu->tagged, before, fpdu->len);
	else
		kiw_ddp_next_untagged(&fpdu->untagged, before, fpdu->len);
}

/* Return: bytes of the stream, or 0: the payload is not readable. */
static u32 tx_write(const struct kiw_qp *qp, const struct kiw_tx_fpdu *fpdu,
		    struct kiw_tx_source *src)
{
	__le32 crc = 0;
	u8 *end;

	if (qp->conn.tx_markers)
		end = tx_write_marked(fpdu, src, qp->tx.offset);
	else
		end = tx_write_plain(fpdu, src);
	if (!end)
		return 0;
	if (qp->conn.crc)
		crc = kiw_crc_final(kiw_crc_update(kiw_crc_init(), fpdu->at, end - fpdu->at));
	memcpy(end, &crc, sizeof(crc));
	return end + sizeof(crc) - fpdu->at;
}

/**
 * kiw_tx_end_fpdu() - write FPDUs and append them to the batch
 * @qp: the QP
 * @fpdu: from kiw_tx_begin_fpdu(), with the header of the first FPDU; sets @fpdu->done, all else is
 *	invalid afterwards
 * @src: source of the payload
 *
 * Writes header, payload, PAD and CRC (RFC 5044 4). Each FPDU is either in the batch completely
 * or not at all. An FPDU that does not fill its room, e.g. because it ends in front of a marker, is
 * the last.
 *
 * Context: socket lock held, BHs off since kiw_tx_begin_fpdu(), within the engine's MR table
 * section.
 * Return: false: the payload of the FPDU after those that were written is not readable.
 */
bool kiw_tx_end_fpdu(struct kiw_qp *qp, struct kiw_tx_fpdu *fpdu, struct kiw_tx_source *src)
{
	u8 *begin = fpdu->at;
	u32 size, num = 0;

	kiw_sock_assert_held(qp->ks);
	while ((size = tx_write(qp, fpdu, src))) {
		fpdu->at += size;
		fpdu->done += fpdu->len;
		qp->tx.offset += size;
		if (++num == fpdu->count || size != fpdu->size)
			break;
		tx_next(qp, fpdu);
	}
	if (num) {
		kiw_txbuf_commit(&qp->tx.buf, fpdu->at - begin);
		kiw_count_add(qp->stats, KIW_STAT_TX_FPDUS, num);
	}
	return size;
}

/**
 * kiw_tx_add_untagged() - append a message of one untagged segment to the batch
 * @qp: the QP
 * @opcode: &enum kiw_rdmap_opcode
 * @data: payload
 * @len: length of @data in bytes; with the DDP header at most %KIW_MULPDU_MIN
 *
 * Context: socket lock held, BHs off, within the engine's MR table section.
 * Return: false: no memory, or the batch cannot take another fragment.
 */
bool kiw_tx_add_untagged(struct kiw_qp *qp, u8 opcode, const void *data, u32 len)
{
	u32 *msn = &qp->tx.msn[kiw_rdmap_queue(opcode)];
	struct kiw_tx_fpdu fpdu = { .is_tagged = false };
	struct kiw_tx_source src;

	kiw_sock_assert_held(qp->ks);
	if (!kiw_tx_begin_fpdu(qp, &fpdu, len, KIW_TX_ROOM_SHORT))
		return false;
	kiw_ddp_encode_untagged(&fpdu.untagged, qp->conn.version, opcode, true, len, 0, *msn, 0);
	kiw_tx_source_bytes(&src, data, len);
	if (!kiw_tx_end_fpdu(qp, &fpdu, &src))
		return false;
	kiw_count_add(qp->stats, KIW_STAT_TX_BYTES, len);
	(*msn)++;
	return true;
}

/* Size of the FPDU that starts @at bytes after the beginning of the batch, in bytes. */
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
 * kiw_tx_discard() - remove those FPDUs from the batch that TCP has not begun to take
 * @qp: the QP; must not start or continue a work request or Response after this
 *
 * The Terminate, which is sent next, then directly follows the FPDU in progress (RFC 5040 7.1 rules
 * 2 and 3), with the markers for its new position in the stream. Work requests that lost FPDUs wait
 * for the flush.
 *
 * Context: socket lock held, BHs off; not while a batch is being built.
 */
void kiw_tx_discard(struct kiw_qp *qp)
{
	struct kiw_txbuf *buf = &qp->tx.buf;
	u32 total = buf->taken + buf->len;
	u32 count = 0;
	u32 at, end;

	kiw_sock_assert_held(qp->ks);
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
}
