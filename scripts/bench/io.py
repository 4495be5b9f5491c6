#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""io.py FILE MS OPTION...: runs in the guest. fio reads or writes FILE, a disk or a file on NFS, with
the OPTIONs. While it does so, measures for MS milliseconds what the guest transfers and, by asking
the host, how much CPU time the guest needs for it. So fio's start and end do not count. Prints the
result as a line of JSON to file descriptor 3."""

import json
import os
import sys
import time
import tty

import fio

WARM_SECONDS = 0.3


class Host:
    """Knows how much CPU time the guest has had."""

    def __init__(self, path):
        self.file = path and os.open(path, os.O_RDWR | os.O_NOCTTY)
        if path:
            tty.setraw(self.file)

    def ask(self):
        """Microseconds that the guest ran, in user mode, in the host's kernel, and waited."""
        if not self.file:
            return [0.0] * 4
        os.write(self.file, b"?\n")
        answer = b""
        while not answer.endswith(b"\n"):
            answer += os.read(self.file, 256)
        return [float(value) for value in answer.split()]


def percentiles(said):
    """Of both directions, as each run has one only"""
    job = json.loads(said[said.index("{"):])["jobs"][0]
    if job["error"]:
        sys.exit(f"fio: error {job['error']}")
    one = max((job["read"], job["write"]), key=lambda part: part["total_ios"])
    found = one["clat_ns"]["percentile"]
    return {f"io_p{int(float(key))}_us": value / 1000 for key, value in found.items()}


def main():
    path, wanted = sys.argv[1], int(sys.argv[2]) / 1000
    options = sys.argv[3:]
    size = next(int(one[5:]) for one in options if one.startswith("--bs="))
    host = Host(os.environ.get("KIW_STAMPS"))
    begin = fio.bytes_of(path)
    # The guest may have only a part of a CPU.
    with fio.start(path, int(wanted * 3 + 2), options) as job:
        fio.wait_for_data(job, path, begin)
        time.sleep(WARM_SECONDS)
        before, start, done = host.ask(), time.monotonic(), fio.bytes_of(path)
        time.sleep(wanted)
        done, wall, after = fio.bytes_of(path) - done, time.monotonic() - start, host.ask()
        if job.poll() is not None:
            sys.exit("fio has ended early")
        said = job.communicate()[0]
    run, user, system, delay = (late - early for late, early in zip(after, before))
    result = {"wall_us": wall * 1e6, "run_us": run, "user_us": user, "sys_us": system,
              "delay_us": delay, "ops": done / size, "bytes": done, **percentiles(said)}
    os.write(3, (json.dumps(result) + "\n").encode())


main()
