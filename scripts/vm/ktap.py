#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""ktap.py selftest OUT NAME LABEL | kunit LOG SUITES

Evaluates the results of a guest and prints a summary and, as the last line, "TOTALS passed failed
skipped". A case may be skipped only for a reason that is in scripts/selftests/skips.
"""

import os
import re
import sys

CASE = re.compile(r"^( *)(not )?ok (\d+)(?: -)? ?(.*)$")
PLAN = re.compile(r"^( *)1\.\.(\d+)")
SKIP = re.compile(r"# SKIP\b *(.*)", re.I)
SKIPS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "selftests", "skips")


def read(path):
    try:
        with open(path, errors="replace") as f:
            return f.read()
    except OSError:
        return None


def skips():
    """The reasons that are accepted."""
    return {line for line in (read(SKIPS) or "").splitlines() if line and line[0] != "#"}


class Result:
    """Cases of one test: counts, and the reasons why it failed."""

    def __init__(self):
        self.passed = self.skipped = 0
        self.failures = []
        self.unlisted = []
        self.planned = None

    def case(self, bad, name):
        if bad:
            self.failures.append(name)
        elif SKIP.search(name):
            self.skipped += 1
            if SKIP.search(name)[1].strip() not in skips():
                self.unlisted.append("the reason is not in selftests/skips: " + name)
        else:
            self.passed += 1

    def parse(self, text):
        for line in text.splitlines():
            case, plan = CASE.match(line), PLAN.match(line)
            if case and not case[1]:
                self.case(case[2], case[4])
            elif plan and not plan[1]:
                self.planned = int(plan[2])
            elif line.startswith("Bail out!"):
                self.failures.append(line)

    def judge(self, result, dmesg, left, died):
        """Finds reasons for which a test fails although all its cases passed."""
        ran = self.passed + self.skipped + len(self.failures)
        status = result[0] if result else None
        if status is None:
            self.failures.append("the guest did not survive it")
        elif status in ("124", "137"):
            self.failures.append("timeout")
        elif self.planned is None:
            self.failures.append("died, status " + status)
        elif self.planned != ran:
            self.failures.append("planned %d cases, ran %d" % (self.planned, ran))
        elif status != "0" and not self.failures:
            self.failures.append("exit status " + status)
        elif not ran:
            self.failures.append("no case")
        self.failures += self.unlisted
        if dmesg:
            self.failures.append("the kernel log has reports")
        if left:
            self.failures.append("it left behind: " + " ".join(left.split()))
        if died is not None:
            self.failures.append("the guest ended after it, status " + died.strip())


def indent(text, limit=80):
    lines = text.splitlines()
    cut = ["    | ..."] if len(lines) > limit else []
    return "\n".join(cut + ["    | " + l for l in lines[-limit:]])


def indent_reports(text, limit=80):
    """Indents TEXT. If it is long, keeps its beginning (the reports) and its end (of the log)."""
    lines = ["    | " + l for l in text.splitlines()]
    if len(lines) > limit:
        lines[limit // 2:-limit // 2] = ["    | ..."]
    return "\n".join(lines)


def selftest(out, name, label):
    base = os.path.join(out, name)
    ktap, dmesg = read(base + ".ktap") or "", read(base + ".dmesg")
    # Status and seconds; missing or incomplete if the guest died before or during the test
    done = (read(base + ".result") or "").split()
    done = done if len(done) == 2 else None
    result = Result()
    result.parse(ktap)
    result.judge(done, dmesg, read(base + ".left"), read(base + ".died"))
    seconds = done[1] if done else "?"
    print("%-9s %-36s %s %3d passed, %d failed, %d skipped  (%s s)" % (
        label, name, "FAIL" if result.failures else "ok  ", result.passed,
        len(result.failures), result.skipped, seconds))
    for failure in result.failures:
        print("    failed: " + failure)
    if result.failures:
        print(indent(ktap))
    if dmesg:
        print(indent_reports(dmesg))
    print("TOTALS %d %d %d" % (result.passed, len(result.failures), result.skipped))
    return bool(result.failures)


class Kunit:
    """KUnit output: suites at one indent, their cases one deeper."""

    def __init__(self):
        self.suites = []
        self.name, self.cases, self.lines = None, Result(), []

    def line(self, text):
        text = re.sub(r"^\[ *[\d.]+\] ", "", text)
        case = CASE.match(text)
        sub = re.match(r"^ {4}# Subtest: (.*)", text)
        if sub:
            self.name, self.cases, self.lines = sub[1], Result(), []
        elif case and len(case[1]) == 4:
            self.cases.case(case[2], case[4])
        elif case and not case[1] and self.name:
            if case[2] and not self.cases.failures:
                self.cases.failures.append("the suite itself")
            self.cases.failures += self.cases.unlisted
            self.suites.append((self.name, self.cases, self.lines))
            self.name = None
        if self.name:
            self.lines.append(text)

    def end(self):
        if self.name:
            self.cases.failures.append("the suite did not end")
            self.suites.append((self.name, self.cases, self.lines))


def kunit(log, suites):
    """SUITES: the number of suites; those that are not in the log have failed."""
    parser = Kunit()
    for line in (read(log) or "").splitlines():
        parser.line(line)
    parser.end()
    totals = [0, 0, 0]
    for name, cases, lines in parser.suites:
        counts = (cases.passed, len(cases.failures), cases.skipped)
        totals = [a + b for a, b in zip(totals, counts)]
        print("kunit     %-36s %s %3d passed, %d failed, %d skipped" % (
            (name, "FAIL" if cases.failures else "ok  ") + counts))
        if cases.failures:
            print(indent("\n".join(lines)))
    if len(parser.suites) != suites:
        totals[1] += 1
        print("kunit     %d suites, but the log has %d" % (suites, len(parser.suites)))
    print("TOTALS %d %d %d" % tuple(totals))
    return totals[1] != 0 or totals[0] == 0


def main():
    if sys.argv[1] == "selftest":
        return selftest(*sys.argv[2:5])
    return kunit(sys.argv[2], int(sys.argv[3]))


sys.exit(main())
