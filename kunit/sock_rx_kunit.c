// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Buffers that the network stack rarely makes: they overlap, or their frag_lists are nested. And
 * data that cannot be read, such as the fragments of devmem TCP: a stream ends there, and nothing
 * after them is taken for data. The socket is a fake: only its receive queue and the TCP fields
 * that tell how much is queued are set up.
 */
#include "sock/sock_rx.c"

#include "util.h"

/* Bytes in the linear part, and in each fragment */
#define HEAD_BYTES	16
#define FRAG_BYTES	100
#define FIRST_SEQ	0xfffffff0U

/**
 * struct fake_stream - a stream that is not connected
 * @tp: its TCP socket
 * @pool: memory for its counters
 * @stats: the counters
 * @ks: the stream
 * @niov: backs an unreadable fragment
 */
struct fake_stream {
	struct tcp_sock tp;
	struct kiw_sock_pool pool;
	struct kiw_stats stats;
	struct kiw_sock ks;
#ifdef NET_IOV
	struct net_iov niov;
#endif
};

static struct fake_stream *make_stream(struct kunit *test)
{
	struct fake_stream *s = kunit_kzalloc(test, sizeof(*s), GFP_KERNEL);
	struct sock *sk;

	KUNIT_ASSERT_NOT_NULL(test, s);
	s->stats.pcpu = __alloc_percpu(KIW_STAT_COUNT * sizeof(u64), __alignof__(u64));
	KUNIT_ASSERT_TRUE(test, !!s->stats.pcpu);
	s->pool.stats = &s->stats;
	sk = (struct sock *)&s->tp;
	sk->sk_state = TCP_ESTABLISHED;
	skb_queue_head_init(&sk->sk_receive_queue);
	s->tp.copied_seq = FIRST_SEQ;
	s->tp.rcv_nxt = FIRST_SEQ;
	s->ks.sk = sk;
	s->ks.pool = &s->pool;
	return s;
}

/* Byte n of a stream has the value n. */
static void fill(u8 *data, u32 at, u32 len)
{
	while (len--)
		*data++ = at++;
}

static struct sk_buff *make_head(struct kunit *test, u32 at)
{
	struct sk_buff *skb = alloc_skb(HEAD_BYTES, GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, skb);
	fill(skb_put(skb, HEAD_BYTES), at, HEAD_BYTES);
	return skb;
}

static void add_frag(struct kunit *test, struct sk_buff *skb, u32 at)
{
	struct page *page = alloc_page(GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, page);
	fill(page_address(page), at, FRAG_BYTES);
	skb_add_rx_frag(skb, skb_shinfo(skb)->nr_frags, page, 0, FRAG_BYTES, PAGE_SIZE);
}

#ifdef NET_IOV
/* Makes the last fragment unreadable. */
static void spoil(struct fake_stream *s, struct sk_buff *skb)
{
	skb_frag_t *frag = &skb_shinfo(skb)->frags[skb_shinfo(skb)->nr_frags - 1];

	__free_page(skb_frag_page(frag));
	skb_frag_fill_netmem_desc(frag, net_iov_to_netmem(&s->niov), 0, FRAG_BYTES);
}

/* Removes unreadable fragments before the skb is freed: they are not real pages. */
static void unspoil(struct sk_buff *skb)
{
	struct sk_buff *part;

	if (skb_shinfo(skb)->nr_frags)
		skb_shinfo(skb)->nr_frags--;
	for (part = skb_shinfo(skb)->frag_list; part; part = part->next)
		unspoil(part);
}
#endif

static void hang_behind(struct sk_buff *skb, struct sk_buff *part)
{
	skb_shinfo(skb)->frag_list = part;
	skb->len += part->len;
	skb->data_len += part->len;
}

/* @at: the first byte that the buffer has */
static void arrive_at(struct fake_stream *s, struct sk_buff *skb, u32 at)
{
	TCP_SKB_CB(skb)->seq = FIRST_SEQ + at;
	TCP_SKB_CB(skb)->end_seq = FIRST_SEQ + at + skb->len;
	s->tp.rcv_nxt = TCP_SKB_CB(skb)->end_seq;
	__skb_queue_tail(&s->ks.sk->sk_receive_queue, skb);
}

static void arrive(struct fake_stream *s, struct sk_buff *skb)
{
	arrive_at(s, skb, 0);
}

static u64 counted(const struct fake_stream *s)
{
	u64 sum = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		sum += per_cpu_ptr(s->stats.pcpu, cpu)[KIW_STAT_RX_UNREADABLE];
	return sum;
}

/* The driver reads with BHs off. */

