// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * hostile TYPE refused | hostile TYPE SECONDS | hostile TYPE inputs: a process that misuses its
 * mapped rings on purpose. TYPE is the link type of the devices, which decides the format of the
 * rings.
 *
 * refused: malformed entries, one connection each, must complete with LOC_QP_OP under their own
 * id, those that bind a window to what they may not, with MW_BIND_ERR; so must malformed receives,
 * and those whose memory is wrong with another error; operations that the ABI has no system call
 * for are refused.
 *
 * SECONDS: a second thread writes random values at random times to the send, receive, shared
 * receive and completion rings, to the heads of rings, and to the arming words. Meanwhile the first
 * thread rings doorbells, posts, arms and resizes queues, takes events, and makes a new connection
 * whenever the last one has ended. It also replaces windows and regions while work requests bind
 * them. There must be events in spite of all that. Memory without granted rights
 * must not change, whatever STags and addresses are in the rings. The caller checks that the kernel
 * log is clean and that others are not disturbed.
 *
 * inputs: executes what standard input says (scripts/fuzz/rings.py), each input on a new
 * connection with new windows, and answers each with "done". The "random" choices of a line are
 * those that its octets say.
 *
 * The program finds the rings by their lengths among the mappings of the device file, so each
 * kind of ring has a different length.
 */
#include "hostile.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <rdma/ib_user_verbs.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#define RINGS		16
/* Octets of a line of an input */
#define LINE		256

/**
 * struct world - state of the program
 * @sides: both hosts
 * @channel: completion channel of each host, of all its queues
 * @queues: queues of each host
 * @ends: ends of the connection
 * @format: of the rings
 * @rings: mapped rings of all queues
 * @count: number of @rings
 * @found: how many of them the library has mapped
 * @room: memory; all of it except OPEN must not change
 * @mr: regions of @room, of side a and of side b
 * @mw: windows of side a and of side b, each fourth of another protection domain; or NULL
 * @stag: their STags, which the second thread reads
 * @other: protection domain of the memory OTHER_PD
 * @receiver: which side the receive is for that is to be written
 * @busy: number of regions that could not be deregistered
 * @replaced: number of rings that another one of the same size has replaced
 * @events: number of events of completion queues
 * @lock: held while rings are written to or created
 * @over: tells the second thread to end
 * @writes: number of writes of the second thread
 */
struct world {
	struct side sides[2];
	struct ibv_comp_channel *channel[2];
	struct queues queues[2];
	struct end ends[2];
	const struct format *format;
	struct ring rings[RINGS];
	int count;
	int found;
	__u8 *room[ROOMS];
	struct ibv_mr *mr[2][ROOMS];
	struct ibv_mw *mw[2][WINDOWS];
	__u32 stag[2][WINDOWS];
	struct ibv_pd *other[2];
	int receiver;
	unsigned long busy;
	unsigned long replaced;
	unsigned long events;
	pthread_mutex_t lock;
	bool over;
	unsigned long writes;
};

static struct world w = { .lock = PTHREAD_MUTEX_INITIALIZER };

static enum ring_kind kind_of(size_t bytes)
{
	int kind;

	for (kind = 0; kind < NO_RING; kind++)
		if (bytes == (w.format->bytes[kind] + PAGE - 1) / PAGE * PAGE)
			return kind;
	return NO_RING;
}

/* Adjacent mappings of rings are listed separately, because their offsets are not consecutive */
static void find_rings(void)
{
	const char *first_device = w.sides[0].listener->verbs->device->dev_name;
	FILE *maps = fopen("/proc/self/maps", "r");
	unsigned long first, end;
	char line[512];
	bool seen[NO_RING + 1] = { false };

	MUST(maps);
	w.count = 0;
	while (fgets(line, sizeof(line), maps)) {
		if (!strstr(line, "uverbs") || sscanf(line, "%lx-%lx", &first, &end) != 2)
			continue;
		MUST(w.count < RINGS);
		w.rings[w.count] = (struct ring) {
			.kind = kind_of(end - first), .who = !strstr(line, first_device),
			.at = (void *)first, .bytes = end - first,
		};
		seen[w.rings[w.count++].kind] = true;
	}
	fclose(maps);
	w.found = w.count;
	MUST(seen[SQ] && seen[RQ] && seen[SRQ] && seen[CQ] && !seen[NO_RING]);
}

