// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Link-layer addresses.
 *
 * An address is 20 octets: the first holds flags, the next three the QPN, and the rest the
 * GID. On iWARP the QPN of a node is a port number, the same for UDP and TCP, and its GID is the IP
 * address of the underlay.
 *
 * The functions keep no state and may be called in any context.
 */
#include "addr.h"

#include <linux/string.h>
#include <linux/unaligned.h>

#define GID_OFFSET	4
#define IPV4_OFFSET	16

static const u8 mapped[12] = { [10] = 0xff, [11] = 0xff };

/**
 * kip_addr_make() - build an address
 * @lladdr: %KIP_ADDR_LEN octets to write
 * @qpn: QPN; only the low 24 bits are used
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
 * kip_addr_key() - copy an address with its flags zeroed
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
 * kip_addr_same() - compare two addresses
 * @a: address
 * @b: another
 *
 * Context: any.
 * Return: whether both identify the same node; flags are ignored.
 */
bool kip_addr_same(const u8 *a, const u8 *b)
{
	return !kip_addr_compare(a, b);
}

/**
 * kip_addr_same_gid() - compare the GIDs of two addresses
 * @a: address
 * @b: another
 *
 * Context: any.
 * Return: whether the GIDs are equal; QPN and flags are ignored.
 */
bool kip_addr_same_gid(const u8 *a, const u8 *b)
{
	return !memcmp(a + GID_OFFSET, b + GID_OFFSET, KIP_ADDR_LEN - GID_OFFSET);
}

/**
 * kip_addr_compare() - order two addresses numerically
 * @a: address
 * @b: another
 *
 * RFC 4755 3.3: flags are zeroed, and the most significant octet comes first.
 *
 * Context: any.
 * Return: negative, 0 or positive when @a is smaller than, equal to or greater than @b.
 */
int kip_addr_compare(const u8 *a, const u8 *b)
{
	return memcmp(a + 1, b + 1, KIP_ADDR_LEN - 1);
}

/**
 * kip_addr_qpn() - extract the QPN of an address
 * @lladdr: address
 *
 * Context: any.
 * Return: the QPN, 24 bits.
 */
u32 kip_addr_qpn(const u8 *lladdr)
{
	return get_unaligned_be32(lladdr) & KIP_QPN_MASK;
}

/**
 * kip_addr_is_multicast() - test for a group address
 * @lladdr: address
 *
 * Context: any.
 * Return: whether the GID is that of a group; true for the broadcast address.
 */
bool kip_addr_is_multicast(const u8 *lladdr)
{
	return lladdr[GID_OFFSET] == 0xff;
}

/**
 * kip_addr_is_ipv4() - test for an IPv4 underlay
 * @lladdr: address
 *
 * Context: any.
 * Return: whether the GID is an IPv4-mapped address.
 */
bool kip_addr_is_ipv4(const u8 *lladdr)
{
	return !memcmp(lladdr + GID_OFFSET, mapped, sizeof(mapped));
}

static bool addr_is_usable_ipv4(const u8 *ip)
{
	/* This network, loopback, multicast and above */
	return ip[0] && ip[0] != 127 && ip[0] < 224;
}

/**
 * kip_addr_is_valid() - check that a node can have this address
 * @lladdr: address
 *
 * The QPN must be a port number. The GID must be a unicast address: an IPv4 one that is neither
 * loopback nor in 0.0.0.0/8 or 224.0.0.0/3, or an IPv6 one in 2000::/3 or fc00::/7.
 *
 * Context: any.
 * Return: whether the address is valid.
 */
bool kip_addr_is_valid(const u8 *lladdr)
{
	const u8 *gid = lladdr + GID_OFFSET;
	u32 qpn = kip_addr_qpn(lladdr);

	if (!qpn || qpn > 0xffff)
		return false;
	if (kip_addr_is_ipv4(lladdr))
		return addr_is_usable_ipv4(lladdr + IPV4_OFFSET);
	/* Global or unique local: 2000::/3, fc00::/7 */
	return (gid[0] & 0xe0) == 0x20 || (gid[0] & 0xfe) == 0xfc;
}

/**
 * kip_addr_gid_of_ipv4() - map an IPv4 address to a GID
 * @gid: 16 octets to write
 * @ipv4: IPv4 address
 *
 * Context: any.
 */
void kip_addr_gid_of_ipv4(u8 *gid, __be32 ipv4)
{
	memcpy(gid, mapped, sizeof(mapped));
	memcpy(gid + sizeof(mapped), &ipv4, sizeof(ipv4));
}

/**
 * kip_addr_ipv4() - extract the IPv4 address from a link-layer address
 * @lladdr: address for which kip_addr_is_ipv4() is true
 *
 * Context: any.
 * Return: the IPv4 address.
 */
__be32 kip_addr_ipv4(const u8 *lladdr)
{
	return get_unaligned((const __be32 *)(lladdr + IPV4_OFFSET));
}

/**
 * kip_addr_broadcast() - build the broadcast address of a partition
 * @lladdr: %KIP_ADDR_LEN octets to write
 * @pkey: partition; the address always has %KIP_PKEY_FULL set
 *
 * The GID follows RFC 4391 4, figure 2, with scope 2. The QPN is %KIP_QPN_MULTICAST.
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
