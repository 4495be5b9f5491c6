// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Verbs: the table of operations, device and port attributes, protection domains, counters.
 *
 * Owns: nothing but the table. A protection domain is the core's &struct ib_pd and nothing
 * else. The functions run in process context unless they say otherwise.
 */
#include "verbs.h"

#include <linux/kernel.h>
#include <linux/sizes.h>
#include <linux/string.h>
#include <rdma/ib_cache.h>
#include <rdma/iw_cm.h>

#include "cm/cm.h"
#include "device.h"
#include "mem/mr_fast.h"
#include "mem/umem.h"
#include "monitor_sysfs.h"
#include "policy_sysfs.h"
#include "qp/qp.h"
#include "queue/cq.h"
#include "queue/srq.h"
#include "uapi.h"

/*
 * "kiw" instead of the OUI of a vendor, because there is none. In its first octet, the bit that
 * means "locally administered" is set. 0 would mean "not known" to applications, and is an error to
 * rdma-core's tests.
 */
#define VENDOR_ID	0x6b6977

/* In the format of the providers: 16 bits each for major, minor and patch level */
static u64 verbs_fw_version(void)
{
	unsigned int major = 0;
	unsigned int minor = 0;
	unsigned int patch = 0;

	if (sscanf(KIWARP_VERSION, "%u.%u.%u", &major, &minor, &patch) < 1)
		return 0;
	return (u64)major << 32 | (u64)minor << 16 | patch;
}

/*
 * The atomicity that processes get; kernel consumers can use atomic operations with either link
 * type. The operations exclude those of the CPU if it has atomic instructions for 64 bits
 * (mem/mr_atomic.c).
 */
static enum ib_atomic_cap verbs_atomic_cap(const struct kiw_device *dev)
{
	if (!dev->uapi->has_rfc7306)
		return IB_ATOMIC_NONE;
	return IS_ENABLED(CONFIG_64BIT) ? IB_ATOMIC_GLOB : IB_ATOMIC_HCA;
}

/**
 * kiw_query_device() - report the actual limits of a device
 * @ibdev: the device
 * @attr: set to the limits; zeroed by the caller
 * @udata: the request, which has no driver-specific part in the user ABI; NULL on some kernels
 *
 * Context: process, may sleep.
 * Return: 0, or -EINVAL: bad @udata.
 */
int kiw_query_device(struct ib_device *ibdev, struct ib_device_attr *attr, struct ib_udata *udata)
{
	const u32 spare = kiw_uapi_spare_slots(ibdev, true);
	int ret = kiw_uapi_check_none(to_kiw_device(ibdev), udata);

	if (ret)
		return ret;
	attr->fw_ver = verbs_fw_version();
	attr->sys_image_guid = ibdev->node_guid;
	attr->vendor_id = VENDOR_ID;
	attr->device_cap_flags = IB_DEVICE_MEM_MGT_EXTENSIONS;
	if (to_kiw_device(ibdev)->uapi->rq->move)
		attr->device_cap_flags |= IB_DEVICE_SRQ_RESIZE;
	attr->max_fast_reg_page_list_len = KIW_FAST_MAX_PAGES;
	attr->kernel_cap_flags = IBK_LOCAL_DMA_LKEY | IBK_ALLOW_USER_UNREG;
	attr->page_size_cap = ~(u64)(SZ_4K - 1);
	attr->max_mr_size = KIW_UMEM_MAX_BYTES;
	attr->max_qp = KIW_MAX_QP;
	attr->max_qp_wr = KIW_MAX_QP_WR - spare;
	/* User space is told the smaller of these two. */
	attr->max_send_sge = KIW_MAX_SEND_SGE;
	attr->max_recv_sge = KIW_MAX_SGE;
	attr->max_sge_rd = KIW_MAX_SGE;
	attr->max_cq = KIW_MAX_CQ;
	attr->max_cqe = KIW_MAX_CQE - spare;
	attr->max_mr = KIW_MAX_MR;
	attr->max_pd = KIW_MAX_PD;
	attr->max_srq = KIW_MAX_SRQ;
	attr->max_srq_wr = KIW_MAX_SRQ_WR - spare;
	attr->max_srq_sge = KIW_MAX_SGE;
	attr->max_qp_rd_atom = KIW_MAX_READS;
	attr->max_qp_init_rd_atom = KIW_MAX_READS;
	attr->max_res_rd_atom = KIW_MAX_QP * KIW_MAX_READS;
	attr->atomic_cap = verbs_atomic_cap(to_kiw_device(ibdev));
	if (!to_kiw_device(ibdev)->uapi->has_windows)
		return 0;
	attr->device_cap_flags |= IB_DEVICE_MEM_WINDOW | IB_DEVICE_MEM_WINDOW_TYPE_2B;
	attr->max_mw = KIW_MAX_MW;
	return 0;
}

