#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Every non-static function has a kernel-doc block directly above its definition,
and every lock in a structure has its line in one, saying what it protects. A function
whose kernel-doc requires the socket lock asserts it. The name of a static function of
a module says which file it is in, so that a backtrace can be read.

kernel-doc itself checks the blocks that exist; it never asks for one.
"""

import posixpath
import re

import source

MODULES = ("drivers/infiniband/sw/kiwarp/", "drivers/infiniband/ulp/kiwarp_ip/")

LOCK = re.compile(r"^\s+(?:spinlock_t|rwlock_t|seqlock_t|struct mutex|struct rw_semaphore)"
                  r"\s+(\w+);")


def block_above(lines, first):
    """The comment that ends on the line above line `first`, or None."""
    last = first - 2
    if last < 0 or not lines[last].rstrip().endswith("*/"):
        return None
    start = last
    while start >= 0 and "/*" not in lines[start]:
        start -= 1
    return lines[max(start, 0):last + 1]


def check_functions(tree):
    for function in tree.functions():
        if function.is_static:
            continue
        where = f"{function.path}:{function.line}: {function.name}()"
        block = block_above(tree.lines(function.path), function.first)
        if not block:
            yield f"{where} has no kernel-doc block directly above it"
        elif block[0].strip() != "/**":
            yield f"{where} has a comment above it that does not start with '/**'"
        elif len(block) < 2 or not re.match(rf" \* {function.name}\(\) - ", block[1]):
            yield f"{where} has a block above it that does not start with ' * {function.name}() - '"


def check_socket_lock(tree):
    """The block says "Context: socket lock held", the body asserts it, or neither."""
    for function in tree.functions():
        lines = tree.lines(function.path)
        block = " ".join(block_above(lines, function.first) or [])
        promises = re.search(r"Context: (process; )?socket lock held", block) is not None
        body = "\n".join(lines[function.line:function.end])
        asserts = bool(re.search(r"\bkiw_sock_assert_held(?:_bh)?\(", body))
        if promises and not asserts:
            yield (f"{function.path}:{function.line}: {function.name}() says that the socket "
                   "lock is held and does not assert it")
        elif asserts and not promises and not function.is_static:
            yield (f"{function.path}:{function.line}: {function.name}() asserts the socket "
                   "lock, its kernel-doc does not say so")


def check_locks(tree):
    for path in tree.c_files():
        text = tree.text(path)
        for number, line in enumerate(tree.lines(path), 1):
            match = LOCK.match(line)
            if match and not re.search(rf"@(\w+\.)*{match[1]}:", text):
                yield f"{path}:{number}: lock {match[1]} has no kernel-doc line"


def check_static_names(tree):
    """The name begins with that of the file, or with a part of it: cm_ep.c has ep_arm()."""
    for function in tree.functions():
        stem, suffix = posixpath.splitext(posixpath.basename(function.path))
        if not (function.is_static and function.path.startswith(MODULES) and suffix == ".c"):
            continue
        # Named by the module loader's messages, and by macros of sysfs
        if stem == "main" or function.name.endswith(("_show", "_store", "_read", "_write")):
            continue
        words = stem.split("_")
        parts = ["_".join(words[first:last]) + "_"
                 for last in range(1, len(words) + 1) for first in range(last)]
        if not function.name.startswith(tuple(parts)):
            yield (f"{function.path}:{function.line}: {function.name}() does not begin with "
                   f"{' or '.join(sorted(parts))}")


def check(tree):
    yield from check_functions(tree)
    yield from check_static_names(tree)
    yield from check_locks(tree)
    yield from check_socket_lock(tree)


if __name__ == "__main__":
    source.run(check)
