// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * A TCG plugin of QEMU (API 1) that counts the instructions the guest executes: in user mode,
 * in the kernel, and for each page of the kernel's modules. Whenever the guest executes the
 * instruction MARK, which does nothing, it writes a line with the counts so far to the file
 * given as out=FILE: user, kernel without modules, and PAGE:COUNT of each page in use. With
 * blocks=on, the line has the counts since the line before, and, instead of those of the kernel
 * without modules and of pages, 0 and ADDRESS:COUNT of each block of the kernel and its modules
 * that was executed. A block is what QEMU translates at once: code that ends with a branch, at
 * most. Each repetition of a string instruction counts as an instruction. All but the first are a
 * block of their own. If that copies or fills memory, it is rep:ADDRESS:COUNT.
 *
 * There is only one virtual CPU, so the counters need not be atomic.
 */
#include "qemu.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT		__attribute__((visibility("default")))
#define API		1
#define INLINE_ADD	0
#define NO_REGS		0

#define KERNEL		0xffff000000000000ULL
#define MODULES		0xffffffffa0000000ULL
#define MODULES_END	0xffffffffff000000ULL
#define PAGE_SHIFT	12
#define PAGES		((MODULES_END - MODULES) >> PAGE_SHIFT)

EXPORT int qemu_plugin_version = API;

/* More than blocks of code that a kernel executes */
#define BLOCKS		0x100000U

/* A nopl whose address spells KIW1, as in bench.c */
static const unsigned char mark[] = { 0x0f, 0x1f, 0x84, 0x00, 'K', 'I', 'W', '1' };

static __u64 user, kernel, modules[PAGES];
static FILE *out;

/* Open addressing; all blocks of the kernel and its modules, or NULL: count pages */
static struct block {
	__u64 address;
	__u64 count;
	int is_rep;
} *blocks;

static void print_blocks(void)
{
	for (size_t i = 0; i < BLOCKS; i++) {
		if (blocks[i].count)
			fprintf(out, " %s%llx:%llu", blocks[i].is_rep ? "rep:" : "",
				blocks[i].address, blocks[i].count);
		blocks[i].count = 0;
	}
}

static void print_pages(void)
{
	for (size_t i = 0; i < PAGES; i++)
		if (modules[i])
			fprintf(out, " %llx:%llu", MODULES + ((__u64)i << PAGE_SHIFT),
				modules[i]);
}

static void snapshot(unsigned int vcpu, void *data)
{
	(void)vcpu;
	(void)data;
	fprintf(out, "%llu %llu", user, kernel);
	if (blocks) {
		print_blocks();
		user = 0;
		kernel = 0;
	} else {
		print_pages();
	}
	fputc('\n', out);
	fflush(out);
}

/* The block at @address, added if it is new. A table that is full counts it as kernel. */
static __u64 *block_counter(__u64 address, int is_rep)
{
	size_t at = (address * 0x9e3779b97f4a7c15ULL) >> 44;

	for (size_t i = 0; i < BLOCKS; i++, at = (at + 1) % BLOCKS) {
		if (!blocks[at].address)
			blocks[at].address = address;
		if (blocks[at].address != address)
			continue;
		/* Modules may have been unloaded, and other code be there now. */
		blocks[at].is_rep = is_rep;
		return &blocks[at].count;
	}
	return &kernel;
}

/* Is it rep movs or rep stos, with a REX prefix or without? */
static int is_rep_string(const struct qemu_plugin_insn *insn)
{
	const unsigned char *code = qemu_plugin_insn_data(insn);
	size_t opcode = qemu_plugin_insn_size(insn) - 1;

	if (opcode < 1 || opcode > 2 || code[0] != 0xf3 || (opcode == 2 && code[1] >> 4 != 4))
		return 0;
	return (code[opcode] & ~1) == 0xa4 || (code[opcode] & ~1) == 0xaa;
}

static __u64 *counter_of(struct qemu_plugin_tb *tb)
{
	__u64 address = qemu_plugin_tb_vaddr(tb);

	if (address < KERNEL)
		return &user;
	if (blocks)
		return block_counter(address,
				     is_rep_string(qemu_plugin_tb_get_insn(tb, 0)));
	if (address < MODULES || address >= MODULES_END)
		return &kernel;
	return &modules[(address - MODULES) >> PAGE_SHIFT];
}

static void translate(__u64 id, struct qemu_plugin_tb *tb)
{
	size_t count = qemu_plugin_tb_n_insns(tb);

	(void)id;
	qemu_plugin_register_vcpu_tb_exec_inline(tb, INLINE_ADD, counter_of(tb), count);
	for (size_t i = 0; i < count; i++) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);

		if (qemu_plugin_insn_size(insn) == sizeof(mark) &&
		    !memcmp(qemu_plugin_insn_data(insn), mark, sizeof(mark)))
			qemu_plugin_register_vcpu_insn_exec_cb(insn, snapshot, NO_REGS, NULL);
	}
}

/**
 * qemu_plugin_install() - called by QEMU
 * @id: of this plugin
 * @info: about the emulator
 * @argc: number of arguments
 * @argv: arguments: out=FILE, blocks=on
 *
 * Context: QEMU starts.
 * Return: 0, or -1: there is no file to write to, or no memory.
 */
EXPORT int qemu_plugin_install(__u64 id, const void *info, int argc, char **argv)
{
	int has_blocks = 0;

	(void)info;
	for (int i = 0; i < argc; i++) {
		if (!strncmp(argv[i], "out=", 4))
			out = fopen(argv[i] + 4, "w");
		else if (!strcmp(argv[i], "blocks=on"))
			has_blocks = 1;
	}
	if (has_blocks)
		blocks = calloc(BLOCKS, sizeof(*blocks));
	if (!out || (has_blocks && !blocks))
		return -1;
	qemu_plugin_register_vcpu_tb_trans_cb(id, translate);
	return 0;
}
