// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * failing PART: tests calls under failing memory allocation. Each operation is repeated: first
 * its first allocation in the kernel fails, then its second, and so on, until a try has no
 * failing allocation. A call that fails must return ENOMEM, leave nothing behind, and succeed
 * when it is repeated. This also holds for calls that destroy objects.
 *
 * PART: "verbs" for all objects of a process; "connect" for connections of processes; "accept" for
 * accepting one; "link" for devices; "kernel [CASE]" for a case of the kernel consumer (see
 * ktest/); "work [CASE]": an allocation in a work item fails during such a case; "traffic": some of
 * all atomic allocations fail all the time. KIW_STEP=N: only the first allocation and every Nth,
 * beginning at one that KIW_SEED selects; "work": steps of N * 8 bytes.
 *
 * Needs a kernel with fault injection by task (fail-nth), and the settings made by
 * 260-failing.sh.
 */
#include "common.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>
#include <linux/netlink.h>
#include <linux/udmabuf.h>
#include <netinet/in.h>
#include <arpa/inet.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/rdma_netlink.h>
#include <rdma/rdma_user_ioctl_cmds.h>

#define PORT		7804
#define FAILSLAB	"/sys/kernel/debug/failslab/"
#define SIZE		(64 * PAGE)
/* No operation has so many allocations */
#define NTH_MAX		4000
#define ALL		(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE)
/* Both ends have had all that the Request for a Read needs */
#define FIRST_OCTETS	8192
/* The work items of a case do not allocate so much */
#define WORK_OCTETS	262144
#define KTEST_RUN	"/sys/kernel/debug/kiwarp_ktest/run"
#define KTEST_LOG	"/sys/kernel/debug/kiwarp_ktest/log"

/**
 * struct op - an operation and its reverse
 * @name: name for messages
 * @make: does the operation; returns 0 or errno
 * @unmake: undoes it; returns 0, or errno if nothing has changed
 * @others: errnos that are accepted besides ENOMEM
 */
struct op {
	const char *name;
	int (*make)(void);
	int (*unmake)(void);
	int others[3];
};

#define OP(what, how)	.name = what, .make = make_##how, .unmake = unmake_##how

/**
 * struct world - state of the program
 * @sides: both hosts
 * @fail_nth: this thread's fail-nth file, which selects the allocation that fails
 * @mem: %SIZE bytes of memory, touched
 * @dmabuf: a DMA buffer of the same size
 * @ctx: device context; operations create this and everything that follows
 * @pd: protection domain of @ctx
 * @channel: completion channel of @ctx
 * @cq: completion queue with @channel
 * @srq: shared receive queue in @pd
 * @qp: queue pair with @cq
 * @mr: region of @mem
 * @raw_mr: handle of the region of @dmabuf
 * @chan: event channel of @id and of the active end of @ends
 * @id: a listener
 * @ends: ends of a connection
 */
static struct world {
	struct side sides[2];
	int fail_nth;
	__u8 *mem;
	int dmabuf;
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_srq *srq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	__u32 raw_mr;
	struct rdma_event_channel *chan;
	struct rdma_cm_id *id;
	struct end ends[2];
} w;

/* The @nth allocation of this thread from now on fails; 0: none */
static void inject(int nth)
{
	char text[16];

	snprintf(text, sizeof(text), "%d", nth);
	MUST(pwrite(w.fail_nth, text, strlen(text), 0) == (ssize_t)strlen(text));
}

/* Stops the failures. Returns after how many more allocations one would have failed */
static int pause_failing(void)
{
	char text[16] = "";

	MUST(pread(w.fail_nth, text, sizeof(text) - 1, 0) > 0);
	inject(0);
	return atoi(text);
}

static bool has_failed(void)
{
	return !pause_failing();
}

static int step(void)
{
	const char *text = getenv("KIW_STEP");

	return text ? atoi(text) : 1;
}

/* The allocation to fail after the @nth has failed */
static int after(int nth)
{
	const char *seed_text = getenv("KIW_SEED");
	unsigned long seed = seed_text ? strtoul(seed_text, NULL, 0) : 0;

	return nth > 1 ? nth + step() : 2 + (int)(seed % step());
}

