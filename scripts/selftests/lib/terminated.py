#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""terminated.py DEVICE ADDRESS NETNS

Connects to a wire peer (scripts/peer) that listens to ADDRESS in NETNS, posts work requests, and
gets a Terminate: each that there is, with each header that it can quote. Looks at the status of
every completion, at the asynchronous event, that the peer gets nothing but FIN in answer, and at
the receive buffer of the stream that waits for the FIN of the peer. What is wanted is what
Documentation/uapi.rst says. Then the driver sends a Terminate that takes the last room in TCP.
Prints a line for each case, as scripts/peer, and in the end how many there were.
"""

import contextlib
import ctypes
import os
import pathlib
import re
import socket
import struct
import subprocess
import sys
import time
import traceback

import verbs
import verbs_base
from peer import cli, mpa, rdmap, startup, stream

PORT = 7175
CLONE_NEWNET = 0x40000000
SIZE = 2000                     # octets of a work request
LONG = 16 << 20                 # of one that TCP does not take
MAX_BUFFER = 64 << 10           # of a stream that lingers
LINGER = 4                      # seconds, and it is reset after 5
RELEASED = 5                    # seconds after the Terminate: the driver's end may be gone
MAX_UNSEEN = 5                  # of those that were gone before ss has looked
STAG, BASE = 0x1a2b3c01, 0x7f00_0000_1003
NOT_THERE = 77                  # as a message's number

ACCESS, INVALID, GENERAL = "REM_ACCESS_ERR", "REM_INV_REQ_ERR", "GENERAL_ERR"
# A ring of siw's format has no REM_OP_ERR.
OPERATION = "REM_OP_ERR" if verbs_base.IS_EXT else GENERAL
GOOD, FLUSH = "SUCCESS", "WR_FLUSH_ERR"

# Layer, error type: codes, status
STATUS = (
    (0, 0, (0x00, 0xff), OPERATION),
    (0, 1, (0x00, 0x01, 0x02, 0x03, 0x04, 0x42, 0xff), ACCESS),
    (0, 1, (0x09,), INVALID),
    (0, 2, (0x05, 0x06, 0x09), INVALID),
    (0, 2, (0x00, 0x07, 0x08, 0xff), OPERATION),
    (0, 3, (0x00, 0x05), OPERATION),
    (1, 0, (0x00, 0xff), OPERATION),
    (1, 1, (0x00, 0x01, 0x02, 0x03), ACCESS),
    (1, 1, (0x04,), INVALID),
    (1, 1, (0x05, 0xff), OPERATION),
    (1, 2, (0x01, 0x03, 0x04, 0x05, 0x06), INVALID),
    (1, 2, (0x00, 0x02, 0xff), OPERATION),
    (1, 3, (0x00,), OPERATION),
    (2, 0, (0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07), GENERAL),
    (2, 3, (0x02, 0x03), GENERAL),
    (2, 1, (0x02,), GENERAL),
    (3, 0, (0x00,), OPERATION),
    (15, 15, (0xff,), OPERATION),
)


class Case:
    """WORK: names of work requests, posted as 0, 1 and so on. SENT: those that go out. BITS and
    HEADERS of a Terminate LAYER.ETYPE/CODE; WANTED: status of each, "" without a completion."""

    def __init__(self, name, work, wanted, headers=b"", bits=0xe0, code=(0, 1, 0), **how):
        self.name, self.work, self.wanted = name, work.split(), wanted
        self.payload = bytes((code[0] << 4 | code[1], code[2], bits, how.get("reserved", 0)))
        self.payload += headers
        self.sent = how.get("sent", len(self.work))
        self.read_depth = how.get("ord", 4)
        self.rtr = how.get("rtr", "write")
        self.answered = how.get("answered", 0)      # octets of the first Read
        self.twice = how.get("twice", False)
        self.begun = how.get("begun", False)        # a LONG is, behind those that are sent


def quoted(opcode, msn=1, qn=None, payload=bytes(28)):
    """ULPDU length and headers of a message of the driver's, as a Terminate has them."""
    qn = rdmap.QUEUES.get(opcode, 0) if qn is None else qn
    if opcode in rdmap.TAGGED_OPCODES:
        ulpdu = rdmap.Connection(None).segment(opcode, stag=STAG, to=BASE).encode()
    else:
        ulpdu = rdmap.Connection(None).segment(opcode, msn=msn, qn=qn).encode()
    return struct.pack(">H", len(ulpdu) + 28) + ulpdu + payload


