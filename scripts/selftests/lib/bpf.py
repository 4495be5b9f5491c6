#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""bpf.py deny|sockmap CGROUP: a BPF program on a cgroup, until standard input ends.

deny: no socket of IPv4 or IPv6 can be made by its processes.
sockmap: puts each stream that TCP accepts for them into a sockmap, as service meshes do. At the end
it prints how many it saw, and what came of the last, 0 or -errno.

Status 77: the kernel has no such programs. Nothing but the system call is used.
"""

import ctypes
import os
import platform
import struct
import sys

SYS_BPF = {"x86_64": 321, "aarch64": 280}
MAP_CREATE, MAP_LOOKUP, PROG_LOAD, PROG_ATTACH, PROG_DETACH = 0, 1, 5, 8, 9
ARRAY, SOCKMAP = 2, 15
CGROUP_SOCK, SOCK_OPS = 9, 13                   # program types
INET_SOCK_CREATE, CGROUP_SOCK_OPS = 2, 3        # where they are attached
PASSIVE_ESTABLISHED = 5
CALL_LOOKUP, CALL_SOCK_MAP_UPDATE = 1, 53
R0, R1, R2, R3, R4, R6, R10 = 0, 1, 2, 3, 4, 6, 10

LIBC = ctypes.CDLL(None, use_errno=True)


def bpf(command, attr):
    buf = ctypes.create_string_buffer(attr.ljust(128, b"\0"), 128)
    ret = LIBC.syscall(SYS_BPF[platform.machine()], command, buf, 128)
    if ret < 0:
        raise OSError(ctypes.get_errno(), f"bpf command {command}")
    return ret


def insn(code, dst=0, src=0, off=0, imm=0):
    return struct.pack("=BBhi", code, dst | src << 4, off, imm)


def mov(dst, imm):
    return insn(0xb7, dst, imm=imm)


def mov_reg(dst, src):
    return insn(0xbf, dst, src)


def add(dst, imm):
    return insn(0x07, dst, imm=imm)


def load_map(dst, fd):
    return insn(0x18, dst, 1, imm=fd) + insn(0)


def load_word(dst, src, off):
    return insn(0x61, dst, src, off)


def store_word(dst, off, src):
    return insn(0x63, dst, src, off)


def call(function):
    return insn(0x85, imm=function)


def jump_if(code, dst, imm, over):
    """OVER: bytes of the instructions to jump over."""
    return insn(code, dst, off=len(over) // 8, imm=imm) + over


EXIT = insn(0x95)


def make_map(kind, size):
    return bpf(MAP_CREATE, struct.pack("=IIII", kind, 4, 4, size))


def read_map(fd, key):
    key, value = ctypes.c_uint32(key), ctypes.c_int32()
    bpf(MAP_LOOKUP, struct.pack("=IIQQ", fd, 0, ctypes.addressof(key), ctypes.addressof(value)))
    return value.value


def deny():
    return mov(R0, 0) + EXIT


def sockmap(map_fd, said_fd):
    """Key 0 of SAID_FD: what the last call returned; key 1: the number of calls."""
    def slot(key):
        return (mov(R1, key) + store_word(R10, -4, R1) + load_map(R1, said_fd) +
                mov_reg(R2, R10) + add(R2, -4) + call(CALL_LOOKUP))
    update = (mov(R1, 0) + store_word(R10, -4, R1) + mov_reg(R1, R6) + load_map(R2, map_fd) +
              mov_reg(R3, R10) + add(R3, -4) + mov(R4, 0) + call(CALL_SOCK_MAP_UPDATE))
    note = (store_word(R10, -8, R0) + slot(0) +
            jump_if(0x15, R0, 0, load_word(R1, R10, -8) + store_word(R0, 0, R1)) +
            slot(1) + jump_if(0x15, R0, 0, load_word(R1, R0, 0) + add(R1, 1) +
                              store_word(R0, 0, R1)))
    return (mov_reg(R6, R1) + load_word(R1, R6, 0) +
            jump_if(0x55, R1, PASSIVE_ESTABLISHED, update + note) + mov(R0, 1) + EXIT)


def load(kind, where, program):
    licence, log = ctypes.create_string_buffer(b"GPL"), ctypes.create_string_buffer(65536)
    code = ctypes.create_string_buffer(program, len(program))
    attr = struct.pack("=IIQQIIQII16sII", kind, len(program) // 8, ctypes.addressof(code),
                       ctypes.addressof(licence), 1, len(log), ctypes.addressof(log), 0, 0, b"",
                       0, where)
    try:
        return bpf(PROG_LOAD, attr)
    except OSError:
        sys.stderr.write(log.value.decode())
        raise


def main():
    what, path = sys.argv[1:]
    try:
        if what == "deny":
            kind, where, program = CGROUP_SOCK, INET_SOCK_CREATE, deny()
        else:
            maps = make_map(SOCKMAP, 1), make_map(ARRAY, 2)
            kind, where, program = SOCK_OPS, CGROUP_SOCK_OPS, sockmap(*maps)
        prog = load(kind, where, program)
        group = os.open(path, os.O_RDONLY)
        bpf(PROG_ATTACH, struct.pack("=IIII", group, prog, where, 0))
    except (OSError, KeyError) as err:
        print("no BPF:", err)
        sys.exit(77)
    print("attached", flush=True)
    sys.stdin.read()
    bpf(PROG_DETACH, struct.pack("=IIII", group, prog, where, 0))
    if what == "sockmap":
        print("streams", read_map(maps[1], 1), "result", read_map(maps[1], 0))


main()
