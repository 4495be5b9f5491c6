/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * The driver's parts of responses, for the process that misuses system calls.
 */
#ifndef KIW_ABUSE_H
#define KIW_ABUSE_H

#include "../common.h"

/* Kinds of objects that one call of the write() ABI can create */
enum kind { CONTEXT, PD, MR, CQ, SRQ, QP, KINDS };

/* Where a process maps a ring, and how long the mapping is */
struct ring {
	__u64 key;
	size_t bytes;
};

/**
 * struct abi - the driver's parts of responses
 * @driver_id: of the ioctl() ABI
 * @bytes: their lengths
 * @ring: reads where a ring is from the driver's part @part; @is_sq: the send ring of a QP
 */
struct abi {
	__u32 driver_id;
	size_t bytes[KINDS];
	struct ring (*ring)(enum kind kind, const void *part, bool is_sq);
};

extern const struct abi siw_abi;
extern const struct abi rxe_abi;

#endif /* KIW_ABUSE_H */
