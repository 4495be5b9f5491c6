// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * storm CONNECTIONS SECONDS: random verbs. Many connections between two hosts share a few
 * completion queues and shared receive queues. They post Sends, Writes and Reads of any size,
 * signaled or not, inline or not, fenced or not, in both directions. On devices of the link type
 * kiwarp-ext they post Writes with immediate data and atomic operations, too, bind memory windows
 * and invalidate them, locally and by Sends, and the queues are resized meanwhile. Connections end
 * in various ways under load, and new ones are made. At the end everything is destroyed in random
 * order.
 *
 * The program checks
 *  - of each work request: it completes once and in posting order, an unsignaled one with the
 *    next signaled one; errors occur only if the connection was ended; the opcode is right;
 *  - of each message: it arrives once, in order, with the right data;
 *  - of each Write: the data, when the Send after it or its immediate data arrives;
 *  - of each Read: the data;
 *  - of each atomic operation: that it is executed once, in order, and finds the right value;
 *  - of each window: what it is invalidated by, and that it can be bound again;
 *  - of each receive: it completes once, one in a shared receive queue at the very end if not
 *    before.
 *
 * Memory is divided into slots of one region per host. A slot belongs to a connection until its
 * use is over or both ends are destroyed.
 */
#include "storm.h"

#define MAGIC		0x4b495753
#define IMM_SLOT	20		/* immediate data: a slot, and part of the number */
#define IMM_NUMBER	((1 << IMM_SLOT) - 1)

/* What a Send begins with. @write_slot: a Write before it, or NOBODY; @revoked: STag, or 0 */
struct message {
	__u32 magic;
	__u32 serial;
	__u32 number;
	__u32 size;
	__u32 seed;
	__s32 write_slot;
	__u32 write_size;
	__u32 write_seed;
	__u32 revoked;
};

struct host hosts[2];
struct conn conns[CONNS_MAX];
static int conn_count;
static __u32 serial;
static unsigned long completions, messages, connections;

/* Completions */

static void sent_well(struct op *op)
{
	if (op->kind == READ)
		verify(op->end, op->slot, 0, op->size, op->seed, "read");
	ext_sent(op);
}

static void settle(struct op *op, const struct ibv_wc *wc)
{
	if (wc->status == IBV_WC_SUCCESS)
		sent_well(op);
	else
		ext_failed(op);
	op_put(op);
}

static void handle_sent(struct op *op, const struct ibv_wc *wc)
{
	static const enum ibv_wc_opcode opcodes[] = {
		[SEND] = IBV_WC_SEND, [WRITE] = IBV_WC_RDMA_WRITE, [READ] = IBV_WC_RDMA_READ,
		[SEND_INV] = IBV_WC_SEND, [WRITE_IMM] = IBV_WC_RDMA_WRITE,
		[FETCH_ADD] = IBV_WC_FETCH_ADD, [CMP_SWAP] = IBV_WC_COMP_SWAP,
		[BIND] = IBV_WC_BIND_MW, [INVALIDATE] = IBV_WC_LOCAL_INV,
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
		settle(older, wc);
	}
	settle(op, wc);
}

static int conn_of(int who, __u32 qp_num)
{
	int i;

	for (i = 0; i < conn_count; i++)
		if (conns[i].ends[who].id && conns[i].ends[who].id->qp->qp_num == qp_num)
			return i;
	return NOBODY;
}

/* What a Write with immediate data writes; @number is that of the message. */
static __u32 imm_seed(const struct conn *c, __u32 number)
{
	return (c->serial * 0x85ebca6b + number) * 0xc2b2ae35 >> 2;
}

static __u32 imm_size(__u32 seed)
{
	return seed % 4 ? seed / 4 % 200 : seed / 4 % (SLOT + 1);
}

/* The Write before a message, or with it */
static void written(struct conn *c, int who, int slot, __u32 size, __u32 seed)
{
	verify(who, slot, 0, size, seed, "write");
	window_used(&c->halves[who], slot);
	slot_put(who, slot);
}

