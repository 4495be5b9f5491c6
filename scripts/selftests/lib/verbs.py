#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Verbs between two hosts, with the distribution's own pyverbs.

    verbs.py agent DEVICE ADDRESS        on one host: does as it is told
    verbs.py run DEVICE ADDRESS CASE...  on the other: runs cases against it

A case is written once, from above: it has an End here and a Remote there that
do the same things. Prints "ok CASE" or what went wrong and "not ok CASE".
The cases are in verbs_cases.py, verbs_more_cases.py, verbs_queue_cases.py and verbs_cm_cases.py.
"""

import contextlib
import ctypes
import faulthandler
import fcntl
import mmap
import os
import pickle
import re
import resource
import select
import socket
import struct
import subprocess
import sys
import threading
import time
import traceback

import rdmacm
from pyverbs import enums
from pyverbs.cq import CQ, CompChannel
from pyverbs.device import Context
from pyverbs.mr import MR
from pyverbs.pd import PD
from pyverbs.pyverbs_error import PyverbsRDMAError
from pyverbs.pyverbs_error import PyverbsRDMAError
from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr
from pyverbs.srq import SRQ, SrqAttr, SrqInitAttr
from pyverbs.wr import SGE, RecvWR, SendWR

SLOW = int(os.environ.get("KIW_SLOW", "1"))
PATIENCE = 10 * SLOW        # seconds for anything that is to happen
# Seconds a case may take: those that can take any time do it twice
CASE_SECONDS = 3 * PATIENCE + 2 * int(os.environ.get("KIW_SOAK", "0"))
CONTROL_PORT = 7700
RDMA_PORT = 7701

LOCAL = int(enums.IBV_ACCESS_LOCAL_WRITE)
RREAD = int(enums.IBV_ACCESS_REMOTE_READ)
RWRITE = int(enums.IBV_ACCESS_REMOTE_WRITE)
ALL = LOCAL | RREAD | RWRITE

CMD_REG_MR, CMD_REREG_MR, CMD_DEREG_MR, CMD_CREATE_CQ = 9, 11, 13, 18    # ib_user_verbs.h
REREG_TRANS, REREG_PD, REREG_ACCESS = 1, 2, 4
VERBS_IOCTL = 0xc0181b01            # rdma_user_ioctl_cmds.h
DRIVER_SIW, OBJECT_MR, REG_DMABUF_MR = 18, 7, 4
UDMABUF_CREATE = 0x40187542         # linux/udmabuf.h
EXPORTER, EXPORTER_MAGIC = "kiwarp_exporter", 0xf700     # ktest/exporter.c
EXPORTER_KINDS = ("plain", "read-only", "no vmap", "I/O memory", "busy", "no memory")


def names(prefix):
    """The enumerators of a family: value to the rest of the name."""
    return {v: k[len(prefix):] for k, v in vars(enums).items() if k.startswith(prefix)}


STATUS = names("IBV_WC_")
STATUS = {v: n for v, n in STATUS.items() if n == "SUCCESS" or n.endswith("_ERR")}
ASYNC_EVENT = names("IBV_EVENT_")
STATE = names("IBV_QPS_")


class Failed(Exception):
    """Something did not happen, or not as it should."""


def expect(got, wanted, what=""):
    if got != wanted:
        raise Failed(f"{what or 'value'}: got {got!r}, wanted {wanted!r}")


def errno_of(call):
    """0, or why CALL failed."""
    try:
        call()
    except OSError as error:
        return error.errno
    return 0


def event_fds():
    """File descriptors of event channels, of the CM and of devices."""
    found = set()
    for fd in os.listdir("/proc/self/fd"):
        with contextlib.suppress(FileNotFoundError):
            if "infiniband" in os.readlink(f"/proc/self/fd/{fd}"):
                found.add(int(fd))
    return found


class Watched:
    """What makes a file descriptor: pyverbs does not tell which, and only blocks."""

    def __init__(self, make, without=lambda obj: ()):
        before = event_fds()
        self.obj = make()
        self.fd, = event_fds() - before - set(without(self.obj))

    def ready(self, seconds=0.0):
        poll = select.poll()
        poll.register(self.fd, select.POLLIN)
        return bool(poll.poll(seconds * 1000))


class Conn:
    """A connection's objects."""

    def __init__(self):
        self.cmid = self.chan = self.qp = self.scq = self.rcq = self.comp = None
        self.srq = None
        self.borrowed = False   # the CQs are those of another connection

    def close(self):
        cqs = () if self.borrowed else {self.scq, self.rcq}
        for obj in (self.qp, *cqs, self.comp and self.comp.obj, self.cmid, self.chan):
            if obj is not None:
                obj.close()


