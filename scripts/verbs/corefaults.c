// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * corefaults CASE: triggers one fault of the kernel outside the driver; see
 * Documentation/kernel-faults.rst. The cases work with any iWARP driver. There is one device in
 * each of the network namespaces "a" and "b", called kiwa and kiwb.
 *
 * Status 0: the kernel does not have the fault. Status 1: it does, or the case could not be set
 * up. Some faults crash the kernel, so there is no status.
 */
#include "common.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <linux/netlink.h>
#include <linux/userfaultfd.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/rdma_netlink.h>
#include <rdma/rdma_user_ioctl_cmds.h>

#define ADDR_A		"10.77.0.1"
#define ADDR_B		"10.77.0.2"
#define PORT		7820
#define MUTE_PORT	7821
#define NOBODY		65534
#define RESOLVE_MS	5000
/* No QP has this number */
#define NO_QP		0xfffff0
#define CHILDREN	400
#define EVENTS		20000
#define RACE_S		20
#define ATTEMPTS	300
#define LISTENERS	64
#define BACKLOG		1024
#define STALL_S		3
/* A netdev and its device that come later */
#define NEW_NETDEV	"new0"
#define NEW_DEVICE	"newrdma"
#define NEW_ADDR	"10.80.0.1"
/* kmalloc-512 holds one per message, and a work entry of iw_cm */
#define CACHE_512	"kmalloc-512"
/* From rdma_user_cm.h, which cannot be included together with rdma_cma.h */
#define GET_EVENT	12
#define RESPONSE_BYTES	512

static struct side sides[2];

static struct sockaddr_in address(const char *addr, __u16 port)
{
	struct sockaddr_in sin = { .sin_family = AF_INET, .sin_port = htons(port) };

	MUST(inet_pton(AF_INET, addr, &sin.sin_addr) == 1);
	return sin;
}

static void enter(int side)
{
	MUST(!setns(sides[side].ns, CLONE_NEWNET));
}

static void open_sides(void)
{
	side_open(&sides[0], "a", ADDR_A, PORT);
	side_open(&sides[1], "b", ADDR_B, PORT);
}

/* On side b: a listener with which TCP completes the handshake, but which never sends anything */
static int mute_listener(void)
{
	struct sockaddr_in sin = address(ADDR_B, MUTE_PORT);
	int fd = socket(AF_INET, SOCK_STREAM, 0), on = 1;

	enter(1);
	close(fd);
	fd = socket(AF_INET, SOCK_STREAM, 0);
	MUST(fd >= 0 && !setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)));
	MUST(!bind(fd, (void *)&sin, sizeof(sin)) && !listen(fd, 16));
	return fd;
}

static struct ibv_qp *make_qp(int side)
{
	struct queues queues = queues_of(&sides[side], 16);
	struct ibv_qp_init_attr attr = {
		.send_cq = queues.scq, .recv_cq = queues.rcq, .qp_type = IBV_QPT_RC,
		.cap = { 16, 16, 1, 1, 0 },
	};
	struct ibv_qp *qp = ibv_create_qp(sides[side].pd, &attr);

	MUST(qp);
	return qp;
}

static void await(struct rdma_event_channel *chan, enum rdma_cm_event_type type)
{
	struct pollfd pfd = { .fd = chan->fd, .events = POLLIN };
	struct rdma_cm_event *event;

	if (poll(&pfd, 1, patience() * 1000) != 1)
		fail("no event %s", rdma_event_str(type));
	MUST(!rdma_get_cm_event(chan, &event));
	if (event->event != type)
		fail("event %s, not %s", rdma_event_str(event->event), rdma_event_str(type));
	rdma_ack_cm_event(event);
}

/* An identifier with a route to @port of side b; the caller is on side a */
static struct rdma_cm_id *with_route(struct rdma_event_channel *chan, __u16 port)
{
	struct sockaddr_in sin = address(ADDR_B, port);
	struct rdma_cm_id *id;

