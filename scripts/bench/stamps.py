#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""stamps.py [--cpus] PID FROM TO LOG: tells a guest how much of the host's CPU it has had.

For each line read from FROM, writes a line to TO. It has four numbers, in microseconds: how long
the guest, the child of PID, has run; how much of that was in user mode, and how much in the host's
kernel (both are counted in ticks, so they are coarse); and how long the guest was ready to run
while something else ran. LOG gets the time of each line. With --cpus, the child of PID is QEMU, and
there are two numbers for each CPU of its guest: how long it ran, and how long it was ready to run.
"""

import os
import sys
import time

TICK_US = 1e6 / os.sysconf("SC_CLK_TCK")


def processes():
    """(pid, fields of stat after the name) of all processes."""
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat", encoding="ascii", errors="replace") as file:
                fields = file.read().rpartition(")")[2].split()
        except OSError:
            continue
        yield name, fields


def schedule(pid):
    """Nanoseconds for which the threads of a process ran, and for which they waited for a CPU."""
    ran = waited = 0
    for task in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{task}/schedstat", encoding="ascii") as file:
            values = file.read().split()
        ran += int(values[0])
        waited += int(values[1])
    return ran, waited


def cpus(guest):
    numbers = []
    for task in sorted(os.listdir(f"/proc/{guest}/task"), key=int):
        with open(f"/proc/{guest}/task/{task}/comm", encoding="ascii") as file:
            if not file.read().startswith("CPU "):
                continue
        with open(f"/proc/{guest}/task/{task}/schedstat", encoding="ascii") as file:
            numbers += [f"{int(value) / 1e3:.1f}" for value in file.read().split()[:2]]
    return " ".join(numbers) + "\n"


def session(parent):
    """The session of the guest, which leads it and has all of its processes in it."""
    return next(name for name, fields in processes() if fields[1] == parent)


def stamp(guest):
    run = user = system = delay = 0
    for pid, fields in processes():
        if fields[3] != guest:
            continue
        try:
            ran, waited = schedule(pid)
        except OSError:
            continue
        run += ran / 1e3
        delay += waited / 1e3
        user += int(fields[11]) * TICK_US
        system += int(fields[12]) * TICK_US
    return f"{run:.1f} {user:.0f} {system:.0f} {delay:.1f}\n"


def main():
    args, guest, ask = sys.argv[1:], None, stamp
    if args[0] == "--cpus":
        args, ask = args[1:], cpus
    with open(args[1], "rb", buffering=0) as requests, \
            open(args[2], "wb", buffering=0) as answers, \
            open(args[3], "w", encoding="ascii") as log:
        while True:
            data = requests.read(256)
            if not data:
                return
            guest = guest or session(args[0])
            for _ in range(data.count(b"\n")):
                print(f"{time.clock_gettime(time.CLOCK_MONOTONIC):.6f}", file=log, flush=True)
                answers.write(ask(guest).encode())


main()
