#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""count.py [--renew | --show] COUNTS OUTPUT BASELINE BUILD TOTALS

Computes the instructions per operation from the plugin's COUNTS and the guest's OUTPUT: those of
the module, and those of the whole kernel with all modules. Compares them with BASELINE. If the
baseline is of another BUILD (kernel and compiler), or with --show, the counts are shown but not
judged; with another BUILD, a row that is missing is still a failure.
"""

import json
import re
import sys

# By how much a count may grow. The module's counts vary only with the number of segments that a
# receiver finds at once; the kernel's counts include timers and interrupts.
TOLERANCE = {"module": 0.06, "kernel": 0.10}


def snapshots(path):
    with open(path, encoding="ascii") as file:
        for line in file:
            _, kernel, *pages = line.split()
            counts = dict(page.split(":") for page in pages)
            yield int(kernel), {int(page, 16): int(count) for page, count in counts.items()}


def read_output(path):
    """The module's address range (start, end), and (name, operations) of each measurement."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    size, base = re.search(r"^kiwarp (\d+) .* 0x([0-9a-f]+)", text, re.M).groups()
    begin = int(base, 16)
    rows = [(name, int(ops)) for ops, name in re.findall(r"^ROW (\d+) (.*)$", text, re.M)]
    return begin, begin + int(size), rows


def measured(counts, output):
    begin, end, rows = read_output(output)
    shots = list(snapshots(counts))
    if len(shots) != 2 * len(rows) or not rows:
        sys.exit(f"{len(shots)} marks for {len(rows)} rows")
    result = {}
    for (name, ops), before, after in zip(rows, shots[::2], shots[1::2]):
        delta = {page: count - before[1].get(page, 0) for page, count in after[1].items()}
        module = sum(count for page, count in delta.items() if begin <= page < end)
        kernel = after[0] - before[0] + sum(delta.values())
        result[name] = {"module": round(module / ops), "kernel": round(kernel / ops)}
    return result


def judge(result, baseline, bad):
    """Prints the rows, and BAD before those that are not within the tolerance. Returns how many
    are, and how many are not, are new or are missing."""
    gone = [name for name in baseline if name not in result]
    for name in gone:
        print(f"{bad} count: not measured, but in the baseline: {name}")
    passed, failed = 0, len(gone)
    for name, values in result.items():
        line, is_ok = f"{name:24}", True
        for kind, value in values.items():
            old = baseline.get(name, {}).get(kind)
            line += f" {kind} {value:8}"
            line += f" ({(value / old - 1) * 100:+5.1f} %)" if old else " (new)"
            is_ok = is_ok and old and value <= old * (1 + TOLERANCE[kind])
        print(f"{'ok' if is_ok else bad:4} count: instructions per operation: {line}")
        passed += bool(is_ok)
        failed += not is_ok
    return passed, failed


def main():
    args = sys.argv[1:]
    renew, show = args[0] == "--renew", args[0] == "--show"
    counts, output, path, build, totals = args[renew or show:]
    result = measured(counts, output)
    if renew:
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"build": build, "rows": result}, file, indent=1)
            file.write("\n")
    with open(path, encoding="utf-8") as file:
        baseline = json.load(file)
    passed, failed = judge(result, baseline["rows"], "more" if show else "FAIL")
    skipped = 0
    if show:
        passed, failed, skipped = 0, 0, len(result)
    elif build != baseline["build"]:
        print(f"count: not judged: {build} here, the baseline is of {baseline['build']}, and there "
              "is no history to count it anew")
        passed, failed, skipped = 0, len(baseline["rows"].keys() - result.keys()), len(result)
    elif failed:
        print("count: when that is what it has to cost: scripts/bench/count.sh --renew")
    with open(totals, "w", encoding="ascii") as file:
        print(passed, failed, skipped, file=file)
    return 1 if failed else 0


sys.exit(main())
