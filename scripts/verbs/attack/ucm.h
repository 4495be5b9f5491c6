/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * The ABI of /dev/infiniband/rdma_cm: each command that the program uses.
 */
#ifndef KIW_ATTACK_UCM_H
#define KIW_ATTACK_UCM_H

#include "../common.h"

#include <netinet/in.h>

/* librdmacm's header has the same names for the same values. */
#define RDMA_PS_IPOIB	UCM_PS_IPOIB
#define RDMA_PS_IB	UCM_PS_IB
#define RDMA_PS_TCP	UCM_PS_TCP
#define RDMA_PS_UDP	UCM_PS_UDP
#define RDMA_MC_JOIN_FLAG_FULLMEMBER	UCM_MC_JOIN_FLAG_FULLMEMBER
#define RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER	UCM_MC_JOIN_FLAG_SENDONLY_FULLMEMBER
#define RDMA_MC_JOIN_FLAG_RESERVED	UCM_MC_JOIN_FLAG_RESERVED
#define RDMA_OPTION_ID	UCM_OPTION_ID
#define RDMA_OPTION_IB	UCM_OPTION_IB
#define RDMA_OPTION_ID_TOS	UCM_OPTION_ID_TOS
#define RDMA_OPTION_ID_REUSEADDR	UCM_OPTION_ID_REUSEADDR
#define RDMA_OPTION_ID_AFONLY	UCM_OPTION_ID_AFONLY
#define RDMA_OPTION_ID_ACK_TIMEOUT	UCM_OPTION_ID_ACK_TIMEOUT
#define RDMA_OPTION_IB_PATH	UCM_OPTION_IB_PATH
#include <rdma/rdma_user_cm.h>
#undef RDMA_PS_IPOIB
#undef RDMA_PS_IB
#undef RDMA_PS_TCP
#undef RDMA_PS_UDP
#undef RDMA_MC_JOIN_FLAG_FULLMEMBER
#undef RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER
#undef RDMA_MC_JOIN_FLAG_RESERVED
#undef RDMA_OPTION_ID
#undef RDMA_OPTION_IB
#undef RDMA_OPTION_ID_TOS
#undef RDMA_OPTION_ID_REUSEADDR
#undef RDMA_OPTION_ID_AFONLY
#undef RDMA_OPTION_ID_ACK_TIMEOUT
#undef RDMA_OPTION_IB_PATH

int cm_call(int fd, __u32 cmd, const void *in, __u16 len, __u16 out);
int cm_open(void);
void set_address(void *to, const char *addr, __u16 port);
int next_event(int fd, struct rdma_ucm_event_resp *event, double seconds);
int expect(int fd, __u32 type, struct rdma_ucm_event_resp *event);
__u32 routed_id(int fd, const char *addr, __u16 port);

/* One command each. Return: 0 or -errno */

static inline int cm_create(int fd, __u32 *id, __u64 uid)
{
	struct rdma_ucm_create_id_resp resp = { 0 };
	struct rdma_ucm_create_id cmd = {
		.uid = uid, .response = (unsigned long)&resp, .ps = RDMA_PS_TCP,
	};
	int ret = cm_call(fd, RDMA_USER_CM_CMD_CREATE_ID, &cmd, sizeof(cmd), sizeof(resp));

	*id = resp.id;
	return ret;
}

static inline int cm_destroy(int fd, __u32 id)
{
	struct rdma_ucm_destroy_id_resp resp;
	struct rdma_ucm_destroy_id cmd = { .response = (unsigned long)&resp, .id = id };

	return cm_call(fd, RDMA_USER_CM_CMD_DESTROY_ID, &cmd, sizeof(cmd), sizeof(resp));
}

static inline int cm_bind(int fd, __u32 id, const char *addr, __u16 port)
{
	struct rdma_ucm_bind cmd = { .id = id, .addr_size = sizeof(struct sockaddr_in) };

	set_address(&cmd.addr, addr, port);
	return cm_call(fd, RDMA_USER_CM_CMD_BIND, &cmd, sizeof(cmd), 0);
}

static inline int cm_listen(int fd, __u32 id, __u32 backlog)
{
	struct rdma_ucm_listen cmd = { id, backlog };

	return cm_call(fd, RDMA_USER_CM_CMD_LISTEN, &cmd, sizeof(cmd), 0);
}

