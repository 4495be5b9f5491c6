#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Every counter of stats.h is explained in Documentation/counters.rst, and a test names it."""

import re

import source

STATS = "drivers/infiniband/sw/kiwarp/stats.h"
DOCUMENTATION = "Documentation/counters.rst"
TESTS = ("scripts/selftests/", "scripts/peer/", "scripts/verbs/", "ktest/")
# Counters whose names tests put together: pattern, where
COMPOSED = (
    (r"(qp|cq|srq|mr|ep|sock)_(created|destroyed)", "nothing_left() of verbs_cases.py"),
    (r"[rt]x_bytes", "both_ends_agree() of 050-stats-trace.sh"),
)


def listed(tree):
    """Name and line of each counter."""
    for number, line in enumerate(tree.lines(STATS), 1):
        found = re.match(r'\s*X\(\w+,\s*"(\w+)"\)', line)
        if found:
            yield found[1], number


def documented(tree):
    """The same of the headings of paragraphs and rows."""
    for number, line in enumerate(tree.lines(DOCUMENTATION), 1):
        if line.startswith("``"):
            for name in re.findall(r"``(\w+)``", line):
                yield name, number


def check(tree):
    if STATS not in tree.files:
        return
    counters, explained = dict(listed(tree)), dict(documented(tree))
    words = set()
    for path in tree.files:
        if path.startswith(TESTS):
            words.update(re.findall(r"\w+", tree.text(path)))
    for name, line in counters.items():
        if name not in explained:
            yield f"{STATS}:{line}: {name} is not in {DOCUMENTATION}"
        if name not in words and not any(re.fullmatch(p, name) for p, _ in COMPOSED):
            yield f"{STATS}:{line}: {name} is in no test"
    for name, line in explained.items():
        if name not in counters:
            yield f"{DOCUMENTATION}:{line}: {name} is no counter"


if __name__ == "__main__":
    source.run(check)
