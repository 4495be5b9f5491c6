#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""page.py [FLOOR]: prints Documentation/coverage.rst for the figures in scripts/coverage/floor."""

import re
import sys
import textwrap
from pathlib import Path

FLOOR = Path(__file__).resolve().with_name("floor")
BELOW = "drivers/infiniband/"
DRIVERS = ("sw/kiwarp", "ulp/kiwarp_ip")
WIDTHS = (45, 9, 7, 9, 7)
HEAD = """\
.. SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
.. Written by: make coverage COVERAGE=--record

========
Coverage
========

These are the lines and branches of the drivers that the tests executed when coverage was recorded
last. `Testing <testing.rst>`_, Coverage, says how it is measured, and what counts as a branch.
"""


def percent(part, of):
    return 100 * part / of if of else 100.0


def cells(name, row):
    lines, executed, branches, taken = row
    return (name, f"{executed}/{lines}", f"{percent(executed, lines):.1f} %",
            f"{taken}/{branches}", f"{percent(taken, branches):.1f} %")


def line(columns):
    return "  ".join(text.ljust(width) for text, width in zip(columns, WIDTHS)).rstrip()


def read(text):
    """(heading: {key: value}, {file: [lines, executed, branches, taken]})"""
    head = dict(re.findall(r"^# (Commit|Date|Of): (.+)$", text, re.M))
    rows = {}
    for found in re.finditer(r"^(drivers/\S+) (\d+) (\d+) (\d+) (\d+) ", text, re.M):
        rows[found[1]] = [int(number) for number in found.groups()[1:]]
    return head, rows


def total(rows):
    return [sum(column) for column in zip(*rows)]


def page(text):
    head, rows = read(text)
    what = (f"Recorded on {head.get('Date')} at commit {head.get('Commit', '')[:12]}, of: "
            f"{head.get('Of')}.")
    rule = line("=" * width for width in WIDTHS)
    out = [HEAD, *textwrap.wrap(what, 100, break_on_hyphens=False), "",
           rule, line(("File below drivers/infiniband", "Lines", "", "Branches", "")), rule]
    for driver in DRIVERS:
        mine = {path[len(BELOW):]: row for path, row in rows.items()
                if path.startswith(f"{BELOW}{driver}/")}
        out += [line(cells(path, row)) for path, row in sorted(mine.items())]
        if mine:
            out.append(line(cells(f"**all of {driver}**", total(mine.values()))))
    if rows:
        out.append(line(cells("**both**", total(rows.values()))))
    return "\n".join([*out, rule]) + "\n"


def main():
    floor = Path(sys.argv[1]) if len(sys.argv) > 1 else FLOOR
    print(page(floor.read_text(encoding="utf-8")), end="")


if __name__ == "__main__":
    main()
