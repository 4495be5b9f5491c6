// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * abuse PART: a process that misuses system calls on purpose.
 *
 * PART selects what it does:
 *
 *   responses		calls whose response cannot be delivered, completely or in part
 *   mappings		maps rings with wrong keys, lengths and flags
 *   mmap-destroy	maps rings that another thread creates and destroys
 *   numbers		connects QPs by number while another thread creates and destroys them
 *   accept-destroy	destroys a QP while a connection is accepted with it
 *   memlock		exceeds the limit of locked memory
 *   files		names a QP by number in a process with many open files
 *   limits		creates as many PDs as the device allows, and one more
 *
 * A refused call must fail with the right errno and leave nothing behind. The caller checks that
 * the kernel log is clean. KIW_SECONDS: duration of races, 2 by default.
 */
#include "abuse.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/kiwarp-abi.h>
#include <rdma/rdma_user_ioctl_cmds.h>

#define PORT		7806
#define CLOSED_PORT	7807
#define NOBODY		65534
#define SLOTS		256
#define RESOLVE_MS	2000
/* Less than startup_ms: destroying a QP does not wait for the peer */
#define DESTROY_SECONDS	8
#define RINGS		4
#define LOCKABLE	(16 * PAGE)

static const char * const kind_names[KINDS] = { "context", "PD", "MR", "CQ", "SRQ", "QP" };

/**
 * struct make - a call that creates an object of any kind
 * @hdr: command and lengths in words
 * @get_context: CONTEXT; every command begins with the address of the response
 * @alloc_pd: PD
 * @mr: MR
 * @cq: CQ
 * @srq: SRQ
 * @qp: QP
 */
struct make {
	struct ib_uverbs_cmd_hdr hdr;
	union {
		struct ib_uverbs_get_context get_context;
		struct ib_uverbs_alloc_pd alloc_pd;
		struct ib_uverbs_reg_mr mr;
		struct ib_uverbs_create_cq cq;
		struct ib_uverbs_create_srq srq;
		struct ib_uverbs_create_qp qp;
	};
};

/*
 * struct call - how to create an object of one kind
 * @command: command of the write() ABI
 * @destroy: command that destroys the object; 0: none
 * @cmd: bytes of the command without its header
 * @core: bytes of the core's part of the response, which the driver's follows
 */
static const struct call {
	__u32 command;
	__u32 destroy;
	size_t cmd;
	size_t core;
} calls[KINDS] = {
	[CONTEXT] = { IB_USER_VERBS_CMD_GET_CONTEXT, 0, sizeof(struct ib_uverbs_get_context),
		      sizeof(struct ib_uverbs_get_context_resp) },
	[PD] = { IB_USER_VERBS_CMD_ALLOC_PD, IB_USER_VERBS_CMD_DEALLOC_PD,
		 sizeof(struct ib_uverbs_alloc_pd), sizeof(struct ib_uverbs_alloc_pd_resp) },
	[MR] = { IB_USER_VERBS_CMD_REG_MR, IB_USER_VERBS_CMD_DEREG_MR,
		 sizeof(struct ib_uverbs_reg_mr), sizeof(struct ib_uverbs_reg_mr_resp) },
	[CQ] = { IB_USER_VERBS_CMD_CREATE_CQ, IB_USER_VERBS_CMD_DESTROY_CQ,
		 sizeof(struct ib_uverbs_create_cq), sizeof(struct ib_uverbs_create_cq_resp) },
	[SRQ] = { IB_USER_VERBS_CMD_CREATE_SRQ, IB_USER_VERBS_CMD_DESTROY_SRQ,
		  sizeof(struct ib_uverbs_create_srq), sizeof(struct ib_uverbs_create_srq_resp) },
	[QP] = { IB_USER_VERBS_CMD_CREATE_QP, IB_USER_VERBS_CMD_DESTROY_QP,
		 sizeof(struct ib_uverbs_create_qp), sizeof(struct ib_uverbs_create_qp_resp) },
};

/* Room for any response, which begins with the handle of the object, or a context's event file */
union response {
	__u32 handle;
	__u64 words[32];
};

/**
 * struct world - state of the program
 * @sides: both hosts
 * @abi: that of the devices
 * @path: the device file of side a
 * @fd: a context of its own, opened without libibverbs
 * @async_fd: asynchronous events of that context
 * @pd: handle of a PD in @fd
 * @cq: handle of a CQ in @fd
 * @mem: a page to register
 * @keys: mmap keys of rings that may be destroyed already, for the thread that maps
 * @bytes: lengths of their mappings
 * @guess: likely number of the next QP
 * @over: tells the second thread to end
 * @count: number of successes and of attempts of the second thread
 */
