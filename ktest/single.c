// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * One end of a connection, which a program controls. The other end is the wire peer of the tests
 * (scripts/peer), which can send anything.
 *
 * Each open file of /sys/kernel/debug/kiwarp_ktest/single is an end. A write is a command; see
 * commands[]. A read returns what has happened: a line for each completion, in their order, a line
 * for each result of a command, and a last line with the events so far. Closing the file closes the
 * end.
 *
 * Contexts: commands run in process context, one at a time (@lock). Completions are logged in
 * softirq (@log_lock).
 */
#include <linux/fs.h>
#include <linux/in.h>
#include <linux/mm.h>
#include <linux/mutex.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/string.h>
#include <linux/uaccess.h>

#include "ktest.h"

#define CANARY		0xc5
#define RESOLVE_MS	(KTEST_PATIENCE * 1000)
#define WRS		512

/**
 * struct single_wr - a work request
 * @cqe: its completion handler
 * @s: the end that it was posted to
 * @id: number that the program gave it
 */
struct single_wr {
	struct ib_cqe cqe;
	struct single *s;
	u32 id;
};

/**
 * struct single - an end, and its file
 * @pair: only its first end is in use
 * @net: network namespace of the end, or NULL
 * @listener: listening cm_id, or NULL
 * @param: of the connection
 * @user: region of the program's memory, or NULL
 * @lkey: work requests refer to the granted memory by this STag, at @base; 0: to all memory
 * @base: tagged offset of the memory for @lkey
 * @lock: serialises commands
 * @log_lock: protects @log, @len and @is_full
 * @len: length of @log
 * @is_full: something did not fit into @log, which cannot be read any more
 * @log: what has happened
 * @next: next of @wrs to use
 * @wrs: work requests; each is used once
 */
struct single {
	struct ktest_pair pair;
	struct net *net;
	struct rdma_cm_id *listener;
	struct rdma_conn_param param;
	struct ib_mr *user;
	u32 lkey;
	u64 base;
	struct mutex lock;
	spinlock_t log_lock;
	size_t len;
	bool is_full;
	char log[16384];
	u32 next;
	struct single_wr wrs[WRS];
};

static const struct ktest_opts opts = { .poll = IB_POLL_SOFTIRQ };

static struct ktest_end *end_of(struct single *s)
{
	return &s->pair.end[0];
}

static __printf(2, 3) void note(struct single *s, const char *format, ...)
{
	unsigned long flags;
	va_list args;

	va_start(args, format);
	spin_lock_irqsave(&s->log_lock, flags);
	s->len += vsnprintf(s->log + s->len, sizeof(s->log) - s->len, format, args);
	if (s->len >= sizeof(s->log)) {
		s->len = sizeof(s->log) - 1;
		s->is_full = true;
	}
	spin_unlock_irqrestore(&s->log_lock, flags);
	va_end(args);
}

static void on_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct single_wr *w = container_of(wc->wr_cqe, struct single_wr, cqe);

	note(w->s, "wc %u %d %d %u %d %u\n", w->id, wc->status, wc->opcode, wc->byte_len,
	     wc->wc_flags, be32_to_cpu(wc->ex.imm_data));
}

static struct ib_cqe *next_wr(struct single *s, u32 id)
{
	struct single_wr *w;

	if (s->next == WRS)
		return NULL;
	w = &s->wrs[s->next++];
	*w = (struct single_wr) { .cqe.done = on_done, .s = s, .id = id };
	return &w->cqe;
}

/* Connecting */

static int on_request(struct single *s, struct rdma_cm_id *id)
{
	struct ktest_end *end = end_of(s);
	int ret;

	if (end->id)
		return -EBUSY;
	end->id = id;
	ret = ktest_end_make(end);
	if (!ret) {
		s->param.qp_num = end->qp->qp_num;
		ret = rdma_accept(id, &s->param);
	}
	note(s, "accept %d\n", ret);
	return 0;
}

static int on_event(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	struct single *s = id->context;
	int ret = 0;

	if (event->event == RDMA_CM_EVENT_CONNECT_REQUEST)
		ret = on_request(s, id);
	set_bit(event->event, &end_of(s)->cm_events);
	wake_up_all(&end_of(s)->wait);
	return ret;
}

