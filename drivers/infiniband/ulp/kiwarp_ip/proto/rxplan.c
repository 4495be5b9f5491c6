// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * How the memory of a receive is split into pieces.
 *
 * Small pieces come first, so that a short message uses little memory. Sizes about double, so that
 * a few pieces suffice. With 6 SGEs a Receive MTU of 65524 needs
 * 256 + 4 K + 4 K + 8 K + 16 K + 32 K bytes.
 */
#include "rxplan.h"

#include <linux/minmax.h>
#include <linux/string.h>

static u32 rxplan_round_up(u32 bytes)
{
	u32 size = KIP_RX_PIECE_MIN;

	while (size < bytes)
		size <<= 1;
	return size;
}

/**
 * kip_rxplan_make() - split a receive into pieces
 * @plan: plan to write
 * @rx_mtu: bytes that the receive has to hold, the first %KIP_RX_HEAD included
 * @max_sge: maximum number of SGEs of a receive
 *
 * Context: any.
 * Return: whether @max_sge suffices; a single SGE holds no more than %KIP_RX_HEAD.
 */
bool kip_rxplan_make(struct kip_rxplan *plan, u32 rx_mtu, unsigned int max_sge)
{
	const unsigned int most = min(max_sge, KIP_RX_PIECES + 1U) - 1;
	u32 rest = rx_mtu > KIP_RX_HEAD ? rx_mtu - KIP_RX_HEAD : 0;
	u32 size[KIP_RX_PIECES];
	unsigned int nr = 0, i;

	memset(plan, 0, sizeof(*plan));
	if (!max_sge)
		return false;
	for (; rest && nr < most; nr++) {
		size[nr] = rxplan_round_up(nr + 1 < most ? (rest + 1) / 2 : rest);
		rest -= min(rest, size[nr]);
	}
	if (rest)
		return false;
	plan->nr = nr;
	for (i = 0; i < nr; i++)
		plan->size[i] = size[nr - 1 - i];
	return true;
}

/**
 * kip_rxplan_bytes() - compute the memory of one receive
 * @plan: its pieces
 *
 * Context: any.
 * Return: bytes, the first piece included.
 */
u32 kip_rxplan_bytes(const struct kip_rxplan *plan)
{
	u32 bytes = KIP_RX_HEAD;
	unsigned int i;

	for (i = 0; i < plan->nr; i++)
		bytes += plan->size[i];
	return bytes;
}