static struct world {
	struct side sides[2];
	const struct abi *abi;
	char path[96];
	int fd;
	int async_fd;
	__u32 pd;
	__u32 cq;
	__u8 *mem;
	__u64 keys[RINGS];
	size_t bytes[RINGS];
	__u32 guess;
	bool over;
	unsigned long count[2];
} w;

static size_t response_bytes(enum kind kind)
{
	return calls[kind].core + w.abi->bytes[kind];
}

static size_t mapped(size_t bytes)
{
	return (bytes + PAGE - 1) / PAGE * PAGE;
}

static double race_seconds(void)
{
	const char *text = getenv("KIW_SECONDS");

	return text ? atof(text) : 2;
}

/* --- the write() ABI ------------------------------------------------------------ */

static void fill(struct make *make, enum kind kind)
{
	memset(make, 0, sizeof(*make));
	make->hdr.command = calls[kind].command;
	make->hdr.in_words = (sizeof(make->hdr) + calls[kind].cmd) / 4;
	make->hdr.out_words = response_bytes(kind) / 4;
	if (kind == MR) {
		make->mr.start = (unsigned long)w.mem;
		make->mr.hca_va = (unsigned long)w.mem;
		make->mr.length = PAGE;
		make->mr.pd_handle = w.pd;
		make->mr.access_flags = IBV_ACCESS_LOCAL_WRITE;
	} else if (kind == CQ) {
		make->cq.cqe = SLOTS;
		make->cq.comp_channel = -1;
	} else if (kind == SRQ) {
		make->srq.pd_handle = w.pd;
		make->srq.max_wr = SLOTS;
		make->srq.max_sge = 1;
	} else if (kind == QP) {
		make->qp.pd_handle = w.pd;
		make->qp.send_cq_handle = w.cq;
		make->qp.recv_cq_handle = w.cq;
		make->qp.max_send_wr = SLOTS;
		make->qp.max_recv_wr = SLOTS;
		make->qp.max_send_sge = 1;
		make->qp.max_recv_sge = 1;
		make->qp.qp_type = IBV_QPT_RC;
	}
}

/* Makes the call; returns its errno. @response may be an address that cannot be written to */
static int make(enum kind kind, int fd, void *response)
{
	struct make cmd;
	size_t bytes = sizeof(cmd.hdr) + calls[kind].cmd;

	fill(&cmd, kind);
	cmd.get_context.response = (unsigned long)response;
	return write(fd, &cmd, bytes) == (ssize_t)bytes ? 0 : errno;
}

static void destroy(enum kind kind, __u32 handle)
{
	__u64 response;
	struct {
		struct ib_uverbs_cmd_hdr hdr;
		union {
			struct ib_uverbs_destroy_qp qp;
			struct ib_uverbs_dealloc_pd pd;
			struct ib_uverbs_dereg_mr mr;
		};
	} cmd = { .hdr = { calls[kind].destroy, sizeof(cmd) / 4, 2 } };

	if (kind == PD || kind == MR) {
		cmd.hdr.in_words = (sizeof(cmd.hdr) + sizeof(handle)) / 4;
		cmd.hdr.out_words = 0;
		if (kind == PD)
			cmd.pd.pd_handle = handle;
		else
			cmd.mr.mr_handle = handle;
	} else {
		cmd.qp.response = (unsigned long)&response;
		cmd.qp.qp_handle = handle;
	}
	MUST(write(w.fd, &cmd, cmd.hdr.in_words * 4) == cmd.hdr.in_words * 4);
}

static __u32 must_make(enum kind kind, union response *response)
{
	int err = make(kind, w.fd, response);

	if (err)
		fail("%s: %s", kind_names[kind], strerror(err));
	return response->handle;
}

static struct ring ring_in(enum kind kind, const union response *response, bool is_sq)
{
	const __u8 *bytes = (const __u8 *)response;
	struct ring ring = w.abi->ring(kind, bytes + calls[kind].core, is_sq);

	ring.bytes = mapped(ring.bytes);
	return ring;
}

/* --- responses that cannot be delivered --------------------------------------------- */

/* Three pages: none, one to write to, one to read only */
static __u8 *three_pages(void)
{
	__u8 *p = pages(3 * PAGE);

	memset(p, 0, 3 * PAGE);
	MUST(!mprotect(p, PAGE, PROT_NONE) && !mprotect(p + 2 * PAGE, PAGE, PROT_READ));
	return p;
}

