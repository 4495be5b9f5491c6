# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Cases of verbs.py about queues at their limits, as a process sees them."""

import contextlib
import errno
import time

from pyverbs import enums

from verbs import PATIENCE, Failed, expect
from verbs_cases import (FAILURES, PAGE, RAW_PORT, REQUEST, all_flushed, buffers, connect, counted,
                         disconnect, finish, meet, pair, rng, wr)
from verbs_more_cases import refuses


def send(p, lmr, wr_id=1):
    """One signaled SEND of an octet; its completion is left in the CQ."""
    p.l.post_send(p.lc, wr("SEND", [(lmr[1], 1, lmr[2])], wr_id))


def receives(p, rmr, count):
    for i in range(count):
        p.r.post_recv(p.rc, i, (rmr[1], 8, rmr[2]))


def ended(*pairs):
    """Connections that have ended."""
    for p in pairs:
        p.l.event(p.lc, "DISCONNECTED")
        p.r.child_event("DISCONNECTED")
    for p in pairs:
        expect((p.l.state(p.lc), p.r.state(p.rc)), ("ERR", "ERR"), "states")


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
        for size in (1, 2, 16):
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
    """Likewise a CQ of sends."""
    with buffers(l, r, PAGE) as (lmr, rmr):
        r.listen(addr)
        p = connect(l, r, addr, {"scqe": 2}, {})
        receives(p, rmr, 8)
        with counted(l, cq_overruns=1, tx_terminates=1):
            for i in range(3):
                send(p, lmr, i)
            expect(l.async_wait(2), ["CQ_ERR", "QP_FATAL"], "events here")
            expect(r.async_wait(1), ["QP_FATAL"], "events there")
            ended(p)
        expect([c[:2] for c in l.complete(p.lc, "send", 2)], [(0, "SUCCESS"), (1, "SUCCESS")])
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
        p = connect(l, r, addr, {}, {"rcqe": 4})
        receives(p, rmr, 6)
        with counted(r, cq_overruns=1, tx_terminates=0):
            r.to_error(p.rc)
            expect(r.async_wait(1), ["CQ_ERR"], "events there")
            ended(p)
        expect(r.complete(p.rc, "recv", 4), [(i, "WR_FLUSH_ERR", 0) for i in range(4)])
        expect(l.async_events() + r.async_events(), [], "more events")
        finish(p)


def overrun_shared(l, r, addr):
    """All QPs of the CQ end, connected or not; the neighbour with a CQ of its own does not
    notice (RFC 5042 6.4.6)."""
    with buffers(l, r, PAGE) as (lmr, rmr):
        r.listen(addr)
        neighbour = connect(l, r, addr, {}, {})
        first = connect(l, r, addr, {}, {"one_cq": True, "cqe": 4})
        pairs = [first] + [connect(l, r, addr, {}, {"cq_of": first.rc}) for _ in range(2)]
        idle, err = r.idle_qp(cq_of=first.rc)
        expect(err, 0, "idle QP")
        receives(first, rmr, 6)
        receives(neighbour, rmr, 2)
        send(neighbour, lmr)
        for i in range(5):
            send(first, lmr, i)
        expect(r.async_wait(5), ["CQ_ERR"] + ["QP_FATAL"] * 4, "events there")
        expect(l.async_wait(3), ["QP_FATAL"] * 3, "events here")
        ended(*pairs)
        expect(r.state(idle), "ERR", "the idle QP")
        expect(r.modify(idle, "RESET"), 0, "back to RESET")
        expect(r.state(idle), "RESET", "the idle QP")
        expect(r.complete(first.rc, "recv", 4), [(i, "SUCCESS", 1) for i in range(4)])
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
    """What the device says can be had; one more cannot."""
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
    """The limit of an SRQ can be set, to what the queue can hold; its size cannot."""
    queue = l.srq(20)
    size = l.srq_shown()[0]
    expect(size >= 20, True, f"size {size}")
    limit_bit, max_wr_bit = int(enums.IBV_SRQ_LIMIT), int(enums.IBV_SRQ_MAX_WR)
    for mask, max_wr, limit, err in (
            (limit_bit, 0, size, 0), (limit_bit, 0, size + 1, errno.EINVAL),
            (max_wr_bit, 2 * size, 0, errno.EOPNOTSUPP),
            (max_wr_bit, size, 0, errno.EOPNOTSUPP),
            (max_wr_bit | limit_bit, size, 1, errno.EOPNOTSUPP),
            (4, 0, 1, errno.EOPNOTSUPP), (0, 0, 1, 0)):
        expect(l.srq_modify(queue, mask, max_wr, limit), err, f"mask {mask} {max_wr} {limit}")
        expect(l.srq_shown(), (size, size), "size and limit")
    expect(l.srq_modify(queue, limit_bit, 0, 0), 0, "disarm")
    expect(l.srq_shown(), (size, 0), "size and limit")
    expect(l.async_events(), [], "events")
    l.srq_close(queue)


def srq_full(l, r, addr):
    """One receive more than an SRQ holds is refused and harms no other."""
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


# States

ACCEPT = b"MPA ID Rep Frame\x50\x02\x00\x04\xc0\x01\xc0\x01"


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
    count, size = 12, 1 << 20
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


# Counters, and what they count

def counts_refusals(l, r, addr):
    """A connection that the consumer there rejects."""
    r.listen(addr)
    with counted(r, conn_requested=1, conn_rejected=1, conn_established=0, conn_failed=0), \
            counted(l, conn_initiated=1, conn_refused_by_peer=1, conn_failed=0):
        lc = l.connect(addr, {})
        rc, _ = r.request()
        r.reject(rc)
        l.event(lc, "REJECTED")
        l.close(lc)
        r.close(rc)
    r.listen_end()


