#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""run.py --cache DIR [--number N] [--seed S] [--part I/N] [--files GLOB]... [--operators NAME]...
       [--kernels NAME]... [--limit SECONDS] [--again] [--list] [--report] [--record]

Makes mutants of the drivers, one at a time, and runs the tests that the map lists for the file
until a case fails: those on one kernel in one guest, first those that are quick or have noticed
other mutants of the directory. Tests that do not execute the mutant's lines are left out, as far as
DIR/coverage/reach tells, which the last `make coverage` has left. A mutant that does not compile, or
compiles to the same code, does not count, and another one takes its place. The result of each mutant
is written to a journal; a run that was interrupted continues there. What scripts/mutants/record has
of functions that have not changed since is not tested again. Prints a line per mutant and, at the end,
totals and the survivors.

N mutants (20) are drawn with seed S (1). With --part I/N, only every Nth of them is tested, so that
several runs, at once or one after the other, test all. --files, --operators: only mutants of these
files (below drivers/infiniband) or operators (operators.py). --kernels: only tests on these
kernels. --limit: starts no further guest for a mutant after so many seconds (1800). --again: tests
survivors again, after tests were added. --list: prints the mutants and runs nothing. --report:
prints the record and the journals of all parts. --record: writes these to scripts/mutants/record and
Documentation/mutants.rst. The status is 0 if all mutants of the part were tested, even if some
survived.
"""

import argparse
import fcntl
import hashlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from fnmatch import fnmatchcase
from pathlib import Path

import operators
import record
from reach import Reach

HERE = Path(__file__).resolve().parent
TOP = HERE.parents[1]
BELOW = "drivers/infiniband/"
MAP = HERE / "map"
# Not mutated: compat code for older kernels, and the definitions of trace events
NOT_MUTATED = re.compile(r"/compat/|/trace\.[ch]$")
# A mutant may slow tests down. They have failed if they take longer than SLOWER times their time
# without a mutant plus MORE_SECONDS.
SLOWER, MORE_SECONDS = 3, 60
# The line that check prints for a test: its number, how it ended, and its time in seconds
RESULT = re.compile(r"^\S+ +(\d{3})-\S+ +(FAIL|ok) .*\((\d+|\?) s\)$", re.M)
KUNIT_FAILED = re.compile(r"^kunit: .* [1-9]\d* failed", re.M)
# After so many errors in a row, the cause is not the mutant.
ERRORS = 3
TIMEOUT = re.compile(r"^    failed: timeout$", re.M)
JUDGED = ("killed", "survived", "unfinished")


class Ended(Exception):
    """The user has interrupted this run."""


def source_texts(globs):
    """{path: text} of the files that can be mutated."""
    names = subprocess.run(["git", "-C", str(TOP), "ls-files", "-z", "--", BELOW + "*.[ch]"],
                           text=True, check=True, stdout=subprocess.PIPE).stdout.split("\0")
    return {name: (TOP / name).read_text(encoding="utf-8") for name in names
            if name and not NOT_MUTATED.search(name)
            and (not globs or any(fnmatchcase(name[len(BELOW):], g) for g in globs))}


def read_map():
    """[(operator or None, glob, [test])]"""
    lines = []
    for line in MAP.read_text(encoding="utf-8").splitlines():
        pattern, *tests = line.split("#")[0].split() or [None]
        if pattern:
            operator, _, glob = pattern.rpartition(":")
            lines.append((operator or None, glob, tests))
    return lines


def tests_of(lines, mutant):
    """(kernel, name) of all tests for a mutant."""
    found = {}
    for operator, glob, tests in lines:
        if operator in (None, mutant.operator) and fnmatchcase(mutant.path[len(BELOW):], glob):
            for test in tests:
                name, _, kernel = test.partition("@")
                found[kernel or "uml", name] = None
    return list(found)


class Outcome:
    """What became of tests: how is passed, failed, timeout or error, ran has [name, seconds] of
    each that has begun, and failed the names of those that have failed."""

    def __init__(self, how, output, ran, failed=()):
        self.how, self.output, self.ran, self.failed = how, output, ran, list(failed)


class Tests:
    """Runs tests, and knows how long each takes without a mutant."""

    def __init__(self, folder, out):
        self.file = folder / "baseline"
        self.out = out
        self.unused = {}        # those that have failed without a mutant, in this run

    def known(self):
        """{"KERNEL NAME": seconds, or None if it fails without a mutant}"""
        known = dict(self.unused)
        if self.file.exists():
            for line in self.file.read_text(encoding="utf-8").splitlines():
                known.update(json.loads(line))
        return known

    def seconds(self, kernel, name):
        """How long a test takes, as far as that is known"""
        seconds = self.known().get(f"{kernel} {name}")
        if seconds is None:
            seconds = 1 if name == "kunit" else declared_seconds(name) / 4
        return max(seconds, 1)

    def run(self, kernel, names, modules, limit, options=()):
        """Runs tests in one guest; returns their Outcome."""
        began = time.monotonic()
        if names == ["kunit"]:
            argv = [TOP / "scripts/kunit/run.sh"]
        else:
            argv = [TOP / "scripts/selftests/check", *options, *names]
        argv += ["--kernel", kernel, "--modules", modules, "--out", self.out]
        output, status = run_bounded(list(map(str, argv)), limit)
        if names == ["kunit"]:
            ran = [["kunit", round(time.monotonic() - began, 1)]]
            failed = names if KUNIT_FAILED.search(output) else []
        else:
            rows = RESULT.findall(output)
            ran = [[name, None if seconds == "?" else int(seconds)] for name, _, seconds in rows]
            failed = [name for name, how, _ in rows if how == "FAIL"]
        if status is None and not failed:
            # Which one takes so long is not known: check tells results when the guest has ended.
            return Outcome("timeout", output, [*ran, ["unknown", None]], ["unknown"])
        if failed:
            how = "timeout" if TIMEOUT.search(output) else "failed"
            return Outcome(how, output, ran, failed)
        if status == 0 and sorted(dict(ran)) == sorted(names):
            return Outcome("passed", output, ran)
        return Outcome("error", output, ran, names)

    def usable(self, kernel, names, modules):
        """Those of the tests that pass without a mutant. Each is run once to see that, by the first
        part that needs it."""
        with open(self.file, "a+", encoding="utf-8") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            known = self.known()
            new = [name for name in names if f"{kernel} {name}" not in known]
            if new:
                say(f"without a mutant, on {kernel}: " + " ".join(new))
                found = self.run(kernel, new, modules, 3600)
                if found.how != "passed":
                    say(found.output[-3000:])
                for name, seconds in found.ran:
                    if name not in found.failed:
                        print(json.dumps({f"{kernel} {name}": seconds}), file=file, flush=True)
                for name in found.failed:
                    say(f"{name} on {kernel} is not used, it fails without a mutant")
                    self.unused[f"{kernel} {name}"] = None
                known = self.known()
        return [name for name in names if known.get(f"{kernel} {name}") is not None]


def declared_seconds(name):
    """TIMEOUT of a test"""
    for path in sorted((TOP / "scripts/selftests").glob(f"*/{name}*.sh")):
        found = re.search(r"^# TIMEOUT: *(\d+)", path.read_text(encoding="utf-8"), re.M)
        return int(found[1]) if found else 60
    sys.exit(f"run.py: no test {name}")


def run_bounded(argv, seconds):
    """(output, status); after a timeout, which also ends the guests it has started, status None."""
    with subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, errors="replace",
                          start_new_session=True) as process:
        try:
            return process.communicate(timeout=seconds)[0], process.returncode
        except subprocess.TimeoutExpired:
            return end(process), None
        except BaseException:
            end(process)
            raise


def end(process):
    """Ends a process; returns its output."""
    for sign in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, sign)
            return process.communicate(timeout=60)[0]
        except ProcessLookupError:
            return process.communicate()[0]
        except subprocess.TimeoutExpired:
            pass
    return ""


def say(text):
    print(text, flush=True)


class Build:
    """The build of the modules for one kernel, in the copy of the tree that this part mutates."""

    def __init__(self, kernel, folder):
        self.kernel = kernel
        self.folder = folder / f"build-{kernel}"
        say(f"building for {kernel}")
        self.sum = self.script("prepare")
        if self.sum is None:
            sys.exit(f"run.py: the build for {kernel} fails without a mutant")
        self.clean = self.folder / "clean"
        subprocess.run(["cp", "-aT", self.folder / "modules", self.clean], check=True)

    def script(self, what):
        run = subprocess.run([HERE / "build.sh", what, self.kernel, self.folder], text=True,
                             check=False, stdout=subprocess.PIPE)
        return run.stdout.strip() if run.returncode == 0 else None

    def mutate(self, mutant, text):
        """Builds a mutant. Returns "invalid", "identical", or None if there are modules to test."""
        self.script("restore")
        (self.folder / "build" / mutant.path).write_text(mutant.apply(text), encoding="utf-8")
        found = self.script("compile")
        if found is None:
            return "invalid"
        return "identical" if found == self.sum else None


def batch_key(item):
    """Sort key: KUnit suites first, slower kernels last"""
    (kernel, kunit), _ = item
    slow = ("uml", "uml-debug").index(kernel) if kernel in ("uml", "uml-debug") else 2
    return slow, not kunit, kernel


class Part:
    """One run: its mutants and their results."""

    def __init__(self, args, texts):
        self.args = args
        self.texts = texts
        self.map = read_map()
        self.reach = Reach(Path(args.cache) / "coverage/reach", self.map)
        self.folder = folder_of(args)
        self.mine = self.folder / ("part-%dof%d" % args.part)
        self.mine.mkdir(parents=True, exist_ok=True)
        os.utime(self.folder)
        self.lock = open(self.mine / "lock", "w", encoding="utf-8")
        try:
            fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            sys.exit(f"run.py: another run has {self.mine}")
        self.tests = Tests(self.folder, self.mine / "out")
        self.builds = {}
        self.journal = {**record.of_present(record.read()[1], texts),
                        **read_journal(self.mine / "journal")}

    def wanted(self):
        """Number of mutants that this part has to test."""
        part, parts = self.args.part
        return self.args.number // parts + (part <= self.args.number % parts)

    def mutants(self):
        """The mutants of this part in order, including spare ones."""
        part, parts = self.args.part
        found = [m for m in operators.sample(self.texts, self.args.seed)
                 if not self.args.operators or m.operator in self.args.operators]
        return found[part - 1::parts]

    def batches(self, mutant):
        """[(kernel, names)]: what is run in one guest each, in order. Without any, the mutant is only
        built."""
        found = {}
        for kernel, name in self.reach.choose(tests_of(self.map, mutant), mutant,
                                              self.texts[mutant.path]):
            if not self.args.kernels or kernel.partition(":")[0] in self.args.kernels:
                found.setdefault((kernel, name == "kunit"), []).append(name)
        return [(kernel, sorted(names, key=lambda name: self.value(mutant, kernel, name)))
                for (kernel, _), names in sorted(found.items(), key=batch_key)] or [("uml", [])]

    def value(self, mutant, kernel, name):
        """Sort key of a test: how many mutants of the same directory it has killed, per second of
        its time"""
        folder = os.path.dirname(mutant.path)
        killed = sum(row.get("by") == f"{kernel} {name}" for row in self.journal.values()
                     if os.path.dirname(row["path"]) == folder)
        return -(killed + 1) / self.tests.seconds(kernel, name), name

    def build(self, kernel):
        if kernel not in self.builds:
            self.builds[kernel] = Build(kernel, self.mine)
        return self.builds[kernel]

    def judge(self, mutant):
        """Tests a mutant; returns its row of the journal, without the mutant's identity."""
        began = time.monotonic()
        kernels, ran = {}, []
        for kernel, names in self.batches(mutant):
            build = self.build(kernel.partition(":")[0])
            usable = self.tests.usable(kernel, names, build.clean)
            if names and not usable:
                continue
            if time.monotonic() - began > self.args.limit:
                return {"outcome": "unfinished", "tests": ran}
            if build.kernel not in kernels:
                kernels[build.kernel] = build.mutate(mutant, self.texts[mutant.path])
            if kernels[build.kernel] == "invalid":
                return {"outcome": "invalid"}
            if kernels[build.kernel] == "identical":
                continue
            if not usable:
                return {"outcome": "survived", "tests": []}
            limit = sum(self.tests.seconds(kernel, name) for name in usable) * SLOWER + MORE_SECONDS
            found = self.tests.run(kernel, usable, build.folder / "modules", limit,
                                   ["--until-failure"])
            if found.how == "error":
                say(found.output[-3000:])
                return {"outcome": "error", "by": f"{kernel} {usable}", "how": "not judged"}
            ran += [[kernel, *test] for test in found.ran]
            if found.failed:
                return {"outcome": "killed", "by": f"{kernel} {found.failed[0]}",
                        "how": found.how, "tests": ran, "output": found.output[-3000:]}
        if ran:
            return {"outcome": "survived", "tests": ran}
        return {"outcome": "identical" if "identical" in kernels.values() else "untested"}

    def run(self):
        """Tests all mutants; returns whether that was possible."""
        judged = errors = lost = 0
        for mutant in self.mutants():
            if judged >= self.wanted():
                break
            row = self.journal.get(mutant.identity())
            again = ("survived", "unfinished", "error") if self.args.again else ("error",)
            if row is None or record.fate(row) in again:
                row = self.add(mutant)
                errors = errors + 1 if row["outcome"] == "error" else 0
                lost += row["outcome"] == "error"
            if errors == ERRORS:
                say("ended: tests cannot be run")
                return False
            judged += row["outcome"] in JUDGED
        if judged < self.wanted():
            say(f"there are only {judged} mutants")
        return lost == 0

    def add(self, mutant):
        """Tests a mutant, and writes its result to the journal."""
        began = time.monotonic()
        row = self.judge(mutant)
        text = self.texts[mutant.path]
        row = {"id": mutant.identity(), "path": mutant.path, "line": mutant.line(text),
               "operator": mutant.operator, **row, "seconds": round(time.monotonic() - began, 1),
               "diff": mutant.diff(text)}
        self.journal[row["id"]] = row
        with open(self.mine / "journal", "a", encoding="utf-8") as file:
            print(json.dumps(row), file=file, flush=True)
        say("%-10s %-10s %s:%d  %s(%.0f s)" % (
            row["outcome"], row["operator"], row["path"][len(BELOW):], row["line"],
            f"by {row['by']}, {row['how']} " if "by" in row else "", row["seconds"]))
        return row


