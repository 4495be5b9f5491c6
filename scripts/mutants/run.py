#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""run.py --cache DIR [--number N] [--seed S] [--part I/N] [--files GLOB]... [--operators NAME]...
       [--kernels NAME]... [--limit SECONDS] [--again] [--list] [--report] [--record]

Makes mutants of the drivers, one at a time, and runs the tests that the map lists for the file
until one fails. A mutant that does not compile, or compiles to the same code, does not count, and
another one takes its place. The result of each mutant is written to a journal; a run that was
interrupted continues there. What scripts/mutants/record has of a file that has not changed since
is not tested again. Prints a line per mutant and, at the end, totals and the survivors.

N mutants (20) are drawn with seed S (1). With --part I/N, only every Nth of them is tested, so that
several runs, at once or one after the other, test all. --files, --operators: only mutants of these
files (below drivers/infiniband) or operators (operators.py). --kernels: only tests on these
kernels. --limit: starts no further test of a mutant after so many seconds (1800). --again: tests
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

HERE = Path(__file__).resolve().parent
TOP = HERE.parents[1]
BELOW = "drivers/infiniband/"
MAP = HERE / "map"
# Not mutated: compat code for older kernels, and the definitions of trace events
NOT_MUTATED = re.compile(r"/compat/|/trace\.[ch]$")
# A mutant may slow a test down. The test has failed if it takes longer than SLOWER times its time
# without a mutant plus MORE_SECONDS.
SLOWER, MORE_SECONDS = 3, 60
# Output of a test that has failed
FAILED = re.compile(r" FAIL |^kunit: .* [1-9]\d* failed", re.M)
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

    def cost(self, test):
        """Sort key of a test: slower kernels come last."""
        kernel, name = test
        seconds = self.known().get(f"{kernel} {name}")
        if seconds is None:
            seconds = 1 if name == "kunit" else declared_seconds(name) / 4
        return ("uml", "uml-debug").index(kernel) if kernel in ("uml", "uml-debug") else 2, seconds

    def run(self, test, modules, limit):
        """(outcome, output, seconds); the outcome is passed, failed, timeout or error."""
        kernel, name = test
        if name == "kunit":
            argv = [TOP / "scripts/kunit/run.sh"]
        else:
            argv = [TOP / "scripts/selftests/check", name]
        began = time.monotonic()
        argv += ["--kernel", kernel, "--modules", modules, "--out", self.out]
        output, status = run_bounded(list(map(str, argv)), limit)
        seconds = time.monotonic() - began
        if status is None:
            return "timeout", output, seconds
        if status == 0:
            return "passed", output, seconds
        if TIMEOUT.search(output):
            return "timeout", output, seconds
        return "failed" if FAILED.search(output) else "error", output, seconds

    def baseline(self, test, modules):
        """Seconds that a test takes without a mutant, or None if it fails. Measured once, by the
        first part that needs it."""
        name = " ".join(test)
        with open(self.file, "a+", encoding="utf-8") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            known = self.known()
            if name not in known:
                say(f"without a mutant: {name}")
                outcome, output, seconds = self.run(test, modules, 1800)
                if outcome != "passed":
                    say(f"{name} is not used, it fails without a mutant:\n{output[-2000:]}")
                    self.unused[name] = None
                    return None
                known[name] = round(seconds, 1)
                print(json.dumps({name: known[name]}), file=file, flush=True)
        return known[name]


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


class Part:
    """One run: its mutants and their results."""

    def __init__(self, args, texts):
        self.args = args
        self.texts = texts
        self.map = read_map()
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
        self.journal = {**record.of_present(record.read(), args.seed, texts),
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

    def tests_for(self, mutant):
        return [test for test in tests_of(self.map, mutant)
                if not self.args.kernels or test[0].partition(":")[0] in self.args.kernels]

    def build(self, kernel):
        if kernel not in self.builds:
            self.builds[kernel] = Build(kernel, self.mine)
        return self.builds[kernel]

    def judge(self, mutant):
        """Tests a mutant; returns its row of the journal, without the mutant's identity."""
        began = time.monotonic()
        kernels, ran = {}, []
        for test in sorted(self.tests_for(mutant), key=self.tests.cost):
            build = self.build(test[0].partition(":")[0])
            usual = self.tests.baseline(test, build.clean)
            if usual is None:
                continue
            if time.monotonic() - began > self.args.limit:
                return {"outcome": "unfinished", "tests": ran}
            if build.kernel not in kernels:
                kernels[build.kernel] = build.mutate(mutant, self.texts[mutant.path])
            if kernels[build.kernel] == "invalid":
                return {"outcome": "invalid"}
            if kernels[build.kernel] == "identical":
                continue
            outcome, output, seconds = self.tests.run(
                test, build.folder / "modules", usual * SLOWER + MORE_SECONDS)
            if outcome == "error":
                say(output[-3000:])
                return {"outcome": "error", "by": " ".join(test), "how": "not judged"}
            ran.append([*test, round(seconds, 1)])
            if outcome != "passed":
                return {"outcome": "killed", "by": " ".join(test), "how": outcome, "tests": ran,
                        "output": output[-3000:]}
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
            if row is None or row["outcome"] in again:
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
    """Lines of a table: how many of the tested mutants were killed, grouped by key()."""
    groups = {}
    for row in rows:
        groups.setdefault(key(row), Counter())[row["outcome"]] += 1
    for name, count in sorted(groups.items()):
        judged = sum(count[outcome] for outcome in JUDGED)
        if judged:
            yield "%-44s %4d of %4d killed, %d survived, %d unfinished" % (
                name, count["killed"], judged, count["survived"], count["unfinished"])


def all_rows(args, texts):
    """{identity: row}: what is recorded, and the journals of all parts."""
    rows = record.of_present(record.read(), args.seed, texts)
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
        record.write(all_rows(args, source_texts(())), args.seed, source_texts(()))
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
