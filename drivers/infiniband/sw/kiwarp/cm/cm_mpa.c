// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * MPA startup on a stream: sends and reads Request and Reply, and hands the stream to
 * the QP when this end agrees (RFC 5044 7.1, RFC 6581).
 *
 * What is found on a stream is reported as an event to kiw_ep_step().
 *
 * Owns nothing. Works on endpoints in process context with their lock held, unless they are new.
 * Nothing here waits for the peer: incoming data is peeked at until a frame is complete,
 * and then exactly that frame is consumed. The bytes after the frame belong to the next phase and
 * stay in TCP's queue.
 *
 * A stream enters full operation in these steps:
 *
 *  1. The QP takes the stream and with it the callbacks (kiw_qp_connect()), so that nothing
 *     that arrives from then on is lost.
 *  2. The responder sends its Reply. The engines are still stopped, so nothing can precede it.
 *  3. The engines start, and process what has already arrived (kiw_qp_start()).
 *  4. The consumer is told.
 */
#include "cm_ep.h"

#include <linux/slab.h>
#include <rdma/iw_cm.h>

#include "device.h"
#include "proto/term_first.h"
#include "qp/qp.h"
#include "qp/qp_table.h"
#include "run/qp_work.h"
#include "sock/sock.h"
#include "trace.h"

static const char * const verdict_names[] = {
	[KIW_MPA_MORE]		= "incomplete frame",
	[KIW_MPA_OK]		= "ok",
	[KIW_MPA_BAD_KEY]	= "not an MPA frame",
	[KIW_MPA_WRONG_ROLE]	= "frame of the wrong role",
	[KIW_MPA_BAD_REV]	= "revision not spoken",
	[KIW_MPA_BAD_LENGTH]	= "bad private data length",
};

static void mpa_trace_bad(struct kiw_ep *ep, const char *reason)
{
	trace_kiw_mpa_bad(dev_name(&ep->dev->ib.dev), ep->id, reason);
}

/* Why the stream could not be made, or has ended, as an error for rdma_cm. */
static int mpa_stream_error(struct kiw_ep *ep, int err)
{
	if (!err)
		err = kiw_sock_error(ep->ks);
	switch (err) {
	case 0:
	case -EPIPE:
	case -ENOTCONN:
		return -ECONNRESET;
	default:
		return err;
	}
}

static bool mpa_is_over(enum kiw_sock_status status)
{
	return status == KIW_SOCK_PEER_CLOSED || status == KIW_SOCK_DEAD;
}

/**
 * kiw_ep_check_stream() - check whether the stream is still alive
 * @ep: endpoint that waits for something other than the peer
 *
 * If the peer has closed its half, or the stream is dead, the endpoint gets the event LOST.
 *
 * Context: process, may sleep; @ep's lock held.
 */
void kiw_ep_check_stream(struct kiw_ep *ep)
{
	lockdep_assert_held(&ep->lock);
	if (mpa_is_over(kiw_sock_status(ep->ks)))
		kiw_ep_step(ep, KIW_CME_LOST, mpa_stream_error(ep, 0));
}

static void mpa_want_rtr(struct kiw_mpa_local *want, unsigned int order)
{
	int i;

	for (i = 0; i < KIW_RTR_KINDS; i++) {
		want->rtr_order[i] = order;
		want->rtr |= want->rtr_order[i];
		order >>= KIW_POLICY_RTR_BITS;
	}
}

/**
 * kiw_ep_init_mpa() - initialize what an endpoint wants, before its consumer says more
 * @ep: new endpoint
 *
 * Context: any; @ep is not yet visible to others.
 */
