// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Link-layer addresses: 20 octets, of which the first holds flags, the next three the
 * QPN and the rest the GID. On iWARP the QPN is the number of a UDP and TCP port, and the
 * GID the IP address of the underlay.
 *
 * No function keeps anything; all may be called in any context.
 */
#include "addr.h"

#include <linux/string.h>
#include <linux/unaligned.h>

#define GID_OFFSET	4
#define IPV4_OFFSET	16

static const u8 mapped[12] = { [10] = 0xff, [11] = 0xff };

/**
 * kip_addr_make() - put an address together
 * @lladdr: %KIP_ADDR_LEN octets to write
 * @qpn: QPN; the bits above 24 are not used
 * @gid: 16 octets
 * @flags: %KIP_ADDR_RC or 0
 *
 * Context: any.
 */
void kip_addr_make(u8 *lladdr, u32 qpn, const u8 *gid, u8 flags)
{
	put_unaligned_be32((u32)flags << 24 | (qpn & KIP_QPN_MASK), lladdr);
	memcpy(lladdr + GID_OFFSET, gid, 16);
}

/**
 * kip_addr_key() - an address without what does not identify the node
 * @key: %KIP_ADDR_LEN octets to write
 * @lladdr: address
 *
 * RFC 4755 3.3: addresses are compared with their flags zeroed.
 *
 * Context: any.
 */
void kip_addr_key(u8 *key, const u8 *lladdr)
{
	memcpy(key, lladdr, KIP_ADDR_LEN);
	key[0] = 0;
}

/**
 * kip_addr_same() - do two addresses name one node
 * @a: address
 * @b: another
 *
 * Context: any.
 * Return: whether they do; flags do not count.
 */
bool kip_addr_same(const u8 *a, const u8 *b)
{
	return !kip_addr_compare(a, b);
}

/**
 * kip_addr_same_gid() - have two addresses one GID
 * @a: address
 * @b: another
 *
 * Context: any.
 * Return: whether they have; QPN and flags do not count.
 */
bool kip_addr_same_gid(const u8 *a, const u8 *b)
{
	return !memcmp(a + GID_OFFSET, b + GID_OFFSET, KIP_ADDR_LEN - GID_OFFSET);
}

/**
 * kip_addr_compare() - which of two addresses is numerically smaller
 * @a: address
 * @b: another
 *
 * RFC 4755 3.3: flags are zeroed, the most significant octet counts first.
 *
 * Context: any.
 * Return: negative, 0 or positive, as @a is smaller than, equal to or greater than @b.
 */
int kip_addr_compare(const u8 *a, const u8 *b)
{
	return memcmp(a + 1, b + 1, KIP_ADDR_LEN - 1);
}

/**
 * kip_addr_qpn() - the QPN of an address
 * @lladdr: address
 *
 * Context: any.
 * Return: 24 bits.
 */
u32 kip_addr_qpn(const u8 *lladdr)
{
	return get_unaligned_be32(lladdr) & KIP_QPN_MASK;
}

/**
 * kip_addr_is_multicast() - is the GID that of a group
 * @lladdr: address
 *
 * Context: any.
 * Return: whether it is; so is the broadcast address.
 */
bool kip_addr_is_multicast(const u8 *lladdr)
{
	return lladdr[GID_OFFSET] == 0xff;
}

/**
 * kip_addr_is_ipv4() - is the underlay's address one of IPv4
 * @lladdr: address
 *
 * Context: any.
 * Return: whether it is.
 */
bool kip_addr_is_ipv4(const u8 *lladdr)
{
	return !memcmp(lladdr + GID_OFFSET, mapped, sizeof(mapped));
}

static bool is_usable_ipv4(const u8 *ip)
{
	/* This network, loopback, multicast and above */
	return ip[0] && ip[0] != 127 && ip[0] < 224;
}

/**
 * kip_addr_is_valid() - can there be a node with this address
 * @lladdr: address
 *
 * Its QPN has to be a port, and its GID an address that packets can be sent to from
 * anywhere: link-local ones mean nothing without the name of a link.
 *
 * Context: any.
 * Return: whether there can.
 */
bool kip_addr_is_valid(const u8 *lladdr)
{
	const u8 *gid = lladdr + GID_OFFSET;
	u32 qpn = kip_addr_qpn(lladdr);

	if (!qpn || qpn > 0xffff)
		return false;
	if (kip_addr_is_ipv4(lladdr))
		return is_usable_ipv4(lladdr + IPV4_OFFSET);
	/* Global or unique local: 2000::/3, fc00::/7 */
	return (gid[0] & 0xe0) == 0x20 || (gid[0] & 0xfe) == 0xfc;
}

/**
 * kip_addr_gid_of_ipv4() - the GID of an address of IPv4
 * @gid: 16 octets to write
 * @ipv4: address
 *
 * Context: any.
 */
void kip_addr_gid_of_ipv4(u8 *gid, __be32 ipv4)
{
	memcpy(gid, mapped, sizeof(mapped));
	memcpy(gid + sizeof(mapped), &ipv4, sizeof(ipv4));
}

/**
 * kip_addr_ipv4() - the address of IPv4 in a link-layer address
 * @lladdr: kip_addr_is_ipv4() of it
 *
 * Context: any.
 * Return: address.
 */
__be32 kip_addr_ipv4(const u8 *lladdr)
{
	return get_unaligned((const __be32 *)(lladdr + IPV4_OFFSET));
}

/**
 * kip_addr_broadcast() - the broadcast address of a partition
 * @lladdr: %KIP_ADDR_LEN octets to write
 * @pkey: partition; %KIP_PKEY_FULL is set in any case
 *
 * RFC 4391 4, figure 2, with scope 2, and the QPN of groups.
 *
 * Context: any.
 */
void kip_addr_broadcast(u8 *lladdr, u16 pkey)
{
	static const u8 gid[16] = {
		0xff, 0x12, 0x40, 0x1b, [12] = 0xff, 0xff, 0xff, 0xff,
	};

	kip_addr_make(lladdr, KIP_QPN_MULTICAST, gid, 0);
	put_unaligned_be16(pkey | KIP_PKEY_FULL, lladdr + 8);
}