static void imm_arrived(struct conn *c, int who, const struct ibv_wc *wc)
{
	__u32 number = c->halves[who].expected;
	__u32 seed = imm_seed(c, number);
	__u32 imm = be32toh(wc->imm_data);

	MUST(wc->wc_flags == IBV_WC_WITH_IMM);
	if ((imm ^ number) & IMM_NUMBER || wc->byte_len != imm_size(seed))
		fail("immediate data %#x after %u octets, instead of %u after %u", imm,
		     wc->byte_len, number, imm_size(seed));
	written(c, who, imm >> IMM_SLOT, wc->byte_len, seed);
}

static void message_arrived(struct conn *c, int who, const struct op *op, const struct ibv_wc *wc)
{
	struct half *h = &c->halves[who];
	struct message m;

	memcpy(&m, memory(who, op->slot), sizeof(m));
	if (m.magic != MAGIC || m.serial != c->serial || m.number != h->expected ||
	    m.size != wc->byte_len)
		fail("message %u of %u octets on connection %u, instead of %u of %u on %u",
		     m.number, m.size, m.serial, h->expected, wc->byte_len, c->serial);
	verify(who, op->slot, sizeof(m), m.size, m.seed, "message");
	if (m.write_slot != NOBODY)
		written(c, who, m.write_slot, m.write_size, m.write_seed);
	MUST(wc->wc_flags == (m.revoked ? IBV_WC_WITH_INV : 0));
	if (m.revoked) {
		MUST(wc->invalidated_rkey == m.revoked);
		window_revoked(c - conns, who, m.revoked);
	}
}

static void arrived(struct conn *c, int who, const struct op *op, const struct ibv_wc *wc)
{
	struct half *h = &c->halves[who];

	if (wc->opcode == IBV_WC_RECV_RDMA_WITH_IMM)
		imm_arrived(c, who, wc);
	else
		message_arrived(c, who, op, wc);
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
		MUST(wc->opcode == IBV_WC_RECV ||
		     (is_extended && wc->opcode == IBV_WC_RECV_RDMA_WITH_IMM));
		arrived(c, who, op, wc);
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
			op = op_of(wcs[j].wr_id);
			if (!op || op->end != i % 2)
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

	if (length(&c->halves[who].sent) >= AHEAD)
		return false;
	if (peer->srq == NOBODY)
		return under_way(c, !who) < length(&peer->posted);
	return hosts[!who].promised[peer->srq] < hosts[!who].waiting[peer->srq];
}

static __u32 any_size(__u32 least)
{
	return least + (pick(3) ? pick(200) : pick(SLOT - least + 1 - 200));
}

static void do_read(int conn, int who)
{
	struct op *op = new_op(READ, conn, who, any_size(0));
	__u64 remote;
	__u32 rkey;

	op->remote = window_target(conn, who, &remote, &rkey);
	fill(!who, op->remote, op->size, op->seed);
	memset(memory(who, op->slot), 0xee, op->size);
	post(op, remote, rkey);
}

/* A message is on its way; it will take a receive. */
static __u32 next_number(int conn, int who)
{
	int srq = conns[conn].halves[!who].srq;

	if (srq != NOBODY)
		hosts[!who].promised[srq]++;
	return conns[conn].halves[who].number++;
}

/*
 * Sends a message, which announces the Write before it if there is one, and may invalidate the
 * peer's window
 */
static void do_send(int conn, int who, int slot, const struct op *write)
{
	struct half *peer = &conns[conn].halves[!who];
	struct op *op = new_op(SEND, conn, who, any_size(sizeof(struct message)));
	struct message m = {
		.magic = MAGIC, .serial = conns[conn].serial, .number = next_number(conn, who),
		.size = op->size, .seed = op->seed, .write_slot = slot,
		.write_size = write ? write->size : 0, .write_seed = write ? write->seed : 0,
		.revoked = window_revoke(peer, slot != NOBODY && slot == peer->window.slot),
	};

	if (m.revoked)
		op->kind = SEND_INV;
	op->stag = m.revoked;
	fill(who, op->slot, op->size, op->seed);
	memcpy(memory(who, op->slot), &m, sizeof(m));
	post(op, 0, 0);
}

