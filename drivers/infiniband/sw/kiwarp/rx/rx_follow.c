// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Fast path for the middle of a message.
 *
 * A segment that continues its message where the previous one ended usually differs from that one
 * only in its offset (see kiw_ddp_continues()), and goes to the same region. rx.c looks up for each
 * segment where it goes and how much room there is. Here rx_find_sink() does so once for many
 * segments. For each segment, only those things are checked that can change: whether all of it has
 * arrived and is contiguous, the room that is left, the budget, the state of the QP and the rights
 * that it grants, the CRC, the markers, the header, and whether the STag is still valid. While the
 * STag is valid, the access rights, protection domain and bounds of its region do not change. The
 * region stays in use (kiw_mr_use()) throughout. An invalidation of the region still waits for one
 * segment at most, because it clears the STag before it waits.
 *
 * On any mismatch the segment stays in the socket's receive queue, and rx.c decides whether it is a
 * fault.
 *
 * Owns: nothing. Context: socket lock held, BHs off, within the MR table section of the run.
 */
#include "rx_follow.h"

#include "mem/copy.h"
#include "mem/mr_copy.h"
#include "mem/sgl.h"
#include "proto/crc.h"
#include "qp/qp.h"
#include "rx_fpdu.h"
#include "rx_run.h"

/**
 * struct rx_sink - memory for the rest of the message in progress
 * @mr: the region, checked and in use
 * @stag: the STag, valid as long as it names @mr
 * @addr: where the next byte goes; advanced by what is placed
 * @room: bytes of room from there on
 * @access: access flags that the QP must grant as well
 */
struct rx_sink {
	struct kiw_mr *mr;
	u32 stag;
	u64 addr;
	u64 room;
	int access;
};

/* From the end of the previous segment of a Write to the end of the region */
static void follow_sink_of_write(const struct kiw_ddp_seg *seg, struct rx_sink *sink)
{
	sink->addr = seg->to + seg->payload_len;
	sink->room = sink->mr->base + sink->mr->length - sink->addr;
	sink->access = IB_ACCESS_REMOTE_WRITE;
}

/* The rest of the current SGE of a work request */
static void follow_sink_of_sgl(const struct kiw_sgl *sgl, struct rx_sink *sink)
{
	const struct kiw_sge *sge = &sgl->sge[sgl->cur];

	sink->addr = sge->addr + sgl->off;
	sink->room = sge->length - sgl->off;
	sink->access = 0;
}

/* The STag of the memory where the next segment goes; 0: none that rx_follow.c can use */
static u32 follow_stag(const struct kiw_qp *qp, const struct kiw_ddp_seg *seg)
{
	const struct kiw_sgl *sgl = &qp->rx.sgl;

	if (seg->opcode == KIW_RDMAP_WRITE)
		return seg->stag;
	if (sgl->cur == sgl->num_sge || kiw_sgl_is_dma_lkey(sgl, sgl->sge[sgl->cur].lkey))
		return 0;
	return sgl->sge[sgl->cur].lkey;
}

/*
 * Find where the next segments go. Return: false: leave them to rx.c; otherwise the caller passes
 * @sink->mr to kiw_mr_done().
 */
static bool rx_find_sink(struct kiw_qp *qp, const struct kiw_ddp_seg *seg, struct rx_sink *sink)
{
	const bool is_write = seg->opcode == KIW_RDMAP_WRITE;

	sink->stag = follow_stag(qp, seg);
	sink->mr = kiw_mr_use(&qp->rx.section, sink->stag);
	if (!sink->mr)
		return false;
	if (is_write)
		follow_sink_of_write(seg, sink);
	else
		follow_sink_of_sgl(&qp->rx.sgl, sink);
	if (!kiw_mr_is_dma(sink->mr) &&
	    kiw_mr_check(sink->mr, qp->ib.pd, is_write ? sink->access : IB_ACCESS_LOCAL_WRITE,
			 sink->addr, sink->room) == KIW_MEM_OK)
		return true;
	kiw_mr_done(sink->mr);
	return false;
}

static bool rx_may_follow(const struct kiw_qp *qp, const struct rx_sink *sink)
{
	return kiw_rx_may_place(qp) && READ_ONCE(sink->mr->stag) == sink->stag &&
	       (READ_ONCE(qp->access) & sink->access) == sink->access;
}

/* kiw_rx_verify() for a contiguous FPDU */
static inline bool rx_holds_at_once(const struct kiw_qp *qp, const struct kiw_rx_cursor *cur,
				    u32 total, bool is_marked)
{
	const u8 *data = cur->data;

	if (qp->conn.crc && !kiw_crc_holds(kiw_crc_update(kiw_crc_init(), data, total)))
		return false;
	return !is_marked || kiw_mpa_markers_agree(data, total, kiw_rx_offset(qp, cur));
}

