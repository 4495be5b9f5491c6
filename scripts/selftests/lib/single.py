# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""A kernel consumer (ktest/single.c) at one end of a connection, and the wire peer (scripts/peer)
at the other end, in another network namespace."""

import ctypes
import ipaddress
import os
import time

from peer import cli, faults, rdmap, startup, stream

FILE = "/sys/kernel/debug/kiwarp_ktest/single"
SLOW = int(os.environ.get("KIW_SLOW", "1"))
PATIENCE = 20 * SLOW            # seconds for anything that is to happen
PORT = 7176
CLONE_NEWNET = 0x40000000

# enum ib_access_flags
LOCAL, RWRITE, RREAD, ATOMIC = 1, 2, 4, 8
ALL = LOCAL | RWRITE | RREAD | ATOMIC
# enum ib_wr_opcode, enum ib_send_flags
WRITE, WRITE_IMM, SEND, SEND_IMM, READ, CMP_SWAP, FETCH_ADD = range(7)
MASKED_CMP_SWAP, MASKED_FETCH_ADD = 12, 13
FENCE, SOLICITED = 1, 4
# enum ib_wc_status, enum ib_event_type, enum rdma_cm_event_type: those that are of use
SUCCESS, QP_OP, PROT, FLUSH, BAD_RESP = 0, 2, 4, 5, 7
INVALID, ACCESS, REM_OP, GENERAL = 9, 10, 11, 21
QP_FATAL, REQ_ERR, ACCESS_ERR = 1, 2, 3
ESTABLISHED, DISCONNECTED = 9, 10

MEMORY = 256 * 4096             # octets of the consumer
CANARY = 0xc5


class Failed(Exception):
    """Something did not happen, or not as it should."""


def expect(got, wanted, what="value"):
    if got != wanted:
        raise Failed(f"{what}: got {got!r}, wanted {wanted!r}")


def bits(mask):
    return {n for n in range(mask.bit_length()) if mask >> n & 1}


def within(netns, call):
    """What CALL() returns in the network namespace that the file NETNS names."""
    libc = ctypes.CDLL(None)
    with open("/proc/thread-self/ns/net", "rb") as here, open(netns, "rb") as there:
        expect(libc.setns(there.fileno(), CLONE_NEWNET), 0, "setns")
        try:
            return call()
        finally:
            expect(libc.setns(here.fileno(), CLONE_NEWNET), 0, "setns")


class End:
    """The kernel consumer."""

    def __init__(self):
        self.fd = os.open(FILE, os.O_RDWR)
        self.to = self.stag = self.size = None
        self.ids = 0

    def command(self, *words):
        os.write(self.fd, " ".join(str(int(w) if isinstance(w, bool) else w)
                                   for w in words).encode())

    def lines(self):
        """All in one read: the last line changes."""
        return [line.split() for line in os.pread(self.fd, 65536, 0).decode().splitlines()]

    def numbers(self, name):
        """What the log says of NAME, as lists of numbers."""
        return [list(map(int, line[1:])) for line in self.lines() if line[0] == name]

    def events(self):
        """Events of the connection and of the QP so far."""
        cm, qp = self.numbers("events")[-1]
        return bits(cm), bits(qp)

    def until(self, condition, what):
        end = time.monotonic() + PATIENCE
        while not condition():
            if time.monotonic() > end:
                raise Failed(f"{what}: {self.lines()}")
            time.sleep(0.005)

    def established(self):
        self.until(lambda: ESTABLISHED in self.events()[0], "no connection")

    def expose(self, how, *words):
        """Grants memory: "expose", "user" or "unsafe"."""
        self.command(how, *words)
        self.to, self.stag, self.size = self.numbers("memory")[-1]

    def post(self, opcode, raddr=0, rkey=0, args=(0, 0, 0, 0), at=8192, size=8, flags=0):
        """Posts a work request, and returns its number."""
        self.ids += 1
        self.command("post", self.ids, opcode, flags, at, size, raddr, rkey, *args)
        return self.ids

    def recv(self, at=0, size=64):
        self.ids += 1
        self.command("recv", self.ids, at, size)
        return self.ids

    def completion(self, number):
        """The completion of a work request: status, opcode, octets, flags, immediate."""
        def found():
            return [wc[1:] for wc in self.numbers("wc") if wc[0] == number]
        self.until(found, f"no completion of {number}")
        return found()[0]

    def statuses(self, numbers):
        return [self.completion(number)[0] for number in numbers]

    def poke(self, at, value):
        self.command("poke", at, value)

    def peek(self, at):
        self.command("peek", at)
        return self.numbers("word")[-1][0]

    def unchanged(self, first=0, end=0):
        """Nothing of the memory has changed, or nothing except these octets."""
        self.command("changed")
        low, high = self.numbers("changed")[-1]
        if high and (low < first or high > end):
            raise Failed(f"octets {low} to {high} have changed, not only {first} to {end}")

    def ended(self, event=None):
        """The connection has ended, with this event of the QP or without one."""
        self.until(lambda: DISCONNECTED in self.events()[0], "not disconnected")
        if event is not None:
            self.until(lambda: event in self.events()[1], f"no event {event}")
        expect(self.events()[1], set() if event is None else {event}, "events")

    def close(self):
        if self.fd >= 0:
            os.close(self.fd)
        self.fd = -1


class Place:
    """Where the two ends are: a namespace and an address each."""

    def __init__(self, netns_a, a4, netns_b, b4):
        self.netns_a, self.a4, self.netns_b, self.b4 = netns_a, a4, netns_b, b4
        self.ends = []

    def close(self):
        """Closes what is open of either end."""
        for end in self.ends:
            end.close()
        self.ends.clear()

    def _open(self, end, what, address, ird, ord_, unsafe):
        with open(self.netns_a, "rb") as net:
            end.command(what, net.fileno(), int(ipaddress.ip_address(address)), PORT, ird, ord_,
                        unsafe)

    def pair(self, role="listen", words="", ird=8, ord_=8, unsafe=False):
        """A consumer that listens or connects, and the peer at its other end, which has the options
        WORDS."""
        end = End()
        self.ends.append(end)
        return end, self._connect(end, role, words, ird, ord_, unsafe)

    def _connect(self, end, role, words, ird, ord_, unsafe):
        words = ["--timeout", str(PATIENCE), "--any-markers", "--ird", "16", "--ord", "16",
                 *words.split()]
        opt = cli.parser().parse_args(["server" if role == "connect" else "client", "-", *words])
        if role == "connect":
            listener = within(self.netns_b, lambda: stream.listen(self.b4, PORT))
            listener.settimeout(PATIENCE)
            with listener:
                self._open(end, role, self.b4, ird, ord_, unsafe)
                sock, _ = listener.accept()
        else:
            self._open(end, role, self.a4, ird, ord_, unsafe)
            sock = within(self.netns_b, lambda: stream.connect(self.a4, PORT, PATIENCE))
        self.ends.append(sock)
        there = stream.Stream(sock, stream.Segments(opt.segments), PATIENCE)
        begin = startup.responder if role == "connect" else startup.initiator
        conn = begin(there, opt, lambda *_, **__: None)
        conn.extended = True
        if role == "listen" and not opt.p2p:
            conn.write(0, 0, b"")       # the consumer may not speak before this
        if conn.expect_rtr:
            conn.receive()
        conn.wait(lambda: not conn.reads, PATIENCE)
        end.established()
        return conn


def terminated(conn, code, blame):
    """The Terminate CODE comes, about one of the ULPDUs BLAME, and then FIN."""
    try:
        while True:
            conn.receive()
    except rdmap.Terminated as term:
        said = term.args[0]
    except (EOFError, OSError) as error:
        raise Failed(f"{type(error).__name__} {error} instead of a Terminate") from error
    expect("{layer}/{etype}/{code}".format(**said), code, "Terminate")
    wrong = faults.contradiction(conn, said, [int(n, 16) for n in code.split("/")], blame)
    if wrong:
        raise Failed(f"Terminate: {wrong}")
    finished(conn)


def finished(conn):
    """FIN comes, and nothing before it."""
    try:
        seg = conn.receive()
    except EOFError as end:
        expect(str(end), "", "the end of the stream")
        return
    raise Failed(f"{seg} instead of the end")
