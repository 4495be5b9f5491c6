# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""The cases of verbs.py: functions of an End here (l), a Remote there (r) and the
address of the latter. The connection is made from here to there, unless said."""

import contextlib
import errno
import os
import random
import socket
import time

from verbs import (ALL, LOCAL, PATIENCE, REREG_ACCESS, REREG_PD, REREG_TRANS, RREAD, RWRITE,
                   Failed, expect)

PAGE = 4096
MIB = 1 << 20
PORT_RANGE = "/proc/sys/net/ipv4/ip_local_port_range"
FIRST_PORT = 20000
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
        """An empty SEND from here: all before it has been placed when it is there."""
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
    """The connection is still one. siw of 6.1 does not tell the state of its QPs."""
    for end, conn in ((p.l, p.lc), (p.r, p.rc)):
        good = ("RTS",) if end.is_kiwarp() else ("RTS", "RESET")
        expect(end.state(conn) in good, True, "state at the end")
    expect(p.l.has_event(p.lc) or p.r.has_child_event(), False, "CM events at the end")


@contextlib.contextmanager
def pair(l, r, addr, lopts=None, ropts=None):
    """One connection, which must still be one at the end."""
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


def one_send(p, lmr, rmr, loff, roff, data):
    p.l.poke(lmr[1] + loff, data)
    p.r.post_recv(p.rc, 7, (rmr[1] + roff, len(data) + 9, rmr[2]))
    p.l.post_send(p.lc, wr("SEND", [(lmr[1] + loff, len(data), lmr[2])]))
    p.send_done()
    p.recv_done(7, len(data))
    check_placed(p.r, rmr, roff, data, ROOM)


def one_write(p, lmr, rmr, loff, roff, data):
    p.l.poke(lmr[1] + loff, data)
    p.l.post_send(p.lc, wr("RDMA_WRITE", [(lmr[1] + loff, len(data), lmr[2])],
                           raddr=rmr[1] + roff, rkey=rmr[3]))
    p.send_done()
    p.sync(lmr, rmr)
    check_placed(p.r, rmr, roff, data, ROOM)


def one_read(p, lmr, rmr, loff, roff, data):
    p.r.poke(rmr[1] + roff, data)
    p.l.poke(lmr[1] + max(0, loff - 16), b"\xff" * (len(data) + 32))
    p.l.post_send(p.lc, wr("RDMA_READ", [(lmr[1] + loff, len(data), lmr[2])],
                           raddr=rmr[1] + roff, rkey=rmr[3]))
    p.send_done()
    check_placed(p.l, lmr, loff, data, ROOM)


def send_sizes(l, r, addr):
    each_combination(l, r, addr, one_send)


def write_sizes(l, r, addr):
    each_combination(l, r, addr, one_write)


def read_sizes(l, r, addr):
    each_combination(l, r, addr, one_read)


def send_back(l, r, addr):
    """From the accepting side to the connecting one."""
    with buffers(l, r, ROOM) as (lmr, rmr), pair(l, r, addr) as p:
        back = Pair(r, l, p.rc, p.lc)
        for size in (0, 1, 65, PAGE, 65537):
            one_send(back, rmr, lmr, 3, PAGE - 2, rng.randbytes(size))
            one_write(back, rmr, lmr, 3, PAGE - 2, rng.randbytes(size))
            one_read(back, rmr, lmr, 3, PAGE - 2, rng.randbytes(size))


def wire(l, r, addr):
    """Some of everything, of all sizes of padding."""
    with buffers(l, r, ROOM) as (lmr, rmr), pair(l, r, addr) as p:
        for size in (0, 1, 2, 3, 4, 5, 100, 1407, 1408, 1409, 4096, 65535):
            for one in (one_send, one_write, one_read):
                one(p, lmr, rmr, 1, 2, rng.randbytes(size))


def interop(l, r, addr):
    """SEND, WRITE, READ from both sides, with any implementation. The accepting side
    starts when it has been spoken to. Short messages do not cross pages: siw sends
    wrong octets then."""
    shapes = [c for c in combinations() if 32 < c[2] < MIB or c[2] and c[0] == c[1] == 0]
    with buffers(l, r, ROOM) as (lmr, rmr), buffers(r, l, ROOM) as (rmr2, lmr2), \
            pair(l, r, addr) as p:
        back = Pair(r, l, p.rc, p.lc)
        for one in (one_send, one_write, one_read):
            for loff, roff, size in shapes:
                one(p, lmr, rmr, loff, roff, rng.randbytes(size))
                one(back, rmr2, lmr2, loff, roff, rng.randbytes(size))


def server_first(l, r, addr):
    """The accepting side may speak first (peer-to-peer mode)."""
    with buffers(l, r, PAGE) as (lmr, rmr):
        r.listen(addr)
        lc = l.connect(addr, {})
        rc, _ = r.request()
        r.accept(rc, {})
        l.event(lc, "ESTABLISHED")
        l.post_recv(lc, 5, (lmr[1], PAGE, lmr[2]))
        r.child_event("ESTABLISHED")
        r.poke(rmr[1], b"good morning")
        r.post_send(rc, wr("SEND", [(rmr[1], 12, rmr[2])]))
        expect(l.complete(lc, "recv"), [(5, "SUCCESS", 12)])
        expect(l.peek(lmr[1], 12), b"good morning")
        disconnect(Pair(l, r, lc, rc))


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


def multi_sge(l, r, addr):
    """Up to six SGEs at either end of SEND, WRITE, READ."""
    with buffers(l, r, 4 * 65536) as (lmr, rmr), pair(l, r, addr) as p:
        for size, src, dst in ((100, 6, 5), (7, 6, 6), (3, 6, 2), (20001, 5, 6), (65536, 3, 1),
                               (65535, 1, 6)):
            data = rng.randbytes(size)
            here, there = cut(lmr, size, src, 37), cut(rmr, size, dst, 4091)
            scatter(l, here, data)
            r.post_recv(p.rc, 3, *there)
            l.post_send(p.lc, wr("SEND", here))
            p.send_done()
            p.recv_done(3, size)
            expect(gather(r, there) == data, True, f"SEND of {size}")
            l.post_send(p.lc, wr("RDMA_WRITE", here, raddr=rmr[1] + 5, rkey=rmr[3]))
            p.send_done()
            p.sync(lmr, rmr)
            expect(r.peek(rmr[1] + 5, size) == data, True, f"WRITE of {size}")
            data = rng.randbytes(size)
            r.poke(rmr[1] + 5, data)
            l.post_send(p.lc, wr("RDMA_READ", here, raddr=rmr[1] + 5, rkey=rmr[3]))
            p.send_done()
            expect(gather(l, here) == data, True, f"READ of {size} into {src} SGEs")


def read_into_local(l, r, addr):
    """The sink of a READ needs no more than local write access."""
    with memory(l, PAGE, LOCAL) as lmr, memory(r, PAGE, RREAD) as rmr, pair(l, r, addr) as p:
        data = rng.randbytes(1000)
        r.poke(rmr[1], data)
        l.post_send(p.lc, wr("RDMA_READ", [(lmr[1], 1000, lmr[2])], raddr=rmr[1], rkey=rmr[3]))
        p.send_done()
        expect(l.peek(lmr[1], 1000) == data, True, "data")


def inline(l, r, addr):
    """Inline data is taken at the post; it needs no MR."""
    with buffers(l, r, PAGE) as (lmr, rmr), pair(l, r, addr) as p:
        for size in (0, 1, 4, 16, 63, 79, 80):
            for op in ("SEND", "RDMA_WRITE"):
                data = rng.randbytes(size)
                l.poke(lmr[1], data)
                where = {"raddr": rmr[1] + 100, "rkey": rmr[3]} if op != "SEND" else {}
                if op == "SEND":
                    r.post_recv(p.rc, 4, (rmr[1] + 100, 90, rmr[2]))
                l.post_send(p.lc, wr(op, [(lmr[1], size, 0)], 1, ("SIGNALED", "INLINE"), **where))
                l.poke(lmr[1], b"\0" * size)
                p.send_done()
                if op == "SEND":
                    p.recv_done(4, size)
                else:
                    p.sync(lmr, rmr)
                expect(r.peek(rmr[1] + 100, size), data, f"{op} inline of {size}")


def unsignaled(l, r, addr):
    """Chains of which only the last WR is signaled, over a queue they fill."""
    count, size = 32, 100
    with buffers(l, r, count * size) as (lmr, rmr), pair(l, r, addr, {"depth": count}) as p:
        for turn in range(8):
            data = rng.randbytes(count * size)
            l.poke(lmr[1], data)
            for i in range(count):
                r.post_recv(p.rc, i, (rmr[1] + i * size, size, rmr[2]))
            l.post_send(p.lc, *[
                wr("SEND", [(lmr[1] + i * size, size, lmr[2])], 1000 * turn + i,
                   ("SIGNALED",) if i == count - 1 else ()) for i in range(count)])
            p.send_done(1000 * turn + count - 1)
            expect(r.complete(p.rc, "recv", count),
                   [(i, "SUCCESS", size) for i in range(count)], "receives")
            expect(r.peek(rmr[1], count * size) == data, True, "data")


def fence(l, r, addr):
    """A fenced SEND carries what the READ before it has brought."""
    size = 256 * 1024
    with buffers(l, r, 2 * size) as (lmr, rmr), pair(l, r, addr) as p:
        for turn in range(10):
            data = rng.randbytes(size)
            l.poke(lmr[1], data)
            l.poke(lmr[1] + size, b"\0" * size)
            r.post_recv(p.rc, turn, (rmr[1] + size, size, rmr[2]))
            l.post_send(
                p.lc,
                wr("RDMA_WRITE", [(lmr[1], size, lmr[2])], 1, (), raddr=rmr[1], rkey=rmr[3]),
                wr("RDMA_READ", [(lmr[1] + size, size, lmr[2])], 2, (),
                   raddr=rmr[1], rkey=rmr[3]),
                wr("SEND", [(lmr[1] + size, size, lmr[2])], 3, ("SIGNALED", "FENCE")))
            p.send_done(3)
            p.recv_done(turn, size)
            expect(r.peek(rmr[1] + size, size) == data, True, "WRITE, READ, fenced SEND")


def in_order(l, r, addr):
    """Completions come in the order of the posts: a SEND after a READ after it. WRITEs and
    SENDs arrive in that order."""
    with buffers(l, r, MIB) as (sink, source), buffers(l, r, PAGE) as (lmr, rmr), \
            pair(l, r, addr) as p:
        for turn in range(5):
            data = rng.randbytes(600)
            l.poke(lmr[1], data)
            chain = []
            for i in range(6):
                r.post_recv(p.rc, i, (rmr[1] + 1000 + 100 * i, 100, rmr[2]))
                own = lmr[1] + 100 * i
                chain.append(wr("RDMA_READ", [(sink[1], (MIB, 5, 65536)[i % 3], sink[2])], 3 * i,
                                raddr=source[1], rkey=source[3]))
                chain.append(wr("RDMA_WRITE", [(own, 100, lmr[2])], 3 * i + 1, raddr=rmr[1],
                                rkey=rmr[3]))
                chain.append(wr("SEND", [(own, 10 + i, lmr[2])], 3 * i + 2))
            l.post_send(p.lc, *chain)
            expect([c[:2] for c in l.complete(p.lc, "send", 18)],
                   [(i, "SUCCESS") for i in range(18)], f"completions of turn {turn}")
            expect(r.complete(p.rc, "recv", 6), [(i, "SUCCESS", 10 + i) for i in range(6)],
                   "receives")
            expect(r.peek(rmr[1], 100), data[500:], "the last WRITE to the same place")
            for i in range(6):
                expect(r.peek(rmr[1] + 1000 + 100 * i, 10 + i), data[100 * i:101 * i + 10],
                       f"SEND {i}")


def many_reads(l, r, addr):
    """More READs than may be outstanding wait for their turn: one more would end the stream."""
    with buffers(l, r, 64 * 1000) as (lmr, rmr), \
            pair(l, r, addr, {"ord": 3, "ird": 3}, {"ord": 2, "ird": 3}) as p:
        expect(l.read_limits(p.lc)[0], 3, "READs that may be outstanding")
        data = rng.randbytes(64 * 1000)
        r.poke(rmr[1], data)
        l.post_send(p.lc, *[wr("RDMA_READ", [(lmr[1] + i * 1000, 1000, lmr[2])], i,
                               raddr=rmr[1] + i * 1000, rkey=rmr[3]) for i in range(64)])
        expect([c[:2] for c in l.complete(p.lc, "send", 64)],
               [(i, "SUCCESS") for i in range(64)], "completions")
        expect(l.peek(lmr[1], 64000) == data, True, "data")


def all_flushed(found, count, what):
    """Each of 0..COUNT-1 once and in order; nothing succeeds after a flush."""
    expect([c[0] for c in found], list(range(count)), what)
    statuses = [c[1] for c in found]
    first = statuses.index("WR_FLUSH_ERR") if "WR_FLUSH_ERR" in statuses else count
    expect(set(statuses[:first]) | set(statuses[first:]) <= {"SUCCESS", "WR_FLUSH_ERR"}, True,
           f"{what}: {statuses}")
    expect(set(statuses[first:]) <= {"WR_FLUSH_ERR"}, True, f"{what}: {statuses}")


def flush(l, r, addr):
    """A QP that is moved to ERROR gives back every WR once; its peer, too."""
    with buffers(l, r, MIB) as (lmr, rmr), doomed(l, r, addr) as p:
        for i in range(20):
            l.post_recv(p.lc, i, (lmr[1], 10, lmr[2]))
            r.post_recv(p.rc, i, (rmr[1], 10, rmr[2]))
        l.post_send(p.lc, *[wr("RDMA_READ", [(lmr[1], MIB, lmr[2])], i, raddr=rmr[1],
                               rkey=rmr[3]) for i in range(30)])
        l.to_error(p.lc)
        found = l.complete(p.lc, "send", 30)
        all_flushed(found, 30, "READs")
        expect(found[-1][1], "WR_FLUSH_ERR", "last READ")
        for end, num in ((l, p.lc), (r, p.rc)):
            expect([c[:2] for c in end.complete(num, "recv", 20)],
                   [(i, "WR_FLUSH_ERR") for i in range(20)], "receives")
        # What is posted now comes back as well.
        l.post_send(p.lc, wr("SEND", [(lmr[1], 10, lmr[2])], 40))
        p.send_done(40, "WR_FLUSH_ERR")
        l.post_recv(p.lc, 41, (lmr[1], 10, lmr[2]))
        expect([c[:2] for c in l.complete(p.lc, "recv")], [(41, "WR_FLUSH_ERR")])
        for end, num in ((l, p.lc), (r, p.rc)):
            for queue in ("send", "recv"):
                expect(end.completions(num, queue), [], "second completions")


# Ways to a state without a connection, and where one may go from there.
IDLE_WAYS = {
    "RESET": (("RESET",), {"RESET", "INIT", "ERR"}),
    "INIT": (("RESET", "INIT"), {"RESET", "INIT", "RTR", "ERR"}),
    "RTR": (("RESET", "INIT", "RTR"), {"RESET", "INIT", "RTR", "ERR"}),
    "ERR": (("ERR",), {"RESET", "SQD", "ERR"}),
}
ALL_STATES = ("RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR")


def states(l, r, addr):
    """From each state to each, by modify: what may be is done, all else changes nothing."""
    for state, (way, legal) in IDLE_WAYS.items():
        for to in ALL_STATES:
            num, _ = l.idle_qp()
            expect([l.modify(num, step) for step in way], [0] * len(way), f"to {state}")
            expect(l.modify(num, to), 0 if to in legal else errno.EINVAL, f"{state} to {to}")
            # Closing what is closed is nothing.
            stays = to not in legal or (state, to) == ("ERR", "SQD")
            expect(l.state(num), state if stays else to, f"{state} to {to}")
            l.close(num)
    with pair(l, r, addr) as p:
        for to in ("INIT", "RTR", "SQE"):
            expect(l.modify(p.lc, to), errno.EINVAL, f"RTS to {to}")
            expect(l.state(p.lc), "RTS", f"after {to}")
        expect(l.modify(p.lc, "RTS"), 0, "RTS to RTS")
    for to in ("SQD", "ERR", "RESET"):
        with closing(l, r, addr) as p:
            expect(l.modify(p.lc, to), 0, f"RTS to {to}")


@contextlib.contextmanager
def closing(l, r, addr):
    """One connection that the body ends, whatever the state is then."""
    r.listen(addr)
    p = connect(l, r, addr, {}, {})
    yield p
    l.event(p.lc, "DISCONNECTED")
    r.child_event("DISCONNECTED")
    finish(p)


def limits(l, _r, _addr):
    """Exactly what is advertised can be had, one more cannot."""
    for most, what in ((32768, "max_send_wr"), (6, "max_send_sge"), (80, "max_inline_data")):
        num, err = l.idle_qp(**{what: most})
        expect(err, 0, f"{what} {most}")
        l.close(num)
        expect(l.idle_qp(**{what: most + 1}), (None, errno.EINVAL), f"{what} {most + 1}")
    for cqe, err in ((1 << 20, 0), ((1 << 20) + 1, errno.EINVAL)):
        expect(l.cq_errno(cqe), err, f"{cqe} completions")


def orderly_close(l, r, addr):
    """disconnect() with work queued: it is done first, READs with their answers; receives
    come back flushed."""
    size = 65536
    with buffers(l, r, size) as (lmr, rmr), buffers(l, r, size) as (sink, source):
        data = rng.randbytes(size)
        r.poke(source[1], data)
        r.listen(addr)
        p = connect(l, r, addr, {}, {})
        for i in range(25):
            r.post_recv(p.rc, i, (rmr[1], size, rmr[2]))
        l.post_send(p.lc, *[wr("SEND", [(lmr[1], size, lmr[2])], i) for i in range(20)],
                    *[wr("RDMA_READ", [(sink[1], size, sink[2])], i, raddr=source[1],
                         rkey=source[3]) for i in range(20, 30)])
        l.disconnect(p.lc)
        l.event(p.lc, "DISCONNECTED")
        r.child_event("DISCONNECTED")
        expect([c[:2] for c in l.complete(p.lc, "send", 30)],
               [(i, "SUCCESS") for i in range(30)], "SENDs and READs")
        expect(l.peek(sink[1], size) == data, True, "what was read")
        expect([c[:2] for c in r.complete(p.rc, "recv", 25)],
               [(i, "SUCCESS" if i < 20 else "WR_FLUSH_ERR") for i in range(25)], "receives")
        finish(p)


def arm_next(l, r, addr):
    """Armed for any completion: one event, then none until armed again."""
    with buffers(l, r, PAGE) as (lmr, rmr), pair(l, r, addr, {}, {"comp": True}) as p:
        for i in range(6):
            r.post_recv(p.rc, i, (rmr[1], 10, rmr[2]))
        for i in range(2):
            r.arm(p.rc, False)
            expect(r.notified(p.rc), False, "event before a completion")
            l.post_send(p.lc, wr("SEND", [(lmr[1], 1, lmr[2])]))
            p.send_done()
            expect(r.notified(p.rc, 10), True, "event")
            p.recv_done(2 * i, 1)
            l.post_send(p.lc, wr("SEND", [(lmr[1], 2, lmr[2])]))
            p.send_done()
            p.recv_done(2 * i + 1, 2)
            expect(r.notified(p.rc), False, "event without arming")


def arm_solicited(l, r, addr):
    """Armed for solicited completions: others wake nobody, errors do."""
    with buffers(l, r, PAGE) as (lmr, rmr), doomed(l, r, addr, {}, {"comp": True}) as p:
        for i in range(20):
            r.post_recv(p.rc, i, (rmr[1], 10, rmr[2]))
        r.arm(p.rc, True)
        for i in range(8):
            l.post_send(p.lc, wr("SEND", [(lmr[1], 1, lmr[2])]))
            p.send_done()
            p.recv_done(i, 1)
        expect(r.notified(p.rc), False, "event of a plain SEND")
        l.post_send(p.lc, wr("SEND", [(lmr[1], 1, lmr[2])], 1, ("SIGNALED", "SOLICITED")))
        p.send_done()
        expect(r.notified(p.rc, 10), True, "event of a solicited SEND")
        p.recv_done(8, 1)
        r.arm(p.rc, True)
        l.to_error(p.lc)
        expect(r.notified(p.rc, 10), True, "event of a flushed receive")
        expect([c[1] for c in r.complete(p.rc, "recv", 11)], ["WR_FLUSH_ERR"] * 11)


def srq(l, r, addr):
    """Two connections share receives; the limit is told once per arming."""
    with buffers(l, r, 20 * 100) as (lmr, rmr):
        queue = r.srq(32)
        r.listen(addr)
        pairs = [connect(l, r, addr, {}, {"srq": queue}) for _ in range(2)]
        for i in range(20):
            r.srq_recv(queue, i, (rmr[1] + 100 * i, 100, rmr[2]))
        r.srq_limit(queue, 5)
        expect(r.async_events(), [], "events with enough receives")
        for i in range(20):
            p = pairs[i % 2]
            data = rng.randbytes(50 + i)
            l.poke(lmr[1], data)
            l.post_send(p.lc, wr("SEND", [(lmr[1], len(data), lmr[2])]))
            p.send_done()
            p.recv_done(i, len(data))
            expect(r.peek(rmr[1] + 100 * i, len(data)), data, "data")
            if i == 13:
                expect(r.async_events(), [], "events with six receives left")
        r.async_event("SRQ_LIMIT_REACHED")
        expect(r.async_events(), [], "second event of one arming")
        for p in pairs:
            l.disconnect(p.lc)
            l.event(p.lc, "DISCONNECTED")
            r.child_event("DISCONNECTED")
            l.close(p.lc)
            r.close(p.rc)
        r.listen_end()
        r.srq_close(queue)


def refusal(end, event):
    """END has sent a Terminate and tells its consumer why, once."""
    end.async_event(event)
    expect(end.async_events(), [], "second event of one fault")


def refused(l, r, addr, op, access, raddr_of, size, rkey_of=lambda rmr: rmr[3]):
    """One WR that the peer must refuse: a Terminate ends the connection, the WR (a READ)
    or the work after it (a WRITE completes early) comes back with an error, nothing is
    placed, but for the first segments of a WRITE that begins well."""
    with memory(l, 2 * PAGE) as lmr, memory(r, PAGE, access, 100) as rmr, \
            doomed(l, r, addr) as p:
        l.poke(lmr[1], b"\x55" * 2 * PAGE)
        l.post_recv(p.lc, 50, (lmr[1], 8, lmr[2]))
        r.post_recv(p.rc, 51, (rmr[1], 0, rmr[2]))
        r.poke(rmr[1] - 100, b"\xff" * (PAGE + 200))
        l.post_send(p.lc, wr(op, [(lmr[1], size, lmr[2])], 1,
                             raddr=raddr_of(rmr), rkey=rkey_of(rmr)))
        got = l.complete(p.lc, "send")[0]
        wanted = ("REM_ACCESS_ERR",) if op == "RDMA_READ" else ("SUCCESS", "REM_ACCESS_ERR")
        expect(got[1] in wanted, True, f"status {got[1]}")
        expect(l.complete(p.lc, "recv"), [(50, "WR_FLUSH_ERR", 0)])
        expect(r.complete(p.rc, "recv"), [(51, "WR_FLUSH_ERR", 0)])
        around = r.peek(rmr[1] - 100, 100) + r.peek(rmr[1] + PAGE, 100)
        expect(around == b"\xff" * 200, True, "memory around the MR untouched")
        if size < 1000:
            expect(r.peek(rmr[1], PAGE) == b"\xff" * PAGE, True, "the MR untouched")
        expect(l.peek(lmr[1], 2 * PAGE) == b"\x55" * 2 * PAGE, True, "sink untouched")
        l.async_event("QP_FATAL")
        refusal(r, "QP_ACCESS_ERR")


def write_wrong_rkey(l, r, addr):
    refused(l, r, addr, "RDMA_WRITE", ALL, lambda m: m[1], 10, lambda m: m[3] ^ 0xff00)
    refused(l, r, addr, "RDMA_WRITE", ALL, lambda m: m[1], 10, lambda m: m[3] ^ 1)
    refused(l, r, addr, "RDMA_WRITE", ALL, lambda m: m[1], 10, lambda m: 0)


def write_out_of_bounds(l, r, addr):
    refused(l, r, addr, "RDMA_WRITE", ALL, lambda m: m[1] + 1, PAGE)
    refused(l, r, addr, "RDMA_WRITE", ALL, lambda m: m[1] - 1, 1)
    refused(l, r, addr, "RDMA_WRITE", ALL, lambda m: 2 ** 64 - 1, 8)


def write_to_read_only(l, r, addr):
    refused(l, r, addr, "RDMA_WRITE", RREAD, lambda m: m[1], 10)
    refused(l, r, addr, "RDMA_WRITE", LOCAL, lambda m: m[1], 10)


def read_without_access(l, r, addr):
    refused(l, r, addr, "RDMA_READ", LOCAL, lambda m: m[1], 10)
    refused(l, r, addr, "RDMA_READ", LOCAL | RWRITE, lambda m: m[1], 10)


def read_out_of_bounds(l, r, addr):
    refused(l, r, addr, "RDMA_READ", ALL, lambda m: m[1] + PAGE - 9, 10)
    refused(l, r, addr, "RDMA_READ", ALL, lambda m: m[1], 10, lambda m: m[3] ^ 0xff00)


def too_long(l, r, addr):
    """A message that does not fit its receive: nothing of it is delivered."""
    with buffers(l, r, PAGE) as (lmr, rmr), doomed(l, r, addr) as p:
        r.post_recv(p.rc, 1, (rmr[1], 100, rmr[2]))
        r.post_recv(p.rc, 2, (rmr[1], 100, rmr[2]))
        l.poke(lmr[1], b"\x55" * PAGE)
        l.post_send(p.lc, wr("SEND", [(lmr[1], 101, lmr[2])]))
        found = r.complete(p.rc, "recv", 2)
        expect([c[:2] for c in found], [(1, "LOC_LEN_ERR"), (2, "WR_FLUSH_ERR")], "receives")
        expect(r.peek(rmr[1] + 100, 100), b"\xff" * 100, "octets after the receive buffer")
        l.complete(p.lc, "send")
        l.async_event("QP_FATAL")
        refusal(r, "QP_REQ_ERR")


def no_receive(l, r, addr):
    """A SEND that meets no receive ends the connection; work behind it fails."""
    with buffers(l, r, PAGE) as (lmr, rmr), doomed(l, r, addr) as p:
        l.post_send(p.lc, wr("SEND", [(lmr[1], 10, lmr[2])], 0),
                    wr("RDMA_READ", [(lmr[1], 10, lmr[2])], 1, raddr=rmr[1], rkey=rmr[3]))
        found = l.complete(p.lc, "send", 2)
        expect([c[0] for c in found], [0, 1], "completions")
        expect(found[1][1] != "SUCCESS", True, f"READ after it: {found[1][1]}")
        l.async_event("QP_FATAL")
        refusal(r, "QP_FATAL")


def local_errors(l, r, addr):
    """A wrong lkey or range of one's own fails the WR, before any of it is sent. In its place
    the peer gets a Terminate, behind the messages before it."""
    with buffers(l, r, PAGE) as (lmr, rmr):
        for sge, status in (((lmr[1], 10, lmr[2] ^ 0xff00), "LOC_PROT_ERR"),
                            ((lmr[1] + PAGE - 5, 10, lmr[2]), "LOC_PROT_ERR"),
                            ((lmr[1] - 1, 10, lmr[2]), "LOC_PROT_ERR")):
            with counted(l, tx_terminates=1, rx_terminates=0), \
                    counted(r, tx_terminates=0, rx_terminates=1), doomed(l, r, addr) as p:
                for i in range(2):
                    r.post_recv(p.rc, i, (rmr[1], 10, rmr[2]))
                good = [(lmr[1], 10, lmr[2])]
                l.post_send(p.lc, wr("SEND", good, 0), wr("SEND", [sge], 1), wr("SEND", good, 2))
                expect([c[:2] for c in l.complete(p.lc, "send", 3)],
                       [(0, "SUCCESS"), (1, status), (2, "WR_FLUSH_ERR")])
                expect([c[:2] for c in r.complete(p.rc, "recv", 2)],
                       [(0, "SUCCESS"), (1, "WR_FLUSH_ERR")])
                l.async_events()
                r.async_events()


def iova(l, r, addr):
    """An MR whose peers know it by another address than its owner's."""
    base = 0x123456789000
    with memory(l, 4 * PAGE) as lmr, pair(l, r, addr) as p:
        rmr = r.mr_iova(4 * PAGE, base)
        data = rng.randbytes(9000)
        l.poke(lmr[1], data)
        l.post_send(p.lc, wr("RDMA_WRITE", [(lmr[1], 9000, lmr[2])], raddr=base + 100,
                             rkey=rmr[3]))
        p.send_done()
        p.l.poke(lmr[1], b"\0" * 9000)
        l.post_send(p.lc, wr("RDMA_READ", [(lmr[1], 9000, lmr[2])], raddr=base + 100,
                             rkey=rmr[3]))
        p.send_done()
        expect(r.peek(rmr[1] + 100, 9000) == data, True, "WRITE")
        expect(l.peek(lmr[1], 9000) == data, True, "READ")
        # The owner uses the same address with its lkey.
        r.post_recv(p.rc, 1, (base, 100, rmr[2]))
        l.post_send(p.lc, wr("SEND", [(lmr[1], 100, lmr[2])]))
        p.send_done()
        p.recv_done(1, 100)
        expect(r.peek(rmr[1], 100) == data[:100], True, "SEND")
        r.close_mr(rmr[0])