READ, SEND, WRITE = rdmap.READ_REQUEST, rdmap.SEND, rdmap.WRITE
MIXED = "READ SEND READ SEND"
# A Send has completed when TCP has it, but behind the Read that was posted before it.
OLDEST = (ACCESS, GOOD, FLUSH, GOOD)


def codes():
    for layer, etype, values, status in STATUS:
        for value in values:
            code = (layer, etype, value)
            yield Case(f"{layer}/{etype}/{value:02x} of a Read", "READ", (status,),
                       quoted(READ), code=code)


def headers():
    read, send = quoted(READ), quoted(SEND)
    yield Case("no header", MIXED, OLDEST, bits=0)
    yield Case("bits without headers", MIXED, OLDEST)
    yield Case("the first Read", MIXED, OLDEST, read)
    yield Case("the second Read", MIXED, (FLUSH, GOOD, ACCESS, GOOD), quoted(READ, 2))
    yield Case("a Read that there is not", MIXED, OLDEST, quoted(READ, NOT_THERE))
    yield Case("a Read 0", MIXED, OLDEST, quoted(READ, 0))
    yield Case("a Read without its own header", MIXED, (FLUSH, GOOD, ACCESS, GOOD),
               quoted(READ, 2, payload=b""), bits=0xc0)
    yield Case("a Read whose own header is cut off", MIXED, (FLUSH, GOOD, ACCESS, GOOD),
               quoted(READ, 2)[:-1])
    yield Case("a Read, no segment length", MIXED, (FLUSH, GOOD, ACCESS, GOOD),
               quoted(READ, 2), bits=0x60)
    yield Case("a Read, no bit for its header", MIXED, OLDEST, quoted(READ, 2), bits=0xa0)
    yield Case("a DDP header that is cut off", MIXED, OLDEST, quoted(READ, 2)[:19])
    yield Case("nothing but the segment length", MIXED, OLDEST, read[:2], bits=0x80)
    yield Case("more than all headers", MIXED, (FLUSH, GOOD, ACCESS, GOOD),
               quoted(READ, 2) + bytes(500))
    yield Case("reserved bits", MIXED, (FLUSH, GOOD, ACCESS, GOOD), quoted(READ, 2),
               bits=0xff, reserved=0xff)
    yield Case("the first Send", MIXED, (FLUSH, ACCESS, FLUSH, GOOD), send, bits=0xc0)
    yield Case("the second Send", MIXED, (FLUSH, GOOD, FLUSH, ACCESS), quoted(SEND, 2),
               bits=0xc0)
    yield Case("a Send that there is not", MIXED, OLDEST, quoted(SEND, NOT_THERE), bits=0xc0)
    yield Case("a queue that there is not", MIXED, OLDEST, quoted(SEND, qn=9), bits=0xc0)
    yield Case("a Terminate of ours", MIXED, OLDEST, quoted(rdmap.TERMINATE), bits=0xc0)
    yield Case("a Read Response", MIXED, OLDEST, quoted(rdmap.READ_RESPONSE), bits=0xc0)
    yield Case("a Write", "READ WRITE", (ACCESS, GOOD), quoted(WRITE), bits=0xc0)


