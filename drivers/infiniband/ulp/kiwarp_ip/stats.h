/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Counters of an interface: per CPU, generated from one list, shown by `ethtool -S`.
 *
 * Documentation/kiwarp_ip.rst explains each counter.
 */
#ifndef KIP_STATS_H
#define KIP_STATS_H

#include <linux/percpu.h>
#include <linux/types.h>

/* X(enumerator, name in ethtool) */
#define KIP_STATS_LIST(X) \
	X(CONN_REQUESTED,	"conn_requested") \
	X(CONN_ACCEPTED,	"conn_accepted") \
	X(CONN_ESTABLISHED,	"conn_established") \
	X(CONN_REPLACED,	"conn_replaced") \
	X(CONN_CROSSED_WON,	"conn_crossed_won") \
	X(CONN_CROSSED_LOST,	"conn_crossed_lost") \
	X(CONN_STALE,		"conn_stale_request") \
	X(CONN_REJECTED,	"conn_rejected") \
	X(CONN_REFUSED,		"conn_refused_by_peer") \
	X(CONN_FAILED,		"conn_failed") \
	X(CONN_ENDED,		"conn_ended") \
	X(CONN_IDLE,		"conn_idle") \
	X(CONN_STALLED,		"conn_stalled") \
	X(CONN_SILENT,		"conn_silent") \
	X(CONN_NO_ROOM,		"conn_no_room") \
	X(CONN_UNLISTED,	"conn_unlisted") \
	X(BAD_PDATA,		"bad_private_data") \
	X(BAD_QPN,		"bad_qpn") \
	X(BAD_PKEY,		"bad_pkey") \
	X(BAD_MTU,		"bad_mtu") \
	X(TX_MESSAGES,		"tx_messages") \
	X(TX_DATAGRAMS,		"tx_datagrams") \
	X(TX_CONTROL,		"tx_control") \
	X(TX_NO_CREDIT,		"tx_no_credit") \
	X(TX_TOO_LONG,		"tx_too_long") \
	X(TX_NO_CONNECTION,	"tx_no_connection") \
	X(TX_FRAGMENTED,	"tx_fragmented") \
	X(TX_LINEARIZED,	"tx_linearized") \
	X(TX_QUEUE_FULL,	"tx_queue_full") \
	X(TX_NO_MEMORY,		"tx_no_memory") \
	X(TX_NO_PEER,		"tx_no_peer") \
	X(TX_NO_GROUP,		"tx_no_group") \
	X(TX_BAD_ADDRESS,	"tx_bad_address") \
	X(TX_BAD_TYPE,		"tx_bad_type") \
	X(TX_LOOP,		"tx_loop") \
	X(TX_UDP_ERRORS,	"tx_udp_errors") \
	X(RX_MESSAGES,		"rx_messages") \
	X(RX_DATAGRAMS,		"rx_datagrams") \
	X(RX_CONTROL,		"rx_control") \
	X(RX_NO_MEMORY,		"rx_no_memory") \
	X(RX_SHORT,		"rx_short") \
	X(RX_TOO_LONG,		"rx_too_long") \
	X(RX_BAD_TYPE,		"rx_bad_type") \
	X(RX_BAD_CONTROL,	"rx_bad_control") \
	X(RX_OVERRUN,		"rx_overrun") \
	X(RX_IMMEDIATE,		"rx_immediate") \
	X(RX_UDP_SHORT,		"rx_udp_short") \
	X(RX_UDP_TOO_LONG,	"rx_udp_too_long") \
	X(RX_UDP_VERSION,	"rx_udp_version") \
	X(RX_UDP_PKEY,		"rx_udp_pkey") \
	X(RX_UDP_QKEY,		"rx_udp_qkey") \
	X(RX_UDP_TYPE,		"rx_udp_type") \
	X(RX_UDP_SENDER,	"rx_udp_sender") \
	X(RX_UDP_OWN,		"rx_udp_own") \
	X(PEERS_LEARNED,	"peers_learned")

#define KIP_STATS_ENUM(id, name)	KIP_STAT_##id,

/* One enumerator per counter of KIP_STATS_LIST */
enum kip_stat {
	KIP_STATS_LIST(KIP_STATS_ENUM)
	KIP_STAT_COUNT,
};

/**
 * struct kip_stats - counters of one CPU
 * @value: values, indexed by enum kip_stat
 */
struct kip_stats {
	u64 value[KIP_STAT_COUNT];
};

static inline void kip_stat_inc(struct kip_stats __percpu *stats, enum kip_stat stat)
{
	this_cpu_inc(stats->value[stat]);
}

u64 kip_stat_sum(struct kip_stats __percpu *stats, enum kip_stat stat);
const char *kip_stat_name(enum kip_stat stat);

#endif /* KIP_STATS_H */
