# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Cases of verbs.py: completion queues, shared receive queues, and rings that are full."""

import contextlib
import errno
import time

from pyverbs import enums

from verbs_base import IS_EXT, PATIENCE, Failed, expect, filling
from verbs_pairs import (FAILURES, PAGE, REQUEST, buffers, connect, counted, disconnect, doomed,
                         ended, finish, pair, receives, refuses, rng, send, wr)


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
    """Armed for solicited completions: others raise no event, errors do."""
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
    """Two connections share receives; the limit event comes once per arming."""
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


def shared_cq(l, r, addr):
    """Connections that share one CQ: each completion identifies its QP."""
    count, turns = 4, 8
    with buffers(l, r, PAGE) as (lmr, rmr):
        r.listen(addr)
        pairs = [connect(l, r, addr, {}, {"one_cq": True, "cqe": 256})]
        first = pairs[0].rc
        pairs += [connect(l, r, addr, {}, {"cq_of": first}) for _ in range(count - 1)]
        expected = []
        for turn in range(turns):
            for i, p in enumerate(pairs):
                r.post_recv(p.rc, 100 * i + turn, (rmr[1] + 64 * i, 64, rmr[2]))
        for turn in range(turns):
            for i, p in enumerate(pairs):
                l.post_send(p.lc, wr("SEND", [(lmr[1], 1 + i, lmr[2])]))
                p.send_done()
                expected.append((r.qp_num(p.rc), 100 * i + turn))
        expect(sorted(r.qp_nums(first, count * turns)), sorted(expected), "completions")
        for p in pairs:
            l.disconnect(p.lc)
            l.event(p.lc, "DISCONNECTED")
            r.child_event("DISCONNECTED")
            l.close(p.lc)
        for p in reversed(pairs):
            r.close(p.rc)
        r.listen_end()


def last_of_srq(p, queue):
    """Nothing else has happened, and the last connection that receives from QUEUE ends."""
    expect(p.r.async_events(), [], "more events")
    p.l.disconnect(p.lc)
    ended(p)
    expect(p.r.async_wait(1), ["QP_LAST_WQE_REACHED"], "events of the last connection")
    finish(p)
    p.r.srq_close(queue)


def overrun_receives(l, r, addr):
    """A CQ of receives that nobody polls: what fits can be polled, then the QP is dead, and
    its peer is told. A QP that is made with the dead CQ later ends with the first completion."""
    with buffers(l, r, PAGE) as (lmr, rmr):
        r.listen(addr)
        for size in (filling(n) for n in (1, 2, 16)):
            p = connect(l, r, addr, {}, {"rcqe": size})
            receives(p, rmr, size + 3)
            with counted(r, cq_overruns=1, tx_terminates=1, rx_terminates=0):
                for i in range(size + 1):
                    send(p, lmr, i)
                expect(r.async_wait(2), ["CQ_ERR", "QP_FATAL"], "events there")
                expect(l.async_wait(1), ["QP_FATAL"], "events here")
                ended(p)
            expect(r.complete(p.rc, "recv", size), [(i, "SUCCESS", 1) for i in range(size)])
            q = connect(l, r, addr, {}, {"cq_of": p.rc})
            receives(q, rmr, 2)
            with counted(r, cq_overruns=0, tx_terminates=1):
                send(q, lmr)
                expect(r.async_wait(1), ["QP_FATAL"], "events with the dead CQ")
                expect(l.async_wait(1), ["QP_FATAL"], "events of its peer")
                ended(q)
            expect(r.completions(p.rc, "recv"), [], "completions of the dead CQ")
            expect(l.async_events() + r.async_events(), [], "more events")
            for x in (q, p):
                l.close(x.lc)
                r.close(x.rc)
        r.listen_end()


def overrun_sends(l, r, addr):
    """The same with a CQ of sends."""
    with buffers(l, r, PAGE) as (lmr, rmr):
        r.listen(addr)
        size = filling(4)
        p = connect(l, r, addr, {"scqe": size}, {})
        receives(p, rmr, 8)
        with counted(l, cq_overruns=1, tx_terminates=1):
            for i in range(size + 1):
                send(p, lmr, i)
            expect(l.async_wait(2), ["CQ_ERR", "QP_FATAL"], "events here")
            expect(r.async_wait(1), ["QP_FATAL"], "events there")
            ended(p)
        expect([c[:2] for c in l.complete(p.lc, "send", size)],
               [(i, "SUCCESS") for i in range(size)])
        expect(l.completions(p.lc, "send"), [], "completions of the dead CQ")
        expect(sorted(l.shown("cq", r"drv_overrun (\d)")), list("0001"), "overruns shown")
        expect(sorted(l.shown("qp", r"drv_terminate (\w+) drv_terminate_layer 0 "
                                    "drv_terminate_etype 0 drv_terminate_code 0x0")),
               ["received", "sent"], "Terminates shown")
        # Every receive comes back; those of messages that had arrived are good.
        expect([c[0] for c in r.complete(p.rc, "recv", 8)], list(range(8)), "receives")
        expect(l.async_events() + r.async_events(), [], "more events")
        finish(p)