/*
 * Read the speed of the netdev, unless the cached one is still valid: the link has not changed
 * since then (see device.c). Reading takes the RTNL, and the core may log a message if the netdev
 * does not know its speed.
 */
static void verbs_ask_speed(struct kiw_device *dev, u32 port)
{
	u32 gen = READ_ONCE(dev->link_gen);
	u16 speed;
	u8 width;

	if (READ_ONCE(dev->speed_gen) == gen || ib_get_eth_speed(&dev->ib, port, &speed, &width))
		return;
	WRITE_ONCE(dev->speed, speed);
	WRITE_ONCE(dev->width, width);
	WRITE_ONCE(dev->speed_gen, gen);
}

/**
 * kiw_query_port() - report the attributes of the port
 * @ibdev: the device
 * @port: 1
 * @attr: set to the attributes
 *
 * A netdev that is being unregistered no longer reports its speed; the last known one stays.
 *
 * Context: process, may sleep; may take the RTNL.
 * Return: 0.
 */
int kiw_query_port(struct ib_device *ibdev, u32 port, struct ib_port_attr *attr)
{
	struct kiw_device *dev = to_kiw_device(ibdev);
	bool is_active = kiw_device_is_active(dev);

	verbs_ask_speed(dev, port);
	attr->active_speed = READ_ONCE(dev->speed);
	attr->active_width = READ_ONCE(dev->width);
	attr->state = is_active ? IB_PORT_ACTIVE : IB_PORT_DOWN;
	attr->phys_state = is_active ? IB_PORT_PHYS_STATE_LINK_UP : IB_PORT_PHYS_STATE_DISABLED;
	attr->max_mtu = IB_MTU_4096;
	attr->active_mtu = ib_mtu_int_to_enum(READ_ONCE(dev->ndev->mtu));
	attr->max_msg_sz = KIW_MAX_MSG_BYTES;
	attr->gid_tbl_len = 1;
	attr->port_cap_flags = IB_PORT_CM_SUP;
	return 0;
}

/**
 * kiw_get_port_immutable() - report the attributes of the port that never change
 * @ibdev: the device
 * @port: 1
 * @imm: set to the attributes
 *
 * Context: process.
 * Return: 0.
 */
int kiw_get_port_immutable(struct ib_device *ibdev, u32 port, struct ib_port_immutable *imm)
{
	imm->gid_tbl_len = 1;
	imm->core_cap_flags = RDMA_CORE_PORT_IWARP;
	return 0;
}

/**
 * kiw_query_gid() - get GID 0, by which rdma_cm of Linux 6.1 finds the device
 * @ibdev: the device
 * @port: 1
 * @index: 0
 * @gid: set to the GID
 *
 * After a change of the address the core gets an event and asks again, so it does no harm to
 * return a GID that is only partly updated.
 *
 * Context: any.
 * Return: 0.
 */
int kiw_query_gid(struct ib_device *ibdev, u32 port, int index, union ib_gid *gid)
{
	*gid = to_kiw_device(ibdev)->raw_gid;
	return 0;
}

