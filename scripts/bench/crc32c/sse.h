/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * The CRC32c of a buffer by the crc32 instruction of x86-64's SSE4.2, which needs none of
 * the FPU's registers. One stream, eight octets at a time. The module beside this file and the
 * traffic program in user space use the same code.
 */
#ifndef KIW_BENCH_SSE_H
#define KIW_BENCH_SSE_H

static inline unsigned int crc32c_sse(unsigned int crc, const unsigned char *data,
				      unsigned long len)
{
	unsigned long long wide = crc;

	for (; len >= 8; len -= 8, data += 8)
		asm("crc32q %1, %0" : "+r" (wide) : "m" (*(const unsigned long long *)data));
	for (; len; len--, data++)
		asm("crc32b %1, %k0" : "+r" (wide) : "m" (*data));
	return wide;
}

#endif /* KIW_BENCH_SSE_H */
