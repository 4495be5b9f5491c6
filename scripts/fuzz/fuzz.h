/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * What the harnesses share. A harness is one file: it takes an input apart, feeds one
 * parser of proto/, and states what has to be true of the results. That nothing is read or
 * written out of bounds is for the sanitizers to see; so what a function may read is
 * handed to it in a block of exactly that size.
 *
 * An input is any octets, and behind them FUZZ_PARAMS octets of parameters. So an
 * example from an RFC is an input as it is, with parameters appended.
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

/* An invariant of the parser; a violation is a crash, which libFuzzer keeps. */
#define FUZZ_CHECK(cond) do { \
	if (!(cond)) { \
		fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #cond); \
		abort(); \
	} \
} while (0)

/**
 * struct fuzz_input - one input
 * @data: the octets
 * @size: how many
 * @param: FUZZ_PARAMS octets of parameters
 */
struct fuzz_input {
	const u8 *data;
	size_t size;
	u8 param[FUZZ_PARAMS];
};

/* An input from what libFuzzer gives; of a short one all is parameters */
static inline struct fuzz_input fuzz_input(const u8 *data, size_t size)
{
	struct fuzz_input in = { .data = data };
	size_t params = size < FUZZ_PARAMS ? size : FUZZ_PARAMS;

	in.size = size - params;
	if (params)
		memcpy(in.param, data + in.size, params);
	return in;
}

/* The parameters from @at on as a number */
static inline u32 fuzz_u32(const struct fuzz_input *in, unsigned int at)
{
	return get_unaligned_be32(in->param + at);
}

/*
 * The first @want octets in a block of their own, of exactly that size: the sanitizer
 * sees any access beyond. What the input lacks is zero. To be freed.
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

/* libFuzzer calls it by a name of its own, which run.sh defines */
int fuzz_one(const u8 *data, size_t size);

#endif /* KIW_FUZZ_H */
