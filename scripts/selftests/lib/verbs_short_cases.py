# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Cases of verbs.py: memory is short at one place for a moment (260-failing.sh). They need a kernel
with fault injection, and both hosts in it."""

import contextlib
import errno
import os
import time

from verbs_base import PATIENCE, Failed, expect
from verbs_pairs import RAW_PORT, connect, counted, disconnect, meet

FAILSLAB = "/sys/kernel/debug/failslab/"
PAUSE, TRIES = PATIENCE / 100, 100
# Private data for which iw_cm needs memory of a cache that nothing else asks in these cases
DATA, DATA_CACHE = bytes(range(200)), "kmalloc-256"
# What an endpoint is made of, which is charged to a cgroup
ENDPOINT_CACHE = "kmalloc-cg-1k"
PD_LENGTH = (4 + len(DATA)).to_bytes(2, "big")
# Enhanced, with CRC, depths of 1; the Replies agree to every kind of RTR
REQUEST = b"MPA ID Req Frame\x50\x02" + PD_LENGTH + b"\x00\x01\x00\x01" + DATA
ACCEPT = b"MPA ID Rep Frame\x50\x02" + PD_LENGTH + b"\xc0\x01\xc0\x01" + DATA
REJECT = b"MPA ID Rep Frame\x70\x02" + PD_LENGTH + b"\xc0\x01\xc0\x01" + DATA


def put(path, value):
    with open(path, "w", encoding="ascii") as file:
        file.write(value)


def has_failed(times):
    """Whether the allocation has failed; waits a moment otherwise. TIMES: open for reading."""
    if os.read(times, 16).strip() == b"0":
        return True
    time.sleep(PAUSE)
    return False


@contextlib.contextmanager
def short_of(cache):
    """The next allocation from that slab cache fails; waits for it at the end."""
    put(f"/sys/kernel/slab/{cache}/failslab", "1")
    put(FAILSLAB + "cache-filter", "Y")
    put(FAILSLAB + "space", "0")
    put(FAILSLAB + "times", "1")
    # Opening a file takes memory, too, and each can be read once.
    probability = os.open(FAILSLAB + "probability", os.O_WRONLY)
    left = [os.open(FAILSLAB + "times", os.O_RDONLY) for _ in range(TRIES)]
    try:
        os.write(probability, b"100")
        yield
        if not any(has_failed(fd) for fd in left):
            raise Failed(f"nothing was asked of {cache}")
    finally:
        os.write(probability, b"0")
        for fd in (probability, *left):
            os.close(fd)
        put(FAILSLAB + "times", "-1")
        put(FAILSLAB + "cache-filter", "N")
        put(f"/sys/kernel/slab/{cache}/failslab", "0")


def request_unheard(l, r, addr):
    """iw_cm has no memory for a Request: the caller is rejected at once, and the next is served."""
    r.listen(addr)
    caller = l.tcp_connect(addr)
    with counted(r, conn_requested=1, conn_failed=1, conn_timeout=0, conn_rejected=0):
        with short_of(DATA_CACHE):
            l.tcp_send(caller, REQUEST)
        said = l.tcp_recv(caller, 17)
        expect((said[:16], said[16:] and said[16] & 0x20), (b"MPA ID Rep Frame", 0x20), "Reply")
        l.tcp_closed(caller)
    expect(r.has_child_event(), False, "a Request is heard of")
    disconnect(connect(l, r, addr, {"pdata": DATA}, {}))


def reply_unheard(l, r, addr):
    """iw_cm has no memory for a Reply that accepts: it hears of a failure, and the QP ends."""
    r.tcp_listen(addr, RAW_PORT)
    lc, there = meet(l, r, addr)
    with counted(l, conn_failed=1, conn_timeout=0, conn_disagreed=0, tx_terminates=0):
        with short_of(DATA_CACHE):
            r.tcp_send(there, ACCEPT)
        event = l.event(lc, "CONNECT_ERROR")
    expect((event.status, event.data), (-errno.ENOMEM, b""), "status and data")
    expect(l.state(lc), "ERR", "state of the QP")
    r.tcp_closed(there)
    l.close(lc)
    r.tcp_listen_end()


def rejection_unheard(l, r, addr):
    """iw_cm has no memory for what a rejection says: it hears of the rejection alone."""
    r.tcp_listen(addr, RAW_PORT)
    for is_short in (False, True):
        lc, there = meet(l, r, addr)
        with counted(l, conn_refused_by_peer=1, conn_timeout=0), \
                short_of(DATA_CACHE) if is_short else contextlib.nullcontext():
            r.tcp_send(there, REJECT)
        expect(l.event(lc, "REJECTED").data, b"" if is_short else DATA, "data of the rejection")
        r.tcp_closed(there)
        l.close(lc)
    r.tcp_listen_end()


def stream_unwanted(l, r, addr):
    """There is no memory for an endpoint: its stream is reset, and the next caller is served."""
    r.listen(addr)
    with counted(r, conn_failed=1, ep_created=0, sock_created=1, sock_destroyed=1):
        # The reset may come before the caller knows that it is connected.
        with short_of(ENDPOINT_CACHE), contextlib.suppress(ConnectionResetError):
            l.tcp_closed(l.tcp_connect(addr))
    disconnect(connect(l, r, addr, {}, {}))
