/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * The part of QEMU's interface for TCG plugins (API 1) that plugin.c uses. No package has the
 * original header.
 */
#ifndef KIW_COUNT_QEMU_H
#define KIW_COUNT_QEMU_H

#include <stddef.h>
#include <linux/types.h>

struct qemu_plugin_tb;
struct qemu_plugin_insn;

typedef void (*tb_callback)(__u64 id, struct qemu_plugin_tb *tb);
typedef void (*insn_callback)(unsigned int vcpu, void *data);

void qemu_plugin_register_vcpu_tb_trans_cb(__u64 id, tb_callback callback);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);
__u64 qemu_plugin_tb_vaddr(const struct qemu_plugin_tb *tb);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *tb, size_t index);
const void *qemu_plugin_insn_data(const struct qemu_plugin_insn *insn);
size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *insn);
void qemu_plugin_register_vcpu_tb_exec_inline(struct qemu_plugin_tb *tb, int operation,
					      void *counter, __u64 value);
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *insn,
					    insn_callback callback, int flags, void *data);

#endif /* KIW_COUNT_QEMU_H */
