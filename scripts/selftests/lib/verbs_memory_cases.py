# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Cases of verbs.py: regions and dma-bufs, and who may access them."""

import errno

from verbs_base import ALL, LOCAL, REREG_ACCESS, REREG_PD, REREG_TRANS, RREAD, RWRITE, expect
from verbs_pairs import (MIB, PAGE, buffers, check_placed, doomed, gather, memory, pair, refusal,
                         rng, scatter, spread, wr, write_and_read)


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


def iova(l, r, addr):
    """An MR that peers address by another address than its owner does."""
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
    """An MR is reregistered in each respect; if that fails, it is unchanged."""
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
            expect(r.peek(rmr[1] + at, 100) == data, True, f"bytes at {at}")

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
    """Memory that was pinned for reading is pinned again for writing, if that is permitted."""
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
    """Ranges outside of a dma-buf cannot be registered."""
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
    r.dmabuf_close(buf)


def dmabuf_memlock(l, r, _):
    """All of a buffer is pinned, however little is registered, up to RLIMIT_MEMLOCK."""
    buf, _ = r.dmabuf(4 * PAGE)
    expect(r.mr_dmabuf_limited(buf, PAGE, 3 * PAGE), errno.ENOMEM, "beyond the limit")
    expect(r.mr_dmabuf_limited(buf, PAGE, 4 * PAGE), 0, "exactly the limit")
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
    """MRs are registered and deregistered; the key of a deregistered one gives no access."""
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
    """Local memory is deregistered in the middle of a message: its WR completes exactly once."""
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


def dereg_under_writes(l, r, addr):
    """A region that goes while its peer writes to it: nothing is placed in its memory any more."""
    size = 16 * MIB
    with memory(l, size) as lmr, doomed(l, r, addr) as p:
        # As above, all of them may have been placed before the region goes.
        for _ in range(5):
            rmr = r.mr(size)
            l.post_send(p.lc, *[wr("RDMA_WRITE", [(lmr[1], size, lmr[2])], i, raddr=rmr[1],
                                   rkey=rmr[3]) for i in range(60)])
            r.withdraw(rmr[0])
            found = [c[:2] for c in l.complete(p.lc, "send", 60)]
            expect([c[0] for c in found], list(range(60)), "each once, in order")
            expect(r.is_as_withdrawn(rmr[0]), True, "the memory stays as it is")
            r.close_mr(rmr[0])
            if found[-1][1] != "SUCCESS":
                break
        expect(found[-1][1] != "SUCCESS", True, f"the region went too late: {found}")
        l.async_event("QP_FATAL")
        refusal(r, "QP_ACCESS_ERR")


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


MAP_HUGETLB = 0x40000
HUGE = 2 << 20


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
            # Zero-based addresses: the core leaves them to the driver
            ("plain", 1 << 5, errno.EOPNOTSUPP),
            ("read-only", LOCAL, errno.EFAULT), ("forbidden", 0, errno.EFAULT)):
        expect(l.mr_refused(kind, access), wanted, f"{kind} memory with rights {access:#x}")