def overrun_by_flush(l, r, addr):
    """What a QP in ERROR gives back can be too much as well: the CQ is dead, the QP has no
    event, as it has ended already."""
    with buffers(l, r, PAGE) as (_, rmr):
        r.listen(addr)
        size = filling(4)
        p = connect(l, r, addr, {}, {"rcqe": size})
        receives(p, rmr, 6)
        with counted(r, cq_overruns=1, tx_terminates=0):
            r.to_error(p.rc)
            expect(r.async_wait(1), ["CQ_ERR"], "events there")
            ended(p)
        expect(r.complete(p.rc, "recv", size), [(i, "WR_FLUSH_ERR", 0) for i in range(size)])
        expect(l.async_events() + r.async_events(), [], "more events")
        finish(p)


def overrun_by_fault(l, r, addr):
    """The completion of the receive that a fault fails finds no room: both ends are told the fault
    and not the overrun, which comes after it (RFC 5040 7.1)."""
    with buffers(l, r, PAGE) as (lmr, rmr):
        r.listen(addr)
        size = filling(4)
        p = connect(l, r, addr, {}, {"rcqe": size})
        receives(p, rmr, 6)
        for i in range(size):
            send(p, lmr, i)
        with counted(r, cq_overruns=1, tx_terminates=1):
            l.post_send(p.lc, wr("SEND", [(lmr[1], 9, lmr[2])], size))
            expect(r.async_wait(2), ["CQ_ERR", "QP_REQ_ERR"], "events there")
            expect(l.async_wait(1), ["QP_FATAL"], "events here")
            ended(p)
        expect(sorted(l.shown("qp", r"drv_terminate (\w+) drv_terminate_layer 1 "
                                    "drv_terminate_etype 2 drv_terminate_code 0x5")),
               ["received", "sent"], "Terminates shown")
        expect(r.complete(p.rc, "recv", size), [(i, "SUCCESS", 1) for i in range(size)])
        expect(l.async_events() + r.async_events(), [], "more events")
        finish(p)


def overrun_shared(l, r, addr):
    """All QPs of the CQ end, connected or not; the neighbour with a CQ of its own does not
    notice (RFC 5042 6.4.6)."""
    with buffers(l, r, PAGE) as (lmr, rmr):
        r.listen(addr)
        neighbour = connect(l, r, addr, {}, {})
        size = filling(4)
        first = connect(l, r, addr, {}, {"one_cq": True, "cqe": size})
        pairs = [first] + [connect(l, r, addr, {}, {"cq_of": first.rc}) for _ in range(2)]
        idle, err = r.idle_qp(cq_of=first.rc)
        expect(err, 0, "idle QP")
        receives(first, rmr, 6)
        receives(neighbour, rmr, 2)
        send(neighbour, lmr)
        for i in range(size + 1):
            send(first, lmr, i)
        expect(r.async_wait(5), ["CQ_ERR"] + ["QP_FATAL"] * 4, "events there")
        expect(l.async_wait(3), ["QP_FATAL"] * 3, "events here")
        ended(*pairs)
        expect(r.state(idle), "ERR", "the idle QP")
        expect(r.modify(idle, "RESET"), 0, "back to RESET")
        expect(r.state(idle), "RESET", "the idle QP")
        expect(r.complete(first.rc, "recv", size), [(i, "SUCCESS", 1) for i in range(size)])
        send(neighbour, lmr)
        expect(r.complete(neighbour.rc, "recv", 2), [(0, "SUCCESS", 1), (1, "SUCCESS", 1)])
        expect(r.state(neighbour.rc), "RTS", "the neighbour")
        expect(l.async_events() + r.async_events(), [], "more events")
        r.close(idle)
        for p in reversed(pairs):
            l.close(p.lc)
            r.close(p.rc)
        l.completions(neighbour.lc, "send")
        disconnect(neighbour)