/* "FD ADDRESS PORT IRD ORD UNSAFE": namespace, address as a number, depths, with a global rkey */
static int parse(struct single *s, const char *args, struct sockaddr_in *sin)
{
	unsigned int fd, addr, port, ird, ord, unsafe;
	struct net *net;

	if (s->net)
		return -EBUSY;
	if (sscanf(args, "%u %i %u %u %u %u", &fd, &addr, &port, &ird, &ord, &unsafe) != 6)
		return -EINVAL;
	net = get_net_ns_by_fd(fd);
	if (IS_ERR(net))
		return PTR_ERR(net);
	s->net = net;
	s->pair.pd_flags = unsafe ? IB_PD_UNSAFE_GLOBAL_RKEY : 0;
	s->param.responder_resources = ird;
	s->param.initiator_depth = ord;
	*sin = (struct sockaddr_in) {
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(addr),
		.sin_port = htons(port),
	};
	return 0;
}

static struct rdma_cm_id *make_id(struct single *s, const char *args, struct sockaddr_in *sin)
{
	int ret = parse(s, args, sin);

	if (ret)
		return ERR_PTR(ret);
	return rdma_create_id(s->net, on_event, s, RDMA_PS_TCP, IB_QPT_RC);
}

/* Accepts the first connection. */
static int do_listen(struct single *s, const char *args)
{
	struct sockaddr_in sin;
	struct rdma_cm_id *id = make_id(s, args, &sin);
	int ret;

	if (IS_ERR(id))
		return PTR_ERR(id);
	s->listener = id;
	ret = rdma_bind_addr(id, (struct sockaddr *)&sin);
	return ret ? ret : rdma_listen(id, 1);
}

static int wait_cm(struct ktest_end *end, enum rdma_cm_event_type event)
{
	return wait_event_timeout(end->wait, test_bit(event, &end->cm_events),
				  KTEST_PATIENCE * HZ) ? 0 : -ETIMEDOUT;
}

/* Does not wait for the connection. */
static int do_connect(struct single *s, const char *args)
{
	struct ktest_end *end = end_of(s);
	struct sockaddr_in sin;
	struct rdma_cm_id *id = make_id(s, args, &sin);
	int ret;

	if (IS_ERR(id))
		return PTR_ERR(id);
	end->id = id;
	ret = rdma_resolve_addr(id, NULL, (struct sockaddr *)&sin, RESOLVE_MS);
	if (!ret)
		ret = wait_cm(end, RDMA_CM_EVENT_ADDR_RESOLVED);
	if (!ret)
		ret = rdma_resolve_route(id, RESOLVE_MS);
	if (!ret)
		ret = wait_cm(end, RDMA_CM_EVENT_ROUTE_RESOLVED);
	if (!ret)
		ret = ktest_end_make(end);
	return ret ? ret : rdma_connect(id, &s->param);
}

static int one_number(const char *args, u32 *value)
{
	return kstrtou32(skip_spaces(args), 0, value);
}

/* Memory */

static void grant(struct single *s, u64 addr, u32 rkey, u64 len)
{
	note(s, "memory %llu %u %llu\n", addr, rkey, len);
}

/* "ACCESS": all memory, as a fast region */
static int do_expose(struct single *s, const char *args)
{
	struct ktest_end *end = end_of(s);
	u32 access;

	if (one_number(args, &access) || end->mr)
		return -EINVAL;
	memset(end->mem, CANARY, KTEST_MEM);
	ktest_expose(end, access);
	if (READ_ONCE(s->pair.has_failed))
		return -EIO;
	grant(s, end->mr->iova, end->mr->rkey, end->mr->length);
	return 0;
}

/* "ADDRESS LENGTH ACCESS": memory of the calling process */
static int do_user(struct single *s, const char *args)
{
	unsigned long addr, len;
	struct ib_mr *mr;
	int access;

	if (sscanf(args, "%lu %lu %i", &addr, &len, &access) != 3 || s->user)
		return -EINVAL;
	mr = ib_reg_user_mr(end_of(s)->pd, addr, len, addr, access);
	if (IS_ERR(mr))
		return PTR_ERR(mr);
	s->user = mr;
	grant(s, addr, mr->rkey, len);
	return 0;
}

/* All memory of the kernel: UNSAFE */
static int do_unsafe(struct single *s, const char *args)
{
	struct ktest_end *end = end_of(s);

	memset(end->mem, CANARY, KTEST_MEM);
	grant(s, end->dma, end->pd->unsafe_global_rkey, KTEST_MEM);
	return 0;
}

/* "ACCESS": rights of the QP */
static int do_access(struct single *s, const char *args)
{
	struct ib_qp_attr attr = {};
	u32 access;

	if (one_number(args, &access))
		return -EINVAL;
	attr.qp_access_flags = access;
	return ib_modify_qp(end_of(s)->qp, &attr, IB_QP_ACCESS_FLAGS);
}

