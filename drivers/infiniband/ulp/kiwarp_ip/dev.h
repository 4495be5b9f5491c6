/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* The interface: its settings, and what there is while it is up. */
#ifndef KIP_DEV_H
#define KIP_DEV_H

#include <linux/hashtable.h>
#include <linux/list.h>
#include <linux/netdevice.h>
#include <linux/skbuff.h>
#include <linux/spinlock.h>
#include <linux/types.h>
#include <linux/workqueue.h>

#include "proto/wire.h"
#include "sockaddr.h"
#include "stats.h"
#include "udp.h"

struct kip_conn;

/* Beyond the ports that Linux picks, and of the range that nobody assigns */
#define KIP_PORT		64755
#define KIP_PKEY		0xffff
#define KIP_QKEY		0x80000b1b
#define KIP_RX_DEPTH		32
#define KIP_RX_DEPTH_MAX	1024
#define KIP_RX_MEM		(256UL << 20)
#define KIP_MAX_CONNS		128
#define KIP_MAX_PEERS		4096
/* Of one IP address, which can claim to be as many as it has ports */
#define KIP_MAX_PEERS_PER_GID	32
#define KIP_IDLE_S		300
#define KIP_LEARN_S		300
/* Octets of packets that wait for connections, over all peers */
#define KIP_QUEUES_BYTES	(64U << 20)
#define KIP_POLLERS		4
#define KIP_HASH_BITS		8

/* What is in front of a packet on its way through the stack: destination, type, 0 */
#define KIP_HARD_LEN		(KIP_ADDR_LEN + sizeof(struct kip_wire_hdr))

/**
 * struct kip_poller - a NAPI instance, and the connections that have completions for it
 * @napi: the core's part
 * @lock: protects @ready, and the poll_entry of the connections on it
 * @ready: connections to poll
 */
struct kip_poller {
	struct napi_struct napi;
	spinlock_t lock;
	struct list_head ready;
};

/**
 * struct kip_settings - what the administrator chooses
 * @port: of UDP and TCP, which is the QPN
 * @pkey: partition, %KIP_PKEY_FULL set
 * @qkey: of the link, %KIP_QKEY_CONTROLLED set
 * @dgram_mtu: octets of the longest packet sent as a datagram
 * @rx_depth: receives for data of each connection
 * @max_conns: connections at most
 * @idle_s: seconds after which an unused one ends; 0: never
 * @rx_mem: octets that receives may take
 * @learn_s: seconds for which the sender of a good datagram becomes a peer; 0: it does not
 * @is_connected: mode: connections are made
 * @has_listed_only: datagrams and Requests of others than listed peers are refused
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
 * struct kip_dev - an interface
 * @netdev: the core's part, of which this is the private one
 * @lower: the underlay; held from newlink to dellink
 * @lower_tracker: of that
 * @net: network namespace of the underlay, where all sockets are
 * @entry: in the list of all; RTNL
 * @settings: written under RTNL
 * @local: address of the underlay and port; AF_UNSPEC when there is none; RTNL
 * @is_running: between open and stop; written under RTNL
 * @instance: a number chosen at each open
 * @serial: Requests made since; the work only
 * @nr_requests: those of peers that wait for the work
 * @stats: counters
 * @is_posting: of each CPU: it posts to a connection; bottom halves are disabled
 * @udp: the datagram service
 * @lock: protects @peers for writing, @nr_peers, @wishes and their entries
 * @peers: by address; read under RCU
 * @nr_peers: how many
 * @queues_bytes: octets in the queues of all peers
 * @wishes: peers with packets and no connection
 * @event_lock: protects @events, and events and event_entry of connections; any context
 * @events: connections to which something has happened
 * @work: all that is done with connections
 * @conns: all connections and the listener; the work, or open and stop when it is idle
 * @nr_conns: how many have receives
 * @rx_mem: octets of these
 * @listener: NULL when there is none; the work, or stop
 * @relisten_at: when to try again, in jiffies
 * @relisten_wait: and how long later once more, if that fails
 * @pollers: of completions
 * @nr_pollers: how many are used
 * @next_poller: for the next connection
 * @too_big: packets whose senders are to be told
 * @too_big_work: does so
 */
struct kip_dev {
	struct net_device *netdev;
	struct net_device *lower;
	netdevice_tracker lower_tracker;
	struct net *net;
	struct list_head entry;
	struct kip_settings settings;
	union kip_sockaddr local;
	bool is_running;
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
	struct kip_conn *listener;
	unsigned long relisten_at;
	unsigned long relisten_wait;

	struct kip_poller pollers[KIP_POLLERS];
	unsigned int nr_pollers;
	unsigned int next_poller;

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
int kip_dev_restart(struct kip_dev *dev);
void kip_dev_new_address(struct kip_dev *dev);
bool kip_dev_is_ours(const struct net_device *netdev);
int kip_dev_module_init(void);
void kip_dev_module_exit(void);

#endif /* KIP_DEV_H */
