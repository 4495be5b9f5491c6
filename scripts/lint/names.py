#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""What a document names exists: functions, structures and their members, files, tests, KUnit
cases, counters, settings, options of scripts, make targets. And settings and trace events are
documented; counters.py sees to the counters.

A name is looked for in literals (``two backquotes``, `one` in Markdown) and, where that is safe,
in literal blocks and in plain text. ``file.c``: ``f()`` says that f() is in that file, and
``120-verbs``: ``f()`` that it is among the system tests. In the overview's walk through the files,
words may stand between a file and its functions. Names of others, which no source of this tree
uses, are in names-foreign.txt beside this file.
"""

import posixpath
import re
from bisect import bisect_right
from fnmatch import fnmatchcase
from pathlib import Path

import source

DOCUMENTS = re.compile(r"(Documentation/.*\.rst|(README|SECURITY|CONTRIBUTING)\.md)$")
# Being mentioned here does not make a name exist.
NOT_SOURCES = re.compile(r".*\.(rst|md|patch)$|MAINTAINERS$|scripts/lint/names")
# Where a path of a document can begin
BASES = ("", "drivers/infiniband/sw/kiwarp/", "drivers/infiniband/ulp/kiwarp_ip/", "Documentation/",
         "Documentation/ulp/", "Documentation/kernel-faults/", "scripts/", "scripts/selftests/",
         "scripts/selftests/lib/", "scripts/vm/", "scripts/vm/patches/", "scripts/verbs/",
         "scripts/pyverbs/", "ktest/")
PRODUCT = ("drivers/", "include/")
TESTS = ("scripts/selftests/", "scripts/verbs/", "scripts/peer/", "ktest/")
FOREIGN = Path(__file__).with_name("names-foreign.txt")

# Files that list what users see, and where each item has a paragraph or a row
DRIVER = "drivers/infiniband/sw/kiwarp/"
LISTS = (
    (DRIVER + "trace.h", r"(?:TRACE_EVENT\(|DEFINE_EVENT\(\w+, )(\w+)",
     [("Documentation/tracing.rst", "\n``{}``\n")]),
    (DRIVER + "policy_sysfs.c", r"= POLICY_ATTR\((\w+)",
     [("Documentation/policy.rst", "\n``{}``\n"), ("README.md", "\n| `{}` |")]),
    (DRIVER + "policy.c", r"module_param_cb\((\w+)", [("Documentation/policy.rst", "\n``{}``\n")]),
)

LITERAL = re.compile(r"``(.+?)``", re.S)
CODE = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
PATH = re.compile(r"[\w.*/-]+\.(?:c|h|py|sh|rst|patch|awk|config|list|txt)\b")
FOLDER = re.compile(r"(?:scripts|drivers|Documentation|ktest|kunit|include|proto|compat)/[\w./*-]*")
TEST = re.compile(r"(?<![\w./-])(\d{3}-[a-z](?:[a-z0-9-]*[a-z0-9])?)(?:\.sh)?(?!\w)")
TEST_ONLY = re.compile(r"\d{3}-[a-z][a-z0-9-]*(?:\.sh)?")
KUNIT = re.compile(r"(kiwarp\w*)\.(\w+)")
CALL = re.compile(r"(\w+)\(\)")
MEMBER = re.compile(r"\b(kiw\w*)\.(\w+)")
COUNTER = re.compile(r"(conn|linger|tx|rx|wc|fast)_[a-z_]+$")
OPTION = re.compile(r"(?<![\w-])--[a-z][\w.-]*\w")
MAKE = re.compile(r"(?<![\w/.-])make ((?:[\w-]+(?:=\S*)? ?)*)")
# What may stand between ``file.c``: or ``120-verbs``: and the functions said to be there
BETWEEN = re.compile(r":?[\s,]*(?:and\s+|or\s+)?")
# The section in which each function is in the file that its item has named last
WALK = re.compile(r"^Through the files\n=+\n(.*?)(?=^[^\n]+\n=+\n|\Z)", re.S | re.M)
# Words that stand for any number, any name
PLACEHOLDERS = (("GROUP", "*"), ("NNN-name", "*"), ("2NN", "2*"), ("3NN", "3*"), ("NAME", "*"))


def is_identifier(word):
    """Would this word be in a source rather than in a dictionary?"""
    return re.fullmatch(r"[A-Za-z]\w*_\w*[a-z0-9A-Z]|KIW\w+", word) is not None


class Names:
    """What there is."""

    def __init__(self, tree):
        self.files = set(tree.files)
        self.folders = {str(p) for f in tree.files for p in Path(f).parents}
        self.tests = {Path(f).stem for f in tree.files
                      if re.match(r"scripts/selftests/[a-z]+/\d{3}-.*\.sh$", f)}
        self.words, self.own_words = set(), set()
        self.options, self.targets, self.cases = set(), set(), set()
        self.structs, self.functions = {}, {}
        for path in tree.files:
            if not NOT_SOURCES.match(path) and not tree.is_binary(path):
                self._read(tree, path)
        for function in tree.functions():
            self._define(function.name, function.path)
        if "Makefile" in self.files:
            self.targets.update(re.findall(r"^([a-z][\w-]*):", tree.text("Makefile"), re.M))
        self.foreign = set()
        if FOREIGN.exists():
            for line in FOREIGN.read_text(encoding="utf-8").splitlines():
                self.foreign.update(line.partition("#")[0].split())
        self.suites = {case.partition(".")[0] for case in self.cases}

    def _define(self, name, path):
        self.functions.setdefault(name, set()).add(path)

    def _read(self, tree, path):
        text = tree.text(path)
        self.options.update(OPTION.findall(text))
        if path.endswith((".c", ".h")):
            text = source.without_comments(text, keep_strings=True)
            self._read_c(path, text)
        else:
            for names in re.findall(r"^\s*(?:async )?def (\w+)|^\s*(\w+)\(\)", text, re.M):
                self._define(names[0] or names[1], path)
        words = re.findall(r"\w+", text)
        self.words.update(words)
        if path.startswith(PRODUCT):
            self.own_words.update(words)

    def _read_c(self, path, text):
        for name in re.findall(r"#\s*define\s+(\w+)\(|\bTRACE_EVENT\((\w+)", text):
            self._define(name[0] or name[1], path)
        for name, body in re.findall(r"\b(?:struct|union)\s+(\w+)\s*\{(.*?)^\}", text, re.S | re.M):
            self.structs.setdefault(name, set()).update(re.findall(r"\w+", body))
        suites = re.findall(r'\.name\s*=\s*"(\w+)"', text)
        for case in re.findall(r"KUNIT_CASE(?:_PARAM)?\(\s*(\w+)", text):
            self.cases.update(f"{suite}.{case}" for suite in suites)

    def has(self, word):
        """Some source uses this word (of a counter, the product's), or it is known as another's."""
        words = self.own_words if COUNTER.match(word) else self.words
        return word in words or word in self.foreign

    def has_function(self, name):
        """A name that begins like ours is defined here; another is at least called."""
        if name.startswith("kiw_"):
            return name in self.functions
        return name in self.functions or self.has(name)

    def paths(self, name):
        """The files and folders that a path in a document can mean."""
        for placeholder, pattern in PLACEHOLDERS:
            name = name.replace(placeholder, pattern)
        for base in BASES:
            path = posixpath.normpath(base + name)
            if path in self.files or path in self.folders:
                yield path
            elif "*" in path:
                yield from (f for f in self.files | self.folders if fnmatchcase(f, path))


class Document:
    """A document's text, and its literals as (line, text, start, end)."""

    def __init__(self, tree, path):
        self.path = path
        self.text = tree.text(path)
        self.literals = [(self.line(m.start()), " ".join(m[1].split()), m.start(), m.end())
                         for m in (CODE if path.endswith(".md") else LITERAL).finditer(self.text)]

    def line(self, position):
        return self.text.count("\n", 0, position) + 1

    def commands(self):
        """(line, text) of each literal, and of each line of a literal block."""
        yield from ((number, text) for number, text, _, _ in self.literals)
        is_inside, indent = False, 0
        for number, line in enumerate(self.text.splitlines(), 1):
            width = len(line) - len(line.lstrip())
            if line.strip() and width <= indent:
                is_inside = False
            if line.strip() and (is_inside or line.startswith("    ") and self.path.endswith(".md")):
                yield number, line
            if not is_inside and line.rstrip().endswith("::") and not line.lstrip().startswith(".."):
                is_inside, indent = True, width


def check_literals(names, document):
    """Each literal by its form; PLACE is where the functions that follow are said to be."""
    place, place_end = None, 0
    for number, literal, start, end in document.literals:
        where = f"{document.path}:{number}: ``{literal}``"
        if not BETWEEN.fullmatch(document.text[place_end:start]):
            place = None
        place_end = end
        call = CALL.fullmatch(literal)
        if call and place is not None:
            if not any(path.startswith(tuple(place)) for path in names.functions.get(call[1], ())):
                yield f"{where} is not in {place[0] if len(place) == 1 else 'the tests'}"
        elif TEST_ONLY.fullmatch(literal):
            place = list(TESTS)
        elif PATH.fullmatch(literal) or FOLDER.fullmatch(literal):
            place = list(names.paths(literal))
            if not place and literal not in names.foreign:
                yield f"{where} is no file"
            if document.text[end:end + 1] != ":" or not place:
                place = None
        elif KUNIT.fullmatch(literal) and literal.partition(".")[0] in names.suites:
            if literal not in names.cases:
                yield f"{where} is no case of that suite"
        else:
            yield from (f"{where}: {what}" for what in check_words(names, literal))


def check_walk(names, document):
    """Each function of the walk through the files is where its item says."""
    walk = WALK.search(document.text)
    items = [match.start() for match in re.finditer(r"^\S", document.text, re.M)]
    item, place = None, []
    for number, literal, start, _ in document.literals if walk else ():
        if not walk.start(1) <= start < walk.end(1):
            continue
        if item != (item := bisect_right(items, start)):
            place = []
        call = CALL.fullmatch(literal)
        if PATH.fullmatch(literal):
            place = list(names.paths(literal))
        elif call and place and not names.functions.get(call[1], set()) & set(place):
            yield f"{document.path}:{number}: ``{literal}`` is not in {place[0]}"


def check_words(names, literal):
    for name in CALL.findall(literal):
        if not names.has_function(name):
            yield f"{name}() is no function"
    for name, member in MEMBER.findall(literal):
        if name in names.structs and member not in names.structs[name]:
            yield f"{name} has no {member}"
    for kind, name in re.findall(r"\b(struct|union|enum) (\w+)", literal):
        if not names.has(name):
            yield f"there is no {kind} {name}"
    for path in FOLDER.findall(literal):
        if not list(names.paths(path)) and path not in names.foreign:
            yield f"{path} is no file"
    if "/" not in literal and "=" not in literal:
        for word in re.findall(r"\w+(?!\w*\()", literal):
            if is_identifier(word) and not names.has(word):
                yield f"{word} is in no source"


def check_commands(names, document):
    for number, text in document.commands():
        where = f"{document.path}:{number}:"
        for arguments in MAKE.findall(text):
            word = arguments.split()[0] if arguments.strip() else ""
            if re.fullmatch(r"[a-z][\w-]*", word) and word not in names.targets:
                yield f"{where} there is no 'make {word}'"
        script = re.search(r"(?<![\w/~.])scripts/[\w./*-]+", text)
        if script and not list(names.paths(script[0])):
            yield f"{where} {script[0]} is no file"
        if script or text.startswith("--") or "python3 -m peer" in text:
            for option in OPTION.findall(text):
                if option not in names.options and option not in names.foreign:
                    yield f"{where} no script has an option {option}"


def check_tests(names, document):
    for match in TEST.finditer(document.text):
        if match[1] not in names.tests and match[1] not in names.foreign:
            yield f"{document.path}:{document.line(match.start())}: there is no test {match[1]}"


def check_undocumented(tree):
    """The other way round: what users see has its place in the documents."""
    for path, pattern, documents in LISTS:
        if path not in tree.files:
            continue
        for number, line in enumerate(tree.lines(path), 1):
            for name in re.findall(pattern, line):
                for document, form in documents:
                    if document in tree.files and form.format(name) not in tree.text(document):
                        yield f"{path}:{number}: {name} is not in {document}"


def check(tree):
    paths = [path for path in tree.files if DOCUMENTS.match(path)]
    if not paths:
        return
    yield from check_undocumented(tree)
    names = Names(tree)
    for path in paths:
        document = Document(tree, path)
        found = [*check_literals(names, document), *check_commands(names, document),
                 *check_tests(names, document), *check_walk(names, document)]
        yield from dict.fromkeys(found)


if __name__ == "__main__":
    source.run(check)
