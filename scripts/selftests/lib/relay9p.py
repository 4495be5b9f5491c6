#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""relay9p.py DEVICE ADDRESS PORT COMMAND...

A server of 9p over RDMA: COMMAND is one that has 9p on standard input and output, and each message
of it is a Send. One connection at a time, with a COMMAND of its own. Says "listens", and "ended" when
a connection has.
"""

import contextlib
import os
import select
import subprocess
import sys

from pyverbs.pyverbs_error import PyverbsError
from pyverbs.wr import SGE, RecvWR, SendWR

import rdmacm
import verbs
from verbs_base import Conn, Failed

SLOTS = 32                  # what the kernel's client may have outstanding
SIZE = 1 << 16              # msize of the mount at most


class Connection:
    """One client, and the server's program for it."""

    def __init__(self, end, event, command):
        self.conn = Conn()
        self.conn.cmid = rdmacm.Id(end.chan, event.id)
        end._resources(self.conn, {"depth": 2 * SLOTS, "one_cq": True, "comp": True})
        self.end, (self.num, self.base, self.lkey, _) = end, end.mr(2 * SLOTS * SIZE)
        self.room = end.mrs[self.num][1]
        self.free = list(range(SLOTS, 2 * SLOTS))
        for slot in range(SLOTS):
            self.receive(slot)
        self.conn.rcq.req_notify()
        self.server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.conn.cmid.accept(self.conn.qp.qp_num, 1, 1)

    def receive(self, slot):
        sge = SGE(self.base + slot * SIZE, SIZE, self.lkey)
        self.conn.qp.post_recv(RecvWR(wr_id=slot, num_sge=1, sg=[sge]))

    def completions(self):
        """What the client sent goes to the server, in order."""
        with contextlib.suppress(PyverbsError):
            self.conn.comp.obj.get_cq_event(self.conn.rcq)
        self.conn.rcq.req_notify()
        while True:
            count, wcs = self.conn.rcq.poll(SLOTS)
            if not count:
                return
            for wc in wcs:
                self.completed(wc)

    def completed(self, wc):
        if wc.status:
            return          # flushed: an event is to follow
        if wc.wr_id >= SLOTS:
            self.free.append(wc.wr_id)
            return
        start = wc.wr_id * SIZE
        self.server.stdin.write(self.room[start:start + wc.byte_len])
        self.server.stdin.flush()
        self.receive(wc.wr_id)

    def answer(self):
        """A message of the server's goes to the client."""
        head = self.read(4)
        length = int.from_bytes(head, "little")
        if not 7 <= length <= SIZE:
            raise Failed(f"the server's message has {length} octets")
        slot = self.free.pop(0)
        start = slot * SIZE
        self.room[start:start + length] = head + self.read(length - 4)
        sge = SGE(self.base + start, length, self.lkey)
        self.conn.qp.post_send(SendWR(wr_id=slot, num_sge=1, sg=[sge]))

    def read(self, count):
        data = b""
        while len(data) < count:
            part = os.read(self.server.stdout.fileno(), count - len(data))
            if not part:
                raise Failed("the server has ended")
            data += part
        return data

    def run(self):
        """Until the client has gone."""
        chan, comp, server = self.end.chan.fd, self.conn.comp.fd, self.server.stdout.fileno()
        while True:
            # No more is asked of the server than there is room for.
            watched = [chan, comp] + [server] * bool(self.free)
            ready, _, _ = select.select(watched, [], [])
            if comp in ready:
                self.completions()
            if server in ready:
                self.answer()
            if chan in ready and self.end.chan.event().name != "ESTABLISHED":
                return

    def close(self):
        self.server.stdin.close()
        self.server.wait()
        self.conn.close()
        self.end.close_mr(self.num)


def main(device, addr, port, *command):
    end = verbs.End(device)
    end.listen(addr, 4, int(port))
    print("listens", flush=True)
    while True:
        event = end.chan.event()
        if event.name != "CONNECT_REQUEST":
            continue
        client = Connection(end, event, command)
        client.run()
        client.close()
        print("ended", flush=True)


main(*sys.argv[1:])