def work():
    read, send = quoted(READ), quoted(SEND)
    yield Case("nothing posted", "", (), read)
    yield Case("a Send that has completed", "SEND", (GOOD,), send, bits=0xc0)
    yield Case("a Write that has completed", "WRITE", (GOOD,), quoted(WRITE), bits=0xc0)
    yield Case("a Send behind one that has completed", "SEND READ SEND", (GOOD, FLUSH, ACCESS),
               quoted(SEND, 2), bits=0xc0)
    yield Case("a Send that has completed, and a Read", "SEND READ", (GOOD, ACCESS), send,
               bits=0xc0)
    yield Case("not signaled", "read send read send", (ACCESS, "", FLUSH, ""), read)
    yield Case("not signaled, a Send", "read send read", (FLUSH, ACCESS, FLUSH), send, bits=0xc0)
    yield Case("behind a fence", "READ FENCED SEND", (ACCESS, FLUSH, FLUSH), read, sent=1)
    yield Case("a Send that was not sent", "READ FENCED", (ACCESS, FLUSH), send, bits=0xc0,
               sent=1)
    yield Case("a Read that was not sent", "READ READ", (ACCESS, FLUSH), quoted(READ, 2),
               sent=1, ord=1)
    yield Case("in the middle of its answer", "READ SEND", (ACCESS, GOOD), read, answered=100)
    yield Case("of two, the first is answered", "READ READ", (GOOD, ACCESS), quoted(READ, 2),
               answered=SIZE)
    yield Case("a Read that has been answered", "READ READ", (GOOD, ACCESS), read,
               answered=SIZE)
    yield Case("the RTR is a Read", "READ READ", (FLUSH, ACCESS), quoted(READ, 3), rtr="read")
    yield Case("the RTR that is a Read", "READ READ", (ACCESS, FLUSH), read, rtr="read")
    yield Case("the RTR is a Send", "READ SEND", (FLUSH, ACCESS), quoted(SEND, 2), bits=0xc0,
               rtr="send")
    yield Case("two Terminates", "READ READ", (FLUSH, ACCESS), quoted(READ, 2), twice=True)
    yield Case("in the middle of a Send", "READ LONG", (FLUSH, ACCESS), send, bits=0xc0, sent=1,
               begun=True)
    yield Case("in the middle of the second Send", "READ SEND LONG", (FLUSH, GOOD, ACCESS),
               quoted(SEND, 2), bits=0xc0, sent=2, begun=True)
    yield Case("in the middle of a Send, the next one", "READ LONG SEND", (ACCESS, FLUSH, FLUSH),
               quoted(SEND, 2), bits=0xc0, sent=1, begun=True)
    yield Case("in the middle of a Send, a Read", "READ LONG", (ACCESS, FLUSH), read, sent=1,
               begun=True)


def enter(netns):
    """The calling thread's network is NETNS; returns what takes it back."""
    with open("/proc/thread-self/ns/net", "rb") as here, open(netns, "rb") as there:
        back = os.dup(here.fileno())
        verbs_base.expect(ctypes.CDLL(None).setns(there.fileno(), CLONE_NEWNET), 0, "setns")
    return back


def listen(addr, netns, port, **options):
    back = enter(netns)
    sock = stream.listen(addr, port, **options)
    verbs_base.expect(ctypes.CDLL(None).setns(back, CLONE_NEWNET), 0, "setns")
    os.close(back)
    sock.settimeout(verbs_base.PATIENCE)
    return sock


def wrs(names, addr, lkey):
    """For post_send(); in small letters: not signaled."""
    for n, name in enumerate(names):
        wr = {"id": n, "op": "SEND", "flags": ["SIGNALED"] if name.isupper() else [],
              "sge": [(addr, LONG if name == "LONG" else SIZE, lkey)]}
        if name == "FENCED":
            wr["flags"].append("FENCE")
        elif name.upper() not in ("SEND", "LONG"):
            wr.update(op="RDMA_" + name.upper(), raddr=BASE, rkey=STAG)
        yield wr


def connect(end, listener, addr, case):
    """The driver's end, and the peer's."""
    num = end.connect(addr, {"ird": 1, "ord": case.read_depth}, port=listener.getsockname()[1])
    sock, _ = listener.accept()
    opt = cli.parser().parse_args(["server", "-", "--ird", "4", "--rtr", case.rtr])
    conn = startup.responder(stream.Stream(sock, None, verbs_base.PATIENCE), opt,
                             lambda *_, **__: None)
    end.event(num, "ESTABLISHED")
    conn.receive()      # the RTR
    verbs_base.expect(conn.rtr, case.rtr, "RTR")
    conn.answer_reads = False
    return num, conn


