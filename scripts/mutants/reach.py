# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Which tests execute which lines of the drivers, as the last `make coverage` has seen it."""

import hashlib
import json

import operators


def state(text):
    """What a function is known by"""
    return hashlib.sha256(text.encode()).hexdigest()[:12]


class Reach:
    """What FILE tells. It knows nothing of a function that has changed since, nor of a test that is new.
    MAP is that of run.py."""

    def __init__(self, file, test_map):
        known = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
        # Not KUnit: the compiler inlines what it calls.
        self.tests = {name for name in known.get("tests", ()) if name != "kunit"}
        self.functions = {(path, of): {int(line): tests for line, tests in lines.items()}
                          for path, functions in known.get("files", {}).items()
                          for of, lines in functions.items()}
        self.kernels = {}       # of a test in the map, one that it runs on
        for _, _, tests in test_map:
            for name, _, kernel in (test.partition("@") for test in tests):
                self.kernels[name] = "uml" if not kernel else self.kernels.get(name, kernel)

    def of(self, mutant, text):
        """The tests that execute a mutant, or None if that is unknown"""
        lines, found = self.functions.get((mutant.path, state(mutant.code))), set()
        for start, *_ in mutant.edits if lines else ():
            number = text.count("\n", mutant.base, start)
            found.update(lines[max((n for n in lines if n <= number), default=min(lines))])
        return found if lines else None

    def choose(self, tests, mutant, text):
        """Of TESTS, (kernel, name), those that may execute a mutant. If none does, others that do. What
        runs on several CPUs may get further than it was seen to."""
        reached = self.of(mutant, text)
        if reached is None:
            return tests
        chosen = [(kernel, name) for kernel, name in tests
                  if name not in self.tests or name in reached or ":" in kernel]
        if all(name == "kunit" for _, name in chosen):
            chosen += [(self.kernels[name], name) for name in sorted(reached)
                       if name in self.kernels]
        return chosen


def table(text, reached):
    """What FILE has of the functions of a source. REACHED is {line: tests}."""
    found = {}
    for _, start, function in operators.functions(operators.blanked(text), text):
        first = text.count("\n", 0, start) + 1
        lines = {line - first: sorted(tests) for line, tests in reached.items()
                 if first <= line <= first + function.count("\n")}
        if lines:
            found[state(function)] = lines
    return found
