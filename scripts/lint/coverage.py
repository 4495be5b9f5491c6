#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Reports how old the recorded coverage is, and checks that no file is below its floor, and that
Documentation/coverage.rst has the recorded figures.

`make coverage` measures; this only reads the record. scripts/coverage/report.py has the format.
"""

import datetime
import re
import subprocess
import sys
from pathlib import Path

import source

sys.path.append(str(Path(__file__).resolve().parents[1] / "coverage"))
import page  # noqa: E402 pylint: disable=wrong-import-position

FLOOR = "scripts/coverage/floor"
PAGE = "Documentation/coverage.rst"
ROW = re.compile(r"(drivers/\S+)((?: \d+){6})$")
HEAD = re.compile(r"# (Commit|Date|Of): (.+)$")


def commits_since(tree, commit):
    """How many commits have changed the drivers since then, in words."""
    run = subprocess.run(["git", "-C", str(tree.root), "rev-list", "--count", f"{commit}..HEAD",
                          "--", "drivers"], capture_output=True, text=True, check=False)
    return run.stdout.strip() + " commits" if run.returncode == 0 else "unknown changes"


def is_below(part, of, floor):
    return of > 0 and 100 * part < floor * of


def check(tree):
    if FLOOR not in tree.files:
        return
    head, rows, total = {}, set(), [0, 0, 0, 0]
    for number, line in enumerate(tree.lines(FLOOR), 1):
        where = f"{FLOOR}:{number}"
        row = ROW.match(line)
        if line.startswith("#"):
            head.update(HEAD.findall(line))
        elif not row:
            yield f"{where}: not a file and six numbers"
        else:
            path = row[1]
            lines, executed, branches, taken, *floors = map(int, row[2].split())
            rows.add(path)
            total = [a + b for a, b in zip(total, (lines, executed, branches, taken))]
            if path not in tree.files:
                yield f"{where}: there is no {path}; run make coverage"
            if is_below(executed, lines, floors[0]) or is_below(taken, branches, floors[1]):
                yield f"{where}: {path} is below its floor"
    if not head and not rows:
        print("nothing is recorded yet")
        return
    if not head.keys() >= {"Commit", "Date", "Of"} or not rows:
        yield f"{FLOOR}:1: does not say of what it is"
        return
    if PAGE not in tree.files or tree.text(PAGE) != page.page(tree.text(FLOOR)):
        yield f"{PAGE}:1: is not what scripts/coverage/page.py prints"
    age = datetime.date.today() - datetime.date.fromisoformat(head["Date"])
    new = [f for f in tree.files
           if f.startswith("drivers/") and f.endswith(".c") and f not in rows]
    print(f"{100 * total[1] / total[0]:.1f} % of lines, {100 * total[3] / total[2]:.1f} % of branches, "
          f"{age.days} days and {commits_since(tree, head['Commit'])} in drivers/ ago; "
          f"of: {head['Of']}")
    if new:
        print("without figures (new, or not compiled on uml-gcov): " + " ".join(new))


if __name__ == "__main__":
    source.run(check)