/* Sets @text to the output of rdma resource: the number of objects of each kind */
static void objects(char *text, size_t size)
{
	FILE *f = popen("rdma resource show", "r");
	size_t n;

	MUST(f);
	n = fread(text, 1, size - 1, f);
	text[n] = 0;
	MUST(!pclose(f));
}

static bool is_no_memory(const struct op *op, int err)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(op->others); i++)
		if (err == op->others[i])
			return true;
	return err == ENOMEM;
}

static int walk_make(const struct op *op)
{
	int nth, err;
	bool hit;

	for (nth = 1; nth < NTH_MAX; nth = after(nth)) {
		errno = 0;
		inject(nth);
		err = op->make();
		hit = has_failed();
		if (err && (!hit || !is_no_memory(op, err)))
			fail("%s, allocation %d%s: %s", op->name, nth, hit ? "" : " did not fail",
			     strerror(err));
		if (!err && op->unmake())
			fail("%s, allocation %d: cannot be undone", op->name, nth);
		if (!hit)
			return nth - 1;
	}
	fail("%s: no end of allocations", op->name);
}

static int walk_unmake(const struct op *op)
{
	int nth, err;
	bool hit;

	for (nth = 1; nth < NTH_MAX; nth = after(nth)) {
		err = op->make();
		if (err)
			fail("%s: %s", op->name, strerror(err));
		inject(nth);
		err = op->unmake();
		hit = has_failed();
		if (err && (!hit || err != ENOMEM))
			fail("end of %s, allocation %d: %s", op->name, nth, strerror(err));
		if (err && op->unmake())
			fail("end of %s, allocation %d: not the second time", op->name, nth);
		if (!hit)
			return nth - 1;
	}
	fail("end of %s: no end of allocations", op->name);
}

static void walk(const struct op *op)
{
	char before[1024], after[1024];
	int make, unmake;

	objects(before, sizeof(before));
	make = walk_make(op);
	unmake = walk_unmake(op);
	objects(after, sizeof(after));
	if (strcmp(before, after))
		fail("%s: there was\n%sand is\n%s", op->name, before, after);
	printf("%s: %d allocations, its end: %d\n", op->name, make, unmake);
}

/* The errno of a call that returns a pointer */
static int err_of(const void *p)
{
	return p ? 0 : errno ? : -1;
}

/* The errno of a call that returns an errno or -1 */
static int err_or(int ret)
{
	return ret == -1 ? errno : ret;
}

static int make_ctx(void)
{
	w.ctx = ibv_open_device(w.sides[0].listener->verbs->device);
	return err_of(w.ctx);
}

static int unmake_ctx(void)
{
	return err_or(ibv_close_device(w.ctx));
}

static int make_pd(void)
{
	w.pd = ibv_alloc_pd(w.ctx);
	return err_of(w.pd);
}

static int unmake_pd(void)
{
	return err_or(ibv_dealloc_pd(w.pd));
}

static int make_channel(void)
{
	w.channel = ibv_create_comp_channel(w.ctx);
	return err_of(w.channel);
}

static int unmake_channel(void)
{
	return err_or(ibv_destroy_comp_channel(w.channel));
}

static int make_cq(void)
{
	w.cq = ibv_create_cq(w.ctx, 1000, NULL, w.channel, 0);
	return err_of(w.cq);
}

static int unmake_cq(void)
{
	return err_or(ibv_destroy_cq(w.cq));
}

static int make_srq(void)
{
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = 500, .max_sge = 1 } };

	w.srq = ibv_create_srq(w.pd, &attr);
	return err_of(w.srq);
}

static int unmake_srq(void)
{
	return err_or(ibv_destroy_srq(w.srq));
}

static int make_qp(void)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = w.cq, .recv_cq = w.cq, .qp_type = IBV_QPT_RC,
		.cap = { 500, 500, MAX_SGE, MAX_SGE, MAX_INLINE },
	};

	w.qp = ibv_create_qp(w.pd, &attr);
	return err_of(w.qp);
}

static int unmake_qp(void)
{
	return err_or(ibv_destroy_qp(w.qp));
}

static int make_error(void)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };

	return err_or(ibv_modify_qp(w.qp, &attr, IBV_QP_STATE));
}