void kiw_ep_init_mpa(struct kiw_ep *ep)
{
	const struct kiw_policy *policy = &ep->dev->policy;

	ep->startup->want = (struct kiw_mpa_local) {
		.rev = kiw_policy_get(policy, KIW_POLICY_MPA_REV),
		.crc = kiw_policy_get(policy, KIW_POLICY_CRC),
		.markers = kiw_policy_get(policy, KIW_POLICY_MARKERS),
		.p2p = kiw_policy_get(policy, KIW_POLICY_P2P),
		.rdmac = kiw_policy_get(policy, KIW_POLICY_RDMAC),
		.ird = KIW_MAX_READS,
		.ord = KIW_MAX_READS,
		.max_ird = KIW_MAX_READS,
		.max_ord = KIW_MAX_READS,
	};
	mpa_want_rtr(&ep->startup->want, kiw_policy_get(policy, KIW_POLICY_RTR));
	ep->startup->rfc7306 = kiw_policy_get(policy, KIW_POLICY_RFC7306);
	ep->startup->fpdus = kiw_policy_get(policy, KIW_POLICY_FPDU);
	ep->startup->zero_copy = kiw_policy_get(policy, KIW_POLICY_ZERO_COPY);
}

static void mpa_want_depths(struct kiw_ep *ep, const struct iw_cm_conn_param *param)
{
	ep->startup->want.ird = min_t(u32, param->ird, KIW_MAX_READS);
	ep->startup->want.ord = min_t(u32, param->ord, KIW_MAX_READS);
}

static int mpa_build_request(struct kiw_ep *ep)
{
	struct kiw_ep_startup *startup = ep->startup;

	kiw_mpa_request(&startup->want, &startup->req);
	startup->frame_len = kiw_mpa_build(startup->buf, &startup->req, false,
					   startup->own_pdata, startup->own_pdata_len);
	return startup->frame_len ? 0 : -EINVAL;
}

/**
 * kiw_ep_build_request() - prepare our Request
 * @ep: new endpoint to connect
 * @param: what the consumer wants; not kept
 *
 * Context: process.
 * Return: 0 or -ENOMEM.
 */
int kiw_ep_build_request(struct kiw_ep *ep, const struct iw_cm_conn_param *param)
{
	struct kiw_ep_startup *startup = ep->startup;

	mpa_want_depths(ep, param);
	if (param->private_data_len) {
		startup->own_pdata = kmemdup(param->private_data, param->private_data_len,
					     GFP_KERNEL_ACCOUNT);
		if (!startup->own_pdata)
			return -ENOMEM;
	}
	startup->own_pdata_len = param->private_data_len;
	return mpa_build_request(ep);
}

/**
 * kiw_ep_try_connected() - send our Request if TCP is connected
 * @ep: endpoint in CONNECTING
 *
 * Context: process, may sleep; @ep's lock held.
 */
void kiw_ep_try_connected(struct kiw_ep *ep)
{
	int ret;

	lockdep_assert_held(&ep->lock);
	switch (kiw_sock_status(ep->ks)) {
	case KIW_SOCK_CONNECTING:
		return;
	case KIW_SOCK_DEAD:
		kiw_ep_step(ep, KIW_CME_LOST, mpa_stream_error(ep, 0));
		return;
	default:
		break;
	}
	/* For rdma_cm: the ports in use. If the stream is gone, sending fails below. */
	kiw_sock_names(ep->ks, &ep->startup->local, &ep->startup->remote);
	ret = kiw_sock_send_all(ep->ks, ep->startup->buf, ep->startup->frame_len);
	if (ret)
		kiw_ep_step(ep, KIW_CME_FAILED, mpa_stream_error(ep, ret));
	else
		kiw_ep_step(ep, KIW_CME_REQUEST_SENT, 0);
}

static void mpa_let_go_of_stream(struct kiw_ep *ep)
{
	kiw_sock_put(ep->ks);
	ep->ks = NULL;
}

/*
 * RFC 6581 10: the peer seems not to understand the enhanced Request. Try again with revision 1,
 * on a new stream and within what is left of the deadline.
 */
static void mpa_retry_plain(struct kiw_ep *ep)
{
	int ret;

	ep->startup->want.rev = KIW_MPA_REV_1;
	ret = mpa_build_request(ep);
	if (!ret)
		ret = kiw_sock_reconnect(ep->ks, &ep->startup->local, &ep->startup->remote);
	if (ret)
		kiw_ep_step(ep, KIW_CME_FAILED, ret);
	else
		kiw_ep_step(ep, KIW_CME_RETRY, 0);
}