static int try(enum kind kind, void *response)
{
	int fd, err;

	if (kind != CONTEXT)
		return make(kind, w.fd, response);
	/* A file has one context at most */
	fd = open(w.path, O_RDWR | O_CLOEXEC);
	MUST(fd >= 0);
	err = make(kind, fd, response);
	close(fd);
	return err;
}

/* Tries addresses where the core's part of the response, the driver's or both cannot be written */
static void undeliverable(enum kind kind, __u8 *p)
{
	const struct {
		const char *what;
		__u8 *at;
	} places[] = {
		{ "at 8", (__u8 *)8 },
		{ "no page", p },
		{ "read-only", p + 2 * PAGE },
		{ "core's part without a page", p + PAGE - calls[kind].core },
		{ "driver's part without a page", p + 2 * PAGE - calls[kind].core },
		{ "the last word", p + 2 * PAGE - response_bytes(kind) + 4 },
		{ "an address of the kernel", (__u8 *)0xffff888000000000 },
	};
	size_t i;
	int err;

	for (i = 0; i < ARRAY_SIZE(places); i++) {
		if (!w.abi->bytes[kind] && !strncmp(places[i].what, "driver's", 8))
			continue;
		err = try(kind, places[i].at);
		if (err != EFAULT)
			fail("%s, response %s: %s", kind_names[kind], places[i].what,
			     strerror(err));
	}
}

/* The ioctl() ABI has an attribute for each part of a response */
static int ioctl_cq(void *cqe, void *driver)
{
	struct {
		struct ib_uverbs_ioctl_hdr hdr;
		struct ib_uverbs_attr attrs[6];
	} call = {
		.hdr = {
			.length = sizeof(call), .object_id = UVERBS_OBJECT_CQ,
			.method_id = UVERBS_METHOD_CQ_CREATE, .num_attrs = 6,
			.driver_id = w.abi->driver_id,
		},
		.attrs = {
			{ UVERBS_ATTR_CREATE_CQ_HANDLE, 0, 1, {}, { 0 } },
			{ UVERBS_ATTR_CREATE_CQ_CQE, 4, 1, {}, { SLOTS } },
			{ UVERBS_ATTR_CREATE_CQ_USER_HANDLE, 8, 1, {}, { 0 } },
			{ UVERBS_ATTR_CREATE_CQ_COMP_VECTOR, 4, 1, {}, { 0 } },
			{ UVERBS_ATTR_CREATE_CQ_RESP_CQE, 4, 1, {}, { (unsigned long)cqe } },
			{ UVERBS_ATTR_UHW_OUT, w.abi->bytes[CQ], 0, {},
			  { (unsigned long)driver } },
		},
	};

	return ioctl(w.fd, RDMA_VERBS_IOCTL, &call) ? errno : 0;
}

/* A QP with a shared receive queue, whose driver's part goes to @driver */
static int ioctl_qp(__u32 srq, void *driver)
{
	struct ib_uverbs_qp_cap cap = { .max_send_wr = SLOTS, .max_send_sge = 1 };
	__u32 number;
	struct {
		struct ib_uverbs_ioctl_hdr hdr;
		struct ib_uverbs_attr attrs[11];
	} call = {
		.hdr = {
			.length = sizeof(call), .object_id = UVERBS_OBJECT_QP,
			.method_id = UVERBS_METHOD_QP_CREATE, .num_attrs = 11,
			.driver_id = w.abi->driver_id,
		},
		.attrs = {
			{ UVERBS_ATTR_CREATE_QP_HANDLE, 0, 1, {}, { 0 } },
			{ UVERBS_ATTR_CREATE_QP_PD_HANDLE, 0, 1, {}, { w.pd } },
			{ UVERBS_ATTR_CREATE_QP_SEND_CQ_HANDLE, 0, 1, {}, { w.cq } },
			{ UVERBS_ATTR_CREATE_QP_RECV_CQ_HANDLE, 0, 1, {}, { w.cq } },
			{ UVERBS_ATTR_CREATE_QP_SRQ_HANDLE, 0, 1, {}, { srq } },
			{ UVERBS_ATTR_CREATE_QP_USER_HANDLE, 8, 1, {}, { 0 } },
			{ UVERBS_ATTR_CREATE_QP_CAP, sizeof(cap), 1, {}, { (unsigned long)&cap } },
			{ UVERBS_ATTR_CREATE_QP_TYPE, 8, 1, {}, { IBV_QPT_RC } },
			{ UVERBS_ATTR_CREATE_QP_RESP_CAP, sizeof(cap), 1, {},
			  { (unsigned long)&cap } },
			{ UVERBS_ATTR_CREATE_QP_RESP_QP_NUM, 4, 1, {},
			  { (unsigned long)&number } },
			{ UVERBS_ATTR_UHW_OUT, w.abi->bytes[QP], 0, {},
			  { (unsigned long)driver } },
		},
	};

	return ioctl(w.fd, RDMA_VERBS_IOCTL, &call) ? errno : 0;
}