static struct queues make_queues(int who, bool has_srq)
{
	const struct side *side = &w.sides[who];
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = SRQ_DEPTH, .max_sge = MAX_SGE } };
	struct ibv_context *ctx = side->listener->verbs;
	struct queues queues = {
		.scq = ibv_create_cq(ctx, CQ_DEPTH, NULL, w.channel[who], 0),
		.rcq = ibv_create_cq(ctx, CQ_DEPTH, NULL, w.channel[who], 0),
		.srq = has_srq ? ibv_create_srq(side->pd, &attr) : NULL,
		.send_depth = SQ_DEPTH, .recv_depth = RQ_DEPTH,
	};

	MUST(queues.scq && queues.rcq && (queues.srq || !has_srq));
	return queues;
}

static void begin(void)
{
	int i;

	for (i = 0; i < 2; i++)
		w.queues[i] = make_queues(i, i);
	MUST(conn_open(w.ends, &w.sides[0], &w.sides[1], w.queues));
	find_rings();
}

static void end_all(void)
{
	int i;

	for (; w.count > w.found; w.count--)
		MUST(!munmap(w.rings[w.count - 1].at, w.rings[w.count - 1].bytes));
	for (i = 0; i < 2; i++)
		end_close(&w.ends[i]);
	for (i = 0; i < 2; i++)
		queues_close(&w.queues[i]);
}

/* Windows may be bound to all of it, and those of READ_ONLY and OTHER_PD allow no writing. */
static void register_room(int who, enum room room)
{
	const int rights[ROOMS] = {
		[OPEN] = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ |
			 IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC,
		[READ_ONLY] = IBV_ACCESS_REMOTE_READ,
		[OTHER_PD] = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE,
	};

	w.mr[who][room] = reg(room == OTHER_PD ? w.other[who] : w.sides[who].pd, w.room[room],
			      ROOM, rights[room] | IBV_ACCESS_MW_BIND);
}

static void make_window(int who, int number)
{
	struct ibv_mw *mw = ibv_alloc_mw(number % 4 ? w.sides[who].pd : w.other[who],
					 number % 2 ? IBV_MW_TYPE_1 : IBV_MW_TYPE_2);

	MUST(mw);
	w.mw[who][number] = mw;
	__atomic_store_n(&w.stag[who][number], mw->rkey, __ATOMIC_RELAXED);
}

static void open_world(void)
{
	int i, room;

	side_open(&w.sides[0], "a", "10.77.0.1", 7802);
	side_open(&w.sides[1], "b", "10.77.0.2", 7802);
	for (i = 0; i < 2; i++) {
		w.other[i] = ibv_alloc_pd(w.sides[i].listener->verbs);
		w.channel[i] = ibv_create_comp_channel(w.sides[i].listener->verbs);
		MUST(w.other[i] && w.channel[i]);
		MUST(!fcntl(w.channel[i]->fd, F_SETFL, O_NONBLOCK));
	}
	for (room = 0; room < ROOMS; room++) {
		w.room[room] = pages(ROOM);
		memset(w.room[room], 0x60 + room, ROOM);
		for (i = 0; i < 2 && room != UNKNOWN; i++)
			register_room(i, room);
	}
	for (i = 0; w.format->has_windows && i < 2 * WINDOWS; i++)
		make_window(i % 2, i / 2);
}

