/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * A batch of FPDUs in pages of our own, ready to be handed to TCP.
 *
 * Owns: the pages until TCP has them. Octets are appended in stream order, each
 * copied once; the CRC is taken over the copy of an FPDU while it is in the cache.
 */
#ifndef KIW_TXBUF_H
#define KIW_TXBUF_H

#include <linux/bvec.h>
#include <linux/types.h>

/* One GSO burst of 64 KiB in page fragments of 32 KiB, or 4 KiB under pressure */
#define KIW_TXBUF_BVECS		20
#define KIW_TXBUF_TARGET	65536

struct kiw_sock;

/* Write @len octets to @dst; false: they cannot be had */
typedef bool (*kiw_fill_fn)(void *arg, void *dst, u32 len);

/**
 * struct kiw_txbuf - a batch
 * @bv: page fragments, in stream order; their pages stay until TCP has the whole batch
 * @first: first that TCP has not taken as a whole
 * @num: used entries of @bv
 * @begun: octets of it that TCP has taken; @bv begins behind them
 * @taken: octets in all that TCP has taken
 * @len: octets in all that TCP has not taken
 */
struct kiw_txbuf {
	struct bio_vec bv[KIW_TXBUF_BVECS];
	u8 first;
	u8 num;
	u32 begun;
	u32 taken;
	u32 len;
};

/**
 * struct kiw_txbuf_mark - a position to go back to
 * @num: &struct kiw_txbuf.num
 * @bv_len: length of the last fragment
 * @len: &struct kiw_txbuf.len
 */
struct kiw_txbuf_mark {
	u8 num;
	u32 bv_len;
	u32 len;
};

/* BHs off */
bool kiw_txbuf_put(struct kiw_txbuf *buf, const void *data, u32 len);
bool kiw_txbuf_fill(struct kiw_txbuf *buf, u32 len, kiw_fill_fn fill, void *arg);
u32 kiw_txbuf_crc(const struct kiw_txbuf *buf, const struct kiw_txbuf_mark *mark);
void kiw_txbuf_mark(const struct kiw_txbuf *buf, struct kiw_txbuf_mark *mark);
void kiw_txbuf_rollback(struct kiw_txbuf *buf, const struct kiw_txbuf_mark *mark);
int kiw_txbuf_send(struct kiw_txbuf *buf, struct kiw_sock *ks, bool end_of_record);
void kiw_txbuf_peek(const struct kiw_txbuf *buf, u32 at, void *dst, u32 len);
void kiw_txbuf_cut(struct kiw_txbuf *buf, u32 end);

/* Any context */
void kiw_txbuf_drop(struct kiw_txbuf *buf);

/* Process context */
void kiw_txbuf_module_exit(void);

#endif /* KIW_TXBUF_H */
