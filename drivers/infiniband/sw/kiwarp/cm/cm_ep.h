/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Endpoints, for cm_ep.c (lifetime, events), cm_mpa.c (frames), cm_listen.c (listeners), cm_id.c
 * (the iw_cm_id) and cm.c (calls from iw_cm). Outside this folder only verbs/verbs_res.c uses them.
 *
 * Owns: &struct kiw_ep.
 */
#ifndef KIW_CM_EP_H
#define KIW_CM_EP_H

#include <linux/completion.h>
#include <linux/kref.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/socket.h>
#include <linux/spinlock.h>
#include <linux/timer.h>
#include <linux/workqueue.h>
#include <rdma/iw_cm.h>

#include "policy.h"
#include "proto/cm_fsm.h"
#include "proto/large.h"
#include "proto/mpa_neg.h"
#include "proto/wire.h"

struct ib_qp;
struct iw_cm_conn_param;
struct iw_cm_id;
struct kiw_conn_ops;
struct kiw_device;
struct kiw_qp;
struct kiw_sock;
struct kiw_sock_local;
struct kiw_sock_ops;

/* Most private data iw_cm can carry to the consumer (u8), in bytes */
#define KIW_EP_PDATA_MAX	255

/* Events noted by callbacks; bits of &struct kiw_ep.facts */
#define KIW_EPF_SPOKEN		0
#define KIW_EPF_QP_CLOSED	1
#define KIW_EPF_DEADLINE	2

/**
 * struct kiw_ep_startup - data that only listeners and endpoints in their startup need
 * @local: our address
 * @remote: the peer's address
 * @is_mapped: the port mapper holds the port of @local for us
 * @tos: type of service or traffic class, negative: the default
 * @want: what this end wants
 * @rfc7306: the policy allows the messages of RFC 7306
 * @fpdus: the policy about large FPDUs
 * @zero_copy: the policy about lending pages to TCP
 * @req: the Request, as sent or received
 * @frame_len: length of the Request in @buf, in bytes (CONNECTING)
 * @pdata: private data for the next upcall or rejection, not owned
 * @own_pdata: initiator: the consumer's private data for the peer; owned
 * @pdata_len: length of @pdata in bytes
 * @own_pdata_len: length of @own_pdata in bytes
 * @buf: a frame
 */
struct kiw_ep_startup {
	struct sockaddr_storage local;
	struct sockaddr_storage remote;
	bool is_mapped;
	int tos;
	struct kiw_mpa_local want;
	bool rfc7306;
	enum kiw_fpdus fpdus;
	enum kiw_zero_copy zero_copy;
	struct kiw_mpa_frame req;
	size_t frame_len;
	const void *pdata;
	void *own_pdata;
	u8 pdata_len;
	u16 own_pdata_len;
	u8 buf[KIW_MPA_FRAME_MAX];
};

/**
 * struct kiw_ep_accept - a process that waits in accept
 * @cm_handler: the cm_id's own handler, which ours replaces until ESTABLISHED arrives
 * @is_taken: iw_cm has taken ESTABLISHED
 */
struct kiw_ep_accept {
	iw_cm_handler cm_handler;
	struct completion is_taken;
};

/**
 * struct kiw_ep - one end of a connection, or a listener
 * @ref: reference count: one from leaving IDLE to entering CLOSED, one each for a queued
 *	@work, an armed @deadline, a QP that may still call back, @link, @half_link and a caller
 *	that uses the endpoint; listener: one for each @listener and @half_listener that points
 *	to it
 * @id: number, the provider data of an iw_cm_id: see kiw_ep_handle()
 * @dev: the device; outlives the endpoint
 * @lock: protects everything below unless stated otherwise; taken in process context, never by
 *	callbacks of sockets and QPs. Order: listener's @lock, child's @lock, then listener's
 *	@children_lock, or the QP's mutex and the socket lock, then the device's @half_open_lock or
 *	@startups_lock
 * @state: &enum kiw_cm_state; written by kiw_ep_step()
 * @agreed: the outcome of the negotiation
 * @facts: %KIW_EPF_ bits, atomic
 * @work: checks the stream and @facts, and takes the steps that follow
 * @deadline: end of the startup; listener: when to try again; queues @work
 * @cm_id: receives our events; referenced; NULL before connect, listen or the accept of an incoming
 *	connection, and once the endpoint has ended
 * @ks: the stream, until the QP has it, or the listening socket
 * @qp: referenced; from connect or accept until the endpoint has ended
 * @accept: on the stack of the accepting process, NULL otherwise; written under @lock,
 *	read by the work item of iw_cm for which the process waits
 * @startup: owned; NULL once the startup has succeeded or failed; a listener keeps it
 * @listener: the listener it came from, referenced; NULL once the consumer has been told, or the
 *	endpoint has ended
 * @link: in @listener's @children; protected by @listener's @children_lock
 * @half_link: in the device's @half_open until the consumer has answered, or the endpoint has
 *	ended; protected by its lock, joins and leaves under @lock
 * @half_listener: the listener it came from, referenced, as long as @half_link is in the list
 * @startup_link: initiator: in the QP's list of startups until this one has ended; protected
 *	by the device's @startups_lock
 * @children: listener: connections that the consumer has not been told of
 * @num_children: listener: length of @children
 * @num_half_open: listener: its connections in the device's @half_open; protected by its lock
 * @backlog: listener: connections the consumer allows for; the policy adds to it
 * @children_lock: listener: protects @children, @num_children and @is_stopped; held during the
 *	upcall of a Request
 * @is_stopped: listener: takes no more children, and @cm_id must not be called any more
 */
