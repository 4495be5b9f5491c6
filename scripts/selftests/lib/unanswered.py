#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Requests that wait for an answer, and those that are rejected.

    unanswered.py answer DEVICE ADDRESS PORT FILE    listen; accept the first when there is FILE
    unanswered.py ignore DEVICE ADDRESS PORT         listen; answer none
    unanswered.py reject DEVICE ADDRESS PORT         listen; reject all
    unanswered.py call ADDRESS PORT COUNT            callers: plain TCP, a Request each

Say "listens", "asked", "accepted" and "called"; the callers then count those that got a Reply or
were reset.
"""

import os
import resource
import select
import socket
import sys
import time


def answer(device, addr, port, file):
    import rdmacm  # pylint: disable=import-outside-toplevel
    import verbs   # pylint: disable=import-outside-toplevel
    from verbs_base import Conn   # pylint: disable=import-outside-toplevel
    end = verbs.End(device)
    end.listen(addr, 16, int(port))
    print("listens", flush=True)
    event = end.chan.event()
    print("asked", event.name, flush=True)
    while not os.path.exists(file):
        time.sleep(0.01)
    conn = Conn()
    conn.cmid = rdmacm.Id(end.chan, event.id)
    end._resources(conn, {"depth": 4})
    conn.cmid.accept(conn.qp.qp_num, 1, 1)
    print("accepted", flush=True)
    time.sleep(60)


def ignore(_device, addr, port):
    import rdmacm  # pylint: disable=import-outside-toplevel
    chan = rdmacm.Channel()
    ident = rdmacm.Id(chan)
    ident.listen(addr, int(port), 1000)
    print("listens", flush=True)
    time.sleep(120)


def reject(_device, addr, port):
    import rdmacm  # pylint: disable=import-outside-toplevel
    chan = rdmacm.Channel()
    ident = rdmacm.Id(chan)
    ident.listen(addr, int(port), 16)
    print("listens", flush=True)
    while True:
        conn = rdmacm.Id(chan, chan.event().id)
        conn.reject()
        print("rejected", flush=True)
        conn.close()


def call(addr, port, count):
    # There is a peer.py beside this, too.
    sys.path[0] = os.path.join(sys.path[0], "..", "..")
    from peer import mpa    # pylint: disable=import-outside-toplevel
    request = mpa.Frame(rev=1).encode()
    count = int(count)
    resource.setrlimit(resource.RLIMIT_NOFILE, (count + 100, count + 100))
    poll = select.poll()
    callers = {}
    for _ in range(count):
        sock = socket.create_connection((addr, int(port)))
        sock.sendall(request)
        callers[sock.fileno()] = sock
        poll.register(sock, select.POLLIN)
    print("called", flush=True)
    replied = reset = 0
    while callers:
        for fileno, _ in poll.poll():
            sock = callers.pop(fileno)
            poll.unregister(fileno)
            try:
                said = sock.recv(100)
            except ConnectionResetError:
                said = b""
            reset += not said
            replied += len(said) >= 20 and said[:16] == mpa.KEY_REPLY and not said[16] & mpa.R
            print("replied", replied, "reset" if reset else "", reset or "", flush=True)
    time.sleep(60)


{"answer": answer, "ignore": ignore, "reject": reject, "call": call}[sys.argv[1]](*sys.argv[2:])
