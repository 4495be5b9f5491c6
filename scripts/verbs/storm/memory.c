// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Memory, work requests, and queues of work requests, as the program sees them.
 */
#include "storm.h"

static struct op ops[OPS];

static __u8 octet(__u32 seed, __u32 at)
{
	return (seed + at) * 0x9e3779b1 >> 19;
}

/**
 * memory() - find the memory of a slot
 * @who: the host
 * @slot: number of the slot
 *
 * Context: user space.
 * Return: its first octet.
 */
__u8 *memory(int who, int slot)
{
	return hosts[who].room + (size_t)slot * SLOT;
}

/**
 * fill() - write data
 * @who: the host
 * @slot: where
 * @size: length in bytes
 * @seed: which data
 *
 * Context: user space.
 */
void fill(int who, int slot, __u32 size, __u32 seed)
{
	__u8 *at = memory(who, slot);
	__u32 i;

	for (i = 0; i < size; i++)
		at[i] = octet(seed, i);
}

/**
 * verify() - fail unless a slot has the data of a fill()
 * @who: the host
 * @slot: where
 * @from: first octet to look at
 * @size: length in bytes
 * @seed: which data
 * @what: what to call it
 *
 * Context: user space.
 */
void verify(int who, int slot, __u32 from, __u32 size, __u32 seed, const char *what)
{
	const __u8 *at = memory(who, slot);
	__u32 i;

	for (i = from; i < size; i++)
		if (at[i] != octet(seed, i))
			fail("%s of %u octets: octet %u is %02x, not %02x", what, size, i, at[i],
			     octet(seed, i));
}

/**
 * slot_get() - take a free slot
 * @who: the host
 * @owner: number of the connection, or CONNS_MAX
 *
 * Context: user space.
 * Return: its number.
 */
int slot_get(int who, int owner)
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

/**
 * slot_put() - return a slot
 * @who: the host
 * @slot: the slot
 *
 * Context: user space.
 */
void slot_put(int who, int slot)
{
	MUST(hosts[who].owner[slot] != NOBODY);
	hosts[who].owner[slot] = NOBODY;
}

/**
 * op_get() - begin a work request
 * @kind: its kind
 * @conn: its connection, or NOBODY
 * @end: its end
 *
 * Context: user space.
 * Return: the work request, without memory.
 */
struct op *op_get(enum kind kind, int conn, int end)
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

/**
 * id_of() - name a work request
 * @op: the work request
 *
 * Context: user space.
 * Return: its wr_id.
 */
__u64 id_of(const struct op *op)
{
	return (__u64)op->generation << 32 | (op - ops);
}

/**
 * op_of() - find the work request of a completion
 * @id: its wr_id
 *
 * Context: user space.
 * Return: the work request, or NULL if it is not outstanding.
 */
struct op *op_of(__u64 id)
{
	struct op *op = &ops[id % OPS];

	return op->is_busy && id_of(op) == id ? op : NULL;
}

/**
 * op_put() - end a work request and return its memory
 * @op: the work request
 *
 * Context: user space.
 */
void op_put(struct op *op)
{
	MUST(op->is_busy);
	op->is_busy = false;
	if (op->slot != NOBODY)
		slot_put(op->end, op->slot);
	if (op->remote != NOBODY)
		slot_put(!op->end, op->remote);
}

/**
 * length() - count the work requests in a queue
 * @fifo: the queue
 *
 * Context: user space.
 * Return: how many there are.
 */
unsigned int length(const struct fifo *fifo)
{
	return fifo->put - fifo->get;
}

/**
 * push() - add a work request to a queue
 * @fifo: the queue
 * @op: the work request
 *
 * Context: user space.
 */
void push(struct fifo *fifo, const struct op *op)
{
	MUST(length(fifo) < ARRAY_SIZE(fifo->ops));
	fifo->ops[fifo->put++ % ARRAY_SIZE(fifo->ops)] = op - ops;
}

/**
 * pop() - take the oldest work request out of a queue
 * @fifo: the queue, not empty
 *
 * Context: user space.
 * Return: the work request.
 */
struct op *pop(struct fifo *fifo)
{
	MUST(length(fifo));
	return &ops[fifo->ops[fifo->get++ % ARRAY_SIZE(fifo->ops)]];
}

/**
 * is_flushed() - is nothing outstanding that must complete?
 * @fifo: a queue
 *
 * Context: user space.
 * Return: whether it has none but unsignaled work requests.
 */
bool is_flushed(const struct fifo *fifo)
{
	unsigned int i;

	for (i = fifo->get; i != fifo->put; i++)
		if (ops[fifo->ops[i % ARRAY_SIZE(fifo->ops)]].is_signaled)
			return false;
	return true;
}
