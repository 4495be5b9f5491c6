// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Two hosts and connections between them, for the programs in this directory.
 *
 * Owns: the random numbers (one sequence from one seed) and the timeout of every wait, which is
 * generous because the machine may be busy and the guest emulated.
 */
#include "common.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/udmabuf.h>
#include <netinet/in.h>
#include <poll.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <sched.h>
#include <stdarg.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <arpa/inet.h>
#include <time.h>
#include <unistd.h>

#define SECONDS		20	/* for one event or completion on a fast guest */
#define RESOLVE_MS	1000

#define NS_PATH		"/run/netns/%s"

static __u64 random_state = 5040;

/**
 * fail() - report a failure and exit with status 1
 * @format: description of the failure, as for printf()
 *
 * Context: user space.
 */
void fail(const char *format, ...)
{
	va_list args;

	fflush(stdout);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	_exit(1);
}

/**
 * run_case() - run the case that the command line names; fail if there is none of that name
 * @cases: all cases of the program
 * @count: number of @cases
 * @name: the argument
 *
 * Context: user space.
 */
void run_case(const struct case_of *cases, size_t count, const char *name)
{
	size_t i;

	for (i = 0; i < count; i++) {
		if (strcmp(name, cases[i].name))
			continue;
		cases[i].run();
		return;
	}
	fail("no case %s", name);
}

/**
 * seed() - seed the random number generator
 * @value: seed; the same seed gives the same sequence
 *
 * Context: user space.
 */
void seed(__u64 value)
{
	random_state = value;
}

/**
 * pick() - choose a random number
 * @count: number of values to choose from, not 0
 *
 * Context: user space.
 * Return: 0 to @count - 1.
 */
__u32 pick(__u32 count)
{
	__u64 x;

	random_state += 0x9e3779b97f4a7c15;
	x = random_state;
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
	x = (x ^ x >> 27) * 0x94d049bb133111eb;
	return (__u32)((x ^ x >> 31) >> 32) % count;
}

/**
 * now() - read a monotonic clock
 *
 * Context: user space.
 * Return: seconds since an arbitrary moment.
 */
double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec + ts.tv_nsec / 1e9;
}

/**
 * slowness() - factor by which timeouts are longer in this guest
 *
 * Context: user space.
 * Return: the factor, 1 for a fast guest.
 */
int slowness(void)
{
	const char *slow = getenv("KIW_SLOW");

	return slow ? atoi(slow) : 1;
}

/**
 * patience() - timeout for any single wait in this guest
 *
 * Context: user space.
 * Return: seconds.
 */
double patience(void)
{
	return SECONDS * slowness();
}

/**
 * pages() - allocate page-aligned memory
 * @size: bytes
 *
 * Context: user space.
 * Return: the memory, zeroed.
 */
void *pages(size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	MUST(p != MAP_FAILED);
	return p;
}

static void enter(const struct side *side)
{
	MUST(!setns(side->ns, CLONE_NEWNET));
}

static struct sockaddr_in address(const char *addr, __u16 port)
{
	struct sockaddr_in sin = { .sin_family = AF_INET, .sin_port = htons(port) };

	MUST(inet_pton(AF_INET, addr, &sin.sin_addr) == 1);
	return sin;
}

/**
 * side_open() - set up one of the two hosts
 * @side: structure to fill in
 * @ns: name of its network namespace
 * @addr: its address; not copied
 * @port: port to listen at
 *
 * Context: user space.
 */
void side_open(struct side *side, const char *ns, const char *addr, __u16 port)
{
	struct sockaddr_in sin = address(addr, port);
	char path[64];

	snprintf(path, sizeof(path), NS_PATH, ns);
	side->ns = open(path, O_RDONLY | O_CLOEXEC);
	MUST(side->ns >= 0);
	enter(side);
	side->addr = addr;
	side->port = port;
	side->chan = rdma_create_event_channel();
	MUST(side->chan);
	MUST(!rdma_create_id(side->chan, &side->listener, NULL, RDMA_PS_TCP));
	MUST(!rdma_bind_addr(side->listener, (struct sockaddr *)&sin));
	MUST(!rdma_listen(side->listener, 1024));
	MUST(side->listener->verbs);
	side->pd = ibv_alloc_pd(side->listener->verbs);
	MUST(side->pd);
}

