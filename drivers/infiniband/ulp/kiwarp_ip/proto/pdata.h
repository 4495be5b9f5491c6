/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Private data of Requests, Replies and rejects: RFC 4755 6 and kiwarp_ip's extension. */
#ifndef KIP_PROTO_PDATA_H
#define KIP_PROTO_PDATA_H

#include <linux/types.h>

#include "wire.h"

/**
 * enum kip_reason - why a Request is rejected
 * @KIP_REASON_NONE: it is not rejected
 * @KIP_REASON_CROSSED: both ends sent a Request, and the other one is used (RFC 4755 3.3)
 * @KIP_REASON_PKEY: the sender has another P_Key
 * @KIP_REASON_MTU: its Receive MTU is below %KIP_RX_MTU_MIN
 * @KIP_REASON_FULL: no memory, no room for another peer or connection, or no RDMA resources for it
 * @KIP_REASON_BUSY: the interface does not take this Request: its mode is datagram, the sender
 *	is not listed, or the Request is stale
 * @KIP_REASON_FORMAT: the private data has another format or too few receives, or the sender's
 *	address is impossible
 * @KIP_REASON_COUNT: number of the above
 */
enum kip_reason {
	KIP_REASON_NONE,
	KIP_REASON_CROSSED,
	KIP_REASON_PKEY,
	KIP_REASON_MTU,
	KIP_REASON_FULL,
	KIP_REASON_BUSY,
	KIP_REASON_FORMAT,
	KIP_REASON_COUNT,
};

/**
 * struct kip_pdata - what an end tells about itself
 * @qpn: its QPN, 24 bits
 * @mtu: its Receive MTU in octets, header included
 * @reason: of a reject; may have any value when received
 * @pkey: its partition
 * @data_receives: data messages it can take at once
 * @control_receives: control messages it can take in addition
 * @instance: a number that it chose when its interface came up, or when it last ended all
 *	connections
 * @serial: grows with each of its Requests since then
 */
struct kip_pdata {
	u32 qpn;
	u32 mtu;
	u8 reason;
	u16 pkey;
	u16 data_receives;
	u16 control_receives;
	u32 instance;
	u32 serial;
};

void kip_pdata_build(struct kip_wire_pdata *wire, const struct kip_pdata *pdata);
bool kip_pdata_parse(struct kip_pdata *pdata, const void *data, unsigned int len);
enum kip_reason kip_pdata_check(const struct kip_pdata *pdata, u16 pkey);
bool kip_pdata_is_newer(const struct kip_pdata *pdata, u32 instance, u32 serial);
u32 kip_pdata_mtu(u32 local, u32 remote);
const char *kip_reason_name(unsigned int reason);

#endif /* KIP_PROTO_PDATA_H */
