// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * attack: unprivileged processes make rdma_cm calls in every order.
 *
 *	attack [OPTIONS] case NAME...		directed cases, one line for each
 *	attack [OPTIONS] random SECONDS		random calls
 *	attack [OPTIONS] vanish SECONDS		the same while the caller deletes the devices
 *	attack honest				a pair that must be unaffected, until SIGTERM
 *
 *	--seed N	seed of all random choices
 *	--spare WHAT	leave out an order that crashes the kernel whatever the driver does:
 *			connecting: accept or reject an identifier that connects (iw_cm)
 *			unread: destroy the identifier of a request that was not read (rdma_ucm)
 *			fork: kill a process while it forks (UML)
 *			attributes: ask for the attributes of a QP while another thread
 *				binds the identifier (rdma_ucm)
 *	--qp SIDE:QPN	a QP of another process (0: host a, 1: host b); may be repeated
 *	--startup MS	the devices' startup_ms
 *
 * All calls use the ABI of /dev/infiniband/rdma_cm directly, because librdmacm prevents many
 * orders. QPs are created with libibverbs. The program runs as root in a guest with the network
 * namespaces "a" and "b"; the processes it starts enter one of them and drop privileges.
 *
 * random: there are families of processes, each with a user of its own, some in namespaces of
 * their own. A family has threads and sometimes forked children, which share identifiers,
 * channels and QPs through memory that all processes share. Peers that are silent, slow, hostile
 * or absent are threads of two more processes that use plain TCP sockets. Families are killed at
 * random. The program itself detects a call that used a QP of another family, and a process that
 * does not end. The caller checks the kernel log and looks for objects left behind.
 *
 * Each thread has its own random numbers, derived from the seed and its index, and records its
 * last operations, which are printed when something is wrong. The interleaving of threads is
 * not reproducible.
 */
#include "common.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

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

#define CM_PATH		"/dev/infiniband/rdma_cm"
#define USER		20000	/* and up: who attacks */
#define HONEST_USER	21000
#define PEER_USER	22000

/* First ports of a host: for listeners of families, for TCP peers, and for the good server */
#define ATTACK_PORT	7900
#define ATTACK_PORTS	6
#define PEER_PORT	7950
#define GOOD_PORT	7990
#define HONEST_PORT	7991

/* Minimum number of calls that "random" has to try */
#define RANDOM_CALLS	1000

#define FAMILIES	5
#define THREADS		3
#define CHANNELS	3
#define SLOTS		24
#define QPS		8
#define LOG		48
#define KNOWN		512
#define FORKED_STEPS	20

enum spare { SPARE_CONNECTING = 1, SPARE_UNREAD = 2, SPARE_FORK = 4, SPARE_ATTRIBUTES = 8 };

/* struct rng - random numbers of one thread */
struct rng {
	__u64 state;
};

enum op {
	OP_CREATE, OP_BIND, OP_LISTEN, OP_RESOLVE_ADDR, OP_RESOLVE_ROUTE, OP_CONNECT, OP_ACCEPT,
	OP_REJECT, OP_DISCONNECT, OP_DESTROY, OP_MIGRATE, OP_EVENT, OP_QUERY, OP_QP_ATTR,
	OP_OPTION, OP_NOTIFY, OP_STRANGE, OP_CLOSE, OP_FORK, OP_QP_CREATE, OP_QP_MODIFY,
	OP_QP_POST, OP_QP_DESTROY, OPS
};

static const char * const op_names[OPS] = {
	"create", "bind", "listen", "resolve addr", "resolve route", "connect", "accept",
	"reject", "disconnect", "destroy", "migrate", "event", "query", "qp attr",
	"option", "notify", "strange", "close", "fork", "qp create", "qp modify",
	"qp post", "qp destroy",
};

#define RUNNING		1	/* no errno: the call has not returned */

/**
 * struct note - a recorded operation of a thread
 * @at: time in seconds
 * @op: the operation
 * @id: the identifier, or the index of the QP
 * @arg: the QPN, for operations on connections
 * @ret: 0, -errno, or RUNNING
 */
struct note {
	double at;
	enum op op;
	__u32 id;
	__u32 arg;
	int ret;
};

/**
 * struct notes - the last operations of a thread
 * @tid: the thread
 * @count: number of all its operations
 * @notes: ring of the last ones
 */
struct notes {
	int tid;
	unsigned int count;
	struct note notes[LOG];
};

enum role { ASKS, LISTENS, ASKED };
enum progress { FRESH, HAS_ADDR, HAS_ROUTE, UNDER_WAY, UP, DOWN };

/**
 * struct slot - an identifier of a family
 * @lock: held for reading while it is used, for writing while it is destroyed
 * @is_used: the slot holds an identifier
 * @id: number of the identifier
 * @chan: index of its channel
 * @generation: generation of the channel when the identifier was made
 * @role: role of the identifier
 * @progress: its state, as far as events tell
 */
struct slot {
	pthread_rwlock_t lock;
	atomic_bool is_used;
	__u32 id;
	unsigned int chan;
	unsigned int generation;
	enum role role;
	enum progress progress;
};

/**
 * struct channel - a file of rdma_cm
 * @lock: held for reading while it is used, for writing while it is closed
 * @fd: the file
 * @generation: number of times it was closed
 */
struct channel {
	pthread_rwlock_t lock;
	int fd;
	unsigned int generation;
};

/**
 * struct place - room for a QP; processes other than its creator use it by number only
 * @lock: held for reading while it is used, for writing while it is made or destroyed
 * @qp: the QP, or NULL
 * @known: its entry among the known numbers
 */
struct place {
	pthread_rwlock_t lock;
	struct ibv_qp *qp;
	int known;
};

/**
 * struct known - a known QP number
 * @qpn: the number
 * @side: host whose device has the QP
 * @family: family that created it, or -1: another program
 * @is_alive: the QP is not destroyed
 */
struct known {
	__u32 qpn;
	int side;
	int family;
	bool is_alive;
};

/**
 * struct family - processes that share everything
 * @number: index of the family
 * @side: its host
 * @pid: PID of the first process, also the process group ID
 * @slots: identifiers
 * @channels: files of rdma_cm
 * @places: QPs
 * @ctx: the device
 * @pd: protection domain
 * @cq: completion queue of all QPs
 * @notes: operations of its threads; the last entry is for forked children
 */
struct family {
	int number;
	int side;
	pid_t pid;
	struct slot slots[SLOTS];
	struct channel channels[CHANNELS];
	struct place places[QPS];
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct notes notes[THREADS + 1];
};

/**
 * struct world - what all processes share
 * @is_over: random: all processes are to end
 * @forking: random: number of processes that are forking
 * @is_killing: random: no process may fork now
 * @wrong: number of a family that did something forbidden, plus 1; or 0
 * @words: description of the failure
 * @stage: case: its progress
 * @has_failed: case: a process ended with a status other than 0
 * @value: case: value passed between processes
 * @known: QP numbers
 * @known_count: number of QPs that were ever known
 * @tried: number of operations
 * @done: number of operations that succeeded
 * @events: number of events read
 * @kills: number of families killed
 * @families: families
 */
struct world {
	atomic_bool is_over;
	atomic_int forking;
	atomic_bool is_killing;
	atomic_int wrong;
	char words[200];
	atomic_int stage;
	atomic_bool has_failed;
	__u32 value[16];
	struct known known[KNOWN];
	atomic_uint known_count;
	atomic_ulong tried[OPS];
	atomic_ulong done[OPS];
	atomic_ulong events[16];
	unsigned long kills;
	struct family families[FAMILIES];
};

static struct world *w;

static const char * const addrs[2] = { "10.77.0.1", "10.77.0.2" };
static const char * const devices[2] = { "kiwa", "kiwb" };
static int net[2];
static __u64 base_seed = 5040;
static unsigned int spared;
/*
 * Devices may be deleted at any time. Then the good server is not checked, and the QPs of a new
 * device have numbers that belonged to other families before.
 */
static bool devices_vanish;
static unsigned int startup_ms = 10000;
static int kmsg = -1;
/* Host of the process that a directed case tests; the peers are on the other host */
static int here = 1;

/* Writes to the kernel log, which remains when the kernel crashes. */
static void tell(const char *format, ...)
{
	char line[200];
	va_list args;
	int len;

	va_start(args, format);
	len = vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	fprintf(stderr, "%s\n", line);
	if (kmsg >= 0 && write(kmsg, line, len) < 0)
		fprintf(stderr, "no kernel log: %m\n");
}

static __u32 choose(struct rng *rng, __u32 count)
{
	__u64 x;

	rng->state += 0x9e3779b97f4a7c15;
	x = rng->state;
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
	x = (x ^ x >> 27) * 0x94d049bb133111eb;
	return (__u32)((x ^ x >> 31) >> 32) % count;
}

static struct rng rng_of(__u32 who, __u32 round)
{
	struct rng rng = { base_seed * 0x100000001b3 + who * 0x10001ULL + ((__u64)round << 40) };

	choose(&rng, 2);
	return rng;
}

static void pause_ms(unsigned int ms)
{
	usleep(ms * 1000);
}

/* rdma_cm's ABI */

static int cm_call(int fd, __u32 cmd, const void *in, __u16 len, __u16 out)
{
	struct {
		struct rdma_ucm_cmd_hdr hdr;
		__u8 body[640];
	} msg = { .hdr = { cmd, len, out } };

	memcpy(msg.body, in, len);
	return write(fd, &msg, sizeof(msg.hdr) + len) < 0 ? -errno : 0;
}

static int cm_open(void)
{
	return open(CM_PATH, O_RDWR | O_NONBLOCK | O_CLOEXEC);
}

static int cm_create(int fd, __u32 *id, __u64 uid)
{
	struct rdma_ucm_create_id_resp resp = { 0 };
	struct rdma_ucm_create_id cmd = {
		.uid = uid, .response = (unsigned long)&resp, .ps = RDMA_PS_TCP,
	};
	int ret = cm_call(fd, RDMA_USER_CM_CMD_CREATE_ID, &cmd, sizeof(cmd), sizeof(resp));

	*id = resp.id;
	return ret;
}

static int cm_destroy(int fd, __u32 id)
{
	struct rdma_ucm_destroy_id_resp resp;
	struct rdma_ucm_destroy_id cmd = { .response = (unsigned long)&resp, .id = id };

	return cm_call(fd, RDMA_USER_CM_CMD_DESTROY_ID, &cmd, sizeof(cmd), sizeof(resp));
}

static void set_address(void *to, const char *addr, __u16 port)
{
	struct sockaddr_in sin = { .sin_family = AF_INET, .sin_port = htons(port) };

	MUST(inet_pton(AF_INET, addr, &sin.sin_addr) == 1);
	memcpy(to, &sin, sizeof(sin));
}

static int cm_bind(int fd, __u32 id, const char *addr, __u16 port)
{
	struct rdma_ucm_bind cmd = { .id = id, .addr_size = sizeof(struct sockaddr_in) };

	set_address(&cmd.addr, addr, port);
	return cm_call(fd, RDMA_USER_CM_CMD_BIND, &cmd, sizeof(cmd), 0);
}

static int cm_listen(int fd, __u32 id, __u32 backlog)
{
	struct rdma_ucm_listen cmd = { id, backlog };

	return cm_call(fd, RDMA_USER_CM_CMD_LISTEN, &cmd, sizeof(cmd), 0);
}

static int cm_resolve_addr(int fd, __u32 id, const char *addr, __u16 port, __u32 ms)
{
	struct rdma_ucm_resolve_addr cmd = {
		.id = id, .timeout_ms = ms, .dst_size = sizeof(struct sockaddr_in),
	};

	set_address(&cmd.dst_addr, addr, port);
	return cm_call(fd, RDMA_USER_CM_CMD_RESOLVE_ADDR, &cmd, sizeof(cmd), 0);
}

static int cm_resolve_route(int fd, __u32 id, __u32 ms)
{
	struct rdma_ucm_resolve_route cmd = { id, ms };

	return cm_call(fd, RDMA_USER_CM_CMD_RESOLVE_ROUTE, &cmd, sizeof(cmd), 0);
}

