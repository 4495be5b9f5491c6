# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Valid sessions with random modifications: python3 -m peer mutate ADDRESS [OPTIONS].

The other end is mutated.py of the selftests: its Reply tells which memory it grants, and it
Reads, Writes and Sends as soon as it receives something. Each session has Sends, Writes, Reads
and a Read Response, several of them with more than one segment; a few of the segments are then
modified. Session N of a seed is reproducible with --first N --sessions 1. The reactions of the
other end are counted; unmodified sessions must succeed, and all that the other end sends must be
well-formed.
"""

import argparse
import collections
import json
import random
import struct
import threading
import time

from peer import cli, ddp, rdmap, rping, startup, stream

GRANT = struct.Struct(">QII?")          # as in mutated.py
OPTIONS = ("--rev 2", "--rev 1", "--rev 2 --crc off", "--rev 2 --segments 1-90",
           "--rev 2 --markers rx --segments 7-300", "--rev 1 --markers rx")
READS = ("--ird", "2", "--ord", "2")    # the other end may have a Read and an atomic operation
VALID_EVERY = 10                        # sessions
NUMBERS = (0, 1, 2, 3, 17, 0x7f, 0xff, 0x7fffffff, 0x80000000, 0xffffffff)
# How a modified session may end. What the other end sends must be well-formed in any case.
ENDS = (rdmap.Misplaced, startup.Stopped, EOFError, OSError)


class Fpdu:
    """A ULPDU to be sent, and the errors of its FPDU."""

    def __init__(self, ulpdu, **wrong):
        self.ulpdu, self.wrong = bytearray(ulpdu), wrong

    def copy(self):
        return Fpdu(self.ulpdu, **self.wrong)


def conversation(conn, grant, asked):
    """The segments of a session: what a client may send to a server that has granted memory."""
    to, stag, size = grant
    segments = conn.untagged(rdmap.SEND, b"s" * 40)
    segments += conn.tagged(rdmap.WRITE, stag, to, b"w" * size)
    request = rdmap.ReadRequest(rping.OWN, rping.BASE, size, stag, to)
    conn.reads.append([request, 0])
    segments += conn.untagged(rdmap.READ_REQUEST, rdmap.encode_read(request))
    for operation in conn.atomics:      # they came before the Read Request
        segments += conn.answer(operation, 1)
    answer = conn.regions[asked.src_stag].data[:asked.size]
    segments += conn.tagged(rdmap.READ_RESPONSE, asked.sink_stag, asked.sink_to, bytes(answer))
    segments += conn.untagged(rdmap.SEND_SOLICITED, b"e" * 900)
    segments += conn.tagged(rdmap.WRITE, stag, to, b"")
    segments += conn.untagged(rdmap.SEND, b"")
    return [Fpdu(seg.encode()) for seg in segments]


# The mutations. Each changes the list of FPDUs at an index. The CRC stays correct, except where the
# mutation is a wrong CRC.


def _flip_header(fpdus, at, rand):
    octets = fpdus[at].ulpdu
    if octets:
        octets[rand.randrange(min(len(octets), 46))] ^= 1 << rand.randrange(8)


def _flip_any(fpdus, at, rand):
    octets = fpdus[at].ulpdu
    if octets:
        octets[rand.randrange(len(octets))] ^= 1 << rand.randrange(8)


def _field(fpdus, at, rand):
    """Sets a field of a header, or of a Read Request, to a special value."""
    octets = fpdus[at].ulpdu
    place, size = rand.choice(((2, 4), (6, 4), (6, 8), (10, 4), (14, 4), (18, 4), (22, 8),
                               (30, 4), (34, 4), (38, 8)))
    if len(octets) >= place + size:
        value = rand.choice(NUMBERS)
        old = int.from_bytes(octets[place:place + size], "big")
        value = rand.choice((value, old + value, old - value, old ^ 1 << rand.randrange(8 * size)))
        octets[place:place + size] = (value % (1 << 8 * size)).to_bytes(size, "big")


def _control(fpdus, at, rand):
    octets = fpdus[at].ulpdu
    if len(octets) > 1:
        octets[0] ^= rand.choice((ddp.LAST, ddp.TAGGED, ddp.TAGGED | ddp.LAST))
        octets[1] = octets[1] & 0xf0 | rand.randrange(16)


def _truncate(fpdus, at, rand):
    del fpdus[at].ulpdu[rand.randrange(len(fpdus[at].ulpdu) + 1):]


def _extend(fpdus, at, rand):
    fpdus[at].ulpdu += rand.randbytes(rand.choice((1, 4, 28, 1000)))


def _length(fpdus, at, rand):
    fpdus[at].wrong["length"] = (len(fpdus[at].ulpdu) + rand.choice((-5, -1, 1, 3, 600))) & 0xffff


def _crc(fpdus, at, rand):
    fpdus[at].wrong["flip"] = (-1 - rand.randrange(4), 1 << rand.randrange(8))


def _again(fpdus, at, rand):
    fpdus.insert(rand.randrange(len(fpdus) + 1), fpdus[at].copy())


def _swap(fpdus, at, rand):
    other = rand.randrange(len(fpdus))
    fpdus[at], fpdus[other] = fpdus[other], fpdus[at]


def _drop(fpdus, at, _):
    del fpdus[at]


def _split(fpdus, at, rand):
    """Splits a segment into two that mean the same: the only mutation that must have no effect."""
    octets = fpdus[at].ulpdu
    size = ddp.head_size(octets) if octets else 0
    if len(octets) <= size + 1 or octets[1] & 0xf == rdmap.READ_REQUEST:
        return
    cut = rand.randrange(size + 1, len(octets))
    first, second = octets[:cut], octets[:size] + octets[cut:]
    first[0] &= ~ddp.LAST
    place, length = (6, 8) if octets[0] & ddp.TAGGED else (14, 4)
    offset = int.from_bytes(octets[place:place + length], "big") + cut - size
    second[place:place + length] = (offset % (1 << 8 * length)).to_bytes(length, "big")
    fpdus[at:at + 1] = [Fpdu(first), Fpdu(second)]


CHANGES = (_flip_header, _flip_header, _flip_any, _field, _field, _control, _truncate, _extend,
           _length, _crc, _again, _swap, _drop, _split)


def change(fpdus, rand):
    for _ in range(rand.choice((1, 1, 1, 2, 4))):
        if fpdus:
            rand.choice(CHANGES)(fpdus, rand.randrange(len(fpdus)), rand)


class Session:
    """Session NUMBER of a seed."""

    def __init__(self, opt, number):
        self.rand = random.Random(opt.seed * 1000003 + number)
        self.is_valid = number % VALID_EVERY == 0
        words = ["client", opt.address, "--port", str(opt.port), "--any-markers", "--size", "1000",
                 "--timeout", str(opt.timeout), *READS, *self.rand.choice(OPTIONS).split()]
        self.opt = cli.parser().parse_args(words)
        self.grant, self.is_extended = None, False
        self.went_well = False

    def _log(self, event, **fields):
        if event == "received":
            *self.grant, self.is_extended = GRANT.unpack(bytes.fromhex(fields["pdata"]))

    def _stream(self, sock):
        return stream.Stream(sock, stream.Segments(self.opt.segments), self.opt.timeout)

    def _begin(self, sock):
        """Connects, and runs the session up to the Read of the other end."""
        conn = startup.initiator(self._stream(sock), self.opt, self._log)
        conn.answer_reads, conn.extended = False, self.is_extended
        conn.regions[rping.SOURCE] = rdmap.Region(rping.SOURCE, rping.BASE, 2000)
        conn.regions[rping.SINK] = rdmap.Region(rping.SINK, rping.BASE, 3000)
        conn.regions[rping.OWN] = rdmap.Region(rping.OWN, rping.BASE, self.grant[2])
        conn.send(b"begin")
        conn.wait(lambda: conn.asked, self.opt.timeout)
        return conn

    def _send(self, conn):
        fpdus = conversation(conn, self.grant, conn.asked)
        if not self.is_valid:
            change(fpdus, self.rand)
        octets = b"".join(conn.tx.encode(bytes(f.ulpdu), **f.wrong) for f in fpdus)
        if not self.is_valid and self.rand.random() < 0.1:
            octets = octets[:self.rand.randrange(len(octets) + 1)]
        conn.stream.send(octets)

    def _finish(self, conn):
        if self.is_valid:
            conn.wait(lambda: not conn.reads and conn.sends, self.opt.timeout)
            self.went_well = set(conn.regions[rping.OWN].data) == {ord("w")}
        conn.stream.finish()
        while True:
            conn.receive()

    def run(self):
        sock = stream.connect(self.opt.address, self.opt.port, self.opt.timeout)
        try:
            conn = self._begin(sock)
            self._send(conn)
            self._finish(conn)
        except rdmap.Terminated as term:
            return "term:{layer}/{etype}/{code}".format(**term.args[0])
        except EOFError as end:
            return "cut" if str(end) else "close"
        except ENDS as err:
            return type(err).__name__
        finally:
            sock.close()
        return None


class Run:
    """All the sessions, and their results."""

    def __init__(self, opt):
        self.opt, self.next, self.lock = opt, opt.first, threading.Lock()
        self.end = time.monotonic() + opt.seconds if opt.seconds else None
        self.outcomes, self.broken = collections.Counter(), []

    def _number(self):
        with self.lock:
            number, self.next = self.next, self.next + 1
        over = time.monotonic() > self.end if self.end else \
            number >= self.opt.first + self.opt.sessions
        return None if over or len(self.broken) > 10 else number

    def work(self):
        for number in iter(self._number, None):
            session = Session(self.opt, number)
            try:
                outcome = session.run()
            except Exception as err:    # pylint: disable=broad-except
                outcome = f"{type(err).__name__}: {err}"
                self.broken.append(f"session {number}: {outcome}")
            if session.is_valid and not session.went_well:
                self.broken.append(f"session {number}, with nothing changed: {outcome}")
            with self.lock:
                self.outcomes[outcome] += 1


def main(argv):
    p = argparse.ArgumentParser(prog="peer mutate", description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("address")
    p.add_argument("--port", type=int, default=cli.PORT)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--first", type=int, default=0)
    p.add_argument("--sessions", type=int, default=200)
    p.add_argument("--seconds", type=float, default=0, help="instead of --sessions")
    p.add_argument("--threads", type=int, default=4)
    p.add_argument("--timeout", type=float, default=20, help="seconds of a session")
    run = Run(p.parse_args(argv))
    cli.in_threads(run.work, run.opt.threads)
    print(json.dumps({"event": "mutate", "seed": run.opt.seed, "sessions": run.next - run.opt.first,
                      "outcomes": dict(run.outcomes.most_common()), "broken": run.broken[:10]}))
    return 1 if run.broken else 0
