// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * kiwarp_reserves: tests streams when free memory is below the min watermark, or seems to be.
 *
 * The kernel marks a receive buffer that it allocated from its memory reserves, and TCP drops
 * such a buffer unless the socket may use the reserves. This module simulates the shortage: it
 * marks IPv4 TCP segments that arrive on interface `ifindex`, in any network namespace. It also
 * counts resets sent from process context, and those of them whose allocations could have
 * triggered reclaim by I/O; and TCP segments with fragments, and those of them that the stack
 * copies because somebody might write to the fragments.
 *
 * For a real shortage, write to `take` how many MiB of memory to allocate and keep.
 *
 * Owns: two netfilter hooks per namespace, and the allocated pages. Contexts: softirq or
 * process, as IP calls the hooks. counts_lock protects the counters.
 */
#include <linux/gfp.h>
#include <linux/ip.h>
#include <linux/list.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/netfilter.h>
#include <linux/netfilter_ipv4.h>
#include <linux/preempt.h>
#include <linux/sched.h>
#include <linux/sched/mm.h>
#include <linux/sizes.h>
#include <linux/skbuff.h>
#include <linux/spinlock.h>
#include <linux/tcp.h>
#include <net/net_namespace.h>
#include <net/sock.h>

static unsigned int ifindex;
module_param(ifindex, uint, 0644);
MODULE_PARM_DESC(ifindex, "what arrives here is marked, 0: nothing");

static unsigned int marked;
module_param(marked, uint, 0444);
MODULE_PARM_DESC(marked, "segments that were");

static unsigned int resets;
module_param(resets, uint, 0444);
MODULE_PARM_DESC(resets, "sent from process context");

static unsigned int resets_io;
module_param(resets_io, uint, 0444);
MODULE_PARM_DESC(resets_io, "those of them without memalloc_noio_save()");

static unsigned int paged;
module_param(paged, uint, 0444);
MODULE_PARM_DESC(paged, "TCP segments sent with fragments");

static unsigned int shared;
module_param(shared, uint, 0444);
MODULE_PARM_DESC(shared, "those of them whose fragments may be modified");

static int memalloc_get(char *buffer, const struct kernel_param *kp)
{
	return sysfs_emit(buffer, "%d\n", !!sk_memalloc_socks());
}

static const struct kernel_param_ops memalloc_ops = {
	.get = memalloc_get,
};

module_param_cb(memalloc, &memalloc_ops, NULL, 0444);
MODULE_PARM_DESC(memalloc, "whether there is a socket that may use the reserves");

/* Serialises writers of take; protects the allocated pages */
static DEFINE_MUTEX(take_lock);
static LIST_HEAD(taken);
static unsigned int num_taken;

#define PAGES_PER_MIB	(SZ_1M / PAGE_SIZE)

static bool take_page(struct list_head *pages, gfp_t gfp)
{
	struct page *page = alloc_page(gfp | __GFP_NOWARN);

	if (page)
		list_add(&page->lru, pages);
	return page;
}

static void give_page(struct list_head *pages)
{
	struct page *page = list_first_entry(pages, struct page, lru);

	list_del(&page->lru);
	__free_page(page);
}

static int take_set(const char *val, const struct kernel_param *kp)
{
	unsigned int mib;
	int ret;

	ret = kstrtouint(val, 0, &mib);
	if (ret)
		return ret;
	mutex_lock(&take_lock);
	while (num_taken < mib * PAGES_PER_MIB && take_page(&taken, GFP_KERNEL | __GFP_NORETRY))
		num_taken++;
	for (; num_taken > mib * PAGES_PER_MIB; num_taken--)
		give_page(&taken);
	mutex_unlock(&take_lock);
	return 0;
}

static int take_get(char *buffer, const struct kernel_param *kp)
{
	return sysfs_emit(buffer, "%u\n", num_taken / (unsigned int)PAGES_PER_MIB);
}

static const struct kernel_param_ops take_ops = {
	.set = take_set,
	.get = take_get,
};

module_param_cb(take, &take_ops, NULL, 0644);
MODULE_PARM_DESC(take, "MiB of memory taken away");

/* A test may compare them with how many it expects */
static DEFINE_SPINLOCK(counts_lock);

static unsigned int mark_segment(void *priv, struct sk_buff *skb,
				 const struct nf_hook_state *state)
{
	if (state->in->ifindex == READ_ONCE(ifindex) && ip_hdr(skb)->protocol == IPPROTO_TCP) {
		skb->pfmemalloc = 1;
		spin_lock_bh(&counts_lock);
		marked++;
		spin_unlock_bh(&counts_lock);
	}
	return NF_ACCEPT;
}

/* Counts resets. Up to this hook, the context is that of the code that made the segment. */
static void count_reset(const struct sk_buff *skb)
{
	lockdep_assert_held(&counts_lock);
	if (in_serving_softirq() || !tcp_hdr(skb)->rst)
		return;
	resets++;
	if (!(current->flags & (PF_MEMALLOC | PF_MEMALLOC_NOIO)))
		resets_io++;
}

static unsigned int count_segment(void *priv, struct sk_buff *skb,
				  const struct nf_hook_state *state)
{
	if (ip_hdr(skb)->protocol != IPPROTO_TCP)
		return NF_ACCEPT;
	spin_lock_bh(&counts_lock);
	count_reset(skb);
	paged += skb_is_nonlinear(skb);
	shared += skb_has_shared_frag(skb);
	spin_unlock_bh(&counts_lock);
	return NF_ACCEPT;
}

static const struct nf_hook_ops hooks[] = {
	{
		.hook = mark_segment,
		.pf = NFPROTO_IPV4,
		.hooknum = NF_INET_PRE_ROUTING,
		.priority = NF_IP_PRI_LAST,
	}, {
		.hook = count_segment,
		.pf = NFPROTO_IPV4,
		.hooknum = NF_INET_LOCAL_OUT,
		.priority = NF_IP_PRI_FIRST,
	},
};

static int __net_init reserves_net_init(struct net *net)
{
	return nf_register_net_hooks(net, hooks, ARRAY_SIZE(hooks));
}

static void __net_exit reserves_net_exit(struct net *net)
{
	nf_unregister_net_hooks(net, hooks, ARRAY_SIZE(hooks));
}

static struct pernet_operations reserves_net_ops = {
	.init = reserves_net_init,
	.exit = reserves_net_exit,
};

static int __init reserves_init(void)
{
	return register_pernet_subsys(&reserves_net_ops);
}

static void __exit reserves_exit(void)
{
	unregister_pernet_subsys(&reserves_net_ops);
	while (!list_empty(&taken))
		give_page(&taken);
}

module_init(reserves_init);
module_exit(reserves_exit);

MODULE_DESCRIPTION("Marks segments as from the reserves of memory, for tests");
MODULE_LICENSE("Dual BSD/GPL");