/* Deregisters the region that was granted. */
static int do_dereg(struct single *s, const char *args)
{
	struct ib_mr **mr = s->user ? &s->user : &end_of(s)->mr;
	int ret = *mr ? ib_dereg_mr(*mr) : -EINVAL;

	if (!ret)
		*mr = NULL;
	return ret;
}

/* A word of the memory, or NULL */
static u8 *word_at(struct single *s, u32 offset)
{
	return offset <= KTEST_MEM - sizeof(u64) ? end_of(s)->mem + offset : NULL;
}

/* "OFFSET VALUE": a word of memory */
static int do_poke(struct single *s, const char *args)
{
	u32 offset;
	u64 value;

	if (sscanf(args, "%u %llu", &offset, &value) != 2 || !word_at(s, offset))
		return -EINVAL;
	memcpy(word_at(s, offset), &value, sizeof(value));
	return 0;
}

/* "OFFSET" */
static int do_peek(struct single *s, const char *args)
{
	u32 offset;
	u64 value;

	if (one_number(args, &offset) || !word_at(s, offset))
		return -EINVAL;
	memcpy(&value, word_at(s, offset), sizeof(value));
	note(s, "word %llu\n", value);
	return 0;
}

/* Which part of the memory has changed since it was granted */
static int do_changed(struct single *s, const char *args)
{
	const u8 *mem = end_of(s)->mem, *first = memchr_inv(mem, CANARY, KTEST_MEM);
	u32 end = KTEST_MEM;

	if (!first) {
		note(s, "changed 0 0\n");
		return 0;
	}
	while (mem[end - 1] == CANARY)
		end--;
	note(s, "changed %zu %u\n", first - mem, end);
	return 0;
}

/* From now on the memory of work requests is the granted one, whose STag may become invalid. */
static int do_through(struct single *s, const char *args)
{
	const struct ib_mr *mr = s->user ? s->user : end_of(s)->mr;

	if (!mr)
		return -EINVAL;
	s->lkey = mr->lkey;
	s->base = mr->iova;
	return 0;
}

/* Work */

static struct ib_sge sge_of(struct single *s, u32 offset, u32 len)
{
	struct ib_sge sge = ktest_sge(end_of(s), offset, len);

	if (s->lkey) {
		sge.addr = s->base + offset;
		sge.lkey = s->lkey;
	}
	return sge;
}

/* "ID OFFSET LENGTH": a receive into this part of the memory */
static int do_recv(struct single *s, const char *args)
{
	u32 id, offset, len;
	struct ib_sge sge;
	struct ib_recv_wr wr = { .sg_list = &sge, .num_sge = 1 };

	if (sscanf(args, "%u %u %u", &id, &offset, &len) != 3 || offset > KTEST_MEM ||
	    len > KTEST_MEM - offset)
		return -EINVAL;
	sge = sge_of(s, offset, len);
	wr.wr_cqe = next_wr(s, id);
	return wr.wr_cqe ? ib_post_recv(end_of(s)->qp, &wr, NULL) : -ENOSPC;
}

/*
 * A work request: "ID OPCODE FLAGS OFFSET LENGTH RADDR RKEY COMPARE_ADD SWAP COMPARE_ADD_MASK
 * SWAP_MASK"; OFFSET and LENGTH say where its data is
 */
static int do_post(struct single *s, const char *args)
{
	u64 raddr, compare_add, swap, compare_add_mask, swap_mask;
	u32 id, opcode, flags, offset, len, rkey;
	struct ib_sge sge;
	union {
		struct ib_send_wr wr;
		struct ib_rdma_wr rdma;
		struct ib_atomic_wr atomic;
	} u = {};

	if (sscanf(args, "%u %u %u %u %u %llu %u %llu %llu %llu %llu", &id, &opcode, &flags,
		   &offset, &len, &raddr, &rkey, &compare_add, &swap, &compare_add_mask,
		   &swap_mask) != 11)
		return -EINVAL;
	if (offset > KTEST_MEM || len > KTEST_MEM - offset)
		return -EINVAL;
	sge = sge_of(s, offset, len);
	if (opcode <= IB_WR_RDMA_READ && opcode != IB_WR_SEND) {
		u.rdma.remote_addr = raddr;
		u.rdma.rkey = rkey;
	} else if (opcode != IB_WR_SEND) {
		u.atomic.remote_addr = raddr;
		u.atomic.rkey = rkey;
		u.atomic.compare_add = compare_add;
		u.atomic.swap = swap;
		u.atomic.compare_add_mask = compare_add_mask;
		u.atomic.swap_mask = swap_mask;
	}
	u.wr.opcode = opcode;
	u.wr.send_flags = flags | IB_SEND_SIGNALED;
	u.wr.sg_list = &sge;
	u.wr.num_sge = !!len;
	u.wr.ex.imm_data = cpu_to_be32(compare_add);
	u.wr.wr_cqe = next_wr(s, id);
	return u.wr.wr_cqe ? ib_post_send(end_of(s)->qp, &u.wr, NULL) : -ENOSPC;
}

