# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""More cases of verbs.py: what rdma-core's own tests do to QPs that ibv_modify_qp connects,
and so never to iWARP."""

import errno

from pyverbs.pyverbs_error import PyverbsRDMAError

from verbs import LOCAL, RREAD, RWRITE, Failed, expect
from verbs_cases import PAGE, buffers, connect, doomed, memory, pair, rng, wr

MAP_HUGETLB = 0x40000
HUGE = 2 << 20


def refuses(what, post, *args):
    """POST fails, at whichever host, and says so. The provider's errors have either sign."""
    try:
        post(*args)
    except (Failed, PyverbsRDMAError) as error:
        expect("Failed to post" in str(error), True, f"{what}: {error}")
    else:
        raise Failed(f"{what}: not refused")


def full_receives(l, r, addr):
    """A receive too many, or with too many SGEs, is refused and harms no other."""
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
    """What the ABI has no operation for, or too many SGEs, is refused and harms no other."""
    with buffers(l, r, PAGE) as (lmr, rmr), pair(l, r, addr) as p:
        sge = (lmr[1], 8, lmr[2])
        where = {"raddr": rmr[1], "rkey": rmr[3]}
        for op in ("ATOMIC_FETCH_AND_ADD", "ATOMIC_CMP_AND_SWP", "RDMA_WRITE_WITH_IMM",
                   "SEND_WITH_IMM", "LOCAL_INV"):
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


def shared_cq(l, r, addr):
    """Connections with one CQ for everything: each completion tells whose it is."""
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


def fork(l, r, addr):
    """An MR is the parent's memory, also while a child writes to its copy, and after."""
    size = 3 * PAGE
    with memory(l, size) as lmr, pair(l, r, addr) as p:
        rmr = r.mr_private(size)
        write_and_read(p, lmr, rmr, size, "before")
        r.fork(rmr[1], size)
        write_and_read(p, lmr, rmr, size, "with a child")
        r.fork_end()
        write_and_read(p, lmr, rmr, size, "after the child")
        r.close_mr(rmr[0])


def huge_pages(l, r, addr):
    """MRs of huge pages at both ends, and across the border of two."""
    size = HUGE + 3 * PAGE
    with pair(l, r, addr) as p:
        lmr, rmr = l.mr_private(2 * HUGE, MAP_HUGETLB), r.mr_private(2 * HUGE, MAP_HUGETLB)
        write_and_read(p, lmr, rmr, size, "huge pages")
        l.close_mr(lmr[0])
        r.close_mr(rmr[0])


def invalidate_refused(l, r, addr):
    """A process registers nothing that a peer may invalidate: the connection ends, the
    memory stays what it is."""
    with buffers(l, r, PAGE) as (lmr, rmr):
        for key in (rmr[3], rmr[3] ^ 0xff00):
            with doomed(l, r, addr) as p:
                r.post_recv(p.rc, 1, (rmr[1], 10, rmr[2]))
                l.post_recv(p.lc, 2, (lmr[1], 10, lmr[2]))
                l.post_send(p.lc, wr("SEND_WITH_INV", [(lmr[1], 5, lmr[2])], raddr=0, rkey=key))
                l.complete(p.lc, "send")
                expect(r.complete(p.rc, "recv")[0][1] != "SUCCESS", True, "the receive fails")
                expect(l.complete(p.lc, "recv"), [(2, "WR_FLUSH_ERR", 0)])
                l.async_event("QP_FATAL")
                r.async_events()
        with pair(l, r, addr) as p:
            write_and_read(p, lmr, rmr, PAGE, "afterwards")


def regions_refused(l, _r, _addr):
    """What cannot be registered, and why."""
    for kind, access, wanted in (
            ("plain", 0, 0), ("plain", LOCAL | RWRITE, 0), ("read-only", RREAD, 0),
            ("plain", RWRITE, errno.EINVAL), ("plain", 1 << 15, errno.EINVAL),
            ("read-only", LOCAL, errno.EFAULT), ("forbidden", 0, errno.EFAULT)):
        expect(l.mr_refused(kind, access), wanted, f"{kind} memory with rights {access:#x}")
