// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * storm CONNECTIONS SECONDS: random verbs. Many connections between two hosts share a few
 * completion queues and shared receive queues. They post Sends, Writes and Reads of any size,
 * signaled or not, inline or not, fenced or not, in both directions. Connections end in various
 * ways under load, and new ones are made. At the end everything is destroyed in random order.
 *
 * The program checks
 *  - of each work request: it completes once and in posting order, an unsignaled one with the
 *    next signaled one; errors occur only if the connection was ended; the opcode is right;
 *  - of each message: it arrives once, in order, with the right data;
 *  - of each Write: the data, when the Send after it arrives;
 *  - of each Read: the data;
 *  - of each receive: it completes once, one in a shared receive queue at the very end if not
 *    before.
 *
 * Memory is divided into slots of one region per host. A slot belongs to a connection until its
 * use is over or both ends are destroyed.
 */
#include "common.h"

#define CQS		6
#define CQ_SLOTS	8192
#define SRQS		3
#define SRQ_SLOTS	256
#define DEPTH		16
#define WINDOW		12	/* work requests outstanding, of an end */
#define UNSIGNALED_MAX	4
#define CONNS_MAX	400
#define SLOT		16384
#define SLOTS		4096
#define OPS		16384
#define NOBODY		(-1)
#define MAGIC		0x4b495753

enum kind { SEND, WRITE, READ, RECV };

/**
 * struct op - a work request
 * @generation: number of times this entry was used
 * @kind: kind of work request
 * @is_busy: posted and not complete
 * @is_signaled: it is expected to complete even if it succeeds
 * @conn: its connection, or NOBODY in a shared receive queue
 * @end: its end of the connection, or the host of a shared receive
 * @srq: the shared receive queue
 * @slot: its memory
 * @size: length in bytes
 * @seed: seed of its data
 * @remote: READ: slot of the peer, or NOBODY
 */
struct op {
	__u32 generation;
	enum kind kind;
	bool is_busy;
	bool is_signaled;
	int conn;
	int end;
	int srq;
	int slot;
	__u32 size;
	__u32 seed;
	int remote;
};

/* What a Send begins with. @write_slot: a Write before it, or NOBODY */
struct message {
	__u32 magic;
	__u32 serial;
	__u32 number;
	__u32 size;
	__u32 seed;
	__s32 write_slot;
	__u32 write_size;
	__u32 write_seed;
};

/* Work requests in the order of posting */
struct fifo {
	int ops[2 * DEPTH];
	unsigned int put;
	unsigned int get;
};

/**
 * struct half - one end of a connection, as this program sees it
 * @sent: send queue
 * @posted: receive queue, if it has its own
 * @srq: index of the shared receive queue, or NOBODY
 * @unsignaled: number of unsignaled work requests in a row at the end of @sent
 * @number: number of the next message to send
 * @expected: number of the next message to receive
 */
struct half {
	struct fifo sent;
	struct fifo posted;
	int srq;
	int unsignaled;
	__u32 number;
	__u32 expected;
};

/**
 * struct conn - a connection
 * @ends: its ends
 * @halves: the program's view of its ends
 * @serial: serial number
 * @is_doomed: errors are expected
 */
struct conn {
	struct end ends[2];
	struct half halves[2];
	__u32 serial;
	bool is_doomed;
};

/**
 * struct host - what the connections of one side share
 * @side: the side
 * @cqs: completion queues
 * @srqs: shared receive queues
 * @waiting: number of receives in each of @srqs
 * @promised: number of messages in flight to each of @srqs
 * @room: memory
 * @mr: region of @room
 * @owner: connection of each slot; NOBODY: free; CONNS_MAX: used by a shared receive
 */
struct host {
	struct side side;
	struct ibv_cq *cqs[CQS];
	struct ibv_srq *srqs[SRQS];
	int waiting[SRQS];
	int promised[SRQS];
	__u8 *room;
	struct ibv_mr *mr;
	int owner[SLOTS];
};

static struct host hosts[2];
static struct conn conns[CONNS_MAX];
static struct op ops[OPS];
static int conn_count;
static __u32 serial;
static unsigned long completions, messages, connections;

/* Memory */

