# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Cases of verbs.py: states of a QP, and how a connection ends."""

import contextlib
import errno
import time

from verbs_base import PATIENCE, expect, filling
from verbs_pairs import (ACCEPT, MIB, PAGE, RAW_PORT, all_flushed, buffers, connect, disconnect,
                         doomed, ended, finish, meet, pair, receives, rng, wr)


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
    for most, what in ((filling(32768), "max_send_wr"), (6, "max_send_sge"),
                       (80, "max_inline_data")):
        num, err = l.idle_qp(**{what: most})
        expect(err, 0, f"{what} {most}")
        l.close(num)
        expect(l.idle_qp(**{what: most + 1}), (None, errno.EINVAL), f"{what} {most + 1}")
    for cqe, err in ((filling(1 << 20), 0), (filling(1 << 20) + 1, errno.EINVAL)):
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


def reconnect(l, r, addr):
    """A QP that was reset connects again: nothing of before is left in it, and its rings,
    wherever they were, work."""
    with buffers(l, r, PAGE) as (lmr, rmr):
        r.listen(addr)
        p = connect(l, r, addr, {"depth": 8}, {"depth": 8})
        for turn in range(4):
            receives(p, rmr, 8)
            for i in range(turn + 2):
                data = rng.randbytes(8)
                l.poke(lmr[1], data)
                l.post_send(p.lc, wr("SEND", [(lmr[1], 8, lmr[2])], i))
                p.send_done(i)
                p.recv_done(i, 8)
                expect(r.peek(rmr[1], 8), data, "data")
            l.to_error(p.lc)
            ended(p)
            expect([c[:2] for c in r.complete(p.rc, "recv", 6 - turn)],
                   [(i, "WR_FLUSH_ERR") for i in range(turn + 2, 8)], "flushed receives")
            for end, num in ((l, p.lc), (r, p.rc)):
                expect([end.modify(num, to) for to in ("RESET", "INIT")], [0, 0], "to INIT")
                end.post_recv(num, 77, (0, 0, 0))
                expect([end.modify(num, to) for to in ("RESET", "INIT")], [0, 0], "again")
            q = connect(l, r, addr, {"qp_of": p.lc}, {"qp_of": p.rc})
            l.close(p.lc)
            r.close(p.rc)
            p = q
        expect(l.completions(p.lc, "send") + r.completions(p.rc, "recv"), [], "of before")
        disconnect(p)


def states_starting(l, r, addr):
    """By modify while MPA's answer is awaited: ERR ends the startup, nothing else does."""
    r.tcp_listen(addr, RAW_PORT)
    for to in ("INIT", "RTR", "RTS", "SQD", "SQE", "ERR", "RESET"):
        lc, there = meet(l, r, addr)
        legal = to in ("INIT", "RTR", "ERR", "RESET")
        before = l.state(lc)
        expect(l.modify(lc, to), 0 if legal else errno.EINVAL, f"startup to {to}")
        expect(l.state(lc), to if legal else before, f"state after {to}")
        r.tcp_send(there, ACCEPT)
        l.event(lc, "CONNECT_ERROR" if to == "ERR" else "ESTABLISHED")
        expect(l.state(lc), "ERR" if to == "ERR" else "RTS", "state in the end")
        r.tcp_close(there, True)
        if to != "ERR":
            l.event(lc, "DISCONNECTED")
        l.close(lc)
    r.tcp_listen_end()


