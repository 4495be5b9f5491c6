// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Which interfaces a kernel has. Nothing links this file: the top Kbuild has the compiler check it,
 * and defines the name of each probe in which that finds no error. A probe is the code from one
 * line marker to the next. The marker makes the compiler name the probe in its messages.
 *
 * The number of a release does not tell which interfaces a kernel has, because distributions
 * backport them. The releases in the comments are those of kernel.org.
 */
#include <linux/dma-buf.h>
#include <linux/hrtimer.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/net.h>
#include <linux/sysfs.h>
#include <linux/timer.h>
#include <linux/workqueue.h>
#include <net/net_namespace.h>
#include <net/rtnetlink.h>
#include <net/sock.h>
#include <net/tcp.h>
#include <rdma/ib_umem.h>
#include <rdma/ib_verbs.h>
#include <rdma/uverbs_ioctl.h>
#include <trace/stages/stage6_event_callback.h>

#define PROBE_TEXT_OF(x...) #x
#define PROBE_TEXT(x...) PROBE_TEXT_OF(x)
#define PROBE_TYPE(what, type...) \
	static_assert(__builtin_types_compatible_p(typeof(what), type))
#define PROBE_OP(op, type...) PROBE_TYPE(((const struct ib_device_ops *)0)->op, type)

/* Check the probing itself: no kernel has the one, and every kernel the other */
# 1 "KIW_HAS_NOTHING"
static void probe_nothing(void) { kiw_compat_no_such_function(); }

# 1 "KIW_HAS_SOMETHING"
static void probe_something(struct module *module) { module_put(module); }

/* 6.10: __assign_str() does not take the source any more */
# 1 "KIW_HAS_ASSIGN_STR_DST"
static const char probe_assign_str[] = PROBE_TEXT(__assign_str(dst));

/* Up to 6.12 the name of a symbol namespace is a token; then a string */
# 1 "KIW_HAS_NS_TOKENS"
MODULE_IMPORT_NS(DMA_BUF);

/* 6.2: the reservation lock protects mappings of a buffer */
# 1 "KIW_HAS_DMA_BUF_UNLOCKED"
static void probe_dma_buf(struct dma_buf *buf, struct iosys_map *map)
{ dma_buf_vunmap_unlocked(buf, map); }

/* 6.13; 6.15 removed hrtimer_init() */
# 1 "KIW_HAS_HRTIMER_SETUP"
static void probe_hrtimer(struct hrtimer *timer)
{ hrtimer_setup(timer, NULL, CLOCK_MONOTONIC, HRTIMER_MODE_REL); }

/* 6.1.84, 6.2; 6.15 removed del_timer_sync() */
# 1 "KIW_HAS_TIMER_DELETE_SYNC"
static void probe_timer(struct timer_list *timer) { timer_delete_sync(timer); }

/* 6.1.191, 6.2 */
# 1 "KIW_HAS_SK_USE_TASK_FRAG"
static void probe_task_frag(struct sock *sk)
{ sk->sk_use_task_frag = true; }

/* Up to 6.8; then in net/rps.h */
# 1 "KIW_HAS_RPS_IN_SOCK"
static void probe_rps(const struct sock *sk)
{ sock_rps_record_flow(sk); }

/* Up to 6.4; then MSG_SPLICE_PAGES does it, which some earlier kernels define and ignore */
# 1 "KIW_HAS_TCP_SENDPAGES"
static int probe_sendpages(struct sock *sk) { return do_tcp_sendpages(sk, NULL, 0, 0, 0); }

/* 6.10: the callback of lent pages is in a table */
# 1 "KIW_HAS_UBUF_OPS"
static const void *probe_ubuf(struct ubuf_info *ubuf) { return ubuf->ops; }

/* 6.19: the address that kernel_bind() and kernel_connect() take */
# 1 "KIW_HAS_SOCKADDR_UNSIZED"
static int probe_bind(struct socket *sock, struct sockaddr_unsized *addr)
{ return kernel_bind(sock, addr, sizeof(struct sockaddr_in)); }

/* 6.3: vm_flags is read only */
# 1 "KIW_HAS_VM_FLAGS_SET"
static void probe_vm_flags(struct vm_area_struct *vma) { vm_flags_set(vma, VM_DONTCOPY); }

/* 6.11: a bundle of attributes instead of udata */
# 1 "KIW_HAS_CREATE_CQ_BUNDLE"
PROBE_OP(create_cq, int (*)(struct ib_cq *, const struct ib_cq_init_attr *,
			    struct uverbs_attr_bundle *));

/* Up to 7.1; then resize_user_cq, for queues of processes only */
# 1 "KIW_HAS_RESIZE_CQ"
PROBE_OP(resize_cq, int (*)(struct ib_cq *, int, struct ib_udata *));
static int probe_resize_cq(struct ib_cq *cq) { return ib_resize_cq(cq, 1); }

/* 6.17: registration takes a DMA handle */
# 1 "KIW_HAS_DMAH"
PROBE_OP(reg_user_mr, struct ib_mr *(*)(struct ib_pd *, u64, u64, u64, int, struct ib_dmah *,
					struct ib_udata *));

/* 6.12: a bundle of attributes instead of udata; all kernels with DMA handles have it */
# 1 "KIW_HAS_DMABUF_BUNDLE"
PROBE_OP(reg_user_mr_dmabuf, struct ib_mr *(*)(struct ib_pd *, u64, u64, u64, int, int,
					       struct uverbs_attr_bundle *));

/* 6.7 */
# 1 "KIW_HAS_FILL_RES_SRQ"
PROBE_OP(fill_res_srq_entry, int (*)(struct sk_buff *, struct ib_srq *));

/* 6.11 */
# 1 "KIW_HAS_NAME_BY_USER"
static void probe_name(struct ib_device *ibdev) { ib_mark_name_assigned_by_user(ibdev); }

/* 7.2 renamed ib_umem_get() */
# 1 "KIW_HAS_UMEM_GET_VA"
static struct ib_umem *probe_umem(struct ib_device *ibdev)
{ return ib_umem_get_va(ibdev, 0, 1, 0); }

/* 6.18 renamed the counter of a network namespace's references */
# 1 "KIW_HAS_NS_REF"
static int probe_net_refs(struct net *net) { return refcount_read(&net->ns.__ns_ref); }

/* 6.15: the arguments of rtnl_link_ops.newlink are in a structure */
# 1 "KIW_HAS_NEWLINK_PARAMS"
static struct net *probe_newlink(struct rtnl_newlink_params *params)
{ return rtnl_newlink_link_net(params); }

/* 6.16: binary attributes are const */
# 1 "KIW_HAS_BIN_ATTR_CONST"
PROBE_TYPE(((struct bin_attribute *)0)->read,
	   ssize_t (*)(struct file *, struct kobject *, const struct bin_attribute *, char *,
		       loff_t, size_t));

/* 6.12.77, 6.17: a workqueue says so if it is per CPU */
# 1 "KIW_HAS_WQ_PERCPU"
static const unsigned int probe_wq = WQ_PERCPU;

/* 6.12.77, 6.17: the new name of system_wq */
# 1 "KIW_HAS_SYSTEM_PERCPU_WQ"
static void probe_queue(struct work_struct *work) { queue_work(system_percpu_wq, work); }

/* Up to 7.1; for ktest/ */
# 1 "KIW_HAS_MUTEX_WAIT_LIST"
static bool probe_mutex(struct mutex *mutex) { return list_empty(&mutex->wait_list); }
