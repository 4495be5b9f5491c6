/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * MPA startup: the Request and Reply frames (RFC 5044 7.1, RFC 6581 6 and 9) as
 * values, and the negotiation as a function of both frames.
 */
#ifndef KIW_PROTO_MPA_NEG_H
#define KIW_PROTO_MPA_NEG_H

#include "perr.h"
#include "wire.h"

/* Kinds of Ready-To-Receive, RFC 6581 9.2 */
#define KIW_RTR_SEND	BIT(0)
#define KIW_RTR_WRITE	BIT(1)
#define KIW_RTR_READ	BIT(2)
#define KIW_RTR_KINDS	3

/**
 * struct kiw_mpa_frame - a Request or Reply, decoded
 * @rev: MPA revision
 * @markers: M
 * @crc: C
 * @reject: R (of a Reply; a Request's is ignored)
 * @enhanced: S, hence @ird, @ord, @p2p and @rtr are meaningful
 * @p2p: A, peer-to-peer
 * @rtr: %KIW_RTR_ bits B, C, D; 0 unless @p2p
 * @ird: inbound read depth, 0..0x3fff (0x3fff: not negotiated)
 * @ord: outbound read depth, likewise
 * @pd_offset: offset of the ULP's private data in the frame, in octets
 * @pd_len: length of the ULP's private data, without the enhanced data, in octets
 */
struct kiw_mpa_frame {
	u8 rev;
	bool markers;
	bool crc;
	bool reject;
	bool enhanced;
	bool p2p;
	u8 rtr;
	u16 ird;
	u16 ord;
	u16 pd_offset;
	u16 pd_len;
};

/**
 * enum kiw_mpa_verdict - result of parsing the start of a stream
 * @KIW_MPA_MORE: a valid beginning of a frame, not complete yet
 * @KIW_MPA_OK: a complete frame
 * @KIW_MPA_BAD_KEY: not MPA
 * @KIW_MPA_WRONG_ROLE: a Request instead of a Reply, or the reverse
 * @KIW_MPA_BAD_REV: a revision that this end does not speak
 * @KIW_MPA_BAD_LENGTH: PD_Length over 512, or too short for the enhanced data
 */
enum kiw_mpa_verdict {
	KIW_MPA_MORE,
	KIW_MPA_OK,
	KIW_MPA_BAD_KEY,
	KIW_MPA_WRONG_ROLE,
	KIW_MPA_BAD_REV,
	KIW_MPA_BAD_LENGTH,
};

/**
 * struct kiw_mpa_local - what this end wants and supports
 * @rev: highest revision to speak (1 or 2)
 * @crc: ask for CRC
 * @markers: ask for markers in what the peer sends
 * @p2p: ask for peer-to-peer (initiator)
 * @rdmac: also speak revision 0, see RFC 5044 appendix C
 * @rtr: %KIW_RTR_ kinds that this end supports
 * @rtr_order: the same in order of preference, 0 after the last
 * @ird: inbound read depth that the ULP wants, 0..max_ird
 * @ord: outbound read depth that the ULP wants
 * @max_ird: maximum number of inbound Reads that this device can serve on a connection
 * @max_ord: maximum number of Reads that this device can have outstanding on a connection
 */
struct kiw_mpa_local {
	u8 rev;
	bool crc;
	bool markers;
	bool p2p;
	bool rdmac;
	u8 rtr;
	u8 rtr_order[KIW_RTR_KINDS];
	u16 ird;
	u16 ord;
	u16 max_ird;
	u16 max_ord;
};

/**
 * struct kiw_mpa_outcome - what both ends agreed on
 * @rev: revision in force
 * @version: of DDP and RDMAP: 1, or 0 with revision 0
 * @crc: CRC generated and checked
 * @tx_markers: the peer asked for markers, or revision 0, which always has them
 * @rx_markers: we asked for markers, or likewise
 * @p2p: peer-to-peer mode
 * @rtr: initiator: the one %KIW_RTR_ kind that it sends; responder: all kinds offered
 * @ird: our inbound read depth
 * @ord: our outbound read depth
 */
struct kiw_mpa_outcome {
	u8 rev;
	u8 version;
	bool crc;
	bool tx_markers;
	bool rx_markers;
	bool p2p;
	u8 rtr;
	u16 ird;
	u16 ord;
};

enum kiw_mpa_verdict kiw_mpa_parse(const u8 *buf, size_t len, bool reply,
				   const struct kiw_mpa_local *local,
				   struct kiw_mpa_frame *frame, size_t *need);
size_t kiw_mpa_build(u8 *buf, const struct kiw_mpa_frame *frame, bool reply,
		     const void *pdata, u16 pd_len);
bool kiw_mpa_wants_plain(const struct kiw_mpa_frame *req, const struct kiw_mpa_frame *reply);
void kiw_mpa_request(const struct kiw_mpa_local *local, struct kiw_mpa_frame *req);
void kiw_mpa_peer_limits(const struct kiw_mpa_frame *req, const struct kiw_mpa_local *local,
			 u16 *ird, u16 *ord);
bool kiw_mpa_answer(const struct kiw_mpa_local *local, const struct kiw_mpa_frame *req,
		    struct kiw_mpa_frame *reply, struct kiw_mpa_outcome *out);
void kiw_mpa_refuse(const struct kiw_mpa_local *local, const struct kiw_mpa_frame *req,
		    struct kiw_mpa_frame *reply);
enum kiw_perr kiw_mpa_conclude(const struct kiw_mpa_local *local, const struct kiw_mpa_frame *req,
			       const struct kiw_mpa_frame *reply, struct kiw_mpa_outcome *out);

#endif /* KIW_PROTO_MPA_NEG_H */
