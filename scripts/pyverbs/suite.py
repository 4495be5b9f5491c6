#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""suite.py DEVICE NETDEV LIST RESULTS [--quick]

In a guest: runs rdma-core's own tests, as the distribution ships them, against DEVICE,
and writes a line per test to RESULTS: its name, how it ended (pass, skip, fail, error), why.
With --quick not those that LIST says are slow.

The files of the suite are unmodified. What they take for granted and iWARP does not have
is arranged from here:

- They find a device's address by its parent in sysfs, which devices on top of a netdev
  do not have: they are told NETDEV.
- They drop GIDs with a zero half, which those of iWARP have: they are told to use GID 0.
- Some take their parameters at random: each test begins with a seed of its own, so that it
  does the same to every device. With SEED those of RC QPs want nothing libsiw does not have.
- A test that is skipped leaves cycles of objects behind. pyverbs crashes when the collector
  happens to free a device before what was made on it: nothing is collected, not at the end either.
- A test that does not end would keep all others from running: it has LIMIT seconds.
"""

import gc
import os
import random
import re
import resource
import signal
import sys
import unittest
from importlib.machinery import SourceFileLoader

import expected

SUITE = "/usr/share/doc/rdma-core/tests"
SEED = "c"
LIMIT = 40 * int(os.environ.get("KIW_SLOW", "1"))


class Late(Exception):
    """A test took more than its time."""


def too_late(*_):
    raise Late(f"no end within {LIMIT} s")


def load(device, netdev):
    """The suite as its own run_tests.py loads it, and told about the device."""
    sys.path.insert(0, SUITE)
    sys.argv[1:] = ["--dev", device, "--gid", "0"]
    from args_parser import parser  # pylint: disable=import-error,import-outside-toplevel
    parser.parse_args()
    # pylint: disable-next=deprecated-method,no-value-for-parameter
    module = SourceFileLoader("tests", SUITE + "/__init__.py").load_module()
    case = sys.modules["tests.base"].RDMATestCase

    def get_ip_mac(self, dev, port, idx):
        self.args.append([dev, port, idx, *self.get_ip_mac_address(netdev)])

    case._get_ip_mac = get_ip_mac   # pylint: disable=protected-access
    return unittest.defaultTestLoader.loadTestsFromModule(module)


def each(suite):
    """The tests in a suite of suites."""
    for one in suite:
        if isinstance(one, unittest.TestSuite):
            yield from each(one)
        else:
            yield one


class Result(unittest.TestResult):
    """Writes down how each test ended."""

    def __init__(self, file):
        super().__init__()
        self.file = file

    @staticmethod
    def name(test):
        return test.id().removeprefix("tests.")

    def startTest(self, test):
        super().startTest(test)
        random.seed(SEED + self.name(test))
        with open("/dev/kmsg", "w", encoding="ascii") as log:
            log.write(f"pyverbs: {self.name(test)}\n")
        signal.alarm(LIMIT)

    def stopTest(self, test):
        signal.alarm(0)
        super().stopTest(test)

    def put(self, test, outcome, why=""):
        why = re.sub(r"\s+", " ", str(why))
        print(self.name(test), outcome, why, file=self.file, flush=True)

    def addSuccess(self, test):
        self.put(test, "pass")

    def addSkip(self, test, reason):
        self.put(test, "skip", reason)

    def addFailure(self, test, err):
        self.put(test, "fail", f"{err[0].__name__}: {err[1]}")

    def addError(self, test, err):
        self.put(test, "error", f"{err[0].__name__}: {err[1]}")


def main():
    device, netdev, listed, results = sys.argv[1:5]
    slow = expected.read(listed).slow if "--quick" in sys.argv else lambda name: False
    signal.signal(signal.SIGALRM, too_late)
    gc.disable()
    resource.setrlimit(resource.RLIMIT_NOFILE, (8192, 8192))
    with open(results, "w", encoding="utf-8") as file:
        result = Result(file)
        for test in each(load(device, netdev)):
            if not slow(result.name(test)):
                test(result)
    os._exit(0)     # pylint: disable=protected-access


if __name__ == "__main__":
    main()