def read_journal(path):
    """{identity: row}. If a mutant has several rows, the last one counts. Ignores an incomplete row,
    which an interrupted run may leave."""
    rows = {}
    if path.exists():
        for line in path.read_text(encoding="utf-8").splitlines():
            try:
                row = json.loads(line)
            except ValueError:
                continue
            rows[row["id"]] = row
    return rows


def folder_of(args):
    """The directory of all parts with this seed and the present state of the drivers."""
    texts = source_texts(())
    key = hashlib.sha256(json.dumps([args.seed, sorted(texts.items())]).encode()).hexdigest()[:16]
    return Path(args.cache) / f"mutants-{key}"


def figures(rows, key):
    """Lines of a table: how many of the tested mutants were killed, grouped by key(). Equivalent ones do
    not count."""
    groups = {}
    for row in rows:
        groups.setdefault(key(row), Counter())[record.fate(row)] += 1
    for name, count in sorted(groups.items()):
        judged = sum(count[outcome] for outcome in JUDGED)
        if judged:
            yield "%-44s %4d of %4d killed, %d survived, %d unfinished" % (
                name, count["killed"], judged, count["survived"], count["unfinished"])


def all_rows(args, texts):
    """{identity: row}: what is recorded, and the journals of all parts."""
    rows = record.of_present(record.read()[1], texts)
    for path in sorted(folder_of(args).glob("part-*/journal")):
        rows.update(read_journal(path))
    return rows


