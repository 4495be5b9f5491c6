#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Hosts a and b connect to each other at the same time: ip_crossing.py ROUNDS

In each round, both kip0 end all connections, and then both hosts send pings. They have to be
answered, the hosts have to end up with the same single connection, and five more pings have to be
answered over it. The listener that was seen may have been the old one, which refuses Requests: some
time later, another ping makes the next one. Ends with an error when something is not as it should
be in KIW_SLOW times 5 s.

In each host is an agent, because starting a process for each step would take most of the time.
"""

import contextlib
import os
import subprocess
import sys
import time

import ip_sizes

SECONDS = 5 * float(os.environ.get("KIW_SLOW", "1"))
PORT = "FCF3"
ESTABLISHED, LISTEN = "01", "0A"
ADDRESSES = {"a": "10.9.0.1", "b": "10.9.0.2"}
DEPTH = "/sys/class/net/kip0/kiwarp_ip/rx_depth"


# --- the agent -----------------------------------------------------------------------

def sockets(state):
    """The addresses of the link's TCP sockets in that state, local and remote."""
    with open("/proc/net/tcp", encoding="ascii") as file:
        rows = [line.split() for line in file][1:]
    return [(row[1], row[2]) for row in rows
            if row[3] == state and PORT in (row[1][-4:], row[2][-4:])]


def renew():
    with open(DEPTH, "w", encoding="ascii") as file:
        file.write("32")


def agent(peer):
    pinger = ip_sizes.Pinger(peer, SECONDS)
    do = {"renew": renew, "listeners": lambda: sockets(LISTEN),
          "connections": lambda: sockets(ESTABLISHED), "ping": lambda: pinger.run([56]),
          "five pings": lambda: pinger.run(range(60, 65))}
    for line in sys.stdin:
        try:
            said = do[line.strip()]() or []
        except OSError as error:
            said = [("error", f"{line.strip()}: {error}")]
        print(";".join(",".join(pair) for pair in said), flush=True)


# --- the test ------------------------------------------------------------------------

class Failure(Exception):
    pass


class Hosts:
    """The agents of both hosts."""

    def __init__(self, stack):
        self.agents = {host: stack.enter_context(subprocess.Popen(
            ["ip", "netns", "exec", host, sys.executable, __file__, "agent", peer],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
            for host, peer in (("a", ADDRESSES["b"]), ("b", ADDRESSES["a"]))}
        stack.callback(self.end)

    def end(self):
        for process in self.agents.values():
            process.stdin.close()

    def both(self, what):
        """Both do it at the same time; what each has said."""
        for process in self.agents.values():
            process.stdin.write(what + "\n")
            process.stdin.flush()
        said = [process.stdout.readline() for process in self.agents.values()]
        if not all(said):
            raise Failure(f"{what}: an agent has ended")
        said = [[tuple(pair.split(",")) for pair in line.strip().split(";") if pair]
                for line in said]
        for host, pairs in zip(self.agents, said):
            if pairs and pairs[0][0] == "error":
                raise Failure(f"{host}: {pairs[0][1]}")
        return said

    def wait(self, what, is_right, meanwhile=None):
        end = time.monotonic() + SECONDS
        while not is_right(*(said := self.both(what))):
            if time.monotonic() > end:
                raise Failure(f"{what}: {said}")
            if meanwhile:
                self.both(meanwhile)
            time.sleep(0.005)


def is_the_same(of_a, of_b):
    return len(of_a) == len(of_b) == 1 and of_a[0] == of_b[0][::-1]


def one_round(hosts):
    hosts.both("renew")
    hosts.wait("listeners", lambda of_a, of_b: of_a and of_b)
    hosts.both("ping")
    hosts.wait("connections", is_the_same, meanwhile="ping")
    hosts.both("five pings")


def main(rounds):
    with contextlib.ExitStack() as stack:
        hosts = Hosts(stack)
        for number in range(1, rounds + 1):
            try:
                one_round(hosts)
            except Failure as failure:
                print(f"round {number}: {failure}")
                return 1
    print(f"{rounds} rounds")
    return 0


if __name__ == "__main__":
    if sys.argv[1] == "agent":
        agent(sys.argv[2])
    else:
        sys.exit(main(int(sys.argv[1])))