/**
 * reg() - register memory
 * @pd: protection domain
 * @addr: start of the memory
 * @size: bytes
 * @access: enum ibv_access_flags
 *
 * Context: user space.
 * Return: the region.
 */
struct ibv_mr *reg(struct ibv_pd *pd, void *addr, size_t size, int access)
{
	struct ibv_mr *mr = ibv_reg_mr(pd, addr, size, access);

	if (!mr)
		fail("no region of %zu octets with rights %#x", size, access);
	return mr;
}

/**
 * queues_of() - create the queues for one end of a connection
 * @side: the host
 * @depth: slots of the send and the receive queue
 *
 * Context: user space.
 * Return: the queues, for queues_close().
 */
struct queues queues_of(const struct side *side, __u32 depth)
{
	struct ibv_context *ctx = side->listener->verbs;
	struct queues queues = {
		.scq = ibv_create_cq(ctx, 2 * depth, NULL, NULL, 0),
		.rcq = ibv_create_cq(ctx, 2 * depth, NULL, NULL, 0),
		.send_depth = depth,
		.recv_depth = depth,
	};

	MUST(queues.scq && queues.rcq);
	return queues;
}

/**
 * queues_close() - destroy what queues_of() created
 * @queues: the queues; no QP uses them any more
 *
 * Context: user space.
 */
void queues_close(struct queues *queues)
{
	MUST(!ibv_destroy_cq(queues->scq));
	MUST(!ibv_destroy_cq(queues->rcq));
	if (queues->srq)
		MUST(!ibv_destroy_srq(queues->srq));
}

/* Returns an event of @chan, which the caller has to acknowledge, or NULL */
static struct rdma_cm_event *event_of(struct rdma_event_channel *chan, double seconds)
{
	struct pollfd pfd = { .fd = chan->fd, .events = POLLIN };
	struct rdma_cm_event *event;

	if (poll(&pfd, 1, seconds * 1000) != 1)
		return NULL;
	MUST(!rdma_get_cm_event(chan, &event));
	return event;
}

/**
 * end_event() - wait for the next event of an end
 * @end: the end
 * @seconds: timeout
 *
 * Context: user space.
 * Return: enum rdma_cm_event_type, or -1 when there was no event.
 */
int end_event(const struct end *end, double seconds)
{
	struct rdma_cm_event *event = event_of(end->chan, seconds);
	int type;

	if (!event)
		return -1;
	type = event->event;
	rdma_ack_cm_event(event);
	return type;
}

static bool expect(const struct end *end, enum rdma_cm_event_type wanted)
{
	int type = end_event(end, patience());

	if (type != (int)wanted)
		fprintf(stderr, "CM event %d instead of %d\n", type, wanted);
	return type == (int)wanted;
}

/*
 * ib_core may miss the neighbour's answer and looks again only when its timeout has passed. So
 * use a short timeout, and retry until patience() is over.
 */
static bool resolve(struct end *end, struct sockaddr_in *sin)
{
	double until = now() + patience();
	int type;

	do {
		if (rdma_resolve_addr(end->id, NULL, (struct sockaddr *)sin, RESOLVE_MS))
			return false;
		type = end_event(end, patience());
	} while (type == RDMA_CM_EVENT_ADDR_ERROR && now() < until);
	if (type != RDMA_CM_EVENT_ADDR_RESOLVED)
		fprintf(stderr, "CM event %d instead of a resolved address\n", type);
	return type == RDMA_CM_EVENT_ADDR_RESOLVED;
}

static void make_qp(struct end *end, const struct side *side, const struct queues *queues)
{
	__u32 sge = queues->sge ? queues->sge : MAX_SGE;
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = queues->scq, .recv_cq = queues->rcq, .srq = queues->srq,
		.qp_type = IBV_QPT_RC,
		.cap = {
			.max_send_wr = queues->send_depth, .max_send_sge = sge,
			.max_recv_wr = queues->srq ? 0 : queues->recv_depth,
			.max_recv_sge = queues->srq ? 0 : sge,
			.max_inline_data = queues->sge ? 0 : MAX_INLINE,
		},
		.comp_mask = IBV_QP_INIT_ATTR_PD, .pd = side->pd,
		.send_ops_flags = queues->send_ops,
	};

	if (queues->send_ops)
		attr.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	MUST(!rdma_create_qp_ex(end->id, &attr));
}

