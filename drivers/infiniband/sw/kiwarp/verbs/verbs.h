/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * ib_device_ops: validate, translate, call, unwind.
 */
#ifndef KIW_VERBS_H
#define KIW_VERBS_H

#include <rdma/ib_verbs.h>

#include "compat/verbs.h"

struct iw_cm_id;
struct kiw_cq;
struct kiw_qp;
struct kiw_window;
struct rdma_cm_id;

/**
 * struct kiw_mw - a memory window of a process
 * @ib: the core's part
 * @window: the driver's part; unlike @ib, charged to the memory cgroup of the process
 */
struct kiw_mw {
	struct ib_mw ib;
	struct kiw_window *window;
};

static inline struct kiw_mw *to_kiw_mw(struct ib_mw *ibmw)
{
	return container_of(ibmw, struct kiw_mw, ib);
}

/* verbs_dev.c: the table of operations, device and port attributes */
extern const struct ib_device_ops kiw_device_ops;
int kiw_query_device(struct ib_device *ibdev, struct ib_device_attr *attr, struct ib_udata *udata);
int kiw_query_port(struct ib_device *ibdev, u32 port, struct ib_port_attr *attr);
int kiw_get_port_immutable(struct ib_device *ibdev, u32 port, struct ib_port_immutable *imm);
int kiw_query_gid(struct ib_device *ibdev, u32 port, int index, union ib_gid *gid);
struct net_device *kiw_get_netdev(struct ib_device *ibdev, u32 port);
void kiw_get_dev_fw_str(struct ib_device *ibdev, char *str);
int kiw_alloc_pd(struct ib_pd *ibpd, struct ib_udata *udata);
int kiw_dealloc_pd(struct ib_pd *ibpd, struct ib_udata *udata);

/* verbs_ctx.c: user contexts */
int kiw_alloc_ucontext(struct ib_ucontext *uctx, struct ib_udata *udata);
void kiw_dealloc_ucontext(struct ib_ucontext *uctx);
void kiw_disassociate_ucontext(struct ib_ucontext *uctx);

/* verbs_mr.c: memory regions */
struct ib_mr *kiw_get_dma_mr(struct ib_pd *ibpd, int access);
struct ib_mr *kiw_rereg_user_mr(struct ib_mr *ibmr, int flags, u64 start, u64 length,
				u64 virt_addr, int access, struct ib_pd *ibpd,
				struct ib_udata *udata);
struct ib_mr *kiw_reg_user_mr(struct ib_pd *ibpd, u64 start, u64 length, u64 virt_addr,
			      int access, struct ib_udata *udata);
struct ib_mr *kiw_reg_user_mr_dmabuf(struct ib_pd *ibpd, u64 offset, u64 length, u64 virt_addr,
				     int fd, int access, kiw_compat_dmabuf_arg *arg);
struct ib_mr *kiw_alloc_mr(struct ib_pd *ibpd, enum ib_mr_type type, u32 max_num_sg);
int kiw_map_mr_sg(struct ib_mr *ibmr, struct scatterlist *sg, int num, unsigned int *offset);
int kiw_dereg_mr(struct ib_mr *ibmr, struct ib_udata *udata);

/* verbs_mw.c: memory windows */
extern const struct ib_device_ops kiw_mw_ops;
int kiw_alloc_mw(struct ib_mw *ibmw, struct ib_udata *udata);
int kiw_dealloc_mw(struct ib_mw *ibmw);

/* verbs_cq.c: completion queues; compat/verbs.h defines the kiw_compat_ types */
int kiw_create_cq(struct ib_cq *ibcq, const struct ib_cq_init_attr *attr,
		  kiw_compat_create_cq_arg *arg);
int kiw_resize_cq(struct ib_cq *ibcq, kiw_compat_cqe cqe, struct ib_udata *udata);
int kiw_destroy_cq(struct ib_cq *ibcq, struct ib_udata *udata);

/* verbs_srq.c: shared receive queues */
int kiw_create_srq(struct ib_srq *ibsrq, struct ib_srq_init_attr *attr, struct ib_udata *udata);
int kiw_modify_srq(struct ib_srq *ibsrq, struct ib_srq_attr *attr, enum ib_srq_attr_mask mask,
		   struct ib_udata *udata);
int kiw_query_srq(struct ib_srq *ibsrq, struct ib_srq_attr *attr);
int kiw_destroy_srq(struct ib_srq *ibsrq, struct ib_udata *udata);
int kiw_post_srq_recv(struct ib_srq *ibsrq, const struct ib_recv_wr *wr,
		      const struct ib_recv_wr **bad_wr);

/* verbs_qp.c: queue pairs */
int kiw_create_qp(struct ib_qp *ibqp, struct ib_qp_init_attr *attr, struct ib_udata *udata);
int kiw_modify_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask, struct ib_udata *udata);
int kiw_query_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
		 struct ib_qp_init_attr *init_attr);
int kiw_destroy_qp(struct ib_qp *ibqp, struct ib_udata *udata);
int kiw_post_send(struct ib_qp *ibqp, const struct ib_send_wr *wr,
		  const struct ib_send_wr **bad_wr);
int kiw_post_recv(struct ib_qp *ibqp, const struct ib_recv_wr *wr,
		  const struct ib_recv_wr **bad_wr);
struct ib_qp *kiw_iw_get_qp(struct ib_device *ibdev, int qpn);
void kiw_iw_add_ref(struct ib_qp *ibqp);
void kiw_iw_rem_ref(struct ib_qp *ibqp);

/* verbs_res.c: driver-specific attributes for `rdma resource show -dd` */
int kiw_fill_res_qp_entry(struct sk_buff *msg, struct ib_qp *ibqp);
int kiw_fill_res_cq_entry(struct sk_buff *msg, struct ib_cq *ibcq);
int kiw_fill_res_mr_entry(struct sk_buff *msg, struct ib_mr *ibmr);
int kiw_fill_res_srq_entry(struct sk_buff *msg, struct ib_srq *ibsrq);
int kiw_fill_res_cm_id_entry(struct sk_buff *msg, struct rdma_cm_id *id);

#endif /* KIW_VERBS_H */
