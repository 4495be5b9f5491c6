#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""shorten.py FILE COMMAND...: makes inputs shorter that break a guest, on the host.

FILE is what the guided fuzzer has left of a target: TARGET.last or TARGET.failed (guide.py). COMMAND
runs what KIW_INPUT says and fails if that fails:

    scripts/fuzz/shorten.py DIR/fuzz/wire-kiwarp.last \\
        scripts/selftests/check --kernel uml-debug 256-corpus

Each attempt boots a guest, so this can take an hour.
"""

import os
import subprocess
import sys

import guide


def main(path, command):
    with open(path, encoding="ascii") as file:
        target, _, text = file.read().strip().partition(": ")

    def fails(inputs):
        env = {**os.environ, "KIW_INPUT": f"{target}: {guide.as_text(inputs)}"}
        done = subprocess.run(command, env=env, stdout=subprocess.DEVNULL, check=False)
        print(f"{len(inputs)} inputs, {sum(map(len, inputs))} lines:",
              "fail" if done.returncode else "are good", flush=True)
        return done.returncode != 0

    inputs = guide.smallest(guide.from_text(text), fails)
    if not inputs:
        print("they do not fail")
        return 1
    print(f"again: KIW_INPUT='{target}: {guide.as_text(inputs)}' {' '.join(command)}")
    return 0


if __name__ == "__main__":
    if len(sys.argv) < 3:
        print(__doc__, file=sys.stderr)
        sys.exit(2)
    sys.exit(main(sys.argv[1], sys.argv[2:]))