static struct rdma_ucm_conn_param conn_param(__u32 qpn)
{
	return (struct rdma_ucm_conn_param) {
		.qp_num = qpn, .responder_resources = 4, .initiator_depth = 4, .valid = 1,
	};
}

static int cm_connect(int fd, __u32 id, const struct rdma_ucm_conn_param *param)
{
	struct rdma_ucm_connect cmd = { .conn_param = *param, .id = id };

	return cm_call(fd, RDMA_USER_CM_CMD_CONNECT, &cmd, sizeof(cmd), 0);
}

static int cm_accept(int fd, __u32 id, __u64 uid, const struct rdma_ucm_conn_param *param)
{
	struct rdma_ucm_accept cmd = { .uid = uid, .conn_param = *param, .id = id };

	return cm_call(fd, RDMA_USER_CM_CMD_ACCEPT, &cmd, sizeof(cmd), 0);
}

static int cm_reject(int fd, __u32 id, __u8 len)
{
	struct rdma_ucm_reject cmd = { .id = id, .private_data_len = len };

	return cm_call(fd, RDMA_USER_CM_CMD_REJECT, &cmd, sizeof(cmd), 0);
}

static int cm_disconnect(int fd, __u32 id)
{
	struct rdma_ucm_disconnect cmd = { id };

	return cm_call(fd, RDMA_USER_CM_CMD_DISCONNECT, &cmd, sizeof(cmd), 0);
}

static int cm_migrate(int from, int to, __u32 id)
{
	struct rdma_ucm_migrate_resp resp;
	struct rdma_ucm_migrate_id cmd = {
		.response = (unsigned long)&resp, .id = id, .fd = from,
	};

	return cm_call(to, RDMA_USER_CM_CMD_MIGRATE_ID, &cmd, sizeof(cmd), sizeof(resp));
}

static int cm_event(int fd, struct rdma_ucm_event_resp *event)
{
	struct rdma_ucm_get_event cmd = { .response = (unsigned long)event };

	memset(event, 0, sizeof(*event));
	return cm_call(fd, RDMA_USER_CM_CMD_GET_EVENT, &cmd, sizeof(cmd), sizeof(*event));
}

static int cm_query(int fd, __u32 id, __u32 option)
{
	__u8 resp[1024];
	struct rdma_ucm_query cmd = { (unsigned long)resp, id, option };

	return cm_call(fd, RDMA_USER_CM_CMD_QUERY, &cmd, sizeof(cmd), sizeof(resp));
}

static int cm_qp_attr(int fd, __u32 id, __u32 state)
{
	struct ib_uverbs_qp_attr resp;
	struct rdma_ucm_init_qp_attr cmd = { (unsigned long)&resp, id, state };

	return cm_call(fd, RDMA_USER_CM_CMD_INIT_QP_ATTR, &cmd, sizeof(cmd), sizeof(resp));
}

static int cm_option(int fd, __u32 id, __u32 name, __u32 value, __u32 len)
{
	struct rdma_ucm_set_option cmd = {
		.optval = (unsigned long)&value, .id = id, .level = RDMA_OPTION_ID,
		.optname = name, .optlen = len,
	};

	return cm_call(fd, RDMA_USER_CM_CMD_SET_OPTION, &cmd, sizeof(cmd), 0);
}

static int cm_notify(int fd, __u32 id, __u32 event)
{
	struct rdma_ucm_notify cmd = { id, event };

	return cm_call(fd, RDMA_USER_CM_CMD_NOTIFY, &cmd, sizeof(cmd), 0);
}

/* Return: 0, or -ETIMEDOUT */
static int next_event(int fd, struct rdma_ucm_event_resp *event, double seconds)
{
	struct pollfd pfd = { .fd = fd, .events = POLLIN };

	if (poll(&pfd, 1, seconds * 1000) != 1)
		return -ETIMEDOUT;
	return cm_event(fd, event);
}

static int expect(int fd, __u32 type, struct rdma_ucm_event_resp *event)
{
	int ret = next_event(fd, event, patience());

	if (ret || event->event != type)
		fail("event %u (%d) instead of %u", event->event, ret, type);
	return event->status;
}

/* Verbs */

/**
 * struct verbs - a process's objects on a device
 * @ctx: the device
 * @pd: protection domain
 * @cq: completion queue of all QPs
 */
struct verbs {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
};

static struct ibv_context *open_device(const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *ctx = NULL;
	int i;

	MUST(list);
	for (i = 0; list[i]; i++)
		if (!strcmp(ibv_get_device_name(list[i]), name))
			ctx = ibv_open_device(list[i]);
	ibv_free_device_list(list);
	return ctx;
}

static struct verbs verbs_open(int side)
{
	struct verbs v = { .ctx = open_device(devices[side]) };

	MUST(v.ctx);
	v.pd = ibv_alloc_pd(v.ctx);
	v.cq = ibv_create_cq(v.ctx, 4096, NULL, NULL, 0);
	MUST(v.pd && v.cq);
	return v;
}

static struct ibv_qp *qp_create(struct ibv_pd *pd, struct ibv_cq *cq)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC,
		.cap = {
			.max_send_wr = 16, .max_recv_wr = 16, .max_send_sge = 1, .max_recv_sge = 1,
			.max_inline_data = 32,
		},
	};

	return ibv_create_qp(pd, &attr);
}

static struct ibv_qp *must_have_qp(const struct verbs *v)
{
	struct ibv_qp *qp = qp_create(v->pd, v->cq);

	MUST(qp);
	return qp;
}

static int state_of(struct ibv_qp *qp)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	MUST(!ibv_query_qp(qp, &attr, IBV_QP_STATE, &init));
	return attr.qp_state;
}

/* Users and namespaces */

static void write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY);

	MUST(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	close(fd);
}

static void become(int side, uid_t uid)
{
	MUST(!setns(net[side], CLONE_NEWNET));
	if (!uid)
		return;
	MUST(!setgroups(0, NULL) && !setresgid(uid, uid, uid) && !setresuid(uid, uid, uid));
	/* Otherwise /proc/self would belong to root */
	MUST(!prctl(PR_SET_DUMPABLE, 1));
}

/* Root of a new user namespace; @flags: more namespaces */
static void become_root_of_container(uid_t uid, int flags)
{
	char map[40];

	MUST(!unshare(CLONE_NEWUSER | flags));
	snprintf(map, sizeof(map), "0 %u 1", uid);
	write_file("/proc/self/uid_map", map);
	write_file("/proc/self/setgroups", "deny");
	write_file("/proc/self/gid_map", map);
	MUST(!setresgid(0, 0, 0) && !setresuid(0, 0, 0));
}

/* A good server: takes every connection, sends back what it receives */

#define GOOD_CONNS	24
#define GOOD_RECVS	4
#define GOOD_SIZE	2048
/* Memory of a connection: for receives, for sends, and for the peer to write to and read */
#define GOOD_ROOM	((2 * GOOD_RECVS + 1) * GOOD_SIZE)
#define ALL_RIGHTS	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)

/* struct offer - private data of its Reply: memory for the peer */
struct offer {
	__u64 addr;
	__u32 rkey;
} __attribute__((packed));

struct good_conn {
	struct ibv_qp *qp;
	__u32 id;
};

static struct {
	struct verbs v;
	int fd;
	__u32 listener;
	__u8 *room;
	struct ibv_mr *mr;
	struct good_conn conns[GOOD_CONNS];
} good;

static __u8 *good_room(int conn, int piece)
{
	return good.room + (size_t)conn * GOOD_ROOM + piece * GOOD_SIZE;
}

static void good_receive(int conn, int i)
{
	struct ibv_sge sge = { (unsigned long)good_room(conn, i), GOOD_SIZE, good.mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = conn << 8 | i, .sg_list = &sge, .num_sge = 1 }, *bad;

	MUST(!ibv_post_recv(good.conns[conn].qp, &wr, &bad));
}

static void good_end(int conn)
{
	struct good_conn *c = &good.conns[conn];

	ibv_destroy_qp(c->qp);
	cm_destroy(good.fd, c->id);
	c->qp = NULL;
}

static void good_answer(const struct rdma_ucm_event_resp *event)
{
	struct rdma_ucm_conn_param param;
	struct offer offer;
	int conn, i;

	for (conn = 0; conn < GOOD_CONNS && good.conns[conn].qp; conn++)
		;
	if (conn == GOOD_CONNS) {
		cm_destroy(good.fd, event->id);
		return;
	}
	good.conns[conn] = (struct good_conn) { must_have_qp(&good.v), event->id };
	for (i = 0; i < GOOD_RECVS; i++)
		good_receive(conn, i);
	offer = (struct offer) { (unsigned long)good_room(conn, 2 * GOOD_RECVS), good.mr->rkey };
	param = conn_param(good.conns[conn].qp->qp_num);
	memcpy(param.private_data, &offer, sizeof(offer));
	param.private_data_len = sizeof(offer);
	if (cm_accept(good.fd, event->id, conn + 1, &param))
		good_end(conn);
}

static void good_event(void)
{
	struct rdma_ucm_event_resp event;

	if (cm_event(good.fd, &event))
		return;
	if (event.event == RDMA_CM_EVENT_CONNECT_REQUEST)
		good_answer(&event);
	else if (event.event != RDMA_CM_EVENT_ESTABLISHED && event.uid && event.uid <= GOOD_CONNS &&
		 good.conns[event.uid - 1].qp && good.conns[event.uid - 1].id == event.id)
		good_end(event.uid - 1);
}

static void good_echo(const struct ibv_wc *wc)
{
	int conn = wc->wr_id >> 8, i = wc->wr_id & 0xff;
	struct ibv_sge sge = {
		(unsigned long)good_room(conn, GOOD_RECVS + i), wc->byte_len, good.mr->lkey,
	};
	struct ibv_send_wr wr = {
		.wr_id = ~0ULL, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED,
		.sg_list = &sge, .num_sge = 1,
	}, *bad;

	if (!good.conns[conn].qp || good.conns[conn].qp->qp_num != wc->qp_num)
		return;
	memcpy(good_room(conn, GOOD_RECVS + i), good_room(conn, i), wc->byte_len);
	good_receive(conn, i);
	ibv_post_send(good.conns[conn].qp, &wr, &bad);
}

static void good_serve(int side, __u16 port, uid_t uid)
{
	struct ibv_wc wc;

	become(side, uid);
	MUST(!prctl(PR_SET_PDEATHSIG, SIGKILL));
	good.v = verbs_open(side);
	good.fd = cm_open();
	good.room = pages(GOOD_CONNS * GOOD_ROOM);
	good.mr = reg(good.v.pd, good.room, GOOD_CONNS * GOOD_ROOM, ALL_RIGHTS);
	MUST(!cm_create(good.fd, &good.listener, 1000) &&
	     !cm_bind(good.fd, good.listener, addrs[side], port) &&
	     !cm_listen(good.fd, good.listener, 64));
	w->value[14 + side] = port;
	while (!w->is_over) {
		good_event();
		if (!ibv_poll_cq(good.v.cq, 1, &wc))
			pause_ms(1);
		else if (wc.status == IBV_WC_SUCCESS && wc.wr_id != ~0ULL)
			good_echo(&wc);
	}
	_exit(0);
}

/**
 * struct client - a client of the good server
 * @v: verbs
 * @fd: file of rdma_cm
 * @id: identifier
 * @qp: QP
 * @room: memory for sent and received data
 * @mr: region of @room
 * @offer: memory of the server
 * @began: when the connect was called
 */
struct client {
	struct verbs v;
	int fd;
	__u32 id;
	struct ibv_qp *qp;
	__u8 *room;
	struct ibv_mr *mr;
	struct offer offer;
	double began;
};

static __u32 routed_id(int fd, const char *addr, __u16 port)
{
	double until = now() + patience();
	struct rdma_ucm_event_resp event;
	__u32 id;

	MUST(!cm_create(fd, &id, 77));
	do {
		MUST(!cm_resolve_addr(fd, id, addr, port, 1000));
		MUST(!next_event(fd, &event, patience()));
	} while (event.event == RDMA_CM_EVENT_ADDR_ERROR && now() < until);
	MUST(event.event == RDMA_CM_EVENT_ADDR_RESOLVED);
	MUST(!cm_resolve_route(fd, id, 1000));
	expect(fd, RDMA_CM_EVENT_ROUTE_RESOLVED, &event);
	return id;
}

