#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""victim.py DEVICE ADDRESS PORT MEMORY [--file FILE] [--load send|write|mixed|tiny]
          [--ask] [--abort destroy|error|late]

Connects as rping's client does, advertises memory that its peer may not use in full, and
waits for the connection to end. Status 0 when that memory is as it was. MEMORY is
    no-write  registered without remote write     no-read  without remote read
    other-pd  of another protection domain        gone     not registered any more
    going     deregistered while the peer reads it; then FILE is made
    long      all rights, and more than TCP holds of a Read's answer
    plain     all rights
With --load it then hears of memory of the peer's, and Sends or Writes 64 KB again and again;
mixed: Sends of 64 KB and of a few octets; tiny: Sends whose FPDUs are as long as a Terminate, with
longer ones such that segments of 1448 octets are full and follow each other in a batch.
What has completed must be what was posted first, without a gap, and all else was flushed; it
says how many have completed. With --ask there is a Read before them, which is answered badly.
When a fault was found, FILE gets the octets that TCP had at that time or soon after. With --abort
the QP is destroyed, or set to ERR, before FILE is there; late: the driver has ended it, because TCP
has had no room for too long.
"""

import argparse
import os
import pathlib
import struct
import time

from pyverbs.pd import PD

import verbs
import verbs_base

SIZE = 64
LONG = 16 << 20                 # more than TCP holds of a Read's answer
SIZES = {"going": LONG, "long": LONG}
ACCESS = {"no-write": verbs_base.LOCAL | verbs_base.RREAD, "no-read": verbs_base.LOCAL | verbs_base.RWRITE}
FAULTS = ("rx_crc_errors", "rx_mpa_errors", "rx_ddp_errors", "rx_rdmap_errors")
LOAD_SIZE = 65536
LOADS = {                       # operation, size of each
    "send": ("SEND", [LOAD_SIZE] * 200),
    "write": ("RDMA_WRITE", [LOAD_SIZE] * 200),
    "mixed": ("SEND", [LOAD_SIZE, 8, 1, 20, 3, 40, 8] * 28),
    "tiny": ("SEND", [2848] + ([4] * 45 + [164]) * 80),
}
INFO, ASK, LOAD = 1, 2, 3       # wr_ids; those of the load go on from there


def advertised(end, memory):
    """Number, address and rkey of the memory."""
    own = end.pd
    if memory == "other-pd":
        end.pd = PD(end.ctx.obj)
    num, addr, _, rkey = end.mr(SIZES.get(memory, SIZE),
                                ACCESS.get(memory, verbs_base.ALL))
    end.pd = own
    return num, addr, rkey


def counter(device, name):
    path = f"/sys/class/infiniband/{device}/ports/1/hw_counters/{name}"
    return int(pathlib.Path(path).read_text(encoding="ascii"))


def wait_for(condition, why):
    stop = time.monotonic() + verbs_base.PATIENCE
    while not condition():
        if time.monotonic() > stop:
            raise verbs_base.Failed(why)
        time.sleep(0.01)


def take_away(end, num, blocked, file):
    """Once TCP can take no more of the answer."""
    wait_for(lambda: counter(end.device, "tx_blocked") > blocked, "nobody reads")
    end.close_mr(num)
    pathlib.Path(file).touch()


def faults(device):
    return sum(counter(device, name) for name in FAULTS)


def queue_of(port):
    """Octets that TCP has of the connection to PORT: sent and not acknowledged, or not sent."""
    queued = 0
    with open("/proc/self/net/tcp", encoding="ascii") as table:
        for line in list(table)[1:]:
            remote, _, queues = line.split()[2:5]
            if int(remote.split(":")[1], 16) == port:
                queued += int(queues.split(":")[0], 16)
    return queued


def tell_queue(end, conn, args):
    queued = queue_of(int(args.port))
    if args.abort == "destroy":
        end.destroy_qp(conn)
    elif args.abort == "error":
        end.to_error(conn)
    elif args.abort == "late":
        end.event(conn, "DISCONNECTED")
    file = args.file
    pathlib.Path(file + ".new").write_text(str(queued), encoding="ascii")
    os.rename(file + ".new", file)


def post_load(end, conn, room, args):
    """ROOM: memory that has got what the peer has said of its own."""
    _, addr, lkey, _ = end.mr(LOAD_SIZE)
    end.complete(conn, "recv")
    raddr, rkey, _ = struct.unpack("!QII", room[:16])
    remote = {"raddr": raddr, "rkey": rkey}
    if args.ask:
        end.post_send(conn, {"id": ASK, "op": "RDMA_READ", "flags": ["SIGNALED"],
                             "sge": [(addr, SIZE, lkey)], **remote})
    op, sizes = LOADS[args.load]
    if op == "SEND":
        remote = {}
    end.post_send(conn, *({"id": n, "op": op, "flags": ["SIGNALED"] if n % 3 else [],
                           "sge": [(addr, size, lkey)], **remote}
                          for n, size in enumerate(sizes, LOAD)))


def check_load(end, conn, args):
    stop = LOAD + len(LOADS[args.load][1])
    found = [c[:2] for c in end.completions(conn, "send")]
    flushed = [n for n, status in found if status == "WR_FLUSH_ERR"]
    first = stop - len(flushed)
    verbs_base.expect(flushed, list(range(first, stop)), "what was flushed")
    verbs_base.expect(bool(flushed), True, "something was flushed")
    good = [(n, "SUCCESS") for n in (INFO, *range(LOAD, first)) if n % 3]
    if args.ask:
        good.insert(1, (ASK, "BAD_RESP_ERR"))
    verbs_base.expect(found[:len(good)], good, "what was not")
    print(f"completed {1 + first - LOAD}")


def main():
    parser = argparse.ArgumentParser()
    for name in ("device", "addr", "port", "memory"):
        parser.add_argument(name)
    parser.add_argument("--file")
    parser.add_argument("--load", choices=tuple(LOADS))
    parser.add_argument("--ask", action="store_true")
    parser.add_argument("--abort", choices=("destroy", "error", "late"))
    args = parser.parse_args()
    end = verbs.End(args.device)
    conn = end.connect(args.addr, {"ird": 1, "ord": 1, "depth": 4096}, port=int(args.port))
    end.event(conn, "ESTABLISHED")
    num, at, rkey = advertised(end, args.memory)
    own, info, lkey, _ = end.mr(32)
    end.poke(info, struct.pack(">QII", at, rkey, SIZES.get(args.memory, SIZE)))
    end.post_recv(conn, 1, (info + 16, 16, lkey))
    room = end.mrs[num][1]
    blocked, found = counter(end.device, "tx_blocked"), faults(end.device)
    if args.memory == "gone":
        end.close_mr(num)
    end.post_send(conn, {"id": INFO, "op": "SEND", "flags": ["SIGNALED"],
                         "sge": [(info, 16, lkey)]})
    if args.load:
        post_load(end, conn, memoryview(end.mrs[own][1])[16:], args)
    if args.memory == "going":
        take_away(end, num, blocked, args.file)
    elif args.file:
        wait_for(lambda: faults(end.device) > found, "no fault")
        tell_queue(end, conn, args)
    if args.abort != "late":
        end.event(conn, "DISCONNECTED")
    if args.load:
        check_load(end, conn, args)
    verbs_base.expect(room[:SIZE], b"\xff" * SIZE, "memory")


main()
