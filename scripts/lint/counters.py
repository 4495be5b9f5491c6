#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Every counter of a module is explained in its documentation, and a test names it."""

import re

import source

# The list of counters, where they are explained: file, heading of the section or None
MODULES = (
    ("drivers/infiniband/sw/kiwarp/stats.h", "Documentation/counters.rst", None),
    ("drivers/infiniband/ulp/kiwarp_ip/stats.h", "Documentation/kiwarp_ip.rst", "Counters"),
)
TESTS = ("scripts/selftests/", "scripts/peer/", "scripts/verbs/", "ktest/")
# Counters whose names tests put together: pattern, where
COMPOSED = (
    (r"(qp|cq|srq|mr|ep|sock)_(created|destroyed)", "nothing_left() of verbs_cm_cases.py"),
    (r"[rt]x_bytes", "both_ends_agree() of 050-stats-trace.sh"),
)


def listed(tree, path):
    """Name and line of each counter."""
    for number, line in enumerate(tree.lines(path), 1):
        found = re.match(r'\s*X\(\w+,\s*"(\w+)"\)', line)
        if found:
            yield found[1], number


def section(lines, heading):
    """Number and text of the lines below a heading, all lines if there is none."""
    inside = heading is None
    for number, line in enumerate(lines, 1):
        below = lines[number] if number < len(lines) else ""
        if heading and re.fullmatch(r"={3,}", below):
            inside = line == heading
        if inside:
            yield number, line


def documented(tree, path, heading):
    """The same of the headings of paragraphs and rows."""
    for number, line in section(tree.lines(path), heading):
        if line.startswith("``"):
            for name in re.findall(r"``(\w+)``", line):
                yield name, number


def check_module(tree, words, stats, documentation, heading):
    counters = dict(listed(tree, stats))
    explained = dict(documented(tree, documentation, heading))
    for name, line in counters.items():
        if name not in explained:
            yield f"{stats}:{line}: {name} is not in {documentation}"
        if name not in words and not any(re.fullmatch(p, name) for p, _ in COMPOSED):
            yield f"{stats}:{line}: {name} is in no test"
    for name, line in explained.items():
        if name not in counters:
            yield f"{documentation}:{line}: {name} is no counter"


def code_of(tree, path):
    """A test without its comments: a counter that only these name is not tested."""
    text = tree.text(path)
    if path.endswith((".c", ".h")):
        return source.without_comments(text, keep_strings=True)
    return re.sub(r"(^|\s)#.*", "", text)


def check(tree):
    words = set()
    for path in tree.files:
        if path.startswith(TESTS):
            words.update(re.findall(r"\w+", code_of(tree, path)))
    for stats, documentation, heading in MODULES:
        if stats in tree.files:
            yield from check_module(tree, words, stats, documentation, heading)


if __name__ == "__main__":
    source.run(check)