static void untouched(void)
{
	int room, i;

	for (room = READ_ONLY; room < ROOMS; room++)
		for (i = 0; i < ROOM; i++)
			if (w.room[room][i] != 0x60 + room)
				fail("octet %d of memory %d was changed", i, room);
}

/* System calls */

/**
 * command() - make a system call of uverbs by write()
 * @ctx: the device
 * @cmd: begins with struct ib_uverbs_cmd_hdr, which is set, and, if there is an answer, with its
 *	address
 * @number: of the command
 * @bytes: length of @cmd
 * @answer_bytes: length of the answer
 *
 * Context: user space.
 * Return: 0 or the error.
 */
int command(struct ibv_context *ctx, void *cmd, __u32 number, size_t bytes, size_t answer_bytes)
{
	struct ib_uverbs_cmd_hdr *hdr = cmd;

	hdr->command = number;
	hdr->in_words = bytes / 4;
	hdr->out_words = answer_bytes / 4;
	return write(ctx->cmd_fd, cmd, bytes) < 0 ? errno : 0;
}

static int call(struct ibv_context *ctx, void *cmd, __u32 number, size_t bytes)
{
	return command(ctx, cmd, number, bytes, 8);
}

/**
 * struct post_send - the command of ib_user_verbs.h with one work request
 * @hdr: command and length
 * @response: address of the response
 * @qp_handle: handle of the QP
 * @wr_count: number of @wr
 * @sge_count: number of SGEs, none
 * @wqe_size: bytes of @wr
 * @wr: the work request
 */
struct post_send {
	struct ib_uverbs_cmd_hdr hdr;
	__u64 response;
	__u32 qp_handle;
	__u32 wr_count;
	__u32 sge_count;
	__u32 wqe_size;
	struct ib_uverbs_send_wr wr;
};

static int doorbell(const struct ibv_qp *qp, __u32 count)
{
	struct post_send cmd = { .qp_handle = qp->handle, .wr_count = count };
	__u32 response[4];

	cmd.response = (unsigned long)response;
	cmd.wqe_size = sizeof(cmd.wr);
	return call(qp->context, &cmd, IB_USER_VERBS_CMD_POST_SEND,
		    count ? sizeof(cmd) : offsetof(struct post_send, wr));
}

/* Any value but 0 means that only completions that the peer has solicited count. */
static void arm(const struct ibv_cq *cq)
{
	struct {
		struct ib_uverbs_cmd_hdr hdr;
		struct ib_uverbs_req_notify_cq core;
	} cmd = { .core = { .cq_handle = cq->handle, .solicited_only = pick(2) ? pick(4) : 0 } };

	MUST(!command(cq->context, &cmd, IB_USER_VERBS_CMD_REQ_NOTIFY_CQ, sizeof(cmd), 0));
}

static void take_events(int who)
{
	struct ibv_cq *cq;
	void *context;

	while (!ibv_get_cq_event(w.channel[who], &cq, &context)) {
		ibv_ack_cq_events(cq, 1);
		w.events++;
	}
	MUST(errno == EAGAIN);
}

static void calls_are_refused(void)
{
	static const __u32 commands[] = {
		IB_USER_VERBS_CMD_POST_RECV, IB_USER_VERBS_CMD_POST_SRQ_RECV,
		IB_USER_VERBS_CMD_POLL_CQ, IB_USER_VERBS_CMD_REQ_NOTIFY_CQ,
	};
	const size_t count = ARRAY_SIZE(commands) - w.format->arms_by_call;
	const struct ibv_qp *qp;
	__u64 cmd[64];
	size_t i;
	int ret;

	begin();
	qp = w.ends[0].id->qp;
	ret = doorbell(qp, 1);
	if (ret != EOPNOTSUPP)
		fail("POST_SEND of a work request: %s", strerror(ret));
	for (i = 0; i < count; i++) {
		memset(cmd, 0, sizeof(cmd));
		cmd[1] = (unsigned long)cmd;
		ret = call(qp->context, cmd, commands[i], 64);
		if (ret != EOPNOTSUPP)
			fail("command %u: %s", commands[i], strerror(ret));
	}
	MUST(!doorbell(qp, 0));
	end_all();
}