static int unmake_error(void)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RESET };

	return err_or(ibv_modify_qp(w.qp, &attr, IBV_QP_STATE));
}

static int make_mr(void)
{
	w.mr = ibv_reg_mr(w.pd, w.mem, SIZE, ALL);
	return err_of(w.mr);
}

static int unmake_mr(void)
{
	return err_or(ibv_dereg_mr(w.mr));
}

/* Re-registers @w.mr, which stays the object. The stock provider has no call for this */
static int rereg(__u64 addr, __u64 length)
{
	struct {
		struct ib_uverbs_cmd_hdr hdr;
		struct ib_uverbs_rereg_mr cmd;
	} call = {
		.hdr = { IB_USER_VERBS_CMD_REREG_MR, sizeof(call) / 4, 2 },
	};
	struct ib_uverbs_rereg_mr_resp resp;

	call.cmd = (struct ib_uverbs_rereg_mr) {
		.response = (unsigned long)&resp, .mr_handle = w.mr->handle,
		.flags = IBV_REREG_MR_CHANGE_TRANSLATION, .start = addr, .length = length,
		.hca_va = addr, .access_flags = ALL,
	};
	return write(w.ctx->cmd_fd, &call, sizeof(call)) == sizeof(call) ? 0 : errno;
}

static int make_rereg(void)
{
	return rereg((unsigned long)w.mem + PAGE + 1, SIZE / 2);
}

static int unmake_rereg(void)
{
	return rereg((unsigned long)w.mem, SIZE);
}

static int make_dmabuf_mr(void)
{
	__u64 keys;
	struct {
		struct ib_uverbs_ioctl_hdr hdr;
		struct ib_uverbs_attr attrs[9];
	} call = {
		.hdr = {
			.length = sizeof(call), .object_id = UVERBS_OBJECT_MR,
			.method_id = UVERBS_METHOD_REG_DMABUF_MR, .num_attrs = 9,
			.driver_id = RDMA_DRIVER_SIW,
		},
		.attrs = {
			{ UVERBS_ATTR_REG_DMABUF_MR_HANDLE, 0, 1, {}, { 0 } },
			{ UVERBS_ATTR_REG_DMABUF_MR_PD_HANDLE, 0, 1, {}, { w.pd->handle } },
			{ UVERBS_ATTR_REG_DMABUF_MR_OFFSET, 8, 1, {}, { 0 } },
			{ UVERBS_ATTR_REG_DMABUF_MR_LENGTH, 8, 1, {}, { SIZE } },
			{ UVERBS_ATTR_REG_DMABUF_MR_IOVA, 8, 1, {}, { 0 } },
			{ UVERBS_ATTR_REG_DMABUF_MR_FD, 4, 1, {}, { w.dmabuf } },
			{ UVERBS_ATTR_REG_DMABUF_MR_ACCESS_FLAGS, 4, 1, {}, { ALL } },
			{ UVERBS_ATTR_REG_DMABUF_MR_RESP_LKEY, 4, 1, {}, { (unsigned long)&keys } },
			{ UVERBS_ATTR_REG_DMABUF_MR_RESP_RKEY, 4, 1, {},
			  { (unsigned long)&keys + 4 } },
		},
	};

	if (ioctl(w.ctx->cmd_fd, RDMA_VERBS_IOCTL, &call))
		return errno;
	w.raw_mr = call.attrs[0].data;
	return 0;
}

static int unmake_dmabuf_mr(void)
{
	struct {
		struct ib_uverbs_cmd_hdr hdr;
		struct ib_uverbs_dereg_mr cmd;
	} call = {
		{ IB_USER_VERBS_CMD_DEREG_MR, sizeof(call) / 4, 0 }, { w.raw_mr },
	};

	return write(w.ctx->cmd_fd, &call, sizeof(call)) == sizeof(call) ? 0 : errno;
}

static void make_dmabuf(void)
{
	struct udmabuf_create create = { .size = SIZE };
	int fd = open("/dev/udmabuf", O_RDONLY);

	MUST(fd >= 0);
	create.memfd = memfd_create("dmabuf", MFD_ALLOW_SEALING);
	MUST(!ftruncate(create.memfd, SIZE));
	MUST(!fcntl(create.memfd, F_ADD_SEALS, F_SEAL_SHRINK));
	w.dmabuf = ioctl(fd, UDMABUF_CREATE, &create);
	MUST(w.dmabuf >= 0);
}

