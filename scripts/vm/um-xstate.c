// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Lets User Mode Linux run on hosts with AMX: a library to be preloaded.
 *
 * UML keeps the extended registers of its processes with PTRACE_GETREGSET and
 * PTRACE_SETREGSET and has room for 2696 bytes: AVX-512 and protection keys. A host with AMX
 * has 11008 and refuses to set fewer ("ptrace set fp regs failed, errno = 14"). So this
 * ptrace() gives UML the part that it has room for, and puts the rest, which is the process's
 * own and which no program in a guest uses, back when UML sets that part.
 *
 * UML traces from one thread.
 */
#define _GNU_SOURCE
#include <elf.h>
#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

/* Of the XSAVE area (Intel SDM 1, 13.4): where its header says which components follow */
#define XSTATE_BV	512
/* Components that are within the 2696 bytes: all up to protection keys */
#define XSTATE_SHORT	0x3ffUL

static unsigned long whole[65536 / sizeof(unsigned long)];

static unsigned long *xstate_bv(void *area)
{
	return (unsigned long *)((char *)area + XSTATE_BV);
}

/* Return: bytes of all registers of the process, now in @whole, or -1. */
static long get_whole(long pid)
{
	struct iovec iov = { whole, sizeof(whole) };

	if (syscall(SYS_ptrace, PTRACE_GETREGSET, pid, NT_X86_XSTATE, &iov) < 0)
		return -1;
	return iov.iov_len;
}

static long get_part(long pid, struct iovec *part)
{
	long len = get_whole(pid);

	if (len < 0)
		return -1;
	if (part->iov_len >= (size_t)len) {
		part->iov_len = len;
		memcpy(part->iov_base, whole, len);
	} else {
		memcpy(part->iov_base, whole, part->iov_len);
		*xstate_bv(part->iov_base) &= XSTATE_SHORT;
	}
	return 0;
}

static long set_part(long pid, const struct iovec *part)
{
	struct iovec iov = { whole, 0 };
	long len = get_whole(pid);
	unsigned long rest;

	if (len < 0)
		return -1;
	rest = *xstate_bv(whole) & ~XSTATE_SHORT;
	memcpy(whole, part->iov_base, part->iov_len < (size_t)len ? part->iov_len : (size_t)len);
	if (part->iov_len < (size_t)len)
		*xstate_bv(whole) |= rest;
	iov.iov_len = len;
	return syscall(SYS_ptrace, PTRACE_SETREGSET, pid, NT_X86_XSTATE, &iov);
}

/**
 * ptrace() - as that of the C library, but for the extended registers
 * @request: what to do
 *
 * Return: what was read, 0, or -1 and errno.
 */
long ptrace(enum __ptrace_request request, ...)
{
	long pid, addr, ret, word;
	void *data;
	va_list ap;

	va_start(ap, request);
	pid = va_arg(ap, int);
	addr = va_arg(ap, long);
	data = va_arg(ap, void *);
	va_end(ap);
	if (request == PTRACE_GETREGSET && addr == NT_X86_XSTATE)
		return get_part(pid, data);
	if (request == PTRACE_SETREGSET && addr == NT_X86_XSTATE)
		return set_part(pid, data);
	if (request < PTRACE_PEEKTEXT || request > PTRACE_PEEKUSER)
		return syscall(SYS_ptrace, request, pid, addr, data);
	/* The system call stores what it reads, the C library returns it. */
	ret = syscall(SYS_ptrace, request, pid, addr, &word);
	if (ret < 0)
		return ret;
	errno = 0;
	return word;
}
