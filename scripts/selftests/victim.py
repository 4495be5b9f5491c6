#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""victim.py DEVICE ADDRESS PORT MEMORY

Connects as rping's client does, advertises memory that its peer may not use in full, and
waits for the connection to end. Status 0 when that memory is as it was. MEMORY is
    no-write  registered without remote write     no-read  without remote read
    other-pd  of another protection domain        gone     not registered any more
"""

import struct
import sys

from pyverbs.pd import PD

import verbs

SIZE = 64
ACCESS = {"no-write": verbs.LOCAL | verbs.RREAD, "no-read": verbs.LOCAL | verbs.RWRITE}


def advertised(end, memory):
    """Number, address and rkey of the memory."""
    own = end.pd
    if memory == "other-pd":
        end.pd = PD(end.ctx.obj)
    num, addr, _, rkey = end.mr(SIZE, ACCESS.get(memory, verbs.ALL))
    end.pd = own
    return num, addr, rkey


def main(device, addr, port, memory):
    end = verbs.End(device)
    conn = end.connect(addr, {"ird": 1, "ord": 1}, port=int(port))
    end.event(conn, "ESTABLISHED")
    num, at, rkey = advertised(end, memory)
    _, info, lkey, _ = end.mr(16)
    end.poke(info, struct.pack(">QII", at, rkey, SIZE))
    room = end.mrs[num][1]
    if memory == "gone":
        end.close_mr(num)
    end.post_send(conn, {"id": 1, "op": "SEND", "flags": ["SIGNALED"],
                         "sge": [(info, 16, lkey)]})
    end.event(conn, "DISCONNECTED")
    verbs.expect(room[:SIZE], b"\xff" * SIZE, "memory")


main(*sys.argv[1:])