struct kiw_ep {
	struct kref ref;
	u32 id;
	struct kiw_device *dev;

	struct mutex lock;
	enum kiw_cm_state state;
	struct kiw_mpa_outcome agreed;
	unsigned long facts;
	struct work_struct work;
	struct timer_list deadline;

	struct iw_cm_id *cm_id;
	struct kiw_sock *ks;
	struct kiw_qp *qp;
	struct kiw_ep_accept *accept;
	struct kiw_ep_startup *startup;

	struct kiw_ep *listener;
	struct list_head link;
	struct list_head half_link;
	struct kiw_ep *half_listener;
	struct list_head startup_link;

	struct list_head children;
	unsigned int num_children;
	unsigned int num_half_open;
	unsigned int backlog;
	spinlock_t children_lock;
	bool is_stopped;
};

extern const struct kiw_conn_ops kiw_ep_conn_ops;
extern const struct kiw_sock_ops kiw_ep_sock_ops;

/* cm_ep.c; any context; dropping the last reference: process context */
void kiw_ep_get(struct kiw_ep *ep);
void kiw_ep_put(struct kiw_ep *ep);
void kiw_ep_kick(struct kiw_ep *ep);

/* cm_ep.c; process context */
struct kiw_ep *kiw_ep_new(struct kiw_device *dev);
struct kiw_ep *kiw_ep_find(const struct iw_cm_id *id);
struct kiw_ep *kiw_ep_next(struct kiw_device *dev, unsigned long *id);
struct kiw_ep *kiw_ep_first_startup(struct kiw_device *dev, struct kiw_qp *qp);

/* cm_ep.c; process context, the endpoint's lock held */
void kiw_ep_arm(struct kiw_ep *ep, unsigned int timeout_ms);
void kiw_ep_step(struct kiw_ep *ep, enum kiw_cm_event event, int status);
void kiw_ep_progress(struct kiw_ep *ep);
void kiw_ep_join_qp(struct kiw_ep *ep);

/* cm_id.c; process context, the endpoint's lock held */
void kiw_ep_bind_id(struct kiw_ep *ep, struct iw_cm_id *id);
void kiw_ep_unbind_id(struct kiw_ep *ep);
bool kiw_ep_is_at_home(const struct kiw_ep *ep);
int kiw_ep_refuse_foreigner(struct kiw_ep *ep);
bool kiw_ep_is_wildcard(const struct kiw_ep *ep);
struct kiw_sock_local kiw_ep_local(const struct kiw_ep *ep);

/* cm_listen.c; process context, the endpoint's lock held */
void kiw_ep_try_accept(struct kiw_ep *listener);

/* cm_mpa.c; process context, the endpoint's lock held, or the endpoint new */
void kiw_ep_init_mpa(struct kiw_ep *ep);
int kiw_ep_build_request(struct kiw_ep *ep, const struct iw_cm_conn_param *param);
void kiw_ep_try_connected(struct kiw_ep *ep);
void kiw_ep_try_reply(struct kiw_ep *ep);
void kiw_ep_try_request(struct kiw_ep *ep);
void kiw_ep_check_stream(struct kiw_ep *ep);
int kiw_ep_accept(struct kiw_ep *ep, struct iw_cm_id *id, const struct iw_cm_conn_param *param);
void kiw_ep_send_reject(struct kiw_ep *ep);

/* The provider data that iw_cm keeps in a cm_id: the endpoint's number, see cm_listen.c. */
static inline void *kiw_ep_handle(const struct kiw_ep *ep)
{
	return (void *)(unsigned long)ep->id;
}

#endif /* KIW_CM_EP_H */