/* Checks that no event is raised for a QP whose creation failed: it would outlive the QP. */
static void no_event_of_no_qp(__u8 *p)
{
	struct pollfd pfd = { .fd = w.async_fd, .events = POLLIN };
	union response srq;
	char event[64];
	int i;

	must_make(SRQ, &srq);
	for (i = 0; i < 20; i++)
		MUST(ioctl_qp(srq.handle, p) == EFAULT);
	if (poll(&pfd, 1, 0)) {
		MUST(read(w.async_fd, event, sizeof(event)) > 0);
		fail("event %u of a QP that was not made", *(__u32 *)(event + 8));
	}
	destroy(SRQ, srq.handle);
}

static void responses(void)
{
	char before[1024], after[1024];
	union response room;
	__u8 *p = three_pages();
	enum kind kind;
	int round, fd;

	count_objects(before, sizeof(before));
	for (round = 0; round < 20; round++) {
		for (kind = 0; kind < KINDS; kind++)
			undeliverable(kind, p);
		MUST(ioctl_cq(p, p + PAGE) == EFAULT);
		MUST(ioctl_cq(p + PAGE, p) == EFAULT);
		MUST(ioctl_cq(p + PAGE, p + 2 * PAGE) == EFAULT);
		no_event_of_no_qp(p);
	}
	count_objects(after, sizeof(after));
	if (strcmp(before, after))
		fail("there was\n%sand is\n%s", before, after);
	for (kind = PD; kind < KINDS; kind++)
		destroy(kind, must_make(kind, &room));
	fd = open(w.path, O_RDWR | O_CLOEXEC);
	MUST(fd >= 0 && !make(CONTEXT, fd, &room));
	close(fd);
	printf("%d rounds\n", round);
}

/* --- mappings -------------------------------------------------------------------- */

/* Tries to map; returns the errno. A successful mapping is undone */
static int map(int fd, size_t bytes, int flags, __u64 key)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, fd, key);

	if (p == MAP_FAILED)
		return errno;
	MUST(!munmap(p, bytes));
	return 0;
}

static void refused(const char *what, int err, int wanted)
{
	if (err != wanted)
		fail("%s: %s", what, strerror(err));
}

static void mappings(void)
{
	union response context, cq;
	__u8 *ring, *moved;
	size_t bytes;
	__u64 key;
	int other;

	must_make(CQ, &cq);
	bytes = ring_in(CQ, &cq, false).bytes;
	key = ring_in(CQ, &cq, false).key;
	MUST(bytes > PAGE && key != KIWARP_INVALID_KEY);
	MUST(!map(w.fd, bytes, MAP_SHARED, key));
	refused("a part", map(w.fd, PAGE, MAP_SHARED, key), EINVAL);
	refused("the rest", map(w.fd, bytes - PAGE, MAP_SHARED, key + PAGE), EINVAL);
	refused("a page more", map(w.fd, bytes + PAGE, MAP_SHARED, key), EINVAL);
	refused("private", map(w.fd, bytes, MAP_PRIVATE, key), EINVAL);
	refused("a page before", map(w.fd, bytes, MAP_SHARED, key - PAGE), EINVAL);
	refused("an unknown key", map(w.fd, bytes, MAP_SHARED, key + 1000 * PAGE), EINVAL);
	refused("key 0", map(w.fd, bytes, MAP_SHARED, 0), EINVAL);
	refused("the key that means none", map(w.fd, bytes, MAP_SHARED, KIWARP_INVALID_KEY),
		EINVAL);
	other = open(w.path, O_RDWR | O_CLOEXEC);
	MUST(other >= 0);
	refused("without a context", map(other, bytes, MAP_SHARED, key), EINVAL);
	MUST(!make(CONTEXT, other, &context));
	refused("another's key", map(other, bytes, MAP_SHARED, key), EINVAL);
	close(other);

	ring = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, w.fd, key);
	MUST(ring != MAP_FAILED);
	moved = mremap(ring, bytes, bytes + PAGE, MREMAP_MAYMOVE);
	MUST(moved == MAP_FAILED && errno == EFAULT);
	destroy(CQ, cq.handle);
	refused("a ring that is gone", map(w.fd, bytes, MAP_SHARED, key), EINVAL);
	memset(ring, 0x5a, bytes);
	/* The next owner of the memory would see it */
	must_make(CQ, &cq);
	moved = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, w.fd,
		     ring_in(CQ, &cq, false).key);
	MUST(moved != MAP_FAILED);
	memset(ring, 0xa5, bytes);
	/* But for the sizes that a ring of rxe's begins with */
	MUST(!moved[8] && !memcmp(moved + 8, moved + 9, bytes - 9));
	destroy(CQ, cq.handle);
	MUST(!munmap(ring, bytes) && !munmap(moved, bytes));
}

