#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Pictures of the documents (Documentation/pictures/*.dot) agree with the code.

layers.dot: its rooms are those of rooms.list, and its solid arrows are the calls between rooms that
do not follow from others. startup.dot: each step is in the table of cm_fsm.c. In all of them, names
of functions and structures exist; and a document shows each picture.
"""

import posixpath
import re

import calls
import names
import rooms
import source

FOLDER = "Documentation/pictures/"
LAYERS = FOLDER + "layers.dot"
STARTUP = FOLDER + "startup.dot"
TABLE = rooms.DRIVER + "proto/cm_fsm.c"

# A room's label begins with its folder
ROOM = re.compile(r'^\t(\w+) \[label="\1/')
# An arrow without attributes is solid
ARROW = re.compile(r"^\t(\w+) -> (\w+)$")
STEP = re.compile(r'^\t\t[ir]_(\w+) -> [ir]_(\w+) \[label="(\w+)"')
STATE_ROW = re.compile(r"\[KIW_CMS_(\w+)\] = \{")
EVENT_ROW = re.compile(r"\[KIW_CME_(\w+)\]\s*= (?:GO|STAY)\((\w+)")
LABEL = re.compile(r'label="([^"]*)"')


def direct_calls(tree, order):
    """(caller, callee) of the calls between rooms, without those that follow from others"""
    edges = {room: set() for room in order}
    for caller, targets in calls.Calls(tree, rooms.DRIVER).edges.items():
        for callee in targets:
            pair = rooms.room_of(caller), rooms.room_of(callee)
            if pair[0] != pair[1] and set(pair) <= set(order):
                edges[pair[0]].add(pair[1])
    below = {}
    for room in order:      # from the bottom up: what is called is known before its callers
        below[room] = set().union(*({called} | below.get(called, set()) for called in edges[room]))
    return {(room, called) for room in order for called in edges[room]
            if not any(called in below.get(other, ()) for other in edges[room])}


def check_layers(tree):
    order, _ = rooms.read_list()
    drawn, arrows = {}, {}
    for number, line in enumerate(tree.lines(LAYERS), 1):
        if match := ROOM.match(line):
            drawn[match[1]] = number
        if match := ARROW.match(line):
            arrows[match[1], match[2]] = number
    for room in sorted(drawn.keys() ^ set(order)):
        yield (f"{LAYERS}:{drawn.get(room, 1)}: {room} is not in the picture" if room in order else
               f"{LAYERS}:{drawn[room]}: {room} is no room")
    wanted = direct_calls(tree, order)
    for pair in sorted(wanted - arrows.keys()):
        yield f"{LAYERS}:1: {pair[0]} calls {pair[1]}, and there is no arrow"
    for pair in sorted(arrows.keys() - wanted):
        yield (f"{LAYERS}:{arrows[pair]}: {pair[0]} does not call {pair[1]}, or other arrows lead"
               " there")


def steps(tree):
    """(state, next state, event) of each step of the table"""
    found, state = set(), None
    for line in tree.lines(TABLE):
        if match := STATE_ROW.search(line):
            state = match[1]
        if match := EVENT_ROW.search(line):
            found.add((state, match[2], match[1]))
    return found


def check_startup(tree):
    known, drawn = steps(tree), 0
    for number, line in enumerate(tree.lines(STARTUP), 1):
        if match := STEP.match(line):
            drawn += 1
            if match.groups() not in known:
                yield (f"{STARTUP}:{number}: {TABLE} has no step from {match[1]} to {match[2]} by"
                       f" {match[3]}")
    if not drawn:
        yield f"{STARTUP}:1: no step is drawn"


def check_names(tree, pictures):
    known = names.Names(tree)
    documents = [path for path in tree.files if path.endswith(".rst")]
    for path in pictures:
        for number, line in enumerate(tree.lines(path), 1):
            for label in LABEL.findall(line):
                for what in names.check_words(known, label.replace("\\n", " ").replace("/", " ")):
                    yield f"{path}:{number}: {what}"
        name = posixpath.basename(path)
        if not any(f":: pictures/{name}" in tree.text(document) for document in documents):
            yield f"{path}:1: no document shows it"


def check(tree):
    pictures = [path for path in tree.files if path.startswith(FOLDER) and path.endswith(".dot")]
    if LAYERS in pictures:
        yield from check_layers(tree)
    if STARTUP in pictures:
        yield from check_startup(tree)
    if pictures:
        yield from check_names(tree, pictures)


if __name__ == "__main__":
    source.run(check)
