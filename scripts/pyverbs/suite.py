#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""suite.py DEVICE NETDEV LIST RESULTS [--quick] [--connect]

Runs in a guest: runs rdma-core's own tests, as the distribution ships them, against DEVICE, and
writes a line per test to RESULTS: its name, its result (pass, skip, fail, error), and the reason.
With --quick, tests that LIST marks as slow are left out. With --connect, QPs that the tests connect
with ibv_modify_qp are connected by rdma_cm (connected.py).

The files of the suite are unmodified. This program works around what they assume and an iWARP
device does not have:

- They look up a device's address by its parent in sysfs, which devices on top of a netdev do not
  have. So they are given NETDEV.
- They drop GIDs one half of which is zero, as in those of iWARP. So they are told to use GID 0.
- Some choose parameters at random. So each test begins with its own seed, and does the same to
  every device. SEED is such that the parameters of RC QPs are within the limits of libsiw.
- A test that is skipped leaves reference cycles behind. pyverbs crashes if the garbage collector
  frees a device before the objects made on it. So nothing is collected, not even at the end.
- A test that hangs would keep all others from running. So each test has LIMIT seconds.
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

import connected
import expected

SUITE = "/usr/share/doc/rdma-core/tests"
SEED = "c"
LIMIT = 40 * int(os.environ.get("KIW_SLOW", "1"))


class Late(Exception):
    """A test has exceeded its time limit."""


def too_late(*_):
    raise Late(f"no end within {LIMIT} s")


def load(device, netdev, options):
    """Loads the suite as its own run_tests.py does, and tells it which device to use."""
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
    if "--connect" in options:
        connected.replace(sys.modules["tests.base"], case.get_ip_mac_address(netdev)[0])
    return unittest.defaultTestLoader.loadTestsFromModule(module)


def each(suite):
    """The tests in a suite of suites."""
    for one in suite:
        if isinstance(one, unittest.TestSuite):
            yield from each(one)
        else:
            yield one


class Result(unittest.TestResult):
    """Records the result of each test."""

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
        connected.forget()
        super().stopTest(test)

    def put(self, test, outcome, why=""):
        why = re.sub(r"\s+", " ", str(why))[:200]
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
    options = sys.argv[5:]
    slow = expected.read(listed).slow if "--quick" in options else lambda name: False
    signal.signal(signal.SIGALRM, too_late)
    gc.disable()
    resource.setrlimit(resource.RLIMIT_NOFILE, (8192, 8192))
    # Those of rdma_cm fork, which they cannot once this process uses librdmacm (connected.py).
    tests = sorted(each(load(device, netdev, options)), key=lambda test: "rdmacm" not in test.id())
    with open(results, "w", encoding="utf-8") as file:
        result = Result(file)
        for test in tests:
            if not slow(result.name(test)):
                test(result)
    os._exit(0)     # pylint: disable=protected-access


if __name__ == "__main__":
    main()