def rereg(l, r, addr):
    """An MR that is registered anew, in each respect; where that fails, it is as it was."""
    base, other = 0x123456789000, 0x40000
    with memory(l, PAGE) as lmr, doomed(l, r, addr) as p:
        rmr = r.mr_iova(4 * PAGE, base)
        keys = [rmr[3]]

        def write(where, at):
            data = rng.randbytes(100)
            l.poke(lmr[1], data)
            l.post_send(p.lc, wr("RDMA_WRITE", [(lmr[1], 100, lmr[2])], raddr=where,
                                 rkey=keys[-1]))
            p.send_done()
            p.sync(lmr, rmr2)
            expect(r.peek(rmr[1] + at, 100) == data, True, f"octets at {at}")

        def again(*args, **kwargs):
            error, _, rkey = r.mr_again(rmr[0], *args, **kwargs)
            expect(error, 0, "errno")
            keys.append(rkey)

        rmr2 = r.mr(PAGE)
        write(base, 0)
        again(REREG_ACCESS, access=LOCAL | RWRITE)
        write(base + 5, 5)
        again(REREG_TRANS, 2 * PAGE, other, shift=2 * PAGE)
        write(other, 2 * PAGE)
        for flags, args, error in ((REREG_TRANS, {"size": 0, "iova": base}, "EINVAL"),
                                   (REREG_TRANS, {"size": 1 << 40, "iova": base}, "EINVAL"),
                                   (REREG_TRANS, {"size": PAGE, "iova": other,
                                                  "shift": 1 << 44}, "EFAULT"),
                                   (REREG_ACCESS, {"access": RWRITE}, "EINVAL"),
                                   (8, {}, "ENOTSUP"), (0, {}, "EINVAL")):
            got = r.mr_again(rmr[0], flags, **args)[0]
            expect(errno.errorcode.get(got), error, f"error of {flags} {args}")
            write(other + 50, 2 * PAGE + 50)
        again(REREG_ACCESS, access=LOCAL | RREAD | RWRITE)
        write(other + 100, 2 * PAGE + 100)
        again(REREG_PD)
        expect(len(set(keys)), 5, "different keys")
        l.post_send(p.lc, wr("RDMA_READ", [(lmr[1], 100, lmr[2])], raddr=other,
                             rkey=keys[-1]))
        p.send_done(1, "REM_ACCESS_ERR")
        r.close_mr(rmr[0])
        r.close_mr(rmr2[0])
        l.async_event("QP_FATAL")
        r.async_events()


