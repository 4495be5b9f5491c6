#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Prints "tsc_early_khz=N", for the command line of an emulated guest: the frequency of this
machine's time stamp counter, which is also the guest's.

A guest that measures the frequency with its timer chip gets it wrong if the machine is busy at that
moment. One guest in a hundred measured 0.5 GHz instead of 2.6. Its clock then ran five times too
fast, and its timeouts expired early. Prints nothing if the machine has no such counter.
"""

import ctypes
import mmap
import platform
import time

# rdtsc; shl $32, %rdx; or %rdx, %rax; ret
RDTSC = b"\x0f\x31\x48\xc1\xe2\x20\x48\x09\xd0\xc3"


def counter(page):
    """A function, in that page, that reads the counter."""
    page.write(RDTSC)
    code = ctypes.addressof(ctypes.c_char.from_buffer(page))
    return ctypes.CFUNCTYPE(ctypes.c_uint64)(code)


def moment(read):
    """(ns, ticks) at one moment; of several tries, the one that was interrupted least."""
    tries = []
    for _ in range(20):
        before = time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)
        ticks = read()
        after = time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)
        tries.append((after - before, before, ticks))
    return min(tries)[1:]


def main():
    if platform.machine() != "x86_64":
        return
    page = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    read = counter(page)
    first_ns, first = moment(read)
    time.sleep(0.05)
    last_ns, last = moment(read)
    print(f"tsc_early_khz={(last - first) * 1000000 // (last_ns - first_ns)}")


main()