static __u8 octet(__u32 seed, __u32 at)
{
	return (seed + at) * 0x9e3779b1 >> 19;
}

static __u8 *memory(int who, int slot)
{
	return hosts[who].room + (size_t)slot * SLOT;
}

static void fill(int who, int slot, __u32 size, __u32 seed)
{
	__u8 *at = memory(who, slot);
	__u32 i;

	for (i = 0; i < size; i++)
		at[i] = octet(seed, i);
}

static void verify(int who, int slot, __u32 from, __u32 size, __u32 seed, const char *what)
{
	const __u8 *at = memory(who, slot);
	__u32 i;

	for (i = from; i < size; i++)
		if (at[i] != octet(seed, i))
			fail("%s of %u octets: octet %u is %02x, not %02x", what, size, i, at[i],
			     octet(seed, i));
}

static int slot_get(int who, int owner)
{
	int slot = pick(SLOTS);
	int tries;

	for (tries = 0; tries < SLOTS; tries++) {
		if (hosts[who].owner[slot] == NOBODY) {
			hosts[who].owner[slot] = owner;
			return slot;
		}
		slot = (slot + 1) % SLOTS;
	}
	fail("no memory left");
}

static void slot_put(int who, int slot)
{
	MUST(hosts[who].owner[slot] != NOBODY);
	hosts[who].owner[slot] = NOBODY;
}

/* Work requests */

static struct op *op_get(enum kind kind, int conn, int end)
{
	static unsigned int next;
	struct op *op;
	int tries;

	for (tries = 0; tries < OPS; tries++) {
		op = &ops[next++ % OPS];
		if (op->is_busy)
			continue;
		*op = (struct op) {
			.generation = op->generation + 1, .kind = kind, .is_busy = true,
			.conn = conn, .end = end, .srq = NOBODY, .slot = NOBODY,
			.remote = NOBODY,
		};
		return op;
	}
	fail("no work request left");
}

static __u64 id_of(const struct op *op)
{
	return (__u64)op->generation << 32 | (op - ops);
}

static void op_put(struct op *op)
{
	MUST(op->is_busy);
	op->is_busy = false;
	if (op->slot != NOBODY)
		slot_put(op->end, op->slot);
	if (op->remote != NOBODY)
		slot_put(!op->end, op->remote);
}

static unsigned int length(const struct fifo *fifo)
{
	return fifo->put - fifo->get;
}

static void push(struct fifo *fifo, const struct op *op)
{
	MUST(length(fifo) < ARRAY_SIZE(fifo->ops));
	fifo->ops[fifo->put++ % ARRAY_SIZE(fifo->ops)] = op - ops;
}

static struct op *pop(struct fifo *fifo)
{
	MUST(length(fifo));
	return &ops[fifo->ops[fifo->get++ % ARRAY_SIZE(fifo->ops)]];
}

/* Completions */

static void sent_well(struct op *op)
{
	if (op->kind == READ)
		verify(op->end, op->slot, 0, op->size, op->seed, "read");
}

static void handle_sent(struct op *op, const struct ibv_wc *wc)
{
	static const enum ibv_wc_opcode opcodes[] = {
		[SEND] = IBV_WC_SEND, [WRITE] = IBV_WC_RDMA_WRITE, [READ] = IBV_WC_RDMA_READ,
	};
	struct conn *c = &conns[op->conn];
	struct op *older;

	if (wc->status != IBV_WC_SUCCESS && !c->is_doomed)
		fail("status %d of a %d", wc->status, op->kind);
	MUST(wc->status != IBV_WC_SUCCESS || wc->opcode == opcodes[op->kind]);
	MUST(wc->status != IBV_WC_SUCCESS || op->is_signaled);
	for (;;) {
		older = pop(&c->halves[op->end].sent);
		if (older == op)
			break;
		if (older->is_signaled)
			fail("a completion before that of an older work request");
		if (wc->status == IBV_WC_SUCCESS)
			sent_well(older);
		op_put(older);
	}
	if (wc->status == IBV_WC_SUCCESS)
		sent_well(op);
	op_put(op);
}

static int conn_of(int who, __u32 qp_num)
{
	int i;

	for (i = 0; i < conn_count; i++)
		if (conns[i].ends[who].id && conns[i].ends[who].id->qp->qp_num == qp_num)
			return i;
	return NOBODY;
}