static inline int cm_resolve_addr(int fd, __u32 id, const char *addr, __u16 port, __u32 ms)
{
	struct rdma_ucm_resolve_addr cmd = {
		.id = id, .timeout_ms = ms, .dst_size = sizeof(struct sockaddr_in),
	};

	set_address(&cmd.dst_addr, addr, port);
	return cm_call(fd, RDMA_USER_CM_CMD_RESOLVE_ADDR, &cmd, sizeof(cmd), 0);
}

static inline int cm_resolve_route(int fd, __u32 id, __u32 ms)
{
	struct rdma_ucm_resolve_route cmd = { id, ms };

	return cm_call(fd, RDMA_USER_CM_CMD_RESOLVE_ROUTE, &cmd, sizeof(cmd), 0);
}

static inline struct rdma_ucm_conn_param conn_param(__u32 qpn)
{
	return (struct rdma_ucm_conn_param) {
		.qp_num = qpn, .responder_resources = 4, .initiator_depth = 4, .valid = 1,
	};
}

static inline int cm_connect(int fd, __u32 id, const struct rdma_ucm_conn_param *param)
{
	struct rdma_ucm_connect cmd = { .conn_param = *param, .id = id };

	return cm_call(fd, RDMA_USER_CM_CMD_CONNECT, &cmd, sizeof(cmd), 0);
}

static inline int cm_accept(int fd, __u32 id, __u64 uid, const struct rdma_ucm_conn_param *param)
{
	struct rdma_ucm_accept cmd = { .uid = uid, .conn_param = *param, .id = id };

	return cm_call(fd, RDMA_USER_CM_CMD_ACCEPT, &cmd, sizeof(cmd), 0);
}

static inline int cm_reject(int fd, __u32 id, __u8 len)
{
	struct rdma_ucm_reject cmd = { .id = id, .private_data_len = len };

	return cm_call(fd, RDMA_USER_CM_CMD_REJECT, &cmd, sizeof(cmd), 0);
}

static inline int cm_disconnect(int fd, __u32 id)
{
	struct rdma_ucm_disconnect cmd = { id };

	return cm_call(fd, RDMA_USER_CM_CMD_DISCONNECT, &cmd, sizeof(cmd), 0);
}

static inline int cm_migrate(int from, int to, __u32 id)
{
	struct rdma_ucm_migrate_resp resp;
	struct rdma_ucm_migrate_id cmd = {
		.response = (unsigned long)&resp, .id = id, .fd = from,
	};

	return cm_call(to, RDMA_USER_CM_CMD_MIGRATE_ID, &cmd, sizeof(cmd), sizeof(resp));
}

static inline int cm_event(int fd, struct rdma_ucm_event_resp *event)
{
	struct rdma_ucm_get_event cmd = { .response = (unsigned long)event };

	memset(event, 0, sizeof(*event));
	return cm_call(fd, RDMA_USER_CM_CMD_GET_EVENT, &cmd, sizeof(cmd), sizeof(*event));
}

static inline int cm_query(int fd, __u32 id, __u32 option)
{
	__u8 resp[1024];
	struct rdma_ucm_query cmd = { (unsigned long)resp, id, option };

	return cm_call(fd, RDMA_USER_CM_CMD_QUERY, &cmd, sizeof(cmd), sizeof(resp));
}

static inline int cm_qp_attr(int fd, __u32 id, __u32 state)
{
	struct ib_uverbs_qp_attr resp;
	struct rdma_ucm_init_qp_attr cmd = { (unsigned long)&resp, id, state };

	return cm_call(fd, RDMA_USER_CM_CMD_INIT_QP_ATTR, &cmd, sizeof(cmd), sizeof(resp));
}

static inline int cm_option(int fd, __u32 id, __u32 name, __u32 value, __u32 len)
{
	struct rdma_ucm_set_option cmd = {
		.optval = (unsigned long)&value, .id = id, .level = RDMA_OPTION_ID,
		.optname = name, .optlen = len,
	};

	return cm_call(fd, RDMA_USER_CM_CMD_SET_OPTION, &cmd, sizeof(cmd), 0);
}

static inline int cm_notify(int fd, __u32 id, __u32 event)
{
	struct rdma_ucm_notify cmd = { id, event };

	return cm_call(fd, RDMA_USER_CM_CMD_NOTIFY, &cmd, sizeof(cmd), 0);
}

#endif /* KIW_ATTACK_UCM_H */
