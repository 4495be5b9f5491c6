/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Counters of a device: one list, kept per CPU, shown by `rdma statistic show`.
 *
 * Documentation/counters.rst explains each counter.
 */
#ifndef KIW_STATS_H
#define KIW_STATS_H

#include <linux/percpu.h>
#include <linux/types.h>

#include "proto/perr.h"

/* X(enumerator, name shown) */
#define KIW_STATS_LIST(X) \
	X(CONN_INITIATED,	"conn_initiated") \
	X(CONN_REQUESTED,	"conn_requested") \
	X(CONN_ESTABLISHED,	"conn_established") \
	X(CONN_REJECTED,	"conn_rejected") \
	X(CONN_REFUSED,		"conn_refused_by_peer") \
	X(CONN_FAILED,		"conn_failed") \
	X(CONN_TIMEOUT,		"conn_timeout") \
	X(CONN_BAD_FRAME,	"conn_bad_mpa_frame") \
	X(CONN_DISAGREED,	"conn_disagreed") \
	X(CONN_RETRIED,		"conn_retried") \
	X(CONN_LIMITED,		"conn_limited") \
	X(LINGER_LIMITED,	"linger_limited") \
	X(CONN_OTHER_NETNS,	"conn_other_netns") \
	X(CONN_CLOSED,		"conn_closed") \
	X(CONN_DENIED,		"conn_denied") \
	X(TX_BYTES,		"tx_bytes") \
	X(TX_FPDUS,		"tx_fpdus") \
	X(TX_BATCHES,		"tx_batches") \
	X(DOORBELLS_LATE,	"doorbells_late") \
	X(TX_BLOCKED,		"tx_blocked") \
	X(RUN_YIELDS,		"run_yields") \
	X(TX_SENDS,		"tx_sends") \
	X(TX_SENDS_INV,		"tx_sends_inv") \
	X(TX_WRITES,		"tx_writes") \
	X(TX_READ_REQUESTS,	"tx_read_requests") \
	X(TX_READ_RESPONSES,	"tx_read_responses") \
	X(TX_IMMEDIATES,	"tx_immediates") \
	X(TX_ATOMIC_REQUESTS,	"tx_atomic_requests") \
	X(TX_ATOMIC_RESPONSES,	"tx_atomic_responses") \
	X(TX_TERMINATES,	"tx_terminates") \
	X(TX_DISCARDED,		"tx_discarded") \
	X(RX_BYTES,		"rx_bytes") \
	X(RX_FPDUS,		"rx_fpdus") \
	X(RX_SENDS,		"rx_sends") \
	X(RX_WRITES,		"rx_writes") \
	X(RX_READ_REQUESTS,	"rx_read_requests") \
	X(RX_READ_RESPONSES,	"rx_read_responses") \
	X(RX_IMMEDIATES,	"rx_immediates") \
	X(RX_ATOMIC_REQUESTS,	"rx_atomic_requests") \
	X(RX_ATOMIC_RESPONSES,	"rx_atomic_responses") \
	X(RX_TERMINATES,	"rx_terminates") \
	X(RX_CRC_ERRORS,	"rx_crc_errors") \
	X(RX_MPA_ERRORS,	"rx_mpa_errors") \
	X(RX_DDP_ERRORS,	"rx_ddp_errors") \
	X(RX_RDMAP_ERRORS,	"rx_rdmap_errors") \
	X(RX_STAG,		"rx_stag") \
	X(RX_STAG_ASSOC,	"rx_stag_assoc") \
	X(RX_BOUNDS,		"rx_bounds") \
	X(RX_TO_WRAP,		"rx_to_wrap") \
	X(RX_ACCESS,		"rx_access") \
	X(RX_INVALIDATE,	"rx_invalidate") \
	X(RX_VERSION,		"rx_version") \
	X(RX_OPCODE,		"rx_opcode") \
	X(RX_RESPONSE,		"rx_response") \
	X(RX_MALFORMED,		"rx_malformed") \
	X(RX_ALIGN,		"rx_align") \
	X(RX_QN,		"rx_qn") \
	X(RX_MSN,		"rx_msn") \
	X(RX_MO,		"rx_mo") \
	X(RX_TOO_LONG,		"rx_too_long") \
	X(RX_NO_BUFFER,		"rx_no_buffer") \
	X(RX_UNREADABLE,	"rx_unreadable") \
	X(WC_LOC_LEN,		"wc_loc_len") \
	X(WC_LOC_PROT,		"wc_loc_prot") \
	X(WC_LOC_QP_OP,		"wc_loc_qp_op") \
	X(WC_FLUSHED,		"wc_flushed") \
	X(WC_BAD_RESP,		"wc_bad_resp") \
	X(WC_REM_ACCESS,	"wc_rem_access") \
	X(WC_REM_INV_REQ,	"wc_rem_inv_req") \
	X(WC_REM_OP,		"wc_rem_op") \
	X(WC_MEM_OP,		"wc_mem_op") \
	X(WC_GENERAL,		"wc_general") \
	X(WR_INVALID,		"wr_invalid") \
	X(CQ_OVERRUNS,		"cq_overruns") \
	X(UDATA_INVALID,	"udata_invalid") \
	X(FAST_REGISTERED,	"fast_registered") \
	X(FAST_INVALIDATED,	"fast_invalidated") \
	X(RX_INVALIDATES,	"rx_invalidates") \
	X(QP_CREATED,		"qp_created") \
	X(QP_DESTROYED,		"qp_destroyed") \
	X(CQ_CREATED,		"cq_created") \
	X(CQ_DESTROYED,		"cq_destroyed") \
	X(SRQ_CREATED,		"srq_created") \
	X(SRQ_DESTROYED,	"srq_destroyed") \
	X(MR_CREATED,		"mr_created") \
	X(MR_DESTROYED,		"mr_destroyed") \
	X(EP_CREATED,		"ep_created") \
	X(EP_DESTROYED,		"ep_destroyed") \
	X(SOCK_CREATED,		"sock_created") \
	X(SOCK_DESTROYED,	"sock_destroyed")