static void arrived(struct conn *c, int who, const struct op *op, __u32 size)
{
	struct half *h = &c->halves[who];
	struct message m;

	memcpy(&m, memory(who, op->slot), sizeof(m));
	if (m.magic != MAGIC || m.serial != c->serial || m.number != h->expected ||
	    m.size != size)
		fail("message %u of %u octets on connection %u, instead of %u of %u on %u",
		     m.number, m.size, m.serial, h->expected, size, c->serial);
	verify(who, op->slot, sizeof(m), size, m.seed, "message");
	if (m.write_slot != NOBODY) {
		verify(who, m.write_slot, 0, m.write_size, m.write_seed, "write");
		slot_put(who, m.write_slot);
	}
	h->expected++;
	messages++;
	if (h->srq != NOBODY)
		hosts[who].promised[h->srq]--;
}

static void handle_received(int who, struct op *op, const struct ibv_wc *wc)
{
	int conn = op->conn != NOBODY ? op->conn : conn_of(who, wc->qp_num);
	struct conn *c = &conns[conn];

	/* If the QP was destroyed, only receives of a shared queue may complete successfully */
	MUST(conn != NOBODY || wc->status != IBV_WC_SUCCESS || op->conn == NOBODY);
	if (wc->status != IBV_WC_SUCCESS && conn != NOBODY && !c->is_doomed)
		fail("status %d of a receive", wc->status);
	if (op->conn != NOBODY)
		MUST(pop(&c->halves[who].posted) == op);
	else
		hosts[who].waiting[op->srq]--;
	if (wc->status == IBV_WC_SUCCESS && conn != NOBODY) {
		MUST(wc->opcode == IBV_WC_RECV);
		arrived(c, who, op, wc->byte_len);
	}
	op_put(op);
}

static bool poll_all(void)
{
	struct ibv_wc wcs[32];
	bool is_any = false;
	struct op *op;
	int i, j, n;

	for (i = 0; i < 2 * CQS; i++) {
		n = ibv_poll_cq(hosts[i % 2].cqs[i / 2], ARRAY_SIZE(wcs), wcs);
		MUST(n >= 0);
		for (j = 0; j < n; j++) {
			op = &ops[wcs[j].wr_id % OPS];
			if (!op->is_busy || id_of(op) != wcs[j].wr_id || op->end != i % 2)
				fail("a completion too many, status %d", wcs[j].status);
			if (op->kind == RECV)
				handle_received(i % 2, op, &wcs[j]);
			else
				handle_sent(op, &wcs[j]);
		}
		completions += n;
		is_any |= n;
	}
	return is_any;
}

/* Polls until it is so. */
static void wait_until(bool (*is_so)(const struct conn *c), const struct conn *c, const char *what)
{
	double end = now() + patience();

	while (!is_so(c)) {
		if (poll_all())
			end = now() + patience();
		else
			rest();
		if (now() > end)
			fail("not within %.0f s: %s", patience(), what);
	}
}

/* Posting */

static void give_receive(int who, struct op *op, struct ibv_qp *qp, struct ibv_srq *srq)
{
	struct ibv_sge sge;
	struct ibv_recv_wr wr = { .wr_id = id_of(op), .sg_list = &sge, .num_sge = 1 }, *bad;

	op->slot = slot_get(who, op->conn == NOBODY ? CONNS_MAX : op->conn);
	sge = (struct ibv_sge) { (unsigned long)memory(who, op->slot), SLOT, hosts[who].mr->lkey };
	MUST(!(srq ? ibv_post_srq_recv(srq, &wr, &bad) : ibv_post_recv(qp, &wr, &bad)));
}

static void receive(int conn, int who)
{
	struct conn *c = &conns[conn];
	struct half *h = &c->halves[who];
	struct op *op;

	if (h->srq == NOBODY) {
		while (length(&h->posted) < DEPTH) {
			op = op_get(RECV, conn, who);
			give_receive(who, op, c->ends[who].id->qp, NULL);
			push(&h->posted, op);
		}
		return;
	}
	while (hosts[who].waiting[h->srq] < SRQ_SLOTS) {
		op = op_get(RECV, NOBODY, who);
		op->srq = h->srq;
		give_receive(who, op, NULL, hosts[who].srqs[h->srq]);
		hosts[who].waiting[h->srq]++;
	}
}