/* No whole frame can be read any more; @got: bytes of it that arrived, or -errno. */
static void mpa_frame_lost(struct kiw_ep *ep, int got)
{
	int err = mpa_stream_error(ep, min(got, 0));

	if (ep->state == KIW_CMS_WAIT_REPLY && got <= 0 && ep->startup->req.enhanced &&
	    err == -ECONNRESET)
		mpa_retry_plain(ep);
	else
		kiw_ep_step(ep, KIW_CME_LOST, err);
}

/*
 * Read a frame if it has arrived completely. If no valid frame can arrive any more, report that as
 * an event.
 * Return: whether @frame is valid; its private data is in &struct kiw_ep_startup.buf.
 */
static bool mpa_read_frame(struct kiw_ep *ep, bool reply, struct kiw_mpa_frame *frame)
{
	struct kiw_ep_startup *startup = ep->startup;
	enum kiw_mpa_verdict verdict;
	enum kiw_sock_status status;
	size_t need;
	int got;

	/* Status first: if the stream has ended, all that came before is in the queue. */
	status = kiw_sock_status(ep->ks);
	got = kiw_sock_peek(ep->ks, startup->buf, KIW_MPA_FRAME_MAX);
	verdict = kiw_mpa_parse(startup->buf, max(got, 0), reply, &startup->want, frame, &need);
	if (verdict == KIW_MPA_MORE) {
		if (got < 0 || mpa_is_over(status))
			mpa_frame_lost(ep, got);
		return false;
	}
	if (verdict != KIW_MPA_OK) {
		mpa_trace_bad(ep, verdict_names[verdict]);
		kiw_ep_step(ep, KIW_CME_BAD_FRAME, -EPROTO);
		return false;
	}
	if (kiw_sock_discard(ep->ks, need)) {
		kiw_ep_step(ep, KIW_CME_LOST, mpa_stream_error(ep, 0));
		return false;
	}
	return true;
}

/*
 * Keep the frame's private data for the upcall. A frame can have 512 octets of them, but iw_cm can
 * carry only 255. Longer data are not truncated, because that would be data the peer never sent.
 * Return: false: they are too long.
 */
static bool mpa_take_pdata(struct kiw_ep *ep, const struct kiw_mpa_frame *frame)
{
	if (frame->pd_len > KIW_EP_PDATA_MAX) {
		mpa_trace_bad(ep, "more private data than iw_cm can carry");
		return false;
	}
	ep->startup->pdata = ep->startup->buf + frame->pd_offset;
	ep->startup->pdata_len = frame->pd_len;
	return true;
}

/*
 * MPA does not negotiate RFC 7306, which needs version 1 of RDMAP (4.1). Opcodes for which the QP's
 * queues have no room are refused as unknown.
 */
static u8 mpa_opcodes(const struct kiw_ep *ep)
{
	if (ep->startup->rfc7306 && ep->qp->has_rfc7306 &&
	    ep->agreed.version == KIW_DDP_VERSION_IETF)
		return KIW_RDMAP_OPCODES_7306;
	return KIW_RDMAP_OPCODES_5040;
}

/* On success the QP has the stream, and holds a reference to @ep until its last callback. */
static int mpa_hand_over(struct kiw_ep *ep, bool initiator)
{
	const struct kiw_conn_params params = {
		.ks = ep->ks,
		.initiator = initiator,
		.crc = ep->agreed.crc,
		.tx_markers = ep->agreed.tx_markers,
		.rx_markers = ep->agreed.rx_markers,
		.version = ep->agreed.version,
		.opcodes = mpa_opcodes(ep),
		.ird = ep->agreed.ird,
		.ord = ep->agreed.ord,
		.rtr = initiator && ep->agreed.p2p ? ep->agreed.rtr : 0,
		.fpdus = ep->startup->fpdus,
		.zero_copy = ep->startup->zero_copy,
		.expect_rtr = !initiator && ep->agreed.p2p && (ep->agreed.rtr & KIW_RTR_SEND),
		.ops = &kiw_ep_conn_ops,
		.conn = ep,
	};
	int ret;

	kiw_ep_get(ep);
	ret = kiw_qp_connect(ep->qp, &params);
	if (ret)
		kiw_ep_put(ep);
	return ret;
}

