# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Inputs on the wire: guide.py wire-TYPE DEVICE ADDRESS SECONDS, in host b.

The other end is mutated.py of the selftests, on host a. A session is that of scripts/peer/mutate.py
with other messages; the changes of segments are those of that file as well. Lines:

    open OPTIONS         options of the peer for the startup; the last such line counts
    octet AT MASK        bits of an octet of the Request to invert
    add KIND AT SIZE     a message more, before the one at AT
    omit AT              one message less
    CHANGE AT SEED       a change of the segment at AT; the details are drawn with SEED
    pause AT             wait for what the other end sends before the segment at AT
    cut THOUSANDTHS      send the first part of the octets only
    reset                RST at the end, not FIN
"""

import contextlib
import os
import random
import selectors
import subprocess

import guide
from peer import atomic, cli, mutate, rdmap, rping, startup, stream

OPENINGS = (
    "--rev 2", "--rev 1", "--rev 0", "--rev 2 --crc off", "--rev 1 --crc off", "--rev 2 --p2p",
    "--rev 2 --p2p --prefer send", "--rev 2 --p2p --prefer read", "--rev 2 --p2p --rtr send",
    "--rev 2 --p2p --announce", "--rev 2 --plain", "--rev 2 --ird 0 --ord 0",
    "--rev 2 --ird 16383 --ord 16383", "--rev 2 --markers rx", "--rev 1 --markers both",
    "--rev 2 --pdata 6b6977", "--rev 2 --fpdu 100", "--rev 2 --fpdu 9000",
    "--rev 2 --p2p --crc off --markers rx")
PIECES = ("whole", "1-90", "7-300", "1", "64", "500-1500")
# Those that end at once: others would only wait for a timeout.
STARTUPS = [name for name in startup.NAMES if not name.startswith("stall") and "slow" not in name
            and name not in ("extra", "dribble")]
PLAN = ("send", "write", "read", "response", "solicited", "empty-write", "empty-send")
KINDS = PLAN + ("invalidate", "solicited-invalidate", "terminate", "immediate", "atomic",
                "atomic-answer", "large-write", "large-send", "read-nothing", "read-beyond",
                "write-beyond", "write-before")
SIZES = (0, 1, 4, 17, 40, 900, 1444, 3000, 5000, 20000)
CHANGES = {function.__name__.strip("_").replace("_", "-"): function
           for function in mutate.CHANGES}
MESSAGES = 20
PATIENCE = 20 * int(os.environ.get("KIW_SLOW", "1"))    # seconds for the other end to begin or end


def _some(plan, at):
    return at % len(plan) if plan else None


class Session(mutate.Session):
    """The session of an input. It is never valid: there is nothing that must go well."""

    def __init__(self, lines, address, seconds):     # pylint: disable=super-init-not-called
        self.grant, self.is_valid, self.went_well = None, False, False
        self.is_extended = False
        self.plan, self.flips = [(kind, 40) for kind in PLAN], {}
        self.after = []         # lines that change segments
        self.cut, self.ends_with_reset = None, False
        words = OPENINGS[0]
        for line in lines:
            word, _, rest = line.partition(" ")
            if word == "open":
                words = rest
            else:
                self._line(word, rest.split())
        self.opt = cli.parser().parse_args(
            ["client", address, *mutate.READS, "--any-markers", "--size", "1000", "--timeout",
             str(seconds), *words.split()])

    def _log(self, event, **fields):
        # Without a grant there is nothing to talk about.
        if event == "received":
            if len(fields["pdata"]) != 2 * mutate.GRANT.size:
                raise startup.Stopped("no grant")
            super()._log(event, **fields)

    def _line(self, word, args):
        if word == "octet":
            self.flips[int(args[0])] = int(args[1]) % 256
        elif word == "add" and len(self.plan) < MESSAGES:
            self.plan.insert(int(args[1]) % (len(self.plan) + 1), (args[0], int(args[2])))
        elif word == "omit" and self.plan:
            del self.plan[int(args[0]) % len(self.plan)]
        elif word == "cut":
            self.cut = int(args[0])
        elif word == "reset":
            self.ends_with_reset = True
        else:
            self.after.append((word, args))

    def _message(self, conn, kind, size):
        """The segments of a message."""
        to, stag, room = self.grant
        data = b"w" * size
        if kind in ("write", "large-write", "empty-write"):
            data = {"write": data, "large-write": b"w" * room}.get(kind, b"")
            return conn.tagged(rdmap.WRITE, stag, to, data)
        if kind in ("write-beyond", "write-before"):    # by one octet
            to += room - min(size, room) if kind == "write-beyond" else -1
            return conn.tagged(rdmap.WRITE, stag, to, b"w" * (min(size, room) + 1))
        if kind in ("read", "read-nothing", "read-beyond"):
            count = {"read": size, "read-nothing": 0}.get(kind, room + size + 1)
            request = rdmap.ReadRequest(rping.OWN, rping.BASE, count, stag, to)
            conn.reads.append([request, 0])
            return conn.untagged(rdmap.READ_REQUEST, rdmap.encode_read(request))
        if kind == "response":
            asked = conn.asked
            octets = bytes(conn.regions[asked.src_stag].data[:asked.size])
            return conn.tagged(rdmap.READ_RESPONSE, asked.sink_stag, asked.sink_to, octets)
        if kind == "atomic":
            return conn.ask(atomic.Request(stag, to & ~7, code=size % 4))
        if kind == "atomic-answer":
            asked = conn.atomics[0] if conn.atomics else atomic.Request(stag, to, id=size)
            return conn.answer(asked, size)
        opcode = {"solicited": rdmap.SEND_SOLICITED, "invalidate": rdmap.SEND_INVALIDATE,
                  "solicited-invalidate": rdmap.SEND_SOLICITED_INVALIDATE,
                  "terminate": rdmap.TERMINATE,
                  "immediate": rdmap.IMMEDIATE}.get(kind, rdmap.SEND)
        if kind == "terminate":
            data = bytes((size % 3 << 4 | size % 5, size % 11, size * 32 % 256, 0)) + data
        elif kind == "immediate":
            data = data[:8]
        elif kind == "empty-send":
            data = b""
        named = stag if "invalidate" in kind else 0
        return conn.untagged(opcode, data, stag=named)

    def _fpdus(self, conn):
        fpdus = [mutate.Fpdu(seg.encode()) for kind, size in self.plan
                 for seg in self._message(conn, kind, size)]
        for word, args in self.after:
            at = _some(fpdus, int(args[0]))
            if at is not None and word in CHANGES:
                CHANGES[word](fpdus, at, random.Random(int(args[1])))
        return fpdus

    def _send(self, conn):
        fpdus = self._fpdus(conn)
        octets = [conn.tx.encode(bytes(f.ulpdu), **f.wrong) for f in fpdus]
        pauses = {_some(octets, int(args[0])) for word, args in self.after if word == "pause"}
        if self.cut is not None:
            whole = b"".join(octets)
            octets, pauses = [whole[:len(whole) * self.cut // 1000]], set()
        for at, fpdu in enumerate(octets):
            if at in pauses:
                self._take(conn)
            conn.stream.send(fpdu)

    @staticmethod
    def _take(conn):
        while conn.stream.waiting() or conn.stream.kept:
            conn.receive()

    def _finish(self, conn):
        if self.ends_with_reset:
            conn.stream.reset()
            raise startup.Stopped("reset")
        super()._finish(conn)

    def _stream(self, sock):
        return _Spoiled(self.flips, sock, stream.Segments(self.opt.segments), self.opt.timeout)


class _Spoiled(stream.Stream):
    """A stream that inverts bits of what it sends first."""

    def __init__(self, flips, *args):
        super().__init__(*args)
        self.flips, self.sent = flips, 0

    def send(self, data):
        data, first = bytearray(data), self.sent
        for at, mask in self.flips.items():
            if first <= at < first + len(data):
                data[at - first] ^= mask
        self.sent += len(data)
        super().send(bytes(data))


class Wire(guide.Target):
    """Sessions with changes."""

    def __init__(self, device, address, seconds):
        self.address, self.seconds, self.server = address, float(seconds), None
        self.words = ["nsenter", "--net=/run/netns/a", "--", "python3",
                      f"{os.environ['SELFTESTS']}/mutated.py", device, address, str(cli.PORT)]

    def line(self, rand):
        kind = rand.randrange(20)
        if kind < 3:
            fault = f" --fault {rand.choice(STARTUPS)}" if not rand.randrange(6) else ""
            return f"open {rand.choice(OPENINGS)} --segments {rand.choice(PIECES)}{fault}"
        if kind == 3:
            return f"octet {rand.randrange(24)} {1 << rand.randrange(8)}"
        if kind < 10:
            return f"add {rand.choice(KINDS)} {rand.randrange(MESSAGES)} {rand.choice(SIZES)}"
        if kind == 10:
            return f"omit {rand.randrange(MESSAGES)}"
        if kind == 11:
            return rand.choice((f"cut {rand.randrange(1001)}", "reset",
                                f"pause {rand.randrange(MESSAGES)}"))
        return f"{rand.choice(list(CHANGES))} {rand.randrange(40)} {rand.randrange(1 << 20)}"

    def change(self, line, rand):
        words = line.split()
        places = [i for i, word in enumerate(words) if word.isdigit() and words[0] != "open"]
        if not places or not rand.randrange(4):
            return self.line(rand)
        at = rand.choice(places)
        words[at] = str(rand.choice((int(words[at]) + 1, max(0, int(words[at]) - 1),
                                     rand.randrange(64), rand.randrange(1 << 20))))
        return " ".join(words)

    def _start(self):
        self.server = subprocess.Popen(  # pylint: disable=consider-using-with
            self.words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        with selectors.DefaultSelector() as selector:
            selector.register(self.server.stdout, selectors.EVENT_READ)
            if not selector.select(PATIENCE) or self.server.stdout.readline() != "listens\n":
                raise guide.Failed("the other end does not listen")

    def run(self, lines):
        if not self.server:
            self._start()
        session = Session(lines, self.address, self.seconds)
        try:
            session.run()
        except ConnectionRefusedError as err:
            self.close()
            raise guide.Failed("the other end does not answer") from err
        except cli.FAILURES as err:
            # Who has read another Request than was meant may send markers, for example.
            if not session.flips:
                raise guide.Failed(f"{type(err).__name__}: {err}") from err
        if self.server.poll() is not None:
            self.close()

    def close(self):
        """The other end tells whether memory has changed that the sessions had no right to."""
        server, self.server = self.server, None
        if not server:
            return
        server.terminate()
        try:
            said, _ = server.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired as err:
            server.kill()
            with contextlib.suppress(subprocess.TimeoutExpired):
                server.communicate(timeout=PATIENCE)
            raise guide.Failed("the other end does not end") from err
        if server.returncode:
            raise guide.Failed(f"the other end: {said.strip()}")


def make(_, arguments):
    return Wire(*arguments)
