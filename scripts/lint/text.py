#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""No promises for later, no path of one machine, no trailing whitespace, no long lines of prose, no
tables whose text crosses a column."""

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
# The border of a simple table of reStructuredText, with at least two columns
BORDER = re.compile(r"^ *=+(?: +=+)+$")
# Below a heading that spans columns
UNDERLINE = re.compile(r"^ *-+[ -]*$")


def long_lines(path, lines):
    """The long lines of prose: not those of literal blocks, nor of tables, whose columns are two
    blanks apart. Yields numbers."""
    block = None  # how far the line is indented that began a literal block
    for number, line in enumerate(lines, 1):
        indent = len(line) - len(line.lstrip())
        if line and block is not None and indent <= block:
            block = None
        is_literal = block is not None or path.endswith(".md") and line.startswith("    ")
        if len(line) > COLUMNS and not is_literal and "  " not in line.lstrip():
            yield number
        is_directive = line.lstrip().startswith(".. ")
        if block is None and (".. code" in line or line.endswith("::") and not is_directive):
            block = indent


def crossed_columns(lines):
    """The rows of simple tables with text between two columns, or with a border of other columns.
    Yields numbers. Headings may span columns."""
    blanks, borders = [], 0  # where the columns are apart; borders of the table so far
    for number, line in enumerate(lines, 1):
        if BORDER.match(line):
            here = [match.span() for match in re.finditer("(?<==) +(?==)", line)]
            if borders and here != blanks:
                yield number
            blanks, borders = here, borders + 1
            # The last border is followed by an empty line, or by the end of the file.
            if borders > 1 and not "".join(lines[number:number + 1]).strip():
                blanks, borders = [], 0
        elif any(line[begin:end].strip() for begin, end in blanks) and not (
                UNDERLINE.match(line) or UNDERLINE.match(lines[number])):
            yield number


def check(tree):
    for path in tree.files:
        if tree.is_binary(path):
            continue
        lines = tree.text(path).split("\n")
        for number, line in enumerate(lines, 1):
            match = PROMISES.search(line)
            if match:
                yield f"{path}:{number}: {match[0]}: do it now, or open an issue"
            match = MACHINE.search(line)
            if match and not path.startswith(MACHINE_EXEMPT):
                yield f"{path}:{number}: machine path {match[0]}"
            if line != line.rstrip() and not path.endswith(BLANKS_EXEMPT):
                yield f"{path}:{number}: trailing whitespace"
        for number in long_lines(path, lines) if path.endswith(PROSE) else ():
            yield f"{path}:{number}: {len(lines[number - 1])} columns, more than {COLUMNS}"
        for number in crossed_columns(lines) if path.endswith(".rst") else ():
            yield f"{path}:{number}: the text of a table crosses a column"


if __name__ == "__main__":
    source.run(check)