def until_sent(conn, case):
    """All work requests that are sent have arrived, and the beginning of one more if wanted; the
    first Read is answered as far as wanted."""
    conn.regions[STAG] = rdmap.Region(STAG, BASE, SIZE)
    asked = []
    for _ in range(case.sent):
        while not conn.receive().last:
            pass
        if conn.asked and conn.asked not in asked:
            asked.append(conn.asked)
    if case.begun:
        seg = conn.receive()
        verbs_base.expect((seg.opcode, seg.mo, seg.last), (SEND, 0, False), "a Send that begins")
    if case.answered:
        seg = conn.segment(rdmap.READ_RESPONSE, stag=asked[0].sink_stag, to=asked[0].sink_to,
                           payload=bytes(case.answered), last=case.answered == SIZE)
        conn.stream.send(conn.encode([seg]))


def nothing_but_fin(conn):
    while True:
        try:
            seg = conn.receive()
        except EOFError as end:
            verbs_base.expect(str(end), "", "the end of the stream")
            return
        raise verbs_base.Failed(f"{seg} after the Terminate")


def all_and_fin(conn):
    """What TCP had of a message in the middle of which the Terminate came, and no reset."""
    while conn.stream.receive():
        pass


def small_buffer(sock, sent, unseen):
    """The driver's end, of which this is the peer's, has sent its FIN, or is about to shrink. SENT: when
    the Terminate was sent. UNSEEN: a list that gets another entry if it is gone since."""
    command = ("ss", "-Htnm", "state", "fin-wait-1", "state", "fin-wait-2",
               "sport", "=", f":{sock.getpeername()[1]}")
    end = time.monotonic() + LINGER
    while True:
        said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        sizes = [int(size) for size in re.findall(r",rb(\d+),", said)]
        if len(sizes) == 1 and sizes[0] <= MAX_BUFFER:
            return
        if not sizes and time.monotonic() > sent + RELEASED and len(unseen) < MAX_UNSEEN:
            unseen.append(sock)
            return
        if time.monotonic() > end:
            raise verbs.Failed(f"receive buffers {sizes}: {said}")


def run(end, listener, addr, memory, unseen, case):
    num, conn = connect(end, listener, addr, case)
    for n in (100, 101):
        end.post_recv(num, n, (memory[1], SIZE, memory[2]))
    if case.work:
        end.post_send(num, *wrs(case.work, memory[1], memory[2]))
    until_sent(conn, case)
    term = conn.segment(rdmap.TERMINATE, payload=case.payload)
    sent = time.monotonic()
    conn.stream.send(conn.encode([term] * (1 + case.twice)))
    (all_and_fin if case.begun else nothing_but_fin)(conn)
    small_buffer(conn.stream.sock, sent, unseen)
    conn.stream.close()
    end.event(num, "DISCONNECTED")
    verbs_base.expect([c[:2] for c in end.completions(num, "send")],
                 [(n, status) for n, status in enumerate(case.wanted) if status], "sent")
    verbs_base.expect([c[:2] for c in end.completions(num, "recv")],
                 [(100, FLUSH), (101, FLUSH)], "received")
    verbs_base.expect(end.async_events(), ["QP_FATAL"], "events")
    verbs_base.expect(end.state(num), "ERR", "state")
    end.close(num)


# A Terminate of the driver's, which TCP takes although nobody reads, and has no room after it.

STALLED_PORT = PORT + 1
WMEM = pathlib.Path("/proc/sys/net/ipv4/tcp_wmem")
LITTLE = 1000                   # octets of memory; a buffer with the Terminate takes more
STEP = 536                      # octets of a segment
ATTEMPTS = 5
BYTES_RECEIVED = 128            # where struct tcp_info has them


def queued(sock):
    """What TCP has queued at the driver's end, of which SOCK is the peer's, and its limit: memory.
    And how many octets were acknowledged there."""
    command = ("ss", "-Htnmai", "sport", "=", f":{sock.getpeername()[1]}")
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    found = re.findall(r",tb(\d+),f\d+,w(\d+),.* bytes_acked:(\d+) ", said)
    verbs_base.expect(len(found), 1, f"sockets: {said}")
    limit, used, acked = map(int, found[0])
    return used, limit, acked


def has_little(conn):
    used, limit, _ = queued(conn.stream.sock)
    return 0 < limit - used <= LITTLE


def all_acked(sock):
    """Whether the driver's TCP knows that the peer's has got all that arrived there."""
    info = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, BYTES_RECEIVED + 8)
    received = struct.unpack_from("=Q", info, BYTES_RECEIVED)[0]
    return queued(sock)[2] >= received


