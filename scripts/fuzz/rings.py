# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Inputs in the rings of a process: guide.py rings-TYPE hostile TYPE.

The program hostile of scripts/verbs executes an input on a new connection. Lines:

    ring OCTETS       writes to a ring; all choices, such as which entry and what, are drawn from
                      the octets, which are in hexadecimal
    bell END          rings the doorbell of end 0 or 1
    post END OCTETS   posts a receive and a Send or Read as a program does, then rings
    again             ends the connection, if it has not ended, and makes a new one
"""

import selectors
import subprocess

import guide

OCTETS = 40
MAX_OCTETS = 96
PATIENCE = 60       # seconds for an input


class Rings(guide.Target):
    """The program, in the background."""

    MAX_LINES = 24

    def __init__(self, program, kind):
        self.words, self.child = [program, kind, "inputs"], None

    def line(self, rand):
        kind = rand.randrange(10)
        if kind < 6:
            return f"ring {rand.randbytes(OCTETS).hex()}"
        if kind < 8:
            return f"bell {rand.randrange(2)}"
        if kind < 9:
            return f"post {rand.randrange(2)} {rand.randbytes(4).hex()}"
        return "again"

    def change(self, line, rand):
        word, *more = line.split()
        if word in ("bell", "again") or not rand.randrange(8):
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
                self.child.kill()
                return "no end\n"
        return self.child.stdout.readline()

    def _failed(self, said):
        rest, _ = self.child.communicate()
        self.child = None
        raise guide.Failed(f"hostile: {(said + rest).strip()}")

    def run(self, lines):
        if not self.child:
            self._start()
        self.child.stdin.write("\n".join(lines) + "\nend\n")
        self.child.stdin.flush()
        said = self._answer()
        if said != "done\n":
            self._failed(said)

    def close(self):
        if not self.child:
            return
        said, _ = self.child.communicate()
        if self.child.returncode:
            raise guide.Failed(f"hostile: {said.strip()}")
        self.child = None


def make(_, arguments):
    return Rings(*arguments)
