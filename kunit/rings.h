/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Shared by the suites of the user ABIs: rings as bytes, and calls of a table's queue formats with
 * the lock that they need.
 */
#ifndef KIW_KUNIT_RINGS_H
#define KIW_KUNIT_RINGS_H

#include "queue/cq.h"
#include "queue/wr.h"
#include "util.h"

#define WR_ID		0x0102030405060708ull
#define RADDR		0x1112131415161718ull
#define RKEY		0x21222324
#define KEY		0x3132333435363738ull

/* A ring as a process sees it: bytes, and where its slots are */
struct ring {
	u8 *mem;
	size_t head_bytes;
	size_t slot_bytes;
};

static inline void make_ring(struct kunit *test, struct ring *ring, size_t head_bytes,
			     size_t slot_bytes, size_t bytes)
{
	ring->head_bytes = head_bytes;
	ring->slot_bytes = slot_bytes;
	ring->mem = kunit_kzalloc(test, bytes, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, ring->mem);
}

static inline u8 *at(const struct ring *ring, u32 slot, size_t offset)
{
	return ring->mem + ring->head_bytes + slot * ring->slot_bytes + offset;
}

static inline void set16(u8 *to, u16 value)
{
	memcpy(to, &value, sizeof(value));
}

static inline void set32(u8 *to, u32 value)
{
	memcpy(to, &value, sizeof(value));
}

static inline void set64(u8 *to, u64 value)
{
	memcpy(to, &value, sizeof(value));
}

static inline u16 get16(const u8 *from)
{
	u16 value;

	memcpy(&value, from, sizeof(value));
	return value;
}

static inline u32 get32(const void *from)
{
	u32 value;

	memcpy(&value, from, sizeof(value));
	return value;
}

static inline u64 get64(const void *from)
{
	u64 value;

	memcpy(&value, from, sizeof(value));
	return value;
}

static inline void set_sges(u8 *to, unsigned int num, u32 length)
{
	unsigned int i;

	for (i = 0; i < num; i++, to += 16) {
		set64(to, 0x1000 * (i + 1));
		set32(to + 8, length);
		set32(to + 12, 0x100 + i);
	}
}

static inline void expect_sges(struct kunit *test, const struct kiw_sge *sge, unsigned int num,
			       u32 length)
{
	unsigned int i;

	for (i = 0; i < num; i++) {
		KUNIT_EXPECT_EQ(test, sge[i].addr, 0x1000ull * (i + 1));
		KUNIT_EXPECT_EQ(test, sge[i].length, length);
		KUNIT_EXPECT_EQ(test, sge[i].lkey, 0x100u + i);
	}
}

static inline int fetch_send(struct kiw_sq *sq, struct kiw_swqe *wqe)
{
	int ret;

	spin_lock_irq(&sq->lock);
	ret = sq->ops->fetch(sq, wqe);
	spin_unlock_irq(&sq->lock);
	return ret;
}

static inline int fetch_recv(struct kiw_rq *rq, struct kiw_rwqe *wqe)
{
	int ret;

	spin_lock_irq(&rq->lock);
	ret = rq->ops->fetch(rq, wqe);
	spin_unlock_irq(&rq->lock);
	return ret;
}

static inline bool has_recv(struct kiw_rq *rq, u32 n)
{
	bool ret;

	spin_lock_irq(&rq->lock);
	ret = rq->ops->has(rq, n);
	spin_unlock_irq(&rq->lock);
	return ret;
}

static inline bool put_completion(struct kiw_cq *cq, const struct kiw_wc *wc)
{
	bool ret;

	spin_lock_irq(&cq->lock);
	ret = cq->ops->put(cq, wc);
	spin_unlock_irq(&cq->lock);
	return ret;
}

#endif /* KIW_KUNIT_RINGS_H */
