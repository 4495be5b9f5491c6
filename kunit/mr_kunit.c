// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The table of regions: which STags find a region, and which part of it may be accessed.
 */
#include <linux/types.h>

/* The module has no trace events */
#define KIW_TRACE_H

static inline void trace_kiw_mr(const char *dev, u32 stag, const char *what, u64 base, u64 length,
				int access)
{
}

#include "mem/mr.c"

#include "util.h"

#define MR_COUNT	100

/* Whether [@addr, @addr + @len) is in the region, one byte after the other */
static enum kiw_mem_fault mr_model(const struct kiw_mr *mr, u64 addr, u64 len)
{
	u64 at, offset;

	for (at = 1; at < len; at++)
		if (addr + at < addr)
			return KIW_MEM_WRAP;
	for (at = 0; at < len; at++)
		if (addr + at - mr->base < mr->start || addr + at - mr->base >= mr->length)
			return KIW_MEM_BOUNDS;
	offset = addr - mr->base;
	return offset < mr->start || offset > mr->length ? KIW_MEM_BOUNDS : KIW_MEM_OK;
}

static void mr_check_around(struct kunit *test, const struct kiw_mr *mr, const struct ib_pd *pd)
{
	u64 first = mr->base + mr->start - 3, len;
	unsigned int i;

	for (i = 0; i <= mr->length - mr->start + 6; i++)
		for (len = 0; len <= 12; len++)
			KUNIT_EXPECT_EQ(test, (int)kiw_mr_check(mr, pd, 0, first + i, len),
					(int)mr_model(mr, first + i, len));
}

/* Regions and windows of a few bytes, also at both ends of the tagged offsets */
static void accesses_stay_in_bounds(struct kunit *test)
{
	static const u64 bases[] = { 0, 1, 4096, U64_MAX - 8, U64_MAX - 3 };
	struct ib_pd *pd = kunit_kzalloc(test, sizeof(*pd), GFP_KERNEL);
	struct kiw_mr *mr = kunit_kzalloc(test, sizeof(*mr), GFP_KERNEL);
	unsigned int i;

	KUNIT_ASSERT_NOT_NULL(test, pd);
	KUNIT_ASSERT_NOT_NULL(test, mr);
	mr->ib.pd = pd;
	/* Of any kind but the kernel's whole memory */
	mr->umem = (struct kiw_umem *)mr;
	for (i = 0; i < ARRAY_SIZE(bases); i++) {
		mr->base = bases[i];
		for (mr->length = 0; mr->length <= 4; mr->length++)
			for (mr->start = 0; mr->start <= mr->length; mr->start++)
				mr_check_around(test, mr, pd);
	}
}

static void all_rights_are_needed(struct kunit *test)
{
	const int wanted = IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_WRITE;
	struct ib_pd *pds = kunit_kcalloc(test, 2, sizeof(*pds), GFP_KERNEL);
	struct kiw_mr *mr = kunit_kzalloc(test, sizeof(*mr), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, pds);
	KUNIT_ASSERT_NOT_NULL(test, mr);
	mr->ib.pd = &pds[0];
	mr->access = IB_ACCESS_REMOTE_READ | IB_ACCESS_LOCAL_WRITE;
	KUNIT_EXPECT_EQ(test, (int)kiw_mr_check(mr, &pds[0], wanted, 0, 1), (int)KIW_MEM_ACCESS);
	mr->access |= IB_ACCESS_REMOTE_WRITE;
	KUNIT_EXPECT_EQ(test, (int)kiw_mr_check(mr, &pds[0], wanted, 0, 1), (int)KIW_MEM_OK);
	KUNIT_EXPECT_EQ(test, (int)kiw_mr_check(mr, &pds[1], wanted, 0, 1), (int)KIW_MEM_ASSOC);
	/* All memory of the kernel has no bounds but the last address. */
	KUNIT_EXPECT_EQ(test, (int)kiw_mr_check(mr, &pds[0], wanted, U64_MAX - 7, 8),
			(int)KIW_MEM_OK);
	KUNIT_EXPECT_EQ(test, (int)kiw_mr_check(mr, &pds[0], wanted, U64_MAX - 7, 9),
			(int)KIW_MEM_WRAP);
}