def report(args, unused=()):
    folder = folder_of(args)
    folder.mkdir(parents=True, exist_ok=True)
    rows = all_rows(args, source_texts(()))
    rows = sorted(rows.values(), key=lambda row: (row["path"], row["line"]))
    left = [row for row in rows if row["outcome"] in ("survived", "unfinished")]
    late = [row["id"] for row in rows if row.get("how") == "timeout"]
    lines = []
    for row in left:
        ran = ", ".join(f"{name}@{kernel}" for kernel, name, _ in row["tests"])
        lines += [f"== {row['outcome']}: {row['id']} {row['operator']}; passed: {ran}", row["diff"],
                  *([row["answer"]] if row.get("answer") else [])]
    lines += [*figures(rows, lambda row: row["path"][len(BELOW):]), ""]
    lines += [*figures(rows, lambda row: row["operator"]), ""]
    lines += figures(rows, lambda row: "all")
    count = Counter(row["outcome"] for row in rows)
    lines.append("not counted: " + ", ".join(
        f"{count[name]} {name}" for name in ("invalid", "identical", "untested", "error")))
    if late:
        lines.append("killed by a timeout: " + ", ".join(late))
    if unused:
        lines.append("not used, they fail without a mutant: " + ", ".join(sorted(unused)))
    text = "\n".join(lines)
    (folder / "report").write_text(text + "\n", encoding="utf-8")
    say(text)
    say(f"also in {folder / 'report'}; the journals are beside it")