static void client_open(struct client *c, int side)
{
	c->v = verbs_open(side);
	c->fd = cm_open();
	MUST(c->fd >= 0);
	c->room = pages(2 * GOOD_SIZE);
	c->mr = reg(c->v.pd, c->room, 2 * GOOD_SIZE, ALL_RIGHTS);
	c->qp = must_have_qp(&c->v);
}

/* The machine may be too busy to meet a deadline, which is no failure: try again */
static void client_connect(struct client *c, int to, __u16 port)
{
	struct rdma_ucm_conn_param param = conn_param(c->qp->qp_num);
	double until = now() + patience();
	struct rdma_ucm_event_resp event;

	for (;;) {
		c->id = routed_id(c->fd, addrs[to], port);
		c->began = now();
		MUST(!cm_connect(c->fd, c->id, &param));
		MUST(!next_event(c->fd, &event, patience()));
		if (event.event == RDMA_CM_EVENT_ESTABLISHED)
			break;
		if (event.event != RDMA_CM_EVENT_UNREACHABLE || now() > until)
			fail("no connection: event %u, %d", event.event, (int)event.status);
		MUST(!cm_destroy(c->fd, c->id));
	}
	memcpy(&c->offer, event.param.conn.private_data, sizeof(c->offer));
}

static void client_post(struct client *c, enum ibv_wr_opcode opcode, size_t at)
{
	struct ibv_sge sge = { (unsigned long)c->room + at, GOOD_SIZE, c->mr->lkey };
	struct ibv_send_wr wr = {
		.wr_id = opcode, .opcode = opcode, .send_flags = IBV_SEND_SIGNALED,
		.sg_list = &sge, .num_sge = 1, .wr.rdma = { c->offer.addr, c->offer.rkey },
	}, *bad;

	MUST(!ibv_post_send(c->qp, &wr, &bad));
}

/* Return: the first status that is not success, or success */
static enum ibv_wc_status client_wait(struct client *c, int count)
{
	struct ibv_wc wc;

	while (count--) {
		complete(c->v.cq, &wc);
		if (wc.status != IBV_WC_SUCCESS)
			return wc.status;
	}
	return IBV_WC_SUCCESS;
}

static void client_verify(struct client *c, const char *what)
{
	if (memcmp(c->room, c->room + GOOD_SIZE, GOOD_SIZE))
		fail("other octets: %s", what);
	memset(c->room + GOOD_SIZE, 0xee, GOOD_SIZE);
}

/*
 * A message and its echo; then a Write, and a Read of the same place.
 * Return: the status of what failed before there was an echo, or success
 */
static enum ibv_wc_status client_try_round(struct client *c, __u32 round)
{
	struct ibv_sge sge = { (unsigned long)c->room + GOOD_SIZE, GOOD_SIZE, c->mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = 99, .sg_list = &sge, .num_sge = 1 }, *bad;
	struct rng rng = rng_of(round, 0);
	enum ibv_wc_status status;
	int i;

	for (i = 0; i < GOOD_SIZE; i++)
		c->room[i] = choose(&rng, 256);
	MUST(!ibv_post_recv(c->qp, &wr, &bad));
	client_post(c, IBV_WR_SEND, 0);
	status = client_wait(c, 2);
	if (status)
		return status;
	client_verify(c, "echo");
	client_post(c, IBV_WR_RDMA_WRITE, 0);
	client_post(c, IBV_WR_RDMA_READ, GOOD_SIZE);
	MUST(!client_wait(c, 2));
	client_verify(c, "what was written and read");
	return IBV_WC_SUCCESS;
}

static void client_round(struct client *c, __u32 round)
{
	enum ibv_wc_status status = client_try_round(c, round);

	if (status)
		fail("status %d in round %u on QP %u", status, round, c->qp->qp_num);
}

static void client_close(struct client *c)
{
	MUST(!ibv_destroy_qp(c->qp));
	MUST(!cm_destroy(c->fd, c->id));
	MUST(!ibv_dereg_mr(c->mr) && !ibv_destroy_cq(c->v.cq) && !ibv_dealloc_pd(c->v.pd));
	ibv_close_device(c->v.ctx);
	close(c->fd);
	munmap(c->room, 2 * GOOD_SIZE);
}

/* Peers of plain TCP */

static int tcp_socket(int side)
{
	MUST(!setns(net[side], CLONE_NEWNET));
	return socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
}

static int tcp_listener(int side, __u16 port)
{
	int fd = tcp_socket(side), one = 1;
	struct sockaddr_in sin;

	set_address(&sin, addrs[side], port);
	MUST(fd >= 0 && !setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)));
	MUST(!bind(fd, (struct sockaddr *)&sin, sizeof(sin)) && !listen(fd, 100));
	return fd;
}

static bool tcp_connect(int fd, const char *addr, __u16 port)
{
	struct timeval second = { .tv_sec = 1 };
	struct sockaddr_in sin;
	int one = 1;

	set_address(&sin, addr, port);
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &second, sizeof(second));
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	return !connect(fd, (struct sockaddr *)&sin, sizeof(sin));
}

static void tcp_close(int fd, bool is_reset)
{
	struct linger linger = { .l_onoff = 1 };

	if (is_reset)
		setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
	close(fd);
}

/* Receives at most @count octets within @ms. Return: their number */
static int tcp_read(int fd, void *buf, int count, int ms)
{
	struct pollfd pfd = { .fd = fd, .events = POLLIN };
	int got = 0, n;

	while (got < count && poll(&pfd, 1, ms) == 1) {
		n = recv(fd, (char *)buf + got, count - got, MSG_DONTWAIT);
		if (n <= 0)
			break;
		got += n;
	}
	return got;
}

#define MPA_FRAME	24
#define MPA_REJECT	0x20
#define MPA_ENHANCED	0x10
/* RFC 6581: peer-to-peer, and RTRs by Send, Write, Read */
#define MPA_A		0x8000
#define MPA_B		0x4000
#define MPA_C		0x8000
#define MPA_D		0x4000

/* An enhanced frame; @ird and @ord with their bits */
static void mpa_frame(__u8 *buf, const char *key, __u8 flags, __u16 ird, __u16 ord)
{
	memcpy(buf, key, 16);
	buf[16] = flags | MPA_ENHANCED | 0x40;
	buf[17] = 2;
	buf[18] = 0;
	buf[19] = 4;
	buf[20] = ird >> 8;
	buf[21] = ird;
	buf[22] = ord >> 8;
	buf[23] = ord;
}

static void mpa_request(__u8 *buf)
{
	mpa_frame(buf, "MPA ID Req Frame", 0, MPA_A | MPA_B | 4, MPA_C | MPA_D | 4);
}

/* Directed cases */

static void reach(int stage)
{
	atomic_store(&w->stage, stage);
}

/* A child that failed makes await() give up. */
static void child_ended(int signal, siginfo_t *info, void *context)
{
	(void)signal;
	(void)context;
	if (info->si_code == CLD_EXITED && info->si_status)
		atomic_store(&w->has_failed, true);
}

static void await(int stage)
{
	double until = now() + 2 * patience();

	while (atomic_load(&w->stage) < stage) {
		if (now() > until || w->has_failed)
			fail("stage %d is not reached", stage);
		pause_ms(2);
	}
}

static pid_t actor(void (*what)(int), int arg)
{
	pid_t pid = fork();

	MUST(pid >= 0);
	if (!pid) {
		what(arg);
		_exit(0);
	}
	return pid;
}

static void must_end_well(pid_t pid)
{
	double until = now() + 3 * patience();
	int status;

	while (!waitpid(pid, &status, WNOHANG)) {
		if (now() > until || w->has_failed)
			fail("process %d does not end", pid);
		pause_ms(2);
	}
	if (status)
		fail("a process ended with %#x", status);
}

static void serve_on(int side)
{
	good_serve(side, GOOD_PORT, PEER_USER);
}

static void start_server(int side)
{
	double until = now() + patience();

	w->value[14 + side] = 0;
	actor(serve_on, side);
	while (!w->value[14 + side]) {
		MUST(now() < until);
		pause_ms(2);
	}
}

/* A peer that connects to the tested listener and sends nothing after its Request */
static int silent_caller(void)
{
	__u8 request[MPA_FRAME];
	int fd = tcp_socket(!here);

	MUST(tcp_connect(fd, addrs[here], ATTACK_PORT));
	mpa_request(request);
	MUST(send(fd, request, sizeof(request), 0) == sizeof(request));
	return fd;
}

/* A listener and a request. Return: the identifier */
static __u32 take_request(int fd, __u32 *listener)
{
	struct rdma_ucm_event_resp event;

	MUST(fd >= 0 && !cm_create(fd, listener, 1) &&
	     !cm_bind(fd, *listener, addrs[here], ATTACK_PORT) &&
	     !cm_listen(fd, *listener, 16));
	reach(1);
	expect(fd, RDMA_CM_EVENT_CONNECT_REQUEST, &event);
	return event.id;
}

/* Progress of the connection at the time of the second call */
enum when { AT_ONCE, ESTABLISHED };

/* Waits until the startup deadline has passed and taken effect */
static void outlive_startup(void)
{
	pause_ms(startup_ms + 300);
}

static __u32 accept_first(int fd, __u32 id, struct ibv_qp *qp, enum when when)
{
	struct rdma_ucm_conn_param param = conn_param(qp->qp_num);
	struct rdma_ucm_event_resp event;

	MUST(!cm_accept(fd, id, 5, &param));
	/* A driver may report it only after the peer's first message, which is no fault */
	if (when == ESTABLISHED && next_event(fd, &event, 2))
		tell("no ESTABLISHED yet");
	return id;
}

static void reject_accepted(int when)
{
	int fd, ret;
	__u32 listener, id;
	struct ibv_qp *qp;
	struct verbs v;

	become(1, USER);
	v = verbs_open(1);
	qp = must_have_qp(&v);
	fd = cm_open();
	id = take_request(fd, &listener);
	accept_first(fd, id, qp, when);
	ret = cm_reject(fd, id, 0);
	tell("reject: %d", ret);
	outlive_startup();
	MUST(!cm_destroy(fd, id));
	MUST(!ibv_destroy_qp(qp));
}

static void run_reject_accepted(enum when when)
{
	__u8 reply[MPA_FRAME];
	pid_t pid = actor(reject_accepted, when);
	int fd;

	await(1);
	fd = silent_caller();
	tcp_read(fd, reply, sizeof(reply), 2000);
	must_end_well(pid);
	close(fd);
}

static void case_accept_then_reject(void)
{
	run_reject_accepted(AT_ONCE);
}

static void case_established_then_reject(void)
{
	run_reject_accepted(ESTABLISHED);
}

/* Owner of the QP whose number is passed to the second accept */
enum whose { OWN, FOREIGN, DEAD, ABSURD, WHOSE };

struct again {
	enum when when;
	enum whose whose;
};

static struct again again;

static __u32 second_number(const struct verbs *v, struct ibv_qp **second)
{
	__u32 qpn;

	*second = NULL;
	switch (again.whose) {
	case OWN:
		*second = must_have_qp(v);
		return (*second)->qp_num;
	case FOREIGN:
		return w->value[0];
	case DEAD:
		*second = must_have_qp(v);
		qpn = (*second)->qp_num;
		MUST(!ibv_destroy_qp(*second));
		*second = NULL;
		return qpn;
	default:
		return 0xffffffff;
	}
}

