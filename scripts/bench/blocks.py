# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""What count/plugin.c has counted with blocks=on, by function: used by lent.py and apart.py."""

import bisect
import collections


class Symbols:
    """Names of the kernel's functions, those of modules with the module's name in brackets."""

    def __init__(self):
        self.table = []
        self.begins = None
        self.known = {}

    def add(self, words):
        """Adds a line of /proc/kallsyms."""
        self.table.append((int(words[0], 16), " ".join(words[2:])))

    def name(self, address):
        if address not in self.known:
            if self.begins is None:
                self.table.sort()
                self.begins = [begin for begin, _ in self.table]
            at = bisect.bisect(self.begins, address)
            self.known[address] = self.table[at - 1][1] if at else "?"
        return self.known[address]


def counts(path):
    """For each mark: instructions of blocks of the kernel and its modules since the last one, as
    (address, instructions, whether these are repetitions of one that copies or fills memory)."""
    with open(path, encoding="ascii") as file:
        for line in file:
            words = (word.split(":") for word in line.split()[2:])
            yield [(int(word[-2], 16), int(word[-1]), len(word) > 2) for word in words]


def by_function(blocks, symbols):
    """Repetitions are counted apart from the other instructions of their function."""
    total = collections.Counter()
    for address, n, is_rep in blocks:
        total[("rep: " if is_rep else "") + symbols.name(address)] += n
    return total
