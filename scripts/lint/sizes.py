#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Report of function and file sizes, to look at; `!` marks what is over the target."""

import source

LONGEST = 10
FUNCTION_LINES = 80
FILE_LINES = {".c": 600, ".h": 250}
PARTS = ("drivers/", "include/", "ktest/", "kunit/")


def percentile(values, percent):
    """Value below which `percent` of the sorted `values` lie (nearest rank)."""
    return values[max(0, -(-len(values) * percent // 100) - 1)]


def summary(what, values):
    values = sorted(values)
    if not values:
        return f"{what}: none"
    return (f"{what}: {len(values)}, {sum(values)} lines, median {percentile(values, 50)},"
            f" p90 {percentile(values, 90)}, max {values[-1]}")


def check(tree):
    functions = tree.functions()
    files = {path: len(tree.lines(path)) for path in tree.c_files()}
    for part in PARTS:
        lengths = [f.length for f in functions if f.path.startswith(part)]
        sizes = [size for path, size in files.items() if path.startswith(part)]
        if sizes:
            yield summary(f"{part} files", sizes)
            yield summary(f"{part} functions", lengths)
    yield f"longest functions (target: at most {FUNCTION_LINES} lines)"
    for function in sorted(functions, key=lambda f: -f.length)[:LONGEST]:
        mark = "!" if function.length > FUNCTION_LINES else " "
        yield f"{mark} {function.length:5} {function.path}:{function.first} {function.name}()"
    yield f"longest files (target: at most {FILE_LINES['.c']} lines in .c, {FILE_LINES['.h']} in .h)"
    for path, size in sorted(files.items(), key=lambda item: -item[1])[:LONGEST]:
        yield f"{'!' if size > FILE_LINES[path[-2:]] else ' '} {size:5} {path}"


if __name__ == "__main__":
    source.run(check)
