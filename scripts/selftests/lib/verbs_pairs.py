# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""What the cases of verbs.py share: connections between an End here and a Remote there, memory at
both ends, and what is expected of them."""

import contextlib
import os
import random
import time

from pyverbs.pyverbs_error import PyverbsRDMAError

from verbs_base import PATIENCE, Failed, expect

PAGE = 4096
MIB = 1 << 20
SIZES = (0, 1, 2, 3, 4, 5, 63, 64, 65, PAGE - 1, PAGE, PAGE + 1, 65536, MIB)
# Around page borders: (source offset, destination offset, size)
BORDERS = [(s, d, n) for s, d in ((1, 0), (PAGE - 1, 3), (PAGE - 3, PAGE - 1), (2, PAGE - 2))
           for n in (1, 2, 3, 5, 31, 32, 33, PAGE, 2 * PAGE + 1)]
# Seconds for what can take any time
SOAK = int(os.environ.get("KIW_SOAK", "2"))
rng = random.Random(int(os.environ.get("KIW_SEED", "5040")))


def wr(op, sge, wr_id=1, flags=("SIGNALED",), **where):
    """A WR for post_send(); where: raddr and rkey."""
    return {"op": op, "sge": sge, "id": wr_id, "flags": flags, **where}


class Pair:
    """A connection: l and its number lc here, r and rc there."""

    def __init__(self, l, r, lc, rc):
        self.l, self.r, self.lc, self.rc = l, r, lc, rc

    def send_done(self, wr_id=1, status="SUCCESS"):
        expect([c[:2] for c in self.l.complete(self.lc, "send")], [(wr_id, status)],
               "send completion")

    def recv_done(self, wr_id, size, status="SUCCESS"):
        expect(self.r.complete(self.rc, "recv"), [(wr_id, status, size)], "receive completion")

    def sync(self, lmr, rmr):
        """An empty SEND from here: when it arrives, all data before it has been placed."""
        self.r.post_recv(self.rc, 99, (rmr[1], 0, rmr[2]))
        self.l.post_send(self.lc, wr("SEND", [(lmr[1], 0, lmr[2])], 98))
        self.send_done(98)
        self.recv_done(99, 0)


def connect(l, r, addr, lopts, ropts):
    lc = l.connect(addr, lopts)
    rc, _ = r.request()
    r.accept(rc, ropts)
    l.event(lc, "ESTABLISHED")
    r.child_event("ESTABLISHED")
    return Pair(l, r, lc, rc)


def alive(p):
    """Check that the connection is still up. siw of 6.1 does not report the state of its QPs."""
    for end, conn in ((p.l, p.lc), (p.r, p.rc)):
        good = ("RTS",) if end.is_kiwarp() else ("RTS", "RESET")
        expect(end.state(conn) in good, True, "state at the end")
    expect(p.l.has_event(p.lc) or p.r.has_child_event(), False, "CM events at the end")


@contextlib.contextmanager
def pair(l, r, addr, lopts=None, ropts=None):
    """One connection, which must still be up at the end."""
    r.listen(addr)
    p = connect(l, r, addr, lopts or {}, ropts or {})
    yield p
    alive(p)
    expect(l.async_events() + r.async_events(), [], "async events")
    disconnect(p)


@contextlib.contextmanager
def doomed(l, r, addr, lopts=None, ropts=None):
    """One connection that ends by an error in the body, seen on both sides."""
    r.listen(addr)
    p = connect(l, r, addr, lopts or {}, ropts or {})
    yield p
    l.event(p.lc, "DISCONNECTED")
    r.child_event("DISCONNECTED")
    expect((l.state(p.lc), r.state(p.rc)), ("ERR", "ERR"), "states after the error")
    finish(p)


def finish(p):
    p.l.close(p.lc)
    p.r.close(p.rc)
    p.r.listen_end()


@contextlib.contextmanager
def memory(end, size, *args, **kwargs):
    mr = end.mr(size, *args, **kwargs)
    yield mr
    end.close_mr(mr[0])


@contextlib.contextmanager
def buffers(l, r, size):
    with memory(l, size) as lmr, memory(r, size) as rmr:
        yield lmr, rmr


def check_placed(end, mr, offset, data, room):
    """DATA and nothing else is at OFFSET of memory of ROOM octets that was all ones."""
    first = max(0, offset - 16)
    last = min(room, offset + len(data) + 16)
    got = end.peek(mr[1] + first, last - first)
    want = b"\xff" * (offset - first) + data + b"\xff" * (last - offset - len(data))
    if got != want:
        bad = next(i for i, (g, w) in enumerate(zip(got, want)) if g != w)
        raise Failed(f"{len(data)} octets at {offset}: wrong at {first + bad - offset}: "
                     f"{got[bad:bad + 8].hex()} instead of {want[bad:bad + 8].hex()}")
    end.poke(mr[1] + first, b"\xff" * (last - first))


def combinations():
    return [(0, 0, n) for n in SIZES] + BORDERS


ROOM = MIB + 4 * PAGE


def each_combination(l, r, addr, one):
    """ONE(pair, lmr, rmr, local offset, remote offset, data) for all sizes."""
    with buffers(l, r, ROOM) as (lmr, rmr), pair(l, r, addr) as p:
        for loff, roff, size in combinations():
            one(p, lmr, rmr, loff, roff, rng.randbytes(size))


def cut(mr, data_len, parts, gap):
    """SGEs of about equal length with gaps of GAP octets, odd lengths and all."""
    sges, at, left = [], mr[1] + 1, data_len
    for i in range(parts):
        n = left if i == parts - 1 else min(left, data_len // parts + i % 3)
        sges.append((at, n, mr[2]))
        at += n + gap
        left -= n
    return sges


def gather(end, sges):
    return b"".join(end.peek(a, n) for a, n, _ in sges)


def scatter(end, sges, data):
    for a, n, _ in sges:
        end.poke(a, data[:n])
        data = data[n:]


def all_flushed(found, count, what):
    """Each of 0..COUNT-1 once and in order; nothing succeeds after a flush."""
    expect([c[0] for c in found], list(range(count)), what)
    statuses = [c[1] for c in found]
    first = statuses.index("WR_FLUSH_ERR") if "WR_FLUSH_ERR" in statuses else count
    expect(set(statuses[:first]) | set(statuses[first:]) <= {"SUCCESS", "WR_FLUSH_ERR"}, True,
           f"{what}: {statuses}")
    expect(set(statuses[first:]) <= {"WR_FLUSH_ERR"}, True, f"{what}: {statuses}")


def refusal(end, event):
    """END has sent a Terminate and tells its consumer why, once."""
    end.async_event(event)
    expect(end.async_events(), [], "second event of one fault")


def spread(mrs, size):
    """SGEs of each of them in turn, and again."""
    return [(m[1] + 2000 + 100 * i, size, m[2]) for i, m in enumerate(mrs + mrs)]


def disconnect(p):
    p.l.disconnect(p.lc)
    p.l.event(p.lc, "DISCONNECTED")
    p.r.child_event("DISCONNECTED")
    finish(p)


# Peers that misbehave. The deadline of a startup is one second here.

RAW_PORT = 7900
FAILURES = "REJECTED UNREACHABLE CONNECT_ERROR"


@contextlib.contextmanager
def counted(end, **wanted):
    """Check that these counters increase by these numbers."""
    time.sleep(0.03)    # the core shows counters that are up to 10 ms (and a tick) old
    before = {name: end.counter(name) for name in wanted}
    yield
    deadline = time.monotonic() + PATIENCE
    got = {}
    while time.monotonic() < deadline:
        got = {name: end.counter(name) - before[name] for name in wanted}
        if got == wanted:
            return
        time.sleep(0.02)
    expect(got, wanted, f"counters of {end}")


def meet(l, r, addr, opts=None):
    """A connection request of ours that arrived at a plain TCP port."""
    lc = l.connect(addr, opts or {}, port=RAW_PORT)
    there = r.tcp_accept()
    expect(r.tcp_recv(there, 16), b"MPA ID Req Frame", "Request")
    return lc, there


REQUEST = b"MPA ID Req Frame\x50\x02\x00\x04" + b"\x00\x10\x00\x10"


def refuses(what, post, *args):
    """POST fails on either host with an error. The provider's errors have either sign."""
    try:
        post(*args)
    except (Failed, PyverbsRDMAError) as error:
        expect("Failed to post" in str(error), True, f"{what}: {error}")
    else:
        raise Failed(f"{what}: not refused")


