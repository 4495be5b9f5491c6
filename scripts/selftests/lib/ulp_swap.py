#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Uses more memory than there is, each page with its own number, and compares: ulp_swap.py MIB."""

import mmap
import sys

PAGE = 4096


def main():
    """0 if each page is as it was written."""
    size = int(sys.argv[1]) << 20
    memory = mmap.mmap(-1, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    for turn in range(2):
        for at in range(0, size, PAGE):
            memory[at:at + 8] = (at * 7 + turn).to_bytes(8, "little")
        for at in range(0, size, PAGE):
            if memory[at:at + 8] != (at * 7 + turn).to_bytes(8, "little"):
                print(f"page {at // PAGE} is wrong in turn {turn}")
                return 1
    return 0


sys.exit(main())