	MUST(!rdma_create_id(chan, &id, NULL, RDMA_PS_TCP));
	MUST(!rdma_resolve_addr(id, NULL, (void *)&sin, RESOLVE_MS));
	await(chan, RDMA_CM_EVENT_ADDR_RESOLVED);
	MUST(!rdma_resolve_route(id, RESOLVE_MS));
	await(chan, RDMA_CM_EVENT_ROUTE_RESOLVED);
	return id;
}

/* An identifier that connects to a peer that never replies; it names a QP by number */
static struct rdma_cm_id *connecting(__u32 qp_num)
{
	struct rdma_event_channel *chan = rdma_create_event_channel();
	struct rdma_conn_param param = { .qp_num = qp_num };
	struct rdma_cm_id *id;

	MUST(chan);
	mute_listener();
	enter(0);
	id = with_route(chan, MUTE_PORT);
	MUST(!rdma_connect(id, &param));
	return id;
}

/*
 * Reject, or accept, while the identifier is in CONN_SENT: the call is refused, but iw_cm takes
 * the connect for finished, and the next call finds an impossible state.
 */
static void reject_connecting(void)
{
	struct rdma_cm_id *id;

	open_sides();
	id = connecting(make_qp(0)->qp_num);
	MUST(rdma_reject(id, NULL, 0) && errno == EINVAL);
	MUST(!rdma_destroy_id(id));
}

static void accept_connecting(void)
{
	struct rdma_conn_param param = { };
	struct rdma_cm_id *id;

	open_sides();
	param.qp_num = make_qp(0)->qp_num;
	id = connecting(param.qp_num);
	MUST(rdma_accept(id, &param));
	rdma_disconnect(id);
	rdma_destroy_id(id);
}

/* A peer that has sent a Request (revision 2, peer-to-peer, RTR by Read), but not its RTR */
static int raw_caller(void)
{
	static const char request[] = "MPA ID Req Frame\x50\x02\x00\x04\x80\x01\x40\x01";
	struct sockaddr_in sin = address(ADDR_B, PORT);
	int fd;

	enter(0);
	fd = socket(AF_INET, SOCK_STREAM, 0);
	MUST(fd >= 0 && !connect(fd, (void *)&sin, sizeof(sin)));
	MUST(write(fd, request, sizeof(request) - 1) == sizeof(request) - 1);
	return fd;
}

static struct rdma_cm_id *request_of(const struct side *side)
{
	struct rdma_cm_event *event;
	struct rdma_cm_id *id;

	MUST(!rdma_get_cm_event(side->chan, &event));
	MUST(event->event == RDMA_CM_EVENT_CONNECT_REQUEST);
	id = event->id;
	rdma_ack_cm_event(event);
	return id;
}

static void await_reply(int fd)
{
	struct pollfd pfd = { .fd = fd, .events = POLLIN };
	char reply[64];

	MUST(poll(&pfd, 1, patience() * 1000) == 1);
	MUST(read(fd, reply, sizeof(reply)) > 0);
}

/* Ends the stream of raw_caller(), which also ends the wait for ESTABLISHED */
static void end_raw(int fd)
{
	MUST(!shutdown(fd, SHUT_RDWR));
	close(fd);
	sleep(2);
}

/* Rejects after accepting, before ESTABLISHED: to iw_cm the request has not been answered yet */
static void reject_accepted(void)
{
	struct rdma_conn_param param = { .responder_resources = 1, .initiator_depth = 1 };
	struct rdma_cm_id *id;
	int fd;

	open_sides();
	fd = raw_caller();
	id = request_of(&sides[1]);
	param.qp_num = make_qp(1)->qp_num;
	MUST(!rdma_accept(id, &param));
	rdma_reject(id, NULL, 0);
	await_reply(fd);
	end_raw(fd);
	MUST(!rdma_destroy_id(id));
}

