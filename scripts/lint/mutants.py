#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""The map of `make mutants`: every file of the drivers has tests, and what it names exists. Each
operator finds something to change. The record: enough mutants were killed, each survivor has an
answer, and Documentation/mutants.rst shows the same figures; says how old these are."""

import datetime
import re
import sys
from fnmatch import fnmatchcase
from pathlib import Path

import source

sys.path.append(str(Path(__file__).resolve().parents[1] / "mutants"))
import operators  # noqa: E402 pylint: disable=wrong-import-position
import record  # noqa: E402 pylint: disable=wrong-import-position

MAP = "scripts/mutants/map"
SELFTESTS = "scripts/selftests/"
BELOW = "drivers/infiniband/"
# Older kernels' interfaces, and what describes trace events, is not mutated.
NOT_MUTATED = re.compile(r"/compat/|/trace\.[ch]$")
KERNELS = ("uml", "uml-debug", "smp-debug:2", "uml-smp:2", "uml-kcsan:2", "6.1", "6.12", "6.12:2")


def runs_on(tree, test, kernel):
    """Is the kernel one of those that the head of the test names, if it does?"""
    named = re.search(r"^# KERNELS: *(.*)", tree.text(test), re.M)
    kernel = kernel.partition(":")[0]
    wanted = {kernel}
    if kernel in ("smp-debug", "uml-smp"):
        wanted |= {"uml-debug", "6.12"}
    return named is None or bool(wanted & set(named[1].split()))


def check_test(tree, where, test):
    name, _, kernel = test.partition("@")
    kernel = kernel or "uml"
    if kernel not in KERNELS:
        yield f"{where}: no kernel is {kernel}"
    elif name != "kunit":
        files = [f for f in tree.files if re.fullmatch(rf"{SELFTESTS}[a-z]+/{name}-.*\.sh", f)]
        if len(files) != 1:
            yield f"{where}: {len(files)} tests are {name}"
        elif not runs_on(tree, files[0], kernel):
            yield f"{where}: {name} does not run on {kernel}"


def check_record(tree):
    """The record of what became of mutants"""
    if record.RECORD not in tree.files:
        return
    text = tree.text(record.RECORD)
    head, rows = record.parse(text)
    where = f"{record.RECORD}:1"
    if not head.keys() >= {"Commit", "Date", "Seed"}:
        yield f"{where}: does not say of what it is"
        return
    for number, line in enumerate(tree.lines(record.RECORD), 1):
        if line[:2] not in ("# ", "- ", "+ ", "= ") and not record.ROW.match(line):
            yield f"{record.RECORD}:{number}: not a mutant"
    for row in rows.values():
        if row["outcome"] in ("survived", "unfinished") and not row["answer"]:
            yield f"{where}: no answer to {row['id']}, {row['path']}:{row['line']}"
    killed, judged = record.share(rows.values())
    if killed < int(head.get("Floor", 0)):
        yield f"{where}: {killed:.1f} % killed, the floor is {head['Floor']} %"
    if record.PAGE not in tree.files or tree.text(record.PAGE) != record.page(text):
        yield f"{record.PAGE}:1: is not what the record says"
    age = datetime.date.today() - datetime.date.fromisoformat(head["Date"])
    texts = {path: tree.text(path) for path in {row["path"] for row in rows.values()}
             if path in tree.files}
    stale = len(rows) - len(record.of_present(rows, texts))
    print(f"{killed:.1f} % of {judged} mutants killed, {age.days} days ago; "
          f"the functions of {stale} of {len(rows)} have changed since")


def check(tree):
    if MAP not in tree.files:
        return
    yield from check_record(tree)
    names = set(re.findall(r"^(\w+) {2,}\S", operators.__doc__, re.M))
    files = {f[len(BELOW):] for f in tree.c_files()
             if f.startswith(BELOW) and not NOT_MUTATED.search(f)}
    covered = set()
    for number, line in enumerate(tree.lines(MAP), 1):
        pattern, *tests = line.split("#")[0].split() or [None]
        if not pattern:
            continue
        where = f"{MAP}:{number}"
        operator, _, glob = pattern.rpartition(":")
        matching = {f for f in files if fnmatchcase(f, glob)}
        if operator and operator not in names:
            yield f"{where}: no operator is {operator}"
        if not matching:
            yield f"{where}: no file is {glob}"
        if not tests:
            yield f"{where}: no tests"
        if not operator:
            covered |= matching
        for test in tests:
            yield from check_test(tree, where, test)
    found = {m.operator for m in operators.sample({f: tree.text(BELOW + f) for f in files}, 0)}
    for operator in sorted(names ^ found):
        yield f"{MAP}:1: operator {operator} finds nothing, or its name is wrong"
    for path in sorted(files - covered):
        yield f"{BELOW}{path}:1: no tests in {MAP}"


if __name__ == "__main__":
    source.run(check)
