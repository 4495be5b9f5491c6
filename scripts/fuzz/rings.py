# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Inputs in the rings of a process: guide.py rings-TYPE hostile TYPE.

The program hostile of scripts/verbs executes an input on a new connection, with new windows and
regions. Lines:

    ring OCTETS       writes to a ring; all choices, such as which entry and what, are drawn from
                      the octets, which are in hexadecimal
    bell END          rings the doorbell of end 0 or 1
    post END OCTETS   posts a receive and an operation as a program does, may arm a queue, rings
    again             ends the connection, if it has not ended, and makes a new one

On kiwarp-ext only:

    size END OCTETS   resizes a completion queue and, if there is one, the shared receive queue
    window END N      replaces window N by a new one
    region END        replaces the memory region to which windows are bound most often
"""

import contextlib
import os
import selectors
import subprocess

import guide

OCTETS = 80
MAX_OCTETS = 128
PATIENCE = 20 * int(os.environ.get("KIW_SLOW", "1"))    # seconds for an input
WINDOWS = 8


class Rings(guide.Target):
    """The program, in the background."""

    MAX_LINES = 24

    def __init__(self, program, kind):
        self.words, self.child = [program, kind, "inputs"], None
        self.is_ext = kind == "kiwarp-ext"

    @staticmethod
    def _more(rand):
        kind = rand.randrange(3)
        if kind == 0:
            return f"size {rand.randrange(2)} {rand.randbytes(4).hex()}"
        if kind == 1:
            return f"window {rand.randrange(2)} {rand.randrange(WINDOWS)}"
        return f"region {rand.randrange(2)}"

    def line(self, rand):
        kind = rand.randrange(12 if self.is_ext else 10)
        if kind > 9:
            return self._more(rand)
        if kind < 6:
            return f"ring {rand.randbytes(OCTETS).hex()}"
        if kind < 8:
            return f"bell {rand.randrange(2)}"
        if kind < 9:
            return f"post {rand.randrange(2)} {rand.randbytes(4).hex()}"
        return "again"

    def change(self, line, rand):
        word, *more = line.split()
        if word in ("bell", "again", "window", "region") or not rand.randrange(8):
            return self.line(rand)
        octets = bytearray.fromhex(more[-1])
        at = rand.randrange(len(octets))
        kind = rand.randrange(5)
        if kind == 0:
            octets[at] ^= 1 << rand.randrange(8)
        elif kind == 1:
            octets[at] = rand.randrange(256)
        elif kind == 2:
            octets[at] = (octets[at] + rand.choice((-1, 1))) % 256
        elif kind == 3 and len(octets) < MAX_OCTETS:
            octets[at:at] = rand.randbytes(1 + rand.randrange(4))
        elif len(octets) > 1:
            del octets[at]
        return " ".join((word, *more[:-1], octets.hex()))

    def _start(self):
        # It ends when this pipe does
        self.child = subprocess.Popen(  # pylint: disable=consider-using-with
            self.words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True)

    def _answer(self):
        with selectors.DefaultSelector() as selector:
            selector.register(self.child.stdout, selectors.EVENT_READ)
            if not selector.select(PATIENCE):
                raise guide.Failed("no end of an input")
        return self.child.stdout.readline()

    def run(self, lines):
        if not self.child:
            self._start()
        with contextlib.suppress(BrokenPipeError):      # it has failed, and says why
            self.child.stdin.write("\n".join(lines) + "\nend\n")
            self.child.stdin.flush()
        said = self._answer()
        if said != "done\n":
            self.close(said)

    def close(self, said=""):
        child, self.child = self.child, None
        if not child:
            return
        try:
            more, _ = child.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired as err:
            child.kill()
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.communicate(timeout=PATIENCE)
            raise guide.Failed("hostile does not end") from err
        if child.returncode or said:
            raise guide.Failed(f"hostile: {(said + more).strip()}, status {child.returncode}")


def make(_, arguments):
    return Rings(*arguments)