def overrun_fenced(l, r, addr):
    """A QP whose initiator has not sent anything yet sends nothing, not even a Terminate, when its
    CQ is overrun: RFC 5044 7.1.2."""
    with buffers(l, r, PAGE) as (lmr, rmr):
        r.listen(addr)
        first = connect(l, r, addr, {}, {"one_cq": True, "cqe": 1})
        raw = l.tcp_connect(addr)
        l.tcp_send(raw, REQUEST)
        rc, _ = r.request()
        r.accept(rc, {"cq_of": first.rc})
        r.child_event("ESTABLISHED")
        reply = l.tcp_recv(raw, 24)
        expect(reply[:16], b"MPA ID Rep Frame", "Reply")
        receives(first, rmr, 3)
        with counted(r, cq_overruns=1, tx_terminates=1):
            for i in range(2):
                send(first, lmr, i)
            expect(r.async_wait(3), ["CQ_ERR", "QP_FATAL", "QP_FATAL"], "events there")
            expect(l.async_wait(1), ["QP_FATAL"], "events here")
            expect(l.tcp_recv(raw, 1), b"", "what follows the Reply")
        l.tcp_close(raw)
        ended(first)
        r.child_event("DISCONNECTED")
        expect(r.state(rc), "ERR", "state")
        r.close(rc)
        finish(first)


def overrun_destroyed(l, r, addr):
    """QPs that are destroyed, reset and connected while the overrun of their CQ ends them."""
    with buffers(l, r, PAGE) as (lmr, rmr):
        r.listen(addr)
        for turn in range(4):
            first = connect(l, r, addr, {}, {"one_cq": True, "cqe": 1})
            pairs = [first] + [connect(l, r, addr, {}, {"cq_of": first.rc}) for _ in range(3)]
            late = l.connect(addr, {})
            receives(first, rmr, 3)
            for i in range(2):
                send(first, lmr, i)
            if turn % 2:
                r.modify(pairs[1].rc, "RESET")
            asked, _ = r.request()
            # It is too late, or it ends as the others.
            with contextlib.suppress(Failed):
                r.accept(asked, {"cq_of": first.rc})
            for p in reversed(pairs[1:]):
                r.close(p.rc)
            r.close(asked)
            r.close(first.rc)
            if l.event(late, "ESTABLISHED " + FAILURES).name == "ESTABLISHED":
                l.event(late, "DISCONNECTED")
            l.close(late)
            for p in pairs:
                l.event(p.lc, "DISCONNECTED")
                l.close(p.lc)
            l.async_events()
            r.async_events()
        r.listen_end()


def destroyed_with_completions(l, r, addr):
    """Completions of a QP that is destroyed stay in its CQ, in their order among the others."""
    count = 12
    with buffers(l, r, PAGE) as (lmr, rmr):
        r.listen(addr)
        pairs = [connect(l, r, addr, {}, {"one_cq": True, "cqe": 2 * count})]
        pairs += [connect(l, r, addr, {}, {"cq_of": pairs[0].rc}) for _ in range(2)]
        for i in range(count):
            p = pairs[i % 3]
            r.post_recv(p.rc, i, (rmr[1], 8, rmr[2]))
            with counted(r, rx_sends=1):
                send(p, lmr, i)
                p.send_done(i)
        for p in pairs[1:]:
            r.destroy_qp(p.rc)
            l.event(p.lc, "DISCONNECTED")
        expect(r.complete(pairs[0].rc, "recv", count), [(i, "SUCCESS", 1) for i in range(count)],
               "completions")
        r.post_recv(pairs[0].rc, 99, (rmr[1], 8, rmr[2]))
        send(pairs[0], lmr, 99)
        pairs[0].send_done(99)
        pairs[0].recv_done(99, 1)
        for p in reversed(pairs[1:]):
            l.close(p.lc)
            r.close(p.rc)
        disconnect(pairs[0])


# Arming

def arm_race(l, r, addr):
    """A process that arms, polls and then sleeps hears of every completion, whenever it
    comes; all of them are solicited here, so both kinds of arming are good enough."""
    count = 250
    with buffers(l, r, PAGE) as (lmr, rmr), pair(l, r, addr, {}, {"comp": True}) as p:
        for solicited in (False, True):
            receives(p, rmr, 64)
            r.consume(p.rc, count, solicited, (rmr[1], 8, rmr[2]))
            for i in range(count):
                l.post_send(p.lc, wr("SEND", [(lmr[1], 1, lmr[2])], i,
                                     ("SIGNALED", "SOLICITED")))
                p.send_done(i)
                if i % 7 == 0:
                    spin(rng.random() / 1000)
                if i % 32 == 31:    # no more at a time than there are receives
                    r.wait_consumed(i + 1)
            expect(r.consumed(), ["SUCCESS"] * count, "completions")
            # The receives that were posted again are used up by the next turn.
            for i in range(64):
                send(p, lmr)
                p.send_done()
            r.complete(p.rc, "recv", 64)
            while r.notified(p.rc):
                pass


