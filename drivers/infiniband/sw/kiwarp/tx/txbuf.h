/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * A batch of FPDUs in the driver's own pages, ready to be handed to TCP. Payload may be in pages
 * of a consumer instead, which are lent to TCP.
 *
 * Owns: a reference to the page of each fragment, until TCP has taken the whole batch or the
 * fragment is dropped. Bytes are appended in stream order, and each is copied here once. The CRC is
 * computed over the copy of an FPDU while it is in the CPU cache.
 */
#ifndef KIW_TXBUF_H
#define KIW_TXBUF_H

#include <linux/bvec.h>
#include <linux/minmax.h>
#include <linux/skbuff.h>
#include <linux/types.h>

/*
 * Enough for a GSO burst of 64 KiB in chunks of 32 KiB; in single pages, a batch may be shorter.
 * With more, a QP would not fit into 2 KiB in 64-bit kernels for one CPU.
 */
#define KIW_TXBUF_BVECS		17
/* Page fragments of a batch with lent pages: as many as TCP puts into one buffer */
#define KIW_TXBUF_LENT_BVECS	min_t(unsigned int, KIW_TXBUF_BVECS, MAX_SKB_FRAGS)
#define KIW_TXBUF_TARGET	65536

struct kiw_sock;

/**
 * struct kiw_txbuf - a batch
 * @bv: page fragments, in stream order; their pages stay until TCP has the whole batch or they are
 *	dropped
 * @ubuf: who lends some of them, with a reference, or NULL
 * @first: index of the first fragment that TCP has not taken completely
 * @num: number of fragments in @bv
 * @may_reserve: the batch may use the kernel's memory reserves
 * @begun: bytes of fragment @first that TCP has taken; its bio_vec starts after them
 * @taken: total bytes that TCP has taken
 * @len: total bytes that TCP has not taken
 */
struct kiw_txbuf {
	struct bio_vec bv[KIW_TXBUF_BVECS];
	struct ubuf_info *ubuf;
	u8 first;
	u8 num;
	bool may_reserve;
	u32 begun;
	u32 taken;
	u32 len;
};

/* BHs off */
u8 *kiw_txbuf_reserve(const struct kiw_txbuf *buf, u32 want, u32 *room);
void kiw_txbuf_commit(struct kiw_txbuf *buf, u32 len);
void kiw_txbuf_append(struct kiw_txbuf *buf, struct page *page, u32 off, u32 len);
int kiw_txbuf_send(struct kiw_txbuf *buf, struct kiw_sock *ks, unsigned int how);
void kiw_txbuf_peek(const struct kiw_txbuf *buf, u32 at, void *dst, u32 len);
void kiw_txbuf_cut(struct kiw_txbuf *buf, u32 end);

/* Any context */
void kiw_txbuf_drop(struct kiw_txbuf *buf);

#endif /* KIW_TXBUF_H */
