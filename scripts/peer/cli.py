# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""The command line: runs one connection or a table of them; prints JSON lines.

    python3 -m peer client ADDRESS [OPTIONS]    connects and acts as rping's client
    python3 -m peer server ADDRESS [OPTIONS]    listens and acts as rping's server
    python3 -m peer cases < TABLE               "NAME | ROLE ADDRESS OPTIONS" in each line
    python3 -m peer hostile ADDRESS             a large number of faults; see hostile.py
    python3 -m peer mutate ADDRESS              modified valid sessions; see mutate.py
    python3 -m peer ip ADDRESS...               the other end of kiwarp_ip; see ip.py
    python3 -m peer faults                      lists the names for --fault

The expected result is set by --expect; alternatives are separated by commas:
    ok          the conversation completes, and its data is correct
    term:L/T/CC a Terminate with this layer, error type and code and the headers that
                belong to it, and then FIN
    close       FIN and nothing before it    reset   RST and nothing before it
    ended       either of these              reject  a Reply with R, and then the end
    timeout     nothing until the timeout
"""

import argparse
import contextlib
import json
import os
import re
import select
import shlex
import socket
import subprocess
import sys
import threading
import time

from peer import ddp, faults, mpa, rdmap, rping, startup, stream

PORT = 7174
SLICE = 0.1                     # seconds
START_SECONDS = 60              # at least, until the other side's command connects or listens
LOAD_ROOM = 8192                # octets TCP may take of what the other end is in the middle of
FAILURES = (mpa.MpaError, ddp.DdpError, rdmap.RdmapError, rping.DataError, TimeoutError)


def _number(text):
    return int(text, 0)


def _kinds(text):
    kinds = tuple(k for k in text.split(",") if k)
    for kind in kinds:
        if kind not in mpa.RTR_BITS:
            raise argparse.ArgumentTypeError(f"{kind!r} is no RTR")
    return kinds


def _on_off(text):
    return {"on": True, "off": False}[text]


def parser():
    p = argparse.ArgumentParser(prog="peer", description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("role", choices=("client", "server"))
    p.add_argument("address")
    p.add_argument("--port", type=_number, default=PORT)
    p.add_argument("--count", type=_number, default=3, help="pings")
    p.add_argument("--size", type=_number, default=100, help="octets of a ping")
    p.add_argument("--rev", type=_number, default=2, choices=(0, 1, 2))
    p.add_argument("--markers", choices=("none", "tx", "rx", "both"), default="none",
                   help="rx: ask for them; tx: be asked for them")
    p.add_argument("--any-markers", dest="strict_markers", action="store_false",
                   help="whether the other end asks for markers does not matter")
    p.add_argument("--crc", type=_on_off, default=True, metavar="on|off", help="the C bit")
    p.add_argument("--plain", dest="enhanced", action="store_false", help="no S")
    p.add_argument("--p2p", action="store_true", help="A, in a Request")
    p.add_argument("--rtr", type=_kinds, default=tuple(mpa.RTR_BITS), help="kinds offered")
    p.add_argument("--prefer", type=_kinds, default=(), help="kinds to send, best first")
    p.add_argument("--ird", type=_number, default=1)
    p.add_argument("--ord", type=_number, default=1)
    p.add_argument("--pdata", type=bytes.fromhex, default=b"", help="private data, hex")
    p.add_argument("--reject", action="store_true", help="reply with R")
    p.add_argument("--fpdu", type=_number, default=1444, help="largest ULPDU to send")
    p.add_argument("--announce", action="store_true",
                   help="say that large FPDUs are welcome: by an RTR by write, or as a responder")
    p.add_argument("--load", nargs="?", const="pings", choices=("pings", "own"),
                   help="the fault comes while the other end is in the middle of its first RDMA "
                   "Write, or of answering an RDMA Read; own: of what it sends of itself")
    p.add_argument("--cut", type=_number, help="octets that may come after a fault, beside those "
                   "that are here and those that the file of --hold says the other end's TCP has")
    p.add_argument("--mss", type=_number, help="of TCP, for both directions")
    p.add_argument("--segments", default="whole", help="whole, N, or LOW-HIGH[:SEED]")
    p.add_argument("--fault", choices=sorted((*startup.NAMES, *faults.NAMES)), metavar="NAME")
    p.add_argument("--expect", default="ok")
    p.add_argument("--only-rev-1", action="store_true",
                   help="close when a Request of another revision comes, and listen again")
    p.add_argument("--mistake", action="store_true", help="with --only-rev-1: first accept such a "
                   "Request with revision 0, which takes the depths for private data")
    p.add_argument("--want-rev", type=_number, help="of the Request that comes")
    p.add_argument("--want-crc", type=_on_off)
    p.add_argument("--want-p2p", type=_on_off)
    p.add_argument("--want-rtr", help="kind of the RTR that comes")
    p.add_argument("--want-announced", type=_on_off, help="by the first message that comes")
    p.add_argument("--want-largest", help="LOW-HIGH: of the largest ULPDU that comes")
    p.add_argument("--timeout", type=float, default=10.0, help="seconds for everything")
    p.add_argument("--hold", metavar="FILE", help="read nothing after a fault until it exists")
    p.add_argument("--fill", action="store_true",
                   help="before the fault, make the other end fill its TCP, by a Read")
    p.add_argument("--finish", action="store_true",
                   help="close this half of the stream behind the fault, in the same TCP segment")
    p.add_argument("--within", type=float, help="seconds from the fault to its outcome")
    p.add_argument("--run", help="a command to run on the other side; for its end see --status")
    p.add_argument("--status", choices=("ok", "fail", "ends", "any"), default=None,
                   help="of --run: ok with --expect ok, else any, and it need not even end")
    return p


class Case:
    """One connection, and what was observed on it."""

    def __init__(self, opt, emit=print, sock=None):
        """SOCK: a connected socket to use, or None: connect or listen."""
        self.opt, self.emit, self.sock = opt, emit, sock
        self.outcome = None         # in the terms of --expect
        self.failure = None         # one of FAILURES
        self.term = None
        self.end = None             # of the stream: close, reset or timeout
        self.moved = 0              # octets of messages since a fault
        self.octets = 0             # of the stream, since a fault
        self.spent = 0.0            # seconds, waiting for the other end since a fault
        self.queued = 0             # of them, those that TCP had when the fault was found
        self.whole = 0              # Sends and Writes that ended since a fault
        self.stray = b""            # what came without a connection
        self.conn = self.stream = self.child = None
        self.listener = None
        opt.blame = []

    def log(self, event, **fields):
        self.emit(json.dumps({"event": event, **fields}))

    # Before and after

    def _spawn(self):
        if self.opt.run:
            self.child = subprocess.Popen(shlex.split(self.opt.run), stdin=subprocess.DEVNULL,
                                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def _patience(self):
        """Seconds until there is a connection"""
        return max(self.opt.timeout, START_SECONDS if self.opt.run else 0)

    def _accept(self):
        """Accepts a connection. Closes those that are not for this case, as in RFC 6581 10."""
        self.listener.settimeout(self._patience())
        while True:
            sock, _ = self.listener.accept()
            if not self.opt.only_rev_1:
                return sock
            sock.settimeout(self.opt.timeout)
            head = sock.recv(mpa.HEAD.size, socket.MSG_PEEK | socket.MSG_WAITALL)
            if len(head) < mpa.HEAD.size or mpa.HEAD.unpack(head)[2] == 1:
                return sock
            self.log("closed", revision=mpa.HEAD.unpack(head)[2])
            sock.recv(65536)
            if self.opt.mistake:
                self._mistake(sock)
            sock.close()

    def _mistake(self, sock):
        """Accepts a Request as if its depths were private data, and expects that the other end
        gives up this stream."""
        sock.sendall(mpa.Frame(mpa.KEY_REPLY, rev=0, markers=True, crc=True).encode())
        with contextlib.suppress(ConnectionError):
            if sock.recv(1):
                raise mpa.MpaError("the other end goes on after a Reply of revision 0")

    def _open(self):
        opt, sock = self.opt, self.sock
        if sock:
            pass
        elif opt.role == "client":
            self._spawn()
            sock = stream.connect(opt.address, opt.port, self._patience(), opt.mss,
                                  LOAD_ROOM if opt.load else None)
        else:
            self.listener = stream.listen(opt.address, opt.port, opt.mss,
                                          LOAD_ROOM if opt.load else None)
            self._spawn()
            sock = self._accept()
        self.stream = stream.Stream(sock, stream.Segments(opt.segments), opt.timeout)

    def _kill(self):
        """Ends the child. If it is timeout(1), that ends its own child. Returns the output."""
        self.child.terminate()
        try:
            return self.child.communicate(timeout=5)[0]
        except subprocess.TimeoutExpired:
            self.child.kill()
            return self.child.communicate()[0]

    def _reap(self):
        """Checks the child's exit status; if none is expected, ends the child."""
        if not self.child:
            return None
        wanted = self.opt.status or ("ok" if self.opt.expect == "ok" else "any")
        try:
            output, _ = self.child.communicate(timeout=0.05 if wanted == "any" else
                                               self.opt.timeout)
            status = self.child.returncode
        except subprocess.TimeoutExpired:
            output, status = self._kill(), None
        if wanted == "ok" and status == 255 and self._closed_its_channel(output):
            status = 0
        self.log("run", status=status, output=output.decode("utf-8", "replace")[-2000:])
        if wanted == "ok" and status != 0 or wanted == "fail" and status == 0:
            return f"status {status} of {self.opt.run}"
        if wanted != "any" and status is None:
            return f"no end of {self.opt.run}"
        return self._miscounted(output)

    @staticmethod
    def _closed_its_channel(output):
        """Is this an rping that has succeeded, although its status is 255? At the end it closes its
        event channel. If another of its threads reads the channel after that, the thread ends the
        process with 255."""
        return b"rdma_get_cm_event: Bad file descriptor" in output and \
            not re.search(rb"mismatch|fail|error", output)

    def _miscounted(self, output):
        """Compares the number of completed Sends and Writes, if the child prints it."""
        said = re.search(rb"completed (\d+)", output)
        if said and int(said[1]) != self.conn.whole + self.whole:
            return f"{int(said[1])} completed, {self.conn.whole + self.whole} have come"
        return None

    # The connection

    def _talk(self):
        opt = self.opt
        if opt.role == "client":
            self.conn = startup.initiator(self.stream, opt, self.log, rping.early(opt))
            verified = rping.client(self.conn, opt)
            self.stream.finish()
            self._drain()
        else:
            self.conn = startup.responder(self.stream, opt, self.log)
            verified = rping.server(self.conn, opt)
            self.stream.finish()
        self.log("verified", bytes=verified, fpdus=self.conn.rx.count,
                 largest=self.conn.largest, rtr=self.conn.rtr,
                 announced=self.conn.announced)
        if verified != opt.count * opt.size:
            raise rping.DataError(f"{verified} octets instead of {opt.count * opt.size}")

    def _drain(self):
        """Reads until the other end closes its half of the stream in order."""
        try:
            while True:
                self.conn.receive()
        except EOFError as end:
            if str(end):
                raise

    def _wait(self):
        """Waits until there is something to receive, and adds the time to SPENT, in slices: if one takes
        longer, this machine has stood still."""
        waiting = not self.stream.kept
        while waiting and time.monotonic() < self.stream.deadline:
            began = time.monotonic()
            waiting = not select.select([self.stream.sock], [], [], SLICE)[0]
            self.spent += min(time.monotonic() - began, SLICE)

    def _observe(self):
        """Returns how the other end reacts to a fault: "close", "reset" or "timeout"."""
        reader = self.conn.rx if self.conn else None
        while True:
            try:
                self._wait()
                data = self.stream.receive()
            except OSError as err:
                return self._lost(err)
            if not data:
                if reader and reader.buf:
                    raise mpa.MpaError("the stream ends inside of an FPDU")
                return "close"
            self.octets += len(data)
            if reader:
                reader.feed(data)
                self._look(reader)
            else:
                self.stray += data

    def _look(self, reader):
        """Takes a Terminate from the reader, and ignores other messages."""
        for ulpdu in iter(reader.next, None):
            seg = ddp.decode(ulpdu)
            if self.term:
                raise rdmap.RdmapError(f"opcode {seg.opcode} after a Terminate")
            if seg.opcode != rdmap.TERMINATE:
                self.moved += len(seg.payload)
                self.whole += rdmap.ends_own(seg)
            else:
                self.term = rdmap.decode_terminate(seg.payload, ulpdu)
                self.log("terminate", **self.term)

    @staticmethod
    def _lost(err):
        return "timeout" if isinstance(err, TimeoutError) else "reset"

    def _hold(self):
        end = time.monotonic() + self.opt.timeout
        if not self.opt.hold:
            return
        while not os.path.exists(self.opt.hold):
            if time.monotonic() > end:
                raise TimeoutError(f"no file {self.opt.hold}")
            time.sleep(0.02)
        with open(self.opt.hold, encoding="ascii") as file:
            self.queued = int(file.read() or 0)
        self.queued += self.stream.waiting()

    def _after(self, answer=None):
        """Waits for the reaction to a fault. ANSWER: see startup.Stopped."""
        if self.stream.sock.fileno() < 0:
            return "reset"
        self._hold()
        end = self._observe()
        self.log(end, seconds=round(self.spent, 3), octets=self.octets, queued=self.queued)
        startup.check_stray(self.stray, answer)
        if self.opt.within is not None and self.spent > self.opt.within:
            raise TimeoutError(f"it took {self.spent:.1f} seconds")
        return end

    def _attempt(self):
        """Runs the connection; returns the result in the terms of --expect."""
        try:
            self._talk()
            return "ok"
        except startup.Rejected as rejected:
            self.log("rejected", pdata=rejected.args[0].pdata.hex())
            if self._after() == "timeout":
                raise TimeoutError("no end after the rejection") from None
            return "reject"
        except startup.Stopped as stopped:
            self.conn = stopped.conn
            self.end = self._after(stopped.answer)
        except rdmap.Terminated as terminated:
            self.term = terminated.args[0]
            self.log("terminate", **self.term)
            self.end = self._after()
        except EOFError as eof:
            if str(eof):
                raise mpa.MpaError(f"the stream ends {eof}") from None
            self.log("close")
            self.end = "close"
        except (ConnectionError, BrokenPipeError) as err:
            self.log("reset", error=str(err))
            self.end = "reset"
        if self.term:
            return "term:{layer}/{etype}/{code}".format(**self.term)
        return self.end

    def _matches(self, seen):
        wanted = self.opt.expect.lower().split(",")
        return seen in wanted or seen in ("close", "reset") and "ended" in wanted

    def _complaint(self, seen):
        opt = self.opt
        if not self._matches(seen):
            return f"{seen} instead of {opt.expect}"
        if self.term and self.end != "close":
            return f"after the Terminate: {self.end} instead of close"
        if self.term and (opt.blame or self.term["layer"] == 2):
            code = [int(n, 16) for n in seen[5:].split("/")]
            wrong = faults.contradiction(self.conn, self.term, code, opt.blame,
                                         0 if opt.load else self.moved)
            if wrong:
                return f"Terminate: {wrong}"
        if opt.load and not self.moved:
            return "nothing was in progress"
        if opt.cut is not None and self.octets > self.queued + opt.cut:
            return f"{self.octets} octets, of which TCP had {self.queued} at most"
        if opt.want_rtr and self.conn.rtr != opt.want_rtr:
            return f"RTR {self.conn.rtr} instead of {opt.want_rtr}"
        if opt.want_announced is not None and self.conn.announced != opt.want_announced:
            return f"announced: {self.conn.announced} instead of {opt.want_announced}"
        if opt.want_largest:
            low, high = map(int, opt.want_largest.split("-"))
            if not low <= self.conn.largest <= high:
                return f"ULPDUs of {self.conn.largest} instead of {opt.want_largest}"
        return None

    def run(self):
        """Runs the case; returns whether everything was as expected."""
        seen = None
        try:
            self._open()
            self.outcome = seen = self._attempt()
            why = self._complaint(seen)
        except FAILURES as err:
            self.failure = err
            timed_out = isinstance(err, TimeoutError) and self.opt.expect == "timeout"
            why = None if timed_out else f"{type(err).__name__}: {err}"
        except OSError as err:
            why = f"{type(err).__name__}: {err}"
        finally:
            for sock in (self.stream, self.listener):
                if sock:
                    sock.close()
        why = self._reap() or why
        self.log("result", met=not why, seen=seen, expect=self.opt.expect, why=why)
        return not why


def run_cases(lines, emit):
    """Runs each line as a test; prints "ok NAME", or what happened and "not ok NAME"."""
    failed = 0
    for line in lines:
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        name, _, words = line.partition("|")
        said = []
        good = Case(parser().parse_args(shlex.split(words)), said.append).run()
        if not good:
            failed += 1
            emit(words.strip())
            for text in said:
                emit(text)
        emit(f"{'ok' if good else 'not ok'} {name.strip()}")
    return failed


def in_threads(work, count):
    """Runs WORK() in COUNT threads at once, and waits for all of them."""
    threads = [threading.Thread(target=work) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def main(argv):
    if argv[:1] == ["cases"]:
        return 1 if run_cases(sys.stdin, lambda text: print(text, flush=True)) else 0
    if argv[:1] == ["faults"]:
        print("\n".join((*startup.NAMES, *faults.NAMES)))
        return 0
    return 0 if Case(parser().parse_args(argv), lambda t: print(t, flush=True)).run() else 1
