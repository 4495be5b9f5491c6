# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""What the lint checkers share: the file list, C text without comments, C functions.

Every checker is called as `checker.py ROOT LIST`, where LIST holds paths
relative to ROOT, separated by NUL. It prints one `path:line: what is wrong`
per finding and exits 1 when there is one.
"""

import json
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

# Attribute macros that ctags must not take for the name of the function.
CTAGS_IGNORE = [
    "__acquires+", "__releases+", "__must_hold+", "__printf+", "__must_check",
    "__init", "__exit", "__cold", "__always_unused", "noinline",
]

COMMENT_OR_STRING = re.compile(
    r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)


@dataclass
class Function:
    """One C function definition; lines count from 1."""

    path: str
    name: str
    line: int           # where its name stands
    end: int            # its closing brace
    first: int          # first line of the definition (storage class, type)
    is_static: bool

    @property
    def length(self):
        return self.end - self.first + 1


class Tree:
    """The files to check below one root directory."""

    def __init__(self, root, list_path):
        self.root = Path(root)
        names = Path(list_path).read_bytes().decode().split("\0")
        self.files = sorted(n for n in names if n and (self.root / n).is_file())
        self._lines = {}

    def text(self, path):
        return (self.root / path).read_text(encoding="utf-8", errors="replace")

    def lines(self, path):
        if path not in self._lines:
            self._lines[path] = self.text(path).splitlines()
        return self._lines[path]

    def is_binary(self, path):
        with open(self.root / path, "rb") as file:
            return b"\0" in file.read(8192)

    def c_files(self):
        return [f for f in self.files if f.endswith((".c", ".h"))]

    def functions(self):
        """Every function definition in the C files, in file and line order."""
        c_files = self.c_files()
        if not c_files:
            return []
        argv = ["ctags", "--options=NONE", "--quiet", "--sort=no",
                "--output-format=json", "--language-force=C", "--kinds-C=f",
                "--fields=+ne", "-I", ",".join(CTAGS_IGNORE),
                "-f", "-", "-L", "-"]
        out = subprocess.run(argv, cwd=self.root, input="\n".join(c_files),
                             capture_output=True, text=True, check=True).stdout
        found = []
        for line in out.splitlines():
            tag = json.loads(line)
            if tag.get("_type") != "tag" or "end" not in tag:
                continue
            if tag["name"].isupper():   # TRACE_EVENT() and its like
                continue
            found.append(self._function(tag))
        return sorted(found, key=lambda f: (f.path, f.line))

    def _function(self, tag):
        lines = self.lines(tag["path"])
        first = tag["line"]
        while first > 1 and is_declarator(lines[first - 2]):
            first -= 1
        head = " ".join(lines[first - 1:tag["line"]])
        return Function(tag["path"], tag["name"], tag["line"], tag["end"], first,
                        re.search(r"\bstatic\b", head.split("(")[0]) is not None)


def is_declarator(line):
    """Can this line, above a function's name, still belong to its definition?"""
    line = line.strip()
    if not line or line.startswith(("#", "//", "/*", "*")):
        return False
    return not line.endswith((";", "}", "*/", ")", "\\", ":"))


def without_comments(text, keep_strings=False):
    """Blank out comments and (unless asked) strings; line numbers stay."""
    def blank(match):
        word = match.group(0)
        if word[0] in "\"'":
            return word if keep_strings else '""'
        return " " + "\n" * word.count("\n")
    return COMMENT_OR_STRING.sub(blank, text)


def run(check):
    """Call check(tree), print what it yields, and exit accordingly."""
    if len(sys.argv) != 3:
        sys.exit(f"usage: {Path(sys.argv[0]).name} ROOT LIST")
    findings = list(check(Tree(sys.argv[1], sys.argv[2])))
    for finding in findings:
        print(finding)
    sys.exit(1 if findings else 0)
