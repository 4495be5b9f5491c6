# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Cases of verbs.py: pages that are lent to TCP. Both devices have no CRC, fpdu=large and
zero_copy=on, and the process that runs the cases may drop packets."""

import contextlib
import socket
import subprocess
import time

from verbs_base import PATIENCE, RDMA_PORT, Failed, expect
from verbs_pairs import (MIB, PAGE, SOAK, alive, buffers, connect, counted, disconnect,
                         finish, memory, pair, rng, wr)

# More than TCP takes before the first acknowledgment, and what it takes at once, but does not send
LONG = 200000
TAKEN = 36000
SLOTS = 8
MIRROR = "mirror"
PEER6 = "fd77::2"
ETH_P_ALL, SO_RCVBUFFORCE = 3, 33
DROP = (f"add table inet kiw; add chain inet kiw in {{ type filter hook input priority 0; }};"
        f"add rule inet kiw in tcp sport {RDMA_PORT} drop")


def nft(*words):
    subprocess.run(["nft", *words], check=True)


def netem(*words):
    verb = ["replace"] if words else ["del"]
    subprocess.run(["tc", "qdisc", *verb, "dev", netdev(), "root", *words], check=True)


def netdev():
    """The interface to the other host."""
    links = subprocess.run(["ip", "-o", "link", "show", "up"], check=True, capture_output=True,
                           text=True).stdout.split("\n")
    names = [line.split(": ")[1].split("@")[0] for line in links if ": " in line]
    return next(n for n in names if n.startswith("eth"))


@contextlib.contextmanager
def deaf():
    """The peer receives, but nothing that it sends arrives here, its acknowledgments included."""
    nft(DROP)
    try:
        yield
    finally:
        nft("delete", "table", "inet", "kiw")


@contextlib.contextmanager
def slow(delay="700ms"):
    """What is sent stays in a queue of this host for a while."""
    netem("netem", "delay", delay)
    try:
        yield
    finally:
        netem()


def held():
    """It stays there until the end, for longer than anybody waits for it."""
    return slow("120s")


@contextlib.contextmanager
def mirrored():
    """This host receives by MIRROR what it sends to the other one."""
    for words in (f"ip link add {MIRROR} type dummy", f"ip link set {MIRROR} up",
                  f"tc qdisc add dev {netdev()} clsact",
                  f"tc filter add dev {netdev()} egress protocol all u32 match u32 0 0 "
                  f"action mirred ingress mirror dev {MIRROR}"):
        subprocess.run(words.split(), check=True)
    try:
        yield
    finally:
        subprocess.run(["tc", "qdisc", "del", "dev", netdev(), "clsact"], check=True)
        subprocess.run(["ip", "link", "del", MIRROR], check=True)


@contextlib.contextmanager
def moved(addr):
    """The address of the peer is one of this host."""
    subprocess.run(["ip", "addr", "add", f"{addr}/128", "dev", "lo", "nodad"], check=True)
    try:
        yield
    finally:
        subprocess.run(["ip", "addr", "del", f"{addr}/128", "dev", "lo"], check=True)


@contextlib.contextmanager
def capture(dev):
    """A socket for the packets of DEV that nobody reads yet."""
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0) as sock:
        sock.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 64 * MIB)
        sock.bind((dev, ETH_P_ALL))
        sock.setblocking(False)
        yield sock


def expect_captured(sock):
    """What was sent is in the packets of capture(), and not what was written later."""
    got = bytearray()
    with contextlib.suppress(BlockingIOError):
        while True:
            got += sock.recv(MIB)
    expect(bytes([GOOD]) * 1024 in got, True, "what was sent, in a capture")
    expect(bytes([LATER]) * 64 in got, False, "what was written later, in a capture")


def pinned():
    """KiB of this process, by registrations."""
    with open("/proc/self/status", encoding="ascii") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmPin:"))


def retransmitted():
    """Segments, of all connections of this namespace."""
    with open("/proc/net/snmp", encoding="ascii") as file:
        names, values = [line.split() for line in file if line.startswith("Tcp:")]
    return int(values[names.index("RetransSegs")])


def wait_for(what, done):
    end = time.monotonic() + PATIENCE
    while not done():
        if time.monotonic() > end:
            raise Failed(f"no {what}")
        time.sleep(0.01)


def await_retransmission():
    """TCP has waited for an acknowledgment for so long that it sends again, twice."""
    before = retransmitted()
    wait_for("retransmission", lambda: retransmitted() > before + 1)


def write(lmr, rmr, size, wr_id=1, at=0, flags=("SIGNALED",)):
    return wr("RDMA_WRITE", [(lmr[1] + at, size, lmr[2])], wr_id, flags, raddr=rmr[1] + at,
              rkey=rmr[3])


def only_of(got, good, what):
    """Each octet is what was sent, or what was there before."""
    bad = [i for i, octet in enumerate(got) if octet not in (0xff, good)]
    if bad:
        raise Failed(f"{what}: {len(bad)} octets, the first at {bad[0]}: {got[bad[0]]:#x}")


GOOD, LATER = 0x5a, 0xc3


@contextlib.contextmanager
def unacked(l, r, addr, hold, writes=0):
    """A connection with a Write of octets GOOD that the peer cannot acknowledge. If there is a
    number of Writes, TCP has taken the first one, and these succeed when it can."""
    size = TAKEN if writes else LONG
    r.listen(addr)
    with memory(r, LONG) as rmr:
        lmr = l.mr(LONG)
        p = connect(l, r, addr, {}, {})
        p.sync(lmr, rmr)
        l.poke(lmr[1], bytes([GOOD]) * LONG)
        lent = l.counter("lent_bytes")
        with hold():
            l.post_send(p.lc, write(lmr, rmr, size))
            l.counter_above("lent_bytes", lent)
            yield p, lmr, rmr
        got = [c[:2] for c in l.complete(p.lc, "send", writes)] if writes else []
        expect(got, [(n + 1, "SUCCESS") for n in range(writes)], "completions")
        only_of(r.peek(rmr[1], LONG), GOOD, "what has arrived")
        if writes:
            expect(r.peek(rmr[1] + size - 1, 1)[0], GOOD, "the last octet")


def over(p, lmr):
    """The connection of unacked() has ended with an error here, and perhaps there."""
    if lmr:
        p.l.close_mr(lmr[0])
    p.l.close(p.lc)
    p.r.close(p.rc)
    p.r.listen_end()


def overwrite(l, p, lmr, sent, garbage):
    """Take the completion of each of SENT, in order, and overwrite its memory at once."""
    done = 0
    end = time.monotonic() + PATIENCE
    while done < len(sent):
        for wr_id, status, _ in l.completions(p.lc, "send"):
            expect((wr_id, status), (done, "SUCCESS"), "completion")
            at, data = sent[wr_id]
            l.poke(lmr[1] + at, garbage[:len(data)])
            done += 1
        if time.monotonic() > end:
            raise Failed(f"{done} of {len(sent)} completions")


# Cases

def zc_rewritten(l, r, addr):
    """The owner overwrites its memory as soon as a Write or Send completes."""
    sizes = (32768, 40001, 65536, LONG)
    room = SLOTS * (LONG + PAGE)
    garbage = bytes([LATER]) * LONG
    end = time.monotonic() + SOAK
    with buffers(l, r, room) as (lmr, rmr), pair(l, r, addr) as p:
        before = l.counter("lent_bytes")
        rounds = 0
        while rounds < 4 or time.monotonic() < end:
            sent = []
            for slot in range(SLOTS):
                at = slot * (LONG + PAGE) + rng.randrange(PAGE)
                sent.append((at, rng.randbytes(rng.choice(sizes))))
                l.poke(lmr[1] + at, sent[slot][1])
                if slot % 2:
                    l.post_send(p.lc, write(lmr, rmr, len(sent[slot][1]), slot, at))
                else:
                    r.post_recv(p.rc, slot, (rmr[1] + at, len(sent[slot][1]), rmr[2]))
                    l.post_send(p.lc, wr("SEND", [(lmr[1] + at, len(sent[slot][1]), lmr[2])],
                                         slot))
            overwrite(l, p, lmr, sent, garbage)
            r.complete(p.rc, "recv", SLOTS // 2)
            p.sync(lmr, rmr)
            for at, data in sent:
                expect(r.peek(rmr[1] + at, len(data)) == data, True, f"{len(data)} octets")
            rounds += 1
        l.counter_above("lent_bytes", before + rounds * SLOTS * min(sizes) // 2)


def zc_unaligned(l, r, addr):
    """Pieces of memory of several regions, short ones among them, which are copied."""
    with memory(l, MIB) as one, memory(l, MIB) as two, memory(r, MIB) as rmr, \
            pair(l, r, addr) as p:
        for first, shift in ((1, 0), (100, 3), (PAGE + 5, 4095), (3 * PAGE, 1), (511, 77)):
            sges = [(one[1] + shift, first, one[2]), (one[1] + 2 * MIB // 4, 20003, one[2]),
                    (two[1] + shift, 30001, two[2]), (two[1] + MIB // 2, 3, two[2])]
            data = rng.randbytes(sum(s[1] for s in sges))
            at = 0
            for sge in sges:
                l.poke(sge[0], data[at:at + sge[1]])
                at += sge[1]
            l.post_send(p.lc, wr("RDMA_WRITE", sges, raddr=rmr[1] + shift, rkey=rmr[3]))
            p.send_done()
            p.sync(one, rmr)
            expect(r.peek(rmr[1] + shift, len(data)) == data, True, "gathered octets")


def zc_waits(l, r, addr):
    """A completion waits for the acknowledgment, and those behind it wait as well."""
    with unacked(l, r, addr, deaf, 2) as (p, lmr, rmr):
        l.post_send(p.lc, write(lmr, rmr, 1, 2))
        await_retransmission()
        expect(l.completions(p.lc, "send"), [], "completions without an acknowledgment")
    alive(p)
    disconnect(p)
    l.close_mr(lmr[0])


def zc_small(l, r, addr):
    """Short messages are copied, and their completions wait for nobody."""
    r.listen(addr)
    with buffers(l, r, LONG) as (lmr, rmr):
        p = connect(l, r, addr, {}, {})
        p.sync(lmr, rmr)
        with counted(l, lent_bytes=0), deaf():
            l.post_send(p.lc, write(lmr, rmr, 16384))
            p.send_done()
        p.sync(lmr, rmr)
        disconnect(p)


def zc_probing(l, r, addr):
    """TCP probes the MTU: nothing would tell when the pages are free."""
    probing = "net.ipv4.tcp_mtu_probing"
    subprocess.run(["sysctl", "-qw", f"{probing}=1"], check=True)
    try:
        with buffers(l, r, MIB) as (lmr, rmr), pair(l, r, addr) as p, counted(l, lent_bytes=0):
            l.post_send(p.lc, write(lmr, rmr, MIB))
            p.send_done()
    finally:
        subprocess.run(["sysctl", "-qw", f"{probing}=0"], check=True)


def zc_dereg(l, r, addr):
    """A region is deregistered while its pages are lent: that ends the connection."""
    with unacked(l, r, addr, deaf) as (p, lmr, _):
        room = l.mrs[lmr[0]][1]
        l.close_mr(lmr[0])
        room[:] = bytes([LATER]) * len(room)
        expect([c[:2] for c in l.complete(p.lc, "send")], [(1, "WR_FLUSH_ERR")], "completion")
    over(p, None)


def zc_error(l, r, addr):
    """The QP is moved to ERR: what is flushed is not sent any more."""
    for hold in (deaf, slow):
        with unacked(l, r, addr, hold) as (p, lmr, _):
            l.to_error(p.lc)
            status = l.complete(p.lc, "send")[0][1]
            l.poke(lmr[1], bytes([LATER]) * LONG)
            expect(status, "WR_FLUSH_ERR", "completion")
        over(p, lmr)


def zc_destroy(l, r, addr):
    """The QP is destroyed, or reset. TCP returns the pages at once, or when they have left."""
    for hold in (deaf, slow):
        for end in (l.destroy_qp, lambda lc: l.modify(lc, "RESET")):
            kept = l.counter("lent_kept")
            with unacked(l, r, addr, hold) as (p, lmr, _):
                end(p.lc)
                l.poke(lmr[1], bytes([LATER]) * LONG)
                expect(l.counter("lent_kept"), kept, "loans that are kept")
            over(p, lmr)


def zc_kept(l, r, addr):
    """This host keeps packets: the QP and the region end all the same, in whatever order. But the
    memory stays pinned until the packets are freed. Nothing waits for a QP that could return it if
    there is none."""
    took = []
    for ends in ((l.destroy_qp,), (l.destroy_qp,), ()):
        before, kept = pinned(), l.counter("lent_kept")
        with unacked(l, r, addr, held) as (p, lmr, _):
            for end in ends:
                end(p.lc)
            expect(pinned() - before >= LONG // 1024, True, "pinned memory of the region")
            begun = time.monotonic()
            l.close_mr(lmr[0])
            took.append(time.monotonic() - begun)
            if not ends:
                expect([c[:2] for c in l.complete(p.lc, "send")], [(1, "WR_FLUSH_ERR")],
                       "completion")
            expect(l.counter("lent_kept") > kept, True, "loans that are kept")
            expect(pinned() - before >= LONG // 1024, True, "pinned memory of the packets")
        wait_for("unpinning", lambda: pinned() == before)
        over(p, None)
    # The machine may have stood still meanwhile, but hardly each time.
    expect(min(took[:2]) < took[2] / 2, True, f"seconds without a QP, and with one: {took}")


def zc_fails(l, r, addr):
    """A Write whose second region has gone fails, but not before its pages are returned."""
    r.listen(addr)
    with memory(l, 2 * MIB) as one, memory(r, 3 * MIB) as rmr:
        two = l.mr(MIB)
        p = connect(l, r, addr, {}, {})
        p.sync(one, rmr)
        l.poke(one[1], bytes([GOOD]) * 2 * MIB)
        with slow("50ms"):
            l.post_send(p.lc, wr("RDMA_WRITE", [(one[1], 2 * MIB, one[2]), (two[1], MIB, two[2])],
                                 raddr=rmr[1], rkey=rmr[3]))
            l.close_mr(two[0])
            got = l.complete(p.lc, "send")[0][:2]
            l.poke(one[1], bytes([LATER]) * 2 * MIB)
            expect(got, (1, "LOC_PROT_ERR"), "completion")
            r.child_event("DISCONNECTED")
        only_of(r.peek(rmr[1], 2 * MIB), GOOD, "what has arrived")
        over(p, None)


def zc_peer_dies(l, r, addr):
    """The peer resets the connection: what it has not acknowledged is flushed."""
    with unacked(l, r, addr, slow) as (p, lmr, _):
        r.to_error(p.rc)
        r.destroy_qp(p.rc)
        expect(l.complete(p.lc, "send")[0][1] in ("SUCCESS", "WR_FLUSH_ERR"), True, "status")
    over(p, lmr)


def zc_close(l, r, addr):
    """An orderly close waits for the acknowledgment."""
    with unacked(l, r, addr, deaf, 1) as (p, lmr, _):
        l.disconnect(p.lc)
        await_retransmission()
        expect(l.completions(p.lc, "send"), [], "completions without an acknowledgment")
    l.event(p.lc, "DISCONNECTED")
    r.child_event("DISCONNECTED")
    finish(p)
    l.close_mr(lmr[0])


def zc_captured(l, r, addr):
    """Whoever receives the packets in this host has copies: a capture, or a mirror."""
    for dev, hold in ((netdev(), contextlib.nullcontext), (MIRROR, mirrored)):
        with buffers(l, r, LONG) as (lmr, rmr), pair(l, r, addr) as p, hold(), capture(dev) as sock:
            l.poke(lmr[1], bytes([GOOD]) * LONG)
            lent = l.counter("lent_bytes")
            l.post_send(p.lc, write(lmr, rmr, LONG))
            p.send_done()
            l.poke(lmr[1], bytes([LATER]) * LONG)
            expect_captured(sock)
            l.counter_above("lent_bytes", lent)


def zc_rerouted(l, r, _):
    """The route changes while pages are lent: it leads back to this host, which refuses. The route
    to the other address of the peer stays, because the two processes need it."""
    with capture("lo") as sock:
        with unacked(l, r, PEER6, lambda: moved(PEER6)) as (p, lmr, _):
            status = l.complete(p.lc, "send")[0][1]
            l.poke(lmr[1], bytes([LATER]) * LONG)
            expect(status, "WR_FLUSH_ERR", "completion")
        over(p, lmr)
        expect_captured(sock)


def zc_unsignaled(l, r, addr):
    """Nobody waits for these, but what follows does; a fence makes no difference."""
    with buffers(l, r, LONG) as (lmr, rmr), pair(l, r, addr) as p:
        for i in range(200):
            l.post_send(p.lc, write(lmr, rmr, LONG, i, 0, ()),
                        wr("RDMA_READ", [(lmr[1], 1, lmr[2])], 1000 + i, ("SIGNALED", "FENCE"),
                           raddr=rmr[1], rkey=rmr[3]))
            p.send_done(1000 + i)


def zc_read(l, r, addr):
    """Responses to Reads are copied: nobody waits for their acknowledgment."""
    with buffers(l, r, MIB) as (lmr, rmr), pair(l, r, addr) as p, counted(r, lent_bytes=0):
        data = rng.randbytes(MIB)
        r.poke(rmr[1], data)
        l.post_send(p.lc, wr("RDMA_READ", [(lmr[1], MIB, lmr[2])], raddr=rmr[1], rkey=rmr[3]))
        p.send_done()
        expect(l.peek(lmr[1], MIB) == data, True, "octets read")


def zc_both(l, r, addr):
    """The peer reads from an end that lends: Responses between pages that are lent."""
    with buffers(l, r, 2 * MIB) as (lmr, rmr), pair(l, r, addr) as p:
        for _ in range(16):
            data = rng.randbytes(2 * MIB)
            l.poke(lmr[1], data)
            for i in range(4):
                at = i * LONG
                r.post_send(p.rc, wr("RDMA_READ", [(rmr[1] + at, LONG, rmr[2])], i,
                                     raddr=lmr[1] + at, rkey=lmr[3]))
                l.post_send(p.lc, write(lmr, rmr, LONG, i, MIB + at))
            for end, conn in ((l, p.lc), (r, p.rc)):
                expect([c[:2] for c in end.complete(conn, "send", 4)],
                       [(i, "SUCCESS") for i in range(4)], "completions")
            p.sync(lmr, rmr)
            for at, what in ((0, "read"), (MIB, "written")):
                got = r.peek(rmr[1] + at, 4 * LONG)
                expect(got == data[at:at + 4 * LONG], True, f"octets {what}")


def zc_off(l, r, addr):
    """Nothing is lent with zero_copy=off, or to this host's own address."""
    with buffers(l, r, MIB) as (lmr, rmr), pair(l, r, addr) as p, counted(l, lent_bytes=0):
        l.post_send(p.lc, write(lmr, rmr, MIB))
        p.send_done()


def zc_auto(l, r, addr):
    """With zero_copy=auto, lending stops where the host copies; both hosts are namespaces."""
    with buffers(l, r, MIB) as (lmr, rmr), pair(l, r, addr) as p:
        lent, copied = l.counter("lent_bytes"), l.counter("lent_copied")
        for _ in range(16):
            l.post_send(p.lc, write(lmr, rmr, MIB))
            p.send_done()
        l.counter_above("lent_copied", copied)
        expect(0 < l.counter("lent_bytes") - lent < 4 * MIB, True, "bytes lent")