/* Each operation needs the objects of those before it */
static void verbs(void)
{
	static const struct op ops[] = {
		/* libibverbs tries another way to open the device, and tells how that failed */
		{ OP("user context", ctx), .others = { ENOENT } },
		{ OP("protection domain", pd) },
		{ OP("completion channel", channel) },
		{ OP("completion queue", cq) },
		{ OP("shared receive queue", srq) },
		{ OP("queue pair", qp) },
		{ OP("queue pair to ERROR", error) },
		{ OP("region", mr) },
		{ OP("region anew", rereg) },
		{ OP("region of a dma-buf", dmabuf_mr) },
	};
	size_t i;

	make_dmabuf();
	for (i = 0; i < ARRAY_SIZE(ops); i++) {
		walk(&ops[i]);
		MUST(!ops[i].make());
	}
	while (i--)
		MUST(!ops[i].unmake());
}

/*
 * A connection attempt. Its number is sent as private data, because an earlier attempt may have
 * failed after its request was sent.
 */
static __u32 attempt;
static struct queues queues[2];

/* The allocation of rdma_accept() that fails, 0: none; and whether it did in the last attempt */
static int accept_nth;
static bool accept_hit;

static int make_end(struct end *end, int side)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = queues[side].scq, .recv_cq = queues[side].rcq, .qp_type = IBV_QPT_RC,
		.cap = { 16, 16, 1, 1, 0 },
	};

	errno = 0;
	return err_or(rdma_create_qp(end->id, w.sides[side].pd, &attr));
}

/* Closes what exists of an end; on failure returns an errno, and has to be called again */
static int unmake_end(struct end *end)
{
	int err = 0;

	if (end->id && end->id->qp) {
		err = err_or(ibv_destroy_qp(end->id->qp));
		if (!err)
			end->id->qp = NULL;
	}
	if (!err && end->id) {
		err = err_or(rdma_destroy_id(end->id));
		if (!err)
			end->id = NULL;
	}
	return err;
}

static int answer(struct rdma_cm_event *event)
{
	struct rdma_conn_param param = { .responder_resources = 4, .initiator_depth = 4 };
	struct rdma_cm_id *id = event->id;
	bool is_stale = !event->param.conn.private_data ||
			memcmp(event->param.conn.private_data, &attempt, sizeof(attempt));
	int err;

	rdma_ack_cm_event(event);
	if (is_stale) {
		rdma_destroy_id(id);
		return 0;
	}
	w.ends[1].id = id;
	err = make_end(&w.ends[1], 1);
	if (err)
		return err;
	if (accept_nth)
		inject(accept_nth);
	err = err_or(rdma_accept(id, &param));
	if (accept_nth)
		accept_hit = has_failed();
	return err;
}

static bool is_failure(enum rdma_cm_event_type type)
{
	return type > RDMA_CM_EVENT_ESTABLISHED || type == RDMA_CM_EVENT_ADDR_ERROR ||
	       type == RDMA_CM_EVENT_ROUTE_ERROR || type == RDMA_CM_EVENT_CONNECT_ERROR ||
	       type == RDMA_CM_EVENT_UNREACHABLE || type == RDMA_CM_EVENT_REJECTED;
}

/* Handles an event of either end; records in *@seen that an end of @w.ends has received it */
static int on_event(struct rdma_cm_event *event, unsigned int *seen)
{
	enum rdma_cm_event_type type = event->event;
	int who = event->id == w.ends[1].id;
	bool is_ours = event->id == w.ends[who].id;
	int err = 0;

	if (type == RDMA_CM_EVENT_CONNECT_REQUEST)
		return answer(event);
	rdma_ack_cm_event(event);
	if (!is_ours)
		return 0;
	if (is_failure(type))
		err = ENOMEM;
	*seen |= 1 << (2 * type + who);
	return err;
}