enum kiw_stat {
#define KIW_STAT_ENUM(id, name) KIW_STAT_##id,
	KIW_STATS_LIST(KIW_STAT_ENUM)
#undef KIW_STAT_ENUM
	KIW_STAT_REPORTED,

	/* Files only (monitor_sysfs.c): the core's message has no room for more */
	KIW_STAT_LENT_BYTES = KIW_STAT_REPORTED,
	KIW_STAT_LENT_COPIED,
	KIW_STAT_LENT_KEPT,
	KIW_STAT_COUNT,
};

/**
 * struct kiw_stats - the counters of one device
 * @pcpu: one array per CPU
 * @kept_at: when %KIW_STAT_LENT_KEPT was counted last, in jiffies
 */
struct kiw_stats {
	u64 __percpu *pcpu;
	unsigned long kept_at;
};

int kiw_stats_init(struct kiw_stats *stats);
void kiw_stats_uninit(struct kiw_stats *stats);
u64 kiw_stats_read(const struct kiw_stats *stats, enum kiw_stat stat);
void kiw_count_fault(struct kiw_stats *stats, enum kiw_perr perr);

/* Any context */
static inline void kiw_count_add(struct kiw_stats *stats, enum kiw_stat stat, u64 n)
{
	this_cpu_add(stats->pcpu[stat], n);
}

static inline void kiw_count(struct kiw_stats *stats, enum kiw_stat stat)
{
	this_cpu_inc(stats->pcpu[stat]);
}

/* Count a failed work request; not for %KIW_WCS_SUCCESS */
static inline void kiw_count_failed(struct kiw_stats *stats, enum kiw_wcs status)
{
	kiw_count(stats, KIW_STAT_WC_LOC_LEN + status - KIW_WCS_LOC_LEN);
}

#endif /* KIW_STATS_H */
