# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Cases of verbs.py: connections, callers and answers, and peers that misbehave."""

import contextlib
import errno
import socket
import subprocess
import time

import rdmacm
from verbs_base import PATIENCE, RDMA_PORT, errno_of, expect
from verbs_pairs import (ACCEPT, FAILURES, PAGE, RAW_PORT, REQUEST, Pair, alive, buffers, connect,
                         counted, disconnect, meet, pair, rng, wr)

PORT_RANGE = "/proc/sys/net/ipv4/ip_local_port_range"
FIRST_PORT = 20000


# Connections (130-cm.sh)

def private_data(l, r, addr):
    """Private data of Request and Reply arrives exactly, from none to the maximum of rdma_cm."""
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
    """Neither end has more READs outstanding than the peer accepts, and both know the number."""
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


def silent_until_spoken_to(l, r, addr):
    """Without peer-to-peer mode, the accepting side waits for the peer to send: RFC 5044 7.1.2."""
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
    """Connecting to a port without a listener fails with an event, and soon."""
    began = time.monotonic()
    lc = l.connect(addr, {}, port=9)
    l.event(lc, "REJECTED")
    expect(time.monotonic() - began < PATIENCE / 2, True, "soon")
    l.close(lc)


SMALL = {"depth": 4, "cqe": 8}


def shown_whole(l, r, count):
    """rdma shows that many connections, and the first and the last thing that the driver adds to
    what the core says of each, although no message has room for all."""
    if not (l.is_kiwarp() and r.is_kiwarp()):
        return
    for kind, each, names in (("qp", 2, ("kiwarp_state", "rx_in_message")),
                              ("cq", 4, ("size", "overrun")),
                              ("cm_id", 2, ("mpa_revision", "p2p"))):
        for name in names:
            expect(len(l.shown(kind, rf"\bdrv_{name} ")), each * count, f"{name} of each {kind}")


def two_hundred(l, r, addr, check=shown_whole):
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
        # Requests may have overtaken each other: the ends are not paired, but all are used.
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
        check(l, r, count)
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
    """Leave TCP only that many local ports, some of which other sockets use."""
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
        two_hundred(l, r, addr, lambda *_: None)


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
    for lc in waiting:
        l.event(lc, "ESTABLISHED")
        r.child_event("ESTABLISHED")
    # Requests may have overtaken each other: the ends are not paired.
    for lc in waiting:
        l.disconnect(lc)
        l.event(lc, "DISCONNECTED")
        r.child_event("DISCONNECTED")
    for lc, rc in zip(waiting, there):
        l.close(lc)
        r.close(rc)
    r.listen_end()


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
    """A server that sends something other than MPA, or invalid MPA."""
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
    """A server accepts after the QP has ended: it gets a Terminate, local error of MPA."""
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


def callers_silent(l, r, addr):
    """Clients that send no Request, or half of one, are dropped, and others are served."""
    r.listen(addr)
    with counted(r, conn_timeout=12, conn_requested=1):
        callers = [l.tcp_connect(addr) for _ in range(12)]
        for i, caller in enumerate(callers):
            l.tcp_send(caller, REQUEST[:2 * i])
        p = connect(l, r, addr, {}, {})
        for caller in callers:
            expect(l.tcp_closed(caller) < PATIENCE / 2, True, "dropped at the deadline")
    alive(p)
    disconnect(p)


def callers_garbage(l, r, addr):
    """Clients that send something other than MPA are dropped at once."""
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
    """All objects that were created are gone."""
    for end in (l, r):
        for kind in ("qp", "cq", "mr", "srq", "ep", "sock"):
            gone = end.counter(f"{kind}_destroyed")
            deadline = time.monotonic() + PATIENCE
            while end.counter(f"{kind}_created") != gone and time.monotonic() < deadline:
                time.sleep(0.05)
                gone = end.counter(f"{kind}_destroyed")
            expect(gone, end.counter(f"{kind}_created"), f"{kind}s gone")


