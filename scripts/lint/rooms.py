#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""The rooms of the driver are its folders: rooms.list, Kbuild and the overview agree with them.

rooms.list has the order of the rooms. Kbuild names each source once, room after room in that
order, and the files beside the rooms last. The picture in the overview has a row for each room,
the top one first, which names all of its files without suffix; remarks are in parentheses.
"""

import posixpath
import re
from pathlib import Path

import source

LIST = Path(__file__).with_name("rooms.list")
DRIVER = "drivers/infiniband/sw/kiwarp/"
KBUILD = DRIVER + "Kbuild"
OVERVIEW = "Documentation/overview.rst"
# Not part of the driver in a kernel tree, and below everything
COMPAT = "compat"
# The row of files that are in no room
BESIDE = "(beside)"

OBJECT = re.compile(r"^kiwarp-y\s*[:+]?=\s*(.*)$")
ROW = re.compile(r"^    (?:(\w+)/|(\(beside\)))\s+(.*)$")
MORE = re.compile(r"^     +(\S.*)$")


def read_list():
    """(order of the rooms from the bottom up, pairs of files) of rooms.list"""
    order, pairs = [], set()
    for line in LIST.read_text(encoding="utf-8").splitlines():
        kind, *rest = line.split("#")[0].split() or [None]
        if kind == "order":
            order += rest
        elif kind == "pair":
            pairs.add(frozenset(rest))
    return order, pairs


def room_of(name):
    """Room of a file below DRIVER, or None: it is beside the rooms."""
    return name.partition("/")[0] if "/" in name else None


def files_of(tree, suffixes):
    """{room or None: paths below DRIVER without suffix}"""
    found = {}
    for path in tree.c_files():
        name = path[len(DRIVER):]
        if path.startswith(DRIVER) and name.endswith(suffixes) and room_of(name) != COMPAT:
            found.setdefault(room_of(name), set()).add(posixpath.splitext(name)[0])
    return found


def check_list(tree, order):
    found = files_of(tree, (".c", ".h"))
    for room in sorted(found.keys() - {None, *order}):
        yield f"{DRIVER}{room}:1: a room without a place in the order of {LIST.name}"
    if KBUILD in tree.files:
        for room in order:
            if room not in found:
                yield f"scripts/lint/{LIST.name}:1: there is no room {room}"


def check_kbuild(tree, order):
    if KBUILD not in tree.files:
        return
    wanted = set().union(*files_of(tree, (".c",)).values())
    named, last = set(), 0
    for number, line in enumerate(tree.lines(KBUILD), 1):
        match = OBJECT.match(line)
        for word in match[1].split() if match else ():
            name = posixpath.splitext(word)[0]
            where = f"{KBUILD}:{number}: {word}"
            if name not in wanted:
                yield f"{where} has no source"
                continue
            if name in named:
                yield f"{where} is named twice"
            named.add(name)
            room = room_of(name)
            place = order.index(room) if room in order else len(order)
            if place < last:
                yield f"{where} is behind what is above its room"
            last = place
    for name in sorted(wanted - named):
        yield f"{DRIVER}{name}.c:1: is not built, see {KBUILD}"


def read_picture(tree):
    """(line, room or None, names) of each row of the overview's picture"""
    rows = []
    for number, line in enumerate(tree.lines(OVERVIEW), 1):
        row, more = ROW.match(line), MORE.match(line)
        if row:
            rows.append([number, row[1], row[3]])
        elif more and rows and number == rows[-1][0] + rows[-1][2].count("\n") + 1:
            rows[-1][2] += "\n" + more[1]
    return [(number, room, re.sub(r"\([^)]*\)", "", text).split()) for number, room, text in rows]


def check_picture(tree, order):
    if OVERVIEW not in tree.files:
        return
    rows, found = read_picture(tree), files_of(tree, (".c", ".h"))
    if [room for _, room, _ in rows] != [None, *reversed(order)]:
        yield (f"{OVERVIEW}:{rows[0][0] if rows else 1}: rows of the picture are not {BESIDE}"
               f" {' '.join(reversed(order))}")
    for number, room, names in rows:
        wanted = {posixpath.basename(name) for name in found.get(room, ())}
        for name in sorted(set(names) ^ wanted):
            what = "is not in the picture" if name in wanted else "is no file"
            yield f"{OVERVIEW}:{number}: {room or BESIDE}: {name} {what}"
        if len(names) != len(set(names)):
            yield f"{OVERVIEW}:{number}: {room or BESIDE}: a file is named twice"


def check(tree):
    order, _ = read_list()
    yield from check_list(tree, order)
    yield from check_kbuild(tree, order)
    yield from check_picture(tree, order)


if __name__ == "__main__":
    source.run(check)