static void accept_twice(void)
{
	struct rdma_conn_param param = { .responder_resources = 1, .initiator_depth = 1 };
	struct rdma_cm_id *id;
	int fd;

	open_sides();
	fd = raw_caller();
	id = request_of(&sides[1]);
	param.qp_num = make_qp(1)->qp_num;
	MUST(!rdma_accept(id, &param));
	param.qp_num = NO_QP;
	MUST(rdma_accept(id, &param));
	await_reply(fd);
	end_raw(fd);
	MUST(!rdma_destroy_id(id));
}

/* Accepts with two QPs: iw_cm never drops its reference to the first, so destroying that hangs */
static void accept_other(void)
{
	struct rdma_conn_param param = { .responder_resources = 1, .initiator_depth = 1 };
	struct ibv_qp *first, *second;
	struct rdma_cm_id *id;
	int fd;

	open_sides();
	fd = raw_caller();
	id = request_of(&sides[1]);
	first = make_qp(1);
	second = make_qp(1);
	param.qp_num = first->qp_num;
	MUST(!rdma_accept(id, &param));
	param.qp_num = second->qp_num;
	rdma_accept(id, &param);
	await_reply(fd);
	end_raw(fd);
	rdma_destroy_id(id);
	alarm(patience());
	MUST(!ibv_destroy_qp(first));
	MUST(!ibv_destroy_qp(second));
}

