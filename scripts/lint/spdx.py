#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Every text file says its licence within its first lines, and it is the project's."""

import re

import source

FIRST_LINES = 3
LICENCE = "GPL-2.0 OR BSD-3-Clause"
# What programs outside the kernel include carries the kernel's exception.
UAPI_LICENCE = "(GPL-2.0 WITH Linux-syscall-note) OR BSD-3-Clause"
# Licence texts, and formats that have no comments.
EXEMPT = re.compile(r"^(LICENSES/|COPYING$|LICENSE$|VERSION$|debian/(changelog|copyright|source/format)$)|\.(json|patch|diff)$")
TAG = re.compile(r"SPDX-License-Identifier:\s*(.*?)\s*(\*/|-->|\"\"\")?$")


def licence(text):
    return text[1:-1] if text.startswith("((") and text.endswith(")") else text


def check(tree):
    for path in tree.files:
        if EXEMPT.search(path) or tree.is_binary(path):
            continue
        allowed = UAPI_LICENCE if path.startswith("include/uapi/") else LICENCE
        tags = [m for m in map(TAG.search, tree.lines(path)[:FIRST_LINES]) if m]
        if not tags:
            yield f"{path}:1: no SPDX-License-Identifier in the first {FIRST_LINES} lines"
        elif licence(tags[0][1]) != allowed:
            yield f"{path}:1: licence is '{tags[0][1]}', not '{allowed}'"


if __name__ == "__main__":
    source.run(check)