/**
 * struct mr_world - a table and regions
 * @table: the table
 * @device: of the regions
 * @mrs: regions that may be in the table
 */
struct mr_world {
	struct kiw_mr_table table;
	struct ib_device *device;
	struct kiw_mr mrs[MR_COUNT];
};

static struct mr_world *mr_open(struct kunit *test)
{
	struct mr_world *world = kunit_kzalloc(test, sizeof(*world), GFP_KERNEL);
	int i;

	KUNIT_ASSERT_NOT_NULL(test, world);
	world->device = kunit_kzalloc(test, sizeof(*world->device), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, world->device);
	KUNIT_ASSERT_EQ(test, kiw_mr_table_init(&world->table), 0);
	for (i = 0; i < MR_COUNT; i++)
		world->mrs[i].ib.device = world->device;
	return world;
}

static void mr_publish_all(struct kunit *test, struct mr_world *world)
{
	int i;

	for (i = 0; i < MR_COUNT; i++)
		KUNIT_ASSERT_EQ(test, kiw_mr_publish(&world->table, &world->mrs[i]), 0);
}

static void mr_close(struct mr_world *world)
{
	int i;

	for (i = 0; i < MR_COUNT; i++)
		if (world->mrs[i].stag)
			kiw_mr_retract(&world->table, &world->mrs[i]);
	kiw_mr_table_uninit(&world->table);
}

/* An STag finds its region, and nothing else does, whichever was found before. */
static void only_the_stag_finds_a_region(struct kunit *test)
{
	struct mr_world *world = mr_open(test);
	struct kiw_mr_section section = {};
	int i, bit;

	mr_publish_all(test, world);
	kiw_mr_enter(&world->table, &section);
	KUNIT_EXPECT_PTR_EQ(test, kiw_mr_use(&section, 0), NULL);
	for (i = 0; i < MR_COUNT; i++) {
		u32 stag = world->mrs[i].ib.rkey;

		KUNIT_EXPECT_NE(test, stag, 0U);
		KUNIT_EXPECT_EQ(test, stag, world->mrs[i].ib.lkey);
		KUNIT_EXPECT_PTR_EQ(test, kiw_mr_use(&section, stag), &world->mrs[i]);
		KUNIT_EXPECT_PTR_EQ(test, kiw_mr_use(&section, stag), &world->mrs[i]);
		for (bit = 0; bit < KIW_STAG_KEY_BITS; bit++)
			KUNIT_EXPECT_PTR_EQ(test, kiw_mr_use(&section, stag ^ 1U << bit), NULL);
	}
	KUNIT_EXPECT_PTR_EQ(test, kiw_mr_use(&section, 0), NULL);
	kiw_mr_leave(&section);
	mr_close(world);
}

/* This also holds in a section that has found the region before. */
static void a_region_that_is_gone_is_not_found(struct kunit *test)
{
	struct mr_world *world = mr_open(test);
	struct kiw_mr_section section = {};
	struct kiw_mr *mr = &world->mrs[7];
	u32 stag;

	mr_publish_all(test, world);
	stag = mr->stag;
	kiw_mr_enter(&world->table, &section);
	KUNIT_EXPECT_PTR_EQ(test, kiw_mr_use(&section, stag), mr);
	/* The first step of kiw_mr_retract(), which waits for this section then */
	WRITE_ONCE(mr->stag, 0);
	KUNIT_EXPECT_PTR_EQ(test, kiw_mr_use(&section, stag), NULL);
	KUNIT_EXPECT_PTR_EQ(test, kiw_mr_use(&section, 0), NULL);
	kiw_mr_leave(&section);
	kiw_mr_retract(&world->table, mr);
	kiw_mr_enter(&world->table, &section);
	KUNIT_EXPECT_PTR_EQ(test, kiw_mr_use(&section, stag), NULL);
	kiw_mr_leave(&section);
	mr_close(world);
}

