// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Private data: 8 octets of RFC 4755 6, then those that flow control needs.
 *
 * An end that sends only the 8 octets is refused, as nothing would bound its Sends, and a
 * Send without a receive ends an iWARP connection (RFC 5041 7.1).
 */
#include "pdata.h"

#include <asm/byteorder.h>
#include <linux/minmax.h>
#include <linux/string.h>

#include "credit.h"

/**
 * kip_pdata_build() - the octets of private data
 * @wire: to write
 * @pdata: what to say
 *
 * Context: any.
 */
void kip_pdata_build(struct kip_wire_pdata *wire, const struct kip_pdata *pdata)
{
	*wire = (struct kip_wire_pdata) {
		.qpn = cpu_to_be32(pdata->qpn & KIP_QPN_MASK),
		.mtu = cpu_to_be32(pdata->mtu),
		.magic = cpu_to_be32(KIP_PDATA_MAGIC),
		.version = KIP_PDATA_VERSION,
		.reason = pdata->reason,
		.pkey = cpu_to_be16(pdata->pkey),
		.data_receives = cpu_to_be16(pdata->data_receives),
		.control_receives = cpu_to_be16(pdata->control_receives),
		.instance = cpu_to_be32(pdata->instance),
		.serial = cpu_to_be32(pdata->serial),
	};
}

/**
 * kip_pdata_parse() - read private data
 * @pdata: to write
 * @data: what came, of any alignment
 * @len: octets of it; what follows the known ones is not looked at
 *
 * Context: any.
 * Return: whether they are of this format; @pdata is zeroed if not.
 */
bool kip_pdata_parse(struct kip_pdata *pdata, const void *data, unsigned int len)
{
	struct kip_wire_pdata wire;

	memset(pdata, 0, sizeof(*pdata));
	if (len < sizeof(wire))
		return false;
	memcpy(&wire, data, sizeof(wire));
	if (be32_to_cpu(wire.magic) != KIP_PDATA_MAGIC || wire.version != KIP_PDATA_VERSION)
		return false;
	/* RFC 4755 6: the reserved octet is ignored */
	pdata->qpn = be32_to_cpu(wire.qpn) & KIP_QPN_MASK;
	pdata->mtu = be32_to_cpu(wire.mtu);
	pdata->reason = wire.reason;
	pdata->pkey = be16_to_cpu(wire.pkey);
	pdata->data_receives = be16_to_cpu(wire.data_receives);
	pdata->control_receives = be16_to_cpu(wire.control_receives);
	pdata->instance = be32_to_cpu(wire.instance);
	pdata->serial = be32_to_cpu(wire.serial);
	return true;
}

/**
 * kip_pdata_check() - can there be a connection with an end that says this
 * @pdata: of its Request or Reply
 * @pkey: the local partition
 *
 * Context: any.
 * Return: %KIP_REASON_NONE, or why not.
 */
enum kip_reason kip_pdata_check(const struct kip_pdata *pdata, u16 pkey)
{
	if (!pdata->qpn || pdata->qpn > 0xffff)
		return KIP_REASON_FORMAT;
	if (!pdata->data_receives || pdata->control_receives < KIP_CONTROL_RECEIVES)
		return KIP_REASON_FORMAT;
	if (pdata->pkey != pkey)
		return KIP_REASON_PKEY;
	if (pdata->mtu < KIP_RX_MTU_MIN)
		return KIP_REASON_MTU;
	return KIP_REASON_NONE;
}

/**
 * kip_pdata_is_newer() - is a Request later than what is known of its sender
 * @pdata: of the Request
 * @instance: of the sender, from its last Request or Reply
 * @serial: likewise
 *
 * Two streams keep no order. A Request that the sender has given up in favour of the
 * connection that exists may come after that was established, and must not replace it.
 *
 * Context: any.
 * Return: whether it is: made after what is known, or by a sender that has started anew.
 */
bool kip_pdata_is_newer(const struct kip_pdata *pdata, u32 instance, u32 serial)
{
	return pdata->instance != instance || (s32)(pdata->serial - serial) > 0;
}

/**
 * kip_pdata_mtu() - IP MTU of a connection
 * @local: Receive MTU of this end, %KIP_RX_MTU_MIN at least
 * @remote: of the other, likewise
 *
 * RFC 4755 5.1: both ends use the smaller of the two, less the header.
 *
 * Context: any.
 * Return: octets.
 */
u32 kip_pdata_mtu(u32 local, u32 remote)
{
	return min(local, remote) - sizeof(struct kip_wire_hdr);
}

/**
 * kip_reason_name() - a reason for people
 * @reason: any value
 *
 * Context: any.
 * Return: its name, "unknown" when it has none.
 */
const char *kip_reason_name(unsigned int reason)
{
	static const char * const names[KIP_REASON_COUNT] = {
		[KIP_REASON_NONE]	= "none",
		[KIP_REASON_CROSSED]	= "crossed",
		[KIP_REASON_PKEY]	= "P_Key",
		[KIP_REASON_MTU]	= "MTU",
		[KIP_REASON_FULL]	= "full",
		[KIP_REASON_BUSY]	= "busy",
		[KIP_REASON_FORMAT]	= "format",
	};

	return reason < KIP_REASON_COUNT ? names[reason] : "unknown";
}
