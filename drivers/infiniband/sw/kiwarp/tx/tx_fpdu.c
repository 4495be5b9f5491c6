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

#include "mem/copy.h"
#include "proto/crc.h"
#include "proto/ddp.h"
#include "proto/mpa.h"
#include "qp/qp.h"
#include "tx_loan.h"

/*
 * Maximum size of an FPDU with lent payload, in bytes: as long as those that are copied, in chunks.
 * The receiver cannot begin with an FPDU before it has all of it.
 */
#define FPDU_LENT_MAX	32768

/* A batch with lent payload ends if the message does not, and this is more than it has room for. */
#define FPDU_LENT_LEAST	8192

/* Page fragments of an FPDU with lent payload, at least: header, payload, PAD and CRC */
#define FPDU_LENT_BVECS	3

/* Shorter pieces are copied: a fragment costs as much. */
#define FPDU_LEND_MIN	512

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
 * @fpdu: in: @is_tagged, which selects the header; out: @at, @count, @size, @len, @is_lent as
 *	false, and @done as 0
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

	kiw_sock_assert_held_bh(qp->ks);
	if (qp->conn.tx_markers)
		want = kiw_mpa_marked_size(qp->tx.offset, want);
	want = min(want, room->octets);
	fpdu->at = kiw_txbuf_reserve(&qp->tx.buf, want, &space);
	if (!fpdu->at)
		return false;
	fpdu->len = min(left, tx_payload(qp, ddp_hdr_len, qp->tx.offset, min(want, space)));
	fpdu->is_lent = false;
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

/* RFC 5044 4.3. Inline: runs per marker. */
static __always_inline void tx_write_marker(struct tx_marked *out)
{
	struct kiw_wire_marker marker;

	kiw_mpa_marker_encode(&marker, out->start + (u32)(out->dst - out->begin), out->start);
	memcpy(out->dst, &marker, sizeof(marker));
	out->dst += sizeof(marker);
	out->gap = KIW_MARKER_SPACE;
}

/* Write @len bytes before the next marker. */
static __always_inline void tx_put_unmarked(struct tx_marked *out, const void *data, u32 len)
{
	kiw_copy(out->dst, data, len);
	out->dst += len;
	out->gap -= len;
}

/*
 * Write bytes, and the markers in front of and among them. Most pieces are what lies between two
 * markers; the compiler knows their length. The state is a local variable meanwhile, which stays
 * in registers.
 */
static void tx_put_marked(struct tx_marked *out, const void *data, u32 len)
{
	struct tx_marked to = *out;
	u32 here = min(len, to.gap);

	tx_put_unmarked(&to, data, here);
	for (data += here, len -= here; len >= KIW_MARKER_SPACE;
	     data += KIW_MARKER_SPACE, len -= KIW_MARKER_SPACE) {
		tx_write_marker(&to);
		tx_put_unmarked(&to, data, KIW_MARKER_SPACE);
	}
	if (len) {
		tx_write_marker(&to);
		tx_put_unmarked(&to, data, len);
	}
	*out = to;
}