/* A process of another user connects a QP by its number */
static void foreign_qp(void)
{
	__u32 victim;
	int status;
	pid_t pid;

	open_sides();
	victim = make_qp(0)->qp_num;
	pid = fork();
	if (!pid) {
		struct rdma_event_channel *chan;
		struct rdma_conn_param param = { .qp_num = victim };
		struct rdma_cm_id *id;

		mute_listener();
		enter(0);
		MUST(!setresuid(NOBODY, NOBODY, NOBODY));
		chan = rdma_create_event_channel();
		MUST(chan);
		id = with_route(chan, MUTE_PORT);
		_exit(rdma_connect(id, &param) ? 0 : 42);
	}
	MUST(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
	if (WEXITSTATUS(status) == 42)
		fail("uid %d has connected QP %u of uid 0", NOBODY, victim);
	MUST(!WEXITSTATUS(status));
}

/* Resolves without a neighbour entry, over a veth, where the answer arrives at once */
static void neighbour(void)
{
	struct rdma_event_channel *chan = rdma_create_event_channel();
	struct sockaddr_in sin = address(ADDR_B, PORT);
	double begin, longest = 0;
	struct rdma_cm_id *id;
	int i;

	open_sides();
	enter(0);
	for (i = 0; i < 10; i++) {
		MUST(!system("ip neigh flush all"));
		MUST(!rdma_create_id(chan, &id, NULL, RDMA_PS_TCP));
		begin = now();
		MUST(!rdma_resolve_addr(id, NULL, (void *)&sin, RESOLVE_MS));
		await(chan, RDMA_CM_EVENT_ADDR_RESOLVED);
		if (now() - begin > longest)
			longest = now() - begin;
		MUST(!rdma_destroy_id(id));
	}
	printf("longest of %d: %.3f s\n", i, longest);
	if (longest > RESOLVE_MS / 2000.0)
		fail("an answer was missed until the time was over");
}

static int ask_context(int fd)
{
	__u64 resp[2], support;
	__u32 vectors;
	struct {
		struct ib_uverbs_ioctl_hdr hdr;
		struct ib_uverbs_attr attrs[3];
	} call = {
		.hdr = {
			.length = sizeof(call), .object_id = UVERBS_OBJECT_DEVICE,
			.method_id = UVERBS_METHOD_GET_CONTEXT, .num_attrs = 3,
			.driver_id = RDMA_DRIVER_SIW,
		},
		.attrs = {
			{ UVERBS_ATTR_GET_CONTEXT_NUM_COMP_VECTORS, 4, 1, {},
			  { (unsigned long)&vectors } },
			{ UVERBS_ATTR_GET_CONTEXT_CORE_SUPPORT, 8, 1, {},
			  { (unsigned long)&support } },
			{ UVERBS_ATTR_UHW_OUT, sizeof(resp), 0, {}, { (unsigned long)resp } },
		},
	};

	return ioctl(fd, RDMA_VERBS_IOCTL, &call) ? errno : 0;
}

/* Live objects of a cache; what SLUB keeps per CPU counts as live */
static int objects(const char *cache)
{
	FILE *f = fopen("/proc/slabinfo", "r");
	char line[256], name[32];
	int n = -1, live;

	MUST(f);
	while (n < 0 && fgets(line, sizeof(line), f))
		if (sscanf(line, "%31s %d", name, &live) == 2 && !strcmp(name, cache))
			n = live;
	fclose(f);
	MUST(n > 0);
	return n;
}

/* A second context for a file is refused, but a reference to the calling task is leaked */
static void context_leak(void)
{
	char path[96];
	int i, fd, before, after;
	pid_t pid;

	open_sides();
	snprintf(path, sizeof(path), "/dev/infiniband/%s",
		 sides[0].listener->verbs->device->dev_name);
	before = objects("task_struct");
	for (i = 0; i < CHILDREN; i++) {
		pid = fork();
		if (!pid) {
			fd = open(path, O_RDWR);
			MUST(fd >= 0 && !ask_context(fd));
			_exit(!ask_context(fd));
		}
		MUST(waitpid(pid, &fd, 0) == pid && fd == 0);
	}
	sleep(2);
	after = objects("task_struct");
	printf("tasks before %d, after %d\n", before, after);
	if (after - before > CHILDREN / 2)
		fail("%d tasks more after %d processes", after - before, CHILDREN);
}

/*
 * A page that is never faulted in, into which ucma has to write an event: ucma waits for the page
 * with a lock held that its event handler needs, and iw_cm's only worker runs that handler.
 */
static void *get_event(void *arg)
{
	struct rdma_event_channel *chan = arg;
	struct {
		__u32 cmd;
		__u16 in, out;
		__u64 response;
	} call = { GET_EVENT, sizeof(call.response), RESPONSE_BYTES, 0 };
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register range = { .mode = UFFDIO_REGISTER_MODE_MISSING };
	void *page = pages(PAGE);
	int fd = syscall(SYS_userfaultfd, O_CLOEXEC);

	MUST(fd >= 0 && !ioctl(fd, UFFDIO_API, &api));
	range.range.start = (unsigned long)page;
	range.range.len = PAGE;
	MUST(!ioctl(fd, UFFDIO_REGISTER, &range));
	call.response = (unsigned long)page;
	if (write(chan->fd, &call, sizeof(call)) < 0)
		return NULL;
	return page;
}

/* One process hangs in GET_EVENT; then two others, with files of their own, try to connect */
static void get_event_stall(void)
{
	struct pollfd pfd = { .events = POLLIN };
	struct rdma_conn_param param = { };
	struct rdma_event_channel *chan;
	struct rdma_cm_id *id, *other;
	struct queues queues[2];
	struct end ends[2];
	pthread_t thread;
	pid_t pid;
	int fd, i;

	open_sides();
	/* The attacker has two identifiers on one file: one event is there, another will follow */
	pid = fork();
	if (!pid) {
		fd = mute_listener();
		enter(0);
		/* rdma_ucm serves only the process that has opened the file. */
		chan = rdma_create_event_channel();
		MUST(chan);
		pfd.fd = chan->fd;
		id = with_route(chan, MUTE_PORT);
		other = with_route(chan, MUTE_PORT);
		param.qp_num = make_qp(0)->qp_num;
		MUST(!rdma_connect(id, &param));
		param.qp_num = make_qp(0)->qp_num;
		MUST(!rdma_connect(other, &param));
		close(accept(fd, NULL, NULL));
		MUST(poll(&pfd, 1, patience() * 1000) == 1);
		MUST(!pthread_create(&thread, NULL, get_event, chan));
		sleep(1);
		close(accept(fd, NULL, NULL));
		pause();
	}
	sleep(4);
	if (waitpid(pid, NULL, WNOHANG))
		fail("the process that was to stop in GET_EVENT has ended: is there userfaultfd?");
	for (i = 0; i < 2; i++)
		queues[i] = queues_of(&sides[i], 16);
	if (!conn_open(ends, &sides[0], &sides[1], queues)) {
		kill(pid, SIGKILL);
		fail("a process that stops in GET_EVENT stops all connections of the host");
	}
	kill(pid, SIGKILL);
	printf("others connect\n");
}

/* Arms a CQ again and again without reading its events, each of which takes 56 bytes */
static void comp_events(void)
{
	struct ibv_comp_channel *channel;
	struct queues queues[2];
	struct ibv_send_wr wr = { .opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED };
	struct ibv_send_wr *bad;
	struct end ends[2];
	struct ibv_wc wc;
	int i, before, after;

	open_sides();
	for (i = 0; i < 2; i++)
		queues[i] = queues_of(&sides[i], 16);
	MUST(!ibv_destroy_cq(queues[0].scq));
	channel = ibv_create_comp_channel(sides[0].listener->verbs);
	queues[0].scq = ibv_create_cq(sides[0].listener->verbs, 32, NULL, channel, 0);
	MUST(queues[0].scq && conn_open(ends, &sides[0], &sides[1], queues));
	before = objects("kmalloc-64");
	for (i = 0; i < EVENTS; i++) {
		MUST(!ibv_req_notify_cq(queues[0].scq, 0));
		MUST(!ibv_post_send(ends[0].id->qp, &wr, &bad));
		complete(queues[0].scq, &wc);
		MUST(wc.status == IBV_WC_SUCCESS);
	}
	after = objects("kmalloc-64");
	printf("kmalloc-64 before %d, after %d\n", before, after);
	if (after - before > EVENTS / 2)
		fail("%d objects more for %d events that nobody has read", after - before, EVENTS);
}

/* An unprivileged process registers as the iWARP port mapper, and the kernel answers */
static void port_mapper(void)
{
	struct {
		struct nlmsghdr hdr;
		struct nlattr attr;
		__u16 version, pad;
	} hello = {
		.hdr = { sizeof(hello), RDMA_NL_GET_TYPE(RDMA_NL_IWCM, RDMA_NL_IWPM_HELLO),
			 NLM_F_REQUEST, 1, getpid() },
		.attr = { NLA_HDRLEN + 2, IWPM_NLA_HELLO_ABI_VERSION },
		.version = IWPM_UABI_VERSION,
	};
	struct sockaddr_nl self = { .nl_family = AF_NETLINK, .nl_pid = getpid() };
	int fd = socket(AF_NETLINK, SOCK_RAW, NETLINK_RDMA);
	struct pollfd pfd = { .fd = fd, .events = POLLIN };
	struct nlmsghdr answer[64];

	MUST(!setresuid(NOBODY, NOBODY, NOBODY));
	MUST(fd >= 0 && !bind(fd, (void *)&self, sizeof(self)));
	MUST(send(fd, &hello, sizeof(hello), 0) == sizeof(hello));
	while (poll(&pfd, 1, 2000) == 1) {
		MUST(recv(fd, answer, sizeof(answer), 0) > 0);
		printf("answer of type %#x\n", answer->nlmsg_type);
		if (answer->nlmsg_type == hello.hdr.nlmsg_type)
			fail("uid %d is the port mapper of this host now", NOBODY);
	}
}

/* Become nobody, on @side. */
static void drop(int side)
{
	enter(side);
	MUST(!setresuid(NOBODY, NOBODY, NOBODY));
}

/* A child that runs @fn and stays; returns when it has written to the pipe that it is given. */
static pid_t companion(void (*fn)(int ready))
{
	int fds[2];
	char byte;
	pid_t pid;

	MUST(!pipe(fds));
	pid = fork();
	MUST(pid >= 0);
	if (!pid) {
		fn(fds[1]);
		_exit(0);
	}
	close(fds[1]);
	if (read(fds[0], &byte, 1) != 1)
		pid = 0;
	close(fds[0]);
	return pid;
}

static void end_companion(pid_t pid)
{
	kill(pid, SIGKILL);
	MUST(waitpid(pid, NULL, 0) == pid);
}

static struct rdma_cm_id *bound_to(const char *addr, __u16 port)
{
	struct rdma_event_channel *chan = rdma_create_event_channel();
	struct sockaddr_in sin = address(addr, port);
	struct rdma_cm_id *id;

	MUST(chan && !rdma_create_id(chan, &id, NULL, RDMA_PS_TCP));
	MUST(!rdma_bind_addr(id, (void *)&sin));
	return id;
}

static int tcp_bound_to(__u16 port, const char *netdev)
{
	struct sockaddr_in sin = address("0.0.0.0", port);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	MUST(fd >= 0);
	MUST(!netdev || !setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, netdev, strlen(netdev)));
	MUST(!bind(fd, (void *)&sin, sizeof(sin)) && !listen(fd, 1));
	return fd;
}

