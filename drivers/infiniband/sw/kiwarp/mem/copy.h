/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Copying payload.
 *
 * In recent kernels for x86-64, memcpy() is a string instruction only on CPUs with the feature
 * FSRM. On others it is a loop, which is slower for lengths such as those of FPDUs, and slowest if
 * it has to go backward. If gcc knows that a copy is short, it uses a string instruction on every
 * CPU. So a copy here is made of pieces whose length has a limit, as TCP's copies are, which never
 * exceed a page. Other compilers and architectures call memcpy() for each piece.
 */
#ifndef KIW_COPY_H
#define KIW_COPY_H

#include <linux/minmax.h>
#include <linux/sizes.h>
#include <linux/string.h>

/* Maximum length of a piece; gcc uses string instructions up to 8192 bytes. */
#define KIW_COPY_PIECE	SZ_4K

/**
 * kiw_copy() - copy payload
 * @dst: destination, kernel memory
 * @src: source, kernel memory that does not overlap with @dst
 * @len: length in bytes
 *
 * Context: any.
 */
static __always_inline void kiw_copy(void *dst, const void *src, u32 len)
{
	u32 piece;

	for (; len; len -= piece, dst += piece, src += piece) {
		piece = min_t(u32, len, KIW_COPY_PIECE);
		memcpy(dst, src, piece);
	}
}

#endif /* KIW_COPY_H */
