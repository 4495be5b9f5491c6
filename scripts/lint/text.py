#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""No promises for later, no path of one machine, no trailing whitespace."""

import re

import source

# Spelled in pieces so that this file does not find itself.
PROMISES = re.compile(r"\b(" + "|".join(("TO" "DO", "FIX" "ME", "X" "XX", "HA" "CK")) + r")\b")
# An absolute path below a home or work directory; not $DIR/..., a.b/... or ../...
MACHINE = re.compile(r'(?<![\w.}*)$~/>-])(?<![\w})]")/(?:work|root|home)\b(?!-)')
# There the same path is the guest's own.
MACHINE_EXEMPT = ("scripts/vm/guest/", "scripts/selftests/")
# Context lines of a patch may end in a blank.
BLANKS_EXEMPT = (".patch", ".diff")


def check(tree):
    for path in tree.files:
        if tree.is_binary(path):
            continue
        for number, line in enumerate(tree.text(path).split("\n"), 1):
            match = PROMISES.search(line)
            if match:
                yield f"{path}:{number}: {match[0]}: do it now, or open an issue"
            match = MACHINE.search(line)
            if match and not path.startswith(MACHINE_EXEMPT):
                yield f"{path}:{number}: machine path {match[0]}"
            if line != line.rstrip() and not path.endswith(BLANKS_EXEMPT):
                yield f"{path}:{number}: trailing whitespace"


if __name__ == "__main__":
    source.run(check)