def rereg_writable(l, r, addr):
    """Memory that was pinned for reading is pinned anew to be written, if it may be."""
    base = 0x123456789000
    with buffers(l, r, PAGE) as (lmr, rmr2), pair(l, r, addr) as p:
        rmr = r.mr_iova(2 * PAGE, base, RREAD)
        l.poke(lmr[1], b"\x55" * PAGE)
        r.protect(rmr[1], 2 * PAGE, False)
        expect(r.mr_again(rmr[0], REREG_ACCESS, access=ALL)[0], errno.EFAULT, "errno")
        r.protect(rmr[1], 2 * PAGE, True)
        error, _, rkey = r.mr_again(rmr[0], REREG_ACCESS, access=ALL)
        expect(error, 0, "errno")
        l.post_send(p.lc, wr("RDMA_WRITE", [(lmr[1], PAGE, lmr[2])], raddr=base + 100,
                             rkey=rkey))
        p.send_done()
        p.sync(lmr, rmr2)
        check_placed(r, (0, rmr[1]), 100, b"\x55" * PAGE, 2 * PAGE)
        r.close_mr(rmr[0])


def dmabuf_errors(l, r, _):
    """What is no part of a dma-buf is not registered."""
    buf, _ = r.dmabuf(4 * PAGE)
    for which, offset, size, iova, access, error in (
            (1000, 0, PAGE, 0, ALL, "EBADF"), (0, 0, PAGE, 0, ALL, "EINVAL"),
            (buf, 0, 0, 0, ALL, "EINVAL"), (buf, 0, 4 * PAGE + 1, 0, ALL, "EINVAL"),
            (buf, 4 * PAGE, 1, 0, ALL, "EINVAL"), (buf, 2 ** 64 - PAGE, PAGE, 0, ALL, "EINVAL"),
            (buf, PAGE, 2 ** 64 - PAGE, 0, ALL, "EINVAL"), (buf, 1, PAGE, 0, ALL, "EINVAL"),
            (buf, 0, PAGE + 1, 2 ** 64 - PAGE, ALL, "EINVAL"),
            (buf, 0, PAGE, 0, RWRITE, "EINVAL")):
        got = r.mr_dmabuf(which, offset, size, iova, access)[0]
        expect(errno.errorcode.get(got), error, f"error of {which} {offset} {size} {iova}")
    # All of the buffer is pinned, however little is registered.
    expect(r.mr_dmabuf_limited(buf, PAGE, 3 * PAGE), errno.ENOMEM, "beyond RLIMIT_MEMLOCK")
    r.dmabuf_close(buf)


