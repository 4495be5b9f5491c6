#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""ip_copies.py receive BROADCASTS STAY FIRST: waits until each of the addresses 10.77.0.FIRST to
10.77.0.FIRST+STAY-1 has got that many broadcasts, and tells how many are missing, or came twice.
ip_copies.py send BROADCASTS GO STAY FIRST PEERS: lists GO nodes, and behind them those of the other
end, in the file PEERS of kip0. Then it sends that many broadcasts, during each of which one of the
former is removed, until they are gone."""

import collections
import ipaddress
import os
import random
import socket
import sys
import time

PORT = 64755            # of kip0
BROADCAST = ("10.9.0.255", 9)
MARK = b"copy"          # before the number of a broadcast, at the end of its datagram
# After so many times so many seconds without a datagram there will be no more. A clock that leaps
# ends one of these times only.
TIMES, QUIET = 5, 3 * float(os.environ.get("KIW_SLOW", "1"))
BUFFER = 32 << 20
SO_RCVBUFFORCE, IP_PKTINFO = 33, 8    # linux/socket.h, linux/in.h
LONGEST = 0.002         # seconds between a broadcast and the removal: UDP sends copies for as long


def address(number):
    return str(ipaddress.ip_address("10.77.0.0") + number)


def receive(broadcasts, stay, first):
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, BUFFER)
    sock.setsockopt(socket.IPPROTO_IP, IP_PKTINFO, 1)
    sock.bind(("", PORT))
    sock.settimeout(QUIET)
    print("listens", flush=True)
    got = {address(first + n): collections.Counter() for n in range(stay)}
    times = TIMES
    while times:
        if all(len(counts) == broadcasts for counts in got.values()):
            # One that comes twice may come last
            sock.settimeout(QUIET / 3)
            times = min(times, 1)
        try:
            data, anc, _, _ = sock.recvmsg(4096, 64)
        except TimeoutError:
            times -= 1
            continue
        to = socket.inet_ntoa(anc[0][2][8:12])      # in_pktinfo.ipi_addr
        if data[-8:-4] == MARK and to in got:
            got[to][data[-4:]] += 1
            times = TIMES
    missing = sum(broadcasts - len(counts) for counts in got.values())
    twice = sum(counts.total() - len(counts) for counts in got.values())
    print(f"of {broadcasts * stay} copies, {missing} are missing, {twice} came twice", flush=True)
    return bool(missing or twice)


def send(broadcasts, go, stay, first, peers):
    rng = random.Random(broadcasts)

    def change(sign, number):
        with open(peers, "w", encoding="ascii") as file:
            file.write(f"{sign}{address(number)}")

    # Those that go are the other end, too: what is sent to them waits for no address.
    for number in range(first, first + go + stay):
        change("+", number)
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
    for number in range(broadcasts):
        sock.sendto(MARK + number.to_bytes(4, "big"), BROADCAST)
        end = time.monotonic() + rng.uniform(0, LONGEST)
        while time.monotonic() < end:
            pass
        if number < go:
            change("-", first + number)
    return 0


def main(what, *args):
    words = [int(arg) if arg.isdigit() else arg for arg in args]
    return {"receive": receive, "send": send}[what](*words)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
