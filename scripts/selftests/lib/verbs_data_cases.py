# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Cases of verbs.py: Sends, Writes and Reads, what they place, and in which order."""

import time

from verbs_base import IS_EXT, LOCAL, RREAD, expect
from verbs_pairs import (MIB, PAGE, ROOM, SOAK, Pair, buffers, check_placed, combinations, counted,
                         cut, disconnect, doomed, each_combination, gather, memory, pair, refusal,
                         refuses, rng, scatter, wr)


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
    """From the accepting side to the connecting one. Large FPDUs have up to 8172 octets of a Write,
    and 32748 without CRC."""
    with buffers(l, r, ROOM) as (lmr, rmr), pair(l, r, addr) as p:
        back = Pair(r, l, p.rc, p.lc)
        for size in (0, 1, 65, PAGE, 8172, 8173, 32748, 32749, 65537):
            one_send(back, rmr, lmr, 3, PAGE - 2, rng.randbytes(size))
            one_write(back, rmr, lmr, 3, PAGE - 2, rng.randbytes(size))
            one_read(back, rmr, lmr, 3, PAGE - 2, rng.randbytes(size))


def wire(l, r, addr):
    """Messages of all kinds, with all lengths of padding."""
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
    """Chains that fill the queue and of which only the last WR is signaled."""
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
    """A fenced SEND carries the data that the READ before it has placed."""
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
    """A SEND that finds no receive ends the connection; work requests after it fail."""
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


def local_errors_before(l, r, addr):
    """Memory is looked at before anything is sent: neither a READ with a wrong sink nor the first part
    of a WRITE whose last part is wrong reaches the peer."""
    size = 65536
    with memory(l, size) as big, memory(r, 2 * size) as rmr:
        wrong = (big[1], 10, big[2] ^ 0xff00)
        with counted(l, tx_read_requests=0, tx_terminates=1), doomed(l, r, addr) as p:
            l.post_send(p.lc, wr("RDMA_READ", [wrong], 1, raddr=rmr[1], rkey=rmr[3]))
            expect(l.complete(p.lc, "send", 1)[0][:2], (1, "LOC_PROT_ERR"))
            l.async_events()
            r.async_events()
        l.poke(big[1], b"\x55" * size)
        r.poke(rmr[1], b"\xff" * 2 * size)
        with counted(l, tx_terminates=1), doomed(l, r, addr) as p:
            l.post_send(p.lc, wr("RDMA_WRITE", [(big[1], size, big[2]), wrong], 1, raddr=rmr[1],
                                 rkey=rmr[3]))
            expect(l.complete(p.lc, "send", 1)[0][:2], (1, "LOC_PROT_ERR"))
            l.async_events()
            r.async_events()
        expect(r.peek(rmr[1], size) == b"\xff" * size, True, "nothing is placed")


def read_without_depth(l, r, addr):
    """A READ on a connection that may have none outstanding fails, and nothing after it is sent."""
    with buffers(l, r, PAGE) as (lmr, rmr), doomed(l, r, addr, {"ord": 0}) as p:
        sge = [(lmr[1], 10, lmr[2])]
        l.post_send(p.lc, wr("RDMA_WRITE", sge, 0, raddr=rmr[1], rkey=rmr[3]),
                    wr("RDMA_READ", sge, 1, raddr=rmr[1], rkey=rmr[3]),
                    wr("RDMA_WRITE", sge, 2, raddr=rmr[1], rkey=rmr[3]))
        expect([c[:2] for c in l.complete(p.lc, "send", 3)],
               [(0, "SUCCESS"), (1, "LOC_QP_OP_ERR"), (2, "WR_FLUSH_ERR")])
        l.async_events()
        r.async_events()


def changing_memory(l, r, addr):
    """The owner rewrites memory that is being READ, and sent: CRCs hold."""
    size = 65536
    with buffers(l, r, size) as (lmr, rmr), memory(r, size) as sink, pair(l, r, addr) as p:
        for end, victim, op in ((r, rmr, "RDMA_READ"), (l, lmr, "RDMA_WRITE")):
            target = rmr if op == "RDMA_READ" else sink
            end.scribble(victim[1], size)
            deadline = time.monotonic() + SOAK
            count = 0
            while time.monotonic() < deadline or count <= 8:
                l.post_send(p.lc, *[wr(op, [(lmr[1], size, lmr[2])], i, raddr=target[1],
                                       rkey=target[3]) for i in range(4)])
                expect([c[:2] for c in l.complete(p.lc, "send", 4)],
                       [(i, "SUCCESS") for i in range(4)])
                count += 4
            end.scribble_end()
        p.sync(lmr, rmr)


def full_receives(l, r, addr):
    """One receive too many, or one with too many SGEs, is refused, and others are unaffected."""
    with buffers(l, r, PAGE) as (lmr, rmr), pair(l, r, addr, {"depth": 16}, {"depth": 16}) as p:
        room = r.caps(p.rc)[1]
        expect(room >= 16, True, f"room for {room} receives")
        for turn in range(3):
            for i in range(room):
                r.post_recv(p.rc, i, (rmr[1] + i, 1, rmr[2]))
            refuses("one too many", r.post_recv, p.rc, 900, (rmr[1], 1, rmr[2]))
            refuses("7 SGEs", r.post_recv, p.rc, 901, *[(rmr[1], 1, rmr[2])] * 7)
            data = rng.randbytes(room)
            l.poke(lmr[1], data)
            for i in range(room):
                l.post_send(p.lc, wr("SEND", [(lmr[1] + i, 1, lmr[2])], i))
                p.send_done(i)
            expect([c[:2] for c in r.complete(p.rc, "recv", room)],
                   [(i, "SUCCESS") for i in range(room)], f"receives of turn {turn}")
            expect(r.peek(rmr[1], room), data, "data")


def bad_sends(l, r, addr):
    """
    Unknown operations and too many SGEs are refused, and other work requests are unaffected. The
    provider of kiwarp-ext refuses no operation; see the program ext.
    """
    unknown = () if IS_EXT else ("ATOMIC_FETCH_AND_ADD", "ATOMIC_CMP_AND_SWP",
                                 "RDMA_WRITE_WITH_IMM", "SEND_WITH_IMM", "LOCAL_INV")
    with buffers(l, r, PAGE) as (lmr, rmr), pair(l, r, addr) as p:
        sge = (lmr[1], 8, lmr[2])
        where = {"raddr": rmr[1], "rkey": rmr[3]}
        for op in unknown:
            refuses(op, l.post_send, p.lc, wr(op, [sge], 900, **where))
        refuses("7 SGEs", l.post_send, p.lc, wr("RDMA_WRITE", [sge] * 7, 901, **where))
        refuses("81 octets inline", l.post_send, p.lc,
                wr("RDMA_WRITE", [(lmr[1], 81, lmr[2])], 902, ("SIGNALED", "INLINE"), **where))
        l.poke(lmr[1], b"unharmed")
        l.post_send(p.lc, wr("RDMA_WRITE", [sge], 1, **where))
        p.send_done()
        p.sync(lmr, rmr)
        expect(r.peek(rmr[1], 9), b"unharmed\xff", "data")
        expect(l.completions(p.lc, "send"), [], "completions of what was refused")
