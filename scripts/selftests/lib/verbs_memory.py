# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Regions, dma-bufs, and the memory beneath them. Part of End in verbs.py."""

import ctypes
import fcntl
import mmap
import os
import re
import resource
import struct
import subprocess
import threading

from pyverbs.mr import MR
from pyverbs.pd import PD
from pyverbs.pyverbs_error import PyverbsRDMAError

from verbs_base import (ALL, CMD_DEREG_MR, CMD_REG_MR, CMD_REREG_MR, DRIVER, EXPORTER,
                        EXPORTER_KINDS, EXPORTER_MAGIC, OBJECT_MR, REG_DMABUF_MR, REREG_PD,
                        UDMABUF_CREATE, VERBS_IOCTL, Failed, expect)


class Memory:
    """Regions, dma-bufs, and the memory beneath them."""

    def mr(self, size, access=ALL, offset=0):
        """Return (number, address, lkey, rkey) of memory that begins OFFSET octets
        behind a page border, all ones."""
        room = mmap.mmap(-1, max(offset + size, 1))
        addr = ctypes.addressof(ctypes.c_char.from_buffer(room)) + offset
        ctypes.memset(addr, 0xff, size)
        mr = MR(self.pd, size, access, address=addr)
        num = self._number()
        self.mrs[num] = (mr, room)
        return num, addr, mr.lkey, mr.rkey

    def mr_of(self, room, size, access=ALL):
        """Like mr(), of existing memory."""
        addr = ctypes.addressof(ctypes.c_char.from_buffer(room))
        mr = MR(self.pd, size, access, address=addr)
        num = self._number()
        self.mrs[num] = (mr, room)
        return num, addr, mr.lkey, mr.rkey

    def mr_private(self, size, flags=0):
        """Like mr(), of memory of which a child process has a copy."""
        flags |= mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
        room = mmap.mmap(-1, size, flags=flags)
        room[:] = b"\xff" * size
        return self.mr_of(room, size)

    def mr_refused(self, kind, access):
        """The errno of registering two pages, of which the second is as KIND says."""
        size = 2 * mmap.PAGESIZE
        prot = {"plain": mmap.PROT_READ | mmap.PROT_WRITE, "read-only": mmap.PROT_READ,
                "forbidden": 0}[kind]
        room = mmap.mmap(-1, size)
        addr = ctypes.addressof(ctypes.c_char.from_buffer(room))
        second = ctypes.c_void_p(addr + mmap.PAGESIZE)
        expect(ctypes.CDLL(None).mprotect(second, mmap.PAGESIZE, prot), 0, "mprotect")
        try:
            MR(self.pd, size, access, address=addr).close()
        except PyverbsRDMAError as error:
            return error.error_code
        return 0

    def fork(self, addr, size):
        """A child that writes to its copy of the memory, and goes on until fork_end()."""
        ready, self.child_end = os.pipe(), os.pipe()
        self.child = os.fork()
        if self.child == 0:
            ctypes.memset(addr, 0xc5, size)
            os.close(self.child_end[1])
            os.write(ready[1], b"x")
            os.read(self.child_end[0], 1)
            os._exit(0)     # pylint: disable=protected-access
        os.read(ready[0], 1)
        for fd in ready:
            os.close(fd)

    def fork_end(self):
        for fd in self.child_end:
            os.close(fd)
        expect(os.waitpid(self.child, 0)[1], 0, "child's status")

    def mr_iova(self, size, iova, access=ALL):
        """Like mr(), addressed by peers by IOVA. pyverbs 44 has no ibv_reg_mr_iova()."""
        room = mmap.mmap(-1, size)
        addr = ctypes.addressof(ctypes.c_char.from_buffer(room))
        ctypes.memset(addr, 0xff, size)
        answer = (ctypes.c_uint32 * 8)()
        cmd = struct.pack("=IHHQQQQIIQ", CMD_REG_MR, 14, 5, ctypes.addressof(answer), addr,
                          size, iova, self.pd.handle, access, 0)
        os.write(self.ctx.obj.cmd_fd, cmd)
        num = self._number()
        self.raw_mrs[num] = (answer[0], room)
        return num, addr, answer[1], answer[2]

    def mr_again(self, num, flags, size=0, iova=0, access=0, shift=0):
        """
        Register what mr_iova() returned anew: (errno, lkey, rkey). TRANS: SIZE octets at
        the IOVA, of memory that begins SHIFT octets behind where it did. PD: a new one.
        The stock provider has no such call.
        """
        handle, room = self.raw_mrs[num]
        if flags & REREG_PD:
            self.other_pd = PD(self.ctx.obj)
        pd = self.other_pd if flags & REREG_PD else self.pd
        addr = ctypes.addressof(ctypes.c_char.from_buffer(room)) + shift
        answer = (ctypes.c_uint32 * 2)()
        cmd = struct.pack("=IHHQIIQQQII", CMD_REREG_MR, 14, 2, ctypes.addressof(answer),
                          handle, flags, addr, size, iova, pd.handle, access)
        try:
            os.write(self.ctx.obj.cmd_fd, cmd)
        except OSError as exc:
            return exc.errno, 0, 0
        return 0, answer[0], answer[1]

    def dmabuf(self, size):
        """Return (number, address) of a dma-buf of SIZE octets, all ones."""
        memfd = os.memfd_create("dmabuf", os.MFD_ALLOW_SEALING)
        os.truncate(memfd, size)
        fcntl.fcntl(memfd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK)
        room = mmap.mmap(memfd, size)
        addr = ctypes.addressof(ctypes.c_char.from_buffer(room))
        ctypes.memset(addr, 0xff, size)
        with open("/dev/udmabuf", "rb") as dev:
            fd = fcntl.ioctl(dev, UDMABUF_CREATE,
                             bytearray(struct.pack("=IIQQ", memfd, 1, 0, size)))
        os.close(memfd)
        num = self._number()
        self.dmabufs[num] = (fd, room)
        return num, addr

    def exported(self, kind, size):
        """Return the number of a dma-buf of one of EXPORTER_KINDS; octet N is N modulo 251."""
        with open(f"/dev/{EXPORTER}", "rb") as dev:
            fd = fcntl.ioctl(dev, EXPORTER_MAGIC + EXPORTER_KINDS.index(kind), size)
        num = self._number()
        self.dmabufs[num] = (fd, None)
        return num

    @staticmethod
    def exports_held():
        """How often the CPU's access to those has begun and not ended, and their mappings."""
        with open(f"/sys/module/{EXPORTER}/parameters/held", encoding="ascii") as f:
            return f.read().split()

    def dmabuf_close(self, num):
        """Its memory stays, so that the case can examine it."""
        os.close(self.dmabufs[num][0])

    def mr_dmabuf(self, buf, offset, size, iova, access=ALL):
        """
        Register a part of a dma-buf: (errno, number, lkey, rkey). A BUF that is no number
        of one is a file descriptor. The stock provider has no such call.
        """
        fd, room = self.dmabufs.get(buf, (buf, None))
        keys = (ctypes.c_uint32 * 2)()
        addr = ctypes.addressof(keys)
        # Number, octets, value or address of each attribute; the last two are written.
        attrs = ((0, 0, 0), (1, 0, self.pd.handle), (2, 8, offset), (3, 8, size), (4, 8, iova),
                 (5, 4, fd), (6, 4, access), (7, 4, addr), (8, 4, addr + 4))
        call = struct.pack("=HHHHQII", 24 + 16 * len(attrs), OBJECT_MR, REG_DMABUF_MR,
                           len(attrs), 0, DRIVER, 0)
        call += b"".join(struct.pack("=HHHHQ", n, octets, 1, 0, value)
                         for n, octets, value in attrs)
        call = bytearray(call)
        try:
            fcntl.ioctl(self.ctx.obj.cmd_fd, VERBS_IOCTL, call)
        except OSError as exc:
            return exc.errno, 0, 0, 0
        num = self._number()
        self.raw_mrs[num] = (struct.unpack_from("=Q", call, 24 + 8)[0], room)
        return 0, num, keys[0], keys[1]

    def mr_dmabuf_limited(self, buf, size, limit):
        """The errno of mr_dmabuf() in a process without rights that may pin LIMIT octets."""
        child = os.fork()
        if child == 0:
            resource.setrlimit(resource.RLIMIT_MEMLOCK, (limit, limit))
            os.setuid(65534)
            os._exit(self.mr_dmabuf(buf, 0, size, 0)[0])    # pylint: disable=protected-access
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

    @staticmethod
    def shown(kind, pattern):
        """Matches of PATTERN in `rdma resource show KIND`, of all devices."""
        text = subprocess.run(["rdma", "-dd", "resource", "show", kind], check=True,
                              capture_output=True, text=True).stdout
        return re.findall(pattern, text)

    def mr_kinds(self):
        """What `rdma resource` says that the regions of all devices are."""
        return sorted(self.shown("mr", r"drv_kind (\S+)"))

    def close_mr(self, num):
        if num in self.raw_mrs:
            handle, _ = self.raw_mrs.pop(num)
            cmd = struct.pack("=IHHI", CMD_DEREG_MR, 3, 0, handle)
            os.write(self.ctx.obj.cmd_fd, cmd)
        else:
            self.mrs.pop(num)[0].close()

    def withdraw(self, num):
        """Deregister a region, and fill its memory, which stays until close_mr()."""
        mr, room = self.mrs[num]
        mr.close()
        room[:] = b"\x55" * len(room)

    def is_as_withdrawn(self, num):
        room = self.mrs[num][1]
        return room[:] == b"\x55" * len(room)

    @staticmethod
    def protect(addr, size, writable):
        """Whether the process itself may write to whole pages."""
        prot = mmap.PROT_READ | (mmap.PROT_WRITE if writable else 0)
        if ctypes.CDLL(None).mprotect(ctypes.c_void_p(addr), ctypes.c_size_t(size), prot):
            raise Failed("mprotect")

    @staticmethod
    def peek(addr, size):
        return ctypes.string_at(addr, size)

    @staticmethod
    def poke(addr, data):
        ctypes.memmove(addr, data, len(data))

    def scribble(self, addr, size):
        """Keep changing memory, until scribble_end()."""
        stop = threading.Event()

        def work():
            n = 0
            while not stop.is_set():
                n += 1
                ctypes.memset(addr, n & 0xff, size)

        thread = threading.Thread(target=work)
        thread.start()
        self.scribbler = (stop, thread)

    def scribble_end(self):
        self.scribbler[0].set()
        self.scribbler[1].join()
