/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* The network interface: its settings and its state while it is up. */
#ifndef KIP_DEV_H
#define KIP_DEV_H

#include <linux/hashtable.h>
#include <linux/interrupt.h>
#include <linux/list.h>
#include <linux/netdevice.h>
#include <linux/sizes.h>
#include <linux/skbuff.h>
#include <linux/spinlock.h>
#include <linux/types.h>
#include <linux/workqueue.h>

#include "proto/wire.h"
#include "sockaddr.h"
#include "stats.h"
#include "udp.h"

struct kip_conn;

/* Above Linux's default range of local ports, in the range that IANA never assigns */
#define KIP_PORT		64755
#define KIP_PKEY		0xffff
#define KIP_QKEY		0x80000b1b
#define KIP_RX_DEPTH		32
#define KIP_RX_DEPTH_MAX	1024
#define KIP_RX_MEM		(256UL << 20)
#define KIP_MAX_CONNS		128
#define KIP_MAX_PEERS		4096
/* Requests make no more peers with one IP address: a node can pose as one for each of its ports */
#define KIP_MAX_PEERS_PER_GID	32
#define KIP_IDLE_S		300
#define KIP_LEARN_S		300
/* Maximum number of bytes of packets that wait in the queues of all peers */
#define KIP_QUEUES_BYTES	(64U << 20)
/* Send buffer for datagrams of an interface of a container */
#define KIP_FOREIGN_SNDBUF	SZ_1M
#define KIP_POLLERS		4
#define KIP_HASH_BITS		8

/* What precedes a packet inside the stack: link-layer destination, then the wire header */
#define KIP_HARD_LEN		(KIP_ADDR_LEN + sizeof(struct kip_wire_hdr))

/**
 * struct kip_poller - a NAPI instance and the connections it has to poll
 * @napi: the NAPI instance
 * @lock: protects @ready and the poll_entry of the connections on it
 * @ready: connections that may have completions
 */
struct kip_poller {
	struct napi_struct napi;
	spinlock_t lock;
	struct list_head ready;
};

/**
 * struct kip_settings - settings chosen by the administrator
 * @port: UDP and TCP port, which is also the QPN
 * @pkey: partition, %KIP_PKEY_FULL set
 * @qkey: Q_Key of the link, %KIP_QKEY_CONTROLLED set
 * @dgram_mtu: length in bytes of the longest packet sent as a datagram
 * @rx_depth: receives for data per connection
 * @max_conns: maximum number of connections
 * @idle_s: seconds after which an unused connection ends; 0: never
 * @rx_mem: maximum memory of receives, in bytes
 * @learn_s: seconds of silence after which a learned peer without a connection is forgotten; 0:
 *	none are learned
 * @is_connected: connected mode: connections are made
 * @has_listed_only: refuse datagrams and Requests from nodes that are not listed
 */
struct kip_settings {
	u16 port;
	u16 pkey;
	u32 qkey;
	u16 dgram_mtu;
	u16 rx_depth;
	u32 max_conns;
	u32 idle_s;
	u64 rx_mem;
	u32 learn_s;
	bool is_connected;
	bool has_listed_only;
};

/**
 * struct kip_dev - private data of an interface
 * @netdev: the net_device this belongs to
 * @lower: the underlay; referenced from ndo_init to the destructor
 * @lower_tracker: tracker of that reference
 * @net: network namespace of the underlay; the datagram service and the cm_ids are in it
 * @is_foreign: @net is outside of the initial user namespace, so that common limits apply
 * @entry: entry in the list of all interfaces; RTNL
 * @settings: written under RTNL
 * @local: address of the underlay and port; AF_UNSPEC when there is none; written under RTNL while
 *	nothing runs
 * @is_running: @work may run; written under RTNL
 * @begin_at: when to try again to start the interface, in jiffies; RTNL
 * @instance: a number chosen whenever @work is started
 * @serial: counts attempts to send a Request since then; used by @work
 * @nr_requests: Requests of peers that @work has not looked at yet
 * @stats: per-CPU counters
 * @is_posting: per CPU: it is posting to a connection; bottom halves are disabled
 * @udp: the datagram service
 * @lock: protects writes to @peers, @nr_peers, @wishes, and the entries of both lists
 * @peers: peers by address; read under RCU, or by @work, which removes peers, or by stop when that
 *	is idle
 * @nr_peers: number of peers
 * @queues_bytes: bytes in the queues of all peers
 * @wishes: peers to which a sender wants a connection
 * @event_lock: protects @events, and events and event_entry of connections; any context
 * @events: connections with pending events
 * @work: work item that handles all connections
 * @conns: the listener and all connections, but for Requests that @work has not looked at yet; used
 *	by @work, or by stop when it is idle
 * @nr_conns: number of connections that receives are accounted to
 * @rx_mem: bytes of these receives
 * @reaping: bytes of receives of connections that were given up and are not freed yet
 * @listener: NULL when there is none; used by @work, or by stop when it is idle
 * @relisten_at: when to try to listen again, in jiffies
 * @relisten_wait: shortest delay after the next failure, in jiffies
 * @pollers: NAPI instances that poll for completions
 * @nr_pollers: number of pollers in use
 * @next_poller: selects the poller of the next connection
 * @tx_pending: packets that kip_tx_xmit() has accepted
 * @tx_tasklet: tasklet that sends these packets; runs between open and stop
 * @too_big: packets that are too long, and for which an ICMP error is to be sent
 * @too_big_work: work item that sends these errors
 */
struct kip_dev {
	struct net_device *netdev;
	struct net_device *lower;
	netdevice_tracker lower_tracker;
	struct net *net;
	bool is_foreign;
	struct list_head entry;
	struct kip_settings settings;
	union kip_sockaddr local;
	bool is_running;
	unsigned long begin_at;
	u32 instance;
	u32 serial;
	atomic_t nr_requests;
	struct kip_stats __percpu *stats;
	bool __percpu *is_posting;
	struct kip_udp udp;

	spinlock_t lock;
	DECLARE_HASHTABLE(peers, KIP_HASH_BITS);
	unsigned int nr_peers;
	atomic_t queues_bytes;
	struct list_head wishes;

	spinlock_t event_lock;
	struct list_head events;
	struct delayed_work work;
	struct list_head conns;
	unsigned int nr_conns;
	u64 rx_mem;
	struct kip_reaping *reaping;
	struct kip_conn *listener;
	unsigned long relisten_at;
	unsigned long relisten_wait;

	struct kip_poller pollers[KIP_POLLERS];
	unsigned int nr_pollers;
	unsigned int next_poller;

	struct sk_buff_head tx_pending;
	struct tasklet_struct tx_tasklet;

	struct sk_buff_head too_big;
	struct work_struct too_big_work;
};

extern struct workqueue_struct *kip_wq;
extern struct workqueue_struct *kip_reap_wq;

static inline void kip_count(struct kip_dev *dev, enum kip_stat stat)
{
	kip_stat_inc(dev->stats, stat);
}

void kip_dev_setup(struct net_device *netdev);
int kip_dev_add(struct net *net, struct net_device *netdev, struct net_device *lower,
		struct netlink_ext_ack *extack);
void kip_dev_del(struct net_device *netdev, struct list_head *head);
void kip_dev_pause(struct kip_dev *dev);
int kip_dev_restart(struct kip_dev *dev);
int kip_dev_new_address(struct kip_dev *dev);
bool kip_dev_is_ours(const struct net_device *netdev);
int kip_dev_module_init(void);
void kip_dev_module_exit(void);

#endif /* KIP_DEV_H */