def dmabuf(l, r, addr):
    """A part of a dma-buf is registered, which stays when its file descriptor goes."""
    base, room, size = 0x123456789000, 8 * PAGE, 5 * PAGE
    with memory(l, room) as lmr, doomed(l, r, addr) as p:
        buf, where = r.dmabuf(room)
        error, num, lkey, rkey = r.mr_dmabuf(buf, PAGE + 100, size, base + 100)
        expect(error, 0, "errno")
        expect("dmabuf" in r.mr_kinds(), True, "kind of the region")
        r.dmabuf_close(buf)
        expect(r.mr_again(num, REREG_ACCESS, access=ALL)[0], errno.EINVAL, "rereg")
        data = rng.randbytes(size)
        l.poke(lmr[1], data)
        l.post_send(p.lc, wr("RDMA_WRITE", [(lmr[1], size, lmr[2])], raddr=base + 100,
                             rkey=rkey))
        p.send_done()
        l.poke(lmr[1], b"\0" * size)
        l.post_send(p.lc, wr("RDMA_READ", [(lmr[1], size, lmr[2])], raddr=base + 100,
                             rkey=rkey))
        p.send_done()
        expect(l.peek(lmr[1], size) == data, True, "READ")
        check_placed(r, (0, where), PAGE + 100, data, room)
        # The owner uses the same address with its lkey.
        r.post_recv(p.rc, 1, (base + 200, 100, lkey))
        l.post_send(p.lc, wr("SEND", [(lmr[1], 100, lmr[2])]))
        p.send_done()
        p.recv_done(1, 100)
        check_placed(r, (0, where), PAGE + 200, data[:100], room)
        l.post_send(p.lc, wr("RDMA_READ", [(lmr[1], 2, lmr[2])], raddr=base + 100 + size - 1,
                             rkey=rkey))
        p.send_done(1, "REM_ACCESS_ERR")
        r.close_mr(num)
        l.async_event("QP_FATAL")
        r.async_events()


