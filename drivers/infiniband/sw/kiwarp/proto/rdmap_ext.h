/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * RDMAP extensions (RFC 7306): the headers of Atomic Requests and Responses, what an
 * Atomic Operation does to the value in memory, and Immediate Data.
 */
#ifndef KIW_PROTO_RDMAP_EXT_H
#define KIW_PROTO_RDMAP_EXT_H

#include <linux/types.h>

#include "wire.h"

/**
 * struct kiw_atomic_req - Atomic Operation Request, RFC 7306 5.2.1
 * @to: what to operate on: tagged offset
 * @data: FetchAdd: what to add; CmpSwap: the new value
 * @mask: FetchAdd: the most significant bit of each field; CmpSwap: bits of the new value
 * @compare: CmpSwap: what to compare with
 * @compare_mask: CmpSwap: bits to compare
 * @id: Request Identifier
 * @stag: what to operate on: STag
 * @aopcode: &enum kiw_aopcode; a received one may have any value of 4 bits
 */
struct kiw_atomic_req {
	u64 to;
	u64 data;
	u64 mask;
	u64 compare;
	u64 compare_mask;
	u32 id;
	u32 stag;
	u8 aopcode;
};

/**
 * struct kiw_atomic_resp - Atomic Operation Response, RFC 7306 5.2.2
 * @id: Request Identifier of the request
 * @value: what was in memory before the operation
 */
struct kiw_atomic_resp {
	u32 id;
	u64 value;
};

void kiw_atomic_req_encode(struct kiw_wire_atomic_req *wire, const struct kiw_atomic_req *req);
void kiw_atomic_req_decode(const u8 *wire, struct kiw_atomic_req *req);
void kiw_atomic_resp_encode(struct kiw_wire_atomic_resp *wire, const struct kiw_atomic_resp *resp);
void kiw_atomic_resp_decode(const u8 *wire, struct kiw_atomic_resp *resp);
u64 kiw_atomic_result(const struct kiw_atomic_req *req, u64 old);
void kiw_immediate_encode(u8 *wire, __be32 imm);
__be32 kiw_immediate_decode(const u8 *wire);

/**
 * kiw_atomic_is_known() - does an Atomic Operation Code exist?
 * @aopcode: any value
 *
 * RFC 7306 5.2.1 figure 5.
 *
 * Context: any.
 * Return: true for FetchAdd and CmpSwap.
 */
static inline bool kiw_atomic_is_known(u8 aopcode)
{
	return aopcode == KIW_ATOMIC_FETCH_ADD || aopcode == KIW_ATOMIC_CMP_SWAP;
}

#endif /* KIW_PROTO_RDMAP_EXT_H */