/* Give an end a new QP with @queues or, if it is not NULL, @qp. */
static void set_qp(struct end *end, const struct side *side, const struct queues *queues,
		   struct ibv_qp *qp, struct rdma_conn_param *param)
{
	if (!qp)
		make_qp(end, side, queues);
	else
		param->qp_num = qp->qp_num;
}

static bool ask(struct end *end, const struct side *from, const struct side *to,
		const struct queues *queues, struct ibv_qp *qp)
{
	struct rdma_conn_param param = { .responder_resources = 16, .initiator_depth = 16 };
	struct sockaddr_in sin = address(to->addr, to->port);

	enter(from);
	end->chan = rdma_create_event_channel();
	MUST(end->chan && !rdma_create_id(end->chan, &end->id, NULL, RDMA_PS_TCP));
	if (!resolve(end, &sin))
		return false;
	if (rdma_resolve_route(end->id, RESOLVE_MS) ||
	    !expect(end, RDMA_CM_EVENT_ROUTE_RESOLVED))
		return false;
	set_qp(end, from, queues, qp, &param);
	return !rdma_connect(end->id, &param);
}

static bool answer(struct end *end, const struct side *side, const struct queues *queues,
		   struct ibv_qp *qp)
{
	struct rdma_conn_param param = { .responder_resources = 16, .initiator_depth = 16 };
	struct rdma_cm_event *event = event_of(side->chan, patience());

	if (!event || event->event != RDMA_CM_EVENT_CONNECT_REQUEST)
		return false;
	end->id = event->id;
	rdma_ack_cm_event(event);
	enter(side);
	end->chan = rdma_create_event_channel();
	MUST(end->chan && !rdma_migrate_id(end->id, end->chan));
	set_qp(end, side, queues, qp, &param);
	return !rdma_accept(end->id, &param);
}

/**
 * conn_open() - establish a connection
 * @ends: both ends to fill in; the first belongs to @from, which connects
 * @from: one side
 * @to: the other side, or the same
 * @queues: queues of both ends
 *
 * Context: user space.
 * Return: whether the connection is established.
 */
bool conn_open(struct end *ends, const struct side *from, const struct side *to,
	       const struct queues *queues)
{
	memset(ends, 0, 2 * sizeof(*ends));
	return ask(&ends[0], from, to, &queues[0], NULL) &&
	       answer(&ends[1], to, &queues[1], NULL) &&
	       expect(&ends[0], RDMA_CM_EVENT_ESTABLISHED) &&
	       expect(&ends[1], RDMA_CM_EVENT_ESTABLISHED);
}

/**
 * conn_again() - end a connection, and connect the same QPs once more
 * @ends: both ends, from conn_open(); they get new identifiers
 * @from: the side that connects
 * @to: the other side
 *
 * Context: user space.
 * Return: whether the connection is established.
 */
bool conn_again(struct end *ends, const struct side *from, const struct side *to)
{
	static const enum ibv_qp_state states[] = { IBV_QPS_RESET, IBV_QPS_INIT };
	struct ibv_qp *qps[2];
	size_t i;

	for (i = 0; i < 2; i++) {
		qps[i] = ends[i].id->qp;
		ends[i].id->qp = NULL;
		end_close(&ends[i]);
	}
	for (i = 0; i < 4; i++) {
		struct ibv_qp_attr attr = { .qp_state = states[i / 2] };

		MUST(!ibv_modify_qp(qps[i % 2], &attr, IBV_QP_STATE));
	}
	memset(ends, 0, 2 * sizeof(*ends));
	if (!ask(&ends[0], from, to, NULL, qps[0]) || !answer(&ends[1], to, NULL, qps[1]) ||
	    !expect(&ends[0], RDMA_CM_EVENT_ESTABLISHED) ||
	    !expect(&ends[1], RDMA_CM_EVENT_ESTABLISHED))
		return false;
	for (i = 0; i < 2; i++)
		ends[i].id->qp = qps[i];
	return true;
}