/**
 * kiw_get_netdev() - get the netdev below a port
 * @ibdev: the device
 * @port: 1
 *
 * Context: any.
 * Return: the netdev, with a reference for the caller. A netdev that is being unregistered is
 * returned as well.
 */
struct net_device *kiw_get_netdev(struct ib_device *ibdev, u32 port)
{
	struct kiw_device *dev = to_kiw_device(ibdev);

	dev_hold(dev->ndev);
	return dev->ndev;
}

/**
 * kiw_get_dev_fw_str() - get the version as text
 * @ibdev: the device
 * @str: destination, %IB_FW_VERSION_NAME_MAX bytes
 *
 * Context: any.
 */
void kiw_get_dev_fw_str(struct ib_device *ibdev, char *str)
{
	strscpy(str, KIWARP_VERSION, IB_FW_VERSION_NAME_MAX);
}

/**
 * kiw_alloc_pd() - create a protection domain
 * @ibpd: the domain
 * @udata: has no driver-specific part
 *
 * Context: process.
 * Return: 0, or -ENOMEM beyond %KIW_MAX_PD.
 */
int kiw_alloc_pd(struct ib_pd *ibpd, struct ib_udata *udata)
{
	struct kiw_device *dev = to_kiw_device(ibpd->device);

	return atomic_add_unless(&dev->num_pd, 1, KIW_MAX_PD) ? 0 : -ENOMEM;
}

/**
 * kiw_dealloc_pd() - destroy a protection domain
 * @ibpd: empty; freed by the core
 * @udata: not used
 *
 * Context: process.
 * Return: 0.
 */
int kiw_dealloc_pd(struct ib_pd *ibpd, struct ib_udata *udata)
{
	atomic_dec(&to_kiw_device(ibpd->device)->num_pd);
	return 0;
}

