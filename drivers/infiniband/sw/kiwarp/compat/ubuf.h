/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Differences between kernels in lending pages to TCP; for tx/tx_loan.c only. */
#ifndef KIW_COMPAT_UBUF_H
#define KIW_COMPAT_UBUF_H

#include <linux/skbuff.h>

/*
 * KIW_COMPAT_UBUF_OPS() defines @name, which says that @function is called whenever a buffer lets
 * go of its pages. Up to 6.9 it was a member of struct ubuf_info.
 */
#ifdef KIW_HAS_UBUF_OPS
#define KIW_COMPAT_UBUF_OPS(name, function) \
static const struct ubuf_info_ops name = { \
	.complete = function, \
}

static inline void kiw_compat_ubuf_set(struct ubuf_info *ubuf, const struct ubuf_info_ops *ops)
{
	ubuf->ops = ops;
}
#else
struct kiw_compat_ubuf_ops {
	void (*complete)(struct sk_buff *skb, struct ubuf_info *ubuf, bool success);
};

#define KIW_COMPAT_UBUF_OPS(name, function) \
static const struct kiw_compat_ubuf_ops name = { \
	.complete = function, \
}

static inline void kiw_compat_ubuf_set(struct ubuf_info *ubuf,
				       const struct kiw_compat_ubuf_ops *ops)
{
	ubuf->callback = ops->complete;
}
#endif

#endif /* KIW_COMPAT_UBUF_H */