static void mpa_start(struct kiw_ep *ep)
{
	mpa_let_go_of_stream(ep);
	kiw_qp_start(ep->qp, ep);
}

/*
 * Send a Terminate that says why there is no connection, which the peer considers established (RFC
 * 6581 9.1 to 9.3). If it cannot be sent, only close the stream.
 */
static void mpa_disagree(struct kiw_ep *ep, enum kiw_perr perr, int status)
{
	const struct kiw_perr_info *info = kiw_perr_info(perr);
	u8 fpdu[KIW_TERM_FIRST_MAX];
	size_t len;

	trace_kiw_perr_tx(dev_name(&ep->dev->ib.dev), ep->qp->ib.qp_num, info->text, info->layer,
			  info->etype, info->code, 0);
	len = kiw_term_first(fpdu, perr, &ep->agreed);
	if (!kiw_sock_send_all(ep->ks, fpdu, len))
		kiw_count(&ep->dev->stats, KIW_STAT_TX_TERMINATES);
	/* This CONNECT_REPLY has no depths. */
	ep->agreed.ird = 0;
	ep->agreed.ord = 0;
	kiw_ep_step(ep, KIW_CME_DISAGREED, status);
}

static void mpa_conclude(struct kiw_ep *ep, const struct kiw_mpa_frame *reply)
{
	enum kiw_perr perr;
	int ret;

	perr = kiw_mpa_conclude(&ep->startup->want, &ep->startup->req, reply, &ep->agreed);
	if (perr != KIW_PERR_NONE) {
		mpa_disagree(ep, perr, -EPROTO);
		return;
	}
	if (!mpa_take_pdata(ep, reply)) {
		mpa_disagree(ep, KIW_PERR_MPA_LOCAL, -EMSGSIZE);
		return;
	}
	ret = mpa_hand_over(ep, true);
	if (ret) {
		ep->startup->pdata_len = 0;
		mpa_disagree(ep, KIW_PERR_MPA_LOCAL, ret);
		return;
	}
	mpa_start(ep);
	kiw_ep_step(ep, KIW_CME_AGREED, 0);
}

/* Pass on private data and, if there are any, the depths (RFC 6581 9.1). */
static void mpa_rejected(struct kiw_ep *ep, const struct kiw_mpa_frame *reply)
{
	/* If the private data is too long, report the rejection without it. */
	mpa_take_pdata(ep, reply);
	if (reply->enhanced)
		kiw_mpa_peer_limits(reply, &ep->startup->want, &ep->agreed.ird, &ep->agreed.ord);
	kiw_ep_step(ep, KIW_CME_REFUSED, -ECONNREFUSED);
}

/**
 * kiw_ep_try_reply() - process the peer's Reply if it has arrived
 * @ep: endpoint in WAIT_REPLY
 *
 * RFC 5044 7.1.2, RFC 6581 9.
 *
 * Context: process, may sleep; @ep's lock held.
 */
void kiw_ep_try_reply(struct kiw_ep *ep)
{
	struct kiw_mpa_frame reply;

	lockdep_assert_held(&ep->lock);
	if (!mpa_read_frame(ep, true, &reply))
		return;
	if (reply.reject)
		mpa_rejected(ep, &reply);
	else if (kiw_mpa_wants_plain(&ep->startup->req, &reply))
		mpa_retry_plain(ep);
	else
		mpa_conclude(ep, &reply);
}

/**
 * kiw_ep_try_request() - tell the consumer if a Request has arrived
 * @ep: endpoint in WAIT_REQUEST
 *
 * A Request that cannot be accepted is rejected here: one of revision 0 when that is not enabled
 * (RFC 5044 C.2.1), one without a common RTR that can be used, or one with more private data than
 * iw_cm can carry.
 *
 * Context: process, may sleep; @ep's lock held.
 */
