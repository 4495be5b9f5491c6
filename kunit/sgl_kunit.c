// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The cursor over SGEs: where it is after any number of bytes, and what it refuses. The SGEs are
 * kernel addresses, or have STags of a table in which there is nothing.
 */
#include <linux/types.h>

/* There is no region to write to */
#define KIW_MR_COPY_H

struct kiw_mr;

static inline void kiw_mr_copy_to(const struct kiw_mr *mr, u64 addr, const void *src, u32 len)
{
}

#include "mem/sgl.c"

#include "util.h"

#define SGL_LKEY	0x1234
#define SGL_BYTES	12
#define SGL_ROOM	64
#define SGL_UNUSED	0xc5

/* Lengths of SGEs, SGL_BYTES in total, some empty */
static const u32 sgl_lengths[] = { 0, 5, 0, 0, 1, 6, 0 };

/**
 * struct sgl_world - SGEs and their memory
 * @sgl: the cursor
 * @sge: its entries, each in another part of @room
 * @table: in which no region is
 * @section: a section of @table
 * @room: memory
 */
struct sgl_world {
	struct kiw_sgl sgl;
	struct kiw_sge sge[ARRAY_SIZE(sgl_lengths)];
	struct kiw_mr_table table;
	struct kiw_mr_section section;
	u8 room[ARRAY_SIZE(sgl_lengths)][SGL_ROOM];
};

static struct sgl_world *sgl_open(struct kunit *test)
{
	struct sgl_world *world = kunit_kzalloc(test, sizeof(*world), GFP_KERNEL);
	unsigned int i;

	KUNIT_ASSERT_NOT_NULL(test, world);
	KUNIT_ASSERT_EQ(test, kiw_mr_table_init(&world->table), 0);
	memset(world->room, SGL_UNUSED, sizeof(world->room));
	for (i = 0; i < ARRAY_SIZE(sgl_lengths); i++)
		world->sge[i] = (struct kiw_sge) {
			(uintptr_t)&world->room[i][1], sgl_lengths[i], SGL_LKEY,
		};
	world->sgl = (struct kiw_sgl) {
		.section = &world->section, .dma_lkey = SGL_LKEY, .is_kernel = true,
		.num_sge = ARRAY_SIZE(sgl_lengths), .sge = world->sge,
	};
	return world;
}

static void sgl_close(struct sgl_world *world)
{
	kiw_mr_table_uninit(&world->table);
}

/* The byte at @offset from the start of the first entry */
static u8 *sgl_byte(struct sgl_world *world, u32 offset)
{
	unsigned int i;

	for (i = 0; offset >= sgl_lengths[i]; i++)
		offset -= sgl_lengths[i];
	return &world->room[i][1 + offset];
}

/* From any position, any number of bytes go to the right places, and to no others. */
static void bytes_go_where_they_belong(struct kunit *test)
{
	static const u8 data[SGL_BYTES] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12 };
	struct sgl_world *world = sgl_open(test);
	u32 from, len, part, i;

	kiw_mr_enter(&world->table, &world->section);
	for (from = 0; from < SGL_BYTES; from++) {
		for (len = 0; len <= SGL_BYTES - from; len++) {
			for (part = 0; part <= len; part++) {
				kiw_sgl_seek(&world->sgl, from);
				KUNIT_EXPECT_EQ(test, (int)kiw_sgl_put(&world->sgl, data, part),
						(int)KIW_MEM_OK);
				KUNIT_EXPECT_EQ(test, (int)kiw_sgl_put(&world->sgl, data + part,
								       len - part),
						(int)KIW_MEM_OK);
				for (i = 0; i < len; i++) {
					KUNIT_EXPECT_EQ(test, *sgl_byte(world, from + i), data[i]);
					*sgl_byte(world, from + i) = SGL_UNUSED;
				}
				KUNIT_EXPECT_PTR_EQ(test, memchr_inv(world->room, SGL_UNUSED,
								     sizeof(world->room)), NULL);
			}
		}
	}
	kiw_mr_leave(&world->section);
	sgl_close(world);
}