/**
 * another_ring() - let the second thread write to a ring that has replaced another one, too
 * @ctx: the device
 * @kind: kind of ring; as long as the first of its kind
 * @offset: for mmap()
 *
 * It is unmapped with the connection. If there are many already, it is not mapped.
 *
 * Context: user space; the first thread.
 */
void another_ring(struct ibv_context *ctx, enum ring_kind kind, __u64 offset)
{
	size_t bytes = (w.format->bytes[kind] + PAGE - 1) / PAGE * PAGE;
	void *at;

	w.replaced++;
	if (w.count == RINGS)
		return;
	at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, ctx->cmd_fd, offset);
	MUST(at != MAP_FAILED);
	pthread_mutex_lock(&w.lock);
	w.rings[w.count++] = (struct ring) {
		.kind = kind, .who = ctx != w.sides[0].listener->verbs, .at = at, .bytes = bytes,
	};
	pthread_mutex_unlock(&w.lock);
}

/* Entries that are malformed */

static struct ring *ring_of(enum ring_kind kind, int number)
{
	int i;

	for (i = 0; i < w.count; i++)
		if (w.rings[i].kind == kind && !number--)
			return &w.rings[i];
	fail("no ring %d", kind);
}

/**
 * ring_of_end() - find a ring of an end
 * @kind: kind of ring; if there are several, the newest
 * @qp: the QP of the end
 *
 * Context: user space; the first thread.
 * Return: the ring.
 */
struct ring *ring_of_end(enum ring_kind kind, const struct ibv_qp *qp)
{
	int who = qp->context != w.sides[0].listener->verbs, i;

	for (i = w.count - 1; i >= 0; i--)
		if (w.rings[i].kind == kind && w.rings[i].who == who)
			return &w.rings[i];
	fail("end %d has no ring %d", who, kind);
}

/**
 * refuse_as() - post a bad entry on a new connection; it must complete with an error
 * @put: writes it to the first slot of a send ring
 * @what: a description
 * @status: the error
 *
 * Context: user space.
 */
void refuse_as(void (*put)(void *ring), const char *what, enum ibv_wc_status status)
{
	const struct ibv_qp *qp;
	struct ibv_wc wc;

	begin();
	qp = w.ends[0].id->qp;
	put(ring_of_end(SQ, qp)->at);
	MUST(!doorbell(qp, 0));
	complete(w.queues[0].scq, &wc);
	if (wc.wr_id != ID || wc.status != status)
		fail("%s: completion of %#llx, status %d", what, (unsigned long long)wc.wr_id,
		     wc.status);
	MUST(!ibv_poll_cq(w.queues[0].scq, 1, &wc));
	end_all();
}

/**
 * refuse() - post a malformed entry; it must complete with LOC_QP_OP
 * @put: writes it to the first slot of a send ring
 * @what: a description
 *
 * Context: user space.
 */
void refuse(void (*put)(void *ring), const char *what)
{
	refuse_as(put, what, IBV_WC_LOC_QP_OP_ERR);
}

/* What @from sends takes the first receive of the other end. The initiator has to send first. */
static void send_to_receiver(int from)
{
	struct ibv_sge sge = { (unsigned long)w.room[OPEN], PAYLOAD, w.mr[from][OPEN]->lkey };
	struct ibv_send_wr first = { .opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED };
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND, .sg_list = &sge, .num_sge = 1 }, *bad;
	struct ibv_wc wc;

	MUST(!ibv_post_send(w.ends[0].id->qp, &first, &bad));
	complete(w.queues[0].scq, &wc);
	MUST(!wc.status);
	MUST(!ibv_post_send(w.ends[from].id->qp, &wr, &bad));
}