/* Number of messages in flight to this end */
static __u32 under_way(const struct conn *c, int who)
{
	return c->halves[!who].number - c->halves[who].expected;
}

static bool may_send(const struct conn *c, int who)
{
	const struct half *peer = &c->halves[!who];

	if (length(&c->halves[who].sent) >= WINDOW)
		return false;
	if (peer->srq == NOBODY)
		return under_way(c, !who) < length(&peer->posted);
	return hosts[!who].promised[peer->srq] < hosts[!who].waiting[peer->srq];
}

static int cut(struct ibv_sge *sge, int who, int slot, __u32 size)
{
	int count = 1 + pick(MAX_SGE);
	__u32 at = 0, piece;
	int i;

	for (i = 0; i < count; i++) {
		piece = i == count - 1 ? size - at : pick(size - at + 1);
		sge[i] = (struct ibv_sge) {
			(unsigned long)memory(who, slot) + at, piece, hosts[who].mr->lkey,
		};
		at += piece;
	}
	return count;
}

static void post(struct op *op, int remote_slot, __u32 rkey)
{
	static const enum ibv_wr_opcode opcodes[] = {
		[SEND] = IBV_WR_SEND, [WRITE] = IBV_WR_RDMA_WRITE, [READ] = IBV_WR_RDMA_READ,
	};
	struct conn *c = &conns[op->conn];
	struct half *h = &c->halves[op->end];
	struct ibv_sge sge[MAX_SGE];
	struct ibv_send_wr wr = {
		.wr_id = id_of(op), .opcode = opcodes[op->kind], .sg_list = sge,
		.num_sge = cut(sge, op->end, op->slot, op->size),
		.wr.rdma = { (unsigned long)memory(!op->end, remote_slot), rkey },
	}, *bad;

	op->is_signaled = h->unsignaled >= UNSIGNALED_MAX || pick(3);
	h->unsignaled = op->is_signaled ? 0 : h->unsignaled + 1;
	if (op->is_signaled)
		wr.send_flags |= IBV_SEND_SIGNALED;
	if (op->kind != READ && op->size <= MAX_INLINE && pick(2))
		wr.send_flags |= IBV_SEND_INLINE;
	if (!pick(4))
		wr.send_flags |= IBV_SEND_FENCE;
	if (!pick(4))
		wr.send_flags |= IBV_SEND_SOLICITED;
	push(&h->sent, op);
	MUST(!ibv_post_send(c->ends[op->end].id->qp, &wr, &bad));
}

static __u32 any_size(__u32 least)
{
	return least + (pick(3) ? pick(200) : pick(SLOT - least + 1 - 200));
}

static struct op *new_op(enum kind kind, int conn, int who, __u32 size)
{
	struct op *op = op_get(kind, conn, who);

	op->slot = slot_get(who, conn);
	op->size = size;
	op->seed = pick(1 << 30);
	return op;
}

static void do_read(int conn, int who)
{
	struct op *op = new_op(READ, conn, who, any_size(0));

	op->remote = slot_get(!who, conn);
	fill(!who, op->remote, op->size, op->seed);
	memset(memory(who, op->slot), 0xee, op->size);
	post(op, op->remote, hosts[!who].mr->rkey);
}

/* Sends a message, which announces the Write before it if there is one */
static void do_send(int conn, int who, int slot, const struct op *write)
{
	struct half *h = &conns[conn].halves[who];
	struct op *op = new_op(SEND, conn, who, any_size(sizeof(struct message)));
	struct message m = {
		.magic = MAGIC, .serial = conns[conn].serial, .number = h->number++,
		.size = op->size, .seed = op->seed, .write_slot = slot,
		.write_size = write ? write->size : 0, .write_seed = write ? write->seed : 0,
	};

	fill(who, op->slot, op->size, op->seed);
	memcpy(memory(who, op->slot), &m, sizeof(m));
	if (conns[conn].halves[!who].srq != NOBODY)
		hosts[!who].promised[conns[conn].halves[!who].srq]++;
	post(op, 0, 0);
}

