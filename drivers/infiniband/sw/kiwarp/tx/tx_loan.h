/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Pages of consumers that are lent to TCP: zero copy. A loan covers the lent pages of one batch. It
 * is over when TCP has freed every buffer that refers to them, which happens when the peer has
 * acknowledged the batch.
 *
 * Owns: &struct kiw_loan, and the callback from the network stack. Documentation/zero-copy.rst says
 * what is lent and why that is safe.
 */
#ifndef KIW_TX_LOAN_H
#define KIW_TX_LOAN_H

#include <linux/skbuff.h>
#include <linux/spinlock.h>

#include "mem/umem.h"

struct kiw_qp;

/**
 * struct kiw_loan - pages of one region that are lent with one batch
 * @ubuf: what the stack knows; its reference count is that of the loan: one for the batch, one for
 *	each buffer
 * @lock: protects @qp and @is_over; irq-safe
 * @qp: the QP, or NULL if it does not wait for the loan any more
 * @lease: the region's record, unless it is kernel memory
 * @umem: the region's memory, or NULL for kernel memory
 * @link: in &struct kiw_tx.loans, if there is a @qp
 * @seq: end of the batch in the TCP stream, as far as TCP has taken it; socket lock
 * @is_over: nothing refers to the pages any more
 * @was_copied: the stack had to copy the pages; a hint
 */
struct kiw_loan {
	struct ubuf_info ubuf;
	spinlock_t lock;
	struct kiw_qp *qp;
	struct kiw_lease lease;
	struct kiw_umem *umem;
	struct list_head link;
	u32 seq;
	bool is_over;
	bool was_copied;
};

static inline struct kiw_loan *to_kiw_loan(struct ubuf_info *ubuf)
{
	return container_of(ubuf, struct kiw_loan, ubuf);
}

/* Socket lock held, BHs off */
struct ubuf_info *kiw_loan_make(struct kiw_qp *qp, struct kiw_umem *umem);
bool kiw_loan_collect(struct kiw_qp *qp);

/* Process context, may sleep */
void kiw_loan_end_all(struct kiw_qp *qp);
void kiw_loan_module_exit(void);

#endif /* KIW_TX_LOAN_H */