def counts_udata(l, _r, _addr):
    """Requests of a provider that expects another answer, or says something unknown."""
    with counted(l, udata_invalid=3, cq_created=0):
        expect(l.cq_raw(answer=8), errno.EINVAL, "no room for the driver's answer")
        expect(l.cq_raw(answer=20), errno.EINVAL, "room for a part of it")
        expect(l.cq_raw(part=b"\0\0\0\0\0\0\0\1"), errno.EINVAL, "an unknown request")
    with counted(l, udata_invalid=0, cq_created=2):
        expect(l.cq_raw(), 0, "a good one")
        expect(l.cq_raw(answer=64, part=bytes(16)), 0, "one of a later provider")


def counts_blocked(l, r, addr):
    """A peer that does not read: sending stops, and goes on when it does."""
    count, size = 12, 1 << 20
    r.tcp_listen(addr, RAW_PORT)
    with buffers(l, r, size) as (lmr, _):
        lc, there = meet(l, r, addr)
        before = l.counter("tx_blocked")
        sent = {name: l.counter(name) for name in ("tx_batches", "tx_fpdus")}
        r.tcp_send(there, ACCEPT)
        l.event(lc, "ESTABLISHED")
        l.post_send(lc, *[wr("SEND", [(lmr[1], size, lmr[2])], i) for i in range(count)])
        l.counter_above("tx_blocked", before)
        expect(len(l.completions(lc, "send")) < count, True, "sends that wait")
        r.tcp_drain(there)
        l.complete(lc, "send", count)
        l.disconnect(lc)
        r.tcp_drained(there)
        l.event(lc, "DISCONNECTED")
        l.close(lc)
        l.counter_above("tx_batches", sent["tx_batches"])
        batches, fpdus = (l.counter(name) - sent[name] for name in ("tx_batches", "tx_fpdus"))
        expect(0 < batches <= fpdus, True, f"{fpdus} FPDUs in {batches} batches")
    r.tcp_listen_end()


COUNTER = {"LOC_LEN_ERR": "wc_loc_len", "LOC_PROT_ERR": "wc_loc_prot",
           "LOC_QP_OP_ERR": "wc_loc_qp_op", "WR_FLUSH_ERR": "wc_flushed",
           "REM_ACCESS_ERR": "wc_rem_access", "REM_INV_REQ_ERR": "wc_rem_inv_req"}


def failing(l, r, addr, wrs, general, there=None, **also):
    """
    A connection on which the last of WRS fails, with the status that is returned: each
    completion is in the counter of its status. GENERAL: which of the two it is here.
    THERE: the status of the receive on the other side; ALSO: counters there.
    """
    with buffers(l, r, PAGE) as (lmr, rmr):
        r.listen(addr)
        p = connect(l, r, addr, {}, {})
        if there:
            r.post_recv(p.rc, 1, (rmr[1], 10, rmr[2]))
        before = {n: l.counter(n) for n in (*COUNTER.values(), "wc_rem_op", "wc_general")}
        with counted(r, **also):
            l.post_send(p.lc, *wrs(lmr, rmr))
            found = l.complete(p.lc, "send", len(wrs(lmr, rmr)))
            ended(p)
            if there:
                expect([c[1] for c in r.complete(p.rc, "recv")], [there], "there")
        counters = {**COUNTER, "GENERAL_ERR": general}
        wanted = dict(before)
        for _, status, _ in found:
            if status != "SUCCESS":
                wanted[counters[status]] += 1
        l.counters_become(wanted)
        l.async_wait(1)
        r.async_events()
        finish(p)
    return found[-1][1]


def counts_failures(l, r, addr):
    """Work requests that fail, by their status."""
    def read(lmr, rmr, rkey=0):
        return wr("RDMA_READ", [(lmr[1], 10, lmr[2])], 2, raddr=rmr[1], rkey=rmr[3] ^ rkey)

    def to_send(lmr, *sges):
        return wr("SEND", sges or [(lmr[1], 20, lmr[2])])

    cases = (
        # A Send has gone when the peer refuses it: the Read behind it has the status.
        (lambda m, n: [to_send(m), read(m, n)], "wc_rem_op", None, "GENERAL_ERR",
         {"rx_no_buffer": 1, "tx_terminates": 1}),
        (lambda m, n: [to_send(m), read(m, n)], None, "LOC_LEN_ERR", "REM_INV_REQ_ERR",
         {"rx_too_long": 1, "wc_loc_len": 1}),
        (lambda m, n: [read(m, n, 0xff00)], None, None, "REM_ACCESS_ERR", {"rx_stag": 1}),
        (lambda m, n: [to_send(m, (m[1], 4, m[2] ^ 0xff00))], None, None, "LOC_PROT_ERR",
         {"rx_terminates": 1}),
        (lambda m, n: [to_send(m, *[(m[1], 0x7fffffff, m[2])] * 2)], None, None,
         "LOC_QP_OP_ERR", {"rx_terminates": 1}),
        (lambda m, n: [wr("SEND_WITH_INV", [(m[1], 4, m[2])], raddr=0, rkey=n[3])], None,
         "GENERAL_ERR", "SUCCESS", {"rx_invalidate": 1, "wc_general": 1}),
    )
    for wrs, general, there, status, also in cases:
        sent = int(status == "SUCCESS")
        local = int(status.startswith("LOC_"))
        with counted(l, tx_sends_inv=sent, wr_invalid=local):
            expect(failing(l, r, addr, wrs, general, there, **also), status, "status")
