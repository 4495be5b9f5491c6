#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""profile.py DIR: prints where each measurement spent its time, from DIR/samples (perf script),
DIR/stamps (when the measurements began and ended), DIR/lines and the guest's symbols.

An address of User Mode Linux's kernel is an address of its process on the host.
"""

import bisect
import collections
import json
import re
import sys

HOST = 1 << 63
SHOWN = 25
# No function is longer. An address further behind a symbol belongs to the process's C library.
LONGEST = 1 << 16
# Class of a symbol: the first pattern that matches decides
CLASSES = (
    ("crc", r"crc32|hw_(update|digest)|chksum"),
    ("copy", r"memcpy|memmove|copy_(to|from|page)|csum_partial_copy|_copy_|memset"),
    ("kiwarp", r"\[kiwarp\]"),
    ("siw", r"\[siw\]"),
    ("rdma", r"\[(ib_|rdma|iw_cm)"),
    ("tcp/ip", r"^(__)?(tcp|ip|inet|sk|skb|sock|net|dev|veth|neigh|nf|xmit|eth|napi|gro|udp|rt|"
     r"fib|dst|lock_sock|release_sock|kfree_skb|consume_skb|validate_xmit|enqueue|qdisc|sch_)"
     r"|skb|^bpf|sock|tcp"),
    ("memory", r"alloc|free|slab|kmem|page|folio|slub|gup|pin_user"),
    ("uml", r"signal|irq|sched|switch|timer|hrtimer|tick|time|userspace|ptrace|rcu|softirq|um_|"
     r"os_|handle_|interrupt|block_|wait|wake|futex|poll|workqueue|work"),
)


def symbols(path):
    table = []
    with open(path, encoding="ascii") as file:
        for line in file:
            fields = line.split()
            if fields[1] in "tTwW":
                name = fields[2] + (" " + fields[3] if len(fields) > 3 else "")
                table.append((int(fields[0], 16), name))
    table.sort()
    return [one[0] for one in table], [one[1] for one in table]


def samples(path):
    """(pid, seconds, address)"""
    with open(path, encoding="ascii", errors="replace") as file:
        for line in file:
            pid, when, address = line.split()[:3]
            yield int(pid.partition("/")[0]), float(when.rstrip(":")), int(address, 16)


def intervals(directory):
    """(begin, end, name) of each measurement."""
    with open(f"{directory}/stamps", encoding="ascii") as file:
        stamps = [float(line) for line in file]
    with open(f"{directory}/lines", encoding="utf-8") as file:
        lines = [json.loads(line) for line in file if line.startswith("{")]
    names = [f"{line['group']}: {line['row']}, {line['column']}"
             for line in lines if "wall_us" in line]
    if 2 * len(names) != len(stamps):
        sys.exit("a measurement failed: nobody knows which time belongs to which")
    return list(zip(stamps[::2], stamps[1::2], names))


def classify(name):
    return next((kind for kind, regex in CLASSES if re.search(regex, name)), "other")


def attribute(directory):
    """{measurement: Counter of (class, symbol)}"""
    addresses, names = symbols(f"{directory}/kallsyms")
    times = intervals(directory)
    starts = [begin for begin, _, _ in times]
    profile = {name: collections.Counter() for _, _, name in times}
    kernel = None
    for pid, when, address in samples(f"{directory}/samples"):
        kernel = kernel or pid
        index = bisect.bisect(starts, when) - 1
        if index < 0 or when > times[index][1]:
            continue
        if address >= HOST:
            key = ("host", "the host's kernel")
        elif pid != kernel:
            key = ("user", "processes")
        else:
            at = bisect.bisect(addresses, address) - 1
            known = at >= 0 and address - addresses[at] < LONGEST
            key = (classify(names[at]), names[at]) if known else ("uml", "the C library")
        profile[times[index][2]][key] += 1
    return profile


def main():
    for name, counts in attribute(sys.argv[1]).items():
        total = sum(counts.values())
        if not total:
            continue
        kinds = collections.Counter()
        for (kind, _), count in counts.items():
            kinds[kind] += count
        print(f"== {name} ({total} samples)")
        print("   " + ", ".join(f"{kind} {count * 100 / total:.0f}%"
                                for kind, count in kinds.most_common()))
        for (kind, symbol), count in counts.most_common(SHOWN):
            print(f"   {count * 100 / total:5.1f}%  {kind:7} {symbol}")


main()
