#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Verified I/O that goes on until it is told to stop (rc-ulp: io_start).

Each worker has a part of a file or disk. It writes blocks of random size and place, past all
caches, and reads others back. Each sector has its place and the number of the write that it is
of, and is that or the test fails. A write that failed may have been done or not, in each
sector. When the stop file appears, everything is read once more.
"""

import argparse
import mmap
import os
import random
import struct
import sys
import threading
import time

SECTOR = 4096
STAMP = struct.Struct("<QQQQ")


class Worker(threading.Thread):
    """One part of the device, with the possible contents of each sector."""

    def __init__(self, args, index, first, sectors):
        super().__init__(daemon=True)
        self.args, self.first, self.sectors = args, first, sectors
        self.rng = random.Random(args.seed * 1000 + index)
        self.can_be = [None] * sectors
        self.serial = index << 48
        self.may_fail = args.may_fail
        self.done = self.errors = 0
        self.longest = 0.0
        self.wrong = None
        self.buf = mmap.mmap(-1, args.block)
        self.fd = os.open(args.file, os.O_RDWR | (0 if args.buffered else os.O_DIRECT))

    def sector(self, at, serial):
        """The contents that write number `serial` puts there."""
        return STAMP.pack(self.args.seed, self.first + at, serial, ~serial & (1 << 64) - 1) * (
            SECTOR // STAMP.size)

    def place(self):
        """A random (first sector, number of sectors)."""
        count = self.rng.randint(1, min(self.args.block // SECTOR, self.sectors))
        return self.rng.randrange(self.sectors - count + 1), count

    def timed(self, what, at, count):
        """Do one operation; return whether it succeeded."""
        began = time.monotonic()
        view = memoryview(self.buf)[:count * SECTOR]
        try:
            moved = what(self.fd, [view], (self.first + at) * SECTOR)
            if moved != count * SECTOR:
                raise OSError(0, f"{moved} octets of {count * SECTOR}")
            self.done += 1
            return True
        except OSError as error:
            self.errors += 1
            if not self.may_fail:
                self.wrong = f"sector {self.first + at}: {what.__name__}: {error}"
            time.sleep(0.05)
            return False
        finally:
            view.release()
            took = time.monotonic() - began
            self.longest = max(self.longest, took)
            if not os.path.exists(self.args.stop):
                time.sleep(min(self.args.rest * took, 0.1))

    def write(self, at, count):
        """A new number in these sectors."""
        self.serial += 1
        for i in range(count):
            self.buf[i * SECTOR:(i + 1) * SECTOR] = self.sector(at + i, self.serial)
        if self.timed(os.pwritev, at, count):
            self.can_be[at:at + count] = [(self.serial,)] * count
            return
        for i in range(at, at + count):
            if self.can_be[i] is not None:
                self.can_be[i] += (self.serial,)

    def read(self, at, count):
        """Compare the sectors with what was written."""
        if not self.timed(os.preadv, at, count):
            return
        for i in range(count):
            if self.can_be[at + i] is None:
                continue
            got = self.buf[i * SECTOR:(i + 1) * SECTOR]
            serial = STAMP.unpack_from(got)[2]
            if serial not in self.can_be[at + i] or got != self.sector(at + i, serial):
                self.wrong = (f"sector {self.first + at + i}: {got[:32].hex()}, "
                              f"write {self.can_be[at + i]}")
                return
            self.can_be[at + i] = (serial,)

    def run(self):
        while not self.wrong and not os.path.exists(self.args.stop):
            (self.write if self.rng.random() < 0.5 else self.read)(*self.place())
        self.may_fail = False
        step = self.args.block // SECTOR
        for at in range(0, self.sectors, step):
            if not self.wrong:
                self.read(at, min(step, self.sectors - at))


def octets(text):
    """A number, or one with K or M."""
    unit = {"K": 1 << 10, "M": 1 << 20}.get(text[-1], 1)
    return int(text.rstrip("KM")) * unit


def options():
    """Of the command line."""
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--file", required=True)
    p.add_argument("--size", type=octets, required=True)
    p.add_argument("--block", type=octets, default=octets("128K"), help="largest operation")
    p.add_argument("--depth", type=int, default=4, help="operations at once")
    p.add_argument("--rest", type=float, default=0, help="pause after an operation, in times of its length")
    p.add_argument("--stop", required=True, help="ends when this appears")
    p.add_argument("--progress", required=True, help="has the number of operations that succeeded")
    p.add_argument("--seed", type=int, default=int(os.environ.get("KIW_SEED", "5040")))
    p.add_argument("--may-fail", action="store_true", help="operations may, until the end; octets may not")
    p.add_argument("--buffered", action="store_true", help="through the page cache")
    return p.parse_args()


def follow(args, workers):
    """Tells how far they are until they have ended."""
    while True:
        alive = any(w.is_alive() for w in workers)
        with open(args.progress + ".new", "w", encoding="ascii") as f:
            f.write(f"{sum(w.done for w in workers)}\n")
        os.rename(args.progress + ".new", args.progress)
        if not alive:
            return
        time.sleep(0.05)


def main():
    """0 if all is well."""
    args = options()
    share = args.size // SECTOR // args.depth
    workers = [Worker(args, i, i * share, share) for i in range(args.depth)]
    for w in workers:
        w.start()
    follow(args, workers)
    wrong = [w.wrong for w in workers if w.wrong]
    for line in wrong:
        print(line)
    print(f"{sum(w.done for w in workers)} operations, {sum(w.errors for w in workers)} failed, "
          f"longest {max(w.longest for w in workers):.2f} s, seed {args.seed}")
    return 1 if wrong else 0


sys.exit(main())