static void rx_start(struct fake_stream *s, struct kiw_rx_cursor *cur)
{
	local_bh_disable();
	kiw_sock_rx_start(&s->ks, cur);
	local_bh_enable();
}

static bool rx_find(struct fake_stream *s, struct kiw_rx_cursor *cur)
{
	bool ret;

	local_bh_disable();
	ret = kiw_sock_rx_find(&s->ks, cur);
	local_bh_enable();
	return ret;
}

static void rx_peek(struct fake_stream *s, const struct kiw_rx_cursor *cur, u8 *dst, u32 len)
{
	local_bh_disable();
	kiw_sock_rx_peek(&s->ks, cur, dst, len);
	local_bh_enable();
}

static void rx_skip(struct fake_stream *s, struct kiw_rx_cursor *cur, u32 len)
{
	local_bh_disable();
	kiw_sock_rx_skip(&s->ks, cur, len);
	local_bh_enable();
}

static const u8 *rx_take(struct fake_stream *s, struct kiw_rx_cursor *cur, u32 len, u32 *num)
{
	const u8 *ret;

	local_bh_disable();
	ret = kiw_sock_rx_take(&s->ks, cur, len, num);
	local_bh_enable();
	return ret;
}

/* Reads all of it: the first @good bytes are there, the others are zero. */
static void expect_end(struct kunit *test, struct fake_stream *s, u32 good)
{
	struct kiw_rx_cursor cur;
	u8 want[256], got[256];
	u32 len;

	rx_start(s, &cur);
	len = cur.avail;
	KUNIT_ASSERT_LE(test, len, (u32)sizeof(got));
	KUNIT_ASSERT_LT(test, good, len);
	memset(got, 0xff, sizeof(got));
	memset(want, 0, sizeof(want));
	fill(want, 0, good);
	rx_peek(s, &cur, got, len);
	KUNIT_EXPECT_MEMEQ(test, got, want, len);
	KUNIT_EXPECT_TRUE(test, kiw_sock_is_unreadable(&s->ks));

	rx_skip(s, &cur, good);
	KUNIT_EXPECT_FALSE(test, cur.here || rx_find(s, &cur));
	s->tp.copied_seq += good + 1;
	rx_start(s, &cur);
	KUNIT_EXPECT_FALSE(test, rx_find(s, &cur));
	KUNIT_EXPECT_EQ(test, counted(s), 1);
}

/* Reads @len bytes, which is all: they are there. */
static void expect_all(struct kunit *test, struct fake_stream *s, u32 len)
{
	struct kiw_rx_cursor cur;
	u8 want[256], got[256];

	rx_start(s, &cur);
	KUNIT_ASSERT_EQ(test, cur.avail, len);
	KUNIT_ASSERT_LE(test, len, (u32)sizeof(got));
	fill(want, 0, len);
	rx_peek(s, &cur, got, len);
	KUNIT_EXPECT_MEMEQ(test, got, want, len);
	KUNIT_EXPECT_FALSE(test, kiw_sock_is_unreadable(&s->ks));
	KUNIT_EXPECT_EQ(test, counted(s), 0);
}

static void end_stream(struct fake_stream *s)
{
	__skb_queue_purge(&s->ks.sk->sk_receive_queue);
	free_percpu(s->stats.pcpu);
}

/* A retransmission can begin before its predecessor ends. */
static void overlapping_buffers_are_read_once(struct kunit *test)
{
	struct fake_stream *s = make_stream(test);

	arrive(s, make_head(test, 0));
	arrive_at(s, make_head(test, HEAD_BYTES / 2), HEAD_BYTES / 2);
	arrive_at(s, make_head(test, HEAD_BYTES), HEAD_BYTES);
	expect_all(test, s, 2 * HEAD_BYTES);
	end_stream(s);
}

/* Fragments next to each other in memory are taken as one, others are not. */
static void adjacent_fragments_are_one_place(struct kunit *test)
{
	struct fake_stream *s = make_stream(test);
	struct sk_buff *skb = make_head(test, 0);
	struct kiw_rx_cursor cur;
	struct page *page;
	u32 num;

	add_frag(test, skb, HEAD_BYTES);
	page = skb_frag_page(&skb_shinfo(skb)->frags[0]);
	get_page(page);
	fill(page_address(page) + FRAG_BYTES, HEAD_BYTES + FRAG_BYTES, FRAG_BYTES);
	skb_add_rx_frag(skb, 1, page, FRAG_BYTES, FRAG_BYTES, PAGE_SIZE);
	add_frag(test, skb, HEAD_BYTES + 2 * FRAG_BYTES);
	arrive(s, skb);
	rx_start(s, &cur);
	rx_skip(s, &cur, HEAD_BYTES + 1);
	KUNIT_EXPECT_NOT_NULL(test, rx_take(s, &cur, cur.avail, &num));
	KUNIT_EXPECT_EQ(test, num, (u32)(2 * FRAG_BYTES - 1));
	KUNIT_EXPECT_NOT_NULL(test, rx_take(s, &cur, cur.avail, &num));
	KUNIT_EXPECT_EQ(test, num, (u32)FRAG_BYTES);
	KUNIT_EXPECT_EQ(test, cur.avail, 0U);
	end_stream(s);
}