static void refuse_recv_of(int who, void (*put)(void *ring), const char *what,
			   enum ibv_wc_status status)
{
	struct ibv_wc wc;

	begin();
	w.receiver = who;
	put(ring_of(who ? SRQ : RQ, 0)->at);
	send_to_receiver(!who);
	complete(w.queues[who].rcq, &wc);
	if (wc.wr_id != ID || wc.status != status)
		fail("%s, end %d: completion of %#llx, status %d", what, who,
		     (unsigned long long)wc.wr_id, wc.status);
	MUST(!ibv_poll_cq(w.queues[who].rcq, 1, &wc));
	end_all();
}

/*
 * A Send must complete the bad receive with this error. Once the receive is in the receive ring of
 * end 0, once in the shared one of end 1.
 */
static void refuse_recv(void (*put)(void *ring), const char *what, enum ibv_wc_status status)
{
	refuse_recv_of(0, put, what, status);
	refuse_recv_of(1, put, what, status);
}

struct wrong_recv wrong_recv;

/**
 * refuse_recvs() - post bad receives, each on new connections
 * @put: writes a receive to the first slot of a receive ring, as @wrong_recv says
 * @counts: numbers of SGEs that are too large
 *
 * The last one is good.
 *
 * Context: user space.
 */
void refuse_recvs(void (*put)(void *ring), const __u32 counts[BAD_COUNTS])
{
	struct wrong_recv *wrong = &wrong_recv;
	int i;

	for (i = 0; i < BAD_COUNTS; i++) {
		*wrong = (struct wrong_recv) { .num_sge = counts[i], .length = PAYLOAD };
		refuse_recv(put, "too many SGEs", IBV_WC_LOC_QP_OP_ERR);
	}
	*wrong = (struct wrong_recv) { .num_sge = 2, .length = 0xffffffff };
	refuse_recv(put, "lengths that wrap", IBV_WC_LOC_QP_OP_ERR);
	*wrong = (struct wrong_recv) { .num_sge = 1, .length = PAYLOAD, .lkey = 1 };
	refuse_recv(put, "the wrong key", IBV_WC_LOC_PROT_ERR);
	*wrong = (struct wrong_recv) {
		.num_sge = 1, .length = PAYLOAD, .after = ROOM - PAYLOAD + 1,
	};
	refuse_recv(put, "beyond the region", IBV_WC_LOC_PROT_ERR);
	*wrong = (struct wrong_recv) { .num_sge = 1, .length = PAYLOAD - 1 };
	refuse_recv(put, "too short", IBV_WC_LOC_LEN_ERR);
	*wrong = (struct wrong_recv) { .num_sge = 1, .length = PAYLOAD };
	refuse_recv(put, "none", IBV_WC_SUCCESS);
}

/* The second thread: it has random numbers of its own, or the octets of a line */

static __u64 random_state = 1;

/**
 * struct choices - the octets of a line, from which choices are made
 * @is_in_use: choices are made from here
 * @count: number of octets
 * @next: number of octets that were used
 * @octets: the octets
 */
static struct choices {
	bool is_in_use;
	size_t count;
	size_t next;
	__u8 octets[LINE];
} choices;

/* One octet for each choice of few, more for others; zeros when there are no more */
static __u64 choose(__u64 count)
{
	__u64 value = 0, range = 1;

	while (range < count && range < 1ULL << 56) {
		value = value << 8;
		if (choices.next < choices.count)
			value |= choices.octets[choices.next++];
		range <<= 8;
	}
	return value;
}

/**
 * any() - choose a random number, in the second thread
 * @count: number of values to choose from, not 0
 *
 * Context: user space.
 * Return: 0..@count - 1.
 */
__u32 any(__u32 count)
{
	if (choices.is_in_use)
		return choose(count) % count;
	random_state = random_state * 6364136223846793005ULL + 1442695040888963407ULL;
	return (__u32)(random_state >> 33) % count;
}

