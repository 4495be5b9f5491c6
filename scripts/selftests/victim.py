#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""victim.py DEVICE ADDRESS PORT MEMORY [FILE]

Connects as rping's client does, advertises memory that its peer may not use in full, and
waits for the connection to end. Status 0 when that memory is as it was. MEMORY is
    no-write  registered without remote write     no-read  without remote read
    other-pd  of another protection domain        gone     not registered any more
    going     deregistered while the peer reads it; then FILE is made
    long      all rights, and more than TCP holds of a Read's answer
"""

import pathlib
import struct
import sys
import time

from pyverbs.pd import PD

import verbs

SIZE = 64
LONG = 16 << 20                 # more than TCP holds of a Read's answer
SIZES = {"going": LONG, "long": LONG}
ACCESS = {"no-write": verbs.LOCAL | verbs.RREAD, "no-read": verbs.LOCAL | verbs.RWRITE}


def advertised(end, memory):
    """Number, address and rkey of the memory."""
    own = end.pd
    if memory == "other-pd":
        end.pd = PD(end.ctx.obj)
    num, addr, _, rkey = end.mr(SIZES.get(memory, SIZE),
                                ACCESS.get(memory, verbs.ALL))
    end.pd = own
    return num, addr, rkey


def counter(device, name):
    path = f"/sys/class/infiniband/{device}/ports/1/hw_counters/{name}"
    return int(pathlib.Path(path).read_text(encoding="ascii"))


def take_away(end, num, blocked, file):
    """Once TCP can take no more of the answer."""
    stop = time.monotonic() + verbs.PATIENCE
    while counter(end.device, "tx_blocked") <= blocked:
        if time.monotonic() > stop:
            raise verbs.Failed("nobody reads")
        time.sleep(0.02)
    end.close_mr(num)
    pathlib.Path(file).touch()


def main(device, addr, port, memory, file=None):
    end = verbs.End(device)
    conn = end.connect(addr, {"ird": 1, "ord": 1}, port=int(port))
    end.event(conn, "ESTABLISHED")
    num, at, rkey = advertised(end, memory)
    _, info, lkey, _ = end.mr(16)
    end.poke(info, struct.pack(">QII", at, rkey, SIZES.get(memory, SIZE)))
    room = end.mrs[num][1]
    blocked = counter(device, "tx_blocked")
    if memory == "gone":
        end.close_mr(num)
    end.post_send(conn, {"id": 1, "op": "SEND", "flags": ["SIGNALED"],
                         "sge": [(info, 16, lkey)]})
    if memory == "going":
        take_away(end, num, blocked, file)
    end.event(conn, "DISCONNECTED")
    verbs.expect(room[:SIZE], b"\xff" * SIZE, "memory")


main(*sys.argv[1:])
