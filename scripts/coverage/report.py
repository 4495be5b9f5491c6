#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""report.py --notes DIR [--info FILE] [--reach FILE] [--compare] [--record OF] COUNTS...

Prints how many lines and branches of each file of the drivers were executed. DIR has the compiler's
notes (*.gcno) of all modules. Each COUNTS is a directory with the counts (*.gcda) of one guest, or of
one test in it, as scripts/vm leaves them. All counts are added up, and those of all objects that a
source is compiled into.

--info: FILE gets the counts in genhtml's format. --reach: FILE gets, as JSON, which tests execute
each line, and a hash of each source. --compare: fails if a file is below its floor.
--record: writes scripts/coverage/floor and Documentation/coverage.rst; OF describes what was run. A
floor is never lowered.
"""

import argparse
import datetime
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import page

TOP = Path(__file__).resolve().parents[2]
sys.path.append(str(TOP / "scripts/mutants"))
import reach        # pylint: disable=wrong-import-position
FLOOR = TOP / "scripts/coverage/floor"
PAGE = TOP / "Documentation/coverage.rst"
PRODUCT = "drivers/"
# What the figures depend on
MEASURED = ("drivers", "include", "kunit", "ktest", "scripts/selftests", "scripts/peer",
            "scripts/verbs")
# Where build.sh compiles. Paths in notes and counts begin with such a directory: that of this tree,
# or that of an older build from which objects were taken over.
CLONE = re.compile(r".*/build-[\w.-]+-[0-9a-f]{16}/")
# What can make a statement have branches of its own. The others have those of the kernel's macros and
# inline functions, for example of byte order, WARN_ON() and lockdep, most of which are constants.
CONDITION = re.compile(r"\b(?:if|while|for|switch|case|\w*for_each\w*|min|max|clamp|(?:min|max)_t)\b"
                       r"|&&|\|\||\?")
# Macros of the kernel with many branches of their own, most of which are constants. gcov does not
# tell these from those of the statement with the macro, so none of them are counted.
MACRO = re.compile(r"\b(?:test_bit|work_pending|delayed_work_pending|wait_event\w*|WARN_ON\w*|TRACE_EVENT"
                   r"|virt_addr_valid)"
                   r"\(")
COMMENT_OR_STRING = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'',
                               re.S)
# Where a statement or a condition ends
END = re.compile(r"[;{}]|:\s*$", re.M)
# The directory of one test: the guest, and the test
OF_TEST = re.compile(r"[0-9a-f-]{36}\.(kunit|\d{3})")
# Number of objects per run of gcov
BATCH = 50


def relative(path):
    """A path in notes or counts, relative to the tree."""
    return os.path.normpath(CLONE.sub("", path))


def lines_with_conditions(text):
    """The numbers of the lines of statements that have a condition."""
    text = COMMENT_OR_STRING.sub(lambda found: "\n" * found[0].count("\n"), text)
    lines, first, number = set(), 0, 1
    for end in [found.end() for found in END.finditer(text)] + [len(text)]:
        statement = text[first:end]
        begins = number + statement[:len(statement) - len(statement.lstrip())].count("\n")
        number += statement.count("\n")
        if CONDITION.search(statement) and not MACRO.search(statement):
            lines.update(range(begins, number + 1))
        first = end
    return lines


class Source:
    """The counts of one source file."""

    def __init__(self, conditions):
        self.conditions = conditions    # numbers of lines
        self.lines = {}         # line: count
        self.reached = {}       # line: {test: None}
        self.branches = {}      # (line, function): {is of a driver: {number: counts}}
        self.functions = {}     # name: [line, count]

    def add_line(self, line, is_driver, test):
        number = line["line_number"]
        self.lines[number] = self.lines.get(number, 0) + line["count"]
        if test and line["count"]:
            self.reached.setdefault(number, {})[test] = None
        counts = [branch["count"] for branch in line["branches"]]
        if counts and number in self.conditions:
            of = self.branches.setdefault((number, line.get("function_name")), {})
            of = of.setdefault(is_driver, {})
            known = of.setdefault(len(counts), [0] * len(counts))
            of[len(counts)] = [a + b for a, b in zip(known, counts)]

    def add_function(self, function):
        known = self.functions.setdefault(function["name"], [function["start_line"], 0])
        known[1] += function["execution_count"]

    def taken(self):
        """(line, counts of its branches). A line can have different numbers of branches in several
        objects. Of the driver's objects, the form with the most branches is used; counts of other
        objects are added if they have the same number of branches."""
        for (line, _), of in sorted(self.branches.items(), key=lambda item: str(item)):
            most = max(of.get(True) or of[False])
            forms = [form[most] for form in of.values() if most in form]
            yield line, [sum(counts) for counts in zip(*forms)]

    def figures(self):
        """Number of lines, of lines executed, of branches, and of branches taken."""
        taken = [count for _, counts in self.taken() for count in counts]
        return (len(self.lines), sum(c > 0 for c in self.lines.values()),
                len(taken), sum(c > 0 for c in taken))


class Coverage:
    """The counts of all sources of the drivers."""

    def __init__(self):
        self.sources = {}
        self.tests = set()

    def add(self, document, test):
        is_driver = relative(document["data_file"]).startswith(PRODUCT)
        for file in document["files"]:
            path = relative(file["file"])
            if not path.startswith(PRODUCT):
                continue
            if path not in self.sources:
                text = (TOP / path).read_text(encoding="utf-8")
                self.sources[path] = Source(lines_with_conditions(text))
            source = self.sources[path]
            for line in file["lines"]:
                source.add_line(line, is_driver, test)
            for function in file["functions"]:
                source.add_function(function)

    def figures(self):
        return {path: source.figures() for path, source in sorted(self.sources.items())}


def run_gcov(folder, names):
    """Runs gcov on objects whose notes and counts are in a folder; yields its results."""
    for first in range(0, len(names), BATCH):
        argv = ["gcov", "--json-format", "--stdout", "--branch-probabilities"]
        run = subprocess.run(argv + names[first:first + BATCH], cwd=folder, text=True, check=True,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        if "stamp mismatch" in run.stderr or "version" in run.stderr:
            sys.exit("report.py: the counts are not of these modules:\n" + run.stderr)
        for line in run.stdout.splitlines():
            if line.startswith("{"):
                yield json.loads(line)


def read_all(notes, counts):
    """Reads all notes and counts. Code that no guest has loaded counts as not executed, so notes are
    also read without counts."""
    coverage = Coverage()
    notes = Path(notes).resolve()
    objects = sorted(str(path.relative_to(notes).with_suffix("")) for path in notes.rglob("*.gcno"))
    if not objects:
        sys.exit(f"report.py: no notes in {notes}")
    for folder in (None, *counts):
        found = {}
        of_test = OF_TEST.match(Path(folder).name) if folder else None
        test = of_test[1] if of_test else None
        coverage.tests.update([test] if test else [])
        for path in Path(folder).resolve().rglob("*.gcda") if folder else ():
            found[os.path.splitext(relative(str(path)))[0]] = path
        if folder and not found:
            sys.exit(f"report.py: no counts in {folder}")
        with tempfile.TemporaryDirectory() as work:
            for name in found if folder else objects:
                link = Path(work, name)
                link.parent.mkdir(parents=True, exist_ok=True)
                link.with_name(link.name + ".gcno").symlink_to(notes / (name + ".gcno"))
                if folder:
                    link.with_name(link.name + ".gcda").symlink_to(found[name])
            suffix = ".gcda" if folder else ".gcno"
            for document in run_gcov(work, [n + suffix for n in (found if folder else objects)]):
                coverage.add(document, test)
    return coverage


def percent(part, of):
    return 100.0 * part / of if of else 100.0


def print_table(figures, floors):
    print("%-52s %13s %7s %13s %7s" % ("file", "lines", "", "branches", ""))
    total = [0, 0, 0, 0]
    for path, row in figures.items():
        print_row(path[len("drivers/infiniband/"):], row, floors.get(path))
        total = [a + b for a, b in zip(total, row)]
    for driver in ("sw/kiwarp", "ulp/kiwarp_ip"):
        rows = [row for path, row in figures.items()
                if path.startswith(f"drivers/infiniband/{driver}/")]
        if rows:
            print_row(driver, [sum(column) for column in zip(*rows)], None)
    print_row("all", total, None)


def print_row(name, row, floor):
    lines, executed, branches, taken = row
    below = "" if floor is None or not is_below(row, floor) else "  below its floor: %d %d" % floor
    print("%-52s %6d/%6d %6.1f%% %6d/%6d %6.1f%%%s" % (
        name, executed, lines, percent(executed, lines),
        taken, branches, percent(taken, branches), below))


def is_below(row, floor):
    return percent(row[1], row[0]) < floor[0] or percent(row[3], row[2]) < floor[1]


def read_floor():
    """{file: (percent of lines, percent of branches)}"""
    floors = {}
    if FLOOR.exists():
        for line in FLOOR.read_text(encoding="utf-8").splitlines():
            if line and not line.startswith("#"):
                path, *numbers = line.split()
                floors[path] = tuple(int(n) for n in numbers[4:6])
    return floors


def commit():
    """The last commit of the drivers and the tests; there must be no uncommitted changes."""
    def git(*args):
        return subprocess.run(["git", "-C", str(TOP), *args, "--", *MEASURED], text=True, check=True,
                              stdout=subprocess.PIPE).stdout.strip()
    changed = git("status", "--porcelain")
    if changed:
        sys.exit("report.py: not recorded, commit this first:\n" + changed)
    return git("log", "-1", "--format=%H")


def record(figures, floors, of):
    rows = ["# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause",
            "# Written by: make coverage COVERAGE=--record",
            f"# Commit: {commit()}",
            f"# Date: {datetime.date.today().isoformat()}",
            f"# Of: {of}",
            "# File; lines, executed, branches, taken; floors in percent of lines and of branches"]
    for path, row in figures.items():
        measured = int(percent(row[1], row[0])), int(percent(row[3], row[2]))
        floor = [max(pair) for pair in zip(measured, floors.get(path, (0, 0)))]
        rows.append(" ".join([path, *map(str, row), *map(str, floor)]))
    text = "\n".join(rows) + "\n"
    FLOOR.write_text(text, encoding="utf-8")
    PAGE.write_text(page.page(text), encoding="utf-8")


def write_info(coverage, path):
    with open(path, "w", encoding="utf-8") as info:
        for name, source in sorted(coverage.sources.items()):
            lines, executed, branches, taken = source.figures()
            print(f"SF:{TOP / name}", file=info)
            for function, (line, count) in source.functions.items():
                print(f"FN:{line},{function}\nFNDA:{count},{function}", file=info)
            for number, (line, counts) in enumerate(source.taken()):
                for branch, count in enumerate(counts):
                    print(f"BRDA:{line},{number},{branch},{count}", file=info)
            for line, count in sorted(source.lines.items()):
                print(f"DA:{line},{count}", file=info)
            print(f"BRF:{branches}\nBRH:{taken}\nLF:{lines}\nLH:{executed}\nend_of_record",
                  file=info)


def write_reach(coverage, path):
    files = {name: reach.table((TOP / name).read_text(encoding="utf-8"),
                               {line: source.reached.get(line, ()) for line in source.lines})
             for name, source in coverage.sources.items()}
    path.write_text(json.dumps({"tests": sorted(coverage.tests), "files": files}), encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(usage=__doc__.splitlines()[0])
    parser.add_argument("--notes", required=True)
    parser.add_argument("--info")
    parser.add_argument("--reach", type=Path)
    parser.add_argument("--compare", action="store_true")
    parser.add_argument("--record")
    parser.add_argument("counts", nargs="+")
    args = parser.parse_args()
    coverage = read_all(args.notes, args.counts)
    figures, floors = coverage.figures(), read_floor()
    print_table(figures, floors)
    if args.info:
        write_info(coverage, args.info)
    if args.reach:
        write_reach(coverage, args.reach)
    if args.record:
        record(figures, floors, args.record)
    below = [path for path, row in figures.items() if path in floors and is_below(row, floors[path])]
    if args.compare and below:
        print(f"{len(below)} files are below their floor")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
