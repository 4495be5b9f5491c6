#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""lent.py COUNTS OUTPUT: prints what a MiB of Writes costs the sender with each setting of
zero_copy, from the plugin's COUNTS and the guest's OUTPUT (lent.sh)."""

import statistics
import sys

WRITES_PER_MIB = 16


def counts(path):
    """For each mark: instructions of the kernel with its modules, and those of each page of the
    modules. Those of user space depend on how often it looks for completions."""
    with open(path, encoding="ascii") as file:
        for line in file:
            _, kernel, *pages = line.split()
            modules = {int(page, 16): int(n) for page, n in (p.split(":") for p in pages)}
            yield int(kernel) + sum(modules.values()), modules


def spent(before, after, where):
    """Instructions between two marks: of the kernel, and those in the range WHERE."""
    own = sum(n - before[1].get(page, 0) for page, n in after[1].items() if page in where)
    return after[0] - before[0], own


def main(path, output):
    marks = list(counts(path))
    where, rows, n = range(0), {}, 0
    with open(output, encoding="ascii") as file:
        for words in map(str.split, file):
            if words[:1] == ["kiwarp"]:
                start = int(words[5], 16)
                where = range(start, start + int(words[1]))
            elif words[:1] == ["ROW"]:
                setting, writes, lent = words[1], int(words[2]), int(words[3])
                cost = spent(marks[n], marks[n + 1], where)
                rows.setdefault(setting, []).append((writes, lent, cost))
                n += 2
    for setting, found in rows.items():
        per_mib = [[(many[2][i] - few[2][i]) * WRITES_PER_MIB / (many[0] - few[0]) for i in (0, 1)]
                   for few, many in zip(found[::2], found[1::2])]
        share = sum(f[1] for f in found) / sum(f[0] for f in found) / 65536
        every, own = (statistics.median(column) for column in zip(*per_mib))
        print(f"zero_copy={setting}: {every:.0f} instructions of the kernel per MiB, {own:.0f} of "
              f"them in the module; {share:.0%} lent; all rounds: {[round(p[0]) for p in per_mib]}")


main(*sys.argv[1:])