def dmabuf_limits(_l, r, _addr):
    """What the exporter does not allow is not registered, and nothing of it is held."""
    for kind, access, error in (
            ("read-only", ALL, errno.EACCES), ("read-only", LOCAL, errno.EACCES),
            ("no vmap", ALL, errno.EOPNOTSUPP), ("no vmap", RREAD, errno.EOPNOTSUPP),
            ("I/O memory", ALL, errno.EOPNOTSUPP), ("I/O memory", RREAD, errno.EOPNOTSUPP),
            ("busy", ALL, errno.EBUSY), ("no memory", ALL, errno.ENOMEM)):
        buf = r.exported(kind, 3 * PAGE)
        expect(r.mr_dmabuf(buf, 0, PAGE, 0, access)[0], error, f"{kind}, rights {access:#x}")
        expect(r.exports_held(), ["0", "0"], f"held of {kind}")
        r.dmabuf_close(buf)


def dmabuf_read_only(l, r, addr):
    """A dma-buf that is open for reading can be read by the peer, and is not written."""
    base, size = 0x123456789000, 3 * PAGE
    with memory(l, size) as lmr, doomed(l, r, addr) as p:
        buf = r.exported("read-only", size)
        error, num, _, rkey = r.mr_dmabuf(buf, 0, size, base, RREAD)
        expect(error, 0, "errno")
        r.dmabuf_close(buf)
        expect(r.exports_held(), ["1", "1"], "held of a region")
        read = wr("RDMA_READ", [(lmr[1], size, lmr[2])], raddr=base, rkey=rkey)
        l.post_send(p.lc, read)
        p.send_done()
        expect(l.peek(lmr[1], size) == bytes(i % 251 for i in range(size)), True, "READ")
        l.post_send(p.lc, wr("RDMA_WRITE", [(lmr[1], 1, lmr[2])], raddr=base, rkey=rkey))
        l.complete(p.lc, "send")
        l.async_event("QP_FATAL")
        refusal(r, "QP_ACCESS_ERR")
        r.close_mr(num)
        expect(r.exports_held(), ["0", "0"], "held of nothing")