static bool tx_fill_marked(struct tx_marked *out, struct kiw_tx_source *src, u32 len)
{
	void *data;
	u32 here;

	for (; len; len -= here) {
		here = len;
		data = kiw_tx_source_map(src, &here);
		if (!data)
			return false;
		tx_put_marked(out, data, here);
		kiw_tx_source_unmap(src, data, here);
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

	kiw_sock_assert_held_bh(qp->ks);
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

/* Lent payload */

/* The loan of the batch, if pages of this memory can be part of it */
static bool fpdu_has_loan(struct kiw_qp *qp, struct kiw_umem *umem)
{
	struct kiw_txbuf *buf = &qp->tx.buf;

	if (!buf->ubuf)
		buf->ubuf = kiw_loan_make(qp, umem);
	return buf->ubuf && to_kiw_loan(buf->ubuf)->umem == umem;
}

/* Append @len bytes of the current piece, copied. Return: bytes, 0: there is no memory. */
static u32 fpdu_copy(struct kiw_qp *qp, struct kiw_tx_source *src, u32 len)
{
	u32 space;
	u8 *dst;

	dst = kiw_txbuf_reserve(&qp->tx.buf, len, &space);
	if (!dst)
		return 0;
	len = min(len, space);
	if (!kiw_tx_source_read(src, dst, len))
		return 0;
	kiw_txbuf_commit(&qp->tx.buf, len);
	return len;
}

/* Append @len bytes of the current piece, which are in @page, lent. */
static u32 fpdu_lend(struct kiw_qp *qp, struct kiw_tx_source *src, struct page *page, u32 off,
		     u32 len)
{
	kiw_txbuf_append(&qp->tx.buf, page, off, len);
	kiw_tx_source_skip(src, len);
	kiw_count_add(qp->stats, KIW_STAT_LENT_BYTES, len);
	return len;
}

/*
 * Append at most @most bytes, lent if possible. Stops in front of a page that does not fit, unless
 * all of the message's @left bytes fit: otherwise the page would become two fragments. Leaves one
 * fragment for what follows the payload.
 * Return: bytes; fewer also if the next ones are not readable, or there is no memory.
 */
static u32 fpdu_gather(struct kiw_qp *qp, struct kiw_tx_source *src, u32 most, u32 left)
{
	u32 done, off, whole, n;
	struct page *page;

	for (done = 0; done < most; done += n) {
		if (qp->tx.buf.num >= KIW_TXBUF_LENT_BVECS - 1 || !kiw_tx_source_look(src))
			break;
		off = 0;
		page = kiw_mr_page(src->mr, src->addr, &off);
		whole = min_t(u32, src->left, PAGE_SIZE - off);
		n = min(whole, most - done);
		if (n < whole && done && most < left)
			break;
		if (page && n >= FPDU_LEND_MIN &&
		    fpdu_has_loan(qp, src->mr ? src->mr->umem : NULL))
			n = fpdu_lend(qp, src, page, off, n);
		else
			n = fpdu_copy(qp, src, n);
		if (!n)
			break;
	}
	return done;
}

/* Append PAD and a CRC of 0. */
static bool fpdu_trail(struct kiw_qp *qp, u32 len)
{
	u32 space;
	u8 *dst;

	dst = kiw_txbuf_reserve(&qp->tx.buf, KIW_FPDU_ALIGN + KIW_FPDU_CRC_SIZE, &space);
	if (!dst)
		return false;
	memset(dst, 0, len);
	kiw_txbuf_commit(&qp->tx.buf, len);
	return true;
}

/* Bytes after the payload of the FPDU */
static u32 fpdu_trailer(const struct kiw_tx_fpdu *fpdu)
{
	return kiw_mpa_pad(tx_header_size(fpdu) - KIW_FPDU_LEN_SIZE + fpdu->len) +
	       KIW_FPDU_CRC_SIZE;
}

/**
 * kiw_tx_begin_lent() - append an FPDU whose payload is lent, but for its header
 * @qp: the QP; its connection has large FPDUs, no CRC and no markers
 * @fpdu: in: @is_tagged, which selects the header; out: @at, where the header goes, @len, @is_lent
 *	as true, and @done as 0
 * @src: source of the payload
 * @left: payload that the message has left, in bytes
 * @room: the room that the FPDU may take
 *
 * Payload that cannot be lent, or is in pieces so small that it is not worth it, is copied. If the
 * payload is not readable, the batch does not change, and kiw_tx_end_lent() says so.
 *
 * Context: socket lock held, BHs off, within the engine's MR table section.
 * Return: false: no memory, or the batch cannot take another fragment; it must be sent, and @src
 * is set up anew.
 */
bool kiw_tx_begin_lent(struct kiw_qp *qp, struct kiw_tx_fpdu *fpdu, struct kiw_tx_source *src,
		       u32 left, const struct kiw_tx_room *room)
{
	u32 octets = min_t(u32, room->octets, FPDU_LENT_MAX);
	u32 hdr_len = tx_header_size(fpdu);
	struct kiw_txbuf *buf = &qp->tx.buf;
	u32 start = buf->taken + buf->len;
	u32 most, space;

	kiw_sock_assert_held_bh(qp->ks);
	most = min(left, tx_payload(qp, hdr_len - KIW_FPDU_LEN_SIZE, qp->tx.offset, octets));
	if (buf->len && (buf->num + FPDU_LENT_BVECS > KIW_TXBUF_LENT_BVECS ||
			 (most < left && most < FPDU_LENT_LEAST)))
		return false;
	fpdu->at = kiw_txbuf_reserve(buf, hdr_len, &space);
	if (!fpdu->at)
		return false;
	kiw_txbuf_commit(buf, hdr_len);
	fpdu->is_lent = true;
	fpdu->count = 1;
	fpdu->done = 0;
	fpdu->len = fpdu_gather(qp, src, most, left);
	if (fpdu->len && fpdu_trail(qp, fpdu_trailer(fpdu)))
		return true;
	kiw_txbuf_cut(buf, start);
	/* No kiw_tx_end_lent() follows if this batch is to be sent first. */
	kiw_tx_source_pause(src);
	fpdu->at = NULL;
	return src->fault != KIW_MEM_OK;
}

/**
 * kiw_tx_end_lent() - write the header of an FPDU whose payload is lent
 * @qp: the QP
 * @fpdu: from kiw_tx_begin_lent(), with the header; sets @fpdu->done
 *
 * Context: socket lock held, BHs off since kiw_tx_begin_lent(), within the engine's MR table
 * section.
 * Return: false: the payload is not readable.
 */
bool kiw_tx_end_lent(struct kiw_qp *qp, struct kiw_tx_fpdu *fpdu)
{
	kiw_sock_assert_held_bh(qp->ks);
	if (!fpdu->at)
		return false;
	tx_write_header(fpdu, fpdu->at);
	qp->tx.offset += tx_header_size(fpdu) + fpdu->len + fpdu_trailer(fpdu);
	fpdu->done = fpdu->len;
	kiw_count(qp->stats, KIW_STAT_TX_FPDUS);
	return true;
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

	kiw_sock_assert_held_bh(qp->ks);
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

	kiw_sock_assert_held_bh(qp->ks);
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
