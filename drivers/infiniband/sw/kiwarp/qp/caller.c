// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Which QPs a caller of rdma_cm may refer to by number.
 *
 * rdma_cm passes a QP to iw_cm as a number, and a process chooses that number freely. iw_cm
 * asks the driver for the QP (kiw_iw_get_qp()), so the driver decides which callers may use it:
 *
 *  - A QP that was created through a uverbs file may be used by a process that has this file
 *    open: it could destroy or modify the QP through the file anyway. A child inherits
 *    the file across fork(), and the file can be passed to another process. The search for the
 *    file is limited, see kiw_caller_may_find(). Credentials are not enough: processes of
 *    different containers can have the same user ID in one user namespace.
 *  - Such a QP may also be used by a process with CAP_SYS_PTRACE in the user namespace of the
 *    process that created the QP. As a rule, it could read and change the memory of that process
 *    anyway.
 *  - The QP of a kernel consumer may be used by a kernel thread. In a process, it may be used only
 *    for the rdma_cm_id that it was created for (rdma_create_qp()).
 *
 * For a QP that it may not use, a caller gets the same error as for a number that does not exist.
 *
 * Network namespaces are checked as well (kiw_caller_net()): an rdma_cm_id belongs to one. If that
 * is not the namespace of this device's netdev, cm/cm.c refuses a connection, and cm/cm_listen.c
 * opens no listening socket.
 *
 * rdma_cm is the only user of iw_cm, and the @context of an iw_cm_id points to its rdma_cm_id.
 * caller_cm_id() relies on that, and only checks that both have the same device. This module calls
 * no function of rdma_cm and does not depend on it.
 */
#include "caller.h"

#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/fdtable.h>
#include <linux/find.h>
#include <linux/fs.h>
#include <linux/minmax.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/user_namespace.h>
#include <rdma/ib_verbs.h>
#include <rdma/iw_cm.h>
#include <rdma/rdma_cm.h>

#include "qp.h"

/* Open files, and descriptors that are searched in one RCU read-side critical section */
#define CALLER_FILES	1024
#define CALLER_NUMBERS	0x40000

/*
 * Does descriptor @fd of the current process refer to @uverbs_file? No other struct file has this
 * address as its private data.
 */
static bool caller_has_at(const void *uverbs_file, unsigned int fd)
{
	struct files_struct *files = current->files;
	struct file *file;
	bool has;

	rcu_read_lock();
	/* NULL: the descriptor is not open, or it is reserved, and its file not installed yet */
	file = files_lookup_fd_raw(files, fd);
	has = file && READ_ONCE(file->private_data) == uverbs_file;
	/*
	 * On some kernels, if another thread closes the file, the struct file can be reused for
	 * another process before its private data is read. In that case it is no longer in this
	 * table, so look again.
	 */
	smp_rmb();
	has = has && files_lookup_fd_raw(files, fd) == file;
	rcu_read_unlock();
	return has;
}

/*
 * Search the caller's open files for a uverbs file, from descriptor *@fd on, and advance *@fd.
 * Return: 1: found at *@fd; 0: not found; -EAGAIN: not found so far, call again for the rest.
 */
static int caller_look_for(const void *uverbs_file, unsigned int *fd)
{
	unsigned int left = CALLER_FILES;
	const struct fdtable *fdt;
	unsigned int end;
	int ret = 0;

	rcu_read_lock();
	fdt = files_fdtable(current->files);
	end = min(fdt->max_fds, *fd + CALLER_NUMBERS);
	while ((*fd = find_next_bit(fdt->open_fds, end, *fd)) < end) {
		if (caller_has_at(uverbs_file, *fd)) {
			ret = 1;
			break;
		}
		++*fd;
		if (!--left)
			break;
	}
	if (!ret && *fd < fdt->max_fds)
		ret = -EAGAIN;
	rcu_read_unlock();
	return ret;
}

/**
 * kiw_owner_init() - record who creates a QP
 * @owner: set by this function
 * @uctx: user context of the process, or NULL for a kernel consumer
 *
 * Context: process, that of the consumer; may sleep. Undone by kiw_owner_uninit().
 */
void kiw_owner_init(struct kiw_owner *owner, const struct ib_ucontext *uctx)
{
	owner->file = uctx ? uctx->ufile : NULL;
	owner->user_ns = uctx ? get_user_ns(current_user_ns()) : NULL;
	owner->fd = 0;
	if (!uctx || !current->files)
		return;
	while (caller_look_for(owner->file, &owner->fd) == -EAGAIN)
		cond_resched();
}

/**
 * kiw_owner_uninit() - forget who created a QP
 * @owner: from kiw_owner_init()
 *
 * Context: process.
 */
void kiw_owner_uninit(struct kiw_owner *owner)
{
	if (owner->user_ns)
		put_user_ns(owner->user_ns);
}

/**
 * kiw_caller_is_process() - tell a process from a kernel thread
 *
 * Context: process.
 * Return: false in a kernel thread or a work item.
 */
bool kiw_caller_is_process(void)
{
	return !(current->flags & PF_KTHREAD);
}

/**
 * kiw_caller_may_find() - may this caller find a QP by its number?
 * @owner: who created the QP
 *
 * iw_cm asks with interrupts off. So the search is bounded and takes no lock: it looks at the
 * descriptor number that the uverbs file had in the creating process, then at the caller's first
 * %CALLER_FILES open files with numbers below %CALLER_NUMBERS. If neither is the file,
 * CAP_SYS_PTRACE decides.
 *
 * QPs of kernel consumers are always allowed here, because kernel consumers also call in the
 * context of a process, for example in mount. kiw_caller_may_connect() checks them further.
 *
 * Context: process; does not sleep.
 * Return: whether the caller may find the QP.
 */
bool kiw_caller_may_find(const struct kiw_owner *owner)
{
	unsigned int fd = 0;

	if (!owner->file)
		return true;
	if (!kiw_caller_is_process() || !current->files)
		return false;
	return caller_has_at(owner->file, owner->fd) ||
	       caller_look_for(owner->file, &fd) > 0 ||
	       ns_capable_noaudit(owner->user_ns, CAP_SYS_PTRACE);
}

/* The rdma_cm_id behind an iw_cm_id; NULL if there is none with the same device. */
static const struct rdma_cm_id *caller_cm_id(const struct iw_cm_id *id)
{
	const struct rdma_cm_id *cm_id = id->context;

	return cm_id && cm_id->device == id->device ? cm_id : NULL;
}

/**
 * kiw_caller_may_connect() - may this connection use a QP?
 * @id: the connection
 * @qp: the QP; kiw_caller_may_find() is true
 *
 * Context: process.
 * Return: false: @qp belongs to a kernel consumer, was not created for @id, and a process calls.
 */
bool kiw_caller_may_connect(const struct iw_cm_id *id, const struct kiw_qp *qp)
{
	const struct rdma_cm_id *cm_id = caller_cm_id(id);

	if (qp->is_user || !kiw_caller_is_process())
		return true;
	return cm_id && cm_id->qp == &qp->ib;
}

/**
 * kiw_caller_net() - network namespace of a connection or a listener
 * @id: the connection or listener
 *
 * Context: process, in a call from iw_cm about @id.
 * Return: the namespace in which its rdma_cm_id was created, without a reference: it lasts
 * as long as @id; NULL: not known.
 */
struct net *kiw_caller_net(const struct iw_cm_id *id)
{
	const struct rdma_cm_id *cm_id = caller_cm_id(id);

	return cm_id ? cm_id->route.addr.dev_addr.net : NULL;
}