/* A listener for all devices, and TCP has its port on the netdev whose device is to come. */
static void listen_in_the_way(int ready)
{
	drop(0);
	MUST(!rdma_listen(bound_to("0.0.0.0", MUTE_PORT), 1));
	tcp_bound_to(MUTE_PORT, NEW_NETDEV);
	MUST(write(ready, "", 1) == 1);
	pause();
}

/* rdma_cm listens on the new device for each such listener. If one fails, so does the device. */
static void new_device(void)
{
	struct rdma_event_channel *chan = rdma_create_event_channel();
	struct sockaddr_in sin = address(NEW_ADDR, PORT);
	const char *type = getenv("KIW_LINK_TYPE");
	struct rdma_cm_id *id;
	char command[128];
	int failed;
	pid_t pid;

	open_sides();
	enter(0);
	MUST(!system("ip link add " NEW_NETDEV " type dummy && ip addr add " NEW_ADDR "/24 dev "
		     NEW_NETDEV " && ip link set " NEW_NETDEV " up"));
	pid = companion(listen_in_the_way);
	MUST(pid);
	snprintf(command, sizeof(command),
		 "rdma link add " NEW_DEVICE " type %s netdev " NEW_NETDEV, type ? type : "siw");
	MUST(!system(command));
	MUST(!rdma_create_id(chan, &id, NULL, RDMA_PS_TCP));
	failed = rdma_bind_addr(id, (void *)&sin) ? errno : 0;
	MUST(!rdma_destroy_id(id));
	end_companion(pid);
	MUST(!system("rdma link delete " NEW_DEVICE " && ip link del " NEW_NETDEV));
	if (failed)
		fail("uid %d keeps all from the new device: %s", NOBODY, strerror(failed));
}