def write_and_read(p, lmr, rmr, size, what):
    """WRITE all of the peer's memory, change it there, READ it back."""
    data = rng.randbytes(size)
    p.l.poke(lmr[1], data)
    p.l.post_send(p.lc, wr("RDMA_WRITE", [(lmr[1], size, lmr[2])], raddr=rmr[1], rkey=rmr[3]))
    p.send_done()
    p.sync(lmr, rmr)
    expect(p.r.peek(rmr[1], size) == data, True, f"{what}: WRITE")
    data = rng.randbytes(size)
    p.r.poke(rmr[1], data)
    p.l.post_send(p.lc, wr("RDMA_READ", [(lmr[1], size, lmr[2])], raddr=rmr[1], rkey=rmr[3]))
    p.send_done()
    expect(p.l.peek(lmr[1], size) == data, True, f"{what}: READ")


def send(p, lmr, wr_id=1):
    """One signaled SEND of one byte, whose completion stays in the CQ."""
    p.l.post_send(p.lc, wr("SEND", [(lmr[1], 1, lmr[2])], wr_id))


def receives(p, rmr, count):
    for i in range(count):
        p.r.post_recv(p.rc, i, (rmr[1], 8, rmr[2]))


def ended(*pairs):
    """Wait until both ends of these connections are told that they have ended."""
    for p in pairs:
        p.l.event(p.lc, "DISCONNECTED")
        p.r.child_event("DISCONNECTED")
    for p in pairs:
        expect((p.l.state(p.lc), p.r.state(p.rc)), ("ERR", "ERR"), "states")


# States

ACCEPT = b"MPA ID Rep Frame\x50\x02\x00\x04\xc0\x01\xc0\x01"
