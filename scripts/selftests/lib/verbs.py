#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Verbs between two hosts, with the distribution's own pyverbs.

    verbs.py agent DEVICE ADDRESS        on one host: does as it is told
    verbs.py run DEVICE ADDRESS CASE...  on the other: runs cases against it

A case is written once, from above: it has an End here and a Remote there that
do the same things. Prints "ok CASE" or what went wrong and "not ok CASE".
The cases are the functions of verbs_*_cases.py.
"""

import faulthandler
import os
import pickle
import socket
import sys
import time
import traceback

from pyverbs.device import Context
from pyverbs.pd import PD

import verbs_cm_cases
import verbs_count_cases
import verbs_data_cases
import verbs_memory_cases
import verbs_queue_cases
import verbs_short_cases
import verbs_state_cases
import verbs_zero_copy_cases
from verbs_base import ASYNC_EVENT, CASE_SECONDS, CONTROL_PORT, PATIENCE, Failed, Watched, expect
from verbs_conns import Connections
from verbs_memory import Memory
from verbs_queues import Queues
from verbs_tcp import PlainTcp

MODULES = (verbs_data_cases, verbs_memory_cases, verbs_queue_cases, verbs_state_cases,
           verbs_count_cases, verbs_cm_cases, verbs_short_cases, verbs_zero_copy_cases)


class End(Memory, Connections, Queues, PlainTcp):
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

    def device_attr(self, *what):
        attr = self.ctx.obj.query_device()
        return {name: getattr(attr, name) for name in what}

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

    def counter(self, name):
        group = "zero_copy" if name.startswith("lent_") else "hw_counters"
        path = f"/sys/class/infiniband/{self.device}/ports/1/{group}/{name}"
        with open(path, encoding="ascii") as file:
            return int(file.read())

    def counter_above(self, name, value):
        """Wait for it. The core may show values that are 10 ms and a tick old."""
        end = time.monotonic() + PATIENCE
        while self.counter(name) <= value:
            if time.monotonic() > end:
                raise Failed(f"{name} stays at {value}")
            time.sleep(0.01)

    def counters_become(self, wanted):
        """Wait until all of them have the values in WANTED."""
        end = time.monotonic() + PATIENCE
        while (found := {name: self.counter(name) for name in wanted}) != wanted:
            if time.monotonic() > end:
                expect(found, wanted, "counters")
            time.sleep(0.01)

    def leftovers(self):
        """Close what a case has left open."""
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
    sock = socket.create_connection((addr, CONTROL_PORT), PATIENCE)
    sock.settimeout(3 * PATIENCE)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    local, remote = End(device), Remote(sock)
    bad = 0
    for name in wanted:
        faulthandler.dump_traceback_later(CASE_SECONDS, exit=True)
        try:
            module = next(m for m in MODULES if hasattr(m, name))
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
    if len(sys.argv) == 4 and sys.argv[1] == "agent":
        agent(sys.argv[2], sys.argv[3])
        return 0
    if len(sys.argv) > 4 and sys.argv[1] == "run":
        return run(sys.argv[2], sys.argv[3], sys.argv[4:])
    print(__doc__, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