/* Each fails, because TCP has the port. */
static void listen_in_vain(int ready)
{
	struct rdma_event_channel *chan;
	struct rdma_cm_id *id;
	int i;

	drop(0);
	tcp_bound_to(MUTE_PORT, NULL);
	for (i = 0; i < ATTEMPTS; i++) {
		id = bound_to("0.0.0.0", MUTE_PORT);
		MUST(rdma_listen(id, 1) && errno == EADDRINUSE);
		chan = id->channel;
		MUST(!rdma_destroy_id(id));
		rdma_destroy_event_channel(chan);
	}
	MUST(write(ready, "", 1) == 1);
}

static int count_lines(const char *command)
{
	FILE *f = popen(command, "r");
	int n = -1;

	MUST(f && fscanf(f, "%d", &n) == 1);
	pclose(f);
	return n;
}

static void listen_log(void)
{
	static const char lines[] = "dmesg | grep -c 'cma_listen_on_dev, error'";
	int before = count_lines(lines), more;

	open_sides();
	MUST(companion(listen_in_vain));
	more = count_lines(lines) - before;
	printf("%d lines for %d attempts\n", more, ATTEMPTS);
	if (more > ATTEMPTS / 2)
		fail("uid %d can fill the log of the kernel", NOBODY);
}

static void listen_often(int ready)
{
	int i;

	drop(0);
	for (i = 0; i < LISTENERS; i++)
		MUST(!rdma_listen(bound_to(ADDR_A, MUTE_PORT + i), BACKLOG));
	MUST(write(ready, "", 1) == 1);
	pause();
}