def part(text):
    found = re.fullmatch(r"(\d+)/(\d+)", text)
    if not found or not 1 <= int(found[1]) <= int(found[2]):
        raise argparse.ArgumentTypeError("I/N, where I is 1 to N")
    return int(found[1]), int(found[2])


def options():
    parser = argparse.ArgumentParser(usage="\n".join(__doc__.splitlines()[:2]))
    parser.add_argument("--cache", required=True)
    parser.add_argument("--number", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--part", type=part, default=(1, 1))
    parser.add_argument("--files", action="append", default=[])
    parser.add_argument("--operators", action="append", default=[])
    parser.add_argument("--kernels", action="append", default=[])
    parser.add_argument("--limit", type=int, default=1800)
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--report", action="store_true")
    parser.add_argument("--record", action="store_true")
    return parser.parse_args()


def interrupted(*_):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise Ended


def main():
    args = options()
    if args.record:
        record.write(all_rows(args, source_texts(())), args.seed)
    if args.record or args.report:
        report(args)
        return
    this = Part(args, source_texts(args.files))
    if args.list:
        for mutant in this.mutants()[:this.wanted()]:
            say(mutant.diff(this.texts[mutant.path]))
        return
    signal.signal(signal.SIGTERM, interrupted)
    done = False
    try:
        done = this.run()
    except (Ended, KeyboardInterrupt):
        say("ended; the same command goes on from here")
    report(args, this.tests.unused)
    sys.exit(0 if done else 1)


if __name__ == "__main__":
    main()
