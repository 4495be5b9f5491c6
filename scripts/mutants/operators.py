#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""operators.py FILE...: prints the mutants of C files, one a line, and their number by operator.

A mutant is a small change to a function body. The text is changed without parsing C: kernel style,
which checkpatch enforces, makes operators, statements and functions easy to find. Lines keep their
numbers. Some mutants do not compile, and some mean the same as before.

relation     < becomes <=, <= becomes <, > and >= likewise; == becomes != and the reverse
logic        && becomes || and the reverse
condition    if (X) becomes if (!(X)); while likewise
constant     a number becomes greater or less by one; true becomes false and the reverse
error        a negative errno becomes 0
arithmetic   + becomes -, & becomes |, << becomes >>, and the reverse; += and so on likewise
call         a call that is a statement is removed
lock         a lock is neither taken nor released in a function
barrier      a memory barrier is removed, or an access loses its ordering
minmax       min() becomes max() and the reverse
"""

import difflib
import hashlib
import re
import sys
from collections import Counter
from dataclasses import dataclass

COMMENT_OR_STRING = re.compile(
    r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)
DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", re.M)
BODY = re.compile(r"^\{\n(.*?)^\}", re.M | re.S)
BLANK = re.compile(r"^[ \t]*\n", re.M)

SWAPS = {
    "relation": (r"(?<= )(<=|>=|<|>|==|!=)(?= )",
                 {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="}),
    "logic": (r"(?<= )(&&|\|\|)(?=\s)", {"&&": "||", "||": "&&"}),
    "arithmetic": (r"(?<= )(\+|-|&|\||<<|>>|\+=|-=|&=|\|=)(?=\s)|(?<=\w)(\+\+|--)",
                   {"+": "-", "-": "+", "&": "|", "|": "&", "<<": ">>", ">>": "<<", "+=": "-=",
                    "-=": "+=", "&=": "|=", "|=": "&=", "++": "--", "--": "++"}),
    "minmax": (r"\b(min|max|min_t|max_t)(?=\()",
               {"min": "max", "max": "min", "min_t": "max_t", "max_t": "min_t"}),
    "constant": (r"\b(true|false)\b", {"true": "false", "false": "true"}),
}
NUMBER = re.compile(r"(?<![\w.])(0x[0-9a-f]+|\d+)([uUlL]*)\b")
ERRNO = re.compile(r"-E[A-Z][A-Z0-9]+\b")
CONDITION = re.compile(r"\b(?:if|while) (?=\()")
# In such a condition, the opposite relation means the same as negating the condition.
ONE_EQUALITY = re.compile(r"[^&|?]* [!=]= [^&|?]*")
STATEMENT = re.compile(r"(?<=[;{}):])\s*\n\t+((\w+)\()|(?<=else)\n\t+((\w+)\()")

# Functions that take a lock, and those that release it
LOCKS = {
    "bh_lock_sock": "bh_unlock_sock", "dma_resv_lock": "dma_resv_unlock",
    "kiw_sock_lock": "kiw_sock_unlock", "local_bh_disable": "local_bh_enable",
    "lock_sock": "release_sock", "mutex_lock": "mutex_unlock",
    "mutex_lock_nested": "mutex_unlock", "rcu_read_lock": "rcu_read_unlock",
    "rcu_read_lock_bh": "rcu_read_unlock_bh", "read_lock_bh": "read_unlock_bh",
    "rtnl_lock": "rtnl_unlock", "spin_lock": "spin_unlock", "spin_lock_bh": "spin_unlock_bh",
    "spin_lock_irq": "spin_unlock_irq", "spin_lock_irqsave": "spin_unlock_irqrestore",
    "write_lock_bh": "write_unlock_bh", "xa_lock": "xa_unlock",
}
BARRIER = re.compile(r"\bsmp_(?:mb|rmb|wmb)\w*\(")
ORDERED = re.compile(r"\b(smp_load_acquire|smp_store_release)\(|\b(atomic\w*)_(?:acquire|release)\(")

# Calls that no test has to notice, and those that have an operator of their own
NOT_DROPPED = re.compile(
    r"(trace_kiw_|lockdep_|kiw_sock_assert_|ASSERT_|WARN|BUG|BUILD_BUG|static_assert|might_sleep|"
    r"pr_|ibdev_|netdev_|net_|if$|while$|for$|switch$|return$|sizeof$|smp_|fallthrough)")


@dataclass(frozen=True)
class Mutant:
    """A change to one file: edits are (start, end, replacement), and the function that they change is
    CODE, which begins at offset BASE."""

    path: str
    operator: str
    edits: tuple
    code: str = ""
    base: int = 0

    def identity(self):
        """What names the mutant, as long as its function does not change. The rest of the file may."""
        edits = [(start - self.base, end - self.base, new) for start, end, new in self.edits]
        what = repr((self.path, self.operator, edits, self.code))
        return hashlib.sha256(what.encode()).hexdigest()[:10]

    def apply(self, text):
        for start, end, replacement in sorted(self.edits, reverse=True):
            lines = text.count("\n", start, end) - replacement.count("\n")
            text = text[:start] + replacement + "\n" * lines + text[end:]
        return text

    def line(self, text):
        return text.count("\n", 0, min(self.edits)[0]) + 1

    def diff(self, text):
        return "".join(difflib.unified_diff(
            text.splitlines(True), self.apply(text).splitlines(True),
            "a/" + self.path, "b/" + self.path))


def blanked(text):
    """The text with comments, strings and directives replaced by blanks, so that offsets stay."""
    def blank(match):
        return re.sub(r"[^\n]", " ", match[0])
    return DIRECTIVE.sub(blank, COMMENT_OR_STRING.sub(blank, text))


def closing(text, start):
    """Offset after the parenthesis that closes the one at START."""
    depth = 0
    for offset in range(start, len(text)):
        depth += {"(": 1, ")": -1}.get(text[offset], 0)
        if depth == 0:
            return offset + 1
    return len(text)


def swapped(body):
    for operator, (pattern, other) in SWAPS.items():
        for match in re.finditer(pattern, body):
            yield operator, match.start(), [(match.start(), match.end(), other[match[0]])]


def values(body):
    for match in NUMBER.finditer(body):
        value = int(match[1], 0)
        for other in (value + 1, value - 1):
            if other >= 0:
                yield "constant", match.start(), [(match.start(), match.end(), f"{other}{match[2]}")]
    for match in ERRNO.finditer(body):
        yield "error", match.start(), [(match.start(), match.end(), "0")]


def conditions(body):
    for match in CONDITION.finditer(body):
        end = closing(body, match.end())
        if ONE_EQUALITY.fullmatch(body, match.end(), end):
            continue
        yield "condition", match.start(), [(match.end(), match.end(), "(!"), (end, end, ")")]


def statements(body):
    """(name, start, end) of calls that are statements; END is the offset of the semicolon."""
    for match in STATEMENT.finditer(body):
        number = 1 if match[1] else 3
        end = closing(body, match.end(number) - 1)
        if body[end:end + 1] == ";":
            yield match[number + 1], match.start(number), end + 1


def arguments(body, start, end):
    """The first argument of a call, which identifies the lock."""
    text = body[body.index("(", start) + 1:end - 2]
    return "".join(text.split(",")[0].split())


def calls(body):
    found = [(name, start, end, arguments(body, start, end))
             for name, start, end in statements(body)]
    for name, start, end, lock in found:
        if name in LOCKS:
            releases = [f for f in found if f[0] == LOCKS[name] and f[3] == lock]
            taken = [f for f in found if f[0] == name and f[3] == lock]
            if releases and start == taken[0][1]:
                yield "lock", start, [(f[1], f[2], ";") for f in taken + releases]
        elif name not in LOCKS.values() and not NOT_DROPPED.match(name):
            yield "call", start, [(start, end, ";")]


def barriers(body):
    for match in BARRIER.finditer(body):
        end = closing(body, match.end() - 1)
        yield "barrier", match.start(), [(match.start(), end, "")]
    for match in ORDERED.finditer(body):
        opening = match.end() - 1
        comma = body.find(",", opening)
        end = closing(body, opening)
        if match[2]:
            plain = match[2] + ("" if match[2].endswith(("_read", "_set")) else "_relaxed")
            yield "barrier", match.start(), [(match.start(), opening, plain)]
        elif match[1] == "smp_load_acquire":
            yield "barrier", match.start(), [(match.start(), opening + 1, "READ_ONCE(*("),
                                             (end - 1, end, "))")]
        else:
            yield "barrier", match.start(), [(match.start(), opening + 1, "WRITE_ONCE(*("),
                                             (comma, comma, ")")]


def functions(code, text):
    """(match of BODY, start, text) of each function of a file. CODE is TEXT, blanked."""
    for match in BODY.finditer(code):
        start = max((line.end() for line in BLANK.finditer(code, 0, match.start())), default=0)
        yield match, start, text[start:match.end()]


def mutants(path, text):
    """All mutants of a file, in lists: one list per place and operator."""
    places = {}
    code = blanked(text)
    for match, base, function in functions(code, text):
        # A statement may be the first of the body.
        first = match.start(1) - 2
        body = code[first:match.end(1)]
        for make in (swapped, values, conditions, calls, barriers):
            for operator, at, edits in make(body):
                edits = tuple((first + start, first + end, new) for start, end, new in edits)
                places.setdefault((first + at, operator), []).append(
                    Mutant(path, operator, edits, function, base))
    return [places[place] for place in sorted(places)]


def sample(texts, seed):
    """One mutant of each place of all files, {path: text}, in an order that depends on the seed. A
    change to a function changes neither the mutants of the others nor their order."""
    def rank(mutant):
        return hashlib.sha256(f"{seed} {mutant.identity()}".encode()).digest()

    found = [min(place, key=rank) for path in sorted(texts) for place in mutants(path, texts[path])]
    return sorted(found, key=rank)


def main():
    count = Counter()
    for path in sys.argv[1:]:
        with open(path, encoding="utf-8") as file:
            text = file.read()
        for place in mutants(path, text):
            for mutant in place:
                count[mutant.operator] += 1
                changed = mutant.apply(text).splitlines()[mutant.line(text) - 1].strip()
                print(f"{path}:{mutant.line(text)}: {mutant.operator}: {changed}")
    print(", ".join(f"{number} {name}" for name, number in sorted(count.items())))


if __name__ == "__main__":
    main()
