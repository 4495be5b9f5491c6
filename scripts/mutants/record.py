#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""What became of mutants: scripts/mutants/record, and Documentation/mutants.rst, which shows it.

A line of the record is OUTCOME OPERATOR FILE:LINE IDENTITY [TEST]. FILE is below drivers/infiniband.
IDENTITY depends on the text of the function (operators.py): after a change to the function, its
mutants are other ones, which are not in the record. Below a mutant that survived, `- ` and `+ ` begin the lines that it changes; `= ` begins the
answer to it, which is written by hand, and which --record keeps. An answer that begins with
EQUIVALENT says why no test can notice the mutant; it does not count. Once ENOUGH mutants are judged,
the heading has a floor: the percentage that was killed, which --record raises and never lowers.
"""

import datetime
import re
import subprocess
import sys
import textwrap
from collections import Counter
from pathlib import Path

import operators

TOP = Path(__file__).resolve().parents[2]
RECORD = "scripts/mutants/record"
PAGE = "Documentation/mutants.rst"
BELOW = "drivers/infiniband/"
DRIVERS = ("sw/kiwarp", "ulp/kiwarp_ip")
JUDGED = ("killed", "survived", "unfinished")
ROW = re.compile(r"(\w+) (\w+) (\S+):(\d+) ([0-9a-f]{10})(?: (.+))?$")
ENOUGH = 300
EQUIVALENT = "Equivalent:"
WIDTHS = (45, 6, 6, 8, 10, 10)
HEAD = """\
.. SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
.. Written by: make mutants MUTANTS=--record

=======
Mutants
=======

These are the mutants of the drivers that were judged when mutants were recorded last, and those
that no test noticed, each with an answer. `Testing <testing.rst>`_, Mutants, says how they are
made and tested.
"""


def parse(text):
    """(heading: {key: value}, {identity: row})"""
    head = dict(re.findall(r"^# (Commit|Date|Seed|Floor): (.+)$", text, re.M))
    rows, row = {}, None
    for line in text.splitlines():
        found = ROW.match(line)
        if found:
            outcome, operator, path, number, identity, by = found.groups()
            row = rows[identity] = {
                "id": identity, "outcome": outcome, "operator": operator, "path": BELOW + path,
                "line": int(number), "tests": [], "diff": "", "answer": ""}
            if by:
                row["by"] = by
        elif line.startswith(("- ", "+ ")) and row:
            row["diff"] += line + "\n"
        elif line.startswith("= ") and row:
            row["answer"] = f"{row['answer']} {line[2:]}".strip()
    return head, rows


def read():
    path = TOP / RECORD
    return parse(path.read_text(encoding="utf-8")) if path.exists() else ({}, {})


def of_present(rows, texts):
    """Those of the recorded rows whose functions have not changed, with their present lines."""
    present = {mutant.identity(): mutant.line(text) for path, text in texts.items()
               for place in operators.mutants(path, text) for mutant in place}
    return {name: {**row, "line": present[name]} for name, row in rows.items() if name in present}


def change(diff):
    """The lines that a mutant changes."""
    return [line[0] + " " + line[1:].strip() for line in diff.splitlines()
            if line[:1] in ("-", "+") and not line.startswith(("---", "+++"))]


def fate(row):
    """The outcome of a row, or EQUIVALENT"""
    if row["outcome"] == "survived" and row.get("answer", "").startswith(EQUIVALENT):
        return EQUIVALENT
    return row["outcome"]


def share(rows):
    """(percentage that was killed, number of the rows that count)"""
    count = Counter(map(fate, rows))
    judged = sum(count[outcome] for outcome in JUDGED)
    return (100 * count["killed"] / judged if judged else 100.0), judged


def lines_of(row):
    by = f" {row['by']}" if row.get("by") else ""
    yield (f"{row['outcome']} {row['operator']} {row['path'][len(BELOW):]}:{row['line']} {row['id']}"
           f"{by}")
    if row["outcome"] in ("survived", "unfinished"):
        yield from change(row["diff"])
        yield from ("= " + line for line in textwrap.wrap(row.get("answer", ""), 96))


def write(rows, seed):
    """Writes both files."""
    head, old = read()
    if head.get("Seed", str(seed)) != str(seed):
        sys.exit(f"record.py: {RECORD} has mutants of seed {head['Seed']}")
    answers = {name: row["answer"] for name, row in old.items() if row["answer"]}
    for name, row in rows.items():
        row["answer"] = row.get("answer") or answers.get(name, "")
    commit = subprocess.run(["git", "-C", str(TOP), "rev-parse", "HEAD"], check=True, text=True,
                            stdout=subprocess.PIPE).stdout.strip()
    out = ["# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause",
           "# Written by: make mutants MUTANTS=--record; the lines that begin with = by hand",
           f"# Commit: {commit}", f"# Date: {datetime.date.today()}", f"# Seed: {seed}"]
    killed, judged = share(rows.values())
    floor = max(int(killed) if judged >= ENOUGH else 0, int(head.get("Floor", 0)))
    if floor:
        out.append(f"# Floor: {floor}")
    for row in sorted(rows.values(), key=lambda row: (row["path"], row["line"], row["id"])):
        if row["outcome"] != "error":
            out += lines_of(row)
    text = "\n".join(out) + "\n"
    (TOP / RECORD).write_text(text, encoding="utf-8")
    (TOP / PAGE).write_text(page(text), encoding="utf-8")


def cells(columns):
    return "  ".join(text.ljust(width) for text, width in zip(columns, WIDTHS)).rstrip()


def counted(name, rows):
    count = Counter(map(fate, rows))
    left = count["survived"] + count["unfinished"]
    return cells((name, str(len(rows)), str(count["killed"]), str(left), str(count[EQUIVALENT]),
                  f"{share(rows)[0]:.1f} %"))


def table(rows):
    rule = cells("=" * width for width in WIDTHS)
    out = [rule, cells(("File below drivers/infiniband", "Judged", "Killed", "Survived", "Equivalent",
                        "Killed")),
           rule]
    for driver in DRIVERS:
        mine = [row for row in rows if row["path"].startswith(f"{BELOW}{driver}/")]
        for path in sorted({row["path"] for row in mine}):
            out.append(counted(path[len(BELOW):], [row for row in mine if row["path"] == path]))
        if mine:
            out.append(counted(f"**all of {driver}**", mine))
    return [*out, counted("**both**", rows), rule]


def page(text):
    """The page for the text of a record."""
    head, rows = parse(text)
    rows = [row for row in rows.values() if row["outcome"] in JUDGED]
    left = [row for row in rows if row["outcome"] != "killed"]
    what = (f"Recorded on {head.get('Date')} at commit {head.get('Commit', '')[:12]}, with seed "
            f"{head.get('Seed')}. Mutants that were not finished in time count as survivors. The "
            "percentage is that of the mutants that are not equivalent: those that survived, and of "
            "which the answer says why no test can notice them, do not count.")
    out = [HEAD, *textwrap.wrap(what, 100, break_on_hyphens=False), "", *table(rows), ""]
    if left:
        out += ["Survivors", "=========", ""]
    for row in left:
        out += [f"{row['path'][len(BELOW):]}:{row['line']}, {row['operator']}::", ""]
        out += ["    " + line.replace("\t", " ") for line in row["diff"].splitlines()]
        out += ["", *textwrap.wrap(row["answer"] or "Not answered yet.", 100), ""]
    return "\n".join(out).rstrip("\n") + "\n"
