#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""kubernetes.py MANIFEST...: whether Kubernetes knows every field of these files, without a cluster.

kubectl set reads objects into the types of its API, and what these lack is lost; kubectl label
keeps all. What the second has and the first has not is unknown to the API.
"""

import json
import subprocess
import sys

# An object that the first does not change is not printed.
TYPED = ["kubectl", "set", "image", "--local", "-o", "json", "*=other", "-f"]
PLAIN = ["kubectl", "label", "--local", "-o", "json", "sample=1", "-f"]


def objects(command, path):
    """{(kind, name): object}"""
    run = subprocess.run(command + [path], check=False, capture_output=True, text=True)
    if run.returncode:
        sys.exit(run.stderr)
    text = run.stdout
    decoder, found = json.JSONDecoder(), []
    while text.strip():
        one, end = decoder.raw_decode(text.strip())
        text = text.strip()[end:]
        found += one.get("items", [one])
    return {(one["kind"], one["metadata"]["name"]): one for one in found}


def lost(before, after, where):
    """Names of what is in before, and not in after"""
    if isinstance(before, dict) and isinstance(after, dict):
        for key, value in before.items():
            if key not in after:
                yield f"{where}.{key}"
            else:
                yield from lost(value, after[key], f"{where}.{key}")
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for number, (one, other) in enumerate(zip(before, after)):
            yield from lost(one, other, f"{where}[{number}]")
    # Quantities become strings.
    elif str(before) != str(after):
        yield where


def main():
    bad = 0
    for path in sys.argv[1:]:
        typed, plain = objects(TYPED, path), objects(PLAIN, path)
        if not plain or set(typed) != set(plain):
            sys.exit(f"{path}: {sorted(plain)}, of which the API knows {sorted(typed)}")
        for name, one in plain.items():
            one["metadata"].pop("labels")
            for where in lost(one, typed[name], "/".join(name)):
                # Set by the first command
                if not where.endswith(".image"):
                    print(f"{path}: unknown: {where}")
                    bad += 1
    sys.exit(bool(bad))


if __name__ == "__main__":
    main()
