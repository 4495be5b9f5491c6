#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""No promises for later, no path of one machine, no trailing whitespace, no long lines of prose."""

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
PROSE = (".rst", ".md")
COLUMNS = 100


def is_too_long(line):
    """Prose: not what is indented as literal text, nor a table, whose columns are two blanks apart."""
    return len(line) > COLUMNS and not line.startswith("    ") and "  " not in line.lstrip()


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
            if path.endswith(PROSE) and is_too_long(line):
                yield f"{path}:{number}: {len(line)} columns, more than {COLUMNS}"


if __name__ == "__main__":
    source.run(check)
