/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * A client of the good server, which verifies what it gets.
 */
#ifndef KIW_ATTACK_CLIENT_H
#define KIW_ATTACK_CLIENT_H

#include "qps.h"

#define GOOD_SIZE	2048	/* bytes of a message */
#define ALL_RIGHTS	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)

/* struct offer - private data of its Reply: memory for the peer */
struct offer {
	__u64 addr;
	__u32 rkey;
} __attribute__((packed));

/**
 * struct client - a client of the good server
 * @v: verbs
 * @fd: file of rdma_cm
 * @id: identifier
 * @qp: QP
 * @room: memory for sent and received data
 * @mr: region of @room
 * @offer: memory of the server
 * @began: when the connect was called
 */
struct client {
	struct verbs v;
	int fd;
	__u32 id;
	struct ibv_qp *qp;
	__u8 *room;
	struct ibv_mr *mr;
	struct offer offer;
	double began;
};

void client_open(struct client *c, int side);
void client_connect(struct client *c, int to, __u16 port);
void client_post(struct client *c, enum ibv_wr_opcode opcode, size_t at);
enum ibv_wc_status client_wait(struct client *c, int count);
enum ibv_wc_status client_try_round(struct client *c, __u32 round);
void client_round(struct client *c, __u32 round);
void client_close(struct client *c);

#endif /* KIW_ATTACK_CLIENT_H */