/* Waits until all ends of the mask @who have received an event of @type */
static int await(enum rdma_cm_event_type type, unsigned int who, unsigned int *seen)
{
	struct pollfd pfds[2] = {
		{ .fd = w.chan->fd, .events = POLLIN },
		{ .fd = w.sides[1].chan->fd, .events = POLLIN },
	};
	struct rdma_cm_event *event;
	int i, err;

	while ((*seen >> 2 * type & who) != who) {
		if (poll(pfds, 2, patience() * 1000) <= 0)
			fail("no event, attempt %u: seen %#x", attempt, *seen);
		for (i = 0; i < 2; i++) {
			if (!pfds[i].revents)
				continue;
			err = err_or(rdma_get_cm_event(i ? w.sides[1].chan : w.chan, &event));
			/* librdmacm drops a request that it has no memory for, and reads on */
			if (err == EAGAIN)
				continue;
			err = err ? err : on_event(event, seen);
			if (err)
				return err;
		}
	}
	return 0;
}

static int connect_ends(void)
{
	struct rdma_conn_param param = {
		.responder_resources = 4, .initiator_depth = 4,
		.private_data = &attempt, .private_data_len = sizeof(attempt),
	};
	struct sockaddr_in sin = { .sin_family = AF_INET, .sin_port = htons(PORT) };
	unsigned int seen = 0;
	int err;

	MUST(inet_pton(AF_INET, w.sides[1].addr, &sin.sin_addr) == 1);
	err = err_or(rdma_create_id(w.chan, &w.ends[0].id, NULL, RDMA_PS_TCP));
	if (err) {
		w.ends[0].id = NULL;
		return err;
	}
	err = err_or(rdma_resolve_addr(w.ends[0].id, NULL, (void *)&sin, patience() * 1000));
	err = err ? err : await(RDMA_CM_EVENT_ADDR_RESOLVED, 1, &seen);
	err = err ? err : err_or(rdma_resolve_route(w.ends[0].id, patience() * 1000));
	err = err ? err : await(RDMA_CM_EVENT_ROUTE_RESOLVED, 1, &seen);
	err = err ? err : make_end(&w.ends[0], 0);
	err = err ? err : err_or(rdma_connect(w.ends[0].id, &param));
	return err ? err : await(RDMA_CM_EVENT_ESTABLISHED, 3, &seen);
}

static int unmake_connection(void)
{
	int err = unmake_end(&w.ends[0]);

	return err ? err : unmake_end(&w.ends[1]);
}

static int make_connection(void)
{
	int err;

	attempt++;
	err = connect_ends();
	if (err)
		MUST(!unmake_connection());
	return err;
}

static int make_listener(void)
{
	struct sockaddr_in sin = { .sin_family = AF_INET, .sin_port = htons(PORT + 1) };
	int err;

	MUST(inet_pton(AF_INET, w.sides[0].addr, &sin.sin_addr) == 1);
	if (rdma_create_id(w.chan, &w.id, NULL, RDMA_PS_TCP))
		return errno;
	err = err_or(rdma_bind_addr(w.id, (struct sockaddr *)&sin));
	err = err ? err : err_or(rdma_listen(w.id, 8));
	if (err)
		MUST(!rdma_destroy_id(w.id));
	return err;
}

static int unmake_listener(void)
{
	return err_or(rdma_destroy_id(w.id));
}

static void queues_open(void)
{
	int i;

	for (i = 0; i < 2; i++)
		queues[i] = queues_of(&w.sides[i], 16);
	MUST(!setns(w.sides[0].ns, CLONE_NEWNET));
	w.chan = rdma_create_event_channel();
	MUST(w.chan);
	MUST(!fcntl(w.chan->fd, F_SETFL, O_NONBLOCK));
	MUST(!fcntl(w.sides[1].chan->fd, F_SETFL, O_NONBLOCK));
}

static void connections(void)
{
	static const struct op ops[] = {
		/* No memory for a socket; for its port; for its first segment */
		{ OP("listener", listener), .others = { ENFILE, EADDRINUSE } },
		{ OP("connection", connection), .others = { ENFILE, EADDRINUSE, ENOBUFS } },
	};
	int i;

	queues_open();
	for (i = 0; i < 2; i++)
		walk(&ops[i]);
	for (i = 0; i < 2; i++)
		queues_close(&queues[i]);
}