static void accept_again(int unused)
{
	struct rdma_ucm_conn_param param;
	struct ibv_qp *qp, *second;
	__u32 listener, id;
	struct verbs v;
	int fd, ret;

	(void)unused;
	become(1, USER);
	v = verbs_open(1);
	qp = must_have_qp(&v);
	param = conn_param(second_number(&v, &second));
	fd = cm_open();
	id = take_request(fd, &listener);
	accept_first(fd, id, qp, again.when);
	ret = cm_accept(fd, id, 6, &param);
	tell("second accept, %d, QP %u: %d", again.whose, param.qp_num, ret);
	/* Once within the deadline, once behind it */
	if (again.when == AT_ONCE)
		outlive_startup();
	MUST(!cm_destroy(fd, id));
	MUST(!ibv_destroy_qp(qp));
	if (second)
		MUST(!ibv_destroy_qp(second));
}

/* A victim whose QP is connected and must stay connected */
static void victim_connected(int side)
{
	struct client c;

	become(side, USER + 1);
	client_open(&c, side);
	client_connect(&c, !side, GOOD_PORT);
	client_round(&c, 1);
	w->value[0] = c.qp->qp_num;
	reach(10);
	await(20);
	client_round(&c, 2);
	client_close(&c);
}

static void run_accept_again(void)
{
	pid_t victim = 0, pid;
	int fd;

	if (again.whose == FOREIGN) {
		start_server(0);
		victim = actor(victim_connected, 1);
		await(10);
		reach(0);
	}
	pid = actor(accept_again, 0);
	await(1);
	fd = silent_caller();
	must_end_well(pid);
	close(fd);
	reach(20);
	if (victim)
		must_end_well(victim);
}

static void case_accept_again(void)
{
	for (again.whose = OWN; again.whose < WHOSE; again.whose++) {
		again.when = AT_ONCE;
		run_accept_again();
		reach(0);
	}
}

static void case_accept_established_again(void)
{
	for (again.whose = OWN; again.whose < WHOSE; again.whose++) {
		again.when = ESTABLISHED;
		run_accept_again();
		reach(0);
	}
}

/* A victim whose QP is not connected yet: its receive must get a message of its own peer only */
static void victim_idle(int side)
{
	struct client c;
	struct ibv_sge sge;
	struct ibv_recv_wr wr = { .wr_id = 99, .sg_list = &sge, .num_sge = 1 }, *bad;
	struct ibv_wc wc;

	become(side, USER + 1);
	client_open(&c, side);
	sge = (struct ibv_sge) { (unsigned long)c.room + GOOD_SIZE, GOOD_SIZE, c.mr->lkey };
	MUST(!ibv_post_recv(c.qp, &wr, &bad));
	w->value[0] = c.qp->qp_num;
	reach(10);
	await(20);
	if (state_of(c.qp) > IBV_QPS_RTR)
		fail("the QP is in state %d", state_of(c.qp));
	MUST(!ibv_poll_cq(c.v.cq, 1, &wc));
	client_connect(&c, !side, GOOD_PORT);
	client_post(&c, IBV_WR_SEND, 0);
	MUST(!client_wait(&c, 2));
	client_round(&c, 2);
	client_close(&c);
}

/* A user tries to connect with a number that is not its own. */
static void try_connect(__u32 qpn)
{
	struct rdma_ucm_conn_param param = conn_param(qpn);
	struct rdma_ucm_event_resp event;
	int fd = cm_open(), ret;
	__u32 id;

	id = routed_id(fd, addrs[!here], GOOD_PORT);
	ret = cm_connect(fd, id, &param);
	tell("connect, QP %u: %d", qpn, ret);
	if (!ret) {
		next_event(fd, &event, 2);
		fail("connected with QP %u of somebody else: event %u, %d", qpn, event.event,
		     (int)event.status);
	}
	MUST(!cm_destroy(fd, id));
	close(fd);
}

static void try_accept(__u32 qpn)
{
	struct rdma_ucm_conn_param param = conn_param(qpn);
	int fd = cm_open(), ret;
	__u32 listener, id;

	id = take_request(fd, &listener);
	ret = cm_accept(fd, id, 5, &param);
	tell("accept, QP %u: %d", qpn, ret);
	if (!ret)
		fail("accepted with QP %u of somebody else", qpn);
	MUST(!cm_destroy(fd, id) && !cm_destroy(fd, listener));
	close(fd);
}

enum thief { USER_OF_NONE, ROOT_OF_CONTAINER };

static void thief_of(int thief)
{
	struct verbs v;

	become(1, USER);
	if (thief == ROOT_OF_CONTAINER)
		become_root_of_container(USER, 0);
	/* The thief has opened the device, but has another file than the victim */
	v = verbs_open(1);
	must_have_qp(&v);
	try_connect(w->value[0]);
	try_accept(w->value[0]);
}

static void run_theft(void (*victim_is)(int), enum thief thief)
{
	pid_t victim, pid;
	int fd;

	start_server(0);
	victim = actor(victim_is, 1);
	await(10);
	reach(0);
	pid = actor(thief_of, thief);
	await(1);
	fd = silent_caller();
	must_end_well(pid);
	reach(20);
	must_end_well(victim);
	close(fd);
}

static void case_foreign_idle(void)
{
	run_theft(victim_idle, USER_OF_NONE);
}

static void case_foreign_connected(void)
{
	run_theft(victim_connected, USER_OF_NONE);
}

static void case_container_root(void)
{
	run_theft(victim_idle, ROOT_OF_CONTAINER);
}

static void steal_known(int side)
{
	unsigned int i;

	become(side, USER);
	for (i = 0; i < w->known_count; i++) {
		if (w->known[i].side != side)
			continue;
		try_connect(w->known[i].qpn);
		reach(0);
		try_accept(w->known[i].qpn);
		reach(2);
		await(3);
	}
	reach(30);
}

static void run_steal_known(void)
{
	int stage = 0, fd = -1;
	pid_t pid;

	start_server(!here);
	reach(0);
	pid = actor(steal_known, here);
	while (stage < 30) {
		stage = atomic_load(&w->stage);
		if (stage == 1 && fd < 0)
			fd = silent_caller();
		if (stage == 2) {
			close(fd);
			fd = -1;
			reach(3);
		}
		pause_ms(2);
		if (stage < 30 && waitpid(pid, NULL, WNOHANG))
			MUST(atomic_load(&w->stage) == 30);
	}
}

/* Tries the QPs that --qp has named */
static void case_kernel(void)
{
	MUST(w->known_count);
	for (here = 0; here < 2; here++)
		run_steal_known();
}

/* While a connection is being made for its number, a connected QP is destroyed. */
static void destroy_promptly(struct client *c, const char *what)
{
	double begin = now(), took;

	MUST(!ibv_destroy_qp(c->qp));
	took = now() - begin;
	tell("%s: destroyed in %.3f s", what, took);
	if (took > startup_ms / 2000.)
		fail("destroying the QP took %.3f s", took);
}

static void connect_connected(int unused)
{
	struct rdma_ucm_conn_param param;
	struct client c;
	__u32 id;
	int fd, ret;

	(void)unused;
	become(1, USER);
	client_open(&c, 1);
	client_connect(&c, 0, GOOD_PORT);
	param = conn_param(c.qp->qp_num);
	fd = cm_open();
	id = routed_id(fd, addrs[0], PEER_PORT);
	ret = cm_connect(fd, id, &param);
	tell("connect once more, QP %u: %d", c.qp->qp_num, ret);
	client_round(&c, 3);
	pause_ms(50);
	destroy_promptly(&c, "own");
	MUST(!cm_destroy(fd, id));
}

static void connect_mute(int unused)
{
	struct rdma_ucm_conn_param param = conn_param(w->value[0]);
	int fd;
	__u32 id;

	(void)unused;
	become(1, USER);
	fd = cm_open();
	id = routed_id(fd, addrs[0], PEER_PORT);
	tell("connect, QP %u: %d", w->value[0], cm_connect(fd, id, &param));
	reach(2);
	await(20);
}

static void victim_destroys(int unused)
{
	struct client c;

	(void)unused;
	become(1, USER + 1);
	client_open(&c, 1);
	client_connect(&c, 0, GOOD_PORT);
	w->value[0] = c.qp->qp_num;
	reach(1);
	await(2);
	pause_ms(50);
	destroy_promptly(&c, "foreign");
	reach(20);
}

static void case_mute(void)
{
	int fd = tcp_listener(0, PEER_PORT);
	pid_t victim, pid;

	start_server(0);
	must_end_well(actor(connect_connected, 0));
	victim = actor(victim_destroys, 0);
	await(1);
	pid = actor(connect_mute, 0);
	must_end_well(victim);
	must_end_well(pid);
	close(fd);
}

/* A connection for a QP of another process: which process makes it, and with what right */
enum lender { FORKED, PASSED, BY_RIGHT, NO_RIGHT };

static int pass[2];

static void send_file(int fd)
{
	char room[CMSG_SPACE(sizeof(fd))] = "", octet = 0;
	struct iovec iov = { &octet, 1 };
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = room,
		.msg_controllen = sizeof(room),
	};
	struct cmsghdr *cmsg = CMSG_FIRSTHDR(&msg);

	cmsg->cmsg_level = SOL_SOCKET;
	cmsg->cmsg_type = SCM_RIGHTS;
	cmsg->cmsg_len = CMSG_LEN(sizeof(fd));
	memcpy(CMSG_DATA(cmsg), &fd, sizeof(fd));
	MUST(sendmsg(pass[0], &msg, 0) == 1);
}

static void receive_file(void)
{
	char room[CMSG_SPACE(sizeof(int))], octet;
	struct iovec iov = { &octet, 1 };
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = room,
		.msg_controllen = sizeof(room),
	};

	MUST(recvmsg(pass[1], &msg, 0) == 1 && CMSG_FIRSTHDR(&msg));
}

static void make_connection(int lender)
{
	struct rdma_ucm_conn_param param;
	struct rdma_ucm_event_resp event;
	struct offer offer;
	int fd, ret;
	__u32 id;

	if (lender == PASSED)
		receive_file();
	await(1);
	fd = cm_open();
	id = routed_id(fd, addrs[0], GOOD_PORT);
	param = conn_param(w->value[0]);
	ret = cm_connect(fd, id, &param);
	tell("connect for another process, %d: %d", lender, ret);
	if (lender == NO_RIGHT) {
		MUST(ret);
		return;
	}
	MUST(!ret);
	expect(fd, RDMA_CM_EVENT_ESTABLISHED, &event);
	memcpy(&offer, event.param.conn.private_data, sizeof(offer));
	w->value[1] = offer.addr;
	w->value[2] = offer.addr >> 32;
	w->value[3] = offer.rkey;
	reach(2);
	await(20);
	MUST(!cm_destroy(fd, id));
}

static void borrow(int lender)
{
	static const uid_t uids[] = {
		[FORKED] = USER, [PASSED] = USER + 1, [BY_RIGHT] = 0, [NO_RIGHT] = USER,
	};

	if (lender != FORKED)
		become(1, uids[lender]);
	make_connection(lender);
}

static void lend(int lender)
{
	pid_t child = 0;
	struct client c;

	become(1, USER);
	client_open(&c, 1);
	w->value[0] = c.qp->qp_num;
	if (lender == FORKED)
		child = actor(borrow, FORKED);
	if (lender == PASSED)
		send_file(c.v.ctx->cmd_fd);
	reach(1);
	await(2);
	c.offer = (struct offer) { w->value[1] | (__u64)w->value[2] << 32, w->value[3] };
	client_round(&c, 4);
	reach(20);
	if (child)
		must_end_well(child);
	MUST(!ibv_destroy_qp(c.qp));
}

static void run_lending(enum lender lender)
{
	pid_t pid, other = 0;

	start_server(0);
	MUST(!socketpair(AF_UNIX, SOCK_STREAM, 0, pass));
	if (lender != FORKED)
		other = actor(borrow, lender);
	pid = actor(lend, lender);
	must_end_well(pid);
	if (other)
		must_end_well(other);
}

static void case_fork_child(void)
{
	run_lending(FORKED);
}

static void case_passed_file(void)
{
	run_lending(PASSED);
}

static void case_root_by_number(void)
{
	run_lending(BY_RIGHT);
}

/* A process of the same user, which does not have the file */
static void keep_idle(int unused)
{
	struct client c;

	(void)unused;
	become(1, USER);
	client_open(&c, 1);
	w->value[0] = c.qp->qp_num;
	reach(1);
	await(20);
	MUST(state_of(c.qp) <= IBV_QPS_RTR);
}

