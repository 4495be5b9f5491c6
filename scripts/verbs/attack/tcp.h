/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Peers of plain TCP, and the frames of MPA that they send.
 */
#ifndef KIW_ATTACK_TCP_H
#define KIW_ATTACK_TCP_H

#include <stdbool.h>
#include <linux/types.h>

#define MPA_FRAME	24
#define MPA_REJECT	0x20
#define MPA_ENHANCED	0x10
/* RFC 6581: peer-to-peer, and RTRs by Send, Write, Read */
#define MPA_A		0x8000
#define MPA_B		0x4000
#define MPA_C		0x8000
#define MPA_D		0x4000

int tcp_listener(int side, __u16 port);
bool tcp_connect(int fd, const char *addr, __u16 port);
void tcp_close(int fd, bool is_reset);
int tcp_read(int fd, void *buf, int count, int ms);
int tcp_socket(int side);
void mpa_frame(__u8 *buf, const char *key, __u8 flags, __u16 ird, __u16 ord);
void mpa_request(__u8 *buf);

#endif /* KIW_ATTACK_TCP_H */
