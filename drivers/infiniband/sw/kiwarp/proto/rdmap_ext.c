// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * RDMAP extensions: the headers of RFC 7306 5.2 and 6.2, and the arithmetic of 5.1.
 *
 * Values are in the byte order of this CPU: it is that of the memory on which Atomic Operations
 * operate (5.1.1, 5.1.2).
 */
#include "rdmap_ext.h"

#include <linux/bitfield.h>
#include <linux/string.h>
#include <linux/unaligned.h>
#include <asm/byteorder.h>

#define REQ_AT(field)	offsetof(struct kiw_wire_atomic_req, field)
#define RESP_AT(field)	offsetof(struct kiw_wire_atomic_resp, field)

/**
 * kiw_atomic_req_encode() - write an Atomic Operation Request header
 * @wire: written completely
 * @req: what to ask for
 *
 * RFC 7306 5.2.1.
 *
 * Context: any.
 */
void kiw_atomic_req_encode(struct kiw_wire_atomic_req *wire, const struct kiw_atomic_req *req)
{
	*wire = (struct kiw_wire_atomic_req) {
		.aopcode = FIELD_PREP(KIW_ATOMIC_AOPCODE_MASK, req->aopcode),
		.id = cpu_to_be32(req->id),
		.stag = cpu_to_be32(req->stag),
		.to = cpu_to_be64(req->to),
		.data = cpu_to_be64(req->data),
		.mask = cpu_to_be64(req->mask),
		.compare = cpu_to_be64(req->compare),
		.compare_mask = cpu_to_be64(req->compare_mask),
	};
}

/**
 * kiw_atomic_req_decode() - read an Atomic Operation Request header
 * @wire: 52 octets, any alignment
 * @req: set to the decoded header
 *
 * RFC 7306 5.2.1. Any value is possible; nothing is checked here. The reserved bits are ignored.
 *
 * Context: any.
 */
void kiw_atomic_req_decode(const u8 *wire, struct kiw_atomic_req *req)
{
	req->aopcode = FIELD_GET(KIW_ATOMIC_AOPCODE_MASK, wire[REQ_AT(aopcode)]);
	req->id = get_unaligned_be32(wire + REQ_AT(id));
	req->stag = get_unaligned_be32(wire + REQ_AT(stag));
	req->to = get_unaligned_be64(wire + REQ_AT(to));
	req->data = get_unaligned_be64(wire + REQ_AT(data));
	req->mask = get_unaligned_be64(wire + REQ_AT(mask));
	req->compare = get_unaligned_be64(wire + REQ_AT(compare));
	req->compare_mask = get_unaligned_be64(wire + REQ_AT(compare_mask));
}

/**
 * kiw_atomic_resp_encode() - write an Atomic Operation Response header
 * @wire: written completely
 * @resp: what to answer
 *
 * RFC 7306 5.2.2.
 *
 * Context: any.
 */
void kiw_atomic_resp_encode(struct kiw_wire_atomic_resp *wire, const struct kiw_atomic_resp *resp)
{
	*wire = (struct kiw_wire_atomic_resp) {
		.id = cpu_to_be32(resp->id),
		.value = cpu_to_be64(resp->value),
	};
}

/**
 * kiw_atomic_resp_decode() - read an Atomic Operation Response header
 * @wire: 12 octets, any alignment
 * @resp: set to the decoded header
 *
 * RFC 7306 5.2.2.
 *
 * Context: any.
 */
void kiw_atomic_resp_decode(const u8 *wire, struct kiw_atomic_resp *resp)
{
	resp->id = get_unaligned_be32(wire + RESP_AT(id));
	resp->value = get_unaligned_be64(wire + RESP_AT(value));
}

/*
 * RFC 7306 5.1.1: a set bit of @tops is the most significant bit of a field, whose carry is
 * dropped. Without these bits no sum can carry into the next field; they are added without a carry.
 */
static u64 ext_add_fields(u64 a, u64 b, u64 tops)
{
	return ((a & ~tops) + (b & ~tops)) ^ ((a ^ b) & tops);
}

/**
 * kiw_atomic_result() - what an Atomic Operation makes of a value
 * @req: the request; its @aopcode is known, see kiw_atomic_is_known()
 * @old: the value in memory
 *
 * RFC 7306 5.1.
 *
 * Context: any.
 * Return: the value to store.
 */
u64 kiw_atomic_result(const struct kiw_atomic_req *req, u64 old)
{
	if (req->aopcode == KIW_ATOMIC_FETCH_ADD)
		return ext_add_fields(old, req->data, req->mask);
	if ((req->compare ^ old) & req->compare_mask)
		return old;
	return (old & ~req->mask) | (req->data & req->mask);
}

/**
 * kiw_immediate_encode() - write the payload of Immediate Data
 * @wire: 8 octets, any alignment
 * @imm: the immediate data of the verbs
 *
 * RFC 7306 6.2 has 8 octets for the ULP, the verbs have 4. Those are the first 4 octets; the others
 * are 0.
 *
 * Context: any.
 */
void kiw_immediate_encode(u8 *wire, __be32 imm)
{
	memset(wire, 0, KIW_IMMEDIATE_SIZE);
	memcpy(wire, &imm, sizeof(imm));
}

/**
 * kiw_immediate_decode() - read the payload of Immediate Data
 * @wire: 8 octets, any alignment
 *
 * RFC 7306 6.2.
 *
 * Context: any.
 * Return: the first 4 octets; the verbs have no room for the others.
 */
__be32 kiw_immediate_decode(const u8 *wire)
{
	__be32 imm;

	memcpy(&imm, wire, sizeof(imm));
	return imm;
}
