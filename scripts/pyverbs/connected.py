#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Lets the tests of rdma-core, which connect their QPs with ibv_modify_qp, run on an iWARP device.

replace() takes the place of RCResources.to_rts(), which the tests call for each end, with the
numbers of the other end's QPs. When it is called for the second end, the QPs are connected by
rdma_cm, the first end being the one that connects. rdma_cm is given numbers of QPs, so the QPs
themselves, and whatever the tests do with them, stay as they are.
"""

import sys

sys.path.insert(0, "/host/selftests/lib")
import rdmacm  # pylint: disable=import-error,wrong-import-position

PATIENCE = 10
DEPTH = 16
PORT = 7810

waiting = {}    # ends whose other end was not there yet, by the numbers of their QPs
kept = []       # identifiers of connections, and their channels


def event(channel, name):
    if not channel.ready(PATIENCE):
        raise OSError(f"no event {name}")
    found = channel.event()
    if found.name != name:
        raise OSError(f"event {found.name} instead of {name}")
    return found


def connect(addr, active, passive):
    """Connects two QPs of this process, which are given by their numbers."""
    there, here = rdmacm.Channel(), rdmacm.Channel()
    port = PORT + len(kept)     # the listeners of the test's other QPs are kept, too
    listener, asking = rdmacm.Id(there), rdmacm.Id(here)
    listener.listen(addr, port, 1)
    asking.resolve_addr(addr, port)
    event(here, "ADDR_RESOLVED")
    asking.resolve_route()
    event(here, "ROUTE_RESOLVED")
    asking.connect(active, DEPTH, DEPTH)
    asked = rdmacm.Id(there, event(there, "CONNECT_REQUEST").id)
    asked.accept(passive, DEPTH, DEPTH)
    event(here, "ESTABLISHED")
    event(there, "ESTABLISHED")
    kept.extend((asking, asked, listener, here, there))


def replace(base, addr):
    """Connects by rdma_cm what the tests of module BASE connect in other ways."""

    def to_rts(self):
        other = waiting.pop(tuple(self.rqps_num), None)
        if other is None:
            waiting[tuple(self.qps_num)] = self
            return
        for active, passive in zip(other.qps_num, self.qps_num):
            connect(addr, active, passive)

    base.RCResources.to_rts = to_rts


def forget():
    """A test has ended."""
    waiting.clear()
    for obj in kept:
        obj.close()
    kept.clear()
