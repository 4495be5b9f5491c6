/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Trace events: state changes, errors found here or reported by the peer, bad MPA frames, invalid
 * work requests, registrations, CQ overruns, SRQ limits and closed streams. Objects are identified
 * by device and number, a closed stream by its ports, none by a pointer of the driver; states,
 * events and faults by their names.
 *
 * Documentation/tracing.rst explains each event and shows how to watch them. All of them may
 * be used in any context; strings are copied.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM kiwarp

#if !defined(KIW_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define KIW_TRACE_H

#include <linux/tracepoint.h>
#include <linux/types.h>

TRACE_EVENT(kiw_qp_state,
	TP_PROTO(const char *dev, u32 qpn, const char *from, const char *event, const char *to),

	TP_ARGS(dev, qpn, from, event, to),

	TP_STRUCT__entry(
		__string(dev, dev)
		__string(from, from)
		__string(event, event)
		__string(to, to)
		__field(u32, qpn)
	),

	TP_fast_assign(
		kiw_compat_assign_str(dev, dev);
		kiw_compat_assign_str(from, from);
		kiw_compat_assign_str(event, event);
		kiw_compat_assign_str(to, to);
		__entry->qpn = qpn;
	),

	TP_printk("dev=%s qp=%u %s --%s--> %s", __get_str(dev), __entry->qpn,
		  __get_str(from), __get_str(event), __get_str(to))
);

TRACE_EVENT(kiw_ep_state,
	TP_PROTO(const char *dev, u32 ep, const char *from, const char *event, const char *to),

	TP_ARGS(dev, ep, from, event, to),

	TP_STRUCT__entry(
		__string(dev, dev)
		__string(from, from)
		__string(event, event)
		__string(to, to)
		__field(u32, ep)
	),

	TP_fast_assign(
		kiw_compat_assign_str(dev, dev);
		kiw_compat_assign_str(from, from);
		kiw_compat_assign_str(event, event);
		kiw_compat_assign_str(to, to);
		__entry->ep = ep;
	),

	TP_printk("dev=%s ep=%u %s --%s--> %s", __get_str(dev), __entry->ep,
		  __get_str(from), __get_str(event), __get_str(to))
);

DECLARE_EVENT_CLASS(kiw_perr_class,
	TP_PROTO(const char *dev, u32 qpn, const char *perr, u8 layer, u8 etype, u8 code,
		 u8 opcode),

	TP_ARGS(dev, qpn, perr, layer, etype, code, opcode),

	TP_STRUCT__entry(
		__string(dev, dev)
		__string(perr, perr)
		__field(u32, qpn)
		__field(u8, layer)
		__field(u8, etype)
		__field(u8, code)
		__field(u8, opcode)
	),

	TP_fast_assign(
		kiw_compat_assign_str(dev, dev);
		kiw_compat_assign_str(perr, perr);
		__entry->qpn = qpn;
		__entry->layer = layer;
		__entry->etype = etype;
		__entry->code = code;
		__entry->opcode = opcode;
	),

	TP_printk("dev=%s qp=%u %s (layer=%u etype=%u code=0x%02x) opcode=%u", __get_str(dev),
		  __entry->qpn, __get_str(perr), __entry->layer, __entry->etype, __entry->code,
		  __entry->opcode)
);

/*
 * A fault ends the stream: one of the peer, or a local one, such as invalid memory of the consumer
 * or a CQ overrun. A Terminate reports it to the peer, if one can be sent.
 */
DEFINE_EVENT(kiw_perr_class, kiw_perr_tx,
	TP_PROTO(const char *dev, u32 qpn, const char *perr, u8 layer, u8 etype, u8 code,
		 u8 opcode),

	TP_ARGS(dev, qpn, perr, layer, etype, code, opcode)
);

/* The peer's Terminate has arrived */
DEFINE_EVENT(kiw_perr_class, kiw_perr_rx,
	TP_PROTO(const char *dev, u32 qpn, const char *perr, u8 layer, u8 etype, u8 code,
		 u8 opcode),

	TP_ARGS(dev, qpn, perr, layer, etype, code, opcode)
);