def dereg(l, r, addr):
    """MRs come and go; the key of one that is gone opens nothing."""
    with memory(l, PAGE) as lmr, doomed(l, r, addr) as p:
        keys = set()
        for i in range(50):
            rmr = r.mr(PAGE + i, ALL, i)
            keys.add(rmr[3])
            l.poke(lmr[1], bytes([i]) * 100)
            l.post_send(p.lc, wr("RDMA_WRITE", [(lmr[1], 100, lmr[2])], raddr=rmr[1] + i,
                                 rkey=rmr[3]))
            p.send_done()
            l.post_send(p.lc, wr("RDMA_READ", [(lmr[1] + 500, 100, lmr[2])],
                                 raddr=rmr[1] + i, rkey=rmr[3]))
            p.send_done()
            expect(l.peek(lmr[1] + 500, 100), bytes([i]) * 100, "data")
            r.close_mr(rmr[0])
        expect(len(keys), 50, "different keys")
        l.post_send(p.lc, wr("RDMA_READ", [(lmr[1], 100, lmr[2])], raddr=rmr[1], rkey=rmr[3]))
        p.send_done(1, "REM_ACCESS_ERR")
        l.async_event("QP_FATAL")
        r.async_events()


def dereg_midway(l, r, addr):
    """Local memory that goes in the middle of a message: its WR completes, and only once."""
    size = 16 * MIB
    with memory(r, size) as rmr, doomed(l, r, addr) as p:
        # On a busy machine all of them may have been sent before the memory goes.
        for _ in range(5):
            lmr = l.mr(size)
            l.post_send(p.lc, *[wr("RDMA_WRITE", [(lmr[1], size, lmr[2])], i, raddr=rmr[1],
                                   rkey=rmr[3]) for i in range(60)])
            l.close_mr(lmr[0])
            found = [c[:2] for c in l.complete(p.lc, "send", 60)]
            expect([c[0] for c in found], list(range(60)), "each once, in order")
            if "LOC_PROT_ERR" in [c[1] for c in found]:
                break
        expect("LOC_PROT_ERR" in [c[1] for c in found], True,
               f"the one that lost its memory: {found}")
        l.post_send(p.lc, wr("RDMA_WRITE", [(lmr[1], 0, lmr[2])], 99, raddr=rmr[1],
                              rkey=rmr[3]))
        p.send_done(99, "WR_FLUSH_ERR")
    l.async_events()
    r.async_events()


def spread(mrs, size):
    """SGEs of each of them in turn, and again."""
    return [(m[1] + 2000 + 100 * i, size, m[2]) for i, m in enumerate(mrs + mrs)]


def in_turn(p, near, far):
    """A batch of Writes, Reads and a Send, between all of three NEAR and of two or more FAR."""
    data = rng.randbytes(600)
    chain = []
    for i in range(6):
        here, there = near[i % len(near)], far[i % len(far)]
        p.l.poke(here[1] + 100 * i, data[100 * i:100 * i + 100])
        where = {"raddr": there[1] + 100 * i, "rkey": there[3]}
        chain.append(wr("RDMA_WRITE", [(here[1] + 100 * i, 100, here[2])], i, (), **where))
        chain.append(wr("RDMA_READ", [(here[1] + 1000 + 100 * i, 100, here[2])], i, (), **where))
    sges, into = spread(near, 50), spread(far, 80)
    scatter(p.l, sges, data)
    p.r.post_recv(p.rc, 7, *into)
    p.l.post_send(p.lc, *chain, wr("SEND", sges, 8))
    p.send_done(8)
    p.recv_done(7, 300)
    for i in range(6):
        expect(p.r.peek(far[i % len(far)][1] + 100 * i, 100), data[100 * i:100 * i + 100], "Write")
        expect(p.l.peek(near[i % len(near)][1] + 1000 + 100 * i, 100),
               data[100 * i:100 * i + 100], "Read")
    expect(gather(p.r, into)[:300], data[:300], "Send")


def regions_in_turn(l, r, addr):
    """Regions that are used in turn within a batch, at both ends; when one of them has gone,
    the others serve in one batch with it, and it does not."""
    near, far = [l.mr(PAGE) for _ in range(3)], [r.mr(PAGE) for _ in range(3)]
    where = [{"raddr": m[1], "rkey": m[3]} for m in far]
    with doomed(l, r, addr) as p:
        for _ in range(5):
            in_turn(p, near, far)
        r.close_mr(far[1][0])
        l.poke(near[0][1], b"\0" * PAGE)
        l.post_send(p.lc, *(wr("RDMA_WRITE", [(near[0][1], 100, near[0][2])], i, **where[i])
                            for i in (0, 2, 1)))
        expect([c[0] for c in l.complete(p.lc, "send", 3)], [0, 2, 1], "peer's region")
    expect(r.peek(far[0][1], 100) + r.peek(far[2][1], 100), b"\0" * 200, "Writes")
    with doomed(l, r, addr) as p:
        in_turn(p, near, far[::2])
        l.close_mr(near[1][0])
        l.post_send(p.lc, *(wr("RDMA_WRITE", [(near[i][1], 10, near[i][2])], i, **where[0])
                            for i in (0, 2, 1, 0)))
        expect([c[:2] for c in l.complete(p.lc, "send", 4)],
               [(0, "SUCCESS"), (2, "SUCCESS"), (1, "LOC_PROT_ERR"), (0, "WR_FLUSH_ERR")],
               "own region")
    l.async_events()
    r.async_events()
    for end, mr in ((l, near[0]), (l, near[2]), (r, far[0]), (r, far[2])):
        end.close_mr(mr[0])


def changing_memory(l, r, addr):
    """The owner rewrites memory that is being READ, and sent: CRCs hold."""
    size = 65536
    with buffers(l, r, size) as (lmr, rmr), memory(r, size) as sink, pair(l, r, addr) as p:
        for end, victim, op in ((r, rmr, "RDMA_READ"), (l, lmr, "RDMA_WRITE")):
            target = rmr if op == "RDMA_READ" else sink
            end.scribble(victim[1], size)
            deadline = time.monotonic() + SOAK
            count = 0
            while time.monotonic() < deadline:
                l.post_send(p.lc, *[wr(op, [(lmr[1], size, lmr[2])], i, raddr=target[1],
                                       rkey=target[3]) for i in range(4)])
                expect([c[:2] for c in l.complete(p.lc, "send", 4)],
                       [(i, "SUCCESS") for i in range(4)])
                count += 4
            end.scribble_end()
            expect(count > 8, True, f"{count} {op}")
        p.sync(lmr, rmr)


# Connections (130-cm.sh)

def private_data(l, r, addr):
    """With Request and Reply, none to as much as rdma_cm carries, exactly."""
    for size in (0, 1, 56, 255):
        ask, answer = rng.randbytes(size), rng.randbytes(255 - size)
        r.listen(addr)
        lc = l.connect(addr, {"pdata": ask})
        rc, event = r.request()
        expect(event.data, ask, "data of the Request")
        r.accept(rc, {"pdata": answer})
        expect(l.event(lc, "ESTABLISHED").data, answer, "data of the Reply")
        r.child_event("ESTABLISHED")
        disconnect(Pair(l, r, lc, rc))