static const struct rdma_stat_desc stat_descs[KIW_STAT_REPORTED] = {
#define STAT_DESC(id, text) \
	[KIW_STAT_##id] = { .name = text },
	KIW_STATS_LIST(STAT_DESC)
#undef STAT_DESC
};

/*
 * The core reports either all counters in one netlink message, or none. So compare the space that
 * the counters take with the space that the device's name, its numbers and the enclosing nest
 * leave. The message has a buffer of at least 4 KiB, with the skb's shared info at its end. The
 * shared info is aligned to a cache line, so a machine with lines of 256 bytes (s390) has the least
 * room. The set of counters must not depend on the machine, so the size on s390 counts for all.
 */
#define STAT_ATTR_BYTES(id, text) \
	+ NLA_HDRLEN + NLA_ALIGN(NLA_HDRLEN + sizeof(text)) + 2 * NLA_HDRLEN + sizeof(u64)
#define STAT_MSG_ROOM \
	(SZ_4K - ALIGN(sizeof(struct skb_shared_info), 256) - NLMSG_HDRLEN - \
	 2 * (NLA_HDRLEN + sizeof(u32)) - \
	 (NLA_HDRLEN + IB_DEVICE_NAME_MAX) - NLA_HDRLEN)
static_assert(0 KIW_STATS_LIST(STAT_ATTR_BYTES) <= STAT_MSG_ROOM);
#undef STAT_ATTR_BYTES

/* Per port, because `rdma statistic show` asks for port counters */
static struct rdma_hw_stats *verbs_alloc_port_stats(struct ib_device *ibdev, u32 port)
{
	return rdma_alloc_hw_stats_struct(stat_descs, KIW_STAT_REPORTED,
					  RDMA_HW_STATS_DEFAULT_LIFESPAN);
}

static int verbs_get_stats(struct ib_device *ibdev, struct rdma_hw_stats *stats, u32 port,
			   int index)
{
	struct kiw_device *dev = to_kiw_device(ibdev);
	int i;

	if (!port)
		return -EOPNOTSUPP;
	for (i = 0; i < KIW_STAT_REPORTED; i++)
		stats->value[i] = kiw_stats_read(&dev->stats, i);
	return KIW_STAT_REPORTED;
}

KIW_COMPAT_REG_USER_MR(verbs_reg_user_mr, kiw_reg_user_mr)

KIW_COMPAT_REG_DMABUF(verbs_reg_dmabuf, kiw_reg_user_mr_dmabuf)

/*
 * The user ABI adds the driver id and the version of the ABI (&struct kiw_uapi_ops.device_ops), and
 * kiw_mw_ops if it has windows.
 */
const struct ib_device_ops kiw_device_ops = {
	.owner = THIS_MODULE,

	.query_device = kiw_query_device,
	.query_port = kiw_query_port,
	.get_port_immutable = kiw_get_port_immutable,
	.query_gid = kiw_query_gid,
	.get_netdev = kiw_get_netdev,
	.fill_res_qp_entry = kiw_fill_res_qp_entry,
	.fill_res_cq_entry = kiw_fill_res_cq_entry,
	.fill_res_mr_entry = kiw_fill_res_mr_entry,
	.fill_res_cm_id_entry = kiw_fill_res_cm_id_entry,
	.get_dev_fw_str = kiw_get_dev_fw_str,
	.device_group = &kiw_policy_group,
	.port_groups = kiw_monitor_port_groups,
	.alloc_hw_port_stats = verbs_alloc_port_stats,
	.get_hw_stats = verbs_get_stats,

	.alloc_ucontext = kiw_alloc_ucontext,
	.dealloc_ucontext = kiw_dealloc_ucontext,
	.disassociate_ucontext = kiw_disassociate_ucontext,
	.mmap = kiw_mmap,
	.mmap_free = kiw_mmap_free,

	.alloc_pd = kiw_alloc_pd,
	.dealloc_pd = kiw_dealloc_pd,

	.get_dma_mr = kiw_get_dma_mr,
	.reg_user_mr = verbs_reg_user_mr,
	.rereg_user_mr = kiw_rereg_user_mr,
	.reg_user_mr_dmabuf = verbs_reg_dmabuf,
	.alloc_mr = kiw_alloc_mr,
	.map_mr_sg = kiw_map_mr_sg,
	.dereg_mr = kiw_dereg_mr,

	.create_cq = kiw_create_cq,
	.destroy_cq = kiw_destroy_cq,
	.poll_cq = kiw_poll_cq,
	.req_notify_cq = kiw_req_notify_cq,

	.create_srq = kiw_create_srq,
	.modify_srq = kiw_modify_srq,
	.query_srq = kiw_query_srq,
	.destroy_srq = kiw_destroy_srq,
	.post_srq_recv = kiw_post_srq_recv,

	.create_qp = kiw_create_qp,
	.modify_qp = kiw_modify_qp,
	.query_qp = kiw_query_qp,
	.destroy_qp = kiw_destroy_qp,
	.post_send = kiw_post_send,
	.post_recv = kiw_post_recv,

	.iw_connect = kiw_cm_connect,
	.iw_accept = kiw_cm_accept,
	.iw_reject = kiw_cm_reject,
	.iw_create_listen = kiw_cm_create_listen,
	.iw_destroy_listen = kiw_cm_destroy_listen,
	.iw_get_qp = kiw_iw_get_qp,
	.iw_add_ref = kiw_iw_add_ref,
	.iw_rem_ref = kiw_iw_rem_ref,

	INIT_RDMA_OBJ_SIZE(ib_cq, kiw_cq, ib),
	INIT_RDMA_OBJ_SIZE(ib_qp, kiw_qp, ib),
	INIT_RDMA_OBJ_SIZE(ib_srq, kiw_srq, ib),
	/* The driver adds nothing to these two */
	.size_ib_pd = sizeof(struct ib_pd),
	.size_ib_ucontext = sizeof(struct ib_ucontext),
};
