# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Cases of verbs.py about queues at their limits, as a process sees them."""

from verbs import expect
from verbs_cases import PAGE, buffers, connect, counted, disconnect, finish, wr


def send(p, lmr, wr_id=1):
    """One signaled SEND of an octet; its completion is left in the CQ."""
    p.l.post_send(p.lc, wr("SEND", [(lmr[1], 1, lmr[2])], wr_id))


def receives(p, rmr, count):
    for i in range(count):
        p.r.post_recv(p.rc, i, (rmr[1], 8, rmr[2]))


def ended(*pairs):
    """Connections that have ended by an error."""
    for p in pairs:
        p.l.event(p.lc, "DISCONNECTED")
        p.r.child_event("DISCONNECTED")
    for p in pairs:
        expect((p.l.state(p.lc), p.r.state(p.rc)), ("ERR", "ERR"), "states")


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