static void do_write(int conn, int who)
{
	struct op *op = new_op(WRITE, conn, who, any_size(0));
	struct op copy = *op;
	__u64 remote;
	__u32 rkey;
	int slot;

	slot = window_target(conn, who, &remote, &rkey);
	fill(who, op->slot, op->size, op->seed);
	memset(memory(!who, slot), 0xdd, op->size);
	post(op, remote, rkey);
	do_send(conn, who, slot, &copy);
}

static void do_write_imm(int conn, int who)
{
	__u32 number = next_number(conn, who);
	__u32 seed = imm_seed(&conns[conn], number);
	struct op *op = new_op(WRITE_IMM, conn, who, imm_size(seed));
	__u64 remote;
	__u32 rkey;
	int slot;

	slot = window_target(conn, who, &remote, &rkey);
	op->imm = (__u32)slot << IMM_SLOT | (number & IMM_NUMBER);
	fill(who, op->slot, op->size, seed);
	memset(memory(!who, slot), 0xdd, op->size);
	post(op, remote, rkey);
}

static void act(int conn, int who)
{
	struct conn *c = &conns[conn];

	receive(conn, !who);
	if (length(&c->halves[who].sent) >= AHEAD)
		return;
	switch (pick(is_extended ? 7 : 3)) {
	case 0:
		do_read(conn, who);
		break;
	case 1:
		if (may_send(c, who))
			do_send(conn, who, NOBODY, NULL);
		break;
	case 2:
		if (may_send(c, who))
			do_write(conn, who);
		break;
	case 3:
		if (may_send(c, who))
			do_write_imm(conn, who);
		break;
	default:
		ext_act(conn, who);
	}
}

/* Connections */

/*
 * 260-failing.sh sets $KIW_FAILING to the percentage of allocations that fail, and
 * $KIW_FAILING_FILE to the file for it. None fails while a connection is made: address resolution
 * and TCP would give up.
 */
static void let_fail(const char *percent)
{
	const char *file = getenv("KIW_FAILING_FILE");

	if (file && percent)
		set_file(file, percent);
}

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
	ext_begin(conn);
	c->serial = ++serial;
	connections++;
	let_fail("0");
	MUST(conn_open(ends, &hosts[from].side, &hosts[!from].side, queues));
	let_fail(getenv("KIW_FAILING"));
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
	struct op *op;

	while (length(fifo)) {
		op = pop(fifo);
		ext_failed(op);
		op_put(op);
	}
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
	ext_destroyed(c - conns, who);
	if (!c->ends[!who].id)
		ext_end(c - conns);
}

static bool has_ended(const struct conn *c)
{
	const struct half *h = c->halves;

	return is_flushed(&h[0].sent) && is_flushed(&h[1].sent) && !length(&h[0].posted) &&
	       !length(&h[1].posted);
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
	post(op, 0, wrong_stag(conn, who));
}

/* Posts much and lets a part of it arrive, so that a message is likely to be cut in the middle */
static void busy(int conn, int who)
{
	struct conn *c = &conns[conn];
	__u32 enough;
	int i;

	for (i = 0; i < AHEAD; i++)
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
	wait_until(has_ended, c, "everything is flushed");
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
	ext_close();
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
	ext_open();
	for (i = 0; i < 2; i++)
		hosts[i].mr = reg(hosts[i].side.pd, hosts[i].room, (size_t)SLOTS * SLOT,
				  IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ |
				  IBV_ACCESS_REMOTE_WRITE | (is_extended ? IBV_ACCESS_MW_BIND : 0));
	for (i = atoi(argv[1]); i; i--)
		begin(conn_count++);
	end = now() + atof(argv[2]);
	while (now() < end || (!ext_is_done() && now() < end + patience())) {
		for (i = 0; i < 50; i++)
			act(pick(conn_count), pick(2));
		if (is_extended && !pick(4))
			ext_resize();
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