/* What a work request makes valid cannot be used before, nor over another stream if private. */
static void stags_of_work_requests(struct kunit *test)
{
	struct mr_world *world = mr_open(test);
	struct kiw_mr_section section = { .stream = 5 };
	struct kiw_dyn *dyn = kunit_kzalloc(test, sizeof(*dyn), GFP_KERNEL);
	struct ib_pd *pd = kunit_kzalloc(test, sizeof(*pd), GFP_KERNEL);
	struct kiw_mr *mr = &world->mrs[0], *found;
	u32 stag;

	KUNIT_ASSERT_NOT_NULL(test, dyn);
	KUNIT_ASSERT_NOT_NULL(test, pd);
	mr->dyn = dyn;
	mr->ib.pd = pd;
	mr_publish_all(test, world);
	stag = mr->ib.rkey;
	kiw_mr_enter(&world->table, &section);
	KUNIT_EXPECT_PTR_EQ(test, kiw_mr_use(&section, stag), NULL);
	KUNIT_EXPECT_EQ(test, atomic_read(&dyn->users), 0);
	mr->stag = stag;
	KUNIT_EXPECT_PTR_EQ(test, kiw_mr_use(&section, stag), mr);
	KUNIT_EXPECT_EQ(test, atomic_read(&dyn->users), 1);
	kiw_mr_done(mr);
	KUNIT_EXPECT_EQ(test, atomic_read(&dyn->users), 0);
	KUNIT_EXPECT_PTR_EQ(test, kiw_mr_use(&section, stag ^ 1), NULL);
	dyn->is_private = true;
	dyn->stream = 5;
	KUNIT_EXPECT_PTR_EQ(test, kiw_mr_use(&section, stag), mr);
	kiw_mr_done(mr);
	dyn->stream = 6;
	found = kiw_mr_use(&section, stag);
	KUNIT_ASSERT_NOT_NULL(test, found);
	KUNIT_EXPECT_EQ(test, (int)kiw_mr_check(found, pd, 0, 0, 0), (int)KIW_MEM_ASSOC);
	kiw_mr_done(found);
	KUNIT_EXPECT_EQ(test, atomic_read(&dyn->users), 0);
	kiw_mr_leave(&section);
	mr_close(world);
}

/* A region to which windows are bound cannot go; one that is about to go takes none. */
static void windows_keep_their_region(struct kunit *test)
{
	struct kiw_mr *mr = kunit_kzalloc(test, sizeof(*mr), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, mr);
	KUNIT_EXPECT_TRUE(test, atomic_inc_unless_negative(&mr->windows));
	KUNIT_EXPECT_FALSE(test, kiw_mr_close(mr));
	KUNIT_EXPECT_TRUE(test, atomic_inc_unless_negative(&mr->windows));
	atomic_sub(2, &mr->windows);
	KUNIT_EXPECT_TRUE(test, kiw_mr_close(mr));
	KUNIT_EXPECT_FALSE(test, atomic_inc_unless_negative(&mr->windows));
	KUNIT_EXPECT_TRUE(test, kiw_mr_close(mr));
	kiw_mr_reopen(mr);
	KUNIT_EXPECT_TRUE(test, atomic_inc_unless_negative(&mr->windows));
}

static struct kunit_case mr_cases[] = {
	KUNIT_CASE(accesses_stay_in_bounds),
	KUNIT_CASE(all_rights_are_needed),
	KUNIT_CASE(only_the_stag_finds_a_region),
	KUNIT_CASE(a_region_that_is_gone_is_not_found),
	KUNIT_CASE(stags_of_work_requests),
	KUNIT_CASE(windows_keep_their_region),
	{}
};

static struct kunit_suite mr_suite = {
	.name = "kiwarp_mr",
	.test_cases = mr_cases,
};

kunit_test_suite(mr_suite);