static void *mapper(void *unused)
{
	__u64 key;
	size_t bytes;
	__u8 *ring;
	int i;

	(void)unused;
	for (i = 0; !__atomic_load_n(&w.over, __ATOMIC_RELAXED); i = (i + 1) % RINGS) {
		key = __atomic_load_n(&w.keys[i], __ATOMIC_ACQUIRE);
		bytes = w.bytes[i];
		w.count[1]++;
		ring = key ? mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, w.fd, key)
			   : MAP_FAILED;
		if (ring == MAP_FAILED) {
			sched_yield();
			continue;
		}
		w.count[0]++;
		ring[0] = 1;
		sched_yield();
		memset(ring, 0xa5, bytes);
		MUST(!munmap(ring, bytes));
	}
	return NULL;
}

static void publish(int i, struct ring ring)
{
	w.bytes[i] = ring.bytes;
	__atomic_store_n(&w.keys[i], ring.key, __ATOMIC_RELEASE);
}

/* A key is reused at once, also for a ring of another kind */
static void mmap_destroy(void)
{
	union response srq, cq, qp;
	unsigned long rounds;
	pthread_t thread;
	double end;

	MUST(!pthread_create(&thread, NULL, mapper, NULL));
	end = now() + race_seconds();
	for (rounds = 0; now() < end; rounds++) {
		must_make(CQ, &cq);
		publish(0, ring_in(CQ, &cq, false));
		must_make(SRQ, &srq);
		publish(1, ring_in(SRQ, &srq, false));
		must_make(QP, &qp);
		publish(2, ring_in(QP, &qp, true));
		publish(3, ring_in(QP, &qp, false));
		sched_yield();
		destroy(CQ, cq.handle);
		destroy(SRQ, srq.handle);
		destroy(QP, qp.handle);
	}
	__atomic_store_n(&w.over, true, __ATOMIC_RELAXED);
	MUST(!pthread_join(thread, NULL));
	printf("%lu rounds, %lu mappings of %lu\n", rounds, w.count[0], w.count[1]);
	MUST(w.count[0]);
}

/* --- numbers of QPs ---------------------------------------------------------------- */

static bool await(struct rdma_event_channel *chan, enum rdma_cm_event_type type)
{
	struct rdma_cm_event *event;
	bool is_right;

	MUST(!rdma_get_cm_event(chan, &event));
	is_right = event->event == type;
	rdma_ack_cm_event(event);
	return is_right;
}

static struct rdma_cm_id *with_route(struct rdma_event_channel *chan)
{
	struct sockaddr_in sin = { .sin_family = AF_INET, .sin_port = htons(CLOSED_PORT) };
	struct rdma_cm_id *id;

	MUST(inet_pton(AF_INET, w.sides[1].addr, &sin.sin_addr) == 1);
	MUST(!rdma_create_id(chan, &id, NULL, RDMA_PS_TCP));
	while (rdma_resolve_addr(id, NULL, (void *)&sin, RESOLVE_MS) ||
	       !await(chan, RDMA_CM_EVENT_ADDR_RESOLVED))
		;
	MUST(!rdma_resolve_route(id, RESOLVE_MS));
	MUST(await(chan, RDMA_CM_EVENT_ROUTE_RESOLVED));
	return id;
}

/* Connects the QP that has the next number, to a port without a listener */
static void *guesser(void *unused)
{
	struct rdma_event_channel *chan;
	struct rdma_conn_param param = { };
	struct rdma_cm_id *id;

	(void)unused;
	MUST(!setns(w.sides[0].ns, CLONE_NEWNET));
	chan = rdma_create_event_channel();
	MUST(chan);
	while (!__atomic_load_n(&w.over, __ATOMIC_RELAXED)) {
		id = with_route(chan);
		w.count[1]++;
		param.qp_num = __atomic_load_n(&w.guess, __ATOMIC_RELAXED);
		if (!rdma_connect(id, &param)) {
			w.count[0]++;
			await(chan, RDMA_CM_EVENT_REJECTED);
		}
		MUST(!rdma_destroy_id(id));
	}
	return NULL;
}