/* A buffer with @levels nested frag_lists, each behind a linear part */
static struct sk_buff *make_nested(struct kunit *test, unsigned int levels)
{
	struct sk_buff *skb, *part = make_head(test, levels * HEAD_BYTES);

	while (levels--) {
		skb = make_head(test, levels * HEAD_BYTES);
		hang_behind(skb, part);
		part = skb;
	}
	return part;
}

static void nested_fragments_are_read(struct kunit *test)
{
	struct fake_stream *s = make_stream(test);

	arrive(s, make_nested(test, SOCK_RX_NESTED));
	expect_all(test, s, (SOCK_RX_NESTED + 1) * HEAD_BYTES);
	end_stream(s);
}

static void fragments_in_nested_buffers_are_read(struct kunit *test)
{
	struct fake_stream *s = make_stream(test);
	struct sk_buff *skb = make_head(test, 0);
	struct sk_buff *part = make_head(test, HEAD_BYTES);
	struct sk_buff *inner = make_head(test, 2 * HEAD_BYTES);

	add_frag(test, inner, 3 * HEAD_BYTES);
	add_frag(test, inner, 3 * HEAD_BYTES + FRAG_BYTES);
	hang_behind(part, inner);
	hang_behind(skb, part);
	arrive(s, skb);
	expect_all(test, s, 3 * HEAD_BYTES + 2 * FRAG_BYTES);
	end_stream(s);
}

static void fragments_nested_too_deeply_end_the_stream(struct kunit *test)
{
	struct fake_stream *s = make_stream(test);

	arrive(s, make_nested(test, SOCK_RX_NESTED + 1));
	expect_end(test, s, (SOCK_RX_NESTED + 1) * HEAD_BYTES);
	end_stream(s);
}

#ifdef NET_IOV

static void unreadable_fragment_ends_the_stream(struct kunit *test)
{
	struct fake_stream *s = make_stream(test);
	struct sk_buff *skb = make_head(test, 0);

	add_frag(test, skb, HEAD_BYTES);
	add_frag(test, skb, HEAD_BYTES + FRAG_BYTES);
	spoil(s, skb);
	arrive(s, skb);
	expect_end(test, s, HEAD_BYTES + FRAG_BYTES);
	unspoil(skb);
	end_stream(s);
}

static void unreadable_fragment_of_fragments_ends_the_stream(struct kunit *test)
{
	struct fake_stream *s = make_stream(test);
	struct sk_buff *skb = make_head(test, 0);
	struct sk_buff *part = make_head(test, HEAD_BYTES);
	struct sk_buff *inner = make_head(test, 2 * HEAD_BYTES);

	add_frag(test, inner, 3 * HEAD_BYTES);
	spoil(s, inner);
	hang_behind(part, inner);
	hang_behind(skb, part);
	arrive(s, skb);
	expect_end(test, s, 3 * HEAD_BYTES);
	unspoil(skb);
	end_stream(s);
}

#else /* Kernels whose fragments are all pages */

static void unreadable_fragment_ends_the_stream(struct kunit *test)
{
	kunit_skip(test, "no net_iov");
}

static void unreadable_fragment_of_fragments_ends_the_stream(struct kunit *test)
{
	kunit_skip(test, "no net_iov");
}

#endif

static struct kunit_case sock_rx_cases[] = {
	KUNIT_CASE(overlapping_buffers_are_read_once),
	KUNIT_CASE(adjacent_fragments_are_one_place),
	KUNIT_CASE(nested_fragments_are_read),
	KUNIT_CASE(fragments_in_nested_buffers_are_read),
	KUNIT_CASE(fragments_nested_too_deeply_end_the_stream),
	KUNIT_CASE(unreadable_fragment_ends_the_stream),
	KUNIT_CASE(unreadable_fragment_of_fragments_ends_the_stream),
	{}
};

static struct kunit_suite sock_rx_suite = {
	.name = "kiwarp_sock_rx",
	.test_cases = sock_rx_cases,
};

kunit_test_suite(sock_rx_suite);