def reject(l, r, addr):
    """The consumer rejects: its data arrives, the next request is served."""
    r.listen(addr)
    for data in (b"no, not today", b"", rng.randbytes(255)):
        lc = l.connect(addr, {"pdata": b"may I?"})
        rc, event = r.request()
        expect(event.data, b"may I?", "data of the Request")
        r.reject(rc, data)
        expect(l.event(lc, "REJECTED").data, data, "data of the rejection")
        l.close(lc)
        r.close(rc)
    disconnect(connect(l, r, addr, {}, {}))


def read_depths(l, r, addr):
    """Nobody may have more READs outstanding than the peer serves, and both know."""
    for lo, ro in (({"ord": 8, "ird": 3}, {"ord": 5, "ird": 6}),
                   ({"ord": 1, "ird": 1}, {"ord": 16, "ird": 16}),
                   ({"ord": 16, "ird": 16}, {"ord": 4, "ird": 4})):
        r.listen(addr)
        lc = l.connect(addr, lo)
        rc, event = r.request()
        expect((event.ord, event.ird), (lo["ird"], lo["ord"]), "depths of the Request")
        r.accept(rc, ro)
        event = l.event(lc, "ESTABLISHED")
        r.child_event("ESTABLISHED")
        p = Pair(l, r, lc, rc)
        l_ord, l_ird = l.read_limits(p.lc)
        r_ord, r_ird = r.read_limits(p.rc)
        what = f"ORD/IRD here {l_ord}/{l_ird}, there {r_ord}/{r_ird}, asked {lo} {ro}"
        expect(l_ord, min(lo["ord"], r_ird), what)
        expect(r_ord, min(ro["ord"], l_ird), what)
        expect((event.ord, event.ird), (l_ord, l_ird), "depths of ESTABLISHED")
        disconnect(p)


def disconnect(p):
    p.l.disconnect(p.lc)
    p.l.event(p.lc, "DISCONNECTED")
    p.r.child_event("DISCONNECTED")
    finish(p)


def silent_until_spoken_to(l, r, addr):
    """Without peer-to-peer mode what the accepting side sends waits: RFC 5044 7.1.2."""
    with buffers(l, r, PAGE) as (lmr, rmr), pair(l, r, addr) as p:
        l.post_recv(p.lc, 5, (lmr[1], 100, lmr[2]))
        r.post_send(p.rc, wr("SEND", [(rmr[1], 10, rmr[2])], 6))
        # Posting sends at once where it may, and the cable has no delay.
        expect(l.completions(p.lc, "recv"), [], "received before anything was sent")
        expect(r.completions(p.rc, "send"), [], "sent before anything was received")
        l.post_send(p.lc, wr("RDMA_WRITE", [(lmr[1], 0, lmr[2])], 7, raddr=rmr[1],
                             rkey=rmr[3]))
        p.send_done(7)
        Pair(r, l, p.rc, p.lc).send_done(6)
        expect(l.complete(p.lc, "recv"), [(5, "SUCCESS", 10)], "receive completion")


def nobody(l, _, addr):
    """Nobody listens: an event, and soon."""
    began = time.monotonic()
    lc = l.connect(addr, {}, port=9)
    l.event(lc, "REJECTED")
    expect(time.monotonic() - began < PATIENCE / 2, True, "soon")
    l.close(lc)


SMALL = {"depth": 4, "cqe": 8}


def two_hundred(l, r, addr):
    """200 connections at once, all pass data."""
    count = 200
    with buffers(l, r, count * 64) as (lmr, rmr):
        r.listen(addr, 64)
        pairs = []
        while len(pairs) < count:
            begun = [l.connect(addr, SMALL) for _ in range(20)]
            asked = [r.request()[0] for _ in begun]
            for rc in asked:
                r.accept(rc, SMALL)
            for lc in begun:
                l.event(lc, "ESTABLISHED")
                r.child_event("ESTABLISHED")
            pairs += zip(begun, asked)
        data = rng.randbytes(count * 64)
        l.poke(lmr[1], data)
        # Requests may have overtaken each other: pairs are no pairs, but all are used.
        for i, (_, rc) in enumerate(pairs):
            r.post_recv(rc, i, (rmr[1], 0, rmr[2]))
        for i, (lc, _) in enumerate(pairs):
            l.post_send(lc, wr("RDMA_WRITE", [(lmr[1] + 64 * i, 64, lmr[2])], 0, (),
                               raddr=rmr[1] + 64 * i, rkey=rmr[3]),
                        wr("SEND", [(lmr[1], 0, lmr[2])], i))
        for i, (lc, rc) in enumerate(pairs):
            expect([c[:2] for c in l.complete(lc, "send")], [(i, "SUCCESS")])
            expect(r.complete(rc, "recv"), [(i, "SUCCESS", 0)])
        expect(r.peek(rmr[1], count * 64) == data, True, "data")
        for lc, _ in pairs:
            l.disconnect(lc)
        for lc, rc in pairs:
            l.event(lc, "DISCONNECTED")
            r.child_event("DISCONNECTED")
        for lc, rc in pairs:
            l.close(lc)
            r.close(rc)
        r.listen_end()


@contextlib.contextmanager
def few_ports(count, held):
    """TCP has so many ports to choose from, of which other sockets have some."""
    with open(PORT_RANGE, encoding="ascii") as file:
        before = file.read()
    with contextlib.ExitStack() as stack:
        for port in rng.sample(range(FIRST_PORT, FIRST_PORT + count), held):
            sock = stack.enter_context(socket.socket())
            sock.bind(("", port))
        try:
            with open(PORT_RANGE, "w", encoding="ascii") as file:
                file.write(f"{FIRST_PORT} {FIRST_PORT + count - 1}")
            yield
        finally:
            with open(PORT_RANGE, "w", encoding="ascii") as file:
                file.write(before)


def ports_in_use(l, r, addr):
    """200 connections at once, when half of the ports are of plain TCP sockets."""
    with few_ports(500, 250):
        two_hundred(l, r, addr)


def backlog(l, r, addr):
    """More requests than the backlog at once: as many wait, the others are refused."""
    count, room = 12, 4
    r.listen(addr, room)
    waiting = [l.connect(addr, SMALL) for _ in range(count)]
    deadline = time.monotonic() + 20
    while len(waiting) > room and time.monotonic() < deadline:
        for lc in [c for c in waiting if l.has_event(c)]:
            l.event(lc, "REJECTED")
            l.close(lc)
            waiting.remove(lc)
    expect(len(waiting), room, "connections that wait")
    there = [r.request()[0] for _ in waiting]
    for rc in there:
        r.accept(rc, SMALL)
    for lc, rc in zip(waiting, there):
        l.event(lc, "ESTABLISHED")
        r.child_event("ESTABLISHED")
    for lc, rc in zip(waiting, there):
        l.disconnect(lc)
        l.event(lc, "DISCONNECTED")
        r.child_event("DISCONNECTED")
        r.close(rc)
        l.close(lc)
    r.listen_end()


# Peers that misbehave. The deadline of a startup is one second here.

RAW_PORT = 7900
FAILURES = "REJECTED UNREACHABLE CONNECT_ERROR"


@contextlib.contextmanager
def counted(end, **wanted):
    """These counters go up by that much."""
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


def meet(l, r, addr):
    """A connection request of ours that arrived at a plain TCP port."""
    lc = l.connect(addr, {}, port=RAW_PORT)
    there = r.tcp_accept()
    expect(r.tcp_recv(there, 16), b"MPA ID Req Frame", "Request")
    return lc, there