def spin(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass


def arm_late(l, r, addr):
    """What is in the CQ when it is armed raises no event; the next that is asked for does,
    and arming for any completion is more than for a solicited one."""
    with buffers(l, r, PAGE) as (lmr, rmr), pair(l, r, addr, {}, {"comp": True}) as p:
        receives(p, rmr, 5)

        def one(*flags):
            with counted(r, rx_sends=1):
                l.post_send(p.lc, wr("SEND", [(lmr[1], 1, lmr[2])], 1, ("SIGNALED", *flags)))
                p.send_done()

        one("SOLICITED")
        r.arm(p.rc, True)
        expect(r.notified(p.rc), False, "event of a completion before the arming")
        one()
        expect(r.notified(p.rc), False, "event of a plain SEND")
        one("SOLICITED")
        expect(r.notified(p.rc, PATIENCE), True, "event of a solicited SEND")
        r.arm(p.rc, True)
        r.arm(p.rc, False)
        one()
        expect(r.notified(p.rc, PATIENCE), True, "event after both")
        one("SOLICITED")
        expect(r.notified(p.rc), False, "event without arming")
        r.complete(p.rc, "recv", 5)


# Sizes

def advertised(l, _r, _addr):
    """The limits that the device reports can be reached and not exceeded."""
    most = l.device_attr("max_qp_wr", "max_sge", "max_cqe", "max_srq_wr", "max_srq_sge")
    for what, limit in (("max_send_wr", "max_qp_wr"), ("max_recv_wr", "max_qp_wr"),
                        ("max_send_sge", "max_sge"), ("max_recv_sge", "max_sge")):
        num, err = l.idle_qp(**{what: most[limit]})
        expect(err, 0, f"{what} {most[limit]}")
        l.close(num)
        expect(l.idle_qp(**{what: most[limit] + 1}), (None, errno.EINVAL), f"more {what}")
    expect(l.cq_errno(most["max_cqe"]), 0, "max_cqe")
    expect(l.cq_errno(most["max_cqe"] + 1), errno.EINVAL, "more than max_cqe")
    for what, limit in (("max_wr", "max_srq_wr"), ("max_sge", "max_srq_sge")):
        expect(l.srq_errno(**{what: most[limit]}), 0, f"SRQ {what} {most[limit]}")
        expect(l.srq_errno(**{what: most[limit] + 1}), errno.EINVAL, f"SRQ more {what}")


def srq_modify(l, _r, _addr):
    """The limit of an SRQ can be set, to what the queue can hold; its size on kiwarp-ext only."""
    queue = l.srq(20)
    size = l.srq_shown()[0]
    expect(size >= 20, True, f"size {size}")
    limit_bit, max_wr_bit = int(enums.IBV_SRQ_LIMIT), int(enums.IBV_SRQ_MAX_WR)
    resizes = ((max_wr_bit, 2 * size, 0, errno.EOPNOTSUPP),
               (max_wr_bit, size, 0, errno.EOPNOTSUPP),
               (max_wr_bit | limit_bit, size, 1, errno.EOPNOTSUPP))
    if IS_EXT:
        resizes = ((max_wr_bit, size // 4, 0, errno.EINVAL), (max_wr_bit, size, 0, 0),
                   (max_wr_bit, 0, 0, errno.EINVAL), (max_wr_bit | limit_bit, size, size, 0),
                   (max_wr_bit | limit_bit, size, size + 1, errno.EINVAL))
    for mask, max_wr, limit, err in (
            (limit_bit, 0, size, 0), (limit_bit, 0, size + 1, errno.EINVAL), *resizes,
            (4, 0, 1, errno.EOPNOTSUPP), (0, 0, 1, 0)):
        expect(l.srq_modify(queue, mask, max_wr, limit), err, f"mask {mask} {max_wr} {limit}")
        expect(l.srq_shown(), (size, size), "size and limit")
    expect(l.srq_modify(queue, limit_bit, 0, 0), 0, "disarm")
    expect(l.srq_shown(), (size, 0), "size and limit")
    expect(l.async_events(), [], "events")
    l.srq_close(queue)


def srq_full(l, r, addr):
    """One receive more than an SRQ holds is refused, and others are unaffected."""
    with buffers(l, r, PAGE) as (lmr, rmr):
        queue = r.srq(8)
        room = r.srq_shown()[0]
        with pair(l, r, addr, {}, {"srq": queue}) as p:
            for _ in range(3):
                for i in range(room):
                    r.srq_recv(queue, i, (rmr[1] + i, 1, rmr[2]))
                refuses("one too many", r.srq_recv, queue, 900, (rmr[1], 1, rmr[2]))
                refuses("7 SGEs", r.srq_recv, queue, 901, *[(rmr[1], 1, rmr[2])] * 7)
                for i in range(room):
                    send(p, lmr, i)
                    p.send_done(i)
                    p.recv_done(i, 1)
        r.srq_close(queue)


# Flushing

def srq_flush(l, r, addr):
    """The receives of an SRQ outlive a QP that ends: one that had begun to take a message
    comes back with that QP, the others serve the next QP."""
    count, big = 10, 4 << 20
    with buffers(l, r, big) as (lmr, rmr):
        queue = r.srq(count)
        r.listen(addr)
        other = connect(l, r, addr, {}, {"srq": queue})
        for i in range(count):
            r.srq_recv(queue, i, (rmr[1], big, rmr[2]))
        used = []
        for _ in range(3):
            p = connect(l, r, addr, {}, {"srq": queue})
            l.post_send(p.lc, wr("SEND", [(lmr[1], big, lmr[2])]))
            l.to_error(p.lc)
            l.event(p.lc, "DISCONNECTED")
            r.child_event("DISCONNECTED")
            expect(r.async_wait(1), ["QP_LAST_WQE_REACHED"], "events")
            found = r.completions(p.rc, "recv")
            expect(len(found) <= 1, True, f"completions {found}")
            used += [c[0] for c in found]
            l.complete(p.lc, "send")
            l.close(p.lc)
            r.close(p.rc)
        left = [i for i in range(count) if i not in used]
        expect(used, list(range(len(used))), "receives that were used")
        for i in left:
            send(other, lmr, i)
            other.send_done(i)
            other.recv_done(i, 1)
        last_of_srq(other, queue)


# A Send's first segment, RFC 5041 4.2: more is to come
PARTIAL = b"\x01\x43" + bytes(8) + b"\0\0\0\1" + bytes(4) + b"half of it"


def fpdu(ulpdu):
    """RFC 5044 4."""
    data = len(ulpdu).to_bytes(2, "big") + ulpdu
    data += bytes(-len(data) % 4)
    crc = 0xffffffff
    for octet in data:
        crc ^= octet
        for _ in range(8):
            crc = crc >> 1 ^ (0x82f63b78 if crc & 1 else 0)
    return data + (crc ^ 0xffffffff).to_bytes(4, "little")


def srq_partial(l, r, addr):
    """A receive of an SRQ in which a message has begun comes back once, whichever way the
    connection ends, and no other does."""
    count = 5
    with buffers(l, r, PAGE) as (lmr, rmr):
        queue = r.srq(8)
        r.listen(addr)
        other = connect(l, r, addr, {}, {"srq": queue})
        for i in range(count):
            r.srq_recv(queue, i, (rmr[1] + 100 * i, 100, rmr[2]))
        for i, how in enumerate(("FIN", "RST", "ERR", "SQD")):
            raw = l.tcp_connect(addr)
            l.tcp_send(raw, REQUEST)
            rc, _ = r.request()
            r.accept(rc, {"srq": queue})
            with counted(r, rx_fpdus=1, wc_flushed=0):
                l.tcp_send(raw, fpdu(PARTIAL))
            r.child_event("ESTABLISHED")
            expect(r.completions(rc, "recv"), [], "completions of half a message")
            if how in ("ERR", "SQD"):
                expect(r.modify(rc, how), 0, how)
            if how != "ERR":
                l.tcp_close(raw, how == "RST")
            expect(r.async_wait(1), ["QP_LAST_WQE_REACHED"], f"events of {how}")
            expect(r.complete(rc, "recv"), [(i, "WR_FLUSH_ERR", 0)], how)
            r.child_event("DISCONNECTED")
            r.close(rc)
            if how == "ERR":
                l.tcp_closed(raw)
        send(other, lmr)
        other.send_done()
        other.recv_done(count - 1, 1)
        last_of_srq(other, queue)