static void do_write(int conn, int who)
{
	struct op *op = new_op(WRITE, conn, who, any_size(0));
	int slot = slot_get(!who, conn);
	struct op copy = *op;

	fill(who, op->slot, op->size, op->seed);
	memset(memory(!who, slot), 0xdd, op->size);
	post(op, slot, hosts[!who].mr->rkey);
	do_send(conn, who, slot, &copy);
}

static void act(int conn, int who)
{
	struct conn *c = &conns[conn];

	receive(conn, !who);
	if (length(&c->halves[who].sent) >= WINDOW)
		return;
	switch (pick(3)) {
	case 0:
		do_read(conn, who);
		break;
	case 1:
		if (may_send(c, who))
			do_send(conn, who, NOBODY, NULL);
		break;
	default:
		if (may_send(c, who))
			do_write(conn, who);
	}
}

/* Connections */

static void begin(int conn)
{
	struct conn *c = &conns[conn];
	struct queues queues[2];
	int from = pick(2);
	struct end ends[2];
	int i;

	memset(c, 0, sizeof(*c));
	for (i = 0; i < 2; i++) {
		c->halves[i].srq = pick(2) ? (int)pick(SRQS) : NOBODY;
		/* The first entry is for the end that connects */
		queues[i ^ from] = (struct queues) {
			.scq = hosts[i].cqs[pick(CQS)], .rcq = hosts[i].cqs[pick(CQS)],
			.srq = c->halves[i].srq == NOBODY ? NULL : hosts[i].srqs[c->halves[i].srq],
			.send_depth = DEPTH, .recv_depth = DEPTH,
		};
	}
	c->serial = ++serial;
	connections++;
	MUST(conn_open(ends, &hosts[from].side, &hosts[!from].side, queues));
	c->ends[from] = ends[0];
	c->ends[!from] = ends[1];
	for (i = 0; i < 2; i++)
		receive(conn, i);
}

/* Takes all completions from the queues; QPs that were destroyed cause no more. */
static void take_all(void)
{
	while (poll_all())
		;
}

static void forget(struct fifo *fifo)
{
	while (length(fifo))
		op_put(pop(fifo));
}

static void destroy(struct conn *c, int who)
{
	if (!c->ends[who].id)
		return;
	ibv_destroy_qp(c->ends[who].id->qp);
	take_all();
	c->ends[who].id->qp = NULL;
	end_close(&c->ends[who]);
	forget(&c->halves[who].sent);
	forget(&c->halves[who].posted);
}

static bool is_flushed_half(const struct half *h)
{
	unsigned int i;

	for (i = h->sent.get; i != h->sent.put; i++)
		if (ops[h->sent.ops[i % ARRAY_SIZE(h->sent.ops)]].is_signaled)
			return false;
	return !length(&h->posted);
}

static bool is_flushed(const struct conn *c)
{
	return is_flushed_half(&c->halves[0]) && is_flushed_half(&c->halves[1]);
}

static void to_error(struct conn *c, int who)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };

	MUST(!ibv_modify_qp(c->ends[who].id->qp, &attr, IBV_QP_STATE));
}

static void trespass(int conn, int who)
{
	struct op *op;

	if (length(&conns[conn].halves[who].sent) >= 2 * DEPTH - 1)
		return;
	op = new_op(WRITE, conn, who, 100);
	post(op, 0, hosts[!who].mr->rkey ^ 0x5a00);
}

/* Posts much and lets a part of it arrive, so that a message is likely to be cut in the middle */
static void busy(int conn, int who)
{
	struct conn *c = &conns[conn];
	__u32 enough;
	int i;

	for (i = 0; i < WINDOW; i++)
		act(conn, who);
	enough = pick(under_way(c, !who) + 1);
	for (i = 0; i < 1000 && under_way(c, !who) > enough; i++)
		if (!poll_all())
			rest();
}

