#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""acceptor.py DEVICE ADDRESS PORT

Accepts every connection, each once, and lets go of those that end; until it is killed.
Persistent rping is not that: of two requests at a time it accepts one twice, which iw_cm
answers with a BUG.
"""

import contextlib
import sys

from pyverbs.pyverbs_error import PyverbsError
from pyverbs.wr import SGE, RecvWR

import rdmacm
import verbs
import verbs_base


def accept(end, event):
    """A connection for the request, or None when it has gone already."""
    conn = verbs_base.Conn()
    conn.cmid = rdmacm.Id(end.chan, event.id)
    try:
        end._resources(conn, {"depth": 4})
        conn.cmid.accept(conn.qp.qp_num, 1, 1)
        mr = end.mr(16)
        conn.qp.post_recv(RecvWR(num_sge=1, sg=[SGE(mr[1], 16, mr[2])]))
        conn.mr = mr[0]
        return conn
    except (OSError, PyverbsError):
        conn.close()
        return None


def main(device, addr, port):
    end = verbs.End(device)
    end.listen(addr, 128, int(port))
    conns = {}
    while True:
        event = end.chan.event()
        if event.name == "CONNECT_REQUEST":
            conn = accept(end, event)
            if conn:
                conns[event.id] = conn
        elif event.name != "ESTABLISHED" and event.id in conns:
            conn = conns.pop(event.id)
            with contextlib.suppress(OSError, PyverbsError):
                conn.close()
                end.close_mr(conn.mr)


main(*sys.argv[1:])