static void nothing_goes_behind_the_end(struct kunit *test)
{
	static const u8 data[SGL_BYTES + 1];
	struct sgl_world *world = sgl_open(test);
	u32 from;

	kiw_mr_enter(&world->table, &world->section);
	for (from = 0; from <= SGL_BYTES + 3; from++) {
		u32 left = from < SGL_BYTES ? SGL_BYTES - from : 0;

		kiw_sgl_seek(&world->sgl, from);
		KUNIT_EXPECT_EQ(test, kiw_sgl_settle(&world->sgl), left > 0);
		KUNIT_EXPECT_EQ(test, (int)kiw_sgl_put(&world->sgl, data, left + 1),
				(int)KIW_MEM_BOUNDS);
		KUNIT_EXPECT_EQ(test, (int)kiw_sgl_put(&world->sgl, data, 1), (int)KIW_MEM_BOUNDS);
		KUNIT_EXPECT_EQ(test, (int)kiw_sgl_put(&world->sgl, data, 0), (int)KIW_MEM_OK);
	}
	kiw_mr_leave(&world->section);
	sgl_close(world);
}

static void kernel_addresses_are_for_the_kernel(struct kunit *test)
{
	struct sgl_world *world = sgl_open(test);
	struct kiw_sgl *sgl = &world->sgl;

	kiw_mr_enter(&world->table, &world->section);
	KUNIT_EXPECT_EQ(test, (int)kiw_sgl_check(sgl, IB_ACCESS_LOCAL_WRITE), (int)KIW_MEM_OK);
	/* Empty entries refer to nothing. */
	world->sge[0].lkey = SGL_LKEY + 1;
	KUNIT_EXPECT_EQ(test, (int)kiw_sgl_check(sgl, IB_ACCESS_LOCAL_WRITE), (int)KIW_MEM_OK);
	world->sge[5].lkey = SGL_LKEY + 1;
	KUNIT_EXPECT_EQ(test, (int)kiw_sgl_check(sgl, IB_ACCESS_LOCAL_WRITE), (int)KIW_MEM_STAG);
	KUNIT_EXPECT_EQ(test, (int)kiw_sgl_put(sgl, "0123456", 7), (int)KIW_MEM_STAG);
	KUNIT_EXPECT_EQ(test, *sgl_byte(world, 5), '5');
	world->sge[5].lkey = SGL_LKEY;
	sgl->is_kernel = false;
	KUNIT_EXPECT_EQ(test, (int)kiw_sgl_check(sgl, IB_ACCESS_LOCAL_WRITE), (int)KIW_MEM_STAG);
	kiw_mr_leave(&world->section);
	sgl_close(world);
}

/* An entry that extends beyond the last address is refused from there on. */
static void entries_must_not_wrap(struct kunit *test)
{
	struct sgl_world *world = sgl_open(test);
	const struct kiw_sge sge = { .addr = U64_MAX - 3, .length = 8, .lkey = SGL_LKEY };
	struct kiw_mr *mr;
	u32 offset;

	kiw_mr_enter(&world->table, &world->section);
	for (offset = 0; offset < 8; offset++)
		KUNIT_EXPECT_EQ(test, (int)kiw_sgl_find(&world->sgl, &sge, 0, offset, 1, &mr),
				(int)(offset < 4 ? KIW_MEM_OK : KIW_MEM_WRAP));
	kiw_mr_leave(&world->section);
	sgl_close(world);
}

static struct kunit_case sgl_cases[] = {
	KUNIT_CASE(bytes_go_where_they_belong),
	KUNIT_CASE(nothing_goes_behind_the_end),
	KUNIT_CASE(kernel_addresses_are_for_the_kernel),
	KUNIT_CASE(entries_must_not_wrap),
	{}
};

static struct kunit_suite sgl_suite = {
	.name = "kiwarp_sgl",
	.test_cases = sgl_cases,
};

kunit_test_suite(sgl_suite);