/**
 * any_slot() - choose a slot of a ring
 * @next: the slot that is most likely to be the next one that the kernel takes
 * @count: number of slots
 *
 * Context: user space.
 * Return: in the inputs, which are short, mostly @next; else any.
 */
__u32 any_slot(__u32 next, __u32 count)
{
	return choices.is_in_use && any(4) ? next % count : any(count);
}

static __u64 any_word(void)
{
	return choices.is_in_use ? choose(~0ULL) : random_state;
}

/**
 * bad_number() - choose a number that is likely to be at a limit, or an address or an STag
 *
 * Context: user space.
 * Return: the number.
 */
__u64 bad_number(void)
{
	const __u64 numbers[] = {
		0, ~0ULL, 1ULL << any(64), (1ULL << any(64)) - 1, any_word(),
		(unsigned long)w.room[any(ROOMS)] + any(ROOM),
		0xffff888000000000ULL + any(1 << 30),
		w.mr[any(2)][any(UNKNOWN)]->rkey + (any(4) ? 0 : any(256)),
	};

	return numbers[any(ARRAY_SIZE(numbers))];
}

/* The end whose ring is written to */
static int owner;

/* Mostly OPEN; what is UNKNOWN has no STag. */
static enum room likely_room(void)
{
	return any(4) ? OPEN : any(ROOMS);
}

static const struct ibv_mr *likely_mr(int who, enum room room)
{
	return w.mr[any(8) ? who : !who][room == UNKNOWN ? OPEN : room];
}

static __u64 likely_address(enum room room)
{
	return (unsigned long)w.room[any(8) ? room : any(ROOMS)] + any(PAGE);
}

/**
 * likely_sge() - choose an SGE that is nearly valid
 *
 * Context: user space.
 * Return: the SGE.
 */
struct ibv_sge likely_sge(void)
{
	static const __u32 lengths[] = { 0, 1, 16, 1000, PAGE, 40000, ROOM, ROOM + 1, 0x7fffffff };
	enum room room = likely_room();
	struct ibv_sge sge = {
		.addr = likely_address(room),
		.length = lengths[any(any(8) ? 6 : 9)],
		.lkey = likely_mr(owner, room)->lkey,
	};

	if (!any(16))
		sge.lkey = bad_number();
	return sge;
}

/**
 * likely_target() - choose memory of the peer
 * @rkey: set to its STag
 *
 * Context: user space.
 * Return: its address.
 */
__u64 likely_target(__u32 *rkey)
{
	enum room room = likely_room();

	if (w.format->has_windows && !any(4))
		*rkey = likely_window(false);
	else
		*rkey = likely_mr(!owner, room)->rkey;
	return likely_address(room);
}

/**
 * likely_window() - choose a window, with one of a few keys
 * @is_own: mostly of the end whose ring is written to, not of the other one
 *
 * Context: user space.
 * Return: its STag; the window may be gone.
 */
__u32 likely_window(bool is_own)
{
	int who = is_own == !!any(8) ? owner : !owner;

	return __atomic_load_n(&w.stag[who][any(WINDOWS)], __ATOMIC_RELAXED) ^ any(4);
}

/**
 * window_stag() - get the STag of a window of end 0
 * @number: which one; odd ones are of type 1
 * @is_foreign: one of another protection domain
 *
 * Context: user space.
 * Return: the STag.
 */
__u32 window_stag(int number, bool is_foreign)
{
	return w.stag[0][is_foreign ? 0 : number];
}

/**
 * region_stag() - get the STag of a region of end 0
 * @room: its memory
 *
 * Context: user space.
 * Return: the STag.
 */
__u32 region_stag(enum room room)
{
	return w.mr[0][room]->lkey;
}

/**
 * open_room() - get memory that both ends may access
 * @lkey: set to the STag of end 0
 * @rkey: set to the STag of end 1
 *
 * Context: user space.
 * Return: its address.
 */
