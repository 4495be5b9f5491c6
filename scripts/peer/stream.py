# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""A TCP stream with control over its segment sizes and with timeouts for every wait."""

import errno
import fcntl
import random
import re
import socket
import struct
import termios
import time


class Segments:
    """Sizes of the pieces to send: "whole", "N" octets, or "LOW-HIGH[:SEED]" for random sizes."""

    def __init__(self, text="whole"):
        self.low = self.high = None
        if text != "whole":
            match = re.fullmatch(r"(\d+)(?:-(\d+))?(?::(\d+))?", text)
            if not match or int(match[1]) < 1:
                raise ValueError(f"segments {text!r}")
            self.low, self.high = int(match[1]), int(match[2] or match[1])
            self.random = random.Random(int(match[3] or 1))

    def next(self):
        return self.random.randint(self.low, self.high)


class Stream:
    """A connected socket. receive() waits no longer than until DEADLINE (monotonic seconds)."""

    def __init__(self, sock, segments=None, seconds=10.0):
        self.sock = sock
        self.segments = segments or Segments()
        self.deadline = time.monotonic() + seconds
        self.kept = b""
        if sock.family in (socket.AF_INET, socket.AF_INET6):
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def extend(self, seconds):
        self.deadline = time.monotonic() + seconds

    def _arm(self):
        left = self.deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError("the time is up")
        self.sock.settimeout(left)

    def send(self, data):
        if self.segments.low is None:
            self._arm()
            self.sock.sendall(data)
            return
        at = 0
        while at < len(data):
            size = self.segments.next()
            self._arm()
            self.sock.sendall(data[at:at + size])
            at += size

    def receive(self):
        """Receives some octets; returns none at the end of the stream."""
        if self.kept:
            data, self.kept = self.kept, b""
            return data
        self._arm()
        return self.sock.recv(65536)

    def waiting(self):
        """Number of octets that have arrived and were not received yet."""
        return struct.unpack("i", fcntl.ioctl(self.sock, termios.FIONREAD, bytes(4)))[0]

    def flush(self):
        """Waits until the other end's TCP has everything."""
        while struct.unpack("i", fcntl.ioctl(self.sock, termios.TIOCOUTQ, bytes(4)))[0]:
            self._arm()
            time.sleep(0.001)

    def exactly(self, size, begun=False):
        """Receives SIZE octets. Raises EOFError at the end of the stream: with a text if some octets
        have come, or if they go on with something that has BEGUN."""
        data = b""
        while len(data) < size:
            part = self.receive()
            if not part:
                raise EOFError(f"after {len(data)} of {size} octets" if data or begun else "")
            data += part
        self.kept = data[size:]
        return data[:size]

    def cork(self):
        """Lets TCP hold back less than a segment until finish()."""
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, 1)

    def finish(self):
        """Sends FIN, unless the other end has reset the stream."""
        try:
            self.sock.shutdown(socket.SHUT_WR)
        except OSError as err:
            if err.errno != errno.ENOTCONN:
                raise

    def reset(self):
        """Sends RST."""
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.sock.close()

    def close(self):
        self.sock.close()


def _options(sock, mss, room):
    if mss:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, mss)
    if room:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, room)


def connect(addr, port, seconds, mss=None, room=None):
    """Connects a socket to ADDR; tries again while nobody listens there. ROOM: receive buffer."""
    end = time.monotonic() + seconds
    while True:
        sock = socket.socket(socket.AF_INET6 if ":" in addr else socket.AF_INET)
        try:
            _options(sock, mss, room)
            sock.settimeout(max(0.1, end - time.monotonic()))
            sock.connect((addr, port))
            return sock
        except ConnectionRefusedError:
            sock.close()
            if time.monotonic() > end:
                raise
            time.sleep(0.02)


def listen(addr, port, mss=None, room=None):
    sock = socket.socket(socket.AF_INET6 if ":" in addr else socket.AF_INET)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    _options(sock, mss, room)
    sock.bind((addr, port))
    sock.listen(4)
    return sock
