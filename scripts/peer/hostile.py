# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Many connections that all fail: python3 -m peer hostile ADDRESS [OPTIONS].

Uses every fault in turn, on several connections at a time, each in a random variation. The
reactions of the other end are counted. They are not judged, except that what it sends must be
well-formed and that some are Terminates: an end that answers nothing has not seen the faults. The
caller has to check the other end.
"""

import argparse
import collections
import itertools
import json
import random
import threading
import time

from peer import cli, ddp, faults, mpa, rdmap, startup

ROUNDS_AT_LEAST = 100
VARIATIONS = ("--rev 2", "--rev 1", "--rev 2 --p2p", "--rev 2 --crc off", "--rev 2 --markers rx",
              "--rev 0 --markers rx", "--rev 2 --segments 1-7", "--rev 1 --pdata 00112233")


def _is_malformed(failure):
    """Whether the other end has sent something malformed. No fault of ours is a reason for that."""
    return isinstance(failure, (mpa.MpaError, ddp.DdpError, rdmap.RdmapError)) and \
        not isinstance(failure, rdmap.Misplaced)


def _words(opt, number):
    """The options of connection NUMBER: all faults in turn, then all in another variation."""
    names = sorted((*startup.NAMES, *faults.FIRST))
    rand = random.Random(opt.seed * 1000003 + number)
    return ["client", opt.address, "--port", str(opt.port), "--timeout", "0.5", "--any-markers",
            "--fault", names[number % len(names)], *rand.choice(VARIATIONS).split()]


class Storm:
    """All the connections, and their results."""

    def __init__(self, opt):
        self.opt = opt
        self.end = time.monotonic() + opt.seconds
        self.numbers = itertools.count()
        self.lock = threading.Lock()
        self.outcomes = collections.Counter()
        self.broken = []

    def _one(self, number):
        words = _words(self.opt, number)
        case = cli.Case(cli.parser().parse_args(words), lambda _: None)
        try:
            case.run()
            if _is_malformed(case.failure):
                raise case.failure
            return case.outcome or type(case.failure).__name__
        except Exception as err:    # pylint: disable=broad-except
            self.broken.append(f"{' '.join(words)}: {type(err).__name__}: {err}")
            return "broken"

    def work(self):
        while True:
            with self.lock:
                number = next(self.numbers)
            if number >= self.opt.rounds or \
                    (number >= ROUNDS_AT_LEAST and time.monotonic() > self.end):
                return
            outcome = self._one(number)
            with self.lock:
                self.outcomes[outcome] += 1


def main(argv):
    p = argparse.ArgumentParser(prog="peer hostile", description=__doc__)
    p.add_argument("address")
    p.add_argument("--port", type=int, default=cli.PORT)
    p.add_argument("--rounds", type=int, default=1000)
    p.add_argument("--seconds", type=int, default=3600,
                   help=f"begin no more after that, but {ROUNDS_AT_LEAST} in any case")
    p.add_argument("--threads", type=int, default=8)
    p.add_argument("--seed", type=int, default=1)
    storm = Storm(p.parse_args(argv))
    cli.in_threads(storm.work, storm.opt.threads)
    if not any(outcome.startswith("term:") for outcome in storm.outcomes):
        storm.broken.append("no Terminate")
    print(json.dumps({"event": "hostile", "rounds": storm.outcomes.total(),
                      "outcomes": dict(storm.outcomes), "broken": storm.broken[:10]}))
    return 1 if storm.broken else 0
