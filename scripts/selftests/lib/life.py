#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Processes that are killed, or lose their device, in every state of a connection.

    life.py CASE...     cases of life_cases.py; "long", "short": with the default or a short
                        deadline of connections in startup

The hosts are the network namespaces a and b of this guest. An actor is a process on one of
them that goes into some state, says so, and stays there. Prints "ok CASE", or what went
wrong and "not ok CASE".
"""

import contextlib
import ctypes
import errno
import os
import random
import select
import signal
import socket
import struct
import subprocess
import sys
import time
import traceback

from pyverbs import enums
from pyverbs.pyverbs_error import PyverbsError
from pyverbs.qp import QPAttr

import verbs
from verbs_base import PATIENCE, Failed

DEVICES = {"a": "kiwa", "b": "kiwb"}
A4, B4 = "10.77.0.1", "10.77.0.2"
NOBODY = "10.77.0.99"       # has an entry among the neighbours and is not there
PORT, RAW_PORT = 7711, 7712
STARTUP = 10                # seconds a startup may take
SEED = int(os.environ.get("KIW_SEED", "5040"))
CLONE_NEWNET = 0x40000000
GONE = (errno.EIO, errno.ENODEV)
_libc = ctypes.CDLL(None, use_errno=True)


def wait_until(what, condition, seconds=PATIENCE):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise Failed(f"not within {seconds} s: {what}")
        time.sleep(0.01)


def enter(host):
    fd = os.open(f"/run/netns/{host}", os.O_RDONLY)
    if _libc.setns(fd, CLONE_NEWNET):
        raise OSError(ctypes.get_errno(), "setns")
    os.close(fd)


class Actor:
    """A child process on HOST that runs PART(say, *args), and its words."""

    living = []
    started = 0

    def __init__(self, host, part, *args):
        self.out, into = os.pipe()
        self.heard = b""
        self.status = None
        sys.stdout.flush()
        Actor.started += 1
        self.pid = os.fork()
        # A group of its own, with the commands that it runs; both make it, so that it is there
        # for either.
        os.setpgid(self.pid, self.pid)
        if not self.pid:
            os.close(self.out)
            random.seed(f"{SEED} {Actor.started}")
            self._run(host, part, args, into)
        os.close(into)
        self.name = f"{part.__name__} on {host}"
        Actor.living.append(self)

    @staticmethod
    def _run(host, part, args, into):
        status = 1

        def say(word):
            os.write(into, f"{word}\n".encode())

        try:
            enter(host)
            part(say, *args)
            status = 0
        except BaseException:   # pylint: disable=broad-except
            say(traceback.format_exc())
        # No destructors: what a process leaves open is the kernel's business here.
        os._exit(status)

    def _read(self, seconds):
        poll = select.poll()
        poll.register(self.out, select.POLLIN)
        if poll.poll(seconds * 1000):
            more = os.read(self.out, 65536)
            self.heard += more
            return bool(more)
        return False

    def said(self, word, seconds=PATIENCE):
        """Wait until the child has printed WORD."""
        end = time.monotonic() + seconds
        while f"{word}\n".encode() not in self.heard:
            if not self._read(max(0, end - time.monotonic())):
                raise Failed(f"{self.name} did not say {word}: {self.heard.decode()}")
        return self

    def is_over(self):
        if self.status is not None:
            return True
        pid, status = os.waitpid(self.pid, os.WNOHANG)
        if not pid:
            return False
        self.status = os.waitstatus_to_exitcode(status)
        while self._read(0):
            pass
        os.close(self.out)
        Actor.living.remove(self)
        return True

    def ends(self, seconds=PATIENCE):
        """Wait until it ends by itself, with status 0."""
        wait_until(f"{self.name} ends", self.is_over, seconds)
        if self.status:
            raise Failed(f"{self.name}: status {self.status}: {self.heard.decode()}")

    def kill(self, seconds=PATIENCE):
        """kill -9; it and the commands that it ran are gone when this returns."""
        if self.status is None:
            os.killpg(self.pid, signal.SIGKILL)
            wait_until(f"{self.name} dies", self._is_gone, seconds)

    def _is_gone(self):
        with contextlib.suppress(ProcessLookupError):
            if self.is_over():
                os.killpg(self.pid, 0)
            return False
        return True


def kill_all():
    for actor in list(Actor.living):
        actor.kill()


def last_words():
    """Print what the remaining processes saw: it may explain why the case failed."""
    for actor in list(Actor.living):
        actor.kill()
        if actor.heard:
            print(f"{actor.name} said: {actor.heard.decode()}")


# What is left

def counters(device):
    path = f"/sys/class/infiniband/{device}/ports/1/hw_counters/"
    found = {}
    for name in os.listdir(path):
        with contextlib.suppress(ValueError), open(path + name, encoding="ascii") as file:
            found[name] = int(file.read())
    return found


def uneven(device):
    count = counters(device)
    return {name: (made, count[name.replace("created", "destroyed")])
            for name, made in count.items()
            if name.endswith("_created") and count[name.replace("created", "destroyed")] != made}


def objects(device):
    """The objects that the RDMA core knows, except its own."""
    words = run("rdma", "res", "show", device).split()[2:]
    return {kind: num for kind, num in zip(words[::2], words[1::2]) if num != "0"}


def sockets(host):
    return [line for line in run("ip", "netns", "exec", host, "ss", "-Htan").splitlines()
            if "TIME-WAIT" not in line]


def exists(device):
    return os.path.exists(f"/sys/class/infiniband/{device}")


def run(*command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=6 * PATIENCE, check=False)
    if done.returncode:
        raise Failed(f"{' '.join(command)}: {done.returncode}: {done.stdout}")
    return done.stdout


def nothing_left(*hosts):
    """No object, no endpoint, no socket, in bounded time: a Request that iw_cm dropped waits
    for the deadline of startups."""
    seconds = PATIENCE + STARTUP
    for host in hosts:
        device = DEVICES[host]
        if not exists(device):
            continue
        try:
            wait_until("", lambda d=device: not objects(d), seconds)
            wait_until("", lambda d=device: not uneven(d), seconds)
        except Failed:
            raise Failed(f"left on {device}: {objects(device)} {uneven(device)}") from None
    for host in hosts:
        try:
            wait_until("", lambda h=host: not sockets(h), seconds)
        except Failed:
            raise Failed(f"sockets on {host}: {sockets(host)}") from None


def link_add(host):
    run("ip", "netns", "exec", host, "rdma", "link", "add", DEVICES[host], "type",
        os.environ.get("KIW_LINK_TYPE", "kiwarp"), "netdev", "eth0")


def link_delete(host):
    run("rdma", "link", "delete", DEVICES[host])


# Parts of actors: plain TCP

def _request(rev):
    """A Request; one of revision 2 asks for peer-to-peer mode, with an RTR."""
    pdata = struct.pack(">HH", 0xc001, 0xc001) if rev == 2 else b""
    flags = 0x50 if rev == 2 else 0x40
    return b"MPA ID Req Frame" + struct.pack(">BBH", flags, rev, len(pdata)) + pdata


def _read_exactly(sock, size):
    data = b""
    while len(data) < size:
        more = sock.recv(size - len(data))
        if not more:
            raise Failed(f"the peer has closed after {data!r}")
        data += more
    return data


def callers(say, addr, data, count=1, answered=False):
    """COUNT streams that send DATA, and then nothing until they are closed."""
    socks = [socket.create_connection((addr, PORT)) for _ in range(count)]
    for sock in socks:
        sock.sendall(data)
    for sock in socks if answered else ():
        _read_exactly(sock, 20)
    say("ready")
    for sock in socks:
        with contextlib.suppress(ConnectionResetError):
            while sock.recv(4096):
                pass
        sock.close()


def mute_server(say, answers=False):
    """Accept a stream and stay silent, at once or after the Reply."""
    listener = socket.create_server(("", RAW_PORT))
    say("ready")
    sock = listener.accept()[0]
    if answers:
        head = _read_exactly(sock, 20)
        _read_exactly(sock, struct.unpack(">H", head[18:])[0])
        sock.sendall(b"MPA ID Rep Frame" + struct.pack(">BBHHH", 0x50, 2, 4, 0x8001, 0x8001))
    say("taken")
    signal.pause()


# Parts of actors: verbs

def client(end, addr, port=PORT, opts=None):
    num = end.connect(addr, opts or {}, port)
    end.event(num, "ESTABLISHED")
    return num


def accept(end, ready=lambda num: None, opts=None):
    """Take a request; READY() can post receives, which an accepted peer may use at once."""
    num, _ = end.request()
    conn = end.conns[num]
    end._resources(conn, opts or {})
    ready(num)
    conn.cmid.accept(*end._param(conn, opts or {}))
    return num


def server(end, addr, say):
    end.listen(addr, 16, PORT)
    say("listening")
    num = accept(end)
    end.child_event("ESTABLISHED")
    return num


def loaded_server(end):
    """The next connection to a listener, for load."""
    loads = []
    accept(end, lambda num: loads.append(Load(end, num)), BOTH_WAYS)
    end.child_event("ESTABLISHED")
    loads[0].greet(False)
    return loads[0]


def loaded_client(end, num):
    load = Load(end, num)
    load.greet(True)
    return load


DEPTH, CHUNK = 16, 65536
TRANSFER, MESSAGE = 1, 2
BOTH_WAYS = {"depth": 4 * DEPTH}


class Load:
    """A connection whose both ends write, read and send as much as they can."""

    def __init__(self, end, num):
        self.end, self.num = end, num
        self.hello, self.mine, self.room = end.mr(12), end.mr(CHUNK), end.mr(CHUNK)
        self.where = {}
        self._recv(self.hello, 12)
        for _ in range(3 * DEPTH):
            self._recv(self.room, CHUNK)

    def close(self):
        for mr in (self.hello, self.mine, self.room):
            self.end.close_mr(mr[0])

    def _post(self, op, mr, size, **where):
        self.end.post_send(self.num, {"op": op, "sge": [(mr[1], size, mr[2])],
                                      "id": TRANSFER if where else MESSAGE,
                                      "flags": ["SIGNALED"], **where})

    def _recv(self, mr, size):
        self.end.post_recv(self.num, 0, (mr[1], size, mr[2]))

    def _hear(self):
        life_over = []
        wait_until("greeting", lambda: life_over.extend(
            self.end.completions(self.num, "recv")) or life_over)
        return life_over

    def greet(self, first):
        """Tell the peer where to write; the connecting end must speak first. What goes wrong
        here shows in run()."""
        came = [] if first else self._hear()
        heard = self.end.peek(self.hello[1], 12)
        said = self.end.mr(12)
        self.end.poke(said[1], struct.pack(">QI", self.room[1], self.room[3]))
        self._post("SEND", said, 12)
        self.end.complete(self.num, "send")
        self.end.close_mr(said[0])
        if first:
            came = self._hear()
            heard = self.end.peek(self.hello[1], 12)
        for _ in came:
            self._recv(self.room, CHUNK)
        self.where = dict(zip(("raddr", "rkey"), struct.unpack(">QI", heard)))

    def _begin(self, num, sends):
        """NUM transfers, and answers to SENDS messages: so the peer has receives for all."""
        for i in range(num):
            self._post(("RDMA_WRITE", "RDMA_READ")[i % 2], self.mine, CHUNK, **self.where)
        for _ in range(sends):
            self._recv(self.room, CHUNK)
            self._post("SEND", self.mine, CHUNK)

    def run(self, say, rounds=None):
        """Run until something fails; return the failure."""
        todo, came, done = DEPTH, range(DEPTH // 2), 0
        while rounds is None or done < rounds:
            try:
                self._begin(todo, len(came))
            except PyverbsError as exc:
                return str(exc)
            sent = self.end.completions(self.num, "send")
            came = self.end.completions(self.num, "recv")
            bad = [c for c in sent + came if c[1] != "SUCCESS"]
            if bad:
                return bad[0][1]
            todo = sum(c[0] == TRANSFER for c in sent)
            if done < 2 * DEPTH <= done + todo:
                say("flows")
            done += todo
        return ""


def load_server(say):
    end = verbs.End(DEVICES["a"])
    end.listen(A4, 16, PORT)
    say("listening")
    say(f"over: {loaded_server(end).run(say)}")


def load_client(say):
    end = verbs.End(DEVICES["b"])
    load = loaded_client(end, client(end, A4, opts=BOTH_WAYS))
    say(f"over: {load.run(say)}")


def raw_command(end, number, body, answer_words=0):
    """Call a command of uverbs by its number, because pyverbs would clean up by itself."""
    cmd = struct.pack("=IHH", number, 2 + len(body) // 4, answer_words) + body
    os.write(end.ctx.obj.cmd_fd, cmd)


def attempt(call, *args):
    """The error of CALL as a number, 0 for none."""
    try:
        call(*args)
    except PyverbsError as exc:
        return getattr(exc, "error_code", None) or _errno_of(str(exc))
    except OSError as exc:
        return exc.errno
    return 0


def _errno_of(text):
    for number in errno.errorcode:
        if f"Errno: {number}," in text or os.strerror(number) in text:
            return number
    return -1


def to_state(qp, state):
    qp.modify(QPAttr(qp_state=getattr(enums, "IBV_QPS_" + state)), enums.IBV_QP_STATE)


def main():
    # life_cases imports this file by its name.
    sys.modules["life"] = sys.modules["__main__"]
    import life_cases   # pylint: disable=import-outside-toplevel
    wanted = life_cases.chosen(sys.argv[1:])
    bad = 0
    for name in wanted:
        try:
            life_cases.CASES[name]()
            kill_all()
            nothing_left("a", "b")
            print("ok", name, flush=True)
        except Exception:   # pylint: disable=broad-except
            bad += 1
            print(traceback.format_exc(), end="")
            last_words()
            print("not ok", name, flush=True)
        finally:
            kill_all()
            for host, device in DEVICES.items():
                if not exists(device):
                    link_add(host)
    print("all cases", len(wanted), flush=True)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
