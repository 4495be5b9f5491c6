# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Used in the guest by io.py and apart/windows.py: fio, and what it has transferred."""

import os
import subprocess
import sys
import time

MIB = 128
# fio starts slowly; it is measured when it has transferred something, and some time after that.
PATIENCE = 30 * int(os.environ.get("KIW_SLOW", "1"))


def bytes_of_disk(path):
    with open(f"/sys/block/{os.path.basename(path)}/stat", encoding="ascii") as file:
        fields = file.read().split()
    return (int(fields[2]) + int(fields[6])) * 512


def bytes_of_mount(path):
    """Bytes read and written with O_DIRECT."""
    mount = os.path.dirname(path)
    with open("/proc/self/mountstats", encoding="ascii") as file:
        for line in file:
            if line.startswith("device "):
                mine = f" mounted on {mount} " in line
            elif mine and line.strip().startswith("bytes:"):
                fields = line.split()
                return int(fields[3]) + int(fields[4])
    sys.exit(f"no statistics of {mount}")


def bytes_of(path):
    """Bytes that the client has read from PATH and written to it."""
    return bytes_of_disk(path) if path.startswith("/dev/") else bytes_of_mount(path)


def start(path, seconds, options):
    return subprocess.Popen(
        ["fio", "--name=x", f"--filename={path}", f"--size={MIB}M", "--direct=1",
         "--ioengine=libaio", "--time_based", f"--runtime={seconds}", "--norandommap",
         "--randrepeat=0", "--output-format=json", "--percentile_list=50:99", *options],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def wait_for_data(job, path, begin):
    """Waits until the bytes of PATH, which were BEGIN before, increase."""
    deadline = time.monotonic() + PATIENCE
    while bytes_of(path) == begin:
        if time.monotonic() > deadline or job.poll() is not None:
            sys.exit(f"fio does nothing: {job.communicate()[0]}")
        time.sleep(0.05)