class End:
    """What a program on one host can do. Connections, MRs and SRQs go by number."""

    def __init__(self, device):
        self.ctx = Watched(lambda: Context(name=device), lambda c: (c.cmd_fd,))
        self.pd = PD(self.ctx.obj)
        self.next = 0
        self.conns, self.mrs, self.srqs = {}, {}, {}
        self.raw_mrs, self.tcp, self.dmabufs = {}, {}, {}
        self.tcp_server = None
        self.device = device
        self.listener = self.chan = None
        self.kept = []
        self.other_pd = None
        self.scribbler = None
        self.child = self.child_end = None
        self.consumer = self.drain = None

    def is_kiwarp(self):
        """Whether the device is the driver's: siw has no policy."""
        return os.path.exists(f"/sys/class/infiniband/{self.device}/policy")

    def _number(self):
        self.next += 1
        return self.next

    # Memory

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
        """As mr(), of memory that is there."""
        addr = ctypes.addressof(ctypes.c_char.from_buffer(room))
        mr = MR(self.pd, size, access, address=addr)
        num = self._number()
        self.mrs[num] = (mr, room)
        return num, addr, mr.lkey, mr.rkey

    def mr_private(self, size, flags=0):
        """As mr(), of memory that a child of ours has a copy of."""
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
        """As mr(), known to peers by IOVA. pyverbs 44 has no ibv_reg_mr_iova()."""
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
        """Its memory stays to be looked at."""
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
                           len(attrs), 0, DRIVER_SIW, 0)
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
        """What of `rdma resource show KIND`, of all devices, PATTERN finds."""
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

    # Connections

    def listen(self, addr, backlog=16, port=RDMA_PORT):
        self.chan, self.kept = rdmacm.Channel(), []
        self.listener = rdmacm.Id(self.chan)
        self.listener.listen(addr, port, backlog)

    def listen_end(self):
        self.listener.close()
        self.chan.close()
        self.listener = self.chan = None

    @staticmethod
    def _any_event(chan, wanted, seconds):
        if not chan.ready(seconds):
            raise Failed(f"no event {wanted} within {seconds} s")
        return chan.event()

    @staticmethod
    def _must_be(event, wanted):
        if event.name not in wanted.split():
            raise Failed(f"CM event {event.name} ({event.status}) instead of {wanted}")
        return event

    def _event(self, chan, wanted, seconds=PATIENCE):
        """The next event, which must be WANTED ("A", or "A B": either)."""
        return self._must_be(self._any_event(chan, wanted, seconds), wanted)

    def _listener_event(self, wanted, seconds=PATIENCE):
        """
        The next request, or the next event of the connections that were requested. These
        have no order among each other, as they are of different connections: those that
        are not asked for are kept.
        """
        def fits(event):
            return (event.name == "CONNECT_REQUEST") == (wanted == "CONNECT_REQUEST")

        event = next(filter(fits, self.kept), None)
        if event:
            self.kept.remove(event)
        while not event:
            event = self._any_event(self.chan, wanted, seconds)
            if not fits(event):
                self.kept.append(event)
                event = None
        return self._must_be(event, wanted)

    def _resources(self, conn, opts):
        depth = opts.get("depth", 64)
        ctx = self.ctx.obj
        if "qp_of" in opts:
            old = self.conns[opts["qp_of"]]
            conn.qp, conn.scq, conn.rcq = old.qp, old.scq, old.rcq
            old.qp = old.scq = old.rcq = None
            return
        if opts.get("comp"):
            conn.comp = Watched(lambda: CompChannel(ctx))
        if "cq_of" in opts:
            conn.scq = conn.rcq = self.conns[opts["cq_of"]].rcq
            conn.borrowed = True
        else:
            cqe = opts.get("cqe", 2 * depth)
            conn.rcq = CQ(ctx, opts.get("rcqe", cqe), None, conn.comp and conn.comp.obj, 0)
            conn.scq = conn.rcq if opts.get("one_cq") else CQ(ctx, opts.get("scqe", cqe))
        if "srq" in opts:
            conn.srq = self.srqs[opts["srq"]]
        cap = QPCap(max_send_wr=depth, max_recv_wr=depth, max_send_sge=6, max_recv_sge=6,
                    max_inline_data=80)
        conn.qp = QP(self.pd, QPInitAttr(qp_type=enums.IBV_QPT_RC, scq=conn.scq, rcq=conn.rcq,
                                         srq=conn.srq, cap=cap, sq_sig_all=0))
        attr = QPAttr(qp_state=enums.IBV_QPS_INIT)
        attr.qp_access_flags = ALL
        conn.qp.modify(attr, enums.IBV_QP_STATE | enums.IBV_QP_ACCESS_FLAGS)

    @staticmethod
    def _param(conn, opts):
        return (conn.qp.qp_num, opts.get("ird", 16), opts.get("ord", 16),
                opts.get("pdata", b""))

    def _resolved(self, addr, port):
        """A connection that can be connected: its number, and the connection."""
        conn = Conn()
        num = self._number()
        self.conns[num] = conn
        conn.chan = rdmacm.Channel()
        conn.cmid = rdmacm.Id(conn.chan)
        conn.cmid.resolve_addr(addr, port)
        self._event(conn.chan, "ADDR_RESOLVED")
        conn.cmid.resolve_route()
        self._event(conn.chan, "ROUTE_RESOLVED")
        return num, conn

    def connect_with(self, addr, qp_num, port):
        """As connect(), with a QP by its number; the connection has none of its own."""
        num, conn = self._resolved(addr, port)
        conn.cmid.connect(qp_num, 1, 1)
        return num

    def connect_errno(self, addr, qp_num, port):
        """Of connecting so."""
        num, conn = self._resolved(addr, port)
        error = errno_of(lambda: conn.cmid.connect(qp_num, 1, 1))
        self.close(num)
        return error

    def destroy_qp(self, num):
        """As close(), of the QP alone."""
        self.conns[num].qp.close()

    def connect(self, addr, opts, port=RDMA_PORT):
        """Begin to connect; an event is to follow. Return a number."""
        num, conn = self._resolved(addr, port)
        self._resources(conn, opts)
        conn.cmid.connect(*self._param(conn, opts))
        return num

    def event(self, num, wanted, seconds=PATIENCE):
        """The next event of a connection that began here."""
        return self._event(self.conns[num].chan, wanted, seconds)

    def has_event(self, num):
        return self.conns[num].chan.ready()

    def has_child_event(self):
        return any(e.name != "CONNECT_REQUEST" for e in self.kept) or self.chan.ready()

    def child_event(self, wanted, seconds=PATIENCE):
        """The next event of the listener's connections."""
        return self._listener_event(wanted, seconds)

    def request(self):
        """A connection that is asked for: its number and the event."""
        event = self._listener_event("CONNECT_REQUEST")
        conn = Conn()
        conn.cmid = rdmacm.Id(self.chan, event.id)
        num = self._number()
        self.conns[num] = conn
        return num, event

    def accept(self, num, opts):
        conn = self.conns[num]
        self._resources(conn, opts)
        conn.cmid.accept(*self._param(conn, opts))

    def reject(self, num, data=b""):
        self.conns[num].cmid.reject(data)

    def accept_errno(self, num, qp_num=None):
        """Of accepting with a QP of this number; without: with the connection's own."""
        conn = self.conns[num]
        if qp_num is None:
            qp_num = conn.qp.qp_num
        return errno_of(lambda: conn.cmid.accept(qp_num, 1, 1))

    def reject_errno(self, num):
        return errno_of(self.conns[num].cmid.reject)

    def qp_num(self, num):
        return self.conns[num].qp.qp_num

    def disconnect(self, num):
        self.conns[num].cmid.disconnect()

    def close(self, num):
        self.conns.pop(num).close()

    # QPs

    def state(self, num):
        return STATE[self.conns[num].qp.query(enums.IBV_QP_STATE)[0].qp_state]

    def read_limits(self, num):
        """Return what may be outstanding toward the peer, and from it."""
        mask = enums.IBV_QP_MAX_QP_RD_ATOMIC | enums.IBV_QP_MAX_DEST_RD_ATOMIC
        attr = self.conns[num].qp.query(mask)[0]
        return attr.max_rd_atomic, attr.max_dest_rd_atomic

    def to_error(self, num):
        self.conns[num].qp.modify(QPAttr(qp_state=enums.IBV_QPS_ERR), enums.IBV_QP_STATE)

    def modify(self, num, state):
        """To another state; return 0 or errno."""
        try:
            attr = QPAttr(qp_state=getattr(enums, "IBV_QPS_" + state))
            self.conns[num].qp.modify(attr, enums.IBV_QP_STATE)
        except PyverbsRDMAError as exc:
            return exc.error_code
        return 0

    def modifies(self, num, *states):
        """To each of STATES in turn; return what came of it, and the state then."""
        return [(self.modify(num, to), self.state(num)) for to in states]

    def modify_attr(self, num, *attrs, cur="RESET", to="RESET"):
        """Modify only these, to harmless values, and the states as given; 0 or errno."""
        attr, mask = QPAttr(qp_state=getattr(enums, "IBV_QPS_" + to), port_num=1), 0
        attr.cur_qp_state = getattr(enums, "IBV_QPS_" + cur)
        attr.path_mtu = enums.IBV_MTU_1024
        for name in attrs:
            mask |= getattr(enums, "IBV_QP_" + name)
        try:
            self.conns[num].qp.modify(attr, mask)
        except PyverbsRDMAError as exc:
            return exc.error_code
        return 0

    def qp_access(self, num):
        return self.conns[num].qp.query(enums.IBV_QP_ACCESS_FLAGS)[0].qp_access_flags

    def device_attr(self, *what):
        attr = self.ctx.obj.query_device()
        return {name: getattr(attr, name) for name in what}

    def idle_qp(self, max_send_wr=4, max_send_sge=1, max_inline_data=0, max_recv_wr=1,
                max_recv_sge=1, cq_of=None):
        """A QP without a connection: (its number or None, errno)."""
        conn = Conn()
        cap = QPCap(max_send_wr=max_send_wr, max_recv_wr=max_recv_wr,
                    max_send_sge=max_send_sge, max_recv_sge=max_recv_sge,
                    max_inline_data=max_inline_data)
        conn.borrowed = cq_of is not None
        conn.scq = conn.rcq = self.conns[cq_of].rcq if conn.borrowed else CQ(self.ctx.obj, 4)
        try:
            conn.qp = QP(self.pd, QPInitAttr(qp_type=enums.IBV_QPT_RC, scq=conn.scq,
                                             rcq=conn.rcq, cap=cap, sq_sig_all=0))
        except PyverbsRDMAError as exc:
            conn.close()
            return None, exc.error_code
        num = self._number()
        self.conns[num] = conn
        return num, 0

    def cq_errno(self, cqe):
        """What making a CQ of CQE entries gives."""
        try:
            CQ(self.ctx.obj, cqe).close()
        except PyverbsRDMAError as exc:
            return exc.error_code
        return 0

    def cq_raw(self, answer=32, part=b""):
        """
        Make a CQ as a provider that has room for ANSWER octets, and sends PART. 0 or errno;
        the CQ stays, to the end of the program.
        """
        room = (ctypes.c_uint8 * 64)()
        cmd = struct.pack("=IHHQQIIiI", CMD_CREATE_CQ, 10 + len(part) // 4, answer // 4,
                          ctypes.addressof(room), 0, 4, 0, -1, 0) + part
        try:
            os.write(self.ctx.obj.cmd_fd, cmd)
        except OSError as exc:
            return exc.errno
        return 0

    def async_event(self, wanted, seconds=PATIENCE):
        if not self.ctx.ready(seconds):
            raise Failed(f"no async event {wanted}")
        event = self.ctx.obj.get_async_event()
        name = ASYNC_EVENT[event.event_type]
        event.ack()
        expect(name, wanted, "async event")

    def async_wait(self, count, seconds=PATIENCE):
        """Names of COUNT events, sorted."""
        found = self.async_events()
        end = time.monotonic() + seconds
        while len(found) < count and self.ctx.ready(max(0, end - time.monotonic())):
            found += self.async_events()
        return sorted(found)

    def async_events(self):
        """Names of those that are there."""
        found = []
        while self.ctx.ready():
            event = self.ctx.obj.get_async_event()
            found.append(ASYNC_EVENT[event.event_type])
            event.ack()
        return found

    # Work

    def post_recv(self, num, wr_id, *sges):
        wr = RecvWR(wr_id=wr_id, num_sge=len(sges), sg=[SGE(*s) for s in sges])
        self.conns[num].qp.post_recv(wr)

    def post_send(self, num, *wrs):
        """A list of WRs, each a dictionary: see wr() of verbs_cases.py."""
        head = prev = None
        for w in wrs:
            flags = 0
            for f in w["flags"]:
                flags |= getattr(enums, "IBV_SEND_" + f)
            wr = SendWR(wr_id=w["id"], opcode=getattr(enums, "IBV_WR_" + w["op"]),
                        num_sge=len(w["sge"]), sg=[SGE(*s) for s in w["sge"]],
                        send_flags=flags)
            if "raddr" in w:
                wr.set_wr_rdma(w["rkey"], w["raddr"])
            if prev:
                prev.next_wr = wr
            head, prev = head or wr, wr
            w["keep"] = wr
        self.conns[num].qp.post_send(head)

    def _cq(self, num, queue):
        conn = self.conns[num]
        return conn.scq if queue == "send" else conn.rcq

    def qp_num(self, num):
        return self.conns[num].qp.qp_num

    def qp_nums(self, num, count, seconds=PATIENCE):
        """Of COUNT receive completions: (QP, wr_id), in their order."""
        found = []
        end = time.monotonic() + seconds
        while len(found) < count and time.monotonic() < end:
            wcs = self.conns[num].rcq.poll(count - len(found))[1]
            found += [(w.qp_num, w.wr_id) for w in wcs if STATUS[w.status] == "SUCCESS"]
        return found

    def caps(self, num):
        """Return what the queues of a QP hold: send WRs, receive WRs."""
        cap = self.conns[num].qp.query(enums.IBV_QP_CAP)[1].cap
        return cap.max_send_wr, cap.max_recv_wr

    def completions(self, num, queue):
        """Those that are there: (wr_id, status, octets)."""
        found = []
        while True:
            n, wcs = self._cq(num, queue).poll(32)
            found += [(w.wr_id, STATUS[w.status], w.byte_len) for w in wcs]
            if n < 32:
                return found

    def complete(self, num, queue, count=1, seconds=PATIENCE):
        """COUNT completions."""
        found = []
        end = time.monotonic() + seconds
        while len(found) < count:
            found += self.completions(num, queue)
            if time.monotonic() > end:
                raise Failed(f"{len(found)} of {count} {queue} completions "
                             f"within {seconds} s: {found}")
            if len(found) < count:
                time.sleep(0)
        if len(found) > count:
            raise Failed(f"more than {count} completions: {found}")
        return found

    def arm(self, num, solicited):
        self.conns[num].rcq.req_notify(solicited)

    def notified(self, num, seconds=0.0):
        """Whether the completion channel has an event; takes it."""
        conn = self.conns[num]
        if not conn.comp.ready(seconds):
            return False
        conn.comp.obj.get_cq_event(conn.rcq)
        conn.rcq.ack_events(1)
        return True

    def consume(self, num, count, solicited, sge):
        """
        In a thread, until consumed(): take COUNT receives, sleeping whenever the CQ was found
        empty after it had been armed; post each again.
        """
        seen = []

        def work():
            conn = self.conns[num]
            while len(seen) < count:
                conn.rcq.req_notify(solicited)
                found = self.completions(num, "recv")
                for wr_id, _, _ in found:
                    conn.qp.post_recv(RecvWR(wr_id=wr_id, num_sge=1, sg=[SGE(*sge)]))
                seen.extend(found)
                if not found and not self.notified(num, PATIENCE):
                    return

        thread = threading.Thread(target=work)
        thread.start()
        self.consumer = (thread, seen)

    def wait_consumed(self, count):
        """Until the thread has taken COUNT, or given up."""
        thread, seen = self.consumer
        while len(seen) < count and thread.is_alive():
            time.sleep(0.001)

    def consumed(self):
        """Their statuses."""
        self.consumer[0].join()
        return [c[1] for c in self.consumer[1]]

    # SRQs

    def srq_errno(self, max_wr=1, max_sge=1):
        """What making an SRQ gives."""
        try:
            SRQ(self.pd, SrqInitAttr(SrqAttr(max_wr=max_wr, max_sge=max_sge))).close()
        except PyverbsRDMAError as exc:
            return exc.error_code
        return 0

    def srq_shown(self):
        """Size and limit of the only SRQ of all devices: the stock provider has no query."""
        (size, limit), = self.shown("srq", r"drv_size (\d+) drv_limit (\d+)")
        return int(size), int(limit)

    def srq_modify(self, num, mask, max_wr, limit):
        try:
            self.srqs[num].modify(SrqAttr(max_wr=max_wr, srq_limit=limit), mask)
        except PyverbsRDMAError as exc:
            return exc.error_code
        return 0

    def srq(self, max_wr):
        num = self._number()
        self.srqs[num] = SRQ(self.pd, SrqInitAttr(SrqAttr(max_wr=max_wr, max_sge=6)))
        return num

    def srq_recv(self, num, wr_id, *sges):
        wr = RecvWR(wr_id=wr_id, num_sge=len(sges), sg=[SGE(*s) for s in sges])
        self.srqs[num].post_recv(wr)

    def srq_limit(self, num, limit):
        attr = SrqAttr()
        attr.srq_limit = limit
        self.srqs[num].modify(attr, enums.IBV_SRQ_LIMIT)

    def srq_close(self, num):
        self.srqs.pop(num).close()

    # Plain TCP, to be a peer that does not know how to behave

    def tcp_listen(self, addr, port):
        family = socket.AF_INET6 if ":" in addr else socket.AF_INET
        self.tcp_server = socket.create_server((addr, port), family=family)
        self.tcp_server.settimeout(PATIENCE)

    def tcp_accept(self):
        num = self._number()
        self.tcp[num] = self.tcp_server.accept()[0]
        return num

    def tcp_listen_end(self):
        self.tcp_server.close()

    def tcp_connect(self, addr, port=RDMA_PORT):
        sock = socket.create_connection((addr, port), PATIENCE)
        num = self._number()
        self.tcp[num] = sock
        return num

    def tcp_send(self, num, data):
        self.tcp[num].sendall(data)

    def tcp_close(self, num, reset=False):
        sock = self.tcp.pop(num)
        if reset:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        sock.close()

    def tcp_half_close(self, num):
        self.tcp[num].shutdown(socket.SHUT_WR)

    def tcp_recv(self, num, size):
        """What the peer sends, SIZE octets or until it closes."""
        data = b""
        self.tcp[num].settimeout(PATIENCE)
        with contextlib.suppress(ConnectionResetError):
            while len(data) < size:
                more = self.tcp[num].recv(size - len(data))
                if not more:
                    break
                data += more
        return data

    def tcp_drain(self, num):
        """Read, in a thread, until the end; see tcp_drained()."""
        def work():
            with contextlib.suppress(OSError):
                while sock.recv(1 << 20):
                    pass

        sock = self.tcp[num]
        self.drain = threading.Thread(target=work)
        self.drain.start()

    def tcp_drained(self, num):
        self.drain.join()
        self.tcp_close(num)

    def tcp_closed(self, num):
        """Wait until the peer closes; return the seconds that took."""
        began = time.monotonic()
        while self.tcp_recv(num, 4096):
            pass
        self.tcp_close(num)
        return time.monotonic() - began

    def counter(self, name):
        path = f"/sys/class/infiniband/{self.device}/ports/1/hw_counters/{name}"
        with open(path, encoding="ascii") as file:
            return int(file.read())

    def counter_above(self, name, value):
        """Wait for it. The core shows what is up to 10 ms old."""
        end = time.monotonic() + PATIENCE
        while self.counter(name) <= value:
            if time.monotonic() > end:
                raise Failed(f"{name} stays at {value}")
            time.sleep(0.01)

    def counters_become(self, wanted):
        """Wait until all of them are as WANTED says."""
        end = time.monotonic() + PATIENCE
        while (found := {name: self.counter(name) for name in wanted}) != wanted:
            if time.monotonic() > end:
                expect(found, wanted, "counters")
            time.sleep(0.01)

    def leftovers(self):
        """Whatever a case has not closed; closes it."""
        found = [kind for kind in ("conns", "srqs", "mrs", "raw_mrs", "tcp")
                 if getattr(self, kind)]
        for num in list(self.tcp):
            self.tcp_close(num)
        for num in list(self.conns):
            self.close(num)
        for num in list(self.srqs):
            self.srq_close(num)
        for num in list(self.mrs) + list(self.raw_mrs):
            self.close_mr(num)
        if self.listener:
            self.listen_end()
        self.async_events()
        return found


