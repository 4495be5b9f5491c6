#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Operations on one file with verified results, for tests of network file systems.

  fileops.py random FILE [--ops N] [--seconds S] [--size OCTETS] [--seed N]
      random operations (written, read, mapped, past the page cache, cut, holes) whose
      outcome is known; everything is compared, at the end the whole file
  fileops.py hold FILE [START LENGTH]    a lock, until it is killed; prints "held"
  fileops.py try FILE [START LENGTH]     status 0: it could be locked, 1: somebody has it
"""

import argparse
import ctypes
import fcntl
import mmap
import os
import random
import signal
import sys
import time

LIBC = ctypes.CDLL(None, use_errno=True)
PUNCH_HOLE_KEEP_SIZE = 3


class Wrong(Exception):
    """The file differs from its copy in memory."""


class RandomFile:
    """A file, and a copy in memory of its expected contents."""

    def __init__(self, path, size, seed):
        self.path = path
        self.size = size
        self.rng = random.Random(seed)
        self.data = bytearray()
        self.counts = {}
        self.fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o644)
        self.direct = os.open(path, os.O_RDWR | os.O_DIRECT)
        self.buffer = mmap.mmap(-1, 1 << 20)

    def check(self, what, at, got):
        """Compare what was read at a place with the copy."""
        want = bytes(self.data[at:at + len(got)])
        if got == want and len(want) == len(got):
            return
        first = next((i for i, (a, b) in enumerate(zip(got, want)) if a != b), len(want))
        raise Wrong(f"{what} of {len(got)} at {at}, file of {len(self.data)}: "
                    f"differs from octet {at + first} on")

    def span(self, limit):
        """A random place and length within limit, mostly short."""
        length = min(1 << self.rng.randrange(4, 20), max(limit, 1))
        length = self.rng.randint(1, length)
        return self.rng.randint(0, max(limit - length, 0)), length

    def put(self, at, octets):
        """Put what was written to the file into the copy."""
        if at > len(self.data):
            self.data.extend(bytes(at - len(self.data)))
        self.data[at:at + len(octets)] = octets

    def op_write(self):
        at, length = self.span(self.size)
        octets = self.rng.randbytes(length)
        if os.pwrite(self.fd, octets, at) != length:
            raise Wrong("short write")
        self.put(at, octets)

    def op_read(self):
        at, length = self.span(len(self.data))
        got = os.pread(self.fd, length, at)
        if len(got) != min(length, len(self.data) - at):
            raise Wrong(f"read of {length} at {at} returned {len(got)}")
        self.check("read", at, got)

    def op_direct_write(self):
        at, length = self.span(self.size)
        if self.rng.random() < 0.5:
            at, length = at & ~4095, (length + 4095) & ~4095
        octets = self.rng.randbytes(length)
        self.buffer[:length] = octets
        if os.pwritev(self.direct, [memoryview(self.buffer)[:length]], at) != length:
            raise Wrong("short direct write")
        self.put(at, octets)

    def op_direct_read(self):
        at, length = self.span(len(self.data))
        got = os.preadv(self.direct, [memoryview(self.buffer)[:length]], at)
        if got != min(length, len(self.data) - at):
            raise Wrong(f"direct read of {length} at {at} returned {got}")
        self.check("direct read", at, self.buffer[:got])

    def mapping(self):
        return mmap.mmap(self.fd, len(self.data))

    def op_map_read(self):
        if self.data:
            at, length = self.span(len(self.data))
            with self.mapping() as view:
                self.check("mapped read", at, view[at:at + length])

    def op_map_write(self):
        if self.data:
            at, length = self.span(len(self.data))
            octets = self.rng.randbytes(min(length, len(self.data) - at))
            with self.mapping() as view:
                view[at:at + len(octets)] = octets
                view.flush()
            self.put(at, octets)

    def op_truncate(self):
        length = self.rng.randint(0, self.size)
        os.ftruncate(self.fd, length)
        del self.data[length:]
        self.data.extend(bytes(length - len(self.data)))

    def op_punch(self):
        """Punch a hole. Some versions of NFS cannot."""
        at, length = self.span(len(self.data))
        length = min(length, len(self.data) - at)
        if length and LIBC.fallocate(self.fd, PUNCH_HOLE_KEEP_SIZE, ctypes.c_long(at),
                                     ctypes.c_long(length)) == 0:
            self.put(at, bytes(length))

    def op_sync(self):
        os.fsync(self.fd)

    def op_reopen(self):
        os.close(self.fd)
        self.fd = os.open(self.path, os.O_RDWR)

    def step(self):
        """One operation."""
        ops = (self.op_write,) * 6 + (self.op_read,) * 6 + (self.op_direct_write,) * 3 + (
            self.op_direct_read,) * 3 + (self.op_map_write,) * 2 + (self.op_map_read,) * 2 + (
                self.op_truncate, self.op_punch, self.op_sync, self.op_reopen)
        chosen = self.rng.choice(ops)
        chosen()
        self.counts[chosen.__name__] = self.counts.get(chosen.__name__, 0) + 1

    def end(self):
        """Compare the whole file, past the page cache."""
        os.fsync(self.fd)
        at = 0
        while at < len(self.data):
            got = os.preadv(self.direct, [self.buffer], at)
            if not got:
                raise Wrong(f"ends at {at} instead of {len(self.data)}")
            self.check("last read", at, self.buffer[:got])
            at += got
        if os.fstat(self.fd).st_size != len(self.data):
            raise Wrong("its size is another one")
        os.close(self.direct)
        os.close(self.fd)


def do_random(args):
    """Run until both the number of operations and the time are reached."""
    until = time.monotonic() + args.seconds
    file = RandomFile(args.file, args.size, args.seed)
    done = 0
    while done < args.ops or time.monotonic() < until:
        try:
            file.step()
        except (Wrong, OSError) as err:
            print(f"seed {args.seed}, operation {done}: {err}")
            return 1
        done += 1
    file.end()
    print(f"seed {args.seed}: {done} operations, {file.counts}")
    return 0


def do_lock(args):
    """All of the file, if nothing else was said."""
    fd = os.open(args.file, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB, args.length, args.start)
    except (BlockingIOError, PermissionError):
        print("it is locked")
        return 1
    print("held", flush=True)
    if args.what == "hold":
        signal.pause()
    return 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=("random", "hold", "try"))
    parser.add_argument("file")
    parser.add_argument("start", type=int, nargs="?", default=0)
    parser.add_argument("length", type=int, nargs="?", default=0)
    parser.add_argument("--ops", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=0)
    parser.add_argument("--size", type=int, default=600000)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    sys.exit(do_random(args) if args.what == "random" else do_lock(args))


main()
