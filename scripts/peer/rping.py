# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""The conversation of librdmacm's rping, in either role.

A SEND carries an address, an rkey and a size in 16 octets. The client announces its
source, the server READs it and answers with a SEND; the client announces its sink,
the server WRITEs what it has read and answers again.
"""

import struct
import time

from peer import faults, rdmap, startup

INFO = struct.Struct(">QII")
SOURCE, SINK, OWN = 0x1a2b3c01, 0x1a2b3d02, 0x1a2b3e03
BASE = 0x7f00_0000_1003         # of no alignment
STALLED = 5                     # looks that have seen the same
OWN_SIZE = 65536                # for what a client sends of itself


class DataError(Exception):
    """The received data differs from what was sent."""


def pattern(size, ping):
    """The contents of the memory of rping's client."""
    head = b"rdma-ping-%d: " % ping
    letter = 65 + ping % 58
    data = bytearray(head[:size])
    while len(data) < size:
        data.append(letter)
        letter = letter + 1 if letter < 122 else 65
    data[size - 1] = 0
    return bytes(data)


def info(region):
    return INFO.pack(region.base, region.stag, len(region.data))


def _next_send(conn, opt):
    conn.wait(lambda: conn.sends, opt.timeout)
    payload = conn.sends.popleft()
    if len(payload) != INFO.size:
        raise DataError(f"a message of {len(payload)} octets")
    return faults.Target(*INFO.unpack(payload))


def source(opt):
    region = rdmap.Region(SOURCE, BASE, opt.size)
    region.data[:] = pattern(opt.size, 0)
    return region


def early(opt):
    """The parameters of the client's first SEND."""
    return lambda conn: conn.encode(conn.untagged(rdmap.SEND, info(source(opt))))


def _load_write(conn, opt):
    """Runs the first ping until the server is in the middle of its RDMA Write."""
    conn.send(info(conn.regions[SOURCE]))
    _next_send(conn, opt)
    conn.send(info(conn.regions[SINK]))
    conn.receive()


def _load_read(conn, target):
    """Reads all memory that the client has announced, until it is in the middle of the Response."""
    conn.regions[OWN] = rdmap.Region(OWN, BASE, target.size)
    conn.read(rdmap.ReadRequest(OWN, BASE, target.size, target.stag, target.to))
    conn.receive()


def _load_own(conn, target):
    """Announces memory to the client, until it is in the middle of its own transfer."""
    conn.regions[OWN] = rdmap.Region(OWN, BASE, OWN_SIZE)
    conn.send(info(conn.regions[OWN]))
    while conn.receive().last:
        pass
    return faults.Target(conn.asked.sink_to, conn.asked.sink_stag, conn.asked.size) \
        if conn.asked else target


def _stall(conn):
    """Receives nothing, and waits until the other end can send no more."""
    seen, same = -1, 0
    while same < STALLED:
        time.sleep(0.01)
        last, seen = seen, conn.stream.waiting()
        same = same + 1 if seen == last else 0


def _fill(conn, target):
    """Sends a Read Request, so that the other end gives its TCP more. As nothing is read here, that
    TCP then has no room at all."""
    conn.read(rdmap.ReadRequest(OWN, BASE, 4, target.stag, target.to))
    conn.stream.flush()


def _inject(conn, opt, target):
    if opt.hold and opt.load:
        _stall(conn)
    if opt.fill:
        _fill(conn, target)
    faults.inject(conn, opt.fault, target, opt)
    raise startup.Stopped(opt.fault, conn)


def client(conn, opt):
    """Pings; returns the octets that were verified."""
    verified = 0
    sink = rdmap.Region(SINK, BASE + 0x100000, opt.size)
    conn.regions[SOURCE], conn.regions[SINK] = source(opt), sink
    if opt.load:
        _load_write(conn, opt)
    if opt.fault in faults.FIRST:
        _inject(conn, opt, None)
    if opt.fault in faults.ASKED:
        conn.answer_reads = False
        conn.send(info(conn.regions[SOURCE]))
        conn.wait(lambda: conn.asked, opt.timeout)
        asked = conn.asked
        _inject(conn, opt, faults.Target(asked.sink_to, asked.sink_stag, asked.size))
    for ping in range(opt.count):
        conn.regions[SOURCE].data[:] = pattern(opt.size, ping)
        if ping or opt.fault != "extra":
            conn.send(info(conn.regions[SOURCE]))
        _next_send(conn, opt)
        sink.data[:] = bytes(opt.size)
        conn.send(info(sink))
        _next_send(conn, opt)
        if sink.data != conn.regions[SOURCE].data:
            raise DataError(f"ping {ping} came back changed")
        verified += opt.size
    # An RTR by read is answered, too.
    conn.wait(lambda: not conn.reads, opt.timeout)
    return verified


def server(conn, opt):
    """Pongs until the client closes; returns the octets that were verified."""
    verified = ping = 0
    own = rdmap.Region(OWN, BASE, opt.size)
    conn.regions[OWN] = own
    if opt.announce:
        conn.wait(lambda: conn.spoken, opt.timeout)
        conn.announce()
    conn.answer_reads = opt.fault not in faults.ASKED
    while True:
        try:
            target = _next_send(conn, opt)
        except EOFError as end:
            if str(end):
                raise
            return verified
        if opt.load == "own":
            target = _load_own(conn, target)
        elif opt.load:
            _load_read(conn, target)
        if opt.fault in faults.NAMES:
            _inject(conn, opt, target)
        conn.read(rdmap.ReadRequest(OWN, BASE, target.size, target.stag, target.to))
        conn.wait(lambda: not conn.reads, opt.timeout)
        if own.data != pattern(opt.size, ping):
            raise DataError(f"ping {ping} is not what rping sends: {bytes(own.data[:64])}")
        conn.send(bytes(INFO.size))
        target = _next_send(conn, opt)
        conn.write(target.stag, target.to, bytes(own.data))
        conn.send(bytes(INFO.size))
        verified += opt.size
        ping += 1