/* Accepts a connection again and again; each allocation of rdma_accept() fails once. */
static void accepts(void)
{
	int i, err, bad = 0;

	queues_open();
	accept_hit = true;
	for (i = 1; accept_hit && i < NTH_MAX; i++) {
		accept_nth = i;
		err = make_connection();
		if (err && (!accept_hit || err != ENOMEM))
			fail("accept, allocation %d: %s", i, strerror(err));
		if (!err)
			MUST(!unmake_connection());
		bad += !!err;
	}
	printf("accept: %d allocations, %d failed\n", i - 2, bad);
	for (i = 0; i < 2; i++)
		queues_close(&queues[i]);
}

/* A message about links, with up to three strings */
struct message {
	struct nlmsghdr hdr;
	char attrs[128];
};

static void add_attr(struct message *m, __u16 type, const void *value, size_t len)
{
	struct nlattr *attr = (struct nlattr *)((char *)m + NLMSG_ALIGN(m->hdr.nlmsg_len));

	attr->nla_type = type;
	attr->nla_len = NLA_HDRLEN + len;
	memcpy((char *)attr + NLA_HDRLEN, value, len);
	m->hdr.nlmsg_len = NLMSG_ALIGN(m->hdr.nlmsg_len) + attr->nla_len;
}

/* The kernel's answer to @m; ENOBUFS: there was no memory for it, or for the question */
static int ask_kernel(struct message *m)
{
	static int fd = -1;

	struct {
		struct nlmsghdr hdr;
		struct nlmsgerr err;
		char rest[256];
	} answer = {};

	if (fd < 0)
		fd = socket(AF_NETLINK, SOCK_RAW, NETLINK_RDMA);
	if (send(fd, m, m->hdr.nlmsg_len, 0) < 0 || recv(fd, &answer, sizeof(answer), 0) < 0)
		return errno;
	return -answer.err.error;
}

static struct message message(int op)
{
	struct message m = {
		.hdr = {
			.nlmsg_len = NLMSG_HDRLEN,
			.nlmsg_type = RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, op),
			.nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK,
		},
	};

	return m;
}

/* The index of make_link()'s device, or -1 if there is none */
static int link_index(void)
{
	int left = pause_failing();
	FILE *f = popen("rdma dev show kiwx 2>&1", "r");
	int index;

	MUST(f);
	if (fscanf(f, "%d:", &index) != 1)
		index = -1;
	pclose(f);
	inject(left);
	return index;
}

/* The result of a request whose answer was lost: success if the device exists as @wanted */
static int judge_link(int err, bool wanted)
{
	if (err != ENOBUFS)
		return err;
	return (link_index() >= 0) == wanted ? 0 : ENOMEM;
}

static int make_link(void)
{
	struct message m = message(RDMA_NLDEV_CMD_NEWLINK);

	add_attr(&m, RDMA_NLDEV_ATTR_DEV_NAME, "kiwx", 5);
	add_attr(&m, RDMA_NLDEV_ATTR_LINK_TYPE, "kiwarp", 7);
	add_attr(&m, RDMA_NLDEV_ATTR_NDEV_NAME, "dummyx", 7);
	return judge_link(ask_kernel(&m), true);
}

static int unmake_link(void)
{
	struct message m = message(RDMA_NLDEV_CMD_DELLINK);
	int index = link_index();

	add_attr(&m, RDMA_NLDEV_ATTR_DEV_INDEX, &index, 4);
	return judge_link(ask_kernel(&m), false);
}

static void links(void)
{
	static const struct op op = { OP("device", link) };

	/* Create the socket before any allocation fails */
	MUST(link_index() < 0 && !make_link() && !unmake_link());
	walk(&op);
}

static const char *ktest_case = "once";

static int run_case(void)
{
	char text[128];
	int fd = open(KTEST_RUN, O_WRONLY);
	int err = 0;

	if (fd < 0)
		return errno;
	snprintf(text, sizeof(text), "%d %d %s", w.sides[0].ns, w.sides[1].ns, ktest_case);
	if (write(fd, text, strlen(text)) < 0)
		err = errno;
	close(fd);
	return err;
}

