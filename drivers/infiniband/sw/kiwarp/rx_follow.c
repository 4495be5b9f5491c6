// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The middle of a message.
 *
 * A segment that goes on with its message where the one before it ended differs from that
 * one in its offset and in nothing else (see kiw_ddp_goes_on()), and it goes to the same
 * region. So what rx.c does for each segment is done here once for many: where the next ones
 * go and how much room there is. For each there remains what can be different: whether all of
 * it is there, the budget, the state of the QP, the CRC, the markers, the header, and that the
 * STag is valid yet. Rights, the protection domain and bounds of a region do not change while
 * it is, and a region with users to count, of fast registration, is left to rx.c.
 *
 * On any mismatch the segment is left in the queue for rx.c, which decides whether it is a fault.
 *
 * Owns: nothing. Context: socket lock held, BHs off, in the section of the run.
 */
#include "rx_fpdu.h"

#include "proto/crc.h"
#include "qp.h"
#include "sgl.h"

/**
 * struct rx_sink - memory for what goes on with the message in progress
 * @mr: its region, checked
 * @stag: valid as long as it names @mr
 * @addr: where the next octet goes
 * @room: octets there are
 * @access: what the QP must allow, too
 */
struct rx_sink {
	struct kiw_mr *mr;
	u32 stag;
	u64 addr;
	u64 room;
	int access;
};

/* Behind the last segment of a Write, to the end of the region */
static void sink_of_write(const struct kiw_ddp_seg *seg, struct rx_sink *sink)
{
	sink->stag = seg->stag;
	sink->addr = seg->to + seg->payload_len;
	sink->room = sink->mr->base + sink->mr->length - sink->addr;
	sink->access = IB_ACCESS_REMOTE_WRITE;
}

/* The rest of an entry of a work request */
static void sink_of_sgl(const struct kiw_sgl *sgl, struct rx_sink *sink)
{
	const struct kiw_sge *sge = &sgl->sge[sgl->cur];

	sink->stag = sge->lkey;
	sink->addr = sge->addr + sgl->off;
	sink->room = sge->length - sgl->off;
	sink->access = 0;
}

/* Where the next segments go; false: to nowhere that is known. */
static bool rx_find_sink(struct kiw_qp *qp, const struct kiw_rx_fpdu *in, struct rx_sink *sink)
{
	const struct kiw_sgl *sgl = &qp->rx.sgl;
	const bool is_write = in->seg.opcode == KIW_RDMAP_WRITE;

	sink->mr = qp->rx.section.last;
	if (!sink->mr || sink->mr->fast || kiw_mr_is_dma(sink->mr))
		return false;
	if (is_write)
		sink_of_write(&in->seg, sink);
	else if (sgl->cur < sgl->num_sge && !kiw_sgl_is_dma_lkey(sgl, sgl->sge[sgl->cur].lkey))
		sink_of_sgl(sgl, sink);
	else
		return false;
	return sink->stag && kiw_mr_check(sink->mr, qp->ib.pd,
					  is_write ? sink->access : IB_ACCESS_LOCAL_WRITE,
					  sink->addr, sink->room) == KIW_MEM_OK;
}

static bool rx_may_follow(const struct kiw_qp *qp, const struct rx_sink *sink)
{
	return kiw_rx_may_place(qp) && READ_ONCE(sink->mr->stag) == sink->stag &&
	       (READ_ONCE(qp->access) & sink->access) == sink->access;
}

/* kiw_rx_verify(), of an FPDU that lies in one place */
static inline bool rx_holds_at_once(const struct kiw_qp *qp, const struct kiw_rx_fpdu *in,
				    bool is_marked)
{
	const u8 *data = in->cur.data;
	u32 total = in->extent.total;

	if (qp->conn.crc && !kiw_crc_holds(kiw_crc_update(kiw_crc_init(), data, total)))
		return false;
	return !is_marked ||
	       kiw_mpa_markers_agree(data, total, kiw_rx_offset(qp, &in->cur));
}

/* @len octets of payload from @data on to @addr; there are @gap octets before a marker. */
static inline void rx_place_at_once(struct kiw_mr *mr, u64 addr, const u8 *data, u32 len, u32 gap)
{
	for (; len > gap; gap = KIW_MARKER_INTERVAL - KIW_MARKER_SIZE) {
		kiw_mr_copy_to(mr, addr, data, gap);
		addr += gap;
		len -= gap;
		data += gap + KIW_MARKER_SIZE;
	}
	kiw_mr_copy_to(mr, addr, data, len);
}

/*
 * Place all that follows; compiled for streams with markers, and for those without.
 * Return: octets of payload.
 */
static __always_inline u32 rx_place_following(struct kiw_qp *qp, struct kiw_rx_fpdu *in,
					      const struct rx_sink *sink, bool is_marked)
{
	const u32 hdr_len = in->seg.hdr_len;
	const u32 len = in->seg.payload_len;
	u32 placed = 0;
	const u8 *data;
	u32 gap;

	while (sink->room - placed >= len && kiw_rx_has_budget(in)) {
		data = in->cur.data;
		gap = is_marked ? kiw_rx_frame_alike(qp, in) : in->extent.total;
		if (min(in->cur.here, in->cur.avail) < in->extent.total ||
		    gap < sizeof(struct kiw_wire_untagged) || !rx_may_follow(qp, sink))
			break;
		/* If it does not hold, @in has gone on too far, and rx.c takes all anew. */
		if (!kiw_ddp_goes_on(data, in->head, &in->seg) ||
		    !rx_holds_at_once(qp, in, is_marked))
			break;
		rx_place_at_once(sink->mr, sink->addr + placed, data + hdr_len, len,
				 is_marked ? gap - hdr_len : len);
		kiw_sock_rx_skip(qp->ks, &in->cur, in->extent.total);
		in->num++;
		in->octets += len;
		placed += len;
	}
	return placed;
}

/**
 * kiw_rx_follow() - place the segments that go on with the message in progress
 * @qp: the QP
 * @in: @in->cur is behind an FPDU that was placed and is not the last of its message; is behind
 *	the last that was placed here
 *
 * Context: socket lock held, BHs off, inside of @qp->rx.section.
 */
void kiw_rx_follow(struct kiw_qp *qp, struct kiw_rx_fpdu *in)
{
	struct rx_sink sink;
	u32 placed;

	kiw_sock_assert_held(qp->ks);
	if (!in->seg.payload_len || !rx_find_sink(qp, in, &sink))
		return;
	if (qp->conn.rx_markers)
		placed = rx_place_following(qp, in, &sink, true);
	else
		placed = rx_place_following(qp, in, &sink, false);
	if (in->seg.opcode == KIW_RDMAP_WRITE)
		return;
	qp->rx.sgl.off += placed;
	if (in->seg.opcode == KIW_RDMAP_READ_RESP)
		kiw_orq_oldest(&qp->tx.orq)->received += placed;
	else
		qp->rx.queue[KIW_QN_SEND].mo += placed;
}
