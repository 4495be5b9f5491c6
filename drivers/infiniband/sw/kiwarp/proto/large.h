/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Large FPDUs: when an FPDU may be larger than a TCP segment.
 *
 * RFC 5044 5.1 asks senders for FPDUs that fit into segments, for the sake of receivers that place
 * segments out of order. To a receiver that reads the stream in order, such FPDUs only mean more
 * work, at both ends. Such a receiver can tell the sender so with the announcement: an RDMA Write
 * without payload whose TO is %KIW_ANNOUNCE_TO. RFC 5041 5.2 forbids receivers to check the TO of
 * such a message, so it means nothing to peers that do not know it. Documentation/large-fpdus.rst
 * has the rules, and why they are safe.
 *
 * Pure: called from any context, keeps no state between calls.
 */
#ifndef KIW_PROTO_LARGE_H
#define KIW_PROTO_LARGE_H

#include "ddp.h"
#include "wire.h"

/**
 * enum kiw_fpdus - the policy "fpdu": how large the FPDUs of this end are
 * @KIW_FPDUS_SEGMENT: ULPDUs of at most MULPDU (RFC 5044 4.5); this end announces nothing
 * @KIW_FPDUS_LARGE: large, regardless of the peer
 * @KIW_FPDUS_AUTO: large if the peer has announced that it takes them as well
 */
enum kiw_fpdus {
	KIW_FPDUS_SEGMENT,
	KIW_FPDUS_LARGE,
	KIW_FPDUS_AUTO,
};

/**
 * kiw_large_is_announced() - is a segment the announcement?
 * @seg: the first segment of the peer, decoded
 *
 * Context: any.
 * Return: true: the peer does not need FPDUs that fit into segments.
 */
static inline bool kiw_large_is_announced(const struct kiw_ddp_seg *seg)
{
	return seg->opcode == KIW_RDMAP_WRITE && seg->last && !seg->payload_len &&
	       seg->to == KIW_ANNOUNCE_TO;
}

/**
 * kiw_large_is_used() - may this end send large FPDUs?
 * @fpdus: the policy
 * @is_announced: the peer has sent the announcement
 *
 * Context: any.
 * Return: true: it may.
 */
static inline bool kiw_large_is_used(enum kiw_fpdus fpdus, bool is_announced)
{
	return fpdus == KIW_FPDUS_LARGE || (fpdus == KIW_FPDUS_AUTO && is_announced);
}

/**
 * kiw_large_rtr_to() - the TO of an RTR by RDMA Write
 * @fpdus: the policy
 *
 * Such an RTR is an empty RDMA Write anyway, so the announcement of an initiator takes no separate
 * message. An initiator with another RTR, or without one, does not announce itself.
 *
 * Context: any.
 * Return: the TO.
 */
static inline u64 kiw_large_rtr_to(enum kiw_fpdus fpdus)
{
	return fpdus == KIW_FPDUS_SEGMENT ? 0 : KIW_ANNOUNCE_TO;
}

/**
 * kiw_large_owes() - does this end have to send a separate message to announce itself?
 * @fpdus: the policy
 * @is_initiator: this end has sent the MPA Request
 * @is_announced: the peer has sent the announcement
 *
 * A responder has no RTR to send. It announces itself only to a peer that knows what that means.
 *
 * Context: any.
 * Return: true: it does.
 */
static inline bool kiw_large_owes(enum kiw_fpdus fpdus, bool is_initiator, bool is_announced)
{
	return fpdus != KIW_FPDUS_SEGMENT && !is_initiator && is_announced;
}

#endif /* KIW_PROTO_LARGE_H */
