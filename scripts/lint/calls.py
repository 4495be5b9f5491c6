# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Calls go one way: down the order of the rooms, and inside a room no circle but of declared pairs.

A call is any mention of a function that another file defines, outside of comments. What a header
defines inline, or as a macro, counts as if it stood in the file that uses it. A table of
functions is data: calling through one is how a lower file reaches a higher one, and is no call
here.
"""

import posixpath
import re
from collections import defaultdict
from dataclasses import dataclass

import source

WORD = re.compile(r"\b[A-Za-z_]\w*\b")
TYPE = re.compile(r"\b(?:struct|enum|union)\s+\w+")
MACRO = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)((?:.*\\\n)*.*)$", re.M)


@dataclass
class Call:
    """The first mention of a function in a file that does not define it."""

    path: str
    line: int
    function: str


class Calls:
    """Which file of a module calls which, by path below the module's folder without suffix."""

    def __init__(self, tree, driver):
        self.tree, self.driver = tree, driver
        self.homes, inlines = {}, defaultdict(set)
        for function in tree.functions():
            if not function.path.startswith(driver):
                continue
            if function.path.endswith(".h"):
                lines = tree.lines(function.path)[function.first - 1:function.end]
                inlines[function.name] |= words("\n".join(lines))
            elif not function.is_static:
                self.homes[function.name] = self._stem(function.path)
        for path in self._files(".h"):
            text = source.without_comments(tree.text(path))
            for name, body in MACRO.findall(text):
                inlines[name] |= words(body)
        self._expand(inlines)
        self.edges = defaultdict(dict)
        for path in self._files(".c"):
            self._scan(path)

    def _stem(self, path):
        return posixpath.splitext(path[len(self.driver):])[0]

    def _files(self, suffix):
        return [f for f in self.tree.c_files()
                if f.startswith(self.driver) and f.endswith(suffix)]

    def _expand(self, inlines):
        """For each name of a header: the functions that using it calls."""
        self.inlines = {}
        for name in inlines:
            seen, todo = set(), [name]
            while todo:
                word = todo.pop()
                if word not in seen:
                    seen.add(word)
                    todo += inlines.get(word, ())
            self.inlines[name] = seen & self.homes.keys()

    def _scan(self, path):
        stem = self._stem(path)
        text = source.without_comments(self.tree.text(path))
        for number, line in enumerate(text.splitlines(), 1):
            for word in WORD.findall(TYPE.sub("", line)):
                for function in {word} & self.homes.keys() | self.inlines.get(word, set()):
                    home = self.homes[function]
                    if home != stem:
                        self.edges[stem].setdefault(home, Call(path, number, function))


def words(text):
    return set(WORD.findall(TYPE.sub("", source.without_comments(text))))


def shortest(edges, start):
    """A shortest way from `start` back to it, as a list of nodes, or None."""
    came_from, queue = {}, [start]
    for node in queue:
        for target in sorted(edges.get(node, ())):
            if target == start:
                way = [node]
                while way[-1] != start:
                    way.append(came_from[way[-1]])
                return way[::-1] + [start]
            if target not in came_from:
                came_from[target] = node
                queue.append(target)
    return None


def circles(edges, what):
    """A finding for each call of each circle, in which a node is named once."""
    named = set()
    for start in sorted(edges):
        way = None if start in named else shortest(edges, start)
        if not way:
            continue
        named.update(way)
        for caller, callee in zip(way, way[1:]):
            call = edges[caller][callee]
            yield (f"{call.path}:{call.line}: calls {call.function}() of {callee}, in a circle of"
                   f" {what}: {' -> '.join(way)}")


def check(tree, driver, room_of, order, pairs):
    """Findings; room_of() gives the room of a file, or None: it is a room of its own.

    ORDER has the rooms from the bottom up, PAIRS the files that may call each other.
    """
    calls = Calls(tree, driver)
    between, inside = defaultdict(dict), defaultdict(dict)
    for caller, targets in calls.edges.items():
        for callee, call in targets.items():
            rooms = room_of(caller) or caller, room_of(callee) or callee
            if rooms[0] != rooms[1]:
                between[rooms[0]].setdefault(rooms[1], call)
                if set(rooms) <= set(order) and order.index(rooms[0]) < order.index(rooms[1]):
                    yield (f"{call.path}:{call.line}: calls {call.function}() of {callee}: {rooms[1]}"
                           f" is above {rooms[0]}")
            elif frozenset((caller, callee)) not in pairs:
                inside[caller][callee] = call
    yield from circles(between, "rooms")
    yield from circles(inside, "files")
