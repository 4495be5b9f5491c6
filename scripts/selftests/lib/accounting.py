#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""How much kernel memory a process can use, and which cgroup is charged for it.

    accounting.py DEVICE cost KIND COUNT    bytes of kernel memory  that its cgroup is charged
                                            for each of COUNT objects
    accounting.py DEVICE exhaust KIND       objects until one is refused, when the cgroup may
                                            have ROOM more than it has: its errno
    accounting.py DEVICE connect ADDRESS    connect with a QP with long queues: the milliseconds
                                            that it takes when the cgroup may have all that it
                                            wants, and when it has more than memory.high
    accounting.py DEVICE hold KIND          as many as there can be: how many, with the
                                            protection domain, and the errno; until killed

KIND: mr; qp; or sparse: a QP whose number is so far from that of the one before that they share
little of the device's table. Runs in a cgroup of its own, of which the memory controller is on.
"""

import ctypes
import mmap
import pathlib
import signal
import sys
import time

from pyverbs import enums
from pyverbs.cq import CQ
from pyverbs.device import Context
from pyverbs.mr import MR
from pyverbs.pd import PD
from pyverbs.pyverbs_error import PyverbsRDMAError
from pyverbs.qp import QP, QPCap, QPInitAttr


ROOM = 2 << 20
NODE_SLOTS = 64          # XA_CHUNK_SIZE
MCL_CURRENT = 1          # bits/mman-linux.h


class Maker:
    """Makes objects and keeps them."""

    def __init__(self, device):
        self.context = Context(name=device)
        self.pd = PD(self.context)
        self.cq = None
        self.room = mmap.mmap(-1, mmap.PAGESIZE)
        self.addr = ctypes.addressof(ctypes.c_char.from_buffer(self.room))
        self.kept = []

    def mr(self):
        self.kept.append(MR(self.pd, mmap.PAGESIZE, enums.IBV_ACCESS_LOCAL_WRITE,
                            address=self.addr))

    def _qp(self):
        self.cq = self.cq or CQ(self.context, 2)
        return QP(self.pd, QPInitAttr(qp_type=enums.IBV_QPT_RC, scq=self.cq, rcq=self.cq,
                                      cap=QPCap(max_send_wr=1, max_recv_wr=1)))

    def qp(self):
        self.kept.append(self._qp())

    def sparse(self):
        """Numbers are given out in turn, so those in between are used up."""
        self.qp()
        for _ in range(NODE_SLOTS - 1):
            self._qp().close()


def group(name, mode="r"):
    """A file of this process's cgroup."""
    with open("/proc/self/cgroup", encoding="ascii") as file:
        path = file.read().strip().rsplit(":", 1)[1]
    return open(f"/sys/fs/cgroup{path}/{name}", mode, encoding="ascii")


def charged():
    """Kernel memory charged to the cgroup of this process, in bytes."""
    with group("memory.stat") as file:
        return int(dict(line.split() for line in file)["kernel"])


def limit():
    """Limit the cgroup to little more memory than it has, with nothing to reclaim."""
    ctypes.CDLL(None).mlockall(MCL_CURRENT)
    with group("memory.current") as file:
        most = int(file.read()) + ROOM
    with group("memory.max", "w") as file:
        file.write(str(most))


def connects(device, addr, high):
    """Milliseconds until a connection is established, for a cgroup with this memory.high. The QP
    is charged to that, but this process has left it: only the kernel's threads can be slowed."""
    # It imports much that an exhausted cgroup has no room for.
    import verbs   # pylint: disable=import-outside-toplevel
    from verbs_base import RDMA_PORT   # pylint: disable=import-outside-toplevel
    end = verbs.End(device)
    num, conn = end._resolved(addr, RDMA_PORT)
    end._resources(conn, {"depth": 16384, "cqe": 64})
    root = pathlib.Path("/sys/fs/cgroup")
    with group("cgroup.procs") as file:
        own = pathlib.Path(file.name).parent
    (root / "cgroup.procs").write_text("0", encoding="ascii")
    (own / "memory.high").write_text(high, encoding="ascii")
    before = time.monotonic()
    conn.cmid.connect(conn.qp.qp_num, 16, 16)
    end.event(num, "ESTABLISHED")
    took = (time.monotonic() - before) * 1000
    (own / "memory.high").write_text("max", encoding="ascii")
    (own / "cgroup.procs").write_text("0", encoding="ascii")
    end.close(num)
    return took


def main(device, what, kind, count=0):
    if what == "connect":
        print(*(round(connects(device, kind, high)) for high in ("max", "4096")))
        return
    make = getattr(Maker(device), kind)
    make()
    before = charged()
    if what == "exhaust":
        limit()
    made = 2
    try:
        for _ in range(int(count) if what == "cost" else sys.maxsize):
            make()
            made += 1
    except PyverbsRDMAError as error:
        if what == "exhaust":
            print(error.error_code)
            return
        print(made, error.error_code, flush=True)
        signal.pause()
    print((charged() - before) // int(count))


main(*sys.argv[1:])
