#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""expected.py LIST [SIW] KIWARP [--quick]

Compares the results that suite.py wrote for two devices with each other and with LIST, or those for
one device with LIST. Prints all deviations, and fails if there are any:

- a test that passes on siw but not on kiwarp;
- a test that fails or ends with an error on kiwarp but not on siw;
- a test whose result on kiwarp is not that of LIST; a test that is not in LIST must pass;
- a line of LIST that matches no test;
- a test that ran on one device only.

A line of LIST is "TEST OUTCOME REASON". TEST may contain *; the first line that matches counts.
OUTCOME is skip, error or fail. A quick run leaves out tests with "skip,slow" or "pass,slow".
"""

import collections
import fnmatch
import sys

OUTCOMES = ("pass", "skip", "fail", "error")


class List:
    """The lines of a list, and which of them have matched a test."""

    def __init__(self):
        self.lines = {}
        self.used = set()

    def add(self, line):
        pattern, outcome, reason = line.split(None, 2)
        outcome, _, slow = outcome.partition(",")
        if outcome not in OUTCOMES or slow not in ("", "slow") or not reason:
            raise ValueError(f"not a line of a list: {line}")
        self.lines[pattern] = (outcome, slow)

    def find(self, name):
        for pattern, what in self.lines.items():
            if fnmatch.fnmatchcase(name, pattern):
                self.used.add(pattern)
                return what
        return ("pass", "")

    def slow(self, name):
        return self.find(name)[1] == "slow"

    def unused(self, quick):
        return [p for p, (_, slow) in self.lines.items()
                if p not in self.used and not (quick and slow)]


def read(path):
    """The list in a file."""
    found = List()
    with open(path, encoding="utf-8") as file:
        for line in file:
            if line.strip() and not line.startswith("#"):
                found.add(line)
    return found


def results(path):
    """Reads the results of suite.py: {name: outcome}, {name: reason}."""
    found = {}
    with open(path, encoding="utf-8") as file:
        for line in file:
            name, outcome, why = line.rstrip("\n").split(" ", 2)
            found[name] = (outcome, why)
    return found


def from_siw(siw, kiwarp):
    """A line for each deviation from what happens on siw."""
    for name in sorted(siw.keys() ^ kiwarp.keys()):
        yield f"{name}: ran on {'siw' if name in siw else 'kiwarp'} only"
    for name in sorted(siw.keys() & kiwarp.keys()):
        (there, _), (here, why) = siw[name], kiwarp[name]
        if there == "pass" != here:
            yield f"{name}: passes on siw, not on kiwarp: {here} {why}"
        elif here in ("fail", "error") and there not in ("fail", "error"):
            yield f"{name}: {here} on kiwarp, {there} on siw: {why}"


def from_list(listed, kiwarp):
    """A line for each deviation from the list."""
    for name, (here, why) in sorted(kiwarp.items()):
        wanted = listed.find(name)[0]
        if here != wanted:
            yield f"{name}: {here}, the list says {wanted}: {why}"


def summary(name, found):
    count = collections.Counter(outcome for outcome, _ in found.values())
    print(f"{name}:", ", ".join(f"{count[o]} {o}" for o in OUTCOMES), f"of {len(found)}")


def main():
    quick = "--quick" in sys.argv
    listed, *ran = [arg for arg in sys.argv[1:] if arg != "--quick"]
    listed, ran = read(listed), [results(path) for path in ran]
    kiwarp, found = ran[-1], []
    if len(ran) > 1:
        summary("siw", ran[0])
        found += from_siw(*ran)
    summary("kiwarp", kiwarp)
    found += from_list(listed, kiwarp)
    found += [f"no test is {pattern}" for pattern in listed.unused(quick)]
    print(*found, sep="\n")
    return 1 if found or not kiwarp else 0


if __name__ == "__main__":
    sys.exit(main())
