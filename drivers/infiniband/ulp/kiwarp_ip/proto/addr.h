/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Link-layer addresses: RFC 4391 9.1.1 with the flags of RFC 4755 3.1. */
#ifndef KIP_PROTO_ADDR_H
#define KIP_PROTO_ADDR_H

#include <linux/types.h>

#include "wire.h"

void kip_addr_make(u8 *lladdr, u32 qpn, const u8 *gid, u8 flags);
void kip_addr_key(u8 *key, const u8 *lladdr);
bool kip_addr_same(const u8 *a, const u8 *b);
bool kip_addr_same_gid(const u8 *a, const u8 *b);
int kip_addr_compare(const u8 *a, const u8 *b);
u32 kip_addr_qpn(const u8 *lladdr);
bool kip_addr_is_multicast(const u8 *lladdr);
bool kip_addr_is_ipv4(const u8 *lladdr);
bool kip_addr_is_valid(const u8 *lladdr);
void kip_addr_gid_of_ipv4(u8 *gid, __be32 ipv4);
__be32 kip_addr_ipv4(const u8 *lladdr);
void kip_addr_broadcast(u8 *lladdr, u16 pkey);

/* Whether the node accepts connections (RFC 4755 3.1) */
static inline bool kip_addr_has_rc(const u8 *lladdr)
{
	return lladdr[0] & KIP_ADDR_RC;
}

#endif /* KIP_PROTO_ADDR_H */