@contextlib.contextmanager
def deaf(netns):
    """Nothing that the driver sends reaches the peer's TCP, so that it acknowledges no more."""
    def nft(commands):
        subprocess.run(("nsenter", f"--net={netns}", "nft", commands), check=True)

    nft("add table inet deaf; add chain inet deaf in { type filter hook input priority 0; }; "
        f"add rule inet deaf in tcp dport {STALLED_PORT} drop")
    try:
        yield
    finally:
        nft("delete table inet deaf")


@contextlib.contextmanager
def little_room(conn, netns):
    """Reads slowly until the driver's end has very little room, and keeps it so."""
    while True:
        conn.stream.extend(verbs_base.PATIENCE)
        conn.rx.feed(conn.stream.sock.recv(STEP))
        if not has_little(conn):
            continue
        with deaf(netns):
            # An acknowledgment that came with the fault would make room.
            conn.stream.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)
            until = time.monotonic() + LINGER
            while not all_acked(conn.stream.sock) and time.monotonic() < until:
                time.sleep(0.01)
            if all_acked(conn.stream.sock) and has_little(conn):
                yield
                return


def to_the_end(conn):
    """The rest of what TCP had, the Terminate, and FIN."""
    try:
        while True:
            conn.receive()
    except rdmap.Terminated as terminated:
        term = terminated.args[0]
    verbs_base.expect((term["layer"], term["etype"], term["code"]), (1, 1, "00"), "Terminate")
    nothing_but_fin(conn)


def stall(end, listener, addr, netns, memory):
    """The peer makes a fault in the middle of a Send, and reads on when the QP has ended. Return
    whether TCP was full then: it may have had a part of the next segments, for which the Terminate
    waits."""
    num, conn = connect(end, listener, addr, Case("", "", ()))
    before = end.counter("tx_terminates")
    end.post_send(num, *wrs(["LONG"], memory[1], memory[2]))
    with little_room(conn, netns):
        conn.stream.send(conn.encode([conn.segment(WRITE, stag=STAG, to=BASE, payload=b"x")]))
        until = time.monotonic() + LINGER / 4
        while end.counter("tx_terminates") == before and time.monotonic() < until:
            time.sleep(0.01)
        used, limit, _ = queued(conn.stream.sock)
        was_full = end.counter("tx_terminates") > before and used >= limit
        if was_full:
            end.event(num, "DISCONNECTED", LINGER)
    to_the_end(conn)
    conn.stream.close()
    if not was_full:
        end.event(num, "DISCONNECTED")
    verbs_base.expect([c[:2] for c in end.completions(num, "send")], [(0, FLUSH)], "sent")
    verbs_base.expect(end.async_events(), ["QP_ACCESS_ERR"], "events")
    end.close(num)
    return was_full


def stalled(end, addr, netns, memory):
    wmem = WMEM.read_text(encoding="ascii")
    WMEM.write_text("4096 16384 16384", encoding="ascii")
    try:
        with contextlib.closing(listen(addr, netns, STALLED_PORT, mss=STEP,
                                       room=8192)) as listener:
            found = any(stall(end, listener, addr, netns, memory) for _ in range(ATTEMPTS))
    finally:
        WMEM.write_text(wmem, encoding="ascii")
    verbs_base.expect(found, True, "TCP had room for a Terminate, and none after it")


def tried(name, case, *args):
    """Whether CASE has passed; says so."""
    try:
        case(*args)
    except (verbs_base.Failed, OSError, EOFError, mpa.MpaError, rdmap.RdmapError, rdmap.Terminated):
        traceback.print_exc(file=sys.stdout)
        print(f"not ok {name}", flush=True)
        return False
    print(f"ok {name}", flush=True)
    return True


def main(device, addr, netns):
    end, count = verbs.End(device), 0
    memory = end.mr(LONG)
    unseen = []
    with contextlib.closing(listen(addr, netns, PORT)) as listener:
        for count, case in enumerate((*codes(), *headers(), *work()), 1):
            if not tried(case.name, run, end, listener, addr, memory, unseen, case):
                end.async_events()
    tried("one of ours takes the last room", stalled, end, addr, netns, memory)
    print(count + 1)


main(*sys.argv[1:])