def states_closing(l, r, addr):
    """By modify while what is queued cannot go out, as the peer does not read; everything
    comes back once."""
    count, size = 12, 1 << 20
    r.tcp_listen(addr, RAW_PORT)
    with buffers(l, r, size) as (lmr, _):
        for last in ("ERR", "RESET"):
            lc, there = meet(l, r, addr)
            r.tcp_send(there, ACCEPT)
            l.event(lc, "ESTABLISHED")
            for i in range(4):
                l.post_recv(lc, i, (lmr[1], 8, lmr[2]))
            l.post_send(lc, *[wr("SEND", [(lmr[1], size, lmr[2])], i) for i in range(count)])
            found = l.modifies(lc, "SQD", "INIT", "RTR", "RTS", "SQE", "SQD")
            no = errno.EINVAL
            expect(found, [(0, "SQD"), (no, "SQD"), (no, "SQD"), (no, "SQD"), (no, "SQD"),
                           (0, "SQD")], "steps in SQD")
            l.post_send(lc, wr("SEND", [(lmr[1], 8, lmr[2])], count))
            expect(l.modifies(lc, last), [(0, last)], f"SQD to {last}")
            all_flushed(l.complete(lc, "send", count + 1), count + 1, "SENDs")
            all_flushed(l.complete(lc, "recv", 4), 4, "receives")
            l.event(lc, "DISCONNECTED")
            r.tcp_close(there, True)
            l.close(lc)
    r.tcp_listen_end()


def close_deadline(l, r, addr):
    """An orderly close toward a peer that does not read is given up after a while: the
    stream is reset, everything comes back once."""
    count, size = 12, 1 << 20
    r.tcp_listen(addr, RAW_PORT)
    with buffers(l, r, size) as (lmr, _):
        lc, there = meet(l, r, addr)
        r.tcp_send(there, ACCEPT)
        l.event(lc, "ESTABLISHED")
        l.post_send(lc, *[wr("SEND", [(lmr[1], size, lmr[2])], i) for i in range(count)])
        began = time.monotonic()
        l.disconnect(lc)
        all_flushed(l.complete(lc, "send", count, 2 * PATIENCE), count, "SENDs")
        l.event(lc, "DISCONNECTED")
        took = time.monotonic() - began
        expect(took > 4.5, True, f"{took:.1f} s, not too early")
        expect(l.state(lc), "ERR", "state")
        expect(l.async_events(), [], "events")
        r.tcp_closed(there)
        l.close(lc)
    r.tcp_listen_end()


def half_closed(l, r, addr):
    """The peer's FIN while what is queued cannot go out, as the peer does not read: all of it
    is sent, and then this half is closed, too."""
    count, size = 6, 1 << 20
    r.tcp_listen(addr, RAW_PORT)
    with buffers(l, r, size) as (lmr, _):
        lc, there = meet(l, r, addr)
        r.tcp_send(there, ACCEPT)
        l.event(lc, "ESTABLISHED")
        l.post_recv(lc, 0, (lmr[1], 8, lmr[2]))
        l.post_send(lc, *[wr("SEND", [(lmr[1], size, lmr[2])], i) for i in range(count)])
        r.tcp_half_close(there)
        stop = time.monotonic() + PATIENCE
        while l.state(lc) == "RTS" and time.monotonic() < stop:
            time.sleep(0.01)
        expect(l.state(lc), "SQD", "state after the FIN")
        found = l.completions(lc, "send")
        expect(len(found) < count, True, "something is queued still")
        expect(l.has_event(lc), False, "CM event while it is")
        r.tcp_drain(there)
        l.event(lc, "DISCONNECTED")
        found += l.complete(lc, "send", count - len(found))
        expect([c[:2] for c in found], [(i, "SUCCESS") for i in range(count)], "SENDs")
        expect(l.state(lc), "ERR", "state at the end")
        all_flushed(l.complete(lc, "recv"), 1, "receive")
        expect(l.async_events(), [], "events")
        r.tcp_drained(there)
        l.close(lc)
    r.tcp_listen_end()


