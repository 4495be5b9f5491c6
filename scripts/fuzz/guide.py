#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""guide.py [OPTIONS] -- TARGET [ARGUMENTS...]: fuzzes the whole driver, in a guest.

TARGET is a module beside this one (wire, rings or calls) and the link type of the devices, such as
wire-kiwarp. An input is a list of text lines, which the target executes; `Target` below says what a
target has. First the inputs of the corpus run. Then inputs are changed at random and run, for
--seconds or --runs. With kiwarp_cover (ktest/cover.c) an input that runs code in a way that no
input did before is kept, and changed further. Without it, or with --unguided, each input is made
anew.

A run fails if the target says so or if the kernel log has a report (--bad, a regular expression).
If the input fails again, alone or after some of those before it, lines are left out as long as it
still does. It is printed in a form that --input takes: lines with ';' between them, inputs with
';;'. --out DIR gets the last inputs in the same form, in case the guest dies, those that failed,
and the corpus.
"""

import argparse
import collections
import contextlib
import importlib
import itertools
import json
import os
import random
import re
import struct
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
HITS = "/sys/kernel/debug/kiwarp_cover/hits"
RECENT = 20                     # inputs of the corpus that are changed more often than others
HISTORY = 20                    # inputs that are tried together if the last one does not fail alone
SHORTEN = 60 * int(os.environ.get("KIW_SLOW", "1"))     # seconds for making a failed input shorter
REPORTS = 15                    # lines of the kernel log


class Failed(Exception):
    """A run of an input has failed."""


class Target:
    """What a target has. Failed, raised by run() or close(), is a finding."""

    MAX_LINES = 12

    def begin(self, rand):  # pylint: disable=unused-argument
        """The first lines of an input that is made anew."""
        return []

    def line(self, rand):
        """A random line."""
        raise NotImplementedError

    def change(self, line, rand):
        """LINE with a change."""
        raise NotImplementedError

    def run(self, lines):
        """Executes an input. Each run begins with the same state as the first."""
        raise NotImplementedError

    def close(self):
        """Ends what was started, also after Failed, so that run() begins anew; raises Failed if
        anything is left or has changed."""


class Cover:
    """Blocks of the driver that have run since reset()."""

    def __init__(self, wanted=True):
        self.fd = os.open(HITS, os.O_RDWR) if wanted and os.path.exists(HITS) else None

    def reset(self):
        if self.fd is not None:
            os.write(self.fd, b"0")

    def features(self):
        """A set of (block, class of how often it has run)."""
        if self.fd is None:
            return set()
        octets = b"".join(iter(lambda: os.read(self.fd, 65536), b""))
        os.close(self.fd)
        self.fd = os.open(HITS, os.O_RDWR)
        return {(pc, (count > 1) + (count > 7) + (count > 63))
                for pc, count in struct.iter_unpack("=QQ", octets)}


class Log:
    """Reports in the kernel log."""

    def __init__(self, bad):
        self.bad, self.fd = bad and re.compile(bad), None
        if bad:
            self.fd = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK)
            os.lseek(self.fd, 0, os.SEEK_END)

    def _records(self):
        while True:
            try:
                yield os.read(self.fd, 8192).decode(errors="replace").partition(";")[2]
            except BrokenPipeError:     # some were overwritten
                continue
            except BlockingIOError:
                return

    def reports(self):
        """What follows the first report, if there is any."""
        said = list(self._records()) if self.bad else []
        first = next((i for i, text in enumerate(said) if self.bad.search(text)), None)
        return [] if first is None else said[first:first + REPORTS]


def read_corpus(path):
    """The inputs of a file: lines, with an empty line between two inputs."""
    if not os.path.exists(path):
        return []
    with open(path, encoding="ascii") as file:
        lines = [line.strip() for line in file if not line.startswith("#")]
    return [list(group) for full, group in itertools.groupby(lines, bool) if full]


def write_corpus(path, inputs):
    with open(path, "w", encoding="ascii") as file:
        file.write("# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause\n"
                   "# Written by scripts/fuzz/guided.sh --record\n\n")
        file.write("\n\n".join("\n".join(lines) for lines in inputs) + "\n")


def as_text(inputs):
    """INPUTS as --input takes them."""
    return ";; ".join("; ".join(lines) for lines in inputs)


def from_text(text):
    inputs = [[line.strip() for line in one.split(";") if line.strip()] for one in text.split(";;")]
    return [lines for lines in inputs if lines]


def shorten(some, fails):
    """The list SOME without what is not needed for FAILS(some): first halves, then single ones."""
    size = max(1, len(some) // 2)
    while True:
        at = 0
        while at < len(some):
            shorter = some[:at] + some[at + size:]
            if shorter and fails(shorter):
                some = shorter
            else:
                at += size
        if size == 1:
            return some
        size //= 2


def shorten_all(inputs, fails):
    """INPUTS without those, and without lines, that are not needed for FAILS(inputs)."""
    inputs = shorten(inputs, fails)
    for at in range(len(inputs)):
        before, after = inputs[:at], inputs[at + 1:]
        lines = shorten(inputs[at], lambda some, b=before, a=after: fails([*b, some, *a]))
        inputs = [*before, lines, *after]
    return inputs


def smallest(inputs, fails):
    """What fails of INPUTS, of which the last one did, without what is not needed; None: they do
    not fail again."""
    counts = [n for n in (1, 4) if n < len(inputs)] + [len(inputs)]
    found = next((inputs[-n:] for n in counts if fails(inputs[-n:])), None)
    return found and shorten_all(found, fails)


def cover_set(kept):
    """A small part of KEPT, (lines, blocks), that has all of the blocks. Blocks: bits."""
    left, chosen = 0, []
    for _, found in kept:
        left |= found
    while left:
        lines, found = max(kept, key=lambda one: ((one[1] & left).bit_count(), -len(one[0])))
        left &= ~found
        chosen.append(lines)
    return chosen


class Guide:
    """Runs inputs, and keeps those that are worth it."""

    def __init__(self, target, opt):
        self.target, self.opt, self.rand = target, opt, random.Random(opt.seed)
        self.cover, self.log = Cover(not opt.no_cover), Log(opt.bad)
        self.guided = self.cover.fd is not None and not opt.unguided
        self.seen, self.blocks, self.kept = set(), set(), []
        self.runs, self.began, self.curve = 0, time.monotonic(), {}
        self.history = collections.deque(maxlen=HISTORY)
        self.numbers = {}       # of blocks

    def _save(self, name, inputs):
        if self.opt.out:
            with open(f"{self.opt.out}/{self.opt.target}.{name}", "w", encoding="ascii") as file:
                file.write(f"{self.opt.target}: {as_text(inputs)}\n")

    def _check_log(self):
        reports = self.log.reports()
        if reports:
            raise Failed("kernel log: " + " | ".join(text.strip() for text in reports))

    def _bits(self, features):
        """Their blocks as bits of a number: hours of inputs have to fit into memory."""
        numbers = [self.numbers.setdefault(pc, len(self.numbers)) for pc, _ in features]
        octets = bytearray(len(self.numbers) // 8 + 1)
        for number in numbers:
            octets[number // 8] |= 1 << number % 8
        return int.from_bytes(octets, "little")

    def _execute(self, lines):
        try:
            self.target.run(lines)
        except Failed:
            raise
        except Exception as err:    # pylint: disable=broad-except
            raise Failed(f"{type(err).__name__}: {err}") from err
        self._check_log()

    def run(self, lines):
        """Runs an input; returns its features."""
        self.runs += 1
        self.history.append(lines)
        self._save("last", self.history)
        self.cover.reset()
        self._execute(lines)
        return self.cover.features()

    def learn(self, lines):
        """Runs an input, again if it seems to be new, and keeps it if it is."""
        found = self.run(lines)
        self.blocks |= {pc for pc, _ in found}
        new = found - self.seen
        if not new:
            return
        again = self.run(lines)
        new &= again
        self.seen |= found
        if new and self.guided:
            self.kept.append((lines, self._bits(found & again)))

    def _changed(self, lines):
        """LINES with one change."""
        rand, lines = self.rand, list(lines)
        at = rand.randrange(len(lines) + 1)
        kind = rand.randrange(10)
        if kind < 3 or not lines:
            lines.insert(at, self.target.line(rand))
        elif kind < 6:
            at %= len(lines)
            lines[at] = self.target.change(lines[at], rand)
        elif kind == 6:
            del lines[at % len(lines)]
        elif kind == 7:
            lines.insert(at, rand.choice(lines))
        elif kind == 8:
            other = rand.choice(self.kept)[0]
            lines = lines[:at] + other[rand.randrange(len(other) + 1):]
        else:
            lines.append(lines.pop(at % len(lines)))
        return lines[:self.target.MAX_LINES] or [self.target.line(rand)]

    def next(self):
        """An input to run."""
        rand = self.rand
        is_early = len(self.kept) < RECENT and rand.randrange(2)
        if not self.kept or not self.guided or is_early or not rand.randrange(20):
            lines = self.target.begin(rand)
            return lines + [self.target.line(rand)
                            for _ in range(rand.randint(1, self.target.MAX_LINES - len(lines)))]
        lines = rand.choice(self.kept[-RECENT:] if rand.randrange(2) else self.kept)[0]
        for _ in range(rand.choice((1, 1, 1, 2, 2, 4))):
            lines = self._changed(lines)
        return lines

    def _inputs(self):
        """All inputs."""
        if self.opt.input:
            yield from from_text(self.opt.input)
            return
        yield from read_corpus(self.opt.corpus) if not self.opt.unguided else ()
        self.began, first = time.monotonic(), self.runs
        while time.monotonic() < self.began + self.opt.seconds or \
                self.runs < first + self.opt.runs:
            yield self.next()
            seconds = int(time.monotonic() - self.began)
            self.curve[seconds - seconds % 60 + 60] = len(self.blocks)

    def _run_all(self, inputs):
        for lines in inputs:
            self._execute(lines)
        self.target.close()
        self._check_log()

    def _fails(self, failure, inputs):
        """Whether INPUTS fail as FAILURE did."""
        with contextlib.suppress(Failed):
            self.target.close()
        self.log.reports()
        try:
            self._run_all(inputs)
        except Failed as err:
            return str(err).split(":", 1)[0] == str(failure).split(":", 1)[0]
        return False

    def _again(self, inputs):
        self._save("failed", inputs)
        print(f"again: KIW_INPUT='{self.opt.target}: {as_text(inputs)}' {self.opt.again}",
              flush=True)

    def _report(self, failure):
        print(f"failed: {failure}", flush=True)
        past, end = list(self.history), time.monotonic() + SHORTEN
        self._again(past[-1:])

        def fails(inputs):
            return time.monotonic() < end and self._fails(failure, inputs)
        inputs = smallest(past, fails)
        if inputs:
            print("it fails again; shortened:")
            self._again(inputs)
        else:
            print(f"it does not fail again, nor after the {len(past) - 1} inputs before it:")
            self._again(past)
        with contextlib.suppress(Failed):
            self.target.close()

    def tell(self):
        print(json.dumps({"event": "fuzz", "target": self.opt.target, "seed": self.opt.seed,
                          "guided": self.guided, "seconds": round(time.monotonic() - self.began),
                          "runs": self.runs, "blocks": len(self.blocks),
                          "kept": len(self.kept), "blocks_after": self.curve}), flush=True)

    def work(self):
        """Everything; returns the exit status."""
        try:
            for lines in self._inputs():
                self.learn(lines)
            self.target.close()
            self._check_log()
        except Failed as failure:
            self._report(failure)
            self.tell()
            return 1
        self.tell()
        if self.opt.out and self.kept:
            write_corpus(f"{self.opt.out}/{self.opt.target}.corpus", cover_set(self.kept))
        return 0


def main(argv):
    p = argparse.ArgumentParser(description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("target")
    p.add_argument("arguments", nargs="*", help="of the target")
    p.add_argument("--seconds", type=float, default=0)
    p.add_argument("--runs", type=int, default=0, help="at least so many, beside the corpus")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--corpus", help="a file; default: that of the target")
    p.add_argument("--unguided", action="store_true")
    p.add_argument("--no-cover", action="store_true", help="do not even count")
    p.add_argument("--input", help="run only these: lines with ';' between them")
    p.add_argument("--bad", help="lines of the kernel log that are a failure")
    p.add_argument("--out", help="a directory")
    p.add_argument("--again", default="", help="the end of the command that is printed")
    opt = p.parse_args(argv)
    opt.corpus = opt.corpus or f"{HERE}/corpus/{opt.target}.txt"
    module = importlib.import_module(opt.target.partition("-")[0])
    return Guide(module.make(opt.target, opt.arguments), opt).work()


if __name__ == "__main__":
    sys.modules["guide"] = sys.modules["__main__"]
    sys.exit(main(sys.argv[1:]))