__u64 open_room(__u32 *lkey, __u32 *rkey)
{
	*lkey = w.mr[0][OPEN]->lkey;
	*rkey = w.mr[1][OPEN]->rkey;
	return (unsigned long)w.room[OPEN];
}

/**
 * receiver_room() - get memory that the end may access that a receive is for
 * @lkey: set to its STag
 *
 * Context: user space.
 * Return: its address.
 */
__u64 receiver_room(__u32 *lkey)
{
	*lkey = w.mr[w.receiver][OPEN]->lkey;
	return (unsigned long)w.room[OPEN];
}

/* In an input, mostly one of the rings whose entries say most */
static struct ring *any_ring(void)
{
	if (choices.is_in_use && any(4))
		return ring_of_end(SQ, w.ends[any(2)].id->qp);
	return &w.rings[any(w.count)];
}

static void spoil(void)
{
	struct ring *ring = any_ring();
	__u64 *words = (void *)ring->at;

	w.writes++;
	owner = ring->who;
	if (!any(4)) {
		__atomic_store_n(&words[any(ring->bytes / 8)], bad_number(), __ATOMIC_RELAXED);
		return;
	}
	if (!any(4096)) {
		memset(ring->at, any(3) ? 0 : any(256), ring->bytes);
		return;
	}
	w.format->spoil(ring);
}

static void *second_thread(void *unused)
{
	int i;

	(void)unused;
	while (!__atomic_load_n(&w.over, __ATOMIC_RELAXED)) {
		pthread_mutex_lock(&w.lock);
		for (i = 0; i < 200; i++) {
			spoil();
			/* Written now and not later */
			__atomic_signal_fence(__ATOMIC_SEQ_CST);
		}
		pthread_mutex_unlock(&w.lock);
		sched_yield();
	}
	return NULL;
}

/* The first thread */

static void post(int who)
{
	struct ibv_sge sge = { (unsigned long)w.room[OPEN], 1 + pick(3000), w.mr[who][OPEN]->lkey };

	w.format->post(w.ends[who].id->qp, sge, w.mr[!who][OPEN]->rkey);
	doorbell(w.ends[who].id->qp, 0);
}

/* While the engines may bind it */
static void replace_window(int who, int number)
{
	MUST(!ibv_dealloc_mw(w.mw[who][number]));
	make_window(who, number);
}

/* A window may be bound to it, and then it stays. The second thread reads its STag. */
static void replace_region(int who)
{
	int ret;

	pthread_mutex_lock(&w.lock);
	ret = ibv_dereg_mr(w.mr[who][OPEN]);
	MUST(!ret || ret == EBUSY);
	if (ret)
		w.busy++;
	else
		register_room(who, OPEN);
	pthread_mutex_unlock(&w.lock);
}

static void post_and_arm(int who)
{
	const struct queues *queues = &w.queues[who];

	post(who);
	if (w.format->arms_by_call && !pick(4))
		arm(pick(2) ? queues->scq : queues->rcq);
	take_events(who);
}

static bool is_dead(int who)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	MUST(!ibv_query_qp(w.ends[who].id->qp, &attr, IBV_QP_STATE, &init));
	return attr.qp_state == IBV_QPS_ERR;
}

static void attack(double seconds)
{
	int connections = 0;
	pthread_t thread;
	double end;
	int i;

	begin();
	MUST(!pthread_create(&thread, NULL, second_thread, NULL));
	end = now() + seconds;
	while (now() < end || connections < 3) {
		for (i = 0; i < 50; i++)
			post_and_arm(pick(2));
		if (w.format->has_windows) {
			replace_window(pick(2), pick(WINDOWS));
			replace_region(pick(2));
		}
		if (w.format->resize)
			w.format->resize(&w.queues[pick(2)]);
		if (is_dead(0) || is_dead(1)) {
			connections++;
			pthread_mutex_lock(&w.lock);
			end_all();
			begin();
			pthread_mutex_unlock(&w.lock);
		}
	}
	__atomic_store_n(&w.over, true, __ATOMIC_RELAXED);
	MUST(!pthread_join(thread, NULL));
	end_all();
	untouched();
	printf("%d connections, %lu writes, %lu busy regions, %lu rings replaced, %lu events\n",
	       connections, w.writes, w.busy, w.replaced, w.events);
	if (w.format->resize && !w.replaced)
		fail("no ring was replaced");
	if (!w.events)
		fail("there was no event");
}

