#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""scripts/selftests/commands has every command of the documents for users, and no others.

A command is a line of a literal block, or a literal of two words or more whose first word is a
program. Lines of the table are "WHERE: COMMAND"; the head of that file says what WHERE can be.
"""

import re
import shlex

import source

TABLE = "scripts/selftests/commands"
TESTS = "scripts/selftests/"
RELEASE = ["scripts/release/check.sh", "scripts/release/installed"]
DOCUMENTS = ["README.md", "Documentation/operations.rst", "man/kiwarp.7", "man/kiwarp_ip.7"]

PROGRAMS = {
    "apt", "cat", "dkms", "dmesg", "echo", "grep", "ibv_devices", "ibv_devinfo", "ib_write_bw", "ip",
    "make", "makepkg", "man", "modinfo", "modprobe", "mokutil", "openssl", "perf", "ping", "printf",
    "rdma", "reboot", "rmmod", "rpmbuild", "rping", "ss", "systemctl", "sudo", "ulimit", "uname",
    "/usr/lib/kiwarp/kiwarp-link",
}
# Programs that are commands without a second word, too
ALONE = {"ibv_devices", "reboot", "make", "dmesg"}
PROMPT = re.compile(r"^(?:server|client)\$ ")
# Above, below and between the rows of a table
RULE = re.compile(r"=+(?: +=+)+$")
COMMENT = re.compile(r"\s{2,}#.*")


def blocks_of_markdown(text):
    return re.findall(r"(?:^    .*\n)+", text, re.M), re.findall(r"(?<!`)`([^`]+)`(?!`)", text)


def cells(table):
    """The lines of a table, cell after cell, so that literals that go on in the next row are whole."""
    edges = [found.start() for found in re.finditer("=+", table[0])] + [None]
    return [row[start:end] for start, end in zip(edges, edges[1:]) for row in table[1:]]


def without_tables(text):
    lines, table = [], []
    for line in text.splitlines() + [""]:
        if table and not line and RULE.match(table[-1]):
            lines += cells(table)
            table = []
        if table or RULE.match(line):
            table.append(line)
        else:
            lines.append(line)
    return "\n".join(lines) + "\n"


def blocks_of_rst(text):
    text = without_tables(text)
    blocks = re.findall(r"::\n\n((?:(?: +\S.*)?\n)+?)(?=\S|\Z)", text)
    return blocks, re.findall(r"``([^`]+)``", text)


def blocks_of_manual(text):
    def words(macro, rest):
        """.BI is for words that are joined, in fonts that alternate."""
        return "".join(shlex.split(rest)) if macro == "BI" else rest
    text = re.sub(r"\\f.", "", text).replace(r"\-", "-").replace(r"\e", "\\")
    spans = [words(*found) for found in re.findall(r"^\.(B|BI) (.*)", text, re.M)]
    return re.findall(r"^\.nf\n((?:.*\n)+?)\.fi", text, re.M), spans


def program(line):
    words = PROMPT.sub("", line).split()
    return words[0] if words else ""


def commands(path, text):
    """The commands of a document, in order, each once."""
    kind = {"md": blocks_of_markdown, "rst": blocks_of_rst}.get(path.rpartition(".")[2],
                                                                 blocks_of_manual)
    blocks, spans = kind(text)
    spans = [span.rstrip(".,") for span in spans]
    found = {}
    for block in blocks:
        for line in re.sub(r"\\\n\s*", " ", block).splitlines():
            line = " ".join(COMMENT.sub("", line.strip()).split())
            if program(line) in PROGRAMS:
                found[line] = path
    for span in spans:
        line = " ".join(span.split())
        if program(line) in PROGRAMS and (len(line.split()) > 1 or line in ALONE):
            found[line] = path
    return found


def is_where(tree, where):
    if where in ("a", "both", "server", "no"):
        return True
    for kind, call in (("release", r"documented {}(?!\w)"), ("same", r"\b(?:case_of|t_run) {}")):
        if where.startswith(kind + ", "):
            label = where.removeprefix(kind + ", ")
            called = call.format(f'(?:"{re.escape(label)}"|{re.escape(label)})')
            return any(re.search(called, tree.text(path)) for path in RELEASE)
    return any(re.fullmatch(re.escape(TESTS) + r"\w+/" + re.escape(where) + r"\.sh", path)
               for path in tree.files)


def check(tree):
    if TABLE not in tree.files:
        return
    table = {}
    for number, line in enumerate(tree.lines(TABLE), 1):
        if not line or line.startswith("#"):
            continue
        where, _, command = line.partition(": ")
        if command in table:
            yield f"{TABLE}:{number}: twice: {command}"
        if not is_where(tree, where):
            yield f"{TABLE}:{number}: there is no {where}"
        table[command] = number
    documented = {}
    for path in DOCUMENTS:
        for command in commands(path, tree.text(path)):
            documented.setdefault(command, path)
    for command, path in documented.items():
        if command not in table:
            yield f"{path}:1: not in {TABLE}: {command}"
    for command, number in table.items():
        if command not in documented:
            yield f"{TABLE}:{number}: in no document: {command}"


if __name__ == "__main__":
    source.run(check)
