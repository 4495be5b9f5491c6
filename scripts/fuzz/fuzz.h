/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Shared by all harnesses. A harness is one file: it splits an input, feeds it to one parser of
 * proto/, and checks invariants of the results. The sanitizers detect accesses out of bounds;
 * for that purpose a function gets its data in a block of exactly the size that it may read.
 *
 * An input is any sequence of octets followed by FUZZ_PARAMS octets of parameters. So an
 * example from an RFC with parameters appended is a valid input.
 */
#ifndef KIW_FUZZ_H
#define KIW_FUZZ_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <linux/types.h>
#include <linux/unaligned.h>

#define FUZZ_PARAMS	16

#define ARRAY_SIZE(array)	(sizeof(array) / sizeof((array)[0]))

/* Checks an invariant; a violation crashes, so that libFuzzer keeps the input. */
#define FUZZ_CHECK(cond) do { \
	if (!(cond)) { \
		fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #cond); \
		abort(); \
	} \
} while (0)

/**
 * struct fuzz_input - one input
 * @data: the octets, without the parameters
 * @size: number of octets
 * @param: FUZZ_PARAMS octets of parameters
 */
struct fuzz_input {
	const u8 *data;
	size_t size;
	u8 param[FUZZ_PARAMS];
};

/* Splits what libFuzzer gives; a short input consists of parameters only */
static inline struct fuzz_input fuzz_input(const u8 *data, size_t size)
{
	struct fuzz_input in = { .data = data };
	size_t params = size < FUZZ_PARAMS ? size : FUZZ_PARAMS;

	in.size = size - params;
	if (params)
		memcpy(in.param, data + in.size, params);
	return in;
}

/* The parameters from offset @at as a number */
static inline u32 fuzz_u32(const struct fuzz_input *in, unsigned int at)
{
	return get_unaligned_be32(in->param + at);
}

/*
 * Copies the first @want octets into a block of exactly that size, so that the sanitizer
 * detects any access beyond it. A short input is padded with zeros. The caller frees the block.
 */
static inline u8 *fuzz_block(const struct fuzz_input *in, size_t want)
{
	size_t have = in->size < want ? in->size : want;
	u8 *block = malloc(want);

	if (want && !block)
		abort();
	if (have)
		memcpy(block, in->data, have);
	if (want > have)
		memset(block + have, 0, want - have);
	return block;
}

/* run.sh renames this to the function that libFuzzer calls */
int fuzz_one(const u8 *data, size_t size);

#endif /* KIW_FUZZ_H */
