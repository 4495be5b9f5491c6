// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Private data: the 8 octets of RFC 4755 6, followed by the extension of kiwarp_ip.
 *
 * A peer that sends only the 8 octets is refused: nothing would bound the number of its Sends,
 * and a Send that finds no posted receive may end an iWARP connection (RFC 5041 7.1).
 *
 * The functions keep no state and may be called in any context.
 */
#include "pdata.h"

#include <asm/byteorder.h>
#include <linux/minmax.h>
#include <linux/string.h>

#include "credit.h"

/**
 * kip_pdata_build() - build private data
 * @wire: private data to write
 * @pdata: its contents
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
 * kip_pdata_parse() - parse private data
 * @pdata: contents to write
 * @data: private data as received, any alignment
 * @len: octets received; anything after the known fields is ignored
 *
 * Context: any.
 * Return: whether the format is known; otherwise @pdata is zeroed.
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
 * kip_pdata_check() - check that a connection to this peer is possible
 * @pdata: private data of its Request or Reply
 * @pkey: the local partition
 *
 * Context: any.
 * Return: %KIP_REASON_NONE, or the reason why it is not.
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
 * kip_pdata_is_newer() - compare a Request with the last known state of its sender
 * @pdata: private data of the Request
 * @instance: last known instance of the sender
 * @serial: serial number from the same message
 *
 * There is no ordering between two streams. A Request that the sender has abandoned in favour
 * of the existing connection may arrive after that connection was established, and must not
 * replace it.
 *
 * Context: any.
 * Return: whether the Request is newer, or its sender has restarted.
 */
bool kip_pdata_is_newer(const struct kip_pdata *pdata, u32 instance, u32 serial)
{
	return pdata->instance != instance || (s32)(pdata->serial - serial) > 0;
}

/**
 * kip_pdata_mtu() - compute the IP MTU of a connection
 * @local: Receive MTU of this end, at least %KIP_RX_MTU_MIN
 * @remote: Receive MTU of the peer, at least %KIP_RX_MTU_MIN
 *
 * RFC 4755 5.1: both ends use the smaller of the two, minus the header.
 *
 * Context: any.
 * Return: the MTU in octets.
 */
u32 kip_pdata_mtu(u32 local, u32 remote)
{
	return min(local, remote) - sizeof(struct kip_wire_hdr);
}

/**
 * kip_reason_name() - name of a reason
 * @reason: any value
 *
 * Context: any.
 * Return: its name, or "unknown" if it has none.
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