TRACE_EVENT(kiw_mpa_bad,
	TP_PROTO(const char *dev, u32 ep, const char *reason),

	TP_ARGS(dev, ep, reason),

	TP_STRUCT__entry(
		__string(dev, dev)
		__string(reason, reason)
		__field(u32, ep)
	),

	TP_fast_assign(
		kiw_compat_assign_str(dev, dev);
		kiw_compat_assign_str(reason, reason);
		__entry->ep = ep;
	),

	TP_printk("dev=%s ep=%u %s", __get_str(dev), __entry->ep, __get_str(reason))
);

TRACE_EVENT(kiw_wr_invalid,
	TP_PROTO(const char *dev, u32 qpn, u64 wr_id, u8 op, const char *reason),

	TP_ARGS(dev, qpn, wr_id, op, reason),

	TP_STRUCT__entry(
		__string(dev, dev)
		__string(reason, reason)
		__field(u64, wr_id)
		__field(u32, qpn)
		__field(u8, op)
	),

	TP_fast_assign(
		kiw_compat_assign_str(dev, dev);
		kiw_compat_assign_str(reason, reason);
		__entry->wr_id = wr_id;
		__entry->qpn = qpn;
		__entry->op = op;
	),

	TP_printk("dev=%s qp=%u wr_id=0x%llx op=%u %s", __get_str(dev), __entry->qpn,
		  __entry->wr_id, __entry->op, __get_str(reason))
);

TRACE_EVENT(kiw_mr,
	TP_PROTO(const char *dev, u32 stag, const char *what, u64 base, u64 length, int access),

	TP_ARGS(dev, stag, what, base, length, access),

	TP_STRUCT__entry(
		__string(dev, dev)
		__string(what, what)
		__field(u64, base)
		__field(u64, length)
		__field(u32, stag)
		__field(int, access)
	),

	TP_fast_assign(
		kiw_compat_assign_str(dev, dev);
		kiw_compat_assign_str(what, what);
		__entry->base = base;
		__entry->length = length;
		__entry->stag = stag;
		__entry->access = access;
	),

	TP_printk("dev=%s stag=0x%08x %s base=0x%llx length=%llu access=0x%x",
		  __get_str(dev), __entry->stag, __get_str(what), __entry->base,
		  __entry->length, __entry->access)
);

DECLARE_EVENT_CLASS(kiw_queue_class,
	TP_PROTO(const char *dev, u32 id),

	TP_ARGS(dev, id),

	TP_STRUCT__entry(
		__string(dev, dev)
		__field(u32, id)
	),

	TP_fast_assign(
		kiw_compat_assign_str(dev, dev);
		__entry->id = id;
	),

	TP_printk("dev=%s id=%u", __get_str(dev), __entry->id)
);

/* A completion did not fit into the queue, which takes no more completions */
DEFINE_EVENT(kiw_queue_class, kiw_cq_overrun,
	TP_PROTO(const char *dev, u32 id),

	TP_ARGS(dev, id)
);

/* A message left fewer receives in a shared receive queue than its limit, which is disarmed */
DEFINE_EVENT(kiw_queue_class, kiw_srq_limit,
	TP_PROTO(const char *dev, u32 id),

	TP_ARGS(dev, id)
);

TRACE_EVENT(kiw_sock_close,
	TP_PROTO(u16 local_port, u16 remote_port, const char *how, int err),

	TP_ARGS(local_port, remote_port, how, err),

	TP_STRUCT__entry(
		__string(how, how)
		__field(int, err)
		__field(u16, local_port)
		__field(u16, remote_port)
	),

	TP_fast_assign(
		kiw_compat_assign_str(how, how);
		__entry->err = err;
		__entry->local_port = local_port;
		__entry->remote_port = remote_port;
	),

	TP_printk("lport=%u rport=%u %s err=%d", __entry->local_port, __entry->remote_port,
		  __get_str(how), __entry->err)
);

#endif /* KIW_TRACE_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