# A Request of revision 2: CRC, peer-to-peer, each kind of RTR, depths of 1
REQUEST_P2P = b"MPA ID Req Frame\x50\x02\x00\x04\xe0\x01\xc0\x01"
# No QP has these numbers.
NO_QPS = (0, 0xfffffe, 1 << 24, 0xffffffff)


def silent_caller(l, r, addr):
    """A peer that sends a Request and then nothing."""
    caller = l.tcp_connect(addr)
    l.tcp_send(caller, REQUEST_P2P)
    rc, _ = r.request()
    return caller, rc


def refuses_all(end, num, *qp_nums):
    """Neither accept nor reject can be called for this connection."""
    for qp_num in (*qp_nums, *NO_QPS):
        expect(end.accept_errno(num, qp_num), errno.EINVAL, f"accept with QP {qp_num:#x}")
    expect(end.reject_errno(num), errno.EINVAL, "reject")


def answered_twice(l, r, addr):
    """After accept the consumer cannot answer again, and the connection does not change."""
    r.listen(addr)
    other, _ = r.idle_qp()
    with counted(r, conn_requested=1, conn_timeout=1, conn_closed=1, conn_established=0,
                 conn_rejected=0, conn_failed=0):
        caller, rc = silent_caller(l, r, addr)
        r.accept(rc, {})
        refuses_all(r, rc, r.qp_num(rc), r.qp_num(other))
        r.child_event("ESTABLISHED")
        refuses_all(r, rc, r.qp_num(rc), r.qp_num(other))
        expect(r.state(rc), "RTS", "state of the QP")
        r.child_event("DISCONNECTED")
        refuses_all(r, rc, r.qp_num(rc))
        l.tcp_closed(caller)
    # An answer after the deadline
    caller, late = silent_caller(l, r, addr)
    l.tcp_closed(caller)
    expect(r.accept_errno(late, r.qp_num(other)), errno.ECONNABORTED, "too late")
    refuses_all(r, late, r.qp_num(other))
    r.close(late)
    r.close(rc)
    r.close(other)
    r.listen_end()


def accepted_in_vain(l, r, addr):
    """Accepting with the number of no QP rejects the peer; no second answer is possible."""
    r.listen(addr)
    for qp_num in NO_QPS:
        caller, rc = silent_caller(l, r, addr)
        expect(r.accept_errno(rc, qp_num), errno.EINVAL, f"accept with QP {qp_num:#x}")
        refuses_all(r, rc)
        expect(l.tcp_closed(caller) < PATIENCE / 2, True, "the peer is told")
        r.close(rc)
    r.listen_end()


def qp_in_use(l, r, addr):
    """Destroying a QP ends all startups for it, also when it has a connection."""
    r.tcp_listen(addr, RAW_PORT)
    lc, there = meet(l, r, addr)
    second = l.connect_with(addr, l.qp_num(lc), RAW_PORT)
    there_too = r.tcp_accept()
    r.tcp_send(there, ACCEPT)
    l.event(lc, "ESTABLISHED")
    expect(l.connect_errno(addr, l.qp_num(lc), RAW_PORT), errno.EINVAL, "a connected QP")
    with counted(l, conn_timeout=0, conn_closed=1):
        l.destroy_qp(lc)
        l.event(lc, "DISCONNECTED")
        l.event(second, "CONNECT_ERROR")
    r.tcp_closed(there)
    r.tcp_closed(there_too)
    l.close(lc)
    l.close(second)
    r.tcp_listen_end()


# No way to the peer (130-cm.sh)

OWN_PORT = 7950


def ip(*words):
    """What iproute2 says, on the host that connects."""
    return subprocess.run(("ip", *words), check=True, stdout=subprocess.PIPE, text=True).stdout


@contextlib.contextmanager
def unreachable(addr, port):
    """TCP finds no route there; rdma_cm, which does not ask for a port, does."""
    family = "-6" if ":" in addr else "-4"
    rule = ("pref", "100", "to", addr, "ipproto", "tcp", "dport", str(port), "unreachable")
    ip(family, "rule", "add", *rule)
    try:
        yield
    finally:
        ip(family, "rule", "del", *rule)