def half_closed_read(l, r, addr):
    """The same with many small Sends and a Read in front of them, which nobody answers: the Sends
    are sent. The Read is flushed."""
    count, size = 4096, 1000
    r.tcp_listen(addr, RAW_PORT)
    with buffers(l, r, PAGE) as (lmr, _):
        lc, there = meet(l, r, addr, {"depth": count + 1})
        r.tcp_send(there, ACCEPT)
        l.event(lc, "ESTABLISHED")
        l.post_send(lc, wr("RDMA_READ", [(lmr[1], 8, lmr[2])], count, raddr=1, rkey=1),
                    *[wr("SEND", [(lmr[1], size, lmr[2])], i) for i in range(count)])
        r.tcp_half_close(there)
        stop = time.monotonic() + PATIENCE
        while l.state(lc) == "RTS" and time.monotonic() < stop:
            time.sleep(0.01)
        expect(l.state(lc), "SQD", "state after the FIN")
        r.tcp_drain(there)
        l.event(lc, "DISCONNECTED")
        found = l.complete(lc, "send", count + 1)
        expect([c[1] for c in found if c[0] == count], ["WR_FLUSH_ERR"], "Read")
        expect([c[:2] for c in found if c[0] != count], [(i, "SUCCESS") for i in range(count)],
               "SENDs")
        r.tcp_drained(there)
        l.close(lc)
    r.tcp_listen_end()


def closed_first(l, r, addr):
    """A peer goes on sending when this end has closed its half: TCP takes all of it, for nothing."""
    r.tcp_listen(addr, RAW_PORT)
    lc, there = meet(l, r, addr)
    r.tcp_send(there, ACCEPT)
    l.event(lc, "ESTABLISHED")
    l.to_error(lc)
    l.event(lc, "DISCONNECTED")
    # More than the buffers of both ends hold
    for _ in range(8):
        r.tcp_send(there, bytes(MIB))
    r.tcp_closed(there)
    l.close(lc)
    r.tcp_listen_end()


def states_ended(l, r, addr):
    """By modify after a connection has ended, in whatever way."""
    for end in ("SQD", "ERR"):
        r.listen(addr)
        p = connect(l, r, addr, {}, {})
        expect(l.modify(p.lc, end), 0, end)
        ended(p)
        for side, num in ((l, p.lc), (r, p.rc)):
            no = errno.EINVAL
            expect(side.modifies(num, "INIT", "RTR", "RTS", "SQE", "SQD", "ERR"),
                   [(no, "ERR")] * 4 + [(0, "ERR")] * 2, "steps in ERR")
            expect(side.modifies(num, "RESET", "RTS", "SQD", "RTR", "INIT", "RTR"),
                   [(0, "RESET"), (no, "RESET"), (no, "RESET"), (no, "RESET"), (0, "INIT"),
                    (0, "RTR")], "steps from RESET")
        finish(p)


# Attributes of InfiniBand's connections: taken, and without effect
IGNORED = ("PKEY_INDEX", "PORT", "QKEY", "PATH_MTU", "RNR_RETRY", "TIMEOUT", "RETRY_CNT",
           "RQ_PSN", "SQ_PSN", "MAX_QP_RD_ATOMIC", "MAX_DEST_RD_ATOMIC", "MIN_RNR_TIMER",
           "DEST_QPN")


def masks(l, r, addr):
    """Which attributes modify takes, and when it takes a state."""
    with pair(l, r, addr) as p:
        idle, _ = l.idle_qp()
        for num, state in ((idle, "INIT"), (p.lc, "RTS")):
            for attr in IGNORED:
                expect(l.modify_attr(num, attr), 0, attr)
            expect(l.modify_attr(num, *IGNORED), 0, "all")
            expect(l.modify_attr(num, "CAP"), errno.EOPNOTSUPP, "CAP")
            expect(l.modify_attr(num, "EN_SQD_ASYNC_NOTIFY"), errno.EOPNOTSUPP, "SQD notify")
            for wrong in {"RESET", "INIT", "RTR", "RTS", "SQD", "ERR"} - {state}:
                expect(l.modify_attr(num, "CUR_STATE", "STATE", cur=wrong, to="ERR"),
                       errno.EINVAL, f"{state}, not {wrong}")
            expect(l.modify_attr(num, "CUR_STATE", "STATE", cur=state, to=state), 0, state)
            expect(l.state(num), state, "state")
            # A state that is refused takes nothing else along.
            access = l.qp_access(num)
            expect(l.modify_attr(num, "STATE", "ACCESS_FLAGS", to="SQE"), errno.EINVAL, "SQE")
            expect(l.qp_access(num), access, "rights")
        l.close(idle)
