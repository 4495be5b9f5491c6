#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""mutated.py DEVICE ADDRESS PORT

The other end of the wire peer's changed sessions (scripts/peer/mutate.py). Accepts every
connection and grants memory to it in the Reply; when the connection is there it Reads, Writes
and Sends. When it has ended, all around the memory that the peer may write must be as it was:
else that is said, and the status is 1. SIGTERM ends all connections and the program.

On kiwarp-ext what is granted is a window of type 2, which is bound before the Read; it also Writes
with immediate and adds to a word of the peer's.
"""

import contextlib
import ctypes
import mmap
import signal
import struct
import sys

from pyverbs import enums
from pyverbs.mr import MR, MW, MWBindInfo
from pyverbs.pyverbs_error import PyverbsError
from pyverbs.wr import SGE, RecvWR, SendWR

import rdmacm
import verbs
import verbs_base

GRANT = struct.Struct(">QII?")  # address, STag, octets, whether messages of RFC 7306 are sent
GRANTED = 5000                  # octets
BASE, SOURCE, SINK = 0x7f00_0000_1003, 0x1a2b3c01, 0x1a2b3d02   # of scripts/peer/rping.py
AROUND = 1000                   # octets that nobody may write, on both sides
CANARY = b"\xa5" * AROUND
RECEIVES, ROOM = 8, 1000
READS = 1 + verbs_base.IS_EXT   # that may be outstanding: with the atomic operation
BINDABLE = verbs_base.LOCAL | enums.IBV_ACCESS_MW_BIND
REMOTE = verbs_base.RREAD | verbs_base.RWRITE | enums.IBV_ACCESS_REMOTE_ATOMIC
WORD = BASE + 5                 # its address is a multiple of 8


class Memory:
    """SIZE bytes of registered memory, between memory that is not registered."""

    def __init__(self, end, size, access=verbs_base.LOCAL):
        self.size, self.room = size, mmap.mmap(-1, size + 2 * AROUND)
        self.room[:] = b"\xa5" * len(self.room)
        self.addr = ctypes.addressof(ctypes.c_char.from_buffer(self.room)) + AROUND
        self.mr = MR(end.pd, size, access, address=self.addr)

    def sge(self, at=0, size=None):
        return self.addr + at, size or self.size, self.mr.lkey

    def close(self):
        self.mr.close()
        return self.room[:AROUND] == CANARY and self.room[AROUND + self.size:] == CANARY


class Session:
    """A connection and its memory."""

    def __init__(self, end, event):
        self.end = end
        self.conn = verbs_base.Conn()
        self.conn.cmid = rdmacm.Id(end.chan, event.id)
        self.number = event.id
        self.memory = []
        self.window = self.bind = None

    def accept(self):
        end, conn = self.end, self.conn
        end._resources(conn, {"depth": 16})
        self.memory = [Memory(end, GRANTED, BINDABLE if verbs_base.IS_EXT else verbs_base.ALL),
                       Memory(end, RECEIVES * ROOM), Memory(end, 2000), Memory(end, 3000)]
        for n in range(RECEIVES):
            conn.qp.post_recv(RecvWR(wr_id=n, num_sge=1,
                                     sg=[SGE(*self.memory[1].sge(n * ROOM, ROOM))]))
        grant = self.memory[0]
        stag = self._prepare(grant) if verbs_base.IS_EXT else grant.mr.rkey
        conn.cmid.accept(conn.qp.qp_num, READS, READS,
                         GRANT.pack(grant.addr, stag, GRANTED, verbs_base.IS_EXT))

    def _prepare(self, grant):
        """A work request that binds a window to memory; return the STag that it will have."""
        self.window = MW(self.end.pd, enums.IBV_MW_TYPE_2)
        self.bind = SendWR(opcode=enums.IBV_WR_BIND_MW)
        self.bind.set_bind_wr(self.window, MWBindInfo(grant.mr, grant.addr, GRANTED, REMOTE))
        return self.bind.rkey

    def _work_more(self):
        """What kiwarp-ext has more. The peer has all of it when it has the Read."""
        tell = SendWR(wr_id=4, opcode=enums.IBV_WR_RDMA_WRITE_WITH_IMM, num_sge=1, imm_data=7,
                      sg=[SGE(*self.memory[3].sge(0, 100))])
        tell.set_wr_rdma(SINK, BASE)
        add = SendWR(wr_id=5, opcode=enums.IBV_WR_ATOMIC_FETCH_AND_ADD, num_sge=1,
                     sg=[SGE(*self.memory[2].sge(0, 8))])
        add.set_wr_atomic(SINK, WORD, 1, 0)
        for wr in (self.bind, tell, add):
            self.conn.qp.post_send(wr)

    def work(self):
        """A Read, a Write and a Send, as soon as the peer has sent something."""
        self.end.conns[self.number] = self.conn
        if self.window:
            self._work_more()
        _, _, sink, source = self.memory
        ask = {"id": 1, "op": "RDMA_READ", "flags": [], "sge": [sink.sge()], "raddr": BASE,
               "rkey": SOURCE}
        tell = {"id": 2, "op": "RDMA_WRITE", "flags": [], "sge": [source.sge()], "raddr": BASE,
                "rkey": SINK}
        say = {"id": 3, "op": "SEND", "flags": ["SIGNALED"], "sge": [source.sge(0, 16)]}
        self.end.post_send(self.number, ask, tell, say)

    def close(self):
        """Return whether memory that the peer must not write is unchanged."""
        self.end.conns.pop(self.number, None)
        self.conn.close()
        if self.window:
            self.window.close()
        return all([m.close() for m in self.memory])    # every one is to be closed


class Server:
    """All sessions."""

    def __init__(self, device, addr, port):
        self.end = verbs.End(device)
        self.end.listen(addr, 128, int(port))
        self.sessions, self.is_over = {}, False
        signal.signal(signal.SIGTERM, self._stop)

    def _stop(self, *_):
        self.is_over = True

    def _take(self, event):
        """Return whether memory that the peers must not write is unchanged."""
        session = self.sessions.get(event.id)
        if event.name == "CONNECT_REQUEST":
            session = Session(self.end, event)
            self.sessions[event.id] = session
            with contextlib.suppress(OSError, PyverbsError):
                session.accept()
        elif event.name == "ESTABLISHED":
            with contextlib.suppress(OSError, PyverbsError):
                session.work()
        elif session:
            return self.sessions.pop(event.id).close()
        return True

    def run(self):
        is_same = True
        while is_same and not self.is_over:
            if self.end.chan.ready(0.1):
                is_same = self._take(self.end.chan.event())
        return all([s.close() for s in self.sessions.values()]) and is_same


def main(device, addr, port):
    server = Server(device, addr, port)
    print("listens", flush=True)
    if server.run():
        return 0
    print("memory that was not granted has changed", flush=True)
    return 1


sys.exit(main(*sys.argv[1:]))