/*
 * Copy @len bytes of payload from *@data to contiguous memory. The first marker follows after *@gap
 * bytes. Advances *@data and *@gap.
 */
static void rx_copy_marked(u8 *dst, const u8 **data, u32 len, u32 *gap)
{
	u32 here = min(len, *gap);
	const u8 *src = *data;

	kiw_copy(dst, src, here);
	*gap -= here;
	src += here;
	for (dst += here, len -= here; len >= KIW_MARKER_SPACE; len -= KIW_MARKER_SPACE) {
		kiw_copy(dst, src + KIW_MARKER_SIZE, KIW_MARKER_SPACE);
		dst += KIW_MARKER_SPACE;
		src += KIW_MARKER_INTERVAL;
		*gap = 0;
	}
	if (len) {
		kiw_copy(dst, src + KIW_MARKER_SIZE, len);
		src += KIW_MARKER_SIZE + len;
		*gap = KIW_MARKER_SPACE - len;
	}
	*data = src;
}

/* Copy @len bytes of payload from @data to @addr; the first marker follows after @gap bytes. */
static void rx_place_marked(struct kiw_mr *mr, u64 addr, const u8 *data, u32 len, u32 gap)
{
	void *dst;
	u32 here;

	for (; len; len -= here, addr += here) {
		here = len;
		dst = kiw_mr_map(mr, addr, &here);
		rx_copy_marked(dst, &data, here, &gap);
		kiw_mr_unmap(mr, addr, dst, true);
	}
}

/*
 * Place segments that follow, and advance @sink; compiled separately for streams with and without
 * markers.
 */
static __always_inline void rx_place_following(struct kiw_qp *qp, struct kiw_rx_run *run,
					       struct rx_sink *sink, bool is_marked)
{
	struct kiw_rx_fpdu *fpdu = &run->fpdu;
	const u32 hdr_len = fpdu->seg.hdr_len;
	const u32 len = fpdu->seg.payload_len;
	struct kiw_rx_cursor *cur = &run->cur;
	const u8 *data;
	u32 gap;

	while (sink->room >= len && kiw_rx_has_budget(run)) {
		data = cur->data;
		gap = is_marked ? kiw_rx_frame_alike(qp, cur, fpdu) : fpdu->extent.total;
		if (min(cur->here, cur->avail) < fpdu->extent.total ||
		    gap < sizeof(struct kiw_wire_untagged) || !rx_may_follow(qp, sink))
			break;
		/* kiw_ddp_continues() advances @fpdu, but rx.c decodes an invalid FPDU anew. */
		if (!kiw_ddp_continues(data, fpdu->head, &fpdu->seg) ||
		    !rx_holds_at_once(qp, cur, fpdu->extent.total, is_marked))
			break;
		if (is_marked)
			rx_place_marked(sink->mr, sink->addr, data + hdr_len, len, gap - hdr_len);
		else
			kiw_mr_copy_to(sink->mr, sink->addr, data + hdr_len, len);
		kiw_sock_rx_skip(qp->ks, cur, fpdu->extent.total);
		run->num++;
		run->octets += len;
		sink->addr += len;
		sink->room -= len;
	}
}

/**
 * kiw_rx_follow() - place the segments that continue the message in progress
 * @qp: the QP
 * @run: the run; its FPDU has been placed and is not the last of its message. Its position is
 *	advanced behind the last FPDU placed here
 *
 * Context: socket lock held, BHs off, within @qp->rx.section.
 */
void kiw_rx_follow(struct kiw_qp *qp, struct kiw_rx_run *run)
{
	const struct kiw_ddp_seg *seg = &run->fpdu.seg;
	struct rx_sink sink;
	u32 placed;
	u64 room;

	kiw_sock_assert_held_bh(qp->ks);
	if (!seg->payload_len || !rx_find_sink(qp, seg, &sink))
		return;
	room = sink.room;
	if (qp->conn.rx_markers)
		rx_place_following(qp, run, &sink, true);
	else
		rx_place_following(qp, run, &sink, false);
	kiw_mr_done(sink.mr);
	placed = room - sink.room;
	if (seg->opcode == KIW_RDMAP_WRITE) {
		qp->rx.written += placed;
		return;
	}
	qp->rx.sgl.off += placed;
	if (seg->opcode == KIW_RDMAP_READ_RESP)
		kiw_orq_oldest(&qp->tx.orq)->received += placed;
	else
		qp->rx.queue[KIW_QN_SEND].mo += placed;
}
