/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * What all processes of the program share, in memory and from the command line.
 */
#ifndef KIW_ATTACK_WORLD_H
#define KIW_ATTACK_WORLD_H

#include "../common.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

#define USER		20000	/* and up: who attacks */
#define HONEST_USER	21000
#define PEER_USER	22000

/* First ports of a host: for listeners of families, for TCP peers, and for the good server */
#define ATTACK_PORT	7900
#define ATTACK_PORTS	6
#define PEER_PORT	7950
#define GOOD_PORT	7990
#define HONEST_PORT	7991

#define FAMILIES	5
#define THREADS		3
#define CHANNELS	3
#define SLOTS		24
#define QPS		8
#define LOG		48
#define KNOWN		512

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

extern const char * const op_names[OPS];

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
 * @forking: number of its processes that are forking; if it is killed, some may stay counted
 * @is_killing: no process may fork now
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
	atomic_int forking;
	atomic_bool is_killing;
	struct notes notes[THREADS + 1];
};

/**
 * struct world - what all processes share
 * @is_over: random: all processes are to end
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

extern struct world *w;

/* The hosts: addresses, devices, file descriptors of the network namespaces */
extern const char * const addrs[2];
extern const char * const devices[2];
extern int net[2];

/* The command line: the seed, a mask of enum spare, the devices' startup_ms in milliseconds */
extern __u64 base_seed;
extern unsigned int spared;
extern unsigned int startup_ms;

/*
 * Devices may be deleted at any time. Then the good server is not checked, and the QPs of a new
 * device have numbers that belonged to other families before.
 */
extern bool devices_vanish;

/* Host of the process that a directed case tests; the peers are on the other host */
extern int here;

void world_open(void);
void tell(const char *format, ...) __attribute__((format(printf, 1, 2)));
__u32 choose(struct rng *rng, __u32 count);
struct rng rng_of(__u32 who, __u32 round);
void pause_ms(unsigned int ms);
void become(int side, uid_t uid);
void become_root_of_container(uid_t uid, int flags);

#endif /* KIW_ATTACK_WORLD_H */
