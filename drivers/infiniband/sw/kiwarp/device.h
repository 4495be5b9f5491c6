/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * A kiwarp device: the ib_device, the netdev below it, and what its objects share.
 *
 * Owns: &struct kiw_device, from `rdma link add` to the last reference.
 */
#ifndef KIW_DEVICE_H
#define KIW_DEVICE_H

#include <linux/netdevice.h>
#include <linux/sizes.h>
#include <linux/workqueue.h>
#include <rdma/ib_verbs.h>
#include <rdma/iw_cm.h>

#include "mem/mr.h"
#include "policy.h"
#include "qp/qp_table.h"
#include "sock/sock.h"
#include "stats.h"

/*
 * True limits. ibv_devinfo -v shows them, but on a device of type kiwarp-ext the spare slot of a
 * ring is subtracted from the sizes of queues, and other devices have no windows.
 */
#define KIW_MAX_QP		65536
#define KIW_MAX_QP_WR		32768
#define KIW_MAX_CQ		65536
#define KIW_MAX_CQE		SZ_1M
#define KIW_MAX_SRQ		65536
#define KIW_MAX_SRQ_WR		32768
#define KIW_MAX_MR		SZ_1M
#define KIW_MAX_MW		SZ_1M
#define KIW_MAX_PD		65536
#define KIW_MAX_READS		128
#define KIW_MAX_MSG_BYTES	0x7fffffff

struct kiw_uapi_ops;

/**
 * struct kiw_device - a device
 * @ib: the core's part
 * @uapi: the user ABI of all processes that open the device; does not change
 * @link: in the module's list, for the netdev notifier
 * @ndev: the netdev; held; NULL once the device has been taken down
 * @ndev_tracker: tracks the reference to @ndev
 * @adder: the task that is registering the device, else NULL; only compared, never dereferenced
 * @is_leaving: the netdev is going away, so the device must, too
 * @leave_work: unregisters the device when the netdev goes away
 * @is_active: last known state of the port
 * @link_gen: incremented when the link comes up or changes, which may change its speed
 * @speed_gen: value of @link_gen when @speed and @width were read
 * @speed: &enum ib_port_speed
 * @width: &enum ib_port_width
 * @raw_gid: GID 0: the MAC address, zero padded; random if the netdev has none
 * @policy: how connections are made
 * @wq: workqueue of QPs, endpoints and sockets; unbound, WQ_MEM_RECLAIM
 * @engine_wq: workqueue in which QPs run their engines; per CPU, WQ_MEM_RECLAIM
 * @socks: all streams
 * @mrs: all memory regions and windows
 * @qps: all queue pairs
 * @stats: counters
 * @half_open_lock: protects @half_open, @num_half_open, @num_half_listeners and each listener's
 *	&struct kiw_ep.num_half_open; innermost
 * @half_open: incoming connections that no consumer has answered yet. A new one joins at the end,
 *	and moves to the end again when its Request is delivered
 * @num_half_open: length of @half_open
 * @num_half_listeners: number of listeners with a connection in @half_open
 * @startups_lock: protects the list of startups of each QP; innermost
 * @num_pd: protection domains, against %KIW_MAX_PD
 * @num_mr: memory regions, against %KIW_MAX_MR
 * @num_mw: memory windows, against %KIW_MAX_MW
 * @num_qp: queue pairs, against %KIW_MAX_QP
 * @num_cq: completion queues, against %KIW_MAX_CQ
 * @num_srq: shared receive queues, against %KIW_MAX_SRQ
 */
struct kiw_device {
	struct ib_device ib;
	const struct kiw_uapi_ops *uapi;
	struct list_head link;
	struct net_device *ndev;
	netdevice_tracker ndev_tracker;
	const struct task_struct *adder;
	bool is_leaving;
	struct work_struct leave_work;
	bool is_active;
	u32 link_gen;
	u32 speed_gen;
	u16 speed;
	u8 width;
	union ib_gid raw_gid;
	struct kiw_policy policy;
	struct workqueue_struct *wq;
	struct workqueue_struct *engine_wq;
	struct kiw_sock_pool socks;
	struct kiw_mr_table mrs;
	struct kiw_qp_table qps;
	struct kiw_stats stats;
	spinlock_t half_open_lock;
	struct list_head half_open;
	unsigned int num_half_open;
	unsigned int num_half_listeners;
	spinlock_t startups_lock;
	atomic_t num_pd;
	atomic_t num_mr;
	atomic_t num_mw;
	atomic_t num_qp;
	atomic_t num_cq;
	atomic_t num_srq;
};

static inline struct kiw_device *to_kiw_device(struct ib_device *ibdev)
{
	return container_of(ibdev, struct kiw_device, ib);
}

/* Is the port up? It is if the netdev is up and has a carrier. */
static inline bool kiw_device_is_active(const struct kiw_device *dev)
{
	return netif_running(dev->ndev) && netif_carrier_ok(dev->ndev);
}

/*
 * Do connections use the addresses of the port mapper? As kiw_device_tell_port_mapper() has
 * decided: the policy says so, and the device is in the initial network namespace.
 */
static inline bool kiw_device_uses_port_mapper(const struct kiw_device *dev)
{
	return !(READ_ONCE(dev->ib.iw_driver_flags) & IW_F_NO_PORT_MAP);
}

void kiw_device_tell_port_mapper(struct kiw_device *dev);
int kiw_device_add(const char *name, struct net_device *ndev, const struct kiw_uapi_ops *uapi);
int kiw_device_module_init(void);
void kiw_device_module_exit(void);

#endif /* KIW_DEVICE_H */