void kiw_ep_try_request(struct kiw_ep *ep)
{
	struct kiw_mpa_frame reply;

	lockdep_assert_held(&ep->lock);
	if (!mpa_read_frame(ep, false, &ep->startup->req))
		return;
	if (!kiw_mpa_answer(&ep->startup->want, &ep->startup->req, &reply, &ep->agreed)) {
		mpa_trace_bad(ep, "no agreement is possible");
		kiw_ep_step(ep, KIW_CME_FAILED, -EPROTO);
	} else if (!mpa_take_pdata(ep, &ep->startup->req)) {
		kiw_ep_step(ep, KIW_CME_FAILED, -EMSGSIZE);
	} else {
		kiw_ep_step(ep, KIW_CME_REQUEST, 0);
	}
}

/* Do all that can fail before the peer is told. Return: length of the Reply or -errno. */
static int mpa_prepare_accept(struct kiw_ep *ep, const struct iw_cm_id *id,
			      const struct iw_cm_conn_param *param)
{
	struct kiw_mpa_frame reply;
	size_t len;
	int ret;

	ep->qp = kiw_qp_table_find(&ep->dev->qps, id, param->qpn);
	if (!ep->qp)
		return -EINVAL;
	mpa_want_depths(ep, param);
	if (!kiw_mpa_answer(&ep->startup->want, &ep->startup->req, &reply, &ep->agreed))
		return -EPROTO;
	len = kiw_mpa_build(ep->startup->buf, &reply, true, param->private_data,
			    param->private_data_len);
	if (!len)
		return -EINVAL;
	if (ep->qp->is_user) {
		ret = kiw_sock_charge_caller(ep->ks);
		if (ret)
			return ret;
	}
	return mpa_hand_over(ep, false) ?: len;
}

/**
 * kiw_ep_accept() - accept a connection request for the consumer
 * @ep: endpoint in REQUEST_GIVEN
 * @id: the iw_cm_id that gets the events from now on; on success, @ep holds a reference to it
 * @param: what the consumer wants; not kept
 *
 * RFC 5044 7.1.2, RFC 6581 9.
 *
 * Context: process, may sleep; @ep's lock held.
 * Return: 0: the events follow, ESTABLISHED perhaps before this returns; -errno: no event
 * follows and @ep is closed.
 */
int kiw_ep_accept(struct kiw_ep *ep, struct iw_cm_id *id, const struct iw_cm_conn_param *param)
{
	int len;
	int ret;

	lockdep_assert_held(&ep->lock);
	len = mpa_prepare_accept(ep, id, param);
	if (len < 0) {
		kiw_ep_step(ep, KIW_CME_FAILED, len);
		return len;
	}
	ret = kiw_sock_send_all(ep->ks, ep->startup->buf, len);
	if (ret) {
		mpa_let_go_of_stream(ep);
		kiw_ep_step(ep, KIW_CME_UNSENT, ret);
		return ret;
	}
	ep->cm_id = id;
	id->add_ref(id);
	mpa_start(ep);
	kiw_ep_step(ep, ep->agreed.p2p ? KIW_CME_ACCEPT_P2P : KIW_CME_ACCEPT, 0);
	return 0;
}

/**
 * kiw_ep_send_reject() - send a Reply that rejects
 * @ep: endpoint that has read a Request; @startup has the private data for the peer
 *
 * RFC 5044 7.1.2. If the Reply cannot be sent, the stream is closed without it.
 *
 * Context: process, may sleep; @ep's lock held.
 */
void kiw_ep_send_reject(struct kiw_ep *ep)
{
	struct kiw_ep_startup *startup = ep->startup;
	struct kiw_mpa_frame reply;
	size_t len;

	lockdep_assert_held(&ep->lock);
	kiw_mpa_refuse(&startup->want, &startup->req, &reply);
	len = kiw_mpa_build(startup->buf, &reply, true, startup->pdata, startup->pdata_len);
	kiw_sock_send_all(ep->ks, startup->buf, len);
}
