# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""The processes that make the calls: each does what it is told through a socket."""

import contextlib
import ctypes
import os
import pickle
import signal
import socket
import time

import calls_abi
import guide

SLOW = int(os.environ.get("KIW_SLOW", "1"))
PATIENCE = 5 * SLOW        # seconds for an event; a call may take more
NEWNET = 0x40000000


class _Inside:
    """In a process: its file descriptors by name, and what it can be told."""

    def __init__(self, namespaces):
        self.fds, self.namespaces = {}, namespaces
        self.libc = ctypes.CDLL(None, use_errno=True)

    def open(self, name, path):
        self.fds[name] = os.open(path, os.O_RDWR | os.O_CLOEXEC)

    def close(self, name):
        os.close(self.fds.pop(name))

    def enter(self, side):
        with open(self.namespaces[side], "rb") as file:
            if self.libc.setns(file.fileno(), NEWNET):
                raise OSError(ctypes.get_errno(), "setns")

    def call(self, function, name, *args):
        return getattr(calls_abi, function)(self.fds[name], *args)

    def migrate(self, to, source, number):
        calls_abi.migrate_id(self.fds[to], number, self.fds[source])

    @staticmethod
    def pid():
        return os.getpid()

    @staticmethod
    def run(program):
        os.execv(program, [program])


def _serve(inside, sock):
    while True:
        octets, fds, _, _ = socket.recv_fds(sock, 65536, 1)
        if not octets:
            os._exit(0)     # pylint: disable=protected-access
        name, args = pickle.loads(octets)
        if name == "fork":
            if not os.fork():
                sock.close()
                sock = socket.socket(fileno=fds[0])
                continue
            os.close(fds[0])
        try:
            answer = (0, None if name == "fork" else getattr(inside, name)(*args))
        except OSError as err:
            answer = (err.errno, None)
        sock.send(pickle.dumps(answer))


class Process:
    """A process, seen from outside."""

    def __init__(self, sock):
        self.sock = sock
        sock.settimeout(6 * PATIENCE)
        self.pid = self.tell("pid")[1]

    @staticmethod
    def _pair():
        return socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)

    @classmethod
    def first(cls, namespaces):
        """A process without any file of uverbs or rdma_cm."""
        ours, theirs = cls._pair()
        if not os.fork():
            try:
                signal.signal(signal.SIGCHLD, signal.SIG_IGN)
                ours.close()
                _serve(_Inside(namespaces), theirs)
            finally:
                os._exit(1)     # pylint: disable=protected-access
        theirs.close()
        return cls(ours)

    def fork(self):
        """Its child, which has the same files."""
        ours, theirs = self._pair()
        socket.send_fds(self.sock, [pickle.dumps(("fork", ()))], [theirs.fileno()])
        theirs.close()
        self._answer("fork")
        return Process(ours)

    def tell(self, name, *args):
        """Return the error, or 0, and the result."""
        self.sock.send(pickle.dumps((name, args)))
        return self._answer(name)

    def _answer(self, name):
        try:
            octets = self.sock.recv(65536)
        except TimeoutError as err:
            raise guide.Failed(f"no end: {name}") from err
        if not octets:
            raise guide.Failed(f"it was killed: {name}")
        return pickle.loads(octets)

    def _is_there(self):
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self.pid, os.WNOHANG)
        return os.path.exists(f"/proc/{self.pid}")

    def end(self, how):
        """HOW: exit, kill or exec. The kernel has released its files when this returns."""
        if how == "kill":
            os.kill(self.pid, signal.SIGKILL)
        elif how == "exec":
            self.sock.send(pickle.dumps(("run", ("/bin/true",))))
        else:
            self.sock.shutdown(socket.SHUT_WR)
        until = time.monotonic() + 6 * PATIENCE
        while self._is_there():
            if time.monotonic() > until:
                raise guide.Failed(f"no end: {how}")
            time.sleep(0.002)
        self.sock.close()