static void numbers(void)
{
	struct queues queues = queues_of(&w.sides[0], 16);
	struct ibv_qp_init_attr attr = {
		.send_cq = queues.scq, .recv_cq = queues.rcq, .qp_type = IBV_QPT_RC,
		.cap = { 16, 16, 1, 1, 0 },
	};
	unsigned long rounds;
	pthread_t thread;
	struct ibv_qp *qp;
	double end;

	MUST(!pthread_create(&thread, NULL, guesser, NULL));
	end = now() + race_seconds();
	for (rounds = 0; now() < end; rounds++) {
		qp = ibv_create_qp(w.sides[0].pd, &attr);
		MUST(qp);
		sched_yield();
		/* Either the number of this QP, or that of the next one */
		__atomic_store_n(&w.guess, qp->qp_num + pick(2), __ATOMIC_RELAXED);
		if (pick(2))
			usleep(pick(2000));
		MUST(!ibv_destroy_qp(qp));
	}
	__atomic_store_n(&w.over, true, __ATOMIC_RELAXED);
	MUST(!pthread_join(thread, NULL));
	printf("%lu QPs, %lu connected of %lu tries\n", rounds, w.count[0], w.count[1]);
	MUST(w.count[0] && w.count[0] < w.count[1]);
	queues_close(&queues);
}

/* --- accept against destroy -------------------------------------------------------- */

static struct ibv_qp *victim;
static pthread_barrier_t barrier;

static void *destroyer(void *unused)
{
	double begin;

	(void)unused;
	for (;;) {
		pthread_barrier_wait(&barrier);
		if (w.over)
			return NULL;
		if (pick(2))
			usleep(pick(300));
		begin = now();
		MUST(!ibv_destroy_qp(victim));
		MUST(now() - begin < DESTROY_SECONDS);
		pthread_barrier_wait(&barrier);
	}
}

/* An id with a request of the peer, to be accepted with the QP that is destroyed */
static struct rdma_cm_id *next_request(void)
{
	struct rdma_cm_event *event;
	struct rdma_cm_id *id;

	do {
		MUST(!rdma_get_cm_event(w.sides[1].chan, &event));
		id = event->event == RDMA_CM_EVENT_CONNECT_REQUEST ? event->id : NULL;
		rdma_ack_cm_event(event);
	} while (!id);
	return id;
}

