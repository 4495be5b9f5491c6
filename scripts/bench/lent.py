#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""lent.py COUNTS OUTPUT [FUNCTIONS]: prints what a MiB of Writes costs the sender with each setting
of zero_copy, from the plugin's COUNTS and the guest's OUTPUT (lent.sh), and the FUNCTIONS of which
most instructions are."""

import collections
import statistics
import sys

import blocks

MIB = 1 << 20
WARM_UP = 2


def windows(path):
    """(setting, index in its round, numbers) of each mark, and the symbols."""
    symbols, marks, setting, index = blocks.Symbols(), [], None, 0
    with open(path, encoding="utf-8", errors="replace") as file:
        for words in map(str.split, file):
            if words[:1] == ["SYMBOL"]:
                symbols.add(words[1:])
            elif words[:1] == ["SETTING"]:
                setting, index = words[1], 0
            elif words[:1] == ["WINDOW"]:
                marks.append((setting, index, [int(n) for n in words[1:]]))
                index += 1
    return marks, symbols


def samples(counts_path, output):
    """For each setting: of each window (MiB, share lent, packets out, in, Counter by function)."""
    marks, symbols = windows(output)
    found, before = collections.defaultdict(list), None
    for (setting, index, numbers), counted in zip(marks, blocks.counts(counts_path), strict=True):
        if index > WARM_UP:
            words, lent, out, back = (n - b for n, b in zip(numbers, before))
            found[setting].append((words * 4 / MIB, lent / (words * 4), out, back,
                                   blocks.by_function(counted, symbols)))
        before = numbers
    return found


def quartiles(values):
    low, middle, high = statistics.quantiles(values, n=4)
    return f"{middle:9.0f} ({low:.0f} to {high:.0f})"


def main(counts_path, output, shown="0"):
    found = samples(counts_path, output)
    for setting, rows in found.items():
        size, lent, out, back, counters = zip(*rows)
        every = [sum(c.values()) / n for c, n in zip(counters, size)]
        own = [sum(n for name, n in c.items() if "[kiwarp]" in name) / m
               for c, m in zip(counters, size)]
        print(f"zero_copy={setting}: {len(rows)} windows of {statistics.median(size):.0f} MiB, "
              f"{statistics.mean(lent):.0%} lent; per MiB, median and quartiles:\n"
              f"    instructions of the kernel {quartiles(every)}\n"
              f"    those of the module {quartiles(own)}\n"
              f"    packets sent {quartiles([n / m for n, m in zip(out, size)])}\n"
              f"    packets received {quartiles([n / m for n, m in zip(back, size)])}")
    names = collections.Counter()
    for rows in found.values():
        for row in rows:
            names.update(row[4])
    for name, _ in names.most_common(int(shown)):
        print(f"{name:48}", *(quartiles([row[4][name] / row[0] for row in rows])
                              for rows in found.values()))


main(*sys.argv[1:])