/* "ID": invalidates the fast region that was granted */
static int do_inv(struct single *s, const char *args)
{
	struct ib_send_wr wr = {
		.opcode = IB_WR_LOCAL_INV,
		.send_flags = IB_SEND_SIGNALED,
	};
	u32 id;

	if (one_number(args, &id) || !end_of(s)->mr)
		return -EINVAL;
	wr.ex.invalidate_rkey = end_of(s)->mr->rkey;
	wr.wr_cqe = next_wr(s, id);
	return wr.wr_cqe ? ib_post_send(end_of(s)->qp, &wr, NULL) : -ENOSPC;
}

static const struct {
	const char *name;
	int (*run)(struct single *s, const char *args);
	bool needs_qp;
} commands[] = {
	{ "listen", do_listen },
	{ "connect", do_connect },
	{ "expose", do_expose, true },
	{ "user", do_user, true },
	{ "unsafe", do_unsafe, true },
	{ "access", do_access, true },
	{ "dereg", do_dereg, true },
	{ "through", do_through, true },
	{ "poke", do_poke, true },
	{ "peek", do_peek, true },
	{ "changed", do_changed, true },
	{ "recv", do_recv, true },
	{ "post", do_post, true },
	{ "inv", do_inv, true },
};

static int run_command(struct single *s, const char *line)
{
	size_t len = strcspn(line, " ");
	int i;

	for (i = 0; i < ARRAY_SIZE(commands); i++) {
		if (strlen(commands[i].name) != len || strncmp(line, commands[i].name, len))
			continue;
		if (commands[i].needs_qp && !end_of(s)->qp)
			return -ENOTCONN;
		return commands[i].run(s, line + len);
	}
	return -EINVAL;
}

/* The file */

static int file_open(struct inode *inode, struct file *file)
{
	struct single *s = kvzalloc(sizeof(*s), GFP_KERNEL);

	if (!s)
		return -ENOMEM;
	mutex_init(&s->lock);
	spin_lock_init(&s->log_lock);
	s->pair.opts = &opts;
	end_of(s)->pair = &s->pair;
	init_waitqueue_head(&end_of(s)->wait);
	file->private_data = s;
	return 0;
}

static int file_release(struct inode *inode, struct file *file)
{
	struct single *s = file->private_data;

	if (s->listener)
		rdma_destroy_id(s->listener);
	if (s->user)
		ib_dereg_mr(s->user);
	ktest_end_free(end_of(s));
	if (s->net)
		put_net(s->net);
	kvfree(s);
	return 0;
}

static ssize_t file_write(struct file *file, const char __user *buf, size_t len, loff_t *pos)
{
	struct single *s = file->private_data;
	char line[256];
	int ret;

	if (len >= sizeof(line))
		return -EINVAL;
	if (copy_from_user(line, buf, len))
		return -EFAULT;
	line[len] = 0;
	mutex_lock(&s->lock);
	ret = run_command(s, line);
	mutex_unlock(&s->lock);
	return ret ? ret : len;
}

static ssize_t file_read(struct file *file, char __user *buf, size_t len, loff_t *pos)
{
	struct single *s = file->private_data;
	struct ktest_end *end = end_of(s);
	ssize_t ret = -ENOMEM;
	bool is_full;
	size_t size;
	char *text;

	text = kvmalloc(sizeof(s->log) + 64, GFP_KERNEL);
	if (!text)
		return ret;
	spin_lock_irq(&s->log_lock);
	is_full = s->is_full;
	size = s->len;
	memcpy(text, s->log, size);
	spin_unlock_irq(&s->log_lock);
	size += scnprintf(text + size, 64, "events %lu %lu\n", READ_ONCE(end->cm_events),
			  READ_ONCE(end->qp_events));
	ret = is_full ? -ENOSPC : simple_read_from_buffer(buf, len, pos, text, size);
	kvfree(text);
	return ret;
}

const struct file_operations ktest_single_fops = {
	.owner = THIS_MODULE,
	.open = file_open,
	.release = file_release,
	.read = file_read,
	.write = file_write,
};
