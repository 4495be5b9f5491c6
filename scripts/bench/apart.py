#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""apart.py DIR [FUNCTIONS]: prints what apart.sh has counted, from the guests' output in DIR: the
instructions of the kernels of server and client, over TCP and over kiwarp, per MiB or per operation
of 4 KiB; how many of them copy or fill memory; the packets that these hosts send; and in each row
the instructions of the FUNCTIONS of which most are. Timer ticks are subtracted: what they cost is
known from a busy host."""

import collections
import re
import statistics
import sys

import blocks

NAMES = {"nfs": "NFS", "nvme": "NVMe", "iscsi": "iSER"}
HOSTS = {"b": "server", "a": "client"}
TRANSPORTS = {"tcp": "TCP", "rdma": "kiwarp"}
# Repeated string instructions, and functions that do nothing but copy or fill memory
COPIES = re.compile(r"rep: |(__)?(mem(cpy|move|set)(_orig)?|rep_(movs|stos)_alternative|"
                    r"(copy|clear)_page(_regs|_rep|_orig)?)$")
# Is executed in each tick. What the ticks cost is shown as a function of this name.
TICK = "update_process_times"
TICKS = "timer ticks, subtracted"
# Not instructions. Packets are whole buffers of TCP.
SENT = "packets sent"
MIB = 1 << 20


def windows(path):
    """(row, seconds, bytes and packets sent by a and b since the window began) of each mark; None
    for what began before."""
    row, before = None, None
    with open(path, encoding="utf-8", errors="replace") as file:
        for words in map(str.split, file):
            if words[:1] == ["ROW"]:
                row, before = (words[1], words[2], int(words[3]), " ".join(words[4:])), None
            elif words[:1] == ["WINDOW"]:
                now = [float(words[1]), *map(int, words[2:])]
                yield row, before and [new - old for new, old in zip(now, before)]
                before = now


class Names:
    """The functions of a host while each stack was in use."""

    def __init__(self, out):
        self.out = out
        self.known = {}

    def of(self, stack, transport):
        if (stack, transport) not in self.known:
            symbols = blocks.Symbols()
            modules = [] if stack == "none" else [f"symbols.{stack}.{transport}"]
            for name in ["symbols"] + modules:
                with open(f"{self.out}/{name}", encoding="ascii") as file:
                    for line in file:
                        symbols.add(line.split())
            self.known[stack, transport] = symbols
        return self.known[stack, transport]


def samples(out):
    """For each row and host: of each window (seconds, bytes, Counter by function)."""
    found = collections.defaultdict(list)
    for host in HOSTS:
        names = Names(f"{out}/{host}")
        marks = zip(windows(f"{out}/a/stdout"), blocks.counts(f"{out}/{host}/counts"), strict=True)
        for (row, passed), counted in marks:
            if passed:
                seconds, done, *sent = passed
                counter = blocks.by_function(counted, names.of(*row[:2]))
                counter[SENT] = sent["ab".index(host)]
                found[row, host].append((seconds, done, counter))
    subtract_ticks(found)
    return found


def is_instruction(name):
    return name != SENT


def rates(some, wanted):
    """Of each window: instructions per second of the functions that are WANTED."""
    return [sum(n for name, n in counter.items() if wanted(name)) / seconds
            for seconds, _, counter in some]


def subtract_ticks(found):
    """Adds to each window what its ticks cost, as a negative number of instructions. A busy host
    executes nothing else than ticks, apart from what an idle one does, too."""
    idle, busy = ([statistics.median(rates(found[("none", "none", 0, load), "a"], wanted))
                   for wanted in (is_instruction, lambda name: name == TICK)]
                  for load in ("idle", "busy"))
    factor = (busy[0] - idle[0]) / (busy[1] - idle[1])
    for (row, _), some in found.items():
        for _, _, counter in some if row[0] != "none" else ():
            counter[TICKS] = -round(factor * counter[TICK])


def per_unit(some, size, wanted):
    """Of each window: what the functions that are WANTED have, per MiB or operation."""
    unit = size if size < MIB // 64 else MIB
    return [sum(n for name, n in counter.items() if wanted(name)) / (done / unit)
            for _, done, counter in some]


def spread(values):
    low, middle, high = statistics.quantiles(values, n=4)
    return (high - low) / 2 / middle if middle else 0


def line(found, stack, size, name, wanted):
    """The medians of a row, and the largest half interquartile range of them."""
    text, worst = f"{NAMES[stack] + ', ' + name:32}", 0
    for host in HOSTS:
        values = [per_unit(found[(stack, transport, size, name), host], size, wanted)
                  for transport in TRANSPORTS]
        tcp, kiwarp = map(statistics.median, values)
        digits = 0 if kiwarp > 100 or tcp > 100 else 1
        ratio = f"{kiwarp / tcp:6.2f}" if tcp else f"{'':6}"
        text += f"{tcp:10.{digits}f} {kiwarp:10.{digits}f} {ratio}  "
        worst = max(worst, *map(spread, values))
    return text.rstrip(), worst


def heading(what):
    yield f"{what}:"
    yield f"{'':32}" + "".join(f"{host:>10} {'':10} {'':6}  " for host in HOSTS.values()).rstrip()
    yield f"{'':32}" + "".join(f"{'TCP':>10} {'kiwarp':>10} {'ratio':>6}  " for _ in HOSTS).rstrip()


def table(found, rows, what, wanted):
    """Returns the lines, and the largest half interquartile range of a cell."""
    lines = [line(found, *row, wanted) for row in rows]
    return [*heading(what), *(text for text, _ in lines)], max(worst for _, worst in lines)


def functions(found, rows, shown):
    for stack, size, name in rows:
        most = collections.Counter()
        for host in HOSTS:
            for transport in TRANSPORTS:
                for _, _, counter in found[(stack, transport, size, name), host]:
                    most.update(counter)
        yield from heading(f"{NAMES[stack]}, {name}")
        del most[SENT]
        for function in [name for name, _ in most.most_common(shown)] + [TICKS]:
            text, _ = line(found, stack, size, name, lambda other, mine=function: other == mine)
            yield f"{function:32.31}" + text[32:]


def idle_rates(found):
    for load, hosts in (("idle", HOSTS), ("busy", "a")):
        for host in hosts:
            rate = rates(found[("none", "none", 0, load), host], is_instruction)
            yield f"{load} {HOSTS[host]}: {statistics.median(rate):.0f} instructions per second"


def main(out, shown="0"):
    found = samples(out)
    rows = list(dict.fromkeys((stack, size, name) for (stack, _, size, name), _ in found
                              if stack != "none"))
    lines, worst = table(found, rows, "instructions of the kernel, per MiB or operation of 4 KiB",
                         is_instruction)
    print(*lines, f"half of the interquartile range is at most {worst:.1%}", sep="\n")
    print(*table(found, rows, "of these, to copy and fill memory", COPIES.match)[0], sep="\n")
    print(*table(found, rows, "packets sent", SENT.__eq__)[0], sep="\n")
    print(*idle_rates(found), sep="\n")
    if int(shown):
        print(*functions(found, rows, int(shown)), sep="\n")


main(*sys.argv[1:])
