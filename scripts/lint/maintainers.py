#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Every file has an entry in MAINTAINERS, and every entry matches a file."""

import re

import source


def entries(tree):
    """Line numbers and patterns; a directory ends with a slash."""
    for number, line in enumerate(tree.lines("MAINTAINERS"), 1):
        match = re.match(r"F:\s+(\S+)$", line)
        if match:
            yield number, match[1]


def is_of(path, pattern):
    return path.startswith(pattern) if pattern.endswith("/") else path == pattern


def check(tree):
    if "MAINTAINERS" not in tree.files:
        return
    known = list(entries(tree))
    for path in tree.files:
        if not any(is_of(path, pattern) for _, pattern in known):
            yield f"{path}:1: no entry in MAINTAINERS"
    for number, pattern in known:
        if not any(is_of(path, pattern) for path in tree.files):
            yield f"MAINTAINERS:{number}: no file is {pattern}"


if __name__ == "__main__":
    source.run(check)
