// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Building FPDUs, RFC 5044 4. An FPDU is written into the room behind the batch, which is
 * in one piece: header, payload, PAD, then the CRC over what was written, while that is in
 * the cache. Where the peer asked for markers, it is written in pieces between them.
 *
 * Context: socket lock held, BHs off.
 */
#include "tx_fpdu.h"

#include <linux/string.h>
#include <linux/unaligned.h>

#include "proto/crc.h"
#include "proto/ddp.h"
#include "proto/mpa.h"
#include "qp.h"

/**
 * struct tx_marked - writing an FPDU with its markers
 * @begin: of the FPDU, with the marker before it if there is one
 * @start: its offset in the stream
 * @dst: where the next octet goes
 * @gap: octets to the next marker
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

/* Octets of payload that an FPDU may have which takes @octets of the stream at @offset */
static u32 tx_payload(const struct kiw_qp *qp, u32 hdr_len, u32 offset, u32 octets)
{
	if (qp->conn.tx_markers)
		octets = kiw_mpa_unmarked_size(offset, octets);
	/* The longest ULPDU has PAD behind it, which is no room for more. */
	octets = min_t(u32, octets - KIW_FPDU_LEN_SIZE - KIW_FPDU_CRC_SIZE, KIW_MULPDU_MAX);
	return octets - hdr_len;
}

/*
 * As many as fill whole segments in @space octets, if the first does, without the last of the
 * message, of which @left octets are left: one may have a marker less than the first.
 */
static u32 tx_count(const struct kiw_tx_fpdu *fpdu, u32 left, const struct kiw_tx_room *room,
		    u32 space)
{
	u32 most = (left - 1) / (fpdu->len + KIW_MARKER_SIZE);

	return max(min3(room->all / room->octets, space / room->octets, most), 1U);
}

/**
 * kiw_tx_begin_fpdu() - find room for FPDUs, and how many and how large they are
 * @qp: the QP
 * @fpdu: its @is_tagged says which header it will have; @at, @count and @len are set
 * @left: octets of payload that the message has left
 * @room: what they may take
 *
 * With markers that is MULPDU as RFC 5044 4.5 has it "dynamically adjusted" to those that
 * will really be there.
 *
 * Context: socket lock held, BHs off.
 * Return: false: no room.
 */
bool kiw_tx_begin_fpdu(struct kiw_qp *qp, struct kiw_tx_fpdu *fpdu, u32 left,
		       const struct kiw_tx_room *room)
{
	u32 hdr_len = tx_header_size(fpdu) - KIW_FPDU_LEN_SIZE;
	u32 want = kiw_mpa_fpdu_size(min_t(u32, left, KIW_MULPDU_MAX - hdr_len) + hdr_len);
	u32 space;

	kiw_sock_assert_held(qp->ks);
	if (qp->conn.tx_markers)
		want = kiw_mpa_marked_size(qp->tx.offset, want);
	want = min(want, room->octets);
	fpdu->at = kiw_txbuf_reserve(&qp->tx.buf, want, &space);
	if (!fpdu->at)
		return false;
	fpdu->len = min(left, tx_payload(qp, hdr_len, qp->tx.offset, min(want, space)));
	fpdu->size = room->octets;
	fpdu->count = fpdu->len < left ? tx_count(fpdu, left, room, space) : 1;
	fpdu->done = 0;
	return true;
}

/* A length that is known is copied in a few steps. */
static u8 *tx_write_header(const struct kiw_tx_fpdu *fpdu, u8 *dst)
{
	if (fpdu->is_tagged) {
		memcpy(dst, &fpdu->tagged, sizeof(fpdu->tagged));
		return dst + sizeof(fpdu->tagged);
	}
	memcpy(dst, &fpdu->untagged, sizeof(fpdu->untagged));
	return dst + sizeof(fpdu->untagged);
}

/* Everything before the CRC, in a stream without markers; NULL: no payload. */
static u8 *tx_write_plain(const struct kiw_tx_fpdu *fpdu, struct kiw_tx_source *src)
{
	u8 *dst = tx_write_header(fpdu, fpdu->at);
	u32 size;

	if (!kiw_tx_source_read(src, dst, fpdu->len))
		return NULL;
	dst += fpdu->len;
	/* Up to where the CRC goes, or into that, which is written later. */
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

/* Room for up to @len octets before the next marker. */
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

/* Everything before the CRC, with markers: one between PAD and CRC is of this FPDU. */
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

/* The next of several: its header, and how much payload it has */
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

/* Return: octets of the stream, or 0: the payload may not be read. */
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
 * kiw_tx_end_fpdu() - write FPDUs, and make them the batch's last
 * @qp: the QP
 * @fpdu: from kiw_tx_begin_fpdu(), with the header of the first; used up, @fpdu->done is set
 * @src: the payload is taken from here
 *
 * Each one is in the batch wholly or not at all. RFC 5044 4: header, payload, PAD and CRC. One
 * that ends before its segment, as it does in front of a marker, is the last.
 *
 * Context: socket lock held, BHs off since kiw_tx_begin_fpdu(), within the engine's section
 * of the MR table.
 * Return: false: the payload of the one behind those that were written may not be read.
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
 * @data: its payload
 * @len: octets, less than what any segment has room for
 *
 * Context: socket lock held, BHs off, within the engine's section of the MR table.
 * Return: false: no room.
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
