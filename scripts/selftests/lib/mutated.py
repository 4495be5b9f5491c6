#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""mutated.py DEVICE ADDRESS PORT

The other end of the wire peer's changed sessions (scripts/peer/mutate.py). Accepts every
connection and grants memory to it in the Reply; when the connection is there it Reads, Writes
and Sends. When it has ended, all around the memory that the peer may write must be as it was:
else that is said, and the status is 1.
"""

import contextlib
import ctypes
import mmap
import struct
import sys

from pyverbs.mr import MR
from pyverbs.pyverbs_error import PyverbsError
from pyverbs.wr import SGE, RecvWR

import rdmacm
import verbs
import verbs_base

GRANT = struct.Struct(">QII")
GRANTED = 5000                  # octets
BASE, SOURCE, SINK = 0x7f00_0000_1003, 0x1a2b3c01, 0x1a2b3d02   # of scripts/peer/rping.py
AROUND = 1000                   # octets that nobody may write, on both sides
CANARY = b"\xa5" * AROUND
RECEIVES, ROOM = 8, 1000


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

    def accept(self):
        end, conn = self.end, self.conn
        end._resources(conn, {"depth": 16})
        self.memory = [Memory(end, GRANTED, verbs_base.ALL), Memory(end, RECEIVES * ROOM),
                       Memory(end, 2000), Memory(end, 3000)]
        for n in range(RECEIVES):
            conn.qp.post_recv(RecvWR(wr_id=n, num_sge=1,
                                     sg=[SGE(*self.memory[1].sge(n * ROOM, ROOM))]))
        grant = self.memory[0]
        conn.cmid.accept(conn.qp.qp_num, 1, 1, GRANT.pack(grant.addr, grant.mr.rkey, GRANTED))

    def work(self):
        """A Read, a Write and a Send, as soon as the peer has sent something."""
        self.end.conns[self.number] = self.conn
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
        return all([m.close() for m in self.memory])    # every one is to be closed


def main(device, addr, port):
    end = verbs.End(device)
    end.listen(addr, 128, int(port))
    sessions = {}
    while True:
        event = end.chan.event()
        session = sessions.get(event.id)
        if event.name == "CONNECT_REQUEST":
            session = Session(end, event)
            sessions[event.id] = session
            with contextlib.suppress(OSError, PyverbsError):
                session.accept()
        elif event.name == "ESTABLISHED":
            with contextlib.suppress(OSError, PyverbsError):
                session.work()
        elif session:
            del sessions[event.id]
            if not session.close():
                print("memory that was not granted has changed", flush=True)
                return 1


sys.exit(main(*sys.argv[1:]))