/* iw_cm has an object for each connection that a backlog allows, before anybody has called. */
static void listen_entries(void)
{
	int before, after;
	pid_t pid;

	open_sides();
	before = objects(CACHE_512);
	pid = companion(listen_often);
	MUST(pid);
	after = objects(CACHE_512);
	end_companion(pid);
	printf(CACHE_512 " before %d, after %d\n", before, after);
	if (after - before > LISTENERS * BACKLOG / 2)
		fail("%d objects more for %d listeners", after - before, LISTENERS);
}

/* What a port mapper learned of its peers, which the kernel keeps until somebody connects */
static void remote_infos(int ready)
{
	struct {
		struct nlmsghdr hdr;
		struct nlattr seq_attr;
		__u32 seq;
		struct {
			struct nlattr attr;
			__u16 family, rest[63];
		} addrs[4];
		struct nlattr err_attr;
		__u16 err, pad;
	} info = {
		.hdr = { sizeof(info), RDMA_NL_GET_TYPE(RDMA_NL_IWCM, RDMA_NL_IWPM_REMOTE_INFO),
			 NLM_F_REQUEST, 1, getpid() },
		.seq_attr = { NLA_HDRLEN + 4, IWPM_NLA_RQUERY_MAPPING_SEQ },
		.err_attr = { NLA_HDRLEN + 2, IWPM_NLA_RQUERY_MAPPING_ERR },
	};
	int fd = socket(AF_NETLINK, SOCK_RAW, NETLINK_RDMA), i;
	char answer[4096];

	for (i = 0; i < 4; i++) {
		info.addrs[i].attr.nla_len = sizeof(info.addrs[i]);
		info.addrs[i].attr.nla_type = IWPM_NLA_RQUERY_LOCAL_ADDR + i;
		info.addrs[i].family = AF_INET;
	}
	MUST(fd >= 0 && !setresuid(NOBODY, NOBODY, NOBODY));
	for (i = 0; i < EVENTS; i++) {
		MUST(send(fd, &info, sizeof(info), 0) == sizeof(info));
		MUST(recv(fd, answer, sizeof(answer), 0) > 0);
	}
	MUST(write(ready, "", 1) == 1);
}

static void mapper_memory(void)
{
	int before = objects(CACHE_512), after;

	MUST(companion(remote_infos));
	after = objects(CACHE_512);
	printf(CACHE_512 " before %d, after %d\n", before, after);
	if (after - before > EVENTS / 2)
		fail("%d objects more for %d messages", after - before, EVENTS);
}

static void open_namespaces(void)
{
	sides[0].ns = open("/run/netns/a", O_RDONLY | O_CLOEXEC);
	sides[1].ns = open("/run/netns/b", O_RDONLY | O_CLOEXEC);
	MUST(sides[0].ns >= 0 && sides[1].ns >= 0);
}

/* Member of the group that the kernel asks for a port mapper, and silent */
static void mapper_of_no_words(int ready)
{
	struct sockaddr_nl self = {
		.nl_family = AF_NETLINK, .nl_groups = 1 << (RDMA_NL_GROUP_IWPM - 1),
	};
	int fd = socket(AF_NETLINK, SOCK_RAW, NETLINK_RDMA);

	MUST(fd >= 0 && !setresuid(NOBODY, NOBODY, NOBODY));
	if (bind(fd, (void *)&self, sizeof(self)))
		return;
	MUST(write(ready, "", 1) == 1);
	pause();
}