def peer_silent(l, r, addr):
    """A server that never answers, and one that stops within its answer."""
    r.tcp_listen(addr, RAW_PORT)
    for beginning in (b"", b"MPA ID Rep Fra", b"MPA ID Rep Frame\x40\x02\x00\x10ab"):
        with counted(l, conn_timeout=1, conn_established=0):
            began = time.monotonic()
            lc, there = meet(l, r, addr)
            r.tcp_send(there, beginning)
            l.event(lc, "UNREACHABLE")
            took = time.monotonic() - began
            expect(took > 0.9, True, f"{took:.2f} s, not too early")
            r.tcp_closed(there)
            l.close(lc)
    r.tcp_listen_end()


def peer_garbage(l, r, addr):
    """A server that speaks something else, or MPA nonsense."""
    r.tcp_listen(addr, RAW_PORT)
    for answer in (b"HTTP/1.1 400 Bad Request\r\n\r\n", b"\0", bytes(range(255, 0, -1)) * 4,
                   b"MPA ID Req Frame\x40\x02\x00\x00",     # a Request
                   b"MPA ID Rep Frame\x40\x09\x00\x00",     # a revision to come
                   b"MPA ID Rep Frame\x40\x01\x02\x01",     # 513 octets of private data
                   b"MPA ID Rep Frame\x50\x02\x00\x03"):    # too few for IRD and ORD
        with counted(l, conn_bad_mpa_frame=1, conn_established=0, conn_timeout=0):
            lc, there = meet(l, r, addr)
            r.tcp_send(there, answer)
            l.event(lc, "CONNECT_ERROR")
            r.tcp_closed(there)
            l.close(lc)
    r.tcp_listen_end()


def peer_closes(l, r, addr):
    """A server that closes or resets, before or within its answer."""
    r.tcp_listen(addr, RAW_PORT)
    for beginning, reset in ((b"", False), (b"", True), (b"MPA ID Rep", False),
                             (b"MPA ID Rep Frame", True)):
        with counted(l, conn_failed=1, conn_established=0, conn_retried=int(not beginning)):
            lc, there = meet(l, r, addr)
            r.tcp_send(there, beginning)
            r.tcp_close(there, reset)
            if not beginning:   # RFC 6581 10: once more, as to one that knows no revision 2
                there = r.tcp_accept()
                expect(r.tcp_recv(there, 18)[16:], b"\x40\x01", "flags and revision")
                r.tcp_close(there, reset)
            l.event(lc, FAILURES)
            l.close(lc)
    r.tcp_listen_end()


def answered_too_late(l, r, addr):
    """A server accepts when the QP is of no use any more: a Terminate, local error of MPA."""
    r.tcp_listen(addr, RAW_PORT)
    with counted(l, conn_disagreed=1, conn_established=0, tx_terminates=1):
        lc, there = meet(l, r, addr)
        r.tcp_recv(there, 8)
        l.to_error(lc)
        r.tcp_send(there, b"MPA ID Rep Frame\x50\x02\x00\x04\xc0\x01\xc0\x01")
        l.event(lc, "CONNECT_ERROR")
        expect(r.tcp_recv(there, 28)[20:24].hex(), "20050000", "Terminate")
        r.tcp_closed(there)
        l.close(lc)
    r.tcp_listen_end()


REQUEST = b"MPA ID Req Frame\x50\x02\x00\x04" + b"\x00\x10\x00\x10"


def callers_silent(l, r, addr):
    """Clients that say nothing, or half of it: others are served, they are dropped."""
    r.listen(addr)
    callers = [l.tcp_connect(addr) for _ in range(12)]
    with counted(r, conn_timeout=12, conn_requested=1):
        for i, caller in enumerate(callers):
            l.tcp_send(caller, REQUEST[:2 * i])
        p = connect(l, r, addr, {}, {})
        for caller in callers:
            expect(l.tcp_closed(caller) < PATIENCE / 2, True, "dropped at the deadline")
    alive(p)
    disconnect(p)


def callers_garbage(l, r, addr):
    """Clients that speak something else are dropped at once."""
    r.listen(addr)
    for words in (b"GET / HTTP/1.0\r\n\r\n", b"\0" * 100, b"MPA ID Rep Frame\x40\x02\x00\x00",
                  b"MPA ID Req Frame\x40\x07\x00\x00", b"MPA ID Req Frame\x40\x01\xff\xff"):
        with counted(r, conn_bad_mpa_frame=1, conn_requested=0):
            caller = l.tcp_connect(addr)
            l.tcp_send(caller, words)
            l.tcp_closed(caller)
    disconnect(connect(l, r, addr, {}, {}))


def callers_reset(l, r, addr):
    """Clients that go away: before, within and after their Request."""
    r.listen(addr)
    for size, reset in ((0, True), (0, False), (10, True), (10, False)):
        with counted(r, conn_failed=1):
            caller = l.tcp_connect(addr)
            l.tcp_send(caller, REQUEST[:size])
            l.tcp_close(caller, reset)
    caller = l.tcp_connect(addr)
    l.tcp_send(caller, REQUEST)
    rc, _ = r.request()
    l.tcp_close(caller, True)
    r.reject(rc)
    r.close(rc)
    disconnect(connect(l, r, addr, {}, {}))


def callers_many(l, r, addr):
    """More silent clients than may be half open: the excess is dropped, and counted."""
    r.listen(addr, 4)
    limited = r.counter("conn_limited")
    callers = []
    for _ in range(16):
        with contextlib.suppress(ConnectionResetError):
            callers.append(l.tcp_connect(addr))
    for caller in callers:
        expect(l.tcp_closed(caller) < PATIENCE / 2, True, "dropped in time")
    expect(r.counter("conn_limited") > limited, True, "conn_limited moved")
    disconnect(connect(l, r, addr, {}, {}))


def callers_unanswered(l, r, addr):
    """More Requests than may be unanswered, 8: the oldest are dropped, and others are served."""
    r.listen(addr, 32)
    callers, ids = [], []
    with counted(r, conn_limited=5, conn_timeout=0, conn_requested=13):
        for _ in range(12):
            callers.append(l.tcp_connect(addr))
            l.tcp_send(callers[-1], REQUEST)
            ids.append(r.request()[0])
        p = connect(l, r, addr, {}, {})
    for caller in callers[:5]:
        l.tcp_closed(caller)
    other, _ = r.idle_qp()
    expect(r.accept_errno(ids[0], r.qp_num(other)), errno.ECONNABORTED, "answered behind that")
    r.close(other)
    for caller, rc in zip(callers[5:], ids[5:]):
        r.reject(rc)
        expect(l.tcp_recv(caller, 17)[16] & 0x20, 0x20, "rejected")
        l.tcp_closed(caller)
    for rc in ids:
        r.close(rc)
    alive(p)
    disconnect(p)


def never_answered(l, r, addr):
    """A Request that the consumer neither accepts nor rejects ends at the deadline."""
    r.listen(addr)
    with counted(r, conn_timeout=1, conn_requested=1):
        caller = l.tcp_connect(addr)
        l.tcp_send(caller, REQUEST)
        rc, _ = r.request()
        expect(l.tcp_closed(caller) < PATIENCE / 2, True, "dropped in time")
    r.close(rc)
    r.listen_end()


def nothing_left(l, r, _):
    """Everything that was made has gone."""
    for end in (l, r):
        for kind in ("qp", "cq", "mr", "srq", "ep", "sock"):
            gone = end.counter(f"{kind}_destroyed")
            deadline = time.monotonic() + 10
            while end.counter(f"{kind}_created") != gone and time.monotonic() < deadline:
                time.sleep(0.05)
                gone = end.counter(f"{kind}_destroyed")
            expect(gone, end.counter(f"{kind}_created"), f"{kind}s gone")
