/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Which QPs a caller of rdma_cm may refer to by number.
 */
#ifndef KIW_CALLER_H
#define KIW_CALLER_H

#include <linux/types.h>

struct ib_ucontext;
struct iw_cm_id;
struct kiw_qp;
struct net;

/**
 * struct kiw_owner - who created a QP
 * @file: identity of the process's uverbs file, never dereferenced; NULL: a kernel consumer
 *	created the QP
 * @fd: descriptor that the process had this file under, if it was found
 * @user_ns: user namespace of the process, referenced; NULL for a kernel consumer
 */
struct kiw_owner {
	const void *file;
	unsigned int fd;
	struct user_namespace *user_ns;
};

void kiw_owner_init(struct kiw_owner *owner, const struct ib_ucontext *uctx);
void kiw_owner_uninit(struct kiw_owner *owner);

bool kiw_caller_is_process(void);
bool kiw_caller_may_find(const struct kiw_owner *owner);
bool kiw_caller_may_connect(const struct iw_cm_id *id, const struct kiw_qp *qp);
struct net *kiw_caller_net(const struct iw_cm_id *id);

#endif /* KIW_CALLER_H */