static void case_same_user(void)
{
	pid_t pid;

	start_server(0);
	pid = actor(keep_idle, 0);
	must_end_well(actor(borrow, NO_RIGHT));
	reach(20);
	must_end_well(pid);
}

/* An identifier that connects to a silent peer is rejected, then destroyed. */
static void reject_connecting(int unused)
{
	struct rdma_ucm_conn_param param;
	struct ibv_qp *qp;
	struct verbs v;
	__u32 id;
	int fd;

	(void)unused;
	become(1, USER);
	v = verbs_open(1);
	qp = must_have_qp(&v);
	param = conn_param(qp->qp_num);
	fd = cm_open();
	id = routed_id(fd, addrs[0], PEER_PORT);
	MUST(!cm_connect(fd, id, &param));
	tell("reject while it connects: %d", cm_reject(fd, id, 0));
	tell("accept while it connects: %d", cm_accept(fd, id, 5, &param));
	MUST(!cm_destroy(fd, id));
	MUST(!ibv_destroy_qp(qp));
}

static void case_reject_connecting(void)
{
	int fd = tcp_listener(0, PEER_PORT);

	must_end_well(actor(reject_connecting, 0));
	close(fd);
}

/*
 * A request that was not read is destroyed before its listener. If rdma_ucm keeps its event,
 * destroying the listener uses freed memory as that request and destroys it again.
 */
#define NEXT_IDS	16

static __u32 unread_request(int fd)
{
	struct pollfd pfd = { .fd = fd, .events = POLLIN };
	__u32 listener;

	MUST(fd >= 0 && !cm_create(fd, &listener, 1) &&
	     !cm_bind(fd, listener, addrs[1], ATTACK_PORT) &&
	     !cm_listen(fd, listener, 16));
	reach(1);
	MUST(poll(&pfd, 1, patience() * 1000) == 1);
	return listener;
}

/* @fd: the listener's file by now */
static void end_listener(int fd, __u32 listener)
{
	int other = cm_open(), i;
	__u32 ids[NEXT_IDS];

	for (i = 0; i < NEXT_IDS; i++)
		MUST(!cm_create(other, &ids[i], 1));
	MUST(!cm_destroy(fd, listener));
	for (i = 0; i < NEXT_IDS; i++)
		if (cm_destroy(other, ids[i]))
			fail("identifier %u ended with a listener that it has nothing to do with",
			     ids[i]);
	close(other);
	close(fd);
}

static void destroy_unread(int unused)
{
	__u32 listener, id;
	int fd;

	(void)unused;
	become(1, USER);
	fd = cm_open();
	listener = unread_request(fd);
	for (id = 0; id < 64; id++)
		if (id != listener && !cm_destroy(fd, id))
			tell("destroyed %u, listener %u", id, listener);
	end_listener(fd, listener);
}

/* Moves the listener, with the event, to another file, but not the request. */
static void migrate_unread(int unused)
{
	__u32 listener;
	int fd, other;

	(void)unused;
	become(1, USER);
	fd = cm_open();
	other = cm_open();
	listener = unread_request(fd);
	MUST(!cm_migrate(fd, other, listener));
	close(fd);
	end_listener(other, listener);
}

static void run_unread(void (*what)(int))
{
	pid_t pid = actor(what, 0);
	int fd;

	await(1);
	fd = silent_caller();
	must_end_well(pid);
	close(fd);
}

static void case_destroy_unread(void)
{
	run_unread(destroy_unread);
}

static void case_migrate_unread(void)
{
	run_unread(migrate_unread);
}

/*
 * A directed case
 * @name: its name
 * @run: the case
 * @spare: enum spare: the option that leaves it out
 * @words: what the case checks
 */
static const struct directed {
	const char *name;
	void (*run)(void);
	unsigned int spare;
	const char *words;
} directed[] = {
	{ "established-then-reject", case_established_then_reject, 0,
	  "a connection is accepted, established, and then rejected" },
	{ "accept-established-again", case_accept_established_again, 0,
	  "a connection is accepted, established, and accepted again with QPs of all kinds" },
	{ "accept-then-reject", case_accept_then_reject, 0,
	  "a connection is accepted, and rejected at once" },
	{ "accept-again", case_accept_again, 0,
	  "a connection is accepted, and at once with an own, foreign, dead, absurd QP" },
	{ "foreign-idle", case_foreign_idle, 0,
	  "an idle QP of another user is refused, and not touched" },
	{ "foreign-connected", case_foreign_connected, 0,
	  "a connected QP of another user is refused, and not touched" },
	{ "same-user", case_same_user, 0,
	  "a QP of the same user is refused to who has not got its file" },
	{ "container-root", case_container_root, 0,
	  "a QP of the host is refused to root of a container" },
	{ "kernel", case_kernel, 0, "QPs of the kernel, and of an honest pair, are refused" },
	{ "mute", case_mute, 0,
	  "a QP is destroyed at once, whatever connection is being made for its number" },
	{ "fork-child", case_fork_child, 0, "a forked child connects its parent's QP" },
	{ "passed-file", case_passed_file, 0, "a daemon that was passed the file connects the QP" },
	{ "root-by-number", case_root_by_number, 0, "root connects a QP by its number" },
	{ "reject-connecting", case_reject_connecting, SPARE_CONNECTING,
	  "a connection is rejected and accepted by the end that connects" },
	{ "destroy-unread", case_destroy_unread, SPARE_UNREAD,
	  "a request is destroyed before it is read" },
	{ "migrate-unread", case_migrate_unread, SPARE_UNREAD,
	  "a request ends before it is read, and its listener has moved to another file" },
};

static bool run_case(const struct directed *d)
{
	struct sigaction sa = { .sa_sigaction = child_ended, .sa_flags = SA_SIGINFO | SA_RESTART };
	double until = now() + 6 * patience();
	int status = 0;
	pid_t pid;

	if (d->spare & spared) {
		printf("ok %s # SKIP spared: the kernel's own fault\n", d->words);
		return true;
	}
	reach(0);
	w->has_failed = false;
	tell("attack: case %s", d->name);
	fflush(stdout);
	pid = fork();
	MUST(pid >= 0);
	if (!pid) {
		setpgid(0, 0);
		sigaction(SIGCHLD, &sa, NULL);
		d->run();
		fflush(stdout);
		_exit(0);
	}
	setpgid(pid, pid);
	while (!waitpid(pid, &status, WNOHANG) && now() < until)
		pause_ms(2);
	kill(-pid, SIGKILL);
	while (waitpid(-pid, NULL, 0) > 0)
		;
	if (now() >= until)
		status = 1;
	printf("%s %s\n", status ? "not ok" : "ok", d->words);
	return !status;
}

static int run_cases(char **names, int count)
{
	int wrong = 0, i;
	size_t j;

	for (i = 0; i < count; i++) {
		for (j = 0; j < ARRAY_SIZE(directed) && strcmp(names[i], directed[j].name); j++)
			;
		if (j == ARRAY_SIZE(directed))
			fail("no case %s", names[i]);
		wrong += !run_case(&directed[j]);
	}
	return !!wrong;
}

/* At random: what the threads of a family do */

/**
 * struct thread - a thread of a family
 * @f: its family
 * @n: record of its operations
 * @rng: its random numbers
 * @is_forked: it runs in a forked child, which uses QPs by number only
 */
struct thread {
	struct family *f;
	struct notes *n;
	struct rng rng;
	bool is_forked;
};

static struct note *begin(struct thread *t, enum op what, __u32 id, __u32 arg)
{
	struct note *note = &t->n->notes[t->n->count++ % LOG];

	*note = (struct note) { now(), what, id, arg, RUNNING };
	w->tried[what]++;
	return note;
}

static void end(struct note *note, int ret)
{
	note->ret = ret;
	if (!ret)
		w->done[note->op]++;
}

static bool chance(struct thread *t, __u32 of)
{
	return !choose(&t->rng, of);
}