/**
 * end_close() - destroy one end, in any state
 * @end: the end; may be closed already
 *
 * Context: user space.
 */
void end_close(struct end *end)
{
	if (!end->id)
		return;
	if (end->id->qp)
		rdma_destroy_qp(end->id);
	MUST(!rdma_destroy_id(end->id));
	rdma_destroy_event_channel(end->chan);
	end->id = NULL;
}

/**
 * set_file_if_there() - write to a file, such as a setting in debugfs
 * @path: its path
 * @text: what to write, at once
 *
 * Context: user space.
 * Return: whether that succeeded.
 */
bool set_file_if_there(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY);
	bool is_set = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

	if (fd >= 0)
		close(fd);
	return is_set;
}

/**
 * set_file() - the same, of a file that must be there
 * @path: its path
 * @text: what to write
 *
 * Context: user space.
 */
void set_file(const char *path, const char *text)
{
	if (!set_file_if_there(path, text))
		fail("%s: %s", path, strerror(errno));
}

/**
 * rest() - pause between two polls
 *
 * The kernel may need this CPU, possibly the only one, to make progress.
 *
 * Context: user space.
 */
void rest(void)
{
	static unsigned int rounds;

	if (++rounds % 64)
		sched_yield();
	else
		usleep(50);
}

/**
 * poll_one() - poll for a completion
 * @cq: the completion queue
 * @wc: set to the completion
 * @seconds: timeout
 *
 * Context: user space.
 * Return: whether there was one.
 */
bool poll_one(struct ibv_cq *cq, struct ibv_wc *wc, double seconds)
{
	double end = now() + seconds;
	int n;

	do {
		n = ibv_poll_cq(cq, 1, wc);
		MUST(n >= 0);
		if (n)
			return true;
		rest();
	} while (now() < end);
	return false;
}

/**
 * complete() - wait for the next completion; fail if there is none
 * @cq: the completion queue
 * @wc: set to the completion
 *
 * Context: user space.
 */
void complete(struct ibv_cq *cq, struct ibv_wc *wc)
{
	if (!poll_one(cq, wc, patience()))
		fail("no completion");
}

/**
 * count_objects() - count the RDMA objects of the guest
 * @text: set to the output of rdma resource, the number of objects of each kind
 * @size: bytes of @text
 *
 * Context: user space.
 */
void count_objects(char *text, size_t size)
{
	FILE *f = popen("rdma resource show", "r");
	size_t n;

	MUST(f);
	n = fread(text, 1, size - 1, f);
	text[n] = 0;
	MUST(!pclose(f));
}

/**
 * rereg() - re-register a region, which stays the same object
 * @mr: the region, with its new protection domain; gets its new STag
 * @flags: what changes, %IBV_REREG_MR_CHANGE_*
 * @addr: its new address, if @flags has the translation
 * @length: its new length in bytes, likewise
 * @access: its new rights, if @flags has them
 *
 * By a system call: the stock providers have no function for it.
 *
 * Context: user space.
 * Return: 0 or the error.
 */
int rereg(struct ibv_mr *mr, int flags, __u64 addr, __u64 length, int access)
{
	struct {
		struct ib_uverbs_cmd_hdr hdr;
		struct ib_uverbs_rereg_mr cmd;
	} call = {
		.hdr = { IB_USER_VERBS_CMD_REREG_MR, sizeof(call) / 4, 2 },
	};
	struct ib_uverbs_rereg_mr_resp resp;

	call.cmd = (struct ib_uverbs_rereg_mr) {
		.response = (unsigned long)&resp, .mr_handle = mr->handle, .flags = flags,
		.pd_handle = mr->pd->handle,
		.start = addr, .length = length, .hca_va = addr, .access_flags = access,
	};
	if (write(mr->context->cmd_fd, &call, sizeof(call)) != sizeof(call))
		return errno;
	mr->lkey = resp.lkey;
	mr->rkey = resp.rkey;
	return 0;
}

/**
 * dmabuf_of() - make a dma-buf of memory of this process
 * @size: length in bytes, whole pages
 * @mem: set to the address of the memory, which is all 0; NULL: it is not needed
 *
 * Context: user space; the kernel has udmabuf.
 * Return: file descriptor of the dma-buf.
 */