class Remote:
    """An End on the other host."""

    def __init__(self, sock):
        self.file = sock.makefile("rwb")

    def __getattr__(self, name):
        def call(*args, **kwargs):
            pickle.dump((name, args, kwargs), self.file)
            self.file.flush()
            fine, answer = pickle.load(self.file)
            if not fine:
                raise Failed(f"on the other host: {answer}")
            return answer
        return call


def serve(end, sock):
    """Do what a Remote asks for until it closes."""
    file = sock.makefile("rwb")
    while True:
        try:
            name, args, kwargs = pickle.load(file)
        except EOFError:
            return
        try:
            answer = (True, getattr(end, name)(*args, **kwargs))
        except Exception:   # pylint: disable=broad-except
            answer = (False, traceback.format_exc())
        pickle.dump(answer, file)
        file.flush()


def agent(device, addr):
    family = socket.AF_INET6 if ":" in addr else socket.AF_INET
    with socket.create_server((addr, CONTROL_PORT), family=family) as listener:
        sock, _ = listener.accept()
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    serve(End(device), sock)


def run(device, addr, wanted):
    import verbs_cases  # pylint: disable=import-outside-toplevel
    import verbs_more_cases  # pylint: disable=import-outside-toplevel
    import verbs_cm_cases  # pylint: disable=import-outside-toplevel
    import verbs_queue_cases  # pylint: disable=import-outside-toplevel
    modules = (verbs_cases, verbs_more_cases, verbs_queue_cases, verbs_cm_cases)
    sock = socket.create_connection((addr, CONTROL_PORT), PATIENCE)
    sock.settimeout(3 * PATIENCE)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    local, remote = End(device), Remote(sock)
    bad = 0
    for name in wanted:
        faulthandler.dump_traceback_later(CASE_SECONDS, exit=True)
        try:
            module = next(m for m in modules if hasattr(m, name))
            getattr(module, name)(local, remote, addr)
            left = local.leftovers() + remote.leftovers()
            expect(left, [], "left behind")
            print("ok", name, flush=True)
        except Exception:   # pylint: disable=broad-except
            bad += 1
            print(traceback.format_exc(), end="")
            print("not ok", name, flush=True)
            local.leftovers()
            remote.leftovers()
    faulthandler.cancel_dump_traceback_later()
    return 1 if bad else 0


def main():
    # verbs_cases imports this file by its name.
    sys.modules["verbs"] = sys.modules["__main__"]
    if len(sys.argv) == 4 and sys.argv[1] == "agent":
        agent(sys.argv[2], sys.argv[3])
        return 0
    if len(sys.argv) > 4 and sys.argv[1] == "run":
        return run(sys.argv[2], sys.argv[3], sys.argv[4:])
    print(__doc__, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