static void listen_at_length(int ready)
{
	struct rdma_cm_id *id;

	drop(0);
	id = bound_to("0.0.0.0", MUTE_PORT);
	MUST(write(ready, "", 1) == 1);
	rdma_listen(id, 1);
	pause();
}

/*
 * The kernel waits 10 s for the answer of each port mapper, for a listener on all devices with the
 * lock of rdma_cm held. Nothing may have listened or connected before.
 */
static void mapper_stall(void)
{
	pid_t mapper = companion(mapper_of_no_words), listener;
	double begin;

	open_namespaces();
	if (!mapper) {
		printf("uid %d cannot join\n", NOBODY);
		return;
	}
	listener = companion(listen_at_length);
	MUST(listener);
	sleep(1);
	enter(1);
	begin = now();
	bound_to(ADDR_B, PORT);
	begin = now() - begin;
	end_companion(mapper);
	end_companion(listener);
	printf("bound after %.3f s\n", begin);
	if (begin > STALL_S)
		fail("uid %d stops rdma_cm", NOBODY);
}

static void *bind_in_vain(void *arg)
{
	struct sockaddr_in taken = address(ADDR_A, PORT);
	struct rdma_cm_id *id = arg;
	time_t end = time(NULL) + RACE_S;

	while (time(NULL) < end)
		MUST(rdma_bind_addr(id, (void *)&taken) && errno == EADDRINUSE);
	return NULL;
}

/*
 * A bind that fails because the port is in use sets the identifier's device for a moment. Another
 * thread that asks for QP attributes at that moment continues when the device is no longer set.
 * This takes two CPUs.
 */
static void bind_and_ask(void)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT };
	struct rdma_event_channel *chan = rdma_create_event_channel();
	struct rdma_cm_id *id;
	pthread_t thread;
	int mask, had = 0;

	MUST(chan && !rdma_create_id(chan, &id, NULL, RDMA_PS_TCP));
	MUST(!pthread_create(&thread, NULL, bind_in_vain, id));
	while (pthread_tryjoin_np(thread, NULL))
		had += !rdma_init_qp_attr(id, &attr, &mask);
	printf("attributes %d times\n", had);
}

/* The thread that the kernel kills keeps a mutex, so the process does not end. */
static void bound_attributes(void)
{
	time_t end = time(NULL) + 3 * RACE_S;
	int status;
	pid_t pid;

	/* These listen at PORT. */
	open_sides();
	enter(0);
	pid = fork();
	MUST(pid >= 0);
	if (!pid) {
		bind_and_ask();
		_exit(0);
	}
	while (!waitpid(pid, &status, WNOHANG)) {
		if (time(NULL) > end)
			fail("a thread was killed in the kernel");
		usleep(10000);
	}
	MUST(!status);
}

/**
 * main() - see the head of the file
 * @argc: number of arguments
 * @argv: arguments
 *
 * Context: user space.
 * Return: 0, or 1 when the fault is there.
 */
int main(int argc, char **argv)
{
	static const struct case_of cases[] = {
		{ "reject-connecting", reject_connecting },
		{ "accept-connecting", accept_connecting },
		{ "reject-accepted", reject_accepted },
		{ "accept-twice", accept_twice },
		{ "accept-other", accept_other },
		{ "foreign-qp", foreign_qp },
		{ "neighbour", neighbour },
		{ "context-leak", context_leak },
		{ "get-event-stall", get_event_stall },
		{ "comp-events", comp_events },
		{ "port-mapper", port_mapper },
		{ "bound-attributes", bound_attributes },
		{ "new-device", new_device },
		{ "listen-log", listen_log },
		{ "listen-entries", listen_entries },
		{ "mapper-stall", mapper_stall },
		{ "mapper-memory", mapper_memory },
	};

	MUST(argc > 1);
	setlinebuf(stdout);
	run_case(cases, ARRAY_SIZE(cases), argv[1]);
	return 0;
}
