#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""No __force in the product: such a cast hides what sparse would report."""

import re

import source


def check(tree):
    for path in tree.c_files():
        if not path.startswith(("drivers/", "include/")):
            continue
        text = source.without_comments(tree.text(path))
        for number, line in enumerate(text.splitlines(), 1):
            if re.search(r"\b__force\b", line):
                yield f"{path}:{number}: __force"


if __name__ == "__main__":
    source.run(check)