/* Ends a connection in one of many ways; both QPs are gone afterwards. */
static void end_one(int conn)
{
	struct conn *c = &conns[conn];
	int who = pick(2);
	int slot, i;

	busy(conn, who);
	who = pick(2);
	c->is_doomed = true;
	switch (pick(4)) {
	case 0:
		to_error(c, who);
		break;
	case 1:
		rdma_disconnect(c->ends[who].id);
		break;
	case 2:
		trespass(conn, who);
		/* What follows depends on the peer, unless it is moved to the error state */
		to_error(c, pick(2));
		break;
	default:
		destroy(c, who);
		if (pick(2))
			destroy(c, !who);
	}
	wait_until(is_flushed, c, "everything is flushed");
	for (i = 0; i < 2; i++)
		destroy(c, i ^ who);
	for (i = 0; i < 2; i++) {
		if (c->halves[i].srq != NOBODY)
			hosts[i].promised[c->halves[i].srq] -= under_way(c, i);
		for (slot = 0; slot < SLOTS; slot++)
			if (hosts[i].owner[slot] == conn)
				slot_put(i, slot);
	}
}

/* The end */

static bool is_quiet(const struct conn *c)
{
	return !under_way(c, 0) && !under_way(c, 1);
}

/* Every receive that is in a shared queue is there exactly once: a message takes each. */
static void empty_srqs(void)
{
	int conn, who, srq;

	for (conn = 0; conn < conn_count; conn++) {
		for (who = 0; who < 2; who++) {
			srq = conns[conn].halves[who].srq;
			while (srq != NOBODY && hosts[who].waiting[srq]) {
				do_send(conn, !who, NOBODY, NULL);
				wait_until(is_quiet, &conns[conn], "a shared receive is taken");
			}
		}
	}
}

/* All ends, in random order */
static void destroy_all(void)
{
	int left = 2 * conn_count;
	int order[2 * CONNS_MAX];
	int i;

	for (i = 0; i < left; i++)
		order[i] = i;
	while (left) {
		i = pick(left);
		conns[order[i] / 2].is_doomed = true;
		destroy(&conns[order[i] / 2], order[i] % 2);
		order[i] = order[--left];
	}
}

static void close_all(void)
{
	int i, who;

	for (i = 0; i < conn_count; i++)
		wait_until(is_quiet, &conns[i], "all messages have arrived");
	empty_srqs();
	destroy_all();
	take_all();
	for (who = 0; who < 2; who++) {
		MUST(!ibv_dereg_mr(hosts[who].mr));
		for (i = 0; i < SRQS; i++)
			MUST(!ibv_destroy_srq(hosts[who].srqs[i]));
		for (i = 0; i < CQS; i++)
			MUST(!ibv_destroy_cq(hosts[who].cqs[i]));
	}
}

static void host_open(struct host *h, const char *ns, const char *addr)
{
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = SRQ_SLOTS, .max_sge = MAX_SGE } };
	int i;

	side_open(&h->side, ns, addr, 7804);
	h->room = pages((size_t)SLOTS * SLOT);
	h->mr = reg(h->side.pd, h->room, (size_t)SLOTS * SLOT,
		    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE);
	for (i = 0; i < CQS; i++) {
		h->cqs[i] = ibv_create_cq(h->side.listener->verbs, CQ_SLOTS, NULL, NULL, 0);
		MUST(h->cqs[i]);
	}
	for (i = 0; i < SRQS; i++) {
		h->srqs[i] = ibv_create_srq(h->side.pd, &attr);
		MUST(h->srqs[i]);
	}
	for (i = 0; i < SLOTS; i++)
		h->owner[i] = NOBODY;
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
	double end;
	int i;

	MUST(argc == 3 && atoi(argv[1]) <= CONNS_MAX);
	if (getenv("KIW_SEED"))
		seed(atoll(getenv("KIW_SEED")));
	host_open(&hosts[0], "a", "10.77.0.1");
	host_open(&hosts[1], "b", "10.77.0.2");
	for (i = atoi(argv[1]); i; i--)
		begin(conn_count++);
	end = now() + atof(argv[2]);
	while (now() < end) {
		for (i = 0; i < 50; i++)
			act(pick(conn_count), pick(2));
		if (!poll_all())
			rest();
		if (!pick(8)) {
			i = pick(conn_count);
			end_one(i);
			begin(i);
		}
	}
	close_all();
	printf("%lu completions, %lu messages, %lu connections\n", completions, messages,
	       connections);
	return 0;
}