/* Checks that the case has failed for lack of memory, in any wording */
static void check_log(int nth, bool hit)
{
	static const struct op op = { .others = { ENFILE, EADDRINUSE, ENOBUFS } };
	FILE *f = fopen(KTEST_LOG, "r");
	const char *found = NULL;
	char line[256] = "";

	MUST(f);
	if (fgets(line, sizeof(line), f))
		found = strrchr(line, '(');
	if (!hit || !found || !is_no_memory(&op, -atoi(found + 1)))
		fail("%s, allocation %d%s: %s", ktest_case, nth, hit ? "" : " did not fail", line);
	fclose(f);
}

static void kernel(void)
{
	int nth, err;
	bool hit;

	for (nth = 1; nth < NTH_MAX; nth = after(nth)) {
		inject(nth);
		err = run_case();
		hit = has_failed();
		if (err == EIO)
			check_log(nth, hit);
		else if (err && (!hit || err != ENOMEM))
			fail("%s, allocation %d: %s", ktest_case, nth, strerror(err));
		if (!hit)
			break;
	}
	printf("%s: %d allocations\n", ktest_case, nth - 1);
}

static bool set_file_if_there(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY);
	bool is_set = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

	if (fd >= 0)
		close(fd);
	return is_set;
}

static void set_file(const char *path, const char *text)
{
	if (!set_file_if_there(path, text))
		fail("%s: %s", path, strerror(errno));
}

/* Sets whether allocations of workers may fail: all workers, as any may run the work items. */
static void workers_may_fail(const char *value)
{
	char path[300], comm[16];
	struct dirent *entry;
	DIR *dir = opendir("/proc");
	FILE *f;

	MUST(dir);
	while ((entry = readdir(dir))) {
		snprintf(path, sizeof(path), "/proc/%s/comm", entry->d_name);
		f = atoi(entry->d_name) ? fopen(path, "r") : NULL;
		if (!f)
			continue;
		if (fgets(comm, sizeof(comm), f) && !strncmp(comm, "kworker", 7)) {
			snprintf(path, sizeof(path), "/proc/%s/make-it-fail", entry->d_name);
			set_file_if_there(path, value);
		}
		fclose(f);
	}
	closedir(dir);
}

/* Has the selected allocation failed? */
static bool worker_has_failed(void)
{
	FILE *f = fopen(FAILSLAB "times", "r");
	int left;

	MUST(f && fscanf(f, "%d", &left) == 1);
	fclose(f);
	return !left;
}

/* Runs a case; the allocation with which workers exceed @octets bytes in total fails */
static int run_failing_work(int octets, bool *hit)
{
	char text[16];
	int err;

	snprintf(text, sizeof(text), "%d", octets);
	workers_may_fail("1");
	set_file(FAILSLAB "space", text);
	set_file(FAILSLAB "times", "1");
	set_file(FAILSLAB "probability", "100");
	err = run_case();
	set_file(FAILSLAB "probability", "0");
	*hit = worker_has_failed();
	return err;
}

/*
 * No system call fails, so nobody is told that memory is short. A case may fail in any way, but it
 * must end, and it must pass when there is memory again.
 */
static void work_items(void)
{
	int octets, err, runs = 0, bad = 0;
	bool hit = true;

	set_file(FAILSLAB "task-filter", "Y");
	for (octets = 0; hit && octets < WORK_OCTETS; octets += 8 * step()) {
		err = run_failing_work(octets, &hit);
		if (err && (!hit || err != EIO))
			fail("%s, memory short after %d octets%s: %s", ktest_case, octets,
			     hit ? "" : ", and it was not", strerror(err));
		runs += hit;
		bad += !!err;
	}
	workers_may_fail("0");
	set_file(FAILSLAB "task-filter", "N");
	set_file(FAILSLAB "times", "-1");
	if (!runs || hit)
		fail("%s: %s", ktest_case, runs ? "no end of allocations" : "no allocation");
	err = run_case();
	if (err)
		fail("%s, with memory again: %s", ktest_case, strerror(err));
	printf("%s: memory was short in work items of %d runs, %d failed\n", ktest_case, runs, bad);
}

/* Makes a percentage of all atomic allocations fail; "0": none any more */
static void fail_often(const char *percent)
{
	set_file(FAILSLAB "probability", percent);
	set_file("/sys/kernel/debug/fail_page_alloc/probability", percent);
}

