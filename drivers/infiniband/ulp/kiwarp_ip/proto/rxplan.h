/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* How the memory of a receive is split into pieces. */
#ifndef KIP_PROTO_RXPLAN_H
#define KIP_PROTO_RXPLAN_H

#include <linux/types.h>

/* Bytes of the first piece, which becomes the linear part of a packet */
#define KIP_RX_HEAD		256
#define KIP_RX_PIECES		8
#define KIP_RX_PIECE_MIN	4096

/**
 * struct kip_rxplan - the pieces after the first one, smallest first
 * @nr: number of pieces
 * @size: bytes of each, a power of two, at least %KIP_RX_PIECE_MIN
 */
struct kip_rxplan {
	unsigned int nr;
	u32 size[KIP_RX_PIECES];
};

bool kip_rxplan_make(struct kip_rxplan *plan, u32 rx_mtu, unsigned int max_sge);
u32 kip_rxplan_bytes(const struct kip_rxplan *plan);

#endif /* KIP_PROTO_RXPLAN_H */