/* Revision 1, or 2 with peer-to-peer mode: then the accept waits for an RTR that never comes */
static int call_listener(void)
{
	static const char hellos[2][25] = {
		"MPA ID Req Frame\x40\x01\x00\x00",
		"MPA ID Req Frame\x50\x02\x00\x04\x80\x01\x40\x01",
	};
	int kind = pick(2), bytes = kind ? 24 : 20;
	struct sockaddr_in sin = { .sin_family = AF_INET, .sin_port = htons(PORT) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	MUST(inet_pton(AF_INET, w.sides[1].addr, &sin.sin_addr) == 1);
	MUST(fd >= 0 && !connect(fd, (void *)&sin, sizeof(sin)));
	MUST(write(fd, hellos[kind], bytes) == bytes);
	return fd;
}

static void accept_destroy(void)
{
	struct queues queues = queues_of(&w.sides[1], 16);
	struct ibv_qp_init_attr attr = {
		.send_cq = queues.scq, .recv_cq = queues.rcq, .qp_type = IBV_QPT_RC,
		.cap = { 16, 16, 1, 1, 0 },
	};
	struct rdma_conn_param param = { };
	unsigned long rounds;
	struct rdma_cm_id *id;
	pthread_t thread;
	double end;
	int fd;

	MUST(!pthread_barrier_init(&barrier, NULL, 2));
	MUST(!pthread_create(&thread, NULL, destroyer, NULL));
	MUST(!setns(w.sides[0].ns, CLONE_NEWNET));
	end = now() + race_seconds();
	for (rounds = 0; now() < end; rounds++) {
		fd = call_listener();
		id = next_request();
		victim = ibv_create_qp(w.sides[1].pd, &attr);
		MUST(victim);
		param.qp_num = victim->qp_num;
		pthread_barrier_wait(&barrier);
		if (!rdma_accept(id, &param))
			w.count[0]++;
		pthread_barrier_wait(&barrier);
		/* The order of the two ends is drawn, too */
		if (pick(2))
			close(fd);
		MUST(!rdma_destroy_id(id));
		close(fd);
	}
	w.over = true;
	pthread_barrier_wait(&barrier);
	MUST(!pthread_join(thread, NULL));
	printf("%lu rounds, %lu accepted\n", rounds, w.count[0]);
	queues_close(&queues);
}

/* --- locked memory ----------------------------------------------------------------- */

static void reg_limited(void)
{
	struct rlimit limit = { LOCKABLE, LOCKABLE };
	struct ibv_context *ctx;
	struct ibv_mr *mr, *more;
	struct ibv_pd *pd;
	__u8 *p = pages(2 * LOCKABLE);

	MUST(!setrlimit(RLIMIT_MEMLOCK, &limit));
	MUST(!setresuid(NOBODY, NOBODY, NOBODY));
	ctx = ibv_open_device(w.sides[0].listener->verbs->device);
	MUST(ctx);
	pd = ibv_alloc_pd(ctx);
	MUST(pd);
	MUST(!ibv_reg_mr(pd, p, LOCKABLE + PAGE, IBV_ACCESS_LOCAL_WRITE) && errno == ENOMEM);
	mr = ibv_reg_mr(pd, p, LOCKABLE, IBV_ACCESS_LOCAL_WRITE);
	MUST(mr);
	MUST(!ibv_reg_mr(pd, p + LOCKABLE, PAGE, IBV_ACCESS_LOCAL_WRITE) && errno == ENOMEM);
	/* Memory counts once per region, even if it is locked already */
	MUST(!ibv_reg_mr(pd, p, PAGE, IBV_ACCESS_LOCAL_WRITE) && errno == ENOMEM);
	MUST(!ibv_dereg_mr(mr));
	mr = ibv_reg_mr(pd, p, LOCKABLE / 2, IBV_ACCESS_LOCAL_WRITE);
	more = ibv_reg_mr(pd, p + LOCKABLE, LOCKABLE / 2, IBV_ACCESS_LOCAL_WRITE);
	MUST(mr && more);
	MUST(!ibv_dereg_mr(mr) && !ibv_dereg_mr(more));
}

/* --- many open files ------------------------------------------------------------------ */

#define FILES		0x100000
#define LOW_FILES	3000
#define TRIES		64

static struct ibv_qp *some_qp(struct ibv_pd *pd)
{
	struct ibv_cq *cq = ibv_create_cq(pd->context, 2, NULL, NULL, 0);
	struct ibv_qp_init_attr attr = {
		.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC, .cap = { 1, 1, 1, 1, 0 },
	};
	struct ibv_qp *qp = cq ? ibv_create_qp(pd, &attr) : NULL;

	MUST(qp);
	return qp;
}

/* Forks a child that keeps a file open until its parent exits */
static int fork_keeps(int fd)
{
	pid_t pid = fork();

	if (pid)
		return pid < 0;
	/* The parent exits as user nobody, and its death signal must kill this child. */
	MUST(!setresuid(NOBODY, NOBODY, NOBODY) && !prctl(PR_SET_PDEATHSIG, SIGKILL));
	MUST(fcntl(fd, F_GETFD) >= 0);
	for (;;)
		pause();
}

/* Seconds that the refusal of another file's QP number takes; the minimum of a few tries */
static double refusal(struct rdma_event_channel *chan, __u32 qpn)
{
	struct rdma_conn_param param = { .qp_num = qpn };
	struct rdma_cm_id *id;
	double took, least = 1e9;
	int i;

	for (i = 0; i < TRIES; i++) {
		id = with_route(chan);
		took = now();
		MUST(rdma_connect(id, &param) && errno == EINVAL);
		took = now() - took;
		if (took < least)
			least = took;
		MUST(!rdma_destroy_id(id));
	}
	return least;
}

static void must_connect(struct rdma_event_channel *chan, __u32 qpn)
{
	struct rdma_conn_param param = { .qp_num = qpn };
	struct rdma_cm_id *id = with_route(chan);

	MUST(!rdma_connect(id, &param));
	await(chan, RDMA_CM_EVENT_REJECTED);
	MUST(!rdma_destroy_id(id));
}

/*
 * A number is refused with interrupts off, so the time must not grow with the number of open files.
 * The file is found under the descriptor that it had when the QP was created, or among the first
 * 1024 files.
 */
static void look_for_files(void)
{
	struct ibv_context *verbs = w.sides[0].listener->verbs;
	struct ibv_context *other = ibv_open_device(verbs->device);
	struct rlimit limit = { FILES, FILES };
	struct rdma_event_channel *chan;
	__u32 mine, others;
	double few, wide;
	int i;

	MUST(other && !setns(w.sides[0].ns, CLONE_NEWNET) && !setrlimit(RLIMIT_NOFILE, &limit));
	mine = some_qp(w.sides[0].pd)->qp_num;
	others = some_qp(ibv_alloc_pd(other))->qp_num;
	/* This process has closed both files, except for one of them under a high descriptor. */
	MUST(dup2(verbs->cmd_fd, LOW_FILES + 1000) >= 0);
	MUST(dup2(0, verbs->cmd_fd) >= 0);
	MUST(!fork_keeps(other->cmd_fd) && dup2(0, other->cmd_fd) >= 0);
	MUST(!setresuid(NOBODY, NOBODY, NOBODY));
	chan = rdma_create_event_channel();
	MUST(chan);
	few = refusal(chan, others);
	MUST(dup2(0, FILES - 1) >= 0);
	wide = refusal(chan, others);
	printf("refused in %.6f s, with a large table in %.6f s\n", few, wide);
	MUST(wide < 10 * few);
	must_connect(chan, mine);
	for (i = 0; i < LOW_FILES; i++)
		MUST(dup(0) >= 0);
	refusal(chan, others);
	refusal(chan, mine);
	verbs->cmd_fd = LOW_FILES + 1000;
	mine = some_qp(w.sides[0].pd)->qp_num;
	must_connect(chan, mine);
	MUST(!fcntl(verbs->cmd_fd, F_SETFD, 0) && dup2(0, verbs->cmd_fd) >= 0);
	refusal(chan, mine);
}

static void files(void)
{
	pid_t pid = fork();
	int status;

	MUST(pid >= 0);
	if (!pid) {
		look_for_files();
		_exit(0);
	}
	MUST(waitpid(pid, &status, 0) == pid && !status);
}

/* Runs in a child, because dropped privileges cannot be regained */
static void memlock(void)
{
	pid_t pid = fork();
	int status;

	MUST(pid >= 0);
	if (!pid) {
		reg_limited();
		_exit(0);
	}
	MUST(waitpid(pid, &status, 0) == pid && !status);
}

/*
 * The limits on other objects are counted in the same way, but so many of those do not fit into a
 * guest.
 */
static void limits(void)
{
	union response pd;
	struct ibv_device_attr attr;
	int count, err = 0;

	MUST(!ibv_query_device(w.sides[0].listener->verbs, &attr));
	for (count = 0; count <= attr.max_pd; count++) {
		err = make(PD, w.fd, &pd);
		if (err)
			break;
	}
	refused("a PD too many", err, ENOMEM);
	/* The program has created some PDs before */
	if (count < attr.max_pd - 16)
		fail("%d PDs of %d", count, attr.max_pd);
	destroy(PD, w.pd);
	w.pd = must_make(PD, &pd);
	refused("a PD too many again", make(PD, w.fd, &pd), ENOMEM);
	printf("%d PDs\n", count);
}

static void open_world(void)
{
	const char *type = getenv("KIW_LINK_TYPE");
	union response context, pd, cq;

	w.abi = type && !strcmp(type, "kiwarp-ext") ? &rxe_abi : &siw_abi;
	side_open(&w.sides[0], "a", "10.77.0.1", PORT);
	side_open(&w.sides[1], "b", "10.77.0.2", PORT);
	snprintf(w.path, sizeof(w.path), "/dev/infiniband/%s",
		 w.sides[0].listener->verbs->device->dev_name);
	w.fd = open(w.path, O_RDWR | O_CLOEXEC);
	MUST(w.fd >= 0 && !make(CONTEXT, w.fd, &context));
	w.async_fd = context.handle;
	w.mem = pages(PAGE);
	w.pd = must_make(PD, &pd);
	w.cq = must_make(CQ, &cq);
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
	static const struct case_of cases[] = {
		{ "responses", responses }, { "mappings", mappings },
		{ "mmap-destroy", mmap_destroy }, { "numbers", numbers },
		{ "accept-destroy", accept_destroy }, { "memlock", memlock }, { "files", files },
		{ "limits", limits },
	};

	MUST(argc > 1);
	setlinebuf(stdout);
	open_world();
	run_case(cases, ARRAY_SIZE(cases), argv[1]);
	return 0;
}