@contextlib.contextmanager
def without_address(addr, dev):
    ip("addr", "del", f"{addr}/24", "dev", dev)
    try:
        yield
    finally:
        ip("addr", "add", f"{addr}/24", "dev", dev)


def own_address(addr):
    route = ip("-o", "route", "get", addr).split()
    return route[route.index("src") + 1]


def tcp_ports(addr, port):
    """Local ports of the streams to ADDR and PORT."""
    dst = f"[{addr}]" if ":" in addr else addr
    streams = subprocess.run(("ss", "-Htn", "dst", dst, "dport", "=", f":{port}"), check=True,
                             stdout=subprocess.PIPE, text=True).stdout
    return [int(line.split()[3].rsplit(":", 1)[1]) for line in streams.splitlines()]


def one_port(l, r, addr):
    """Connections from one port of rdma_cm to one other: TCP gives each a port of its own."""
    own = (own_address(addr), OWN_PORT)
    r.listen(addr)
    with buffers(l, r, PAGE) as (lmr, rmr):
        pairs = [connect(l, r, addr, {"own": own}, {}) for _ in range(4)]
        ports = tcp_ports(addr, RDMA_PORT)
        expect((len(set(ports)), OWN_PORT in ports), (4, True), f"ports {ports}")
        for n, p in enumerate(pairs):
            r.post_recv(p.rc, 5, (rmr[1], 100, rmr[2]))
            l.post_send(p.lc, wr("SEND", [(lmr[1], 10 + n, lmr[2])], 6))
            expect(r.complete(p.rc, "recv"), [(5, "SUCCESS", 10 + n)], "receive")
            alive(p)
        for p in pairs:
            l.disconnect(p.lc)
            l.event(p.lc, "DISCONNECTED")
            r.child_event("DISCONNECTED")
            l.close(p.lc)
            r.close(p.rc)
    disconnect(connect(l, r, addr, {"own": own}, {}))


def route_lost(l, r, addr):
    """There is no route when TCP is to connect for the first time, or for the second time."""
    r.tcp_listen(addr, RAW_PORT)
    idle, _ = l.idle_qp()
    with unreachable(addr, RAW_PORT), counted(l, conn_initiated=0, sock_created=1):
        expect(l.connect_errno(addr, l.qp_num(idle), RAW_PORT), errno.ENETUNREACH, "connect")
    lc, there = meet(l, r, addr)
    with unreachable(addr, RAW_PORT), counted(l, conn_failed=1, conn_retried=0):
        r.tcp_close(there)
        l.event(lc, FAILURES)
    l.close(lc)
    lc, there = meet(l, r, addr)
    l.close(lc)
    r.tcp_closed(there)
    l.close(idle)
    r.tcp_listen_end()


def address_lost(l, r, addr):
    """The host loses the address after it was chosen for a connection, or for a listener."""
    route = ip("-o", "route", "get", addr).split()
    own = [route[route.index(word) + 1] for word in ("src", "dev")]
    idle, _ = l.idle_qp()
    r.tcp_listen(addr, RAW_PORT)
    with contextlib.ExitStack() as lost, counted(l, conn_initiated=0, ep_created=1):
        error = l.connect_errno(addr, l.qp_num(idle), RAW_PORT,
                                lambda: lost.enter_context(without_address(*own)))
    expect(error, errno.EADDRNOTAVAIL, "connect")
    channel = rdmacm.Channel()
    listener = rdmacm.Id(channel)
    listener.bind(own[0], OWN_PORT)
    with counted(l, ep_created=1), without_address(*own):
        error = errno_of(lambda: listener.listen_bound(4))
    expect(error, errno.EADDRNOTAVAIL, "listen")
    listener.close()
    channel.close()
    lc, there = meet(l, r, addr)
    l.close(lc)
    r.tcp_closed(there)
    l.close(idle)
    r.tcp_listen_end()
