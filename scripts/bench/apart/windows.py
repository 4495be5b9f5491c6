#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""windows.py COUNT MS PORT HOST,... FILE|busy|idle [OPTION...]: runs on host a of apart.sh. Divides
time into COUNT windows of MS milliseconds. At the beginning of the first, and at the end of each,
tells each of the HOSTs to mark it (mark.c), and prints WINDOW, the time in seconds, the bytes that
fio has transferred so far, and the packets that eth0 has sent and received. Meanwhile fio reads or
writes FILE, a disk or a file on NFS, with the OPTIONs; or a process of this host does nothing but
run, or nothing does."""

import contextlib
import socket
import subprocess
import sys
import time

import fio

# Windows at the beginning that are not counted
WARM_UP = 1
PACKETS = [f"/sys/class/net/eth0/statistics/{way}_packets" for way in ("tx", "rx")]
# Of one run of fio, which is stopped
SECONDS_MAX = 3600


class Marks:
    """What marks windows at all hosts."""

    def __init__(self, hosts, port):
        self.sockets = []
        for host in hosts:
            one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            one.settimeout(fio.PATIENCE)
            one.connect((host, port))
            self.sockets.append(one)

    def set(self):
        for one in self.sockets:
            one.send(b"?")
            one.recv(1)


def number(path):
    with open(path, encoding="ascii") as file:
        return int(file.read())


@contextlib.contextmanager
def load(path, options):
    """Something for the hosts to do."""
    command = {"busy": ["sh", "-c", "while :; do :; done"], "idle": ["sleep", str(SECONDS_MAX)]}
    begin = 0 if path in command else fio.bytes_of(path)
    with (subprocess.Popen(command[path]) if path in command else
          fio.start(path, SECONDS_MAX, options)) as job:
        try:
            if path not in command:
                fio.wait_for_data(job, path, begin)
            yield
            if job.poll() is not None:
                sys.exit(f"{path}: the load has ended early: {job.communicate()[0]}")
        finally:
            job.terminate()
            job.communicate()


def main():
    count, ms, port = map(int, sys.argv[1:4])
    hosts, path, *options = sys.argv[4:]
    marks = Marks(hosts.split(","), port)
    with load(path, options):
        time.sleep(WARM_UP * ms / 1000)
        for mark in range(count + 1):
            if mark:
                time.sleep(ms / 1000)
            done = 0 if path in ("busy", "idle") else fio.bytes_of(path)
            packets = [number(name) for name in PACKETS]
            marks.set()
            print("WINDOW", time.monotonic(), done, *packets, flush=True)


main()