int dmabuf_of(size_t size, __u8 **mem)
{
	struct udmabuf_create create = { .size = size };
	int dev = open("/dev/udmabuf", O_RDONLY);
	int fd;

	MUST(dev >= 0);
	create.memfd = memfd_create("dmabuf", MFD_ALLOW_SEALING);
	MUST(!ftruncate(create.memfd, size));
	MUST(!fcntl(create.memfd, F_ADD_SEALS, F_SEAL_SHRINK));
	fd = ioctl(dev, UDMABUF_CREATE, &create);
	MUST(fd >= 0);
	if (mem) {
		*mem = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, create.memfd, 0);
		MUST(*mem != MAP_FAILED);
	}
	MUST(!close(create.memfd) && !close(dev));
	return fd;
}

/**
 * reg_dmabuf() - register a part of a dma-buf
 * @mr: set to what is known of the region; not for functions of libibverbs, except as the region
 *	that a window is bound to
 * @pd: protection domain
 * @driver: driver id of the device
 * @fd: file descriptor of the dma-buf
 * @offset: bytes from its start
 * @length: length in bytes
 * @iova: tagged offset of the first byte
 * @access: rights, enum ibv_access_flags
 *
 * By a system call: the stock providers have no function for it.
 *
 * Context: user space.
 * Return: 0 or the error.
 */
int reg_dmabuf(struct ibv_mr *mr, struct ibv_pd *pd, __u16 driver, int fd, __u64 offset,
	       __u64 length, __u64 iova, int access)
{
	struct {
		struct ib_uverbs_ioctl_hdr hdr;
		struct ib_uverbs_attr attrs[9];
	} call = {
		.hdr = {
			.length = sizeof(call), .object_id = UVERBS_OBJECT_MR,
			.method_id = UVERBS_METHOD_REG_DMABUF_MR, .num_attrs = 9,
			.driver_id = driver,
		},
	};
	__u32 lkey, rkey;
	const struct ib_uverbs_attr attrs[9] = {
		{ UVERBS_ATTR_REG_DMABUF_MR_HANDLE, 0, 1, {}, { 0 } },
		{ UVERBS_ATTR_REG_DMABUF_MR_PD_HANDLE, 0, 1, {}, { pd->handle } },
		{ UVERBS_ATTR_REG_DMABUF_MR_OFFSET, 8, 1, {}, { offset } },
		{ UVERBS_ATTR_REG_DMABUF_MR_LENGTH, 8, 1, {}, { length } },
		{ UVERBS_ATTR_REG_DMABUF_MR_IOVA, 8, 1, {}, { iova } },
		{ UVERBS_ATTR_REG_DMABUF_MR_FD, 4, 1, {}, { fd } },
		{ UVERBS_ATTR_REG_DMABUF_MR_ACCESS_FLAGS, 4, 1, {}, { access } },
		{ UVERBS_ATTR_REG_DMABUF_MR_RESP_LKEY, 4, 1, {}, { (unsigned long)&lkey } },
		{ UVERBS_ATTR_REG_DMABUF_MR_RESP_RKEY, 4, 1, {}, { (unsigned long)&rkey } },
	};

	memcpy(call.attrs, attrs, sizeof(attrs));
	if (ioctl(pd->context->cmd_fd, RDMA_VERBS_IOCTL, &call))
		return errno;
	*mr = (struct ibv_mr) {
		.context = pd->context, .pd = pd, .addr = (void *)(unsigned long)iova,
		.length = length, .handle = call.attrs[0].data, .lkey = lkey, .rkey = rkey,
	};
	return 0;
}

/**
 * dereg_dmabuf() - undo reg_dmabuf()
 * @mr: the region
 *
 * Context: user space.
 * Return: 0 or the error.
 */
int dereg_dmabuf(const struct ibv_mr *mr)
{
	struct {
		struct ib_uverbs_cmd_hdr hdr;
		struct ib_uverbs_dereg_mr cmd;
	} call = {
		{ IB_USER_VERBS_CMD_DEREG_MR, sizeof(call) / 4, 0 }, { mr->handle },
	};

	return write(mr->context->cmd_fd, &call, sizeof(call)) == sizeof(call) ? 0 : errno;
}