static void wrong(struct thread *t, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void wrong(struct thread *t, const char *format, ...)
{
	int nobody = 0;
	va_list args;

	if (!atomic_compare_exchange_strong(&w->wrong, &nobody, t->f->number + 1))
		return;
	va_start(args, format);
	vsnprintf(w->words, sizeof(w->words), format, args);
	va_end(args);
}

/* Channels and slots: found, and kept from ending meanwhile */

static struct channel *hold_channel(struct thread *t, unsigned int number)
{
	struct channel *chan = &t->f->channels[number];

	return pthread_rwlock_tryrdlock(&chan->lock) ? NULL : chan;
}

static void drop_channel(struct channel *chan)
{
	pthread_rwlock_unlock(&chan->lock);
}

/* Return: a slot held with its channel, or NULL */
static struct slot *hold_slot(struct thread *t, struct channel **chan)
{
	struct slot *s = &t->f->slots[choose(&t->rng, SLOTS)];
	int i;

	for (i = 0; i < SLOTS && !s->is_used; i++)
		s = s + 1 == t->f->slots + SLOTS ? t->f->slots : s + 1;
	if (!s->is_used || pthread_rwlock_tryrdlock(&s->lock))
		return NULL;
	*chan = s->is_used ? hold_channel(t, s->chan) : NULL;
	if (*chan && (*chan)->generation == s->generation)
		return s;
	/* Its channel was closed, which has destroyed the identifier */
	if (*chan) {
		s->is_used = false;
		drop_channel(*chan);
	}
	pthread_rwlock_unlock(&s->lock);
	return NULL;
}

static void drop_slot(struct slot *s, struct channel *chan)
{
	drop_channel(chan);
	pthread_rwlock_unlock(&s->lock);
}

static void add_slot(struct thread *t, __u32 id, unsigned int chan, enum role role)
{
	struct channel *c = &t->f->channels[chan];
	struct slot *s;
	int i;

	for (i = 0; i < SLOTS; i++) {
		s = &t->f->slots[i];
		if (s->is_used || pthread_rwlock_trywrlock(&s->lock))
			continue;
		if (!s->is_used) {
			s->id = id;
			s->chan = chan;
			s->generation = c->generation;
			s->role = role;
			s->progress = FRESH;
			s->is_used = true;
			pthread_rwlock_unlock(&s->lock);
			return;
		}
		pthread_rwlock_unlock(&s->lock);
	}
	end(begin(t, OP_DESTROY, id, 0), cm_destroy(c->fd, id));
}

/* Numbers of QPs */

static int know(struct thread *t, __u32 qpn)
{
	int i = w->known_count++ % KNOWN;

	w->known[i] = (struct known) { qpn, t->f->side, t->f->number, true };
	return i;
}

static bool is_known(const struct thread *t, const struct known *k, bool is_own, bool is_alive)
{
	return k->qpn && k->side == t->f->side && (k->family == t->f->number) == is_own &&
	       k->is_alive == is_alive;
}

static __u32 known_qpn(struct thread *t, bool is_own, bool is_alive)
{
	unsigned int count = w->known_count < KNOWN ? w->known_count : KNOWN;
	unsigned int at = count ? choose(&t->rng, count) : 0, i;

	for (i = 0; i < count; i++)
		if (is_known(t, &w->known[(at + i) % count], is_own, is_alive))
			return w->known[(at + i) % count].qpn;
	return choose(&t->rng, 100);
}

static __u32 any_qpn(struct thread *t)
{
	static const __u32 absurd[] = { 0, 1, 0xffffff, 1 << 24, (1 << 24) + 1, 0xffffffff };

	switch (choose(&t->rng, 16)) {
	case 0:
		return known_qpn(t, true, false);
	case 1:
	case 2:
		return known_qpn(t, false, true);
	case 3:
		return absurd[choose(&t->rng, ARRAY_SIZE(absurd))];
	case 4:
		return choose(&t->rng, w->known_count + 40);
	default:
		return known_qpn(t, true, true);
	}
}

/* Checks that a QP number which a call has accepted is the family's own. rdma_ucm uses 24 bits. */
static void judge(struct thread *t, __u32 qpn, const char *what)
{
	const struct known *k;
	unsigned int i;

	for (i = 0; !devices_vanish && i < KNOWN && i < w->known_count; i++) {
		k = &w->known[i];
		if (k->qpn != (qpn & 0xffffff) || k->side != t->f->side)
			continue;
		if (k->family != t->f->number)
			wrong(t, "family %d: %s took QP %u, which is of family %d", t->f->number,
			      what, qpn, k->family);
		return;
	}
}

static struct rdma_ucm_conn_param any_param(struct thread *t)
{
	static const __u8 lens[] = { 0, 0, 0, 1, 64, 200, 251, 252, 255 };
	static const __u8 depths[] = { 0, 1, 4, 16, 127, 128, 255 };
	struct rdma_ucm_conn_param param = conn_param(any_qpn(t));

	param.private_data_len = lens[choose(&t->rng, ARRAY_SIZE(lens))];
	param.responder_resources = depths[choose(&t->rng, ARRAY_SIZE(depths))];
	param.initiator_depth = depths[choose(&t->rng, ARRAY_SIZE(depths))];
	param.valid = !chance(t, 30);
	return param;
}

/* Operations on an identifier */

/* Destinations: other families, the good server, plain TCP peers of all kinds, no listener */
static __u16 any_port(struct thread *t)
{
	switch (choose(&t->rng, 4)) {
	case 0:
		return PEER_PORT + choose(&t->rng, 8);
	case 1:
		return GOOD_PORT;
	default:
		return ATTACK_PORT + choose(&t->rng, ATTACK_PORTS);
	}
}

static int do_bind(struct thread *t, struct slot *s, int fd)
{
	int side = chance(t, 8) ? !t->f->side : t->f->side;
	const char *addr = chance(t, 4) ? "0.0.0.0" : addrs[side];
	int ret;

	ret = cm_bind(fd, s->id, addr, ATTACK_PORT + choose(&t->rng, ATTACK_PORTS));
	if (!ret && s->role == LISTENS)
		s->progress = HAS_ADDR;
	return ret;
}

static int do_listen(struct thread *t, struct slot *s, int fd)
{
	int ret = cm_listen(fd, s->id, choose(&t->rng, 40));

	if (s->role == LISTENS && s->progress != UP)
		s->progress = ret ? DOWN : UP;
	return ret;
}

/* The identifier resolves from now on, until the event */
static int do_resolve(struct thread *t, struct slot *s, int fd, enum op op)
{
	const char *addr = addrs[chance(t, 6) ? t->f->side : !t->f->side];
	enum progress before = s->progress;
	int ret;

	if (s->role == ASKS)
		s->progress = UNDER_WAY;
	ret = op == OP_RESOLVE_ADDR ? cm_resolve_addr(fd, s->id, addr, any_port(t), 500) :
				      cm_resolve_route(fd, s->id, 500);
	if (ret && s->role == ASKS)
		s->progress = before == UP || before == UNDER_WAY ? before : DOWN;
	return ret;
}

static int do_connect(struct thread *t, struct slot *s, int fd, struct note *note)
{
	struct rdma_ucm_conn_param param = any_param(t);
	int ret;

	note->arg = param.qp_num;
	ret = cm_connect(fd, s->id, &param);
	if (!ret) {
		s->progress = UNDER_WAY;
		judge(t, param.qp_num, "connect");
	}
	return ret;
}

static int do_accept(struct thread *t, struct slot *s, int fd, struct note *note)
{
	struct rdma_ucm_conn_param param = any_param(t);
	int ret;

	note->arg = param.qp_num;
	ret = cm_accept(fd, s->id, chance(t, 8) ? 0 : 9, &param);
	if (ret && s->role == ASKED)
		s->progress = DOWN;
	if (!ret && param.valid) {
		s->progress = UNDER_WAY;
		judge(t, param.qp_num, "accept");
	}
	return ret;
}

/*
 * Is this a sequence of calls that crashes the kernel, and is therefore left out? Identifiers that
 * will listen may be accepted and rejected, so they must not connect, which is possible after bind,
 * too.
 */
static bool is_spared(const struct slot *s, enum op op)
{
	switch (op) {
	case OP_ACCEPT:
	case OP_REJECT:
		return spared & SPARE_CONNECTING && s->role == ASKS;
	case OP_CONNECT:
		return spared & SPARE_CONNECTING && s->role == LISTENS;
	case OP_MIGRATE:
		return spared & SPARE_UNREAD && s->role == LISTENS;
	default:
		return false;
	}
}

static int call(struct thread *t, struct slot *s, int fd, enum op op, struct note *note)
{
	switch (op) {
	case OP_BIND:
		return do_bind(t, s, fd);
	case OP_LISTEN:
		return do_listen(t, s, fd);
	case OP_RESOLVE_ADDR:
	case OP_RESOLVE_ROUTE:
		return do_resolve(t, s, fd, op);
	case OP_CONNECT:
		return do_connect(t, s, fd, note);
	case OP_ACCEPT:
		return do_accept(t, s, fd, note);
	case OP_REJECT:
		return cm_reject(fd, s->id, chance(t, 2) ? 0 : choose(&t->rng, 256));
	case OP_DISCONNECT:
		return cm_disconnect(fd, s->id);
	case OP_DESTROY:
		return cm_destroy(fd, s->id);
	case OP_QUERY:
		return cm_query(fd, s->id, choose(&t->rng, 4));
	case OP_QP_ATTR:
		return cm_qp_attr(fd, s->id, choose(&t->rng, 8));
	case OP_OPTION:
		return cm_option(fd, s->id, choose(&t->rng, 5), choose(&t->rng, 256),
				 chance(t, 2) ? 1 : 4);
	default:
		return cm_notify(fd, s->id, choose(&t->rng, 20));
	}
}

static bool is_alone(enum op op)
{
	return op == OP_DESTROY || op == OP_MIGRATE ||
	       (op == OP_QP_ATTR && spared & SPARE_ATTRIBUTES);
}

static void migrate(struct thread *t, struct slot *s, struct channel *chan)
{
	unsigned int number = choose(&t->rng, CHANNELS);
	struct channel *to;
	int ret;

	if (number == s->chan)
		return;
	to = hold_channel(t, number);
	if (!to)
		return;
	ret = cm_migrate(chan->fd, to->fd, s->id);
	end(begin(t, OP_MIGRATE, s->id, number), ret);
	if (!ret) {
		s->chan = number;
		s->generation = to->generation;
	}
	drop_channel(to);
}

/* The next call of a well-behaved program */
static enum op sensible(struct thread *t, const struct slot *s)
{
	static const enum op asks[] = {
		[FRESH] = OP_RESOLVE_ADDR, [HAS_ADDR] = OP_RESOLVE_ROUTE, [HAS_ROUTE] = OP_CONNECT,
		[UNDER_WAY] = OP_QUERY, [UP] = OP_QUERY, [DOWN] = OP_DESTROY,
	};
	static const enum op listens[] = {
		[FRESH] = OP_BIND, [HAS_ADDR] = OP_LISTEN, [HAS_ROUTE] = OP_QUERY,
		[UNDER_WAY] = OP_QUERY, [UP] = OP_QUERY, [DOWN] = OP_DESTROY,
	};
	static const enum op asked[] = {
		[FRESH] = OP_ACCEPT, [HAS_ADDR] = OP_ACCEPT, [HAS_ROUTE] = OP_ACCEPT,
		[UNDER_WAY] = OP_QP_ATTR, [UP] = OP_QUERY, [DOWN] = OP_DESTROY,
	};

	if (s->progress == UP && s->role != LISTENS && chance(t, 4))
		return OP_DISCONNECT;
	return (s->role == ASKS ? asks : s->role == LISTENS ? listens : asked)[s->progress];
}

static enum op any_slot_op(struct thread *t)
{
	static const enum op some[] = {
		OP_BIND, OP_LISTEN, OP_RESOLVE_ADDR, OP_RESOLVE_ROUTE, OP_CONNECT, OP_ACCEPT,
		OP_ACCEPT, OP_REJECT, OP_REJECT, OP_DISCONNECT, OP_DESTROY, OP_MIGRATE, OP_MIGRATE,
		OP_QUERY, OP_QP_ATTR, OP_OPTION, OP_NOTIFY,
	};

	return some[choose(&t->rng, ARRAY_SIZE(some))];
}

/* Takes the slot's lock for writing. Return: false: the slot is not held at all any more */
static bool hold_alone(struct slot *s, struct channel *chan)
{
	pthread_rwlock_unlock(&s->lock);
	if (pthread_rwlock_trywrlock(&s->lock)) {
		drop_channel(chan);
		return false;
	}
	if (s->is_used && s->generation == chan->generation)
		return true;
	drop_slot(s, chan);
	return false;
}

static void slot_op(struct thread *t)
{
	struct channel *chan;
	struct note *note;
	struct slot *s;
	enum op op;
	int ret;

	s = hold_slot(t, &chan);
	if (!s)
		return;
	op = chance(t, 4) ? any_slot_op(t) : sensible(t, s);
	if (is_alone(op) && !hold_alone(s, chan))
		return;
	if (!is_spared(s, op)) {
		if (op == OP_MIGRATE) {
			migrate(t, s, chan);
		} else {
			note = begin(t, op, s->id, s->role);
			ret = call(t, s, chan->fd, op, note);
			end(note, ret);
			if (op == OP_DESTROY && !ret)
				s->is_used = false;
		}
	}
	drop_slot(s, chan);
}

/* Other operations */

static void create_op(struct thread *t)
{
	enum role role = chance(t, 4) ? LISTENS : ASKS;
	unsigned int number = choose(&t->rng, CHANNELS);
	struct channel *chan;
	struct note *note;
	int count = 0, i, ret;
	__u32 id;

	/* Leave some slots for requests */
	for (i = 0; i < SLOTS; i++)
		count += t->f->slots[i].is_used;
	chan = count < SLOTS * 2 / 3 ? hold_channel(t, number) : NULL;
	if (!chan)
		return;
	note = begin(t, OP_CREATE, 0, role);
	ret = cm_create(chan->fd, &id, chance(t, 10) ? 0 : 8);
	note->id = id;
	end(note, ret);
	if (!ret)
		add_slot(t, id, number, role);
	drop_channel(chan);
}

static void event_is(struct thread *t, unsigned int number, const struct rdma_ucm_event_resp *event)
{
	static const enum progress progress[] = {
		[RDMA_CM_EVENT_ADDR_RESOLVED] = HAS_ADDR,
		[RDMA_CM_EVENT_ROUTE_RESOLVED] = HAS_ROUTE,
		[RDMA_CM_EVENT_ESTABLISHED] = UP,
	};
	int i;

	if (event->event == RDMA_CM_EVENT_CONNECT_REQUEST) {
		add_slot(t, event->id, number, ASKED);
		return;
	}
	for (i = 0; i < SLOTS; i++) {
		struct slot *s = &t->f->slots[i];

		if (!s->is_used || s->id != event->id)
			continue;
		if (event->event < ARRAY_SIZE(progress) && progress[event->event])
			s->progress = progress[event->event];
		else
			s->progress = event->event == RDMA_CM_EVENT_ADDR_ERROR ? FRESH : DOWN;
	}
}

static void event_op(struct thread *t)
{
	unsigned int number = choose(&t->rng, CHANNELS);
	struct channel *chan = hold_channel(t, number);
	struct rdma_ucm_event_resp event;
	int ret;

	if (!chan)
		return;
	ret = cm_event(chan->fd, &event);
	if (ret != -EAGAIN)
		end(begin(t, OP_EVENT, event.id, event.event), ret);
	if (!ret) {
		w->events[event.event % ARRAY_SIZE(w->events)]++;
		event_is(t, number, &event);
	}
	drop_channel(chan);
}

/* Identifiers of other families, or guessed ones */
static void strange_op(struct thread *t)
{
	struct channel *chan = hold_channel(t, choose(&t->rng, CHANNELS));
	struct rdma_ucm_conn_param param = any_param(t);
	bool is_unknown = spared & (SPARE_CONNECTING | SPARE_UNREAD) || chance(t, 3);
	__u32 id = is_unknown ? (1u << 24) + choose(&t->rng, 1u << 30) : choose(&t->rng, 100);
	struct note *note;
	int ret;

	if (!chan)
		return;
	note = begin(t, OP_STRANGE, id, 0);
	note->arg = choose(&t->rng, 7);
	switch (note->arg) {
	case 0:
		ret = cm_destroy(chan->fd, id);
		break;
	case 1:
		ret = cm_accept(chan->fd, id, 1, &param);
		break;
	case 2:
		ret = cm_reject(chan->fd, id, 0);
		break;
	case 3:
		ret = cm_connect(chan->fd, id, &param);
		break;
	case 4:
		ret = cm_disconnect(chan->fd, id);
		break;
	case 5:
		ret = cm_call(chan->fd, choose(&t->rng, 40), &param, choose(&t->rng, 300),
			      choose(&t->rng, 300));
		break;
	default:
		ret = cm_migrate(choose(&t->rng, 30), chan->fd, id);
	}
	end(note, ret);
	drop_channel(chan);
}

/* Closes a channel with all that is pending in it */
static void close_op(struct thread *t)
{
	struct channel *chan = &t->f->channels[choose(&t->rng, CHANNELS)];
	struct note *note;

	if (t->is_forked || pthread_rwlock_trywrlock(&chan->lock))
		return;
	note = begin(t, OP_CLOSE, chan - t->f->channels, 0);
	close(chan->fd);
	chan->generation++;
	chan->fd = cm_open();
	end(note, chan->fd < 0 ? -errno : 0);
	pthread_rwlock_unlock(&chan->lock);
}

static void step(struct thread *t);

static void fork_op(struct thread *t)
{
	struct note *note;
	pid_t pid;
	int i;

	w->forking++;
	if (spared & SPARE_FORK && w->is_killing) {
		w->forking--;
		return;
	}
	note = begin(t, OP_FORK, 0, 0);
	pid = fork();
	if (pid) {
		w->forking--;
		end(note, pid < 0 ? -errno : 0);
		return;
	}
	t->n = &t->f->notes[THREADS];
	t->n->tid = syscall(SYS_gettid);
	t->is_forked = true;
	for (i = 0; i < FORKED_STEPS; i++)
		step(t);
	if (chance(t, 2))
		kill(getpid(), SIGKILL);
	_exit(0);
}

/* QPs */

static void qp_create_op(struct thread *t)
{
	struct place *p = &t->f->places[choose(&t->rng, QPS)];
	struct note *note;

	if (p->qp || !t->f->ctx || pthread_rwlock_trywrlock(&p->lock))
		return;
	if (!p->qp) {
		note = begin(t, OP_QP_CREATE, p - t->f->places, 0);
		p->qp = qp_create(t->f->pd, t->f->cq);
		end(note, p->qp ? 0 : -errno);
		if (p->qp) {
			note->arg = p->qp->qp_num;
			p->known = know(t, p->qp->qp_num);
		}
	}
	pthread_rwlock_unlock(&p->lock);
}

static void qp_destroy_op(struct thread *t)
{
	struct place *p = &t->f->places[choose(&t->rng, QPS)];
	struct note *note;
	int ret;

	if (!p->qp || pthread_rwlock_trywrlock(&p->lock))
		return;
	if (p->qp) {
		note = begin(t, OP_QP_DESTROY, p - t->f->places, p->qp->qp_num);
		ret = ibv_destroy_qp(p->qp);
		end(note, -ret);
		if (!ret) {
			if (w->known[p->known].qpn == note->arg)
				w->known[p->known].is_alive = false;
			p->qp = NULL;
		}
	}
	pthread_rwlock_unlock(&p->lock);
}

static int qp_modify(struct thread *t, struct ibv_qp *qp)
{
	static const enum ibv_qp_state states[] = {
		IBV_QPS_RESET, IBV_QPS_RESET, IBV_QPS_RESET, IBV_QPS_RESET,
		IBV_QPS_INIT, IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS,
		IBV_QPS_SQD, IBV_QPS_SQE, IBV_QPS_ERR,
	};
	struct ibv_qp_attr attr = {
		.qp_state = states[choose(&t->rng, ARRAY_SIZE(states))],
		.qp_access_flags = choose(&t->rng, 16),
	};

	return -ibv_modify_qp(qp, &attr, IBV_QP_STATE | (chance(t, 2) ? IBV_QP_ACCESS_FLAGS : 0));
}

static int qp_post(struct thread *t, struct ibv_qp *qp)
{
	__u8 octets[8] = "attack!";
	struct ibv_sge sge = { (unsigned long)octets, sizeof(octets), 0 };
	struct ibv_send_wr wr = {
		.opcode = IBV_WR_SEND, .send_flags = IBV_SEND_INLINE | IBV_SEND_SIGNALED,
		.sg_list = &sge, .num_sge = 1,
	}, *bad;
	struct ibv_recv_wr recv = { .num_sge = 0 }, *bad_recv;
	struct ibv_wc wc[8];

	ibv_poll_cq(t->f->cq, 8, wc);
	return chance(t, 2) ? -ibv_post_send(qp, &wr, &bad) : -ibv_post_recv(qp, &recv, &bad_recv);
}

static void qp_use_op(struct thread *t)
{
	struct place *p = &t->f->places[choose(&t->rng, QPS)];
	struct note *note;

	if (!p->qp || pthread_rwlock_tryrdlock(&p->lock))
		return;
	if (p->qp) {
		note = begin(t, chance(t, 4) ? OP_QP_MODIFY : OP_QP_POST, p - t->f->places,
			     p->qp->qp_num);
		end(note, note->op == OP_QP_MODIFY ? qp_modify(t, p->qp) : qp_post(t, p->qp));
	}
	pthread_rwlock_unlock(&p->lock);
}

static void qp_op(struct thread *t)
{
	if (t->is_forked)
		return;
	switch (choose(&t->rng, 8)) {
	case 0:
	case 1:
	case 2:
		qp_create_op(t);
		break;
	case 3:
		if (chance(t, 2))
			qp_destroy_op(t);
		break;
	default:
		qp_use_op(t);
	}
}

static void step(struct thread *t)
{
	switch (choose(&t->rng, 16)) {
	case 0:
	case 1:
		create_op(t);
		break;
	case 2:
	case 3:
	case 4:
		event_op(t);
		break;
	case 5:
		if (chance(t, 4))
			strange_op(t);
		break;
	case 6:
		if (chance(t, 40))
			close_op(t);
		break;
	case 7:
		if (chance(t, 30) && !t->is_forked)
			fork_op(t);
		break;
	case 8:
	case 9:
	case 10:
		qp_op(t);
		break;
	default:
		slot_op(t);
	}
	if (chance(t, 64))
		pause_ms(1);
}

static void *thread_main(void *arg)
{
	struct thread *t = arg;

	t->n->tid = syscall(SYS_gettid);
	while (!w->is_over)
		step(t);
	return NULL;
}

static void init_lock(pthread_rwlock_t *lock)
{
	pthread_rwlockattr_t attr;

	pthread_rwlockattr_init(&attr);
	pthread_rwlockattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	pthread_rwlock_init(lock, &attr);
}

static void family_init(struct family *f, int number)
{
	int i;

	memset(f, 0, sizeof(*f));
	f->number = number;
	f->side = number % 2;
	for (i = 0; i < SLOTS; i++)
		init_lock(&f->slots[i].lock);
	for (i = 0; i < CHANNELS; i++)
		init_lock(&f->channels[i].lock);
	for (i = 0; i < QPS; i++)
		init_lock(&f->places[i].lock);
}

/*
 * Users of the families: 0 and 3 have the same user, 1 another one; 2 is root of a user namespace,
 * 4 root of a user namespace and a network namespace.
 */
static void family_become(const struct family *f)
{
	uid_t uid = USER + (f->number == 3 ? 0 : f->number);

	become(f->side, uid);
	if (f->number == 2)
		become_root_of_container(uid, 0);
	if (f->number == 4)
		become_root_of_container(uid, CLONE_NEWNET);
}

static void family_main(struct family *f, __u32 round)
{
	struct thread threads[THREADS];
	pthread_t ids[THREADS];
	int i;

	signal(SIGCHLD, SIG_IGN);
	family_become(f);
	for (i = 0; i < CHANNELS; i++) {
		f->channels[i].fd = cm_open();
		MUST(f->channels[i].fd >= 0);
	}
	f->ctx = open_device(devices[f->side]);
	if (f->ctx) {
		f->pd = ibv_alloc_pd(f->ctx);
		f->cq = f->pd ? ibv_create_cq(f->ctx, 2048, NULL, NULL, 0) : NULL;
		MUST(devices_vanish || f->cq);
		if (!f->cq)
			f->ctx = NULL;
	}
	for (i = 0; i < THREADS; i++) {
		threads[i] = (struct thread) {
			.f = f, .n = &f->notes[i], .rng = rng_of(f->number * 16 + i, round),
		};
		MUST(!pthread_create(&ids[i], NULL, thread_main, &threads[i]));
	}
	for (i = 0; i < THREADS; i++)
		pthread_join(ids[i], NULL);
	_exit(0);
}

static void family_start(struct family *f, int number, __u32 round)
{
	unsigned int i;
	pid_t pid;

	for (i = 0; i < KNOWN; i++) {
		if (w->known[i].qpn && w->known[i].family == number) {
			w->known[i].family = -2;
			w->known[i].is_alive = false;
		}
	}
	family_init(f, number);
	pid = fork();
	MUST(pid >= 0);
	if (!pid) {
		setpgid(0, 0);
		family_main(f, round);
	}
	setpgid(pid, pid);
	f->pid = pid;
}

/* Peers */

struct peer {
	pthread_t thread;
	int side;
	int kind;
	int fd;
	struct rng rng;
};

enum peer_kind {
	PEER_MUTE, PEER_HOLDS, PEER_SLOW, PEER_GARBAGE, PEER_RESETS, PEER_ANSWERS, PEER_REJECTS,
	PEER_KINDS, PEER_CALLS = PEER_KINDS
};

#define PEER_CALLERS	6

static void garbage(struct peer *p, int fd)
{
	__u8 octets[64];
	unsigned int i;

	for (i = 0; i < sizeof(octets); i++)
		octets[i] = choose(&p->rng, 256);
	send(fd, octets, 1 + choose(&p->rng, sizeof(octets)), MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void slowly(int fd, const __u8 *octets, int len)
{
	int i;

	for (i = 0; i < len; i++) {
		if (send(fd, octets + i, 1, MSG_NOSIGNAL | MSG_DONTWAIT) != 1)
			break;
		pause_ms(2);
	}
}

static void any_end(struct peer *p, int fd)
{
	pause_ms(choose(&p->rng, 3) ? choose(&p->rng, 20) : choose(&p->rng, 300));
	tcp_close(fd, choose(&p->rng, 2));
}

/* A peer that has accepted a connection */
static void answer(struct peer *p, int fd)
{
	__u8 octets[600], frame[MPA_FRAME];
	__u8 flags = p->kind == PEER_REJECTS ? MPA_REJECT : 0;
	__u16 rtr[] = { 0, MPA_C, MPA_D, MPA_C | MPA_D };

	mpa_frame(frame, "MPA ID Rep Frame", flags, choose(&p->rng, 4) ? MPA_A | 4 : 4,
		  rtr[choose(&p->rng, 4)] | 4);
	if (p->kind != PEER_RESETS || choose(&p->rng, 2))
		tcp_read(fd, octets, MPA_FRAME, 100);
	switch (p->kind) {
	case PEER_SLOW:
		slowly(fd, frame, sizeof(frame));
		break;
	case PEER_GARBAGE:
		garbage(p, fd);
		break;
	case PEER_RESETS:
		send(fd, frame, choose(&p->rng, sizeof(frame)), MSG_NOSIGNAL | MSG_DONTWAIT);
		tcp_close(fd, true);
		return;
	case PEER_ANSWERS:
	case PEER_REJECTS:
		send(fd, frame, sizeof(frame), MSG_NOSIGNAL | MSG_DONTWAIT);
		if (choose(&p->rng, 2))
			garbage(p, fd);
		break;
	default:
		break;
	}
	any_end(p, fd);
}

/* A peer that connects to the attackers' listeners */
static void say_hello(struct peer *p, int fd)
{
	__u8 frame[MPA_FRAME], reply[64];

	mpa_request(frame);
	switch (choose(&p->rng, 8)) {
	case 0:
		break;
	case 1:
		send(fd, frame, choose(&p->rng, sizeof(frame)), MSG_NOSIGNAL);
		break;
	case 2:
		slowly(fd, frame, sizeof(frame));
		break;
	case 3:
		garbage(p, fd);
		break;
	case 4:
		/* Peer-to-peer mode without any RTR */
		mpa_frame(frame, "MPA ID Req Frame", 0, MPA_A | 1, 1);
		send(fd, frame, sizeof(frame), MSG_NOSIGNAL);
		break;
	case 5:
		frame[18] = choose(&p->rng, 4);
		frame[19] = choose(&p->rng, 256);
		send(fd, frame, sizeof(frame), MSG_NOSIGNAL);
		garbage(p, fd);
		break;
	default:
		send(fd, frame, sizeof(frame), MSG_NOSIGNAL);
		tcp_read(fd, reply, MPA_FRAME, choose(&p->rng, 200));
		if (!choose(&p->rng, 3))
			garbage(p, fd);
	}
}

static void *peer_main(void *arg)
{
	struct peer *p = arg;
	int fd;

	while (!w->is_over) {
		if (p->kind == PEER_CALLS) {
			fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
			if (tcp_connect(fd, addrs[!p->side],
					ATTACK_PORT + choose(&p->rng, ATTACK_PORTS)))
				say_hello(p, fd);
			any_end(p, fd);
			continue;
		}
		if (p->kind == PEER_MUTE)
			pause_ms(500);
		fd = accept(p->fd, NULL, NULL);
		if (fd >= 0)
			answer(p, fd);
	}
	return NULL;
}

/* Fewer peers that connect on a slow machine, so that the families get CPU time, too. */
static void peers_main(int side)
{
	struct peer peers[PEER_KINDS + PEER_CALLERS];
	unsigned int i, count = PEER_KINDS + PEER_CALLERS / slowness();

	for (i = 0; i < count; i++) {
		peers[i] = (struct peer) {
			.side = side, .kind = i < PEER_KINDS ? i : PEER_CALLS,
			.rng = rng_of(1000 + side * 100 + i, 0),
			.fd = i < PEER_KINDS ? tcp_listener(side, PEER_PORT + i) : -1,
		};
	}
	become(side, PEER_USER);
	for (i = 0; i < count; i++)
		MUST(!pthread_create(&peers[i].thread, NULL, peer_main, &peers[i]));
	for (;;)
		pause();
}

/* The supervisor of all families */

static void print_notes(const struct notes *n)
{
	unsigned int i, first = n->count > LOG ? n->count - LOG : 0;

	printf("thread %d, %u operations\n", n->tid, n->count);
	for (i = first; i < n->count; i++) {
		const struct note *note = &n->notes[i % LOG];

		printf("  %.6f %s %u %u: ", note->at, op_names[note->op % OPS], note->id,
		       note->arg);
		if (note->ret == RUNNING)
			printf("has not returned\n");
		else
			printf("%s\n", note->ret ? strerror(-note->ret) : "done");
	}
}

static void print_family(const struct family *f)
{
	int i;

	printf("family %d, process %d\n", f->number, f->pid);
	for (i = 0; i <= THREADS; i++)
		print_notes(&f->notes[i]);
}

static void print_stack(int pid)
{
	char path[64], line[200];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/stack", pid);
	file = fopen(path, "r");
	while (file && fgets(line, sizeof(line), file))
		printf("  %s", line);
	if (file)
		fclose(file);
}

static void print_stacks(const struct family *f)
{
	int i;

	for (i = 0; i <= THREADS; i++) {
		printf("stack of %d\n", f->notes[i].tid);
		print_stack(f->notes[i].tid);
	}
}

/* Return: whether all of the process group have ended */
static bool have_ended(pid_t group)
{
	double until = now() + patience() + startup_ms / 1000.;
	int status;
	pid_t pid;

	for (;;) {
		pid = waitpid(-group, &status, WNOHANG);
		if (pid < 0)
			return true;
		if (pid && WIFSIGNALED(status) && WTERMSIG(status) != SIGKILL)
			fail("process %d ended with signal %d", pid, WTERMSIG(status));
		if (!pid && now() > until)
			return false;
		if (!pid)
			pause_ms(2);
	}
}

static bool family_kill(struct family *f)
{
	w->is_killing = true;
	while (spared & SPARE_FORK && w->forking > 0)
		pause_ms(1);
	kill(-f->pid, SIGKILL);
	w->is_killing = false;
	w->kills++;
	if (have_ended(f->pid))
		return true;
	printf("family %d does not end\n", f->number);
	print_family(f);
	print_stacks(f);
	return false;
}

static void print_counts(void)
{
	int i;

	printf("%lu families killed\n", w->kills);
	for (i = 0; i < OPS; i++)
		printf("%s %lu of %lu, ", op_names[i], w->done[i], w->tried[i]);
	printf("\nevents:");
	for (i = 0; i < 16; i++)
		printf(" %lu", w->events[i]);
	printf("\n");
}

static unsigned long calls_tried(void)
{
	unsigned long sum = 0;
	int i;

	for (i = 0; i < OPS; i++)
		sum += w->tried[i];
	return sum;
}

static bool family_has_begun(const struct family *f)
{
	int i;

	for (i = 0; i <= THREADS; i++) {
		if (f->notes[i].count)
			return true;
	}
	return false;
}

/* On a slow machine, continues until enough calls were tried. */
static int run_random(double seconds)
{
	struct rng rng = rng_of(9999, 0);
	double until = now() + seconds, give_up = until + 6 * patience();
	pid_t others[4];
	int bad = 0, i;
	__u32 round = 0;

	MUST(!prctl(PR_SET_CHILD_SUBREAPER, 1));
	tell("attack: seed %llu, spared %#x, %.0f s", (unsigned long long)base_seed, spared,
	     seconds);
	for (i = 0; i < 2; i++) {
		others[i] = actor(peers_main, i);
		if (!devices_vanish)
			start_server(i);
	}
	for (i = 0; i < FAMILIES; i++)
		family_start(&w->families[i], i, round);
	while ((now() < until || (calls_tried() < RANDOM_CALLS && now() < give_up)) &&
	       !w->wrong && !bad) {
		pause_ms(100 + choose(&rng, 300));
		i = choose(&rng, FAMILIES);
		/* Otherwise, families would be killed on a slow machine before they do anything */
		if (!family_has_begun(&w->families[i]) && choose(&rng, 16))
			continue;
		bad = !family_kill(&w->families[i]);
		if (!bad)
			family_start(&w->families[i], i, ++round);
	}
	w->is_over = true;
	pause_ms(200);
	for (i = 0; i < FAMILIES; i++)
		bad |= !family_kill(&w->families[i]);
	for (i = 0; i < 2; i++)
		kill(others[i], SIGKILL);
	print_counts();
	if (!w->wrong && !bad && calls_tried() < RANDOM_CALLS) {
		printf("only %lu calls were tried\n", calls_tried());
		bad = 1;
	}
	if (w->wrong) {
		printf("%s\n", w->words);
		print_family(&w->families[w->wrong - 1]);
	}
	return bad || w->wrong;
}

/* The honest pair */

/* Blocks SIGTERM, so that it does not interrupt a wait for an event */
static void hold_end(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	MUST(!sigprocmask(SIG_BLOCK, &set, NULL));
}

static bool is_to_end(void)
{
	sigset_t set;

	MUST(!sigpending(&set));
	return sigismember(&set, SIGTERM);
}

static void serve_honestly(int side)
{
	good_serve(side, HONEST_PORT, HONEST_USER);
}

/*
 * Makes a connection for one round. The server ends it if the first message does not arrive before
 * the deadline of the startup, which happens only if the machine is too busy.
 * Return: false: it was too late
 */
static bool connect_briefly(__u32 round)
{
	enum ibv_wc_status status;
	struct client c;
	double took;

	client_open(&c, 0);
	client_connect(&c, 1, HONEST_PORT);
	status = client_try_round(&c, round);
	took = now() - c.began;
	if (status && (status != IBV_WC_WR_FLUSH_ERR || took < startup_ms / 1000.))
		fail("status %d on QP %u after %.3f s", status, c.qp->qp_num, took);
	client_close(&c);
	return !status;
}

/* Keeps one connection open, and makes short ones, one after the other */
static int be_honest(void)
{
	double until = now() + patience();
	__u32 round = 0, briefs = 0, late = 0;
	struct client c;

	hold_end();
	actor(serve_honestly, 1);
	while (!w->value[15]) {
		MUST(now() < until);
		pause_ms(2);
	}
	become(0, HONEST_USER);
	client_open(&c, 0);
	client_connect(&c, 1, HONEST_PORT);
	printf("ready\n");
	fflush(stdout);
	while (!is_to_end()) {
		client_round(&c, round++);
		if (round % 16)
			continue;
		if (connect_briefly(round))
			briefs++;
		else
			late++;
	}
	client_round(&c, round++);
	client_close(&c);
	if (late > briefs)
		fail("%u short connections were too late, %u in time", late, briefs);
	w->is_over = true;
	printf("%u rounds, %u short connections, %u too late\n", round, briefs, late);
	return 0;
}

static void know_option(const char *text)
{
	struct known *k = &w->known[w->known_count++];

	*k = (struct known) { .family = -1, .is_alive = true };
	if (sscanf(text, "%d:%u", &k->side, &k->qpn) != 2)
		fail("not SIDE:QPN: %s", text);
}

static void spare_option(const char *text)
{
	if (!strcmp(text, "connecting"))
		spared |= SPARE_CONNECTING;
	else if (!strcmp(text, "unread"))
		spared |= SPARE_UNREAD;
	else if (!strcmp(text, "fork"))
		spared |= SPARE_FORK;
	else if (!strcmp(text, "attributes"))
		spared |= SPARE_ATTRIBUTES;
	else
		fail("not to be spared: %s", text);
}

static char **options(char **arg)
{
	for (; *arg && !strncmp(*arg, "--", 2); arg += 2) {
		if (!arg[1])
			fail("%s what?", *arg);
		if (!strcmp(*arg, "--seed"))
			base_seed = strtoull(arg[1], NULL, 0);
		else if (!strcmp(*arg, "--spare"))
			spare_option(arg[1]);
		else if (!strcmp(*arg, "--qp"))
			know_option(arg[1]);
		else if (!strcmp(*arg, "--startup"))
			startup_ms = atoi(arg[1]);
		else
			fail("no option %s", *arg);
	}
	return arg;
}

/**
 * main() - see the head of the file
 * @argc: number of arguments
 * @argv: arguments
 *
 * Context: user space.
 * Return: 0, or 1 when something was wrong.
 */
int main(int argc, char **argv)
{
	char **arg;
	int i;

	w = mmap(NULL, sizeof(*w), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	MUST(w != MAP_FAILED);
	kmsg = open("/dev/kmsg", O_WRONLY | O_CLOEXEC);
	net[0] = open("/run/netns/a", O_RDONLY | O_CLOEXEC);
	net[1] = open("/run/netns/b", O_RDONLY | O_CLOEXEC);
	MUST(net[0] >= 0 && net[1] >= 0);
	arg = options(argv + 1);
	i = argv + argc - arg;
	if (i > 1 && !strcmp(arg[0], "case"))
		return run_cases(arg + 1, i - 1);
	devices_vanish = i == 2 && !strcmp(arg[0], "vanish");
	if (i == 2 && (devices_vanish || !strcmp(arg[0], "random")))
		return run_random(atof(arg[1]));
	if (i == 1 && !strcmp(arg[0], "honest"))
		return be_honest();
	fail("attack [OPTIONS] case NAME... | random SECONDS | vanish SECONDS | honest");
}
