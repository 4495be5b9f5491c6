// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * A TCG plugin of QEMU (API 1) that counts the instructions the guest executes: in user mode,
 * in the kernel, and for each page of the kernel's modules. Whenever the guest executes the
 * instruction MARK, which does nothing, it writes a line with the counts so far to the file
 * given as out=FILE: user, kernel without modules, and PAGE:COUNT of each page in use.
 *
 * There is only one virtual CPU, so the counters need not be atomic.
 */
#include "qemu.h"

#include <stdio.h>
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

/* A nopl whose address spells KIW1, as in bench.c */
static const unsigned char mark[] = { 0x0f, 0x1f, 0x84, 0x00, 'K', 'I', 'W', '1' };

static __u64 user, kernel, modules[PAGES];
static FILE *out;

static void snapshot(unsigned int vcpu, void *data)
{
	(void)vcpu;
	(void)data;
	fprintf(out, "%llu %llu", user, kernel);
	for (size_t i = 0; i < PAGES; i++)
		if (modules[i])
			fprintf(out, " %llx:%llu", MODULES + ((__u64)i << PAGE_SHIFT),
				modules[i]);
	fputc('\n', out);
	fflush(out);
}

static __u64 *counter_of(__u64 address)
{
	if (address < KERNEL)
		return &user;
	if (address < MODULES || address >= MODULES_END)
		return &kernel;
	return &modules[(address - MODULES) >> PAGE_SHIFT];
}

static void translate(__u64 id, struct qemu_plugin_tb *tb)
{
	size_t count = qemu_plugin_tb_n_insns(tb);

	(void)id;
	qemu_plugin_register_vcpu_tb_exec_inline(tb, INLINE_ADD,
						 counter_of(qemu_plugin_tb_vaddr(tb)), count);
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
 * @argv: arguments: out=FILE
 *
 * Context: QEMU starts.
 * Return: 0, or -1 when there is no file to write to.
 */
EXPORT int qemu_plugin_install(__u64 id, const void *info, int argc, char **argv)
{
	(void)info;
	for (int i = 0; i < argc; i++)
		if (!strncmp(argv[i], "out=", 4))
			out = fopen(argv[i] + 4, "w");
	if (!out)
		return -1;
	qemu_plugin_register_vcpu_tb_trans_cb(id, translate);
	return 0;
}