static void transfer(const struct end *end, struct ibv_cq *cq, const struct ibv_mr *from,
		     const struct ibv_mr *to, enum ibv_wr_opcode opcode)
{
	struct ibv_sge sge = { (unsigned long)from->addr, SIZE, from->lkey };
	struct ibv_send_wr *bad, wr = {
		.opcode = opcode, .send_flags = IBV_SEND_SIGNALED, .sg_list = &sge, .num_sge = 1,
		.wr.rdma = { (unsigned long)to->addr, to->rkey },
	};
	struct ibv_wc wc;

	MUST(!ibv_post_send(end->id->qp, &wr, &bad));
	complete(cq, &wc);
	if (wc.status != IBV_WC_SUCCESS)
		fail("without memory: status %d", wc.status);
}

/*
 * The first Read of a connection allocates rings at both ends. Whichever of these allocations
 * fails, selected by the number of bytes allocated before, it is retried later.
 */
static void first_reads(const struct ibv_mr *from, const struct ibv_mr *to)
{
	char text[12];
	int octets;

	for (octets = 0; octets <= FIRST_OCTETS; octets += 256) {
		MUST(conn_open(w.ends, &w.sides[0], &w.sides[1], queues));
		memset(to->addr, 0, SIZE);
		snprintf(text, sizeof(text), "%d", octets);
		set_file(FAILSLAB "space", text);
		set_file(FAILSLAB "times", "1");
		set_file(FAILSLAB "probability", "100");
		transfer(&w.ends[0], queues[0].scq, to, from, IBV_WR_RDMA_READ);
		set_file(FAILSLAB "probability", "0");
		if (memcmp(from->addr, to->addr, SIZE))
			fail("no memory after %d octets: data is wrong", octets);
		end_close(&w.ends[0]);
		end_close(&w.ends[1]);
	}
	set_file(FAILSLAB "times", "-1");
}

/* An open connection keeps working, and all data is correct: TCP retries what it could not send */
static void traffic(void)
{
	struct ibv_mr *mr[2], *back;
	__u8 *sink = pages(SIZE);
	int i, k;

	for (i = 0; i < 2; i++)
		queues[i] = queues_of(&w.sides[i], 16);
	mr[0] = reg(w.sides[0].pd, w.mem, SIZE, ALL);
	mr[1] = reg(w.sides[1].pd, sink, SIZE, ALL);
	back = reg(w.sides[0].pd, pages(SIZE), SIZE, ALL);
	memset(sink, 1, SIZE);
	first_reads(mr[1], back);
	MUST(conn_open(w.ends, &w.sides[0], &w.sides[1], queues));
	for (k = 0; k < 8; k++) {
		for (i = 0; i < SIZE; i++)
			w.mem[i] = pick(256);
		fail_often("5");
		transfer(&w.ends[0], queues[0].scq, mr[0], mr[1], IBV_WR_RDMA_WRITE);
		transfer(&w.ends[0], queues[0].scq, back, mr[1], IBV_WR_RDMA_READ);
		fail_often("0");
		if (memcmp(w.mem, sink, SIZE) || memcmp(w.mem, back->addr, SIZE))
			fail("round %d: data is wrong", k);
	}
	printf("%d rounds\n", k);
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
	static const struct {
		const char *name;
		void (*run)(void);
	} parts[] = {
		{ "verbs", verbs }, { "connect", connections }, { "accept", accepts },
		{ "link", links }, { "kernel", kernel }, { "work", work_items },
		{ "traffic", traffic },
	};
	size_t i;

	setlinebuf(stdout);
	w.fail_nth = open("/proc/thread-self/fail-nth", O_RDWR);
	MUST(w.fail_nth >= 0);
	w.mem = pages(SIZE);
	memset(w.mem, 1, SIZE);
	side_open(&w.sides[0], "a", "10.77.0.1", PORT);
	side_open(&w.sides[1], "b", "10.77.0.2", PORT);
	if (argc > 2)
		ktest_case = argv[2];
	for (i = 0; i < ARRAY_SIZE(parts); i++) {
		if (argc > 1 && !strcmp(argv[1], parts[i].name)) {
			parts[i].run();
			return 0;
		}
	}
	fail("which part?");
}