/* Inputs */

static int octet(const char *digits)
{
	unsigned int value;

	return sscanf(digits, "%2x", &value) == 1 ? (int)value : -1;
}

static void take_octets(const char *digits)
{
	size_t count = strspn(digits, "0123456789abcdef") / 2, i;

	MUST(count <= LINE);
	for (i = 0; i < count; i++)
		choices.octets[i] = octet(digits + 2 * i);
	choices.count = count;
	choices.next = 0;
}

/*
 * Makes memory, windows and connection as they were at the beginning. A region to which a window is
 * bound cannot be replaced, so windows come first.
 */
static void again(void)
{
	int i;

	end_all();
	for (i = 0; w.format->has_windows && i < 2 * WINDOWS; i++)
		replace_window(i % 2, i / 2);
	for (i = 0; i < 2; i++)
		replace_region(i);
	memset(w.room[OPEN], 0x60 + OPEN, ROOM);
	begin();
}

/* Only with windows or resizing: nothing else calls it. */
static bool execute_more(const char *line)
{
	int end, number;

	if (sscanf(line, "window %1d %1d", &end, &number) == 2) {
		replace_window(!!end, number % WINDOWS);
	} else if (sscanf(line, "region %1d", &end) == 1) {
		replace_region(!!end);
	} else if (sscanf(line, "size %1d", &end) == 1) {
		take_octets(line + 7);
		seed(choose(1 << 24));
		w.format->resize(&w.queues[!!end]);
	} else {
		return false;
	}
	return true;
}

/* Executes a line. The connection may have ended: then what is written has no effect. */
static void execute(const char *line)
{
	int end;

	if (!strncmp(line, "ring ", 5)) {
		take_octets(line + 5);
		spoil();
	} else if (sscanf(line, "bell %1d", &end) == 1) {
		doorbell(w.ends[!!end].id->qp, 0);
	} else if (sscanf(line, "post %1d", &end) == 1) {
		take_octets(line + 7);
		seed(choose(1 << 24));
		post_and_arm(!!end);
	} else if (!strcmp(line, "again\n")) {
		again();
	} else if (!w.format->has_windows || !w.format->resize || !execute_more(line)) {
		fail("no such line: %s", line);
	}
}

/* The driver works off what was begun, or waits for the other end, before this returns. */
static void ring_all(void)
{
	is_dead(0);
	doorbell(w.ends[0].id->qp, 0);
	doorbell(w.ends[1].id->qp, 0);
	is_dead(1);
}

static void run_inputs(void)
{
	char line[2 * LINE + 16];

	choices.is_in_use = true;
	begin();
	while (fgets(line, sizeof(line), stdin)) {
		if (strcmp(line, "end\n")) {
			execute(line);
			continue;
		}
		ring_all();
		untouched();
		again();
		puts("done");
		fflush(stdout);
	}
	end_all();
	untouched();
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
	const char *seed_text = getenv("KIW_SEED");

	MUST(argc == 3);
	w.format = strcmp(argv[1], "kiwarp-ext") ? &siw_format : &rxe_format;
	if (seed_text) {
		seed(atoll(seed_text));
		random_state = atoll(seed_text);
	}
	open_world();
	if (!strcmp(argv[2], "refused")) {
		calls_are_refused();
		w.format->refuse_all();
	} else if (!strcmp(argv[2], "inputs")) {
		run_inputs();
	} else {
		attack(atof(argv[2]));
	}
	return 0;
}
